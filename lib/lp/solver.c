/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Solving with lp_solve. It always sees a minimisation, and nothing that it
 * answers is believed before it was checked: an optimal linear program must
 * satisfy its rows and meet the bound that its own duals prove. That there is
 * no solution, or no end of better ones, is shown by the optimum of a derived
 * program. When an answer fails, the program is solved again from scratch
 * with other settings.
 *
 * lp_solve reports no bound for a search that was stopped, so the relaxation
 * of a mixed-integer program is solved first, by itself; its bound is kept,
 * and the search ends as soon as a solution meets it.
 */
#include <lpsolve/lp_lib.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/lp/private.h"

struct lp_solver {
	lprec *prog;
	int rows, cols;			/* how many it has been given */
};

/* One call of lp_run. */
struct solve_run {
	struct lp *lp;
	const struct lp_options *opt;
	int64_t iterations;		/* of the solves that are over */
	bool stopped;			/* by deadline, work or cancel */
	bool derived;			/* its program has an optimum */
};

/* Settings to try in turn; the first continues from the last basis. */
static const struct attempt {
	int scaling, simplex, pricing;
} attempts[] = {
	{ SCALE_GEOMETRIC + SCALE_EQUILIBRATE + SCALE_INTEGERS,
	  SIMPLEX_DUAL_PRIMAL, PRICER_DEVEX + PRICE_ADAPTIVE },
	{ SCALE_GEOMETRIC + SCALE_EQUILIBRATE + SCALE_INTEGERS,
	  SIMPLEX_PRIMAL_PRIMAL, PRICER_DEVEX + PRICE_ADAPTIVE },
	{ SCALE_NONE, SIMPLEX_DUAL_PRIMAL, PRICER_DANTZIG + PRICE_ADAPTIVE },
};

#define N_ATTEMPTS ((int)(sizeof(attempts) / sizeof(attempts[0])))

/* Answers of one attempt besides an enum lp_outcome. */
enum { BROKEN = -1 };

void lp_solver_free(struct lp_solver *solver)
{
	if (solver) {
		if (solver->prog) {
			delete_lp(solver->prog);
		}
		free(solver);
	}
}

void lp_solver_drop(struct lp *lp)
{
	lp_solver_free(lp->solver);
	lp->solver = NULL;
}

void lp_solver_set_rhs(struct lp_solver *solver, int row, double rhs)
{
	if (row < solver->rows) {
		set_rh(solver->prog, row + 1, rhs);
	}
}

/* Of what it is given here, lp_solve refuses only what it has no memory for. */
static void expect(bool done)
{
	if (!done) {
		alloc_end(0);
	}
}

static void send_rows(struct lp *lp)
{
	static const int types[] = {
		[LP_LE] = LE, [LP_GE] = GE, [LP_EQ] = EQ
	};
	struct lp_solver *s = lp->solver;

	for (; s->rows < lp_rows(lp); s->rows++) {
		const struct lp_row *r = &lp->rows.v[s->rows];
		double none = 0;
		int nowhere = 0;

		expect(add_constraintex(s->prog, 0, &none, &nowhere, types[r->sense], r->rhs));
	}
}

static void send_cols(struct lp *lp)
{
	struct lp_solver *s = lp->solver;
	double *values = x_alloc(lp->rows.n + 1, sizeof(*values));
	int *rows = x_alloc(lp->rows.n + 1, sizeof(*rows));

	for (; s->cols < lp_cols(lp); s->cols++) {
		const struct lp_col *c = &lp->cols.v[s->cols];
		const struct lp_entry *e = lp->entries.v + c->first;

		values[0] = lp_sign(lp) * c->cost;
		rows[0] = 0;
		for (int k = 0; k < c->n; k++) {
			values[k + 1] = e[k].value;
			rows[k + 1] = e[k].row + 1;
		}
		expect(add_columnex(s->prog, c->n + 1, values, rows));
		expect(set_bounds(s->prog, s->cols + 1, c->lower, c->upper));
	}
	free(values);
	free(rows);
}

/* Makes lp_solve's program the same as ours. */
static void send_model(struct lp *lp)
{
	struct lp_solver *s = lp->solver;

	if (!s) {
		s = lp->solver = x_new(1, sizeof(*s));
		s->prog = x_have(make_lp(0, 0));
		set_verbose(s->prog, NEUTRAL);
		set_infinite(s->prog, LP_INF);
		set_minim(s->prog);
		set_bb_depthlimit(s->prog, 0);
		set_presolve(s->prog, PRESOLVE_DUALS, 0);
	}
	if (s->rows < lp_rows(lp) || s->cols < lp_cols(lp)) {
		expect(resize_lp(s->prog, lp_rows(lp), lp_cols(lp)));
	}
	send_rows(lp);
	send_cols(lp);
}

/* lp_solve calls this between iterations; its own time limit knows only
 * whole seconds. */
static int __WINAPI wants_stop(lprec *prog, void *handle)
{
	struct solve_run *run = handle;
	int64_t most = run->opt ? run->opt->max_iterations : 0;

	if ((run->opt && run->opt->cancel && *run->opt->cancel) ||
	    (most && run->iterations + get_total_iter(prog) >= most) ||
	    (run->opt && deadline_passed(&run->opt->deadline))) {
		run->stopped = true;
	}
	return run->stopped;
}

/* Solves what is loaded, and counts its iterations. */
static int solve_counted(struct solve_run *run, lprec *prog)
{
	int status = solve(prog);

	expect(status != NOMEMORY);
	run->iterations += get_total_iter(prog);
	return status;
}

static void set_integers(struct lp *lp, bool on)
{
	for (int j = 0; lp->integers && j < lp_cols(lp); j++) {
		if (lp->cols.v[j].integer) {
			set_int(lp->solver->prog, j + 1, on);
		}
	}
}

static void fetch_values(struct lp *lp)
{
	const double *x = NULL;

	if (get_ptr_variables(lp->solver->prog, (double **)&x) && x) {
		for (size_t j = 0; j < lp->cols.n; j++) {
			lp->x.v[j] = x[j];
		}
	}
}

static void fetch_duals(struct lp *lp)
{
	const double *y = NULL;

	if (get_ptr_dual_solution(lp->solver->prog, (double **)&y) && y) {
		for (size_t i = 0; i < lp->rows.n; i++) {
			lp->y.v[i] = y[i + 1];
		}
	}
}

/* Do the values keep the rows, and the duals prove them best? */
static bool is_proven(const struct lp *lp)
{
	double cost = lp_min_cost(lp);
	double bound = lp_dual_bound(lp, lp->y.v, lp->y.n, lp_cols(lp));

	return lp_relative_violation(lp) <= LP_ACCURACY &&
	       fabs(cost - bound) <= LP_ACCURACY * (1 + fabs(cost));
}

/* lp_solve may call optimal what has a column at infinity. */
static bool has_infinite_value(const struct lp *lp)
{
	for (size_t j = 0; j < lp->cols.n; j++) {
		if (fabs(lp->x.v[j]) >= LP_INF / 10) {
			return true;
		}
	}
	return false;
}

static int try_linear(struct solve_run *run, const struct attempt *a)
{
	struct lp *lp = run->lp;
	lprec *prog = lp->solver->prog;

	set_scaling(prog, a->scaling);
	set_simplextype(prog, a->simplex);
	set_pivoting(prog, a->pricing);
	switch (solve_counted(run, prog)) {
	case OPTIMAL:
	case PRESOLVED:
		fetch_values(lp);
		fetch_duals(lp);
		if (has_infinite_value(lp)) {
			return LP_UNBOUNDED;
		}
		return is_proven(lp) ? LP_OPTIMAL : BROKEN;
	case INFEASIBLE:
		return LP_INFEASIBLE;
	case UNBOUNDED:
		return LP_UNBOUNDED;
	default:
		return run->stopped ? LP_UNKNOWN : BROKEN;
	}
}

/* A program without a single entry, which lp_solve does not take: every
 * column goes to its better bound, and the rows read 0 against their
 * right-hand sides. */
static int solve_entryless(struct lp *lp)
{
	bool unbounded = false;

	for (size_t j = 0; j < lp->cols.n; j++) {
		const struct lp_col *c = &lp->cols.v[j];
		double cost = lp_sign(lp) * c->cost;
		double low = c->integer ? ceil(c->lower) : c->lower;
		double high = c->integer ? floor(c->upper) : c->upper;
		double x = cost > 0 ? low : cost < 0 ? high
						     : fmax(low, fmin(0, high));

		unbounded = unbounded || fabs(x) >= LP_INF;
		lp->x.v[j] = x;
	}
	for (size_t i = 0; i < lp->rows.n; i++) {
		lp->y.v[i] = 0;
	}
	if (lp_relative_violation(lp) > LP_ACCURACY) {
		return LP_INFEASIBLE;
	}
	return unbounded ? LP_UNBOUNDED : LP_OPTIMAL;
}

/* Room for values and duals, kept where they exist: old duals still prove a
 * bound after the program has grown. */
static void size_results(struct lp *lp)
{
	vec_reserve(&lp->x, lp->cols.n - lp->x.n);
	vec_reserve(&lp->y, lp->rows.n - lp->y.n);
	while (lp->x.n < lp->cols.n) {
		lp->x.v[lp->x.n++] = 0;
	}
	while (lp->y.n < lp->rows.n) {
		lp->y.v[lp->y.n++] = 0;
	}
}

/* Ways of asking why a program has no optimum. */
enum question {
	IS_SOLVABLE,	/* rows may be missed; the cost is by how much */
	HAS_RAY,	/* the best direction, up to one in each column, in
			 * which solutions stay solutions; its cost */
};

static struct lp_col derive_col(const struct lp *lp, int j, enum question ask)
{
	struct lp_col c = lp->cols.v[j];

	c.integer = false;
	if (ask == IS_SOLVABLE) {
		c.cost = 0;
	} else {
		c.cost *= lp_sign(lp);
		c.lower = c.lower <= -LP_INF ? -1 : 0;
		c.upper = c.upper >= LP_INF ? 1 : 0;
	}
	return c;
}

/* The rows exist and the numbers are finite: no column is refused. */
static void add_misses(struct lp *lp)
{
	const double up = 1, down = -1;

	for (int i = 0; i < lp_rows(lp); i++) {
		if (lp->rows.v[i].sense != LP_GE) {
			lp_add_col(lp, 1, 0, LP_INF, false, 1, &i, &down, NULL, NULL);
		}
		if (lp->rows.v[i].sense != LP_LE) {
			lp_add_col(lp, 1, 0, LP_INF, false, 1, &i, &up, NULL, NULL);
		}
	}
}

static struct lp *derive(const struct lp *lp, enum question ask)
{
	struct lp *d = lp_new();

	for (size_t i = 0; i < lp->rows.n; i++) {
		struct lp_row row = lp->rows.v[i];

		row.rhs = ask == HAS_RAY ? 0 : row.rhs;
		vec_push(&d->rows, row);
	}
	for (size_t k = 0; k < lp->entries.n; k++) {
		vec_push(&d->entries, lp->entries.v[k]);
	}
	for (int j = 0; j < lp_cols(lp); j++) {
		vec_push(&d->cols, derive_col(lp, j, ask));
	}
	if (ask == IS_SOLVABLE) {
		add_misses(d);
	}
	return d;
}

static int solve_linear(struct solve_run *run);

/* The optimal cost of a derived program to *cost. LP_OPTIMAL, or why not. */
static int ask_derived(struct solve_run *run, enum question ask, double *cost)
{
	struct solve_run sub = *run;
	int outcome;

	sub.derived = true;
	sub.lp = derive(run->lp, ask);
	send_model(sub.lp);
	size_results(sub.lp);
	outcome = solve_linear(&sub);
	if (outcome == LP_OPTIMAL) {
		*cost = lp_min_cost(sub.lp);
	}
	run->stopped = sub.stopped;
	run->iterations = sub.iterations;
	lp_free(sub.lp);
	return outcome;
}

/* Below this much missing of rows a program counts as having solutions. */
static double miss_tolerance(const struct lp *lp)
{
	double largest = 0;

	for (size_t i = 0; i < lp->rows.n; i++) {
		largest = fmax(largest, fabs(lp->rows.v[i].rhs));
	}
	return LP_ACCURACY + 1e-9 * largest;
}

/* lp_solve says that there is no optimum: is it because there is no solution,
 * no end of better ones, or neither? */
static int judge_claim(struct solve_run *run)
{
	double cost;
	int outcome;

	if (run->derived) {
		return BROKEN;
	}
	outcome = ask_derived(run, IS_SOLVABLE, &cost);
	if (outcome != LP_OPTIMAL) {
		return outcome;
	}
	if (cost > miss_tolerance(run->lp)) {
		return LP_INFEASIBLE;
	}
	outcome = ask_derived(run, HAS_RAY, &cost);
	if (outcome != LP_OPTIMAL) {
		return outcome;
	}
	return cost < -LP_ACCURACY ? LP_UNBOUNDED : BROKEN;
}

/* Solves without integrality. */
static int solve_linear(struct solve_run *run)
{
	lprec *prog = run->lp->solver->prog;
	int outcome = BROKEN;

	put_abortfunc(prog, wants_stop, run);
	set_integers(run->lp, false);
	for (int i = 0; i < N_ATTEMPTS && outcome == BROKEN; i++) {
		if (i > 0) {
			default_basis(prog);
		}
		outcome = try_linear(run, &attempts[i]);
		if (outcome == LP_INFEASIBLE || outcome == LP_UNBOUNDED) {
			outcome = judge_claim(run);
		}
	}
	return outcome;
}

/* Rounds the integer columns when all of them are nearly integers. */
static bool accept_integers(struct lp *lp)
{
	if (lp_fractionality(lp) > LP_ACCURACY) {
		return false;
	}
	for (size_t j = 0; j < lp->cols.n; j++) {
		if (lp->cols.v[j].integer) {
			lp->x.v[j] = round(lp->x.v[j]);
		}
	}
	return lp_relative_violation(lp) <= LP_ACCURACY;
}

/* A cost that no integer solution beats, given that none beats `bound`. */
static double round_bound(const struct lp *lp, double bound)
{
	double step = lp_cost_step(lp);

	return step > 0 ? step * ceil(bound / step - LP_ACCURACY) : bound;
}

/* One branch and bound. *bound is the relaxation's and is raised to what the
 * search proves. */
static int try_integer(struct solve_run *run, double *bound)
{
	struct lp *lp = run->lp;
	lprec *prog = lp->solver->prog;
	double gap = run->opt ? run->opt->mip_gap : 0, cost;
	double slack = LP_ACCURACY * (1 + fabs(*bound));
	int status;

	set_integers(lp, true);
	set_mip_gap(prog, TRUE, 1e-9);
	set_mip_gap(prog, FALSE, fmax(gap, 1e-9));
	set_break_at_value(prog, *bound + slack + gap * fabs(*bound));
	status = solve_counted(run, prog);
	if (status == INFEASIBLE) {
		return LP_INFEASIBLE;
	}
	fetch_values(lp);
	if (!accept_integers(lp)) {
		return run->stopped ? LP_UNKNOWN : BROKEN;
	}
	cost = lp_min_cost(lp);
	if (cost < *bound - slack) {
		return BROKEN;
	}
	if (status == OPTIMAL && gap == 0) {
		*bound = cost;
	} else if (status == OPTIMAL) {
		/* The search drops what is not better by the gap. */
		*bound = fmax(*bound, round_bound(lp, cost - gap *
							     (1 + fabs(cost))));
	}
	return cost <= *bound + slack ? LP_OPTIMAL : LP_FEASIBLE;
}

/* Branch and bound from the relaxation's basis, and once more from scratch
 * when what came out is wrong. */
static int solve_integer(struct solve_run *run, double *bound)
{
	int outcome = try_integer(run, bound);

	if (outcome == BROKEN) {
		default_basis(run->lp->solver->prog);
		set_scaling(run->lp->solver->prog, SCALE_NONE);
		outcome = try_integer(run, bound);
	}
	return outcome;
}

static int run_checked(struct solve_run *run, double *bound)
{
	struct lp *lp = run->lp;
	bool search = lp->integers && !(run->opt && run->opt->relax);
	int outcome;

	*bound = fmax(lp_dual_bound(lp, NULL, 0, lp_cols(lp)),
		      lp_dual_bound(lp, lp->y.v, lp->y.n, lp_cols(lp)));
	outcome = lp->entries.n ? solve_linear(run) : solve_entryless(lp);
	if (outcome == LP_OPTIMAL) {
		*bound = lp_min_cost(lp);
	}
	if (outcome == LP_OPTIMAL && search) {
		*bound = round_bound(lp, *bound);
		if (!accept_integers(lp)) {
			outcome = solve_integer(run, bound);
		}
	}
	return outcome;
}

static void fill_result(const struct lp *lp, int outcome, double bound, struct lp_result *res)
{
	bool has_values = outcome == LP_OPTIMAL || outcome == LP_FEASIBLE;

	res->outcome = outcome;
	res->objective = has_values ? lp_min_cost(lp) : LP_INF;
	res->bound = outcome == LP_OPTIMAL ? res->objective : bound;
	if (outcome == LP_INFEASIBLE) {
		res->bound = LP_INF;
	} else if (outcome == LP_UNBOUNDED) {
		res->objective = res->bound = -LP_INF;
	}
	res->objective *= lp_sign(lp);
	res->bound *= lp_sign(lp);
}

int lp_run(struct lp *lp, const struct lp_options *opt, struct lp_result *res, struct err *err)
{
	struct solve_run run = { .lp = lp, .opt = opt };
	double bound;
	int outcome;

	if (opt && !(opt->mip_gap >= 0 && opt->max_iterations >= 0)) {
		return err_set(err, WEFT_EINVAL, "linear program: negative limit or gap");
	}
	send_model(lp);
	size_results(lp);
	outcome = run_checked(&run, &bound);
	put_abortfunc(lp->solver->prog, NULL, NULL);
	if (outcome == BROKEN) {
		lp_solver_drop(lp);
		return err_set(err, WEFT_EINTERNAL,
			       "linear program of %d rows and %d columns: the "
			       "solver's answer does not stand up to checking",
			       lp_rows(lp), lp_cols(lp));
	}
	fill_result(lp, outcome, bound, res);
	res->iterations = run.iterations;
	return 0;
}
