/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column generation: a linear program whose columns are too many to list and
 * are found when they are needed, by a pricing of the caller's. The driver
 * solves the restricted master, steadies its duals, asks for columns, and
 * keeps a bound on the full program that holds whenever it is stopped
 * (Dantzig and Wolfe 1960; bounds after Lasdon and after Farley 1990;
 * smoothing after Wentges 1997).
 */
#ifndef WEFT_LIB_LP_COLGEN_H
#define WEFT_LIB_LP_COLGEN_H

#include "lib/lp/lp.h"

/* What a pricing proves about all columns of its family, those that the
 * master has already included. */
struct colgen_proof {
	/* No solution betters the value of the duals by more than this:
	 * sum over the family's blocks of how many of its columns a solution
	 * can hold together (1 under a convexity row) times the best reduced
	 * cost, as a number >= 0. HUGE_VAL: not known. */
	double missing;
	/* Farley's: no column has (duals * entries) above this multiple,
	 * >= 1, of its cost; only for a minimisation with costs >= 0. 0: not
	 * known. */
	double stretch;
};

struct colgen {
	/* Of the caller, with columns that make it feasible. */
	struct lp *master;
	/* Columns 0 .. n_fixed-1 are the master's own; all others, there at
	 * the start or not, belong to the priced family: lower bound 0 and
	 * upper bound LP_INF. */
	int n_fixed;
	/* Adds columns that improve on these duals (a number a row, sign as
	 * lp_dual, wrong signs already set to zero) to the master, and fills
	 * proof (given with both unknown). To find none is no error; one
	 * column a block is a good number. May not add rows. */
	int (*price)(void *ctx, const double *duals, struct lp *master,
		     struct colgen_proof *proof, struct err *err);
	void *ctx;
};

struct colgen_options {
	double gap;		/* stop at this relative gap; 0: optimum */
	struct deadline deadline;
	const volatile bool *cancel;	/* NULL, or stop when true */
	int max_rounds;		/* of pricing; 0: COLGEN_MAX_ROUNDS */
	double smoothing;	/* 0 <= share of the best bound's duals < 1 */
};

#define COLGEN_MAX_ROUNDS 100000
/* Steadies most masters; small ones are better off with 0. */
#define COLGEN_SMOOTHING 0.5

enum colgen_stop {
	COLGEN_REACHED,		/* the gap asked for, or the optimum */
	COLGEN_STALLED,		/* no column found, yet the gap is not closed:
				 * the pricing is not exact */
	COLGEN_TIME, COLGEN_CANCELED, COLGEN_ROUNDS,
};

struct colgen_result {
	enum colgen_stop stop;
	double achieved;	/* by the values that the master has now */
	double bound;		/* no solution of the full program is better */
	double gap;		/* |achieved - bound| / |bound|; HUGE_VAL when
				 * nothing is known */
	int rounds;		/* pricings */
	int columns;		/* added */
};

/*
 * Runs to the gap, or until an option says stop, which is no error: lp_value
 * and lp_dual of the master then give the last solution. Integer columns are
 * relaxed; lp_run on the master afterwards finds integers among the columns
 * that were generated. Going on later is calling it again.
 * WEFT_EINFEASIBLE when the master has no solution at the start, WEFT_EINVAL
 * for malformed options or an unbounded master, what the pricing returned,
 * WEFT_EINTERNAL when the solver breaks down. Deterministic but for where a
 * time limit cuts.
 */
int colgen_run(const struct colgen *cg, const struct colgen_options *opt,
	       struct colgen_result *res, struct err *err);

#endif
