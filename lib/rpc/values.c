/* SPDX-License-Identifier: Apache-2.0 */
/* What a request may hold beside being well-formed: strings of a bounded length, and only
 * values of enumerations that this server knows. */
#include <string.h>

#include "lib/rpc/private.h"

static int check_value(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, const void *at,
		       struct err *err)
{
	size_t len;

	if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		const ProtobufCMessage *inner = *(ProtobufCMessage *const *)at;

		return inner ? rpc_check_values(inner, err) : 0;
	}
	if (f->type == PROTOBUF_C_TYPE_ENUM &&
	    !protobuf_c_enum_descriptor_get_value(f->descriptor, *(const int *)at)) {
		return err_set(err, WEFT_EINVAL, "%s.%s: %d is no %s", m->descriptor->name, f->name,
			       *(const int *)at,
			       ((const ProtobufCEnumDescriptor *)f->descriptor)->short_name);
	}
	if (f->type == PROTOBUF_C_TYPE_STRING &&
	    (len = strlen(*(char *const *)at)) > RPC_MAX_STRING) {
		return err_set(err, WEFT_EINVAL, "%s.%s: %zu bytes long, at most %d are allowed",
			       m->descriptor->name, f->name, len, RPC_MAX_STRING);
	}
	return 0;
}

/* What each value takes in the array of a repeated field; 0: nothing in it is checked. */
static size_t value_size(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_ENUM:
		return sizeof(int);
	default:
		return 0;
	}
}

static int check_field(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
		       struct err *err)
{
	const char *at = (const char *)m + f->offset;
	size_t n = 1, size = value_size(f);
	int rc = 0;

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		memcpy(&n, (const char *)m + f->quantifier_offset, sizeof(n));
		memcpy(&at, at, sizeof(void *));
	} else if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
		   memcmp((const char *)m + f->quantifier_offset, &f->id, sizeof(f->id)) != 0) {
		return 0;	/* another of the oneof is there */
	}
	for (size_t i = 0; size && i < n && rc == 0; i++) {
		rc = check_value(m, f, at + i * size, err);
	}
	return rc;
}

int rpc_check_values(const ProtobufCMessage *m, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < m->descriptor->n_fields && rc == 0; i++) {
		rc = check_field(m, &m->descriptor->fields[i], err);
	}
	return rc;
}
