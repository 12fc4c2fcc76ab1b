/*
 * Changing a value in a text of YAML without touching the rest. libyaml tells
 * where events begin and end in characters of the text; nothing else is
 * written again, so comments, order and style of all else stay.
 */
#include <string.h>
#include <yaml.h>

#include "lib/base/alloc.h"
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
};

static bool begins(const yaml_event_t *ev)
{
	return ev->type == YAML_MAPPING_START_EVENT || ev->type == YAML_SEQUENCE_START_EVENT;
}

/* One event; true once the pair is whole. */
static bool take_event(struct pair_place *p, const yaml_event_t *ev)
{
	bool ends = ev->type == YAML_MAPPING_END_EVENT || ev->type == YAML_SEQUENCE_END_EVENT;

	if (begins(ev)) {
		p->depth++;
		p->is_key = p->is_key || p->depth == 1;
		return false;
	}
	p->depth -= ends;
	if (p->depth != 1 || (!ends && ev->type != YAML_SCALAR_EVENT)) {
		return false;
	}
	if (!p->is_key && p->met) {
		p->end = ev->end_mark.index;
		return true;
	}
	if (p->is_key && !ends && strcmp((const char *)ev->data.scalar.value, p->key) == 0) {
		p->met = true;
		p->begin = ev->start_mark.index;
	}
	p->is_key = !p->is_key;
	return false;
}

int conf_replace(const char *text, size_t len, const char *key, const char *value,
		 struct buf *out, struct err *err)
{
	struct pair_place p = { .key = key };
	bool done = false, over = false;
	size_t begin, end;
	yaml_parser_t parser;
	yaml_event_t ev;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	if (!yaml_parser_initialize(&parser)) {
		alloc_end(0);
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (!done && !over && yaml_parser_parse(&parser, &ev)) {
		over = ev.type == YAML_STREAM_END_EVENT;
		done = take_event(&p, &ev);
		yaml_event_delete(&ev);
	}
	if (parser.error == YAML_MEMORY_ERROR) {
		alloc_end(0);
	}
	yaml_parser_delete(&parser);
	if (!done && !over) {
		return err_set(err, WEFT_EINVAL, "this is no YAML");
	}
	begin = done ? byte_of(text, len, p.begin) : len;
	end = done ? byte_of(text, len, p.end) : len;
	buf_add(out, text, begin);
	if (done) {
		buf_printf(out, "%s: %s\n", key, value);
	}
	buf_add(out, text + end, len - end);
	return 0;
}
