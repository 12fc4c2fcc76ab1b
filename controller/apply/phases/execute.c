/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending what a stage deletes, makes and loads, in batches.
 *
 * Before a batch is sent its steps are marked as sent in the journal, durably,
 * and with its answer what became of each; a process that dies in between leaves
 * no circuit that its journal does not name. A device that can only be given its
 * whole map gets deletes and adds in one command; their steps are marked
 * together, for nothing tells which of them were done.
 */
#include <stdio.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/clock.h"

static void put_item(struct apply_run *r, int step)
{
	r->items[r->n_sent] = (struct drv_item){
		.op = r->w->steps[step].op == STORE_DEL ? DRV_DEL : DRV_ADD,
		.xc = r->w->steps[step].xc,
	};
	r->item_step[r->n_sent++] = step;
}

/* The next steps of one kind, from r->first on, as many as fit a batch. */
static void collect_steps(struct apply_run *r, enum store_op op)
{
	int n = 0;

	r->n_sent = 0;
	while (r->first < r->end && r->w->steps[r->first].op != op) {
		r->first++;
	}
	while (r->first + n < r->end && r->w->steps[r->first + n].op == op) {
		n++;
	}
	n = batch_size(&r->dev->now.snap.caps, n);
	for (int i = 0; i < n; i++) {
		put_item(r, r->first + i);
	}
	r->batch = (struct drv_batch){ .mode = DRV_SAFE, .items = r->items,
				       .n_items = r->n_sent };
}

/* A circuit to be made that its device lists as failed: most devices take what they
 * list for made. */
static bool is_to_clear(const struct apply_run *r, int i)
{
	const struct store_step *st = &r->w->steps[i];
	const struct drv_xc *x = st->op == STORE_ADD && !st->is_straggler
					 ? snap_find(&r->dev->now.snap, st->xc) : NULL;

	return x && x->state == DRV_FAILED;
}

static bool clears_from(const struct apply_run *r, int first)
{
	for (int i = first; i < r->end; i++) {
		if (is_to_clear(r, i)) {
			return true;
		}
	}
	return false;
}

bool execute_clears(const struct apply_run *r)
{
	return clears_from(r, r->begin);
}

/* The next of these, as many as fit a batch; false: there are no more. */
static bool collect_failed(struct apply_run *r)
{
	int most = batch_size(&r->dev->now.snap.caps, r->end - r->begin);

	r->n_sent = 0;
	for (; r->clear_at < r->end && r->n_sent < most; r->clear_at++) {
		if (is_to_clear(r, r->clear_at)) {
			put_item(r, r->clear_at);
			r->items[r->n_sent - 1].op = DRV_DEL;
		}
	}
	r->batch = (struct drv_batch){ .mode = DRV_SAFE, .items = r->items,
				       .n_items = r->n_sent };
	return r->n_sent > 0;
}

/* The whole map: nothing is kept beside what is made. */
static void collect_map(struct apply_run *r)
{
	r->n_sent = 0;
	for (int i = r->begin; i < r->end; i++) {
		if (r->w->steps[i].op == STORE_ADD) {
			put_item(r, i);
		}
	}
	r->batch = (struct drv_batch){ .mode = DRV_REPLACE,
				       .items = r->items,
				       .n_items = r->n_sent };
}

static void collect_program(struct apply_run *r)
{
	const struct ring_programs *p = work_new(r->w);

	r->n_sent = 0;
	put_item(r, r->first);
	r->batch = (struct drv_batch){ .programs = p ? p : &r->dark };
}

static void set_states(struct apply_run *r, enum store_step_state st)
{
	for (int i = 0; i < r->n_sent; i++) {
		r->w->steps[r->item_step[i]].state = st;
	}
	for (int i = r->begin; i < r->end && r->replace; i++) {
		r->w->steps[i].state = st;
	}
}

static int mark_steps(struct apply_run *r, struct err *err)
{
	return store_mark(r->c->a->store, &r->c->journal, r->index, err);
}

static void on_sent(struct device *d, int rc, int n, const struct drv_outcome *outcomes,
		    const struct err *err, void *arg);

static void send_now(struct apply_run *r)
{
	r->sent = true;
	r->since_ns = clk_now_ns();
	r->n_sends++;
	r->n_moves += r->n_sent;
	r->c->began_ns = r->c->began_ns ? r->c->began_ns : r->since_ns;
	device_submit(r->dev, &r->op, &r->batch, on_sent, r);
}

/* Nothing was sent of what was marked: so does the journal say again. */
static void take_marks_back(struct apply_run *r)
{
	struct err err = { 0 };

	set_states(r, STORE_PLANNED);
	if (mark_steps(r, &err)) {
		change_fail(r->c, err.code, &err);
	}
}

static void on_marked(int rc, const struct err *err, void *arg)
{
	struct apply_run *r = arg;

	if (rc) {
		change_fail(r->c, rc, err);
	}
	if (r->c->rc || r->c->cancel) {
		take_marks_back(r);
		change_op_done(r->c);
		return;
	}
	send_now(r);
}

/* The journal knows what is in flight before it is sent. */
static void send_batch(struct apply_run *r)
{
	struct err err = { 0 };
	int rc;

	set_states(r, STORE_SENT);
	rc = mark_steps(r, &err);
	if (rc) {
		set_states(r, STORE_PLANNED);
		change_op_failed(r, rc, &err);
		return;
	}
	apply_when_durable(r->c->a, &r->marked, on_marked, r);
}

static void send_next(struct apply_run *r)
{
	struct change *c = r->c;

	r->clearing = c->phase == PHASE_DELETE && collect_failed(r);
	if (r->clearing) {
		send_batch(r);
		return;
	}
	if (c->phase == PHASE_DELETE) {
		collect_steps(r, STORE_DEL);
	} else if (c->phase == PHASE_LOAD) {
		collect_program(r);
	} else if (r->replace) {
		collect_map(r);
	} else {
		collect_steps(r, STORE_ADD);
	}
	send_batch(r);
}

void execute_begin(struct apply_run *r)
{
	r->first = r->clear_at = r->begin;
	send_next(r);
}

static enum store_step_state state_of(const struct apply_run *r, const struct drv_outcome *o)
{
	switch (o->result) {
	case DRV_DONE:
		return STORE_DONE;
	case DRV_REFUSED:
		return r->replace ? STORE_UNKNOWN : STORE_DENIED;
	case DRV_SKIPPED:
		/* A whole map half written has lost what was skipped. */
		return r->replace ? STORE_UNKNOWN : STORE_PLANNED;
	default:
		return STORE_UNKNOWN;
	}
}

static void take_outcomes(struct apply_run *r, int n, const struct drv_outcome *outcomes)
{
	set_states(r, r->replace && n == r->n_sent ? STORE_DONE : STORE_UNKNOWN);
	for (int i = 0; i < n && n == r->n_sent; i++) {
		struct store_step *st = &r->w->steps[r->item_step[i]];
		const struct drv_outcome *o = &outcomes[i];

		st->state = state_of(r, o);
		store_set_note(st, "%s%s%s", o->code,
			 o->code[0] && o->text[0] ? " " : "", o->text);
		r->unmeasured |= o->evidence != DRV_MEASURED && st->op != STORE_DEL;
		r->c->done += st->state == STORE_DONE;
	}
	for (int i = r->begin; i < r->end && r->replace; i++) {
		r->c->done += r->w->steps[i].op == STORE_DEL && r->w->steps[i].state == STORE_DONE;
	}
}

/* Keeps the circuits that failed, for those who want more than the first. */
static void keep_failed(const struct apply_run *r, int n, const struct drv_outcome *outcomes)
{
	struct apply_result *res = &r->c->res;
	char what[48];

	for (int i = 0; i < n && n == r->n_sent; i++) {
		const struct drv_outcome *o = &outcomes[i];
		struct apply_failed *f = &res->failed[res->n_failed];

		if (o->result == DRV_DONE || o->result == DRV_SKIPPED ||
		    res->n_failed == APPLY_MAX_FAILED) {
			continue;
		}
		step_text(&r->w->steps[r->item_step[i]], what, sizeof(what));
		snprintf(f->name, sizeof(f->name), "%.*s: %s", CONF_MAX_NAME, r->dev->name, what);
		snprintf(f->why, sizeof(f->why), "%s: %.30s%s%.40s",
			 drv_result_name(o->result), o->code,
			 o->code[0] && o->text[0] ? " " : "", o->text);
		res->n_failed++;
	}
}

/* Says which circuit it was; the driver knows items only. */
static int name_failure(const struct apply_run *r, int n, const struct drv_outcome *outcomes,
			int rc, const struct err *err, struct err *own)
{
	char what[48];

	for (int i = 0; i < n && n == r->n_sent; i++) {
		const struct drv_outcome *o = &outcomes[i];

		if (o->result == DRV_DONE || o->result == DRV_SKIPPED) {
			continue;
		}
		step_text(&r->w->steps[r->item_step[i]], what, sizeof(what));
		return err_set(own, rc, "%s: %s: %s %s: %s%s%s", r->dev->name,
			       what, change_phase_name(r->c->phase),
			       drv_result_name(o->result), o->code,
			       o->code[0] ? " " : "",
			       o->text[0] ? o->text : err->msg);
	}
	*own = *err;
	return rc;
}

/* What the ring runs now; programs that stay were not touched. */
static void report_load(struct apply_run *r)
{
	const struct ring_programs *now = r->batch.programs;
	const struct ring_programs *old = work_old(r->w);

	for (int i = 0; i < now->n; i++) {
		const struct ring_program *p = &now->v[i];
		const struct ring_program *had = old ? ring_programs_find(old, p->name) : NULL;

		if (!had || !ring_program_equal(had, p)) {
			change_event(r->c, r->dev, false, "%s: program of %u "
				     "steps loaded, %zu bytes", p->name,
				     p->steps, p->len);
		}
	}
	for (int i = 0; old && i < old->n; i++) {
		if (!ring_programs_find(now, old->v[i].name)) {
			change_event(r->c, r->dev, false, "%s: program ended", old->v[i].name);
		}
	}
}

static void report_progress(struct apply_run *r)
{
	static const char *const verbs[] = {
		[PHASE_DELETE] = "deleted", [PHASE_ADD] = "made",
	};

	if (r->c->phase == PHASE_LOAD) {
		report_load(r);
	} else if (r->replace) {
		change_event(r->c, r->dev, false, "map of %d circuits set at "
			     "once", r->n_sent);
	} else {
		change_event(r->c, r->dev, false, "%d circuit%s %s", r->n_sent,
			     r->n_sent == 1 ? "" : "s", verbs[r->c->phase]);
	}
}

/* More of the same kind follow when a batch was too small for them. */
static bool has_more(struct apply_run *r)
{
	enum store_op op = r->w->steps[r->first].op;

	while (r->first < r->end && r->w->steps[r->first].op == op &&
	       (r->w->steps[r->first].state != STORE_PLANNED ||
		r->w->steps[r->first].is_straggler)) {
		r->first++;
	}
	return !r->replace && r->first < r->end && r->w->steps[r->first].op == op;
}

/* Circuits that the device refused may be some that the change goes on
 * without, unless what became of others is unknown; those that were skipped
 * follow. err names the first. */
static void on_refused(struct apply_run *r, int n, const struct drv_outcome *outcomes, int rc,
		       const struct err *err)
{
	bool left = false;
	char what[48];

	for (int i = 0; i < n && n == r->n_sent; i++) {
		const struct drv_outcome *o = &outcomes[i];
		struct err own = *err;

		if (o->result == DRV_DONE || o->result == DRV_SKIPPED) {
			continue;
		}
		if (left) {
			step_text(&r->w->steps[r->item_step[i]], what, sizeof(what));
			err_set(&own, rc, "%s: %s: %s %s", r->dev->name, what, o->code, o->text);
		}
		left = o->result == DRV_REFUSED && tolerance_allows(r, r->item_step[i],
								    APPLY_UNVERIFIED, &own);
		if (!left) {
			break;
		}
	}
	if (!left) {
		change_fail(r->c, rc, err);
	}
}

/* What was listed as failed is gone, or not. Its steps are still to be done. */
static void on_cleared(struct apply_run *r, int rc, int n, const struct drv_outcome *outcomes,
		       const struct err *err)
{
	struct err own = { 0 };

	if (rc && !(rc == WEFT_ECANCELED && r->c->cancel)) {
		keep_failed(r, n, outcomes);
		rc = name_failure(r, n, outcomes, rc, err, &own);
		change_fail(r->c, rc, &own);
	} else if (rc == 0) {
		change_event(r->c, r->dev, false, "%d circuit%s deleted that had failed", r->n_sent,
			     r->n_sent == 1 ? "" : "s");
		set_states(r, STORE_PLANNED);
	}
	rc = mark_steps(r, &own);
	if (rc) {
		change_fail(r->c, rc, &own);
	}
	if (r->c->rc || r->c->cancel || r->c->a->closing ||
	    (!clears_from(r, r->clear_at) && run_count(r, STORE_DEL) == 0)) {
		change_op_done(r->c);
		return;
	}
	send_next(r);
}

static void on_sent(struct device *d, int rc, int n, const struct drv_outcome *outcomes,
		    const struct err *err, void *arg)
{
	struct apply_run *r = arg;
	struct err own = { 0 };

	(void)d;
	if (r->clearing) {
		on_cleared(r, rc, n, outcomes, err);
		return;
	}
	r->in_batch = 0;
	take_outcomes(r, n, outcomes);
	r->c->lit_ns = clk_now_ns();
	r->took_ns += r->c->lit_ns - r->since_ns;
	if (rc == WEFT_ECANCELED && r->c->cancel) {
		rc = 0;		/* what was not sent is as it was */
	} else if (rc) {
		keep_failed(r, n, outcomes);
		rc = name_failure(r, n, outcomes, rc, err, &own);
		on_refused(r, n, outcomes, rc, &own);
	} else {
		report_progress(r);
	}
	rc = mark_steps(r, &own);
	if (rc) {
		change_fail(r->c, rc, &own);
	}
	if (r->c->rc || r->c->cancel || r->c->a->closing || !has_more(r)) {
		change_op_done(r->c);
		return;
	}
	send_next(r);
}
