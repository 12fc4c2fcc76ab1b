/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which schedule runs which collective: the table of libweft_mpi.so.
 *
 *	schedules:
 *	  - { file: allreduce.json, min-bytes: 64KiB, max-bytes: 64MiB }
 *	  - { file: "gather-%r.pb", collective: allgather, ranks: 512 }
 *	  - { file: tensor.json, members: "4 x [8]" }
 *
 * The first entry that fits a call is taken. Collective, ranks and root are those of the
 * schedule in the file; an entry may state them, and is refused when the file says
 * something else. `members` is for groups that a mesh has along its axes in brackets: all ranks of
 * MPI_COMM_WORLD are the mesh, row-major, and a communicator is such a group, in order.
 * Names are relative to the table. `%r` stands for a rank: then every rank has a file with its own
 * part of the schedule.
 *
 * No MPI here: a table is read and checked on one rank and sent to the others as it is.
 */
#ifndef WEFT_RUNTIME_PRELOAD_TABLE_H
#define WEFT_RUNTIME_PRELOAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"

#define PRELOAD_MAX_FILE 1024		/* bytes of a file's name, with its folder */
#define PRELOAD_MAX_ENTRIES 1024
#define PRELOAD_MAX_AXES 8
#define PRELOAD_MAX_TEXT (1u << 20)	/* bytes of a table */
#define PRELOAD_MAX_SCHEDULE (1u << 30)	/* bytes of a schedule's file */

/* Sent from rank to rank as bytes: no pointers, and all of it is set. */
struct preload_entry {
	char file[PRELOAD_MAX_FILE];	/* with %r if per_rank; zeros behind it */
	int64_t min_bytes, max_bytes;	/* of the vector of N shards, inclusive */
	uint64_t digest;		/* of a whole schedule's file, once checked */
	int32_t kind, ranks, root;	/* stated, or -1; once checked the schedule's */
	int32_t line, col;		/* of the entry; line 0: unknown */
	int32_t per_rank;		/* a file for each rank */
	int32_t usable;			/* checked, and for no more ranks than there are */
	int32_t n_axes;			/* of the mesh that is stated, 0: none */
	int32_t axes[PRELOAD_MAX_AXES];	/* their sizes; below 0: minus the size, along which groups
					 * are */
	int32_t unused;			/* 0 */
};

struct preload_table {
	VEC(struct preload_entry) entries;
};

/*
 * Reads a table; name is its path, and what errors call it. At most PRELOAD_MAX_TEXT
 * bytes and PRELOAD_MAX_ENTRIES entries. 0, or the code of the first of errs, which have
 * their places, and an empty table: WEFT_EINVAL, WEFT_ELIMIT. O(len).
 */
int preload_table_parse(const char *name, const char *text, size_t len, struct preload_table *out,
			struct err_list *errs);

/* The short form, "file:file": entries for all sizes. As preload_table_parse; places are
 * columns of the list, which errors call name. */
int preload_table_from_list(const char *name, const char *list, struct preload_table *out,
			    struct err_list *errs);

void preload_table_fini(struct preload_table *t);

/* Whether a communicator is one of an entry's groups: its ranks, e->ranks of them, as numbers of
 * MPI_COMM_WORLD, which has `size`. True without `members`. O(ranks). */
bool preload_is_member(const struct preload_entry *e, int size, const int *world);

/* Whether libweft_mpi.so runs collectives of this kind. */
bool preload_takes(enum coll_kind kind);

/* ---- the files ---- */

/* The entry's file of a rank, %r filled in. WEFT_ELIMIT when the name gets too long. O(1). */
int preload_file_name(const struct preload_entry *e, int rank, char out[PRELOAD_MAX_FILE],
		      struct err *err);

/*
 * Reads an entry's schedule (per_rank: the part of rank 0), compares it with what is stated
 * and fills in kind, ranks, root and digest. A whole schedule is replayed (coll_verify), a
 * part has been by whoever wrote it. It becomes usable unless it is for more than `ranks`
 * ranks. Errors have the place of the entry in the table `name`: WEFT_EINVAL,
 * WEFT_ENOTFOUND, WEFT_EIO, WEFT_EVERIFY, WEFT_EUNSUPPORTED (a kind that is not taken, and
 * what rank_program_make refuses), WEFT_ELIMIT. O(coll_verify).
 */
int preload_entry_check(struct preload_entry *e, const char *name, int ranks, struct err *err);

/* The bytes of a checked entry's file, for free(). WEFT_ENOTFOUND, WEFT_EIO, WEFT_ELIMIT; of a
 * whole schedule WEFT_ESTALE when they are not those that were checked. */
int preload_entry_read(const struct preload_entry *e, int rank, char **data, size_t *len,
		       struct err *err);

/* Reads the schedule, or the part, from such bytes. WEFT_EINVAL: of another collective, root
 * or number of ranks than the entry, or the part of another rank; errors of
 * coll_from_bytes. coll_free. */
int preload_entry_schedule(const struct preload_entry *e, int rank, const char *data, size_t len,
			   struct coll_sched **out, struct err *err);

/* What parts of one schedule have in common: collective, ranks, chunks, root and
 * arcs, as a hash. O(m). */
uint64_t preload_identity(const struct coll_sched *part);

/*
 * The transfers that leave a rank less those that enter it, as a sum of hashes modulo 2^64:
 * over the parts of all ranks the sums add up to 0 when both ends of every arc agree on what
 * it carries in each step, and hardly ever otherwise. O(transfers).
 */
uint64_t preload_balance(const struct coll_sched *part, int rank);

#endif
