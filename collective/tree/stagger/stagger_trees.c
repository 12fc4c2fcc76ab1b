/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees as they are walked when what goes along them is put into steps: children, depths, and how
 * far it is from a node to the farthest leaf. What a forest says is checked here, so that a run
 * comes to an end and what a schedule lacks is found before it is made.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/tree/stagger/stagger_private.h"

/* A tree of the forest must reach all terminals from its root, or be reached. */
static int wrong_tree(const struct coll_forest_tree *t, int i, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "forest: tree %d of root %d is none that spans all "
		       "terminals", i, t->root);
}

/* The node at the other end of v's arc. */
static int parent(const struct stagger *s, const struct coll_forest_tree *t, int v)
{
	const struct topo_arc *a = topo_arc(s->f->logical, t->via[v]);

	return t->inwards ? a->dst : a->src;
}

static bool is_arc_of(const struct stagger *s, const struct coll_forest_tree *t, int v)
{
	const struct topo_arc *a;

	if (t->via[v] >= s->m) {
		return false;
	}
	a = topo_arc(s->f->logical, t->via[v]);
	return (t->inwards ? a->src : a->dst) == v && a->src != a->dst;
}

/* Children, by counting. */
static void list_children(const struct stagger *s, struct stagger_tree *w)
{
	const int32_t *via = w->t->via;

	for (int v = 0; v < s->n; v++) {
		if (via[v] >= 0) {
			w->first[parent(s, w->t, v) + 2]++;
		}
	}
	for (int v = 0; v < s->n; v++) {
		w->first[v + 2] += w->first[v + 1];
	}
	for (int v = 0; v < s->n; v++) {
		if (via[v] >= 0) {
			w->child[w->first[parent(s, w->t, v) + 1]++] = v;
		}
	}
}

/* Nodes from the root on into order[]; their depths. How many. */
static int walk_down(const struct stagger_tree *w, int32_t *order)
{
	int n = 1;

	order[0] = w->t->root;
	w->depth[w->t->root] = 0;
	for (int i = 0; i < n; i++) {
		int v = order[i];

		for (int k = w->first[v]; k < w->first[v + 1]; k++) {
			w->depth[w->child[k]] = w->depth[v] + 1;
			order[n++] = w->child[k];
		}
	}
	return n;
}

static void find_heights(const struct stagger *s, struct stagger_tree *w, const int32_t *order,
			 int n)
{
	for (int i = 0; i < n; i++) {
		w->height[order[i]] = 1;
	}
	for (int i = n; i-- > 1;) {
		int v = order[i], up = parent(s, w->t, v);

		if (w->height[up] <= w->height[v]) {
			w->height[up] = w->height[v] + 1;
		}
	}
}

static int walk_tree(struct stagger *s, int i, int32_t *order, struct err *err)
{
	const struct coll_forest_tree *t = &s->f->trees.v[i];
	struct stagger_tree *w = &s->trees[i];
	int arcs = 0, n, missing = 0;

	w->t = t;
	arrays_add(&s->arrays, w->first, s->n + 2);
	arrays_add(&s->arrays, w->child, s->n);
	arrays_add(&s->arrays, w->depth, s->n);
	arrays_add(&s->arrays, w->height, s->n);
	if (t->root < 0 || t->root >= s->ranks || t->weight < 1 || t->via[t->root] >= 0) {
		return wrong_tree(t, i, err);
	}
	for (int v = 0; v < s->n; v++) {
		if (t->via[v] >= 0 && !is_arc_of(s, t, v)) {
			return wrong_tree(t, i, err);
		}
		arcs += t->via[v] >= 0;
		missing += t->via[v] < 0 && v < s->ranks;
	}
	list_children(s, w);
	n = walk_down(w, order);
	if (n != arcs + 1 || missing != 1) {
		return wrong_tree(t, i, err);
	}
	find_heights(s, w, order, n);
	return 0;
}

/* The longest way of a batch. */
static void find_deepest(struct stagger *s)
{
	int *deepest = s->deepest, flattest[STAGGER_PARTS] = { 0 };
	int in, out;

	for (int i = 0; i < s->n_trees; i++) {
		const struct coll_forest_tree *t = s->trees[i].t;
		enum stagger_part side = t->inwards ? STAGGER_IN : STAGGER_OUT;
		bool first = deepest[side] == 0;

		flattest[side] = first || t->depth < flattest[side] ? t->depth : flattest[side];
		deepest[side] = t->depth > deepest[side] ? t->depth : deepest[side];
	}
	deepest[STAGGER_ALL] = deepest[STAGGER_IN] + deepest[STAGGER_OUT];
	memcpy(s->min_steps, deepest, sizeof(s->min_steps));
	in = deepest[STAGGER_IN] + flattest[STAGGER_OUT];
	out = deepest[STAGGER_OUT] + flattest[STAGGER_IN];
	s->min_steps[STAGGER_ALL] = in > out ? in : out;
}

/* Of an all-gather or reduce-scatter as the forest says, else all trees one way over the
 * ranks. */
static double weigh_share(const struct stagger *s)
{
	bool in = s->opt->kind == COLL_REDUCE;
	double sum = 0;

	if (s->opt->kind == COLL_ALLGATHER || s->opt->kind == COLL_REDUCE_SCATTER) {
		return (double)s->f->share;
	}
	for (int i = 0; i < s->n_trees; i++) {
		sum += s->trees[i].t->inwards == in ? (double)s->trees[i].t->weight : 0;
	}
	return sum * (s->f->group ? topo_group_order(s->f->group) : 1) / s->ranks;
}

/* Labels of all roots together are of the shards that the schedule keeps. */
static void list_origins(struct stagger *s)
{
	int n = 0;

	if (!s->f->group || s->opt->kind != COLL_ALLREDUCE) {
		return;
	}
	arrays_add(&s->arrays, s->origins, s->ranks);
	for (int v = 0; v < s->ranks; v++) {
		if (topo_group_first(s->f->group, v) == v) {
			s->origins[n++] = v;
		}
	}
}

void stagger_fini(struct stagger *s)
{
	topo_action_free(s->logical_action);
	topo_action_free(s->action);
	stagger_loads_fini(&s->loads);
	arrays_fini(&s->arrays);
}

int stagger_init(struct stagger *s, struct err *err)
{
	int32_t *order;
	int rc = 0;

	s->n = topo_n(s->f->logical);
	s->m = topo_m(s->f->logical);
	s->ranks = topo_ranks(s->f->logical);
	s->n_trees = (int)s->f->trees.n;
	arrays_add(&s->arrays, s->trees, s->n_trees);
	arrays_add(&s->arrays, order, s->n);
	for (int i = 0; i < s->n_trees && rc == 0; i++) {
		rc = walk_tree(s, i, order, err);
	}
	if (rc) {
		return rc;
	}
	find_deepest(s);
	list_origins(s);
	s->share = weigh_share(s);
	if (s->share <= 0) {
		return err_set(err, WEFT_EINVAL, "forest: no trees");
	}
	if (s->f->group) {
		(void)((rc = topo_action_new(s->f->logical, s->f->group, &s->logical_action,
					     err)) ||
		       (rc = topo_action_new(s->physical, s->f->group, &s->action, err)));
	}
	return rc ? rc : stagger_loads_init(s, err);
}
