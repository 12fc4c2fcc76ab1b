/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any message of weft.v1 as JSON, YAML or table, by protobuf-c's descriptors.
 *
 * Nothing here knows a message: a field that is added to a .proto file is
 * printed from then on, under its name. What a number means stands in its
 * name: `_at_ns` is a moment and becomes an ISO time (null for 0) under the
 * name without `_ns`; other units (`_ns`, `_bytes`, `_bps`, `_mdb`, `_mdbm`)
 * stay as they are for programs, and are written for people in tables.
 * A Number is its value, or null where it is absent; any other message that
 * is absent is left out. Lists are always there, also when they are empty.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "controller/proto_convert/report.h"
#include "lib/base/clock.h"
#include "lib/base/number/units.h"

#define MAX_KEY 64	/* longer names of fields are cut */

const char *msg_enum(const ProtobufCEnumDescriptor *type, int value, char *buf, int size)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
	size_t skip = 0;

	if (!v) {
		snprintf(buf, (size_t)size, "%d", value);
		return buf;
	}
	/* Values repeat their type: DEVICE_KIND_RING of DeviceKind. */
	for (const char *s = type->short_name; *s; s++) {
		skip += 1 + (s != type->short_name && isupper(*s));
	}
	snprintf(buf, (size_t)size, "%s", v->name + skip + 1);
	for (char *s = buf; *s; s++) {
		*s = *s == '_' ? '-' : (char)tolower((unsigned char)*s);
	}
	return buf;
}

void msg_out_time(struct out *o, const char *key, int64_t at_ns)
{
	char text[32];

	out_str(o, key, at_ns ? clk_iso(at_ns, text, sizeof(text)) : NULL);
}

/* ---- for programs -------------------------------------------------------- */

/* True also only when something stands before the ending. */
static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && strcmp(name + n - k, end) == 0;
}

/* weft.v1.Number is an integer that may be absent. */
static bool is_number(const ProtobufCFieldDescriptor *f)
{
	return f->type == PROTOBUF_C_TYPE_MESSAGE && f->descriptor == &weft__v1__number__descriptor;
}

/* A whole number at `at`, of any of the kinds that .proto files use. */
static int64_t integer_at(const ProtobufCFieldDescriptor *f, const void *at)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_UINT64:
		return *(const int64_t *)at;
	case PROTOBUF_C_TYPE_UINT32:
		return *(const uint32_t *)at;
	default:
		return *(const int32_t *)at;
	}
}

/* One value at `at`; key is NULL in lists. */
static void out_value(struct out *o, const char *key, const ProtobufCFieldDescriptor *f,
		      const void *at)
{
	const Weft__V1__Number *number;
	char text[MAX_KEY];

	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		out_str(o, key, *(char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		out_bool(o, key, *(const protobuf_c_boolean *)at);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		out_real(o, key, *(const double *)at);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		out_str(o, key, msg_enum(f->descriptor, *(const int *)at, text, sizeof(text)));
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		number = *(Weft__V1__Number *const *)at;
		if (!is_number(f)) {
			out_object(o, key);
			msg_out_fields(o, *(ProtobufCMessage *const *)at, NULL);
			out_end(o);
		} else if (number) {
			out_int(o, key, number->value);
		} else {
			out_null(o, key);
		}
		break;
	default:
		out_int(o, key, integer_at(f, at));
	}
}

/* Bytes from one value of a list to the next. */
static size_t size_of(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_ENUM:
		return 4;
	default:	/* pointers and long numbers */
		return 8;
	}
}

/* Length of a repeated field. */
static size_t count_of(const ProtobufCFieldDescriptor *f, const ProtobufCMessage *m)
{
	return *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
}

static bool is_moment(const char *name)
{
	return ends_with(name, "_at_ns") || strcmp(name, "at_ns") == 0;
}

/* One field under its name, by the rules above. */
static void out_field(struct out *o, const ProtobufCFieldDescriptor *f, const ProtobufCMessage *m)
{
	const char *at = (const char *)m + f->offset;
	char key[MAX_KEY];

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		const char *list = *(const char *const *)(const void *)at;

		out_array(o, f->name);
		for (size_t i = 0; i < count_of(f, m); i++) {
			out_value(o, NULL, f, list + i * size_of(f));
		}
		out_end(o);
	} else if (is_moment(f->name)) {
		snprintf(key, sizeof(key), "%.*s", (int)strlen(f->name) - 3, f->name);
		msg_out_time(o, key, *(const int64_t *)(const void *)at);
	} else if (f->type != PROTOBUF_C_TYPE_MESSAGE || is_number(f) ||
		   *(ProtobufCMessage *const *)(const void *)at) {
		out_value(o, f->name, f, at);
	}
}

void msg_out_fields(struct out *o, const void *m, const char *except)
{
	const ProtobufCMessageDescriptor *d = ((const ProtobufCMessage *)m)->descriptor;

	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		if (f->type != PROTOBUF_C_TYPE_BYTES && (!except || strcmp(f->name, except) != 0)) {
			out_field(o, f, m);
		}
	}
}

void msg_out_list(struct out *o, const char *key, void *const *v, size_t n)
{
	out_array(o, key);
	for (size_t i = 0; i < n; i++) {
		out_object(o, NULL);
		msg_out_fields(o, v[i], NULL);
		out_end(o);
	}
	out_end(o);
}

/* ---- tables -------------------------------------------------------------- */

/* A figure with its unit; false when the name has none. */
static bool unit_text(const char *name, int64_t value, char *text, int size)
{
	static const struct {
		const char *suffix;
		enum unit_kind kind;
	} units[] = {
		{ "_ns", UNIT_NS }, { "_mdb", UNIT_MDB }, { "_mdbm", UNIT_MDBM },
		{ "_bytes", UNIT_BYTES }, { "_bps", UNIT_BPS },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (ends_with(name, units[i].suffix)) {
			unit_human(units[i].kind, (double)value, text, size);
			return true;
		}
	}
	return false;
}

/* One field for people: lists are counted, figures have their units. */
static void out_cell(struct out *o, const char *title, const ProtobufCFieldDescriptor *f,
		     const ProtobufCMessage *m)
{
	const char *at = (const char *)m + f->offset;
	const Weft__V1__Number *number = is_number(f) ? *(Weft__V1__Number *const *)
		(const void *)at : NULL;
	bool is_integer = f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING;
	char text[MAX_KEY];

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		out_int(o, title, (int64_t)count_of(f, m));
	} else if (is_moment(f->name)) {
		msg_out_time(o, title, *(const int64_t *)(const void *)at);
	} else if (is_number(f) && !number) {
		out_str(o, title, "-");
	} else if ((number || is_integer) &&
		   unit_text(f->name, number ? number->value : integer_at(f, at), text,
			     sizeof(text))) {
		out_str(o, title, text);
	} else {
		out_value(o, title, f, at);
	}
}

/* The field that a path such as "signal.loss_mdb" leads to; *m becomes the
 * message that holds it, or NULL when one on the path is absent. */
static const ProtobufCFieldDescriptor *find_field(const char *path, const ProtobufCMessage **m)
{
	const ProtobufCFieldDescriptor *f;
	const char *dot = strchr(path, '.');
	char name[MAX_KEY];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "."), path);
	f = protobuf_c_message_descriptor_get_field_by_name((*m)->descriptor, name);
	if (dot) {
		*m = *(ProtobufCMessage *const *)(const void *)((const char *)*m + f->offset);
		return *m ? find_field(dot + 1, m) : NULL;
	}
	return f;
}

/* Columns are looked up by name each time: tables are short. */
void msg_out_row(struct out *o, const struct msg_column *columns, const void *m)
{
	struct buf b = { 0 };

	out_object(o, NULL);
	for (const struct msg_column *c = columns; c->title; c++) {
		if (c->text) {
			buf_reset(&b);
			c->text(m, &b);
			out_str(o, c->title, buf_cstr(&b));
		} else {
			const ProtobufCMessage *holder = m;
			const ProtobufCFieldDescriptor *f = find_field(c->field, &holder);

			if (f) {
				out_cell(o, c->title, f, holder);
			} else {
				out_str(o, c->title, "-");
			}
		}
	}
	out_end(o);
	buf_fini(&b);
}

void msg_out_table(struct out *o, const char *title, const struct msg_column *columns,
		   void *const *v, size_t n)
{
	out_array(o, title);
	for (size_t i = 0; i < n; i++) {
		msg_out_row(o, columns, v[i]);
	}
	out_end(o);
}
