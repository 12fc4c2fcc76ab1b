/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requested jobs: each becomes a mapping like those of the file, without a place,
 * so that it passes the same checks. One of circuits becomes an entry of `circuits`
 * for each of them.
 */
#include <stdio.h>
#include <string.h>

#include "controller/model/private.h"

struct conf_node *build_node(struct model_build *b, enum conf_node_kind kind, const char *text,
			     struct conf_place at)
{
	struct conf_node *n = conf_arena_alloc(&b->r->tree, 1, sizeof(*n));

	n->kind = kind;
	n->quoted = true;
	n->text = text;
	n->at = at;
	return n;
}

#define SHAPE "shape "	/* begins the topology of a slice */
#define PROTECT "protect "	/* before it: a word, and a space */

static struct conf_node *new_node(struct model_build *b, enum conf_node_kind kind, const char *text)
{
	return build_node(b, kind, text, (struct conf_place){ 0, 0 });
}

void build_append(struct conf_node *parent, struct conf_node ***last, struct conf_node *child)
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

			build_append(list, &last, new_node(b, CONF_NODE_TEXT, name));
		}
		names += len + (names[len] == ' ');
	}
	return list;
}

static void append_names(struct model_build *b, struct conf_node *map, struct conf_node ***last,
			 const char *key, const char *names)
{
	if (names[0]) {
		build_append(map, last, new_node(b, CONF_NODE_TEXT, key));
		build_append(map, last, node_list(b, names));
	}
}

/* Places in the text of a request are none of the fabric's. */
static void forget_places(struct conf_node *n)
{
	for (; n; n = n->next) {
		n->at = (struct conf_place){ 0, 0 };
		forget_places(n->first);
	}
}

/* Appends the keys of a training step. Other keys of a job are the request's own. */
static void append_step(struct model_build *b, struct conf_node *map, struct conf_node ***last,
			const char *text)
{
	static const int keys[] = { JOB_MESH, JOB_COLLECTIVES, JOB_STEP, JOB_LIGHT,
				    JOB_MAX_CHANGES };
	struct conf_node *step = conf_read_yaml(b->r, text, strlen(text));
	struct conf_node *k = step ? step->first : NULL, *next;

	if (b->requested) {
		forget_places(k);
	}
	if (step && step->kind != CONF_NODE_MAP) {
		conf_error(b->r, step->at, WEFT_EINVAL, "expected keys of a training step");
		return;
	}
	for (; k; k = next) {
		bool known = false;

		next = k->next->next;
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			known |= strcmp(k->text, section_job.keys[keys[i]].name) == 0;
		}
		if (!known) {
			conf_error(b->r, k->at, WEFT_EINVAL, "'%.40s' is no key of a training "
				   "step", k->text);
			continue;
		}
		build_append(map, last, k);
		build_append(map, last, k->next);
	}
	**last = NULL;
}

/* "8x8x16 twist 1" as the texts of the keys. */
static void read_shape(const char *text, char out[3][24])
{
	const char *word = strchr(text, ' ');

	snprintf(out[0], sizeof(out[0]), "%.*s", (int)strcspn(text, " "), text);
	if (word && strncmp(word, " twist", 6) == 0) {
		snprintf(out[1], sizeof(out[1]), "true");
		word = strchr(word + 1, ' ');
	}
	if (word) {
		snprintf(out[2], sizeof(out[2]), "%s", word + 1);
	}
}

/* "protect shared K(5)": the word, "" where there is none, and what follows. */
static const char *read_protect(const char *text, char out[16])
{
	int end = 0;

	out[0] = '\0';
	if (strncmp(text, PROTECT, strlen(PROTECT)) == 0) {
		sscanf(text, PROTECT "%15s%n", out, &end);
	}
	return text + end + (text[end] == ' ' && end);
}

/* A request as a mapping, so that it passes the same checks as the jobs of the
 * text; numbers are written in a way that reads back exactly. */
static struct conf_node *request_node(struct model_build *b, const struct model_request *q)
{
	const bool is_step = strchr(q->collective, ':');
	char size[64], channels[16] = "", number[16] = "", shape[3][24] = { "" }, protect[16];
	const char *topology = read_protect(q->topology, protect);
	const bool is_slice = strncmp(topology, SHAPE, strlen(SHAPE)) == 0;
	const int digits = build_number_len(q->ports);
	const struct {
		const char *key, *text;
	} texts[] = {
		{ "name", q->name },
		{ "collective", is_step ? "" : q->collective },
		{ "topology", is_slice ? "" : topology },
		{ "algorithm", q->algorithm },
		{ "ring", q->ring },
		{ "size", is_step ? "" : unit_str(UNIT_BYTES, q->size_bytes, size, sizeof(size)) },
		{ "channels", channels },
		{ "ports", number },
		{ "shape", shape[0] },
		{ "twist", shape[1] },
		{ "spares", shape[2] },
		{ "protect", protect },
	};
	struct conf_node *map = new_node(b, CONF_NODE_MAP, "");
	struct conf_node **last = &map->first;

	if (q->channels > 0) {
		snprintf(channels, sizeof(channels), "%d", q->channels);
	}
	if (is_slice) {
		read_shape(topology + strlen(SHAPE), shape);
	}
	snprintf(number, sizeof(number), "%.*s", digits, q->ports);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = texts[i].text;
		struct conf_node *value;

		if (text[0]) {
			build_append(map, &last, new_node(b, CONF_NODE_TEXT, texts[i].key));
			text = conf_arena_strndup(&b->r->tree, text, strlen(text));
			value = new_node(b, CONF_NODE_TEXT, text);
			/* Numbers and true are not taken in quotes. */
			value->quoted = texts[i].text != shape[1] && texts[i].text != shape[2];
			build_append(map, &last, value);
		}
	}
	append_names(b, map, &last, "nodes", q->nodes);
	append_names(b, map, &last, "ports", digits ? "" : q->ports);
	if (is_step) {
		append_step(b, map, &last, q->collective);
	}
	return map;
}

int model_check_step(const char *text, int *ranks, struct err *err)
{
	const struct model_request q = { .name = "step", .nodes = "", .topology = "",
					 .algorithm = "", .ring = "", .ports = "",
					 .collective = (char *)text };
	struct conf_arena keep = { 0 };
	struct err_list errs = { .max = 1 };
	struct conf_reader r;
	struct model_build b = { .r = &r };
	struct job_entry e = { .object = "step", .job.n_hosts = *ranks };

	conf_reader_init(&r, "step", "training step", &keep, &errs);
	if (!strchr(text, ':')) {
		conf_error(&r, (struct conf_place){ 1, 1 }, WEFT_EINVAL, "expected keys of a "
			   "training step");
	} else {
		e.node = request_node(&b, &q);
	}
	if (e.node && r.n_errors == 0 &&
	    conf_read_section(&r, &section_job, e.object, e.node, e.v)) {
		build_step(&b, &e);
		*ranks = e.job.workload ? workload_ranks(e.job.workload, WORKLOAD_ALL_AXES) : 0;
	}
	workload_free(e.job.workload);
	if (errs.n > 0) {
		*err = errs.v[0];
	}
	conf_reader_fini(&r);
	err_list_fini(&errs);
	conf_arena_fini(&keep);
	return err->code;
}

/* ---- circuits ---- */

static void append_text(struct model_build *b, struct conf_node *map, struct conf_node ***last,
			const char *key, const char *text, size_t len)
{
	build_append(map, last, new_node(b, CONF_NODE_TEXT, key));
	build_append(map, last, new_node(b, CONF_NODE_TEXT,
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
