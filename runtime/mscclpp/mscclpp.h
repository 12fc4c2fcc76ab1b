/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules as execution plans of MSCCL++, in the JSON that its executor
 * loads (version 0.9.0). docs/lowering.md says what weft uses of it.
 *
 * A plan has, for every rank, threadblocks that run concurrently, each a list
 * of operations. A put writes straight into a buffer of another rank: it is
 * handed to a proxy, which reads its source some time later. A channel joins
 * two ranks; each end counts the signals of the other. The threads of a
 * threadblock meet only in a nop, so what an operation left is certain to
 * be seen by a later one only when a nop stands between.
 */
#ifndef WEFT_RUNTIME_MSCCLPP_MSCCLPP_H
#define WEFT_RUNTIME_MSCCLPP_MSCCLPP_H

#include "runtime/lower/lower.h"

enum mscclpp_name {
	MSCCLPP_NOP,	 /* nop: the threads of the threadblock meet */
	MSCCLPP_PUT,	 /* put: src -> remote dst, one piece a channel */
	MSCCLPP_PWS,	 /* pws: put, then signal */
	MSCCLPP_SIGNAL,	 /* signal: adds 1 to the count of the other end */
	MSCCLPP_WAIT,	 /* wait: for the next signal of each channel */
	MSCCLPP_FLUSH,	 /* flush: until all puts of the channels are over */
	MSCCLPP_COPY,	 /* copy: src -> dst */
	MSCCLPP_REDUCE,	 /* re: src[0] + src[1] + ... -> dst */
	MSCCLPP_ACQUIRE, /* sem_acquire: for the next release */
	MSCCLPP_RELEASE, /* sem_release */
};
#define MSCCLPP_NAMES 10

#define MSCCLPP_NAME 64		/* bytes of a plan's name */
#define MSCCLPP_MAX_OPS 64	/* of a threadblock */
#define MSCCLPP_MAX_CHANNELS 16	/* and remote buffers, of a threadblock */
#define MSCCLPP_MAX_IDS 8	/* channels of an op */
#define MSCCLPP_MAX_SEMS 16	/* semaphores of an op */
#define MSCCLPP_MAX_REFS 10	/* buffers of an op: 2 and 8 */
#define MSCCLPP_MAX_TBS 108	/* processors of the GPU they must share */
#define MSCCLPP_MAX_RANKS 16384
#define MSCCLPP_MAX_BYTES (UINT64_C(1) << 32) /* of a buffer */

/* Chunks of a buffer: enum lower_buf of the own rank or, when remote, one
 * of the threadblock's remote buffers. */
struct mscclpp_ref {
	int32_t index, size;
	uint8_t buf;
	bool remote;
};

/* An operation of a threadblock. For puts, source and destination i go over
 * channel ids[i]. */
struct mscclpp_op {
	uint8_t name;		/* enum mscclpp_name */
	uint8_t n_ids, n_src, n_dst;
	int16_t ids[MSCCLPP_MAX_SEMS];	/* of the threadblock's channels; of
					 * semaphores of the rank */
	struct mscclpp_ref src[MSCCLPP_MAX_REFS], dst[MSCCLPP_MAX_REFS];
};

/* A threadblock. Its lists are indices into those of its rank. */
struct mscclpp_tb {
	VEC(struct mscclpp_op) ops;
	int n_chans, n_remotes;
	int32_t chans[MSCCLPP_MAX_CHANNELS];	/* of the rank */
	int32_t remotes[MSCCLPP_MAX_CHANNELS];	/* of the rank */
};

/* A buffer of another rank that puts go to. */
struct mscclpp_remote {
	int32_t rank;
	uint8_t buf;		/* enum lower_buf */
};

/* What one rank runs. */
struct mscclpp_gpu {
	int32_t chunks[3];		/* of each enum lower_buf */
	VEC(struct mscclpp_tb) tbs;
	VEC(int32_t) chans;		/* the rank at the other end; its k-th
					 * to a rank meets that one's k-th */
	VEC(struct mscclpp_remote) remotes;
	VEC(int32_t) sems;		/* first values */
};

/* An execution plan for all ranks. */
struct mscclpp {
	enum coll_kind kind;
	int ranks, root;
	int loop;		/* chunks of the whole vector: ranks * chunks a
				 * shard */
	bool inplace;
	uint64_t max_bytes;	/* of the message */
	char name[MSCCLPP_NAME];
	struct mscclpp_gpu *gpus;	/* ranks of them */
};

/* Frees what p holds, not p. */
void mscclpp_fini(struct mscclpp *p);

/* "put", "re", ... as in the plan. */
const char *mscclpp_op_name(enum mscclpp_name name);

/*
 * A verified schedule as a plan, checked (mscclpp_check) before it is
 * returned. inplace: for calls in place, else for calls out of place; a plan
 * serves one of the two. A rank sends all it can, then waits for what it
 * needs next, in the order of the schedule; sums arrive in scratch and are
 * added from there. Its operations are cut in time into threadblocks, each
 * of which waits for the one before. WEFT_ELIMIT says which limit does not
 * fit, and what would. WEFT_EUNSUPPORTED: N = 1, all-to-all in place, or
 * sums exchanged within a step in more than one piece.
 * O(chunk hops + operations).
 */
int mscclpp_lower(const struct coll_sched *s, bool inplace, struct mscclpp *out, struct err *err);

/*
 * Proves a plan: the limits of the executor, which it checks in part or not
 * at all; that channels have two ends, and every signal is waited for, every
 * acquire released, so that the plan can run again; that it ends; that no
 * two accesses to a chunk, one of them writing, are unordered
 * (happens-before: nop, signals, semaphores, flush), those of the run before
 * and the reads of proxies included; that every rank ends with what the
 * collective promises and, out of place, with its input untouched. One
 * execution stands for all, as for msccl_check. WEFT_EVERIFY or WEFT_ELIMIT
 * with rank, threadblock and operation. O(operations * threadblocks + chunks
 * moved) time, O(threadblocks^2) memory.
 */
int mscclpp_check(const struct mscclpp *p, struct err *err);

/* The JSON of a plan, appended to out. */
void mscclpp_write(const struct mscclpp *p, struct buf *out);

/* Lowers s, proves the plan, and writes it. Errors of these three. */
int mscclpp_export(const struct coll_sched *s, bool inplace, struct buf *out, struct err *err);

#endif
