/* SPDX-License-Identifier: Apache-2.0 */
/* Packed forests of random digraphs: every tree spans, together they keep to the time that they
 * claim, and that is the one of the fullest cut, by all cuts one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/schedule/cut_bound.h"
#include "collective/tree/pack/pack.h"
#include "tests/unit/tree/common.h"

#define MAX_CUT_NODES 12

static bool is_inwards(enum coll_kind kind)
{
	return kind == COLL_REDUCE_SCATTER || kind == COLL_REDUCE;
}

/* The time that a set of nodes takes: roots outside over capacity into it, or out of it. False:
 * it asks for nothing. */
static bool time_of_set(const struct topo *t, const struct coll_pack_options *opt, unsigned set,
			mpq_t time)
{
	int64_t cap = 0, roots = 0, ranks = 0;

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		bool from = set >> arc->src & 1, to = set >> arc->dst & 1;

		if (is_inwards(opt->kind) ? from && !to : !from && to) {
			cap += arc->cap;
		}
	}
	for (int v = 0; v < topo_ranks(t); v++) {
		roots += !(set >> v & 1) && (!coll_has_root(opt->kind) || v == opt->root);
		ranks += set >> v & 1;
	}
	if (roots == 0 || ranks == 0) {
		return false;
	}
	rat_set(time, roots, cap);
	return true;
}

static void fullest_set(const struct topo *t, const struct coll_pack_options *opt, mpq_t fullest)
{
	mpq_t time;

	mpq_init(time);
	mpq_set_ui(fullest, 0, 1);
	for (unsigned set = 1; set < 1u << topo_n(t); set++) {
		if (time_of_set(t, opt, set, time) && mpq_cmp(time, fullest) > 0) {
			mpq_set(fullest, time);
		}
	}
	mpq_clear(time);
}

/* Arcs from node v along the tree to its root, which there are no more than nodes of. */
static int walk(const struct topo *t, const struct coll_forest_tree *tree, int v)
{
	int arcs = 0;

	for (; v != tree->root; arcs++) {
		const struct topo_arc *arc = topo_arc(t, tree->via[v]);

		assert_in_range(tree->via[v], 0, topo_m(t) - 1);
		assert_int_equal(tree->inwards ? arc->src : arc->dst, v);
		assert_true(arcs < topo_n(t));
		v = tree->inwards ? arc->dst : arc->src;
	}
	return arcs;
}

/* Physical arcs of a logical one, which are a path between its ends, through switches only. */
static void add_load(const struct topo *t, const struct coll_forest *f, int arc, int64_t weight,
		     int64_t *load)
{
	const struct coll_forest_route *r;
	int at = topo_arc(f->logical, arc)->src;

	if (f->routes.n == 0) {
		load[arc] += weight;
		return;
	}
	r = &f->routes.v[arc];
	assert_int_equal(r->arc, arc);
	for (int h = 0; h < r->n; h++) {
		const struct topo_arc *hop = topo_arc(t, f->hops.v[r->first + h]);

		assert_int_equal(hop->src, at);
		assert_true(h == 0 || topo_node_kind(t, at) != TOPO_TERMINAL);
		at = hop->dst;
		load[f->hops.v[r->first + h]] += weight;
	}
	assert_int_equal(at, topo_arc(f->logical, arc)->dst);
}

static void check_tree(const struct topo *physical, const struct coll_forest *f,
		       const struct coll_forest_tree *tree, bool inwards, int64_t *load)
{
	const struct topo *t = f->logical;
	int deepest = 0;

	assert_true(tree->weight >= 1);
	assert_int_equal(tree->inwards, inwards);
	assert_int_equal(tree->via[tree->root], -1);
	for (int v = 0; v < topo_n(t); v++) {
		int depth = walk(t, tree, v);

		deepest = depth > deepest ? depth : deepest;
		if (v != tree->root) {
			add_load(physical, f, tree->via[v], tree->weight, load);
		}
	}
	assert_int_equal(tree->depth, deepest);
}

static void check_time(const struct topo *t, const struct coll_forest *f, const int64_t *load)
{
	mpq_t time, most;

	mpq_inits(time, most, NULL);
	for (int a = 0; a < topo_m(t); a++) {
		rat_set(time, load[a], topo_arc(t, a)->cap);
		if (mpq_cmp(time, most) > 0) {
			mpq_set(most, time);
		}
	}
	rat_set(time, f->share, 1);
	mpq_div(most, most, time);
	assert_true(mpq_equal(most, f->time));
	mpq_clears(time, most, NULL);
}

static void check_forest(const struct topo *t, const struct coll_pack_options *opt,
			 const struct coll_forest *f)
{
	int64_t *load = calloc((size_t)topo_m(t) + 1, sizeof(*load));
	int64_t *sum = calloc((size_t)topo_ranks(t), sizeof(*sum));

	for (size_t i = 0; i < f->trees.n; i++) {
		const struct coll_forest_tree *tree = &f->trees.v[i];

		assert_in_range(tree->root, 0, topo_ranks(t) - 1);
		sum[tree->root] += tree->weight;
		check_tree(t, f, tree, is_inwards(opt->kind), load);
	}
	for (int v = 0; v < topo_ranks(t); v++) {
		bool root = !coll_has_root(opt->kind) || v == opt->root;

		assert_int_equal(sum[v], root ? f->share : 0);
	}
	check_time(t, f, load);
	free(load);
	free(sum);
}

static const enum coll_kind kinds[] = {
	COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_BROADCAST, COLL_REDUCE,
};

static void test_plain(void **state)
{
	int brute = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 41);
	for (int i = 0; i < 500; i++) {
		int n = i % 5 ? 1 + (int)rng_below(&r, MAX_CUT_NODES - 2)
			      : 1 + (int)rng_below(&r, 40);
		int caps = i % 3 == 0 ? 1 : i % 3 == 1 ? 5 : 1000;
		struct coll_pack_options opt = {
			.kind = kinds[i % 4], .root = (int)rng_below(&r, (uint64_t)n),
		};
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 4 * (uint64_t)n), caps,
						1 + i % 2, 0);
		struct coll_forest f;
		struct err err = { 0 };
		mpq_t fullest;

		mpq_init(fullest);
		coll_forest_init(&f);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		if (n <= MAX_CUT_NODES) {
			fullest_set(t, &opt, fullest);
			assert_true(mpq_equal(f.time, fullest));
			brute++;
		}
		coll_forest_fini(&f);
		mpq_clear(fullest);
		topo_free(t);
	}
	assert_true(brute > 350);
}

/* Closed walks at random, so that every node has as much capacity in as out, the first one through
 * all nodes; and so many arcs into switches or, `out`, out of them. The last are switches. */
static struct topo *random_switched(struct rng *r, int n, int switches, int max_cap, int walks,
				    int surplus, bool out)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int w = 0; w <= walks; w++) {
		int64_t cap = 1 + (int64_t)rng_below(r, (uint64_t)max_cap);
		int length = w == 0 ? n : 2 + (int)rng_below(r, (uint64_t)n);
		int first = (int)rng_below(r, (uint64_t)n), at = first;

		for (int i = 1; i <= length; i++) {
			int to = w == 0 ? (first + i) % n : i == length
				 ? first : (int)rng_below(r, (uint64_t)n);

			must(topo_add_arc(t, at, to, cap, i, &err), &err);
			at = to;
		}
	}
	for (int i = 0; i < surplus; i++) {
		int from = (int)rng_below(r, (uint64_t)(n - switches));
		int to = n - 1 - (int)rng_below(r, (uint64_t)switches);

		must(topo_add_arc(t, out ? to : from, out ? from : to,
				  1 + (int64_t)rng_below(r, (uint64_t)max_cap), 0, &err), &err);
	}
	for (int v = n - switches; v < n; v++) {
		topo_set_node(t, v, TOPO_SWITCH, 0);
	}
	topo_freeze(t);
	return t;
}

/* Where no switch has more out than in, seen from the roots, trees attain the fullest cut
 * (Bang-Jensen, Frank, Jackson 1995); elsewhere they are never below it. */
static void test_switches(void **state)
{
	int attained = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 43);
	for (int i = 0; i < 400; i++) {
		int ranks = 1 + (int)rng_below(&r, 6), switches = 1 + (int)rng_below(&r, 5);
		struct coll_pack_options opt = {
			.kind = kinds[i % 4], .root = (int)rng_below(&r, (uint64_t)ranks),
		};
		int surplus = i % 3 ? 0 : (int)rng_below(&r, 5);
		bool out = i % 2, exact = surplus == 0 || out == is_inwards(opt.kind);
		struct topo *t = random_switched(&r, ranks + switches, switches,
						 i % 5 ? 4 : 1000, (int)rng_below(&r, 5), surplus,
						 out);
		struct coll_forest f;
		struct err err = { 0 };
		mpq_t fullest;

		mpq_init(fullest);
		coll_forest_init(&f);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		fullest_set(t, &opt, fullest);
		assert_true(mpq_cmp(f.time, fullest) >= 0);
		assert_true(!exact || mpq_equal(f.time, fullest));
		attained += exact;
		coll_forest_fini(&f);
		mpq_clear(fullest);
		topo_free(t);
	}
	assert_true(attained > 250);
}

/* Larger ones against coll_bound(), which finds cuts by itself: so many ports that
 * what a node takes in is no bound. */
static void test_large(void **state)
{
	const int ports = 1 << 20;
	struct rng r;

	(void)state;
	rng_seed(&r, 45);
	for (int i = 0; i < 60; i++) {
		int ranks = 2 + (int)rng_below(&r, 30), switches = 1 + (int)rng_below(&r, 8);
		struct coll_pack_options opt = {
			.kind = kinds[i % 4], .root = (int)rng_below(&r, (uint64_t)ranks),
		};
		struct topo *t = random_switched(&r, ranks + switches, switches, i % 2 ? 20 : 1000,
						 (int)rng_below(&r, 12), 0, false);
		struct coll_forest f;
		struct err err = { 0 };
		mpq_t bound, scale;

		mpq_inits(bound, scale, NULL);
		coll_forest_init(&f);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		must(coll_bound(t, NULL, opt.kind, opt.root, ports, bound, &err), &err);
		rat_set(scale, ports, coll_has_root(opt.kind) ? 1 : ranks);
		mpq_mul(scale, scale, f.time);
		assert_true(mpq_equal(scale, bound));
		coll_forest_fini(&f);
		mpq_clears(bound, scale, NULL);
		topo_free(t);
	}
}

/* Switches with any capacities: 0 -> 3 -> 1 and 2 at once needs a copy, which takes 2 instead of
 * the cut's 1. */
static void test_unbalanced(void **state)
{
	int above = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 44);
	for (int i = 0; i < 200; i++) {
		int n = 3 + (int)rng_below(&r, 8);
		struct coll_pack_options opt = { .kind = kinds[i % 4] };
		struct topo *t =
			random_digraph(&r, n, (int)rng_below(&r, 2 * (uint64_t)n), i % 3 ? 3 : 1000,
				       1, 1 + (int)rng_below(&r, 3) % (n - 1));
		struct coll_forest f;
		struct err err = { 0 };
		mpq_t fullest;

		mpq_init(fullest);
		coll_forest_init(&f);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		fullest_set(t, &opt, fullest);
		assert_true(mpq_cmp(f.time, fullest) >= 0);
		above += !mpq_equal(f.time, fullest);
		coll_forest_fini(&f);
		mpq_clear(fullest);
		topo_free(t);
	}
	assert_true(above > 0);
}

/* The best time with trees of so many units a root, by all cuts. */
static bool is_time_enough(const struct topo *t, int64_t share, const mpq_t time)
{
	bool enough = true;
	mpz_t cap;

	mpz_init(cap);
	for (unsigned set = 1; set + 1 < 1u << topo_n(t); set++) {
		int64_t into = 0;

		for (int a = 0; a < topo_m(t); a++) {
			const struct topo_arc *arc = topo_arc(t, a);

			if (!(set >> arc->src & 1) && (set >> arc->dst & 1)) {
				mpz_mul_si(cap, mpq_numref(time), arc->cap * share);
				mpz_fdiv_q(cap, cap, mpq_denref(time));
				into += mpz_get_si(cap);
			}
		}
		enough &= into >= share * (topo_n(t) - __builtin_popcount(set));
	}
	mpz_clear(cap);
	return enough;
}

/* No time below that found, of those at which an arc can pass one unit more, is enough. */
static void test_share(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 42);
	for (int i = 0; i < 60; i++) {
		int n = 2 + (int)rng_below(&r, 5);
		struct coll_pack_options opt = { .share = 1 + (int64_t)rng_below(&r, 4) };
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 9), 7, 1, 0);
		struct coll_forest f;
		struct err err = { 0 };
		mpq_t time;

		mpq_init(time);
		coll_forest_init(&f);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		assert_int_equal(f.share, opt.share);
		assert_true(is_time_enough(t, f.share, f.time));
		for (int a = 0; a < topo_m(t); a++) {
			for (int units = 1; units <= 24; units++) {
				rat_set(time, units, topo_arc(t, a)->cap * f.share);
				assert_true(mpq_cmp(time, f.time) >= 0 ||
					    !is_time_enough(t, f.share, time));
			}
		}
		coll_forest_fini(&f);
		mpq_clear(time);
		topo_free(t);
	}
}

static struct topo *parse_edges(const char *text)
{
	struct topo *t = NULL;
	struct err err = { 0 };

	must(topo_from_edges(text, strlen(text), &t, &err), &err);
	return t;
}

/* Optima that papers and searches print, in shards a unit of capacity. */
static void test_known(void **state)
{
	static const struct { const char *expr, *time; } known[] = {
		{ "Jellyfish(14,3,2)", "13/3" },	/* 0.929 M/B */
		{ "Prod(Cap(Ring(4),2),Ring(3))", "11/6" },	/* 0.917 M/B */
		{ "Xpander(4,8,1)", "39/4" },
		{ "Hypercube(5)", "31/5" },
		{ "Mesh(8,8)", "63/2" },
		{ "Jellyfish(64,4,1)", "63/4" },
		{ "DgxA100(1,nvlink)", "7/300" },
		{ "DgxA100(2,nvlink)", "3/65" },
		{ "DgxA100(4,nvlink)", "3/25" },
		{ "DgxA100(4,pcie)", "31/32" },
		{ "DgxA100(4,all)", "3/25" },
		{ "FatTree(4)", "15" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct coll_pack_options opt = { .kind = COLL_ALLGATHER };
		struct coll_forest f;
		struct err err = { 0 };
		struct topo *t = NULL;
		char text[64];

		coll_forest_init(&f);
		must(topo_parse(known[i].expr, &t, NULL, &err), &err);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		assert_string_equal(rat_str(f.time, text, sizeof(text)), known[i].time);
		coll_forest_fini(&f);
		topo_free(t);
	}
}

/* DGX-1 with V100: links of one or two bricks, 6 a GPU; 7/8 M/B as SCCL finds it. */
static void test_dgx1(void **state)
{
	struct topo *t = parse_edges("undirected\n0 1 1\n0 2 1\n0 3 2\n0 4 2\n1 2 2\n1 3 1\n"
				     "1 5 2\n2 3 1\n2 6 2\n3 7 2\n4 5 1\n4 6 1\n4 7 2\n"
				     "5 6 2\n5 7 1\n6 7 1\n");
	struct coll_pack_options opt = { .kind = COLL_ALLGATHER };
	struct coll_forest f;
	struct err err = { 0 };
	char text[64];

	(void)state;
	coll_forest_init(&f);
	must(coll_forest_pack(t, &opt, &f, &err), &err);
	check_forest(t, &opt, &f);
	assert_string_equal(rat_str(f.time, text, sizeof(text)), "7/6");
	coll_forest_fini(&f);
	topo_free(t);
}

/* Time that may be lost makes trees shallower, and no more of it is lost. */
static void test_loss(void **state)
{
	int depth[2] = { 0, 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct coll_pack_options opt = { .loss = 200 * i };
		struct coll_forest f;
		struct err err = { 0 };
		struct topo *t = NULL;
		mpq_t most;

		mpq_init(most);
		coll_forest_init(&f);
		must(topo_parse("Jellyfish(14,3,2)", &t, NULL, &err), &err);
		must(coll_forest_pack(t, &opt, &f, &err), &err);
		check_forest(t, &opt, &f);
		rat_set(most, 13 * (1000 + opt.loss), 3 * 1000);
		assert_true(mpq_cmp(f.time, most) <= 0);
		for (size_t j = 0; j < f.trees.n; j++) {
			depth[i] = f.trees.v[j].depth > depth[i] ? f.trees.v[j].depth : depth[i];
		}
		coll_forest_fini(&f);
		mpq_clear(most);
		topo_free(t);
	}
	assert_true(depth[1] < depth[0]);
}

static void expect_error(struct topo *t, const struct coll_pack_options *opt, int code,
			 const char *message)
{
	struct coll_forest f;
	struct err err = { 0 };
	char text[ERR_MSG_MAX];

	coll_forest_init(&f);
	assert_int_equal(coll_forest_pack(t, opt, &f, &err), code);
	assert_non_null(strstr(err_str(&err, text, sizeof(text)), message));
	coll_forest_fini(&f);
	topo_free(t);
}

static void test_errors(void **state)
{
	struct coll_pack_options opt = { .kind = COLL_ALLTOALL };

	(void)state;
	expect_error(parse_edges("0 1\n1 0\n"), &opt, WEFT_EINVAL, "not made of trees");
	opt.kind = COLL_BROADCAST;
	opt.root = 2;
	expect_error(parse_edges("0 1\n1 0\n"), &opt, WEFT_EINVAL, "root 2");
	opt.root = 1;
	expect_error(parse_edges("0 1\n0 2\n2 0\n"), &opt, WEFT_EINFEASIBLE, "cannot be reached");
	opt.kind = COLL_ALLGATHER;
	expect_error(parse_edges("0 1\n1 0\n1 2\n"), &opt, WEFT_EINFEASIBLE, "cannot be reached");
	opt.share = -1;
	expect_error(parse_edges("0 1\n1 0\n"), &opt, WEFT_EINVAL, "share of -1");
	opt.share = 0;
	opt.loss = -1;
	expect_error(parse_edges("0 1\n1 0\n"), &opt, WEFT_EINVAL, "thousandths");
	opt.loss = 0;
	expect_error(parse_edges("limit nic 1\n0 1 1 nic\n1 0\n"), &opt, WEFT_EUNSUPPORTED,
		     "limit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_unbalanced),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_dgx1),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
