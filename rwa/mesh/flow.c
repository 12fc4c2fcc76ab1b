/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The minimum-congestion flow of the demands, and the prices that prove it.
 *
 * Every pair of nodes sends its lightpaths, now divisible, over some paths;
 * the largest load U of an arc per fibre is to be least. The augmented
 * Lagrangian prices an arc at p = max(0, l + rho (load - U fibres)), where U
 * is such that sum(p fibres) = 1, and flow moves from each path to the
 * cheapest one by the exact step of the quadratic penalty; prices follow at
 * once. After every few passes l = p. Any prices prove a bound by duality:
 * sum(count dist) / sum(price fibres). They are rounded to small integers
 * first, so that what is proven is proven in integers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "rwa/mesh/private.h"

#define PRICE_SCALE 5000	/* the largest integer price */
#define MAX_PASSES 4000
#define LEAST_PASSES 12		/* however little time there is */
#define PASSES_A_ROUND 3	/* between two updates of the multipliers */
#define RHO_GROWTH 1.05
#define FIT_CALM 60		/* rounds without progress before it stops */
#define FIT_RHO_GROWTH 1.02
#define NEAR 1e-3		/* a bound this near to an integer is enough */

/* A path of a pair: lightpaths on it (not integers) and its arcs, owned. */
struct flow_route {
	double flow;
	int32_t hops;
	int32_t *arcs;
};

/* All demands of the same two ends and kind, whose paths carry `count`
 * lightpaths together at any time. A path without arcs stands for those
 * turned away, which only mesh_fit() allows. */
struct flow_pair {
	int32_t dst;
	bool protect;		/* a path is the arcs of two without common
				 * link */
	double count;
	VEC(struct flow_route) paths;
};

/* The flow and its prices. load[e] is the sum of the flows whose path has
 * arc e; price[e] is price_of(e) and follows whenever the load changes;
 * mult[e] is the multiplier l of the last round. In mesh_bound() u is U,
 * the congestion that prices pay for; in mesh_fit() `room` takes its place
 * and u is not used. */
struct flow_state {
	const struct rwa_mesh *m;
	struct mesh_adjacency out;
	struct mesh_paths paths;	/* within the budget, and pairs */
	struct arrays arrays;	/* owns those that follow, up to path */
	double *tilted;		/* prices with the floor, for those */
	int32_t *fibres;
	double *room;		/* of each arc, when channels are given: what
				 * does not fit is turned away; else NULL */
	struct flow_pair *pairs;	/* by source */
	int32_t *first;		/* pairs of source s: first[s]..first[s+1]-1 */
	double *load, *mult, *price;
	double u, rho;
	/* shortest paths of one source */
	struct graph_heap heap;
	int32_t *via;		/* arc that enters the node */
	/* stamps: arcs of the cheapest path */
	int32_t *mark;
	int32_t stamp;
	int32_t *path;		/* arcs of the cheapest path, hops of them */
};

/* ---- shortest paths by Dijkstra ---- */

/* floor: added to every price, so that among free paths the short one wins. */
static void shortest(struct flow_state *s, int32_t source, double floor_price)
{
	int v;

	graph_heap_reset(&s->heap);
	s->via[source] = -1;
	graph_heap_put(&s->heap, source, 0);
	while ((v = graph_heap_take(&s->heap)) >= 0) {
		for (int32_t k = s->out.first[v]; k < s->out.first[v + 1]; k++) {
			int32_t e = s->out.arc[k], w = s->m->arcs.v[e].dst;
			double d = s->heap.dist[v] + s->price[e] + floor_price;

			if (s->fibres[e] && d < s->heap.dist[w]) {
				s->via[w] = e;
				graph_heap_put(&s->heap, w, d);
			}
		}
	}
}

/* ---- the pairs ---- */

/* By source, kind and destination. */
ORDER_BY(by_pair, struct rwa_mesh_demand, src, protect, dst)

/* Demands of the same ends become one pair. */
static void make_pairs(struct flow_state *s)
{
	const struct rwa_mesh *m = s->m;
	size_t n = m->demands.n, k = 0;
	struct rwa_mesh_demand *d = x_alloc(n + 1, sizeof(*d));

	arrays_add(&s->arrays, s->pairs, n + 1);
	arrays_add(&s->arrays, s->first, m->nodes.n + 2);
	if (n) {
		memcpy(d, m->demands.v, n * sizeof(*d));
		qsort(d, n, sizeof(*d), by_pair);
	}
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_pair(&d[i - 1], &d[i])) {
			s->pairs[k].protect = d[i].protect;
			s->pairs[k++].dst = d[i].dst;
			s->first[d[i].src + 1]++;
		}
		s->pairs[k - 1].count += d[i].count;
	}
	for (size_t v = 0; v < m->nodes.n; v++) {
		s->first[v + 1] += s->first[v];
	}
	free(d);
}

/* No flow yet. */
static void state_init(struct flow_state *s, const struct rwa_mesh *m)
{
	size_t n = m->nodes.n + 1, e = m->arcs.n + 1;

	*s = (struct flow_state){ .m = m };
	arrays_add(&s->arrays, s->fibres, e);
	arrays_add(&s->arrays, s->load, e);
	arrays_add(&s->arrays, s->mult, e);
	arrays_add(&s->arrays, s->price, e);
	arrays_add(&s->arrays, s->mark, e);
	arrays_add(&s->arrays, s->via, n);
	arrays_add(&s->arrays, s->path, 2 * n);
	arrays_add(&s->arrays, s->tilted, e);
	graph_heap_init(&s->heap, (int)n);
	adjacency_init(&s->out, m, false);
	make_pairs(s);
	mesh_paths_init(&s->paths, m);
	mesh_open_fibres(m, s->fibres);
}

static void state_fini(struct flow_state *s)
{
	size_t pairs = s->first ? (size_t)s->first[s->m->nodes.n] : 0;

	for (size_t i = 0; i < pairs; i++) {
		for (size_t w = 0; w < s->pairs[i].paths.n; w++) {
			free(s->pairs[i].paths.v[w].arcs);
		}
		vec_fini(&s->pairs[i].paths);
	}
	arrays_fini(&s->arrays);
	graph_heap_fini(&s->heap);
	mesh_paths_fini(&s->paths);
	adjacency_fini(&s->out);
}

/* ---- moving flow ---- */

/* Augmented price of an arc at its present load. */
static double price_of(const struct flow_state *s, int32_t e)
{
	double room = s->room ? s->room[e] : s->u * s->fibres[e];
	double p = s->mult[e] + s->rho * (s->load[e] - room);

	return p > 0 ? p : 0;
}

/* Changes an arc's load, and its price with it. */
static void add_load(struct flow_state *s, int32_t e, double flow)
{
	s->load[e] += flow;
	s->price[e] = price_of(s, e);
}

/* U with sum(fibres price) = 1: the sum falls with U, convex and piecewise
 * linear, so that Newton's steps from the left stay left of the root. */
static void solve_congestion(struct flow_state *s)
{
	for (int k = 0; k < 60; k++) {
		double sum = 0, slope = 0, step;

		for (size_t e = 0; e < s->m->arcs.n; e++) {
			double p = price_of(s, (int32_t)e);

			sum += p * s->fibres[e];
			slope += p > 0 ? s->rho * s->fibres[e] * s->fibres[e]
				       : 0;
		}
		if (slope <= 0) {
			s->u *= 0.5;
			continue;
		}
		step = (sum - 1) / slope;
		s->u += step;
		if (fabs(step) <= 1e-12 * (1 + fabs(s->u))) {
			break;
		}
	}
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->price[e] = price_of(s, (int32_t)e);
	}
}

static int by_number(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The path of a pair, or one within the budget, from the room's search. */
static void trace_special(struct flow_state *s, int32_t src, const struct flow_pair *p,
			  double floor_price, int32_t *hops)
{
	double cost;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->tilted[e] = s->price[e] + floor_price;
	}
	if (p->protect) {
		mesh_path_pair(&s->paths, s->tilted, src, p->dst);
	} else if (mesh_path_within(&s->paths, s->tilted, src, p->dst, &cost)) {
		/* Too many paths to look at: the one without budget stands. */
		return;
	}
	*hops = s->paths.n_arcs;
	memcpy(s->path, s->paths.arcs, (size_t)*hops * sizeof(*s->path));
	qsort(s->path, (size_t)*hops, sizeof(*s->path), by_number);
}

/* The cheapest path of the pair into s->path, its arcs marked; how many. */
static int32_t trace_path(struct flow_state *s, int32_t src, const struct flow_pair *p,
			  double floor_price)
{
	int32_t hops = 0;

	for (int32_t v = p->dst; s->via[v] >= 0; v = s->m->arcs.v[s->via[v]].src) {
		s->path[hops++] = s->via[v];
	}
	if (p->protect ||
	    (s->paths.budget < INT64_MAX &&
	     mesh_path_loss(&s->paths, src, s->path, hops) > s->paths.budget)) {
		trace_special(s, src, p, floor_price, &hops);
	}
	s->stamp++;
	for (int32_t i = 0; i < hops; i++) {
		s->mark[s->path[i]] = s->stamp;
	}
	return hops;
}

/* Lightpaths that a pair's unit of flow stands for. */
static double worth(const struct flow_pair *p)
{
	return p->protect ? 2 : 1;
}

/* A path without arcs turns the flow away. */
static double path_price(const struct flow_state *s, const struct flow_pair *p,
			const struct flow_route *w)
{
	double sum = w->hops ? 0 : worth(p);

	for (int32_t i = 0; i < w->hops; i++) {
		sum += s->price[w->arcs[i]];
	}
	return sum;
}

/* The pair's path that is s->path, or -1. */
static int find_path(const struct flow_state *s, const struct flow_pair *p, int32_t hops)
{
	for (size_t w = 0; w < p->paths.n; w++) {
		if (p->paths.v[w].hops == hops && memcmp(p->paths.v[w].arcs, s->path,
							 (size_t)hops * sizeof(*s->path)) == 0) {
			return (int)w;
		}
	}
	return -1;
}

static void add_flow_path(struct flow_state *s, struct flow_pair *p, int32_t hops, double flow)
{
	struct flow_route path = { .flow = flow, .hops = hops };
	size_t bytes = (size_t)hops * sizeof(*path.arcs);

	path.arcs = x_alloc(bytes, 1);
	vec_push(&p->paths, path);
	memcpy(path.arcs, s->path, bytes);
	for (int32_t i = 0; i < hops; i++) {
		add_load(s, s->path[i], flow);
	}
}

/* Moves flow from path `from` to s->path (marked), which is path `to`. The
 * step makes both paths equally expensive: along it the price of each arc
 * that only one of them has changes by rho; no more than the path carries.
 * Arcs of both do not count. */
static void move_flow(struct flow_state *s, struct flow_pair *p, size_t from, size_t to)
{
	struct flow_route *f = &p->paths.v[from], *t = &p->paths.v[to];
	double gain = path_price(s, p, f) - path_price(s, p, t);
	int32_t common = 0;
	double step;

	if (gain <= 0) {
		return;
	}
	for (int32_t i = 0; t->hops && i < f->hops; i++) {
		common += s->mark[f->arcs[i]] == s->stamp;
	}
	step = gain / (s->rho * (f->hops + t->hops - 2 * common));
	step = step < f->flow ? step : f->flow;
	for (int32_t i = 0; i < f->hops; i++) {
		add_load(s, f->arcs[i], -step);
	}
	for (int32_t i = 0; i < t->hops; i++) {
		add_load(s, t->arcs[i], step);
	}
	f->flow -= step;
	t->flow += step;
}

/* Forgets paths with next to no flow, of which most pairs see many. */
static void drop_empty_paths(struct flow_pair *p)
{
	size_t kept = 0;

	for (size_t w = 0; w < p->paths.n; w++) {
		if (p->paths.v[w].flow > 1e-12 * p->count) {
			p->paths.v[kept++] = p->paths.v[w];
		} else {
			free(p->paths.v[w].arcs);
		}
	}
	p->paths.n = kept;
}

/* The path that all others give flow to: the cheapest, or none at all. */
static int cheapest_path(struct flow_state *s, int32_t src, struct flow_pair *p,
			 double floor_price)
{
	int32_t hops = trace_path(s, src, p, floor_price);
	int to = find_path(s, p, hops), away;

	if (to < 0) {
		add_flow_path(s, p, hops, p->paths.n ? 0 : p->count);
		to = (int)p->paths.n - 1;
	}
	if (!s->room || path_price(s, p, &p->paths.v[to]) <= worth(p)) {
		return to;
	}
	away = find_path(s, p, 0);
	if (away < 0) {
		add_flow_path(s, p, 0, 0);
		away = (int)p->paths.n - 1;
	}
	return away;
}

/* Moves flow of a pair to its cheapest path from all others. */
static void improve_pair(struct flow_state *s, int32_t src, struct flow_pair *p, double floor_price)
{
	int to = cheapest_path(s, src, p, floor_price);

	for (size_t w = 0; w < p->paths.n; w++) {
		if (w != (size_t)to) {
			move_flow(s, p, w, (size_t)to);
		}
	}
	drop_empty_paths(p);
}

/* One pass over all sources. floor_price breaks ties between free paths. */
static void pass(struct flow_state *s, double floor_price)
{
	for (int32_t v = 0; v < (int32_t)s->m->nodes.n; v++) {
		if (s->first[v] == s->first[v + 1]) {
			continue;
		}
		shortest(s, v, floor_price);
		for (int32_t i = s->first[v]; i < s->first[v + 1]; i++) {
			improve_pair(s, v, &s->pairs[i], floor_price);
		}
		if (s->rho > 0 && !s->room) {
			solve_congestion(s);
		}
	}
}

/* ---- the bound ---- */

/* The largest load of an arc per open fibre. */
static double congestion(const struct flow_state *s)
{
	double u = 0;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		if (s->fibres[e] && s->load[e] / s->fibres[e] > u) {
			u = s->load[e] / s->fibres[e];
		}
	}
	return u;
}

/* Rounds the present prices to integers and keeps them if they prove more. */
static int try_prices(struct flow_state *s, const double *price,
		      struct rwa_certificate *best, struct err *err)
{
	size_t arcs = s->m->arcs.n;
	struct rwa_certificate c = { .flow = best->flow };
	double top = 0;
	int rc;

	c.prices = x_new(arcs + 1, sizeof(*c.prices));
	for (size_t e = 0; e < arcs; e++) {
		top = s->fibres[e] && price[e] > top ? price[e] : top;
	}
	for (size_t e = 0; e < arcs && top > 0; e++) {
		c.prices[e] = llround(price[e] / top * PRICE_SCALE);
	}
	rc = certificate_sum(s->m, &c, err);
	if (!rc && (double)c.numerator * (double)best->denominator >
			   (double)best->numerator * (double)c.denominator) {
		rwa_certificate_fini(best);
		*best = c;
		return 0;
	}
	rwa_certificate_fini(&c);
	return rc;
}

/* The first flow: everything by fewest hops; the first scale of the prices. */
static void begin(struct flow_state *s)
{
	double total = 0, fibres = 0;

	pass(s, 1);
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		total += s->load[e];
		fibres += s->fibres[e];
	}
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->mult[e] = s->fibres[e] ? 1 / fibres : 0;
	}
	s->u = congestion(s);
	s->rho = total > 0 ? 1 / total : 1;
	solve_congestion(s);
}

/* True when no flow proves more than the bound has. */
static bool is_proven(const struct rwa_certificate *c)
{
	double lower = (double)c->numerator / (double)c->denominator;
	double slots = ceil(lower - 1e-9);

	return c->flow - slots < NEAR * slots / (1 + slots) || c->flow - lower < 1e-6 * c->flow;
}

/* Passes and updates until the bound is as good as any flow can prove, or
 * time or passes run out. */
static int improve_bound(struct flow_state *s, const struct mesh_stop *stop,
			 struct rwa_certificate *best, struct err *err)
{
	int rc = 0;

	for (int k = 1; !rc && k <= MAX_PASSES && (k <= LEAST_PASSES || !stop_now(stop)); k++) {
		double u;

		pass(s, 1e-9);
		u = congestion(s);
		best->flow = u < best->flow ? u : best->flow;
		if (k % PASSES_A_ROUND) {
			continue;
		}
		memcpy(s->mult, s->price, s->m->arcs.n * sizeof(*s->mult));
		s->rho *= RHO_GROWTH;
		rc = try_prices(s, s->price, best, err);
		if (is_proven(best)) {
			break;
		}
	}
	return rc;
}

/* The arcs of a path in the order of travel. O(hops^2). */
static void put_in_order(const struct rwa_mesh *m, int32_t src, int32_t *arcs, int32_t hops)
{
	int32_t at = src;

	for (int32_t i = 0; i < hops; i++) {
		for (int32_t k = i; k < hops; k++) {
			if (m->arcs.v[arcs[k]].src == at) {
				int32_t e = arcs[k];

				arcs[k] = arcs[i];
				arcs[i] = e;
				break;
			}
		}
		at = m->arcs.v[arcs[i]].dst;
	}
}

/* The paths of all pairs that are not protected. */
static void list_routes(const struct flow_state *s, struct mesh_routes *out)
{
	for (int32_t src = 0; src < (int32_t)s->m->nodes.n; src++) {
		for (int32_t i = s->first[src]; i < s->first[src + 1]; i++) {
			const struct flow_pair *p = &s->pairs[i];

			for (size_t w = 0; !p->protect && w < p->paths.n; w++) {
				const struct flow_route *f = &p->paths.v[w];
				struct mesh_route r = {
					src, p->dst, f->hops, (int64_t)out->arcs.n,
					f->flow / p->count,
				};

				vec_push(&out->v, r);
				vec_reserve(&out->arcs, (size_t)f->hops);
				memcpy(out->arcs.v + r.first, f->arcs,
				       (size_t)f->hops * sizeof(*f->arcs));
				out->arcs.n += (size_t)f->hops;
				put_in_order(s->m, src, out->arcs.v + r.first, f->hops);
			}
		}
	}
}

/* The certificate of no prices, which every demand with a path has. */
static int no_prices(const struct rwa_mesh *m, struct rwa_certificate *out, struct err *err)
{
	*out = (struct rwa_certificate){ .denominator = 1 };
	out->prices = x_new(m->arcs.n + 1, sizeof(*out->prices));
	return certificate_sum(m, out, err);
}

/* No prices at all come first, which names demands without a path; then the
 * equal prices of the multipliers' start; then those of the flow. */
int mesh_bound(const struct rwa_mesh *m, const struct mesh_stop *stop,
	       struct rwa_certificate *out, struct mesh_routes *routes, struct err *err)
{
	struct flow_state s = { .m = m };
	int rc = no_prices(m, out, err);

	if (!rc) {
		state_init(&s, m);
		begin(&s);
		out->flow = congestion(&s);
		rc = try_prices(&s, s.mult, out, err);
	}
	if (!rc && m->demands.n) {
		rc = improve_bound(&s, stop, out, err);
	}
	if (!rc) {
		list_routes(&s, routes);
	}
	if (rc) {
		rwa_certificate_fini(out);
	}
	state_fini(&s);
	return rc;
}

/* ---- as many as fit ---- */

/* Slots of every arc, and the scale of the prices: turning one lightpath away
 * costs 1. */
static void begin_fit(struct flow_state *s, int channels)
{
	const struct rwa_mesh *m = s->m;
	struct mesh_slots used = { 0 };
	double mean = 0, fibres = 0;

	mesh_used_slots(m, &used);
	pass(s, 1);
	arrays_add(&s->arrays, s->room, m->arcs.n + 1);
	for (size_t e = 0; e < m->arcs.n; e++) {
		s->room[e] = (double)mesh_band_slots(m, channels) *
			     s->fibres[e];
		mean += s->load[e];
		fibres += s->fibres[e];
	}
	for (size_t i = 0; !m->guard.between && i < used.n; i++) {
		const struct rwa_hop *h = &used.v[i];

		s->room[h->arc] -= h->channel >= m->guard.below &&
				   h->channel < channels - m->guard.above;
	}
	vec_fini(&used);
	s->rho = mean > 0 ? fibres / mean : 1;
	for (size_t e = 0; e < m->arcs.n; e++) {
		s->price[e] = price_of(s, (int32_t)e);
	}
}

/* Keeps the present prices, rounded, if fewer lightpaths fit by them. */
static int try_fit(struct flow_state *s, int channels,
		   struct rwa_certificate *best, int64_t *fit, struct err *err)
{
	size_t arcs = s->m->arcs.n;
	struct rwa_certificate c = { 0 };
	double top = 0;
	int64_t n;
	int rc;

	c.prices = x_new(arcs + 1, sizeof(*c.prices));
	for (size_t e = 0; e < arcs; e++) {
		top = s->fibres[e] && s->mult[e] > top ? s->mult[e] : top;
	}
	for (size_t e = 0; e < arcs && top > 0; e++) {
		c.prices[e] = llround(s->mult[e] / top * PRICE_SCALE);
	}
	rc = rwa_certificate_fit(s->m, &c, channels, &n, err);
	if (!rc && (!best->prices || n < *fit)) {
		free(best->prices);
		*best = c;
		*fit = n;
		return 0;
	}
	free(c.prices);
	return rc;
}

int mesh_fit(const struct rwa_mesh *m, int channels, const struct mesh_stop *stop,
	     struct rwa_certificate *out, int64_t *fit, struct err *err)
{
	struct flow_state s = { .m = m };
	int rc, calm = 0;

	state_init(&s, m);
	*out = (struct rwa_certificate){ 0 };
	rc = try_fit(&s, channels, out, fit, err);
	if (!rc) {
		begin_fit(&s, channels);
	}
	for (int k = 1; !rc && m->demands.n && k <= MAX_PASSES &&
			calm < FIT_CALM && (k <= LEAST_PASSES || !stop_now(stop)); k++) {
		int64_t before = *fit;

		pass(&s, 1e-9);
		if (k % PASSES_A_ROUND) {
			continue;
		}
		memcpy(s.mult, s.price, m->arcs.n * sizeof(*s.mult));
		s.rho *= FIT_RHO_GROWTH;
		rc = try_fit(&s, channels, out, fit, err);
		calm = *fit < before ? 0 : calm + 1;
	}
	if (rc) {
		rwa_certificate_fini(out);
	}
	state_fini(&s);
	return rc;
}
