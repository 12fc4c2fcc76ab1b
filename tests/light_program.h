/* What tests and benchmarks ask of ring programs. */
#ifndef WEFT_TESTS_LIGHT_PROGRAM_H
#define WEFT_TESTS_LIGHT_PROGRAM_H

#include <stdbool.h>

#include "drivers/optics/program.h"

/* The same settings in the same order. */
static inline bool same_program(const struct light_program *a,
				const struct light_program *b)
{
	if (a->steps != b->steps || a->n != b->n) {
		return false;
	}
	for (size_t i = 0; i < a->n; i++) {
		if (light_tune_cmp(&a->v[i], &b->v[i]) != 0 ||
		    a->v[i].mode != b->v[i].mode) {
			return false;
		}
	}
	return true;
}

/* All nodes and channels of a ring. */
static inline struct light_window whole_ring(const struct light_geometry *g)
{
	return (struct light_window){ .nodes = g->nodes,
				      .channels = g->channels };
}

#endif
