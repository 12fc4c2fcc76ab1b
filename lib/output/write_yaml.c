/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML in block style, two blanks a level. A string stays bare only when
 * neither a YAML 1.1 nor a 1.2 reader can take it for anything else; all others
 * are written as JSON strings, which both versions read as double-quoted ones.
 */
#include <string.h>
#include <strings.h>

#include "lib/output/private.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Words that some reader takes for a boolean or null, in any case. */
static bool is_reserved(const char *s)
{
	static const char *const words[] = {
		"null", "true", "false", "yes", "no", "on", "off", "y", "n",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(s, words[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* Whether s has a letter that no number or date has: those know only the
 * letters of hexadecimal digits, 0o, 0x, exponents and of a time's T and Z. */
static bool has_unnumeric_letter(const char *s)
{
	for (; *s; s++) {
		if (is_letter(*s) && !strchr("abcdefotxzABCDEFOTXZ", *s)) {
			return true;
		}
	}
	return false;
}

/* Whether s may stand bare, as a key or a value. Rather too strict: a quote too
 * many does no harm. */
static bool is_plain(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || is_reserved(s) || s[len - 1] == ' ' ||
	    s[len - 1] == ':' || strstr(s, ": ") || strstr(s, " #")) {
		return false;
	}
	if (is_digit(s[0]) ? !has_unnumeric_letter(s)
			   : !is_letter(s[0]) && s[0] != '_' && s[0] != '/') {
		return false;
	}
	for (const char *p = s; *p; p++) {
		if (!is_letter(*p) && !is_digit(*p) && !strchr(" _-./:+()@=%#", *p)) {
			return false;
		}
	}
	return true;
}

static void put_string(const char *s, struct buf *b)
{
	if (is_plain(s)) {
		buf_str(b, s);
	} else {
		out_json_quote(b, s);
	}
}

/* What stands behind "key:" or "-" on the same line; false when the node
 * goes on the lines below. */
static bool put_inline(const struct out *o, int at, struct buf *b)
{
	const struct out_node *n = out_at(o, at);

	if (!out_is_scalar(n) && out_first_value(o, at) >= 0) {
		return false;
	}
	buf_char(b, ' ');
	if (n->kind == OUT_STRING) {
		put_string(n->text, b);
	} else if (out_is_scalar(n)) {
		out_put_literal(n, b);
	} else {
		buf_str(b, n->kind == OUT_ARRAY ? "[]" : "{}");
	}
	buf_char(b, '\n');
	return true;
}

/* The children of an object or array, one a line. `inline_first`: the first
 * one continues the line of its "- ". */
static void put_children(const struct out *o, int at, int depth, bool inline_first, struct buf *b)
{
	bool array = out_at(o, at)->kind == OUT_ARRAY;

	for (int i = out_first_value(o, at); i >= 0; i = out_next_value(o, i)) {
		const struct out_node *n = out_at(o, i);

		if (!inline_first) {
			buf_printf(b, "%*s", 2 * depth, "");
		}
		inline_first = false;
		if (array) {
			buf_char(b, '-');
		} else {
			put_string(n->key, b);
			buf_char(b, ':');
		}
		if (put_inline(o, i, b)) {
			continue;
		}
		if (array) {
			buf_char(b, ' ');
			put_children(o, i, depth + 1, true, b);
		} else {
			buf_char(b, '\n');
			put_children(o, i, depth + 1, false, b);
		}
	}
}

/* The root is an object: its children, or {} when it has none. */
static void render(const struct out *o, struct buf *b)
{
	if (out_first_value(o, 0) < 0) {
		buf_str(b, "{}\n");
	} else {
		put_children(o, 0, 0, false, b);
	}
}

const struct out_backend out_yaml = { "yaml", render };
