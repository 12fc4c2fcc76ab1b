/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to schedules in which some nodes take a shard later than breadth-first
 * broadcast would give it to them, late*.c: the pieces of a shard and when each node has
 * them, what one node takes, and the programs that all nodes share.
 */
#ifndef WEFT_COLLECTIVE_BFB_LATE_H
#define WEFT_COLLECTIVE_BFB_LATE_H

#include "collective/bfb/balance.h"
#include "collective/bfb/bfb.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

/* ---- late_pieces.c ---- */

/*
 * A shard is cut into pieces, of sizes that are not known yet, and each piece has a step
 * by which a node has all of it. Only what is whole is forwarded, in later steps. Steps are
 * counted from 1; the source has its shard at 0.
 */
struct bfb_pieces {
	int n, sources;		/* nodes; sources, the first nodes, that stand for all */
	int diameter, steps;	/* steps: diameter + the extra ones */
	int count, choices;	/* pieces; those of each delay */
	int behind;		/* the largest delay */
	bool anywhere;		/* delays begin at any distance, not only at once */
	uint8_t *due;		/* (piece * sources + source) * n + node */
};

#define BFB_PIECES_MAX_STEPS 200
#define BFB_MAX_PIECES 160
#define BFB_MAX_PIECE_WORK (1 << 24)	/* pieces times sources times arcs */

/*
 * The pieces of breadth-first broadcast with so many extra steps. Level 0: one piece on
 * shortest paths, whose nodes that forward to no other have until the last step. Level 1: also
 * some in which as many nodes need not forward as leave each two others, or one, to take from.
 * Level 2: each of these also one, two, .. `extra` steps behind. Levels 3, 4, ..: falling
 * behind by one, two, .. steps at any distances from the source. WEFT_EINFEASIBLE when t is
 * not strongly connected, WEFT_ELIMIT beyond the limits above. bfb_pieces_fini also after an
 * error. O(pieces sources m).
 */
int bfb_pieces_init(struct bfb_pieces *p, const struct topo *t, int sources, int extra, int level,
		    struct err *err);
/* How many levels there are. */
int bfb_pieces_levels(int extra);
void bfb_pieces_fini(struct bfb_pieces *p);

/* ---- late_node.c ---- */

/*
 * What one node takes: for every origin and piece some of its slots, the links into it in
 * each step. Slots are the links of a program of balance.h, (step - 1) * n_links + link, and
 * origins that may use the same slots for the same piece are a group.
 */
struct bfb_taker_group {
	int32_t piece, count;	/* origins */
};

struct bfb_taker {
	int node, n_links;
	int asked;		/* choices or sets of slots in the last flow */
	const int32_t *links;	/* arcs into the node, self-loops left out */
	struct bfb_program b;	/* its items are in chunks */
	VEC(struct bfb_taker_group) groups;
	int32_t *origins;	/* group after group */
	uint64_t *sets;		/* its slots; NULL beyond BFB_LEVEL_MAX_LINKS */
	struct bfb_level *level;	/* room for any taker */
	struct arrays arrays;	/* all but the groups and the program's */
};

#define BFB_LATE_MAX_CAP 1024	/* times the common divisor of all capacities */

/* g: a group with p->sources orbits, or NULL. level stays the caller's. bfb_taker_fini also after
 * an error. WEFT_ELIMIT for a larger capacity. O(m + n pieces d log). */
int bfb_taker_init(struct bfb_taker *k, const struct topo *t, const struct topo_group *g,
		   const struct bfb_pieces *p, int node, struct bfb_level *level,
		   struct err *err);
void bfb_taker_fini(struct bfb_taker *k);
/* The common divisor of all capacities: only their ratios matter, and chunks are fewer. O(m). */
int64_t bfb_late_unit(const struct topo *t);

/* Pieces of `sizes` chunks with room for load[step - 1] chunks on a link of capacity 1. When
 * that *fits, share[] is, where it is not NULL, as that of bfb_program_fit; else row[] has what any
 * loads and sizes must keep: the sum over steps of row[step - 1] load >= that over pieces of
 * row[steps + piece] size. A maximum flow, without share[] of sets of slots where there are. */
int bfb_taker_fit(struct bfb_taker *k, int steps, int pieces, const int64_t *sizes,
		  const int64_t *load, int64_t *share, int64_t *row, bool *fits, struct err *err);

/* ---- late_solve.c ---- */

/*
 * What loads are for, where a step costs time. They are near enough to the optimum when no others
 * take less by more than `gap`, and useless where none of these steps and pieces can take less than
 * below_ns.
 */
struct bfb_late_goal {
	double gap;		/* of the loads; 0: as exactly as can be */
	double step_ns, load_ns, also_ns;	/* a step, a shard on the fullest link, all else */
	double below_ns;
	int64_t work;		/* at most */
};

/* The all-gather of one digraph: the least sum over the steps of the fullest link. */
struct bfb_late {
	const struct topo *t;
	struct bfb_pieces p;
	struct bfb_taker *takers;	/* of the first nodes, one an orbit */
	VEC(int64_t) rows;	/* of bfb_taker_fit, steps + pieces numbers each */
	double *x;		/* loads of steps in shards, then sizes of pieces */
	double *vertex, *inside;	/* such numbers, of the rows so far; that fit */
	int64_t *load, *sizes;	/* the same in chunks */
	int64_t *share;		/* room for any taker */
	struct bfb_level *level;	/* likewise */
	int64_t work;		/* so far, in arbitrary units that do not depend on time */
	struct bfb_late_goal goal;
	double bound;		/* bfb_late_bound */
	int asked;		/* the node that is asked next */
	bool is_hopeless;	/* even the bound takes as long as goal.below_ns: there is no x */
	bool is_warm;		/* inside is of the level before, and may be the result */
	struct arrays arrays;	/* x to share */
};

/* Solves for x, within a relative 1e-6 of the optimum over its pieces, or (goal) as near as that
 * asks: of level 0, then of higher ones while the bound of the links is not met and limits allow.
 * bfb_late_fini also after an error. A small linear program, and a maximum flow a node, for each
 * set of slots that turns out to be too small. */
int bfb_late_solve(struct bfb_late *l, const struct topo *t, const struct topo_group *g,
		   int sources, int extra, const struct bfb_late_goal *goal, struct err *err);
/* The time of x, and the least that any of these steps take, by the goal. */
double bfb_late_ns(const struct bfb_late *l, double loads);
/* Loads that none is below: some node has to take in all shards. O(m). */
double bfb_late_bound(const struct topo *t);
void bfb_late_fini(struct bfb_late *l);
/* Sum over the steps of x. */
double bfb_late_loads(const struct bfb_late *l);
/* Whole chunks, so many a shard: load and sizes become x times chunks to the nearest number,
 * and *fits says whether that is a schedule. */
int bfb_late_round(struct bfb_late *l, int chunks, bool *fits, struct err *err);
/* The same with the loads and sizes of any optimum in whole chunks that is found soon. */
int bfb_late_whole(struct bfb_late *l, int chunks, bool *fits, struct err *err);
/* The same with the sizes to the nearest number, but the least loads that fit them, which are
 * rounded up. */
int bfb_late_round_up(struct bfb_late *l, int chunks, struct err *err);

#endif
