/*
 * Route tables for fabrics that route by the source: for every pair and every
 * route of it the ports that a packet leaves by, hop after hop, the chunks of
 * the shard that go this way, and the layer (virtual channel) in which no
 * circle of waiting can close.
 */
#ifndef WEFT_COLLECTIVE_ROUTES_H
#define WEFT_COLLECTIVE_ROUTES_H

#include "collective/collective.h"
#include "collective/layers.h"

struct coll_route {
	int32_t origin, dest;
	int32_t chunks;
	int32_t layer;
};

struct coll_routes {
	int nodes, chunks, n_layers;
	struct coll_route *route;	/* table.n, by origin, then dest */
	struct layer_routes table;	/* arcs of the schedule's digraph */
	int64_t *first;			/* behind table */
	int32_t *arcs, *layer;
	int32_t *rank;			/* the proof, see layers.h */
};

/*
 * The routes of a verified all-to-all: chunks of a pair that cross the same
 * arcs in the same order are one route. Layers are assigned in order and
 * their proof is checked. WEFT_EUNSUPPORTED for other collectives and when
 * chunks do not travel along one path, WEFT_ENOMEM. O(transfers log
 * transfers + chunks of the pairs whose chunks travel apart) beside
 * layers_assign. Free with coll_routes_fini, also on error.
 */
int coll_routes_of(const struct coll_sched *s, struct coll_routes *out,
		   struct err *err);
void coll_routes_fini(struct coll_routes *r);

/* As text, one route a line, and as JSON; docs/all-to-all.md. A port is the
 * number of an arc among those out of its node, from 0. */
void coll_routes_to_text(const struct coll_routes *r, const struct topo *t,
			 struct buf *out);
void coll_routes_to_json(const struct coll_routes *r, const struct topo *t,
			 struct buf *out);

#endif
