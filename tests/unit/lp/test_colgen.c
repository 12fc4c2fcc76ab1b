/* SPDX-License-Identifier: Apache-2.0 */
/* lib/lp/colgen: against the same programs with all columns listed, cutting
 * stock with a known relaxation, and every way to stop. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "lib/lp/colgen.h"
#include "tests/unit/lp/violation.h"

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * (1 + fabs(want))) {
		fail_msg("%.9g is not %.9g", got, want);
	}
}

/* ---- random masters with convexity rows ---- */

enum { BLOCKS = 6, CHOICES = 20, SHARED = 5 };

struct choice {
	double cost, use[SHARED];
};

/* Every block takes a mixture of its choices; the shared rows limit what
 * they use, and missing a limit costs 50 a unit. */
struct instance {
	struct choice choice[BLOCKS][CHOICES];
	double limit[SHARED];
	bool maximise;
	bool blind;	/* the pricing knows columns but proves nothing */
	bool broken;
	int calls;
};

static void make_instance(struct instance *in, uint64_t seed)
{
	struct rng rng;

	memset(in, 0, sizeof(*in));
	rng_seed(&rng, seed);
	in->maximise = seed % 2;
	for (int b = 0; b < BLOCKS; b++) {
		for (int c = 0; c < CHOICES; c++) {
			struct choice *ch = &in->choice[b][c];

			ch->cost = (double)rng_below(&rng, 100) / 7;
			for (int r = 0; r < SHARED; r++) {
				ch->use[r] = (double)rng_below(&rng, 6);
			}
		}
	}
	for (int r = 0; r < SHARED; r++) {
		in->limit[r] = 4 + (double)rng_below(&rng, 14);
	}
}

/* Rows 0..SHARED-1 are shared, then one a block. */
static struct lp *new_master(const struct instance *in, int *n_fixed)
{
	const double minus = -1;
	struct lp *lp;

	lp = lp_new();
	if (in->maximise) {
		lp_maximise(lp);
	}
	for (int r = 0; r < SHARED; r++) {
		assert_int_equal(lp_add_row(lp, LP_LE, in->limit[r], NULL,
					    NULL), 0);
	}
	for (int b = 0; b < BLOCKS; b++) {
		assert_int_equal(lp_add_row(lp, LP_EQ, 1, NULL, NULL), 0);
	}
	for (int r = 0; r < SHARED; r++) {
		assert_int_equal(lp_add_col(lp, in->maximise ? -50 : 50, 0,
					    LP_INF, false, 1, &r, &minus,
					    NULL, NULL), 0);
	}
	*n_fixed = lp_cols(lp);
	return lp;
}

static int add_choice(struct lp *lp, const struct instance *in, int b, int c)
{
	double values[SHARED + 1];
	int rows[SHARED + 1];

	for (int r = 0; r < SHARED; r++) {
		rows[r] = r;
		values[r] = in->choice[b][c].use[r];
	}
	rows[SHARED] = SHARED + b;
	values[SHARED] = 1;
	return lp_add_col(lp, in->choice[b][c].cost, 0, LP_INF, true,
			  SHARED + 1, rows, values, NULL, NULL);
}

static int price_choices(void *ctx, const double *duals, struct lp *master,
			 struct colgen_proof *proof, struct err *err)
{
	struct instance *in = ctx;
	double sign = in->maximise ? -1 : 1, missing = 0;
	int rc = 0;

	in->calls++;
	if (in->broken) {
		return err_set(err, WEFT_ENOTFOUND, "no prices today");
	}
	for (int b = 0; b < BLOCKS && rc == 0; b++) {
		double best = 0;
		int at = -1;

		for (int c = 0; c < CHOICES; c++) {
			const struct choice *ch = &in->choice[b][c];
			double d = ch->cost - duals[SHARED + b];

			for (int r = 0; r < SHARED; r++) {
				d -= duals[r] * ch->use[r];
			}
			if (sign * d < best) {
				best = sign * d;
				at = c;
			}
		}
		missing -= best;
		if (at >= 0 && (!in->blind || at % 2)) {
			rc = add_choice(master, in, b, at);
		}
	}
	if (!in->blind) {
		proof->missing = missing;
	}
	return rc;
}

static double solve_listed(const struct instance *in, bool integers)
{
	struct lp_options opt = { .relax = !integers };
	struct lp_result res;
	int n_fixed;
	struct lp *lp = new_master(in, &n_fixed);

	for (int b = 0; b < BLOCKS; b++) {
		for (int c = 0; c < CHOICES; c++) {
			assert_int_equal(add_choice(lp, in, b, c), 0);
		}
	}
	assert_int_equal(lp_run(lp, &opt, &res, NULL), 0);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(lp);
	return res.objective;
}

/* A master with each block's first choice. */
static struct colgen begin(struct instance *in)
{
	struct colgen cg = { .price = price_choices, .ctx = in };

	cg.master = new_master(in, &cg.n_fixed);
	for (int b = 0; b < BLOCKS; b++) {
		assert_int_equal(add_choice(cg.master, in, b, 0), 0);
	}
	return cg;
}

static void same_as_listed(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		const double smoothing[] = { 0, COLGEN_SMOOTHING, 0.9 };
		struct colgen_options opt = { .smoothing = smoothing[seed % 3] };
		struct colgen_result res;
		struct instance in;
		struct colgen cg;

		make_instance(&in, seed);
		cg = begin(&in);
		assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
		assert_int_equal(res.stop, COLGEN_REACHED);
		near(res.achieved, solve_listed(&in, false));
		near(res.bound, res.achieved);
		assert_int_equal(res.rounds, in.calls);
		assert_int_equal(res.columns + cg.n_fixed + BLOCKS,
				 lp_cols(cg.master));
		assert_true(violation(cg.master) < 1e-6);
		lp_free(cg.master);
	}
}

/* Stopped after any number of rounds: the optimum lies between, and both
 * sides only get better. */
static void bounds_hold_at_every_round(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		double sign = seed % 2 ? -1 : 1, best;
		struct instance in;

		make_instance(&in, seed);
		best = solve_listed(&in, false);
		for (int most = 1; most < 12; most++) {
			struct colgen_options opt = {
				.max_rounds = most,
				.smoothing = seed % 4 < 2 ? 0.8 : 0,
			};
			struct colgen_result res;
			struct colgen cg = begin(&in);

			assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
			assert_true(sign * (res.achieved - best) > -1e-6);
			assert_true(sign * (best - res.bound) > -1e-6);
			assert_true(res.rounds <= most);
			if (res.stop == COLGEN_ROUNDS) {
				assert_int_equal(res.rounds, most);
			}
			lp_free(cg.master);
		}
	}
}

static void integers_of_the_columns(void **state)
{
	struct colgen_options opt = { .smoothing = 0 };
	int met = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed += 2) {
		struct colgen_result res;
		struct lp_result mip;
		struct instance in;
		struct colgen cg;
		double best;

		make_instance(&in, seed);
		cg = begin(&in);
		assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
		assert_int_equal(lp_run(cg.master, NULL, &mip, NULL), 0);
		assert_int_equal(mip.outcome, LP_OPTIMAL);
		best = solve_listed(&in, true);
		assert_true(mip.objective >= best - 1e-6);
		assert_true(res.bound <= best + 1e-6);
		met += fabs(mip.objective - best) < 1e-6;
		lp_free(cg.master);
	}
	assert_true(met > 0);
}

static void blind_pricing_stalls(void **state)
{
	struct colgen_options opt = { .smoothing = 0.5 };
	struct colgen_result res;
	struct instance in;
	struct colgen cg;

	(void)state;
	make_instance(&in, 4);
	in.blind = true;
	cg = begin(&in);
	assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
	assert_int_equal(res.stop, COLGEN_STALLED);
	assert_true(res.bound <= -LP_INF && res.gap == HUGE_VAL);
	assert_true(res.achieved >= solve_listed(&in, false) - 1e-6);
	lp_free(cg.master);
}

static void cancel_and_time(void **state)
{
	volatile bool cancel = true;
	struct colgen_options opt = { .cancel = &cancel };
	struct colgen_result res;
	struct instance in;
	struct colgen cg;

	(void)state;
	make_instance(&in, 2);
	cg = begin(&in);
	assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
	assert_int_equal(res.stop, COLGEN_CANCELED);
	assert_int_equal(in.calls, 0);
	cancel = false;
	opt.deadline = deadline_in(1, NULL);
	assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
	assert_int_equal(res.stop, COLGEN_TIME);
	/* It goes on when it may. */
	opt.deadline = deadline_in(0, NULL);
	assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
	assert_int_equal(res.stop, COLGEN_REACHED);
	near(res.achieved, solve_listed(&in, false));
	lp_free(cg.master);
}

static void gap_asked_for(void **state)
{
	struct colgen_options opt = { .gap = 0.25 };
	struct colgen_result loose, tight;
	struct instance in;
	struct colgen cg;

	(void)state;
	make_instance(&in, 8);
	cg = begin(&in);
	assert_int_equal(colgen_run(&cg, &opt, &loose, NULL), 0);
	assert_int_equal(loose.stop, COLGEN_REACHED);
	assert_true(loose.gap <= 0.25);
	opt.gap = 0;
	assert_int_equal(colgen_run(&cg, &opt, &tight, NULL), 0);
	assert_true(tight.achieved <= loose.achieved + 1e-9);
	assert_true(tight.gap < 1e-6);
	lp_free(cg.master);
}

static void errors(void **state)
{
	struct colgen_options opt = { .smoothing = 1 };
	struct colgen_result res;
	struct err err = { 0 };
	struct instance in;
	struct colgen cg;

	(void)state;
	make_instance(&in, 2);
	cg = begin(&in);
	assert_int_equal(colgen_run(&cg, &opt, &res, &err), WEFT_EINVAL);
	opt.smoothing = 0;
	in.broken = true;
	assert_int_equal(colgen_run(&cg, &opt, &res, &err), WEFT_ENOTFOUND);
	assert_string_equal(err.msg, "no prices today");
	lp_free(cg.master);
	/* No columns at all: the convexity rows cannot be kept. */
	cg.master = new_master(&in, &cg.n_fixed);
	assert_int_equal(colgen_run(&cg, &opt, &res, &err),
			 WEFT_EINFEASIBLE);
	lp_free(cg.master);
}

/* ---- cutting stock: Farley's bound ---- */

enum { STOCK = 100, ITEMS = 4 };

static const int width[ITEMS] = { 45, 36, 31, 14 };
static const double demand[ITEMS] = { 97, 610, 395, 211 };

/* The best pattern is a knapsack, by dynamic programming. */
static int price_pattern(void *ctx, const double *duals, struct lp *master,
			 struct colgen_proof *proof, struct err *err)
{
	double best[STOCK + 1] = { 0 }, pattern[ITEMS] = { 0 };
	int took[STOCK + 1], rows[ITEMS] = { 0, 1, 2, 3 }, w = STOCK;

	(void)ctx;
	took[0] = -1;
	for (int c = 1; c <= STOCK; c++) {
		best[c] = best[c - 1];
		took[c] = -1;
		for (int i = 0; i < ITEMS; i++) {
			if (width[i] <= c &&
			    best[c - width[i]] + duals[i] > best[c]) {
				best[c] = best[c - width[i]] + duals[i];
				took[c] = i;
			}
		}
	}
	while (w > 0) {
		if (took[w] >= 0) {
			pattern[took[w]]++;
			w -= width[took[w]];
		} else {
			w--;
		}
	}
	proof->stretch = fmax(best[STOCK], 1);
	return best[STOCK] > 1 + 1e-9
		       ? lp_add_col(master, 1, 0, LP_INF, true, ITEMS, rows,
				    pattern, NULL, err)
		       : 0;
}

/* Gilmore and Gomory's example as Chvatal tells it (Linear Programming,
 * 1983, chapter 13): 452.25 rolls, 453 whole ones. */
static void cutting_stock(void **state)
{
	const double one = 1;
	struct colgen cg = { .price = price_pattern };

	(void)state;
	for (int smooth = 0; smooth < 2; smooth++) {
		struct colgen_options opt = { .smoothing = smooth * 0.5 };
		struct colgen_result res;
		struct lp_result mip;

		cg.master = lp_new();
		for (int i = 0; i < ITEMS; i++) {
			assert_int_equal(lp_add_row(cg.master, LP_GE,
						    demand[i], NULL, NULL), 0);
			assert_int_equal(lp_add_col(cg.master, 1, 0, LP_INF,
						    true, 1, &i, &one, NULL,
						    NULL), 0);
		}
		assert_int_equal(colgen_run(&cg, &opt, &res, NULL), 0);
		assert_int_equal(res.stop, COLGEN_REACHED);
		near(res.achieved, 452.25);
		near(res.bound, 452.25);
		assert_int_equal(lp_run(cg.master, NULL, &mip, NULL), 0);
		near(mip.objective, 453);
		lp_free(cg.master);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_listed),
		cmocka_unit_test(bounds_hold_at_every_round),
		cmocka_unit_test(integers_of_the_columns),
		cmocka_unit_test(blind_pricing_stalls),
		cmocka_unit_test(cancel_and_time),
		cmocka_unit_test(gap_asked_for),
		cmocka_unit_test(errors),
		cmocka_unit_test(cutting_stock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
