/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that build programs share; build.c says how they do it. */
#ifndef WEFT_RUNTIME_MSCCL_BUILD_H
#define WEFT_RUNTIME_MSCCL_BUILD_H

#include "runtime/msccl/msccl.h"

#define NONE (-1)

/* A step before it has a threadblock. */
struct msccl_op {
	uint8_t type, src_buf, dst_buf;
	bool fused;		/* into the receive before it */
	bool own;		/* what a rank copies for itself and no other op touches */
	int32_t send, recv;	/* peers, or NONE */
	int32_t near;		/* beside the receives of this peer, or NONE */
	int32_t src, dst, cnt;
	int32_t phase;
	int32_t writer;		/* the op that wrote all it reads, or NONE */
	int32_t readers;	/* ops that read what it wrote */
	int32_t lost;		/* chunks it wrote that are written again */
	int32_t tb, step;	/* where it went */
};

/* A read of a cell since it was last written; those of a cell are a list. */
struct msccl_read {
	int32_t op, before;	/* before: in `reads`, or NONE */
};

/* One rank being built. */
struct msccl_build {
	struct msccl *p;
	const struct msccl_limits *lim;
	int rank, phases, blocks;	/* blocks: parts that time is cut in; */
	int block_step;		/* their number is a multiple of this */
	int groups;		/* of peers; a block has a channel for each */
	int32_t *group;		/* by (receiver - sender) modulo ranks */
	/* Every send peer shares a threadblock with some receive peer, also
	 * where no data passes on: tried when threadblocks are too many. */
	bool pair_all;
	bool early_flags;	/* msccl_early_flags() */
	bool apart;		/* no send peer beside a receive peer */
	bool sends_copies;	/* of what is written again later: copied to scratch before */
	struct msccl_op *ops;
	int n_ops;
	int64_t cells;
	int32_t *writer;	/* by cell: op that wrote it last */
	int32_t *reader;	/* by cell: newest read since, in `reads` */
	VEC(struct msccl_read) reads;
	int32_t *mate;		/* by rank: send peer beside a receive peer */
	int32_t *mated;		/* by rank: receive peer beside a send peer */
	int32_t *wait;		/* by threadblock: op to wait for, or NONE */
	int32_t *clock;		/* of an op, by threadblock: the last op known
				 * to be over */
	int32_t *last;		/* by threadblock: its last op so far */
};

/* The chunk of the rank at hand, over all its buffers. */
static inline int64_t msccl_cell_of(const struct msccl_build *b, int buf, int32_t off)
{
	return msccl_cell(b->p, b->rank, buf, off, b->p->inplace);
}

/* Nobody has read or written a cell of the rank. O(cells). */
void msccl_forget_cells(struct msccl_build *b);

/* The group of channels that a pair of ranks uses. */
int msccl_group_of(const struct msccl_build *b, int from, int to);

/* Deals the pairs of ranks to b->groups groups, so that none has more peers
 * than a channel takes; b->group is the caller's to free.
 * O(ops + ranks). */
void msccl_group_peers(struct msccl_build *b, const struct lower *l);

/* Fills b->mate and b->mated for the rank at hand: no pairs when b->apart, all
 * that can be when b->pair_all, else those that data passes on between.
 * O(ops log ops). */
void msccl_pair_peers(struct msccl_build *b);

/* Steps in the threadblocks of the rank at hand, for ops that have one, with the
 * waits that they need. O(ops * threadblocks + chunks moved). */
void msccl_order_ops(struct msccl_build *b);

/* The threadblocks of all ranks, within the limits; b has p, lim, block_step,
 * apart, and in blocks the parts to begin with. WEFT_ELIMIT: no such.
 * O(ops * threadblocks of a rank + chunks moved) for each number of parts tried. */
int msccl_build(struct msccl_build *b, const struct lower *l, struct err *err);

#endif
