/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meshes that are one duplex ring: where nothing asks for more than arcs and
 * colours, the ring's own routing and colouring gives the assignment that the
 * search begins below. Guard channels, tuning ranges, what is in use, pairs
 * and open lines are left to the search.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"
#include "rwa/ring/ring.h"

/* Lightpaths times nodes: more would take longer than the search. */
#define WORK_MAX ((int64_t)1 << 30)

struct ring_layout {			/* of the ring */
	int32_t *node;		/* at each position */
	int32_t *position;	/* of each node */
	int32_t *arc[2];	/* from position i to i+1, from i+1 to i */
};

int rwa_mesh_new_ring(int nodes, int fibres, struct rwa_mesh **out, struct err *err)
{
	int rc;

	*out = NULL;
	if (nodes < 3) {
		return err_set(err, WEFT_EINVAL, "a ring of %d nodes: 3 at "
			       "least", nodes);
	}
	rc = rwa_mesh_new(nodes, out, err);
	for (int32_t i = 0; !rc && i < 2 * nodes; i++) {
		int32_t v = i % nodes, w = (v + 1) % nodes;
		struct rwa_mesh_arc arc = { .src = i < nodes ? v : w,
					    .dst = i < nodes ? w : v,
					    .fibres = fibres };

		rc = rwa_mesh_add_arc(*out, &arc, err);
	}
	if (rc) {
		rwa_mesh_free(*out);
		*out = NULL;
	}
	return rc;
}

/* Nothing but arcs, demands and a loss budget. */
static bool is_plain(const struct rwa_mesh *m)
{
	bool plain = m->blocks.n == 0 && m->tunings.n == 0 && !m->guard.between &&
		!m->guard.below && !m->guard.above && m->nodes.n >= 3 &&
		m->arcs.n == 2 * m->nodes.n && m->lightpaths * (int64_t)m->nodes.n <= WORK_MAX;

	for (size_t d = 0; plain && d < m->demands.n; d++) {
		plain = !m->demands.v[d].protect;
	}
	for (size_t e = 0; plain && e < m->arcs.n; e++) {
		plain = m->arcs.v[e].fibres == m->arcs.v[0].fibres && !m->arcs.v[e].is_single;
	}
	return plain;
}

/* The arc from v that does not lead back to `last`; -1 unless v has exactly
 * one other arc, and that leads to `last`. */
static int32_t onward(const struct rwa_mesh *m, const struct mesh_adjacency *out,
		      int32_t v, int32_t last)
{
	const int32_t *arc = out->arc + out->first[v];

	if (out->first[v + 1] - out->first[v] != 2 ||
	    m->arcs.v[arc[0]].dst == m->arcs.v[arc[1]].dst) {
		return -1;
	}
	if (last < 0 || m->arcs.v[arc[1]].dst == last) {
		return arc[0];
	}
	return m->arcs.v[arc[0]].dst == last ? arc[1] : -1;
}

/* The arc from v to a node, or -1. O(degree). */
static int32_t arc_to(const struct rwa_mesh *m, const struct mesh_adjacency *out,
		      int32_t v, int32_t to)
{
	const int32_t *arc = out->arc + out->first[v];

	for (int32_t k = 0; k < out->first[v + 1] - out->first[v]; k++) {
		if (m->arcs.v[arc[k]].dst == to) {
			return arc[k];
		}
	}
	return -1;
}

/* Goes around; false when the mesh is no ring. */
static bool walk_ring(const struct rwa_mesh *m, const struct mesh_adjacency *out,
		 struct ring_layout *l)
{
	int32_t n = (int32_t)m->nodes.n, v = 0, last = -1;

	for (int32_t i = 0; i < n; i++) {
		int32_t e = onward(m, out, v, last);

		if (e < 0 || (i && v == 0)) {
			return false;
		}
		l->node[i] = v;
		l->position[v] = i;
		l->arc[RWA_CW][i] = e;
		last = v;
		v = m->arcs.v[e].dst;
		l->arc[RWA_CCW][i] = arc_to(m, out, v, last);
		if (l->arc[RWA_CCW][i] < 0) {
			return false;
		}
	}
	return v == 0;
}

/* *ring: the mesh is one, and the layout is filled. One allocation, which
 * l->node owns. */
static void layout_init(struct ring_layout *l, const struct rwa_mesh *m, bool *ring)
{
	struct mesh_adjacency out = { 0 };
	size_t n = m->nodes.n + 1;
	int32_t *v = x_new(4 * n, sizeof(*v));

	adjacency_init(&out, m, false);
	*l = (struct ring_layout){ .node = v };
	l->position = v + n;
	l->arc[RWA_CW] = v + 2 * n;
	l->arc[RWA_CCW] = v + 3 * n;
	*ring = walk_ring(m, &out, l);
	adjacency_fini(&out);
}

/* ---- demands as arcs, and back ---- */

static void list_arcs(const struct rwa_mesh *m, const struct ring_layout *l, struct rwa_arc *arcs)
{
	for (size_t d = 0; d < m->demands.n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];

		for (int32_t k = 0; k < x->count; k++) {
			*arcs++ = (struct rwa_arc){
				.src = l->position[x->src],
				.dst = l->position[x->dst],
			};
		}
	}
}

static void push_path(const struct rwa_mesh *m, const struct ring_layout *l,
		      const struct rwa_arc *arc, int32_t demand, struct rwa_assignment *out)
{
	int32_t n = (int32_t)m->nodes.n, fibres = m->arcs.v[0].fibres;
	struct rwa_path p = { demand, 0, (int64_t)out->hops.n };

	for (int32_t v = arc->src; v != arc->dst; p.hops++) {
		int32_t next = arc->dir == RWA_CW ? (v + 1) % n
						  : (v + n - 1) % n;
		struct rwa_hop h = {
			arc->dir == RWA_CW ? l->arc[RWA_CW][v]
					   : l->arc[RWA_CCW][next],
			arc->channel % fibres, arc->channel / fibres,
		};

		vec_push(&out->hops, h);
		v = next;
	}
	vec_push(&out->paths, p);
}

static void list_paths(const struct rwa_mesh *m, const struct ring_layout *l,
		       const struct rwa_arc *arcs, struct rwa_assignment *out)
{
	for (int32_t d = 0; d < (int32_t)m->demands.n; d++) {
		for (int32_t k = 0; k < m->demands.v[d].count; k++) {
			push_path(m, l, arcs++, d, out);
		}
	}
}

static int solve(const struct rwa_mesh *m, const struct ring_layout *l, struct rwa_assignment *out,
		 int *channels, int32_t *pair, struct err *err)
{
	/* Colours are shared out among the fibres afterwards. */
	struct rwa_ring ring = { (int)m->nodes.n, 1, UINT16_MAX + 1 };
	int fibres = m->arcs.v[0].fibres;
	struct rwa_arc *arcs = x_new((size_t)m->lightpaths + 1, sizeof(*arcs));
	struct rwa_result res;
	int rc;

	list_arcs(m, l, arcs);
	rc = rwa_ring_route(&ring, arcs, m->lightpaths, &res, err);
	if (!rc && res.slots <= 1) {
		for (int dir = 0; dir < 2; dir++) {
			pair[dir] = l->arc[dir][res.pair[dir]];
		}
		*channels = (res.colours + fibres - 1) / fibres;
		list_paths(m, l, arcs, out);
	}
	free(arcs);
	return rc;
}

int mesh_ring_start(const struct rwa_mesh *m, struct rwa_assignment *out,
		    int *channels, int32_t *pair, struct err *err)
{
	struct ring_layout l = { 0 };
	bool ring = false;
	int rc = 0;

	*out = (struct rwa_assignment){ 0 };
	*channels = 0;
	if (is_plain(m)) {
		layout_init(&l, m, &ring);
	}
	if (ring) {
		rc = solve(m, &l, out, channels, pair, err);
	}
	/* The paths do not know the loss budget. */
	if (!rc && *channels && rwa_mesh_check(m, out, *channels, true, NULL)) {
		*channels = 0;
	}
	if (rc || !*channels) {
		rwa_assignment_fini(out);
	}
	free(l.node);
	return rc;
}
