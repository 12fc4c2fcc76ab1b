/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digraph that terminals see of one with switches and memories.
 *
 * Terminals are neighbours when an arc or a path through others than terminals joins
 * them. What is balanced on that digraph is balanced on the fabric if capacities say what a
 * neighbour can have when all are served alike: so a terminal's links to a group of
 * switches are divided by the terminals that it reaches there.
 */
#include <stdlib.h>

#include "collective/embedding/private.h"
#include "lib/base/number/rat.h"

#define MAX_SCALE (INT64_C(1) << 20)

/* A logical arc, of capacity num / den. */
struct embed_link {
	int32_t src, dst;
	int64_t num, den, latency_ns;
};

struct embed_view {
	const struct topo *t;
	int32_t *seen;			/* terminal + 1 from which a node was reached */
	int32_t *queue;
	int64_t *latency_ns;		/* from it, of others than terminals */
	VEC(struct embed_link) links;
	struct arrays arrays;
};

static void add_link(struct embed_view *v, int src, const struct topo_arc *arc, int64_t latency_ns)
{
	struct embed_link l = { src, arc->dst, arc->cap, 1, latency_ns };

	v->seen[arc->dst] = src + 1;
	vec_push(&v->links, l);
}

static void see_neighbours(struct embed_view *v, int u)
{
	int first, n = topo_out(v->t, u, &first);

	v->seen[u] = u + 1;
	for (int a = first; a < first + n; a++) {
		const struct topo_arc *arc = topo_arc(v->t, a);

		if (arc->dst < topo_ranks(v->t) && arc->dst != u) {
			add_link(v, u, arc, arc->latency_ns);
		}
	}
}

/* The nodes that arcs out of queue[k] lead to, for terminal u. */
static void look_around(struct embed_view *v, int u, int k, int *end)
{
	int w = v->queue[k], first, n = topo_out(v->t, w, &first);

	for (int a = first; a < first + n; a++) {
		const struct topo_arc *arc = topo_arc(v->t, a);
		int64_t latency_ns = v->latency_ns[w] + arc->latency_ns;

		if (v->seen[arc->dst] == u + 1) {
			continue;
		}
		if (arc->dst < topo_ranks(v->t)) {
			add_link(v, u, arc, latency_ns);
		} else {
			v->seen[arc->dst] = u + 1;
			v->latency_ns[arc->dst] = latency_ns;
			v->queue[(*end)++] = arc->dst;
		}
	}
}

/* Capacity of u's arcs to the nodes in the queue. */
static int64_t capacity_to(const struct embed_view *v, int u, int end)
{
	int64_t sum = 0;

	for (int k = 0; k < end; k++) {
		int first, n = topo_out(v->t, u, &first);

		for (int a = first; a < first + n; a++) {
			const struct topo_arc *arc = topo_arc(v->t, a);

			sum += arc->dst == v->queue[k] ? arc->cap : 0;
		}
	}
	return sum;
}

/* The terminals behind an arc of u to a switch or memory: they share what u has
 * to all that is reached from there. */
static void see_behind(struct embed_view *v, int u, int arc)
{
	size_t before = v->links.n;
	int64_t cap;
	int end = 0;

	v->queue[end++] = topo_arc(v->t, arc)->dst;
	v->seen[v->queue[0]] = u + 1;
	v->latency_ns[v->queue[0]] = topo_arc(v->t, arc)->latency_ns;
	for (int k = 0; k < end; k++) {
		look_around(v, u, k, &end);
	}
	cap = capacity_to(v, u, end);
	for (size_t i = before; i < v->links.n; i++) {
		int64_t behind = (int64_t)(v->links.n - before), common = rat_gcd(cap, behind);

		v->links.v[i].num = cap / common;
		v->links.v[i].den = behind / common;
	}
}

static void see_from(struct embed_view *v, int u)
{
	int first, n = topo_out(v->t, u, &first);

	see_neighbours(v, u);
	for (int a = first; a < first + n; a++) {
		if (v->seen[topo_arc(v->t, a)->dst] != u + 1) {
			see_behind(v, u, a);
		}
	}
}

/* What makes the capacities whole, as far as it is no more than MAX_SCALE. */
static int64_t scale_of(const struct embed_view *v)
{
	int64_t scale = 1;

	for (size_t i = 0; i < v->links.n; i++) {
		int64_t den = v->links.v[i].den;
		int64_t more = scale / rat_gcd(den, scale) * den;

		if (more <= MAX_SCALE) {
			scale = more;
		}
	}
	return scale;
}

static int add_arcs(const struct embed_view *v, struct topo *t, struct err *err)
{
	int64_t scale = scale_of(v), common = 0;
	int rc = 0;

	for (size_t i = 0; i < v->links.n; i++) {
		struct embed_link *l = &v->links.v[i];

		l->num = l->num * scale / l->den;
		l->num += l->num == 0;
		common = rat_gcd(l->num, common);
	}
	for (size_t i = 0; i < v->links.n && !rc; i++) {
		const struct embed_link *l = &v->links.v[i];

		rc = topo_add_arc(t, l->src, l->dst, l->num / common, l->latency_ns, err);
	}
	if (rc == 0) {
		topo_freeze(t);
	}
	return rc;
}

static int see_all(struct embed_view *v, struct topo **out, struct err *err)
{
	struct topo *t = NULL;
	int rc = 0;

	arrays_add(&v->arrays, v->seen, topo_n(v->t));
	arrays_add(&v->arrays, v->queue, topo_n(v->t));
	arrays_add(&v->arrays, v->latency_ns, topo_n(v->t));
	for (int u = 0; u < topo_ranks(v->t); u++) {
		see_from(v, u);
	}
	rc = topo_new(topo_ranks(v->t), &t, err);
	for (int u = 0; u < topo_ranks(v->t) && !rc; u++) {
		topo_set_node(t, u, TOPO_TERMINAL, topo_node_flags(v->t, u));
	}
	if (rc || (rc = add_arcs(v, t, err))) {
		topo_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

int coll_terminals_see(const struct topo *t, struct topo **out, struct err *err)
{
	struct embed_view v = { .t = t };
	int rc = topo_check_order(t, err);

	*out = NULL;
	if (!rc) {
		rc = see_all(&v, out, err);
	}
	arrays_fini(&v.arrays);
	vec_fini(&v.links);
	return rc;
}
