/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef WEFT_COLLECTIVE_TREE_PRIVATE_H
#define WEFT_COLLECTIVE_TREE_PRIVATE_H

#include "collective/schedule/cut_bound.h"
#include "collective/tree/tree.h"
#include "lib/base/vec.h"
#include "lib/graph/graph.h"

/* The arcs of a digraph with capacities in lowest terms: their own are `unit`
 * times as much. Self-loops have 0. */
struct tree_net {
	int n, m;
	int ranks;		/* terminals */
	int root;
	int64_t unit;
	struct graph_arc *arcs;	/* m */
	int32_t *dist;		/* n: arcs from the root */
	struct arrays arrays;
};

/* WEFT_EINVAL for a root that is no rank, WEFT_EINFEASIBLE when a rank cannot
 * be reached, WEFT_ELIMIT. tree_net_fini in any case. O(n + m). */
int tree_net_init(struct tree_net *net, const struct topo *t, int root, struct err *err);
void tree_net_fini(struct tree_net *net);

/* Broadcast and scatter, finished and replayed; of a broadcast with out NULL only the figures.
 * net: of t and opt->root. */
int tree_broadcast(const struct topo *t, const struct tree_net *net,
		   const struct coll_tree_options *opt, struct coll_sched **out,
		   struct coll_tree_info *info, struct err *err);
int tree_scatter(const struct topo *t, const struct tree_net *net,
		 const struct coll_tree_options *opt, struct coll_sched **out, struct err *err);

#endif
