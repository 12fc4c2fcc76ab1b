/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 1, 13: changes that were open when the process ended. Whatever the moment, the
 * next start reads the devices, sends nothing, and leaves every circuit
 * either intended or explained.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/log.h"
#include "moments.h"
#include "rig.h"

static int setup(void **state)
{
	fault_clear();
	return rig_setup(state);
}

static int teardown(void **state)
{
	fault_clear();
	return rig_teardown(state);
}

/* Ends the engine without a word, as a crash would, and starts the next one,
 * which has not read anything yet. The journal of rig_second is left open. */
static void leave_open(struct rig *r)
{
	struct model_fabric *f = rig_parse(r);
	struct plan *p = rig_plan(r, f, PLAN_SAFE, rig_second, 2);
	struct store_journal j;
	struct err err = { 0 };

	journal_from_plan(p, &(struct change_order){ .who = "alice" }, &j);
	assert_int_equal(store_begin(r->store, &j, &f->config, &err), 0);
	r->res.change = j.change.id;
	store_journal_fini(&j);
	plan_free(p);
	model_free(f);
}

static void restart(struct rig *r)
{
	rig_down(r);
	rig_up(r);
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), NULL), 0);
	rig_watch(r);
}

static void assert_verdict(struct rig *r, enum store_verdict v)
{
	struct store_change c;
	struct err err = { 0 };

	assert_int_equal(store_change_get(r->store, r->res.change, &c, &err),
			 0);
	assert_string_equal(store_verdict_name(c.verdict),
			    store_verdict_name(v));
	store_change_fini(&c);
}

static void move_a(struct rig *r)
{
	rig_meddle(r, "a", DRV_DEL, 1, 2);
	rig_meddle(r, "a", DRV_ADD, 1, 4);
}

static void move_b(struct rig *r)
{
	rig_meddle(r, "b", DRV_DEL, 5, 6);
	rig_meddle(r, "b", DRV_ADD, 5, 7);
}

static void assert_explained(struct rig *r, int pending)
{
	int n, found = 0;
	const struct apply_device *v = apply_devices(r->apply, &n);

	for (int i = 0; i < n; i++) {
		assert_int_equal(v[i].n_missing, 0);
		assert_int_equal(v[i].n_unexpected, 0);
		found += v[i].n_pending;
	}
	assert_int_equal(found, pending);
}

static void test_nothing_open(void **state)
{
	struct rig *r = *state;

	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_string_equal(r->text, "no change was open");
}

static void test_as_before(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	leave_open(r);
	restart(r);
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_says(r->text, "change 2 never happened");
	assert_verdict(r, STORE_ABORTED);
	assert_int_equal(r->n_commands, 0);
	assert_explained(r, 0);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_COMMITTED);
}

static void test_as_planned(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	leave_open(r);
	move_a(r);
	move_b(r);
	restart(r);
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_says(r->text, "change 2 is committed");
	assert_verdict(r, STORE_COMMITTED);
	assert_int_equal(r->n_commands, 0);
	assert_explained(r, 0);
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_NOTHING_TO_DO);
}

static void test_mixed(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	leave_open(r);
	move_a(r);
	restart(r);
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_says(r->text, "of 4 steps 2 are as planned, 2 as before, 0 "
		    "unknown, 0 kept circuits are lost; nothing was sent");
	assert_verdict(r, STORE_INTERRUPTED);
	assert_int_equal(r->n_commands, 0);
	assert_explained(r, 2);
	/* The same again after another restart. */
	restart(r);
	rig_recover(r);
	assert_verdict(r, STORE_INTERRUPTED);
	assert_explained(r, 2);
	/* Back: what the open change made is weft's own to delete. */
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	rig_read(r);
	assert_explained(r, 0);
	assert_true(rig_has(r, "a", 1, 2) && !rig_has(r, "a", 1, 4));
	rig_recover(r);
	assert_string_equal(r->text, "no change was open");
}

/* All steps of one device of the open change were sent. */
static void mark_sent(struct rig *r, int work)
{
	struct store_journal *v;
	struct err err = { 0 };
	int n;

	assert_int_equal(store_open_changes(r->store, &v, &n, &err), 0);
	for (int i = 0; i < v[0].works[work].n_steps; i++) {
		v[0].works[work].steps[i].state = STORE_SENT;
	}
	assert_int_equal(store_mark(r->store, &v[0], work, &err), 0);
	store_journals_free(v, n);
}

/* A device that restarted has lost what was only to be kept. */
static void test_kept_lost(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	leave_open(r);
	mark_sent(r, 0);
	rig_meddle(r, "a", DRV_DEL, 2, 3);
	restart(r);
	rig_recover(r);
	assert_says(r->text, "1 kept circuits are lost");
	assert_verdict(r, STORE_INTERRUPTED);
	assert_explained(r, 1);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	rig_read(r);
	assert_explained(r, 0);
}

/* A circuit that is listed without light was neither made nor left as it was,
 * unless nothing was sent. */
static void test_half_made(void **state)
{
	struct rig *r = *state;

	for (int sent = 0; sent < 2; sent++) {
		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		leave_open(r);
		if (sent) {
			mark_sent(r, 1);
		}
		restart(r);
		rig_wrap_b(r);
		rig_b.blocked = true;
		rig_recover(r);
		assert_int_equal(r->rc, sent ? WEFT_EUNAVAIL : 0);
		assert_verdict(r, sent ? STORE_INTERRUPTED : STORE_ABORTED);
		assert_int_equal(r->n_commands, 0);
		assert_int_equal(rig_device(r, "b")->n_pending, sent);
		assert_int_equal(rig_device(r, "b")->n_missing, !sent);
		assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2),
				 APPLY_COMMITTED);
		assert_false(rig_b.blocked);
		rig_read(r);
		assert_explained(r, 0);
	}
}

/* Nothing begins while the state of the devices is not known. */
static void test_must_be_settled_first(void **state)
{
	struct rig *r = *state;
	struct model_fabric *f;
	struct plan *p;
	struct err err = { 0 };

	rig_two_switches(r, "", "");
	leave_open(r);
	restart(r);
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, rig_first, 2);
	assert_int_equal(apply_start(r->apply, p, f,
					 &(struct apply_request){ .order.who = "bob" }, NULL,
				     rig_on_done, r, &err), WEFT_ESTALE);
	assert_says(err.msg, "change 1 was left open");
	rig_recover(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
}

static void test_forward_after_mixed(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	leave_open(r);
	rig_meddle(r, "a", DRV_DEL, 1, 2);
	restart(r);
	rig_recover(r);
	assert_verdict(r, STORE_INTERRUPTED);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_COMMITTED);
	rig_read(r);
	assert_explained(r, 0);
	assert_true(rig_has(r, "a", 1, 4) && rig_has(r, "b", 5, 7));
}

/* A later change that fails leaves the explanation of the earlier one. */
static void test_failed_after_mixed(void **state)
{
	struct rig *r = *state;

	rig_begin(r, ", lie: o7");
	leave_open(r);
	move_a(r);
	restart(r);
	rig_recover(r);
	assert_explained(r, 2);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	rig_read(r);
	assert_explained(r, 2);
	assert_true(rig_has(r, "a", 1, 4));
}

static void test_device_away(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	leave_open(r);
	move_a(r);
	move_b(r);
	restart(r);
	rig_wrap_b(r);
	rig_b.dead = true;
	rig_recover(r);
	assert_int_equal(r->rc, WEFT_EUNAVAIL);
	assert_says(r->text, "2 unknown");
	assert_verdict(r, STORE_INTERRUPTED);
	/* It is back: asking again settles the change. */
	rig_b.dead = false;
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_verdict(r, STORE_COMMITTED);
	assert_explained(r, 0);
}

/* Rolling back had begun: all as planned is then not a success. */
static void test_while_undoing(void **state)
{
	for (int moved = 0; moved < 2; moved++) {
		struct rig *r = *state;
		struct err err = { 0 };

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		leave_open(r);
		assert_int_equal(store_undoing(r->store, 2, &err), 0);
		if (moved) {
			move_a(r);
			move_b(r);
		}
		restart(r);
		rig_recover(r);
		assert_verdict(r, moved ? STORE_INTERRUPTED :
					  STORE_ROLLED_BACK);
		assert_explained(r, moved ? 4 : 0);
	}
}

/* Half done when a device did not answer: once that is read it goes back, if that is wanted, also
 * in the next process. What was never sent stays as it is, and so does what only a crash left. */
static void test_resumed(void **state)
{
	for (int away = 0; away < 2; away++) {
		struct rig *r = *state;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		leave_open(r);
		mark_sent(r, 0);
		move_a(r);
		if (away) {
			mark_sent(r, 1);
		}
		restart(r);
		rig_wrap_b(r);
		rig_b.dead = away;
		rig_recover(r);
		assert_verdict(r, STORE_INTERRUPTED);
		rig_b.dead = false;
		restart(r);
		rig_recover(r);
		assert_verdict(r, STORE_INTERRUPTED);
		restart(r);
		apply_resume(r->apply);
		assert_int_equal(apply_unresolved(r->apply), r->res.change);
		rig_recover(r);
		assert_int_equal(r->rc, 0);
		assert_int_equal(apply_unresolved(r->apply), 0);
		assert_verdict(r, away ? STORE_ROLLED_BACK : STORE_INTERRUPTED);
		assert_int_equal(rig_has(r, "a", 1, 2), away);
		assert_explained(r, away ? 0 : 2);
	}
}

static void test_stuck_is_freed(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_two_switches(r, "", ", lie: o6, refuse: o7");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_STUCK);
	rig_two_switches(r, "", "");
	rig_recover(r);
	assert_verdict(r, STORE_STUCK);
	/* An operator puts the circuit back by hand. */
	rig_meddle(r, "b", DRV_ADD, 5, 6);
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_verdict(r, STORE_ROLLED_BACK);
	rig_read(r);
	assert_explained(r, 0);
}

/* The device exists only in the configuration of the change. */
static void test_new_fabric(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", "");
	leave_open(r);
	move_a(r);
	rig_down(r);
	rig_up(r);
	assert_null(apply_fabric(r->apply));
	rig_recover(r);
	assert_verdict(r, STORE_INTERRUPTED);
	assert_non_null(apply_fabric(r->apply));
	assert_int_equal(rig_device(r, "a")->n_pending, 1);
}

static void close_engine(struct rig *r)
{
	r->answered = false;
	apply_free(r->apply, NULL, NULL);
}

/* The engine is closed in the middle of a change, at any event. */
static void test_closed_in_the_middle(void **state)
{
	static const char *const cues[] = {
		"prepare", "delete a", "add a", "read again a", "delete b",
		"undo", "step to take back", "b is as before",
	};

	for (size_t i = 0; i < sizeof(cues) / sizeof(cues[0]); i++) {
		struct rig *r = *state;
		bool undo = i >= 5;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_two_switches(r, "", undo ? ", refuse: o7" : "");
		rig_go(r, PLAN_SAFE, rig_first, 2);
		r->cue = cues[i];
		r->on_cue = close_engine;
		rig_go(r, PLAN_SAFE, rig_second, 2);
		assert_int_equal(r->rc, undo ? WEFT_EDEVICE : WEFT_ECANCELED);
		assert_int_equal(r->res.verdict, i == 0 ? APPLY_REFUSED :
							  APPLY_STUCK);
		uv_run(&r->loop, UV_RUN_DEFAULT);
		assert_int_equal(uv_loop_close(&r->loop), 0);
		store_free(r->store);
		rig_up(r);
		assert_int_equal(apply_set_fabric(r->apply, rig_parse(r),
						  NULL), 0);
		rig_watch(r);
		rig_recover(r);
		assert_int_equal(r->rc, 0);
		assert_int_equal(r->n_commands, 0);
		rig_read(r);
		for (int k = 0; k < 2; k++) {
			const struct apply_device *d =
				rig_device(r, rig_first[k].device);

			assert_int_equal(d->n_missing, 0);
			assert_int_equal(d->n_unexpected, 0);
		}
	}
}

/* ---- the process ends at any write of the store -------------------------- */

/* What the process is to do when it ends. */
struct deed {
	const char *options;		/* of b */
	const struct want *wants;
	bool in_stages;
};

/* The whole change, on the light of the first one; every moment is kept. */
static struct moments *run_and_watch(struct rig *r, const struct deed *deed)
{
	struct moments *m = new_moments(r);
	struct model_fabric *f;

	rig_fini(r);
	rig_init(r);
	rig_up(r);
	rig_two_switches(r, "", deed->options);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	rig_down(r);
	rig_up(r);
	watch_moments(m);
	rig_two_switches(r, "", deed->options);
	r->in_stages = deed->in_stages;
	f = rig_parse(r);
	rig_start(r, rig_plan(r, f, PLAN_SAFE, deed->wants, 2), f);
	rig_run(r);
	fault_clear();
	keep_moment(m);
	rig_down(r);
	return m;
}

/* The next start; returns what became of the change. */
static enum store_verdict start_again(struct rig *r, const struct deed *deed)
{
	struct store_change *h;
	struct err err = { 0 };
	enum store_verdict verdict;
	int n;

	rig_up(r);
	rig_two_switches(r, "", "");
	rig_watch(r);
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_int_equal(r->n_commands, 0);
	rig_read(r);
	assert_int_equal(store_history(r->store, 0, 1, &h, &n, &err), 0);
	verdict = h[0].verdict;
	store_history_free(h, n);
	assert_int_not_equal(verdict, STORE_RUNNING);
	assert_explained(r, rig_device(r, "a")->n_pending +
			    rig_device(r, "b")->n_pending);
	if (verdict != STORE_INTERRUPTED) {
		assert_explained(r, 0);
	}
	/* And the operator can go on from there. */
	rig_go(r, PLAN_SAFE, deed->wants, 2);
	assert_true(r->res.verdict == APPLY_COMMITTED ||
		    r->res.verdict == APPLY_NOTHING_TO_DO);
	rig_read(r);
	assert_explained(r, 0);
	rig_down(r);
	return verdict;
}

static void kill_at_every_write(struct rig *r, const struct deed *deed)
{
	struct moments *m = run_and_watch(r, deed);
	int seen[STORE_ABORTED + 1] = { 0 };

	for (int at = 0; at < m->n; at += STRIDE) {
		restore_moment(m, at);
		seen[start_again(r, deed)]++;
	}
	assert_true(m->n > 50);
	assert_true(seen[STORE_INTERRUPTED] > 0);
	assert_true(seen[STORE_COMMITTED] > 0);
	free_moments(m);
}

static void test_killed_at_every_write(void **state)
{
	kill_at_every_write(*state, &(struct deed){ "", rig_second, false });
}

/* The same while the change is being rolled back. */
static void test_killed_in_undo(void **state)
{
	kill_at_every_write(*state, &(struct deed){ ", refuse: o7", rig_second,
						    false });
}

/* All circuits of a move on, around in a circle; two of b. */
static const struct want third[] = {
	{ "a", 3, { { 0, 2 }, { 1, 3 }, { 2, 1 } }, NULL },
	{ "b", 3, { { 0, 0 }, { 5, 7 }, { 6, 4 } }, NULL },
};

/* Between stages and in them, and while the last is taken back first. */
static void test_killed_in_stages(void **state)
{
	kill_at_every_write(*state, &(struct deed){ "", third, true });
	kill_at_every_write(*state, &(struct deed){ ", refuse: o4", third,
						    true });
}

/* ---- the disk fails ------------------------------------------------------ */

/* At the N-th write from the start of the change on, for ever: no light is
 * left that the next start cannot explain. */
static void test_disk_fails(void **state)
{
	bool hit = true;

	for (int at = 1; hit; at += STRIDE) {
		struct rig *r = *state;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		fault_arm(FAULT_FULL, at, true);
		rig_go(r, PLAN_SAFE, rig_second, 2);
		hit = fault.hit;
		assert_true(r->res.verdict != APPLY_COMMITTED || r->rc == 0);
		if (r->rc) {
			assert_int_equal(r->rc, WEFT_EIO);
			assert_says(r->err.msg, "store");
		}
		if (r->res.verdict == APPLY_REFUSED ||
		    r->res.verdict == APPLY_ROLLED_BACK) {
			assert_true(rig_has(r, "a", 1, 2));
			assert_true(rig_has(r, "b", 5, 6));
		}
		rig_down(r);
		fault_clear();
		rig_up(r);
		rig_two_switches(r, "", "");
		rig_recover(r);
		assert_int_equal(r->rc, 0);
		assert_explained(r, 0);
	}
}

static void be_quiet(enum log_level level, const char *room, const char *line,
		     const struct log_field *fields, int n_fields)
{
	(void)level;
	(void)room;
	(void)line;
	(void)fields;
	(void)n_fields;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_nothing_open), T(test_as_before), T(test_as_planned),
		T(test_mixed), T(test_kept_lost), T(test_half_made),
		T(test_must_be_settled_first), T(test_forward_after_mixed),
		T(test_failed_after_mixed), T(test_device_away),
		T(test_while_undoing), T(test_resumed), T(test_stuck_is_freed),
		T(test_new_fabric), T(test_closed_in_the_middle),
		T(test_killed_at_every_write), T(test_killed_in_undo),
		T(test_killed_in_stages),
		T(test_disk_fails),
	};

	fault_install();
	log_set_sink(be_quiet);	/* failures are wanted here */
	return cmocka_run_group_tests_name("apply/recover", tests, NULL, NULL);
}
