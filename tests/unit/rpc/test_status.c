/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses, percent-encoding, timeouts and message framing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/rpc/private.h"
#include "tests/unit/rpc/message.h"

static void test_codes(void **state)
{
	(void)state;
	assert_string_equal(rpc_status_name(RPC_NOT_FOUND), "NOT_FOUND");
	assert_string_equal(rpc_status_name(99), "UNKNOWN");
	assert_string_equal(rpc_status_name(-1), "UNKNOWN");
	assert_int_equal(rpc_status_of_code(WEFT_OK), RPC_INTERNAL);
	assert_int_equal(rpc_code_of_status(RPC_OK), WEFT_OK);
	assert_int_equal(rpc_code_of_status(17), WEFT_EINTERNAL);
	/* An error must never turn into success, in either direction. */
	for (int code = -1; code >= WEFT_EHELD; code--) {
		assert_int_not_equal(rpc_status_of_code(code), RPC_OK);
	}
	for (int s = 1; s <= RPC_UNAUTHENTICATED; s++) {
		assert_true(rpc_code_of_status(s) < 0);
	}
	assert_int_equal(rpc_status_of_http(404), RPC_UNIMPLEMENTED);
	assert_int_equal(rpc_status_of_http(503), RPC_UNAVAILABLE);
	assert_int_equal(rpc_status_of_reset(NGHTTP2_REFUSED_STREAM),
			 RPC_UNAVAILABLE);
}

static void test_percent(void **state)
{
	struct rpc_headers h = { .n = 0 };
	char text[64];

	(void)state;
	rpc_headers_add_encoded(&h, "x", "a%b\n\xc3\xbc ~");
	assert_string_equal((char *)h.nv[0].value, "a%25b%0A%C3%BC ~");
	rpc_percent_decode("a%25b%0a%C3%bc ~", 16, text, sizeof(text));
	assert_string_equal(text, "a%b\n\xc3\xbc ~");
	/* What is no escape stays; what does not fit is cut. */
	rpc_percent_decode("%4", 2, text, sizeof(text));
	assert_string_equal(text, "%4");
	rpc_percent_decode("%zz%4z%", 7, text, sizeof(text));
	assert_string_equal(text, "%zz%4z%");
	rpc_percent_decode("abcdef", 6, text, 4);
	assert_string_equal(text, "abc");
	rpc_percent_decode("a%00b", 5, text, sizeof(text));
	assert_string_equal(text, "a b");
	rpc_percent_decode("", 0, text, 1);
	assert_string_equal(text, "");
}

/* A value too long for its room is cut between characters. */
static void test_percent_cut(void **state)
{
	struct rpc_headers h = { .n = 0 };
	char value[2 * sizeof(h.text)], back[sizeof(h.text)];
	size_t len;

	(void)state;
	for (size_t i = 0; i + 3 < sizeof(value); i += 3) {
		memcpy(value + i, "\xe2\x86\x92", 4);
	}
	rpc_headers_add_encoded(&h, "x", value);
	len = h.nv[0].valuelen;
	assert_true(len > sizeof(h.text) - 12 && len < sizeof(h.text));
	assert_int_equal(len % 9, 0);
	rpc_percent_decode((char *)h.nv[0].value, len, back, sizeof(back));
	assert_memory_equal(back, value, strlen(back));
	rpc_headers_add_encoded(&h, "y", value);
	assert_true(h.used <= sizeof(h.text));
}

static void test_other_trailers(void **state)
{
	struct err err = { 0 };
	int status = -1;

	(void)state;
	rpc_status_read("grpc-status", "5", 1, &status, &err);
	assert_int_equal(status, RPC_NOT_FOUND);
	rpc_status_read("grpc-status", "x", 1, &status, &err);
	assert_int_equal(status, RPC_UNKNOWN);
	rpc_status_read("weft-place", "file", 4, &status, &err);
	rpc_status_read("weft-place", "file:7", 6, &status, &err);
	rpc_status_read("weft-place", "f:-1:2", 6, &status, &err);
	assert_string_equal(err.file, "");
	rpc_status_read("weft-error", "NEWER", 5, &status, &err);
	assert_int_equal(err.code, WEFT_EINTERNAL);
	rpc_status_read("weft-error", "OK", 2, &status, &err);
	assert_int_equal(err.code, WEFT_OK);
}

static void test_timeouts(void **state)
{
	char text[16];

	(void)state;
	assert_int_equal(rpc_timeout_parse("1n"), 1);
	assert_int_equal(rpc_timeout_parse("20u"), 20000);
	assert_int_equal(rpc_timeout_parse("3m"), 3000000);
	assert_int_equal(rpc_timeout_parse("4S"), 4000000000);
	assert_int_equal(rpc_timeout_parse("2M"), 120000000000);
	assert_int_equal(rpc_timeout_parse("1H"), 3600000000000);
	assert_int_equal(rpc_timeout_parse("99999999H"), INT64_MAX / 4);
	assert_int_equal(rpc_timeout_parse("0m"), 0);
	assert_int_equal(rpc_timeout_parse(""), -1);
	assert_int_equal(rpc_timeout_parse("m"), -1);
	assert_int_equal(rpc_timeout_parse("5"), -1);
	assert_int_equal(rpc_timeout_parse("5x"), -1);
	assert_int_equal(rpc_timeout_parse("5mm"), -1);
	assert_int_equal(rpc_timeout_parse("-5m"), -1);
	assert_int_equal(rpc_timeout_parse("123456789n"), -1);
	assert_string_equal(rpc_timeout_format(1500, text), "1500m");
	assert_string_equal(rpc_timeout_format(INT32_MAX, text), "2147484S");
}

/* Three messages, cut at every place, give the same three messages. */
static void test_deframe_any_split(void **state)
{
	struct item item = item_named("");
	struct buf all = { 0 };

	(void)state;
	for (item.n = 0; item.n < 3; item.n++) {
		assert_int_equal(rpc_frame_append(&all, &item.base, 100, NULL),
				 0);
	}
	for (size_t cut = 0; cut <= all.len; cut++) {
		struct rpc_deframer d = { .max = 10 };
		const uint8_t *p = (uint8_t *)all.data;
		size_t part[2] = { cut, all.len - cut };
		int n = 0;

		for (int i = 0; i < 2; i++) {
			while (part[i] > 0) {
				int r = rpc_deframe(&d, &p, &part[i], NULL);

				assert_true(r >= 0);
				if (r > 0) {
					assert_int_equal(d.body.len,
							 n ? 2 : 0);
					rpc_deframer_next(&d);
					n++;
				}
			}
		}
		assert_int_equal(n, 3);
		assert_false(rpc_deframer_partial(&d));
		rpc_deframer_fini(&d);
	}
	buf_fini(&all);
}

static int deframe(const char *bytes, size_t len)
{
	struct rpc_deframer d = { .max = 10 };
	const uint8_t *p = (const uint8_t *)bytes;
	int r = rpc_deframe(&d, &p, &len, NULL);

	rpc_deframer_fini(&d);
	return r;
}

static void test_deframe_refusals(void **state)
{
	(void)state;
	assert_int_equal(deframe("\0\0\0\0\xb", 5), WEFT_ELIMIT);
	assert_int_equal(deframe("\0\xff\xff\xff\xff", 5), WEFT_ELIMIT);
	assert_int_equal(deframe("\1\0\0\0\1", 5), WEFT_EINTERNAL);
	assert_int_equal(deframe("\2\0\0\0\1", 5), WEFT_EINVAL);
	assert_int_equal(deframe("\0\0\0\0\xa", 5), 0);
	assert_int_equal(deframe("\0\0\0\0\0", 5), 1);
}

static void test_frame_bound(void **state)
{
	struct item item = item_named("hello");
	struct buf out = { 0 };
	struct err err;

	(void)state;
	buf_str(&out, "x");
	assert_int_equal(rpc_frame_append(&out, &item.base, 11, &err),
			 WEFT_ELIMIT);
	assert_int_equal(out.len, 1);
	assert_int_equal(rpc_frame_append(&out, &item.base, 12, &err), 0);
	assert_int_equal(out.len, 13);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_percent_cut),
		cmocka_unit_test(test_other_trailers),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_deframe_any_split),
		cmocka_unit_test(test_deframe_refusals),
		cmocka_unit_test(test_frame_bound),
	};

	return cmocka_run_group_tests_name("rpc/status", tests, NULL, NULL);
}
