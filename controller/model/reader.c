/* Errors, memory and suggestions; see reader.h. */
#include "controller/model/reader.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reader_init(struct reader *r, const char *file, struct arena *keep,
		 struct err_list *errs)
{
	*r = (struct reader){ .file = file, .errs = errs, .keep = keep,
			      .names_left = READER_MAX_NAMES };
}

void reader_fini(struct reader *r)
{
	arena_fini(&r->tree);
	arena_fini(&r->work);
}

struct err *reader_error(struct reader *r, struct model_place at,
			 enum weft_err code, const char *fmt, ...)
{
	int before = r->errs->n;
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&r->unkept, code, "%s", text);
	err_at(&r->unkept, r->file, at.line, at.col);
	err_list_add(r->errs, &r->unkept);
	r->n_errors++;
	return r->errs->n > before ? &r->errs->v[before] : &r->unkept;
}

bool reader_kept(const struct reader *r, const struct err *e)
{
	return e != &r->unkept;
}

void reader_nomem(struct reader *r)
{
	struct err err;

	if (!r->stop) {
		r->stop = err_nomem(&err);
		err_list_add(r->errs, &err);
		r->n_errors++;
	}
}

void *reader_alloc(struct reader *r, struct arena *a, size_t n, size_t size)
{
	void *p = arena_alloc(a, n, size);

	if (!p) {
		reader_nomem(r);
	}
	return p;
}

char *reader_copy(struct reader *r, struct arena *a, const char *s, size_t len)
{
	char *copy = arena_strndup(a, s, len);

	if (!copy) {
		reader_nomem(r);
	}
	return copy;
}

/* ---- did you mean ---- */

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
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1]) {
				row[j] = min3(row[j], before[j - 2] + 1,
					      INT_MAX);
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

	if (len > NEAREST_MAX || own > NEAREST_MAX ||
	    differ_in_digits_only(n->word, candidate)) {
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
