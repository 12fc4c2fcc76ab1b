/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a robot's command line: where an answer begins and ends. Lines that
 * the robot prints unasked may stand before the echo. Contracts are in robot.h.
 */
#include "drivers/robot/robot.h"

#include <string.h>

static bool is_printed(uint8_t c)
{
	return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
}

int64_t robot_frame(const uint8_t *data, size_t len, size_t from,
		    robot_prompt_fn prompt, const void *arg)
{
	size_t line = from;

	while (line > 0 && data[line - 1] != '\n') {
		line--;
	}
	for (size_t i = line; i <= len; i++) {
		size_t n = i == line ? prompt(data + i, len - i, arg) : 0;

		if (n) {
			return (int64_t)(i + n);
		}
		if (i < len && !is_printed(data[i])) {
			return -1;
		}
		if (i < len && data[i] == '\n') {
			line = i + 1;
		}
	}
	return 0;
}

/* Behind the command and blanks, where that is all of the line; else NULL. */
static const char *after_echo(const char *line, const char *command)
{
	size_t n = strlen(command);

	line += strspn(line, " ");	/* a prompt may end in some */
	if (strncmp(line, command, n) != 0) {
		return NULL;
	}
	line += n;
	line += strspn(line, " ");
	return *line == '\r' || *line == '\n' ? line : NULL;
}

const char *robot_answer(const char *frame, const char *command)
{
	for (const char *line = frame; line; line = strchr(line, '\n')) {
		const char *end = after_echo(line + (*line == '\n'), command);

		if (end) {
			return end;
		}
		line += *line == '\n';
	}
	return NULL;
}
