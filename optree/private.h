/* Private to the room: the symmetric form of schedules, composed levels, the
 * tree of stages, baselines, broadcast and the retuning of resonators. */
#ifndef WEFT_OPTREE_PRIVATE_H
#define WEFT_OPTREE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "optree/optree.h"
#include "rwa/ring/ring.h"

/* ---- the paper's formulas ---- */

/* Theorem 1: ceil((2k-1) n^(1+1/k) / (8w)), exactly rounded. w = channels
 * times fibres. k = 1 is the one-stage model. O(1). */
int64_t optree_closed_form(int n, int w, int k);

/* What the paper compares with: Ring n-1, neighbour exchange ceil(n/2), Wrht
 * extended to all-gather 4w+3, one stage ceil(n^2 / (8w)). w = channels times
 * fibres. O(1). */
enum optree_baseline { OPTREE_RING, OPTREE_NE, OPTREE_WRHT, OPTREE_ONE_STAGE };
int64_t optree_baseline_steps(enum optree_baseline what, int n, int w);

/* Theorem 2: round((ln n + sqrt(ln^2 n - 2 ln n)) / 2), at least 1. */
int optree_best_depth(int n);

/* ---- OpTree: the tree of stages and its lightpaths ---- */

#define OPTREE_MAX_NODES 4096

/* Children of a tree node at each level, the ring first. */
struct tree_shape {
	int depth;		/* asked for; levels may be fewer */
	int levels;
	int radix[OPTREE_MAX_DEPTH];
	bool line;		/* level one too is of a line segment */
	int64_t slots2;		/* twice the wavelength-slots that no colouring
				 * of this shape goes below */
	int64_t min_steps;	/* so many it needs at least */
	int64_t rounded_steps;	/* when no level shares a step with another */
};

/* Shapes kept by each of two measures. */
#define TREE_SHAPES 3
#define TREE_SHAPES_MAX (1 + 2 * TREE_SHAPES)

/* What trees are wanted: on lines or whole rings, where lightpaths of level one
 * reach so many links, with so many colours a direction; mixed: also where the
 * paper has one, other shapes too. */
struct tree_request {
	int n, reach;
	int64_t width;
	bool line, mixed;
};

/*
 * Shapes worth building for a tree of this depth, at most TREE_SHAPES_MAX and
 * at least one; some may be equal. First the paper's, with m children
 * everywhere, where m^depth = n; then, when there is none or `mixed` is set,
 * those with the least load and the fewest steps whose lightpaths of level one
 * span about `reach` links at most, as far as there are any.
 */
int tree_shapes(const struct tree_request *request, int depth, struct tree_shape *out);

/* Levels that a tree over n nodes can have at most. */
int tree_max_depth(int n);

/* First node of child i when `size` nodes from lo are divided by r. */
static inline int tree_child(int lo, int size, int r, int i)
{
	return lo + (int)(((int64_t)i * size + r / 2) / r);
}

/* All lightpaths of an all-gather: n (n - 1) of them. */
struct tree_light {
	struct rwa_ring ring;
	struct rwa_arc *arcs;	/* slot: the step */
	int32_t *item;		/* carried by each arc */
	int64_t n_arcs;
	int steps;
	int colours_over_bound;
	int n_levels;
	struct optree_level level[OPTREE_MAX_DEPTH];
};

/* Routes, colours and packs the stages into steps; from node n-1 to 0 goes no
 * light where the shape is of a line. *out is zeroed first and
 * freed by tree_light_fini(), also after an error. */
int tree_build(const struct rwa_ring *ring, const struct tree_shape *shape,
	       struct tree_light *out, struct err *err);
void tree_light_fini(struct tree_light *t);

/*
 * Chooses among the arcs of one direction that may go in step `boundary` or
 * before (their slot says since when) those that bring the largest load of
 * all arcs of that direction down most on `room` channels: take[k] is set for
 * each. Lines only: no arc passes from node n-1 to 0. O(arcs log arcs + n
 * room).
 */
int tree_choose_early(int n, const struct rwa_arc *arcs, int64_t n_arcs, int dir, int boundary,
		      int room, uint8_t *take, struct err *err);

/* The schedule of these lightpaths over a digraph with the arcs they need. t:
 * coloured on tree_ring(p); its fibres and channels become those that p->light
 * allows, and are proven by rwa_ring_check(). */
int tree_schedule(const struct optree_params *p, struct tree_light *t,
		  struct coll_sched **out, struct err *err);

/* The ring that lightpaths of one item each are coloured on: of ranks, and with
 * as many colours as the narrower direction has. */
struct rwa_ring tree_ring(const struct optree_params *p);

/* ---- bounds ---- */

struct ring_bound {
	int64_t ns;	/* INT64_MAX: no number of rounds does */
	int rounds;	/* with which the least time would be had */
};

/*
 * No plan of this collective on the ring, part of it or line takes less time;
 * see bound.c for why. root: of a broadcast, else ignored. WEFT_EINFEASIBLE
 * when no lightpath is within the loss budget, WEFT_ENOMEM. O(rounds n log n),
 * a quarter of a second at most for 4096 nodes.
 */
int ring_bound(const struct optree_params *p, enum coll_kind kind, int root,
	       struct ring_bound *out, struct err *err);

/* Gives a plan of p its bound and gap. Errors as ring_bound(). */
int ring_bound_set(const struct optree_params *p, int root, struct optree_plan *plan,
		   struct err *err);

/* optree_plan() and optree_make() without a bound. */
int tree_plan(const struct optree_params *p, struct optree_plan *out, struct err *err);
int make_gather(const struct optree_params *p, enum optree_algorithm how,
		struct optree_plan *out, struct err *err);

/* Links of the whole ring that light from rank src to rank dst crosses in
 * direction dir. 1..ring_nodes-1. O(1). */
int optree_links(const struct optree_params *p, int src, int dst, int dir);

/* Colours that the parameters allow in a direction. */
int64_t tree_width(const struct optree_params *p, int dir);

/* WEFT_EUNSUPPORTED, with the reason, where this algorithm has no schedule on
 * a part of the ring: those that send both ways need channels of both, and
 * neighbour exchange has none on a line. */
int part_supports(const struct optree_params *p, enum optree_algorithm how, struct err *err);

/* Fibre and channel of a colour of a direction: the runs of light[] one after
 * the other, or without any all channels of all fibres. O(n_light). */
void part_colour(const struct optree_fibre *light, size_t n_light, int channels, int dir,
		 int32_t colour, uint8_t *fibre, uint16_t *channel);

/* WEFT_EINVAL when light or at are not on the ring or not in order. O(n +
 * n_light^2). */
int part_check(const struct optree_params *p, struct err *err);

/* Most links of the ring that light to the len-th next rank crosses. O(1),
 * with p->at O(n). */
int tree_span(const struct optree_params *p, int len);

/* WEFT_ELIMIT or WEFT_EINVAL for parameters out of range. */
int tree_check_params(const struct optree_params *p, struct err *err);

/* What the paper says of such a tree, where it knows the ring: whole, or as
 * wide both ways. Sets closed_form_steps, depth and optree_time_ns. */
void make_published(const struct optree_params *p, int depth, struct optree_plan *out);

/* Links of the longest lightpath and its loss in milli-dB, 0 without a loss
 * model. WEFT_EINFEASIBLE when the budget does not close over it. */
int tree_check_reach(const struct optree_params *p, const struct tree_light *t,
		     int *hops, int64_t *worst_mdb, struct err *err);
/* Time of lightpaths that carry an item each, in ns, rounded up. WEFT_ELIMIT
 * when it does not fit. O(lightpaths), without delays O(1). */
int tree_time_ns(const struct optree_params *p, const struct tree_light *t, int64_t *ns,
		 struct err *err);
/* WEFT_EINFEASIBLE: the lightpath between these nodes, and its loss. */
int tree_out_of_reach(const struct optree_params *p, int src, int dst, int hops, struct err *err);

/* optree_plan.optree_time_ns; INT64_MAX when it does not fit. */
int64_t tree_published_ns(const struct optree_params *p);

/* No tree of any depth within the loss budget takes fewer steps than this; 0
 * when there is none. */
int tree_min_steps(const struct optree_params *p, int64_t *steps, struct err *err);

/* ceil(a * b / c) for positive values, -1 when it does not fit. */
int64_t tree_ceil_muldiv(int64_t a, int64_t b, int64_t c);

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
 * In one round every node sends over lightpaths of `len` links one way. They
 * take `classes` classes of lightpaths that share no link, numbered from
 */
struct sym_move {
	int32_t len;
	uint8_t dir;
	int32_t width, base, classes;
	int64_t chunks;		/* over each lightpath, at most */
	size_t hop, n_hops;
};

/*
 * What is sent in a round was held when it began. It uses the colours
 * from[dir] + 0..room[dir]-1 of each direction (colours are the channels of
 * all fibres, counted through). With one slot, a move has the colours base +
 * class * width + 0..width-1, all in one step. With more, all widths of a
 * direction are equal and class c (counted from base) is active in slot
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

/* Links that lie between the origin and a hop, in the direction of the move. */
int optree_sym_behind(const struct optree_sym *s, const struct sym_move *m,
		      const struct sym_hop *h);

/* Links between a piece's origin and whom it is for, in the direction of the
 * move. */
int optree_sym_links(const struct optree_sym *s, const struct sym_move *m,
		     const struct sym_hop *h);

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

/* Takes over which light and nodes the parameters allow. 0, WEFT_ENOMEM. */
int optree_sym_place(struct optree_sym *s, const struct optree_params *p, struct err *err);

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
 * round after each level. 0 or WEFT_ENOMEM. O(n log n). */
int compose_gather(struct compose_records *rec, const int *ends, struct optree_sym *s);

/* Chunks an item may be cut into: at most one a byte. */
int compose_max_chunks(const struct optree_params *p);

/* Time of a symmetric schedule: steps, chunks and links, rounded up to whole
 * ns; -1 when it does not fit 64 bits. With delays O(slots + moves). */
int64_t compose_time_ns(const struct optree_params *p, const struct optree_sym *s);

/* The same when idle channels are retuned meanwhile (p->overlap; else as
 * compose_time_ns(), which must fit). kind: COLL_ALLREDUCE is the schedule
 * reversed and then itself, where light that is the same in both halves stays;
 * any other the schedule alone, as a reversed one takes as long. times: when
 * each step's data begins and ends, in ns, or NULL. 0, WEFT_ENOMEM.
 * O(steps w). */
int overlap_time_ns(const struct optree_params *p, const struct optree_sym *s,
		    enum coll_kind kind, double *times, int64_t *ns, struct err *err);

/* How many classes of a move are active in a slot of its round; the first of
 * them, and its first colour. */
int32_t overlap_active(const struct sym_round *r, const struct sym_move *m,
		    int slot, int32_t *class, int32_t *first);

/* It has no more lights than the parameters allow. */
bool compose_may_light(const struct optree_params *p, const struct optree_sym *s);

/* One or the other, as p->overlap says. *ns: -1 when it does not fit. */
int compose_times(const struct optree_params *p, const struct optree_sym *s,
		  int64_t *ns, struct err *err);

/*
 * The fastest all-gather of levels: a dynamic programme over the distances
 * between holders proposes sequences, the best of them are built and timed
 * exactly. *out is initialised; freed by optree_sym_fini() on success.
 * reach: links of the longest lightpath, >= 1. WEFT_EINFEASIBLE.
 */
int compose_best(const struct optree_params *p, int reach, struct compose_shape *shape,
		 struct optree_sym *out, struct err *err);

/*
 * The fastest all-to-all found: every piece takes a shortest path (pieces for
 * the opposite node half each way; of directions that differ in width the
 * wider one takes more nodes' pieces; a line has one path) in hops of levels, the far ones first: at
 * a level of this stride it makes hops of up to `jump` strides as long as
 * one fits in what is left of its path. All loads are least possible, so
 * levels only trade steps for whole channels. *out is initialised. Errors as
 * compose_best().
 */
int compose_exchange(const struct optree_params *p, int reach, struct compose_shape *shape,
		     struct optree_sym *out, struct err *err);

/* ---- dispatch.c and collectives.c ---- */

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

/* Counts the channels of all links from a written schedule. WEFT_EVERIFY. */
int collectives_check_light(const struct optree_params *p, const struct coll_sched *s,
			    struct err *err);

/* Proves a symmetric form and reports on it. Takes what is in *s over. */
int make_from_sym(const struct optree_params *p, enum optree_algorithm how, struct optree_sym *s,
		  struct optree_plan *out, struct err *err);

/* Levels of the shape, for people. */
void make_levels_of(const struct optree_params *p, const struct compose_shape *shape,
		    struct optree_plan *out);

/* Links that light goes at most; WEFT_EINFEASIBLE when not one. */
int make_reach(const struct optree_params *p, int *reach, struct err *err);

/* ---- what the paper compares OpTree with, as schedules ---- */

/* Ring: every item goes on to the next node in every step, one channel. */
int baseline_ring(const struct optree_params *p, struct optree_sym *out, struct err *err);

/* Neighbour exchange (even n): pairs exchange their items, then alternately
 * with the other neighbour the two items that came last. WEFT_EUNSUPPORTED
 * for odd n. */
int baseline_ne(const struct optree_params *p, struct optree_plan *out, struct err *err);

/*
 * Wrht as an all-gather: groups of 2w+1 nodes send to the one in their
 * middle, these exchange what they have by all-to-all, and pass everything
 * on to their groups, one lightpath for each item and receiver. The paper's
 * 4w+3 steps count 2w+1 for each of the last two parts, which is too little
 * for n items unless one light feeds many receivers.
 */
int baseline_wrht(const struct optree_params *p, struct optree_plan *out, struct err *err);

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
int retune_timeline(const struct optree_params *p, const struct coll_sched *s,
		    struct retune_timeline *out, struct err *err);
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
