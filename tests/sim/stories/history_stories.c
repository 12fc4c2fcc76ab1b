/* SPDX-License-Identifier: Apache-2.0 */
/* What the history takes for explained, and what not: calls one after the other, each a second. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/cluster/history.h"
#include "tests/sim/kernel/sim.h"
#include "tests/sim/story.h"

/* Steps: a write that is done (W), refused (F) or of unknown outcome (U); a read (R), one that
 * began before the last step (O); a value of its own accord (I). Values: y, n; n at first. */
static const struct {
	const char *steps;
	bool explained;
} cases[] = {
	{ "Rn", true },		{ "Ry", false },
	{ "WyRy", true },	{ "WyRn", false },
	{ "FyRn", true },	{ "FyRy", false },
	{ "UyRy", true },	{ "UyRn", true },
	{ "UyRnRy", true },	/* it may take effect late */
	{ "UyRyRn", false },	{ "UyRyWnRn", true },
	{ "WyWnRn", true },	{ "WyWnRy", false },
	{ "WyOn", true },	{ "WyOy", true },
	{ "WyWnOy", true },	{ "WyRyInRn", true },
	{ "WyWnIyRyRn", false },
};

static void step(const char *target, char kind, const char *value)
{
	const int64_t begin = sim_now();
	int call;

	sim_sleep(SIM_S);
	switch (kind) {
	case 'R':
		history_read("story", target, value, begin + 1);
		break;
	case 'O':
		history_read("story", target, value, begin - SIM_S / 2);
		break;
	case 'I':
		history_by_itself(target, value, begin, sim_now());
		break;
	default:
		call = history_begin("story", target, value);
		sim_sleep(SIM_S);
		history_end(call, kind == 'W' ? HISTORY_DONE : kind == 'F' ? HISTORY_REFUSED :
			    HISTORY_UNKNOWN, NULL);
	}
}

static int run_cases(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char target[32];

		snprintf(target, sizeof(target), "case %zu", i);
		history_initial(target, "n");
		for (const char *s = cases[i].steps; *s; s += 2) {
			step(target, s[0], s[1] == 'y' ? "y" : "n");
		}
		if (history_is_explained(target) != cases[i].explained) {
			sim_fail("history", "%s is %sexplained", cases[i].steps,
				 cases[i].explained ? "not " : "");
		}
	}
	return 0;
}

static void run_explained(void)
{
	sim_start("room", run_cases, (const char *const[]){ "cases", NULL });
	sim_run(1000 * SIM_S);
	history_clear();
}

const struct story history_stories[] = {
	{ "history-explained", "what may have been read after what was asked, and what not",
	  run_explained },
	{ NULL, NULL, NULL },
};
