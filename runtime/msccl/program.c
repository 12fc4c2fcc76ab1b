/* Programs: names, limits, buffers; see msccl.h. */
#include <stdlib.h>

#include "runtime/msccl/msccl.h"

static const struct {
	const char *name;
	bool receives, sends, reads, writes;
} types[MSCCL_TYPES] = {
	[MSCCL_SEND] = { "s", false, true, true, false },
	[MSCCL_RECV] = { "r", true, false, false, true },
	[MSCCL_RCS] = { "rcs", true, true, false, true },
	[MSCCL_RRS] = { "rrs", true, true, true, false },
	[MSCCL_RRC] = { "rrc", true, false, true, true },
	[MSCCL_RRCS] = { "rrcs", true, true, true, true },
	[MSCCL_COPY] = { "cpy", false, false, true, true },
	[MSCCL_REDUCE] = { "re", false, false, true, true },
	[MSCCL_NOP] = { "nop", false, false, false, false },
};

const char *msccl_type_name(enum msccl_type type)
{
	return types[type].name;
}

bool msccl_receives(enum msccl_type type)
{
	return types[type].receives;
}

bool msccl_sends(enum msccl_type type)
{
	return types[type].sends;
}

bool msccl_reads(enum msccl_type type)
{
	return types[type].reads;
}

bool msccl_writes(enum msccl_type type)
{
	return types[type].writes;
}

const struct msccl_limits *msccl_limits(enum msccl_dialect dialect)
{
	static const struct msccl_limits limits[] = {
		[MSCCL_AZURE] = { "the Azure executor", 64, 1024, 32 },
		[MSCCL_RCCL] = { "RCCL", 64, 64, 128 },
	};

	return &limits[dialect];
}

void msccl_fini(struct msccl *p)
{
	for (int r = 0; p->gpus && r < p->ranks; r++) {
		struct msccl_gpu *g = &p->gpus[r];

		for (size_t t = 0; t < g->tbs.n; t++) {
			vec_fini(&g->tbs.v[t].steps);
		}
		vec_fini(&g->tbs);
	}
	free(p->gpus);
	p->gpus = NULL;
}

int64_t msccl_cells(const struct msccl *p, int rank)
{
	const int32_t *n = p->gpus[rank].chunks;

	return (int64_t)n[LOWER_IN] + n[LOWER_OUT] + n[LOWER_SCRATCH];
}

int64_t msccl_cell(const struct msccl *p, int rank, int buf, int off, bool inplace)
{
	return lower_cell(p->kind, p->gpus[rank].chunks,
			   (int64_t)rank * (p->loop / p->ranks), buf, off,
			   inplace);
}
