/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static rules of execution plans.
 *
 * The executor takes numbers on trust: it indexes its tables with them on the
 * GPU. So every channel, remote buffer and semaphore that an operation names must
 * be in the lists of its threadblock and rank, every range inside its buffer,
 * and every put go to the rank that its channel leads to. Only a plan that keeps
 * to this is run by interpret.c, which relies on it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/map.h"
#include "runtime/mscclpp/private.h"

struct mscclpp_at mscclpp_at(int rank, int tb, int op)
{
	struct mscclpp_at a;

	snprintf(a.text, sizeof(a.text), "rank %d threadblock %d op %d", rank, tb, op);
	return a;
}

static int limit(struct err *err, int rank, const char *what, long long have, long long most)
{
	err_set(err, WEFT_ELIMIT, "rank %d: %s: %lld, MSCCL++ takes %lld", rank, what, have, most);
	err_hint(err, "fits: %s up to %lld", what, most);
	return WEFT_ELIMIT;
}

/* ---- one operation ---- */

struct mscclpp_op_shape {
	int ids, srcs, dsts;	/* the most of each; 0: none */
};

static const struct mscclpp_op_shape shapes[MSCCLPP_NAMES] = {
	[MSCCLPP_PUT] = { MSCCLPP_MAX_IDS, MSCCLPP_MAX_IDS, MSCCLPP_MAX_IDS },
	[MSCCLPP_PWS] = { MSCCLPP_MAX_IDS, MSCCLPP_MAX_IDS, MSCCLPP_MAX_IDS },
	[MSCCLPP_SIGNAL] = { MSCCLPP_MAX_IDS, 0, 0 },
	[MSCCLPP_WAIT] = { MSCCLPP_MAX_IDS, 0, 0 },
	[MSCCLPP_FLUSH] = { MSCCLPP_MAX_IDS, 0, MSCCLPP_MAX_IDS },
	[MSCCLPP_COPY] = { 0, 1, 1 },
	[MSCCLPP_REDUCE] = { 0, MSCCLPP_MAX_REFS, 1 },
	[MSCCLPP_ACQUIRE] = { MSCCLPP_MAX_SEMS, 0, 0 },
	[MSCCLPP_RELEASE] = { MSCCLPP_MAX_SEMS, 0, 0 },
};

static bool is_put(const struct mscclpp_op *op)
{
	return op->name == MSCCLPP_PUT || op->name == MSCCLPP_PWS;
}

static bool counts(int n, int most)
{
	return most == 0 ? n == 0 : n >= 1 && n <= most;
}

static const char *shape_fault(const struct mscclpp_op *op)
{
	const struct mscclpp_op_shape *s = &shapes[op->name];

	if (!counts(op->n_ids, s->ids)) {
		return s->ids ? "channels or semaphores: none, or too many"
			      : "takes no channels and no semaphores";
	}
	if (!counts(op->n_src, s->srcs) || !counts(op->n_dst, s->dsts)) {
		return "too few or too many buffers";
	}
	if ((is_put(op) && op->n_src != op->n_ids) ||
	    (s->ids && s->dsts && op->n_dst != op->n_ids)) {
		return "needs one piece for each channel";
	}
	return op->name == MSCCLPP_REDUCE && op->n_src < 2
		       ? "adds a single buffer" : NULL;
}

static const char *ids_fault(const struct mscclpp_gpu *g, const struct mscclpp_tb *tb,
			     const struct mscclpp_op *op)
{
	bool sems = op->name == MSCCLPP_ACQUIRE || op->name == MSCCLPP_RELEASE;
	int n = sems ? (int)g->sems.n : tb->n_chans;

	for (int i = 0; i < op->n_ids; i++) {
		if (op->ids[i] < 0 || op->ids[i] >= n) {
			return sems ? "a semaphore that does not exist"
				    : "a channel that the threadblock has not";
		}
		/* Puts alone may share a channel. */
		for (int k = 0; k < i && op->name != MSCCLPP_PUT; k++) {
			if (op->ids[k] == op->ids[i]) {
				return sems ? "a semaphore twice"
					    : "a channel twice";
			}
		}
	}
	return NULL;
}

static bool inside(const struct mscclpp_gpu *g, int buf, const struct mscclpp_ref *x)
{
	return buf <= LOWER_SCRATCH && x->index >= 0 && x->size >= 1 &&
	       x->index <= g->chunks[buf] - x->size;
}

static const char *remote_fault(const struct mscclpp *p, const struct mscclpp_gpu *g,
				const struct mscclpp_tb *tb, const struct mscclpp_op *op, int i)
{
	const struct mscclpp_ref *x = &op->dst[i];
	const struct mscclpp_remote *r;

	if (!x->remote || x->buf >= tb->n_remotes) {
		return "a remote buffer that the threadblock has not";
	}
	r = &g->remotes.v[tb->remotes[x->buf]];
	if (r->rank != g->chans.v[tb->chans[op->ids[i]]]) {
		return "the channel does not lead to the rank of the buffer";
	}
	return inside(&p->gpus[r->rank], r->buf, x)
		       ? NULL : "writes outside the remote buffer";
}

static const char *refs_fault(const struct mscclpp *p, const struct mscclpp_gpu *g,
			      const struct mscclpp_tb *tb, const struct mscclpp_op *op)
{
	for (int i = 0; i < op->n_src; i++) {
		const struct mscclpp_ref *x = &op->src[i];
		int twin = is_put(op) ? i : 0;

		if (x->remote || !inside(g, x->buf, x)) {
			return "reads outside the buffer";
		}
		if (x->size != op->dst[twin].size) {
			return "source and destination differ in size";
		}
	}
	for (int i = 0; i < op->n_dst; i++) {
		const struct mscclpp_ref *x = &op->dst[i];
		const char *fault = is_put(op)
			? remote_fault(p, g, tb, op, i)
			: x->remote || !inside(g, x->buf, x)
				? "writes outside the buffer" : NULL;

		if (fault) {
			return fault;
		}
	}
	return NULL;
}

/* ---- one rank ---- */

static int check_tb(const struct mscclpp *p, int rank, int t, struct err *err)
{
	const struct mscclpp_gpu *g = &p->gpus[rank];
	const struct mscclpp_tb *tb = &g->tbs.v[t];
	const char *fault = NULL;

	if (tb->ops.n > MSCCLPP_MAX_OPS) {
		return limit(err, rank, "operations of a threadblock",
			     (long long)tb->ops.n, MSCCLPP_MAX_OPS);
	}
	for (int i = 0; i < tb->n_chans && !fault; i++) {
		fault = tb->chans[i] < 0 || (size_t)tb->chans[i] >= g->chans.n
				? "a channel that the rank has not" : NULL;
	}
	for (int i = 0; i < tb->n_remotes && !fault; i++) {
		fault = tb->remotes[i] < 0 || (size_t)tb->remotes[i] >= g->remotes.n
				? "a remote buffer that the rank has not"
				: NULL;
	}
	for (size_t k = 0; k < tb->ops.n && !fault; k++) {
		const struct mscclpp_op *op = &tb->ops.v[k];

		fault = op->name >= MSCCLPP_NAMES ? "unknown operation"
						  : shape_fault(op);
		fault = fault ? fault : ids_fault(g, tb, op);
		fault = fault ? fault : refs_fault(p, g, tb, op);
		if (fault) {
			return err_set(err, WEFT_EVERIFY, "%s: %s: %s",
				       mscclpp_at(rank, t, (int)k).text,
				       op->name < MSCCLPP_NAMES
					       ? mscclpp_op_name(op->name)
					       : "?", fault);
		}
	}
	return fault ? err_set(err, WEFT_EVERIFY, "rank %d threadblock %d: %s", rank, t, fault) : 0;
}

static int check_sizes(const struct mscclpp *p, int rank, struct err *err)
{
	const int32_t *n = p->gpus[rank].chunks;
	int32_t shard = p->loop / p->ranks;

	if (n[LOWER_IN] != (p->kind == COLL_ALLGATHER ? shard : p->loop) ||
	    n[LOWER_OUT] != (p->kind == COLL_REDUCE_SCATTER ? shard
							    : p->loop) ||
	    n[LOWER_SCRATCH] < 0) {
		return err_set(err, WEFT_EVERIFY,
			       "rank %d: buffers of %d, %d and %d chunks do "
			       "not fit a vector of %d", rank, n[0], n[1],
			       n[2], p->loop);
	}
	return 0;
}

static const char *rank_fault(const struct mscclpp *p, int rank)
{
	const struct mscclpp_gpu *g = &p->gpus[rank];

	for (size_t i = 0; i < g->chans.n; i++) {
		if (g->chans.v[i] < 0 || g->chans.v[i] >= p->ranks || g->chans.v[i] == rank) {
			return "a channel to a rank that does not exist, or "
			       "to itself";
		}
	}
	for (size_t i = 0; i < g->remotes.n; i++) {
		const struct mscclpp_remote *r = &g->remotes.v[i];

		if (r->rank < 0 || r->rank >= p->ranks || r->rank == rank ||
		    r->buf > LOWER_SCRATCH) {
			return "a remote buffer of a rank that does not "
			       "exist, or its own";
		}
	}
	for (size_t i = 0; i < g->sems.n; i++) {
		if (g->sems.v[i] < 0) {
			return "a semaphore that begins below 0";
		}
	}
	return NULL;
}

static int check_rank(const struct mscclpp *p, int rank, struct err *err)
{
	const struct mscclpp_gpu *g = &p->gpus[rank];
	const char *fault = rank_fault(p, rank);
	int rc = check_sizes(p, rank, err);

	if (!rc && fault) {
		rc = err_set(err, WEFT_EVERIFY, "rank %d: %s", rank, fault);
	}
	if (!rc && g->tbs.n > MSCCLPP_MAX_TBS) {
		rc = limit(err, rank, "threadblocks of 64 operations",
			   (long long)g->tbs.n, MSCCLPP_MAX_TBS);
	}
	for (size_t t = 0; t < g->tbs.n && !rc; t++) {
		rc = check_tb(p, rank, (int)t, err);
	}
	return rc;
}

/* ---- the whole ---- */

static int check_head(const struct mscclpp *p, struct err *err)
{
	if (p->ranks < 2 || p->ranks > MSCCLPP_MAX_RANKS) {
		err_set(err, WEFT_ELIMIT, "%d ranks, weft plans 2 to %d",
			p->ranks, MSCCLPP_MAX_RANKS);
		err_hint(err, "fits: N up to %d", MSCCLPP_MAX_RANKS);
		return WEFT_ELIMIT;
	}
	if (p->loop < 1 || (!lower_is_whole(p->kind) && p->loop % p->ranks)) {
		return err_set(err, WEFT_EVERIFY,
			       "a vector of %d chunks is not %d equal shards",
			       p->loop, p->ranks);
	}
	return p->kind == COLL_ALLTOALL && p->inplace
		       ? err_set(err, WEFT_EVERIFY, "all-to-all cannot be done in place") : 0;
}

/* Offsets are 32 bits wide: the largest message must keep to that. */
static int check_bytes(const struct mscclpp *p, struct err *err)
{
	uint64_t chunk = p->max_bytes / (uint64_t)p->loop +
			 (p->max_bytes % (uint64_t)p->loop != 0);
	int64_t cells = 0, most = 1, tbs = 0;

	for (int r = 0; r < p->ranks; r++) {
		for (int i = 0; i < 3; i++) {
			int64_t n = p->gpus[r].chunks[i];

			cells += n;
			most = n > most ? n : most;
		}
		tbs += (int64_t)p->gpus[r].tbs.n;
	}
	if (chunk > (MSCCLPP_MAX_BYTES - 1) / (uint64_t)most) {
		return err_set(err, WEFT_EVERIFY,
			       "a buffer of %lld chunks exceeds 4 GiB for the "
			       "largest message", (long long)most);
	}
	if (cells > LOWER_MAX_CELLS || tbs > MSCCLPP_MAX_ALL_TBS) {
		err_set(err, WEFT_ELIMIT,
			"%lld chunks in the buffers and %lld threadblocks of "
			"all ranks are more than weft proves",
			(long long)cells, (long long)tbs);
		err_hint(err, "fits: %d chunks and %d threadblocks",
			 LOWER_MAX_CELLS, MSCCLPP_MAX_ALL_TBS);
		return WEFT_ELIMIT;
	}
	return 0;
}

/* As many channels from u to v as from v to u. */
static int check_ends(const struct mscclpp *p, struct err *err)
{
	struct u64map ends = { 0 };
	uint64_t n;
	int rc = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int r = 0; r < p->ranks && !rc; r++) {
			for (size_t i = 0; i < p->gpus[r].chans.n && !rc; i++) {
				uint64_t to = (uint64_t)p->gpus[r].chans.v[i];
				uint64_t there = (uint64_t)r << 32 | to;
				uint64_t back = to << 32 | (uint64_t)r;

				n = 0;
				u64map_get(&ends, pass ? back : there, &n);
				/* Counted one way, then taken off the
				 * other. */
				u64map_set(&ends, pass ? back : there, pass ? n - 1 : n + 1);
				if (pass && n == 0) {
					rc = err_set(err, WEFT_EVERIFY,
						     "rank %d: channel %zu to "
						     "rank %d has no other "
						     "end", r, i, (int)to);
				}
			}
		}
	}
	u64map_fini(&ends);
	return rc;
}

int mscclpp_check(const struct mscclpp *p, struct err *err)
{
	int rc = check_head(p, err);

	for (int r = 0; r < p->ranks && !rc; r++) {
		rc = check_rank(p, r, err);
	}
	if (rc || (rc = check_bytes(p, err)) || (rc = check_ends(p, err))) {
		return rc;
	}
	return mscclpp_run(p, err);
}
