/* Paths of all pairs out of source flows, with whole chunks on them. */
#ifndef WEFT_COLLECTIVE_FLOW_PATHS_H
#define WEFT_COLLECTIVE_FLOW_PATHS_H

#include "collective/flow/deadline.h"
#include "collective/flow/private.h"

struct flow_path {
	int32_t pair;		/* source * n + sink */
	int32_t chunks;
	int64_t first;		/* in arcs; as many as n_arcs */
	int32_t n_arcs;
	int32_t layer;		/* where single_path was given a limit */
	double weight;		/* those of a pair sum to one */
};

/* Sorted by pair. */
struct flow_paths {
	VEC(struct flow_path) v;
	VEC(int32_t) arcs;	/* of the net, from source to sink */
};

void flow_paths_fini(struct flow_paths *paths);

/* Cuts the flows of p, solved without symmetry, into paths, widest first.
 * Over the limit, what is left takes one path a pair, along the sources'
 * trees of cheapest paths. limit may be NULL. */
int flow_paths_cut(struct mcf *p, const struct flow_limit *limit,
		   struct flow_paths *out, struct err *err);

/* Gives every pair `chunks` chunks; returns the congestion, in chunks a unit
 * of capacity (negative: WEFT_ENOMEM). */
double flow_paths_round(const struct flow_net *net, struct flow_paths *paths,
			int chunks);

#endif
