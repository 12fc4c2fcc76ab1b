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
 * prices, to which every source adds the inverse of a small matrix; detours meet in few places, and
 * most of it stays zero where those that meet the fewest are solved for first. Loads are a unit of
 * capacity, and prices sum to the number of classes k:
 *
 *	min k U with t = U - base - A x >= 0 (rho), x >= 0 (zx), y = need + G x >= 0 (zy)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/bits.h"

#define MAX_STEPS 60
/* Products a step up to which one is worth more than as many passes: where detours abound, readings
 * are right soon. And numbers in A and G with their zeros. */
#define MAX_WORK (INT64_C(1) << 25)
#define MAX_CELLS (INT64_C(1) << 24)
/* Where nodes have as much capacity in as out prices are not unique: such a share of its diagonal
 * is added to the matrix of their equation, and solutions are refined so often. */
#define RIDGE 1e-14
#define REFINE 4
/* Of the way to the edge, so much is gone at the most. */
#define EDGE 0.995
/* At the beginning flows and prices are no less than this of a unit and of the mean. */
#define INSIDE 1e-2

/* Numbers, their partners that they are zero against, and how both change. */
struct center_part {
	int n;
	double *v, *z, *dv, *dz;
	double *goal;		/* what v z is to change by */
	double *miss;		/* of the equation that v is from */
};

struct center_entry {
	int32_t row, col;
	double value;
};

/* By source, then row. */
struct center_matrix {
	VEC(struct center_entry) v;
};

/* Of a source: x[first..], y[first_y..], entries of A and G. Its part H of the Hessian is solved
 * for one detour after the other; of number j, order[j], the factor has the column start[j].. of
 * index and value, and the diagonal. An index is a detour's, or n and more: of a row of A L^-T. */
struct center_block {
	int first, n, first_y, n_y, rows;
	size_t a, a_end, g, g_end;
	int32_t *class;		/* of the rows of A that it has entries in, ascending */
	int32_t *order, *start;
	VEC(int32_t) index;
	double *value, *diagonal;
	struct arrays arrays;
};

struct center {
	struct mcf *p;
	const struct flow_detours *d;
	int k, most;		/* classes, detours of a source */
	struct center_block *block;
	struct center_part x, y, t;
	struct center_matrix a, g;
	double *need, *base;
	double u, du;
	double *m;		/* k x k, its Cholesky factor below the diagonal */
	double *ones, *rhs, *last, *left;	/* k */
	double *grad, *row;	/* detours */
	double *front;		/* of a source: its detours x (detours + rows), zero between */
	int32_t *place;		/* of a class among what is left of a source */
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

/* x = (L L^T)^-1 x. */
static void solve(const double *m, int n, double *x)
{
	for (int i = 0; i < n; i++) {
		const double *row = m + (size_t)i * n;

		x[i] = (x[i] - dot(row, x, i)) / row[i];
	}
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

/* Adds `by` along the tree path of v, in rows of n: to the classes (a), and to the heads on it (g;
 * index: their rows, or -1). */
static void add_path(const struct center *c, int s, int v, double by, const int32_t *index,
		     double *a, double *g, int n)
{
	const struct flow_net *net = &c->p->net;
	const int32_t *tree = c->d->tree + (size_t)s * net->n;

	for (; tree[v] >= 0; v = net->src[tree[v]]) {
		a[(size_t)c->p->orbits.arc_class[tree[v]] * n] += by;
		if (index[v] >= 0) {
			g[(size_t)index[v] * n] += by;
		}
	}
}

/* What is not zero among rows x cols becomes it, and entries of the matrix from (row, col) on. */
static void take_entries(struct center_matrix *m, double *from, int rows, int cols, int row,
			 int col)
{
	for (int r = 0; r < rows; r++) {
		for (int i = 0; i < cols; i++, from++) {
			if (*from != 0) {
				vec_push(&m->v, (struct center_entry){ row + r, col + i, *from });
				*from = 0;
			}
		}
	}
}

/* Columns of A and G: a detour takes its flow off the tree path of its head and puts it on that of
 * its tail. a, g: zero between. */
static void fill_block(struct center *c, int s, const int32_t *index, double *a, double *g)
{
	struct center_block *b = &c->block[s];
	const struct flow_net *net = &c->p->net;

	for (int i = 0; i < b->n; i++) {
		int arc = c->d->arc[b->first + i];

		add_path(c, s, net->src[arc], 1, index, a + i, g + i, b->n);
		add_path(c, s, net->dst[arc], -1, index, a + i, g + i, b->n);
		a[(size_t)c->p->orbits.arc_class[arc] * b->n + i]++;
	}
	b->a = c->a.v.n;
	b->g = c->g.v.n;
	take_entries(&c->a, a, c->k, b->n, 0, b->first);
	take_entries(&c->g, g, b->n_y, b->n, b->first_y, b->first);
	b->a_end = c->a.v.n;
	b->g_end = c->g.v.n;
	arrays_add(&b->arrays, b->class, c->k);
	for (size_t i = b->a; i < b->a_end; i++) {
		struct center_entry *e = &c->a.v.v[i];

		if (b->rows == 0 || b->class[b->rows - 1] != e->row) {
			b->class[b->rows++] = e->row;
		}
		e->value *= c->p->weight[s] / c->p->class_cap[e->row];
	}
}

/* ---- order ---- */

/* The places of the rows of A that a source has, behind its detours. */
static void set_places(struct center *c, const struct center_block *b)
{
	for (int r = 0; r < b->rows; r++) {
		c->place[b->class[r]] = b->n + r;
	}
}

/* Rows of bits: the detours, itself too, that a detour meets in rows of G, and its rows of A. */
static void find_near(const struct center *c, const struct center_block *b, uint64_t *near,
		      int words)
{
	const struct center_entry *a = c->a.v.v, *g = c->g.v.v;

	for (size_t i = b->g; i < b->g_end; i++) {
		uint64_t *row = near + (size_t)(g[i].col - b->first) * words;

		for (size_t j = i + 1; j-- > b->g && g[j].row == g[i].row;) {
			bits_add(row, g[j].col - b->first);
			bits_add(near + (size_t)(g[j].col - b->first) * words,
				 g[i].col - b->first);
		}
	}
	for (size_t i = b->a; i < b->a_end; i++) {
		bits_add(near + (size_t)(a[i].col - b->first) * words, c->place[a[i].row]);
	}
}

/* The column of detour i: all that are near it still; they are near each other then. */
static void take_column(struct center_block *b, int i, uint64_t *near, int words, int64_t *degree)
{
	const uint64_t *row = near + (size_t)i * words;

	for (int v = 0; v < b->n + b->rows; v++) {
		uint64_t *other = near + (size_t)v * words;

		if (v == i || !bits_has(row, v)) {
			continue;
		}
		vec_push(&b->index, v);
		if (v < b->n) {
			bits_or(other, row, words);
			other[i / 64] &= ~(UINT64_C(1) << i % 64);
			degree[v] = bits_count(other, words);
		}
	}
}

/* Which detours are solved for when, by least degree, and what their columns are then. */
static void order_block(struct center *c, struct center_block *b)
{
	int words = (b->n + b->rows + 63) / 64;
	uint64_t *near = x_new((size_t)b->n * words + 1, sizeof(*near));
	int64_t *degree = x_alloc((size_t)b->n + 1, sizeof(*degree));

	arrays_add(&b->arrays, b->order, b->n);
	arrays_add(&b->arrays, b->start, b->n + 1);
	arrays_add(&b->arrays, b->diagonal, b->n);
	set_places(c, b);
	find_near(c, b, near, words);
	for (int i = 0; i < b->n; i++) {
		degree[i] = bits_count(near + (size_t)i * words, words);
	}
	for (int j = 0; j < b->n; j++) {
		int least = 0;

		for (int i = 1; i < b->n; i++) {
			least = degree[i] < degree[least] ? i : least;
		}
		b->order[j] = least;
		degree[least] = INT64_MAX;
		take_column(b, least, near, words, degree);
		b->start[j + 1] = (int32_t)b->index.n;
	}
	arrays_add(&b->arrays, b->value, b->index.n);
	free(near);
	free(degree);
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

/* The detours of every source. */
static void divide(struct center *c)
{
	arrays_add(&c->arrays, c->block, c->p->n_sources);
	for (int s = 0, i = 0; s < c->p->n_sources; s++) {
		struct center_block *b = &c->block[s];

		b->first = i;
		while (i < c->d->n && c->d->source[i] == s) {
			i++;
		}
		b->n = i - b->first;
		c->most = b->n > c->most ? b->n : c->most;
	}
}

static void build(struct center *c)
{
	const struct mcf *p = c->p;
	int32_t *index = x_alloc((size_t)p->net.n, sizeof(*index));
	double *below = x_alloc((size_t)p->net.n, sizeof(*below));
	double *a = x_new((size_t)c->most * c->k + 1, sizeof(*a));
	double *g = x_new((size_t)c->most * c->most + 1, sizeof(*g));

	for (int i = 0; i < c->x.n; i++) {
		c->x.v[i] = mcf_flow_of(p, c->d->source[i])[c->d->arc[i]];
	}
	c->y.n = 0;
	for (int s = 0; s < p->n_sources; s++) {
		c->y.n = number_heads(c, s, c->y.n, index);
		fill_base(c, s, index, below);
		fill_block(c, s, index, a, g);
		order_block(c, &c->block[s]);
	}
	free(index);
	free(below);
	free(a);
	free(g);
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

/* out += by M v or, of the transpose, by M^T v. */
static void add_product(const struct center_matrix *m, bool transposed, const double *v, double by,
			double *out)
{
	for (size_t i = 0; i < m->v.n; i++) {
		const struct center_entry *e = &m->v.v[i];

		if (transposed) {
			out[e->col] += by * e->value * v[e->row];
		} else {
			out[e->row] += by * e->value * v[e->col];
		}
	}
}

/* By how much the equations are missed: of t and y, and of the gradient (x.miss). */
static void measure(struct center *c)
{
	for (int k = 0; k < c->k; k++) {
		c->t.miss[k] = c->u - c->base[k] - c->t.v[k];
	}
	add_product(&c->a, false, c->x.v, -1, c->t.miss);
	for (int i = 0; i < c->y.n; i++) {
		c->y.miss[i] = c->need[i] - c->y.v[i];
	}
	add_product(&c->g, false, c->x.v, 1, c->y.miss);
	memcpy(c->x.miss, c->x.z, (size_t)c->x.n * sizeof(*c->x.miss));
	add_product(&c->g, true, c->y.z, 1, c->x.miss);
	add_product(&c->a, true, c->t.z, -1, c->x.miss);
}

/* H = diag(zx / x) + G^T diag(zy / y) G and A, a column of the front a detour. */
static void fill_front(struct center *c, const struct center_block *b)
{
	const struct center_entry *a = c->a.v.v, *g = c->g.v.v;
	size_t rows = (size_t)b->n + b->rows;

	for (int i = 0; i < b->n; i++) {
		c->front[i * rows + i] = c->x.z[b->first + i] / c->x.v[b->first + i];
	}
	for (size_t i = b->g; i < b->g_end; i++) {
		double by = g[i].value * c->y.z[g[i].row] / c->y.v[g[i].row];
		size_t to = g[i].col - b->first;

		c->front[to * rows + to] += by * g[i].value;
		for (size_t j = i; j-- > b->g && g[j].row == g[i].row;) {
			size_t other = g[j].col - b->first;

			c->front[to * rows + other] += by * g[j].value;
			c->front[other * rows + to] += by * g[j].value;
		}
	}
	for (size_t i = b->a; i < b->a_end; i++) {
		c->front[(a[i].col - b->first) * rows + c->place[a[i].row]] = a[i].value;
	}
}

/* Takes column number j out of the front, and what it adds from the rest and to M. */
static void factor_column(struct center *c, struct center_block *b, int j, double least)
{
	size_t rows = (size_t)b->n + b->rows;
	const int32_t *index = b->index.v + b->start[j];
	double *value = b->value + b->start[j], *col = c->front + b->order[j] * rows;
	int n = b->start[j + 1] - b->start[j], i = 0;

	b->diagonal[j] = sqrt(fmax(col[b->order[j]], least));
	col[b->order[j]] = 0;
	for (int e = 0; e < n; e++) {
		value[e] = col[index[e]] / b->diagonal[j];
		col[index[e]] = 0;
	}
	for (; i < n && index[i] < b->n; i++) {
		double *other = c->front + index[i] * rows;

		other[b->order[j]] = 0;
		for (int e = 0; e < n; e++) {
			other[index[e]] -= value[i] * value[e];
		}
	}
	for (int first = i; i < n; i++) {
		double *row = c->m + (size_t)b->class[index[i] - b->n] * c->k;

		for (int e = first; e <= i; e++) {
			row[b->class[index[e] - b->n]] += value[i] * value[e];
		}
	}
}

/* Factors H, and adds A H^-1 A^T to M. */
static void factor_block(struct center *c, struct center_block *b)
{
	size_t rows = (size_t)b->n + b->rows;

	set_places(c, b);
	fill_front(c, b);
	for (int j = 0; j < b->n; j++) {
		b->diagonal[j] = c->front[b->order[j] * rows + b->order[j]];
	}
	for (int j = 0; j < b->n; j++) {
		factor_column(c, b, j, b->diagonal[j] * 1e-16);
	}
}

/* x = H^-1 x. */
static void solve_block(const struct center_block *b, double *x)
{
	for (int j = 0; j < b->n; j++) {
		double by = x[b->order[j]] /= b->diagonal[j];

		for (int e = b->start[j]; e < b->start[j + 1] && b->index.v[e] < b->n; e++) {
			x[b->index.v[e]] -= b->value[e] * by;
		}
	}
	for (int j = b->n - 1; j >= 0; j--) {
		double sum = x[b->order[j]];

		for (int e = b->start[j]; e < b->start[j + 1] && b->index.v[e] < b->n; e++) {
			sum -= b->value[e] * x[b->index.v[e]];
		}
		x[b->order[j]] = sum / b->diagonal[j];
	}
}

/* Solves with the Hessian of all sources. */
static void solve_blocks(const struct center *c, double *x)
{
	for (int s = 0; s < c->p->n_sources; s++) {
		solve_block(&c->block[s], x + c->block[s].first);
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
		add_product(&c->a, true, b, 1, c->row);
		solve_blocks(c, c->row);
		add_product(&c->a, false, c->row, -1, c->left);
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
		factor_block(c, &c->block[s]);
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
	add_product(&c->a, false, c->x.dv, 1, c->rhs);
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
	add_product(&c->g, true, c->row, 1, c->grad);
	memcpy(c->x.dv, c->grad, (size_t)c->x.n * sizeof(*c->x.dv));
	solve_blocks(c, c->x.dv);
	change_prices(c);
	memcpy(c->x.dv, c->grad, (size_t)c->x.n * sizeof(*c->x.dv));
	add_product(&c->a, true, c->t.dz, -1, c->x.dv);
	solve_blocks(c, c->x.dv);
	memcpy(c->y.dv, c->y.miss, (size_t)c->y.n * sizeof(*c->y.dv));
	add_product(&c->g, false, c->x.dv, 1, c->y.dv);
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
	arrays_add(&c->arrays, c->front, (size_t)c->most * (c->most + c->k) + 1);
	arrays_add(&c->arrays, c->need, c->d->n + 1);
	arrays_add(&c->arrays, c->base, k);
	arrays_add(&c->arrays, c->m, k * k);
	arrays_add(&c->arrays, c->place, k);
	arrays_add(&c->arrays, c->ones, k);
	arrays_add(&c->arrays, c->rhs, k);
	arrays_add(&c->arrays, c->last, k);
	arrays_add(&c->arrays, c->left, k);
	arrays_add(&c->arrays, c->grad, c->d->n + 1);
	arrays_add(&c->arrays, c->row, c->d->n + 1);
}

/* Before and, which says more, after it was built; products in a row count a quarter. */
static bool is_small(const struct center *c)
{
	int64_t cells = 0, work = (int64_t)c->k * c->k / 24 * c->k;

	for (int s = 0; s < c->p->n_sources; s++) {
		const struct center_block *b = &c->block[s];

		cells += (int64_t)b->n * (b->n + c->k);
		for (int j = 0; b->start && j < b->n; j++) {
			int64_t n = b->start[j + 1] - b->start[j];

			work += n * n / 2;
		}
	}
	return cells <= MAX_CELLS && work <= MAX_WORK;
}

static void fini(struct center *c)
{
	for (int s = 0; s < c->p->n_sources; s++) {
		vec_fini(&c->block[s].index);
		arrays_fini(&c->block[s].arrays);
	}
	vec_fini(&c->a.v);
	vec_fini(&c->g.v);
	arrays_fini(&c->arrays);
}

bool mcf_middle(struct mcf *p, const struct flow_detours *d, double end,
		const struct flow_limit *limit, struct mcf_result *res)
{
	struct center c = { .p = p, .d = d, .k = p->orbits.n_classes };
	double now = HUGE_VAL;
	bool done = false;

	divide(&c);
	if (!is_small(&c)) {
		goto out;
	}
	init(&c);
	build(&c);
	if (!is_small(&c)) {
		goto out;
	}
	begin(&c);
	for (int i = 0; i < MAX_STEPS && now > end * c.u * c.k && !flow_limit_over(limit); i++) {
		now = step(&c);
	}
	if (isfinite(now)) {
		write_flows(&c);
		write_prices(&c);
	}
	mcf_set_gap(p, res);
	done = true;
out:
	fini(&c);
	return done;
}
