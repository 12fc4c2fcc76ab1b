/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 15: four weftd lead a fabric together, each one switch, by an etcd; a fifth stands by
 * for the first. Whatever happens in a change of a job over all switches, the change is there on
 * all of them and in all states, or on none and in none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/etcd/etcd_model.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/turns.h"
#include "tests/unit/world.h"

#define ROWS 4
#define STANDBY 4		/* of row0 */
#define FIRST 0			/* variants of the fabric, which differ on each switch */
#define SECOND 4
#define QUIET_S 60
#define TAKE_OVERS 6
#define AT_ONCE 6
#define KILL_EVERY 29		/* calls of weftd's in a change */
#define KILLS_MAX 200

static const char *const devices[ROWS] = { "ocs0", "ocs1", "ocs2", "ocs3" };

static struct {
	int row0;			/* who leads it, or did last */
	const char *maps[2][ROWS];	/* by the two fabrics */
} d;

static void run(void (*story)(void))
{
	struct scenario s;

	scenario_pair(&s, 2);
	s.domains = ROWS;
	s.n_weftds = ROWS + 1;
	s.n_devices = ROWS;
	s.poll_s = 3600;
	for (int i = 0; i < ROWS; i++) {
		s.devices[i] = (struct cluster_device){ .dialect = "polatis-scpi", .domain = i };
	}
	tell_by_rules(&s, story);
}

/* ---- what they say ---- */

static void ask_row(int row)
{
	ask_weftd(row > 0 ? row : d.row0);
}

/* Who leads it has no change open, and has heard of all others that they have none. */
static bool is_quiet(int row)
{
	ask_row(row);
	return matches(ask("state", "status"), "^(ready|empty|interrupted)$") &&
	       same(value("participants.#"), "4") &&
	       !matches(value("participants.*.leader"), "^,|,,|,$") &&
	       same(value("participants.*.state"), ",,,");
}

static bool all_quiet(void)
{
	for (int row = 0; row < ROWS; row++) {
		if (!is_quiet(row)) {
			d.row0 = row == 0 ? STANDBY - d.row0 : d.row0;
			return false;
		}
	}
	return true;
}

static const char *word_of(int fabric)
{
	return fabric ? "second" : "first";
}

/* Which of the two all switches have; -1: neither. */
static int fabric_of_maps(void)
{
	for (int f = 0; f < 2; f++) {
		int n = 0;

		while (n < ROWS && same(map_of(devices[n]), d.maps[f][n])) {
			n++;
		}
		if (n == ROWS) {
			return f;
		}
	}
	return -1;
}

static bool is_in_order(int row)
{
	ask_row(row);
	return same(ask("state", "status"), "ready") &&
	       !matches(value("devices.*.missing"), "[0-9]") &&
	       !matches(value("devices.*.unexpected"), "[0-9]") &&
	       !matches(value("devices.*.pending"), "[0-9]");
}

/* The comment of the last change that a row has made. */
static const char *last_of(int row)
{
	int n;

	ask_row(row);
	n = atoi(ask("changes.#", "history"));
	for (int i = 0; i < n; i++) {
		char path[40];

		snprintf(path, sizeof(path), "changes.%d.outcome", i);
		if (same(value(path), "committed")) {
			snprintf(path, sizeof(path), "changes.%d.comment", i);
			return value(path);
		}
	}
	return "";
}

/* All maps and states are of one of the two fabrics: which; -1: they are not. */
static int agreed(void)
{
	const int fabric = fabric_of_maps();
	const char *last = NULL;

	for (int row = 0; row < ROWS && fabric >= 0; row++) {
		const char *one = last_of(row);

		if (!is_in_order(row) || (last && !same(last, one))) {
			sim_tell("row%d is not in order, or its last change was %s, not %s", row,
				 one, last ? last : "another");
			return -1;
		}
		last = one;
	}
	return fabric;
}

static void await_agreed(int fabric, const char *words)
{
	await(QUIET_S, "no change is open any more", all_quiet());
	check(agreed() == fabric, words);
}

static void keep_maps(int fabric)
{
	for (int i = 0; i < ROWS; i++) {
		d.maps[fabric][i] = map_of(devices[i]);
	}
}

/* They know of each other, and both fabrics were there; the first one is now. */
static void begin_agreed(void)
{
	await(40, "four weftd lead, and know of each other", all_quiet());
	ask_row(2);
	expect(0, "the first fabric, asked of row2", "apply -f fabric0.yaml -m first");
	await(QUIET_S, "all are quiet", all_quiet());
	keep_maps(0);
	ask_row(0);
	expect(0, "the second one, asked of row0", "apply -f fabric4.yaml -m second");
	await(QUIET_S, "all are quiet", all_quiet());
	keep_maps(1);
	for (int i = 0; i < ROWS; i++) {
		check(!same(d.maps[0][i], d.maps[1][i]), "each switch has moved");
	}
	ask_row(3);
	expect(0, "nothing is left to do", "apply -f fabric4.yaml");
	await_agreed(1, "all agree");
	ask_row(1);
	expect(0, "the first one", "apply -f fabric0.yaml -m again");
	await_agreed(0, "all agree once more");
}

/* ---- what stops a change in one place stops it everywhere ---- */

/* A change to the second fabric, asked of row0, is. */
static void expect_refused(int status, const char *what, const char *pattern)
{
	await(QUIET_S, "no change is open", all_quiet());
	ask_row(0);
	expect(status, what, "apply -f fabric4.yaml");
	has_error("and says why", pattern);
	await_agreed(0, "all is as before");
}

static void freeze_row(void)
{
	ask_row(2);
	expect(0, "row2 is frozen", "freeze -m 'hands in the rack'");
	expect_refused(1, "row2 is frozen: no change", "row2: .*frozen");
	ask_row(2);
	expect(0, "row2 is not frozen any more", "unfreeze");
}

static void drain_host(void)
{
	ask_row(1);
	expect(0, "a host is drained at row1", "drain h3 -m 'a board is replaced'");
	expect_refused(1, "drained at row1: no change", "row1: .*h3");
	ask_row(1);
	expect(0, "and is back", "undrain h3");
	expect(65, "it is to be emptied too", "drain h3 --evacuate");
	has_error("which is not supported", "several weftd lead this fabric");
	check(same(ask("holds.#", "status"), "0"), "and nothing was drained");
	expect(65, "nor is a plan that optimises", "plan --optimise");
	has_error("likewise", "several weftd lead this fabric");
}

static void lose_row(void)
{
	kill_for_good(1);
	ask_row(0);
	expect(1, "without a weftd that leads row1", "apply -f fabric4.yaml");
	has_error("which is said", "row1: no weftd leads it");
	cluster_start(1);
	await_agreed(0, "when it is back all is as before");
}

static void refuse(void)
{
	begin_agreed();
	freeze_row();
	drain_host();
	ask_row(1);
	expect(65, "a job on request",
	       "job request --nodes 'h[0-1]' --collective allreduce --size 1MiB");
	has_error("is not supported", "several weftd lead this fabric");
	lose_row();
	ask_row(0);
	expect(65, "a change that waits for its confirmation",
	       "apply -f fabric4.yaml --confirm-within 1h");
	has_error("is not supported either", "several weftd lead this fabric");
	ask_row(3);
	expect(0, "and the next change is made", "apply -f fabric4.yaml");
	await_agreed(1, "by all");
	all_settled();
}

static void run_refusals(void)
{
	run(refuse);
}

/* ---- a device that can neither go on nor back ---- */

/* An input that the change moves, as the device counts it. */
static int moved_input(int row)
{
	return atoi(without(d.maps[1][row], d.maps[0][row])) + 1;
}

static void refuse_by_device(void)
{
	begin_agreed();
	control(devices[3], "fault refuse-port=i%d", moved_input(3));
	ask_row(0);
	expect(3, "a device of row3 refuses, and then to go back too", "apply -f fabric4.yaml");
	has_error("which is said, with the device", "undone: row3: .*ocs3");
	await(QUIET_S, "no change is open any more", all_quiet());
	for (int i = 0; i < 3; i++) {
		check(same(map_of(devices[i]), d.maps[0][i]), "the others have gone back");
	}
	control(devices[3], "clear");
	ask_row(3);
	expect(0, "row3 does once it can", "apply -f fabric0.yaml -m repaired");
	await_agreed(0, "and all agree");
	all_settled();
}

static void run_device(void)
{
	run(refuse_by_device);
}

/* ---- two at once ---- */

/* The second one so much later. */
static void apply_twice(int round)
{
	struct command *a, *b;
	const bool second = round % 2 == 0;
	int one, other, fabric;

	ask_row(2);
	a = begin("apply -f fabric%d.yaml -m 'one of two'", second ? SECOND : FIRST);
	sim_sleep(round * 14 * SIM_MS);
	ask_row(3);
	b = begin("apply -f fabric%d.yaml -m 'the other'", second ? SECOND : FIRST);
	one = finish(a);
	other = finish(b);
	sim_tell("two changes at once end with %d and %d", one, other);
	check((one == 0 || other == 0) && (one == 0 || one == 75 || one == 1) &&
	      (other == 0 || other == 75 || other == 1), "of two at once one is made");
	await(QUIET_S, "no change is open any more", all_quiet());
	fabric = agreed();
	check(fabric == second, "by all");
}

/* One request of a client, at two rows: the one that is too late knows nothing of its end. */
static void ask_both(void)
{
	static const char one[] = "apply -f fabric4.yaml -m same --request-id same";
	struct command *a, *b;

	ask_row(2);
	a = begin("%s", one);
	ask_row(3);
	b = begin("%s", one);
	check((finish(a) == 0) + (finish(b) == 0) == 1, "of one request at two rows one is made");
	await(QUIET_S, "no change is open any more", all_quiet());
	check(agreed() == 1, "by all");
	for (int row = 2; row < ROWS; row++) {
		ask_row(row);
		expect(0, "and is refused at neither when it is asked again", "%s", one);
		await(QUIET_S, "no change is open any more", all_quiet());
	}
	ask_row(0);
	expect(0, "back", "apply -f fabric0.yaml -m again");
	await_agreed(0, "all agree");
}

static void apply_at_once(void)
{
	begin_agreed();
	ask_both();
	for (int i = 0; i < AT_ONCE; i++) {
		apply_twice(i);
	}
	all_settled();
}

static void run_two(void)
{
	run(apply_at_once);
}

/* ---- one that stands by brings its part to an end ---- */

/* Who leads row0 is killed so long after the change has begun, in which its device is slow. */
static int take_over(int from, int64_t ns)
{
	const int old = d.row0;
	struct command *c;
	int status, fabric;

	await(QUIET_S, "another weftd of row0 stands by",
	      stands_by(STANDBY - old) && atoi(value("generation")) > 1);
	control(devices[0], "fault slow=300");
	ask_row(1);
	c = begin("apply -f fabric%d.yaml -m 'taken over'", from ? FIRST : SECOND);
	sim_sleep(ns);
	kill_for_good(old);
	control(devices[0], "clear");
	status = finish(c);
	check(status == 0 || status == 1 || status == 3, "the change has ended");
	await(QUIET_S, "its part is brought to an end by the other", all_quiet());
	check(d.row0 == STANDBY - old, "which leads");
	fabric = agreed();
	sim_tell("taken over after %.3f s: apply ended with %d, %s -> %s", (double)ns / SIM_S,
		 status, word_of(from), fabric < 0 ? "neither" : word_of(fabric));
	check(fabric == (status == 0 ? !from : from), "as the client was told");
	cluster_start(old);
	return fabric < 0 ? from : fabric;
}

static void take_over_often(void)
{
	int fabric = 0;

	begin_agreed();
	for (int i = 0; i < TAKE_OVERS; i++) {
		fabric = take_over(fabric, (i + 1) * 800 * SIM_MS);
	}
	all_settled();
}

static void run_standby(void)
{
	run(take_over_often);
}

/* ---- killed at any moment ---- */

/* One change, in which the weftd of a row is killed in its call `moment` from now on, if it makes
 * so many. */
static bool kill_round(int number, int *fabric)
{
	const int row = number % ROWS, weftd = row > 0 ? row : d.row0, from = *fabric;
	struct sim_process *p = cluster_weftd(weftd);
	bool killed;
	int status;

	ask_row((number / 2 + 1) % ROWS);
	sim_kill_at(p, number * KILL_EVERY + 1);
	status = weft("apply -f fabric%d.yaml -m 'round %d'", from ? FIRST : SECOND, number);
	sim_kill_at(p, 0);
	killed = sim_ended(p, NULL);
	sim_sleep(SIM_S);
	await(QUIET_S, "no change is open any more", all_quiet());
	*fabric = agreed();
	sim_tell("round %d: row%d %s, apply ended with %d, %s -> %s", number, row,
		 killed ? "killed" : "not killed", status, word_of(from),
		 *fabric < 0 ? "neither" : word_of(*fabric));
	check(*fabric >= 0, "committed or undone as one");
	check(status != 0 || *fabric == !from, "what was acknowledged is there");
	return killed;
}

/* All over a change, with each commit half of it: the last ones come after its end. */
static void kill_rows(void)
{
	int fabric = 0, spared = 0;

	begin_agreed();
	for (int i = 0; i < KILLS_MAX && spared < ROWS && fabric >= 0; i++) {
		if (!in_turn((size_t)(i / ROWS), 2)) {
			continue;
		}
		spared = kill_round(i, &fabric) ? 0 : spared + 1;
	}
	check(spared == ROWS, "the change has an end");
	all_settled();
}

static void run_killed(void)
{
	run(kill_rows);
}

/* ---- etcd's answers are late, or do not come ---- */

/* One change, in which this happens to the first transaction that writes a key like this. */
static void late_round(int number, const char *key, enum etcd_trouble what, int *fabric)
{
	const int from = *fabric;
	int status;

	etcd_model_fault(&(struct etcd_fault){ .call = ETCD_WRITE, .key = key, .what = what,
					       .ns = 1500 * SIM_MS, .nth = 1 + number % ROWS });
	ask_row(number % ROWS);
	status = weft("apply -f fabric%d.yaml -m 'round %d'", from ? FIRST : SECOND, number);
	etcd_model_forget_faults();
	sim_sleep(4 * SIM_S);
	await(QUIET_S, "no change is open any more", all_quiet());
	*fabric = agreed();
	sim_tell("%s of %s: apply ended with %d, %s -> %s", etcd_trouble_name(what), key, status,
		 word_of(from), *fabric < 0 ? "neither" : word_of(*fabric));
	check(status == 0 && *fabric == !from, "the change is made by all");
}

static void answer_late(void)
{
	static const char *const keys[] = { "/joint/open", "/joint/base/", "/joint/at/",
					    "/joint/decision", "/joint/ended/" };
	static const enum etcd_trouble troubles[] = { ETCD_LATE_ANSWER, ETCD_NO_ANSWER, ETCD_RESET,
						      ETCD_LATE_REQUEST, ETCD_LOST };
	int fabric = 0;

	begin_agreed();
	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 5 && fabric >= 0; k++) {
			if (!in_turn((size_t)(i * 5 + k), 2)) {
				continue;
			}
			late_round(i * 5 + k, keys[k], troubles[i], &fabric);
		}
	}
	all_settled();
}

static void run_late(void)
{
	run(answer_late);
}

/* What was asked for is opened once more when another change is over: its first request arrives by
 * then. The answer to a second one was what its client waited for, and there was nothing to do,
 * so that no row has it on record. */
static void open_late(void)
{
	begin_agreed();
	etcd_model_fault(&(struct etcd_fault){ .call = ETCD_WRITE, .key = "/joint/open",
					       .what = ETCD_LATE_REQUEST, .ns = 20 * SIM_S });
	ask_row(1);
	expect(0, "nothing is to be done", "apply -f fabric0.yaml -m late");
	await(QUIET_S, "no change is open any more", all_quiet());
	check(etcd_model_faults_left() == 0, "its first request is on its way");
	ask_row(2);
	expect(0, "the second fabric", "apply -f fabric4.yaml -m newer");
	await_agreed(1, "is everywhere");
	sim_sleep(30 * SIM_S);
	await_agreed(1, "and stays, whatever arrives late");
	all_settled();
}

static void run_open_late(void)
{
	run(open_late);
}

const struct story divided_stories[] = {
	{ "divided-refusals", "what stops a change in one domain stops it in all", run_refusals },
	{ "divided-device", "a device of one domain can go neither on nor back", run_device },
	{ "divided-two", "two changes of all domains at once", run_two },
	{ "divided-standby", "one that stands by ends its part of a change", run_standby },
	{ "divided-late", "etcd answers late in a change", run_late },
	{ "divided-open-late", "a change is opened by a request that arrives late", run_open_late },
	{ "divided-killed", "one of them is killed at moments all over a change", run_killed },
	{ 0 },
};
