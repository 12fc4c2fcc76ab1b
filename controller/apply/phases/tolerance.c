/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change goes on without, and what stops it: the fabric's `gate` is the
 * share of a stage's new circuits that must be there and verified. Those that
 * are not, within the rest, are marked in the journal and put on the list of
 * repairs right before the commit, so that none is forgotten by a crash.
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

bool tolerance_allows(struct apply_run *r, int step, enum apply_level layer, const struct err *err)
{
	struct change *c = r->c;
	const struct model_changes *ch = &c->set->fabric->changes;
	struct store_step *st = &r->w->steps[step];
	int64_t verified = c->n_stage_adds - c->n_stragglers - 1;

	if (st->op != STORE_ADD || st->stage != r->stage || (r->replace && !layer)) {
		return false;
	}
	if (verified * MODEL_PPM < c->n_stage_adds * ch->gate_ppm) {
		c->stop = c->stop || (ch->stop && !c->rc);
		return false;
	}
	c->n_stragglers++;
	st->is_straggler = true;
	st->layer = (int)layer;
	store_set_note(st, "%s", err->msg);
	change_event(c, r->dev, true, "left to be repaired: %s", err->msg);
	return true;
}

int tolerance_record(struct change *c, int *n, struct err *err)
{
	struct store_repair *v;
	int rc, max = 0;

	for (int i = 0; i < c->journal.n_works; i++) {
		max += c->journal.works[i].n_steps;
	}
	v = x_new(max + 1, sizeof(*v));
	*n = 0;
	for (int i = 0; i < c->journal.n_works; i++) {
		struct store_work *w = &c->journal.works[i];

		for (int k = 0; k < w->n_steps; k++) {
			if (w->steps[k].is_straggler) {
				v[(*n)++] = (struct store_repair){
					.device = w->device,
					.xc = w->steps[k].xc,
					.change = c->journal.change.id,
					.layer = w->steps[k].layer,
					.why = w->steps[k].note ? w->steps[k].note : (char *)"" };
			}
		}
	}
	rc = *n ? store_repairs_put(c->a->store, v, *n, err) : 0;
	free(v);
	return rc;
}
