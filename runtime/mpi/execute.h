/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs what one rank does in a schedule (runtime/rank) on an MPI communicator.
 *
 * Receives are posted ahead and taken in the order of the program, so sums are formed in
 * that order in every run; a send leaves as soon as the receives are done that wrote
 * what it sends, whatever step others are in. Each message of the program is one MPI
 * message, its link the tag; messages without elements are not sent. Sends are never waited
 * for before all messages of their step may come, so that nothing locks up when MPI
 * holds every message back until its receiver is ready.
 */
#ifndef WEFT_RUNTIME_MPI_EXECUTE_H
#define WEFT_RUNTIME_MPI_EXECUTE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "runtime/rank/rank.h"

struct mpi_executor;

/*
 * For the program of this rank of comm, whose size is that of the program; p must outlive
 * it. comm is for this executor alone, or for some of which one runs at a time; its error
 * handler becomes MPI_ERRORS_RETURN, and its owner frees it. Local: no messages.
 * WEFT_EINVAL (another rank or size), WEFT_ELIMIT (more than INT_MAX messages).
 * O(messages log messages).
 */
int mpi_executor_new(const struct rank_program *p, MPI_Comm comm, struct mpi_executor **out,
		     struct err *err);
/* NULL is fine. Not while it runs. */
void mpi_executor_free(struct mpi_executor *x);

/*
 * Once, on all ranks together. total >= 0: elements of the whole vector, a multiple of
 * the ranks where shards lie in buffers of one shard (all but all-reduce, broadcast and
 * reduce). in and out: elements of `type` as rank.h lays out RANK_IN and RANK_OUT; one that has
 * no shards may be NULL. in may be out, or the own shard in it; an all-to-all then
 * works on a copy of in. op sums; MPI_OP_NULL where nothing is summed.
 *
 * Returns MPI_SUCCESS, or the code of the call that failed: then messages may be on
 * their way, and executor and communicator are of no more use. Memory beside the
 * buffers: RANK_WORK, what comes to be added in one step, and some MiB.
 */
int mpi_executor_run(struct mpi_executor *x, const void *in, void *out, int64_t total,
		     MPI_Datatype type, MPI_Op op);

struct mpi_measure {
	bool barriers;		/* all ranks end a step before any begins the next */
	double *step_s;		/* for each step, or NULL: seconds from the end of the step
				 * before (with its barrier) until this rank had all it receives */
	int64_t messages, elements;	/* sent in the last run */
};

/* Later runs measure, until m is NULL; m must live as long. All ranks alike. */
void mpi_executor_measure(struct mpi_executor *x, struct mpi_measure *m);

#endif
