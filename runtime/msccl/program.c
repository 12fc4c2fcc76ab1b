/* SPDX-License-Identifier: Apache-2.0 */
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

const char *msccl_proto_name(enum msccl_proto proto)
{
	static const char *const names[] = {
		[MSCCL_SIMPLE] = "Simple", [MSCCL_LL] = "LL", [MSCCL_LL128] = "LL128",
	};

	return names[proto];
}

bool msccl_early_flags(enum msccl_dialect dialect, enum msccl_proto proto)
{
	return dialect == MSCCL_RCCL && proto == MSCCL_LL;
}

/* Of 8 steps of a connection's buffer, a send of Simple takes 4. */
int msccl_slots(enum msccl_proto proto)
{
	return proto == MSCCL_SIMPLE ? 2 : 8;
}

/* Steps of the buffer times what of a step is data: of LL a half, of LL128 all
 * but one word of a line, which has 16 words, of RCCL 8. The host counts a
 * broadcast's sends as one step of Simple, not 4. */
int64_t msccl_piece_bytes(enum msccl_dialect dialect, enum msccl_proto proto, enum coll_kind kind)
{
	bool rccl = dialect == MSCCL_RCCL;

	switch (proto) {
	case MSCCL_LL:
		return rccl ? 16 << 10 : 32 << 10;
	case MSCCL_LL128:
		return rccl ? 57344 / 8 * 7 : 614400 / 16 * 15;
	case MSCCL_SIMPLE:
		break;
	}
	return kind == COLL_BROADCAST ? 512 << 10 : 2 << 20;
}

int msccl_split(const struct msccl *p, enum msccl_dialect dialect, int64_t bytes)
{
	int64_t chunk = bytes / p->loop + (bytes % p->loop != 0);
	int64_t m = msccl_piece_bytes(dialect, p->proto, p->kind) / (chunk > 0 ? chunk : 1);

	return m < 1 ? 1 : m > MSCCL_MAX_COUNT ? MSCCL_MAX_COUNT : (int)m;
}

struct msccl_extent msccl_extent(const struct msccl *p)
{
	struct msccl_extent e = { 0 };

	for (int r = 0; r < p->ranks; r++) {
		const struct msccl_gpu *g = &p->gpus[r];

		e.tbs = (int)g->tbs.n > e.tbs ? (int)g->tbs.n : e.tbs;
		for (size_t t = 0; t < g->tbs.n; t++) {
			int n = (int)g->tbs.v[t].steps.n;

			e.steps = n > e.steps ? n : e.steps;
			/* Those that are waited for have the low numbers. */
			for (int k = 0; k < n; k++) {
				int w = g->tbs.v[t].steps.v[k].dep_tb + 1;

				e.waited = w > e.waited ? w : e.waited;
			}
		}
	}
	return e;
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
