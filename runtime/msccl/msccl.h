/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules as programs of MSCCL, which interprets them on GPUs: those that
 * the executors of Azure and of RCCL load.
 *
 * A program has, for every rank, threadblocks that run concurrently, each a
 * list of steps that run in order. A threadblock sends to at most one peer
 * and receives from at most one, on one channel; (sender, receiver, channel)
 * is a connection, a bounded queue whose k-th send meets its k-th receive. A
 * step may wait for one step of another threadblock of its rank.
 *
 * Schedules are lowered to this form, it is proven, and then written.
 */
#ifndef WEFT_RUNTIME_MSCCL_MSCCL_H
#define WEFT_RUNTIME_MSCCL_MSCCL_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"
#include "runtime/lower/lower.h"

enum msccl_type {
	MSCCL_SEND,	/* s    src -> peer */
	MSCCL_RECV,	/* r    peer -> dst */
	MSCCL_RCS,	/* rcs  peer -> dst, and on to the send peer */
	MSCCL_RRS,	/* rrs  peer + src -> send peer, not stored */
	MSCCL_RRC,	/* rrc  peer + src -> dst */
	MSCCL_RRCS,	/* rrcs peer + src -> dst, and on to the send peer */
	MSCCL_COPY,	/* cpy  src -> dst */
	MSCCL_REDUCE,	/* re   src + dst -> dst */
	MSCCL_NOP,	/* nop  waits only */
};
#define MSCCL_TYPES 9

/* A step of a threadblock, as the runtime runs it. */
struct msccl_step {
	uint8_t type, src_buf, dst_buf;	/* enum msccl_type, lower_buf */
	bool has_dep;			/* others wait for this step */
	int32_t src, dst;		/* chunks into the buffers, or -1 */
	int32_t cnt;			/* chunks */
	int32_t dep_tb, dep_step;	/* waits for this, or -1 */
};

/* A threadblock: one sender and one receiver on one channel. */
struct msccl_tb {
	int32_t send, recv;		/* peers, or -1 */
	int32_t chan;
	VEC(struct msccl_step) steps;
};

/* What one rank runs. */
struct msccl_gpu {
	int32_t chunks[3];		/* of each enum lower_buf */
	VEC(struct msccl_tb) tbs;
};

/* How a kernel passes data: Simple by large pieces behind counters, LL and
 * LL128 with a flag in every 8 and 128 bytes (RCCL: 64). */
enum msccl_proto { MSCCL_SIMPLE, MSCCL_LL, MSCCL_LL128 };
#define MSCCL_PROTOS 3

#define MSCCL_NAME 64

/* A program for all ranks. */
struct msccl {
	enum coll_kind kind;
	int ranks, root;
	int loop;	/* chunks of the whole vector: ranks * chunks a shard */
	int channels;
	bool inplace, outofplace; /* which calls the program serves, */
	int64_t min_bytes, max_bytes;	/* of vectors so large; max 0: any */
	enum msccl_proto proto;
	int beside;	/* channels between two ranks that work at the same time;
			 * not in files */
	char name[MSCCL_NAME];
	struct msccl_gpu *gpus;	/* ranks of them */
};

/* What interprets a file, and with it its limits. */
enum msccl_dialect {
	MSCCL_AZURE,		/* Azure/msccl-executor-nccl */
	MSCCL_RCCL,		/* ROCm/rccl */
};

#define MSCCL_MAX_RANKS 1024	/* children of an element */
#define MSCCL_MAX_COUNT 71	/* chunks of a step */
#define MSCCL_MAX_DEP_TB 127	/* kept in a signed byte */
#define MSCCL_MAX_ELEMENTS 4095 /* that a rank stores of a file */
#define MSCCL_MAX_PEERS 32	/* sending, or receiving, tbs a channel */
#define MSCCL_MAX_CHUNKS 32768	/* of a buffer: offsets are 16 bits with a sign */
#define MSCCL_WIDE 64	/* tbs that a rank takes only to be faster */
#define MSCCL_MAX_REDUCES 16	/* of one fused chain of `re` */

/* Numbers that a runtime's fixed tables can hold. */
struct msccl_limits {
	const char *runtime;	/* for people */
	int steps;		/* of a threadblock */
	int tbs;		/* of a rank */
	int channels;
};

/* What the runtime that reads a dialect can hold. Static. */
const struct msccl_limits *msccl_limits(enum msccl_dialect dialect);

/* "s", "rcs", ... */
const char *msccl_type_name(enum msccl_type type);
/* What a type does: takes from the receive peer, gives to the send peer,
 * reads src, writes dst. */
bool msccl_receives(enum msccl_type type);
bool msccl_sends(enum msccl_type type);
bool msccl_reads(enum msccl_type type);
bool msccl_writes(enum msccl_type type);

/* "Simple", "LL", "LL128". */
const char *msccl_proto_name(enum msccl_proto proto);
/* Pieces that a connection of a protocol holds: 2 of Simple, else 8. */
int msccl_slots(enum msccl_proto proto);
/* RCCL ends a send of LL without a barrier (msccl_kernel_impl.h): some threads
 * may still read when the flag is raised or the next step begins, unless that
 * has a barrier of its own. */
bool msccl_early_flags(enum msccl_dialect dialect, enum msccl_proto proto);
/* Bytes that a piece holds at most, with the runtime's default buffers
 * (msccl_setup.cc: chunkEffectiveSize). */
int64_t msccl_piece_bytes(enum msccl_dialect dialect, enum msccl_proto proto, enum coll_kind kind);
/* Chunks a piece in calls of so many bytes of the whole vector (msccl_setup.cc:
 * maxAllowedCount); 1 to MSCCL_MAX_COUNT, falling with bytes. */
int msccl_split(const struct msccl *p, enum msccl_dialect dialect, int64_t bytes);

/* The most of all ranks. */
struct msccl_extent {
	int steps;	/* of a threadblock */
	int tbs;	/* of a rank */
	int waited;	/* threadblocks of a rank that others wait for */
};

/* O(steps). */
struct msccl_extent msccl_extent(const struct msccl *p);

/* Frees what p holds, not p. */
void msccl_fini(struct msccl *p);

/* lower_cell of a rank of p; how many cells a rank has. */
int64_t msccl_cell(const struct msccl *p, int rank, int buf, int off, bool inplace);
int64_t msccl_cells(const struct msccl *p, int rank);

/* What a program shall be like. */
struct msccl_options {
	enum msccl_dialect dialect;
	enum msccl_proto proto;
	int instances;	/* copies side by side, each of a part of every chunk; from 1 */
	int tbs;	/* at most so many threadblocks a rank; 0: what the runtime
			 * takes, and 64 where more only make it faster */
};

/*
 * A verified schedule as a program within the limits of a dialect; checked
 * (msccl_check) before it is returned. Transfers of adjoining chunks are
 * merged, a receive and the send that passes the same chunks on are fused,
 * and the program is cut in time over as many channels as the limit of steps
 * needs. Where that could lock up, another layout is taken (layout.c); where none
 * holds for calls of all sizes, out->max_bytes says up to which it does.
 * WEFT_ELIMIT says which limit does not fit, and what would. WEFT_EUNSUPPORTED:
 * N = 1, or chunks whose sums are exchanged within a step beyond what one
 * transfer carries. O(chunk hops + steps * threadblocks of a rank) a layout.
 */
int msccl_lower_as(const struct coll_sched *s, const struct msccl_options *o, struct msccl *out,
		   struct err *err);

/*
 * Proves a program: the limits and static rules of the dialect; that k-th
 * sends and receives match; that it ends in its sizes of calls, however the
 * kernels divide steps into pieces there, with msccl_slots() pieces a
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
int msccl_check(const struct msccl *p, enum msccl_dialect dialect, struct err *err);

/* The fewest chunks a piece from which on p does not lock up, of all up to its
 * largest step; 1: it never does. WEFT_EVERIFY: it does however it is divided. */
int msccl_least_split(const struct msccl *p, enum msccl_dialect dialect, int *out,
		      struct err *err);

/* From what programs are chosen. */
struct msccl_request {
	enum msccl_dialect dialect;
	bool protos[MSCCL_PROTOS];	/* that may be chosen */
	int instances;		/* of each program; 0: as many as link_bps needs */
	int tbs;		/* as in struct msccl_options */
	int64_t link_bps;	/* of an arc of capacity 1 */
};

/* A program, and why it has that form. */
struct msccl_choice {
	struct msccl p;
	int instances;
	char why[200];
};

/* By rising size of calls, each of another protocol. */
struct msccl_choices {
	struct msccl_choice v[MSCCL_PROTOS];
	int n;
	char left_out[240];	/* the last protocol that could not be, or "" */
};

/*
 * The programs of a verified schedule for calls of all sizes; their sizes join without a
 * gap. The time of a call of M bytes is taken as base + steps * hop
 * + M * slope / share, slope being coll_time's with alpha = 0 and no more than 20
 * GB/s a channel, and base, hop and share of the protocol those of NCCL's tuning.cc
 * for rings over a network. One protocol alone is for all sizes. Copies are as many
 * as bring a link's channels together to link_bps, while limits last; LL has one.
 *
 * The last one's max_bytes is not 0 where its layout does not hold for larger
 * calls. A protocol that fits no limit or layout is left out while another
 * remains. Errors of msccl_lower_as, with nothing in out. Effort of that, for
 * each protocol and number of copies.
 */
int msccl_choose(const struct coll_sched *s, const struct msccl_request *w,
		 struct msccl_choices *out,
		 struct err *err);

/* Frees the programs. */
void msccl_choices_fini(struct msccl_choices *c);

/* The XML of a program, as docs/lowering.md describes it: one file for all
 * sizes and for every kind of calls that the program serves. */
void msccl_write(const struct msccl *p, struct buf *out);

#endif
