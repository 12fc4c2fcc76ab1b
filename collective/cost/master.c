/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a collective, by column generation.
 *
 * One row for each orbit of arcs or limits: what the columns put on all of them together, against
 * what they carry in time T; one for each root's block: weights add up to one. In the first stage
 * T is least, in the second it is what the first found and the cost is least, over the columns
 * that are there and those that the new prices find. The linear program is solved in numbers near
 * one; what it comes to is made exact afterwards (fractions.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/cost/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/lp/colgen.h"

/* A column is worth having below this share of its block's dual. */
#define IMPROVES 1e-10
/* Rows of a program that needs no steadying. */
#define SMALL 32

void cost_master_init(struct cost_master *m, const struct cost_net *net)
{
	*m = (struct cost_master){ .net = net };
	mpq_inits(m->time, m->time_bound, m->cost, m->cost_bound, NULL);
	m->price = x_new((size_t)net->m + 1, sizeof(*m->price));
	m->row_price = x_new((size_t)net->n_rows + 1, sizeof(*m->row_price));
	m->row_exact = numbers_new((size_t)net->n_rows);
	cost_search_new(net, &m->search);
}

static void free_weights(struct cost_master *m)
{
	for (size_t j = 0; j < m->n_weights; j++) {
		mpq_clear(m->weight[j]);
	}
	free(m->weight);
	m->weight = NULL;
	m->n_weights = 0;
}

void cost_master_fini(struct cost_master *m)
{
	free_weights(m);
	for (size_t j = 0; j < m->columns.n; j++) {
		cost_column_free(m->columns.v[j]);
	}
	vec_fini(&m->columns);
	vec_fini(&m->blocks);
	cost_search_free(m->search);
	mpq_clears(m->time, m->time_bound, m->cost, m->cost_bound, NULL);
	numbers_free(m->row_exact, m->net ? (size_t)m->net->n_rows : 0);
	free(m->price);
	free(m->row_price);
	free(m->value);
	free(m->dual);
}

/* ---- columns ---- */

/* What a column costs in the program: its load by row, in units of capacity and time. */
static double load_of(const struct cost_master *m, const struct cost_column *c, int row)
{
	return (double)m->blocks.v[c->block].times * (double)c->uses[row] /
	       ((double)cost_row_cap(m->net, row) * m->time_unit);
}

static int add_column(struct cost_master *m, struct lp *lp, const struct cost_column *c,
		      struct err *err)
{
	int rows = m->net->n_rows, n = 0, rc;
	int *row = x_alloc((size_t)rows + 1, sizeof(*row));
	double *value = x_alloc((size_t)rows + 1, sizeof(*value));
	double cost = m->second ? (double)m->blocks.v[c->block].times * (double)c->cost /
				  m->cost_unit : 0;

	for (int r = 0; r < rows; r++) {
		if (c->uses[r] > 0) {
			row[n] = r;
			value[n++] = load_of(m, c, r);
		}
	}
	row[n] = rows + c->block;
	value[n++] = 1;
	rc = lp_add_col(lp, cost, 0, LP_INF, false, n, row, value, NULL, err);
	free(row);
	free(value);
	return rc;
}

static void keep_column(struct cost_master *m, struct cost_column *c, int block)
{
	c->block = block;
	vec_push(&m->columns, c);
}

/* Prices of arcs from those of rows, and `cost_price` for a unit of cost, as whole numbers;
 * returns by what they were multiplied. */
static double set_prices(struct cost_master *m, double cost_price)
{
	const struct cost_net *net = m->net;
	double largest = 0, scale;

	for (int pass = 0; pass < 2; pass++) {
		scale = largest > 0 ? (double)cost_max_price(m->search) / largest : 1;
		for (int a = 0; a < net->m; a++) {
			double p = (double)net->cost[a] * cost_price;

			for (int i = net->row_first[a]; i < net->row_first[a + 1]; i++) {
				p += m->row_price[net->row[i]];
			}
			largest = fmax(largest, p);
			m->price[a] = llround(p * scale * (pass == 1));
		}
	}
	cost_set_prices(m->search, m->price);
	return scale;
}

/* The first columns: cheapest where a row's price is one over its capacity. */
static int first_columns(struct cost_master *m, struct err *err)
{
	double most = 0;

	for (int r = 0; r < m->net->n_rows; r++) {
		m->row_price[r] = 1 / (double)m->net->rows[r].cap;
	}
	set_prices(m, 0);
	for (size_t b = 0; b < m->blocks.n; b++) {
		struct cost_column *c = NULL;
		int64_t least;
		int rc = cost_price(m->search, &m->blocks.v[b], &c, &least, err);

		if (rc) {
			return rc;
		}
		keep_column(m, c, (int)b);
	}
	m->time_unit = 1;
	for (int r = 0; r < m->net->n_rows; r++) {
		double load = 0;

		for (size_t j = 0; j < m->columns.n; j++) {
			load += load_of(m, m->columns.v[j], r);
		}
		most = fmax(most, load);
	}
	m->time_unit = most > 0 ? most : 1;
	return 0;
}

static int root_of_tree(const struct cost_net *net, const struct coll_forest_tree *tree)
{
	int r = 0;

	while (r < net->n_roots && net->roots[r] != tree->root) {
		r++;
	}
	return r;
}

void cost_take_forest(struct cost_master *m, const struct coll_forest *f)
{
	m->time_unit = mpq_get_d(m->time);
	for (size_t i = 0; i < f->trees.n; i++) {
		const struct coll_forest_tree *tree = &f->trees.v[i];
		int root = root_of_tree(m->net, tree), block = 0;
		struct cost_column *c;

		while (block < (int)m->blocks.n && m->blocks.v[block].first_root != root) {
			block++;
		}
		if (block == (int)m->blocks.n) {
			continue;
		}
		cost_column_of_tree(m->net, root, tree, &c);
		keep_column(m, c, block);
	}
}

/* ---- the program ---- */

/* Keeps duals whose bound is the best so far: the master's last ones may prove less. */
static void keep_duals(struct cost_master *m, const double *duals, double missing)
{
	int rows = m->net->n_rows;
	double bound = -missing;

	for (int i = 0; i < rows + (int)m->blocks.n; i++) {
		bound += i >= rows ? duals[i]
			 : m->second ? duals[i] * mpq_get_d(m->time) / m->time_unit : 0;
	}
	if (bound > m->bound) {
		m->bound = bound;
		memcpy(m->dual, duals, ((size_t)rows + m->blocks.n) * sizeof(*duals));
	}
}

/* Prices of the duals; the worth of blocks and what no column betters. */
static int price(void *ctx, const double *duals, struct lp *lp, struct colgen_proof *proof,
		 struct err *err)
{
	struct cost_master *m = ctx;
	const struct cost_net *net = m->net;
	double scale;

	for (int r = 0; r < net->n_rows; r++) {
		m->row_price[r] = -duals[r] / ((double)cost_row_cap(net, r) * m->time_unit);
	}
	scale = set_prices(m, m->second ? 1 / m->cost_unit : 0);
	proof->missing = 0;
	for (size_t b = 0; b < m->blocks.n; b++) {
		double worth = duals[net->n_rows + (int)b], value;
		struct cost_column *c = NULL;
		int64_t least;
		int rc = cost_price(m->search, &m->blocks.v[b], &c, &least, err);

		if (rc) {
			return rc;
		}
		value = (double)m->blocks.v[b].times * (double)least / scale;
		proof->missing += fmax(0, worth - value);
		if (value >= worth - IMPROVES * (1 + fabs(worth))) {
			cost_column_free(c);
			continue;
		}
		keep_column(m, c, (int)b);
		if ((rc = add_column(m, lp, c, err))) {
			return rc;
		}
	}
	keep_duals(m, duals, proof->missing);
	return 0;
}

/* Rows, and in the first stage the time as column 0. */
static int make_program(struct cost_master *m, struct lp **out, struct err *err)
{
	int rows = m->net->n_rows, rc = 0;
	double time = m->second ? mpq_get_d(m->time) / m->time_unit : 0;
	int *row = x_alloc((size_t)rows + 1, sizeof(*row));
	double *value = x_alloc((size_t)rows + 1, sizeof(*value));

	*out = lp_new();
	for (int r = 0; r < rows && rc == 0; r++) {
		rc = lp_add_row(*out, LP_LE, time, NULL, err);
		row[r] = r;
		value[r] = -1;
	}
	for (size_t b = 0; b < m->blocks.n && rc == 0; b++) {
		rc = lp_add_row(*out, LP_EQ, 1, NULL, err);
	}
	if (rc == 0 && !m->second) {
		rc = lp_add_col(*out, 1, 0, LP_INF, false, rows, row, value, NULL, err);
	}
	for (size_t j = 0; j < m->columns.n && rc == 0; j++) {
		rc = add_column(m, *out, m->columns.v[j], err);
	}
	free(row);
	free(value);
	return rc;
}

/* Values, for fractions.c. */
static void keep_solution(struct cost_master *m, const struct lp *lp)
{
	int fixed = m->second ? 0 : 1;

	free(m->value);
	m->value = x_new(m->columns.n + 1, sizeof(*m->value));
	free_weights(m);
	m->weight = x_new(m->columns.n + 1, sizeof(*m->weight));
	for (; m->n_weights < m->columns.n; m->n_weights++) {
		mpq_init(m->weight[m->n_weights]);
	}
	for (size_t j = 0; j < m->columns.n; j++) {
		m->value[j] = lp_value(lp, (int)j + fixed);
	}
}

void cost_measure(const struct cost_master *m, mpq_t time, mpq_t cost)
{
	mpq_t load, x;

	mpq_inits(load, x, NULL);
	mpq_set_ui(time, 0, 1);
	for (int r = 0; r < m->net->n_rows; r++) {
		mpq_set_ui(load, 0, 1);
		for (size_t j = 0; j < m->columns.n; j++) {
			const struct cost_column *c = m->columns.v[j];

			if (c->uses[r] && mpq_sgn(m->weight[j])) {
				rat_set(x, m->blocks.v[c->block].times * c->uses[r], 1);
				mpq_mul(x, x, m->weight[j]);
				mpq_add(load, load, x);
			}
		}
		rat_set(x, cost_row_cap(m->net, r), 1);
		mpq_div(load, load, x);
		if (mpq_cmp(load, time) > 0) {
			mpq_set(time, load);
		}
	}
	mpq_set_ui(cost, 0, 1);
	for (size_t j = 0; j < m->columns.n; j++) {
		rat_set(x, m->blocks.v[m->columns.v[j]->block].times * m->columns.v[j]->cost, 1);
		mpq_mul(x, x, m->weight[j]);
		mpq_add(cost, cost, x);
	}
	mpq_clears(load, x, NULL);
}

/* Exact weights and bound of what the program came to. */
static int finish(struct cost_master *m, struct err *err)
{
	mpq_t time;
	bool found;
	int rc;

	mpq_init(time);
	rc = cost_exact_weights(m, &found, err);
	if (rc == 0) {
		cost_measure(m, time, m->cost);
		/* Rounded weights of the second stage may take a little longer. */
		if (!m->second || mpq_cmp(time, m->time) > 0) {
			mpq_set(m->time, time);
		}
		rc = cost_exact_bound(m, err);
	}
	mpq_clear(time);
	return rc;
}

int cost_run_stage(struct cost_master *m, bool second, const struct coll_rate_options *opt,
		   struct err *err)
{
	struct colgen_options how = { .deadline = opt->deadline, .cancel = opt->cancel };
	struct colgen cg = { .n_fixed = second ? 0 : 1, .price = price, .ctx = m };
	struct colgen_result res;
	struct lp *lp = NULL;
	int rc = 0;

	m->second = second;
	m->bound = -HUGE_VAL;
	free(m->dual);
	m->dual = x_new((size_t)m->net->n_rows + m->blocks.n + 1, sizeof(*m->dual));
	how.smoothing = (size_t)m->net->n_rows + m->blocks.n < SMALL ? 0 : COLGEN_SMOOTHING;
	if (!second) {
		rc = first_columns(m, err);
	} else {
		/* Before there are weights: about what all trees cost. */
		m->cost_unit = mpq_get_d(m->cost) > 0 ? mpq_get_d(m->cost)
			       : (double)m->net->n * m->net->n;
	}
	if (rc == 0 && (rc = make_program(m, &lp, err)) == 0) {
		cg.master = lp;
		rc = colgen_run(&cg, &how, &res, err);
	}
	if (rc == 0) {
		m->rounds += res.rounds;
		m->stopped = m->stopped || res.stop == COLGEN_TIME || res.stop == COLGEN_CANCELED;
		keep_solution(m, lp);
	}
	lp_free(lp);
	return rc ? rc : finish(m, err);
}
