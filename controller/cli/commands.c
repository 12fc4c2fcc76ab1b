/* The command tree of weft. */
#include <stddef.h>

#include "controller/cli/core/private.h"

#define END { 0, NULL, NULL, NULL, NULL }
#define CONFIG { 'f', "file", "FABRIC", "the fabric's YAML file", "@file" }
#define OUTPUT(what) { 'o', "output", "FILE", what, "@file" }
#define MODE { 0, "mode", "MODE", "safe: never take a port that holds a " \
	"circuit of others; update: take it and say so", "safe update" }
#define FULL { 0, "full", NULL, "show long lists whole", NULL }
#define JOB { 0, "job", "NAME", "the schedule of a job that weftd has " \
	"applied", NULL }
#define CHANGE_OPTIONS \
	{ 'm', "comment", "TEXT", "goes to the history", NULL }, \
	{ 0, "expect-generation", "N", "refuse unless this is the present " \
	  "generation", NULL }, \
	{ 0, "request-id", "ID", "asking twice with the same one runs one " \
	  "change", NULL }, \
	{ 0, "confirm-within", "TIME", "go back unless \"weft confirm\" comes " \
	  "in time, e.g. 5min", NULL }
#define COST_OPTIONS \
	{ 0, "alpha", "TIME", "cost of a step, e.g. 10us", NULL }, \
	{ 0, "bandwidth", "RATE", "of a node, all its ports together", \
	  NULL }, \
	{ 0, "link-bandwidth", "RATE", "of a link instead", NULL }, \
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL }

#define COLLECTIVES "allgather reduce-scatter allreduce all-to-all broadcast"
#define REPAIRS "none degraded spare"
#define ALGORITHMS \
	"auto bfb expand mcf link-mcf grouped pmcf tsmcf single-path " \
	"shortest-path disjoint"
#define EXPORTS \
	"json proto msccl-xml rccl-xml mscclpp-json " \
	"mscclpp-json-oop routes-text routes-json routes-proto"

static const struct cli_option plan_options[] = {
	CONFIG, OUTPUT("write the plan, to be applied later"), MODE, FULL,
	{ 0, "commands", NULL, "what would be sent to each device, in order",
	  NULL },
	{ 0, "lightpaths", NULL, "each lightpath that comes, with its power, and "
	  "each that goes", NULL },
	{ 0, "keep", "SHARE", "what if so much capacity had to stay in service",
	  NULL },
	{ 0, "offline", NULL, "do not ask weftd: all devices are dark", NULL },
	END,
};

static const struct cli_option apply_options[] = {
	CONFIG, MODE, CHANGE_OPTIONS, END,
};

static const struct cli_option rollback_options[] = { CHANGE_OPTIONS, END };

static const struct cli_option cancel_options[] = {
	{ 0, "request-id", "ID", "only this change (default: any)", NULL },
	END,
};

static const struct cli_option full_options[] = { FULL, END };

static const struct cli_option history_options[] = {
	{ 'n', "limit", "N", "at most so many (default: 20)", NULL }, END,
};

static const struct cli_option audit_options[] = {
	{ 0, "change", "N", "only of this change", NULL },
	{ 0, "device", "NAME", "only about this device", NULL },
	{ 0, "since", "TIME", "only so far back, e.g. 2h", NULL },
	{ 'n', "limit", "N", "the newest so many lines (default: 200; with "
	  "--change: all)", NULL },
	END,
};

static const struct cli_option external_options[] = {
	{ 0, "open", NULL, "only those that are still so", NULL },
	{ 'n', "limit", "N", "the newest so many (default: 100)", NULL }, END,
};

static const struct cli_option hold_options[] = {
	{ 'm', "comment", "TEXT", "why; status shows it", NULL }, END,
};

#define REASON { 'm', "reason", "TEXT", "why; the audit trail has it", NULL }

static const struct cli_option port_options[] = {
	REASON,
	{ 0, "force", NULL, "also when light that is meant to be there goes",
	  NULL },
	END,
};

static const struct cli_option recover_options[] = {
	{ 0, "homing", NULL, "a robot finds its place again, and goes on",
	  NULL },
	{ 0, "relock", NULL, "resonators that hold no wave search anew",
	  NULL },
	{ 0, "clear", NULL, "errors that wait in the device are forgotten",
	  NULL },
	REASON, END,
};

static const struct cli_option watch_options[] = {
	{ 0, "after", "SEQUENCE", "go on after this event (default: from now)",
	  NULL },
	{ 'n', "count", "N", "end after so many events", NULL }, END,
};

static const struct cli_option wait_options[] = {
	{ 0, "for", "WHAT", "ready, no-change, generation=N or "
	  "device=NAME:reachable", "ready no-change generation= device=" },
	{ 0, "timeout", "TIME", "give up then, with exit code 124 (default: "
	  "never)", NULL },
	END,
};

static const struct cli_option make_options[] = {
	{ 't', "topology", "EXPR|FILE", "an expression such as Torus(4,4), "
	  "or a file of topology build", "@file" },
	{ 'c', "collective", "NAME", "allgather, reduce-scatter, allreduce, "
	  "...", COLLECTIVES },
	{ 'a', "algorithm", "NAME", "auto, bfb, expand, or (all-to-all) mcf, "
	  "link-mcf, grouped, pmcf, tsmcf, single-path, shortest-path, "
	  "disjoint",
	  ALGORITHMS },
	{ 0, "batches", "N", "cut shards in so many, which overlap (default: "
	  "1, or the fastest when the cost is given)", NULL },
	{ 0, "chunks", "P", "cut every shard into P (default: as many as the "
	  "exact loads need)", NULL },
	{ 0, "gap", "SHARE", "all-to-all: how near the flow comes to its "
	  "bound (default: 0.01%)", NULL },
	{ 0, "exact", NULL, "all-to-all: find the best rate as a fraction, "
	  "with a checked proof", NULL },
	{ 0, "rate", NULL, "all-to-all: only the best rate, no schedule",
	  NULL },
	{ 0, "host-bandwidth", "B", "with --rate: between host and NIC, in "
	  "links; what is forwarded passes the host", NULL },
	{ 0, "nic-forwards", NULL, "... unless NICs forward", NULL },
	{ 0, "steps", "K", "all-to-all by tsmcf: so many (default: the "
	  "fewest that reach the flow's rate)", NULL },
	{ 0, "loss", "SHARE", "all-to-all: of rate, allowed to chunks and to "
	  "steps (default: 1%)", NULL },
	{ 0, "time-limit", "TIME", "all-to-all: take the best flow by then",
	  NULL },
	OUTPUT("write the schedule: JSON when it ends in .json, else "
	       "protobuf"),
	COST_OPTIONS, END,
};

static const struct cli_option verify_options[] = { JOB, END };

static const struct cli_option cost_options[] = { COST_OPTIONS, JOB, END };

static const struct cli_option export_options[] = {
	JOB, { 0, "to", "FORMAT", "json, proto, or a runtime's (see "
		"docs/lowering.md)", EXPORTS },
	{ 0, "rank", "R", "only what this rank has to know", NULL },
	{ 0, "layers", "L", "route tables: at most so many layers (default: "
	  "as many as it takes)", NULL },
	{ 0, "fit", NULL, "fewer chunks a shard when the runtime's limits "
	  "allow no more", NULL },
	OUTPUT("default: standard output"), END,
};

static const struct cli_option routes_make_options[] = {
	{ 't', "topology", "EXPR|FILE", "that the routes are for", "@file" },
	{ 0, "layers", "L", "choose routes that fit in so many layers "
	  "(default: as many as it takes)", NULL },
	{ 'a', "algorithm", "NAME", "single-path (default) or shortest-path",
	  "single-path shortest-path" },
	{ 0, "gap", "SHARE", "how near the flow comes to its bound (default: "
	  "0.01%)", NULL },
	{ 0, "time-limit", "TIME", "the best by then, with the integer "
	  "program (default: without it, to the end)", NULL },
	{ 0, "seed", "N", "of the search (default: 0)", NULL },
	{ 0, "to", "FORMAT", "routes-text (default), routes-json or "
	  "routes-proto", "routes-text routes-json routes-proto" },
	OUTPUT("default: standard output, without a summary"), END,
};

static const struct cli_option routes_options[] = {
	{ 't', "topology", "EXPR|FILE", "that the routes are for", "@file" },
	JOB, END,
};

static const struct cli_option show_options[] = {
	JOB, { 0, "step", "N", "the transfers of this step", NULL }, FULL, END,
};

static const struct cli_option build_options[] = {
	OUTPUT("write a file that --topology reads"), END,
};

static const struct cli_option find_options[] = {
	{ 'n', "nodes", "N", "how many; a list such as 8,16,32-64 for a "
	  "sweep", NULL },
	{ 'd', "degree", "D", "ports a node; or a list", NULL },
	{ 'c', "collective", "NAME", "default: allreduce", COLLECTIVES },
	{ 0, "bidirectional", NULL, "every arc needs its reverse", NULL },
	{ 0, "gap", "SHARE", "all-to-all: how near each flow comes to its "
	  "bound (default: 0.1 %)", NULL },
	{ 0, "candidates", "K", "all-to-all: topologies that are solved (default: "
	  "8)", NULL },
	{ 0, "alpha", "TIME", "cost of a step, e.g. 10us", NULL },
	{ 0, "bandwidth", "RATE", "of a node, all its ports together", NULL },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB; or several, "
	  "1MB,64MB", NULL },
	{ 0, "no-cache", NULL, "search again", NULL },
	END,
};

static const struct cli_option ring_options[] = {
	{ 'n', "nodes", "N", "on the ring", NULL },
	{ 'w', "channels", "W", "a fibre and direction", NULL },
	{ 0, "size", "SIZE", "one node's item", NULL },
	{ 'a', "algorithm", "NAME", "auto, composed, optree, ring, ne, wrht or "
	  "one-stage", "auto composed optree ring ne wrht one-stage" },
	{ 0, "collective", "NAME", "default: allgather", "allgather "
	  "reduce-scatter allreduce all-to-all broadcast" },
	{ 0, "alpha", "TIME", "of a step: retuning and conversion (default: "
	  "25us)", NULL },
	{ 0, "rate", "RATE", "of a channel (default: 40Gbps)", NULL },
	{ 0, "fibres", "F|LIST", "a direction (default: 1), or the channels of "
	  "each: 64,32, other ones counter-clockwise: 64,32/48", NULL },
	{ 0, "use", "FIRST-LAST", "channels of each fibre that the plan may "
	  "use", NULL },
	{ 0, "segment", NULL, "the nodes are on a line, not all around", NULL },
	{ 0, "overlap", NULL, "retune idle channels while others carry data",
	  NULL },
	{ 0, "conversion", "TIME", "part of alpha that overlap cannot hide "
	  "(default: 0)", NULL },
	{ 0, "depth", "K", "of OpTree's tree (default: the best)", NULL },
	{ 0, "loss", "NAME=VALUE,...", "loss budget: launch, sensitivity, "
	  "margin, add, drop, pass-by, span", NULL },
	{ 0, "svg", "FILE", "draw channels over time, and links", "@file" },
	OUTPUT("write the schedule"), END,
};

static const struct cli_option rwa_options[] = {
	{ 0, "ring", "N", "all-to-all on a ring of N nodes", NULL },
	{ 0, "demands", "FILE", "of a network file: a .trf file, or all for "
	  "every pair of nodes once", "@file" },
	{ 0, "channels", "W", "available: as many lightpaths as fit; on a "
	  "ring more take several slots", NULL },
	{ 0, "time-limit", "TIME", "best found by then (default: 30s)", NULL },
	{ 0, "seed", "N", "of the search (default: 1)", NULL },
	{ 0, "svg", "FILE", "draw the occupancy: links by channels, or circles "
	  "of a ring", "@file" },
	{ 0, "objective", "NAME", "after that: min-moved or "
	  "min-max-loss (default: min-channels alone)",
	  "min-channels min-moved min-max-loss" },
	{ 0, "previous", "FILE", "lightpaths that had better stay, as -o wrote "
	  "them", "@file" },
	OUTPUT("write the lightpaths: YAML when it ends in .yaml, else JSON"),
	END,
};

static const struct cli_option rwa_change_options[] = {
	{ 0, "channels", "W", "that may be lit on the way (default: those of "
	  "OLD and NEW)", NULL },
	{ 0, "by-domain", NULL, "one failure domain after the other", NULL },
	{ 0, "switch-time", "TIME", "of a step: how long interruptions last",
	  NULL },
	END,
};

static const struct cli_option emulate_options[] = {
	{ 0, "control-dir", "DIR", "give each a control socket DIR/NAME.ctl",
	  "@file" },
	END,
};

static const struct cli_option bringup_options[] = {
	{ 0, "restart", NULL, "start over, whatever an earlier one found", NULL },
	{ 0, "keep-circuits", NULL, "leave the circuits that panels hold, and "
	  "their ports, as they are", NULL },
	{ 0, "moves", "N", "let robots make so many moves (default: none)",
	  NULL },
	END,
};

static const struct cli_option testbed_up_options[] = {
	{ 0, "rate", "RATE", "of every link (default: as the fabric says, up "
	  "to 17Gbps)", NULL },
	{ 0, "swap", "FIBRE,FIBRE", "lay two fibres the wrong way round, e.g. "
	  "gpu0.p0.tx,gpu1.p0.tx", NULL },
	{ 0, "dead", "FIBRES", "break fibres", NULL },
	{ 0, "reverse", "PORTS", "exchange the two fibres of ports", NULL },
	END,
};

static const struct cli_option testbed_status_options[] = {
	{ 0, "watch", NULL, "print link events until Ctrl-C", NULL }, END,
};

static const struct cli_option testbed_probe_options[] = {
	{ 0, "duration", "TIME", "keep sending, e.g. 10s (default: one frame a "
	  "port)", NULL },
	{ 0, "interval", "TIME", "between frames (default: 10ms)", NULL },
	END,
};

static const struct cli_option testbed_step_options[] = {
	{ 0, "to", "STEP", "this one, from 0 (default: the next, round)",
	  NULL },
	{ 0, "all", NULL, "all of them, with frames from every end in each",
	  NULL },
	END,
};

#define GROUP_END { NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL }

static const struct cli_command schedule_commands[] = {
	{ "make", NULL, "", "Make a schedule for a collective on a topology",
	  NULL, make_options, 0, 0, false, cmd_schedule_make },
	{ "verify", NULL, "[FILE]", "Replay a schedule and prove it", NULL,
	  verify_options, 0, 1, false, cmd_schedule_verify },
	{ "cost", NULL, "[FILE]", "Time of a schedule and its lower bound",
	  NULL, cost_options, 0, 1, false, cmd_schedule_cost },
	{ "export", NULL, "[FILE]", "Write a schedule in another format", NULL,
	  export_options, 0, 1, false, cmd_schedule_export },
	{ "show", NULL, "[FILE]", "What a schedule does in each step", NULL,
	  show_options, 0, 1, false, cmd_schedule_show },
	GROUP_END,
};

static const struct cli_command routes_commands[] = {
	{ "make", NULL, "", "Choose a route and a layer for every pair", NULL,
	  routes_make_options, 0, 0, false, cmd_routes_make },
	{ "verify", NULL, "FILE", "Prove a route table on its topology", NULL,
	  routes_options, 1, 1, false, cmd_routes_verify },
	GROUP_END,
};

static const struct cli_command topology_commands[] = {
	{ "info", NULL, "[EXPR]", "Size, degree, diameter of a topology; "
	  "without one, the families", NULL, NULL, 0, 1, false,
	  cmd_topology_info },
	{ "build", NULL, "EXPR", "All arcs of a topology", NULL,
	  build_options, 1, 1, false, cmd_topology_build },
	{ "find", NULL, "", "The best topologies for N nodes of D ports: steps "
	  "against bandwidth", NULL, find_options, 0, 0, false,
	  cmd_topology_find },
	GROUP_END,
};

static const struct cli_command ring_commands[] = {
	{ "plan", NULL, "", "Plan a collective on a WDM ring", NULL,
	  ring_options, 0, 0, false, cmd_ring_plan },
	GROUP_END,
};

static const struct cli_command rwa_commands[] = {
	{ "solve", NULL, "[INSTANCE]", "Give lightpaths their wavelengths",
	  NULL, rwa_options, 0, 1, false, cmd_rwa_instance },
	{ "change", NULL, "INSTANCE OLD NEW", "Order the moves from one "
	  "assignment to another", NULL, rwa_change_options, 3, 3, false,
	  cmd_rwa_change },
	GROUP_END,
};

static const struct cli_option job_options[] = {
	{ 0, "nodes", "NAMES", "these hosts, in rank order: gpu[00-03]", NULL },
	{ 0, "count", "N", "so many hosts, which weftd chooses", NULL },
	{ 'c', "collective", "NAME", "allgather, reduce-scatter, allreduce, "
	  "all-to-all or broadcast", COLLECTIVES },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL },
	{ 't', "topology", "EXPR", "default: the best", NULL },
	{ 'a', "algorithm", "NAME", "default: the best", ALGORITHMS },
	{ 0, "min-ports", "N", "hosts with at least so many", NULL },
	{ 0, "ring", "NAME", "on this ring instead of switches", NULL },
	{ 0, "channels", "N", "of the ring (default: all)", NULL },
	{ 0, "duration", "TIME", "give it back by itself after, e.g. 2h",
	  NULL },
	{ 0, "priority", "N", "higher ones start first (default: 0)", NULL },
	{ 0, "preemptible", NULL, "may be ended for a job of higher priority",
	  NULL },
	{ 0, "repair", "HOW", "when its light dies: none, degraded (a "
	  "schedule on what remains) or spare (and move to free hosts)",
	  REPAIRS },
	{ 0, "no-wait", NULL, "return once it is queued", NULL },
	{ 0, "request-id", "ID", "asking twice with the same one is one job",
	  NULL },
	END,
};

static const struct cli_option job_list_options[] = {
	{ 0, "all", NULL, "also those that are over", NULL }, END,
};

static const struct cli_command job_commands[] = {
	{ "request", NULL, "[NAME]", "Ask for hosts and light for a "
	  "collective; waits until it runs", NULL, job_options, 0, 1, false,
	  cmd_job_request },
	{ "release", NULL, "NAME", "Give a job back; waits until its light "
	  "is gone", NULL, NULL, 1, 1, false, cmd_job_release },
	{ "list", NULL, "[NAME]", "Jobs that were asked for", NULL,
	  job_list_options, 0, 1, false, cmd_job_list },
	GROUP_END,
};

static const struct cli_option export_slurm_options[] = {
	{ 0, "plugin", "NAME", "tree (default) or block", "tree block" },
	OUTPUT("default: standard output"), END,
};

static const struct cli_option export_model_options[] = {
	OUTPUT("default: standard output"), END,
};

static const struct cli_command export_commands[] = {
	{ "slurm", NULL, "[FABRIC]", "Slurm's topology.yaml", NULL,
	  export_slurm_options, 0, 1, false, cmd_export_slurm },
	{ "topograph", NULL, "[FABRIC]", "A model for NVIDIA's topograph",
	  NULL, export_model_options, 0, 1, false, cmd_export_topograph },
	GROUP_END,
};

static const struct cli_command device_commands[] = {
	{ "drivers", NULL, "[DRIVER]", "Drivers that are built in, and their "
	  "options", NULL, NULL, 0, 1, false, cmd_device_drivers },
	{ "list", NULL, "", "Devices that weftd knows", NULL, NULL, 0, 0,
	  false, cmd_device_list },
	{ "show", NULL, "NAME", "One of them, its circuits and what they "
	  "lose", NULL, NULL, 1, 1, false, cmd_device_show },
	{ "port", NULL, "NAME PORT enable|disable", "Enable or disable a port "
	  "of a switch by hand", NULL, port_options, 3, 3, false,
	  cmd_device_port },
	{ "recover", NULL, "NAME", "A homing run, lost waves searched anew, "
	  "errors forgotten", NULL, recover_options, 1, 1, false,
	  cmd_device_recover },
	GROUP_END,
};

static const struct cli_command testbed_commands[] = {
	{ "up", NULL, "FABRIC", "Build a fabric of network namespaces", NULL,
	  testbed_up_options, 1, 1, false, cmd_testbed_up },
	{ "down", NULL, "FABRIC", "Take all of it away", NULL, NULL, 1, 1,
	  false, cmd_testbed_down },
	{ "status", NULL, "FABRIC", "Links of the hosts, and whose light they "
	  "receive", NULL, testbed_status_options, 1, 1, false,
	  cmd_testbed_status },
	{ "route", NULL, "FABRIC", "Give hosts the routes of the applied jobs",
	  NULL, NULL, 1, 1, false, cmd_testbed_route },
	{ "ping", NULL, "FABRIC", "Ping every host from every other, one hop",
	  NULL, NULL, 1, 1, false, cmd_testbed_ping },
	{ "probe", NULL, "FABRIC", "Send frames from every port, see where "
	  "they arrive", NULL, testbed_probe_options, 1, 1, false,
	  cmd_testbed_probe },
	{ "step", NULL, "FABRIC JOB", "Take a job's ring to another step",
	  NULL, testbed_step_options, 2, 2, false, cmd_testbed_step },
	GROUP_END,
};

const struct cli_command cli_root[] = {
	{ "check", NULL, "FABRIC", "Find all mistakes of a fabric file", NULL,
	  NULL, 1, 1, false, cmd_check },
	{ "plan", NULL, "[FABRIC]", "Show what would change", NULL,
	  plan_options, 0, 1, false, cmd_plan },
	{ "apply", NULL, "[PLAN]", "Change the devices, prove it, or take it "
	  "back", NULL, apply_options, 0, 1, false, cmd_apply },
	{ "status", "show", "", "What is known, and how well it is proven",
	  NULL, full_options, 0, 0, false, cmd_status },
	{ "diff", NULL, "", "Intent against the last readings", NULL,
	  full_options, 0, 0, false, cmd_diff },
	{ "verify", NULL, "", "Read every device now and compare", NULL,
	  full_options, 0, 0, false, cmd_verify },
	{ "rollback", NULL, "[GENERATION]", "Apply an earlier configuration "
	  "again", NULL, rollback_options, 0, 1, false, cmd_rollback },
	{ "confirm", NULL, "[CHANGE]", "Keep a change that was applied with "
	  "--confirm-within", NULL, NULL, 0, 1, false, cmd_confirm },
	{ "cancel", NULL, "", "Stop the running change, or what waits to be "
	  "confirmed, and take it back",
	  NULL, cancel_options, 0, 0, false, cmd_cancel },
	{ "history", NULL, "", "Changes, newest first", NULL,
	  history_options, 0, 0, false, cmd_history },
	{ "audit", NULL, "", "What was said to devices to move light, by whom, "
	  "and what they answered", NULL, audit_options, 0, 0, false,
	  cmd_audit },
	{ "external-changes", NULL, "[DEVICE]", "Changes of light that weft did not "
	  "make, newest first", NULL, external_options, 0, 1, false,
	  cmd_external_changes },
	{ "drain", NULL, "WHAT", "No new light on a host, a device or a port",
	  NULL, hold_options, 1, 1, false, cmd_drain },
	{ "undrain", NULL, "WHAT", "Allow it new light again", NULL, NULL, 1,
	  1, false, cmd_undrain },
	{ "freeze", NULL, "", "The big red button: refuse every change", NULL,
	  hold_options, 0, 0, false, cmd_freeze },
	{ "unfreeze", NULL, "", "Allow changes again", NULL, NULL, 0, 0,
	  false, cmd_unfreeze },
	{ "log", NULL, "[LEVELS]", "What weftd logs, e.g. drivers=debug", NULL,
	  NULL, 0, 1, false, cmd_log },
	{ "watch", NULL, "", "What happens, as it happens", NULL,
	  watch_options, 0, 0, false, cmd_watch },
	{ "wait", NULL, "", "Wait until something is so", NULL, wait_options,
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
	{ "export", NULL, "", "The fabric as schedulers want it",
	  export_commands, NULL, 0, 0, false, NULL },
	{ "job", NULL, "", "Jobs of orchestrators", job_commands, NULL, 0, 0,
	  false, NULL },
	{ "device", NULL, "", "Devices and drivers", device_commands, NULL, 0,
	  0, false, NULL },
	{ "emulate", NULL, "FABRIC", "Emulate the devices that a fabric "
	  "names", NULL, emulate_options, 1, 1, false, cmd_emulate },
	{ "bringup", NULL, "FABRIC", "Find out how a fabric is wired, and "
	  "what differs from the file", NULL, bringup_options, 1, 1, false,
	  cmd_bringup },
	{ "testbed", NULL, "", "Fabrics of network namespaces, with real "
	  "packets", testbed_commands, NULL, 0, 0, false, NULL },
	{ "explain", NULL, "[CODE]", "What an exit or error code means", NULL,
	  NULL, 0, 1, false, cmd_explain },
	{ "version", NULL, "", "Version of this program", NULL, NULL, 0, 0,
	  false, cmd_version },
	{ "complete", NULL, "", "Candidates for the last word", NULL, NULL, 0,
	  0, true, cmd_complete },
	GROUP_END,
};
