/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change that goes back unless it is confirmed: confirmed, cancelled, not confirmed; with weftd
 * killed while it waits, and a device away when its time is over.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/turns.h"

/* A switch and a ring. */
static void run(void (*story)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.n_devices = 2;
	s.devices[1].dialect = "mrr-reg";
	tell_by_rules(&s, story);
}

/* Circuits and steps of programs that there are. */
static int lit(void)
{
	int n = atoi(ask("devices.ocs0.circuits", "status"));

	return n + atoi(value("devices.ring1.program.loaded_steps"));
}

/* ---- the first configuration, which has none before it ---- */

static void cancel_first(void)
{
	expect(0, "the first configuration, to be confirmed",
	       "apply -f fabric0.yaml --confirm-within 1h");
	weft("status --format json");
	value_is("it waits", "confirm.change", "1");
	value_is("and has none before it", "confirm.rollback_to", "0");
	check(lit() > 8, "it made light");
	expect(0, "cancelled", "cancel");
	await(20, "its light is taken away", lit() == 0);
	value_is("the fabric stays", "devices.#", "2");
	value_is("without jobs", "jobs.#", "0");
	value_is("and is ready", "state", "ready");
	all_settled();
}

static void run_cancel_first(void)
{
	run(cancel_first);
}

static void expire_first(void)
{
	expect(0, "the first configuration", "apply -f fabric0.yaml --confirm-within 700ms");
	check(lit() > 8, "it made light");
	await(20, "not confirmed, its light is taken away", lit() == 0);
	all_settled();
}

static void run_expire_first(void)
{
	run(expire_first);
}

/* ---- asked for ---- */

static void confirm_one(void)
{
	expect(65, "nothing to confirm", "confirm");
	expect(0, "applied, to be confirmed", "apply -f fabric1.yaml --confirm-within 1h");
	weft("status --format json");
	value_is("status says what waits", "confirm.change", "2");
	value_is("and what returns otherwise", "confirm.rollback_to", "1");
	check(matches(value("advice"), "goes back unless it is confirmed"), "in words, too");
	expect(75, "no other change meanwhile", "apply -f fabric0.yaml");
	has_error("and why", "change 2 waits for its confirmation");
	expect(75, "no rollback either", "rollback");
	expect(65, "another change cannot be confirmed", "confirm 1");
	expect(0, "confirmed", "confirm 2");
	has("by its number", "confirmed +2");
	check(holds(1), "it stays");
	check(same(ask("confirm", "status"), "null") || same(value("confirm"), ""),
	      "nothing waits any more");
}

static void confirm(void)
{
	expect(0, "the first configuration", "apply -f fabric0.yaml");
	expect(64, "a time that is none", "apply -f fabric1.yaml --confirm-within soon");
	expect(65, "a time without end", "apply -f fabric1.yaml --confirm-within 2200000h");
	has_error("is refused before anything is sent",
		  "confirm_within_ns is .*, and may be 0 to .* \\(a year\\)");
	confirm_one();
	expect(0, "applied again", "apply -f fabric0.yaml --confirm-within 1h");
	expect(0, "cancelled", "cancel");
	check(holds(1), "it goes back at once");
	expect(0, "applied, not confirmed", "apply -f fabric0.yaml --confirm-within 700ms");
	await(20, "it goes back when the time is over", holds(1));
	weft("history --format json");
	value_is("history says who", "changes.0.who", "weftd");
	value_is("and why", "changes.0.comment", "not confirmed in time");
	all_settled();
}

static void run_confirm(void)
{
	run(confirm);
}

/* ---- weftd is killed meanwhile ---- */

static void begin_twice(void)
{
	expect(0, "the first configuration", "apply -f fabric0.yaml");
	expect(0, "the second one", "apply -f fabric1.yaml");
}

static void kill_in_time(void)
{
	begin_twice();
	expect(0, "applied, then weftd is killed",
	       "apply -f fabric0.yaml --confirm-within 1500ms --request-id once");
	crash_weftd();
	await(20, "the next weftd goes back", holds(1));
	expect(0, "the same request",
	       "apply -f fabric0.yaml --confirm-within 1500ms --request-id once");
	has("is answered by what became of it", "verdict +committed");
	check(holds(1), "and applies nothing");
	all_settled();
}

static void run_killed(void)
{
	run(kill_in_time);
}

/* The time passes before the next one starts. */
static void kill_for_long(void)
{
	begin_twice();
	expect(0, "applied, killed, and the time passes",
	       "apply -f fabric0.yaml --confirm-within 200ms");
	kill_for_good(0);
	sim_sleep(10 * SIM_S);
	cluster_start(0);
	await(20, "the next weftd goes back at its start", holds(1));
	all_settled();
}

static void run_killed_long(void)
{
	run(kill_for_long);
}

/* Forward, it goes back at once. */
static void set_clock(int64_t ns)
{
	begin_twice();
	expect(0, "applied, killed, and the clock is set",
	       "apply -f fabric0.yaml --confirm-within 700ms");
	kill_for_good(0);
	sim_shift_clock("a", ns);
	cluster_start(0);
	await(20, "the next weftd waits no longer than was asked for", holds(1));
	all_settled();
}

static void set_clock_back(void)
{
	set_clock(-3600 * SIM_S);
}

static void run_clock_back(void)
{
	run(set_clock_back);
}

static void set_clock_forward(void)
{
	set_clock(3600 * SIM_S);
}

static void run_clock_forward(void)
{
	run(set_clock_forward);
}

/* ---- a device is away when the time is over ---- */

static void lose_device(void)
{
	begin_twice();
	expect(0, "applied, and the switch goes away",
	       "apply -f fabric0.yaml --confirm-within 1s");
	silence("ocs0", 30 * SIM_S);
	sim_sleep(20 * SIM_S);
	check(!same(ask("config_sha256", "status"), cluster_fabric_digest(1)) ||
	      !same(value("state"), "ready"), "it has not gone back without the switch");
	await(60, "going back is tried again until the switch is there", holds(1));
	all_settled();
}

static void run_device_away(void)
{
	run(lose_device);
}

const struct story confirm_stories[] = {
	{ "confirm", "changes that wait are confirmed, cancelled, or neither", run_confirm },
	{ "confirm-first-cancelled", "the first change of all is cancelled while it waits",
	  run_cancel_first },
	{ "confirm-first-expired", "the first change of all is not confirmed", run_expire_first },
	{ "confirm-killed", "weftd is killed while a change waits", run_killed },
	{ "confirm-killed-long", "weftd is away until after the change's time", run_killed_long },
	{ "confirm-clock-back", "the clock goes back while weftd is away", run_clock_back },
	{ "confirm-clock-forward", "the clock goes forward while weftd is away",
	  run_clock_forward },
	{ "confirm-device-away", "a device is away when a change is to go back",
	  run_device_away },
	{ 0 },
};
