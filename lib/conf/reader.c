/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and errors of a reader; see conf.h. */
#include "lib/conf/conf.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* ---- memory ---- */

#ifndef __has_feature
#define __has_feature(x) 0
#endif

/* Under the address sanitiser every piece is a block of its own, so that it
 * sees an overrun of any of them. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define BLOCK_SIZE ((size_t)1)
#else
#define BLOCK_SIZE ((size_t)64 << 10)
#endif

struct conf_block {
	struct conf_block *next;
	alignas(max_align_t) char data[];
};

static void add_block(struct conf_arena *a, size_t need)
{
	size_t size = need > BLOCK_SIZE ? need : BLOCK_SIZE;
	struct conf_block *b = x_new(1, sizeof(*b) + size);

	b->next = a->head;
	a->head = b;
	a->at = b->data;
	a->left = size;
}

void *conf_arena_alloc(struct conf_arena *a, size_t n, size_t size)
{
	const size_t align = alignof(max_align_t);
	size_t need;
	void *p;

	if (__builtin_mul_overflow(n, size, &need) || need > SIZE_MAX / 2) {
		alloc_end(SIZE_MAX);
	}
	need = need ? (need + align - 1) / align * align : align;
	if (need > a->left) {
		add_block(a, need);
	}
	p = a->at;
	a->at += need;
	a->left -= need;
	return p;
}

char *conf_arena_strndup(struct conf_arena *a, const char *s, size_t len)
{
	char *copy = conf_arena_alloc(a, len + 1, 1);

	memcpy(copy, s, len);
	return copy;
}

void conf_arena_fini(struct conf_arena *a)
{
	while (a->head) {
		struct conf_block *b = a->head;

		a->head = b->next;
		free(b);
	}
	memset(a, 0, sizeof(*a));
}

/* ---- errors ---- */

void conf_reader_init(struct conf_reader *r, const char *file, const char *content,
		      struct conf_arena *keep, struct err_list *errs)
{
	*r = (struct conf_reader){ .file = file, .content = content, .errs = errs,
				   .keep = keep, .max_nodes = CONF_MAX_NODES };
}

void conf_reader_fini(struct conf_reader *r)
{
	conf_arena_fini(&r->tree);
	conf_arena_fini(&r->work);
}

struct err *conf_error(struct conf_reader *r, struct conf_place at, enum weft_err code,
		       const char *fmt, ...)
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

bool conf_error_kept(const struct conf_reader *r, const struct err *e)
{
	return e != &r->unkept;
}
