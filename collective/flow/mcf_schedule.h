/*
 * All-to-all schedules out of flows: weighted paths of every pair, a whole
 * number of chunks on each, and steps that keep the full arcs full.
 */
#ifndef WEFT_COLLECTIVE_FLOW_MCF_SCHEDULE_H
#define WEFT_COLLECTIVE_FLOW_MCF_SCHEDULE_H

#include "collective/flow/mcf_forms.h"
#include "collective/schedule/schedule.h"

/* Which paths the chunks take. */
enum mcf_paths {
	MCF_PATHS_FLOW,		/* those of the flow */
	MCF_PATHS_SINGLE,	/* one a pair, by unsplittable.h */
	MCF_PATHS_SHORTEST,	/* one a pair, load-aware shortest paths */
	MCF_PATHS_DISJOINT,	/* a maximal set without a common link, by
				 * disjoint.h */
};

/* "single-path", "shortest-path" or "disjoint"; false for other names. */
bool mcf_paths_parse(const char *name, enum mcf_paths *paths);

struct mcf_sched_options {
	struct mcf_options flow;
	enum mcf_form form;	/* how it is solved */
	enum mcf_paths paths;	/* the form only matters to MCF_PATHS_FLOW */
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
	struct mcf **kept;	/* NULL, or the flow goes there: mcf_free;
				 * NULL there after MCF_PATHS_SINGLE and
				 * _SHORTEST, which need none */
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
	struct mcf_result flow;	/* on any paths */
	/* Congestion on the paths that opt->paths allows, and what no choice
	 * among them is below; 0 with those of the flow. */
	double routed, routed_bound;
	int64_t paths;		/* of all pairs together */
	int chunks;		/* P */
	double chunked;		/* congestion of the chunks, a unit of demand */
	double stepped;		/* sum over steps of the largest load, a unit
				 * of demand: what T_B is made of */
	int steps;
	int longest;		/* path, in hops: the fewest steps in which
				 * the chunks could arrive */
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
 * With other paths (opt->paths) these take the place of the flow's; up to 256
 * terminals single paths are searched for, beyond they are the flow's widest.
 *
 * t is copied. WEFT_EINFEASIBLE, WEFT_ELIMIT, WEFT_EUNSUPPORTED when a node
 * is not a terminal. info may be NULL. Time beside the flow's: O(what flows to
 * a sink) a path, O(hops of all chunks) a trial of steps.
 */
int mcf_schedule(const struct topo *t, const struct mcf_sched_options *opt,
		 struct coll_sched **out, struct mcf_sched_info *info,
		 struct err *err);

#endif
