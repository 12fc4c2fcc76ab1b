/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule of every kind of collective, and numbers to run it on. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_RANK_KINDS_H
#define WEFT_TESTS_UNIT_RANK_KINDS_H

#include "collective/flow/flow.h"
#include "collective/tree/tree.h"
#include "lib/base/number/rng.h"
#include "runtime/rank/rank.h"
#include "tests/unit/schedule/common.h"

static inline struct coll_sched *schedule_of(enum coll_kind kind, const char *expr, int root)
{
	struct mcf_steps_options steps = { .flow = { .gap = 0.01 }, .loss = 0.1, .max_chunks = 4 };
	struct coll_tree_options tree = { .kind = kind, .root = root };
	struct coll_tree_info info;
	struct coll_sched *s;
	struct err err = { 0 };
	struct topo *t;

	if (!coll_has_root(kind) && kind != COLL_ALLTOALL) {
		return bfb(kind, expr);
	}
	t = graph_of(expr);
	if (kind == COLL_ALLTOALL) {
		must(mcf_steps(t, &steps, &s, NULL, &err), &err);
	} else {
		must(coll_tree_make(t, &tree, &s, &info, &err), &err);
	}
	topo_free(t);
	return s;
}

/* Elements of a message. */
static inline int64_t elements_of(const struct rank_program *p, const struct rank_message *m,
				  int64_t total)
{
	int64_t n = 0;

	for (int32_t i = m->first_piece; i < m->first_piece + m->pieces; i++) {
		const struct rank_piece *q = &p->pieces.v[i];

		n += q->again ? 0 : rank_offset(p, total, (int64_t)q->first + q->count) -
					    rank_offset(p, total, q->first);
	}
	return n;
}

/* Element k of what a rank begins with. */
static inline uint64_t token(int rank, int64_t k)
{
	return rng_mix(((uint64_t)(rank + 1) << 40) + (uint64_t)k);
}

/* Element k of what the program's rank ends with, of a vector of `total`. */
static inline uint64_t expected(const struct rank_program *p, int64_t total, int64_t k)
{
	int64_t shard = total / p->ranks;
	uint64_t sum = 0;

	switch (p->kind) {
	case COLL_ALLGATHER:
	case COLL_GATHER:
		return token((int)(k / shard), k % shard);
	case COLL_ALLTOALL:
		return token((int)(k / shard), p->rank * shard + k % shard);
	case COLL_BROADCAST:
		return token(p->root, k);
	case COLL_SCATTER:
		return token(p->root, p->rank * shard + k);
	case COLL_REDUCE_SCATTER:
		k += p->rank * shard;
		break;
	case COLL_ALLREDUCE:
	case COLL_REDUCE:
		break;
	}
	for (int r = 0; r < p->ranks; r++) {
		sum += token(r, k);
	}
	return sum;
}

#endif
