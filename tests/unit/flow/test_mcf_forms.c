/* SPDX-License-Identifier: Apache-2.0 */
/* The linear programs of the all-to-all flow agree with each other, with the
 * flow solver and with the known optima. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

static const enum mcf_form forms[] = { MCF_FORM_LINK, MCF_FORM_GROUPED,
				       MCF_FORM_PATHS };

static struct mcf_result solve_form(const struct topo *t, bool symmetry,
				    enum mcf_form form)
{
	struct mcf_options opt = { .gap = 1e-7 };
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	must(mcf_new(t, symmetry, &p, &err), &err);
	must(mcf_solve_form(p, form, &opt, &res, &err), &err);
	assert_int_equal(res.stop, MCF_REACHED);
	assert_true(res.bound <= res.congestion * (1 + 1e-12));
	assert_true(res.gap < 1e-6);
	/* The flow is p's own: it goes on from there, at once. */
	opt.gap = 1e-6;
	must(mcf_run(p, &opt, &res, &err), &err);
	assert_int_equal(res.passes, 0);
	assert_true(res.gap <= 1e-6);
	mcf_free(p);
	return res;
}

static void test_known_optima(void **state)
{
	static const struct {
		const char *expr;
		double u;
		bool small;	/* enough for one flow a pair of all nodes */
	} known[] = {
		{ "K(4,4)", 5 / 2., true }, { "Hypercube(3)", 4, true },
		{ "Torus(3,3)", 3, true }, { "Torus(4,4)", 8, false },
		{ "Hypercube(4)", 8, false }, { "Torus(3,3,3)", 9, false },
		{ "GenKautz(4,16)", 53 / 7., false }, { "K(2)", 1, true },
		{ "GenKautz(4,25)", 27 / 2., false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i].expr);

		for (size_t f = 0; f < 3; f++) {
			for (int sym = known[i].small ? 0 : 1; sym < 2;
			     sym++) {
				struct mcf_result r =
					solve_form(t, sym, forms[f]);

				if (fabs(r.congestion / known[i].u - 1) >
				    1e-6) {
					fail_msg("%s on %s: %.9g, not %.9g",
						 mcf_form_name(forms[f]),
						 known[i].expr, r.congestion,
						 known[i].u);
				}
			}
		}
		topo_free(t);
	}
}

/* Any capacities, a switch, parallel arcs and loops. */
static void test_random_digraphs(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		struct mcf_options opt = { .gap = 1e-6 };
		struct mcf_result flow;
		struct err err = { 0 };
		struct topo *t;
		struct mcf *p;
		struct rng rng;
		int n = 4 + (int)seed % 4;

		rng_seed(&rng, seed);
		must(topo_new(n, &t, &err), &err);
		for (int i = 0; i < 3 * n; i++) {
			int v = (int)rng_below(&rng, (uint64_t)n);

			must(topo_add_arc(t, i % n, i < n ? (i + 1) % n : v,
					  1 + (int64_t)rng_below(&rng, 1000),
					  0, &err), &err);
		}
		if (seed % 3 == 1) {
			topo_set_node(t, 2, TOPO_SWITCH, 0);
		}
		topo_freeze(t);
		must(mcf_new(t, false, &p, &err), &err);
		must(mcf_run(p, &opt, &flow, &err), &err);
		for (size_t f = 0; f < 3; f++) {
			struct mcf_result r = solve_form(t, seed % 2,
							 forms[f]);

			assert_true(fabs(r.congestion / flow.congestion - 1) <
				    1e-5);
		}
		mcf_free(p);
		topo_free(t);
	}
}

static void test_too_large(void **state)
{
	struct mcf_options opt = { .gap = 1e-3 };
	struct topo *t = graph_of("GenKautz(4,64)");
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	must(mcf_new(t, false, &p, &err), &err);
	assert_int_equal(mcf_solve_form(p, MCF_FORM_LINK, &opt, &res, &err),
			 WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "use mcf"));
	mcf_free(p);
	topo_free(t);
}

/* Stopped at once: what it has is feasible and bounded. */
static void test_cancel(void **state)
{
	volatile bool cancel = true;
	struct mcf_options opt = { .cancel = &cancel };
	struct topo *t = graph_of("GenKautz(4,16)");
	struct err err = { 0 };

	(void)state;
	for (size_t f = 0; f < 3; f++) {
		struct mcf_result res;
		struct mcf *p;

		must(mcf_new(t, true, &p, &err), &err);
		must(mcf_solve_form(p, forms[f], &opt, &res, &err), &err);
		assert_int_equal(res.stop, MCF_CANCELED);
		assert_true(res.bound > 0 && res.bound <= 53 / 7.);
		assert_true(res.congestion >= 53 / 7.);
		mcf_free(p);
	}
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_optima),
		cmocka_unit_test(test_random_digraphs),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
