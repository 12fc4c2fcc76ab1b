/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first broadcast that is balanced for batches that overlap. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "tests/unit/tree/common.h"
#include "tests/unit/world.h"

/* The digraph of an expression without the arc from one node to another, and without that back. */
static struct topo *without_arcs(const char *expr, int u, int v, bool back)
{
	struct topo *whole = NULL, *t = NULL;

	assert_int_equal(topo_parse(expr, &whole, NULL, NULL), 0);
	assert_int_equal(topo_new(topo_n(whole), &t, NULL), 0);
	for (int i = 0; i < topo_m(whole); i++) {
		const struct topo_arc *a = topo_arc(whole, i);

		if (!(a->src == u && a->dst == v) && !(back && a->src == v && a->dst == u)) {
			assert_int_equal(topo_add_arc_like(t, a->src, a->dst, a, NULL), 0);
		}
	}
	topo_freeze(t);
	topo_free(whole);
	return t;
}

static struct topo *without(const char *expr, int u, int v)
{
	return without_arcs(expr, u, v, true);
}

static struct coll_sched *make(enum coll_kind kind, const struct topo *t, bool steady)
{
	struct coll_sched *s = NULL, *flat = NULL;
	struct topo *copy = NULL;
	struct err err = { 0 };

	must(topo_copy(t, &copy, &err), &err);
	must(steady ? coll_steady(kind, copy, &s, &err) : coll_bfb(kind, copy, &s, &err), &err);
	must(coll_unfold(s, &flat, &err), &err);
	coll_free(s);
	return flat;
}

/* The most that an arc carries in all, in shards per unit of capacity. */
static double fullest(const struct coll_sched *s)
{
	const struct topo *t = coll_topo(s);
	double *load = x_new((size_t)topo_m(t) + 1, sizeof(*load)), most = 0;
	int64_t n;
	const struct coll_xfer *x = coll_xfers(s, &n);

	for (int64_t i = 0; i < n; i++) {
		double *l = &load[x[i].arc];

		*l += (double)(x[i].last - x[i].first + 1) / coll_chunks(s) /
		      (double)topo_arc(t, x[i].arc)->cap;
		most = *l > most ? *l : most;
	}
	free(load);
	return most;
}

/* In M/B, of b batches. */
static double factor_of(const struct coll_sched *s, int batches)
{
	struct coll_sched *p = NULL;
	struct coll_report r;
	struct err err = { 0 };
	double factor;

	coll_report_init(&r);
	must(coll_pipeline(s, batches, &p, &err), &err);
	must(coll_verify(p, &r, &err), &err);
	factor = mpq_get_d(r.bandwidth_factor);
	coll_report_fini(&r);
	coll_free(p);
	return factor;
}

/* All links of what is broken carry as much, and many batches come near to that: all but the first
 * and last steps are full. */
static void broken(void **state)
{
	static const struct { const char *expr; int u, v, links; } cases[] = {
		{ "Torus(6,6)", 0, 1, 142 }, { "Torus(8,8)", 9, 17, 254 },
		{ "Torus(3,4,4)", 0, 16, 286 }, { "Hypercube(5)", 3, 7, 158 },
	};

	(void)state;
	for (int i = 0; i < ALL_OR_SOME(4, 2); i++) {
		struct topo *t = without(cases[i].expr, cases[i].u, cases[i].v);
		struct coll_sched *s = make(COLL_ALLREDUCE, t, true);
		int n = topo_n(t);
		double even = 2.0 * n * (n - 1) / cases[i].links, limit;

		assert_int_equal(topo_m(t), cases[i].links);
		assert_true(fullest(s) >= even * (1 - 1e-9) && fullest(s) <= even * 1.006);
		limit = fullest(s) * coll_ports(s) / n;
		assert_true(factor_of(s, 64) <= limit * 1.06);
		assert_true(factor_of(s, 64) >= limit * (1 - 1e-9));
		coll_free(s);
		topo_free(t);
	}
}

/* Never more on a link in all than where each level is balanced by itself, but for rounding, also
 * with capacities, parallel arcs and self-loops; and in the fewest steps. */
static void never_worse(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCE_SCATTER,
						COLL_ALLREDUCE };
	struct rng r;

	(void)state;
	rng_seed(&r, 4302);
	for (int i = 0; i < ALL_OR_SOME(200, 40); i++) {
		int n = 2 + (int)rng_below(&r, 14);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 40), 3, 1, 0);
		struct coll_sched *s = make(kinds[i % 3], t, true);
		struct coll_sched *levels = make(kinds[i % 3], t, false);
		double rounding = 1.0 / coll_chunks(s);

		assert_true(coll_chunks(s) >= 4 && coll_chunks(s) <= 32);
		assert_int_equal(coll_steps(s), coll_steps(levels));
		assert_true(fullest(s) <= fullest(levels) * 1.01 + rounding);
		coll_free(levels);
		coll_free(s);
		topo_free(t);
	}
}

/* Compact where the digraph has a group. */
static void compact(void **state)
{
	struct topo *t = NULL, *copy = NULL;
	struct coll_sched *s = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topo_parse("DiCay(4:32,r=3,{(0,31),(3,14),(0,16),(3,30)})", &t, NULL,
				    NULL), 0);
	must(topo_copy(t, &copy, &err), &err);
	must(coll_steady(COLL_ALLREDUCE, copy, &s, &err), &err);
	assert_non_null(coll_group(s));
	must(coll_verify(s, NULL, &err), &err);
	coll_free(s);
	must(topo_copy(t, &copy, &err), &err);
	assert_int_equal(coll_steady(COLL_ALLTOALL, copy, &s, &err), WEFT_EUNSUPPORTED);
	topo_free(t);
}

/* Refused at once where it would take long: on a chain there is nothing to choose. */
static void too_large(void **state)
{
	struct topo *t = NULL;
	struct coll_sched *s = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topo_parse("Mesh(500)", &t, NULL, NULL), 0);
	assert_int_equal(coll_steady(COLL_ALLREDUCE, t, &s, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "too many to be balanced"));
	assert_null(s);
}

/* The time of a schedule, replayed, is not below its bound. */
static double time_of(struct coll_sched *s, const struct coll_cost *cost)
{
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns, bound;

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, cost, &ns, &bound, &err), &err);
	assert_true(ns >= bound);
	coll_report_fini(&r);
	coll_free(s);
	return (double)ns;
}

static struct coll_sched *unequal(const struct topo *t, const struct coll_cost *cost,
				  double below_ns, int64_t max_transfers)
{
	struct coll_sched *s = NULL;
	struct topo *copy = NULL;
	struct err err = { 0 };

	must(topo_copy(t, &copy, &err), &err);
	must(coll_steady_timed(copy, cost, below_ns, max_transfers, &s, &err), &err);
	return s;
}

#define MANY (1 << 24)

static const struct coll_cost fast = {
	.alpha_ns = 500, .hop_ns = 400, .link_bps = 400000000000, .size_bytes = 16 << 20,
};

/* A torus less a link, or one direction of it, takes little more than the whole one. */
static void near_whole(void **state)
{
	static const struct { const char *expr; int v; bool duplex; double more; } cases[] = {
		{ "Torus(6,6)", 1, true, 1.14 }, { "Torus(4,4)", 4, false, 1.16 },
		{ "Torus(8,8)", 8, true, 1.13 },
	};

	(void)state;
	for (int i = 0; i < ALL_OR_SOME(3, 2); i++) {
		struct topo *t = without_arcs(cases[i].expr, 0, cases[i].v, cases[i].duplex);
		struct topo *whole = NULL;
		double before;

		assert_int_equal(topo_parse(cases[i].expr, &whole, NULL, NULL), 0);
		before = time_of(make(COLL_ALLREDUCE, whole, false), &fast);
		assert_true(time_of(unequal(t, &fast, HUGE_VAL, MANY), &fast) <=
			    before * cases[i].more);
		topo_free(whole);
		topo_free(t);
	}
}

/* With capacities, parallel arcs and self-loops, of long vectors: hardly more than level by level
 * in a single batch, which is one of its choices. */
static void unequal_random(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 4303);
	for (int i = 0; i < ALL_OR_SOME(100, 20); i++) {
		struct topo *t = random_digraph(&r, 2 + (int)rng_below(&r, 14),
						(int)rng_below(&r, 40), 3, 1, 0);
		double levels = time_of(make(COLL_ALLREDUCE, t, false), &fast);

		assert_true(time_of(unequal(t, &fast, HUGE_VAL, MANY), &fast) <= levels * 1.03);
		topo_free(t);
	}
}

static void unequal_nothing(void **state)
{
	struct topo *t = without("Torus(4,4)", 0, 1), *path = NULL;
	struct coll_sched *s = NULL;
	struct err err = { 0 };

	(void)state;
	assert_null(unequal(t, &fast, 1000, MANY));
	assert_null(unequal(t, &fast, HUGE_VAL, 100));
	assert_int_equal(topo_new(2, &path, NULL), 0);
	assert_int_equal(topo_add_arc(path, 0, 1, 1, 0, NULL), 0);
	topo_freeze(path);
	assert_int_equal(coll_steady_timed(path, &fast, HUGE_VAL, MANY, &s, &err),
			 WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "no path"));
	assert_null(s);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken), cmocka_unit_test(never_worse),
		cmocka_unit_test(compact), cmocka_unit_test(too_large),
		cmocka_unit_test(near_whole), cmocka_unit_test(unequal_random),
		cmocka_unit_test(unequal_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
