/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of a plan that want the same of as many hosts and ports have the same topologies to choose
 * from, in the same order: these are looked for once, and a schedule is made once. What a job gets
 * is what it would get alone. All-to-alls, whose next best is what happens to be timed, are looked
 * for each by itself.
 */
#include <stdlib.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

#define MAX_SHARED_XFERS (1 << 16)	/* longer schedules are made again rather than kept */

/* One that was given, and its schedule as bytes once it was made. */
struct given {
	struct coll_choice choice;
	struct buf sched;
	const struct coll_algorithm *algorithm;
	struct coll_made_torus torus;
};

struct plan_choices {
	struct coll_want w;
	struct coll_choices *all;
	VEC(struct given) given;
};

static void choices_free(struct plan_choices *c)
{
	for (size_t i = 0; c && i < c->given.n; i++) {
		buf_fini(&c->given.v[i].sched);
	}
	if (c) {
		vec_fini(&c->given);
		coll_choices_free(c->all);
	}
	free(c);
}

void plan_choices_fini(struct plan_ctx *ctx)
{
	for (int i = 0; i < PLAN_SHARED_CHOICES; i++) {
		choices_free(ctx->choices[i]);
	}
}

static bool same_cost(const struct coll_cost *a, const struct coll_cost *b)
{
	return a->alpha_ns == b->alpha_ns && a->hop_ns == b->hop_ns &&
	       a->message_ns == b->message_ns && a->retune_ns == b->retune_ns &&
	       a->link_bps == b->link_bps && a->size_bytes == b->size_bytes &&
	       a->steps_overlap == b->steps_overlap && a->forwards == b->forwards;
}

static bool same_want(const struct coll_want *a, const struct coll_want *b)
{
	return a->q.kind != COLL_ALLTOALL && a->q.kind == b->q.kind && a->q.n == b->q.n &&
	       a->q.degree == b->q.degree && a->q.bidirectional == b->q.bidirectional &&
	       a->algorithm == b->algorithm && same_cost(&a->cost, &b->cost);
}

int plan_choices_of(struct plan_ctx *ctx, const struct coll_want *w, struct plan_choices **out,
		    struct err *err)
{
	struct plan_choices **place;
	int rc;

	for (int i = 0; i < PLAN_SHARED_CHOICES; i++) {
		if (ctx->choices[i] && same_want(&ctx->choices[i]->w, w)) {
			*out = ctx->choices[i];
			return 0;
		}
	}
	place = &ctx->choices[ctx->next_choices++ % PLAN_SHARED_CHOICES];
	choices_free(*place);
	*out = *place = x_new(1, sizeof(**place));
	(*out)->w = *w;
	rc = coll_choices_new(w, NULL, &(*out)->all, err);
	if (rc) {
		choices_free(*out);
		*place = NULL;
	}
	return rc;
}

struct coll_choices *plan_choices_all(const struct plan_choices *c)
{
	return c->all;
}

int plan_choices_get(struct plan_choices *c, size_t k, struct coll_choice *out, struct err *err)
{
	struct given g = { 0 };
	int rc;

	if (k >= c->given.n) {
		rc = coll_choices_next(c->all, &g.choice, err);
		if (rc) {
			return rc;
		}
		vec_push(&c->given, g);
	}
	*out = c->given.v[k].choice;
	return 0;
}

/* A copy of the schedule that was made before. */
static int copy_made(const struct plan_choices *c, const struct given *g, struct coll_made *out,
		     struct err *err)
{
	int rc = coll_from_proto(g->sched.data, g->sched.len, &out->sched, err);

	if (rc == 0 && (rc = coll_verify(out->sched, &out->report, err)) == 0) {
		rc = coll_time(out->sched, &out->report, &c->w.cost, &out->time_ns,
			       &out->bound_ns, err);
	}
	out->algorithm = g->algorithm;
	out->torus = g->torus;
	return rc;
}

int plan_choices_make(struct plan_choices *c, size_t k, struct coll_made *out, struct err *err)
{
	struct given *g = &c->given.v[k];
	int rc;

	*out = (struct coll_made){ 0 };
	if (g->sched.len > 0) {
		coll_report_init(&out->report);
		return copy_made(c, g, out, err);
	}
	rc = coll_choices_make(c->all, g->choice.expr, out, err);
	if (rc == 0 && c->w.q.kind != COLL_ALLTOALL &&
	    out->report.transfers <= MAX_SHARED_XFERS) {
		coll_to_proto(out->sched, &g->sched);
		g->algorithm = out->algorithm;
		g->torus = out->torus;
	}
	return rc;
}
