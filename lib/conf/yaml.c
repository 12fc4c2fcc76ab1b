/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text to nodes, on libyaml's events.
 *
 * The bytes are checked before libyaml sees them, because it reports bad
 * UTF-8 without a line; its complaints about syntax are translated to what a
 * user can act on. A node keeps its place and whether its text stands in the
 * file as it is, so that an error inside of a text has a column too.
 */

#include <string.h>
#include <yaml.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/conf/private.h"

struct yaml_tree {
	struct conf_reader *r;
	yaml_parser_t parser;
	struct conf_node *root;
	struct conf_node *open[CONF_MAX_DEPTH];	/* lists and maps around */
	struct conf_node *last[CONF_MAX_DEPTH];	/* child of each, to append */
	int depth;
	int n_nodes;
};

/* ---- the bytes ---- */

/* Length of the UTF-8 sequence at p, 0 when it is none (RFC 3629: shortest
 * form, no surrogates, up to U+10FFFF). *c: the character. */
static int utf8_next(const unsigned char *p, size_t left, uint32_t *c)
{
	static const uint32_t min_char[] = { 0, 0, 0x80, 0x800, 0x10000 };
	/* bytes of the sequence, by the upper five bits of its first */
	static const unsigned char lengths[32] = {
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 3, 3, 4, 0,
	};
	int n = lengths[p[0] >> 3];

	if (n == 0 || (size_t)n > left) {
		return 0;
	}
	*c = p[0];
	if (n > 1) {
		*c &= 0x7f >> n;
	}
	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return 0;
		}
		*c = *c << 6 | (p[i] & 0x3f);
	}
	if (*c < min_char[n] || (*c >= 0xd800 && *c < 0xe000) || *c > 0x10ffff) {
		return 0;
	}
	return n;
}

/* YAML's printable characters; a byte-order mark counts only up front. */
static bool is_printable(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || c == 0x85 ||
	       (c >= 0x20 && (c < 0x7f || c >= 0xa0) && c != 0xfeff &&
		c != 0xfffe && c != 0xffff);
}

/* All characters are UTF-8 and may stand in YAML; the first that may not is
 * reported. libyaml would say so too, but without line and column. */
static bool check_bytes(struct conf_reader *r, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	struct conf_place at = { 1, 1 };
	uint32_t c;
	int n;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_next(p + i, len - i, &c);
		if (n == 0) {
			conf_error(r, at, WEFT_EINVAL, "text: byte 0x%02x is not UTF-8", p[i]);
			return false;
		}
		if (!is_printable(c)) {
			conf_error(r, at, WEFT_EINVAL, "text: character U+%04X is not allowed", c);
			return false;
		}
		if (c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029 ||
		    (c == '\r' && !(i + 1 < len && p[i + 1] == '\n'))) {
			at.line++;
			at.col = 1;
		} else {
			at.col++;
		}
	}
	return true;
}

/* ---- libyaml's complaints in plain words ---- */

static const struct {
	const char *problem;
	const char *words;
	const char *hint;
} complaints[] = {
	{ "mapping values are not allowed in this context",
	  "a ':' where no key can be",
	  "check the indentation of this line and the one before; text that "
	  "holds ': ' needs quotes" },
	{ "did not find expected key", "expected a key, found something else",
	  "the keys of one mapping must start in the same column" },
	{ "did not find expected '-' indicator",
	  "expected '-' for the next entry of the list",
	  "the entries of one list must start in the same column" },
	{ "did not find expected ',' or '}'", "expected ',' or '}'",
	  "inside { } text that holds [ ] { } or ',' needs quotes" },
	{ "did not find expected ',' or ']'", "expected ',' or ']'",
	  "inside [ ] text that holds [ ] { } or ',' needs quotes" },
	{ "could not find expected ':'", "expected ':' after this key", "" },
	{ "found character that cannot start any token",
	  "a value cannot start with this character",
	  "indent with spaces, not tabs; put text with special characters in "
	  "quotes" },
	{ "found a tab character that violates indentation",
	  "a tab in the indentation", "indent with spaces" },
	{ "found a tab character where an indentation space is expected",
	  "a tab in the indentation", "indent with spaces" },
	{ "block sequence entries are not allowed in this context",
	  "a '-' where no list can start",
	  "start the list on a line of its own" },
	{ "mapping keys are not allowed in this context",
	  "a '?' where no key can be",
	  "text that starts with '?' needs quotes" },
	{ "did not find expected <document start>",
	  "something follows after the end of the document",
	  "check the indentation of this line" },
	{ "did not find expected node content", "expected a value", "" },
	{ "found unexpected end of stream",
	  "the closing quote is missing", "" },
	{ "found unexpected document indicator",
	  "'---' or '...' inside quoted text", "" },
	{ "found unknown escape character", "unknown escape after '\\'",
	  "single quotes take '\\' as it is" },
	{ "did not find expected hexdecimal number",
	  "expected hexadecimal digits after '\\x', '\\u' or '\\U'", "" },
	{ "found incompatible YAML document", "only YAML 1.1 and 1.2", "" },
	{ "found undefined tag handle", "tags are not supported", "" },
};

static void report_syntax(struct yaml_tree *t)
{
	const yaml_parser_t *p = &t->parser;
	const char *words = p->problem ? p->problem : "cannot be read";
	const char *hint = "";
	yaml_mark_t mark = p->problem_mark;
	struct err *e;

	if (p->error == YAML_MEMORY_ERROR) {
		alloc_end(0);
	}
	for (size_t i = 0; i < sizeof(complaints) / sizeof(*complaints); i++) {
		if (strcmp(words, complaints[i].problem) == 0) {
			words = complaints[i].words;
			hint = complaints[i].hint;
			break;
		}
	}
	/* Unclosed quotes are found at the end of the file; where they begin
	 * says more. */
	if (p->context && strstr(words, "closing quote")) {
		mark = p->context_mark;
	}
	e = conf_error(t->r, (struct conf_place){ (int)mark.line + 1, (int)mark.column + 1 },
		       WEFT_EINVAL, "YAML: %s", words);
	if (hint[0]) {
		err_hint(e, "%s", hint);
	}
}

/* ---- nodes ---- */

static struct conf_place place_of(const yaml_event_t *ev)
{
	return (struct conf_place){ (int)ev->start_mark.line + 1,
				     (int)ev->start_mark.column + 1 };
}

/* A new node, child of the innermost open one. NULL stops everything. */
static struct conf_node *add_node(struct yaml_tree *t, enum conf_node_kind kind,
				  const yaml_event_t *ev)
{
	struct conf_node *n;

	if (++t->n_nodes > t->r->max_nodes) {
		conf_error(t->r, place_of(ev), WEFT_ELIMIT, "text: more than %d keys and values",
			   t->r->max_nodes);
		t->r->stop = WEFT_ELIMIT;
		return NULL;
	}
	n = conf_arena_alloc(&t->r->tree, 1, sizeof(*n));
	n->kind = kind;
	n->at = place_of(ev);
	n->text = "";
	if (t->depth == 0) {
		t->root = n;
	} else {
		struct conf_node **last = &t->last[t->depth - 1];

		if (*last) {
			(*last)->next = n;
		} else {
			t->open[t->depth - 1]->first = n;
		}
		*last = n;
		t->open[t->depth - 1]->n++;
	}
	return n;
}

static void refuse_extras(struct yaml_tree *t, const yaml_event_t *ev,
			  const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor) {
		conf_error(t->r, place_of(ev), WEFT_EINVAL,
			   "YAML: anchor '&%.40s' is not supported", anchor);
	}
	if (tag) {
		conf_error(t->r, place_of(ev), WEFT_EINVAL, "YAML: tag '%.60s' is not supported",
			   tag);
	}
}

/* Quoted text may hold control characters by escapes, blocks hold line
 * breaks, and any text marks of direction. No value needs them, and they would end up in messages.
 * */
static bool check_text(struct yaml_tree *t, const struct conf_node *n, const unsigned char *p,
		       size_t len)
{
	uint32_t c = 0;
	int step;

	for (size_t i = 0; i < len; i += step) {
		step = utf8_next(p + i, len - i, &c);
		if (step == 0 || text_is_control((int32_t)c)) {
			conf_error(t->r, n->at, WEFT_EINVAL, "text: %s inside a value",
				   c == '\n' ? "a line break" : text_turns((int32_t)c) ?
				   "a mark of writing direction" : "a control character");
			return false;
		}
	}
	return true;
}

static void add_text(struct yaml_tree *t, const yaml_event_t *ev)
{
	const unsigned char *p = ev->data.scalar.value;
	size_t len = ev->data.scalar.length;
	size_t width = ev->end_mark.index - ev->start_mark.index;
	struct conf_node *n;

	refuse_extras(t, ev, ev->data.scalar.anchor, ev->data.scalar.tag);
	n = add_node(t, CONF_NODE_TEXT, ev);
	if (!n) {
		return;
	}
	if (!check_text(t, n, p, len)) {
		n->kind = CONF_NODE_BAD;
		return;
	}
	n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	/* Equal in length and without bytes beyond ASCII: no escapes. */
	n->verbatim = width == len + (n->quoted ? 2 : 0) &&
		      ev->start_mark.line == ev->end_mark.line;
	n->text = conf_arena_strndup(&t->r->tree, (const char *)p, len);
}

static void open_node(struct yaml_tree *t, enum conf_node_kind kind, const yaml_event_t *ev)
{
	struct conf_node *n;

	if (t->depth == CONF_MAX_DEPTH) {
		conf_error(t->r, place_of(ev), WEFT_ELIMIT, "YAML: nested deeper than %d levels",
			   CONF_MAX_DEPTH);
		t->r->stop = WEFT_ELIMIT;
		return;
	}
	n = add_node(t, kind, ev);
	if (n) {
		t->open[t->depth] = n;
		t->last[t->depth++] = NULL;
	}
}

/* Returns false when the stream has ended or cannot be read on. */
static bool take_event(struct yaml_tree *t, const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (t->root) {
			conf_error(t->r, place_of(ev), WEFT_EINVAL,
				   "YAML: a second document: not supported");
			return false;
		}
		break;
	case YAML_ALIAS_EVENT:
		conf_error(t->r, place_of(ev), WEFT_EINVAL, "YAML: alias '*%.40s' is not supported",
			   ev->data.alias.anchor);
		add_node(t, CONF_NODE_BAD, ev);
		break;
	case YAML_SCALAR_EVENT:
		add_text(t, ev);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_extras(t, ev, ev->data.sequence_start.anchor, ev->data.sequence_start.tag);
		open_node(t, CONF_NODE_LIST, ev);
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_extras(t, ev, ev->data.mapping_start.anchor, ev->data.mapping_start.tag);
		open_node(t, CONF_NODE_MAP, ev);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		t->depth--;
		break;
	case YAML_STREAM_END_EVENT:
		return false;
	default:
		break;
	}
	return !t->r->stop;
}

struct conf_node *conf_read_yaml(struct conf_reader *r, const char *text, size_t len)
{
	struct yaml_tree t = { .r = r };
	bool syntax_ok = true, more = true;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	if (!check_bytes(r, text, len)) {
		return NULL;
	}
	if (!yaml_parser_initialize(&t.parser)) {
		alloc_end(0);
	}
	yaml_parser_set_encoding(&t.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&t.parser, (const unsigned char *)text, len);
	while (more) {
		yaml_event_t ev;

		syntax_ok = yaml_parser_parse(&t.parser, &ev);
		if (!syntax_ok) {
			report_syntax(&t);
			break;
		}
		more = take_event(&t, &ev);
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&t.parser);
	if (syntax_ok && !r->stop && !t.root) {
		conf_error(r, (struct conf_place){ 1, 1 }, WEFT_EINVAL,
			   "text: no %s in it, the file is empty", r->content);
	}
	return syntax_ok && !r->stop ? t.root : NULL;
}

struct conf_place conf_node_place(const struct conf_node *n, size_t offset)
{
	struct conf_place at = n->at;

	if (n->verbatim) {
		at.col += (int)offset + n->quoted;
	}
	return at;
}

bool conf_node_is_empty(const struct conf_node *n)
{
	return n->kind == CONF_NODE_TEXT && !n->quoted &&
	       (!n->text[0] || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

const char *conf_node_what(const struct conf_node *n)
{
	if (n->kind == CONF_NODE_LIST) {
		return "a list";
	}
	if (n->kind == CONF_NODE_MAP) {
		return "a mapping";
	}
	return conf_node_is_empty(n) ? "nothing" : "text";
}
