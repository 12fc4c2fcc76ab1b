/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof by a mixed-integer program that a number of channels is not enough,
 * for small instances without conversion: integers y[demand][channel], lightpaths
 * of the demand on the channel, and x[group][channel][arc]. Demands of one source
 * are a group, as a flow out of it comes apart into paths; a protected demand is
 * one of its own, of which all lightpaths together use a link no more often than
 * there are pairs. Ends that hang on one arc stand where it leads. The loss budget
 * is left out, and in use next to a channel is only counted on that channel; both
 * can only make more possible.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/lp/lp.h"
#include "rwa/mesh/private.h"

#define MAX_COLUMNS 10000
#define MAX_ITERATIONS 50000	/* of the simplex algorithm, and times rows */
#define MAX_WORK 50000000

/* Demands whose lightpaths are one flow. */
struct mip_group {
	int32_t src;
	int32_t demand;		/* the protected one, or -1 */
	int32_t first_link;	/* its rows of links, as many as arcs */
	int64_t count;		/* lightpaths */
};

/* The program and where its kinds of rows begin; the first rows are the
 * demands'. Then they go by (channel, arc), those of links, and (group, channel,
 * node). */
struct mip_program {
	const struct rwa_mesh *m;
	struct lp *lp;
	struct u64map shut;
	int channels;
	VEC(struct mip_group) groups;
	struct arrays arrays;	/* owns what follows */
	int32_t *group;		/* of each demand */
	int32_t *at;		/* where each node stands: number of nodes that stay */
	int32_t *link;		/* of each arc */
	int nodes;
	int first_slot, first_guard, first_node;	/* rows */
	struct err *err;
};

static int lightpaths(const struct rwa_mesh_demand *d)
{
	return d->count * (d->protect ? 2 : 1);
}

/* A node of which nothing is known but one arc for any channel, out of it or into it, stands at
 * the arc's other end: its limits are left out. */
static void find_places(struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;
	int32_t *degree = x_new(m->nodes.n + 1, sizeof(*degree));

	for (size_t e = 0; e < m->arcs.n; e++) {
		degree[m->arcs.v[e].src]++;
		degree[m->arcs.v[e].dst]++;
	}
	for (size_t v = 0; v < m->nodes.n; v++) {
		p->at[v] = -1;
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		const struct rwa_mesh_arc *a = &m->arcs.v[e];
		int32_t end = degree[a->src] == 1 ? a->src : a->dst;
		int32_t other = end == a->src ? a->dst : a->src;

		if (a->is_single && degree[end] == 1 && degree[other] > 1) {
			p->at[end] = -2 - other;
		}
	}
	for (size_t v = 0; v < m->nodes.n; v++) {
		p->at[v] = p->at[v] == -1 ? p->nodes++ : p->at[v];
	}
	for (size_t v = 0; v < m->nodes.n; v++) {
		p->at[v] = p->at[v] < 0 ? p->at[-2 - p->at[v]] : p->at[v];
	}
	free(degree);
}

/* Whether an arc leads from a place to another. */
static bool leads_on(const struct mip_program *p, size_t e)
{
	return p->at[p->m->arcs.v[e].src] != p->at[p->m->arcs.v[e].dst];
}

static void find_groups(struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;

	for (size_t d = 0; d < m->demands.n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];
		struct mip_group new = { .src = p->at[x->src],
					 .demand = x->protect ? (int32_t)d : -1 };
		size_t g = 0;

		while (g < p->groups.n && (x->protect || p->groups.v[g].demand >= 0 ||
					   p->groups.v[g].src != new.src)) {
			g++;
		}
		if (g == p->groups.n) {
			vec_push(&p->groups, new);
		}
		p->groups.v[g].count += lightpaths(x);
		p->group[d] = (int32_t)g;
	}
}

/* Few enough columns for lp_solve, and nothing converts, as the program has
 * each lightpath on one channel. */
static bool is_small(const struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;
	size_t arcs = 0;

	for (size_t v = 0; v < m->nodes.n; v++) {
		if (m->nodes.v[v].convert) {
			return false;
		}
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		arcs += leads_on(p, e);
	}
	return p->channels > 0 && p->channels <= MAX_COLUMNS &&
	       (p->groups.n * arcs + m->demands.n) * (size_t)p->channels <= MAX_COLUMNS;
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

/* (channel, arc) with its guards, and (group, link). */
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
	for (size_t g = 0; g < p->groups.n; g++) {
		struct mip_group *x = &p->groups.v[g];

		x->first_link = lp_rows(p->lp);
		for (size_t e = 0; !rc && e < m->arcs.n && x->demand >= 0; e++) {
			rc = lp_add_row(p->lp, LP_LE, (double)x->count / 2, &row, p->err);
		}
	}
	return rc;
}

/* Rows: demands, (channel, arc), those above, (group, channel, node). */
static int add_rows(struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;
	size_t nodes = p->groups.n * (size_t)p->channels * (size_t)p->nodes;
	int rc = 0, row;

	for (size_t d = 0; !rc && d < m->demands.n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];

		rc = lp_add_row(p->lp, LP_EQ, p->at[x->src] == p->at[x->dst] ? 0 : lightpaths(x),
				&row, p->err);
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

/* x[g][c][e]: takes a slot of the arc, leaves its source, enters its
 * destination. With guards it also counts in every window of `between` + 1
 * channels that holds c, which has no more than one on each fibre. */
static int add_arc_column(struct mip_program *p, int g, int c, int e, int base)
{
	const struct rwa_mesh *m = p->m;
	const struct mip_group *group = &p->groups.v[g];
	int rows[4 + 2 * RWA_MESH_MAX_GUARD], n = 0, col;
	double values[4 + 2 * RWA_MESH_MAX_GUARD];

	values[n] = 1;
	rows[n++] = p->first_slot + (m->arcs.v[e].is_single ? 0 : c) * (int)m->arcs.n + e;
	values[n] = 1;
	rows[n++] = base + p->at[m->arcs.v[e].src];
	values[n] = -1;
	rows[n++] = base + p->at[m->arcs.v[e].dst];
	if (group->demand >= 0) {
		values[n] = 1;
		rows[n++] = group->first_link + p->link[e];
	}
	for (int k = c - m->guard.between; m->guard.between && k <= c; k++) {
		if (k >= 0) {
			values[n] = 1;
			rows[n++] = p->first_guard + k * (int)m->arcs.n + e;
		}
	}
	return lp_add_col(p->lp, 1, 0, (double)group->count, true, n, rows, values, &col, p->err);
}

/* What demands have on each channel. These come first, as lp_solve branches in order: when they
 * are whole, channels have little to do with each other. used: (group, channel). */
static int add_demand_columns(struct mip_program *p, bool *used)
{
	int rc = 0, col;

	for (int k = 0; !rc && k < (int)p->m->demands.n * p->channels; k++) {
		int d = k / p->channels, c = k % p->channels;
		const struct rwa_mesh_demand *x = &p->m->demands.v[d];
		int at = p->group[d] * p->channels + c, base = p->first_node + at * p->nodes;
		int rows[3] = { d, base + p->at[x->src], base + p->at[x->dst] };
		const double ends[3] = { 1, -1, 1 };

		if (rows[1] != rows[2] && may_carry(p, d, c)) {
			used[at] = true;
			rc = lp_add_col(p->lp, 0, 0, lightpaths(x), true, 3, rows, ends, &col,
					p->err);
		}
	}
	return rc;
}

/* The flows of groups on channels that they use, over arcs that are open and do not lead back. */
static int add_columns(struct mip_program *p)
{
	const struct rwa_mesh *m = p->m;
	bool *used = x_new(p->groups.n * (size_t)p->channels + 1, sizeof(*used));
	int rc = add_demand_columns(p, used);

	for (int at = 0; at < (int)p->groups.n * p->channels; at++) {
		int g = at / p->channels, c = at % p->channels;

		for (int e = 0; !rc && used[at] && e < (int)m->arcs.n; e++) {
			if (leads_on(p, (size_t)e) && open_on(p, e, c) &&
			    p->at[m->arcs.v[e].dst] != p->groups.v[g].src) {
				rc = add_arc_column(p, g, c, e, p->first_node + at * p->nodes);
			}
		}
	}
	free(used);
	return rc;
}

/* Only infeasibility proves anything; what lp_solve finds or leaves open is
 * not used. */
int mesh_prove_too_few(const struct rwa_mesh *m, int channels,
		       const struct deadline *end, bool *proven, struct err *err)
{
	struct lp_options opt = { .deadline = *end,
				  .max_iterations = MAX_ITERATIONS };
	int64_t most;
	struct mip_program p = { .m = m, .channels = channels, .err = err };
	struct lp_result res;
	int rc;

	*proven = false;
	arrays_add(&p.arrays, p.group, m->demands.n + 1);
	arrays_add(&p.arrays, p.at, m->nodes.n);
	arrays_add(&p.arrays, p.link, m->arcs.n + 1);
	find_places(&p);
	find_groups(&p);
	if (!is_small(&p)) {
		rc = 0;
		goto out;
	}
	mesh_links(m, p.link);
	mesh_shut_init(m, &p.shut);
	p.lp = lp_new();
	rc = add_rows(&p);
	if (!rc) {
		rc = add_columns(&p);
	}
	if (!rc) {
		most = MAX_WORK / (lp_rows(p.lp) + 1);
		opt.max_iterations = most < MAX_ITERATIONS ? most : MAX_ITERATIONS;
		rc = lp_run(p.lp, &opt, &res, err);
	}
	*proven = !rc && res.outcome == LP_INFEASIBLE;
	lp_free(p.lp);
	u64map_fini(&p.shut);
out:
	arrays_fini(&p.arrays);
	vec_fini(&p.groups);
	return rc;
}
