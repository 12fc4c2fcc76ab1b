/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same calls from Fortran. Open MPI's Fortran libraries call the PMPI_ functions of C, so
 * what stands before the C functions would not see them: these stand before the Fortran ones. A
 * name ends with an underscore from mpif.h and the module mpi; the module mpi_f08 calls
 * ompi_NAME_f. Handles are numbers in Fortran, and MPI_IN_PLACE and MPI_BOTTOM are variables,
 * known by their addresses.
 */
#include "runtime/preload/private.h"

extern char mpi_fortran_in_place_[], mpi_fortran_bottom_[];

#define SHOWN __attribute__((visibility("default")))

/* Both names of a function that Fortran calls. */
#define FORTRAN(name, ...)                                                     \
	SHOWN void mpi_##name##_(__VA_ARGS__);                                 \
	SHOWN void ompi_##name##_f(__VA_ARGS__)                                \
		__attribute__((alias("mpi_" #name "_")));                      \
	void mpi_##name##_(__VA_ARGS__)

static void *address(void *at)
{
	if (at == (void *)mpi_fortran_in_place_) {
		return MPI_IN_PLACE;
	}
	return at == (void *)mpi_fortran_bottom_ ? MPI_BOTTOM : at;
}

/* The module mpi_f08 lets a program leave the error out. */
static void set_error(MPI_Fint *error, int rc)
{
	if (error) {
		*error = rc;
	}
}

FORTRAN(init, MPI_Fint *error)
{
	char **argv = NULL;
	int argc = 0;

	set_error(error, MPI_Init(&argc, &argv));
}

FORTRAN(init_thread, const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
{
	char **argv = NULL;
	int argc = 0;

	set_error(error, MPI_Init_thread(&argc, &argv, *required, provided));
}

FORTRAN(finalize, MPI_Fint *error)
{
	set_error(error, MPI_Finalize());
}

FORTRAN(allreduce, void *in, void *out, const MPI_Fint *count, const MPI_Fint *type,
	const MPI_Fint *op, const MPI_Fint *comm, MPI_Fint *error)
{
	set_error(error, MPI_Allreduce(address(in), address(out), *count, PMPI_Type_f2c(*type),
				       PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm)));
}

FORTRAN(reduce_scatter_block, void *in, void *out, const MPI_Fint *count, const MPI_Fint *type,
	const MPI_Fint *op, const MPI_Fint *comm, MPI_Fint *error)
{
	set_error(error, MPI_Reduce_scatter_block(address(in), address(out), *count,
						  PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
						  PMPI_Comm_f2c(*comm)));
}

FORTRAN(allgather, void *in, const MPI_Fint *in_count, const MPI_Fint *in_type, void *out,
	const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *comm, MPI_Fint *error)
{
	set_error(error, MPI_Allgather(address(in), *in_count, PMPI_Type_f2c(*in_type),
				       address(out), *count, PMPI_Type_f2c(*type),
				       PMPI_Comm_f2c(*comm)));
}

FORTRAN(alltoall, void *in, const MPI_Fint *in_count, const MPI_Fint *in_type, void *out,
	const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *comm, MPI_Fint *error)
{
	set_error(error, MPI_Alltoall(address(in), *in_count, PMPI_Type_f2c(*in_type),
				      address(out), *count, PMPI_Type_f2c(*type),
				      PMPI_Comm_f2c(*comm)));
}

FORTRAN(bcast, void *at, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *root,
	const MPI_Fint *comm, MPI_Fint *error)
{
	set_error(error, MPI_Bcast(address(at), *count, PMPI_Type_f2c(*type), *root,
				   PMPI_Comm_f2c(*comm)));
}
