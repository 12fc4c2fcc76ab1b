/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The middle of the optima, by an interior point method.
 *
 * Passes come near to an optimum soon and to its last digits late: of an arc that carries little,
 * or costs little more than a cheapest path, they do not tell for long whether it is one of those
 * that are used. A primal-dual interior point method (Mehrotra 1992) ends where all that may carry
 * flow does, and all that may have a price has one. Its variables are only how much takes each of
 * some detours off the tree of its source: there is a row a class of arcs, and a detour shares
 * limits, what is left on tree arcs, with those of its source alone. So a step is an equation in
 * prices, to which every source adds the inverse of a small matrix. Loads are a unit of capacity,
 * and prices sum to the number of classes k:
 *
 *	min k U with t = U - base - A x >= 0 (rho), x >= 0 (zx), y = need + G x >= 0 (zy)
 */
#include <math.h>

#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"

#define MAX_STEPS 60
/* Where nodes have as much capacity in as out prices are not unique: such a share of its diagonal
 * is added to the matrix of their equation, and solutions are refined so often. */
#define RIDGE 1e-14
#define REFINE 4
/* Of the way to the edge, so much is gone at the most. */
#define EDGE 0.995
/* At the beginning flows and prices are no less than this of a unit and of the mean. */
#define INSIDE 1e-2
/* Complementarity of all, relative to the value, that is none any more. */
#define DONE 1e-13

/* Numbers, their partners that they are zero against, and how both change. */
struct center_part {
	int n;
	double *v, *z, *dv, *dz;
	double *goal;		/* what v z is to change by */
	double *miss;		/* of the equation that v is from */
};

/* Of a source: x[first..], y[first_y..]. */
struct center_block {
	int first, n, first_y, n_y, rows;
	int32_t *class;		/* rows of A that it has entries in */
	double *a;		/* rows x n */
	double *g;		/* n_y x n */
	double *h;		/* n x n: Cholesky factor of its part of the Hessian */
	double *b;		/* rows x n: A L^-T of that factor */
	struct arrays arrays;
};

struct center {
	struct mcf *p;
	const struct flow_detours *d;
	int k;
	struct center_block *block;
	struct center_part x, y, t;
	double *need, *base;
	double u, du;
	double *m;		/* k x k, its Cholesky factor below the diagonal */
	double *ones, *rhs, *last, *left;	/* k */
	double *grad, *row;	/* detours */
	struct arrays arrays;
};

/* ---- linear algebra ---- */

/* In four sums, as the processor adds. */
static double dot(const double *a, const double *b, int n)
{
	double sum[4] = { 0 };
	int i = 0;

	for (; i + 4 <= n; i += 4) {
		sum[0] += a[i] * b[i];
		sum[1] += a[i + 1] * b[i + 1];
		sum[2] += a[i + 2] * b[i + 2];
		sum[3] += a[i + 3] * b[i + 3];
	}
	for (; i < n; i++) {
		sum[0] += a[i] * b[i];
	}
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* In place, below the diagonal. */
static void factor(double *m, int n)
{
	for (int i = 0; i < n; i++) {
		double *row = m + (size_t)i * n;

		for (int j = 0; j < i; j++) {
			const double *other = m + (size_t)j * n;

			row[j] = (row[j] - dot(row, other, j)) / other[j];
		}
		row[i] = sqrt(fmax(row[i] - dot(row, row, i), row[i] * 1e-16));
	}
}

/* x = L^-1 x of the factor L. */
static void solve_down(const double *m, int n, double *x)
{
	for (int i = 0; i < n; i++) {
		const double *row = m + (size_t)i * n;

		x[i] = (x[i] - dot(row, x, i)) / row[i];
	}
}

/* x = (L L^T)^-1 x. */
static void solve(const double *m, int n, double *x)
{
	solve_down(m, n, x);
	for (int i = n - 1; i >= 0; i--) {
		const double *row = m + (size_t)i * n;

		x[i] /= row[i];
		for (int j = 0; j < i; j++) {
			x[j] -= row[j] * x[i];
		}
	}
}

/* ---- the program ---- */

static void part_init(struct center *c, struct center_part *part, int n)
{
	part->n = n;
	arrays_add(&c->arrays, part->v, n + 1);
	arrays_add(&c->arrays, part->z, n + 1);
	arrays_add(&c->arrays, part->dv, n + 1);
	arrays_add(&c->arrays, part->dz, n + 1);
	arrays_add(&c->arrays, part->goal, n + 1);
	arrays_add(&c->arrays, part->miss, n + 1);
}

/* Adds `by` along the tree path of v: to the classes, and to the heads on it (index: their rows of
 * G, or -1). */
static void add_path(const struct center *c, int s, int v, double by, const int32_t *index,
		     double *class, double *g, int n)
{
	const struct flow_net *net = &c->p->net;
	const int32_t *tree = c->d->tree + (size_t)s * net->n;

	for (; tree[v] >= 0; v = net->src[tree[v]]) {
		class[c->p->orbits.arc_class[tree[v]]] += by;
		if (index[v] >= 0) {
			g[(size_t)index[v] * n] += by;
		}
	}
}

/* Columns of A and G: a detour takes its flow off the tree path of its head and puts it on that of
 * its tail. all: n x k, zero between; used: of the classes, likewise. */
static void fill_block(struct center *c, int s, const int32_t *index, double *all, bool *used)
{
	struct center_block *b = &c->block[s];
	const struct flow_net *net = &c->p->net;
	const int32_t *class = c->p->orbits.arc_class;

	arrays_add(&b->arrays, b->g, (size_t)b->n_y * b->n + 1);
	arrays_add(&b->arrays, b->h, (size_t)b->n * b->n + 1);
	for (int i = 0; i < b->n; i++) {
		int a = c->d->arc[b->first + i];
		double *col = all + (size_t)i * c->k;

		add_path(c, s, net->src[a], 1, index, col, b->g + i, b->n);
		add_path(c, s, net->dst[a], -1, index, col, b->g + i, b->n);
		col[class[a]]++;
		for (int k = 0; k < c->k; k++) {
			b->rows += col[k] != 0 && !used[k];
			used[k] |= col[k] != 0;
		}
	}
	arrays_add(&b->arrays, b->class, b->rows + 1);
	arrays_add(&b->arrays, b->a, (size_t)b->rows * b->n + 1);
	arrays_add(&b->arrays, b->b, (size_t)b->rows * b->n + 1);
	b->rows = 0;
	for (int k = 0; k < c->k; k++) {
		if (!used[k]) {
			continue;
		}
		b->class[b->rows] = k;
		for (int i = 0; i < b->n; i++) {
			b->a[(size_t)b->rows * b->n + i] = all[(size_t)i * c->k + k] *
				c->p->weight[s] / c->p->class_cap[k];
			all[(size_t)i * c->k + k] = 0;
		}
		b->rows++;
		used[k] = false;
	}
}

/* What the tree of source number s carries without detours. */
static void fill_base(struct center *c, int s, const int32_t *index, double *below)
{
	const struct flow_net *net = &c->p->net;
	const int32_t *tree = c->d->tree + (size_t)s * net->n;
	const int32_t *order = c->d->order + (size_t)s * net->n;

	memset(below, 0, (size_t)net->n * sizeof(*below));
	for (int i = c->d->reached[s] - 1; i > 0; i--) {
		int v = order[i], k = c->p->orbits.arc_class[tree[v]];

		below[v] += mcf_demand_of(c->p, s)[v];
		below[net->src[tree[v]]] += below[v];
		c->base[k] += c->p->weight[s] * below[v] / c->p->class_cap[k];
		if (index[v] >= 0) {
			int y = c->block[s].first_y + index[v];

			c->need[y] = below[v];
			c->y.v[y] = mcf_flow_of(c->p, s)[tree[v]];
		}
	}
}

/* The heads of the detours of source number s get rows; first: the one after all so far. */
static int number_heads(const struct center *c, int s, int first, int32_t *index)
{
	struct center_block *b = &c->block[s];

	b->first_y = first;
	for (int v = 0; v < c->p->net.n; v++) {
		index[v] = -1;
	}
	for (int i = b->first; i < b->first + b->n; i++) {
		int v = c->p->net.dst[c->d->arc[i]];

		if (index[v] < 0) {
			index[v] = b->n_y++;
		}
	}
	return first + b->n_y;
}

static void build(struct center *c)
{
	const struct mcf *p = c->p;
	int32_t *index = x_alloc((size_t)p->net.n, sizeof(*index));
	double *below = x_alloc((size_t)p->net.n, sizeof(*below));
	bool *used = x_new((size_t)c->k, sizeof(*used));
	int n_y = 0, most = 0;
	double *all;

	for (int s = 0, i = 0; s < p->n_sources; s++) {
		c->block[s].first = i;
		while (i < c->x.n && c->d->source[i] == s) {
			c->x.v[i] = mcf_flow_of(p, s)[c->d->arc[i]];
			i++;
		}
		c->block[s].n = i - c->block[s].first;
		most = c->block[s].n > most ? c->block[s].n : most;
	}
	all = x_new((size_t)most * c->k + 1, sizeof(*all));
	for (int s = 0; s < p->n_sources; s++) {
		n_y = number_heads(c, s, n_y, index);
		fill_base(c, s, index, below);
		fill_block(c, s, index, all, used);
	}
	c->y.n = n_y;
	free(index);
	free(below);
	free(used);
	free(all);
}

/* ---- the beginning ---- */

/* Inside of all limits, the smaller of two partners such that all come to the same product. */
static void begin_part(struct center_part *part, double mu)
{
	for (int i = 0; i < part->n; i++) {
		part->v[i] = fmax(part->v[i], INSIDE);
		part->z[i] = part->z[i] > 0 ? fmax(part->z[i], INSIDE) : mu / part->v[i];
	}
}

static void begin(struct center *c)
{
	const struct mcf *p = c->p;
	double sum = 0;

	c->u = flow_congestion(p);
	for (int k = 0; k < c->k; k++) {
		c->t.v[k] = c->u - p->load[k] / p->class_cap[k];
		sum += p->best_price[k] * p->class_cap[k];
	}
	for (int k = 0; k < c->k; k++) {
		c->t.z[k] = fmax(p->best_price[k] * p->class_cap[k] / sum * c->k, INSIDE);
	}
	begin_part(&c->t, 0);
	begin_part(&c->x, INSIDE);
	begin_part(&c->y, INSIDE);
}

/* ---- steps ---- */

/* out += A v or, of the transpose, A^T v. */
static void times_a(const struct center *c, bool transposed, const double *v, double by,
		    double *out)
{
	for (int s = 0; s < c->p->n_sources; s++) {
		const struct center_block *b = &c->block[s];

		for (int r = 0; r < b->rows; r++) {
			const double *row = b->a + (size_t)r * b->n;

			if (!transposed) {
				out[b->class[r]] += by * dot(row, v + b->first, b->n);
				continue;
			}
			for (int i = 0; i < b->n; i++) {
				out[b->first + i] += by * row[i] * v[b->class[r]];
			}
		}
	}
}

static void times_g(const struct center *c, bool transposed, const double *v, double by,
		    double *out)
{
	for (int s = 0; s < c->p->n_sources; s++) {
		const struct center_block *b = &c->block[s];

		for (int r = 0; r < b->n_y; r++) {
			const double *row = b->g + (size_t)r * b->n;

			if (!transposed) {
				out[b->first_y + r] += by * dot(row, v + b->first, b->n);
				continue;
			}
			for (int i = 0; i < b->n; i++) {
				out[b->first + i] += by * row[i] * v[b->first_y + r];
			}
		}
	}
}

/* By how much the equations are missed: of t and y, and of the gradient (x.miss). */
static void measure(struct center *c)
{
	for (int k = 0; k < c->k; k++) {
		c->t.miss[k] = c->u - c->base[k] - c->t.v[k];
	}
	times_a(c, false, c->x.v, -1, c->t.miss);
	for (int i = 0; i < c->y.n; i++) {
		c->y.miss[i] = c->need[i] - c->y.v[i];
	}
	times_g(c, false, c->x.v, 1, c->y.miss);
	memcpy(c->x.miss, c->x.z, (size_t)c->x.n * sizeof(*c->x.miss));
	times_g(c, true, c->y.z, 1, c->x.miss);
	times_a(c, true, c->t.z, -1, c->x.miss);
}

/* H = diag(zx / x) + G^T diag(zy / y) G, factored, and A L^-T. */
static void factor_block(const struct center *c, struct center_block *b)
{
	memset(b->h, 0, (size_t)b->n * b->n * sizeof(*b->h));
	for (int i = 0; i < b->n; i++) {
		b->h[(size_t)i * b->n + i] = c->x.z[b->first + i] / c->x.v[b->first + i];
	}
	for (int r = 0; r < b->n_y; r++) {
		const double *row = b->g + (size_t)r * b->n;
		double w = c->y.z[b->first_y + r] / c->y.v[b->first_y + r];

		for (int i = 0; i < b->n; i++) {
			for (int j = 0; row[i] != 0 && j <= i; j++) {
				b->h[(size_t)i * b->n + j] += w * row[i] * row[j];
			}
		}
	}
	factor(b->h, b->n);
	memcpy(b->b, b->a, (size_t)b->rows * b->n * sizeof(*b->b));
	for (int r = 0; r < b->rows; r++) {
		solve_down(b->h, b->n, b->b + (size_t)r * b->n);
	}
}

/* Solves with the Hessian of all sources. */
static void solve_blocks(const struct center *c, double *x)
{
	for (int s = 0; s < c->p->n_sources; s++) {
		solve(c->block[s].h, c->block[s].n, x + c->block[s].first);
	}
}

/* b = M^-1 b, refined. */
static void solve_all(struct center *c, double *b)
{
	memcpy(c->last, b, (size_t)c->k * sizeof(*b));
	solve(c->m, c->k, b);
	for (int i = 0; i < REFINE; i++) {
		memcpy(c->left, c->last, (size_t)c->k * sizeof(*b));
		for (int k = 0; k < c->k; k++) {
			c->left[k] -= c->t.v[k] / c->t.z[k] * b[k];
		}
		memset(c->row, 0, (size_t)c->x.n * sizeof(*c->row));
		times_a(c, true, b, 1, c->row);
		solve_blocks(c, c->row);
		times_a(c, false, c->row, -1, c->left);
		solve(c->m, c->k, c->left);
		for (int k = 0; k < c->k; k++) {
			b[k] += c->left[k];
		}
	}
}

/* M = diag(t / rho) + A H^-1 A^T, factored; ones: M^-1 1. */
static void factor_all(struct center *c)
{
	memset(c->m, 0, (size_t)c->k * c->k * sizeof(*c->m));
	for (int k = 0; k < c->k; k++) {
		c->m[(size_t)k * c->k + k] = c->t.v[k] / c->t.z[k];
		c->ones[k] = 1;
	}
	for (int s = 0; s < c->p->n_sources; s++) {
		struct center_block *b = &c->block[s];

		factor_block(c, b);
		for (int r = 0; r < b->rows; r++) {
			double *row = c->m + (size_t)b->class[r] * c->k;

			for (int q = 0; q <= r; q++) {
				row[b->class[q]] += dot(b->b + (size_t)r * b->n,
							b->b + (size_t)q * b->n, b->n);
			}
		}
	}
	for (int k = 0; k < c->k; k++) {
		c->m[(size_t)k * c->k + k] *= 1 + RIDGE;
	}
	factor(c->m, c->k);
	solve_all(c, c->ones);
}

/* The change of U and of the prices, after that of x without that of prices is in x.dv. */
static void change_prices(struct center *c)
{
	double sum = c->k, p = 0, q = 0;

	for (int k = 0; k < c->k; k++) {
		c->rhs[k] = c->t.goal[k] / c->t.z[k] - c->t.miss[k];
		sum -= c->t.z[k];
	}
	times_a(c, false, c->x.dv, 1, c->rhs);
	solve_all(c, c->rhs);
	for (int k = 0; k < c->k; k++) {
		p += c->rhs[k];
		q += c->ones[k];
	}
	c->du = (p - sum) / q;
	for (int k = 0; k < c->k; k++) {
		c->t.dz[k] = c->rhs[k] - c->ones[k] * c->du;
		c->t.dv[k] = (c->t.goal[k] - c->t.v[k] * c->t.dz[k]) / c->t.z[k];
	}
}

static void change_partners(struct center_part *part)
{
	for (int i = 0; i < part->n; i++) {
		part->dz[i] = (part->goal[i] - part->z[i] * part->dv[i]) / part->v[i];
	}
}

/* The direction in which products change by their goals and nothing is missed. */
static void find_direction(struct center *c)
{
	memcpy(c->grad, c->x.miss, (size_t)c->x.n * sizeof(*c->grad));
	for (int i = 0; i < c->x.n; i++) {
		c->grad[i] += c->x.goal[i] / c->x.v[i];
	}
	for (int i = 0; i < c->y.n; i++) {
		c->row[i] = (c->y.goal[i] - c->y.z[i] * c->y.miss[i]) / c->y.v[i];
	}
	times_g(c, true, c->row, 1, c->grad);
	memcpy(c->x.dv, c->grad, (size_t)c->x.n * sizeof(*c->x.dv));
	solve_blocks(c, c->x.dv);
	change_prices(c);
	memcpy(c->x.dv, c->grad, (size_t)c->x.n * sizeof(*c->x.dv));
	times_a(c, true, c->t.dz, -1, c->x.dv);
	solve_blocks(c, c->x.dv);
	memcpy(c->y.dv, c->y.miss, (size_t)c->y.n * sizeof(*c->y.dv));
	times_g(c, false, c->x.dv, 1, c->y.dv);
	change_partners(&c->x);
	change_partners(&c->y);
}

/* ---- the way ---- */

/* Sum of products after a step of these lengths. */
static double products(const struct center_part *part, double v, double z)
{
	double sum = 0;

	for (int i = 0; i < part->n; i++) {
		sum += (part->v[i] + v * part->dv[i]) * (part->z[i] + z * part->dz[i]);
	}
	return sum;
}

static double all_products(const struct center *c, double v, double z)
{
	return products(&c->x, v, z) + products(&c->y, v, z) + products(&c->t, v, z);
}

/* Of what is to become `mu`; corrected: less what the last direction makes of it by its square. */
static void set_goals(struct center_part *part, double mu, bool corrected)
{
	for (int i = 0; i < part->n; i++) {
		part->goal[i] = mu - part->v[i] * part->z[i] -
				(corrected ? part->dv[i] * part->dz[i] : 0);
	}
}

static void set_all_goals(struct center *c, double mu, bool corrected)
{
	set_goals(&c->x, mu, corrected);
	set_goals(&c->y, mu, corrected);
	set_goals(&c->t, mu, corrected);
}

/* The longest step, at most 1, that leaves v inside. */
static double reach(const double *v, const double *dv, int n, double most)
{
	for (int i = 0; i < n; i++) {
		if (dv[i] < 0 && -v[i] / dv[i] * EDGE < most) {
			most = -v[i] / dv[i] * EDGE;
		}
	}
	return most;
}

static void find_reach(const struct center *c, double *v, double *z)
{
	*v = reach(c->x.v, c->x.dv, c->x.n, 1);
	*v = reach(c->y.v, c->y.dv, c->y.n, *v);
	*v = reach(c->t.v, c->t.dv, c->t.n, *v);
	*z = reach(c->x.z, c->x.dz, c->x.n, 1);
	*z = reach(c->y.z, c->y.dz, c->y.n, *z);
	*z = reach(c->t.z, c->t.dz, c->t.n, *z);
}

static void move(struct center_part *part, double v, double z)
{
	for (int i = 0; i < part->n; i++) {
		part->v[i] += v * part->dv[i];
		part->z[i] += z * part->dz[i];
	}
}

/* One step; returns the sum of products after it. */
static double step(struct center *c)
{
	double n = c->x.n + c->y.n + c->k, now = all_products(c, 0, 0), v, z, share;

	measure(c);
	factor_all(c);
	set_all_goals(c, 0, false);
	find_direction(c);
	find_reach(c, &v, &z);
	share = all_products(c, v, z) / now;
	set_all_goals(c, share * share * share * now / n, true);
	find_direction(c);
	find_reach(c, &v, &z);
	c->u += v * c->du;
	move(&c->x, v, z);
	move(&c->y, v, z);
	move(&c->t, v, z);
	return all_products(c, 0, 0);
}

/* The flow that was, where rounding has spoilt the new one. */
static void keep_better(struct mcf *p, const double *flow, double congestion)
{
	if (!(flow_congestion(p) <= congestion)) {
		memcpy(p->flow, flow, (size_t)p->n_sources * p->net.m * sizeof(*flow));
		flow_measure(p);
	}
}

/* Flows of the detours, and what is left on the trees. */
static void write_flows(struct center *c)
{
	struct mcf *p = c->p;
	const struct flow_net *net = &p->net;
	size_t all = (size_t)p->n_sources * net->m;
	double *old = x_alloc(all + 1, sizeof(*old)), congestion = flow_congestion(p);

	memcpy(old, p->flow, all * sizeof(*old));
	memset(p->flow, 0, all * sizeof(*p->flow));
	for (int i = 0; i < c->x.n; i++) {
		mcf_flow_of(p, c->d->source[i])[c->d->arc[i]] = c->x.v[i];
	}
	for (int s = 0; s < p->n_sources; s++) {
		const int32_t *tree = c->d->tree + (size_t)s * net->n;
		double *flow = mcf_flow_of(p, s);

		for (int i = c->d->reached[s] - 1; i > 0; i--) {
			int v = c->d->order[(size_t)s * net->n + i];
			double left = mcf_demand_of(p, s)[v];

			for (int a = net->out_first[v]; a < net->out_first[v + 1]; a++) {
				left += flow[a];
			}
			for (int j = net->in_first[v]; j < net->in_first[v + 1]; j++) {
				left -= flow[net->in_arcs[j]];
			}
			flow[tree[v]] = left > 0 ? left : 0;
		}
	}
	flow_measure(p);
	keep_better(p, old, congestion);
	free(old);
}

/* With what they prove. */
static void write_prices(const struct center *c)
{
	struct mcf *p = c->p;

	for (int k = 0; k < c->k; k++) {
		p->price[k] = c->t.z[k] / c->k / p->class_cap[k];
	}
	mcf_prove(p, p->price);
	memcpy(p->price, p->best_price, (size_t)c->k * sizeof(*p->price));
	memcpy(p->mult, p->best_price, (size_t)c->k * sizeof(*p->mult));
}

static void init(struct center *c)
{
	size_t k = (size_t)c->k + 1;

	part_init(c, &c->x, c->d->n);
	part_init(c, &c->y, c->d->n);
	part_init(c, &c->t, c->k);
	arrays_add(&c->arrays, c->block, c->p->n_sources);
	arrays_add(&c->arrays, c->need, c->d->n + 1);
	arrays_add(&c->arrays, c->base, k);
	arrays_add(&c->arrays, c->m, k * k);
	arrays_add(&c->arrays, c->ones, k);
	arrays_add(&c->arrays, c->rhs, k);
	arrays_add(&c->arrays, c->last, k);
	arrays_add(&c->arrays, c->left, k);
	arrays_add(&c->arrays, c->grad, c->d->n + 1);
	arrays_add(&c->arrays, c->row, c->d->n + 1);
}

void mcf_middle(struct mcf *p, const struct flow_detours *d, const struct flow_limit *limit,
		struct mcf_result *res)
{
	struct center c = { .p = p, .d = d, .k = p->orbits.n_classes };
	double now = HUGE_VAL;

	init(&c);
	build(&c);
	begin(&c);
	for (int i = 0; i < MAX_STEPS && now > DONE * c.u * c.k && !flow_limit_over(limit); i++) {
		now = step(&c);
	}
	if (isfinite(now)) {
		write_flows(&c);
		write_prices(&c);
	}
	mcf_set_gap(p, res);
	for (int s = 0; s < p->n_sources; s++) {
		arrays_fini(&c.block[s].arrays);
	}
	arrays_fini(&c.arrays);
}
