/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue: what it tells those that wait, and that it keeps its word. Eight hosts of a port each
 * on one switch.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

static const char fabric[] =
	"weft: 1\nfabric: shared\nhosts:\n"
	"  - { name: 'h[0-7]', ports: p0, rate: 100Gbps, reactivation: 1ms }\n"
	"switches:\n  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "
	"'127.0.0.1:5000', timeout: 1s, options: { gap_ms: 1, settle_ms: 20 } }\n"
	"fibres:\n  - { from: 'h[0-7].p0', to: 'ocs0.[1-8]' }\n";

#define TWO "-c allgather --size 1MB -t UniRing(1,2) --no-wait --nodes "
#define ALL "-c allgather --size 1MB -t UniRing(1,8) --no-wait --count 8"

static const char *of(const char *job, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "jobs.-1.%s", what);
	return ask(path, "job list --all %s", job);
}

static bool state_is(const char *job, const char *state)
{
	return same(of(job, "state"), state);
}

/* One of all hosts waits, and jobs of few come for ever. */
static void tell_starved(void)
{
	const char *told;
	int came = 0;

	expect(0, "four run", "job request a0 --duration 10s -c allgather --size 1MB --count 4");
	weft("job request all --duration 10s %s", ALL);
	await(5, "one of all hosts waits", state_is("all", "queued"));
	await(5, "and is told when it runs", same(of("all", "estimate_kind"), "exact"));
	told = of("all", "estimated_start_at");
	while (came < 20 && state_is("all", "queued")) {
		weft("job request b%d --duration 10s --no-wait -c allgather --size 1MB "
		     "--count 4", came++);
		sim_sleep(4 * SIM_S);
	}
	await(20, "it is not passed for ever", state_is("all", "running"));
	check(strcmp(of("all", "started_at"), told) <= 0, "and runs by the time it was told");
	check(came < 5, "those that came later wait");
	check(state_is("b0", "queued"), "for their turn");
	check(same(of("b0", "estimate_kind"), "exact"), "which they are told");
	await(40, "and which comes", state_is("b0", "running") || state_is("b0", "ended"));
}

/* What fits before a reservation, or beside it, starts; what does not says why. */
static void tell_behind(void)
{
	struct command *watch = begin("watch --format json");

	await(10, "a client watches", output_of(watch)[0]);
	expect(0, "two run", "job request a --duration 60s --nodes h0,h1 -c allgather --size 1MB");
	weft("job request b --duration 60s " TWO "h1,h2");
	await(5, "one waits for a host", same(of("b", "estimate_kind"), "exact"));
	expect(0, "a short one on the other host goes first",
	       "job request c --duration 20s --nodes h2,h3 -c allgather --size 1MB");
	weft("job request d --duration 60s " TWO "h2,h4");
	await(40, "a long one does not", state_is("d", "queued") && state_is("c", "ended"));
	check(matches(of("d", "problem"), "job b is to run by .*, and would have to wait"),
	      "and says for whom");
	expect(0, "one on other hosts does",
	       "job request e --nodes h5,h6 -c allgather --size 1MB");
	weft("job request f " TWO "h6,h7");
	await(5, "behind one without a duration nothing is known",
	      same(of("f", "estimate_kind"), "unknown") &&
	      same(of("f", "estimated_start_at"), "null"));
	crash_weftd();
	check(same(of("b", "estimate_kind"), "exact"), "what was told outlives weftd");
	watch = begin("watch --format json");
	await(10, "a client watches again", output_of(watch)[0]);
	expect(0, "a host of its is drained", "drain h2");
	await(10, "which is told", matches(output_of(watch), "job b is to run by a time that is "
					   "not known instead of .*: host h2 has failed or is "
					   "drained"));
	expect(0, "it is undrained", "undrain h2");
	await(90, "and it runs in time", state_is("b", "running"));
}

/* What was told to others bounds a renewal; who does not renew is told before the end. */
static void tell_renewed(void)
{
	struct command *watch = begin("watch --format json");

	await(10, "a client watches", output_of(watch)[0]);
	expect(0, "one runs", "job request a --duration 60s --nodes h0,h1 -c allgather --size 1MB");
	expect(0, "it is renewed", "job renew a 70s");
	weft("job request b --duration 60s " TWO "h1,h2");
	await(5, "one waits for it", same(of("b", "estimate_kind"), "exact"));
	expect(65, "now it is not", "job renew a 80s");
	has_error("but says how long it could be", "others were told that they run then: job a may "
		  "be kept until 20..-..-..T..:01:1");
	weft("job request c --duration 5s " TWO "h2,h3");
	expect(65, "nor while a short one starts on a host of the other's", "job renew a 80s");
	expect(0, "the same again is nothing new", "job renew a 1s");
	expect(65, "one that waits keeps the duration of its reservation", "job renew b 90s");
	sim_sleep(58 * SIM_S);
	check(!matches(output_of(watch), "job a ends at"), "nothing is said early");
	await(10, "a tenth of its duration before the end it is told",
	      matches(output_of(watch), "job a ends at "));
	check(state_is("a", "running"), "while it runs");
	await(20, "the other runs", state_is("b", "running"));
	check(strcmp(of("a", "ended_at"), of("b", "started_at")) <= 0, "after its end");
}

/* As few jobs as will do make room, and have their grace. */
static void tell_grace(void)
{
	struct command *watch = begin("watch --format json");

	await(10, "a client watches", output_of(watch)[0]);
	expect(65, "grace of one that makes no room", "job request x --grace 5s --count 2 -c "
	       "allgather --size 1MB");
	expect(0, "two", "job request a --priority -2 --preemptible --count 2 -c allgather "
	       "--size 1MB");
	expect(0, "two", "job request b --priority -2 --preemptible --count 2 -c allgather "
	       "--size 1MB");
	expect(0, "four", "job request c --priority -1 --preemptible --grace 20s --count 4 -c "
	       "allgather --size 1MB");
	weft("job request d --no-wait --duration 60s --count 4 -c allgather --size 1MB");
	await(10, "one is told to make room, not two", matches(output_of(watch), "job c ends at "
	      ".*: makes room for job d"));
	check(state_is("a", "running") && state_is("b", "running") && state_is("c", "running") &&
	      strcmp(of("c", "preempt_at"), "null") != 0, "and goes on meanwhile");
	check(same(of("d", "estimate_kind"), "exact"), "the other is told when it runs");
	crash_weftd();
	await(10, "which a crash does not change", state_is("c", "running") &&
	      strcmp(of("c", "preempt_at"), "null") != 0);
	await(30, "and does", state_is("d", "running"));
	check(state_is("c", "ended") && same(of("c", "problem"), "makes room for job d"),
	      "when the grace is over");
	check(state_is("a", "running") && state_is("b", "running"), "none else went");
}

/* A robot moves a circuit in 5 s: that is in the start that is told first. */
static void tell_robot(void)
{
	const char *told;

	write_file("panel.yaml", "%.*spanels:\n  - { name: ocs0, size: 16x16, driver: rome-cli, "
		   "switch-time: 5s, address: '127.0.0.1:5000', timeout: 1s, options: { gap_ms: 1, "
		   "poll_ms: 10 } }\n%s", (int)(strstr(fabric, "switches:") - fabric), fabric,
		   strstr(fabric, "fibres:"));
	expect(0, "a fabric with a robotic panel", "apply -f panel.yaml");
	control("ocs0", "clear");
	control("ocs0", "fault move=5000");
	expect(0, "two run", "job request a --duration 60s --nodes h0,h1 -c allgather --size 1MB");
	weft("job request b --duration 60s %s", ALL);
	await(5, "one of all hosts waits", same(of("b", "estimate_kind"), "exact"));
	told = of("b", "estimated_start_at");
	await(120, "it runs", state_is("b", "running"));
	check(strcmp(of("b", "started_at"), told) <= 0, "by the time that it was told first");
}

/* What can never be is refused in the call. */
static void tell_never(void)
{
	expect(0, "all hosts have jobs", "job request a --count 8 -c allgather --size 1MB");
	expect(65, "more hosts than there are", "job request b --count 9 -c allgather --size 1MB");
	has_error("says how many there are", "9 hosts are wanted, and there are 8");
	expect(65, "more ports", "job request b --count 2 --ports 2 -c allgather --size 1MB");
	expect(65, "more degree",
	       "job request b --nodes h0,h1,h2,h3 -t 'Torus(2,2)' -c allgather --size 1MB");
	check(same(ask("jobs.*.name", "job list --all"), "a"), "and no job was made of any");
}

/* ---- by chance ---- */

static int chance(int n)
{
	return (int)((sim_random(SIM_FAULTS) >> 32) % (uint64_t)n);
}

static bool plain;	/* all have one priority */

static void ask_for_job(int i)
{
	static const char *const priorities[] = { "", "", "", "", "--priority 1", "--priority 2" };
	char place[48], lease[32] = "";
	const int n = 2 + chance(5), first = chance(7);

	if (chance(12)) {
		snprintf(lease, sizeof(lease), "--duration %ds", 1 + chance(30));
	}
	if (chance(3)) {
		snprintf(place, sizeof(place), "--count %d -t UniRing(1,%d)", n, n);
	} else {
		snprintf(place, sizeof(place), "--nodes h%d,h%d -t UniRing(1,2)", first, first + 1);
	}
	weft("job request j%d --no-wait -c allgather --size 1MB %s %s %s %s", i, place, lease,
	     plain ? "" : priorities[chance(6)], chance(5) ? "" : chance(2) ? "--preemptible"
							       : "--preemptible --grace 4s");
}

/* RANDOM_JOBS requests, releases and renewals between them, hosts that are drained, and weftd is
 * killed: what it comes to is judged by tests/sim/queue_replay.py. */
#define RANDOM_JOBS 250

static void tell_random(void)
{
	plain = chance(2);
	for (int i = 0; i < RANDOM_JOBS; i++) {
		const int old = i > 12 ? i - 1 - chance(8) : 0, what = chance(80);

		ask_for_job(i);
		if (what < 10) {
			weft("job release j%d", old);
		} else if (what < 30) {
			weft("job renew j%d %ds", old, 5 + chance(60));
		} else if (what == 30) {
			sim_tell("queue drain h7");
			weft("drain h7");
		} else if (what < 39) {
			weft("undrain h7");
			sim_tell("queue undrain h7 %" PRId64, clk_wall_ns());
		} else if (what == 39) {
			sim_tell("queue kill %" PRId64, clk_wall_ns());
			crash_weftd();
		}
		/* Those that end when they are released are, as weftd would be full of them. */
		if (i >= 40) {
			weft("job release j%d", i - 40);
		}
		sim_sleep((1 + chance(140)) * SIM_S / 10);
	}
	check(!same(ask("jobs.#", "job list"), "0"), "there are jobs to the end");
}

static void (*words)(void);

static void with_fabric(void)
{
	write_file("fabric.yaml", "%s", fabric);
	expect(0, "a fabric without jobs", "apply -f fabric.yaml");
	words();
}

static void begin_story(void (*story)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.devices[0].size = "16x16";
	words = story;
	tell(&s, with_fabric);
}

static void run_starved(void)
{
	begin_story(tell_starved);
}

static void run_behind(void)
{
	begin_story(tell_behind);
}

static void run_renewed(void)
{
	begin_story(tell_renewed);
}

static void run_grace(void)
{
	begin_story(tell_grace);
}

static void run_random(void)
{
	begin_story(tell_random);
}

static void run_robot(void)
{
	struct scenario s;

	scenario_simple(&s);
	s.devices[0].size = "16x16";
	s.devices[0].dialect = "rome-cli";
	tell(&s, tell_robot);
}

static void run_never(void)
{
	begin_story(tell_never);
}

const struct story queue_stories[] = {
	{ "queue-starved", "small jobs come for ever, and one of all hosts waits", run_starved },
	{ "queue-behind", "what may pass a job that waits", run_behind },
	{ "queue-renewed", "leases that are renewed, and that are not", run_renewed },
	{ "queue-grace", "few make room, and have time to", run_grace },
	{ "queue-random", "requests by chance, and weftd is killed", run_random },
	{ "queue-robot", "a start that waits for moves of a robotic panel", run_robot },
	{ "queue-never", "jobs that can never be", run_never },
	{ 0 },
};
