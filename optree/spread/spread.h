/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one item spreads from node to node, round by round, at least cost: what the
 * bounds of ring_bound.c count, and plans that do just that (trees.c).
 */
#ifndef WEFT_OPTREE_SPREAD_SPREAD_H
#define WEFT_OPTREE_SPREAD_SPREAD_H

#include "optree/private.h"

/* Links are counted in this many parts, for prices. */
#define SPREAD_LINK 64
/* Links a node where no round is left; more than any spread at any price. */
#define SPREAD_NEVER ((int64_t)1 << 44)

/* What a round pays for a link, and for each node that it reaches. */
struct spread_price {
	int64_t link, node;
};

/* What the rounds to come cost, by nodes that lack the item: between two that
 * hold it, and beyond the only one (NULL: not wanted). Both convex. */
struct spread_left {
	int64_t *gap, *tail;
};

struct spread_candidate {
	int32_t last, since;	/* the node before, and from which node on it is best */
};

struct spread {
	int n, reach;
	int64_t *side;		/* of the last round: up to a node that is the last one
				 * reached from its end */
	int32_t *before;	/* the one reached before it, 0: none */
	struct spread_candidate *queue;
};

/* For gaps of less than n nodes and lightpaths of at most `reach` links. */
void spread_init(struct spread *s, int n, int reach);
void spread_fini(struct spread *s);

/* One more round at these prices, before those that leave `later`: arrays of n, not
 * those of *out. Sets side and before. O(n log n). */
void spread_round(struct spread *s, const struct spread_left *later,
		  const struct spread_price *price, struct spread_left *out);

/* Owns *s, with its light; shape names its rounds as levels. */
typedef int spread_take(void *data, const struct compose_shape *shape, struct optree_sym *s,
			struct err *err);

/*
 * All-gathers in which every item spreads by such a tree, or one half of it by the
 * tree's mirror: for each number of rounds that may be faster than *limit_ns
 * (which take() may lower), at several prices of the first rounds' links and of
 * nodes. Then spread_rounds() of the fastest, which take() puts into *plan, unless that fills
 * its channels. Whole rings with equal directions. The work is bounded by a count. Errors of
 * take().
 */
int spread_trees(const struct optree_params *p, int reach, const int64_t *limit_ns,
		 const struct optree_sym *plan, spread_take *take, void *data, struct err *err);

/*
 * The plan with other nodes reached in its rounds, each from the nearest that hold the item then:
 * the fastest of a search. As spread_trees().
 */
int spread_rounds(const struct optree_params *p, int reach, const struct optree_sym *plan,
		  spread_take *take, void *data, struct err *err);

/* An all-gather of these hops in so many rounds, with its light. *out: optree_sym_fini() on
 * success. Errors as optree_sym_light(). */
int spread_light(const struct optree_params *p, struct compose_records *rec, int rounds,
		 struct optree_sym *out, struct err *err);

#endif
