/* SPDX-License-Identifier: Apache-2.0 */
/* What a SONiC switch prints: the first byte picks a parser of rows, the rest
 * is a session's bytes. What is accepted must keep the parsers' promises. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/sonic/sonic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(int which, char *line)
{
	struct optics_xc xc = { 0, 0 };
	enum drv_state state = DRV_TUNED;
	const char *word = "x";
	int32_t loss = 0;
	bool is_out;
	int index = 0, rc;

	switch (which) {
	case 0:
		rc = sonic_parse_config(line, &xc, NULL);
		break;
	case 1:
		rc = sonic_parse_status(line, &xc, &state, NULL);
		break;
	case 2:
		rc = sonic_parse_loss(line, &xc, &loss, NULL);
		break;
	default:
		rc = sonic_parse_port(line, &is_out, &index, &word, NULL);
	}
	if (rc == 1) {
		assert(xc.in >= 0 && xc.in < SONIC_MAX_PORT);
		assert(xc.out >= 0 && xc.out < SONIC_MAX_PORT);
		assert(index >= 0 && index < SONIC_MAX_PORT);
		assert(state <= DRV_FAILED && word[0] != '\0');
	}
}

/* A frame that comes in two pieces is the same frame. */
static void check_pieces(const uint8_t *data, size_t size, int64_t n)
{
	if (sonic_frame(data, size / 2, 0, NULL) == 0) {
		assert(sonic_frame(data, size, size / 2, NULL) == n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t n = size ? sonic_frame(data + 1, size - 1, 0, NULL) : 0;
	size_t text_len;
	uint64_t tag;
	int status;
	char *text, *rest, *line;

	if (size) {
		check_pieces(data + 1, size - 1, n);
	}
	if (n <= 0 || sonic_parse_end(data + 1, (size_t)n, &text_len, &tag,
				      &status, NULL)) {
		return 0;
	}
	assert(text_len < (size_t)n && status >= 0 && status <= 255);
	text = strndup((const char *)data + 1, text_len);
	rest = text;
	while (text && (line = parse_line(&rest))) {
		check_line(data[0] % 4, line);
	}
	free(text);
	return 0;
}
