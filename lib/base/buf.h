/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer that is also a string: data is always terminated.
 */
#ifndef WEFT_LIB_BASE_BUF_H
#define WEFT_LIB_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;	/* NULL until the first append */
	size_t len, cap;
};

void buf_fini(struct buf *b);
/* Empties without freeing. */
void buf_reset(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t len);
/* Adds len bytes for the caller to write, without a copy: where they begin. Valid until
 * the next call. */
char *buf_extend(struct buf *b, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap);
/* Drops the first n bytes (n <= len). O(len). */
void buf_consume(struct buf *b, size_t n);
/* The string so far, "" when empty. */
const char *buf_cstr(const struct buf *b);
/* Hands the memory, never NULL, to the caller (free()) and empties b. */
char *buf_steal(struct buf *b);

#endif
