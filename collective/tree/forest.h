/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forests: how the data of many roots spreads over a digraph, in what shares, and not yet when.
 *
 * A tree carries a share of what is at its root to all terminals, along arcs of a logical
 * digraph, or sums what is at all terminals on its way to the root. The nodes of the logical
 * digraph are those that hold data: terminals, and memories that trees may span; its arcs
 * are paths through switches. Packings of arborescences (Edmonds 1973) and linear programs make
 * forests; schedules put them into steps.
 */
#ifndef WEFT_COLLECTIVE_TREE_FOREST_H
#define WEFT_COLLECTIVE_TREE_FOREST_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "topology/topology.h"

/* One tree. */
struct coll_forest_tree {
	int32_t root;		/* a terminal */
	bool inwards;		/* sums on the way to the root; else copies from it */
	int64_t weight;		/* > 0 */
	int32_t *via;		/* by node of the logical digraph: its arc into the node, inwards
				 * out of it; -1: the root, and memories that it leaves out */
	int32_t depth;		/* arcs on the longest path */
};

/* Physical arcs that are one logical arc, or part of it by weight, where switches are on the
 * way. */
struct coll_forest_route {
	int32_t arc;		/* logical */
	int32_t weight;		/* > 0 */
	int32_t first, n;	/* in hops */
};

struct coll_forest {
	struct topo *logical;	/* owned, frozen */
	VEC(struct coll_forest_route) routes;	/* by logical arc; empty: the logical digraph is
						 * the physical one, arc for arc */
	VEC(int32_t) hops;	/* physical arcs */
	struct topo_group *group;	/* owned, of the logical digraph: trees stand for their
					 * images. NULL: none */
	VEC(struct coll_forest_tree) trees;	/* of the first terminal of each orbit */
	int64_t share;		/* of an all-gather: the weights of a root's trees add up to
				 * it, and it is one shard */
	mpq_t time;		/* shard times of the fullest arc or shared limit when all has
				 * passed: shards per unit of capacity; see coll_forest_init */
};

/* An empty forest, and what it owns freed: init before the first use, fini after the last, also
 * after errors. */
void coll_forest_init(struct coll_forest *f);
void coll_forest_fini(struct coll_forest *f);

/*
 * The trees of `other` beside those of f, both of one digraph with as many terminals: of an
 * all-reduce, those that sum beside those that copy. Weights become comparable, shares equal; time
 * is the sum of both. other is empty after that, to be finished. WEFT_EINVAL where one has a group
 * or routes and the other has not the same; WEFT_ELIMIT for weights beyond 2^62. O(nodes of all
 * trees + arcs).
 */
int coll_forest_join(struct coll_forest *f, struct coll_forest *other, struct err *err);

#endif
