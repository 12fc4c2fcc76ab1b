/* SPDX-License-Identifier: Apache-2.0 */
/* Minimum-cost flow by successive shortest paths in the residual network. */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/graph/private.h"

/* One shortest-path search. */
struct flow_search {
	int64_t *dist;		/* n */
	int *via;		/* n: edge into the node, -1: the source */
	struct graph_queue queue;
};

struct graph_flow *graph_flow_new(int n)
{
	struct graph_flow *f = x_new(1, sizeof(*f));

	f->head = x_alloc((size_t)n, sizeof(*f->head));
	f->n = n;
	for (int i = 0; i < n; i++) {
		f->head[i] = -1;
	}
	return f;
}

void graph_flow_free(struct graph_flow *f)
{
	if (f) {
		free(f->head);
		vec_fini(&f->edges);
		free(f);
	}
}

static void link_edge(struct graph_flow *f, int from, int to, int64_t cap, int64_t cost)
{
	f->edges.v[f->edges.n] = (struct flow_edge){
		.to = to, .next = f->head[from], .left = cap, .cost = cost,
	};
	f->head[from] = (int)f->edges.n++;
}

int graph_flow_add(struct graph_flow *f, int from, int to, int64_t cap,
		   int64_t cost, int *edge, struct err *err)
{
	if (from < 0 || from >= f->n || to < 0 || to >= f->n || cap < 0) {
		return err_set(err, WEFT_EINVAL,
			       "flow edge %d -> %d of capacity %lld", from, to,
			       (long long)cap);
	}
	vec_reserve(&f->edges, 2);
	if (edge) {
		*edge = (int)(f->edges.n / 2);
	}
	link_edge(f, from, to, cap, cost);
	link_edge(f, to, from, 0, -cost);
	return 0;
}

/* Shortest distances from source over edges with room; true if sink is
 * reached. */
static bool find_path(const struct graph_flow *f, struct flow_search *s, int source, int sink)
{
	int u;

	for (int v = 0; v < f->n; v++) {
		s->dist[v] = INT64_MAX;
	}
	s->dist[source] = 0;
	s->via[source] = -1;
	graph_queue_put(&s->queue, source);
	while ((u = graph_queue_take(&s->queue)) >= 0) {
		for (int e = f->head[u]; e >= 0; e = f->edges.v[e].next) {
			const struct flow_edge *x = &f->edges.v[e];
			int64_t dist = s->dist[u] + x->cost;

			if (x->left > 0 && dist < s->dist[x->to]) {
				s->dist[x->to] = dist;
				s->via[x->to] = e;
				graph_queue_put(&s->queue, x->to);
			}
		}
	}
	return s->dist[sink] != INT64_MAX;
}

/* Fills the path up; what that was. */
static int64_t augment(struct graph_flow *f, const int *via, int sink)
{
	int64_t room = INT64_MAX;

	for (int v = sink; via[v] >= 0; v = f->edges.v[via[v] ^ 1].to) {
		if (f->edges.v[via[v]].left < room) {
			room = f->edges.v[via[v]].left;
		}
	}
	for (int v = sink; via[v] >= 0; v = f->edges.v[via[v] ^ 1].to) {
		f->edges.v[via[v]].left -= room;
		f->edges.v[via[v] ^ 1].left += room;
	}
	return room;
}

void graph_flow_run(struct graph_flow *f, int source, int sink, int64_t limit,
		    int64_t *value, int64_t *cost)
{
	struct flow_search s = {
		.dist = x_alloc((size_t)f->n, sizeof(*s.dist)),
		.via = x_alloc((size_t)f->n, sizeof(*s.via)),
	};
	int64_t sent = 0, paid = 0;

	graph_queue_init(&s.queue, f->n);
	while (source != sink && find_path(f, &s, source, sink) && s.dist[sink] < limit) {
		int64_t room = augment(f, s.via, sink);

		sent += room;
		paid += room * s.dist[sink];
	}
	if (value) {
		*value = sent;
	}
	if (cost) {
		*cost = paid;
	}
	graph_queue_fini(&s.queue);
	free(s.dist);
	free(s.via);
}

int64_t graph_flow_on(const struct graph_flow *f, int edge)
{
	return f->edges.v[2 * edge + 1].left;
}
