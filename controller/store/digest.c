/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells content that weft did not write. The file has one number over all of its rows, which
 * grows and shrinks with each row: a trigger of this connection takes the old row off it and adds
 * the new one, and each commit writes it. At the start it is made again from all rows and compared;
 * SQLite itself looks only at the shape of its pages.
 *
 * A row is a hash of the table's name and of its values; rows are added up, so that their order
 * does not matter. It is against disks, not against people: who can write the file can write this.
 * The schema, the format and the last ids that were given are in it as well, as they are at the
 * commit.
 */
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/buf.h"

/* A text for each table but SQLite's own and the number's: its name for {t}, its columns as OLD
 * and NEW have them, and plain, for {old}, {new} and {all}. */
#define COLUMNS(before) "group_concat('" before "\"' || c.name || '\"')"
#define TABLES "SELECT replace(replace(replace(replace(?, '{t}', t.name), '{old}', " \
	COLUMNS("old.") "), '{new}', " COLUMNS("new.") "), '{all}', " COLUMNS("") ") " \
	"FROM main.sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table' " \
	"AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'content' GROUP BY t.name"

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t mix_bytes(uint64_t h, const unsigned char *p, size_t n)
{
	uint64_t word;

	h = mix(h, n);
	for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
		word = 0;
		for (int i = 7; i >= 0; i--) {
			word = word << 8 | p[i];
		}
		h = mix(h, word);
	}
	for (word = 0; n > 0; n--) {
		word = word << 8 | p[n - 1];
	}
	return mix(h, word);
}

static uint64_t mix_value(uint64_t h, sqlite3_value *v)
{
	const int type = sqlite3_value_type(v);

	h = mix(h, (uint64_t)type);
	switch (type) {
	case SQLITE_NULL:
		return h;
	case SQLITE_INTEGER:
		return mix(h, (uint64_t)sqlite3_value_int64(v));
	default:
		return mix_bytes(h, sqlite3_value_blob(v), (size_t)sqlite3_value_bytes(v));
	}
}

/* content_row(sign, values...): adds a row to the number, or takes it off. */
static void content_row(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	struct store *s = sqlite3_user_data(ctx);
	uint64_t h = 0;

	for (int i = 1; i < n; i++) {
		h = mix_value(h, v[i]);
	}
	h = mix(h, h >> 32);
	s->content += sqlite3_value_int(v[0]) < 0 ? -h : h;
}

int store_for_tables(struct store *s, const char *text, struct err *err)
{
	struct buf all = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, TABLES, "s", text);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		buf_str(&all, (const char *)sqlite3_column_text(st, 0));
	}
	db_release(s, st);
	if (rc == 0 && sqlite3_exec(s->db, buf_cstr(&all), NULL, NULL, NULL)) {
		rc = db_fail(s, err, "content");
	}
	buf_fini(&all);
	return rc;
}

/* What is not in rows, into *out: schema, format, last ids, how many transactions. */
static int sum_rest(struct store *s, uint64_t *out, struct err *err)
{
	const uint64_t rows = s->content;
	int rc = 0;

	s->content = s->fixed;
	if (!s->fixed &&
	    (rc = db_run(s, err, "SELECT content_row(1, type, name, tbl_name, sql) "
			 "FROM main.sqlite_schema", "")) == 0) {
		rc = db_run(s, err, "SELECT content_row(1, user_version) FROM pragma_user_version",
			    "");
		s->fixed = s->content;
	}
	if (rc == 0) {
		rc = db_run(s, err, "SELECT content_row(1, name, seq) FROM main.sqlite_sequence",
			    "");
	}
	*out = mix(s->content, (uint64_t)s->written);
	s->content = rows;
	return rc;
}

static int sum_rows(struct store *s, struct err *err)
{
	s->content = 0;
	return store_for_tables(s, "SELECT content_row(1, '{t}', {all}) FROM main.\"{t}\";", err);
}

int store_content_count(struct store *s, struct err *err)
{
	if (sqlite3_create_function(s->db, "content_row", -1, SQLITE_UTF8 | SQLITE_INNOCUOUS, s,
				    content_row, NULL, NULL)) {
		return db_fail(s, err, "content");
	}
	s->counts = true;
	return sum_rows(s, err);
}

int store_content_begin(struct store *s, struct err *err)
{
	sqlite3_stmt *st;
	int rc = s->counts ? db_prepare(s, err, &st, "SELECT rows, written FROM content", "") : 1;

	if (rc) {
		return rc == 1 ? 0 : rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		s->content = (uint64_t)sqlite3_column_int64(st, 0);
		s->written = sqlite3_column_int64(st, 1);
	}
	db_release(s, st);
	return rc == 1 ? 0 : rc ? rc : db_damaged(s, err, "it has no digest");
}

int store_content_commit(struct store *s, struct err *err)
{
	uint64_t rest;
	int rc;

	s->written++;
	if (!s->counts || (rc = sum_rest(s, &rest, err))) {
		return s->counts ? rc : 0;
	}
	return db_run(s, err, "UPDATE content SET rows = ?, rest = ?, written = ?", "iii",
		      (int64_t)s->content, (int64_t)rest, s->written);
}

/* Within a transaction, so that all is of one moment. */
static int compare(struct store *s, struct err *err)
{
	uint64_t rows, rest;
	int64_t same = 0;
	int rc = store_content_count(s, err);

	rows = s->content;
	if (rc || (rc = store_content_begin(s, err)) || (rc = sum_rest(s, &rest, err)) ||
	    (rc = db_number(s, err, &same, "SELECT rows = ? AND rest = ? FROM content", "ii",
			    (int64_t)rows, (int64_t)rest))) {
		return rc;
	}
	return same ? 0 : db_damaged(s, err, "it does not hold what was written");
}

int store_content_check(struct store *s, struct err *err)
{
	int rc = s->newer ? 1 : db_run(s, err, "BEGIN", "");

	if (rc) {
		return rc == 1 ? 0 : rc;
	}
	rc = compare(s, err);
	db_run(s, NULL, "COMMIT", "");
	return rc;
}

int store_content_watch(struct store *s, struct err *err)
{
	return s->newer ? 0 : store_for_tables(s,
		"CREATE TEMP TRIGGER \"content_i_{t}\" AFTER INSERT ON main.\"{t}\" BEGIN "
		"SELECT content_row(1, '{t}', {new}); END;"
		"CREATE TEMP TRIGGER \"content_d_{t}\" AFTER DELETE ON main.\"{t}\" BEGIN "
		"SELECT content_row(-1, '{t}', {old}); END;"
		"CREATE TEMP TRIGGER \"content_u_{t}\" AFTER UPDATE ON main.\"{t}\" BEGIN "
		"SELECT content_row(-1, '{t}', {old}), content_row(1, '{t}', {new}); END;", err);
}
