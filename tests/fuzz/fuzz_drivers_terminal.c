/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a terminal or a telnet server: the first byte picks what the session
 * carries. The text is the same in whatever pieces the bytes come, and no longer
 * than they are. */
#include <assert.h>
#include <string.h>

#include "drivers/core/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(enum terminal_kind kind, const uint8_t *data, size_t size, size_t piece,
		 struct buf *text, struct buf *answer)
{
	struct terminal t;

	terminal_begin(&t, kind);
	for (size_t at = 0; at < size; at += piece) {
		terminal_text(&t, data + at, size - at < piece ? size - at : piece, text, answer);
	}
}

static void check_same(const struct buf *a, const struct buf *b)
{
	assert(a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum terminal_kind kind = (enum terminal_kind)(size ? data[0] % 4 : 0);
	struct buf text = { 0 }, answer = { 0 }, again = { 0 }, reply = { 0 };

	if (size < 2) {
		return 0;
	}
	feed(kind, data + 1, size - 1, size, &text, &answer);
	feed(kind, data + 1, size - 1, 3, &again, &reply);
	check_same(&text, &again);
	check_same(&answer, &reply);
	assert(text.len < size && answer.len <= size && answer.len % 3 == 0);
	assert(kind == TERMINAL_NONE || text.len == 0 || !memchr(text.data, '\r', text.len));
	buf_fini(&text);
	buf_fini(&answer);
	buf_fini(&again);
	buf_fini(&reply);
	return 0;
}
