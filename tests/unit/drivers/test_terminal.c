/* SPDX-License-Identifier: Apache-2.0 */
/* drivers/core/terminal.h: what is no text is taken off, however it comes cut. */
#include "tests/unit/drivers/rig.h"

#include "drivers/core/terminal.h"

/* Feeds text in pieces of `piece` bytes and compares what is left of it, and
 * what a telnet server is answered. */
static void expect_in(size_t piece, enum terminal_kind kind, const char *bytes, size_t len,
		      const char *text, const char *reply)
{
	struct buf have = { 0 }, answer = { 0 };
	struct terminal t;

	terminal_begin(&t, kind);
	for (size_t at = 0; at < len; at += piece) {
		terminal_text(&t, (const uint8_t *)bytes + at,
			      len - at < piece ? len - at : piece, &have, &answer);
	}
	assert_string_equal(buf_cstr(&have), text);
	assert_int_equal(answer.len, strlen(reply));
	assert_memory_equal(buf_cstr(&answer), reply, answer.len);
	buf_fini(&have);
	buf_fini(&answer);
}

static void expect_bytes(enum terminal_kind kind, const char *bytes, size_t len, const char *text,
			 const char *reply)
{
	for (size_t piece = 1; piece <= 7; piece++) {
		expect_in(piece, kind, bytes, len, text, reply);
	}
	expect_in(len, kind, bytes, len, text, reply);
}

#define EXPECT(kind, bytes, text) expect_bytes(kind, bytes, sizeof(bytes) - 1, text, "")
#define EXPECT_REPLY(kind, bytes, text, reply) \
	expect_bytes(kind, bytes, sizeof(bytes) - 1, text, reply)

static void control_sequences_go(void **state)
{
	(void)state;
	EXPECT(TERMINAL_SHELL, "\x1b[32mA1\x1b[0m \x1b[1;31mx", "A1 x");
	EXPECT(TERMINAL_SHELL, "\x1b[?2004hadmin@sonic:~$ echo 1\r\n\x1b[?2004l\r1\r\n",
	       "admin@sonic:~$ echo 1\n1\n");
	EXPECT(TERMINAL_SHELL, "\x1b]0;admin@sonic: ~\x07$ \x1b]2;x\x1b\\y", "$ y");
	EXPECT(TERMINAL_SHELL, "\x1b(B\x0f\x1b=\x1b>\x1bM\x1b" "7a", "a");
	EXPECT(TERMINAL_LINES, "\x1b[62;1\"p\x1b[?4l\x1b[1;50r\x1b[50;0Hok\r\n", "ok\n");
	EXPECT(TERMINAL_SHELL, "\x1bP1$r0m\x1b\\a", "a");
}

static void line_ends_are_alike(void **state)
{
	(void)state;
	EXPECT(TERMINAL_LINES, "a\r\nb\nc\rd\r\r\ne\r\n\r\nf", "a\nb\nc\nd\ne\n\nf");
	/* readline goes on in the next row with a blank and a CR. */
	EXPECT(TERMINAL_SHELL, "echo a \rb\r\r\nc\r\n", "echo a b\nc\n");
	EXPECT(TERMINAL_SHELL, "-\b\b\a|", "-|");
	EXPECT(TERMINAL_SHELL, "a\r\0b", "ab");
}

static void telnet_options_are_refused(void **state)
{
	(void)state;
	EXPECT_REPLY(TERMINAL_LINES, "\xff\xfb\x01\xff\xfb\x03\xff\xfd\x18" "a",
		     "a", "\xff\xfe\x01\xff\xfe\x03\xff\xfc\x18");
	/* What is off is off without an answer; NOP, and a subnegotiation. */
	EXPECT_REPLY(TERMINAL_LINES, "\xff\xfc\x01\xff\xfe\x03\xff\xf1"
		     "\xff\xfa\x18\x01\xff\xff\xff\xf0" "b", "b", "");
	/* A command line without its echo cannot be followed. */
	EXPECT_REPLY(TERMINAL_ECHO, "\xff\xfb\x01\xff\xfb\x01\xff\xfd\x1f" "c", "c",
		     "\xff\xfd\x01\xff\xfc\x1f");
}

/* An ESC stays where no sequence begins, for the dialect to refuse. */
static void what_is_no_sequence_stays(void **state)
{
	char zeros[128];

	(void)state;
	EXPECT(TERMINAL_SHELL, "a\x1b\x01z", "a\x1bz");
	EXPECT(TERMINAL_SHELL, "a\x1b[3\x07z", "a\x1bz");
	EXPECT(TERMINAL_SHELL, "a\x1b]0;title\nz", "a\x1bz");
	EXPECT(TERMINAL_LINES, "a\xff z\xff\xff", "a\xffz\xff");
	EXPECT(TERMINAL_NONE, "a\r\n\x1b[0m\xff\xfb\x01", "a\r\n\x1b[0m\xff\xfb\x01");
	memset(zeros, '0', sizeof(zeros));
	memcpy(zeros, "\x1b[", 2);
	expect_in(sizeof(zeros), TERMINAL_SHELL, zeros, 70, "\x1b" "000", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_sequences_go),
		cmocka_unit_test(line_ends_are_alike),
		cmocka_unit_test(telnet_options_are_refused),
		cmocka_unit_test(what_is_no_sequence_stays),
	};

	return cmocka_run_group_tests_name("drivers/terminal", tests, NULL, NULL);
}
