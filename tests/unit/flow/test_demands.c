/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all where pairs send unlike amounts: the reader of matrices, flows and exact
 * optima against a linear program that is written down here, symmetry that keeps demands. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/schedule/common.h"

/* ---- reading ---- */

static struct flow_demands read_matrix(const char *text, int n)
{
	struct flow_demands d;
	struct err err = { 0 };

	must(flow_demands_parse(text, strlen(text), n, &d, &err), &err);
	return d;
}

static void expect_sizes(const char *text, const int64_t *size, int64_t bytes)
{
	struct flow_demands d = read_matrix(text, 3);

	assert_memory_equal(d.size, size, 9 * sizeof(*size));
	assert_int_equal(d.bytes, bytes);
	flow_demands_fini(&d);
}

/* In one unit, as large as it can be, whatever the form. */
static void test_forms(void **state)
{
	static const int64_t whole[] = { 0, 1, 2, 3, 0, 4, 5, 6, 0 };
	static const int64_t few[] = { 0, 0, 3, 0, 0, 0, 0, 2, 0 };

	(void)state;
	expect_sizes("0 1 2\n3 0 4\n5 6 0", whole, 0);
	expect_sizes("# ranks\n0,1, 2\n\n3;0 ;4 # two\r\n5\t6 0\n", whole, 0);
	expect_sizes("0 .1 0.2\n0.3 0 4e-1\n5E-1 600e-3 0\n", whole, 0);
	expect_sizes("0 3e20 6e20\n9e20 0 12e20\n15e20 1.8e21 0\n", whole, 0);
	expect_sizes("[[0,1,2],[3,0,4],[5,6,0]]", whole, 0);
	expect_sizes(" [ [0, \"10MB\" ,\"20MB\"],\n[\"0.03GB\", 0, \"40MB\"],"
		     "[\"50000kB\",\"60MB\",0] ] \n", whole, 10000000);
	expect_sizes("0 0 3MiB\n0 0 0\n0kB 2MiB 0", few, 1 << 20);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "0 1\n1 0\n", "row 0: it has 2 of 3 columns" },
		{ "0 1 2\n1 0 2\n", "2 rows for 3 ranks" },
		{ "", "0 rows" },
		{ "0 1 2 3\n", "row 0, column 3: the row is too long" },
		{ "0 1 2\n1 0 2\n1 2 0\n1 2 3\n", "row 3: there are only 3" },
		{ "0 1 2\n1 0 -2\n1 2 0\n", "row 1, column 2: negative: -2" },
		{ "0 1 2\n1 0 2x\n1 2 0\n", "row 1, column 2: neither" },
		{ "0 1 2\n1 nan 2\n", "row 1, column 1: neither" },
		{ "0 1e 2\n", "row 0, column 1: neither" },
		{ "0 . 2\n", "row 0, column 1: neither" },
		{ "0 1MB 2\n", "row 0, column 2: sizes with and without" },
		{ "0 1.5B 2B\n", "row 0, column 1: neither" },
		{ "0 1,,2\n", "row 0, column 2: empty" },
		{ ",1,2\n", "row 0, column 0: empty" },
		{ "0 1 2\n1 7 2\n1 2 0\n", "row 1, column 1: what a rank sends to itself" },
		{ "0 0 0\n0 0 0\n0 0 0\n", "all demands are 0" },
		{ "0 1 1e18\n1 0 1\n1 1 0\n", "row 0, column 2: too large" },
		{ "0 1e300 1e-300\n1 0 1\n1 1 0\n", "row 0, column 1: too large" },
		{ "0 1234567890123456789 1\n", "row 0, column 1: more than 18 digits" },
		{ "[[0,1,2],[3,0,4],[5,6,0]", "expected ']'" },
		{ "[[0,1,2],[3,0,4],[5,6,0]] 7", "something follows" },
		{ "[[0,1,2],[3,0],[5,6,0]]", "row 1: it has 2 of 3 columns" },
		{ "[[0,1,2],[3,0,\"4],[5,6,0]]", "row 1, column 2: " },
		{ "[[0,1,],[3,0,4],[5,6,0]]", "row 0, column 2: neither" },
		{ "[0,1,2]", "row 0, column 0: expected '['" },
		{ "0 1111111111111111111111111111111111111111111111111111111111111111111 1",
		  "row 0, column 1: a word of more" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct flow_demands d;
		struct err err = { 0 };

		if (flow_demands_parse(bad[i].text, strlen(bad[i].text), 3, &d, &err) == 0 ||
		    !strstr(err.msg, bad[i].says) || d.size) {
			fail_msg("'%s': '%s' has no '%s'", bad[i].text, err.msg, bad[i].says);
		}
	}
}

/* ---- flows ---- */

/* Row of node v for a commodity: those of a source, or with `pairs` of a pair. */
static int row_of(const struct topo *t, const struct flow_demands *d, bool pairs, int s, int sink,
		  int v)
{
	return topo_m(t) + (pairs ? s * d->n + sink : s) * topo_n(t) + v;
}

/* Column 0, F: every sink gets F times its demand more than it sends on. */
static void add_rate(struct lp *lp, const struct topo *t, const struct flow_demands *d, bool pairs)
{
	int *rows = calloc((size_t)lp_rows(lp), sizeof(*rows)), k = 0;
	double *values = calloc((size_t)lp_rows(lp), sizeof(*values));
	struct err err = { 0 };

	for (int s = 0; s < d->n; s++) {
		for (int v = 0; v < d->n; v++) {
			if (flow_demand(d, s, v) > 0) {
				rows[k] = row_of(t, d, pairs, s, v, v);
				values[k++] = -(double)flow_demand(d, s, v) / (double)d->largest;
			}
		}
	}
	must(lp_add_col(lp, -1, 0, LP_INF, false, k, rows, values, NULL, &err), &err);
	free(rows);
	free(values);
}

/* The flow of one commodity on all arcs; what leaves the source comes from nowhere. */
static void add_flow(struct lp *lp, const struct topo *t, int source, int first)
{
	struct err err = { 0 };

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int rows[] = { a, first + arc->dst, first + arc->src };
		double values[] = { 1, 1, -1 };
		bool loop = arc->src == arc->dst;

		must(lp_add_col(lp, 0, 0, loop ? 0 : LP_INF, false,
				loop ? 1 : arc->src == source ? 2 : 3, rows, values, NULL, &err),
		     &err);
	}
}

/* The largest F such that F times all demands, in units of the largest, fit: with a flow
 * a source, or (pairs) one a pair. */
static double solve_directly(const struct topo *t, const struct flow_demands *d, bool pairs)
{
	int groups = pairs ? d->n * d->n : d->n;
	struct lp_result res;
	struct err err = { 0 };
	double rate;
	struct lp *lp;

	lp = lp_new();
	must(0, &err);
	for (int a = 0; a < topo_m(t); a++) {
		must(lp_add_row(lp, LP_LE, (double)topo_arc(t, a)->cap, NULL, &err), &err);
	}
	for (int i = 0; i < groups * topo_n(t); i++) {
		must(lp_add_row(lp, LP_GE, 0, NULL, &err), &err);
	}
	add_rate(lp, t, d, pairs);
	for (int g = 0; g < groups; g++) {
		add_flow(lp, t, pairs ? g / d->n : g, topo_m(t) + g * topo_n(t));
	}
	must(lp_run(lp, NULL, &res, &err), &err);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	rate = lp_value(lp, 0);
	lp_free(lp);
	return rate;
}

/* A ring with more arcs; any capacities. */
static struct topo *random_graph(struct rng *rng, int n, bool with_switch)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int i = 0; i < 3 * n; i++) {
		must(topo_add_arc(t, i % n, i < n ? (i + 1) % n : (int)rng_below(rng, (uint64_t)n),
				  1 + (int64_t)rng_below(rng, i % 2 ? 1 : 9), 0, &err), &err);
	}
	if (with_switch) {
		topo_set_node(t, n - 1, TOPO_SWITCH, 0);
	}
	topo_freeze(t);
	return t;
}

/* Zeros, ones, and a few that are a thousand times as large. */
static struct flow_demands random_matrix(struct rng *rng, int n)
{
	struct flow_demands d;
	struct err err = { 0 };
	char text[2048], *at = text;

	for (int i = 0; i < n * n; i++) {
		uint64_t v = rng_below(rng, 8);
		unsigned long size = v < 2 ? 0 : v < 6 ? (unsigned long)rng_below(rng, 9)
						       : (unsigned long)rng_below(rng, 1000);

		size = i % n == i / n ? 0 : i == 1 ? size + 1 : size;
		at += snprintf(at, 16, "%lu%c", size, i % n == n - 1 ? '\n' : ' ');
	}
	must(flow_demands_parse(text, strlen(text), n, &d, &err), &err);
	return d;
}

/* Certified to 1e-5, and equal to the program's. */
static void compare(const struct topo *t, const struct flow_demands *d, int seed)
{
	static const enum mcf_form forms[] = { MCF_FORM_FLOW, MCF_FORM_LINK, MCF_FORM_GROUPED,
					       MCF_FORM_PATHS };
	struct mcf_options opt = { .gap = 1e-5 };
	double rate = solve_directly(t, d, topo_n(t) < 5);
	struct err err = { 0 };
	struct mcf *p;

	for (int f = 0; f < (seed % 8 ? 1 : 4); f++) {
		struct mcf_result res;

		must(mcf_new_demands(t, seed % 2, d, &p, &err), &err);
		must(mcf_solve_form(p, forms[f], &opt, &res, &err), &err);
		mcf_free(p);
		if (!(res.gap <= 1e-5) || fabs(rate * res.congestion - 1) > 2e-5 ||
		    rate * res.bound > 1 + 1e-7) {
			fail_msg("%d, %s: %.9g and %.9g, not %.9g", seed, mcf_form_name(forms[f]),
				 res.congestion, res.bound, 1 / rate);
		}
	}
}

/* NULL when no proof was found; else the rate is the program's. */
static struct mcf_proof *prove(const struct topo *t, const struct flow_demands *d)
{
	struct mcf_options opt = { .gap = 0 };
	struct mcf_proof *proof;
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	must(mcf_new_demands(t, true, d, &p, &err), &err);
	must(mcf_exact(p, t, &opt, &res, &proof, &err), &err);
	mcf_free(p);
	if (proof) {
		must(mcf_proof_check(t, d, proof, &err), &err);
		assert_true(fabs(mpq_get_d(proof->congestion) *
				 solve_directly(t, d, false) - 1) < 1e-7);
	}
	return proof;
}

static void test_random_matrices(void **state)
{
	int proven = 0;

	(void)state;
	for (int seed = 0; seed < 200; seed++) {
		struct flow_demands d;
		struct rng rng;
		struct topo *t;
		int n = 3 + seed % 5;

		rng_seed(&rng, (uint64_t)seed);
		t = random_graph(&rng, n, seed % 7 == 3 && n > 3);
		d = random_matrix(&rng, topo_ranks(t));
		compare(t, &d, seed);
		if (seed % 4 == 0) {
			struct mcf_proof *proof = prove(t, &d);

			proven += proof != NULL;
			mcf_proof_free(proof);
		}
		flow_demands_fini(&d);
		topo_free(t);
	}
	/* The others are told as intervals. */
	assert_true(proven >= 45);
}

/* By steps, in as many as the rate needs: replayed with every pair's chunks, T_B within chunks of
 * the flow's bound and not below it. */
static void test_steps(void **state)
{
	(void)state;
	for (int seed = 0; seed < 60; seed++) {
		struct mcf_steps_options opt = { .flow = { .gap = 1e-5 }, .loss = 0.02 };
		struct mcf_steps_info info;
		struct coll_sched *s;
		struct flow_demands d;
		struct rng rng;
		struct topo *t;
		struct err err = { 0 };
		int n = 3 + seed % 4;

		rng_seed(&rng, (uint64_t)seed);
		t = random_graph(&rng, n, false);
		d = random_matrix(&rng, topo_ranks(t));
		opt.demands = &d;
		must(mcf_steps(t, &opt, &s, &info, &err), &err);
		must(coll_verify(s, NULL, &err), &err);
		for (int uv = 0; uv < n * n; uv++) {
			assert_int_equal(coll_demands(s)[uv],
					 (d.size[uv] * info.chunks + d.largest - 1) / d.largest);
		}
		assert_true(info.total >= info.flow.bound * (1 - 1e-6));
		assert_true(info.stepped >= info.total * (1 - 1e-6));
		coll_free(s);
		flow_demands_fini(&d);
		topo_free(t);
	}
}

/* Paths of a flow that are put into steps: all chunks arrive; chunks and steps cost little of the
 * rate, where capacities are unlike too. */
static void test_steps_of_paths(void **state)
{
	(void)state;
	for (int seed = 0; seed < 24; seed++) {
		struct mcf_sched_options opt = { .flow = { .gap = 1e-4 }, .loss = MCF_SCHED_LOSS };
		struct mcf_sched_info info;
		struct coll_sched *s;
		struct flow_demands d;
		struct rng rng;
		struct topo *t;
		struct err err = { 0 };

		rng_seed(&rng, (uint64_t)seed);
		t = random_graph(&rng, 5 + seed % 8, false);
		d = random_matrix(&rng, topo_ranks(t));
		opt.demands = &d;
		must(mcf_schedule(t, &opt, &s, &info, &err), &err);
		must(coll_verify(s, NULL, &err), &err);
		if (info.stepped > info.chunked * 1.02 ||
		    info.stepped > info.flow.congestion * 1.03 ||
		    info.stepped < info.flow.bound * (1 - 1e-6)) {
			fail_msg("%d: %.4g in steps, %.4g of chunks, %.4g of the flow", seed,
				 info.stepped, info.chunked, info.flow.congestion);
		}
		coll_free(s);
		flow_demands_fini(&d);
		topo_free(t);
	}
}

/* ---- symmetry ---- */

/* What u sends to v is `of(v - u)`. */
static struct flow_demands shifted(int n, int64_t (*of)(int by))
{
	char *text = calloc(1, (size_t)n * n * 16), *at = text;
	struct flow_demands d;

	for (int i = 0; i < n * n; i++) {
		at += sprintf(at, "%d%c", (int)of((i % n - i / n + n) % n),
			      i % n == n - 1 ? '\n' : ' ');
	}
	d = read_matrix(text, n);
	free(text);
	return d;
}

static int64_t next_more(int by)
{
	return by == 0 ? 0 : by == 1 ? 5 : 1;
}

static int64_t alike(int by)
{
	return by == 0 ? 0 : 7;
}

static int sources_of(const struct topo *t, const struct flow_demands *d)
{
	struct err err = { 0 };
	struct mcf *p;
	int n;

	must(mcf_new_demands(t, true, d, &p, &err), &err);
	n = mcf_sources(p);
	mcf_free(p);
	return n;
}

/* Rotations keep a matrix that depends on the offset only, other matrices have fewer
 * symmetries, and one that is the same for all pairs is none. */
static void test_symmetry(void **state)
{
	struct topo *t = graph_of("Torus(12)");
	struct flow_demands d = shifted(12, next_more), same = shifted(12, alike);
	struct mcf_proof *proof = prove(t, &d);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(sources_of(t, &d), 1);
	assert_non_null(proof);
	/* Twelve rotations, no reflection. */
	assert_true(proof->n_gens > 0 && proof->n_sources == 1);
	assert_int_equal(mcf_proof_check(t, NULL, proof, &err), WEFT_EVERIFY);
	d.size[1]++;
	assert_int_equal(sources_of(t, &d), 12);
	assert_int_equal(mcf_proof_check(t, &d, proof, &err), WEFT_EVERIFY);
	mcf_proof_free(proof);
	proof = prove(t, &same);
	assert_non_null(proof);
	assert_int_equal(mpq_cmp_ui(proof->congestion, 18, 1), 0);
	must(mcf_proof_check(t, NULL, proof, &err), &err);
	mcf_proof_free(proof);
	flow_demands_fini(&same);
	flow_demands_fini(&d);
	topo_free(t);
}

/* Pairs that send nothing need no path, others do. */
static void test_paths(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 2 }, { 0, 2 } };
	struct topo *t = graph_from(3, 3, arcs);
	struct flow_demands d = read_matrix("0 2 6\n0 0 4\n0 0 0", 3);
	struct mcf_proof *proof = prove(t, &d);
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	/* One of six goes around: 4 + 1 over the second arc, 6 - 1 over the third. */
	assert_non_null(proof);
	assert_int_equal(mpq_cmp_ui(proof->congestion, 5, 6), 0);
	mcf_proof_free(proof);
	d.size[6] = 1;
	assert_int_equal(mcf_new_demands(t, true, &d, &p, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "no path from node 2 to node 0"));
	d.n = 2;
	assert_int_equal(mcf_new_demands(t, true, &d, &p, &err), WEFT_EINVAL);
	flow_demands_fini(&d);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_random_matrices),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_steps_of_paths),
		cmocka_unit_test(test_symmetry),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
