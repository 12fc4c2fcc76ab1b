/* SPDX-License-Identifier: Apache-2.0 */
/* A message type of every kind that the boundary cares about, as protoc-c
 * would describe
 *
 *	message Item {
 *		string name = 1;
 *		repeated Item child = 2;
 *		uint32 n = 3;
 *		bytes data = 4;
 *		Item one = 5;
 *		repeated string tag = 6;
 *	}
 */
#ifndef WEFT_TESTS_UNIT_RPC_MESSAGE_H
#define WEFT_TESTS_UNIT_RPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

struct item {
	ProtobufCMessage base;
	char *name;
	size_t n_child;
	struct item **child;
	uint32_t n;
	ProtobufCBinaryData data;
	struct item *one;
	size_t n_tag;
	char **tag;
};

extern const ProtobufCMessageDescriptor item_type;

#define FIELD(id_, label_, type_, quantifier, member, sub, initial)  \
	{                                                            \
		.name = #member, .id = id_, .label = label_,         \
		.type = PROTOBUF_C_TYPE_##type_,                     \
		.quantifier_offset = quantifier,                     \
		.offset = offsetof(struct item, member),             \
		.descriptor = sub, .default_value = initial          \
	}
#define ONE PROTOBUF_C_LABEL_NONE
#define MANY PROTOBUF_C_LABEL_REPEATED

static const ProtobufCFieldDescriptor item_fields[] = {
	FIELD(1, ONE, STRING, 0, name, NULL, &protobuf_c_empty_string),
	FIELD(2, MANY, MESSAGE, offsetof(struct item, n_child), child,
	      &item_type, NULL),
	FIELD(3, ONE, UINT32, 0, n, NULL, NULL),
	FIELD(4, ONE, BYTES, 0, data, NULL, NULL),
	FIELD(5, ONE, MESSAGE, 0, one, &item_type, NULL),
	FIELD(6, MANY, STRING, offsetof(struct item, n_tag), tag, NULL, NULL),
};

#undef FIELD
#undef ONE
#undef MANY

static const unsigned item_by_name[] = { 1, 3, 2, 0, 4, 5 };
static const ProtobufCIntRange item_ranges[] = { { 1, 0 }, { 0, 6 } };

static inline void item_init(ProtobufCMessage *message)
{
	*(struct item *)message = (struct item){
		.base = { &item_type, 0, NULL },
		.name = (char *)protobuf_c_empty_string,
	};
}

const ProtobufCMessageDescriptor item_type = {
	.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
	.name = "test.Item",
	.short_name = "Item",
	.c_name = "Item",
	.package_name = "test",
	.sizeof_message = sizeof(struct item),
	.n_fields = 6,
	.fields = item_fields,
	.fields_sorted_by_name = item_by_name,
	.n_field_ranges = 1,
	.field_ranges = item_ranges,
	.message_init = item_init,
};

static inline struct item item_named(const char *name)
{
	struct item item;

	item_init(&item.base);
	item.name = (char *)name;
	return item;
}

#endif
