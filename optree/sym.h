/*
 * Schedules on a ring that look alike from every node: what happens to the
 * item of node 0, as moves between offsets from it; the item of node o does
 * the same o positions on. One origin's transfers and the turns of the ring
 * are the whole schedule, so a ring of 4096 nodes needs kilobytes and is
 * verified in milliseconds; it is expanded when somebody wants all of it.
 */
#ifndef WEFT_OPTREE_SYM_H
#define WEFT_OPTREE_SYM_H

#include <stdint.h>

#include "collective/collective.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "rwa/rwa.h"

/* A part of the item leaves the node at offset `at` from its origin. */
struct sym_hop {
	int32_t at;		/* 0..n-1 */
	int32_t dest;		/* all-to-all: offset it is for; else -1 */
	int32_t first, last;	/* chunks, inclusive */
};

/*
 * In one round every node sends over lightpaths of `len` links one way. They
 * take `classes` classes of lightpaths that share no link, numbered from
 */
struct sym_move {
	int32_t len;
	uint8_t dir;
	int32_t width, base, classes;
	int64_t chunks;		/* over each lightpath */
	size_t hop, n_hops;
};

/*
 * What is sent in a round was held when it began. With one slot, a move has
 * the channels base + class * width + 0..width-1 of its direction, all in one
 * step. With more, all widths are equal and class c is lit in slot
 * c / per_slot on the channels (c % per_slot) * width + 0..width-1.
 */
struct sym_round {
	size_t move, n_moves;
	int32_t slots, per_slot;
	int32_t level;
	int64_t chunk_times;	/* of all its slots: chunks on a channel */
};

struct optree_sym {
	enum coll_kind kind;	/* allgather or all-to-all */
	struct rwa_ring ring;
	int chunks;		/* P */
	VEC(struct sym_hop) hops;
	VEC(struct sym_move) moves;
	VEC(struct sym_round) rounds;
	int64_t steps;		/* slots of all rounds */
	int64_t chunk_times;
	int64_t lightpaths;	/* of all nodes and steps */
	int max_len;
};

void optree_sym_fini(struct optree_sym *s);

/* Classes that n lightpaths of len links, one from every node, need:
 * ceil(n / floor(n / len)); they tile the ring when len divides n. */
int optree_sym_classes(int n, int len);

/* The class of the lightpath over links start..start+len-1. The ring is cut
 * into floor(n / len) blocks of len links at least, as equal as can be; the
 * class is the place in the block, so two of a class are a block apart. */
int optree_sym_class(int n, int len, int start);

/* Sets slots, widths and bases of the rounds, the chunks, and all totals.
 * From: hops with chunks in units of half an item (first 0 or 1, last 0 or
 * 1), moves with dir, len and their hops, rounds with their moves.
 * max_chunks: cut an item into so many at most (2 at least). */
int optree_sym_light(struct optree_sym *s, int max_chunks, struct err *err);

/*
 * Replays the item of node 0 exactly and proves the light of all nodes:
 * every chunk sent is held, none comes twice, all arrive; classes of a round
 * and direction do not overlap and fit the channels of a slot; lightpaths of
 * a class share no link. With the turns of the ring this is the proof for
 * every node. WEFT_EVERIFY names the first fault. O(hops + n distinct
 * lengths) for all-gather.
 */
int optree_sym_verify(const struct optree_sym *s, struct err *err);

/* The whole schedule, with light. Verified by coll_verify() and
 * rwa_ring_check() before it is returned. WEFT_ELIMIT when it has more
 * transfers or lights than a schedule can hold. loss: NULL, none. */
int optree_sym_expand(const struct optree_sym *s, const struct rwa_loss *loss,
		      struct coll_sched **out, struct err *err);

/* An empty one. */
void optree_sym_init(struct optree_sym *s, enum coll_kind kind,
		     const struct rwa_ring *ring);

#endif
