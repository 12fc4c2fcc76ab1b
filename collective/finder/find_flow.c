/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs for all-to-all: every family that has the size and the ports is built,
 * ordered by the sum of its distances, and solved in that order.
 *
 * No flow has less congestion than its hops take of all ports, so as soon as the
 * distances of the next digraph alone exceed the best congestion found, no later
 * one can win, and the rest is not solved. Expressions that do not parse for the size
 * (TwistedHypercube of 12 nodes) are skipped.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/finder.h"
#include "collective/finder/private.h"
#include "lib/base/alloc.h"

/* Draws of each random family. */
#define SEEDS 3
/* Circulants kept, and offsets tried. */
#define CIRCULANTS 4
#define CIRCULANT_OFFSETS 512
#define MAX_EXPR 192
/* Neighbours looked up in the search for least distances: so many times nodes by arcs, and at most
 * half a second. */
#define NEAR_VISITS 2000
#define MAX_NEAR_VISITS 200000000

struct finder_flow_search {
	const struct coll_flow_query *q;
	struct coll_flow_list found;
	struct err *err;
};

void coll_flow_list_fini(struct coll_flow_list *l)
{
	for (size_t i = 0; i < l->points.n; i++) {
		free(l->points.v[i].expr);
	}
	for (size_t i = 0; i < l->rest.n; i++) {
		free(l->rest.v[i].expr);
	}
	vec_fini(&l->points);
	vec_fini(&l->rest);
}

/* ---- what there is ---- */

/* From the first so many nodes, as if from all. *whole: false when one does not reach another. */
static void measure(const struct topo *t, int sources, struct coll_flow_point *p, bool *whole)
{
	int n = topo_n(t);
	int32_t *dist = x_alloc((size_t)n, sizeof(*dist));

	*whole = true;
	for (int s = 0; s < sources && *whole; s++) {
		topo_bfs(t, s, dist);
		for (int v = 0; v < n; v++) {
			*whole &= dist[v] >= 0;
			p->distance_sum += dist[v];
			p->diameter = dist[v] > p->diameter ? dist[v]
							    : p->diameter;
		}
	}
	p->distance_sum = p->distance_sum / sources * n;
	free(dist);
}

static bool is_known(const struct finder_flow_search *s, const char *expr)
{
	for (size_t i = 0; i < s->found.points.n; i++) {
		if (strcmp(s->found.points.v[i].expr, expr) == 0) {
			return true;
		}
	}
	return false;
}

static bool fits(const struct finder_flow_search *s, const struct topo *t)
{
	return topo_n(t) == s->q->n && topo_max_degree(t) <= s->q->degree &&
	       !(s->q->bidirectional && !topo_is_symmetric(t));
}

static bool are_alike(const struct topo *t)
{
	struct topo_group *g = NULL;
	bool alike = topo_group_find(t, &g, NULL) == 0 && g && topo_group_orbits(g) == 1;

	topo_group_free(g);
	return alike;
}

/* Adds an expression, unless it is no digraph for the query. */
static void consider(struct finder_flow_search *s, const char *expr)
{
	struct coll_flow_point p = { 0 };
	struct topo *t = NULL;
	bool whole = false;
	int rc;

	if (is_known(s, expr)) {
		return;
	}
	rc = topo_parse(expr, &t, NULL, NULL);
	if (rc) {
		return;
	}
	if (fits(s, t)) {
		measure(t, topo_n(t), &p, &whole);
	}
	if (whole) {
		p.expr = x_dup(expr);
		p.alike = are_alike(t);
		s->found.considered++;
		vec_push(&s->found.points, p);
	}
	topo_free(t);
}

static void consider_form(struct finder_flow_search *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void consider_form(struct finder_flow_search *s, const char *fmt, ...)
{
	char expr[MAX_EXPR];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(expr, sizeof(expr), fmt, ap);
	va_end(ap);
	consider(s, expr);
}

static void consider_families(struct finder_flow_search *s)
{
	int n = s->q->n, d = s->q->degree, k = 0;
	struct finder_families all = { 0 };

	finder_list_families(n, d, s->q->bidirectional, &all);
	for (size_t i = 0; i < all.list.n; i++) {
		consider(s, all.list.v[i].expr);
	}
	vec_fini(&all.list);
	while ((1 << k) < n) {
		k++;
	}
	consider_form(s, "GenKautz(%d,%d)", d, n);
	consider_form(s, "Bi(GenKautz(%d,%d))", d / 2, n);
	consider_form(s, "TwistedHypercube(%d)", k);
}

/* A circulant of offsets 1 and b, by its distances. */
struct finder_offset {
	int b;
	int64_t sum;	/* of distances; INT64_MAX: none */
};

/* All nodes are alike: one is measured. */
static int measure_offset(int n, struct finder_offset *at, struct err *err)
{
	struct coll_flow_point p = { 0 };
	char expr[MAX_EXPR];
	struct topo *t;
	bool whole;
	int rc;

	snprintf(expr, sizeof(expr), "C(%d,{1,%d})", n, at->b);
	rc = topo_parse(expr, &t, NULL, err);
	if (rc == 0) {
		measure(t, 1, &p, &whole);
		at->sum = p.distance_sum;
		topo_free(t);
	}
	return rc;
}

/* best[CIRCULANTS] stays in order. */
static void keep_offset(struct finder_offset *best, struct finder_offset at)
{
	for (int i = 0; i < CIRCULANTS; i++) {
		if (at.sum < best[i].sum) {
			struct finder_offset worse = best[i];

			best[i] = at;
			at = worse;
		}
	}
}

/* Those of the least distances. Some are the same graph with other numbers, whose flow falls into
 * chunks in another way. */
static int consider_circulants(struct finder_flow_search *s)
{
	struct finder_offset best[CIRCULANTS], at = { .b = 2 };
	int n = s->q->n, rc = 0;

	for (int i = 0; i < CIRCULANTS; i++) {
		best[i] = (struct finder_offset){ .sum = INT64_MAX };
	}
	for (; at.b < (n + 1) / 2 && at.b <= CIRCULANT_OFFSETS && rc == 0; at.b++) {
		rc = measure_offset(n, &at, s->err);
		keep_offset(best, at);
	}
	for (int i = 0; i < CIRCULANTS && best[i].sum < INT64_MAX && rc == 0; i++) {
		consider_form(s, "C(%d,{1,%d})", n, best[i].b);
	}
	return rc;
}

static void consider_random(struct finder_flow_search *s)
{
	int n = s->q->n, d = s->q->degree;

	for (int seed = 1; seed <= SEEDS; seed++) {
		consider_form(s, "Jellyfish(%d,%d,%d)", n, d, seed);
		if (n % (d + 1) == 0) {
			consider_form(s, "Xpander(%d,%d,%d)", d, n / (d + 1), seed);
		}
		if (!s->q->bidirectional && (int64_t)n * n * d <= FINDER_MANY_FLOWS) {
			consider_form(s, "PathExpander(%d,%d,%d)", n, d, seed);
		}
	}
}

/* Cayley graphs of the least distances that a search finds: there a flow, moved, serves all. */
static void consider_near(struct finder_flow_search *s)
{
	int n = s->q->n, d = s->q->degree;
	bool both = s->q->bidirectional;
	struct finder_cayley *found = x_new(FINDER_NEAR_KEPT, sizeof(*found));
	int64_t visits = (int64_t)NEAR_VISITS * n * n * d;
	struct buf text = { 0 };

	for (int i = 0; i < FINDER_NEAR_KEPT; i++) {
		found[i].distances = INT64_MAX;
	}
	visits = visits < MAX_NEAR_VISITS ? visits : MAX_NEAR_VISITS;
	finder_cayley_near(n, d, both, coll_moore_steps(n, d, both), visits, found);
	for (int i = 0; i < FINDER_NEAR_KEPT && found[i].distances < INT64_MAX; i++) {
		buf_reset(&text);
		topo_cayley_write(&found[i].g, both, found[i].letter, found[i].n_letters, &text);
		consider(s, buf_cstr(&text));
	}
	buf_fini(&text);
	free(found);
}

/* What serves the other collectives is near in hops, too. */
static int consider_frontier(struct finder_flow_search *s)
{
	struct coll_query q = { .n = s->q->n, .degree = s->q->degree,
				.bidirectional = s->q->bidirectional, .kind = COLL_ALLGATHER };
	struct coll_frontier f;
	int rc = coll_find(&q, false, &f, s->err);

	for (size_t i = 0; i < f.points.n && rc == 0; i++) {
		consider(s, f.points.v[i].expr);
	}
	coll_frontier_fini(&f);
	return rc == WEFT_EINFEASIBLE ? 0 : rc;
}

/* ---- which are best ---- */

static int by_distance(const void *a, const void *b)
{
	const struct coll_flow_point *x = a, *y = b;

	if (x->distance_sum != y->distance_sum) {
		return x->distance_sum < y->distance_sum ? -1 : 1;
	}
	if (strlen(x->expr) != strlen(y->expr)) {
		return strlen(x->expr) < strlen(y->expr) ? -1 : 1;
	}
	return strcmp(x->expr, y->expr);
}

static int by_congestion(const void *a, const void *b)
{
	const struct coll_flow_point *x = a, *y = b;

	if (x->flow.congestion != y->flow.congestion) {
		return x->flow.congestion < y->flow.congestion ? -1 : 1;
	}
	return by_distance(a, b);
}

int finder_solve(const struct coll_flow_query *q, struct coll_flow_point *p, struct err *err)
{
	struct topo *t = NULL;
	int rc = topo_parse(p->expr, &t, NULL, err);

	if (rc == 0) {
		rc = mcf_rate(t, NULL, &q->flow, &p->flow, err);
	}
	topo_free(t);
	return rc;
}

/* No flow needs less than its hops take of all ports. */
static double min_congestion(const struct coll_flow_query *q, const struct coll_flow_point *p)
{
	return (double)p->distance_sum / q->n / q->degree;
}

/* Solves from the front; what cannot be best, or is more than asked for, is
 * left as it is. */
static int solve_all(struct finder_flow_search *s)
{
	double best = 0;
	size_t n = s->found.points.n, done = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		struct coll_flow_point p = s->found.points.v[i];

		if (rc || (s->q->most > 0 && (int)done >= s->q->most) ||
		    (s->q->alike_only && !p.alike) ||
		    (best > 0 && min_congestion(s->q, &p) >= best) ||
		    (done > 0 && s->q->flow.cancel && *s->q->flow.cancel)) {
			vec_push(&s->found.rest, p);
			continue;
		}
		rc = finder_solve(s->q, &p, s->err);
		if (rc == 0 && (best == 0 || p.flow.congestion < best)) {
			best = p.flow.congestion;
		}
		s->found.points.v[done++] = p;
	}
	s->found.points.n = done;
	return rc;
}

static int check(const struct coll_flow_query *q, struct err *err)
{
	if (q->n < 2 || q->degree < 1) {
		return err_set(err, WEFT_EINVAL, "%d nodes of %d ports: "
			       "expected 2 of 1 at least", q->n, q->degree);
	}
	if ((double)q->n * q->n * q->degree > COLL_FLOW_MOST) {
		return err_set(err, WEFT_ELIMIT, "all-to-all among %d nodes "
			       "of %d ports: more than %d flows of a source "
			       "on an arc", q->n, q->degree, COLL_FLOW_MOST);
	}
	return 0;
}

int coll_find_flow(const struct coll_flow_query *q, struct coll_flow_list *out, struct err *err)
{
	struct finder_flow_search s = { .q = q, .err = err };
	int rc = check(q, err);

	memset(out, 0, sizeof(*out));
	if (!rc) {
		consider_families(&s);
	}
	if (!rc && q->degree >= 4 && q->degree < 6) {
		rc = consider_circulants(&s);
	}
	if (!rc) {
		consider_random(&s);
		consider_near(&s);
	}
	if (!rc) {
		rc = consider_frontier(&s);
	}
	if (rc == 0 && s.found.points.n == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no topology known for %d "
			     "nodes of %d ports%s", q->n, q->degree,
			     q->bidirectional ? " with arcs in both directions" : "");
	}
	if (rc == 0) {
		qsort(s.found.points.v, s.found.points.n, sizeof(*s.found.points.v), by_distance);
		rc = solve_all(&s);
	}
	if (rc == 0) {
		qsort(s.found.points.v, s.found.points.n, sizeof(*s.found.points.v), by_congestion);
	}
	s.found.bound = rc ? 0 : q->bidirectional
			? mcf_edge_bound(q->n, q->degree)
			: mcf_degree_bound(q->n, q->degree);
	*out = s.found;
	return rc;
}
