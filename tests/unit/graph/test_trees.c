/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum flows, cuts and packed arborescences of random digraphs, against all
 * cuts one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"

#define MAX_NODES 8
#define MAX_ARCS 40

struct digraph {
	int n, m;
	struct graph_arc arcs[MAX_ARCS];
};

static void make_digraph(struct rng *r, int max_cap, struct digraph *g)
{
	g->n = 2 + (int)rng_below(r, MAX_NODES - 1);
	g->m = (int)rng_below(r, MAX_ARCS + 1);
	for (int a = 0; a < g->m; a++) {
		g->arcs[a] = (struct graph_arc){
			(int32_t)rng_below(r, (uint64_t)g->n),
			(int32_t)rng_below(r, (uint64_t)g->n),
			(int64_t)rng_below(r, (uint64_t)max_cap + 1),
		};
	}
}

/* Capacity of the arcs into a set of nodes. */
static int64_t into(const struct digraph *g, unsigned set)
{
	int64_t sum = 0;

	for (int a = 0; a < g->m; a++) {
		bool from = set >> g->arcs[a].from & 1, to = set >> g->arcs[a].to & 1;

		sum += !from && to ? g->arcs[a].cap : 0;
	}
	return sum;
}

/* The least cut that leaves out `root` and meets `wanted`. */
static int64_t min_cut(const struct digraph *g, int root, unsigned wanted)
{
	int64_t least = INT64_MAX;

	for (unsigned set = 1; set < 1u << g->n; set++) {
		if (!(set >> root & 1) && (set & wanted)) {
			int64_t cap = into(g, set);

			least = cap < least ? cap : least;
		}
	}
	return least;
}

static void test_max_flow(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (int i = 0; i < 2000; i++) {
		struct graph_flow *f = NULL;
		struct digraph g;
		bool side[MAX_NODES];
		unsigned set = 0;
		int64_t value, most, part;

		make_digraph(&r, i % 2 ? 1 : 9, &g);
		assert_int_equal(graph_flow_of(g.n, g.arcs, g.m, &f, NULL), 0);
		most = (int64_t)rng_below(&r, 20);
		part = graph_flow_max(f, 0, g.n - 1, most);
		value = graph_flow_max(f, 0, g.n - 1, INT64_MAX) + part;
		assert_int_equal(value, min_cut(&g, 0, 1u << (g.n - 1)));
		assert_int_equal(part, most < value ? most : value);
		graph_flow_cut(f, g.n - 1, side);
		for (int v = 0; v < g.n; v++) {
			set |= (unsigned)side[v] << v;
		}
		assert_false(side[0]);
		assert_int_equal(into(&g, set), value);
		for (int a = 0; a < g.m; a++) {
			assert_in_range(graph_flow_on(f, a), 0, g.arcs[a].cap);
		}
		graph_flow_free(f);
	}
}

static void test_root_cut(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 12);
	for (int i = 0; i < 2000; i++) {
		struct digraph g;
		int root, sinks;
		int64_t value;

		make_digraph(&r, i % 2 ? 1 : 9, &g);
		root = (int)rng_below(&r, (uint64_t)g.n);
		sinks = 1 + (int)rng_below(&r, (uint64_t)g.n);
		assert_int_equal(graph_root_cut(g.n, g.arcs, g.m, root, sinks, &value, NULL), 0);
		assert_int_equal(value, min_cut(&g, root, (1u << sinks) - 1));
	}
}

/* Every tree spans, and all together respect the capacities. */
static void check_trees(const struct digraph *g, int root, int64_t weight,
			const struct graph_trees *trees)
{
	int64_t used[MAX_ARCS] = { 0 }, sum = 0;

	for (size_t i = 0; i < trees->list.n; i++) {
		const struct graph_tree *t = &trees->list.v[i];
		int deepest = 0;

		assert_true(t->weight >= 1);
		sum += t->weight;
		for (int v = 0; v < g->n; v++) {
			if (v == root) {
				assert_int_equal(t->via[v], -1);
				assert_int_equal(t->depth[v], 0);
				continue;
			}
			assert_in_range(t->via[v], 0, g->m - 1);
			assert_int_equal(g->arcs[t->via[v]].to, v);
			assert_int_equal(t->depth[v], t->depth[g->arcs[t->via[v]].from] + 1);
			used[t->via[v]] += t->weight;
			deepest = t->depth[v] > deepest ? t->depth[v] : deepest;
		}
		assert_int_equal(t->deepest, deepest);
	}
	assert_int_equal(sum, weight);
	for (int a = 0; a < g->m; a++) {
		assert_true(used[a] <= g->arcs[a].cap);
	}
}

static void test_trees(void **state)
{
	int packed = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 13);
	for (int i = 0; i < 4000; i++) {
		struct graph_trees trees = { 0 };
		struct digraph g;
		int root;
		int64_t cut, weight;

		make_digraph(&r, i % 3 ? 20 : 1, &g);
		root = (int)rng_below(&r, (uint64_t)g.n);
		cut = min_cut(&g, root, (1u << g.n) - 1);
		assert_int_equal(graph_pack_trees(g.n, g.arcs, g.m, root, cut + 1, &trees, NULL),
				 WEFT_EINFEASIBLE);
		graph_trees_fini(&trees);
		if (cut == 0) {
			continue;
		}
		weight = i % 5 ? cut : 1 + (int64_t)rng_below(&r, (uint64_t)cut);
		assert_int_equal(graph_pack_trees(g.n, g.arcs, g.m, root, weight, &trees, NULL), 0);
		check_trees(&g, root, weight, &trees);
		graph_trees_fini(&trees);
		packed++;
	}
	assert_true(packed > 2000);
}

/* Roots outside a set weigh more than what goes into it. */
static bool is_too_much(const struct digraph *g, const struct graph_root *roots, int n_roots)
{
	for (unsigned set = 1; set < 1u << g->n; set++) {
		int64_t weight = 0;

		for (int i = 0; i < n_roots; i++) {
			weight += set >> roots[i].node & 1 ? 0 : roots[i].weight;
		}
		if (weight > into(g, set)) {
			return true;
		}
	}
	return false;
}

/* Trees of one root are as check_trees wants them. */
static void check_root(const struct digraph *g, const struct graph_root *root,
		       const struct graph_trees *trees)
{
	struct graph_trees own = { 0 };

	for (size_t i = 0; i < trees->list.n; i++) {
		if (trees->list.v[i].via[root->node] < 0) {
			vec_push(&own.list, trees->list.v[i]);
		}
	}
	check_trees(g, root->node, root->weight, &own);
	vec_fini(&own.list);
}

static void check_loads(const struct digraph *g, const struct graph_trees *trees)
{
	int64_t used[MAX_ARCS] = { 0 };

	for (size_t i = 0; i < trees->list.n; i++) {
		for (int v = 0; v < g->n; v++) {
			int a = trees->list.v[i].via[v];

			if (a >= 0) {
				used[a] += trees->list.v[i].weight;
			}
		}
	}
	for (int a = 0; a < g->m; a++) {
		assert_true(used[a] <= g->arcs[a].cap);
	}
}

/* From many roots of any weights: packed just where all cuts have enough. */
static void test_roots(void **state)
{
	int packed = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 14);
	for (int i = 0; i < 6000; i++) {
		struct graph_trees trees = { 0 };
		struct graph_root roots[MAX_NODES];
		struct digraph g;
		int n_roots = 0, rc;

		make_digraph(&r, i % 3 ? 30 : 3, &g);
		for (int v = 0; v < g.n; v++) {
			if (rng_below(&r, 2)) {
				roots[n_roots++] = (struct graph_root){
					v, 1 + (int64_t)rng_below(&r, i % 3 ? 9 : 1) };
			}
		}
		rc = graph_pack_from_roots(g.n, g.arcs, g.m, roots, n_roots, &trees, NULL);
		assert_int_equal(rc, is_too_much(&g, roots, n_roots) ? WEFT_EINFEASIBLE : 0);
		for (int j = 0; j < n_roots && rc == 0; j++) {
			check_root(&g, &roots[j], &trees);
		}
		check_loads(&g, &trees);
		graph_trees_fini(&trees);
		packed += rc == 0 && n_roots > 0;
	}
	assert_true(packed > 1000);
}

/* The hypercube of dimension d has d trees of depth d + 1, and none less deep:
 * a neighbour of the root is reached by one arc once. */
static void test_hypercube(void **state)
{
	(void)state;
	for (int d = 2; d <= 7; d++) {
		struct graph_arc *arcs = calloc((size_t)d << d, sizeof(*arcs));
		struct graph_trees trees = { 0 };

		for (int a = 0; a < d << d; a++) {
			arcs[a] = (struct graph_arc){ a / d, a / d ^ 1 << a % d, 1 };
		}
		assert_int_equal(graph_pack_trees(1 << d, arcs, d << d, 0, d, &trees, NULL), 0);
		assert_int_equal(trees.list.n, d);
		for (int i = 0; i < d; i++) {
			assert_int_equal(trees.list.v[i].deepest, d + 1);
		}
		graph_trees_fini(&trees);
		free(arcs);
	}
}

/* Complete digraphs have trees of two levels, and all of them keep to the
 * capacities; where an arc is missing or too thin there are none. */
static void test_two_levels(void **state)
{
	(void)state;
	for (int n = 2; n <= 6; n++) {
		struct digraph g = { .n = n };
		struct graph_trees trees = { 0 };

		for (int a = 0; a < n * n; a++) {
			if (a / n != a % n) {
				g.arcs[g.m++] = (struct graph_arc){ a / n, a % n, 3 };
			}
		}
		assert_true(graph_two_level_trees(n, g.arcs, g.m, 1, &trees));
		check_trees(&g, 1, 3 * (n - 1), &trees);
		graph_trees_fini(&trees);
		g.arcs[0].cap = 2;	/* 0 -> 1 is into the root, or between others */
		assert_true(graph_two_level_trees(n, g.arcs, g.m, n - 1, &trees) == (n == 2));
		graph_trees_fini(&trees);
	}
}

static void test_bad_input(void **state)
{
	struct graph_arc arcs[] = { { 0, 1, 3 }, { 1, 2, 1 } }, wrong[] = { { 0, 3, 1 } };
	struct graph_root root[] = { { 0, 1 }, { 3, 1 }, { 0, 0 } };
	struct graph_trees trees = { 0 };
	struct graph_flow *f = NULL;
	int64_t value;

	(void)state;
	assert_int_equal(graph_flow_of(3, wrong, 1, &f, NULL), WEFT_EINVAL);
	assert_null(f);
	assert_int_equal(graph_root_cut(3, wrong, 1, 0, 3, &value, NULL), WEFT_EINVAL);
	assert_int_equal(graph_pack_trees(3, wrong, 1, 0, 1, &trees, NULL), WEFT_EINVAL);
	assert_int_equal(graph_pack_trees(3, arcs, 2, 3, 1, &trees, NULL), WEFT_EINVAL);
	assert_int_equal(graph_pack_trees(3, arcs, 2, 0, 0, &trees, NULL), WEFT_EINVAL);
	assert_int_equal(graph_pack_from_roots(3, wrong, 1, root, 1, &trees, NULL), WEFT_EINVAL);
	assert_int_equal(graph_pack_from_roots(3, arcs, 2, root + 1, 1, &trees, NULL), WEFT_EINVAL);
	assert_int_equal(graph_pack_from_roots(3, arcs, 2, root + 2, 1, &trees, NULL), WEFT_EINVAL);
	assert_int_equal(graph_root_cut(3, arcs, 2, 0, 1, &value, NULL), 0);
	assert_true(value == INT64_MAX);
	graph_trees_fini(&trees);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_max_flow),
		cmocka_unit_test(test_root_cut),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_hypercube),
		cmocka_unit_test(test_two_levels),
		cmocka_unit_test(test_bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
