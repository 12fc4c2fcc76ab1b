/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a small world a test goes through. */
#ifndef WEFT_TESTS_WORLD_H
#define WEFT_TESTS_WORLD_H

/* `all` where the program runs without sanitizers, `some` with them: the
 * mathematics is shown by the first, that memory is in order by the second.
 * Programs that use it stand in the Makefile's PLAIN_TESTS. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALL_OR_SOME(all, some) (some)
#else
#define ALL_OR_SOME(all, some) (all)
#endif

#endif
