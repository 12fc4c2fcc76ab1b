/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs on a ring: what the emulated resonators drop and add, step by step, carries every shard to
 * every node; two jobs share a ring without touching each other's light; what does not fit or
 * fails half way changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/sim/stories/ring_light.h"
#include "tests/sim/stories/ring_replay.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define RING "ring0"
#define NODES 8
#define A "name: a, ring: ring0, collective: allgather, size: 1MiB, channels: 3"
#define B "name: b, ring: ring0, collective: allreduce, size: 1MiB, channels: 4-7"

/* ---- fabrics ---- */

static void add_ring(struct buf *b, int i, int fibres, const char *keys)
{
	buf_printf(b, "  - { name: ring%d, nodes: 'n[0-7]', fibres: %d, channels: 8, channel-rate: "
		   "40Gbps, driver: mrr-reg, address: '127.0.0.1:%d', timeout: 2s%s%s }\n", i,
		   fibres, 5000 + i, keys[0] ? ", " : "", keys);
}

/* Up to three jobs, NULL ends them. */
static void write_rings(const char *path, int rings, const char *keys, const char *const jobs[3])
{
	struct buf b = { 0 };

	for (int i = 0; i < rings; i++) {
		add_ring(&b, i, rings, keys);
	}
	buf_str(&b, "jobs:\n");
	for (int i = 0; i < 3 && jobs[i]; i++) {
		buf_printf(&b, "  - { %s }\n", jobs[i]);
	}
	write_file(path, "weft: 1\nfabric: shared\nhosts:\n  - { name: 'n[0-7]' }\nrings:\n%s",
		   buf_cstr(&b));
	buf_fini(&b);
}

#define write_fabric(path, ...) \
	write_rings(path, 1, "", (const char *const[3]){ __VA_ARGS__ })

static void write_both(void)
{
	write_fabric("two.yaml", A, B);
	write_fabric("small.yaml", with(A, "allgather", "allreduce"), B);
}

/* ---- light ---- */

static const char *touched(const char *job)
{
	return ring_touched(RING, job);
}

static const int in_order[NODES] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static const char *replay(const char *name, const char *job)
{
	return ring_check(name, RING, job, in_order);
}

/* ---- two jobs ---- */

static void only_their_channels(void)
{
	const char *a = replay("all-gather", "a"), *b = replay("all-reduce", "b");

	check(matches(b, " channel [4-7] ") && !matches(b, " channel [0-3] "),
	      "the light of b is on its channels only");
	check(matches(a, " channel [0-2] ") && !matches(a, " channel [3-7] "),
	      "and that of a on its own");
}

static void changes_of_one(void)
{
	const char *b = touched("b"), *a = touched("a");

	expect(0, "job a does something else", "apply -f small.yaml");
	check(b[0] && same(touched("b"), b), "no register of b was written");
	check(!same(touched("a"), a), "those of a were");
	replay("something else", "a");
	write_fabric("b.yaml", B);
	expect(0, "job a goes", "apply -f b.yaml");
	check(same(touched("b"), b) && same(touched("a"), ""), "and only a");
	expect(0, "plan: nothing to do", "plan -f b.yaml");
	write_fabric("late.yaml", B, A);
	expect(0, "a comes back, later in the file", "apply -f late.yaml");
	check(same(touched("b"), b), "b was not touched");
	write_fabric("first.yaml", "name: c, ring: ring0, collective: broadcast, size: 1MiB, "
		     "channels: 1", A, B);
	expect(0, "a third job, first in the file", "apply -f first.yaml");
	check(same(touched("b"), b), "b was not touched by that");
	check(matches(control(RING, "map"), "^program a .* channels 0\\+3 sha256 "),
	      "a keeps the channels that it has");
	check(matches(control(RING, "map"), "^program c .* channels 3\\+1 sha256 "),
	      "c takes what is free");
	expect(0, "rollback", "rollback");
	check(same(touched("b"), b), "b was not touched by the way back");
}

static void tell_two(void)
{
	write_both();
	expect(0, "check: two jobs on one ring", "check two.yaml");
	expect(0, "apply", "apply -f two.yaml");
	expect(0, "plan again: nothing to do", "plan -f two.yaml");
	only_their_channels();
	changes_of_one();
}

static void tell_collectives(void)
{
	static const char *const kinds[] = { "reduce-scatter", "broadcast", "all-to-all" };

	for (int i = 0; i < 3; i++) {
		write_fabric("other.yaml", with(A, "allgather", kinds[i]), B);
		expect(0, "another collective", "apply -f other.yaml");
		replay(kinds[i], "a");
	}
}

/* ---- what goes wrong half way ---- */

static void tell_half(void)
{
	static const char *const faults[] = {
		"nack=1", "nack=2", "corrupt-shadow", "ignore-commit", "corrupt-active",
		"drop-reply=9", "drop-set", "silence-set",
	};
	const char *map, *b, *trace;

	write_both();
	expect(0, "two jobs", "apply -f two.yaml");
	map = control(RING, "map");
	b = touched("b");
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		int status;

		control(RING, "fault %s", faults[i]);
		status = weft("apply -f small.yaml");
		control(RING, "clear");
		/* Refused, or taken back after a reading told what had happened. */
		check_of(faults[i], status != 0 && same(touched("b"), b) &&
			 same(without(control(RING, "map"), map), "") &&
			 same(without(map, control(RING, "map")), ""), "all as before, b too");
		check_of(faults[i], weft("plan -f two.yaml") == 0, "and the state knows it");
	}
	/* One setting is not what was loaded. */
	control(RING, "flip b");
	trace = ring_play(RING, "b");
	check(ring_replay(ring_schedule("b"), trace, in_order), "the replay finds a setting that "
	      "changed");
	expect(2, "verify finds it", "verify");
	expect(0, "update puts it right", "apply --mode update -f two.yaml");
	replay("b is right again", "b");
	expect(0, "verify agrees", "verify");
}

/* ---- what cannot be ---- */

static void tell_refused(void)
{
	write_fabric("clash.yaml", B, with(A, "channels: 3", "channels: 2-4"));
	expect(65, "overlapping channels", "plan -f clash.yaml");
	has_error("one error names both jobs", "clash.yaml:[0-9]+:[0-9]+: job a: channels 2-4 of "
		  "ring ring0: job b has channels 4-7 there");
	write_fabric("many.yaml", A, with(A, "name: a", "name: d"), with(B, "4-7", "3"));
	expect(65, "more channels than there are", "plan -f many.yaml");
	has_error("the error says who has them", "job b: no 3 channels in a row are free on ring "
		  "ring0: job a has 0-2, job d has 3-5");
	write_rings("memory.yaml", 1, "program-memory: 50B", (const char *const[3]){ A, B });
	expect(65, "programs longer than the memory", "plan -f memory.yaml");
	has_error("the error says both sizes", "ring0: the programs of its jobs have [0-9]+ bytes, "
		  "its program memory holds 50");
	write_rings("dark.yaml", 1, "loss: { launch: 0dBm, sensitivity: -3dBm, add: 1dB, "
		    "drop: 1dB, pass-by: 0.1dB, span: 2dB }", (const char *const[3]){ A });
	expect(65, "a budget that no lightpath meets", "plan -f dark.yaml");
	has_error("names lightpath, loss and budget", "job a: lightpath 0 -> 1 over 1 hops loses "
		  "4.000 dB, and the budget is 0.000 dB");
}

/* ---- parts of a ring, which may use the same channels ---- */

static const int over[] = { 1, 2, 6 }, west[] = { 1, 2, 3, 4 }, east[] = { 6, 7, 0 };

static void replay_parts(const char *name)
{
	ring_check(name, RING, "over", over);
	ring_check(name, RING, "west", west);
	ring_check(name, RING, "east", east);
}

#define ON_WEST "name: west, ring: ring0, nodes: 'n[1-4]', "
#define ON_EAST "name: east, ring: ring0, nodes: 'n[6-7,0]', "
#define SEGMENT "size: 1MiB, segment: true, channels: 0-3, collective: "

static void tell_parts(void)
{
	write_fabric("parts.yaml", "name: over, ring: ring0, nodes: 'n[1,2,6]', collective: "
		     "allgather, size: 1MiB, channels: 4-7", ON_WEST SEGMENT "allreduce",
		     ON_EAST SEGMENT "allreduce");
	expect(0, "three jobs on parts of the ring", "apply -f parts.yaml");
	expect(0, "plan: nothing to do", "plan -f parts.yaml");
	replay_parts("over other nodes, on segments, and over the seam of the count");
	write_fabric("cast.yaml", "name: over, ring: ring0, nodes: 'n[1,2,6]', collective: "
		     "broadcast, size: 64KiB, channels: 4-7", ON_WEST SEGMENT "broadcast",
		     ON_EAST SEGMENT "broadcast");
	expect(0, "three broadcasts on parts of the ring", "apply -f cast.yaml");
	replay_parts("broadcasts");
	write_fabric("meet.yaml", ON_WEST SEGMENT "allreduce",
		     with(ON_EAST SEGMENT "allreduce", "6-7,0", "4-7"));
	expect(65, "segments that share a node", "plan -f meet.yaml");
	has_error("are refused by name",
		  "job east: channels 0-3 of ring ring0: job west has channels 0-3 there");
}

/* ---- several fibres, and more than one ring ---- */

static void tell_fibres(void)
{
	const char *trace;

	write_rings("fibres.yaml", 2, "", (const char *const[3]){ A, B, "name: e, ring: ring1, "
		    "collective: allgather, size: 64MiB" });
	expect(0, "two rings of two fibres each way", "apply -f fibres.yaml");
	expect(0, "plan: nothing to do", "plan -f fibres.yaml");
	trace = replay("all-gather on two fibres", "a");
	replay("all-reduce on two fibres", "b");
	check(matches(trace, " fibre 1 "), "both fibres carry light");
	ring_check("and on the second ring", "ring1", "e", in_order);
}

/* ---- retuning while others carry data, as the device says that it can ---- */

#define O "name: o, ring: ring0, size: 4KiB, channels: 2, collective: "

static struct ring_times times = {
	.nodes = NODES, .retune = 25000, .conversion = 500, .bits_per_ns = 40, .size_bytes = 4096,
};

/* Of the file's one job, as planned: how long it takes. */
static int64_t plan_time(const char *path)
{
	weft("plan -f %s --format json", path);
	times.time_ns = atoll(value("jobs.0.time_ns"));
	return times.time_ns;
}

static const char *set_in_time(const char *name, const char *trace, const char *tunings)
{
	const char *wrong;

	times.span_delay = strstr(name, "far") ? 300 : 0;
	wrong = ring_overlap(ring_schedule("o"), trace, tunings, &times);
	if (wrong) {
		sim_tell("%s", wrong);
	}
	return wrong;
}

static void each_overlaps(void)
{
	static const char *const kinds[] = { "broadcast", "all-to-all", "allreduce", "allgather" };

	for (int i = 0; i < 4; i++) {
		const char *trace;

		write_rings("overlap.yaml", 1, "conversion: 500ns",
			    (const char *const[3]){ with(O "X", "X", kinds[i]) });
		plan_time("overlap.yaml");
		check_of(kinds[i], !same(value("jobs.0.retune_hidden_ns"), "0"), "some is hidden");
		expect(0, "with overlap", "apply -f overlap.yaml");
		trace = replay(kinds[i], "o");
		check_of(kinds[i], !set_in_time(kinds[i], trace, control(RING, "tunings o")),
			 "set in the dark, and in time");
	}
	expect(0, "plan: nothing to do", "plan -f overlap.yaml");
}

/* Once more for step 2, while step 1 has light on it. */
static const char *under_light(const char *tunings)
{
	struct buf b = { 0 };
	const char *first = with(with(tunings, "tune 0", "tune 2"), "after -1", "after 0");

	buf_printf(&b, "%s%.*s\n", tunings, (int)strcspn(first, "\n"), first);
	return buf_steal(&b);
}

static void tell_overlap(void)
{
	const char *trace, *tunings;
	int64_t near;

	each_overlaps();
	near = times.time_ns;
	trace = ring_play(RING, "o");
	tunings = control(RING, "tunings o");
	write_rings("far.yaml", 1, "conversion: 500ns, span-delay: 300ns",
		    (const char *const[3]){ O "allgather" });
	check(plan_time("far.yaml") >= near + 300, "light that takes time from node to node");
	check(!set_in_time("far", trace, tunings), "is set in the dark, and in time");
	check(atoi(ask("jobs.0.retune_hidden_ns", "status")) > 0, "status tells what is hidden");
	check(set_in_time("far", trace, under_light(tunings)),
	      "a resonator set under light is found");
	write_rings("overlap.yaml", 1, "overlap: false", (const char *const[3]){ O "allgather" });
	weft("plan -f overlap.yaml --format json");
	check(same(value("jobs.0.retune_hidden_ns"), "0"), "overlap: false");
}

/* ---- the table ---- */

static void begin_story(void (*words)(void), int rings, const char *option)
{
	struct scenario s;

	scenario_simple(&s);
	s.n_devices = rings;
	for (int i = 0; i < rings; i++) {
		s.devices[i] = (struct cluster_device){ .dialect = "mrr-reg", .size = "8x8",
							.option = option };
	}
	tell(&s, words);
}

static void run_two(void)
{
	begin_story(tell_two, 1, NULL);
}

static void run_collectives(void)
{
	begin_story(tell_collectives, 1, NULL);
}

static void run_half(void)
{
	begin_story(tell_half, 1, NULL);
}

static void run_refused(void)
{
	begin_story(tell_refused, 1, NULL);
}

static void run_parts(void)
{
	begin_story(tell_parts, 1, NULL);
}

static void run_fibres(void)
{
	begin_story(tell_fibres, 2, "--fibres=2");
}

static void run_overlap(void)
{
	begin_story(tell_overlap, 1, "--overlap");
}

const struct story ring_stories[] = {
	{ "ring-two", "two jobs on a ring, and changes of one of them", run_two },
	{ "ring-collectives", "one collective after the other", run_collectives },
	{ "ring-half", "a program that fails half way, beside another", run_half },
	{ "ring-refused", "jobs that do not fit", run_refused },
	{ "ring-parts", "jobs on some of the nodes", run_parts },
	{ "ring-fibres", "two rings of two fibres", run_fibres },
	{ "ring-overlap", "retuning while others carry data", run_overlap },
	{ 0 },
};
