/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of one style: the style sheet, shapes, text that finds its room, and
 * legends.
 *
 * Widths of text are those of the widest of the usual sans-serif fonts, character by
 * character (DejaVu Sans, which is as Verdana, and Arial), so that what has room here
 * has room wherever it is looked at. Colours stand once, in the style sheet at the head
 * of the file, by `color`: shapes name a class and take it by currentColor, which the
 * viewers that know no variables of CSS understand as well.
 */
#include "lib/output/canvas.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/output/private.h"

#define TITLE_Y 34.0
#define ABOUT_Y 56.0
#define TOP 76.0
#define GAP 1.0			/* between texts */
#define LEAST_WIDTH 420.0	/* of a picture */
#define PATTERN_LEAST 7.0	/* pixels of a fill that has a pattern */
#define KEY_WIDTH 26.0
#define KEY_LINE 20.0

/* Ascent and descent, parts of the size, of the tallest of those fonts. */
#define ASCENT 0.95
#define DESCENT 0.26
#define BOLD 1.2		/* at most so much wider */

static const struct {
	double size;
	const char *style;	/* classes */
	bool bold;
} fonts[] = {
	[SVG_TITLE] = { 18, "bold", true },
	[SVG_HEAD] = { 13, "bold", true },
	[SVG_TEXT] = { 12, NULL, false },
	[SVG_SOFT] = { 12, "soft", false },
	[SVG_SMALL] = { 10, "soft", false },
	[SVG_INSIDE] = { 10, "card bold", true },
};

/* Of the characters from blank to tilde, in hundredths of the size. */
static const unsigned char widths[] = {
	32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 56,
	102, 69, 69, 73, 78, 67, 62, 78, 76, 30, 50, 67, 56, 87, 75, 79,
	67, 79, 73, 67, 62, 74, 69, 99, 69, 67, 69, 40, 34, 40, 84, 56,
	50, 62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58, 28, 98, 64, 62,
	64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
};

/* ---- the file around it ---- */

#define LIGHT(name, light, dark) "." name "{color:" light "}"
#define DARK(name, light, dark) "." name "{color:" dark "}"

static const char style_sheet[] =
	"svg{font-family:'Segoe UI','Helvetica Neue',Arial,'Liberation Sans','DejaVu Sans',"
	"sans-serif;font-size:12px;font-variant-numeric:tabular-nums}\n"
	SVG_PALETTE(LIGHT) "\n"
	".halo text{paint-order:stroke;stroke-width:3px;stroke:" SVG_CARD_LIGHT "}\n"
	"@media (prefers-color-scheme:dark){" SVG_PALETTE(DARK)
	".halo text{stroke:" SVG_CARD_DARK "}}\n"
	"text,.fill{fill:currentColor}"
	".line{fill:none;stroke:currentColor;stroke-width:1.5}"
	".thin{stroke-width:.7}.thick{stroke-width:3}.broad{stroke-width:5}"
	".weak{opacity:.55}.weaker{opacity:.25}"
	".hatched{fill:url(#h1)}"
	".bold{font-weight:bold}.mid{text-anchor:middle}.end{text-anchor:end}\n"
	".d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}"
	".d4{stroke-dasharray:13 4}.d5{stroke-dasharray:4 4}"
	".d6{stroke-dasharray:9 3 2 3 2 3}.d7{stroke-dasharray:1 4}\n";

/* Patterns over fills, in the colour of the card below. */
static const char *const hatches[SVG_COLOURS] = {
	NULL, "M0 6L6 0M-1.5 1.5L1.5-1.5M4.5 7.5L7.5 4.5", "M0 3H6",
	"M0 0L6 6M-1.5 4.5L1.5 7.5M4.5-1.5L7.5 1.5", "M2 3h2", "M3 0V6", "M0 3H6M3 0V6",
	"M0 0L6 6M0 6L6 0",
};

static void put_hatches(struct buf *out)
{
	buf_str(out, "<defs>");
	for (int i = 0; i < SVG_COLOURS; i++) {
		if (hatches[i]) {
			buf_printf(out, "<pattern id=\"h%d\" width=\"6\" height=\"6\" "
				   "patternUnits=\"userSpaceOnUse\"><path class=\"line card\" "
				   "d=\"%s\"/></pattern>\n", i, hatches[i]);
		}
	}
	buf_str(out, "</defs>\n");
}

/* A character that XML has and that shows as what it is; the others become a
 * question mark. */
static bool is_xml(int32_t ch)
{
	return ch >= ' ' && ch != 0xfffe && ch != 0xffff && !text_is_control(ch);
}

static void put_escaped(struct buf *b, const char *s)
{
	while (*s) {
		const char *at = s;
		int32_t ch = text_utf8(&s);

		if (ch == '<' || ch == '&' || ch == '>') {
			buf_str(b, ch == '<' ? "&lt;" : ch == '&' ? "&amp;" : "&gt;");
		} else if (is_xml(ch)) {
			buf_add(b, at, (size_t)(s - at));
		} else {
			buf_char(b, '?');
		}
	}
}

void svg_open(struct svg_canvas *c, const char *title, const char *about)
{
	buf_str(&c->head, "<title>");
	put_escaped(&c->head, title);
	buf_str(&c->head, "</title>\n<desc>");
	put_escaped(&c->head, about);
	buf_str(&c->head, "</desc>\n");
	svg_put(c, SVG_MARGIN, TITLE_Y, 'b', SVG_TITLE, 0, title);
	svg_put(c, SVG_MARGIN, ABOUT_Y, 'b', SVG_SOFT, 0, about);
}

double svg_top(void)
{
	return TOP;
}

void svg_close(struct svg_canvas *c, struct buf *out)
{
	double width = ceil(fmax(c->right, LEAST_WIDTH) + SVG_MARGIN);
	double height = ceil(c->bottom + SVG_MARGIN);

	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ink\" width=\"%.0f\" "
		   "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n",
		   width, height, width, height);
	/* The title comes first: it is what is read aloud. */
	buf_add(out, buf_cstr(&c->head), c->head.len);
	buf_printf(out, "<style>\n%s</style>\n", style_sheet);
	put_hatches(out);
	buf_printf(out, "<rect class=\"fill ground\" width=\"%.0f\" height=\"%.0f\"/>\n", width,
		   height);
	buf_add(out, buf_cstr(&c->body), c->body.len);
	buf_str(out, "</svg>\n");
	buf_fini(&c->head);
	buf_fini(&c->body);
	vec_fini(&c->taken);
}

static void extend(struct svg_canvas *c, double right, double bottom)
{
	c->right = fmax(c->right, right);
	c->bottom = fmax(c->bottom, bottom);
}

/* ---- text ---- */

static double char_width(int32_t ch)
{
	if (ch >= ' ' && ch <= '~') {
		return widths[ch - ' '] / 100.0;
	}
	return ch >= 0x80 && ch < 0x250 ? 1.0 : ch == 0x2192 || ch == 0xd7 ? 1.0 : 1.2;
}

double svg_width(enum svg_font font, const char *text)
{
	double sum = 0;

	while (*text) {
		sum += char_width(text_utf8(&text));
	}
	return sum * fonts[font].size * (fonts[font].bold ? BOLD : 1);
}

/* Bytes of text that take at most so much, an ellipsis with it. */
static size_t fitting(enum svg_font font, double room, const char *text)
{
	double scale = fonts[font].size * (fonts[font].bold ? BOLD : 1);
	double used = char_width(0x2026);
	const char *at = text, *next = text;

	while (*next) {
		used += char_width(text_utf8(&next));
		if (used * scale > room) {
			break;
		}
		at = next;
	}
	return (size_t)(at - text);
}

static bool is_free(const struct svg_canvas *c, const struct svg_box *b)
{
	for (size_t i = 0; i < c->taken.n; i++) {
		const struct svg_box *t = &c->taken.v[i];

		if (b->x < t->right + GAP && t->x < b->right + GAP && b->y < t->bottom &&
		    t->y < b->bottom) {
			return false;
		}
	}
	return true;
}

static void take(struct svg_canvas *c, struct svg_box box)
{
	vec_push(&c->taken, box);
}

static void put_words(struct svg_canvas *c, double x, double y, char anchor, enum svg_font font,
		      const char *text, const char *whole)
{
	const char *style = fonts[font].style;
	const char *side = anchor == 'm' ? "mid" : anchor == 'e' ? "end" : "";

	buf_printf(&c->body, "<text x=\"%.1f\" y=\"%.1f\"", x, y);
	if (style || *side) {
		buf_printf(&c->body, " class=\"%s%s%s\"", style ? style : "",
			   style && *side ? " " : "", side);
	}
	if (fonts[font].size != 12) {
		buf_printf(&c->body, " font-size=\"%g\"", fonts[font].size);
	}
	buf_char(&c->body, '>');
	if (whole) {
		buf_str(&c->body, "<title>");
		put_escaped(&c->body, whole);
		buf_str(&c->body, "</title>");
	}
	put_escaped(&c->body, text);
	buf_str(&c->body, "</text>\n");
}

bool svg_put(struct svg_canvas *c, double x, double y, char anchor, enum svg_font font,
	     double room, const char *text)
{
	double wide = svg_width(font, text), size = fonts[font].size;
	bool cut = room > 0 && wide > room;
	struct buf part = { 0 };
	struct svg_box box;

	if (cut) {
		buf_add(&part, text, fitting(font, room, text));
		buf_str(&part, "\xe2\x80\xa6");
		wide = svg_width(font, buf_cstr(&part));
	}
	box.x = x - (anchor == 'm' ? wide / 2 : anchor == 'e' ? wide : 0);
	box.right = box.x + wide;
	box.y = y - size * ASCENT;
	box.bottom = y + size * DESCENT;
	if (!*text || !is_free(c, &box) || box.x < 0 || box.y < 0) {
		c->dropped += *text != '\0';
		buf_fini(&part);
		return false;
	}
	take(c, box);
	extend(c, box.right, box.bottom);
	put_words(c, x, y, anchor, font, cut ? buf_cstr(&part) : text, cut ? text : NULL);
	buf_fini(&part);
	return true;
}

bool svg_putf(struct svg_canvas *c, double x, double y, char anchor, enum svg_font font,
	      const char *fmt, ...)
{
	struct buf text = { 0 };
	va_list ap;
	bool done;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	done = svg_put(c, x, y, anchor, font, 0, buf_cstr(&text));
	buf_fini(&text);
	return done;
}

void svg_keep_off(struct svg_canvas *c, double x, double y, double width, double height)
{
	take(c, (struct svg_box){ x, y, x + width, y + height });
}

double svg_tell_dropped(struct svg_canvas *c, double x, double y, const char *what)
{
	int n = c->dropped;

	c->dropped = 0;
	if (n > 0) {
		svg_putf(c, x, y, 'b', SVG_SOFT, "and %d more %s, for which there is no room", n,
			 what);
		y += KEY_LINE;
	}
	return y;
}

/* ---- shapes ---- */

void svg_rect(struct svg_canvas *c, const char *style, double x, double y, double width,
	      double height)
{
	buf_printf(&c->body, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		   "height=\"%.1f\"/>\n", style, x, y, fmax(width, 0.1), fmax(height, 0.1));
	extend(c, x + width, y + height);
}

void svg_card(struct svg_canvas *c, double x, double y, double width, double height)
{
	buf_printf(&c->body, "<rect class=\"fill card\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		   "height=\"%.1f\" rx=\"8\"/><rect class=\"line edge\" x=\"%.1f\" y=\"%.1f\" "
		   "width=\"%.1f\" height=\"%.1f\" rx=\"8\"/>\n", x, y, width, height, x, y, width,
		   height);
	extend(c, x + width, y + height);
}

void svg_circle(struct svg_canvas *c, const char *style, double x, double y, double r)
{
	buf_printf(&c->body, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", style,
		   x,
		   y, r);
	extend(c, x + r, y + r);
}

void svg_line(struct svg_canvas *c, const char *style, double x, double y, double to_x, double to_y)
{
	buf_printf(&c->body, "<path class=\"line %s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", style, x, y,
		   to_x, to_y);
	extend(c, fmax(x, to_x), fmax(y, to_y));
}

void svg_path(struct svg_canvas *c, const char *style, const char *d, ...)
{
	va_list ap;

	buf_printf(&c->body, "<path class=\"%s\" d=\"", style);
	va_start(ap, d);
	buf_vprintf(&c->body, d, ap);
	va_end(ap);
	buf_str(&c->body, "\"/>\n");
}

void svg_begin_group(struct svg_canvas *c, const char *style, const char *about)
{
	buf_printf(&c->body, "<g class=\"%s\">", style);
	if (about) {
		buf_str(&c->body, "<title>");
		put_escaped(&c->body, about);
		buf_str(&c->body, "</title>");
	}
	buf_char(&c->body, '\n');
}

void svg_end_group(struct svg_canvas *c)
{
	buf_str(&c->body, "</g>\n");
}

/* ---- colours and legends ---- */

const char *svg_colour_class(int64_t k)
{
	static const char *const names[] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };

	return names[k % SVG_COLOURS];
}

/* With more than SVG_COLOURS the pairs differ. */
static int second(int64_t k)
{
	return (int)((k + k / SVG_COLOURS) % SVG_COLOURS);
}

const char *svg_dash_class(int64_t k)
{
	static const char *const names[] = { "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7" };

	return names[second(k)];
}

void svg_fill(struct svg_canvas *c, int64_t k, double x, double y, double width, double height)
{
	char style[16];

	snprintf(style, sizeof(style), "fill %s", svg_colour_class(k));
	svg_rect(c, style, x, y, width, height);
	if (hatches[second(k)] && width >= PATTERN_LEAST && height >= PATTERN_LEAST) {
		buf_printf(&c->body,
			   "<rect fill=\"url(#h%d)\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			   "height=\"%.1f\"/>\n", second(k), x, y, width, height);
	}
}

void svg_fill_path(struct svg_canvas *c, int64_t k, const char *d)
{
	buf_printf(&c->body, "<path class=\"fill %s\" d=\"%s\"/>\n", svg_colour_class(k), d);
	if (hatches[second(k)]) {
		buf_printf(&c->body, "<path fill=\"url(#h%d)\" d=\"%s\"/>\n", second(k), d);
	}
}

static void put_key(struct svg_canvas *c, double x, double y, const struct svg_key *k)
{
	char style[48];

	switch (k->form) {
	case SVG_KEY_FILL:
		if (k->pattern >= 0) {
			svg_fill(c, k->pattern, x, y - 10, 18, 12);
			break;
		}
		snprintf(style, sizeof(style), "fill %s", k->style);
		svg_rect(c, style, x, y - 10, 18, 12);
		if (k->sign) {
			svg_rect(c, k->sign, x, y - 10, 18, 12);
		}
		break;
	case SVG_KEY_LINE:
		svg_line(c, k->style, x, y - 4, x + 20, y - 4);
		break;
	case SVG_KEY_DOT:
		snprintf(style, sizeof(style), "fill %s", k->style);
		svg_circle(c, style, x + 9, y - 4, 5);
		break;
	case SVG_KEY_SIGN:
		svg_begin_group(c, k->style, NULL);
		svg_put(c, x + 9, y, 'm', SVG_HEAD, 0, k->sign);
		svg_end_group(c);
		break;
	}
}

double svg_legend(struct svg_canvas *c, double x, double y, double width,
		  const struct svg_key *keys, int n)
{
	double at = x;

	for (int i = 0; i < n; i++) {
		double wide = KEY_WIDTH + svg_width(SVG_TEXT, keys[i].text) + 18;

		if (at > x && at + wide > x + width) {
			at = x;
			y += KEY_LINE;
		}
		put_key(c, at, y + 12, &keys[i]);
		svg_put(c, at + KEY_WIDTH, y + 12, 'b', SVG_TEXT, width - KEY_WIDTH, keys[i].text);
		at += wide;
	}
	return n ? y + KEY_LINE + 4 : y;
}
