/*
 * The values that describe light in a device, without any way to change it:
 * cross-connects of space switches and step programs of ring fabrics. Pure
 * data; planning, store, apply and drivers all speak in these.
 */
#ifndef WEFT_DRIVERS_OPTICS_OPTICS_H
#define WEFT_DRIVERS_OPTICS_OPTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define LIGHT_DIGEST_LEN 32

/* A simplex cross-connect. Ports are 0-based (side, index) inside weft;
 * only a driver's dialect knows the device's own numbering. On an any-to-any
 * (duplex) switch both numbers are ports of the one side and in < out. */
struct light_xc {
	int32_t in, out;
};

/* Directions round a ring: clockwise goes from ring position i to i+1. */
enum light_dir { LIGHT_CW = 0, LIGHT_CCW = 1 };

/* What one ring resonator pair does in a step. Rings not named pass. */
enum light_mode { LIGHT_ADD = 1, LIGHT_DROP = 2, LIGHT_ADD_DROP = 3 };

/* The setting of the resonators at ring position `node`, on one fibre of
 * one direction, for one channel, during one communication step. */
struct light_tune {
	uint16_t step;
	uint16_t node;
	uint16_t channel;
	uint8_t dir;	/* enum light_dir */
	uint8_t fibre;
	uint8_t mode;	/* enum light_mode */
};

/* A part of a ring that carries no light any more. */
enum light_part {
	LIGHT_RESONATOR = 1,	/* of node, direction, fibre, channel */
	LIGHT_SPAN,		/* a fibre of a direction between node and the
				 * next one clockwise, whichever way it goes */
	LIGHT_NODE,		/* all its resonators; light passes it */
};

/* Why a resonator does not hold its wave, as devices tell it. */
enum light_lock {
	LIGHT_LOCKED,
	LIGHT_LOCK_NOT_STARTED,
	LIGHT_LOCK_NO_WAVE,
	LIGHT_LOCK_NOT_IN_RANGE,
	LIGHT_LOCK_DUPLICATE,
	LIGHT_LOCK_ZERO,
	LIGHT_LOCK_ORDER,	/* it holds the wave of another lane */
	LIGHT_LOCK_LIMIT,	/* its tuner is at the end of its range */
	LIGHT_LOCK_LOST,	/* it held its wave, and does no longer */
	LIGHT_N_LOCKS
};

/* Fields that the part does not have are 0. */
struct light_dead {
	uint8_t part;		/* enum light_part */
	uint8_t dir, fibre;
	uint8_t why;		/* enum light_lock; 0: not known */
	uint16_t node, channel;
};

/* A ring's program: settings for steps 0..steps-1, sorted by step, node,
 * dir, fibre, channel; no two with the same key. Owned arrays. */
struct light_program {
	uint32_t steps;
	size_t n;
	struct light_tune *v;
};

/* Order of tunes in a program. Negative, 0, positive. */
int light_tune_cmp(const struct light_tune *a, const struct light_tune *b);

/* Sorts, merges ADD and DROP of the same key into ADD_DROP; two equal modes
 * on one key are WEFT_EINVAL naming step, node and channel. O(n log n). */
int light_program_normalise(struct light_program *p, struct err *err);

void light_program_fini(struct light_program *p);

/* qsort order: by part, node, direction, fibre, channel; why does not count,
 * it is no other part. */
int light_dead_cmp(const void *a, const void *b);

#define LIGHT_DEAD_TEXT 96	/* bytes of a part in words */
/* "node 2 cw fibre 0 channel 3: no wave found", "cw fibre 0 between nodes 7 and
 * 0", "node 5"; of a ring of so many nodes. */
void light_dead_text(const struct light_dead *d, int nodes,
		     char text[LIGHT_DEAD_TEXT]);

/* "no wave found"; "unknown lock state" for what is none. */
const char *light_lock_text(unsigned lock);

/* qsort order: by in, then out. */
int light_xc_cmp(const void *a, const void *b);

#endif
