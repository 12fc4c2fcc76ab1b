/* SPDX-License-Identifier: Apache-2.0 */
/* Exact all-to-all optima: the known fractions with a checked proof, random
 * digraphs, and proofs that are wrong in one place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

/* NULL when no proof was found. */
static struct mcf_proof *prove(const struct topo *t, bool symmetry,
			       struct mcf_result *res)
{
	struct mcf_options opt = { .gap = 0 };
	struct mcf_proof *proof;
	struct err err = { 0 };
	struct mcf *p;

	must(mcf_new(t, symmetry, &p, &err), &err);
	must(mcf_exact(p, t, &opt, res, &proof, &err), &err);
	mcf_free(p);
	if (proof) {
		must(mcf_proof_check(t, NULL, proof, &err), &err);
		assert_true(res->gap == 0 && res->stop == MCF_REACHED);
		assert_true(res->congestion == mpq_get_d(proof->congestion));
	}
	return proof;
}

/* F = p / q; of GenKautz(4,67) and more by the middle of the optima. */
static void test_known_fractions(void **state)
{
	static const struct {
		const char *expr;
		unsigned long p, q;
	} known[] = {
		{ "K(4,4)", 2, 5 }, { "Hypercube(3)", 1, 4 },
		{ "Hypercube(4)", 1, 8 }, { "Hypercube(5)", 1, 16 },
		{ "Torus(3,3)", 1, 3 }, { "Torus(4,4)", 1, 8 },
		{ "Torus(5,5)", 1, 15 }, { "Torus(6,6)", 1, 27 },
		{ "Torus(8,8)", 1, 64 }, { "Torus(3,3,3)", 1, 9 },
		{ "GenKautz(4,16)", 7, 53 }, { "GenKautz(4,25)", 2, 27 },
		{ "GenKautz(4,36)", 8, 187 }, { "GenKautz(4,64)", 15, 691 },
		{ "GenKautz(4,100)", 14, 1133 },
		{ "GenKautz(4,128)", 16, 1857 },
		{ "GenKautz(4,67)", 1114936, 52205501 }, { "GenKautz(4,81)", 15157481, 901253438 },
		{ "K(2)", 1, 1 }, { "UniRing(3,2)", 3, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i].expr);
		struct mcf_result res;
		struct mcf_proof *proof = prove(t, true, &res);

		if (!proof || mpz_cmp_ui(mpq_numref(proof->congestion),
					 known[i].q) ||
		    mpz_cmp_ui(mpq_denref(proof->congestion), known[i].p)) {
			fail_msg("%s is not %lu/%lu", known[i].expr,
				 known[i].p, known[i].q);
		}
		mcf_proof_free(proof);
		topo_free(t);
	}
}

/* Strongly connected, with switches and any capacities. */
static struct topo *random_graph(uint64_t seed, bool *plain)
{
	struct err err = { 0 };
	struct topo *t;
	struct rng rng;
	int n;

	rng_seed(&rng, seed);
	n = 4 + (int)rng_below(&rng, 9);
	*plain = seed % 2;
	must(topo_new(n, &t, &err), &err);
	for (int u = 0; u < n; u++) {
		must(topo_add_arc(t, u, (u + 1) % n,
				  *plain ? 1 : 1 + (int64_t)rng_below(&rng, 9),
				  0, &err), &err);
	}
	for (int i = 0; i < 2 * n; i++) {
		must(topo_add_arc(t, (int)rng_below(&rng, (uint64_t)n),
				  (int)rng_below(&rng, (uint64_t)n),
				  *plain ? 1 : 1 + (int64_t)rng_below(&rng, 9),
				  0, &err), &err);
	}
	if (seed % 3 == 0) {
		topo_set_node(t, 1, TOPO_SWITCH, 0);
	}
	topo_freeze(t);
	return t;
}

/* With and without symmetry the fraction is the same, and the solver's
 * interval holds it. */
static void test_random_digraphs(void **state)
{
	int proven = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		bool plain;
		struct topo *t = random_graph(seed, &plain);
		struct mcf_options opt = { .gap = 1e-4 };
		struct mcf_result res, rough;
		struct mcf_proof *proof = prove(t, false, &res);
		struct mcf_proof *again = prove(t, true, &res);
		struct err err = { 0 };
		struct mcf *p;

		must(mcf_new(t, false, &p, &err), &err);
		must(mcf_run(p, &opt, &rough, &err), &err);
		mcf_free(p);
		if (proof) {
			double u = mpq_get_d(proof->congestion);

			proven++;
			assert_true(u >= rough.bound * (1 - 1e-12));
			assert_true(u <= rough.congestion * (1 + 1e-12));
		}
		if (proof && again) {
			assert_int_equal(mpq_cmp(proof->congestion,
						 again->congestion), 0);
		}
		mcf_proof_free(proof);
		mcf_proof_free(again);
		topo_free(t);
	}
	assert_in_range(proven, 38, 40);
}

/* ---- wrong proofs ---- */

enum lie {
	LESS_CONGESTION, MORE_CONGESTION, LOST_FLOW, NEGATIVE_FLOW, WRONG_ARC,
	NEGATIVE_PRICE, OTHER_PRICE, ALL_PRICES_ZERO, NO_AUTOMORPHISM,
	NO_PERMUTATION, NO_SOURCE, SAME_SOURCE, SWITCH_SOURCE, ARC_LEFT_OUT,
	ARC_INVENTED, WRONG_UNIT, N_LIES
};

static void tell(struct mcf_proof *q, enum lie lie)
{
	struct mcf_proof_flow *f = &q->flow[q->first[1] / 2];

	switch (lie) {
	case LESS_CONGESTION:
	case MORE_CONGESTION:
		mpq_set_si(q->congestion, lie == LESS_CONGESTION ? 700 : 800,
			   100);
		mpq_canonicalize(q->congestion);
		break;
	case LOST_FLOW:
		mpz_sub_ui(f->amount, f->amount, 1);
		break;
	case NEGATIVE_FLOW:
		mpz_neg(f->amount, f->amount);
		break;
	case WRONG_ARC:
		f->arc = q->m;
		break;
	case NEGATIVE_PRICE:
		mpz_set_si(q->price[3], -1);
		break;
	case OTHER_PRICE:
		mpz_mul_ui(q->price[3], q->price[3], 2);
		mpz_add_ui(q->price[3], q->price[3], 1);
		break;
	case ALL_PRICES_ZERO:
		for (int a = 0; a < q->m; a++) {
			mpz_set_ui(q->price[a], 0);
		}
		break;
	case NO_AUTOMORPHISM:
		for (int u = 0; u < q->n; u++) {
			q->gens[0][u] = (u + 1) % q->n;
		}
		break;
	case NO_PERMUTATION:
		q->gens[0][0] = q->gens[0][1];
		break;
	case NO_SOURCE:
		q->n_sources--;
		break;
	case SAME_SOURCE:
		q->source[1] = q->source[0];
		break;
	case SWITCH_SOURCE:
		q->source[0] = q->n;
		break;
	case ARC_LEFT_OUT:
		q->m--;
		break;
	case ARC_INVENTED:
		q->head[0] = q->tail[0];
		break;
	default:
		mpz_add_ui(q->flow_den, q->flow_den, 1);
	}
}

static void untell(struct mcf_proof *q, enum lie lie)
{
	/* What freeing the proof counts on. */
	q->n_sources += lie == NO_SOURCE;
	q->m += lie == ARC_LEFT_OUT;
}

static void test_lies(void **state)
{
	struct topo *t = graph_of("GenKautz(4,16)");

	(void)state;
	for (int lie = 0; lie < N_LIES; lie++) {
		struct mcf_result res;
		struct mcf_proof *proof = prove(t, true, &res);
		struct err err = { 0 };

		assert_non_null(proof);
		assert_true(proof->n_gens > 0 && proof->n_sources == 2);
		tell(proof, (enum lie)lie);
		if (mcf_proof_check(t, NULL, proof, &err) != WEFT_EVERIFY) {
			fail_msg("lie %d was believed", lie);
		}
		untell(proof, (enum lie)lie);
		mcf_proof_free(proof);
	}
	topo_free(t);
}

/* A proof of one digraph proves nothing about another. */
static void test_other_digraph(void **state)
{
	struct topo *t = graph_of("GenKautz(4,16)");
	struct topo *other = graph_of("Torus(4,4)");
	struct mcf_result res;
	struct mcf_proof *proof = prove(t, true, &res);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(mcf_proof_check(other, NULL, proof, &err), WEFT_EVERIFY);
	mcf_proof_free(proof);
	topo_free(other);
	topo_free(t);
}

static void test_cancel(void **state)
{
	volatile bool cancel = true;
	struct mcf_options opt = { .cancel = &cancel };
	struct topo *t = graph_of("GenKautz(4,36)");
	struct mcf_result res;
	struct mcf_proof *proof;
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	must(mcf_new(t, true, &p, &err), &err);
	must(mcf_exact(p, t, &opt, &res, &proof, &err), &err);
	assert_null(proof);
	assert_int_equal(res.stop, MCF_CANCELED);
	assert_true(res.bound > 0 && res.bound <= res.congestion);
	mcf_free(p);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_fractions),
		cmocka_unit_test(test_random_digraphs),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_other_digraph),
		cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
