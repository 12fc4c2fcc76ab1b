/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base/err: setting, wrapping, places, names, exit codes, lists. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"

/* Controls of one byte and of several, direction marks among them, and bytes
 * that are none of UTF-8. */
static void what_a_terminal_would_obey_is_cleaned(void **state)
{
	char text[] = "a\x1b[2J\nb\x7f\xc2\x9b" "c\xe2\x80\xae\xd8\x9c" "d\x9b\xff\xc3\xa9\xe2\x80";
	const char *s = text;

	(void)state;
	text_clean(text);
	assert_string_equal(text, "a [2J b  c  d \xff\xc3\xa9\xe2 ");
	assert_int_equal(text_utf8(&s), 'a');
	assert_ptr_equal(s, text + 1);
	assert_true(text_is_control(0x2066) && text_is_control(0x200f) && text_is_control(0));
	assert_false(text_is_control(-1) || text_is_control(0x200d) || text_is_control(0xa0));
}

static void set_and_wrap(void **state)
{
	struct err err;
	char text[1024];

	(void)state;
	assert_int_equal(err_set(&err, WEFT_EIO, "port %d", 7), WEFT_EIO);
	assert_int_equal(err_wrap(&err, "device %s", "ocs1"), WEFT_EIO);
	assert_string_equal(err.msg, "device ocs1: port 7");
	assert_string_equal(err_str(&err, text, sizeof(text)), err.msg);
	err_at(&err, "f.yaml", 3, 9);
	err_hint(&err, "look at %s", "it");
	assert_string_equal(err_str(&err, text, sizeof(text)),
			    "f.yaml:3:9: device ocs1: port 7");
	assert_string_equal(err.hint, "look at it");
	err_at(&err, NULL, 0, 0);
	assert_string_equal(err_str(&err, text, sizeof(text)),
			    "<input>: device ocs1: port 7");
	/* Setting again forgets place and hint, and may quote itself. */
	err_set(&err, WEFT_EVERIFY, "again (%s)", err.msg);
	assert_string_equal(err.msg, "again (device ocs1: port 7)");
	assert_int_equal(err.line, 0);
	assert_string_equal(err.file, "");
	assert_string_equal(err.hint, "");
}

static void null_is_fine(void **state)
{
	(void)state;
	err_clear(NULL);
	err_at(NULL, "f", 1, 1);
	err_hint(NULL, "x");
	assert_int_equal(err_set(NULL, WEFT_ELIMIT, "x"), WEFT_ELIMIT);
	assert_int_equal(err_wrap(NULL, "x"), WEFT_EINTERNAL);
	assert_int_equal(err_errno(NULL, WEFT_EIO, ENOENT, "x"), WEFT_EIO);
}

static void wrapping_an_unset_error(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_wrap(&err, "why"), WEFT_EINTERNAL);
	assert_int_equal(err.code, WEFT_EINTERNAL);
}

static void long_texts_are_cut(void **state)
{
	char big[3000], small[8];
	struct err err;

	(void)state;
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	err_set(&err, WEFT_EIO, "%s", big);
	assert_int_equal(strlen(err.msg), ERR_MSG_MAX - 1);
	for (int i = 0; i < 5; i++) {
		err_wrap(&err, "%s", i % 2 ? "short" : big);
		assert_int_equal(strlen(err.msg), ERR_MSG_MAX - 1);
	}
	err_at(&err, big, 1, 1);
	err_hint(&err, "%s", big);
	assert_int_equal(strlen(err.file), ERR_FILE_MAX - 1);
	assert_int_equal(strlen(err.hint), ERR_FILE_MAX - 1);
	assert_int_equal(strlen(err_str(&err, small, sizeof(small))), 7);
}

static void system_errors(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_errno(&err, WEFT_ENOTFOUND, ENOENT, "open %s",
				   "x"), WEFT_ENOTFOUND);
	assert_string_equal(err.msg, "open x: No such file or directory");
}

static void names_and_exit_codes(void **state)
{
	static const int exits[] = {
		[-WEFT_OK] = 0, [-WEFT_EINVAL] = 65, [-WEFT_EUSAGE] = 64,
		[-WEFT_EIO] = 1, [-WEFT_ENOTFOUND] = 65,
		[-WEFT_ESTALE] = 75, [-WEFT_EDENIED] = 77,
		[-WEFT_EUNAVAIL] = 69, [-WEFT_ETIMEOUT] = 124,
		[-WEFT_ECANCELED] = 1, [-WEFT_EUNSUPPORTED] = 65,
		[-WEFT_EINFEASIBLE] = 65, [-WEFT_EVERIFY] = 1,
		[-WEFT_ELIMIT] = 65, [-WEFT_EDEVICE] = 1,
		[-WEFT_EINTERNAL] = 1, [-WEFT_EHELD] = 75,
	};

	(void)state;
	for (int i = 0; i <= -WEFT_EHELD; i++) {
		if (i == 3) {
			continue;	/* no code any more */
		}
		assert_string_not_equal(err_name(-i), "EUNKNOWN");
		assert_int_equal(err_from_name(err_name(-i)), -i);
		assert_int_equal(err_exit_code(-i), exits[i]);
	}
	assert_string_equal(err_name(-1000), "EUNKNOWN");
	assert_string_equal(err_name(1), "EUNKNOWN");
	assert_int_equal(err_from_name("nonsense"), WEFT_EINTERNAL);
	assert_int_equal(err_exit_code(-1000), 1);
}

static void add(struct err_list *list, const char *file, int line, int col,
		const char *msg)
{
	struct err err;

	err_set(&err, WEFT_EINVAL, "%s", msg);
	err_at(&err, file, line, col);
	err_list_add(list, &err);
}

static void lists_sort_stably(void **state)
{
	struct err_list list = { 0 };
	char order[16] = "";

	(void)state;
	add(&list, "b", 1, 1, "f");
	add(&list, "a", 2, 1, "c");
	add(&list, "a", 10, 1, "e");
	add(&list, "a", 2, 5, "d");
	add(&list, "a", 1, 9, "a");
	add(&list, "a", 1, 9, "b");
	err_list_sort(&list);
	for (int i = 0; i < list.n; i++) {
		strcat(order, list.v[i].msg);
	}
	assert_string_equal(order, "abcdef");
	err_list_fini(&list);
	err_list_sort(&list);
	add(&list, "a", 1, 1, "x");
	assert_int_equal(list.n, 1);
	err_list_fini(&list);
}

static void lists_are_bounded(void **state)
{
	struct err_list list = { .max = 3 }, many = { 0 };

	(void)state;
	for (int i = 0; i < 250; i++) {
		add(&list, "f", i, 1, "x");
		add(&many, "f", i, 1, "x");
	}
	assert_int_equal(list.n, 3);
	assert_int_equal(list.dropped, 247);
	assert_int_equal(many.n, 100);
	assert_int_equal(many.dropped, 150);
	err_list_fini(&list);
	err_list_fini(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_terminal_would_obey_is_cleaned),
		cmocka_unit_test(set_and_wrap),
		cmocka_unit_test(null_is_fine),
		cmocka_unit_test(wrapping_an_unset_error),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(system_errors),
		cmocka_unit_test(names_and_exit_codes),
		cmocka_unit_test(lists_sort_stably),
		cmocka_unit_test(lists_are_bounded),
	};

	return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
