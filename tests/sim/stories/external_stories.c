/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 16: what others do to light is found, attributed and on record until it is right
 * again; and where the fabric says so it is brought back, but not against an owner, not by robots
 * that were not told to, and not for ever.
 *
 * Six dialects at once, each with hosts and a job of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define SCPI "ocs0"
#define TL1 "ocs1"
#define GLIMMERGLASS "ocs2"
#define CALIENT "ocs3"
#define SONIC "ocs4"
#define ROBOT "ocs5"
#define RESTORE "external-changes: restore, restore-after: 100ms"

#define N_DEVICES 6

static const char *const dialects[N_DEVICES] = {
	"polatis-scpi", "polatis-tl1", "glimmerglass-tl1", "calient-tl1", "sonic-ocs", "rome-cli",
};

static char maps[N_DEVICES][400];	/* as they are meant to be */
static struct command *watch;

/* ---- the fabric ---- */

static void add_device(struct buf *b, int i, const char *policy)
{
	buf_printf(b, "  - { name: ocs%d, size: 8x8, driver: %s, address: 127.0.0.1:%d, "
		   "timeout: 2s, options: { gap_ms: 0 }%s%s }\n", i, dialects[i], 5000 + i,
		   policy[0] ? ", " : "", policy);
}

/* How all are changed, and what the robot's panel says of its own. */
static const char *fabric(const char *changes, const char *robots)
{
	struct buf b = { 0 };

	buf_str(&b, "weft: 1\nfabric: shared\nhosts:\n");
	for (int i = 0; i < N_DEVICES; i++) {
		buf_printf(&b, "  - { name: 'd%d-[0-3]', ports: 'p[0-1]', rate: 100Gbps }\n", i);
	}
	buf_str(&b, "switches:\n");
	for (int i = 0; i < N_DEVICES; i++) {
		buf_str(&b, i == N_DEVICES - 1 ? "panels:\n" : "");
		add_device(&b, i, i == N_DEVICES - 1 ? robots : "");
	}
	buf_str(&b, "fibres:\n");
	for (int i = 0; i < N_DEVICES; i++) {
		buf_printf(&b, "  - { from: 'd%d-[0-3].p[0-1]', to: 'ocs%d.[1-8]' }\n", i, i);
	}
	buf_str(&b, "jobs:\n");
	for (int i = 0; i < N_DEVICES; i++) {
		buf_printf(&b, "  - { name: j%d, nodes: 'd%d-[0-3]', collective: allreduce, "
			   "size: 1MiB, topology: 'UniRing(1,4)' }\n", i, i);
	}
	buf_printf(&b, "changes: { %s }\n", changes);
	return buf_steal(&b);
}

static void write_fabrics(void)
{
	write_file("report.yaml", "%s", fabric("external-changes: report", ""));
	write_file("restore.yaml", "%s", fabric(RESTORE, ""));
	write_file("robots.yaml", "%s", fabric(RESTORE, "external-changes: restore"));
}

static void begin_with(const char *file)
{
	write_fabrics();
	control(ROBOT, "fault move=50");
	expect(0, "a fabric of six devices", "apply -f %s", file);
	watch = begin("watch --format json");
	await(10, "a client watches", matches(output_of(watch), "resync"));
	for (int i = 0; i < N_DEVICES; i++) {
		snprintf(maps[i], sizeof(maps[i]), "%s", map_of(cluster_device_name(i)));
	}
}

/* ---- what happens, and what is on record ---- */

static const char *intended(const char *device)
{
	return maps[cluster_device_of(device)];
}

static void verify(void)
{
	weft("verify");
}

/* Of a device's newest record. */
static bool record_is(const char *device, const char *key, const char *wanted)
{
	return same(ask(key, "external-changes %s -n 1", device), wanted);
}

static bool record_says(const char *device, const char *key, const char *pattern)
{
	return matches(ask(key, "external-changes %s -n 1", device), pattern);
}

#define OUTCOME "changes.0.outcome"
#define WHO "changes.0.who"

/* Another user takes a circuit away; devices that say nothing are read. */
static void take(const char *device)
{
	control(device, "unset %s", first_circuit(device));
	if (same(device, SCPI) || same(device, SONIC)) {
		verify();
	}
}

static bool is_restored(const char *device)
{
	return same(map_of(device), intended(device)) && record_is(device, OUTCOME, "restored");
}

static bool is_gone(const char *device)
{
	return record_is(device, "changes.0.kind", "gone") && same(value(OUTCOME), "open");
}

/* The input of its first circuit. */
static int first_input(const char *device)
{
	return atoi(first_circuit(device));
}

/* ---- reported ---- */

static void each_is_on_record(void)
{
	for (int i = 0; i < N_DEVICES; i++) {
		const char *device = cluster_device_name(i);
		const int before = sets_of(device);

		take(device);
		await(10, "a circuit that another user removed is on record", is_gone(device));
		check_of(dialects[i], matches(value("changes.0.detected_by"), "^(event|verify)$"),
			 "with how it was noticed");
		check_of(dialects[i], sets_of(device) == before, "nothing was sent");
	}
}

static void who_it_was(void)
{
	check(record_says(TL1, WHO, "^the device says: REPT EVT") &&
	      same(value("changes.0.detected_by"), "event"), "the words of the device are there");
	check(record_says(ROBOT, WHO, "^the device says: .*OP:disconnect"),
	      "and those of the robot");
	check(record_is(SCPI, WHO, "unknown"), "who cannot be known is unknown");
	check(strcmp(value("changes.0.last_good_at"), value("changes.0.detected_at")) < 0 &&
	      atoi(value("changes.0.in")) > 0 && atoi(value("changes.0.out")) > 0,
	      "it happened between two readings");
	expect(2, "diff", "diff");
	has("names it", SCPI " +gone: in [0-9]+ -> out [0-9]+ +20.* to 20.* +(verify|event) "
	    "+unknown +open");
	expect(0, "status too", "status");
	has("by whom", "the device says: REPT EVT");
	expect(0, "and the device", "device show " TL1);
	has("with the policy", "external changes are +reported");
	check(matches(output_of(watch), "\"kind\":\"external-change\".*\"device\":\"" TL1 "\""),
	      "those who watch hear of it");
}

static void by_itself(void)
{
	/* Its record is of a circuit that is not the first any more. */
	const char *gone = without(intended(GLIMMERGLASS), map_of(GLIMMERGLASS));

	control(GLIMMERGLASS, "set %.*s", (int)strcspn(gone, "\n"), gone);
	verify();
	await(10, "what comes back by itself is over",
	      record_is(GLIMMERGLASS, OUTCOME, "by itself"));
	await(10, "and told", matches(output_of(watch), "\"kind\":\"external-change-resolved\".*"
				      "\"device\":\"" GLIMMERGLASS "\""));
}

static void remembered(void)
{
	const char *id;

	restart_weftd();
	expect(0, "weftd starts again", "wait --for ready --timeout 20s");
	check(record_is(SCPI, OUTCOME, "open"), "and remembers");
	control(CALIENT, "set 5,5");
	verify();
	check(record_is(CALIENT, "changes.0.kind", "appeared") &&
	      same(value("changes.0.in"), "6") && same(value("changes.0.out"), "6"),
	      "a circuit that another user made is on record");
	expect(0, "an operator applies", "apply -f report.yaml");
	id = ask("changes.0.id", "history -n 1");
	check(id[0] && record_is(SCPI, OUTCOME, "repaired") && same(value("changes.0.change"), id),
	      "what was made right by a change names it");
	check(record_is(CALIENT, OUTCOME, "open"), "what a change left alone is still on record");
}

static void tell_report(void)
{
	begin_with("report.yaml");
	each_is_on_record();
	who_it_was();
	by_itself();
	remembered();
}

/* ---- restored ---- */

static void each_comes_back(void)
{
	for (int i = 0; i < N_DEVICES - 1; i++) {
		take(cluster_device_name(i));
		await(8, "exactly what went is there again", is_restored(cluster_device_name(i)));
	}
	expect(0, "as history tells", "history -n 1 --format json");
	value_is("by a change of weftd's", "changes.0.who", "weftd");
	has("that says why", "\"comment\": \"restores [a-z0-9]+: 1 gone");
}

static void in_the_way(void)
{
	const char *circuit = first_circuit(SONIC);

	control(SONIC, "unset %s", circuit);
	control(SONIC, "set %d,7", atoi(circuit));
	verify();
	await(20, "a circuit of no job is removed where it holds a port", is_restored(SONIC));
	control(SCPI, "set 5,5");
	verify();
	control(SCPI, "unset %s", first_circuit(SCPI));
	verify();
	await(20, "and one that holds none is left alone",
	      same(without(map_of(SCPI), intended(SCPI)), "5,5\n") &&
	      same(without(intended(SCPI), map_of(SCPI)), ""));
	control(SCPI, "unset 5,5");
}

static void an_owner(void)
{
	const int in = first_input(GLIMMERGLASS);
	char circuit[32];
	int before;

	snprintf(circuit, sizeof(circuit), "^%d,7$", in);
	expect(0, "hands in the rack", "freeze");
	control(GLIMMERGLASS, "fault locked=o7");
	control(GLIMMERGLASS, "unset %s", first_circuit(GLIMMERGLASS));
	control(GLIMMERGLASS, "set %d,7", in);
	verify();
	before = sets_of(GLIMMERGLASS);
	expect(0, "that leave", "unfreeze");
	await(20, "the owner of what is in the way is named",
	      matches(weftd_log(), "is in the way of .* and belongs to noc"));
	check(sets_of(GLIMMERGLASS) == before && matches(map_of(GLIMMERGLASS), circuit),
	      "and keeps it");
	control(GLIMMERGLASS, "clear");
	verify();
	await(20, "until no one uses it any more", is_restored(GLIMMERGLASS));
}

static void robots(void)
{
	const int before = sets_of(ROBOT);

	take(ROBOT);
	await(10, "a robot's circuit is gone", record_is(ROBOT, OUTCOME, "open"));
	sim_sleep(60 * SIM_S);
	check(sets_of(ROBOT) == before, "it is not moved by a policy that does not name its panel");
}

static void frozen(void)
{
	expect(0, "the fabric is frozen", "freeze");
	take(TL1);
	await(10, "what is taken now", record_is(TL1, OUTCOME, "open"));
	sim_sleep(60 * SIM_S);
	check(!same(map_of(TL1), intended(TL1)), "is not restored while it is");
	expect(0, "until it is not", "unfreeze");
	await(20, "then it is", is_restored(TL1));
}

static bool is_noticed(void)
{
	verify();
	return record_says(CALIENT, WHO, "the map is empty|the device restarted") ||
	       matches(said(), "the map is empty|the device restarted");
}

static void dark(void)
{
	control(CALIENT, "restart dark 100");
	await(20, "a device that lost its map with its power is noticed", is_noticed());
	await(20, "and has it again", is_restored(CALIENT));
}

static void tell_restore(void)
{
	begin_with("restore.yaml");
	each_comes_back();
	in_the_way();
	an_owner();
	robots();
	frozen();
	dark();
}

/* ---- a fight ---- */

static bool is_given_up(void)
{
	return record_is(GLIMMERGLASS, OUTCOME, "open") &&
	       same(value("changes.0.given_up"), "true");
}

static void tell_fight(void)
{
	int n;

	begin_with("restore.yaml");
	for (int i = 0; i < 40 && !is_given_up(); i++) {
		take(GLIMMERGLASS);
		sim_sleep(300 * SIM_MS);
	}
	check(is_given_up(), "whoever undoes it each time wins");
	check(matches(output_of(watch), "\"kind\":\"restore-given-up\".*\"device\":\""
		      GLIMMERGLASS "\"") ||
	      matches(weftd_log(), GLIMMERGLASS ": restored 3 times"), "which is an alarm");
	n = sets_of(GLIMMERGLASS);
	sim_sleep(60 * SIM_S);
	check(sets_of(GLIMMERGLASS) == n, "and only reported from then on");
	expect(0, "status", "status");
	has("says so", GLIMMERGLASS " is changed by another user again and again");
	expect(0, "an operator's change", "apply -f robots.yaml");
	check(!is_given_up(), "puts an end to it");
	take(GLIMMERGLASS);
	await(20, "and restoring begins again", is_restored(GLIMMERGLASS));
	take(ROBOT);
	await(20, "a robot that was told to restores", is_restored(ROBOT));
}

/* ---- rings ---- */

static const char ring[] =
	"weft: 1\nfabric: ring\nhosts:\n  - { name: 'n[0-3]' }\n"
	"rings:\n  - { name: ring0, nodes: 'n[0-3]', channels: 4, channel-rate: 40Gbps, "
	"driver: mrr-reg, address: '127.0.0.1:5000', timeout: 500ms }\n"
	"jobs:\n  - { name: jring, ring: ring0, nodes: all, collective: allgather, size: 1MiB }\n"
	"changes: { " RESTORE " }\n";

static void tell_ring(void)
{
	const char *map;

	write_file("ring.yaml", "%s", ring);
	expect(0, "a ring", "apply -f ring.yaml");
	map = control("ring0", "map");
	control("ring0", "unset");
	verify();
	check(record_is("ring0", "changes.0.kind", "program"),
	      "a ring's program that another user ended is on record");
	await(20, "and loaded again", same(control("ring0", "map"), map) &&
	      record_is("ring0", OUTCOME, "restored"));
}

/* ---- the table ---- */

static void begin_story(void (*words)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.poll_s = 0;
	s.n_devices = N_DEVICES;
	for (int i = 0; i < N_DEVICES; i++) {
		s.devices[i] = (struct cluster_device){ .dialect = dialects[i], .size = "8x8" };
	}
	tell(&s, words);
}

static void run_report(void)
{
	begin_story(tell_report);
}

static void run_restore(void)
{
	begin_story(tell_restore);
}

static void run_fight(void)
{
	begin_story(tell_fight);
}

static void run_ring(void)
{
	struct scenario s;

	scenario_simple(&s);
	s.poll_s = 0;
	s.devices[0] = (struct cluster_device){ .dialect = "mrr-reg", .size = "4x4" };
	tell(&s, tell_ring);
}

const struct story external_stories[] = {
	{ "external-report", "what another user does to light is found, and on record",
	  run_report },
	{ "external-restore", "and brought back, where that is wanted and allowed", run_restore },
	{ "external-fight", "but not against one who does it again and again", run_fight },
	{ "external-ring", "a ring's program that another user ended is loaded again", run_ring },
	{ 0 },
};
