/* Minimal-split: the nodes of all shortest paths, whose levels are distances. */
#include "collective/embedding/private.h"

int embed_minimal_init(struct embed_minimal *m, const struct topo *t, struct err *err)
{
	*m = (struct embed_minimal){ .t = t, .src = -1 };
	arrays_add(&m->arrays, m->dist, topo_n(t));
	return m->arrays.failed ? err_nomem(err) : 0;
}

/* The tails of the arcs into a node that are on shortest paths. */
static int mark_before(const struct embed_minimal *m, struct embed_paths *p, int node,
		       struct err *err)
{
	const int32_t *in;
	int n = topo_in(m->t, node, &in), rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		int u = topo_arc(m->t, in[i])->src;

		if (p->level[u] < 0 && m->dist[u] >= 0 && m->dist[u] + 1 == m->dist[node]) {
			rc = embed_mark(p, u, m->dist[u], err);
		}
	}
	return rc;
}

int embed_minimal(struct embed_minimal *m, struct embed_paths *p, int src, int dst,
		  struct err *err)
{
	int rc;

	if (m->src != src) {
		topo_bfs(m->t, src, m->dist);
		m->src = src;
	}
	if (m->dist[dst] < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "the physical digraph has no path from node "
			       "%d to node %d", src, dst);
	}
	rc = embed_mark(p, dst, m->dist[dst], err);
	for (size_t i = 0; i < p->marked.n && !rc; i++) {
		rc = mark_before(m, p, p->marked.v[i], err);
	}
	return rc;
}
