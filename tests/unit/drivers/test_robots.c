/* SPDX-License-Identifier: Apache-2.0 */
/* All robots: queues, text in passing, half-done links, waiting for people. */
#include "tests/unit/drivers/robots.h"

static const char *const drivers[] = { "rome-cli", "telescent-cli" };

static const char *word(const struct rig *r, const char *rome,
			const char *telescent)
{
	return strcmp(r->driver, "rome-cli") == 0 ? rome : telescent;
}

static void slow_moves_are_waited_for(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5),
						 ADD(2, 6) };
	struct rig *r = robot_rig(*state, "move=15", NULL, NULL);

	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(r->outcomes[i].evidence, DRV_READ_BACK);
	}
	rig_expect_map(r, "0-4 1-5 2-6");
	robot_tear_down(r);
}

/* checklist 12: the second fibre of a duplex link fails: the first is told as done, so
 * that whoever asked can take it back. */
static void half_of_a_duplex_link_is_told(void **state)
{
	static const struct drv_item link[] = { ADD(0, 1), ADD(1, 0) };
	static const struct drv_item back[] = { DEL(0, 1) };
	struct rig *r = robot_rig(*state, "conn-failed=i1", NULL, NULL);

	assert_int_equal(rig_submit(r, DRV_SAFE, 1, link), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, link), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	assert_string_equal(r->outcomes[1].code, "FAILED");
	assert_non_null(strstr(r->outcomes[1].text, word(r, "E2", "-in 1")));
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, back), 0);
	rig_expect_map(r, "");
	robot_tear_down(r);
}

/* checklist 20: a robot that waits for people: what is queued stays unknown, and nothing
 * is sent a second time. */
static void a_homing_run_is_left_to_people(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = robot_rig(*state, "homing", "move_ms", "10");
	int sets;

	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_ETIMEOUT);
	assert_non_null(strstr(r->err.msg, word(r, "homing run", "queue")));
	rig_expect(r, 1, DRV_UNKNOWN);
	sets = rig_stat(r, "sets");
	rig_expect_map(r, "");
	assert_int_equal(rig_stat(r, "sets"), sets);
	assert_int_equal(sets, 2);
	robot_tear_down(r);
}

/* Who watches is told what the robot waits for, while it waits. */
static void people_are_asked_for_a_homing_run(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = robot_rig(*state, "homing", "move_ms", "100");
	bool asked = false;

	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_ETIMEOUT);
	for (int i = 0; i < r->n_events; i++) {
		asked |= strstr(r->events[i].text, "homing run") != NULL;
	}
	assert_int_equal(asked, word(r, "yes", "no")[0] == 'y');
	robot_tear_down(r);
}

static void a_displaced_circuit_is_moved_aside(void **state)
{
	static const struct drv_item first[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item steal[] = { ADD(0, 5) };
	struct rig *r = robot_rig(*state, "move=3", NULL, NULL);

	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, steal), 0);
	rig_expect_map(r, "0-5");
	robot_tear_down(r);
}

static void a_locked_port_is_left_alone(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5),
						 ADD(2, 6) };
	struct rig *r = robot_rig(*state, "port-disabled=o5", NULL, NULL);
	int locked = 0;

	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	rig_expect(r, 2, DRV_SKIPPED);
	assert_string_equal(r->outcomes[1].code, "LOCKED");
	assert_int_equal(rig_stat(r, "sets"), 1);
	assert_int_equal(rig_snapshot(r), 0);
	/* Besides, ports that were moved, where the robot counts that. */
	for (int i = 0; i < r->snap.n_ports; i++) {
		const struct drv_port *p = &r->snap.ports[i];

		assert_int_equal(p->enabled, !(p->is_out && p->index == 5));
		assert_true(!p->enabled || p->moves > 0);
		locked += !p->enabled;
	}
	assert_int_equal(locked, 1);
	robot_tear_down(r);
}

/* Another user at the panel is heard of without asking. */
static void what_others_move_is_told(void **state)
{
	struct rig *r = robot_rig(*state, NULL, NULL, NULL);
	const struct rig_event *e;

	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->n_events, 0);
	rig_control(r, "set 2,6", NULL, 0);
	e = rig_wait_event(r, DRV_EVENT_CHANGED);
	assert_true(e->ev.has_port && !e->ev.is_out);
	assert_int_equal(e->ev.index, 2);
	assert_non_null(strstr(e->text, word(r, "W7", "-out 6")));
	rig_expect_map(r, "2-6");
	robot_tear_down(r);
}

/* With all moves in its queue at once, and two at a time. */
static void expect_progress(void **state, const char *queue)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5),
						 ADD(2, 6), ADD(3, 7) };
	/* It is asked what it does before the first is over, also on a busy machine. */
	struct rig *r = robot_rig(*state, "move=200", queue ? "queue" : NULL, queue);
	int done = 0;

	assert_int_equal(rig_submit(r, DRV_SAFE, 4, items), 0);
	for (int i = 0; i < r->n_events; i++) {
		const struct drv_event *ev = &r->events[i].ev;

		assert_int_equal(ev->kind, DRV_EVENT_PROGRESS);
		assert_int_equal(ev->total, 4);
		assert_true(ev->done >= done && ev->done <= 4);
		done = ev->done;
	}
	/* At first it is what such robots take, then what this one took. */
	assert_true(r->n_events >= 2 && done > 0);
	assert_int_equal(r->events[0].ev.done, 0);
	assert_true(r->events[0].ev.eta_ms >
		    r->events[r->n_events - 1].ev.eta_ms);
	assert_true(!queue || done > 2);
	for (int i = 0; i < r->n_events; i++) {
		/* While a move is left there is time left. */
		assert_true(r->events[i].ev.done == 4 || r->events[i].ev.eta_ms > 0);
	}
	robot_tear_down(r);
}

static void progress_is_told_with_what_remains(void **state)
{
	expect_progress(state, NULL);
	expect_progress(state, "2");
}

/* A move that was given up and is made all the same is news. */
static void a_late_move_is_told(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = robot_rig(*state, "move=300", "move_ms", "10");

	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_ETIMEOUT);
	rig_expect(r, 0, DRV_UNKNOWN);
	assert_int_equal(rig_wait_event(r, DRV_EVENT_CHANGED)->ev.index, 0);
	rig_expect_map(r, "0-4");
	robot_tear_down(r);
}

#define CASE(fn) { #fn, fn }

static const struct {
	const char *name;
	void (*run)(void **state);
} cases[] = {
	CASE(slow_moves_are_waited_for),
	CASE(half_of_a_duplex_link_is_told),
	CASE(a_homing_run_is_left_to_people),
	CASE(people_are_asked_for_a_homing_run),
	CASE(a_displaced_circuit_is_moved_aside),
	CASE(a_locked_port_is_left_alone),
	CASE(what_others_move_is_told),
	CASE(progress_is_told_with_what_remains),
	CASE(a_late_move_is_told),
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))
#define N_DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

int main(void)
{
	static struct CMUnitTest all[N_DRIVERS * N_CASES];
	static char names[N_DRIVERS * N_CASES][96];
	size_t n = 0;

	for (size_t d = 0; d < N_DRIVERS; d++) {
		for (size_t c = 0; c < N_CASES; c++, n++) {
			snprintf(names[n], sizeof(names[n]), "%s: %s",
				 drivers[d], cases[c].name);
			all[n].name = names[n];
			all[n].test_func = cases[c].run;
			all[n].initial_state = (void *)drivers[d];
		}
	}
	return cmocka_run_group_tests_name("drivers/robots", all, NULL, NULL);
}
