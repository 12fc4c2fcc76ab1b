/*
 * Reading what a ROME robot's command line prints. Pure text work that trusts
 * nothing. Private to drivers and emulators.
 *
 * An answer is the echo of its command, lines of text and a prompt,
 * `ROME[OPER]# `. What the robot says of its own accord comes between all of
 * these, also between a prompt and the next echo.
 */
#ifndef WEFT_DRIVERS_ROME_H
#define WEFT_DRIVERS_ROME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/driver.h"

#define ROME_PROMPT "ROME["
#define ROME_MAX_FRAME (1 << 20)
#define ROME_MAX_PORT 4096

/* Length of the first frame, up to and with its prompt: 0 when more bytes
 * are needed, negative at a byte that no command line prints. O(len). */
int64_t rome_frame(const uint8_t *data, size_t len);

/* Where in a frame the text after the echo of the command begins; NULL when
 * the command is not echoed there, so that it is no answer to it. */
const char *rome_answer(const char *frame, const char *command);

/* `E12[1AE12]` and `W7` : side and number from 0. */
bool rome_parse_port(const char *word, bool *is_out, int *index);

struct rome_port {
	bool is_out;		/* West */
	int index;
	bool locked, disabled, connected;
	int64_t moves;		/* counter of its wear */
	int peer;		/* on the other side, -1: none said */
};

/* A row of `port show`; false for any other line. The line is cut. A port
 * that is not connected may still name the one it was connected to. */
bool rome_parse_row(char *line, struct rome_port *port);

/* `connection show pending`: nothing waits and nothing is in process. */
bool rome_is_idle(const char *text);

/* A line about the operation on E-W, said in passing: 1 it succeeded, -1 it
 * failed, 0 something else. */
int rome_said(const char *line, struct light_xc xc);

#endif
