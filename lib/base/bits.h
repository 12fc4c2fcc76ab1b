/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets as rows of 64-bit words, bit v % 64 of word v / 64 for number v. On
 * x86 the functions come once for each generation of processors and the
 * loader takes the fastest that runs: the results are the same.
 */
#ifndef WEFT_LIB_BASE_BITS_H
#define WEFT_LIB_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool bits_has(const uint64_t *row, int v)
{
	return row[v / 64] >> (v % 64) & 1;
}

static inline void bits_add(uint64_t *row, int v)
{
	row[v / 64] |= UINT64_C(1) << (v % 64);
}

/* Members of a; of a and b. */
int64_t bits_count(const uint64_t *a, int words);
int64_t bits_count_and(const uint64_t *a, const uint64_t *b, int words);

/* Removes from `from` what is in `in` and not in `out` (NULL: the empty set),
 * the `max` smallest members of it; returns how many that were. */
int64_t bits_take(uint64_t *from, const uint64_t *in, const uint64_t *out, int64_t max, int words);

/* to |= from. */
void bits_or(uint64_t *to, const uint64_t *from, int words);

/* once_to = once | a, twice_to = twice | (once & a): who is in one, who in two
 * of the sets so far, with one more set. */
void bits_twice(uint64_t *once_to, uint64_t *twice_to, const uint64_t *once,
		const uint64_t *twice, const uint64_t *a, int words);

/* columns[v], v < 64: bit k is bit v of rows[k], for n <= 64 rows. */
void bits_turn(const uint64_t *rows, int n, uint64_t *columns);

#endif
