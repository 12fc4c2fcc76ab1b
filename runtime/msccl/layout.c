/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layout a program has: the first of these that is proven. A step of
 * several chunks may take as many places of a connection as it has chunks
 * (interpret.c), and a threadblock that passes on what it receives may then
 * hold up the one that it waits for.
 *
 * 1. Receives fused with the sends that pass the same on, whole runs of chunks
 *    in a step.
 * 2. The same with one chunk in every step. Chunk k of a run belongs to lane k
 *    modulo the longest run; a lane is a schedule of its own. All sends of a
 *    round come before its receives, so lane after lane is an execution with at
 *    most one chunk on its way between two ranks, and fusing adds one more.
 *    Lanes run beside one another on channels of their own while threadblocks
 *    last, and one after the other on those.
 * 3. Sends and receives in threadblocks of their own, whole runs in a step. Give
 *    chunk k of a receive the time (round, place among the receives of its rank
 *    in this round, k), and its send the same, just before. What a
 *    send waits for is of an earlier round; what a receive waits for is its own
 *    send, or an earlier receive; and chunk k of a send waits for chunk k - 2 of
 *    its own receive. So nothing waits for what is later, unless a rank
 *    sends a sum and adds to it in one round.
 * 4. Where flags of sends say too little, the third with copies: what is sent and written over
 *    later is copied before, and the copy is waited for. So a send of a sum to which is added in
 *    the same round, as in exchanges, holds up nothing.
 * 5. The first once more, for calls so small that it holds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "runtime/msccl/build.h"

struct msccl_layout {
	const struct msccl_options *o;
	struct msccl_limits lim;
	int wide;		/* threadblocks that lanes may take */
	const struct lower *whole;	/* in o->instances copies */
};

/* One try. */
struct msccl_try {
	const struct lower *l;
	bool apart, sends_copies;
	int blocks;		/* parts of time to begin with */
	int tbs;		/* at most so many threadblocks a rank */
	int beside;		/* channels between two ranks at the same time */
};

static void start_program(const struct lower *l, const struct msccl_options *o, struct msccl *out)
{
	*out = (struct msccl){
		.kind = l->kind, .ranks = l->ranks, .root = l->root,
		.loop = l->loop, .outofplace = true, .proto = o->proto,
		.inplace = l->kind != COLL_ALLTOALL };
	snprintf(out->name, sizeof(out->name), "weft-%s", coll_kind_name(out->kind));
	out->gpus = x_new((size_t)l->ranks, sizeof(*out->gpus));
}

/* Builds and proves; what did not hold is in out all the same. */
static int try_layout(const struct msccl_layout *y, const struct msccl_try *t, struct msccl *out,
		      struct err *err)
{
	struct msccl_build b = { .p = out, .lim = &y->lim, .blocks = t->blocks,
				 .block_step = y->o->instances, .apart = t->apart,
				 .sends_copies = t->sends_copies,
				 .early_flags = msccl_early_flags(y->o->dialect,
								  y->o->proto) };
	int rc;

	msccl_fini(out);
	start_program(t->l, y->o, out);
	out->beside = t->beside;
	rc = msccl_build(&b, t->l, err);
	if (!rc && t->tbs < msccl_limits(y->o->dialect)->tbs && msccl_extent(out).tbs > t->tbs) {
		err_set(err, WEFT_ELIMIT, "threadblocks: %d, of at most %d", msccl_extent(out).tbs,
			t->tbs);
		err_hint(err, "fits: threadblocks up to %d", t->tbs);
		return WEFT_ELIMIT;
	}
	return rc ? rc : msccl_check(out, y->o->dialect, err);
}

/* The most chunks that a rank receives in all, and from one peer. */
struct msccl_traffic {
	int64_t rank, peer;
};

static void traffic_of(const struct lower *l, struct msccl_traffic *out)
{
	int64_t *from = x_new((size_t)l->ranks, sizeof(*from));

	*out = (struct msccl_traffic){ 0, 0 };
	for (int r = 0; r < l->ranks; r++) {
		int64_t all = 0;

		for (size_t i = 0; i < l->rank[r].ops.n; i++) {
			const struct lower_op *op = &l->rank[r].ops.v[i];

			if (op->recv >= 0) {
				all += op->cnt;
				from[op->recv] += op->cnt;
			}
		}
		for (int u = 0; u < l->ranks; u++) {
			out->peer = from[u] > out->peer ? from[u] : out->peer;
			from[u] = 0;
		}
		out->rank = all > out->rank ? all : out->rank;
	}
	free(from);
}

/* How many blocks a copy needs, and may have, for steps of one chunk; `whole` is
 * what the first layout made, and `each` its threadblocks a block. 0: they do not
 * fit. */
static int blocks_of(const struct msccl_layout *y, const struct msccl *whole,
		     const struct msccl_traffic *traffic, int each, int lanes)
{
	int copies = y->o->instances, tbs = msccl_extent(whole).tbs;
	int64_t most = (int64_t)y->lim.steps * copies;
	int64_t need = (traffic->peer + most - 1) / most;
	int room = (tbs > y->wide ? tbs : y->wide) / (each * copies);

	if (need * copies > y->lim.channels || need > room ||
	    traffic->rank + 1 + whole->ranks > MSCCL_MAX_ELEMENTS) {
		return 0;
	}
	room = room < lanes ? room : lanes;
	room = room < y->lim.channels / copies ? room : y->lim.channels / copies;
	return copies * (room > need ? room : (int)need);
}

static int try_singles(const struct msccl_layout *y, const struct msccl *whole, struct msccl *out,
		       struct err *err)
{
	int lanes = lower_span(y->whole, 1), tbs = msccl_extent(whole).tbs;
	struct msccl_try t = { .tbs = tbs > y->wide ? tbs : y->wide };
	struct msccl_traffic traffic;
	struct lower l;
	int rc;

	traffic_of(y->whole, &traffic);
	t.blocks = blocks_of(y, whole, &traffic, (tbs + whole->channels - 1) / whole->channels,
			     lanes);
	if (lanes == 1 || t.blocks == 0) {
		return WEFT_ELIMIT;
	}
	lower_lanes(y->whole, 1, lanes, 1, &l);
	t.l = &l;
	t.beside = y->o->instances * lanes < t.blocks ? y->o->instances * lanes : t.blocks;
	rc = try_layout(y, &t, out, err);
	lower_fini(&l);
	return rc;
}

/* The first layout, for calls of which the kernels divide steps so little that
 * it holds. */
static int keep_small(const struct msccl_layout *y, struct msccl *p, struct err *err)
{
	int split, rc = msccl_least_split(p, y->o->dialect, &split, err);

	if (rc) {
		return rc;
	}
	p->max_bytes = p->loop * (msccl_piece_bytes(y->o->dialect, p->proto, p->kind) / split);
	return msccl_check(p, y->o->dialect, err);
}

static int lay_out(const struct msccl_layout *y, struct msccl *out, struct err *err)
{
	struct msccl_try t = { .l = y->whole, .blocks = y->o->instances,
			       .beside = y->o->instances, .tbs = y->lim.tbs };
	struct err why = { 0 };
	struct msccl other = { .ranks = 0 };
	int rc = try_layout(y, &t, out, err);

	if (rc != WEFT_EVERIFY) {
		return rc;
	}
	/* Errors are of each try alone. */
	rc = try_singles(y, out, &other, &why);
	if (rc) {
		t.apart = true;
		rc = try_layout(y, &t, &other, &why);
	}
	if (rc == WEFT_EVERIFY && msccl_early_flags(y->o->dialect, y->o->proto)) {
		t.sends_copies = true;
		rc = try_layout(y, &t, &other, &why);
	}
	if (rc == 0) {
		msccl_fini(out);
		*out = other;
		return 0;
	}
	msccl_fini(&other);
	rc = keep_small(y, out, err);
	if (rc == WEFT_EVERIFY && why.code == WEFT_ELIMIT) {
		*err = why;	/* what a layout without that fault would need */
		return WEFT_ELIMIT;
	}
	return rc;
}

/* The schedule in as many copies as asked for. A run of a copy stays within a
 * shard where ranks have only shards. */
static void copy_lower(const struct lower *l, int copies, struct lower *out)
{
	int per = lower_is_whole(l->kind) ? 1 << 30 : l->loop / l->ranks;

	lower_lanes(l, per, lower_span(l, per), copies, out);
}

int msccl_lower_as(const struct coll_sched *s, const struct msccl_options *o, struct msccl *out,
		   struct err *err)
{
	static const struct lower_bounds bounds = {
		MSCCL_MAX_RANKS, MSCCL_MAX_COUNT, MSCCL_MAX_ELEMENTS };
	struct msccl_layout y = { .o = o, .lim = *msccl_limits(o->dialect) };
	struct lower l, copies = { .ranks = 0 };
	int rc = lower_schedule(s, &bounds, &l, err);

	*out = (struct msccl){ .ranks = 0 };
	y.lim.tbs = o->tbs && o->tbs < y.lim.tbs ? o->tbs : y.lim.tbs;
	y.wide = o->tbs ? y.lim.tbs : MSCCL_WIDE;
	y.whole = &l;
	if (!rc && o->instances > 1) {
		copy_lower(&l, o->instances, &copies);
		y.whole = &copies;
	}
	if (!rc) {
		rc = lay_out(&y, out, err);
	}
	lower_fini(&copies);
	lower_fini(&l);
	if (rc) {
		msccl_fini(out);
	}
	return rc;
}
