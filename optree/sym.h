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

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "optree/optree.h"
#include "rwa/ring/ring.h"

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
 * What is sent in a round was held when it began. It uses the colours
 * from[dir] + 0..room[dir]-1 of each direction (colours are the channels of
 * all fibres, counted through). With one slot, a move has the colours base +
 * class * width + 0..width-1, all in one step. With more, all widths of a
 * direction are equal and class c (counted from base) is lit in slot
 * c / per_slot on the colours from + (c % per_slot) * width + 0..width-1.
 */
struct sym_round {
	size_t move, n_moves;
	int32_t slots, per_slot[2];
	int32_t from[2], room[2];	/* room 0, 0: all there are */
	int32_t level;
	int64_t chunk_times;	/* of all its slots: chunks on a channel */
};

#define SYM_MAX_UNITS 24

struct optree_sym {
	enum coll_kind kind;	/* allgather or all-to-all */
	struct rwa_ring ring;
	/* Ranks 0..n-1 are on a line: what would pass its ends is not sent,
	 * and the item goes whole both ways. An offset is then one of the
	 * direction that a move goes. */
	bool line;
	VEC(struct optree_fibre) light;	/* empty: all of the ring's */
	int32_t w[2];		/* colours of each direction */
	int units;		/* hops carry whole units of an item */
	double keep;		/* items' times that a round may lose to need
				 * no retuning; 0: overlap is not asked for */
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

/* The same, or on the line (len classes at most) the link where it begins. */
int optree_sym_class_of(const struct optree_sym *s, int len, int start);

/* Fibre and channel of a colour. */
void optree_sym_colour(const struct optree_sym *s, int dir, int32_t colour,
		       uint8_t *fibre, uint16_t *channel);

/* Sets slots, widths and bases of the rounds, the chunks, and all totals.
 * From: hops with chunks in units (first, last of 0..units-1), moves with
 * dir, len and their hops, rounds with their moves, from and room.
 * max_chunks: cut an item into so many at most (units at least).
 * WEFT_EINFEASIBLE when a direction is used that has no channel. */
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

/* Links that lie between the origin and a hop, the way the move goes. */
int optree_sym_behind(const struct optree_sym *s, const struct sym_move *m,
		      const struct sym_hop *h);

/* Chunks on the slowest channel in a slot of a round. at: { 0, 0 } before
 * the first slot, which come in order. */
int64_t optree_sym_slot_times(const struct optree_sym *s,
			      const struct sym_round *r, int slot,
			      size_t at[2]);

/* Clockwise becomes counter-clockwise, with the light of each. */
void optree_sym_mirror(struct optree_sym *s);

/* The whole schedule, with light. Verified by coll_verify() and
 * rwa_ring_check() before it is returned. WEFT_ELIMIT when it has more
 * transfers or lights than a schedule can hold. p: those it was made for. */
int optree_sym_expand(const struct optree_sym *s,
		      const struct optree_params *p, struct coll_sched **out,
		      struct err *err);

/* An empty one: in halves of an item, on all of the ring's light. */
void optree_sym_init(struct optree_sym *s, enum coll_kind kind,
		     const struct rwa_ring *ring);

/* Takes over which light and nodes the parameters allow. 0, WEFT_ENOMEM. */
int optree_sym_place(struct optree_sym *s, const struct optree_params *p,
		     struct err *err);

#endif
