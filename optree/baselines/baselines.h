/* SPDX-License-Identifier: Apache-2.0 */
/* What weft compares its plans with: OpTree as published, and the algorithms that its paper
 * compares it with. One stage is OpTree of depth 1. */
#ifndef WEFT_OPTREE_BASELINES_BASELINES_H
#define WEFT_OPTREE_BASELINES_BASELINES_H

#include "optree/private.h"

/* ---- formulas ---- */

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

/* What the paper says of such a tree, where it knows the ring: whole, or as
 * wide both ways. Sets closed_form_steps, depth and optree_time_ns. */
void make_published(const struct optree_params *p, int depth, struct optree_plan *out);

/* optree_plan.optree_time_ns; INT64_MAX when it does not fit. */
int64_t tree_published_ns(const struct optree_params *p);

/* ceil(a * b / c) for positive values, -1 when it does not fit. */
int64_t tree_ceil_muldiv(int64_t a, int64_t b, int64_t c);

/* ---- OpTree: the tree of stages and its lightpaths ---- */

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
void tree_choose_early(int n, const struct rwa_arc *arcs, int64_t n_arcs, int dir, int boundary,
		       int room, uint8_t *take);

/* The schedule of these lightpaths over a digraph with the arcs they need. t:
 * coloured on tree_ring(p); its fibres and channels become those that p->light
 * allows, and are proven by rwa_ring_check(). */
int tree_schedule(const struct optree_params *p, struct tree_light *t,
		  struct coll_sched **out, struct err *err);

/* Links of the longest lightpath and its loss in milli-dB, 0 without a loss
 * model. WEFT_EINFEASIBLE when the budget does not close over it. */
int tree_check_reach(const struct optree_params *p, const struct tree_light *t,
		     int *hops, int64_t *worst_mdb, struct err *err);
/* Time of lightpaths that carry an item each, in ns, rounded up. WEFT_ELIMIT
 * when it does not fit. O(lightpaths), without delays O(1). */
int tree_time_ns(const struct optree_params *p, const struct tree_light *t, int64_t *ns,
		 struct err *err);
/* No tree of any depth within the loss budget takes fewer steps than this; 0
 * when there is none. */
void tree_min_steps(const struct optree_params *p, int64_t *steps);

/* optree_plan() without a bound. */
int tree_plan(const struct optree_params *p, struct optree_plan *out, struct err *err);

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

#endif
