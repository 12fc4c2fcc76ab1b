/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arborescences of least cost (Chu and Liu 1965, Edmonds 1967), as Tarjan 1977 does it.
 *
 * A path is grown backwards from a node along the cheapest arc into its end. Where it meets
 * itself the cycle becomes one node, and arcs into it cost what they do beyond the arcs of the
 * cycle that they would replace. Once all is done, each cycle is opened at the node where an arc
 * comes in. Arcs into a node wait in a leftist heap, so that those of a cycle are merged cheaply.
 */
#include <stdlib.h>

#include "lib/base/vec.h"
#include "lib/graph/graph.h"

enum { NEW, ON_PATH, DONE };

/* An arc in a heap; links are arcs, -1: none. */
struct tree_waiting {
	int32_t left, right;
	int32_t rank;		/* arcs on the path to the right */
	int64_t cost;		/* as it is now, but for what `add` above it says */
	int64_t add;		/* to the costs of all below it */
};

/* Nodes 0 .. n-1, then those that cycles became. */
struct tree_search {
	const struct graph_cost_arc *arcs;
	struct tree_waiting *waiting;	/* by arc */
	int32_t *heap;		/* by node: the cheapest arc into it, -1 */
	int32_t *in;		/* by node: the arc chosen */
	int32_t *up;		/* by node: the cycle it is in; -1: none */
	int32_t *top;		/* by node: nearer to the outermost one */
	int8_t *state;
	int32_t *path;
	int nodes, length;
	int64_t total;
	struct arrays arrays;
};

static void push_down(struct tree_search *s, int32_t a)
{
	struct tree_waiting *w = &s->waiting[a];
	int32_t child[2] = { w->left, w->right };

	for (int i = 0; i < 2 && w->add; i++) {
		if (child[i] >= 0) {
			s->waiting[child[i]].cost += w->add;
			s->waiting[child[i]].add += w->add;
		}
	}
	w->add = 0;
}

static int32_t rank_of(const struct tree_search *s, int32_t a)
{
	return a < 0 ? 0 : s->waiting[a].rank;
}

static int32_t merge(struct tree_search *s, int32_t a, int32_t b)
{
	struct tree_waiting *w;

	if (a < 0 || b < 0) {
		return a < 0 ? b : a;
	}
	if (s->waiting[b].cost < s->waiting[a].cost ||
	    (s->waiting[b].cost == s->waiting[a].cost && b < a)) {
		int32_t other = a;

		a = b;
		b = other;
	}
	push_down(s, a);
	w = &s->waiting[a];
	w->right = merge(s, w->right, b);
	if (rank_of(s, w->left) < rank_of(s, w->right)) {
		int32_t other = w->left;

		w->left = w->right;
		w->right = other;
	}
	w->rank = rank_of(s, w->right) + 1;
	return a;
}

/* The outermost node that v is in. */
static int32_t top_of(struct tree_search *s, int32_t v)
{
	while (s->top[v] != v) {
		s->top[v] = s->top[s->top[v]];
		v = s->top[v];
	}
	return v;
}

/* Takes the cheapest arc into v from outside of it; all others cost so much less. -1: none. */
static int32_t take_cheapest(struct tree_search *s, int32_t v)
{
	for (;;) {
		int32_t a = s->heap[v];
		int64_t cost;

		if (a < 0) {
			return -1;
		}
		push_down(s, a);
		cost = s->waiting[a].cost;
		s->heap[v] = merge(s, s->waiting[a].left, s->waiting[a].right);
		if (top_of(s, s->arcs[a].from) == v) {
			continue;
		}
		s->total += cost;
		if (s->heap[v] >= 0) {
			s->waiting[s->heap[v]].cost -= cost;
			s->waiting[s->heap[v]].add -= cost;
		}
		return a;
	}
}

/* The end of the path from `last` on becomes one node. */
static int32_t contract(struct tree_search *s, int32_t last)
{
	int32_t c = s->nodes++, v;

	s->top[c] = c;
	s->up[c] = -1;
	s->heap[c] = -1;
	do {
		v = s->path[--s->length];
		s->up[v] = s->top[v] = c;
		s->heap[c] = merge(s, s->heap[c], s->heap[v]);
	} while (v != last);
	return c;
}

/* Grows a path from v until it comes to what is done. False: no arc comes from there. */
static bool grow(struct tree_search *s, int32_t v)
{
	s->length = 0;
	for (v = top_of(s, v); s->state[v] != DONE;) {
		int32_t a = take_cheapest(s, v), from;

		if (a < 0) {
			return false;
		}
		s->in[v] = a;
		s->state[v] = ON_PATH;
		s->path[s->length++] = v;
		from = top_of(s, s->arcs[a].from);
		v = s->state[from] == ON_PATH ? contract(s, from) : from;
	}
	while (s->length > 0) {
		s->state[s->path[--s->length]] = DONE;
	}
	return true;
}

/* Opens the cycles, outer ones first. */
static void open_cycles(struct tree_search *s, int n)
{
	for (int32_t c = s->nodes - 1; c >= n; c--) {
		int32_t v = s->arcs[s->in[c]].to;

		while (s->up[v] != c) {
			v = s->up[v];
		}
		s->in[v] = s->in[c];
	}
}

static void begin(struct tree_search *s, int n, int m, int root)
{
	for (int v = 0; v < n; v++) {
		s->heap[v] = s->up[v] = s->in[v] = -1;
		s->top[v] = v;
	}
	s->nodes = n;
	s->state[root] = DONE;
	for (int a = 0; a < m; a++) {
		const struct graph_cost_arc *arc = &s->arcs[a];

		if (arc->to != root && arc->from != arc->to) {
			s->waiting[a] = (struct tree_waiting){ -1, -1, 1, arc->cost, 0 };
			s->heap[arc->to] = merge(s, s->heap[arc->to], a);
		}
	}
}

int graph_min_tree(int n, const struct graph_cost_arc *arcs, int m, int root, int32_t *via,
		     int64_t *cost, struct err *err)
{
	struct tree_search s = { .arcs = arcs };
	int rc = 0;

	arrays_add(&s.arrays, s.waiting, m);
	arrays_add(&s.arrays, s.heap, 2 * n);
	arrays_add(&s.arrays, s.in, 2 * n);
	arrays_add(&s.arrays, s.up, 2 * n);
	arrays_add(&s.arrays, s.top, 2 * n);
	arrays_add(&s.arrays, s.state, 2 * n);
	arrays_add(&s.arrays, s.path, 2 * n);
	begin(&s, n, m, root);
	for (int v = 0; v < n && rc == 0; v++) {
		if (!grow(&s, v)) {
			rc = err_set(err, WEFT_EINFEASIBLE, "node %d cannot be reached from "
				     "node %d", v, root);
		}
	}
	if (rc == 0) {
		open_cycles(&s, n);
		for (int v = 0; v < n; v++) {
			via[v] = v == root ? -1 : s.in[v];
		}
		*cost = s.total;
	}
	arrays_fini(&s.arrays);
	return rc;
}
