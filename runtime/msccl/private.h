/* What the files that prove programs share. */
#ifndef WEFT_RUNTIME_MSCCL_PRIVATE_H
#define WEFT_RUNTIME_MSCCL_PRIVATE_H

#include "lib/base/map.h"
#include "runtime/msccl/msccl.h"

/* A threadblock of the whole program. */
struct check_tb {
	const struct msccl_tb *tb;
	int32_t rank, id;
	int32_t from, to;	/* threadblocks it is connected with, or -1 */
	int64_t first_op;	/* its step k is op first_op + k */
};

struct check {
	const struct msccl *p;
	int32_t *base;		/* by rank: its first threadblock; + end */
	struct check_tb *tbs;
	int64_t n_ops;
	int64_t *sent_by;	/* by op that receives: the op that sends */
	struct check_op {
		int32_t tb, step;
	} *order;		/* an execution: every op once */
};

/* Runs the program with bounded connections and compares what every rank
 * ends with; fills c->order. WEFT_EVERIFY: it locks up, or a result is
 * wrong. */
int check_run(struct check *c, bool inplace, struct err *err);

/* WEFT_EVERIFY: two steps touch a chunk in no certain order, one writing.
 * Needs c->order. */
int check_races(struct check *c, bool inplace, struct err *err);

#endif
