/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passwords that an older weft left in the texts of fabrics: they are moved to files beside the
 * store, which has them nowhere any more, and every change has its text.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "tests/unit/store/common.h"

#define WORD "Zq7xK-4kdW"
#define OPTIONS(key, value) \
	"weft: 1\nswitches:\n  - { name: a, options: { user: root, " key ": " value " } }\n" \
	"  - name: b # " key "\n    options:\n      " key ": " value "\n"

static void sql(const struct place *p, const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, NULL)) {
		fail_msg("%s", sqlite3_errmsg(db));
	}
	sqlite3_close(db);
}

/* A committed change of each text, in their order, as format 18 has them. */
static void make_old(const struct place *p, const char *const *texts, int n)
{
	struct store *s = must_open(p);
	struct err err = { 0 };

	for (int i = 0; i < n; i++) {
		struct store_journal j = journal_of(1, -1, 7);

		assert_int_equal(begin(s, &j, texts[i], &err), 0);
		assert_int_equal(store_commit(s, j.change.id, "done", 2, &err), 0);
		store_journal_fini(&j);
	}
	store_free(s);
	sql(p, "ALTER TABLE replica DROP COLUMN published; DROP TABLE content; "
	    "ALTER TABLE change_job DROP COLUMN ports; "
	    "ALTER TABLE change_job DROP COLUMN circuits; "
	    "ALTER TABLE change DROP COLUMN topologies; "
	    "ALTER TABLE change DROP COLUMN empties; "
	    "ALTER TABLE job DROP COLUMN told_ns; ALTER TABLE job DROP COLUMN preempt_ns; "
	    "ALTER TABLE observed_map DROP COLUMN ages; "
	    "PRAGMA user_version = 18");
}

/* Of a file in the store's folder; its bytes, or NULL when it is not there. */
static char *bytes_of(const struct place *p, const char *name, size_t *len)
{
	char path[384], *data = NULL;

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	return file_read(path, 1 << 26, &data, len, NULL) ? NULL : data;
}

static void expect_file(const struct place *p, const char *name, const char *want)
{
	char path[384];
	struct stat st;
	size_t len = 0;
	char *data = bytes_of(p, name, &len);

	if (!want) {
		assert_null(data);
		return;
	}
	assert_non_null(data);
	assert_string_equal(data, want);
	free(data);
	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* No file has the word but those of passwords. */
static void expect_told_nowhere(const struct place *p)
{
	DIR *d = opendir(p->dir);
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		size_t len = 0;
		char *data = strncmp(e->d_name, "password-", 9) ? bytes_of(p, e->d_name, &len)
								 : NULL;

		if (data && memmem(data, len, WORD, strlen(WORD))) {
			fail_msg("%s has the password", e->d_name);
		}
		free(data);
	}
	closedir(d);
}

static void expect_text(struct store *s, int64_t change, const char *want)
{
	struct store_config c;
	struct err err = { 0 };

	if (store_change_config(s, change, &c, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_string_equal(c.config.text, want);
	store_config_fini(&c);
}

static void they_are_in_files_then(void **state)
{
	static const char *const texts[] = {
		OPTIONS("password", WORD), OPTIONS("password", "\"" WORD " 2\""), "weft: 1\n",
		OPTIONS("password_file", "/etc/weft/a"),
	};
	struct place p;
	char want[2][512];
	size_t len;
	struct store *s;
	char *first;

	(void)state;
	place_make(&p);
	make_old(&p, texts, 4);
	/* Freed, and not yet used again. */
	sql(&p, "CREATE TABLE gone (x); INSERT INTO gone VALUES ('" WORD "'); DROP TABLE gone;");
	s = must_open(&p);
	expect_told_nowhere(&p);
	first = bytes_of(&p, "password-1", &len);
	assert_non_null(first);
	expect_file(&p, "password-1", len == strlen(WORD "\n") ? WORD "\n" : WORD " 2\n");
	expect_file(&p, "password-2", len == strlen(WORD "\n") ? WORD " 2\n" : WORD "\n");
	expect_file(&p, "password-3", NULL);
	for (int i = 0; i < 2; i++) {
		int file = (i == 0) == (len == strlen(WORD "\n")) ? 1 : 2;

		snprintf(want[i], sizeof(want[i]), "weft: 1\nswitches:\n  - { name: a, options: "
			 "{ user: root, password_file: \"%s/password-%d\" } }\n"
			 "  - name: b # password\n    options:\n"
			 "      password_file: \"%s/password-%d\"\n", p.dir, file, p.dir, file);
		expect_text(s, i + 1, want[i]);
	}
	expect_text(s, 3, texts[2]);
	expect_text(s, 4, texts[3]);
	store_free(s);
	expect_told_nowhere(&p);
	s = must_open(&p);
	expect_text(s, 1, want[0]);
	store_free(s);
	free(first);
	place_remove(&p);
}

/* Cut off before the texts were changed: the files that are there are taken. */
static void doing_it_again_makes_no_more(void **state)
{
	static const char *const texts[] = { OPTIONS("password", WORD) };
	struct place p;
	struct buf old = { 0 };
	char *data;
	size_t len;
	struct err err = { 0 };

	(void)state;
	place_make(&p);
	make_old(&p, texts, 1);
	data = bytes_of(&p, "state", &len);
	assert_non_null(data);
	buf_add(&old, data, len);
	free(data);
	for (int i = 0; i < 2; i++) {
		store_free(must_open(&p));
		expect_file(&p, "password-1", WORD "\n");
		expect_file(&p, "password-2", NULL);
		assert_int_equal(file_write_atomic(p.path, old.data, old.len, FILE_PRIVATE, &err),
				 0);
	}
	buf_fini(&old);
	place_remove(&p);
}

/* A text never has them: one of an old store is not made, and what one has is moved. */
static void exports_have_none(void **state)
{
	static const char *const texts[] = { OPTIONS("password", WORD) };
	const struct store_export everything = { .history = true, .audit = true };
	struct store_import done;
	struct place p, to;
	struct buf text = { 0 };
	struct err err = { 0 };
	struct store *s;
	char want[512];

	(void)state;
	place_make(&p);
	place_make(&to);
	make_old(&p, texts, 1);
	assert_int_equal(store_export(p.path, &everything, &text, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "a password stands in a fabric"));
	assert_null(strstr(err.msg, WORD));
	buf_reset(&text);
	/* As an older weft exports it. */
	sql(&p, "ALTER TABLE change_job ADD COLUMN ports TEXT NOT NULL DEFAULT '';"
	    "ALTER TABLE change_job ADD COLUMN circuits TEXT NOT NULL DEFAULT '';"
	    "ALTER TABLE change ADD COLUMN topologies TEXT NOT NULL DEFAULT '';"
	    "ALTER TABLE change ADD COLUMN empties TEXT NOT NULL DEFAULT '';"
	    "ALTER TABLE job ADD COLUMN told_ns INTEGER NOT NULL DEFAULT 0;"
	    "ALTER TABLE job ADD COLUMN preempt_ns INTEGER NOT NULL DEFAULT 0;"
	    "ALTER TABLE observed_map ADD COLUMN ages TEXT NOT NULL DEFAULT '[]';"
	    "PRAGMA user_version = 25");
	assert_int_equal(store_export(p.path, &everything, &text, &err), 0);
	assert_non_null(memmem(text.data, text.len, WORD, strlen(WORD)));
	if (store_import(to.path, "text", text.data, text.len, false, &done, &err)) {
		fail_msg("%s", err.msg);
	}
	expect_told_nowhere(&to);
	expect_file(&to, "password-1", WORD "\n");
	s = must_open(&to);
	snprintf(want, sizeof(want), "weft: 1\nswitches:\n  - { name: a, options: { user: root, "
		 "password_file: \"%s/password-1\" } }\n  - name: b # password\n    options:\n"
		 "      password_file: \"%s/password-1\"\n", to.dir, to.dir);
	expect_text(s, 1, want);
	store_free(s);
	buf_fini(&text);
	place_remove(&p);
	place_remove(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_in_files_then),
		cmocka_unit_test(doing_it_again_makes_no_more),
		cmocka_unit_test(exports_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
