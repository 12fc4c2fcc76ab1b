/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates, the bases that the finder knows or searches for, and the table
 * of frontiers that weft has in it.
 *
 * Circulants of small diameter: digraphs on the numbers modulo n, with an arc
 * from every u to u + s for each offset s. They exist for every n; all nodes
 * are alike, so that one shows what breadth-first broadcast takes.
 */
#ifndef WEFT_COLLECTIVE_FINDER_PRIVATE_H
#define WEFT_COLLECTIVE_FINDER_PRIVATE_H

#include <stdbool.h>

#include "collective/bfb/balance.h"
#include "collective/finder/finder.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/number/rng.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

#define FINDER_MAX_EXPR 1024
/* Flows of a source on an arc up to which shortest-path expanders are formed for an all-to-all, and
 * flows solved only to choose by: more take seconds, and hardly gain. */
#define FINDER_MANY_FLOWS (1 << 21)

/* A digraph that may serve. Loads are those of one all-gather and one
 * reduce-scatter, in M/B. */
struct finder_candidate {
	char expr[FINDER_MAX_EXPR];
	int steps;		/* of one phase */
	struct bfb_ratio gather, scatter;
	bool exact;
	bool believed;		/* a table says so; computing it takes more than a moment */
	int ports;		/* of those asked for that it uses; 0: all. Loads are of all */
};

struct finder_candidates {
	VEC(struct finder_candidate) list;
};

struct coll_finder {
	const struct coll_query *q;
	bool all_kinds;		/* what is best for any collective is kept, not for q's alone */
	int below;		/* steps at the bandwidth bound that are known for q already */
	int sets;		/* for queries that do not say how many */
	const char *table;	/* frontiers, see finder_table_read */
	size_t table_len;
	struct u64map known;	/* n, d, bidirectional -> index into optimal */
	VEC(struct finder_candidates) optimal;
	VEC(struct finder_candidate) computed;	/* those of the nodes asked for last */
	int computed_n;
	struct err *err;
};

/* ---- candidates ---- */

/* In lowest terms; the sum. */
struct bfb_ratio finder_ratio(__int128 num, __int128 den);
struct bfb_ratio finder_plus(struct bfb_ratio a, struct bfb_ratio b);
/* T_B of the collective that is asked for. */
struct bfb_ratio finder_worth(const struct coll_finder *f, const struct finder_candidate *c);
/* a makes b superfluous; equals do not. */
bool finder_beats(const struct coll_finder *f, const struct finder_candidate *a,
		  const struct finder_candidate *b);
/* Adds c unless beaten or one of too many equals; drops what it beats, but nothing exact for
 * what is only promised. O(candidates). */
void finder_keep(struct coll_finder *f, struct finder_candidates *set,
		 const struct finder_candidate *c);
/* Writes an expression; one that is too long is no candidate (false). */
bool finder_name(struct finder_candidate *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* One without a name, of n nodes, that meets the bandwidth bound in so many steps. */
struct finder_candidate finder_at_bound(int64_t n, int steps);
/* The flow of one digraph into p->flow. Errors of mcf_run. */
int finder_solve(const struct coll_flow_query *q, struct coll_flow_point *p, struct err *err);
/* Orbits of nodes times arcs, each of which some ns are spent on to compute figures. O(m). */
int64_t finder_effort(const struct topo *t);
/* Fills the figures of c->expr by building it. A digraph that equals its own
 * reverse, as far as is known without search, is computed once. Errors as topo_parse and
 * coll_bfb_factor; WEFT_ELIMIT for one that would take too long. */
int finder_compute(struct coll_finder *f, struct finder_candidate *c);

/* The fastest digraphs of n nodes and d ports that are known to be bandwidth-optimal, made once
 * each. *index may be looked up in f->optimal until the next call. */
void finder_optimal_set(struct coll_finder *f, int n, int d, bool both, size_t *index);

/* Of a digraph that uses so many of `all` ports: its loads, so far of its own, become those of
 * all. */
void finder_use_ports(struct finder_candidate *c, int ports, int all);
/*
 * The digraphs of n nodes that have as many ports as others or more, d >= n - 1: those of fewer
 * ports, every arc as often as there is room for it. One step cannot take less than K(n) so, as
 * one of n - 1 others gets d / (n - 1) arcs at most: what is left over stays dark. From 64 nodes
 * on K(n) alone.
 */
void finder_add_parallel(struct coll_finder *f, struct finder_candidates *set, int n, int d,
		      bool both);
/* Whether no breadth-first broadcast of so many steps a phase, on any digraph of n nodes and d
 * ports, has less T_B: at the bandwidth bound, which is higher where some node has a port less as
 * their sum both ways is even, and with d >= n - 1 at that of one or two steps. O(n^2). */
bool finder_is_min(int n, int d, bool both, int steps, struct bfb_ratio phase);
/* Circulants of small diameter that nothing in the set beats. */
void finder_add_circulants(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			   bool both);

/* ---- the table ---- */

/*
 * What a table has of n nodes and d ports: kept in `set`. A table is a text, a line a size,
 * in ascending order of n, then d, then one way before both:
 *
 *   1000 4 one 5 337/250 = GenKautz(4,1000) 6 . = DiCay(...)
 *
 * that is steps of a phase, T_B of the all-gather (. for the bandwidth bound), of the
 * reduce-scatter (= for the same) and the digraph, as often as there are points. False when the
 * line is not there, or not true as far as a moment's computation shows: then the set is as before.
 * O(log lines) and the check.
 */
bool finder_table_read(struct coll_finder *f, int n, int d, bool both,
		       struct finder_candidates *set);
/* The text of table.c. */
const char *finder_table_shipped(size_t *len);
/* A line of a table, appended. */
void finder_table_write(int n, int d, bool both, const struct finder_candidates *set,
			struct buf *out);

#define FINDER_CIRCULANT_MAX_PORTS 64	/* of a node */
#define FINDER_CIRCULANT_KEPT 4	/* found by one search */

struct finder_circulant {
	int n;
	bool both;		/* each offset also the other way; n/2 is its
				 * own reverse */
	int n_offsets;
	int offset[FINDER_CIRCULANT_MAX_PORTS];	/* ascending, 1..n-1; both: 1..n/2; equal
						 * ones are parallel arcs */
	int steps;		/* the diameter */
	int64_t distances;	/* sum from one node to all */
};

/*
 * Looks for sets of offsets, with `ports` arcs out of a node, of least
 * diameter and then distance: powers of numbers (also modulo n, which for
 * roots of one makes all arcs alike), neighbours, random ones, and the best
 * of them changed one offset at a time; a few hundred sets in all. Best first
 * into out[FINDER_CIRCULANT_KEPT], returns how many: none when there are no such
 * sets or ports are more than FINDER_CIRCULANT_MAX_PORTS. Deterministic.
 * O(sets * diameter * ports * n / 64).
 */
int finder_circulant_search(int n, int ports, bool both, struct finder_circulant *out);

/*
 * T_B, in M/B, of the all-gather by breadth-first broadcast (eq. (3) of
 * direct-connect-topologies; that of the reduce-scatter is the same, since
 * u -> -u turns all arcs round), of a circulant whose offsets reach all nodes; c->steps are set.
 * O(n ports) beside a small program a level.
 */
struct bfb_ratio finder_circulant_factor(struct finder_circulant *c);
/* Names it, as DiC(n,{1,2}) or C(n,{1,2}); false: too long. */
bool finder_name_circulant(struct finder_candidate *k, const struct finder_circulant *c);

/* ---- Cayley graphs ---- */

#define FINDER_CAYLEY_MAX_PORTS 16
#define FINDER_BALANCED_MAX_PORTS 12	/* where sets of arcs are gone through: 2^ports */

struct finder_group {
	struct topo_cayley_group g;
	int64_t score;
};

struct finder_groups {
	struct finder_group *v;
	size_t n, cap;
	int32_t *order;		/* of all: as the list has them, for the caller to change */
};

/* Groups of n elements, of several forms; some hundreds at most. The cyclic one alone for many
 * n: primes, and products of primes p q where p does not divide q - 1.
 * Deterministic. */
void finder_list_groups(int n, struct rng *rng, struct finder_groups *out);
/* Also after an error. */
void finder_groups_fini(struct finder_groups *groups);

/* Adds groups of permutations with n elements, some tens at most: those of finder_list_groups
 * that are neither products of cyclic groups nor of vectors by a cyclic one.
 * Deterministic. */
void finder_add_permutations(int n, struct rng *rng, struct finder_groups *out);

/* Adds the groups of n elements that do not commute, as far as the table of small groups has them
 * (small_groups.c); false: none of that order, or a sample. O(bytes of the table). */
bool finder_add_small(int n, struct finder_groups *out);

/* Whether a group of n elements need not be cyclic, or not even abelian; the lists above have
 * one that is not abelian whenever there is one. T. Szele, Comment. Math. Helv. 20 (1947);
 * L. E. Dickson, Trans. AMS 6 (1905). O(sqrt n). */
enum coll_groups finder_groups_of(int n);

/* Levels of a Cayley graph of n nodes, at most TOPO_MAX_NODES, and d generators, from the
 * identity. */
struct finder_levels {
	int n, d;
	bool both;		/* inverses are among the generators */
	const uint16_t *next[FINDER_CAYLEY_MAX_PORTS];	/* by generator: u times it */
	const uint16_t *back[FINDER_CAYLEY_MAX_PORTS];	/* u times its inverse */
	uint16_t *level, *queue;
	int32_t *start;		/* of each level in the queue; and the end of the last */
	int32_t *count;		/* of a level: nodes by set of letters */
	int deepest;		/* level that was reached */
	int64_t visits;		/* lookups so far */
};

/* Makes room; next and back are the caller's to set. O(n + 2^d). */
void finder_levels_room(struct finder_levels *l, int n, int d, bool both, struct arrays *arrays);
/* Breadth first to a depth, of the inverse generators where asked; returns the nodes reached,
 * early where they cannot become `least`. O(n d). */
int finder_levels_reach(struct finder_levels *l, bool inverse, int depth, int least);
/* How far the levels of all nodes, which were reached before, are from balance for all-gathers
 * and then for reduce-scatters (with `lines` in the line graph too), in nodes times d: 0 is the
 * bandwidth bound, exactly (eq. (3) of direct-connect-topologies). O(n d + levels 2^d d). */
int64_t finder_levels_imbalance(struct finder_levels *l, bool lines);

struct finder_cayley {
	struct topo_cayley_group g;
	bool both;		/* generators and their inverses */
	int64_t letter[FINDER_CAYLEY_MAX_PORTS];	/* ascending */
	int n_letters;
	int steps;		/* of a phase; INT_MAX: nothing found */
	int64_t distances;	/* sum from a node to all; INT64_MAX: nothing found */
	int64_t excess;		/* of loads above the bound, as finder_levels_imbalance has it */
};

enum finder_cayley_aim {
	FINDER_CAYLEY_ONE_WAY,
	FINDER_CAYLEY_BOTH,	/* with inverses */
	FINDER_CAYLEY_LINES,	/* one way, and so that its line graph meets the bound too */
};

/*
 * Looks for a Cayley graph of n nodes and so many ports, of which breadth-first broadcast
 * meets the bandwidth bound in all-gathers and reduce-scatters, in as few steps as possible; none
 * takes fewer than `bound`. out->steps tells what is to be beaten, INT_MAX: nothing; *out is left
 * as it is when nothing of fewer steps is found, or ports are not in
 * 2..FINDER_BALANCED_MAX_PORTS. *near: with inverses the one of the fewest steps that was met, and
 * then of the least excess, where these are fewer than near->steps. Ends after max_visits lookups
 * of a neighbour (some ns each). Deterministic; every seed gives another sequence of sets.
 */
void finder_cayley_search(int n, int ports, enum finder_cayley_aim aim, int bound, uint64_t seed,
			  int64_t max_visits, struct finder_cayley *out,
			  struct finder_cayley *near);

/*
 * The same for the least sum of distances, from which the rate of an all-to-all follows where all
 * nodes are alike; `bound` are Moore's steps, ports 2..FINDER_CAYLEY_MAX_PORTS. Into
 * out[FINDER_NEAR_KEPT] the best by distances, each of another climb, as graphs of equal sums
 * differ in how evenly arcs are used; what is not below the distances there leaves it as it is.
 */
#define FINDER_NEAR_KEPT 4
void finder_cayley_near(int n, int ports, bool both, int bound, int64_t max_visits,
			struct finder_cayley *out);

/* ---- families ---- */

#define FINDER_FAMILY_EXPR 192

struct finder_family {
	char expr[FINDER_FAMILY_EXPR];
	int ports;	/* of its nodes, the most */
	int diameter;	/* of K(1,n) what it is from the first node */
};

struct finder_families {
	VEC(struct finder_family) list;
};

/* The q of SlimFly(q) with n nodes, and its ports; 0: there is none. O(sqrt n). */
int finder_slim_fly(int n, int *ports);
/* The q of Polarity(q) of n nodes, of q + 1 ports; 0: there is none. */
int finder_polarity(int n);

/* SlimFly, complete and complete bipartite graphs, hypercubes, rings (one way unless `both`) and
 * all tori of n nodes and at most so many ports; nothing is built. Deterministic. */
void finder_list_families(int n, int degree, bool both, struct finder_families *out);

#endif
