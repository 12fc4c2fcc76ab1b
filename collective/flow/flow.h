/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-to-all as a multicommodity flow: every terminal sends one unit to
 * every other, and the largest use of an arc relative to its capacity, the
 * congestion U, is to be as small as possible (all-to-all-mcf, section 3.1,
 * eqs 6-9 with the rate F = 1 / U).
 *
 * The flows of one source to all its sinks are kept together. An augmented
 * Lagrangian prices the arcs; each pass visits the sources and moves flow
 * from expensive detours to the tree of cheapest paths by exact Newton steps.
 * Every pass gives both sides of a certificate: the flow at hand is feasible
 * at its congestion, and the prices y as arc lengths prove that no flow is
 * below (sum of distances over all pairs) / (sum of capacity times y). Where pairs
 * send unlike amounts, each distance counts by its pair's demand.
 *
 * Symmetry: one source per orbit of the automorphism group is solved, its
 * loads averaged over the orbits of arcs. Parallel arcs act as one of their
 * summed capacity, self-loops carry nothing. Switches and memories have no
 * demand of their own and forward only.
 */
#ifndef WEFT_COLLECTIVE_FLOW_FLOW_H
#define WEFT_COLLECTIVE_FLOW_FLOW_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

/* ---- demands ---- */

/* Where not all pairs send alike (all-to-all-v): what rank u sends to rank v, in whole units
 * without a common divisor. Ranks are terminals, the first nodes (topo_check_order). All
 * results are in units of the largest demand, as if that were the one unit of a
 * uniform all-to-all. */
struct flow_demands {
	int n;			/* ranks */
	int64_t *size;		/* n x n, owned; 0..FLOW_MAX_DEMAND, the diagonal 0 */
	int64_t largest;	/* of them, > 0 */
	int64_t bytes;		/* of a unit, 0: the numbers were without one */
};

#define FLOW_MAX_DEMAND (INT64_C(1) << 40)
#define FLOW_MAX_DEMAND_RANKS COLL_MAX_DEMAND_RANKS

static inline int64_t flow_demand(const struct flow_demands *d, int u, int v)
{
	return d->size[(size_t)u * d->n + v];
}

/*
 * Reads a matrix of n rows and n columns: lines of numbers with blanks, commas
 * or semicolons between them (empty lines and what follows a # are skipped), or a JSON
 * array of arrays. A number is decimal, not negative, of at most 18 digits; or all are
 * sizes such as 1.5MB (in JSON as strings). WEFT_EINVAL names row and column, from 0, of
 * what is no number or no size, negative, empty, not 0 on the diagonal, too large beside
 * the unit that all are multiples of; and rows that are too short, too long, or too few or
 * too many; and a matrix of zeros. O(n^2 + len).
 */
int flow_demands_parse(const char *text, size_t len, int n, struct flow_demands *out,
		       struct err *err);
void flow_demands_copy(const struct flow_demands *from, struct flow_demands *out);
void flow_demands_fini(struct flow_demands *d);
/* Whether moving rank u to image[u] changes nothing; d NULL: all alike, true. O(n^2). */
bool flow_demands_kept(const struct flow_demands *d, const int32_t *image);

/* ---- the flow ---- */

struct mcf;

struct mcf_options {
	double gap;		/* stop at U / bound - 1 <= gap */
	struct deadline deadline;
	int max_passes;		/* 0: MCF_MAX_PASSES */
	const volatile bool *cancel;	/* NULL, or stop when true */
	bool (*is_over)(void *arg);	/* NULL, or as the deadline when true */
	void *arg;
};

#define MCF_MAX_PASSES 20000
#define MCF_DEFAULT_GAP 1e-4

enum mcf_stop {
	MCF_REACHED,		/* the gap asked for */
	MCF_TIME, MCF_CANCELED, MCF_PASSES,
};

/* Of the best flow and the best prices so far; both are exact up to the
 * rounding of doubles. */
struct mcf_result {
	double congestion;	/* U of a feasible flow: F >= 1 / congestion */
	double bound;		/* no flow is below: F <= 1 / bound */
	double gap;		/* congestion / bound - 1 */
	int passes;
	enum mcf_stop stop;
};

/* The problem on a frozen digraph, of which a copy is taken. symmetry: look
 * for automorphisms (nauty) and solve one source per orbit. WEFT_EINVAL
 * (fewer than two terminals), WEFT_EINFEASIBLE names a pair without a path,
 * WEFT_ELIMIT beyond MCF_MAX_FLOWS sources that are solved times arcs. Memory: 8 m + 8 n
 * bytes a source that is solved, and as much again for 8 m while it is. */
#define MCF_MAX_FLOWS (1 << 28)
int mcf_new(const struct topo *t, bool symmetry, struct mcf **out, struct err *err);
/* With these demands, which are copied, and only the symmetry that keeps them; NULL: all
 * alike. WEFT_EINVAL when they are for another number of ranks. Pairs without demand need no
 * path. Memory: 8 n bytes a source more. */
int mcf_new_demands(const struct topo *t, bool symmetry, const struct flow_demands *demands,
		    struct mcf **out, struct err *err);
void mcf_free(struct mcf *p);

/* Runs passes until an option says stop; may be called again and goes on
 * from where it stands. A limit or cancel is no error: res says which.
 * Deterministic but for where a time limit cuts. A pass costs O(sources
 * (n + m) + flow moved times path length). */
int mcf_run(struct mcf *p, const struct mcf_options *opt, struct mcf_result *res, struct err *err);

/* mcf_new_demands with symmetry and mcf_run where only what the flow achieves and what is proven is
 * asked for, not the flow itself: for gaps of half a percent and more several times faster where
 * many sources are solved. */
int mcf_rate(const struct topo *t, const struct flow_demands *demands,
	     const struct mcf_options *opt, struct mcf_result *res, struct err *err);

/* What no all-to-all is below, all pairs alike, in shards over an arc of capacity 1; 0: unknown, as
 * it would take long, or ranks are cut off. Within a thousandth, or of 2^26 arcs of all sources and
 * passes. */
double mcf_bound(const struct topo *t);

/* The problem of the same digraph t without the arcs that are marked
 * (topo_m(t) flags), with the flow and the prices of p as a warm start;
 * symmetry is given up. WEFT_EINFEASIBLE names a pair that is cut off. p is
 * left as it is. O(sources m degree) besides moving the flow. */
int mcf_without(const struct mcf *p, const struct topo *t, const bool *dropped,
		struct mcf **out, struct err *err);

/* Sources that are solved, of all terminals, which send. O(1). */
int mcf_sources(const struct mcf *p);

/* Theorem 2 of the paper: no digraph of n nodes and degree d has a
 * congestion below sum of depths of the full d-ary tree over d. Where every
 * arc has its reverse, only d - 1 arcs of a node lead on. */
double mcf_degree_bound(int n, int d);
double mcf_edge_bound(int n, int d);

/* ---- time limits ---- */

/* The zero limit never ends anything. */
struct flow_limit {
	struct deadline deadline;
	const volatile bool *cancel;	/* NULL, or stop when true */
	bool (*is_over)(void *arg);	/* NULL, or asked from one thread */
	void *arg;
};

/* The limit of the options. */
struct flow_limit flow_limit_of(const struct mcf_options *opt);
/* A share of the time that is left. */
struct deadline flow_share(const struct deadline *d, double share);
/* Whether it may ever end anything. */
bool flow_limit_is_set(const struct flow_limit *limit);
/* MCF_REACHED: go on. */
enum mcf_stop flow_limit_stop(const struct flow_limit *limit);
bool flow_limit_over(const struct flow_limit *limit);

/* ---- as linear programs ---- */

/*
 * The all-to-all flow as linear programs, in the forms of the paper
 * (all-to-all-mcf, section 3.1), to compare with the flow solver and for
 * fabrics small enough: one flow a pair (link MCF, eqs 1-5), one a source
 * (the grouped master, eqs 6-9), and paths that are priced instead of listed
 * (pMCF, eqs 21-24). All minimise the congestion U = 1 / F; symmetry is used
 * as mcf_new found it.
 */

enum mcf_form {
	MCF_FORM_FLOW,		/* none of these: mcf_run */
	MCF_FORM_LINK, MCF_FORM_GROUPED, MCF_FORM_PATHS,
};

#define MCF_FORMS 4

/* Larger programs are refused: lp_solve would not end. */
#define MCF_FORM_MAX_COLS 60000

/* "mcf", "link-mcf", "grouped", "pmcf". */
const char *mcf_form_name(enum mcf_form form);

/*
 * Solves p in this form and leaves the flow in p, from where paths are cut
 * and mcf_run goes on. res: certified as by mcf_run, from the program's flow
 * and duals; passes are rounds of pricing. A time limit or cancel leaves the
 * best that is certified by then. WEFT_ELIMIT when the program is too large,
 * WEFT_EINTERNAL when the linear solver breaks down.
 */
int mcf_solve_form(struct mcf *p, enum mcf_form form, const struct mcf_options *opt,
		   struct mcf_result *res, struct err *err);

/* ---- exactly, with a proof ---- */

/*
 * An optimum of the all-to-all flow as exact numbers: a flow that is feasible
 * at congestion U and prices that prove that no flow is below U, equal as
 * fractions. A reader who distrusts the solver has to trust the checker only,
 * which shares nothing with it.
 */

/* Flow of a source on an arc, in units of 1 / flow_den. */
struct mcf_proof_flow {
	int32_t arc;
	mpz_t amount;
};

struct mcf_proof {
	mpq_t congestion;	/* U = 1 / F */
	int n;			/* nodes */
	int n_gens;		/* automorphisms that were used */
	int32_t **gens;		/* each n images */
	int m;			/* arcs, parallel ones as one, no loops */
	int32_t *tail, *head;
	mpz_t *price;		/* m, equal on an orbit of arcs */
	int n_sources;		/* one an orbit of terminals */
	int32_t *source;	/* those without demand may be missing */
	int64_t *first;		/* n_sources + 1, in flow */
	struct mcf_proof_flow *flow;
	mpz_t flow_den;
};

void mcf_proof_free(struct mcf_proof *proof);

/*
 * Goes on from where p stands until an optimum is found whose two sides are
 * equal as fractions: passes to a smaller and smaller gap show which arcs
 * are used and which are full, an exact solution of the equations that this
 * implies follows, and mcf_proof_check decides. *out is NULL, without error,
 * when a limit, a cancel or the accuracy of doubles came first; res is
 * then as after mcf_run.
 */
int mcf_exact(struct mcf *p, const struct topo *t, const struct mcf_options *opt,
	      struct mcf_result *res, struct mcf_proof **out, struct err *err);

/*
 * Checks a proof against the digraph, in integers: that the generators are
 * automorphisms, also of the demands, that every source of an orbit's representative sends
 * to each other terminal what it demands (NULL: one unit) without loss, that the loads, averaged
 * over the group, keep to U times capacity, and that distances in the prices prove
 * U from below (linear programming duality: sum of demands times distances over all
 * pairs over sum of capacity times price). WEFT_EVERIFY names what is wrong.
 * O(sources n m) at worst.
 */
int mcf_proof_check(const struct topo *t, const struct flow_demands *demands,
		    const struct mcf_proof *proof, struct err *err);

/* ---- hosts behind interfaces ---- */

/*
 * Hosts behind network interfaces that are slower than their links together
 * (all-to-all-mcf, section 3.2.3 and figure 3).
 */

/*
 * The digraph of t with each terminal u split into the host u, which keeps its
 * number and all demand, and two switches: what leaves it goes over n + u,
 * what comes in over 2n + u, each by one arc of host_cap. Links join the
 * switches. nic_forwards: an interface sends on by itself; else everything
 * passes the host. Capacities of links are multiplied by scale, so that
 * host_cap may be a fraction of a link. Switches of t stay as they are.
 * WEFT_EINVAL for a capacity or scale below 1, WEFT_ELIMIT.
 */
int mcf_split_hosts(const struct topo *t, int64_t host_cap, int64_t scale,
		    bool nic_forwards, struct topo **out, struct err *err);

/* ---- paths ---- */

/* A digraph without loops or parallel arcs, arcs in CSR order. */
struct flow_net {
	int n, m;
	int32_t *src, *dst;	/* m */
	int64_t *units;		/* m: capacity */
	int32_t *out_first;	/* n + 1 */
	int32_t *in_first;	/* n + 1 */
	int32_t *in_arcs;	/* m, by target */
	bool *terminal;		/* n */
	int terminals;
	int topo_arcs;
	int32_t *arc_of;	/* arc of the topology -> arc here, or -1 */
	int32_t *first_lane;	/* m + 1: an arc's lanes, the arcs of the */
	int32_t *lanes;		/* topology that it stands for, ascending */
	struct arrays arrays;	/* all of these */
};

/* The net of t without the arcs that are marked (topo_m(t) flags, NULL: none).
 * WEFT_EINVAL for fewer than two terminals; nothing is to be
 * freed then. O(n + m). */
int flow_net_from(const struct topo *t, const bool *dropped, struct flow_net *out, struct err *err);
void flow_net_fini(struct flow_net *net);

struct flow_path {
	int32_t pair;		/* source * n + sink */
	int32_t chunks;
	int64_t first;		/* in arcs; as many as n_arcs */
	int32_t n_arcs;
	int32_t layer;		/* where single_path was given a limit */
	double weight;		/* those of a pair sum to one */
};

/* Sorted by pair; those without demand have none. */
struct flow_paths {
	const struct flow_demands *demands;	/* borrowed, NULL: all alike */
	VEC(struct flow_path) v;
	VEC(int32_t) arcs;	/* of the net, from source to sink */
};

void flow_paths_fini(struct flow_paths *paths);

/* ---- one path a pair ---- */

/*
 * All-to-all with one path a pair: the largest number of paths on an arc,
 * relative to its capacity, is to be small (all-to-all-mcf, eqs 29-33, and
 * its supplement on heuristics).
 */

enum single_effort {
	SINGLE_SHORTEST,	/* load-aware shortest paths, pairs in random
				 * order, arcs at n^2 + load */
	SINGLE_SEARCH,		/* then local search: a pair at a time moves to
				 * the path on which a steep convex function of
				 * the loads grows least */
	SINGLE_INTEGER,		/* then the integer program on the paths of
				 * the fractional optimum and those found */
};

struct single_options {
	enum single_effort effort;
	uint64_t seed;
	double flow_gap;	/* of the fractional optimum; 0: 1e-4 */
	int flow_passes;	/* of its solver, at most; 0: no limit */
	double tolerance;	/* the integer program may stop within this of
				 * its relaxation */
	struct deadline deadline;
	int layers;		/* 0: any number; else the routes are chosen
				 * so that they fit in so many layers */
	const volatile bool *cancel;	/* NULL, or stop when true */
	bool (*is_over)(void *arg);	/* as in struct mcf_options */
	void *arg;
};

struct single_result {
	double congestion;	/* of the paths returned */
	double shortest;	/* after the first heuristic */
	struct mcf_result flow;	/* of any number of paths */
	double bound;		/* no single paths are below: flow.bound, up
				 * to whole paths where capacities are equal */
	int moves;		/* of the local search that changed a path */
	double unlimited;	/* congestion before layers were looked at */
	int unplaced;		/* of those paths, that many closed a cycle in
				 * every layer and were rerouted */
};

/*
 * With a limit of layers the paths found so far are put into the first layer
 * that takes them, those that none takes are rerouted, and then, but for
 * SINGLE_SHORTEST, the local search goes on with moves of a pair to any path in
 * any layer that closes no cycle. Above the bound it begins once more with no
 * paths at all. When pairs are left without a path, a start is repeated with
 * trees in layer 0 that lead every pair. flow_path.layer is filled, and proven
 * by layers_prove. Above the bound fewer layers are tried as well, so that more are never
 * worse (with more than 4096 pairs only 5 % above it). WEFT_ELIMIT when this ends without a path
 * for all pairs, which is no proof that there is none, and WEFT_ETIMEOUT when it is stopped
 * before all have one. Half of a time limit is for the paths without layers.
 */

/* One path of every pair of terminals, weight 1 and one chunk each, in the
 * order of pairs. A limit or cancel returns the best so far. Deterministic by
 * the seed but for where a time limit cuts. WEFT_EINVAL, WEFT_EINFEASIBLE.
 * Memory: pairs times (diameter + SINGLE_DETOUR) numbers. */
#define SINGLE_DETOUR 4
int single_path(const struct topo *t, const struct single_options *opt, struct flow_paths *out,
		struct single_result *res, struct err *err);

/* ---- routes without deadlock ---- */

/*
 * Routes without deadlock: every route is given to a layer (virtual channel)
 * such that in no layer the channels wait for each other in a cycle
 * (all-to-all-mcf, appendix D.1). A route that holds arc a while it asks for
 * arc b is a dependency a -> b; a layer is free of deadlock when its
 * dependencies have no cycle.
 */

/* Route i: arcs[first[i]] .. arcs[first[i + 1] - 1], numbers below n_arcs. */
struct layer_routes {
	int n_arcs;
	int64_t n;
	const int64_t *first;	/* n + 1 */
	const int32_t *arcs;
};

/*
 * Assigns each route, in order, to the first layer that it closes no cycle
 * in; a new layer is opened when there is none. layer[n] is filled. rank, of
 * *n_layers x n_arcs (free()), is the proof: in each layer every dependency
 * leads from a lower to a higher rank. WEFT_EINFEASIBLE when max_layers (0:
 * no limit) do not suffice, WEFT_EINVAL for a route that uses an arc twice,
 * which no layer can take, or an arc out of range. Time: an insertion costs
 * what the order of the layer changes by (Pearce and Kelly), mostly little.
 */
int layers_assign(const struct layer_routes *routes, int max_layers, int32_t *layer, int *n_layers,
		  int32_t **rank, struct err *err);

/* Checks the proof: every dependency of every route rises in its layer's
 * rank. O(arcs of all routes). */
bool layers_proven(const struct layer_routes *routes, const int32_t *layer,
		   int n_layers, const int32_t *rank);

/* The same proof for layers that are given: rank, of n_layers x n_arcs
 * (free()). WEFT_EVERIFY names a route that closes a cycle. As long as
 * layers_assign. */
int layers_prove(const struct layer_routes *routes, const int32_t *layer,
		 int n_layers, int32_t **rank, struct err *err);

/* ---- schedules ---- */

/*
 * All-to-all schedules out of flows: weighted paths of every pair, a whole
 * number of chunks on each, and steps that keep the full arcs full.
 */

/* Which paths the chunks take. */
enum mcf_paths {
	MCF_PATHS_FLOW,		/* those of the flow */
	MCF_PATHS_SINGLE,	/* one a pair, by single_path */
	MCF_PATHS_SHORTEST,	/* one a pair, load-aware shortest paths */
	MCF_PATHS_DISJOINT,	/* a maximal set without a common link */
};

struct mcf_sched_options {
	struct mcf_options flow;
	const struct flow_demands *demands;	/* NULL: all alike */
	enum mcf_form form;	/* how it is solved */
	enum mcf_paths paths;	/* the form only matters to MCF_PATHS_FLOW */
	double loss;		/* of rate, allowed to chunks and again to
				 * steps */
	double step_cost;	/* what a step takes, in the time of a unit of demand on a
				 * unit of capacity: the sum of both is made small.
				 * 0: the fewest steps within the loss */
	int max_chunks;		/* 0: MCF_SCHED_CHUNKS */
	int max_steps;		/* 0: MCF_SCHED_STEPS */
	/* After a failure: the flow of an earlier call, and the digraph that
	 * it was for with the arcs marked that t lacks. The flow solver goes
	 * on from there. NULL: from nothing. */
	const struct mcf *before;
	const struct topo *before_topo;
	const bool *dropped;
	struct mcf **kept;	/* NULL, or the flow goes there: mcf_free;
				 * NULL there after MCF_PATHS_SINGLE and
				 * _SHORTEST, which need none */
};

#define MCF_SCHED_LOSS 0.01
#define MCF_SCHED_CHUNKS 64
#define MCF_SCHED_STEPS 512
/* Share of a time limit that the flow may use; the rest is for paths, chunks
 * and steps. When it is over, what is left of the work is done the simple way
 * (one path a pair, one attempt at chunks, first fit), and still replayed:
 * O(hops of all chunks). */
#define MCF_SCHED_FLOW_TIME 0.5

struct mcf_sched_info {
	struct mcf_result flow;	/* on any paths */
	/* Congestion on the paths that opt->paths allows, and what no choice
	 * among them is below; 0 with those of the flow. */
	double routed, routed_bound;
	int64_t paths;		/* of all pairs together */
	int chunks;		/* P */
	double chunked;		/* congestion of the chunks, a unit of demand */
	double stepped;		/* sum over steps of the largest load, a unit
				 * of demand: what T_B is made of */
	int steps;
	int longest;		/* path, in hops: the fewest steps in which
				 * the chunks could arrive */
	enum mcf_stop stop;	/* why the search ended, of flow, paths,
				 * chunks or steps */
};

/*
 * Solves the flow (mcf_run), cuts the flow of each source into paths, widest
 * first (MCF-extP of the paper: nothing of the rate is lost), gives every
 * path whole chunks with the smallest P whose congestion is within `loss` of
 * the flow's (or the best P up to max_chunks), and sends the chunks in steps
 * in which an arc carries at most a fixed amount, those with the longest path
 * to go first, or all paths at an even pace. The amount is the largest (so the
 * steps the fewest) whose sum is within `loss` of the chunks' congestion, or the
 * best of those tried up to max_steps; with a step_cost it is the one with the
 * least time of those tried. The schedule is verified; coll_verify has its exact T_B.
 *
 * Where a group moves the digraph's terminals (topo_group_find) only the first of
 * each orbit is solved, and the schedule is compact. With one orbit the hops of a
 * path may come in any order, and steps are colours of a bipartite graph: as
 * many as the longest path has hops, without loss, where chunks divide so. Memory and
 * time then go with N times the mean distance, not with N^2.
 *
 * With demands a shard is the largest of them, and a pair sends the chunks that its demand
 * takes, the last one perhaps not full: P is chosen by what that costs, too, and goes as far as all
 * chunks are as many as those of a uniform all-to-all. Groups that do not keep the demands are not
 * used. Paths that are no flow's, and flows of an earlier call, take none: WEFT_EUNSUPPORTED.
 *
 * With other paths (opt->paths) these take the place of the flow's; up to 256
 * terminals single paths are searched for, beyond they are the flow's widest.
 *
 * t is copied. WEFT_EINFEASIBLE, WEFT_ELIMIT, WEFT_EUNSUPPORTED when a node
 * is not a terminal. info may be NULL. Time beside the flow's: O(what flows to
 * a sink) a path, O(hops of all chunks) a trial of steps.
 */
int mcf_schedule(const struct topo *t, const struct mcf_sched_options *opt, struct coll_sched **out,
		 struct mcf_sched_info *info, struct err *err);

/* ---- schedules of hosts that forward ---- */

/*
 * Time-stepped all-to-all for fabrics whose hosts forward (all-to-all-mcf,
 * section 3.1.4, tsMCF, eqs 15-20): in step k an arc carries at most U_k
 * times its capacity, a node sends what it held when the step began, and the
 * sum of the U_k, which is what a schedule takes beside its latencies, is
 * smallest. In the source-grouped form it is a flow on copies of the nodes,
 * one a step, with arcs to hold what stays.
 */

struct mcf_steps_options {
	int steps;		/* 0: the fewest whose sum is the flow's U to
				 * within flow.gap, or the best of those up to
				 * MCF_STEPS_MORE above the diameter */
	struct mcf_options flow;
	const struct flow_demands *demands;	/* NULL: all pairs send alike */
	double loss;		/* of rate, allowed to whole chunks */
	int max_chunks;		/* 0: MCF_STEPS_CHUNKS */
};

#define MCF_STEPS_MORE 12
#define MCF_STEPS_CHUNKS 128

struct mcf_steps_info {
	struct mcf_result flow;	/* of any number of steps */
	int steps;
	double total;		/* sum of the U_k of the program */
	double bound;		/* none of so many steps is below */
	int chunks;		/* P */
	double stepped;		/* sum of the largest loads of the schedule,
				 * a unit of demand */
};

/*
 * Solves the program with lp_solve, one source an orbit of the digraph's
 * translations (schedule.h), with demands all sources, gives every path through
 * time whole chunks with the smallest P within the loss (or the best), and
 * returns the verified schedule. t is copied. WEFT_EINVAL when steps are fewer
 * than the diameter, WEFT_EINFEASIBLE, WEFT_EUNSUPPORTED when a node is not a
 * terminal, and for demands below a millionth of the largest, WEFT_ELIMIT when
 * the program is too large, WEFT_ETIMEOUT and
 * WEFT_ECANCELED when it was stopped before a first solution.
 */
int mcf_steps(const struct topo *t, const struct mcf_steps_options *opt, struct coll_sched **out,
	      struct mcf_steps_info *info, struct err *err);

#endif
