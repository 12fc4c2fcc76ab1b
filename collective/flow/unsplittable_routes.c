/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One path of each pair and the loads that they make, the weights that lead
 * the search, and the integer program that chooses among given paths: a binary
 * a path, one path a pair, and for every arc its paths <= U x capacity.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/lp/lp.h"

/* Share of a weight that is chance. */
#define NOISE (1e-4 / 1024)

void single_routes_fini(struct single_routes *r)
{
	graph_queue_fini(&r->queue);
	arrays_fini(&r->arrays);
}

void single_routes_init(struct single_routes *r, const struct flow_net *net, int longest)
{
	size_t n = (size_t)net->n, m = (size_t)net->m + 1;

	r->net = net;
	r->longest = longest;
	arrays_add(&r->arrays, r->arcs, n * n * (size_t)longest);
	arrays_add(&r->arrays, r->len, n * n);
	arrays_add(&r->arrays, r->load, m);
	arrays_add(&r->arrays, r->weight, m);
	arrays_add(&r->arrays, r->dist, n);
	arrays_add(&r->arrays, r->parent, n);
	graph_queue_init(&r->queue, net->n);
}

static double use_of(const struct single_routes *r, int a)
{
	return (double)r->load[a] / (double)r->net->units[a];
}

double single_congestion(const struct single_routes *r)
{
	double most = 0;

	for (int a = 0; a < r->net->m; a++) {
		most = fmax(most, use_of(r, a));
	}
	return most;
}

/* By how much one path more raises the function of the loads, a little of it
 * by chance: so that the search walks where nothing is better. */
static void weigh(struct single_routes *r, int a)
{
	double unit = 1 / (double)r->net->units[a], use = use_of(r, a);

	if (r->flat) {
		r->weight[a] = (double)r->net->n * r->net->n + use;
	} else {
		r->weight[a] = (pow((use + unit) / r->scale, r->power) -
				pow(use / r->scale, r->power)) *
			       (1 + NOISE * (double)rng_below(&r->rng, 1024));
	}
}

void single_weigh_all(struct single_routes *r)
{
	for (int a = 0; a < r->net->m; a++) {
		weigh(r, a);
	}
}

void single_count(struct single_routes *r, size_t pair, int by)
{
	const int32_t *arcs = single_arcs_of(r, pair);

	for (int i = 0; i < r->len[pair]; i++) {
		r->load[arcs[i]] += by;
		weigh(r, arcs[i]);
	}
}

void single_measure(struct single_routes *r, int s)
{
	const struct flow_net *net = r->net;
	int u;

	for (int v = 0; v < net->n; v++) {
		r->dist[v] = HUGE_VAL;
	}
	r->dist[s] = 0;
	r->parent[s] = -1;
	graph_queue_put(&r->queue, s);
	while ((u = graph_queue_take(&r->queue)) >= 0) {
		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			int v = net->dst[a];
			double d = r->dist[u] + r->weight[a];

			/* Rounding alone must not close a cycle. */
			if (d < r->dist[v] * (1 - 1e-12)) {
				r->dist[v] = d;
				r->parent[v] = a;
				graph_queue_put(&r->queue, v);
			}
		}
	}
}

bool single_take(struct single_routes *r, size_t pair, int v)
{
	int32_t *arcs = single_arcs_of(r, pair);
	int n = 0;

	for (int u = v; r->parent[u] >= 0; u = r->net->src[r->parent[u]]) {
		if (++n > r->longest) {
			return false;
		}
	}
	r->len[pair] = 0;
	for (int u = v; r->parent[u] >= 0; u = r->net->src[r->parent[u]]) {
		arcs[r->len[pair]++] = r->parent[u];
	}
	return true;
}

double single_cost(const struct single_routes *r, size_t pair)
{
	double sum = 0;

	for (int i = 0; i < r->len[pair]; i++) {
		sum += r->weight[single_arcs_of(r, pair)[i]];
	}
	return sum;
}

/* ---- the integer program ---- */

/* Rows: an arc each (paths - cap U <= 0), then a pair each (= 1). Columns: U
 * and then the pool. */
static int make_program(const struct flow_net *net, const struct flow_paths *pool, struct lp *lp,
			struct err *err)
{
	int *rows = x_alloc((size_t)net->m + 1, sizeof(*rows));
	double *values = x_alloc((size_t)net->m + 1, sizeof(*values));
	bool unit = true;
	int rc = 0, pair = -1;

	for (int a = 0; a < net->m && rc == 0; a++) {
		rows[a] = a;
		values[a] = -(double)net->units[a];
		unit = unit && net->units[a] == 1;
		rc = lp_add_row(lp, LP_LE, 0, NULL, err);
	}
	if (rc == 0) {
		rc = lp_add_col(lp, 1, 0, LP_INF, unit, net->m, rows, values, NULL, err);
	}
	for (size_t i = 0; i < pool->v.n && rc == 0; i++) {
		const struct flow_path *q = &pool->v.v[i];

		if (q->pair != pair) {
			pair = q->pair;
			rc = lp_add_row(lp, LP_EQ, 1, NULL, err);
		}
		for (int k = 0; k < q->n_arcs; k++) {
			rows[k] = pool->arcs.v[q->first + k];
			values[k] = 1;
		}
		rows[q->n_arcs] = lp_rows(lp) - 1;
		values[q->n_arcs] = 1;
		if (rc == 0) {
			rc = lp_add_col(lp, 0, 0, 1, true, q->n_arcs + 1, rows, values, NULL, err);
		}
	}
	free(rows);
	free(values);
	return rc;
}

/* The path that each pair has the most of. */
static void choose(const struct lp *lp, const struct flow_paths *pool, int64_t *chosen)
{
	int64_t at = -1;

	for (size_t i = 0; i < pool->v.n; i++) {
		if (i == 0 || pool->v.v[i].pair != pool->v.v[i - 1].pair) {
			chosen[++at] = (int64_t)i;
		} else if (lp_value(lp, (int)i + 1) >
			   lp_value(lp, (int)chosen[at] + 1)) {
			chosen[at] = (int64_t)i;
		}
	}
}

int single_integer(const struct flow_net *net, const struct flow_paths *pool,
		   const struct single_options *opt, const struct deadline *end, double *congestion,
		   bool *better, int64_t *chosen, struct err *err)
{
	struct lp_options lopt = {
		.deadline = *end, .mip_gap = opt->tolerance,
		.cancel = opt->cancel,
	};
	struct lp_result res;
	struct lp *lp = NULL;
	int rc;

	lp = lp_new();
	*better = false;
	if ((rc = make_program(net, pool, lp, err)) == 0) {
		rc = lp_run(lp, &lopt, &res, err);
	}
	if (rc == 0 && (res.outcome == LP_OPTIMAL || res.outcome == LP_FEASIBLE) &&
	    res.objective < *congestion * (1 - 1e-9)) {
		*better = true;
		*congestion = res.objective;
		choose(lp, pool, chosen);
	}
	lp_free(lp);
	return rc;
}
