/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing a value in a text of YAML without touching the rest. libyaml tells
 * where events begin and end in characters of the text; nothing else is
 * written again, so comments, order and style of all else stay.
 */
#include <string.h>
#include <yaml.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "lib/conf/conf.h"

/* Bytes before the character of this index. */
static size_t byte_of(const char *text, size_t len, size_t index)
{
	size_t at = 0;

	for (; at < len; at++) {
		if (((unsigned char)text[at] & 0xc0) != 0x80 && index-- == 0) {
			break;
		}
	}
	return at;
}

/* Where a pair of the outermost mapping stands, in characters; begins only once it was met. */
struct pair_place {
	const char *key;
	bool met;
	size_t begin, end;
	int depth;		/* of collections that are open */
	bool is_key;		/* the next node of the outermost mapping is one */
	bool done;		/* the pair is whole */
};

static bool begins(const yaml_event_t *ev)
{
	return ev->type == YAML_MAPPING_START_EVENT || ev->type == YAML_SEQUENCE_START_EVENT;
}

static bool ends(const yaml_event_t *ev)
{
	return ev->type == YAML_MAPPING_END_EVENT || ev->type == YAML_SEQUENCE_END_EVENT;
}

static bool take_event(void *arg, const yaml_event_t *ev)
{
	struct pair_place *p = arg;

	if (begins(ev)) {
		p->depth++;
		p->is_key = p->is_key || p->depth == 1;
		return false;
	}
	p->depth -= ends(ev);
	if (p->depth != 1 || (!ends(ev) && ev->type != YAML_SCALAR_EVENT)) {
		return false;
	}
	if (!p->is_key && p->met) {
		p->end = ev->end_mark.index;
		p->done = true;
		return true;
	}
	if (p->is_key && !ends(ev) && strcmp((const char *)ev->data.scalar.value, p->key) == 0) {
		p->met = true;
		p->begin = ev->start_mark.index;
	}
	p->is_key = !p->is_key;
	return false;
}

/* Hands every event to take, until that says that it has enough or the text ends. WEFT_EINVAL:
 * it is no YAML. */
static int each_event(const char *text, size_t len,
		      bool (*take)(void *arg, const yaml_event_t *ev), void *arg, struct err *err)
{
	bool enough = false;
	yaml_parser_t parser;
	yaml_event_t ev;

	if (!yaml_parser_initialize(&parser)) {
		alloc_end(0);
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (!enough && yaml_parser_parse(&parser, &ev)) {
		enough = take(arg, &ev) || ev.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&ev);
	}
	if (parser.error == YAML_MEMORY_ERROR) {
		alloc_end(0);
	}
	yaml_parser_delete(&parser);
	return enough ? 0 : err_set(err, WEFT_EINVAL, "this is no YAML");
}

/* A mark of the order of bytes counts for none of libyaml's characters. */
static void skip_mark(const char **text, size_t *len)
{
	if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
		*text += 3;
		*len -= 3;
	}
}

int conf_replace(const char *text, size_t len, const char *key, const char *value,
		 struct buf *out, struct err *err)
{
	struct pair_place p = { .key = key };
	size_t begin, end;
	int rc;

	skip_mark(&text, &len);
	rc = each_event(text, len, take_event, &p, err);
	if (rc) {
		return rc;
	}
	begin = p.done ? byte_of(text, len, p.begin) : len;
	end = p.done ? byte_of(text, len, p.end) : len;
	buf_add(out, text, begin);
	if (p.done) {
		buf_printf(out, "%s: %s\n", key, value);
	}
	buf_add(out, text + end, len - end);
	return 0;
}

/* ---- pairs wherever they stand ---------------------------------------------- */

/* What a collection that is open waits for. */
enum waits { FOR_ENTRY, FOR_KEY, FOR_VALUE };

struct renaming {
	const char *text;
	size_t len, copied;	/* bytes; so many of them are in out */
	const char *key, *new_key;
	conf_value_fn fn;
	void *arg;
	struct buf *out;
	struct err *err;
	int rc;			/* of fn; or how many were renamed */
	bool met;		/* the last key is the one; it begins at: */
	size_t begin;		/* characters */
	VEC(enum waits) open;
};

/* A value in quotes, and the line's end where it took that with it. */
static void put_pair(struct renaming *r, size_t begin, size_t end, const char *value)
{
	buf_add(r->out, r->text + r->copied, begin - r->copied);
	buf_printf(r->out, "%s: \"", r->new_key);
	for (; *value; value++) {
		buf_str(r->out, *value == '"' || *value == '\\' ? "\\" : "");
		buf_char(r->out, *value);
	}
	buf_str(r->out, r->text[end - 1] == '\n' ? "\"\n" : "\"");
	r->copied = end;
}

static void rename_pair(struct renaming *r, const yaml_event_t *ev)
{
	struct buf value = { 0 };
	int rc = r->fn((const char *)ev->data.scalar.value, &value, r->arg, r->err);

	if (rc == 0) {
		put_pair(r, byte_of(r->text, r->len, r->begin),
			 byte_of(r->text, r->len, ev->end_mark.index), buf_cstr(&value));
	}
	if (rc < 0 && r->err && !r->err->line) {
		r->err->line = (int)ev->start_mark.line + 1;
		r->err->col = (int)ev->start_mark.column + 1;
	}
	r->rc = rc < 0 ? rc : r->rc + (rc == 0);
	buf_fini(&value);
}

/* A node: what it is to the collection around it. */
static void take_node(struct renaming *r, const yaml_event_t *ev)
{
	enum waits *around = r->open.n ? &r->open.v[r->open.n - 1] : NULL;
	bool is_text = ev->type == YAML_SCALAR_EVENT;

	if (around && *around == FOR_KEY) {
		r->met = is_text && strcmp((const char *)ev->data.scalar.value, r->key) == 0;
		r->begin = ev->start_mark.index;
		*around = FOR_VALUE;
	} else if (around && *around == FOR_VALUE) {
		*around = FOR_KEY;
		if (r->met && is_text) {
			rename_pair(r, ev);
		}
		r->met = false;
	}
}

static bool take_for_renaming(void *arg, const yaml_event_t *ev)
{
	struct renaming *r = arg;

	if (begins(ev) || ev->type == YAML_SCALAR_EVENT || ev->type == YAML_ALIAS_EVENT) {
		take_node(r, ev);
	}
	if (begins(ev)) {
		vec_push(&r->open,
			 ev->type == YAML_MAPPING_START_EVENT ? FOR_KEY : FOR_ENTRY);
	} else if (ends(ev)) {
		r->open.n--;
	}
	return r->rc < 0;
}

int conf_rename(const char *text, size_t len, const char *key, const char *new_key,
		conf_value_fn fn, void *arg, struct buf *out, struct err *err)
{
	struct renaming r = { .key = key, .new_key = new_key, .fn = fn, .arg = arg, .out = out,
			      .err = err };
	int rc;

	skip_mark(&text, &len);
	r.text = text;
	r.len = len;
	rc = each_event(text, len, take_for_renaming, &r, err);
	buf_add(out, text + r.copied, len - r.copied);
	vec_fini(&r.open);
	return rc ? rc : r.rc;
}
