/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a command line without what terminals and telnet servers put
 * around it: control sequences (colours, titles, bracketed paste), telnet's
 * options, and CRs. Taken off the bytes of a session as they come in, so that
 * no dialect has to know of it. Private to drivers and emulators.
 *
 * Sources: ECMA-48, 5.3 to 5.6 (control sequences and strings); RFC 854 and RFC
 * 857 (telnet and its echo); readline 8.1 and later, which turns bracketed
 * paste on by default.
 */
#ifndef WEFT_DRIVERS_CORE_TERMINAL_H
#define WEFT_DRIVERS_CORE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* What a session carries. */
enum terminal_kind {
	TERMINAL_NONE,	/* no text: every byte stays as it is */
	TERMINAL_LINES,	/* lines; LF, CR LF, and CR before other text end one, as LF */
	TERMINAL_SHELL,	/* what a screen shows; LF ends a line, CRs go */
	TERMINAL_ECHO,	/* the same, and telnet's echo is asked for */
};

enum terminal_state {
	TERMINAL_TEXT, TERMINAL_ESCAPE, TERMINAL_CONTROL, TERMINAL_STRING,
	TERMINAL_STRING_END, TERMINAL_TELNET, TERMINAL_OPTION,
	TERMINAL_SUBNEGOTIATION, TERMINAL_SUBNEGOTIATION_END,
};

/* One session's. What is within a sequence that comes in pieces. */
struct terminal {
	enum terminal_kind kind;
	enum terminal_state state;
	size_t length;		/* of the sequence so far */
	uint8_t verb;		/* telnet: of the option that follows */
	bool after_cr;		/* it ends a line if a byte follows, LF or not */
	bool echoes;		/* telnet: agreed */
};

/* For a new session. */
void terminal_begin(struct terminal *t, enum terminal_kind kind);

/* Appends the text in bytes[0..len-1], which follow those of the calls before, to
 * text, and what the device's telnet server is to be answered to answer: options
 * are refused, but for its echo where that is wanted. What begins as a sequence and
 * is none leaves its ESC in the text, where no dialect takes it.
 * O(len). */
void terminal_text(struct terminal *t, const uint8_t *bytes, size_t len, struct buf *text,
		   struct buf *answer);

#endif
