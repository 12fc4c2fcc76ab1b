/*
 * Schedules as programs of the runtimes that interpret them on GPUs.
 *
 * A program has, for every rank, threadblocks that run concurrently, each a
 * list of steps that run in order. A threadblock sends to at most one peer
 * and receives from at most one, on one channel; (sender, receiver, channel)
 * is a connection, a bounded queue whose k-th send meets its k-th receive. A
 * step may wait for one step of another threadblock of its rank.
 *
 * The same form is what schedules are lowered to, what the writers write
 * and what the reader makes of a file, so that one check serves all.
 */
#ifndef WEFT_RUNTIME_MSCCL_MSCCL_H
#define WEFT_RUNTIME_MSCCL_MSCCL_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

enum lower_type {
	LOWER_SEND,	/* s    src -> peer */
	LOWER_RECV,	/* r    peer -> dst */
	LOWER_RCS,	/* rcs  peer -> dst, and on to the send peer */
	LOWER_RRS,	/* rrs  peer + src -> send peer, not stored */
	LOWER_RRC,	/* rrc  peer + src -> dst */
	LOWER_RRCS,	/* rrcs peer + src -> dst, and on to the send peer */
	LOWER_COPY,	/* cpy  src -> dst */
	LOWER_REDUCE,	/* re   src + dst -> dst */
	LOWER_NOP,	/* nop  waits only */
};
#define LOWER_TYPES 9

enum lower_buf { LOWER_IN, LOWER_OUT, LOWER_SCRATCH };

struct lower_step {
	uint8_t type, src_buf, dst_buf;
	bool has_dep;			/* others wait for this step */
	int32_t src, dst;		/* chunks into the buffers, or -1 */
	int32_t cnt;			/* chunks */
	int32_t dep_tb, dep_step;	/* waits for this, or -1 */
};

struct lower_tb {
	int32_t send, recv;		/* peers, or -1 */
	int32_t chan;
	VEC(struct lower_step) steps;
};

struct lower_gpu {
	int32_t chunks[3];		/* of each buffer */
	VEC(struct lower_tb) tbs;
};

#define LOWER_NAME 64

struct lower {
	enum coll_kind kind;
	int ranks, root;
	int loop;	/* chunks of the whole vector: ranks * chunks a shard */
	int channels;
	bool inplace, outofplace; /* which calls the program serves */
	char name[LOWER_NAME];
	struct lower_gpu *gpus;	/* ranks of them */
};

/* What interprets a file, and with it its limits. */
enum lower_dialect {
	LOWER_MICROSOFT,	/* microsoft/msccl */
	LOWER_AZURE,		/* Azure/msccl-executor-nccl */
	LOWER_RCCL,		/* ROCm/rccl */
};

#define LOWER_MAX_RANKS 1024	/* children of an element */
#define LOWER_MAX_COUNT 71	/* chunks of a step */
#define LOWER_MAX_DEP_TB 127	/* kept in a signed byte */
#define LOWER_MAX_ELEMENTS 4095 /* that a rank stores of a file */
#define LOWER_MAX_PEERS 32	/* sending, or receiving, tbs a channel */
#define LOWER_MAX_REDUCES 16	/* of one fused chain of `re` */
#define LOWER_IN_FLIGHT 2	/* sends a connection holds, protocol Simple */
#define LOWER_MAX_CELLS (1 << 25) /* chunks of all buffers of all ranks */

struct lower_limits {
	const char *runtime;	/* for people */
	int steps;		/* of a threadblock */
	int tbs;		/* of a rank */
	int channels;
};

/* What the runtime that reads a dialect can hold. Static. */
const struct lower_limits *lower_limits(enum lower_dialect dialect);

/* "s", "rcs", ...; the type of a name, or -1. */
const char *lower_type_name(enum lower_type type);
int lower_type_parse(const char *name);
/* "allgather", "reducescatter", ...: as NCCL's heirs spell them. */
const char *lower_kind_name(enum coll_kind kind);
/* What a type does: takes from the receive peer, gives to the send peer,
 * reads src, writes dst. */
bool lower_receives(enum lower_type type);
bool lower_sends(enum lower_type type);
bool lower_reads(enum lower_type type);
bool lower_writes(enum lower_type type);

/* Frees what p holds, not p. */
void lower_fini(struct lower *p);

/* The chunk that (buf, off) of this rank is, counted over in, out, scratch;
 * inplace: as one of the buffers lies within the other, both give the same
 * number. */
int64_t lower_cell(const struct lower *p, int rank, int buf, int off,
		   bool inplace);
int64_t lower_cells(const struct lower *p, int rank);

/*
 * A verified schedule as a program within the limits of a dialect; checked
 * (lower_check) before it is returned. Transfers of adjoining chunks are
 * merged, a receive and the send that passes the same chunks on are fused,
 * and the program is cut in time over as many channels as the limit of steps
 * needs. Sends and receives alternate so that never more than
 * LOWER_IN_FLIGHT sends wait in a connection. WEFT_ELIMIT says which limit
 * does not fit, and what would. WEFT_EUNSUPPORTED: N = 1, or chunks whose
 * sums are exchanged within a step beyond what one transfer carries.
 * O(chunk hops + steps * threadblocks of a rank).
 */
int lower_schedule(const struct coll_sched *s, enum lower_dialect dialect,
		   struct lower *out, struct err *err);

/*
 * Proves a program: the limits and static rules of the dialect; that k-th
 * sends and receives match; that it ends with LOWER_IN_FLIGHT sends a
 * connection; that no two unordered steps touch one chunk, one of them
 * writing (happens-before: order in a threadblock, dependencies, send before
 * its receive); that every rank ends with what the collective promises, and
 * with its input untouched when called out of place. In place and out of
 * place, as the program says it serves. Since order does not change what a
 * race-free program computes, one execution stands for all; contents are
 * random 64-bit numbers and sums, so a wrong result passes with probability
 * 2^-64 a chunk. WEFT_EVERIFY or WEFT_ELIMIT with rank, threadblock, step.
 * O(steps * threadblocks of a rank + chunks moved).
 */
int lower_check(const struct lower *p, enum lower_dialect dialect,
		struct err *err);

/* The XML of a program, and the program of an XML. The reader keeps to the
 * lexical rules of the runtimes, which are narrower than XML; it refuses
 * what they refuse or silently misread (WEFT_EINVAL, with line and column).
 * It does not check what lower_check does. The root of a broadcast, which
 * the format does not tell, is the one rank that never receives. */
int msccl_write(const struct lower *p, enum lower_dialect dialect,
		struct buf *out, struct err *err);
int msccl_read(const char *text, size_t len, enum lower_dialect dialect,
	       struct lower *out, struct err *err);

/* Lowers, writes, reads the text again and checks that too. */
int msccl_export(const struct coll_sched *s, enum lower_dialect dialect,
		 struct buf *out, struct err *err);

#endif
