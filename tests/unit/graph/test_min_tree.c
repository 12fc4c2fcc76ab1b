/* SPDX-License-Identifier: Apache-2.0 */
/* graph: arborescences of least cost, against all choices of arcs and against cuts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"

#define MAX_NODES 6
#define MAX_ARCS 14

/* Whether the arcs into all nodes but root lead to root. */
static bool is_tree(int n, const struct graph_cost_arc *arcs, const int32_t *via, int root)
{
	for (int v = 0; v < n; v++) {
		int u = v, steps = 0;

		while (u != root && steps++ <= n) {
			if (via[u] < 0 || arcs[via[u]].to != u) {
				return false;
			}
			u = arcs[via[u]].from;
		}
		if (u != root) {
			return false;
		}
	}
	return true;
}

/* The least over all choices of an arc into each node; INT64_MAX: no tree. */
static int64_t try_all(int n, const struct graph_cost_arc *arcs, int m, int root, int v,
		       int32_t *via)
{
	int64_t best = INT64_MAX;

	if (v == n) {
		int64_t sum = 0;

		for (int u = 0; u < n; u++) {
			sum += u == root ? 0 : arcs[via[u]].cost;
		}
		return is_tree(n, arcs, via, root) ? sum : INT64_MAX;
	}
	if (v == root) {
		return try_all(n, arcs, m, root, v + 1, via);
	}
	for (int a = 0; a < m; a++) {
		if (arcs[a].to == v) {
			int64_t cost;

			via[v] = a;
			cost = try_all(n, arcs, m, root, v + 1, via);
			best = cost < best ? cost : best;
		}
	}
	return best;
}

static void all_choices(void **state)
{
	struct rng rng;
	int found = 0;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 3000; i++) {
		struct graph_cost_arc arcs[MAX_ARCS];
		int n = 2 + (int)rng_below(&rng, MAX_NODES - 1);
		int m = 1 + (int)rng_below(&rng, MAX_ARCS);
		int root = (int)rng_below(&rng, (uint64_t)n);
		int32_t via[MAX_NODES], room[MAX_NODES];
		int64_t cost = 0, best;
		int rc;

		for (int a = 0; a < m; a++) {
			arcs[a] = (struct graph_cost_arc){ (int32_t)rng_below(&rng, (uint64_t)n),
							   (int32_t)rng_below(&rng, (uint64_t)n),
							   (int64_t)rng_below(&rng, 12) - 3 };
		}
		best = try_all(n, arcs, m, root, 0, room);
		rc = graph_min_tree(n, arcs, m, root, via, &cost, NULL);
		assert_int_equal(rc, best == INT64_MAX ? WEFT_EINFEASIBLE : 0);
		if (rc == 0) {
			int64_t sum = 0;

			for (int v = 0; v < n; v++) {
				sum += v == root ? 0 : arcs[via[v]].cost;
			}
			assert_true(is_tree(n, arcs, via, root));
			assert_int_equal(sum, best);
			assert_int_equal(cost, best);
			found++;
		}
	}
	assert_true(found > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_choices),
	};

	return cmocka_run_group_tests_name("graph/min_tree", tests, NULL, NULL);
}
