/*
 * Proof by a mixed-integer program that a number of channels is not enough,
 * for small instances without conversion: integers x[demand][channel][arc]
 * and y[demand][channel], lightpaths of the demand on the channel. The loss
 * budget is left out, which can only make more possible.
 */
#include <stdlib.h>

#include "lib/lp/lp.h"
#include "rwa/mesh_private.h"

#define MAX_COLUMNS 1500

struct program {
	const struct rwa_mesh *m;
	struct lp *lp;
	struct u64map shut;
	int channels;
	int first_slot, first_node;	/* rows */
	struct err *err;
};

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

static int open_on(const struct program *p, int32_t arc, int32_t channel)
{
	struct rwa_hop h = { arc, 0, channel };
	int open = 0;

	for (; h.fibre < p->m->arcs.v[arc].fibres; h.fibre++) {
		open += !mesh_is_shut(&p->shut, &h);
	}
	return open;
}

/* Rows: demands, then (channel, arc), then (demand, channel, node). */
static int add_rows(struct program *p)
{
	const struct rwa_mesh *m = p->m;
	size_t nodes = m->demands.n * (size_t)p->channels * m->nodes.n;
	int rc = 0, row;

	for (size_t d = 0; !rc && d < m->demands.n; d++) {
		rc = lp_add_row(p->lp, LP_EQ, m->demands.v[d].count, &row,
				p->err);
	}
	p->first_slot = lp_rows(p->lp);
	for (int c = 0; c < p->channels; c++) {
		for (size_t e = 0; !rc && e < m->arcs.n; e++) {
			rc = lp_add_row(p->lp, LP_LE,
					open_on(p, (int32_t)e, c), &row,
					p->err);
		}
	}
	p->first_node = lp_rows(p->lp);
	for (size_t k = 0; !rc && k < nodes; k++) {
		rc = lp_add_row(p->lp, LP_EQ, 0, &row, p->err);
	}
	return rc;
}

/* The columns of one demand on one channel. */
static int add_columns(struct program *p, int d, int c)
{
	const struct rwa_mesh_demand *dem = &p->m->demands.v[d];
	int base = p->first_node +
		   (d * p->channels + c) * (int)p->m->nodes.n;
	int rows[3] = { d, base + dem->src, base + dem->dst }, col;
	const double ends[3] = { 1, -1, 1 }, arc[3] = { 1, 1, -1 };
	int rc = lp_add_col(p->lp, 0, 0, dem->count, true, 3, rows, ends, &col,
			    p->err);

	for (int e = 0; !rc && e < (int)p->m->arcs.n; e++) {
		rows[0] = p->first_slot + c * (int)p->m->arcs.n + e;
		rows[1] = base + p->m->arcs.v[e].src;
		rows[2] = base + p->m->arcs.v[e].dst;
		rc = lp_add_col(p->lp, 1, 0, dem->count, true, 3, rows, arc,
				&col, p->err);
	}
	return rc;
}

int mesh_prove_too_few(const struct rwa_mesh *m, int channels,
		       double time_limit_s, bool *proven, struct err *err)
{
	struct lp_options opt = { .time_limit_s = time_limit_s };
	struct program p = { .m = m, .channels = channels, .err = err };
	struct lp_result res;
	int rc;

	*proven = false;
	if (!is_small(m, channels)) {
		return 0;
	}
	rc = mesh_shut_init(m, &p.shut) ? err_nomem(err)
					: lp_new(&p.lp, err);
	rc = rc ? rc : add_rows(&p);
	for (int d = 0; d < (int)m->demands.n; d++) {
		for (int c = 0; !rc && c < channels; c++) {
			rc = add_columns(&p, d, c);
		}
	}
	rc = rc ? rc : lp_run(p.lp, &opt, &res, err);
	*proven = !rc && res.outcome == LP_INFEASIBLE;
	lp_free(p.lp);
	u64map_fini(&p.shut);
	return rc;
}
