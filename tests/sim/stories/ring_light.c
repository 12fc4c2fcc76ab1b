/* SPDX-License-Identifier: Apache-2.0 */
/* Rings in stories: their light, played step by step, and their programs. */
#include "tests/sim/stories/ring_light.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/sim/stories/ring_replay.h"
#include "tests/sim/stories/tell.h"

const char *ring_play(const char *ring, const char *job)
{
	const char *text = control(ring, "light %s", job);
	struct buf b = { 0 };
	int steps = 0;

	sscanf(text, "%*s %*s %*s %d", &steps);
	buf_str(&b, text);
	for (int i = 1; i < steps; i++) {
		buf_str(&b, control(ring, "step %s", job));
	}
	control(ring, "step %s", job);		/* back to the first */
	return buf_steal(&b);
}

const char *ring_schedule(const char *job)
{
	expect(0, "its schedule", "schedule export --job %s --to json -o schedule.json", job);
	return read_text("schedule.json");
}

const char *ring_check(const char *name, const char *ring, const char *job, const int *at)
{
	const char *trace = ring_play(ring, job);
	const char *wrong = ring_replay(ring_schedule(job), trace, at);

	if (wrong) {
		sim_tell("%s", wrong);
	}
	check_of(name, !wrong, "what it promises is there");
	return trace;
}

const char *ring_touched(const char *ring, const char *job)
{
	const char *text = control(ring, "slots");
	char name[40], numbers[40];
	int generation, writes;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (sscanf(text, "slot %*d program %39s generation %d writes %d", name, &generation,
			   &writes) == 3 && same(name, job)) {
			snprintf(numbers, sizeof(numbers), "%d %d", generation, writes);
			return with(numbers, "\n", "");
		}
	}
	return "";
}
