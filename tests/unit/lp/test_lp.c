/* SPDX-License-Identifier: Apache-2.0 */
/* lib/lp: known optima, outcomes, duality on random programs, growth. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>

#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/lp/violation.h"

static struct lp *new_lp(void)
{
	struct lp *lp;

	lp = lp_new();
	return lp;
}

static int row(struct lp *lp, enum lp_sense sense, double rhs)
{
	int r;

	assert_int_equal(lp_add_row(lp, sense, rhs, &r, NULL), 0);
	return r;
}

static int col(struct lp *lp, double cost, double lower, double upper,
	       bool integer, int n, const int *rows, const double *values)
{
	int c;

	assert_int_equal(lp_add_col(lp, cost, lower, upper, integer, n, rows,
				    values, &c, NULL), 0);
	return c;
}

static struct lp_result run(struct lp *lp)
{
	struct lp_result res;
	struct err err = { 0 };

	if (lp_run(lp, NULL, &res, &err)) {
		fail_msg("%s", err.msg);
	}
	return res;
}

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * (1 + fabs(want))) {
		fail_msg("%.9g is not %.9g", got, want);
	}
}

/* max 3x + 2y; x + y <= 4; x + 3y <= 7; x <= 3. Optimum (3, 1) = 11. */
static void maximum_with_duals(void **state)
{
	struct lp *lp = new_lp();
	struct lp_result res;
	int a = row(lp, LP_LE, 4), b = row(lp, LP_LE, 7), x, y;

	(void)state;
	lp_maximise(lp);
	x = col(lp, 3, 0, 3, false, 2, (int[]){ b, a }, (double[]){ 1, 1 });
	y = col(lp, 2, 0, LP_INF, false, 2, (int[]){ a, b },
		(double[]){ 1, 3 });
	res = run(lp);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	near(res.objective, 11);
	near(res.bound, 11);
	near(lp_value(lp, x), 3);
	near(lp_value(lp, y), 1);
	near(lp_dual(lp, a), 2);
	near(lp_dual(lp, b), 0);
	assert_true(violation(lp) <= 1e-9);
	lp_free(lp);
}

/* A dual is the change of the objective per unit of right-hand side, also
 * for a maximum, a >= row and an equation. */
static void duals_are_derivatives(void **state)
{
	struct lp *lp;

	(void)state;
	for (int maximise = 0; maximise < 2; maximise++) {
		int ge, eq, le;
		double was, sign = maximise ? -1 : 1;

		lp = new_lp();
		if (maximise) {
			lp_maximise(lp);
		}
		ge = row(lp, LP_GE, 10);
		eq = row(lp, LP_EQ, 7);
		le = row(lp, LP_LE, 8);
		col(lp, sign * 2, 0, LP_INF, false, 3,
		    (int[]){ ge, eq, le }, (double[]){ 1, 1, 1 });
		col(lp, sign * 3, 0, LP_INF, false, 1, &ge, (double[]){ 1 });
		col(lp, sign * -1, 0, LP_INF, false, 2, (int[]){ eq, le },
		    (double[]){ 1, 2 });
		was = run(lp).objective;
		for (int r = 0; r < 3; r++) {
			const double rhs[] = { 10, 7, 8 };
			double dual, moved;

			near(run(lp).objective, was);
			dual = lp_dual(lp, r);
			lp_set_rhs(lp, r, rhs[r] + 0.125);
			moved = run(lp).objective;
			lp_set_rhs(lp, r, rhs[r]);
			near(moved - was, dual * 0.125);
		}
		lp_free(lp);
	}
}

static void infeasible(void **state)
{
	struct lp *lp = new_lp();
	int a = row(lp, LP_GE, 5), b = row(lp, LP_LE, 3);

	(void)state;
	col(lp, 1, 0, LP_INF, false, 2, (int[]){ a, b }, (double[]){ 1, 1 });
	assert_int_equal(run(lp).outcome, LP_INFEASIBLE);
	/* A slack column repairs it, and the program goes on living. */
	col(lp, 100, 0, LP_INF, false, 1, &a, (double[]){ 1 });
	near(run(lp).objective, 203);
	lp_free(lp);
}

static void unbounded(void **state)
{
	struct lp *lp = new_lp();
	struct lp_result res;
	int a = row(lp, LP_GE, 1);

	(void)state;
	col(lp, -1, 0, LP_INF, false, 1, &a, (double[]){ 1 });
	res = run(lp);
	assert_int_equal(res.outcome, LP_UNBOUNDED);
	assert_true(res.bound <= -LP_INF);
	lp_free(lp);
}

/* The smallest row and column for which lp_solve itself reports an optimum,
 * with a column at infinity. */
static void unbounded_by_a_lone_column(void **state)
{
	struct lp *lp = new_lp();
	int a = row(lp, LP_GE, 13);

	(void)state;
	col(lp, 11, 0, LP_INF, false, 1, &a, (double[]){ 5 });
	col(lp, 2, -LP_INF, 7, false, 0, NULL, NULL);
	assert_int_equal(run(lp).outcome, LP_UNBOUNDED);
	lp_free(lp);
}

struct plain {
	int m, n;
	bool maximise;
	enum lp_sense sense[12];
	double rhs[12], cost[18], lower[18], upper[18], a[18][12];
};

static void any_program(struct rng *rng, struct plain *p)
{
	p->m = 1 + (int)rng_below(rng, 12);
	p->n = 1 + (int)rng_below(rng, 18);
	p->maximise = rng_below(rng, 2);
	for (int i = 0; i < p->m; i++) {
		p->sense[i] = (enum lp_sense)rng_below(rng, 3);
		p->rhs[i] = (double)rng_below(rng, 30) - 5;
	}
	for (int j = 0; j < p->n; j++) {
		int kind = (int)rng_below(rng, 4);

		p->cost[j] = (double)rng_below(rng, 41) - 20;
		p->lower[j] = kind == 0 ? -LP_INF : kind == 1 ? -3 : 0;
		p->upper[j] = kind < 2 ? 7 : rng_below(rng, 2) ? LP_INF : 11;
		for (int i = 0; i < p->m; i++) {
			p->a[j][i] = rng_below(rng, 4) ? 0 :
				     (double)rng_below(rng, 21) - 10;
		}
	}
}

static struct lp *build(const struct plain *p)
{
	static const int rows[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	struct lp *lp = new_lp();

	if (p->maximise) {
		lp_maximise(lp);
	}
	for (int i = 0; i < p->m; i++) {
		row(lp, p->sense[i], p->rhs[i]);
	}
	for (int j = 0; j < p->n; j++) {
		col(lp, p->cost[j], p->lower[j], p->upper[j], false, p->m,
		    rows, p->a[j]);
	}
	return lp;
}

/* A box around a program makes it bounded. Growing the box goes on paying
 * exactly when the program is unbounded, and never helps one without
 * solutions. */
static void outcomes_are_right(void **state)
{
	int seen[LP_UNKNOWN + 1] = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 77);
	for (int round = 0; round < 500; round++) {
		enum lp_outcome boxed[2];
		double best[2];
		struct plain p;
		struct lp_result res;
		struct lp *lp;

		any_program(&rng, &p);
		lp = build(&p);
		res = run(lp);
		seen[res.outcome]++;
		lp_free(lp);
		for (int k = 0; k < 2; k++) {
			double size = k ? 2e6 : 1e6;
			struct plain q = p;
			struct lp_result in_box;

			for (int j = 0; j < q.n; j++) {
				q.lower[j] = fmax(q.lower[j], -size);
				q.upper[j] = fmin(q.upper[j], size);
			}
			lp = build(&q);
			in_box = run(lp);
			boxed[k] = in_box.outcome;
			best[k] = (p.maximise ? -1 : 1) * in_box.objective;
			lp_free(lp);
		}
		if (res.outcome == LP_INFEASIBLE) {
			assert_int_equal(boxed[1], LP_INFEASIBLE);
			continue;
		}
		assert_int_equal(boxed[0], LP_OPTIMAL);
		assert_int_equal(boxed[1], LP_OPTIMAL);
		assert_int_equal(res.outcome == LP_UNBOUNDED,
				 best[1] < best[0] - 1);
	}
	assert_true(seen[LP_OPTIMAL] > 20 && seen[LP_INFEASIBLE] > 20 &&
		    seen[LP_UNBOUNDED] > 20);
}

/* Rounding goes, and nothing else does. */
static void settled_values_tie(void **state)
{
	(void)state;
	assert_true(lp_settled(0.33333333333333304) == lp_settled(1 / 3.0));
	assert_true(lp_settled(2e6 + 1e-9) == 2e6);
	assert_true(lp_settled(1 + 1e-10) != 1);
	assert_true(lp_settled(-0.5) == -0.5 && lp_settled(12345) == 12345);
	assert_true(lp_settled(1e-17) == 0 && lp_settled(INFINITY) == INFINITY);
}

static void empty_program(void **state)
{
	struct lp *lp = new_lp();
	struct lp_result res = run(lp);

	(void)state;
	assert_int_equal(res.outcome, LP_OPTIMAL);
	near(res.objective, 0);
	/* Columns without rows sit at their better bound. */
	col(lp, 2, -3, 5, false, 0, NULL, NULL);
	col(lp, -2, -3, 5, false, 0, NULL, NULL);
	near(run(lp).objective, -16);
	row(lp, LP_GE, 1);
	assert_int_equal(run(lp).outcome, LP_INFEASIBLE);
	lp_free(lp);
}

static void free_and_negative_bounds(void **state)
{
	struct lp *lp = new_lp();
	int a = row(lp, LP_EQ, -7), b = row(lp, LP_LE, 20), x, y;

	(void)state;
	x = col(lp, 1, -LP_INF, LP_INF, false, 2, (int[]){ a, b },
		(double[]){ 1, 1 });
	y = col(lp, 3, -LP_INF, 4, false, 1, &a, (double[]){ 1 });
	near(run(lp).objective, 20 - 81);
	near(lp_value(lp, x), 20);
	near(lp_value(lp, y), -27);
	near(lp_dual(lp, a), 3);
	near(lp_dual(lp, b), -2);
	lp_free(lp);
}

static void bad_input_is_refused(void **state)
{
	struct lp *lp = new_lp();
	int a = row(lp, LP_LE, 1);
	const int twice[] = { a, a }, outside[] = { 7 };
	const double ones[] = { 1, 1 }, nan_value[] = { NAN };

	(void)state;
	assert_int_equal(lp_add_col(lp, 1, 0, 1, false, 2, twice, ones, NULL,
				    NULL), WEFT_EINVAL);
	assert_int_equal(lp_add_col(lp, 1, 0, 1, false, 1, outside, ones,
				    NULL, NULL), WEFT_EINVAL);
	assert_int_equal(lp_add_col(lp, 1, 0, 1, false, 1, &a, nan_value,
				    NULL, NULL), WEFT_EINVAL);
	assert_int_equal(lp_add_col(lp, 1, 2, 1, false, 0, NULL, NULL, NULL,
				    NULL), WEFT_EINVAL);
	assert_int_equal(lp_add_col(lp, INFINITY, 0, 1, false, 0, NULL, NULL,
				    NULL, NULL), WEFT_EINVAL);
	assert_int_equal(lp_add_row(lp, LP_LE, NAN, NULL, NULL), WEFT_EINVAL);
	assert_int_equal(lp_cols(lp), 0);
	assert_int_equal(lp_rows(lp), 1);
	lp_free(lp);
}

/* A random program that has a solution and is bounded: rows are made around
 * a point inside the bounds, and every cost is bounded by finite bounds or
 * a non-negative cost. */
static struct lp *random_lp(struct rng *rng, int m, int n, bool integer)
{
	struct lp *lp = new_lp();
	double *point = test_calloc((size_t)n, sizeof(*point));
	double *activity = test_calloc((size_t)m, sizeof(*activity));
	double *a = test_calloc((size_t)m * n, sizeof(*a));
	int *rows = test_calloc((size_t)m, sizeof(*rows));

	for (int j = 0; j < n; j++) {
		point[j] = (double)rng_below(rng, 6);
		for (int i = 0; i < m; i++) {
			if (rng_below(rng, 3) == 0) {
				a[j * m + i] = (double)rng_below(rng, 19) - 9;
				activity[i] += a[j * m + i] * point[j];
			}
		}
	}
	for (int i = 0; i < m; i++) {
		enum lp_sense sense = (enum lp_sense)rng_below(rng, 3);
		double room = (double)rng_below(rng, 4);

		rows[i] = row(lp, sense, sense == LP_LE ? activity[i] + room :
			      sense == LP_GE ? activity[i] - room :
			      activity[i]);
	}
	for (int j = 0; j < n; j++) {
		bool capped = integer || rng_below(rng, 2);
		double cost = (double)rng_below(rng, 20) - (capped ? 10 : 0);

		col(lp, cost, capped ? -(double)rng_below(rng, 3) : 0,
		    capped ? 6 : LP_INF, integer, m, rows, a + j * m);
	}
	test_free(point);
	test_free(activity);
	test_free(rows);
	test_free(a);
	return lp;
}

struct copy {
	double cost, lower, upper;
	double a[12];
};

/* Strong duality, checked with nothing but the public values: the dual
 * objective y b + sum_j min(d_j l_j, d_j u_j) equals the primal one, and y
 * has the sign of its row. */
static void strong_duality(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int round = 0; round < 400; round++) {
		enum { M = 12, N = 20 };
		int m = 1 + (int)rng_below(&rng, M), n = 1 + (int)rng_below(&rng, N);
		struct copy cols[N];
		double rhs[M], activity[M] = { 0 }, dual = 0;
		enum lp_sense sense[M];
		struct lp *lp = new_lp();
		struct lp_result res;
		int rows[M];
		bool maximise = rng_below(&rng, 2);
		double sign = maximise ? -1 : 1;

		if (maximise) {
			lp_maximise(lp);
		}
		for (int j = 0; j < n; j++) {
			int kind = (int)rng_below(&rng, 4);

			cols[j] = (struct copy){
				.cost = (double)rng_below(&rng, 20),
				.lower = kind == 1 ? -2 : 0,
				.upper = kind < 2 ? 5 : LP_INF,
			};
			if (kind < 2) {
				cols[j].cost -= 10;
			}
			if (kind == 3) {
				/* mirrored: -inf..0 at non-positive cost */
				cols[j].lower = -LP_INF;
				cols[j].upper = 0;
				cols[j].cost = -cols[j].cost;
			}
			for (int i = 0; i < m; i++) {
				double x = kind == 3 ? -2 : 2;

				cols[j].a[i] = rng_below(&rng, 3) ? 0 :
					(double)rng_below(&rng, 19) - 9;
				activity[i] += cols[j].a[i] * x;
			}
		}
		for (int i = 0; i < m; i++) {
			sense[i] = (enum lp_sense)rng_below(&rng, 3);
			rhs[i] = activity[i] + (sense[i] == LP_LE) * 3 -
				 (sense[i] == LP_GE) * 3;
			rows[i] = row(lp, sense[i], rhs[i]);
		}
		for (int j = 0; j < n; j++) {
			col(lp, sign * cols[j].cost, cols[j].lower,
			    cols[j].upper, false, m, rows, cols[j].a);
		}
		res = run(lp);
		assert_int_equal(res.outcome, LP_OPTIMAL);
		assert_true(violation(lp) < 1e-6);
		for (int i = 0; i < m; i++) {
			double y = sign * lp_dual(lp, i);

			assert_true(sense[i] != LP_LE || y <= 1e-9);
			assert_true(sense[i] != LP_GE || y >= -1e-9);
			dual += y * rhs[i];
		}
		for (int j = 0; j < n; j++) {
			double d = cols[j].cost, x = lp_value(lp, j);

			for (int i = 0; i < m; i++) {
				d -= sign * lp_dual(lp, i) * cols[j].a[i];
			}
			/* The value sits where the reduced cost wants it. */
			if (d > 1e-6) {
				near(x, cols[j].lower);
			} else if (d < -1e-6) {
				near(x, cols[j].upper);
			}
			dual += d * x;
		}
		near(sign * res.objective, dual);
		lp_free(lp);
	}
}

/* Columns that arrive later give the same optimum as all at once. */
static void growth_equals_whole(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int round = 0; round < 60; round++) {
		enum { M = 10, N = 30 };
		struct lp *grown = new_lp(), *whole = new_lp();
		double a[M], total = 0;
		int rows[M];

		for (int i = 0; i < M; i++) {
			total = 1 + (double)rng_below(&rng, 30);
			rows[i] = row(grown, LP_GE, total);
			row(whole, LP_GE, total);
			col(grown, 1000, 0, LP_INF, false, 1, &rows[i],
			    (double[]){ 1 });
			col(whole, 1000, 0, LP_INF, false, 1, &rows[i],
			    (double[]){ 1 });
		}
		for (int j = 0; j < N; j++) {
			double cost = 1 + (double)rng_below(&rng, 50);

			for (int i = 0; i < M; i++) {
				a[i] = (double)rng_below(&rng, 5);
			}
			col(grown, cost, 0, LP_INF, false, M, rows, a);
			col(whole, cost, 0, LP_INF, false, M, rows, a);
			run(grown);
		}
		near(run(grown).objective, run(whole).objective);
		lp_free(grown);
		lp_free(whole);
	}
}

/* Rows may arrive after a run as well; old columns have no entry there. */
static void late_rows(void **state)
{
	struct lp *lp = new_lp();
	int a = row(lp, LP_GE, 4), b;

	(void)state;
	col(lp, 5, 0, LP_INF, false, 1, &a, (double[]){ 1 });
	near(run(lp).objective, 20);
	b = row(lp, LP_LE, 1);
	col(lp, 2, 0, LP_INF, false, 2, (int[]){ a, b }, (double[]){ 1, 1 });
	near(run(lp).objective, 17);
	near(lp_dual(lp, b), -3);
	lp_free(lp);
}

/* max 5a + 4b + 3c; 2a+3b+c <= 5; 4a+b+2c <= 11; 3a+4b+2c <= 8, integers:
 * with a <= 1.5 the relaxation is fractional and the best integers (0,0,4). */
static void small_mip(void **state)
{
	const int r3[] = { 0, 1, 2 };
	struct lp *lp = new_lp();
	struct lp_result res;

	(void)state;
	lp_maximise(lp);
	row(lp, LP_LE, 5);
	row(lp, LP_LE, 11);
	row(lp, LP_LE, 8);
	col(lp, 5, 0, 1.5, true, 3, r3, (double[]){ 2, 4, 3 });
	col(lp, 4, 0, 9, true, 3, r3, (double[]){ 3, 1, 4 });
	col(lp, 3, 0, 9, true, 3, r3, (double[]){ 1, 2, 2 });
	res = run(lp);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	near(res.objective, 12);
	assert_true(res.bound == res.objective);
	assert_true(lp_value(lp, 0) == 0 && lp_value(lp, 2) == 4);
	lp_free(lp);
}

static void integer_infeasible(void **state)
{
	struct lp *lp = new_lp();
	int a = row(lp, LP_EQ, 3);

	(void)state;
	col(lp, 1, 0, 10, true, 1, &a, (double[]){ 2 });
	col(lp, 1, 0, 10, true, 1, &a, (double[]){ 4 });
	assert_int_equal(run(lp).outcome, LP_INFEASIBLE);
	lp_free(lp);
}

/* All integer points of small random programs, compared one by one. */
static void mip_equals_enumeration(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int round = 0; round < 150; round++) {
		enum { M = 3, N = 4, TOP = 4 };
		double a[N][M], cost[N], rhs[M], best = LP_INF;
		const int rows[M] = { 0, 1, 2 };
		struct lp *lp = new_lp();
		struct lp_result res;

		for (int i = 0; i < M; i++) {
			rhs[i] = (double)rng_below(&rng, 40);
			row(lp, i == 0 ? LP_GE : LP_LE, rhs[i]);
		}
		for (int j = 0; j < N; j++) {
			cost[j] = (double)rng_below(&rng, 30) / 2 - 4;
			for (int i = 0; i < M; i++) {
				a[j][i] = (double)rng_below(&rng, 13) - 2;
			}
			col(lp, cost[j], 0, TOP, true, M, rows, a[j]);
		}
		for (int code = 0; code < 625; code++) {
			double act[M] = { 0 }, c = 0;

			for (int j = 0, k = code; j < N; j++, k /= 5) {
				c += cost[j] * (k % 5);
				for (int i = 0; i < M; i++) {
					act[i] += a[j][i] * (k % 5);
				}
			}
			if (act[0] >= rhs[0] && act[1] <= rhs[1] &&
			    act[2] <= rhs[2] && c < best) {
				best = c;
			}
		}
		res = run(lp);
		if (best == LP_INF) {
			assert_int_equal(res.outcome, LP_INFEASIBLE);
		} else {
			assert_int_equal(res.outcome, LP_OPTIMAL);
			near(res.objective, best);
		}
		lp_free(lp);
	}
}

/* Market-split equations: hopeless for branch and bound, so a search always
 * ends by its limit; the bound is that of the relaxation. */
static struct lp *market_split(void)
{
	struct rng rng;
	struct lp *lp = new_lp();
	double a[40][5], sum[5] = { 0 };
	int rows[5];

	rng_seed(&rng, 11);
	for (int j = 0; j < 40; j++) {
		for (int i = 0; i < 5; i++) {
			a[j][i] = (double)rng_below(&rng, 100);
			sum[i] += a[j][i];
		}
	}
	for (int i = 0; i < 5; i++) {
		rows[i] = row(lp, LP_EQ, floor(sum[i] / 2));
		col(lp, 1, 0, LP_INF, false, 1, &rows[i], (double[]){ 1 });
		col(lp, 1, 0, LP_INF, false, 1, &rows[i], (double[]){ -1 });
	}
	for (int j = 0; j < 40; j++) {
		col(lp, 0, 0, 1, true, 5, rows, a[j]);
	}
	return lp;
}

static void time_limit_keeps_bound(void **state)
{
	struct lp *lp = market_split();
	atomic_bool met = false;
	struct lp_options opt = { .deadline = deadline_in(300000000, &met) };
	struct lp_result res;

	(void)state;
	assert_int_equal(lp_run(lp, &opt, &res, NULL), 0);
	assert_true(res.outcome == LP_FEASIBLE || res.outcome == LP_UNKNOWN);
	assert_true(met);
	near(res.bound, 0);
	if (res.outcome == LP_FEASIBLE) {
		assert_true(res.objective > 0);
		assert_true(violation(lp) < 1e-6);
	}
	lp_free(lp);
}

/* Stopped by work, a program ends at the same place each time. */
static void work_limit_is_exact(void **state)
{
	struct lp_options opt = { .max_iterations = 3000 };
	struct lp_result res[2];
	double x[2][40];

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct lp *lp = market_split();

		assert_int_equal(lp_run(lp, &opt, &res[k], NULL), 0);
		assert_true(res[k].outcome == LP_FEASIBLE ||
			    res[k].outcome == LP_UNKNOWN);
		assert_in_range(res[k].iterations, 3000, 6000);
		for (int j = 0; j < 40; j++) {
			x[k][j] = res[k].outcome == LP_FEASIBLE
					  ? lp_value(lp, j) : 0;
		}
		lp_free(lp);
	}
	assert_int_equal(res[0].outcome, res[1].outcome);
	assert_int_equal(res[0].iterations, res[1].iterations);
	assert_memory_equal(x[0], x[1], sizeof(x[0]));
	opt.max_iterations = -1;
	assert_int_equal(lp_run(NULL, &opt, &res[0], NULL), WEFT_EINVAL);
}

static void cancel_stops(void **state)
{
	volatile bool cancel = true;
	struct lp_options opt = { .cancel = &cancel };
	struct lp *lp = market_split();
	struct lp_result res;

	(void)state;
	assert_int_equal(lp_run(lp, &opt, &res, NULL), 0);
	assert_int_equal(res.outcome, LP_UNKNOWN);
	assert_true(res.bound <= 0);
	lp_free(lp);
}

static void gap_is_honest(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21);
	for (int round = 0; round < 40; round++) {
		struct lp_options opt = { .mip_gap = 0.2 };
		struct lp_result loose, exact;
		struct lp *lp = random_lp(&rng, 6, 12, true);

		exact = run(lp);
		assert_int_equal(exact.outcome, LP_OPTIMAL);
		assert_int_equal(lp_run(lp, &opt, &loose, NULL), 0);
		assert_true(loose.outcome == LP_OPTIMAL ||
			    loose.outcome == LP_FEASIBLE);
		assert_true(loose.objective >= exact.objective - 1e-6);
		assert_true(loose.bound <= exact.objective + 1e-6);
		assert_true(loose.outcome != LP_OPTIMAL ||
			    loose.objective <= exact.objective + 1e-6);
		lp_free(lp);
	}
}

static void negative_options_are_refused(void **state)
{
	struct lp *lp = new_lp();
	struct lp_options opt = { .mip_gap = -1 };
	struct lp_result res;

	(void)state;
	assert_int_equal(lp_run(lp, &opt, &res, NULL), WEFT_EINVAL);
	lp_free(lp);
}

static void *solve_many(void *arg)
{
	struct rng rng;
	double *sum = arg;

	rng_seed(&rng, 5);
	for (int i = 0; i < 10; i++) {
		struct lp *lp = random_lp(&rng, 8, 16, i % 2);
		struct lp_result res;

		if (lp_run(lp, NULL, &res, NULL) == 0) {
			*sum += res.objective;
		}
		lp_free(lp);
	}
	return NULL;
}

/* Two threads with a program each get what one alone gets. */
static void programs_are_independent(void **state)
{
	double sums[3] = { 0 };
	pthread_t threads[2];

	(void)state;
	solve_many(&sums[2]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, solve_many,
						&sums[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_true(sums[i] == sums[2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maximum_with_duals),
		cmocka_unit_test(duals_are_derivatives),
		cmocka_unit_test(infeasible),
		cmocka_unit_test(unbounded),
		cmocka_unit_test(unbounded_by_a_lone_column),
		cmocka_unit_test(outcomes_are_right),
		cmocka_unit_test(settled_values_tie),
		cmocka_unit_test(empty_program),
		cmocka_unit_test(free_and_negative_bounds),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(strong_duality),
		cmocka_unit_test(growth_equals_whole),
		cmocka_unit_test(late_rows),
		cmocka_unit_test(small_mip),
		cmocka_unit_test(integer_infeasible),
		cmocka_unit_test(mip_equals_enumeration),
		cmocka_unit_test(time_limit_keeps_bound),
		cmocka_unit_test(work_limit_is_exact),
		cmocka_unit_test(cancel_stops),
		cmocka_unit_test(gap_is_honest),
		cmocka_unit_test(negative_options_are_refused),
		cmocka_unit_test(programs_are_independent),
	};

	return cmocka_run_group_tests_name("lp/lp", tests, NULL, NULL);
}
