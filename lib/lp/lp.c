/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a linear program, and the checks of what a solver answers:
 * columns are kept sparse as they were given, so that rows, bounds and the
 * bound that the duals prove are computed without the solver.
 */
#include "lib/lp/private.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

/* Bits that lp_settled keeps: of a fraction, of larger numbers in all. */
#define SETTLED_BITS 36

struct lp *lp_new(void)
{
	return x_new(1, sizeof(struct lp));
}

void lp_free(struct lp *lp)
{
	if (!lp) {
		return;
	}
	lp_solver_free(lp->solver);
	vec_fini(&lp->rows);
	vec_fini(&lp->cols);
	vec_fini(&lp->entries);
	vec_fini(&lp->x);
	vec_fini(&lp->y);
	free(lp);
}

void lp_maximise(struct lp *lp)
{
	if (!lp->maximise) {
		lp->maximise = true;
		lp_solver_drop(lp);
	}
}

int lp_add_row(struct lp *lp, enum lp_sense sense, double rhs, int *row, struct err *err)
{
	if (!isfinite(rhs) || fabs(rhs) >= LP_INF) {
		return err_set(err, WEFT_EINVAL,
			       "linear program: right-hand side of row %zu "
			       "is not finite", lp->rows.n);
	}
	vec_push(&lp->rows, (struct lp_row){ rhs, sense });
	if (row) {
		*row = (int)lp->rows.n - 1;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	int x = ((const struct lp_entry *)a)->row;
	int y = ((const struct lp_entry *)b)->row;

	return (x > y) - (x < y);
}

/* Appends the entries of a new column, sorted by row, without zeros; how
 * many there are goes to *kept. */
static int add_entries(struct lp *lp, int n, const int *rows,
		       const double *values, int *kept, struct err *err)
{
	size_t first = lp->entries.n;
	struct lp_entry *e;

	vec_reserve(&lp->entries, (size_t)n);
	e = lp->entries.v + first;
	*kept = 0;
	for (int i = 0; i < n; i++) {
		if (rows[i] < 0 || (size_t)rows[i] >= lp->rows.n || !isfinite(values[i])) {
			return err_set(err, WEFT_EINVAL,
				       "linear program: column %zu has entry "
				       "%g in row %d of %zu", lp->cols.n,
				       values[i], rows[i], lp->rows.n);
		}
		if (values[i] != 0) {
			e[(*kept)++] = (struct lp_entry){ rows[i], values[i] };
		}
	}
	if (*kept > 1) {
		qsort(e, (size_t)*kept, sizeof(*e), compare_rows);
	}
	for (int i = 1; i < *kept; i++) {
		if (e[i].row == e[i - 1].row) {
			return err_set(err, WEFT_EINVAL,
				       "linear program: column %zu names row "
				       "%d twice", lp->cols.n, e[i].row);
		}
	}
	return 0;
}

int lp_add_col(struct lp *lp, double cost, double lower, double upper, bool integer, int n,
	       const int *rows, const double *values, int *col, struct err *err)
{
	struct lp_col c = {
		.cost = cost, .lower = fmax(lower, -LP_INF),
		.upper = fmin(upper, LP_INF), .first = lp->entries.n,
		.integer = integer,
	};
	int rc;

	if (!isfinite(cost) || isnan(lower) || isnan(upper) || n < 0 ||
	    lower > upper || lower >= LP_INF || upper <= -LP_INF) {
		return err_set(err, WEFT_EINVAL,
			       "linear program: column %zu has cost %g and "
			       "bounds %g to %g", lp->cols.n, cost, lower,
			       upper);
	}
	rc = add_entries(lp, n, rows, values, &c.n, err);
	if (rc) {
		return rc;
	}
	vec_push(&lp->cols, c);
	lp->entries.n += (size_t)c.n;
	lp->integers += integer;
	if (col) {
		*col = (int)lp->cols.n - 1;
	}
	return 0;
}

void lp_set_rhs(struct lp *lp, int row, double rhs)
{
	lp->rows.v[row].rhs = rhs;
	if (lp->solver) {
		lp_solver_set_rhs(lp->solver, row, rhs);
	}
}

double lp_value(const struct lp *lp, int col)
{
	return (size_t)col < lp->x.n ? lp->x.v[col] : 0;
}

double lp_dual(const struct lp *lp, int row)
{
	return (size_t)row < lp->y.n ? lp_sign(lp) * lp->y.v[row] : 0;
}

double lp_settled(double v)
{
	int exponent = 0;

	frexp(v, &exponent);
	exponent = SETTLED_BITS - (exponent > 0 ? exponent : 0);
	return isfinite(v) ? ldexp(nearbyint(ldexp(v, exponent)), -exponent) : v;
}

int lp_rows(const struct lp *lp)
{
	return (int)lp->rows.n;
}

int lp_cols(const struct lp *lp)
{
	return (int)lp->cols.n;
}

double lp_min_cost(const struct lp *lp)
{
	double sum = 0;

	for (size_t j = 0; j < lp->cols.n; j++) {
		sum += lp->cols.v[j].cost * lp_value(lp, (int)j);
	}
	return lp_sign(lp) * sum;
}

/* By how much a row's activity misses its right-hand side. */
static double row_miss(const struct lp_row *row, double activity)
{
	switch (row->sense) {
	case LP_LE:
		return activity - row->rhs;
	case LP_GE:
		return row->rhs - activity;
	default:
		return fabs(activity - row->rhs);
	}
}

static double bound_miss(const struct lp_col *c, double x)
{
	double below = (c->lower - x) / (1 + fabs(c->lower));
	double above = (x - c->upper) / (1 + fabs(c->upper));

	return fmax(below, above);
}

double lp_relative_violation(const struct lp *lp)
{
	double *activity = x_new(2 * lp->rows.n + 1, sizeof(*activity));
	double *largest = activity + lp->rows.n;
	double worst = 0;

	for (size_t j = 0; j < lp->cols.n; j++) {
		const struct lp_col *c = &lp->cols.v[j];
		double x = lp_value(lp, (int)j);

		worst = isnan(x) ? INFINITY
				 : fmax(worst, bound_miss(c, x));
		for (size_t k = c->first; k < c->first + c->n; k++) {
			const struct lp_entry *e = &lp->entries.v[k];

			activity[e->row] += e->value * x;
			largest[e->row] = fmax(largest[e->row], fabs(e->value * x));
		}
	}
	for (size_t i = 0; i < lp->rows.n; i++) {
		double miss = row_miss(&lp->rows.v[i], activity[i]);

		worst = fmax(worst, miss / (1 + largest[i]));
	}
	free(activity);
	return worst;
}

double lp_fractionality(const struct lp *lp)
{
	double worst = 0;

	for (size_t j = 0; j < lp->cols.n; j++) {
		if (lp->cols.v[j].integer) {
			double x = lp_value(lp, (int)j);

			worst = fmax(worst, fabs(x - round(x)));
		}
	}
	return worst;
}

double lp_legal_dual(enum lp_sense sense, double y)
{
	if (sense == LP_LE) {
		return fmin(y, 0);
	}
	return sense == LP_GE ? fmax(y, 0) : y;
}

double lp_reduced_cost(const struct lp *lp, int j, const double *y, size_t n_y, double *size)
{
	const struct lp_col *c = &lp->cols.v[j];
	double d = lp_sign(lp) * c->cost;

	*size = 1 + fabs(d);
	for (size_t k = c->first; k < c->first + c->n; k++) {
		const struct lp_entry *e = &lp->entries.v[k];
		double term;

		if ((size_t)e->row >= n_y) {
			continue;
		}
		term = e->value * lp_legal_dual(lp->rows.v[e->row].sense, y[e->row]);
		d -= term;
		*size = fmax(*size, fabs(term));
	}
	return d;
}

double lp_dual_bound(const struct lp *lp, const double *y, size_t n_y, int n_cols)
{
	double bound = 0;

	for (size_t i = 0; i < n_y; i++) {
		bound += lp_legal_dual(lp->rows.v[i].sense, y[i]) *
			 lp->rows.v[i].rhs;
	}
	for (int j = 0; j < n_cols; j++) {
		const struct lp_col *c = &lp->cols.v[j];
		double size, d = lp_reduced_cost(lp, j, y, n_y, &size);
		double at = d > 0 ? c->lower : c->upper;

		if (fabs(at) < LP_INF) {
			bound += d * at;
		} else if (fabs(d) > 1e-7 * size) {
			return -LP_INF;
		}
	}
	return bound;
}

double lp_cost_step(const struct lp *lp)
{
	double step = 0;

	for (size_t j = 0; j < lp->cols.n; j++) {
		const struct lp_col *c = &lp->cols.v[j];
		double a = fabs(c->cost), b = step;

		if (a == 0) {
			continue;
		}
		if (!c->integer || a != floor(a) || a > 1e9) {
			return 0;
		}
		while (b != 0) {
			double r = fmod(a, b);

			a = b;
			b = r;
		}
		step = a;
	}
	return step;
}
