/* Schedules in batches that overlap. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_PIPELINE_H
#define WEFT_COLLECTIVE_SCHEDULE_PIPELINE_H

#include "collective/schedule/schedule.h"

#define COLL_MAX_BATCHES 256

/*
 * Every shard in so many equal batches, each of which goes through s one step
 * after the one before: while the all-gather of one batch begins, the
 * reduce-scatter of the next ends, on links that would have been idle. Takes
 * steps + batches - 1 steps; T_B falls from the sum over steps of the
 * fullest arc towards the fullest arc's sum over steps, and never rises.
 * Where all arcs are full in all steps (T_B meets the bound that coll_verify
 * reports) nothing can be gained. WEFT_EINVAL for batches outside
 * 1..COLL_MAX_BATCHES, WEFT_ELIMIT beyond COLL_MAX_CHUNKS chunks or
 * COLL_MAX_XFERS transfers, WEFT_EUNSUPPORTED for schedules with light.
 * O(batches * transfers log).
 */
int coll_pipeline(const struct coll_sched *s, int batches,
		  struct coll_sched **out, struct err *err);

/*
 * How many batches take the least time in the alpha-beta model, latencies of
 * arcs left out; 1 when none gains. Exact: all numbers up to `most`, itself at
 * most COLL_MAX_BATCHES, are tried. WEFT_EUNSUPPORTED for light,
 * WEFT_ELIMIT when capacities have no common multiple below 2^31. O((steps +
 * batches) * arcs) for each.
 */
int coll_pipeline_best(const struct coll_sched *s, const struct coll_cost *c,
		       int most, int *batches, struct err *err);

#endif
