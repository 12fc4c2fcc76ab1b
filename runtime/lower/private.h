/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that lower schedules share: a schedule on its way, step by step. */
#ifndef WEFT_RUNTIME_LOWER_PRIVATE_H
#define WEFT_RUNTIME_LOWER_PRIVATE_H

#include "lib/base/map.h"
#include "runtime/lower/lower.h"

/* Where a chunk is in a rank. */
struct lower_place {
	int buf;		/* enum lower_buf */
	int64_t off;		/* in chunks */
};

/* Chunks id .. id + cnt - 1, all numbered origin * P + chunk or, in
 * all-to-all, (origin * N + destination) * P + chunk; chunk, where all shards move alike. */
struct lower_piece {
	int32_t src, dst;	/* ranks */
	int32_t id, cnt;
	int32_t round;
	bool reduce, urgent;	/* urgent: its source is written this step */
	bool first, last;	/* kept: of what comes under the number in this step; whole:
				 * it takes the place of what is there */
	int32_t number;		/* of a sum: under which it is kept at dst, or would be; + ranks:
				 * apart; 2 ranks: whole, under none */
	int64_t message;	/* parts of one are sent as their sum */
	int32_t copy;		/* of scratch, in which src has it; -1: its own value */
	int32_t near;		/* from whom src has it, if not its own */
	int32_t keep;		/* copy of scratch that it is added up in at dst, or -1 */
	struct lower_place from, with, to;
};

/* What came to a rank under a number in a step, of one chunk, and is sent on later. */
struct lower_arrival {
	int32_t step, before;	/* before: what came in an earlier step, + 1; 0: nothing */
	int32_t near;		/* who sent some of it */
	uint16_t copy;		/* of scratch */
	int32_t try, parts, met;	/* pieces of this try; of these come so far */
};

/* A sum of two copies of scratch of a rank in a third one. a -1: of its input and one, -2: of its
 * value where that is not in the input any more; b -1 too: the value alone. */
struct lower_addition {
	int32_t rank, id, a, b, to, near;
};

/* Sums that ranks keep to send them on. Scratch has copies of the vector. */
struct lower_sums {
	struct u64map numbers;	/* by rank, number (as of pieces), id: the newest arrival, + 1; 0:
				 * none yet */
	VEC(struct lower_arrival) arrivals;
	uint16_t *copies;	/* that are taken, by rank * ids + id; NULL: none yet */
	struct u64map added;	/* in this step, by rank * ids + id, a, b: the copy */
	VEC(struct lower_addition) additions;	/* of this step, before it sends */
	struct u64map saved;	/* rank * ids + id: the value is saved before this step */
	int try;		/* of all steps */
};

/* A schedule being lowered, step by step. */
struct lower_walk {
	const struct coll_sched *s;
	const struct lower_bounds *bounds;
	enum coll_kind kind;
	int n, p;		/* ranks; chunks a shard, in units of `unit` */
	int unit;
	int64_t ids;		/* numbers of chunks, see struct lower_piece */
	struct lower *out;
	int64_t *count;		/* of ops by rank, those not kept included */
	bool over;		/* too many for the runtimes: only counts */
	uint8_t *got;		/* rank * ids + id: no longer in the input */
	int32_t *stamp;		/* 2 step + 1: written this step; + 2: done */
	int step;
	VEC(struct lower_piece) pieces;
	struct u64map cuts;	/* pieces must begin here, see key_of */
	bool cut;		/* this try has added to them */
	VEC(int64_t) undo;	/* what the step set in got */
	struct lower_sums sums;
};

/* The number of a transfer's first chunk. */
int32_t lower_id(const struct lower_walk *w, const struct coll_xfer *x);

/* A rank that this one has a link to. */
int lower_neighbour(const struct lower_walk *w, int rank);

/* Notes which numbers are sent on. O(chunks of transfers). */
void lower_sums_init(struct lower_walk *w);
void lower_sums_fini(struct lower_sums *k);

/* A step begins: what came before it can be sent. */
void lower_sums_step(struct lower_walk *w);

/* The pieces of one chunk that are parts of a transfer's message, which q is like: one, or each
 * that came under the number it forwards. WEFT_EINVAL: nothing has come. */
int lower_sums_parts(struct lower_walk *w, const struct coll_xfer *x, struct lower_piece q);

/* Joins the parts of messages in w->pieces, each to the copy of scratch that will have the sum.
 * WEFT_ELIMIT: too many copies. O(pieces log). */
int lower_sums_join(struct lower_walk *w);

/* A rank's value of this chunk is saved before the step; pieces of the next try are sent from
 * there (lower_sums_saved: q, if it is such a one; WEFT_ELIMIT as above). */
void lower_sums_save(struct lower_walk *w, int rank, int64_t id);
int lower_sums_saved(struct lower_walk *w, struct lower_piece *q);

/* Gives what comes a place where its head keeps it, if it sends it on. WEFT_ELIMIT as above. */
int lower_sums_keep(struct lower_walk *w, struct lower_piece *q);

/* Chunk k of a piece that is kept arrives: whether it is the first, or last, of its arrival. */
void lower_sums_meet(struct lower_walk *w, const struct lower_piece *q, int32_t k, bool *first,
		     bool *last);

#endif
