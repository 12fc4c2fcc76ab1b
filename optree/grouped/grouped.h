/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grouped all-gathers: neighbours gather their items at one node of their
 * group, which makes few lightpaths of what would be one for each node; then
 * the items of whole groups spread, by far levels first, until every node has
 * them. On rings with few channels that takes a fraction of the steps.
 *
 * With B groups and M copies of each group's items, copy c of group b is at
 * node floor(n (b M + c B) / (B M)): where B and M have no common divisor, the
 * n items are spread as evenly over the nodes as whole groups can be, whatever
 * n is, and so is the light of what they send next. Each far level makes m
 * times as many copies. When copies are a few nodes apart, near levels fill the
 * gaps from both ends, as those of compose.c do.
 */
#ifndef WEFT_OPTREE_GROUPED_GROUPED_H
#define WEFT_OPTREE_GROUPED_GROUPED_H

#include "optree/private.h"

#define GROUPED_STAGES 3
#define GROUPED_JUMP 64
#define GROUPED_OWNERS 3

/* A far level makes `times` as many copies; a near one begins with holders `gap`
 * nodes apart at most and ends with `stride`. In a round new holders come
 * from `jump` distances each way. */
struct grouped_level {
	int32_t times;		/* 0: near */
	int32_t gap, stride;	/* near */
	int32_t jump;
};

/* Every part of the vector is cut into so many, each with so many nodes that sum it; of
 * the last level one. parts * hubs: at most the hubs before. */
struct grouped_owner {
	int32_t parts, hubs;
};

struct grouped_shape {
	bool sums;		/* an all-reduce of whole vectors: summed in each group, sums
				 * exchanged by all groups, and sent back the same way */
	bool pieces;		/* beside sums: an all-to-all, of which pieces go these ways */
	int owners;		/* levels of an all-reduce by owners (owners.c), else 0 */
	struct grouped_owner owner[GROUPED_OWNERS];
	int stages;
	int groups[GROUPED_STAGES];	/* after each stage of gathering */
	int levels;		/* far ones first; the last stride is 1 */
	struct grouped_level level[OPTREE_MAX_DEPTH];
	double estimate_ns;
};

/* A lightpath of one step: `items` units of items on colours first..first+width-1
 * (all-to-all: of pieces) of its direction. Those of one round and kind are about equally long. */
struct grouped_path {
	int32_t src, len, kind;
	uint8_t dir;
	int32_t slot;		/* step of its round */
	int32_t first, width;
	int64_t items;
};

struct grouped_round {
	size_t path, n_paths;	/* by direction, kind and source */
	int level;		/* stages of gathering come first */
	int nth;		/* round of its level */
	int slots;
};

/* Who has gathered the items of which nodes: group b those of nodes
 * first[b]..first[b+1]-1, at node rep[b]. Node v has own[v]..own_end[v]-1, itself
 * at least. */
struct grouped_stage {
	int count;
	int32_t *rep, *first;
	int32_t *own, *own_end;
};

/* What happens in a gap between two copies, `at` counted from the left one. */
struct gap_hop {
	int32_t round, at, len;	/* round of all near levels */
	uint8_t dir;
};

struct gap_program {
	VEC(struct gap_hop) hops;	/* by round */
};

struct optree_groups {
	int n, w;		/* colours of each direction */
	struct grouped_shape shape;
	struct grouped_stage stage[GROUPED_STAGES + 1];	/* 0: every node itself */
	int copies, far;	/* of a group before the near levels; far levels */
	struct gap_program gap[2][2];	/* gaps of floor(n / copies) and one more; parity of
					 * the group and copy */
	int units;		/* an item's, in which paths count */
	int chunks;		/* of an item; a multiple of units */
	VEC(struct grouped_path) paths;
	VEC(struct grouped_round) rounds;
	int64_t steps, lightpaths, time_ns;
	int max_len;
};

/* One hop of a group's items: from node src over len links. */
struct grouped_hop {
	int group, kind, dir;
	int32_t src, len;
};

/* The stage whose groups move in a round; the last one in an exchange only. */
const struct grouped_stage *grouped_stage_of(const struct optree_groups *g,
					     const struct grouped_round *r);

/* Units that a hop carries: those of the group that its sink does not have; of an all-to-all the
 * pieces that its group has for others, or others for it. */
int64_t grouped_items(const struct optree_groups *g, const struct grouped_stage *s,
		      const struct grouped_hop *h);

typedef int grouped_hop_fn(void *data, const struct grouped_hop *h);

/* Calls f for each hop of a round, until it returns another value than 0. */
int grouped_each_hop(const struct optree_groups *g, const struct grouped_round *r,
		     grouped_hop_fn *f, void *data);

/* Hops the other way round: to be called in the place of f. */
struct grouped_turned {
	int n;
	grouped_hop_fn *f;
	void *data;
};
int grouped_turn(void *turned, const struct grouped_hop *h);

/* Of owners, whose groups are the parts of all levels, one after the other: the hops of a
 * level, and back. O(hops of a part's nodes). */
int grouped_owner_hops(const struct optree_groups *g, int level, grouped_hop_fn *f, void *data);

/* The parts of the last level, and the node that owns one. O(levels). */
int grouped_pieces(const struct optree_groups *g);
int32_t grouped_owner(const struct optree_groups *g, int piece);

/* Which units of the whole vector a group is: first..end-1. O(levels). */
struct grouped_part {
	int64_t first, end;
};
struct grouped_part grouped_part(const struct optree_groups *g, int group);

/* The lightpath of a hop; if there is none, another one or the end of the round's. */
struct grouped_path *grouped_path_of(const struct optree_groups *g, const struct grouped_round *r,
				     const struct grouped_hop *h);

/* Members of group b of stage k >= 1 are groups lo..hi-1 of stage k - 1. */
int32_t grouped_member(const struct optree_groups *g, int stage, int b);

/* Groups, rounds and what is sent in them, without light. *out: grouped_fini(). */
void grouped_rounds(int n, const struct grouped_shape *shape, struct optree_groups *out);

/* Builds the plan with its light. careful: colours of all lengths together are tried where they
 * may gain. WEFT_ELIMIT. *out: grouped_fini(), also after an error. O(n groups + lightpaths log),
 * careful as rwa_ring_colour(). */
int grouped_build(const struct optree_params *p, const struct grouped_shape *shape, bool careful,
		  struct optree_groups *out, struct err *err);
void grouped_fini(struct optree_groups *g);

/*
 * Proves it: replays every group's items, which move as one; every lightpath has room for what
 * goes its way, and no two of a step share a channel of a link.
 * O(n groups + links of lightpaths).
 */
int grouped_verify(const struct optree_groups *g, struct err *err);

/* Written out, verified by coll_verify(). mirror: clockwise becomes counter-clockwise,
 * on the light of the other direction, for the reverse of it. */
int grouped_expand(const struct optree_groups *g, const struct optree_params *p, bool mirror,
		   struct coll_sched **out, struct err *err);

/* The fastest found that is faster than limit_ns, or WEFT_EUNSUPPORTED. *out:
 * grouped_fini() on success. Work is bounded by counts. */
int grouped_best(const struct optree_params *p, int reach, int64_t limit_ns,
		 struct optree_groups *out, struct err *err);

/* The all-reduce of whole vectors or by owners, or the all-to-all; otherwise as grouped_make(). */
int grouped_make_sums(const struct optree_params *p, enum coll_kind kind, int64_t limit_ns,
		      struct optree_plan *out, struct err *err);
int grouped_best_sums(const struct optree_params *p, enum coll_kind kind, int reach,
		      int64_t limit_ns, struct optree_groups *out, struct err *err);

/* The all-gather, as optree_make(); faster than limit_ns, or WEFT_EUNSUPPORTED, as for a
 * line. With overlap every step counts a retuning. Without a bound. */
int grouped_make(const struct optree_params *p, int64_t limit_ns, struct optree_plan *out,
		 struct err *err);

#endif
