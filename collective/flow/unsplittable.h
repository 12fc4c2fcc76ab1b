/*
 * All-to-all with one path a pair: the largest number of paths on an arc,
 * relative to its capacity, is to be small (all-to-all-mcf, eqs 29-33, and
 * its supplement on heuristics).
 */
#ifndef WEFT_COLLECTIVE_FLOW_UNSPLITTABLE_H
#define WEFT_COLLECTIVE_FLOW_UNSPLITTABLE_H

#include "collective/flow/paths.h"

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
	double time_limit_s;	/* 0: none */
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
	int homeless;		/* of those paths, so many closed a cycle in
				 * every layer and were led another way */
};

/*
 * With a limit of layers (collective/flow/virtual_lanes.h) the paths found so far are put
 * into the first layer that takes them, those that none takes are led another
 * way, and then, but for SINGLE_SHORTEST, the local search goes on with moves
 * of a path to any way in any layer that closes no cycle. Above the bound it
 * begins once more with no paths at all. When pairs are left without a way, a
 * start is repeated with trees in layer 0 that lead every pair. flow_path.layer is filled, and proven by layers_prove. WEFT_ELIMIT when
 * this ends without a way for all pairs, which is no proof that there is
 * none, and WEFT_ETIMEOUT when it is stopped before all have one. Half of a
 * time limit is for the paths without layers.
 */

/* One path of every pair of terminals, weight 1 and one chunk each, in the
 * order of pairs. A limit or cancel returns the best so far. Deterministic by
 * the seed but for where a time limit cuts. WEFT_EINVAL, WEFT_EINFEASIBLE,
 * WEFT_ENOMEM. Memory: pairs times (diameter + SINGLE_DETOUR) numbers. */
#define SINGLE_DETOUR 4
int single_path(const struct topo *t, const struct single_options *opt,
		struct flow_paths *out, struct single_result *res,
		struct err *err);

/* The integer program: chooses among `pool`, sorted by pair with at least
 * one path each, within the time left; *better is set, and chosen[pair] is an
 * index into the pool, when it comes below *congestion, which is updated. */
int single_integer(const struct flow_net *net, const struct flow_paths *pool,
		   const struct single_options *opt, double time_limit_s,
		   double *congestion, bool *better, int64_t *chosen,
		   struct err *err);

#endif
