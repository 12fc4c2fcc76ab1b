/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device goes away in the middle of a change and comes back: what was half done is ended by
 * itself, as the journal says, within the fabric's `changes: resume-within`; until then, and when
 * it ends, that is told everywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/turns.h"

#define DEVICE "ocs0"
#define OTHER "ocs1"
#define BACK_S 60		/* within it a device that is back has been asked again */
#define AWAY (90 * SIM_S)
#define WAITS "change-waits"

static const char *kept[2];	/* what the devices held, and are to hold again */
static struct command *watching;

static void run(void (*story)(void), bool forgets)
{
	struct scenario s;

	scenario_simple(&s);
	s.poll_s = 3600;
	s.n_devices = 2;
	s.devices[0].forgets = forgets;
	s.devices[1] = s.devices[0];
	s.devices[1].domain = 1;
	tell_by_rules(&s, story);
}

/* ---- what they say ---- */

static void keep_maps(void)
{
	kept[0] = map_of(DEVICE);
	kept[1] = map_of(OTHER);
}

static bool as_before(void)
{
	return same(map_of(DEVICE), kept[0]) && same(map_of(OTHER), kept[1]);
}

static const char *outcome_of_last(void)
{
	return ask("changes.0.outcome", "history");
}

/* The problem of a change that hangs is told, or is not. */
static bool hangs(void)
{
	return matches(ask("problems.*.kind", "status"), WAITS);
}

static bool is_taken_back(void)
{
	return same(outcome_of_last(), "rolled-back") && !hangs() &&
	       same(ask("state", "status"), "ready");
}

static void begin_first(const char *options)
{
	write_file("first.yaml", "%s%s", cluster_fabric(0), options);
	write_file("second.yaml", "%s%s", cluster_fabric(4), options);
	await(20, "weftd has read its devices", same(ask("state", "status"), "empty"));
	expect(0, "the first fabric", "apply -f first.yaml");
	keep_maps();
	watching = begin("watch --format json");
}

/* A device is lost after so many of its commands were done, and the last not answered. */
static int lose_after(const char *device, int sets)
{
	struct command *c = begin_until(device, sets, "apply -f second.yaml");

	cluster_power_off(device);
	return finish(c);
}

/* With map or without, as the device is; not slow any more. */
static void bring_back(const char *device)
{
	cluster_power_on(device);
	sim_sleep(SIM_S / 2);
}

static void expect_waits(int status)
{
	check(status == 4, "the change is not fully taken back, and says so");
	has_error("and that it will be", "once ocs[01] answers again");
	check(hangs(), "status tells that it hangs");
	has("with the device, and until when", "hangs on ocs[01]: once .* until 2");
	check(matches(ask("problems.*.kind", "diff"), WAITS), "diff does");
	check(same(outcome_of_last(), "stuck"), "history has it as stuck");
	check(matches(output_of(watching), "\"change-waits\""), "an event says that it waits");
}

static void expect_taken_back(void)
{
	await(BACK_S, "it is taken back by itself", is_taken_back());
	check(as_before(), "the devices hold what they held");
	check(matches(output_of(watching), "change-ended.*(answer again|all as before)"),
	      "an event says so");
	expect(0, "verify agrees", "verify");
	expect(0, "and the change can be made", "apply -f second.yaml");
	all_settled();
}

/* ---- lost in each phase ---- */

static void before_the_first_batch(void)
{
	begin_first("");
	cluster_power_off(DEVICE);
	expect(69, "a device that is away from the start: nothing is changed",
	       "apply -f second.yaml");
	check(!hangs(), "and nothing hangs");
	cluster_power_on(DEVICE);
	sim_sleep(AWAY);
	check(as_before(), "nor is anything done when it is back");
	all_settled();
}

static void unknown_outcome(void)
{
	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	sim_sleep(AWAY);
	check(hangs(), "it still hangs");
	bring_back(DEVICE);
	expect_taken_back();
}

/* The first stage is done; the second one loses both. */
static void between_batches(void)
{
	struct command *c;

	begin_first("");
	c = begin_until(OTHER, 1, "apply -f second.yaml");
	cluster_power_off(DEVICE);
	cluster_power_off(OTHER);
	expect_waits(finish(c));
	bring_back(OTHER);
	sim_sleep(AWAY);
	check(hangs(), "while one of two is away it hangs on that one");
	bring_back(DEVICE);
	expect_taken_back();
}

static void in_readback(void)
{
	struct command *c;

	begin_first("");
	control(DEVICE, "fault slow=300");
	c = begin("apply -f second.yaml");
	await(60, "its circuits are made", matches(errors_of(c), "ocs0.*circuits? made"));
	cluster_power_off(DEVICE);
	expect_waits(finish(c));
	bring_back(DEVICE);
	expect_taken_back();
}

static void in_undo(void)
{
	struct command *c;

	begin_first("");
	control(OTHER, "fault refuse-port=o1");
	control(DEVICE, "fault slow=300");
	c = begin("apply -f second.yaml");
	await(60, "it is being taken back", matches(errors_of(c), "taking back"));
	cluster_power_off(DEVICE);
	expect_waits(finish(c));
	control(OTHER, "clear");
	bring_back(DEVICE);
	expect_taken_back();
}

static void after_commit(void)
{
	begin_first("");
	expect(0, "the second fabric", "apply -f second.yaml");
	keep_maps();
	cluster_power_off(DEVICE);
	sim_sleep(AWAY);
	bring_back(DEVICE);
	expect(0, "what was committed is there", "verify");
	check(as_before() && !matches(output_of(watching), "change-waits"), "nothing was done");
	all_settled();
}

/* ---- how it comes back ---- */

static void too_late(void)
{
	begin_first("changes: { resume-within: 30s }\n");
	expect_waits(lose_after(DEVICE, 1));
	sim_sleep(AWAY);
	check(hangs(), "after the limit it still hangs");
	has("and is not ended by itself", "not ended by itself any more");
	bring_back(DEVICE);
	sim_sleep(AWAY);
	check(same(outcome_of_last(), "stuck"), "nor is it when the device is back");
	expect(0, "an operator ends it", "rollback");
	check(as_before(), "the devices hold what they held");
	all_settled();
}

static void never(void)
{
	int status;

	begin_first("changes: { resume-within: 0s }\n");
	status = lose_after(DEVICE, 1);
	check(status == 4 && !matches(said_wrong(), "by itself"), "no word of ending by itself");
	bring_back(DEVICE);
	sim_sleep(AWAY);
	check(same(outcome_of_last(), "stuck"), "it is left to an operator");
	expect(0, "who ends it", "rollback");
	all_settled();
}

/* Another user has a port that is needed to go back, and no other. */
static void another_map(void)
{
	const char *lost;
	int in, out;

	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	bring_back(DEVICE);
	lost = without(kept[0], map_of(DEVICE));
	check(sscanf(lost, "%d,%d", &in, &out) == 2, "the change had deleted a circuit");
	control(DEVICE, "set %d,%d", in, cluster_first_free_port(0));
	await(BACK_S, "an event says that it cannot be ended",
	      matches(output_of(watching), "is not ended by itself, though"));
	check(matches(map_of(DEVICE), "."), "the other user's circuit stays");
	check(same(outcome_of_last(), "stuck") && !hangs(), "and the change is an operator's");
	control(DEVICE, "unset %d,%d", in, cluster_first_free_port(0));
	expect(0, "who ends it", "rollback");
	check(as_before(), "the devices hold what they held");
	all_settled();
}

static void back_twice(void)
{
	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	bring_back(DEVICE);
	control(DEVICE, "fault drop-set=1");
	control(DEVICE, "fault slow=300");
	await(BACK_S, "it is being taken back", sets_of(DEVICE) > 0);
	cluster_power_off(DEVICE);
	await(BACK_S, "it hangs on it again", hangs() && matches(said(), "hangs on ocs0: once"));
	bring_back(DEVICE);
	expect_taken_back();
}

static void frozen(void)
{
	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	expect(0, "the fabric is frozen", "freeze -m 'hands in the rack'");
	bring_back(DEVICE);
	sim_sleep(AWAY);
	check(hangs() && same(outcome_of_last(), "stuck"), "it waits for that too");
	expect(0, "it is not any more", "unfreeze");
	expect_taken_back();
}

/* ---- weftd meanwhile ---- */

static void restarted(void)
{
	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	crash_weftd();
	await(40, "the next weftd says that it hangs", hangs());
	watching = begin("watch --format json");
	bring_back(DEVICE);
	expect_taken_back();
}

static void restarted_when_back(void)
{
	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	cluster_stop(0);
	bring_back(DEVICE);
	cluster_wait_stopped(0);
	cluster_start(0);
	await(BACK_S, "the next weftd takes it back", is_taken_back());
	check(as_before(), "the devices hold what they held");
	all_settled();
}

/* It ends while its device's answer is awaited, before anything is taken back. */
static void killed_in_it(void)
{
	struct command *c;

	begin_first("");
	c = begin_until(DEVICE, 1, "apply -f second.yaml");
	cluster_power_off(DEVICE);
	crash_weftd();
	finish(c);
	await(40, "the next weftd says that it hangs", hangs());
	check(same(outcome_of_last(), "interrupted"), "history has it as interrupted");
	watching = begin("watch --format json");
	bring_back(DEVICE);
	expect_taken_back();
}

static void failed_over(void)
{
	await_leader(40, "the first one leads", 0);
	await_standby(40, "the second one stands by", 1);
	ask_weftd(0);
	begin_first("");
	expect_waits(lose_after(DEVICE, 1));
	kill_for_good(0);
	await_leader(40, "the second one takes over", 1);
	await(40, "and says that it hangs", hangs());
	watching = begin("watch --format json");
	bring_back(DEVICE);
	await(BACK_S, "it is taken back by itself", is_taken_back());
	check(as_before(), "the devices hold what they held");
	cluster_start(0);
	all_settled();
}

static void run_failed_over(void)
{
	struct scenario s;

	scenario_pair(&s, 2);
	s.poll_s = 3600;
	s.n_devices = 2;
	s.devices[1] = s.devices[0];
	tell_by_rules(&s, failed_over);
}

static void divided(void)
{
	await_leader(40, "one leads the first domain", 0);
	await_leader(40, "another the second", 1);
	await(20, "they know of each other", same(ask("participants.#", "status"), "2"));
	ask_weftd(0);
	begin_first("");
	await(BACK_S, "all have ended their part",
	      same(ask("participants.*.state", "status"), ","));
	expect_waits(lose_after(DEVICE, 1));
	await(BACK_S, "the other domain has gone back", same(map_of(OTHER), kept[1]));
	bring_back(DEVICE);
	await(BACK_S, "and so does this one by itself", is_taken_back());
	check(as_before(), "the devices hold what they held");
	await(BACK_S, "and the change can be made", weft("apply -f second.yaml") == 0);
	all_settled();
}

static void run_divided(void)
{
	struct scenario s;

	scenario_pair(&s, 2);
	s.poll_s = 3600;
	s.domains = s.n_devices = 2;
	s.devices[1] = s.devices[0];
	s.devices[1].domain = 1;
	tell_by_rules(&s, divided);
}

#define RUN(name) static void run_##name(void) { run(name, false); }
RUN(before_the_first_batch)
RUN(unknown_outcome)
RUN(between_batches)
RUN(in_readback)
RUN(in_undo)
RUN(after_commit)
RUN(too_late)
RUN(never)
RUN(another_map)
RUN(back_twice)
RUN(frozen)
RUN(restarted)
RUN(restarted_when_back)
RUN(killed_in_it)

static void run_forgotten(void)
{
	run(unknown_outcome, true);
}

const struct story resume_stories[] = {
	{ "resume-first", "a device is away before the first batch", run_before_the_first_batch },
	{ "resume-unknown", "a device goes away with a command unanswered", run_unknown_outcome },
	{ "resume-batches", "two devices go away between batches", run_between_batches },
	{ "resume-readback", "a device goes away in readback", run_in_readback },
	{ "resume-undo", "a device goes away in undo", run_in_undo },
	{ "resume-commit", "a device goes away after the commit", run_after_commit },
	{ "resume-late", "a device is back after the limit", run_too_late },
	{ "resume-never", "a limit of nothing", run_never },
	{ "resume-others", "a device is back with another's circuit", run_another_map },
	{ "resume-forgotten", "a device is back without its map", run_forgotten },
	{ "resume-twice", "a device goes away again while it is taken back", run_back_twice },
	{ "resume-frozen", "a device is back in a frozen fabric", run_frozen },
	{ "resume-restarted", "weftd is started again meanwhile", run_restarted },
	{ "resume-back-first", "a device is back before weftd is", run_restarted_when_back },
	{ "resume-killed", "weftd is killed before it takes back", run_killed_in_it },
	{ "resume-failover", "another weftd leads meanwhile", run_failed_over },
	{ "resume-divided", "a device of one domain of two goes away", run_divided },
	{ 0 },
};
