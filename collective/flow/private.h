/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the flow solver share: the capacitated net and its symmetry,
 * the state of the multiplicative-weights solver and of its certificates, paths
 * cut out of a flow, steps, and single paths with their virtual lanes. Arrays are
 * by arc of the net (m), class of arcs under the symmetry, or node (n).
 */
#ifndef WEFT_COLLECTIVE_FLOW_PRIVATE_H
#define WEFT_COLLECTIVE_FLOW_PRIVATE_H

#include <stddef.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"

int flow_net_arc(const struct flow_net *net, int u, int v);

/* Orbits under a group given by generators (permutations of the nodes). */
struct flow_orbits {
	VEC(int32_t *) gens;
	int32_t *arc_class;	/* m */
	int n_classes;
	int32_t *orbit_of;	/* n: smallest node of the orbit */
};

/* symmetry false: the group of g, of which NULL is the trivial one. */
void flow_orbits_find(const struct flow_net *net, const struct flow_demands *demands,
		      bool symmetry, const struct topo_group *g, struct flow_orbits *out);
void flow_orbits_fini(struct flow_orbits *o);

/* Appends generators of the automorphisms of a net; units may be how many arcs there are, and there
 * may be self-loops. */
typedef void flow_generators(const struct flow_net *net, struct flow_orbits *o);

/* Those of a net of terminals with equal arcs, all that change places as nodes of a line digraph
 * (Hemminger and Beineke 1978) and as arcs of the smallest digraph underneath, of which `find`
 * finds them. False, and nothing done: it is no line digraph. O(m log n) a generator. */
bool flow_line_generators(const struct flow_net *net, flow_generators *find,
			  struct flow_orbits *o);

/* True when every generator is an automorphism that keeps the demands (NULL: alike) and the
 * classes and orbits are closed under it. O(generators
 * (m log d + demands)). */
bool flow_orbits_check(const struct flow_net *net, const struct flow_demands *demands,
		       const struct flow_orbits *o);

struct mcf {
	struct flow_net net;
	struct flow_demands demands;	/* owned; n 0: all alike */
	struct flow_orbits orbits;
	int n_sources;
	int32_t *source;	/* representatives */
	double *weight;		/* size of the orbit */
	double *class_cap;	/* capacity of all arcs of a class */
	double *demand;		/* n_sources x n, in units of the largest; or one row for all,
				 * 1 at terminals */

	double *flow;		/* n_sources x m, owned */
	int32_t *parent;	/* n_sources x n: tree arc into a node */
	int32_t *order;		/* n_sources x n: a node after its parent */

	double *load;		/* a class: of all its arcs and all sources */
	double *mult;		/* multipliers of the classes */
	double *price;		/* the penalised prices */
	double level;		/* the U that the prices are based on */
	double rho;
	double last_bound;	/* that the present prices prove */
	double best_bound;	/* with best_price */
	double *best_price;
	bool started;
	int passes;
	int warm_passes;	/* the first ones after a failure */
	double *mean;		/* n_sources x m, or NULL: no means */
	double *mean_load;	/* a class: of mean */
	bool averages;		/* mean holds something */

	/* scratch of one source */
	double *dist;		/* n */
	double *arc_price;	/* m: present price, expanded */
	struct graph_queue queue;
	int32_t *walk;		/* n + 1: arcs or nodes of the present walk */
	uint32_t *on_tree, *on_walk;	/* n: stamps */
	int32_t *walk_pos;	/* n */
	uint32_t stamp;
	double *coef;		/* a class: arcs gained less arcs lost */
	int32_t *touched;	/* classes with a coef */
	struct arrays arrays;	/* all of these */
};

static inline double *mcf_flow_of(const struct mcf *p, int s)
{
	return p->flow + (size_t)s * p->net.m;
}

static inline int32_t *mcf_parent_of(const struct mcf *p, int s)
{
	return p->parent + (size_t)s * p->net.n;
}

static inline int32_t *mcf_order_of(const struct mcf *p, int s)
{
	return p->order + (size_t)s * p->net.n;
}

/* What source number s sends to each node; nothing is to be read into its own. */
static inline const double *mcf_demand_of(const struct mcf *p, int s)
{
	return p->demand + (p->demands.n ? (size_t)s * p->net.n : 0);
}

static inline const struct flow_demands *mcf_demands(const struct mcf *p)
{
	return p->demands.n ? &p->demands : NULL;
}

/* In parts of the largest; the source itself and what is no terminal get 0. */
static inline int64_t mcf_whole_demand(const struct mcf *p, int s, int v)
{
	if (v == p->source[s] || !p->net.terminal[v]) {
		return 0;
	}
	return p->demands.n ? flow_demand(&p->demands, p->source[s], v) : 1;
}

/* So many of these parts are the largest demand, which is one unit of flow. */
static inline int64_t mcf_largest_demand(const struct mcf *p)
{
	return p->demands.n ? p->demands.largest : 1;
}

/* Hop tree of source number s. Nodes that it does not reach have parent -2
 * (the source itself -1) and are last in the order. Returns the number of
 * nodes reached. */
int flow_tree_init(struct mcf *p, int s);
/* Makes the tree one of cheapest paths for arc_price; dist is filled. */
void flow_tree_update(struct mcf *p, int s);
/* Sends all demands of source s along its tree, replacing its flow. */
void flow_tree_route(struct mcf *p, int s);

/* Loads of the classes from the flows. */
void flow_measure(struct mcf *p);
/* max over classes of load over capacity. */
double flow_congestion(const struct mcf *p);
/* One visit to source number s. */
void flow_improve(struct mcf *p, int s);
/* Sends an amount more from source s to v along its tree. */
void flow_send(struct mcf *p, int s, int v, double amount);
/* Takes back an amount that reaches u from source s. */
void flow_withdraw(struct mcf *p, int s, int u, double amount);
/* Lower bound that prices prove; the best is kept. */
void mcf_prove(struct mcf *p, const double *price);
/* Best congestion, present or kept, against the best bound. */
void mcf_set_gap(struct mcf *p, struct mcf_result *res);
/* Level and prices from loads and multipliers. */
void flow_price(struct mcf *p);

/* ---- the loads of a flow that is not kept, shortest_path_tree.c ---- */

/* Flows of blocks of sources that are means of trees, of which the loads are in p, at first none.
 * p is borrowed, its trees stay as they are. Memory: 4 n bytes a source. */
struct flow_means;

struct flow_means *flow_means_new(struct mcf *p);
void flow_means_free(struct flow_means *f);
/* One pass over all blocks: prices (the first time those that are there), trees that are nearly the
 * cheapest at these, and a part of the way to them. Returns what all demands cost on the trees, at
 * prices that sum up to 1: about what the prices prove. O(sources (n + m)). */
double flow_means_pass(struct flow_means *f);

/* Arcs off the tree that some sources may use: by source number. */
struct flow_detours {
	int n;
	int32_t *source, *arc;
	const int32_t *tree;	/* n_sources x n: the arc into a node, -1 */
	const int32_t *order;	/* n_sources x n: parents first */
	const int32_t *reached;	/* n_sources: nodes in order */
};

/* Puts the flow into the middle of the optima among flows over trees and detours, or near it when
 * the limit ends it, and takes the prices there where they prove more than those before. It ends
 * where complementarity of all is `end` of the value: much below 1e-13 is rounding. The trees of
 * cheapest paths are then for the prices found; res as mcf_set_gap has it. False: not tried, as
 * there is too much to do in a step, of some 20: O(classes^3), and for every detour the square of
 * how many others and classes it meets. */
bool mcf_middle(struct mcf *p, const struct flow_detours *d, double end,
		const struct flow_limit *limit, struct mcf_result *res);

/* The problem of mcf_new_demands under the group g, which keeps them, NULL: without
 * symmetry. */
int mcf_new_under(const struct topo *t, const struct topo_group *g,
		  const struct flow_demands *demands, struct mcf **out, struct err *err);

/* ---- orbits of arcs as arcs ---- */

struct flow_quotient {
	const struct topo *t;
	struct topo_group *group;	/* NULL: none, and nothing else is set */
	struct topo_action *action;
	struct flow_net net;	/* n, m, units and lanes only: arcs are orbits */
	int32_t *orbit;		/* of an arc of the net */
	int32_t *first;		/* arc of an orbit */
	VEC(int32_t) arcs;	/* of the paths, before they became orbits */
	struct arrays arrays;	/* orbit and first */
};

/* Without a group where that of t does not keep the demands (NULL: alike). flow_quotient_fini also
 * after an error. O(m degree + demands). */
int flow_quotient_init(struct flow_quotient *q, const struct topo *t,
		       const struct flow_demands *demands, struct err *err);
void flow_quotient_fini(struct flow_quotient *q);
/* The arcs of the paths become orbits; q keeps what they were. */
void flow_quotient_paths(struct flow_quotient *q, struct flow_paths *paths);
/* The lane (arc of the topology) of the arc that stands at `at` among the paths' arcs
 * which corresponds to this lane of its orbit. q NULL or without a group:
 * the lane itself. net: that of the topology. */
int flow_quotient_lane(const struct flow_quotient *q, const struct flow_net *net, int64_t at,
		       int lane);

/* ---- paths, and chunks on them ---- */

/* Cuts the flows of p's sources, each to all sinks, into paths, widest first.
 * Over the limit, what is left takes one path a pair, along the sources'
 * trees of cheapest paths. limit may be NULL. */
void flow_paths_cut(struct mcf *p, const struct flow_limit *limit, struct flow_paths *out);

/* The chunks of a pair, where the largest demand has `chunks`. */
static inline int flow_pair_chunks(const struct flow_paths *paths, int32_t pair, int chunks)
{
	const struct flow_demands *d = paths->demands;

	return d ? (int)((d->size[pair] * chunks + d->largest - 1) / d->largest) : chunks;
}

/* Gives every pair its share of `chunks` chunks; returns the congestion, in chunks a unit
 * of capacity. */
double flow_paths_round(const struct flow_net *net, struct flow_paths *paths, int chunks);

/* ---- disjoint paths, disjoint.c ---- */

/*
 * All-to-all over maximal sets of link-disjoint paths (all-to-all-mcf,
 * section 3.1.4): every pair has as many paths without a common arc as there
 * can be, the shortest such set, and only the shares of the paths are left to
 * choose.
 */

/*
 * The sets of all pairs of terminals, sorted by pair, with equal shares;
 * within a pair the shortest path first. Parallel arcs are one link.
 * WEFT_EINFEASIBLE for a pair without a path. graph_flow_run a
 * pair.
 */
int disjoint_paths(const struct flow_net *net, struct flow_paths *out, struct err *err);

struct balance_result {
	double congestion;	/* of the shares */
	double bound;		/* no shares on these paths are below */
	int passes;
};

/*
 * Shares of given paths, at least one a pair, that make the congestion least:
 * coordinate descent on exponential prices of the arcs, which are made steeper
 * until the shares are within `gap` of what the prices prove (every pair
 * pays at least its cheapest path), or limit (may be NULL) or passes end it.
 * Shares below 1e-6 are dropped. O(arcs of all paths) a pass.
 */
void balance_paths(const struct flow_net *net, double gap, const struct flow_limit *limit,
		   struct flow_paths *inout, struct balance_result *res);

/* ---- steps, step_stagger.c and step_first_fit.c ---- */

/* Chunks first.. of a path that go over one of its arcs. */
struct flow_sent {
	int32_t path, hop, first, chunks;
};

static inline int flow_sent_arc(const struct flow_paths *paths, const struct flow_sent *x)
{
	return paths->arcs.v[paths->v.v[x->path].first + x->hop];
}

/* By step, then arc: those of one step and arc are beside each other. */
struct flow_timetable {
	VEC(struct flow_sent) v;
	VEC(size_t) end;	/* of each step, in v */
};

void flow_timetable_fini(struct flow_timetable *tt);

/*
 * First fit, quick and a few per cent from the best: the paths' chunks, one
 * after the other in random order, take for every hop the first step after
 * their last in which the arc carries less than `quantum` chunks a unit of
 * capacity. chunk0[path]: number of its first chunk. Replaces what tt holds;
 * *fits false, and tt empty, when that takes more than `width` steps.
 * Deterministic. Time: nearly O(hops of all chunks); memory:
 * 12 bytes an arc and step, 20 a hop.
 */
void flow_fit(const struct flow_net *net, const struct flow_paths *paths, const int32_t *chunk0,
	      int64_t quantum, int width, struct flow_timetable *tt, bool *fits);

struct flow_steps_options {
	double loss;		/* over the congestion of the chunks */
	double step_cost;	/* in chunks a unit of capacity */
	int max_steps;
	struct flow_limit limit;
};

struct flow_steps;

/* The hops of paths that flow_paths_round has filled. t, net and paths are
 * borrowed. WEFT_ELIMIT when a schedule cannot hold them. O(hops
 * of all paths). */
int flow_steps_new(const struct topo *t, const struct flow_net *net, const struct flow_paths *paths,
		   struct flow_steps **out, struct err *err);
void flow_steps_free(struct flow_steps *st);

/*
 * Chooses steps for the chunks that the paths have now: the largest amount an
 * arc may carry in a step, so the fewest steps, whose largest loads sum up to
 * within opt->loss of `use` (the chunks' congestion), or the best of those
 * tried; *sum is that sum. With a step_cost, *sum and what is compared are the loads and the
 * cost of the steps together, and `use` counts with that of the longest path. A trial is broken off
 * when the limit is over; where there is a limit, first fit is tried before all others and to
 * the end. Needing more than max_steps is WEFT_ELIMIT. Time: O(hops of all
 * chunks) a trial; memory: 16 bytes a hop for the best and for the one that
 * is tried.
 */
int flow_steps_choose(struct flow_steps *st, double use, const struct flow_steps_options *opt,
		      double *sum, struct err *err);

/* Adds the transfers of the steps chosen to s. q: the paths are over its orbits; NULL, or
 * without a group: over the arcs of net, that of the topology. */
int flow_steps_emit(const struct flow_steps *st, const struct flow_quotient *q,
		    const struct flow_net *net, struct coll_sched *s,
		    int *steps, double *sum, struct err *err);

/* ---- steps where hops may come in any order, step_open_shop.c ---- */

/* Where the group of q has one orbit of terminals. The chunks a unit of capacity that the
 * fullest orbit of arcs carries a step, when its load is dealt out over so many steps.
 * paths: over the orbits, with their chunks. O(hops). */
int64_t flow_shop_quantum(const struct flow_quotient *q, const struct flow_paths *paths,
			  int steps);
/* Adds the transfers to an empty schedule: every chunk of the paths in `steps` steps, at least
 * the hops of the longest path, none of which carries more than the quantum of
 * these. WEFT_ELIMIT. O(hops (steps + alternating paths)). */
int flow_shop_emit(const struct flow_quotient *q, const struct flow_paths *paths, int steps,
		   int64_t quantum, struct coll_sched *out, struct err *err);

/* ---- layers, virtual_lanes.c ---- */

/*
 * Layers that routes come to and go from. Each keeps an order of its arcs
 * that all its dependencies follow (Pearce and Kelly), and counts the routes
 * behind every dependency.
 */
struct layer_set;

struct layer_set *layer_set_new(int n_arcs, int n_layers);
void layer_set_free(struct layer_set *this);

/* Adds the route over arcs[0..n) to layer k. 0; 1 when it closes a cycle,
 * and then no dependency has been added, and the one that does leads to arc
 * number *at (NULL: not asked). */
int layer_set_add(struct layer_set *this, int k, const int32_t *arcs, int64_t n, int64_t *at);
/* Takes back a route that was added. O(n degree). */
void layer_set_remove(struct layer_set *this, int k, const int32_t *arcs, int64_t n);
/* The order of layer k: a rank of each arc. A route on which it rises closes
 * no cycle. Valid until the next route is added. */
const int32_t *layer_set_rank(const struct layer_set *this, int k);

/* ---- one path a pair, unsplittable_*.c ---- */

/* The integer program: chooses among `pool`, sorted by pair with at least
 * one path each, within the time left; *better is set, and chosen[pair] is an
 * index into the pool, when it comes below *congestion, which is updated. */
int single_integer(const struct flow_net *net, const struct flow_paths *pool,
		   const struct single_options *opt, const struct deadline *end, double *congestion,
		   bool *better, int64_t *chosen, struct err *err);

struct single_routes {
	const struct flow_net *net;
	int longest;		/* arcs of a path, at most */
	int32_t *arcs;		/* n x n x longest, from the sink back */
	int32_t *len;		/* n x n; 0: no such pair */
	int64_t *load;		/* m */
	double *weight;		/* m: of one path more */
	double power, scale;	/* of the weights */
	bool flat;		/* weights of the first heuristic */
	struct rng rng;

	double *dist;		/* n */
	int32_t *parent;	/* n */
	struct graph_queue queue;
	struct arrays arrays;	/* all of these */
};

static inline int32_t *single_arcs_of(const struct single_routes *r, size_t pair)
{
	return r->arcs + pair * (size_t)r->longest;
}

void single_routes_init(struct single_routes *r, const struct flow_net *net, int longest);
void single_routes_fini(struct single_routes *r);

/* The largest load over its capacity. */
double single_congestion(const struct single_routes *r);
void single_weigh_all(struct single_routes *r);
/* Adds (+1) or removes (-1) the path of a pair. */
void single_count(struct single_routes *r, size_t pair, int by);
/* Cheapest paths from s by label correction; parents are filled. */
void single_measure(struct single_routes *r, int s);
/* Takes the path to v just measured, when it is not too long. */
bool single_take(struct single_routes *r, size_t pair, int v);
double single_cost(const struct single_routes *r, size_t pair);

/* ---- routes and layers together, unsplittable_lanes.c ---- */

struct single_lanes;

/*
 * Places for the paths of r in layers 0 .. n_layers - 1; nothing is placed
 * yet. r is borrowed. escape: a tree into some node and one out of it are
 * laid through layer 0 first, so that every pair has a path there.
 * WEFT_EINFEASIBLE when no such trees were found.
 */
int single_lanes_new(struct single_routes *r, int n_layers, bool escape,
		     struct single_lanes **out, struct err *err);
void single_lanes_free(struct single_lanes *this);

/* Puts the path of a pair, which counts already, into the first layer that
 * closes no cycle with it; false: there is none. */
bool single_lanes_place(struct single_lanes *this, size_t pair);
/* Moves a pair to the cheapest path that was found for it in any layer. One
 * without a place must not count; it does when it has got one. False: nothing
 * better. O(layers m degree) a trial. */
bool single_lanes_move(struct single_lanes *this, size_t pair);
/* Of a pair, -1: none. */
int single_lanes_layer(const struct single_lanes *this, size_t pair);

#endif
