/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of all runtimes have in common: buffers, names, and numbers
 * that show who contributed to a chunk. */
#include "runtime/lower/lower.h"

#include <stdlib.h>

#include "lib/base/number/rng.h"

const char *lower_kind_name(enum coll_kind kind)
{
	switch (kind) {
	case COLL_ALLGATHER:
		return "allgather";
	case COLL_REDUCE_SCATTER:
		return "reducescatter";
	case COLL_ALLREDUCE:
		return "allreduce";
	case COLL_ALLTOALL:
		return "alltoall";
	case COLL_BROADCAST:
		return "broadcast";
	case COLL_REDUCE:
	case COLL_GATHER:
	case COLL_SCATTER:
		break;
	}
	return coll_kind_name(kind);
}

bool lower_is_whole(enum coll_kind kind)
{
	return kind == COLL_ALLREDUCE || kind == COLL_BROADCAST;
}

void lower_fini(struct lower *l)
{
	for (int r = 0; l->rank && r < l->ranks; r++) {
		vec_fini(&l->rank[r].ops);
	}
	free(l->rank);
	l->rank = NULL;
}

int64_t lower_cell(enum coll_kind kind, const int32_t n[3], int64_t shard,
		    int buf, int64_t off, bool inplace)
{
	if (inplace && buf == LOWER_OUT && kind == COLL_REDUCE_SCATTER) {
		return shard + off;
	}
	if (inplace && buf == LOWER_IN && kind != COLL_REDUCE_SCATTER) {
		return n[LOWER_IN] + off + (kind == COLL_ALLGATHER ? shard : 0);
	}
	return off + (buf > LOWER_IN ? (int64_t)n[LOWER_IN] : 0) +
	       (buf > LOWER_OUT ? (int64_t)n[LOWER_OUT] : 0);
}

int32_t lower_pack_scratch(int32_t *used, int64_t n)
{
	int32_t next = 0;

	for (int64_t c = 0; c < n; c++) {
		used[c] = used[c] ? next++ : -1;
	}
	return next;
}

uint64_t lower_token(int rank, int64_t k)
{
	return rng_mix(((uint64_t)(rank + 1) << 40) + (uint64_t)k);
}

uint64_t lower_expected(enum coll_kind kind, int ranks, int loop, int root, int rank, int64_t k)
{
	int shard = loop / ranks;
	uint64_t sum = 0;

	switch (kind) {
	case COLL_ALLGATHER:
		return lower_token((int)(k / shard), k % shard);
	case COLL_BROADCAST:
		return lower_token(root, k);
	case COLL_ALLTOALL:
		return lower_token((int)(k / shard), (int64_t)rank * shard + k % shard);
	case COLL_REDUCE_SCATTER:
		k += (int64_t)rank * shard;
		break;
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
		break;
	}
	for (int u = 0; u < ranks; u++) {
		sum += lower_token(u, k);
	}
	return sum;
}

int lower_elements_error(int rank, int64_t elements, int ranks, int max, struct err *err)
{
	err_set(err, WEFT_ELIMIT,
		"rank %d needs at least %lld elements (1 + %d ranks + "
		"threadblocks + steps), and the runtimes hold %d", rank,
		(long long)elements, ranks, max);
	err_hint(err, "fits: at most %d steps and threadblocks a rank", max - 1 - ranks);
	return WEFT_ELIMIT;
}
