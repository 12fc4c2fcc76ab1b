/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an execution plan on numbers, and proves the order of its accesses.
 *
 * Time of a threadblock is counted in segments, the stretches between nops.
 * An access is over when its segment is; clk[t][u] is the last segment of
 * threadblock u that is known in t to be over, 1 meaning that u has begun.
 * Signals and releases carry a copy of the sender's clock, which the waiting
 * threads share at their next nop.
 *
 * A put is handed to a proxy. Its read is over, for its own rank, with a
 * flush; its read and its write are, for the other rank, when a signal that
 * came after it was waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "lib/base/number/rng.h"
#include "runtime/mscclpp/private.h"

#define NONE (-1)
#define BEGUN 1

/* A point of time: the end of a segment of a threadblock. */
struct mscclpp_stamp {
	int32_t tb;	/* or NONE: never, so far */
	uint8_t segment;
};

/* A put in the hands of its proxy; the sending threadblock's time of each. */
struct mscclpp_put {
	struct mscclpp_stamp pushed, signalled, flushed;
};

enum mscclpp_access_kind { ACCESS_BEGIN, ACCESS_LOCAL, ACCESS_PUT };

/* Who touched a cell. BEGIN: whoever had the buffer before this run. */
struct mscclpp_access {
	uint8_t kind;
	uint8_t segment;
	int32_t who;	/* rank, threadblock or put */
};

struct mscclpp_read {
	struct mscclpp_access by;
	int32_t before;	/* older read of the cell in `reads`, or NONE */
};

/* A signal or release that was sent: what its sender knew to be over. */
struct mscclpp_message {
	uint8_t *clk;	/* by threadblock of all ranks; owned */
	int32_t puts;	/* of the channel that it signals of */
};

/* One end of a channel. */
struct mscclpp_end {
	int32_t other;
	VEC(struct mscclpp_message) sent;	/* to the other end */
	size_t taken;			/* of these, by the other end */
	VEC(int32_t) puts;
	size_t signalled_puts, flushed;		/* of puts */
	size_t signalled;		/* puts before the last signal */
	struct mscclpp_stamp last_signal, last_wait;
};

/* A semaphore between threadblocks of a rank. */
struct mscclpp_sem {
	VEC(struct mscclpp_message) released;
	size_t acquired;
	struct mscclpp_stamp last_release, last_acquire;
};

/* A threadblock that runs. */
struct mscclpp_thread {
	const struct mscclpp_tb *tb;
	int32_t rank, id;
	uint8_t segment;	/* the present one */
	size_t pc;		/* the op to run next */
	uint8_t *clk;
	VEC(uint8_t *) received;	/* clocks to share at the next nop */
};

struct mscclpp_run {
	const struct mscclpp *p;
	int n_tbs;
	int32_t *base;		/* by rank: its first threadblock; + end */
	int32_t *end_base;	/* by rank: its first channel */
	int32_t *sem_base;	/* by rank: its first semaphore */
	int64_t *start;		/* by rank: its first cell */
	struct mscclpp_thread *tbs;
	struct mscclpp_end *ends;
	struct mscclpp_sem *sems;
	uint64_t *cells;
	struct mscclpp_access *writer;	/* by cell */
	int32_t *reader;	/* by cell: newest since it was written */
	VEC(struct mscclpp_read) reads;
	VEC(struct mscclpp_put) puts;
	VEC(uint64_t) values;	/* of the op that runs */
	struct arrays arrays;	/* all but the lists */
};

static int64_t cell_of(const struct mscclpp_run *r, int rank, int buf, int64_t off)
{
	const struct mscclpp *p = r->p;
	int64_t shard = (int64_t)rank * (p->loop / p->ranks);

	return r->start[rank] + lower_cell(p->kind, p->gpus[rank].chunks,
					    shard, buf, off, p->inplace);
}

static int fault(const struct mscclpp_thread *t, const char *what, struct err *err)
{
	return err_set(err, WEFT_EVERIFY, "%s: %s: %s",
		       mscclpp_at(t->rank, t->id, (int)t->pc).text,
		       mscclpp_op_name(t->tb->ops.v[t->pc].name), what);
}

/* ---- order ---- */

/* Whether t knows that the segment is over. */
static bool over(const struct mscclpp_thread *t, struct mscclpp_stamp s)
{
	return s.tb != NONE && t->clk[s.tb] >= s.segment;
}

/* Nothing before, or known to be over. */
static bool after(const struct mscclpp_thread *t, struct mscclpp_stamp s)
{
	return s.tb == NONE || over(t, s);
}

static struct mscclpp_stamp now(const struct mscclpp_run *r, const struct mscclpp_thread *t)
{
	return (struct mscclpp_stamp){ (int32_t)(t - r->tbs), t->segment };
}

static bool has_begun(const struct mscclpp_run *r, const struct mscclpp_thread *t, int rank)
{
	for (int u = r->base[rank]; u < r->base[rank + 1]; u++) {
		if (t->clk[u] >= BEGUN) {
			return true;
		}
	}
	return false;
}

/* writing: the earlier access was a write. */
static bool ordered(const struct mscclpp_run *r, const struct mscclpp_thread *t,
		    const struct mscclpp_access *x, bool writing)
{
	const struct mscclpp_put *q;

	switch (x->kind) {
	case ACCESS_BEGIN:
		return has_begun(r, t, x->who);
	case ACCESS_LOCAL:
		return t->clk[x->who] >= x->segment;
	default:
		q = &r->puts.v[x->who];
		return over(t, q->signalled) || (!writing && over(t, q->flushed));
	}
}

static int check_read(const struct mscclpp_run *r, const struct mscclpp_thread *t,
		      int64_t cell, int32_t n, struct err *err)
{
	for (int64_t c = cell; c < cell + n; c++) {
		if (!ordered(r, t, &r->writer[c], true)) {
			return fault(t, "reads what may not be written yet", err);
		}
	}
	return 0;
}

static int check_write(const struct mscclpp_run *r, const struct mscclpp_thread *t,
		       int64_t cell, int32_t n, struct err *err)
{
	for (int64_t c = cell; c < cell + n; c++) {
		if (!ordered(r, t, &r->writer[c], true)) {
			return fault(t, "writes while another write may not "
				     "be over", err);
		}
		for (int32_t x = r->reader[c]; x != NONE; x = r->reads.v[x].before) {
			if (!ordered(r, t, &r->reads.v[x].by, false)) {
				return fault(t, "writes what may not be read "
					     "yet", err);
			}
		}
	}
	return 0;
}

static void note_read(struct mscclpp_run *r, struct mscclpp_access by, int64_t cell, int32_t n)
{
	for (int64_t c = cell; c < cell + n; c++) {
		vec_push(&r->reads, (struct mscclpp_read){ by, r->reader[c] });
		r->reader[c] = (int32_t)r->reads.n - 1;
	}
}

static void note_write(struct mscclpp_run *r, struct mscclpp_access by, int64_t cell, int32_t n)
{
	for (int64_t c = cell; c < cell + n; c++) {
		r->writer[c] = by;
		r->reader[c] = NONE;
	}
}

/* ---- clocks that travel ---- */

static void copy_clock(const struct mscclpp_run *r, const struct mscclpp_thread *t, uint8_t **out)
{
	size_t n = (size_t)r->n_tbs;

	*out = x_alloc(n + 1, 1);
	memcpy(*out, t->clk, n);
}

/* The threads of the threadblock meet. */
static void meet(struct mscclpp_run *r, struct mscclpp_thread *t)
{
	for (size_t i = 0; i < t->received.n; i++) {
		for (int u = 0; u < r->n_tbs; u++) {
			if (t->clk[u] < t->received.v[i][u]) {
				t->clk[u] = t->received.v[i][u];
			}
		}
		free(t->received.v[i]);
	}
	t->received.n = 0;
	t->clk[t - r->tbs] = t->segment++;
}

/* ---- operations ---- */

static struct mscclpp_end *end_of(const struct mscclpp_run *r, const struct mscclpp_thread *t,
			  const struct mscclpp_op *op, int i)
{
	return &r->ends[r->end_base[t->rank] + t->tb->chans[op->ids[i]]];
}

/* Piece i of a put, handed to the proxy. */
static int put_piece(struct mscclpp_run *r, struct mscclpp_thread *t,
		     const struct mscclpp_op *op, int i, struct err *err)
{
	const struct mscclpp_ref *s = &op->src[i], *d = &op->dst[i];
	const struct mscclpp_remote *to = &r->p->gpus[t->rank].remotes.v[t->tb->remotes[d->buf]];
	int64_t from = cell_of(r, t->rank, s->buf, s->index);
	int64_t at = cell_of(r, to->rank, to->buf, d->index);
	struct mscclpp_access by = { ACCESS_PUT, 0, (int32_t)r->puts.n };
	int rc;

	if ((rc = check_read(r, t, from, s->size, err)) ||
	    (rc = check_write(r, t, at, d->size, err))) {
		return rc;
	}
	vec_push(&r->puts, (struct mscclpp_put){ now(r, t), { NONE, 0 }, { NONE, 0 } });
	vec_push(&end_of(r, t, op, i)->puts, by.who);
	note_read(r, by, from, s->size);
	note_write(r, by, at, d->size);
	memmove(&r->cells[at], &r->cells[from], (size_t)s->size * sizeof(*r->cells));
	return 0;
}

/* A signal must come after all puts of its channel, as well as after the
 * signal before. own: the put that carries it is of the same trigger. */
static int signal_end(struct mscclpp_run *r, struct mscclpp_thread *t, const struct mscclpp_op *op,
		      int i, bool own, struct err *err)
{
	struct mscclpp_end *e = end_of(r, t, op, i);
	struct mscclpp_message m = { .puts = (int32_t)e->puts.n };

	if (!after(t, e->last_signal)) {
		return fault(t, "may overtake the signal before", err);
	}
	for (size_t k = e->signalled; k + own < e->puts.n; k++) {
		if (!over(t, r->puts.v[e->puts.v[k]].pushed)) {
			return fault(t, "may overtake a put of the channel", err);
		}
	}
	e->signalled = e->puts.n;
	e->last_signal = now(r, t);
	copy_clock(r, t, &m.clk);
	vec_push(&e->sent, m);
	return 0;
}

static int do_put(struct mscclpp_run *r, struct mscclpp_thread *t,
		  const struct mscclpp_op *op, struct err *err)
{
	bool signals = op->name == MSCCLPP_PWS;
	int rc = 0;

	for (int i = 0; i < op->n_ids && !rc; i++) {
		rc = put_piece(r, t, op, i, err);
		if (!rc && signals) {
			rc = signal_end(r, t, op, i, true, err);
		}
	}
	return rc;
}

static int do_signal(struct mscclpp_run *r, struct mscclpp_thread *t,
		     const struct mscclpp_op *op, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < op->n_ids && !rc; i++) {
		rc = signal_end(r, t, op, i, false, err);
	}
	return rc;
}

/* Two threadblocks that wait for the same count must do so in an order. */
static int claim_order(struct mscclpp_run *r, struct mscclpp_thread *t, struct mscclpp_stamp *last,
		     struct err *err)
{
	if (last->tb != (int32_t)(t - r->tbs) && !after(t, *last)) {
		return fault(t, "another threadblock may wait for the same", err);
	}
	*last = now(r, t);
	return 0;
}

static void receive_clock(struct mscclpp_thread *t, struct mscclpp_message *m)
{
	vec_push(&t->received, m->clk);
	m->clk = NULL;
}

static int do_wait(struct mscclpp_run *r, struct mscclpp_thread *t,
		   const struct mscclpp_op *op, struct err *err)
{
	for (int i = 0; i < op->n_ids; i++) {
		struct mscclpp_end *e = end_of(r, t, op, i);
		struct mscclpp_end *from = &r->ends[e->other];
		struct mscclpp_message *m = &from->sent.v[from->taken++];
		int rc = claim_order(r, t, &e->last_wait, err);

		for (; from->signalled_puts < (size_t)m->puts; from->signalled_puts++) {
			r->puts.v[from->puts.v[from->signalled_puts]].signalled = now(r, t);
		}
		if (rc) {
			return rc;
		}
		receive_clock(t, m);
	}
	return 0;
}

static void do_flush(struct mscclpp_run *r, struct mscclpp_thread *t, const struct mscclpp_op *op)
{
	for (int i = 0; i < op->n_ids; i++) {
		struct mscclpp_end *e = end_of(r, t, op, i);

		for (; e->flushed < e->puts.n; e->flushed++) {
			struct mscclpp_put *q = &r->puts.v[e->puts.v[e->flushed]];

			if (!over(t, q->pushed)) {
				break;
			}
			q->flushed = now(r, t);
		}
	}
}

/* copy and re: dst = sum of all src. */
static int do_local(struct mscclpp_run *r, struct mscclpp_thread *t,
		    const struct mscclpp_op *op, struct err *err)
{
	const struct mscclpp_ref *d = &op->dst[0];
	int64_t to = cell_of(r, t->rank, d->buf, d->index);
	struct mscclpp_access by = { ACCESS_LOCAL, t->segment, now(r, t).tb };
	int rc = 0;

	r->values.n = 0;
	for (int32_t k = 0; k < d->size; k++) {
		vec_push(&r->values, 0);
	}
	for (int i = 0; i < op->n_src && !rc; i++) {
		const struct mscclpp_ref *s = &op->src[i];
		int64_t from = cell_of(r, t->rank, s->buf, s->index);

		rc = check_read(r, t, from, s->size, err);
		for (int32_t k = 0; k < s->size; k++) {
			r->values.v[k] += r->cells[from + k];
		}
	}
	if (rc || (rc = check_write(r, t, to, d->size, err))) {
		return rc;
	}
	for (int i = 0; i < op->n_src; i++) {
		const struct mscclpp_ref *s = &op->src[i];

		note_read(r, by, cell_of(r, t->rank, s->buf, s->index), s->size);
	}
	note_write(r, by, to, d->size);
	memcpy(&r->cells[to], r->values.v, (size_t)d->size * sizeof(*r->cells));
	return 0;
}

static int do_sem(struct mscclpp_run *r, struct mscclpp_thread *t,
		  const struct mscclpp_op *op, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < op->n_ids && !rc; i++) {
		struct mscclpp_sem *s = &r->sems[r->sem_base[t->rank] + op->ids[i]];
		size_t first = (size_t)r->p->gpus[t->rank].sems.v[op->ids[i]];
		struct mscclpp_message m = { .puts = 0 };

		if (op->name == MSCCLPP_ACQUIRE) {
			rc = claim_order(r, t, &s->last_acquire, err);
			if (!rc && s->acquired >= first) {
				receive_clock(t, &s->released.v[s->acquired - first]);
			}
			s->acquired++;
			continue;
		}
		rc = claim_order(r, t, &s->last_release, err);
		if (!rc) {
			copy_clock(r, t, &m.clk);
			vec_push(&s->released, m);
		}
	}
	return rc;
}

static bool ready(const struct mscclpp_run *r, const struct mscclpp_thread *t)
{
	const struct mscclpp_op *op = &t->tb->ops.v[t->pc];

	for (int i = 0; i < op->n_ids; i++) {
		if (op->name == MSCCLPP_WAIT) {
			const struct mscclpp_end *e = &r->ends[end_of(r, t, op, i)->other];

			if (e->taken == e->sent.n) {
				return false;
			}
		} else if (op->name == MSCCLPP_ACQUIRE) {
			const struct mscclpp_sem *s = &r->sems[r->sem_base[t->rank] + op->ids[i]];
			int32_t first = r->p->gpus[t->rank].sems.v[op->ids[i]];

			if (s->acquired >= s->released.n + (size_t)first) {
				return false;
			}
		}
	}
	return true;
}

static int execute(struct mscclpp_run *r, struct mscclpp_thread *t, struct err *err)
{
	const struct mscclpp_op *op = &t->tb->ops.v[t->pc];

	switch ((enum mscclpp_name)op->name) {
	case MSCCLPP_NOP:
		meet(r, t);
		return 0;
	case MSCCLPP_PUT:
	case MSCCLPP_PWS:
		return do_put(r, t, op, err);
	case MSCCLPP_SIGNAL:
		return do_signal(r, t, op, err);
	case MSCCLPP_WAIT:
		return do_wait(r, t, op, err);
	case MSCCLPP_FLUSH:
		do_flush(r, t, op);
		return 0;
	case MSCCLPP_COPY:
	case MSCCLPP_REDUCE:
		return do_local(r, t, op, err);
	case MSCCLPP_ACQUIRE:
	case MSCCLPP_RELEASE:
		break;
	}
	return do_sem(r, t, op, err);
}

/* ---- before and after ---- */

static void fill(struct mscclpp_run *r)
{
	for (int u = 0; u < r->p->ranks; u++) {
		const int32_t *n = r->p->gpus[u].chunks;

		for (int64_t c = r->start[u]; c < r->start[u + 1]; c++) {
			r->cells[c] = rng_mix(~(uint64_t)c);
			r->writer[c] = (struct mscclpp_access){ ACCESS_BEGIN, 0, u };
			r->reader[c] = NONE;
		}
		for (int32_t k = 0; k < n[LOWER_IN] &&
		     (r->p->kind != COLL_BROADCAST || u == r->p->root); k++) {
			r->cells[cell_of(r, u, LOWER_IN, k)] = lower_token(u, k);
		}
	}
}

static int compare(const struct mscclpp_run *r, struct err *err)
{
	const struct mscclpp *p = r->p;

	for (int u = 0; u < p->ranks; u++) {
		const int32_t *n = p->gpus[u].chunks;

		for (int32_t k = 0; k < n[LOWER_OUT]; k++) {
			if (r->cells[cell_of(r, u, LOWER_OUT, k)] !=
			    lower_expected(p->kind, p->ranks, p->loop,
					   p->root, u, k)) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d ends with a wrong "
					       "chunk %d of its output", u, k);
			}
		}
		for (int32_t k = 0; k < n[LOWER_IN] && !p->inplace &&
		     (p->kind != COLL_BROADCAST || u == p->root); k++) {
			if (r->cells[cell_of(r, u, LOWER_IN, k)] != lower_token(u, k)) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d ends with its input "
					       "changed at chunk %d", u, k);
			}
		}
	}
	return 0;
}

/* The next run finds all counts even, and no proxy still at work. */
static int check_left(const struct mscclpp_run *r, struct err *err)
{
	const struct mscclpp *p = r->p;

	for (int u = 0; u < p->ranks; u++) {
		for (size_t i = 0; i < p->gpus[u].chans.n; i++) {
			const struct mscclpp_end *e = &r->ends[r->end_base[u] + (int)i];
			const char *what = e->taken < e->sent.n
					? "a signal without a wait"
				: e->signalled_puts < e->puts.n
					? "a put without a signal after it"
				: e->flushed < e->puts.n
					? "a put that is not flushed" : NULL;

			if (what) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d channel %zu: %s", u,
					       i, what);
			}
		}
		for (size_t i = 0; i < p->gpus[u].sems.n; i++) {
			const struct mscclpp_sem *s = &r->sems[r->sem_base[u] + (int)i];

			if (s->acquired != s->released.n) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d semaphore %zu: not "
					       "released as often as "
					       "acquired", u, i);
			}
		}
	}
	return 0;
}

static int stuck(const struct mscclpp_run *r, struct err *err)
{
	const struct mscclpp_thread *t = r->tbs;

	while (t->pc == t->tb->ops.n) {
		t++;
	}
	return fault(t, "deadlock: waits forever", err);
}

/* Sweeps over the threadblocks, each as far as it gets; what can ever run
 * does not depend on the order. */
static int run_all(struct mscclpp_run *r, struct err *err)
{
	bool moved, left;

	do {
		moved = left = false;
		for (int i = 0; i < r->n_tbs; i++) {
			struct mscclpp_thread *t = &r->tbs[i];

			while (t->pc < t->tb->ops.n && ready(r, t)) {
				int rc = execute(r, t, err);

				if (rc) {
					return rc;
				}
				t->pc++;
				moved = true;
			}
			left |= t->pc < t->tb->ops.n;
		}
	} while (moved && left);
	return left ? stuck(r, err) : 0;
}

/* ---- memory ---- */

static void reserve(struct mscclpp_run *r, int chans, int sems)
{
	int64_t cells = r->start[r->p->ranks];

	arrays_add(&r->arrays, r->tbs, r->n_tbs);
	arrays_add(&r->arrays, r->ends, chans);
	arrays_add(&r->arrays, r->sems, sems);
	arrays_add(&r->arrays, r->cells, cells);
	arrays_add(&r->arrays, r->writer, cells);
	arrays_add(&r->arrays, r->reader, cells);
}

/* Numbers what all ranks have. */
static void number(struct mscclpp_run *r)
{
	size_t ranks = (size_t)r->p->ranks;
	int chans = 0, sems = 0;

	arrays_add(&r->arrays, r->base, ranks + 1);
	arrays_add(&r->arrays, r->end_base, ranks + 1);
	arrays_add(&r->arrays, r->sem_base, ranks + 1);
	arrays_add(&r->arrays, r->start, ranks + 1);
	for (size_t u = 0; u < ranks; u++) {
		const struct mscclpp_gpu *g = &r->p->gpus[u];

		r->end_base[u] = chans;
		r->sem_base[u] = sems;
		chans += (int)g->chans.n;
		sems += (int)g->sems.n;
		r->base[u + 1] = r->n_tbs += (int)g->tbs.n;
		r->start[u + 1] = r->start[u] + g->chunks[0] + g->chunks[1] +
				  g->chunks[2];
	}
	r->end_base[ranks] = chans;
	r->sem_base[ranks] = sems;
	reserve(r, chans, sems);
}

static void start_threads(struct mscclpp_run *r)
{
	for (int u = 0; u < r->p->ranks; u++) {
		for (int i = r->base[u]; i < r->base[u + 1]; i++) {
			struct mscclpp_thread *t = &r->tbs[i];

			t->tb = &r->p->gpus[u].tbs.v[i - r->base[u]];
			t->rank = u;
			t->id = i - r->base[u];
			t->segment = BEGUN + 1;
			t->clk = x_new((size_t)r->n_tbs + 1, 1);
			/* The threadblocks of a rank begin at once. */
			memset(t->clk + r->base[u], BEGUN, (size_t)(r->base[u + 1] - r->base[u]));
		}
	}
}

/* Joins channel i of rank u with one that came before, or leaves it to be
 * found: `open` has the ends that miss their other, by (k, from, to), `count`
 * how many there were from u to v. */
static void join_end(struct mscclpp_run *r, int u, size_t i, struct u64map *open,
		     struct u64map *count)
{
	uint64_t n = (uint64_t)r->p->ranks, from = (uint64_t)u, k = 0, other;
	uint64_t to = (uint64_t)r->p->gpus[u].chans.v[i];
	int32_t me = r->end_base[u] + (int32_t)i;

	u64map_get(count, from * n + to, &k);
	if (u64map_get(open, (k * n + to) * n + from, &other)) {
		r->ends[me].other = (int32_t)other;
		r->ends[other].other = me;
	}
	u64map_set(count, from * n + to, k + 1);
	u64map_set(open, (k * n + from) * n + to, (uint64_t)me);
}

/* The k-th channel of u to v meets the k-th of v to u. */
static void join_ends(struct mscclpp_run *r)
{
	struct mscclpp_stamp never = { NONE, 0 };
	struct u64map open = { 0 }, count = { 0 };

	for (int u = 0; u < r->p->ranks; u++) {
		for (size_t i = 0; i < r->p->gpus[u].chans.n; i++) {
			join_end(r, u, i, &open, &count);
		}
	}
	u64map_fini(&open);
	u64map_fini(&count);
	for (int i = 0; i < r->end_base[r->p->ranks]; i++) {
		r->ends[i].last_signal = r->ends[i].last_wait = never;
	}
	for (int i = 0; i < r->sem_base[r->p->ranks]; i++) {
		r->sems[i].last_release = r->sems[i].last_acquire = never;
	}
}

static void free_messages(struct mscclpp_message *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].clk);
	}
	free(v);
}

static void finish(struct mscclpp_run *r)
{
	size_t ranks = (size_t)r->p->ranks;

	for (int i = 0; r->tbs && i < r->n_tbs; i++) {
		for (size_t k = 0; k < r->tbs[i].received.n; k++) {
			free(r->tbs[i].received.v[k]);
		}
		vec_fini(&r->tbs[i].received);
		free(r->tbs[i].clk);
	}
	for (int i = 0; r->ends && i < r->end_base[ranks]; i++) {
		free_messages(r->ends[i].sent.v, r->ends[i].sent.n);
		vec_fini(&r->ends[i].puts);
	}
	for (int i = 0; r->sems && i < r->sem_base[ranks]; i++) {
		free_messages(r->sems[i].released.v, r->sems[i].released.n);
	}
	arrays_fini(&r->arrays);
	vec_fini(&r->reads);
	vec_fini(&r->puts);
	vec_fini(&r->values);
}

int mscclpp_run(const struct mscclpp *p, struct err *err)
{
	struct mscclpp_run r = { .p = p };
	int rc;

	number(&r);
	start_threads(&r);
	join_ends(&r);
	fill(&r);
	rc = run_all(&r, err);
	if (!rc) {
		rc = check_left(&r, err);
	}
	if (!rc) {
		rc = compare(&r, err);
	}
	finish(&r);
	return rc;
}
