/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary between bytes from outside and messages. protobuf-c alone
 * recurses without limit, takes any bytes for a string, lets a few bytes of
 * input claim a lot of memory, and merges a singular message that is given
 * n times in n^2 steps. So the bytes are walked here first, along the
 * descriptor and with a bounded depth; only then protobuf-c unpacks them,
 * on an allocator that counts.
 *
 * The walk reads tags and lengths exactly as protobuf-c 1.4 does (five
 * bytes at most), or more strictly: otherwise the two could see different
 * messages in the same bytes.
 */
#include "lib/rpc/private.h"

#include <assert.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_64 = 1,
	WIRE_BYTES = 2,
	WIRE_32 = 5,
};

/* Fields of one message type that the walk can tell apart. */
#define MAX_FIELDS 256
/* Field numbers run from 1 to this; protobuf-c lets others pass. */
#define MAX_FIELD_NUMBER ((1u << 29) - 1)

struct cursor {
	const uint8_t *p, *end;
};

/* At most max_bytes of a base-128 number; false when it does not end. */
static bool read_varint(struct cursor *c, int max_bytes, uint64_t *value)
{
	uint64_t v = 0;

	for (int i = 0; i < max_bytes && c->p < c->end; i++) {
		uint8_t b = *c->p++;

		v |= (uint64_t)(b & 0x7f) << (7 * i);
		if (b < 0x80) {
			*value = v;
			return true;
		}
	}
	return false;
}

/* Reads over one field's value; of WIRE_BYTES *body is what is inside. */
static bool read_value(struct cursor *c, unsigned wire, struct cursor *body)
{
	uint64_t n;

	switch (wire) {
	case WIRE_VARINT:
		return read_varint(c, 10, &n);
	case WIRE_64:
		n = 8;
		break;
	case WIRE_32:
		n = 4;
		break;
	case WIRE_BYTES:
		if (!read_varint(c, 5, &n) || n > INT_MAX) {
			return false;
		}
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(c->end - c->p)) {
		return false;
	}
	body->p = c->p;
	body->end = c->p += n;
	return true;
}

int rpc_utf8_length(const uint8_t *p, const uint8_t *end)
{
	uint32_t c, min_code;
	int n;

	if (p[0] < 0x80) {
		return 1;
	} else if (p[0] >= 0xc0 && p[0] < 0xe0) {
		n = 2, c = p[0] & 0x1f, min_code = 0x80;
	} else if (p[0] >= 0xe0 && p[0] < 0xf0) {
		n = 3, c = p[0] & 0x0f, min_code = 0x800;
	} else if (p[0] >= 0xf0 && p[0] < 0xf8) {
		n = 4, c = p[0] & 0x07, min_code = 0x10000;
	} else {
		return 0;
	}
	if (end - p < n) {
		return 0;
	}
	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return 0;
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < min_code || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		return 0;
	}
	return n;
}

static int check_string(const ProtobufCMessageDescriptor *type,
			const ProtobufCFieldDescriptor *field,
			const struct cursor *text, struct err *err)
{
	const uint8_t *p = text->p;

	while (p < text->end) {
		int n = rpc_utf8_length(p, text->end);

		if (n == 0) {
			return err_set(err, WEFT_EINVAL,
				       "%s.%s: not valid UTF-8 at byte %zu",
				       type->name, field->name,
				       (size_t)(p - text->p));
		}
		if (*p == '\0') {
			return err_set(err, WEFT_EINVAL,
				       "%s.%s: zero byte in a string",
				       type->name, field->name);
		}
		p += n;
	}
	return 0;
}

static int malformed(const ProtobufCMessageDescriptor *type, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "malformed %s message", type->name);
}

static int check_message(const ProtobufCMessageDescriptor *type,
			 struct cursor c, int depth, struct err *err);

/* One sub-message; `seen` has a bit for each field of type. */
static int check_submessage(const ProtobufCMessageDescriptor *type,
			    const ProtobufCFieldDescriptor *field, const struct cursor *body,
			    uint64_t *seen, int depth, struct err *err)
{
	size_t i = field - type->fields;
	uint64_t bit = UINT64_C(1) << (i % 64);

	if (field->label != PROTOBUF_C_LABEL_REPEATED) {
		if (seen[i / 64] & bit) {
			return err_set(err, WEFT_EINVAL, "%s.%s: given twice",
				       type->name, field->name);
		}
		seen[i / 64] |= bit;
	}
	if (depth == RPC_MAX_NESTING) {
		return err_set(err, WEFT_EINVAL,
			       "%s.%s: nested deeper than %d messages",
			       type->name, field->name, RPC_MAX_NESTING);
	}
	return check_message(field->descriptor, *body, depth + 1, err);
}

/* Walks one message. Recurses, at most RPC_MAX_NESTING deep. */
static int check_message(const ProtobufCMessageDescriptor *type,
			 struct cursor c, int depth, struct err *err)
{
	uint64_t seen[MAX_FIELDS / 64] = { 0 };
	struct cursor body;
	uint64_t tag;
	int r = 0;

	assert(type->n_fields <= MAX_FIELDS);
	while (r == 0 && c.p < c.end) {
		const ProtobufCFieldDescriptor *field;

		if (!read_varint(&c, 5, &tag) || tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER ||
		    !read_value(&c, tag & 7, &body)) {
			return malformed(type, err);
		}
		field = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
		/* protobuf-c refuses the wrong wire type itself. */
		if (!field || (tag & 7) != WIRE_BYTES) {
			continue;
		}
		if (field->type == PROTOBUF_C_TYPE_STRING) {
			r = check_string(type, field, &body, err);
		} else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
			r = check_submessage(type, field, &body, seen, depth, err);
		}
	}
	return r;
}

/* The allocator lends ordinary heap blocks, so that a message is freed like
 * any other; it only counts them. */
struct budget {
	size_t left;
	bool spent;
};

/* What a block costs beside its usable size. */
#define BLOCK_OVERHEAD sizeof(size_t)

static void *budget_alloc(void *data, size_t size)
{
	struct budget *b = data;
	size_t cost = size;
	void *p = NULL;

	if (size <= b->left) {
		p = x_alloc(size, 1);
		cost = malloc_usable_size(p) + BLOCK_OVERHEAD;
	}
	if (cost > b->left) {
		b->spent = true;
		free(p);
		return NULL;
	}
	b->left -= cost;
	return p;
}

static void budget_free(void *data, void *p)
{
	struct budget *b = data;

	if (p) {
		b->left += malloc_usable_size(p) + BLOCK_OVERHEAD;
		free(p);
	}
}

int rpc_decode_counted(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
		       size_t budget, ProtobufCMessage **out, size_t *used, struct err *err)
{
	struct budget b = { .left = budget };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &b };
	struct cursor all = { data, data };
	int r;

	*out = NULL;
	*used = 0;
	if (len > 0) {
		all.end += len;
	}
	r = check_message(type, all, 1, err);
	if (r) {
		return r;
	}
	*out = protobuf_c_message_unpack(type, &allocator, len, data);
	if (!*out && b.spent) {
		return err_set(err, WEFT_ELIMIT,
			       "%s message of %zu bytes needs more than %zu "
			       "bytes of memory",
			       type->name, len, budget);
	}
	if (!*out) {
		return malformed(type, err);
	}
	*used = budget - b.left;
	return 0;
}

int rpc_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t len, size_t budget,
	       ProtobufCMessage **out, struct err *err)
{
	size_t used;

	return rpc_decode_counted(type, data, len,
				  budget ? budget : RPC_DEFAULT_BUDGET, out,
				  &used, err);
}

void rpc_free_message(ProtobufCMessage *msg)
{
	protobuf_c_message_free_unpacked(msg, NULL);
}
