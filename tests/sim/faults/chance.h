/* SPDX-License-Identifier: Apache-2.0 */
/* Chance of one fault alone: what it draws does not shift what others do. splitmix64. */
#ifndef WEFT_TESTS_SIM_CHANCE_H
#define WEFT_TESTS_SIM_CHANCE_H

#include <stdint.h>

static inline uint64_t chance_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* low <= x < high. */
static inline int64_t chance_between(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)(chance_next(state) % (uint64_t)(high - low));
}

#endif
