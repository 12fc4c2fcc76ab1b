/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command tree of weft: every verb with its arguments, options, limits
 * and function, as tables.
 *
 * These tables are the only description of the command line. tree.c parses
 * against them, help.c writes --help and the candidates of shell completion
 * from them, so a new verb is one row here and one cmd_ function in
 * private.h, and tests/lint/man asks for its page. Texts are read by people:
 * help of a verb starts with a capital and has no full stop (cli_help adds
 * it); help of an option is in lower case and names its default. An option's
 * `values` are the words that completion offers; the command itself still
 * checks what it gets.
 *
 * Options that several verbs share are macros, so that they have one wording. The groups about
 * schedules and testbeds are in files of their own, which a small build leaves out.
 */
#include <stddef.h>

#include "controller/cli/core/options.h"

/* MODE_SAFE and MODE_UPDATE of weft.v1; see cli_read_mode(). */
#define MODE { 0, "mode", "MODE", "safe: never take a port that holds a " \
	"circuit weft did not make; update: displace it, and list it", "safe update" }
#define OPTIMISE { 0, "optimise", NULL, "choose the topologies of jobs again, where that pays " \
	"back in time", NULL }
/* What all verbs take that change devices; read by common() of change.c. */
#define CHANGE_OPTIONS \
	{ 'm', "comment", "TEXT", "recorded in the history", NULL }, \
	{ 0, "expect-generation", "N", "refuse unless this is the current " \
	  "generation", NULL }, \
	{ 0, "request-id", "ID", "a retry with the same ID does not start a second " \
	  "change", NULL }, \
	{ 0, "confirm-within", "TIME", "roll back unless \"weft confirm\" follows " \
	  "in time, e.g. 5min", NULL }
#define CIRCUITS_MAX 65536	/* of one command line */
#define REPAIRS "none degraded spare"
#define PROTECTIONS "none 1+1 shared"
#define STATE_DIR_OPTION { 0, "state-dir", "DIR", "weftd's folder (default: /var/lib/weft)", \
	"@file" }
#define REASON { 'm', "reason", "TEXT", "reason, recorded in the audit trail", NULL }

/* --keep, --offline and --output exclude one another in part; load() of
 * plan.c says which. */
static const struct cli_option plan_options[] = {
	CONFIG, OUTPUT("write the plan to a file for weft apply"), MODE, FULL,
	{ 0, "commands", NULL, "also show the commands for each device, in order",
	  NULL },
	{ 0, "lightpaths", NULL, "also show new lightpaths with their power, and "
	  "interrupted links", NULL },
	SVG,
	{ 0, "keep", "SHARE", "what if this share of capacity had to stay in service",
	  NULL },
	{ 0, "offline", NULL, "without weftd: all devices are taken as empty", NULL },
	OPTIMISE, END,
};

static const struct cli_option apply_options[] = {
	CONFIG, MODE, OPTIMISE, CHANGE_OPTIONS, END,
};

static const struct cli_option rollback_options[] = { CHANGE_OPTIONS, END };

static const struct cli_option cancel_options[] = {
	{ 0, "request-id", "ID", "only this change (default: any)", NULL },
	END,
};

static const struct cli_option status_options[] = { FULL, SVG, END };

static const struct cli_option history_options[] = {
	{ 'n', "limit", "N", "the newest N (default: 20)", NULL }, END,
};

static const struct cli_option audit_options[] = {
	{ 0, "change", "N", "only of this change", NULL },
	{ 0, "device", "NAME", "only about this device", "@device" },
	{ 0, "since", "TIME", "only so far back, e.g. 2h", NULL },
	{ 'n', "limit", "N", "the newest N lines (default: 200; with "
	  "--change: all)", NULL },
	END,
};

static const struct cli_option store_export_options[] = {
	OUTPUT("write it here (default: standard output)"), STATE_DIR_OPTION,
	{ 0, "no-history", NULL, "without changes that are over, as far as nothing needs them",
	  NULL },
	{ 0, "audit", NULL, "with the audit trail", NULL }, END,
};

static const struct cli_option store_import_options[] = {
	STATE_DIR_OPTION,
	{ 0, "replace", NULL, "where there is a store: keep it beside the new one", NULL }, END,
};

static const struct cli_option store_check_options[] = { STATE_DIR_OPTION, END, };

static const struct cli_option external_options[] = {
	{ 0, "open", NULL, "only those not resolved yet", NULL },
	{ 'n', "limit", "N", "the newest N (default: 100)", NULL }, END,
};

static const struct cli_option drain_options[] = {
	{ 'm', "comment", "TEXT", "reason, shown by weft status", NULL },
	{ 0, "evacuate", NULL, "also move light away from it, where it has another way", NULL },
	{ 0, "dry-run", NULL, "with --evacuate: only show what would move, and its cost", NULL },
	END,
};

static const struct cli_option freeze_options[] = {
	{ 0, "now", NULL, "also stop the change that runs, and take it back", NULL },
	{ 'm', "comment", "TEXT", "reason, shown by weft status", NULL }, END,
};

static const struct cli_option port_options[] = {
	REASON,
	{ 0, "force", NULL, "also when an intended circuit is interrupted",
	  NULL },
	END,
};

static const struct cli_option recover_options[] = {
	{ 0, "homing", NULL, "start a robot's homing run",
	  NULL },
	{ 0, "relock", NULL, "lock resonators that have lost their wavelength",
	  NULL },
	{ 0, "clear", NULL, "clear the device's error queue",
	  NULL },
	REASON, END,
};

static const struct cli_option watch_options[] = {
	{ 0, "after", "SEQUENCE", "continue after this event (default: new events only)",
	  NULL },
	{ 'n', "count", "N", "end after N events", NULL }, END,
};

static const struct cli_option wait_options[] = {
	{ 0, "for", "CONDITION", "ready, no-change, generation=N or "
	  "device=NAME:reachable", "ready no-change generation= device=" },
	{ 0, "timeout", "TIME", "give up after this time, with exit code 124 "
	  "(default: never)", NULL },
	END,
};

static const struct cli_option emulate_options[] = {
	{ 0, "control-dir", "DIR", "give each a control socket DIR/NAME.ctl",
	  "@file" },
	END,
};

static const struct cli_option bringup_options[] = {
	{ 0, "restart", NULL, "start over, whatever an earlier one found", NULL },
	{ 0, "around", NULL, "leave existing circuits, and their ports, as they are", NULL },
	{ 0, "moves", "N", "allow robots N moves (default: none)",
	  NULL },
	END,
};

static const struct cli_option job_options[] = {
	{ 0, "nodes", "NAMES", "hosts in rank order, e.g. gpu[00-03]", NULL },
	{ 0, "count", "N", "let weftd choose N hosts", NULL },
	{ 0, "ranks", "N", "let weftd choose hosts that have N ranks, such as servers", NULL },
	{ 0, "shape", "SHAPE", "let weftd choose cubes for a slice, e.g. 8x8x16 chips", NULL },
	{ 0, "twist", NULL, "of it: a twisted torus", NULL },
	{ 0, "spares", "N", "beside it: cubes that stand in for those that fail", NULL },
	{ 'c', "collective", "NAME", "such as allreduce or gather", COLLECTIVES },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL },
	{ 0, "step", "FILE", "in place of these a training step: mesh, collectives, step, as in a "
	  "fabric", NULL },
	{ 't', "topology", "EXPR", "default: the best", NULL },
	{ 'a', "algorithm", "NAME", "default: the best", ALGORITHMS },
	{ 0, "min-ports", "N", "only hosts with at least N ports", NULL },
	{ 0, "ports", "PORTS", "these of each host, e.g. p[0-3], or so many (default: all that are "
	  "free)", NULL },
	{ 0, "ring", "NAME", "on this ring instead of switches", NULL },
	{ 0, "channels", "N", "of the ring (default: all)", NULL },
	{ 0, "protect", "HOW", "backups of light between switches: none, 1+1 or shared",
	  PROTECTIONS },
	{ 0, "duration", "TIME", "release it automatically after, e.g. 2h",
	  NULL },
	{ 0, "priority", "N", "higher ones start first (default: 0)", NULL },
	{ 0, "preemptible", NULL, "may be preempted by a job of higher priority",
	  NULL },
	{ 0, "grace", "TIME", "of a preemptible one: it goes on for so long before it makes room",
	  NULL },
	{ 0, "repair", "HOW", "when circuits fail: none, degraded (a "
	  "schedule on the remaining ones) or spare (also move to free hosts)",
	  REPAIRS },
	{ 0, "no-wait", NULL, "return as soon as it is queued", NULL },
	{ 0, "request-id", "ID", "a retry with the same ID does not create a second job",
	  NULL },
	END,
};

static const struct cli_option job_list_options[] = {
	{ 0, "all", NULL, "include ended jobs", NULL }, END,
};

#define CIRCUIT_OPTIONS \
	{ 0, "lease", "TIME", "remove it automatically after, e.g. 2h (default: never)", NULL }, \
	{ 0, "partial", NULL, "keep what could be made, though not all could; then the status is " \
	  "2", NULL }, \
	{ 0, "wait", NULL, "wait for ports that others have (default: status 75)", NULL }, \
	{ 0, "mode", "MODE", "update: take ports from others, which operators may (default: " \
	  "safe)", "safe update" }

#define CIRCUIT_ID \
	{ 0, "request-id", "ID", "a retry with the same ID does not create a second group", NULL }

static const struct cli_option circuit_add_options[] = {
	{ 0, "name", "NAME", "of the group (default: weftd makes one up)", NULL },
	{ 0, "one-way", NULL, "only from the first port to the second", NULL },
	CIRCUIT_OPTIONS, CIRCUIT_ID, END,
};

static const struct cli_option circuit_set_options[] = { CIRCUIT_OPTIONS, CIRCUIT_ID, END };

static const struct cli_option circuit_import_options[] = { CIRCUIT_OPTIONS, END };

static const struct cli_option circuit_export_options[] = {
	OUTPUT("default: standard output"), END,
};

static const struct cli_option circuit_list_options[] = {
	{ 0, "port", "A", "only those of this port", "@end" },
	{ 0, "mine", NULL, "only your own", NULL }, END,
};

static const struct cli_option ocs_shell_options[] = {
	{ 0, "switch", "NAME", "whose commands these are", "@device" },
	{ 0, "group", "NAME", "whose circuits are made and deleted (default: the user's name)",
	  NULL },
	END,
};

static const struct cli_command circuit_commands[] = {
	{ "add", NULL, "A B [A B...]", "Make circuits from port to port, all or none; waits until "
	  "they are there", NULL, circuit_add_options, 2, 2 * CIRCUITS_MAX, false,
	  cmd_circuit_add },
	{ "set", NULL, "GROUP FILE", "Make a group what a file of lines \"A B\" says, or of "
	  "YAML; what it has already stays", NULL, circuit_set_options, 2, 2, false,
	  cmd_circuit_set },
	{ "export", NULL, "[GROUP]", "Write groups as lines \"A B\", for another lab", NULL,
	  circuit_export_options, 0, 1, false, cmd_circuit_export },
	{ "import", NULL, "FILE", "Make all groups of such a file what it says", NULL,
	  circuit_import_options, 1, 1, false, cmd_circuit_import },
	{ "remove", NULL, "GROUP|A", "Remove a group of circuits; waits until they are gone",
	  NULL, NULL, 1, 1, false, cmd_circuit_remove },
	{ "list", NULL, "", "List circuits on request", NULL, circuit_list_options, 0, 0, false,
	  cmd_circuit_list },
	{ "find", NULL, "A", "Show who has a port, and until when; status 2 if it is held", NULL,
	  NULL, 1, 1, false, cmd_circuit_find },
	{ "renew", NULL, "GROUP TIME", "Keep a group for so long from now", NULL, NULL, 2, 2, false,
	  cmd_job_renew },
	GROUP_END,
};

static const struct cli_command job_commands[] = {
	{ "request", NULL, "[NAME]", "Request hosts and circuits for a "
	  "collective; waits until it runs", NULL, job_options, 0, 1, false,
	  cmd_job_request },
	{ "release", NULL, "JOB", "Release a job; waits until its "
	  "circuits are gone", NULL, NULL, 1, 1, false, cmd_job_release },
	{ "renew", NULL, "JOB TIME", "Keep a job for so long from now", NULL, NULL, 2, 2, false,
	  cmd_job_renew },
	{ "list", NULL, "[JOB]", "List requested jobs", NULL,
	  job_list_options, 0, 1, false, cmd_job_list },
	{ "light", NULL, "JOB COLLECTIVE", "Give a training step the light of one of its "
	  "collectives; waits until it is there", NULL, NULL, 2, 2, false, cmd_job_light },
	GROUP_END,
};

static const struct cli_option export_slurm_options[] = {
	{ 0, "plugin", "NAME", "tree (default) or block", "tree block" },
	{ 0, "to", "FORMAT",
	 "yaml (default, topology.yaml) or conf (topology.conf, of older Slurm)",
	  "yaml conf" },
	OUTPUT("default: standard output"), END,
};

static const struct cli_option export_model_options[] = {
	OUTPUT("default: standard output"), END,
};

static const struct cli_command export_commands[] = {
	{ "slurm", NULL, "[FABRIC]", "Slurm's topology.yaml or topology.conf", NULL,
	  export_slurm_options, 0, 1, false, cmd_export_slurm },
	{ "topograph", NULL, "[FABRIC]", "Model for NVIDIA topograph",
	  NULL, export_model_options, 0, 1, false, cmd_export_topograph },
	GROUP_END,
};

static const struct cli_command device_commands[] = {
	{ "drivers", NULL, "[DRIVER]", "List drivers and their options", NULL, NULL, 0, 1, false,
	 cmd_device_drivers },
	{ "list", NULL, "", "List the devices of weftd", NULL, NULL, 0, 0,
	  false, cmd_device_list },
	{ "show", NULL, "DEVICE", "Show a device, its circuits and their "
	  "insertion loss", NULL, NULL, 1, 1, false, cmd_device_show },
	{ "port", NULL, "DEVICE PORT enable|disable", "Enable or disable a port "
	  "of a switch by hand", NULL, port_options, 3, 3, false,
	  cmd_device_port },
	{ "recover", NULL, "DEVICE", "Recover a device: homing run, relock, "
	  "clear errors", NULL, recover_options, 1, 1, false,
	  cmd_device_recover },
	GROUP_END,
};

static const struct cli_command store_commands[] = {
	{ "export", NULL, "", "Write the store as text, for another version", NULL,
	  store_export_options, 0, 0, false, cmd_store_export },
	{ "import", NULL, "FILE", "Make a store from such a text", NULL,
	  store_import_options, 1, 1, false, cmd_store_import },
	{ "check", NULL, "", "Check that a store holds what was written", NULL,
	  store_check_options, 0, 0, false, cmd_store_check },
	GROUP_END,
};

/* In the order of --help: first what is done to a fabric, then what works
 * without weftd, then the tools around it. "complete" is raw: it takes its
 * words as they are, and help does not list it. */
const struct cli_command cli_root[] = {
	{ "check", NULL, "FABRIC", "Check a fabric file for errors", NULL,
	  NULL, 1, 1, false, cmd_check },
	{ "plan", NULL, "[FABRIC]", "Show what would change", NULL,
	  plan_options, 0, 1, false, cmd_plan },
	{ "apply", NULL, "[PLAN]", "Apply a plan or fabric file, verify it, or roll "
	  "back", NULL, apply_options, 0, 1, false, cmd_apply },
	{ "status", "show", "", "Show devices, jobs and changes, and how well they are verified",
	  NULL, status_options, 0, 0, false, cmd_status },
	{ "diff", NULL, "", "Compare the last readings with the intent", NULL,
	  status_options, 0, 0, false, cmd_diff },
	{ "verify", NULL, "", "Read every device now and compare with the intent", NULL,
	  status_options, 0, 0, false, cmd_verify },
	{ "rollback", NULL, "[GENERATION]", "Apply an earlier configuration "
	  "again", NULL, rollback_options, 0, 1, false, cmd_rollback },
	{ "confirm", NULL, "[CHANGE]", "Keep a change that was applied with "
	  "--confirm-within", NULL, NULL, 0, 1, false, cmd_confirm },
	{ "cancel", NULL, "", "Stop the running change, or one that awaits "
	  "confirmation, and roll it back",
	  NULL, cancel_options, 0, 0, false, cmd_cancel },
	{ "history", NULL, "", "List changes, newest first", NULL,
	  history_options, 0, 0, false, cmd_history },
	{ "audit", NULL, "", "Show commands sent to devices, their answers, "
	  "and who caused them", NULL, audit_options, 0, 0, false,
	  cmd_audit },
	{ "external-changes", NULL, "[DEVICE]", "List changes of "
	  "circuits that weft did not make, newest first", NULL, external_options, 0, 1, false,
	  cmd_external_changes },
	{ "drain", NULL, "WHAT", "Drain a host, a device or a port: no new circuits",
	  NULL, drain_options, 1, 1, false, cmd_drain },
	{ "undrain", NULL, "WHAT", "Allow new circuits there again", NULL, NULL, 1,
	  1, false, cmd_undrain },
	{ "freeze", NULL, "", "Emergency freeze: refuse every change", NULL,
	  freeze_options, 0, 0, false, cmd_freeze },
	{ "unfreeze", NULL, "", "Allow changes again", NULL, NULL, 0, 0,
	  false, cmd_unfreeze },
	{ "log", NULL, "[LEVELS]", "Show or set log levels of weftd, e.g. drivers=debug", NULL,
	  NULL, 0, 1, false, cmd_log },
	{ "watch", NULL, "", "Stream events as they happen", NULL,
	  watch_options, 0, 0, false, cmd_watch },
	{ "wait", NULL, "", "Wait for a condition", NULL, wait_options,
	  0, 0, false, cmd_wait },
	{ "schedule", NULL, "", "Collective schedules", schedule_commands,
	  NULL, 0, 0, false, NULL },
	{ "routes", NULL, "", "Route tables of all-to-all",
	  routes_commands, NULL, 0, 0, false, NULL },
	{ "topology", NULL, "", "Topologies", topology_commands, NULL, 0, 0,
	  false, NULL },
	{ "ring", NULL, "", "Collectives on WDM rings", ring_commands, NULL,
	  0, 0, false, NULL },
	{ "rwa", NULL, "", "Routing and wavelength assignment", rwa_commands,
	  NULL, 0, 0, false, NULL },
	{ "export", NULL, "", "Export for Slurm / topograph",
	  export_commands, NULL, 0, 0, false, NULL },
	{ "circuit", NULL, "", "Make, remove and list circuits from port to port",
	  circuit_commands, NULL, 0, 0, false, NULL },
	{ "ocs-shell", NULL, "[COMMAND...]", "Answer commands of a SONiC optical switch, for an "
	  "SSH login", NULL, ocs_shell_options, 0, 8, false, cmd_ocs_shell },
	{ "job", NULL, "", "Request, release and list jobs, change their light",
	  job_commands, NULL, 0, 0, false, NULL },
	{ "device", NULL, "", "Devices and drivers", device_commands, NULL, 0,
	  0, false, NULL },
	{ "emulate", NULL, "FABRIC", "Emulate the devices of a fabric "
	  "file", NULL, emulate_options, 1, 1, false, cmd_emulate },
	{ "bringup", NULL, "FABRIC", "Discover how a fabric is cabled, and "
	  "compare with the file", NULL, bringup_options, 1, 1, false,
	  cmd_bringup },
	{ "import", NULL, "", "A lab's cabling from files of others", import_commands, NULL, 0, 0,
	  false, NULL },
	{ "testbed", NULL, "", "Fabrics of network namespaces, with real "
	  "packets", testbed_commands, NULL, 0, 0, false, NULL },
	{ "store", NULL, "", "What weftd remembers, between versions of weft", store_commands,
	  NULL, 0, 0, false, NULL },
	{ "explain", NULL, "[CODE|KIND]", "Explain a code, or a kind of problem", NULL,
	  NULL, 0, 1, false, cmd_explain },
	{ "version", NULL, "", "Print versions", NULL, NULL, 0, 0,
	  false, cmd_version },
	{ "complete", NULL, "", "Candidates for the last word", NULL, NULL, 0,
	  0, true, cmd_complete },
	GROUP_END,
};
