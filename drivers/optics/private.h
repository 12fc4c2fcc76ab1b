/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that pack, read and keep ring programs. */
#ifndef WEFT_DRIVERS_OPTICS_PRIVATE_H
#define WEFT_DRIVERS_OPTICS_PRIVATE_H

#include "drivers/optics/optics.h"
#include "lib/base/buf.h"

/* Version, fibres, nodes (2), channels (2), steps (4), settings (4). */
#define RING_PROGRAM_HEAD 14
#define RING_PROGRAM_VERSION 1

/* A step's first byte; from bit 2 on one bit a mode that has runs. */
#define RING_STEP_FULL 1u	/* from rings that all pass */
#define RING_STEP_TRANSPOSED 2u	/* places count channels before nodes */
#define RING_STEP_UNUSED 0xc0u

/* Little-endian, `bytes` of it. */
static inline void optics_put_le(uint8_t *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		p[i] = (uint8_t)(v >> (8 * i));
	}
}

static inline uint64_t optics_get_le(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++) {
		v |= (uint64_t)p[i] << (8 * i);
	}
	return v;
}

/* Seven bits a byte, the lowest first, the top bit set but in the last. */
void optics_put_number(struct buf *b, uint32_t v);

void ring_cells_sort(struct ring_cells *c, struct ring_cells *spare);
/* What leads from one list to the other, both sorted. */
void ring_cells_diff(const struct ring_cells *from,
		     const struct ring_cells *to, struct ring_cells *out);
/* Turns the two inner dimensions of a place round: from (channel, node) to
 * (node, channel), or back. */
uint32_t ring_place_transpose(const struct ring_geometry *g, uint32_t at, bool to_nodes_first);

#endif
