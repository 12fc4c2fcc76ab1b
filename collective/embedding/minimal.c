/* Minimal-split: the nodes of all shortest paths, whose levels are distances. Those from one
 * node serve all to which an automorphism takes it. */
#include "collective/embedding/private.h"

int embed_minimal_init(struct embed_minimal *m, const struct topo *t, struct err *err)
{
	*m = (struct embed_minimal){ .t = t, .src = -1 };
	arrays_add(&m->arrays, m->dist, topo_n(t));
	return m->arrays.failed ? err_nomem(err) : topo_group_find(t, &m->symmetry, err);
}

void embed_minimal_fini(struct embed_minimal *m)
{
	arrays_fini(&m->arrays);
	topo_group_free(m->symmetry);
}

/* From the source at hand, -1: there is no path. */
static int32_t distance(const struct embed_minimal *m, int node)
{
	return m->dist[m->by ? topo_group_move(m->symmetry, m->by, node) : node];
}

/* The tails of the arcs into a node that are on shortest paths. */
static int mark_before(const struct embed_minimal *m, struct embed_paths *p, int node,
		       struct err *err)
{
	const int32_t *in;
	int n = topo_in(m->t, node, &in), level = p->level[node] - 1, rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		int u = topo_arc(m->t, in[i])->src;

		if (p->level[u] < 0 && level >= 0 && distance(m, u) == level) {
			rc = embed_mark(p, u, level, err);
		}
	}
	return rc;
}

int embed_minimal(struct embed_minimal *m, struct embed_paths *p, int src, int dst,
		  struct err *err)
{
	int first = src < topo_ranks(m->t) ? topo_group_first(m->symmetry, src) : src, rc;

	m->by = first == src ? 0 : topo_group_between(m->symmetry, src, first);
	if (m->src != first) {
		topo_bfs(m->t, first, m->dist);
		m->src = first;
	}
	if (distance(m, dst) < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "the physical digraph has no path from node "
			       "%d to node %d", src, dst);
	}
	rc = embed_mark(p, dst, distance(m, dst), err);
	for (size_t i = 0; i < p->marked.n && !rc; i++) {
		rc = mark_before(m, p, p->marked.v[i], err);
	}
	return rc;
}
