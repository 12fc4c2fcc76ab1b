/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data races between the threadblocks of a rank; see msccl.h.
 *
 * Vector clocks over the threadblocks of a rank order its steps by program
 * order and dependencies. Two steps that they leave unordered may still be
 * ordered through other ranks (a send before its receive): only then is
 * the whole program searched backwards.
 *
 * A kernel divides a step, and what it receives it passes on before all has
 * come. So where a step is reached through the steps before it in a
 * threadblock, through a wait, or through one of these, all of it is over.
 * But along messages alone, from the send through steps that pass on to the
 * receive, chunk k is only known to follow chunk k. That holds however steps
 * are divided, as both ends of a message divide it alike.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "runtime/msccl/private.h"

/* An access to a cell by a step of the rank at hand. */
struct msccl_access {
	int32_t tb, step;	/* threadblock of the rank */
	int32_t at;		/* which chunk of the step */
	int32_t before;		/* older reads of the cell, or -1 */
};

struct msccl_race_search {
	struct msccl_proof *c;
	const struct msccl *p;
	bool inplace;
	int rank, n;		/* the rank at hand, its threadblocks */
	int32_t *clock;		/* by op of the rank and threadblock */
	int32_t *row;		/* by op of the program: its clock */
	int32_t rows;
	struct msccl_access *wrote;	/* by cell; tb -1: never */
	int32_t *read;		/* by cell: newest of the reads, or -1 */
	VEC(struct msccl_access) reads;
	uint32_t *seen;		/* by op: the search that met it last */
	uint32_t search;
	int32_t *when;		/* by op: its place in the execution */
	int32_t since;		/* what began before that is of no interest */
	VEC(int64_t) open;	/* ops that a search has yet to expand */
	VEC(int32_t) owner;	/* threadblock of an op */
};

static int32_t *clock_at(struct msccl_race_search *x, int64_t op)
{
	return x->clock + (size_t)x->row[op] * (size_t)x->n;
}

static void raise_to(int32_t *clock, const int32_t *other, int n)
{
	for (int t = 0; t < n; t++) {
		clock[t] = clock[t] > other[t] ? clock[t] : other[t];
	}
}

static const struct msccl_step *step_of(const struct msccl_race_search *x, int tb, int step)
{
	return &x->c->tbs[tb].tb->steps.v[step];
}

/* Gives a step its clock: what is before it in its threadblock, and what it waits
 * for. */
static void tick(struct msccl_race_search *x, int tb, int step)
{
	const struct msccl_proof_tb *t = &x->c->tbs[tb];
	const struct msccl_step *s = step_of(x, tb, step);
	int32_t *mine;

	x->row[t->first_op + step] = x->rows++;
	mine = clock_at(x, t->first_op + step);
	for (int k = 0; k < x->n; k++) {
		mine[k] = -1;
	}
	if (step > 0) {
		raise_to(mine, clock_at(x, t->first_op + step - 1), x->n);
	}
	if (s->dep_tb >= 0) {
		int dep = x->c->base[x->rank] + s->dep_tb;

		raise_to(mine, clock_at(x, x->c->tbs[dep].first_op + s->dep_step), x->n);
	}
	mine[t->id] = step;
}

/* ---- order through other ranks ---- */

static void visit(struct msccl_race_search *x, int64_t op)
{
	if (op < 0 || x->when[op] < x->since || x->seen[op] == x->search) {
		return;
	}
	x->seen[op] = x->search;
	vec_push(&x->open, op);
}

/* What is over when this op begins: the op before it, what it waits for. */
static void visit_before(struct msccl_race_search *x, int64_t op)
{
	const struct msccl_proof_tb *t = &x->c->tbs[x->owner.v[op]];
	const struct msccl_step *s = &t->tb->steps.v[op - t->first_op];

	if (op > t->first_op) {
		visit(x, op - 1);
	}
	if (s->dep_tb >= 0) {
		int dep = x->c->base[t->rank] + s->dep_tb;

		visit(x, x->c->tbs[dep].first_op + s->dep_step);
	}
}

/* Whether all of op `early`, or with `same` the chunk of it that has the same
 * number, is over before `late` touches its chunk. */
static bool reaches(struct msccl_race_search *x, int64_t early, int64_t late, bool same)
{
	x->search++;
	x->since = x->when[early];
	x->open.n = 0;
	for (int64_t op = late; op >= 0; op = x->c->sent_by[op]) {
		if (op == early && same) {
			return true;
		}
		visit_before(x, op);
	}
	while (x->open.n > 0) {
		int64_t op = x->open.v[--x->open.n];

		if (op == early) {
			return true;
		}
		visit_before(x, op);
		visit(x, x->c->sent_by[op]);
	}
	return false;
}

/* ---- cells ---- */

/* Of an earlier step of the same threadblock: a send without a barrier may still
 * read when the next step begins, but for the chunk of the same number, which the
 * same threads move. */
static bool still_reads(const struct msccl_race_search *x, const struct msccl_access *e, int tb,
			int step, int at)
{
	const struct msccl_step *s = step_of(x, tb, step);

	return x->c->early_flags && e->step + 1 == step && e->at != at &&
	       step_of(x, tb, e->step)->type == MSCCL_SEND && !msccl_sends(s->type) &&
	       s->dep_tb < 0;
}

/* The earlier touch must be over when this op begins. */
static int ordered(struct msccl_race_search *x, const struct msccl_access *e, int tb, int step,
		   int at, struct err *err)
{
	const struct msccl_proof_tb *t = &x->c->tbs[tb];
	const struct msccl_proof_tb *o = &x->c->tbs[x->c->base[x->rank] + e->tb];
	bool over;

	if (e->tb == t->id) {
		over = !still_reads(x, e, tb, step, at);
	} else {
		over = e->step <= clock_at(x, t->first_op + step)[e->tb] ||
		       reaches(x, o->first_op + e->step, t->first_op + step, e->at == at);
	}
	return over ? 0 : err_set(err, WEFT_EVERIFY,
				  "rank %d: threadblock %d step %d and "
				  "threadblock %d step %d touch the same chunk "
				  "in no certain order", x->rank, e->tb, e->step,
				  t->id, step);
}

/* Chunk `at` of a step reads cell c. */
static int read_cell(struct msccl_race_search *x, int64_t c, int tb, int step, int at,
		     struct err *err)
{
	int rc = x->wrote[c].tb < 0 ? 0 : ordered(x, &x->wrote[c], tb, step, at, err);

	if (!rc) {
		vec_push(&x->reads, (struct msccl_access){ x->c->tbs[tb].id, step, at,
							   x->read[c] });
	}
	x->read[c] = rc ? -1 : (int32_t)x->reads.n - 1;
	return rc;
}

static int write_cell(struct msccl_race_search *x, int64_t c, int tb, int step, int at,
		      struct err *err)
{
	int rc = x->wrote[c].tb < 0 ? 0 : ordered(x, &x->wrote[c], tb, step, at, err);

	for (int32_t k = x->read[c]; k >= 0 && !rc; k = x->reads.v[k].before) {
		rc = ordered(x, &x->reads.v[k], tb, step, at, err);
	}
	x->read[c] = -1;
	x->wrote[c] = (struct msccl_access){ x->c->tbs[tb].id, step, at, -1 };
	return rc;
}

/* A step moves several chunks at a time, in no certain order. */
static int overlap(const struct msccl_race_search *x, int tb, int step, struct err *err)
{
	return err_set(err, WEFT_EVERIFY,
		       "rank %d threadblock %d step %d writes chunks that it "
		       "reads elsewhere", x->rank, x->c->tbs[tb].id, step);
}

static int touch_cells(struct msccl_race_search *x, int tb, int step, struct err *err)
{
	const struct msccl_step *s = step_of(x, tb, step);
	bool reads = msccl_reads(s->type), writes = msccl_writes(s->type);
	int64_t from = 0, to = 0;
	int rc = 0;

	if (reads) {
		from = msccl_cell(x->p, x->rank, s->src_buf, s->src, x->inplace);
	}
	if (writes) {
		to = msccl_cell(x->p, x->rank, s->dst_buf, s->dst, x->inplace);
	}
	/* A chunk copied onto itself does not change. */
	if (s->type == MSCCL_COPY && from == to) {
		return 0;
	}
	if (reads && writes && from != to && llabs(from - to) < s->cnt) {
		return overlap(x, tb, step, err);
	}
	for (int32_t k = 0; k < s->cnt && !rc && reads; k++) {
		rc = read_cell(x, from + k, tb, step, k, err);
	}
	for (int32_t k = 0; k < s->cnt && !rc && writes; k++) {
		rc = write_cell(x, to + k, tb, step, k, err);
	}
	return rc;
}

/* ---- a rank, and all of them ---- */

static int race_rank(struct msccl_race_search *x, const struct msccl_proof_op *order, int64_t n,
		     struct err *err)
{
	int64_t cells = msccl_cells(x->p, x->rank);
	struct arrays arrays = { 0 };
	int rc = 0;

	x->n = (int)x->p->gpus[x->rank].tbs.n;
	x->rows = 0;
	x->reads.n = 0;
	arrays_add(&arrays, x->clock, n * x->n);
	arrays_add(&arrays, x->wrote, cells);
	arrays_add(&arrays, x->read, cells);
	for (int64_t c = 0; c < cells; c++) {
		x->wrote[c].tb = -1;
		x->read[c] = -1;
	}
	for (int64_t i = 0; i < n && !rc; i++) {
		tick(x, order[i].tb, order[i].step);
		rc = touch_cells(x, order[i].tb, order[i].step, err);
	}
	arrays_fini(&arrays);
	return rc;
}

/* The execution by rank, each rank's steps in order; start[rank] ends it. */
static struct msccl_proof_op *split(const struct msccl_proof *c, int64_t *start)
{
	struct msccl_proof_op *out = x_alloc((size_t)c->n_ops + 1, sizeof(*out));

	for (int64_t i = 0; i < c->n_ops; i++) {
		start[c->tbs[c->order[i].tb].rank + 1]++;
	}
	for (int r = 0; r < c->p->ranks; r++) {
		start[r + 1] += start[r];
	}
	for (int64_t i = c->n_ops; i-- > 0;) {
		int rank = c->tbs[c->order[i].tb].rank;

		out[--start[rank + 1]] = c->order[i];
	}
	return out;
}

static void race_init(struct msccl_race_search *x)
{
	for (int n = 0; n < x->c->base[x->p->ranks]; n++) {
		for (size_t k = 0; k < x->c->tbs[n].tb->steps.n; k++) {
			vec_push(&x->owner, n);
		}
	}
	x->row = x_new((size_t)x->c->n_ops + 1, sizeof(*x->row));
	x->seen = x_new((size_t)x->c->n_ops + 1, sizeof(*x->seen));
	x->when = x_new((size_t)x->c->n_ops + 1, sizeof(*x->when));
	for (int64_t i = 0; i < x->c->n_ops; i++) {
		const struct msccl_proof_op *o = &x->c->order[i];

		x->when[x->c->tbs[o->tb].first_op + o->step] = (int32_t)i;
	}
}

int msccl_check_races(struct msccl_proof *c, bool inplace, struct err *err)
{
	struct msccl_race_search x = { .c = c, .p = c->p, .inplace = inplace };
	int ranks = c->p->ranks;
	int64_t *start = x_new((size_t)ranks + 2, sizeof(*start));
	struct msccl_proof_op *order = split(c, start);
	int rc = 0;

	race_init(&x);
	/* Filled from the end, start[r + 1] became the begin of rank r. */
	for (int r = 0; r < ranks && !rc; r++) {
		int64_t from = start[r + 1];
		int64_t to = r + 1 < ranks ? start[r + 2] : c->n_ops;

		x.rank = r;
		rc = race_rank(&x, order + from, to - from, err);
	}
	free(order);
	free(start);
	free(x.row);
	free(x.seen);
	free(x.when);
	vec_fini(&x.reads);
	vec_fini(&x.open);
	vec_fini(&x.owner);
	return rc;
}
