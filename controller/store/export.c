/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store as text, for another version of weft.
 *
 * The file is copied into memory by SQLite, which reads one state of it also while weftd
 * writes, and the copy is brought to the format of today: a newer weft exports what an
 * older one wrote. Rows are sorted and stand one a line; the same store gives the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/store/portable.h"
#include "controller/store/private.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"
#include "lib/output/writer.h"

#define SOURCE_TRIES 500	/* 20 ms each, for a writer that has the file for itself */

/* ---- values -------------------------------------------------------------- */

static bool is_plain_text(const char *s, size_t len)
{
	const char *end = s + len;

	if (memchr(s, '\0', len)) {
		return false;
	}
	while (s < end) {
		if (text_utf8(&s) < 0) {
			return false;
		}
	}
	return true;
}

static void put_hex(struct buf *b, const unsigned char *data, size_t len)
{
	buf_str(b, "{\"hex\":\"");
	for (size_t i = 0; i < len; i++) {
		buf_printf(b, "%02x", data[i]);
	}
	buf_str(b, "\"}");
}

static void put_value(struct buf *b, sqlite3_stmt *st, int col)
{
	const char *text;
	size_t len;

	switch (sqlite3_column_type(st, col)) {
	case SQLITE_NULL:
		buf_str(b, "null");
		return;
	case SQLITE_INTEGER:
		buf_printf(b, "%lld", (long long)sqlite3_column_int64(st, col));
		return;
	default:
		text = (const char *)sqlite3_column_text(st, col);
		len = (size_t)sqlite3_column_bytes(st, col);
		if (is_plain_text(text, len)) {
			out_json_quote(b, text);
		} else {
			put_hex(b, (const unsigned char *)text, len);
		}
	}
}

/* ---- tables -------------------------------------------------------------- */

static int put_table(struct store *s, const struct portable_table *t, struct buf *b,
		     struct err *err)
{
	struct buf sql = { 0 };
	sqlite3_stmt *st = NULL;
	const char *between = "";
	int rc;

	for (int i = 0; t->columns[i].name; i++) {
		buf_printf(&sql, "%s %s", i ? "," : "SELECT", t->columns[i].name);
	}
	buf_printf(&sql, " FROM \"%s\" ORDER BY %s", t->table, t->order);
	rc = db_prepare(s, err, &st, buf_cstr(&sql), "");
	buf_fini(&sql);
	buf_printf(b, ",\n\"%s\": [", t->name);
	while (rc == 0 && (rc = db_step(s, err, st)) == 1) {
		buf_printf(b, "%s\n{", between);
		for (int i = 0; t->columns[i].name; i++) {
			buf_printf(b, "%s\"%s\":", i ? "," : "", t->columns[i].name);
			put_value(b, st, i);
		}
		buf_char(b, '}');
		between = ",";
		rc = 0;
	}
	buf_str(b, "]");
	db_release(s, st);
	return rc;
}

/* What was not asked for is dropped from the copy. */
static int leave_out(struct store *s, const struct store_export *what, struct err *err)
{
	int rc = what->audit ? 0 : db_run(s, err, "DELETE FROM audit", "");

	if (rc == 0 && !what->history) {
		rc = store_history_prune(s, 0, err);
	}
	return rc ? rc : store_sweep(s, err);
}

/* ---- the copy ------------------------------------------------------------ */

static int copy_pages(struct store *s, sqlite3 *from, struct err *err)
{
	sqlite3_backup *b = sqlite3_backup_init(s->db, "main", from, "main");
	int rc = SQLITE_BUSY;

	if (!b) {
		return db_fail(s, err, "copy");
	}
	for (int i = 0; i < SOURCE_TRIES && rc == SQLITE_BUSY; i++) {
		rc = sqlite3_backup_step(b, -1);
		if (rc == SQLITE_BUSY) {
			sqlite3_sleep(20);
		}
	}
	if (sqlite3_backup_finish(b) != SQLITE_OK || rc != SQLITE_DONE) {
		return db_fail(s, err, "copy");
	}
	return 0;
}

/* A store in memory with what the file at path holds. */
static int open_copy(struct store *s, const char *path, struct err *err)
{
	sqlite3 *from = NULL;
	int rc;

	if (sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY, NULL)) {
		rc = err_set(err, WEFT_ENOTFOUND, "store %s: %s", path, sqlite3_errmsg(from));
	} else if (sqlite3_open(":memory:", &s->db)) {
		rc = db_fail(s, err, "copy");
	} else {
		rc = copy_pages(s, from, err);
	}
	sqlite3_close(from);
	if (rc || (rc = store_check_pages(s, err)) ||
	    (rc = store_bring_up(s, err))) {
		return rc;
	}
	return db_run(s, err, "PRAGMA foreign_keys = ON", "");
}

int store_check(const char *path, struct store_check *out, struct err *err)
{
	struct store s = { .path = (char *)path, .lock_fd = -1, .audit_bytes = -1 };
	int rc = open_copy(&s, path, err);

	if (rc == 0) {
		rc = store_content_check(&s, err);
	}
	out->transactions = s.written;
	db_close(&s);
	return rc;
}

int store_export(const char *path, const struct store_export *what, struct buf *out,
		 struct err *err)
{
	struct store s = { .path = (char *)path, .lock_fd = -1, .audit_bytes = -1 };
	int rc = open_copy(&s, path, err);

	if (rc == 0) {
		rc = leave_out(&s, what, err);
	}
	buf_printf(out, "{\"" PORTABLE_KEY_FORM "\": %d, \"" PORTABLE_KEY_READS_FROM
		   "\": %d, \"" PORTABLE_KEY_FORMAT "\": %d", PORTABLE_FORM, PORTABLE_READS_FROM,
		   STORE_VERSION);
	for (const struct portable_table *t = portable_tables; t->name && rc == 0; t++) {
		rc = put_table(&s, t, out, err);
	}
	buf_str(out, "\n}\n");
	db_close(&s);
	return rc;
}
