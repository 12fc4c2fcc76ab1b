/* What fits a runtime when a schedule does not. */
#ifndef WEFT_COLLECTIVE_BFB_FEWER_CHUNKS_H
#define WEFT_COLLECTIVE_BFB_FEWER_CHUNKS_H

#include "collective/schedule/schedule.h"

/* Lowers s: 0, or the error of lower_schedule or mscclpp_lower. */
typedef int lower_try(const struct coll_sched *s, void *arg, struct err *err);

/*
 * A schedule of the same collective on the same digraph with fewer chunks a
 * shard, in one batch, which `lower` takes: breadth-first broadcast with as
 * many chunks as its exact loads need, when these are fewer, then with a half,
 * a quarter, ... of the chunks of s, the first that fits. One chunk is tried
 * before all others, as where that does not fit the others are not expected
 * to. What it costs in time, coll_verify tells. WEFT_ELIMIT: `lower` takes
 * none of them. WEFT_EUNSUPPORTED: no such schedules are made (all-to-all,
 * broadcast, schedules with light), or s has one chunk a shard. Any other error
 * is that of `lower` or of coll_bfb_cut. Caller frees *out (coll_free).
 * At most 2 + log2 P schedules are made and lowered.
 */
int lower_fit(const struct coll_sched *s, lower_try *lower, void *arg,
	      struct coll_sched **out, struct err *err);

#endif
