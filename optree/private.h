/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: what parameters say of the ring, the symmetric form of schedules,
 * composed levels, plans, broadcast and the retuning of resonators. */
#ifndef WEFT_OPTREE_PRIVATE_H
#define WEFT_OPTREE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "optree/optree.h"
#include "rwa/ring/ring.h"

/* ---- parameters: the ring, or the part of it that a plan is for ---- */

#define OPTREE_MAX_NODES 4096

/* WEFT_ELIMIT or WEFT_EINVAL for parameters out of range. */
int tree_check_params(const struct optree_params *p, struct err *err);

/* WEFT_EUNSUPPORTED, with the reason, where this algorithm has no schedule on
 * a part of the ring: those that send both ways need channels of both, and
 * neighbour exchange has none on a line. */
int part_supports(const struct optree_params *p, enum optree_algorithm how, struct err *err);

/* The ring that lightpaths of one item each are coloured on: of ranks, and with
 * as many colours as the narrower direction has. */
struct rwa_ring tree_ring(const struct optree_params *p);

/* Links of the whole ring that light from rank src to rank dst crosses in
 * direction dir. 1..ring_nodes-1. O(1). */
int optree_links(const struct optree_params *p, int src, int dst, int dir);

/* Light that the next step needs is kept: with overlap, where lengths share no channels. */
bool part_keeps_light(const struct optree_params *p);

/* Colours that the parameters allow in a direction. */
int64_t tree_width(const struct optree_params *p, int dir);

/* Fibre and channel of a colour of a direction: the runs of light[] one after
 * the other, or without any all channels of all fibres. O(n_light). */
void part_colour(const struct optree_fibre *light, size_t n_light, int channels, int dir,
		 int32_t colour, uint8_t *fibre, uint16_t *channel);

/* Most links of the ring that light to the len-th next rank crosses. O(1),
 * with p->at O(n). */
int tree_span(const struct optree_params *p, int len);

/* Links that light goes at most; WEFT_EINFEASIBLE when not one. */
int make_reach(const struct optree_params *p, int *reach, struct err *err);

/* WEFT_EINFEASIBLE: the lightpath between these nodes, and its loss. */
int tree_out_of_reach(const struct optree_params *p, int src, int dst, int hops, struct err *err);

/* ---- bounds ---- */

struct ring_bound {
	int64_t ns;	/* INT64_MAX: no number of rounds does */
	int rounds;	/* with which the least time would be had */
};

/*
 * No plan of this collective on the ring, part of it or line takes less time;
 * see ring_bound.c for why. root: of a broadcast, else ignored. WEFT_EINFEASIBLE
 * when no lightpath is within the loss budget. O(rounds n log n),
 * a quarter of a second at most for 4096 nodes.
 */
int ring_bound(const struct optree_params *p, enum coll_kind kind, int root,
	       struct ring_bound *out, struct err *err);

/* Gives a plan of p its bound and gap. Errors as ring_bound(). */
int ring_bound_set(const struct optree_params *p, int root, struct optree_plan *plan,
		   struct err *err);

/* ---- the symmetric form ---- */

/*
 * Schedules on a ring that look alike from every node: what happens to the
 * item of node 0, as moves between offsets from it; the item of node o does
 * the same o positions on. One origin's transfers and the turns of the ring
 * are the whole schedule, so a ring of 4096 nodes needs kilobytes and is
 * verified in milliseconds; it is expanded when someone wants all of it.
 */

/* A part of the item leaves the node at offset `at` from its origin. */
struct sym_hop {
	int32_t at;		/* 0..n-1 */
	int32_t dest;		/* all-to-all: offset it is for; else -1 */
	int32_t first, last;	/* chunks, inclusive */
};

/*
 * A place in a tile. Tiles are as lightpaths of `tile` links from every node, in classes of those
 * that share no link, each with `width` channels of its own; what is in it begins
 * `at` links behind its first. So lightpaths of different lengths follow each other on a channel.
 */
struct sym_band {
	int32_t tile, at;
	int32_t base, width;
};

/* In one round every node sends over lightpaths of `len` links one way, on the channels of all
 * its bands: `width` for each lightpath. */
struct sym_move {
	int32_t len;
	uint8_t dir;
	int32_t width;
	int64_t chunks;		/* over each lightpath, at most */
	size_t hop, n_hops;
	size_t band, n_bands;
};

/*
 * What is sent in a round was held when it began. It uses the colours
 * from[dir] + 0..room[dir]-1 of each direction (colours are the channels of
 * all fibres, counted through). With one slot, a band has the colours base +
 * class * width + 0..width-1, all in one step. With more, a move has one band,
 * all widths of a direction are equal and class c (counted from base) is active in slot
 * c / per_slot on the colours from + (c % per_slot) * width + 0..width-1.
 * Moves of a direction are in the order of their (first) bases.
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
	bool overlap;		/* light is kept where it can be; lengths share no channel */
	double step;		/* items' times that a step takes beside its data */
	double keep;		/* items' times that a round may lose to need
				 * no retuning; 0: overlap is not asked for */
	int chunks;		/* P */
	VEC(struct sym_hop) hops;
	VEC(struct sym_move) moves;
	VEC(struct sym_band) bands;
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

/* Classes of lightpaths (or tiles) of len links, on the ring or line. */
int optree_sym_classes_of(const struct optree_sym *s, int len);

/* The class of a band's lightpath over the links from start on. */
int optree_sym_band_class(const struct optree_sym *s, const struct sym_band *b, int start);

/*
 * Lets lightpaths of different lengths share channels in the rounds of a ring
 * that take less time so, in one step each: widths and bands are replaced. Before items are
 * cut into chunks; plain: the same, cut. Nothing is tried where the moves of a round are many.
 */
bool optree_sym_share(struct optree_sym *s, const struct optree_sym *plain);

/* Fibre and channel of a colour. */
void optree_sym_colour(const struct optree_sym *s, int dir, int32_t colour,
		       uint8_t *fibre, uint16_t *channel);

/* Sets slots, widths and bases of the rounds, the chunks, and all totals.
 * From: hops with chunks in units (first, last of 0..units-1), moves with
 * dir, len and their hops, rounds with their moves, from and room.
 * max_chunks: cut an item into so many at most (units at least).
 * WEFT_EINFEASIBLE when a direction is used that has no channel. */
int optree_sym_light(struct optree_sym *s, int max_chunks, struct err *err);

/* Cuts every chunk into so many, and all times with them. */
void optree_sym_refine(struct optree_sym *s, int times);

/*
 * Replays the item of node 0 exactly and proves the light of all nodes:
 * every chunk sent is held, none comes twice, all arrive; classes of a round
 * and direction do not overlap and fit the channels of a slot; lightpaths of
 * a class share no link. With the turns of the ring this is the proof for
 * every node. WEFT_EVERIFY names the first fault. O(hops + n distinct
 * lengths) for all-gather.
 */
int optree_sym_verify(const struct optree_sym *s, struct err *err);

/* Links that lie between the origin and a hop, in the direction of the move. */
int optree_sym_behind(const struct optree_sym *s, const struct sym_move *m,
		      const struct sym_hop *h);

/* Links between a piece's origin and whom it is for, in the direction of the
 * move. */
int optree_sym_links(const struct optree_sym *s, const struct sym_move *m,
		     const struct sym_hop *h);

/* What nodes send over a move. On a line a hop is that of the nodes for which
 * the piece begins and ends on the line: not all send all. */
struct sym_senders {
	int64_t nodes;		/* that send anything */
	int64_t chunks;		/* of who sends the most */
};

/* more: room for 2 (n + 1), all 0, and so again afterwards. O(hops + n), on a
 * ring O(hops). */
struct sym_senders optree_sym_senders(const struct optree_sym *s, const struct sym_move *m,
				      int64_t *more);

/* What time is counted in: how long a chunk takes on a channel, and light over
 * a link of the ring. p: of the links, where link is not 0. */
struct sym_clock {
	__int128 chunk, link;
	const struct optree_params *p;
};

/* In whole 1 / (channel_bps * chunks) ns. */
struct sym_clock optree_sym_clock(const struct optree_params *p, const struct optree_sym *s);

/* The most that a lightpath in a slot of a round takes for its data and its
 * links. at: { 0, 0 } before the first slot, which come in order. */
__int128 optree_sym_slot_time(const struct optree_sym *s, const struct sym_round *r, int slot,
			      size_t at[2], const struct sym_clock *clock);

/* Clockwise becomes counter-clockwise, with the light of each. */
void optree_sym_mirror(struct optree_sym *s);

/* The whole schedule, with light. Verified by coll_verify() and
 * rwa_ring_check() before it is returned. WEFT_ELIMIT when it has more
 * transfers or lights than a schedule can hold. p: those it was made for. */
int optree_sym_expand(const struct optree_sym *s, const struct optree_params *p,
		      struct coll_sched **out, struct err *err);

/* An empty one: in halves of an item, on all of the ring's light. */
void optree_sym_init(struct optree_sym *s, enum coll_kind kind, const struct rwa_ring *ring);

/* Takes over which light and nodes the parameters allow. */
void optree_sym_place(struct optree_sym *s, const struct optree_params *p);

/* ---- composed all-gathers as sequences of levels ---- */

#define COMPOSE_MAX_LEVELS OPTREE_MAX_DEPTH
#define COMPOSE_MAX_CHUNKS 5040

/*
 * One level: the nodes that hold an item are at most `gap` links apart, and
 * afterwards at most `stride`. New holders come from both ends of each gap,
 * `jump` from each end in a round: 1 is a relay, half of what the gap lacks a
 * direct level.
 */
struct compose_level {
	int32_t gap, stride, jump;
	int32_t from[2], room[2];	/* colours it may use; 0, 0: all */
};

/*
 * One way: new holders come from one end of each gap only, the first `cw` of
 * an item's `units` clockwise, the others counter-clockwise by the mirrored
 * levels. So directions of unequal width get their share each, and on a line
 * the whole item goes both ways (cw = units).
 */
struct compose_shape {
	int levels;
	struct compose_level level[COMPOSE_MAX_LEVELS];
	bool one_direction;
	bool uneven;		/* levels are rounds, with the largest of their gaps */
	int units, cw;
	double estimate_ns;
};

/* A hop in a round, chunks in units as optree_sym_light() takes them. */
struct compose_record {
	int32_t round, len;
	struct sym_hop hop;
	uint8_t dir;
};

struct compose_records {
	struct compose_record *v;
	size_t n, cap;
};

/* Sorts the records and appends them as hops, moves and rounds; ends: first
 * round after each level. O(n log n). */
void compose_gather(struct compose_records *rec, const int *ends, struct optree_sym *s);

/* Chunks an item may be cut into: at most one a byte. */
int compose_max_chunks(const struct optree_params *p);

/* Time of a symmetric schedule: steps, chunks and links, rounded up to whole
 * ns; -1 when it does not fit 64 bits. With delays O(slots + moves). */
int64_t compose_time_ns(const struct optree_params *p, const struct optree_sym *s);

/* The same when idle channels are retuned meanwhile (p->overlap; else as
 * compose_time_ns(), which must fit). kind: COLL_ALLREDUCE is the schedule
 * reversed and then itself, where light that is the same in both halves stays;
 * any other the schedule alone, as a reversed one takes as long. times: when
 * each step's data begins and ends, in ns, or NULL. O(steps w). */
int64_t overlap_time_ns(const struct optree_params *p, const struct optree_sym *s,
			enum coll_kind kind, double *times);

/* How many classes of a move's band are active in a slot of its round; the first of
 * them, and its first colour. */
int32_t overlap_active(const struct optree_sym *s, const struct sym_round *r,
		       const struct sym_move *m, const struct sym_band *b, int slot,
		       int32_t *class, int32_t *first);

/* It has no more lights than the parameters allow. */
bool compose_may_light(const struct optree_params *p, const struct optree_sym *s);

/* One or the other, as p->overlap says; -1 when it does not fit. */
int64_t compose_times(const struct optree_params *p, const struct optree_sym *s);

/*
 * The fastest all-gather of levels: a dynamic programme over the distances
 * between holders proposes sequences, the best of them are built and timed
 * exactly. *out is initialised; freed by optree_sym_fini() on success.
 * reach: links of the longest lightpath, >= 1. WEFT_EINFEASIBLE.
 */
int compose_best(const struct optree_params *p, int reach, struct compose_shape *shape,
		 struct optree_sym *out, struct err *err);

typedef int compose_fn(const struct optree_params *p, int reach, struct compose_shape *shape,
		       struct optree_sym *out, struct err *err);

/* The best; with overlap that, or the best whose lengths share channels: such light
 * is not kept from round to round, but carries more. */
int compose_overlapped(const struct optree_params *p, int reach, compose_fn *best,
		       struct compose_shape *shape, struct optree_sym *out, struct err *err);

/*
 * The fastest all-to-all found: every piece takes a shortest path (pieces for
 * the opposite node half each way; of directions that differ in width the
 * wider one takes more nodes' pieces; a line has one path) in hops of levels, the far ones first:
 * at a level of this stride it makes hops of up to `jump` strides as long as
 * one fits in what is left of its path. All loads are least possible, so
 * levels only trade steps for whole channels. *out is initialised. Errors as
 * compose_best().
 */
int compose_exchange(const struct optree_params *p, int reach, struct compose_shape *shape,
		     struct optree_sym *out, struct err *err);

/* ---- plans ---- */

/* Proves a symmetric form and reports on it. Takes what is in *s over. */
int make_from_sym(const struct optree_params *p, enum optree_algorithm how, struct optree_sym *s,
		  struct optree_plan *out, struct err *err);

/* Levels of the shape, for people. */
void make_levels_of(const struct optree_params *p, const struct compose_shape *shape,
		    struct optree_plan *out);

/* optree_make() without a bound. */
int make_gather(const struct optree_params *p, enum optree_algorithm how,
		struct optree_plan *out, struct err *err);

/* ---- written schedules ---- */

/* Turns a written all-gather into a reduce-scatter or all-reduce; verified,
 * with its light. *s is replaced, or unchanged after an error. Reversed
 * lightpaths go the other way round: where the directions have different
 * light, `mirror` is the all-gather to reverse, as mirrored by
 * optree_sym_expand(); else NULL. */
int collectives_convert(const struct optree_params *p, enum coll_kind kind,
			const struct coll_sched *mirror, struct coll_sched **s, struct err *err);

/* a, then b: all-reduce, or a broadcast from the root of a (b sends the root
 * nothing then). Neither is replayed. *out is new. */
int collectives_sequence(enum coll_kind kind, const struct coll_sched *a,
			 const struct coll_sched *b, struct coll_sched **out, struct err *err);

/* Replays a written schedule, and counts the channels of all links. WEFT_EVERIFY. */
int collectives_prove(const struct optree_params *p, const struct coll_sched *s,
		      struct err *err);

/* A schedule of single lightpaths, of grouped plans and broadcasts: all of them are added, then
 * it begins, and what is in out is given transfers and light. */
struct ring_writer {
	const struct optree_params *p;
	VEC(struct rwa_arc) arcs;	/* from, to and direction; from the beginning on each once,
					 * at the number that it has in the digraph */
	struct coll_sched *out;
};

/* A lightpath between ranks. */
void ring_writer_add(struct ring_writer *w, int src, int dst, int dir);

/* Makes w->out; arguments as coll_new() has them. O(lightpaths log). */
int ring_writer_begin(struct ring_writer *w, enum coll_kind kind, int chunks, int ports, int root,
		      struct err *err);

/* The arc of a lightpath that was added. O(log arcs). */
int32_t ring_writer_arc(const struct ring_writer *w, int src, int dst, int dir);

/* Lights an arc, on `count` colours of direction dir; mirrored plans have those of the direction
 * that is not the arc's. Errors as coll_add_light(). */
int ring_writer_light(struct ring_writer *w, int32_t step, int32_t arc, int dir, int32_t colour,
		      int64_t count, struct err *err);

/* ---- one node's vector to all: broadcast/ ---- */

/*
 * The vector of n shards from `root`, the fastest of three ways: gaps between
 * holders are filled round by round; a stream of pieces goes from neighbour to
 * neighbour both ways, with a piece given to every node before it; or a
 * scatter is followed by an all-gather. Sets out->broadcast, times and counts.
 * Any part of a ring. WEFT_EINVAL for no such root; WEFT_ELIMIT.
 */
int broadcast_make(const struct optree_params *p, int root, int reach,
		   struct optree_plan *out, struct err *err);

/* Writes plan->sched; verified, its light counted. WEFT_ELIMIT. */
int broadcast_expand(const struct optree_params *p, struct optree_plan *plan, struct err *err);

/* The data of a broadcast of so many rounds on a ring of n >= 3 nodes takes
 * all / still times as long at least as a node needs to receive it. O(n). */
void broadcast_cuts(int n, int64_t rounds, int64_t *all, int64_t *still);

/* NULL is fine. */
void broadcast_free(struct optree_broadcast *b);

/* ---- overlap of retuning, resonator by resonator ---- */

/*
 * Overlap of retuning, resonator by resonator. A node has two for every
 * channel of every fibre: one drops, and behind it one adds. Off resonance
 * they let light pass. Dropped light does not reach the one that adds, added
 * light does not meet the one that drops. A resonator is set again only while
 * no light touches it (its own or passing), and that takes the retuning time.
 */

/* A resonator is set from the end of step `after` on, for step `step`. */
struct retune_change {
	int32_t step;
	int32_t after;		/* -1: from the beginning */
	int64_t resonator;	/* 2 * (((dir * fibres + fibre) * channels +
				 * channel) * ring nodes + position), and 1
				 * more for the one that adds */
	bool on;
};

/* Times count in 1 / (channel_bps * chunks) ns, so they are whole. A step
 * ends when its data has arrived and is converted. */
struct retune_timeline {
	int steps;
	__int128 *begin, *end;
	VEC(struct retune_change) changes;	/* by step */
};

/* The earliest times of a written schedule, and what is set when. A
 * resonator that can stay as it is is not set. O(hops of all lights). *out:
 * retune_fini(). */
void retune_timeline(const struct optree_params *p, const struct coll_sched *s,
		     struct retune_timeline *out);
void retune_fini(struct retune_timeline *t);

/*
 * The proof, which takes nothing from how the timeline was found: steps
 * follow each other and last as long as their data; every resonator is as
 * its step's light wants it; none is set while light touches it, nor faster than
 * it can be. WEFT_EVERIFY names step, position, fibre and channel.
 * O(hops of all lights + changes).
 */
int retune_check(const struct optree_params *p, const struct coll_sched *s,
		 const struct retune_timeline *t, struct err *err);

#endif
