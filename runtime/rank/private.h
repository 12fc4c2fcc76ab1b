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

/* Of a sum that the rank forwards, kept under a number: what goes into which message. */
struct rank_merge_row {
	int32_t number, message;
	int32_t origin;		/* -1: of all shards */
	int32_t first, last;	/* chunks of the shard */
	bool own;		/* with what the rank itself contributes */
};

/*
 * Where sums are merged each message that the rank sends has a copy of the vector in the work
 * buffer: whatever comes that belongs to it is added there as it comes.
 */
struct rank_merged {
	VEC(struct rank_merge_row) rows;	/* by number */
	struct u64map messages;	/* by step, arc and number at the head */
	int n_messages;
	int64_t vector;		/* chunks of a copy */
	int chunks;		/* of a shard */
};

/* For the part of this rank, of whose schedule `unit` chunks are one; empty where none are merged.
 * WEFT_EUNSUPPORTED: own sums with those of others, of some chunks of a message only.
 * O(transfers log). */
int rank_merged_make(struct rank_merged *g, const struct coll_sched *part, int rank, int unit,
		     struct err *err);
void rank_merged_fini(struct rank_merged *g);
/* The copy of the message that a transfer is of; -1: it has none, as nothing that came goes into
 * it. O(1). */
int64_t rank_merged_copy(const struct rank_merged *g, const struct coll_xfer *x);
/* The rows of a number: from the one returned to before *end. O(log). */
size_t rank_merged_find(const struct rank_merged *g, int number, size_t *end);
/* Whether a chunk of the vector goes into a row's message. */
bool rank_merged_covers(const struct rank_merged *g, const struct rank_merge_row *row,
			int64_t chunk);

#endif
