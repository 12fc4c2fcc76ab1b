/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of collective/cost share: the digraph that is searched, and its columns. */
#ifndef WEFT_COLLECTIVE_COST_PRIVATE_H
#define WEFT_COLLECTIVE_COST_PRIVATE_H

#include "collective/cost/cost.h"
#include "lib/graph/graph.h"

/* Alike arcs or shared limits: one row of the program. */
struct cost_row {
	int32_t arc, limit;	/* of t: the first of them; the other is -1 */
	int64_t alike;		/* how many there are in t */
	int64_t cap;		/* of each */
};

/*
 * The digraph that is searched. Parts are servers that are alike and joined by shared nodes
 * only; part 0 has the roots, and the last one stands for all that are left out.
 */
struct cost_net {
	int n, m, n_rows;
	int32_t *src, *dst;	/* of an arc */
	int64_t *cost;
	int32_t *origin;	/* of an arc: that of t */
	int32_t *out_first, *out;	/* arcs out of u: out[out_first[u]] ..; back: into u */
	int32_t *in_first, *in;
	int32_t *row_first, *row;	/* rows of an arc: row[row_first[a]] .. */
	struct cost_row *rows;
	int32_t *node;		/* of t */
	int32_t *part;		/* of a node; -1: shared */
	int32_t *place;		/* of a node in its part */
	int64_t *weight;	/* nodes of t that a node stands for */
	bool *terminal, *copies, *reduces;
	int parts, part_size;
	int all_parts, part_arcs;	/* of t: parts, and arcs in each */
	int32_t *node_at;	/* node `place` of part p of t: [p * part_size + place] */
	int32_t *arc_at;	/* likewise arcs */
	int32_t *arc_part, *arc_place;	/* of an arc of t; -1: between shared nodes */
	int32_t *arc_row;	/* of an arc of t that is no self-loop */
	int n_roots;
	int32_t *roots;		/* one terminal of each orbit */
	int64_t *orbit;		/* how many are in its orbit */
	struct topo_group *group;	/* whose orbits these are; NULL: all automorphisms, or
					 * none */
	struct arrays arrays;
};

/* How the symmetry of t is used. */
enum cost_symmetry {
	COST_ALL,		/* all automorphisms, and few servers instead of many */
	COST_FREE,		/* a group that moves terminals freely: images of trees are trees */
	COST_NONE,
};

/* root: -1, or what automorphisms must leave where it is. WEFT_ELIMIT. */
int cost_net_new(const struct topo *t, enum cost_symmetry symmetry, int root,
		 struct cost_net **out, struct err *err);
void cost_net_free(struct cost_net *net);

/* Whether a group that moves terminals freely, which becomes that of the net, leaves the orbits of
 * arcs and terminals as they are there: then images of trees load them just as well. */
int cost_net_set_group(struct cost_net *net, const struct topo *t, bool *same, struct err *err);

/* ---- pricing ---- */

/* How data moves between a root and all terminals. */
enum cost_shape {
	COST_OUT,		/* copied, from the root */
	COST_IN,		/* summed, to the root */
	COST_BOTH,		/* summed, then copied */
	COST_PATHS_OUT,		/* each terminal's own, from the root */
	COST_PATHS_IN,		/* each terminal's own, to the root */
};

/* A convexity row: weights of its columns add up to one. */
struct cost_block {
	enum cost_shape shape;
	int first_root, n_roots;	/* of the net: any of these */
	int64_t times;		/* units and orbits: what a column of weight 1 moves */
};

/* An arc of a tree between nodes that hold data. */
struct cost_link {
	int32_t from, to;	/* as the data flows; of the net */
	int32_t first, n;	/* in hops: arcs of the net, along the data */
};

struct cost_column {
	int block, root;	/* root: number of a root of the net */
	int64_t cost;		/* of one unit */
	int64_t *uses;		/* by row, of one unit */
	VEC(struct cost_link) out, in;	/* of trees; empty of paths */
	VEC(int32_t) hops;
};

void cost_column_free(struct cost_column *c);

/* Searches with one net and any prices. */
struct cost_search;

void cost_search_new(const struct cost_net *net, struct cost_search **out);
void cost_search_free(struct cost_search *s);
/* Prices of arcs, whole numbers >= 0 and at most cost_max_price(); shapes that follow use
 * them. */
int64_t cost_max_price(const struct cost_search *s);
void cost_set_prices(struct cost_search *s, const int64_t *price);
/*
 * The cheapest column of a block, and *least: no column of it is cheaper, in these prices, per
 * unit. Equal unless a search over which nodes beside terminals copy was cut short. NULL: is not
 * wanted. WEFT_EINFEASIBLE names terminals that are not joined.
 */
int cost_price(struct cost_search *s, const struct cost_block *b, struct cost_column **column,
	       int64_t *least, struct err *err);

/* A tree of a digraph of terminals whose arcs are those of the net but for self-loops, as a column
 * without a block. O(arcs). */
void cost_column_of_tree(const struct cost_net *net, int root, const struct coll_forest_tree *tree,
			 struct cost_column **column);

/* ---- the program ---- */

/* A program with the columns found so far, and their weights, exact, of the last stage. */
struct cost_master {
	const struct cost_net *net;
	struct cost_search *search;
	VEC(struct cost_block) blocks;
	VEC(struct cost_column *) columns;
	mpq_t *weight;		/* by column; NULL before a stage */
	size_t n_weights;
	double *value;		/* by column: of the last run */
	double *dual, bound;	/* by row and then block: those of the best bound in it */
	double time_unit, cost_unit;	/* what the program counts in */
	bool second;		/* stage: least cost at `time` */
	mpq_t time, time_bound, cost, cost_bound;
	int64_t *price;		/* by arc: room */
	double *row_price;	/* by row: room */
	mpz_t *row_exact;	/* by row: prices of the last proof */
	int rounds;
	bool stopped;
};

/* All units that a row carries together in a unit of time. */
static inline int64_t cost_row_cap(const struct cost_net *net, int row)
{
	return net->rows[row].cap * net->rows[row].alike;
}

void cost_master_init(struct cost_master *m, const struct cost_net *net);
void cost_master_fini(struct cost_master *m);
/* The best rate, and then the least cost at it: fills times or costs, weights and prices. */
int cost_run_stage(struct cost_master *m, bool second, const struct coll_rate_options *opt,
		   struct err *err);

/* Takes a forest's trees as columns, one root each, which attain m->time; not for COST_BOTH. */
void cost_take_forest(struct cost_master *m, const struct coll_forest *f);

/* From the values and duals of the last run to exact weights and a proof, in fractions.c;
 * *found: as fractions that solve the program, else rounded ones that are near it. */
int cost_exact_weights(struct cost_master *m, bool *found, struct err *err);
int cost_exact_bound(struct cost_master *m, struct err *err);
/* Time and cost of the weights. */
void cost_measure(const struct cost_master *m, mpq_t time, mpq_t cost);

/* The trees of the weights, in program_forest.c. m: of one collective, along trees, and a
 * net of a group or none. WEFT_EUNSUPPORTED. */
int cost_make_forest(const struct topo *t, const struct cost_master *m, enum coll_kind kind,
		     struct coll_forest *out, struct err *err);

#endif
