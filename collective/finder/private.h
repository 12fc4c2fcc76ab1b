/*
 * Bases that the finder searches for.
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
#include "lib/base/err.h"
#include "lib/base/rng.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

#define FINDER_CIRCULANT_MAX_PORTS 64	/* of a node */
#define FINDER_CIRCULANT_KEPT 4	/* found by one search */

struct finder_circulant {
	int n;
	bool both;		/* each offset also the other way; n/2 is its
				 * own reverse */
	int n_offsets;
	int offset[FINDER_CIRCULANT_MAX_PORTS];	/* ascending, 1..n-1; both:
						 * 1..n/2 */
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
 * *error: WEFT_ENOMEM or 0. O(sets * diameter * ports * n / 64).
 */
int finder_circulant_search(int n, int ports, bool both, struct finder_circulant *out, int *error);

/*
 * T_B, in M/B, of the all-gather by breadth-first broadcast (eq. (3) of
 * direct-connect-topologies; that of the reduce-scatter is the same, since
 * u -> -u turns all arcs round). WEFT_ENOMEM. O(n ports) beside a small
 * program a level.
 */
int finder_circulant_factor(const struct finder_circulant *c, struct bfb_ratio *factor,
		     struct err *err);

/* ---- Cayley graphs ---- */

#define FINDER_CAYLEY_MAX_PORTS 10	/* sets of arcs are gone through: 2^ports */

struct finder_group {
	struct topo_cayley_group g;
	int64_t score;
	int number;
};

struct finder_groups {
	struct finder_group *v;
	size_t n, cap;
};

/* Groups of n elements, of several forms; some hundreds at most. The cyclic one alone for many
 * n: primes, and products of primes p q where p does not divide q - 1. WEFT_ENOMEM.
 * Deterministic. */
int finder_list_groups(int n, struct rng *rng, struct finder_groups *out);

/* Whether a group of n elements need not be cyclic, or not even abelian; the lists above have
 * one that is not abelian whenever there is one. T. Szele, Comment. Math. Helv. 20 (1947);
 * L. E. Dickson, Trans. AMS 6 (1905). O(sqrt n). */
enum coll_groups finder_groups_of(int n);

struct finder_cayley {
	struct topo_cayley_group g;
	bool both;		/* generators and their inverses */
	int64_t letter[FINDER_CAYLEY_MAX_PORTS];	/* ascending */
	int n_letters;
	int steps;		/* of a phase; INT_MAX: nothing found */
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
 * 2..FINDER_CAYLEY_MAX_PORTS. Ends after max_visits lookups of a neighbour (some ns each).
 * Deterministic; every seed gives another sequence of sets. WEFT_ENOMEM.
 */
int finder_cayley_search(int n, int ports, enum finder_cayley_aim aim, int bound, uint64_t seed,
			 int64_t max_visits, struct finder_cayley *out, struct err *err);

/*
 * What breadth-first broadcast takes on the Cayley graph of these generators (`both`: and of
 * their inverses): *steps of a phase, and whether all-gathers and reduce-scatters meet the
 * bandwidth bound exactly (eq. (3) of direct-connect-topologies), with `lines` on the line graph
 * too. Letters may come from anywhere: WEFT_EINVAL for the identity, elements that are not of the
 * group, two that are equal or inverse to one another with `both`, more than
 * FINDER_CAYLEY_MAX_PORTS arcs of a node, or when they do not reach all nodes (in 32,766
 * steps). WEFT_ENOMEM.
 * O(n arcs + steps 2^arcs arcs).
 */
int finder_cayley_check(const struct topo_cayley_group *g, bool both, const int64_t *letters,
			int n_letters, bool lines, int *steps, bool *balanced, struct err *err);

#endif
