/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives with a root, on any strongly connected digraph: broadcast and
 * reduce along packed arborescences, scatter and gather along the paths of a
 * flow, each with the cut that bounds it.
 */
#ifndef WEFT_COLLECTIVE_TREE_TREE_H
#define WEFT_COLLECTIVE_TREE_TREE_H

#include "collective/schedule/schedule.h"

struct coll_tree_options {
	enum coll_kind kind;	/* with a root */
	int root;
	const struct coll_cost *cost;	/* least time; NULL: least T_B, then steps */
	int batches;		/* broadcast, reduce: batches that go down the deepest
				 * tree; 0: chosen */
};

#define COLL_TREE_MAX_BATCHES (1 << 14)

/* What a broadcast or reduce is made of; zero for the others. */
struct coll_tree_info {
	int trees, deepest;	/* deepest: arcs from the root */
	int64_t rate;		/* capacity that the trees take together */
	int64_t rate_bound;	/* of the least cut */
	int batches;		/* that go down the deepest tree */
	int steps;
	int64_t load_num, load_den;	/* T_B in M over a unit of capacity: exactly, or where
					 * arcs differ or are parallel at most; 0 where
					 * one does not fit */
};

/*
 * The best schedule, replayed.
 *
 * Broadcast: lambda = the least cut from the root. Arborescences of weights w
 * that add up to lambda, lambda/2, lambda/4, .. are packed (graph_pack_trees):
 * many trees have more rate, few are shallower, and one is as deep as the
 * farthest rank. More than 2^21 / m trees are only made where all ranks are
 * neighbours; elsewhere the rate stays below the cut's. Where trees and arcs are few,
 * the best of several orders of the arcs is taken. A tree of depth d forwards a batch a step, w/D
 * of the vector, through all its levels at once: S steps take S - d + 1 batches through it,
 * D = sum of w (S - d + 1), and T_B = S/D M/b, b of a unit of capacity. Of all
 * packings and S that with the least S (alpha + M/(b D)) is made, where a
 * hop, a message and the largest latency of an arc are added to alpha; every S is tried. Without a
 * cost, S is the least that brings T_B of the largest packing within 1/16 of
 * its limit. Either is limited so that a schedule keeps to 2^24 transfers (2^22
 * without a cost), or N(N-1) where that is more.
 *
 * Scatter: a flow of least hops that takes P chunks to every rank and fills
 * arcs as the bound says (Newton), on shortest paths only where that suffices,
 * falls into paths. A chunk with more hops to go passes first. Steps: as few as
 * the longest path has, each chunk as early as the loads that later steps
 * cannot avoid allow; or the same number of chunks a unit of capacity in every
 * step, several such numbers. The best by the cost, else by T_B and then steps.
 *
 * Reduce and gather are the reverse of the other two on the transposed digraph.
 *
 * t stays the caller's. WEFT_EINVAL, WEFT_EINFEASIBLE (a rank cannot be
 * reached), WEFT_EUNSUPPORTED (topo_check_plain), WEFT_ELIMIT. O(trees * m)
 * short flows, and the transfers: of a broadcast at least N(N-1), as it has N shards.
 */
int coll_tree_make(const struct topo *t, const struct coll_tree_options *opt,
		   struct coll_sched **out, struct coll_tree_info *info, struct err *err);

/* The figures of a broadcast or reduce that coll_tree_make would make, and nothing made:
 * WEFT_EINVAL for other collectives, else its errors. A few packings of trees. */
int coll_tree_figures(const struct topo *t, const struct coll_tree_options *opt,
		      struct coll_tree_info *info, struct err *err);

#endif
