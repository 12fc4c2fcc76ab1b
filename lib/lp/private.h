/* SPDX-License-Identifier: Apache-2.0 */
/* The model that lp.c keeps and solver.c hands to lp_solve. */
#ifndef WEFT_LIB_LP_PRIVATE_H
#define WEFT_LIB_LP_PRIVATE_H

#include "lib/base/vec.h"
#include "lib/lp/lp.h"

struct lp_row {
	double rhs;
	enum lp_sense sense;
};

struct lp_col {
	double cost, lower, upper;
	size_t first;		/* entries first .. first + n - 1 */
	int n;
	bool integer;
};

struct lp_entry {
	int row;
	double value;
};

struct lp {
	VEC(struct lp_row) rows;
	VEC(struct lp_col) cols;
	VEC(struct lp_entry) entries;	/* ascending rows in each column */
	int integers;			/* integer columns */
	bool maximise;

	/* Values and duals of the last run, in the sense of a minimisation;
	 * sized at the start of a run, may be shorter than the model. */
	VEC(double) x;
	VEC(double) y;

	struct lp_solver *solver;	/* solver.c; NULL before the first run */
};

/* Relative accuracy that a solver's answer is held to. */
#define LP_ACCURACY 1e-6

static inline double lp_sign(const struct lp *lp)
{
	return lp->maximise ? -1 : 1;
}

/* Cost of the present values, in the sense of a minimisation. */
double lp_min_cost(const struct lp *lp);

/* Clips a multiplier to the sign that its row allows in a minimisation. */
double lp_legal_dual(enum lp_sense sense, double y);

/* Cost of column j less the worth of its entries by the legal part of row
 * multipliers y, in the sense of a minimisation; rows beyond n_y count zero.
 * *size: its largest term, at least one. */
double lp_reduced_cost(const struct lp *lp, int j, const double *y, size_t n_y, double *size);

/*
 * Lower bound on the minimisation over the first n_cols columns from any row
 * multipliers y (weak duality): y b + sum over columns of the least
 * (reduced cost) x_j within the bounds, after multipliers of the wrong sign
 * were set to zero. -LP_INF when a column makes it useless.
 */
double lp_dual_bound(const struct lp *lp, const double *y, size_t n_y, int n_cols);

/* Largest violation of any row or bound by the present values, each divided
 * by one plus the largest term of its row or bound; infinite for values that
 * are no numbers. O(non-zeros). */
double lp_relative_violation(const struct lp *lp);

/* Distance of the integer columns' values from integers. */
double lp_fractionality(const struct lp *lp);

/* If every solution's cost is a multiple of something: that step, else 0. */
double lp_cost_step(const struct lp *lp);

void lp_solver_free(struct lp_solver *solver);
/* A right-hand side that the solver already has was changed. */
void lp_solver_set_rhs(struct lp_solver *solver, int row, double rhs);
/* The sense of the objective was changed. */
void lp_solver_drop(struct lp *lp);

#endif
