/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums that a rank keeps to send them on.
 *
 * All that comes in a step under a number is added up in a place of scratch of its own, which
 * nothing is written to after the step. So what was sent on from there needs no copy; what has
 * come under a number in several steps, or is merged with other sums, is added up once before the
 * step that first sends it.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "runtime/lower/private.h"

ORDER_BY(by_message, struct lower_piece, message, id, copy)

static uint64_t number_key(const struct lower_walk *w, int rank, int number, int64_t id)
{
	return ((uint64_t)rank * 2 * (uint64_t)w->n + (uint64_t)number) * (uint64_t)w->ids +
	       (uint64_t)id;
}

void lower_sums_init(struct lower_walk *w)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(w->s, &n);

	for (int64_t i = 0; i < n && coll_forwards(w->s); i++) {
		int32_t id = lower_id(w, &x[i]);
		int32_t end = id + (x[i].last + 1 - x[i].first) / w->unit;
		int src = topo_arc(coll_topo(w->s), x[i].arc)->src;

		for (; id < end && x[i].op == COLL_OP_FORWARD; id++) {
			u64map_set(&w->sums.numbers, number_key(w, src, x[i].dest, id), 0);
			u64map_set(&w->sums.numbers, number_key(w, src, x[i].dest + w->n, id), 0);
		}
	}
}

void lower_sums_fini(struct lower_sums *k)
{
	u64map_fini(&k->numbers);
	vec_fini(&k->arrivals);
	free(k->copies);
	u64map_fini(&k->added);
	vec_fini(&k->additions);
	u64map_fini(&k->saved);
}

void lower_sums_step(struct lower_walk *w)
{
	u64map_fini(&w->sums.added);
	u64map_fini(&w->sums.saved);
	w->sums.additions.n = 0;
}

/* A copy in which chunk id of the rank is free. The first is for values on their way, if they have
 * no other place. */
static int take_copy(struct lower_walk *w, int rank, int64_t id, uint16_t *copy)
{
	size_t cells = (size_t)(w->ids * w->n);
	uint16_t *next;

	if (!w->sums.copies) {
		w->sums.copies = x_new(cells, sizeof(*w->sums.copies));
		for (size_t i = 0; i < cells; i++) {
			w->sums.copies[i] = w->kind == COLL_REDUCE_SCATTER;
		}
	}
	next = &w->sums.copies[rank * w->ids + id];
	if ((*next + 1) * w->ids > INT32_MAX || *next == UINT16_MAX - 1) {
		return WEFT_ELIMIT;
	}
	*copy = (*next)++;
	return 0;
}

/* What came under a number before this step. */
static void push_parts(struct lower_walk *w, int number, struct lower_piece q)
{
	const struct lower_arrival *v = w->sums.arrivals.v;
	uint64_t at = 0;

	u64map_get(&w->sums.numbers, number_key(w, q.src, number, q.id), &at);
	for (; at > 0; at = (uint64_t)v[at - 1].before) {
		if (v[at - 1].step < w->step) {
			q.copy = v[at - 1].copy;
			q.near = v[at - 1].near;
			vec_push(&w->pieces, q);
		}
	}
}

int lower_sums_parts(struct lower_walk *w, const struct coll_xfer *x, struct lower_piece q)
{
	size_t before = w->pieces.n;

	q.copy = -1;
	if (x->op != COLL_OP_FORWARD) {
		vec_push(&w->pieces, q);
		return 0;
	}
	push_parts(w, x->dest, q);
	push_parts(w, x->dest + w->n, q);
	return w->pieces.n > before ? 0 : WEFT_EINVAL;
}

/* The copy that will have the sum of q's and copy b, -1: q's value; once in a step. */
static int add_copy(struct lower_walk *w, struct lower_piece *q, int b, int near)
{
	uint64_t key = (uint64_t)(q->src * w->ids + q->id) << 32 |
		       (uint64_t)(q->copy + 1) << 16 | (uint64_t)(b + 1), known;
	uint16_t copy;
	int rc;

	if (u64map_get(&w->sums.added, key, &known)) {
		q->copy = (int32_t)known;
		return 0;
	}
	rc = take_copy(w, q->src, q->id, &copy);
	if (rc) {
		return rc;
	}
	vec_push(&w->sums.additions, (struct lower_addition){
		q->src, q->id, q->copy < 0 && w->got[q->src * w->ids + q->id] ? -2 : q->copy, b,
		copy, near });
	u64map_set(&w->sums.added, key, copy);
	q->copy = copy;
	q->near = near;
	return 0;
}

void lower_sums_save(struct lower_walk *w, int rank, int64_t id)
{
	u64map_set(&w->sums.saved, (uint64_t)(rank * w->ids + id), 1);
}

int lower_sums_saved(struct lower_walk *w, struct lower_piece *q)
{
	bool self = q->src == q->dst;

	return q->copy < 0 && (self || u64map_get(&w->sums.saved,
						  (uint64_t)(q->src * w->ids + q->id), NULL))
		       ? add_copy(w, q, -1, self ? lower_neighbour(w, q->src) : q->dst) : 0;
}

int lower_sums_join(struct lower_walk *w)
{
	struct lower_piece *v = w->pieces.v;
	size_t n = 0;
	int rc = 0;

	qsort(v, w->pieces.n, sizeof(*v), by_message);
	for (size_t i = 0; i < w->pieces.n && !rc; i++) {
		if (n > 0 && v[n - 1].message == v[i].message && v[n - 1].id == v[i].id) {
			/* A value of its own twice is in no verified schedule. */
			rc = v[i].copy < 0 ? WEFT_EINVAL
					   : add_copy(w, &v[n - 1], v[i].copy, v[i].near);
		} else {
			v[n++] = v[i];
		}
	}
	w->pieces.n = n;
	return rc;
}

int lower_sums_keep(struct lower_walk *w, struct lower_piece *q)
{
	uint64_t key = number_key(w, q->dst, q->number, q->id), known;
	struct lower_arrival next = {
		.step = w->step,
		.near = q->src == q->dst ? lower_neighbour(w, q->dst) : q->src };
	struct lower_arrival *a;
	bool apart = q->number >= w->n;

	/* What is apart comes somewhere, though it is not sent on. */
	if (apart && q->number < 2 * w->n && !u64map_get(&w->sums.numbers, key, NULL)) {
		u64map_set(&w->sums.numbers, key, 0);
	}
	if (q->number == 2 * w->n || !u64map_get(&w->sums.numbers, key, &known)) {
		return 0;
	}
	if (known == 0 || w->sums.arrivals.v[known - 1].step != w->step) {
		if (take_copy(w, q->dst, q->id, &next.copy)) {
			return WEFT_ELIMIT;
		}
		next.before = (int32_t)known;
		vec_push(&w->sums.arrivals, next);
		known = w->sums.arrivals.n;
		u64map_set(&w->sums.numbers, key, known);
	}
	a = &w->sums.arrivals.v[known - 1];
	if (a->try != w->sums.try) {
		a->try = w->sums.try;
		a->parts = a->met = 0;
	}
	a->parts++;
	q->keep = a->copy;
	return 0;
}

void lower_sums_meet(struct lower_walk *w, const struct lower_piece *q, int32_t k, bool *first,
		     bool *last)
{
	struct lower_arrival *a;
	uint64_t known = 0;

	u64map_get(&w->sums.numbers, number_key(w, q->dst, q->number, q->id + k), &known);
	a = &w->sums.arrivals.v[known - 1];
	*first = a->met++ == 0;
	*last = a->met == a->parts;
}
