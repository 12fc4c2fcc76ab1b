/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tables of commands share, so that options of several verbs have one wording.
 *
 * Texts are read by people: help of an option is in lower case and names its default. An option's
 * `values` are the words that completion offers; the command itself still checks what it gets.
 */
#ifndef WEFT_CLI_CORE_OPTIONS_H
#define WEFT_CLI_CORE_OPTIONS_H

#include "controller/cli/core/private.h"

/* Ends a table of options. */
#define END { 0, NULL, NULL, NULL, NULL }
#define SVG { 0, "svg", "FILE.svg", "also draw the fabric: devices, hosts, circuits by job", \
	"@file" }
#define CONFIG { 'f', "file", "FABRIC", "the fabric's YAML file", "@file" }
#define OUTPUT(what) { 'o', "output", "FILE", what, "@file" }
#define FULL { 0, "full", NULL, "do not shorten long lists", NULL }
#define JOB { 0, "job", "NAME", "the schedule of a job that weftd has " \
	"applied, instead of FILE", "@job" }
/* The words of coll_kind_parse(), of job repair and of the algorithms (those of collective/make, in
 * help too), for completion. */
#define COLLECTIVES "allgather reduce-scatter allreduce all-to-all broadcast reduce gather scatter"
#define ALGORITHMS "auto @algorithm"
/* Ends a table of commands. */
#define GROUP_END { NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL }

/* Tables of the parts schedules and lab; one without rows: the part is not in this build. */
extern const struct cli_command schedule_commands[], routes_commands[], topology_commands[],
	ring_commands[], rwa_commands[], testbed_commands[], import_commands[];

#endif
