/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arcs over three and more switches so that as many circuits stay as can be.
 *
 * Giving one switch after the other its arcs is exact for two; for more it is
 * a good guess, and an integer program over all of them decides:
 *
 *   most  W * sum k[w,s] + sum l[w,s]
 *   s.t.  sum_s x[w,s] = open[w]                  every demand is served
 *         sum_{w from r} x[w,s] <= tx[r,s]        by the ports that hosts have
 *         sum_{w to r} x[w,s] <= rx[r,s]
 *         x = k + l + z, k <= have, l <= lost     what stays, what is restored
 *
 * Where that is too large a program, all that can stay does, and what is left is spread by maximum
 * flows, without costs; or switches exchange arcs (exchange.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "lib/graph/graph.h"
#include "lib/lp/lp.h"

#define MOST_ITERATIONS 10000

enum kind { STAYS, RESTORED, NEW, KINDS };

struct assignment_program {
	const struct plan_assignment *s;
	struct lp *lp;
	int *demand_row, *tx_row, *rx_row;
	int *col;		/* [cells * KINDS], -1: none */
	double weight;		/* of one that stays */
};

/* How many circuits a variable may stand for: no more than there are of its
 * kind, nor than the demand wants. */
static int max_of(const struct assignment_program *p, int cell, int demand, enum kind kind)
{
	int open = p->s->open[demand];
	int most = kind == STAYS ? p->s->have[cell] : kind == RESTORED ? p->s->lost[cell] : open;

	return most < open ? most : open;
}

/* The variables k, l and z of a demand at a site; a kind that has none is left
 * out. */
static int add_cell(struct assignment_program *p, int demand, int site, struct err *err)
{
	const struct plan_assignment *s = p->s;
	const double ones[] = { 1, 1, 1 };
	const double costs[KINDS] = { p->weight, 1, 0 };
	int cell = demand * s->n_sites + site, rc = 0;
	const int rows[] = {
		p->demand_row[demand],
		p->tx_row[s->ends[demand][0] * s->n_sites + site],
		p->rx_row[s->ends[demand][1] * s->n_sites + site],
	};

	for (int k = 0; k < KINDS && rc == 0; k++) {
		int most = max_of(p, cell, demand, (enum kind)k);

		p->col[cell * KINDS + k] = -1;
		if (most > 0) {
			rc = lp_add_col(p->lp, costs[k], 0, most, true, 3, rows,
					ones, &p->col[cell * KINDS + k], err);
		}
	}
	return rc;
}

/* A row for each demand, and two for each rank at each site. */
static int add_rows(struct assignment_program *p, struct err *err)
{
	const struct plan_assignment *s = p->s;
	int rc = 0;

	for (int i = 0; i < s->n_demands && rc == 0; i++) {
		rc = lp_add_row(p->lp, LP_EQ, s->open[i], &p->demand_row[i], err);
	}
	for (int i = 0; i < s->n_ranks * s->n_sites && rc == 0; i++) {
		rc = lp_add_row(p->lp, LP_LE, s->tx[i], &p->tx_row[i], err);
		if (rc == 0) {
			rc = lp_add_row(p->lp, LP_LE, s->rx[i], &p->rx_row[i], err);
		}
	}
	return rc;
}

static int program_init(struct assignment_program *p, const struct plan_assignment *s,
			struct err *err)
{
	size_t cells = (size_t)s->n_demands * s->n_sites;
	size_t sides = (size_t)s->n_ranks * s->n_sites;
	int rc = 0, total = 0;

	p->lp = lp_new();
	p->s = s;
	p->demand_row = x_new((size_t)s->n_demands + 1, sizeof(int));
	p->tx_row = x_new(sides + 1, sizeof(int));
	p->rx_row = x_new(sides + 1, sizeof(int));
	p->col = x_new(cells * KINDS + 1, sizeof(int));
	for (int i = 0; i < s->n_demands; i++) {
		total += s->open[i];
	}
	/* All that are restored count less than one that stays. */
	p->weight = total + 1;
	lp_maximise(p->lp);
	rc = add_rows(p, err);
	for (int w = 0; w < s->n_demands && rc == 0; w++) {
		for (int site = 0; site < s->n_sites && rc == 0; site++) {
			rc = add_cell(p, w, site, err);
		}
	}
	return rc;
}

static void program_fini(struct assignment_program *p)
{
	lp_free(p->lp);
	free(p->demand_row);
	free(p->tx_row);
	free(p->rx_row);
	free(p->col);
}

/* x = k + l + z. Values are integers up to the solver's tolerance. */
static void read_give(const struct assignment_program *p, int *give)
{
	for (int c = 0; c < p->s->n_demands * p->s->n_sites; c++) {
		give[c] = 0;
		for (int k = 0; k < KINDS; k++) {
			int col = p->col[c * KINDS + k];

			give[c] += col < 0 ? 0 : (int)lround(lp_value(p->lp, col));
		}
	}
}

int plan_assignment_exact(const struct plan_assignment *s, bool given, int *give, int *most,
			  struct err *err)
{
	static const struct lp_options opt = {
		.max_iterations = MOST_ITERATIONS };
	struct assignment_program p = { 0 };
	struct lp_result res;
	int rc, bound;

	rc = program_init(&p, s, err);
	if (rc) {
		program_fini(&p);
		return rc;
	}
	if (lp_run(p.lp, &opt, &res, NULL) == 0) {
		bound = res.bound < LP_INF ? (int)(res.bound / p.weight + 1e-9) : *most;
		*most = bound < *most ? bound : *most;
		if ((res.outcome == LP_OPTIMAL || res.outcome == LP_FEASIBLE) &&
		    (!given || res.objective / p.weight >= plan_assignment_kept(s, give) + 1)) {
			read_give(&p, give);
		}
	}
	program_fini(&p);
	return 0;
}

/* ---- many circuits ---- */

/* A spread that is being made, without costs. */
struct direct_spread {
	const struct plan_assignment *s;
	int *give;
	int *left;		/* [n_demands] circuits that no site has yet */
	int *tx, *rx;		/* [n_ranks * n_sites] ports that are left */
	int *out, *in;		/* [n_ranks] of `left` */
};

static void take(struct direct_spread *d, int demand, int site, int n)
{
	const int *ends = d->s->ends[demand], sites = d->s->n_sites;
	int *tx = &d->tx[ends[0] * sites + site], *rx = &d->rx[ends[1] * sites + site];

	n = n < d->left[demand] ? n : d->left[demand];
	n = n < *tx ? n : *tx;
	n = n < *rx ? n : *rx;
	d->give[demand * sites + site] += n;
	d->left[demand] -= n;
	*tx -= n;
	*rx -= n;
	d->out[ends[0]] -= n;
	d->in[ends[1]] -= n;
}

/* Of a rank's circuits those that later sites have no ports for. */
static int min_at(const struct direct_spread *d, int rank, int site, bool tx)
{
	int n = tx ? d->out[rank] : d->in[rank];

	for (int k = site + 1; k < d->s->n_sites; k++) {
		n -= (tx ? d->tx : d->rx)[rank * d->s->n_sites + k];
	}
	return n < 0 ? 0 : n;
}

/* Edges from the source and to the sink of what a rank must have at the site (a negative number:
 * more than it can), and of what it may have beside that. */
static bool add_ranks(const struct direct_spread *d, int site, struct graph_flow *f, bool must)
{
	const int n = d->s->n_ranks, sites = d->s->n_sites;
	bool fits = true;

	for (int side = 0; side < 2; side++) {
		for (int r = 0; r < n; r++) {
			int least = min_at(d, r, site, side == 0);
			int most = (side ? d->rx : d->tx)[r * sites + site];
			int cap = must ? least : most - least;

			fits = fits && least <= most;
			graph_flow_add(f, side ? n + r : 2 * n, side ? 2 * n + 1 : r,
				       cap > 0 ? cap : 0, 0, NULL, NULL);
		}
	}
	return fits;
}

/* A site's circuits by a maximum flow. False: some rank is left with more than later sites take. */
static bool fill_by_flow(struct direct_spread *d, int site)
{
	const int n = d->s->n_ranks;
	struct graph_flow *f = graph_flow_new(2 * n + 2);
	int *edge = x_alloc((size_t)d->s->n_demands + 1, sizeof(*edge));
	bool fits = add_ranks(d, site, f, true);

	for (int w = 0; w < d->s->n_demands; w++) {
		graph_flow_add(f, d->s->ends[w][0], n + d->s->ends[w][1], d->left[w], 0, &edge[w],
			       NULL);
	}
	graph_flow_max(f, 2 * n, 2 * n + 1, INT64_MAX);
	add_ranks(d, site, f, false);
	graph_flow_max(f, 2 * n, 2 * n + 1, INT64_MAX);
	for (int w = 0; w < d->s->n_demands; w++) {
		take(d, w, site, (int)graph_flow_on(f, edge[w]));
	}
	for (int r = 0; r < n && fits; r++) {
		fits = min_at(d, r, site, true) == 0 && min_at(d, r, site, false) == 0;
	}
	graph_flow_free(f);
	free(edge);
	return fits;
}

bool plan_assignment_direct(const struct plan_assignment *s, int *give)
{
	const size_t sides = (size_t)s->n_ranks * s->n_sites + 1;
	struct arrays own = { 0 };
	struct direct_spread d = { .s = s, .give = give };
	bool fits = true;

	arrays_add(&own, d.left, s->n_demands);
	arrays_add(&own, d.tx, sides);
	arrays_add(&own, d.rx, sides);
	arrays_add(&own, d.out, s->n_ranks);
	arrays_add(&own, d.in, s->n_ranks);
	memcpy(d.tx, s->tx, (sides - 1) * sizeof(*d.tx));
	memcpy(d.rx, s->rx, (sides - 1) * sizeof(*d.rx));
	for (int w = 0; w < s->n_demands; w++) {
		d.left[w] = s->open[w];
		d.out[s->ends[w][0]] += s->open[w];
		d.in[s->ends[w][1]] += s->open[w];
	}
	for (int c = 0; c < s->n_demands * s->n_sites; c++) {
		take(&d, c / s->n_sites, c % s->n_sites, s->have[c]);
	}
	for (int c = 0; c < s->n_demands * s->n_sites; c++) {
		take(&d, c / s->n_sites, c % s->n_sites, s->lost[c]);
	}
	for (int site = 0; site < s->n_sites && fits; site++) {
		fits = fill_by_flow(&d, site);
	}
	for (int w = 0; w < s->n_demands && fits; w++) {
		fits = d.left[w] == 0;
	}
	if (!fits) {
		memset(give, 0, (size_t)s->n_demands * s->n_sites * sizeof(*give));
	}
	arrays_fini(&own);
	return fits;
}
