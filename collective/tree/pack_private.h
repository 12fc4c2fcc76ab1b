/* What the files that pack forests share. */
#ifndef WEFT_COLLECTIVE_TREE_PACK_PRIVATE_H
#define WEFT_COLLECTIVE_TREE_PACK_PRIVATE_H

#include "collective/tree/pack.h"
#include "lib/graph/graph.h"

/* The arcs of a digraph, and the roots of the trees, each of which has a shard. */
struct pack_net {
	int n, m;
	int ranks;		/* nodes 0 .. ranks - 1 are terminals */
	int64_t unit;		/* of capacities */
	struct graph_arc *arcs;	/* m, in units; self-loops have 0 */
	int n_roots;
	int32_t *roots;
	struct arrays arrays;
};

/* The best time that a number of units a shard allows: arcs pass cap units meanwhile. */
struct pack_rate {
	int64_t num, den;	/* T*: shards per unit of capacity */
	int64_t share;		/* units a shard */
	struct graph_arc *arcs;	/* m + n_roots: arcs with what they may pass, and arcs of `share`
				 * from node n, which feeds them all, to the roots */
	bool *side;		/* n: a set that took most of all */
	bool *least;		/* n + 1: that of the last least cut */
	struct arrays arrays;
};

/* WEFT_ELIMIT, WEFT_ENOMEM. pack_net_fini in any case. */
int pack_net_init(struct pack_net *net, const struct topo *t, enum coll_kind kind, int root,
		  struct err *err);
void pack_net_fini(struct pack_net *net);

/* T*, and for this share (0: the least that attains T*) what arcs may pass. WEFT_EINFEASIBLE,
 * WEFT_ELIMIT, WEFT_ENOMEM. pack_rate_fini in any case. */
int pack_rate_find(const struct pack_net *net, int64_t share, struct pack_rate *rate,
		   struct err *err);
void pack_rate_fini(struct pack_rate *rate);

#endif
