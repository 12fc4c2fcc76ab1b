/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on switches: carried through, refused, rolled back, stuck. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "rig.h"

/* a holds first, b holds first; after a rolled back change. */
static void assert_first(struct rig *r)
{
	rig_read(r);
	assert_int_equal(r->rc, 0);
	for (int k = 0; k < 2; k++) {
		const struct apply_device *d = rig_device(r, rig_first[k].device);

		assert_int_equal(d->snap.n_xcs, rig_first[k].n);
		for (int i = 0; i < rig_first[k].n; i++) {
			assert_true(rig_has(r, rig_first[k].device,
					    rig_first[k].xcs[i].in,
					    rig_first[k].xcs[i].out));
		}
		assert_int_equal(d->n_missing, 0);
		assert_int_equal(d->n_unexpected, 0);
		assert_int_equal(d->n_pending, 0);
	}
}

static void assert_history(struct rig *r, enum store_verdict v)
{
	struct store_change *h;
	struct err err = { 0 };
	int n;

	assert_int_equal(store_history(r->store, 0, 1, &h, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(h[0].verdict, v);
	assert_int_equal(h[0].id, r->res.change);
	assert_string_equal(h[0].order.who, "alice");
	store_history_free(h, n);
}

static void test_commit(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", "");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_int_equal(r->rc, 0);
	assert_int_equal(r->res.level, APPLY_SETTLED);
	assert_int_equal(r->res.generation, 2);
	assert_int_equal(r->res.change, 1);
	assert_history(r, STORE_COMMITTED);
	assert_first(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_COMMITTED);
	assert_true(rig_has(r, "a", 0, 1) && rig_has(r, "a", 1, 4) &&
		    rig_has(r, "a", 2, 3));
	assert_int_equal(rig_device(r, "a")->n_missing, 0);
	assert_int_equal(rig_device(r, "a")->level, APPLY_SETTLED);
	/* east is through before west is touched */
	assert_true(strstr(buf_cstr(&r->events), "read again a") <
		    strstr(buf_cstr(&r->events), "delete b"));
}

static void test_nothing_to_do(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_NOTHING_TO_DO);
	assert_int_equal(r->rc, 0);
	assert_int_equal(r->res.change, 0);
	assert_int_equal(r->res.generation, 2);
	assert_int_equal(r->n_lines, 0);
}

/* What is there already becomes intent without a command. */
static void test_adopt(void **state)
{
	struct rig *r = *state;
	const struct want w = { "a", 1, { { 3, 3 } }, NULL };

	rig_two_switches(r, "", "");
	rig_meddle(r, "a", DRV_ADD, 3, 3);
	rig_read(r);
	assert_int_equal(rig_device(r, "a")->n_unexpected, 1);
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, &w, 1), APPLY_COMMITTED);
	assert_int_equal(r->n_lines, 0);
	assert_int_equal(rig_device(r, "a")->n_unexpected, 0);
	assert_int_equal(rig_device(r, "a")->n_missing, 0);
}

/* The device confirms and does nothing. */
static void test_silent_refusal(void **state)
{
	struct rig *r = *state;

	rig_begin(r, ", lie: o7");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_EVERIFY);
	assert_says(r->err.msg, "b: in 6 -> out 8 was to be made");
	assert_first(r);
	assert_history(r, STORE_ROLLED_BACK);
	assert_int_equal(store_generation(r->store), 2);
}

/* Undo is not believed either. */
static void test_stuck(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_two_switches(r, "", ", lie: o6, refuse: o7");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_STUCK);
	assert_int_equal(r->rc, WEFT_EDEVICE);
	assert_says(r->err.msg, "1 step could not be rolled back (b in 6 "
		    "-> out 7 is not there again)");
	assert_says(r->err.msg, "-200");
	assert_true(rig_has(r, "a", 1, 2));
	assert_false(rig_has(r, "a", 1, 4));
	assert_int_equal(rig_device(r, "b")->n_pending, 1);
	assert_int_equal(rig_device(r, "b")->n_missing, 0);
	assert_history(r, STORE_STUCK);
	assert_int_equal(r->res.generation, 3);
}

static void test_refused_item(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { rig_second[0], { "b", 5, { { 0, 0 }, { 1, 1 },
		{ 2, 2 }, { 3, 3 }, { 5, 6 } }, NULL } };

	rig_begin(r, ", refuse: o2");
	assert_int_equal(rig_go(r, PLAN_SAFE, w, 2), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_EDEVICE);
	assert_says(r->err.msg, "b: in 3 -> out 3: add refused: -200");
	assert_first(r);
}

/* The session is lost, or never answers, at each item of the change and of
 * its undo. Items 1 to 3 are the first change's, 4 deletes, 5 adds. */
static void test_lost_sessions(void **state)
{
	static const char *const options[] = {
		", drop: 4", ", drop: 5", ", hang: 4", ", hang: 5",
		", refuse: o7, drop: 6", ", refuse: o7, hang: 6",
		", lie: o7, drop: 6", ", lie: o7, hang: 6",
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct rig *r = *state;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_two_switches(r, "", options[i]);
		assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2),
				 APPLY_COMMITTED);
		assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2),
				 APPLY_ROLLED_BACK);
		assert_says(r->err.msg, "b: in 6 -> out ");
		assert_first(r);
	}
}

/* The map changes between plan and start: nothing is sent. */
static void test_external_before(void **state)
{
	static const struct {
		enum drv_op op;
		int in, out;
		const char *words;
	} cases[] = {
		{ DRV_DEL, 1, 2, "in 2 -> out 3, to be deleted, is gone" },
		{ DRV_DEL, 2, 3, "in 3 -> out 4, to be kept, is gone" },
		{ DRV_ADD, 6, 4, "in 7 -> out 5 is there, in the way of" },
	};

	for (int i = 0; i < 3; i++) {
		struct rig *r = *state;
		struct model_fabric *f;
		struct plan *p;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		f = rig_parse(r);
		p = rig_plan(r, f, PLAN_SAFE, rig_second, 2);
		rig_meddle(r, "a", cases[i].op, cases[i].in, cases[i].out);
		rig_watch(r);
		rig_start(r, p, f);
		rig_run(r);
		assert_int_equal(r->res.verdict, APPLY_REFUSED);
		assert_int_equal(r->rc, WEFT_ESTALE);
		assert_says(r->err.msg, cases[i].words);
		assert_says(r->err.msg, "a: ");
		assert_says(r->err.msg, "another user");
		assert_int_equal(r->n_commands, 0);
		assert_history(r, STORE_REFUSED);
	}
}

static void lose_kept_circuit(struct rig *r)
{
	rig_meddle_later(r, "b", DRV_DEL, 6, 5);
}

/* Another's change on the second domain while the first is under way. */
static void test_external_during(void **state)
{
	struct rig *r = *state;
	int64_t now = clk_boot_ns();

	rig_begin(r, "");
	r->cue = "delete a";
	r->on_cue = lose_kept_circuit;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_ESTALE);
	assert_says(r->err.msg, "b: in 7 -> out 6, to be kept, is gone");
	assert_null(strstr(buf_cstr(&r->events), "delete b"));
	rig_read(r);
	assert_true(rig_has(r, "a", 1, 2) && !rig_has(r, "a", 1, 4));
	assert_int_equal(rig_device(r, "b")->n_missing, 1);
	/* It is a problem of that device, for a while. */
	assert_int_equal(rig_device(r, "b")->disturbed.n, 1);
	assert_string_equal(rig_device(r, "b")->disturbed.who, "unknown");
	assert_true(rig_device(r, "b")->disturbed.since_ns > 0);
	assert_true(apply_is_disturbed(rig_device(r, "b"), now));
	assert_false(apply_is_disturbed(rig_device(r, "b"), clk_boot_ns() + APPLY_DISTURBED_NS));
	assert_false(apply_is_disturbed(rig_device(r, "a"), now));
}

static void take_port(struct rig *r)
{
	rig_meddle_later(r, "a", DRV_ADD, 7, 2);
}

/* Another takes a port that undo needs: it is not taken away from him. */
static void test_external_in_the_way_of_undo(void **state)
{
	struct rig *r = *state;

	rig_begin(r, ", refuse: o7");
	r->cue = "delete a";
	r->on_cue = take_port;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_STUCK);
	assert_says(r->err.msg, "a in 2 -> out 3 is not there again");
	assert_says(buf_cstr(&r->events), "in 8 -> out 3 is in the way");
	assert_null(strstr(r->err.msg, "; "));	/* and nothing else */
	rig_read(r);
	assert_true(rig_has(r, "a", 7, 2) && !rig_has(r, "a", 1, 4));
	assert_true(rig_has(r, "b", 5, 6));
}

static void lose_restored_circuit(struct rig *r)
{
	rig_meddle_later(r, "b", DRV_DEL, 5, 6);
}

/* A device may say yes, show the circuit, and forget it: one reading after
 * undo is not enough. */
static void test_undo_is_read_twice(void **state)
{
	struct rig *r = *state;

	rig_begin(r, ", refuse: o7");
	rig_wrap_b(r);
	/* Two checks, before undo, after undo. */
	rig_b.hook_at = 4;
	rig_b.hook = lose_restored_circuit;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_int_equal(rig_b.hook_at, 0);
	assert_first(r);
}

/* The same for what was made. */
static void test_light_is_read_twice(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", "");
	rig_wrap_b(r);
	/* Two checks, then the first reading after the adds. */
	rig_b.hook_at = 3;
	rig_b.hook = lose_restored_circuit;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_EVERIFY);
	assert_says(r->err.msg, "b: in 6 -> out 7 was to be made");
	rig_read(r);
	assert_int_equal(rig_device(r, "b")->snap.n_xcs, 0);
}

static void make_planned_circuit(struct rig *r)
{
	rig_meddle_later(r, "b", DRV_ADD, 3, 3);
}

/* What the change meant to make but never sent is not its to take back. */
static void test_external_is_not_undone(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { rig_second[0], { "b", 5, { { 0, 0 }, { 1, 1 },
		{ 2, 2 }, { 3, 3 }, { 5, 6 } }, NULL } };

	rig_begin(r, ", refuse: o2");
	r->cue = "delete b";
	r->on_cue = make_planned_circuit;
	assert_int_equal(rig_go(r, PLAN_SAFE, w, 2), APPLY_ROLLED_BACK);
	rig_read(r);
	assert_true(rig_has(r, "b", 3, 3));
	assert_true(rig_has(r, "b", 6, 5) && !rig_has(r, "b", 1, 1));
}

static void lose_external(struct rig *r)
{
	rig_meddle_later(r, "a", DRV_DEL, 7, 7);
}

static void test_neighbour_goes_away(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", "");
	rig_meddle(r, "a", DRV_ADD, 7, 7);
	rig_read(r);
	r->cue = "add a";
	r->on_cue = lose_external;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "in 8 -> out 8, not part of this "
		    "change, went away");
}

static void test_unreachable(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_two_switches(r, "", ", unavailable: 100");
	assert_int_equal(r->rc, WEFT_EUNAVAIL);
	assert_false(rig_device(r, "b")->reachable);
	assert_true(rig_device(r, "b")->ever_read);
	assert_int_equal(rig_device(r, "b")->level, APPLY_UNVERIFIED);
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_REFUSED);
	assert_int_equal(r->rc, WEFT_EUNAVAIL);
	assert_says(r->err.msg, "b: ");
	assert_int_equal(r->n_commands, 0);
}

/* The device stops answering in the middle and stays away. */
static void test_lost_for_good(void **state)
{
	struct rig *r = *state;

	rig_begin(r, ", refuse: o7");
	rig_wrap_b(r);
	r->cue = "delete b";
	r->on_cue = rig_kill_b;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_STUCK);
	assert_says(r->err.msg, "b in 6 -> out 7 is unknown");
	assert_false(rig_device(r, "b")->reachable);
	rig_b.dead = false;
	assert_int_equal(r->res.generation, 3);
	rig_read(r);
	/* Only what was sent is explained by the change. */
	assert_int_equal(rig_device(r, "b")->n_pending, 1);
	assert_true(rig_has(r, "a", 1, 2));
}

/* Light that still moves is waited for. */
static void test_tuning(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", "");
	rig_wrap_b(r);
	rig_b.tuning = 4;	/* the check twice, read back, read again */
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_int_equal(rig_b.tuning, 0);
	assert_int_equal(r->res.level, APPLY_SETTLED);
	rig_b.tuning = 1000;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_EVERIFY);
	assert_says(r->err.msg, "is still tuning");
}

/* Small batches, one after the other; also for undo. */
static void test_small_batches(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { rig_first[0], { "b", 5, { { 0, 0 }, { 1, 1 },
		{ 2, 2 }, { 3, 3 }, { 5, 6 } }, NULL } };

	rig_two_switches(r, "", ", refuse: o3");
	rig_wrap_b(r);
	rig_b.max_batch = 2;
	rig_read(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "add b 2 circuits made\n"
		    "add b 1 circuit made");
	assert_int_equal(rig_go(r, PLAN_SAFE, w, 2), APPLY_ROLLED_BACK);
	assert_first(r);
}

static void test_measured(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", "");
	rig_wrap_b(r);
	rig_b.measures = true;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_int_equal(r->res.level, APPLY_SETTLED);	/* a did not */
	assert_int_equal(rig_device(r, "b")->level, APPLY_MEASURED);
	assert_int_equal(rig_device(r, "a")->level, APPLY_SETTLED);
}

/* Ports that carry both directions: 2 and 5 are one circuit's two ends. */
static void test_any_to_any(void **state)
{
	struct rig *r = *state;
	const struct want w = { "a", 2, { { 1, 4 }, { 2, 3 } }, NULL };
	const struct want v = { "a", 2, { { 0, 1 }, { 2, 3 } }, NULL };
	struct model_fabric *f;
	struct plan *p;

	rig_fabric(r);
	buf_printf(&r->yaml, "  - { name: a, ports: 8, any-to-any: true, "
		   "driver: sim }\n");
	rig_use(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, &w, 1), APPLY_COMMITTED);
	assert_int_equal(rig_go(r, PLAN_SAFE, &v, 1), APPLY_COMMITTED);
	rig_read(r);
	assert_true(rig_has(r, "a", 0, 1) && !rig_has(r, "a", 1, 4));
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, &w, 1);
	rig_meddle(r, "a", DRV_ADD, 4, 7);	/* 5, as the other end */
	rig_start(r, p, f);
	rig_run(r);
	assert_int_equal(r->res.verdict, APPLY_REFUSED);
	assert_says(r->err.msg, "in 5 -> out 8 is there, in the way of in 2 "
		    "-> out 5");
}

static void test_failed_port(void **state)
{
	struct rig *r = *state;

	rig_two_switches(r, "", ", fail_port: o6");
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_REFUSED);
	assert_int_equal(r->rc, WEFT_EDEVICE);
	assert_says(r->err.msg, "b: in 6 -> out 7 cannot be made: port out 7 "
		    "is failed");
	assert_int_equal(r->n_commands, 0);
}

static void cancel(struct rig *r)
{
	apply_cancel(r->apply);
}

/* Stopped at every event: the light is as before, or all is done. */
static void test_cancel(void **state)
{
	static const char *const cues[] = {
		"prepare", "delete a", "add a", "read again a", "delete b",
		"add b", "read again b", "commit",
	};

	for (size_t i = 0; i < sizeof(cues) / sizeof(cues[0]); i++) {
		struct rig *r = *state;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		r->cue = cues[i];
		r->on_cue = cancel;
		rig_go(r, PLAN_SAFE, rig_second, 2);
		assert_null(r->on_cue);
		if (i == 0) {
			assert_int_equal(r->res.verdict, APPLY_REFUSED);
		} else if (i + 1 < sizeof(cues) / sizeof(cues[0])) {
			assert_int_equal(r->res.verdict, APPLY_ROLLED_BACK);
		} else {
			/* Too late: it is on record. */
			assert_int_equal(r->res.verdict, APPLY_COMMITTED);
			continue;
		}
		assert_int_equal(r->rc, WEFT_ECANCELED);
		assert_first(r);
	}
}

/* A restart that keeps the map is told, and does no harm. */
static void test_restart_kept(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_two_switches(r, ", restart: 3, restart_map: kept", "");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "a restarted during the change");
}

static void test_restart_dark(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	/* Reading, check, then the one command: dark after it. */
	rig_two_switches(r, ", restart: 3, restart_map: dark", "");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_says(r->err.msg, "a restarted during the change");
	assert_first(r);
}

/* checklist 9: the second domain is looked at again before it is touched. */
static void test_restart_between_checks(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_two_switches(r, "", ", restart: 2, restart_map: dark");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_ESTALE);
	assert_says(r->err.msg, "b: ");
	rig_read(r);
	assert_true(rig_has(r, "a", 1, 2) && !rig_has(r, "a", 1, 4));
	assert_int_equal(rig_device(r, "b")->n_missing, 3);
	assert_int_equal(rig_device(r, "b")->level, APPLY_UNVERIFIED);
}

static void block_b(struct rig *r)
{
	(void)r;
	rig_b.blocked = true;
}

/* A delete that was cut short left the circuit in the list, but dark: it is
 * made again. */
static void test_half_deleted(void **state)
{
	struct rig *r = *state;

	rig_begin(r, ", drop: 4");
	rig_wrap_b(r);
	r->cue = "taking back";
	r->on_cue = block_b;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_says(r->err.msg, "b: in 6 -> out 7: delete unknown");
	assert_false(rig_b.blocked);
	assert_first(r);
}

/* What is intended and listed without light is missing, and the next apply of
 * the same brings it to light. */
static void test_blocked_is_made_again(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_wrap_b(r);
	rig_b.blocked = true;
	rig_read(r);
	assert_int_equal(rig_device(r, "b")->n_missing, 1);
	assert_int_equal(rig_device(r, "b")->n_unexpected, 0);
	assert_int_equal(rig_device(r, "b")->level, APPLY_UNVERIFIED);
	assert_string_equal(rig_device(r, "b")->problem, "in 6 -> out 7 is "
			    "listed, but blocked: it has no light");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "committed: 1 made on 1 device");
	assert_false(rig_b.blocked);
	assert_first(r);
	assert_string_equal(rig_device(r, "b")->problem, "");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_NOTHING_TO_DO);
}

/* All circuits of a move on, around in a circle; two of b. */
static const struct want third[] = {
	{ "a", 3, { { 0, 2 }, { 1, 3 }, { 2, 1 } }, NULL },
	{ "b", 3, { { 0, 0 }, { 5, 7 }, { 6, 4 } }, NULL },
};

static int position(struct rig *r, const char *words)
{
	const char *at = strstr(buf_cstr(&r->events), words);

	if (!at) {
		fail_msg("\"%s\" is not in \"%s\"", words,
			 buf_cstr(&r->events));
	}
	return (int)(at - buf_cstr(&r->events));
}

static void begin_another(struct rig *r)
{
	struct model_fabric *f = rig_parse(r);
	struct plan *p = rig_plan(r, f, PLAN_SAFE, rig_first, 2);
	struct err err = { 0 };

	assert_int_equal(apply_start(r->apply, p, f,
				     &(struct apply_request){ .order.who = "bob" },
				     NULL, rig_on_done, r, &err), WEFT_ESTALE);
	assert_says(err.msg, "another change is under way");
}

/* checklist 9: a domain is proven before the next one is touched, and no
 * other comes between. */
static void test_one_domain_at_a_time(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	r->cue = "add a";
	r->on_cue = begin_another;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_COMMITTED);
	assert_true(position(r, "delete a") < position(r, "add a"));
	assert_true(position(r, "add a") < position(r, "read again a"));
	assert_true(position(r, "read again a") < position(r, "delete b"));
	assert_true(position(r, "delete b") < position(r, "add b"));
}

/* checklist 10: each stage is verified before the next one begins. */
static void test_stages(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	r->in_stages = true;
	assert_int_equal(rig_go(r, PLAN_SAFE, third, 2), APPLY_COMMITTED);
	for (int s = 1; s < 5; s++) {
		char now[32], next[32];

		snprintf(now, sizeof(now), "stage %d of 5", s);
		snprintf(next, sizeof(next), "stage %d of 5", s + 1);
		assert_true(position(r, now) < position(r, next));
		assert_non_null(strstr(buf_cstr(&r->events) + position(r, now),
				       "read back twice"));
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < third[k].n; i++) {
			assert_true(rig_has(r, third[k].device,
					    third[k].xcs[i].in,
					    third[k].xcs[i].out));
		}
		assert_int_equal(rig_device(r, third[k].device)->n_missing, 0);
		assert_int_equal(rig_device(r, third[k].device)->level,
				 APPLY_SETTLED);
	}
}

/* The last of five stages fails: all go back, the last one first, so that no
 * more light is missing at a time than on the way forth. */
static void test_stages_undone(void **state)
{
	struct rig *r = *state;
	const char *undo;

	rig_begin(r, ", refuse: o4");
	r->in_stages = true;
	assert_int_equal(rig_go(r, PLAN_SAFE, third, 2), APPLY_ROLLED_BACK);
	assert_says(r->err.msg, "b: in 7 -> out 5");
	undo = strstr(buf_cstr(&r->events), "undo  taking back");
	assert_non_null(undo);
	for (int s = 0; s < 5; s++) {
		undo = strstr(undo + 1, s < 2 ? "undo b b is as before" :
						"undo a a is as before");
		assert_non_null(undo);
	}
	assert_null(strstr(undo + 1, "undo b b is as before"));
	assert_first(r);
	assert_history(r, STORE_ROLLED_BACK);
}

/* A map that is lost between stages comes back whole: also what a later
 * stage was still to delete. */
static void test_stages_and_a_lost_map(void **state)
{
	static const int at[] = { 4, 5, 6, 7, 8 };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct rig *r = *state;
		char options[48];

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_begin(r, "");
		rig_fabric(r);
		snprintf(options, sizeof(options),
			 ", restart: %d, restart_map: dark", at[i]);
		rig_switch(r, "a", "east", options);
		rig_switch(r, "b", "west", "");
		rig_use(r);
		r->in_stages = true;
		assert_int_equal(rig_go(r, PLAN_SAFE, third, 2),
				 APPLY_ROLLED_BACK);
		assert_first(r);
	}
}

static void two_with(struct rig *r, const char *options_b,
		     const char *changes)
{
	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	rig_switch(r, "b", "west", options_b);
	buf_printf(&r->yaml, "changes: { %s }\n", changes);
	rig_use(r);
}

static void assert_repair(struct rig *r, int in, int out, const char *why)
{
	struct store_repair *v;
	int n;

	assert_int_equal(store_repairs(r->store, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(v[0].device, "b");
	assert_int_equal(v[0].xc.in, in);
	assert_int_equal(v[0].xc.out, out);
	assert_int_equal(v[0].change, r->res.change);
	assert_says(v[0].why, why);
	store_repairs_free(v, n);
}

/* checklist 11: one of two new circuits fails, and half are enough: the change goes on, and
 * the next one repairs it. */
static void test_gate(void **state)
{
	static const struct {
		const char *options, *why;
		int in, out;
	} cases[] = {
		{ ", refuse: o4", "refused", 6, 4 },
		{ ", refuse: o7", "refused", 5, 7 },
		{ ", lie: o4", "was to be made", 6, 4 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *r = *state;
		struct store_repair *v;
		int n;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		two_with(r, cases[i].options, "gate: 50%");
		rig_go(r, PLAN_SAFE, rig_first, 2);
		assert_int_equal(rig_go(r, PLAN_SAFE, third, 2),
				 APPLY_COMMITTED);
		assert_says(buf_cstr(&r->events), "left to be repaired: b: ");
		assert_says(buf_cstr(&r->events), "1 of them to be repaired");
		assert_int_equal(r->res.level, APPLY_UNVERIFIED);
		assert_repair(r, cases[i].in, cases[i].out, cases[i].why);
		rig_read(r);
		assert_int_equal(rig_device(r, "b")->n_missing, 1);
		assert_int_equal(rig_device(r, "b")->n_unexpected, 0);
		assert_int_equal(rig_device(r, "b")->snap.n_xcs, 2);
		two_with(r, "", "gate: 50%");
		assert_int_equal(rig_go(r, PLAN_SAFE, third, 2),
				 APPLY_COMMITTED);
		assert_int_equal(rig_device(r, "b")->n_missing, 0);
		assert_int_equal(store_repairs(r->store, &v, &n, NULL), 0);
		assert_int_equal(n, 0);
		store_repairs_free(v, n);
	}
}

/* checklist 11: a circuit too much is missing: the default is nine of ten. */
static void test_gate_closed(void **state)
{
	static const char *const gates[] = { "gate: 51%", "keep: 0%" };

	for (int i = 0; i < 2; i++) {
		struct rig *r = *state;

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		two_with(r, i ? ", lie: o4" : ", refuse: o4", gates[i]);
		rig_go(r, PLAN_SAFE, rig_first, 2);
		assert_int_equal(rig_go(r, PLAN_SAFE, third, 2),
				 APPLY_ROLLED_BACK);
		assert_says(r->err.msg, "b: in 7 -> out 5");
		assert_first(r);
	}
}

/* Somebody else on the port is no gap in the map. */
static void test_gate_and_a_stranger(void **state)
{
	struct rig *r = *state;

	two_with(r, "", "gate: 0%");
	rig_go(r, PLAN_SAFE, rig_first, 2);
	rig_wrap_b(r);
	rig_b.hook_at = 3;
	rig_b.hook = lose_kept_circuit;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_second, 2), APPLY_ROLLED_BACK);
	assert_says(r->err.msg, "b: in 7 -> out 6 was to be kept");
}

/* Under the gate the light is left for an operator to look at. */
static void test_gate_stops(void **state)
{
	struct rig *r = *state;

	two_with(r, ", refuse: o4", "below-gate: stop");
	rig_go(r, PLAN_SAFE, rig_first, 2);
	assert_int_equal(rig_go(r, PLAN_SAFE, third, 2), APPLY_STUCK);
	assert_says(r->err.msg, "stopped under the gate of 90%: b: in 7");
	assert_null(strstr(buf_cstr(&r->events), "undo"));
	assert_history(r, STORE_STUCK);
	rig_read(r);
	assert_true(rig_has(r, "a", 0, 2) && rig_has(r, "b", 5, 7));
	assert_false(rig_has(r, "b", 5, 6));
	for (int i = 0; i < 2; i++) {
		const struct apply_device *d = rig_device(r, i ? "a" : "b");

		assert_int_equal(d->n_missing + d->n_unexpected, 0);
		assert_true(d->n_pending > 0);
	}
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_first(r);
}

/* An external circuit is taken over in UPDATE mode, and given back by undo. */
static void test_steal(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { { "a", 1, { { 3, 3 } }, NULL },
				  { "b", 1, { { 0, 7 } }, NULL } };

	rig_two_switches(r, "", ", lie: o7");
	rig_meddle(r, "a", DRV_ADD, 3, 5);
	rig_meddle(r, "a", DRV_ADD, 6, 6);
	rig_read(r);
	assert_int_equal(rig_go(r, PLAN_UPDATE, w, 2), APPLY_ROLLED_BACK);
	rig_read(r);
	assert_true(rig_has(r, "a", 3, 5) && rig_has(r, "a", 6, 6));
	assert_int_equal(rig_go(r, PLAN_UPDATE, w, 1), APPLY_COMMITTED);
	rig_read(r);
	assert_true(rig_has(r, "a", 3, 3) && rig_has(r, "a", 6, 6));
	assert_false(rig_has(r, "a", 3, 5));
	assert_int_equal(rig_device(r, "a")->n_unexpected, 1);
}

/* One command for the whole map, but never over external or kept light. */
static void test_replace(void **state)
{
	struct rig *r = *state;
	const struct want w = { "a", 3, { { 0, 2 }, { 1, 1 }, { 2, 4 } },
				NULL };

	rig_begin(r, "");
	rig_go(r, PLAN_SAFE, rig_second, 2);
	assert_null(strstr(buf_cstr(&r->events), "set at once"));
	rig_go(r, PLAN_SAFE, rig_first, 2);
	rig_go(r, PLAN_SAFE, &w, 1);
	assert_says(buf_cstr(&r->events), "map of 3 circuits set at once");
	rig_go(r, PLAN_SAFE, rig_first, 1);
	rig_meddle(r, "a", DRV_ADD, 7, 7);
	rig_read(r);
	rig_go(r, PLAN_SAFE, &w, 1);
	assert_int_equal(r->res.verdict, APPLY_COMMITTED);
	assert_null(strstr(buf_cstr(&r->events), "set at once"));
	assert_true(rig_has(r, "a", 7, 7));
}

/* The one command fails half way: everything of the map comes back. */
static void test_replace_undone(void **state)
{
	static const char *const options[] = {
		", refuse: o7", ", lie: o7", ", drop: 5", ", hang: 5",
	};

	for (int i = 0; i < 4; i++) {
		struct rig *r = *state;
		const struct want w[] = { rig_first[0], { "b", 3, { { 0, 7 },
			{ 5, 0 }, { 6, 3 } }, NULL } };

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		rig_two_switches(r, "", options[i]);
		rig_go(r, PLAN_SAFE, rig_first, 2);
		assert_int_equal(rig_go(r, PLAN_SAFE, w, 2),
				 APPLY_ROLLED_BACK);
		assert_null(strstr(buf_cstr(&r->events), "delete b"));
		assert_first(r);
	}
}

static void test_stale_plan(void **state)
{
	struct rig *r = *state;
	struct model_fabric *f, *g;
	struct plan *p, *q;
	struct err err = { 0 };

	rig_two_switches(r, "", "");
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, rig_second, 2);
	rig_go(r, PLAN_SAFE, rig_first, 2);
	assert_int_equal(apply_start(r->apply, p, f,
					 &(struct apply_request){ .order.who = "bob" }, NULL,
				     rig_on_done, r, &err), WEFT_ESTALE);
	assert_says(err.msg, "generation 1");
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, rig_second, 2);
	g = rig_parse(r);
	q = rig_plan(r, g, PLAN_SAFE, rig_second, 2);
	rig_start(r, p, f);
	assert_int_equal(apply_start(r->apply, q, g,
					 &(struct apply_request){ .order.who = "bob" }, NULL,
				     rig_on_done, r, &err), WEFT_ESTALE);
	assert_true(apply_busy(r->apply));
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), &err),
			 WEFT_ESTALE);
	rig_run(r);
	assert_false(apply_busy(r->apply));
	assert_int_equal(r->res.verdict, APPLY_COMMITTED);
}

static void test_bad_fabric(void **state)
{
	struct rig *r = *state;
	struct err err = { 0 };

	rig_two_switches(r, "", "");
	rig_fabric(r);
	rig_switch(r, "a", "east", ", nonsense: 1");
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), &err),
			 WEFT_EINVAL);
	assert_says(err.msg, "nonsense");
	assert_string_equal(err.file, "fabric.yaml");
	assert_true(err.line > 0);
	assert_int_equal(apply_fabric(r->apply)->n_devices, 2);
	err_clear(&err);
	buf_reset(&r->yaml);
	buf_str(&r->yaml, "weft: 1\nfabric: t\nhosts:\n"
		"  - { name: n, ports: p0, rate: 1Gbps }\nswitches:\n"
		"  - { name: a, size: 8x8, driver: none }\n"
		"fibres:\n  - { from: n.p0, to: a.1 }\n");
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), &err),
			 WEFT_EINVAL);
	assert_says(err.msg, "none");
	assert_int_equal(err.line, 6);
}

static void test_device_leaves(void **state)
{
	struct rig *r = *state;

	rig_begin(r, "");
	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 1), APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "b is no longer in the");
	assert_int_equal(apply_fabric(r->apply)->n_devices, 1);
}

static void test_audit(void **state)
{
	struct rig *r = *state;
	const struct store_audit_query q = { .change = 1, .limit = 1000 };
	struct store_audit *v;
	struct err err = { 0 };
	bool command = false, event = false;
	int n;

	rig_begin(r, "");
	assert_int_equal(store_audit_read(r->store, &q, &v, &n, &err), 0);
	for (int i = 0; i < n; i++) {
		command |= v[i].kind == STORE_COMMAND &&
			   strcmp(v[i].device, "a") == 0 &&
			   strstr(v[i].text, "add 0-1") != NULL;
		event |= v[i].kind == STORE_EVENT &&
			 strstr(v[i].text, "committed") != NULL;
	}
	assert_true(command);
	assert_true(event);
	store_audit_free(v, n);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_commit), T(test_nothing_to_do), T(test_adopt),
		T(test_silent_refusal), T(test_stuck), T(test_refused_item),
		T(test_lost_sessions), T(test_external_before),
		T(test_external_during), T(test_external_in_the_way_of_undo),
		T(test_undo_is_read_twice), T(test_light_is_read_twice),
		T(test_external_is_not_undone), T(test_neighbour_goes_away),
		T(test_unreachable),
		T(test_lost_for_good), T(test_tuning), T(test_small_batches),
		T(test_measured), T(test_any_to_any), T(test_failed_port),
		T(test_cancel), T(test_half_deleted),
		T(test_blocked_is_made_again),
		T(test_one_domain_at_a_time), T(test_stages), T(test_stages_undone),
		T(test_stages_and_a_lost_map), T(test_gate),
		T(test_gate_closed), T(test_gate_and_a_stranger),
		T(test_gate_stops),
		T(test_restart_kept), T(test_restart_dark),
		T(test_restart_between_checks), T(test_steal),
		T(test_replace), T(test_replace_undone), T(test_stale_plan),
		T(test_bad_fabric),
		T(test_device_leaves), T(test_audit),
	};

	return cmocka_run_group_tests_name("apply/change", tests, NULL, NULL);
}
