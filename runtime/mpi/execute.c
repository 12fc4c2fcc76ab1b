/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run of a rank's program: see execute.h, and order.c for when sends leave.
 *
 * A receive goes straight to its place when it is one run that is stored, or the first to be
 * added, once the sends that read what it writes over are complete; else it is kept aside until
 * its turn. A large one is not posted before its place is free, as it would be copied: in its step
 * it waits for those sends where they are of earlier steps. A send goes straight from its place
 * when it is one run, else from a packed copy. All receives of a step are posted before any send of
 * that step is waited for; and before, for a place or for memory, sends of earlier steps are.
 * So by induction over steps every message finds its receive posted: nothing locks up.
 *
 * MPI is called by its PMPI names: what stands before the others for the program, as
 * libweft_mpi.so does, is none of this one's business.
 */
#include "runtime/mpi/execute.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "runtime/mpi/private.h"

/* Receives of later steps that are posted ahead: so many, and so many bytes kept aside. */
#define AHEAD 64
#define AHEAD_BYTES (INT64_C(4) << 20)
/* So many bytes are sooner copied than waited for. */
#define COPIED_BYTES (INT64_C(16) << 10)
/* Packed copies of earlier steps are waited for beyond this. */
#define PACKED_BYTES (INT64_C(16) << 20)

struct mpi_executor {
	const struct rank_program *p;
	MPI_Comm comm;
	struct mpi_order order;
	struct mpi_measure *measure;	/* or NULL */
	bool failed;
	/* Of each send: its request, its packed copy, whether it was started. */
	MPI_Request *send;
	char **packed;
	bool *started;
	/* Of each receive: its request, and where it is kept aside. */
	MPI_Request *receive;
	char **aside;
	/* Of each piece: its first element and the one after its last, in a vector of `total`; -1:
	 * of none yet. Divisions take as long as to send a short message. */
	int64_t *first, *end;
	int64_t total;
	int32_t *packs;		/* sends with a packed copy */
	struct arrays all;
	struct mpi_memory memory;	/* of packed copies, and of what is kept aside */
	char *work;
	int64_t work_bytes;
};

struct mpi_run {
	struct mpi_executor *x;
	const struct rank_program *p;
	struct mpi_elements el;
	int64_t total;
	bool in_place;		/* sums: RANK_IN is RANK_OUT */
	char *buf[3];		/* the first element of each buffer */
	int64_t posted, done;	/* receives */
	int64_t next;		/* sends that have left, in their order */
	int64_t complete;	/* sends from the first that are complete */
	int64_t n_packs;
	int64_t aside_bytes, packed_bytes;
	int64_t messages, elements;	/* sent */
	double step_began_s;
};

/* ---- making one ---- */

static int check(const struct rank_program *p, MPI_Comm comm, struct err *err)
{
	int rank, size;

	if (PMPI_Comm_rank(comm, &rank) || PMPI_Comm_size(comm, &size) ||
	    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)) {
		return err_set(err, WEFT_EINVAL, "no communicator to run a schedule on");
	}
	if (rank != p->rank || size != p->ranks) {
		return err_set(err, WEFT_EINVAL, "the program of rank %d of %d does not run on "
			       "rank %d of %d", p->rank, p->ranks, rank, size);
	}
	if (p->sends.n > INT_MAX || p->receives.n > INT_MAX) {
		return err_set(err, WEFT_ELIMIT, "rank %d: more than %d messages", rank, INT_MAX);
	}
	return 0;
}

int mpi_executor_new(const struct rank_program *p, MPI_Comm comm, struct mpi_executor **out,
		     struct err *err)
{
	struct mpi_executor *x;
	int rc = check(p, comm, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	x = x_new(1, sizeof(*x));
	x->p = p;
	x->comm = comm;
	arrays_add(&x->all, x->send, p->sends.n);
	arrays_add(&x->all, x->packed, p->sends.n);
	arrays_add(&x->all, x->started, p->sends.n);
	arrays_add(&x->all, x->packs, p->sends.n);
	arrays_add(&x->all, x->receive, p->receives.n);
	arrays_add(&x->all, x->aside, p->receives.n);
	arrays_add(&x->all, x->first, p->pieces.n);
	arrays_add(&x->all, x->end, p->pieces.n);
	x->total = -1;
	mpi_order_make(p, &x->order);
	*out = x;
	return 0;
}

/* After a failure MPI may still write to what was kept aside: that stays. */
void mpi_executor_free(struct mpi_executor *x)
{
	if (!x) {
		return;
	}
	mpi_order_fini(&x->order);
	arrays_fini(&x->all);
	mpi_memory_fini(&x->memory);
	free(x->work);
	free(x);
}

void mpi_executor_measure(struct mpi_executor *x, struct mpi_measure *m)
{
	x->measure = m;
}

/* ---- places ---- */

/* Of piece k of the program. */
static char *address(const struct mpi_run *r, int32_t k)
{
	return r->buf[r->p->pieces.v[k].buf] + r->x->first[k] * r->el.extent;
}

static int64_t elements(const struct mpi_run *r, int32_t k)
{
	return r->x->end[k] - r->x->first[k];
}

static int64_t elements_of(const struct mpi_run *r, const struct rank_message *m)
{
	int64_t n = 0;

	for (int32_t k = m->first_piece; k < m->first_piece + m->pieces; k++) {
		n += r->p->pieces.v[k].again ? 0 : elements(r, k);
	}
	return n;
}

static char *chunk(const struct mpi_run *r, enum rank_buf buf, int64_t k)
{
	return r->buf[buf] + rank_offset(r->p, r->total, k) * r->el.extent;
}

static int copy(const struct mpi_run *r, const struct rank_copy *c)
{
	int64_t from = rank_offset(r->p, r->total, c->from.first);
	int64_t end = rank_offset(r->p, r->total, (int64_t)c->from.first + c->from.count);

	return mpi_elements_copy(&r->el, chunk(r, c->from.buf, c->from.first),
				 chunk(r, c->to.buf, c->to.first), end - from);
}

/* ---- sends ---- */

static void drop_packed(struct mpi_run *r, int32_t i)
{
	if (r->x->packed[i]) {
		r->packed_bytes -= mpi_elements_bytes(&r->el, elements_of(r, &r->p->sends.v[i]));
		mpi_memory_give(&r->x->memory, r->x->packed[i]);
		r->x->packed[i] = NULL;
	}
}

/* Waits for packed sends of steps before this one, and for others that are complete. */
static int make_room(struct mpi_run *r, int step)
{
	int64_t kept = 0;
	int rc = MPI_SUCCESS, complete;

	for (int64_t k = 0; k < r->n_packs; k++) {
		int32_t i = r->x->packs[k];

		if (!rc && r->p->sends.v[i].step < step) {
			rc = PMPI_Wait(&r->x->send[i], MPI_STATUS_IGNORE);
			complete = !rc;
		} else if (rc || (rc = PMPI_Test(&r->x->send[i], &complete, MPI_STATUS_IGNORE))) {
			complete = 0;
		}
		if (complete) {
			drop_packed(r, i);
		} else {
			r->x->packs[kept++] = i;
		}
	}
	r->n_packs = kept;
	return rc;
}

/* The step whose receives are taken; after the last one there is none. */
static int step_in_turn(const struct mpi_run *r)
{
	return r->done < (int64_t)r->p->receives.n ? r->p->receives.v[r->done].step : r->p->steps;
}

/* The pieces of send i in a row of n elements. */
static int pack(struct mpi_run *r, int32_t i, int64_t n, const char **out)
{
	const struct rank_message *m = &r->p->sends.v[i];
	int64_t bytes = mpi_elements_bytes(&r->el, n);
	int turn = step_in_turn(r), rc = MPI_SUCCESS;
	char *to;

	if (r->packed_bytes + bytes > PACKED_BYTES) {
		rc = make_room(r, turn < m->step ? turn : m->step);
	}
	if (rc || !(r->x->packed[i] = mpi_memory_take(&r->x->memory, bytes))) {
		return rc ? rc : MPI_ERR_NO_MEM;
	}
	r->packed_bytes += bytes;
	r->x->packs[r->n_packs++] = i;
	*out = to = mpi_elements_first(&r->el, r->x->packed[i], n);
	for (int32_t k = m->first_piece; k < m->first_piece + m->pieces && !rc; k++) {
		rc = mpi_elements_copy(&r->el, address(r, k), to, elements(r, k));
		to += elements(r, k) * r->el.extent;
	}
	return rc;
}

static int start_send(struct mpi_run *r, int32_t i)
{
	const struct rank_message *m = &r->p->sends.v[i];
	int64_t n = elements_of(r, m);
	const char *from;
	int rc;

	r->x->started[i] = true;
	if (n == 0) {
		return MPI_SUCCESS;
	}
	r->messages++;
	r->elements += n;
	if (m->pieces == 1) {
		from = address(r, m->first_piece);
	} else if ((rc = pack(r, i, n, &from))) {
		return rc;
	}
	return mpi_elements_send(&r->el, from, n, m->peer, m->link, &r->x->send[i]);
}

/* Starts what may leave now; between barriers what belongs to the step. */
static int start_sends(struct mpi_run *r, int step)
{
	const struct mpi_order *o = &r->x->order;
	bool barriers = r->x->measure && r->x->measure->barriers;
	int rc = MPI_SUCCESS;

	while (!rc && r->next < (int64_t)r->p->sends.n &&
	       (barriers ? r->p->sends.v[r->next].step <= step : o->leave[r->next] <= r->done)) {
		rc = start_send(r, barriers ? (int32_t)r->next : o->send[r->next]);
		r->next++;
	}
	return rc;
}

/* Whether the first `count` sends are complete; waits for them if asked to. */
static int complete_sends(struct mpi_run *r, int64_t count, bool wait, bool *complete)
{
	int flag = 1, rc;

	for (; r->complete < count && r->x->started[r->complete]; r->complete++) {
		MPI_Request *q = &r->x->send[r->complete];

		rc = wait ? PMPI_Wait(q, MPI_STATUS_IGNORE)
			  : PMPI_Test(q, &flag, MPI_STATUS_IGNORE);
		if (rc) {
			return rc;
		}
		if (!flag) {
			break;
		}
	}
	*complete = r->complete >= count;
	return MPI_SUCCESS;
}

/* ---- receives ---- */

/* Whether a message may come to its place: nothing is done to what comes, or RANK_IN is added to
 * it there. */
static bool has_place(const struct mpi_run *r, const struct rank_message *m)
{
	const struct rank_piece *q = &r->p->pieces.v[m->first_piece];

	return m->pieces == 1 && (!q->reduce || (q->fresh && !r->in_place));
}

/* Whether the place of a receive is free; in its step, where it is worth it, waits for that. */
static int find_place(struct mpi_run *r, const struct rank_message *m, bool wait, bool *is_free)
{
	int64_t after = r->in_place ? m->in_place_after : m->after;
	int rc;

	wait = wait && (after == 0 || r->p->sends.v[after - 1].step < m->step);
	rc = complete_sends(r, after, wait, is_free);
	*is_free &= r->done >= m->behind;
	return rc;
}

static int take_aside(struct mpi_run *r, int64_t i, int64_t n, char **to)
{
	int64_t bytes = mpi_elements_bytes(&r->el, n);

	r->x->aside[i] = mpi_memory_take(&r->x->memory, bytes);
	if (!r->x->aside[i]) {
		return MPI_ERR_NO_MEM;
	}
	r->aside_bytes += bytes;
	*to = mpi_elements_first(&r->el, r->x->aside[i], n);
	return MPI_SUCCESS;
}

/* Where the next receive, of n elements, goes: its place, or aside; NULL: nowhere yet, as it is of
 * a later step than this one. */
static int receive_to(struct mpi_run *r, int step, int64_t n, char **to)
{
	const struct rank_message *m = &r->p->receives.v[r->posted];
	int64_t bytes = mpi_elements_bytes(&r->el, n);
	bool large = bytes > COPIED_BYTES, ahead = m->step > step, is_free;
	int rc;

	*to = NULL;
	if (has_place(r, m)) {
		rc = find_place(r, m, large && !ahead, &is_free);
		if (rc || is_free) {
			*to = address(r, m->first_piece);
			return rc;
		}
		if (large && ahead) {
			return MPI_SUCCESS;
		}
	}
	if (ahead && r->aside_bytes + bytes > AHEAD_BYTES) {
		return MPI_SUCCESS;
	}
	return take_aside(r, r->posted, n, to);
}

/* All receives of the step, and some of later ones. */
static int post_receives(struct mpi_run *r, int step)
{
	int rc;
	char *to;

	for (; r->posted < (int64_t)r->p->receives.n; r->posted++) {
		const struct rank_message *m = &r->p->receives.v[r->posted];
		int64_t n = elements_of(r, m);

		if (m->step > step && r->posted - r->done >= AHEAD) {
			break;
		}
		if (n == 0) {
			continue;
		}
		if ((rc = receive_to(r, step, n, &to)) || !to ||
		    (rc = mpi_elements_receive(&r->el, to, n, m->peer, m->link,
					       &r->x->receive[r->posted]))) {
			return rc;
		}
	}
	return MPI_SUCCESS;
}

/* Stores or adds piece k of what came, which may be in its place; and stores it where it waits to
 * be forwarded. */
static int store_piece(struct mpi_run *r, int32_t k, const char *from)
{
	const struct rank_piece *q = &r->p->pieces.v[k];
	int64_t n = elements(r, k);
	char *to = address(r, k);
	int rc;

	if (q->keep &&
	    (rc = mpi_elements_copy(&r->el, from, chunk(r, RANK_WORK, q->kept), n))) {
		return rc;
	}
	if (q->reduce && (!q->fresh || (r->in_place && q->buf != RANK_WORK))) {
		return mpi_elements_sum(&r->el, from, to, n);
	}
	if ((rc = mpi_elements_copy(&r->el, from, to, n)) || !q->fresh) {
		return rc;
	}
	return mpi_elements_sum(&r->el, chunk(r, RANK_IN, rank_own_first(r->p, q)), to, n);
}

/* Stores a message that has come. */
static int store(struct mpi_run *r, int64_t i)
{
	const struct rank_message *m = &r->p->receives.v[i];
	int64_t n = elements_of(r, m);
	char *aside = r->x->aside[i];
	const char *from = aside ? mpi_elements_first(&r->el, aside, n)
				 : address(r, m->first_piece);
	bool complete;
	int rc = complete_sends(r, r->in_place ? m->in_place_after : m->after, true, &complete);

	for (int32_t k = m->first_piece; k < m->first_piece + m->pieces && !rc; k++) {
		from -= r->p->pieces.v[k].again ? elements(r, k) * r->el.extent : 0;
		rc = store_piece(r, k, from);
		from += elements(r, k) * r->el.extent;
	}
	if (aside) {
		r->aside_bytes -= mpi_elements_bytes(&r->el, n);
		mpi_memory_give(&r->x->memory, aside);
		r->x->aside[i] = NULL;
	}
	return rc;
}

static int take_receive(struct mpi_run *r)
{
	int rc = PMPI_Wait(&r->x->receive[r->done], MPI_STATUS_IGNORE);

	if (!rc) {
		rc = store(r, r->done);
	}
	r->done++;
	return rc;
}

/* ---- the run ---- */

static int end_step(struct mpi_run *r, int step)
{
	const struct mpi_measure *m = r->x->measure;
	bool complete;
	int rc;

	if (!m) {
		return MPI_SUCCESS;
	}
	if (m->step_s) {
		m->step_s[step] = PMPI_Wtime() - r->step_began_s;
	}
	if (m->barriers && ((rc = complete_sends(r, r->next, true, &complete)) ||
			    (rc = PMPI_Barrier(r->x->comm)))) {
		return rc;
	}
	r->step_began_s = PMPI_Wtime();
	return MPI_SUCCESS;
}

static int run_step(struct mpi_run *r, int step)
{
	int rc;

	if ((rc = post_receives(r, step)) || (rc = start_sends(r, step))) {
		return rc;
	}
	while (r->done < r->x->order.step_end[step]) {
		if ((rc = take_receive(r)) || (rc = start_sends(r, step)) ||
		    (rc = post_receives(r, step))) {
			return rc;
		}
	}
	return end_step(r, step);
}

/* An all-to-all stores in out before all of in is sent, and so does a reduce-scatter, whose own
 * shard lies elsewhere in it. */
static bool needs_copy_of_in(const struct mpi_run *r)
{
	enum coll_kind kind = r->p->kind;
	const char *in = r->buf[RANK_IN], *out = r->buf[RANK_OUT];
	int64_t bytes = mpi_elements_bytes(&r->el, r->total);

	return (kind == COLL_ALLTOALL || kind == COLL_REDUCE_SCATTER) && in < out + bytes &&
	       out < in + bytes;
}

/* RANK_WORK, and a copy of in where it needs one. Memory is kept for later runs. */
static int set_up_work(struct mpi_run *r)
{
	int64_t shards = r->p->shards[RANK_WORK];
	int64_t n = rank_offset(r->p, r->total, shards * r->p->chunks);
	int64_t copied = needs_copy_of_in(r) ? r->total : 0;
	int64_t bytes = mpi_elements_bytes(&r->el, n + copied);
	struct mpi_executor *x = r->x;
	char *copy_of_in;
	int rc;

	if (bytes > x->work_bytes) {
		free(x->work);
		/* As large as the caller's data: where there is no room, the caller is told. */
		x->work = malloc((size_t)bytes);
		x->work_bytes = x->work ? bytes : 0;
	}
	if (!x->work) {
		return MPI_ERR_NO_MEM;
	}
	r->buf[RANK_WORK] = mpi_elements_first(&r->el, x->work, n + copied);
	if (copied == 0) {
		return MPI_SUCCESS;
	}
	copy_of_in = r->buf[RANK_WORK] + n * r->el.extent;
	rc = mpi_elements_copy(&r->el, r->buf[RANK_IN], copy_of_in, copied);
	r->buf[RANK_IN] = copy_of_in;
	return rc;
}

static int run(struct mpi_run *r)
{
	bool complete;
	int rc;

	if ((rc = set_up_work(r))) {
		return rc;
	}
	r->in_place = r->buf[RANK_IN] == r->buf[RANK_OUT];
	/* The first messages are on their way when the own data is copied. */
	if ((rc = post_receives(r, 0)) || (rc = start_sends(r, 0)) ||
	    (r->p->own.from.count > 0 && (rc = copy(r, &r->p->own)))) {
		return rc;
	}
	for (int step = 0; step < r->p->steps; step++) {
		rc = run_step(r, step);
		if (rc) {
			return rc;
		}
	}
	rc = complete_sends(r, (int64_t)r->p->sends.n, true, &complete);
	return rc ? rc : make_room(r, r->p->steps);
}

static void set_total(struct mpi_executor *x, int64_t total)
{
	for (size_t k = 0; k < x->p->pieces.n && x->total != total; k++) {
		const struct rank_piece *q = &x->p->pieces.v[k];

		x->first[k] = rank_offset(x->p, total, q->first);
		x->end[k] = rank_offset(x->p, total, (int64_t)q->first + q->count);
	}
	x->total = total;
}

int mpi_executor_run(struct mpi_executor *x, const void *in, void *out, int64_t total,
		     MPI_Datatype type, MPI_Op op)
{
	struct mpi_run r = { .x = x, .p = x->p, .total = total, .buf = { (char *)in, out } };
	int rc;

	if (x->failed) {
		return MPI_ERR_OTHER;
	}
	r.step_began_s = x->measure ? PMPI_Wtime() : 0;
	set_total(x, total);
	memset(x->started, 0, x->p->sends.n);
	for (size_t i = 0; i < x->p->sends.n; i++) {
		x->send[i] = MPI_REQUEST_NULL;
	}
	for (size_t i = 0; i < x->p->receives.n; i++) {
		x->receive[i] = MPI_REQUEST_NULL;
	}
	rc = mpi_elements_of(x->comm, x->p->rank, type, op, &r.el);
	if (!rc) {
		rc = run(&r);
	}
	x->failed = rc != MPI_SUCCESS;
	if (x->measure) {
		x->measure->messages = r.messages;
		x->measure->elements = r.elements;
	}
	return rc;
}
