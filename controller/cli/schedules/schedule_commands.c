/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands about schedules, routes, topologies, rings and wavelengths, as tables: what
 * weft computes without weftd, but for plans of fabrics.
 *
 * They are the groups that cli_root of ../commands.c names, in a file of their own so that
 * a small build can leave them out together with what computes. The options that only these
 * verbs share, of the cost model above all, are macros here, so that they have one wording.
 */
#include <stddef.h>

#include "controller/cli/core/options.h"

#define FORWARD \
	{ 0, "forward", "no|yes", "whether nodes pass on messages for others (default: with " \
	  "--hop, or where the algorithm that is named needs it)", "no yes" }
/* The alpha-beta model; read by cli_read_cost(). */
#define COST_OPTIONS \
	{ 0, "alpha", "TIME", "latency of a step, e.g. 10us", NULL }, \
	{ 0, "bandwidth", "RATE", "of a node, all its ports together", \
	  NULL }, \
	{ 0, "link-bandwidth", "RATE", "of a link instead", NULL }, \
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL }, \
	{ 0, "hop", "TIME", "of each link that a message crosses (default: 0)", NULL }, \
	FORWARD, \
	{ 0, "message", "TIME", "of each message that leaves by the same link in a step " \
	  "(default: 0)", NULL }
#define RETUNE \
	{ 0, "retune", "TIME", "of each change of light between steps, where alpha does not " \
	  "include it (default: 0)", NULL }
#define EXPORTS \
	"json proto msccl-xml rccl-xml mscclpp-json chakra " \
	"routes-json routes-proto"

/* The options of one collective are refused with the others: check_options()
 * of schedule_make.c. */
static const struct cli_option make_options[] = {
	{ 't', "topology", "EXPR|FILE", "an expression such as Torus(4,4), "
	  "or a file of topology build", "@file" },
	{ 0, "on", "EXPR|FILE", "embed the schedule in this physical topology, whose "
	  "first nodes are the nodes of --topology", "@file" },
	{ 0, "routing", "RULE|FILE", "of an embedded schedule: minimal-split (default), "
	  "minimal-parallel, minimal-single, dimension-order, or a file of routes",
	  "minimal-split minimal-parallel minimal-single dimension-order @file" },
	{ 'c', "collective", "NAME", "allgather, reduce-scatter, allreduce, "
	  "...", COLLECTIVES },
	{ 'a', "algorithm", "NAME", "default: the best", ALGORITHMS },
	{ 0, "objective", "AIM", "what the best has least of: bandwidth runtime, "
	  "steps or (default) time, without a cost at 1us a step, 100Gbps for the narrowest "
	  "link and 1MiB",
	  "bandwidth steps time" },
	{ 0, "pareto", NULL, "make none, but list steps against bandwidth runtime of all that weft "
	  "knows to make; with the cost also from which size on each is the fastest", NULL },
	{ 0, "root", "RANK", "of broadcast, reduce, gather and scatter (default: "
	  "0)", NULL },
	{ 0, "batches", "N", "split shards, or what goes down the deepest tree, "
	  "into N batches that overlap (default: the fastest; with --objective "
	  "bandwidth 1, for trees as many as fill them)", NULL },
	{ 0, "extra-steps", "N", "late: a phase may take N more steps than bfb (default: up to 2 "
	  "where that is faster, 0 with --objective bandwidth)", NULL },
	{ 0, "levels", "LIST",
	 "mixed-radix: 4x16 for every dimension, or 8,4cx16 for one after the "
	  "other; c: in a chain (default: the fastest)", NULL },
	{ 0, "rounds", "N",
	 "mixed-radix, hybrid: levels of reduce-scatter, then exchanges (default: "
	  "the fastest)", NULL },
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
	{ 0, "no-merge", NULL, "all-reduce: no sums are merged on their way", NULL },
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

static const struct cli_option light_options[] = {
	{ 'c', "collective", "NAME", "all-to-all (default), allgather, reduce-scatter or allreduce",
	  COLLECTIVES },
	{ 0, "ranks", "N", "between any two of which there may be a circuit", NULL },
	{ 0, "ports", "D", "circuits out of each rank, and into it (default: 1)", NULL },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB", NULL },
	{ 0, "alpha", "TIME", "latency of a step, e.g. 10us", NULL },
	{ 0, "link-bandwidth", "RATE", "of a port", NULL },
	{ 0, "retune", "TIME", "of each change of light", NULL },
	{ 0, "seed", "N", "of the search (default: 0)", NULL },
	OUTPUT("the schedule, FILE.json or FILE.pb"), END,
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
	{ 0, "size", "SIZE", "chakra: of the whole vector", NULL },
	{ 0, "protocol", "NAMES", "MSCCL: of a file (default: simple), or what a folder's may "
	  "have (default: ll,simple)", "simple ll ll128 ll,simple ll,ll128,simple" },
	{ 0, "instances", "K|auto", "MSCCL: copies side by side (default: 1; of a folder: auto)",
	  "auto" },
	{ 0, "threadblocks", "N", "MSCCL: at most N a rank (default: the runtime's limit, and 64 "
	  "for what only makes it faster)", NULL },
	{ 0, "link-bandwidth", "RATE", "MSCCL: of a link, to choose by (default: 400Gbps)", NULL },
	OUTPUT("file, or for MSCCL a folder of several by size (default: standard output); chakra: "
	       "what names of files begin with"),
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
	{ 0, "joint", NULL, "for an all-reduce and an all-to-all: steps, bandwidth and rate",
	  NULL },
	{ 0, "gap", "SHARE", "all-to-all: how near each flow comes to its "
	  "bound (default: 0.1 %)", NULL },
	{ 0, "candidates", "K", "all-to-all: topologies that are solved (default: "
	  "8)", NULL },
	{ 0, "alpha", "TIME", "latency of a step, e.g. 10us", NULL },
	{ 0, "bandwidth", "RATE", "of a node, all its ports together", NULL },
	{ 0, "size", "SIZE", "the whole vector M, e.g. 1MB; or several, "
	  "1MB,64MB", NULL },
	{ 0, "hop", "TIME", "of each link that a message crosses (default: 0)", NULL }, FORWARD,
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

const struct cli_command schedule_commands[] = {
	{ "make", NULL, "", "Make a schedule for a collective on a topology",
	  NULL, make_options, 0, 0, false, cmd_schedule_make },
	{ "verify", NULL, "[FILE]", "Verify a schedule by replaying it", NULL,
	  verify_options, 0, 1, false, cmd_schedule_verify },
	{ "cost", NULL, "[FILE]", "Time of a schedule and its lower bound",
	  NULL, cost_options, 0, 1, false, cmd_schedule_cost },
	{ "light", NULL, "", "Make a schedule whose light changes between steps", NULL,
	  light_options, 0, 0, false, cmd_schedule_light },
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

const struct cli_command routes_commands[] = {
	{ "make", NULL, "", "Choose a route and a virtual layer for every pair", NULL,
	  routes_make_options, 0, 0, false, cmd_routes_make },
	{ "verify", NULL, "FILE", "Verify a route table on its topology", NULL,
	  routes_options, 1, 1, false, cmd_routes_verify },
	GROUP_END,
};

const struct cli_command topology_commands[] = {
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

const struct cli_command ring_commands[] = {
	{ "plan", NULL, "", "Plan a collective on a WDM ring", NULL,
	  ring_options, 0, 0, false, cmd_ring_plan },
	GROUP_END,
};

const struct cli_command rwa_commands[] = {
	{ "solve", NULL, "[INSTANCE]", "Assign routes and wavelengths to lightpaths",
	  NULL, rwa_options, 0, 1, false, cmd_rwa_instance },
	{ "change", NULL, "INSTANCE OLD NEW", "Order the moves from one "
	  "assignment to another", NULL, rwa_change_options, 3, 3, false,
	  cmd_rwa_change },
	GROUP_END,
};
