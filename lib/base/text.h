/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that comes from devices, files and callers, and what of it must reach
 * neither a terminal nor a line of a log: controls, and the marks that turn
 * the direction of writing, by which a name can look like another one.
 */
#ifndef WEFT_LIB_BASE_TEXT_H
#define WEFT_LIB_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Decodes one character of UTF-8 (RFC 3629) and moves *s, not at its end, behind it; -1 for
 * a byte that is not part of valid UTF-8 (and moves by one). O(1). */
static inline int32_t text_utf8(const char **s)
{
	/* By bytes that follow the first: what a shorter form could encode is
	 * not valid (RFC 3629, section 3). */
	static const int32_t min_code[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)*s;
	int more = *p < 0x80 ? 0 : *p < 0xc0 ? -1 : *p < 0xe0 ? 1 :
		   *p < 0xf0 ? 2 : *p < 0xf8 ? 3 : -1;
	int32_t c = more > 0 ? *p & (0x3f >> more) : *p;

	(*s)++;
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return -1;
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	if (more < 0 || c < min_code[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
		return -1;
	}
	*s += more;
	return c;
}

/* The marks, embeddings, overrides and isolates that turn the direction of
 * writing (Unicode Standard Annex 9, table 4). */
static inline bool text_turns(int32_t c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* What no text may do to who reads it: C0 and C1 controls, and text_turns(). */
static inline bool text_is_control(int32_t c)
{
	return (c >= 0 && c < 0x20) || (c >= 0x7f && c <= 0x9f) || text_turns(c);
}

/* Each control becomes one blank, in place; the text grows shorter where it took several
 * bytes. Bytes that are no UTF-8 stay, but for C1 controls among them. O(length). */
static inline void text_clean(char *text)
{
	const char *s = text;
	char *to = text;

	while (*s) {
		const char *start = s;
		int32_t c = text_utf8(&s);
		size_t n = (size_t)(s - start);

		if (text_is_control(c < 0 ? (unsigned char)*start : c)) {
			*to++ = ' ';
		} else {
			memmove(to, start, n);
			to += n;
		}
	}
	*to = '\0';
}

#endif
