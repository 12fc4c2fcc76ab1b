/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact optima.
 *
 * Passes to a small gap show what a solution may use, and an interior point
 * method (mcf_middle) goes from there to the middle of the optima. Three things
 * can be read off it: the classes of arcs with a price (full in every optimum),
 * the arcs that carry flow of a source (on its cheapest paths in every optimum),
 * and roughly how much. Each source gets a tree of arcs that it uses; the flow on its other
 * used arcs are the unknowns, which determine that on the tree. For every
 * unknown there is the equation that its detour costs what the tree path
 * costs. These equations, in whole numbers, fix the prices; the same matrix
 * the other way round says how unknowns change the loads, which must be U
 * times the capacity on the full classes. Independent unknowns with the most
 * flow are solved for, all others keep their value rounded to a fraction.
 *
 * What was read off may be wrong. The attempt then fails its check and is
 * made again with another threshold, or at a smaller gap.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"
#include "lib/lp/exact.h"

/* Rounded flows and prices are multiples of one over these powers of 2. */
#define FLOW_BITS 40
#define PRICE_BITS 24
#define PASSES_A_ROUND 1500
#define FIRST_GAP 1e-5
#define LAST_GAP 1e-13
#define MAX_ROUNDS 60
/* How the passes' own flow is read: with few optima it shows as much as the middle. */
#define QUICK_TINY 1e-4

/* An arc off the tree that a source uses, or (flow 0) could. */
struct unknown {
	int32_t source;		/* its number */
	int32_t arc;
	double flow;
	mpz_t value;
};

/* A row an unknown; a basis of them. */
struct flow_system {
	struct exact_matrix matrix;
	int rank;
	int32_t *row, *col;
};

struct exact_attempt {
	struct mcf *p;
	double tiny;		/* relative; below this is nothing */
	double least;		/* flow that is any: tiny parts of the least demand */
	bool ties;		/* unused arcs of cheapest paths count too, */
	const bool *other;	/* and these, n_sources x m; NULL: no others */
	double mean;		/* price of a unit of capacity */
	int n_priced;		/* columns of classes with a price */
	int n_full;		/* and then of others that are full */
	int32_t *column;	/* of a class, or -1 */
	int32_t *class_of;	/* of a column */
	int32_t *tree;		/* n_sources x n: used arc into a node, -1 */
	int32_t *order;		/* n_sources x n: parents first */
	int32_t *reached;	/* n_sources: nodes in order */
	VEC(struct unknown) v;
	int n_used;		/* the first ones carry flow */
	struct flow_system prices;	/* of all unknowns on priced columns */
	struct flow_system flows;	/* of the used ones on all columns */
	mpz_t *price;		/* a class */
	mpq_t u;
	mpz_t den;		/* of flows */
	mpz_t *flow;		/* n_sources x m */
	mpz_t *load;		/* a class */
	struct arrays arrays;	/* all but the GMP numbers */
};

static void attempt_init(struct exact_attempt *at)
{
	const struct mcf *p = at->p;
	size_t k = (size_t)p->orbits.n_classes + 1;
	size_t s = (size_t)p->n_sources, n = (size_t)p->net.n;

	mpq_init(at->u);
	mpz_init(at->den);
	arrays_add(&at->arrays, at->column, k);
	arrays_add(&at->arrays, at->class_of, k);
	arrays_add(&at->arrays, at->tree, s * n);
	arrays_add(&at->arrays, at->order, s * n);
	arrays_add(&at->arrays, at->reached, s);
	arrays_add(&at->arrays, at->prices.row, k);
	arrays_add(&at->arrays, at->prices.col, k);
	arrays_add(&at->arrays, at->flows.row, k);
	arrays_add(&at->arrays, at->flows.col, k);
	at->price = numbers_new((size_t)p->orbits.n_classes);
	at->load = numbers_new((size_t)p->orbits.n_classes);
	at->flow = numbers_new(s * (size_t)p->net.m);
}

static void attempt_fini(struct exact_attempt *at)
{
	const struct mcf *p = at->p;

	for (size_t i = 0; i < at->v.n; i++) {
		mpz_clear(at->v.v[i].value);
	}
	vec_fini(&at->v);
	exact_fini(&at->prices.matrix);
	exact_fini(&at->flows.matrix);
	mpq_clear(at->u);
	mpz_clear(at->den);
	arrays_fini(&at->arrays);
	numbers_free(at->price, (size_t)p->orbits.n_classes);
	numbers_free(at->load, (size_t)p->orbits.n_classes);
	numbers_free(at->flow, (size_t)p->n_sources * p->net.m);
}

/* ---- what is used and what is full ---- */

static void add_column(struct exact_attempt *at, int k)
{
	at->column[k] = at->n_full;
	at->class_of[at->n_full++] = k;
}

static void find_full(struct exact_attempt *at)
{
	const struct mcf *p = at->p;
	double paid = 0, cap = 0, u = flow_congestion(p);

	for (int k = 0; k < p->orbits.n_classes; k++) {
		paid += p->best_price[k] * p->class_cap[k];
		cap += p->class_cap[k];
	}
	at->mean = paid / cap;
	for (int k = 0; k < p->orbits.n_classes; k++) {
		at->column[k] = -1;
		if (p->best_price[k] > at->tiny * at->mean) {
			add_column(at, k);
		}
	}
	at->n_priced = at->n_full;
	for (int k = 0; k < p->orbits.n_classes; k++) {
		if (at->column[k] < 0 && p->load[k] > (1 - at->tiny) * u * p->class_cap[k]) {
			add_column(at, k);
		}
	}
}

/* In units of the largest. */
static double min_demand(const struct mcf *p)
{
	double least = 1;

	for (int s = 0; s < p->n_sources; s++) {
		for (int v = 0; v < p->net.n; v++) {
			double d = mcf_demand_of(p, s)[v];

			least = d > 0 ? fmin(least, d) : least;
		}
	}
	return least;
}

/* Is the arc on a cheapest path, by p->dist and p->arc_price? */
static bool is_tight(const struct exact_attempt *at, int a)
{
	const struct mcf *p = at->p;
	double miss = p->dist[p->net.src[a]] + p->arc_price[a] -
		      p->dist[p->net.dst[a]];

	return miss <= at->tiny * at->mean;
}

/* The widest used tree from the source, by Prim's rule, where others count with arcs that are empty
 * too; false when a terminal that gets something is not in it. */
static bool grow_tree(struct exact_attempt *at, int s, double *width)
{
	const struct mcf *p = at->p;
	const struct flow_net *net = &p->net;
	const double *flow = mcf_flow_of(p, s);
	int32_t *tree = at->tree + (size_t)s * net->n;
	int32_t *order = at->order + (size_t)s * net->n;
	int n = 0, missing = 0, u = p->source[s];

	for (int v = 0; v < net->n; v++) {
		tree[v] = -1;
		width[v] = 0;
		missing += mcf_whole_demand(p, s, v) > 0;
	}
	while (u >= 0) {
		double best = 0;

		order[n++] = u;
		missing -= mcf_whole_demand(p, s, u) > 0;
		width[u] = -1;	/* taken */
		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			int v = net->dst[a];
			double w = flow[a] > at->least ? flow[a] : at->other ? DBL_MIN : 0;

			if (w > width[v] && width[v] >= 0 && is_tight(at, a)) {
				width[v] = w;
				tree[v] = a;
			}
		}
		u = -1;
		for (int v = 0; v < net->n; v++) {
			if (width[v] > best) {
				best = width[v];
				u = v;
			}
		}
	}
	at->reached[s] = n;
	return missing == 0;
}

static void list_unknowns(struct exact_attempt *at, int s)
{
	const struct mcf *p = at->p;
	const struct flow_net *net = &p->net;
	const double *flow = mcf_flow_of(p, s);
	const int32_t *tree = at->tree + (size_t)s * net->n;

	for (int a = 0; a < net->m; a++) {
		struct unknown x = { .source = s, .arc = a };
		bool has_ends = (net->src[a] == p->source[s] || tree[net->src[a]] >= 0) &&
			tree[net->dst[a]] >= 0;

		x.flow = flow[a] > at->least ? flow[a] : 0;
		bool is_other = at->other && at->other[(size_t)s * net->m + a];

		if (!has_ends || tree[net->dst[a]] == a ||
		    (!is_other && ((x.flow <= 0 && !at->ties) || !is_tight(at, a)))) {
			continue;
		}
		mpz_init(x.value);
		vec_push(&at->v, x);
	}
}

static int by_flow(const void *a, const void *b)
{
	const struct unknown *x = a, *y = b;

	if (x->flow != y->flow) {
		return x->flow > y->flow ? -1 : 1;
	}
	return x->source != y->source ? x->source - y->source
				      : x->arc - y->arc;
}

/* Reads the structure off the flow; *usable: whether it makes sense. */
static bool read_structure(struct exact_attempt *at)
{
	struct mcf *p = at->p;
	double *width = x_alloc((size_t)p->net.n, sizeof(*width));
	bool usable = true;

	at->least = at->tiny * min_demand(p);
	find_full(at);
	for (int a = 0; a < p->net.m; a++) {
		p->arc_price[a] = p->best_price[p->orbits.arc_class[a]];
	}
	for (int s = 0; s < p->n_sources && usable; s++) {
		flow_tree_update(p, s);
		usable = grow_tree(at, s, width);
		if (usable) {
			list_unknowns(at, s);
		}
	}
	free(width);
	if (at->v.n > 1) {
		qsort(at->v.v, at->v.n, sizeof(*at->v.v), by_flow);
	}
	while ((size_t)at->n_used < at->v.n && at->v.v[at->n_used].flow > 0) {
		at->n_used++;
	}
	return usable;
}

/* ---- the middle ---- */

ORDER_BY(by_source, struct unknown, source, arc)

/* What is read for it may be of no use. */
#define CENTER_TINY 1e-2
/* Once more, with what the prices of the last middle would use, where that is above this gap. */
#define CENTERED 1e-10
#define MAX_CENTERED 6

/* The trees of cheapest paths. */
static void add_trees(const struct mcf *p, bool *other)
{
	for (int s = 0; s < p->n_sources; s++) {
		const int32_t *parent = mcf_parent_of(p, s);

		for (int v = 0; v < p->net.n; v++) {
			if (parent[v] >= 0) {
				other[(size_t)s * p->net.m + parent[v]] = true;
			}
		}
	}
}

/* Takes flow and prices to the middle of what the reading leaves open, and of `other`, where what
 * would be cheaper then is added; false: not done. */
static bool center(struct mcf *p, bool *other, double end, const struct flow_limit *limit,
		   struct mcf_result *res)
{
	struct exact_attempt at = { .p = p, .tiny = CENTER_TINY, .ties = true, .other = other };
	struct flow_detours d = { 0 };
	bool done;

	attempt_init(&at);
	if (read_structure(&at) && at.v.n > 0) {
		qsort(at.v.v, at.v.n, sizeof(*at.v.v), by_source);
		arrays_add(&at.arrays, d.source, at.v.n + 1);
		arrays_add(&at.arrays, d.arc, at.v.n + 1);
		for (size_t i = 0; i < at.v.n; i++) {
			d.source[i] = at.v.v[i].source;
			d.arc[i] = at.v.v[i].arc;
		}
		d.n = (int)at.v.n;
		d.tree = at.tree;
		d.order = at.order;
		d.reached = at.reached;
	}
	done = d.n > 0 && mcf_middle(p, &d, end, limit, res);
	if (done) {
		add_trees(p, other);
	}
	attempt_fini(&at);
	return done;
}

/* ---- equations ---- */

/* Adds `by` to the counts of the full classes on v's tree path. */
static void count_path(const struct exact_attempt *at, int s, int v, int by, int32_t *count)
{
	const struct flow_net *net = &at->p->net;
	const int32_t *tree = at->tree + (size_t)s * net->n;

	for (; tree[v] >= 0; v = net->src[tree[v]]) {
		int c = at->column[at->p->orbits.arc_class[tree[v]]];

		if (c >= 0) {
			count[c] += by;
		}
	}
}

/* Rows of the first n unknowns, in the first `cols` columns. */
static void make_matrix(struct exact_attempt *at, int n, int cols, struct flow_system *out)
{
	const struct flow_net *net = &at->p->net;
	int32_t *count = x_new((size_t)at->n_full + 1, sizeof(*count));

	out->matrix.cols = cols;
	for (int i = 0; i < n; i++) {
		const struct unknown *x = &at->v.v[i];
		int own = at->column[at->p->orbits.arc_class[x->arc]];

		memset(count, 0, (size_t)at->n_full * sizeof(*count));
		count_path(at, x->source, net->src[x->arc], 1, count);
		count_path(at, x->source, net->dst[x->arc], -1, count);
		if (own >= 0) {
			count[own]++;
		}
		exact_row(&out->matrix);
		for (int c = 0; c < cols; c++) {
			if (count[c]) {
				exact_put(&out->matrix, c, count[c]);
			}
		}
	}
	free(count);
	/* Prices are fixed but for their scale, and loads but for one, at
	 * the most: the last equation would only be wrong. */
	out->rank = exact_basis(&out->matrix, cols - 1, out->row, out->col);
}

/* ---- prices ---- */

/* Prices of the columns that no equation fixes: near what they are now. */
static void set_free_prices(struct exact_attempt *at)
{
	bool alone = at->n_priced == at->prices.rank + 1;
	bool *fixed = x_new((size_t)at->n_full + 1, sizeof(*fixed));

	for (int i = 0; i < at->prices.rank; i++) {
		fixed[at->prices.col[i]] = true;
	}
	for (int c = 0; c < at->n_priced; c++) {
		int k = at->class_of[c];
		double x = at->p->best_price[k] / at->mean;

		if (!fixed[c]) {
			mpz_set_d(at->price[k], alone ? 1 : fmax(1, round(ldexp(x, PRICE_BITS))));
		}
	}
	free(fixed);
}

/* rhs of the equations in the fixed prices. */
static void price_rhs(const struct exact_attempt *at, mpz_t *rhs)
{
	const struct exact_matrix *m = &at->prices.matrix;
	mpz_t t;

	mpz_init(t);
	for (int i = 0; i < at->prices.rank; i++) {
		int row = at->prices.row[i];

		mpz_set_ui(rhs[i], 0);
		for (int64_t e = m->first.v[row]; e < exact_row_end(m, row); e++) {
			int k = at->class_of[m->entries.v[e].col];

			/* Fixed ones are zero still. */
			mpz_mul_si(t, at->price[k], m->entries.v[e].value);
			mpz_sub(rhs[i], rhs[i], t);
		}
	}
	mpz_clear(t);
}

/* Whole prices that satisfy all equations, up to the free ones. */
static int solve_prices(struct exact_attempt *at, struct err *err)
{
	const struct flow_system *sys = &at->prices;
	int n = at->p->orbits.n_classes, rc;
	mpz_t *rhs = numbers_new((size_t)sys->rank);
	mpz_t *num = numbers_new((size_t)sys->rank), den, gcd;

	mpz_inits(den, gcd, NULL);
	set_free_prices(at);
	price_rhs(at, rhs);
	rc = exact_solve(&sys->matrix, sys->rank, sys->row, sys->col, false, rhs, num, den, err);
	for (int k = 0; k < n && rc == 0; k++) {
		mpz_mul(at->price[k], at->price[k], den);
	}
	for (int i = 0; i < sys->rank && rc == 0; i++) {
		mpz_set(at->price[at->class_of[sys->col[i]]], num[i]);
	}
	for (int k = 0; k < n && rc == 0; k++) {
		mpz_gcd(gcd, gcd, at->price[k]);
	}
	for (int k = 0; k < n && rc == 0 && mpz_sgn(gcd) > 0; k++) {
		mpz_divexact(at->price[k], at->price[k], gcd);
	}
	numbers_free(rhs, (size_t)sys->rank);
	numbers_free(num, (size_t)sys->rank);
	mpz_clears(den, gcd, NULL);
	return rc;
}

/* U = sum of demands times distances along the trees over sum of capacity times price.
 * False when it is not where the solver knows the optimum to be. */
static bool compute_u(struct exact_attempt *at, const struct mcf_result *res)
{
	const struct mcf *p = at->p;
	const struct flow_net *net = &p->net;
	mpz_t *dist = numbers_new((size_t)net->n), t;
	bool good = true;
	double u;

	mpz_init(t);
	mpq_set_ui(at->u, 0, 1);
	for (int s = 0; s < p->n_sources && good; s++) {
		const int32_t *tree = at->tree + (size_t)s * net->n;
		const int32_t *order = at->order + (size_t)s * net->n;

		mpz_set_ui(dist[p->source[s]], 0);
		for (int i = 1; i < at->reached[s]; i++) {
			int v = order[i], a = tree[v];

			mpz_add(dist[v], dist[net->src[a]], at->price[p->orbits.arc_class[a]]);
			mpz_mul_si(t, dist[v], mcf_whole_demand(p, s, v));
			mpz_addmul_ui(mpq_numref(at->u), t, (unsigned long)p->weight[s]);
		}
	}
	mpz_set_ui(mpq_denref(at->u), 0);
	for (int a = 0; a < net->m; a++) {
		mpz_mul_si(t, at->price[p->orbits.arc_class[a]], net->units[a]);
		mpz_add(mpq_denref(at->u), mpq_denref(at->u), t);
	}
	mpz_mul_si(mpq_denref(at->u), mpq_denref(at->u), mcf_largest_demand(p));
	good = good && mpz_sgn(mpq_denref(at->u)) > 0;
	if (good) {
		mpq_canonicalize(at->u);
		u = mpq_get_d(at->u);
		good = u >= res->bound * (1 - 1e-10) && u <= res->congestion * (1 + 1e-10);
	} else {
		mpq_set_ui(at->u, 0, 1);
	}
	numbers_free(dist, (size_t)net->n);
	mpz_clear(t);
	return good;
}

/* ---- flows ---- */

/* Flows of a source from its unknowns, in units of 1 / den, of which there are whole ones in
 * every demand. */
static void fill_flow(struct exact_attempt *at, int s)
{
	const struct mcf *p = at->p;
	const struct flow_net *net = &p->net;
	const int32_t *tree = at->tree + (size_t)s * net->n;
	const int32_t *order = at->order + (size_t)s * net->n;
	mpz_t *flow = at->flow + (size_t)s * net->m, unit;

	mpz_init(unit);
	mpz_divexact_ui(unit, at->den, (unsigned long)mcf_largest_demand(p));
	/* A tree arc brings what leaves its head, less what else comes in. */
	for (int i = at->reached[s] - 1; i > 0; i--) {
		int v = order[i];
		mpz_t *need = &flow[tree[v]];

		mpz_mul_si(*need, unit, mcf_whole_demand(p, s, v));
		for (int a = net->out_first[v]; a < net->out_first[v + 1]; a++) {
			mpz_add(*need, *need, flow[a]);
		}
		for (int j = net->in_first[v]; j < net->in_first[v + 1]; j++) {
			if (net->in_arcs[j] != tree[v]) {
				mpz_sub(*need, *need, flow[net->in_arcs[j]]);
			}
		}
	}
	mpz_clear(unit);
}

/* All flows and the loads of the classes from the unknowns. */
static void fill_flows(struct exact_attempt *at)
{
	const struct mcf *p = at->p;
	size_t m = (size_t)p->net.m;

	for (size_t i = 0; i < (size_t)at->n_used; i++) {
		const struct unknown *x = &at->v.v[i];

		mpz_set(at->flow[x->source * m + x->arc], x->value);
	}
	for (int k = 0; k < p->orbits.n_classes; k++) {
		mpz_set_ui(at->load[k], 0);
	}
	for (int s = 0; s < p->n_sources; s++) {
		fill_flow(at, s);
		for (size_t a = 0; a < m; a++) {
			mpz_addmul_ui(at->load[p->orbits.arc_class[a]], at->flow[s * m + a],
				      (unsigned long)p->weight[s]);
		}
	}
}

/* What the full classes lack of U times capacity when the solved unknowns
 * are zero, times the denominator of U. */
static void flow_rhs(struct exact_attempt *at, mpz_t *rhs)
{
	mpz_t t;

	mpz_init(t);
	mpz_set_ui(at->den, 1);
	mpz_mul_2exp(at->den, at->den, FLOW_BITS);
	mpz_mul_si(at->den, at->den, mcf_largest_demand(at->p));
	for (int i = 0; i < at->n_used; i++) {
		mpz_set_d(at->v.v[i].value, round(ldexp(at->v.v[i].flow, FLOW_BITS)));
		mpz_mul_si(at->v.v[i].value, at->v.v[i].value, mcf_largest_demand(at->p));
	}
	for (int i = 0; i < at->flows.rank; i++) {
		mpz_set_ui(at->v.v[at->flows.row[i]].value, 0);
	}
	fill_flows(at);
	for (int i = 0; i < at->flows.rank; i++) {
		int k = at->class_of[at->flows.col[i]];

		mpz_set_d(t, at->p->class_cap[k]);
		mpz_mul(t, t, mpq_numref(at->u));
		mpz_mul(rhs[i], t, at->den);
		mpz_mul(t, at->load[k], mpq_denref(at->u));
		mpz_sub(rhs[i], rhs[i], t);
	}
	mpz_clear(t);
}

/* The unknowns over their final denominator: solved[i] / den are those of
 * the basis times weight and denominator of U. */
static void set_unknowns(struct exact_attempt *at, mpz_t *solved, const mpz_t den)
{
	mpz_t all, others;

	mpz_inits(all, others, NULL);
	mpz_set_ui(all, 1);
	for (int s = 0; s < at->p->n_sources; s++) {
		mpz_lcm_ui(all, all, (unsigned long)at->p->weight[s]);
	}
	mpz_mul(others, all, den);
	mpz_mul(others, others, mpq_denref(at->u));
	for (int i = 0; i < at->n_used; i++) {
		mpz_mul(at->v.v[i].value, at->v.v[i].value, others);
	}
	for (int i = 0; i < at->flows.rank; i++) {
		struct unknown *x = &at->v.v[at->flows.row[i]];

		mpz_mul(x->value, solved[i], all);
		mpz_divexact_ui(x->value, x->value, (unsigned long) at->p->weight[x->source]);
	}
	mpz_mul(at->den, at->den, others);
	mpz_clears(all, others, NULL);
}

static int solve_flows(struct exact_attempt *at, struct err *err)
{
	const struct flow_system *sys = &at->flows;
	mpz_t *rhs = numbers_new((size_t)sys->rank);
	mpz_t *num = numbers_new((size_t)sys->rank), den;
	int rc;

	mpz_init(den);
	flow_rhs(at, rhs);
	rc = exact_solve(&sys->matrix, sys->rank, sys->row, sys->col, true, rhs, num, den, err);
	if (rc == 0) {
		set_unknowns(at, num, den);
		fill_flows(at);
	}
	numbers_free(rhs, (size_t)sys->rank);
	numbers_free(num, (size_t)sys->rank);
	mpz_clear(den);
	return rc;
}

/* ---- the proof ---- */

void mcf_proof_free(struct mcf_proof *proof)
{
	if (!proof) {
		return;
	}
	for (int i = 0; proof->gens && i < proof->n_gens; i++) {
		free(proof->gens[i]);
	}
	for (int64_t i = 0; proof->flow && i < proof->first[proof->n_sources]; i++) {
		mpz_clear(proof->flow[i].amount);
	}
	numbers_free(proof->price, (size_t)proof->m);
	mpq_clear(proof->congestion);
	mpz_clear(proof->flow_den);
	free(proof->gens);
	free(proof->tail);
	free(proof->head);
	free(proof->source);
	free(proof->first);
	free(proof->flow);
	free(proof);
}

static int32_t *copy_of(const int32_t *v, int n)
{
	int32_t *copy = x_alloc((size_t)n + 1, sizeof(*copy));

	memcpy(copy, v, (size_t)n * sizeof(*copy));
	return copy;
}

static void copy_graph(const struct mcf *p, struct mcf_proof *proof)
{
	proof->n = p->net.n;
	proof->n_gens = (int)p->orbits.gens.n;
	proof->m = p->net.m;
	proof->n_sources = p->n_sources;
	proof->gens = x_new((size_t)proof->n_gens + 1, sizeof(*proof->gens));
	proof->tail = copy_of(p->net.src, p->net.m);
	proof->head = copy_of(p->net.dst, p->net.m);
	proof->source = copy_of(p->source, p->n_sources);
	proof->first = x_new((size_t)p->n_sources + 1, sizeof(*proof->first));
	proof->price = numbers_new((size_t)p->net.m);
	for (int i = 0; i < proof->n_gens; i++) {
		proof->gens[i] = copy_of(p->orbits.gens.v[i], p->net.n);
	}
}

static void copy_flows(const struct exact_attempt *at, struct mcf_proof *proof)
{
	size_t m = (size_t)proof->m, all = (size_t)proof->n_sources * m;
	int64_t n = 0;

	for (size_t i = 0; i < all; i++) {
		n += mpz_sgn(at->flow[i]) != 0;
	}
	proof->flow = x_alloc((size_t)n + 1, sizeof(*proof->flow));
	n = 0;
	for (size_t i = 0; i < all; i++) {
		if (mpz_sgn(at->flow[i]) != 0) {
			proof->flow[n].arc = (int32_t)(i % m);
			mpz_init_set(proof->flow[n++].amount, at->flow[i]);
		}
		proof->first[i / m + 1] = n;
	}
}

static struct mcf_proof *make_proof(const struct exact_attempt *at)
{
	const struct mcf *p = at->p;
	struct mcf_proof *proof = x_new(1, sizeof(*proof));

	mpq_init(proof->congestion);
	mpz_init_set(proof->flow_den, at->den);
	mpq_set(proof->congestion, at->u);
	copy_graph(p, proof);
	copy_flows(at, proof);
	for (int a = 0; a < proof->m; a++) {
		mpz_set(proof->price[a], at->price[p->orbits.arc_class[a]]);
	}
	return proof;
}

/* One reading of the solution; *out stays NULL when it leads nowhere. */
static void try_reading(struct mcf *p, const struct topo *t, double tiny, bool ties,
			const struct mcf_result *res, struct mcf_proof **out, struct err *err)
{
	struct exact_attempt at = { .p = p, .tiny = tiny, .ties = ties };

	attempt_init(&at);
	if (!read_structure(&at) || at.n_priced == 0) {
		goto out;
	}
	make_matrix(&at, (int)at.v.n, at.n_priced, &at.prices);
	if (solve_prices(&at, err) || !compute_u(&at, res)) {
		goto out;
	}
	make_matrix(&at, at.n_used, at.n_full, &at.flows);
	if (solve_flows(&at, err)) {
		goto out;
	}
	*out = make_proof(&at);
	if (mcf_proof_check(t, mcf_demands(p), *out, err)) {
		mcf_proof_free(*out);
		*out = NULL;
	}
out:
	attempt_fini(&at);
	/* A wrong reading may be unsolvable: no error of anybody's. */
	err_clear(err);
}

/* Whether, and why, there is no time for another reading. */
static bool is_over(const struct flow_limit *limit, struct mcf_result *res)
{
	enum mcf_stop stop = flow_limit_stop(limit);

	if (stop != MCF_REACHED) {
		res->stop = stop;
	}
	return stop != MCF_REACHED;
}

static void try_readings(struct mcf *p, const struct topo *t, const struct flow_limit *limit,
			 struct mcf_result *res, struct mcf_proof **out, struct err *err)
{
	static const double tiny[] = { 1e-6, 1e-5, 1e-4, 1e-3, 1e-7 };
	int n = 2 * (int)(sizeof(tiny) / sizeof(tiny[0]));

	for (int i = 0; i < n && !*out; i++) {
		if (is_over(limit, res)) {
			break;
		}
		try_reading(p, t, tiny[i / 2], i % 2, res, out, err);
	}
}

static void set_exact(const struct mcf_proof *proof, struct mcf_result *res)
{
	res->congestion = res->bound = mpq_get_d(proof->congestion);
	res->gap = 0;
	res->stop = MCF_REACHED;
}

/* By the middle of the optima, and where rounding has moved that, by what is a little off it. */
static void try_middles(struct mcf *p, const struct topo *t, bool *other,
			const struct flow_limit *limit, struct mcf_result *res,
			struct mcf_proof **out, struct err *err)
{
	static const double ends[] = { 1e-13, 1e-11 };
	bool found = true;

	for (int i = 0; i < 2 && found && !*out; i++) {
		found = center(p, other, ends[i], limit, res);
		for (int k = 1; k < MAX_CENTERED && found && res->gap > CENTERED; k++) {
			found = center(p, other, ends[i], limit, res);
		}
		try_readings(p, t, limit, res, out, err);
	}
}

int mcf_exact(struct mcf *p, const struct topo *t, const struct mcf_options *opt,
	      struct mcf_result *res, struct mcf_proof **out, struct err *err)
{
	struct mcf_options mine = *opt;
	struct flow_limit limit = flow_limit_of(opt);
	bool *other = x_new((size_t)p->n_sources * p->net.m + 1, sizeof(*other));
	double gap = FIRST_GAP;
	int rc = 0;

	*out = NULL;
	mine.max_passes = PASSES_A_ROUND;
	for (int i = 0; i < MAX_ROUNDS && gap > LAST_GAP; i++) {
		mine.gap = gap;
		rc = mcf_run(p, &mine, res, err);
		if (rc || res->stop == MCF_TIME || res->stop == MCF_CANCELED) {
			break;
		}
		if (res->stop == MCF_REACHED) {
			gap = fmin(gap, res->gap) / 10;
		}
		try_reading(p, t, QUICK_TINY, false, res, out, err);
		if (!*out) {
			try_middles(p, t, other, &limit, res, out, err);
		}
		if (*out || is_over(&limit, res)) {
			break;
		}
	}
	free(other);
	if (*out) {
		set_exact(*out, res);
	}
	return rc;
}
