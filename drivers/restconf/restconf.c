/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading answers. All of them are found by name, whatever the module's prefix:
 * entries() finds a list in its container or alone, and what is no such thing
 * is an error, never an empty list: circuits must not vanish because a device
 * answers in words that we do not know.
 */
#include "drivers/restconf/restconf.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "lib/base/alloc.h"

/* What follows the module's prefix. */
static const char *plain_name(const char *key)
{
	const char *colon = strrchr(key, ':');

	return colon ? colon + 1 : key;
}

/* A member by its name without prefix; NULL when there is none. */
static json_t *member(json_t *object, const char *name)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) {
		if (strcmp(plain_name(key), name) == 0) {
			return value;
		}
	}
	return NULL;
}

/* A body as JSON, or NULL with WEFT_EDEVICE; `expected` says what it should be. */
static json_t *parse(const char *body, const char *expected, struct err *err)
{
	json_t *root = json_loads(body, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

	if (!root) {
		parse_unexpected(body, expected, err);
	}
	return root;
}

static void make_printable(char *text)
{
	for (char *c = text; *c; c++) {
		*c = isprint((unsigned char)*c) ? *c : '?';
	}
}

static void copy_text(const char *from, char *text, size_t size)
{
	snprintf(text, size, "%s", from);
	make_printable(text);
}

/* A number or a string of digits, from 1 to max. */
static bool whole(const json_t *value, int64_t max, int64_t *out)
{
	const char *s = json_string_value(value);
	char *end;

	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return *out >= 1 && *out <= max;
	}
	if (!s || !isdigit((unsigned char)*s) || strlen(s) > 18) {
		return false;
	}
	*out = strtoll(s, &end, 10);
	return *end == '\0' && *out >= 1 && *out <= max;
}

static bool port_of(json_t *entry, const char *name, int32_t *port)
{
	int64_t n;

	if (!whole(member(entry, name), RESTCONF_MAX_PORT, &n)) {
		return false;
	}
	*port = (int32_t)n;
	return true;
}

/* The list `name` (or `other`, which may be NULL) of a container: a new
 * reference to an array, NULL with an error when it is not there. An empty
 * body, an empty container and an empty object are an empty list. */
static json_t *entries(const char *body, const char *container, const char *name,
		       const char *other, struct err *err)
{
	json_t *root, *inner, *list, *array = NULL;
	char expected[96];

	snprintf(expected, sizeof(expected), "%s, a list of %s", container, name);
	if (body[strspn(body, " \t\r\n")] == '\0') {
		return json_array();
	}
	root = parse(body, expected, err);
	if (!root) {
		return NULL;
	}
	inner = member(root, container);
	inner = inner ? inner : root;
	list = member(inner, name);
	list = list || !other ? list : member(inner, other);
	if (json_is_array(list)) {
		array = json_incref(list);
	} else if (json_is_object(list)) {
		array = json_array();
		json_array_append(array, list);
	} else if (!list && json_is_object(inner) && json_object_size(inner) == 0) {
		array = json_array();
	} else {
		parse_unexpected(body, expected, err);
	}
	json_decref(root);
	return array;
}

int restconf_parse_pairs(const char *body, struct restconf_pair **pairs, int *n, struct err *err)
{
	json_t *list = entries(body, "cross-connects", "pair", "pairs", err);
	size_t i, size = json_array_size(list);
	json_t *entry;
	int rc = 0;

	if (!list) {
		return WEFT_EDEVICE;
	}
	*n = 0;
	*pairs = x_new(size, sizeof(**pairs));
	json_array_foreach(list, i, entry) {
		struct restconf_pair *p = rc ? NULL : &(*pairs)[*n];

		if (p && (!port_of(entry, "ingress", &p->ingress) ||
			  !port_of(entry, "egress", &p->egress))) {
			rc = parse_unexpected(body, "an ingress and an egress a pair", err);
		}
		*n += p && rc == 0;
	}
	if (rc) {
		free(*pairs);
		*pairs = NULL;
	}
	json_decref(list);
	return rc;
}

int restconf_parse_product(const char *body, char *line, size_t size, struct err *err)
{
	static const char *const names[] = { "manufacturer", "model-name", "serial-number",
					     "software-version" };
	json_t *root = parse(body, "product-information", err), *inner;
	size_t n = 0;
	int rc = 0;

	if (!root) {
		return WEFT_EDEVICE;
	}
	inner = member(root, "product-information");
	inner = inner ? inner : root;
	for (int i = 0; rc == 0 && i < 4; i++) {
		const char *text = json_string_value(member(inner, names[i]));

		/* A serial number or a software may be left out; without a
		 * maker and a model it is not what was asked for. */
		if (!text && i < 2) {
			rc = parse_unexpected(body, "product-information", err);
		} else if (n < size) {
			copy_text(text ? text : "", line + n, size - n);
			n += strlen(line + n);
			n += (size_t)snprintf(line + n, size - n, i < 3 ? "," : "");
		}
	}
	json_decref(root);
	return rc;
}

static bool status_of(json_t *entry, enum restconf_status *s)
{
	static const struct {
		const char *word;
		enum restconf_status status;
	} words[] = { { "ENABLED", RESTCONF_ENABLED }, { "DISABLED", RESTCONF_DISABLED },
		      { "FAILED", RESTCONF_FAILED }, { "UNSUPPORTED", RESTCONF_FAILED } };
	const char *text = json_string_value(member(entry, "status"));

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(plain_name(text), words[i].word) == 0) {
			*s = words[i].status;
			return true;
		}
	}
	return false;
}

int restconf_parse_states(const char *body,
			  int (*fn)(int32_t port, enum restconf_status s, void *arg,
				    struct err *err),
			  void *arg, struct err *err)
{
	json_t *list = entries(body, "port-config", "port", NULL, err), *entry;
	enum restconf_status s;
	int32_t port;
	int rc = list ? 0 : WEFT_EDEVICE;
	size_t i;

	json_array_foreach(list, i, entry) {
		if (rc == 0 && (!port_of(entry, "port-id", &port) || !status_of(entry, &s))) {
			rc = parse_unexpected(body, "a port-id and a status a port", err);
		} else if (rc == 0) {
			rc = fn(port, s, arg, err);
		}
	}
	json_decref(list);
	return rc;
}

/* -29.55 or "-29.55" to -29550. */
static bool milli_of(const json_t *value, int32_t *milli)
{
	const char *s = json_string_value(value);
	double x = json_number_value(value);

	if (s) {
		return parse_milli(s, milli);
	}
	*milli = x > -1000 && x < 1000 ? (int32_t)(x * 1000 + (x < 0 ? -0.5 : 0.5)) : 0;
	return json_is_number(value) && x > -1000 && x < 1000;
}

int restconf_parse_powers(const char *body,
			  int (*fn)(int32_t port, int32_t mdbm, void *arg, struct err *err),
			  void *arg, struct err *err)
{
	json_t *list = entries(body, "opm-power", "port", NULL, err), *entry;
	int rc = list ? 0 : WEFT_EDEVICE;
	int32_t port, mdbm;
	size_t i;

	json_array_foreach(list, i, entry) {
		json_t *power = member(entry, "power");
		const char *text = json_string_value(power);
		bool none = !power || json_is_null(power) || (text && !text[0]);

		if (rc == 0 && (!port_of(entry, "port-id", &port) ||
				(!none && !milli_of(power, &mdbm)))) {
			rc = parse_unexpected(body, "a port-id and a power in dBm a port", err);
		} else if (rc == 0 && !none) {
			rc = fn(port, mdbm, arg, err);
		}
	}
	json_decref(list);
	return rc;
}

int restconf_parse_text(const char *body, const char *name, char *text, size_t size,
			struct err *err)
{
	json_t *root = parse(body, name, err), *value;
	const char *s;

	if (!root) {
		return WEFT_EDEVICE;
	}
	value = json_is_object(root) ? member(root, name) : root;
	s = json_string_value(value);
	if (s) {
		copy_text(plain_name(s), text, size);
	}
	json_decref(root);
	return s ? 0 : parse_unexpected(body, name, err);
}

void restconf_parse_error(const char *body, char *tag, size_t tag_size, char *text, size_t size)
{
	json_t *root = json_loads(body, 0, NULL), *errors = member(root, "errors"), *first;
	const char *s;

	first = member(errors ? errors : root, "error");
	first = json_is_array(first) ? json_array_get(first, 0) : first;
	s = json_string_value(member(first, "error-tag"));
	copy_text(s ? s : "", tag, tag_size);
	s = json_string_value(member(first, "error-message"));
	copy_text(s ? s : "", text, size);
	if (!root) {
		parse_first_line(body, text, size);
		make_printable(text);
	}
	json_decref(root);
}

/* ---- what is told unasked -------------------------------------------------- */

/* The member that names the notification: an object whose name is none of
 * RFC 8040's. */
static const char *note_name(json_t *note, json_t **content)
{
	const char *key;
	json_t *value;

	json_object_foreach(note, key, value) {
		if (json_is_object(value)) {
			*content = value;
			return plain_name(key);
		}
	}
	*content = note;
	return "";
}

/* Names of the optical-switch module's notifications, as ONOS' NETCONF driver
 * has them. Those that clear an alarm are worth no more than a note. */
static void judge(struct restconf_note *note, const char *name)
{
	const char *clear = strstr(name, "-clear");

	note->alarm = !clear && (strstr(name, "alarm") || strcmp(name, "system-error") == 0);
	note->change = strncmp(name, "activity-log", 12) == 0 || strncmp(name, "aps-", 4) == 0;
}

static void take_note(json_t *entry, struct restconf_note *note)
{
	json_t *content;
	const char *name = note_name(entry, &content);
	char *text = x_have(json_dumps(content, JSON_COMPACT));

	*note = (struct restconf_note){ 0 };
	if (!whole(member(entry, "id"), INT64_MAX, &note->id)) {
		note->id = 0;
	}
	if (!port_of(content, "port-id", &note->port)) {
		note->port = 0;
	}
	judge(note, name);
	snprintf(note->text, sizeof(note->text), "%s%s", name, name[0] ? " " : "");
	copy_text(text, note->text + strlen(note->text), sizeof(note->text) - strlen(note->text));
	free(text);
}

int restconf_parse_note(const char *body, struct restconf_note *note, struct err *err)
{
	json_t *root = parse(body, "a notification", err), *inner;
	int rc = 0;

	if (!root) {
		return WEFT_EDEVICE;
	}
	inner = member(root, "notification");
	inner = inner ? inner : root;
	if (json_is_object(inner)) {
		take_note(inner, note);
	} else {
		rc = parse_unexpected(body, "a notification", err);
	}
	json_decref(root);
	return rc;
}

int restconf_parse_log(const char *body, int64_t after_id,
		       void (*fn)(const struct restconf_note *note, void *arg), void *arg,
		       int64_t *last, struct err *err)
{
	json_t *list = entries(body, "notification-log", "log", NULL, err), *entry;
	int rc = list ? 0 : WEFT_EDEVICE;
	struct restconf_note note = { 0 };
	size_t i;

	*last = 0;
	json_array_foreach(list, i, entry) {
		if (rc == 0 && json_is_object(entry)) {
			take_note(entry, &note);
		}
		if (rc == 0 && (!json_is_object(entry) || !note.id)) {
			rc = parse_unexpected(body, "entries of the log with an id", err);
		}
		if (rc == 0 && note.id > after_id) {
			fn(&note, arg);
		}
		*last = rc == 0 && note.id > *last ? note.id : *last;
	}
	json_decref(list);
	return rc;
}

bool restconf_parse_stream(const char *body, char *path, size_t size)
{
	json_t *streams = entries(body, "streams", "stream", NULL, NULL), *stream, *access;
	bool found = false;
	size_t i, k;

	json_array_foreach(streams, i, stream) {
		json_t *list = member(stream, "access");

		json_array_foreach(list, k, access) {
			const char *s = json_string_value(member(access, "encoding"));
			const char *at = json_string_value(member(access, "location"));

			if (found || !s || !at || strcmp(s, "json") != 0) {
				continue;
			}
			/* An address of its own, or a path. Only the path
			 * counts: our password goes to no other machine. */
			at = strstr(at, "://") ? strchr(strstr(at, "://") + 3, '/') : at;
			found = at && at[0] == '/' && strlen(at) < size &&
				!at[strcspn(at, " \t\r\n")];
			snprintf(path, size, "%s", found ? at : "");
		}
	}
	json_decref(streams);
	return found;
}
