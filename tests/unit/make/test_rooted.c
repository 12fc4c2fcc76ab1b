/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives with a root where messages pass through ranks. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "lib/base/number/rng.h"
#include "tests/unit/tree/common.h"

static const struct coll_cost costs[] = {
	{ .alpha_ns = 500, .forwards = true, .hop_ns = 400, .link_bps = INT64_C(400000000000) },
	{ .alpha_ns = 1500, .forwards = true, .hop_ns = 400, .message_ns = 500,
	  .link_bps = INT64_C(400000000000) },
};

/* By "auto", replayed; its time, and its bound. */
static int64_t time_of(const struct topo *t, enum coll_kind kind, int root,
		       const struct coll_cost *cost, int64_t *bound_ns)
{
	struct coll_make_query q = { .kind = kind, .topo = t, .cost = cost, .root = root,
				     .extra_steps = -1 };
	struct coll_report r;
	struct coll_made m;
	struct err err = { 0 };
	int64_t ns;

	must(coll_make(&q, &m, &err), &err);
	coll_report_init(&r);
	must(coll_verify(m.sched, &r, &err), &err);
	coll_report_fini(&r);
	assert_true(m.time_ns >= m.bound_ns);
	ns = m.time_ns;
	*bound_ns = m.bound_ns;
	coll_made_fini(&m);
	return ns;
}

/* What comes to a root in one step, as messages of many ranks cost no more than that of one:
 * before, two to four steps from neighbour to neighbour, 2 to 3 times the bound. */
static void towards_the_root(void **state)
{
	static const struct {
		const char *expr;
		enum coll_kind kind;
		int64_t bytes;
		double above;
	} rows[] = {
		{ "Jellyfish(16,4,2)", COLL_GATHER, 512, 1.01 },
		{ "Jellyfish(16,4,2)", COLL_REDUCE, 512, 1.03 },
		{ "DeBruijn(2,4)", COLL_GATHER, 65536, 1.35 },
		{ "Torus(9,9)", COLL_GATHER, 65536, 1.15 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_cost cost = costs[1];
		struct topo *t = NULL;
		int64_t bound, ns;

		assert_int_equal(topo_parse(rows[i].expr, &t, NULL, NULL), 0);
		cost.size_bytes = rows[i].bytes;
		ns = time_of(t, rows[i].kind, 0, &cost, &bound);
		if ((double)ns > (double)bound * rows[i].above) {
			fail_msg("%s: %lld ns, bound %lld", rows[i].expr, (long long)ns,
				 (long long)bound);
		}
		topo_free(t);
	}
}

/* Of any root, one-way arcs and unlike widths: none is below its bound, nor slower than the
 * collective of all that contains it. */
static void never_slower_than_all(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 38);
	for (int i = 0; i < 12; i++) {
		static const enum coll_kind kinds[] = { COLL_BROADCAST, COLL_REDUCE, COLL_GATHER,
							COLL_SCATTER };
		int n = 4 + (int)rng_below(&r, 4);
		struct topo *t = random_digraph(&r, n, n + (int)rng_below(&r, 2 * (uint64_t)n),
						i % 2 ? 1 : 3, 1, 0);
		struct coll_cost cost = costs[i / 4 % 2];
		int64_t bound, whole;

		cost.size_bytes = INT64_C(256) << 9 * (i % 3);
		whole = time_of(t, coll_trimmed_from(kinds[i % 4]), 0, &cost, &bound);
		assert_true(time_of(t, kinds[i % 4], i % n, &cost, &bound) <= whole);
		topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(towards_the_root), cmocka_unit_test(never_slower_than_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
