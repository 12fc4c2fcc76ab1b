/* SPDX-License-Identifier: Apache-2.0 */
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

enum phase wait_begin(struct change *c)
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
	return PHASE_WAITS;
}

enum phase wait_next(struct change *c)
{
	/* Time has passed since its first check. */
	change_scope(c, c->next);
	return PHASE_CHECK;
}
