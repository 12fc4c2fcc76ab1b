/* SPDX-License-Identifier: Apache-2.0 */
/* The decode boundary alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/rpc/rpc.h"
#include "tests/unit/rpc/message.h"

static int decode(const void *data, size_t len, size_t budget,
		  struct err *err)
{
	ProtobufCMessage *msg;
	int r = rpc_decode(&item_type, data, len, budget, &msg, err);

	assert_int_equal(r == 0, msg != NULL);
	rpc_free_message(msg);
	return r;
}

#define DECODE(bytes, err) decode(bytes, sizeof(bytes) - 1, 0, err)

static void test_good(void **state)
{
	static const uint8_t bytes[] =
		"\x0a\x02hi\x12\x04\x0a\x02yo\x18\x96\x01\x22\x01\xff\x2a\x00"
		"\x32\x01t";
	ProtobufCMessage *msg;
	struct err err;
	struct item *item;

	(void)state;
	assert_int_equal(rpc_decode(&item_type, bytes, sizeof(bytes) - 1, 0,
				    &msg, &err),
			 0);
	item = (struct item *)msg;
	assert_string_equal(item->name, "hi");
	assert_string_equal(item->child[0]->name, "yo");
	assert_int_equal(item->n, 150);
	assert_int_equal(item->data.data[0], 0xff);
	assert_non_null(item->one);
	assert_string_equal(item->tag[0], "t");
	rpc_free_message(msg);
	assert_int_equal(rpc_decode(&item_type, NULL, 0, 0, &msg, &err), 0);
	assert_string_equal(((struct item *)msg)->name, "");
	rpc_free_message(msg);
	rpc_free_message(NULL);
}

static void test_strings(void **state)
{
	static const char *const good[] = {
		"a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
	};
	static const char *const bad[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2z",
		"\xe0\x9f\xbf", "\xe2\x86", "\xed\xa0\x80", "\xed\xbf\xbf",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xf8\x88\x80\x80\x80", "\xff", "\xf0\x90\x80",
	};
	uint8_t bytes[16] = { 0x0a };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		bytes[1] = (uint8_t)strlen(good[i]);
		memcpy(bytes + 2, good[i], bytes[1]);
		assert_int_equal(decode(bytes, 2 + bytes[1], 0, &err), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bytes[1] = (uint8_t)strlen(bad[i]);
		memcpy(bytes + 2, bad[i], bytes[1]);
		assert_int_equal(decode(bytes, 2 + bytes[1], 0, &err),
				 WEFT_EINVAL);
	}
	assert_int_equal(DECODE("\x0a\x03" "a\0b", &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "test.Item.name: zero byte in a string");
	/* Deep inside, and in a repeated field, too. */
	assert_int_equal(DECODE("\x12\x05\x2a\x03\x0a\x01\xff", &err),
			 WEFT_EINVAL);
	assert_int_equal(DECODE("\x32\x01" "a\x32\x01\xff", &err), WEFT_EINVAL);
	assert_string_equal(err.msg,
			    "test.Item.tag: not valid UTF-8 at byte 0");
	/* bytes fields and unknown fields are not text. */
	assert_int_equal(DECODE("\x22\x02\xff\0\x7a\x01\xff", &err), 0);
}

static void test_malformed(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(DECODE("\x0a", &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "malformed test.Item message");
	assert_int_equal(DECODE("\x0a\x05" "abc", &err), WEFT_EINVAL);
	assert_int_equal(DECODE("\x0a\xff\xff\xff\xff\xff\x01", &err),
			 WEFT_EINVAL);
	assert_int_equal(DECODE("\x0a\xff\xff\xff\xff\x7f", &err),
			 WEFT_EINVAL);
	assert_int_equal(DECODE("\x80\x80\x80\x80\x80\x01", &err),
			 WEFT_EINVAL);
	assert_int_equal(DECODE("\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
				"\x01",
				&err),
			 WEFT_EINVAL);
	/* Field numbers 0, also in more bytes than it takes, and 2^29. */
	assert_int_equal(DECODE("\x00\x00", &err), WEFT_EINVAL);
	assert_int_equal(DECODE("\x80\x00\x00", &err), WEFT_EINVAL);
	assert_int_equal(DECODE("\x80\x80\x80\x80\x10\x00", &err),
			 WEFT_EINVAL);
	assert_int_equal(DECODE("\xf8\xff\xff\xff\x0f\x00", &err), 0);
	/* Groups; fixed widths that are cut; the wrong wire type. */
	assert_int_equal(DECODE("\x1b\x1c", &err), WEFT_EINVAL);
	assert_int_equal(DECODE("\x7d\x01\x02\x03", &err), WEFT_EINVAL);
	assert_int_equal(DECODE("\x79\x01\x02\x03\x04\x05\x06\x07", &err),
			 WEFT_EINVAL);
	assert_int_equal(DECODE("\x08\x01", &err), WEFT_EINVAL);
	assert_int_equal(DECODE("\x1a\x01\x01", &err), WEFT_EINVAL);
}

/* `depth` messages inside each other: lengths grow outwards. */
static int decode_nested(int depth, struct err *err)
{
	size_t size = 6 * (size_t)depth + 1, len = 0;
	uint8_t *bytes = calloc(1, size), *p = bytes + size;
	int r;

	for (int i = 1; i < depth; i++) {
		/* The length in five bytes, whatever it is. */
		p -= 5;
		for (int b = 0; b < 5; b++) {
			p[b] = (uint8_t)(len >> (7 * b) & 0x7f) |
			       (b < 4 ? 0x80 : 0);
		}
		*--p = 0x12;
		len += 6;
	}
	r = decode(p, len, 0, err);
	free(bytes);
	return r;
}

static void test_nesting(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(decode_nested(1, &err), 0);
	assert_int_equal(decode_nested(RPC_MAX_NESTING, &err), 0);
	assert_int_equal(decode_nested(RPC_MAX_NESTING + 1, &err),
			 WEFT_EINVAL);
	/* Enough to overflow protobuf-c's stack if it got there. */
	assert_int_equal(decode_nested(200000, &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "test.Item.child: nested deeper than 32 "
				     "messages");
}

static void test_budget(void **state)
{
	const size_t many = 100000;
	uint8_t *bytes = malloc(2 * many);
	struct err err;

	(void)state;
	for (size_t i = 0; i < many; i++) {
		memcpy(bytes + 2 * i, "\x12\x00", 2);
	}
	assert_int_equal(decode(bytes, 2 * many, 1 << 20, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "1048576 bytes of memory"));
	assert_int_equal(decode(bytes, 2 * many, 64 << 20, &err), 0);
	assert_int_equal(decode(bytes, 2 * many, 1, &err), WEFT_ELIMIT);
	free(bytes);
}

/* protobuf-c merges a repeated singular message, quadratically in what is
 * inside; no encoder makes such a thing. */
static void test_singular_twice(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(DECODE("\x2a\x00", &err), 0);
	assert_int_equal(DECODE("\x2a\x00\x2a\x00", &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "test.Item.one: given twice");
	/* Scalars may: the last one counts. */
	assert_int_equal(DECODE("\x18\x01\x18\x02", &err), 0);
	assert_int_equal(DECODE("\x0a\x01" "a\x0a\x01" "b", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_singular_twice),
	};

	return cmocka_run_group_tests_name("rpc/decode", tests, NULL, NULL);
}
