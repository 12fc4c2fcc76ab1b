/* SPDX-License-Identifier: Apache-2.0 */
/* Error values: messages that grow at the front, names, exit codes; and what
 * was meant by a name that is not known. */
#include "lib/base/err.h"

#include <limits.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/version.h"

static const struct {
	int code;
	const char *name;
	int exit_code;
} codes[] = {
	{ WEFT_OK, "OK", 0 },
	{ WEFT_EINVAL, "EINVAL", 65 },
	{ WEFT_EUSAGE, "EUSAGE", 64 },
	{ WEFT_EIO, "EIO", 1 },
	{ WEFT_ENOTFOUND, "ENOTFOUND", 65 },
	{ WEFT_ESTALE, "ESTALE", 75 },
	{ WEFT_EDENIED, "EDENIED", 77 },
	{ WEFT_EUNAVAIL, "EUNAVAIL", 69 },
	{ WEFT_ETIMEOUT, "ETIMEOUT", 124 },
	{ WEFT_ECANCELED, "ECANCELED", 1 },
	{ WEFT_EUNSUPPORTED, "EUNSUPPORTED", 65 },
	{ WEFT_EINFEASIBLE, "EINFEASIBLE", 65 },
	{ WEFT_EVERIFY, "EVERIFY", 1 },
	{ WEFT_ELIMIT, "ELIMIT", 65 },
	{ WEFT_EDEVICE, "EDEVICE", 1 },
	{ WEFT_EINTERNAL, "EINTERNAL", 1 },
	{ WEFT_EHELD, "EHELD", 75 },
};

#define N_CODES ((int)(sizeof(codes) / sizeof(codes[0])))

void err_clear(struct err *err)
{
	if (err) {
		memset(err, 0, sizeof(*err));
	}
}

int err_set(struct err *err, enum weft_err code, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];	/* an argument may be err's own message */
	va_list ap;

	if (!err) {
		return code;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_clear(err);
	err->code = code;
	memcpy(err->msg, text, strlen(text) + 1);
	return code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char text[ERR_MSG_MAX], both[ERR_MSG_MAX * 2 + 2];
	va_list ap;

	if (!err) {
		return WEFT_EINTERNAL;
	}
	if (err->code == 0) {
		err->code = WEFT_EINTERNAL;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(both, sizeof(both), "%s: %s", text, err->msg);
	both[sizeof(err->msg) - 1] = '\0';
	memcpy(err->msg, both, strlen(both) + 1);
	return err->code;
}

void err_at(struct err *err, const char *file, int line, int col)
{
	if (err) {
		snprintf(err->file, sizeof(err->file), "%s", file ? file : "<input>");
		err->line = line;
		err->col = col;
	}
}

void err_hint(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
		va_end(ap);
	}
}

int err_errno(struct err *err, enum weft_err code, int errnum, const char *fmt, ...)
{
	char what[ERR_MSG_MAX / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%s: %s", what, strerror(errnum));
}

const char *err_name(int code)
{
	for (int i = 0; i < N_CODES; i++) {
		if (codes[i].code == code) {
			return codes[i].name;
		}
	}
	return "EUNKNOWN";
}

int err_from_name(const char *name)
{
	for (int i = 0; i < N_CODES; i++) {
		if (strcmp(codes[i].name, name) == 0) {
			return codes[i].code;
		}
	}
	return WEFT_EINTERNAL;
}

const char *err_str(const struct err *err, char *buf, int size)
{
	if (err->file[0] && err->line > 0 && err->col > 0) {
		snprintf(buf, size, "%s:%d:%d: %s", err->file, err->line, err->col, err->msg);
	} else if (err->file[0] && err->line > 0) {
		snprintf(buf, size, "%s:%d: %s", err->file, err->line, err->msg);
	} else if (err->file[0]) {
		snprintf(buf, size, "%s: %s", err->file, err->msg);
	} else {
		snprintf(buf, size, "%s", err->msg);
	}
	return buf;
}

int err_exit_code(int code)
{
	for (int i = 0; i < N_CODES; i++) {
		if (codes[i].code == code) {
			return codes[i].exit_code;
		}
	}
	return 1;
}

void err_list_add(struct err_list *list, const struct err *err)
{
	int max = list->max > 0 ? list->max : 100;

	if (list->n >= max) {
		list->dropped++;
		return;
	}
	if (list->n == list->cap) {
		int cap = list->cap ? list->cap * 2 : 8;
		struct err *v = x_grow(list->v, cap, sizeof(*v));

		list->v = v;
		list->cap = cap;
	}
	list->v[list->n++] = *err;
}

static bool comes_after(const struct err *a, const struct err *b)
{
	int c = strcmp(a->file, b->file);

	if (c != 0) {
		return c > 0;
	}
	if (a->line != b->line) {
		return a->line > b->line;
	}
	return a->col > b->col;
}

void err_list_sort(struct err_list *list)
{
	/* Insertion sort: short lists, and it is stable. */
	for (int i = 1; i < list->n; i++) {
		struct err e = list->v[i];
		int j = i;

		for (; j > 0 && comes_after(&list->v[j - 1], &e); j--) {
			list->v[j] = list->v[j - 1];
		}
		list->v[j] = e;
	}
}

void err_list_fini(struct err_list *list)
{
	free(list->v);
	list->v = NULL;
	list->n = list->cap = list->dropped = 0;
}

/* ---- names that are not known ---- */

#define NEAREST_MAX 63

static int min3(int a, int b, int c)
{
	int m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b. */
static int edit_distance(const char *a, const char *b)
{
	int rows[3][NEAREST_MAX + 1];
	int *before = rows[0], *last = rows[1], *row = rows[2];
	int n = (int)strlen(b);

	for (int j = 0; j <= n; j++) {
		last[j] = j;
	}
	for (int i = 1; a[i - 1]; i++) {
		int *spare = before;

		row[0] = i;
		for (int j = 1; j <= n; j++) {
			row[j] = min3(last[j] + 1, row[j - 1] + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
				row[j] = min3(row[j], before[j - 2] + 1, INT_MAX);
			}
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[n];
}

/* "gpu07" and "gpu70", but also "gpu7" and "gpu70". */
static bool differ_in_digits_only(const char *a, const char *b)
{
	for (;;) {
		while (isdigit((unsigned char)*a)) {
			a++;
		}
		while (isdigit((unsigned char)*b)) {
			b++;
		}
		if (*a != *b) {
			return false;
		}
		if (!*a) {
			return true;
		}
		a++;
		b++;
	}
}

void nearest_init(struct nearest *n, const char *word)
{
	size_t len = strlen(word);

	*n = (struct nearest){ .word = word };
	/* At most a third of the letters may be wrong, and never all. */
	n->distance = len < 3 || len > NEAREST_MAX ? 0
		      : len < 6			   ? 2
						   : (int)len / 3 + 1;
}

void nearest_try(struct nearest *n, const char *candidate)
{
	int len = (int)strnlen(candidate, NEAREST_MAX + 1);
	int own = (int)strnlen(n->word, NEAREST_MAX + 1);
	int d;

	if (len > NEAREST_MAX || own > NEAREST_MAX || differ_in_digits_only(n->word, candidate)) {
		return;
	}
	if (own >= 3 && strncmp(n->word, candidate, (size_t)own) == 0) {
		/* "pass" for "pass-by" is one mistake, however long it is. */
		d = 1;
	} else if (abs(len - own) < n->distance) {
		d = edit_distance(n->word, candidate);
	} else {
		return;
	}
	if (d < n->distance) {
		n->distance = d;
		n->best = candidate;
	}
}

bool nearest_hint(const struct nearest *n, struct err *e)
{
	if (n->best) {
		err_hint(e, "did you mean '%s'?", n->best);
	}
	return n->best != NULL;
}

/* ---- what a build leaves out ---- */

int build_lacks(const char *what, struct err *err)
{
	err_set(err, WEFT_EUNSUPPORTED, "%s: not in this build", what);
	err_hint(err, "it was made without %s; the full build has all", build_without);
	return WEFT_EUNSUPPORTED;
}
