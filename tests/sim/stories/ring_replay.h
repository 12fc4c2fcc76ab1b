/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the light of an emulated ring does, against the schedule that it is to carry: by what was
 * really dropped and added, and by nothing that weft says of it.
 */
#ifndef WEFT_TESTS_SIM_RING_REPLAY_H
#define WEFT_TESTS_SIM_RING_REPLAY_H

#include <stdint.h>

#define REPLAY_NODES 16

/* schedule: as `weft schedule export --to json` prints it; trace: what the emulator said to
 * `light` and then `step` for every step; at: the ring's node of each rank. What is wrong: a
 * lightpath that was not there, other light, a node that has not all that its collective promises;
 * NULL: nothing. */
const char *ring_replay(const char *schedule, const char *trace, const int *at);

/* Times in ns. */
struct ring_times {
	int nodes;			/* of the ring */
	int64_t retune, conversion;
	int64_t span_delay;		/* of light from a node to the next */
	double bits_per_ns;
	int64_t size_bytes, time_ns;	/* of the job, as planned */
};

/* That a ring retuned while others carried data, and in time: tunings is what the emulator said to
 * `tunings`. What is wrong: a resonator that is not as the light of its step wants it, or was set
 * while light was on it, steps that end later than planned, or none that hid any; NULL: nothing. */
const char *ring_overlap(const char *schedule, const char *trace, const char *tunings,
			 const struct ring_times *t);

#endif
