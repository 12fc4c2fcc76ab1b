/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a file as the kernels of Azure/msccl-executor-nccl (msccl_kernel.cu,
 * prims_*.h, msccl_setup.cc) and of ROCm/rccl do, for a call of so many bytes:
 * a step of cnt chunks is ceil(cnt / maxAllowedCount) operations, each takes a
 * place in the connection, chunks above the size of an operation are gone
 * through in several iterations, and waiting threadblocks compare flags
 * (iteration, step). It shares no code with the room.
 *
 * Threadblocks only wait for what comes to stay (data, room, flags), so
 * whether a call ends does not depend on the order of execution, and one order
 * stands for all. What happens before what does not depend on it either:
 * operations of a threadblock in order; what is before a flag's store, before
 * what waited for it; what is before an operation's start at the sender,
 * before what its receiver does with it. An operation passes data on while it
 * still reads (LL and LL128 by lines, Simple by two slices), so of what the
 * sender does within it only the same line, or the slices so far, are before
 * the receiver's. Vector clocks hold this exactly; two accesses to a chunk, one
 * of them a write, that are not ordered are a race. Returned room in a
 * connection orders nothing: how much there is may be set. A send of LL on RCCL
 * ends without a barrier, so its flag tells nothing of what it reads, and a
 * receive or copy right behind it only follows thread by thread.
 *
 * All offsets are whole chunks, so a byte only meets bytes at the same place
 * of other chunks. Places that the slices' borders do not divide behave alike:
 * a call runs for one place of each kind, in place and out of place, at once.
 */
#ifndef WEFT_TESTS_UNIT_MSCCL_KERNEL_SIM_H
#define WEFT_TESTS_UNIT_MSCCL_KERNEL_SIM_H

#include <stdarg.h>

#include "lib/base/number/rng.h"
#include "tests/unit/msccl/kernel_file.h"

#define KERN_ELEMENT 4		/* bytes of one: float */
#define KERN_PLACES 6		/* within a chunk, at most */
#define KERN_LANES (2 * KERN_PLACES)
#define KERN_RING 10		/* operations in a connection, and two more */
#define KERN_OPS 7680		/* of a threadblock, as clocks count them in 16 bits twice */

/* What differs between protocols; sizes for Azure's executor and for RCCL. */
struct kern_proto {
	const char *name;
	int slices;		/* of an operation */
	int in_flight;		/* operations in a connection */
	int64_t bytes[2];	/* of an operation */
};

static const struct kern_proto kern_protos[] = {
	{ "Simple", 2, 2, { 2 << 20, 2 << 20 } },
	{ "LL", 1, 8, { 32768, 16384 } },
	{ "LL128", 1, 8, { 576000, 50176 } },
};

/* A call: bytes of the whole vector. */
struct kern_call {
	int64_t bytes;
	bool rccl;
	const char *proto;	/* NULL: the file's */
};

/* Something that was read or written: operation `op` of all, its chunk k. */
struct kern_access {
	int32_t op;
	uint8_t k, slice;
};

struct kern_read_by {
	struct kern_access a;
	int next;		/* of run's reads, or -1 */
};

/* A chunk in a lane. */
struct kern_cell {
	uint64_t value;
	struct kern_access wrote;	/* op -1: none */
	int reads;			/* since then, or -1 */
};

/* An operation on its way. */
struct kern_sent {
	int32_t op;
	int n;			/* chunks */
	int16_t *clock;		/* at its start */
	uint64_t *value;	/* lane * the run's `widest` + chunk */
};

/* Where a threadblock is. */
struct kern_state {
	int iter, i, c, slice;	/* iteration, transmission, chunk, slice */
	bool entered;		/* its dependencies are met */
	bool barrier;		/* ... and there were some */
	int op;			/* operations of the iteration before it */
	int open;		/* the send before it that may still read, or -1 */
	int64_t flag;		/* 0: none yet */
	int64_t sent, taken;	/* slices that it sent; of those, how many were taken */
	int16_t *clock;
	struct kern_sent *ring;	/* what it sends */
	bool queued;
	int waits_for;		/* a threadblock */
	char waits_how;		/* 'f'lag, 'd'ata, 'r'oom */
};

struct kern_lane {
	bool inplace;
	int64_t place;		/* element of a chunk */
	struct kern_cell *cells;
	int *first;		/* rank * 3 + buffer -> its first cell */
};

struct kern_run {
	const struct kern_file *file;
	const struct kern_proto *proto;
	bool open_sends;	/* they end without a barrier */
	int64_t chunk, window;	/* elements of a chunk; and of one iteration */
	int iters, max_count, widest, root;	/* widest: chunks of an operation, at most */
	struct kern_state *tb;
	int *first_op;		/* of each threadblock */
	int32_t *parent;	/* of operations: whose data they pass on, or -1 */
	int *op_tb;
	int16_t **flag_clock;	/* of transmissions, counted over all threadblocks */
	int *first_trans;
	int n_lanes;
	struct kern_lane lane[KERN_LANES];
	VEC(struct kern_read_by) reads;
	VEC(int) queue;
	struct arrays arrays;
	char *why;		/* 512 bytes */
};

static inline bool kern_fail(struct kern_run *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool kern_fail(struct kern_run *r, const char *fmt, ...)
{
	va_list ap;

	if (r->why[0] == '\0') {
		va_start(ap, fmt);
		vsnprintf(r->why, 512, fmt, ap);
		va_end(ap);
	}
	return false;
}

/* ---- sizes ---- */

static inline const struct kern_proto *kern_proto_of(const char *name)
{
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(name, kern_protos[i].name) == 0) {
			return &kern_protos[i];
		}
	}
	return NULL;
}

/* mscclSetupCount. A broadcast counts one of four steps there. */
static inline int kern_max_count(const struct kern_file *f, const struct kern_call *c)
{
	const struct kern_proto *p = kern_proto_of(c->proto ? c->proto : f->proto);
	int64_t size = p->bytes[c->rccl] / (kern_is(f, "broadcast") && p->slices == 2 ? 4 : 1);
	int64_t n = size / ((c->bytes + f->loop - 1) / f->loop);

	return n < 1 ? 1 : n >= KERN_MAX_COUNT ? KERN_MAX_COUNT - 1 : (int)n;
}

/* Elements of n that the first slice has (genericOp of prims_simple.h). */
static inline int64_t kern_first_slice(const struct kern_run *r, int64_t n)
{
	int64_t least = (r->proto->bytes[0] / 2 / 32) / KERN_ELEMENT, half = (n + 31) / 32 * 16;

	if (r->proto->slices == 1) {
		return n;
	}
	half = half > least ? half : least;
	return half < n ? half : n;
}

/* The slice in which a place of the k-th of n chunks travels. */
static inline int kern_slice_of(const struct kern_run *r, int n, int k, int64_t place)
{
	return k * r->window + place >= kern_first_slice(r, n * r->window);
}

/* One place of each kind: for every length of an operation, the slices' border
 * lies in some chunk. */
static inline int kern_places(const struct kern_run *r, int64_t *place)
{
	int n = 0;

	place[n++] = 0;
	for (int k = 1; k <= r->widest && r->window > 0; k++) {
		int64_t at = kern_first_slice(r, k * r->window) % r->window;
		bool seen = false;

		for (int i = 0; i < n; i++) {
			seen |= place[i] == at;
		}
		if (!seen && n < KERN_PLACES) {
			place[n++] = at;
		}
	}
	return n;
}

/* ---- memory ---- */

static inline bool kern_scatters(const struct kern_file *f)
{
	return kern_is(f, "reducescatter") || kern_is(f, "reduce_scatter");
}

/* The chunk k of what a rank brings along. */
static inline uint64_t kern_token(int rank, int k)
{
	return rng_mix((uint64_t)rank * 1000003 + (uint64_t)k * 17 + 1);
}

/* In place: the smaller of input and output is a part of the other. */
static inline void kern_lay_out(const struct kern_run *r, struct kern_lane *l, int rank, int *next)
{
	const struct kern_file *f = r->file;
	const int *chunks = f->rank[rank].chunks;
	int shard = f->loop / f->ranks, *first = &l->first[3 * rank];
	bool scatters = kern_scatters(f);

	for (int b = 0; b < 3; b++) {
		first[b] = *next;
		*next += l->inplace && b == (scatters ? KERN_OUT : KERN_IN) ? 0 : chunks[b];
	}
	if (l->inplace && scatters) {
		first[KERN_OUT] = first[KERN_IN] + rank * shard;
	} else if (l->inplace) {
		first[KERN_IN] = first[KERN_OUT] + (kern_is(f, "allgather") ? rank * shard : 0);
	}
}

static inline void kern_fill(struct kern_run *r, struct kern_lane *l, int cells)
{
	const struct kern_file *f = r->file;

	for (int i = 0; i < cells; i++) {
		l->cells[i] = (struct kern_cell){ rng_mix((uint64_t)i + 77), { -1, 0, 0 }, -1 };
	}
	for (int rank = 0; rank < f->ranks; rank++) {
		for (int k = 0; k < f->rank[rank].chunks[KERN_IN] &&
		     (!kern_is(f, "broadcast") || rank == r->root); k++) {
			l->cells[l->first[3 * rank] + k].value = kern_token(rank, k);
		}
	}
}

static inline void kern_lane_new(struct kern_run *r, bool inplace, int64_t place)
{
	struct kern_lane *l = &r->lane[r->n_lanes++];
	int cells = 0;

	*l = (struct kern_lane){ .inplace = inplace, .place = place };
	arrays_add(&r->arrays, l->first, 3 * r->file->ranks);
	for (int rank = 0; rank < r->file->ranks; rank++) {
		kern_lay_out(r, l, rank, &cells);
	}
	arrays_add(&r->arrays, l->cells, cells);
	kern_fill(r, l, cells);
}

static inline uint64_t kern_expected(const struct kern_run *r, int rank, int k)
{
	const struct kern_file *f = r->file;
	int shard = f->loop / f->ranks;
	uint64_t sum = 0;

	if (kern_is(f, "allgather")) {
		return kern_token(k / shard, k % shard);
	}
	if (kern_is(f, "alltoall")) {
		return kern_token(k / shard, rank * shard + k % shard);
	}
	if (kern_is(f, "broadcast")) {
		return kern_token(r->root, k);
	}
	k += kern_scatters(f) ? rank * shard : 0;
	for (int o = 0; o < f->ranks; o++) {
		sum += kern_token(o, k);
	}
	return sum;
}

/* Every output is right, and inputs are untouched when they are the caller's. */
static inline bool kern_right(struct kern_run *r, const struct kern_lane *l)
{
	const struct kern_file *f = r->file;

	for (int rank = 0; rank < f->ranks; rank++) {
		const struct kern_cell *in = &l->cells[l->first[3 * rank]];
		const struct kern_cell *out = &l->cells[l->first[3 * rank + 1]];

		for (int k = 0; k < f->rank[rank].chunks[KERN_OUT]; k++) {
			if (out[k].value != kern_expected(r, rank, k)) {
				return kern_fail(r, "rank %d: chunk %d of the output is wrong "
						 "(%s)", rank, k,
						 l->inplace ? "in place" : "out of place");
			}
		}
		for (int k = 0; k < f->rank[rank].chunks[KERN_IN] && !l->inplace; k++) {
			if (in[k].wrote.op >= 0) {
				return kern_fail(r, "rank %d: chunk %d of the input is written",
						 rank, k);
			}
		}
	}
	return true;
}

/* ---- order ---- */

/* What was done is done before what operation op does with chunk k in this
 * slice; clock: at op's start. */
static inline bool kern_before(const struct kern_run *r, struct kern_access a, int op, int k,
			       int slice, const int16_t *clock)
{
	int tb;

	if (a.op < 0) {
		return true;
	}
	tb = r->op_tb[a.op];
	if (r->tb[r->op_tb[op]].open == a.op) {
		return a.k == k;
	}
	if (clock[tb] >= 2 * (a.op - r->first_op[tb]) + 2) {
		return true;
	}
	for (int p = op; p >= 0; p = r->parent[p]) {
		if (p == a.op) {
			return a.k == k || (r->proto->slices > 1 &&
					    (p == op ? a.slice < slice : a.slice <= slice));
		}
	}
	return false;
}

static inline bool kern_race(struct kern_run *r, const struct kern_tb *t, struct kern_access a,
			     int op, const char *how)
{
	const struct kern_tb *u = &r->file->tbs.v[r->op_tb[a.op]];

	return kern_fail(r, "race on rank %d: threadblock %d, operation %d, %s what threadblock "
			 "%d, operation %d, touches", t->rank, t->id,
			 op - r->first_op[t - r->file->tbs.v], how, u->id,
			 a.op - r->first_op[r->op_tb[a.op]]);
}

/* Keeps one read a threadblock: what is after its last is after all. */
static inline void kern_note_read(struct kern_run *r, struct kern_cell *cell, struct kern_access a)
{
	for (int i = cell->reads; i >= 0; i = r->reads.v[i].next) {
		struct kern_access *b = &r->reads.v[i].a;

		if (r->op_tb[b->op] == r->op_tb[a.op] && (b->op != a.op || b->k == a.k)) {
			*b = a;
			return;
		}
	}
	vec_push(&r->reads, (struct kern_read_by){ a, cell->reads });
	cell->reads = (int)r->reads.n - 1;
}

/* Looks at a chunk; NULL after a race. */
static inline struct kern_cell *kern_touch(struct kern_run *r, const struct kern_lane *l, int tb,
					   int buf, int off, struct kern_access a, bool writes)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	struct kern_cell *cell = &l->cells[l->first[3 * t->rank + buf] + off];
	const int16_t *clock = r->tb[tb].clock;

	if (!kern_before(r, cell->wrote, a.op, a.k, a.slice, clock)) {
		kern_race(r, t, cell->wrote, a.op, writes ? "writes" : "reads");
		return NULL;
	}
	for (int i = cell->reads; i >= 0 && writes; i = r->reads.v[i].next) {
		if (!kern_before(r, r->reads.v[i].a, a.op, a.k, a.slice, clock)) {
			kern_race(r, t, r->reads.v[i].a, a.op, "writes");
			return NULL;
		}
	}
	if (writes) {
		cell->wrote = a;
		cell->reads = -1;
	} else {
		kern_note_read(r, cell, a);
	}
	return cell;
}

/* ---- what an operation does to memory ---- */

/* In place a rank's own shard is copied to where it is: who reads meanwhile
 * gets the same bytes from before and after, so it counts as a read. */
static inline bool kern_onto_itself(const struct kern_lane *l, int rank, const struct kern_trans *x)
{
	const int *first = &l->first[3 * rank];

	return !x->kind->takes && x->n_srcs == 0 && x->kind->reads &&
	       first[x->src_buf] + x->src == first[x->dst_buf] + x->dst;
}

/* Chunk k of n of a transmission, in one lane. */
static inline bool kern_chunk(struct kern_run *r, int tb, const struct kern_trans *x, int lane,
			      struct kern_access a, const struct kern_sent *got,
			      struct kern_sent *out)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	const struct kern_lane *l = &r->lane[lane];
	int at = r->tb[tb].c + a.k;
	uint64_t v = got ? got->value[lane * r->widest + a.k] : 0;
	struct kern_cell *cell;

	for (int i = 0; i < (x->n_srcs ? x->n_srcs : x->kind->reads); i++) {
		int src = x->n_srcs ? t->srcs.v[x->srcs + i] : x->src;

		cell = kern_touch(r, l, tb, x->src_buf, src + at, a, false);
		if (!cell) {
			return false;
		}
		v += cell->value;
	}
	if (x->kind->writes && !kern_onto_itself(l, t->rank, x)) {
		cell = kern_touch(r, l, tb, x->dst_buf, x->dst + at, a, true);
		if (!cell) {
			return false;
		}
		v += x->n_srcs ? cell->value : 0;
		cell->value = v;
	}
	if (out) {
		out->value[lane * r->widest + a.k] = v;
	}
	return true;
}

/* Most of the time goes here, so the sanitizers stay outside, and it takes eight at a time. */
__attribute__((no_sanitize("address", "undefined"), optimize("O3")))
static inline void kern_join(int16_t *a, const int16_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		a[i] = a[i] > b[i] ? a[i] : b[i];
	}
}

/* The start of an operation of n chunks. Who sends, or has waited, meets a barrier. */
static inline void kern_begin(struct kern_run *r, int tb, int op, int n,
			      const struct kern_sent *got, struct kern_sent *out)
{
	struct kern_state *s = &r->tb[tb];
	size_t tbs = r->file->tbs.n;

	r->parent[op] = got ? got->op : -1;
	s->open = out || s->barrier ? -1 : s->open;
	s->barrier = false;
	if (got) {
		kern_join(s->clock, got->clock, tbs);
	}
	s->clock[tb] = (int16_t)(2 * s->op + 1);
	if (out) {
		out->op = op;
		out->n = n;
		memcpy(out->clock, s->clock, tbs * sizeof(*s->clock));
	}
}

/* Its end: the whole of what it took was read and written along the way. */
static inline void kern_end(struct kern_run *r, int tb, int op)
{
	int16_t *clock = r->tb[tb].clock;

	for (int p = op; p >= 0; p = r->parent[p]) {
		int at = r->op_tb[p];
		int16_t done = (int16_t)(2 * (p - r->first_op[at]) + 2);

		clock[at] = clock[at] > done ? clock[at] : done;
	}
}

/* One slice of an operation; the first iteration stands for the others, whose
 * order is the same and which share no bytes. */
static inline bool kern_effect(struct kern_run *r, int tb, const struct kern_trans *x, int n,
			       const struct kern_sent *got, struct kern_sent *out)
{
	struct kern_state *s = &r->tb[tb];
	int op = r->first_op[tb] + s->op, slices = got || out ? r->proto->slices : 1;

	if (s->slice == 0) {
		kern_begin(r, tb, op, n, got, out);
	}
	for (int lane = 0; lane < r->n_lanes; lane++) {
		for (int k = 0; k < n; k++) {
			int slice = slices == 1 ? 0 : kern_slice_of(r, n, k, r->lane[lane].place);
			struct kern_access a = { op, (uint8_t)k, (uint8_t)slice };

			if (slice == s->slice && !kern_chunk(r, tb, x, lane, a, got, out)) {
				return false;
			}
		}
	}
	if (r->open_sends && out && !got) {
		s->open = op;
	} else if (s->slice == slices - 1) {
		s->open = -1;
		kern_end(r, tb, op);
	}
	return true;
}

/* ---- threadblocks ---- */

static inline void kern_wake(struct kern_run *r, int tb)
{
	if (!r->tb[tb].queued) {
		vec_push(&r->queue, tb);
		r->tb[tb].queued = true;
	}
}

static inline bool kern_wait(struct kern_state *s, int tb, char how)
{
	s->waits_for = tb;
	s->waits_how = how;
	return false;
}

/* The flag that a step of an iteration sets. */
static inline int64_t kern_flag(int iter, int step)
{
	return 1 + (int64_t)iter * KERN_MAX_STEPS + step;
}

/* Passes the dependencies of x, or notes what it waits for. */
static inline bool kern_enter(struct kern_run *r, int tb, const struct kern_trans *x)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	struct kern_state *s = &r->tb[tb];

	for (int i = 0; i < x->n_deps && !s->entered; i++) {
		const struct kern_dep *d = &t->deps.v[x->deps + i];

		if (r->tb[d->tb].flag < kern_flag(s->iter, d->step)) {
			return kern_wait(s, d->tb, 'f');
		}
	}
	for (int i = 0; i < x->n_deps && !s->entered && s->iter == 0; i++) {
		const struct kern_dep *d = &t->deps.v[x->deps + i];

		/* Not by a flag of the next iteration, whose bytes are others. */
		if (d->setter >= 0) {
			kern_join(s->clock, r->flag_clock[r->first_trans[d->tb] + d->setter],
				  r->file->tbs.n);
		}
	}
	s->barrier |= x->n_deps > 0 && !s->entered;
	s->entered = true;
	return true;
}

/* Sets the flag of x and goes on to what is next. */
static inline void kern_leave(struct kern_run *r, int tb, const struct kern_trans *x)
{
	const struct kern_file *f = r->file;
	struct kern_state *s = &r->tb[tb];
	const struct kern_rank *rank = &f->rank[f->tbs.v[tb].rank];

	if (x->flag) {
		s->flag = kern_flag(s->iter, x->step);
		if (s->iter == 0) {
			memcpy(r->flag_clock[r->first_trans[tb] + s->i], s->clock,
			       f->tbs.n * sizeof(*s->clock));
		}
		for (int i = 0; i < rank->n; i++) {
			const struct kern_state *o = &r->tb[rank->first + i];

			if (o->waits_how == 'f' && o->waits_for == tb) {
				kern_wake(r, rank->first + i);
			}
		}
	}
	s->c = 0;
	s->entered = false;
	if (++s->i == (int)f->tbs.v[tb].trans.n) {
		s->i = s->op = 0;
		s->iter++;
	}
}

/* Room to send and data to take, as many as x needs. */
static inline bool kern_ready(struct kern_run *r, int tb, const struct kern_trans *x)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	struct kern_state *s = &r->tb[tb];
	int room = r->proto->in_flight * r->proto->slices;

	if (x->kind->takes &&
	    (t->from < 0 || r->tb[t->from].sent == r->tb[t->from].taken)) {
		return kern_wait(s, t->from, 'd');
	}
	if (x->kind->sends && (t->to < 0 || s->sent - s->taken >= room)) {
		return kern_wait(s, t->to, 'r');
	}
	return true;
}

/* One slice of an operation of n chunks that is ready. */
static inline bool kern_slice(struct kern_run *r, int tb, const struct kern_trans *x, int n)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	struct kern_state *s = &r->tb[tb], *from = x->kind->takes ? &r->tb[t->from] : NULL;
	int slices = r->proto->slices;
	struct kern_sent *got = from ? &from->ring[from->taken / slices % KERN_RING] : NULL;
	struct kern_sent *out = x->kind->sends ? &s->ring[s->sent / slices % KERN_RING] : NULL;

	if (got && got->n != n) {
		return kern_fail(r, "rank %d, threadblock %d, step %d: takes %d chunks, and %d "
				 "come", t->rank, t->id, x->s, n, got->n);
	}
	if (out) {
		out->n = n;
	}
	if (s->iter == 0 && !kern_effect(r, tb, x, n, got, out)) {
		return false;
	}
	if (from) {
		from->taken++;
		kern_wake(r, t->from);
	}
	if (out) {
		s->sent++;
		kern_wake(r, t->to);
	}
	s->slice = (got || out) && s->slice + 1 < slices ? s->slice + 1 : 0;
	if (s->slice == 0) {
		s->c += n;
		s->op++;
	}
	return true;
}

/* As far as a threadblock gets; false only when something is wrong. */
static inline bool kern_advance(struct kern_run *r, int tb)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	struct kern_state *s = &r->tb[tb];

	s->waits_how = '\0';
	while (s->iter < r->iters && t->trans.n > 0) {
		const struct kern_trans *x = &t->trans.v[s->i];
		int left = x->cnt - s->c;

		if (!kern_enter(r, tb, x)) {
			return true;
		}
		if (left <= 0) {
			kern_leave(r, tb, x);
		} else if (!kern_ready(r, tb, x)) {
			return true;
		} else if (!kern_slice(r, tb, x, left < r->max_count ? left : r->max_count)) {
			return false;
		}
	}
	return true;
}

/* ---- the call ---- */

static inline bool kern_ended(const struct kern_run *r, int tb)
{
	return r->file->tbs.v[tb].trans.n == 0 || r->tb[tb].iter == r->iters;
}

/* One more threadblock of those that wait for each other. */
static inline char *kern_tell(const struct kern_run *r, int tb, char *at, const char *end)
{
	const struct kern_tb *t = &r->file->tbs.v[tb];
	const struct kern_state *s = &r->tb[tb];
	size_t left = (size_t)(end - at);
	int n;

	if (kern_ended(r, tb)) {
		n = snprintf(at, left, " rank %d, threadblock %d, which has ended", t->rank, t->id);
	} else {
		n = snprintf(at, left, " rank %d, threadblock %d (iteration %d, step %d, %s), "
			     "which "
			     "waits for %s of", t->rank, t->id, s->iter, t->trans.v[s->i].s,
			     t->trans.v[s->i].kind->name, s->waits_how == 'f' ? "the flag" :
			     s->waits_how == 'd' ? "data" : "room");
	}
	return at + (n < (int)left ? n : (int)left - 1);
}

/* Who waits for whom: from one on the circle, or one that waits in vain. */
static inline bool kern_locked(struct kern_run *r, int64_t bytes, int tb)
{
	const struct kern_file *f = r->file;
	char *at = r->why, *end = r->why + 512;
	int on = tb, told = 0, first;

	for (size_t i = 0; i < f->tbs.n && on >= 0 && !kern_ended(r, on); i++) {
		on = r->tb[on].waits_for;
	}
	first = tb = on < 0 || kern_ended(r, on) ? tb : on;
	at += snprintf(at, 512, "locks up at %lld bytes, %d chunks an operation:",
		       (long long)bytes, r->max_count);
	while (tb >= 0 && told++ < 6) {
		at = kern_tell(r, tb, at, end);
		tb = kern_ended(r, tb) ? -1 : r->tb[tb].waits_for;
		if (tb == first) {
			snprintf(at, (size_t)(end - at), " the first");
			break;
		}
	}
	return false;
}

static inline int kern_ops(const struct kern_run *r, const struct kern_tb *t)
{
	int n = 0;

	for (size_t i = 0; i < t->trans.n; i++) {
		n += (t->trans.v[i].cnt + r->max_count - 1) / r->max_count;
	}
	return n;
}

static inline int kern_root(const struct kern_file *f)
{
	int root = 0;

	for (int rank = 0; rank < f->ranks; rank++) {
		bool takes = false;

		for (int i = 0; i < f->rank[rank].n; i++) {
			takes |= f->tbs.v[f->rank[rank].first + i].recv >= 0;
		}
		root = takes ? root : rank;
	}
	return root;
}

static inline void kern_make_tbs(struct kern_run *r)
{
	const struct kern_file *f = r->file;
	int ops = 0, trans = 0;
	size_t n = f->tbs.n;

	arrays_add(&r->arrays, r->tb, n);
	arrays_add(&r->arrays, r->first_op, n + 1);
	arrays_add(&r->arrays, r->first_trans, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct kern_tb *t = &f->tbs.v[i];

		r->tb[i].open = -1;
		r->first_op[i] = ops;
		r->first_trans[i] = trans;
		ops += kern_ops(r, t);
		trans += (int)t->trans.n;
		arrays_add(&r->arrays, r->tb[i].clock, n);
		if (t->send >= 0) {
			arrays_add(&r->arrays, r->tb[i].ring, KERN_RING);
		}
		for (int k = 0; k < KERN_RING && t->send >= 0; k++) {
			arrays_add(&r->arrays, r->tb[i].ring[k].clock, n);
			arrays_add(&r->arrays, r->tb[i].ring[k].value, r->n_lanes * r->widest);
		}
	}
	r->first_op[n] = ops;
	arrays_add(&r->arrays, r->parent, ops);
	arrays_add(&r->arrays, r->op_tb, ops);
	arrays_add(&r->arrays, r->flag_clock, trans);
	for (size_t i = 0; i < n; i++) {
		for (int op = r->first_op[i]; op < r->first_op[i + 1]; op++) {
			r->op_tb[op] = (int)i;
		}
		for (size_t k = 0; k < f->tbs.v[i].trans.n; k++) {
			if (f->tbs.v[i].trans.v[k].flag) {
				arrays_add(&r->arrays, r->flag_clock[r->first_trans[i] + (int)k],
					   n);
			}
		}
	}
}

static inline void kern_make_lanes(struct kern_run *r)
{
	int64_t place[KERN_PLACES];
	int n = kern_places(r, place);

	for (int i = 0; i < n; i++) {
		if (r->file->outofplace) {
			kern_lane_new(r, false, place[i]);
		}
		if (r->file->inplace) {
			kern_lane_new(r, true, place[i]);
		}
	}
}

/* Runs what waits in the queue until none can go on. */
static inline bool kern_go(struct kern_run *r, int64_t bytes)
{
	int n = (int)r->file->tbs.n;

	for (int i = n - 1; i >= 0; i--) {
		kern_wake(r, i);
	}
	while (r->queue.n > 0) {
		int tb = r->queue.v[--r->queue.n];

		r->tb[tb].queued = false;
		if (!kern_advance(r, tb)) {
			return false;
		}
	}
	for (int i = 0; i < n; i++) {
		if (!kern_ended(r, i)) {
			return kern_locked(r, bytes, i);
		}
	}
	for (int i = 0; i < n; i++) {
		if (r->tb[i].sent != r->tb[i].taken) {
			return kern_fail(r,
					 "rank %d, threadblock %d: data is left in its connection",
					 r->file->tbs.v[i].rank, r->file->tbs.v[i].id);
		}
	}
	return true;
}

/* The call ends in every order of execution, without a race, with the right
 * result on every rank. Else why (512 bytes) says what does not. bytes: a
 * multiple of the file's chunks, as the runtimes ask. */
static inline bool kern_run(const struct kern_file *f, const struct kern_call *c, char *why)
{
	struct kern_run r = { .file = f, .why = why };
	bool ok;

	why[0] = '\0';
	r.proto = kern_proto_of(c->proto ? c->proto : f->proto);
	r.open_sends = c->rccl && strcmp(r.proto->name, "LL") == 0;
	r.root = kern_is(f, "broadcast") ? kern_root(f) : 0;
	r.max_count = kern_max_count(f, c);
	r.chunk = c->bytes / KERN_ELEMENT / f->loop;
	r.window = r.proto->bytes[c->rccl] / KERN_ELEMENT;
	r.iters = (int)((r.chunk + r.window - 1) / r.window);
	r.window = r.chunk < r.window ? r.chunk : r.window;
	r.widest = f->max_count < r.max_count ? f->max_count : r.max_count;
	kern_make_lanes(&r);
	kern_make_tbs(&r);
	ok = kern_go(&r, c->bytes);
	for (int i = 0; i < r.n_lanes && ok; i++) {
		ok = kern_right(&r, &r.lane[i]);
	}
	vec_fini(&r.reads);
	vec_fini(&r.queue);
	arrays_fini(&r.arrays);
	return ok;
}

/* Bytes at which operations have `count` chunks, these of whole lines where that
 * can be; 0: chunks of two iterations. */
static inline int64_t kern_bytes(const struct kern_file *f, const struct kern_call *c, int count)
{
	const struct kern_proto *p = kern_proto_of(c->proto ? c->proto : f->proto);
	int64_t size = p->bytes[c->rccl], lines;

	if (count == 0) {
		return size / 128 * 128 * 3 / 2 * f->loop;
	}
	if (p->slices > 1 && kern_is(f, "broadcast")) {
		size /= 4;
	}
	lines = size / count / 128 * 128;
	return (lines > 0 && size / lines == count ? lines : size / count / 4 * 4) * f->loop;
}

/* The runtimes take the file for a call of so many bytes. */
static inline bool kern_serves(const struct kern_file *f, int64_t bytes)
{
	return bytes >= f->min_bytes && (f->max_bytes == 0 || bytes <= f->max_bytes);
}

/* A text runs at its smallest call, with operations of one chunk, and in two
 * iterations, as far as it serves these; else it is told why not. */
static inline bool kern_text(const char *text, bool rccl)
{
	struct kern_call c = { .rccl = rccl };
	struct kern_file f;
	char why[512];
	bool ok = kern_read(text, &f);

	snprintf(why, sizeof(why), "%s", f.why);
	for (int i = 0; i < 3 && ok; i++) {
		c.bytes = i == 0 ? (int64_t)KERN_ELEMENT * f.loop : kern_bytes(&f, &c, 2 - i);
		ok = !kern_serves(&f, c.bytes) || kern_run(&f, &c, why);
	}
	if (!ok) {
		print_message("# kernel: %s\n", why);
	}
	kern_free(&f);
	return ok;
}

#endif
