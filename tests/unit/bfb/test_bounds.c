/* SPDX-License-Identifier: Apache-2.0 */
/* The loads by distance of all nodes at once, against a linear program for
 * each node and distance. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/private.h"
#include "collective/bfb/balance.h"
#include "topology/topology.h"
#include "lib/base/number/rng.h"
#include "tests/unit/bfb/balance_lp.h"
#include "tests/unit/schedule/common.h"

/* The program of node u at distance d from distances, an item a group. */
static double load_by_lp(const struct topo *t, const int32_t *dist,
			       int u, int d)
{
	const int32_t *in;
	int n = topo_n(t), k = topo_in(t, u, &in);
	struct bfb_program b = { 0 };
	double load = 0;

	b.cap = malloc((size_t)k * sizeof(*b.cap));
	b.groups = malloc((size_t)n * sizeof(*b.groups));
	b.use = malloc((size_t)n * k * sizeof(*b.use));
	assert_true(b.cap && b.groups && b.use);
	b.n_links = k;
	for (int i = 0; i < k; i++) {
		b.cap[i] = topo_arc(t, in[i])->cap;
	}
	for (int v = 0; v < n; v++) {
		struct bfb_group g = { .items = 1, .first = b.n_use };

		for (int i = 0; i < k && dist[v * n + u] == d; i++) {
			int w = topo_arc(t, in[i])->src;

			if (w != u && dist[v * n + w] == d - 1) {
				b.use[b.n_use++] = i;
			}
		}
		g.n = b.n_use - g.first;
		if (g.n > 0) {
			b.groups[b.n_groups++] = g;
		}
	}
	if (b.n_groups > 0) {
		load = min_by_lp(&b, 1, false);
	}
	free(b.cap);
	free(b.groups);
	free(b.use);
	return load;
}

/* Takes t. */
static void assert_tops(struct topo *t)
{
	int n = topo_n(t), diameter = topo_diameter(t);
	int32_t *dist = malloc((size_t)n * n * sizeof(*dist));
	struct bfb_bounds tops = { 0 };
	struct err err = { 0 };

	assert_non_null(dist);
	for (int v = 0; v < n; v++) {
		topo_bfs(t, v, dist + (size_t)v * n);
	}
	assert_true(bfb_bounds_can(t));
	must(bfb_bounds_solve(t, n, &tops, &err), &err);
	assert_int_equal(tops.n, diameter);
	for (int d = 1; d <= diameter; d++) {
		double top = 0;

		for (int u = 0; u < n; u++) {
			top = fmax(top, load_by_lp(t, dist, u, d));
		}
		assert_load(tops.v[d - 1], top);
	}
	vec_fini(&tops);
	free(dist);
	topo_free(t);
}

static void test_families(void **state)
{
	static const char *const exprs[] = {
		"GenKautz(2,23)", "GenKautz(4,61)", "GenKautz(11,70)",
		"Reverse(GenKautz(9,65))", "Bi(GenKautz(5,40))", "Torus(3,5)",
		"DeBruijn(3,3)", "K(4,9)", "Jellyfish(40,9,1)", "Mesh(4,5)",
		"Multi(GenKautz(3,20),2)", "L(Diamond)", "UniRing(1,2)",
		"Prod(Cap(Ring(4),3),GenKautz(2,11))",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		assert_tops(graph_of(exprs[i]));
	}
}

/* A cycle and random arcs, some parallel, some loops, of capacity up to
 * `caps`. */
static struct topo *random_graph(struct rng *rng, int n, int extra, int caps)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int u = 0; u < n; u++) {
		must(topo_add_arc(t, u, (u + 1) % n, 1, 0, &err), &err);
	}
	for (int i = 0; i < extra; i++) {
		must(topo_add_arc(t, (int)rng_below(rng, n),
				  (int)rng_below(rng, n),
				  1 + (int)rng_below(rng, caps), 0, &err),
		     &err);
	}
	topo_freeze(t);
	return t;
}

static void test_random_graphs(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 40; i++) {
		int n = 2 + (int)rng_below(&rng, 30);

		assert_tops(random_graph(&rng, n,
					 (int)rng_below(&rng, 8 * n),
					 i % 2 ? 1 : 9));
	}
}

/* The first half of a graph that equals its mirror image has all there is. */
static void test_mirrors(void **state)
{
	static const struct {
		const char *expr;
		bool mirrors;
	} rows[] = {
		{ "GenKautz(3,50)", true }, { "GenKautz(4,77)", true },
		{ "Reverse(GenKautz(3,50))", true }, { "DeBruijn(2,5)", true },
		{ "Bi(GenKautz(4,33))", true }, { "Mesh(3,3)", true },
		{ "Jellyfish(40,4,1)", false },
		{ "Prod(Cap(Mesh(2),3),GenKautz(2,9))", true },
	};
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = graph_of(rows[i].expr);
		struct bfb_bounds half = { 0 }, all = { 0 };
		int n = topo_n(t);

		assert_int_equal(topo_has_mirror(t), rows[i].mirrors);
		must(bfb_bounds_solve(t, n, &all, &err), &err);
		must(bfb_bounds_solve(t, n - n / 2, &half, &err), &err);
		for (size_t k = 0; k < all.n && rows[i].mirrors; k++) {
			assert_int_equal(bfb_ratio_cmp(half.v[k], all.v[k]), 0);
		}
		vec_fini(&all);
		vec_fini(&half);
		topo_free(t);
	}
}

/* Generalized Kautz and de Bruijn graphs whose degree +- 1 shares a factor
 * with the nodes: that many runs of nodes are alike. */
static void test_some_translations(void **state)
{
	static const struct {
		const char *expr;
		int fixed;	/* 0: no translations */
	} rows[] = {
		{ "GenKautz(2,39)", 13 }, { "GenKautz(4,65)", 13 },
		{ "Reverse(GenKautz(4,85))", 17 }, { "GenKautz(8,78)", 26 },
		{ "GenKautz(9,50)", 5 }, { "DeBruijn(3,4)", 0 },
		{ "GenKautz(4,64)", 0 }, { "GenKautz(4,80)", 16 },
	};
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = graph_of(rows[i].expr);
		struct bfb_bounds some = { 0 }, all = { 0 };
		int n = topo_n(t), fixed = rows[i].fixed;
		struct topo_group *g;

		must(topo_group_find(t, &g, &err), &err);
		assert_int_equal(g ? topo_group_orbits(g) : 0, fixed);
		must(bfb_bounds_solve(t, n, &all, &err), &err);
		must(bfb_bounds_solve(t, g ? fixed : n, &some, &err), &err);
		topo_group_free(g);
		assert_int_equal(some.n, all.n);
		for (size_t k = 0; k < all.n; k++) {
			assert_int_equal(bfb_ratio_cmp(some.v[k], all.v[k]), 0);
		}
		vec_fini(&all);
		vec_fini(&some);
		topo_free(t);
	}
}

static void test_refusals(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 0 }, { 1, 2 } };
	struct topo *t = graph_from(3, 3, arcs);
	struct bfb_bounds tops = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(bfb_bounds_solve(t, 3, &tops, &err), WEFT_EINFEASIBLE);
	assert_string_equal(err.msg, "the digraph is not strongly connected: "
			    "rank 2 cannot reach rank 0");
	vec_fini(&tops);
	topo_free(t);
	t = graph_of("K(70)");
	assert_false(bfb_bounds_can(t));
	topo_free(t);
}

/* Items and room of random programs: as a flow says, or links that prove that it says no. */
static void test_carries(void **state)
{
	struct bfb_level s = { 0 };
	struct rng rng;
	int n_fit = 0;

	(void)state;
	rng_seed(&rng, 11);
	for (int k = 0; k < 400; k++) {
		int n = 1 + (int)rng_below(&rng, 9), use[90], share_of = 0;
		int64_t cap[9], room[9], share[90], items = 0, space = 0;
		struct bfb_group groups[10];
		struct bfb_program b = { .n_links = n, .n_groups = 1 + (int)rng_below(&rng, 10),
					 .cap = cap, .groups = groups, .use = use };
		uint64_t sets[10], cut;
		bool fits, flow_cut[9];
		struct err err = { 0 };

		for (int w = 0; w < n; w++) {
			cap[w] = 1;
			room[w] = (int64_t)rng_below(&rng, 30) << 40;
		}
		bfb_level_begin(&s, n, cap, b.n_groups);
		for (int g = 0; g < b.n_groups; g++) {
			sets[g] = 1 + rng_below(&rng, (UINT64_C(1) << n) - 1);
			groups[g] = (struct bfb_group){ (int64_t)rng_below(&rng, 20) << 40,
							share_of, __builtin_popcountll(sets[g]) };
			for (int w = 0; w < n; w++) {
				if (sets[g] >> w & 1) {
					use[share_of++] = w;
				}
			}
			bfb_level_add_items(&s, sets[g], groups[g].items);
		}
		b.n_use = share_of;
		must(bfb_program_fit(&b, 1, room, share, flow_cut, &fits, &err), &err);
		assert_true(bfb_level_carries(&s, room, &cut) == fits);
		n_fit += fits;
		for (int g = 0; g < b.n_groups && !fits; g++) {
			items += sets[g] & ~cut ? 0 : groups[g].items;
		}
		for (int w = 0; w < n && !fits; w++) {
			space += cut >> w & 1 ? room[w] : 0;
		}
		assert_true(fits || items > space);
	}
	assert_in_range(n_fit, 40, 360);
	bfb_level_fini(&s);
}

/* Three items on links of 1 and 2 where one link is all that two can use. */
static void test_spread_by_hand(void **state)
{
	const int64_t cap[] = { 1, 2 };
	struct bfb_ratio load = { 1, 2 };
	struct bfb_level s = { 0 };
	struct err err = { 0 };
	bool fits;

	(void)state;
	bfb_level_begin(&s, 2, cap, 3);
	must(0, &err);
	bfb_level_add(&s, 1);
	bfb_level_add(&s, 1);
	bfb_level_add(&s, 3);
	bfb_level_fits(&s, &load, &fits);
	must(0, &err);
	assert_false(fits);
	assert_true(load.num == 2 && load.den == 1);
	bfb_level_fits(&s, &load, &fits);
	must(0, &err);
	assert_true(fits);
	bfb_level_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_mirrors),
		cmocka_unit_test(test_some_translations),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_carries),
		cmocka_unit_test(test_spread_by_hand),
	};

	return cmocka_run_group_tests_name("bfb/bounds", tests, NULL,
					   NULL);
}
