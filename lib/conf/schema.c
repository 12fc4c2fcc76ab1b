/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings to values by their table.
 *
 * A reader a type (read_type[]) checks one node and fills one value; defaults
 * are written as in a file and go through the same readers, so that a table
 * with a wrong default fails in the first test that reads a section. All that
 * is wrong with a mapping is reported, not only the first of it.
 */

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/conf/private.h"

#define MAX_STRING 1024		/* bytes of a TEXT value */
#define MAX_STRINGS 64		/* entries of a STRINGS mapping */

/* One key being read. */
struct item {
	struct conf_reader *r;
	const char *object;
	const struct conf_key *key;
	const struct conf_node *node;
};

bool conf_is_name(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return len > 0 && !text[len] && len <= CONF_MAX_NAME && isalnum((unsigned char)text[0]);
}

void conf_object_name(const struct conf_section *s, const struct conf_node *entry, int nth,
		      char object[CONF_MAX_OBJECT])
{
	const struct conf_node *key = entry->kind == CONF_NODE_MAP ? entry->first : NULL;

	for (; key; key = key->next->next) {
		if (strcmp(key->text, "name") == 0 && key->next->text[0]) {
			snprintf(object, CONF_MAX_OBJECT, "%s %.63s", s->object, key->next->text);
			return;
		}
	}
	snprintf(object, CONF_MAX_OBJECT, "%s %d", s->object, nth);
}

/* ---- types ---- */

/* An error about the value: "object: key: fact". */
static struct err *report(const struct item *it, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static struct err *report(const struct item *it, const char *fmt, ...)
{
	char fact[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fact, sizeof(fact), fmt, ap);
	va_end(ap);
	return conf_error(it->r, it->node->at, WEFT_EINVAL, "%s: %s: %s", it->object, it->key->name,
			  fact);
}

/* A value of another kind than its key has, with the key's help as a hint.
 * Nodes that were refused already are passed over. */
static bool mismatch(const struct item *it, const char *expected)
{
	if (it->node->kind != CONF_NODE_BAD) {
		err_hint(report(it, "expected %s, found %s", expected, conf_node_what(it->node)),
			 "%s: %s", it->key->name, it->key->help);
	}
	return false;
}

/* Whether there is text at all; nothing, a list or a mapping is reported. */
static bool is_text(const struct item *it, const char *expected)
{
	if (it->node->kind != CONF_NODE_TEXT || conf_node_is_empty(it->node)) {
		return mismatch(it, expected);
	}
	return true;
}

static bool read_text(const struct item *it, struct conf_value *v)
{
	if (!is_text(it, "text")) {
		return false;
	}
	if (!it->node->text[0] || strlen(it->node->text) > MAX_STRING) {
		report(it, "%s", it->node->text[0] ? "too long" : "empty text");
		return false;
	}
	v->text = it->node->text;
	return true;
}

static bool read_name(const struct item *it, struct conf_value *v)
{
	if (!is_text(it, "a name")) {
		return false;
	}
	if (!conf_is_name(it->node->text)) {
		err_hint(report(it, "'%.64s' is not a name", it->node->text), CONF_NAME_HINT);
		return false;
	}
	v->text = it->node->text;
	return true;
}

/* Checks the form alone: what the texts expand to is the user's business. */
static bool read_names(const struct item *it, struct conf_value *v)
{
	struct item one = *it;

	(void)v;
	if (it->node->kind != CONF_NODE_LIST) {
		return is_text(it, "text or a list of texts");
	}
	if (it->node->n == 0) {
		report(it, "the list is empty");
		return false;
	}
	for (one.node = it->node->first; one.node; one.node = one.node->next) {
		if (!is_text(&one, "text")) {
			return false;
		}
	}
	return true;
}

static bool read_choice(const struct item *it, struct conf_value *v)
{
	const char *const *choices = it->key->choices;
	struct nearest near;
	char all[ERR_FILE_MAX] = "";

	if (!is_text(it, "a word")) {
		return false;
	}
	nearest_init(&near, it->node->text);
	for (int i = 0; choices[i]; i++) {
		size_t len = strlen(all);

		if (strcmp(it->node->text, choices[i]) == 0) {
			v->num = i;
			v->text = choices[i];
			return true;
		}
		snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "", choices[i]);
		nearest_try(&near, choices[i]);
	}
	nearest_hint(&near, report(it, "'%.40s' is none of %s", it->node->text, all));
	return false;
}

/* A number or truth value that is something else, or in quotes. */
static bool not_plain(const struct item *it, const char *expected)
{
	report(it, "expected %s, found '%.40s'%s", expected, it->node->text,
	       it->node->quoted ? " in quotes" : "");
	return false;
}

static bool read_bool(const struct item *it, struct conf_value *v)
{
	const char *text = it->node->text;

	if (!is_text(it, "true or false")) {
		return false;
	}
	v->num = strcmp(text, "true") == 0;
	if (it->node->quoted || (!v->num && strcmp(text, "false") != 0)) {
		return not_plain(it, "true or false");
	}
	return true;
}

/* Reports a number outside the key's limits, in the key's unit. */
static bool in_limits(const struct item *it, int64_t x)
{
	const struct conf_key *k = it->key;
	char lo[64], hi[64];

	if (x >= k->min && x <= k->max) {
		return true;
	}
	if (k->type == CONF_QUANTITY) {
		unit_str(k->unit, k->min, lo, sizeof(lo));
		unit_str(k->unit, k->max, hi, sizeof(hi));
	} else {
		snprintf(lo, sizeof(lo), "%" PRId64, k->min);
		snprintf(hi, sizeof(hi), "%" PRId64, k->max);
	}
	if (k->max == INT64_MAX) {
		report(it, "%.40s is less than %s", it->node->text, lo);
	} else {
		report(it, "%.40s is outside %s to %s", it->node->text, lo, hi);
	}
	return false;
}

/* Decimal digits only, at most 18 of them; what follows, NULL without any. */
static const char *whole_number(const char *text, int64_t *value)
{
	size_t n = strspn(text, "0123456789");

	*value = 0;
	for (size_t i = 0; i < n && n <= 18; i++) {
		*value = *value * 10 + (text[i] - '0');
	}
	return n > 0 && n <= 18 ? text + n : NULL;
}

static bool read_int(const struct item *it, struct conf_value *v)
{
	bool below = it->key->min < 0 && it->node->text[0] == '-';
	const char *end;

	if (!is_text(it, "a whole number")) {
		return false;
	}
	end = whole_number(it->node->text + below, &v->num);
	v->num = below ? -v->num : v->num;
	if (!end || *end || it->node->quoted) {
		return not_plain(it, "a whole number");
	}
	return in_limits(it, v->num);
}

static bool read_quantity(const struct item *it, struct conf_value *v)
{
	size_t len = strlen(it->key->name);
	struct err err;

	if (!is_text(it, "a number with a unit")) {
		return false;
	}
	if (unit_parse(it->key->unit, it->node->text, &v->num, &err) == 0) {
		return in_limits(it, v->num);
	}
	/* "rate '100' has no unit" needs no "rate: " before it. */
	if (strncmp(err.msg, it->key->name, len) == 0 && err.msg[len] == ' ') {
		conf_error(it->r, it->node->at, err.code, "%s: %s", it->object, err.msg);
	} else {
		report(it, "%s", err.msg)->code = err.code;
	}
	return false;
}

/* "32x16": both numbers within the limits of the key. */
static bool read_grid(const struct item *it, struct conf_value *v)
{
	const char *end;

	if (!is_text(it, "a size")) {
		return false;
	}
	end = whole_number(it->node->text, &v->num);
	if (end && *end == 'x') {
		end = whole_number(end + 1, &v->num2);
		if (end && !*end) {
			return in_limits(it, v->num) && in_limits(it, v->num2);
		}
	}
	err_hint(report(it, "'%.40s' is not a size", it->node->text), "%s: %s", it->key->name,
		 it->key->help);
	return false;
}

static bool read_entries(const struct item *it, struct conf_value *v)
{
	(void)v;
	if (it->node->kind == CONF_NODE_MAP) {
		err_hint(report(it, "expected a list, found a mapping"),
			 "start each entry with '- '");
		return false;
	}
	return it->node->kind == CONF_NODE_LIST || mismatch(it, "a list");
}

static bool read_map(const struct item *it, struct conf_value *v)
{
	(void)v;
	return it->node->kind == CONF_NODE_MAP || mismatch(it, "a mapping");
}

/* Whether the key k of the mapping stands in it before; reported. */
static bool is_double(const struct item *it, const struct conf_node *k)
{
	const struct conf_node *b = it->node->first;

	while (b != k && (strcmp(b->text, k->text) != 0 || !k->text[0])) {
		b = b->next->next;
	}
	if (b == k) {
		return false;
	}
	conf_error(it->r, k->at, WEFT_EINVAL,
		   "%s: %s: key '%.40s' is given twice, first on line %d", it->object,
		   it->key->name, k->text, b->at.line);
	return true;
}

static bool read_strings(const struct item *it, struct conf_value *v)
{
	struct item one = *it;
	bool ok = true;

	if (!read_map(it, v)) {
		return false;
	}
	if (it->node->n / 2 > MAX_STRINGS) {
		report(it, "more than %d entries", MAX_STRINGS)->code = WEFT_ELIMIT;
		return false;
	}
	for (const struct conf_node *k = it->node->first; k; k = k->next->next) {
		one.node = k;
		ok &= is_text(&one, "text as a key");
		one.node = k->next;
		ok &= is_text(&one, "text as each value");
		ok &= !is_double(it, k);
	}
	return ok;
}

static bool read_any(const struct item *it, struct conf_value *v)
{
	(void)v;
	return it->node->kind != CONF_NODE_BAD;
}

bool conf_read_value(struct conf_reader *r, const char *object, const struct conf_key *key,
		     const struct conf_node *node, struct conf_value *v)
{
	static bool (*const read_type[])(const struct item *it, struct conf_value *v) = {
		[CONF_NAME] = read_name,         [CONF_NAMES] = read_names,
		[CONF_TEXT] = read_text,         [CONF_CHOICE] = read_choice,
		[CONF_INT] = read_int,           [CONF_BOOL] = read_bool,
		[CONF_QUANTITY] = read_quantity, [CONF_GRID] = read_grid,
		[CONF_ENTRIES] = read_entries,   [CONF_MAP] = read_map,
		[CONF_STRINGS] = read_strings,   [CONF_ANY] = read_any,
	};
	const struct item it = { r, object, key, node };

	*v = (struct conf_value){ .node = node };
	v->ok = read_type[key->type](&it, v);
	return v->ok;
}

/* ---- sections ---- */

/* A key that the section does not have, with the nearest one as a hint. */
static void report_unknown(struct conf_reader *r, const struct conf_section *s, const char *object,
			   const struct conf_node *key)
{
	struct nearest near;
	struct err *e;

	if (key->kind == CONF_NODE_BAD) {
		return;
	}
	if (key->kind != CONF_NODE_TEXT || !key->text[0]) {
		conf_error(r, key->at, WEFT_EINVAL, "%s: a key must be a word, found %s", object,
			   conf_node_what(key));
		return;
	}
	e = conf_error(r, key->at, WEFT_EINVAL, "%s: unknown key '%.60s'", object, key->text);
	if (conf_error_kept(r, e)) {
		nearest_init(&near, key->text);
		for (int i = 0; i < s->n_keys; i++) {
			nearest_try(&near, s->keys[i].name);
		}
		nearest_hint(&near, e);
	}
}

/* Reads one key with its value, unless the key is unknown or stood before. */
static void read_pair(struct conf_reader *r, const struct conf_section *s, const char *object,
		      const struct conf_node *key, struct conf_value *values)
{
	int i = 0;

	while (i < s->n_keys && strcmp(s->keys[i].name, key->text) != 0) {
		i++;
	}
	if (i == s->n_keys) {
		if (strcmp(s->keys[i - 1].name, "*") != 0) {
			report_unknown(r, s, object, key);
		}
	} else if (values[i].node) {
		conf_error(r, key->at, WEFT_EINVAL, "%s: key '%s' is given twice, first on line %d",
			   object, key->text, values[i].node->at.line);
	} else {
		conf_read_value(r, object, &s->keys[i], key->next, &values[i]);
	}
}

/* What a key has that the mapping at this place does not give. */
static void take_default(struct conf_reader *r, const char *object, struct conf_place at,
			 const struct conf_key *key, struct conf_value *v)
{
	const struct conf_node plain = { .kind = CONF_NODE_TEXT, .text = key->def };

	if (key->required) {
		err_hint(conf_error(r, at, WEFT_EINVAL, "%s: key '%s' is missing", object,
				    key->name), "%s: %s", key->name, key->help);
	} else if (key->def) {
		conf_read_value(r, "default", key, &plain, v);
		v->node = NULL;
	}
}

bool conf_read_section(struct conf_reader *r, const struct conf_section *s, const char *object,
		       const struct conf_node *map, struct conf_value *values)
{
	int before = r->n_errors;

	memset(values, 0, (size_t)s->n_keys * sizeof(*values));
	if (map->kind != CONF_NODE_MAP) {
		if (map->kind != CONF_NODE_BAD) {
			conf_error(r, map->at, WEFT_EINVAL,
				   "%s: expected keys with values, found %s", object,
				   conf_node_what(map));
		}
		return false;
	}
	for (const struct conf_node *key = map->first; key; key = key->next->next) {
		read_pair(r, s, object, key, values);
	}
	for (int i = 0; i < s->n_keys; i++) {
		if (!values[i].node) {
			take_default(r, object, map->at, &s->keys[i], &values[i]);
		}
	}
	return r->n_errors == before;
}
