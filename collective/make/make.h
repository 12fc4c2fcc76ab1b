/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best schedule for a collective on a digraph, of all that weft can make: one list for the
 * command line and for jobs.
 *
 * Synthesisers offer what they make one after the other. Each offer is embedded in a fabric where
 * there is one, replayed and timed, and the better one stays: by time in the alpha-beta model where
 * a cost is given, else by T_B and then by steps; but what trees of all ranks, whose T_B falls with
 * the steps towards a limit, are compared with by T_B and steps together, where COLL_STEPS_WORTH of
 * them are worth the bound of T_B. All-to-alls, whose T_B comes out of rounding, count as equal up
 * to what rounding to chunks and to steps may lose, and then by steps. Work is limited by counts of
 * transfers and passes and not by time, so that the result is the same anywhere.
 */
#ifndef WEFT_COLLECTIVE_MAKE_MAKE_H
#define WEFT_COLLECTIVE_MAKE_MAKE_H

#include "collective/embedding/embedding.h"
#include "collective/flow/flow.h"
#include "collective/schedule/schedule.h"
#include "collective/torus/torus.h"
#include "collective/tree/tree.h"

/* An earlier flow to go on from, and the digraph that it was for with the arcs marked that are
 * gone. */
struct coll_flow_before {
	const struct mcf *flow;		/* NULL: from nothing */
	const struct topo *topo;
	const bool *dropped;
};

/* ---- the algorithms ---- */

#define COLL_KIND_BIT(kind) (1u << (kind))

/* Numbers of coll_options. */
enum coll_option_number {
	COLL_ROOT, COLL_BATCHES, COLL_TREE_BATCHES, COLL_CHUNKS, COLL_EXTRA_STEPS, COLL_LEAST_COST,
	COLL_LEVELS, COLL_ROUNDS, COLL_PORTS, COLL_GAP, COLL_LOSS, COLL_TIME_LIMIT, COLL_STEPS,
	COLL_EXACT, COLL_DEMANDS, COLL_RATE, COLL_HOST_BANDWIDTH, COLL_NIC_FORWARDS, COLL_NO_MERGE,
	COLL_OPTIONS
};

#define COLL_OPTION_BIT(number) (1u << (number))

/* How the value of an option is written, and what it is in the query. */
enum coll_option_type {
	COLL_OPTION_INT,	/* a whole number: int */
	COLL_OPTION_SHARE,	/* "0.001", "0.1%": double */
	COLL_OPTION_DEADLINE,	/* "1min": struct deadline, so long from when it is read */
	COLL_OPTION_WORD,	/* one of words: int, the first is 1 */
	COLL_OPTION_TEXT,	/* const char * */
	COLL_OPTION_FLAG,	/* bool */
	COLL_OPTION_OTHER,	/* no field of the query */
};

/* What an algorithm may be told, a row of a table. */
struct coll_option {
	const char *name;	/* "extra-steps" */
	unsigned kinds;		/* COLL_KIND_BIT of the collectives for which it means something */
	enum coll_option_type type;
	bool with_auto;		/* it may be given without an algorithm, */
	bool selects;		/* and is then for the one that takes it */
	int64_t min, max;	/* of whole numbers; max 0: ranks less one */
	const char *words;	/* apart by blanks */
	size_t offset;		/* in struct coll_make_query */
};

extern const struct coll_option coll_options[COLL_OPTIONS];

/* A time without its schedule. */
struct coll_prediction {
	int steps;
	int64_t num, den;	/* T_B in M/B of so many ports; den 0: only the time is known */
	int ports;
	double time_ns;		/* with a cost, else 0; but for latencies of arcs and rounding */
};

/* What is varied where steps are weighed against T_B (coll_make_pareto). */
enum coll_vary {
	COLL_VARY_NONE, COLL_VARY_BATCHES, COLL_VARY_TREE_BATCHES, COLL_VARY_STEPS_WORTH,
	COLL_VARY_EXTRA_STEPS, COLL_VARY_SIZE,
};

/* The schedules of other algorithms that one is made of. */
enum coll_made_of {
	COLL_OF_NONE,
	COLL_OF_GROUPS,		/* all-gathers inside groups of ranks and between them */
	COLL_OF_WHOLE,		/* what is left of one without a root */
};

struct coll_make_query;
struct coll_made;

/* A way to make schedules, a row of the table that the command line, fabric files and plans
 * read. A name has one row for a collective. */
struct coll_algorithm {
	const char *name;
	unsigned kinds;		/* COLL_KIND_BIT */
	unsigned options;	/* COLL_OPTION_BIT */
	bool needs_expression;	/* coll_make_query.expr; "auto" does not try it without */
	bool by_name_only;	/* "auto" does not try it */
	bool chooses_steps;	/* by what a step is worth: T_B falls with them */
	enum coll_vary vary;
	enum mcf_form form;	/* of an all-to-all */
	enum mcf_paths paths;	/* likewise */
	const struct torus_spec *torus;		/* on the digits of ranks' numbers, so that ranks
						 * forward where partners are no neighbours;
						 * NULL: not so */
	enum coll_made_of made_of;
	/* Makes schedules and offers them, or nothing where "auto" had better not; NULL where
	 * it is made of others (best.c). */
	int (*run)(const struct coll_make_query *q, const struct coll_algorithm *self,
		   struct coll_made *best, struct err *err);
	/* For a query by its name; NULL: nothing is known before it is made. Errors of what it
	 * asks: coll_bfb_factor, coll_tree_figures, torus_choose and torus_time. */
	int (*predict)(const struct coll_make_query *q, struct coll_prediction *out,
		       struct err *err);
};

/* The i-th row; NULL: there are no more. */
const struct coll_algorithm *coll_algorithm(int i);

/* That of this name for a collective; NULL: none, as for "auto". */
const struct coll_algorithm *coll_algorithm_find(const char *name, enum coll_kind kind);

/* The i-th of all names, none twice; NULL: there are no more. */
const char *coll_algorithm_name(int i);

/* Whether there is such an algorithm for any collective. */
bool coll_algorithm_exists(const char *name);

/* The row of the option of this name that the algorithm takes for a collective, where the
 * algorithm is NULL ("auto") what all of the list take together; NULL: none. */
const struct coll_option *coll_option_taken(const char *name, enum coll_kind kind,
					    const struct coll_algorithm *algorithm);

/* The only algorithm for the collective that takes an option; NULL: several do, or none. */
const struct coll_algorithm *coll_option_owner(const char *name, enum coll_kind kind);

/* What the option of this name is for, and not for the collective or the algorithm at hand:
 * "is for --algorithm late and auto", "is not for gather and scatter". Appended. */
void coll_option_explain(const char *name, enum coll_kind kind, struct buf *out);

/* ---- what is asked for ---- */

#define COLL_STEPS_WORTH 1000

/* How an all-to-all is made. */
struct coll_make_pairs {
	struct mcf_options flow;
	double loss;		/* of rate, to chunks and again to steps */
	int steps;		/* of "tsmcf"; 0: chosen */
	const struct flow_demands *demands;	/* NULL: all pairs send alike */
	struct coll_flow_before before;
};

/* What is fixed of an algorithm on coordinates (collective/torus/torus.h). */
enum coll_make_ports { COLL_USUAL_PORTS, COLL_ONE_PORT, COLL_ALL_PORTS };

struct coll_make_torus {
	const char *levels;	/* of "mixed-radix"; NULL: those of the least time */
	bool has_rounds;
	int rounds;		/* of reduce-scatter before exchanges, where they are told */
	enum coll_make_ports ports;
};

struct coll_make_query {
	enum coll_kind kind;
	const struct coll_algorithm *algorithm;	/* for kind; NULL: all that are worth it ("auto") */
	const struct topo *topo;	/* the caller's */
	const char *expr;	/* of topo, for the constructions of expansions; NULL: none */
	int root;		/* of collectives that have one */
	const struct coll_cost *cost;	/* for the least time; NULL: least T_B, then steps */
	bool steps_first;	/* the cost is one of which a step is worth more than any T_B */
	const struct coll_fabric *fabric;	/* to be embedded in; NULL: arcs are links */
	const struct topo *physical;	/* that of the fabric, where topo is what its terminals see
					 * and not a choice: trees are made on it. NULL: is not so
					 * */
	const int32_t *groups;	/* of each rank, from 0: ranks that are joined inside, as in a
				 * server; NULL: those of the widest arcs that join equal ones */
	bool links_only;	/* ranks pass on nothing: no schedule is taken whose messages go
				 * through other ranks */
	bool min_cost;		/* "trees": those of least cost at the best rate
				 * (coll_rate_forest) */
	bool no_merge;		/* "one-shot" with each vector by itself */
	int chunks;		/* a shard, of "bfb"; 0: as many as needed */
	bool fewest_chunks;	/* "late" is solved exactly on small digraphs also with a cost */
	int batches;		/* 1: whole; 0: whole without a cost, else in those that take the
				 * least time */
	int steps_worth;	/* by trees of all ranks, without a cost: so many are worth the
				 * bound of T_B; 0: COLL_STEPS_WORTH */
	int extra_steps;	/* by late takers, at most; below 0: none without a cost, else
				 * few */
	int64_t max_transfers;	/* beyond which "auto" looks for no late takers and takes no more
				 * batches, all counted that a compact schedule stands for; 0: only
				 * those that are kept are limited */
	struct coll_make_pairs pairs;
	struct coll_make_torus torus;
};

/* What an all-to-all was made from. */
struct coll_made_pairs {
	struct mcf_sched_info info;	/* but for "tsmcf", of which it has the flow */
	struct mcf_steps_info steps;	/* of "tsmcf" */
	bool stepped;		/* steps is filled */
	double min_factor;	/* the least T_B of all that were tried */
};

/* What an algorithm on coordinates came to. */
struct coll_made_torus {
	bool is_made;
	int rounds;		/* of reduce-scatter before exchanges; below 0: no exchange */
	char levels[160];	/* of "mixed-radix", else "" */
};

/* A schedule and what it takes. Zeroed is empty; coll_made_fini. */
struct coll_made {
	struct coll_sched *sched;	/* verified */
	struct coll_sched *logical;	/* sched before it was embedded; NULL: it is not */
	bool is_physical;		/* it was made on the physical digraph */
	const struct coll_algorithm *algorithm;
	int batches;
	struct coll_report report;	/* of sched; the bound of an all-to-all is its flow's where
					 * that is higher */
	int64_t time_ns, bound_ns;	/* of coll_time, with a cost */
	int64_t bfb_bound_ns;	/* of coll_bfb_timed, where latencies differ; else 0 */
	struct coll_tree_info tree;	/* of "trees": of a collective without a root
					 * only their number, depth, batches and steps */
	double tree_limit;	/* of these: T_B in M/B that more and more batches come near to */
	struct coll_made_pairs pairs;	/* of an all-to-all */
	struct coll_made_torus torus;
	struct mcf *flow;	/* of an all-to-all, to go on from; NULL: none */
};

/*
 * The best schedule for the query: by one algorithm, or by all of the list that are for the
 * collective. Where batches that overlap are asked for, breadth-first broadcast and its relatives
 * are offered in these, or in fewer that gain as much, and else whole; in a fabric in the fastest
 * number, too.
 *
 * WEFT_EUNSUPPORTED for an algorithm that is not for the collective, and where messages would go
 * through ranks that pass on none (links_only). Of an algorithm, the errors of what
 * makes it: coll_bfb_cut, coll_late, coll_expand, coll_tree_make, mcf_schedule, mcf_steps; "auto"
 * passes over constructions that a digraph does not have, and what is too large for late takers.
 * Errors of coll_embed_in. *out is empty after an error.
 */
int coll_make(const struct coll_make_query *q, struct coll_made *out, struct err *err);
void coll_made_fini(struct coll_made *m);

/* An all-to-all's bound becomes that of a flow on its digraph where that is more, and is found
 * with little work, as coll_make has it; of others it stays what coll_verify said. */
void coll_raise_bound(const struct coll_sched *s, struct coll_report *r);

/* The time that the fastest algorithm on coordinates takes (torus_choose), without its schedule and
 * but for rounding: what "auto" has beside the others. q has a cost. WEFT_EUNSUPPORTED: none. */
int coll_make_torus_time(const struct coll_make_query *q, double *time_ns, struct err *err);
/* Its schedule, as coll_make has it. */
int coll_make_torus(const struct coll_make_query *q, struct coll_made *out, struct err *err);

/* Likewise of "one-shot" between neighbours with its sums merged, in as many steps as the digraph
 * is wide or some more: HUGE_VAL where it is not below below_ns (0: any time is). WEFT_EUNSUPPORTED
 * where some nodes are no ranks, WEFT_ELIMIT where it is not made of so many. O(nodes arcs) for
 * each plan that is tried. */
int coll_make_sums_time(const struct coll_make_query *q, double below_ns, double *time_ns,
			struct err *err);
/* What that is not below, in O(arcs degree). */
int coll_make_sums_min(const struct coll_make_query *q, double *time_ns, struct err *err);

/* A schedule that is known: no other has as few steps, with a cost as little latency, and as small
 * a T_B. */
struct coll_pareto_point {
	const struct coll_algorithm *algorithm;
	int batches, steps, chunks;
	int64_t transfers;
	int64_t num, den;	/* T_B in M/B */
	int64_t time_ns;	/* with a cost, else 0 */
	int64_t latency_ns;	/* likewise, of no bytes */
	int64_t from_bytes;	/* likewise, from which it is the fastest; -1: for none */
};

struct coll_pareto {
	VEC(struct coll_pareto_point) points;	/* ascending steps or latency, T_B
							 * falls */
	int64_t bound_num, bound_den;	/* of T_B */
	int ports;		/* of the schedules: B is so many links */
};

/* All of the list for the query's collective, with a few numbers of batches and of steps:
 * algorithm, batches, extra_steps and steps_worth are not looked at, and the cost only times.
 * coll_pareto_fini, also after an error. WEFT_EUNSUPPORTED for all-to-all, WEFT_EINFEASIBLE where
 * nothing can be made. O(20 schedules). */
int coll_make_pareto(const struct coll_make_query *q, struct coll_pareto *out, struct err *err);
void coll_pareto_fini(struct coll_pareto *p);

/* The query of a job on a digraph: by time, from rank 0, late takers in no extra steps, up to
 * COLL_MAKE_TRANSFERS transfers. Batches with "auto" only, and none where steps cost nothing, as
 * more would always be better. cost stays the caller's. */
#define COLL_MAKE_TRANSFERS (1 << 18)
struct coll_make_query coll_make_job(enum coll_kind kind,
				     const struct coll_algorithm *algorithm,
				     const struct topo *topo, const struct coll_cost *cost);

#endif
