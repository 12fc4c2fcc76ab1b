/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing of spanning trees of an undirected graph.
 *
 * Forests grow edge by edge. An edge that closes a cycle in a forest takes the place of an
 * edge of that cycle, which goes on to the next forest, and so on until one fits in; a search
 * breadth first over the edges that may have to move finds the shortest such chain (matroid
 * partition, Edmonds 1965, in the cyclic order of Roskind and Tarjan 1985). Where it finds none all
 * forests span the same nodes around that edge, and no more of its copies fit. The search
 * marks an edge once a forest: parts of a forest that are marked are contracted.
 *
 * Forests begin as trees of shortest paths from nodes everywhere, where an edge that is used more
 * than its share is longer by that; those along edges that are used too often are torn out and
 * grown again, a few times, with prices doubled. So trees are shallow, and few chains, which
 * make them deep, are needed after that.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/heap.h"
#include "lib/graph/private.h"

#define ROUNDS 6

enum { START = -1 };	/* the edge that is new, in no forest */

/* Arrays by forest and node have place j * n + v. */
struct spanning {
	int n, m, k;
	const struct graph_arc *edges;
	int64_t *all;		/* m: copies, at most k */
	int64_t *left;		/* m: in no forest; below 0: used too often at first */
	int32_t *tree;		/* k * (n - 1): edges of a forest */
	int32_t *size;		/* k: of them */
	int32_t *up, *via;	/* place: the parent, and the edge to it; -1: a root */
	int32_t *depth;		/* place */
	int32_t *part;		/* place: the root */
	int32_t *top;		/* place: a node above, all edges up to which are marked */
	int32_t *from;		/* place: the edge via[] has to make room for it */
	bool *touched;		/* k: top is set up in this search */
	int32_t *queue;		/* places */
	int32_t *first, *link;	/* n + 1, 2 n: of one forest, for growing it again */
	struct arrays arrays;
};

static void spanning_init(struct spanning *s, int n, const struct graph_arc *edges, int m, int k)
{
	size_t places = (size_t)n * (size_t)k;

	*s = (struct spanning){ .n = n, .m = m, .k = k, .edges = edges };
	arrays_add(&s->arrays, s->all, m);
	arrays_add(&s->arrays, s->left, m);
	arrays_add(&s->arrays, s->tree, places);
	arrays_add(&s->arrays, s->size, k);
	arrays_add(&s->arrays, s->up, places);
	arrays_add(&s->arrays, s->via, places);
	arrays_add(&s->arrays, s->depth, places);
	arrays_add(&s->arrays, s->part, places);
	arrays_add(&s->arrays, s->top, places);
	arrays_add(&s->arrays, s->from, places);
	arrays_add(&s->arrays, s->touched, k);
	arrays_add(&s->arrays, s->queue, places);
	arrays_add(&s->arrays, s->first, n + 2);
	arrays_add(&s->arrays, s->link, 2 * n);
	for (int e = 0; e < m; e++) {
		bool loop = edges[e].from == edges[e].to;

		s->all[e] = loop ? 0 : edges[e].cap < k ? edges[e].cap : k;
		s->left[e] = s->all[e];
	}
}

static int32_t *edges_of(struct spanning *s, int j)
{
	return s->tree + (size_t)j * (size_t)(s->n - 1);
}

/* ---- one forest ---- */

/* first, link: the forest's edges at each node. */
static void list_edges(struct spanning *s, int j)
{
	const int32_t *tree = edges_of(s, j);

	memset(s->first, 0, ((size_t)s->n + 2) * sizeof(*s->first));
	for (int i = 0; i < s->size[j]; i++) {
		s->first[s->edges[tree[i]].from + 2]++;
		s->first[s->edges[tree[i]].to + 2]++;
	}
	for (int v = 0; v < s->n; v++) {
		s->first[v + 2] += s->first[v + 1];
	}
	for (int i = 0; i < s->size[j]; i++) {
		s->link[s->first[s->edges[tree[i]].from + 1]++] = tree[i];
		s->link[s->first[s->edges[tree[i]].to + 1]++] = tree[i];
	}
}

static int other_end(const struct graph_arc *edge, int v)
{
	return edge->from == v ? edge->to : edge->from;
}

/* Hangs what is connected with a root below it. */
static void hang(struct spanning *s, int j, int root)
{
	size_t base = (size_t)j * (size_t)s->n;
	int n = 0;

	s->queue[n++] = root;
	s->up[base + (size_t)root] = s->via[base + (size_t)root] = -1;
	s->depth[base + (size_t)root] = 0;
	s->part[base + (size_t)root] = root;
	for (int i = 0; i < n; i++) {
		int u = s->queue[i];

		for (int at = s->first[u]; at < s->first[u + 1]; at++) {
			int v = other_end(&s->edges[s->link[at]], u);
			size_t place = base + (size_t)v;

			if (s->part[place] < 0) {
				s->up[place] = u;
				s->via[place] = s->link[at];
				s->depth[place] = s->depth[base + (size_t)u] + 1;
				s->part[place] = root;
				s->queue[n++] = v;
			}
		}
	}
}

/* Roots and parents of a forest whose edges have changed. */
static void regrow(struct spanning *s, int j)
{
	size_t base = (size_t)j * (size_t)s->n;

	list_edges(s, j);
	for (int v = 0; v < s->n; v++) {
		s->part[base + (size_t)v] = -1;
	}
	for (int v = 0; v < s->n; v++) {
		if (s->part[base + (size_t)v] < 0) {
			hang(s, j, v);
		}
	}
}

/* ---- a chain of exchanges ---- */

/* Searches are short: only what they touch is set up. */
static void touch(struct spanning *s, int j)
{
	if (!s->touched[j]) {
		for (int v = 0; v < s->n; v++) {
			s->top[j * s->n + v] = v;
		}
		s->touched[j] = true;
	}
}

static int find_top(struct spanning *s, int j, int v)
{
	int32_t *top = s->top + (size_t)j * (size_t)s->n;

	while (top[v] != v) {
		top[v] = top[top[v]];
		v = top[v];
	}
	return v;
}

/* Marks the edges between u and v in forest j that are not yet, for `place`. */
static void mark_path(struct spanning *s, int j, int u, int v, int place, int *queued)
{
	int base = j * s->n;

	u = find_top(s, j, u);
	v = find_top(s, j, v);
	while (u != v) {
		int *low = s->depth[base + u] >= s->depth[base + v] ? &u : &v;

		s->from[base + *low] = place;
		s->queue[(*queued)++] = base + *low;
		s->top[base + *low] = s->up[base + *low];
		*low = find_top(s, j, *low);
	}
}

static void take_out(struct spanning *s, int j, int e)
{
	int32_t *tree = edges_of(s, j);
	int i = 0;

	while (tree[i] != e) {
		i++;
	}
	tree[i] = tree[--s->size[j]];
}

/* The edge at `place` goes into forest j, the one for which it was marked into its
 * own, and so on up to the new edge e. */
static void exchange(struct spanning *s, int e, int place, int j)
{
	for (;;) {
		int g = place == START ? e : s->via[place];

		edges_of(s, j)[s->size[j]++] = g;
		s->touched[j] = true;
		if (place == START) {
			break;
		}
		j = place / s->n;
		take_out(s, j, g);
		place = s->from[place];
	}
	for (j = 0; j < s->k; j++) {
		if (s->touched[j]) {
			regrow(s, j);
		}
	}
}

/* One more copy of edge e; false: none fits. */
static bool add_edge(struct spanning *s, int e)
{
	int queued = 0;

	memset(s->touched, 0, (size_t)s->k * sizeof(*s->touched));
	for (int at = -1; at < queued; at++) {
		int place = at < 0 ? START : s->queue[at];
		int j = at < 0 ? 0 : (place / s->n + 1) % s->k;
		const struct graph_arc *g = &s->edges[at < 0 ? e : s->via[place]];

		if (s->part[j * s->n + g->from] != s->part[j * s->n + g->to]) {
			memset(s->touched, 0, (size_t)s->k * sizeof(*s->touched));
			exchange(s, e, place, j);
			return true;
		}
		touch(s, j);
		mark_path(s, j, g->from, g->to, place, &queued);
	}
	return false;
}

/* ---- the first forests ---- */

/* The edges at each node v of the whole graph: link[first[v] .. first[v + 1] - 1]. */
struct neighbours {
	int32_t *first, *link;
};

/* A counting sort: first[v + 2] counts the edges of v, and summed up first[v + 1] is where those of
 * v begin; each that is put there moves it on, to its end at last, where those of v + 1 begin. */
static void list_neighbours(const struct spanning *s, struct neighbours *x)
{
	x->first = x_new((size_t)s->n + 2, sizeof(*x->first));
	x->link = x_alloc(2 * (size_t)s->m + 1, sizeof(*x->link));
	for (int e = 0; e < s->m; e++) {
		x->first[s->edges[e].from + 2]++;
		x->first[s->edges[e].to + 2]++;
	}
	for (int v = 0; v < s->n; v++) {
		x->first[v + 2] += x->first[v + 1];
	}
	for (int e = 0; e < s->m; e++) {
		x->link[x->first[s->edges[e].from + 1]++] = e;
		x->link[x->first[s->edges[e].to + 1]++] = e;
	}
}

/* An edge from a tree to a node outside of it. */
struct spanning_reach {
	int64_t cost;		/* of the path to the node */
	int64_t used;		/* of the edge, in parts of its copies */
	uint32_t turn;		/* of equal ones: another order in each tree */
	int32_t node, edge;
};

static inline bool reaches_before(struct spanning_reach a, struct spanning_reach b)
{
	return a.cost != b.cost   ? a.cost < b.cost
	       : a.used != b.used ? a.used < b.used
	       : a.turn != b.turn ? a.turn < b.turn : a.edge < b.edge;
}

HEAP(spanning_reaches, struct spanning_reach);
HEAP_FUNCTIONS(spanning_reaches, struct spanning_reach, reaches_before)

/* What grows trees: the edges at nodes, prices, and a search. */
struct seeds {
	struct neighbours at;
	struct spanning_reaches heap;
	bool *inside;		/* n */
	int round;
	struct arrays arrays;
};

#define PARTS (1 << 20)
#define GOLDEN 2654435769u		/* 2^32 over the golden ratio */

/* An edge is 1 long, in parts; longer by each use above its share so far, in later rounds from its
 * last copy on. */
static int64_t length(const struct spanning *s, const struct seeds *x, int j, int e)
{
	int64_t used = s->all[e] - s->left[e];
	double share = x->round > 0 ? 1 : (double)(j + 1) / s->k;
	int64_t over = (used + 1) * PARTS - (int64_t)((double)s->all[e] * share * PARTS);

	return PARTS + (over > 0 ? over << x->round : 0);
}

static void reach_from(const struct spanning *s, struct seeds *x, int j, int u, int64_t cost)
{
	x->inside[u] = true;
	for (int i = x->at.first[u]; i < x->at.first[u + 1]; i++) {
		int e = x->at.link[i], v = other_end(&s->edges[e], u);
		uint32_t turn = ((uint32_t)j * 40503u + (uint32_t)e) * GOLDEN;

		if (!x->inside[v] && s->all[e] > 0) {
			spanning_reaches_push(&x->heap, (struct spanning_reach){
				cost + length(s, x, j, e),
				(s->all[e] - s->left[e]) * PARTS / s->all[e],
				turn ^ turn >> 15, v, e,
			});
		}
	}
}

/* Forest j, which is empty, becomes a tree, or spans what is connected with its root. */
static void seed(struct spanning *s, struct seeds *x, int j)
{
	int root = (int)(s->k < s->n ? (int64_t)j * s->n / s->k : j % s->n);

	memset(x->inside, 0, (size_t)s->n * sizeof(*x->inside));
	reach_from(s, x, j, root, 0);
	while (x->heap.n > 0) {
		struct spanning_reach r = spanning_reaches_pop(&x->heap);

		if (!x->inside[r.node]) {
			s->left[r.edge]--;
			edges_of(s, j)[s->size[j]++] = r.edge;
			reach_from(s, x, j, r.node, r.cost);
		}
	}
}

/* Takes edges out of a forest: all, or those that are used too often. */
static void take_edges(struct spanning *s, int j, bool all)
{
	int32_t *tree = edges_of(s, j);
	int kept = 0;

	for (int i = 0; i < s->size[j]; i++) {
		if (all || s->left[tree[i]] < 0) {
			s->left[tree[i]]++;
		} else {
			tree[kept++] = tree[i];
		}
	}
	s->size[j] = kept;
}

static bool is_over(const struct spanning *s, int j)
{
	const int32_t *tree = s->tree + (size_t)j * (size_t)(s->n - 1);

	for (int i = 0; i < s->size[j]; i++) {
		if (s->left[tree[i]] < 0) {
			return true;
		}
	}
	return false;
}

static void seed_all(struct spanning *s)
{
	struct seeds x = { .round = 0 };

	arrays_add(&x.arrays, x.inside, s->n);
	list_neighbours(s, &x.at);
	for (; x.round < ROUNDS; x.round++) {
		for (int j = 0; j < s->k; j++) {
			if (x.round == 0 || is_over(s, j)) {
				take_edges(s, j, true);
				seed(s, &x, j);
			}
		}
	}
	for (int j = 0; j < s->k; j++) {
		take_edges(s, j, false);
		regrow(s, j);
	}
	vec_fini(&x.heap);
	free(x.at.first);
	free(x.at.link);
	arrays_fini(&x.arrays);
}

static int count_missing(const struct spanning *s)
{
	int missing = 0;

	for (int j = 0; j < s->k; j++) {
		missing += s->n - 1 - s->size[j];
	}
	return missing;
}

int graph_pack_spanning_trees(int n, const struct graph_arc *edges, int m, int trees,
			      int32_t **out, struct err *err)
{
	struct spanning s;
	int missing, rc = 0;

	*out = NULL;
	if ((int64_t)n * trees > GRAPH_MAX_SPANNING) {
		return err_set(err, WEFT_ELIMIT, "%d spanning trees of %d nodes: too many", trees,
			       n);
	}
	spanning_init(&s, n, edges, m, trees);
	seed_all(&s);
	missing = count_missing(&s);
	for (int e = 0; e < m; e++) {
		while (missing > 0 && s.left[e] > 0 && add_edge(&s, e)) {
			s.left[e]--;
			missing--;
		}
	}
	if (missing > 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "there are not %d spanning trees", trees);
		goto out;
	}
	*out = x_alloc((size_t)trees * (size_t)n + 1, sizeof(**out));
	memcpy(*out, s.tree, (size_t)trees * (size_t)(n - 1) * sizeof(**out));
out:
	arrays_fini(&s.arrays);
	return rc;
}
