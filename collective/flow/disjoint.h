/*
 * All-to-all over maximal sets of link-disjoint paths (all-to-all-mcf,
 * section 3.1.4): every pair has as many paths without a common arc as there
 * can be, the shortest such set, and only the shares of the paths are left to
 * choose.
 */
#ifndef WEFT_COLLECTIVE_FLOW_DISJOINT_H
#define WEFT_COLLECTIVE_FLOW_DISJOINT_H

#include "collective/flow/paths.h"

/*
 * The sets of all pairs of terminals, sorted by pair, with equal shares;
 * within a pair the shortest path first. Parallel arcs are one link.
 * WEFT_EINFEASIBLE for a pair without a path, WEFT_ENOMEM. graph_flow_run a
 * pair.
 */
int disjoint_paths(const struct flow_net *net, struct flow_paths *out,
		   struct err *err);

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
 * Shares below 1e-6 are dropped. WEFT_ENOMEM. O(arcs of all paths) a pass.
 */
int balance_paths(const struct flow_net *net, double gap,
		  const struct flow_limit *limit, struct flow_paths *inout,
		  struct balance_result *res, struct err *err);

#endif
