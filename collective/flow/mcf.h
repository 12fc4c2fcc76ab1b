/*
 * All-to-all as a multicommodity flow: every terminal sends one unit to
 * every other, and the largest use of an arc relative to its capacity, the
 * congestion U, is to be as small as possible (all-to-all-mcf, section 3.1,
 * eqs 6-9 with the rate F = 1 / U).
 *
 * The flows of one source to all its sinks are kept together. An augmented
 * Lagrangian prices the arcs; each pass visits the sources and moves flow
 * from dear detours to the tree of cheapest paths by exact Newton steps.
 * Every pass gives both sides of a certificate: the flow at hand is feasible
 * at its congestion, and the prices y as arc lengths prove that no flow is
 * below (sum of distances over all pairs) / (sum of capacity times y).
 *
 * Symmetry: one source per orbit of the automorphism group is solved, its
 * loads averaged over the orbits of arcs. Parallel arcs act as one of their
 * summed capacity, self-loops carry nothing. Switches and memories have no
 * demand of their own and forward only.
 */
#ifndef WEFT_COLLECTIVE_FLOW_MCF_H
#define WEFT_COLLECTIVE_FLOW_MCF_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "topology/topology.h"

struct mcf;

struct mcf_options {
	double gap;		/* stop at U / bound - 1 <= gap */
	double time_limit_s;	/* 0: none */
	int max_passes;		/* 0: MCF_MAX_PASSES */
	const volatile bool *cancel;	/* NULL, or stop when true */
	bool (*is_over)(void *arg);	/* NULL, or a deadline of the caller's:
					 * as the time limit when true */
	void *arg;
};

#define MCF_MAX_PASSES 20000
#define MCF_DEFAULT_GAP 1e-4

enum mcf_stop {
	MCF_REACHED,		/* the gap asked for */
	MCF_TIME, MCF_CANCELED, MCF_PASSES,
};

/* Of the best flow and the best prices so far; both are exact up to the
 * rounding of doubles. */
struct mcf_result {
	double congestion;	/* U of a feasible flow: F >= 1 / congestion */
	double bound;		/* no flow is below: F <= 1 / bound */
	double gap;		/* congestion / bound - 1 */
	int passes;
	enum mcf_stop stop;
};

/* The problem on a frozen digraph, of which a copy is taken. symmetry: look
 * for automorphisms (nauty) and solve one source per orbit. WEFT_EINVAL
 * (fewer than two terminals), WEFT_EINFEASIBLE names a pair without a path,
 * WEFT_ENOMEM. Memory: 8 m + 8 n bytes a source that is solved. */
int mcf_new(const struct topo *t, bool symmetry, struct mcf **out,
	    struct err *err);
void mcf_free(struct mcf *p);

/* Runs passes until an option says stop; may be called again and goes on
 * from where it stands. A limit or cancel is no error: res says which.
 * Deterministic but for where a time limit cuts. A pass costs O(sources
 * (n + m) + flow moved times path length). */
int mcf_run(struct mcf *p, const struct mcf_options *opt,
	    struct mcf_result *res, struct err *err);

/* The problem of the same digraph t without the arcs that are marked
 * (topo_m(t) flags), with the flow and the prices of p as a warm start;
 * symmetry is given up. WEFT_EINFEASIBLE names a pair that is cut off. p is
 * left as it is. O(sources m degree) besides moving the flow. */
int mcf_without(const struct mcf *p, const struct topo *t, const bool *dropped,
		struct mcf **out, struct err *err);

/* Sources that are solved, of mcf_terminals() that send. O(1). */
int mcf_sources(const struct mcf *p);
int mcf_terminals(const struct mcf *p);

/* Theorem 2 of the paper: no digraph of n nodes and degree d has a
 * congestion below sum of depths of the full d-ary tree over d. Where every
 * arc has its reverse, only d - 1 arcs of a node lead on. */
double mcf_degree_bound(int n, int d);
double mcf_edge_bound(int n, int d);

#endif
