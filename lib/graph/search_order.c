/* SPDX-License-Identifier: Apache-2.0 */
/* What decides on the order of a shortest-path search. */
#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/graph/graph.h"

void graph_queue_init(struct graph_queue *q, int n)
{
	*q = (struct graph_queue){ .n = n };
	q->ring = x_alloc((size_t)n + 1, sizeof(*q->ring));
	q->waits = x_new((size_t)n, sizeof(*q->waits));
}

void graph_queue_fini(struct graph_queue *q)
{
	free(q->ring);
	free(q->waits);
}

void graph_heap_init(struct graph_heap *h, int n)
{
	size_t nodes = (size_t)n;

	*h = (struct graph_heap){ .n = n };
	h->dist = x_alloc(nodes, sizeof(*h->dist));
	h->place = x_alloc(nodes, sizeof(*h->place));
	vec_reserve(&h->nodes, nodes);
	graph_heap_reset(h);
}

void graph_heap_fini(struct graph_heap *h)
{
	free(h->dist);
	free(h->place);
	vec_fini(&h->nodes);
}

void graph_heap_reset(struct graph_heap *h)
{
	for (int v = 0; v < h->n; v++) {
		h->dist[v] = INFINITY;
		h->place[v] = -1;
	}
	h->nodes.n = 0;
}

static inline bool is_nearer(int32_t u, int32_t v, const struct graph_heap *by)
{
	return by->dist[u] < by->dist[v] ||
	       (by->ties_by_node && by->dist[u] == by->dist[v] && u < v);
}

static inline void set_place(int32_t v, size_t at, const struct graph_heap *by)
{
	by->place[v] = (int32_t)at;
}

HEAP_FUNCTIONS_BY(graph_nodes, int32_t, const struct graph_heap *, is_nearer, set_place)

void graph_heap_put(struct graph_heap *h, int v, double dist)
{
	h->dist[v] = dist;
	if (h->place[v] < 0) {
		graph_nodes_add(&h->nodes, h, v);
	} else {
		graph_nodes_rise(&h->nodes, h, (size_t)h->place[v]);
	}
}

int graph_heap_take(struct graph_heap *h)
{
	int v;

	if (h->nodes.n == 0) {
		return -1;
	}
	v = graph_nodes_pop(&h->nodes, h);
	h->place[v] = -1;
	return v;
}
