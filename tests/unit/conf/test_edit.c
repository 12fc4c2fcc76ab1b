/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs that are renamed wherever they stand, and nothing else that changes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/conf/conf.h"

/* The value between marks, which need a backslash; "no" is refused. */
static int mark(const char *value, struct buf *out, void *arg, struct err *err)
{
	int *n = arg;

	if (strcmp(value, "no") == 0) {
		return err_set(err, WEFT_EDENIED, "no");
	}
	buf_printf(out, "\"%s\\%d", value, ++*n);
	return 0;
}

static void pairs_are_renamed(void **state)
{
	static const struct {
		const char *text, *want;
		int n;
	} cases[] = {
		{ "a: b\n", "a: b\n", 0 },
		{ "pw: x # c\n", "key: \"\\\"x\\\\1\" # c\n", 1 },
		{ "l:\n  - { u: pw, pw: 'a b', v: 1 }\n",
		  "l:\n  - { u: pw, key: \"\\\"a b\\\\1\", v: 1 }\n", 1 },
		{ "{\"pw\":\"x\",\"o\":{\"pw\":\"y\"}}",
		  "{key: \"\\\"x\\\\1\",\"o\":{key: \"\\\"y\\\\2\"}}", 2 },
		{ "\xc3\xa9: \xc3\xa9\npw: \xc3\xa9\nz: [pw, { pw: [pw] }]\n",
		  "\xc3\xa9: \xc3\xa9\nkey: \"\\\"\xc3\xa9\\\\1\"\nz: [pw, { pw: [pw] }]\n", 1 },
		{ "o:\n  pw: |-\n    x\n  b: 1\n", "o:\n  key: \"\\\"x\\\\1\"\n  b: 1\n", 1 },
		{ "[a, b]: pw\nc: pw\npw: d", "[a, b]: pw\nc: pw\nkey: \"\\\"d\\\\1\"", 1 },
		{ "pw:\n  pw: e\n", "pw:\n  key: \"\\\"e\\\\1\"\n", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = { 0 };
		struct err err = { 0 };
		int n = 0;

		assert_int_equal(conf_rename(cases[i].text, strlen(cases[i].text), "pw", "key",
					     mark, &n, &out, &err), cases[i].n);
		assert_int_equal(n, cases[i].n);
		assert_string_equal(buf_cstr(&out), cases[i].want);
		buf_fini(&out);
	}
}

static void refusals_end_it(void **state)
{
	static const struct {
		const char *text;
		int rc;
	} cases[] = { { "a: {pw: x", WEFT_EINVAL }, { "pw: no\n{", WEFT_EDENIED } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = { 0 };
		struct err err = { 0 };
		int n = 0;

		assert_int_equal(conf_rename(cases[i].text, strlen(cases[i].text), "pw", "key",
					     mark, &n, &out, &err), cases[i].rc);
		assert_int_equal(err.code, cases[i].rc);
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_are_renamed),
		cmocka_unit_test(refusals_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
