/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that pack forests share. */
#ifndef WEFT_COLLECTIVE_TREE_PACK_PACK_PRIVATE_H
#define WEFT_COLLECTIVE_TREE_PACK_PACK_PRIVATE_H

#include "collective/tree/pack/pack.h"
#include "lib/graph/graph.h"

#define PACK_MAX_CAP (INT64_C(1) << 40)	/* of all arcs together */

/* The arcs of a digraph, and the roots of the trees, each of which has a shard. */
struct pack_net {
	int n, m;
	int ranks, holders;	/* terminals are nodes 0 .. ranks - 1, memories follow */
	struct graph_arc *arcs;	/* m, capacities in lowest terms; self-loops have 0 */
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
	int64_t *surplus;	/* n: zero; of capacity out of a node while balance is checked */
	struct arrays arrays;
};

/* WEFT_ELIMIT. pack_net_fini in any case. */
int pack_net_init(struct pack_net *net, const struct topo *t, enum coll_kind kind, int root,
		  struct err *err);
void pack_net_fini(struct pack_net *net);

/* T*, and for the share (0: the least that attains T*) and loss that are wanted what arcs may
 * pass. WEFT_EINFEASIBLE, WEFT_ELIMIT. pack_rate_fini in any case. */
int pack_rate_find(const struct pack_net *net, const struct coll_pack_options *opt,
		   struct pack_rate *rate, struct err *err);
void pack_rate_fini(struct pack_rate *rate);

/* An arc of the digraph, or a path of arcs: one path and then another. */
struct pack_arc {
	int32_t from, to;
	int64_t cap;		/* of which no other arc has taken anything */
	int32_t first, second;	/* in the list; -1: an arc of the digraph, of the same number */
};

struct pack_arcs {
	VEC(struct pack_arc) list;
};

/*
 * Arcs between terminals, with paths through switches, that take no more of the arcs than
 * rate->arcs says, and on which every terminal gets a share from every root; the list has others
 * as well. *attained false: none, since a switch has more capacity out than in. *arcs: to be
 * zeroed before, and its list freed also after an error. A least cut where all goes well, else
 * one for every pair of arcs in and out of a switch. WEFT_ELIMIT.
 */
int pack_split(const struct pack_net *net, const struct pack_rate *rate, struct pack_arcs *arcs,
	       bool *attained, struct err *err);

/* Arcs out of switches with more out than in keep equal parts of what they have, rounded down after
 * all were multiplied by a number, so that none has. */
void pack_balance(struct pack_net *net);

/* The forest's digraph of terminals and the routes of its arcs, from those that pack_split()
 * found. t: the physical one; back: as of topo_transpose(), where the arcs are those of the
 * transpose, else NULL. packed: as many as the forest's arcs, in the order of these, as
 * arborescences from the roots take them; malloc, also on error. WEFT_ELIMIT. */
int pack_logical(const struct topo *t, const struct pack_arcs *arcs, const int32_t *back,
		 struct coll_forest *out, struct graph_arc **packed, struct err *err);

/* The trees go over to out; number: of the forest's arc by that in the trees, NULL: the same. */
void pack_take_trees(struct graph_trees *trees, const int32_t *number, bool inwards,
		     struct coll_forest *out);

/* out->time: the fullest arc's load over its capacity and the share. O(nodes of all trees). */
void pack_measure(const struct topo *t, struct coll_forest *out);

#endif
