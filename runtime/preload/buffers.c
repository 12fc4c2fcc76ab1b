/* SPDX-License-Identifier: Apache-2.0 */
/* Data in the program's datatypes, and the bytes that schedules which only copy move: the
 * types may differ from rank to rank, what is packed may not. */
#include "runtime/preload/private.h"

#include <string.h>

/* Types of the program's own may have any order: only MPI knows them. */
bool preload_is_dense(MPI_Datatype type)
{
	int integers, addresses, types, combiner;
	MPI_Aint lb, extent;
	MPI_Count size;

	return !PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) &&
	       combiner == MPI_COMBINER_NAMED && !PMPI_Type_size_x(type, &size) &&
	       !PMPI_Type_get_extent(type, &lb, &extent) && lb == 0 && extent == size;
}

void *preload_block(const struct preload_data *d, int k)
{
	MPI_Aint lb = 0, extent = 0;

	PMPI_Type_get_extent(d->type, &lb, &extent);
	/* Types of absolute addresses begin at MPI_BOTTOM, which is no object. */
	return (void *)((uintptr_t)d->at + (uintptr_t)(extent * d->count * k));
}

int preload_pack(const struct preload_data *d, void *out, MPI_Comm comm)
{
	int rc = MPI_SUCCESS;

	for (int k = 0; k < d->blocks && rc == MPI_SUCCESS; k++) {
		char *to = (char *)out + d->block_bytes * k;
		int at = 0;

		rc = PMPI_Pack(preload_block(d, k), d->count, d->type, to, (int)d->block_bytes, &at,
			       comm);
	}
	return rc;
}

int preload_unpack(const struct preload_data *d, const void *in, MPI_Comm comm)
{
	int rc = MPI_SUCCESS;

	for (int k = 0; k < d->blocks && rc == MPI_SUCCESS; k++) {
		const char *from = (const char *)in + d->block_bytes * k;
		int at = 0;

		rc = PMPI_Unpack(from, (int)d->block_bytes, &at, preload_block(d, k), d->count,
				 d->type, comm);
	}
	return rc;
}
