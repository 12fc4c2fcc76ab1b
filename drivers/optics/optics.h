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

#define RING_DIGEST_LEN 32

/* A simplex cross-connect. Ports are 0-based (side, index) inside weft;
 * only a driver's dialect knows the device's own numbering. On an any-to-any
 * (duplex) switch both numbers are ports of the one side and in < out. */
struct optics_xc {
	int32_t in, out;
};

/* Directions round a ring: clockwise goes from ring position i to i+1. */
enum optics_dir { OPTICS_CW = 0, OPTICS_CCW = 1 };

/* What one ring resonator pair does in a step. Rings not named pass. */
enum resonator_mode { RESONATOR_ADD = 1, RESONATOR_DROP = 2, RESONATOR_ADD_DROP = 3 };

/* The setting of the resonators at ring position `node`, on one fibre of
 * one direction, for one channel, during one communication step. */
struct ring_setting {
	uint16_t step;
	uint16_t node;
	uint16_t channel;
	uint8_t dir;	/* enum optics_dir */
	uint8_t fibre;
	uint8_t mode;	/* enum resonator_mode */
};

/* A part of a ring that carries no light any more. */
enum ring_part {
	RING_RESONATOR = 1,	/* of node, direction, fibre, channel */
	RING_SPAN,		/* a fibre of a direction between node and the
				 * next one clockwise, whichever way it goes */
	RING_NODE,		/* all its resonators; light passes it */
};

/* Why a resonator does not hold its wave, as devices tell it. */
enum resonator_lock {
	RESONATOR_LOCKED,
	RESONATOR_NOT_STARTED,
	RESONATOR_NO_WAVE,
	RESONATOR_NOT_IN_RANGE,
	RESONATOR_DUPLICATE,
	RESONATOR_ZERO,
	RESONATOR_WRONG_LANE,	/* it holds the wave of another lane */
	RESONATOR_AT_LIMIT,	/* its tuner is at the end of its range */
	RESONATOR_LOCK_LOST,	/* it held its wave, and does no longer */
	RESONATOR_N_LOCKS
};

/* Fields that the part does not have are 0. */
struct ring_fault {
	uint8_t part;		/* enum ring_part */
	uint8_t dir, fibre;
	uint8_t why;		/* enum resonator_lock; 0: not known */
	uint16_t node, channel;
};

/* A ring's program: settings for steps 0..steps-1, sorted by step, node,
 * dir, fibre, channel; no two with the same key. Owned arrays. */
struct ring_settings {
	uint32_t steps;
	size_t n;
	struct ring_setting *v;
};

/* Order of tunes in a program. Negative, 0, positive. */
int ring_setting_cmp(const struct ring_setting *a, const struct ring_setting *b);

/* Sorts, merges ADD and DROP of the same key into ADD_DROP; two equal modes
 * on one key are WEFT_EINVAL naming step, node and channel. O(n log n). */
int ring_settings_normalise(struct ring_settings *p, struct err *err);

void ring_settings_fini(struct ring_settings *p);

/* qsort order: by part, node, direction, fibre, channel; why does not count,
 * it is no other part. */
int ring_fault_cmp(const void *a, const void *b);

#define RING_FAULT_TEXT 96	/* bytes of a part in words */
/* "node 2 cw fibre 0 channel 3: no wave found", "cw fibre 0 between nodes 7 and
 * 0", "node 5"; of a ring of so many nodes. */
void ring_fault_text(const struct ring_fault *d, int nodes,
		     char text[RING_FAULT_TEXT]);

/* "no wave found"; "unknown lock state" for what is none. */
const char *resonator_lock_text(unsigned lock);

/* qsort order: by in, then out. */
int optics_xc_cmp(const void *a, const void *b);

#endif
