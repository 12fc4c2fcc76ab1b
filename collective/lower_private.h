/* What the files that lower schedules share. */
#ifndef WEFT_COLLECTIVE_LOWER_PRIVATE_H
#define WEFT_COLLECTIVE_LOWER_PRIVATE_H

#include "collective/lower.h"

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

/* All ops of a schedule and the sizes of the buffers, in *out and
 * *ops (array of ranks; lower_ops_free). *phases: how many there are. */
int lower_walk(const struct coll_sched *s, struct lower *out,
	       struct lower_ops **ops, int *phases, struct err *err);
void lower_ops_free(struct lower_ops *ops, int ranks);

/* The limit on what a rank stores of a file. */
int lower_elements_error(int rank, int64_t elements, int ranks,
			 struct err *err);

#endif
