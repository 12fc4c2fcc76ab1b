/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: the parts that a broadcast is put together from. */
#ifndef WEFT_OPTREE_BROADCAST_BROADCAST_H
#define WEFT_OPTREE_BROADCAST_BROADCAST_H

#include "optree/private.h"

/*
 * The vector is counted through in chunks, shard after shard. Nodes are named
 * by their offset clockwise from the root; on a line an offset n-k is the
 * k-th node before the root.
 */

/* Chunks first..end-1 over one lightpath, on these colours of its direction. */
struct broadcast_send {
	int32_t step;
	int32_t from, to;	/* offsets */
	uint8_t dir;
	int32_t colour, width;
	int64_t first, end;
};

/*
 * Pieces from neighbour to neighbour both ways, `steps` of them, on the same
 * light all the time. In step k the root sends its emission number k each
 * way, and every other node what it received from the side of the root in the
 * step before.
 */
struct broadcast_stream {
	int n;
	int32_t steps;
	int32_t hops[2];	/* nodes that are reached each way */
	int64_t width[2];	/* channels each way */
	int span;		/* links between the farthest neighbours */
	int64_t load;		/* chunks on a channel in a step */
	int64_t chunks;		/* of the vector */
	bool paired;		/* ring: what one way does not reach comes the
				 * other; else all goes both ways whole */
	bool seeded;		/* every node has a piece when it begins */
	int64_t full, pairs;	/* emissions for all nodes, each way; for some
				 * of them, by pairs */
};

enum broadcast_method { BROADCAST_GAPS, BROADCAST_STREAM, BROADCAST_GATHER };

/* Sends first, one by one; then a stream, an all-gather or nothing. */
struct optree_broadcast {
	enum broadcast_method method;
	int root;
	int chunks;		/* of a shard */
	VEC(struct broadcast_send) sends;	/* by step */
	int32_t send_steps;
	struct broadcast_stream stream;	/* steps 0: none */
	struct optree_sym *gather;	/* or NULL; owned */
	int64_t time_ns;	/* -1: none */
	int64_t plain_ns;	/* with a retuning in every step */
};

void broadcast_fini(struct optree_broadcast *b);

/* Takes *b over when it has a time and is faster than *best; frees the
 * other one. */
void broadcast_keep(struct optree_broadcast *best, struct optree_broadcast *b);

/* Nodes that are reached from offset 0 clockwise and counter-clockwise when
 * none passes the ends of a line: n-1 both on a ring. */
void broadcast_sides(const struct optree_params *p, int root, int sides[2]);

/* Rank at an offset. */
static inline int broadcast_rank(const struct optree_params *p, int root, int offset)
{
	return (root + offset) % p->n;
}

/* Time of the vector on one channel, in ns. */
double broadcast_vector_ns(const struct optree_params *p);

/* Sets the times of what is in *b: -1 when it lasts too long, or when a step
 * sends nothing. gather_ns: of b->gather. Between neighbours light is taken to
 * need as long as between the farthest two. O(sends). */
void broadcast_time(const struct optree_params *p, int64_t gather_ns, struct optree_broadcast *b);

/* ---- the ways ---- */

/*
 * Gaps between holders, all filled alike: each round m nodes of every gap get
 * the vector from its two ends, the one in the middle a part of it from each.
 * Which m in which round is found by a dynamic programme over the widest gap.
 * out->time_ns -1 when light does not reach. O(n w).
 */
void broadcast_gaps(const struct optree_params *p, int root, int reach,
		    struct optree_broadcast *out);

/*
 * The root gives every node its own piece, over lightpaths that share the
 * channels in `slots` steps. first, end: chunks of the piece of each offset
 * 1..n-1; none where they are equal. Appends to out->sends.
 */
void broadcast_scatter(const struct optree_params *p, int root, int slots, const int64_t *first,
		       const int64_t *end, struct optree_broadcast *out);

/* Pieces that take piece_ns on one channel, to all nodes: the number of steps
 * that takes least, and its time in ns; false when light does not reach. O(1),
 * with p->at O(n). */
bool broadcast_scatter_steps(const struct optree_params *p, int root, int reach, double piece_ns,
			     int *slots, double *ns);

/* A scatter, and then the fastest all-gather of levels. */
int broadcast_gather(const struct optree_params *p, int root, int reach,
		     struct optree_broadcast *out, struct err *err);

/* The fastest stream, seeded or not. */
void broadcast_streams(const struct optree_params *p, int root, int reach,
		       struct optree_broadcast *out);

/* Chunks that are sent each way by number: of an emission of the root, or of
 * the node at an offset 1..n-1 that was given its own. Empty where first >=
 * end. O(1). */
void broadcast_emission(const struct broadcast_stream *s, int dir, int64_t number,
			int64_t *first, int64_t *end);
void broadcast_seed(const struct broadcast_stream *s, int offset, int64_t *first, int64_t *end);

/* Rounds before the first in which cuts around node v of a ring begin to
 * shrink: E(v) of the proof in cuts.c. */
int64_t broadcast_cut_rounds(int n, int v);

#endif
