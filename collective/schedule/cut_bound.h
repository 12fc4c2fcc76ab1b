/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds by cuts, for those who have a digraph and no schedule yet. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_CUT_BOUND_H
#define WEFT_COLLECTIVE_SCHEDULE_CUT_BOUND_H

#include "collective/schedule/schedule.h"
#include "lib/graph/graph.h"

/*
 * The least T_B of any schedule of this collective on a digraph whose nodes drive so many
 * ports (>= 1), in units of M/B, by what has to cross the boundaries of sets X of
 * nodes with N ranks in all:
 *
 *   all                 what a node takes in: (N-1)/N; broadcast, reduce 1; all-reduce 2(N-1)/N,
 *                       or 1 where switches reduce
 *   all-gather          ports / N * max over X with a rank: ranks outside / capacity into X
 *   broadcast           ports / min over X without the root: capacity into X
 *   scatter             ports / N * max over X without the root: ranks in X / capacity into X
 *   all-reduce          ports * max over partitions into p parts with ranks: 2 (p - 1) / capacity
 *                       into the parts, and over X with a part of the ranks: 1 / capacity into
 *                       X. Partitions are left out where ranks times arcs exceed 2^23, and
 *                       where nodes that are no ranks reduce
 *
 * Reduce-scatter, reduce and gather as all-gather, broadcast and scatter on the
 * transposed digraph; all-to-all only as all. Shared limits count where their arcs have a common
 * end. On digraphs of terminals without limits those of copies are attained, in the
 * limit of many chunks (Edmonds 1973), and that of all-reduce if every arc has its
 * reverse.
 *
 * g: a group of automorphisms, or NULL; it saves work. root: where coll_has_root. Not for schedules
 * with light, whose arcs are others in every step. WEFT_EINVAL for a root that is none,
 * WEFT_EINFEASIBLE when a rank is cut off, WEFT_ELIMIT when capacities, in lowest terms, add
 * up to more than 2^40. A few searches a rank of each orbit; all-reduce a few maximum
 * flows a rank.
 */
int coll_bound(const struct topo *t, const struct topo_group *g, enum coll_kind kind, int root,
	       int ports, mpq_t bound, struct err *err);

/* The arcs of t for lib/graph, with capacities in lowest terms, those of shared limits
 * too: their own are *unit times as much. Self-loops have 0. arcs: topo_m(t) of them.
 * WEFT_ELIMIT as above. O(m). */
int coll_cut_arcs(const struct topo *t, struct graph_arc *arcs, int64_t *unit, struct err *err);

/* The least T_B by what a node must take in or send out, in M/B, whatever the arcs: that of ranks
 * of which none has less links than another, and no cut is narrower. */
void coll_node_bound(enum coll_kind kind, const struct topo *t, mpq_t bound);

#endif
