/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that a program makes: what MPI_Init and MPI_Finalize need beside MPI, and the five
 * collectives.
 *
 * A call is taken where an entry of the table is for its collective, the ranks of its
 * communicator, its bytes and its root; all that decides this is alike on all ranks of a correct
 * program. Then MPI gets the same call with no elements: Open MPI checks its arguments,
 * reports what is wrong with them as it always does, and returns without a message.
 *
 * Sums run on the program's own data, in its type and operation. What only copies runs on
 * bytes, packed where a type is not one of MPI's own: the types of two ranks may differ, their
 * bytes may not. Packed data is that of one kind of machine.
 */
#include "runtime/preload/private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A call of a collective, and what runs it. */
struct preload_call {
	enum coll_kind kind;
	MPI_Comm comm;
	const void *in;		/* may be MPI_IN_PLACE; of a broadcast not set */
	int in_count;		/* these two of all-gather and all-to-all */
	MPI_Datatype in_type;
	void *out;
	int count, root;
	MPI_Datatype type;
	MPI_Op op;		/* of sums */
	/* Set by choose(): */
	int64_t total;		/* elements of the vector; of copies its bytes */
	struct preload_comm *state;
	struct preload_use *use;
};

/* ---- choosing ---- */

/* What can be told before the communicator is looked at. */
static enum preload_fate check_values(const struct preload_call *call)
{
	int commutes = 1;

	/* One buffer for both: MPI says so only where there are elements. */
	bool same = call->kind == COLL_ALLREDUCE && call->in == call->out && call->count > 1 &&
		    call->in != MPI_BOTTOM;

	if (!preload.n) {
		return PRELOAD_NO_SCHEDULE;
	}
	if (!call->comm || call->comm == MPI_COMM_NULL || call->count < 0 || !call->type ||
	    call->type == MPI_DATATYPE_NULL || same) {
		return PRELOAD_ARGUMENTS;
	}
	if (coll_is_sum(call->kind)) {
		if (!call->op || call->op == MPI_OP_NULL) {
			return PRELOAD_ARGUMENTS;
		}
		if (call->op == MPI_REPLACE || call->op == MPI_NO_OP ||
		    PMPI_Op_commutative(call->op, &commutes) || !commutes) {
			return PRELOAD_OP;
		}
	}
	return call->count ? PRELOAD_TAKEN : PRELOAD_EMPTY;
}

/* Sets total; *bytes: of the vector. False: beyond 63 bits, or what packing can count. */
static bool count_bytes(struct preload_call *call, int64_t *bytes)
{
	bool is_sum = coll_is_sum(call->kind);
	bool in_shards = call->kind != COLL_ALLREDUCE && call->kind != COLL_BROADCAST;
	__int128 elements = (__int128)call->count * (in_shards ? call->state->size : 1);
	MPI_Count size = 0;

	PMPI_Type_size_x(call->type, &size);
	if (size == MPI_UNDEFINED || elements * size > INT64_MAX ||
	    (!is_sum && (__int128)call->count * size > INT_MAX)) {
		return false;
	}
	*bytes = (int64_t)(elements * size);
	call->total = is_sum ? (int64_t)elements : *bytes;
	return true;
}

/* The first entry that fits, else the nearest reason. */
static enum preload_fate find_use(struct preload_call *call, int64_t bytes)
{
	enum preload_fate fate = PRELOAD_NO_SCHEDULE;

	for (int i = 0; i < call->state->n_uses; i++) {
		struct preload_use *use = &call->state->uses[i];
		const struct preload_entry *e = &preload.entries[use->entry];

		if (e->kind != (int)call->kind) {
			continue;
		}
		if (bytes < e->min_bytes || bytes > e->max_bytes) {
			fate = fate == PRELOAD_ROOT ? fate : PRELOAD_NO_SIZE;
		} else if (coll_has_root(call->kind) && e->root != call->root) {
			fate = PRELOAD_ROOT;
		} else {
			call->use = use;
			return PRELOAD_TAKEN;
		}
	}
	return fate;
}

/* *rc: an error of finding out. Local. */
static enum preload_fate choose(struct preload_call *call, int *rc)
{
	enum preload_fate fate = check_values(call);
	int64_t bytes;

	*rc = fate == PRELOAD_TAKEN ? preload_comm_of(call->comm, &call->state) : MPI_SUCCESS;
	if (fate != PRELOAD_TAKEN || *rc) {
		return fate;
	}
	if (call->state->inter || call->state->mixed) {
		return call->state->inter ? PRELOAD_INTER : PRELOAD_MIXED;
	}
	if (call->state->size == 1) {
		return PRELOAD_EMPTY;
	}
	if (!count_bytes(call, &bytes)) {
		return PRELOAD_TOO_LARGE;
	}
	return bytes ? find_use(call, bytes) : PRELOAD_EMPTY;
}

/* What MPI says to the same call without elements; a wrong number of them stays. */
static int let_mpi_check(const struct preload_call *c)
{
	int in_count = c->in_count < 0 ? c->in_count : 0;

	switch (c->kind) {
	case COLL_ALLREDUCE:
		return PMPI_Allreduce(c->in, c->out, 0, c->type, c->op, c->comm);
	case COLL_REDUCE_SCATTER:
		return PMPI_Reduce_scatter_block(c->in, c->out, 0, c->type, c->op, c->comm);
	case COLL_ALLGATHER:
		return PMPI_Allgather(c->in, in_count, c->in_type, c->out, 0, c->type, c->comm);
	case COLL_ALLTOALL:
		return PMPI_Alltoall(c->in, in_count, c->in_type, c->out, 0, c->type, c->comm);
	default:
		return PMPI_Bcast(c->out, 0, c->type, c->root, c->comm);
	}
}

/* ---- sums ---- */

/* The executor knows in place by in being out. */
static int run_sum(const struct preload_call *c)
{
	return mpi_executor_run(c->use->executor, c->in == MPI_IN_PLACE ? c->out : c->in, c->out,
				c->total, c->type, c->op);
}

/* ---- copies ---- */

/* Bytes of the program's data: where it lies, or packed in memory of ours. */
struct preload_bytes {
	void *at;
	void *owned;		/* NULL: where it lies */
};

/* Room for what the executor writes: what is not dense has to be unpacked from it. */
static int make_room(const struct preload_data *d, struct preload_bytes *b)
{
	if (preload_is_dense(d->type)) {
		b->at = d->at;
		return MPI_SUCCESS;
	}
	b->at = b->owned = malloc((size_t)(d->block_bytes * d->blocks));
	return b->at ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* What the executor reads. */
static int make_packed(const struct preload_data *d, MPI_Comm comm, struct preload_bytes *b)
{
	int rc = make_room(d, b);

	return rc || !b->owned ? rc : preload_pack(d, b->owned, comm);
}

static int copy_between(const struct preload_call *call, const struct preload_data *in,
			const struct preload_data *out)
{
	MPI_Comm own = call->state->own;
	struct preload_bytes from = { 0 }, to = { 0 };
	int rc;

	if (!(rc = make_packed(in, own, &from)) && !(rc = make_room(out, &to)) &&
	    !(rc = mpi_executor_run(call->use->executor, from.at, to.at, call->total, MPI_BYTE,
				    MPI_OP_NULL)) &&
	    to.owned) {
		rc = preload_unpack(out, to.owned, own);
	}
	free(from.owned);
	free(to.owned);
	return rc;
}

/* Allgather and all-to-all: what is received has the size, in shards. */
static int run_shards(const struct preload_call *c)
{
	int ranks = c->state->size;
	struct preload_data to = { c->out, ranks, c->count, c->type, c->total / ranks };
	struct preload_data from = { (void *)(uintptr_t)c->in, ranks, c->in_count, c->in_type,
				     to.block_bytes };
	MPI_Count size = 0;

	if (c->in == MPI_IN_PLACE) {
		from = to;
		from.at = c->kind == COLL_ALLGATHER ? preload_block(&to, c->state->rank) : c->out;
	} else if (PMPI_Type_size_x(c->in_type, &size) || size * c->in_count != to.block_bytes) {
		return MPI_ERR_TRUNCATE;
	}
	from.blocks = c->kind == COLL_ALLGATHER ? 1 : ranks;
	return copy_between(c, &from, &to);
}

/* The root's data is packed, that of all others unpacked. */
static int run_broadcast(const struct preload_call *c)
{
	struct preload_data d = { c->out, 1, c->count, c->type, c->total };
	bool is_root = c->state->rank == c->root;
	struct preload_bytes b = { 0 };
	int rc = is_root ? make_packed(&d, c->state->own, &b) : make_room(&d, &b);

	if (!rc) {
		rc = mpi_executor_run(c->use->executor, NULL, b.at, c->total, MPI_BYTE,
				      MPI_OP_NULL);
	}
	if (!rc && b.owned && !is_root) {
		rc = preload_unpack(&d, b.owned, c->state->own);
	}
	free(b.owned);
	return rc;
}

/* ---- the calls ---- */

static int run(const struct preload_call *call)
{
	if (coll_is_sum(call->kind)) {
		return run_sum(call);
	}
	return coll_has_root(call->kind) ? run_broadcast(call) : run_shards(call);
}

/* What the program is told: errors go through the communicator's handler. */
static int tell(MPI_Comm comm, int code)
{
	if (code != MPI_SUCCESS) {
		PMPI_Comm_call_errhandler(comm, code);
	}
	return code;
}

/* Whether the call needs MPI no more: *rc is what the program gets. Counts it. */
static bool take(struct preload_call *call, int *rc)
{
	enum preload_fate fate = choose(call, rc);

	if (*rc) {
		tell(call->comm, *rc);
		return true;
	}
	if (fate == PRELOAD_TAKEN && (*rc = let_mpi_check(call))) {
		fate = PRELOAD_ARGUMENTS;	/* as MPI has told the program */
	} else if (fate == PRELOAD_TAKEN &&
		   !preload_comm_ready(call->state, call->use, call->comm)) {
		fate = PRELOAD_REFUSED;
	}
	atomic_fetch_add_explicit(&preload.calls[call->kind][fate], 1, memory_order_relaxed);
	if (fate == PRELOAD_TAKEN) {
		*rc = tell(call->comm, run(call));
	}
	return fate == PRELOAD_TAKEN || *rc;
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct preload_call call = { .kind = COLL_ALLREDUCE, .comm = comm, .in = in, .out = out,
				     .count = count, .type = type, .op = op };
	int rc;

	return take(&call, &rc) ? rc : PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
			     MPI_Comm comm)
{
	struct preload_call call = { .kind = COLL_REDUCE_SCATTER, .comm = comm, .in = in,
				     .out = out, .count = count, .type = type, .op = op };
	int rc;

	return take(&call, &rc) ? rc : PMPI_Reduce_scatter_block(in, out, count, type, op, comm);
}

int MPI_Allgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int count,
		  MPI_Datatype type, MPI_Comm comm)
{
	struct preload_call call = { .kind = COLL_ALLGATHER, .comm = comm, .in = in,
				     .in_count = in_count, .in_type = in_type, .out = out,
				     .count = count, .type = type };
	int rc;

	return take(&call, &rc) ? rc
				: PMPI_Allgather(in, in_count, in_type, out, count, type, comm);
}

int MPI_Alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int count,
		 MPI_Datatype type, MPI_Comm comm)
{
	struct preload_call call = { .kind = COLL_ALLTOALL, .comm = comm, .in = in,
				     .in_count = in_count, .in_type = in_type, .out = out,
				     .count = count, .type = type };
	int rc;

	return take(&call, &rc) ? rc
				: PMPI_Alltoall(in, in_count, in_type, out, count, type, comm);
}

int MPI_Bcast(void *at, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct preload_call call = { .kind = COLL_BROADCAST, .comm = comm, .out = at,
				     .count = count, .type = type, .root = root };
	int rc;

	return take(&call, &rc) ? rc : PMPI_Bcast(at, count, type, root, comm);
}

/* ---- the process ---- */

int MPI_Init(int *argc, char ***argv)
{
	int rc = PMPI_Init(argc, argv);

	if (rc == MPI_SUCCESS) {
		preload_begin();
	}
	return rc;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc = PMPI_Init_thread(argc, argv, required, provided);

	if (rc == MPI_SUCCESS) {
		preload_begin();
	}
	return rc;
}

int MPI_Finalize(void)
{
	preload_end();
	return PMPI_Finalize();
}
