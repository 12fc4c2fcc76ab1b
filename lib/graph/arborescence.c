/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing of spanning arborescences.
 *
 * While trees grow, the invariant is Edmonds' condition for trees that are
 * partly grown: into every set X of nodes go at least as much capacity, of arcs
 * that are not taken, as the trees weigh that do not meet X. As a network: a
 * node beside each tree, fed with the tree's weight, feeds all nodes of that
 * tree; then every node receives `weight` in all. Arc u -> v may join tree i
 * with as much weight as v receives beyond what the others need, without that
 * arc and without what tree i feeds, u being a source: that is one flow. What
 * is blocked once is blocked for good, since no step adds to what goes into a
 * set; so every tree tries every arc at most once.
 *
 * A tree that may take only a part of its weight is split in two. All trees
 * begin as one. Trees take turns within a level, for the first to take the
 * shortest paths would leave the long ones to the last.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/graph/private.h"

/* A tree that grows. */
struct pack_tree {
	int64_t weight;
	int32_t *via, *depth;	/* n; depth -1: not in the tree */
	int32_t *members;	/* n: in the order in which they joined */
	int n_members;
	int at, arc;		/* the member, and its arc, to be tried next */
	int node, feed;		/* of the network: its node, the edge into that */
};

struct pack {
	int n, m, root;
	const struct graph_arc *arcs;
	int64_t weight;		/* of all trees */
	int *first, *out;	/* arcs out of u: out[first[u] .. first[u + 1] - 1] */
	int nodes;		/* of the network: n, the feeder, then trees */
	struct graph_flow *net;	/* edge a: arc a */
	struct flow_phases flow;
	VEC(struct pack_tree) trees;
};

static void pack_fini(struct pack *p)
{
	for (size_t i = 0; i < p->trees.n; i++) {
		free(p->trees.v[i].via);
		free(p->trees.v[i].depth);
		free(p->trees.v[i].members);
	}
	vec_fini(&p->trees);
	flow_phases_fini(&p->flow);
	graph_flow_free(p->net);
	free(p->first);
	free(p->out);
}

static void sort_arcs(struct pack *p)
{
	p->first = x_new((size_t)p->n + 2, sizeof(*p->first));
	p->out = x_new((size_t)p->m + 1, sizeof(*p->out));
	for (int a = 0; a < p->m; a++) {
		p->first[p->arcs[a].from + 2]++;
	}
	for (int u = 0; u < p->n; u++) {
		p->first[u + 2] += p->first[u + 1];
	}
	for (int a = 0; a < p->m; a++) {
		p->out[p->first[p->arcs[a].from + 1]++] = a;
	}
}

/* ---- the network ---- */

static int64_t *room(struct pack *p, int edge)
{
	return &p->net->edges.v[2 * edge].left;
}

/* Room for `more` trees; what searches know is lost. */
static void grow_network(struct pack *p, int more)
{
	int n = p->nodes + more;
	int *head = x_grow(p->net->head, (size_t)n, sizeof(*head));

	p->net->head = head;
	for (int v = p->net->n; v < n; v++) {
		head[v] = -1;
	}
	p->net->n = n;
	flow_phases_fini(&p->flow);
	flow_phases_init(&p->flow, p->net);
	p->flow.source[p->n] = true;
	p->flow.hubs = p->n + 1;
}

/* Enters a tree with its members into the network. Takes its arrays over, also
 * on error. */
static int enter_tree(struct pack *p, struct pack_tree *t, struct err *err)
{
	int rc;

	vec_push(&p->trees, *t);
	if (p->nodes == p->net->n) {
		grow_network(p, p->nodes - p->n);
	}
	t = &p->trees.v[p->trees.n - 1];
	t->node = p->nodes++;
	rc = graph_flow_add(p->net, p->n, t->node, t->weight, 0, &t->feed, err);
	for (int i = 0; i < t->n_members && rc == 0; i++) {
		flow_add_from_hub(p->net, t->node, t->members[i]);
	}
	return rc;
}

static void new_tree(struct pack *p, int64_t weight, struct pack_tree *t)
{
	size_t n = (size_t)p->n;

	*t = (struct pack_tree){ .weight = weight };
	t->via = x_alloc(n, sizeof(*t->via));
	t->depth = x_alloc(n, sizeof(*t->depth));
	t->members = x_alloc(n, sizeof(*t->members));
}

/* Only `part` of the tree's weight stays with it; the rest is a new tree with
 * the same nodes so far. */
static int split_tree(struct pack *p, int i, int64_t part, struct err *err)
{
	size_t n = (size_t)p->n;
	struct pack_tree rest, *t = &p->trees.v[i];

	new_tree(p, t->weight - part, &rest);
	memcpy(rest.via, t->via, n * sizeof(*t->via));
	memcpy(rest.depth, t->depth, n * sizeof(*t->depth));
	memcpy(rest.members, t->members, (size_t)t->n_members * sizeof(*t->members));
	rest.n_members = t->n_members;
	rest.at = t->at;
	rest.arc = t->arc;
	t->weight = part;
	*room(p, t->feed) = part;
	return enter_tree(p, &rest, err);
}

/* What the trees other than t feed to v at once, being there; their own feeding
 * stops, or (on true) is as it was. */
static int64_t feed_at_once(struct pack *p, const struct pack_tree *t, int v, bool on)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->trees.n; i++) {
		const struct pack_tree *o = &p->trees.v[i];

		if (o != t && o->depth[v] >= 0) {
			*room(p, o->feed) = on ? o->weight : 0;
			sum += o->weight;
		}
	}
	return sum;
}

/* How much of its weight tree t may give to arc a; 0: none, ever. */
static int64_t max_weight(struct pack *p, const struct pack_tree *t, int a)
{
	const struct graph_arc *arc = &p->arcs[a];
	int64_t cap = *room(p, a), most = cap < t->weight ? cap : t->weight, flow;
	int64_t need = p->weight - t->weight - cap - feed_at_once(p, t, arc->to, false);

	if (most > 0 && need + most > 0) {
		*room(p, a) = 0;
		*room(p, t->feed) = 0;
		p->flow.source[arc->from] = true;
		flow = flow_phases_run(&p->flow, arc->to, need + most);
		flow_phases_undo(&p->flow);
		p->flow.source[arc->from] = false;
		*room(p, t->feed) = t->weight;
		*room(p, a) = cap;
		most = flow - need < most ? flow - need : most;
	}
	(void)feed_at_once(p, t, arc->to, true);
	return most > 0 ? most : 0;
}

/* ---- growing ---- */

/* Arc a with its head joins tree i, with a part of the tree's weight. */
static int join(struct pack *p, int i, int a, int64_t weight, struct err *err)
{
	struct pack_tree *t = &p->trees.v[i];
	int v = p->arcs[a].to, rc = 0;

	if (weight < t->weight && (rc = split_tree(p, i, weight, err))) {
		return rc;
	}
	t = &p->trees.v[i];
	*room(p, a) -= weight;
	t->via[v] = a;
	t->depth[v] = t->depth[p->arcs[a].from] + 1;
	t->members[t->n_members++] = v;
	flow_add_from_hub(p->net, t->node, v);
	return 0;
}

/* Tree i takes one arc out of a node of this depth, or (*joined false) finds
 * that it can take none. */
static int take_turn(struct pack *p, int i, int depth, bool *joined, struct err *err)
{
	struct pack_tree *t = &p->trees.v[i];

	*joined = false;
	for (; t->at < t->n_members && t->depth[t->members[t->at]] == depth; t->at++) {
		int u = t->members[t->at];

		for (; t->arc < p->first[u + 1] - p->first[u]; t->arc++) {
			int a = p->out[p->first[u] + t->arc];
			int64_t weight;

			if (t->depth[p->arcs[a].to] >= 0) {
				continue;
			}
			weight = max_weight(p, t, a);
			if (weight > 0) {
				*joined = true;
				return join(p, i, a, weight, err);
			}
		}
		t->arc = 0;
	}
	return 0;
}

static int grow_level(struct pack *p, int depth, bool *grown, struct err *err)
{
	bool any = true;

	*grown = false;
	while (any) {
		any = false;
		for (size_t i = 0; i < p->trees.n; i++) {
			bool joined;
			int rc = take_turn(p, (int)i, depth, &joined, err);

			if (rc) {
				return rc;
			}
			any |= joined;
		}
		*grown |= any;
	}
	return 0;
}

static int grow(struct pack *p, struct err *err)
{
	bool grown = true;
	int rc = 0;

	for (int depth = 0; grown && rc == 0; depth++) {
		rc = grow_level(p, depth, &grown, err);
	}
	for (size_t i = 0; i < p->trees.n && rc == 0; i++) {
		if (p->trees.v[i].n_members < p->n) {
			rc = err_set(err, WEFT_EINFEASIBLE, "no arborescences of %lld in all: "
				     "a cut has less", (long long)p->weight);
		}
	}
	return rc;
}

/* One tree that has all the weight and only the root. */
static int plant(struct pack *p, struct err *err)
{
	struct pack_tree t;
	int rc = graph_flow_of(p->n, p->arcs, p->m, &p->net, err);

	p->nodes = p->n + 1;
	if (rc) {
		return rc;
	}
	sort_arcs(p);
	grow_network(p, 8);
	new_tree(p, p->weight, &t);
	for (int v = 0; v < p->n; v++) {
		t.via[v] = t.depth[v] = -1;
	}
	t.depth[p->root] = 0;
	t.members[t.n_members++] = p->root;
	return enter_tree(p, &t, err);
}

/* ---- the result ---- */

static void hand_over(struct pack *p, struct graph_trees *out)
{
	vec_reserve(&out->list, p->trees.n);
	for (size_t i = 0; i < p->trees.n; i++) {
		struct pack_tree *t = &p->trees.v[i];
		struct graph_tree *tree = &out->list.v[out->list.n++];

		*tree = (struct graph_tree){ .weight = t->weight, .via = t->via,
					     .depth = t->depth };
		for (int v = 0; v < p->n; v++) {
			tree->deepest = t->depth[v] > tree->deepest ? t->depth[v] : tree->deepest;
		}
		t->via = t->depth = NULL;
	}
}

void graph_trees_fini(struct graph_trees *t)
{
	for (size_t i = 0; i < t->list.n; i++) {
		free(t->list.v[i].via);
		free(t->list.v[i].depth);
	}
	vec_fini(&t->list);
}

int graph_pack_trees(int n, const struct graph_arc *arcs, int m, int root, int64_t weight,
		     struct graph_trees *out, struct err *err)
{
	struct pack p = { .n = n, .m = m, .root = root, .arcs = arcs, .weight = weight };
	int rc;

	if (root < 0 || root >= n || weight < 1) {
		return err_set(err, WEFT_EINVAL, "arborescences of %lld in all from node %d",
			       (long long)weight, root);
	}
	if ((rc = plant(&p, err)) == 0 && (rc = grow(&p, err)) == 0) {
		hand_over(&p, out);
		flatten_trees(n, arcs, m, out);
	}
	pack_fini(&p);
	return rc;
}

/* ---- trees of two levels ---- */

/* The tree that begins with `arc`, of the arc's weight: from its head one arc
 * to each other node. Takes them off left; false: one is missing. */
static bool fan_out(const struct pack *p, int arc, int64_t *left, struct pack_tree *t)
{
	int top = p->arcs[arc].to, found = 2;

	for (int v = 0; v < p->n; v++) {
		t->via[v] = -1;
		t->depth[v] = v == p->root ? 0 : v == top ? 1 : 2;
	}
	t->via[top] = arc;
	for (int k = p->first[top]; k < p->first[top + 1]; k++) {
		int a = p->out[k], v = p->arcs[a].to;

		if (t->depth[v] == 2 && t->via[v] < 0 && left[a] >= t->weight) {
			t->via[v] = a;
			left[a] -= t->weight;
			found++;
		}
	}
	return found == p->n;
}

static bool fan_out_all(struct pack *p, int64_t *left)
{
	bool found = true;

	for (int k = p->first[p->root]; k < p->first[p->root + 1] && found; k++) {
		int a = p->out[k];
		struct pack_tree t;

		if (p->arcs[a].to == p->root || left[a] == 0) {
			continue;
		}
		new_tree(p, left[a], &t);
		left[a] = 0;
		found = fan_out(p, a, left, &t);
		vec_push(&p->trees, t);
	}
	return found;
}

bool graph_two_level_trees(int n, const struct graph_arc *arcs, int m, int root,
			   struct graph_trees *out)
{
	struct pack p = { .n = n, .m = m, .root = root, .arcs = arcs };
	int64_t *left = x_new((size_t)m + 1, sizeof(*left));
	bool found;

	sort_arcs(&p);
	for (int a = 0; a < m; a++) {
		left[a] = arcs[a].cap;
	}
	found = fan_out_all(&p, left);
	if (found) {
		hand_over(&p, out);
	}
	free(left);
	pack_fini(&p);
	return found;
}
