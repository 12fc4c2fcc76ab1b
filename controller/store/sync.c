/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions that are durable later.
 *
 * A disk takes milliseconds for a sync, and more when others use it; the loop has one for
 * each batch of commands. In WAL mode a transaction without it is in the file whole and in
 * its order all the same: what can be lost is the last ones, and only when the machine goes.
 * So a store may leave them to store_sync, on another thread, and whoever goes on only when
 * that has returned goes on from what is durable. There the log is also
 * merged into the file, on a connection of its own, which SQLite would do within a commit.
 *
 * A sync that fails leaves nothing to the next one: the system takes what it could not write
 * for written, so that the next one may succeed without it. So after any failure all of the
 * log is written again, by the thread that uses the store, before a sync is believed.
 */
#include <stdio.h>

#include "controller/store/private.h"

#define MERGE_PAGES 1000	/* of the log, by store_sync */
#define MERGE_PAGES_MAX 8000	/* at the latest, by whoever commits */

/* After each commit: how long the log is. */
static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct store *s = arg;

	s->log_pages = pages;
	if (pages >= MERGE_PAGES_MAX) {
		sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	}
	return SQLITE_OK;
}

static struct store_log *log_of(sqlite3_file *file)
{
	/* The table is the first of its fields. */
	return (struct store_log *)(void *)file->pMethods;
}

/* What was in the log when a sync failed, if one did. O(size of the log). */
static int write_again(struct store_log *l)
{
	const int failures = l->failures;
	const sqlite3_io_methods *m = l->real;
	sqlite3_int64 size = 0;
	char bytes[4096];
	int rc = failures == l->rewritten ? SQLITE_OK : m->xFileSize(l->file, &size);

	for (sqlite3_int64 at = 0; at < size && rc == SQLITE_OK; at += sizeof(bytes)) {
		const int n = size - at < (int)sizeof(bytes) ? (int)(size - at)
							     : (int)sizeof(bytes);

		rc = m->xRead(l->file, bytes, n, at);
		if (rc == SQLITE_OK) {
			rc = m->xWrite(l->file, bytes, n, at);
		}
	}
	if (rc == SQLITE_OK) {
		l->rewritten = failures;
	}
	return rc;
}

/* Within a commit. */
static int sync_log(sqlite3_file *file, int flags)
{
	struct store_log *l = log_of(file);
	int rc = write_again(l);

	if (rc == SQLITE_OK && (rc = l->real->xSync(file, flags))) {
		l->failures++;
	}
	return rc;
}

/* SQLite's own file of the log stays open as long as its connection. */
int store_defer_syncs(struct store *s, struct err *err)
{
	struct store_log *l = &s->log_file;

	if (s->kind == STORE_SHARED || s->newer || s->defers) {
		return 0;
	}
	if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &l->file)) {
		return db_fail(s, err, "its log");
	}
	l->real = l->file->pMethods;
	l->methods = *l->real;
	l->methods.xSync = sync_log;
	l->file->pMethods = &l->methods;
	s->defers = true;
	s->synced = store_last(s);
	sqlite3_wal_hook(s->db, on_commit, s);
	return db_run(s, err, "PRAGMA synchronous = NORMAL", "");
}

int64_t store_last(const struct store *s)
{
	return s->kind == STORE_REPLICA ? s->position : s->last;
}

int64_t store_safe(const struct store *s)
{
	const int64_t durable = s->defers ? s->synced : store_last(s);

	return s->kind == STORE_REPLICA && s->published < durable ? s->published : durable;
}

bool store_sync_failed(const struct store *s)
{
	return s->sync_failed;
}

void store_on_written(struct store *s, void (*fn)(void *arg), void *arg)
{
	s->on_written = (struct store_hook){ fn, arg };
}

void store_on_safe(struct store *s, void (*fn)(void *arg), void *arg)
{
	s->on_safe = (struct store_hook){ fn, arg };
}

void store_call(const struct store_hook *h)
{
	if (h->fn) {
		h->fn(h->arg);
	}
}

int store_merge(struct store *s, sqlite3 *db, const char *name)
{
	int rc = sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	if (rc && sqlite3_extended_errcode(db) == SQLITE_IOERR_FSYNC) {
		s->log_file.failures++;
	}
	return rc;
}

/* Best effort: it is tried again, and by SQLite itself at the end. */
static void merge_log(struct store *s)
{
	if (!s->merging && sqlite3_open_v2(s->path, &s->merging, SQLITE_OPEN_READWRITE |
					   SQLITE_OPEN_NOMUTEX, NULL)) {
		sqlite3_close(s->merging);
		s->merging = NULL;
	}
	if (s->merging) {
		store_merge(s, s->merging, "main");
	}
}

int store_sync(struct store *s, struct err *err)
{
	struct store_log *l = &s->log_file;
	int rc = SQLITE_IOERR_FSYNC;

	if (!s->defers) {
		return 0;
	}
	/* It touches the descriptor alone, so the loop may write to the file meanwhile. */
	if (l->failures == l->rewritten &&
	    (rc = l->real->xSync(l->file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY))) {
		l->failures++;
	}
	if (rc) {
		db_refused(s, err, "write", rc);
		err_hint(err, "check the disk and its free space");
		return WEFT_EIO;
	}
	if (s->log_pages >= MERGE_PAGES) {
		merge_log(s);
	}
	return 0;
}

void store_sync_ended(struct store *s, int64_t last, int rc, const struct err *err,
		      int64_t took_ns)
{
	s->use.ns += took_ns;
	s->use.failed += rc != 0;
	if (s->defers) {
		write_again(&s->log_file);	/* else the next one fails as well */
	}
	if (rc || s->sync_failed) {
		snprintf(s->trouble, sizeof(s->trouble), "%s", rc ? err->msg : "");
	}
	s->sync_failed = rc != 0;
	s->synced = rc == 0 && last > s->synced ? last : s->synced;
	store_call(&s->on_safe);
}

void store_sync_fini(struct store *s)
{
	sqlite3_close(s->merging);
}
