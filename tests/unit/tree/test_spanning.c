/* SPDX-License-Identifier: Apache-2.0 */
/* Forests for all-reduce: spanning trees both ways, at the bound; trees of few roots. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/tree/pack/pack.h"
#include "collective/tree/spanning.h"
#include "collective/tree/stagger/stagger.h"
#include "common.h"

/* Undirected, connected: a tree and more edges at random. */
static struct topo *random_graph(struct rng *r, int n, int more, int max_cap)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int e = 1; e < n + more; e++) {
		int to = e < n ? e : (int)rng_below(r, (uint64_t)n);
		int from = (int)rng_below(r, (uint64_t)(e < n ? e : n));
		int cap = 1 + (int)rng_below(r, (uint64_t)max_cap);

		must(topo_add_arc(t, from, to, cap, 0, &err), &err);
		must(topo_add_arc(t, to, from, cap, 0, &err), &err);
	}
	topo_freeze(t);
	return t;
}

/* Walks up from every node to the root, and adds up what arcs carry. */
static void check_tree(const struct topo *t, const struct coll_forest_tree *x, int64_t *load)
{
	for (int v = 0; v < topo_n(t); v++) {
		int u = v, steps = 0;

		while (u != x->root) {
			const struct topo_arc *arc = topo_arc(t, x->via[u]);

			assert_int_equal(x->inwards ? arc->src : arc->dst, u);
			u = x->inwards ? arc->dst : arc->src;
			assert_true(++steps <= x->depth);
		}
		assert_int_equal(x->via[x->root], -1);
		if (v != x->root) {
			load[x->via[v]] += x->weight;
		}
	}
}

/* The forest's own time is that of its fullest arc; *limit: T_B that no all-reduce is below, as
 * shard times. */
static void check(const struct topo *t, const struct coll_forest *f, mpq_t limit)
{
	int64_t *load = calloc((size_t)topo_m(t) + 1, sizeof(*load)), weight[2] = { 0 };
	struct err err = { 0 };
	mpq_t time, most;

	mpq_inits(time, most, NULL);
	for (size_t i = 0; i < f->trees.n; i++) {
		check_tree(t, &f->trees.v[i], load);
		weight[f->trees.v[i].inwards] += f->trees.v[i].weight;
	}
	assert_int_equal(weight[0], f->share * topo_n(t));
	assert_int_equal(weight[1], f->share * topo_n(t));
	for (int a = 0; a < topo_m(t); a++) {
		rat_set(time, load[a], topo_arc(t, a)->cap);
		if (mpq_cmp(time, most) > 0) {
			mpq_set(most, time);
		}
	}
	rat_set(time, f->share, 1);
	mpq_div(most, most, time);
	assert_true(mpq_equal(most, f->time));
	must(coll_bound(t, NULL, COLL_ALLREDUCE, 0, 1, limit, &err), &err);
	rat_set(time, topo_n(t), 1);
	mpq_mul(limit, limit, time);
	mpq_clears(time, most, NULL);
	free(load);
}

static void test_random(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 31);
	for (int i = 0; i < 60; i++) {
		int n = 2 + (int)rng_below(&r, 14), more = (int)rng_below(&r, 25);
		struct topo *t = random_graph(&r, n, more, 1 + (int)rng_below(&r, 9));
		struct err err = { 0 };
		struct coll_forest f;
		mpq_t limit;

		mpq_init(limit);
		coll_forest_init(&f);
		must(coll_forest_allreduce(t, i % 3 ? 1 << 9 : 1 + i % 20, &f, &err), &err);
		check(t, &f, limit);
		/* A bound by ports counts nodes of one port here: left out. */
		assert_true(i % 3 == 0 || mpq_cmp(f.time, limit) <= 0);
		coll_forest_fini(&f);
		mpq_clear(limit);
		topo_free(t);
	}
}

static void assert_time(const char *expr, int max_trees, const char *expected, int deepest)
{
	struct err err = { 0 };
	struct coll_forest f;
	struct topo *t;
	char text[64];
	int depth = 0;

	must(topo_parse(expr, &t, NULL, &err), &err);
	coll_forest_init(&f);
	must(coll_forest_allreduce(t, max_trees, &f, &err), &err);
	for (size_t i = 0; i < f.trees.n; i++) {
		depth = f.trees.v[i].depth > depth ? f.trees.v[i].depth : depth;
	}
	assert_string_equal(rat_str(f.time, text, sizeof(text)), expected);
	assert_in_range(depth, 1, deepest);
	coll_forest_fini(&f);
	topo_free(t);
}

/* In shards, of which 25 are the vector on a mesh of 5 x 5, where a reduce-scatter and an
 * all-gather take 12 each because of the corners. */
static void test_known(void **state)
{
	(void)state;
	assert_time("Ring(8)", 100, "7", 4);
	assert_time("Hypercube(3)", 100, "14/3", 4);
	assert_time("Mesh(2,2)", 100, "3", 2);
	assert_time("Mesh(5,5)", 100, "15", 9);
	assert_time("Mesh(10,10)", 100, "55", 20);
}

static bool first_is_out(const struct topo_arc *arc)
{
	return arc->src != 0 || arc->dst != 1;
}

static bool node_sends_nothing(const struct topo_arc *arc)
{
	return arc->src != 0;
}

/* Two halves that a single arc each way joins. */
static bool halves(const struct topo_arc *arc)
{
	return (arc->src < 8) == (arc->dst < 8) || (arc->src == 0 && arc->dst == 10) ||
	       (arc->src == 15 && arc->dst == 5);
}

static struct topo *part(const char *expr, bool (*is_kept)(const struct topo_arc *arc))
{
	struct topo *t, *out;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	assert_int_equal(topo_new(topo_n(t), &out, NULL), 0);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (is_kept(arc)) {
			must(topo_add_arc(out, arc->src, arc->dst, 1, 0, NULL), NULL);
		}
	}
	topo_freeze(out);
	topo_free(t);
	return out;
}

/* A few arcs may go one way only: trees do without them, where the others join all ranks. */
static void test_dead_directions(void **state)
{
	struct topo *t = part("Torus(4,4)", first_is_out);
	struct coll_forest f;
	struct err err = { 0 };
	char text[64];
	mpq_t time;

	(void)state;
	mpq_init(time);
	coll_forest_init(&f);
	assert_true(coll_forest_has_spanning(t));
	must(coll_forest_allreduce(t, 128, &f, &err), &err);
	check(t, &f, time);
	/* 2 x 15 over 62 of 64 arcs, of which each is the vector's 1/16 */
	assert_string_equal(rat_str(f.time, text, sizeof(text)), "240/31");
	coll_forest_fini(&f);
	topo_free(t);
	t = part("Torus(4,4)", node_sends_nothing);
	assert_false(coll_forest_has_spanning(t));	/* one in 15 */
	topo_free(t);
	t = part("K(16)", halves);
	assert_false(coll_forest_has_spanning(t));
	topo_free(t);
	mpq_clear(time);
}

static void test_refused(void **state)
{
	struct coll_forest f;
	struct topo *t;

	(void)state;
	assert_int_equal(topo_parse("UniRing(1,4)", &t, NULL, NULL), 0);
	coll_forest_init(&f);
	assert_int_equal(coll_forest_allreduce(t, 4, &f, NULL), WEFT_EUNSUPPORTED);
	assert_int_equal(coll_forest_allreduce(t, 0, &f, NULL), WEFT_EINVAL);
	coll_forest_fini(&f);
	topo_free(t);
}

/* Trees of few roots, and a schedule of them that is proven, its T_B not below the bound. */
static bool few_roots(const struct topo *t, mpq_t time)
{
	struct coll_stagger_options opt = { .kind = COLL_ALLREDUCE, .batches = 2 };
	struct coll_stagger_info info;
	struct coll_sched *s = NULL;
	struct err err = { 0 };
	struct coll_forest f;
	mpq_t limit;
	int rc;

	mpq_init(limit);
	coll_forest_init(&f);
	rc = coll_forest_few_roots(t, &f, &err);
	if (rc == 0) {
		check(t, &f, limit);
		mpq_set(time, f.time);
		must(coll_forest_schedule(&f, t, &opt, &s, &info, &err), &err);
	} else {
		assert_int_equal(rc, WEFT_EUNSUPPORTED);
	}
	coll_free(s);
	coll_forest_fini(&f);
	mpq_clear(limit);
	return rc == 0;
}

static void test_few_roots(void **state)
{
	int made = 0;
	struct rng r;
	mpq_t time;

	(void)state;
	rng_seed(&r, 38);
	mpq_init(time);
	for (int i = 0; i < 300; i++) {
		int n = 2 + (int)rng_below(&r, 12);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 4 * (uint64_t)n),
						1 + (int)rng_below(&r, 4), 1, 0);

		made += few_roots(t, time);
		topo_free(t);
	}
	assert_true(made > 100);
	mpq_clear(time);
}

/* All links are busy in both halves: (N - 1) N over half of the capacity. */
static void test_thin_ranks(void **state)
{
	static const struct {
		const char *expr, *time;
	} known[] = {
		{ "GenKautz(4,64)", "32" }, { "DeBruijn(2,4)", "16" }, { "GenKautz(2,34)", "34" },
		{ "DeBruijn(3,3)", "18" },
	};
	char text[64];
	mpq_t time;

	(void)state;
	mpq_init(time);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t;

		assert_int_equal(topo_parse(known[i].expr, &t, NULL, NULL), 0);
		assert_true(few_roots(t, time));
		assert_string_equal(rat_str(time, text, sizeof(text)), known[i].time);
		topo_free(t);
	}
	mpq_clear(time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_dead_directions),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_few_roots),
		cmocka_unit_test(test_thin_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
