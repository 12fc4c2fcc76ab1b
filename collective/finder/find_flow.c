/*
 * Digraphs for all-to-all: every family that has the size and the ports is built,
 * ordered by the sum of its distances, and solved in that order.
 *
 * No flow has less congestion than its hops take of all ports, so as soon as the
 * distances of the next digraph alone exceed the best congestion found, no later
 * one can win, and the rest is dropped without being solved. Expressions that do
 * not parse for the size (Hypercube of 12 nodes) are skipped.
 */
#include "collective/finder/finder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Draws of each random family. */
#define SEEDS 3
#define MAX_EXPR 192

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
	vec_fini(&l->points);
}

/* ---- what there is ---- */

/* False when some node does not reach another. */
static int measure(const struct topo *t, struct coll_flow_point *p, bool *whole, struct err *err)
{
	int n = topo_n(t);
	int32_t *dist = malloc((size_t)n * sizeof(*dist));

	*whole = true;
	if (!dist) {
		return err_nomem(err);
	}
	for (int s = 0; s < n && *whole; s++) {
		topo_bfs(t, s, dist);
		for (int v = 0; v < n; v++) {
			*whole &= dist[v] >= 0;
			p->distance_sum += dist[v];
			p->diameter = dist[v] > p->diameter ? dist[v]
							    : p->diameter;
		}
	}
	free(dist);
	return 0;
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

/* Adds an expression, unless it is no digraph for the query. */
static int consider(struct finder_flow_search *s, const char *expr)
{
	struct coll_flow_point p = { 0 };
	struct topo *t = NULL;
	bool whole = false;
	int rc;

	if (is_known(s, expr)) {
		return 0;
	}
	rc = topo_parse(expr, &t, NULL, NULL);
	if (rc) {
		return rc == WEFT_ENOMEM ? err_nomem(s->err) : 0;
	}
	if (fits(s, t)) {
		rc = measure(t, &p, &whole, s->err);
	}
	if (rc == 0 && whole) {
		p.expr = strdup(expr);
		s->found.considered++;
		if (!p.expr || vec_push(&s->found.points, p)) {
			free(p.expr);
			rc = err_nomem(s->err);
		}
	}
	topo_free(t);
	return rc;
}

static int consider_form(struct finder_flow_search *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int consider_form(struct finder_flow_search *s, const char *fmt, ...)
{
	char expr[MAX_EXPR];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(expr, sizeof(expr), fmt, ap);
	va_end(ap);
	return consider(s, expr);
}

/* All tori whose sides, ascending from `least`, multiply to `left` and take
 * `ports`; text holds the sides so far. */
static int consider_tori(struct finder_flow_search *s, const char *text, int least,
			 int left, int ports)
{
	char more[MAX_EXPR];
	int rc = 0;

	if (left == 1) {
		return consider_form(s, "Torus(%s)", text);
	}
	for (int side = least; side <= left && rc == 0; side++) {
		int take = side == 2 ? 1 : 2;
		int len;

		if (left % side || take > ports) {
			continue;
		}
		len = snprintf(more, sizeof(more), "%s%s%d", text, *text ? "," : "", side);
		if (len < (int)sizeof(more)) {
			rc = consider_tori(s, more, side, left / side, ports - take);
		}
	}
	return rc;
}

static int consider_families(struct finder_flow_search *s)
{
	int n = s->q->n, d = s->q->degree, k = 0;
	int rc = consider_form(s, "K(%d)", n);

	while ((1 << k) < n) {
		k++;
	}
	if (rc || (rc = consider_form(s, "K(%d,%d)", n / 2, n - n / 2)) ||
	    (rc = consider_form(s, "GenKautz(%d,%d)", d, n)) ||
	    (rc = consider_form(s, "Bi(GenKautz(%d,%d))", d / 2, n)) ||
	    (rc = consider_form(s, "Hypercube(%d)", k)) ||
	    (rc = consider_form(s, "TwistedHypercube(%d)", k)) ||
	    (rc = consider_form(s, "Ring(%d)", n))) {
		return rc;
	}
	return consider_tori(s, "", 2, n, d);
}

static int consider_random(struct finder_flow_search *s)
{
	int n = s->q->n, d = s->q->degree, rc = 0;

	for (int seed = 1; seed <= SEEDS && rc == 0; seed++) {
		rc = consider_form(s, "Jellyfish(%d,%d,%d)", n, d, seed);
		if (rc == 0 && n % (d + 1) == 0) {
			rc = consider_form(s, "Xpander(%d,%d,%d)", d, n / (d + 1), seed);
		}
		if (rc == 0 && !s->q->bidirectional) {
			rc = consider_form(s, "PathExpander(%d,%d,%d)", n, d, seed);
		}
	}
	return rc;
}

/* What serves the other collectives is near in hops, too. */
static int consider_frontier(struct finder_flow_search *s)
{
	struct coll_query q = { .n = s->q->n, .degree = s->q->degree,
				.bidirectional = s->q->bidirectional, .kind = COLL_ALLGATHER };
	struct coll_frontier f;
	int rc = coll_find(&q, false, &f, s->err);

	for (size_t i = 0; i < f.points.n && rc == 0; i++) {
		rc = consider(s, f.points.v[i].expr);
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

static int solve(const struct coll_flow_query *q, struct coll_flow_point *p, struct err *err)
{
	struct topo *t = NULL;
	struct mcf *flow = NULL;
	int rc;

	if ((rc = topo_parse(p->expr, &t, NULL, err)) || (rc = mcf_new(t, true, &flow, err))) {
		goto out;
	}
	rc = mcf_run(flow, &q->flow, &p->flow, err);
out:
	mcf_free(flow);
	topo_free(t);
	return rc;
}

/* No flow needs less than its hops take of all ports. */
static double min_congestion(const struct coll_flow_query *q, const struct coll_flow_point *p)
{
	return (double)p->distance_sum / q->n / q->degree;
}

/* Solves from the front; what cannot be best, or is more than asked for, is
 * dropped. */
static int solve_all(struct finder_flow_search *s)
{
	double best = 0;
	size_t n = s->found.points.n, done = 0;
	int rc = 0;

	for (; done < n && rc == 0; done++) {
		struct coll_flow_point *p = &s->found.points.v[done];

		if ((s->q->most > 0 && (int)done >= s->q->most) ||
		    (best > 0 && min_congestion(s->q, p) >= best) ||
		    (done > 0 && s->q->flow.cancel && *s->q->flow.cancel)) {
			break;
		}
		rc = solve(s->q, p, s->err);
		if (rc == 0 && (best == 0 || p->flow.congestion < best)) {
			best = p->flow.congestion;
		}
	}
	for (size_t i = done; i < n; i++) {
		free(s->found.points.v[i].expr);
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
		rc = consider_families(&s);
	}
	if (!rc) {
		rc = consider_random(&s);
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
