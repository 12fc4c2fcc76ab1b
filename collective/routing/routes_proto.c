/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Route tables as weft.v1.RouteTable messages, a column a field: packed numbers
 * of one kind take little room, and a table of 1000 nodes has a million routes.
 */
#include <stdlib.h>

#include "collective/routing/private.h"
#include "lib/base/alloc.h"
#include "lib/rpc/rpc.h"
#include "weft/v1/routes.pb-c.h"

typedef Weft__V1__RouteTable pb_table;
typedef Weft__V1__RouteTable__Routes pb_routes;

/* Bytes of heap that decoding may take for each byte of message: four for a
 * packed number of one byte, doubled as arrays grow. */
#define HEAP_PER_BYTE 16
#define HEAP_BASE (1 << 20)

/* ---- writing ---- */

static void fill(const struct coll_routes *r, const struct topo *t, pb_routes *m)
{
	m->n_origin = m->n_destination = m->n_chunks = m->n_layer = m->n_hops = (size_t)r->table.n;
	for (int64_t i = 0; i < r->table.n; i++) {
		const struct coll_route *q = &r->route[i];

		m->origin[i] = (uint32_t)q->origin;
		m->destination[i] = (uint32_t)q->dest;
		m->chunks[i] = (uint32_t)q->chunks;
		m->layer[i] = (uint32_t)q->layer;
		m->hops[i] = (uint32_t)(r->first[i + 1] - r->first[i]);
	}
	m->n_ports = (size_t)r->first[r->table.n];
	for (size_t k = 0; k < m->n_ports; k++) {
		m->ports[k] = (uint32_t)routes_port(t, r->arcs[k]);
	}
}

static void pack(const pb_table *table, struct buf *out)
{
	size_t size = protobuf_c_message_get_packed_size(&table->base);
	uint8_t *bytes = x_alloc(size + 1, 1);

	protobuf_c_message_pack(&table->base, bytes);
	buf_add(out, bytes, size);
	free(bytes);
}

void coll_routes_to_proto(const struct coll_routes *r, const struct topo *t, struct buf *out)
{
	size_t n = (size_t)r->table.n, hops = (size_t)r->first[r->table.n];
	uint32_t *cells = x_alloc(5 * n + hops + 1, sizeof(*cells));
	pb_table table = WEFT__V1__ROUTE_TABLE__INIT;
	pb_routes m = WEFT__V1__ROUTE_TABLE__ROUTES__INIT;

	m.origin = cells;
	m.destination = cells + n;
	m.chunks = cells + 2 * n;
	m.layer = cells + 3 * n;
	m.hops = cells + 4 * n;
	m.ports = cells + 5 * n;
	fill(r, t, &m);
	table.version = ROUTES_VERSION;
	table.nodes = (uint32_t)r->nodes;
	table.chunks = (uint32_t)r->chunks;
	table.layers = (uint32_t)r->n_layers;
	table.rate = r->rate;
	table.routes = &m;
	pack(&table, out);
	free(cells);
}

/* ---- reading ---- */

static int check_columns(const pb_routes *m, struct err *err)
{
	size_t n = m->n_origin;

	if (m->n_destination != n || m->n_chunks != n || m->n_layer != n || m->n_hops != n) {
		return err_set(err, WEFT_EINVAL, "routes: columns differ in "
			       "length from the %zu of origin", n);
	}
	return 0;
}

/* Rows in order, each with its share of the ports that follow each other in one
 * column; hops says how many. */
static int read_routes(struct routes_load *l, const pb_routes *m, struct err *err)
{
	size_t port = 0;
	int rc = check_columns(m, err);

	for (size_t i = 0; rc == 0 && i < m->n_origin; i++) {
		if (m->hops[i] > m->n_ports - port) {
			return err_set(err, WEFT_EINVAL, "route %zu: %u hops, "
				       "%zu ports are left", i, m->hops[i],
				       m->n_ports - port);
		}
		rc = routes_load_row(l, &(struct routes_row){
			m->origin[i], m->destination[i], m->chunks[i],
			m->layer[i] }, err);
		for (uint32_t k = 0; rc == 0 && k < m->hops[i]; k++) {
			rc = routes_load_port(l, m->ports[port++], err);
		}
	}
	if (rc == 0 && port != m->n_ports) {
		rc = err_set(err, WEFT_EINVAL, "routes: %zu ports belong to "
			     "no route", m->n_ports - port);
	}
	return rc;
}

int routes_from_proto(const void *data, size_t len, struct routes_load *l, struct err *err)
{
	ProtobufCMessage *msg = NULL;
	const pb_table *table;
	int rc = rpc_decode(&weft__v1__route_table__descriptor, data, len,
			    HEAP_BASE + len * HEAP_PER_BYTE, &msg, err);

	if (rc) {
		return rc;
	}
	table = (const pb_table *)msg;
	rc = routes_load_head(l, &(struct routes_head){
		table->version, table->nodes, table->chunks, table->layers,
		table->rate }, err);
	if (rc == 0 && table->routes) {
		rc = read_routes(l, table->routes, err);
	}
	rpc_free_message(msg);
	return rc;
}
