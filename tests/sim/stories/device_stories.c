/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 5, 7, 8, 17: devices that misbehave during an apply: each fault is named, nothing is
 * committed that was not read back, and what is left is what the message says.
 *
 * The first fabric leaves every second port of the switch dark; the full one uses all ports, and
 * it and the second have circuits that the other has not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define SWITCH "ocs0"
#define RING "ring1"

static const char *kept;	/* what the switch held, and is to hold again */

/* Both the switch and weft's record are as they were. */
static void unchanged(const char *name)
{
	check_of(name, same(map_of(SWITCH), kept), "the switch holds what it held");
	check_of(name, weft("verify") == 0, "verify agrees");
}

static void apply_first(const char *file)
{
	write_small_fabric("a.yaml", "UniRing(1,4)", 0);
	write_small_fabric("b.yaml", "Ring(4)", 2);
	write_small_fabric("full.yaml", "UniRing(2,4)", 0);
	write_small_fabric("c.yaml", NULL, 0);
	expect(0, "a fabric is applied", "apply -f %s", file);
	kept = map_of(SWITCH);
}

/* ---- the switch: an apply under a fault is rolled back, and the message names it ---- */

static void tell_switch(void)
{
	static const struct {
		const char *fault, *name, *pattern;
	} faults[] = {
		{ "ignore-port=o5", "a connection that is silently refused",
		  "ocs0.*(in [0-9]+ -> out 6|out 6)" },
		{ "refuse-port=o5", "a connection that is refused with an error", "ocs0.*out 6" },
		{ "drop-set=1", "a session that ends half way", "ocs0.*session" },
		{ "half=1", "half of a list is done", "ocs0: .*in [0-9]+ -> out [0-9]+" },
		{ "eat-set=1", "a command that is never answered", "ocs0.*in [0-9]+" },
		{ "lost=5", "a map lost after the OK", "ocs0" },
	};

	apply_first("a.yaml");
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		if (i == 5) {	/* light that goes away after it was there: of all ports */
			expect(0, "a fabric that uses all ports", "apply -f full.yaml");
			kept = map_of(SWITCH);
		}
		control(SWITCH, "fault %s", faults[i].fault);
		check_of(faults[i].name, weft("apply -f b.yaml") == 3, "rolled back");
		check_of(faults[i].name, matches(said_wrong(), faults[i].pattern), "named");
		control(SWITCH, "clear");
		unchanged(faults[i].name);
	}
}

/* A port that is needed to go back and does not work any more. */
static void tell_stuck(void)
{
	bool is_same;
	int status;

	apply_first("full.yaml");
	control(SWITCH, "fault ignore-port=o5");
	status = weft("apply -f b.yaml");
	check(status == 3 || status == 4,
	      "a port in use that stops working: rolled back or stuck, not committed");
	has_error("it is named", "ocs0.*out 6");
	is_same = same(map_of(SWITCH), kept);
	check(is_same == (status == 3), "the exit code tells whether the switch is as it was");
	control(SWITCH, "clear");
	expect(0, "with the port repaired, apply brings it back", "apply -f full.yaml");
	unchanged("repaired");
}

/* ---- other users ---- */

static void changed_meanwhile(void)
{
	int before, status;

	expect(2, "a plan is made", "plan -f b.yaml -o b.plan");
	control(SWITCH, "unset %s", first_circuit(SWITCH));
	before = sets_of(SWITCH);
	status = weft("apply b.plan");
	check(status == 75 || status == 1, "a map changed by another user: the plan is refused");
	has_error("and why", "no longer as they were");
	check(sets_of(SWITCH) == before, "no command was sent");
	expect(2, "verify names the missing circuit", "verify");
	has("the circuit by ports and hosts", "missing +in 1 -> out");
	expect(0, "apply repairs it", "apply -f a.yaml");
	unchanged("after the repair");
}

static void tell_others(void)
{
	apply_first("a.yaml");
	changed_meanwhile();
	expect(0, "a fabric without the switch's job", "apply -f c.yaml");
	control(SWITCH, "set 0,7");
	expect(2, "verify shows the external circuit", "verify");
	has("as unexpected", "unexpected +in 1 -> out 8");
	expect(65, "mode safe does not take its ports", "apply -f full.yaml");
	has_error("and says who is in the way", "h0|in 1");
	check(matches(map_of(SWITCH), "^0,7$"), "the external circuit is still there");
	expect(0, "mode update takes them", "apply --mode update -f full.yaml");
	expect(0, "and verify agrees", "verify");
}

/* What one job lacks takes nothing from another of the same switch. */
static void tell_two_jobs(void)
{
	write_file("two.yaml", "%s"
		   "  - { name: a, nodes: 'h[0-1]', collective: allreduce, size: 1MiB, "
		   "topology: 'K(2)', alpha: 1us }\n"
		   "  - { name: b, nodes: 'h[2-3]', collective: allreduce, size: 1MiB, "
		   "topology: 'K(2)', alpha: 1us }\n", small_fabric(NULL, 0));
	expect(0, "two jobs are applied", "apply -f two.yaml");
	check(same(ask("jobs.b.proof", "status"), "settled"), "the second is settled");
	control(SWITCH, "unset %s", first_circuit(SWITCH));
	expect(2, "verify finds what the first lacks", "verify");
	await(20, "the first is down", same(ask("jobs.a.health", "status"), "down"));
	check(same(ask("jobs.a.proof", "status"), "unverified"), "and not proven");
	check(same(ask("jobs.b.health", "status"), "up"), "the second is up");
	check(same(ask("jobs.b.proof", "status"), "settled"), "and as proven as it was");
	expect(0, "apply makes it again", "apply -f two.yaml");
	check(same(ask("jobs.a.health", "status"), "up"), "and it is up");
}

/* ---- a device that is gone ---- */

static void tell_gone(void)
{
	apply_first("a.yaml");
	cluster_power_off(SWITCH);
	expect(69, "a switch that does not answer: nothing changes", "apply -f b.yaml");
	has_error("it is named", SWITCH);
	weft("status");
	has("status does not call it proven", "ocs0 .* NO +unverified");
	cluster_power_on(SWITCH);
	await(20, "a dark switch that came back is filled again",
	      weft("apply -f a.yaml") == 0 && same(map_of(SWITCH), kept));
}

/* ---- the ring ---- */

/* A program that does not arrive whole is never active. */
static void tell_ring(void)
{
	static const char *const faults[] = { "corrupt-shadow", "ignore-commit", "corrupt-active" };

	apply_first("a.yaml");
	for (int i = 0; i < 3; i++) {
		control(RING, "fault %s", faults[i]);
		check_of(faults[i], weft("apply -f b.yaml") == 3, "rolled back");
		check_of(faults[i], matches(said_wrong(), RING), "named");
		control(RING, "clear");
		check_of(faults[i], weft("verify") == 0, "verify agrees");
	}
	/* An unknown program is never overwritten unless that is requested. */
	control(RING, "flip gather");
	expect(2, "a setting flips: verify does not agree", "verify");
	expect(65, "mode safe leaves the unknown program", "apply -f b.yaml");
	has_error("and says why", RING ": holds a program");
	expect(0, "mode update replaces it", "apply --mode update -f a.yaml");
	expect(0, "then verify agrees", "verify");
}

/* ---- robots: how far they are ---- */

/* While two of them move, one after the other, what is done never gets less, and what time is left
 * holds once a few moves were seen. */
static void tell_robots(void)
{
	const int64_t every = SIM_S / 10;
	int64_t ends[200], began;
	int done = 0, n = 0;

	await(20, "weftd has read its devices", same(ask("state", "status"), "empty"));
	expect(0, "a fabric is applied", "apply -f fabric0.yaml");
	begin("apply -f fabric4.yaml");
	await(10, "it moves", same(ask("progress.phase", "status"), "add"));
	began = sim_now();
	for (; same(ask("state", "status"), "changing") && n < 200; n++) {
		const int before = done;

		done = atoi(value("progress.done"));
		ends[n] = sim_now() + atoll(value("progress.eta_ns"));
		check(done >= before, "what is done stays so");
		sim_sleep(every);
	}
	check(n > 20 && same(ask("last_change.outcome", "status"), "committed"), "it is committed");
	for (int i = n / 4; i < n; i++) {
		check(llabs(sim_now() - ends[i]) < (sim_now() - began - i * every) / 3 + SIM_S,
		      "the time left holds");
	}
}

/* weftd loses its power while moves wait in the queue of a robot, which makes them all the same:
 * they are still the change's. */
static void tell_late_moves(void)
{
	await(20, "weftd has read its devices", same(ask("state", "status"), "empty"));
	expect(0, "a fabric is applied", "apply -f fabric0.yaml");
	kept = map_of(SWITCH);
	for (int i = 1; i <= 6; i++) {
		const int before = sets_of(SWITCH);

		begin("apply -f fabric4.yaml");
		await(10, "the robot has moves in its queue", sets_of(SWITCH) >= before + i);
		cluster_power_off("a");
		cluster_power_on("a");
		await(60, "what was half done is ended by itself",
		      same(ask("state", "status"), "ready"));
		sim_sleep(20 * SIM_S);
		expect(0, "and all is as intended", "verify");
		check(!matches(ask("problems.*.kind", "status"), "unexpected"),
		      "no move is taken for another user's");
		expect(0, "back to the first", "apply -f fabric0.yaml");
		check(same(map_of(SWITCH), kept), "the robot has what it had");
	}
}

static void run_late_moves(const char *dialect)
{
	struct scenario s;

	scenario_simple(&s);
	s.devices[0].dialect = dialect;
	tell(&s, tell_late_moves);
}

static void run_late_rome(void)
{
	run_late_moves("rome-cli");
}

static void run_late_telescent(void)
{
	run_late_moves("telescent-cli");
}

static void run_robots(void)
{
	struct scenario s;

	scenario_simple(&s);
	s.n_devices = 2;
	s.devices[0].dialect = s.devices[1].dialect = "rome-cli";
	tell(&s, tell_robots);
}

/* ---- the table ---- */

static void begin_story(void (*words)(void))
{
	struct scenario s;

	small_scenario(&s);
	s.devices[0].forgets = true;
	tell(&s, words);
}

static void run_switch(void)
{
	begin_story(tell_switch);
}

static void run_stuck(void)
{
	begin_story(tell_stuck);
}

static void run_others(void)
{
	begin_story(tell_others);
}

static void run_two_jobs(void)
{
	begin_story(tell_two_jobs);
}

static void run_gone(void)
{
	begin_story(tell_gone);
}

static void run_ring(void)
{
	begin_story(tell_ring);
}

const struct story device_stories[] = {
	{ "device-switch", "a switch that misbehaves in an apply: rolled back", run_switch },
	{ "device-stuck", "a port that is needed to go back stops working", run_stuck },
	{ "device-others", "another user's circuits, before and between", run_others },
	{ "device-two-jobs", "a circuit of one of two jobs of a switch is gone", run_two_jobs },
	{ "device-gone", "a switch without power, that comes back dark", run_gone },
	{ "device-robots", "how far two robots are, and how long they take", run_robots },
	{ "device-late-rome", "moves wait while weftd has no power", run_late_rome },
	{ "device-late-telescent", "likewise, at a robot that does not list them",
	  run_late_telescent },
	{ "device-ring", "a ring's program that does not arrive whole", run_ring },
	{ 0 },
};
