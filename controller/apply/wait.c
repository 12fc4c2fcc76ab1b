/*
 * A change of which others carry out parts: before each stage of its own, and before the
 * commit, it waits until it is told that the others are as far. What then comes is
 * decided by them too: the change goes on, or it is taken back.
 */
#include "controller/apply/private.h"

enum phase wait_or(struct change *c, int first, enum phase phase)
{
	c->next = first;
	if (c->ready) {
		return PHASE_WAIT;
	}
	if (first == c->n_runs) {
		return PHASE_COMMIT;
	}
	change_scope(c, first);
	return phase;
}

void wait_begin(struct change *c)
{
	int n = c->plan->n_stages;
	int stage = c->next < c->n_runs ? c->runs[c->next].stage : n;

	if (stage < n) {
		change_event(c, NULL, false,
			     "waits for the others, then stage %d of %d (domain %s)", stage + 1, n,
			     c->plan->stages[stage].domain);
	} else {
		change_event(c, NULL, false, "waits for the others, then commits");
	}
	if (!c->a->closing) {
		c->ready(stage, c->arg);
	}
}

static void on_wait_over(void *arg)
{
	struct change *c = arg;

	if (c->decided) {
		change_enter(c, PHASE_COMMIT);
		return;
	}
	c->waiting = 1;
	change_op_done(c);
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
