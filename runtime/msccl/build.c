/*
 * Threadblocks for the ops of a schedule: pairing of peers, fusing, channels,
 * dependencies; see msccl.h. Each rank is built by itself. A receive followed by
 * a send of the same data becomes one fused step; a rank's connections are put
 * in threadblocks, one sender and one receiver each; an op that reads what
 * another threadblock wrote then waits for that one's step. When a threadblock
 * has more steps than the runtime allows, time is cut into blocks, each with
 * channels of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/msccl/msccl.h"

#define NONE (-1)

/* A step before it has a threadblock. */
struct msccl_op {
	uint8_t type, src_buf, dst_buf;
	bool fused;		/* into the receive before it */
	int32_t send, recv;	/* peers, or NONE */
	int32_t src, dst, cnt;
	int32_t phase;
	int32_t writer;		/* the op that wrote all it reads, or NONE */
	int32_t readers;	/* ops that read what it wrote */
	int32_t lost;		/* chunks it wrote that are written again */
	int32_t tb, step;	/* where it went */
};

/* A read of a cell since it was last written; those of a cell are a list. */
struct msccl_read {
	int32_t op, before;	/* before: in `reads`, or NONE */
};

/* One rank being built. */
struct msccl_build {
	struct msccl *p;
	const struct msccl_limits *lim;
	int rank, phases, blocks;	/* blocks: parts that time is cut in */
	int groups;		/* of peers; a block has a channel for each */
	int32_t *group;		/* by (receiver - sender) modulo ranks */
	/* Every send peer shares a threadblock with some receive peer, also
	 * where no data passes on: tried when threadblocks are too many. */
	bool pair_all;
	struct msccl_op *ops;
	int n_ops;
	int64_t cells;
	int32_t *writer;	/* by cell: op that wrote it last */
	int32_t *reader;	/* by cell: newest read since, in `reads` */
	VEC(struct msccl_read) reads;
	int32_t *mate;		/* by rank: send peer beside a receive peer */
	int32_t *mated;		/* by rank: receive peer beside a send peer */
	int32_t *wait;		/* by threadblock: op to wait for, or NONE */
	int32_t *clock;		/* of an op, by threadblock: the last op known
				 * to be over */
	int32_t *last;		/* by threadblock: its last op so far */
};

static int64_t cell_of(const struct msccl_build *b, int buf, int32_t off)
{
	return msccl_cell(b->p, b->rank, buf, off, b->p->inplace);
}

/* ---- who wrote what an op reads ---- */

/* Op i reads: its writer is the one op that wrote all of it, or NONE. */
static void note_read(struct msccl_build *b, int i)
{
	struct msccl_op *op = &b->ops[i];
	int64_t from = cell_of(b, op->src_buf, op->src);
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
	int64_t to = cell_of(b, op->dst_buf, op->dst);

	for (int32_t k = 0; k < op->cnt; k++) {
		if (b->writer[to + k] != NONE) {
			b->ops[b->writer[to + k]].lost++;
		}
		b->writer[to + k] = i;
	}
}

static void forget_cells(struct msccl_build *b)
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
	forget_cells(b);
	for (int i = 0; i < b->n_ops; i++) {
		struct msccl_op *op = &b->ops[i];

		op->writer = NONE;
		op->readers = op->lost = 0;
		/* What a rank copies for itself, others do not touch. */
		if (op->type == MSCCL_COPY) {
			continue;
		}
		if (msccl_reads(op->type)) {
			note_read(b, i);
		}
		if (msccl_writes(op->type)) {
			note_write(b, i);
		}
	}
}

/* ---- groups of peers ---- */

static int group_of(const struct msccl_build *b, int from, int to)
{
	int n = b->p->ranks;

	return b->group[(to - from + n) % n];
}

/* The most peers that a rank sends to, or receives from; marks in `group`
 * how far these are. -1: no memory. */
static int mark_peers(struct msccl_build *b, const struct lower *l)
{
	int n = b->p->ranks, most = 0;
	int32_t *seen = malloc((size_t)n * 2 * sizeof(*seen));

	for (int i = 0; i < 2 * n && seen; i++) {
		seen[i] = NONE;
	}
	for (int r = 0; r < n && seen; r++) {
		int count[2] = { 0, 0 };

		for (size_t i = 0; i < l->rank[r].ops.n; i++) {
			const struct lower_op *op = &l->rank[r].ops.v[i];
			bool in = op->recv != NONE;
			int peer = in ? op->recv : op->send;

			if (peer == NONE || seen[in * n + peer] == r) {
				continue;
			}
			seen[in * n + peer] = r;
			b->group[(in ? r - peer + n : peer - r + n) % n] = 1;
			most = ++count[in] > most ? count[in] : most;
		}
	}
	free(seen);
	return seen ? most : -1;
}

/* A channel takes MSCCL_MAX_PEERS peers of a rank in a direction. Ranks with
 * more have several, dealt by how far a peer is: of any distance a rank has
 * one peer in each direction, and both ends agree. */
static int group_peers(struct msccl_build *b, const struct lower *l)
{
	int n = b->p->ranks, most, known = 0;

	b->group = calloc((size_t)n, sizeof(*b->group));
	most = b->group ? mark_peers(b, l) : -1;
	if (most < 0) {
		return WEFT_ENOMEM;
	}
	for (int k = 0; k < n; k++) {
		bool used = b->group[k];

		b->group[k] = most > MSCCL_MAX_PEERS ? known / MSCCL_MAX_PEERS
						     : 0;
		known += used;
	}
	b->groups = most > MSCCL_MAX_PEERS
			    ? (known + MSCCL_MAX_PEERS - 1) / MSCCL_MAX_PEERS
			    : 1;
	return 0;
}

/* ---- pairing of peers ---- */

struct msccl_bond {
	int32_t recv, send, weight;
};

static int cmp_bond(const void *a, const void *b)
{
	const struct msccl_bond *p = a, *q = b;

	if (p->weight != q->weight) {
		return p->weight > q->weight ? -1 : 1;
	}
	if (p->recv != q->recv) {
		return p->recv < q->recv ? -1 : 1;
	}
	return p->send < q->send ? -1 : p->send > q->send;
}

static int cmp_peers(const void *a, const void *b)
{
	const struct msccl_bond *p = a, *q = b;

	if (p->recv != q->recv) {
		return p->recv < q->recv ? -1 : 1;
	}
	return p->send < q->send ? -1 : p->send > q->send;
}

static void take_bond(struct msccl_build *b, const struct msccl_bond *x)
{
	if (b->mate[x->recv] == NONE && b->mated[x->send] == NONE &&
	    group_of(b, x->recv, b->rank) == group_of(b, b->rank, x->send)) {
		b->mate[x->recv] = x->send;
		b->mated[x->send] = x->recv;
	}
}

/* Peers without a bond share threadblocks all the same when these are
 * scarce. */
static void pair_group(struct msccl_build *b, int group)
{
	int in = NONE, out = NONE;

	for (int i = 0, j = 0; i < b->n_ops; i++) {
		in = b->ops[i].recv;
		if (in == NONE || b->mate[in] != NONE || group_of(b, in, b->rank) != group) {
			continue;
		}
		for (; j < b->n_ops; j++) {
			out = b->ops[j].send;
			if (out != NONE && b->mated[out] == NONE &&
			    group_of(b, b->rank, out) == group) {
				break;
			}
		}
		if (j == b->n_ops) {
			return;
		}
		take_bond(b, &(struct msccl_bond){ in, out, 0 });
	}
}

/* A receive peer and a send peer share a threadblock where most of what
 * comes from the one goes on to the other; greedily, most first. */
static int pair_peers(struct msccl_build *b)
{
	VEC(struct msccl_bond) bonds = { 0 };
	size_t n = 0;
	int rc = 0;

	for (int r = 0; r < b->p->ranks; r++) {
		b->mate[r] = b->mated[r] = NONE;
	}
	for (int i = 0; i < b->n_ops && !rc; i++) {
		const struct msccl_op *op = &b->ops[i];

		if (op->type == MSCCL_SEND && op->writer != NONE &&
		    b->ops[op->writer].recv != NONE) {
			rc = vec_push(&bonds, (struct msccl_bond){
				b->ops[op->writer].recv, op->send, 1 });
		}
	}
	if (bonds.n > 0) {
		qsort(bonds.v, bonds.n, sizeof(*bonds.v), cmp_peers);
	}
	for (size_t i = 0; i < bonds.n; i++) {
		if (n > 0 && cmp_peers(&bonds.v[n - 1], &bonds.v[i]) == 0) {
			bonds.v[n - 1].weight++;
		} else {
			bonds.v[n++] = bonds.v[i];
		}
	}
	if (n > 0) {
		qsort(bonds.v, n, sizeof(*bonds.v), cmp_bond);
	}
	for (size_t i = 0; i < n; i++) {
		take_bond(b, &bonds.v[i]);
	}
	vec_fini(&bonds);
	if (b->pair_all) {
		for (int g = 0; g < b->groups; g++) {
			pair_group(b, g);
		}
	}
	return rc;
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
	if (vec_push(&g->tbs, (struct msccl_tb){ .send = send, .recv = recv,
						 .chan = chan })) {
		return WEFT_ENOMEM;
	}
	return (int)g->tbs.n - 1;
}

/* What a rank copies for itself has threadblocks of its own. */
static int local_tb(struct msccl_build *b, int copies)
{
	struct msccl_gpu *g = &b->p->gpus[b->rank];

	if (copies % b->lim->steps != 0) {
		return (int)g->tbs.n - 1;
	}
	return vec_push(&g->tbs, (struct msccl_tb){ .send = NONE,
						    .recv = NONE })
		       ? WEFT_ENOMEM : (int)g->tbs.n - 1;
}

static int place_ops(struct msccl_build *b)
{
	int copies = 0;

	for (int i = 0; i < b->n_ops; i++) {
		struct msccl_op *op = &b->ops[i];
		int recv = op->recv, send = op->send;
		int chan = (int)((int64_t)op->phase * b->blocks / b->phases) *
			   b->groups;

		if (op->type == MSCCL_COPY) {
			op->tb = local_tb(b, copies++);
		} else {
			chan += recv != NONE ? group_of(b, recv, b->rank)
					     : group_of(b, b->rank, send);
			send = recv != NONE ? b->mate[recv] : send;
			recv = recv == NONE ? b->mated[send] : recv;
			op->tb = find_tb(&b->p->gpus[b->rank], recv, send, chan);
		}
		if (op->tb < 0) {
			return WEFT_ENOMEM;
		}
	}
	return 0;
}

/* A receive `a` and the send `c` next in its threadblock become one step
 * when the send passes on just what was received. Sums that nothing else
 * reads and that are written over, or lie in scratch, need not be stored. */
static void fuse(struct msccl_build *b, int a, int c)
{
	struct msccl_op *r = &b->ops[a], *s = &b->ops[c];
	bool kept = r->dst_buf != LOWER_SCRATCH && r->lost < r->cnt;

	if (s->type != MSCCL_SEND || s->writer != a || s->cnt != r->cnt ||
	    cell_of(b, s->src_buf, s->src) !=
		    cell_of(b, r->dst_buf, r->dst)) {
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

static int fuse_all(struct msccl_build *b)
{
	size_t tbs = b->p->gpus[b->rank].tbs.n;
	int32_t *last = malloc((tbs + 1) * sizeof(*last));

	if (!last) {
		return WEFT_ENOMEM;
	}
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
	return 0;
}

/* ---- dependencies ---- */

static int32_t *clock_of(const struct msccl_build *b, int op)
{
	return b->clock + (size_t)op * b->p->gpus[b->rank].tbs.n;
}

/* Op numbers rise along a threadblock, so the larger one is the later. */
static void need(struct msccl_build *b, const struct msccl_op *op, int other)
{
	int tb = b->ops[other].tb;

	if (tb != op->tb && b->wait[tb] < other) {
		b->wait[tb] = other;
	}
}

static int read_cells(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int64_t from = cell_of(b, op->src_buf, op->src);
	int rc = 0;

	for (int64_t c = from; c < from + op->cnt && !rc; c++) {
		if (b->writer[c] != NONE) {
			need(b, op, b->writer[c]);
		}
		rc = vec_push(&b->reads, (struct msccl_read){ i, b->reader[c] });
		b->reader[c] = (int32_t)b->reads.n - 1;
	}
	return rc;
}

static void write_cells(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int64_t to = cell_of(b, op->dst_buf, op->dst);

	for (int64_t c = to; c < to + op->cnt; c++) {
		if (b->writer[c] != NONE) {
			need(b, op, b->writer[c]);
		}
		for (int32_t x = b->reader[c]; x != NONE; x = b->reads.v[x].before) {
			need(b, op, b->reads.v[x].op);
		}
		b->reader[c] = NONE;
		b->writer[c] = i;
	}
}

/* The op's clock: what its threadblock knew, and itself. */
static int32_t *start_clock(struct msccl_build *b, int i)
{
	size_t n = b->p->gpus[b->rank].tbs.n;
	int tb = b->ops[i].tb;
	int32_t *mine = clock_of(b, i);

	for (size_t t = 0; t < n; t++) {
		mine[t] = b->last[tb] == NONE ? NONE
					      : clock_of(b, b->last[tb])[t];
		b->wait[t] = NONE;
	}
	mine[tb] = i;
	b->last[tb] = i;
	return mine;
}

/* Leaves only waits that neither the threadblock's own past nor another
 * wait implies, and adds to the clock what they know. */
static void prune(struct msccl_build *b, int32_t *mine)
{
	size_t n = b->p->gpus[b->rank].tbs.n;

	for (size_t t = 0; t < n; t++) {
		if (b->wait[t] <= mine[t]) {
			b->wait[t] = NONE;
		}
	}
	for (size_t t = 0; t < n; t++) {
		const int32_t *other;

		if (b->wait[t] == NONE) {
			continue;
		}
		other = clock_of(b, b->wait[t]);
		for (size_t u = 0; u < n; u++) {
			if (u != t && b->wait[u] <= other[u]) {
				b->wait[u] = NONE;
			}
			if (mine[u] < other[u]) {
				mine[u] = other[u];
			}
		}
	}
}

/* The step of an op, after nops for all its waits but the last. */
static int emit_steps(struct msccl_build *b, int i)
{
	struct msccl_gpu *g = &b->p->gpus[b->rank];
	struct msccl_op *op = &b->ops[i];
	struct msccl_tb *tb = &g->tbs.v[op->tb];
	struct msccl_step nop = {
		.type = MSCCL_NOP, .src_buf = LOWER_IN, .dst_buf = LOWER_OUT,
		.src = NONE, .dst = NONE, .dep_tb = NONE, .dep_step = NONE,
	};
	struct msccl_step step = nop;
	int rc = 0;

	for (size_t t = 0; t < g->tbs.n && !rc; t++) {
		if (b->wait[t] == NONE) {
			continue;
		}
		if (step.dep_tb != NONE) {
			nop.dep_tb = step.dep_tb;
			nop.dep_step = step.dep_step;
			rc = vec_push(&tb->steps, nop);
		}
		step.dep_tb = (int32_t)t;
		step.dep_step = b->ops[b->wait[t]].step;
		g->tbs.v[t].steps.v[step.dep_step].has_dep = true;
	}
	step.type = op->type;
	step.src_buf = op->src_buf;
	step.src = op->src;
	step.dst_buf = op->dst_buf;
	step.dst = op->dst;
	step.cnt = op->cnt;
	op->step = (int32_t)tb->steps.n;
	if (rc) {
		return rc;
	}
	return vec_push(&tb->steps, step);
}

static int order_op(struct msccl_build *b, int i)
{
	const struct msccl_op *op = &b->ops[i];
	int32_t *mine = start_clock(b, i);
	int rc = 0;

	if (op->type != MSCCL_COPY) {
		if (msccl_reads(op->type)) {
			rc = read_cells(b, i);
		}
		if (msccl_writes(op->type)) {
			write_cells(b, i);
		}
		prune(b, mine);
	}
	if (rc) {
		return rc;
	}
	return emit_steps(b, i);
}

static int order_ops(struct msccl_build *b)
{
	size_t n = b->p->gpus[b->rank].tbs.n;
	struct arrays arrays = { 0 };
	int rc = 0;

	arrays_add(&arrays, b->wait, n);
	arrays_add(&arrays, b->last, n);
	arrays_add(&arrays, b->clock, n * (size_t)b->n_ops);
	if (arrays.failed) {
		rc = WEFT_ENOMEM;
		goto out;
	}
	for (size_t t = 0; t < n; t++) {
		b->last[t] = NONE;
	}
	forget_cells(b);
	for (int i = 0; i < b->n_ops && !rc; i++) {
		rc = b->ops[i].fused ? 0 : order_op(b, i);
	}
out:
	arrays_fini(&arrays);
	return rc;
}

/* ---- numbers of threadblocks ---- */

/* Only low numbers can be waited for, so these threadblocks come first. */
static int renumber_tbs(struct msccl_gpu *g)
{
	size_t n = g->tbs.n, next = 0;
	int32_t *to = malloc((n + 1) * sizeof(*to));
	struct msccl_tb *old = malloc((n + 1) * sizeof(*old));
	bool *waited = calloc(n + 1, sizeof(*waited));

	for (size_t t = 0; t < n && waited; t++) {
		for (size_t k = 0; k < g->tbs.v[t].steps.n; k++) {
			waited[t] |= g->tbs.v[t].steps.v[k].has_dep;
		}
	}
	for (int pass = 1; pass >= 0 && to && old && waited; pass--) {
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
	return next == n ? 0 : WEFT_ENOMEM;
}

/* Scratch without the chunks that fusing left unused. Runs that are used
 * stay runs. */
static int pack_scratch(struct msccl_gpu *g, int64_t n)
{
	int32_t *to = calloc((size_t)n + 1, sizeof(*to)), next = 0;

	for (int pass = 0; pass < 2 && to; pass++) {
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
	return to ? 0 : WEFT_ENOMEM;
}

/* ---- a rank, and all of them ---- */

/* The ops of a rank, as steps of MSCCL. */
static void load_ops(struct msccl_build *b, const struct lower_rank *from)
{
	static const uint8_t types[] = {
		[LOWER_SEND] = MSCCL_SEND, [LOWER_RECV] = MSCCL_RECV,
		[LOWER_SUM] = MSCCL_RRC, [LOWER_COPY] = MSCCL_COPY,
	};

	for (size_t i = 0; i < from->ops.n; i++) {
		const struct lower_op *op = &from->ops.v[i];

		b->ops[i] = (struct msccl_op){
			.type = types[op->type], .src_buf = op->src_buf,
			.dst_buf = op->dst_buf, .send = op->send,
			.recv = op->recv, .src = op->src, .dst = op->dst,
			.cnt = op->cnt, .phase = op->phase };
	}
}

static int build_ops(struct msccl_build *b, const struct lower_rank *from)
{
	struct msccl_gpu *g = &b->p->gpus[b->rank];
	int64_t scratch = from->chunks[LOWER_SCRATCH];
	int rc;

	load_ops(b, from);
	trace_values(b);
	if ((rc = pair_peers(b)) || (rc = place_ops(b)) || (rc = fuse_all(b)) ||
	    (rc = order_ops(b)) || (rc = renumber_tbs(g))) {
		return rc;
	}
	return pack_scratch(g, scratch);
}

static int build_rank(struct msccl_build *b, const struct lower_rank *from)
{
	int ranks = b->p->ranks, rc = WEFT_ENOMEM;
	struct arrays arrays = { 0 };

	memcpy(b->p->gpus[b->rank].chunks, from->chunks, sizeof(from->chunks));
	b->n_ops = (int)from->ops.n;
	b->cells = msccl_cells(b->p, b->rank);
	arrays_add(&arrays, b->ops, b->n_ops);
	arrays_add(&arrays, b->writer, b->cells);
	arrays_add(&arrays, b->reader, b->cells);
	arrays_add(&arrays, b->mate, ranks);
	arrays_add(&arrays, b->mated, ranks);
	if (!arrays.failed) {
		rc = build_ops(b, from);
	}
	arrays_fini(&arrays);
	vec_fini(&b->reads);
	return rc;
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

/* The most of all ranks. */
struct msccl_extent {
	int steps;	/* of a threadblock */
	int tbs;	/* of a rank */
	int waited;	/* threadblocks of a rank that others wait for */
};

static struct msccl_extent measure(const struct msccl *p)
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

static int build_ranks(struct msccl_build *b, const struct lower *l, struct err *err)
{
	clear_tbs(b->p);
	for (b->rank = 0; b->rank < b->p->ranks; b->rank++) {
		if (build_rank(b, &l->rank[b->rank])) {
			return err_nomem(err);
		}
	}
	return 0;
}

/* Cuts time into as many blocks as the limit of steps needs. */
static int build_all(struct msccl_build *b, const struct lower *l, struct err *err)
{
	int next, max_blocks = b->lim->channels / b->groups, rc;
	struct msccl_extent e;

	if (max_blocks == 0) {
		return too_many_peers(b, err);
	}
	for (b->blocks = 1;; b->blocks = next) {
		rc = build_ranks(b, l, err);
		if (rc) {
			return rc;
		}
		e = measure(b->p);
		if ((e.tbs > b->lim->tbs || e.waited > MSCCL_MAX_DEP_TB + 1) && !b->pair_all) {
			b->pair_all = true;
			next = b->blocks;
			continue;
		}
		if (e.steps <= b->lim->steps) {
			b->p->channels = b->blocks * b->groups;
			if (e.waited > MSCCL_MAX_DEP_TB + 1) {
				return too_many_waits(e.waited, err);
			}
			return 0;
		}
		if (b->blocks == max_blocks || b->blocks >= b->phases) {
			return too_long(b, e.steps, err);
		}
		next = (int)((int64_t)b->blocks * e.steps / b->lim->steps);
		next = next > b->blocks ? next : b->blocks + 1;
		next = next < max_blocks ? next : max_blocks;
	}
}

static int start_program(const struct lower *l, struct msccl *out, struct err *err)
{
	*out = (struct msccl){
		.kind = l->kind, .ranks = l->ranks, .root = l->root,
		.loop = l->loop, .outofplace = true,
		.inplace = l->kind != COLL_ALLTOALL };
	snprintf(out->name, sizeof(out->name), "weft-%s", coll_kind_name(out->kind));
	out->gpus = calloc((size_t)l->ranks, sizeof(*out->gpus));
	return out->gpus ? 0 : err_nomem(err);
}

int msccl_lower(const struct coll_sched *s, enum msccl_dialect dialect,
		struct msccl *out, struct err *err)
{
	static const struct lower_bounds bounds = {
		MSCCL_MAX_RANKS, MSCCL_MAX_COUNT, MSCCL_MAX_ELEMENTS };
	struct msccl_build b = { .p = out, .lim = msccl_limits(dialect) };
	struct lower l;
	int rc = lower_schedule(s, &bounds, &l, err);

	*out = (struct msccl){ .ranks = 0 };
	if (rc || (rc = start_program(&l, out, err))) {
		goto out;
	}
	b.phases = l.phases + (l.phases == 0);
	if (group_peers(&b, &l)) {
		rc = err_nomem(err);
		goto out;
	}
	rc = build_all(&b, &l, err);
	if (!rc) {
		rc = msccl_check(out, dialect, err);
	}
out:
	free(b.group);
	lower_fini(&l);
	if (rc) {
		msccl_fini(out);
	}
	return rc;
}
