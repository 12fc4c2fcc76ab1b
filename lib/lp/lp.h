/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One interface to linear and mixed-integer programs, on lp_solve. Rooms
 * describe rows and columns sparsely; what comes back always carries the
 * objective, a proven bound and whether the two meet.
 */
#ifndef WEFT_LIB_LP_LP_H
#define WEFT_LIB_LP_LP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"

#define LP_INF 1e30

struct lp;

enum lp_sense { LP_LE, LP_GE, LP_EQ };

/* OPTIMAL: objective meets bound (both are reported equal; they agree to a
 * relative 1e-6). FEASIBLE: stopped early, or within mip_gap, with a solution
 * that does not meet the bound. INFEASIBLE and UNBOUNDED are proven by linear
 * programming duality; only that no integers exist between feasible reals is
 * the search's word. Integers are not looked for when the relaxation is
 * unbounded. UNKNOWN: stopped early without a solution (bound is still
 * valid). */
enum lp_outcome { LP_OPTIMAL, LP_FEASIBLE, LP_INFEASIBLE, LP_UNBOUNDED,
		  LP_UNKNOWN };

struct lp_options {
	struct deadline deadline;
	int64_t max_iterations;		/* of the simplex algorithm, 0: no
					 * limit; unlike time it stops every
					 * machine at the same place */
	double mip_gap;			/* relative, 0: exact */
	const volatile bool *cancel;	/* stops the solve when true */
	bool relax;			/* integer columns may be fractions */
};

/* Without a solution the objective is the worst infinity (LP_INF or -LP_INF).
 * The bound is proven by the duals of the relaxation or by a finished search,
 * rounded when every cost is an integer multiple of some step. */
struct lp_result {
	enum lp_outcome outcome;
	double objective;	/* of the best solution */
	double bound;		/* no solution is better than this */
	int64_t iterations;	/* of the simplex algorithm */
};

/* A minimisation problem without rows and columns. */
struct lp *lp_new(void);
void lp_free(struct lp *lp);
void lp_maximise(struct lp *lp);

/* Adds a row without entries; its number (0-based) goes to *row. */
int lp_add_row(struct lp *lp, enum lp_sense sense, double rhs, int *row, struct err *err);
/* Adds a column lower <= x <= upper with `n` entries in existing rows, in any
 * order but no row twice. WEFT_EINVAL for that, for numbers that are not
 * finite (bounds may be +-LP_INF) and for lower > upper. O(n log n). */
int lp_add_col(struct lp *lp, double cost, double lower, double upper, bool integer, int n,
	       const int *rows, const double *values, int *col, struct err *err);
void lp_set_rhs(struct lp *lp, int row, double rhs);

/* Solves; may be called again after adding columns (warm start). WEFT_EINVAL
 * for malformed options, WEFT_EINTERNAL when the solver breaks down or its
 * answer fails the checks (rows and bounds kept, optimum proven by its duals,
 * to a relative 1e-6) whatever settings are tried: an infeasible problem is
 * an outcome and not an error. opt may be NULL. One struct belongs to one
 * thread at a time; different ones are independent. */
int lp_run(struct lp *lp, const struct lp_options *opt, struct lp_result *res, struct err *err);

/* Value of a column, dual of a row (sign: change of the objective per unit
 * of right-hand side); valid after OPTIMAL or FEASIBLE. Duals of a program
 * with integer columns are those of its relaxation. Values of integer columns
 * are exact integers. */
double lp_value(const struct lp *lp, int col);
double lp_dual(const struct lp *lp, int row);

/* A value or dual without its last bits, within 1e-11 of it, relative to it when it is above one:
 * rounding that differs between machines is in those. What chooses between values compares these,
 * so that what is equal in exact numbers is a tie and the same choice is made everywhere. */
double lp_settled(double v);

/* How many were added. O(1). */
int lp_rows(const struct lp *lp);
int lp_cols(const struct lp *lp);

#endif
