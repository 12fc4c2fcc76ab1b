/* SPDX-License-Identifier: Apache-2.0 */
/* The page's history: bounded, newest samples complete, and told as it was put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "controller/daemon/views/private.h"

#define MANY 5000
#define GONE_AT 100	/* "old" has no samples from here on */

static json_t *told(const struct page_history *h, int64_t after)
{
	struct buf b = { 0 };
	json_t *j;

	page_history_out(h, after, &b);
	j = json_loadb(b.data, b.len, 0, NULL);
	assert_non_null(j);
	buf_fini(&b);
	return j;
}

static const json_t *values_of(const json_t *j, const char *name)
{
	const json_t *s;
	size_t i;

	json_array_foreach(json_object_get(j, "series"), i, s) {
		if (strcmp(json_string_value(json_object_get(s, "name")), name) == 0) {
			return json_object_get(s, "values");
		}
	}
	return NULL;
}

static struct page_history *filled(const char *what, int n)
{
	struct page_history *h = page_history_new();

	for (int i = 0; i < n; i++) {
		page_history_begin(h);
		page_history_put(h, what, "a \"b\"", i);
		if (i < GONE_AT) {
			page_history_put(h, what, "old", -i);
		}
	}
	return h;
}

static void test_few(void **state)
{
	struct page_history *h = filled("rate", GONE_AT + 2);
	json_t *j = told(h, 0);
	const json_t *a = values_of(j, "a \"b\""), *old = values_of(j, "old");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(j, "at_ms")), GONE_AT + 2);
	assert_int_equal(json_integer_value(json_object_get(j, "newest")), GONE_AT + 2);
	for (size_t i = 0; i < GONE_AT + 2; i++) {
		assert_int_equal(json_integer_value(json_array_get(a, i)), i);
		assert_int_equal(json_is_null(json_array_get(old, i)), i >= GONE_AT);
	}
	assert_int_equal(json_integer_value(json_array_get(old, 7)), -7);
	json_decref(j);
	j = told(h, GONE_AT);
	assert_int_equal(json_array_size(values_of(j, "a \"b\"")), 2);
	json_decref(j);
	j = told(h, INT64_MAX);
	assert_int_equal(json_array_size(values_of(j, "old")), 0);
	json_decref(j);
	page_history_free(h);
}

/* The newest hundred are all there, older ones are fewer, and in order. */
static void test_many(void **state)
{
	struct page_history *h = filled("rate", MANY);
	json_t *j = told(h, 0);
	const json_t *a = values_of(j, "a \"b\"");
	int64_t n = (int64_t)json_array_size(a), last = -1;

	(void)state;
	assert_in_range(n, 256, 1024);
	for (int64_t i = 0; i < n; i++) {
		int64_t v = json_integer_value(json_array_get(a, (size_t)i));

		assert_true(v > last);
		assert_true(i < n - 100 || v == MANY - n + i);
		last = v;
	}
	assert_int_equal(last, MANY - 1);
	assert_true(json_integer_value(json_array_get(a, 0)) < MANY / 2);
	json_decref(j);
	page_history_free(h);
}

/* Values beyond 32 bits are cut, and names beyond the limit are left out. */
static void test_limits(void **state)
{
	struct page_history *h = page_history_new();
	char name[16];
	json_t *j;

	(void)state;
	page_history_begin(h);
	page_history_put(h, "drift", "large", INT64_MAX);
	page_history_put(h, "drift", "small", INT64_MIN);
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		page_history_put(h, "power", name, i);
	}
	j = told(h, 0);
	assert_int_equal(json_integer_value(json_array_get(values_of(j, "large"), 0)), INT32_MAX);
	assert_int_equal(json_integer_value(json_array_get(values_of(j, "small"), 0)),
			 INT32_MIN + 1);
	assert_int_equal(json_array_size(json_object_get(j, "series")), 512);
	json_decref(j);
	page_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
