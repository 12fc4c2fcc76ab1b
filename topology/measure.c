/* SPDX-License-Identifier: Apache-2.0 */
/* Distances between terminals, degrees and symmetry of arcs; see topology.h. The searches keep
 * their queues on the stack (node numbers are bounded): they cannot fail. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "topology/private.h"

int topo_max_degree(const struct topo *t)
{
	int most = 0;

	assert(t->frozen);
	for (int u = 0; u < t->n; u++) {
		int out = t->out_first[u + 1] - t->out_first[u];
		int in = t->in_first[u + 1] - t->in_first[u];

		most = out > most ? out : most;
		most = in > most ? in : most;
	}
	return most;
}

int topo_regular_degree(const struct topo *t)
{
	int degree;

	assert(t->frozen);
	degree = t->out_first[1];
	for (int u = 0; u < t->n; u++) {
		if (t->out_first[u + 1] - t->out_first[u] != degree ||
		    t->in_first[u + 1] - t->in_first[u] != degree) {
			return 0;
		}
	}
	return degree;
}

/* Breadth-first search that returns how many terminals it reached and the largest
 * distance among them. */
static int search(const struct topo *t, int src, int32_t *dist, int *farthest)
{
	int32_t queue[TOPO_MAX_NODES];
	int head = 0, tail = 0, terminals = 0;

	memset(dist, 0xff, (size_t)t->n * sizeof(*dist));
	dist[src] = 0;
	queue[tail++] = src;
	while (head < tail) {
		int u = queue[head++];

		if (t->nodes[u].kind == TOPO_TERMINAL) {
			*farthest = dist[u];
			terminals++;
		}
		for (int a = t->out_first[u]; a < t->out_first[u + 1]; a++) {
			int v = t->arcs.v[a].dst;

			if (dist[v] < 0) {
				dist[v] = dist[u] + 1;
				queue[tail++] = v;
			}
		}
	}
	return terminals;
}

void topo_bfs(const struct topo *t, int src, int32_t *dist)
{
	int farthest;

	assert(t->frozen && src >= 0 && src < t->n);
	search(t, src, dist, &farthest);
}

/* Where nodes are alike, one is as far from the others as any: the first nodes stand for all. */
static int count_sources(const struct topo *t)
{
	if (t->cayley && t->plain) {
		return 1;
	}
	return t->group && t->plain ? topo_group_orbits(t->group) : t->n;
}

/* Distances in a product are sums of those in its factors. */
static int product_diameter(const struct topo *t, topo_on_source *on_source, void *arg)
{
	int diameter = 0;

	for (size_t i = 0; i < t->factors.n; i++) {
		int factor = topo_diameter_told(t->factors.v[i], on_source, arg);

		if (factor < 0) {
			return -1;
		}
		diameter += factor * t->factor_times;
	}
	return diameter;
}

/* By a search from each source. */
static int searched_diameter(const struct topo *t, topo_on_source *on_source, void *arg)
{
	int32_t dist[TOPO_MAX_NODES];
	int diameter = 0, farthest = 0, sources = count_sources(t);

	for (int u = 0; u < sources; u++) {
		if (t->nodes[u].kind != TOPO_TERMINAL) {
			continue;
		}
		if (search(t, u, dist, &farthest) < t->ranks) {
			return -1;
		}
		diameter = farthest > diameter ? farthest : diameter;
		if (on_source) {
			on_source(arg, u + 1, sources);
		}
	}
	return diameter;
}

int topo_diameter_told(const struct topo *t, topo_on_source *on_source, void *arg)
{
	assert(t->frozen);
	return t->factors.n > 0 ? product_diameter(t, on_source, arg)
				: searched_diameter(t, on_source, arg);
}

int topo_diameter(const struct topo *t)
{
	return topo_diameter_told(t, NULL, NULL);
}

/* The shortest cycle through src: found where two nodes that src reaches have an arc between
 * them. Of symmetric digraphs an arc is not followed back: `up` is the arc by which a
 * node was reached. The least over all nodes is the girth. */
static int shortest_cycle(const struct topo *t, int src, bool symmetric, int32_t *dist,
			  int32_t *up, int32_t *queue)
{
	int least = INT_MAX, end = 1;

	memset(dist, -1, (size_t)t->n * sizeof(*dist));
	dist[src] = 0;
	up[src] = -1;
	queue[0] = src;
	for (int k = 0; k < end; k++) {
		int u = queue[k], first, n = topo_out(t, u, &first);

		for (int a = first; a < first + n; a++) {
			int v = topo_arc(t, a)->dst, length = 0;
			bool back = symmetric && up[u] >= 0 && topo_arc(t, up[u])->src == v;

			if (dist[v] < 0) {
				dist[v] = dist[u] + 1;
				up[v] = a;
				queue[end++] = v;
			} else if (symmetric && !back) {
				length = dist[u] + dist[v] + 1;
			} else if (!symmetric && v == src) {
				length = dist[u] + 1;
			}
			least = length > 0 && length < least ? length : least;
		}
	}
	return least;
}

int topo_girth(const struct topo *t)
{
	size_t n = (size_t)t->n;
	int32_t *room = x_alloc(3 * n, sizeof(*room));
	bool symmetric = topo_is_symmetric(t);
	int sources = count_sources(t), girth = INT_MAX;

	assert(t->frozen);
	for (int u = 0; u < sources; u++) {
		int length = shortest_cycle(t, u, symmetric, room, room + n, room + 2 * n);

		girth = length < girth ? length : girth;
	}
	free(room);
	return girth == INT_MAX ? 0 : girth;
}

/* An arc out of some node, or into it and reversed. */
struct topo_reversible {
	int32_t dst, arc;
	int64_t cap;
};

ORDER_BY(compare_by_target, struct topo_reversible, dst, cap, arc)

/* Do the arcs out of u, sorted by target and capacity, match those into u,
 * reversed? `room` holds the in-degree plus the out-degree; reverse[arc] is
 * filled for arcs out of u. */
static bool is_node_symmetric(const struct topo *t, int u, struct topo_reversible *room,
			      int32_t *reverse)
{
	const int32_t *in;
	int first, n = topo_out(t, u, &first);
	struct topo_reversible *reversed = room + n;

	if (topo_in(t, u, &in) != n) {
		return false;
	}
	for (int i = 0; i < n; i++) {
		const struct topo_arc *out_of = topo_arc(t, first + i), *into = topo_arc(t, in[i]);

		room[i] = (struct topo_reversible){ out_of->dst, first + i, out_of->cap };
		reversed[i] = (struct topo_reversible){ into->src, in[i], into->cap };
	}
	qsort(room, (size_t)n, sizeof(*room), compare_by_target);
	qsort(reversed, (size_t)n, sizeof(*room), compare_by_target);
	for (int i = 0; i < n; i++) {
		if (room[i].dst != reversed[i].dst || room[i].cap != reversed[i].cap) {
			return false;
		}
		reverse[room[i].arc] = reversed[i].arc;
	}
	return true;
}

bool topo_is_symmetric(const struct topo *t)
{
	struct topo_reversible *room =
		x_alloc(2 * (size_t)topo_max_degree(t) + 1, sizeof(*room));
	int32_t *reverse = x_alloc(t->arcs.n + 1, sizeof(*reverse));
	bool symmetric = true;

	for (int u = 0; symmetric && u < t->n; u++) {
		symmetric = is_node_symmetric(t, u, room, reverse);
	}
	symmetric = symmetric && (t->limits.n == 0 || topo_maps_limits(t, reverse));
	free(room);
	free(reverse);
	return symmetric;
}
