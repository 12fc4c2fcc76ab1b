/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control sequences and telnet's options are taken out of a session's bytes.
 * One state and one function a state; each looks at one byte, so that a
 * sequence may come in as many pieces as it likes. Contracts are in terminal.h.
 */
#include "drivers/core/terminal.h"

#include <string.h>

#define BEL 0x07
#define BS 0x08
#define SO 0x0e
#define SI 0x0f
#define ESC 0x1b

#define SE 240
#define SB 250
#define WILL 251
#define WONT 252
#define DO 253
#define DONT 254
#define IAC 255
#define OPTION_ECHO 1
#define OPTION_NO_GO_AHEAD 3

/* Longer ones are no sequences: some byte of the text was an ESC. */
#define MAX_CONTROL 64
#define MAX_STRING 4096

/* The byte is not part of the text. */
#define NOTHING (-1)

void terminal_begin(struct terminal *t, enum terminal_kind kind)
{
	*t = (struct terminal){ .kind = kind };
}

static int text_byte(struct terminal *t, uint8_t c)
{
	switch (c) {
	case IAC:
		t->state = TERMINAL_TELNET;
		return NOTHING;
	case ESC:
		t->state = TERMINAL_ESCAPE;
		return NOTHING;
	case BEL:
	case BS:
	case SO:
	case SI:
		return NOTHING;
	default:
		return c;
	}
}

/* It was no sequence. */
static int no_sequence(struct terminal *t)
{
	t->state = TERMINAL_TEXT;
	return ESC;
}

static int enter(struct terminal *t, enum terminal_state state)
{
	t->state = state;
	t->length = 0;
	return NOTHING;
}

static int escape_byte(struct terminal *t, uint8_t c)
{
	if (c == '[') {
		return enter(t, TERMINAL_CONTROL);
	}
	if (strchr("]PX^_", c) && c) {
		return enter(t, TERMINAL_STRING);
	}
	if (c >= 0x20 && c <= 0x2f) {
		return NOTHING;		/* such as ESC ( B: one more follows */
	}
	return c >= 0x30 && c <= 0x7e ? enter(t, TERMINAL_TEXT) : no_sequence(t);
}

static int control_byte(struct terminal *t, uint8_t c)
{
	if (c >= 0x40 && c <= 0x7e) {
		return enter(t, TERMINAL_TEXT);
	}
	return c < 0x20 || c > 0x3f || ++t->length > MAX_CONTROL ? no_sequence(t) : NOTHING;
}

/* A title and the like: up to BEL or ESC \. No line ends in it. */
static int string_byte(struct terminal *t, uint8_t c)
{
	if (c == BEL) {
		return enter(t, TERMINAL_TEXT);
	}
	if (c == ESC) {
		t->state = TERMINAL_STRING_END;
		return NOTHING;
	}
	return c == '\n' || c == '\r' || ++t->length > MAX_STRING ? no_sequence(t) : NOTHING;
}

static int string_end_byte(struct terminal *t, uint8_t c)
{
	return c == '\\' ? enter(t, TERMINAL_TEXT) : no_sequence(t);
}

/* A byte that is no command of telnet's: the session is none. */
static int telnet_byte(struct terminal *t, uint8_t c)
{
	if (c >= WILL && c <= DONT) {
		t->verb = c;
		return enter(t, TERMINAL_OPTION);
	}
	enter(t, c == SB ? TERMINAL_SUBNEGOTIATION : TERMINAL_TEXT);
	return c == IAC || c < SE ? IAC : NOTHING;
}

/* What is off already needs no answer (RFC 854), nor does what is on. */
static int option_byte(struct terminal *t, uint8_t option, struct buf *answer)
{
	bool wanted = t->kind == TERMINAL_ECHO &&
		      (option == OPTION_ECHO || option == OPTION_NO_GO_AHEAD);
	uint8_t reply[] = { IAC, t->verb == DO ? WONT : wanted ? DO : DONT, option };

	t->state = TERMINAL_TEXT;
	if (t->verb == DO || (t->verb == WILL && !(option == OPTION_ECHO && t->echoes))) {
		buf_add(answer, reply, sizeof(reply));
	}
	if (option == OPTION_ECHO && t->verb != DO && t->verb != DONT) {
		t->echoes = wanted && t->verb == WILL;
	}
	return NOTHING;
}

static int subnegotiation_byte(struct terminal *t, uint8_t c)
{
	if (c == IAC) {
		t->state = TERMINAL_SUBNEGOTIATION_END;
		return NOTHING;
	}
	return ++t->length > MAX_STRING ? no_sequence(t) : NOTHING;
}

static int subnegotiation_end_byte(struct terminal *t, uint8_t c)
{
	t->state = c == SE ? TERMINAL_TEXT : TERMINAL_SUBNEGOTIATION;
	return NOTHING;
}

static int next_byte(struct terminal *t, uint8_t c, struct buf *answer)
{
	switch (t->state) {
	case TERMINAL_TEXT: return text_byte(t, c);
	case TERMINAL_ESCAPE: return escape_byte(t, c);
	case TERMINAL_CONTROL: return control_byte(t, c);
	case TERMINAL_STRING: return string_byte(t, c);
	case TERMINAL_STRING_END: return string_end_byte(t, c);
	case TERMINAL_TELNET: return telnet_byte(t, c);
	case TERMINAL_OPTION: return option_byte(t, c, answer);
	case TERMINAL_SUBNEGOTIATION: return subnegotiation_byte(t, c);
	case TERMINAL_SUBNEGOTIATION_END: break;
	}
	return subnegotiation_end_byte(t, c);
}

/* Whether c is a CR, or the NUL that telnet puts behind one that stands alone:
 * what follows shows whether that ended a line. */
static bool is_cr(struct terminal *t, int c)
{
	if (c == '\r') {
		t->after_cr = true;
	}
	return c == '\r' || (c == '\0' && t->after_cr);
}

void terminal_text(struct terminal *t, const uint8_t *bytes, size_t len, struct buf *text,
		   struct buf *answer)
{
	if (t->kind == TERMINAL_NONE) {
		buf_add(text, bytes, len);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		int c = next_byte(t, bytes[i], answer);

		if (c == NOTHING || is_cr(t, c)) {
			continue;
		}
		if (t->after_cr && c != '\n' && t->kind == TERMINAL_LINES) {
			buf_char(text, '\n');
		}
		t->after_cr = false;
		buf_char(text, (char)c);
	}
}
