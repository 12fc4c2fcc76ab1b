/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output writer: the tree of values that a command builds, and what the
 * formats share. The tree is complete before anything is printed, so that an
 * error leaves no half output, and tables can measure their columns.
 *
 * Nodes stand in one vector in the order they were written and are linked by
 * index, first child and next sibling; adding one is O(1). Then come literals,
 * and the little that is needed of Unicode: decoding UTF-8 strictly, and the
 * columns that a character takes in a terminal. The C library's wcwidth is not
 * used, since it depends on the locale, and output must not.
 */
#include "lib/output/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/output/private.h"

/* By enum out_format. The first of a name is what out_parse_format finds, so
 * OUT_JSON stands before OUT_JSON_LINE. */
static const struct out_backend *const backends[] = {
	[OUT_TABLE] = &out_table,
	[OUT_JSON] = &out_json,
	[OUT_JSON_LINE] = &out_json_line,
	[OUT_YAML] = &out_yaml,
};

#define N_BACKENDS ((int)(sizeof(backends) / sizeof(backends[0])))

struct out *out_new(enum out_format format)
{
	struct out *o = x_new(1, sizeof(*o));

	o->backend = backends[format];
	vec_push(&o->nodes, (struct out_node){
		.kind = OUT_OBJECT, .parent = -1, .first = -1, .last = -1, .next = -1 });
	return o;
}

void out_set_width(struct out *o, int columns)
{
	o->width = columns;
}

void out_free(struct out *o)
{
	if (!o) {
		return;
	}
	for (size_t i = 0; i < o->nodes.n; i++) {
		free(o->nodes.v[i].key);
		free(o->nodes.v[i].text);
	}
	vec_fini(&o->nodes);
	free(o);
}

int out_parse_format(const char *name, enum out_format *format, struct err *err)
{
	for (int i = 0; i < N_BACKENDS; i++) {
		if (strcmp(name, backends[i]->name) == 0) {
			*format = (enum out_format)i;
			return 0;
		}
	}
	return err_set(err, WEFT_EUSAGE,
		       "unknown format '%.40s': expected table, json or yaml",
		       name);
}

/* Appends a copy of `n` (whose text is handed over) to the open object or
 * array. Returns its index. */
static int add(struct out *o, const char *key, struct out_node n)
{
	int at = (int)o->nodes.n;
	struct out_node *parent;

	assert(n.kind == OUT_NOTE || (key != NULL) == (out_at(o, o->open)->kind == OUT_OBJECT));
	n.parent = o->open;
	n.first = n.last = n.next = -1;
	n.machine_only = o->machine_next;
	o->machine_next = false;
	n.key = key ? x_dup(key) : NULL;
	vec_push(&o->nodes, n);
	parent = &o->nodes.v[o->open];
	if (parent->last >= 0) {
		o->nodes.v[parent->last].next = at;
	} else {
		parent->first = at;
	}
	parent->last = at;
	return at;
}

/* The new node becomes the innermost open one, until out_end. */
static void open_node(struct out *o, const char *key, enum out_kind kind)
{
	o->open = add(o, key, (struct out_node){ .kind = kind });
}

void out_object(struct out *o, const char *key)
{
	open_node(o, key, OUT_OBJECT);
}

void out_array(struct out *o, const char *key)
{
	open_node(o, key, OUT_ARRAY);
}

void out_end(struct out *o)
{
	assert(o->open > 0);
	o->open = out_at(o, o->open)->parent;
}

/* Takes over what the buffer holds. */
static void add_text(struct out *o, const char *key, enum out_kind kind, struct buf *b)
{
	add(o, key, (struct out_node){ .kind = kind, .text = buf_steal(b) });
}

void out_str(struct out *o, const char *key, const char *value)
{
	struct buf b = { 0 };

	if (!value) {
		out_null(o, key);
		return;
	}
	buf_str(&b, value);
	add_text(o, key, OUT_STRING, &b);
}

void out_fmt(struct out *o, const char *key, const char *fmt, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	add_text(o, key, OUT_STRING, &b);
}

void out_note(struct out *o, const char *fmt, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	add_text(o, NULL, OUT_NOTE, &b);
}

void out_int(struct out *o, const char *key, int64_t value)
{
	add(o, key, (struct out_node){ .kind = OUT_INT, .integer = value });
}

void out_real(struct out *o, const char *key, double value)
{
	add(o, key, (struct out_node){ .kind = OUT_REAL, .real = value });
}

void out_bool(struct out *o, const char *key, bool value)
{
	add(o, key, (struct out_node){ .kind = OUT_BOOL, .integer = value });
}

void out_null(struct out *o, const char *key)
{
	add(o, key, (struct out_node){ .kind = OUT_NULL });
}

void out_machine_only(struct out *o)
{
	o->machine_next = true;
}

void out_render(struct out *o, struct buf *b)
{
	assert(o->open == 0);
	o->backend->render(o, b);
}

static int skip_notes(const struct out *o, int i)
{
	while (i >= 0 && out_at(o, i)->kind == OUT_NOTE) {
		i = out_at(o, i)->next;
	}
	return i;
}

int out_first_value(const struct out *o, int i)
{
	return skip_notes(o, out_at(o, i)->first);
}

int out_next_value(const struct out *o, int i)
{
	return skip_notes(o, out_at(o, i)->next);
}

/* 15 digits are enough for most doubles that people write (0.1), 17 for every
 * double (IEEE 754). */
static void put_real(double x, struct buf *b)
{
	char text[40];

	if (!isfinite(x)) {
		buf_str(b, "null");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, x);
		if (strtod(text, NULL) == x) {
			break;
		}
	}
	/* It stays a real number in every reader, also YAML 1.1's, which asks
	 * for a point before an exponent. */
	if (!strchr(text, '.')) {
		size_t mantissa = strcspn(text, "e");

		buf_add(b, text, mantissa);
		buf_str(b, ".0");
		buf_str(b, text + mantissa);
	} else {
		buf_str(b, text);
	}
}

void out_put_literal(const struct out_node *n, struct buf *b)
{
	switch (n->kind) {
	case OUT_INT:
		buf_printf(b, "%" PRId64, n->integer);
		break;
	case OUT_REAL:
		put_real(n->real, b);
		break;
	case OUT_BOOL:
		buf_str(b, n->integer ? "true" : "false");
		break;
	default:
		buf_str(b, "null");
	}
}

/* Ranges of characters that take no column or two; the blocks that matter,
 * from the Unicode tables of combining and East Asian wide characters. */
static int char_width(int32_t c)
{
	static const struct {
		int32_t first, last;
		int width;
	} ranges[] = {
		{ 0x300, 0x36f, 0 }, { 0x483, 0x489, 0 }, { 0x591, 0x5bd, 0 },
		{ 0x610, 0x61a, 0 }, { 0x61c, 0x61c, 0 }, { 0x64b, 0x65f, 0 },
			{ 0x200b, 0x200f, 0 },
		{ 0x202a, 0x202e, 0 }, { 0x2060, 0x2069, 0 },
		{ 0x20d0, 0x20f0, 0 }, { 0xfe00, 0xfe0f, 0 },
		{ 0xfe20, 0xfe2f, 0 }, { 0xfeff, 0xfeff, 0 },
		{ 0x1100, 0x115f, 2 }, { 0x2e80, 0x303e, 2 },
		{ 0x3041, 0x33ff, 2 }, { 0x3400, 0x4dbf, 2 },
		{ 0x4e00, 0x9fff, 2 }, { 0xa000, 0xa4cf, 2 },
		{ 0xac00, 0xd7a3, 2 }, { 0xf900, 0xfaff, 2 },
		{ 0xfe30, 0xfe6f, 2 }, { 0xff00, 0xff60, 2 },
		{ 0xffe0, 0xffe6, 2 }, { 0x1f300, 0x1f64f, 2 },
		{ 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last) {
			return ranges[i].width;
		}
	}
	return 1;
}

size_t out_fit(const char *s, int width)
{
	const char *at = s, *cut = NULL;
	int used = 0;

	while (*at) {
		const char *next = at;

		used += char_width(text_utf8(&next));
		if (used > width && at > s) {
			return (size_t)((cut ? cut : at) - s);
		}
		if (*at == ' ' || *at == ',') {
			cut = next;
		}
		at = next;
	}
	return (size_t)(at - s);
}

int out_width(const char *s)
{
	int width = 0;

	while (*s) {
		width += char_width(text_utf8(&s));
	}
	return width;
}
