/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices of cubes whose cubes fail, while the switches are slow, late, deaf or disobedient, and
 * weftd is killed: the spare stands in, or why it does not is told, and no circuit of another
 * slice is touched. Four cubes of 3x3x3; each switch has an axis of all of them. Slice a has
 * c0 and c1, one behind the other along z, and c2 as its spare; b has c3.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define AXES 3
#define POSITIONS 9	/* of a face */
#define CUBES 4

static const char *const switches[AXES] = { "ocs0", "ocs1", "ocs2" };
static const char *before[AXES];	/* the maps once both slices run */

static void write_fabric(void)
{
	char fibres[1000] = "";

	for (int i = 0; i < AXES * CUBES; i++) {
		char axis = "xyz"[i / CUBES];
		int cube = i % CUBES, first = cube * 2 * POSITIONS + 1, n = (int)strlen(fibres);

		snprintf(fibres + n, sizeof(fibres) - (size_t)n, "  - { from: 'c%d.%cp[0-2][0-2],"
			 "c%d.%cm[0-2][0-2]', to: '%s.[%d-%d]' }\n", cube, axis, cube, axis,
			 switches[i / CUBES], first, first + 2 * POSITIONS - 1);
	}
	write_file("cubes.yaml", "weft: 1\nfabric: cubes\ncubes:\n"
		   "  - { name: 'c[0-3]', size: 3x3x3, rate: 400Gbps, reactivation: 1ms }\n"
		   "switches:\n  - { name: 'ocs[0-2]', size: 72x72, driver: polatis-scpi, address: "
		   "'127.0.0.1:[5000-5002]', timeout: 1s, domain: ocs, options: { gap_ms: 1, "
		   "settle_ms: 20 } }\nfibres:\n%s", fibres);
}

static void control_all(const char *line)
{
	for (int a = 0; a < AXES; a++) {
		control(switches[a], "%s", line);
	}
}

/* ---- what is there ---- */

static int port(int cube, bool minus, int position)
{
	return (cube * 2 + minus) * POSITIONS + position;
}

/* At every position a cube's plus face meets the other's minus face, both ways. */
static bool meets(int axis, int cube, int other)
{
	const char *map = map_of(switches[axis]);
	bool all = true;

	for (int i = 0; i < POSITIONS; i++) {
		int plus = port(cube, false, i), minus = port(other, true, i);
		char forth[20], back[20];

		snprintf(forth, sizeof(forth), "^%d,%d$", plus, minus);
		snprintf(back, sizeof(back), "^%d,%d$", minus, plus);
		all = all && matches(map, forth) && matches(map, back);
	}
	return all;
}

/* Two cubes are a torus of 3x3x6. */
static bool is_slice(int first, int second)
{
	return meets(0, first, first) && meets(0, second, second) && meets(1, first, first) &&
	       meets(1, second, second) && meets(2, first, second) && meets(2, second, first);
}

static bool other_is_whole(void)
{
	return meets(0, 3, 3) && meets(1, 3, 3) && meets(2, 3, 3);
}

static bool shows(const char *job, const char *key, const char *wanted)
{
	return same(ask("jobs.-1", "job list --all %s", job), "") ? false
	       : same(ask(key, "job list --all %s", job), wanted);
}

static bool is_repaired(void)
{
	return !shows("a", "jobs.-1.repairs", "0") && shows("a", "jobs.-1.rate", "1.0") &&
	       shows("a", "jobs.-1.problem", "");
}

static void begin_slices(void)
{
	write_fabric();
	expect(0, "a fabric of cubes", "apply -f cubes.yaml");
	expect(0, "a slice with a spare",
	       "job request a --shape 3x3x6 --spares 1 -c allreduce --size 1MiB");
	expect(0, "a slice of one", "job request b --shape 3x3x3 -c allreduce --size 1MiB");
	check(is_slice(0, 1) && other_is_whole(), "both are tori");
	for (int a = 0; a < AXES; a++) {
		before[a] = map_of(switches[a]);
	}
}

/* A port of its plus face of z. */
static void fail_cube(int cube)
{
	control("ocs2", "fault port-failed=i%d", port(cube, false, 4));
}

static void see_slice(int first, int second)
{
	await(60, "the spare is in its place", is_repaired() && is_slice(first, second));
	check(other_is_whole(), "the other slice is whole");
	control_all("clear");
	expect(0, "all is as intended, and no more", "verify");
	expect(0, "the schedule is of the light that is there", "schedule verify --job a");
}

static bool changes(void)
{
	return same(ask("changes.0.outcome", "history -n 1"), "running");
}

/* ---- stories ---- */

static void tell_spare(void)
{
	fail_cube(1);
	weft("verify");
	see_slice(0, 2);
	expect(0, "the operator's configuration again", "apply -f cubes.yaml");
	check(is_slice(0, 2), "moves nothing back");
	expect(0, "it ends", "job release a");
	check(other_is_whole(), "and leaves the other's light");
}

/* Once for c1, where c2 is the spare, and once the other way round. */
static void tell_killed(void)
{
	for (int cube = 1; cube <= 2; cube++) {
		control_all("fault slow=10");
		fail_cube(cube);
		begin("verify");
		await(60, "a repair is under way", changes());
		sim_sleep(cube * 200 * SIM_MS);
		crash_weftd();
		weft("verify");
		see_slice(0, 3 - cube);
	}
}

static void tell_late(void)
{
	control_all("fault slow=10");
	fail_cube(1);
	begin("verify");
	await(60, "a repair is under way", changes());
	silence("ocs1", 3 * SIM_S);
	sim_sleep(20 * SIM_S);
	weft("verify");
	see_slice(0, 2);
}

static const char *problem(void)
{
	return ask("jobs.-1.problem", "job list --all a");
}

/* The spare has failed as well, before or behind. */
static void tell_both(void)
{
	int n;

	control("ocs2", "fault port-failed=i%d", port(2, false, 3));
	fail_cube(1);
	weft("verify");
	await(60, "without a spare that is good the slice is degraded",
	      shows("a", "jobs.-1.repair", "degraded") && problem()[0]);
	sim_sleep(60 * SIM_S);
	n = sets_of("ocs2");
	weft("verify");
	sim_sleep(60 * SIM_S);
	check(sets_of("ocs2") == n, "and nothing is tried again and again");
	check(other_is_whole(), "the other slice is whole");
	expect(0, "the schedule goes around what is gone", "schedule verify --job a");
	control_all("clear");
	weft("verify");
	await(60, "all are back, and it is whole",
	      shows("a", "jobs.-1.rate", "1.0") && shows("a", "jobs.-1.problem", ""));
}

/* A circuit of the spare is silently not made. */
static void tell_ignored(void)
{
	control("ocs2", "fault ignore-port=o%d", port(2, true, 5));
	fail_cube(1);
	weft("verify");
	await(60, "a spare that cannot have its light is no success",
	      problem()[0]);
	check(other_is_whole(), "the other slice is whole");
	sim_sleep(60 * SIM_S);
	control("ocs2", "clear");
	fail_cube(1);
	weft("verify");
	sim_sleep(30 * SIM_S);
	weft("verify");
	see_slice(0, 2);
}

/* It is given back while its cube is replaced. */
static void tell_released(void)
{
	struct command *c;

	control_all("fault slow=10");
	fail_cube(1);
	begin("verify");
	await(60, "a repair is under way", changes());
	c = begin("job release a");
	finish(c);
	await(60, "it is over", shows("a", "jobs.-1.state", "ended"));
	control_all("clear");
	check(other_is_whole(), "the other slice is whole");
	expect(0, "no light is there that should not be", "verify");
	expect(0, "its cubes are free again",
	       "job request d --shape 3x3x6 --nodes c0,c2 -c allreduce --size 1MiB");
	check(is_slice(0, 2), "for another");
}

/* A slice of the fabric file waits for its operator. */
static void tell_file(void)
{
	expect(0, "it ends", "job release a");
	write_file("job.yaml", "%sjobs:\n  - { name: a, nodes: 'c[0-2]', shape: 3x3x6, spares: 1, "
		   "collective: allreduce, size: 1MiB }\n", read_text("cubes.yaml"));
	expect(0, "a slice of the file", "apply -f job.yaml");
	check(is_slice(0, 1) && other_is_whole(), "has the cubes that come first");
	fail_cube(1);
	expect(2, "a cube fails", "verify");
	expect(0, "as its operator says", "apply -f job.yaml");
	check(is_slice(0, 2) && other_is_whole(), "the spare stands in");
	expect(0, "once more", "apply -f job.yaml");
	has("changes nothing", "nothing");
	control_all("clear");
	expect(0, "the port is good again", "verify");
	expect(0, "the same file", "apply -f job.yaml");
	check(is_slice(0, 2), "moves nothing back");
}

/* ---- the table ---- */

static void (*words)(void);

static void with_slices(void)
{
	begin_slices();
	words();
}

static void begin_story(void (*story)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.n_devices = AXES;
	for (int a = 0; a < AXES; a++) {
		s.devices[a].dialect = "polatis-scpi";
		s.devices[a].size = "72x72";
	}
	words = story;
	tell(&s, with_slices);
}

#define STORY(name)                              \
	static void run_##name(void)             \
	{                                        \
		begin_story(tell_##name);        \
	}

STORY(spare)
STORY(killed)
STORY(late)
STORY(both)
STORY(ignored)
STORY(released)
STORY(file)

const struct story slice_stories[] = {
	{ "slice-spare", "a cube fails, and the spare stands in", run_spare },
	{ "slice-killed", "weftd is killed while it does", run_killed },
	{ "slice-late", "a switch is silent while it does", run_late },
	{ "slice-both", "the spare has failed, too", run_both },
	{ "slice-ignored", "a circuit of the spare is not made", run_ignored },
	{ "slice-released", "a slice is given back while its cube is replaced", run_released },
	{ "slice-file", "a slice of the fabric file", run_file },
	{ 0 },
};
