/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs whose schedules are known to be bandwidth-optimal, by table 3 of
 * the direct-connect topologies paper: families, small ones that no formula makes, and
 * what stays so: parallel arcs, degree expansion, Cartesian products. Their figures are
 * those of theorems, so nothing is built.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"

/* Small ones that no formula makes: distance-regular graphs (theorem 18) and
 * digraphs found by search. */
static const struct {
	const char *expr;
	int16_t n, d, steps;
	bool directed;
} special[] = {
	{ "Diamond", 8, 2, 3, true },
	{ "TwistedHypercube(3)", 8, 3, 2, false },
	{ "Johnson(4,2)", 6, 4, 2, false },
	{ "Paley(9)", 9, 4, 2, false },
	{ "Crown(5)", 10, 4, 3, false },
	{ "Dist(PG(2),3)", 14, 4, 3, false },
	{ "UL(Odd(3))", 15, 4, 3, false },
	{ "UL(PG(2))", 21, 4, 3, false },
	{ "PG(3)", 26, 4, 3, false },
	{ "AG(4)", 32, 4, 4, false },
	{ "Odd(4)", 35, 4, 3, false },
	{ "UL(GQ(2))", 45, 4, 4, false },
	{ "GQ(3)", 80, 4, 4, false },
	{ "UL(GH(2))", 189, 4, 6, false },
	{ "GH(3)", 728, 4, 6, false },
	{ "Odd(3)", 10, 3, 2, false },
	{ "PG(2)", 14, 3, 3, false },
	{ "GQ(2)", 30, 3, 4, false },
	{ "GH(2)", 126, 3, 6, false },
	{ "AG(8)", 128, 8, 4, false },
	{ "PG(7)", 114, 8, 3, false },
	{ "GQ(7)", 800, 8, 4, false },
	{ "Paley(17)", 17, 8, 2, false },
	{ "SlimFly(5)", 50, 7, 2, false },
	{ "AG(16)", 512, 16, 4, false },
	{ "Odd(8)", 6435, 8, 7, false },
	{ "Johnson(8,4)", 70, 16, 4, false },
};

static void add_special(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			bool both)
{
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		struct finder_candidate c = finder_at_bound(n, special[i].steps);

		if (special[i].n == n && special[i].d == d && !(both && special[i].directed)) {
			finder_name(&c, "%s", special[i].expr);
			finder_keep(f, set, &c);
		}
	}
}

/* Theorem 22: C(n,{m,m+1}) has the least diameter of all with two offsets,
 * m, and is bandwidth-optimal. */
static void add_circulant(struct coll_finder *f, struct finder_candidates *set, int n)
{
	struct finder_candidate c;
	int m = 1;

	while (2 * m * m + 2 * m + 1 < n) {
		m++;
	}
	c = finder_at_bound(n, m);
	finder_name(&c, "C(%d,{%d,%d})", n, m, m + 1);
	finder_keep(f, set, &c);
}

static void add_bases(struct coll_finder *f, struct finder_candidates *set, int n, int d, bool both)
{
	struct finder_candidate c = finder_at_bound(n, 1);

	if (d == n - 1 && finder_name(&c, "K(%d)", n)) {
		finder_keep(f, set, &c);
	}
	c = finder_at_bound(n, 2);
	if (n == 2 * d && finder_name(&c, "K(%d,%d)", d, d)) {
		finder_keep(f, set, &c);
	}
	c = finder_at_bound(n, n / 2);
	if (d == 2 && n > 2 && finder_name(&c, "Ring(%d)", n)) {
		finder_keep(f, set, &c);
	}
	c = finder_at_bound(n, n - 1);
	if (d == 1 && !both && finder_name(&c, "UniRing(1,%d)", n)) {
		finder_keep(f, set, &c);
	}
	if (d == 4 && n > 6) {
		add_circulant(f, set, n);
	}
	add_special(f, set, n, d, both);
}

/* Parallel arcs: every load and the bandwidth of a node grow alike. */
static void add_multiples(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			  bool both)
{
	for (int k = 2; k <= d; k++) {
		size_t from;

		if (d % k) {
			continue;
		}
		finder_optimal_set(f, n, d / k, both, &from);
		for (size_t i = 0; i < f->optimal.v[from].list.n; i++) {
			struct finder_candidate c = f->optimal.v[from].list.v[i];
			struct finder_candidate m = c;

			if (finder_name(&m, "Multi(%s,%d)", c.expr, k)) {
				finder_keep(f, set, &m);
			}
		}
	}
}

/* Theorem 11 and corollary 11.1. The step it adds is often not needed. */
static void add_copies(struct coll_finder *f, struct finder_candidates *set, int n, int d,
		       bool both)
{
	for (int k = 2; k <= d; k++) {
		size_t from;

		if (d % k || n % k || n / k < 2) {
			continue;
		}
		finder_optimal_set(f, n / k, d / k, both, &from);
		for (size_t i = 0; i < f->optimal.v[from].list.n; i++) {
			struct finder_candidate c = finder_at_bound(n, f->optimal.v[from].list.v[i]
							   .steps + 1);

			c.exact = false;
			if (finder_name(&c, "Deg(%s,%d)", f->optimal.v[from].list.v[i].expr, k)) {
				finder_keep(f, set, &c);
			}
		}
	}
}

static bool join(struct finder_candidate *c, const char *a, const char *b)
{
	return strcmp(a, b) == 0 ? finder_name(c, "Pow(%s,2)", a)
				 : finder_name(c, "Prod(%s,%s)", a, b);
}

/* Theorem 13 for simple digraphs with bandwidth-optimal schedules. */
static void add_products(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			 bool both)
{
	for (int a = 2; a <= n / a; a++) {
		for (int e = 1; n % a == 0 && e < d; e++) {
			size_t x, y;

			finder_optimal_set(f, a, e, both, &x);
			finder_optimal_set(f, n / a, d - e, both, &y);
			if (f->optimal.v[x].list.n == 0) {
				continue;
			}
			for (size_t i = 0; i < f->optimal.v[y].list.n; i++) {
				const struct finder_candidate *p = f->optimal.v[x].list.v;
				const struct finder_candidate *q = &f->optimal.v[y].list.v[i];
				struct finder_candidate c = finder_at_bound(n, p->steps + q->steps);

				c.exact = p->exact && q->exact;
				if (!strstr(p->expr, "Multi") && !strstr(q->expr, "Multi") &&
				    join(&c, p->expr, q->expr)) {
					finder_keep(f, set, &c);
				}
			}
		}
	}
}

void finder_optimal_set(struct coll_finder *f, int n, int d, bool both, size_t *index)
{
	uint64_t key = (uint64_t)n << 32 | (uint64_t)d << 1 | both, value;
	struct finder_candidates set = { 0 };

	if (u64map_get(&f->known, key, &value)) {
		*index = (size_t)value;
		return;
	}
	add_bases(f, &set, n, d, both);
	add_multiples(f, &set, n, d, both);
	add_copies(f, &set, n, d, both);
	add_products(f, &set, n, d, both);
	u64map_set(&f->known, key, f->optimal.n);
	vec_push(&f->optimal, set);
	*index = f->optimal.n - 1;
}

