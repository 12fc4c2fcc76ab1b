/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges along chains of nodes, for tests of forwarded sums. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_SCHEDULE_CHAINS_H
#define WEFT_TESTS_UNIT_SCHEDULE_CHAINS_H

#include "lib/base/number/rng.h"
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
				chunk, chunk, k ? COLL_OP_FORWARD : COLL_OP_REDUCE, 0 };
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
		step += chain_level(s, t, 1, step, plan->levels[i].offset, plan->levels[i].nodes,
				    0);
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

/* ---- any that are right ---- */

#define CHAIN_RANKS 8

/* Steps that a shard takes at most. */
#define CHAIN_STEPS 30

/* Whose contributions are in sums; by node, and whose sum it is. */
struct chain_sums {
	uint64_t sum[CHAIN_RANKS], sent[CHAIN_RANKS];
	uint64_t kept[CHAIN_RANKS][CHAIN_RANKS];
};

/* What arc a may carry, given what was before the step and what has come in it; false: nothing. */
static inline bool chain_choose(const struct chain_sums *was, const struct chain_sums *is, int n,
				const struct topo_arc *a, struct coll_xfer *x, struct rng *rng)
{
	uint64_t all = (UINT64_C(1) << n) - 1;
	int of = (int)rng_below(rng, (uint64_t)n);
	uint64_t k = was->kept[a->src][of];

	x->dest = COLL_NO_DEST;
	if (is->sum[a->dst] == all) {
		return false;
	}
	if (was->sum[a->src] == all) {
		x->op = COLL_OP_COPY;	/* nothing comes beside it */
		return is->sum[a->dst] == was->sum[a->dst];
	}
	if (k && k == was->sent[of] && (k & is->sum[a->dst]) == 0) {
		x->op = COLL_OP_FORWARD;
		x->dest = of;
		return true;
	}
	x->op = COLL_OP_REDUCE;
	return rng_below(rng, 3) == 0 && (was->sum[a->src] & is->sum[a->dst]) == 0;
}

static inline void chain_apply(const struct chain_sums *was, struct chain_sums *is,
			       const struct topo_arc *a, const struct coll_xfer *x)
{
	uint64_t v = x->op == COLL_OP_FORWARD ? was->kept[a->src][x->dest] : was->sum[a->src];

	is->sum[a->dst] |= v;
	if (x->op == COLL_OP_REDUCE) {
		is->sent[a->src] = v;
	}
	if (x->op != COLL_OP_COPY) {
		is->kept[a->dst][x->op == COLL_OP_FORWARD ? x->dest : a->src] = v;
	}
}

/* One chunk of a shard, step by step as it comes; false when it has led nowhere. */
static inline bool chain_random(const struct topo *t, struct coll_xfer *out, int *n_out,
				struct rng *rng)
{
	struct chain_sums is = { .sum = { 0 } };
	int n = topo_n(t), done = 0;

	for (int v = 0; v < n; v++) {
		is.sum[v] = UINT64_C(1) << v;
	}
	*n_out = 0;
	for (int step = 0; step < CHAIN_STEPS && done < n; step++) {
		struct chain_sums was = is;

		for (int i = 0; i < topo_m(t); i++) {
			const struct topo_arc *a;
			struct coll_xfer x = { .step = step };

			x.arc = (int)rng_below(rng, (uint64_t)topo_m(t));
			a = topo_arc(t, x.arc);
			if (rng_below(rng, 2) && chain_choose(&was, &is, n, a, &x, rng)) {
				chain_apply(&was, &is, a, &x);
				out[(*n_out)++] = x;
			}
		}
		done = 0;
		for (int v = 0; v < n; v++) {
			done += is.sum[v] == (UINT64_C(1) << n) - 1;
		}
	}
	return done == n;
}

/* An all-reduce that takes reduces, forwards and copies as they come; each chunk begins so many
 * steps after the one before. */
static inline struct coll_sched *random_forwards(const char *graph, int chunks, int apart,
						 struct rng *rng)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, graph, chunks);
	const struct topo *t = coll_topo(s);
	struct coll_xfer *x = calloc((size_t)CHAIN_STEPS * (size_t)topo_m(t), sizeof(*x));
	struct err err = { 0 };
	int n;

	for (int i = 0; i < coll_ranks(s) * chunks; i++) {
		while (!chain_random(t, x, &n, rng)) {
		}
		for (int k = 0; k < n; k++) {
			x[k].step += i * apart;
			x[k].origin = i / chunks;
			x[k].first = x[k].last = i % chunks;
			must(coll_add(s, &x[k], &err), &err);
		}
	}
	finish(s);
	free(x);
	return s;
}

/* ---- mutations ---- */

/* Another step or arc, operation or sum. */
static inline void chain_mutate(struct coll_xfer *y, const struct coll_sched *s, struct rng *rng)
{
	switch (rng_below(rng, 6)) {
	case 0:
		y->arc = (int)rng_below(rng, (uint64_t)topo_m(coll_topo(s)));
		return;
	case 1:
		y->op = (uint8_t)rng_below(rng, COLL_OP_FORWARD + 1);
		y->dest = y->op == COLL_OP_FORWARD ? (int)rng_below(rng, (uint64_t)coll_ranks(s))
						   : COLL_NO_DEST;
		return;
	case 2:
		if (y->op == COLL_OP_FORWARD) {
			y->dest = (int)rng_below(rng, (uint64_t)coll_ranks(s));
		}
		return;
	default:
		y->step = (int)rng_below(rng, (uint64_t)coll_steps(s) + 1);
	}
}

/* s, which has no group, with some transfers changed, gone, or there twice. */
static inline struct coll_sched *chain_mutated(const struct coll_sched *s, struct rng *rng)
{
	struct coll_sched *out = blank_copy(s);
	struct err err = { 0 };
	int64_t n;
	const struct coll_xfer *x = coll_xfers(s, &n);
	uint64_t often = 1 + rng_below(rng, 3);

	for (int64_t i = 0; i < n; i++) {
		struct coll_xfer y = x[i];

		if (rng_below(rng, (uint64_t)n) < often) {
			chain_mutate(&y, s, rng);
			switch (rng_below(rng, 12)) {
			case 0:
				continue;
			case 1:
				must(coll_add(out, &x[i], &err), &err);
			}
		}
		must(coll_add(out, &y, &err), &err);
	}
	finish(out);
	return out;
}

#endif
