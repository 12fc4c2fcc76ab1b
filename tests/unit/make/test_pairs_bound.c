/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of an all-to-all by what crosses thin arcs and arcs between switches, against flows. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "lib/base/number/rng.h"
#include "tests/unit/tree/common.h"

/* Of the terminals of t, which has switches. Returns T_B over its bound, never below 1. */
static double above_bound(const struct topo *t)
{
	struct coll_fabric f = { .name = "fabric" };
	struct coll_make_query q = coll_make_job(COLL_ALLTOALL, NULL, NULL, NULL);
	struct topo *seen = NULL;
	struct coll_made m;
	struct err err = { 0 };
	double above;

	if (topo_ranks(t) < topo_n(t)) {
		must(topo_copy(t, &f.topo, &err), &err);
		must(coll_terminals_see(t, &seen, &err), &err);
		q.fabric = &f;
		q.physical = f.topo;
	}
	q.topo = seen ? seen : t;
	must(coll_make(&q, &m, &err), &err);
	assert_true(mpq_cmp(m.report.bandwidth_factor, m.report.bandwidth_bound) >= 0);
	above = mpq_get_d(m.report.bandwidth_factor) / mpq_get_d(m.report.bandwidth_bound);
	coll_made_fini(&m);
	topo_free(seen);
	topo_free(f.topo);
	return above;
}

static void never_above(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 40);
	for (int i = 0; i < 60; i++) {
		int switches = i % 2 ? 1 + (int)rng_below(&r, 3) : 0;
		int n = 3 + switches + (int)rng_below(&r, 5);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 3 * (uint64_t)n), 12, 1,
						switches);

		above_bound(t);
		topo_free(t);
	}
}

/* Three boxes that are wide inside: what crosses between them decides. */
static void boxes(void **state)
{
	struct topo *t = NULL;

	(void)state;
	assert_int_equal(topo_new(12, &t, NULL), 0);
	for (int u = 0; u < 12; u++) {
		for (int v = 0; v < 12; v++) {
			bool inside = u / 4 == v / 4;

			if (u != v && (inside || u % 4 == v % 4)) {
				assert_int_equal(topo_add_arc(t, u, v, inside ? 100 : 1, 0, NULL),
						 0);
			}
		}
	}
	topo_freeze(t);
	assert_true(above_bound(t) < 1.03);
	topo_free(t);
}

/* On a mesh links in the middle decide, and on generalized Kautz graphs lengths of paths that no
 * flow can all have: the flow's own bound is the schedule's. */
static void of_the_flow(void **state)
{
	static const struct {
		const char *expr;
		double most;
	} known[] = {
		{ "Mesh(4,4)", 1.03 }, { "Mesh(3,5)", 1.03 }, { "GenKautz(4,64)", 1.05 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = NULL;
		double above;

		assert_int_equal(topo_parse(known[i].expr, &t, NULL, NULL), 0);
		above = above_bound(t);
		if (above > known[i].most) {
			fail_msg("%s: %g times its bound", known[i].expr, above);
		}
		topo_free(t);
	}
}

/* Two boxes, each a ring of eight, behind a switch that is much thinner: messages stay in their box
 * where they can, and those that leave it are in batches, so that the switch never rests. */
static void boxes_behind_a_switch(void **state)
{
	const struct coll_cost cost = { .alpha_ns = 500, .link_bps = INT64_C(8000000000),
					.size_bytes = 256 << 20 };
	struct coll_fabric f = { .name = "fabric" };
	struct coll_make_query q = coll_make_job(COLL_ALLTOALL, NULL, NULL, &cost);
	struct topo *seen = NULL;
	struct coll_made m;
	struct err err = { 0 };

	(void)state;
	must(topo_new(17, &f.topo, &err), &err);
	topo_set_node(f.topo, 16, TOPO_SWITCH, 0);
	for (int u = 0; u < 16; u++) {
		int next = u / 8 * 8 + (u + 1) % 8;

		must(topo_add_arc(f.topo, u, next, 50, 0, &err), &err);
		must(topo_add_arc(f.topo, next, u, 50, 0, &err), &err);
		must(topo_add_arc(f.topo, u, 16, 16, 0, &err), &err);
		must(topo_add_arc(f.topo, 16, u, 16, 0, &err), &err);
	}
	topo_freeze(f.topo);
	must(coll_terminals_see(f.topo, &seen, &err), &err);
	q.topo = seen;
	q.fabric = &f;
	q.physical = f.topo;
	must(coll_make(&q, &m, &err), &err);
	if (m.time_ns * 100 > m.bound_ns * 102) {
		fail_msg("%lld ns of %lld", (long long)m.time_ns, (long long)m.bound_ns);
	}
	coll_made_fini(&m);
	topo_free(seen);
	topo_free(f.topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_above), cmocka_unit_test(boxes),
		cmocka_unit_test(of_the_flow), cmocka_unit_test(boxes_behind_a_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
