/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with commas. Values are cut out of one copy of the text, in place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/import/private.h"
#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/conf/conf.h"

int import_say(struct err_list *to, const char *file, int line, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	struct err err = { 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&err, WEFT_EINVAL, "%s", text);
	err_at(&err, file, line, 0);
	err_list_add(to, &err);
	return err.code;
}

const struct conf_node *import_value(const struct conf_node *map, const char *key)
{
	const struct conf_node *k = map->kind == CONF_NODE_MAP ? map->first : NULL;

	while (k && strcmp(k->text, key) != 0) {
		k = k->next->next;
	}
	return k ? k->next : NULL;
}

/* Blanks at both ends go; controls within become blanks. */
static char *trim(char *value)
{
	char *end;

	text_clean(value);
	value += strspn(value, " ");
	end = value + strlen(value);
	while (end > value && end[-1] == ' ') {
		*--end = '\0';
	}
	return value;
}

/* Takes a value in quotes, which may hold line ends; NULL: they are not closed. *p: behind it. */
static char *take_quoted(char **p, int *line)
{
	char *value = *p + 1, *from = value, *to = value;

	for (; *from; from++) {
		if (*from == '"' && from[1] != '"') {
			*p = from + 1 + strcspn(from + 1, ",\n");
			*to = '\0';
			return value;
		}
		from += *from == '"';
		*line += *from == '\n';
		*to++ = *from;
	}
	return NULL;
}

/* Takes a row and its end; *p is not at the text's. False: a quote is not closed. */
static bool take_row(struct csv *c, char **p, int *line)
{
	struct csv_row row = { .line = *line, .first = (int)c->fields.n };
	char *value, end;

	do {
		*p += strspn(*p, " \t");
		value = *p;
		if (*value == '"') {
			value = take_quoted(p, line);
			if (!value) {
				return false;
			}
		} else {
			*p += strcspn(*p, ",\n");
		}
		end = **p;
		**p = '\0';
		*p += end != '\0';
		vec_push(&c->fields, trim(value));
		row.n++;
	} while (end == ',');
	*line += end == '\n';
	if (row.n > 1 || c->fields.v[row.first][0]) {
		vec_push(&c->rows, row);
	}
	return true;
}

int csv_read(struct csv *c, const struct import_text *in, struct err_list *errs)
{
	static const char mark[] = "\xef\xbb\xbf";	/* of UTF-8, which spreadsheets write */
	int line = 1;
	char *p;

	*c = (struct csv){ .file = in->name };
	if (!in->text) {
		return 0;
	}
	p = c->text = x_ndup(in->text, in->len);
	if (strlen(p) != in->len) {
		return import_say(errs, in->name, 0, "it is no text");
	}
	p += strncmp(p, mark, 3) == 0 ? 3 : 0;
	while (*p) {
		const int begin = line;

		if (!take_row(c, &p, &line)) {
			return import_say(errs, in->name, begin, "a quote is not closed");
		}
	}
	return 0;
}

void csv_fini(struct csv *c)
{
	vec_fini(&c->fields);
	vec_fini(&c->rows);
	free(c->text);
}

int csv_column(const struct csv *c, const char *name)
{
	const int n = c->rows.n > 0 ? c->rows.v[0].n : 0;

	for (int i = 0; i < n; i++) {
		if (strcmp(c->fields.v[c->rows.v[0].first + i], name) == 0) {
			return i;
		}
	}
	return -1;
}

bool csv_values(const struct csv *c, size_t i, const int *columns, int n, const char **values,
		struct err_list *errs)
{
	const struct csv_row *row = &c->rows.v[i];

	for (int k = 0; k < n; k++) {
		values[k] = columns[k] < 0 ? "" : NULL;
		if (columns[k] >= 0 && columns[k] < row->n) {
			values[k] = c->fields.v[row->first + columns[k]];
		}
		if (!values[k]) {
			import_say(errs, c->file, row->line, "column %.64s is missing: the row "
				   "has %d of %d values",
				   c->fields.v[c->rows.v[0].first + columns[k]], row->n,
				   c->rows.v[0].n);
			return false;
		}
	}
	return true;
}
