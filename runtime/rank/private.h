/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank keeps the sums that it forwards. */
#ifndef WEFT_RUNTIME_RANK_PRIVATE_H
#define WEFT_RUNTIME_RANK_PRIVATE_H

#include "lib/base/map.h"
#include "runtime/rank/rank.h"

/* A chunk in the work buffer: kept until this step, of which rank the sum is. */
struct rank_kept_cell {
	int32_t until, of;
};

/*
 * The work buffer of an all-reduce is some copies of the whole vector; a sum is kept in
 * the first of them in which the place of its chunk is free: one that was forwarded for the last
 * time in an earlier step. So chunks of a message that lie in a row stay so. A rank
 * gets a chunk of another's sum only once, as two have contributions in common.
 */
struct rank_kept {
	int ranks;
	int64_t vector;		/* chunks of a copy */
	struct u64map until;	/* by chunk and rank: the last step that forwards its sum */
	VEC(struct rank_kept_cell) cells;	/* of all copies */
};

/* For the part of this rank, of whose schedule `unit` chunks are one. O(chunks that it
 * forwards). */
void rank_kept_make(struct rank_kept *k, const struct coll_sched *part, int rank, int unit);
void rank_kept_fini(struct rank_kept *k);

/* The place in the work buffer of a chunk of the vector, of the sum of rank `of`; -1: it is not
 * kept. O(copies). */
int64_t rank_kept_find(const struct rank_kept *k, int64_t chunk, int of);
/* The same for one that comes in this step, after all that is sent in it; -1 when it is not
 * forwarded. O(copies). */
int64_t rank_kept_take(struct rank_kept *k, int64_t chunk, int of, int step);

#endif
