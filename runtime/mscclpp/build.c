/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans from the sends and receives of a schedule; see mscclpp.h.
 *
 * A rank goes through its operations in the order of lower_schedule. Sends
 * gather in a batch, receives are put off. A send that needs what a receive
 * brings ends the batch: it is sent, all receives put off are waited for, and
 * their sums added. So nothing is waited for before all that could be sent
 * was, and a rank is at most as far behind as the synchronous schedule.
 *
 * A copy lands where it belongs; what is to be added lands in a part of
 * scratch of its own, so that no sender ever needs leave to send.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "runtime/mscclpp/mscclpp.h"

#define NONE (-1)

/* What is known of an op beside struct lower_op. */
struct mscclpp_op_info {
	int32_t mate;	/* the op at the other end, in that rank's list */
	int32_t signal;	/* a send: which signal to its peer comes after it */
	int32_t stage;	/* where it arrives in scratch, if it is staged */
};

/* An op whose channels and remote buffers count over the whole rank: which
 * threadblock it goes to, and so its own numbers, is decided by cut(). */
struct mscclpp_flat_op {
	struct mscclpp_op op;
	int32_t remotes[MSCCLPP_MAX_IDS];	/* by destination of a put */
};

/* A plan being built, rank by rank. Counters (segment, flushes, drains, round) only
 * grow while a rank is built, so that a cell or peer is unmarked by counting on. */
struct mscclpp_build {
	struct mscclpp *p;
	struct lower *low;
	struct mscclpp_op_info **extra;	/* by rank and op */
	struct u64map sends;	/* (from, to, phase): the op */
	/* The rank being built. */
	int rank;
	int32_t shard;
	int64_t cells;
	int32_t *peer_chan;	/* by rank: channel, or NONE */
	int32_t *peer_sent;	/* by rank: signals after the first */
	int32_t *peer_last;	/* by rank: its last send of the batch */
	int32_t *peer_waited;	/* by rank: signals waited for */
	int32_t *peer_round;	/* by rank: the last round of waits */
	int32_t *remote[3];	/* by rank, for each buffer: id, or NONE */
	int32_t *due;		/* by cell: `drains` when a receive that
				 * writes it was put off */
	int32_t *touched;	/* by cell: `segment` that used it last */
	int32_t *leaving;	/* by cell: `flushes` when it was last sent */
	int32_t segment, flushes, drains, round;
	bool stages_copies;	/* what comes as it is, too, is staged: a rank may still add to
				 * what it takes the place of */
	bool copied;		/* own_copies are done */
	bool unmet;		/* something since the last nop */
	/* Ops of the rank: sends that are to go together, and receives whose
	 * signals are not waited for yet. */
	VEC(int32_t) batch, put_off;
	VEC(struct mscclpp_flat_op) out;	/* in order, before cut() */
	struct arrays arrays;	/* by rank, those above */
};

static const struct lower_rank *ops_of(const struct mscclpp_build *b)
{
	return &b->low->rank[b->rank];
}

/* The chunk of the rank that an op touches, as lower_cell numbers them. */
static int64_t cell_of(const struct mscclpp_build *b, int buf, int64_t off)
{
	return lower_cell(b->p->kind, b->p->gpus[b->rank].chunks, b->shard,
			   buf, off, b->p->inplace);
}

static void emit_flat(struct mscclpp_build *b, const struct mscclpp_flat_op *f)
{
	b->unmet = f->op.name != MSCCLPP_NOP;
	b->segment += f->op.name == MSCCLPP_NOP;
	vec_push(&b->out, *f);
}

static void emit(struct mscclpp_build *b, const struct mscclpp_op *op)
{
	emit_flat(b, &(struct mscclpp_flat_op){ .op = *op });
}

/* The threads meet, unless they just did. */
static void meet(struct mscclpp_build *b)
{
	if (b->unmet) {
		emit(b, &(struct mscclpp_op){ .name = MSCCLPP_NOP });
	}
}

/* ---- which op meets which, before any rank is built ---- */

/* A phase has at most one send from one rank to another: unique. */
static uint64_t send_key(const struct mscclpp_build *b, int from, int to, int phase)
{
	uint64_t pair = (uint64_t)from * (uint64_t)b->p->ranks + (uint64_t)to;

	return pair * (uint64_t)b->low->phases + (uint64_t)phase;
}

static void note_sends(struct mscclpp_build *b)
{
	for (int r = 0; r < b->p->ranks; r++) {
		for (size_t i = 0; i < b->low->rank[r].ops.n; i++) {
			const struct lower_op *op = &b->low->rank[r].ops.v[i];

			if (op->type == LOWER_SEND) {
				u64map_set(&b->sends, send_key(b, r, op->send, op->phase), i);
			}
		}
	}
}

/* Whether what op receives comes to scratch, and goes on from there. */
static bool is_staged(const struct mscclpp_build *b, const struct lower_op *op)
{
	return op->type == LOWER_SUM ||
	       (b->stages_copies && op->type == LOWER_RECV && op->dst_buf != LOWER_SCRATCH);
}

/* Mates, and a place in scratch for every sum that arrives. */
static void pair_ops(struct mscclpp_build *b, int rank)
{
	int32_t *scratch = &b->p->gpus[rank].chunks[LOWER_SCRATCH];

	for (size_t i = 0; i < b->low->rank[rank].ops.n; i++) {
		const struct lower_op *op = &b->low->rank[rank].ops.v[i];
		uint64_t mate = 0;

		if (op->recv == NONE) {
			continue;
		}
		u64map_get(&b->sends, send_key(b, op->recv, rank, op->phase), &mate);
		b->extra[rank][i].mate = (int32_t)mate;
		b->extra[op->recv][mate].mate = (int32_t)i;
		if (is_staged(b, op)) {
			b->extra[rank][i].stage = *scratch;
			*scratch += op->cnt;
		}
	}
}

/* Scratch, which lower_schedule numbers sparsely, without its holes. */
static void pack_scratch(struct mscclpp_build *b, int rank)
{
	struct lower_rank *low = &b->low->rank[rank];
	int64_t size = low->chunks[LOWER_SCRATCH];
	int32_t *to = x_new((size_t)size + 1, sizeof(*to));

	for (size_t i = 0; i < low->ops.n; i++) {
		const struct lower_op *op = &low->ops.v[i];

		for (int32_t k = 0; k < op->cnt && op->dst >= 0 &&
		     op->dst_buf == LOWER_SCRATCH; k++) {
			to[op->dst + k] = 1;
		}
	}
	b->p->gpus[rank].chunks[LOWER_SCRATCH] = lower_pack_scratch(to, size);
	for (size_t i = 0; i < low->ops.n; i++) {
		struct lower_op *op = &low->ops.v[i];

		if (op->dst >= 0 && op->dst_buf == LOWER_SCRATCH) {
			op->dst = to[op->dst];
		}
		if (op->src >= 0 && op->src_buf == LOWER_SCRATCH) {
			op->src = to[op->src];
		}
		if (op->type == LOWER_ADD) {
			op->scratch = to[op->scratch];
		}
	}
	free(to);
}

/* ---- channels and remote buffers of a rank ---- */

static void channel(struct mscclpp_build *b, int peer)
{
	struct mscclpp_gpu *g = &b->p->gpus[b->rank];

	if (b->peer_chan[peer] == NONE) {
		b->peer_chan[peer] = (int32_t)g->chans.n;
		vec_push(&g->chans, peer);
	}
}

/* Every peer's channel, in the order of peers, so that both ends of a pair
 * count alike. */
static void open_channels(struct mscclpp_build *b)
{
	const struct lower_rank *o = ops_of(b);

	for (int r = 0; r < b->p->ranks; r++) {
		b->peer_chan[r] = NONE;
		b->peer_sent[r] = b->peer_waited[r] = 0;
		b->peer_round[r] = NONE;
		b->remote[0][r] = b->remote[1][r] = b->remote[2][r] = NONE;
	}
	for (size_t i = 0; i < o->ops.n; i++) {
		const struct lower_op *op = &o->ops.v[i];
		int peer = op->send != NONE ? op->send : op->recv;

		if (peer != NONE) {
			channel(b, peer);
		}
	}
}

static void remote_id(struct mscclpp_build *b, int peer, int buf, int32_t *id)
{
	struct mscclpp_gpu *g = &b->p->gpus[b->rank];
	int32_t *known = &b->remote[buf][peer];

	if (*known == NONE) {
		*known = (int32_t)g->remotes.n;
		vec_push(&g->remotes, (struct mscclpp_remote){ peer, (uint8_t)buf });
	}
	*id = *known;
}

/* Ops of one kind, each on as many of the channels as one takes. */
static void emit_channels(struct mscclpp_build *b, enum mscclpp_name name,
			  const int32_t *chans, size_t n)
{
	for (size_t i = 0; i < n; i += MSCCLPP_MAX_IDS) {
		struct mscclpp_op op = { .name = (uint8_t)name };

		while (op.n_ids < MSCCLPP_MAX_IDS && i + op.n_ids < n) {
			/* The executor flushes as many channels as there are
			 * destinations, though it writes to none. */
			if (name == MSCCLPP_FLUSH) {
				op.dst[op.n_dst++] = (struct mscclpp_ref){
					.size = 1, .buf = LOWER_OUT };
			}
			op.ids[op.n_ids] = (int16_t)chans[i + op.n_ids];
			op.n_ids++;
		}
		emit(b, &op);
	}
}

/* No rank writes to another before that one's buffers are its own. */
static void emit_start(struct mscclpp_build *b)
{
	const struct mscclpp_gpu *g = &b->p->gpus[b->rank];
	int32_t *all = x_alloc(g->chans.n + 1, sizeof(*all));

	for (size_t i = 0; i < g->chans.n; i++) {
		all[i] = (int32_t)i;
	}
	emit_channels(b, MSCCLPP_SIGNAL, all, g->chans.n);
	emit_channels(b, MSCCLPP_WAIT, all, g->chans.n);
	free(all);
}

/* All puts are over: what they read may be written. */
static void emit_flush(struct mscclpp_build *b)
{
	const struct mscclpp_gpu *g = &b->p->gpus[b->rank];
	VEC(int32_t) used = { 0 };

	meet(b);
	for (size_t i = 0; i < g->chans.n; i++) {
		if (b->peer_sent[g->chans.v[i]] > 0) {
			vec_push(&used, (int32_t)i);
		}
	}
	emit_channels(b, MSCCLPP_FLUSH, used.v, used.n);
	vec_fini(&used);
	b->flushes++;
}

/* ---- batches of sends ---- */

static void add_send(struct mscclpp_build *b, struct mscclpp_flat_op *f, int32_t i)
{
	const struct lower_op *s = &ops_of(b)->ops.v[i];
	int32_t mate = b->extra[b->rank][i].mate;
	const struct lower_op *r = &b->low->rank[s->send].ops.v[mate];
	bool staged = is_staged(b, r);
	int64_t from = cell_of(b, s->src_buf, s->src);
	int n = f->op.n_ids++;

	for (int32_t k = 0; k < s->cnt; k++) {
		b->leaving[from + k] = b->flushes;
	}
	f->op.n_src = f->op.n_dst = f->op.n_ids;
	f->op.ids[n] = (int16_t)b->peer_chan[s->send];
	f->op.src[n] = (struct mscclpp_ref){ .index = s->src, .size = s->cnt,
					     .buf = s->src_buf };
	f->op.dst[n] = (struct mscclpp_ref){
		.index = staged ? b->extra[s->send][mate].stage : r->dst,
		.size = s->cnt, .remote = true };
	remote_id(b, s->send, staged ? LOWER_SCRATCH : r->dst_buf, &f->remotes[n]);
}

/* The sends of the batch that are the last to their peer, which also signal,
 * or all others. */
static void emit_sends(struct mscclpp_build *b, enum mscclpp_name name)
{
	struct mscclpp_flat_op f = { .op = { .name = (uint8_t)name } };

	for (size_t i = 0; i < b->batch.n; i++) {
		int32_t at = b->batch.v[i];
		bool last = b->peer_last[ops_of(b)->ops.v[at].send] == at;

		if (last != (name == MSCCLPP_PWS)) {
			continue;
		}
		add_send(b, &f, at);
		if (f.op.n_ids == MSCCLPP_MAX_IDS) {
			emit_flat(b, &f);
			f = (struct mscclpp_flat_op){ .op = { .name = (uint8_t)name } };
		}
	}
	if (f.op.n_ids > 0) {
		emit_flat(b, &f);
	}
}

/* What a rank copies for itself; in place it is there already. */
static void emit_copies(struct mscclpp_build *b)
{
	const struct lower_rank *o = ops_of(b);

	b->copied = true;
	for (size_t i = 0; i < o->ops.n && !b->p->inplace; i++) {
		const struct lower_op *op = &o->ops.v[i];

		if (op->type == LOWER_COPY) {
			emit(b, &(struct mscclpp_op){
				.name = MSCCLPP_COPY, .n_src = 1, .n_dst = 1,
				.src = { { op->src, op->cnt, op->src_buf,
					   false } },
				.dst = { { op->dst, op->cnt, op->dst_buf,
					   false } } });
		}
	}
}

/* Numbers the signals of a batch; with `write`, sends it. */
static void end_batch(struct mscclpp_build *b, bool write)
{
	const struct lower_op *ops = ops_of(b)->ops.v;

	for (size_t i = 0; i < b->batch.n; i++) {
		b->peer_last[ops[b->batch.v[i]].send] = b->batch.v[i];
	}
	for (size_t i = 0; i < b->batch.n; i++) {
		int32_t at = b->batch.v[i];

		b->extra[b->rank][at].signal = b->peer_sent[ops[at].send] + 1;
	}
	for (size_t i = 0; i < b->batch.n; i++) {
		int32_t at = b->batch.v[i];

		b->peer_sent[ops[at].send] += b->peer_last[ops[at].send] == at;
	}
	if (write && b->batch.n > 0) {
		meet(b);
		emit_sends(b, MSCCLPP_PUT);
		/* The signal of a channel comes after all its puts. */
		if (b->out.v[b->out.n - 1].op.name == MSCCLPP_PUT) {
			meet(b);
		}
		emit_sends(b, MSCCLPP_PWS);
	}
	b->batch.n = 0;
	if (write && !b->copied) {
		emit_copies(b);
	}
}

/* ---- receives that were put off ---- */

static int32_t signal_of(const struct mscclpp_build *b, int32_t i)
{
	const struct lower_op *op = &ops_of(b)->ops.v[i];

	return b->extra[op->recv][b->extra[b->rank][i].mate].signal;
}

/* Waits until all that was put off is there: once for each signal, and in
 * an op once on a channel. */
static void emit_waits(struct mscclpp_build *b)
{
	VEC(int32_t) chans = { 0 };

	do {
		chans.n = 0;
		for (size_t i = b->put_off.n; i-- > 0;) {
			int32_t at = b->put_off.v[i];
			int from = ops_of(b)->ops.v[at].recv;

			/* The newest receive from a peer names the most. */
			if (from != NONE && b->peer_waited[from] < signal_of(b, at) &&
			    b->peer_round[from] != b->round) {
				b->peer_waited[from]++;
				b->peer_round[from] = b->round;
				vec_push(&chans, b->peer_chan[from]);
			}
		}
		b->round++;
		emit_channels(b, MSCCLPP_WAIT, chans.v, chans.n);
	} while (chans.n > 0);
	vec_fini(&chans);
}

static bool in_use(const struct mscclpp_build *b, int64_t from, int32_t n)
{
	for (int32_t k = 0; k < n; k++) {
		if (b->touched[from + k] == b->segment) {
			return true;
		}
	}
	return false;
}

/* Threads may be busy with the same chunks, or a proxy may still read what
 * is to be written. */
static void before_sum(struct mscclpp_build *b, int64_t from, int64_t stage, int64_t to, int32_t n)
{
	bool leaves = false;

	if (in_use(b, from, n) || in_use(b, stage, n) || in_use(b, to, n)) {
		meet(b);
	}
	for (int32_t k = 0; k < n; k++) {
		leaves |= b->leaving[to + k] == b->flushes;
	}
	if (leaves) {
		emit_flush(b);
		meet(b);
	}
	for (int32_t k = 0; k < n; k++) {
		b->touched[from + k] = b->touched[stage + k] = b->touched[to + k] = b->segment;
	}
}

static bool adds(const struct lower_op *op)
{
	return op->type == LOWER_SUM || op->type == LOWER_ADD;
}

/* Adds what arrived for op; further arrivals for the same chunks join. */
static void emit_sum(struct mscclpp_build *b, int32_t i)
{
	const struct lower_op *op = &ops_of(b)->ops.v[i];
	struct mscclpp_ref stage = { op->type == LOWER_ADD ? op->scratch
							   : b->extra[b->rank][i].stage,
				     op->cnt, LOWER_SCRATCH, false };
	struct mscclpp_ref to = { op->dst, op->cnt, op->dst_buf, false };
	struct mscclpp_op *last = &b->out.v[b->out.n - 1].op;
	int64_t from_cell = cell_of(b, op->src_buf, op->src);
	int64_t to_cell = cell_of(b, op->dst_buf, op->dst);
	int64_t stage_cell = cell_of(b, LOWER_SCRATCH, stage.index);

	if (last->name == MSCCLPP_REDUCE && last->n_src < MSCCLPP_MAX_REFS &&
	    from_cell == to_cell && last->dst[0].buf == to.buf &&
	    last->dst[0].index == to.index && last->dst[0].size == to.size &&
	    !in_use(b, stage_cell, op->cnt)) {
		last->src[last->n_src++] = stage;
		return;
	}
	before_sum(b, from_cell, stage_cell, to_cell, op->cnt);
	emit(b, &(struct mscclpp_op){ .name = MSCCLPP_REDUCE, .n_src = 2, .n_dst = 1, .dst = { to },
				     .src = { { op->src, op->cnt, op->src_buf, false }, stage } });
}

/* What is saved before sums change it, or came to a place of its own. */
static void emit_copy(struct mscclpp_build *b, int32_t i)
{
	const struct lower_op *op = &ops_of(b)->ops.v[i];
	struct mscclpp_ref from = { op->src, op->cnt, op->src_buf, false };
	int64_t cell;

	if (op->type == LOWER_RECV) {
		from.index = b->extra[b->rank][i].stage;
		from.buf = LOWER_SCRATCH;
	}
	cell = cell_of(b, from.buf, from.index);
	before_sum(b, cell, cell, cell_of(b, op->dst_buf, op->dst), op->cnt);
	emit(b, &(struct mscclpp_op){ .name = MSCCLPP_COPY, .n_src = 1, .n_dst = 1,
				      .src = { from },
				      .dst = { { op->dst, op->cnt, op->dst_buf, false } } });
}

static void drain(struct mscclpp_build *b, bool write)
{
	if (write) {
		emit_waits(b);
		meet(b);
	}
	for (size_t i = 0; i < b->put_off.n && write; i++) {
		int32_t at = b->put_off.v[i];
		const struct lower_op *op = &ops_of(b)->ops.v[at];

		if (adds(op)) {
			emit_sum(b, at);
		} else if (op->type == LOWER_SAVE || is_staged(b, op)) {
			emit_copy(b, at);
		}
	}
	b->put_off.n = 0;
	b->drains++;
}

/* ---- a rank ---- */

static void put_off(struct mscclpp_build *b, int32_t i)
{
	const struct lower_op *op = &ops_of(b)->ops.v[i];
	int64_t to = cell_of(b, op->dst_buf, op->dst);

	for (int32_t k = 0; k < op->cnt; k++) {
		b->due[to + k] = b->drains;
	}
	vec_push(&b->put_off, i);
}

static bool is_due(const struct mscclpp_build *b, const struct lower_op *op)
{
	int64_t from = cell_of(b, op->src_buf, op->src);

	for (int32_t k = 0; k < op->cnt; k++) {
		if (b->due[from + k] == b->drains) {
			return true;
		}
	}
	return false;
}

/* All ops of the rank; without `write`, numbers its signals only. */
static void go_through(struct mscclpp_build *b, bool write)
{
	const struct lower_rank *o = ops_of(b);

	for (int32_t i = 0; i < (int32_t)o->ops.n; i++) {
		const struct lower_op *op = &o->ops.v[i];

		if (op->recv != NONE || op->type == LOWER_ADD || op->type == LOWER_SAVE) {
			put_off(b, i);
		} else if (op->send != NONE) {
			if (is_due(b, op)) {
				end_batch(b, write);
				drain(b, write);
			}
			vec_push(&b->batch, i);
		}
	}
	end_batch(b, write);
	drain(b, write);
}

/* ---- threadblocks ---- */

static int32_t use(int32_t *v, int *n, int32_t id)
{
	int i = 0;

	while (i < *n && v[i] != id) {
		i++;
	}
	if (i == *n) {
		v[(*n)++] = id;
	}
	return i;
}

/* Room for the op, the hand-over after it, and what it uses. */
static bool fits(const struct mscclpp_tb *tb, const struct mscclpp_flat_op *f)
{
	struct mscclpp_tb try = *tb;

	for (int i = 0; i < f->op.n_ids; i++) {
		if (try.n_chans == MSCCLPP_MAX_CHANNELS || try.n_remotes == MSCCLPP_MAX_CHANNELS) {
			return false;
		}
		use(try.chans, &try.n_chans, f->op.ids[i]);
		if (f->op.dst[i].remote) {
			use(try.remotes, &try.n_remotes, f->remotes[i]);
		}
	}
	return tb->ops.n + 3 <= MSCCLPP_MAX_OPS;
}

static void add_op(struct mscclpp_tb *tb, const struct mscclpp_flat_op *f)
{
	struct mscclpp_op op = f->op;

	for (int i = 0; i < op.n_ids; i++) {
		op.ids[i] = (int16_t)use(tb->chans, &tb->n_chans, op.ids[i]);
		if (op.dst[i].remote) {
			op.dst[i].buf = (uint8_t)use(tb->remotes, &tb->n_remotes, f->remotes[i]);
		}
	}
	vec_push(&tb->ops, op);
}

/* Ends a threadblock and begins the next, which waits for it. */
static void hand_over(struct mscclpp_gpu *g)
{
	struct mscclpp_op nop = { .name = MSCCLPP_NOP };
	struct mscclpp_op sem = { .name = MSCCLPP_RELEASE, .n_ids = 1,
				  .ids = { (int16_t)g->sems.n } };
	struct mscclpp_tb *tb;

	if (g->tbs.n > 0) {
		tb = &g->tbs.v[g->tbs.n - 1];
		vec_push(&tb->ops, nop);
		vec_push(&tb->ops, sem);
		vec_push(&g->sems, 0);
	}
	vec_push(&g->tbs, (struct mscclpp_tb){ .n_chans = 0 });
	tb = &g->tbs.v[g->tbs.n - 1];
	sem.name = MSCCLPP_ACQUIRE;
	if (g->tbs.n > 1) {
		vec_push(&tb->ops, sem);
		vec_push(&tb->ops, nop);
	}
}

static void cut(struct mscclpp_build *b)
{
	struct mscclpp_gpu *g = &b->p->gpus[b->rank];

	hand_over(g);
	for (size_t i = 0; i < b->out.n; i++) {
		if (!fits(&g->tbs.v[g->tbs.n - 1], &b->out.v[i])) {
			hand_over(g);
		}
		add_op(&g->tbs.v[g->tbs.n - 1], &b->out.v[i]);
	}
}

static void build_rank(struct mscclpp_build *b, bool write)
{
	const int32_t *n = b->p->gpus[b->rank].chunks;
	size_t cells = (size_t)n[0] + (size_t)n[1] + (size_t)n[2] + 1;

	b->due = x_alloc(cells, sizeof(*b->due));
	b->touched = x_alloc(cells, sizeof(*b->touched));
	b->leaving = x_alloc(cells, sizeof(*b->leaving));
	b->segment = b->flushes = b->drains = b->round = 0;
	b->copied = b->unmet = false;
	b->batch.n = b->put_off.n = b->out.n = 0;
	memset(b->due, -1, cells * sizeof(*b->due));
	memset(b->touched, -1, cells * sizeof(*b->touched));
	memset(b->leaving, -1, cells * sizeof(*b->leaving));
	open_channels(b);
	if (write) {
		emit_start(b);
	}
	go_through(b, write);
	if (write) {
		emit_flush(b);
		cut(b);
	}
	free(b->due);
	free(b->touched);
	free(b->leaving);
}

/* ---- the whole ---- */

static void reserve(struct mscclpp_build *b)
{
	int n = b->p->ranks;
	int32_t **by_rank[] = { &b->peer_chan, &b->peer_sent, &b->peer_last,
				&b->peer_waited, &b->peer_round, &b->remote[0],
				&b->remote[1], &b->remote[2] };

	for (size_t i = 0; i < sizeof(by_rank) / sizeof(by_rank[0]); i++) {
		arrays_add(&b->arrays, *by_rank[i], n);
	}
	arrays_add(&b->arrays, b->extra, n);
	for (int r = 0; r < n; r++) {
		arrays_add(&b->arrays, b->extra[r], b->low->rank[r].ops.n);
	}
}

static void release(struct mscclpp_build *b)
{
	arrays_fini(&b->arrays);
	u64map_fini(&b->sends);
	vec_fini(&b->batch);
	vec_fini(&b->put_off);
	vec_fini(&b->out);
}

static void build_all(struct mscclpp_build *b)
{
	reserve(b);
	for (int r = 0; r < b->p->ranks; r++) {
		pack_scratch(b, r);
	}
	note_sends(b);
	for (int r = 0; r < b->p->ranks; r++) {
		pair_ops(b, r);
	}
	/* Signals are numbered first: who waits must know them all. */
	for (int pass = 0; pass < 2; pass++) {
		for (int r = 0; r < b->p->ranks; r++) {
			b->rank = r;
			b->shard = r * (b->p->loop / b->p->ranks);
			b->p->gpus[r].chans.n = 0;
			build_rank(b, pass == 1);
		}
	}
}

/* The largest message of which no buffer exceeds what offsets can reach. */
static uint64_t max_bytes(const struct mscclpp *p)
{
	int32_t most = 1;

	for (int r = 0; r < p->ranks; r++) {
		for (int i = 0; i < 3; i++) {
			int32_t n = p->gpus[r].chunks[i];

			most = n > most ? n : most;
		}
	}
	return (MSCCLPP_MAX_BYTES - 1) / (uint64_t)most * (uint64_t)p->loop;
}

static void start_plan(const struct lower *from, bool inplace, struct mscclpp *out)
{
	*out = (struct mscclpp){ .kind = from->kind, .ranks = from->ranks,
				 .root = from->root, .loop = from->loop,
				 .inplace = inplace };
	out->gpus = x_new((size_t)from->ranks, sizeof(*out->gpus));
	for (int r = 0; r < from->ranks; r++) {
		memcpy(out->gpus[r].chunks, from->rank[r].chunks, sizeof(out->gpus[r].chunks));
	}
	snprintf(out->name, sizeof(out->name), "weft-%s", lower_kind_name(from->kind));
}

static int build_plan(struct mscclpp_build *b, bool inplace, struct err *err)
{
	start_plan(b->low, inplace, b->p);
	build_all(b);
	b->p->max_bytes = max_bytes(b->p);
	release(b);
	return mscclpp_check(b->p, err);
}

int mscclpp_lower(const struct coll_sched *s, bool inplace, struct mscclpp *out, struct err *err)
{
	static const struct lower_bounds bounds = { MSCCLPP_MAX_RANKS,
						    1 << 24, 0 };
	struct lower low;
	struct mscclpp_build b = { .p = out, .low = &low };
	int rc;

	*out = (struct mscclpp){ 0 };
	if (inplace && coll_kind_of(s) == COLL_ALLTOALL) {
		return err_set(err, WEFT_EUNSUPPORTED, "all-to-all in place: not supported");
	}
	rc = lower_schedule(s, &bounds, &low, err);
	if (rc) {
		goto out;
	}
	rc = build_plan(&b, inplace, err);
	if (rc == WEFT_EVERIFY && coll_kind_of(s) == COLL_ALLREDUCE) {
		mscclpp_fini(out);
		err_clear(err);
		b = (struct mscclpp_build){ .p = out, .low = &low, .stages_copies = true };
		rc = build_plan(&b, inplace, err);
	}
out:
	lower_fini(&low);
	if (rc) {
		mscclpp_fini(out);
	}
	return rc;
}
