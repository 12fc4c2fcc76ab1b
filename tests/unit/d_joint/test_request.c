/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of joint changes: what is written is read, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controller/daemon/joint/joint.h"
#include "weft/joint/v1/joint.pb-c.h"

#define HEX32 "0123456789abcdef0123456789abcdef"

/* Every field is not what it is by default. */
static void make_request(struct joint_request *r)
{
	static const char text[] = "weft: 1\nfabric: t\n";
	const struct model_request job = { .name = (char *)"j", .nodes = (char *)"a b",
					   .collective = (char *)"allreduce",
					   .topology = (char *)"Ring(2)",
					   .algorithm = (char *)"bfb", .ring = (char *)"r0",
					   .size_bytes = INT64_C(1) << 40, .channels = 3 };
	const struct model_request bare = { .name = (char *)"k" };

	*r = (struct joint_request){
		.order = { .request_id = strdup("id"), .who = strdup("root"),
			   .comment = strdup("now"), .arguments = HEX32 HEX32, .trace = HEX32 },
		.mode = PLAN_UPDATE, .ignore_floor = true, .digest = HEX32 HEX32,
	};
	model_config_init(&r->config, "t.yaml", text, sizeof(text) - 1);
	model_config_add(&r->config, &job);
	model_config_add(&r->config, &bare);
}

static void same_request(const struct joint_request *a, const struct joint_request *b)
{
	char one[65], other[65];

	assert_string_equal(a->order.request_id, b->order.request_id);
	assert_string_equal(a->config.name, b->config.name);
	model_config_hash(&a->config, one);
	model_config_hash(&b->config, other);
	assert_string_equal(one, other);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->ignore_floor, b->ignore_floor);
	assert_string_equal(a->digest, b->digest);
	assert_string_equal(a->order.who, b->order.who);
	assert_string_equal(a->order.comment, b->order.comment);
	assert_string_equal(a->order.arguments, b->order.arguments);
	assert_string_equal(a->order.trace, b->order.trace);
}

static void test_round_trip(void **state)
{
	struct joint_request r, got;
	struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	make_request(&r);
	joint_request_encode(&r, &b);
	if (joint_request_decode(b.data, b.len, &got, &err)) {
		fail_msg("%s", err.msg);
	}
	same_request(&r, &got);
	assert_string_equal(got.config.requests[0].topology, "Ring(2)");
	buf_fini(&b);
	joint_request_fini(&got);
	joint_request_fini(&r);
}

/* Every byte of it, with each bit turned. */
static void test_other_bytes(void **state)
{
	struct joint_request r, got;
	struct buf b = { 0 };

	(void)state;
	make_request(&r);
	joint_request_encode(&r, &b);
	for (size_t i = 0; i < 8 * b.len; i++) {
		struct err err = { 0 };
		struct buf again = { 0 };
		struct joint_request twice;

		b.data[i / 8] ^= (char)(1 << i % 8);
		if (joint_request_decode(b.data, b.len, &got, &err)) {
			assert_true(err.code < 0 && err.msg[0]);
			assert_null(got.config.text);
		} else {
			joint_request_encode(&got, &again);
			assert_int_equal(joint_request_decode(again.data, again.len, &twice, NULL),
					 0);
			same_request(&got, &twice);
			joint_request_fini(&twice);
			buf_fini(&again);
		}
		joint_request_fini(&got);
		b.data[i / 8] ^= (char)(1 << i % 8);
	}
	buf_fini(&b);
	joint_request_fini(&r);
}

/* ---- one field at a time ---- */

static void bad_mode(Weft__Joint__V1__JointRequest *m)
{
	m->mode = WEFT__V1__MODE__MODE_UNSPECIFIED;
}

static void bad_digest(Weft__Joint__V1__JointRequest *m)
{
	m->digest = (char *)HEX32;
}

static void bad_arguments(Weft__Joint__V1__JointRequest *m)
{
	m->arguments = (char *)HEX32 "0123456789abcdef0123456789abcdeg";
}

static void bad_trace(Weft__Joint__V1__JointRequest *m)
{
	m->trace = (char *)HEX32 "0";
}

static const struct {
	void (*spoil)(Weft__Joint__V1__JointRequest *m);
	int rc;
	const char *expected;
} wrong[] = {
	{ bad_mode, WEFT_EINVAL, "mode 0" },
	{ bad_digest, WEFT_EINVAL, "digest: not 64 hexadecimal digits" },
	{ bad_arguments, WEFT_EINVAL, "arguments: not 64 hexadecimal digits" },
	{ bad_trace, WEFT_EINVAL, "trace: not 32 hexadecimal digits" },
};

static void test_wrong_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		Weft__Joint__V1__JointRequest m = WEFT__JOINT__V1__JOINT_REQUEST__INIT;
		bool good = i == sizeof(wrong) / sizeof(wrong[0]);
		struct joint_request r;
		struct err err = { 0 };
		uint8_t bytes[512];

		m.name = (char *)"t.yaml";
		m.mode = WEFT__V1__MODE__MODE_SAFE;
		if (!good) {
			wrong[i].spoil(&m);
		}
		assert_in_range(protobuf_c_message_get_packed_size(&m.base), 1, sizeof(bytes));
		assert_int_equal(joint_request_decode(
					 bytes, protobuf_c_message_pack(&m.base, bytes), &r, &err),
				 good ? 0 : wrong[i].rc);
		if (!good && !strstr(err.msg, wrong[i].expected)) {
			fail_msg("%s, not %s", err.msg, wrong[i].expected);
		}
		joint_request_fini(&r);
	}
}

static void test_domains(void **state)
{
	static const char *const refused[] = {
		"", ",", "a,", ",a", "a,,b", "a,b,a", "a/b", "a b", "a,a",
	};
	char name[JOINT_NAME_MAX], text[JOINT_NAME_MAX + 1];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(joint_name("row1,row2", name, &err), 0);
	assert_string_equal(name, "row1");
	assert_int_equal(joint_name("row1", name, &err), 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (joint_name(refused[i], name, &err) != WEFT_EUSAGE) {
			fail_msg("\"%s\" is taken", refused[i]);
		}
	}
	memset(text, 'r', sizeof(text));
	text[JOINT_NAME_MAX] = '\0';
	assert_int_equal(joint_name(text, name, &err), WEFT_EUSAGE);
	assert_true(joint_has_domain("row1,row2", "row1"));
	assert_true(joint_has_domain("row1,row2", "row2"));
	assert_false(joint_has_domain("row1,row2", "row"));
	assert_false(joint_has_domain("row1,row2", "row1,row2"));
	assert_false(joint_has_domain("", "row1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_other_bytes),
		cmocka_unit_test(test_wrong_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
