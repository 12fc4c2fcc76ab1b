/* Errors, memory and suggestions; see reader.h. */
#include "lib/conf/reader.h"

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

struct err *reader_error(struct reader *r, struct conf_place at,
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
