/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least cost at the best rate: linear programs over all ways in which data can spread.
 *
 * The rate of a collective is what fluid data could attain: shards in parts as small as one
 * likes, and time for as many steps. Its program has a variable for every tree along which a
 * shard can go (Dantzig and Wolfe 1960), found when it is needed as the cheapest for the prices
 * of links; where the digraph has symmetries one root stands for its orbit and loads are averaged
 * over it (thesis "Optimal collectives", chapter 5: mirrored). Of all solutions of the best rate,
 * one with the least sum over arcs of cost times data is wanted second. Results are exact
 * fractions, with bounds that the prices prove.
 */
#ifndef WEFT_COLLECTIVE_COST_COST_H
#define WEFT_COLLECTIVE_COST_COST_H

#include <gmp.h>
#include <stdbool.h>

#include "collective/schedule/schedule.h"
#include "collective/tree/forest.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"

/* One collective of those that run together. What is one unit: the shard of each terminal
 * (all-gather, reduce-scatter), of each pair (all-to-all), of each terminal but the root (gather,
 * scatter), all that the root has or gets (broadcast, reduce), the whole vector (all-reduce). */
struct coll_rate_demand {
	enum coll_kind kind;
	int root;
	int64_t size;		/* units, >= 1 */
};

struct coll_rate_options {
	bool min_cost;		/* also the second stage */
	bool sensitivity;	/* the parts as well */
	bool alone;		/* no symmetry: each root for itself, as plain Dantzig-Wolfe */
	int64_t max_work;	/* of coll_rate_forest: roots times nodes times arcs that are
				 * searched; 0: any */
	const volatile bool *cancel;
	struct deadline deadline;
};

/* By how much the rate hangs on a link or shared limit, or on those that symmetry makes alike. */
struct coll_rate_part {
	int32_t arc, limit;	/* the first of them; the other is -1 */
	int64_t alike;		/* how many there are */
	double share;		/* where they grow by 1 %, the rate does by this many % at the most;
				 * the shares of all parts add up to 1 */
};

/* Times are units of demand over units of capacity, costs sums over arcs of cost x units. */
struct coll_rate {
	mpq_t time, time_bound;		/* attained; none is below */
	mpq_t cost, cost_bound;		/* of the second stage, at that time */
	bool has_cost;
	bool stopped;			/* by time or cancel: bounds are apart */
	VEC(struct coll_rate_part) parts;	/* largest share first, none of 0; empty where a
						 * cut gave the time, which it does unless asked */
	int rounds, columns;		/* of both stages */
	int n, m;			/* nodes and arcs of the digraph that was searched */
};

/* Zeros, to be freed with fini, also after errors. */
void coll_rate_init(struct coll_rate *r);
void coll_rate_fini(struct coll_rate *r);

/*
 * The best rate of n collectives that run at once on t, and the least cost at it. Terminals
 * store, copy and reduce; other nodes copy and reduce where their flags say so, else data goes
 * through them. All-reduce is one tree to a terminal and one from it for each piece, which is
 * optimal where only terminals reduce. Servers that are alike and meet in switches only are not
 * all searched: twice as many as one has terminals and memories, and two, show what any number
 * can do. On digraphs of terminals without limits the time is that of a cut (coll_bound), which
 * is attained, and trees that attain it begin the search for the cost. WEFT_EUNSUPPORTED: a
 * terminal that cannot do all, all-reduces where other nodes reduce; WEFT_EINFEASIBLE: one that
 * cannot be reached; WEFT_ELIMIT: numbers beyond 64 bits. r: initialised, freed by the caller also
 * after an error.
 */
int coll_rate_find(const struct topo *t, const struct coll_rate_demand *demands, int n,
		   const struct coll_rate_options *opt, struct coll_rate *r, struct err *err);

/*
 * The same of one collective along trees, as a forest with the weights of the program: trees of
 * every terminal, or of the first of each orbit of a group that moves terminals freely. f->share
 * is a shard; of a broadcast or reduce all that the root has; of an all-reduce one of N shards,
 * and roots have what the program gives them. Weights of a large common denominator are rounded,
 * and f->time is theirs. f: after coll_forest_init, coll_forest_fini also after an error.
 * WEFT_EUNSUPPORTED: data that is not copied (all-to-all, gather, scatter), trees that copy in
 * switches; WEFT_ELIMIT beyond max_work.
 */
int coll_rate_forest(const struct topo *t, const struct coll_rate_demand *demand,
		     const struct coll_rate_options *opt, struct coll_rate *r,
		     struct coll_forest *f, struct err *err);

#endif
