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

#include <stdint.h>

#include "collective/collective.h"
#include "lib/base/err.h"
#include "rwa/rwa.h"

struct optree_params {
	int n;			/* nodes of the job = of the ring */
	int channels, fibres;	/* per direction and fibre; fibres >= 1 */
	int depth;		/* k; 0: the depth with the fewest steps */
	int64_t shard_bytes;	/* d: one node's item */
	int64_t channel_bps;	/* B_lambda */
	int64_t alpha_ns;	/* a: retuning plus conversion, per step */
	const struct rwa_loss *loss;	/* NULL: no budget */
};

#define OPTREE_MAX_DEPTH 32

struct optree_level {
	int subsets;	/* of all segments together at this level */
	int members;	/* of the largest subset (m) */
	int items;	/* that the fullest node sends to each other member */
	int steps;	/* that it adds; part of it may already go in
			 * the last step of the level before */
};

struct optree_plan {
	struct coll_sched *sched;	/* with light; verified; owned */
	int depth, radix;		/* k and m = ceil(n^(1/k)); levels may
					 * have other radices when m^k > n */
	int n_levels;
	struct optree_level level[OPTREE_MAX_DEPTH];
	int steps;			/* of the schedule, integer stages */
	int64_t closed_form_steps;	/* Theorem 1 at this depth */
	int64_t time_ns;		/* steps * (d/B + a), rounded up */
	int64_t bound_ns;		/* any all-gather: at least
					 * (n-1)/(2 w fibres) d/B + a, and the
					 * least over R of R a + the least load
					 * that R rounds allow */
	double gap;			/* time / bound - 1 */
	int colours_over_bound;		/* channels lost to colouring, summed
					 * over levels (0: every level met its
					 * load bound) */
	int64_t worst_loss_mdb;
	int64_t lightpaths;
};

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
int optree_plan(const struct optree_params *p, struct optree_plan *out,
		struct err *err);
void optree_plan_fini(struct optree_plan *plan);

#endif
