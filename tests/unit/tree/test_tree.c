/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules with a root on known families and on random digraphs: replayed, never
 * below the bound, near it, and of all numbers of batches the fastest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common.h"

static const enum coll_kind kinds[] = { COLL_BROADCAST, COLL_REDUCE, COLL_GATHER, COLL_SCATTER };

/* One schedule and what is known of it. */
struct made {
	struct coll_sched *s;
	struct coll_tree_info info;
	struct coll_report report;
	mpq_t bound;
	int64_t time_ns, bound_ns;	/* with a cost */
};

/* Made from what was written, so that the replay is not the maker's. */
static void replay(struct made *m)
{
	struct err err = { 0 };
	struct coll_sched *again = NULL;
	struct buf text = { 0 };

	coll_to_proto(m->s, &text);
	must(coll_from_proto(text.data, text.len, &again, &err), &err);
	must(coll_verify(again, &m->report, &err), &err);
	coll_free(again);
	buf_fini(&text);
}

/* Arcs of capacity one, none parallel. */
static bool is_simple(const struct topo *t)
{
	for (int a = 0; a < topo_m(t); a++) {
		if (topo_arc(t, a)->cap > 1 ||
		    topo_find_arc(t, topo_arc(t, a)->src, topo_arc(t, a)->dst) != a) {
			return false;
		}
	}
	return true;
}

/* What is made has the figures that are told without making it; where arcs differ the fullest
 * may be idle in a step, and T_B is less. */
static void same_figures(const struct topo *t, const struct coll_tree_options *opt,
			 const struct made *m)
{
	struct coll_tree_info info;
	struct err err = { 0 };
	mpq_t load;

	if (!is_whole(opt->kind)) {
		assert_int_equal(coll_tree_figures(t, opt, &info, &err), WEFT_EINVAL);
		return;
	}
	must(coll_tree_figures(t, opt, &info, &err), &err);
	assert_int_equal(info.steps, m->report.steps);
	assert_memory_equal(&info, &m->info, sizeof(info));
	mpq_init(load);
	rat_set(load, info.load_num * coll_ports(m->s), info.load_den);
	assert_true(mpq_cmp(load, m->report.bandwidth_factor) >= 0);
	assert_true(!is_simple(t) || mpq_equal(load, m->report.bandwidth_factor));
	mpq_clear(load);
}

static void make(const struct topo *t, const struct coll_tree_options *opt, struct made *m)
{
	struct err err = { 0 };

	coll_report_init(&m->report);
	mpq_init(m->bound);
	must(coll_tree_make(t, opt, &m->s, &m->info, &err), &err);
	assert_int_equal(coll_kind_of(m->s), opt->kind);
	assert_int_equal(coll_root(m->s), opt->root);
	replay(m);
	same_figures(t, opt, m);
	must(coll_bound(t, NULL, opt->kind, opt->root, coll_ports(m->s), m->bound, &err), &err);
	assert_true(mpq_cmp(m->report.bandwidth_factor, m->bound) >= 0);
	if (opt->cost) {
		mpq_set(m->report.bandwidth_bound, m->bound);
		must(coll_time(m->s, &m->report, opt->cost, &m->time_ns, &m->bound_ns, &err), &err);
		assert_true(m->time_ns >= m->bound_ns);
	}
}

static void made_fini(struct made *m)
{
	coll_free(m->s);
	coll_report_fini(&m->report);
	mpq_clear(m->bound);
}

/* T_B is at most num/den of the bound. */
static bool is_within(const struct made *m, int64_t num, int64_t den)
{
	mpq_t most, q;
	bool within;

	mpq_inits(most, q, NULL);
	rat_set(q, num, den);
	mpq_mul(most, m->bound, q);
	within = mpq_cmp(m->report.bandwidth_factor, most) <= 0;
	mpq_clears(most, q, NULL);
	return within;
}

static struct topo *graph_of(const char *expr)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_parse(expr, &t, NULL, &err), &err);
	return t;
}

/* ---- families ---- */

/* Trees as deep as can be wished: one more than the farthest rank, on rings all
 * the way round. */
static void test_broadcast(void **state)
{
	static const struct {
		const char *expr;
		int trees, max_depth;
	} known[] = {
		{ "Ring(8)", 2, 7 }, { "Ring(9)", 2, 8 }, { "UniRing(1,5)", 1, 4 },
		{ "UniRing(2,5)", 2, 4 }, { "K(2)", 1, 1 }, { "K(8)", 7, 2 },
		{ "Hypercube(4)", 4, 5 }, { "Hypercube(6)", 6, 7 }, { "Torus(4,4)", 4, 5 },
		{ "Torus(3,3)", 4, 4 }, { "Torus(8,8)", 4, 10 }, { "K(4,4)", 4, 4 },
		{ "GenKautz(2,9)", 2, 7 }, { "GenKautz(4,64)", 3, 4 }, { "DBJMod(3,2)", 3, 4 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i / 2].expr);
		struct coll_tree_options opt = { .kind = i % 2 ? COLL_REDUCE : COLL_BROADCAST };
		struct made m;

		make(t, &opt, &m);
		assert_int_equal(m.info.trees, known[i / 2].trees);
		assert_int_equal(m.info.rate, known[i / 2].trees);
		assert_int_equal(m.info.rate_bound, known[i / 2].trees);
		assert_true(m.info.deepest <= known[i / 2].max_depth);
		assert_int_equal(m.report.steps, m.info.deepest + m.info.batches - 1);
		assert_true(is_within(&m, 17, 16));
		made_fini(&m);
		topo_free(t);
	}
}

/* Both bounds are met at once: as few steps as the distance, and every arc of
 * the root full in all of them. */
static void test_scatter(void **state)
{
	static const struct {
		const char *expr;
		int steps;
	} known[] = {
		{ "Ring(8)", 4 }, { "Ring(9)", 4 }, { "UniRing(1,5)", 4 }, { "K(8)", 1 },
		{ "Hypercube(4)", 4 }, { "Hypercube(7)", 7 }, { "Torus(4,4)", 4 },
		{ "Torus(8,8)", 8 }, { "Torus(4,4,4)", 6 }, { "Mesh(4,4)", 6 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i / 2].expr);
		struct coll_tree_options opt = { .kind = i % 2 ? COLL_GATHER : COLL_SCATTER };
		struct made m;

		make(t, &opt, &m);
		assert_true(mpq_equal(m.report.bandwidth_factor, m.bound));
		assert_int_equal(m.report.steps, known[i / 2].steps);
		made_fini(&m);
		topo_free(t);
	}
}

/* ---- random digraphs ---- */

static void check_random(struct rng *r, int i)
{
	int n = 2 + (int)rng_below(r, 14), more = (int)rng_below(r, (uint64_t)(3 * n));
	int cap = i % 3 ? 1 : 9, unit = i % 5 ? 1 : 25;
	struct topo *t = random_digraph(r, n, more, cap, unit, 0);
	struct coll_cost cost = {
		.alpha_ns = (int64_t)rng_below(r, 20000),
		.hop_ns = (int64_t)rng_below(r, 300), .message_ns = (int64_t)rng_below(r, 300),
		.link_bps = 100000000,
		.size_bytes = 1 + (int64_t)rng_below(r, 1 << (int)rng_below(r, 24)),
	};

	for (int k = 0; k < 4; k++) {
		struct coll_tree_options opt = {
			.kind = kinds[k], .root = (int)rng_below(r, (uint64_t)n),
			.cost = i % 2 ? &cost : NULL,
		};
		struct made m;

		make(t, &opt, &m);
		assert_true(m.info.rate <= m.info.rate_bound);
		if (!opt.cost && is_whole(kinds[k])) {
			assert_int_equal(m.info.rate, m.info.rate_bound);
			assert_true(is_within(&m, 17, 16));
		}
		if (!opt.cost && !is_whole(kinds[k])) {
			assert_true(is_within(&m, 33, 32));
		}
		made_fini(&m);
	}
	topo_free(t);
}

static void test_random(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 31);
	for (int i = 0; i < 60; i++) {
		check_random(&r, i);
	}
}

/* ---- times ---- */

/* No number of batches is faster than the one that is chosen. */
static void test_batches(void **state)
{
	static const char *const exprs[] = { "Ring(6)", "Torus(3,3)", "GenKautz(2,9)", "K(5)" };
	static const int64_t sizes[] = { 1000, 30000, 400000 };

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		struct topo *t = graph_of(exprs[i % 4]);
		struct coll_cost cost = {
			.alpha_ns = 2000, .link_bps = 10000000000, .size_bytes = sizes[i / 4],
		};
		struct coll_tree_options opt = { .kind = COLL_BROADCAST, .cost = &cost };
		struct made best;
		int64_t least = INT64_MAX;

		make(t, &opt, &best);
		for (opt.batches = 1; opt.batches <= 40; opt.batches++) {
			struct made m;

			make(t, &opt, &m);
			least = m.time_ns < least ? m.time_ns : least;
			made_fini(&m);
		}
		assert_true(best.info.batches < 40);
		assert_true(best.time_ns <= least);
		made_fini(&best);
		topo_free(t);
	}
}

/* Where only latency counts a tree of shortest paths wins, in as many steps as
 * the farthest rank is away; where only bandwidth counts all trees are used. */
static void test_extremes(void **state)
{
	static const struct {
		const char *expr;
		int farthest, trees;
	} known[] = {
		{ "Torus(4,4)", 4, 4 }, { "Hypercube(5)", 5, 5 }, { "Ring(9)", 4, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i].expr);
		struct coll_cost small = {
			.alpha_ns = 1000000, .link_bps = 1000000000, .size_bytes = 16,
		};
		struct coll_cost large = {
			.alpha_ns = 1000, .link_bps = 1000000000, .size_bytes = 10000000,
		};
		struct made m;

		for (int k = 0; k < 4; k++) {
			struct coll_tree_options opt = { .kind = kinds[k],
							 .root = 2,
							 .cost = &small };

			make(t, &opt, &m);
			assert_int_equal(m.report.steps, known[i].farthest);
			made_fini(&m);
			opt.cost = &large;
			make(t, &opt, &m);
			assert_true(is_whole(kinds[k])
					    ? m.info.trees == known[i].trees
					    : mpq_equal(m.report.bandwidth_factor, m.bound));
			made_fini(&m);
		}
		topo_free(t);
	}
}

/* The slowest link decides where a tree has but one arc. */
static void test_capacities(void **state)
{
	struct err err = { 0 };
	const char *edges = "0 1 400\n1 0 400\n1 2 100\n2 1 100\n0 2 300\n2 0 300\n";
	struct coll_tree_options opt = { .kind = COLL_BROADCAST };
	struct topo *t;
	struct made m;

	(void)state;
	must(topo_from_edges(edges, strlen(edges), &t, &err), &err);
	make(t, &opt, &m);
	assert_int_equal(m.info.rate, 400);
	assert_int_equal(m.info.rate_bound, 400);
	made_fini(&m);
	opt.kind = COLL_SCATTER;
	make(t, &opt, &m);
	assert_true(mpq_equal(m.report.bandwidth_factor, m.bound));
	made_fini(&m);
	topo_free(t);
}

/* ---- errors ---- */

static int try_make(const struct topo *t, enum coll_kind kind, int root, int batches,
		    const char *why)
{
	struct coll_tree_options opt = { .kind = kind, .root = root, .batches = batches };
	struct coll_tree_info info;
	struct coll_sched *s;
	struct err err = { 0 };
	int rc = coll_tree_make(t, &opt, &s, &info, &err);

	assert_null(s);
	assert_non_null(strstr(err.msg, why));
	return rc;
}

static void test_bad_input(void **state)
{
	struct err err = { 0 };
	struct topo *t = graph_of("K(4)");
	struct rng r;

	(void)state;
	assert_int_equal(try_make(t, COLL_ALLTOALL, 0, 0, "all-to-all has no root"), WEFT_EINVAL);
	assert_int_equal(try_make(t, COLL_SCATTER, 4, 0, "root 4 is not one of the 4 ranks"),
			 WEFT_EINVAL);
	assert_int_equal(try_make(t, COLL_REDUCE, -1, 0, "root -1"), WEFT_EINVAL);
	assert_int_equal(try_make(t, COLL_REDUCE, 0, -1, "-1 batches"), WEFT_EINVAL);
	topo_free(t);
	must(topo_from_edges("0 1\n1 2\n", 8, &t, &err), &err);
	assert_int_equal(try_make(t, COLL_GATHER, 0, 0, "no path between root 0 and rank 1"),
			 WEFT_EINFEASIBLE);
	topo_free(t);
	t = graph_of("Ring(8193)");
	assert_int_equal(try_make(t, COLL_REDUCE, 5, 0, "reduce of 8193 ranks: 67117056 transfers"),
			 WEFT_ELIMIT);
	topo_free(t);
	rng_seed(&r, 1);
	t = random_digraph(&r, 5, 9, 1, 1, 1);
	assert_int_equal(try_make(t, COLL_BROADCAST, 0, 0, "broadcast: node 4 is a switch"),
			 WEFT_EUNSUPPORTED);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_capacities),
		cmocka_unit_test(test_bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
