/*
 * All-to-all schedules out of flows: weighted paths of every pair, a whole
 * number of chunks on each, and steps that keep the full arcs full.
 */
#ifndef WEFT_COLLECTIVE_MCF_SCHED_H
#define WEFT_COLLECTIVE_MCF_SCHED_H

#include "collective/collective.h"
#include "collective/mcf_forms.h"

struct mcf_sched_options {
	struct mcf_options flow;
	enum mcf_form form;	/* how it is solved */
	bool single;		/* one path a pair, by single_path.h; the form
				 * does not matter then */
	double loss;		/* of rate, allowed to chunks and again to
				 * steps */
	int max_chunks;		/* 0: MCF_SCHED_CHUNKS */
	int max_steps;		/* 0: MCF_SCHED_STEPS */
	/* After a failure: the flow of an earlier call, and the digraph that
	 * it was for with the arcs marked that t lacks. The flow solver goes
	 * on from there. NULL: from nothing. */
	const struct mcf *before;
	const struct topo *before_topo;
	const bool *dropped;
	struct mcf **kept;	/* NULL, or the flow goes there: mcf_free */
};

#define MCF_SCHED_LOSS 0.01
#define MCF_SCHED_CHUNKS 64
#define MCF_SCHED_STEPS 512
/* Share of a time limit that the flow may use; the rest is for paths, chunks
 * and steps. When it is over, what is left of the work is done the plain way
 * (one path a pair, one attempt at chunks, first fit), and still replayed:
 * O(hops of all chunks). */
#define MCF_SCHED_FLOW_TIME 0.5

struct mcf_sched_info {
	struct mcf_result flow;
	int64_t paths;		/* of all pairs together */
	int chunks;		/* P */
	double chunked;		/* congestion of the chunks, a unit of demand */
	double stepped;		/* sum over steps of the largest load, a unit
				 * of demand: what T_B is made of */
	int steps;
	enum mcf_stop stop;	/* why the search ended, of flow, paths,
				 * chunks or steps */
};

/*
 * Solves the flow (mcf.h), cuts the flow of each source into paths, widest
 * first (MCF-extP of the paper: nothing of the rate is lost), gives every
 * path whole chunks with the smallest P whose congestion is within `loss` of
 * the flow's (or the best P up to max_chunks), and sends the chunks in steps
 * in which an arc carries at most a fixed amount, those with the longest way
 * to go first. The amount is the largest (so the steps the fewest) whose sum
 * is within `loss` of the chunks' congestion, or the best of those tried up
 * to max_steps. The schedule is verified; coll_verify has its exact T_B.
 *
 * t is copied. WEFT_EINFEASIBLE, WEFT_ELIMIT, WEFT_EUNSUPPORTED when a node
 * is not a terminal. info may be NULL. Time beside the flow's: O(what flows to
 * a sink) a path, O(hops of all chunks) a trial of steps.
 */
int mcf_schedule(const struct topo *t, const struct mcf_sched_options *opt,
		 struct coll_sched **out, struct mcf_sched_info *info,
		 struct err *err);

#endif
