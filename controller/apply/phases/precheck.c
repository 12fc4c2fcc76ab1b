/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check before a stage: is everything as its plan found it? Ports and
 * circuits that the stage does not touch may have changed; whatever it deletes,
 * makes or needs must be as it was, or the change stops before this stage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

static bool replaces(const struct apply_run *r)
{
	const struct drv_snapshot *s = &r->dev->now.snap;
	const struct batch_stage stage = {
		.n_del = run_count(r, STORE_DEL),
		.n_add = run_count(r, STORE_ADD),
		.n_keep = run_count(r, STORE_KEEP),
		.n_there = s->n_xcs,
	};

	return !r->w->is_ring && batch_replaces_map(&s->caps, &stage);
}

static void remember_before(struct apply_run *r)
{
	const struct drv_snapshot *s = &r->dev->now.snap;

	free(r->before);
	r->before = x_new(s->n_xcs + 1, sizeof(*r->before));
	for (r->n_before = 0; r->n_before < s->n_xcs; r->n_before++) {
		r->before[r->n_before] = s->xcs[r->n_before].xc;
	}
	snprintf(r->epoch, sizeof(r->epoch), "%s", s->epoch);
	r->replace = replaces(r);
}

static void on_checked(struct device *d, int rc, const struct err *err, void *arg)
{
	struct apply_run *r = arg;
	struct err own = { 0 };

	if (rc == 0) {
		err = &own;
		rc = compare_before(r->w, r->c->whole ? STAGE_ALL : r->stage, d, &own);
		if (rc == 0) {
			remember_before(r);
		}
	}
	if (rc) {
		change_op_failed(r, rc, err);
		return;
	}
	if (d->now.restarted) {
		change_event(r->c, d, true, "%s restarted since it was last "
			     "read", d->name);
	}
	change_event(r->c, d, false, "as the plan expects");
	change_op_done(r->c);
}

void precheck_begin(struct apply_run *r)
{
	device_read(r->dev, &r->op, on_checked, r);
}

/* ---- power --------------------------------------------------------------- */

static void report_doubts(struct change *c)
{
	char text[PLAN_DOUBT_TEXT];

	for (int i = 0; i < c->plan->n_jobs; i++) {
		const struct plan_job *pj = &c->plan->jobs[i];

		for (int k = 0; k < pj->n_paths; k++) {
			if (plan_power_doubt(c->plan->fabric, &pj->paths[k], text, sizeof(text))) {
				change_event(c, NULL, true, "%s", text);
			}
		}
	}
}

/* The plan may have been made before its devices were read, and lasers since
 * then switched on or off. */
static int check_power(struct change *c, struct err *err)
{
	struct plan_base base;
	int rc;

	apply_plan_base(c->a, c->set->fabric, c->plan->mode, &base);
	base.is_rollback = c->plan->is_rollback;
	rc = plan_recheck_power(c->plan, &base, err);
	if (rc == 0) {
		report_doubts(c);
	}
	return rc;
}

enum phase precheck_next(struct change *c)
{
	struct err err = { 0 };
	int rc = c->whole ? check_power(c, &err) : 0;

	if (rc) {
		change_fail(c, rc, &err);
		return PHASE_UNDO;
	}
	return c->whole ? wait_or(c, 0, PHASE_DRAIN) : PHASE_DRAIN;
}
