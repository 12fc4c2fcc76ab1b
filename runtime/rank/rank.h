/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one rank does in a schedule: the messages that it receives and sends, in
 * order, with their places in its buffers. Whoever runs a schedule by messages
 * (Open MPI: runtime/mpi) starts from this; it needs the rank's part of the
 * schedule only, so compact schedules are never written out.
 *
 * All that an arc carries in a step is one message. Both ends list its chunks in the
 * same order, but cut into pieces as their own buffers lie.
 *
 * Receives are stored in the order of the program, whenever they come: sums are formed
 * in that order, the same in every run. A send may leave as soon as the receives are
 * stored that wrote what it sends, and a receive be stored as soon as the sends have left
 * that read what it writes over (`after`), whatever step others are in. Nothing locks
 * up if a rank lets all messages of a step come before it waits for its sends of that
 * step: then each message waits for messages of earlier steps only.
 */
#ifndef WEFT_RUNTIME_RANK_RANK_H
#define WEFT_RUNTIME_RANK_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

/*
 * The buffers of a rank, in shards of P chunks, N ranks:
 *
 *	                in   out  work
 *	allgather       1    N    0
 *	reduce-scatter  N    1    N     sums of others' shards; out: of the own
 *	allreduce       N    N    k N   sums that are forwarded, in k copies of the vector, or
 *	                                merged ones, in one a message
 *	all-to-all      N    N    what passes through
 *	broadcast       0    N    0     out of the root is what it sends
 *	reduce          N    N    N     sums; those of the root are in out, without work
 *	gather          1    N    what passes through; out: of the root
 *	scatter         N    1    what passes through; in: of the root
 *
 * Sums begin with nothing: until something comes for a chunk it is sent out of RANK_IN, and to what
 * comes first RANK_IN is added. So nothing is copied before, and where nothing is in the way what
 * comes goes to its place. In an all-reduce and at the root of a reduce RANK_IN may be
 * RANK_OUT itself.
 */
enum rank_buf { RANK_IN, RANK_OUT, RANK_WORK };

/* Chunks first .. first + count - 1 of a buffer. */
struct rank_piece {
	uint8_t buf;		/* enum rank_buf */
	bool reduce;		/* received: added to what is there, else stored */
	bool fresh;		/* received, to be added: nothing is there yet, so to RANK_IN's */
	bool keep;		/* received: what came is stored in RANK_WORK too, */
	int32_t kept;		/* from this chunk on */
	bool again;		/* received: the chunks of the piece before once more, into
				 * RANK_WORK, where a sum is made that goes on */
	int32_t first, count;
};

struct rank_message {
	int32_t step;
	int32_t arc;		/* of the schedule's digraph */
	int32_t link;		/* 0, 1, ... among parallel arcs between its ends */
	int32_t peer;		/* rank at the other end */
	int32_t first_piece, pieces;	/* in rank_program.pieces */
	int64_t chunks;		/* of all pieces */
	int64_t after;		/* a send: so many receives must be stored before it; a
				 * receive: so many sends must have left before it is stored */
	/* Of receives: `after` where RANK_IN is RANK_OUT; so many receives wrote there before. */
	int64_t in_place_after, behind;
};

/* Chunks of one buffer to another. */
struct rank_copy {
	struct rank_piece from, to;	/* alike long */
};

struct rank_program {
	enum coll_kind kind;
	int ranks, rank, root, chunks;	/* chunks: of a shard */
	int steps;		/* of the schedule; made from a part, up to its last message */
	int32_t shards[3];		/* of each enum rank_buf */
	VEC(struct rank_message) receives, sends;	/* by step, then arc */
	VEC(struct rank_piece) pieces;
	/* Own data, which no message reads or writes there before the first receive is stored.
	 * Count 0: none. */
	struct rank_copy own;
};

/*
 * The program of a rank in a finished schedule, compact or not, or in its own part
 * (coll_part_of). Light is not looked at: who moves it moves it. rank_program_fini
 * after an error too. WEFT_EINVAL: no such rank, a part of another one, or a sum that is
 * forwarded and has not come;
 * WEFT_EUNSUPPORTED: memories; light that changes between steps; own sums that are merged with
 * others before they leave; WEFT_ELIMIT: more than INT32_MAX
 * chunks in a buffer. O(transfers of the rank log), of a compact schedule those it stands for.
 */
int rank_program_make(const struct coll_sched *s, int rank, struct rank_program *out,
		      struct err *err);
void rank_program_fini(struct rank_program *p);

/*
 * Where chunk k of a buffer begins, in elements, when N shards together (the vector
 * of the collective) have `total`: floor(k total / (N P)). Shards need not divide evenly:
 * chunks differ by one element then, at both ends alike. O(1).
 */
int64_t rank_offset(const struct rank_program *p, int64_t total, int64_t k);

/* Where the chunks of RANK_IN begin that are added to a fresh piece. O(1). */
int32_t rank_own_first(const struct rank_program *p, const struct rank_piece *q);

#endif
