/* SPDX-License-Identifier: Apache-2.0 */
/* Digraphs for all-to-all: figures, bounds and the order of what is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"

static struct coll_flow_query query(int n, int d, bool both)
{
	return (struct coll_flow_query){
		.n = n, .degree = d, .bidirectional = both,
		.flow = { .gap = 1e-3, .max_passes = 2000 },
	};
}

static void find(const struct coll_flow_query *q, struct coll_flow_list *l)
{
	struct err err = { 0 };

	if (coll_find_flow(q, l, &err)) {
		fail_msg("%d nodes of %d: %s", q->n, q->degree, err.msg);
	}
}

/* Congestion of one digraph. */
static double congestion(const char *expr)
{
	struct mcf_options opt = { .gap = 1e-4 };
	struct mcf_result res;
	struct topo *t;
	struct mcf *p;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	assert_int_equal(mcf_new(t, true, &p, NULL), 0);
	assert_int_equal(mcf_run(p, &opt, &res, NULL), 0);
	mcf_free(p);
	topo_free(t);
	return res.congestion;
}

static void bounds(void **state)
{
	(void)state;
	/* A full tree, K(4,4) and K(5), and a one-way ring. */
	assert_float_equal(mcf_degree_bound(21, 4), (4 + 2 * 16) / 4.0, 1e-12);
	assert_float_equal(mcf_degree_bound(8, 4), 2.5, 1e-12);
	assert_float_equal(mcf_degree_bound(5, 4), 1, 1e-12);
	assert_float_equal(mcf_degree_bound(6, 1), 15, 1e-12);
	/* Rings, and the Petersen graph, a Moore graph. */
	assert_float_equal(mcf_edge_bound(7, 2), 6, 1e-12);
	assert_float_equal(mcf_edge_bound(10, 3), (3 + 2 * 6) / 3.0, 1e-12);
	assert_float_equal(mcf_edge_bound(2, 1), 1, 1e-12);
	assert_float_equal(congestion("Odd(3)"), mcf_edge_bound(10, 3), 1e-3);
}

static void known_best(void **state)
{
	static const struct {
		int n, d;
		bool both;
		const char *expr;
		double congestion;
	} known[] = {
		{ 8, 4, false, "K(4,4)", 2.5 },
		{ 5, 4, false, "K(5)", 1 },
		{ 9, 4, true, "Paley(9)", 3 },
		{ 10, 3, true, "Odd(3)", 5 },
		{ 7, 2, true, "Ring(7)", 6 },
		{ 26, 4, true, "PG(3)", 13.75 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct coll_flow_query q = query(known[i].n, known[i].d,
						 known[i].both);
		struct coll_flow_list l;

		find(&q, &l);
		assert_string_equal(l.points.v[0].expr, known[i].expr);
		assert_float_equal(l.points.v[0].flow.congestion,
				   known[i].congestion,
				   2e-3 * known[i].congestion);
		coll_flow_list_fini(&l);
	}
}

static void check_list(const struct coll_flow_query *q,
		       const struct coll_flow_list *l)
{
	assert_true(l->points.n > 0);
	assert_true((int)l->points.n <= l->considered);
	for (size_t i = 0; i < l->points.n; i++) {
		const struct coll_flow_point *p = &l->points.v[i];
		struct topo *t;

		assert_int_equal(topo_parse(p->expr, &t, NULL, NULL), 0);
		assert_int_equal(topo_n(t), q->n);
		assert_true(topo_max_degree(t) <= q->degree);
		assert_int_equal(topo_diameter(t), p->diameter);
		if (q->bidirectional) {
			assert_true(topo_is_symmetric(t));
		}
		topo_free(t);
		assert_true(p->flow.congestion >= l->bound * (1 - 1e-9));
		assert_true(p->flow.gap <= q->flow.gap);
		assert_true(i == 0 || p->flow.congestion >=
					      p[-1].flow.congestion);
	}
}

/* Nothing that is considered and left out would have been better. */
static void properties(void **state)
{
	static const int degrees[] = { 2, 3, 4, 6 };

	(void)state;
	for (int n = 6; n <= 30; n += 6) {
		for (int k = 0; k < 8; k++) {
			struct coll_flow_query q = query(n, degrees[k / 2],
							 k % 2);
			struct coll_flow_list l;
			char expr[64];

			find(&q, &l);
			check_list(&q, &l);
			if (q.bidirectional) {
				snprintf(expr, sizeof(expr),
					 "Jellyfish(%d,%d,2)", n, q.degree);
			} else {
				snprintf(expr, sizeof(expr),
					 "GenKautz(%d,%d)", q.degree, n);
			}
			if (q.degree < n) {
				assert_true(l.points.v[0].flow.congestion <=
					    congestion(expr) * 1.0011);
			}
			coll_flow_list_fini(&l);
		}
	}
}

static void same_again(void **state)
{
	struct coll_flow_query q = query(20, 4, false);
	struct coll_flow_list a, b;

	(void)state;
	q.most = 2;
	find(&q, &a);
	find(&q, &b);
	assert_true(a.points.n <= 2);
	assert_int_equal(a.points.n, b.points.n);
	for (size_t i = 0; i < a.points.n; i++) {
		assert_string_equal(a.points.v[i].expr, b.points.v[i].expr);
		assert_true(a.points.v[i].flow.congestion ==
			    b.points.v[i].flow.congestion);
	}
	coll_flow_list_fini(&a);
	coll_flow_list_fini(&b);
}

/* Only what a group makes alike is solved, and nothing is lost by it; the same rates as without. */
static void alike_only(void **state)
{
	struct coll_flow_query q = query(24, 4, false);
	struct coll_flow_list all, some;

	(void)state;
	find(&q, &all);
	q.alike_only = true;
	find(&q, &some);
	assert_int_equal(all.points.n + all.rest.n, some.points.n + some.rest.n);
	assert_true(some.points.n > 0);
	for (size_t i = 0; i < some.points.n; i++) {
		assert_true(some.points.v[i].alike);
		assert_true(some.points.v[i].flow.congestion >=
			    all.points.v[0].flow.congestion * (1 - 1.1e-3));
	}
	for (size_t i = 0; i < some.rest.n; i++) {
		assert_true(some.rest.v[i].flow.congestion <= 0);
	}
	coll_flow_list_fini(&all);
	coll_flow_list_fini(&some);
}

static void refused(void **state)
{
	static const struct {
		int n, d;
		bool both;
		int code;
		const char *says;
	} cases[] = {
		{ 1, 2, false, WEFT_EINVAL, "expected 2 of 1" },
		{ 5, 0, false, WEFT_EINVAL, "expected 2 of 1" },
		{ 8000, 80, false, WEFT_ELIMIT, "more than 268435456" },
		{ 5, 1, true, WEFT_EINFEASIBLE, "arcs in both directions" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct coll_flow_query q = query(cases[i].n, cases[i].d,
						 cases[i].both);
		struct coll_flow_list l;
		struct err err = { 0 };

		assert_int_equal(coll_find_flow(&q, &l, &err), cases[i].code);
		assert_non_null(strstr(err.msg, cases[i].says));
		coll_flow_list_fini(&l);
	}
}

/* Steps and T_B of a point hold for its digraph, in M/B of all ports. */
static void check_reduce(const struct coll_flow_query *q, const struct coll_flow_point *p)
{
	struct topo *t;
	int steps[2];
	mpq_t factor, sum;

	mpq_inits(factor, sum, NULL);
	assert_int_equal(topo_parse(p->expr, &t, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(coll_bfb_factor(i ? COLL_REDUCE_SCATTER : COLL_ALLGATHER, t,
						 &steps[i], factor, NULL), 0);
		mpq_add(sum, sum, factor);
	}
	mpq_set_si(factor, q->degree, (unsigned long)topo_max_degree(t));
	mpq_canonicalize(factor);
	mpq_mul(sum, sum, factor);
	assert_int_equal(p->steps, steps[0] + steps[1]);
	assert_int_equal(mpq_cmp_si(sum, p->num, (unsigned long)p->den), 0);
	topo_free(t);
	mpq_clears(factor, sum, NULL);
}

/* An all-reduce and an all-to-all at once: none beats another, what is the best for either is
 * there, and where one graph is the best for both it is alone. */
static void joint(void **state)
{
	static const struct {
		int n, d;
		size_t points;
		int steps;
	} cases[] = { { 50, 7, 1, 4 }, { 72, 4, 2, 8 }, { 27, 6, 1, 6 }, { 10, 3, 1, 4 } };

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct coll_flow_query q = query(cases[c].n, cases[c].d, true);
		struct coll_query reduce = { .n = q.n, .degree = q.degree, .kind = COLL_ALLREDUCE,
					     .bidirectional = true };
		struct coll_frontier f;
		struct coll_flow_list l, flows;
		double best = 0;

		find(&q, &flows);
		assert_int_equal(coll_find_joint(&q, &l, NULL), 0);
		assert_int_equal(coll_find(&reduce, true, &f, NULL), 0);
		assert_int_equal(l.points.n, cases[c].points);
		assert_int_equal(l.points.v[0].steps, cases[c].steps);
		assert_true(l.points.v[0].steps <= f.points.v[0].steps);
		for (size_t i = 0; i < l.points.n; i++) {
			const struct coll_flow_point *p = &l.points.v[i];

			check_reduce(&q, p);
			assert_float_equal(p->flow.congestion, congestion(p->expr),
					   2e-3 * p->flow.congestion);
			assert_true(i == 0 || p->flow.congestion < best * (1 - 1e-4));
			best = p->flow.congestion;
		}
		assert_true(best <= flows.points.v[0].flow.congestion * 1.001);
		coll_frontier_fini(&f);
		coll_flow_list_fini(&l);
		coll_flow_list_fini(&flows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joint), cmocka_unit_test(bounds), cmocka_unit_test(known_best),
		cmocka_unit_test(properties), cmocka_unit_test(same_again),
		cmocka_unit_test(alike_only), cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
