/* SPDX-License-Identifier: Apache-2.0 */
/* The digraph of terminals that splitting off leaves, with the paths of its arcs. */
#include <stdlib.h>

#include "collective/tree/pack/pack_private.h"
#include "lib/base/alloc.h"

/* What is known while paths are written down. */
struct pack_paths {
	const struct topo *t;
	const struct pack_arcs *arcs;
	const int32_t *back;
	struct coll_forest *out;
	int32_t *seen;		/* by node: hops of the path up to it, -1: not on the path */
	size_t first;		/* hop of the path */
	VEC(int32_t) stack;
	struct arrays arrays;
};

static int32_t head_of(const struct pack_paths *p, int32_t arc)
{
	return p->arcs->list.v[arc].to;
}

/* Back to where the path was at a node before: it goes no round. */
static void cut_back(struct pack_paths *p, int node)
{
	while (p->out->hops.n > p->first + (size_t)p->seen[node]) {
		p->seen[head_of(p, p->out->hops.v[--p->out->hops.n])] = -1;
	}
}

/* The arcs of the digraph that a split arc is made of. */
static void write_hops(struct pack_paths *p, int32_t arc)
{
	p->stack.n = 0;
	vec_push(&p->stack, arc);
	p->seen[p->arcs->list.v[arc].from] = 0;
	while (p->stack.n > 0) {
		int32_t at = p->stack.v[--p->stack.n];
		const struct pack_arc *a = &p->arcs->list.v[at];

		if (a->first >= 0) {
			vec_push(&p->stack, a->second);
			vec_push(&p->stack, a->first);
		} else if (p->seen[a->to] >= 0) {
			cut_back(p, a->to);
		} else {
			vec_push(&p->out->hops, at);
			p->seen[a->to] = (int32_t)(p->out->hops.n - p->first);
		}
	}
}

/* The numbers of arcs are those of t, reversed where its transpose was split. */
static void name_hops(struct pack_paths *p)
{
	size_t last = p->out->hops.n;

	for (size_t i = p->first; i < last && p->back; i++) {
		p->out->hops.v[i] = p->back[p->out->hops.v[i]];
	}
	for (size_t i = p->first, j = last; p->back && i + 1 < j; i++) {
		int32_t hop = p->out->hops.v[i];

		p->out->hops.v[i] = p->out->hops.v[--j];
		p->out->hops.v[j] = hop;
	}
}

static int write_route(struct pack_paths *p, int32_t arc, struct topo *logical, struct err *err)
{
	struct pack_arc *a = &p->arcs->list.v[arc];
	struct coll_forest_route route = { (int32_t)p->out->routes.n, 1, 0, 0 };
	int64_t latency = 0;

	route.first = (int32_t)p->out->hops.n;
	p->first = p->out->hops.n;
	for (int v = 0; v < topo_n(p->t); v++) {
		p->seen[v] = -1;
	}
	write_hops(p, arc);
	name_hops(p);
	for (size_t i = p->first; i < p->out->hops.n; i++) {
		latency += topo_arc(p->t, p->out->hops.v[i])->latency_ns;
	}
	route.n = (int32_t)(p->out->hops.n - p->first);
	vec_push(&p->out->routes, route);
	return topo_add_arc(logical, p->back ? a->to : a->from, p->back ? a->from : a->to, a->cap,
			    latency, err);
}

/* What is left between terminals. */
static bool is_logical(const struct pack_paths *p, size_t i)
{
	const struct pack_arc *a = &p->arcs->list.v[i];

	return a->cap > 0 && a->from != a->to && a->from < topo_ranks(p->t) &&
	       a->to < topo_ranks(p->t);
}

static int source_of(const struct pack_paths *p, size_t i)
{
	const struct pack_arc *a = &p->arcs->list.v[i];

	return p->back ? a->to : a->from;
}

/* The arcs that are left, by their source in the forest's digraph. */
static void sort_arcs(struct pack_paths *p, int32_t **order, int *n)
{
	int32_t *first = x_new((size_t)topo_ranks(p->t) + 1, sizeof(*first));
	size_t all = p->arcs->list.n;

	*n = 0;
	*order = x_alloc(all + 1, sizeof(**order));
	for (size_t i = 0; i < all; i++) {
		if (is_logical(p, i)) {
			first[source_of(p, i) + 1]++;
			++*n;
		}
	}
	for (int v = 0; v < topo_ranks(p->t); v++) {
		first[v + 1] += first[v];
	}
	for (size_t i = 0; i < all; i++) {
		if (is_logical(p, i)) {
			(*order)[first[source_of(p, i)]++] = (int32_t)i;
		}
	}
	free(first);
}

static int write_arcs(struct pack_paths *p, const int32_t *order, int n, struct graph_arc **packed,
		      struct err *err)
{
	struct topo *logical = NULL;
	int rc = topo_new(topo_ranks(p->t), &logical, err);

	*packed = x_alloc((size_t)n + 1, sizeof(**packed));
	for (int i = 0; i < n && rc == 0; i++) {
		const struct pack_arc *a = &p->arcs->list.v[order[i]];

		(*packed)[i] = (struct graph_arc){ a->from, a->to, a->cap };
		rc = write_route(p, order[i], logical, err);
	}
	if (rc == 0) {
		topo_freeze(logical);
	}
	p->out->logical = logical;
	return rc;
}

int pack_logical(const struct topo *t, const struct pack_arcs *arcs, const int32_t *back,
		 struct coll_forest *out, struct graph_arc **packed, struct err *err)
{
	struct pack_paths p = { .t = t, .arcs = arcs, .back = back, .out = out };
	int32_t *order = NULL;
	int n, rc;

	*packed = NULL;
	arrays_add(&p.arrays, p.seen, topo_n(t));
	sort_arcs(&p, &order, &n);
	rc = write_arcs(&p, order, n, packed, err);
	free(order);
	vec_fini(&p.stack);
	arrays_fini(&p.arrays);
	return rc;
}
