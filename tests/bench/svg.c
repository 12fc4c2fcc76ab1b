/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawings: elements, and charts of bars or lines with axes and a legend. The y
 * axis has marks at 1, 2 or 5 times a power of ten, or at powers of ten alone.
 * Coordinates are printed with one decimal of a pixel, finer than any screen.
 * Each bar and point carries its series and value as a title, which browsers show
 * when the mouse is over it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/svg.h"

void svg_begin(struct buf *b, int64_t width, int64_t height, int font_size)
{
	buf_printf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
		      "width=\"%lld\" height=\"%lld\" "
		      "font-family=\"sans-serif\" font-size=\"%d\">\n"
		      "<rect width=\"100%%\" height=\"100%%\" "
		      "fill=\"white\"/>\n",
		   (long long)width, (long long)height, font_size);
}

void svg_end(struct buf *b)
{
	buf_str(b, "</svg>\n");
}

void svg_text(struct buf *b, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '<':
			buf_str(b, "&lt;");
			break;
		case '>':
			buf_str(b, "&gt;");
			break;
		case '&':
			buf_str(b, "&amp;");
			break;
		default:
			buf_char(b, (unsigned char)*s < ' ' ? ' ' : *s);
		}
	}
}

void svg_label(struct buf *b, double x, double y, char anchor, const char *text)
{
	buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y,
		   anchor == 'e'   ? " text-anchor=\"end\""
		   : anchor == 'm' ? " text-anchor=\"middle\""
				   : "");
	svg_text(b, text);
	buf_str(b, "</text>\n");
}

/* ---- charts ---- */

/* Margins around the plot, in pixels: labels of y, legend, title, labels of x. */
#define LEFT 76.0
#define RIGHT 150.0		/* for the legend */
#define ABOVE 40.0
#define BELOW 74.0
#define PLOT_WIDTH (SVG_CHART_WIDTH - LEFT - RIGHT)
#define PLOT_HEIGHT (SVG_CHART_HEIGHT - ABOVE - BELOW)

/* Told apart by most eyes, on paper too. */
static const char *const palette[] = {
	"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
	"#777777", "#222255",
};

#define COLOURS ((int)(sizeof(palette) / sizeof(palette[0])))

/* A chart being drawn: where it stands, and the scale of its y axis. */
struct frame {
	struct buf *b;
	const struct svg_chart *c;
	double top;
	double lo, hi;		/* of y; powers of ten when log */
	double step;		/* between marks */
};

static bool shown(const struct frame *f, double v)
{
	if (f->c->negative) {
		return isfinite(v);
	}
	return f->c->log ? v > 0 : v >= 0;
}

static double y_of(const struct frame *f, double v)
{
	double y = f->c->log ? log10(v) : v;

	return f->top + ABOVE +
	       PLOT_HEIGHT * (1 - (y - f->lo) / (f->hi - f->lo));
}

static double middle_of(const struct frame *f, int group)
{
	return LEFT + PLOT_WIDTH * (group + 0.5) / f->c->n_groups;
}

/* 1, 2 or 5 times a power of ten: about five marks up to max. */
static double mark_step(double max)
{
	double unit = pow(10, floor(log10(max / 5)));

	if (max / unit <= 6) {
		return unit;
	}
	if (max / unit <= 12) {
		return 2 * unit;
	}
	return max / unit <= 30 ? 5 * unit : 10 * unit;
}

/* The y axis: all values that are shown, and room above the largest, for its
 * number where values are written. */
static void find_range(struct frame *f)
{
	double min = f->c->negative ? 0 : INFINITY, max = 0;

	for (int s = 0; s < f->c->n_series; s++) {
		for (int g = 0; g < f->c->n_groups; g++) {
			double v = f->c->series[s].value[g];

			if (shown(f, v)) {
				min = v < min ? v : min;
				max = v > max ? v : max;
			}
		}
	}
	if (max <= 0) {
		min = fmin(min, 1);
		max = 1;
	}
	if (f->c->log) {
		f->lo = floor(log10(min) - 0.01);
		f->hi = ceil(log10(max * (f->c->values ? 2.5 : 1)));
		f->step = 1;
		return;
	}
	f->step = mark_step(f->c->negative ? max - min : max);
	f->lo = f->c->negative ? floor(min * 1.05 / f->step) * f->step : 0;
	f->hi = ceil(max * 1.05 / f->step) * f->step;
}

static void put_number(char *text, size_t size, double v)
{
	if (v >= 100 || v == floor(v)) {
		snprintf(text, size, "%.0f", v);
	} else {
		snprintf(text, size, "%.3g", v);
	}
}

static void put_grid(struct frame *f)
{
	char text[32];

	for (double y = f->lo; y <= f->hi + f->step / 2; y += f->step) {
		double v = f->c->log ? pow(10, y) : y, at = y_of(f, v);

		buf_printf(f->b, "<path d=\"M%.1f %.1fH%.1f\" "
			   "stroke=\"#dddddd\"/>\n", LEFT, at,
			   LEFT + PLOT_WIDTH);
		put_number(text, sizeof(text), v);
		svg_label(f->b, LEFT - 6, at + 4, 'e', text);
	}
	if (f->lo < 0) {
		buf_printf(f->b, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#777777\"/>\n", LEFT,
			   y_of(f, 0), LEFT + PLOT_WIDTH);
	}
	buf_printf(f->b, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" "
		   "stroke=\"black\"/>\n", LEFT, f->top + ABOVE,
		   f->top + ABOVE + PLOT_HEIGHT, LEFT + PLOT_WIDTH);
}

static void put_names(struct frame *f)
{
	double base = f->top + ABOVE + PLOT_HEIGHT;

	buf_str(f->b, "<g font-size=\"15\">");
	svg_label(f->b, LEFT, f->top + 22, 'b', f->c->title);
	buf_str(f->b, "</g>\n");
	for (int g = 0; g < f->c->n_groups; g++) {
		svg_label(f->b, middle_of(f, g), base + 17, 'm', f->c->group[g]);
	}
	svg_label(f->b, LEFT + PLOT_WIDTH / 2, base + 36, 'm', f->c->x_label);
	if (f->c->note) {
		buf_str(f->b, "<g font-size=\"11\" fill=\"#555555\">");
		svg_label(f->b, LEFT, base + 58, 'b', f->c->note);
		buf_str(f->b, "</g>\n");
	}
	buf_printf(f->b, "<g transform=\"translate(16 %.1f) rotate(-90)\">",
		   f->top + ABOVE + PLOT_HEIGHT / 2);
	svg_label(f->b, 0, 0, 'm', f->c->y_label);
	buf_str(f->b, "</g>\n");
}

static void put_legend(struct frame *f)
{
	for (int s = 0; s < f->c->n_series; s++) {
		double x = LEFT + PLOT_WIDTH + 14;
		double y = f->top + ABOVE + 8 + 20 * s;

		buf_printf(f->b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" "
			   "height=\"12\" fill=\"%s\"/>\n", x, y,
			   palette[s % COLOURS]);
		svg_label(f->b, x + 18, y + 10, 'b', f->c->series[s].name);
	}
}

/* The value at a bar or point; upright where there is little room. */
static void put_value(struct frame *f, double x, double y, double v)
{
	double room = PLOT_WIDTH / f->c->n_groups;
	char text[32];

	put_number(text, sizeof(text), v);
	buf_str(f->b, "<g font-size=\"10\">");
	if (!f->c->lines && room * 0.8 / f->c->n_series < 26) {
		buf_printf(f->b, "<text transform=\"translate(%.1f %.1f) "
			   "rotate(-90)\">%s</text>", x + 3.5, y - 3, text);
	} else {
		svg_label(f->b, f->c->lines ? x + 6 : x, y - 4, 'm', text);
	}
	buf_str(f->b, "</g>\n");
}

static void put_bars(struct frame *f, int s)
{
	double wide = PLOT_WIDTH / f->c->n_groups * 0.8 / f->c->n_series;
	double base = f->top + ABOVE + PLOT_HEIGHT;

	for (int g = 0; g < f->c->n_groups; g++) {
		double v = f->c->series[s].value[g], y;
		double x = middle_of(f, g) +
			   wide * (s - f->c->n_series / 2.0);

		if (!shown(f, v)) {
			continue;
		}
		y = y_of(f, v);
		buf_printf(f->b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			   "height=\"%.1f\" fill=\"%s\"><title>", x, y,
			   wide * 0.92, base - y, palette[s % COLOURS]);
		svg_text(f->b, f->c->series[s].name);
		buf_printf(f->b, ": %.6g</title></rect>\n", v);
		if (f->c->values) {
			put_value(f, x + wide * 0.46, y, v);
		}
	}
}

/* A point of a line: its title for the mouse, and its value. */
static void put_point(struct frame *f, int s, int g)
{
	const struct svg_series *series = &f->c->series[s];
	double v = series->value[g], x = middle_of(f, g), y = y_of(f, v);

	buf_printf(f->b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"><title>", x, y,
		   palette[s % COLOURS]);
	svg_text(f->b, series->name);
	buf_printf(f->b, ": %.6g</title></circle>\n", v);
	if (f->c->values) {
		put_value(f, x, y, v);
	}
}

/* Points of a series joined by lines; a value that is not shown breaks them. */
static void put_line(struct frame *f, int s)
{
	bool pen = false;

	buf_printf(f->b, "<path fill=\"none\" stroke-width=\"2\" "
		   "stroke=\"%s\"%s d=\"", palette[s % COLOURS],
		   f->c->line && f->c->line[s].dashed ? " stroke-dasharray=\"6 4\"" : "");
	for (int g = 0; g < f->c->n_groups; g++) {
		double v = f->c->series[s].value[g];

		if (!shown(f, v)) {
			pen = false;
			continue;
		}
		buf_printf(f->b, "%c%.1f %.1f", pen ? 'L' : 'M', middle_of(f, g), y_of(f, v));
		pen = true;
	}
	buf_str(f->b, "\"/>\n");
	for (int g = 0; g < f->c->n_groups; g++) {
		if (shown(f, f->c->series[s].value[g])) {
			put_point(f, s, g);
		}
	}
}

/* Marks and the large point of a line: above all lines, which are seen through it. */
static void put_marks(struct frame *f, int s)
{
	const struct svg_line *line = &f->c->line[s];

	buf_str(f->b, "<g stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">\n");
	for (int g = 0; g < f->c->n_groups; g++) {
		double v = f->c->series[s].value[g];

		if (!shown(f, v)) {
			continue;
		}
		if (line->mark && line->mark[g]) {
			svg_label(f->b, middle_of(f, g), y_of(f, v) - 8, 'm', line->mark[g]);
		}
		if (line->large == g + 1) {
			buf_printf(f->b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"7\" fill=\"%s\" "
				   "fill-opacity=\"0.6\" stroke=\"black\" stroke-width=\"1\"/>\n",
				   middle_of(f, g), y_of(f, v), palette[s % COLOURS]);
		}
	}
	buf_str(f->b, "</g>\n");
}

void svg_chart(struct buf *b, const struct svg_chart *c, double top)
{
	struct frame f = { .b = b, .c = c, .top = top };

	find_range(&f);
	put_grid(&f);
	for (int s = 0; s < c->n_series; s++) {
		if (c->lines) {
			put_line(&f, s);
		} else {
			put_bars(&f, s);
		}
	}
	for (int s = 0; c->lines && c->line && s < c->n_series; s++) {
		put_marks(&f, s);
	}
	put_names(&f);
	put_legend(&f);
}
