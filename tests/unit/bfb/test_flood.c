/* SPDX-License-Identifier: Apache-2.0 */
/* Flooding: replayed on random digraphs, at the bound on meshes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

/* Strongly connected: a cycle and more arcs at random, parallel ones and self-loops too. */
static struct topo *random_digraph(struct rng *r)
{
	int n = 2 + (int)rng_below(r, 12), more = (int)rng_below(r, 30);
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int a = 0; a < n + more; a++) {
		int from = a < n ? a : (int)rng_below(r, (uint64_t)n);
		int to = a < n ? (a + 1) % n : (int)rng_below(r, (uint64_t)n);

		must(topo_add_arc(t, from, to, 2 * (1 + (int64_t)rng_below(r, 3)), 0, &err), &err);
	}
	topo_freeze(t);
	return t;
}

/* coll_flood has replayed what it gives; with a cost and without. */
static void test_random(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
	};
	struct coll_cost cost = { .alpha_ns = 1000, .link_bps = 1000000000, .size_bytes = 100000 };
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (int i = 0; i < 60; i++) {
		struct topo *t = random_digraph(&r);
		struct coll_report report;
		struct err err = { 0 };
		struct coll_sched *s;

		must(coll_flood(kinds[i % 3], t, i % 2 ? &cost : NULL, &s, &err), &err);
		coll_report_init(&report);
		must(coll_verify(s, &report, &err), &err);
		assert_int_equal(coll_kind_of(s), kinds[i % 3]);
		assert_int_equal(report.nodes, topo_n(t));
		coll_report_fini(&report);
		coll_free(s);
		topo_free(t);
	}
}

static void assert_flood(enum coll_kind kind, const char *expr, const char *factor,
			 const char *bound, int max_steps)
{
	struct topo *t = graph_of(expr);
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_flood(kind, t, NULL, &s, &err), &err);
	assert_factor(s, factor, bound);
	assert_in_range(coll_steps(s), 1, max_steps);
	coll_free(s);
	topo_free(t);
}

/* Corners are busy from the first step to the last. */
static void test_meshes(void **state)
{
	(void)state;
	assert_flood(COLL_ALLGATHER, "Mesh(5,5)", "48/25", "48/25", 12);
	assert_flood(COLL_REDUCE_SCATTER, "Mesh(5,5)", "48/25", "48/25", 12);
	assert_flood(COLL_ALLGATHER, "Mesh(10,10)", "99/50", "99/50", 40);
	assert_flood(COLL_ALLGATHER, "K(6)", "5/6", "5/6", 1);
}

/* A hub and a ring of nine, whose nodes have two links from beside them and one from the hub:
 * some order of what comes by them keeps all three busy in all six steps of half a shard. */
static void test_wheel(void **state)
{
	const struct coll_cost cost = { .alpha_ns = 500, .link_bps = INT64_C(400000000000),
					.size_bytes = 1 << 30 };
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	(void)state;
	must(topo_new(10, &t, &err), &err);
	for (int v = 0; v < 9; v++) {
		const int to[] = { (v + 1) % 9, (v + 8) % 9, 9 };

		for (int k = 0; k < 3; k++) {
			must(topo_add_arc(t, v, to[k], 1, 0, &err), &err);
		}
		must(topo_add_arc(t, 9, v, 1, 0, &err), &err);
	}
	topo_freeze(t);
	must(coll_flood(COLL_ALLGATHER, t, &cost, &s, &err), &err);
	assert_factor(s, "27/10", "27/10");
	coll_free(s);
	topo_free(t);
}

static void test_refused(void **state)
{
	static const int arcs[][2] = { { 0, 1 } };
	struct topo *t = graph_from(2, 1, arcs), *star = graph_of("Star(3)"), *big;
	struct coll_sched *s;

	(void)state;
	assert_int_equal(coll_flood(COLL_ALLGATHER, t, NULL, &s, NULL), WEFT_EINFEASIBLE);
	assert_int_equal(coll_flood(COLL_ALLTOALL, t, NULL, &s, NULL), WEFT_EUNSUPPORTED);
	assert_int_equal(coll_flood(COLL_ALLGATHER, star, NULL, &s, NULL), WEFT_EUNSUPPORTED);
	big = graph_of("Ring(3000)");
	assert_int_equal(coll_flood(COLL_ALLGATHER, big, NULL, &s, NULL), WEFT_ELIMIT);
	assert_null(s);
	topo_free(t);
	topo_free(star);
	topo_free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_meshes),
		cmocka_unit_test(test_wheel),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
