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

static inline int chain_node(int n, int u, int by)
{
	return ((u + by) % n + n) % n;
}

/* What all nodes send of the shard of rank 0 in one direction: `sign` * offset. */
static inline void chain_half(struct coll_sched *s, int step, int offset, int reach)
{
	int n = coll_ranks(s);

	for (int k = 0; k < reach; k++) {
		for (int u = 0; u < n; u++) {
			struct coll_xfer x = {
				step + k,
				topo_find_arc(coll_topo(s), u, chain_node(n, u, offset)), 0,
				k ? chain_node(n, u, -k * offset) : COLL_NO_DEST, 0, 0,
				k ? COLL_OP_FORWARD : COLL_OP_REDUCE };
			struct err err = { 0 };

			must(coll_add(s, &x, &err), &err);
		}
	}
}

/* A compact all-reduce, its shards of one chunk. */
static inline struct coll_sched *chains(const struct chain_plan *plan)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, plan->graph, 1);
	int n = coll_ranks(s), step = 0;
	int32_t *turn = calloc((size_t)n, sizeof(*turn));
	struct topo_group *g;
	struct err err = { 0 };

	for (int u = 0; u < n; u++) {
		turn[u] = (u + 1) % n;
	}
	must(topo_group_new(n, n, 1, &n, turn, &g, &err), &err);
	must(coll_set_group(s, g, &err), &err);
	for (int i = 0; i < plan->n_levels; i++) {
		int offset = plan->levels[i].offset, nodes = plan->levels[i].nodes;

		chain_half(s, step, offset, nodes / 2);
		chain_half(s, step, -offset, (nodes - 1) / 2);
		step += nodes / 2;
	}
	finish(s);
	free(turn);
	return s;
}

#endif
