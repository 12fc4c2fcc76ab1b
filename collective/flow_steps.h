/* Whole chunks on paths, sent in steps. */
#ifndef WEFT_COLLECTIVE_FLOW_STEPS_H
#define WEFT_COLLECTIVE_FLOW_STEPS_H

#include "collective/collective.h"
#include "collective/flow_paths.h"

/* When a search ends early; the zero limit never does. */
struct flow_limit {
	int64_t deadline_ns;	/* of clk_now_ns, 0: none */
	const volatile bool *cancel;	/* NULL, or stop when true */
};

bool flow_limit_over(const struct flow_limit *limit);

struct flow_steps_options {
	double loss;		/* over the congestion of the chunks */
	int max_steps;
	struct flow_limit limit;
};

/* What an arc may carry in a step, in chunks a unit of capacity, and whether
 * paths start spread over time or all at once, the longest first. */
struct flow_pace {
	int64_t quantum;
	bool staggered;
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
 * Chooses the largest quantum, so the fewest steps, whose largest loads sum
 * up to within opt->loss of `use` (the chunks' congestion), or the best of
 * those tried; *sum is that sum. Over the limit one guess is all that is
 * tried. Needing more than max_steps is WEFT_ELIMIT. Time: O(hops of all
 * chunks) a trial.
 */
int flow_steps_choose(struct flow_steps *st, double use,
		      const struct flow_steps_options *opt,
		      struct flow_pace *best, double *sum, struct err *err);

/* Runs the steps and adds their transfers to s. */
int flow_steps_emit(struct flow_steps *st, struct flow_pace pace,
		    struct coll_sched *s, int *steps, double *sum,
		    struct err *err);

#endif
