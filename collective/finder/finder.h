/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best digraphs to build for n nodes of d ports, with their schedules.
 *
 * A point is a digraph (an expression of topo_parse) with the steps and the
 * exact T_B of a breadth-first-broadcast schedule on it. The frontier holds
 * every point that no other known one beats in both.
 */
#ifndef WEFT_COLLECTIVE_FINDER_FINDER_H
#define WEFT_COLLECTIVE_FINDER_FINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/flow/flow.h"
#include "collective/make/make.h"
#include "collective/schedule/schedule.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"

struct coll_query {
	int n, degree;
	bool bidirectional;		/* every arc needs its reverse */
	enum coll_kind kind;	/* allgather, reduce-scatter, allreduce */
	int sets;		/* of generators that searches for Cayley graphs try; 0: what
				 * the table of weft has, COLL_FINDER_SETS for other sizes */
	uint64_t seed;		/* of the search: another one tries other sets */
};

#define COLL_FINDER_MAX_NODES TOPO_MAX_NODES
/* Moore's bound: the fewest steps in which what a node of d ports has reaches n nodes
 * (definition 11); both: every arc has its reverse, so that d - 1 lead on. 1 where it never
 * does. */
int coll_moore_steps(int64_t n, int64_t d, bool both);
/*
 * The same, or one more where it is proven that no digraph meets Moore's bound with so many nodes:
 * duplex, d >= 3, k >= 2, neither its order nor one less (Hoffman and Singleton 1960, Bannai and
 * Ito 1973, 1981, Damerell 1973, Erdos, Fajtlowicz and Hoffman 1980, Kurosawa and Tsujii 1981) but
 * for d = 3, 7 and perhaps 57 with k = 2, and of d = 3 to 7 what Elspas 1964, Buset 2000 and
 * Molodtsov 2006 found the largest to be; one way, d >= 2, k >= 2, not its order (Plesnik and Znam
 * 1974, Bridges and Toueg 1980), with k >= 3 of d = 2 none of the two below (Miller and Fris 1992,
 * Miller and Siran 2001), of d = 3 or k = 3, 4 not one less (Baskoro and others 2005, Conde and
 * others 2008, 2013).
 */
int coll_min_hops(int64_t n, int64_t d, bool both);
/* For one query, half a second to two of processor time; for each of a sweep. */
#define COLL_FINDER_SETS 20000
#define COLL_FINDER_SWEEP_SETS 500

/* A digraph and what its schedule takes; T_B = num / den in M/B, where B is of all ports that a
 * node has, also of those that stay dark. */
struct coll_point {
	char *expr;		/* owned */
	int steps;
	int64_t num, den;
	int ports;		/* that it uses; the others stay dark */
	bool exact;		/* computed on the digraph; else a theorem's
				 * value, which is never too small, or
				 * what the table says of a large one */
};

/* What groups there are of so many elements. Cayley graphs of abelian ones need about
 * n^(1/ports) steps, those of others can come near log n. */
enum coll_groups {
	COLL_GROUPS_ALL,	/* some that are not abelian */
	COLL_GROUPS_ABELIAN,	/* only abelian ones */
	COLL_GROUPS_CYCLIC,	/* the cyclic one alone: circulants */
};

struct coll_frontier {
	VEC(struct coll_point) points;	/* by steps, then T_B falls */
	int steps_bound;		/* coll_min_hops of n, d: for an all-reduce
					 * too, which need not be two
					 * phases */
	int64_t bound_num, bound_den;	/* of T_B */
	enum coll_groups groups;	/* of n elements: why there may be no fewer steps */
};

/*
 * All Pareto-efficient points known to weft for a query. Nodes of n - 1 ports or more are not
 * searched for: finder_add_parallel has them. Where nothing is known of so many ports, as
 * where n times the ports of both directions is odd, those of fewer serve. With `prove` every
 * point's digraph is built and its steps and T_B computed on it, so that a
 * schedule with these figures exists; without it the figures of expansions
 * are those of theorems 1, 10, 11, 12, 13 and corollary 10.1. WEFT_EINVAL for
 * n < 2 or degree < 1, WEFT_EUNSUPPORTED for other collectives,
 * WEFT_EINFEASIBLE when nothing is known. coll_frontier_fini also after an
 * error.
 */
int coll_find(const struct coll_query *q, bool prove, struct coll_frontier *out, struct err *err);
void coll_frontier_fini(struct coll_frontier *f);

/* What is proven of a frontier's point, of all digraphs of as many nodes and ports: that none takes
 * fewer steps (coll_min_hops), that none has less T_B by a breadth-first broadcast of so many
 * steps (the bandwidth bound; with d >= n - 1 also that of one or two steps). O(n^2). */
void coll_point_proven(const struct coll_query *q, const struct coll_frontier *f,
		       const struct coll_point *p, bool *steps, bool *bandwidth);

/* The same for many queries: a finder remembers what it built of smaller
 * sizes, and what it computed for the nodes and the collective asked for
 * last. One thread at a time; the answers do not depend on what was asked
 * before. */
struct coll_finder;
void coll_finder_new(struct coll_finder **out);
void coll_finder_free(struct coll_finder *f);
/* Sets for queries that say 0; at first COLL_FINDER_SETS. Below 0: Cayley graphs are not searched.
 * */
void coll_finder_set_default(struct coll_finder *f, int sets);
int coll_finder_run(struct coll_finder *f, const struct coll_query *q,
		    bool prove, struct coll_frontier *out, struct err *err);

/*
 * Tables of frontiers. weft has one in it (frontiers.txt), whose sizes are answered
 * without a search; lines are checked as they are read, and one that is not
 * true is passed over. coll_table_has: whether it has a query's size and degree.
 * coll_finder_set_table takes another text, which must stay. coll_finder_improve searches for one
 * size and degree (kind is not looked at), beginning from what the table has, and appends the line
 * that is as good or better. Errors as coll_finder_run.
 */
bool coll_table_has(const struct coll_query *q);
void coll_finder_set_table(struct coll_finder *f, const char *text, size_t len);
int coll_finder_improve(struct coll_finder *f, const struct coll_query *query, struct buf *line,
			struct err *err);

/*
 * coll_finder_run for n queries into out[n], on `threads` threads with a
 * finder each; queries of equal n side by side share most. A query for which
 * nothing is known leaves a frontier without points and is no error; of other
 * errors that of the first query is returned. coll_frontier_fini for all n,
 * also after an error. The same result with any number of threads.
 */
int coll_sweep(const struct coll_query *qs, size_t n, bool prove, int threads,
	       struct coll_frontier *out, struct err *err);

/* ---- for all-to-all ---- */

/*
 * The best digraphs to build for all-to-all among n nodes of d ports: by the
 * rate that a flow on them is proven to reach, against what no digraph of
 * that degree exceeds (all-to-all-mcf, section 4, Theorem 2).
 */
struct coll_flow_query {
	int n, degree;
	bool bidirectional;		/* every arc needs its reverse */
	struct mcf_options flow;	/* of each digraph */
	int most;		/* digraphs that are solved; 0: no limit */
	bool alike_only;	/* only those that a group makes alike are, in a moment */
};

/* A digraph and its flow; rates as in mcf.h. */
struct coll_flow_point {
	char *expr;		/* owned */
	int diameter;
	int64_t distance_sum;	/* over all pairs */
	bool alike;		/* a group that is known takes every node to every other */
	struct mcf_result flow;
	int steps;		/* coll_find_joint: of an all-reduce by breadth-first broadcast */
	int64_t num, den;	/* likewise its T_B, as in struct coll_point */
};

struct coll_flow_list {
	VEC(struct coll_flow_point) points;	/* the least congestion first */
	VEC(struct coll_flow_point) rest;	/* not solved, the least distances first */
	int considered;		/* digraphs of the size */
	double bound;		/* of the congestion of any digraph */
};

/*
 * Considers complete, complete bipartite and generalized Kautz graphs, tori,
 * hypercubes, random and shortest-path expanders of a few seeds, the
 * frontier of coll_find and a Cayley graph of few distances, and solves those whose distances
 * leave them a chance to be best, those of the least distances first. The result does not depend
 * on anything but the query, unless a time limit cuts. WEFT_EINVAL,
 * WEFT_ELIMIT (n n degree above COLL_FLOW_MOST), WEFT_EINFEASIBLE when
 * nothing is known. coll_flow_list_fini also after an error.
 */
#define COLL_FLOW_MOST (1 << 28)
int coll_find_flow(const struct coll_flow_query *q, struct coll_flow_list *out, struct err *err);
void coll_flow_list_fini(struct coll_flow_list *l);

/*
 * Digraphs for an all-reduce and an all-to-all at once: of those that coll_find_flow considers, and
 * whose steps and T_B are known or computed in a moment, all that no other beats in steps, T_B and
 * rate; rates count as equal within the gap of the flows. points: fewer steps first, then less
 * T_B; rest stays empty. Errors and effort of coll_find_flow and coll_find.
 */
int coll_find_joint(const struct coll_flow_query *q, struct coll_flow_list *out, struct err *err);

/* ---- topologies by time ---- */

/* What topologies are wanted for. */
struct coll_want {
	struct coll_query q;	/* any collective but scatter and gather */
	const struct coll_algorithm *algorithm;	/* as in struct coll_make_query */
	struct coll_cost cost;	/* link_bps: of one of the q.degree ports */
	/* All-to-all: as in struct coll_flow_query; 0: what follows. */
	struct mcf_options flow;
	int most;
};

/* Flows that are compared need a coarse gap only; one that hardly comes nearer is left. */
#define COLL_WANT_FLOWS 8
#define COLL_WANT_GAP 1e-3
#define COLL_WANT_PASSES 2000

/* A topology with the schedule that coll_make gives a job on it. */
struct coll_choice {
	const char *expr;
	const char *algorithm;
	int steps;
	int64_t num, den;	/* T_B in M/B of all ports that are asked for */
	int ports;		/* that it uses; the others stay dark */
	int64_t time_ns;
};

/*
 * The topologies for a want, the fastest first: what the finder's frontier holds (known, which
 * stays the caller's and lives as long; NULL: coll_find is asked), and complete, complete bipartite
 * graphs, hypercubes, rings and tori. Each is entered with a time that it cannot be below: a
 * frontier's exact figures, or distances and the bandwidth bound; only what may be next is looked
 * into further, by COLL_CHOICE_TRIES schedules for an answer at most. All-to-all: the digraphs of
 * coll_find_flow, solved or not, first those whose nodes a group makes alike; of large ones a
 * quarter as many.
 * Broadcast, reduce: the frontier of all-gathers, each timed by its packed trees from rank 0;
 * gather, scatter: the same by the schedules, made. Of equal times the one of fewer steps comes
 * first, then by length and text. Deterministic.
 *
 * Errors of coll_find and coll_find_flow, but for a size of which the finder knows nothing;
 * WEFT_EUNSUPPORTED for an algorithm by which topologies are not compared: but for all-to-all, any
 * other than bfb, or with a root trees or paths.
 */
#define COLL_CHOICE_TRIES 8
struct coll_choices;
int coll_choices_new(const struct coll_want *w, const struct coll_frontier *known,
		     struct coll_choices **out, struct err *err);
/* The next; expr lives as long as c. WEFT_ENOTFOUND after the last. */
int coll_choices_next(struct coll_choices *c, struct coll_choice *out, struct err *err);
/* The fastest of those that have their time already, instead of the next; makes nothing. False:
 * there is none. */
bool coll_choices_timed(struct coll_choices *c, struct coll_choice *out);
/* The schedule of what was given with this expr, made now if not before, or not since it was last
 * asked for. */
int coll_choices_make(struct coll_choices *c, const char *expr, struct coll_made *out,
		      struct err *err);
/* That of the want, where it is one of steps and T_B; NULL: all-to-all, roots, or the finder
 * knows nothing. */
const struct coll_frontier *coll_choices_frontier(const struct coll_choices *c);
void coll_choices_free(struct coll_choices *c);

/* A point of a frontier that is the fastest from so many bytes on. */
struct coll_range {
	size_t point;
	int64_t from_bytes;
};

/* By steps times (alpha + hop + message) and T_B times M/B on nodes of so many ports, exactly:
 * which point is the fastest for which size, ascending, the first from 0 bytes. out has
 * room for all points; left out are those of skip (NULL: none). Returns how many. O(points^2). */
size_t coll_ranges(const struct coll_frontier *f, const bool *skip, const struct coll_cost *cost,
		   int ports, struct coll_range *out);

#endif
