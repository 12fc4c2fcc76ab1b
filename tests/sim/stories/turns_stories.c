/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 15: two weftd share one store: one leads and the other stands by. Frozen, killed or
 * told to stop, the leader is followed by the other, which reads before it does anything; a leader
 * that thaws sends nothing more. One that is frozen with the store's lock would be waited for by
 * all: it is ended.
 */
#include <signal.h>
#include <sqlite3.h>

#include "tests/sim/disk/disk.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/turns.h"

#define A 0
#define B 1
#define DEVICE "ocs0"

/* Two on a shared store; the first leads and has applied the first fabric. */
static void run(void (*story)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.turns = CLUSTER_SHARED;
	s.n_weftds = 2;
	s.poll_s = 0;
	tell_by_rules(&s, story);
}

static void begin_led(void)
{
	await_leader(20, "the first one leads at once", A);
	await_standby(20, "the second one stands by", B);
	ask_weftd(A);
	expect(0, "the leader applies", "apply -f fabric0.yaml");
}

static bool went_back(int weftd)
{
	ask_weftd(weftd);
	return same(ask("changes.0.comment", "history"), "not confirmed in time") &&
	       same(value("changes.0.outcome"), "committed");
}

/* ---- what a standby answers ---- */

static void answer_standing_by(void)
{
	static const char *const refused[] = {
		"apply -f fabric1.yaml", "rollback", "plan", "verify",
		"job request --count 2 -c allgather --size 1MB",
	}, *const own[] = {
		"weftd", "--socket", "c.sock", "--state-dir", "shared/state", NULL,
	};

	begin_led();
	ask_weftd(B);
	expect(0, "the standby has a status", "status --format json");
	value_is("it says what it is", "state", "standby");
	value_is("it knows the generation", "generation", "2");
	check(matches(value("advice"), "a\\.sock leads"), "it names the leader");
	expect(0, "and the history", "history --format json");
	value_is("of the leader's changes", "changes.#", "1");
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		expect(69, "a standby refuses", "%s", refused[i]);
		has_error("and names the leader", "this weftd stands by: .*a\\.sock leads");
	}
	check(sim_wait(start_weftd("a", own)) == 75,
	      "a weftd that wants the store for itself is refused");
	all_settled();
}

static void run_standby(void)
{
	run(answer_standing_by);
}

/* ---- the leader is frozen ---- */

static void freeze_leader(void)
{
	const char *before;
	int starts;

	begin_led();
	before = map_of(DEVICE);
	starts = cluster_starts(A);
	freeze(A);
	await_leader(30, "the leader is frozen: the other takes over", B);
	value_is("it knows the fabric", "state", "ready");
	value_is("and that nothing was changed", "generation", "2");
	thaw(A);
	await(10, "the old leader thaws, finds out and ends", has_ended(A, starts, 75));
	check(matches(weftd_log(), "leads no more, and ends"), "and says why");
	check(same(map_of(DEVICE), before), "it has moved no light");
	await_standby(20, "started again it stands by", A);
	check(matches(value("advice"), "b\\.sock leads"), "and names the other");
	all_settled();
}

static void run_frozen(void)
{
	run(freeze_leader);
}

/* ---- frozen between its commands ---- */

static void freeze_in_change(void)
{
	struct command *c;
	const char *half;
	int starts, sets;

	begin_led();
	starts = cluster_starts(A);
	c = begin_until(DEVICE, 1, "apply -f fabric1.yaml");
	freeze(A);
	control(DEVICE, "clear");
	await_leader(30, "frozen between its commands: the other takes over", B);
	value_is("it has read the devices", "state", "interrupted");
	check(matches(value("advice"), "is open .interrupted."),
	      "and knows that the change is half done");
	half = map_of(DEVICE);
	sets = sets_of(DEVICE);
	thaw(A);
	await(10, "the old leader thaws and ends", has_ended(A, starts, 75));
	sim_sleep(5 * SIM_S);
	check(sets_of(DEVICE) == sets && same(map_of(DEVICE), half), "before its next command");
	finish(c);
	ask_weftd(B);
	expect(0, "the new leader carries the change through", "apply -f fabric1.yaml");
	check(holds(1), "and all is as intended");
	all_settled();
}

static void run_frozen_in_change(void)
{
	run(freeze_in_change);
}

/* ---- killed, and a change waits for its confirmation ---- */

static void kill_waiting(void)
{
	const char *before, *made;

	begin_led();
	before = map_of(DEVICE);
	expect(0, "a change that is to be confirmed",
	       "apply -f fabric1.yaml --confirm-within 6s");
	made = map_of(DEVICE);
	check(!same(made, before), "it has moved light");
	kill_for_good(A);
	await_leader(30, "the leader is killed: the other takes over", B);
	await(30, "and the change goes back in time", went_back(B));
	check(same(map_of(DEVICE), before), "with the light of before");
	cluster_start(A);
	all_settled();
}

static void run_killed_waiting(void)
{
	run(kill_waiting);
}

/* In each of its commands: what the next one reads is none of it, some, or all. */
static void kill_in_confirmed(int sets, bool all)
{
	const char *was = map_of(DEVICE), *made;
	struct command *c;

	ask_weftd(A);
	c = begin_until(DEVICE, sets, "apply -f fabric1.yaml --confirm-within 6s");
	kill_for_good(A);
	finish(c);
	control(DEVICE, "clear");
	made = map_of(DEVICE);
	await_leader(30, "killed in a change that is to be confirmed: the other takes over", B);
	if (!all) {
		value_is("it reads, and finds it half done", "state", "interrupted");
		expect(0, "what was before is put back", "apply -f fabric0.yaml");
	} else {
		weft("history --format json");
		check(matches(said(), "settled by reading the devices: all as planned"),
		      "it reads, and finds that the change has happened");
		check(!same(made, was), "that has moved light");
		await(30, "its timer still fires", went_back(B));
	}
	check(same(map_of(DEVICE), was), "and brings the light of before");
	cluster_start(A);
	kill_for_good(B);
	await_leader(30, "the first one leads again", A);
	cluster_start(B);
	await_standby(20, "and the second one stands by", B);
}

static void kill_confirmed(void)
{
	int begin, sets;

	begin_led();
	begin = sets_of(DEVICE);
	expect(0, "a change", "apply -f fabric1.yaml");
	sets = sets_of(DEVICE) - begin;
	expect(0, "and back", "apply -f fabric0.yaml");
	check(sets >= 2, "takes several commands");
	for (int i = 1; i <= sets; i++) {
		kill_in_confirmed(i, i == sets);
	}
	all_settled();
}

static void run_killed_confirmed(void)
{
	run(kill_confirmed);
}

/* ---- told to stop ---- */

static void stop_leader(void)
{
	begin_led();
	cluster_stop(A);
	await_leader(5, "a leader that stops hands over at once", B);
	check(cluster_wait_stopped(A) == 0, "and ends well");
	cluster_start(A);
	await_standby(20, "started again it stands by", A);
	all_settled();
}

static void run_stopped(void)
{
	run(stop_leader);
}

/* ---- frozen with the store's lock ---- */

static void freeze_with_lock(void)
{
	struct sim_process *p;
	const char *before;
	int starts;

	begin_led();
	before = map_of(DEVICE);
	starts = cluster_starts(A);
	p = cluster_weftd(A);
	while (disk_lock(p) < SQLITE_LOCK_EXCLUSIVE) {
		sim_sleep(SIM_MS / 50);
	}
	sim_tell("weftd of a is frozen in the middle of a write");
	sim_pause(p, sim_now() + 3600 * SIM_S);
	await(10, "frozen with the store's lock, it is ended", has_ended(A, starts, 137));
	await_leader(10, "and the other takes over", B);
	value_is("it is ready", "state", "ready");
	check(same(map_of(DEVICE), before), "with all as it was");
	all_settled();
}

static void run_frozen_with_lock(void)
{
	run(freeze_with_lock);
}

/* ---- locked by another program ---- */

static int lock_store(int argc, char **argv)
{
	sqlite3 *db = NULL;

	(void)argc, (void)argv;
	if (sqlite3_open("shared/state/weft.db", &db) ||
	    sqlite3_busy_timeout(db, 2000) ||
	    sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL)) {
		sim_fail("lock", "%s", sqlite3_errmsg(db));
	}
	sim_sleep(3600 * SIM_S);
	sqlite3_close(db);
	return 0;
}

static bool is_refused(void)
{
	return weft("status") == 75;
}

static void lock_by_another(void)
{
	struct sim_process *locker;
	int starts;

	begin_led();
	starts = cluster_starts(A);
	locker = sim_start("a", lock_store, (const char *const[]){ "sqlite3", NULL });
	await(5, "another program locks the store", disk_lock(locker));
	ask_weftd(B);
	await(10, "a standby has no status then", is_refused());
	has_error("which says why", "database is locked");
	await(20, "the leader ends in time", has_ended(A, starts, 75));
	sim_signal(locker, SIGKILL);
	await(20, "and once the store is free, one leads", leader(0) >= 0);
	all_settled();
}

static void run_locked(void)
{
	run(lock_by_another);
}

const struct story turns_stories[] = {
	{ "turns-standby", "what the one that stands by answers", run_standby },
	{ "turns-frozen", "the leader is frozen, and thaws", run_frozen },
	{ "turns-frozen-in-change", "the leader is frozen between its commands",
	  run_frozen_in_change },
	{ "turns-killed-waiting", "the leader is killed, and a change waits to be confirmed",
	  run_killed_waiting },
	{ "turns-killed-confirmed", "the leader is killed after each command of such a change",
	  run_killed_confirmed },
	{ "turns-stopped", "the leader is told to stop", run_stopped },
	{ "turns-frozen-with-lock", "the leader is frozen with the store's lock",
	  run_frozen_with_lock },
	{ "turns-locked", "another program locks the store, and no loop waits for it",
	  run_locked },
	{ 0 },
};
