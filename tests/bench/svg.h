/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charts of benchmarks as SVG, appended to a buffer (whose failure is
 * sticky); pictures are made by canvas.h. Coordinates are in pixels from the upper left
 * corner, y downwards.
 * The same input gives the same bytes, so that drawings can be compared.
 */
#ifndef WEFT_TESTS_BENCH_SVG_H
#define WEFT_TESTS_BENCH_SVG_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Opens a drawing of so many pixels on a white ground, and closes it. font_size
 * in pixels, for all text that does not state its own. */
void svg_begin(struct buf *b, int64_t width, int64_t height, int font_size);
void svg_end(struct buf *b);

/* Any text, safe inside an element, not inside an attribute: quotes stay.
 * Control characters become blanks. */
void svg_text(struct buf *b, const char *s);

/* A line of text that ends ('e'), is centred ('m') or begins at x. */
void svg_label(struct buf *b, double x, double y, char anchor, const char *text);

struct svg_series {
	const char *name;
	const double *value;	/* one a group; negative: nothing to show */
};

/* How the line of a series looks. Zeroed: plain. */
struct svg_line {
	const char *const *mark;	/* text at each point; NULL: none, here or at one */
	int large;		/* 1 + the group that has a large point; 0: none */
	bool dashed;
};

/* Values of several series in groups along x, as bars or as lines. Everything is
 * borrowed; n_groups and n_series are at least 1. */
struct svg_chart {
	const char *title, *note;	/* note: below, NULL: none */
	const char *x_label, *y_label;
	const char *const *group;	/* names of groups */
	int n_groups;
	const struct svg_series *series;
	int n_series;
	bool lines;		/* else bars */
	const struct svg_line *line;	/* one a series; NULL: all plain */
	/* y by powers of ten, and zero is not shown; else y is linear, from 0. */
	bool log;
	bool negative;		/* of linear lines: those below zero are shown, NAN is not */
	bool values;		/* written at each bar or point */
};

#define SVG_CHART_WIDTH 760
#define SVG_CHART_HEIGHT 420

/* Draws a chart in a box of SVG_CHART_WIDTH by SVG_CHART_HEIGHT pixels whose
 * upper edge is at `top`. O(values). */
void svg_chart(struct buf *b, const struct svg_chart *c, double top);

#endif
