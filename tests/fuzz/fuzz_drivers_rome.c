/* SPDX-License-Identifier: Apache-2.0 */
/* What a ROME robot prints: a session's bytes, frame by frame. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/robot/robot.h"
#include "drivers/sonic/sonic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lines(char *text)
{
	struct optics_xc xc = { 2, 3 };
	struct robot_port p;
	char *line;

	while ((line = parse_line(&text))) {
		assert(abs(rome_move_report(line, xc)) <= 1);
		if (rome_parse_row(line, &p)) {
			assert(p.index >= 0 && p.index < ROBOT_MAX_PORT);
			assert(p.peer >= -1 && p.peer < ROBOT_MAX_PORT);
			assert(p.moves >= 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t n;

	while ((n = robot_frame(data, size, 0, rome_prompt, NULL)) > 0) {
		char *text = strndup((const char *)data, (size_t)n);

		assert((size_t)n <= size);
		if (text) {
			const char *at = robot_answer(text, "port show");

			assert(!at || (at > text && at < text + n));
			rome_is_idle(text);
			check_lines(text);
		}
		free(text);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}
