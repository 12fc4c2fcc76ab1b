/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cheapest paths of the kinds that a plain shortest path does not know: within
 * the loss budget, and pairs without common link. Prices are doubles; integer
 * prices of a certificate and their sums are exact in them.
 *
 * Within the budget: labels (price, loss) by price, a label worse in both
 * than another of its node is dropped. Pairs: the second of two augmenting
 * paths (Suurballe 1974), by Bellman-Ford on graph_queue, as returned arcs cost
 * less than nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

#define MAX_LABELS 200000	/* of one path; beyond, the budget is ignored */

/* A path from the source to `node`: its sums, its last arc and the label
 * before. Labels are never taken out of the list while one path is
 * searched, so that their numbers stay. */
struct path_label {
	double price;
	int64_t loss;
	int32_t node, arc, from;	/* from: label before */
	int32_t next;			/* kept label of the same node */
};

/* By the pair of nodes, then by arc. */
static int by_link(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	if (x[0] != y[0]) {
		return x[0] < y[0] ? -1 : 1;
	}
	return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Arcs are sorted by their two nodes and numbered in that order. */
void mesh_links(const struct rwa_mesh *m, int32_t *link)
{
	int64_t *key = x_alloc(2 * m->arcs.n + 1, sizeof(*key));
	int32_t n = -1;

	for (size_t e = 0; e < m->arcs.n; e++) {
		int64_t a = m->arcs.v[e].src, b = m->arcs.v[e].dst;

		key[2 * e] = a < b ? a << 32 | b : b << 32 | a;
		key[2 * e + 1] = (int64_t)e;
	}
	qsort(key, m->arcs.n, 2 * sizeof(*key), by_link);
	for (size_t i = 0; i < m->arcs.n; i++) {
		n += i == 0 || key[2 * i] != key[2 * i - 2];
		link[key[2 * i + 1]] = n;
	}
	free(key);
}

/* O(nodes + arcs log arcs). */
void mesh_paths_init(struct mesh_paths *w, const struct rwa_mesh *m)
{
	size_t n = m->nodes.n, e = m->arcs.n + 1;

	*w = (struct mesh_paths){ .m = m, .budget = INT64_MAX };
	if (m->budget_mdb != RWA_MESH_NO_LIMIT) {
		w->budget = m->budget_mdb - m->add_mdb - m->drop_mdb;
	}
	arrays_add(&w->arrays, w->fibres, e);
	arrays_add(&w->arrays, w->link, e);
	arrays_add(&w->arrays, w->state, e);
	arrays_add(&w->arrays, w->min, n);
	arrays_add(&w->arrays, w->dist, n);
	arrays_add(&w->arrays, w->via, n);
	arrays_add(&w->arrays, w->top, n);
	arrays_add(&w->arrays, w->arcs, 2 * n);
	graph_queue_init(&w->queue, (int)n);
	adjacency_init(&w->out, m, false);
	adjacency_init(&w->in, m, true);
	mesh_links(m, w->link);
	mesh_open_fibres(m, w->fibres);
}

void mesh_paths_fini(struct mesh_paths *w)
{
	arrays_fini(&w->arrays);
	graph_queue_fini(&w->queue);
	vec_fini(&w->heap);
	vec_fini(&w->labels);
	adjacency_fini(&w->out);
	adjacency_fini(&w->in);
}

/* ---- within the budget ---- */

/* Least loss from every node to dst, what the path begins with not counted. */
static void min_losses(struct mesh_paths *w, int32_t dst)
{
	int32_t n = (int32_t)w->m->nodes.n, v;
	int64_t *min;

	arrays_add(&w->arrays, min, n);
	for (v = 0; v < n; v++) {
		min[v] = INT64_MAX;
	}
	min[dst] = 0;
	graph_queue_put(&w->queue, dst);
	while ((v = graph_queue_take(&w->queue)) >= 0) {
		int64_t pass = v == dst ? 0 : w->m->nodes.v[v].pass_mdb;

		for (int32_t k = w->in.first[v]; k < w->in.first[v + 1]; k++) {
			int32_t e = w->in.arc[k], u = w->m->arcs.v[e].src;
			int64_t l = min[v] + pass + w->m->arcs.v[e].loss_mdb;

			if (w->fibres[e] && l < min[u]) {
				min[u] = l;
				graph_queue_put(&w->queue, u);
			}
		}
	}
	w->min[dst] = min;
}

static inline bool is_before(int32_t a, int32_t b, const struct path_label *by)
{
	const struct path_label *x = &by[a], *y = &by[b];

	return x->price < y->price || (x->price == y->price && x->loss < y->loss);
}

HEAP_FUNCTIONS_BY(label_heap, int32_t, const struct path_label *, is_before, HEAP_NOT_REPORTED)

/* Adds a label unless the budget or another label of the node forbids it. */
static void add_label(struct mesh_paths *w, const struct path_label *l, const int64_t *min)
{
	if (min[l->node] == INT64_MAX || l->loss + min[l->node] > w->budget) {
		return;
	}
	for (int32_t k = w->top[l->node]; k >= 0; k = w->labels.v[k].next) {
		if (w->labels.v[k].price <= l->price && w->labels.v[k].loss <= l->loss) {
			return;
		}
	}
	vec_push(&w->labels, *l);
	w->labels.v[w->labels.n - 1].next = w->top[l->node];
	w->top[l->node] = (int32_t)w->labels.n - 1;
	label_heap_push(&w->heap, w->labels.v, (int32_t)w->labels.n - 1);
}

/* Goes on from a label along every open arc. */
static void expand(struct mesh_paths *w, const double *price, int32_t src,
		   int32_t at, const int64_t *min)
{
	struct path_label l = w->labels.v[at];
	int64_t pass = l.node == src ? 0 : w->m->nodes.v[l.node].pass_mdb;

	for (int32_t k = w->out.first[l.node]; k < w->out.first[l.node + 1]; k++) {
		int32_t e = w->out.arc[k];
		struct path_label next = {
			.price = l.price + price[e],
			.loss = l.loss + pass + w->m->arcs.v[e].loss_mdb,
			.node = w->m->arcs.v[e].dst, .arc = e, .from = at,
		};

		if (w->fibres[e]) {
			add_label(w, &next, min);
		}
	}
}

/* Labels leave the heap by price, so that the first at dst is the cheapest
 * path within the budget. */
int mesh_path_within(struct mesh_paths *w, const double *price, int32_t src,
		    int32_t dst, double *cost)
{
	struct path_label start = { .node = src, .arc = -1, .from = -1 };
	int32_t goal = -1;

	if (!w->min[dst]) {
		min_losses(w, dst);
	}
	w->n_arcs = 0;
	w->labels.n = 0;
	w->heap.n = 0;
	*cost = INFINITY;
	memset(w->top, 0xff, w->m->nodes.n * sizeof(*w->top));
	add_label(w, &start, w->min[dst]);
	while (w->heap.n && w->labels.n < MAX_LABELS) {
		int32_t at = label_heap_pop(&w->heap, w->labels.v);

		if (w->labels.v[at].node == dst) {
			goal = at;
			break;
		}
		expand(w, price, src, at, w->min[dst]);
	}
	if (goal < 0 && w->heap.n) {
		return WEFT_ELIMIT;
	}
	if (goal >= 0) {
		*cost = w->labels.v[goal].price;
		for (; w->labels.v[goal].arc >= 0; goal = w->labels.v[goal].from) {
			w->arcs[w->n_arcs++] = w->labels.v[goal].arc;
		}
	}
	return 0;
}

int64_t mesh_path_loss(const struct mesh_paths *w, int32_t src, const int32_t *arcs, int32_t n)
{
	int64_t loss = 0;

	for (int32_t i = 0; i < n; i++) {
		const struct rwa_mesh_arc *a = &w->m->arcs.v[arcs[i]];

		loss += a->loss_mdb +
			(a->src == src ? 0 : w->m->nodes.v[a->src].pass_mdb);
	}
	return loss;
}

/* ---- pairs ---- */

/* state[e]: 1 the first path uses e, 2 it uses another arc of the link. */
enum { UNUSED, USED, CLOSED };

/* Reaches `to` from v by an arc that costs d. */
static void relax(struct mesh_paths *w, int32_t v, int32_t to, int32_t arc, double d)
{
	/* Sums in another order differ in the last digits. */
	if (w->dist[v] + d < w->dist[to] - 1e-12) {
		w->dist[to] = w->dist[v] + d;
		w->via[to] = arc;
		graph_queue_put(&w->queue, to);
	}
}

/* Shortest augmenting path; via: the arc taken, against its direction where
 * it is USED. */
static bool augment(struct mesh_paths *w, const double *price, int32_t src, int32_t dst)
{
	int32_t v;

	for (v = 0; v < (int32_t)w->m->nodes.n; v++) {
		w->dist[v] = INFINITY;
		w->via[v] = -1;
	}
	w->dist[src] = 0;
	graph_queue_put(&w->queue, src);
	while ((v = graph_queue_take(&w->queue)) >= 0) {
		for (int32_t k = w->out.first[v]; k < w->out.first[v + 1]; k++) {
			int32_t e = w->out.arc[k];

			if (w->fibres[e] && w->state[e] == UNUSED) {
				relax(w, v, w->m->arcs.v[e].dst, e, price[e]);
			}
		}
		for (int32_t k = w->in.first[v]; k < w->in.first[v + 1]; k++) {
			int32_t e = w->in.arc[k];

			if (w->state[e] == USED) {
				relax(w, v, w->m->arcs.v[e].src, e, -price[e]);
			}
		}
	}
	return w->dist[dst] < INFINITY;
}

/* Takes the augmenting path, and closes the links of the paths. */
static void apply(struct mesh_paths *w, int32_t dst)
{
	for (int32_t v = dst; w->via[v] >= 0;) {
		int32_t e = w->via[v];

		if (w->state[e] == USED) {
			w->state[e] = CLOSED;
			v = w->m->arcs.v[e].dst;
		} else {
			w->state[e] = USED;
			v = w->m->arcs.v[e].src;
		}
	}
}

/* Closes every other arc of the links that the first path uses, in either
 * direction, so that the second cannot take them. The first path's own arcs
 * can only be taken backwards, which cancels them. */
static void close_links(struct mesh_paths *w)
{
	const struct mesh_adjacency *const sides[] = { &w->out, &w->in };

	for (size_t e = 0; e < w->m->arcs.n; e++) {
		int32_t u = w->m->arcs.v[e].src;

		for (int i = 0; i < 2 && w->state[e] == USED; i++) {
			const struct mesh_adjacency *a = sides[i];

			for (int32_t k = a->first[u]; k < a->first[u + 1]; k++) {
				int32_t f = a->arc[k];

				if (w->link[f] == w->link[e] && w->state[f] == UNUSED) {
					w->state[f] = CLOSED;
				}
			}
		}
	}
}

double mesh_path_pair(struct mesh_paths *w, const double *price, int32_t src, int32_t dst)
{
	double cost = 0;

	memset(w->state, UNUSED, w->m->arcs.n);
	w->n_arcs = 0;
	if (!augment(w, price, src, dst)) {
		return INFINITY;
	}
	apply(w, dst);
	close_links(w);
	if (!augment(w, price, src, dst)) {
		return INFINITY;
	}
	apply(w, dst);
	for (size_t e = 0; e < w->m->arcs.n; e++) {
		if (w->state[e] == USED) {
			cost += price[e];
			w->arcs[w->n_arcs++] = (int32_t)e;
		}
	}
	return cost;
}
