/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts weft-mpi-run (runtime/mpi), or a program, on every rank by Open MPI's mpirun and reads
 * what it measured. Needs no MPI itself.
 */
#ifndef WEFT_RUNTIME_LAUNCH_LAUNCH_H
#define WEFT_RUNTIME_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct json_t;

/* Texts are borrowed during the call. */
struct launch_options {
	int ranks, steps;	/* of the schedule */
	/* The schedule in one of its formats: the first rank reads it, wherever it is. */
	const void *schedule;
	size_t schedule_len;
	int64_t size_bytes, repeat, seed;	/* as weft-mpi-run takes them; repeat >= 1 */
	bool barriers;		/* between steps */
	bool own;		/* compared with MPI's own collective, which is measured too; else
				 * each rank works the result out for itself */
	int64_t pause_ns;	/* between the barrier before a run and the run; under a second */

	/* This and its arguments in place of weft-mpi-run, NULL behind them; NULL: not. No schedule
	 * is given to it, and what it prints is the result. */
	const char *const *program;
	const char *hosts;	/* mpirun's hostfile; NULL: all on this machine */
	const char *agent;	/* command that starts a process on a host, instead of ssh; or
				 * NULL */
	const char *const *mca;	/* parameters of Open MPI: name, value, ..., NULL; or NULL */
	bool share_cores;	/* more ranks than cores: not bound, and those that wait yield */
	int64_t limit_ns;	/* then all is ended; 0: no limit */
	const volatile bool *stop;	/* all is ended when it becomes true; or NULL */
};

/*
 * Runs it and waits. *result is the JSON object of weft-mpi-run, for json_decref: ranks,
 * size_bytes (the whole vector, in whole shards where MPI needs them), element_bytes, repeats,
 * barriers, wrong_elements, time_ns (of the slowest rank, median of the repeats),
 * min_time_ns, mpi_time_ns (with own: the same by MPI's own collective), messages, bytes,
 * rank_bytes (the rank that sent most), planned_bytes (where all chunks are alike),
 * steps: [{median_ns, worst_ns, worst_rank}].
 *
 * mpirun runs in a session of its own; whatever happens, no process of that is left here. Without
 * hosts messages go through shared memory; mca, and OMPI_MCA_ variables, win over that.
 * As root Open MPI is told to run as root, and PMIx, without PMIX_MCA_gds, to keep its data in
 * each process. WEFT_EUNAVAIL: mpirun or weft-mpi-run is not
 * installed, or no name service answers for a host of `hosts` in 5 s, without an agent;
 * WEFT_ETIMEOUT, WEFT_ECANCELED; WEFT_EIO with what mpirun said, and for a
 * result that lacks wrong_elements, bytes, time_ns or values of a step; and the errors of the
 * ranks. Of a program *result is a JSON string, what it printed.
 */
int launch_run(const struct launch_options *o, struct json_t **result, struct err *err);

#endif
