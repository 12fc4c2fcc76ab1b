/* What the files that lower schedules share. */
#ifndef WEFT_RUNTIME_MSCCL_PRIVATE_H
#define WEFT_RUNTIME_MSCCL_PRIVATE_H

#include "runtime/msccl/msccl.h"

/* A step before it has a threadblock. The ops of a rank stand in an order
 * in which the whole program can run; `phase` numbers that order over all
 * ranks: in a phase every connection carries at most one send, all sends
 * before all receives. */
struct lower_op {
	uint8_t type, src_buf, dst_buf;
	bool gone;		/* fused into the receive before it */
	int32_t send, recv;	/* peers, or -1 */
	int32_t src, dst, cnt;
	int32_t phase;
	int32_t writer;		/* the op that wrote all it reads, or -1 */
	int32_t readers;	/* ops that read what it wrote */
	int32_t lost;		/* chunks it wrote that are written again */
	int32_t tb, step;	/* where it went */
};

struct lower_ops {
	VEC(struct lower_op) ops;
};

/* What no lowering of a schedule can exceed. */
struct lower_bounds {
	int ranks;	/* of a program */
	int count;	/* chunks of an op */
	int elements;	/* a rank stores of a file, or 0: any number */
};

/* All ops of a schedule and the sizes of the buffers, in *out and
 * *ops (array of ranks; lower_ops_free). *phases: how many there are. */
int lower_walk(const struct coll_sched *s, const struct lower_bounds *bounds,
	       struct lower *out, struct lower_ops **ops, int *phases,
	       struct err *err);
void lower_ops_free(struct lower_ops *ops, int ranks);

/* lower_cell of any program: chunks of the buffers, and the first chunk of
 * the rank's shard. */
int64_t lower_place(enum coll_kind kind, const int32_t chunks[3],
		    int64_t shard, int buf, int64_t off, bool inplace);

/* The number that stands for chunk k of a rank's input when a program is
 * run, and the one that chunk k of its output shall then hold, modulo 2^64.
 * loop: chunks of the whole vector. */
uint64_t lower_token(int rank, int64_t k);
uint64_t lower_expected(enum coll_kind kind, int ranks, int loop, int root,
			int rank, int64_t k);

/* The limit on what a rank stores of a file. */
int lower_elements_error(int rank, int64_t elements, int ranks,
			 struct err *err);

#endif
