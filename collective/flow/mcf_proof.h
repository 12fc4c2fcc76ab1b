/*
 * An optimum of the all-to-all flow as exact numbers: a flow that is
 * feasible at congestion U and prices that prove that no flow is below U,
 * equal as fractions. Who distrusts the solver needs to trust the checker
 * only, which shares nothing with it.
 */
#ifndef WEFT_COLLECTIVE_FLOW_MCF_PROOF_H
#define WEFT_COLLECTIVE_FLOW_MCF_PROOF_H

#include <gmp.h>

#include "collective/flow/mcf.h"

/* Flow of a source on an arc, in units of 1 / flow_den. */
struct mcf_proof_flow {
	int32_t arc;
	mpz_t amount;
};

struct mcf_proof {
	mpq_t congestion;	/* U = 1 / F */
	int n;			/* nodes */
	int n_gens;		/* automorphisms that were used */
	int32_t **gens;		/* each n images */
	int m;			/* arcs, parallel ones as one, no loops */
	int32_t *tail, *head;
	mpz_t *price;		/* m, equal on an orbit of arcs */
	int n_sources;		/* one an orbit of terminals */
	int32_t *source;
	int64_t *first;		/* n_sources + 1, in flow */
	struct mcf_proof_flow *flow;
	mpz_t flow_den;
};

void mcf_proof_free(struct mcf_proof *proof);

/*
 * Goes on from where p stands until an optimum is found whose two sides are
 * equal as fractions: passes to a smaller and smaller gap show which arcs
 * are used and which are full, an exact solution of the equations that this
 * implies follows, and mcf_proof_check decides. *out is NULL, without error,
 * when a limit, a cancel or the accuracy of doubles came first; res is
 * then what mcf_run would say.
 */
int mcf_exact(struct mcf *p, const struct topo *t,
	      const struct mcf_options *opt, struct mcf_result *res,
	      struct mcf_proof **out, struct err *err);

/*
 * Checks a proof against the digraph, in integers: that the generators are
 * automorphisms, that every source of an orbit's representative sends one
 * unit to each other terminal without loss, that the loads, averaged over
 * the group, keep to U times capacity, and that distances in the prices prove
 * U from below (linear programming duality: sum of distances over all pairs
 * over sum of capacity times price). WEFT_EVERIFY names what is wrong. O(sources n m) at worst.
 */
int mcf_proof_check(const struct topo *t, const struct mcf_proof *proof,
		    struct err *err);

#endif
