/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first-broadcast synthesis: known exact values, and exactness
 * against exhaustive search over sets of links. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "collective/bfb/bfb.h"
#include "collective/bfb/balance.h"
#include "topology/topology.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/bfb/balance_lp.h"
#include "tests/unit/schedule/common.h"

/* T_B, in M/B, of an all-gather and a reduce-scatter. */
static void assert_values(const char *expr, int steps, const char *allgather,
			  const char *reduce_scatter, const char *bound)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, expr);

	assert_int_equal(coll_steps(s), steps);
	assert_factor(s, allgather, bound);
	coll_free(s);
	s = bfb(COLL_REDUCE_SCATTER, expr);
	assert_int_equal(coll_steps(s), steps);
	assert_factor(s, reduce_scatter, bound);
	coll_free(s);
}

static void assert_optimal(const char *expr, int steps)
{
	struct coll_sched *s;
	char bound[32];
	mpq_t q;

	s = bfb(COLL_ALLREDUCE, expr);
	assert_int_equal(coll_steps(s), 2 * steps);
	mpq_init(q);
	rat_set(q, 2 * (coll_ranks(s) - 1), coll_ranks(s));
	rat_str(q, bound, sizeof(bound));
	mpq_clear(q);
	assert_factor(s, bound, bound);
	coll_free(s);
}

static void test_hypercubes(void **state)
{
	(void)state;
	for (int k = 1; k <= 6; k++) {
		char expr[32];

		snprintf(expr, sizeof(expr), "Hypercube(%d)", k);
		assert_optimal(expr, k);
	}
}

static void test_tori(void **state)
{
	static const struct {
		const char *expr;
		int steps;
	} tori[] = {
		{ "Torus(3,3)", 2 }, { "Torus(4,4)", 4 }, { "Torus(5,5)", 4 },
		{ "Torus(3,4)", 3 }, { "Torus(2,3)", 2 }, { "Torus(6,6)", 6 },
		{ "Torus(3,3,2)", 3 }, { "Torus(4,3,5)", 5 },
		{ "Torus(2,7)", 4 }, { "Torus(3,3,3,2)", 4 },
		{ "Torus(8,8)", 8 }, { "Ring(9)", 4 }, { "Ring(10)", 5 },
		{ "Ring(3)", 1 }, { "UniRing(1,6)", 5 },
		{ "UniRing(3,4)", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++) {
		assert_optimal(tori[i].expr, tori[i].steps);
	}
}

static void test_complete(void **state)
{
	(void)state;
	for (int n = 2; n <= 9; n++) {
		char expr[32];

		snprintf(expr, sizeof(expr), "K(%d)", n);
		assert_optimal(expr, 1);
		snprintf(expr, sizeof(expr), "K(%d,%d)", n, n);
		assert_optimal(expr, 2);
	}
}

/* Theorem 22: n > 6 and m = ceil((sqrt(2n - 1) - 1) / 2): diameter m. */
static void test_circulants(void **state)
{
	(void)state;
	for (int n = 7; n <= 40; n += 3) {
		char expr[32];
		int m = 0;

		while ((2 * m + 1) * (2 * m + 1) < 2 * n - 1) {
			m++;
		}
		snprintf(expr, sizeof(expr), "C(%d,{%d,%d})", n, m, m + 1);
		assert_optimal(expr, m);
	}
}

/* Directed: the reduce-scatter is that of the transpose. */
static void test_generalized_kautz(void **state)
{
	(void)state;
	assert_values("GenKautz(4,25)", 3, "92/75", "32/25", "24/25");
	assert_values("GenKautz(4,200)", 4, "191/150", "17/10", "199/200");
	assert_values("GenKautz(4,64)", 3, "21/16", "21/16", "21/16");
	/* Kautz graphs proper: no self-loop, L^n of a complete graph. */
	assert_values("GenKautz(2,6)", 2, "1", "1", "5/6");
	assert_values("GenKautz(4,20)", 2, "1", "1", "19/20");
}

static void test_errors(void **state)
{
	static const int path[][2] = { { 0, 1 }, { 1, 2 } };
	struct coll_sched *s;
	struct err err;

	(void)state;
	assert_int_equal(coll_bfb(COLL_ALLGATHER, graph_from(3, 2, path), &s,
				  &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "rank 1 cannot reach rank 0"));
	assert_null(s);
	assert_int_equal(coll_bfb(COLL_ALLREDUCE, graph_from(3, 2, path), &s,
				  &err), WEFT_EINFEASIBLE);
	assert_int_equal(coll_bfb(COLL_ALLTOALL, graph_of("K(3)"), &s, &err),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(coll_bfb(COLL_BROADCAST, graph_of("K(3)"), &s, &err),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(coll_bfb(COLL_ALLREDUCE, graph_of("Mesh(128,128)"), &s, &err),
			 WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "16384 nodes, of which 16384 differ: 536838144 transfers"));
}

static void test_one_rank(void **state)
{
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	(void)state;
	must(topo_new(1, &t, &err), &err);
	topo_freeze(t);
	must(coll_bfb(COLL_ALLREDUCE, t, &s, &err), &err);
	assert_int_equal(coll_steps(s), 0);
	coll_free(s);
}

/* An arc of capacity 2 takes two thirds of what its sister shares. */
static void test_capacities(void **state)
{
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	(void)state;
	must(topo_new(2, &t, &err), &err);
	must(topo_add_arc(t, 0, 1, 1, 0, &err), &err);
	must(topo_add_arc(t, 0, 1, 2, 0, &err), &err);
	must(topo_add_arc(t, 1, 0, 3, 0, &err), &err);
	topo_freeze(t);
	must(coll_bfb(COLL_ALLGATHER, t, &s, &err), &err);
	assert_int_equal(coll_chunks(s), 3);
	assert_factor(s, "1/2", "1/2");
	coll_free(s);
}

/* ---- exactness ---- */

/* Random strongly connected digraph: a cycle and more arcs, some parallel,
 * some self-loops, some of more capacity. */
static struct topo *random_graph(struct rng *rng, int n, int extra,
				 int min_cap, int caps)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int u = 0; u < n; u++) {
		must(topo_add_arc(t, u, (u + 1) % n, min_cap, 0, &err),
		     &err);
	}
	for (int i = 0; i < extra; i++) {
		int u = (int)rng_below(rng, n), v = (int)rng_below(rng, n);

		int cap = min_cap + (int)rng_below(rng, caps);

		must(topo_add_arc(t, u, v, cap, 0, &err), &err);
	}
	topo_freeze(t);
	return t;
}

/* dist[v * n + u] = hops from v to u. */
static int32_t *distances(const struct topo *t)
{
	int n = topo_n(t);
	int32_t *dist = malloc((size_t)n * n * sizeof(*dist));

	assert_non_null(dist);
	for (int v = 0; v < n; v++) {
		topo_bfs(t, v, dist + (size_t)v * n);
	}
	return dist;
}

/* The largest, over sets of links into u, of ranks at distance d that can
 * use only those links, over their capacity. */
static void densest(const struct topo *t, const int32_t *dist, int u, int d,
		    mpq_t best)
{
	const int32_t *in;
	int n = topo_n(t), k = topo_in(t, u, &in);
	mpq_t q;

	mpq_init(q);
	mpq_set_ui(best, 0, 1);
	for (unsigned set = 1; set < 1u << k; set++) {
		int64_t items = 0, cap = 0;

		for (int i = 0; i < k; i++) {
			cap += set >> i & 1 ? topo_arc(t, in[i])->cap : 0;
		}
		for (int v = 0; v < n; v++) {
			bool inside = dist[v * n + u] == d;

			for (int i = 0; i < k; i++) {
				int w = topo_arc(t, in[i])->src;

				inside = inside && (set >> i & 1 ||
						    dist[v * n + w] != d - 1);
			}
			items += inside;
		}
		rat_set(q, items, cap);
		if (mpq_cmp(q, best) > 0) {
			mpq_set(best, q);
		}
	}
	mpq_clear(q);
}

/* Eq. (4) by exhaustive search, in shards per unit of capacity. */
static void best_shard_times(const struct topo *t, mpq_t sum)
{
	int32_t *dist = distances(t);
	int diameter = topo_diameter(t);
	mpq_t q, top;

	mpq_inits(q, top, NULL);
	mpq_set_ui(sum, 0, 1);
	for (int d = 1; d <= diameter; d++) {
		mpq_set_ui(top, 0, 1);
		for (int u = 0; u < topo_n(t); u++) {
			densest(t, dist, u, d, q);
			if (mpq_cmp(q, top) > 0) {
				mpq_set(top, q);
			}
		}
		mpq_add(sum, sum, top);
	}
	mpq_clears(q, top, NULL);
	free(dist);
}

/* Takes t. */
static void assert_exact(struct topo *t)
{
	struct err err = { 0 };
	struct coll_sched *s;
	struct coll_report r;
	mpq_t best;

	mpq_init(best);
	best_shard_times(t, best);
	coll_report_init(&r);
	must(coll_bfb(COLL_ALLGATHER, t, &s, &err), &err);
	must(coll_verify(s, &r, &err), &err);
	assert_true(mpq_equal(r.shard_times, best));
	assert_int_equal(coll_steps(s), topo_diameter(coll_topo(s)));
	coll_report_fini(&r);
	coll_free(s);
	mpq_clear(best);
}

static void test_exact_on_families(void **state)
{
	static const char *const exprs[] = {
		"GenKautz(3,17)", "GenKautz(4,30)", "GenKautz(2,23)",
		"GenKautz(5,40)", "GenKautz(3,50)", "C(16,{3,4})",
		"K(3,5)", "Torus(3,5)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		assert_exact(graph_of(exprs[i]));
	}
}

static void test_exact_on_random_graphs(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20);
	for (int i = 0; i < 60; i++) {
		int n = 3 + (int)rng_below(&rng, 14);
		int extra = (int)rng_below(&rng, 2 * n);

		assert_exact(random_graph(&rng, n, extra, 1, 1 + i % 3));
	}
}

/* With P chunks each level takes its exact load rounded up to whole chunks,
 * which is within theorem 20. Takes t, of unit arcs. */
static void assert_cut(struct topo *t, int chunks)
{
	int32_t *dist = distances(t);
	int n = topo_n(t), d = topo_max_degree(t), diameter = topo_diameter(t);
	struct err err = { 0 };
	struct coll_report r;
	struct coll_sched *s;
	mpq_t top, q, sum, slack;
	mpz_t up;

	mpq_inits(top, q, sum, slack, NULL);
	mpz_init(up);
	for (int t1 = 1; t1 <= diameter; t1++) {
		mpq_set_ui(top, 0, 1);
		for (int u = 0; u < n; u++) {
			densest(t, dist, u, t1, q);
			if (mpq_cmp(q, top) > 0) {
				mpq_set(top, q);
			}
		}
		mpq_add(slack, slack, top);
		rat_set(q, chunks, 1);
		mpq_mul(top, top, q);
		mpz_cdiv_q(up, mpq_numref(top), mpq_denref(top));
		mpq_set_z(q, up);
		mpq_add(sum, sum, q);
	}
	rat_set(q, 1, chunks);
	mpq_mul(sum, sum, q);
	free(dist);
	coll_report_init(&r);
	must(coll_bfb_cut(COLL_ALLGATHER, t, chunks, &s, &err), &err);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(coll_chunks(s), chunks);
	assert_true(mpq_equal(r.shard_times, sum));
	/* (d^D - 1) / ((d - 1) P) shards a link above the exact load. */
	for (int64_t k = 0, power = 1; k < diameter; k++, power *= d) {
		rat_set(q, power, chunks);
		mpq_add(slack, slack, q);
	}
	assert_true(mpq_cmp(r.shard_times, slack) <= 0);
	coll_report_fini(&r);
	coll_free(s);
	mpq_clears(top, q, sum, slack, NULL);
	mpz_clear(up);
}

static void test_given_chunks(void **state)
{
	static const char *const exprs[] = {
		"GenKautz(3,17)", "GenKautz(4,30)", "C(16,{3,4})", "K(3,5)",
		"Torus(3,5)", "Reverse(GenKautz(3,20))", "Diamond",
	};
	struct err err = { 0 };
	struct coll_sched *s;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 44);
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		for (int chunks = 1; chunks <= 5; chunks++) {
			assert_cut(graph_of(exprs[i]), chunks);
		}
	}
	for (int i = 0; i < 20; i++) {
		assert_cut(random_graph(&rng, 12, 20, 1, 1), 1 + i % 4);
	}
	assert_int_equal(coll_bfb_cut(COLL_ALLREDUCE, graph_of("K(3)"), -1, &s,
				      &err), WEFT_EINVAL);
	assert_int_equal(coll_bfb_cut(COLL_ALLREDUCE, graph_of("K(3)"),
				      COLL_MAX_CHUNKS + 1, &s, &err),
			 WEFT_EINVAL);
}

/* Takes t. True when the loads have a common denominator within the limit;
 * otherwise P is a compromise, no worse than a chunk too many a step. */
static bool exact_or_close(struct topo *t)
{
	struct err err = { 0 };
	struct coll_report r;
	struct coll_sched *s;
	mpq_t best, slack;
	bool exact;

	mpq_inits(best, slack, NULL);
	best_shard_times(t, best);
	coll_report_init(&r);
	must(coll_bfb(COLL_ALLGATHER, t, &s, &err), &err);
	must(coll_verify(s, &r, &err), &err);
	assert_in_range(coll_chunks(s), 1, COLL_BFB_MAX_CHUNKS);
	exact = mpq_equal(r.shard_times, best);
	assert_true(mpq_cmp(r.shard_times, best) >= 0);
	rat_set(slack, coll_steps(s), coll_chunks(s));
	mpq_add(best, best, slack);
	assert_true(mpq_cmp(r.shard_times, best) <= 0);
	mpq_clears(best, slack, NULL);
	coll_report_fini(&r);
	coll_free(s);
	return exact;
}

/* Capacities of 50 to 149 give denominators without small multiples. */
static void test_rounds_when_chunks_explode(void **state)
{
	struct rng rng;
	int exact = 0;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 20; i++) {
		exact += exact_or_close(random_graph(&rng, 12, 36, 50, 100));
	}
	assert_in_range(exact, 0, 19);
}

/* Figure 5 of the paper: one rank behind links 0 and 1, one behind 1 and
 * 2, each link takes two thirds. */
static void test_balance_figure_5(void **state)
{
	int64_t cap[] = { 1, 1, 1 }, share[4];
	int use[] = { 0, 1, 1, 2 };
	struct bfb_group groups[] = { { 1, 0, 2 }, { 1, 2, 2 } };
	struct bfb_program b = { 3, 2, cap, groups, use, 4 };
	struct err err = { 0 };
	struct bfb_ratio load, most = { 1, 1 };

	(void)state;
	must(bfb_program_solve(&b, &load, &err), &err);
	assert_int_equal(load.num, 2);
	assert_int_equal(load.den, 3);
	must(bfb_program_split(&b, 3, &most, share, &err), &err);
	assert_int_equal(share[0], 2);
	assert_int_equal(share[1], 1);
	assert_int_equal(share[2], 1);
	assert_int_equal(share[3], 2);
	assert_int_equal(bfb_ratio_cmp(most, (struct bfb_ratio){ 2, 1 }), 0);
	/* Two shards in one chunk each: 2/3 of one does not do. */
	most = load;
	must(bfb_program_split(&b, 1, &most, share, &err), &err);
	assert_int_equal(bfb_ratio_cmp(most, (struct bfb_ratio){ 1, 1 }), 0);
}

/* A random program: each group may use a random set of the links. */
static void random_program(struct rng *rng, struct bfb_program *b)
{
	b->n_links = 1 + (int)rng_below(rng, 7);
	b->n_groups = 1 + (int)rng_below(rng, 9);
	b->n_use = 0;
	for (int w = 0; w < b->n_links; w++) {
		b->cap[w] = 1 + (int64_t)rng_below(rng, 3);
	}
	for (int g = 0; g < b->n_groups; g++) {
		unsigned set = 1 + (unsigned)rng_below(
			rng, (1u << b->n_links) - 1);

		b->groups[g] = (struct bfb_group){
			1 + (int64_t)rng_below(rng, 20), b->n_use, 0,
		};
		for (int w = 0; w < b->n_links; w++) {
			if (set >> w & 1) {
				b->use[b->n_use++] = w;
				b->groups[g].n++;
			}
		}
	}
}

static void test_whole_chunks_are_optimal(void **state)
{
	int64_t cap[7], share[63];
	struct bfb_group groups[9];
	int use[63], raised = 0;
	struct bfb_program b = { .cap = cap, .groups = groups, .use = use };
	struct err err = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 12);
	for (int i = 0; i < 100; i++) {
		int64_t chunks = 1 + (int64_t)rng_below(&rng, 3);
		struct bfb_ratio most;
		double least;

		/* Small: branch and bound takes long where links are alike. */
		do {
			random_program(&rng, &b);
		} while (b.n_links > 4 || b.n_groups > 4);
		for (int g = 0; g < b.n_groups; g++) {
			groups[g].items = 1 + groups[g].items % 3;
		}
		must(bfb_program_solve(&b, &most, &err), &err);
		most.num *= chunks;
		least = (double)most.num / (double)most.den;
		must(bfb_program_split(&b, chunks, &most, share, &err), &err);
		raised += (double)most.num / (double)most.den > least + 1e-9;
		assert_load(most, min_by_lp(&b, chunks, true));
	}
	assert_true(raised > 10);
}

/* From all sets, from any set at all and by a linear program, the same
 * load. */
static void test_any_start_is_proven(void **state)
{
	int64_t cap[7];
	struct bfb_group groups[9];
	int use[63];
	struct bfb_program b = { .cap = cap, .groups = groups, .use = use };
	struct err err = { 0 };
	struct rng rng;
	int below = 0;

	(void)state;
	rng_seed(&rng, 3);
	for (int i = 0; i < 500; i++) {
		struct bfb_ratio solved, proven;
		bool tight[7];

		random_program(&rng, &b);
		for (int w = 0; w < b.n_links; w++) {
			tight[w] = rng_below(&rng, 2);
		}
		must(bfb_program_solve(&b, &solved, &err), &err);
		must(bfb_program_prove(&b, tight, &proven, &err), &err);
		assert_int_equal(bfb_ratio_cmp(solved, proven), 0);
		assert_load(solved, min_by_lp(&b, 1, false));
		assert_false(bfb_program_is_below(&b, solved));
		below += bfb_program_is_below(&b, (struct bfb_ratio){
					  solved.num * 11, solved.den * 10 });
	}
	/* Pouring nearly always comes within a tenth. */
	assert_true(below > 450);
}

/* ---- translations ---- */

static void assert_shift(const char *expr, bool want, int digits)
{
	struct err err = { 0 };
	struct topo *t = graph_of(expr);
	struct topo_group *g;

	must(topo_group_find(t, &g, &err), &err);
	assert_int_equal(g != NULL, want);
	if (g) {
		assert_int_equal(topo_group_generators(g), digits);
	}
	topo_group_free(g);
	topo_free(t);
}

static void assert_fixed(const char *expr, int fixed)
{
	struct err err = { 0 };
	struct topo *t = graph_of(expr);
	struct topo_group *g;

	must(topo_group_find(t, &g, &err), &err);
	assert_non_null(g);
	assert_int_equal(topo_group_orbits(g), fixed);
	assert_int_equal(topo_group_order(g) * fixed, topo_n(t));
	topo_group_free(g);
	topo_free(t);
}

/* Line graphs keep the translations of what they are made of. */
static void test_translations_of_line_graphs(void **state)
{
	(void)state;
	assert_fixed("Torus(3,4)", 1);
	assert_fixed("L(C(16,{3,4}))", 4);
	assert_fixed("L3(C(16,{3,4}))", 64);
	assert_fixed("L2(Pow(Diamond,2))", 16);
	assert_fixed("L(K(3,3))", 3);
	assert_fixed("L(Deg(K(3),2))", 4);
	assert_values("L(K(4,4))", 3, "1", "1", "31/32");
	assert_values("L2(Pow(Diamond,2))", 8, "1", "1", "1023/1024");
	assert_values("L3(C(16,{3,4}))", 6, "261/256", "261/256",
		      "1023/1024");
}

static void test_translations(void **state)
{
	(void)state;
	assert_shift("Ring(12)", true, 1);
	assert_shift("C(20,{2,5})", true, 1);
	assert_shift("K(7)", true, 1);
	assert_shift("Hypercube(4)", true, 4);
	assert_shift("Torus(4,6)", true, 2);
	assert_shift("Torus(3,3,2)", true, 3);
	assert_shift("K(3,3)", true, 2);
	assert_shift("GenKautz(4,26)", false, 0);
	assert_shift("K(3,4)", false, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_chunks),
		cmocka_unit_test(test_whole_chunks_are_optimal),
		cmocka_unit_test(test_balance_figure_5),
		cmocka_unit_test(test_any_start_is_proven),
		cmocka_unit_test(test_translations),
		cmocka_unit_test(test_translations_of_line_graphs),
		cmocka_unit_test(test_hypercubes),
		cmocka_unit_test(test_tori),
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_circulants),
		cmocka_unit_test(test_generalized_kautz),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_one_rank),
		cmocka_unit_test(test_capacities),
		cmocka_unit_test(test_exact_on_families),
		cmocka_unit_test(test_exact_on_random_graphs),
		cmocka_unit_test(test_rounds_when_chunks_explode),
	};

	return cmocka_run_group_tests_name("bfb/bfb", tests, NULL,
					   NULL);
}
