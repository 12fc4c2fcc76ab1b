/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base: vec, map, buf. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/map.h"
#include "lib/base/number/rng.h"
#include "lib/base/vec.h"

struct pair {
	int a, b;
};

static void vec_grows(void **state)
{
	VEC(struct pair) v = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		vec_push(&v, (struct pair){ i, -i });
	}
	assert_int_equal(v.n, 1000);
	assert_true(v.cap >= v.n);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(v.v[i].a, i);
		assert_int_equal(v.v[i].b, -i);
	}
	vec_reserve(&v, 5000);
	assert_true(v.cap >= 6000);
	assert_int_equal(v.v[999].a, 999);
	vec_fini(&v);
	assert_null(v.v);
	vec_push(&v, (struct pair){ 1, 2 });
	vec_fini(&v);
}

static void strmap_against_array(void **state)
{
	enum { N = 3000 };
	struct strmap m = { 0 };
	static int values[N];
	struct rng rng;
	char key[32];

	(void)state;
	assert_null(strmap_get(&m, "absent"));
	rng_seed(&rng, 9);
	for (int i = 0; i < 3 * N; i++) {
		int k = (int)rng_below(&rng, N);

		values[k] = i + 1;
		snprintf(key, sizeof(key), "gpu%d.p%d", k / 4, k % 4);
		strmap_set(&m, key, &values[k]);
	}
	memset(key, 'x', sizeof(key) - 1);	/* keys are copies */
	for (int k = 0; k < N; k++) {
		void *got;

		snprintf(key, sizeof(key), "gpu%d.p%d", k / 4, k % 4);
		got = strmap_get(&m, key);
		assert_ptr_equal(got, values[k] ? &values[k] : NULL);
	}
	strmap_set(&m, "", values);
	assert_ptr_equal(strmap_get(&m, ""), values);
	strmap_set(&m, "", &values[1]);
	assert_ptr_equal(strmap_get(&m, ""), &values[1]);
	strmap_fini(&m);
	assert_null(strmap_get(&m, ""));
	strmap_fini(&m);
}

static void u64map_against_array(void **state)
{
	enum { N = 4096 };
	struct u64map m = { 0 };
	static uint64_t values[N];
	struct rng rng;
	size_t distinct = 0;
	uint64_t v;

	(void)state;
	assert_false(u64map_get(&m, 0, &v));
	rng_seed(&rng, 10);
	for (int i = 0; i < 2 * N; i++) {
		uint64_t k = rng_below(&rng, N);

		distinct += values[k] == 0;
		values[k] = rng_u64(&rng) | 1;
		/* Keys that differ in high bits only, zero among them. */
		u64map_set(&m, k << 52, values[k]);
		assert_int_equal(m.n, distinct);
	}
	for (uint64_t k = 0; k < N; k++) {
		v = 0;
		assert_int_equal(u64map_get(&m, k << 52, &v), values[k] != 0);
		assert_true(v == values[k]);
		assert_int_equal(u64map_get(&m, k << 52, NULL),
				 values[k] != 0);
	}
	u64map_fini(&m);
	assert_false(u64map_get(&m, 1, NULL));
}

static void hash_is_fnv1a(void **state)
{
	(void)state;
	assert_true(hash_bytes("", 0) == 0xcbf29ce484222325u);
	assert_true(hash_bytes("a", 1) == 0xaf63dc4c8601ec8cu);
	assert_true(hash_bytes("foobar", 6) == 0x85944171f73967e8u);
}

static void buf_appends(void **state)
{
	struct buf b = { 0 };
	char big[1000];

	(void)state;
	assert_string_equal(buf_cstr(&b), "");
	buf_str(&b, "ab");
	buf_char(&b, 'c');
	buf_add(&b, "\0d", 2);
	buf_add(&b, NULL, 0);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "abc\0d", 6);
	buf_consume(&b, 4);
	assert_string_equal(buf_cstr(&b), "d");
	buf_consume(&b, 0);
	buf_consume(&b, 1);
	assert_string_equal(buf_cstr(&b), "");
	memset(big, 'y', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	/* Around the size of the inner buffer, and far beyond it. */
	for (int n = 250; n < 262; n++) {
		buf_reset(&b);
		buf_printf(&b, "%.*s|%d", n, big, n);
		assert_int_equal(b.len, n + 4);
		assert_int_equal(strlen(b.data), n + 4);
		assert_int_equal(b.data[n], '|');
	}
	buf_reset(&b);
	for (int i = 0; i < 100; i++) {
		buf_printf(&b, "%s%d", big, i);
	}
	assert_int_equal(b.len, 100 * 999 + 190);
	buf_fini(&b);
}

static void buf_steal_hands_over(void **state)
{
	struct buf b = { 0 };
	char *s;

	(void)state;
	s = buf_steal(&b);
	assert_string_equal(s, "");
	free(s);
	buf_str(&b, "text");
	s = buf_steal(&b);
	assert_string_equal(s, "text");
	assert_string_equal(buf_cstr(&b), "");
	assert_int_equal(b.len, 0);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_grows),
		cmocka_unit_test(strmap_against_array),
		cmocka_unit_test(u64map_against_array),
		cmocka_unit_test(hash_is_fnv1a),
		cmocka_unit_test(buf_appends),
		cmocka_unit_test(buf_steal_hands_over),
	};

	return cmocka_run_group_tests_name("base/containers", tests, NULL,
					   NULL);
}
