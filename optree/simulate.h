/*
 * A step simulator of the ring, held against the closed forms.
 *
 * Every (direction, link, fibre, channel) is a slot that a lightpath holds
 * from when its resonators are tuned until its last flit has left the light.
 * A step begins when all of the one before has arrived. With ring.overlap a
 * slot is retuned as soon as the step that used it last is over, while others
 * carry data; a lightpath stays tuned until another takes one of its slots.
 */
#ifndef WEFT_OPTREE_SIMULATE_H
#define WEFT_OPTREE_SIMULATE_H

#include <stdint.h>

#include "collective/collective.h"
#include "lib/base/err.h"
#include "optree/optree.h"

struct optree_sim_params {
	struct optree_params ring;	/* n, channels, fibres, shard_bytes,
					 * channel_bps */
	int64_t retune_ns;	/* of the resonators, before each step; with
				 * ring.overlap each step ends with
				 * ring.convert_ns, which is not in it */
	int64_t flit_bytes;	/* whole flits are sent (the paper: 32) */
	int64_t flit_cycle_ps;	/* to convert a flit (the paper: one cycle) */
};

struct optree_sim {
	int steps;
	int64_t time_ns;
};

/*
 * Verifies the schedule (with light) and runs it. WEFT_EVERIFY when it does
 * not verify or two lightpaths would hold a slot at a time, WEFT_EINVAL.
 * O(transfers + hops of all lights).
 */
int optree_simulate(const struct coll_sched *s,
		    const struct optree_sim_params *p,
		    struct optree_sim *out, struct err *err);

#endif
