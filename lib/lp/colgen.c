/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column generation. Everything here is in the sense of a minimisation: duals
 * change sign on the way to a maximising caller. The duals that are priced lie
 * between the master's and those of the best bound (smoothing); when they find
 * nothing, the master's own are priced before the run ends.
 */
#include "lib/lp/colgen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/lp/private.h"

/* A reduced cost counts when it is below this share of its largest term. */
#define IMPROVES 1e-9
/* Smoothing below this is none. */
#define LEAST_SMOOTHING 0.01

struct colgen_state {
	const struct colgen *cg;
	const struct colgen_options *opt;
	struct colgen_result *res;
	size_t rows;
	double *centre;		/* duals of the best bound */
	double *at;		/* duals that are priced */
	double *given;		/* the same in the caller's sense */
	double value;		/* of the restricted master */
	double bound;
	double smoothing;	/* at present */
};

static bool is_over(struct colgen_state *st)
{
	if (st->opt->cancel && *st->opt->cancel) {
		st->res->stop = COLGEN_CANCELED;
		return true;
	}
	if (deadline_passed(&st->opt->deadline)) {
		st->res->stop = COLGEN_TIME;
		return true;
	}
	return false;
}

static double gap_of(double value, double bound)
{
	if (bound <= -LP_INF || value >= LP_INF) {
		return HUGE_VAL;
	}
	if (value <= bound) {
		return 0;
	}
	return bound != 0 ? (value - bound) / fabs(bound) : HUGE_VAL;
}

/* Solves the restricted master; *over when it was broken off. */
static int solve_master(struct colgen_state *st, bool *over, struct err *err)
{
	struct lp_options opt = { .deadline = st->opt->deadline, .cancel = st->opt->cancel,
				  .relax = true };
	struct lp_result res;
	int rc;

	*over = is_over(st);
	if (*over) {
		return 0;
	}
	rc = lp_run(st->cg->master, &opt, &res, err);
	if (rc) {
		return rc;
	}
	switch (res.outcome) {
	case LP_OPTIMAL:
		st->value = lp_sign(st->cg->master) * res.objective;
		return 0;
	case LP_INFEASIBLE:
		return err_set(err, WEFT_EINFEASIBLE, "column generation: the "
			       "columns to start with allow no solution");
	case LP_UNBOUNDED:
		return err_set(err, WEFT_EINVAL, "column generation: the "
			       "master is unbounded");
	default:
		*over = true;
		if (!is_over(st)) {
			st->res->stop = COLGEN_TIME;
		}
		return 0;
	}
}

/* The duals to price: between the master's and the best bound's. */
static void place(struct colgen_state *st)
{
	const struct lp *lp = st->cg->master;
	double share = st->bound > -LP_INF ? st->smoothing : 0;

	for (size_t i = 0; i < st->rows; i++) {
		double y = lp_legal_dual(lp->rows.v[i].sense, lp->y.v[i]);

		st->at[i] = share * st->centre[i] + (1 - share) * y;
		st->given[i] = lp_sign(lp) * st->at[i];
	}
}

/* What the priced duals prove; keeps them when it is the best. */
static bool improve_bound(struct colgen_state *st, const struct colgen_proof *proof)
{
	const struct lp *lp = st->cg->master;
	double value = lp_dual_bound(lp, st->at, st->rows, st->cg->n_fixed);
	double bound = value - proof->missing;

	if (proof->stretch >= 1 && value > 0) {
		bound = fmax(bound, value / proof->stretch);
	}
	if (!(bound > st->bound)) {
		return false;
	}
	st->bound = bound;
	memcpy(st->centre, st->at, st->rows * sizeof(*st->centre));
	return true;
}

/* Is any column from `first` on worth having by the master's own duals? */
static bool any_improves(const struct lp *lp, int first)
{
	for (int j = first; j < lp_cols(lp); j++) {
		double size, d = lp_reduced_cost(lp, j, lp->y.v, lp->y.n, &size);

		if (d < -IMPROVES * size) {
			return true;
		}
	}
	return false;
}

static int check_columns(const struct lp *lp, int first, size_t rows, struct err *err)
{
	for (int j = first; j < lp_cols(lp); j++) {
		const struct lp_col *c = &lp->cols.v[j];

		if (c->lower != 0 || c->upper < LP_INF) {
			return err_set(err, WEFT_EINVAL, "column generation: "
				       "priced column %d has bounds %g to %g",
				       j, c->lower, c->upper);
		}
	}
	if (lp->rows.n != rows) {
		return err_set(err, WEFT_EINVAL, "column generation: the "
			       "pricing added a row");
	}
	return 0;
}

/* One pricing. *found: the master can get better. */
static int price(struct colgen_state *st, bool *found, struct err *err)
{
	struct colgen_proof proof = { .missing = HUGE_VAL };
	struct lp *lp = st->cg->master;
	int first = lp_cols(lp), rc;
	bool better;

	place(st);
	rc = st->cg->price(st->cg->ctx, st->given, lp, &proof, err);
	if (rc == 0) {
		rc = check_columns(lp, first, st->rows, err);
	}
	if (rc) {
		return rc;
	}
	st->res->rounds++;
	st->res->columns += lp_cols(lp) - first;
	better = improve_bound(st, &proof);
	*found = any_improves(lp, first);
	/* Nothing for the master at these duals: nearer to its own then,
	 * at once if the centre has not moved either. */
	if (!*found) {
		st->smoothing = better ? st->smoothing / 2 : 0;
		if (st->smoothing < LEAST_SMOOTHING) {
			st->smoothing = 0;
		}
	} else {
		st->smoothing = fmax(st->smoothing, st->opt->smoothing);
	}
	return 0;
}

/* Pricings until the master can get better (*found), or there is nothing
 * left to find, or it is over. */
static int price_until(struct colgen_state *st, bool *found, bool *over, struct err *err)
{
	const struct colgen_options *opt = st->opt;
	int most = opt->max_rounds ? opt->max_rounds : COLGEN_MAX_ROUNDS;

	*found = *over = false;
	while (!*found && !*over) {
		bool last = st->smoothing == 0 || st->bound <= -LP_INF;
		int rc;

		if (st->res->rounds >= most) {
			st->res->stop = COLGEN_ROUNDS;
			*over = true;
			return 0;
		}
		rc = price(st, found, err);
		if (rc) {
			return rc;
		}
		if (gap_of(st->value, st->bound) <= opt->gap || (last && !*found)) {
			return 0;
		}
		*over = is_over(st);
	}
	return 0;
}

static int rounds(struct colgen_state *st, struct err *err)
{
	bool found = true, over = false;
	int rc = solve_master(st, &over, err);

	while (rc == 0 && !over) {
		rc = price_until(st, &found, &over, err);
		if (rc || over) {
			break;
		}
		/* The solver's own accuracy is what optimal means. */
		if (!found || gap_of(st->value, st->bound) <= st->opt->gap) {
			bool met = st->value - st->bound <= LP_ACCURACY * (1 + fabs(st->value));

			st->res->stop = met || found ? COLGEN_REACHED
						     : COLGEN_STALLED;
			break;
		}
		rc = solve_master(st, &over, err);
	}
	return rc;
}

static void fill_result(const struct colgen_state *st)
{
	double sign = lp_sign(st->cg->master);
	double bound = fmin(st->bound, st->value);

	st->res->achieved = sign * st->value;
	st->res->bound = sign * bound;
	st->res->gap = gap_of(st->value, bound);
}

static bool is_valid(const struct colgen *cg, const struct colgen_options *opt)
{
	return opt->gap >= 0 && opt->max_rounds >= 0 && opt->smoothing >= 0 &&
	       opt->smoothing < 1 && cg->n_fixed >= 0 &&
	       cg->n_fixed <= lp_cols(cg->master);
}

int colgen_run(const struct colgen *cg, const struct colgen_options *opt,
	       struct colgen_result *res, struct err *err)
{
	struct colgen_state st = {
		.cg = cg, .opt = opt, .res = res,
		.rows = (size_t)lp_rows(cg->master),
		.value = LP_INF, .bound = -LP_INF,
		.smoothing = opt->smoothing,
	};
	int rc;

	memset(res, 0, sizeof(*res));
	if (!is_valid(cg, opt)) {
		return err_set(err, WEFT_EINVAL, "column generation: "
			       "malformed options");
	}
	rc = check_columns(cg->master, cg->n_fixed, st.rows, err);
	if (rc) {
		return rc;
	}
	st.centre = x_new(st.rows + 1, sizeof(*st.centre));
	st.at = x_new(st.rows + 1, sizeof(*st.at));
	st.given = x_new(st.rows + 1, sizeof(*st.given));
	rc = rounds(&st, err);
	if (rc == 0) {
		fill_result(&st);
	}
	free(st.centre);
	free(st.at);
	free(st.given);
	return rc;
}
