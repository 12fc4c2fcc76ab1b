/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules out of forests: when what goes along their trees crosses which arc. */
#ifndef WEFT_COLLECTIVE_TREE_STAGGER_STAGGER_H
#define WEFT_COLLECTIVE_TREE_STAGGER_STAGGER_H

#include "collective/schedule/schedule.h"
#include "collective/tree/forest.h"

struct coll_stagger_options {
	enum coll_kind kind;	/* not all-to-all, gather, scatter */
	const struct coll_cost *cost;	/* least time; NULL: so many steps are worth as much as the
					 * T_B that the forest allows */
	int steps_worth;	/* 0: 1000 */
	int batches;		/* 0: chosen; else a tree of the least weight passes so many, all
				 * of them alike */
	int64_t max_transfers;	/* beyond which long pipelines are not cut; 0: 3 million */
	double below_ns;	/* with a cost: what takes as long is not made; 0: all is */
};

/* What a schedule is made of. */
struct coll_stagger_info {
	int trees;		/* with their images */
	int deepest;		/* arcs from a root */
	int batches;		/* as in the options */
	int steps;
};

/*
 * A replayed schedule along the trees of a forest.
 *
 *   allgather       outwards trees of each rank, which weigh f->share
 *   reduce-scatter  inwards trees of each rank, likewise
 *   allreduce       outwards trees that weigh N shares in all, and of each root
 *                   inwards trees of the same weight: what is summed in a root goes
 *                   out from it as soon as the sum is complete
 *   broadcast, reduce  outwards or inwards trees of one root; its share is what they weigh
 *                   over N
 *
 * A shard is cut into K batches a tree of the least weight, chunks all, by weights exactly where
 * these are small and by largest remainders else. A batch at a node waits for the arcs of its tree
 * out of it. In a step every arc passes what waits and has the most arcs to go, until the step is
 * full; a step is as full as leaves no arc idle that would be full later, within limits
 * that set the number of steps. So arcs are busy from the first steps on, with what their
 * tails have. Beside it stands a batch after the other down all levels at once, in K + D - 1 steps
 * for trees of depth D, T_B = T (1 + (D - 1) / K) (optimal collectives, theorem 4), or
 * less. Of several K and limits the best is made; *out is NULL after no error where that is not
 * below the time in the options, and no K is tried where none can be.
 *
 * Routes through switches, shared limits: what counts are physical arcs, and the schedule
 * is embedded in `physical`, which stays the caller's; NULL or without routes: f->logical is
 * physical. With f->group it is compact.
 *
 * WEFT_EINVAL for other collectives, and trees that do not weigh what they should;
 * WEFT_ELIMIT, and what replay finds (WEFT_EVERIFY). O(K times arcs of all trees times
 * log) for each K and limit, of which some 20 are tried, less where a schedule has more
 * than 2^18 transfers.
 */
int coll_forest_schedule(const struct coll_forest *f, const struct topo *physical,
			 const struct coll_stagger_options *opt, struct coll_sched **out,
			 struct coll_stagger_info *info, struct err *err);

#endif
