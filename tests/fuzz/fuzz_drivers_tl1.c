/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of TL1 devices, fed as a byte stream: frames must lie within
 * it, and what is read must keep the parser's promises. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/tl1/tl1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *line)
{
	char value[16];
	int32_t milli;
	int n;

	assert(!strpbrk(line, "\r\n"));
	if (tl1_value(line, "OC", value, sizeof(value))) {
		assert(strlen(value) < sizeof(value));
		if (parse_milli(value, &milli)) {
			assert(milli > -1001000 && milli < 1001000);
		}
	}
	if (parse_number(&line, 1, 4096, ',', &n)) {
		assert(n >= 1 && n <= 4096);
	}
}

static void check_message(const uint8_t *frame, size_t len)
{
	struct tl1_message m;
	struct err err = { 0 };

	if (tl1_parse(frame, len, &m, &err)) {
		assert(!m.text && !m.lines && err.msg[0]);
		return;
	}
	assert(strlen(m.sid) < sizeof(m.sid));
	assert(strlen(m.code) == 0 || strlen(m.code) == 4);
	assert(m.n_lines <= len);
	for (size_t i = 0; i < m.n_lines; i++) {
		check_line(m.lines[i].text);
	}
	tl1_code_class(m.code);
	tl1_message_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		int64_t n = tl1_frame(data + at, size - at, 0, NULL);

		if (n <= 0) {
			break;
		}
		assert((size_t)n <= size - at);
		check_message(data + at, (size_t)n);
		at += (size_t)n;
	}
	return 0;
}
