/* Exchanges along chains of nodes, for tests of forwarded sums. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_SCHEDULE_CHAINS_H
#define WEFT_TESTS_UNIT_SCHEDULE_CHAINS_H

#include "tests/unit/schedule/common.h"

#define CHAIN_LEVELS 3

/* A circulant, whose node u exchanges sums with u + t * offset, for `nodes` values of t
 * around 0, level by level. */
struct chain_plan {
	char graph[32];
	int n_levels;
	struct {
		int offset, nodes;
	} levels[CHAIN_LEVELS];
};

/* A torus of two dimensions; a circulant has one node in the first. */
struct chain_torus {
	int size[2];
};

/* `by` steps from u along a dimension. */
static inline int chain_node(struct chain_torus t, int u, int dim, int by)
{
	int at[2] = { u / t.size[1], u % t.size[1] };

	at[dim] = ((at[dim] + by) % t.size[dim] + t.size[dim]) % t.size[dim];
	return at[0] * t.size[1] + at[1];
}

/* What all nodes send of this chunk of the shard of rank 0 in one direction. */
static inline void chain_half(struct coll_sched *s, struct chain_torus t, int dim, int step,
			      int offset, int reach, int chunk)
{
	for (int k = 0; k < reach; k++) {
		for (int u = 0; u < coll_ranks(s); u++) {
			int to = chain_node(t, u, dim, offset);
			struct coll_xfer x = {
				step + k, topo_find_arc(coll_topo(s), u, to), 0,
				k ? chain_node(t, u, dim, -k * offset) : COLL_NO_DEST,
				chunk, chunk, k ? COLL_OP_FORWARD : COLL_OP_REDUCE };
			struct err err = { 0 };

			must(coll_add(s, &x, &err), &err);
		}
	}
}

/* All nodes exchange with `nodes` around them; returns the steps it takes. */
static inline int chain_level(struct coll_sched *s, struct chain_torus t, int dim, int step,
			      int offset, int nodes, int chunk)
{
	chain_half(s, t, dim, step, offset, nodes / 2, chunk);
	chain_half(s, t, dim, step, -offset, (nodes - 1) / 2, chunk);
	return nodes / 2;
}

/* A compact all-reduce without transfers. */
static inline struct coll_sched *chain_begin(const char *graph, struct chain_torus t, int chunks)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, graph, chunks);
	int n = coll_ranks(s), k = 0, orders[2];
	int32_t *images = calloc(2 * (size_t)n, sizeof(*images));
	struct topo_group *g;
	struct err err = { 0 };

	for (int dim = 0; dim < 2; dim++) {
		for (int u = 0; u < n && t.size[dim] > 1; u++) {
			images[k * n + u] = chain_node(t, u, dim, 1);
		}
		orders[k] = t.size[dim];
		k += t.size[dim] > 1;
	}
	must(topo_group_new(n, n, k, orders, images, &g, &err), &err);
	must(coll_set_group(s, g, &err), &err);
	free(images);
	return s;
}

/* A compact all-reduce, its shards of one chunk. */
static inline struct coll_sched *chains(const struct chain_plan *plan)
{
	struct topo *graph = graph_of(plan->graph);
	struct chain_torus t = { { 1, topo_n(graph) } };
	struct coll_sched *s = chain_begin(plan->graph, t, 1);
	int step = 0;

	for (int i = 0; i < plan->n_levels; i++) {
		step += chain_level(s, t, 1, step, plan->levels[i].offset, plan->levels[i].nodes, 0);
	}
	finish(s);
	topo_free(graph);
	return s;
}

/* On Torus(a,b): one dimension after the other, of four chunks two beginning with each
 * dimension, plain and mirrored. */
static inline struct coll_sched *torus_chains(int a, int b)
{
	struct chain_torus t = { { a, b } };
	struct coll_sched *s;
	char graph[32];

	snprintf(graph, sizeof(graph), "Torus(%d,%d)", a, b);
	s = chain_begin(graph, t, 4);
	for (int chunk = 0; chunk < 4; chunk++) {
		int first = chunk % 2, offset = chunk < 2 ? 1 : -1;
		int step = chain_level(s, t, first, 0, offset, t.size[first], chunk);

		chain_level(s, t, !first, step, offset, t.size[!first], chunk);
	}
	finish(s);
	return s;
}

#endif
