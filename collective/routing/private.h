/* SPDX-License-Identifier: Apache-2.0 */
/* What writing, reading and checking route tables share. */
#ifndef WEFT_COLLECTIVE_ROUTING_PRIVATE_H
#define WEFT_COLLECTIVE_ROUTING_PRIVATE_H

#include <gmp.h>

#include "collective/routing/routes.h"
#include "lib/base/vec.h"

/* F when arcs carry these chunks: topo_m(t) of them; 0 when none carries
 * any. rate is initialised. */
void routes_rate(const struct coll_routes *r, const struct topo *t,
		 const int64_t *load, mpq_t rate);

/* States r->rate, from the routes' own loads. */
void routes_state_rate(struct coll_routes *r, const struct topo *t);
/* Layers of the routes, as many as max_layers (0: any number), and their
 * proof. */
int routes_assign_layers(struct coll_routes *r, int max_layers, struct err *err);

/* Number of an arc among those out of its node, from 0. */
int routes_port(const struct topo *t, int arc);

/* What a table states before its first route, as read, not yet checked; rate is
 * borrowed. Wider than the table's own numbers, so that those too large are
 * refused and not cut off. */
struct routes_head {
	int64_t version, nodes, chunks, layers;
	const char *rate;
};

/* What a table states of a route before its ports, not yet checked. */
struct routes_row {
	int64_t origin, dest, chunks, layer;
};

/* A table that is being read. */
struct routes_load {
	const struct topo *t;
	struct coll_routes *out;
	/* These three become those of out when the table has ended. */
	VEC(struct coll_route) route;
	VEC(int64_t) first;	/* index in arcs of each route's first */
	VEC(int32_t) arcs;
	int at;			/* node that the present route has reached */
};

/* The head, then for each route its row and its ports. Errors
 * name the route by its number. */
int routes_load_head(struct routes_load *l, const struct routes_head *head, struct err *err);
int routes_load_row(struct routes_load *l, const struct routes_row *row, struct err *err);
int routes_load_port(struct routes_load *l, int64_t port, struct err *err);

/* routes_proto.c */
int routes_from_proto(const void *data, size_t len, struct routes_load *l, struct err *err);
/* routes_json.c */
int routes_from_json(const char *text, size_t len, struct routes_load *l, struct err *err);

#endif
