/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef WEFT_COLLECTIVE_WORKLOAD_PRIVATE_H
#define WEFT_COLLECTIVE_WORKLOAD_PRIVATE_H

#include "collective/embedding/embedding.h"
#include "collective/finder/finder.h"
#include "collective/workload/workload.h"

/* A bit of each unit. */
static inline uint32_t all_units(const struct workload *w)
{
	return w->units.n == 32 ? UINT32_MAX : (UINT32_C(1) << w->units.n) - 1;
}

/* Collectives that gather or sum: one figure of a digraph serves them all. */
#define GATHERS (COLL_KIND_BIT(COLL_ALLGATHER) | COLL_KIND_BIT(COLL_REDUCE_SCATTER) | \
		 COLL_KIND_BIT(COLL_ALLREDUCE))

/* The ns that a byte takes over a port. */
static inline double byte_ns(const struct workload_params *p)
{
	return 8e9 / (double)p->link_bps;
}

static inline int phases_of(const struct workload_op *op)
{
	return op->kind == COLL_ALLREDUCE ? 2 : 1;
}

/* ---- servers ---- */

/* Ranks of a group along these axes in each of its servers. */
int ranks_inside(const struct workload *w, uint32_t axes);

/* Bytes that a rail has to carry where one rank would have to carry those of the op: of gathers and
 * sums each rank of a server takes its part. */
static inline double rail_bytes(const struct workload *w, const struct workload_op *op)
{
	int parts = op->shift || op->kind == COLL_ALLTOALL ? 1 : ranks_inside(w, op->axes);

	return (double)op->bytes / parts;
}

/* A group whose ranks are several a server. */
struct server_digraph {
	struct topo *physical;	/* with what is inside, of the group, and circuits between ports */
	struct topo *seen;	/* what ranks see of each other */
	int32_t *groups;	/* of each rank the number of its server */
	int64_t unit_bps;	/* that a capacity of 1 stands for */
};

/* WEFT_EUNSUPPORTED: groups of a server that are not alike, ports behind other ranks. Fini also
 * after an error. */
int server_group(const struct workload *w, const struct workload_params *p,
		 const struct workload_light *l, int op, struct server_digraph *out,
		 struct err *err);
void server_digraph_fini(struct server_digraph *d);

/* ---- digraphs of a group ---- */

/* Those of n ranks and so many ports that may serve, each with the figures that were asked for;
 * axes, shift and ports are not filled. */
struct digraphs {
	int ranks, ports;
	VEC(struct workload_share) list;
	bool gathers, pairs;	/* all of the list have these figures */
};

struct workload_planner {
	const struct workload *w;
	const struct workload_params *p;
	struct coll_finder *finder;
	VEC(struct digraphs) digraphs;
	VEC(struct class_cost) classes;
	struct err *err;
};

/* The digraphs with at least the figures that are wanted; the list is empty where nothing is known.
 * Valid until the next call. Errors of the finder. */
int digraphs_of(struct workload_planner *pl, int ranks, int ports, bool gathers, bool pairs,
		const struct digraphs **out, struct err *err);
void digraphs_fini(struct workload_planner *pl);

/* ---- classes ---- */

struct class_cost {
	uint32_t units;
	double time_ns;		/* INFINITY: fewer ports than kinds of circuits */
	double bound_ns;	/* of any still light for them */
	struct workload_light light;	/* empty where there is none */
};

/* Whether its circuits are for the op. */
bool share_serves(const struct workload_share *s, const struct workload_op *op);
/* ns of a call under a light. */
double use_time(const struct workload_planner *pl, const struct workload_op *op,
		const struct workload_light *l);
/* The best split of the ports for these units, kept; valid until the next call. */
int class_of(struct workload_planner *pl, uint32_t units, const struct class_cost **out,
	     struct err *err);
/* How many kinds of circuits they need. */
int class_kinds(const struct workload_planner *pl, uint32_t units);

/* ---- schedules ---- */

/* ns of a step by its uses and changes, rounded up. */
int64_t step_ns(const struct workload *w, const struct workload_plan *plan);
/* The schedule of a use, or those of its ranges, of which *use is then the last. Errors of
 * coll_make. */
int make_use(const struct workload *w, struct workload_plan *plan, size_t *use, struct err *err);
/* Makes that of a use for calls of its max_bytes, with its time and the cost that it was made by.
 * Errors of coll_make. */
int use_schedule(const struct workload *w, const struct workload_params *p,
		 const struct workload_light *l, struct workload_use *use, struct coll_cost *cost,
		 struct err *err);
/* Uses in place of the one of this number, of a collective with calls of several sizes; *use is
 * then the last of them. */
int make_ranges(const struct workload *w, struct workload_plan *plan, size_t *use,
		struct err *err);

/* ---- gaps ---- */

/* Replaces *t, which is freed, by it without an arc for each of the gaps. */
int drop_gaps(struct topo **t, const struct workload_gap *gaps, size_t n, struct err *err);
/* What is missing in any rail along these axes, by positions in it, goes to out->gaps. O(gaps x
 * (log gaps + ranks of a rail)). */
void group_gaps(const struct workload *w, const struct workload_light *l, uint32_t axes,
		struct workload_light *out);
/* Circuits from any rank to the one that it sends to, the fewest, in the light of all ranks.
 * WEFT_EVERIFY: one has none. O(ranks x ports). */
int fewest_circuits(const struct workload *w, int op, const struct topo *light, int64_t *out,
		    struct err *err);
/* The time of a use that is of sends, by these. */
int send_ns(const struct workload *w, const struct workload_params *p,
	    const struct workload_light *l, struct workload_use *use, struct err *err);

static inline int64_t circuits_between(const struct topo *t, int from, int to)
{
	int64_t n = 0;
	int first, degree = topo_out(t, from, &first);

	for (int a = first; a < first + degree; a++) {
		n += topo_arc(t, a)->dst == to ? topo_arc(t, a)->cap : 0;
	}
	return n;
}

/* ---- bounds ---- */

/* Steps in which a rank's data can reach the others of the op's group, by the ports. */
int op_steps(const struct workload_planner *pl, const struct workload_op *op);
/*
 * ns of a call on servers without its steps' alpha, at least, by what a rank has to take in or send
 * over its links inside and all ports at it; 0 where ranks have no server. Of a gather that is what
 * is not its own; of an all-reduce M both ways, and of all ranks together 2 (n - 1) M come in:
 * n - 1 until one is complete, and one for each of the others, which are complete later.
 */
double rank_bound(const struct workload_planner *pl, const struct workload_op *op);
/* ns that no call takes less than, on all ports of a rank. */
double call_bound(const struct workload_planner *pl, const struct workload_op *op);
/* ns of one step's calls of these units under any still light; y (NULL: not wanted) as in struct
 * workload_bound. */
double still_bound(const struct workload_planner *pl, uint32_t units, double *y);
/* What such y, at least 0, prove of all units; -1: on some kind of circuits they add up to more
 * than 1. */
double certified_bound(const struct workload_planner *pl, const double *y);
/* Likewise under any light at all. */
double any_bound(const struct workload_planner *pl);

#endif
