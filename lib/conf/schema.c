/* Mappings to values by their table; see schema.h. */
#include "lib/conf/schema.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_STRING 1024		/* bytes of a TEXT value */
#define MAX_STRINGS 64		/* entries of a STRINGS mapping */

/* One key being read. */
struct item {
	struct reader *r;
	const char *object;
	const struct key *key;
	const struct node *node;
};

bool name_is_valid(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return len > 0 && !text[len] && len <= CONF_MAX_NAME &&
	       isalnum((unsigned char)text[0]);
}

void section_object(const struct section *s, const struct node *entry, int nth,
		    char object[OBJECT_MAX])
{
	const struct node *key = entry->kind == NODE_MAP ? entry->first : NULL;

	for (; key; key = key->next->next) {
		if (strcmp(key->text, "name") == 0 && key->next->text[0]) {
			snprintf(object, OBJECT_MAX, "%s %.63s", s->object,
				 key->next->text);
			return;
		}
	}
	snprintf(object, OBJECT_MAX, "%s %d", s->object, nth);
}

/* ---- types ---- */

static bool mismatch(const struct item *it, const char *expected)
{
	struct err *e;

	if (it->node->kind == NODE_BAD) {
		return false;
	}
	e = reader_error(it->r, it->node->at, WEFT_EINVAL,
			 "%s: %s: expected %s, found %s", it->object,
			 it->key->name, expected, node_what(it->node));
	err_hint(e, "%s: %s", it->key->name, it->key->help);
	return false;
}

static bool is_text(const struct item *it, const char *expected)
{
	if (it->node->kind != NODE_TEXT || node_is_empty(it->node)) {
		return mismatch(it, expected);
	}
	return true;
}

static bool read_text(const struct item *it, struct value *v)
{
	if (!is_text(it, "text")) {
		return false;
	}
	if (!it->node->text[0] || strlen(it->node->text) > MAX_STRING) {
		reader_error(it->r, it->node->at, WEFT_EINVAL, "%s: %s: %s",
			     it->object, it->key->name,
			     it->node->text[0] ? "too long" : "empty text");
		return false;
	}
	v->text = it->node->text;
	return true;
}

static bool read_name(const struct item *it, struct value *v)
{
	struct err *e;

	if (!is_text(it, "a name")) {
		return false;
	}
	if (!name_is_valid(it->node->text)) {
		e = reader_error(it->r, it->node->at, WEFT_EINVAL,
				 "%s: %s: '%.64s' is not a name", it->object,
				 it->key->name, it->node->text);
		err_hint(e, "a name has up to %d letters, digits, '-' and "
			 "'_' and starts with a letter or digit",
			 CONF_MAX_NAME);
		return false;
	}
	v->text = it->node->text;
	return true;
}

/* The names themselves are expanded where the section is built. */
static bool read_names(const struct item *it, struct value *v)
{
	const char *expected = "text or a list of texts";
	struct item one = *it;

	(void)v;
	if (it->node->kind != NODE_LIST) {
		return is_text(it, expected);
	}
	if (it->node->n == 0) {
		reader_error(it->r, it->node->at, WEFT_EINVAL,
			     "%s: %s: the list is empty", it->object,
			     it->key->name);
		return false;
	}
	for (one.node = it->node->first; one.node; one.node = one.node->next) {
		if (!is_text(&one, "text")) {
			return false;
		}
	}
	return true;
}

static bool read_choice(const struct item *it, struct value *v)
{
	struct nearest near;
	struct err *e;
	char all[ERR_FILE_MAX] = "";

	if (!is_text(it, "a word")) {
		return false;
	}
	nearest_init(&near, it->node->text);
	for (int i = 0; it->key->choices[i]; i++) {
		const char *choice = it->key->choices[i];
		size_t len = strlen(all);

		if (strcmp(it->node->text, choice) == 0) {
			v->num = i;
			v->text = choice;
			return true;
		}
		snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "",
			 choice);
		nearest_try(&near, choice);
	}
	e = reader_error(it->r, it->node->at, WEFT_EINVAL,
			 "%s: %s: '%.40s' is none of %s", it->object,
			 it->key->name, it->node->text, all);
	nearest_hint(&near, e);
	return false;
}

static bool read_bool(const struct item *it, struct value *v)
{
	const char *text = it->node->text;

	if (!is_text(it, "true or false")) {
		return false;
	}
	v->num = strcmp(text, "true") == 0;
	if (it->node->quoted || (!v->num && strcmp(text, "false") != 0)) {
		reader_error(it->r, it->node->at, WEFT_EINVAL,
			     "%s: %s: expected true or false, found '%.40s'%s",
			     it->object, it->key->name, text,
			     it->node->quoted ? " in quotes" : "");
		return false;
	}
	return true;
}

static bool in_limits(const struct item *it, int64_t x)
{
	const struct key *k = it->key;
	char lo[64], hi[64];

	if (x >= k->min && x <= k->max) {
		return true;
	}
	if (k->type == KEY_QUANTITY) {
		unit_str(k->unit, k->min, lo, sizeof(lo));
		unit_str(k->unit, k->max, hi, sizeof(hi));
	} else {
		snprintf(lo, sizeof(lo), "%" PRId64, k->min);
		snprintf(hi, sizeof(hi), "%" PRId64, k->max);
	}
	if (k->max == INT64_MAX) {
		reader_error(it->r, it->node->at, WEFT_EINVAL,
			     "%s: %s: %.40s is less than %s", it->object,
			     k->name, it->node->text, lo);
	} else {
		reader_error(it->r, it->node->at, WEFT_EINVAL,
			     "%s: %s: %.40s is outside %s to %s", it->object,
			     k->name, it->node->text, lo, hi);
	}
	return false;
}

/* Decimal digits only, at most 18 of them. */
static const char *whole_number(const char *text, int64_t *value)
{
	size_t n = strspn(text, "0123456789");

	*value = 0;
	for (size_t i = 0; i < n && n <= 18; i++) {
		*value = *value * 10 + (text[i] - '0');
	}
	return n > 0 && n <= 18 ? text + n : NULL;
}

static bool read_int(const struct item *it, struct value *v)
{
	const char *text = it->node->text, *end;

	if (!is_text(it, "a whole number")) {
		return false;
	}
	end = whole_number(text, &v->num);
	if (!end || *end || it->node->quoted) {
		reader_error(it->r, it->node->at, WEFT_EINVAL,
			     "%s: %s: expected a whole number, found '%.40s'%s",
			     it->object, it->key->name, text,
			     it->node->quoted ? " in quotes" : "");
		return false;
	}
	return in_limits(it, v->num);
}

static bool read_quantity(const struct item *it, struct value *v)
{
	struct err err;

	if (!is_text(it, "a number with a unit")) {
		return false;
	}
	if (unit_parse(it->key->unit, it->node->text, &v->num, &err)) {
		size_t len = strlen(it->key->name);
		bool twice = strncmp(err.msg, it->key->name, len) == 0 &&
			     err.msg[len] == ' ';

		/* "rate '100' has no unit" needs no "rate: " before it. */
		reader_error(it->r, it->node->at, err.code, "%s: %s%s%s",
			     it->object, twice ? "" : it->key->name,
			     twice ? "" : ": ", err.msg);
		return false;
	}
	return in_limits(it, v->num);
}

static bool read_grid(const struct item *it, struct value *v)
{
	const char *end;
	struct err *e;

	if (!is_text(it, "a size")) {
		return false;
	}
	end = whole_number(it->node->text, &v->num);
	if (end && *end == 'x') {
		end = whole_number(end + 1, &v->num2);
		if (end && !*end) {
			return in_limits(it, v->num) &&
			       in_limits(it, v->num2);
		}
	}
	e = reader_error(it->r, it->node->at, WEFT_EINVAL,
			 "%s: %s: '%.40s' is not a size", it->object,
			 it->key->name, it->node->text);
	err_hint(e, "%s: %s", it->key->name, it->key->help);
	return false;
}

static bool read_entries(const struct item *it, struct value *v)
{
	struct err *e;

	(void)v;
	if (it->node->kind == NODE_MAP) {
		e = reader_error(it->r, it->node->at, WEFT_EINVAL,
				 "%s: %s: expected a list, found a mapping",
				 it->object, it->key->name);
		err_hint(e, "start each entry with '- '");
		return false;
	}
	if (it->node->kind != NODE_LIST) {
		return mismatch(it, "a list");
	}
	return true;
}

static bool read_map(const struct item *it, struct value *v)
{
	(void)v;
	return it->node->kind == NODE_MAP || mismatch(it, "a mapping");
}

static bool read_strings(const struct item *it, struct value *v)
{
	struct item one = *it;
	bool ok = true;

	if (!read_map(it, v)) {
		return false;
	}
	if (it->node->n / 2 > MAX_STRINGS) {
		reader_error(it->r, it->node->at, WEFT_ELIMIT,
			     "%s: %s: more than %d entries", it->object,
			     it->key->name, MAX_STRINGS);
		return false;
	}
	for (const struct node *k = it->node->first; k; k = k->next->next) {
		one.node = k;
		ok &= is_text(&one, "text as a key");
		one.node = k->next;
		ok &= is_text(&one, "text as each value");
		for (const struct node *b = it->node->first; b != k;
		     b = b->next->next) {
			if (strcmp(b->text, k->text) == 0 && k->text[0]) {
				reader_error(it->r, k->at, WEFT_EINVAL, "%s: "
					     "%s: key '%.40s' is given twice, "
					     "first on line %d", it->object,
					     it->key->name, k->text,
					     b->at.line);
				ok = false;
			}
		}
	}
	return ok;
}

static bool (*const read_type[])(const struct item *it, struct value *v) = {
	[KEY_NAME] = read_name,
	[KEY_NAMES] = read_names,
	[KEY_TEXT] = read_text,
	[KEY_CHOICE] = read_choice,
	[KEY_INT] = read_int,
	[KEY_BOOL] = read_bool,
	[KEY_QUANTITY] = read_quantity,
	[KEY_GRID] = read_grid,
	[KEY_ENTRIES] = read_entries,
	[KEY_MAP] = read_map,
	[KEY_STRINGS] = read_strings,
};

/* ---- sections ---- */

static bool unknown_key(struct reader *r, const struct section *s,
			const char *object, const struct node *key)
{
	struct nearest near;
	struct err *e;

	if (key->kind == NODE_BAD) {
		return false;
	}
	if (key->kind != NODE_TEXT || !key->text[0]) {
		reader_error(r, key->at, WEFT_EINVAL,
			     "%s: a key must be a word, found %s", object,
			     node_what(key));
		return false;
	}
	e = reader_error(r, key->at, WEFT_EINVAL, "%s: unknown key '%.60s'",
			 object, key->text);
	if (reader_kept(r, e)) {
		nearest_init(&near, key->text);
		for (int i = 0; i < s->n_keys; i++) {
			nearest_try(&near, s->keys[i].name);
		}
		nearest_hint(&near, e);
	}
	return false;
}

static bool read_pair(struct reader *r, const struct section *s,
		      const char *object, const struct node *key,
		      struct value *values)
{
	struct item it = { r, object, NULL, key->next };
	struct value *v;
	int i = 0;

	while (i < s->n_keys && strcmp(s->keys[i].name, key->text) != 0) {
		i++;
	}
	if (i == s->n_keys) {
		return unknown_key(r, s, object, key);
	}
	v = &values[i];
	if (v->node) {
		reader_error(r, key->at, WEFT_EINVAL,
			     "%s: key '%s' is given twice, first on line %d",
			     object, key->text, v->node->at.line);
		return false;
	}
	it.key = &s->keys[i];
	v->node = it.node;
	v->ok = read_type[it.key->type](&it, v);
	return v->ok;
}

static void take_default(struct reader *r, const struct key *key,
			 struct value *v)
{
	struct node plain = { .kind = NODE_TEXT, .text = key->def };
	struct item it = { r, "default", key, &plain };

	v->ok = read_type[key->type](&it, v);
}

bool section_read(struct reader *r, const struct section *s,
		  const char *object, const struct node *map,
		  struct value *values)
{
	int before = r->n_errors;

	memset(values, 0, (size_t)s->n_keys * sizeof(*values));
	if (map->kind != NODE_MAP) {
		if (map->kind != NODE_BAD) {
			reader_error(r, map->at, WEFT_EINVAL,
				     "%s: expected keys with values, found %s",
				     object, node_what(map));
		}
		return false;
	}
	for (const struct node *key = map->first; key; key = key->next->next) {
		read_pair(r, s, object, key, values);
	}
	for (int i = 0; i < s->n_keys; i++) {
		const struct key *key = &s->keys[i];
		struct err *e;

		if (values[i].node) {
			continue;
		}
		if (key->required) {
			e = reader_error(r, map->at, WEFT_EINVAL,
					 "%s: key '%s' is missing", object,
					 key->name);
			err_hint(e, "%s: %s", key->name, key->help);
		} else if (key->def) {
			take_default(r, key, &values[i]);
		}
	}
	return r->n_errors == before;
}
