/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an MPI datatype in a row: memory for them, copies, sums, messages. */
#include <limits.h>
#include <string.h>

#include "runtime/mpi/private.h"

int mpi_elements_of(MPI_Comm comm, int self, MPI_Datatype type, MPI_Op op,
		    struct mpi_elements *out)
{
	MPI_Aint lb;
	MPI_Count size;
	int rc;

	*out = (struct mpi_elements){ .comm = comm, .self = self, .type = type, .op = op };
	if ((rc = PMPI_Type_size_x(type, &size)) ||
	    (rc = PMPI_Type_get_extent(type, &lb, &out->extent)) ||
	    (rc = PMPI_Type_get_true_extent(type, &out->true_lb, &out->true_extent))) {
		return rc;
	}
	out->dense = out->true_lb == 0 && size == out->extent && size == out->true_extent;
	return MPI_SUCCESS;
}

int64_t mpi_elements_bytes(const struct mpi_elements *e, int64_t n)
{
	int64_t stride = e->extent < 0 ? -e->extent : e->extent;

	return n > 0 && e->true_extent > 0 ? (n - 1) * stride + e->true_extent : 1;
}

char *mpi_elements_first(const struct mpi_elements *e, char *memory, int64_t n)
{
	return memory - e->true_lb + (e->extent < 0 && n > 0 ? (n - 1) * -e->extent : 0);
}

int mpi_elements_copy(const struct mpi_elements *e, const char *from, char *to, int64_t n)
{
	int rc = MPI_SUCCESS;

	if (n <= 0 || from == to) {
		return MPI_SUCCESS;
	}
	if (e->dense) {
		memcpy(to, from, (size_t)(n * e->extent));
		return MPI_SUCCESS;
	}
	for (int64_t k = 0; k < n && !rc; k += INT_MAX) {
		int part = n - k < INT_MAX ? (int)(n - k) : INT_MAX;

		rc = PMPI_Sendrecv(from + k * e->extent, part, e->type, e->self, 0,
				  to + k * e->extent, part, e->type, e->self, 0, e->comm,
				  MPI_STATUS_IGNORE);
	}
	return rc;
}

int mpi_elements_sum(const struct mpi_elements *e, const char *from, char *to, int64_t n)
{
	int rc = MPI_SUCCESS;

	for (int64_t k = 0; k < n && !rc; k += INT_MAX) {
		int part = n - k < INT_MAX ? (int)(n - k) : INT_MAX;

		rc = PMPI_Reduce_local(from + k * e->extent, to + k * e->extent, part, e->type,
				      e->op);
	}
	return rc;
}

/* ---- messages ---- */

/* Blocks of `most` elements, then the rest. */
static int long_run(const struct mpi_elements *e, int64_t n, int most, MPI_Datatype *out)
{
	MPI_Datatype types[2] = { MPI_DATATYPE_NULL, e->type };
	int counts[2] = { 1, (int)(n % most) };
	MPI_Aint at[2] = { 0, n / most * most * e->extent };
	int rc;

	if (n / most > INT_MAX) {
		return MPI_ERR_COUNT;
	}
	rc = PMPI_Type_create_hvector((int)(n / most), most, most * e->extent, e->type, &types[0]);
	if (rc) {
		return rc;
	}
	rc = PMPI_Type_create_struct(2, counts, at, types, out);
	PMPI_Type_free(&types[0]);
	return rc ? rc : PMPI_Type_commit(out);
}

int mpi_elements_run(const struct mpi_elements *e, int64_t n, int most, MPI_Datatype *type,
		     int *count)
{
	*type = e->type;
	*count = n > most ? 1 : (int)n;
	return n > most ? long_run(e, n, most, type) : MPI_SUCCESS;
}

/* A type may be freed while messages of it are on their way. */
static void free_run(const struct mpi_elements *e, MPI_Datatype *type)
{
	if (*type != e->type) {
		PMPI_Type_free(type);
	}
}

int mpi_elements_send(const struct mpi_elements *e, const char *from, int64_t n, int peer, int tag,
		      MPI_Request *request)
{
	MPI_Datatype type;
	int count, rc = mpi_elements_run(e, n, INT_MAX, &type, &count);

	if (rc) {
		return rc;
	}
	rc = PMPI_Isend(from, count, type, peer, tag, e->comm, request);
	free_run(e, &type);
	return rc;
}

int mpi_elements_receive(const struct mpi_elements *e, char *to, int64_t n, int peer, int tag,
			 MPI_Request *request)
{
	MPI_Datatype type;
	int count, rc = mpi_elements_run(e, n, INT_MAX, &type, &count);

	if (rc) {
		return rc;
	}
	rc = PMPI_Irecv(to, count, type, peer, tag, e->comm, request);
	free_run(e, &type);
	return rc;
}
