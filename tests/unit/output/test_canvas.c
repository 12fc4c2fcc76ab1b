/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: text finds its room or is counted, nothing is outside, layouts keep distances. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output/canvas.h"

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what)) {
		n++;
	}
	return n;
}

static void text_covers_no_text(void **state)
{
	struct svg_canvas c = { 0 };
	struct buf b = { 0 };

	(void)state;
	svg_open(&c, "a title", "and what it is of");
	assert_true(svg_put(&c, 100, 100, 'b', SVG_TEXT, 0, "first"));
	assert_false(svg_put(&c, 100, 105, 'b', SVG_TEXT, 0, "first"));
	assert_false(
		svg_put(&c, 100 + svg_width(SVG_TEXT, "first") - 1, 100, 'b', SVG_TEXT, 0, "x"));
	assert_true(
		svg_put(&c, 100 + svg_width(SVG_TEXT, "first") + 2, 100, 'b', SVG_TEXT, 0, "x"));
	assert_true(svg_put(&c, 98, 100, 'e', SVG_TEXT, 0, "before"));
	assert_true(svg_put(&c, 100, 116, 'm', SVG_TEXT, 0, "below"));
	svg_keep_off(&c, 300, 300, 20, 20);
	assert_false(svg_put(&c, 310, 310, 'm', SVG_SMALL, 0, "9"));
	/* Not to the left of everything. */
	assert_false(svg_put(&c, 2, 400, 'm', SVG_TEXT, 0, "wide"));
	assert_int_equal(c.dropped, 4);
	svg_tell_dropped(&c, 20, 500, "names");
	assert_int_equal(c.dropped, 0);
	svg_close(&c, &b);
	assert_int_equal(count(buf_cstr(&b), "and 4 more names"), 1);
	buf_fini(&b);
}

static void long_text_is_shortened(void **state)
{
	struct svg_canvas c = { 0 };
	struct buf b = { 0 };

	(void)state;
	svg_open(&c, "t", "a");
	assert_true(svg_put(&c, 100, 100, 'b', SVG_TEXT, 60, "a-name-that-is-too-long"));
	assert_true(svg_put(&c, 100, 130, 'b', SVG_TEXT, 60, "short"));
	svg_close(&c, &b);
	assert_non_null(strstr(buf_cstr(&b), "<title>a-name-that-is-too-long</title>a-n"));
	assert_int_equal(count(buf_cstr(&b), "\xe2\x80\xa6</text>"), 1);
	assert_true(svg_width(SVG_TITLE, "WWW") > 3 * 18);
	buf_fini(&b);
}

/* What no XML may have, and what would turn text round, becomes a question mark. */
static void any_bytes_are_safe(void **state)
{
	struct svg_canvas c = { 0 };
	struct buf b = { 0 };

	(void)state;
	svg_open(&c, "<a>&\x01\xff\xe2\x80\xae", "\"'");
	svg_close(&c, &b);
	assert_non_null(strstr(buf_cstr(&b), "<title>&lt;a&gt;&amp;?\?\?</title>"));
	buf_fini(&b);
}

static void the_size_is_that_of_what_is_drawn(void **state)
{
	const struct svg_key keys[] = {
		{ SVG_KEY_FILL, NULL, 9, NULL, "a fill" },
		{ SVG_KEY_LINE, "c1 d1", -1, NULL, "a line" },
		{ SVG_KEY_DOT, "bad", -1, NULL, "a dot" },
		{ SVG_KEY_SIGN, "c2", -1, "A", "a letter" },
	};
	struct svg_canvas c = { 0 };
	struct buf b = { 0 };

	(void)state;
	svg_open(&c, "t", "a");
	svg_card(&c, 20, 80, 700, 100);
	/* The last key goes to a second line. */
	assert_true(fabs(svg_legend(&c, 20, 200, 240, keys, 4) - 200 - 44) < 1e-9);
	svg_circle(&c, "fill c3", 900, 500, 10);
	svg_close(&c, &b);
	assert_non_null(strstr(buf_cstr(&b),
			       "width=\"930\" height=\"530\" viewBox=\"0 0 930 530\""));
	assert_non_null(strstr(buf_cstr(&b), "url(#h2)"));
	buf_fini(&b);
}

/* On a path of nodes distances can be kept; the same comes out each time. */
static void a_layout_keeps_distances(void **state)
{
	enum { N = 12 };
	int32_t ends[2 * N];
	double xy[2 * N], again[2 * N];

	(void)state;
	for (int i = 0; i < N - 1; i++) {
		ends[2 * i] = i;
		ends[2 * i + 1] = i + 1;
	}
	svg_layout(N, ends, N - 1, xy);
	svg_layout(N, ends, N - 1, again);
	assert_memory_equal(xy, again, sizeof(xy));
	for (int i = 0; i < N - 1; i++) {
		double far = hypot(xy[2 * i] - xy[2 * i + 2], xy[2 * i + 1] - xy[2 * i + 3]);

		assert_true(far > 0.9 / (N - 1) && far < 1.2 / (N - 1));
		assert_true(xy[2 * i] >= 0 && xy[2 * i] <= 1 && xy[2 * i + 1] >= 0);
	}
	/* Also of parts that are apart, and of one node. */
	svg_layout(N, ends, 3, xy);
	svg_layout(1, ends, 0, xy);
	assert_true(isfinite(xy[0]) && isfinite(xy[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_covers_no_text),
		cmocka_unit_test(long_text_is_shortened),
		cmocka_unit_test(any_bytes_are_safe),
		cmocka_unit_test(the_size_is_that_of_what_is_drawn),
		cmocka_unit_test(a_layout_keeps_distances),
	};

	return cmocka_run_group_tests_name("output/canvas", tests, NULL, NULL);
}
