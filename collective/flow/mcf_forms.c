/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear programs of the all-to-all flow, row by row as the paper has them:
 * conservation at every node for a commodity (a pair, or a source to all its
 * sinks), and for a class of arcs load <= U x capacity. Column 0 is U. The
 * form of paths starts from one path a pair; its pricing is a shortest path
 * a pair in the duals of the capacities. The flow that comes out is written
 * into the solver's own arrays, so that paths are cut and bounds are proven by
 * the same code as after mcf_run.
 */
#include "collective/flow/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/lp/colgen.h"

const char *mcf_form_name(enum mcf_form form)
{
	static const char *const names[] = {
		[MCF_FORM_FLOW] = "mcf",
		[MCF_FORM_LINK] = "link-mcf", [MCF_FORM_GROUPED] = "grouped",
		[MCF_FORM_PATHS] = "pmcf",
	};

	return names[form];
}

/* Row of class k is k; then those of the form. Column 0 is U. */
static int new_program(const struct mcf *p, struct lp **out, struct err *err)
{
	int n = p->orbits.n_classes, rc = 0;
	int *rows = x_alloc((size_t)n + 1, sizeof(*rows));
	double *values = x_alloc((size_t)n + 1, sizeof(*values));

	*out = lp_new();
	for (int k = 0; k < n && rc == 0; k++) {
		rows[k] = k;
		values[k] = -p->class_cap[k];
		rc = lp_add_row(*out, LP_LE, 0, NULL, err);
	}
	if (rc == 0) {
		rc = lp_add_col(*out, 1, 0, LP_INF, false, n, rows, values, NULL, err);
	}
	free(rows);
	free(values);
	return rc;
}

/* Takes the program's flow and prices as p's own, and certifies them. */
static void adopt(struct mcf *p, const struct lp *lp, struct mcf_result *res)
{
	double sum = 0;

	flow_measure(p);
	for (int k = 0; k < p->orbits.n_classes; k++) {
		p->price[k] = fmax(0, -lp_dual(lp, k));
		sum += p->price[k] * p->class_cap[k];
	}
	for (int k = 0; k < p->orbits.n_classes; k++) {
		p->mult[k] = p->price[k] = sum > 0 ? p->price[k] / sum : 0;
	}
	if (sum > 0) {
		mcf_prove(p, p->price);
	}
	mcf_set_gap(p, res);
}

/* ---- one flow a pair or a source ---- */

/* A commodity goes from source number s to `sink`, or to all when -1. */
static double demand(const struct mcf *p, int s, int sink, int v)
{
	if (v == p->source[s]) {
		return 0;
	}
	return sink < 0 || v == sink ? mcf_demand_of(p, s)[v] : 0;
}

/* Rows and columns of a commodity: an arc's flow in its class, into its head
 * and out of its tail. The source has no row, and nothing comes back. */
static int add_commodity(const struct mcf *p, struct lp *lp, int s, int sink, struct err *err)
{
	const struct flow_net *net = &p->net;
	int source = p->source[s], first = lp_rows(lp), rc = 0;

	for (int v = 0; v < net->n && rc == 0; v++) {
		if (v != source) {
			rc = lp_add_row(lp, LP_EQ, demand(p, s, sink, v), NULL, err);
		}
	}
	for (int a = 0; a < net->m && rc == 0; a++) {
		int u = net->src[a], v = net->dst[a];
		int rows[] = { p->orbits.arc_class[a], first + v - (v > source),
			       first + u - (u > source) };
		double values[] = { p->weight[s], 1, -1 };
		bool back = v == source;

		rc = lp_add_col(lp, 0, 0, back ? 0 : LP_INF, false,
				back ? 1 : u == source ? 2 : 3, rows, values,
				NULL, err);
	}
	return rc;
}

/* Sinks that source number s has commodities for: node numbers, or -1. */
static int next_sink(const struct mcf *p, enum mcf_form form, int s, int sink)
{
	if (form == MCF_FORM_GROUPED) {
		return p->net.n;
	}
	for (sink++; sink < p->net.n; sink++) {
		if (demand(p, s, sink, sink) > 0) {
			break;
		}
	}
	return sink;
}

static int first_sink(const struct mcf *p, enum mcf_form form, int s)
{
	return form == MCF_FORM_GROUPED ? -1 : next_sink(p, form, s, -1);
}

static int add_commodities(const struct mcf *p, struct lp *lp, enum mcf_form form, struct err *err)
{
	int rc = 0;

	for (int s = 0; s < p->n_sources && rc == 0; s++) {
		for (int sink = first_sink(p, form, s);
		     sink < p->net.n && rc == 0;
		     sink = next_sink(p, form, s, sink)) {
			rc = add_commodity(p, lp, s, sink, err);
		}
	}
	return rc;
}

static void read_commodities(struct mcf *p, const struct lp *lp, enum mcf_form form)
{
	int col = 1;

	for (int s = 0; s < p->n_sources; s++) {
		double *flow = mcf_flow_of(p, s);

		memset(flow, 0, (size_t)p->net.m * sizeof(*flow));
		for (int sink = first_sink(p, form, s); sink < p->net.n;
		     sink = next_sink(p, form, s, sink)) {
			for (int a = 0; a < p->net.m; a++) {
				flow[a] += fmax(0, lp_value(lp, col++));
			}
		}
	}
}

static int check_size(const struct mcf *p, enum mcf_form form, struct err *err)
{
	double cols = (double)p->n_sources * p->net.m;

	if (form == MCF_FORM_LINK) {
		cols *= p->net.terminals - 1;
	}
	return cols <= MCF_FORM_MAX_COLS
		       ? 0
		       : err_set(err, WEFT_ELIMIT, "%s has %.0f columns here, "
				 "more than the %d that are solved: use mcf",
				 mcf_form_name(form), cols,
				 MCF_FORM_MAX_COLS);
}

static int solve_whole(struct mcf *p, enum mcf_form form, const struct mcf_options *opt,
		       struct mcf_result *res, struct err *err)
{
	struct lp_options lopt = {
		.deadline = opt->deadline, .cancel = opt->cancel,
	};
	struct lp_result lres;
	struct lp *lp = NULL;
	int rc = check_size(p, form, err);

	if (rc == 0 && (rc = new_program(p, &lp, err)) == 0 && (rc = add_commodities(p, lp, form,
										     err)) == 0) {
		rc = lp_run(lp, &lopt, &lres, err);
	}
	if (rc == 0 && lres.outcome == LP_OPTIMAL) {
		read_commodities(p, lp, form);
		adopt(p, lp, res);
		res->stop = MCF_REACHED;
	} else if (rc == 0) {
		res->stop = opt->cancel && *opt->cancel ? MCF_CANCELED
							: MCF_TIME;
	}
	lp_free(lp);
	return rc;
}

/* ---- paths by pricing ---- */

struct path_column {
	int32_t source, sink;
	int64_t first;		/* in arcs */
	int32_t n;
};

struct pricing {
	struct mcf *p;
	VEC(struct path_column) columns;	/* of the master, from its second on */
	VEC(int32_t) arcs;
	int32_t *pair_row;	/* n_sources x n, -1 */
	double *count;		/* a class: arcs of a path, zero between */
	int *rows;
	double *values;
	struct arrays arrays;	/* all of these */
};

static void pricing_fini(struct pricing *pr)
{
	vec_fini(&pr->columns);
	vec_fini(&pr->arcs);
	arrays_fini(&pr->arrays);
}

/* The path to `sink` in the tree of source number s as a column. */
static int add_path(struct pricing *pr, struct lp *lp, int s, int sink, struct err *err)
{
	const struct mcf *p = pr->p;
	const int32_t *parent = mcf_parent_of(p, s);
	struct path_column c = { s, sink, (int64_t)pr->arcs.n, 0 };
	int n = 0;

	for (int v = sink; parent[v] >= 0; v = p->net.src[parent[v]]) {
		int k = p->orbits.arc_class[parent[v]];

		vec_push(&pr->arcs, parent[v]);
		c.n++;
		if (pr->count[k] == 0) {
			pr->rows[n++] = k;
		}
		pr->count[k] += p->weight[s];
	}
	for (int i = 0; i < n; i++) {
		pr->values[i] = pr->count[pr->rows[i]];
		pr->count[pr->rows[i]] = 0;
	}
	pr->rows[n] = pr->pair_row[(size_t)s * p->net.n + sink];
	pr->values[n++] = 1;
	vec_push(&pr->columns, c);
	return lp_add_col(lp, 0, 0, LP_INF, false, n, pr->rows, pr->values, NULL, err);
}

/* A row a pair, and its path with the fewest hops to start with. */
static int add_pairs(struct pricing *pr, struct lp *lp, struct err *err)
{
	const struct mcf *p = pr->p;
	int rc = 0;

	for (int s = 0; s < p->n_sources; s++) {
		for (int v = 0; v < p->net.n && rc == 0; v++) {
			int row = -1;

			if (demand(p, s, v, v) > 0) {
				rc = lp_add_row(lp, LP_GE, demand(p, s, v, v), &row, err);
			}
			pr->pair_row[(size_t)s * p->net.n + v] = row;
			if (rc == 0 && row >= 0) {
				rc = add_path(pr, lp, s, v, err);
			}
		}
	}
	return rc;
}

/* Cheapest paths in the duals of the classes against those of the pairs. */
static int price_paths(void *ctx, const double *duals, struct lp *master,
		       struct colgen_proof *proof, struct err *err)
{
	struct pricing *pr = ctx;
	struct mcf *p = pr->p;
	int rc = 0;

	proof->missing = 0;
	for (int a = 0; a < p->net.m; a++) {
		p->arc_price[a] = fmax(0, -duals[p->orbits.arc_class[a]]);
	}
	for (int s = 0; s < p->n_sources && rc == 0; s++) {
		flow_tree_update(p, s);
		for (int v = 0; v < p->net.n && rc == 0; v++) {
			int row = pr->pair_row[(size_t)s * p->net.n + v];
			double gain = row < 0 ? 0 : duals[row] -
					p->weight[s] * p->dist[v];

			if (gain > 0) {
				proof->missing += gain * mcf_demand_of(p, s)[v];
			}
			if (gain > 1e-9 * (1 + fabs(row < 0 ? 0 : duals[row]))) {
				rc = add_path(pr, master, s, v, err);
			}
		}
	}
	return rc;
}

/* Flows from the columns' values, each pair's scaled to its demand. */
static void read_paths(struct pricing *pr, const struct lp *lp)
{
	struct mcf *p = pr->p;
	size_t pairs = (size_t)p->n_sources * p->net.n;
	double *sum = x_new(pairs + 1, sizeof(*sum));

	for (size_t i = 0; i < pr->columns.n; i++) {
		const struct path_column *c = &pr->columns.v[i];

		sum[(size_t)c->source * p->net.n + c->sink] += fmax(0, lp_value(lp, (int)i + 1));
	}
	memset(p->flow, 0, (size_t)p->n_sources * p->net.m * sizeof(*p->flow));
	for (size_t i = 0; i < pr->columns.n; i++) {
		const struct path_column *c = &pr->columns.v[i];
		double x = fmax(0, lp_value(lp, (int)i + 1)) *
			   mcf_demand_of(p, c->source)[c->sink] /
			   sum[(size_t)c->source * p->net.n + c->sink];

		for (int64_t k = c->first; k < c->first + c->n; k++) {
			mcf_flow_of(p, c->source)[pr->arcs.v[k]] += x;
		}
	}
	free(sum);
}

static void pricing_init(struct pricing *pr, struct mcf *p)
{
	size_t k = (size_t)p->orbits.n_classes + 2;

	*pr = (struct pricing){ .p = p };
	arrays_add(&pr->arrays, pr->pair_row, p->n_sources * p->net.n);
	arrays_add(&pr->arrays, pr->count, k);
	arrays_add(&pr->arrays, pr->rows, k);
	arrays_add(&pr->arrays, pr->values, k);
}

static int solve_paths(struct mcf *p, const struct mcf_options *opt,
		       struct mcf_result *res, struct err *err)
{
	static const enum mcf_stop stops[] = {
		[COLGEN_REACHED] = MCF_REACHED, [COLGEN_STALLED] = MCF_PASSES,
		[COLGEN_TIME] = MCF_TIME, [COLGEN_CANCELED] = MCF_CANCELED,
		[COLGEN_ROUNDS] = MCF_PASSES,
	};
	struct colgen_options copt = {
		.gap = opt->gap, .deadline = opt->deadline,
		.cancel = opt->cancel, .max_rounds = opt->max_passes,
		.smoothing = COLGEN_SMOOTHING,
	};
	struct colgen_result cres = { .stop = COLGEN_ROUNDS };
	struct pricing pr;
	struct colgen cg = { .n_fixed = 1, .price = price_paths, .ctx = &pr };
	int rc = 0;

	pricing_init(&pr, p);
	if ((rc = new_program(p, &cg.master, err)) == 0 &&
	    (rc = add_pairs(&pr, cg.master, err)) == 0) {
		rc = colgen_run(&cg, &copt, &cres, err);
	}
	if (rc == 0 && cres.achieved < LP_INF) {
		read_paths(&pr, cg.master);
		adopt(p, cg.master, res);
		if (cres.bound > res->bound) {
			res->bound = cres.bound;
			res->gap = fmax(0, res->congestion / res->bound - 1);
		}
	}
	res->passes = cres.rounds;
	res->stop = stops[cres.stop];
	lp_free(cg.master);
	pricing_fini(&pr);
	return rc;
}

int mcf_solve_form(struct mcf *p, enum mcf_form form, const struct mcf_options *opt,
		   struct mcf_result *res, struct err *err)
{
	struct mcf_options none = *opt;
	int rc;

	if (form == MCF_FORM_FLOW) {
		return mcf_run(p, opt, res, err);
	}
	/* Equal prices and hop trees: something to return in any case. */
	none.gap = HUGE_VAL;
	rc = mcf_run(p, &none, res, err);
	if (rc) {
		return rc;
	}
	return form == MCF_FORM_PATHS
		       ? solve_paths(p, opt, res, err)
		       : solve_whole(p, form, opt, res, err);
}
