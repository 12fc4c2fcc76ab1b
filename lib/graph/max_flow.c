/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maximum flow in phases (Dinic 1970), and the cuts that prove it.
 *
 * Searches go backwards from the sink and stop at the first source, since those
 * who ask here often know many nodes that may serve as one: the sink is then
 * near to some of them, and the search touches what lies between only. For the
 * same reason what was sent is noted, so that it can be taken back without
 * visiting the whole network.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/graph/private.h"

void flow_phases_init(struct flow_phases *s, struct graph_flow *f)
{
	*s = (struct flow_phases){ .f = f, .hubs = f->n };
	arrays_add(&s->arrays, s->source, f->n);
	arrays_add(&s->arrays, s->level, f->n);
	arrays_add(&s->arrays, s->at, f->n);
	arrays_add(&s->arrays, s->queue, f->n);
	for (int v = 0; v < f->n; v++) {
		s->level[v] = -1;
	}
}

void flow_phases_fini(struct flow_phases *s)
{
	arrays_fini(&s->arrays);
	vec_fini(&s->path);
	vec_fini(&s->sent);
}

static void reach(struct flow_phases *s, int v, int level)
{
	s->level[v] = level;
	s->at[v] = s->f->head[v];
	s->queue[s->queued++] = v;
}

/* Levels of the nodes up to the first source, which tells those of all paths of
 * this length from it; false: there is none. */
static bool find_levels(struct flow_phases *s, int sink)
{
	const struct flow_edge *edges = s->f->edges.v;

	s->queued = 0;
	reach(s, sink, 0);
	for (int i = 0; i < s->queued; i++) {
		int v = s->queue[i];

		for (int e = s->f->head[v]; e >= 0; e = edges[e].next) {
			int u = edges[e].to;

			if (edges[e ^ 1].left > 0 && s->level[u] < 0) {
				reach(s, u, s->level[v] + 1);
				if (s->source[u]) {
					return true;
				}
			}
		}
	}
	return false;
}

static void forget_levels(struct flow_phases *s)
{
	for (int i = 0; i < s->queued; i++) {
		s->level[s->queue[i]] = -1;
	}
}

/* One edge away from the sink, from v; false: v is a dead end. */
static bool step_back(struct flow_phases *s, int v, int *next)
{
	const struct flow_edge *edges = s->f->edges.v;

	for (int *e = &s->at[v]; *e >= 0; *e = edges[*e].next) {
		*next = edges[*e].to;
		if (edges[*e ^ 1].left > 0 && s->level[*next] == s->level[v] + 1) {
			s->path.v[s->path.n++] = *e ^ 1;
			return true;
		}
	}
	return false;
}

void flow_add_from_hub(struct graph_flow *f, int hub, int to)
{
	int e = (int)f->edges.n;

	vec_reserve(&f->edges, 2);
	f->edges.v[e] = (struct flow_edge){
		.to = to, .next = FLOW_UNLISTED, .left = INT64_MAX / 4,
	};
	f->edges.v[e + 1] = (struct flow_edge){ .to = hub, .next = f->head[to] };
	f->head[to] = e + 1;
	f->edges.n += 2;
}

/* An edge out of a hub has flow now. */
static void list_edge(struct flow_phases *s, int e)
{
	struct flow_edge *edges = s->f->edges.v;

	if (edges[e].next == FLOW_UNLISTED) {
		edges[e].next = s->f->head[edges[e ^ 1].to];
		s->f->head[edges[e ^ 1].to] = e;
	}
}

/* All that was listed, and so stands before the edge into the hub. */
static void unlist_edges(struct flow_phases *s, int hub)
{
	struct flow_edge *edges = s->f->edges.v;
	int *head = &s->f->head[hub];

	while (edges[*head].next >= 0) {
		int e = *head;

		*head = edges[e].next;
		edges[e].next = FLOW_UNLISTED;
	}
}

/* Fills the path, up to `most`. */
static int64_t fill_path(struct flow_phases *s, int64_t most)
{
	struct flow_edge *edges = s->f->edges.v;

	for (size_t i = 0; i < s->path.n; i++) {
		most = edges[s->path.v[i]].left < most ? edges[s->path.v[i]].left : most;
	}
	for (size_t i = 0; i < s->path.n; i++) {
		edges[s->path.v[i]].left -= most;
		edges[s->path.v[i] ^ 1].left += most;
		s->sent.v[s->sent.n++] = (struct graph_sent){ s->path.v[i], most };
		list_edge(s, s->path.v[i]);
	}
	s->path.n = 0;
	return most;
}

/* Paths along the levels until there is none, or `most` is sent. */
static int64_t block(struct flow_phases *s, int sink, int64_t most)
{
	int v = sink, next = sink;
	int64_t value = 0;

	while (value < most) {
		if (s->source[v]) {
			vec_reserve(&s->sent, s->path.n);
			value += fill_path(s, most - value);
			v = sink;
			continue;
		}
		vec_reserve(&s->path, 1);
		if (step_back(s, v, &next)) {
			v = next;
		} else {
			s->level[v] = -1;
			if (s->path.n == 0) {
				break;
			}
			v = s->f->edges.v[s->path.v[--s->path.n]].to;
		}
	}
	s->path.n = 0;
	return value;
}

int64_t flow_phases_run(struct flow_phases *s, int sink, int64_t most)
{
	int64_t value = 0;
	bool found = true;

	while (value < most && found) {
		found = find_levels(s, sink);
		if (found) {
			value += block(s, sink, most - value);
		}
		forget_levels(s);
	}
	return value;
}

void flow_phases_undo(struct flow_phases *s)
{
	for (size_t i = 0; i < s->sent.n; i++) {
		struct graph_sent sent = s->sent.v[i];
		int from = s->f->edges.v[sent.edge ^ 1].to;

		s->f->edges.v[sent.edge].left += sent.amount;
		s->f->edges.v[sent.edge ^ 1].left -= sent.amount;
		if (from >= s->hubs) {
			unlist_edges(s, from);
		}
	}
	s->sent.n = 0;
}

int64_t graph_flow_max(struct graph_flow *f, int source, int sink, int64_t most)
{
	struct flow_phases s;
	int64_t value = 0;

	flow_phases_init(&s, f);
	if (source != sink) {
		s.source[source] = true;
		value = flow_phases_run(&s, sink, most);
	}
	flow_phases_fini(&s);
	return value;
}

/* Nodes from which the sink can get more. queue: n. */
static void find_side(const struct graph_flow *f, int sink, int *queue, bool *side)
{
	int queued = 1;

	memset(side, 0, (size_t)f->n * sizeof(*side));
	queue[0] = sink;
	side[sink] = true;
	for (int i = 0; i < queued; i++) {
		for (int e = f->head[queue[i]]; e >= 0; e = f->edges.v[e].next) {
			int u = f->edges.v[e].to;

			if (f->edges.v[e ^ 1].left > 0 && !side[u]) {
				side[u] = true;
				queue[queued++] = u;
			}
		}
	}
}

void graph_flow_cut(const struct graph_flow *f, int sink, bool *side)
{
	int *queue = x_alloc((size_t)f->n, sizeof(*queue));

	find_side(f, sink, queue, side);
	free(queue);
}

int graph_flow_of(int n, const struct graph_arc *arcs, int m, struct graph_flow **out,
		  struct err *err)
{
	int rc = 0;

	*out = graph_flow_new(n);
	for (int a = 0; a < m && rc == 0; a++) {
		rc = graph_flow_add(*out, arcs[a].from, arcs[a].to, arcs[a].cap, 0, NULL, err);
	}
	if (rc) {
		graph_flow_free(*out);
		*out = NULL;
	}
	return rc;
}

/* The nodes in the order of a search from root; those that it does not reach
 * are last. */
static void search_order(const struct graph_flow *f, int root, int *order)
{
	int found = 1, rest = f->n;
	bool *seen = x_new((size_t)f->n, sizeof(*seen));

	order[0] = root;
	seen[root] = true;
	for (int i = 0; i < found; i++) {
		for (int e = f->head[order[i]]; e >= 0; e = f->edges.v[e].next) {
			int v = f->edges.v[e].to;

			if (f->edges.v[e].left > 0 && !seen[v]) {
				seen[v] = true;
				order[found++] = v;
			}
		}
	}
	for (int v = 0; v < f->n; v++) {
		if (!seen[v]) {
			order[--rest] = v;
		}
	}
	free(seen);
}

/* A node that receives as much as the least so far may serve as a source for
 * the others: a smaller cut leaves it on the root's side, for else it would cut
 * that node off (as in Hao and Orlin 1994). */
static void min_cut(struct flow_phases *s, const int *order, int sinks, int64_t enough,
		    int64_t *value, bool *side)
{
	*value = INT64_MAX;
	s->source[order[0]] = true;
	for (int i = 1; i < s->f->n && *value >= enough; i++) {
		int64_t flow;

		if (order[i] >= sinks) {
			continue;
		}
		flow = flow_phases_run(s, order[i], *value);
		if (side && flow < *value) {
			find_side(s->f, order[i], s->queue, side);
		}
		flow_phases_undo(s);
		*value = flow;
		s->source[order[i]] = true;
	}
}

int graph_root_cut_side(int n, const struct graph_arc *arcs, int m, int root, int sinks,
			int64_t enough, int64_t *value, bool *side, struct err *err)
{
	struct graph_flow *f = NULL;
	struct flow_phases s;
	int *order;
	int rc = graph_flow_of(n, arcs, m, &f, err);

	if (rc) {
		return rc;
	}
	if (side) {
		memset(side, 0, (size_t)n * sizeof(*side));
	}
	order = x_alloc((size_t)n, sizeof(*order));
	flow_phases_init(&s, f);
	search_order(f, root, order);
	min_cut(&s, order, sinks, enough, value, side);
	flow_phases_fini(&s);
	free(order);
	graph_flow_free(f);
	return 0;
}

int graph_root_cut(int n, const struct graph_arc *arcs, int m, int root, int sinks,
		   int64_t *value, struct err *err)
{
	return graph_root_cut_side(n, arcs, m, root, sinks, INT64_MIN, value, NULL, err);
}
