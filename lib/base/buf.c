/* Growing byte buffer; see buf.h. */
#include "lib/base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"

void buf_fini(struct buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data) {
		b->data[0] = '\0';
	}
}

char *buf_extend(struct buf *b, size_t len)
{
	if (b->failed) {
		return NULL;
	}
	if (vec_grow((void **)&b->data, &b->cap, b->len + len + 1, 1)) {
		b->failed = true;
		return NULL;
	}
	b->len += len;
	b->data[b->len] = '\0';
	return b->data + b->len - len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	char *to = buf_extend(b, len);

	if (to && len) {
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
	if (n < 0) {
		b->failed = true;
	} else if ((size_t)n < sizeof(small)) {
		buf_add(b, small, n);
	} else if (b->failed || vec_grow((void **)&b->data, &b->cap,
					 b->len + n + 1, 1)) {
		b->failed = true;
	} else {
		vsnprintf(b->data + b->len, n + 1, fmt, again);
		b->len += n;
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
	char *s = b->failed ? NULL : b->data;

	if (!s && !b->failed) {
		s = calloc(1, 1);
	} else if (b->failed) {
		free(b->data);
	}
	memset(b, 0, sizeof(*b));
	return s;
}
