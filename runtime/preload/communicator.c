/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library knows of a communicator: its attribute.
 *
 * The state is made by each rank for itself. Only when a call is to be taken for the first
 * time do the ranks work together: they make a communicator of their own, so that messages
 * of the program and ours never meet; rank 0 reads the schedule and sends it round, every rank
 * makes its program of it, and all of them learn whether all could.
 *
 * Not MPI_Comm_dup: that would call the copy functions of the program's attributes.
 */
#include "runtime/preload/private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* ---- the attribute ---- */

/* The ranks as numbers of MPI_COMM_WORLD, for free(). Those that came from another one have a table
 * of their own, or none; *ours: there are none such. */
static int find_in_world(MPI_Comm comm, int size, int **out, bool *ours)
{
	MPI_Group group, world;
	int *ranks = malloc(2 * (size_t)size * sizeof(*ranks));

	if (!ranks) {
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < size; i++) {
		ranks[size + i] = i;
	}
	PMPI_Comm_group(comm, &group);
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	PMPI_Group_translate_ranks(group, size, ranks + size, world, ranks);
	*ours = true;
	for (int i = 0; i < size; i++) {
		*ours &= ranks[i] != MPI_UNDEFINED;
	}
	PMPI_Group_free(&group);
	PMPI_Group_free(&world);
	*out = ranks;
	return MPI_SUCCESS;
}

static bool is_for(const struct preload_entry *e, int size)
{
	return e->usable && e->ranks == size;
}

static int new_state(MPI_Comm comm, struct preload_comm **out)
{
	struct preload_comm *c;
	int size, inter, n = 0, rc, all, *world = NULL;
	bool ours = true;

	PMPI_Comm_size(comm, &size);
	PMPI_Comm_test_inter(comm, &inter);
	for (int i = 0; i < preload.n && !inter; i++) {
		n += is_for(&preload.entries[i], size);
	}
	if (n && (rc = find_in_world(comm, size, &world, &ours))) {
		return rc;
	}
	c = calloc(1, sizeof(*c) + (size_t)n * sizeof(c->uses[0]));
	if (!c) {
		free(world);
		return MPI_ERR_NO_MEM;
	}
	PMPI_Comm_size(MPI_COMM_WORLD, &all);
	c->size = size;
	c->inter = inter;
	c->own = MPI_COMM_NULL;
	c->mixed = !ours;
	PMPI_Comm_rank(comm, &c->rank);
	for (int i = 0; i < preload.n && n; i++) {
		if (is_for(&preload.entries[i], size) &&
		    preload_is_member(&preload.entries[i], all, world)) {
			c->uses[c->n_uses++].entry = i;
		}
	}
	free(world);
	*out = c;
	return MPI_SUCCESS;
}

int preload_comm_of(MPI_Comm comm, struct preload_comm **out)
{
	int found = 0;
	int rc = PMPI_Comm_get_attr(comm, preload.keyval, out, &found);

	if (rc || found) {
		return rc;
	}
	if ((rc = new_state(comm, out))) {
		return rc;
	}
	rc = PMPI_Comm_set_attr(comm, preload.keyval, *out);
	if (rc) {
		free(*out);
	}
	return rc;
}

/* Called by MPI, on all ranks, when the program frees the communicator. */
int preload_comm_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct preload_comm *c = value;

	(void)comm;
	(void)keyval;
	(void)extra;
	if (preload.ended) {
		return MPI_SUCCESS;	/* MPI is going: no calls of it any more */
	}
	for (int i = 0; i < c->n_uses; i++) {
		mpi_executor_free(c->uses[i].executor);
	}
	if (c->own != MPI_COMM_NULL) {
		PMPI_Comm_free(&c->own);
	}
	free(c);
	return MPI_SUCCESS;
}

/* ---- the first call ---- */

static int make_own(struct preload_comm *c, MPI_Comm user)
{
	MPI_Group group;
	int rc = PMPI_Comm_group(user, &group);

	if (rc) {
		return rc;
	}
	rc = PMPI_Comm_create(user, group, &c->own);
	PMPI_Group_free(&group);
	return rc ? rc : PMPI_Comm_set_errhandler(c->own, MPI_ERRORS_RETURN);
}

static int mpi_failed(int code, struct err *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int len;

	PMPI_Error_string(code, text, &len);
	return err_set(err, WEFT_EUNAVAIL, "%s", text);
}

/* Whether any rank says so. */
static int any_rank(struct preload_comm *c, int mine, int *any, struct err *err)
{
	int rc = PMPI_Allreduce(&mine, any, 1, MPI_INT, MPI_MAX, c->own);

	return rc ? mpi_failed(rc, err) : 0;
}

/* What rank 0 has read goes to all; it failed to when len is -1. */
static int send_round(struct preload_comm *c, char **data, int64_t len, struct err *err)
{
	int rc = PMPI_Bcast(&len, 1, MPI_INT64_T, 0, c->own);
	int failed;

	if (rc) {
		return mpi_failed(rc, err);
	}
	if (len < 0) {
		return c->rank == 0 ? err->code : err_set(err, WEFT_EIO, "rank 0 has no schedule");
	}
	if (c->rank != 0) {
		*data = malloc((size_t)len + 1);
	}
	if ((rc = any_rank(c, !*data, &failed, err))) {
		return rc;
	}
	if (failed) {
		return preload_no_memory(err);
	}
	rc = PMPI_Bcast(*data, (int)len, MPI_BYTE, 0, c->own);
	return rc ? mpi_failed(rc, err) : (int)len;
}

/* The program of this rank, from the whole schedule. */
static int from_whole(struct preload_comm *c, int entry, struct preload_program **out,
		      struct err *err)
{
	char *data = NULL;
	size_t len = 0;
	int n = 0, rc = 0, wanted;

	*out = preload_program_find(entry, c->rank);
	if ((rc = any_rank(c, !*out, &wanted, err)) || !wanted) {
		return rc;
	}
	if (c->rank == 0) {
		rc = preload_entry_read(&preload.entries[entry], 0, &data, &len, err);
	}
	n = send_round(c, &data, rc ? -1 : (int64_t)len, err);
	rc = n < 0 ? n : 0;
	if (!rc && !*out) {
		rc = preload_program_make(entry, c->rank, data, (size_t)n, out, err);
	}
	free(data);
	return rc;
}

/* The program of this rank, from the file with its part. */
static int from_part(struct preload_comm *c, int entry, struct preload_program **out,
		     struct err *err)
{
	char *data = NULL;
	size_t len;
	int rc;

	*out = preload_program_find(entry, c->rank);
	if (*out) {
		return 0;
	}
	rc = preload_entry_read(&preload.entries[entry], c->rank, &data, &len, err);
	if (!rc) {
		rc = preload_program_make(entry, c->rank, data, len, out, err);
	}
	free(data);
	return rc;
}

/* Smallest values over all ranks; of what is kept as its complement the largest. */
struct agreement {
	uint64_t failed;	/* rank, or the number of ranks */
	uint64_t identity, not_identity;
};

#define AGREEMENT_WORDS (sizeof(struct agreement) / sizeof(uint64_t))

/* Sets the state of a use from what the ranks found out; rc is this rank's. */
static int agree(struct preload_comm *c, struct preload_use *use, const struct preload_program *p,
		 int rc, struct err *err)
{
	struct agreement mine = {
		.failed = (uint64_t)(rc ? c->rank : c->size),
		.identity = p ? p->identity : 0,
		.not_identity = ~(p ? p->identity : 0),
	}, all;
	uint64_t balance = p ? p->balance : 0, sum;
	int code;

	if ((code = PMPI_Allreduce(&mine, &all, AGREEMENT_WORDS, MPI_UINT64_T, MPI_MIN, c->own)) ||
	    (code = PMPI_Allreduce(&balance, &sum, 1, MPI_UINT64_T, MPI_SUM, c->own))) {
		return mpi_failed(code, err);
	}
	if (all.failed < (uint64_t)c->size) {
		/* The first rank that failed says why. */
		return rc && all.failed == (uint64_t)c->rank ? rc : WEFT_ECANCELED;
	}
	if (all.identity != ~all.not_identity || sum) {
		return c->rank ? WEFT_ECANCELED
			       : err_set(err, WEFT_EINVAL, "%s: the parts are not of one schedule",
					 preload.entries[use->entry].file);
	}
	use->state = PRELOAD_READY;
	return 0;
}

struct executing {
	const struct rank_program *program;
	MPI_Comm comm;
	struct mpi_executor *x;
	int rc;
	struct err *err;
};

static void try_executor(void *arg)
{
	struct executing *e = arg;

	e->rc = mpi_executor_new(e->program, e->comm, &e->x, e->err);
}

static int make_executor(const struct preload_program *p, MPI_Comm comm, struct mpi_executor **out,
			 struct err *err)
{
	struct executing e = { .program = &p->program, .comm = comm, .err = err };

	if (!alloc_try(try_executor, &e)) {
		return preload_no_memory(err);
	}
	*out = e.x;
	return e.rc;
}

static int prepare(struct preload_comm *c, struct preload_use *use, MPI_Comm user, struct err *err)
{
	const struct preload_entry *e = &preload.entries[use->entry];
	struct preload_program *p = NULL;
	int rc;

	if (c->own == MPI_COMM_NULL && make_own(c, user)) {
		return WEFT_ECANCELED;	/* MPI has reported it */
	}
	rc = e->per_rank ? from_part(c, use->entry, &p, err) : from_whole(c, use->entry, &p, err);
	if (!rc) {
		rc = make_executor(p, c->own, &use->executor, err);
	}
	return agree(c, use, rc ? NULL : p, rc, err);
}

bool preload_comm_ready(struct preload_comm *c, struct preload_use *use, MPI_Comm user)
{
	const struct preload_entry *e = &preload.entries[use->entry];
	struct err err = { 0 };
	int rc;

	if (use->state != PRELOAD_UNTRIED) {
		return use->state == PRELOAD_READY;
	}
	use->state = PRELOAD_BROKEN;
	rc = prepare(c, use, user, &err);
	if (rc && !atomic_exchange(&preload.said[use->entry], true) && rc != WEFT_ECANCELED) {
		preload_say("%s; %s on %d ranks is left to MPI", err.msg,
			    coll_kind_name((enum coll_kind)e->kind), c->size);
		if (preload.strict) {
			PMPI_Abort(MPI_COMM_WORLD, err_exit_code(rc));
		}
	}
	return use->state == PRELOAD_READY;
}
