/* Private to the room: the tree of stages and its lightpaths. */
#ifndef WEFT_OPTREE_TREE_H
#define WEFT_OPTREE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "optree/optree.h"

#define OPTREE_MAX_NODES 4096

/* Children of a tree node at each level, the ring first. */
struct tree_shape {
	int depth;		/* asked for; levels may be fewer */
	int levels;
	int radix[OPTREE_MAX_DEPTH];
	int64_t slots2;		/* twice the wavelength-slots that no colouring
				 * of this shape goes below */
	int64_t least_steps;	/* so many it needs at least */
	int64_t rounded_steps;	/* when no level shares a step with another */
};

/* Shapes kept by each of two measures. */
#define TREE_SHAPES 3
#define TREE_SHAPES_MAX (1 + 2 * TREE_SHAPES)

/*
 * Shapes worth building for a tree of this depth, at most TREE_SHAPES_MAX and
 * at least one; some may be equal. First the paper's, with m children
 * everywhere, where m^depth = n; then, when there is none or `mixed` is set,
 * those with the least load and the fewest steps whose lightpaths on the ring
 * span about `reach` links at most, as far as there are any. width: channels
 * times fibres.
 */
int tree_shapes(int n, int depth, int reach, int64_t width, bool mixed,
		struct tree_shape *out);

/* Levels that a tree over n nodes can have at most. */
int tree_max_depth(int n);

/* First node of child i when `size` nodes from lo are divided by r. */
static inline int tree_child(int lo, int size, int r, int i)
{
	return lo + (int)(((int64_t)i * size + r / 2) / r);
}

/* Links that an arc of a ring of n nodes spans. */
static inline int tree_hops(int n, const struct rwa_arc *a)
{
	int hops = a->dir == RWA_CW ? a->dst - a->src : a->src - a->dst;

	return hops > 0 ? hops : hops + n;
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

/* Routes, colours and packs the stages into steps. *out is zeroed first and
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
int tree_choose_early(int n, const struct rwa_arc *arcs, int64_t n_arcs,
		      int dir, int boundary, int room, uint8_t *take,
		      struct err *err);

/* The schedule of these lightpaths over a digraph with the arcs they need.
 * hops: loss in milli-dB by hops, NULL: none. */
int tree_schedule(const struct tree_light *t, const struct rwa_loss *loss,
		  struct coll_sched **out, struct err *err);

/* Lower bound in ns for any all-gather on this ring; see optree.h. */
int tree_bound_ns(const struct optree_params *p, int64_t *bound_ns,
		  struct err *err);

/* Colours that the parameters allow in a direction. */
int64_t tree_width(const struct optree_params *p, int dir);

/* Only part of the ring, or directions that differ: OpTree and the baselines
 * have no schedule for that. */
bool tree_is_part(const struct optree_params *p);

/* WEFT_EUNSUPPORTED: this algorithm on a part of the ring. */
int part_unsupported(enum optree_algorithm how, struct err *err);

/* WEFT_EINVAL when light or at are not on the ring or not in order. O(n +
 * n_light^2). */
int part_check(const struct optree_params *p, struct err *err);

/* Most links of the ring that light to the len-th next rank crosses. */
int tree_span(const struct optree_params *p, int len);

/* WEFT_ELIMIT or WEFT_EINVAL for parameters out of range. */
int tree_check_params(const struct optree_params *p, struct err *err);

/* WEFT_EINFEASIBLE: the lightpath between these nodes, and its loss. */
int tree_out_of_reach(const struct optree_params *p, int src, int dst,
		      int hops, struct err *err);

/* optree_time_ns of optree.h; INT64_MAX when it does not fit. */
int64_t tree_published_ns(const struct optree_params *p);

/* No tree of any depth within the loss budget takes fewer steps than this; 0
 * when there is none. */
int tree_least_steps(const struct optree_params *p, int64_t *steps,
		     struct err *err);

/* ceil(a * b / c) for positive values, -1 when it does not fit. */
int64_t tree_ceil_muldiv(int64_t a, int64_t b, int64_t c);

#endif
