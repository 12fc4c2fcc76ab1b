/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of routes, checked by a cycle finder that knows nothing of ranks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/flow/private.h"
#include "collective/routing/routes.h"
#include "lib/base/number/rng.h"
#include "lib/base/vec.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

struct table {
	VEC(int64_t) first;
	VEC(int32_t) arcs;
	struct layer_routes r;
};

static void close_table(struct table *t, int n_arcs)
{
	vec_push(&t->first, (int64_t)t->arcs.n);
	t->r = (struct layer_routes){
		n_arcs, (int64_t)t->first.n - 1, t->first.v, t->arcs.v,
	};
}

static void table_fini(struct table *t)
{
	vec_fini(&t->first);
	vec_fini(&t->arcs);
}

/* Depth-first search of one layer's dependencies; state: 0 new, 1 open, 2
 * done. */
static bool has_cycle_from(const struct layer_routes *r, const int32_t *layer,
			   int k, int arc, uint8_t *state)
{
	state[arc] = 1;
	for (int64_t i = 0; i < r->n; i++) {
		if (layer[i] != k) {
			continue;
		}
		for (int64_t j = r->first[i] + 1; j < r->first[i + 1]; j++) {
			int next = r->arcs[j];

			if (r->arcs[j - 1] == arc &&
			    (state[next] == 1 ||
			     (state[next] == 0 &&
			      has_cycle_from(r, layer, k, next, state)))) {
				return true;
			}
		}
	}
	state[arc] = 2;
	return false;
}

static bool has_cycle(const struct layer_routes *r, const int32_t *layer,
		      int k)
{
	uint8_t *state = calloc((size_t)r->n_arcs, 1);
	bool cycle = false;

	for (int a = 0; a < r->n_arcs && !cycle; a++) {
		cycle = state[a] == 0 &&
			has_cycle_from(r, layer, k, a, state);
	}
	free(state);
	return cycle;
}

static int assign_and_check(const struct layer_routes *r)
{
	int32_t *layer = calloc((size_t)r->n + 1, sizeof(*layer)), *rank;
	struct err err = { 0 };
	int n;

	must(layers_assign(r, 0, layer, &n, &rank, &err), &err);
	assert_true(layers_proven(r, layer, n, rank));
	for (int k = 0; k < n; k++) {
		assert_false(has_cycle(r, layer, k));
	}
	free(rank);
	free(layer);
	return n;
}

/* One path a pair out of the flow. */
static void single_paths(const char *expr, struct table *out)
{
	struct topo *t = graph_of(expr);
	struct mcf_options opt = { .gap = 1e-3 };
	struct flow_paths paths = { 0 };
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	must(mcf_new(t, false, &p, &err), &err);
	must(mcf_run(p, &opt, &res, &err), &err);
	flow_paths_cut(p, NULL, &paths);
	assert_true(flow_paths_round(&p->net, &paths, 1) >=
		    res.bound * (1 - 1e-9));
	for (size_t i = 0; i < paths.v.n; i++) {
		const struct flow_path *q = &paths.v.v[i];

		if (q->chunks == 0) {
			continue;
		}
		vec_push(&out->first, (int64_t)out->arcs.n);
		for (int k = 0; k < q->n_arcs; k++) {
			vec_push(&out->arcs, paths.arcs.v[q->first + k]);
		}
	}
	close_table(out, p->net.m);
	flow_paths_fini(&paths);
	mcf_free(p);
	topo_free(t);
}

/* Shortest paths, local search or the integer program; their congestion. */
static double chosen_paths(const char *expr, enum single_effort effort,
			   struct table *out)
{
	struct topo *t = graph_of(expr);
	struct single_options opt = {
		.effort = effort, .seed = 1, .flow_gap = 1e-2,
		.deadline = deadline_in(effort == SINGLE_INTEGER ? 2000000000 : 0, NULL),
	};
	struct flow_paths paths;
	struct single_result res;
	struct err err = { 0 };
	struct flow_net net = { 0 };

	must(single_path(t, &opt, &paths, &res, &err), &err);
	must(flow_net_from(t, NULL, &net, &err), &err);
	for (size_t i = 0; i < paths.v.n; i++) {
		const struct flow_path *q = &paths.v.v[i];

		vec_push(&out->first, (int64_t)out->arcs.n);
		for (int k = 0; k < q->n_arcs; k++) {
			vec_push(&out->arcs, paths.arcs.v[q->first + k]);
		}
	}
	assert_true(res.congestion >= res.bound * (1 - 1e-9));
	close_table(out, net.m);
	flow_net_fini(&net);
	flow_paths_fini(&paths);
	topo_free(t);
	return res.congestion;
}

/* Load-aware shortest paths, those of the search, and those of the integer
 * program, which may still run when its time is up. */
static void test_single_routes(void **state)
{
	static const char *const all[] = { "Torus(3,3,3)", "GenKautz(4,64)" };
	static const struct {
		enum single_effort effort;
		const char *name;
	} ways[] = {
		{ SINGLE_SHORTEST, "shortest paths" },
		{ SINGLE_SEARCH, "local search" },
		{ SINGLE_INTEGER, "integer program" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct table t = { 0 };
			double use = chosen_paths(all[i], ways[k].effort, &t);
			int layers = assign_and_check(&t.r);

			print_message("%s by %s: congestion %g, %d layers for "
				      "%lld routes\n", all[i], ways[k].name,
				      use, layers, (long long)t.r.n);
			assert_in_range(layers, 1, 16);
			table_fini(&t);
		}
	}
}

static void test_fabrics(void **state)
{
	static const char *const all[] = {
		"Torus(3,3,3)", "GenKautz(4,64)", "Torus(5,5)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct table t = { 0 };
		int layers;

		single_paths(all[i], &t);
		layers = assign_and_check(&t.r);
		print_message("%s: %d layers for %lld routes\n", all[i],
			      layers, (long long)t.r.n);
		assert_in_range(layers, 1, 16);
		table_fini(&t);
	}
}

/* All routes of two hops around a one-way ring need two layers; the finder
 * sees the cycle when they are forced into one. */
static void test_ring_needs_two(void **state)
{
	struct table t = { 0 };
	int32_t one[5] = { 0 }, *rank;
	struct err err = { 0 };
	int n;

	(void)state;
	for (int u = 0; u < 5; u++) {
		vec_push(&t.first, (int64_t)t.arcs.n);
		vec_push(&t.arcs, u);
		vec_push(&t.arcs, (u + 1) % 5);
	}
	close_table(&t, 5);
	assert_true(has_cycle(&t.r, one, 0));
	assert_int_equal(assign_and_check(&t.r), 2);
	assert_int_equal(layers_assign(&t.r, 1, one, &n, &rank, &err),
			 WEFT_EINFEASIBLE);
	assert_null(rank);
	table_fini(&t);
}

static void test_wrong_proof(void **state)
{
	static const int64_t first[] = { 0, 2 };
	static const int32_t arcs[] = { 0, 1 }, layer[] = { 0 };
	static const int32_t good[] = { 0, 1 }, bad[] = { 1, 0 };
	struct layer_routes r = { 2, 1, first, arcs };

	(void)state;
	assert_true(layers_proven(&r, layer, 1, good));
	assert_false(layers_proven(&r, layer, 1, bad));
	assert_false(layers_proven(&r, layer, 0, good));
}

static void test_bad_routes(void **state)
{
	static const int64_t first[] = { 0, 3 };
	static const int32_t twice[] = { 0, 1, 0 }, outside[] = { 0, 1, 2 };
	struct layer_routes r = { 2, 1, first, twice };
	struct err err = { 0 };
	int32_t layer[1], *rank;
	int n;

	(void)state;
	assert_int_equal(layers_assign(&r, 0, layer, &n, &rank, &err),
			 WEFT_EINVAL);
	r.arcs = outside;
	assert_int_equal(layers_assign(&r, 0, layer, &n, &rank, &err),
			 WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "arc 2"));
}

/* Routes come and go at random: a set refuses exactly those that close a
 * cycle with the ones it holds. */
static void test_come_and_go(void **state)
{
	enum { ARCS = 7, ROUTES = 12, HOPS = 3 };
	struct layer_set *set = layer_set_new(ARCS, 1);
	struct rng rng;
	int refused = 0;

	(void)state;
	rng_seed(&rng, 7);
	int32_t arcs[ROUTES * HOPS];
	int64_t first[ROUTES + 1];
	int32_t layer[ROUTES];

	for (int i = 0; i < ROUTES; i++) {
		first[i] = (int64_t)i * HOPS;
		layer[i] = -1;
	}
	first[ROUTES] = ROUTES * HOPS;
	for (int trial = 0; trial < 4000; trial++) {
		int i = (int)rng_below(&rng, ROUTES), at = (int)first[i];
		struct layer_routes all = { ARCS, ROUTES, first, arcs };
		int64_t where = -1;
		int rc;

		if (layer[i] == 0) {
			layer_set_remove(set, 0, arcs + at, HOPS);
			layer[i] = -1;
			continue;
		}
		arcs[at] = (int32_t)rng_below(&rng, ARCS);
		for (int k = 1; k < HOPS; k++) {
			arcs[at + k] = (int32_t)((arcs[at + k - 1] + 1 +
				(int)rng_below(&rng, ARCS / 2)) % ARCS);
		}
		rc = layer_set_add(set, 0, arcs + at, HOPS, &where);
		layer[i] = 0;
		assert_int_equal(rc, has_cycle(&all, layer, 0));
		if (rc) {
			assert_in_range(where, 1, HOPS - 1);
			layer[i] = -1;
			refused++;
		}
	}
	assert_in_range(refused, 100, 3000);
	layer_set_free(set);
}

/* Routes and layers of a digraph chosen together: no cycle for the finder,
 * the table proven, the load what its routes make. */
static struct single_result choose_and_check(const struct topo *t, int layers,
					     enum single_effort effort,
					     int *used)
{
	struct single_options opt = {
		.effort = effort, .seed = 1, .flow_gap = 1e-2,
		.layers = layers,
	};
	struct coll_routes r;
	struct single_result res;
	struct err err = { 0 };
	int rc = coll_routes_choose(t, &opt, &r, &res, &err);

	*used = 0;
	if (rc == WEFT_ELIMIT) {
		assert_non_null(strstr(err.msg, "no route was found"));
		coll_routes_fini(&r);
		return res;
	}
	must(rc, &err);
	must(coll_routes_verify(&r, t, &err), &err);
	*used = r.n_layers;
	assert_in_range(r.n_layers, 1, layers);
	for (int k = 0; k < r.n_layers; k++) {
		assert_false(has_cycle(&r.table, r.layer, k));
	}
	assert_true(res.congestion >= res.bound * (1 - 1e-9));
	coll_routes_fini(&r);
	return res;
}

/* Fabrics in fewer layers than their own routes take. */
static void test_together(void **state)
{
	static const struct {
		const char *expr;
		enum single_effort effort;
		int layers;
		double most;
	} all[] = {
		{ "Torus(3,3,3)", SINGLE_SHORTEST, 1, 16 },
		{ "Torus(3,3,3)", SINGLE_SEARCH, 1, 11 },
		{ "Torus(3,3,3)", SINGLE_SEARCH, 2, 9 },
		{ "Torus(3,3,3)", SINGLE_SEARCH, 3, 9 },
		{ "GenKautz(4,64)", SINGLE_SHORTEST, 1, 200 },
		{ "GenKautz(4,64)", SINGLE_SHORTEST, 2, 80 },
		{ "GenKautz(4,64)", SINGLE_SEARCH, 3, 48 },
		{ "Hypercube(3)", SINGLE_SEARCH, 1, 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct topo *t;
		struct single_result res;
		int used;

		if (ALL_OR_SOME(!in_turn(i, 4), i % 7)) {
			continue;
		}
		t = graph_of(all[i].expr);
		res = choose_and_check(t, all[i].layers, all[i].effort, &used);
		print_message("%s in %d layers: load %g, bound %g, without "
			      "layers %g, %d routes led another way\n",
			      all[i].expr, used, res.congestion, res.bound,
			      res.unlimited, res.unplaced);
		assert_in_range(used, 1, all[i].layers);
		assert_true(res.congestion <= all[i].most);
		topo_free(t);
	}
}

/* Another layer never leads to more load, nor does no limit. */
static void test_more_layers(void **state)
{
	static const char *const exprs[] = { "Torus(3,3)", "Torus(4,4)", "GenKautz(3,12)",
					     "Jellyfish(12,3,1)", "Mesh(3,4)" };

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct topo *t = graph_of(exprs[i]);
		double before = 1e9;

		for (int layers = 1; layers <= 4; layers++) {
			int used;
			struct single_result res =
				choose_and_check(t, layers, SINGLE_SEARCH, &used);

			if (used == 0) {
				assert_true(before == 1e9);
				continue;
			}
			if (res.congestion > before || res.unlimited > res.congestion) {
				fail_msg("%s: %g in %d layers, %g in fewer, %g in any", exprs[i],
					 res.congestion, layers, before, res.unlimited);
			}
			before = res.congestion;
		}
		topo_free(t);
	}
}

/* Five nodes on a one-way ring have one way a pair; those of four hops take
 * three layers, and fewer must be refused. */
static void test_too_few(void **state)
{
	struct topo *t = graph_of("UniRing(1,5)");
	int used;

	(void)state;
	for (int layers = 1; layers < 3; layers++) {
		choose_and_check(t, layers, SINGLE_SEARCH, &used);
		assert_int_equal(used, 0);
	}
	choose_and_check(t, 3, SINGLE_SEARCH, &used);
	assert_int_equal(used, 3);
	topo_free(t);
}

/* Rings with chords at random, one way, with parallel arcs and unequal
 * capacities. */
static struct topo *random_graph(struct rng *rng)
{
	int n = 3 + (int)rng_below(rng, 8);
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int u = 0; u < n; u++) {
		must(topo_add_arc(t, u, (u + 1) % n, 1, 0, &err), &err);
	}
	for (int i = 0; i < 2 * n; i++) {
		int u = (int)rng_below(rng, (uint64_t)n);
		int v = (int)rng_below(rng, (uint64_t)n);

		if (u != v) {
			must(topo_add_arc(t, u, v, 1 + (int)rng_below(rng, 2),
					  0, &err), &err);
		}
	}
	topo_freeze(t);
	return t;
}

static void test_random(void **state)
{
	struct rng rng;
	int placed = 0;

	(void)state;
	rng_seed(&rng, 3);
	for (int i = 0; i < 120; i++) {
		struct topo *t = random_graph(&rng);
		int used;

		choose_and_check(t, 1 + i % 3, SINGLE_SEARCH, &used);
		placed += used > 0;
		topo_free(t);
	}
	print_message("%d of 120 random digraphs\n", placed);
	assert_in_range(placed, 60, 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fabrics),
		cmocka_unit_test(test_single_routes),
		cmocka_unit_test(test_ring_needs_two),
		cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_more_layers),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_wrong_proof),
		cmocka_unit_test(test_bad_routes),
	};

	return cmocka_run_group_tests_name("routing/virtual_lanes", tests, NULL,
					   NULL);
}
