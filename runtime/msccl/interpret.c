/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program on numbers: deadlock and result; see msccl.h.
 *
 * A kernel moves a step of cnt chunks in pieces of at most `split` chunks,
 * one after the other. Each piece takes one of the slots of its connection,
 * and one that is received and sent on moves only when it can do both. A
 * step waits for what it depends on before its first piece, and others wait
 * for its last.
 *
 * One chunk a piece stands for every split. Take for every piece of another
 * split its last chunk. What follows from one piece to the next (the order
 * of a threadblock, a send before its receive, a whole step before one that
 * waits for it) follows for those chunks too. A piece must wait for the
 * receive of the piece `slots` before it, whose last chunk is at least
 * `slots` chunks before its own: of chunks, too, one waits for the other. So
 * pieces that wait in a circle make chunks that wait in a circle. More slots
 * only take waits away.
 *
 * A kernel repeats the program for 2 MiB (less in other protocols) of every
 * chunk at a time, on other bytes each time. Programs that end one by one can
 * be executed one after the other, so one round stands for all.
 *
 * Every chunk holds a random 64-bit number that shows who contributed it;
 * sums add up modulo 2^64.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "runtime/msccl/private.h"

struct msccl_queue {
	uint32_t sent, taken;	/* pieces */
};

struct msccl_run {
	const struct msccl_proof *c;
	const struct msccl *p;
	bool inplace;
	int split, slots;	/* chunks of a piece, pieces of a connection */
	int64_t *start;		/* by rank: its first cell */
	uint64_t *cells;
	uint32_t *pc;		/* by threadblock: the step at hand, */
	uint8_t *moved;		/* and how many of its chunks have moved */
	struct msccl_queue *queues;	/* by sending threadblock */
	uint64_t *values;	/* of its pieces: slots * split */
	int32_t *ready;		/* a stack of threadblocks that may go on: the two
				 * ends of a connection stay near one another */
	int n_ready;
	bool *listed;		/* by threadblock: is in it */
	int32_t *waiter;	/* by threadblock: one that waits for it, */
	int32_t *next;		/* and the one after that; or -1 */
	bool *waits;		/* by threadblock: is in such a list */
	int64_t begun, done;	/* steps so far */
};

static uint64_t *cell(const struct msccl_run *r, int rank, int buf, int64_t off)
{
	return &r->cells[r->start[rank] + msccl_cell(r->p, rank, buf, (int)off, r->inplace)];
}

/* ---- before and after ---- */

static void fill(struct msccl_run *r)
{
	for (int u = 0; u < r->p->ranks; u++) {
		int32_t n = r->p->gpus[u].chunks[LOWER_IN];

		/* What no one wrote is in no sum that is expected. */
		for (int64_t k = r->start[u]; k < r->start[u + 1]; k++) {
			r->cells[k] = rng_mix(~(uint64_t)k);
		}
		if (r->p->kind == COLL_BROADCAST && u != r->p->root) {
			continue;
		}
		for (int32_t k = 0; k < n; k++) {
			*cell(r, u, LOWER_IN, k) = lower_token(u, k);
		}
	}
}

static uint64_t expected(const struct msccl_run *r, int rank, int64_t k)
{
	return lower_expected(r->p->kind, r->p->ranks, r->p->loop, r->p->root, rank, k);
}

static int compare(const struct msccl_run *r, struct err *err)
{
	for (int u = 0; u < r->p->ranks; u++) {
		const int32_t *n = r->p->gpus[u].chunks;

		for (int32_t k = 0; k < n[LOWER_OUT]; k++) {
			if (*cell(r, u, LOWER_OUT, k) != expected(r, u, k)) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d ends with a wrong "
					       "chunk %d of its output", u, k);
			}
		}
		for (int32_t k = 0; k < n[LOWER_IN] && !r->inplace &&
		     (r->p->kind != COLL_BROADCAST || u == r->p->root); k++) {
			if (*cell(r, u, LOWER_IN, k) != lower_token(u, k)) {
				return err_set(err, WEFT_EVERIFY,
					       "rank %d ends with its input "
					       "changed at chunk %d", u, k);
			}
		}
	}
	return 0;
}

/* ---- pieces ---- */

static uint64_t *slot(const struct msccl_run *r, int n, uint32_t k)
{
	return r->values + ((int64_t)n * r->slots + k % (uint32_t)r->slots) * r->split;
}

/* Whether the connections let the next piece move. */
static bool can_move(const struct msccl_run *r, int n, const struct msccl_step *s)
{
	const struct msccl_queue *q;

	q = msccl_receives(s->type) ? &r->queues[r->c->tbs[n].from] : NULL;
	if (q && q->sent == q->taken) {
		return false;
	}
	q = msccl_sends(s->type) ? &r->queues[n] : NULL;
	return !q || q->sent - q->taken < (uint32_t)r->slots;
}

/* Moves `cnt` chunks of a step, from its chunk `at` on. */
static void move(struct msccl_run *r, int n, const struct msccl_step *s, int at, int cnt)
{
	const struct msccl_proof_tb *t = &r->c->tbs[n];
	uint64_t v[MSCCL_MAX_COUNT];

	memset(v, 0, (size_t)cnt * sizeof(*v));
	if (msccl_receives(s->type)) {
		memcpy(v, slot(r, t->from, r->queues[t->from].taken++),
		       (size_t)cnt * sizeof(*v));
	}
	for (int k = 0; k < cnt && msccl_reads(s->type); k++) {
		v[k] += *cell(r, t->rank, s->src_buf, s->src + at + k);
	}
	for (int k = 0; k < cnt && s->type == MSCCL_REDUCE; k++) {
		v[k] += *cell(r, t->rank, s->dst_buf, s->dst + at + k);
	}
	for (int k = 0; k < cnt && msccl_writes(s->type); k++) {
		*cell(r, t->rank, s->dst_buf, s->dst + at + k) = v[k];
	}
	if (msccl_sends(s->type)) {
		memcpy(slot(r, n, r->queues[n].sent++), v, (size_t)cnt * sizeof(*v));
	}
}

/* ---- threadblocks ---- */

static void wake(struct msccl_run *r, int n)
{
	if (!r->listed[n]) {
		r->listed[n] = true;
		r->ready[r->n_ready++] = n;
	}
}

static void wake_waiters(struct msccl_run *r, int n)
{
	while (r->waiter[n] >= 0) {
		int w = r->waiter[n];

		r->waiter[n] = r->next[w];
		r->waits[w] = false;
		wake(r, w);
	}
}

/* Whether a step that begins has to wait for another threadblock, whose
 * waiter it is from then on. */
static bool must_wait(struct msccl_run *r, int n, const struct msccl_step *s)
{
	int on = s->dep_tb < 0 ? -1 : r->c->base[r->c->tbs[n].rank] + s->dep_tb;

	if (on < 0 || r->pc[on] > (uint32_t)s->dep_step) {
		return false;
	}
	if (!r->waits[n]) {
		r->waits[n] = true;
		r->next[n] = r->waiter[on];
		r->waiter[on] = n;
	}
	return true;
}

static void end_step(struct msccl_run *r, int n, const struct msccl_step *s)
{
	r->moved[n] = 0;
	r->pc[n]++;
	r->done++;
	if (s->has_dep) {
		wake_waiters(r, n);
	}
}

/* Runs a threadblock as far as it gets. */
static void advance(struct msccl_run *r, int n)
{
	const struct msccl_proof_tb *t = &r->c->tbs[n];

	while (r->pc[n] < t->tb->steps.n) {
		const struct msccl_step *s = &t->tb->steps.v[r->pc[n]];
		int left = s->type == MSCCL_NOP ? 0 : s->cnt - r->moved[n];
		int cnt = left < r->split ? left : r->split;

		if ((r->moved[n] == 0 && must_wait(r, n, s)) || !can_move(r, n, s)) {
			return;
		}
		if (r->moved[n] == 0) {
			r->c->order[r->begun++] = (struct msccl_proof_op){
				n, (int32_t)r->pc[n] };
		}
		move(r, n, s, r->moved[n], cnt);
		r->moved[n] = (uint8_t)(r->moved[n] + cnt);
		if (msccl_receives(s->type)) {
			wake(r, t->from);
		}
		if (msccl_sends(s->type)) {
			wake(r, t->to);
		}
		if (cnt == left) {
			end_step(r, n, s);
		}
	}
}

static int stuck(const struct msccl_run *r, struct err *err)
{
	int n = 0;

	while (r->pc[n] == r->c->tbs[n].tb->steps.n) {
		n++;
	}
	return err_set(err, WEFT_EVERIFY,
		       "deadlock: rank %d threadblock %d waits forever in "
		       "step %u, with %d sends of %d chunk%s in flight a "
		       "connection", r->c->tbs[n].rank, r->c->tbs[n].id,
		       r->pc[n], r->slots, r->split, r->split == 1 ? "" : "s");
}

/* What can ever run does not depend on the order, as a piece that can move
 * can still do so later. O(pieces + threadblocks). */
static int run_all(struct msccl_run *r, struct err *err)
{
	int tbs = r->c->base[r->p->ranks];

	for (int n = 0; n < tbs; n++) {
		r->waiter[n] = -1;
		wake(r, n);
	}
	while (r->n_ready > 0) {
		int n = r->ready[--r->n_ready];

		r->listed[n] = false;
		advance(r, n);
	}
	return r->done < r->c->n_ops ? stuck(r, err) : 0;
}

/* All that a run needs. */
static void open_run(struct msccl_run *r, struct arrays *arrays)
{
	int ranks = r->p->ranks, tbs = r->c->base[ranks];

	arrays_add(arrays, r->start, ranks + 1);
	arrays_add(arrays, r->pc, tbs);
	arrays_add(arrays, r->moved, tbs);
	arrays_add(arrays, r->queues, tbs);
	arrays_add(arrays, r->values, (int64_t)tbs * r->slots * r->split);
	arrays_add(arrays, r->ready, tbs);
	arrays_add(arrays, r->listed, tbs);
	arrays_add(arrays, r->waiter, tbs);
	arrays_add(arrays, r->next, tbs);
	arrays_add(arrays, r->waits, tbs);
	for (int u = 0; u < ranks; u++) {
		r->start[u + 1] = r->start[u] + msccl_cells(r->p, u);
	}
	arrays_add(arrays, r->cells, r->start[ranks]);
}

int msccl_check_run(struct msccl_proof *c, int split, bool inplace, struct err *err)
{
	struct msccl_run r = { .c = c, .p = c->p, .inplace = inplace,
			       .split = split, .slots = msccl_slots(c->p->proto) };
	struct arrays arrays = { 0 };
	int rc;

	open_run(&r, &arrays);
	fill(&r);
	rc = run_all(&r, err);
	if (!rc) {
		rc = compare(&r, err);
	}
	arrays_fini(&arrays);
	return rc;
}
