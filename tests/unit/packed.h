/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a few settings as the one program of a ring. */
#ifndef WEFT_TESTS_UNIT_PACKED_H
#define WEFT_TESTS_UNIT_PACKED_H

#include <stdlib.h>
#include <string.h>

#include "tests/ring_settings.h"

/* A second one into the same ring; no other program has the window. */
static inline void pack_into(struct ring_programs *r, const char *name, int nodes,
			     int channels, int fibres,
			     struct ring_window window,
			     const struct ring_settings *p)
{
	const struct ring_geometry g = { (uint16_t)nodes, (uint16_t)channels,
					  (uint8_t)fibres };
	struct ring_program pack;

	if (ring_program_pack(&pack, name, &window, &g, p, NULL) ||
	    ring_programs_add(r, &pack, NULL)) {
		abort();
	}
}

/* The whole ring; nothing for a program without steps. */
static inline struct ring_programs packed(int nodes, int channels, int fibres,
					  const struct ring_settings *p)
{
	const struct ring_geometry g = { (uint16_t)nodes, (uint16_t)channels,
					  (uint8_t)fibres };
	struct ring_programs r = { 0 };

	if (p->steps) {
		pack_into(&r, "job", nodes, channels, fibres, whole_ring(&g),
			  p);
	}
	return r;
}

#endif
