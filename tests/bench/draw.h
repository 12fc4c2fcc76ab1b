/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of benchmarks, beside their figures. */
#ifndef WEFT_TESTS_BENCH_DRAW_H
#define WEFT_TESTS_BENCH_DRAW_H

#include <stdio.h>
#include <string.h>

#include "lib/base/file.h"
#include "tests/bench/svg.h"

/* Writes a drawing that is finished as NAME.svg beside the JSON file, and frees it; nothing
 * is written when there is none. 0, or 1 after saying what failed. */
static inline int write_drawing(const char *json_path, const char *name, struct buf *b)
{
	const char *slash = json_path ? strrchr(json_path, '/') : NULL;
	int dir = slash ? (int)(slash - json_path + 1) : 0, failed = 0;
	struct err err;
	char path[4096];

	if (!json_path) {
		buf_fini(b);
		return 0;
	}
	snprintf(path, sizeof(path), "%.*s%s.svg", dir, json_path, name);
	if (file_write_atomic(path, b->data, b->len, FILE_PUBLIC, &err)) {
		fprintf(stderr, "%s: %s\n", path, err.msg);
		failed = 1;
	} else {
		printf("drawn: %s\n", path);
	}
	buf_fini(b);
	return failed;
}

/* The same of charts below each other. */
static inline int draw_charts(const char *json_path, const char *name,
			      const struct svg_chart *c, int n)
{
	struct buf b = { 0 };

	svg_begin(&b, SVG_CHART_WIDTH, (int64_t)n * SVG_CHART_HEIGHT, 12);
	for (int k = 0; k < n; k++) {
		svg_chart(&b, &c[k], (double)k * SVG_CHART_HEIGHT);
	}
	svg_end(&b);
	return write_drawing(json_path, name, &b);
}

#endif
