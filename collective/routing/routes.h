/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Route tables for fabrics that route by the source: for every pair and every
 * route of it the ports that a packet leaves by, hop after hop, the chunks of
 * the shard that take it, and the layer (virtual channel) in which no
 * cycle of waiting can close.
 */
#ifndef WEFT_COLLECTIVE_ROUTING_ROUTES_H
#define WEFT_COLLECTIVE_ROUTING_ROUTES_H

#include "collective/flow/flow.h"
#include "collective/schedule/schedule.h"

#define ROUTES_VERSION 1	/* of its files */

/* Chunks of a pair that take the same arcs. */
struct coll_route {
	int32_t origin, dest;	/* nodes, different */
	int32_t chunks;		/* of the shard's, at least 1 */
	int32_t layer;		/* below n_layers */
};

/* A route table. The arcs of route i are arcs[first[i]] up to arcs[first[i + 1] -
 * 1], from its origin to its destination. Everything is owned. */
struct coll_routes {
	int nodes, chunks, n_layers;	/* chunks: of one shard */
	char *rate;			/* F, "15/691": the chunks of a shard
					 * over the largest load of an arc in
					 * chunks a unit of capacity */
	struct coll_route *route;	/* table.n, by origin, then dest */
	struct layer_routes table;	/* arcs of the schedule's digraph */
	int64_t *first;			/* behind table */
	int32_t *arcs, *layer;
	int32_t *rank;			/* the proof, see flow.h */
};

/*
 * The routes of a verified all-to-all: chunks of a pair that cross the same
 * arcs in the same order are one route. Layers are assigned in order, at
 * most max_layers (0: as many as it takes), and their proof is checked.
 * WEFT_EUNSUPPORTED for other collectives, embedded schedules, light that changes between
 * steps (a table has no steps), and when chunks do not travel along one path,
 * WEFT_EINFEASIBLE when the layers do not suffice.
 * O(transfers log transfers + chunks of the pairs whose chunks travel apart) beside
 * layers_assign. Free with coll_routes_fini, also on error.
 */
int coll_routes_of(const struct coll_sched *s, int max_layers,
		   struct coll_routes *out, struct err *err);
void coll_routes_fini(struct coll_routes *r);

/*
 * One route of every pair of a digraph of terminals, chosen together with its
 * layer when opt->layers limits them (flow.h); else as many layers are
 * assigned as it takes. The proof of the layers is checked. *res is how the
 * load compares. As single_path, and WEFT_EUNSUPPORTED when a node is no
 * terminal. Free with coll_routes_fini, also on error.
 */
int coll_routes_choose(const struct topo *t, const struct single_options *opt,
		       struct coll_routes *out, struct single_result *res, struct err *err);

/* As JSON, one route a line, and as a weft.v1.RouteTable message;
 * docs/all-to-all.md. A port is the number of an arc among those out of its
 * node, from 0. */
void coll_routes_to_json(const struct coll_routes *r, const struct topo *t, struct buf *out);
void coll_routes_to_proto(const struct coll_routes *r, const struct topo *t, struct buf *out);

/*
 * Reads either form, recognised by the first byte, for the digraph
 * t. WEFT_EINVAL names the place: a number out of range, a node that is not
 * in t, a port that a node on the way does not have. There is no proof
 * (rank NULL), and nothing else is checked: coll_routes_verify does. O(len).
 * Free with coll_routes_fini, also on error.
 */
int coll_routes_read(const void *data, size_t len, const struct topo *t,
		     struct coll_routes *out, struct err *err);

/*
 * Proves a route table on the digraph t, sharing no code with what made it:
 * routes are in order of origin and destination, each ends at its
 * destination and uses no arc twice, the chunks of every pair add up to those
 * of a shard, no layer's dependencies have a cycle (arcs that wait for none
 * are taken away until none is left), and the loads give the rate that the
 * table states, exactly. WEFT_EVERIFY names the fact. O(nodes^2 + hops log
 * hops) time, 12 bytes a hop.
 */
int coll_routes_verify(const struct coll_routes *r, const struct topo *t, struct err *err);

#endif
