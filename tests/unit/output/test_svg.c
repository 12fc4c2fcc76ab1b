/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings: text is safe, charts show every value at its height. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/svg.h"

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what)) {
		n++;
	}
	return n;
}

static void text_is_safe(void **state)
{
	struct buf b = { 0 };

	(void)state;
	svg_label(&b, 1, 2, 'e', "a<b>&c\x01");
	assert_string_equal(buf_cstr(&b), "<text x=\"1.0\" y=\"2.0\" "
			    "text-anchor=\"end\">a&lt;b&gt;&amp;c </text>\n");
	buf_fini(&b);
}

/* Heights of the bars of a series, in order. */
static int heights(const char *svg, const char *colour, double *out)
{
	char key[64];
	int n = 0;

	snprintf(key, sizeof(key), "fill=\"%s\"><title>", colour);
	for (; (svg = strstr(svg, key)); svg++) {
		const char *h = svg;

		while (strncmp(h, "height=\"", 8) != 0) {
			h--;
		}
		out[n++] = atof(h + 8);
	}
	return n;
}

static struct svg_chart chart(const struct svg_series *series,
			      const char *const *group)
{
	return (struct svg_chart){ .title = "t", .x_label = "x",
				   .y_label = "y", .group = group,
				   .n_groups = 3, .series = series,
				   .n_series = 2 };
}

static void bars_are_as_high_as_values(void **state)
{
	static const double first[] = { 10, 20, 40 }, rest[] = { 1, -1, 0 };
	static const char *const group[] = { "a", "b", "c" };
	const struct svg_series series[] = { { "one", first },
					     { "two", rest } };
	struct svg_chart c = chart(series, group);
	struct buf b = { 0 }, again = { 0 };
	double h[3];

	(void)state;
	svg_chart(&b, &c, 0);
	svg_chart(&again, &c, 0);
	assert_string_equal(buf_cstr(&b), buf_cstr(&again));
	assert_int_equal(heights(buf_cstr(&b), "#4477aa", h), 3);
	assert_true(h[1] > 1.98 * h[0] && h[1] < 2.02 * h[0]);
	assert_true(h[2] > 3.98 * h[0] && h[2] < 4.02 * h[0]);
	/* A negative value is not there, zero is. */
	assert_int_equal(heights(buf_cstr(&b), "#ee6677", h), 2);
	buf_reset(&b);
	c.log = true;
	svg_chart(&b, &c, 0);
	assert_int_equal(heights(buf_cstr(&b), "#4477aa", h), 3);
	assert_true(h[2] - h[1] > 0.97 * (h[1] - h[0]));
	assert_true(h[2] - h[1] < 1.03 * (h[1] - h[0]));
	assert_int_equal(heights(buf_cstr(&b), "#ee6677", h), 1);
	buf_fini(&b);
	buf_fini(&again);
}

static void lines_break_where_nothing_is(void **state)
{
	static const double first[] = { 10, -1, 40 }, rest[] = { 1, 2, 3 };
	static const char *const group[] = { "a", "b", "c" };
	const struct svg_series series[] = { { "one", first },
					     { "two", rest } };
	struct svg_chart c = chart(series, group);
	struct buf b = { 0 };
	const char *path;

	(void)state;
	c.lines = c.values = true;
	svg_chart(&b, &c, 0);
	assert_int_equal(count(buf_cstr(&b), "<circle"), 5);
	path = strstr(buf_cstr(&b), "stroke-width=\"2\"");
	assert_non_null(path);
	path = strstr(path, "d=\"");
	/* Two pieces of one point, then a line of three. */
	assert_int_equal(path[3], 'M');
	assert_null(memchr(path, 'L', (size_t)(strstr(path, "/>") - path)));
	buf_fini(&b);
}

static void lines_go_below_zero(void **state)
{
	static const double first[] = { 10, -10, 0 }, rest[] = { NAN, -5, 5 };
	static const char *const group[] = { "a", "b", "c" };
	static const char *const mark[] = { "X", NULL, "<Y>" };
	const struct svg_series series[] = { { "one", first },
					     { "two", rest } };
	const struct svg_line line[] = { { mark, 2, false }, { NULL, 0, true } };
	struct svg_chart c = chart(series, group);
	struct buf b = { 0 };
	const char *at;
	double y[5];

	(void)state;
	c.lines = c.negative = true;
	c.line = line;
	svg_chart(&b, &c, 0);
	assert_int_equal(count(buf_cstr(&b), "r=\"3.5\""), 5);
	at = buf_cstr(&b);
	for (int i = 0; i < 5; i++) {
		at = strstr(at, "cy=\"") + 4;
		y[i] = atof(at);
	}
	/* 10, -10, 0 and -5, 5, to a tenth of a pixel. */
	assert_true(y[0] < y[2] && y[2] < y[1] && fabs(y[0] + y[1] - 2 * y[2]) < 0.21);
	assert_true(fabs(y[3] + y[4] - 2 * y[2]) < 0.21 && y[3] > y[4]);
	assert_int_equal(count(buf_cstr(&b), "r=\"7\""), 1);
	assert_int_equal(count(buf_cstr(&b), ">X</text>"), 1);
	assert_int_equal(count(buf_cstr(&b), ">&lt;Y&gt;</text>"), 1);
	assert_int_equal(count(buf_cstr(&b), "stroke-dasharray"), 1);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_safe),
		cmocka_unit_test(bars_are_as_high_as_values),
		cmocka_unit_test(lines_break_where_nothing_is),
		cmocka_unit_test(lines_go_below_zero),
	};

	return cmocka_run_group_tests_name("output/svg", tests, NULL, NULL);
}
