/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: their beginning, their only end, and what they leave in memory.
 *
 * This file does not know who takes part in them. The audit trail, the lease of a shared
 * store and the copies of others say what they do at the begin and at the end of each
 * (struct store_part), and store_open puts them in their order. db_end also remembers a
 * disk that refuses (store_trouble) until it takes a transaction again.
 */
#include "controller/store/private.h"
#include "lib/base/clock.h"

static int begin(struct store *s, bool deferred, struct err *err)
{
	int rc = s->newer ? store_newer_error(s, err) : db_run(s, err, "BEGIN IMMEDIATE", "");

	s->deferred = deferred;
	if (rc) {
		return rc;
	}
	rc = store_content_begin(s, err);
	for (int i = 0; i < STORE_PARTS && s->parts[i] && rc == 0; i++) {
		rc = s->parts[i]->begin ? s->parts[i]->begin(s, err) : 0;
	}
	return rc ? db_end(s, rc, err) : 0;
}

int db_begin(struct store *s, struct err *err)
{
	return begin(s, false, err);
}

int db_begin_deferred(struct store *s, struct err *err)
{
	return begin(s, s->defers, err);
}

static int commit(struct store *s, struct err *err)
{
	int64_t begun_ns = clk_now_ns();
	int rc = store_content_commit(s, err);

	if (rc == 0) {
		rc = db_run(s, err, "COMMIT", "");
	}

	s->use.commits++;
	s->use.failed += rc != 0;
	s->use.ns += clk_now_ns() - begun_ns;
	return rc;
}

/* What is on the disk only after a sync is not on it yet. */
static void note_written(struct store *s)
{
	if (!s->sync_failed) {
		s->trouble[0] = '\0';
	}
	if (!s->deferred) {
		s->last++;
	}
	if (s->defers && !s->deferred) {
		store_call(&s->on_written);
	}
}

int db_end(struct store *s, int rc, struct err *err)
{
	for (int i = 0; i < STORE_PARTS && s->parts[i] && rc == 0; i++) {
		rc = s->parts[i]->commit ? s->parts[i]->commit(s, err) : 0;
	}
	if (rc == 0) {
		rc = commit(s, err);
	}
	for (int i = 0; i < STORE_PARTS && s->parts[i]; i++) {
		if (s->parts[i]->end) {
			s->parts[i]->end(s, rc == 0);
		}
	}
	if (rc == 0) {
		note_written(s);
		return 0;
	}
	/* Some failures have rolled back already. */
	if (!sqlite3_get_autocommit(s->db)) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
	return rc;
}

int store_refresh(struct store *s, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT uuid, generation, fence FROM state", "");

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		db_text_into(st, 0, s->uuid, sizeof(s->uuid));
		s->generation = sqlite3_column_int64(st, 1);
		s->fence = (uint64_t)sqlite3_column_int64(st, 2);
	}
	db_release(s, st);
	if (rc == 0) {
		return db_damaged(s, err, "it has no state");
	}
	return rc < 0 ? rc : 0;
}
