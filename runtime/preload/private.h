/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of libweft_mpi.so share.
 *
 * The library stands between a program and Open MPI by MPI's profiling interface: it
 * defines a few MPI_ functions, and calls MPI by the PMPI_ names of all, so that no call of its own
 * comes back to it. Which calls it takes follows from values that MPI wants to be
 * alike on all ranks, from one table that rank 0 sends to all, and from what the ranks of a
 * communicator agree on before the first such call: so every rank comes to the same decision.
 */
#ifndef WEFT_RUNTIME_PRELOAD_PRIVATE_H
#define WEFT_RUNTIME_PRELOAD_PRIVATE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/mpi/execute.h"
#include "runtime/preload/table.h"

/* What happened to a call: taken, or handed to MPI because .. */
enum preload_fate {
	PRELOAD_TAKEN,
	PRELOAD_NO_SCHEDULE,	/* for so many ranks */
	PRELOAD_NO_SIZE,	/* for so many bytes */
	PRELOAD_ROOT,		/* for this root */
	PRELOAD_EMPTY,		/* nothing moves, or there is one rank */
	PRELOAD_OP,		/* not commutative */
	PRELOAD_TOO_LARGE,	/* to be packed, or for 63 bits */
	PRELOAD_INTER,		/* an intercommunicator */
	PRELOAD_MIXED,		/* with ranks of another MPI_COMM_WORLD */
	PRELOAD_ARGUMENTS,	/* wrong ones, which MPI reports */
	PRELOAD_REFUSED,	/* the communicator has no use for its schedule */
	PRELOAD_FATES
};

/* A program that was made once for a rank and is used on all communicators. */
struct preload_program {
	struct preload_program *next;
	int entry, rank;
	uint64_t identity, balance;	/* of a part, else 0 */
	struct rank_program program;
};

/* All there is for the process: set by MPI_Init, read after it. */
struct preload_library {
	struct preload_entry *entries;
	int n;			/* 0: every call goes to MPI */
	uint64_t digest;	/* of all entries */
	bool strict;		/* a mistake ends the program */
	int keyval;		/* of struct preload_comm at communicators */
	bool ended;		/* MPI_Finalize has begun */
	char report[PRELOAD_MAX_FILE];	/* "": none, "1": stderr, else a file */
	pthread_mutex_t lock;	/* of programs; never held during a call of MPI */
	struct preload_program *programs;	/* a list, owned; they stay until the end */
	/* Entries that could not be used: said once, not on every communicator. */
	_Atomic bool said[PRELOAD_MAX_ENTRIES];
	_Atomic int64_t calls[COLL_KINDS][PRELOAD_FATES];
};

extern struct preload_library preload;

enum preload_state { PRELOAD_UNTRIED, PRELOAD_READY, PRELOAD_BROKEN };

/* An entry on one communicator. */
struct preload_use {
	int entry;
	enum preload_state state;
	struct mpi_executor *executor;	/* when ready */
};

/* A communicator of the program, as its attribute. */
struct preload_comm {
	int size, rank;
	bool inter, mixed;	/* an intercommunicator; ranks of several MPI_COMM_WORLD */
	MPI_Comm own;		/* of the same ranks, for our messages; MPI_COMM_NULL: none */
	int n_uses;
	struct preload_use uses[];	/* entries for so many ranks, in the table's order */
};

/* One line on stderr: "weft: ...". */
void preload_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- begin.c: the process ---- */

/* After PMPI_Init on all ranks of MPI_COMM_WORLD: reads and checks the table there is
 * and tells all ranks. Mistakes are said by rank 0, and leave the library without
 * entries, or end the program. */
void preload_begin(void);
/* Before PMPI_Finalize, on all ranks. */
void preload_end(void);

/* ---- communicator.c ---- */

/* The state at a communicator, made at its first use; local. Codes of MPI. */
int preload_comm_of(MPI_Comm comm, struct preload_comm **out);

/* Collective on `user` at its first call for this use; afterwards local. Whether it can
 * be run, alike on all ranks. */
bool preload_comm_ready(struct preload_comm *c, struct preload_use *use, MPI_Comm user);

/* Of an attribute: frees it with what it holds. */
int preload_comm_delete(MPI_Comm comm, int keyval, void *value, void *extra);

/* ---- program.c ---- */

/* The program of a rank for an entry if it was made already, else NULL. Threads. */
struct preload_program *preload_program_find(int entry, int rank);

/* WEFT_ELIMIT: what was wanted is left to MPI, as there is no memory for it. The program that
 * calls lives on: rooms that would end it are called by alloc_try. */
int preload_no_memory(struct err *err);

/* Makes it from the bytes of the schedule, or of the part, and keeps it. */
int preload_program_make(int entry, int rank, const char *data, size_t len,
			 struct preload_program **out, struct err *err);

void preload_programs_free(void);

/* ---- buffers.c ---- */

/* Data of the program in some type: `blocks` times `count` elements. */
struct preload_data {
	void *at;
	int blocks, count;
	MPI_Datatype type;
	int64_t block_bytes;	/* of data in a block */
};

/* Whether the data lies in memory as MPI packs it. */
bool preload_is_dense(MPI_Datatype type);
/* Where block k begins. */
void *preload_block(const struct preload_data *d, int k);
/* Between the program's data and bytes without gaps. Codes of MPI; comm is ours. */
int preload_pack(const struct preload_data *d, void *out, MPI_Comm comm);
int preload_unpack(const struct preload_data *d, const void *in, MPI_Comm comm);

/* ---- report.c ---- */

/* Collective: the calls of all ranks, said or written by rank 0. */
void preload_report(void);

#endif
