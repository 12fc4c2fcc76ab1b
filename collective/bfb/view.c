/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links into a node, who can use them, and the program that balances them.
 *
 * A breadth-first search backwards from the node gives every rank the set of
 * links that end a shortest path from it: the union of the sets of those one hop
 * nearer. Sets are rows of bits, one word for nearly all digraphs, which has a
 * loop of its own. Ranks with equal sets become one group of the program.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"

void bfb_view_fini(struct bfb_view *v)
{
	arrays_fini(&v->arrays);
}

static void load_sources(struct bfb_view *v)
{
	int k = 0;

	for (int u = 0; u < topo_n(v->t); u++) {
		const int32_t *arcs;
		int n = topo_in(v->t, u, &arcs);

		v->first[u] = k;
		for (int i = 0; i < n; i++) {
			v->source[k++] = topo_arc(v->t, arcs[i])->src;
		}
	}
	v->first[topo_n(v->t)] = k;
}

void bfb_view_init(struct bfb_view *v, const struct topo *t)
{
	size_t n = topo_n(t), degree = topo_max_degree(t);

	memset(v, 0, sizeof(*v));
	v->t = t;
	v->words = (int)(degree / 64 + 1);
	arrays_add(&v->arrays, v->links, degree);
	arrays_add(&v->arrays, v->caps, degree);
	arrays_add(&v->arrays, v->latencies, degree);
	arrays_add(&v->arrays, v->first, n + 1);
	arrays_add(&v->arrays, v->source, topo_m(t));
	arrays_add(&v->arrays, v->usable, n * (size_t)v->words);
	arrays_add(&v->arrays, v->dist, n);
	arrays_add(&v->arrays, v->queue, n);
	arrays_add(&v->arrays, v->level, n + 2);
	load_sources(v);
}

static void load_links(struct bfb_view *v)
{
	const int32_t *arcs;
	int n = topo_in(v->t, v->node, &arcs);

	v->n_links = 0;
	for (int i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(v->t, arcs[i]);

		if (a->src != a->dst) {
			v->links[v->n_links] = arcs[i];
			v->latencies[v->n_links] = a->latency_ns;
			v->caps[v->n_links++] = a->cap;
		}
	}
}

/* Enters w, one hop before a node at distance `dist`, when it is new; true
 * when that is its distance. */
static bool enter(struct bfb_view *v, int w, int32_t dist, int *tail)
{
	if (v->dist[w] < 0) {
		v->dist[w] = dist + 1;
		v->queue[(*tail)++] = w;
		memset(bfb_usable(v, w), 0, (size_t)v->words * sizeof(*v->usable));
	}
	return v->dist[w] == dist + 1;
}

/* Ranks one hop before the node itself use the links. */
static void visit_node(struct bfb_view *v, int *tail)
{
	for (int i = 0; i < v->n_links; i++) {
		int w = topo_arc(v->t, v->links[i])->src;

		enter(v, w, 0, tail);
		bfb_usable(v, w)[i / 64] |= UINT64_C(1) << (i % 64);
	}
}

/* Ranks one hop before x can use what x can. */
static void visit(struct bfb_view *v, int x, int *tail)
{
	const uint64_t *from = bfb_usable(v, x);
	int32_t dist = v->dist[x];

	for (int k = v->first[x]; k < v->first[x + 1]; k++) {
		int w = v->source[k];

		if (enter(v, w, dist, tail)) {
			for (int i = 0; i < v->words; i++) {
				bfb_usable(v, w)[i] |= from[i];
			}
		}
	}
}

/* The same with one word a rank, as nearly all digraphs have: this is where
 * synthesis spends its time. */
static void visit_fast(struct bfb_view *v, int x, int *tail)
{
	uint64_t from = v->usable[x], *to = v->usable;
	int32_t next = v->dist[x] + 1, *dist = v->dist;
	const int32_t *end = v->source + v->first[x + 1];

	for (const int32_t *w = v->source + v->first[x]; w < end; w++) {
		if (dist[*w] < 0) {
			dist[*w] = next;
			v->queue[(*tail)++] = *w;
			to[*w] = from;
		} else if (dist[*w] == next) {
			to[*w] |= from;
		}
	}
}

int bfb_view_load(struct bfb_view *v, int node, struct err *err)
{
	int n = topo_n(v->t), tail = 0;

	v->node = node;
	load_links(v);
	for (int u = 0; u < n; u++) {
		v->dist[u] = -1;
	}
	v->dist[node] = 0;
	v->levels = 0;
	v->level[0] = 0;
	v->queue[tail++] = node;
	for (int head = 0; head < tail; head++) {
		int x = v->queue[head];

		if (v->dist[x] > v->levels) {
			v->level[++v->levels] = head;
		}
		if (head == 0) {
			visit_node(v, &tail);
		} else if (v->words == 1) {
			visit_fast(v, x, &tail);
		} else {
			visit(v, x, &tail);
		}
	}
	v->level[v->levels + 1] = tail;
	for (int u = 0; u < n && tail < n; u++) {
		if (v->dist[u] < 0) {
			return err_set(err, WEFT_EINFEASIBLE,
				       "the digraph is not strongly "
				       "connected: rank %d cannot reach rank "
				       "%d", u, node);
		}
	}
	return 0;
}

static int cmp_usable(const void *pa, const void *pb, void *arg)
{
	const struct bfb_view *v = arg;
	int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
	int c;

	if (v->words == 1) {
		c = (v->usable[a] > v->usable[b]) -
		    (v->usable[a] < v->usable[b]);
	} else {
		c = memcmp(bfb_usable(v, a), bfb_usable(v, b),
			   (size_t)v->words * sizeof(*v->usable));
	}
	return c ? c : a < b ? -1 : a > b;
}

void bfb_program_fini(struct bfb_program *b)
{
	free(b->groups);
	free(b->use);
}

static void add_group(const struct bfb_view *v, const uint64_t *links,
		      struct bfb_program *b, size_t *cap)
{
	struct bfb_group *g = &b->groups[b->n_groups++];

	*g = (struct bfb_group){ .first = b->n_use };
	vec_grow((void **)&b->use, cap, (size_t)b->n_use + v->n_links, sizeof(*b->use));
	for (int w = 0; w < v->n_links; w++) {
		if (links[w / 64] >> (w % 64) & 1) {
			b->use[b->n_use++] = w;
		}
	}
	g->n = b->n_use - g->first;
}

void bfb_load_program(struct bfb_view *v, int t, struct bfb_program *b)
{
	int32_t *ranks = v->queue + v->level[t];
	int n = v->level[t + 1] - v->level[t];
	size_t cap = 0, row = (size_t)v->words * sizeof(*v->usable);

	*b = (struct bfb_program){ .n_links = v->n_links, .cap = v->caps };
	b->groups = x_alloc((size_t)n, sizeof(*b->groups));
	qsort_r(ranks, n, sizeof(*ranks), cmp_usable, v);
	for (int i = 0; i < n; i++) {
		const uint64_t *links = bfb_usable(v, ranks[i]);

		if (i == 0 || memcmp(links, bfb_usable(v, ranks[i - 1]), row)) {
			add_group(v, links, b, &cap);
		}
		b->groups[b->n_groups - 1].items++;
	}
}
