/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges that make packed arborescences shallower.
 *
 * A node takes, in one of the trees, an arc from a node nearer to the root:
 * one with capacity left, or one of another tree of the same weight, which gets
 * the node's arc for it. The exchange is made when the longer of the two longest
 * paths through the node becomes shorter, or stays and the node comes nearer in
 * all. Then no tree becomes deeper than the deepest of the two was. First the longest paths of the
 * deepest trees are gone through, for the deepest tree tells how long the others must wait; then
 * all nodes of all trees. The work is limited.
 */
#include <stdlib.h>

#include "lib/graph/private.h"

#define SHALLOW_WORST_PASSES 1024
#define SHALLOW_PASSES 64

#define SHALLOW_WORK (INT64_C(1) << 25)	/* exchanges looked at */

/* What is known beside the trees. */
struct shallow_tree {
	struct graph_tree *t;
	int root;
	int32_t *height;	/* n: arcs down to the deepest node below */
	int32_t *child, *next;	/* n: the first child; the next of the same parent, -1 */
	int32_t *user;		/* n: the next tree that has the node's arc, -1 */
};

struct shallow {
	int n, m;
	const struct graph_arc *arcs;
	int64_t *left;		/* m: capacity that no tree takes */
	int32_t *users;		/* m: the first tree that has the arc, -1 */
	int64_t work;		/* done */
	int *first, *in;	/* arcs into v: in[first[v] .. first[v + 1] - 1] */
	int *stack;		/* n */
	int n_trees;
	struct shallow_tree *trees;
	struct arrays arrays;
};

static int parent(const struct shallow *s, const struct shallow_tree *t, int v)
{
	return t->t->via[v] < 0 ? -1 : s->arcs[t->t->via[v]].from;
}

static void add_child(struct shallow_tree *t, int v, int to)
{
	t->next[v] = t->child[to];
	t->child[to] = v;
}

static void remove_child(struct shallow_tree *t, int v, int from)
{
	int32_t *at = &t->child[from];

	while (*at != v) {
		at = &t->next[*at];
	}
	*at = t->next[v];
}

/* Heights of v and all above it. */
static void lift(const struct shallow *s, struct shallow_tree *t, int v)
{
	for (; v >= 0; v = parent(s, t, v)) {
		int height = 0;

		for (int c = t->child[v]; c >= 0; c = t->next[c]) {
			height = t->height[c] + 1 > height ? t->height[c] + 1 : height;
		}
		t->height[v] = height;
	}
}

/* Depths of v and all below it. */
static void sink(struct shallow *s, struct shallow_tree *t, int v)
{
	int n = 0;

	s->stack[n++] = v;
	while (n > 0) {
		int u = s->stack[--n];

		t->t->depth[u] = t->t->via[u] < 0 ? 0 : t->t->depth[parent(s, t, u)] + 1;
		for (int c = t->child[u]; c >= 0; c = t->next[c]) {
			s->stack[n++] = c;
		}
	}
}

static void add_user(struct shallow *s, struct shallow_tree *t, int arc)
{
	int v = s->arcs[arc].to;

	t->user[v] = s->users[arc];
	s->users[arc] = (int32_t)(t - s->trees);
	s->left[arc] -= t->t->weight;
}

static void remove_user(struct shallow *s, struct shallow_tree *t, int arc)
{
	int v = s->arcs[arc].to;
	int32_t *at = &s->users[arc];

	while (*at != t - s->trees) {
		at = &s->trees[*at].user[v];
	}
	*at = t->user[v];
	s->left[arc] += t->t->weight;
}

static void set_arc(struct shallow *s, struct shallow_tree *t, int v, int arc)
{
	int old = parent(s, t, v);

	remove_user(s, t, t->t->via[v]);
	add_user(s, t, arc);
	remove_child(t, v, old);
	t->t->via[v] = arc;
	add_child(t, v, s->arcs[arc].from);
	sink(s, t, v);
	lift(s, t, old);
	lift(s, t, s->arcs[arc].from);
}

static bool is_below(const struct shallow *s, const struct shallow_tree *t, int v, int top)
{
	while (v >= 0 && v != top) {
		v = parent(s, t, v);
	}
	return v >= 0;
}

/* Whether t may take arc for v, and what that does to v's depth. */
static bool may_take(const struct shallow *s, const struct shallow_tree *t, int v, int arc,
		     int *deeper)
{
	int from = s->arcs[arc].from;

	*deeper = t->t->depth[from] + 1 - t->t->depth[v];
	return !is_below(s, t, from, v);
}

/* The longest path through v. */
static int reach_of(const struct shallow_tree *t, int v)
{
	return t->t->depth[v] + t->height[v];
}

/* Whether it is an improvement that v takes `arc` in t, and in o what it has in t. */
static bool is_better(const struct shallow *s, const struct shallow_tree *t,
		      const struct shallow_tree *o, int v, int arc)
{
	int mine, other, before, after;

	if (!may_take(s, o, v, t->t->via[v], &other) || !may_take(s, t, v, arc, &mine)) {
		return false;
	}
	before = reach_of(t, v) > reach_of(o, v) ? reach_of(t, v) : reach_of(o, v);
	after = reach_of(t, v) + mine > reach_of(o, v) + other ? reach_of(t, v) + mine
							       : reach_of(o, v) + other;
	return after < before || (after == before && mine + other < 0);
}

/* v takes `arc` in t when that is an improvement. */
static bool try_arc(struct shallow *s, struct shallow_tree *t, int v, int arc)
{
	int old = t->t->via[v];

	if (t->t->depth[s->arcs[arc].from] + 1 >= t->t->depth[v] || arc == old) {
		return false;
	}
	if (s->left[arc] >= t->t->weight) {
		set_arc(s, t, v, arc);
		return true;
	}
	for (int i = s->users[arc]; i >= 0; i = s->trees[i].user[v]) {
		struct shallow_tree *o = &s->trees[i];

		s->work++;
		if (o != t && o->t->weight == t->t->weight && is_better(s, t, o, v, arc)) {
			set_arc(s, t, v, arc);
			set_arc(s, o, v, old);
			return true;
		}
	}
	return false;
}

/* Nodes on the longest paths of the tree; else all of them. */
static bool pass_tree(struct shallow *s, struct shallow_tree *t, bool longest)
{
	bool changed = false;

	for (int v = 0; v < s->n && s->work < SHALLOW_WORK; v++) {
		if (t->t->via[v] < 0 || (longest && reach_of(t, v) < t->height[t->root])) {
			continue;
		}
		for (int k = s->first[v]; k < s->first[v + 1]; k++) {
			changed |= try_arc(s, t, v, s->in[k]);
		}
	}
	return changed;
}

static int deepest_of(const struct shallow *s)
{
	int deepest = 0;

	for (int i = 0; i < s->n_trees; i++) {
		int height = s->trees[i].height[s->trees[i].root];

		deepest = height > deepest ? height : deepest;
	}
	return deepest;
}

/* The deepest trees; else all of them. */
static bool pass(struct shallow *s, bool longest)
{
	int deepest = deepest_of(s);
	bool changed = false;

	for (int i = 0; i < s->n_trees; i++) {
		struct shallow_tree *t = &s->trees[i];

		if (!longest || t->height[t->root] == deepest) {
			changed |= pass_tree(s, t, longest);
		}
	}
	return changed;
}

static void link_tree(struct shallow *s, struct shallow_tree *t)
{
	for (int v = 0; v < s->n; v++) {
		t->child[v] = -1;
	}
	for (int v = 0; v < s->n; v++) {
		if (t->t->via[v] >= 0) {
			add_child(t, v, parent(s, t, v));
			add_user(s, t, t->t->via[v]);
		} else {
			t->root = v;
		}
	}
	for (int v = 0; v < s->n; v++) {
		if (t->child[v] < 0) {
			lift(s, t, v);
		}
	}
}

static void shallow_init(struct shallow *s, struct graph_trees *trees)
{
	arrays_add(&s->arrays, s->left, s->m);
	arrays_add(&s->arrays, s->users, s->m);
	arrays_add(&s->arrays, s->first, s->n + 2);
	arrays_add(&s->arrays, s->in, s->m);
	arrays_add(&s->arrays, s->stack, s->n);
	arrays_add(&s->arrays, s->trees, trees->list.n);
	for (int i = 0; i < s->n_trees; i++) {
		s->trees[i].t = &trees->list.v[i];
		arrays_add(&s->arrays, s->trees[i].height, s->n);
		arrays_add(&s->arrays, s->trees[i].child, s->n);
		arrays_add(&s->arrays, s->trees[i].next, s->n);
		arrays_add(&s->arrays, s->trees[i].user, s->n);
	}
	for (int a = 0; a < s->m; a++) {
		s->left[a] = s->arcs[a].cap;
		s->users[a] = -1;
		s->first[s->arcs[a].to + 2]++;
	}
	for (int v = 0; v < s->n; v++) {
		s->first[v + 2] += s->first[v + 1];
	}
	for (int a = 0; a < s->m; a++) {
		s->in[s->first[s->arcs[a].to + 1]++] = a;
	}
	for (int i = 0; i < s->n_trees; i++) {
		link_tree(s, &s->trees[i]);
	}
}

void flatten_trees(int n, const struct graph_arc *arcs, int m, struct graph_trees *trees)
{
	struct shallow s = { .n = n, .m = m, .arcs = arcs, .n_trees = (int)trees->list.n };

	shallow_init(&s, trees);
	for (int i = 0; i < SHALLOW_WORST_PASSES && pass(&s, true); i++) {
	}
	for (int i = 0; i < SHALLOW_PASSES && pass(&s, false); i++) {
	}
	for (int i = 0; i < s.n_trees; i++) {
		s.trees[i].t->deepest = s.trees[i].height[s.trees[i].root];
	}
	arrays_fini(&s.arrays);
}
