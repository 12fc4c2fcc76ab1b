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

/* Fills a table's message; free_columns also after WEFT_ENOMEM. */
static int fill_columns(const struct coll_sched *s, enum format_which which, ProtobufCMessage *msg)
{
	const struct format_table *t = &format_tables[which];
	size_t n = (size_t)format_n_rows(s, which);
	struct coll_pb_column columns[FORMAT_COLUMNS];
	bool present[FORMAT_COLUMNS];
	int64_t v[FORMAT_COLUMNS];

	format_present(s, which, present);
	for (int c = 0; c < t->n_columns; c++) {
		columns[c] = find_column(msg, t->columns[c].name);
		if (!present[c]) {
			continue;
		}
		*columns[c].values = malloc((n + 1) * sizeof(uint64_t));
		if (!*columns[c].values) {
			return WEFT_ENOMEM;
		}
		*columns[c].n = n;
	}
	for (size_t i = 0; i < n; i++) {
		format_get(s, which, (int64_t)i, v);
		for (int c = 0; c < t->n_columns; c++) {
			if (present[c]) {
				set_value(&columns[c], i, v[c]);
			}
		}
	}
	return 0;
}

static int pack(const pb_schedule *msg, struct buf *out)
{
	size_t size = protobuf_c_message_get_packed_size(&msg->base);
	uint8_t *bytes = malloc(size + 1);

	if (!bytes) {
		return WEFT_ENOMEM;
	}
	protobuf_c_message_pack(&msg->base, bytes);
	buf_add(out, bytes, size);
	free(bytes);
	return out->failed ? WEFT_ENOMEM : 0;
}

int coll_to_proto(const struct coll_sched *c, struct buf *out, struct err *err)
{
	const struct coll_sched *s;
	struct coll_sched *own;
	pb_schedule msg = WEFT__V1__SCHEDULE__INIT;
	Weft__V1__Schedule__Arcs arcs = WEFT__V1__SCHEDULE__ARCS__INIT;
	Weft__V1__Schedule__Transfers transfers = WEFT__V1__SCHEDULE__TRANSFERS__INIT;
	Weft__V1__Schedule__Lightpaths lights = WEFT__V1__SCHEDULE__LIGHTPATHS__INIT;
	Weft__V1__Schedule__Part part = WEFT__V1__SCHEDULE__PART__INIT;
	ProtobufCMessage *tables[FORMAT_TABLES] = {
		&arcs.base, &transfers.base, &lights.base,
	};
	int rc = coll_flat(c, &s, &own, err);

	if (rc) {
		return rc;
	}
	msg.version = FORMAT_VERSION;
	msg.collective = (Weft__V1__Schedule__Collective)(s->kind + 1);
	msg.topology = (char *)coll_topo_name(s);
	msg.nodes = (uint32_t)s->ranks;
	msg.chunks = (uint32_t)s->chunks;
	msg.ports = (uint32_t)s->ports;
	msg.root = (uint32_t)s->root;
	msg.arcs = &arcs;
	msg.transfers = &transfers;
	msg.lightpaths = s->lights.n ? &lights : NULL;
	part.rank = (uint32_t)coll_part(s);
	msg.part = s->part ? &part : NULL;
	for (int which = 0; which < FORMAT_TABLES && !rc; which++) {
		rc = fill_columns(s, which, tables[which]);
	}
	if (!rc) {
		rc = pack(&msg, out);
	}
	for (int which = 0; which < FORMAT_TABLES; which++) {
		free_columns(tables[which], which);
	}
	coll_free(own);
	return rc ? err_nomem(err) : 0;
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
	*head = (struct format_head){
		.version = msg->version,
		.kind = (enum coll_kind)(msg->collective - 1),
		.nodes = msg->nodes, .chunks = msg->chunks,
		.ports = msg->ports, .root = msg->root,
		.topology = msg->topology,
		.part = msg->part ? (int64_t)msg->part->rank + 1 : 0,
	};
	return 0;
}

/* What the message says, in the order in which it can be checked. */
static int read_message(pb_schedule *msg, struct coll_sched **out, struct err *err)
{
	struct format_load l = { .sched = NULL };
	struct format_head head;
	int rc;

	if ((rc = read_head(msg, &head, err)) ||
	    (rc = format_start(&l, &head, err)) ||
	    (rc = read_table(&l, FORMAT_ARCS, (ProtobufCMessage *)msg->arcs,
			     err)) || (rc = format_graph(&l, err)) ||
	    (rc = read_table(&l, FORMAT_TRANSFERS,
			     (ProtobufCMessage *)msg->transfers, err)) ||
	    (rc = read_table(&l, FORMAT_LIGHTS,
			     (ProtobufCMessage *)msg->lightpaths, err))) {
		goto out;
	}
	rc = format_finish(&l, out, err);
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
