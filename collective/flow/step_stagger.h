/* Whole chunks on paths, sent in steps. */
#ifndef WEFT_COLLECTIVE_FLOW_STEP_STAGGER_H
#define WEFT_COLLECTIVE_FLOW_STEP_STAGGER_H

#include "collective/flow/paths.h"
#include "collective/schedule/schedule.h"

struct flow_steps_options {
	double loss;		/* over the congestion of the chunks */
	int max_steps;
	struct flow_limit limit;
};

struct flow_steps;

/* The hops of paths that flow_paths_round has filled. t, net and paths are
 * borrowed. WEFT_ELIMIT when a schedule cannot hold them, WEFT_ENOMEM. O(hops
 * of all paths). */
int flow_steps_new(const struct topo *t, const struct flow_net *net,
		   const struct flow_paths *paths, struct flow_steps **out,
		   struct err *err);
void flow_steps_free(struct flow_steps *st);

/*
 * Chooses steps for the chunks that the paths have now: the largest amount an
 * arc may carry in a step, so the fewest steps, whose largest loads sum up to
 * within opt->loss of `use` (the chunks' congestion), or the best of those
 * tried; *sum is that sum. A trial is broken off when the limit is over; where
 * there is a limit, first fit (step_first_fit.h) is tried before all others and to
 * the end. Needing more than max_steps is WEFT_ELIMIT. Time: O(hops of all
 * chunks) a trial; memory: 16 bytes a hop for the best and for the one that
 * is tried.
 */
int flow_steps_choose(struct flow_steps *st, double use,
		      const struct flow_steps_options *opt, double *sum,
		      struct err *err);

/* Adds the transfers of the steps chosen to s. */
int flow_steps_emit(const struct flow_steps *st, struct coll_sched *s,
		    int *steps, double *sum, struct err *err);

#endif
