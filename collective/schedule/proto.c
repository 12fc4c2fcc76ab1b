/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules as weft.v1.Schedule messages.
 *
 * Tables are messages of repeated fields, one a column, named as the columns of
 * format.c: fields are found by name through protobuf-c's descriptors, so that
 * one loop serves all tables. Columns whose values are all the default are left
 * empty. Decoding is limited in memory by the length of the message.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/rpc/rpc.h"
#include "weft/v1/schedule.pb-c.h"

typedef Weft__V1__Schedule pb_schedule;

/* Bytes of heap that decoding may take for each byte of message: eight for a
 * packed 64-bit number of one byte, doubled. */
#define HEAP_PER_BYTE 16
#define HEAP_BASE (1 << 20)

/* A repeated field of a table's message: the column of the same name. */
struct coll_pb_column {
	ProtobufCType type;
	size_t *n;
	void **values;
};

static struct coll_pb_column find_column(ProtobufCMessage *msg, const char *name)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(
			msg->descriptor, name);
	char *base = (char *)msg;

	return (struct coll_pb_column){
		f->type, (size_t *)(void *)(base + f->quantifier_offset),
		(void **)(void *)(base + f->offset),
	};
}

static int64_t get_value(const struct coll_pb_column *c, size_t row)
{
	switch (c->type) {
	case PROTOBUF_C_TYPE_UINT64: {
		uint64_t v = ((const uint64_t *)*c->values)[row];

		return v > INT64_MAX ? INT64_MAX : (int64_t)v;
	}
	case PROTOBUF_C_TYPE_SINT32:
		return ((const int32_t *)*c->values)[row];
	default:
		return ((const uint32_t *)*c->values)[row];
	}
}

static void set_value(const struct coll_pb_column *c, size_t row, int64_t value)
{
	switch (c->type) {
	case PROTOBUF_C_TYPE_UINT64:
		((uint64_t *)*c->values)[row] = (uint64_t)value;
		return;
	case PROTOBUF_C_TYPE_SINT32:
		((int32_t *)*c->values)[row] = (int32_t)value;
		return;
	default:
		((uint32_t *)*c->values)[row] = (uint32_t)value;
	}
}

/* ---- writing ---- */

static void free_columns(ProtobufCMessage *msg, enum format_which which)
{
	const struct format_table *t = &format_tables[which];

	for (int c = 0; c < t->n_columns; c++) {
		free(*find_column(msg, t->columns[c].name).values);
	}
}

/* Fills a table's message. */
static void fill_columns(const struct coll_sched *s, enum format_which which, ProtobufCMessage *msg)
{
	const struct format_table *t = &format_tables[which];
	size_t n = (size_t)format_n_rows(s, which);
	struct coll_pb_column columns[FORMAT_COLUMNS];
	struct format_rows rows = format_rows(s, which);
	bool present[FORMAT_COLUMNS];
	int64_t v[FORMAT_COLUMNS];

	format_present(s, which, present);
	for (int c = 0; c < t->n_columns; c++) {
		columns[c] = find_column(msg, t->columns[c].name);
		if (!present[c]) {
			continue;
		}
		*columns[c].values = x_alloc(n + 1, sizeof(uint64_t));
		*columns[c].n = n;
	}
	for (size_t i = 0; i < n; i++) {
		format_next(&rows, v);
		for (int c = 0; c < t->n_columns; c++) {
			if (present[c]) {
				set_value(&columns[c], i, v[c]);
			}
		}
	}
}

/* Straight into out, as large schedules would else be there twice. */
static void pack(const pb_schedule *msg, struct buf *out)
{
	char *to = buf_extend(out, protobuf_c_message_get_packed_size(&msg->base));

	protobuf_c_message_pack(&msg->base, (uint8_t *)to);
}

/* The tables of a message, in the order of format.c; NULL: absent. */
#define TABLES(msg) { \
		(ProtobufCMessage *)(msg)->node_kinds, (ProtobufCMessage *)(msg)->arcs, \
		(ProtobufCMessage *)(msg)->physical_arcs, (ProtobufCMessage *)(msg)->limits, \
		(ProtobufCMessage *)(msg)->limit_arcs, (ProtobufCMessage *)(msg)->generators, \
		(ProtobufCMessage *)(msg)->images, (ProtobufCMessage *)(msg)->routes, \
		(ProtobufCMessage *)(msg)->hops, (ProtobufCMessage *)(msg)->demands, \
		(ProtobufCMessage *)(msg)->transfers, (ProtobufCMessage *)(msg)->lightpaths, \
	}

/* Packs msg with the tables that have rows. */
static void write_tables(const struct coll_sched *s, pb_schedule *msg, struct buf *out)
{
	Weft__V1__Schedule__NodeKinds kinds = WEFT__V1__SCHEDULE__NODE_KINDS__INIT;
	Weft__V1__Schedule__Arcs arcs = WEFT__V1__SCHEDULE__ARCS__INIT;
	Weft__V1__Schedule__Arcs physical = WEFT__V1__SCHEDULE__ARCS__INIT;
	Weft__V1__Schedule__Limits limits = WEFT__V1__SCHEDULE__LIMITS__INIT;
	Weft__V1__Schedule__LimitArcs limit_arcs = WEFT__V1__SCHEDULE__LIMIT_ARCS__INIT;
	Weft__V1__Schedule__Generators generators = WEFT__V1__SCHEDULE__GENERATORS__INIT;
	Weft__V1__Schedule__Images images = WEFT__V1__SCHEDULE__IMAGES__INIT;
	Weft__V1__Schedule__Routes routes = WEFT__V1__SCHEDULE__ROUTES__INIT;
	Weft__V1__Schedule__Hops hops = WEFT__V1__SCHEDULE__HOPS__INIT;
	Weft__V1__Schedule__Demands demands = WEFT__V1__SCHEDULE__DEMANDS__INIT;
	Weft__V1__Schedule__Transfers transfers = WEFT__V1__SCHEDULE__TRANSFERS__INIT;
	Weft__V1__Schedule__Lightpaths lights = WEFT__V1__SCHEDULE__LIGHTPATHS__INIT;
	pb_schedule all = { .node_kinds = &kinds, .arcs = &arcs, .physical_arcs = &physical,
			    .limits = &limits, .limit_arcs = &limit_arcs,
			    .generators = &generators, .images = &images, .routes = &routes,
			    .hops = &hops, .demands = &demands, .transfers = &transfers,
				    .lightpaths = &lights };
	ProtobufCMessage *tables[FORMAT_TABLES] = TABLES(&all);

	for (int which = 0; which < FORMAT_TABLES; which++) {
		fill_columns(s, which, tables[which]);
	}
	msg->node_kinds = format_n_rows(s, FORMAT_KINDS) ? &kinds : NULL;
	msg->arcs = &arcs;
	msg->physical_arcs = s->embedding ? &physical : NULL;
	msg->limits = format_n_rows(s, FORMAT_LIMITS) ? &limits : NULL;
	msg->limit_arcs = msg->limits ? &limit_arcs : NULL;
	msg->generators = s->group ? &generators : NULL;
	msg->images = s->group ? &images : NULL;
	msg->routes = s->embedding ? &routes : NULL;
	msg->hops = s->embedding ? &hops : NULL;
	msg->demands = s->demands ? &demands : NULL;
	msg->transfers = &transfers;
	msg->lightpaths = s->lights.n ? &lights : NULL;
	pack(msg, out);
	for (int which = 0; which < FORMAT_TABLES; which++) {
		free_columns(tables[which], which);
	}
}

/* The columns stay those of s. */
static void fill_placement(const struct coll_sched *s, Weft__V1__Schedule__Placement *out)
{
	const struct coll_placement *p = s->placement;
	size_t n = (size_t)topo_n(coll_physical(s)), m = (size_t)topo_m(coll_physical(s));

	out->n_hosts = n;
	out->hosts = p->hosts;
	out->n_netns = p->netns ? n : 0;
	out->netns = p->netns;
	out->n_ring_nodes = p->ring_nodes ? n : 0;
	out->ring_nodes = (uint32_t *)p->ring_nodes;
	out->n_tx_ports = p->tx_ports ? m : 0;
	out->tx_ports = p->tx_ports;
	out->n_rx_ports = p->rx_ports ? m : 0;
	out->rx_ports = p->rx_ports;
}

void coll_to_proto(const struct coll_sched *s, struct buf *out)
{
	Weft__V1__Schedule__Placement placement = WEFT__V1__SCHEDULE__PLACEMENT__INIT;
	pb_schedule msg = WEFT__V1__SCHEDULE__INIT;
	Weft__V1__Schedule__Part part = WEFT__V1__SCHEDULE__PART__INIT;

	msg.version = (uint32_t)format_version(s);
	msg.collective = (Weft__V1__Schedule__Collective)(s->kind + 1);
	msg.topology = (char *)coll_topo_name(s);
	msg.nodes = (uint32_t)topo_n(s->topo);
	msg.chunks = (uint32_t)s->chunks;
	msg.ports = (uint32_t)s->ports;
	msg.root = (uint32_t)s->root;
	msg.alike = s->alike;
	if (s->embedding) {
		msg.physical = (char *)coll_physical_name(s);
		msg.physical_nodes = (uint32_t)topo_n(coll_physical(s));
		msg.routing = (Weft__V1__Schedule__Routing)(coll_routing(s) + 1);
	}
	part.rank = (uint32_t)coll_part(s);
	msg.part = s->part ? &part : NULL;
	if (s->placement) {
		fill_placement(s, &placement);
		msg.placement = &placement;
	}
	write_tables(s, &msg, out);
}

/* ---- reading ---- */

/* Finds the columns and their common length. */
static int read_columns(ProtobufCMessage *msg, const struct format_table *t,
			struct coll_pb_column *columns, size_t *n, struct err *err)
{
	*n = 0;
	for (int c = 0; c < t->n_columns; c++) {
		columns[c] = find_column(msg, t->columns[c].name);
		*n = *columns[c].n > *n ? *columns[c].n : *n;
	}
	for (int c = 0; c < t->n_columns; c++) {
		size_t have = *columns[c].n;

		if (have != *n && (have > 0 || t->columns[c].required)) {
			return err_set(err, WEFT_EINVAL,
				       "%s.%s: %zu values in a table of %zu "
				       "rows", t->name, t->columns[c].name,
				       have, *n);
		}
	}
	return 0;
}

/* msg NULL: the table is absent and has no rows. */
static int read_table(struct format_load *l, enum format_which which,
		      ProtobufCMessage *msg, struct err *err)
{
	const struct format_table *t = &format_tables[which];
	struct coll_pb_column columns[FORMAT_COLUMNS];
	int64_t v[FORMAT_COLUMNS];
	size_t n = 0;
	int rc = msg ? read_columns(msg, t, columns, &n, err) : 0;

	if (!rc) {
		rc = format_begin(l, which, (int64_t)n, err);
	}
	for (size_t i = 0; i < n && !rc; i++) {
		for (int c = 0; c < t->n_columns; c++) {
			v[c] = *columns[c].n ? get_value(&columns[c], i)
					     : t->columns[c].absent;
		}
		rc = format_add(l, which, (int64_t)i, v, err);
	}
	return rc;
}

static int read_head(const pb_schedule *msg, struct format_head *head, struct err *err)
{
	if (msg->collective < 1 || msg->collective > COLL_KINDS) {
		return err_set(err, WEFT_EINVAL,
			       "collective: %d is none of the known ones",
			       (int)msg->collective);
	}
	if (msg->physical_nodes && (msg->routing < 1 || msg->routing > COLL_ROUTINGS)) {
		return err_set(err, WEFT_EINVAL, "routing: %d is none of the known ones",
			       (int)msg->routing);
	}
	*head = (struct format_head){
		.physical_nodes = msg->physical_nodes, .physical = msg->physical,
		.routing = msg->physical_nodes ? (enum coll_routing)(msg->routing - 1)
					       : COLL_ROUTING_EXPLICIT,
		.version = msg->version,
		.kind = (enum coll_kind)(msg->collective - 1),
		.nodes = msg->nodes, .chunks = msg->chunks,
		.ports = msg->ports, .root = msg->root, .alike = msg->alike,
		.topology = msg->topology,
		.part = msg->part ? (int64_t)msg->part->rank + 1 : 0,
	};
	return 0;
}

/* A node above 2^31 reads as a negative one, which is refused. */
static int read_placement(struct format_load *l, const Weft__V1__Schedule__Placement *p,
			  struct err *err)
{
	const struct format_placement f = {
		.hosts = { p->hosts, p->n_hosts }, .netns = { p->netns, p->n_netns },
		.tx_ports = { p->tx_ports, p->n_tx_ports },
		.rx_ports = { p->rx_ports, p->n_rx_ports },
		.ring_nodes = (int32_t *)p->ring_nodes, .n_ring_nodes = p->n_ring_nodes,
	};

	return format_place(l, &f, err);
}

/* What the message says, in the order in which it can be checked. */
static int read_message(pb_schedule *msg, struct coll_sched **out, struct err *err)
{
	ProtobufCMessage *tables[FORMAT_TABLES] = TABLES(msg);
	struct format_load l = { .sched = NULL };
	struct format_head head;
	int rc;

	if ((rc = read_head(msg, &head, err)) || (rc = format_start(&l, &head, err))) {
		goto out;
	}
	for (int which = 0; which < FORMAT_TABLES && !rc; which++) {
		rc = read_table(&l, which, tables[which], err);
	}
	if (!rc && msg->placement) {
		rc = read_placement(&l, msg->placement, err);
	}
	if (!rc) {
		rc = format_finish(&l, out, err);
	}
out:
	format_abort(&l);
	return rc;
}

int coll_from_proto(const void *data, size_t len, struct coll_sched **out, struct err *err)
{
	ProtobufCMessage *msg = NULL;
	int rc;

	*out = NULL;
	rc = rpc_decode(&weft__v1__schedule__descriptor, data, len,
			HEAP_BASE + len * HEAP_PER_BYTE, &msg, err);
	if (!rc) {
		rc = read_message((pb_schedule *)msg, out, err);
		rpc_free_message(msg);
	}
	return rc ? err_wrap(err, "schedule") : 0;
}
