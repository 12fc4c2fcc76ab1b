/* SPDX-License-Identifier: Apache-2.0 */
/* Growing byte buffer; see buf.h. */
#include "lib/base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"

void buf_fini(struct buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data) {
		b->data[0] = '\0';
	}
}

/* Room for `len` more bytes and what ends them. */
static void make_room(struct buf *b, size_t len)
{
	size_t need;

	if (__builtin_add_overflow(b->len, len, &need) || need == SIZE_MAX) {
		alloc_end(len);
	}
	vec_grow((void **)&b->data, &b->cap, need + 1, 1);
}

char *buf_extend(struct buf *b, size_t len)
{
	make_room(b, len);
	b->len += len;
	b->data[b->len] = '\0';
	return b->data + b->len - len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	char *to = buf_extend(b, len);

	if (len > 0) {
		memcpy(to, data, len);
	}
}

void buf_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char small[256];
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n > 0 && (size_t)n < sizeof(small)) {
		buf_add(b, small, (size_t)n);
	} else if (n > 0) {
		make_room(b, (size_t)n);
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void buf_consume(struct buf *b, size_t n)
{
	if (n == 0) {
		return;
	}
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

const char *buf_cstr(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_steal(struct buf *b)
{
	char *s = b->data ? b->data : x_new(1, 1);

	memset(b, 0, sizeof(*b));
	return s;
}
