/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run of a rank's program: see execute.h, and order.c for when sends leave.
 *
 * A receive goes straight to its place when it is one run that nothing has to be added
 * to and the sends that read what it writes over are complete as it is posted; else it is
 * kept aside until its turn. A send goes straight from its place when it is one run, else from
 * a packed copy. All receives of a step are posted before any send of that step is waited
 * for; and what is waited for to have memory for packed copies are sends of earlier steps.
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

static char *address(const struct mpi_run *r, const struct rank_piece *q)
{
	return r->buf[q->buf] + rank_offset(r->p, r->total, q->first) * r->el.extent;
}

static int64_t piece_elements(const struct mpi_run *r, const struct rank_piece *q)
{
	return rank_offset(r->p, r->total, (int64_t)q->first + q->count) -
	       rank_offset(r->p, r->total, q->first);
}

static int copy(const struct mpi_run *r, const struct rank_copy *c)
{
	if (c->from.count == 0) {
		return MPI_SUCCESS;
	}
	return mpi_elements_copy(&r->el, address(r, &c->from), address(r, &c->to),
				 piece_elements(r, &c->from));
}

/* ---- sends ---- */

static void drop_packed(struct mpi_run *r, int32_t i)
{
	if (r->x->packed[i]) {
		r->packed_bytes -= mpi_elements_bytes(&r->el, rank_elements(r->p, &r->p->sends.v[i],
									    r->total));
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
		const struct rank_piece *q = &r->p->pieces.v[k];

		rc = mpi_elements_copy(&r->el, address(r, q), to, piece_elements(r, q));
		to += piece_elements(r, q) * r->el.extent;
	}
	return rc;
}

static int start_send(struct mpi_run *r, int32_t i)
{
	const struct rank_message *m = &r->p->sends.v[i];
	int64_t n = rank_elements(r->p, m, r->total);
	const char *from;
	int rc;

	r->x->started[i] = true;
	if (n == 0) {
		return MPI_SUCCESS;
	}
	r->messages++;
	r->elements += n;
	if (m->pieces == 1) {
		from = address(r, &r->p->pieces.v[m->first_piece]);
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

/* Where a receive of n elements goes: its place, or aside. */
static int receive_to(struct mpi_run *r, int64_t i, int64_t n, char **to)
{
	const struct rank_message *m = &r->p->receives.v[i];
	const struct rank_piece *q = &r->p->pieces.v[m->first_piece];
	int64_t bytes = mpi_elements_bytes(&r->el, n);
	bool free_place = false;
	int rc = MPI_SUCCESS;

	if (m->pieces == 1 && !q->reduce) {
		rc = complete_sends(r, m->after, false, &free_place);
	}
	if (rc || free_place) {
		*to = address(r, q);
		return rc;
	}
	r->x->aside[i] = mpi_memory_take(&r->x->memory, bytes);
	if (!r->x->aside[i]) {
		return MPI_ERR_NO_MEM;
	}
	r->aside_bytes += bytes;
	*to = mpi_elements_first(&r->el, r->x->aside[i], n);
	return MPI_SUCCESS;
}

/* All receives of the step, and some of later ones. */
static int post_receives(struct mpi_run *r, int step)
{
	int rc = MPI_SUCCESS;
	char *to;

	while (!rc && r->posted < (int64_t)r->p->receives.n) {
		const struct rank_message *m = &r->p->receives.v[r->posted];
		int64_t n = rank_elements(r->p, m, r->total);

		if (m->step > step && (r->posted - r->done >= AHEAD ||
		    r->aside_bytes + mpi_elements_bytes(&r->el, n) > AHEAD_BYTES)) {
			break;
		}
		if (n > 0 && !(rc = receive_to(r, r->posted, n, &to))) {
			rc = mpi_elements_receive(&r->el, to, n, m->peer, m->link,
						  &r->x->receive[r->posted]);
		}
		r->posted++;
	}
	return rc;
}

/* Stores what came in the place where it waits to be forwarded. */
static int keep(struct mpi_run *r, const struct rank_piece *q, const char *from)
{
	const struct rank_piece to = { .buf = RANK_WORK, .first = q->kept, .count = q->count };

	return mpi_elements_copy(&r->el, from, address(r, &to), piece_elements(r, q));
}

/* Stores what was kept aside: adds it, or copies it. */
static int store(struct mpi_run *r, int64_t i)
{
	const struct rank_message *m = &r->p->receives.v[i];
	int64_t n = rank_elements(r->p, m, r->total);
	const char *from = mpi_elements_first(&r->el, r->x->aside[i], n);
	bool complete;
	int rc = complete_sends(r, m->after, true, &complete);

	for (int32_t k = m->first_piece; k < m->first_piece + m->pieces && !rc; k++) {
		const struct rank_piece *q = &r->p->pieces.v[k];
		int64_t count = piece_elements(r, q);

		if (q->keep && (rc = keep(r, q, from))) {
			break;
		}
		rc = q->reduce ? mpi_elements_sum(&r->el, from, address(r, q), count)
			       : mpi_elements_copy(&r->el, from, address(r, q), count);
		from += count * r->el.extent;
	}
	r->aside_bytes -= mpi_elements_bytes(&r->el, n);
	mpi_memory_give(&r->x->memory, r->x->aside[i]);
	r->x->aside[i] = NULL;
	return rc;
}

static int take_receive(struct mpi_run *r)
{
	int rc = PMPI_Wait(&r->x->receive[r->done], MPI_STATUS_IGNORE);

	if (!rc && r->x->aside[r->done]) {
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

/* An all-to-all stores in out before all of in is sent. */
static bool needs_copy_of_in(const struct mpi_run *r)
{
	const struct rank_program *p = r->p;
	const char *in = r->buf[RANK_IN], *out = r->buf[RANK_OUT];
	int64_t bytes = mpi_elements_bytes(&r->el, r->total);

	return p->kind == COLL_ALLTOALL && in < out + bytes && out < in + bytes;
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

	if ((rc = set_up_work(r)) || (rc = copy(r, &r->p->begin))) {
		return rc;
	}
	for (int step = 0; step < r->p->steps; step++) {
		rc = run_step(r, step);
		if (rc) {
			return rc;
		}
	}
	if ((rc = complete_sends(r, (int64_t)r->p->sends.n, true, &complete)) ||
	    (rc = make_room(r, r->p->steps))) {
		return rc;
	}
	return copy(r, &r->p->end);
}

int mpi_executor_run(struct mpi_executor *x, const void *in, void *out, int64_t total,
		     MPI_Datatype type, MPI_Op op)
{
	struct mpi_run r = { .x = x, .p = x->p, .total = total, .buf = { (char *)in, out } };
	int rc;

	if (x->failed) {
		return MPI_ERR_OTHER;
	}
	r.step_began_s = PMPI_Wtime();
	memset(x->started, 0, x->p->sends.n);
	for (size_t i = 0; i < x->p->sends.n; i++) {
		x->send[i] = MPI_REQUEST_NULL;
	}
	for (size_t i = 0; i < x->p->receives.n; i++) {
		x->receive[i] = MPI_REQUEST_NULL;
	}
	rc = mpi_elements_of(x->comm, type, op, &r.el);
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
