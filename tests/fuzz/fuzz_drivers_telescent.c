/* SPDX-License-Identifier: Apache-2.0 */
/* What a Telescent robot prints: a session's bytes, frame by frame. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/robot/robot.h"
#include "drivers/sonic/sonic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lines(char *text)
{
	struct robot_port cells[TELESCENT_COLUMNS];
	struct optics_xc xc = { 1, 5 };
	char *line;

	while ((line = parse_line(&text))) {
		int n = telescent_parse_row(line, cells);

		assert(abs(telescent_move_report(line, xc, true)) <= 1);
		assert(n >= 0 && n <= TELESCENT_COLUMNS);
		for (int i = 0; i < n; i++) {
			assert(cells[i].is_out && cells[i].index >= 0);
			assert(cells[i].peer >= 0 &&
			       cells[i].peer < ROBOT_MAX_PORT);
			assert(!(cells[i].connected && cells[i].locked));
		}
	}
}

static void check_text(const uint8_t *data, size_t n)
{
	char *text = strndup((const char *)data, n);

	if (text) {
		const char *at = robot_answer(text, "switchstate");

		assert(strlen(text) <= n);
		assert(!at || (at > text && at < text + n));
		telescent_error(text);
		telescent_is_reserved(text);
		check_lines(text);
	}
	free(text);
}

/* A frame that comes in two pieces is the same frame. */
static void check_pieces(const uint8_t *data, size_t size, int64_t n)
{
	size_t half = size / 2;

	if (robot_frame(data, half, 0, telescent_prompt, NULL) == 0) {
		assert(robot_frame(data, size, half, telescent_prompt, NULL) == n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t n;

	check_pieces(data, size, robot_frame(data, size, 0, telescent_prompt, NULL));
	while ((n = robot_frame(data, size, 0, telescent_prompt, NULL)) > 0) {
		assert((size_t)n <= size);
		check_text(data, (size_t)n);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}
