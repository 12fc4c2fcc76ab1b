/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change on its way through the phases.
 *
 * A change is a list of runs, one for each stage and device with something to
 * send, stage by stage. A phase either begins an operation on every run in
 * scope that wants it and waits until all are answered, or does its own thing;
 * the table below says which, and what follows. Phases know neither the table nor this
 * file: they return what comes next, and change_walk() goes there. The first check is of
 * all runs at once, before anything is sent; then the scope narrows to one stage after the
 * other, since a stage touches one failure domain. A failure anywhere leads to undo after
 * the operations under way have been answered, never before: what a device is
 * doing must be known before anything is taken back.
 */
#include "controller/apply/private.h"

/* ---- which devices a phase goes to --------------------------------------- */

static bool wants_all(const struct apply_run *r)
{
	(void)r;
	return true;
}

/* One reading of a device is enough to check all its stages by. */
static bool wants_check(const struct apply_run *r)
{
	return !r->c->whole || r->is_first;
}

static bool wants_delete(const struct apply_run *r)
{
	return !r->replace && (run_count(r, STORE_DEL) > 0 || execute_clears(r));
}

static bool wants_add(const struct apply_run *r)
{
	return r->replace || run_count(r, STORE_ADD) > 0;
}

static bool wants_load(const struct apply_run *r)
{
	return run_count(r, STORE_LOAD) > 0;
}

/* ---- the table ----------------------------------------------------------- */

static const struct phase_def {
	enum phase (*enter)(struct change *c);	/* what comes next; or, for each run: */
	bool (*wants)(const struct apply_run *r);
	void (*begin)(struct apply_run *r);	/* counted in c->waiting */
	enum phase (*over)(struct change *c);	/* after PHASE_OVER; NULL: next */
	enum phase next;
} phases[] = {
	[PHASE_PREPARE] = { .enter = journal_prepare },
	[PHASE_CHECK] = { .wants = wants_check, .begin = precheck_begin, .over = precheck_next },
	[PHASE_WAIT] = { .enter = wait_begin, .over = wait_next },
	[PHASE_DRAIN] = { .enter = drain_begin, .next = PHASE_DELETE },
	[PHASE_DELETE] = { .wants = wants_delete, .begin = execute_begin, .next = PHASE_ADD },
	[PHASE_ADD] = { .wants = wants_add, .begin = execute_begin, .next = PHASE_LOAD },
	[PHASE_LOAD] = { .wants = wants_load, .begin = execute_begin, .next = PHASE_READ_BACK },
	[PHASE_READ_BACK] = { .wants = wants_all, .begin = readback_begin, .next = PHASE_SETTLE },
	[PHASE_SETTLE] = { .enter = readback_settle },
	[PHASE_READ_AGAIN] = { .wants = wants_all, .begin = readback_begin, .over = readback_next },
	[PHASE_VERIFY] = { .enter = verify_begin, .over = verify_next },
	[PHASE_COMMIT] = { .enter = journal_commit },
	[PHASE_UNDO] = { .enter = undo_begin },
	[PHASE_STOP] = { .enter = journal_stop },
};

/* ---- the way ------------------------------------------------------------- */

static enum phase begin_runs(struct change *c, const struct phase_def *def)
{
	c->waiting = 1;
	for (int i = c->first; i < c->end; i++) {
		if (def->wants(&c->runs[i])) {
			c->waiting++;
			def->begin(&c->runs[i]);
		}
	}
	return --c->waiting ? PHASE_WAITS : PHASE_OVER;
}

/* All that the phase waited for has been answered. */
static enum phase follow(struct change *c)
{
	const struct phase_def *def = &phases[c->phase];
	struct err err = { 0 };
	enum phase next = def->next;

	if (c->cancel && !c->rc) {
		err_set(&err, WEFT_ECANCELED, "stopped on request");
		change_fail(c, err.code, &err);
	}
	if (!c->rc && def->over) {
		next = def->over(c);
	}
	return !c->rc ? next : c->stop ? PHASE_STOP : PHASE_UNDO;
}

void change_walk(struct change *c, enum phase next)
{
	while (next != PHASE_WAITS) {
		if (next == PHASE_END) {
			change_end(c);
			return;
		}
		if (c->a->closing) {
			return;		/* an event's receiver closed the engine */
		}
		if (next == PHASE_OVER) {
			next = follow(c);
			continue;
		}
		c->phase = next;
		next = phases[next].enter ? phases[next].enter(c) : begin_runs(c, &phases[next]);
	}
}

/* ---- from outside -------------------------------------------------------- */

void apply_cancel(struct apply *a)
{
	if (!a->change) {
		return;
	}
	a->change->cancel = true;
	for (int i = 0; i < a->change->n_runs && a->change->phase < PHASE_UNDO; i++) {
		device_cancel(a->change->runs[i].dev);
	}
}

static void on_wait_over(void *arg)
{
	struct change *c = arg;

	change_walk(c, c->decided ? PHASE_COMMIT : PHASE_OVER);
}

void apply_go_on(struct apply *a)
{
	struct change *c = a->change;

	if (!c || c->phase != PHASE_WAIT || c->rc) {
		return;
	}
	c->decided = c->next == c->n_runs;
	apply_later(a, 0, on_wait_over, c);
}

void apply_take_back(struct apply *a, int rc, const struct err *err)
{
	struct change *c = a->change;

	if (!c || c->decided || c->phase >= PHASE_COMMIT) {
		return;
	}
	change_fail(c, rc, err);
	if (c->phase == PHASE_WAIT) {
		apply_later(a, 0, on_wait_over, c);
	} else {
		apply_cancel(a);
	}
}
