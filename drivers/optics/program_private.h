/* Shared by the files that pack, read and keep ring programs. */
#ifndef WEFT_DRIVERS_OPTICS_PROGRAM_PRIVATE_H
#define WEFT_DRIVERS_OPTICS_PROGRAM_PRIVATE_H

#include "drivers/optics/program.h"
#include "lib/base/buf.h"

/* Version, fibres, nodes (2), channels (2), steps (4), settings (4). */
#define LIGHT_PACK_HEAD 14
#define LIGHT_PACK_VERSION 1

/* A step's first byte; from bit 2 on one bit a mode that has runs. */
#define LIGHT_STEP_FULL 1u	/* from rings that all pass */
#define LIGHT_STEP_TURNED 2u	/* places count channels before nodes */
#define LIGHT_STEP_UNUSED 0xc0u

/* Little-endian, `bytes` of it. */
static inline void light_put_le(uint8_t *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		p[i] = (uint8_t)(v >> (8 * i));
	}
}

static inline uint64_t light_get_le(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++) {
		v |= (uint64_t)p[i] << (8 * i);
	}
	return v;
}

/* Seven bits a byte, the lowest first, the top bit set but in the last. */
void light_put_number(struct buf *b, uint32_t v);

int light_cells_sort(struct light_cells *c, struct light_cells *spare,
		     struct err *err);
/* What leads from one list to the other, both sorted. WEFT_ENOMEM. */
int light_cells_diff(const struct light_cells *from,
		     const struct light_cells *to, struct light_cells *out);
/* Turns the two inner dimensions of a place round: from (channel, node) to
 * (node, channel), or back. */
uint32_t light_place_turned(const struct light_geometry *g, uint32_t at,
			    bool to_nodes_first);

#endif
