/* Programs: names, limits, buffers; see msccl.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"
#include "runtime/msccl/private.h"

static const struct {
	const char *name;
	bool receives, sends, reads, writes;
} types[LOWER_TYPES] = {
	[LOWER_SEND] = { "s", false, true, true, false },
	[LOWER_RECV] = { "r", true, false, false, true },
	[LOWER_RCS] = { "rcs", true, true, false, true },
	[LOWER_RRS] = { "rrs", true, true, true, false },
	[LOWER_RRC] = { "rrc", true, false, true, true },
	[LOWER_RRCS] = { "rrcs", true, true, true, true },
	[LOWER_COPY] = { "cpy", false, false, true, true },
	[LOWER_REDUCE] = { "re", false, false, true, true },
	[LOWER_NOP] = { "nop", false, false, false, false },
};

const char *lower_type_name(enum lower_type type)
{
	return types[type].name;
}

int lower_type_parse(const char *name)
{
	for (int t = 0; t < LOWER_TYPES; t++) {
		if (strcmp(types[t].name, name) == 0) {
			return t;
		}
	}
	return -1;
}

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
		break;
	}
	return "broadcast";
}

bool lower_receives(enum lower_type type)
{
	return types[type].receives;
}

bool lower_sends(enum lower_type type)
{
	return types[type].sends;
}

bool lower_reads(enum lower_type type)
{
	return types[type].reads;
}

bool lower_writes(enum lower_type type)
{
	return types[type].writes;
}

const struct lower_limits *lower_limits(enum lower_dialect dialect)
{
	static const struct lower_limits limits[] = {
		[LOWER_MICROSOFT] = { "microsoft/msccl", 256, 216, 32 },
		[LOWER_AZURE] = { "the Azure executor", 64, 1024, 32 },
		[LOWER_RCCL] = { "RCCL", 64, 64, 128 },
	};

	return &limits[dialect];
}

void lower_fini(struct lower *p)
{
	for (int r = 0; p->gpus && r < p->ranks; r++) {
		struct lower_gpu *g = &p->gpus[r];

		for (size_t t = 0; t < g->tbs.n; t++) {
			vec_fini(&g->tbs.v[t].steps);
		}
		vec_fini(&g->tbs);
	}
	free(p->gpus);
	p->gpus = NULL;
}

int64_t lower_cells(const struct lower *p, int rank)
{
	const int32_t *n = p->gpus[rank].chunks;

	return (int64_t)n[LOWER_IN] + n[LOWER_OUT] + n[LOWER_SCRATCH];
}

int64_t lower_place(enum coll_kind kind, const int32_t n[3], int64_t shard,
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

int64_t lower_cell(const struct lower *p, int rank, int buf, int off,
		   bool inplace)
{
	return lower_place(p->kind, p->gpus[rank].chunks,
			   (int64_t)rank * (p->loop / p->ranks), buf, off,
			   inplace);
}

uint64_t lower_token(int rank, int64_t k)
{
	return rng_mix(((uint64_t)(rank + 1) << 40) + (uint64_t)k);
}

uint64_t lower_expected(enum coll_kind kind, int ranks, int loop, int root,
			int rank, int64_t k)
{
	int shard = loop / ranks;
	uint64_t sum = 0;

	switch (kind) {
	case COLL_ALLGATHER:
		return lower_token((int)(k / shard), k % shard);
	case COLL_BROADCAST:
		return lower_token(root, k);
	case COLL_ALLTOALL:
		return lower_token((int)(k / shard),
				   (int64_t)rank * shard + k % shard);
	case COLL_REDUCE_SCATTER:
		k += (int64_t)rank * shard;
		break;
	case COLL_ALLREDUCE:
		break;
	}
	for (int u = 0; u < ranks; u++) {
		sum += lower_token(u, k);
	}
	return sum;
}
