/*
 * The change under way as a value: what is said of it, what it has come to, who
 * else may ask. The phases stand on this file and know each other only by what they
 * return; phases.c, above them, goes from one to the next.
 */
#include <stdio.h>

#include "controller/apply/private.h"

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

int apply_hangs_on(const struct apply *a, const char **names, int max)
{
	int n = 0;

	for (int i = 0; a->n_open && i < a->open[0].n_works && n < max; i++) {
		const struct store_work *w = &a->open[0].works[i];
		const struct device *d = device_set_find(a->set, w->device);

		if (d && !d->now.elsewhere && !d->now.reachable && work_moves(w)) {
			names[n++] = d->name;
		}
	}
	return n;
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

static void report(struct change *c, enum phase phase, const struct device *d,
		 bool is_problem, const char *text)
{
	struct apply_event ev = {
		.phase = change_phase_name(phase), .device = d ? d->name : "",
		.text = text, .is_problem = is_problem,
		.done = c->done, .total = c->total,
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
static const struct apply_run *find_sending(const struct change *c, const struct device *d)
{
	for (int i = c->first; i < c->end; i++) {
		if (c->runs[i].dev == d) {
			return &c->runs[i];
		}
	}
	return NULL;
}

/* What a device that moves one after the other has left: of its batch by what it
 * tells, of the moves after it at the same pace. */
static int64_t time_left(const struct apply_run *r, const struct drv_event *ev)
{
	int64_t batch = ev->eta_ms > 0 ? ev->eta_ms * 1000000 : 0;
	int in_batch = ev->total - ev->done, later = 0;

	for (int i = 0; i < r->w->n_steps; i++) {
		later += r->w->steps[i].state == STORE_PLANNED &&
			 r->w->steps[i].op <= STORE_ADD && !r->w->steps[i].is_straggler;
	}
	return in_batch > 0 ? batch + batch / in_batch * later : batch;
}

void change_progress(struct change *c, const struct device *d, const struct drv_event *ev)
{
	const struct apply_run *r = c->phase < PHASE_UNDO ? find_sending(c, d) : NULL;
	const struct apply_event e = {
		.phase = change_phase_name(c->phase), .device = d->name, .text = ev->text,
		/* Those of the batch are counted once it is answered. */
		.done = c->done + (r ? ev->done : 0), .total = c->total,
		.eta_ns = r ? time_left(r, ev) : ev->eta_ms > 0 ? ev->eta_ms * 1000000 : 0,
	};

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
