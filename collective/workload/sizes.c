/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules of a collective whose calls have several sizes, under one light: the lower envelope of
 * their times, which are lines over sizes. It is concave, so a schedule that is not known yet saves
 * the most, of what two known ones take that are next to each other, where their lines meet.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"

/* Schedules of a range at most. */
#define MAX_RANGES 16
/* A schedule is worth a range where others take so many times as long. */
#define WORTH 1.01
/* Of which the slope of a line is taken. */
#define FAR_BYTES (INT64_C(1) << 40)

struct sized_schedule {
	int64_t bytes;		/* that it was made for */
	struct coll_sched *sched;
	double fixed, slope;	/* its time is fixed + slope x bytes */
};

struct size_table {
	const struct workload *w;
	const struct workload_plan *plan;
	struct workload_use use;	/* the largest, without a schedule */
	VEC(struct sized_schedule) v;	/* by size */
};

static double time_at(const struct sized_schedule *s, double bytes)
{
	return s->fixed + s->slope * bytes;
}

/* The size from which the second is faster, within those that the two were made for. */
static double crossing(const struct sized_schedule *a, const struct sized_schedule *b)
{
	double at = a->slope > b->slope ? (b->fixed - a->fixed) / (a->slope - b->slope)
					: (double)(a->fixed > b->fixed ? a->bytes : b->bytes);

	return floor(fmin(fmax(at, (double)a->bytes), (double)b->bytes));
}

/* One for calls of so many bytes, into the table at a place. */
static int add_sized(struct size_table *t, int64_t bytes, size_t at, struct err *err)
{
	const struct workload_plan *plan = t->plan;
	struct sized_schedule s = { .bytes = bytes };
	struct workload_use use = t->use;
	struct coll_cost cost;
	int64_t fixed = 0, whole = 0;
	int rc;

	use.max_bytes = bytes;
	rc = use_schedule(t->w, &plan->params, &plan->lights.v[use.light], &use, &cost, err);
	if (rc) {
		return rc;
	}
	cost.size_bytes = 0;
	rc = coll_time(use.sched, NULL, &cost, &fixed, NULL, err);
	cost.size_bytes = FAR_BYTES;
	if (rc == 0) {
		rc = coll_time(use.sched, NULL, &cost, &whole, NULL, err);
	}
	s.sched = use.sched;
	s.fixed = (double)fixed;
	s.slope = (double)(whole - fixed) / (double)FAR_BYTES;
	vec_push(&t->v, s);
	for (size_t i = t->v.n - 1; i > at; i--) {
		t->v.v[i] = t->v.v[i - 1];
		t->v.v[i - 1] = s;
	}
	return rc;
}

static void drop_sized(struct size_table *t, size_t at)
{
	coll_free(t->v.v[at].sched);
	for (; at + 1 < t->v.n; at++) {
		t->v.v[at] = t->v.v[at + 1];
	}
	t->v.n--;
}

/* Between each two that are next to each other, what saves enough where their lines meet. */
static int refine(struct size_table *t, struct err *err)
{
	size_t i = 0;
	int rc = 0;

	while (i + 1 < t->v.n && t->v.n < MAX_RANGES && !rc) {
		const struct sized_schedule *a = &t->v.v[i], *b = a + 1;
		double at = crossing(a, b), best = fmin(time_at(a, at), time_at(b, at));

		if (at <= (double)a->bytes || at >= (double)b->bytes) {
			i++;
			continue;
		}
		rc = add_sized(t, (int64_t)at, i + 1, err);
		if (!rc && time_at(&t->v.v[i + 1], at) * WORTH >= best) {
			drop_sized(t, ++i);
		}
	}
	return rc;
}

/* Drops those that their neighbours come near wherever they are the fastest; never the last, which
 * the plan counts with. */
static void merge(struct size_table *t)
{
	const int64_t min = t->w->ops.v[t->use.op].min_bytes;
	size_t i = 0;

	while (i + 1 < t->v.n) {
		const struct sized_schedule *s = &t->v.v[i];
		double at = i > 0 ? crossing(s - 1, s + 1) : (double)min;

		if (time_at(s + 1, at) <= time_at(s, at) * WORTH) {
			drop_sized(t, i);
			i -= i > 0;
		} else {
			i++;
		}
	}
}

/* Ranges in place of the use, from where one line meets the next to where that meets the next. */
static void put_uses(struct size_table *t, struct workload_plan *plan, size_t *at)
{
	const struct workload_planner pl = { .w = t->w, .p = &plan->params };
	struct workload_op op = t->w->ops.v[t->use.op];
	int64_t from = op.min_bytes, end = op.bytes;
	size_t tail = plan->uses.n - *at - 1;

	for (size_t i = 1; i < t->v.n; i++) {
		vec_push(&plan->uses, t->use);
	}
	for (size_t i = 0; i < tail; i++) {
		plan->uses.v[plan->uses.n - 1 - i] = plan->uses.v[*at + tail - i];
	}
	for (size_t i = 0; i < t->v.n; i++) {
		const struct sized_schedule *s = &t->v.v[i];

		op.bytes = i + 1 < t->v.n ? (int64_t)crossing(s, s + 1) : end;
		plan->uses.v[*at + i] = (struct workload_use){ t->use.op, t->use.light, from,
							      op.bytes,
							      time_at(s, (double)op.bytes),
							      call_bound(&pl, &op), s->sched,
							      false };
		from = op.bytes + 1;
	}
	*at += t->v.n - 1;
	t->v.n = 0;
}

int make_ranges(const struct workload *w, struct workload_plan *plan, size_t *use, struct err *err)
{
	struct size_table t = { w, plan, plan->uses.v[*use], { 0 } };
	const struct workload_op *op = &w->ops.v[t.use.op];
	int rc = add_sized(&t, op->min_bytes, 0, err);

	if (!rc && (rc = add_sized(&t, op->bytes, 1, err)) == 0 && (rc = refine(&t, err)) == 0) {
		merge(&t);
		put_uses(&t, plan, use);
	}
	while (t.v.n > 0) {
		drop_sized(&t, 0);
	}
	vec_fini(&t.v);
	return rc;
}
