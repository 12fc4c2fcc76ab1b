/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 15: two weftd take turns by an etcd of three members. In each round one of them is
 * killed, frozen or cut off, or a member of etcd is, or a clock jumps, in the middle of a change.
 * Whatever happens, a device gets commands from one weftd at a time, what was acknowledged is not
 * lost, and no circuit is there that is not accounted for.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/sim/etcd/etcd_model.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/turns.h"

#define A 0
#define B 1
#define C 2			/* of stories that have a third one */
#define DEVICE "ocs0"
#define LEASE_S 5
#define MEMBERS 3
#define ROUNDS 12
#define EVERY_NS (60 * SIM_MS)	/* moments of a change, a round each */
#define CUT_NS (3 * LEASE_S * SIM_S)
#define DAY (86400 * SIM_S)

/* A fault of a round: begins and ends with these, of who leads. */
struct kind {
	bool deposes;		/* the other one takes over */
	void (*begin)(int weftd, int round);
	void (*end)(int weftd, int round);	/* NULL: by itself */
};

static const struct kind *kind;

static void run_lease(int lease_s, void (*story)(void))
{
	struct scenario s;

	scenario_pair(&s, lease_s);
	s.etcd_members = MEMBERS;
	s.poll_s = 3600;
	s.devices[0].faults[0] = "slow=20";
	tell_by_rules(&s, story);
}

static void run(void (*story)(void))
{
	run_lease(LEASE_S, story);
}

static bool both_up(void)
{
	const int one = leader(0);

	return one >= 0 && stands_by(!one);
}

static void begin_led(void)
{
	await_leader(40, "the first one leads", A);
	await_standby(40, "the second one stands by", B);
	ask_weftd(A);
	expect(0, "the leader applies", "apply -f fabric0.yaml -m first");
}

/* The fabric is there, and nothing else: at once or after some tries. */
static bool settles(int variant)
{
	for (int i = 0; i < 20; i++) {
		ask_weftd(leader(0) == B ? B : A);
		if (weft("apply -f fabric%d.yaml -m settle", variant) == 0 && weft("verify") == 0 &&
		    weft("diff") == 0) {
			return true;
		}
		sim_sleep(300 * SIM_MS);
	}
	return false;
}

/* ---- rounds ---- */

/* "round N" is a change that was committed, as who leads knows. */
static bool is_in_history(int round)
{
	char comment[32], path[40];
	int n;

	snprintf(comment, sizeof(comment), "round %d", round);
	ask_weftd(leader(0) == B ? B : A);
	n = atoi(ask("changes.#", "history"));
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "changes.%d.comment", i);
		if (same(value(path), comment)) {
			snprintf(path, sizeof(path), "changes.%d.outcome", i);
			return same(value(path), "committed");
		}
	}
	return false;
}

static void go_round(int round)
{
	const int variant = (round + 1) % 2;
	struct command *c;
	int old, status;

	await(60, "one leads and one stands by", both_up());
	old = leader(0);
	ask_weftd(old);
	c = begin("apply -f fabric%d.yaml -m 'round %d'", variant, round);
	sim_sleep((round + 1) * EVERY_NS);
	kind->begin(old, round);
	if (kind->deposes) {
		await_leader(40, "the other takes over", !old);
	} else {
		sim_sleep(2 * SIM_S);
	}
	if (kind->end) {
		kind->end(old, round);
	}
	status = finish(c);
	await(60, "one leads and one stands by again", both_up());
	sim_tell("round %d: %s led, apply ended with %d", round, cluster_machine(old), status);
	check(status != 0 || is_in_history(round), "an acknowledged change is in the history");
	check(settles(variant), "the fabric settles");
}

static void go_rounds(void)
{
	begin_led();
	for (int i = 0; i < ROUNDS; i++) {
		go_round(i);
	}
	all_settled();
}

static void run_rounds(const struct kind *k)
{
	kind = k;
	run(go_rounds);
}

/* ---- of a weftd ---- */

/* It is started again by its manager, soon. */
static void begin_kill(int weftd, int round)
{
	(void)round;
	kill_for_good(weftd);
}

static void end_kill(int weftd, int round)
{
	(void)round;
	cluster_start(weftd);
}

static void run_kill(void)
{
	run_rounds(&(const struct kind){ true, begin_kill, end_kill });
}

static void begin_freeze(int weftd, int round)
{
	(void)round;
	freeze(weftd);
}

static void end_freeze(int weftd, int round)
{
	(void)round;
	thaw(weftd);
}

static void run_freeze(void)
{
	run_rounds(&(const struct kind){ true, begin_freeze, end_freeze });
}

static void cut(const char *a, const char *b)
{
	sim_link_stall(a, b, sim_now() + CUT_NS);
	sim_link_stall(b, a, sim_now() + CUT_NS);
}

static void begin_partition(int weftd, int round)
{
	(void)round;
	sim_tell("%s and etcd do not hear each other", cluster_machine(weftd));
	for (int i = 0; i < MEMBERS; i++) {
		cut(cluster_machine(weftd), etcd_model_machine(i));
	}
}

static void run_partition(void)
{
	run_rounds(&(const struct kind){ true, begin_partition, NULL });
}

static void begin_unplug(int weftd, int round)
{
	begin_partition(weftd, round);
	cut(cluster_machine(weftd), DEVICE);
}

static void run_unplug(void)
{
	run_rounds(&(const struct kind){ true, begin_unplug, NULL });
}

static void begin_clock(int weftd, int round)
{
	sim_tell("the clock of %s jumps by a day", cluster_machine(weftd));
	sim_shift_clock(cluster_machine(weftd), round % 2 ? DAY : -DAY);
}

static void run_clock(void)
{
	run_rounds(&(const struct kind){ false, begin_clock, NULL });
}

/* ---- of a member of etcd ---- */

static void begin_member(int weftd, int round)
{
	struct sim_process *p = etcd_model_process(round % MEMBERS);

	(void)weftd;
	sim_tell("a member of etcd is killed");
	if (p) {
		sim_signal(p, SIGKILL);
	}
}

static void end_member(int weftd, int round)
{
	(void)weftd;
	etcd_model_start(round % MEMBERS);
}

static void run_member(void)
{
	run_rounds(&(const struct kind){ false, begin_member, end_member });
}

static void begin_member_cut(int weftd, int round)
{
	(void)weftd;
	etcd_model_cut(round % MEMBERS, true);
}

static void end_member_cut(int weftd, int round)
{
	(void)weftd;
	etcd_model_cut(round % MEMBERS, false);
}

static void run_member_cut(void)
{
	run_rounds(&(const struct kind){ false, begin_member_cut, end_member_cut });
}

/* ---- what a standby knows ---- */

static bool has_first_change(int weftd)
{
	ask_weftd(weftd);
	return same(ask("changes.#", "history"), "1") &&
	       same(value("changes.0.comment"), "first");
}

static void look_at_standby(void)
{
	begin_led();
	await(20, "the standby has the change", has_first_change(B));
	ask_weftd(A);
	check(matches(ask("leadership.leader", "status"), "a\\.sock$"),
	      "the status says who leads");
	await(20, "and how far the standby is behind",
	      same(ask("leadership.standbys.#", "status"), "1") &&
	      same(value("leadership.standbys.0.behind"), "0"));
	ask_weftd(B);
	ask_weftd(A);
	expect(0, "a group of circuits", "circuit add h6.p0 h7.p0 --name bed");
	ask_weftd(B);
	await(20, "is known to the standby", same(ask("jobs.0.name", "job list"), "bed"));
	ask_weftd(A);
	expect(0, "a drain", "drain h3");
	ask_weftd(B);
	await(20, "as well", same(ask("holds.*.target", "status"), "h3"));
	ask_weftd(A);
	expect(0, "its end", "undrain h3");
	ask_weftd(B);
	await(20, "as well", same(ask("holds.#", "status"), "0"));
	expect(69, "the standby refuses a change", "apply -f fabric1.yaml");
	has_error("and names the leader", "a\\.sock leads");
	all_settled();
}

static void run_standby(void)
{
	run(look_at_standby);
}

/* ---- no etcd at all ---- */

static void stop_etcd(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		begin_member(A, i);
	}
}

static void start_etcd(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		etcd_model_start(i);
	}
}

static void lose_etcd(void)
{
	const char *map;
	int starts;

	begin_led();
	map = map_of(DEVICE);
	starts = cluster_starts(A);
	stop_etcd();
	await(40, "without etcd the leader ends in time", has_ended(A, starts, 75));
	ask_weftd(A);
	await(40, "started again, its status says that etcd does not answer",
	      matches(ask("leadership.problem", "status"), "etcd"));
	check(same(map_of(DEVICE), map), "the light is as it was");
	start_etcd();
	await(60, "once etcd is there again, one leads", both_up());
	check(settles(1), "and applies");
	all_settled();
}

static void run_no_etcd(void)
{
	run(lose_etcd);
}

/* For less than its lease. */
static void hear_of_etcd(void)
{
	struct command *watching, *drain;

	begin_led();
	watching = begin("watch --format json");
	stop_etcd();
	drain = begin("drain h3");
	await(6, "an event says that etcd does not answer",
	      matches(output_of(watching), "\"problem\".*etcd"));
	check(matches(ask("problems.*.kind", "status"), "etcd"), "status lists it");
	check(matches(ask("leadership.problem", "status"), "^outcome unknown since 20.*T.*Z: ") &&
	      same(value("leadership.unconfirmed"), "1"), "and what is not known, since when");
	check(same(output_of(drain), ""), "which its client was not told");
	start_etcd();
	await(20, "another that it does again",
	      matches(output_of(watching), "\"problem-ended\".*over: .*etcd"));
	check(finish(drain) == 0, "what was not known is done");
	check(leads(A) && same(ask("problems.#", "status"), "0") &&
	      same(value("leadership.problem"), "") && same(value("holds.#"), "1"),
	      "the same one leads, and nothing is unknown");
	all_settled();
}

/* It answers, and takes nothing. */
static void hear_of_full_etcd(void)
{
	struct command *watching;

	begin_led();
	watching = begin("watch --format json");
	etcd_model_full(true);
	weft("drain h3");
	await(6, "an event says that etcd is out of space",
	      matches(output_of(watching), "\"problem\".*space"));
	check(matches(ask("problems.*.text", "status"), "space"), "status lists it");
	check(matches(value("advice"), "nothing can be recorded where others have it.*space"),
	      "and what it means");
	etcd_model_full(false);
	await(20, "another that it has space again",
	      matches(output_of(watching), "\"problem-ended\".*over: .*space"));
	expect(0, "then all goes on", "drain h2");
	check(leads(A) && same(ask("problems.#", "status"), "0"), "the same one leads");
	all_settled();
}

static void run_heard(void)
{
	run_lease(20, hear_of_etcd);
}

static void run_full_etcd(void)
{
	run(hear_of_full_etcd);
}

/* With something that etcd has not taken, so that it waits for the end of its lease, and the other
 * with nothing. */
static void stop_without_etcd(void)
{
	begin_led();
	stop_etcd();
	begin("drain h3");
	sim_sleep(SIM_S / 5);
	cluster_stop(A);
	cluster_stop(B);
	check(cluster_wait_stopped(A) == 0, "one that leads ends as it was asked to");
	check(cluster_wait_stopped(B) == 0, "and so does one that stands by");
	start_etcd();
	cluster_start(A);
	cluster_start(B);
	await(60, "then one leads", both_up());
	all_settled();
}

static void run_stop_without_etcd(void)
{
	run(stop_without_etcd);
}

/* ---- a store that went another way ---- */

/* etcd is put back to what it was before the last that A wrote, and B leads from there. */
static void differ(void)
{
	begin_led();
	kill_for_good(B);
	etcd_model_save();
	expect(0, "a drain that etcd forgets", "drain h3");
	kill_for_good(A);
	etcd_model_restore();
	cluster_start(B);
	ask_weftd(B);
	await(60, "the one that did not have it leads", leads(B));
	expect(0, "another drain, at its place", "drain h2");
	cluster_start(A);
	await(60, "the other one follows", both_up());
	await(5, "and has said that it had to take all of it",
	      matches(weftd_log(), "has other transactions than the others.* fetched again"));
	await(20, "what is in force is what etcd has",
	      same(ask("holds.*.target", "status"), "h2"));
	kill_for_good(B);
	ask_weftd(A);
	await(60, "it takes over", leads(A));
	check(same(ask("holds.*.target", "status"), "h2"), "with the same");
	cluster_start(B);
	all_settled();
}

static void run_differ(void)
{
	run(differ);
}

/* ---- a device that the new leader has not read ---- */

/* A job's light is there until it was taken away, and the job until then. */
static void release_unread(void)
{
	const char *without_job;
	struct command *c;

	begin_led();
	without_job = map_of(DEVICE);
	expect(0, "a job", "job request g --count 2 -c allgather --size 1MB");
	stop_device(DEVICE);
	kill_for_good(A);
	await(40, "the other leads", !same(state_of(B), "standby") && state_of(B)[0]);
	c = begin("job release g");
	await(40, "a job whose device was not read cannot end",
	      matches(ask("jobs.-1.problem", "job list --all g"), "does not answer"));
	check(same(value("jobs.-1.state"), "ending"), "and does not");
	continue_device(DEVICE);
	weft("verify");
	check(finish(c) == 0, "it ends when the device is back");
	check(same(map_of(DEVICE), without_job), "with its light");
	cluster_start(A);
	all_settled();
}

static void run_unread(void)
{
	run(release_unread);
}

/* ---- a store of its own does not mix with the others' ---- */

/* A third weftd, alone or by etcd. */
static struct sim_process *start_third(bool alone)
{
	const char *args[] = { "weftd", "--socket", cluster_socket(C), "--state-dir", "c/state",
			       alone ? NULL : "--etcd", etcd_model_urls(), "--lease", "5", NULL };

	return start_weftd("c", args);
}

static void mix_changes(void)
{
	struct sim_process *third;

	begin_led();
	mkdir("c", 0700);
	third = start_third(true);
	ask_weftd(C);
	await(20, "a weftd with a store of its own", same(state_of(C), "empty"));
	expect(0, "applies by itself", "apply -f fabric0.yaml");
	sim_signal(third, SIGTERM);
	check(sim_wait(third) == 0, "it ends");
	third = start_third(false);
	await(20, "then it takes no part in others', and says why",
	      matches(ask("leadership.problem", "status"), "changes of its own"));
	sim_signal(third, SIGTERM);
	check(sim_wait(third) == 0, "and ends");
	all_settled();
}

static void run_own_changes(void)
{
	run(mix_changes);
}

const struct story failover_stories[] = {
	{ "failover-standby", "what the one that stands by knows and answers", run_standby },
	{ "failover-kill", "who leads is killed at moments of a change", run_kill },
	{ "failover-freeze", "who leads is frozen at moments of a change, and thaws", run_freeze },
	{ "failover-partition", "who leads is cut off from etcd", run_partition },
	{ "failover-unplug", "who leads is cut off from etcd and devices", run_unplug },
	{ "failover-clock", "the clock of who leads jumps by a day", run_clock },
	{ "failover-member", "a member of etcd is killed", run_member },
	{ "failover-member-cut", "a member of etcd is cut off from the others", run_member_cut },
	{ "failover-no-etcd", "there is no etcd for a while", run_no_etcd },
	{ "failover-etcd-heard", "an event says that etcd is away, and that it is back",
	  run_heard },
	{ "failover-etcd-full", "the same of an etcd that is out of space", run_full_etcd },
	{ "failover-no-etcd-stop", "weftd is told to stop while there is no etcd",
	  run_stop_without_etcd },
	{ "failover-differs", "a store has other transactions than etcd's log", run_differ },
	{ "failover-unread", "a device is away since before who leads did", run_unread },
	{ "failover-own-changes", "a weftd with changes of its own takes no part",
	  run_own_changes },
	{ 0 },
};
