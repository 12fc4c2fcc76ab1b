/* A program of a few settings as the one program of a ring. */
#ifndef WEFT_TESTS_UNIT_PACKED_H
#define WEFT_TESTS_UNIT_PACKED_H

#include <stdlib.h>
#include <string.h>

#include "tests/light_program.h"

/* A second one into the same ring; nobody else has the window. */
static inline void pack_into(struct light_ring *r, const char *name, int nodes,
			     int channels, int fibres,
			     struct light_window window,
			     const struct light_program *p)
{
	const struct light_geometry g = { (uint16_t)nodes, (uint16_t)channels,
					  (uint8_t)fibres };
	struct light_pack pack;

	if (light_pack_make(&pack, name, &window, &g, p, NULL) ||
	    light_ring_add(r, &pack, NULL)) {
		abort();
	}
}

/* The whole ring; nothing for a program without steps. */
static inline struct light_ring packed(int nodes, int channels, int fibres,
				       const struct light_program *p)
{
	const struct light_geometry g = { (uint16_t)nodes, (uint16_t)channels,
					  (uint8_t)fibres };
	struct light_ring r = { 0 };

	if (p->steps) {
		pack_into(&r, "job", nodes, channels, fibres, whole_ring(&g),
			  p);
	}
	return r;
}

#endif
