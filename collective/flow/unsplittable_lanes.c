/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes and layers chosen together. A pair's cheapest
 * path is tried in every layer; when it closes a cycle in all of them, paths
 * are searched over the arcs of a layer with the dependencies left out that
 * have just closed one, and at last only over those that rise in the layer's
 * order, which cannot. The trees that are laid for escape are those of Domke
 * et al.'s Nue routing: with them that last search always ends at the sink.
 */
#include "collective/flow/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/heap.h"

/* Searches of a layer that leave out what closed a cycle, before the one
 * that keeps to the order. */
#define TRIALS 4

/* An arc that is reached, and the least that a path over it can cost. */
struct reached {
	double key;
	int32_t arc;
};

HEAP(reached_heap, struct reached);

struct single_lanes {
	struct single_routes *r;
	struct layer_set *set;
	int n_layers;
	int32_t *layer;		/* n x n, -1: none */

	/* the search over arcs */
	int64_t *turn_first;	/* m + 1: dependencies arc -> arcs out of its
				 * head */
	uint32_t *closed;	/* a dependency: stamp of the layer's visit
				 * that it closed a cycle in */
	uint32_t visit;
	double *rest;		/* n: to the sink, were there no layers */
	double *dist;		/* m */
	int32_t *parent;	/* m: the arc before, -1: the first */
	struct reached_heap heap;	/* room for all turns and arcs */
	bool *settled;		/* m: popped already */
	int32_t *depth;		/* n: in a tree */
	int32_t *path, *kept;	/* longest; of n_path, n_kept */
	int n_path, n_kept;
	int32_t *seen_at;	/* n: stamps */
	int32_t stamp;
	struct arrays arrays;	/* all of these */
};

void single_lanes_free(struct single_lanes *this)
{
	if (!this) {
		return;
	}
	layer_set_free(this->set);
	vec_fini(&this->heap);
	arrays_fini(&this->arrays);
	free(this);
}

static void alloc_search(struct single_lanes *this)
{
	const struct flow_net *net = this->r->net;
	size_t n = (size_t)net->n, m = (size_t)net->m + 1;
	size_t longest = (size_t)this->r->longest + 1;
	int64_t turns = 0;

	arrays_add(&this->arrays, this->turn_first, m);
	for (int a = 0; a < net->m; a++) {
		int v = net->dst[a];

		turns += net->out_first[v + 1] - net->out_first[v];
		this->turn_first[a + 1] = turns;
	}
	arrays_add(&this->arrays, this->closed, turns);
	arrays_add(&this->arrays, this->layer, n * n);
	arrays_add(&this->arrays, this->rest, n);
	arrays_add(&this->arrays, this->settled, m);
	arrays_add(&this->arrays, this->dist, m);
	arrays_add(&this->arrays, this->parent, m);
	arrays_add(&this->arrays, this->depth, n);
	arrays_add(&this->arrays, this->path, longest);
	arrays_add(&this->arrays, this->kept, longest);
	arrays_add(&this->arrays, this->seen_at, n);
	vec_reserve(&this->heap, (size_t)turns + m);
	for (size_t i = 0; i < n * n; i++) {
		this->layer[i] = -1;
	}
}

/* ---- trees for escape ---- */

/* Breadth first from (or to) the root over arcs not `taken`; tree[v] is the
 * arc into (or out of) v. Each node but the root leaves `spare` of its arcs
 * for the other tree, which could not pass it otherwise. The hops of the
 * deepest node, or -1 when not all are reached. */
static int grow_tree(struct single_lanes *this, int root, bool out,
		     const bool *taken, int spare, int32_t *tree)
{
	const struct flow_net *net = this->r->net;
	int32_t *depth = this->depth;
	int n = 0, deepest = 0, u;

	for (int v = 0; v < net->n; v++) {
		tree[v] = depth[v] = -1;
	}
	depth[root] = 0;
	graph_queue_put(&this->r->queue, root);
	while ((u = graph_queue_take(&this->r->queue)) >= 0) {
		int from = out ? net->out_first[u] : net->in_first[u];
		int end = out ? net->out_first[u + 1] : net->in_first[u + 1];
		int left = end - from - (u == root ? 0 : spare);

		n++;
		deepest = depth[u];
		for (int i = from; i < end && left > 0; i++) {
			int a = out ? i : net->in_arcs[i];
			int v = out ? net->dst[a] : net->src[a];

			if (depth[v] < 0 && !taken[a]) {
				depth[v] = depth[u] + 1;
				tree[v] = a;
				graph_queue_put(&this->r->queue, v);
				left--;
			}
		}
	}
	return n == net->n ? deepest : -1;
}

/* Both trees of a root, without an arc in common; how far it is up and down
 * together, or -1. */
static int grow_trees(struct single_lanes *this, int root, bool out_first,
		      bool *taken, int32_t *up, int32_t *down)
{
	const struct flow_net *net = this->r->net;
	int32_t *first = out_first ? down : up;
	int32_t *second = out_first ? up : down;
	int a, b;

	memset(taken, 0, (size_t)net->m * sizeof(*taken));
	a = grow_tree(this, root, out_first, taken, 1, first);
	for (int v = 0; v < net->n && a >= 0; v++) {
		if (first[v] >= 0) {
			taken[first[v]] = true;
		}
	}
	b = a < 0 ? -1 : grow_tree(this, root, !out_first, taken, 0, second);
	return b < 0 || a + b > this->r->longest ? -1 : a + b;
}

/* Every turn that a path up and then down may take. */
static int lay_turns(struct single_lanes *this, const int32_t *up, const int32_t *down)
{
	const struct flow_net *net = this->r->net;
	int rc = 0;

	for (int a = 0; a < net->m && rc == 0; a++) {
		int u = net->src[a], v = net->dst[a];
		bool rises = up[u] == a, falls = down[v] == a;

		for (int b = net->out_first[v]; b < net->out_first[v + 1] && rc == 0; b++) {
			int32_t turn[] = { a, b };
			bool on = rises && up[v] == b;

			if ((on || ((rises || falls) && down[net->dst[b]] == b)) &&
			    net->dst[b] != u) {
				rc = layer_set_add(this->set, 0, turn, 2, NULL);
			}
		}
	}
	return rc;
}

/* The root whose trees are least deep. */
static int lay_escape(struct single_lanes *this, struct err *err)
{
	const struct flow_net *net = this->r->net;
	size_t n = (size_t)net->n;
	int32_t *up = x_alloc(n, sizeof(*up)), *down = x_alloc(n, sizeof(*down));
	bool *taken = x_alloc((size_t)net->m + 1, sizeof(*taken));
	int best = -1, least = 0, rc = 0;

	for (int i = 0; i < 2 * net->n; i++) {
		int deep = grow_trees(this, i / 2, i % 2, taken, up, down);

		if (deep >= 0 && (best < 0 || deep < least)) {
			best = i;
			least = deep;
		}
	}
	if (best < 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no two trees into and "
			     "out of a node without a common arc");
		goto out;
	}
	grow_trees(this, best / 2, best % 2, taken, up, down);
	rc = lay_turns(this, up, down);
	if (rc) {
		rc = err_set(err, WEFT_EINTERNAL, "escape trees close a cycle");
	}
out:
	free(up);
	free(down);
	free(taken);
	return rc;
}

int single_lanes_new(struct single_routes *r, int n_layers, bool escape,
		     struct single_lanes **out, struct err *err)
{
	struct single_lanes *this = x_new(1, sizeof(*this));
	int rc = 0;

	*out = NULL;
	this->r = r;
	this->n_layers = n_layers;
	this->set = layer_set_new(r->net->m, n_layers);
	alloc_search(this);
	if (escape) {
		rc = lay_escape(this, err);
	}
	if (rc) {
		single_lanes_free(this);
	} else {
		*out = this;
	}
	return rc;
}

/* ---- places ---- */

/* The pair's path from the source on, to this->path. */
static void read_path(struct single_lanes *this, size_t pair)
{
	const int32_t *arcs = single_arcs_of(this->r, pair);

	this->n_path = this->r->len[pair];
	for (int i = 0; i < this->n_path; i++) {
		this->path[i] = arcs[this->n_path - 1 - i];
	}
}

static void write_path(struct single_lanes *this, size_t pair)
{
	int32_t *arcs = single_arcs_of(this->r, pair);

	this->r->len[pair] = this->n_path;
	for (int i = 0; i < this->n_path; i++) {
		arcs[i] = this->path[this->n_path - 1 - i];
	}
}

static int add_to(struct single_lanes *this, size_t pair, int k)
{
	int rc = layer_set_add(this->set, k, this->path, this->n_path, NULL);

	if (rc == 0) {
		this->layer[pair] = k;
	}
	return rc;
}

/* Beginning with layer k. */
static int add_to_any(struct single_lanes *this, size_t pair, int k)
{
	int rc = 1;

	for (int i = 0; i < this->n_layers && rc; i++) {
		rc = add_to(this, pair, (k + i) % this->n_layers);
	}
	return rc;
}

bool single_lanes_place(struct single_lanes *this, size_t pair)
{
	read_path(this, pair);
	return add_to_any(this, pair, 0) == 0;
}

int single_lanes_layer(const struct single_lanes *this, size_t pair)
{
	return this->layer[pair];
}

/* ---- search in a layer ---- */

static inline bool is_cheaper(struct reached a, struct reached b)
{
	return a.key < b.key;
}

HEAP_FUNCTIONS(reached_heap, struct reached, is_cheaper)

/* Arc a is reached at this cost from `before`: kept when that helps. */
static void reach_arc(struct single_lanes *this, int a, int before, double d, double enough)
{
	double key = d + this->rest[this->r->net->dst[a]];

	if (d < this->dist[a] * (1 - 1e-12) && key < enough && !this->settled[a]) {
		this->dist[a] = d;
		this->parent[a] = before;
		reached_heap_add(&this->heap, (struct reached){ key, a });
	}
}

/* May a path turn from arc a to arc b? */
static bool may_turn(const struct single_lanes *this, const int32_t *rank,
		     bool strict, int a, int b)
{
	const struct flow_net *net = this->r->net;
	int64_t turn = this->turn_first[a] + b - net->out_first[net->dst[a]];

	return rank[a] < rank[b] || (!strict && this->closed[turn] != this->visit);
}

/* What every node has to go to t at least, by label correction. */
static void measure_rest(struct single_lanes *this, int t)
{
	const struct flow_net *net = this->r->net;
	int v;

	for (v = 0; v < net->n; v++) {
		this->rest[v] = HUGE_VAL;
	}
	this->rest[t] = 0;
	graph_queue_put(&this->r->queue, t);
	while ((v = graph_queue_take(&this->r->queue)) >= 0) {
		for (int i = net->in_first[v]; i < net->in_first[v + 1]; i++) {
			int a = net->in_arcs[i], u = net->src[a];
			double d = this->rest[v] + this->r->weight[a];

			if (d < this->rest[u] * (1 - 1e-12)) {
				this->rest[u] = d;
				graph_queue_put(&this->r->queue, u);
			}
		}
	}
}

/* Cheapest path from s over arcs to t, when below `enough`: its last arc, or
 * -1. A*: what is popped first is what can still be cheapest. */
static int search_arcs(struct single_lanes *this, int k, bool strict, int s, int t, double enough)
{
	const struct flow_net *net = this->r->net;
	const int32_t *rank = layer_set_rank(this->set, k);
	const double *weight = this->r->weight;

	for (int a = 0; a < net->m; a++) {
		this->dist[a] = HUGE_VAL;
		this->settled[a] = false;
	}
	this->heap.n = 0;
	for (int a = net->out_first[s]; a < net->out_first[s + 1]; a++) {
		reach_arc(this, a, -1, weight[a], enough);
	}
	while (this->heap.n > 0) {
		struct reached e = reached_heap_pop(&this->heap);
		int v = net->dst[e.arc];

		if (v == t) {
			return e.arc;
		}
		if (this->settled[e.arc]) {
			continue;	/* reached cheaper before */
		}
		this->settled[e.arc] = true;
		for (int b = net->out_first[v]; b < net->out_first[v + 1]; b++) {
			if (net->dst[b] != s && may_turn(this, rank, strict, e.arc, b)) {
				reach_arc(this, b, e.arc, this->dist[e.arc] + weight[b], enough);
			}
		}
	}
	return -1;
}

/* The path that ends with arc `last`, to this->path; false when it is too
 * long or comes to a node twice. */
static bool trace(struct single_lanes *this, int last)
{
	int n = 0;

	this->stamp++;
	for (int a = last; a >= 0; a = this->parent[a]) {
		int v = this->r->net->dst[a];

		if (++n > this->r->longest || this->seen_at[v] == this->stamp) {
			return false;
		}
		this->seen_at[v] = this->stamp;
	}
	this->n_path = n;
	for (int a = last; a >= 0; a = this->parent[a]) {
		this->path[--n] = a;
	}
	return true;
}

/* A turn of the path that closes a cycle is not taken again in this visit. */
static void close_turn(struct single_lanes *this, int64_t at)
{
	int a = this->path[at - 1], b = this->path[at];
	int first = this->r->net->out_first[this->r->net->dst[a]];

	this->closed[this->turn_first[a] + b - first] = this->visit;
}

/* A path cheaper than *cost in layer k, put there: 0 and its cost; 1 when
 * there is none. */
static int search_layer(struct single_lanes *this, size_t pair, int k, double *cost)
{
	int s = (int)(pair / (size_t)this->r->net->n);
	int t = (int)(pair % (size_t)this->r->net->n);
	int rc = 1;

	this->visit++;
	for (int i = 0; i <= TRIALS && rc == 1; i++) {
		bool strict = i == TRIALS;
		int last = search_arcs(this, k, strict, s, t, *cost);
		int64_t at;
		double d;

		if (last < 0) {
			return 1;
		}
		if (!trace(this, last)) {
			i = i < TRIALS - 1 ? TRIALS - 1 : i;
			continue;
		}
		d = this->dist[last];
		rc = layer_set_add(this->set, k, this->path, this->n_path, &at);
		if (rc == 1) {
			close_turn(this, at);
		} else if (rc == 0) {
			*cost = d;
		}
	}
	return rc;
}

/* The cheapest over all layers, when below `cost`; the pair is placed. */
static int search_layers(struct single_lanes *this, size_t pair, double cost)
{
	int found = -1;

	for (int k = 0; k < this->n_layers; k++) {
		if (search_layer(this, pair, k, &cost)) {
			continue;
		}
		if (found >= 0) {
			layer_set_remove(this->set, found, this->kept, this->n_kept);
		}
		found = k;
		this->n_kept = this->n_path;
		memcpy(this->kept, this->path, (size_t)this->n_path * sizeof(*this->kept));
	}
	if (found < 0) {
		return 1;
	}
	this->layer[pair] = found;
	this->n_path = this->n_kept;
	memcpy(this->path, this->kept, (size_t)this->n_path * sizeof(*this->path));
	return 0;
}

/* The cheapest path of all, in any layer; else one cheaper than `cost`. */
static int find_place(struct single_lanes *this, size_t pair, double cost)
{
	struct single_routes *r = this->r;
	int n = r->net->n, v = (int)(pair % (size_t)n);
	int last = 0;

	single_measure(r, (int)(pair / (size_t)n));
	if (r->dist[v] >= cost * (1 - 1e-12)) {
		return 1;
	}
	for (int u = v; r->parent[u] >= 0; u = r->net->src[r->parent[u]]) {
		last++;
	}
	if (last <= r->longest) {
		this->n_path = last;
		for (int u = v; last > 0; u = r->net->src[r->parent[u]]) {
			this->path[--last] = r->parent[u];
		}
		if (!add_to_any(this, pair, this->layer[pair] < 0 ? 0 : this->layer[pair])) {
			return 0;
		}
	}
	measure_rest(this, v);
	return search_layers(this, pair, cost * (1 - 1e-12));
}

bool single_lanes_move(struct single_lanes *this, size_t pair)
{
	int old = this->layer[pair], rc;
	double cost = HUGE_VAL;

	if (old >= 0) {
		single_count(this->r, pair, -1);
		cost = single_cost(this->r, pair);
		read_path(this, pair);
		layer_set_remove(this->set, old, this->path, this->n_path);
	}
	rc = find_place(this, pair, cost);
	if (rc == 0) {
		write_path(this, pair);
	} else if (old >= 0) {
		/* It was there before, so it closes no cycle. */
		read_path(this, pair);
		add_to(this, pair, old);
	}
	if (old >= 0 || rc == 0) {
		single_count(this->r, pair, 1);
	}
	return rc == 0;
}
