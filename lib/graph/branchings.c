/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing of spanning arborescences from many roots.
 *
 * While trees grow, the invariant is Edmonds' condition for trees that are partly grown: into
 * every set X of nodes go at least as much capacity, of arcs that are not taken, as the trees
 * weigh that do not meet X. For the sets around a node v a flow says so, in which each tree that
 * has not v sends its weight to v (branching_flow.c). Where this flow goes from a tree's
 * node u over one arc to v, the tree may take the arc: what is left of the flow is one for
 * what is left to do, and sets that v is not in lose nothing. So one flow serves all trees
 * that reach v at once, where testing arcs one by one takes a flow for each.
 *
 * All trees begin as one, at a node that feeds all roots: so trees can also exchange parts with
 * their roots in the end (shallow.c). They grow level by level, each of the nodes in turn. Where no
 * flow happens to go straight to its node, single arcs are tested, of which one can be taken
 * (Edmonds 1973, Frank 1978).
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/graph/private.h"

/* What nodes and bits of all trees may take. */
#define MAX_TREE_NODES (1 << 27)

/* ---- trees ---- */

static bool has_node(const struct branchings *b, size_t tree, int v)
{
	return b->trees.v[tree].depth[v] >= 0;
}

static bool get_bit(const struct branchings *b, const uint64_t *rows, size_t tree, int v)
{
	return rows[(size_t)v * (size_t)b->words + tree / 64] >> tree % 64 & 1;
}

static void set_bit(struct branchings *b, uint64_t *rows, size_t tree, int v)
{
	rows[(size_t)v * (size_t)b->words + tree / 64] |= UINT64_C(1) << tree % 64;
}

/* Rows of so many words. */
static void widen_rows(struct branchings *b, uint64_t **rows, int words)
{
	uint64_t *wide = x_new((size_t)b->n * (size_t)words, sizeof(*wide));

	for (int v = 0; v < b->n && *rows; v++) {
		memcpy(wide + (size_t)v * (size_t)words, *rows + (size_t)v * (size_t)b->words,
		       (size_t)b->words * sizeof(*wide));
	}
	free(*rows);
	*rows = wide;
}

/* Room for one tree more. */
static int add_room(struct branchings *b, struct err *err)
{
	int words = b->words > 0 ? 2 * b->words : 1 + b->n / 64, trees = 64 * words;
	size_t all = (size_t)b->n + (size_t)trees;

	if ((int)b->trees.n < b->max_trees) {
		return 0;
	}
	if ((int64_t)trees * b->n > MAX_TREE_NODES) {
		return err_set(err, WEFT_ELIMIT, "more than %d trees of %d nodes", b->max_trees,
			       b->n);
	}
	widen_rows(b, &b->has, words);
	widen_rows(b, &b->had, words);
	b->lacks = x_grow(b->lacks, (size_t)words, sizeof(*b->lacks));
	b->fresh = x_grow(b->fresh, (size_t)words, sizeof(*b->fresh));
	b->supply = x_grow(b->supply, (size_t)trees, sizeof(*b->supply));
	b->feeds_of = x_grow(b->feeds_of, (size_t)trees, sizeof(*b->feeds_of));
	b->level = x_grow(b->level, all, sizeof(*b->level));
	b->queue = x_grow(b->queue, all, sizeof(*b->queue));
	b->at = x_grow(b->at, all, sizeof(*b->at));
	b->words = words;
	b->max_trees = trees;
	return 0;
}

/* A tree without nodes, the last of the list. */
static int new_tree(struct branchings *b, int64_t weight, struct err *err)
{
	struct branching t = { .weight = weight, .missing = b->n };
	int rc = add_room(b, err);

	if (rc) {
		return rc;
	}
	t.via = x_alloc((size_t)b->n, sizeof(*t.via));
	t.depth = x_alloc((size_t)b->n, sizeof(*t.depth));
	vec_push(&b->trees, t);
	memset(t.via, -1, (size_t)b->n * sizeof(*t.via));
	memset(t.depth, -1, (size_t)b->n * sizeof(*t.depth));
	return 0;
}

static int plant(struct branchings *b, int root, int64_t weight, struct err *err)
{
	int rc = new_tree(b, weight, err);

	if (rc) {
		return rc;
	}
	b->trees.v[0].depth[root] = 0;
	b->trees.v[0].missing--;
	set_bit(b, b->has, 0, root);
	return 0;
}

/* A copy of the tree takes over so much of its weight, and is the last of the list. */
static int split(struct branchings *b, size_t tree, int64_t weight, struct err *err)
{
	size_t n = (size_t)b->n, copy = b->trees.n;
	int rc = new_tree(b, weight, err);
	struct branching *t, *c;

	if (rc) {
		return rc;
	}
	t = &b->trees.v[tree];
	c = &b->trees.v[copy];
	memcpy(c->via, t->via, n * sizeof(*t->via));
	memcpy(c->depth, t->depth, n * sizeof(*t->depth));
	c->missing = t->missing;
	t->weight -= weight;
	for (int v = 0; v < b->n; v++) {
		if (has_node(b, tree, v)) {
			set_bit(b, b->has, copy, v);
		}
		if (get_bit(b, b->had, tree, v)) {
			set_bit(b, b->had, copy, v);
		}
	}
	return 0;
}

/* So much of the tree takes the arc. */
static int join(struct branchings *b, size_t tree, int arc, int64_t weight, struct err *err)
{
	int v = b->arcs[arc].to;
	struct branching *t;

	if (weight < b->trees.v[tree].weight) {
		int rc = split(b, tree, weight, err);

		if (rc) {
			return rc;
		}
		tree = b->trees.n - 1;
	}
	t = &b->trees.v[tree];
	t->via[v] = arc;
	t->depth[v] = t->depth[b->arcs[arc].from] + 1;
	t->missing--;
	set_bit(b, b->has, tree, v);
	b->left[arc] -= weight;
	return 0;
}

/* ---- growing ---- */

/* The tree takes arcs into the sink that its flow goes over at once, from nodes less deep
 * than `level`; `whole`: only with all its weight. */
static int take_arcs(struct branchings *b, size_t tree, int level, bool whole, bool *any,
		     struct err *err)
{
	for (int i = b->first_in[b->sink]; i < b->first_in[b->sink + 1]; i++) {
		int a = b->in[i], u = b->arcs[a].from, rc;
		const struct branching *t = &b->trees.v[tree];
		int e = b->feeds_of[tree];
		int64_t amount;

		if (b->flow[a] == 0 || t->depth[u] < 0 || t->depth[u] >= level) {
			continue;
		}
		while (e >= 0 && b->feeds.v[e].node != u) {
			e = b->feeds.v[e].next;
		}
		amount = e < 0 ? 0 : b->feeds.v[e].amount;
		amount = b->flow[a] < amount ? b->flow[a] : amount;
		if (amount == 0 || (whole && amount < t->weight)) {
			continue;
		}
		whole = amount == t->weight;
		b->flow[a] -= amount;
		b->feeds.v[e].amount -= amount;
		*any = true;
		if ((rc = join(b, tree, a, amount, err)) || whole) {
			return rc;
		}
	}
	return 0;
}

/* Trees that have u, have not v, and may take an arc between: there is one. */
static bool may_grow(const struct branchings *b, int v)
{
	const uint64_t *has = b->has + (size_t)v * (size_t)b->words;

	for (int i = b->first_in[v]; i < b->first_in[v + 1]; i++) {
		int a = b->in[i];
		const uint64_t *others = b->has + (size_t)b->arcs[a].from * (size_t)b->words;

		for (int w = 0; w < b->words && b->left[a] > 0; w++) {
			if (others[w] & ~has[w]) {
				return true;
			}
		}
	}
	return false;
}

/* Node v joins what trees it can; those that fit with all their weight come first. */
static int grow_to(struct branchings *b, int v, int level, bool *any, struct err *err)
{
	size_t trees = b->trees.n;
	int rc = 0;

	branching_flow_begin(b, v);
	branching_flow_run(b);
	if (b->unsent > 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no arborescences of these weights: a cut has "
			     "less");
	}
	for (int part = 0; part < 2; part++) {
		for (size_t j = 0; j < trees && rc == 0; j++) {
			if (b->feeds_of[j] >= 0 && !has_node(b, j, v)) {
				rc = take_arcs(b, j, level, part == 0, any, err);
			}
		}
	}
	branching_flow_end(b);
	return rc;
}

/* How much of the tree may take arc a: all of it, less what then cannot get to the arc's head. */
static int64_t max_weight(struct branchings *b, size_t tree, int a)
{
	int64_t most = b->trees.v[tree].weight, weight;

	most = b->left[a] < most ? b->left[a] : most;
	branching_flow_begin(b, b->arcs[a].to);
	b->supply[tree] -= most;
	b->unsent -= most;
	b->left[a] -= most;
	branching_flow_run(b);
	b->left[a] += most;
	weight = most - b->unsent;
	branching_flow_end(b);
	return weight;
}

/* Any tree takes any arc that it can. */
static int grow_by_one(struct branchings *b, bool *any, struct err *err)
{
	for (size_t j = 0; j < b->trees.n; j++) {
		for (int a = 0; a < b->m && b->trees.v[j].missing > 0; a++) {
			int64_t weight;

			if (!has_node(b, j, b->arcs[a].from) || has_node(b, j, b->arcs[a].to) ||
			    b->left[a] == 0) {
				continue;
			}
			weight = max_weight(b, j, a);
			if (weight > 0) {
				*any = true;
				return join(b, j, a, weight, err);
			}
		}
	}
	return 0;
}

static bool is_done(const struct branchings *b)
{
	for (size_t j = 0; j < b->trees.n; j++) {
		if (b->trees.v[j].missing > 0) {
			return false;
		}
	}
	return true;
}

static int grow(struct branchings *b, struct err *err)
{
	int rc = 0, deepest = 0;

	for (int level = 1; rc == 0 && !is_done(b); level++) {
		bool any = false;

		memcpy(b->had, b->has, (size_t)b->n * (size_t)b->words * sizeof(*b->had));
		for (int v = 0; v < b->n && rc == 0; v++) {
			if (may_grow(b, v)) {
				rc = grow_to(b, v, level, &any, err);
			}
		}
		deepest = any ? level : deepest;
		if (rc == 0 && !any && level > deepest) {
			rc = grow_by_one(b, &any, err);
			if (!any && rc == 0) {
				rc = err_set(err, WEFT_EINFEASIBLE, "no arborescences of these "
					     "weights: a cut has less");
			}
		}
	}
	return rc;
}

/* ---- begin and end ---- */

/* list, by node: first .. first + n the arcs with this node as one of their ends. */
static void sort_arcs(const struct branchings *b, bool by_head, int *first, int *list)
{
	for (int a = 0; a < b->m; a++) {
		int v = by_head ? b->arcs[a].to : b->arcs[a].from;

		first[v + 2]++;
	}
	for (int v = 0; v < b->n; v++) {
		first[v + 2] += first[v + 1];
	}
	for (int a = 0; a < b->m; a++) {
		int v = by_head ? b->arcs[a].to : b->arcs[a].from;

		list[first[v + 1]++] = a;
	}
}

/* The arcs, and those from node n, which feeds all roots with their weights; *weight: of all. */
static struct graph_arc *feed_roots(int n, const struct graph_arc *arcs, int m,
				    const struct graph_root *roots, int n_roots, int64_t *weight)
{
	struct graph_arc *fed = x_alloc((size_t)m + (size_t)n_roots, sizeof(*fed));

	*weight = 0;
	for (int a = 0; a < m; a++) {
		fed[a] = arcs[a];
	}
	for (int i = 0; i < n_roots; i++) {
		fed[m + i] = (struct graph_arc){ n, roots[i].node, roots[i].weight };
		*weight += roots[i].weight;
	}
	return fed;
}

static int start(struct branchings *b, int64_t weight, struct err *err)
{
	arrays_add(&b->arrays, b->first_in, b->n + 2);
	arrays_add(&b->arrays, b->in, b->m);
	arrays_add(&b->arrays, b->first_out, b->n + 2);
	arrays_add(&b->arrays, b->out, b->m);
	arrays_add(&b->arrays, b->left, b->m);
	arrays_add(&b->arrays, b->flow, b->m);
	sort_arcs(b, true, b->first_in, b->in);
	sort_arcs(b, false, b->first_out, b->out);
	for (int a = 0; a < b->m; a++) {
		b->left[a] = b->arcs[a].from == b->arcs[a].to ? 0 : b->arcs[a].cap;
	}
	return plant(b, b->n - 1, weight, err);
}

static void branchings_fini(struct branchings *b)
{
	for (size_t j = 0; j < b->trees.n; j++) {
		free(b->trees.v[j].via);
		free(b->trees.v[j].depth);
	}
	vec_fini(&b->trees);
	vec_fini(&b->carry);
	vec_fini(&b->feeds);
	vec_fini(&b->at_level);
	vec_fini(&b->path);
	free(b->has);
	free(b->had);
	free(b->lacks);
	free(b->fresh);
	free(b->supply);
	free(b->feeds_of);
	free(b->level);
	free(b->queue);
	free(b->at);
	arrays_fini(&b->arrays);
}

static void hand_over(struct branchings *b, struct graph_trees *out)
{
	vec_reserve(&out->list, b->trees.n);
	for (size_t j = 0; j < b->trees.n; j++) {
		struct branching *t = &b->trees.v[j];

		out->list.v[out->list.n++] = (struct graph_tree){
			.weight = t->weight, .via = t->via, .depth = t->depth };
		t->via = t->depth = NULL;
	}
	flatten_trees(b->n, b->arcs, b->m, out);
}

/* The trees of n nodes, without the one that feeds their roots by arcs from number m on. */
static void cut_off(struct graph_trees *trees, int n, int m)
{
	for (size_t j = 0; j < trees->list.n; j++) {
		struct graph_tree *t = &trees->list.v[j];

		t->deepest--;
		for (int v = 0; v < n; v++) {
			t->depth[v]--;
			t->via[v] = t->via[v] < m ? t->via[v] : -1;
		}
	}
}

static int check(int n, const struct graph_arc *arcs, int m, const struct graph_root *roots,
		 int n_roots, struct err *err)
{
	for (int a = 0; a < m; a++) {
		if (arcs[a].from < 0 || arcs[a].from >= n || arcs[a].to < 0 || arcs[a].to >= n ||
		    arcs[a].cap < 0) {
			return err_set(err, WEFT_EINVAL,
				       "arc %d: from node %d to %d, capacity %lld",
				       a, arcs[a].from, arcs[a].to, (long long)arcs[a].cap);
		}
	}
	for (int i = 0; i < n_roots; i++) {
		if (roots[i].node < 0 || roots[i].node >= n || roots[i].weight < 1) {
			return err_set(err, WEFT_EINVAL,
				       "arborescences of %lld in all from node %d",
				       (long long)roots[i].weight, roots[i].node);
		}
	}
	return 0;
}

int graph_pack_from_roots(int n, const struct graph_arc *arcs, int m,
			  const struct graph_root *roots, int n_roots, struct graph_trees *out,
			  struct err *err)
{
	struct branchings b = { .n = n + 1, .m = m + n_roots };
	struct graph_arc *fed;
	int64_t weight;
	int rc = check(n, arcs, m, roots, n_roots, err);

	if (rc || n_roots == 0) {
		return rc;
	}
	b.arcs = fed = feed_roots(n, arcs, m, roots, n_roots, &weight);
	if ((rc = start(&b, weight, err)) == 0 && (rc = grow(&b, err)) == 0) {
		hand_over(&b, out);
	}
	cut_off(out, n, m);
	branchings_fini(&b);
	free(fed);
	return rc;
}
