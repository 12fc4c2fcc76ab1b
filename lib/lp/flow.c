/* Successive shortest paths with a queue-based label-correcting search; see
 * flow.h. Edge 2e is edge e of the caller, 2e+1 its residual twin. */
#include "lib/lp/flow.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"

struct edge {
	int to, next;
	int64_t left, cost;
};

struct flow {
	int n;
	int *head;
	VEC(struct edge) edges;
};

/* Labels of one shortest-path search. */
struct search {
	int64_t *dist;
	int *via;	/* edge into the node */
	int *queue;	/* ring buffer of n + 1 */
	bool *queued;
};

int flow_new(int n, struct flow **out, struct err *err)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f || !(f->head = malloc((size_t)n * sizeof(*f->head)))) {
		free(f);
		return err_nomem(err);
	}
	f->n = n;
	for (int i = 0; i < n; i++) {
		f->head[i] = -1;
	}
	*out = f;
	return 0;
}

void flow_free(struct flow *f)
{
	if (f) {
		free(f->head);
		vec_fini(&f->edges);
		free(f);
	}
}

static void link_edge(struct flow *f, int from, int to, int64_t cap,
		      int64_t cost)
{
	f->edges.v[f->edges.n] = (struct edge){
		.to = to, .next = f->head[from], .left = cap, .cost = cost,
	};
	f->head[from] = (int)f->edges.n++;
}

int flow_add(struct flow *f, int from, int to, int64_t cap, int64_t cost,
	     int *edge, struct err *err)
{
	if (from < 0 || from >= f->n || to < 0 || to >= f->n || cap < 0) {
		return err_set(err, WEFT_EINVAL,
			       "flow edge %d -> %d of capacity %lld", from, to,
			       (long long)cap);
	}
	if (vec_reserve(&f->edges, 2)) {
		return err_nomem(err);
	}
	if (edge) {
		*edge = (int)(f->edges.n / 2);
	}
	link_edge(f, from, to, cap, cost);
	link_edge(f, to, from, 0, -cost);
	return 0;
}

/* Shortest distances from source over edges with room; true if sink is
 * reached. */
static bool find_path(const struct flow *f, struct search *s, int source,
		      int sink)
{
	int head = 0, tail = 0, size = f->n + 1;

	for (int i = 0; i < f->n; i++) {
		s->dist[i] = INT64_MAX;
		s->queued[i] = false;
	}
	s->dist[source] = 0;
	s->via[source] = -1;
	s->queue[tail++] = source;
	while (head != tail) {
		int u = s->queue[head];

		head = (head + 1) % size;
		s->queued[u] = false;
		for (int e = f->head[u]; e >= 0; e = f->edges.v[e].next) {
			const struct edge *x = &f->edges.v[e];

			if (x->left == 0 ||
			    s->dist[u] + x->cost >= s->dist[x->to]) {
				continue;
			}
			s->dist[x->to] = s->dist[u] + x->cost;
			s->via[x->to] = e;
			if (!s->queued[x->to]) {
				s->queued[x->to] = true;
				s->queue[tail] = x->to;
				tail = (tail + 1) % size;
			}
		}
	}
	return s->dist[sink] != INT64_MAX;
}

static int64_t push(struct flow *f, const struct search *s, int sink)
{
	int64_t room = INT64_MAX;

	for (int v = sink; s->via[v] >= 0; v = f->edges.v[s->via[v] ^ 1].to) {
		if (f->edges.v[s->via[v]].left < room) {
			room = f->edges.v[s->via[v]].left;
		}
	}
	for (int v = sink; s->via[v] >= 0; v = f->edges.v[s->via[v] ^ 1].to) {
		f->edges.v[s->via[v]].left -= room;
		f->edges.v[s->via[v] ^ 1].left += room;
	}
	return room;
}

int flow_run(struct flow *f, int source, int sink, int64_t limit,
	     int64_t *value, int64_t *cost, struct err *err)
{
	struct search s = {
		.dist = malloc((size_t)f->n * sizeof(*s.dist)),
		.via = malloc((size_t)f->n * sizeof(*s.via)),
		.queue = malloc(((size_t)f->n + 1) * sizeof(*s.queue)),
		.queued = malloc((size_t)f->n * sizeof(*s.queued)),
	};
	int64_t sent = 0, paid = 0;
	int rc = 0;

	if (!s.dist || !s.via || !s.queue || !s.queued) {
		rc = err_nomem(err);
		goto out;
	}
	while (source != sink && find_path(f, &s, source, sink) &&
	       s.dist[sink] < limit) {
		int64_t room = push(f, &s, sink);

		sent += room;
		paid += room * s.dist[sink];
	}
	if (value) {
		*value = sent;
	}
	if (cost) {
		*cost = paid;
	}
out:
	free(s.dist);
	free(s.via);
	free(s.queue);
	free(s.queued);
	return rc;
}

int64_t flow_on(const struct flow *f, int edge)
{
	return f->edges.v[2 * edge + 1].left;
}
