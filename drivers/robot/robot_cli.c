/*
 * The text of a robot's command line: where an answer ends, and what of it is
 * text. A prompt may have colours in front, and lines that the robot prints
 * unasked may stand before the echo. Contracts are in robot.h.
 */
#include "drivers/robot/robot.h"

#include <stdlib.h>
#include <string.h>

#define ESC 0x1b

static bool is_printed(uint8_t c)
{
	return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t' || c == ESC;
}

/* The length of `ESC [ 1 ; 31 m` at the head of s, or 0. */
static size_t colour_at(const uint8_t *s, size_t len)
{
	size_t n = 2;

	if (len < 3 || s[0] != ESC || s[1] != '[') {
		return 0;
	}
	while (n < len && ((s[n] >= '0' && s[n] <= '9') || s[n] == ';')) {
		n++;
	}
	return n < len && s[n] == 'm' ? n + 1 : 0;
}

static size_t prompt_at(const uint8_t *line, size_t len, robot_prompt_fn prompt, const void *arg)
{
	size_t at = 0, n;

	while ((n = colour_at(line + at, len - at)) > 0) {
		at += n;
	}
	n = prompt(line + at, len - at, arg);
	return n ? at + n : 0;
}

int64_t robot_frame(const uint8_t *data, size_t len, size_t from,
		    robot_prompt_fn prompt, const void *arg)
{
	size_t line = from;

	while (line > 0 && data[line - 1] != '\n') {
		line--;
	}
	for (size_t i = line; i <= len; i++) {
		size_t n = i == line ? prompt_at(data + i, len - i, prompt, arg) : 0;

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

const char *robot_answer(const char *frame, const char *command)
{
	size_t n = strlen(command);

	for (const char *line = frame; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		line += strspn(line, " ");	/* a prompt may end in some */
		if (strncmp(line, command, n) == 0 && (line[n] == '\r' || line[n] == '\n')) {
			return line + n;
		}
	}
	return NULL;
}

char *robot_plain(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);
	size_t n = 0, skip;

	for (size_t i = 0; text && i < len && bytes[i]; i += skip ? skip : 1) {
		skip = colour_at(bytes + i, len - i);
		if (!skip) {
			text[n++] = bytes[i] == ESC ? '?' : (char)bytes[i];
		}
	}
	if (text) {
		text[n] = '\0';
	}
	return text;
}
