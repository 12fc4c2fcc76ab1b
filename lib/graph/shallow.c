/*
 * Exchanges that make packed arborescences shallower.
 *
 * A node takes, in one of the trees, an arc from a node nearer to the root:
 * one with capacity left, or one of another tree of the same weight, which gets
 * the node's arc for it. The exchange is made when the longer of the two longest
 * paths through the node becomes shorter, or stays and the node comes nearer in
 * all. Then no tree becomes deeper than the deepest of the two was.
 */
#include <stdlib.h>

#include "lib/graph/private.h"

#define SHALLOW_PASSES 64

/* What is known beside the trees. */
struct shallow_tree {
	struct graph_tree *t;
	int32_t *height;	/* n: arcs down to the deepest node below */
	int32_t *child, *next;	/* n: the first child; the next of the same parent, -1 */
};

struct shallow {
	int n, m, root;
	const struct graph_arc *arcs;
	int64_t *left;		/* m: capacity that no tree takes */
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

static void set_arc(struct shallow *s, struct shallow_tree *t, int v, int arc)
{
	int old = parent(s, t, v);

	s->left[t->t->via[v]] += t->t->weight;
	s->left[arc] -= t->t->weight;
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

/* The tree, other than t, of t's weight, that has this arc. NULL: none. */
static struct shallow_tree *owner(struct shallow *s, const struct shallow_tree *t, int arc)
{
	for (int i = 0; i < s->n_trees; i++) {
		struct shallow_tree *o = &s->trees[i];

		if (o != t && o->t->via[s->arcs[arc].to] == arc && o->t->weight == t->t->weight) {
			return o;
		}
	}
	return NULL;
}

/* The longest path through v. */
static int reach_of(const struct shallow_tree *t, int v)
{
	return t->t->depth[v] + t->height[v];
}

/* v takes `arc` in t when that is an improvement. */
static bool try_arc(struct shallow *s, struct shallow_tree *t, int v, int arc)
{
	struct shallow_tree *o;
	int old = t->t->via[v], mine, other, before, after;

	if (t->t->depth[s->arcs[arc].from] + 1 >= t->t->depth[v] || arc == old) {
		return false;
	}
	if (s->left[arc] >= t->t->weight) {
		set_arc(s, t, v, arc);
		return true;
	}
	o = owner(s, t, arc);
	if (!o || !may_take(s, o, v, old, &other) || !may_take(s, t, v, arc, &mine)) {
		return false;
	}
	before = reach_of(t, v) > reach_of(o, v) ? reach_of(t, v) : reach_of(o, v);
	after = reach_of(t, v) + mine > reach_of(o, v) + other ? reach_of(t, v) + mine
							       : reach_of(o, v) + other;
	if (after > before || (after == before && mine + other >= 0)) {
		return false;
	}
	set_arc(s, t, v, arc);
	set_arc(s, o, v, old);
	return true;
}

static bool pass(struct shallow *s)
{
	bool changed = false;

	for (int i = 0; i < s->n_trees; i++) {
		for (int v = 0; v < s->n; v++) {
			if (s->trees[i].t->via[v] < 0) {
				continue;
			}
			for (int k = s->first[v]; k < s->first[v + 1]; k++) {
				changed |= try_arc(s, &s->trees[i], v, s->in[k]);
			}
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
			s->left[t->t->via[v]] -= t->t->weight;
		}
	}
	for (int v = 0; v < s->n; v++) {
		if (t->child[v] < 0) {
			lift(s, t, v);
		}
	}
}

static int shallow_init(struct shallow *s, struct graph_trees *trees)
{
	arrays_add(&s->arrays, s->left, s->m);
	arrays_add(&s->arrays, s->first, s->n + 2);
	arrays_add(&s->arrays, s->in, s->m);
	arrays_add(&s->arrays, s->stack, s->n);
	arrays_add(&s->arrays, s->trees, trees->list.n);
	for (int i = 0; i < s->n_trees && !s->arrays.failed; i++) {
		s->trees[i].t = &trees->list.v[i];
		arrays_add(&s->arrays, s->trees[i].height, s->n);
		arrays_add(&s->arrays, s->trees[i].child, s->n);
		arrays_add(&s->arrays, s->trees[i].next, s->n);
	}
	if (s->arrays.failed) {
		return WEFT_ENOMEM;
	}
	for (int a = 0; a < s->m; a++) {
		s->left[a] = s->arcs[a].cap;
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
	return 0;
}

int flatten_trees(int n, const struct graph_arc *arcs, int m, int root, struct graph_trees *trees)
{
	struct shallow s = { .n = n, .m = m, .root = root, .arcs = arcs,
			     .n_trees = (int)trees->list.n };
	int rc = shallow_init(&s, trees);

	for (int i = 0; i < SHALLOW_PASSES && rc == 0 && pass(&s); i++) {
	}
	for (int i = 0; i < s.n_trees && rc == 0; i++) {
		s.trees[i].t->deepest = s.trees[i].height[s.root];
	}
	arrays_fini(&s.arrays);
	return rc;
}
