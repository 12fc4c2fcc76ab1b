/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link-disjoint paths by the cheapest maximum flow: with every arc of capacity
 * and cost 1 it is a largest set of paths without a common arc, and among
 * these one with the fewest hops, so that the paths need no improving. The
 * shares of the paths are balanced afterwards, for all pairs together.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/graph/graph.h"

/* Marks the arcs of the largest flow from s to t, of these one of the fewest
 * hops; *n paths. */
static int find_flow(const struct flow_net *net, int s, int t, bool *used,
		     int64_t *n, struct err *err)
{
	struct graph_flow *f = graph_flow_new(net->n);
	int rc = 0;

	for (int a = 0; a < net->m && rc == 0; a++) {
		rc = graph_flow_add(f, net->src[a], net->dst[a], 1, 1, NULL, err);
	}
	if (rc == 0) {
		graph_flow_run(f, s, t, INT64_MAX, n, NULL);
	}
	for (int a = 0; a < net->m && rc == 0; a++) {
		used[a] = graph_flow_on(f, a) > 0;
	}
	graph_flow_free(f);
	return rc;
}

/* Follows used arcs from s to t and frees them. A set of least hops has no
 * circles. */
static void cut_path(const struct flow_net *net, int s, int t, bool *used,
		     double share, struct flow_paths *out)
{
	int64_t first = (int64_t)out->arcs.n;

	for (int v = s; v != t;) {
		int a = net->out_first[v];

		while (!used[a]) {
			a++;
		}
		used[a] = false;
		vec_push(&out->arcs, a);
		v = net->dst[a];
	}
	vec_push(&out->v, (struct flow_path){
		s * net->n + t, 0, first,
		(int32_t)((int64_t)out->arcs.n - first), 0, share });
}

/* The shortest path of a pair first: insertion, as there are few. */
static void sort_pair(struct flow_path *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct flow_path q = v[i];
		size_t k = i;

		for (; k > 0 && v[k - 1].n_arcs > q.n_arcs; k--) {
			v[k] = v[k - 1];
		}
		v[k] = q;
	}
}

static int find_pair(const struct flow_net *net, int s, int t, bool *used,
		     struct flow_paths *out, struct err *err)
{
	size_t begin = out->v.n;
	int64_t n = 0;
	int rc = find_flow(net, s, t, used, &n, err);

	if (rc == 0 && n == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no path from node %d to "
			     "node %d", s, t);
	}
	for (int64_t i = 0; i < n && rc == 0; i++) {
		cut_path(net, s, t, used, 1.0 / (double)n, out);
	}
	sort_pair(out->v.v + begin, out->v.n - begin);
	return rc;
}

int disjoint_paths(const struct flow_net *net, struct flow_paths *out, struct err *err)
{
	bool *used = x_new((size_t)net->m + 1, sizeof(*used));
	int rc = 0;

	for (int s = 0; s < net->n && rc == 0; s++) {
		for (int t = 0; t < net->n && rc == 0; t++) {
			if (s != t && net->terminal[s] && net->terminal[t]) {
				rc = find_pair(net, s, t, used, out, err);
			}
		}
	}
	free(used);
	return rc;
}

/* ---- shares ---- */

/* Steepness of the prices: exponent of the fullest arc. */
#define FIRST_STEEPNESS 64.0
#define LAST_STEEPNESS (1 << 17)
/* Passes of one steepness, and what the gap has to fall by in one of them
 * for another. */
#define PASSES 200
#define PROGRESS 0.98
/* A step changes no exponent by more. */
#define TRUST 1.0
#define ROUNDING 1e-6

struct path_balance {
	const struct flow_net *net;
	struct flow_paths *paths;
	double *load, *price;	/* m */
	double level;		/* congestion that the prices are based on */
	double steepness;
};

static void reprice(struct path_balance *b, int a)
{
	double cap = (double)b->net->units[a];

	b->price[a] = exp(b->steepness * (b->load[a] / cap / b->level - 1)) /
		      cap;
}

/* Loads from the shares; the congestion. */
static double measure(struct path_balance *b)
{
	const struct flow_paths *paths = b->paths;
	double max = 0;

	memset(b->load, 0, (size_t)b->net->m * sizeof(*b->load));
	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		for (int k = 0; k < q->n_arcs; k++) {
			b->load[paths->arcs.v[q->first + k]] += q->weight;
		}
	}
	for (int a = 0; a < b->net->m; a++) {
		max = fmax(max, b->load[a] / (double)b->net->units[a]);
	}
	return max;
}

static double cost_of(const struct path_balance *b, const struct flow_path *q)
{
	double sum = 0;

	for (int k = 0; k < q->n_arcs; k++) {
		sum += b->price[b->paths->arcs.v[q->first + k]];
	}
	return sum;
}

/* How fast the cost grows with the share. */
static double slope_of(const struct path_balance *b, const struct flow_path *q)
{
	double sum = 0;

	for (int k = 0; k < q->n_arcs; k++) {
		int a = b->paths->arcs.v[q->first + k];

		sum += b->price[a] * b->steepness / b->level /
		       (double)b->net->units[a];
	}
	return sum;
}

static double min_capacity(const struct path_balance *b, const struct flow_path *q)
{
	double min = HUGE_VAL;

	for (int k = 0; k < q->n_arcs; k++) {
		int a = b->paths->arcs.v[q->first + k];

		min = fmin(min, (double)b->net->units[a]);
	}
	return min;
}

static void add_share(struct path_balance *b, struct flow_path *q, double share)
{
	q->weight += share;
	for (int k = 0; k < q->n_arcs; k++) {
		int a = b->paths->arcs.v[q->first + k];

		b->load[a] += share;
		reprice(b, a);
	}
}

static size_t pair_end(const struct flow_paths *paths, size_t i)
{
	size_t end = i + 1;

	while (end < paths->v.n && paths->v.v[end].pair == paths->v.v[i].pair) {
		end++;
	}
	return end;
}

static size_t cheapest(const struct path_balance *b, size_t from, size_t to, double *cost)
{
	size_t best = from;

	*cost = HUGE_VAL;
	for (size_t i = from; i < to; i++) {
		double c = cost_of(b, &b->paths->v.v[i]);

		if (c < *cost) {
			*cost = c;
			best = i;
		}
	}
	return best;
}

/* From every more expensive path of a pair some share to the cheapest. */
static void improve(struct path_balance *b, size_t from, size_t to)
{
	double cost;
	struct flow_path *to_path = &b->paths->v.v[cheapest(b, from, to, &cost)];
	double max = TRUST * b->level / b->steepness;

	for (size_t i = from; i < to; i++) {
		struct flow_path *q = &b->paths->v.v[i];
		double gain = cost_of(b, q) - cost_of(b, to_path), step;

		if (q == to_path || q->weight <= 0 || gain <= 0) {
			continue;
		}
		step = gain / (slope_of(b, q) + slope_of(b, to_path));
		step = fmin(step, max * fmin(min_capacity(b, q), min_capacity(b, to_path)));
		step = fmin(step, q->weight);
		add_share(b, to_path, step);
		add_share(b, q, -step);
	}
}

/* What the present prices prove. */
static double prove(const struct path_balance *b)
{
	double demand = 0, supply = 0, cost;

	for (size_t i = 0, end; i < b->paths->v.n; i = end) {
		end = pair_end(b->paths, i);
		cheapest(b, i, end, &cost);
		demand += cost;
	}
	for (int a = 0; a < b->net->m; a++) {
		supply += b->price[a] * (double)b->net->units[a];
	}
	return supply > 0 ? demand / supply : 0;
}

static void price_all(struct path_balance *b)
{
	for (int a = 0; a < b->net->m; a++) {
		reprice(b, a);
	}
}

/* One visit to every pair; returns the gap with the best of both sides. */
static double pass(struct path_balance *b, double *best_share, struct balance_result *res)
{
	double use;

	b->level = measure(b);
	price_all(b);
	for (size_t i = 0, end; i < b->paths->v.n; i = end) {
		end = pair_end(b->paths, i);
		if (end > i + 1) {
			improve(b, i, end);
		}
	}
	res->passes++;
	use = measure(b);
	if (use < res->congestion) {
		res->congestion = use;
		for (size_t i = 0; i < b->paths->v.n; i++) {
			best_share[i] = b->paths->v.v[i].weight;
		}
	}
	b->level = use;
	price_all(b);
	res->bound = fmax(res->bound, prove(b));
	return res->congestion / res->bound - 1;
}

static void run(struct path_balance *b, double gap, const struct flow_limit *limit,
		double *best_share, struct balance_result *res)
{
	double now = HUGE_VAL;

	for (b->steepness = FIRST_STEEPNESS;
	     b->steepness <= LAST_STEEPNESS && now > gap; b->steepness *= 2) {
		double last = HUGE_VAL;

		for (int i = 0; i < PASSES && now > gap; i++) {
			now = pass(b, best_share, res);
			if ((limit && flow_limit_over(limit)) ||
			    (i % 8 == 7 && now > last * PROGRESS)) {
				break;
			}
			last = i % 8 == 7 ? now : last;
		}
		if (limit && flow_limit_over(limit)) {
			break;
		}
	}
}

/* The best shares, without crumbs: the pair's other paths get these. */
static void keep_shares(struct flow_paths *paths, const double *share)
{
	size_t kept = 0;

	for (size_t i = 0, end; i < paths->v.n; i = end) {
		double sum = 0;

		end = pair_end(paths, i);
		for (size_t k = i; k < end; k++) {
			sum += share[k] > ROUNDING ? share[k] : 0;
		}
		for (size_t k = i; k < end; k++) {
			if (share[k] > ROUNDING) {
				paths->v.v[kept] = paths->v.v[k];
				paths->v.v[kept++].weight = share[k] / sum;
			}
		}
	}
	paths->v.n = kept;
}

void balance_paths(const struct flow_net *net, double gap, const struct flow_limit *limit,
		   struct flow_paths *inout, struct balance_result *res)
{
	struct path_balance b = { .net = net, .paths = inout };
	struct arrays arrays = { 0 };
	double *share;

	*res = (struct balance_result){ .congestion = HUGE_VAL };
	arrays_add(&arrays, share, inout->v.n);
	arrays_add(&arrays, b.load, net->m);
	arrays_add(&arrays, b.price, net->m);
	run(&b, gap, limit, share, res);
	keep_shares(inout, share);
	res->congestion = measure(&b);
	arrays_fini(&arrays);
}
