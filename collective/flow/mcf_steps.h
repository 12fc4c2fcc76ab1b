/*
 * Time-stepped all-to-all for fabrics whose hosts forward (all-to-all-mcf,
 * section 3.1.4, tsMCF, eqs 15-20): in step k an arc carries at most U_k
 * times its capacity, a node sends what it held when the step began, and the
 * sum of the U_k, which is what a schedule takes beside its latencies, is
 * smallest. In the source-grouped form it is a flow on copies of the nodes,
 * one a step, with arcs to hold what stays.
 */
#ifndef WEFT_COLLECTIVE_FLOW_MCF_STEPS_H
#define WEFT_COLLECTIVE_FLOW_MCF_STEPS_H

#include "collective/flow/mcf.h"
#include "collective/schedule/schedule.h"

struct mcf_steps_options {
	int steps;		/* 0: the fewest whose sum is the flow's U to
				 * within flow.gap, or the best of those up to
				 * MCF_STEPS_MORE above the diameter */
	struct mcf_options flow;
	double loss;		/* of rate, allowed to whole chunks */
	int max_chunks;		/* 0: MCF_STEPS_CHUNKS */
};

#define MCF_STEPS_MORE 12
#define MCF_STEPS_CHUNKS 128

struct mcf_steps_info {
	struct mcf_result flow;	/* of any number of steps */
	int steps;
	double total;		/* sum of the U_k of the program */
	double bound;		/* none of so many steps is below */
	int chunks;		/* P */
	double stepped;		/* sum of the largest loads of the schedule,
				 * a unit of demand */
};

/*
 * Solves the program with lp_solve, one source an orbit of the digraph's
 * translations (topology.h), gives every path through time whole chunks with
 * the smallest P within the loss (or the best), and returns the verified
 * schedule. t is copied. WEFT_EINVAL when steps are fewer than the diameter,
 * WEFT_EINFEASIBLE, WEFT_EUNSUPPORTED when a node is not a terminal,
 * WEFT_ELIMIT when the program is too large, WEFT_ETIMEOUT and
 * WEFT_ECANCELED when it was stopped before a first solution.
 */
int mcf_steps(const struct topo *t, const struct mcf_steps_options *opt,
	      struct coll_sched **out, struct mcf_steps_info *info,
	      struct err *err);

#endif
