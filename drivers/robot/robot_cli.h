/*
 * The text of a robot's command line, whoever made the robot. Pure text work
 * that trusts nothing. Private to drivers and emulators.
 *
 * An answer is the echo of its command, lines of text and a prompt. What the
 * robot says of its own accord comes between all of these, also between a
 * prompt and the next echo.
 */
#ifndef WEFT_DRIVERS_ROBOT_ROBOT_CLI_H
#define WEFT_DRIVERS_ROBOT_ROBOT_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROBOT_MAX_FRAME (1 << 20)
#define ROBOT_MAX_PORT 4096

/* A port as the robot's table has it. */
struct robot_port {
	bool is_out;
	int index;
	bool locked, disabled, connected;
	int64_t moves;		/* counter of its wear, -1: not told */
	int peer;		/* on the other side, -1: none said */
};

/* The length of the prompt at the head of a line, 0 when there is none. */
typedef size_t (*robot_prompt_fn)(const uint8_t *line, size_t len,
				  const void *arg);

/* Length of the first frame, up to and with its prompt: 0 when more bytes
 * are needed, negative at a byte that no command line prints. The first
 * `from` bytes were looked at before and held no prompt. Colours may come
 * before a prompt. O(len - from + the line that `from` is in). */
int64_t robot_frame(const uint8_t *data, size_t len, size_t from,
		    robot_prompt_fn prompt, const void *arg);

/* Where in a frame the text after the echo of the command begins; NULL when
 * the command is not echoed there, so that it is no answer to it. */
const char *robot_answer(const char *frame, const char *command);

/* The bytes as text without its colours (`ESC [ ... m`), up to a zero byte;
 * any other ESC becomes a question mark. The caller's; NULL without memory.
 * O(len). */
char *robot_plain(const uint8_t *bytes, size_t len);

#endif
