/*
 * A thin layer over SQLite: errors, statements, transactions.
 *
 * db_prepare and its kin take parameters by a string of types, so that a call
 * stands in one place with its SQL; statements are kept prepared, by the address of
 * their text. db_end is the only end of a transaction: it
 * writes the waiting audit lines with it, gives what has changed to those who have
 * the store too, and remembers a disk that refuses (store_trouble) until it takes a
 * transaction again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/clock.h"

/* By what an operator can do about it, which hint_of says. */
static enum weft_err code_of(int sqlite_code)
{
	switch (sqlite_code & 0xff) {
	case SQLITE_NOMEM:
		return WEFT_ENOMEM;
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

int db_fail(struct store *s, struct err *err, const char *what)
{
	int raw = s->db ? sqlite3_extended_errcode(s->db) : SQLITE_NOMEM;
	enum weft_err code = code_of(raw);

	err_set(err, code, "store %s: %s: %s", s->path, what,
		s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(raw));
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

int db_begin_as_is(struct store *s, struct err *err)
{
	int rc = s->newer ? store_newer_error(s, err)
			  : db_run(s, err, "BEGIN IMMEDIATE", "");

	if (rc) {
		return rc;
	}
	rc = s->kind == STORE_SHARED ? store_check_term(s, err) :
	     s->kind == STORE_REPLICA ? store_record_begin(s, err) : 0;
	if (rc) {
		store_record_end(s);
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
	return rc;
}

int db_end(struct store *s, int rc, struct err *err)
{
	if (rc == 0) {
		rc = store_audit_write(s, err);
	}
	if (rc == 0 && s->session) {
		rc = store_record_publish(s, err);
	}
	store_record_end(s);
	if (rc == 0) {
		int64_t begun_ns = clk_now_ns();

		rc = db_run(s, err, "COMMIT", "");
		s->use.commits++;
		s->use.failed += rc != 0;
		s->use.ns += clk_now_ns() - begun_ns;
	}
	if (rc == 0) {
		store_audit_drop(s);
		s->sync_failed = s->sync_failed && s->deferred;
		if (!s->sync_failed) {
			s->trouble[0] = '\0';
		}
		s->behind = false;
		return 0;
	}
	/* Some failures have rolled back already. */
	if (!sqlite3_get_autocommit(s->db)) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
	return rc;
}

char *db_text(sqlite3_stmt *st, int col)
{
	const unsigned char *t = sqlite3_column_text(st, col);

	return strdup(t ? (const char *)t : "");
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
