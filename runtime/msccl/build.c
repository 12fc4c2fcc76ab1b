/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threadblocks for the ops of a schedule: pairing of peers, fusing, channels,
 * dependencies; see msccl.h. Each rank is built by itself. A receive followed by
 * a send of the same data becomes one fused step; a rank's connections are put
 * in threadblocks, one sender and one receiver each; an op that reads what
 * another threadblock wrote then waits for that one's step. When a threadblock
 * has more steps than the runtime allows, time is cut into blocks, each with
 * channels of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "runtime/msccl/build.h"

/* ---- who wrote what an op reads ---- */

/* Op i reads: its writer is the one op that wrote all of it, or NONE. */
static void note_read(struct msccl_build *b, int i, int64_t from)
{
	struct msccl_op *op = &b->ops[i];
	int32_t w = b->writer[from];

	op->writer = w;
	for (int32_t k = 0; k < op->cnt; k++) {
		int32_t x = b->writer[from + k];

		if (x != w) {
			op->writer = NONE;
		}
		/* Once a run of chunks that one op wrote. */
		if (x != NONE && (k == 0 || b->writer[from + k - 1] != x)) {
			b->ops[x].readers++;
		}
	}
}

/* Op i writes: what was there is lost. */
static void note_write(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int64_t to = msccl_cell_of(b, op->dst_buf, op->dst);

	for (int32_t k = 0; k < op->cnt; k++) {
		if (b->writer[to + k] != NONE) {
			b->ops[b->writer[to + k]].lost++;
		}
		b->writer[to + k] = i;
	}
}

void msccl_forget_cells(struct msccl_build *b)
{
	for (int64_t c = 0; c < b->cells; c++) {
		b->writer[c] = NONE;
		b->reader[c] = NONE;
	}
	b->reads.n = 0;
}

/* Writers, readers and losses of all ops of the rank, in their order: what may be
 * fused follows from them. O(chunks moved). */
static void trace_values(struct msccl_build *b)
{
	msccl_forget_cells(b);
	for (int i = 0; i < b->n_ops; i++) {
		struct msccl_op *op = &b->ops[i];

		op->writer = NONE;
		op->readers = op->lost = 0;
		if (op->own) {
			continue;
		}
		if (op->type == MSCCL_REDUCE) {
			note_read(b, i, msccl_cell_of(b, op->dst_buf, op->dst));
		}
		if (msccl_reads(op->type)) {
			note_read(b, i, msccl_cell_of(b, op->src_buf, op->src));
		}
		if (msccl_writes(op->type)) {
			note_write(b, i);
		}
	}
}

/* ---- threadblocks ---- */

static int find_tb(struct msccl_gpu *g, int recv, int send, int chan)
{
	for (size_t t = 0; t < g->tbs.n; t++) {
		const struct msccl_tb *tb = &g->tbs.v[t];

		if (tb->recv == recv && tb->send == send && tb->chan == chan) {
			return (int)t;
		}
	}
	vec_push(&g->tbs, (struct msccl_tb){ .send = send, .recv = recv, .chan = chan });
	return (int)g->tbs.n - 1;
}

/* What a rank copies for itself has threadblocks of its own. */
static int local_tb(struct msccl_build *b, int copies)
{
	struct msccl_gpu *g = &b->p->gpus[b->rank];

	if (copies % b->lim->steps != 0) {
		return (int)g->tbs.n - 1;
	}
	vec_push(&g->tbs, (struct msccl_tb){ .send = NONE, .recv = NONE });
	return (int)g->tbs.n - 1;
}

static void place_ops(struct msccl_build *b)
{
	int copies = 0;

	for (int i = 0; i < b->n_ops; i++) {
		struct msccl_op *op = &b->ops[i];
		int recv = op->near != NONE ? op->near : op->recv, send = op->send;
		int chan = (int)((int64_t)op->phase * b->blocks / b->phases) *
			   b->groups;

		if (op->own) {
			op->tb = local_tb(b, copies++);
		} else {
			chan += recv != NONE ? msccl_group_of(b, recv, b->rank)
					     : msccl_group_of(b, b->rank, send);
			send = recv != NONE ? b->mate[recv] : send;
			recv = recv == NONE ? b->mated[send] : recv;
			op->tb = find_tb(&b->p->gpus[b->rank], recv, send, chan);
		}
	}
}

/* A receive `a` and the send `c` next in its threadblock become one step
 * when the send passes on just what was received. Sums that nothing else
 * reads and that are written over, or lie in scratch, need not be stored. */
static void fuse(struct msccl_build *b, int a, int c)
{
	struct msccl_op *r = &b->ops[a], *s = &b->ops[c];
	bool kept = r->dst_buf != LOWER_SCRATCH && r->lost < r->cnt;

	if (s->type != MSCCL_SEND || s->writer != a || s->cnt != r->cnt ||
	    msccl_cell_of(b, s->src_buf, s->src) !=
		    msccl_cell_of(b, r->dst_buf, r->dst)) {
		return;
	}
	if (r->type == MSCCL_RECV) {
		r->type = MSCCL_RCS;
	} else if (r->type == MSCCL_RRC) {
		r->type = r->readers == 1 && !kept ? MSCCL_RRS : MSCCL_RRCS;
	} else {
		return;
	}
	if (r->type == MSCCL_RRS) {
		r->dst_buf = LOWER_OUT;
		r->dst = NONE;
	}
	r->send = s->send;
	s->fused = true;
}

static void fuse_all(struct msccl_build *b)
{
	size_t tbs = b->p->gpus[b->rank].tbs.n;
	int32_t *last = x_alloc(tbs + 1, sizeof(*last));

	for (size_t t = 0; t < tbs; t++) {
		last[t] = NONE;
	}
	for (int i = 0; i < b->n_ops; i++) {
		int32_t *l = &last[b->ops[i].tb];

		b->ops[i].fused = false;
		if (*l != NONE) {
			fuse(b, *l, i);
		}
		*l = b->ops[i].fused ? NONE : i;
	}
	free(last);
}

/* ---- numbers of threadblocks ---- */

/* Only low numbers can be waited for, so these threadblocks come first. */
static void renumber_tbs(struct msccl_gpu *g)
{
	size_t n = g->tbs.n, next = 0;
	int32_t *to = x_alloc(n + 1, sizeof(*to));
	struct msccl_tb *old = x_alloc(n + 1, sizeof(*old));
	bool *waited = x_new(n + 1, sizeof(*waited));

	for (size_t t = 0; t < n; t++) {
		for (size_t k = 0; k < g->tbs.v[t].steps.n; k++) {
			waited[t] |= g->tbs.v[t].steps.v[k].has_dep;
		}
	}
	for (int pass = 1; pass >= 0; pass--) {
		for (size_t t = 0; t < n; t++) {
			if (waited[t] == pass) {
				old[next] = g->tbs.v[t];
				to[t] = (int32_t)next++;
			}
		}
	}
	for (size_t t = 0; t < next; t++) {
		g->tbs.v[t] = old[t];
		for (size_t k = 0; k < old[t].steps.n; k++) {
			int32_t *d = &old[t].steps.v[k].dep_tb;

			*d = *d == NONE ? NONE : to[*d];
		}
	}
	free(to);
	free(old);
	free(waited);
}

/* Scratch without the chunks that fusing left unused. Runs that are used
 * stay runs. */
static void pack_scratch(struct msccl_gpu *g, int64_t n)
{
	int32_t *to = x_new((size_t)n + 1, sizeof(*to)), next = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t t = 0; t < g->tbs.n; t++) {
			for (size_t k = 0; k < g->tbs.v[t].steps.n; k++) {
				struct msccl_step *s = &g->tbs.v[t].steps.v[k];

				if (s->dst_buf == LOWER_SCRATCH && pass) {
					s->dst = to[s->dst];
				}
				if (s->src_buf == LOWER_SCRATCH && pass) {
					s->src = to[s->src];
				}
				for (int32_t c = 0; c < s->cnt && !pass &&
				     s->dst_buf == LOWER_SCRATCH; c++) {
					to[s->dst + c] = 1;
				}
			}
		}
		if (!pass) {
			next = lower_pack_scratch(to, n);
		}
	}
	g->chunks[LOWER_SCRATCH] = next;
	free(to);
}

/* ---- a rank, and all of them ---- */

/* Adds what was received to the rank's own: where that is elsewhere, it is copied first. */
static void load_add(struct msccl_build *b, const struct lower_op *op)
{
	struct msccl_op step = {
		.type = MSCCL_COPY, .src_buf = op->src_buf, .dst_buf = op->dst_buf, .send = NONE,
		.recv = NONE, .near = op->near, .src = op->src, .dst = op->dst, .cnt = op->cnt,
		.phase = op->phase };

	if (op->src_buf != op->dst_buf || op->src != op->dst) {
		b->ops[b->n_ops++] = step;
	}
	step.type = MSCCL_REDUCE;
	step.src_buf = LOWER_SCRATCH;
	step.src = op->scratch;
	b->ops[b->n_ops++] = step;
}

/* What is saved before it is sent, beside that. */
static void load_save(struct msccl_build *b, const struct lower_op *op)
{
	b->ops[b->n_ops++] = (struct msccl_op){
		.type = MSCCL_COPY, .src_buf = op->src_buf, .dst_buf = op->dst_buf,
		.send = op->near, .recv = NONE, .near = NONE, .src = op->src, .dst = op->dst,
		.cnt = op->cnt, .phase = op->phase };
}

/* Sends what lies in scratch at `at`, copied there before, in the same threadblock: what others
 * write over the original waits for the copy. */
static void load_send(struct msccl_build *b, const struct lower_op *op, int32_t at)
{
	struct msccl_op step = {
		.type = MSCCL_COPY, .src_buf = op->src_buf, .dst_buf = LOWER_SCRATCH,
		.send = op->send, .recv = NONE, .near = NONE, .src = op->src, .dst = at,
		.cnt = op->cnt, .phase = op->phase };

	b->ops[b->n_ops++] = step;
	step.type = MSCCL_SEND;
	step.src_buf = LOWER_SCRATCH;
	step.src = at;
	step.dst_buf = LOWER_OUT;
	step.dst = NONE;
	b->ops[b->n_ops++] = step;
}

/* In b->writer the last op of the rank that writes a cell, or NONE. */
static void note_last_writes(struct msccl_build *b, const struct lower_rank *from)
{
	msccl_forget_cells(b);
	for (size_t i = 0; i < from->ops.n; i++) {
		const struct lower_op *op = &from->ops.v[i];

		for (int32_t k = 0; op->type != LOWER_SEND && k < op->cnt; k++) {
			b->writer[msccl_cell_of(b, op->dst_buf, op->dst) + k] = (int32_t)i;
		}
	}
}

static bool is_written_later(const struct msccl_build *b, const struct lower_op *op, int i)
{
	for (int32_t k = 0; k < op->cnt; k++) {
		if (b->writer[msccl_cell_of(b, op->src_buf, op->src) + k] > i) {
			return true;
		}
	}
	return false;
}

/* Chunks of scratch for what is copied before it is sent. */
static int32_t count_copies(const struct lower_rank *from)
{
	int32_t n = 0;

	for (size_t i = 0; i < from->ops.n; i++) {
		n += from->ops.v[i].type == LOWER_SEND ? from->ops.v[i].cnt : 0;
	}
	return n;
}

/* The ops of a rank, as steps of MSCCL; at most two for each. `scratch`: chunks of it that the
 * rank's own ops have. */
static void load_ops(struct msccl_build *b, const struct lower_rank *from, int32_t scratch)
{
	static const uint8_t types[] = {
		[LOWER_SEND] = MSCCL_SEND, [LOWER_RECV] = MSCCL_RECV,
		[LOWER_SUM] = MSCCL_RRC, [LOWER_COPY] = MSCCL_COPY,
	};

	if (b->sends_copies) {
		note_last_writes(b, from);
	}
	for (size_t i = 0; i < from->ops.n; i++) {
		const struct lower_op *op = &from->ops.v[i];

		if (op->type == LOWER_ADD) {
			load_add(b, op);
			continue;
		}
		if (op->type == LOWER_SAVE) {
			load_save(b, op);
			continue;
		}
		if (b->sends_copies && op->type == LOWER_SEND && is_written_later(b, op, (int)i)) {
			load_send(b, op, scratch);
			scratch += op->cnt;
			continue;
		}
		b->ops[b->n_ops++] = (struct msccl_op){
			.type = types[op->type], .own = op->type == LOWER_COPY,
			.src_buf = op->src_buf, .dst_buf = op->dst_buf, .send = op->send,
			.recv = op->recv, .near = NONE, .src = op->src, .dst = op->dst,
			.cnt = op->cnt, .phase = op->phase };
	}
}

static void build_ops(struct msccl_build *b, const struct lower_rank *from)
{
	struct msccl_gpu *g = &b->p->gpus[b->rank];

	load_ops(b, from, from->chunks[LOWER_SCRATCH]);
	trace_values(b);
	msccl_pair_peers(b);
	place_ops(b);
	fuse_all(b);
	msccl_order_ops(b);
	renumber_tbs(g);
	pack_scratch(g, g->chunks[LOWER_SCRATCH]);
}

static void build_rank(struct msccl_build *b, const struct lower_rank *from)
{
	int ranks = b->p->ranks;
	struct arrays arrays = { 0 };

	memcpy(b->p->gpus[b->rank].chunks, from->chunks, sizeof(from->chunks));
	b->p->gpus[b->rank].chunks[LOWER_SCRATCH] += b->sends_copies ? count_copies(from) : 0;
	b->n_ops = 0;
	b->cells = msccl_cells(b->p, b->rank);
	arrays_add(&arrays, b->ops, 2 * from->ops.n);
	arrays_add(&arrays, b->writer, b->cells);
	arrays_add(&arrays, b->reader, b->cells);
	arrays_add(&arrays, b->mate, ranks);
	arrays_add(&arrays, b->mated, ranks);
	build_ops(b, from);
	arrays_fini(&arrays);
	vec_fini(&b->reads);
}

static void clear_tbs(struct msccl *p)
{
	for (int r = 0; r < p->ranks; r++) {
		struct msccl_gpu *g = &p->gpus[r];

		for (size_t t = 0; t < g->tbs.n; t++) {
			vec_fini(&g->tbs.v[t].steps);
		}
		g->tbs.n = 0;
	}
}

static int too_long(const struct msccl_build *b, int steps, struct err *err)
{
	const struct msccl_limits *lim = b->lim;
	int channels = b->blocks * b->groups;

	err_set(err, WEFT_ELIMIT,
		"a threadblock needs %d steps on %d channels, %s runs %d "
		"steps on up to %d", steps, channels, lim->runtime,
		lim->steps, lim->channels);
	err_hint(err, "fits: about %d sends of %d chunks a connection",
		 lim->steps / 2 * (lim->channels / b->groups), MSCCL_MAX_COUNT);
	return WEFT_ELIMIT;
}

static int too_many_peers(const struct msccl_build *b, struct err *err)
{
	err_set(err, WEFT_ELIMIT, "the peers of a rank need %d channels of "
		"%d, %s has %d channels", b->groups, MSCCL_MAX_PEERS,
		b->lim->runtime, b->lim->channels);
	err_hint(err, "fits: ranks with peers at up to %d distances",
		 b->lim->channels * MSCCL_MAX_PEERS);
	return WEFT_ELIMIT;
}

static int too_many_waits(int waited, struct err *err)
{
	err_set(err, WEFT_ELIMIT, "others wait for %d threadblocks of a rank, "
		"the runtimes let them wait for %d", waited,
		MSCCL_MAX_DEP_TB + 1);
	err_hint(err, "fits: at most %d threadblocks that others wait for", MSCCL_MAX_DEP_TB + 1);
	return WEFT_ELIMIT;
}

/* Whether a threadblock of this rank has more steps than the runtime takes. */
static bool exceeds(const struct msccl_build *b, const struct msccl_gpu *g)
{
	for (size_t t = 0; t < g->tbs.n; t++) {
		if (g->tbs.v[t].steps.n > (size_t)b->lim->steps) {
			return true;
		}
	}
	return false;
}

/* All ranks, or where there may be more blocks up to the first with too many
 * steps. */
static void build_ranks(struct msccl_build *b, const struct lower *l, bool more)
{
	bool enough = false;

	clear_tbs(b->p);
	for (b->rank = 0; b->rank < b->p->ranks && !enough; b->rank++) {
		build_rank(b, &l->rank[b->rank]);
		enough = more && exceeds(b, &b->p->gpus[b->rank]);
	}
}

/* The next number of blocks to try when a threadblock has too many steps. */
static int more_blocks(const struct msccl_build *b, int steps, int max_blocks)
{
	int next = (int)((int64_t)b->blocks * steps / b->lim->steps);

	next = next > b->blocks ? next : b->blocks + 1;
	next += (b->block_step - next % b->block_step) % b->block_step;
	return next < max_blocks ? next : max_blocks;
}

/* Cuts time into as many blocks as the limit of steps needs. */
static int cut_time(struct msccl_build *b, const struct lower *l, struct err *err)
{
	int max_blocks = b->lim->channels / b->groups;
	struct msccl_extent e;

	max_blocks -= max_blocks % b->block_step;
	if (max_blocks == 0) {
		return too_many_peers(b, err);
	}
	for (;;) {
		bool more = b->blocks < max_blocks && b->blocks < b->phases;

		build_ranks(b, l, more);
		e = msccl_extent(b->p);
		if ((e.tbs > b->lim->tbs || e.waited > MSCCL_MAX_DEP_TB + 1) && !b->pair_all) {
			b->pair_all = true;
			continue;
		}
		if (e.steps <= b->lim->steps) {
			break;
		}
		if (!more) {
			return too_long(b, e.steps, err);
		}
		b->blocks = more_blocks(b, e.steps, max_blocks);
	}
	b->p->channels = b->blocks * b->groups;
	return e.waited > MSCCL_MAX_DEP_TB + 1 ? too_many_waits(e.waited, err) : 0;
}

int msccl_build(struct msccl_build *b, const struct lower *l, struct err *err)
{
	int rc;

	b->phases = l->phases + (l->phases == 0);
	msccl_group_peers(b, l);
	rc = cut_time(b, l, err);
	free(b->group);
	b->group = NULL;
	return rc;
}
