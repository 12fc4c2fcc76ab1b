/* SPDX-License-Identifier: Apache-2.0 */
/* Rings in stories (tell.h): what their light does, and which programs they have. */
#ifndef WEFT_TESTS_SIM_RING_LIGHT_H
#define WEFT_TESTS_SIM_RING_LIGHT_H

/* A job's program once round: what its light did. */
const char *ring_play(const char *ring, const char *job);
/* Of weft; a check that it is served. */
const char *ring_schedule(const char *job);
/* A check that every node got what the collective promises; at: the ring's node of each rank. The
 * trace of the light. */
const char *ring_check(const char *name, const char *ring, const char *job, const int *at);
/* Of a program's slot: other numbers when it was loaded, or written. "": it has none. */
const char *ring_touched(const char *ring, const char *job);

#endif
