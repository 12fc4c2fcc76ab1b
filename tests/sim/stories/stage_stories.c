/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 10: a floor of capacity: while all circuits of a switch move, its map is looked at all
 * the time, and no host ever has less than it was promised: on the way forth, back, and after
 * weftd was killed in the middle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define SWITCH "ocs0"
#define HOSTS 8
#define PORTS 4
#define LOOK_NS (5 * SIM_MS)

/* What the one who looks has seen since watch_map. */
static struct {
	bool over;
	int least;		/* circuits by which a host sent or received */
	int maps;		/* that differ from the one before */
	struct sim_process *process;
} look;

static void count_hosts(const char *map)
{
	int n[2][HOSTS] = { { 0 } };

	for (; *map; map += strcspn(map, "\n") + 1) {
		n[0][atoi(map) / PORTS]++;
		n[1][atoi(strchr(map, ',') + 1) / PORTS]++;
	}
	for (int i = 0; i < HOSTS; i++) {
		look.least = n[0][i] < look.least ? n[0][i] : look.least;
		look.least = n[1][i] < look.least ? n[1][i] : look.least;
	}
}

static int look_main(int argc, char **argv)
{
	const char *last = "";

	(void)argc, (void)argv;
	while (!look.over) {
		const char *map = map_of(SWITCH);

		if (!same(map, last)) {
			count_hosts(map);
			look.maps++;
			last = map;
		}
		sim_sleep(LOOK_NS);
	}
	return 0;
}

static void watch_map(void)
{
	look.over = false;
	look.least = PORTS;
	look.maps = 0;
	look.process = sim_start("look", look_main, (const char *const[]){ "look", NULL });
	sim_sleep(2 * LOOK_NS);
}

static void watched_map(void)
{
	look.over = true;
	sim_wait(look.process);
	sim_tell("at least %d circuits a host, %d maps", look.least, look.maps);
}

/* ---- the fabric ---- */

static void write_config(const char *path, const char *topology, int keep)
{
	write_file(path, "weft: 1\nfabric: floor\nhosts:\n"
		   "  - { name: 'h[0-7]', ports: 'p[0-3]', rate: 100Gbps }\n"
		   "switches:\n  - { name: ocs0, size: 32x32, driver: polatis-scpi, address: "
		   "'127.0.0.1:5000', options: { gap_ms: 5, settle_ms: 20 }, timeout: 3s }\n"
		   "fibres:\n  - { from: 'h[0-7].p[0-3]', to: 'ocs0.[1-32]' }\n"
		   "jobs:\n  - { name: sum, nodes: all, collective: allreduce, size: 1MiB, "
		   "topology: '%s' }\nchanges:\n  keep: %d%%\n", topology, keep);
}

static void applied(void)
{
	write_config("a.yaml", "C(8,{1,2})", 75);
	write_config("b.yaml", "C(8,{2,3})", 75);
	write_config("c.yaml", "C(8,{2,3})", 76);
	expect(0, "all dark: one stage", "apply -f a.yaml");
}

/* ---- plans ---- */

static double sum_of(const char *list)
{
	double sum = 0;

	for (; *list; list += strcspn(list, ","), list += *list == ',') {
		sum += atof(list);
	}
	return sum;
}

static double min_of(const char *list)
{
	double least = 1e18;

	for (; *list; list += strcspn(list, ","), list += *list == ',') {
		least = atof(list) < least ? atof(list) : least;
	}
	return least;
}

static void check_stages(int stages)
{
	check(stages > 2, "into more than two");
	check(atof(value("delete")) == sum_of(value("stages.*.delete")) &&
	      atof(value("add")) == sum_of(value("stages.*.add")), "whose sums are the whole");
	check(matches(value("stages.*.domain"), "^(ocs0,)*ocs0$") &&
	      min_of(value("stages.*.remaining_bps")) >= 300e9 &&
	      matches(value("stages.*.total_bps"), "^(400000000000,)*400000000000$"),
	      "which leave 300 of 400 Gbit/s");
}

static void tell_plan(void)
{
	char pattern[120];
	int stages;

	applied();
	expect(2, "the plan is cut into stages", "plan -f b.yaml --format json");
	stages = atoi(value("stages.#"));
	check_stages(stages);
	expect(2, "and as a table", "plan -f b.yaml");
	snprintf(pattern, sizeof(pattern), "stage 2 of %d, domain ocs0: .* h[0-7] "
		 "(sends|receives) 75%% meanwhile", stages);
	has("which names them", pattern);
	expect(65, "more cannot be kept", "plan -f c.yaml");
	has_error("and says what", "c.yaml:[0-9]+:3: .*the floor cannot be kept in domain ocs0: "
		  "keep: what h[0-7] (sends|receives) would fall to 300Gbps of 400Gbps, at least "
		  "304Gbps must stay");
	expect(65, "nor what is only asked for", "plan -f b.yaml --keep 76%%");
	has_error("for the same reason", "at least 304Gbps must stay");
	expect(2, "what if less had to stay", "plan -f c.yaml --keep 0%% --format json");
	value_is("is a plan in one stage", "stages.#", "1");
	expect(64, "which is no plan to apply", "plan -f c.yaml --keep 0%% -o keep.plan");
	expect(65, "a share that is none", "plan -f b.yaml --keep 101%%");
	has_error("is named", "keep: 101% is not between 0% and 100%");
}

/* ---- changes ---- */

static void forth(void)
{
	char pattern[40];
	int stages;

	expect(2, "a plan in stages", "plan -f b.yaml --format json");
	stages = atoi(value("stages.#"));
	watch_map();
	expect(0, "forth", "apply -f b.yaml");
	watched_map();
	check(look.least == 3 && look.maps >= 4,
	      "no host ever had less than three of its four circuits");
	snprintf(pattern, sizeof(pattern), "stage %d of %d", stages, stages);
	has_error("stage by stage", pattern);
}

static void tell_back(void)
{
	const char *before;
	int status;

	applied();
	forth();
	/* One command of a late stage is lost: all stages go back. */
	control(SWITCH, "fault eat-set=9");
	before = map_of(SWITCH);
	watch_map();
	status = weft("apply -f a.yaml");
	watched_map();
	check(status == 3 && look.least == 3, "rolled back, and never had less");
	has_error("from a later stage", "stage [3-9] of");
	check(same(map_of(SWITCH), before), "all is as before");
}

/* In the third stage, with a device that is slow enough to be hit in the middle; then forth again
 * from the half of it. */
static void tell_killed(void)
{
	struct command *c;

	applied();
	expect(0, "forth", "apply -f b.yaml");
	control(SWITCH, "fault slow=150");
	watch_map();
	c = begin("apply -f a.yaml");
	await(20, "the third stage begins", matches(errors_of(c), "stage 3 of"));
	crash_weftd();
	finish(c);
	control(SWITCH, "clear");
	await(10, "killed in the middle: half done, and said so",
	      same(ask("state", "status"), "interrupted"));
	check(!strpbrk(value("devices.*.unexpected"), "{0123456789"), "every circuit is explained");
	expect(0, "forth from there", "apply -f a.yaml");
	watched_map();
	check(look.least == 3, "and never less than the floor");
	expect(0, "as it was meant to be", "verify");
}

/* ---- the table ---- */

static void begin_story(void (*words)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.devices[0].size = "32x32";
	tell(&s, words);
}

static void run_plan(void)
{
	begin_story(tell_plan);
}

static void run_back(void)
{
	begin_story(tell_back);
}

static void run_killed(void)
{
	begin_story(tell_killed);
}

const struct story stage_stories[] = {
	{ "stage-plan", "a change in stages that keep a floor of capacity, as a plan", run_plan },
	{ "stage-back", "forth, and back from a late stage, never below the floor", run_back },
	{ "stage-killed", "weftd is killed in the third stage", run_killed },
	{ 0 },
};
