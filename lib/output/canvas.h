/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures that people look at, as SVG files of one style: what a picture says
 * about itself, shapes and text in classes of one palette (lib/output/palette.h), for
 * light and dark ground, on paper and in grey, and legends.
 *
 * Text never covers text: its width is estimated from above, and what has no room is
 * shortened or left out and counted, so that the picture can say how much is not shown.
 * The size follows from what was drawn. The same input gives the same bytes. Coordinates
 * are pixels from the upper left corner, y downwards.
 *
 * Classes of shapes: "fill" or "line" (or "outline": filled as cards are) with a colour of
 * the palette, as "fill c3"; "hatched". Beside them "d1" .. "d7": dashes; "thin", "thick", "broad":
 * of lines; "weak", "weaker": seen through.
 */
#ifndef WEFT_LIB_OUTPUT_CANVAS_H
#define WEFT_LIB_OUTPUT_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "lib/output/palette.h"

#define SVG_MARGIN 20.0

/* A rectangle that text keeps off. */
struct svg_box {
	double x, y, right, bottom;
};

/* SVG_INSIDE: on a fill; SVG_HEAD and SVG_TEXT have the colour of their group. */
enum svg_font { SVG_TITLE, SVG_HEAD, SVG_TEXT, SVG_SOFT, SVG_SMALL, SVG_INSIDE };

/* A drawing under way; zero it, and svg_open() it. */
struct svg_canvas {
	struct buf head, body;
	VEC(struct svg_box) taken;
	double right, bottom;	/* of all that was drawn */
	int dropped;		/* texts that had no room */
};

/* Begins a drawing: its title, drawn and for those who hear it, and one line on what
 * it shows. Below them is y = svg_top(). */
void svg_open(struct svg_canvas *c, const char *title, const char *about);
double svg_top(void);
/* Ends it and appends it to `out`. Frees the canvas. */
void svg_close(struct svg_canvas *c, struct buf *out);

/* Pixels that a text takes at most in any usual sans-serif font. O(text). */
double svg_width(enum svg_font font, const char *text);

/*
 * Writes a line that begins ('b'), is centred ('m') or ends ('e') at x, its base line at y.
 * In `room` pixels (0: any) it is shortened, with the whole of it for the pointer. False, and
 * counted, where it would cover text or what svg_keep_off() named. O(texts so far).
 */
bool svg_put(struct svg_canvas *c, double x, double y, char anchor, enum svg_font font,
	     double room, const char *text);
bool svg_putf(struct svg_canvas *c, double x, double y, char anchor, enum svg_font font,
	      const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Texts to come keep off this rectangle. */
void svg_keep_off(struct svg_canvas *c, double x, double y, double width, double height);
/* "24 more names are left out": at the end, unless nothing was dropped since the last
 * time. The next line's y. */
double svg_tell_dropped(struct svg_canvas *c, double x, double y, const char *what);

/* A panel with a rim, in which things are drawn. */
void svg_card(struct svg_canvas *c, double x, double y, double width, double height);
void svg_rect(struct svg_canvas *c, const char *style, double x, double y, double width,
	      double height);
void svg_circle(struct svg_canvas *c, const char *style, double x, double y, double r);
void svg_line(struct svg_canvas *c, const char *style, double x, double y, double to_x,
	      double to_y);
/* Any path, `d` as SVG has it; inside what else was drawn, which gives the size. */
void svg_path(struct svg_canvas *c, const char *style, const char *d, ...)
	__attribute__((format(printf, 3, 4)));
/* All until svg_end_group() has these classes ("halo": its text stands out from lines below), and
 * this text under the pointer (NULL: none). */
void svg_begin_group(struct svg_canvas *c, const char *style, const char *about);
void svg_end_group(struct svg_canvas *c);

/* A filled rectangle of number k >= 0: its colour, with its pattern, which tells apart those of
 * one colour, and all in grey, where there is room. */
void svg_fill(struct svg_canvas *c, int64_t k, double x, double y, double width, double height);
/* The same of any path; its colour alone, as a class for lines. */
void svg_fill_path(struct svg_canvas *c, int64_t k, const char *d);
const char *svg_colour_class(int64_t k);
/* What tells lines apart as patterns do fills: "d0" .. "d7". */
const char *svg_dash_class(int64_t k);

/* A line of a legend: how it looks, and what it means. */
struct svg_key {
	enum { SVG_KEY_FILL, SVG_KEY_LINE, SVG_KEY_DOT, SVG_KEY_SIGN } form;
	const char *style;	/* classes */
	int64_t pattern;	/* of a fill: k of svg_fill(), -1: by style alone */
	const char *sign;	/* of SVG_KEY_SIGN: a letter; of a fill: classes of what lies on
				 * it */
	const char *text;
};

/* Keys from left to right in so many pixels, in as many lines as it takes. The y below. */
double svg_legend(struct svg_canvas *c, double x, double y, double width,
		  const struct svg_key *keys, int n);

/*
 * Places for the nodes of an undirected graph of n nodes and m edges, the ends of edge i at
 * ends[2 i]: distances come near to those of shortest paths (stress majorization; Gansner,
 * Koren, North 2004). xy: 2 n numbers, in a square from 0 to 1, the longest way lying
 * across. O(n (n + m) + sweeps n^2); n at most SVG_LAYOUT_NODES.
 */
#define SVG_LAYOUT_NODES 512
void svg_layout(int n, const int32_t *ends, int m, double *xy);

#endif
