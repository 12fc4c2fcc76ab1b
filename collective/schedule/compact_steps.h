/* Transfers moved to other steps, where links are idle. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_COMPACT_STEPS_H
#define WEFT_COLLECTIVE_SCHEDULE_COMPACT_STEPS_H

#include "collective/schedule/schedule.h"

/*
 * The same transfers in other steps: each as early as what it needs is there
 * and its arc has room below the fullest arc of that step, then each as late
 * as what needs it allows, in turns while T_B falls. So the all-gather of a
 * shard begins while other shards are still being summed, and deliveries that
 * nobody waits for give way. Steps that become empty are left out: neither
 * steps nor T_B ever rise. Where every arc is full in every step nothing
 * moves. In batches (pipeline.h) more can be gained, for more steps.
 *
 * New schedule, verified. WEFT_EUNSUPPORTED for all-to-all, broadcast and
 * schedules with light, WEFT_ELIMIT when capacities have no common multiple
 * below 2^31. O(transfers steps) a turn, at most OVERLAP_TURNS of them.
 */
#define OVERLAP_TURNS 8
int coll_overlap(const struct coll_sched *s, struct coll_sched **out,
		 struct err *err);

#endif
