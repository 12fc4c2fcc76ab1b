/* SPDX-License-Identifier: Apache-2.0 */
/* What tests and benchmarks ask of ring programs. */
#ifndef WEFT_TESTS_RING_SETTINGS_H
#define WEFT_TESTS_RING_SETTINGS_H

#include <stdbool.h>

#include "drivers/optics/optics.h"

/* The same settings in the same order. */
static inline bool same_program(const struct ring_settings *a,
				const struct ring_settings *b)
{
	if (a->steps != b->steps || a->n != b->n) {
		return false;
	}
	for (size_t i = 0; i < a->n; i++) {
		if (ring_setting_cmp(&a->v[i], &b->v[i]) != 0 ||
		    a->v[i].mode != b->v[i].mode) {
			return false;
		}
	}
	return true;
}

/* All nodes and channels of a ring. */
static inline struct ring_window whole_ring(const struct ring_geometry *g)
{
	return (struct ring_window){ .nodes = g->nodes,
				      .channels = g->channels };
}

#endif
