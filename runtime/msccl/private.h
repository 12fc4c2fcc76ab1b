/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that prove programs share. */
#ifndef WEFT_RUNTIME_MSCCL_PRIVATE_H
#define WEFT_RUNTIME_MSCCL_PRIVATE_H

#include "lib/base/map.h"
#include "runtime/msccl/msccl.h"

/* A threadblock of the whole program. */
struct msccl_proof_tb {
	const struct msccl_tb *tb;
	int32_t rank, id;
	int32_t from, to;	/* threadblocks it is connected with, or -1 */
	int64_t first_op;	/* its step k is op first_op + k */
};

struct msccl_proof {
	const struct msccl *p;
	bool early_flags;	/* msccl_early_flags() */
	int32_t *base;		/* by rank: its first threadblock; + end */
	struct msccl_proof_tb *tbs;
	int64_t n_ops;
	int64_t *sent_by;	/* by op that receives: the op that sends */
	struct msccl_proof_op {
		int32_t tb, step;
	} *order;		/* an execution: every op once */
	struct arrays arrays;	/* all of these */
};

/* Runs the program with bounded connections, `split` chunks a piece, and
 * compares what every rank ends with; fills c->order with the steps as they
 * began. WEFT_EVERIFY: it locks up, or a result is wrong. O(chunks moved). */
int msccl_check_run(struct msccl_proof *c, int split, bool inplace, struct err *err);

/* WEFT_EVERIFY: two steps touch a chunk in no certain order, one writing.
 * Needs c->order. */
int msccl_check_races(struct msccl_proof *c, bool inplace, struct err *err);

#endif
