/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of least cost on random digraphs that a group moves: every schedule is proven, whatever the
 * numbers of the first ranks of its orbits, and not below its bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "lib/base/number/rng.h"
#include "tests/unit/tree/common.h"

static const struct coll_cost cost = {
	.alpha_ns = 1000, .link_bps = INT64_C(100000000000), .size_bytes = 1 << 28,
};

/* Each arc has its image where ranks 2k and 2k + 1 change places. */
static struct topo *mirrored(struct rng *r, int n, int more)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int a = 0; a < n + more; a++) {
		int from = a < n ? a : (int)rng_below(r, (uint64_t)n);
		int to = a < n ? (a + 1) % n : (int)rng_below(r, (uint64_t)n);
		int cap = 1 + (int)rng_below(r, 4);

		if (from != to) {
			must(topo_add_arc(t, from, to, cap, 0, &err), &err);
			must(topo_add_arc(t, from ^ 1, to ^ 1, cap, 0, &err), &err);
		}
	}
	topo_freeze(t);
	return t;
}

static void all_are_proven(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLREDUCE, COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_BROADCAST,
		COLL_REDUCE,
	};
	struct rng r;

	(void)state;
	rng_seed(&r, 38);
	for (int i = 0; i < 36; i++) {
		int n = 4 + 2 * (int)rng_below(&r, 2);
		struct topo *t = mirrored(&r, n, (int)rng_below(&r, (uint64_t)n));
		struct coll_make_query q = { .kind = kinds[i % 6], .topo = t, .cost = &cost,
					     .min_cost = true };
		struct coll_made m;
		struct err err = { 0 };

		q.algorithm = coll_algorithm_find("trees", q.kind);
		must(coll_make(&q, &m, &err), &err);
		assert_true(m.time_ns >= m.bound_ns);
		coll_made_fini(&m);
		topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_are_proven) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
