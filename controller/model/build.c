/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of hosts, devices, fibres and jobs share: lists of entries,
 * names with ranges and their budget, and the look-up of what was read before.
 *
 * One list may hold thousands of names with the same mistake, such as hosts
 * that are not there; a tally makes one error of them, with a count. While a
 * part of the file could not be understood, names that it might have given are
 * not reported as unknown, so that one mistake gives one error.
 */
#include "controller/model/private.h"

#include <stdio.h>
#include <string.h>

/* More names than this are not searched for a likely one. */
#define MAX_SEARCHED 4096

void build_each(struct model_build *b, const struct conf_value *list,
		void (*add)(struct model_build *b, const struct conf_node *entry, int nth))
{
	int nth = 0;

	if (!list->node || !list->ok) {
		return;
	}
	for (const struct conf_node *e = list->node->first; e && !b->r->stop; e = e->next) {
		add(b, e, ++nth);
		conf_arena_fini(&b->r->work);
	}
}

/* Counts the names of one text against what is left of max and of the whole
 * fabric's budget. */
static bool count_text(struct model_build *b, const char *object, const char *key,
		       const struct conf_node *text, int64_t left, int64_t *n)
{
	size_t offset;
	struct err err;
	struct err *e;

	left = left < b->names_left ? left : b->names_left;
	if (names_count(text->text, left, n, &offset, &err) == 0) {
		b->names_left -= *n;
		return true;
	}
	e = conf_error(b->r, conf_node_place(text, offset), err.code, "%s: %s: %s", object, key,
		       err.msg);
	if (err.hint[0]) {
		err_hint(e, "%s", err.hint);
	}
	return false;
}

struct names *build_names(struct model_build *b, const char *object, const char *key,
			  const struct conf_node *node, struct conf_arena *arena, int max)
{
	bool list = node->kind == CONF_NODE_LIST;
	const struct conf_node *first = list ? node->first : node;
	struct names *out;
	int64_t total = 0, n;
	bool ok = true;

	for (const struct conf_node *t = first; t; t = list ? t->next : NULL) {
		ok &= count_text(b, object, key, t, max - total, &n);
		total += ok ? n : 0;
	}
	if (!ok) {
		return NULL;
	}
	out = conf_arena_alloc(arena, 1, sizeof(*out));
	out->v = conf_arena_alloc(arena, (size_t)total, sizeof(*out->v));
	for (const struct conf_node *t = first; t; t = list ? t->next : NULL) {
		names_expand(t->text, t->at, arena, out);
	}
	return out;
}

struct names *build_plain_names(struct model_build *b, const char *object, const char *key,
				const struct conf_node *node, struct conf_arena *arena, int max)
{
	struct names *names = build_names(b, object, key, node, arena, max);

	for (int i = 0; names && i < names->n; i++) {
		struct err *e;

		if (conf_is_name(names->v[i].text)) {
			continue;
		}
		e = conf_error(b->r, names->v[i].at, WEFT_EINVAL, "%s: %s: '%.80s' is not a name",
			       object, key, names->v[i].text);
		err_hint(e, CONF_NAME_HINT);
		return NULL;
	}
	return names;
}

int build_find(const struct strmap *map, const char *name)
{
	return (int)(intptr_t)strmap_get(map, name) - 1;
}

void build_map(struct strmap *map, const char *name, int index)
{
	strmap_set(map, name, (void *)((intptr_t)index + 1));
}

const char *build_line(const char *word, struct conf_place at, char buf[LINE_TEXT_MAX])
{
	buf[0] = '\0';
	if (at.line) {
		snprintf(buf, LINE_TEXT_MAX, " %s line %d", word, at.line);
	}
	return buf;
}

bool build_labels(struct model_build *b, const char *object, const char *key,
		  const struct conf_node *node, int n, char **out)
{
	bool list = node->kind == CONF_NODE_LIST;
	const struct conf_node *t = list ? node->first : node;
	int count = list ? node->n : 1;

	if (count != n) {
		conf_error(b->r, node->at, WEFT_EINVAL, "%s: %s: %d for %d name%s", object, key,
			   count, n, n == 1 ? "" : "s");
		return false;
	}
	for (int i = 0; i < n; i++, t = t->next) {
		size_t len = strlen(t->text);

		if (t->kind != CONF_NODE_TEXT || len < 1 || len > MODEL_MAX_LABEL) {
			conf_error(b->r, t->at, WEFT_EINVAL, "%s: %s: not a text of 1 to %d bytes",
				   object, key, MODEL_MAX_LABEL);
			return false;
		}
		out[i] = conf_arena_strndup(b->r->keep, t->text, len);
	}
	return true;
}

void tally_add(struct tally *t, const struct name *name)
{
	size_t len = strlen(t->others);

	t->first = t->n++ ? t->first : name;
	if (t->n > 1 && len + strlen(name->text) + MORE_MAX < sizeof(t->others)) {
		snprintf(t->others + len, sizeof(t->others) - len, "%s%s", len ? ", " : " (and ",
			 name->text);
		t->n_named++;
	}
}

const char *tally_others(struct tally *t)
{
	size_t len = strlen(t->others);
	int more = t->n - 1 - t->n_named;

	if (more > 0 && len > 0) {
		snprintf(t->others + len, sizeof(t->others) - len, ", and %d more)", more);
	} else if (len > 0) {
		snprintf(t->others + len, sizeof(t->others) - len, ")");
	}
	return t->others;
}

const char *tally_more(int n, char buf[MORE_MAX])
{
	buf[0] = '\0';
	if (n > 1) {
		snprintf(buf, MORE_MAX, " (and %d more such)", n - 1);
	}
	return buf;
}

bool build_is_taken(const struct model_build *b, const char *name)
{
	return build_find(&b->f->hosts, name) >= 0 || build_find(&b->f->devices, name) >= 0;
}

void build_report_taken(struct model_build *b, const char *object, struct tally *taken)
{
	const struct conf_place *at;
	const char *kind = "host";
	int index;

	if (taken->n == 0) {
		return;
	}
	index = build_find(&b->f->hosts, taken->first->text);
	if (index >= 0) {
		at = &b->hosts.v[index].place;
	} else {
		index = build_find(&b->f->devices, taken->first->text);
		at = &b->devices.v[index].place;
		kind = model_device_kind_name(b->devices.v[index].kind);
	}
	conf_error(b->r, taken->first->at, WEFT_EINVAL,
		   "%s: name '%s' is already a %s on line %d%s", object, taken->first->text, kind,
		   at->line, tally_others(taken));
}

/* One error for all unknown names of a list, at the first of them, with the
 * nearest known name as a hint. The search is spared where the list of errors
 * had no room. */
static void report_unknown(struct model_build *b, const char *object, struct tally *unknown)
{
	struct nearest near;
	struct err *e;

	e = conf_error(b->r, unknown->first->at, WEFT_EINVAL, "%s: there is no host '%.64s'%s",
		       object, unknown->first->text, tally_others(unknown));
	if (conf_error_kept(b->r, e)) {
		nearest_init(&near, unknown->first->text);
		for (size_t i = 0; i < b->hosts.n && i < MAX_SEARCHED; i++) {
			nearest_try(&near, b->hosts.v[i].name);
		}
		nearest_hint(&near, e);
	}
}

int build_find_hosts(struct model_build *b, const char *object,
		     const struct names *names, int *hosts, bool *clean)
{
	struct tally unknown = { 0 }, twice = { 0 };
	bool *seen = conf_arena_alloc(&b->r->work, b->hosts.n, sizeof(*seen));
	int n = 0;

	for (int i = 0; i < names->n; i++) {
		int host = build_find(&b->f->hosts, names->v[i].text);

		if (host < 0) {
			tally_add(&unknown, &names->v[i]);
		} else if (seen[host]) {
			tally_add(&twice, &names->v[i]);
		} else {
			seen[host] = true;
			hosts[n++] = host;
		}
	}
	if (unknown.n > 0 && !b->hosts_unsure) {
		report_unknown(b, object, &unknown);
	}
	if (twice.n > 0) {
		conf_error(b->r, twice.first->at, WEFT_EINVAL, "%s: nodes: %s is listed twice%s",
			   object, twice.first->text, tally_others(&twice));
	}
	*clean = unknown.n == 0 && twice.n == 0;
	return n;
}
