/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of schedules out of forests share: what goes along which tree, what it
 * takes of which arc, and a run of it all. */
#ifndef WEFT_COLLECTIVE_TREE_STAGGER_STAGGER_PRIVATE_H
#define WEFT_COLLECTIVE_TREE_STAGGER_STAGGER_PRIVATE_H

#include "collective/tree/stagger/stagger.h"
#include "lib/base/heap.h"

/* A tree as it is walked. All by node of the logical digraph. */
struct stagger_tree {
	const struct coll_forest_tree *t;
	int32_t *first, *child;	/* children of v: child[first[v] .. first[v + 1] - 1] */
	int32_t *depth;		/* arcs to the root */
	int32_t *height;	/* arcs to the farthest leaf, and the node's own */
};

/* Labels are the chunks of the shards that the schedule names, one after the other:
 * label l is chunk l % P of shard l / P, of an all-gather's root r those of its own
 * shard alone. These go in along one tree and out along another, or one of both. */
struct stagger_piece {
	int32_t in, out;	/* trees; -1: none */
	int64_t first, n;
};

/* Labels that go together. */
struct stagger_batch {
	int32_t piece, size;
	int64_t first;
	double at;		/* its place among those of its piece, 0 .. 1 */
	double among;		/* likewise, one piece after the other */
};

struct stagger_cut {
	int chunks;		/* of a shard, P */
	VEC(struct stagger_piece) pieces;
	VEC(struct stagger_batch) batches;
	int64_t moves;		/* of batches over arcs */
};

/* A part of what crosses a logical arc counts on a resource: an orbit of physical arcs, or of
 * shared limits. */
struct stagger_use {
	int32_t resource;
	int64_t amount;		/* of each label */
};

struct stagger_loads {
	int n;
	double *cap;		/* amounts in a unit of time */
	int32_t *first;		/* logical arc a: uses.v[first[a] .. first[a + 1] - 1] */
	VEC(struct stagger_use) uses;
	struct arrays arrays;
};

enum stagger_part { STAGGER_ALL, STAGGER_IN, STAGGER_OUT, STAGGER_PARTS };

struct stagger {
	const struct coll_forest *f;
	const struct topo *physical;
	const struct coll_stagger_options *opt;
	int n, m;		/* of the logical digraph */
	int ranks;
	int n_trees;
	struct stagger_tree *trees;
	int32_t *origins;	/* of an all-reduce with a group: the first terminal of each orbit,
				 * whose shards labels are of; else NULL, as their number says it */
	double share;		/* what a shard weighs */
	int deepest[STAGGER_PARTS];	/* arcs that a batch crosses one after the other at most, */
	int min_steps[STAGGER_PARTS];	/* and that some batch has to, whatever goes with what */
	double limit[STAGGER_PARTS];	/* shard times of the fullest resource */
	struct topo_action *logical_action, *action;	/* on the logical and the physical
							 * digraph; NULL without a group */
	struct stagger_loads loads;
	struct arrays arrays;
};

/* How full steps are made, and what that gave. */
struct stagger_pace {
	enum stagger_part part;	/* inwards and outwards trees, or one of both kinds */
	bool backwards;		/* from the last step to the first, on trees turned round */
	double most, least;	/* time of a step, a label over a unit of capacity being 1 */
	double in_turn;		/* so many arcs to go count as much as from the first batch of a
				 * tree to its last: near 0 what is farthest goes first */
	bool among;		/* the same, from the first tree to the last */
	int first;		/* step that it begins with */
	int steps;
	double time;		/* of all steps */
};

/* All but what the caller has set, f, physical and opt. WEFT_EINVAL for trees that are none;
 * WEFT_ELIMIT. stagger_fini in any case. O(nodes of all trees, and of
 * stagger_loads_init). */
int stagger_init(struct stagger *s, struct err *err);
void stagger_fini(struct stagger *s);

/* Resources and uses of s->loads, and s->limit. WEFT_EINVAL for an arc of a tree without a route,
 * WEFT_ELIMIT. O(arcs, and hops of their routes times limits). */
int stagger_loads_init(struct stagger *s, struct err *err);
void stagger_loads_fini(struct stagger_loads *l);

/* The labels of so many batches a unit of weight, given to the trees; cut: zeroed. Weights are
 * rounded where a schedule would have more than max_moves, or very many. WEFT_EINVAL, WEFT_ELIMIT.
 * O(trees log + batches). */
int stagger_cut_init(const struct stagger *s, int64_t batches, int64_t max_moves,
		     struct stagger_cut *cut, struct err *err);
void stagger_cut_fini(struct stagger_cut *cut);

/* The tree along which a batch comes together in a run, or spreads; NULL: none. */
static inline const struct stagger_tree *stagger_tree_of(const struct stagger *s,
							 const struct stagger_cut *cut,
							 const struct stagger_pace *pace,
							 int batch, bool in)
{
	const struct stagger_piece *p = &cut->pieces.v[cut->batches.v[batch].piece];
	bool inwards = in != pace->backwards;
	int tree = inwards ? p->in : p->out;

	if (pace->part == (inwards ? STAGGER_OUT : STAGGER_IN)) {
		return NULL;
	}
	return tree >= 0 ? &s->trees[tree] : NULL;
}

/* Moves by batch, way and node: at[(2 * batch + in) * n + node], of the arc between the node and
 * its parent in the tree that the batch comes together on (in) or spreads on. */
static inline int64_t stagger_move(const struct stagger *s, int batch, bool in, int node)
{
	return (2 * (int64_t)batch + in) * s->n + node;
}

/* The steps of no move, -1 each: to be freed. */
int32_t *stagger_moves_new(const struct stagger *s, const struct stagger_cut *cut);

/* Puts all batches into steps, from 0 on as the run goes; at: their steps, NULL: only the figures
 * in pace. O(moves log, and steps times resources). */
void stagger_run(const struct stagger *s, const struct stagger_cut *cut, struct stagger_pace *pace,
		 int32_t *at);

/* Whether resources are arcs, so that moves may be shifted. */
bool stagger_may_shift(const struct stagger *s);

/* Fewer steps, or no more, each at most as long as the longest was: sets pace->steps and ->time.
 * Nothing is done where steps times arcs are too many. O(rounds x moves, mostly). */
void stagger_shift(const struct stagger *s, const struct stagger_cut *cut,
		   struct stagger_pace *pace, int32_t *at);

/* Adds the transfers of a run. Errors of coll_add. */
int stagger_add(const struct stagger *s, const struct stagger_cut *cut,
		const struct stagger_pace *pace, const int32_t *at, struct coll_sched *sched,
		struct err *err);

#endif
