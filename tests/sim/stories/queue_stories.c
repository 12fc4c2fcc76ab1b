/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue: what it tells those that wait, and that it keeps its word. Eight hosts of a port each
 * on one switch.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const struct story queue_stories[] = {
	{ "queue-starved", "small jobs come for ever, and one of all hosts waits", run_starved },
	{ "queue-behind", "what may pass a job that waits", run_behind },
	{ 0 },
};
