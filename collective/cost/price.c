/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pricing: how a root's data can spread at the least price, for prices of arcs.
 *
 * Nodes that hold data are joined by cheapest paths through all others. What is copied or summed
 * goes along an arborescence of least cost; nodes that may copy but want nothing, as memories,
 * are in it or not: while that is open an arc into them is free, which gives a bound, and those
 * that are used are decided one after the other. Servers that are alike and decided alike change
 * places, so only how many of them copy is tried. What is neither copied nor summed takes
 * cheapest paths. Equal prices are told apart by hops, in the lowest digits of each number.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/cost/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* Branches of one search over which nodes copy, fewer where each looks at many paths. */
#define MIN_BRANCHES 20
#define MAX_BRANCHES 400
#define MAX_SEARCHED 4000000
/* Arcs of a path that sums are safe for. */
#define MAX_PATH 64

enum { OPEN, IN, OUT };

/* A path between nodes that hold data; from and to as the search goes, away from the root. */
struct cost_route {
	int32_t from, to;
	int32_t first, n;	/* in hops, from its end backwards */
	int64_t price;		/* with the digits for ties */
};

struct cost_routes {
	bool known;
	bool back;		/* along arcs backwards: what reduces holds data, else what
				 * copies */
	VEC(struct cost_route) v;
	VEC(int32_t) hops;
};

struct cost_search {
	const struct cost_net *net;
	int64_t ties;		/* a price of one, beside ties */
	int64_t most;
	int64_t *price;		/* by arc, as given */
	struct cost_routes routes[2];
	struct graph_heap heap;
	int32_t *pred;		/* of the last search: the arc to a node */
	int32_t *order;		/* nodes as they were taken */
	struct graph_cost_arc *arcs;	/* room for a tree's search */
	int32_t *route_of;	/* of these arcs; -1: a node that is left out */
	size_t room;
	int32_t *via, *best_via;	/* route into a node, or -1 */
	bool *needed;
	int8_t *state;		/* of a node */
	/* Of one search for a tree. */
	int root, branches, max_branches;
	int64_t best, missed;	/* cheapest tree; least bound of what was not searched */
	struct arrays arrays;
};

void cost_column_free(struct cost_column *c)
{
	if (c) {
		vec_fini(&c->out);
		vec_fini(&c->in);
		vec_fini(&c->hops);
		free(c->uses);
		free(c);
	}
}

void cost_search_new(const struct cost_net *net, struct cost_search **out)
{
	struct cost_search *s = x_new(1, sizeof(*s));
	int64_t total = 0;

	s->net = net;
	s->routes[1].back = true;
	for (int u = 0; u < net->n; u++) {
		total += net->weight[u];
	}
	for (s->ties = 1; s->ties < 2 * MAX_PATH * total;) {
		s->ties *= 2;
	}
	/* Sums of a tree's paths stay below 2^61, those of one path below 2^53. */
	s->most = (int64_t)fmin(ldexp(1, 61) / (double)s->ties / (double)total / 8,
				ldexp(1, 52) / (double)s->ties / 8);
	arrays_add(&s->arrays, s->price, net->m);
	arrays_add(&s->arrays, s->pred, net->n);
	arrays_add(&s->arrays, s->order, net->n);
	arrays_add(&s->arrays, s->via, net->n);
	arrays_add(&s->arrays, s->best_via, net->n);
	arrays_add(&s->arrays, s->needed, net->n);
	arrays_add(&s->arrays, s->state, net->n);
	graph_heap_init(&s->heap, net->n);
	s->heap.ties_by_node = true;
	*out = s;
}

void cost_search_free(struct cost_search *s)
{
	if (s) {
		for (int i = 0; i < 2; i++) {
			vec_fini(&s->routes[i].v);
			vec_fini(&s->routes[i].hops);
		}
		graph_heap_fini(&s->heap);
		free(s->arcs);
		free(s->route_of);
		arrays_fini(&s->arrays);
		free(s);
	}
}

int64_t cost_max_price(const struct cost_search *s)
{
	return s->most;
}

void cost_set_prices(struct cost_search *s, const int64_t *price)
{
	memcpy(s->price, price, (size_t)s->net->m * sizeof(*price));
	s->routes[0].known = s->routes[1].known = false;
}

/* ---- cheapest paths ---- */

static bool holds(const struct cost_search *s, const struct cost_routes *w, int u)
{
	return w->back ? s->net->reduces[u] : s->net->copies[u];
}

/* Searches from u; routes: through what holds no data only, NULL: through all. Returns how many
 * nodes were reached. */
static int search_from(struct cost_search *s, int u, bool back, const struct cost_routes *routes)
{
	const struct cost_net *net = s->net;
	const int32_t *first = back ? net->in_first : net->out_first;
	const int32_t *arcs = back ? net->in : net->out, *head = back ? net->src : net->dst;
	int n = 0, from = u;

	graph_heap_reset(&s->heap);
	graph_heap_put(&s->heap, u, 0);
	while ((u = graph_heap_take(&s->heap)) >= 0) {
		s->order[n++] = u;
		if (routes && u != from && holds(s, routes, u)) {
			continue;
		}
		for (int i = first[u]; i < first[u + 1]; i++) {
			int a = arcs[i], v = head[a];
			double dist = s->heap.dist[u] + (double)(s->price[a] * s->ties + 1);

			if (dist < s->heap.dist[v]) {
				s->pred[v] = a;
				graph_heap_put(&s->heap, v, dist);
			}
		}
	}
	return n;
}

/* Routes from one node to all that it reaches through others. */
static void add_routes(struct cost_search *s, struct cost_routes *w, int u)
{
	const int32_t *tail = w->back ? s->net->dst : s->net->src;
	int n = search_from(s, u, w->back, w);

	for (int i = 1; i < n; i++) {
		int v = s->order[i];
		struct cost_route route = { u, v, (int32_t)w->hops.n, 0, (int64_t)s->heap.dist[v] };

		if (!holds(s, w, v)) {
			continue;
		}
		for (int x = v; x != u; x = tail[s->pred[x]]) {
			vec_push(&w->hops, s->pred[x]);
			route.n++;
		}
		vec_push(&w->v, route);
	}
}

static void find_routes(struct cost_search *s, struct cost_routes *w)
{
	size_t need;

	if (w->known) {
		return;
	}
	w->v.n = w->hops.n = 0;
	for (int u = 0; u < s->net->n; u++) {
		if (holds(s, w, u)) {
			add_routes(s, w, u);
		}
	}
	need = w->v.n + (size_t)s->net->n;
	if (need > s->room) {
		free(s->arcs);
		free(s->route_of);
		s->arcs = x_alloc(need, sizeof(*s->arcs));
		s->route_of = x_alloc(need, sizeof(*s->route_of));
		s->room = need;
	}
	w->known = true;
}

/* ---- trees ---- */

static int64_t price_of_route(const struct cost_search *s, const struct cost_route *w, bool free)
{
	int64_t price = free ? w->n : w->price;

	/* Ties: few hops, and near the root. */
	return (price + (w->from == s->root ? 0 : MAX_PATH / 2)) * s->net->weight[w->to];
}

/* The tree of least cost for what is decided, its routes in s->via; *bound: what it costs. */
static int find_tree(struct cost_search *s, const struct cost_routes *w, int64_t *bound,
		     struct err *err)
{
	int m = 0, rc;

	for (size_t i = 0; i < w->v.n; i++) {
		const struct cost_route *x = &w->v.v[i];

		if (s->state[x->from] != OUT && s->state[x->to] != OUT) {
			s->arcs[m] = (struct graph_cost_arc){
				x->from, x->to, price_of_route(s, x, s->state[x->to] == OPEN)
			};
			s->route_of[m++] = (int32_t)i;
		}
	}
	for (int u = 0; u < s->net->n; u++) {
		if (s->state[u] == OUT) {
			s->arcs[m] = (struct graph_cost_arc){ s->root, u, 0 };
			s->route_of[m++] = -1;
		}
	}
	rc = graph_min_tree(s->net->n, s->arcs, m, s->root, s->via, bound, err);
	for (int u = 0; u < s->net->n && rc == 0; u++) {
		s->via[u] = s->via[u] < 0 ? -1 : s->route_of[s->via[u]];
	}
	*bound /= s->ties;
	return rc;
}

/* Marks what leads to terminals; the price of the tree without the rest, and the highest
 * node there that is open, -1: none. */
static int64_t judge_tree(struct cost_search *s, const struct cost_routes *w, int *open)
{
	const struct cost_net *net = s->net;
	int64_t sum = 0, highest = -1;

	*open = -1;
	memset(s->needed, 0, (size_t)net->n * sizeof(*s->needed));
	s->needed[s->root] = true;
	for (int t = 0; t < net->n; t++) {
		for (int u = t; (net->terminal[t] || u != t) && !s->needed[u];
		     u = w->v.v[s->via[u]].from) {
			int64_t price = w->v.v[s->via[u]].price / s->ties;

			s->needed[u] = true;
			sum += price * net->weight[u];
			if (s->state[u] == OPEN && price > highest) {
				highest = price;
				*open = u;
			}
		}
	}
	return sum;
}

/* Whether all that is decided of two parts is alike, and they stand for as many. */
static bool are_parts_alike(const struct cost_search *s, int p, int q)
{
	const struct cost_net *net = s->net;
	int8_t states[2][64];
	int64_t weight[2] = { 0, 0 };

	if (p == q || p < 1 || q < 1 || net->part_size > 64) {
		return false;
	}
	for (int u = 0; u < net->n; u++) {
		int side = net->part[u] == p ? 0 : net->part[u] == q ? 1 : -1;

		if (side >= 0) {
			states[side][net->place[u]] = s->state[u];
			weight[side] = net->weight[u];
		}
	}
	return weight[0] == weight[1] &&
	       memcmp(states[0], states[1], (size_t)net->part_size) == 0;
}

/* Leaves out u, and what is like it: one of them could be u. before: states to go back to. */
static void leave_out(struct cost_search *s, int u, const int8_t *before)
{
	const struct cost_net *net = s->net;

	for (int v = 0; v < net->n; v++) {
		if (before[v] == OPEN && net->place[v] == net->place[u] && v != u &&
		    net->part[v] >= 0 && are_parts_alike(s, net->part[u], net->part[v])) {
			s->state[v] = 3;	/* OUT once all are compared */
		}
	}
	for (int v = 0; v < net->n; v++) {
		if (s->state[v] == 3 || v == u) {
			s->state[v] = OUT;
		}
	}
}

static int branch(struct cost_search *s, const struct cost_routes *w, struct err *err)
{
	int64_t bound = 0, price;
	int8_t *before;
	int open, rc = find_tree(s, w, &bound, err);

	if (rc) {
		/* What was left out is needed. */
		if (rc == WEFT_EINFEASIBLE && s->best < INT64_MAX) {
			err_clear(err);
			return 0;
		}
		return rc;
	}
	if (bound >= s->best) {
		return 0;
	}
	price = judge_tree(s, w, &open);
	if (price < s->best) {
		s->best = price;
		for (int u = 0; u < s->net->n; u++) {
			s->best_via[u] = s->needed[u] && u != s->root ? s->via[u] : -1;
		}
	}
	if (open < 0 || bound >= s->best) {
		return 0;
	}
	if (++s->branches > s->max_branches) {
		s->missed = bound < s->missed ? bound : s->missed;
		return 0;
	}
	before = x_alloc((size_t)s->net->n, 1);
	memcpy(before, s->state, (size_t)s->net->n);
	s->state[open] = IN;
	rc = branch(s, w, err);
	memcpy(s->state, before, (size_t)s->net->n);
	if (rc == 0) {
		leave_out(s, open, before);
		rc = branch(s, w, err);
		memcpy(s->state, before, (size_t)s->net->n);
	}
	free(before);
	return rc;
}

/* The cheapest tree of a root, its routes in s->best_via. */
static int cheapest_tree(struct cost_search *s, struct cost_routes *w, int root, int64_t *price,
			 int64_t *least, struct err *err)
{
	int rc;

	find_routes(s, w);
	s->root = root;
	s->branches = 0;
	s->max_branches = MIN_BRANCHES + MAX_SEARCHED / ((int)w->v.n + 1);
	s->max_branches = s->max_branches < MAX_BRANCHES ? s->max_branches : MAX_BRANCHES;
	s->best = s->missed = INT64_MAX;
	for (int u = 0; u < s->net->n; u++) {
		s->state[u] = s->net->terminal[u] ? IN : holds(s, w, u) ? OPEN : OUT;
	}
	rc = branch(s, w, err);
	if (rc == WEFT_EINFEASIBLE) {
		return err_set(err, WEFT_EINFEASIBLE, "some terminals cannot be reached from "
			       "others");
	}
	*price = s->best;
	*least = s->missed < s->best ? s->missed : s->best;
	return rc;
}

/* ---- columns ---- */

static struct cost_column *new_column(const struct cost_net *net, int root)
{
	struct cost_column *c = x_new(1, sizeof(*c));

	c->block = -1;
	c->root = root;
	c->uses = x_new((size_t)net->n_rows + 1, sizeof(*c->uses));
	return c;
}

static void use_arc(const struct cost_net *net, struct cost_column *c, int a, int64_t times)
{
	c->cost += net->cost[a] * times;
	for (int i = net->row_first[a]; i < net->row_first[a + 1]; i++) {
		c->uses[net->row[i]] += times;
	}
}

/* Adds the tree of s->best_via to a column. */
static void take_tree(const struct cost_search *s, const struct cost_routes *w,
		      struct cost_column *c)
{
	const struct cost_net *net = s->net;

	for (int u = 0; u < net->n; u++) {
		const struct cost_route *x = s->best_via[u] < 0 ? NULL : &w->v.v[s->best_via[u]];
		struct cost_link link;

		if (!x) {
			continue;
		}
		link = (struct cost_link){ w->back ? x->to : x->from, w->back ? x->from : x->to,
					   (int32_t)c->hops.n, x->n };
		for (int i = 0; i < x->n; i++) {
			int a = w->hops.v[x->first + (w->back ? i : x->n - 1 - i)];

			use_arc(net, c, a, net->weight[u]);
			vec_push(&c->hops, a);
		}
		if (w->back) {
			vec_push(&c->in, link);
		} else {
			vec_push(&c->out, link);
		}
	}
}

void cost_column_of_tree(const struct cost_net *net, int root, const struct coll_forest_tree *tree,
			 struct cost_column **column)
{
	struct cost_column *c = new_column(net, root);

	for (int a = 0; a < net->m; a++) {
		int v = tree->inwards ? net->src[a] : net->dst[a];
		struct cost_link link = { net->src[a], net->dst[a], (int32_t)c->hops.n, 1 };

		if (tree->via[v] != net->origin[a]) {
			continue;
		}
		use_arc(net, c, a, 1);
		vec_push(&c->hops, a);
		if (tree->inwards) {
			vec_push(&c->in, link);
		} else {
			vec_push(&c->out, link);
		}
	}
	*column = c;
}

/* Cheapest paths between the root and all terminals. */
static int price_paths(struct cost_search *s, bool back, int root, struct cost_column *c,
		       int64_t *least, struct err *err)
{
	const struct cost_net *net = s->net;
	const int32_t *tail = back ? net->dst : net->src;
	int n = search_from(s, root, back, NULL);
	int64_t *through = x_new((size_t)net->n + 1, sizeof(*through));

	*least = 0;
	for (int u = 0; u < net->n; u++) {
		if (net->terminal[u] && u != root && !(s->heap.dist[u] < INFINITY)) {
			free(through);
			return err_set(err, WEFT_EINFEASIBLE, "some terminals cannot be reached "
				       "from others");
		}
	}
	for (int i = n - 1; i > 0; i--) {
		int u = s->order[i], a = s->pred[u];

		through[u] += net->terminal[u] ? net->weight[u] : 0;
		through[tail[a]] += through[u];
		*least += s->price[a] * through[u];
		if (c && through[u] > 0) {
			use_arc(net, c, a, through[u]);
		}
	}
	free(through);
	return 0;
}

/* The tree, or two, of one root of the net. */
static int price_trees(struct cost_search *s, enum cost_shape shape, int root,
		       struct cost_column *c, int64_t *price, int64_t *least, struct err *err)
{
	int rc = 0;

	*price = *least = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		struct cost_routes *w = &s->routes[i];
		int64_t p = 0, l = 0;

		if (shape != COST_BOTH && (shape == COST_IN) != w->back) {
			continue;
		}
		rc = cheapest_tree(s, w, root, &p, &l, err);
		if (rc == 0 && c) {
			take_tree(s, w, c);
		}
		*price += p;
		*least += l;
	}
	return rc;
}

static int price_root(struct cost_search *s, const struct cost_block *b, int root,
		      struct cost_column *c, int64_t *price, int64_t *least, struct err *err)
{
	int rc;

	if (b->shape == COST_PATHS_OUT || b->shape == COST_PATHS_IN) {
		rc = price_paths(s, b->shape == COST_PATHS_IN, s->net->roots[root], c, least, err);
		*price = *least;
		return rc;
	}
	return price_trees(s, b->shape, s->net->roots[root], c, price, least, err);
}

int cost_price(struct cost_search *s, const struct cost_block *b, struct cost_column **column,
	       int64_t *least, struct err *err)
{
	int64_t best = INT64_MAX;
	int rc = 0;

	*least = INT64_MAX;
	if (column) {
		*column = NULL;
	}
	for (int r = b->first_root; r < b->first_root + b->n_roots && rc == 0; r++) {
		struct cost_column *c = column ? new_column(s->net, r) : NULL;
		int64_t price = 0, l = 0;

		rc = price_root(s, b, r, c, &price, &l, err);
		if (rc == 0 && column && price < best) {
			cost_column_free(*column);
			*column = c;
			best = price;
			c = NULL;
		}
		*least = rc == 0 && l < *least ? l : *least;
		cost_column_free(c);
	}
	if (rc && column) {
		cost_column_free(*column);
		*column = NULL;
	}
	return rc;
}
