/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The light of a class: its kinds of circuits, all splits of a rank's ports over them, and for each
 * the digraphs of the least time.
 *
 * Axes that the same collectives of the class use are one kind, as a digraph of all their ranks is
 * never behind a product. Sends along an axis are a kind of their own, each way, unless each rank
 * sends or receives only one of them. A collective over several kinds runs on their product: of
 * gathers steps add up, and T_B is what the fullest cut needs, times the worst that a kind is above
 * its own bound; an all-to-all takes its data in all orders of the kinds, so that the slowest
 * decides.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"

bool share_serves(const struct workload_share *s, const struct workload_op *op)
{
	if (op->shift || s->shift) {
		return op->axes == s->axes && op->shift && s->shift &&
		       (op->shift == s->shift || s->paired);
	}
	return s->axes & op->axes;
}

/* Shards that a port must take in a gather of the op. Ranks that are alike along some kinds, of n
 * together with D ports a rank for these, are to get the shards of all others, n - 1 for each of
 * them, by these ports. */
static double fullest_cut(const struct workload_planner *pl, const struct workload_op *op,
			  const struct workload_light *l)
{
	size_t n_shares = l->shares.n;
	double most = 0;

	for (uint32_t some = 1; some < UINT32_C(1) << n_shares; some++) {
		int ports = 0, n = 1;

		for (size_t i = 0; i < n_shares; i++) {
			const struct workload_share *s = &l->shares.v[i];

			if ((some >> i & 1) && share_serves(s, op)) {
				ports += s->ports;
				n *= workload_servers(pl->w, s->axes);
			}
		}
		most = ports ? fmax(most, (double)(n - 1) / ports) : most;
	}
	return most;
}

double use_time(const struct workload_planner *pl, const struct workload_op *op,
		const struct workload_light *l)
{
	double excess = 0, slowest = 0, wire = rail_bytes(pl->w, op) * byte_ns(pl->p);
	int steps = 0, hops = 0, ports = 0, n = workload_servers(pl->w, op->axes);

	if (n == 1) {
		return (double)pl->p->alpha_ns * op_steps(pl, op) + rank_bound(pl, op);
	}
	for (size_t i = 0; i < l->shares.n; i++) {
		const struct workload_share *s = &l->shares.v[i];
		int own = workload_servers(pl->w, s->axes);

		if (!share_serves(s, op)) {
			continue;
		}
		ports += s->ports;
		steps += s->steps;
		hops += s->diameter;
		if (s->den > 0) {
			excess = fmax(excess, (double)s->num / (double)s->den * own / (own - 1));
		}
		slowest = fmax(slowest, s->congestion / own);
	}
	if (op->shift) {
		return (double)pl->p->alpha_ns + wire / ports;
	}
	if (op->kind == COLL_ALLTOALL) {
		return (double)pl->p->alpha_ns * hops + wire * slowest;
	}
	return phases_of(op) * ((double)pl->p->alpha_ns * steps +
				wire * excess * fullest_cut(pl, op, l) / n);
}

/* ---- kinds of circuits ---- */

/* Ops of the units, a bit each. */
static uint32_t ops_of(const struct workload *w, uint32_t units)
{
	uint32_t ops = 0;

	for (size_t i = 0; i < w->units.n; i++) {
		ops |= units >> i & 1 ? w->units.v[i].ops : 0;
	}
	return ops;
}

/* Which collectives use an axis that has ranks in several servers. */
static uint32_t users(const struct workload *w, uint32_t ops, size_t axis)
{
	uint32_t found = 0;

	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];

		if ((ops >> i & 1) && !op->shift && (op->axes >> axis & 1)) {
			found |= UINT32_C(1) << i;
		}
	}
	return workload_servers(w, UINT32_C(1) << axis) > 1 ? found : 0;
}

/* Shares without ports yet. */
static void find_kinds(const struct workload *w, uint32_t units, struct workload_light *l)
{
	uint32_t ops = ops_of(w, units), seen = 0;

	for (size_t a = 0; a < w->axes.n; a++) {
		uint32_t by = users(w, ops, a), axes = 0;

		for (size_t b = a; b < w->axes.n; b++) {
			axes |= by && users(w, ops, b) == by ? UINT32_C(1) << b : 0;
		}
		if (axes & ~seen) {
			vec_push(&l->shares, (struct workload_share){ .axes = axes });
		}
		seen |= axes;
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];
		bool served = !op->shift || !(ops >> i & 1);
		bool both = 2 * abs(op->shift) >= workload_ranks(w, op->axes);

		for (size_t k = 0; k < l->shares.n && !served; k++) {
			struct workload_share *s = &l->shares.v[k];
			bool back = both && s->shift == -op->shift;

			served = s->axes == op->axes && (back || s->shift == op->shift);
			s->paired |= served && back;
		}
		if (!served) {
			vec_push(&l->shares, (struct workload_share){ .axes = op->axes,
					     .shift = op->shift });
		}
	}
}

int class_kinds(const struct workload_planner *pl, uint32_t units)
{
	struct workload_light l = { 0 };
	int n;

	find_kinds(pl->w, units, &l);
	n = (int)l.shares.n;
	vec_fini(&l.shares);
	return n;
}

/* ---- splits ---- */

struct split_search {
	struct workload_planner *pl;
	uint32_t units;
	struct workload_light now, best;	/* of best, expr is the digraphs' */
	double best_ns;
	struct err *err;
};

static double units_time(const struct workload_planner *pl, uint32_t units,
			 const struct workload_light *l)
{
	const struct workload *w = pl->w;
	double sum = 0;

	for (size_t u = 0; u < w->units.n; u++) {
		double longest = 0;

		for (size_t i = 0; (units >> u & 1) && i < w->ops.n; i++) {
			if (w->units.v[u].ops >> i & 1) {
				longest = fmax(longest, use_time(pl, &w->ops.v[i], l));
			}
		}
		sum += longest * (double)w->units.v[u].calls;
	}
	return sum;
}

/* Which kinds of figures a share must have. */
static void figures_of(const struct split_search *s, const struct workload_share *share,
		       bool *gathers, bool *pairs)
{
	const struct workload *w = s->pl->w;
	uint32_t ops = ops_of(w, s->units);

	*gathers = *pairs = false;
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];

		if ((ops >> i & 1) && share_serves(share, op)) {
			*pairs |= op->kind == COLL_ALLTOALL;
			*gathers |= op->kind != COLL_ALLTOALL;
		}
	}
}

/* The share's best digraph, while others stay as they are. *changed: it became another one. False:
 * there is none. */
static int choose_digraph(struct split_search *s, struct workload_share *share, bool *changed,
			  bool *found)
{
	struct workload_share keep = *share, best = keep;
	double least = keep.expr ? units_time(s->pl, s->units, &s->now) : INFINITY;
	bool gathers, pairs;
	const struct digraphs *d;
	int rc;

	figures_of(s, share, &gathers, &pairs);
	rc = digraphs_of(s->pl, workload_servers(s->pl->w, keep.axes), keep.ports, gathers, pairs,
			 &d, s->err);
	for (size_t i = 0; !rc && i < d->list.n; i++) {
		double t;

		*share = d->list.v[i];
		share->axes = keep.axes;
		share->ports = keep.ports;
		if ((gathers && share->den == 0) || (pairs && share->congestion <= 0)) {
			continue;
		}
		t = units_time(s->pl, s->units, &s->now);
		if (t < least * (1 - 1e-12)) {
			least = t;
			best = *share;
			*changed = true;
		}
	}
	*share = best;
	*found = best.expr;
	return rc;
}

/* A split is complete: digraphs one after the other, until none is better. */
static int weigh_split(struct split_search *s)
{
	bool changed = true, found = true;
	double t;

	for (size_t i = 0; i < s->now.shares.n; i++) {
		s->now.shares.v[i].expr = NULL;
	}
	while (changed) {
		changed = false;
		for (size_t i = 0; i < s->now.shares.n; i++) {
			struct workload_share *share = &s->now.shares.v[i];
			int rc = share->shift ? 0 : choose_digraph(s, share, &changed, &found);

			if (rc || !found) {
				return rc;
			}
		}
	}
	t = units_time(s->pl, s->units, &s->now);
	if (t < s->best_ns * (1 - 1e-12)) {
		s->best_ns = t;
		s->best.shares.n = 0;
		for (size_t i = 0; i < s->now.shares.n; i++) {
			vec_push(&s->best.shares, s->now.shares.v[i]);
		}
	}
	return 0;
}

/* All splits of `left` ports over the shares from the k-th on. */
static int try_splits(struct split_search *s, size_t k, int left)
{
	int others = (int)(s->now.shares.n - k) - 1, rc = 0;

	if (others < 0) {
		return weigh_split(s);
	}
	for (int ports = others ? 1 : left; ports <= left - others && !rc; ports++) {
		s->now.shares.v[k].ports = ports;
		rc = try_splits(s, k + 1, left - ports);
	}
	return rc;
}

int class_of(struct workload_planner *pl, uint32_t units, const struct class_cost **out,
	     struct err *err)
{
	struct split_search s = { .pl = pl, .units = units, .best_ns = INFINITY, .err = err };
	int rc = 0;

	for (size_t i = 0; i < pl->classes.n; i++) {
		if (pl->classes.v[i].units == units) {
			*out = &pl->classes.v[i];
			return 0;
		}
	}
	find_kinds(pl->w, units, &s.now);
	if ((int)s.now.shares.n <= pl->p->ports) {
		rc = s.now.shares.n ? try_splits(&s, 0, pl->p->ports) : weigh_split(&s);
	}
	for (size_t i = 0; i < s.best.shares.n; i++) {
		struct workload_share *share = &s.best.shares.v[i];

		share->expr = share->expr ? x_dup(share->expr) : NULL;
	}
	s.best.units = units;
	vec_push(&pl->classes, (struct class_cost){ units, s.best_ns,
						    still_bound(pl, units, NULL), s.best });
	*out = &pl->classes.v[pl->classes.n - 1];
	vec_fini(&s.now.shares);
	return rc;
}
