/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a small world a test goes through. */
#ifndef WEFT_TESTS_WORLD_H
#define WEFT_TESTS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* `all` where the program runs without sanitizers, `some` with them: the
 * mathematics is shown by the first, that memory is in order by the second.
 * Programs that use it stand in the Makefile's PLAIN_TESTS. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALL_OR_SOME(all, some) (some)
#else
#define ALL_OR_SOME(all, some) (all)
#endif

/* Whether row i of a long table is one of this time: every n-th, from which on is up to the commit
 * (WEFT_TURN, tests/run). By hand and in `make soak` all are. Which part of a test runs is up to
 * the commit, too (WEFT_SHARD), and no part may meet the same rows each time. */
static inline bool in_turn(size_t i, size_t n)
{
	const char *turn = getenv("WEFT_TURN"), *shard = getenv("WEFT_SHARD");
	const char *parts = shard ? strchr(shard, '/') : NULL;
	const unsigned long n_parts = parts ? strtoul(parts + 1, NULL, 10) : 1;

	return !turn || (i + strtoul(turn, NULL, 10) / (n_parts ? n_parts : 1)) % n == 0;
}

#endif
