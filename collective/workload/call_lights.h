/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light that changes within a collective: a few circuits of each rank, which go elsewhere from one
 * step to the next.
 *
 * Ranks are alike: in a step every rank r has circuits to r + g, modulo the ranks, for the
 * generators g of the step. Steps of the same generators follow each other without a change.
 */
#ifndef WEFT_COLLECTIVE_WORKLOAD_CALL_LIGHTS_H
#define WEFT_COLLECTIVE_WORKLOAD_CALL_LIGHTS_H

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"

#define CALL_MAX_RANKS 1024
#define CALL_MAX_PORTS 16

struct call_query {
	enum coll_kind kind;	/* all-gather, reduce-scatter, all-reduce, all-to-all */
	int ranks, ports;	/* circuits out of each rank, and into it */
	struct coll_cost cost;	/* size, alpha, link_bps, retune_ns of a change of light; no other
				 * times */
	uint64_t seed;		/* of the search */
};

struct call_made {
	struct coll_sched *sched;	/* verified; the caller's */
	int steps, changes;	/* the first light is there when the call begins */
	int64_t time_ns;	/* of coll_time */
	int64_t bound_ns;	/* of any light whatever, changed for nothing: alpha times log(n) of
				 * base ports + 1, and all ports busy with what leaves a rank */
};

/*
 * A fast schedule. What gathers or sums goes by digits of any radices, which are the best of such:
 * the steps of a digit have one light, and the volume is the least there is. An all-to-all goes
 * over sequences of generators found by annealing, from the best of radices alike and of a light
 * for every few ranks, and from light that stays; what is for the rank s further takes the fewest
 * steps whose generators add up to s. Nothing proves that it is the fastest. WEFT_EINVAL: ranks,
 * ports or cost; WEFT_EUNSUPPORTED: other collectives. O(ranks^2), of an all-to-all ranks times
 * steps up to 24,000 times, of large ones fewer.
 */
int call_lights_make(const struct call_query *q, struct call_made *out, struct err *err);

#endif
