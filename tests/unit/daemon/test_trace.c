/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent: what is an id and what is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/core.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void taken(void **state)
{
	static const char *const good[] = {
		"00-" TRACE "-" PARENT "-01",
		"00-" TRACE "-" PARENT "-00",
		"cc-" TRACE "-" PARENT "-01",
		"cc-" TRACE "-" PARENT "-01-what comes later",
	};
	char id[TRACE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(trace_parse(good[i], id));
		assert_string_equal(id, TRACE);
	}
}

static void ignored(void **state)
{
	static const char *const bad[] = {
		"", "-", "00", "00-", TRACE,
		"00-" TRACE "-" PARENT,
		"00-" TRACE "-" PARENT "-",
		"00-" TRACE "-" PARENT "-1",
		"00-" TRACE "-" PARENT "-0g",
		"00-" TRACE "-" PARENT "-011",
		"00-" TRACE "-" PARENT "-01-",
		"cc-" TRACE "-" PARENT "-01x",
		"ff-" TRACE "-" PARENT "-01",
		"0-0" TRACE "-" PARENT "-01",
		"00-" TRACE "_" PARENT "-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
		"00-00000000000000000000000000000000-" PARENT "-01",
		"00-" TRACE "-0000000000000000-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473x-" PARENT "-01",
	};
	char id[TRACE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(id, "x");
		if (trace_parse(bad[i], id)) {
			fail_msg("\"%s\" was taken", bad[i]);
		}
		assert_string_equal(id, "");
	}
}

/* A header of any length is read no further than it reaches. */
static void cut_anywhere(void **state)
{
	static const char whole[] = "00-" TRACE "-" PARENT "-01";
	char id[TRACE_SIZE];

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *part = strndup(whole, n);

		assert_false(trace_parse(part, id));
		free(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),
		cmocka_unit_test(ignored),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
