/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of which several engines, each with a store of its own, carry out parts: each sends
 * commands to the devices of its own failure domains only, waits before its stages and before the
 * commit, and after a kill at any moment ends as it is told to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/log.h"
#include "moments.h"
#include "rig.h"

/* ---- engines that lead parts ---------------------------------------------- */

static const char *const east[] = { "east" }, *const west[] = { "west" };

static void no_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg)
{
	(void)cb;
	(void)arg;
	fail_msg("%s is read", dev->name);
}

static void no_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg)
{
	(void)batch;
	(void)cb;
	(void)arg;
	fail_msg("%s is sent something", dev->name);
}

/* From now on whatever is asked of a device elsewhere fails the test. */
static void guard_elsewhere(struct rig *r)
{
	static struct drv_class guard;

	guard = *drv_find("sim");
	guard.snapshot = no_snapshot;
	guard.submit = no_submit;
	for (struct device *d = r->apply->devices; d; d = d->next) {
		if (d->now.elsewhere) {
			d->drv->cls = &guard;
		}
	}
}

/* The engine of the rig's folder, over the devices of its YAML, which it has not read. */
static void up(struct rig *r, const char *const *domain)
{
	struct err err = { 0 };

	rig_up(r);
	apply_lead_domains(r->apply, domain, 1);
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), &err), 0);
	guard_elsewhere(r);
}

/* Switches a and c are of one domain, b and d of the other. */
static void four_switches(struct rig *r)
{
	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	rig_switch(r, "b", "west", "");
	rig_switch(r, "c", "east", "");
	rig_switch(r, "d", "west", "");
}

static void two_switches(struct rig *r)
{
	rig_fabric(r);
	rig_switch(r, "a", "east", "");
	rig_switch(r, "b", "west", "");
}

static void go_on_at_once(int stage, void *arg)
{
	struct rig *r = arg;

	r->at = stage;
	apply_go_on(r->apply);
}

static void note_stage(int stage, void *arg)
{
	((struct rig *)arg)->at = stage;
}

/* Runs until it waits again, or has ended. */
static void run_to_wait(struct rig *r)
{
	r->at = -1;
	while (r->at < 0 && !r->answered && uv_run(&r->loop, UV_RUN_ONCE)) {
	}
	assert_true(r->at >= 0 || r->answered);
}

static void go_on(struct rig *r)
{
	apply_go_on(r->apply);
	run_to_wait(r);
}

/* Plans for wants and runs to the first wait. */
static void start(struct rig *r, const struct want *wants, int n)
{
	struct model_fabric *f = rig_parse(r);

	r->ready = note_stage;
	rig_start(r, rig_plan(r, f, PLAN_SAFE, wants, n), f);
	run_to_wait(r);
}

static void assert_intent(struct rig *r, const struct want *w)
{
	struct store_light l;
	struct err err = { 0 };

	assert_int_equal(store_intent(r->store, w->device, &l, &err), 0);
	assert_int_equal(l.n_xcs, w->n);
	for (int i = 0; i < w->n; i++) {
		assert_int_equal(optics_xc_cmp(&l.xcs[i], &w->xcs[i]), 0);
	}
	store_light_fini(&l);
}

/* By a fresh reading. */
static void assert_holds(struct rig *r, const struct want *w)
{
	const struct apply_device *d;

	rig_read(r);
	d = rig_device(r, w->device);
	assert_int_equal(d->snap.n_xcs, w->n);
	for (int i = 0; i < w->n; i++) {
		assert_true(rig_has(r, w->device, w->xcs[i].in, w->xcs[i].out));
	}
}

static void assert_untouched(const struct rig *r, const char *device)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s.map", r->dir, device);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* One engine that leads a of two switches; what was to be made is in its store. */
static void begin_east(struct rig *r)
{
	two_switches(r);
	up(r, east);
	rig_read(r);
	r->ready = go_on_at_once;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_holds(r, &rig_first[0]);
	assert_untouched(r, "b");
}

static int setup(void **state)
{
	struct rig *r = calloc(2, sizeof(*r));

	fault_clear();
	rig_init(&r[0]);
	rig_init(&r[1]);
	r[1].maps = r[0].dir;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	fault_clear();
	rig_fini(&r[1]);
	rig_fini(&r[0]);
	free(r);
	return 0;
}

/* ---- devices elsewhere ---------------------------------------------------- */

static int count_batch(const struct dry_run_batch *b, void *arg, struct err *err)
{
	(void)b;
	(void)err;
	++*(int *)arg;
	return 0;
}

static void test_elsewhere(void **state)
{
	static const struct apply_maintenance disable = { .port = { .index = 1 } };
	struct rig *r = *state;
	const struct apply_device *b;
	struct model_fabric *f;
	struct plan *p;
	struct err err = { 0 };
	int n = 0;

	begin_east(r);
	assert_int_equal(r->rc, 0);
	b = rig_device(r, "b");
	assert_true(b->elsewhere && !b->reachable && !b->ever_read && !apply_is_read(b));
	assert_string_equal(b->problem, "another weftd leads it (domain west)");
	assert_int_equal(b->n_missing + b->n_unexpected + b->n_pending, 0);
	assert_false(rig_device(r, "a")->elsewhere);
	assert_intent(r, &rig_first[1]);
	assert_int_equal(apply_maintenance_check(r->apply, "b", &disable, &err), WEFT_EUNAVAIL);
	assert_string_equal(err.msg, "b: another weftd leads it (domain west)");
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, rig_second, 2);
	assert_int_equal(p->n_add + p->n_del, 4);	/* it is taken to hold what is intended */
	assert_int_equal(apply_explain(r->apply, p, count_batch, &n, &err), 0);
	assert_true(n > 0);
	plan_free(p);
	model_free(f);
}

/* The same device, led here in one fabric and elsewhere in the next. */
static void test_moves_between_domains(void **state)
{
	struct rig *r = *state;

	begin_east(r);
	rig_fabric(r);
	rig_switch(r, "a", "west", "");
	rig_switch(r, "b", "east", "");
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), NULL), 0);
	guard_elsewhere(r);
	rig_read(r);
	assert_true(rig_device(r, "a")->elsewhere && !rig_device(r, "a")->ever_read);
	assert_true(!rig_device(r, "b")->elsewhere && rig_device(r, "b")->reachable);
	assert_int_equal(rig_device(r, "b")->n_missing, 3);
}

/* Nothing of it is to be done here, but it is journalled, waits and is committed. */
static void test_steps_only_elsewhere(void **state)
{
	static const struct want wants[] = {
		{ "a", 3, { { 0, 1 }, { 1, 2 }, { 2, 3 } }, NULL },
		{ "b", 1, { { 3, 3 } }, NULL },
	};
	struct rig *r = *state;

	begin_east(r);
	rig_watch(r);
	start(r, wants, 2);
	assert_int_equal(r->at, 1);
	assert_int_not_equal(apply_running(r->apply), 0);
	go_on(r);
	assert_int_equal(r->res.verdict, APPLY_COMMITTED);
	assert_says(buf_cstr(&r->events), "committed: 3 deleted, 1 made on 1 device");
	assert_int_equal(r->n_lines, 0);
	assert_intent(r, &wants[1]);
	/* The same again is nothing for anyone. */
	start(r, wants, 2);
	assert_int_equal(r->at, -1);
	assert_int_equal(r->res.verdict, APPLY_NOTHING_TO_DO);
}

/* ---- several engines ------------------------------------------------------ */

struct order {
	struct buf text;	/* devices in the order of their commands */
	const char *last;
};

static void note_command(const char *device, const char *line, bool is_reply, void *arg)
{
	struct order *o = arg;

	if (!is_reply && strcmp(line, "map?") != 0 && (!o->last || strcmp(o->last, device))) {
		buf_printf(&o->text, "%s ", device);
		o->last = device;
	}
}

static void watch_order(struct rig *r, struct order *o)
{
	for (struct device *d = r->apply->devices; d; d = d->next) {
		drv_set_trace(d->drv, note_command, o);
	}
}

/* Each begins a stage once the other waits for it or a later one. */
static void coordinate(struct rig r[2])
{
	int reached[2] = { -1, -1 };

	while (!r[0].answered || !r[1].answered) {
		for (int i = 0; i < 2; i++) {
			uv_run(&r[i].loop, UV_RUN_NOWAIT);
			if (r[i].at >= 0) {
				assert_true(r[i].at > reached[i]);
				reached[i] = r[i].at;
				r[i].at = -1;
			}
		}
		for (int i = 0; i < 2; i++) {
			if (!r[i].answered && reached[1 - i] >= reached[i]) {
				apply_go_on(r[i].apply);
			}
		}
	}
}

static const struct want four_first[] = {
	{ "a", 2, { { 0, 1 }, { 1, 2 } }, NULL }, { "b", 2, { { 0, 1 }, { 1, 2 } }, NULL },
	{ "c", 2, { { 0, 1 }, { 1, 2 } }, NULL }, { "d", 2, { { 0, 1 }, { 1, 2 } }, NULL },
};
static const struct want four_second[] = {
	{ "a", 2, { { 0, 1 }, { 1, 3 } }, NULL }, { "b", 2, { { 0, 4 }, { 1, 2 } }, NULL },
	{ "c", 2, { { 0, 1 }, { 1, 5 } }, NULL }, { "d", 2, { { 0, 6 }, { 1, 2 } }, NULL },
};

static void begin_two(struct rig r[2])
{
	for (int i = 0; i < 2; i++) {
		four_switches(&r[i]);
		up(&r[i], i ? west : east);
		rig_read(&r[i]);
	}
}

static void carry_out(struct rig r[2], const struct want wants[4])
{
	for (int i = 0; i < 2; i++) {
		start(&r[i], wants, 4);
	}
	coordinate(r);
}

static void test_two_engines(void **state)
{
	struct rig *r = *state;
	struct order o = { 0 };

	begin_two(r);
	for (int again = 0; again < 2; again++) {
		const struct want *wants = again ? four_second : four_first;

		watch_order(&r[0], &o);
		watch_order(&r[1], &o);
		carry_out(r, wants);
		assert_string_equal(buf_cstr(&o.text), "a b c d ");
		buf_reset(&o.text);
		o.last = NULL;
		for (int i = 0; i < 2; i++) {
			assert_int_equal(r[i].res.verdict, APPLY_COMMITTED);
			assert_int_equal(r[i].res.level, APPLY_SETTLED);
			assert_says(buf_cstr(&r[i].events), "on 4 devices");
			for (int k = 0; k < 4; k++) {
				assert_intent(&r[i], &wants[k]);
			}
			assert_holds(&r[i], &wants[i]);
			assert_holds(&r[i], &wants[i + 2]);
		}
		assert_int_equal(r[0].res.generation, r[1].res.generation);
	}
	assert_says(buf_cstr(&r[1].events),
		    "wait  waits for the others, then stage 2 of 4 (domain west)");
	assert_says(buf_cstr(&r[1].events), "wait  waits for the others, then commits");
	buf_fini(&o.text);
}

/* ---- taking back ---------------------------------------------------------- */

static void take_back(struct rig *r)
{
	struct err err = { 0 };

	apply_take_back(r->apply, err_set(&err, WEFT_EDEVICE, "d: no answer"), &err);
	run_to_wait(r);
}

/* While it waits for its first stage, for its second, and for the commit. */
static void test_taken_back_while_waiting(void **state)
{
	static const int stages[] = { 0, 2, 4 };
	struct rig *r = *state;

	begin_two(r);
	carry_out(r, four_first);
	for (int i = 0; i < 3; i++) {
		rig_watch(r);
		start(r, four_second, 4);
		for (int k = 0; k < i; k++) {
			go_on(r);
		}
		assert_int_equal(r->at, stages[i]);
		take_back(r);
		assert_true(r->answered);
		assert_int_equal(r->rc, WEFT_EDEVICE);
		assert_string_equal(r->err.msg, "d: no answer");
		assert_int_equal(r->res.verdict, i ? APPLY_ROLLED_BACK : APPLY_REFUSED);
		assert_int_equal(r->n_commands > 0, i > 0);
		assert_holds(r, &four_first[0]);
		assert_holds(r, &four_first[2]);
		assert_intent(r, &four_first[0]);
	}
}

/* Between two commands of a stage, and before anything. */
static void test_taken_back_in_the_middle(void **state)
{
	struct rig *r = *state;
	struct model_fabric *f;

	begin_two(r);
	carry_out(r, four_first);
	start(r, four_second, 4);
	apply_go_on(r->apply);
	while (!strstr(buf_cstr(&r->events), "delete a")) {
		uv_run(&r->loop, UV_RUN_ONCE);
	}
	take_back(r);
	assert_int_equal(r->res.verdict, APPLY_ROLLED_BACK);
	assert_int_equal(r->rc, WEFT_EDEVICE);
	assert_holds(r, &four_first[0]);
	f = rig_parse(r);
	rig_start(r, rig_plan(r, f, PLAN_SAFE, four_second, 4), f);
	take_back(r);
	assert_int_equal(r->res.verdict, APPLY_REFUSED);
	assert_int_equal(r->res.change, 0);
}

/* What others did to the device meanwhile is noticed before the stage begins. */
static void test_changed_while_waiting(void **state)
{
	struct rig *r = *state;

	begin_east(r);
	start(r, rig_second, 2);
	rig_meddle(r, "a", DRV_DEL, 1, 2);
	r->answered = false;
	rig_watch(r);
	go_on(r);
	assert_int_equal(r->rc, WEFT_ESTALE);
	assert_int_equal(r->res.verdict, APPLY_REFUSED);
	assert_int_equal(r->n_commands, 0);
}

/* Nothing holds up a commit that was decided; a stage can be stopped. */
static void test_cancelled(void **state)
{
	struct rig *r = *state;
	struct err err = { 0 };

	begin_east(r);
	start(r, rig_second, 2);
	apply_cancel(r->apply);
	assert_int_equal(uv_run(&r->loop, UV_RUN_NOWAIT), 0);
	assert_false(r->answered);
	go_on(r);
	assert_int_equal(r->rc, WEFT_ECANCELED);
	assert_int_equal(r->res.verdict, APPLY_REFUSED);
	start(r, rig_second, 2);
	go_on(r);
	assert_int_equal(r->at, 2);
	apply_cancel(r->apply);
	apply_go_on(r->apply);
	apply_take_back(r->apply, err_set(&err, WEFT_EDEVICE, "too late"), &err);
	run_to_wait(r);
	assert_int_equal(r->rc, 0);
	assert_int_equal(r->res.verdict, APPLY_COMMITTED);
	assert_null(strstr(buf_cstr(&r->events), "too late"));
	assert_holds(r, &rig_second[0]);
	apply_go_on(r->apply);
	apply_take_back(r->apply, WEFT_EDEVICE, &err);
}

/* ---- after a kill --------------------------------------------------------- */

/* How an open change is said to end; asked counts. */
static struct {
	enum apply_outcome outcome;
	int rc, asked;
} others;

static void ask_others(const struct store_change *ch, void *arg)
{
	struct rig *r = arg;
	struct err err = { 0 };

	assert_int_equal(ch->verdict, STORE_RUNNING);
	others.asked++;
	if (others.rc) {
		err_set(&err, others.rc, "no member of etcd answers");
	}
	apply_set_outcome(r->apply, others.outcome, others.rc, &err);
}

static void up_and_recover(struct rig *r, const char *const *domain, enum apply_outcome outcome)
{
	up(r, domain);
	others.asked = others.rc = 0;
	others.outcome = outcome;
	apply_on_open(r->apply, ask_others, r);
	rig_watch(r);
	rig_recover(r);
}

static enum store_verdict last_verdict(struct rig *r)
{
	enum store_verdict verdict;
	struct store_change *h;
	struct err err = { 0 };
	int n;

	assert_int_equal(store_history(r->store, 0, 1, &h, &n, &err), 0);
	verdict = h[0].verdict;
	store_history_free(h, n);
	return verdict;
}

static void assert_explained(struct rig *r)
{
	const struct apply_device *a = rig_device(r, "a");

	assert_int_equal(a->n_missing + a->n_unexpected + a->n_pending, 0);
}

/* Who is not told waits, and nothing begins. */
static void test_decision_unknown(void **state)
{
	struct rig *r = *state;
	struct model_fabric *f;
	struct plan *p;
	struct err err = { 0 };

	begin_east(r);
	start(r, rig_second, 2);
	go_on(r);
	rig_down(r);
	up_and_recover(r, east, APPLY_COMMIT);
	assert_int_equal(others.asked, 1);
	assert_int_equal(last_verdict(r), STORE_COMMITTED);
	rig_down(r);
	assert_int_equal(others.asked, 1);
	up(r, east);
	rig_read(r);
	start(r, rig_first, 2);
	rig_down(r);
	up_and_recover(r, east, APPLY_BY_READING);
	assert_int_equal(last_verdict(r), STORE_ABORTED);
	start(r, rig_first, 2);
	go_on(r);
	rig_down(r);
	others.rc = WEFT_EUNAVAIL;
	up(r, east);
	apply_on_open(r->apply, ask_others, r);
	rig_recover(r);
	assert_int_equal(r->rc, WEFT_EUNAVAIL);
	assert_string_equal(r->text, "no member of etcd answers");
	assert_int_not_equal(apply_unresolved(r->apply), 0);
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, rig_first, 2);
	assert_int_equal(apply_start(r->apply, p, f,
				     &(struct apply_request){ .order.who = "bob" }, NULL,
				     rig_on_done, r, &err), WEFT_ESTALE);
	others.rc = 0;
	others.outcome = APPLY_UNDO;
	rig_recover(r);
	assert_int_equal(r->rc, 0);
	assert_int_equal(last_verdict(r), STORE_ROLLED_BACK);
	assert_holds(r, &rig_second[0]);
	assert_explained(r);
}

/* A device that does not answer is not said to be as before; it can be brought there later. */
static void test_undo_gets_stuck(void **state)
{
	struct rig *r = *state;
	struct model_fabric *f;
	struct plan *p;

	two_switches(r);
	up(r, west);
	rig_read(r);
	r->ready = go_on_at_once;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	start(r, rig_second, 2);
	assert_int_equal(r->at, 1);
	go_on(r);
	rig_down(r);
	up(r, west);
	rig_wrap_b(r);
	rig_b.dead = true;
	others.rc = others.asked = 0;
	others.outcome = APPLY_UNDO;
	apply_on_open(r->apply, ask_others, r);
	rig_recover(r);
	assert_int_equal(r->rc, WEFT_ECANCELED);
	assert_says(r->text, "could not be rolled back");
	assert_int_equal(last_verdict(r), STORE_STUCK);
	assert_int_equal(apply_unresolved(r->apply), 0);
	rig_b.dead = false;
	rig_recover(r);		/* that it is undone was decided: readings tell how far */
	assert_int_equal(last_verdict(r), STORE_STUCK);
	assert_int_equal(others.asked, 1);
	f = rig_parse(r);
	p = rig_plan(r, f, PLAN_SAFE, rig_first, 2);
	assert_int_equal(p->devices[0].n_del, 0);	/* of a, whatever became of it there */
	assert_int_equal(p->devices[1].n_del, 1);
	plan_free(p);
	model_free(f);
	r->ready = go_on_at_once;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	assert_holds(r, &rig_first[1]);
	assert_int_equal(others.asked, 1);
}

/* The others commit, so nothing that fails here takes it back any more, not even a list of repairs
 * that the disk does not take. */
static void test_commit_is_not_recorded(void **state)
{
	struct rig *r = *state;

	rig_fabric(r);
	rig_switch(r, "a", "east", ", lie: o4");
	rig_switch(r, "b", "west", "");
	buf_str(&r->yaml, "changes: { gate: 0% }\n");
	up(r, east);
	rig_read(r);
	r->ready = go_on_at_once;
	assert_int_equal(rig_go(r, PLAN_SAFE, rig_first, 2), APPLY_COMMITTED);
	start(r, rig_second, 2);
	go_on(r);
	assert_int_equal(r->at, 2);
	assert_says(buf_cstr(&r->events), "left to be repaired");
	fault_arm(FAULT_FULL, 1, true);
	go_on(r);
	fault_clear();
	assert_int_equal(r->rc, WEFT_EIO);
	assert_int_equal(r->res.verdict, APPLY_STUCK);
	assert_int_not_equal(apply_unresolved(r->apply), 0);
	others.asked = others.rc = 0;
	others.outcome = APPLY_COMMIT;
	apply_on_open(r->apply, ask_others, r);
	rig_recover(r);
	assert_int_equal(others.asked, 1);
	assert_int_equal(last_verdict(r), STORE_COMMITTED);
	assert_intent(r, &rig_second[0]);
	assert_int_equal(rig_device(r, "a")->n_missing, 1);
}

/* One of two is killed wherever it waits: it and the other end as before. */
static void test_one_is_killed(void **state)
{
	struct rig *r = *state;

	begin_two(r);
	carry_out(r, four_first);
	for (int k = 0; k < 3; k++) {
		start(&r[0], four_second, 4);
		start(&r[1], four_second, 4);
		for (int i = 0; i < k; i++) {
			go_on(&r[0]);
			go_on(&r[1]);
		}
		rig_down(&r[0]);
		take_back(&r[1]);
		assert_int_equal(r[1].res.verdict, k ? APPLY_ROLLED_BACK : APPLY_REFUSED);
		up_and_recover(&r[0], east, APPLY_UNDO);
		assert_int_equal(r[0].rc, 0);
		assert_int_equal(r[0].n_commands > 0, k > 0);
		for (int i = 0; i < 4; i++) {
			assert_holds(&r[i % 2], &four_first[i]);
			assert_intent(&r[i % 2], &four_first[i]);
		}
		assert_int_equal(store_generation(r[0].store), store_generation(r[1].store));
	}
	carry_out(r, four_second);
	assert_int_equal(r[0].res.verdict, APPLY_COMMITTED);
	assert_int_equal(r[1].res.verdict, APPLY_COMMITTED);
}

/* While no engine ran a lost its circuits: all by a restart, or 3 -> 4, which another user took. */
static void lose_light(const struct rig *r, bool all)
{
	char path[96], line[96];
	struct buf b = { 0 };
	FILE *f;

	snprintf(path, sizeof(path), "%s/a.map", r->dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (all && strncmp(line, "boots", 5) == 0) {
			buf_str(&b, "boots 99\n");
		} else if (strncmp(line, "xc", 2) != 0 ||
			   (!all && strcmp(line, "xc 2 3\n") != 0)) {
			buf_str(&b, line);
		}
	}
	fclose(f);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	assert_int_equal(fclose(f), 0);
	buf_fini(&b);
}

/* What a restart took was there before the change, and comes back with the rest; what another user
 * took is not this change's. Once the device was read that cannot be told apart. */
static void test_lost_before_undo(void **state)
{
	struct rig *r = *state;

	begin_east(r);
	for (int i = 0; i < 3; i++) {
		start(r, rig_second, 2);
		go_on(r);
		assert_int_equal(r->at, 2);
		rig_down(r);
		lose_light(r, i == 0);
		up(r, east);
		if (i == 2) {
			rig_read(r);
		}
		others.rc = 0;
		others.outcome = APPLY_UNDO;
		apply_on_open(r->apply, ask_others, r);
		rig_recover(r);
		assert_int_equal(r->rc, 0);
		assert_int_equal(last_verdict(r), STORE_ROLLED_BACK);
		rig_read(r);
		assert_true(rig_has(r, "a", 1, 2) && rig_has(r, "a", 0, 1));
		assert_int_equal(rig_has(r, "a", 2, 3), i != 1);
		assert_int_equal(rig_device(r, "a")->n_missing, i == 1);
		if (i == 1) {
			rig_meddle(r, "a", DRV_ADD, 2, 3);
			rig_read(r);
		}
	}
}

/* All circuits of both move on, one in each stage. */
static const struct want third[] = {
	{ "a", 3, { { 0, 2 }, { 1, 3 }, { 2, 1 } }, NULL },
	{ "b", 3, { { 0, 0 }, { 5, 7 }, { 6, 4 } }, NULL },
};

/* The files at every write of a change of a that was not the last to go on. */
static struct moments *run_and_watch(struct rig *r)
{
	struct moments *m = new_moments(r);

	begin_east(r);
	rig_down(r);
	up(r, east);
	rig_read(r);
	r->ready = go_on_at_once;
	r->in_stages = true;
	watch_moments(m);
	assert_int_equal(rig_go(r, PLAN_SAFE, third, 2), APPLY_COMMITTED);
	fault_clear();
	keep_moment(m);
	rig_down(r);
	assert_true(m->n > 60);
	return m;
}

/* Restarts at that moment; returns whether the change was open then. */
static bool restart_at(struct moments *m, int at, enum apply_outcome outcome)
{
	struct rig *r = m->rig;

	restore_moment(m, at);
	up_and_recover(r, east, outcome);
	assert_int_equal(r->rc, 0);
	return others.asked > 0;
}

static void assert_undone(struct rig *r)
{
	enum store_verdict v = last_verdict(r);

	assert_true(v == STORE_ROLLED_BACK || v == STORE_REFUSED);
	assert_holds(r, &rig_first[0]);
	assert_intent(r, &rig_first[0]);
	assert_intent(r, &rig_first[1]);
	assert_explained(r);
}

/* The others commit: it is the intent, and what is not there yet is missing. */
static void assert_committed(struct rig *r)
{
	assert_int_equal(last_verdict(r), STORE_COMMITTED);
	assert_int_equal(r->n_commands, 0);
	assert_intent(r, &third[0]);
	assert_intent(r, &third[1]);
	rig_read(r);
	assert_int_equal(rig_device(r, "a")->n_pending, 0);
	r->ready = go_on_at_once;
	rig_go(r, PLAN_UPDATE, third, 2);
	assert_int_equal(r->rc, 0);
	assert_holds(r, &third[0]);
	assert_explained(r);
}

static void test_killed_at_every_write(void **state)
{
	struct moments *m = run_and_watch(*state);
	int n_undone = 0, n_sent = 0;

	for (int at = 0; at < m->n; at += STRIDE) {
		if (restart_at(m, at, APPLY_UNDO)) {
			n_undone++;
			n_sent += m->rig->n_commands > 0;
			assert_undone(m->rig);
		}
		assert_untouched(m->rig, "b");
		rig_down(m->rig);
		if (restart_at(m, at, APPLY_COMMIT)) {
			assert_committed(m->rig);
		}
		assert_untouched(m->rig, "b");
		rig_down(m->rig);
	}
	assert_true(n_sent > 2 && n_sent < n_undone);
	free_moments(m);
}

/* And again while the next process takes it back. */
static void test_killed_in_undo(void **state)
{
	struct rig *r = *state;
	struct moments *m = new_moments(r);
	int n_sent = 0;

	begin_east(r);
	r->in_stages = true;
	start(r, third, 2);
	for (int i = 0; i < 3; i++) {
		go_on(r);
	}
	rig_down(r);
	watch_moments(m);
	up_and_recover(r, east, APPLY_UNDO);
	fault_clear();
	assert_undone(r);
	rig_down(r);
	assert_true(m->n > 20);
	for (int at = 0; at < m->n; at += STRIDE) {
		if (restart_at(m, at, APPLY_UNDO)) {
			n_sent += r->n_commands > 0;
			assert_undone(r);
		}
		assert_untouched(r, "b");
		rig_down(r);
	}
	assert_true(n_sent > 0);
	free_moments(m);
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
		T(test_elsewhere), T(test_moves_between_domains), T(test_steps_only_elsewhere),
		T(test_two_engines), T(test_taken_back_while_waiting),
		T(test_taken_back_in_the_middle), T(test_changed_while_waiting), T(test_cancelled),
		T(test_decision_unknown),
		T(test_undo_gets_stuck), T(test_commit_is_not_recorded), T(test_one_is_killed),
		T(test_lost_before_undo),
		T(test_killed_at_every_write), T(test_killed_in_undo),
	};

	fault_install();
	log_set_sink(be_quiet);	/* failures are wanted here */
	return cmocka_run_group_tests_name("apply/joint", tests, NULL, NULL);
}
