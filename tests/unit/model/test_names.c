/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges to names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "controller/model/model.h"
#include "lib/base/buf.h"

/* The names of text, joined by blanks, are as expected. */
static void expands(const char *text, const char *expected)
{
	struct buf b = { 0 };
	struct err err = { 0 };
	char **names;
	int n;

	if (model_expand(text, 1000, &names, &n, &err)) {
		fail_msg("%s: %s", text, err.msg);
	}
	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%s%s", i ? " " : "", names[i]);
	}
	assert_null(names[n]);
	assert_string_equal(buf_cstr(&b), expected);
	buf_fini(&b);
	model_names_free(names);
}

static void refuses(const char *text, int max, int code, const char *message)
{
	struct err err = { 0 };
	char **names = (char **)1;
	int n = -1;

	assert_int_equal(code, model_expand(text, max, &names, &n, &err));
	assert_int_equal(code, err.code);
	assert_string_equal(err.msg, message);
	assert_null(names);
	assert_int_equal(n, 0);
}

static void plain_names_and_lists(void **state)
{
	(void)state;
	expands("gpu", "gpu");
	expands("a,b , c", "a b c");
	expands(" a ", "a");
	expands("h0.p1.tx", "h0.p1.tx");
	expands("b,a,b", "b a b");
}

static void ranges_keep_their_width(void **state)
{
	(void)state;
	expands("g[0-3]", "g0 g1 g2 g3");
	expands("g[08-11]", "g08 g09 g10 g11");
	expands("g[8-11]", "g8 g9 g10 g11");
	expands("g[000-001]x", "g000x g001x");
	expands("g[5]", "g5");
	expands("g[05]", "g05");
	expands("[1-2]", "1 2");
	expands("g[0-0]", "g0");
}

static void spans_may_be_listed(void **state)
{
	(void)state;
	expands("g[0-1,5,07-08]", "g0 g1 g5 g07 g08");
	expands("g[3, 1]", "g3 g1");
	expands("a[0-1],b[2-3]", "a0 a1 b2 b3");
}

static void the_last_bracket_counts_fastest(void **state)
{
	(void)state;
	expands("g[0-1].p[0-2]", "g0.p0 g0.p1 g0.p2 g1.p0 g1.p1 g1.p2");
	expands("r[1,3]c[0-1,4]", "r1c0 r1c1 r1c4 r3c0 r3c1 r3c4");
}

static void addresses_pass(void **state)
{
	(void)state;
	expands("127.0.0.1:[5025-5026]", "127.0.0.1:5025 127.0.0.1:5026");
	expands("10.0.[1-2].5:22", "10.0.1.5:22 10.0.2.5:22");
	expands("[2001:db8::1]:[5-6]", "[2001:db8::1]:5 [2001:db8::1]:6");
}

static void mistakes_name_their_column(void **state)
{
	(void)state;
	refuses("", 9, WEFT_EINVAL, "column 1: expected a name");
	refuses("a,", 9, WEFT_EINVAL, "column 3: expected a name");
	refuses("a,,b", 9, WEFT_EINVAL, "column 3: expected a name");
	refuses("g[3-1]", 9, WEFT_EINVAL,
		"column 3: the range 3-1 runs backwards");
	refuses("g[00-100]", 999, WEFT_EINVAL,
		"column 3: the ends of the range 00-100 have different "
		"widths");
	refuses("g[", 9, WEFT_EINVAL, "column 3: the range's ']' is missing");
	refuses("g[1", 9, WEFT_EINVAL, "column 4: the range's ']' is missing");
	refuses("g[1-]", 9, WEFT_EINVAL,
		"column 5: expected a number in the range");
	refuses("g[x]", 9, WEFT_EINVAL,
		"column 3: expected a number in the range");
	refuses("g]", 9, WEFT_EINVAL, "column 2: a ']' without '['");
	refuses("g h", 9, WEFT_EINVAL, "column 3: a blank inside a name");
	refuses("g[1234567890]", 9, WEFT_EINVAL,
		"column 3: the number is too long");
}

static void expansion_is_bounded_before_it_happens(void **state)
{
	char longest[300];

	(void)state;
	refuses("g[0-9]", 9, WEFT_ELIMIT, "more than 9 names");
	refuses("a,g[0-8]", 9, WEFT_ELIMIT, "more than 9 names");
	refuses("g[0-999999999]", 65536, WEFT_ELIMIT, "more than 65536 names");
	refuses("g[0-99999999][0-99999999][0-99999999][0-99999999]", 65536,
		WEFT_ELIMIT, "more than 65536 names");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	refuses(longest, 9, WEFT_EINVAL, "column 300: the name is too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_names_and_lists),
		cmocka_unit_test(ranges_keep_their_width),
		cmocka_unit_test(spans_may_be_listed),
		cmocka_unit_test(the_last_bracket_counts_fastest),
		cmocka_unit_test(addresses_pass),
		cmocka_unit_test(mistakes_name_their_column),
		cmocka_unit_test(expansion_is_bounded_before_it_happens),
	};

	return cmocka_run_group_tests_name("model/names", tests, NULL, NULL);
}
