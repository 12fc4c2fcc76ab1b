/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce in as many steps as the digraph is wide, with sums that are merged on their way.
 *
 * Every rank's vector goes to all others down a tree of shortest paths. What comes to a rank in a
 * step from several others and goes on from there down equal subtrees is added up before: one
 * vector a subtree. So trees should agree: where a rank has several before it on shortest paths,
 * it takes the same one for all roots, the first by an order of arcs that is the same everywhere.
 * A few such orders are tried, and the one of least T_B is kept: on meshes one is dimension order,
 * and a link carries one vector a step.
 *
 * All shards move alike. Parallel arcs share what goes to the next rank by their capacities.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/make/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_NODES 2896	/* so that tables by two of them stay small; <= COLL_MAX_MERGED */
#define MAX_SPLIT 5040	/* chunks */
#define ORDERS 5

/* One of those roots that are as far from a node, and the same from there on. */
struct merged_class {
	int32_t dist, root;
	uint64_t below;
};

/* Tables by root and node: root * n + node. */
struct merged {
	const struct topo *t;
	int n, depth;
	int32_t *dist;
	int32_t *parent;	/* the arc that leads there, the first of parallel ones; -1: the
				 * root */
	uint64_t *below;	/* the subtree, by a hash; 0: none. Should two be equal that are
				 * not, the replay finds it */
	uint16_t *number;	/* of what is kept there of the root */
	int32_t *twin, *cap;	/* by arc: the first of those parallel to it; of the first: their
				 * capacity */
	int32_t *into, *first_in;	/* first arcs by their head, where they begin */
	VEC(struct merged_class) classes;	/* by node */
	int32_t *first_class;	/* of a node */
	struct merged_class *sorted;	/* of a node, all */
	int32_t *seen;		/* by arc out of a node and number */
	double *load;		/* by step and arc */
	struct arrays arrays;
};

static size_t cell(const struct merged *m, int root, int node)
{
	return (size_t)root * (size_t)m->n + (size_t)node;
}

/* ---- trees ---- */

static void find_twins(struct merged *m)
{
	const struct topo_arc *arcs = topo_arcs(m->t);

	for (int u = 0; u < m->n; u++) {
		int first, n = topo_out(m->t, u, &first);

		for (int a = first; a < first + n; a++) {
			m->twin[a] = first;
			while (arcs[m->twin[a]].dst != arcs[a].dst) {
				m->twin[a]++;
			}
			m->cap[m->twin[a]] += (int32_t)arcs[a].cap;
			m->first_in[arcs[a].dst + 1] += m->twin[a] == a && arcs[a].dst != u;
		}
	}
	for (int u = 0; u < m->n; u++) {
		m->first_in[u + 1] += m->first_in[u];
	}
	for (int a = 0, *at = m->first_in; a < topo_m(m->t); a++) {
		if (m->twin[a] == a && arcs[a].dst != arcs[a].src) {
			m->into[at[arcs[a].dst]++] = a;
		}
	}
	for (int u = m->n; u > 0; u--) {
		m->first_in[u] = m->first_in[u - 1];
	}
	m->first_in[0] = 0;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* What comes first in an order of arcs. */
static int64_t rank_of(const struct merged *m, int arc, int order)
{
	const struct topo_arc *a = topo_arc(m->t, arc);
	int far = abs(a->src - a->dst);

	switch (order) {
	case 0:
		return a->src;
	case 1:
		return -(int64_t)a->src;
	case 2:
		return (int64_t)far * m->n + a->src;
	case 3:
		return (a->src - a->dst + m->n) % m->n;
	default:
		return (int64_t)(mix((uint64_t)arc + 1) >> 1);
	}
}

/* Arcs into each node as they come in an order. */
static void sort_arcs(struct merged *m, int order)
{
	for (int v = 0; v < m->n; v++) {
		for (int i = m->first_in[v] + 1; i < m->first_in[v + 1]; i++) {
			int32_t arc = m->into[i], k = i;
			int64_t rank = rank_of(m, arc, order);

			for (; k > m->first_in[v] &&
			       rank_of(m, m->into[k - 1], order) > rank; k--) {
				m->into[k] = m->into[k - 1];
			}
			m->into[k] = arc;
		}
	}
}

/* The tree of a root; nodes by distance come in list. */
static void grow(struct merged *m, int root, const int32_t *list)
{
	const struct topo_arc *arcs = topo_arcs(m->t);

	m->parent[cell(m, root, root)] = -1;
	for (int i = 1; i < m->n; i++) {
		int v = list[i], k = m->first_in[v];

		while (m->dist[cell(m, root, arcs[m->into[k]].src)] !=
		       m->dist[cell(m, root, v)] - 1) {
			k++;
		}
		m->parent[cell(m, root, v)] = m->into[k];
	}
	for (int i = 0; i < m->n; i++) {
		m->below[cell(m, root, list[i])] = 0;
	}
	for (int i = m->n - 1; i > 0; i--) {
		int arc = m->parent[cell(m, root, list[i])];
		uint64_t *up = &m->below[cell(m, root, arcs[arc].src)];

		/* A sum: in any order of the children. */
		*up += mix(m->below[cell(m, root, list[i])] + mix((uint64_t)arc + 1));
	}
}

/* Distances from a root, and the nodes by them. */
static int spread(struct merged *m, int root, int32_t *list, struct err *err)
{
	int32_t *dist = &m->dist[cell(m, root, 0)];
	int n = 0;

	for (int v = 0; v < m->n; v++) {
		dist[v] = -1;
	}
	dist[root] = 0;
	list[n++] = root;
	for (int i = 0; i < n; i++) {
		int first, out = topo_out(m->t, list[i], &first);

		for (int a = first; a < first + out; a++) {
			int v = topo_arc(m->t, a)->dst;

			if (dist[v] < 0) {
				dist[v] = dist[list[i]] + 1;
				list[n++] = v;
			}
		}
	}
	m->depth = dist[list[n - 1]] > m->depth ? dist[list[n - 1]] : m->depth;
	return n == m->n ? 0 : err_set(err, WEFT_EINFEASIBLE, "rank %d does not reach all others",
				       root);
}

/* ---- what is the same from a node on ---- */

static int by_class(const void *pa, const void *pb)
{
	const struct merged_class *a = pa, *b = pb;

	if (a->dist != b->dist) {
		return a->dist < b->dist ? -1 : 1;
	}
	if (a->below != b->below) {
		return a->below < b->below ? -1 : 1;
	}
	return a->root < b->root ? -1 : a->root > b->root;
}

/* Numbers what is kept at a node: its own first; what ends there has the last number. Lists one of
 * each class. */
static void number_classes(struct merged *m, int v)
{
	struct merged_class *c = m->sorted;
	int n = 0;

	for (int u = 0; u < m->n; u++) {
		m->number[cell(m, u, v)] = (uint16_t)(m->n - 1);
		if (m->below[cell(m, u, v)]) {
			c[n++] = (struct merged_class){ m->dist[cell(m, u, v)], u,
							m->below[cell(m, u, v)] };
		}
	}
	qsort(c, (size_t)n, sizeof(*c), by_class);
	for (int i = 0, k = -1; i < n; i++) {
		if (i == 0 || c[i].dist != c[i - 1].dist || c[i].below != c[i - 1].below) {
			vec_push(&m->classes, c[i]);
			k++;
		}
		m->number[cell(m, c[i].root, v)] = (uint16_t)k;
	}
	m->first_class[v + 1] = (int32_t)m->classes.n;
}

/* The trees that agree by an order of arcs, and their classes. lists: nodes by distance. */
static void plant(struct merged *m, int order, const int32_t *lists)
{
	sort_arcs(m, order);
	for (int u = 0; u < m->n; u++) {
		grow(m, u, &lists[cell(m, u, 0)]);
	}
	m->classes.n = 0;
	for (int v = 0; v < m->n; v++) {
		number_classes(m, v);
	}
}

/* Calls fn for each arc over which a class at a node goes on, of all classes. */
typedef int merged_fn(struct merged *m, int arc, const struct merged_class *c, void *arg,
		      struct err *err);

static int each_send(struct merged *m, merged_fn *fn, void *arg, struct err *err)
{
	int rc = 0;

	for (int v = 0; v < m->n; v++) {
		int first, n = topo_out(m->t, v, &first);

		for (int i = m->first_class[v]; i < m->first_class[v + 1]; i++) {
			const struct merged_class *c = &m->classes.v[i];

			for (int a = first; a < first + n && !rc; a++) {
				bool on = m->parent[cell(m, c->root, topo_arc(m->t, a)->dst)] == a;

				rc = on ? fn(m, a, c, arg, err) : 0;
			}
		}
	}
	return rc;
}

/* Under which it is kept at the head. */
static int number_at(const struct merged *m, int arc, const struct merged_class *c)
{
	return m->number[cell(m, c->root, topo_arc(m->t, arc)->dst)];
}

/* ---- T_B ---- */

/* A message more, unless one of this step and arc is kept under the same number. */
static int add_load(struct merged *m, int arc, const struct merged_class *c, void *arg,
		    struct err *err)
{
	int src = topo_arc(m->t, arc)->src, first, stamp = src * (m->depth + 1) + c->dist + 1;
	int32_t *seen;

	(void)arg;
	(void)err;
	topo_out(m->t, src, &first);
	seen = &m->seen[cell(m, arc - first, number_at(m, arc, c))];
	if (*seen != stamp) {
		*seen = stamp;
		m->load[(size_t)c->dist * (size_t)topo_m(m->t) + (size_t)arc] +=
			1 / (double)m->cap[arc];
	}
	return 0;
}

/* In vectors over a link. */
static double factor(struct merged *m)
{
	size_t arcs = (size_t)topo_m(m->t);
	double sum = 0;

	memset(m->load, 0, arcs * (size_t)m->depth * sizeof(*m->load));
	memset(m->seen, 0, (size_t)topo_max_degree(m->t) * (size_t)m->n * sizeof(*m->seen));
	(void)each_send(m, add_load, NULL, NULL);
	for (int step = 0; step < m->depth; step++) {
		double most = 0;

		for (size_t a = 0; a < arcs; a++) {
			double load = m->load[(size_t)step * arcs + a];

			most = load > most ? load : most;
		}
		sum += most;
	}
	return sum;
}

/* ---- the schedule ---- */

/* Chunks a shard, so that parallel arcs can share them; 1: where these were too many the widest
 * takes all. */
static int count_chunks(const struct merged *m)
{
	int64_t chunks = 1;

	for (int a = 0; a < topo_m(m->t) && chunks <= MAX_SPLIT; a++) {
		if (m->twin[a] == a && m->cap[a] > topo_arc(m->t, a)->cap) {
			chunks = chunks / rat_gcd(chunks, m->cap[a]) * m->cap[a];
		}
	}
	return chunks <= MAX_SPLIT ? (int)chunks : 1;
}

static int add_sends(struct merged *m, int arc, const struct merged_class *c, void *arg,
		     struct err *err)
{
	struct coll_sched *out = arg;
	int src = topo_arc(m->t, arc)->src, first, n = topo_out(m->t, src, &first), rc = 0;
	int chunks = coll_chunks(out);
	int64_t cap = 0;

	for (int a = arc; a < first + n && !rc; a++) {
		struct coll_xfer x = {
			.step = c->dist, .arc = a, .kept = (uint16_t)(number_at(m, arc, c) + 1),
			.op = c->dist ? COLL_OP_FORWARD : COLL_OP_REDUCE,
			.dest = c->dist ? m->number[cell(m, c->root, src)] : COLL_NO_DEST,
		};

		if (m->twin[a] != arc) {
			continue;
		}
		x.first = (int32_t)(cap * chunks / m->cap[arc]);
		cap += topo_arc(m->t, a)->cap;
		x.last = (int32_t)(cap * chunks / m->cap[arc]) - 1;
		rc = x.first <= x.last ? coll_add(out, &x, err) : 0;
	}
	return rc;
}

static int make_schedule(struct merged *m, struct coll_sched **out, struct err *err)
{
	struct topo *copy = NULL;
	int rc = topo_copy(m->t, &copy, err);

	(void)(rc || (rc = coll_new(COLL_ALLREDUCE, copy, count_chunks(m), 0, 0, out, err)) ||
	       (rc = coll_set_alike(*out, err)) || (rc = each_send(m, add_sends, *out, err)) ||
	       (rc = coll_finish(*out, err)));
	return rc;
}

/* ---- all of it ---- */

static int find_trees(struct merged *m, int32_t *lists, struct err *err)
{
	double least = HUGE_VAL;
	int best = 0, rc = 0;

	find_twins(m);
	for (int u = 0; u < m->n && !rc; u++) {
		rc = spread(m, u, &lists[cell(m, u, 0)], err);
	}
	if (rc) {
		return rc;
	}
	arrays_add(&m->arrays, m->load, (size_t)topo_m(m->t) * (size_t)m->depth);
	for (int order = 0; order < ORDERS; order++) {
		double now;

		plant(m, order, lists);
		now = factor(m);
		best = now < least ? order : best;
		least = now < least ? now : least;
	}
	if (best < ORDERS - 1) {
		plant(m, best, lists);
	}
	return 0;
}

static void merged_init(struct merged *m, const struct topo *t, int32_t **lists)
{
	size_t all = (size_t)topo_n(t) * (size_t)topo_n(t);

	*m = (struct merged){ .t = t, .n = topo_n(t) };
	arrays_add(&m->arrays, m->dist, all);
	arrays_add(&m->arrays, m->parent, all);
	arrays_add(&m->arrays, m->below, all);
	arrays_add(&m->arrays, m->number, all);
	arrays_add(&m->arrays, *lists, all);
	arrays_add(&m->arrays, m->twin, topo_m(t));
	arrays_add(&m->arrays, m->cap, topo_m(t));
	arrays_add(&m->arrays, m->into, topo_m(t));
	arrays_add(&m->arrays, m->first_in, m->n + 1);
	arrays_add(&m->arrays, m->first_class, m->n + 1);
	arrays_add(&m->arrays, m->sorted, m->n);
	arrays_add(&m->arrays, m->seen, (size_t)topo_max_degree(t) * (size_t)m->n);
}

int make_merged(const struct topo *t, struct coll_sched **out, struct err *err)
{
	struct merged m;
	int32_t *lists;
	int rc;

	*out = NULL;
	if (topo_n(t) != topo_ranks(t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "sums through nodes that are no ranks: "
			       "not supported");
	}
	if (topo_n(t) > MAX_NODES) {
		return err_set(err, WEFT_ELIMIT, "%d nodes: sums are merged for at most %d",
			       topo_n(t), MAX_NODES);
	}
	merged_init(&m, t, &lists);
	(void)((rc = find_trees(&m, lists, err)) || (rc = make_schedule(&m, out, err)));
	if (rc) {
		coll_free(*out);
		*out = NULL;
	}
	vec_fini(&m.classes);
	arrays_fini(&m.arrays);
	return rc;
}
