/* SPDX-License-Identifier: Apache-2.0 */
/* The table of schedules: what is read from it, and where its mistakes are said to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "runtime/preload/table.h"

static struct preload_table parse(const char *text)
{
	struct err_list errs = { 0 };
	struct preload_table t;

	if (preload_table_parse("/etc/weft/t.yaml", text, strlen(text), &t, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	assert_int_equal(errs.n, 0);
	err_list_fini(&errs);
	return t;
}

static void entries_are_read(void **state)
{
	struct preload_table t = parse(
		"schedules:\n"
		"  - { file: a.json, min-bytes: 64KiB, max-bytes: 1MB }\n"
		"  - file: /srv/b-%r.pb\n"
		"    collective: broadcast\n"
		"    ranks: 12\n"
		"    root: 3\n");
	const struct preload_entry *e = t.entries.v;

	(void)state;
	assert_int_equal(t.entries.n, 2);
	assert_string_equal(e[0].file, "/etc/weft/a.json");
	assert_int_equal(e[0].min_bytes, 65536);
	assert_int_equal(e[0].max_bytes, 1000000);
	assert_int_equal(e[0].kind, -1);
	assert_int_equal(e[0].ranks, -1);
	assert_int_equal(e[0].root, -1);
	assert_false(e[0].per_rank);
	assert_int_equal(e[0].line, 2);
	assert_string_equal(e[1].file, "/srv/b-%r.pb");
	assert_int_equal(e[1].min_bytes, 0);
	assert_true(e[1].max_bytes == INT64_MAX);
	assert_int_equal(e[1].kind, COLL_BROADCAST);
	assert_int_equal(e[1].ranks, 12);
	assert_int_equal(e[1].root, 3);
	assert_true(e[1].per_rank);
	preload_table_fini(&t);
}

/* Groups of a mesh, row-major, in order and no others. */
static void groups_of_a_mesh(void **state)
{
	static const int middle[] = { 1, 3 }, outer[] = { 3, 7 }, both[] = { 2, 3, 6, 7 };
	static const int turned[] = { 3, 2, 6, 7 };
	struct preload_table t = parse("schedules:\n"
		"  - { file: a.json, members: '2 x [2] x 2' }\n"
		"  - { file: a.json, members: '[2] x 4' }\n"
		"  - { file: a.json, members: '[2] x 2 x [2]', ranks: 4 }\n"
		"  - { file: a.json, ranks: 2 }\n");
	const struct preload_entry *e = t.entries.v;

	(void)state;
	assert_int_equal(e[0].ranks, 2);
	assert_int_equal(e[2].ranks, 4);
	assert_true(preload_is_member(&e[0], 8, middle));
	assert_false(preload_is_member(&e[0], 8, outer));
	assert_false(preload_is_member(&e[0], 16, middle));
	assert_true(preload_is_member(&e[1], 8, outer));
	assert_false(preload_is_member(&e[1], 8, middle));
	assert_true(preload_is_member(&e[2], 8, both));
	assert_false(preload_is_member(&e[2], 8, turned));
	assert_true(preload_is_member(&e[3], 8, middle));
	preload_table_fini(&t);
}

/* Entries are sent as they are: nothing in them is left as it was in memory. */
static void equal_tables_are_equal_bytes(void **state)
{
	const char *text = "schedules: [ { file: a }, { file: bcd%r } ]";
	struct preload_table s = parse(text), t = parse(text);

	(void)state;
	assert_memory_equal(s.entries.v, t.entries.v, 2 * sizeof(*s.entries.v));
	preload_table_fini(&s);
	preload_table_fini(&t);
}

struct table_mistake {
	const char *text;
	int line, col;
	const char *what;
};

static void mistakes_have_places(void **state)
{
	static const struct table_mistake mistakes[] = {
		{ "", 0, 0, "" },
		{ "[]", 1, 1, "expected keys" },
		{ "schedules: 3", 1, 12, "expected a list" },
		{ "schedules: []", 1, 12, "0 entries" },
		{ "schedules:\n  - { min-bytes: 1kB }\n", 2, 5, "file" },
		{ "schedules:\n  - { file: a, size: 1kB }\n", 2, 16, "size" },
		{ "schedules:\n  - { file: a%b }\n", 2, 13, "followed by r" },
		{ "schedules:\n  - { file: a%r%r }\n", 2, 13, "one %" },
		{ "schedules:\n  - { file: '%' }\n", 2, 13, "followed by r" },
		{ "schedules:\n  - { file: a, min-bytes: 5 }\n", 2, 27, "unit" },
		{ "schedules:\n  - { file: a, max-bytes: -5B }\n", 2, 27, "" },
		{ "schedules:\n  - { file: a, min-bytes: 9B, max-bytes: 8B }\n", 2, 42,
		  "less than min-bytes" },
		{ "schedules:\n  - { file: a, collective: gather }\n", 2, 28, "gather" },
		{ "schedules:\n  - { file: a, collective: allreduce, root: 1 }\n", 2, 45,
		  "allreduce has none" },
		{ "schedules:\n  - { file: a, ranks: 1 }\n", 2, 23, "1" },
		{ "schedules:\n  - { file: a, members: blocks of 8 }\n", 2, 25, "members: sizes" },
		{ "schedules:\n  - { file: a, members: '2 x [3' }\n", 2, 25, "members: sizes" },
		{ "schedules:\n  - { file: a, members: '4 x [1]' }\n", 2, 25, "members: sizes" },
		{ "schedules:\n  - { file: a, ranks: 3, members: '2 x [2]' }\n", 2, 23,
		  "its members are groups of 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		const struct table_mistake *m = &mistakes[i];
		struct err_list errs = { 0 };
		struct preload_table t;

		assert_int_not_equal(preload_table_parse("t.yaml", m->text, strlen(m->text), &t,
							 &errs), 0);
		assert_int_equal(errs.n, 1);
		assert_int_equal(t.entries.n, 0);
		if (!strstr(errs.v[0].msg, m->what) || (m->line && (errs.v[0].line != m->line ||
								   errs.v[0].col != m->col))) {
			fail_msg("%s: %d:%d: %s", m->text, errs.v[0].line, errs.v[0].col,
				 errs.v[0].msg);
		}
		err_list_fini(&errs);
	}
}

static void long_tables_are_refused(void **state)
{
	struct err_list errs = { 0 };
	struct preload_table t;
	struct buf b = { 0 };

	(void)state;
	buf_str(&b, "schedules:\n");
	for (int i = 0; i <= PRELOAD_MAX_ENTRIES; i++) {
		buf_str(&b, "  - { file: a }\n");
	}
	assert_int_equal(preload_table_parse("t", b.data, b.len, &t, &errs), WEFT_ELIMIT);
	buf_reset(&b);
	for (int i = 0; i < PRELOAD_MAX_FILE; i++) {
		buf_char(&b, 'x');
	}
	err_list_fini(&errs);
	assert_int_equal(preload_table_from_list("L", b.data, &t, &errs), WEFT_ELIMIT);
	err_list_fini(&errs);
	buf_fini(&b);
}

static void lists_are_short_tables(void **state)
{
	struct err_list errs = { 0 };
	struct preload_table t;

	(void)state;
	assert_int_equal(preload_table_from_list("LIST", "a/b.json:/c%r", &t, &errs), 0);
	assert_int_equal(t.entries.n, 2);
	assert_string_equal(t.entries.v[0].file, "a/b.json");
	assert_string_equal(t.entries.v[1].file, "/c%r");
	assert_true(t.entries.v[1].per_rank && !t.entries.v[0].per_rank);
	assert_true(t.entries.v[0].min_bytes == 0 && t.entries.v[0].max_bytes == INT64_MAX);
	preload_table_fini(&t);
	assert_int_equal(preload_table_from_list("LIST", "a::b", &t, &errs), WEFT_EINVAL);
	assert_int_equal(t.entries.n, 0);
	assert_string_equal(errs.v[0].file, "LIST");
	assert_int_equal(errs.v[0].col, 3);
	err_list_fini(&errs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read), cmocka_unit_test(groups_of_a_mesh),
		cmocka_unit_test(equal_tables_are_equal_bytes),
		cmocka_unit_test(mistakes_have_places),
		cmocka_unit_test(long_tables_are_refused),
		cmocka_unit_test(lists_are_short_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
