/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forests that attain the least cut: packed arborescences of all roots at once.
 *
 * What is at the terminals outside a set X of nodes and wanted inside has to get into it: an
 * all-gather takes at least T* = max over X of terminals outside X / capacity into X. Edmonds
 * (1973) says that this is enough; ForestColl (Zhao et al., arXiv 2402.06787) made schedules
 * of it. Everything here is exact and made of maximum flows.
 */
#ifndef WEFT_COLLECTIVE_TREE_PACK_PACK_H
#define WEFT_COLLECTIVE_TREE_PACK_PACK_H

#include "collective/schedule/schedule.h"
#include "collective/tree/forest.h"

struct coll_pack_options {
	enum coll_kind kind;	/* all-gather, reduce-scatter; broadcast, reduce */
	int root;		/* of the last two */
	int64_t share;		/* weights of a root's trees together, that many of them at most:
				 * the best time for it. 0: the least share that attains T*, or a
				 * few times that where fewer do not */
	int loss;		/* thousandths of the time that may be lost for shallower trees */
};

#define COLL_MAX_PACK_SHARE (INT64_C(1) << 40)
#define COLL_MAX_PACK_LOSS 1000000

/*
 * A forest for the digraph. Its time is that of the fullest arc by what the trees send: T* where
 * opt->share is 0 and no switch has more capacity out than in (for sums: in than out); of a
 * digraph with such switches mostly. Of a broadcast or reduce, only the root has trees, which carry
 * its vector as the one shard. Sums: trees of the transposed digraph, reversed.
 *
 * Switches and memories, whatever they can do, only forward: the forest's digraph has the
 * terminals, and arcs which are each one path, of weight 1; their capacities are the units that may
 * pass within the time, their latencies the sums. (ForestColl, section on switches: splitting off.)
 * Of a digraph of terminals only, the forest's one is a copy.
 *
 * Time: N short flows a few times for T* (Newton's method) and switches, then
 * graph_pack_from_roots(). *out: after coll_forest_init; coll_forest_fini also after an error.
 * t stays the caller's. WEFT_EINVAL (other kinds, roots that are none, shares),
 * WEFT_EUNSUPPORTED (shared limits; a share that does not go through switches),
 * WEFT_EINFEASIBLE (a terminal is cut off), WEFT_ELIMIT (capacities in lowest terms add up to more
 * than 2^40; too many trees, or pairs of arcs at switches).
 */
int coll_forest_pack(const struct topo *t, const struct coll_pack_options *opt,
		     struct coll_forest *out, struct err *err);

/*
 * A forest for an all-reduce on a plain digraph some of whose ranks have thinner links than most:
 * trees of these ranks, inwards and outwards, each way in half of what links pass. Its time is the
 * least in which each rank takes in and sends out what is not summed in it, or up to a quarter
 * more, where sets of ranks need it.
 *
 * *out: after coll_forest_init; coll_forest_fini also after an error. t stays the caller's.
 * WEFT_EUNSUPPORTED: not plain, no such ranks, fewer than three, sets that need more; errors of
 * graph_pack_from_roots(), which takes most of the time.
 */
int coll_forest_few_roots(const struct topo *t, struct coll_forest *out, struct err *err);

#endif
