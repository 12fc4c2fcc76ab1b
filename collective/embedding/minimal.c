/* SPDX-License-Identifier: Apache-2.0 */
/* Minimal-split: the nodes of all shortest paths, whose levels are distances. Those from one
 * node serve all to which an automorphism takes it. */
#include <string.h>

#include "collective/embedding/private.h"

int embed_minimal_init(struct embed_minimal *m, const struct topo *t, struct err *err)
{
	*m = (struct embed_minimal){ .t = t, .src = -1 };
	arrays_add(&m->arrays, m->dist, topo_n(t));
	arrays_add(&m->arrays, m->queue, topo_n(t));
	memset(m->dist, -1, (size_t)topo_n(t) * sizeof(*m->dist));
	return topo_group_find(t, &m->symmetry, err);
}

void embed_minimal_fini(struct embed_minimal *m)
{
	arrays_fini(&m->arrays);
	topo_group_free(m->symmetry);
}

static void begin_at(struct embed_minimal *m, int src)
{
	for (int i = 0; i < m->found; i++) {
		m->dist[m->queue[i]] = -1;
	}
	m->found = 1;
	m->done = 0;
	m->src = m->queue[0] = src;
	m->dist[src] = 0;
}

static int image(const struct embed_minimal *m, int node)
{
	return m->by ? topo_group_move(m->symmetry, m->by, node) : node;
}

/* From the source at hand, -1: there is no path. Goes on with the search until it comes to
 * the node, and so to all that are nearer. */
static int32_t distance_to(struct embed_minimal *m, int node)
{
	const struct topo_arc *arcs = topo_arcs(m->t);
	int32_t *dist = m->dist, *queue = m->queue;
	int to = image(m, node), found = m->found;

	while (dist[to] < 0 && m->done < found) {
		int u = queue[m->done++], first, end = topo_out(m->t, u, &first);

		for (int a = first; a < first + end; a++) {
			int v = arcs[a].dst;

			if (dist[v] < 0) {
				dist[v] = dist[u] + 1;
				queue[found++] = v;
			}
		}
	}
	m->found = found;
	return dist[to];
}

/* The tails of the arcs into a node that are on shortest paths. */
static void mark_before(const struct embed_minimal *m, struct embed_paths *p, int node)
{
	const int32_t *in;
	int n = topo_in(m->t, node, &in), level = p->level[node] - 1;

	for (int i = 0; i < n; i++) {
		int u = topo_arc(m->t, in[i])->src;

		if (p->level[u] < 0 && level >= 0 && m->dist[image(m, u)] == level) {
			embed_mark(p, u, level);
		}
	}
}

int embed_minimal(struct embed_minimal *m, struct embed_paths *p, int src, int dst,
		  struct err *err)
{
	int32_t dist;
	int first = src < topo_ranks(m->t) ? topo_group_first(m->symmetry, src) : src;

	m->by = first == src ? 0 : topo_group_between(m->symmetry, src, first);
	if (m->src != first) {
		begin_at(m, first);
	}
	dist = distance_to(m, dst);
	if (dist < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "the physical digraph has no path from node "
			       "%d to node %d", src, dst);
	}
	embed_mark(p, dst, dist);
	for (size_t i = 0; i < p->marked.n; i++) {
		mark_before(m, p, p->marked.v[i]);
	}
	return 0;
}
