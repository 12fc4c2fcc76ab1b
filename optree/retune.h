/*
 * Overlap of retuning, resonator by resonator. A node has two for every
 * channel of every fibre: one drops, and behind it one adds. Off resonance
 * they let light pass. Dropped light does not reach the one that adds, added
 * light does not meet the one that drops. A resonator is set anew only while
 * no light touches it (its own or passing), and that takes the retuning time.
 */
#ifndef WEFT_OPTREE_RETUNE_H
#define WEFT_OPTREE_RETUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "optree/optree.h"

/* A resonator is set from the end of step `after` on, for step `step`. */
struct retune_change {
	int32_t step;
	int32_t after;		/* -1: from the beginning */
	int64_t resonator;	/* 2 * (((dir * fibres + fibre) * channels +
				 * channel) * ring nodes + position), and 1
				 * more for the one that adds */
	bool on;
};

/* Times count in 1 / (channel_bps * chunks) ns, so they are whole. A step
 * ends when its data has arrived and is converted. */
struct retune_timeline {
	int steps;
	__int128 *begin, *end;
	VEC(struct retune_change) changes;	/* by step */
};

/* The earliest times of a written schedule, and what is set when. A
 * resonator that can stay as it is is not set. O(hops of all lights). *out: retune_fini(). */
int retune_timeline(const struct optree_params *p, const struct coll_sched *s,
		    struct retune_timeline *out, struct err *err);
void retune_fini(struct retune_timeline *t);

/*
 * The proof, which takes nothing from how the timeline was found: steps
 * follow each other and last as long as their data; every resonator is as
 * its step's light wants it; none is set while light touches it, nor faster than
 * it can be. WEFT_EVERIFY names step, position, fibre and channel.
 * O(hops of all lights + changes).
 */
int retune_check(const struct optree_params *p, const struct coll_sched *s,
		 const struct retune_timeline *t, struct err *err);

#endif
