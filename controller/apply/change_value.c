/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The change under way as a value: what is said of it, what it has come to, who
 * else may ask. The phases stand on this file and know each other only by what they
 * return; phases.c, above them, goes from one to the next.
 */
#include <stdio.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/clock.h"

/* ---- which one is under way ---------------------------------------------- */

struct change *change_running(const struct apply *a)
{
	return a->change && a->change->phase != PHASE_END ? a->change : NULL;
}

bool apply_busy(const struct apply *a)
{
	return a->change || a->recovery || a->maintenance;
}

int64_t apply_running(const struct apply *a)
{
	return a->change ? a->change->journal.change.id : 0;
}

int64_t apply_unresolved(const struct apply *a)
{
	for (int i = 0; i < a->n_open && !apply_busy(a); i++) {
		if (a->open[i].change.verdict == STORE_RUNNING || a->resume) {
			return a->open[i].change.id;
		}
	}
	return 0;
}

void apply_resume(struct apply *a)
{
	a->resume = true;
}

const struct store_journal *apply_journal(const struct apply *a, int i)
{
	const struct change *c = change_running(a);
	const struct store_journal *running = c && c->journal.change.id ? &c->journal : NULL;

	if (running && i-- == 0) {
		return running;
	}
	return i < a->n_open ? &a->open[i] : NULL;
}

/* ---- what is said -------------------------------------------------------- */

const char *change_phase_name(enum phase phase)
{
	static const char *const names[] = {
		[PHASE_PREPARE] = "prepare", [PHASE_CHECK] = "check", [PHASE_WAIT] = "wait",
		[PHASE_DRAIN] = "drain", [PHASE_DELETE] = "delete", [PHASE_ADD] = "add",
		[PHASE_LOAD] = "load", [PHASE_READ_BACK] = "read back",
		[PHASE_SETTLE] = "settle", [PHASE_READ_AGAIN] = "read again",
		[PHASE_VERIFY] = "verify", [PHASE_COMMIT] = "commit", [PHASE_UNDO] = "undo",
		[PHASE_STOP] = "stop", [PHASE_END] = "end",
	};

	return names[phase];
}

/* Steps that are done, with those of batches under way. What was told is not taken back: a step
 * that a robot took for done may yet fail. */
static int steps_done(struct change *c)
{
	int n = c->done;

	for (int i = c->first; i < c->end; i++) {
		n += c->runs[i].in_batch;
	}
	n = n < c->total ? n : c->total;
	c->told = n > c->told ? n : c->told;
	return c->told;
}

static void report(struct change *c, enum phase phase, const struct device *d,
		 bool is_problem, const char *text)
{
	struct apply_event ev = {
		.phase = change_phase_name(phase), .device = d ? d->name : "",
		.text = text, .is_problem = is_problem,
		.done = steps_done(c), .total = c->total,
	};

	if (c->journal.change.id) {
		store_audit(c->a->store, c->journal.change.id, ev.device, STORE_EVENT, text);
	}
	if (c->on_event) {
		c->on_event(&ev, c->arg);
	}
}

void change_event(struct change *c, const struct device *d, bool is_problem, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report(c, c->phase, d, is_problem, text);
}

/* The run whose batch is under way on the device, or NULL. */
static struct apply_run *find_sending(const struct change *c, const struct device *d)
{
	for (int i = c->first; i < c->end; i++) {
		if (c->runs[i].dev == d) {
			return &c->runs[i];
		}
	}
	return NULL;
}

/* Steps of the run that move light and were not sent yet. */
static int steps_left(const struct apply_run *r)
{
	int n = 0;

	for (int i = r->begin; i < r->end; i++) {
		const struct store_step *st = &r->w->steps[i];

		n += st->state == STORE_PLANNED && st->op <= STORE_ADD && !st->is_straggler;
	}
	return n;
}

/* When a device that moves one after the other is through with the stage: with its batch by what
 * it tells, with the steps after it at the same pace. */
static void expect_end(struct apply_run *r, const struct drv_event *ev)
{
	int left = ev->total - ev->done;

	r->in_batch = ev->done;
	r->each_ns = ev->eta_ms > 0 && left > 0 ? ev->eta_ms * 1000000 / left : r->each_ns;
	r->end_ns = clk_now_ns() + r->each_ns * (left + steps_left(r));
}

/* What a step of a later stage takes, if it is a robot's: as seen of this kind last, or as such
 * devices take. */
static int64_t pace_of(const struct change *c, const struct device *d)
{
	for (int i = c->end; i-- > 0;) {
		if (strcmp(c->runs[i].dev->driver, d->driver) == 0 && c->runs[i].each_ns) {
			return c->runs[i].each_ns;
		}
	}
	return d->now.snap.caps.typ_switch_us >= 1000000
		       ? d->now.snap.caps.typ_switch_us * 1000 : 0;
}

/* Until the last device of the stage is through, and of each stage after it the slowest. */
static int64_t time_left(const struct change *c)
{
	int64_t left = 0, slowest = 0, takes;

	for (int i = c->first; i < c->end; i++) {
		takes = c->runs[i].end_ns - clk_now_ns();
		left = takes > left ? takes : left;
	}
	for (int i = c->end; i < c->n_runs; i++) {
		takes = pace_of(c, c->runs[i].dev) * steps_left(&c->runs[i]);
		slowest = takes > slowest ? takes : slowest;
		if (i + 1 == c->n_runs || c->runs[i + 1].stage != c->runs[i].stage) {
			left += slowest;
			slowest = 0;
		}
	}
	return left;
}

void change_progress(struct change *c, const struct device *d, const struct drv_event *ev)
{
	struct apply_run *r = c->phase < PHASE_UNDO ? find_sending(c, d) : NULL;
	struct apply_event e = {
		.phase = change_phase_name(c->phase), .device = d->name, .text = ev->text,
		.total = c->total, .eta_ns = ev->eta_ms > 0 ? ev->eta_ms * 1000000 : 0,
	};

	if (r) {
		expect_end(r, ev);
		e.eta_ns = time_left(c);
	}
	e.done = steps_done(c);
	if (c->on_event) {
		c->on_event(&e, c->arg);
	}
}

void change_fail(struct change *c, int rc, const struct err *err)
{
	if (c->rc) {
		return;
	}
	c->rc = rc;
	c->err = *err;
	change_event(c, NULL, true, "%s", err->msg);
}

void change_note_external(struct change *c, const struct device *d,
			  const struct store_external_change *f)
{
	char what[64];

	store_external_text(f, what, sizeof(what));
	if (c->n_external++ == 0) {
		snprintf(c->external, sizeof(c->external), "%s %s (%s)", d->name, what, f->who);
		change_event(c, d, true, "changed by others while this change ran: %s (%s)", what,
			     f->who);
	}
}

/* ---- the stage in scope -------------------------------------------------- */

int run_count(const struct apply_run *r, enum store_op op)
{
	int n = 0;

	for (int i = 0; i < r->w->n_steps; i++) {
		n += step_op(&r->w->steps[i], r->stage) == (int)op;
	}
	return n;
}

void change_scope(struct change *c, int first)
{
	const struct plan_stage *st;
	char text[ERR_MSG_MAX];

	c->whole = false;
	c->first = c->end = first;
	while (c->end < c->n_runs && c->runs[c->end].stage == c->runs[first].stage) {
		c->end++;
	}
	c->settle_rounds = 0;
	c->began_ns = c->lit_ns = 0;
	c->n_stage_adds = c->n_stragglers = 0;
	for (int i = c->first; i < c->end; i++) {
		c->n_stage_adds += run_count(&c->runs[i], STORE_ADD);
	}
	if (c->plan->n_stages > 1 && first < c->n_runs) {
		st = &c->plan->stages[c->runs[first].stage];
		snprintf(text, sizeof(text), "stage %d of %d, domain %s: %d to "
			 "delete, %d to make, %d to load",
			 c->runs[first].stage + 1, c->plan->n_stages,
			 st->domain, st->n_del, st->n_add, st->n_loads);
		/* A stage begins with its check, whatever went before. */
		report(c, PHASE_CHECK, NULL, false, text);
	}
}

/* ---- what a phase waits for ---------------------------------------------- */

void change_op_done(struct change *c)
{
	if (--c->waiting == 0) {
		c->walk(c, PHASE_OVER);
	}
}

void change_op_failed(struct apply_run *r, int rc, const struct err *err)
{
	change_fail(r->c, rc, err);
	change_op_done(r->c);
}

static void on_timer(uv_timer_t *timer)
{
	struct apply *a = timer->data;

	a->on_timer(a->timer_arg);
}

void apply_later(struct apply *a, int64_t after_us, void (*fn)(void *arg), void *arg)
{
	if (a->closing) {
		return;
	}
	a->on_timer = fn;
	a->timer_arg = arg;
	/* From now, not from when the loop woke up: else it would be due at once. */
	uv_update_time(a->loop);
	uv_timer_start(&a->timer, on_timer, (uint64_t)(after_us + 999) / 1000, 0);
}
