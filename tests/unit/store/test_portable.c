/* SPDX-License-Identifier: Apache-2.0 */
/* checklist 22: a store as text and back, whole or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "controller/store/portable.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "tests/unit/store/common.h"

static const struct store_export everything = { .history = true, .audit = true };

static struct buf exported(const char *path)
{
	struct buf b = { 0 };
	struct err err = { 0 };

	if (store_export(path, &everything, &b, &err)) {
		fail_msg("%s", err.msg);
	}
	return b;
}

/* A store with a committed change, an open one, and a row of each kind beside. */
static void fill(const struct place *p)
{
	struct store *s = must_open(p);
	struct store_repair repair = { .device = (char *)"a", .xc = { 1, 2 }, .change = 1,
				       .why = (char *)"no \"light\"\n" };
	struct store_external_change ext = { .device = "a", .xc = { 0, 1 }, .right_ns = 5,
					     .noticed_ns = 6, .who = "caf\xe9" };
	struct store_job job = { .name = (char *)"j", .who = (char *)"uid 1",
				 .request_id = (char *)"r", .spec = (char *)"00ff",
				 .nodes = (char *)"h1 h2", .problem = (char *)"",
				 .priority = -3 };
	struct store_insertion_loss loss = { .xc = { 3, 4 }, .mdb = -7 };
	struct store_observed seen = { .device = (char *)"a", .read_at_ns = 9,
				       .epoch = (char *)"1", .identity = (char *)"x" };
	struct err err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct store_journal j = journal_of(3, i - 1, i);

		assert_int_equal(begin(s, &j, "weft: 1\n", &err), 0);
		store_audit(s, j.change.id, "a", STORE_COMMAND, "set 1,2");
		if (i == 0) {
			assert_int_equal(store_commit(s, j.change.id, "done", 2, &err), 0);
		}
		store_journal_fini(&j);
	}
	assert_int_equal(store_repairs_put(s, &repair, 1, &err), 0);
	assert_int_equal(store_external_changes_put(s, &ext, 1, &err), 0);
	assert_int_equal(store_jobs_put(s, (struct store_job *[]){ &job }, 1, &err), 0);
	assert_int_equal(store_insertion_losses_put(s, "a", &loss, 1, &err), 0);
	assert_int_equal(store_observed_put(s, &seen, 1, &err), 0);
	assert_int_equal(store_drain(s, "h2", "root", "a fan", &err), 0);
	store_free(s);
}

static void the_same_bytes_again(void **state)
{
	struct place a, b;
	struct store_import done;
	struct err err = { 0 };
	struct buf first, again;

	(void)state;
	place_make(&a);
	place_make(&b);
	fill(&a);
	first = exported(a.path);
	if (store_import(b.path, "text", first.data, first.len, false, &done, &err)) {
		fail_msg("%s", err.msg);
	}
	again = exported(b.path);
	assert_int_equal(first.len, again.len);
	assert_memory_equal(first.data, again.data, first.len);
	assert_non_null(strstr(first.data, "{\"hex\":\"636166e9\"}"));
	buf_fini(&again);
	/* It is a store: a change goes on from there. */
	{
		struct store *s = must_open(&b), *t = must_open(&a);

		assert_string_equal(store_uuid(s), store_uuid(t));
		assert_int_equal(store_generation(s), store_generation(t));
		assert_int_equal(store_fence(s), store_fence(t));
		store_free(s);
		store_free(t);
	}
	buf_fini(&first);
	place_remove(&a);
	place_remove(&b);
}

static void a_store_that_is_there_is_kept(void **state)
{
	struct place p;
	struct store_import done;
	struct err err = { 0 };
	struct buf before, after;
	struct store *s;

	(void)state;
	place_make(&p);
	fill(&p);
	before = exported(p.path);
	assert_int_equal(store_import(p.path, "t", before.data, before.len, false, &done, &err),
			 WEFT_EUSAGE);
	s = must_open(&p);
	assert_int_equal(store_import(p.path, "t", before.data, before.len, true, &done, &err),
			 WEFT_ESTALE);
	store_free(s);
	assert_int_equal(store_import(p.path, "t", before.data, before.len, true, &done, &err), 0);
	assert_int_equal(access(done.kept, F_OK), 0);
	after = exported(p.path);
	/* All but the fence, which does not go back. */
	assert_non_null(strstr(after.data, "\"fence\":2"));
	assert_non_null(strstr(before.data, "\"fence\":1") ? before.data : after.data);
	buf_fini(&before);
	buf_fini(&after);
	place_remove(&p);
}

/* Replaces the first `what` by `by`, imports it, and wants this message; nothing stays. */
static void refused(const char *text, const char *what, const char *by, const char *message)
{
	struct place p;
	struct store_import done;
	struct err err = { 0 };
	char shown[ERR_MSG_MAX + ERR_FILE_MAX + 32];
	const char *at = strstr(text, what);
	struct buf b = { 0 };

	assert_non_null(at);
	buf_add(&b, text, (size_t)(at - text));
	buf_str(&b, by);
	buf_str(&b, at + strlen(what));
	place_make(&p);
	assert_int_not_equal(store_import(p.path, "text", b.data, b.len, false, &done, &err), 0);
	err_str(&err, shown, sizeof(shown));
	if (!strstr(shown, message)) {
		fail_msg("\"%s\" has no \"%s\"", shown, message);
	}
	assert_int_not_equal(access(p.path, F_OK), 0);
	buf_fini(&b);
	place_remove(&p);
}

static void what_is_wrong_is_named(void **state)
{
	struct place p;
	struct buf b;

	(void)state;
	place_make(&p);
	fill(&p);
	b = exported(p.path);
	refused(b.data, "\"fence\":", "\"fense\":", "unknown field state.fense");
	refused(b.data, "\"drains\":", "\"drips\":", "unknown field drips");
	refused(b.data, "\"weft_store\": 1", "\"weft_store\": 0", "no store that weft exported");
	refused(b.data, "\"readable_from\": 1", "\"readable_from\": 2", "from form 2 on");
	refused(b.data, "\"op\":\"add\"", "\"op\":\"sing\"", "journal_steps[1]: CHECK");
	refused(b.data, "\"in_port\":0", "\"in_port\":\"0\"", "in_port: is not a whole number");
	refused(b.data, "\"in_port\":0", "\"in_port\":4294967296", "in_port: is out of range");
	refused(b.data, "\"weft: 1\\n\"", "\"weft: 2\\n\"", "not what its hash says");
	refused(b.data, "\"data\":{\"hex\":\"", "\"data\":{\"hex\":\"00", "program");
	refused(b.data, "\"applied\":1", "\"applied\":77", "refers to one that is not there");
	refused(b.data, "{\"weft_store\"", "[{\"weft_store\"", "text:");
	refused(b.data, "\"state\": [", "\"state\": [],\"state\": [", "duplicate");
	buf_fini(&b);
	place_remove(&p);
}

/* What only a newer weft knows is left out, and named. */
static void newer_fields_are_left_out(void **state)
{
	struct place p, q;
	struct store_import done;
	struct err err = { 0 };
	struct buf b, newer = { 0 };
	const char *rest;

	(void)state;
	place_make(&p);
	place_make(&q);
	fill(&p);
	b = exported(p.path);
	rest = strstr(b.data, "{\"uuid\"");
	buf_str(&newer, "{\"weft_store\": 2, \"readable_from\": 1, \"hues\": [],\n\"state\": [\n");
	buf_str(&newer, "{\"mood\":1,");
	buf_str(&newer, rest + 1);
	assert_int_equal(store_import(q.path, "t", newer.data, newer.len, false, &done, &err), 0);
	assert_non_null(strstr(done.left_out, "hues"));
	assert_non_null(strstr(done.left_out, "state.mood"));
	buf_fini(&newer);
	newer = exported(q.path);
	assert_string_equal(newer.data, b.data);
	buf_fini(&b);
	buf_fini(&newer);
	place_remove(&p);
	place_remove(&q);
}

/* Export reads one state while the writer has the store. */
static void a_writer_goes_on(void **state)
{
	struct place p;
	struct store *s;
	struct buf b;
	struct err err = { 0 };

	(void)state;
	place_make(&p);
	fill(&p);
	s = must_open(&p);
	assert_int_equal(store_drain(s, "h7", "root", "in the log only", &err), 0);
	b = exported(p.path);
	assert_non_null(strstr(b.data, "in the log only"));
	assert_int_equal(store_undrain(s, "h7", &err), 0);
	store_free(s);
	buf_fini(&b);
	place_remove(&p);
}

/* ---- the schema ---------------------------------------------------------- */

/* Exported as rows, which are columns of others in the file. */
static const char *const unpacked[] = { "journal_step", "intent_circuit", "observed_circuit" };

/* What is not exported: facts about running processes, keys of the only row, and the columns
 * that are exported as those rows. */
static const struct left_out {
	const char *table, *column;	/* column NULL: the whole table */
} left_out[] = {
	{ "lease", NULL },		/* who leads */
	{ "replica", NULL },		/* how far a copy is */
	{ "content", NULL },		/* digests of this file */
	{ "state", "one" },		/* always 1 */
	{ "confirm", "one" },
	{ "journal_device", "steps" },
	{ "journal_device", "states" },
	{ "journal_device", "notes" },
	{ "intent_device", "circuits" },
	{ "observed_map", NULL },
};

static bool is_unpacked(const char *table)
{
	for (size_t i = 0; i < sizeof(unpacked) / sizeof(*unpacked); i++) {
		if (strcmp(unpacked[i], table) == 0) {
			return true;
		}
	}
	return false;
}

static const struct portable_table *find_table(const char *name)
{
	for (const struct portable_table *t = portable_tables; t->name; t++) {
		if (strcmp(t->table, name) == 0) {
			return t;
		}
	}
	return NULL;
}

static bool is_left_out(const char *table, const char *column, bool seen[])
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++) {
		if (strcmp(left_out[i].table, table) == 0 &&
		    (!left_out[i].column || strcmp(left_out[i].column, column) == 0)) {
			seen[i] = true;
			return true;
		}
	}
	return false;
}

static bool is_exported(const char *table, const char *column)
{
	const struct portable_table *t = find_table(table);

	for (const struct portable_column *c = t ? t->columns : NULL; c && c->name; c++) {
		if (strcmp(c->name, column) == 0) {
			return true;
		}
	}
	return false;
}

/* A column that a new format adds is exported, or said not to be. */
static void every_column_is_known(void **state)
{
	static const char sql[] = "SELECT t.name, c.name FROM sqlite_master t, "
				  "pragma_table_info(t.name) c WHERE t.type = 'table'";
	bool seen[sizeof(left_out) / sizeof(*left_out)] = { false };
	int n = 0, n_exported = 0;
	struct place p;
	sqlite3_stmt *st;
	sqlite3 *db;

	(void)state;
	place_make(&p);
	store_free(must_open(&p));
	assert_int_equal(sqlite3_open(p.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	for (; sqlite3_step(st) == SQLITE_ROW; n++) {
		const char *table = (const char *)sqlite3_column_text(st, 0);
		const char *column = (const char *)sqlite3_column_text(st, 1);
		bool exported = is_exported(table, column);

		if (exported == is_left_out(table, column, seen)) {
			fail_msg("%s.%s: %s", table, column,
				 exported ? "exported, and said not to be" : "not exported");
		}
		n_exported += exported;
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
	for (const struct portable_table *t = portable_tables; t->name; t++) {
		for (const struct portable_column *c = t->columns; c->name; c++) {
			n_exported -= !is_unpacked(t->table);
		}
	}
	assert_int_equal(n_exported, 0);	/* none is exported that is not there */
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		if (!seen[i]) {
			fail_msg("%s is not in the schema", left_out[i].table);
		}
	}
	assert_true(n > 0);
	place_remove(&p);
}

/* No text of a fabric has one, whoever wrote it. */
static void passwords_are_refused(void **state)
{
	static const char *const keys[] = { "password", "password_file" };
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct store_journal j = journal_of(1, -1, 7);
		struct store_import done;
		struct place p, to;
		char fabric[128];
		struct store *s;
		struct buf text;

		place_make(&p);
		place_make(&to);
		snprintf(fabric, sizeof(fabric), "weft: 1 # password: x\nswitches:\n"
			 "  - { name: a, options: { %s: Zq7xK } }\n", keys[i]);
		s = must_open(&p);
		assert_int_equal(begin(s, &j, fabric, &err), 0);
		store_journal_fini(&j);
		store_free(s);
		text = exported(p.path);
		assert_int_equal(store_import(to.path, "t", text.data, text.len, false, &done,
					      &err), i ? 0 : WEFT_EINVAL);
		if (i == 0) {
			assert_string_equal(err.msg,
					    "t: configurations: a password stands in a fabric");
			assert_int_equal(access(to.path, F_OK), -1);
		}
		buf_fini(&text);
		place_remove(&p);
		place_remove(&to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_bytes_again),
		cmocka_unit_test(a_store_that_is_there_is_kept),
		cmocka_unit_test(passwords_are_refused),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(newer_fields_are_left_out),
		cmocka_unit_test(a_writer_goes_on),
		cmocka_unit_test(every_column_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
