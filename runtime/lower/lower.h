/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule as what each rank has to do: sends and receives in an order that
 * cannot lock up, and copies of its own, with places in three buffers. Every
 * runtime that runs schedules starts from this.
 *
 * A synchronous step becomes rounds. In a round every pair of ranks passes at
 * most one piece, a run of chunks that is contiguous at both ends, and all
 * sends of a round come before its receives. So the sequence is itself an
 * execution with at most one piece on the way between two ranks.
 */
#ifndef WEFT_RUNTIME_LOWER_LOWER_H
#define WEFT_RUNTIME_LOWER_LOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

/* Chunks in the buffers of all ranks that weft lowers and proves. */
#define LOWER_MAX_CELLS (1 << 25)

/* What a call hands over (its input, its output), and room that the runtime
 * allocates. */
enum lower_buf { LOWER_IN, LOWER_OUT, LOWER_SCRATCH };

enum lower_type {
	LOWER_SEND,	/* src -> peer */
	LOWER_RECV,	/* peer -> dst */
	LOWER_SUM,	/* peer + src -> dst */
	LOWER_COPY,	/* src -> dst, within the rank */
	LOWER_ADD,	/* scratch + src -> dst, within the rank: what has come from peer
			 * `near`, and perhaps others, and is sent on later */
	LOWER_SAVE,	/* src -> scratch, within the rank: what goes to peer `near` in this
			 * step, and is added to before */
};

/* `phase` numbers the rounds over all ranks and steps: in a phase a rank sends
 * at most one piece to each peer, and all its sends come before its
 * receives. */
struct lower_op {
	uint8_t type, src_buf, dst_buf;	/* enum lower_type, lower_buf */
	int32_t send, recv;		/* peers, or -1 */
	int32_t src, dst, cnt;		/* chunks into the buffers, or -1 */
	int32_t near, scratch;		/* of LOWER_ADD, near also of LOWER_SAVE; else 0 */
	int32_t phase;
	int32_t id;	/* of its first chunk, alike on all ranks: origin * P +
			 * chunk; all-to-all: (origin * N + destination) * P + chunk */
};

/* What one rank does, in an order that cannot lock up. */
struct lower_rank {
	int32_t chunks[3];	/* of each buffer; scratch may have holes */
	VEC(struct lower_op) ops;
};

/* A lowered schedule. */
struct lower {
	enum coll_kind kind;
	int ranks, root;
	int loop;		/* chunks of the whole vector: ranks * chunks a
				 * shard, chunks that always move together as one; of
				 * one shard where all move alike */
	int phases;
	struct lower_rank *rank;	/* ranks of them */
};

/* What no lowering for a runtime can exceed. */
struct lower_bounds {
	int ranks;	/* of a program */
	int count;	/* chunks of an op */
	int elements;	/* a rank stores of a file, or 0: any number */
};

/*
 * Where a value is follows from the collective: a rank's own contribution
 * stays in its input until it is first added to, so no copy is made of it, and
 * the same ops serve calls in place and out of place. Sums that are sent on later stay in
 * scratch, what came under one number in a step added up, and so do those of several that are
 * merged. A rank goes on to what
 * is next as soon as its own data has come, so nothing would hold it back while
 * devices move light. WEFT_EUNSUPPORTED: light that changes between steps, or one
 * rank; WEFT_ELIMIT with a hint of what fits; WEFT_EINVAL: a sum that is forwarded before it has
 * come, which no verified schedule has. lower_fini also after an error. O(chunk hops log).
 */
int lower_schedule(const struct coll_sched *s, const struct lower_bounds *bounds, struct lower *out,
		   struct err *err);
void lower_fini(struct lower *l);

/*
 * The same in lanes that know nothing of one another, one after the other:
 * each chunk is divided over `copies`, and in each copy every run of `per`
 * chunks that begins at a multiple of it belongs to lane (id / per) modulo
 * lanes. So phases become phases * lanes * copies, a lane's together. `lanes`
 * is at least lower_span(in, per), so that of an op a lane has one run; with
 * copies > 1, per divides P unless the collective is an all-reduce or a
 * broadcast. Copies of a rank's own stay with the first lane of each copy.
 * O(parts of ops + ranks * lanes * copies).
 */
void lower_lanes(const struct lower *in, int per, int lanes, int copies, struct lower *out);

/* How many runs of `per` chunks an op that sends touches at most. O(ops). */
int lower_span(const struct lower *l, int per);

/* Whether all ranks have the whole vector, so that its chunks need not be shards. */
bool lower_is_whole(enum coll_kind kind);

/* "allgather", "reducescatter", ...: as NCCL's heirs spell them. */
const char *lower_kind_name(enum coll_kind kind);

/* The chunk that (buf, off) is, counted over in, out, scratch of a rank with
 * these chunks whose shard begins at chunk `shard` of the vector; inplace: as
 * one of the buffers lies within the other, both give the same number. */
int64_t lower_cell(enum coll_kind kind, const int32_t chunks[3],
		   int64_t shard, int buf, int64_t off, bool inplace);

/* Scratch without its holes: to[c] becomes the new place of chunk c, -1 where
 * used[c] is 0. Runs that are used stay runs. Returns how many are used. */
int32_t lower_pack_scratch(int32_t *used, int64_t n);

/* The number that stands for chunk k of a rank's input when a program is
 * run, and the one that chunk k of its output shall then hold, modulo 2^64:
 * sums add up. loop: chunks of the whole vector. */
uint64_t lower_token(int rank, int64_t k);
uint64_t lower_expected(enum coll_kind kind, int ranks, int loop, int root, int rank, int64_t k);

/* WEFT_ELIMIT: what a rank stores of a file exceeds `max` elements. */
int lower_elements_error(int rank, int64_t elements, int ranks, int max, struct err *err);

#endif
