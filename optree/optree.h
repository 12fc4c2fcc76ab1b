/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives on WDM rings of micro-ring resonators.
 *
 * OpTree (optree.txt): a depth-k m-ary tree; each level is an all-to-all
 * among subsets of m nodes, on the whole ring at level one, inside line
 * segments below. Every item (a node's shard) takes one channel for one
 * step. FORMULAS section 1.
 */
#ifndef WEFT_OPTREE_OPTREE_H
#define WEFT_OPTREE_OPTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "rwa/ring/ring.h"

/* Channels first..first+channels-1 of one fibre of one direction. */
struct optree_fibre {
	uint8_t dir;		/* enum rwa_dir */
	uint8_t fibre;
	int32_t first, channels;
};

struct optree_params {
	int n;			/* nodes of the job = of the ring */
	int channels, fibres;	/* per direction and fibre; fibres >= 1 */
	int depth;		/* k; 0: the depth with the fewest steps */
	int64_t shard_bytes;	/* d: one node's item */
	int64_t channel_bps;	/* B_lambda */
	int64_t alpha_ns;	/* a: retuning plus conversion, per step */
	/* True when channels can be retuned while others carry data: a step
	 * then waits for a channel only when that has another lightpath than
	 * before, and until alpha_ns - convert_ns have passed since it was
	 * active last. convert_ns is paid in every step. */
	bool overlap;
	int64_t convert_ns;	/* 0..alpha_ns; of overlap only */
	/* Propagation delay of one link of the whole ring, >= 0. What is sent
	 * over h links arrives h * span_delay_ns later: without overlap a step
	 * lasts alpha_ns and the most that one of its lightpaths takes for its
	 * data and its links. */
	int64_t span_delay_ns;
	/* Plan nothing with more lights than this when written out (for jobs:
	 * COLL_MAX_LIGHTS, what a schedule holds); 0: as fast as can be. */
	int64_t max_lights;
	int64_t max_steps;	/* of a broadcast's stream; 0: as many as a schedule has */
	/* Set inside the room: an all-gather is as fast as half of its all-reduce; with overlap,
	 * lengths share channels, and no light is kept for that. */
	bool both_halves, shared;
	const struct rwa_loss *loss;	/* NULL: no budget */
	/* The light that the plan may use, when it is not all of it: fibres
	 * of unequal sizes, fibres in one direction only, or what other jobs
	 * leave. `channels` and `fibres` above then still hold all that the
	 * ring has (the fullest fibre), as light passes their resonators and
	 * numbers of fibres and channels count from there. */
	const struct optree_fibre *light;
	int n_light;		/* 0: all channels of all fibres both ways */
	/* The nodes of a larger ring that take part, NULL: all. Rank r is the
	 * node at position at[r] of 0..ring_nodes-1, in clockwise order (at[]
	 * ascends from some rank on, around); light passes the others without
	 * being dropped. */
	const int32_t *at;
	int ring_nodes;		/* 0: n */
	/* No light over the links from the last rank clockwise to the first:
	 * the job is on a segment of the ring. */
	bool line;
};

#define OPTREE_MAX_DEPTH 32
#define OPTREE_MAX_SPAN_DELAY_NS INT64_C(1000000000) /* 200,000 km of fibre */

struct optree_level {
	int subsets;	/* of all segments together at this level */
	int members;	/* of the largest subset (m) */
	int items;	/* that the fullest node sends to each other member */
	int steps;	/* that it adds; part of it may already go in
			 * the last step of the level before */
	/* Composed plans: */
	bool uneven;	/* gaps of several sizes: stride is the largest left */
	int stride;	/* links between neighbours in a subset; 0: a tree's */
	int jump;	/* neighbours served each way in a round: 1 is a relay,
			 * members / 2 a direct level */
	int rounds;
	bool gathers;		/* grouped plans: the members of a subset send to the one in
				 * their middle */
};

/* AUTO: the fastest of COMPOSED, GROUPED and TREE. COMPOSED: levels that relay or go
 * directly, striped over all channels (docs/rings.md). GROUPED: neighbours
 * gather their items first, so that few lightpaths go far. TREE: OpTree. The
 * others are what the paper compares with: every item takes one channel for
 * a step. */
enum optree_algorithm {
	OPTREE_AUTO, OPTREE_COMPOSED, OPTREE_GROUPED, OPTREE_TREE, OPTREE_BY_RING,
	OPTREE_BY_NE, OPTREE_BY_WRHT, OPTREE_BY_ONE_STAGE,
};

/* "auto", "composed", "grouped", "optree", "ring", "ne", "wrht", "one-stage". */
const char *optree_algorithm_name(enum optree_algorithm a);
int optree_algorithm_parse(const char *name, enum optree_algorithm *a, struct err *err);

struct optree_sym;
struct optree_broadcast;
struct optree_groups;

/*
 * With params->light, at and line:
 * - light: any set of channels. Algorithms but composed, auto and ring use as
 *   many as the narrower direction has, and are WEFT_EUNSUPPORTED without any
 *   in one of them.
 * - at: loss and reach are those of the links between the positions. In the
 *   schedule nodes are ranks: rank r's light is added and dropped at position
 *   at[r], and passes every link on its path there (optree_links()).
 * - line: neither neighbour exchange nor grouped (WEFT_EUNSUPPORTED).
 * Fields of the plan mean the same; the bound is that of the light and the
 * line given.
 */
struct optree_plan {
	enum coll_kind kind;
	struct coll_sched *sched;	/* with light; verified; owned; NULL
					 * until it is expanded */
	struct optree_sym *sym;		/* verified; owned; NULL
					 * when nodes are not all alike */
	struct optree_broadcast *broadcast; /* of a broadcast; owned */
	struct optree_groups *groups;	/* the same of a grouped plan */
	enum optree_algorithm algorithm; /* never AUTO */
	int rounds;			/* of sending on what came before */
	int chunks;			/* an item is cut into */
	int depth, radix;		/* k and m = ceil(n^(1/k)); levels may
					 * have other radices when m^k > n */
	int n_levels;
	struct optree_level level[OPTREE_MAX_DEPTH];
	int steps;			/* of the schedule, integer stages */
	int64_t closed_form_steps;	/* Theorem 1 at this depth */
	int64_t time_ns;		/* steps * (d/B + a), rounded up; less
					 * retune_hidden_ns */
	int64_t retune_hidden_ns;	/* retuning behind others' data, or
					 * not needed: overlap only */
	int64_t bound_ns;		/* no plan of this collective is faster:
					 * the least over R of R a + the least
					 * load that R rounds allow; with
					 * overlap one retuning in all and a
					 * conversion a round */
	int bound_rounds;		/* the R of the bound */
	double gap;			/* time / bound - 1 */
	int64_t optree_time_ns;		/* Theorem 3 at the depth of Theorem 2,
					 * with a step for each stage at least;
					 * 0 where the paper has nothing */
	int colours_over_bound;		/* channels lost to colouring, summed
					 * over levels (0: every level met its
					 * load bound) */
	int64_t worst_loss_mdb;
	int64_t lightpaths;
};

/*
 * Plans an all-gather: stages, lightpaths, channels, schedule; verified by
 * coll_verify and rwa_ring_check before it is returned. 2 <= n <= 4096, any
 * channels >= 1. depth 0 tries every depth and keeps the fewest steps
 * (ties: the smaller depth) among those that the loss budget allows; on
 * large rings the work of the search is bounded. A depth k with m^k = n gives
 * the paper's tree. WEFT_EINFEASIBLE names the lightpath that the loss budget
 * does not allow. Must plan n = 1024, 64 channels within 2 s and 1 GiB.
 * optree_plan_fini frees what is inside *out.
 */
int optree_plan(const struct optree_params *p, struct optree_plan *out, struct err *err);
void optree_plan_fini(struct optree_plan *plan);

/*
 * Plans an all-gather by the algorithm given; params->depth is for OpTree
 * (AUTO with a depth is OpTree). Composed plans and the ring come as the
 * symmetric form, proven by its own verifier: n = 4096 takes milliseconds
 * and a few megabytes. Reach is a hard limit: no lightpath that the loss
 * budget forbids is planned, and levels adapt. A baseline takes the same
 * lightpaths whatever the budget: WEFT_EINFEASIBLE when one does not close.
 * Errors as optree_plan().
 */
int optree_make(const struct optree_params *p, enum optree_algorithm how,
		struct optree_plan *out, struct err *err);

/*
 * Any collective; shard_bytes is what one rank owns, in all-to-all what one
 * rank has for another. root: of a broadcast, on a line anywhere.
 * WEFT_EUNSUPPORTED: all-to-all is composed or grouped, broadcast composed only.
 */
int optree_collective(const struct optree_params *p, enum coll_kind kind, int root,
		      enum optree_algorithm how, struct optree_plan *out, struct err *err);

/* Draws a plan: channels over time, and the links that the lightpaths of each step take.
 * O(lightpaths of one node) of an all-gather or all-to-all that has the symmetric form; another
 * is written out first, with the errors and the effort of optree_plan_expand(). */
int optree_draw(const struct optree_params *p, struct optree_plan *plan, struct buf *svg,
		struct err *err);

/* Writes plan->sched out when there is none yet. WEFT_ELIMIT
 * when a schedule cannot hold it. With p->overlap it also proves, resonator
 * by resonator (retune_check.c), that each can be set while no light is on
 * it, and in time. O(lights + transfers), with overlap O(hops of lights). */
int optree_plan_expand(const struct optree_params *p, struct optree_plan *plan, struct err *err);

#endif
