/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef WEFT_COLLECTIVE_MAKE_PRIVATE_H
#define WEFT_COLLECTIVE_MAKE_PRIVATE_H

#include "collective/make/make.h"

/* By what time a bound is met: what is left is worth no work, but where steps come first, beside
 * which T_B is next to nothing. */
#define MET(q) ((q)->steps_first ? 1 : 1.002)

/* coll_algorithm.run of the rows of algorithms.c: of copies.c, one_shot.c, rooted.c, pairs.c
 * and torus.c; and of hierarchical.c and trimmed.c, which ask coll_make for what they are made of.
 * Errors of what they make. */
typedef int make_run_fn(const struct coll_make_query *q, const struct coll_algorithm *self,
			struct coll_made *best, struct err *err);
make_run_fn make_by_bfb, make_by_expand, make_by_steady, make_by_flood, make_by_forest,
	make_by_late, make_by_hierarchy, make_by_one_shot, make_by_rooted, make_by_trimmed,
	make_by_torus, make_by_flow, make_by_steps, make_by_searched, make_by_shortest;

/* coll_algorithm.predict. */
typedef int make_predict_fn(const struct coll_make_query *q, struct coll_prediction *out,
			    struct err *err);
make_predict_fn make_predict_bfb, make_predict_one_shot, make_predict_trees, make_predict_torus;

/* What is wanted of sums that are merged. */
struct merged_aim {
	const struct coll_cost *cost;	/* for the least time; NULL: T_B */
	int extra;		/* steps beside those of the width, at most */
	bool no_loops;		/* nothing goes over self-loops, which have no routes */
	int64_t max_rows;	/* transfers that are kept */
	double below_ns;	/* with a cost: nothing is made where it would take as long; 0: of
				 * any time */
};

/* An all-reduce between neighbours in as many steps as the digraph is wide, or some more, in which
 * what goes to the same ranks from somewhere on goes there as one sum; every rank is a node.
 * WEFT_EUNSUPPORTED where it is not, WEFT_EINFEASIBLE: one does not reach another; WEFT_ELIMIT:
 * all that might do is of more transfers, or too many nodes. O(nodes arcs), as often as other
 * plans may gain. */
int make_merged(const struct topo *t, const struct merged_aim *aim, struct coll_sched **out,
		struct err *err);
/* The time of that, but for rounding, or HUGE_VAL where nothing is made; aim has a cost. The same
 * errors and work but for the transfers. */
int make_merged_ns(const struct topo *t, const struct merged_aim *aim, double *ns,
		   struct err *err);
/* What that time is not below, in O(arcs degree); likewise. */
int make_merged_min_ns(const struct topo *t, const struct merged_aim *aim, double *ns,
		       struct err *err);

/* The bound of an all-to-all, where what a flow needs at least is more: so many shards over an arc
 * of capacity 1. */
void make_raise_bound(const struct coll_sched *s, double shards, struct coll_report *r);
/* coll_ports of schedules on it. */
int make_ports(const struct topo *t);
/* out->time_ns of its steps and T_B; 0 without a cost. */
void make_time_prediction(const struct coll_cost *cost, struct coll_prediction *out);

/* Takes over what one owns, whose report is not initialised yet; it becomes *best when it is
 * the better one. WEFT_EUNSUPPORTED where ranks would have to forward and do not (links_only). */
int make_offer(const struct coll_make_query *q, struct coll_made *one, struct coll_made *best,
	       struct err *err);

/* The schedule along trees of all ranks for the query: made->sched, on the physical digraph where
 * that is known, and what it is made of. Of an all-reduce along trees that are packed each way by
 * itself, or (joint) along pairs of trees for both. Errors of coll_forest_pack, or of
 * coll_forest_allreduce and coll_rate_forest, and of coll_forest_schedule. below_ns: with a cost,
 * made->sched stays NULL where it would take as long; 0: never. */
int make_forest(const struct coll_make_query *q, bool joint, double below_ns,
		struct coll_made *made, struct err *err);

/* Puts one->sched into the fabric of the query, where there is one and it is not in it:
 * one->logical is what it was. Errors of coll_embed_in. */
int make_embed(const struct coll_make_query *q, struct coll_made *one, struct err *err);

/* Offers one of which batches overlap, as make_offer: in the number of them that takes the least
 * time, of so many transfers at most; and by "auto" only where that may be less than what the best
 * so far takes. */
int make_offer_overlapped(const struct coll_make_query *q, struct coll_made *one, int64_t most,
			  struct coll_made *best, struct err *err);

/* group[rank]: ranks that arcs of at least this capacity join. Returns how many. O(arcs). */
int make_join_ranks(const struct topo *t, int64_t cap, int32_t *group);

/* Whether the best so far is above its bound, and others are no larger. */
bool make_is_above(const struct coll_make_query *q, const struct coll_made *best);

#endif
