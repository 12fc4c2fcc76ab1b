/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requested jobs: each becomes a mapping like those of the file, without a place,
 * so that it passes the same checks. One of circuits becomes an entry of `circuits`
 * for each of them.
 */
#include <stdio.h>
#include <string.h>

#include "controller/model/private.h"

static struct conf_node *new_node(struct model_build *b, enum conf_node_kind kind, const char *text)
{
	struct conf_node *n = conf_arena_alloc(&b->r->tree, 1, sizeof(*n));

	n->kind = kind;
	n->quoted = true;
	n->text = text;
	return n;
}

/* Appends to the children of a list or mapping. */
static void append(struct conf_node *parent, struct conf_node ***last, struct conf_node *child)
{
	**last = child;
	*last = &child->next;
	parent->n++;
}

/* "a b c" as a list of texts. */
static struct conf_node *node_list(struct model_build *b, const char *names)
{
	struct conf_node *list = new_node(b, CONF_NODE_LIST, "");
	struct conf_node **last = &list->first;

	while (*names) {
		size_t len = strcspn(names, " ");

		if (len > 0) {
			const char *name = conf_arena_strndup(&b->r->tree, names, len);

			append(list, &last, new_node(b, CONF_NODE_TEXT, name));
		}
		names += len + (names[len] == ' ');
	}
	return list;
}

static void append_names(struct model_build *b, struct conf_node *map, struct conf_node ***last,
			 const char *key, const char *names)
{
	if (names[0]) {
		append(map, last, new_node(b, CONF_NODE_TEXT, key));
		append(map, last, node_list(b, names));
	}
}

/* A request as a mapping, so that it passes the same checks as the jobs of the
 * text; numbers are written in a way that reads back exactly. */
static struct conf_node *request_node(struct model_build *b, const struct model_request *q)
{
	char size[64], channels[16] = "", number[16] = "";
	const int digits = build_number_len(q->ports);
	const struct {
		const char *key, *text;
	} texts[] = {
		{ "name", q->name },
		{ "collective", q->collective },
		{ "topology", q->topology },
		{ "algorithm", q->algorithm },
		{ "ring", q->ring },
		{ "size", unit_str(UNIT_BYTES, q->size_bytes, size, sizeof(size)) },
		{ "channels", channels },
		{ "ports", number },
	};
	struct conf_node *map = new_node(b, CONF_NODE_MAP, "");
	struct conf_node **last = &map->first;

	if (q->channels > 0) {
		snprintf(channels, sizeof(channels), "%d", q->channels);
	}
	snprintf(number, sizeof(number), "%.*s", digits, q->ports);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = texts[i].text;

		if (text[0]) {
			append(map, &last, new_node(b, CONF_NODE_TEXT, texts[i].key));
			text = conf_arena_strndup(&b->r->tree, text, strlen(text));
			append(map, &last, new_node(b, CONF_NODE_TEXT, text));
		}
	}
	append_names(b, map, &last, "nodes", q->nodes);
	append_names(b, map, &last, "ports", digits ? "" : q->ports);
	return map;
}

/* ---- circuits ---- */

static void append_text(struct model_build *b, struct conf_node *map, struct conf_node ***last,
			const char *key, const char *text, size_t len)
{
	append(map, last, new_node(b, CONF_NODE_TEXT, key));
	append(map, last, new_node(b, CONF_NODE_TEXT,
				   conf_arena_strndup(&b->r->tree, text, len)));
}

/* "FROM TO" or "FROM TO one-way", of len bytes. */
static struct conf_node *circuit_node(struct model_build *b, const char *group, const char *line,
				      size_t len)
{
	struct conf_node *map = new_node(b, CONF_NODE_MAP, "");
	struct conf_node **last = &map->first;
	static const char *const keys[] = { "from", "to", "direction" };
	const char *end = line + len;

	append_text(b, map, &last, "group", group, strlen(group));
	for (int i = 0; i < 3 && line < end; i++) {
		size_t n = strcspn(line, " \n");

		append_text(b, map, &last, keys[i], line, n);
		line += n + (line + n < end);
	}
	return map;
}

static void add_circuits(struct model_build *b, const struct model_request *q)
{
	int nth = 0;

	b->request_job = -1;
	for (const char *line = q->circuits; *line && !b->r->stop;) {
		size_t len = strcspn(line, "\n");

		build_circuit(b, circuit_node(b, q->name, line, len), ++nth);
		conf_arena_fini(&b->r->work);
		line += len + (line[len] == '\n');
	}
}

void build_requests(struct model_build *b)
{
	struct model_config *config = &b->f->pub.config;
	size_t n;

	b->requested = true;
	for (int i = 0; i < config->n_requests && !b->r->stop; i++) {
		struct model_request *q = &config->requests[i];

		if (q->circuits[0]) {
			add_circuits(b, q);
		} else {
			n = b->entries.n;
			build_job(b, request_node(b, q), i + 1);
			if (b->entries.n > n) {
				b->entries.v[n]->request = q;
			}
			conf_arena_fini(&b->r->work);
		}
	}
}
