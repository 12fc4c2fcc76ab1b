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
	/* Composed plans: */
	int stride;	/* links between neighbours in a subset; 0: a tree's */
	int jump;	/* neighbours served each way in a round: 1 is a relay,
			 * members / 2 a direct level */
	int rounds;
};

/* AUTO: the fastest of COMPOSED and TREE. COMPOSED: levels that relay or go
 * directly, striped over all channels (docs/rings.md). TREE: OpTree. The
 * others are what the paper compares with: every item takes one channel for
 * a step. */
enum optree_algorithm {
	OPTREE_AUTO, OPTREE_COMPOSED, OPTREE_TREE, OPTREE_BY_RING,
	OPTREE_BY_NE, OPTREE_BY_WRHT, OPTREE_BY_ONE_STAGE,
};

/* "auto", "composed", "optree", "ring", "ne", "wrht", "one-stage". */
const char *optree_algorithm_name(enum optree_algorithm a);
int optree_algorithm_parse(const char *name, enum optree_algorithm *a,
			   struct err *err);

struct optree_sym;

struct optree_plan {
	enum coll_kind kind;
	struct coll_sched *sched;	/* with light; verified; owned; NULL
					 * until it is expanded */
	struct optree_sym *sym;		/* optree/sym.h; verified; owned; NULL
					 * when nodes are not all alike */
	enum optree_algorithm algorithm; /* never AUTO */
	int rounds;			/* of sending on what came before */
	int chunks;			/* an item is cut into */
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
	int64_t optree_time_ns;		/* Theorem 3 at the depth of Theorem 2,
					 * with a step for each stage at least;
					 * 0 where the paper has nothing */
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
 * rank has for another. Bounds: reduce-scatter as all-gather; all-reduce
 * a + 2(n-1)/(2w) d/B, as every sum takes n-1 transfers and as many to
 * spread; broadcast a + n/(2w) d/B; all-to-all a + floor(n^2/4)/(2w) d/B, the
 * links that the pieces of a node need. root: of a broadcast. Broadcast comes
 * written out. WEFT_EUNSUPPORTED: all-to-all and broadcast are composed only.
 */
int optree_collective(const struct optree_params *p, enum coll_kind kind,
		      int root, enum optree_algorithm how,
		      struct optree_plan *out, struct err *err);

/* Writes plan->sched out when there is only the symmetric form. WEFT_ELIMIT
 * when a schedule cannot hold it. O(lights + transfers). */
int optree_plan_expand(const struct optree_params *p, struct optree_plan *plan,
		       struct err *err);

#endif
