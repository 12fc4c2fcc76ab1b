/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes of a logical arc as paths level by level, and their shares.
 *
 * All rules come down to this: a set of nodes with levels, whose paths are followed
 * depth first, the data of a node divided by capacity among the arcs that lead on. Shares
 * are fractions until all routes of the arc are known; then their least common
 * denominator makes weights of them.
 */
#include <stdlib.h>

#include "collective/embedding/private.h"
#include "lib/base/number/rat.h"

/* Of shares: keeps products with capacities within 64 bits. */
#define MAX_DENOMINATOR (INT64_C(1) << 31)

void embed_paths_init(struct embed_paths *p, const struct topo *t)
{
	int n = topo_n(t);

	*p = (struct embed_paths){ .t = t };
	arrays_add(&p->arrays, p->level, n);
	arrays_add(&p->arrays, p->step, n + 1);
	for (int u = 0; u < n; u++) {
		p->level[u] = -1;
	}
}

void embed_paths_fini(struct embed_paths *p)
{
	arrays_fini(&p->arrays);
	vec_fini(&p->marked);
	vec_fini(&p->hops);
	vec_fini(&p->routes);
}

void embed_mark(struct embed_paths *p, int node, int level)
{
	p->level[node] = level;
	vec_push(&p->marked, node);
}

static int too_fine(const char *what, struct err *err)
{
	return err_set(err, WEFT_ELIMIT, "the shares of the routes have %s", what);
}

/* The next arc out of the node from `arc` on that leads on, -1: none. */
static int next_arc(const struct embed_paths *p, int node, int arc)
{
	int first, end = topo_out(p->t, node, &first);

	for (end += first; arc < end; arc++) {
		if (p->level[topo_arc(p->t, arc)->dst] == p->level[node] + 1) {
			return arc;
		}
	}
	return -1;
}

static struct embed_step step_at(const struct embed_paths *p, int node, int64_t num, int64_t den)
{
	struct embed_step s = { .node = node, .num = num, .den = den };
	int first;

	topo_out(p->t, node, &first);
	s.next_arc = first;
	for (int a = first; (a = next_arc(p, node, a)) >= 0; a++) {
		s.total += topo_arc(p->t, a)->cap;
	}
	return s;
}

/* The step after `from` over an arc. */
static int follow(const struct embed_paths *p, const struct embed_step *from, int arc,
		  struct embed_step *to, struct err *err)
{
	int64_t cap = topo_arc(p->t, arc)->cap, g = rat_gcd(cap, from->total), num, den;

	if (__builtin_mul_overflow(from->num, cap / g, &num) ||
	    __builtin_mul_overflow(from->den, from->total / g, &den)) {
		return too_fine("denominators beyond 64 bits", err);
	}
	g = rat_gcd(num, den);
	*to = step_at(p, topo_arc(p->t, arc)->dst, num / g, den / g);
	return den / g > MAX_DENOMINATOR ? too_fine("denominators above 2^31", err) : 0;
}

/* The arcs that the steps up to this one have taken are a route. */
static int add_share(struct embed_paths *p, int depth, struct err *err)
{
	struct embed_share s = { p->hops.n, depth, p->step[depth].num, p->step[depth].den };

	if (p->routes.n >= COLL_MAX_ARC_ROUTES) {
		return err_set(err, WEFT_ELIMIT, "more than %d routes; dimension-order has fewer",
			       COLL_MAX_ARC_ROUTES);
	}
	for (int i = 0; i < depth; i++) {
		vec_push(&p->hops, p->step[i].next_arc - 1);
	}
	vec_push(&p->routes, s);
	return 0;
}

/* Depth first; the arc after a step's next one was not tried yet. */
static int follow_all(struct embed_paths *p, int src, int dst, int64_t weight, struct err *err)
{
	int depth = 0, rc = 0;

	p->step[0] = step_at(p, src, weight, 1);
	while (depth >= 0 && !rc) {
		struct embed_step *s = &p->step[depth];
		int arc = s->node == dst ? -1 : next_arc(p, s->node, s->next_arc);

		if (s->node == dst) {
			rc = add_share(p, depth, err);
		}
		if (arc < 0) {
			depth--;
			continue;
		}
		s->next_arc = arc + 1;
		rc = follow(p, s, arc, &p->step[++depth], err);
	}
	return rc;
}

static void unmark(struct embed_paths *p)
{
	for (size_t i = 0; i < p->marked.n; i++) {
		p->level[p->marked.v[i]] = -1;
	}
	p->marked.n = 0;
}

int embed_collect(struct embed_paths *p, int src, int dst, int64_t weight, struct err *err)
{
	int rc = follow_all(p, src, dst, weight, err);

	unmark(p);
	return rc;
}

static int count_on(const struct embed_paths *p, int node)
{
	int arc, n = 0;

	topo_out(p->t, node, &arc);
	for (; (arc = next_arc(p, node, arc)) >= 0; arc++) {
		n++;
	}
	return n;
}

/* The k-th of the arcs out of a node that lead on, counted round. */
static int kth_arc(const struct embed_paths *p, int node, int k)
{
	int first, arc, n = count_on(p, node);

	topo_out(p->t, node, &first);
	arc = next_arc(p, node, first);
	for (k %= n; k > 0; k--) {
		arc = next_arc(p, node, arc + 1);
	}
	return arc;
}

static int add_kth(struct embed_paths *p, int src, int dst, int k, struct err *err)
{
	int depth = 0;

	for (int u = src; u != dst; u = topo_arc(p->t, p->step[depth++].next_arc - 1)->dst) {
		p->step[depth].next_arc = kth_arc(p, u, k) + 1;
	}
	p->step[depth].num = p->step[depth].den = 1;
	return add_share(p, depth, err);
}

int embed_collect_kth(struct embed_paths *p, int src, int dst, int k, struct err *err)
{
	int n = k < 0 ? count_on(p, src) : 1, rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		rc = add_kth(p, src, dst, k < 0 ? i : k, err);
	}
	unmark(p);
	return rc;
}

/* Multiplies the shares by the least number that makes them whole, and divides them by
 * what they have in common. */
static int make_weights(struct embed_paths *p, struct err *err)
{
	int64_t scale = 1, common = 0;

	for (size_t i = 0; i < p->routes.n; i++) {
		scale *= p->routes.v[i].den / rat_gcd(p->routes.v[i].den, scale);
		if (scale > MAX_DENOMINATOR) {
			return too_fine("no common denominator up to 2^31", err);
		}
	}
	for (size_t i = 0; i < p->routes.n; i++) {
		struct embed_share *s = &p->routes.v[i];

		if (__builtin_mul_overflow(s->num, scale / s->den, &s->num)) {
			return too_fine("weights beyond 64 bits", err);
		}
		common = rat_gcd(s->num, common);
	}
	for (size_t i = 0; i < p->routes.n; i++) {
		p->routes.v[i].num /= common;
		if (p->routes.v[i].num > COLL_MAX_WEIGHT) {
			return too_fine("weights above 2^20", err);
		}
	}
	return 0;
}

int embed_add_routes(struct embed_paths *p, struct coll_sched *s, int arc, struct err *err)
{
	int rc = make_weights(p, err);

	for (size_t i = 0; i < p->routes.n && !rc; i++) {
		struct embed_share *r = &p->routes.v[i];
		struct coll_arc_route route = { arc, (int32_t)r->num, p->hops.v + r->first, r->n };

		rc = coll_add_route(s, &route, err);
	}
	p->routes.n = p->hops.n = 0;
	return rc;
}
