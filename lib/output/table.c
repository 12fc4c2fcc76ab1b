/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for people. Scalars stand as "name  value" lines, arrays of objects
 * as columns, everything nested under a heading and two blanks further in.
 *
 * An array of objects first becomes a text_table: a cell of text for each row
 * and key, so that the columns can be measured before the first is printed.
 * When it is wider than the terminal, columns of text are made narrower, the
 * widest first, and their cells go on in the next lines. Widths are columns of
 * a terminal (out_width), not bytes. Text comes from devices and files: controls
 * are replaced, so that no name can drive the terminal or look like another.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/output/private.h"

#define GAP 2			/* blanks between columns, where there is room */
#define NARROW 10		/* no column of text is made narrower */

/* A column of a text_table. Widths are in columns of a terminal. */
struct table_column {
	const char *key;	/* borrowed from the first row that has it */
	int full;		/* of the key and the longest cell */
	int width;		/* as fit() decides: that or less */
	int word;		/* the longest that is not to be cut */
	bool numeric;		/* every value is a number or missing */
	bool blank;		/* every value is an empty text */
};

/* An array of objects as text: cells.n == rows * cols.n once filled. */
struct text_table {
	VEC(struct table_column) cols;
	VEC(char *) cells;	/* row by row, owned; NULL: the row lacks the key */
	int rows;
	int gap;		/* blanks between columns */
};

/* First child of i, or sibling after i, that a table shows; notes count. */
static int skip_hidden(const struct out *o, int i)
{
	while (i >= 0 && out_at(o, i)->machine_only) {
		i = out_at(o, i)->next;
	}
	return i;
}

static int first_shown(const struct out *o, int i)
{
	return skip_hidden(o, out_at(o, i)->first);
}

static int next_shown(const struct out *o, int i)
{
	return skip_hidden(o, out_at(o, i)->next);
}

/* Text from anywhere: what a terminal would obey becomes a blank. */
static void put_text(const char *s, struct buf *b)
{
	while (*s) {
		const char *start = s;
		int32_t c = text_utf8(&s);

		if (c < 0) {
			buf_str(b, "\xef\xbf\xbd");
		} else if (text_is_control(c)) {
			buf_char(b, ' ');
		} else {
			buf_add(b, start, (size_t)(s - start));
		}
	}
}

/* "bandwidth_factor" reads "bandwidth factor". */
static void put_key(const char *key, struct buf *b)
{
	size_t start = b->len;

	put_text(key, b);
	for (size_t i = start; i < b->len; i++) {
		if (b->data[i] == '_') {
			b->data[i] = ' ';
		}
	}
}

/* Any node on one line: arrays joined by commas, objects as key=value. */
static void put_value(const struct out *o, int at, struct buf *b)
{
	const struct out_node *n = out_at(o, at);
	int first;

	switch (n->kind) {
	case OUT_STRING:
		put_text(n->text, b);
		return;
	case OUT_INT:
		buf_printf(b, "%" PRId64, n->integer);
		return;
	case OUT_REAL:
		if (isnan(n->real)) {
			buf_char(b, '-');
		} else {
			buf_printf(b, "%.6g", n->real);
		}
		return;
	case OUT_BOOL:
		buf_str(b, n->integer ? "yes" : "no");
		return;
	case OUT_NULL:
	case OUT_NOTE:
		buf_char(b, '-');
		return;
	default:
		break;
	}
	first = skip_hidden(o, out_first_value(o, at));
	if (first < 0) {
		buf_char(b, '-');
	}
	for (int i = first; i >= 0; i = skip_hidden(o, out_next_value(o, i))) {
		if (i != first) {
			buf_str(b, n->kind == OUT_ARRAY ? ", " : " ");
		}
		if (out_at(o, i)->key) {
			put_key(out_at(o, i)->key, b);
			buf_char(b, '=');
		}
		put_value(o, i, b);
	}
}

/* Ends a line, without the blanks at its end. */
static void end_line(struct buf *b)
{
	while (b->len > 0 && b->data[b->len - 1] == ' ') {
		b->data[--b->len] = '\0';
	}
	buf_char(b, '\n');
}

/* A text that begins at column `at` of its line, in as many lines as it takes: they go on at
 * column `next`. */
static void put_long(const struct out *o, const char *rest, int at, int next, struct buf *b)
{
	for (int room = o->width - at; room >= NARROW && out_width(rest) > room;
	     room = o->width - next) {
		size_t n = out_fit(rest, room);

		buf_add(b, rest, n);
		end_line(b);
		buf_printf(b, "%*s", next, "");
		rest += n;
	}
	buf_str(b, rest);
	end_line(b);
}

static void put_note(const struct out *o, const struct out_node *n, int indent, struct buf *b)
{
	struct buf text = { 0 };

	put_text(n->text, &text);
	buf_printf(b, "%*s", indent, "");
	put_long(o, buf_cstr(&text), indent, indent + 2, b);
	buf_fini(&text);
}

static void put_notes(const struct out *o, int at, int indent, struct buf *b)
{
	for (int i = first_shown(o, at); i >= 0; i = next_shown(o, i)) {
		if (out_at(o, i)->kind == OUT_NOTE) {
			put_note(o, out_at(o, i), indent, b);
		}
	}
}

static void free_table(struct text_table *t)
{
	for (size_t i = 0; i < t->cells.n; i++) {
		free(t->cells.v[i]);
	}
	vec_fini(&t->cells);
	vec_fini(&t->cols);
}

static int find_column(const struct text_table *t, const char *key)
{
	for (size_t c = 0; c < t->cols.n; c++) {
		if (strcmp(t->cols.v[c].key, key) == 0) {
			return (int)c;
		}
	}
	return -1;
}

/* The columns are the keys of all rows in order of first appearance. */
static void collect_columns(const struct out *o, int at, struct text_table *t)
{
	for (int r = out_first_value(o, at); r >= 0; r = out_next_value(o, r)) {
		t->rows++;
		for (int i = first_shown(o, r); i >= 0; i = next_shown(o, i)) {
			const struct out_node *n = out_at(o, i);

			if (n->kind != OUT_NOTE && find_column(t, n->key) < 0) {
				vec_push(&t->cols, (struct table_column){
					.key = n->key, .numeric = true,
					.full = out_width(n->key) });
			}
		}
	}
}

/* Of the pieces that out_fit does not cut unless it must. */
static int longest_word(const char *text)
{
	int longest = 0;

	while (*text) {
		size_t n = strcspn(text, " ,"), tail = text[n] == ',';
		char *word = x_ndup(text, n + tail);
		int width = out_width(word);

		longest = width > longest ? width : longest;
		free(word);
		text += n + (text[n] != '\0');
	}
	return longest;
}

/* cells: of this row, one for each column, NULL so far. Widens the columns. A
 * key that is written twice shows its last value. */
static void fill_row(const struct out *o, int row, char **cells, struct text_table *t)
{
	for (int i = first_shown(o, row); i >= 0; i = next_shown(o, i)) {
		const struct out_node *n = out_at(o, i);
		struct buf text = { 0 };
		int c, width;

		if (n->kind == OUT_NOTE) {
			continue;
		}
		c = find_column(t, n->key);
		put_value(o, i, &text);
		free(cells[c]);
		cells[c] = buf_steal(&text);
		width = out_width(cells[c]);
		if (width > t->cols.v[c].full) {
			t->cols.v[c].full = width;
		}
		width = longest_word(cells[c]);
		if (width > t->cols.v[c].word) {
			t->cols.v[c].word = width;
		}
		if (n->kind != OUT_INT && n->kind != OUT_REAL && n->kind != OUT_NULL) {
			t->cols.v[c].numeric = false;
		}
	}
}

static void fill_table(const struct out *o, int at, struct text_table *t)
{
	char **cells;

	collect_columns(o, at, t);
	vec_reserve(&t->cells, (size_t)t->rows * t->cols.n);
	for (int r = out_first_value(o, at); r >= 0; r = out_next_value(o, r)) {
		cells = t->cells.v + t->cells.n;
		for (size_t c = 0; c < t->cols.n; c++) {
			t->cells.v[t->cells.n++] = NULL;
		}
		fill_row(o, r, cells, t);
	}
}

/* A column without a word in it tells nothing: no problems, no comments. The
 * first one stays, so that there is a line for every row. */
static void hide_blank(struct text_table *t)
{
	for (size_t c = 1; c < t->cols.n; c++) {
		t->cols.v[c].blank = true;
	}
	for (size_t i = 0; i < t->cells.n; i++) {
		if (!t->cells.v[i] || t->cells.v[i][0]) {
			t->cols.v[i % t->cols.n].blank = false;
		}
	}
}

/* The widest column that may still be made narrower. */
static struct table_column *widest_column(const struct text_table *t, bool cut_words)
{
	struct table_column *widest = NULL;

	for (size_t c = 0; c < t->cols.n; c++) {
		struct table_column *col = &t->cols.v[c];
		int min_width = out_width(col->key);

		if (min_width < NARROW) {
			min_width = NARROW;
		}
		if (!cut_words && col->word > min_width) {
			min_width = col->word;
		}
		if (!col->blank && !col->numeric && col->width > min_width &&
		    (!widest || col->width > widest->width)) {
			widest = col;
		}
	}
	return widest;
}

/* Makes the widest columns of text narrower until the table fits, or nothing is left to be made
 * narrower; words are cut last. By how much it does not fit then. O(columns) for a step of one. */
static int make_narrower(struct text_table *t, int indent, int max_width)
{
	int excess = indent - t->gap - max_width;

	for (size_t c = 0; c < t->cols.n; c++) {
		t->cols.v[c].width = t->cols.v[c].full;
		excess += t->cols.v[c].blank ? 0 : t->cols.v[c].full + t->gap;
	}
	for (int cut = 0; cut < 2; cut++) {
		struct table_column *c = widest_column(t, cut);

		while (excess > 0 && c) {
			c->width--;
			excess--;
			c = widest_column(t, cut);
		}
	}
	return excess;
}

/* Columns are one blank apart where the table does not fit otherwise. max_width 0: any will do. */
static void fit(struct text_table *t, int indent, int max_width)
{
	t->gap = GAP;
	if (make_narrower(t, indent, max_width > 0 ? max_width : INT_MAX / 2) > 0) {
		t->gap = 1;
		make_narrower(t, indent, max_width);
	}
}

/* Numbers stand at the right of their column, text at the left; the gap to the
 * next column follows. */
static void put_cell(const struct table_column *c, const char *text, int gap, struct buf *b)
{
	int pad = c->width - out_width(text);

	buf_printf(b, "%*s%s%*s", c->numeric ? pad : 0, "", text, (c->numeric ? 0 : pad) + gap, "");
}

static void put_header(const struct text_table *t, int indent, struct buf *b)
{
	buf_printf(b, "%*s", indent, "");
	for (size_t c = 0; c < t->cols.n; c++) {
		struct buf key = { 0 };

		if (t->cols.v[c].blank) {
			continue;
		}
		put_key(t->cols.v[c].key, &key);
		for (size_t i = 0; i < key.len; i++) {
			if (key.data[i] >= 'a' && key.data[i] <= 'z') {
				key.data[i] -= 'a' - 'A';
			}
		}
		put_cell(&t->cols.v[c], buf_cstr(&key), t->gap, b);
		buf_fini(&key);
	}
	end_line(b);
}

/* A line of a row: what each cell still has that fits. True when some have
 * more. */
static bool put_line(const struct text_table *t, const char **rest, int indent, struct buf *b)
{
	bool more = false;

	buf_printf(b, "%*s", indent, "");
	for (size_t c = 0; c < t->cols.n; c++) {
		const struct table_column *col = &t->cols.v[c];
		size_t n = out_fit(rest[c], col->width);
		struct buf piece = { 0 };

		if (col->blank) {
			continue;
		}
		buf_add(&piece, rest[c], n);
		rest[c] += n;
		more = more || *rest[c];
		while (piece.len > 0 && *rest[c] && piece.data[piece.len - 1] == ' ') {
			piece.data[--piece.len] = '\0';
		}
		put_cell(col, buf_cstr(&piece), t->gap, b);
		buf_fini(&piece);
	}
	end_line(b);
	return more;
}

/* An array of objects, with a header line and one line or more for each row. */
static void put_table(const struct out *o, int at, int indent, struct buf *b)
{
	struct text_table t = { 0 };
	const char **rest;

	fill_table(o, at, &t);
	rest = x_new(t.cols.n + 1, sizeof(*rest));
	hide_blank(&t);
	fit(&t, indent, o->width);
	put_header(&t, indent, b);
	for (size_t i = 0; i < t.cells.n; i += t.cols.n) {
		for (size_t c = 0; c < t.cols.n; c++) {
			rest[c] = t.cells.v[i + c] ? t.cells.v[i + c] : "-";
		}
		while (put_line(&t, rest, indent, b)) {
		}
	}
	free(rest);
	free_table(&t);
}

/* How the values of an array look: all objects, all scalars, or mixed. An
 * empty array counts as scalars. */
static bool all_are(const struct out *o, int array, bool scalar)
{
	int first = out_first_value(o, array);

	for (int i = first; i >= 0; i = out_next_value(o, i)) {
		if (scalar ? !out_is_scalar(out_at(o, i)) : out_at(o, i)->kind != OUT_OBJECT) {
			return false;
		}
	}
	return scalar || first >= 0;
}

/* Is the node one "name  value" line? */
static bool is_field(const struct out *o, int at)
{
	const struct out_node *n = out_at(o, at);

	return n->kind != OUT_NOTE &&
	       (out_is_scalar(n) || out_first_value(o, at) < 0 ||
		(n->kind == OUT_ARRAY && all_are(o, at, true)));
}

static void put_array(const struct out *o, int at, int indent, struct buf *b)
{
	if (all_are(o, at, false)) {
		put_table(o, at, indent, b);
	} else {
		for (int i = out_first_value(o, at); i >= 0; i = out_next_value(o, i)) {
			buf_printf(b, "%*s", indent, "");
			put_value(o, i, b);
			end_line(b);
		}
	}
	put_notes(o, at, indent, b);
}

/* Columns of the longest name among an object's "name  value" lines. */
static int widest_field(const struct out *o, int object)
{
	int widest = 0;

	for (int i = first_shown(o, object); i >= 0; i = next_shown(o, i)) {
		if (is_field(o, i)) {
			int width = out_width(out_at(o, i)->key);

			widest = width > widest ? width : widest;
		}
	}
	return widest;
}

static void put_field(const struct out *o, int at, int indent, int width, struct buf *b)
{
	const char *key = out_at(o, at)->key;
	int column = indent + width + GAP;
	struct buf text = { 0 };

	put_value(o, at, &text);
	buf_printf(b, "%*s", indent, "");
	put_key(key, b);
	buf_printf(b, "%*s", width - out_width(key) + GAP, "");
	put_long(o, buf_cstr(&text), column, column, b);
	buf_fini(&text);
}

/* Fields follow each other; a blank line stands before and behind each nested
 * block. */
static void put_object(const struct out *o, int at, int indent, struct buf *b)
{
	int width = widest_field(o, at);
	size_t begin = b->len;
	bool after_block = false;

	for (int i = first_shown(o, at); i >= 0; i = next_shown(o, i)) {
		const struct out_node *n = out_at(o, i);
		bool block = n->kind != OUT_NOTE && !is_field(o, i);

		if ((block || after_block) && b->len > begin) {
			buf_char(b, '\n');
		}
		after_block = block;
		if (!block && n->kind != OUT_NOTE) {
			put_field(o, i, indent, width, b);
			continue;
		}
		if (!block) {
			put_note(o, n, indent, b);
			continue;
		}
		buf_printf(b, "%*s", indent, "");
		put_key(n->key, b);
		buf_str(b, ":\n");
		if (n->kind == OUT_ARRAY) {
			put_array(o, i, indent + 2, b);
		} else {
			put_object(o, i, indent + 2, b);
		}
	}
}

static void render(const struct out *o, struct buf *b)
{
	size_t start = b->len;

	put_object(o, 0, 0, b);
	if (b->len == start) {
		buf_char(b, '\n');
	}
}

const struct out_backend out_table = { "table", render };
