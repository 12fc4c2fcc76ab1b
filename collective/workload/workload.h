/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step: several collectives, in groups of ranks, over the same ports.
 *
 * Ranks form a mesh, row-major over its axes, the last the fastest. A collective runs in all groups
 * of a set of its axes at once, a group being the ranks that differ in these axes only; a send goes
 * from each rank to the one `shift` further along an axis, and not over its end. A step is an order
 * of them, of which two tables are kept: how often each unit (a collective, or several together)
 * runs, and how often one runs directly after another, round from the last to the first, as steps
 * follow one another.
 *
 * Light is a split of each rank's ports over the axes, with a digraph for the groups of each. Still
 * light serves all of the step; else units have classes, each with a light of its own, and where a
 * unit of another class follows, the light changes, which takes so long that no port has light
 * meanwhile. Nothing overlaps a change.
 *
 * Ranks may be several a server, numbered server by server. What runs within servers uses no port,
 * and circuits are rails: from rank to rank at the same place of two servers (server.c).
 *
 * All is pure: the same step and parameters give the same plan.
 */
#ifndef WEFT_COLLECTIVE_WORKLOAD_WORKLOAD_H
#define WEFT_COLLECTIVE_WORKLOAD_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

#define WORKLOAD_MAX_AXES 8
#define WORKLOAD_MAX_OPS 32		/* collectives and sends; also units */
#define WORKLOAD_MAX_RANKS 65536
#define WORKLOAD_MAX_CALLS (INT64_C(1) << 40)	/* of all units together */
/* All partitions of so many units into classes are tried; of more, moves of one. */
#define WORKLOAD_EXACT_UNITS 9

struct workload_axis {
	char *name;
	int size;		/* ranks along it, at least 1 */
	int inside;		/* of these, so many next to each other are in one server */
};

/* A collective, or sends. */
struct workload_op {
	char *name;
	enum coll_kind kind;	/* all-gather, reduce-scatter, all-reduce, all-to-all; of sends
				 * none */
	int shift;		/* of sends: so far along its one axis; 0: a collective */
	uint32_t axes;		/* of its groups, a bit each */
	int64_t bytes;		/* M, the whole vector of one group; all-to-all: what a rank has for
				 * all of its group; sends: what one rank sends. The largest of its
				 * calls, which light is planned for */
	int64_t min_bytes;	/* of its calls, the smallest; 0: all are of the same */
};

/* Ops that run together; the longest is their time. */
struct workload_unit {
	uint32_t ops;		/* a bit each */
	int64_t calls;		/* in a step */
};

struct workload {
	VEC(struct workload_axis) axes;
	VEC(struct workload_op) ops;
	VEC(struct workload_unit) units;
	int64_t *next;		/* [units x units]: how often the second runs directly after the
				 * first */
	struct topo *server;	/* what is in each server, in GB/s; NULL: one rank */
	char *server_expr;
	int *port_at;		/* [ranks of a server] its node that has the ports of each */
};

/* A step without axes. */
void workload_new(struct workload **out);
void workload_free(struct workload *w);

/* Names are copied, and each once. WEFT_EINVAL: a size below 1, a name twice; WEFT_ELIMIT. */
int workload_add_axis(struct workload *w, const char *name, int size, struct err *err);
/* After the axes: servers of as many ranks as the expression has, with the ports of each at these
 * of its nodes; both are copied. WEFT_EINVAL: an axis that is not of whole servers, or of whole
 * parts of one; errors of topo_parse. */
int workload_set_server(struct workload *w, const char *expr, const int *port_at,
			struct err *err);
/* After the axes. WEFT_EINVAL: no bytes, less than the smallest, no axis or one that there is not,
 * sends along other than one axis or not within it; WEFT_EUNSUPPORTED: a collective with a root;
 * WEFT_ELIMIT. */
int workload_add_op(struct workload *w, const struct workload_op *op, struct err *err);
int workload_find_axis(const struct workload *w, const char *name);	/* or -1 */
int workload_find_op(const struct workload *w, const char *name);	/* likewise */

/* What runs in a step: units, one after the other, or such a list over and over. */
struct workload_step {
	uint32_t ops;		/* a unit; 0: what follows */
	int64_t times;		/* the list runs, at least 1 */
	VEC(struct workload_step) list;
};

void workload_step_fini(struct workload_step *s);
/* Fills units and next from the whole step. WEFT_EINVAL: a list of nothing, times below 1, units
 * together that share an axis; WEFT_ELIMIT. O(entries of the tree). */
int workload_count(struct workload *w, const struct workload_step *s, struct err *err);

/* Of all that a step is, but for what is in its servers. */
uint64_t workload_hash(const struct workload *w);
/* Product of the sizes of these axes. */
int workload_ranks(const struct workload *w, uint32_t axes);
#define WORKLOAD_ALL_AXES UINT32_MAX
/* How many servers a group along these axes has ranks in. */
int workload_servers(const struct workload *w, uint32_t axes);
/* The ranks of the group of `axes` that rank r is in, in their order: out has room for
 * workload_ranks(w, axes). Returns r's position in it. */
int workload_group(const struct workload *w, uint32_t axes, int r, int *out);
/* Of that group, those at r's place in their servers, between which there are circuits: out has
 * room for workload_servers(w, axes). Returns r's position in it. */
int workload_rail(const struct workload *w, uint32_t axes, int r, int *out);

/* ---- plans ---- */

struct workload_params {
	int ports;		/* of each rank, each way */
	int64_t link_bps;	/* of each */
	int64_t alpha_ns;	/* of each comm step */
	int64_t change_ns;	/* that a change of light takes; below 0: light stays still */
	int64_t max_changes;	/* in a step; below 0: any number */
	bool both;		/* a circuit is one both ways */
};

/* Ports of a light that have circuits along the same axes. */
struct workload_share {
	uint32_t axes;
	int shift;		/* of sends: parallel arcs to the rank so far on; 0: expr */
	bool paired;		/* of sends: also so far back, as no rank sends both */
	int ports;
	char *expr;		/* the digraph of each group, of the ranks in their order; owned */
	int steps;		/* of an all-gather on it */
	int64_t num, den;	/* its T_B in M/B of all its ports; den 0: of no collective that
				 * gathers or sums */
	int diameter;
	double congestion;	/* of the all-to-all on it (struct mcf_result); 0: of none */
};

/* A circuit that is not there, by its ranks. */
struct workload_gap {
	int from, to;
};

struct workload_light {
	uint32_t units;		/* that it serves */
	VEC(struct workload_share) shares;
	VEC(struct workload_gap) gaps;	/* of its circuits; each once */
};

/* A collective under its light; of one with calls of several sizes each range of them, in rising
 * order, with the schedule that is the fastest there. */
struct workload_use {
	int op, light;
	int64_t min_bytes, max_bytes;	/* of the calls that are meant, inclusive */
	double time_ns;		/* of one call of max_bytes */
	double bound_ns;	/* no call takes less on all ports of a rank */
	struct coll_sched *sched;	/* of one group, by workload_make_schedules; NULL: sends */
	bool degraded;		/* it is made for the gaps of its light */
};

/* The y of an op, rounded down: see below. */
struct workload_weight {
	double y;
};

/*
 * Bounds of a step, in ns, rounded down.
 *
 * still_ns: of any light that stays still, also unlike from rank to rank. Let x_k be the mean
 * number of ports of a rank with circuits of kind k: along one axis (others serve fewer
 * collectives), and where that has sends, to the rank one shift of theirs further. D_o is the sum
 * over the kinds that serve o, and w_o = v_o M_o / b what o must move: v is (n-1)/n for an
 * all-gather or reduce-scatter, twice that for an all-reduce, the share of ranks that send for
 * sends, which go over one circuit, and for an all-to-all the least sum of distances of d ports
 * over n. Then o takes at least alpha * (Moore's bound of steps) + w_o / D_o, and with any y >= 0
 * that adds up to at most 1 over the ops that a kind serves, whichever it is,
 *
 *	sum of c_o w_o / D_o >= (sum of sqrt(c_o w_o y_o))^2 / d,
 *
 * as sum of y_o D_o <= d (Cauchy). y is the certificate. Ops that run together count by equal
 * parts. An op on servers whose y is 0 counts by what its ranks take in and send over all links
 * that they have (rank_bound) instead, whatever its ports.
 *
 * classes_ns: of plans whose light is a function of the unit: the least, over partitions into
 * classes, of still_ns of each and the changes.
 *
 * any_ns: of any light whatever, also within a call and changed for nothing: alpha times
 * log(n) of base d + 1, and all ports busy with the bytes that leave a rank.
 */
struct workload_bound {
	int64_t still_ns, classes_ns, any_ns;
	VEC(struct workload_weight) weights;	/* of still_ns, one an op */
};

struct workload_plan {
	struct workload_params params;	/* that it was made for */
	VEC(struct workload_light) lights;
	VEC(struct workload_use) uses;	/* of every op of a unit of each light */
	int64_t changes;	/* of light in a step */
	int64_t change_ns;	/* that each takes; 0: light stays still */
	int64_t time_ns;	/* of a step */
	int64_t still_ns;	/* of the best plan whose light stays still; -1: too few ports */
	bool exhaustive;	/* all partitions into classes were tried, with all splits of ports
				 * of each */
	struct workload_bound bound;
};

/*
 * The plan of the least time. The digraphs of a share are those of coll_find and coll_find_flow;
 * a collective along several shares runs on their product. WEFT_EINFEASIBLE: more kinds of circuits
 * than ports; the message has the numbers, and what changing light would take. WEFT_EUNSUPPORTED:
 * sends where circuits are both ways; WEFT_EINVAL: parameters. O(2^units splits of ports) beside
 * the finder's work, each size and number of ports once.
 */
int workload_make_plan(const struct workload *w, const struct workload_params *p,
		       struct workload_plan **out, struct err *err);
void workload_plan_free(struct workload_plan *plan);

/* Of several uses of a collective, its number in their order, from 1; 0: it is the only one. */
int workload_use_number(const struct workload_plan *plan, size_t use);

/*
 * Makes the schedule of every use that is no send, for one group, and with them the times of uses
 * and of the step become what these take: mostly what was foreseen, less where there is something
 * better than breadth-first broadcast, more where an all-to-all is rounded to chunks. So does
 * still_ns of a plan of one light; else it stays what was foreseen. Once a plan.
 *
 * A collective with calls of several sizes becomes as many uses as there are ranges. At fixed light
 * the time of a schedule is a line over sizes, alpha S + f M / (D b), and the fastest at each size
 * are the lower envelope: where the lines of two meet, (S1 - S2) alpha D b / (f2 - f1), one made
 * for that size is taken as well if it saves 1 %, and so on in both halves. Errors of coll_make.
 */
int workload_make_schedules(const struct workload *w, struct workload_plan *plan, struct err *err);
/*
 * A light without so many of its circuits, which replace its gaps: schedules of collectives that
 * have one of them between their ranks are made again, on what is left of all their groups at once,
 * and times of uses and of the step become what these take. Errors of coll_make, and WEFT_EVERIFY
 * for sends, name the first of those that cannot be made; the others are, but the step has no time.
 */
int workload_lose(const struct workload *w, struct workload_plan *plan, int light,
		  const struct workload_gap *gaps, size_t n, struct err *err);
/* The circuits of one rail of an op's group under a light, for the caller to free. */
int workload_group_topo(const struct workload *w, const struct workload_light *l, int op,
			struct topo **out, struct err *err);

/* The light as a digraph of all ranks, without its gaps, for the caller to free. */
int workload_light_topo(const struct workload *w, const struct workload_light *l,
			struct topo **out, struct err *err);

/* ---- files ---- */

/* The step and its plan but for the schedules, as JSON, appended; docs/steps.md has the fields. */
struct buf;
void workload_to_json(const struct workload *w, const struct workload_plan *plan, struct buf *out);
/* Reads it; name is what errors call the text. 0, or the code of the first of errs, which have
 * their places. The caller frees both values. O(len). */
struct err_list;
int workload_from_json(const char *name, const char *text, size_t len, struct workload **w,
		       struct workload_plan **plan, struct err_list *errs);

/*
 * Holds a plan with its schedules against the digraphs of its lights, of all ranks: no rank has
 * more circuits than ports; every schedule is replayed, is of a group of its collective, finds its
 * arcs in all of the groups at once, and takes the time that is stated; sends have their circuits;
 * changes and the time of a step add up; the certificate proves the bound of still light, and no
 * bound is above the time. WEFT_EVERIFY: what is not so. O(coll_verify + ranks x arcs of a group).
 */
int workload_check(const struct workload *w, const struct workload_plan *plan,
		   struct topo *const *lights, struct err *err);

/* "tp", "ep*edp", "pp+1": the axes of a share, appended. */
void workload_share_name(const struct workload *w, const struct workload_share *s, struct buf *out);

#endif
