/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What decides over a stage beyond the devices' maps (docs/drivers.md, line 7
 * of the list): what its circuits lose, whom receivers hear, and whether they
 * count errors. A circuit that fails is left to be repaired while the gate
 * allows it. Layers that the fabric does not ask for are looked at where that
 * costs nothing, and told.
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

static enum apply_level wanted(const struct change *c)
{
	return (enum apply_level)(APPLY_SETTLED + c->set->fabric->changes.verify);
}

/* ---- loss ---------------------------------------------------------------- */

/* How far the device itself has proven a circuit. */
static enum apply_level by_device(const struct apply_run *r, struct optics_xc xc)
{
	const struct drv_xc *x = snap_find(&r->dev->now.snap, xc);

	return !r->unmeasured || (x && x->has_loss) ? APPLY_MEASURED : APPLY_SETTLED;
}

static void fail_circuit(struct apply_run *r, int step, enum apply_level layer,
			 const struct err *err)
{
	if (r->w->steps[step].is_straggler) {
		return;
	}
	if (!tolerance_allows(r, step, layer, err)) {
		change_fail(r->c, err->code, err);
	}
}

static void judge_loss(struct apply_run *r, int step)
{
	struct store_step *st = &r->w->steps[step];
	const struct drv_xc *x = snap_find(&r->dev->now.snap, st->xc);
	struct apply_loss l = { 0 };
	struct err err = { 0 };
	char text[128];

	st->proof = (int)by_device(r, st->xc);
	if (x) {
		loss_judge(r->dev, x, &l);
	}
	if (!l.over && !l.worse) {
		return;
	}
	st->proof = APPLY_SETTLED;
	loss_text(x, &l, text, sizeof(text));
	if (wanted(r->c) >= APPLY_MEASURED) {
		err_set(&err, WEFT_EVERIFY, "%s: %s", r->dev->name, text);
		fail_circuit(r, step, APPLY_MEASURED, &err);
	} else {
		change_event(r->c, r->dev, true, "%s", text);
	}
}

static void judge_losses(struct change *c)
{
	for (int i = c->first; i < c->end; i++) {
		struct apply_run *r = &c->runs[i];

		for (int k = r->begin; k < r->end && !c->rc; k++) {
			if (r->w->steps[k].op == STORE_ADD && !r->w->steps[k].is_straggler) {
				judge_loss(r, k);
			}
		}
	}
}

/* ---- hosts --------------------------------------------------------------- */

/* The circuits of the paths, as the plan has them. */
struct path_hops {
	struct plan_hop *hops;
	int *first;		/* [paths + 1] */
};

/* The run that made a circuit on a path, and its step; NULL: it was there. */
static struct apply_run *maker(struct change *c, const struct plan_hop *hop, int *step)
{
	for (int i = 0; i < c->end; i++) {
		struct apply_run *r = &c->runs[i];

		if (r->dev != c->set->v[hop->device]) {
			continue;
		}
		*step = step_find(r->w, r->stage, STORE_ADD, hop->xc);
		if (*step >= 0) {
			return r;
		}
	}
	return NULL;
}

/* Every circuit is as good as the worst of its paths: those of any-to-any
 * switches have two. */
static void raise_levels(struct change *c, const struct path_hops *w, bool lower)
{
	const struct apply_question *q = &c->question;

	for (int i = 0; i < q->n; i++) {
		int level = (int)q->paths[i].level;

		for (int h = w->first[i]; h < w->first[i + 1]; h++) {
			int step = -1;
			struct apply_run *r = maker(c, &w->hops[h], &step);
			struct store_step *st = r ? &r->w->steps[step] : NULL;

			if (!st) {
				continue;
			}
			if (!lower && level > st->proof) {
				st->proof = level;
			} else if (lower && level < st->proof) {
				int own = (int)by_device(r, st->xc);

				st->proof = level > own ? level : own;
			}
		}
	}
}

/* What this stage made of a path that failed; what it did not make has passed
 * its own gate. */
static void fail_path(struct change *c, const struct path_hops *w, int path)
{
	const struct apply_path *p = &c->question.paths[path];
	struct err err = { 0 };
	char xc[48];
	int n = 0;

	for (int h = w->first[path]; h < w->first[path + 1]; h++) {
		int step = -1;
		struct apply_run *r = maker(c, &w->hops[h], &step);

		if (!r || r->stage != c->question.stage || c->rc) {
			continue;
		}
		err_set(&err, WEFT_EVERIFY, "%s: %s: %s", r->dev->name,
			xc_text(w->hops[h].xc, xc, sizeof(xc)), p->why);
		fail_circuit(r, step, p->failed, &err);
		n++;
	}
	if (n == 0 && !c->rc) {
		change_event(c, NULL, true, "%s", p->why);
	}
}

static void judge_path(struct change *c, const struct path_hops *w, int path)
{
	const struct apply_path *p = &c->question.paths[path];

	if (!p->failed) {
		return;
	}
	if (p->failed <= wanted(c)) {
		fail_path(c, w, path);
	} else {
		change_event(c, NULL, true, "%s", p->why);
	}
}

/* How far all that could be asked has come, and what could not. */
static void report_paths(struct change *c)
{
	const struct apply_question *q = &c->question;
	const char *why = "";
	int n_heard = 0, n_silent = 0;

	for (int i = 0; i < q->n; i++) {
		const struct apply_path *p = &q->paths[i];

		n_heard += p->level >= APPLY_NEIGHBOUR;
		if (p->level < APPLY_NEIGHBOUR && !p->failed) {
			why = n_silent++ ? why : p->why;
		}
	}
	if (wanted(c) < APPLY_NEIGHBOUR) {
		return;
	}
	change_event(c, NULL, false, "%d of %d lightpaths proven by their "
		     "neighbours%s", n_heard, q->n,
		     wanted(c) == APPLY_ERROR_FREE ? " and without errors" :
						     "");
	if (n_silent) {
		change_event(c, NULL, false, "%d cannot be asked: %s", n_silent, why);
	}
}

static bool any_answer(const struct apply_question *q)
{
	for (int i = 0; i < q->n; i++) {
		if (q->paths[i].level || q->paths[i].failed) {
			return true;
		}
	}
	return false;
}

static int find_path_hops(const struct apply_question *q, struct path_hops *w, struct err *err)
{
	struct plan_arc *arcs = x_new((size_t)q->n + 1, sizeof(*arcs));
	int rc;

	for (int i = 0; i < q->n; i++) {
		arcs[i] = q->paths[i].arc;
	}
	rc = plan_arc_hops(q->plan, q->stage, arcs, q->n, &w->hops, &w->first, err);
	free(arcs);
	return rc;
}

static void apply_answers(struct change *c)
{
	const struct apply_question *q = &c->question;
	struct path_hops w = { 0 };
	struct err err = { 0 };
	int rc = find_path_hops(q, &w, &err);

	if (rc) {
		change_fail(c, rc, &err);
	} else {
		raise_levels(c, &w, false);
		raise_levels(c, &w, true);
	}
	for (int i = 0; i < q->n && !c->rc; i++) {
		judge_path(c, &w, i);
	}
	free(w.hops);
	free(w.first);
}

static void on_verified(struct apply_question *q)
{
	struct change *c = q->arg;

	report_paths(c);
	if (any_answer(q)) {
		apply_answers(c);
	}
	change_op_done(c);
}

enum phase verify_begin(struct change *c)
{
	struct plan_arc *arcs;
	int n;

	judge_losses(c);
	if (c->rc || !c->a->hosts.verify) {
		return PHASE_OVER;
	}
	plan_stage_adds(c->plan, c->runs[c->first].stage, &arcs, &n);
	return ask_hosts(c, arcs, n, on_verified, c->a->hosts.verify);
}

/* ---- the end of a stage -------------------------------------------------- */

/* The least of the circuits that it made. */
static enum apply_level level_of(const struct apply_run *r)
{
	enum apply_level least = r->w->is_ring ? (r->unmeasured ?
			APPLY_SETTLED : APPLY_MEASURED) : APPLY_ERROR_FREE;
	int n = 0;

	for (int i = r->begin; i < r->end; i++) {
		const struct store_step *st = &r->w->steps[i];

		if (st->is_straggler && !st->layer) {
			return APPLY_UNVERIFIED;	/* it is not there */
		}
		if (st->op == STORE_ADD) {
			n++;
			least = st->proof < (int)least ? (enum apply_level)st->proof : least;
		}
	}
	return n || r->w->is_ring ? least : APPLY_SETTLED;
}

/* What stays was read twice as well. */
static void prove_kept(struct apply_run *r)
{
	for (int i = 0; i < r->w->n_steps; i++) {
		if (r->w->steps[i].op == STORE_KEEP) {
			r->w->steps[i].proof = APPLY_SETTLED;
		}
	}
}

/* When the last of its light was seen to be there: by hosts if all of them
 * could be asked. */
static int64_t stage_end(const struct change *c, bool *by_hosts)
{
	const struct apply_question *q = &c->question;
	int64_t end = 0;

	*by_hosts = c->a->hosts.verify && q->n > 0;
	for (int i = 0; i < q->n && *by_hosts; i++) {
		*by_hosts = q->paths[i].up_ns > 0;
		end = q->paths[i].up_ns > end ? q->paths[i].up_ns : end;
	}
	return *by_hosts ? end : c->lit_ns;
}

static void count_outage(struct change *c)
{
	struct store_change *ch = &c->journal.change;
	bool by_hosts;
	int64_t away = stage_end(c, &by_hosts) - c->began_ns;

	if (c->began_ns && away > ch->down_ns) {
		ch->down_ns = away;
		ch->downtime_source = by_hosts ? APPLY_NEIGHBOUR : APPLY_ACKED;
	}
}

enum phase verify_next(struct change *c)
{
	const struct apply_hosts *h = &c->a->hosts;

	for (int i = 0; i < c->end; i++) {
		c->runs[i].proof = level_of(&c->runs[i]);
		prove_kept(&c->runs[i]);
	}
	count_outage(c);
	if (h->report_verified && c->question.n) {
		h->report_verified(&c->question, h->arg);
	}
	c->question.n = 0;
	return wait_or(c, c->end, PHASE_CHECK);
}
