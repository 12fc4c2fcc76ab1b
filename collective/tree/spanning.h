/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce along spanning trees that are used in both directions. */
#ifndef WEFT_COLLECTIVE_TREE_SPANNING_H
#define WEFT_COLLECTIVE_TREE_SPANNING_H

#include "collective/tree/forest.h"

/* Trees that are enough: their time is then within some percent of the least, and more only cost
 * more work for each batch. */
#define COLL_SPANNING_TREES 128

/* Whether a digraph is plain, has two ranks, and all arcs have their reverse, of the same capacity,
 * or all but one in 16 and the others join all ranks. O(m degree). */
bool coll_forest_has_spanning(const struct topo *t);

/*
 * A forest for an all-reduce on such a digraph: spanning trees of equal weight, each rooted in its
 * middle, inwards and outwards, on the arcs that have their reverse.
 * As many as max_trees (>= 1) allows that are a multiple of the denominator of the least time in
 * lowest terms, so that T_B, where all have one, is that of coll_bound(), which no all-reduce is
 * below; where that is more than max_trees, so many or up to a quarter less, at the least time in
 * which they fit.
 *
 * *out: after coll_forest_init; coll_forest_fini also after an error. t stays the caller's.
 * WEFT_EUNSUPPORTED: coll_forest_has_spanning() says no; WEFT_EINFEASIBLE: not
 * connected; WEFT_EINVAL, WEFT_ELIMIT. A few times a maximum flow a rank, and
 * graph_pack_spanning_trees().
 */
int coll_forest_allreduce(const struct topo *t, int max_trees, struct coll_forest *out,
			  struct err *err);

#endif
