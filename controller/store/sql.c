/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thin layer over SQLite: errors and statements.
 *
 * db_prepare and its kin take parameters by a string of types, so that a call
 * stands in one place with its SQL; statements are kept prepared, by the address of
 * their text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

/* ---- memory ---- */

static sqlite3_mem_methods given;	/* SQLite's own */

static void *must(void *p, int size)
{
	if (!p) {
		alloc_end((size_t)size);
	}
	return p;
}

static void *must_malloc(int size)
{
	return must(given.xMalloc(size), size);
}

static void *must_realloc(void *p, int size)
{
	return must(given.xRealloc(p, size), size);
}

void store_set_allocators(void)
{
	sqlite3_mem_methods mine;

	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &given);
	mine = given;
	mine.xMalloc = must_malloc;
	mine.xRealloc = must_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
}

/* By what an operator can do about it, which hint_of says. */
static enum weft_err code_of(int sqlite_code)
{
	switch (sqlite_code & 0xff) {
	case SQLITE_NOMEM:	/* more in one piece than SQLite takes */
		return WEFT_ELIMIT;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return WEFT_EDENIED;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
		return WEFT_EINVAL;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return WEFT_ESTALE;
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return WEFT_EIO;
	default:
		return WEFT_EINTERNAL;
	}
}

static const char *hint_of(enum weft_err code)
{
	switch (code) {
	case WEFT_EINVAL:
		return "restore it from a backup, or move it away to begin "
		       "with an empty one";
	case WEFT_EDENIED:
		return "the file and its folder must be writable";
	case WEFT_EIO:
		return "check the disk and its free space";
	default:
		return "";
	}
}

int db_refused(struct store *s, struct err *err, const char *what, int sqlite_code)
{
	return err_set(err, code_of(sqlite_code), "store %s: %s: %s", s->path, what,
		       sqlite3_errstr(sqlite_code));
}

int db_fail(struct store *s, struct err *err, const char *what)
{
	enum weft_err code = code_of(sqlite3_extended_errcode(s->db));

	err_set(err, code, "store %s: %s: %s", s->path, what, sqlite3_errmsg(s->db));
	err_hint(err, "%s", hint_of(code));
	if (code == WEFT_EIO || code == WEFT_EDENIED) {
		snprintf(s->trouble, sizeof(s->trouble), "%s: %s", what, sqlite3_errmsg(s->db));
	}
	return code;
}

int db_damaged(struct store *s, struct err *err, const char *what)
{
	err_set(err, WEFT_EINVAL, "store %s is damaged: %s", s->path, what);
	err_hint(err, "%s", hint_of(WEFT_EINVAL));
	return WEFT_EINVAL;
}

int store_newer_error(const struct store *s, struct err *err)
{
	err_set(err, WEFT_EUNAVAIL, "read-only: the store was written by a newer weftd (format "
		"%d, this one knows %d)", s->newer, STORE_VERSION);
	err_hint(err, STORE_NEWER_HINT);
	return WEFT_EUNAVAIL;
}

/* Types as of db_prepare. Nothing is copied: texts and blobs are the caller's
 * until the statement ends. */
static int bind_all(sqlite3_stmt *st, const char *types, va_list ap)
{
	int rc = SQLITE_OK;

	for (int i = 1; *types && rc == SQLITE_OK; i++, types++) {
		if (*types == 'i') {
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
		} else if (*types == 's') {
			rc = sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
		} else {
			const void *data = va_arg(ap, const void *);
			int len = va_arg(ap, int);

			rc = sqlite3_bind_blob(st, i, data, len, SQLITE_STATIC);
		}
	}
	return rc;
}

/* An address may have had another text before. */
static bool is_kept(const struct store_statement *k, const char *sql)
{
	return k->st && k->sql == sql && !k->in_use && strcmp(sqlite3_sql(k->st), sql) == 0;
}

/* A place that is not in use, for a new statement; NULL: none. */
static struct store_statement *free_place(struct store *s)
{
	for (int i = 0; i < STORE_STATEMENTS; i++) {
		struct store_statement *k =
			&s->statements[s->next_statement++ % STORE_STATEMENTS];

		if (!k->in_use) {
			sqlite3_finalize(k->st);
			k->st = NULL;
			return k;
		}
	}
	return NULL;
}

/* Not 0: SQLite's error. */
static int find_statement(struct store *s, const char *sql, sqlite3_stmt **st)
{
	struct store_statement *k;
	int rc;

	for (int i = 0; i < STORE_STATEMENTS; i++) {
		k = &s->statements[i];
		if (is_kept(k, sql)) {
			k->in_use = true;
			*st = k->st;
			return 0;
		}
	}
	rc = sqlite3_prepare_v2(s->db, sql, -1, st, NULL);
	/* A pragma may act when it is prepared. */
	k = rc || sql[0] == 'P' ? NULL : free_place(s);
	if (k) {
		*k = (struct store_statement){ .sql = sql, .st = *st, .in_use = true };
	}
	return rc;
}

void db_release(struct store *s, sqlite3_stmt *st)
{
	for (int i = 0; st && i < STORE_STATEMENTS; i++) {
		if (s->statements[i].st == st) {
			sqlite3_reset(st);
			sqlite3_clear_bindings(st);
			s->statements[i].in_use = false;
			return;
		}
	}
	sqlite3_finalize(st);
}

void db_close(struct store *s)
{
	for (int i = 0; i < STORE_STATEMENTS; i++) {
		sqlite3_finalize(s->statements[i].st);
		s->statements[i] = (struct store_statement){ 0 };
	}
	sqlite3_close(s->db);
	s->db = NULL;
}

static int prepare(struct store *s, struct err *err, sqlite3_stmt **st,
		   const char *sql, const char *types, va_list ap)
{
	int rc = 0;

	*st = NULL;
	if (find_statement(s, sql, st) || bind_all(*st, types, ap)) {
		rc = db_fail(s, err, "prepare");
		db_release(s, *st);
		*st = NULL;
	}
	return rc;
}

int db_prepare(struct store *s, struct err *err, sqlite3_stmt **st,
	       const char *sql, const char *types, ...)
{
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = prepare(s, err, st, sql, types, ap);
	va_end(ap);
	return rc;
}

int db_bind(struct store *s, struct err *err, sqlite3_stmt *st, const char *types, ...)
{
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = bind_all(st, types, ap);
	va_end(ap);
	return rc ? db_fail(s, err, "bind") : 0;
}

int db_step(struct store *s, struct err *err, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW) {
		return 1;
	}
	if (rc != SQLITE_DONE) {
		int code = db_fail(s, err, sqlite3_column_count(st) ? "read" : "write");

		sqlite3_reset(st);
		return code;
	}
	sqlite3_reset(st);
	return 0;
}

int db_finish(struct store *s, struct err *err, sqlite3_stmt *st)
{
	int rc;

	do {
		rc = db_step(s, err, st);
	} while (rc == 1);
	return rc;
}

int db_run(struct store *s, struct err *err, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = prepare(s, err, &st, sql, types, ap);
	va_end(ap);
	if (rc == 0) {
		rc = db_finish(s, err, st);
		db_release(s, st);
	}
	return rc;
}

int db_number(struct store *s, struct err *err, int64_t *out, const char *sql, const char *types,
	      ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = prepare(s, err, &st, sql, types, ap);
	va_end(ap);
	if (rc || (rc = db_step(s, err, st)) < 0) {
		db_release(s, st);
		return rc;
	}
	*out = rc ? sqlite3_column_int64(st, 0) : 0;
	db_release(s, st);
	return 0;
}

/* The rows that are left of st. */
static int read_rows(struct store *s, struct err *err, const struct db_row *kind, sqlite3_stmt *st,
		     struct buf *rows)
{
	int rc;

	while ((rc = db_step(s, err, st)) == 1) {
		char *row = buf_extend(rows, kind->size);

		memset(row, 0, kind->size);
		rc = kind->read(s, st, row, err);
		if (rc) {
			return rc;
		}
	}
	return rc;
}

int db_read_rows(struct store *s, struct err *err, const struct db_row *kind,
		 struct db_rows *out, const char *sql, const char *types, ...)
{
	struct buf rows = { 0 };
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = prepare(s, err, &st, sql, types, ap);
	va_end(ap);
	if (rc == 0) {
		rc = read_rows(s, err, kind, st, &rows);
		db_release(s, st);
	}
	for (size_t at = 0; rc && kind->fini && at < rows.len; at += kind->size) {
		kind->fini(rows.data + at);
	}
	if (rc) {
		buf_fini(&rows);
	}
	*out = (struct db_rows){ rows.data, (int)(rows.len / kind->size) };
	return rc;
}

char *db_text(sqlite3_stmt *st, int col)
{
	const unsigned char *t = sqlite3_column_text(st, col);

	return x_dup(t ? (const char *)t : "");
}

void db_text_into(sqlite3_stmt *st, int col, char *buf, int size)
{
	const unsigned char *t = sqlite3_column_text(st, col);

	snprintf(buf, size, "%s", t ? (const char *)t : "");
}

int store_name_index(const char *const *names, int n, const unsigned char *t)
{
	for (int i = 0; t && i < n; i++) {
		if (strcmp(names[i], (const char *)t) == 0) {
			return i;
		}
	}
	return -1;
}
