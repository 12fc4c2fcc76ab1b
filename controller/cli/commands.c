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
 * Options that several verbs share are macros, so that they have one wording.
 */
#include <stddef.h>

#include "controller/cli/core/private.h"

/* Ends a table of options. */
#define END { 0, NULL, NULL, NULL, NULL }
#define SVG { 0, "svg", "FILE.svg", "also draw the fabric: devices, hosts, circuits by job", "@file" }
#define CONFIG { 'f', "file", "FABRIC", "the fabric's YAML file", "@file" }
#define OUTPUT(what) { 'o', "output", "FILE", what, "@file" }
/* MODE_SAFE and MODE_UPDATE of weft.v1; see cli_read_mode(). */
#define MODE { 0, "mode", "MODE", "safe: never take a port that holds a " \
	"circuit weft did not make; update: displace it, and list it", "safe update" }
#define FULL { 0, "full", NULL, "do not shorten long lists", NULL }
#define JOB { 0, "job", "NAME", "the schedule of a job that weftd has " \
	"applied, instead of FILE", "@job" }
/* What all verbs take that change devices; read by common() of change.c. */
#define CHANGE_OPTIONS \
	{ 'm', "comment", "TEXT", "recorded in the history", NULL }, \
	{ 0, "expect-generation", "N", "refuse unless this is the current " \
	  "generation", NULL }, \
	{ 0, "request-id", "ID", "a retry with the same ID does not start a second " \
	  "change", NULL }, \
	{ 0, "confirm-within", "TIME", "roll back unless \"weft confirm\" follows " \
	  "in time, e.g. 5min", NULL }
/* The alpha-beta model; read by cli_read_cost(). */
#define COST_OPTIONS \
	{ 0, "alpha", "TIME", "latency of a step, e.g. 10us", NULL }, \
	{ 0, "bandwidth", "RATE", "of a node, all its ports together", \
	  NULL }, \
	{ 0, "link-bandwidth", "RATE", "of a link instead", NULL }, \
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL }, \
	{ 0, "hop", "TIME", "of each link that a message crosses (default: 0)", NULL }, \
	{ 0, "message", "TIME", "of each message that leaves by the same link in a step " \
	  "(default: 0)", NULL }

#define RETUNE \
	{ 0, "retune", "TIME", "of each change of light between steps, where alpha does not " \
	  "include it (default: 0)", NULL }

/* The words of coll_kind_parse(), of job repair and of the algorithms, for
 * completion. */
#define COLLECTIVES "allgather reduce-scatter allreduce all-to-all broadcast reduce gather scatter"
#define REPAIRS "none degraded spare"
#define ALGORITHMS \
	"auto bfb late expand mixed-radix swing swing-latency hybrid recursive-doubling " \
	"rabenseifner bucket ring mcf link-mcf grouped pmcf tsmcf single-path " \
	"shortest-path disjoint trees paths"
#define EXPORTS \
	"json proto msccl-xml rccl-xml mscclpp-json " \
	"routes-json routes-proto"

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

#define STATE_DIR_OPTION { 0, "state-dir", "DIR", "weftd's folder (default: /var/lib/weft)", "@file" }

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

static const struct cli_option external_options[] = {
	{ 0, "open", NULL, "only those not resolved yet", NULL },
	{ 'n', "limit", "N", "the newest N (default: 100)", NULL }, END,
};

static const struct cli_option hold_options[] = {
	{ 'm', "comment", "TEXT", "reason, shown by weft status", NULL }, END,
};

static const struct cli_option freeze_options[] = {
	{ 0, "now", NULL, "also stop the change that runs, and take it back", NULL },
	{ 'm', "comment", "TEXT", "reason, shown by weft status", NULL }, END,
};

#define REASON { 'm', "reason", "TEXT", "reason, recorded in the audit trail", NULL }

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

/* The options of one collective are refused with the others: check_options()
 * of schedule_make.c. */
static const struct cli_option make_options[] = {
	{ 't', "topology", "EXPR|FILE", "an expression such as Torus(4,4), "
	  "or a file of topology build", "@file" },
	{ 0, "on", "EXPR|FILE", "embed the schedule in this physical topology, whose "
	  "first nodes are the nodes of --topology", "@file" },
	{ 0, "routing", "RULE|FILE", "of an embedded schedule: minimal-split (default), "
	  "dimension-order, or a file of routes", "minimal-split dimension-order @file" },
	{ 'c', "collective", "NAME", "allgather, reduce-scatter, allreduce, "
	  "...", COLLECTIVES },
	{ 'a', "algorithm", "NAME", "auto, bfb, expand, flood, trees, late, on tori and their relatives "
	  "mixed-radix, swing, swing-latency, hybrid, recursive-doubling, rabenseifner, bucket, "
	  "ring, or (all-to-all) "
	  "mcf, link-mcf, grouped, pmcf, tsmcf, single-path, shortest-path, "
	  "disjoint, or (broadcast, reduce) trees, or (gather, scatter) paths",
	  ALGORITHMS },
	{ 0, "pareto", NULL, "make none, but list steps against bandwidth runtime of all that weft "
	  "knows to make; with the cost also from which size on each is the fastest", NULL },
	{ 0, "root", "RANK", "of broadcast, reduce, gather and scatter (default: "
	  "0)", NULL },
	{ 0, "batches", "N", "split shards, or what goes down the deepest tree, "
	  "into N batches that overlap (default: 1, for trees as many as fill "
	  "them, or the fastest when the cost is given)", NULL },
	{ 0, "extra-steps", "N", "late: a phase may take N more steps than bfb (default: 0, or up "
	  "to 2 when the cost is given and that is faster)", NULL },
	{ 0, "levels", "LIST", "mixed-radix: 4x16 for every dimension, or 8,4cx16 for one after the "
	  "other; c: in a chain (default: the fastest when the cost is given)", NULL },
	{ 0, "rounds", "N", "mixed-radix, hybrid: levels of reduce-scatter, then exchanges (default: "
	  "the fastest when the cost is given)", NULL },
	{ 0, "ports", "one|all", "swing and its relatives: one collective, or one a link of a node "
	  "(default: all, for recursive-doubling and rabenseifner one)", "one all" },
	{ 0, "chunks", "P", "cut every shard into P (default: as many as the "
	  "exact loads need)", NULL },
	{ 0, "demands", "FILE", "all-to-all: a matrix of what each rank (row) sends to each "
	  "(column), numbers or sizes such as 1MB (default: all alike)", "@file" },
	{ 0, "gap", "SHARE", "all-to-all: how near the flow comes to its "
	  "bound (default: 0.01%)", NULL },
	{ 0, "exact", NULL, "all-to-all: find the best rate as a fraction, "
	  "with a checked proof", NULL },
	{ 0, "rate", NULL, "only the best rate, of any schedule, and none is made",
	  NULL },
	{ 0, "least-cost", NULL, "trees with the least sum over arcs of cost times data that reach "
	  "the best rate; with --rate only how much that is", NULL },
	{ 0, "also", "KIND[:SIZE],...", "with --rate: what runs at the same time, on so many times "
	  "as much (default: 1)", NULL },
	{ 0, "sensitivity", NULL, "with --rate: which links and limits it hangs on, and how much",
	  NULL },
	{ 0, "host-bandwidth", "B", "with --rate: between host and NIC, in "
	  "links; what is forwarded passes the host", NULL },
	{ 0, "nic-forwards", NULL, "... unless NICs forward", NULL },
	{ 0, "steps", "K", "all-to-all by tsmcf: number of steps (default: the "
	  "fewest that reach the flow's rate)", NULL },
	{ 0, "loss", "SHARE", "all-to-all: rate that rounding to chunks and "
	  "steps may cost (default: 1%)", NULL },
	{ 0, "time-limit", "TIME", "all-to-all, --rate: use the best flow, or trees, found by "
	  "then", NULL },
	OUTPUT("write the schedule: JSON when it ends in .json, else "
	       "protobuf"),
	COST_OPTIONS, END,
};

static const struct cli_option verify_options[] = { JOB, END };

static const struct cli_option cost_options[] = {
	COST_OPTIONS,
	RETUNE, JOB, END,
};

static const struct cli_option simulate_options[] = {
	COST_OPTIONS, RETUNE,
	{ 0, "asynchronous", NULL, "messages leave when what they send has come, not "
	  "step by step", NULL },
	{ 0, "svg", "FILE", "draw what is in use when", "@file" },
	FULL, JOB, END,
};

static const struct cli_option schedule_draw_options[] = {
	COST_OPTIONS, RETUNE,
	{ 0, "asynchronous", NULL, "messages leave when what they send has come, not "
	  "step by step", NULL },
	OUTPUT("the picture, FILE.svg (default: standard output)"), JOB, END,
};

static const struct cli_option run_options[] = {
	COST_OPTIONS,
	{ 0, "ranks", "N", "refuse a schedule of more ranks (default: any number)", NULL },
	{ 0, "hosts", "FILE", "where they run, as mpirun's hostfile (default: here)", "@file" },
	{ 0, "repeat", "K", "measure so many runs (default: 5)", NULL },
	{ 0, "barriers", NULL, "all ranks end a step before any begins the next", NULL },
	{ 0, "seed", "N", "of the numbers that are moved (default: 0)", NULL },
	{ 0, "time-limit", "TIME", "then all ranks are ended (default: 10min)", NULL },
	JOB, END,
};

static const struct cli_option export_options[] = {
	JOB, { 0, "to", "FORMAT", "json, proto, or a runtime's (see "
		"docs/lowering.md)", EXPORTS },
	{ 0, "rank", "R", "only the part of this rank", NULL },
	{ 0, "flat", NULL, "write out every transfer of a compact schedule", NULL },
	{ 0, "layers", "L", "route tables: at most L layers (default: "
	  "as many as needed)", NULL },
	{ 0, "out-of-place", NULL, "mscclpp-json: for calls out of place "
	  "(all-to-all always is)", NULL },
	{ 0, "fit", NULL, "fewer chunks a shard when the runtime's limits "
	  "allow no more", NULL },
	{ 0, "protocol", "NAMES", "MSCCL: of a file (default: simple), or what a folder's may "
	  "have (default: ll,simple)", "simple ll ll128 ll,simple ll,ll128,simple" },
	{ 0, "instances", "K|auto", "MSCCL: copies side by side (default: 1; of a folder: auto)",
	  "auto" },
	{ 0, "threadblocks", "N", "MSCCL: at most N a rank (default: the runtime's limit, and 64 "
	  "for what only makes it faster)", NULL },
	{ 0, "link-bandwidth", "RATE", "MSCCL: of a link, to choose by (default: 400Gbps)", NULL },
	OUTPUT("file, or for MSCCL a folder of several by size (default: standard output)"),
	END,
};

static const struct cli_option routes_make_options[] = {
	{ 't', "topology", "EXPR|FILE", "topology of the routes", "@file" },
	{ 0, "layers", "L", "choose routes that fit in L layers "
	  "(default: as many as needed)", NULL },
	{ 'a', "algorithm", "NAME", "single-path (default) or shortest-path",
	  "single-path shortest-path" },
	{ 0, "gap", "SHARE", "how near the flow comes to its bound (default: "
	  "0.01%)", NULL },
	{ 0, "time-limit", "TIME", "use the integer program and stop at this "
	  "time (default: without it, no limit)", NULL },
	{ 0, "seed", "N", "seed of the search (default: 0)", NULL },
	{ 0, "to", "FORMAT", "routes-json (default) or routes-proto",
	  "routes-json routes-proto" },
	OUTPUT("default: standard output, without a summary"), END,
};

static const struct cli_option routes_options[] = {
	{ 't', "topology", "EXPR|FILE", "topology of the routes", "@file" },
	JOB, END,
};

static const struct cli_option show_options[] = {
	JOB, { 0, "step", "N", "show the transfers of this step", NULL }, FULL, END,
};

static const struct cli_option info_options[] = {
	{ 0, "quick", NULL, "leave out what takes long on large topologies: diameter, girth, "
	  "transitivity by search", NULL }, END,
};

static const struct cli_option build_options[] = {
	CONFIG, { 0, "job", "NAME", "the ranks of this job of the fabric, with what is "
	  "inside its hosts", "@job" },
	OUTPUT("write a file that --topology reads"), END,
};

static const struct cli_option draw_options[] = {
	CONFIG, { 0, "job", "NAME", "the ranks of this job of the fabric, with what is "
	  "inside its hosts", NULL },
	OUTPUT("the picture, FILE.svg (default: standard output)"), END,
};

static const struct cli_option find_options[] = {
	{ 'n', "nodes", "N", "number of nodes; a list such as 8,16,32-64 for a "
	  "sweep", NULL },
	{ 'd', "degree", "D", "ports a node; or a list", NULL },
	{ 'c', "collective", "NAME", "default: allreduce", COLLECTIVES },
	{ 0, "bidirectional", NULL, "only topologies in which every arc has its reverse", NULL },
	{ 0, "gap", "SHARE", "all-to-all: how near each flow comes to its "
	  "bound (default: 0.1 %)", NULL },
	{ 0, "candidates", "K", "all-to-all: topologies that are solved (default: "
	  "8)", NULL },
	{ 0, "alpha", "TIME", "latency of a step, e.g. 10us", NULL },
	{ 0, "bandwidth", "RATE", "of a node, all its ports together", NULL },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB; or several, "
	  "1MB,64MB", NULL },
	{ 0, "hop", "TIME", "of each link that a message crosses (default: 0)", NULL },
	{ 0, "sets", "N", "search, with N sets of generators tried for Cayley graphs, also sizes "
	  "that the table has (default for others: 20000; 500 in a sweep)", NULL },
	{ 0, "no-cache", NULL, "neither read nor keep results of searches", NULL },
	END,
};

/* Units are those of lib/base/units.h; a channel is an index from 0. */
static const struct cli_option ring_options[] = {
	{ 'n', "nodes", "N", "nodes on the ring", NULL },
	{ 'w', "channels", "W", "wavelength channels a fibre and direction", NULL },
	{ 0, "size", "SIZE", "data of one node", NULL },
	{ 'a', "algorithm", "NAME", "auto, composed, grouped, optree, ring, ne, wrht "
	  "or one-stage", "auto composed grouped optree ring ne wrht one-stage" },
	{ 0, "collective", "NAME", "default: allgather", "allgather "
	  "reduce-scatter allreduce all-to-all broadcast" },
	{ 0, "alpha", "TIME", "of a step: retuning and conversion (default: "
	  "25us)", NULL },
	{ 0, "rate", "RATE", "of a channel (default: 40Gbps)", NULL },
	{ 0, "fibres", "F|LIST", "a direction (default: 1), or the channels of "
	  "each: 64,32, other ones counter-clockwise: 64,32/48", NULL },
	{ 0, "use", "FIRST-LAST", "range of channels that the plan may "
	  "use", NULL },
	{ 0, "segment", NULL, "the nodes are on a line, not a full ring", NULL },
	{ 0, "overlap", NULL, "retune idle channels while others carry data",
	  NULL },
	{ 0, "conversion", "TIME", "part of alpha that --overlap cannot hide "
	  "(default: 0)", NULL },
	{ 0, "span-delay", "TIME", "that light takes from a node to the next "
	  "(default: 0)", NULL },
	{ 0, "depth", "K", "of OpTree's tree (default: the best)", NULL },
	{ 0, "loss", "NAME=VALUE,...", "loss budget: launch, sensitivity, "
	  "margin, add, drop, pass-by, span", NULL },
	{ 0, "svg", "FILE", "draw channels over time, and the ring in its steps", "@file" },
	OUTPUT("write the schedule"), END,
};

/* --ring solves all-to-all on a ring without a file; most of the others are
 * for instances from files, and cmd_rwa_solve() refuses them then. */
static const struct cli_option rwa_options[] = {
	{ 0, "ring", "N", "all-to-all on a ring of N nodes", NULL },
	{ 0, "demands", "FILE", "of a network file: a .trf file, or all for "
	  "every pair of nodes once", "@file" },
	{ 0, "unit", "U", "of an SNDlib file: what a lightpath carries of a demand's value "
	  "(default: all of it)", NULL },
	{ 0, "channels", "W", "channels available: route as many lightpaths as "
	  "fit; on a ring the rest take further slots", NULL },
	{ 0, "work", "N", "lightpaths that a search may place (default: by the size)", NULL },
	{ 0, "time-limit", "TIME", "use the best found by then; it depends on the machine", NULL },
	{ 0, "seed", "N", "of the search (default: 1)", NULL },
	{ 0, "svg", "FILE", "draw a map with the load, and fibres by channels, or circles "
	  "of a ring", "@file" },
	{ 0, "objective", "NAME", "second objective: min-moved or "
	  "min-max-loss (default: min-channels alone)",
	  "min-channels min-moved min-max-loss" },
	{ 0, "previous", "FILE", "previous lightpaths, as written by -o, "
	  "to keep where possible", "@file" },
	OUTPUT("write the lightpaths: YAML when it ends in .yaml, else JSON"),
	END,
};

static const struct cli_option rwa_change_options[] = {
	{ 0, "channels", "W", "channels that may be used meanwhile (default: "
	  "those of OLD and NEW)", NULL },
	{ 0, "by-domain", NULL, "change one failure domain at a time", NULL },
	{ 0, "switch-time", "TIME", "duration of a step, to report interruptions",
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
	{ 0, "keep-circuits", NULL, "leave existing circuits of panels, and "
	  "their ports, as they are", NULL },
	{ 0, "moves", "N", "allow robots N moves (default: none)",
	  NULL },
	END,
};

static const struct cli_option testbed_up_options[] = {
	{ 0, "rate", "RATE", "of every link (default: as the fabric says, up "
	  "to 17Gbps)", NULL },
	{ 0, "swap", "FIBRE,FIBRE", "swap two fibres, e.g. "
	  "gpu0.p0.tx,gpu1.p0.tx", NULL },
	{ 0, "dead", "FIBRES", "break fibres", NULL },
	{ 0, "reverse", "PORTS", "swap transmit and receive fibres of ports", NULL },
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

static const struct cli_option testbed_run_options[] = {
	{ 0, "job", "NAME", "the job (default: the only one)", "@job" },
	{ 0, "size", "BYTES", "of the vector (default: the job's)", NULL },
	{ 0, "repeat", "K", "measure so many runs (default: 5)", NULL },
	{ 0, "barriers", NULL, "all ranks end a step before any begins the next", NULL },
	{ 0, "compare", NULL, "also run MPI's own collective over the same light", NULL },
	{ 0, "time-limit", "TIME", "then all ranks are ended (default: 10min)", NULL },
	END,
};

static const struct cli_option testbed_step_options[] = {
	{ 0, "to", "STEP", "step number from 0 (default: the next, cyclic)",
	  NULL },
	{ 0, "all", NULL, "every step, probing all ports in each",
	  NULL },
	END,
};

/* Ends a table of commands. */
#define GROUP_END { NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL }

static const struct cli_command schedule_commands[] = {
	{ "make", NULL, "", "Make a schedule for a collective on a topology",
	  NULL, make_options, 0, 0, false, cmd_schedule_make },
	{ "verify", NULL, "[FILE]", "Verify a schedule by replaying it", NULL,
	  verify_options, 0, 1, false, cmd_schedule_verify },
	{ "cost", NULL, "[FILE]", "Time of a schedule and its lower bound",
	  NULL, cost_options, 0, 1, false, cmd_schedule_cost },
	{ "simulate", NULL, "[FILE]", "Simulate a schedule whose messages share links fairly",
	  NULL, simulate_options, 0, 1, false, cmd_schedule_simulate },
	{ "draw", NULL, "[FILE]", "Draw a schedule as SVG: links over time, or over steps without "
	  "a cost model", NULL, schedule_draw_options, 0, 1, false, cmd_schedule_draw },
	{ "run", NULL, "[FILE]", "Run a schedule by Open MPI, check its result and time it", NULL,
	  run_options, 0, 1, false, cmd_schedule_run },
	{ "export", NULL, "[FILE]", "Write a schedule in another format", NULL,
	  export_options, 0, 1, false, cmd_schedule_export },
	{ "show", NULL, "[FILE]", "Show the transfers of each step", NULL,
	  show_options, 0, 1, false, cmd_schedule_show },
	GROUP_END,
};

static const struct cli_command routes_commands[] = {
	{ "make", NULL, "", "Choose a route and a virtual layer for every pair", NULL,
	  routes_make_options, 0, 0, false, cmd_routes_make },
	{ "verify", NULL, "FILE", "Verify a route table on its topology", NULL,
	  routes_options, 1, 1, false, cmd_routes_verify },
	GROUP_END,
};

static const struct cli_command topology_commands[] = {
	{ "info", NULL, "[EXPR]", "Size, degree, diameter of a topology; "
	  "without one, the families", NULL, info_options, 0, 1, false,
	  cmd_topology_info },
	{ "build", NULL, "[EXPR]", "List all arcs of a topology", NULL,
	  build_options, 0, 1, false, cmd_topology_build },
	{ "draw", NULL, "[EXPR]", "Draw a topology as SVG: nodes and arcs, or the matrix of a "
	  "large one", NULL, draw_options, 0, 1, false, cmd_topology_draw },
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
	{ "solve", NULL, "[INSTANCE]", "Assign routes and wavelengths to lightpaths",
	  NULL, rwa_options, 0, 1, false, cmd_rwa_instance },
	{ "change", NULL, "INSTANCE OLD NEW", "Order the moves from one "
	  "assignment to another", NULL, rwa_change_options, 3, 3, false,
	  cmd_rwa_change },
	GROUP_END,
};

static const struct cli_option job_options[] = {
	{ 0, "nodes", "NAMES", "hosts in rank order, e.g. gpu[00-03]", NULL },
	{ 0, "count", "N", "let weftd choose N hosts", NULL },
	{ 'c', "collective", "NAME", "allgather, reduce-scatter, allreduce, "
	  "all-to-all or broadcast", COLLECTIVES },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL },
	{ 't', "topology", "EXPR", "default: the best", NULL },
	{ 'a', "algorithm", "NAME", "default: the best", ALGORITHMS },
	{ 0, "min-ports", "N", "only hosts with at least N ports", NULL },
	{ 0, "ring", "NAME", "on this ring instead of switches", NULL },
	{ 0, "channels", "N", "of the ring (default: all)", NULL },
	{ 0, "duration", "TIME", "release it automatically after, e.g. 2h",
	  NULL },
	{ 0, "priority", "N", "higher ones start first (default: 0)", NULL },
	{ 0, "preemptible", NULL, "may be preempted by a job of higher priority",
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

static const struct cli_command job_commands[] = {
	{ "request", NULL, "[NAME]", "Request hosts and circuits for a "
	  "collective; waits until it runs", NULL, job_options, 0, 1, false,
	  cmd_job_request },
	{ "release", NULL, "JOB", "Release a job; waits until its "
	  "circuits are gone", NULL, NULL, 1, 1, false, cmd_job_release },
	{ "list", NULL, "[JOB]", "List requested jobs", NULL,
	  job_list_options, 0, 1, false, cmd_job_list },
	GROUP_END,
};

static const struct cli_option export_slurm_options[] = {
	{ 0, "plugin", "NAME", "tree (default) or block", "tree block" },
	{ 0, "to", "FORMAT", "yaml (default, topology.yaml) or conf (topology.conf, of older Slurm)",
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
	{ "drivers", NULL, "[DRIVER]", "List drivers and their options", NULL, NULL, 0, 1, false, cmd_device_drivers },
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

static const struct cli_command testbed_commands[] = {
	{ "up", NULL, "FABRIC", "Build a fabric of network namespaces", NULL,
	  testbed_up_options, 1, 1, false, cmd_testbed_up },
	{ "down", NULL, "FABRIC", "Remove it", NULL, NULL, 1, 1,
	  false, cmd_testbed_down },
	{ "status", NULL, "FABRIC", "Show the links of the hosts, and whose signal "
	  "they receive", NULL, testbed_status_options, 1, 1, false,
	  cmd_testbed_status },
	{ "route", NULL, "FABRIC", "Install the routes of the applied jobs in hosts",
	  NULL, NULL, 1, 1, false, cmd_testbed_route },
	{ "run", NULL, "FABRIC", "Run the schedule of an applied job by Open MPI",
	  NULL, testbed_run_options, 1, 1, false, cmd_testbed_run },
	{ "ping", NULL, "FABRIC", "Ping between all hosts over one hop",
	  NULL, NULL, 1, 1, false, cmd_testbed_ping },
	{ "probe", NULL, "FABRIC", "Send frames from every port and report "
	  "where they arrive", NULL, testbed_probe_options, 1, 1, false,
	  cmd_testbed_probe },
	{ "step", NULL, "FABRIC JOB", "Set a job's ring to another step",
	  NULL, testbed_step_options, 2, 2, false, cmd_testbed_step },
	GROUP_END,
};

static const struct cli_command store_commands[] = {
	{ "export", NULL, "", "Write the store as text, for another version", NULL,
	  store_export_options, 0, 0, false, cmd_store_export },
	{ "import", NULL, "FILE", "Make a store from such a text", NULL,
	  store_import_options, 1, 1, false, cmd_store_import },
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
	  NULL, hold_options, 1, 1, false, cmd_drain },
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
	{ "job", NULL, "", "Request, release and list jobs", job_commands, NULL, 0, 0,
	  false, NULL },
	{ "device", NULL, "", "Devices and drivers", device_commands, NULL, 0,
	  0, false, NULL },
	{ "emulate", NULL, "FABRIC", "Emulate the devices of a fabric "
	  "file", NULL, emulate_options, 1, 1, false, cmd_emulate },
	{ "bringup", NULL, "FABRIC", "Discover how a fabric is cabled, and "
	  "compare with the file", NULL, bringup_options, 1, 1, false,
	  cmd_bringup },
	{ "testbed", NULL, "", "Fabrics of network namespaces, with real "
	  "packets", testbed_commands, NULL, 0, 0, false, NULL },
	{ "store", NULL, "", "What weftd remembers, between versions of weft", store_commands,
	  NULL, 0, 0, false, NULL },
	{ "explain", NULL, "[CODE]", "Explain an exit or error code", NULL,
	  NULL, 0, 1, false, cmd_explain },
	{ "version", NULL, "", "Print the version", NULL, NULL, 0, 0,
	  false, cmd_version },
	{ "complete", NULL, "", "Candidates for the last word", NULL, NULL, 0,
	  0, true, cmd_complete },
	GROUP_END,
};
