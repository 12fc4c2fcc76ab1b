/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no step, and no call, takes less than: workload.h has the theorem.
 *
 * The bound of still light is as good as its certificate y. The best y follows from the best x, the
 * mean number of ports by kind of circuits, where each kind gains alike by a little more of it; any
 * y that adds up to at most 1 on every kind proves a bound, so rounding only makes it weaker.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"

/* Of the best y, which converges fast; any y proves. */
#define ROUNDS 2000
/* y is written down in units of this. */
#define Y_UNIT 1e9

/* Bytes that a rank sends at least per byte of the vector, by its ports: on d ports, of it and of
 * those of its group in its server, neighbours are d, theirs d more each. */
static double volume(const struct workload_planner *pl, const struct workload_op *op)
{
	int n = workload_servers(pl->w, op->axes), inside = ranks_inside(pl->w, op->axes);
	int d = pl->p->ports * inside;

	if (op->shift) {
		return (double)(n - abs(op->shift)) / n;
	}
	if (n < 2) {
		return 0;
	}
	if (op->kind == COLL_ALLTOALL) {
		return (pl->p->both ? mcf_edge_bound(n, d) : mcf_degree_bound(n, d)) * d / n;
	}
	return phases_of(op) * (double)(n - 1) / n / inside;
}

int op_steps(const struct workload_planner *pl, const struct workload_op *op)
{
	int n = op->shift ? 2 : workload_servers(pl->w, op->axes), steps;

	steps = coll_moore_steps(n, pl->p->ports * ranks_inside(pl->w, op->axes), pl->p->both);
	return steps ? steps : workload_ranks(pl->w, op->axes) > 1;
}

double call_bound(const struct workload_planner *pl, const struct workload_op *op)
{
	double v = op->shift ? 1 : volume(pl, op);

	return (double)pl->p->alpha_ns * op_steps(pl, op) +
	       fmax(rank_bound(pl, op), v * (double)op->bytes * byte_ns(pl->p) / pl->p->ports);
}

/* ---- still light ---- */

/* sum of weight[o] / D_o is to be least, where circuits are of so many kinds that each serve some
 * ops. */
struct terms {
	const struct workload *w;
	int n_kinds;
	uint32_t serves[WORKLOAD_MAX_AXES + WORKLOAD_MAX_OPS];
	double weight[WORKLOAD_MAX_OPS];	/* c_o w_o */
	double ports[WORKLOAD_MAX_OPS];		/* D_o */
	double steps[WORKLOAD_MAX_OPS];		/* c_o times the steps' alpha */
	double ranks[WORKLOAD_MAX_OPS];		/* c_o times rank_bound */
};

/* Circuits along an axis serve its collectives, and those of a shift the sends of that. */
static void find_circuits(struct terms *t)
{
	for (size_t a = 0; a < t->w->axes.n; a++) {
		uint32_t collectives = 0;
		int from = t->n_kinds;

		if (t->w->axes.v[a].size == t->w->axes.v[a].inside) {
			continue;
		}
		for (size_t i = 0; i < t->w->ops.n; i++) {
			const struct workload_op *op = &t->w->ops.v[i];

			collectives |= !op->shift && op->axes >> a & 1 ? UINT32_C(1) << i : 0;
		}
		for (size_t i = 0; i < t->w->ops.n; i++) {
			const struct workload_op *op = &t->w->ops.v[i];
			uint32_t alike = 0;

			for (size_t k = 0; k < t->w->ops.n; k++) {
				alike |= op->shift && t->w->ops.v[k].shift == op->shift &&
					 t->w->ops.v[k].axes == op->axes ? UINT32_C(1) << k : 0;
			}
			if ((op->axes >> a & 1) && alike && !(alike & ((UINT32_C(1) << i) - 1))) {
				t->serves[t->n_kinds++] = collectives | alike;
			}
		}
		if (t->n_kinds == from && collectives) {
			t->serves[t->n_kinds++] = collectives;
		}
	}
}

/* What more of a kind of circuits would gain. */
static double gain(const struct terms *t, int kind)
{
	double sum = 0;

	for (size_t i = 0; i < t->w->ops.n; i++) {
		if ((t->serves[kind] >> i & 1) && t->weight[i] > 0) {
			sum += t->weight[i] / (t->ports[i] * t->ports[i]);
		}
	}
	return sum;
}

/* By x times the root of its gain, scaled to d, over and over. */
static void balance(struct terms *t, int d)
{
	double x[WORKLOAD_MAX_AXES + WORKLOAD_MAX_OPS], sum;

	for (int k = 0; k < t->n_kinds; k++) {
		x[k] = (double)d / t->n_kinds;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < t->w->ops.n; i++) {
			t->ports[i] = 0;
			for (int k = 0; k < t->n_kinds; k++) {
				t->ports[i] += t->serves[k] >> i & 1 ? x[k] : 0;
			}
		}
		sum = 0;
		for (int k = 0; k < t->n_kinds; k++) {
			x[k] *= sqrt(gain(t, k));
			sum += x[k];
		}
		for (int k = 0; k < t->n_kinds && sum > 0; k++) {
			x[k] *= d / sum;
		}
	}
}

/* y of the balance, down to whole units, no kind above 1. */
static void certify(const struct terms *t, double *y)
{
	double most = 0;

	for (int k = 0; k < t->n_kinds; k++) {
		most = fmax(most, gain(t, k));
	}
	for (size_t i = 0; i < t->w->ops.n; i++) {
		y[i] = t->weight[i] > 0 ? t->weight[i] / (t->ports[i] * t->ports[i]) / most : 0;
		y[i] = floor(y[i] * Y_UNIT + 1e-6) / Y_UNIT;
	}
}

/* Of these units' ops, and the kinds of circuits. */
static void fill_terms(const struct workload_planner *pl, uint32_t units, struct terms *t)
{
	const struct workload *w = pl->w;

	*t = (struct terms){ .w = w };
	for (size_t u = 0; u < w->units.n; u++) {
		const struct workload_unit *unit = &w->units.v[u];
		double part = (double)unit->calls / __builtin_popcount(unit->ops);

		for (size_t i = 0; (units >> u & 1) && i < w->ops.n; i++) {
			const struct workload_op *op = &w->ops.v[i];

			if (unit->ops >> i & 1) {
				t->steps[i] += part * (double)pl->p->alpha_ns * op_steps(pl, op);
				t->ranks[i] += part * rank_bound(pl, op);
				t->weight[i] += part * volume(pl, op) * (double)op->bytes *
						byte_ns(pl->p);
			}
		}
	}
	find_circuits(t);
}

/* By the theorem. */
static double proven(const struct terms *t, int d, const double *y)
{
	double roots = 0, fixed = 0;

	for (size_t i = 0; i < t->w->ops.n; i++) {
		roots += sqrt(t->weight[i] * y[i]);
		fixed += t->steps[i] + (y[i] > 0 ? 0 : t->ranks[i]);
	}
	return fixed + roots * roots / d;
}

/* The op whose ranks take longer than its ports do by this balance, by the most; -1: none. */
static int bound_by_ranks(const struct terms *t)
{
	double most = 0;
	int found = -1;

	for (size_t i = 0; i < t->w->ops.n; i++) {
		double more = t->weight[i] > 0 ? t->ranks[i] - t->weight[i] / t->ports[i] : 0;

		if (more > most) {
			most = more;
			found = (int)i;
		}
	}
	return found;
}

double still_bound(const struct workload_planner *pl, uint32_t units, double *y)
{
	double now[WORKLOAD_MAX_OPS] = { 0 }, best = -1, ns;
	struct terms t;
	int op = -1;

	fill_terms(pl, units, &t);
	do {
		/* What its ranks bound needs no ports of the balance. */
		if (op >= 0) {
			t.weight[op] = 0;
		}
		balance(&t, pl->p->ports);
		certify(&t, now);
		ns = proven(&t, pl->p->ports, now);
		if (ns > best && y) {
			memcpy(y, now, pl->w->ops.n * sizeof(*y));
		}
		best = fmax(best, ns);
	} while ((op = bound_by_ranks(&t)) >= 0);
	return best;
}

double certified_bound(const struct workload_planner *pl, const double *y)
{
	struct terms t;

	fill_terms(pl, all_units(pl->w), &t);
	for (int k = 0; k < t.n_kinds; k++) {
		double sum = 0;

		for (size_t i = 0; i < pl->w->ops.n; i++) {
			sum += t.serves[k] >> i & 1 ? y[i] : 0;
		}
		if (!(sum <= 1 + 1e-12)) {
			return -1;
		}
	}
	return proven(&t, pl->p->ports, y);
}

/* ---- any light ---- */

/* In s steps of d ports data is on (d + 1)^s ranks. */
static int fewest_steps(int n, int d)
{
	int64_t reached = 1;
	int steps = 0;

	for (; reached < n; steps++) {
		reached *= d + 1;
	}
	return steps;
}

double any_bound(const struct workload_planner *pl)
{
	const struct workload *w = pl->w;
	double sum = 0;

	for (size_t u = 0; u < w->units.n; u++) {
		double bytes = 0, longest = 0;
		int steps = 0;

		for (size_t i = 0; i < w->ops.n; i++) {
			const struct workload_op *op = &w->ops.v[i];
			int n = workload_servers(w, op->axes), inside = ranks_inside(w, op->axes);
			int s;

			if (!(w->units.v[u].ops >> i & 1)) {
				continue;
			}
			/* Of sends, ranks that send both ways have both. */
			bytes += (double)op->bytes *
				 (op->shift && 2 * abs(op->shift) < n ? 1 :
				  op->shift ? (double)(n - abs(op->shift)) / n :
				  op->kind == COLL_ALLTOALL ? (double)(n - 1) / n :
				  phases_of(op) * (double)(n - 1) / n / inside);
			s = fewest_steps(op->shift ? 2 : n, pl->p->ports * inside);
			s = s ? s : inside > 1;
			steps = s > steps ? s : steps;
			longest = fmax(longest, (double)pl->p->alpha_ns * s + rank_bound(pl, op));
		}
		sum += (double)w->units.v[u].calls *
		       fmax(longest, (double)pl->p->alpha_ns * steps +
				       bytes * byte_ns(pl->p) / pl->p->ports);
	}
	return sum;
}
