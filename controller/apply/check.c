/* The check before a stage: is everything as its plan found it? */
#include <stdio.h>
#include <stdlib.h>

#include "controller/apply/private.h"

/* Whether one command for the whole map is right: it must save commands and
 * put no circuit at risk that the plan does not move, as a device may cut the
 * command short and this process may not live to repair it. */
static bool replace_saves(const struct run *r)
{
	const struct drv_snapshot *s = &r->dev->now.snap;
	int n_del = run_count(r, STORE_DEL);
	int n_add = run_count(r, STORE_ADD);
	int max = s->caps.max_batch;

	/* All deleted ones are there, so an equal count means that there are
	 * no others. */
	return s->caps.atomic_replace && n_del && n_add && !r->w->is_ring &&
	       run_count(r, STORE_KEEP) == 0 && (max == 0 || n_add <= max) &&
	       s->n_xcs == n_del;
}

static int remember_before(struct run *r, struct err *err)
{
	const struct drv_snapshot *s = &r->dev->now.snap;

	free(r->before);
	r->before = calloc(s->n_xcs + 1, sizeof(*r->before));
	if (!r->before) {
		return err_nomem(err);
	}
	for (r->n_before = 0; r->n_before < s->n_xcs; r->n_before++) {
		r->before[r->n_before] = s->xcs[r->n_before].xc;
	}
	snprintf(r->epoch, sizeof(r->epoch), "%s", s->epoch);
	r->replace = replace_saves(r);
	return 0;
}

static void on_checked(struct device *d, int rc, const struct err *err,
		       void *arg)
{
	struct run *r = arg;
	struct err own = { 0 };

	if (rc == 0) {
		err = &own;
		rc = compare_before(r->w, r->c->whole ? STAGE_ALL : r->stage,
				    d, &own);
		rc = rc ? rc : remember_before(r, &own);
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

void check_begin(struct run *r)
{
	device_read(r->dev, &r->op, on_checked, r);
}
