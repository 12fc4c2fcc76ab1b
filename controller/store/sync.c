/*
 * Transactions that are durable later.
 *
 * A disk takes milliseconds for a sync, and more when others use it; the loop has one for
 * each batch of commands. In WAL mode a transaction without it is in the file whole and in
 * its order all the same: what can be lost is the last ones, and only when the machine goes.
 * So a store may leave the sync of some to store_sync, on another thread, and whoever
 * goes on only when that has returned goes on from what is durable. There the log is also
 * merged into the file, on a connection of its own, which SQLite would do within a commit.
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

/* SQLite's own file of the log stays open as long as its connection. */
int store_defer_syncs(struct store *s, struct err *err)
{
	if (s->kind == STORE_SHARED || s->newer || s->defers) {
		return 0;
	}
	if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &s->log_file)) {
		return db_fail(s, err, "its log");
	}
	s->defers = true;
	sqlite3_wal_hook(s->db, on_commit, s);
	return 0;
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
		sqlite3_wal_checkpoint_v2(s->merging, "main", SQLITE_CHECKPOINT_PASSIVE, NULL,
					  NULL);
	}
}

int store_sync(struct store *s, struct err *err)
{
	int rc;

	if (!s->defers) {
		return 0;
	}
	/* It touches the descriptor alone, so the loop may write to the file meanwhile. */
	rc = s->log_file->pMethods->xSync(s->log_file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
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

void store_sync_ended(struct store *s, int rc, const struct err *err, int64_t took_ns)
{
	s->use.ns += took_ns;
	s->use.failed += rc != 0;
	if (rc || s->sync_failed) {
		snprintf(s->trouble, sizeof(s->trouble), "%s", rc ? err->msg : "");
	}
	s->sync_failed = rc != 0;
}

void store_sync_fini(struct store *s)
{
	sqlite3_close(s->merging);
}
