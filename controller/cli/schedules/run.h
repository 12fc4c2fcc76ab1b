/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands that run a schedule: by Open MPI alone, and over the light of a testbed */
#ifndef WEFT_CLI_SCHEDULES_RUN_H
#define WEFT_CLI_SCHEDULES_RUN_H

#include <jansson.h>

#include "controller/cli/core/private.h"

#define CLI_RUN_LIMIT_NS INT64_C(600000000000)	/* unless --time-limit says otherwise */
#define CLI_RUN_REPEATS 5
#define CLI_RUN_MAX_REPEATS 10000

/* A whole number of what the ranks found; missing: there is none. */
int64_t cli_run_number(const json_t *object, const char *key, int64_t missing);
/* "steps", the first n of the result: step, planned where step_ns is given (ns, [n]), median and
 * worst time, and who took that: worst_rank, or of hosts ([ranks], may be NULL) worst_host. */
void cli_out_run_steps(const struct cli *c, struct out *o, const json_t *result, int n,
		       const double *step_ns, char *const *hosts);

#endif
