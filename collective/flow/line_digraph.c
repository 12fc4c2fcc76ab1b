/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Automorphisms of line digraphs, from those of the digraphs whose arcs are their nodes.
 *
 * A digraph is a line digraph where the sets of nodes that two nodes have arcs to are equal or
 * have nothing in common: such a set is a node of the digraph underneath, and a node of the first
 * an arc of the second, from the set that it is in to the one that it has arcs to. Each
 * automorphism of that one is one of the line digraph, and parallel arcs change places. So one goes
 * down as far as that is possible, each time to a digraph that is smaller by the degree, and has
 * the automorphisms of the last by whoever finds these: of GenKautz(4,8192) it has two nodes.
 * Self-loops, which a net does not have, are put back: where a node has one arc less than others.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"

#define NO_CLASS (-1)

/* A digraph, self-loops included, and what its nodes are as arcs of the one underneath. */
struct level {
	int n;
	int32_t *first, *dst;	/* arcs out of u: first[u] .. first[u + 1] - 1 */
	int below;		/* nodes of the digraph underneath */
	int32_t *from, *to;	/* by node: the arc of it */
	int32_t *order;		/* nodes by (from, to, number) */
	struct arrays arrays;
};

static void level_init(struct level *l, int n, int arcs)
{
	*l = (struct level){ .n = n };
	arrays_add(&l->arrays, l->first, n + 1);
	arrays_add(&l->arrays, l->dst, arcs);
	arrays_add(&l->arrays, l->from, n);
	arrays_add(&l->arrays, l->to, n);
	arrays_add(&l->arrays, l->order, n);
}

/* The net with its self-loops. */
static void from_net(struct level *l, const struct flow_net *net)
{
	int degree = 0, at = 0;

	for (int u = 0; u < net->n; u++) {
		int out = net->out_first[u + 1] - net->out_first[u];

		degree = out > degree ? out : degree;
	}
	level_init(l, net->n, net->m + net->n);
	for (int u = 0; u < net->n; u++) {
		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			l->dst[at++] = net->dst[a];
		}
		if (at - l->first[u] < degree) {
			l->dst[at++] = u;
		}
		l->first[u + 1] = at;
	}
}

/* The set that u has arcs to: its number, a new one where it has none yet; NO_CLASS where it has
 * only a part of another. sizes: of those there are. */
static int class_of(struct level *l, int u, int32_t *sizes)
{
	int n = l->first[u + 1] - l->first[u], class;

	if (n == 0) {
		return NO_CLASS;
	}
	class = l->from[l->dst[l->first[u]]];
	if (class == NO_CLASS) {
		class = l->below++;
		sizes[class] = n;
		for (int a = l->first[u]; a < l->first[u + 1]; a++) {
			if (l->from[l->dst[a]] != NO_CLASS) {
				return NO_CLASS;
			}
			l->from[l->dst[a]] = class;
		}
		return class;
	}
	for (int a = l->first[u]; a < l->first[u + 1]; a++) {
		if (l->from[l->dst[a]] != class) {
			return NO_CLASS;
		}
	}
	return sizes[class] == n ? class : NO_CLASS;
}

static int by_arc(const void *a, const void *b, void *arg)
{
	const struct level *l = arg;
	int32_t u = *(const int32_t *)a, v = *(const int32_t *)b;

	if (l->from[u] != l->from[v]) {
		return l->from[u] - l->from[v];
	}
	return l->to[u] != l->to[v] ? l->to[u] - l->to[v] : u - v;
}

/* Whether it is the line digraph of one of at most half as many nodes; no two of its arcs are
 * parallel. */
static bool go_down(struct level *l)
{
	int32_t *sizes = x_new((size_t)l->n + 1, sizeof(*sizes));
	bool is_line = true;

	for (int u = 0; u < l->n; u++) {
		l->from[u] = NO_CLASS;
		l->order[u] = u;
	}
	for (int u = 0; u < l->n && is_line; u++) {
		l->to[u] = class_of(l, u, sizes);
		is_line = l->to[u] != NO_CLASS;
	}
	for (int u = 0; u < l->n && is_line; u++) {
		is_line = l->from[u] != NO_CLASS;
	}
	free(sizes);
	if (!is_line || 2 * l->below > l->n) {
		return false;
	}
	qsort_r(l->order, (size_t)l->n, sizeof(*l->order), by_arc, l);
	return true;
}

/* How many nodes from the i-th in order on are the same arc. */
static int parallel(const struct level *l, int i)
{
	int n = 1;

	while (i + n < l->n && l->from[l->order[i + n]] == l->from[l->order[i]] &&
	       l->to[l->order[i + n]] == l->to[l->order[i]]) {
		n++;
	}
	return n;
}

/* The digraph underneath as another level, its arcs in the order of l; false: it has parallel
 * ones. */
static bool level_below(const struct level *l, struct level *out)
{
	bool simple = true;

	level_init(out, l->below, l->n);
	for (int i = 0; i < l->n; i++) {
		int u = l->order[i];

		out->dst[i] = l->to[u];
		out->first[l->from[u] + 1] = i + 1;
		simple = simple && parallel(l, i) == 1;
	}
	return simple;
}

/* The same as a net of terminals, parallel arcs as one of their number. */
static void net_below(const struct level *l, struct flow_net *net)
{
	*net = (struct flow_net){ .n = l->below, .terminals = l->below };
	arrays_add(&net->arrays, net->src, l->n);
	arrays_add(&net->arrays, net->dst, l->n);
	arrays_add(&net->arrays, net->units, l->n);
	arrays_add(&net->arrays, net->out_first, l->below + 1);
	arrays_add(&net->arrays, net->terminal, l->below);
	memset(net->terminal, true, (size_t)l->below * sizeof(*net->terminal));
	for (int i = 0; i < l->n; i += parallel(l, i)) {
		int u = l->order[i];

		net->src[net->m] = l->from[u];
		net->dst[net->m] = l->to[u];
		net->units[net->m++] = parallel(l, i);
		net->out_first[l->from[u] + 1] = net->m;
	}
}

/* The place in order of the first node that is an arc from -> to. */
static int find_arc(const struct level *l, int from, int to)
{
	int lo = 0, hi = l->n;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2, u = l->order[mid];

		if (l->from[u] < from || (l->from[u] == from && l->to[u] < to)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* Generators of the digraph underneath become those of l. */
static void lift(const struct level *l, struct flow_orbits *o)
{
	for (size_t k = 0; k < o->gens.n; k++) {
		const int32_t *g = o->gens.v[k];
		int32_t *up = x_alloc((size_t)l->n, sizeof(*up));

		for (int i = 0, n; i < l->n; i += n) {
			int u = l->order[i], to = find_arc(l, g[l->from[u]], g[l->to[u]]);

			n = parallel(l, i);
			for (int j = 0; j < n; j++) {
				up[l->order[i + j]] = l->order[to + j];
			}
		}
		free(o->gens.v[k]);
		o->gens.v[k] = up;
	}
}

/* Nodes that are parallel arcs change places. */
static void add_swaps(const struct level *l, struct flow_orbits *o)
{
	for (int i = 0; i + 1 < l->n; i++) {
		int32_t *swap;

		if (parallel(l, i) == 1) {
			continue;
		}
		swap = x_alloc((size_t)l->n, sizeof(*swap));
		for (int u = 0; u < l->n; u++) {
			swap[u] = u;
		}
		swap[l->order[i]] = l->order[i + 1];
		swap[l->order[i + 1]] = l->order[i];
		vec_push(&o->gens, swap);
	}
}

/* l is a line digraph. */
static void find_below(struct level *l, flow_generators *find, struct flow_orbits *o)
{
	struct level below;

	if (level_below(l, &below) && go_down(&below)) {
		find_below(&below, find, o);
	} else {
		struct flow_net net;

		net_below(l, &net);
		find(&net, o);
		arrays_fini(&net.arrays);
	}
	arrays_fini(&below.arrays);
	lift(l, o);
	add_swaps(l, o);
}

bool flow_line_generators(const struct flow_net *net, flow_generators *find, struct flow_orbits *o)
{
	struct level l;
	bool is_line = net->terminals == net->n;

	for (int a = 1; a < net->m && is_line; a++) {
		is_line = net->units[a] == net->units[0];
	}
	if (!is_line) {
		return false;
	}
	from_net(&l, net);
	is_line = go_down(&l);
	if (is_line) {
		find_below(&l, find, o);
	}
	arrays_fini(&l.arrays);
	return is_line;
}
