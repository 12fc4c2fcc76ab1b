/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON (RFC 8259): two blanks a level, arrays of scalars on one line; or all of
 * it on one line without blanks. Notes are left out. Depth is that of the tree,
 * which commands build by hand: recursion is safe.
 */
#include "lib/base/text.h"
#include "lib/output/private.h"

/* The short form where JSON has one, else \uXXXX. Only characters of the basic
 * plane need it, so no surrogate pairs. */
static void put_escaped(struct buf *b, int32_t c)
{
	static const char named[] = "btn\0fr";	/* from U+0008 */

	if (c == '"' || c == '\\') {
		buf_char(b, '\\');
		buf_char(b, (char)c);
	} else if (c >= 8 && c <= 13 && named[c - 8]) {
		buf_char(b, '\\');
		buf_char(b, named[c - 8]);
	} else {
		buf_printf(b, "\\u%04x", (unsigned)c);
	}
}

/* Characters that JSON or YAML want escaped within quotes, those that a
 * terminal would obey, and those that turn the direction of writing. */
static bool needs_escape(int32_t c)
{
	return text_is_control(c) || c == '"' || c == '\\' || c == 0x2028 || c == 0x2029 ||
	       c == 0xfeff || c == 0xfffe || c == 0xffff;
}

void out_json_quote(struct buf *b, const char *s)
{
	buf_char(b, '"');
	while (*s) {
		const char *start = s;
		int32_t c = text_utf8(&s);

		if (c < 0) {
			buf_str(b, "\xef\xbf\xbd");
		} else if (needs_escape(c)) {
			put_escaped(b, c);
		} else {
			buf_add(b, start, (size_t)(s - start));
		}
	}
	buf_char(b, '"');
}

static void new_line(struct buf *b, int depth)
{
	buf_printf(b, "\n%*s", 2 * depth, "");
}

/* Whether an array holds no object or array; true when empty. */
static bool fits_one_line(const struct out *o, int array)
{
	for (int i = out_first_value(o, array); i >= 0; i = out_next_value(o, i)) {
		if (!out_is_scalar(out_at(o, i))) {
			return false;
		}
	}
	return true;
}

/* depth: levels above; negative: everything on one line. */
static void put_node(const struct out *o, int at, int depth, struct buf *b)
{
	const struct out_node *n = out_at(o, at);
	bool array = n->kind == OUT_ARRAY;
	bool compact = depth < 0;
	bool one_line = compact || (array && fits_one_line(o, at));
	int first, below = compact ? depth : depth + 1;

	if (n->kind == OUT_STRING) {
		out_json_quote(b, n->text);
		return;
	}
	if (out_is_scalar(n)) {
		out_put_literal(n, b);
		return;
	}
	first = out_first_value(o, at);
	buf_char(b, array ? '[' : '{');
	for (int i = first; i >= 0; i = out_next_value(o, i)) {
		if (i != first) {
			buf_str(b, one_line && !compact ? ", " : ",");
		}
		if (!one_line) {
			new_line(b, below);
		}
		if (!array) {
			out_json_quote(b, out_at(o, i)->key);
			buf_str(b, compact ? ":" : ": ");
		}
		put_node(o, i, below, b);
	}
	if (first >= 0 && !one_line) {
		new_line(b, depth);
	}
	buf_char(b, array ? ']' : '}');
}

static void render(const struct out *o, struct buf *b)
{
	put_node(o, 0, 0, b);
	buf_char(b, '\n');
}

static void render_line(const struct out *o, struct buf *b)
{
	put_node(o, 0, -1, b);
	buf_char(b, '\n');
}

const struct out_backend out_json = { "json", render };
const struct out_backend out_json_line = { "json", render_line };
