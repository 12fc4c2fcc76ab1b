/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing, help and completion, on a small tree of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/command_tree.h"

static int run_nothing(struct cli *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

static const struct cli_option paint_options[] = {
	{ 'n', "number", "N", "how many", NULL },
	{ 'c', "coat", "KIND", "of paint", "matt gloss" },
	{ 'd', "dry", NULL, "wait", NULL },
	{ 0, "time", "T", "of drying", NULL },
	{ 0, NULL, NULL, NULL, NULL },
};

static const struct cli_command house[] = {
	{ "paint", NULL, "WALL", "Paint a wall", NULL, paint_options, 1, 2,
	  false, run_nothing },
	{ "sell", "vend", "", "Sell it", NULL, NULL, 0, 0, false,
	  run_nothing },
	{ NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL },
};

static const struct cli_command tree[] = {
	{ "house", NULL, "", "Houses", house, NULL, 0, 0, false, NULL },
	{ "status", "show", "", "All", NULL, NULL, 0, 0, false, run_nothing },
	{ "raw", NULL, "", "Words", NULL, NULL, 0, 0, true, run_nothing },
	{ NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL },
};

#define MAX_WORDS 32

/* Parses a line of words apart by single blanks. */
static int parse(const char *line, struct cli *c, struct err *err)
{
	static char text[256];
	char *argv[MAX_WORDS];
	int argc = 0;

	strcpy(text, line);
	for (char *s = strtok(text, " "); s; s = strtok(NULL, " ")) {
		argv[argc++] = s;
	}
	err_clear(err);
	return cli_parse(tree, argc, argv, c, err);
}

static void test_command_and_values(void **state)
{
	struct cli c;
	struct err err;
	int64_t n = 7, t = 0;

	(void)state;
	assert_int_equal(parse("weft house paint north -n 3 --coat=gloss "
			       "south --time 25us --format json -d",
			       &c, &err), 0);
	assert_string_equal(c.verb, "house paint");
	assert_int_equal(c.argc, 2);
	assert_string_equal(c.argv[0], "north");
	assert_string_equal(c.argv[1], "south");
	assert_string_equal(cli_opt(&c, "coat"), "gloss");
	assert_true(cli_has(&c, "dry"));
	assert_int_equal(c.format, OUT_JSON);
	assert_int_equal(cli_opt_int(&c, "number", 1, 9, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_int_equal(cli_opt_unit(&c, "time", UNIT_NS, &t, &err), 0);
	assert_int_equal(t, 25000);
	cli_fini(&c);
}

static void test_attached_and_ended(void **state)
{
	struct cli c;
	struct err err;

	(void)state;
	assert_int_equal(parse("weft house paint -dn4 -- -n", &c, &err), 0);
	assert_string_equal(cli_opt(&c, "number"), "4");
	assert_true(cli_has(&c, "dry"));
	assert_int_equal(c.argc, 1);
	assert_string_equal(c.argv[0], "-n");
	cli_fini(&c);
}

static void test_absent_option_keeps_default(void **state)
{
	struct cli c;
	struct err err;
	int64_t n = 7;

	(void)state;
	assert_int_equal(parse("weft house paint x", &c, &err), 0);
	assert_int_equal(cli_opt_int(&c, "number", 1, 9, &n, &err), 0);
	assert_int_equal(n, 7);
	assert_null(cli_opt(&c, "coat"));
	assert_int_equal(cli_need(&c, "coat", &err), WEFT_EUSAGE);
	assert_non_null(strstr(err.msg, "--coat KIND"));
	cli_fini(&c);
}

static void test_alias(void **state)
{
	struct cli c;
	struct err err;

	(void)state;
	assert_int_equal(parse("weft show", &c, &err), 0);
	assert_string_equal(c.verb, "status");
	cli_fini(&c);
}

/* line, a word of the message, a word of the hint */
static const char *const wrong[][3] = {
	{ "weft", "a command is missing", "--help" },
	{ "weft house", "a command is missing", "house --help" },
	{ "weft hosue", "hosue: no such command", "weft house" },
	{ "weft house piant x", "house piant", "weft house paint" },
	{ "weft xyzzyplugh", "no such command", "--help" },
	{ "weft house paint", "argument is missing", "paint WALL" },
	{ "weft house paint a b c", "c: one argument too many", "WALL" },
	{ "weft house paint a --coot x", "--coot: no such option", "--coat" },
	{ "weft house paint a -z", "-z: no such option", "--help" },
	{ "weft house paint a --coat", "--coat needs KIND", "" },
	{ "weft house paint a --dry=no", "--dry takes no value", "" },
	{ "weft house paint a -d -d", "--dry is given twice", "" },
	{ "weft status --format xml", "xml", "" },
	{ "weft status --color blue", "blue", "" },
};

static void test_wrong_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct cli c;
		struct err err;

		assert_int_equal(parse(wrong[i][0], &c, &err), WEFT_EUSAGE);
		if (!strstr(err.msg, wrong[i][1]) ||
		    !strstr(err.hint, wrong[i][2])) {
			fail_msg("%s: \"%s\" \"%s\"", wrong[i][0], err.msg,
				 err.hint);
		}
		cli_fini(&c);
	}
}

static void test_wrong_values(void **state)
{
	static const char *const lines[] = {
		"weft house paint x -n 0", "weft house paint x -n 10",
		"weft house paint x -n 3x", "weft house paint x -n ",
		"weft house paint x -n 99999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct cli c;
		struct err err;
		int64_t n;
		int r = parse(lines[i], &c, &err);

		if (r == 0) {
			r = cli_opt_int(&c, "number", 1, 9, &n, &err);
		}
		assert_int_equal(r, WEFT_EUSAGE);
		assert_non_null(strstr(err.msg, "--number"));
		cli_fini(&c);
	}
}

static void test_wrong_unit(void **state)
{
	struct cli c;
	struct err err;
	int64_t t;

	(void)state;
	assert_int_equal(parse("weft house paint x --time 5MB", &c, &err), 0);
	assert_int_equal(cli_opt_unit(&c, "time", UNIT_NS, &t, &err),
			 WEFT_EUSAGE);
	assert_int_equal(err.code, WEFT_EUSAGE);
	assert_int_equal(strncmp(err.msg, "--time: ", 8), 0);
	cli_fini(&c);
}

static void test_raw_and_help(void **state)
{
	struct cli c;
	struct err err;

	(void)state;
	assert_int_equal(parse("weft raw --x -h y", &c, &err), 0);
	assert_int_equal(c.argc, 3);
	assert_false(c.help);
	cli_fini(&c);
	assert_int_equal(parse("weft house paint --help", &c, &err), 0);
	assert_true(c.help);
	cli_fini(&c);
	assert_int_equal(parse("weft --help", &c, &err), 0);
	assert_true(c.help);
	cli_fini(&c);
}

static void test_help_names_everything(void **state)
{
	struct buf b = { 0 };

	(void)state;
	cli_help(tree, NULL, "", &b);
	assert_non_null(strstr(buf_cstr(&b), "house ..."));
	assert_non_null(strstr(buf_cstr(&b), "status, show"));
	assert_non_null(strstr(buf_cstr(&b), "--format F"));
	assert_null(strstr(buf_cstr(&b), "raw"));
	buf_reset(&b);
	cli_help(tree, &house[0], "house paint", &b);
	assert_non_null(strstr(buf_cstr(&b),
			       "Usage: weft house paint [OPTIONS] WALL"));
	assert_non_null(strstr(buf_cstr(&b), "-c, --coat KIND"));
	buf_fini(&b);
}

/* words apart by blanks; the last word is what follows the last blank */
static const char *const completions[][2] = {
	{ "", "house\nstatus\n" },
	{ "h", "house\n" },
	{ "house ", "paint\nsell\n" },
	{ "house paint --c", "--coat\n--color\n" },
	{ "house paint --coat ", "matt\ngloss\n" },
	{ "house paint --coat g", "gloss\n" },
	{ "house paint -c m", "matt\n" },
	{ "house paint ", "@file\n" },
	{ "house paint front ", "@file\n" },
	{ "house paint front back ", "" },
	{ "--format y", "yaml\n" },
	{ "--format json h", "house\n" },
	{ "house sell ", "" },
};

static void test_completion(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(completions) / sizeof(completions[0]);
	     i++) {
		char text[128], *words[MAX_WORDS], *s = text;
		struct buf b = { 0 };
		int n = 0;

		strcpy(text, completions[i][0]);
		while (s) {
			words[n++] = strsep(&s, " ");
		}
		cli_complete(tree, n, words, &b);
		assert_string_equal(buf_cstr(&b), completions[i][1]);
		buf_fini(&b);
	}
}

/* Arguments are completed by what the help calls them. */
static void test_completion_of_arguments(void **state)
{
	static const struct cli_command doors[] = {
		{ "door", NULL, "[DEVICE] PORT open|shut JOB WHAT GROUP|A A B [A B...]", "A door",
		  NULL, paint_options, 0, 9, false, run_nothing },
		{ NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL },
	};
	static const struct { int n; const char *words[8], *want; } cases[] = {
		{ 2, { "door", "" }, "@device\n" },
		{ 3, { "door", "front", "x" }, "@port\n" },
		{ 5, { "door", "-v", "front", "in1", "" }, "open\nshut\n" },
		{ 6, { "door", "--color", "never", "front", "in1", "s" }, "shut\n" },
		{ 5, { "door", "front", "in1", "shut", "" }, "@job\n" },
		{ 6, { "door", "front", "in1", "shut", "x", "" }, "@part\n" },
		{ 7, { "door", "front", "in1", "shut", "x", "y", "" }, "@group\n@end\n" },
		{ 8, { "door", "front", "in1", "shut", "x", "y", "z", "" }, "@end\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf b = { 0 };

		cli_complete(doors, cases[i].n, (char **)(uintptr_t)cases[i].words, &b);
		assert_string_equal(buf_cstr(&b), cases[i].want);
		buf_fini(&b);
	}
}

static void test_verbs(void **state)
{
	struct buf b = { 0 };

	(void)state;
	cli_list_verbs(tree, &b);
	assert_string_equal(buf_cstr(&b),
			    "house paint\nhouse sell\nstatus\n");
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_and_values),
		cmocka_unit_test(test_attached_and_ended),
		cmocka_unit_test(test_absent_option_keeps_default),
		cmocka_unit_test(test_alias),
		cmocka_unit_test(test_wrong_lines),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_wrong_unit),
		cmocka_unit_test(test_raw_and_help),
		cmocka_unit_test(test_help_names_everything),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_completion_of_arguments),
		cmocka_unit_test(test_verbs),
	};

	return cmocka_run_group_tests_name("cli/tree", tests, NULL, NULL);
}
