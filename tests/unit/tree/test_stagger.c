/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of forests: replayed, never below what the forest allows, and never worse than
 * theorem 4's; forests are packed from a super source that feeds every rank its share. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common.h"
#include "collective/tree/stagger/stagger.h"
#include "lib/graph/graph.h"
#include "tests/unit/world.h"

/* A tree of `weight` along the arcs of `via`, where those from the super source on, of number m,
 * are none. */
static void add_tree(struct coll_forest *f, const struct graph_tree *g, int m, bool inwards,
		     int64_t weight)
{
	int n = topo_n(f->logical);
	struct coll_forest_tree t = {
		.inwards = inwards, .weight = weight, .via = calloc((size_t)n, sizeof(*t.via)),
	};

	assert_non_null(t.via);
	for (int v = 0; v < n; v++) {
		t.via[v] = g->via[v] < m ? g->via[v] : -1;
		t.root = t.via[v] < 0 ? v : t.root;
	}
	for (int v = 0; v < n; v++) {
		t.depth = g->depth[v] - g->depth[t.root] > t.depth
				  ? g->depth[v] - g->depth[t.root] : t.depth;
	}
	vec_push(&f->trees, t);
}

/* Trees of all ranks that weigh `share` a rank, each with one arc of the super source, on arcs of
 * so many times their capacity as that takes. to: arcs of f->logical by arc; NULL: the same. */
static void pack(struct coll_forest *f, const struct topo *t, const int32_t *to, int64_t share,
		 bool inwards)
{
	int n = topo_n(t), m = topo_m(t);
	struct graph_arc *arcs = calloc((size_t)(m + n), sizeof(*arcs));
	struct graph_trees trees = { 0 };
	struct err err = { 0 };
	int64_t times = 0;
	int rc = WEFT_EINFEASIBLE;

	assert_non_null(arcs);
	while (rc == WEFT_EINFEASIBLE) {
		times++;
		for (int a = 0; a < m; a++) {
			const struct topo_arc *x = topo_arc(t, a);

			arcs[a] = (struct graph_arc){
				x->src, x->dst, x->src == x->dst ? 0 : x->cap * times,
			};
		}
		for (int v = 0; v < n; v++) {
			arcs[m + v] = (struct graph_arc){ n, v, share };
		}
		graph_trees_fini(&trees);
		trees = (struct graph_trees){ 0 };
		rc = graph_pack_trees(n + 1, arcs, m + n, n, n * share, &trees, &err);
	}
	must(rc, &err);
	for (size_t i = 0; i < trees.list.n; i++) {
		struct graph_tree *g = &trees.list.v[i];

		for (int v = 0; v < n && to; v++) {
			g->via[v] = g->via[v] < m ? to[g->via[v]] : g->via[v];
		}
		add_tree(f, g, m, inwards, g->weight);
	}
	graph_trees_fini(&trees);
	free(arcs);
}

static bool is_sum(enum coll_kind kind)
{
	return kind == COLL_REDUCE_SCATTER || kind == COLL_ALLREDUCE || kind == COLL_REDUCE;
}

/* Both ways for an all-reduce; of a collective with a root, the trees of rank 1 alone. */
static void make_forest(struct coll_forest *f, const struct topo *t, enum coll_kind kind,
			int64_t share)
{
	int32_t *back = calloc((size_t)topo_m(t) + 1, sizeof(*back));
	struct topo *transposed = NULL;
	struct err err = { 0 };
	size_t kept = 0;

	assert_non_null(back);
	coll_forest_init(f);
	must(topo_copy(t, &f->logical, &err), &err);
	must(topo_transpose(t, &transposed, back, &err), &err);
	f->share = share;
	if (!is_sum(kind) || kind == COLL_ALLREDUCE) {
		pack(f, t, NULL, share, false);
	}
	if (is_sum(kind)) {
		pack(f, transposed, back, share, true);
	}
	for (size_t i = 0; i < f->trees.n && coll_has_root(kind); i++) {
		if (f->trees.v[i].root == 1) {
			f->trees.v[kept++] = f->trees.v[i];
		} else {
			free(f->trees.v[i].via);
		}
	}
	f->trees.n = coll_has_root(kind) ? kept : f->trees.n;
	topo_free(transposed);
	free(back);
}

/* Shard times of the fullest arc, by counting. */
static double limit_of(const struct coll_forest *f, enum coll_kind kind)
{
	int m = topo_m(f->logical), n = topo_n(f->logical);
	double *load = calloc((size_t)m + 1, sizeof(*load)), most = 0;
	double share = coll_has_root(kind) ? (double)f->share / n : (double)f->share;

	assert_non_null(load);
	for (size_t i = 0; i < f->trees.n; i++) {
		for (int v = 0; v < n; v++) {
			int arc = f->trees.v[i].via[v];

			load[arc >= 0 ? arc : m] += arc >= 0 ? (double)f->trees.v[i].weight : 0;
		}
	}
	for (int a = 0; a < m; a++) {
		double time = load[a] / (double)topo_arc(f->logical, a)->cap / share;

		most = time > most ? time : most;
	}
	free(load);
	return most;
}

/* Never below the limit; with `batches`, by the price that is said of schedules without a cost not
 * above K + D - 1 steps of limit / K. */
static void check(const struct coll_forest *f, enum coll_kind kind, int batches)
{
	struct coll_stagger_options opt = { .kind = kind, .batches = batches };
	double limit = limit_of(f, kind), time;
	struct coll_stagger_info info;
	struct coll_report report;
	struct coll_sched *s;
	struct err err = { 0 };
	int deepest;

	coll_report_init(&report);
	must(coll_forest_schedule(f, NULL, &opt, &s, &info, &err), &err);
	must(coll_verify(s, &report, &err), &err);
	time = mpq_get_d(report.shard_times);
	assert_true(time >= limit * (1 - 1e-9));
	assert_int_equal(coll_steps(s), info.steps);
	assert_int_equal(coll_kind_of(s), kind);
	deepest = kind == COLL_ALLREDUCE ? 2 * info.deepest : info.deepest;
	if (batches > 0) {
		double steps = batches + deepest - 1;

		assert_int_equal(info.batches, batches);
		assert_true(time / limit + info.steps / 1000.0 <=
			    steps / batches + steps / 1000 + 1e-9);
	}
	coll_report_fini(&report);
	coll_free(s);
}

static void test_random(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_BROADCAST, COLL_REDUCE,
	};
	struct rng r;

	(void)state;
	rng_seed(&r, 18);
	for (int i = 0; i < ALL_OR_SOME(150, 30); i++) {
		int n = 2 + (int)rng_below(&r, 13), more = (int)rng_below(&r, 20);
		struct topo *t = random_digraph(&r, n, more, i % 3 ? 1 : 5, 1, 0);
		enum coll_kind kind = kinds[i % 5];
		struct coll_forest f;

		make_forest(&f, t, kind, 1 + (int64_t)rng_below(&r, 3));
		check(&f, kind, i % 2 ? 1 + (int)rng_below(&r, 9) : 0);
		coll_forest_fini(&f);
		topo_free(t);
	}
}

/* Where arcs have data from the first step to the last, no time is lost: T_B is the limit. */
static void test_optimal(void **state)
{
	struct coll_stagger_options opt = { .kind = COLL_ALLGATHER };
	struct coll_stagger_info info;
	struct coll_report report;
	struct coll_sched *s;
	struct coll_forest f;
	struct topo *t;
	struct err err = { 0 };

	(void)state;
	coll_report_init(&report);
	must(topo_parse("Jellyfish(32,4,1)", &t, NULL, &err), &err);
	make_forest(&f, t, COLL_ALLGATHER, 4);
	must(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), &err);
	must(coll_verify(s, &report, &err), &err);
	assert_int_equal(mpq_cmp_si(report.shard_times, 31, 4), 0);
	assert_true(info.steps <= 10);
	coll_report_fini(&report);
	coll_free(s);
	coll_forest_fini(&f);
	topo_free(t);
}

/* A root of all: the sum of a line comes together and spreads at the same time, on arcs that
 * a reduce-scatter and an all-gather would need twice as long. */
static void test_one_root(void **state)
{
	enum { N = 6, K = 60 };
	struct coll_stagger_options opt = { .kind = COLL_ALLREDUCE, .batches = K };
	struct coll_stagger_info info;
	struct coll_report report;
	struct coll_sched *s;
	struct coll_forest f;
	struct topo *t;
	struct err err = { 0 };

	(void)state;
	coll_report_init(&report);
	coll_forest_init(&f);
	must(topo_parse("Mesh(2,3)", &t, NULL, &err), &err);
	f.logical = t;
	f.share = 1;
	for (int side = 0; side < 2; side++) {
		static const int32_t parents[N] = { -1, 0, 1, 0, 3, 4 };
		struct coll_forest_tree tree = {
			.root = 0, .inwards = side, .weight = N, .depth = 3,
			.via = calloc(N, sizeof(*tree.via)),
		};

		assert_non_null(tree.via);
		for (int v = 0; v < N; v++) {
			int u = parents[v];

			tree.via[v] = u < 0 ? -1 : side ? topo_find_arc(t, v, u)
							: topo_find_arc(t, u, v);
		}
		vec_push(&f.trees, tree);
	}
	must(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), &err);
	must(coll_verify(s, &report, &err), &err);
	assert_true(info.steps <= K + 6 - 1);
	assert_true(mpq_get_d(report.shard_times) <= N * (K + 5.0) / K + 1e-9);
	coll_report_fini(&report);
	coll_free(s);
	coll_forest_fini(&f);
}

/* Ranks at one switch: trees on the complete digraph, routes of two hops, which share the
 * ranks' links; a limit on two of these. */
static void star_forest(struct coll_forest *f, int n, struct topo **physical, int64_t limit)
{
	struct err err = { 0 };

	coll_forest_init(f);
	must(topo_new(n + 1, physical, &err), &err);
	topo_set_node(*physical, n, TOPO_SWITCH, 0);
	for (int v = 0; v < n; v++) {
		must(topo_add_arc(*physical, v, n, 1, 0, &err), &err);
		must(topo_add_arc(*physical, n, v, 1, 0, &err), &err);
	}
	if (limit > 0) {
		must(topo_add_limit(*physical, (int32_t[]){ 0, 1 }, 2, limit, &err), &err);
	}
	topo_freeze(*physical);
	must(topo_new(n, &f->logical, &err), &err);
	for (int a = 0; a < n * n; a++) {
		if (a / n != a % n) {
			must(topo_add_arc(f->logical, a / n, a % n, 1, 0, &err), &err);
		}
	}
	topo_freeze(f->logical);
	for (int a = 0; a < topo_m(f->logical); a++) {
		const struct topo_arc *arc = topo_arc(f->logical, a);
		struct coll_forest_route r = { a, 1, (int32_t)f->hops.n, 2 };

		vec_push(&f->routes, r);
		vec_push(&f->hops, topo_find_arc(*physical, arc->src, n));
		vec_push(&f->hops, topo_find_arc(*physical, n, arc->dst));
	}
	f->share = 1;
	for (int root = 0; root < n; root++) {	/* a path round */
		struct coll_forest_tree t = { .root = root, .weight = 1, .depth = n - 1 };

		t.via = calloc((size_t)n, sizeof(*t.via));
		assert_non_null(t.via);
		for (int v = 0; v < n; v++) {
			t.via[v] = v == root ? -1
					     : topo_find_arc(f->logical, (v + n - 1) % n, v);
		}
		vec_push(&f->trees, t);
	}
}

static void test_switch(void **state)
{
	struct coll_stagger_options opt = { .kind = COLL_ALLGATHER };

	(void)state;
	for (int limit = 0; limit < 2; limit++) {
		struct topo *physical;
		struct coll_stagger_info info;
		struct coll_report report;
		struct coll_forest f;
		struct coll_sched *s;
		struct err err = { 0 };

		coll_report_init(&report);
		star_forest(&f, 5, &physical, limit);
		must(coll_forest_schedule(&f, physical, &opt, &s, &info, &err), &err);
		must(coll_verify(s, &report, &err), &err);
		assert_true(coll_is_embedded(s));
		assert_int_equal(mpq_cmp_si(report.shard_times, limit ? 8 : 4, 1), 0);
		coll_report_fini(&report);
		coll_free(s);
		coll_forest_fini(&f);
		topo_free(physical);
	}
}

/* Trees of one rank stand for those of all. */
static void test_group(void **state)
{
	struct coll_stagger_options opt = { .kind = COLL_ALLGATHER };
	struct coll_stagger_info info;
	struct coll_report report;
	struct coll_forest f;
	struct coll_sched *s;
	struct err err = { 0 };
	size_t kept = 0;

	(void)state;
	coll_report_init(&report);
	coll_forest_init(&f);
	must(topo_parse("C(16,{3,4})", &f.logical, NULL, &err), &err);
	must(topo_group_find(f.logical, &f.group, &err), &err);
	assert_non_null(f.group);
	f.share = 4;
	pack(&f, f.logical, NULL, 4, false);
	for (size_t i = 0; i < f.trees.n; i++) {
		if (topo_group_first(f.group, f.trees.v[i].root) == f.trees.v[i].root) {
			f.trees.v[kept++] = f.trees.v[i];
		} else {
			free(f.trees.v[i].via);
		}
	}
	f.trees.n = kept;
	must(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), &err);
	must(coll_verify(s, &report, &err), &err);
	assert_non_null(coll_group(s));
	assert_int_equal(info.trees, kept * 16);
	assert_true(mpq_cmp_si(report.shard_times, 15, 4) >= 0);
	coll_report_fini(&report);
	coll_free(s);
	coll_forest_fini(&f);
}

/* What is no forest of the collective is refused. */
static void test_refused(void **state)
{
	struct coll_stagger_options opt = { .kind = COLL_ALLGATHER };
	struct coll_stagger_info info;
	struct coll_forest f;
	struct coll_sched *s;
	struct topo *t;
	struct err err = { 0 };
	int32_t kept;

	(void)state;
	must(topo_parse("Ring(5)", &t, NULL, &err), &err);
	make_forest(&f, t, COLL_ALLGATHER, 2);
	kept = f.trees.v[0].via[(f.trees.v[0].root + 1) % 5];
	f.trees.v[0].via[(f.trees.v[0].root + 1) % 5] = -1;
	assert_int_equal(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), WEFT_EINVAL);
	f.trees.v[0].via[(f.trees.v[0].root + 1) % 5] = kept;
	f.share = 3;
	assert_int_equal(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), WEFT_EINVAL);
	opt.kind = COLL_REDUCE_SCATTER;
	f.share = 2;
	assert_int_equal(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), WEFT_EINVAL);
	opt.kind = COLL_ALLTOALL;
	assert_int_equal(coll_forest_schedule(&f, NULL, &opt, &s, &info, &err), WEFT_EINVAL);
	coll_forest_fini(&f);
	topo_free(t);
}

/* The time of what is made below some; 0: nothing is. */
static int64_t time_below(const struct coll_forest *f, struct coll_stagger_options *opt,
			  double below_ns)
{
	struct coll_stagger_info info;
	struct coll_report report;
	struct coll_sched *s;
	struct err err = { 0 };
	int64_t ns = 0;

	opt->below_ns = below_ns;
	coll_report_init(&report);
	must(coll_forest_schedule(f, NULL, opt, &s, &info, &err), &err);
	if (s) {
		must(coll_verify(s, &report, &err), &err);
		must(coll_time(s, &report, opt->cost, &ns, NULL, &err), &err);
	}
	coll_report_fini(&report);
	coll_free(s);
	return ns;
}

/* What it would take is known before it is made, and is what it takes. */
static void test_below(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_ALLREDUCE, COLL_REDUCE };
	struct rng r;

	(void)state;
	rng_seed(&r, 38);
	for (int i = 0; i < ALL_OR_SOME(30, 6); i++) {
		struct topo *t = random_digraph(&r, 3 + i % 9, (int)rng_below(&r, 20), 3, 1, 0);
		struct coll_cost cost = { .alpha_ns = 500, .hop_ns = 100, .link_bps = 100000000000,
					  .size_bytes = INT64_C(1) << (8 + i % 20) };
		struct coll_stagger_options opt = { .kind = kinds[i % 3], .cost = &cost };
		struct coll_forest f;
		int64_t ns;

		make_forest(&f, t, opt.kind, 2);
		ns = time_below(&f, &opt, 0);
		assert_int_equal(time_below(&f, &opt, (double)ns + 1), ns);
		assert_int_equal(time_below(&f, &opt, (double)ns - 1), 0);
		coll_forest_fini(&f);
		topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random), cmocka_unit_test(test_optimal),
		cmocka_unit_test(test_one_root), cmocka_unit_test(test_switch),
		cmocka_unit_test(test_group), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
