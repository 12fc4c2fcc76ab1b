/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a small world a test goes through. */
#ifndef WEFT_TESTS_WORLD_H
#define WEFT_TESTS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* `all` where the program runs without sanitizers, `some` with them: the
 * mathematics is shown by the first, that memory is in order by the second.
 * Programs that use it stand in the Makefile's PLAIN_TESTS. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALL_OR_SOME(all, some) (some)
#else
#define ALL_OR_SOME(all, some) (all)
#endif

/* Whether row i of a long table is one of this time: every n-th, from which on is up to the commit
 * (WEFT_TURN, tests/run). By hand and in `make soak` all are. */
static inline bool in_turn(size_t i, size_t n)
{
	const char *turn = getenv("WEFT_TURN");

	return !turn || (i + strtoul(turn, NULL, 10)) % n == 0;
}

#endif
