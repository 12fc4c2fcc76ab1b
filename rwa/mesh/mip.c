/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof by a mixed-integer program that a number of channels is not enough,
 * for small instances without conversion: integers x[demand][channel][arc]
 * and y[demand][channel], lightpaths of the demand on the channel. Of a
 * protected demand, all lightpaths together use a link no more often than
 * there are pairs. The loss budget is left out, and in use next to a channel
 * is only counted on that channel; both can only make more possible.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/lp/lp.h"
#include "rwa/mesh/private.h"

#define MAX_COLUMNS 1500
#define MAX_ITERATIONS 50000	/* of the simplex algorithm */

/* The program and where its groups of rows begin; the first rows are the
 * demands'. Within a group rows go by (channel, arc), (demand, link) with
 * as many rows as arcs, and (demand, channel, node). */
struct mip_program {
	const struct rwa_mesh *m;
	struct lp *lp;
	struct u64map shut;
	int channels;
	int first_slot, first_guard, first_link, first_node;	/* rows */
	int32_t *link;
	struct err *err;
};

/* Few enough columns for lp_solve, and nothing converts, as the program has
 * each lightpath on one channel. */
static bool is_small(const struct rwa_mesh *m, int channels)
{
	for (size_t v = 0; v < m->nodes.n; v++) {
		if (m->nodes.v[v].convert) {
			return false;
		}
	}
	return m->demands.n <= MAX_COLUMNS && channels > 0 &&
	       channels <= MAX_COLUMNS && m->arcs.n <= MAX_COLUMNS &&
	       m->demands.n * (size_t)channels * (m->arcs.n + 1) <=
		       MAX_COLUMNS;
}

/* Fibres of an arc on which the channel is not blocked. */
static int open_on(const struct mip_program *p, int32_t arc, int32_t channel)
{
	struct rwa_hop h = { arc, 0, channel };
	int open = 0;

	for (; h.fibre < p->m->arcs.v[arc].fibres; h.fibre++) {
		open += !mesh_is_shut(&p->shut, &h);
	}
	return open;
}

static int lightpaths(const struct rwa_mesh_demand *d)
{
	return d->count * (d->protect ? 2 : 1);
}

/* (channel, arc) with its guards, and (demand, link). */
static int add_special_rows(struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;
	int rc = 0, row;

	p->first_guard = lp_rows(p->lp);
	for (int c = 0; m->guard.between && c < p->channels; c++) {
		for (size_t e = 0; !rc && e < m->arcs.n; e++) {
			rc = lp_add_row(p->lp, LP_LE, m->arcs.v[e].fibres, &row, p->err);
		}
	}
	p->first_link = lp_rows(p->lp);
	for (size_t d = 0; d < m->demands.n; d++) {
		for (size_t e = 0; !rc && e < m->arcs.n; e++) {
			rc = lp_add_row(p->lp, LP_LE, m->demands.v[d].count, &row, p->err);
		}
	}
	return rc;
}

/* Rows: demands, (channel, arc), those above, (demand, channel, node). */
static int add_rows(struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;
	size_t nodes = m->demands.n * (size_t)p->channels * m->nodes.n;
	int rc = 0, row;

	for (size_t d = 0; !rc && d < m->demands.n; d++) {
		rc = lp_add_row(p->lp, LP_EQ, lightpaths(&m->demands.v[d]), &row, p->err);
	}
	p->first_slot = lp_rows(p->lp);
	for (int c = 0; c < p->channels; c++) {
		for (size_t e = 0; !rc && e < m->arcs.n; e++) {
			rc = lp_add_row(p->lp, LP_LE, open_on(p, (int32_t)e, c), &row, p->err);
		}
	}
	if (!rc) {
		rc = add_special_rows(p);
	}
	p->first_node = lp_rows(p->lp);
	for (size_t k = 0; !rc && k < nodes; k++) {
		rc = lp_add_row(p->lp, LP_EQ, 0, &row, p->err);
	}
	return rc;
}

/* Both ends tune to the channel, and it is no guard at the edge. */
static bool may_carry(const struct mip_program *p, int d, int c)
{
	const struct rwa_mesh_demand *dem = &p->m->demands.v[d];

	return c >= p->m->guard.below &&
	       c < p->channels - p->m->guard.above &&
	       mesh_tunes(p->m, dem->src, c) && mesh_tunes(p->m, dem->dst, c);
}

/* x[d][c][e]: takes a slot of the arc, leaves its source, enters its
 * destination. With guards it also counts in every window of `between` + 1
 * channels that holds c, which has no more than one on each fibre. */
static int add_arc_column(struct mip_program *p, int d, int c, int e, int base)
{
	const struct rwa_mesh *m = p->m;
	const struct rwa_mesh_demand *dem = &m->demands.v[d];
	int rows[4 + 2 * RWA_MESH_MAX_GUARD], n = 0, col;
	double values[4 + 2 * RWA_MESH_MAX_GUARD];

	values[n] = 1;
	rows[n++] = p->first_slot + c * (int)m->arcs.n + e;
	values[n] = 1;
	rows[n++] = base + m->arcs.v[e].src;
	values[n] = -1;
	rows[n++] = base + m->arcs.v[e].dst;
	if (dem->protect) {
		values[n] = 1;
		rows[n++] = p->first_link + d * (int)m->arcs.n + p->link[e];
	}
	for (int k = c - m->guard.between; m->guard.between && k <= c; k++) {
		if (k >= 0) {
			values[n] = 1;
			rows[n++] = p->first_guard + k * (int)m->arcs.n + e;
		}
	}
	return lp_add_col(p->lp, 1, 0, lightpaths(dem), true, n, rows, values, &col, p->err);
}

/* The columns of one demand on one channel. */
static int add_columns(struct mip_program *p, int d, int c)
{
	const struct rwa_mesh_demand *dem = &p->m->demands.v[d];
	int base = p->first_node +
		   (d * p->channels + c) * (int)p->m->nodes.n;
	int rows[3] = { d, base + dem->src, base + dem->dst }, col;
	const double ends[3] = { 1, -1, 1 };
	int max = may_carry(p, d, c) ? lightpaths(dem) : 0;
	int rc = lp_add_col(p->lp, 0, 0, max, true, 3, rows, ends, &col, p->err);

	for (int e = 0; !rc && max && e < (int)p->m->arcs.n; e++) {
		rc = add_arc_column(p, d, c, e, base);
	}
	return rc;
}

/* Only infeasibility proves anything; what lp_solve finds or leaves open is
 * not used. */
int mesh_prove_too_few(const struct rwa_mesh *m, int channels,
		       const struct deadline *end, bool *proven, struct err *err)
{
	struct lp_options opt = { .deadline = *end,
				  .max_iterations = MAX_ITERATIONS };
	struct mip_program p = { .m = m, .channels = channels, .err = err };
	struct lp_result res;
	int rc;

	*proven = false;
	if (!is_small(m, channels)) {
		return 0;
	}
	p.link = x_new(m->arcs.n + 1, sizeof(*p.link));
	mesh_links(m, p.link);
	mesh_shut_init(m, &p.shut);
	p.lp = lp_new();
	rc = add_rows(&p);
	for (int d = 0; d < (int)m->demands.n; d++) {
		for (int c = 0; !rc && c < channels; c++) {
			rc = add_columns(&p, d, c);
		}
	}
	if (!rc) {
		rc = lp_run(p.lp, &opt, &res, err);
	}
	*proven = !rc && res.outcome == LP_INFEASIBLE;
	lp_free(p.lp);
	free(p.link);
	u64map_fini(&p.shut);
	return rc;
}
