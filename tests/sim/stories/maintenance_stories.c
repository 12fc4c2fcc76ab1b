/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators ask of devices beside light: ports enabled and disabled, waves that were lost
 * found again, a homing run, moves cancelled. Who, why and every command is in the audit trail;
 * nothing of it while a change runs or the fabric is frozen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define SWITCH "ocs0"
#define RING "ring1"
#define ROBOT "ocs2"
#define LIMITED "queue: 2, wear_limit: 1 }"

/* The small one, with a robot that eight hosts more are at; with and without their job. */
static void write_fabrics(void)
{
	static const char robot[] =
		"  - { name: ocs2, size: 8x8, driver: rome-cli, address: '127.0.0.1:5002', "
		"options: { gap_ms: 0, poll_ms: 20, move_ms: 2000, queue: 2 }, "
		"timeout: 1s }\nrings:\n";
	const char *text = small_fabric("UniRing(1,4)", 0), *dark, *lit;

	text = with(text, "rings:\n", robot);
	text = with(text, "hosts:\n", "hosts:\n  - { name: 'r[0-7]', ports: p0, rate: 100Gbps, "
		    "reactivation: 10ms }\n");
	dark = with(text, "jobs:\n", "  - { from: 'r[0-7].p0', to: 'ocs2.[1-8]' }\njobs:\n");
	lit = with(dark, "jobs:\n", "jobs:\n  - { name: slow, nodes: 'r[0-7]', collective: "
		   "allreduce, size: 1MiB, topology: 'UniRing(1,8)', alpha: 10us }\n");
	write_file("a.yaml", "%s", dark);
	write_file("b.yaml", "%s", lit);
	write_file("a-worn.yaml", "%s", with(dark, "queue: 2 }", LIMITED));
	write_file("b-worn.yaml", "%s", with(lit, "queue: 2 }", LIMITED));
}

/* ---- ports ---- */

static int in;			/* of the circuit that is there, from 1 */

static void refused_ports(void)
{
	const char *circuit = first_circuit(SWITCH);

	in = atoi(circuit) + 1;
	expect(64, "a port to be disabled wants a reason", "device port ocs0 in%d disable", in);
	expect(64, "a port is in3 or out3", "device port ocs0 3 disable --reason x");
	expect(65, "there is no such port", "device port ocs0 in9 disable --reason x");
	expect(65, "there is no such device", "device port ocs9 in1 disable --reason x");
	expect(65, "not every driver can", "device port ocs2 in1 disable --reason x");
	has_error("which says so", "ocs2: driver rome-cli knows no way to enable or disable ports");
	expect(75, "light that is meant to be there is not taken",
	       "device port ocs0 in%d disable --reason dirty", in);
	has_error("its circuit, ends and job are named", "that interrupts circuit in [0-9]+ -> out "
		  "[0-9]+ \\(h[0-3]\\.p[01] to h[0-3]\\.p[01], job reduce\\)");
	has_error("and what does it", "force");
	check(same(first_circuit(SWITCH), circuit), "nothing was sent");
}

static void forced_port(void)
{
	char name[40], list[60], pattern[100];

	snprintf(name, sizeof(name), "in %d disabled", in);
	expect(0, "by force", "device port ocs0 in%d disable --reason 'dirty connector' --force "
	       "--format json", in);
	check(same(value("device"), SWITCH) && same(value("done"), name) &&
	      same(value("evidence"), "read-back") && same(value("interrupted.#"), "1"),
	      "what was done, in JSON");
	expect(2, "the light that went is a difference", "diff");
	snprintf(pattern, sizeof(pattern), "^ocs0: out of use: %s", name);
	has("beside the port that is out of use", pattern);
	expect(0, "the device", "device show ocs0 --format json");
	snprintf(list, sizeof(list), "[\"%s\"]", name);
	check(same(value("unusable"), list) && same(value("unusable_count"), "1"), "tells it too");
	expect(0, "the audit trail", "audit --device ocs0");
	snprintf(pattern, sizeof(pattern), ":oxc:swit:port:dis \\(@%d\\)", in);
	has("has the command", pattern);
	snprintf(pattern, sizeof(pattern), "%s by .*, dirty connector: done, read back", name);
	has("who asked, and why", pattern);
}

static void tell_ports(void)
{
	struct command *watch = begin("watch --format json");
	char pattern[20];

	refused_ports();
	forced_port();
	await(10, "who watches is told",
	      matches(output_of(watch), "\"device-maintenance\".*dirty connector"));
	expect(0, "a plan goes around the port", "apply -f a.yaml");
	snprintf(pattern, sizeof(pattern), "^%d,", in - 1);
	check(!matches(map_of(SWITCH), pattern), "the port has no light");
	expect(0, "all is as intended", "diff");
	expect(0, "enabled again", "device port ocs0 in%d enable", in);
	expect(0, "and plans use it", "apply -f a.yaml");

	control(SWITCH, "fault silence-set");
	expect(124, "without an answer the result is unknown",
	       "device port ocs0 in8 disable --reason test --force");
	expect(0, "the audit trail", "audit --device ocs0 --limit 4");
	has("says so", "in 8 disabled by .*, test: .*");
	expect(0, "enabled", "device port ocs0 in8 enable");
	expect(0, "errors are forgotten", "device recover ocs0 --clear");
	has("in words", "0 errors waited");
	expect(0, "all is well", "apply -f a.yaml");
}

static void tell_frozen(void)
{
	expect(0, "frozen", "freeze -m smoke");
	expect(75, "no port is set", "device port ocs0 in8 disable --reason test");
	has_error("and why", "frozen by .*smoke");
	expect(75, "nothing recovers", "device recover ring1 --relock");
	expect(0, "no longer frozen", "unfreeze");
}

/* ---- rings: checklist 16, lost locks are differences that name resonators ---- */

/* Of the program that is loaded: another with each commit. */
static int generation(void)
{
	const char *at = strstr(control(RING, "slots"), "program gather generation ");

	return at ? atoi(at + strlen("program gather generation ")) : -1;
}

static void lost_locks(struct command *watch)
{
	control(RING, "fault drift=20");
	await(10, "weftd hears of lost locks",
	      atoi(ask("devices.ring1.program.lost_count", "status")) >= 2);
	control(RING, "clear");
	weft("verify");
	expect(2, "which are differences", "diff --format json");
	check(same(value("devices.ring1.program.lost.#"),
		   value("devices.ring1.program.lost_count")) &&
	      atoi(value("devices.ring1.program.unlocked")) > 0 &&
	      same(value("devices.ring1.program.failed_count"), "0") &&
	      matches(value("devices.ring1.program.lost.*"),
		      "^((,|^)n[0-9] c?cw fibre 0 channel [0-9]: lock lost)+$"),
	      "node, direction, fibre, channel and kind");
	expect(2, "in the table too", "diff");
	has("one a line",
	    "^ *ring1 +not locked +n[0-9] c?cw fibre 0 channel [0-9]: lock lost");
	check(matches(output_of(watch), "\"device-report\".*alarm: n[0-9] c?cw fibre 0 channel "
		      "[0-9]: lock lost"), "each was told when it happened");
}

static void found_again(void)
{
	const int sets = sets_of(RING), before = generation();

	expect(0, "they search again",
	       "device recover ring1 --relock --reason 'after the heat' --format json");
	check(same(value("done"), "relock") && same(value("text"), "all settings are locked"),
	      "and find it");
	expect(0, "no difference is left", "verify");
	check(sets_of(RING) == sets && generation() == before, "without a commit");
	control(RING, "fault zero-lock=2:1");
	expect(1, "what does not lock", "device recover ring1 --relock");
	has_error("is named",
		  "ring1: [0-9]+ settings are still not locked: .*node 2 .*channel 1: zero lock");
	control(RING, "clear");
}

static void tell_locks(void)
{
	struct command *watch = begin("watch --format json");

	await(10, "a client watches", matches(output_of(watch), "resync"));
	lost_locks(watch);
	found_again();
	control(RING, "fault interlock");
	weft("verify");
	check(same(ask("devices.ring1.problem", "status"), "the laser interlock is open"),
	      "an open interlock is the device's problem");
	control(RING, "clear");
	control(RING, "unset");
	expect(75, "no search for waves that are not meant", "device recover ring1 --relock");
	has_error("which says why", "its programs are not as intended");
	expect(0, "the program is loaded again", "apply -f a.yaml");
}

/* ---- robots ---- */

/* checklist 22, a change is cancelled; moves that were not put into the robot's queue are left
 * out, those in it end, and what was made goes back. */
static void tell_cancel(void)
{
	struct command *c;

	control(ROBOT, "fault move=400");
	c = begin("apply -f b.yaml");
	await(10, "two moves are asked for", sets_of(ROBOT) >= 2);
	expect(75, "no port is set in the middle", "device port ocs0 in8 disable --reason test");
	has_error("as a change runs", "a change is under way");
	weft("cancel");
	check(finish(c) == 3, "cancelled: rolled back");
	check(same(map_of(ROBOT), ""), "the robot's circuits are gone");
	check(sets_of(ROBOT) <= 4, "of eight moves two were made, and taken back");
}

static void tell_homing(void)
{
	int sets;

	control(ROBOT, "fault homing");
	weft("apply -f b.yaml");
	check(matches(said(), "homing run") || matches(said_wrong(), "homing run"),
	      "a robot asks for a homing run");
	expect(0, "it gets one", "device recover ocs2 --homing --reason 'it asked'");
	has("and goes on", "the homing run is over");
	expect(0, "the audit trail", "audit --device ocs2 --limit 60");
	has("has the command", "command +homing run");
	expect(0, "what it owes is made", "apply -f b.yaml");
	expect(0, "and true", "verify");

	/* Who asked is on record even if weftd does not live to see the end. */
	control(ROBOT, "fault move=1500");
	sets = sets_of(ROBOT);
	begin("device recover ocs2 --homing --reason 'last words'");
	await(10, "a homing run begins", sets_of(ROBOT) > sets);
	crash_weftd();
	expect(0, "the audit trail of a weftd that was killed", "audit --device ocs2 --limit 5");
	has("has who asked, and why", "homing asked for by .*, last words");
	control(ROBOT, "clear");
	expect(0, "once more", "device recover ocs2 --homing");
	expect(0, "all is as it was", "verify");
}

/* checklist 21: ports that are worn keep what they have, and plans use no other worn port. */
static void tell_worn(void)
{
	int sets;

	expect(0, "a robot's job", "apply -f b.yaml");
	expect(0, "worn ports keep their circuits", "apply -f b-worn.yaml");
	expect(0, "without the limit they are moved", "apply -f a.yaml");
	sets = sets_of(ROBOT);
	expect(0, "with it, and dark", "apply -f a-worn.yaml");
	expect(65, "plans do not use them", "plan -f b-worn.yaml");
	has_error("which says where ports are missing", "ports at r[0-7]");
	check(sets_of(ROBOT) == sets, "and nothing was sent");
}

/* ---- the table ---- */

static void (*words)(void);

static void with_fabric(void)
{
	write_fabrics();
	control(ROBOT, "clear");
	expect(0, "applied", "apply -f a.yaml");
	words();
}

static void begin_story(void (*story)(void))
{
	struct scenario s;

	small_scenario(&s);
	s.poll_s = 60;
	s.n_devices = 3;
	s.devices[2] = (struct cluster_device){ .dialect = "rome-cli", .size = "8x8" };
	words = story;
	tell(&s, with_fabric);
}

static void run_ports(void)
{
	begin_story(tell_ports);
}

static void run_frozen(void)
{
	begin_story(tell_frozen);
}

static void run_locks(void)
{
	begin_story(tell_locks);
}

static void run_cancel(void)
{
	begin_story(tell_cancel);
}

static void run_homing(void)
{
	begin_story(tell_homing);
}

static void run_worn(void)
{
	begin_story(tell_worn);
}

const struct story maintenance_stories[] = {
	{ "maintenance-ports", "a port is disabled, with its light and without", run_ports },
	{ "maintenance-frozen", "nothing of it while the fabric is frozen", run_frozen },
	{ "maintenance-locks", "locks that were lost are found again", run_locks },
	{ "maintenance-cancel", "a robot's change is cancelled", run_cancel },
	{ "maintenance-homing", "a robot's homing run, also over a crash", run_homing },
	{ "maintenance-worn", "worn ports of a robot", run_worn },
	{ 0 },
};
