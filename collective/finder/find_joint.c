/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs that serve an all-reduce and an all-to-all: what is considered for the flow of the one,
 * with the steps and T_B of the other, and of these all that no other beats in all three.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/alloc.h"

struct finder_joint {
	const struct coll_flow_query *q;
	struct coll_finder *finder;
	struct coll_frontier frontier;	/* of all-reduces */
	VEC(struct coll_flow_point) points;
};

/* The figures of an all-reduce: those of the frontier, or computed where that is no long work;
 * false: neither. */
static bool fill(struct finder_joint *j, struct coll_flow_point *p)
{
	struct finder_candidate c = { 0 };
	struct bfb_ratio sum;
	struct topo *t = NULL;
	int ports;

	for (size_t i = 0; i < j->frontier.points.n; i++) {
		const struct coll_point *known = &j->frontier.points.v[i];

		if (strcmp(known->expr, p->expr) == 0) {
			p->steps = known->steps;
			p->num = known->num;
			p->den = known->den;
			return true;
		}
	}
	if (!finder_name(&c, "%s", p->expr) || topo_parse(p->expr, &t, NULL, NULL)) {
		return false;
	}
	ports = topo_max_degree(t);
	topo_free(t);
	if (finder_compute(j->finder, &c)) {
		return false;
	}
	sum = finder_plus(c.gather, c.scatter);
	sum = finder_ratio((__int128)sum.num * j->q->degree, (__int128)sum.den * ports);
	p->steps = 2 * c.steps;
	p->num = sum.num;
	p->den = sum.den;
	return true;
}

/* Takes the points of a list over that have figures. */
static void take(struct finder_joint *j, struct coll_flow_point *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fill(j, &v[i])) {
			vec_push(&j->points, v[i]);
		} else {
			free(v[i].expr);
		}
	}
}

/* What it carries with certainty, or at best where it is not solved. */
static double congestion(const struct coll_flow_query *q, const struct coll_flow_point *p)
{
	double hops = (double)p->distance_sum / q->n / q->degree;

	return p->flow.congestion > 0 ? p->flow.congestion : hops;
}

/* Fewer steps first, then less T_B, then the higher rate. */
static int by_all(const void *a, const void *b)
{
	const struct coll_flow_point *x = a, *y = b;
	__int128 left = (__int128)x->num * y->den, right = (__int128)y->num * x->den;

	if (x->steps != y->steps) {
		return x->steps < y->steps ? -1 : 1;
	}
	if (left != right) {
		return left < right ? -1 : 1;
	}
	if (x->flow.congestion != y->flow.congestion) {
		return x->flow.congestion < y->flow.congestion ? -1 : 1;
	}
	return strcmp(x->expr, y->expr);
}

/* By something that is solved: no worse in any. Rates count as equal within the gap of flows. */
static bool is_beaten(const struct finder_joint *j, size_t i, size_t n)
{
	const struct coll_flow_point *p = &j->points.v[i];
	double rate = congestion(j->q, p) * (1 + j->q->flow.gap);

	for (size_t k = 0; k < n; k++) {
		const struct coll_flow_point *o = &j->points.v[k];

		if (k != i && o->flow.congestion > 0 && o->steps <= p->steps &&
		    (__int128)o->num * p->den <= (__int128)p->num * o->den &&
		    o->flow.congestion <= rate) {
			return true;
		}
	}
	return false;
}

/* Solves what may be of the frontier, fewer steps first. */
static int solve_rest(struct finder_joint *j, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < j->points.n && !rc; i++) {
		struct coll_flow_point *p = &j->points.v[i];

		if (p->flow.congestion == 0 && !is_beaten(j, i, j->points.n)) {
			rc = finder_solve(j->q, p, err);
		}
	}
	return rc;
}

/* Drops what is not solved, or beaten by what stays. */
static void keep_best(struct finder_joint *j)
{
	size_t kept = 0;

	qsort(j->points.v, j->points.n, sizeof(*j->points.v), by_all);
	for (size_t i = 0; i < j->points.n; i++) {
		j->points.v[kept] = j->points.v[i];
		if (j->points.v[kept].flow.congestion > 0 && !is_beaten(j, kept, kept)) {
			kept++;
		} else {
			free(j->points.v[kept].expr);
		}
	}
	j->points.n = kept;
}

int coll_find_joint(const struct coll_flow_query *q, struct coll_flow_list *out, struct err *err)
{
	struct coll_query reduce = { .n = q->n, .degree = q->degree, .kind = COLL_ALLREDUCE,
				     .bidirectional = q->bidirectional };
	struct finder_joint j = { .q = q };
	int rc = coll_find_flow(q, out, err);

	coll_finder_new(&j.finder);
	if (!rc && (rc = coll_find(&reduce, true, &j.frontier, err)) == WEFT_EINFEASIBLE) {
		err_clear(err);
		rc = 0;
	}
	if (!rc) {
		take(&j, out->points.v, out->points.n);
		take(&j, out->rest.v, out->rest.n);
		out->points.n = out->rest.n = 0;
		qsort(j.points.v, j.points.n, sizeof(*j.points.v), by_all);
		rc = solve_rest(&j, err);
		keep_best(&j);
		for (size_t i = 0; i < j.points.n; i++) {
			vec_push(&out->points, j.points.v[i]);
		}
		vec_fini(&j.points);
	}
	if (!rc && out->points.n == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no topology of %d nodes of %d ports is known "
			     "by its steps", q->n, q->degree);
	}
	coll_frontier_fini(&j.frontier);
	coll_finder_free(j.finder);
	return rc;
}
