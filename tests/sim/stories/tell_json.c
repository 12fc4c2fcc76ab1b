/* SPDX-License-Identifier: Apache-2.0 */
/* Values of what commands print as JSON, by a path. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "tests/sim/stories/tell.h"

/* The element of an array: its number, from the end if it is negative, or its name. */
static const json_t *element(const json_t *array, const char *word)
{
	const long n = (long)json_array_size(array);
	char *end;
	long i = strtol(word, &end, 10);
	size_t k;
	json_t *v;

	if (end > word && *end == '\0') {
		return json_array_get(array, (size_t)(i < 0 ? n + i : i));
	}
	json_array_foreach(array, k, v) {
		const char *name = json_string_value(json_object_get(v, "name"));

		if (name && strcmp(name, word) == 0) {
			return v;
		}
	}
	return NULL;
}

static void print_value(const json_t *v, struct buf *out)
{
	char *text;

	if (json_is_string(v)) {
		buf_str(out, json_string_value(v));
	} else if (v) {
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		buf_str(out, text ? text : "");
		free(text);
	}
}

static void find(const json_t *v, const char *path, struct buf *out)
{
	char word[80];
	const size_t n = strcspn(path, ".");
	const char *rest = path[n] ? path + n + 1 : path + n;

	snprintf(word, sizeof(word), "%.*s", (int)n, path);
	if (!path[0] || !v) {
		print_value(v, out);
	} else if (strcmp(word, "#") == 0) {
		buf_printf(out, "%zu", json_is_array(v) ? json_array_size(v) : json_object_size(v));
	} else if (strcmp(word, "*") == 0) {
		for (size_t i = 0; i < json_array_size(v); i++) {
			buf_str(out, i > 0 ? "," : "");
			find(json_array_get(v, i), rest, out);
		}
	} else {
		find(json_is_array(v) ? element(v, word) : json_object_get(v, word), rest, out);
	}
}

const char *value(const char *path)
{
	json_t *root = json_loads(said(), JSON_DECODE_ANY, NULL);
	struct buf out = { 0 };

	find(root, path, &out);
	json_decref(root);
	return out.len > 0 ? buf_steal(&out) : "";
}

bool value_is(const char *words, const char *path, const char *wanted)
{
	const char *found = value(path);

	if (!same(found, wanted)) {
		sim_tell("%s is \"%s\", not \"%s\"", path, found, wanted);
	}
	return check(same(found, wanted), words);
}

const char *ask(const char *path, const char *command, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, command);
	buf_vprintf(&b, command, ap);
	va_end(ap);
	weft("%s --format json", buf_cstr(&b));
	buf_fini(&b);
	return value(path);
}
