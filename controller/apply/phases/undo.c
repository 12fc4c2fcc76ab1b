/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a change back: the last stage first, whose hosts send no more over what
 * it has made; then device by device in reverse order: read, send what differs from
 * before, read again. Only steps that may have reached the device are taken back; a
 * circuit that another user put in the way is left alone and named.
 *
 * What to send is always derived from a fresh reading, never from what was sent:
 * an unknown outcome, a device that restarted and a second failure are then one
 * case. Tries of a step, rounds of a device and failed readings are bounded, so
 * undoing ends; what is left over by then makes the verdict "stuck".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/log.h"
#include "lib/base/number/units.h"

#define UNDO_ROUNDS 6		/* of reading and sending, a device */
#define UNDO_TRIES 3		/* of one step */
#define UNREAD_TRIES 4		/* readings that failed, a device */
#define BACK_OFF_US 25000

static void undo_next(struct change *c);
static void undo_read(struct apply_run *r);

/* What was to be kept is every stage's. */
static bool is_own(const struct apply_run *r, const struct store_step *st)
{
	return st->op == STORE_KEEP || st->stage == r->stage;
}

/* True when a step that was sent is not as it was before the stage. */
static bool differs(const struct apply_run *r, int i)
{
	const struct store_step *st = &r->w->steps[i];
	enum store_step_state now = compare_step(r->w, st, &r->dev->now.snap);

	if (st->state == STORE_PLANNED || st->op == STORE_LEAVE || !is_own(r, st)) {
		return false;
	}
	return st->op == STORE_KEEP ? now != STORE_AS_PLANNED : now != STORE_AS_BEFORE;
}

static int count_differences(const struct apply_run *r)
{
	int n = 0;

	for (int i = 0; i < r->w->n_steps; i++) {
		n += differs(r, i);
	}
	return n;
}

/* ---- what to send -------------------------------------------------------- */

static void put_item(struct apply_run *r, int step, enum drv_op op)
{
	r->items[r->n_sent].op = op;
	r->items[r->n_sent].xc = r->w->steps[step].xc;
	r->item_step[r->n_sent++] = step;
}

/* True when this batch deletes xc. */
static bool in_batch(const struct apply_run *r, struct optics_xc xc)
{
	for (int i = 0; i < r->n_sent; i++) {
		if (r->items[i].op == DRV_DEL && optics_xc_cmp(&r->items[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_free(struct apply_run *r, int step)
{
	struct store_step *st = &r->w->steps[step];
	const struct drv_xc *holder;
	char xc[48];
	int at = 0;

	do {
		holder = snap_holder(&r->dev->now.snap, r->dev->any_to_any, st->xc, &at);
	} while (holder && (in_batch(r, holder->xc) ||
			    optics_xc_cmp(&holder->xc, &st->xc) == 0));
	if (!holder) {
		return true;
	}
	store_set_note(st, "%s is in the way",
		       xc_text(holder->xc, xc, sizeof(xc)));
	return false;
}

static bool has_tries(const struct apply_run *r, int step)
{
	return r->tries[step] < UNDO_TRIES;
}

/* Deletes of what was made, then what was deleted, each last one first. */
static void collect_circuits(struct apply_run *r)
{
	int max = r->dev->now.snap.caps.max_batch;

	r->n_sent = 0;
	for (int i = r->w->n_steps - 1; i >= 0; i--) {
		if (r->w->steps[i].op == STORE_ADD && differs(r, i) && has_tries(r, i)) {
			put_item(r, i, DRV_DEL);
		}
	}
	for (int i = r->w->n_steps - 1; i >= 0; i--) {
		if (r->w->steps[i].op != STORE_ADD && differs(r, i) &&
		    has_tries(r, i) && is_free(r, i)) {
			put_item(r, i, DRV_ADD);
		}
	}
	r->n_sent = max && r->n_sent > max ? max : r->n_sent;
	r->batch = (struct drv_batch){ .mode = DRV_SAFE, .items = r->items,
				       .n_items = r->n_sent };
}

static bool holds_pack(const struct ring_programs *r, const struct ring_program *p)
{
	const struct ring_program *q = r ? ring_programs_find(r, p->name) : NULL;

	return q && ring_program_equal(q, p);
}

/* Programs as before or as planned are ours, and so is one of a job that the
 * change was loading, whatever became of it on the way. */
static bool all_ours(const struct store_work *w, const struct ring_programs *has)
{
	const struct ring_programs *old = work_old(w), *new = work_new(w);

	for (int i = 0; has && i < has->n; i++) {
		const struct ring_program *p = &has->v[i];
		const struct ring_program *planned = new ? ring_programs_find(new, p->name) : NULL;
		bool loading = planned && !holds_pack(old, planned);

		if (!holds_pack(old, p) && !holds_pack(new, p) && !loading) {
			return false;
		}
	}
	return true;
}

static void collect_program(struct apply_run *r)
{
	const struct ring_programs *has = snap_program(&r->dev->now.snap);
	const struct ring_programs *old = work_old(r->w);

	r->n_sent = 0;
	if (!all_ours(r->w, has)) {
		store_set_note(&r->w->steps[0], "another user's program is loaded");
		return;
	}
	if (has_tries(r, 0)) {
		put_item(r, 0, DRV_ADD);
		r->batch = (struct drv_batch){ .programs = old ? old :
								&r->dark };
	}
}

/* ---- one device ---------------------------------------------------------- */

static void report_unrecovered(struct apply_run *r, int i, const char *why)
{
	struct change *c = r->c;
	struct store_step *st = &r->w->steps[i];
	char what[48];

	step_text(st, what, sizeof(what));
	change_event(c, r->dev, true, "%s: %s %s%s%s%s", r->dev->name, what,
		     why, st->note ? " (" : "", st->note ? st->note : "",
		     st->note ? ")" : "");
	buf_printf(&c->unrecovered, "%s%s %s %s", c->n_unrecovered ? "; " : "",
		   r->dev->name, what, why);
	c->n_unrecovered++;
}

static const char *reason_unrecovered(const struct apply_run *r, int i)
{
	switch (r->w->steps[i].op) {
	case STORE_ADD:
		return "is still there";
	case STORE_LOAD:
		return "is not the one before";
	default:
		return "is not there again";
	}
}

/* Writes down where every step of the device stands. */
static void record_states(struct apply_run *r, bool known)
{
	struct err err = { 0 };

	for (int i = 0; i < r->w->n_steps; i++) {
		struct store_step *st = &r->w->steps[i];

		if (!is_own(r, st)) {
			continue;
		}
		if (!known && st->state != STORE_PLANNED) {
			report_unrecovered(r, i, "is unknown: the device does not "
				 "answer");
			st->state = STORE_UNKNOWN;
		} else if (known && differs(r, i)) {
			report_unrecovered(r, i, reason_unrecovered(r, i));
			st->state = compare_step(r->w, st, &r->dev->now.snap);
		} else if (known && st->state != STORE_PLANNED) {
			st->state = STORE_AS_BEFORE;
		}
	}
	if (store_mark(r->c->a->store, &r->c->journal, r->index, &err)) {
		log_error("apply", "%s", err.msg);
	}
}

static bool is_gone(const struct apply_run *r, const struct store_step *st)
{
	return st->op == STORE_KEEP && st->state == STORE_PLANNED &&
	       compare_step(r->w, st, &r->dev->now.snap) != STORE_AS_PLANNED;
}

/* Names circuits that the change was to leave alone and that went away
 * without it: not ours to bring back, but the device is not as before. */
static int report_gone(struct apply_run *r)
{
	int n = 0;
	char what[48];

	for (int i = 0; i < r->w->n_steps; i++) {
		struct store_step *st = &r->w->steps[i];

		if (is_gone(r, st)) {
			step_text(st, what, sizeof(what));
			change_event(r->c, r->dev, true, "%s: %s went away "
				     "meanwhile, and not by this change",
				     r->dev->name, what);
			n++;
		}
	}
	return n;
}

static void device_done(struct apply_run *r, bool known)
{
	int left = r->c->n_unrecovered;

	r->c->lost = known ? r->c->lost : r->dev->name;
	record_states(r, known);
	if (known && report_gone(r) == 0 && r->c->n_unrecovered == left) {
		change_event(r->c, r->dev, false, "%s is as before, read back "
			     "twice", r->dev->name);
	}
	undo_next(r->c);
}

static void on_undone(struct device *d, int rc, int n, const struct drv_outcome *outcomes,
		      const struct err *err, void *arg)
{
	struct apply_run *r = arg;

	(void)d;
	if (r->c->a->closing) {
		return;
	}
	for (int i = 0; i < r->n_sent; i++) {
		int step = r->item_step[i];
		const struct drv_outcome *o = n == r->n_sent ? &outcomes[i] : NULL;

		if (o && o->result == DRV_SKIPPED) {
			continue;
		}
		r->tries[step]++;
		if (o && o->result == DRV_REFUSED) {
			r->tries[step] = UNDO_TRIES;
			store_set_note(&r->w->steps[step], "refused: %s %s", o->code, o->text);
		}
	}
	if (rc) {
		change_event(r->c, r->dev, true, "%s", err->msg);
	}
	undo_read(r);
}

static void read_later(void *arg)
{
	undo_read(arg);
}

/* The reading failed: again after a longer wait, a few times. */
static void unread(struct apply_run *r, const struct err *err)
{
	change_event(r->c, r->dev, true, "%s", err->msg);
	if (++r->n_unread == UNREAD_TRIES) {
		device_done(r, false);
		return;
	}
	apply_later(r->c->a, (int64_t)BACK_OFF_US << (2 * r->n_unread), read_later, r);
}

static void send_differences(struct apply_run *r)
{
	if (r->w->is_ring) {
		collect_program(r);
	} else {
		collect_circuits(r);
	}
	if (r->n_sent == 0 || r->rounds++ == UNDO_ROUNDS) {
		device_done(r, true);
		return;
	}
	change_event(r->c, r->dev, false, "%d step%s to take back",
		     r->n_sent, r->n_sent == 1 ? "" : "s");
	if (!r->c->a->closing) {
		device_submit(r->dev, &r->op, &r->batch, on_undone, r);
	}
}

/* True when the device restarted since the check. One that does not count
 * its starts gives itself away by a map without any of several circuits that
 * no report named: another user takes one away, or a few. */
static bool has_restarted(const struct apply_run *r)
{
	int n_kept = 0, n_gone = 0;

	if (r->restarted || strcmp(r->epoch, r->dev->now.snap.epoch) != 0) {
		return true;
	}
	if (r->epoch[0]) {
		return false;
	}
	for (int i = 0; i < r->w->n_steps; i++) {
		n_kept += r->w->steps[i].op == STORE_KEEP;
		n_gone += is_gone(r, &r->w->steps[i]);
	}
	return n_gone > 1 && n_gone == n_kept;
}

/* A device that restarted in between may have lost what was only to be kept,
 * or not yet to be deleted; that is part of the state before, and this run's
 * to bring back. */
static void note_lost(struct apply_run *r)
{
	if (!has_restarted(r)) {
		return;
	}
	for (int i = 0; i < r->w->n_steps; i++) {
		struct store_step *st = &r->w->steps[i];

		if (st->state == STORE_PLANNED && st->op == STORE_KEEP) {
			st->state = STORE_UNKNOWN;
		} else if (st->state == STORE_PLANNED && st->op == STORE_DEL) {
			st->state = STORE_UNKNOWN;
			st->stage = r->stage;
		}
	}
}

/* A step whose outcome is not known may yet be done. */
static bool is_late(const struct apply_run *r)
{
	bool late = false;

	for (int i = 0; i < r->w->n_steps && r->dev->now.snap.late; i++) {
		late = late || step_is_unknown(&r->w->steps[i]);
	}
	return late;
}

static void on_undo_read(struct device *d, int rc, const struct err *err, void *arg)
{
	struct apply_run *r = arg;
	struct err late = { 0 };

	if (r->c->a->closing) {
		return;
	}
	if (rc == 0 && is_late(r)) {
		rc = err_set(&late, WEFT_EUNAVAIL, "%s: what it was sent may yet be done",
			     d->name);
		err = &late;
	}
	if (rc == 0) {
		note_lost(r);
	}
	if (rc) {
		unread(r, err);
	} else if (count_differences(r) > 0) {
		r->confirmed = false;
		send_differences(r);
	} else if (!r->confirmed) {
		/* As before, but it must still be so after settling. */
		r->confirmed = true;
		apply_later(d->a, d->now.snap.caps.settle_us, read_later, r);
	} else {
		device_done(r, true);
	}
}

static void undo_read(struct apply_run *r)
{
	if (r->c->a->closing) {
		return;
	}
	device_read(r->dev, &r->op, on_undo_read, r);
}

/* ---- all devices --------------------------------------------------------- */

static void undo_run(struct change *c)
{
	undo_read(&c->runs[c->undo_at]);
}

static void undo_next(struct change *c)
{
	const int64_t within_ns = c->set->fabric->changes.resume_within_ns;
	char within[32];
	int stage;

	do {
		c->undo_at--;
	} while (c->undo_at >= 0 && !c->runs[c->undo_at].sent);
	if (c->undo_at >= 0) {
		stage = c->runs[c->undo_at].stage;
		if (stage == c->undo_stage) {
			undo_run(c);
			return;
		}
		c->undo_stage = stage;
		drain_undo(c, stage, undo_run);
		return;
	}
	c->res.verdict = c->n_unrecovered ? APPLY_STUCK : APPLY_ROLLED_BACK;
	if (c->n_unrecovered) {
		err_wrap(&c->err, "%d step%s could not be rolled back (%s)",
			 c->n_unrecovered, c->n_unrecovered == 1 ? "" : "s",
			 buf_cstr(&c->unrecovered));
	}
	if (c->lost && within_ns) {
		err_hint(&c->err, "it is taken back by itself once %s answers again, within %s",
			 c->lost, unit_human(UNIT_NS, (double)within_ns, within, sizeof(within)));
	}
	c->walk(c, PHASE_END);
}

/* The undo information is durable already; this only tells a recovery which way the change was
 * going, so that what is as planned then, and is taken back late, is not taken for committed. */
static void on_undoing(int rc, const struct err *err, void *arg)
{
	if (rc) {
		log_error("apply", "%s", err->msg);
	}
	undo_next(arg);
}

enum phase undo_begin(struct change *c)
{
	struct err err = { 0 };
	bool sent = false;

	for (int i = 0; i < c->n_runs; i++) {
		sent = sent || c->runs[i].sent;
	}
	if (!sent) {
		c->res.verdict = APPLY_REFUSED;
		return PHASE_END;
	}
	change_event(c, NULL, false, "taking back what was done");
	c->undo_at = c->n_runs;
	c->undo_stage = -1;
	if (store_undoing(c->a->store, c->journal.change.id, &err)) {
		log_error("apply", "%s", err.msg);
		undo_next(c);
	} else {
		apply_when_durable(c->a, &c->recorded, on_undoing, c);
	}
	return PHASE_WAITS;
}
