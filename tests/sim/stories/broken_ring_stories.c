/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a ring fail under running jobs: what failed is named, a plan brings light that does
 * without, what the emulated resonators then drop and add still carries every shard, and the whole
 * returns with the light.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/stories/ring_light.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define RING "ring0"

static struct command *watch;
static const char *whole_time;		/* of job a, with all parts */

static const int in_order[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void write_fabric(const char *collective)
{
	write_file("a.yaml", "weft: 1\nfabric: broken\nhosts:\n  - { name: 'n[0-7]' }\n"
		   "rings:\n  - { name: ring0, nodes: 'n[0-7]', channels: 8, channel-rate: 40Gbps, "
		   "driver: mrr-reg, address: '127.0.0.1:5000', timeout: 2s }\njobs:\n"
		   "  - { name: a, ring: ring0, size: 16MiB, channels: 0-5, collective: %s }\n"
		   "  - { name: b, ring: ring0, size: 1MiB, channels: 6-7, collective: allgather, "
		   "nodes: 'n[0-3]', segment: true }\n", collective);
}

static bool light_is(const char *job, const char *health)
{
	char path[40];

	snprintf(path, sizeof(path), "jobs.%s.health", job);
	return same(ask(path, "status"), health);
}

static void verify(void)
{
	weft("verify");
}

static void fault(const char *spec)
{
	control(RING, "fault %s", spec);
	verify();
}

static void mended(void)
{
	control(RING, "clear");
	verify();
}

static void applied(const char *collective)
{
	write_fabric(collective);
	expect(0, "applied", "apply -f a.yaml");
	await(20, "all light is there", light_is("a", "up"));
	whole_time = value("jobs.a.time_ns");
}

/* ---- one resonator pair does not lock any more ---- */

static void degraded(void)
{
	double rate;

	await(20, "a lock is lost: degraded", light_is("a", "degraded"));
	check(same(value("devices.0.program.failed.*"), "n2 cw fibre 0 channel 3: lock lost,"
		   "n2 ccw fibre 0 channel 3: lock lost"), "status names the resonators");
	check(matches(value("devices.0.problem"), "^failed: n2 cw fibre 0 channel 3"),
	      "and the device's problem");
	rate = atof(value("jobs.a.degradation.rate"));
	check(rate > 0 && rate < 1, "the job has lost something");
	await(10, "of which the rest is planned",
	      same(ask("jobs.a.degradation.failed", "status"), "2"));
	rate = atof(value("jobs.a.degradation.rate"));
	check(rate > 0.7 && rate < 1 &&
	      matches(value("jobs.a.degradation.part"), "n2 cw .* channel 3"),
	      "the job's loss");
	check(same(value("jobs.b.degradation"), ""), "the other job needs none of it");
	await(10, "an event", matches(output_of(watch), "\"part-failed\""));
	expect(69, "no schedule whose light is not loaded", "schedule export --job a --to json");
	has_error("says what to do", "weft apply.* loads one that does without, at [0-9.]+ %");
}

static void repaired(void)
{
	const char *b = ring_touched(RING, "b");
	double rate = atof(ask("jobs.a.degradation.rate", "status")), whole;

	expect(2, "plan proposes the repair", "plan -f a.yaml");
	has("and what it does without", "job a: does without n2 .* 1 more.* % of the rate");
	expect(0, "apply brings it", "apply -f a.yaml");
	await(20, "all the light that it wants is there", light_is("a", "up"));
	whole = atof(value("jobs.a.fault_free_time_ns"));
	check(same(value("jobs.a.failed_parts.#"), "2") && whole == atof(whole_time) &&
	      fabs(whole / atof(value("jobs.a.time_ns")) - rate) < 1e-9,
	      "at the rate that was told");
	check(same(ring_touched(RING, "b"), b), "nothing of the other job was written");
	check(!matches(ring_check("without a channel", RING, "a", in_order),
		       " node 2 .* channel 3 "), "the resonator is not used");
	expect(2, "verify names what failed", "verify --format json");
	value_is("and that all the rest locks", "problems.*.kind", "parts-failed,job-degraded");
	expect(0, "nothing more to do", "plan -f a.yaml");
}

static void tell_lock(void)
{
	watch = begin("watch --format json");
	applied("allgather");
	fault("lol=2:3");
	degraded();
	repaired();
	restart_weftd();
	watch = begin("watch --format json");
	await(20, "after a restart weftd still knows", light_is("a", "up"));
	ring_check("after a restart", RING, "a", in_order);
	mended();
	await(10, "it works again", light_is("a", "up"));
	ring_check("meanwhile", RING, "a", in_order);
	expect(2, "plan proposes the whole", "plan -f a.yaml");
	expect(0, "apply", "apply -f a.yaml");
	await(10, "all light is there again", light_is("a", "up"));
	check(same(value("jobs.a.time_ns"), whole_time), "as fast as before");
	await(10, "and told", matches(output_of(watch), "\"part-recovered\""));
}

/* ---- a cable is cut: a line of the same nodes. A fibre: the others ---- */

static void tell_cuts(void)
{
	static const struct {
		const char *cut, *kind;
	} cuts[] = {
		{ "cut=4", "allgather" }, { "cut=7", "allreduce" }, { "cut-cw=6:0", "allgather" },
		{ "cut-ccw=5:0", "reduce-scatter" }, { "cut=5", "all-to-all" },
		{ "cut-cw=6:0", "all-to-all" }, { "cut=3", "allgather, algorithm: optree" },
	};

	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		mended();
		applied(cuts[i].kind);
		fault(cuts[i].cut);
		await(20, "a job whose cable is cut is degraded", light_is("a", "degraded"));
		check_of(cuts[i].cut, weft("apply -f a.yaml") == 0, "apply brings it");
		await(20, "all the light that it wants is there", light_is("a", "up"));
		ring_check(cuts[i].cut, RING, "a", in_order);
		check_of(cuts[i].cut, weft("verify --format json") == 2, "verify names it");
		check_of(cuts[i].cut, strstr(value("problems.*.kind"), "parts-failed") &&
			 !strstr(value("problems.*.kind"), "settings-unlocked"),
			 "and all the rest locks");
	}
}

/* ---- what cannot be repaired is named, and goes on as it was ---- */

/* A segment has no way round. Its job stays as it is, and keeps no other from its repair. */
static void tell_segment(void)
{
	applied("allgather, algorithm: optree");
	fault("cut-ccw=0:0");
	await(20, "a segment without one of its fibres is down", light_is("b", "down"));
	expect(65, "it has no schedule", "schedule export --job b --to json");
	expect(2, "the plan is for the other job", "plan -f a.yaml");
	has_error("it names the job, the part and the reason", "job b cannot be repaired, and "
		  "stays as it is: job b: ring0: failed: ccw fibre 0 between n0 and n1; .* a "
		  "segment needs channels in both directions");
}

static void tell_lost(void)
{
	applied("all-to-all");
	fault("cut=4");
	fault("cut=6");
	await(20, "two cables are cut: no way between their sides", light_is("a", "down"));
	expect(65, "plan says so", "plan -f a.yaml");
	has_error("and why", "job a: ring0: failed: cw fibre 0 between n4 and n5 and 3 more; "
		  "what is left of the ring does not do");
	control(RING, "clear");
	fault("node-dead=5");
	await(20, "a dead node", light_is("a", "down"));
	check(same(value("jobs.b.degradation"), ""), "who does not run on it has lost nothing");
	expect(65, "no plan with it", "plan -f a.yaml");
	has_error("names it", "job a: ring0: n5 has failed, and the job runs on it");
	control(RING, "clear");
	/* An open interlock is no failure of a part. */
	fault("interlock");
	check(same(ask("devices.0.program.failed_count", "status"), "0") &&
	      atoi(value("devices.0.program.unlocked")) > 0,
	      "an open interlock is no dead resonator");
	mended();
	await(20, "all is back", light_is("a", "up"));
}

/* ---- the table ---- */

static void begin_story(void (*words)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.devices[0] = (struct cluster_device){ .dialect = "mrr-reg", .size = "8x8" };
	tell(&s, words);
}

static void run_lock(void)
{
	begin_story(tell_lock);
}

static void run_cuts(void)
{
	begin_story(tell_cuts);
}

static void run_segment(void)
{
	begin_story(tell_segment);
}

static void run_lost(void)
{
	begin_story(tell_lost);
}

const struct story broken_ring_stories[] = {
	{ "broken-ring-lock", "a resonator pair loses its lock, and finds it again", run_lock },
	{ "broken-ring-cuts", "cables and fibres of a ring are cut", run_cuts },
	{ "broken-ring-segment", "a segment has no way round", run_segment },
	{ "broken-ring-lost", "what cannot be repaired is named", run_lost },
	{ 0 },
};
