/* SPDX-License-Identifier: Apache-2.0 */
/* The finder: known frontiers, and every point a schedule that verifies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"
#include "tests/unit/world.h"
#include "tests/unit/schedule/common.h"

static struct coll_frontier find(int n, int d, bool both, enum coll_kind kind,
				 bool prove)
{
	struct coll_query q = { n, d, both, kind, ALL_OR_SOME(COLL_FINDER_SETS, 200), 0 };
	struct coll_frontier f;
	struct err err = { 0 };

	must(coll_find(&q, prove, &f, &err), &err);
	return f;
}

/* Some point has these figures. */
static void assert_point(const struct coll_frontier *f, int steps, int num,
			 int den)
{
	for (size_t i = 0; i < f->points.n; i++) {
		const struct coll_point *p = &f->points.v[i];

		if (p->steps == steps && p->num == num && p->den == den) {
			return;
		}
	}
	fail_msg("no point of %d steps and %d/%d", steps, num, den);
}

/* Of table 4 only the first row is left: line graphs of Cayley graphs meet the bound in as
 * many steps as the second takes; but the digraphs of the others have their figures. */
static void assert_figures(const char *expr, int steps, int num, int den)
{
	struct topo *t = graph_of(expr);
	struct err err = { 0 };
	mpq_t factor, want;
	int got;

	mpq_inits(factor, want, NULL);
	must(coll_bfb_factor(COLL_ALLREDUCE, t, &got, factor, &err), &err);
	rat_set(want, num, den);
	assert_int_equal(got, steps);
	assert_true(mpq_equal(factor, want));
	mpq_clears(factor, want, NULL);
	topo_free(t);
}

/* Table 4. */
static void test_table_4(void **state)
{
	struct coll_frontier f = find(1024, 4, false, COLL_ALLREDUCE, true);

	(void)state;
	assert_int_equal(f.steps_bound, 5);
	assert_int_equal(f.bound_num, 1023);
	assert_int_equal(f.bound_den, 512);
	assert_point(&f, 10, 341, 128);
	assert_in_range(f.points.n, 2, ALL_OR_SOME(2, 4));
	assert_in_range(f.points.v[f.points.n - 1].steps, 12, ALL_OR_SOME(12, 28));
	assert_point(&f, f.points.v[f.points.n - 1].steps, 1023, 512);
	coll_frontier_fini(&f);
	assert_figures("L3(C(16,{3,4}))", 12, 261, 128);
	assert_figures("L2(Pow(Diamond,2))", 16, 2, 1);
	assert_figures("Pow(Prod(UniRing(1,4),UniRing(1,8)),2)", 40, 1023,
		       512);
}

/* Steps at the bandwidth bound that Cayley graphs and their line graphs are known to take. */
static void test_cayley(void **state)
{
	static const struct {
		int n, d, steps;
		bool both;
	} rows[] = {
		{ 100, 2, 16, false }, { 400, 4, 10, false }, { 384, 8, 8, false },
		{ 200, 4, 12, true }, { 100, 3, 14, true }, { 255, 4, 16, false },
		/* By the table of small groups. */
		{ 50, 7, 4, true }, { 60, 9, 4, true }, { 84, 11, 4, true },
		{ 108, 6, 6, true }, { 168, 7, 6, true }, { 216, 4, 10, true },
		{ 168, 3, 14, true },
	};

	(void)state;
	for (size_t i = 0; i < ALL_OR_SOME(sizeof(rows) / sizeof(*rows), 1); i++) {
		struct coll_frontier f = find(rows[i].n, rows[i].d, rows[i].both, COLL_ALLREDUCE,
					      true);
		const struct coll_point *last = &f.points.v[f.points.n - 1];

		assert_int_equal(last->num, f.bound_num);
		assert_int_equal(last->den, f.bound_den);
		assert_in_range(last->steps, f.steps_bound,
				ALL_OR_SOME(rows[i].steps, rows[i].n));
		coll_frontier_fini(&f);
	}
}

/* Of orders of more groups than a search has time for, what the table has. */
static void test_many_groups(void **state)
{
	static const struct { int n, d, steps; } rows[] = { { 96, 12, 4 }, { 240, 9, 6 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct coll_query q = { rows[i].n, rows[i].d, true, COLL_ALLREDUCE, 0, 0 };
		struct coll_frontier f;
		struct err err = { 0 };

		must(coll_find(&q, true, &f, &err), &err);
		assert_point(&f, rows[i].steps, f.bound_num, f.bound_den);
		coll_frontier_fini(&f);
	}
}

/* Where nothing divides n, circulants of several offsets are the only
 * bandwidth-optimal ones of few steps. */
static void test_primes(void **state)
{
	static const struct {
		int d, most;
		bool both;
	} rows[] = {
		{ 2, 110, false }, { 3, 44, false }, { 8, 14, false },
		{ 8, 14, true }, { 16, 8, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct coll_frontier f = find(997, rows[i].d, rows[i].both,
					      COLL_ALLREDUCE, true);
		const struct coll_point *last = &f.points.v[f.points.n - 1];

		assert_int_equal(last->num, f.bound_num);
		assert_int_equal(last->den, f.bound_den);
		assert_in_range(last->steps, f.steps_bound, rows[i].most);
		coll_frontier_fini(&f);
	}
}

/* Table 5: bandwidth-optimal at these steps, for d = 4. */
static void test_table_5(void **state)
{
	static const int steps[] = { 2, 4, 4, 4, 4, 4, 4, 4 };

	(void)state;
	for (int n = 5; n <= 12; n++) {
		struct coll_frontier f = find(n, 4, false, COLL_ALLREDUCE,
					      true);
		int num = 2 * (n - 1), den = n;

		assert_point(&f, steps[n - 5], n % 2 ? num : num / 2,
			     n % 2 ? den : den / 2);
		coll_frontier_fini(&f);
	}
}

/* Duplex circuits between two ports: a ring is all there is. */
static void test_two_ports_both_directions(void **state)
{
	struct coll_frontier f = find(100, 2, true, COLL_ALLREDUCE, true);

	(void)state;
	assert_int_equal(f.points.n, 1);
	assert_string_equal(f.points.v[0].expr, "Ring(100)");
	assert_point(&f, 100, 99, 50);
	coll_frontier_fini(&f);
	/* Their line graph's size is known only once the inner one is built. */
	f = find(56, 4, false, COLL_ALLREDUCE, true);
	assert_true(f.points.n > 0);
	coll_frontier_fini(&f);
}

/* A schedule exists for a point, unless its chunks are too many; both ways
 * means both ways; no bound is beaten. */
static void assert_real(const struct coll_query *q,
			const struct coll_frontier *f,
			const struct coll_point *p)
{
	struct coll_sched *s = bfb(q->kind, p->expr);
	struct coll_report r;
	struct err err = { 0 };
	mpq_t want;

	mpq_init(want);
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	rat_set(want, p->num * p->ports, p->den * q->degree);
	assert_int_equal(r.nodes, q->n);
	assert_int_equal(r.steps, p->steps);
	assert_int_equal(coll_ports(s), p->ports);
	assert_in_range(p->ports, 1, q->degree);
	if (coll_chunks(s) < COLL_BFB_MAX_CHUNKS / 2 &&
	    !mpq_equal(r.bandwidth_factor, want)) {
		fail_msg("%s: not %lld/%lld", p->expr, (long long)p->num,
			 (long long)p->den);
	}
	assert_true(p->exact);
	assert_true(p->steps >= f->steps_bound);
	assert_true((__int128)p->num * f->bound_den >=
		    (__int128)f->bound_num * p->den);
	assert_true(!q->bidirectional || topo_is_symmetric(coll_topo(s)));
	mpq_clear(want);
	coll_report_fini(&r);
	coll_free(s);
}

static void test_points_are_real(void **state)
{
	static const int sizes[] = { 2, 3, 6, 7, 9, 14, 16, 20, 25, 32, 45,
				     53, 64, 80 };
	static const int degrees[] = { 1, 2, 3, 4, 8 };
	static const enum coll_kind kinds[] = { COLL_ALLGATHER,
						COLL_REDUCE_SCATTER,
						COLL_ALLREDUCE };

	(void)state;
	for (int i = 0; i < 14 * 5 * 2 * 3; i += ALL_OR_SOME(1, 11)) {
		struct coll_query q = {
			.n = sizes[i % 14], .degree = degrees[i / 14 % 5],
			.bidirectional = i / 70 % 2, .kind = kinds[i / 140],
			.sets = ALL_OR_SOME(1000, 200),
		};
		struct coll_frontier f;
		struct err err = { 0 };
		int rc = coll_find(&q, true, &f, &err);

		if (rc != WEFT_EINFEASIBLE) {
			must(rc, &err);
		}
		for (size_t k = 0; k < f.points.n; k++) {
			assert_real(&q, &f, &f.points.v[k]);
		}
		coll_frontier_fini(&f);
	}
}

static void assert_same_points(const struct coll_frontier *a,
			       const struct coll_frontier *b)
{
	assert_int_equal(a->points.n, b->points.n);
	for (size_t i = 0; i < a->points.n; i++) {
		const struct coll_point *x = &a->points.v[i];
		const struct coll_point *y = &b->points.v[i];

		assert_string_equal(x->expr, y->expr);
		assert_int_equal(x->steps, y->steps);
		assert_true(x->num == y->num && x->den == y->den);
	}
}

/* What is asked beside a query, and how many threads ask, changes nothing. */
static void test_sweep(void **state)
{
	struct coll_frontier f[3 * 60];
	struct coll_query q[60];
	struct err err = { 0 };
	size_t n = 0;

	(void)state;
	for (int nodes = ALL_OR_SOME(50, 58); nodes < 60; nodes++) {
		for (int i = 0; i < ALL_OR_SOME(6, 3); i++) {
			q[n++] = (struct coll_query){ nodes, 2 << i % 3,
						      i >= 3, COLL_ALLREDUCE,
						      ALL_OR_SOME(300, 20), 0 };
		}
	}
	for (int threads = 1; threads <= 3; threads++) {
		must(coll_sweep(q, n, true, threads, &f[(threads - 1) * 60],
				&err), &err);
	}
	for (size_t i = 0; i < n; i++) {
		struct coll_frontier one;

		coll_find(&q[i], true, &one, NULL);
		for (int k = 0; k < 3; k++) {
			assert_same_points(&one, &f[k * 60 + i]);
			coll_frontier_fini(&f[k * 60 + i]);
		}
		coll_frontier_fini(&one);
	}
	/* The first error is told, whatever the order of work. */
	q[1].degree = 0;
	q[n - 2].n = 1;
	assert_int_equal(coll_sweep(q, n, false, 3, f, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "degree 0"));
	for (size_t i = 0; i < n; i++) {
		coll_frontier_fini(&f[i]);
	}
}

/* What is said to be proven: one step, and two of the fewest neighbours that reach all. */
static void test_proven(void **state)
{
	static const struct {
		int n, d;
		bool both;
		const char *expr;
		bool steps, bandwidth;
	} rows[] = {
		{ 4, 5, true, "K(4)", true, true }, { 10, 4, false, "DiC(10,{1,2})", false, false },
		{ 4, 5, true, "Prod(Multi(K(2),2),Multi(K(2),3))", false, true },
		{ 13, 13, true, "K(13)", true, true },
		{ 8, 13, false, "DiC(8,{1,1,1,1,1,2,2,2,2,5,5,5,5})", false, true },
		{ 8, 13, false, "DiC(8,{1,1,1,1,1,1,1,3,3,3,3,3,3})", false, false },
		{ 50, 7, true, "SlimFly(5)", true, true },
		{ 73, 9, true, "Polarity(8)", true, true },
		{ 13, 3, true, "Ring(13)", false, true },
		{ 57, 8, true, "Polarity(7)", true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_query q = { rows[i].n, rows[i].d, rows[i].both, COLL_ALLREDUCE, 200,
					0 };
		struct coll_frontier f;
		bool steps, bandwidth;

		assert_int_equal(coll_find(&q, true, &f, NULL), 0);
		for (size_t k = 0; k < f.points.n; k++) {
			if (strcmp(f.points.v[k].expr, rows[i].expr) == 0) {
				coll_point_proven(&q, &f, &f.points.v[k], &steps, &bandwidth);
				assert_int_equal(steps, rows[i].steps);
				assert_int_equal(bandwidth, rows[i].bandwidth);
			}
		}
		coll_frontier_fini(&f);
	}
}

/* Families; more ports than other nodes, and what no digraph of so many has. Steps; T_B of all
 * ports, used or not. */
static void test_dark_ports(void **state)
{
	static const struct {
		int n, d;
		bool both;
		int steps, num, den, ports;
		const char *expr;
	} rows[] = {
		{ 4, 8, false, 2, 2, 1, 6, "Multi(K(4),2)" },
		{ 4, 8, false, 4, 3, 2, 8, "Multi(K(2,2),4)" },
		{ 4, 16, false, 2, 8, 5, 15, "Multi(K(4),5)" },
		{ 50, 7, true, 4, 49, 25, 7, "SlimFly(5)" },
		{ 98, 11, true, 4, 99, 49, 11, "SlimFly(7)" },
		{ 91, 10, true, 4, 200, 91, 10, "Polarity(9)" },
		{ 7, 3, true, 4, 18, 7, 3, "Polarity(2)" },
		{ 21, 5, true, 4, 50, 21, 5, "Polarity(4)" },
		{ 73, 9, true, 4, 162, 73, 9, "Polarity(8)" },
		{ 10, 12, false, 2, 12, 5, 9, "K(10)" },
		{ 10, 12, false, 4, 9, 5, 12, "Multi(Odd(3),4)" },
		{ 6, 7, false, 4, 11, 6, 7, "Prod(Multi(K(2),3),Multi(K(3),2))" },
		{ 6, 7, true, 4, 11, 6, 7, "Prod(Multi(K(2),3),Multi(K(3),2))" },
		{ 4, 5, true, 4, 7, 4, 5, "Prod(Multi(K(2),2),Multi(K(2),3))" },
		{ 8, 13, false, 4, 29, 16, 13, "DiC(8,{1,1,1,1,1,2,2,2,2,5,5,5,5})" },
		{ 6, 7, true, 2, 7, 3, 5, "K(6)" }, { 11, 10, true, 2, 20, 11, 10, "K(11)" },
		{ 5, 5, true, 2, 2, 1, 4, "K(5)" }, { 2, 3, true, 2, 1, 1, 3, "Multi(K(2),3)" },
		{ 13, 3, true, 12, 36, 13, 2, "Ring(13)" }, { 100, 128, true, 2, 64, 25, 99,
		"K(100)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_frontier f = find(rows[i].n, rows[i].d, rows[i].both, COLL_ALLREDUCE,
					      true);
		size_t k = 0;

		while (k < f.points.n && strcmp(f.points.v[k].expr, rows[i].expr) != 0) {
			k++;
		}
		assert_true(k < f.points.n);
		assert_int_equal(f.points.v[k].steps, rows[i].steps);
		assert_int_equal(f.points.v[k].num, rows[i].num);
		assert_int_equal(f.points.v[k].den, rows[i].den);
		assert_int_equal(f.points.v[k].ports, rows[i].ports);
		coll_frontier_fini(&f);
	}
}

/* 2 * 131^2 nodes, whose field has more elements than there may be, are no SlimFly. */
static void test_large_field(void **state)
{
	struct coll_frontier f;

	(void)state;
	f = find(34322, 197, false, COLL_ALLREDUCE, false);
	assert_true(f.points.n > 0);
	coll_frontier_fini(&f);
}

/* All digraphs of n nodes with d arcs out of and into each, row by row; `both`: all with arcs in
 * both directions and at most so many, so that ports may stay dark. */
struct all_digraphs {
	int n, d;
	bool both;
	int arcs[5][5], in[5];
	const struct coll_frontier *f;
	int count;
};

/* Of no more steps than a point, its T_B of d ports is no less. */
static void compare_digraph(struct all_digraphs *a)
{
	struct topo *t = NULL;
	struct err err = { 0 };
	mpq_t factor, point;
	int steps;

	must(topo_new(a->n, &t, &err), &err);
	for (int u = 0; u < a->n; u++) {
		for (int v = 0; v < a->n; v++) {
			for (int k = 0; k < a->arcs[u][v]; k++) {
				must(topo_add_arc(t, u, v, 1, 0, &err), &err);
			}
		}
	}
	topo_freeze(t);
	mpq_inits(factor, point, NULL);
	a->count++;
	if (coll_bfb_factor(COLL_ALLREDUCE, t, &steps, factor, &err) == 0) {
		bool met = false;

		rat_set(point, a->d, topo_max_degree(t));
		mpq_mul(factor, factor, point);
		for (size_t i = 0; i < a->f->points.n; i++) {
			const struct coll_point *p = &a->f->points.v[i];

			rat_set(point, p->num, (int)p->den);
			met |= p->steps <= steps && mpq_cmp(point, factor) <= 0;
		}
		if (!met) {
			char text[256] = "";

			for (int u = 0; u < a->n; u++) {
				for (int v = 0; v < a->n; v++) {
					sprintf(text + strlen(text), "%d", a->arcs[u][v]);
				}
				strcat(text, " ");
			}
			fail_msg("%d nodes of %d ports: %sis better", a->n, a->d, text);
		}
	}
	mpq_clears(factor, point, NULL);
	topo_free(t);
}

static void each_digraph(struct all_digraphs *a, int u, int v, int left)
{
	if (v == a->n && (left == 0 || a->both)) {
		if (u + 1 == a->n) {
			compare_digraph(a);
		} else {
			each_digraph(a, u + 1, a->both ? u + 2 : 0,
				     a->both ? a->d - a->in[u + 1] : a->d);
		}
	}
	if (v >= a->n) {
		return;
	}
	for (int k = 0; k <= (u == v ? 0 : left) && a->in[v] + k <= a->d; k++) {
		a->arcs[u][v] = k;
		a->arcs[v][u] = a->both ? k : a->arcs[v][u];
		a->in[v] += k;
		each_digraph(a, u, v + 1, left - k);
		a->in[v] -= k;
	}
}

static void all_digraphs(int n, int d, bool both)
{
	struct coll_frontier f = find(n, d, both, COLL_ALLREDUCE, true);
	struct all_digraphs a = { .n = n, .d = d, .both = both, .f = &f };

	each_digraph(&a, 0, both, d);
	assert_true(a.count > d);
	coll_frontier_fini(&f);
}

static void test_all_digraphs(void **state)
{
	(void)state;
	for (int n = 3; n <= 5; n++) {
		for (int d = n - 1; d <= ALL_OR_SOME(n < 5 ? 8 : 6, 4); d++) {
			all_digraphs(n, d, true);
			if (n < 5) {
				all_digraphs(n, d, false);
			}
		}
	}
}

static void test_refusals(void **state)
{
	static const struct {
		struct coll_query q;
		int code;
	} bad[] = {
		{ { 1, 2, false, COLL_ALLREDUCE, 0, 0 }, WEFT_EINVAL },
		{ { 0, 2, false, COLL_ALLREDUCE, 0, 0 }, WEFT_EINVAL },
		{ { 1000000, 2, false, COLL_ALLREDUCE, 0, 0 }, WEFT_EINVAL },
		{ { 8, 0, false, COLL_ALLREDUCE, 0, 0 }, WEFT_EINVAL },
		{ { 8, 2, false, COLL_ALLTOALL, 0, 0 }, WEFT_EUNSUPPORTED },
		{ { 7, 1, true, COLL_ALLREDUCE, 0, 0 }, WEFT_EINFEASIBLE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct coll_frontier f;
		struct err err = { 0 };

		assert_int_equal(coll_find(&bad[i].q, true, &f, &err),
				 bad[i].code);
		assert_true(err.msg[0]);
		coll_frontier_fini(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_4),
		cmocka_unit_test(test_cayley), cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_primes),
		cmocka_unit_test(test_table_5),
		cmocka_unit_test(test_two_ports_both_directions),
		cmocka_unit_test(test_points_are_real),
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_dark_ports),
		cmocka_unit_test(test_proven),
		cmocka_unit_test(test_large_field),
		cmocka_unit_test(test_all_digraphs),
		cmocka_unit_test(test_refusals),
	};

#ifdef __SANITIZE_THREAD__
	/* Only a sweep has threads. */
	cmocka_set_test_filter("test_sweep");
#endif
	return cmocka_run_group_tests_name("finder/find", tests, NULL,
					   NULL);
}
