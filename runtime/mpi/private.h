/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the executor share: the order of sends, elements of any MPI
 * datatype, and memory for them. */
#ifndef WEFT_RUNTIME_MPI_PRIVATE_H
#define WEFT_RUNTIME_MPI_PRIVATE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/rank/rank.h"

/*
 * Sends in the order in which they leave, none before those earlier on its link. A
 * message of several runs is packed: it leaves at most one step early, so that a rank that is
 * far ahead of others does not fill its memory with what they do not take yet. All sends
 * of a step and of those before it leave before any receive of the next step is waited for.
 */
struct mpi_order {
	int32_t *send;		/* the i-th that leaves, of rank_program.sends */
	int64_t *leave;		/* that one leaves after so many receives; grows with i */
	int64_t *step_end;	/* receives of this step and all before */
	struct arrays all;
};

/* O(messages log messages). */
void mpi_order_make(const struct rank_program *p, struct mpi_order *o);
void mpi_order_fini(struct mpi_order *o);

/* Elements of one run, k-th at k * extent from the address of the first. */
struct mpi_elements {
	MPI_Comm comm;
	int self;		/* own rank in comm */
	MPI_Datatype type;
	MPI_Op op;
	MPI_Aint extent;	/* may be negative, or less than the true one */
	MPI_Aint true_lb, true_extent;	/* where an element's bytes really are */
	bool dense;		/* n elements are n * extent bytes without holes */
};

/* All return MPI error codes. O(1). */
int mpi_elements_of(MPI_Comm comm, int self, MPI_Datatype type, MPI_Op op,
		    struct mpi_elements *out);

/* Bytes that n elements span, at least 1; and where the first is to be in so much memory. */
int64_t mpi_elements_bytes(const struct mpi_elements *e, int64_t n);
char *mpi_elements_first(const struct mpi_elements *e, char *memory, int64_t n);

/* n elements to another place, which does not overlap; or added to those there. */
int mpi_elements_copy(const struct mpi_elements *e, const char *from, char *to, int64_t n);
int mpi_elements_sum(const struct mpi_elements *e, const char *from, char *to, int64_t n);

/* *count of *type are n elements in a row: those themselves up to `most` of them,
 * else one of a type that is for the caller to free. */
int mpi_elements_run(const struct mpi_elements *e, int64_t n, int most, MPI_Datatype *type,
		     int *count);

/* n > 0 elements in a row as one message. */
int mpi_elements_send(const struct mpi_elements *e, const char *from, int64_t n, int peer, int tag,
		      MPI_Request *request);
int mpi_elements_receive(const struct mpi_elements *e, char *to, int64_t n, int peer, int tag,
			 MPI_Request *request);

#define MPI_MEMORY_BLOCKS 32

/* Blocks to use again; zero it before the first. */
struct mpi_memory {
	char *kept[MPI_MEMORY_BLOCKS];
	int n;
	int64_t bytes;
};

/* So many bytes, with whatever was in them; NULL: no memory. O(blocks kept). */
char *mpi_memory_take(struct mpi_memory *m, int64_t bytes);
/* For use again, or back to the C library. NULL is fine. */
void mpi_memory_give(struct mpi_memory *m, char *block);
void mpi_memory_fini(struct mpi_memory *m);

#endif
