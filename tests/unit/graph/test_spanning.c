/* SPDX-License-Identifier: Apache-2.0 */
/* Packed spanning trees of random graphs, against all partitions one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"

#define MAX_NODES 6
#define MAX_EDGES 24

struct graph {
	int n, m;
	struct graph_arc edges[MAX_EDGES];
};

static void make_graph(struct rng *r, struct graph *g)
{
	g->n = 1 + (int)rng_below(r, MAX_NODES);
	g->m = (int)rng_below(r, MAX_EDGES + 1);
	for (int e = 0; e < g->m; e++) {
		g->edges[e] = (struct graph_arc){
			(int32_t)rng_below(r, (uint64_t)g->n),
			(int32_t)rng_below(r, (uint64_t)g->n), (int64_t)rng_below(r, 4),
		};
	}
}

/* Trees that every partition allows that gives nodes from `at` on a part: at most `most`. */
static int64_t allowed(const struct graph *g, int *part, int at, int parts, int64_t most)
{
	int64_t cap = 0;

	if (at < g->n) {
		for (part[at] = 0; part[at] <= parts; part[at]++) {
			int now = part[at] < parts ? parts : parts + 1;

			most = allowed(g, part, at + 1, now, most);
		}
		return most;
	}
	for (int e = 0; e < g->m; e++) {
		cap += part[g->edges[e].from] != part[g->edges[e].to] ? g->edges[e].cap : 0;
	}
	return parts > 1 && cap / (parts - 1) < most ? cap / (parts - 1) : most;
}

/* Each tree connects all nodes, and no edge is used more often than it may. */
static void check_trees(const struct graph *g, int trees, const int32_t *list)
{
	int64_t used[MAX_EDGES] = { 0 };

	for (int j = 0; j < trees; j++) {
		unsigned reached = 1;

		for (int round = 0; round < g->n; round++) {
			for (int i = 0; i < g->n - 1; i++) {
				const struct graph_arc *e = &g->edges[list[j * (g->n - 1) + i]];
				unsigned ends = 1u << e->from | 1u << e->to;

				reached |= reached & ends ? ends : 0;
			}
		}
		assert_int_equal(reached, (1u << g->n) - 1);
		for (int i = 0; i < g->n - 1; i++) {
			used[list[j * (g->n - 1) + i]]++;
		}
	}
	for (int e = 0; e < g->m; e++) {
		assert_true(used[e] <= g->edges[e].cap);
	}
}

static void test_random(void **state)
{
	struct rng r;
	int found = 0;

	(void)state;
	rng_seed(&r, 5);
	for (int i = 0; i < 3000; i++) {
		int part[MAX_NODES], trees = 1 + (int)rng_below(&r, 6), rc;
		int32_t *list;
		struct graph g;

		make_graph(&r, &g);
		rc = graph_pack_spanning_trees(g.n, g.edges, g.m, trees, &list,
					       NULL);
		assert_int_equal(rc, allowed(&g, part, 0, 0, trees) >= trees
					     ? 0 : WEFT_EINFEASIBLE);
		if (rc == 0) {
			check_trees(&g, trees, list);
			found += g.n > 2;
		}
		free(list);
	}
	assert_true(found > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
