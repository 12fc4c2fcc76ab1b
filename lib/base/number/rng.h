/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers (splitmix64): same seed, same sequence, anywhere. */
#ifndef WEFT_LIB_BASE_NUMBER_RNG_H
#define WEFT_LIB_BASE_NUMBER_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state;
};

/* The splitmix64 finaliser; also a good integer hash. */
static inline uint64_t rng_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline void rng_seed(struct rng *r, uint64_t seed)
{
	r->state = seed;
}

static inline uint64_t rng_u64(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return rng_mix(r->state);
}

/* Uniform in 0..n-1 (n > 0), without modulo bias worth speaking of. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return (uint64_t)(((__uint128_t)rng_u64(r) * n) >> 64);
}

#endif
