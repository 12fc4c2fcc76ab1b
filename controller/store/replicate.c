/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that others have too. What each transaction changes is given away, as one change set
 * of SQLite's session extension, once it is kept here; whoever applies the sets in their
 * order has the same rows. What is of this machine only (the audit trail, what was observed)
 * is not in them.
 *
 * The position counts the sets, and is kept in the same transaction as their rows. A process
 * that ends before others have a set finds itself ahead of them, by its position or its digest,
 * and takes what they have instead: no client was told of what they have not.
 */
#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/buf.h"
#include "lib/digest/sha256.h"

/* All that have a row of intent, of the changes on the way there, or of jobs. */
static const char *const replicated[] = {
	"state", "config", "program", "change", "change_job", "change_gain", "confirm",
	"journal_device", "intent_device", "drain",
	"repair", "job", "external_change", "circuit_loss", "timing",
};

/* The names that a copy has, and its place. */
static int read_position(struct store *s, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT position, log, digest, published "
			    "FROM replica", "");

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		s->position = sqlite3_column_int64(st, 0);
		db_text_into(st, 1, s->log, sizeof(s->log));
		s->published = sqlite3_column_int64(st, 3);
		rc = sqlite3_column_bytes(st, 2) == STORE_DIGEST_LEN ? 1 : 0;
	}
	if (rc == 1) {
		memcpy(s->digest, sqlite3_column_blob(st, 2), STORE_DIGEST_LEN);
	}
	db_release(s, st);
	return rc == 1 ? 0 : rc ? rc : db_damaged(s, err, "it has no position");
}

int store_replica_begin(struct store *s, struct err *err)
{
	int rc = read_position(s, err);

	return rc ? rc : store_refresh(s, err);
}

int64_t store_position(const struct store *s, char log[STORE_LOG_MAX])
{
	snprintf(log, STORE_LOG_MAX, "%s", s->log);
	return s->position;
}

const uint8_t *store_digest(const struct store *s)
{
	return s->digest;
}

static int keep_position(struct store *s, int64_t position, const uint8_t *digest, struct err *err)
{
	return db_run(s, err, "UPDATE replica SET position = ?, log = ?, digest = ?, published = ?",
		      "isbi", position, s->log, digest, STORE_DIGEST_LEN,
		      s->follows ? position : s->published);
}

/* ---- sealing ------------------------------------------------------------- */

/*
 * A change set, the digest of the log before it, and the hash of both. SQLite trusts a change
 * set: one that is damaged may keep it busy for ever. The hash is the digest of the log with this
 * set, so that two who have the same digest have the same rows.
 */
static void seal(const struct store *s, const void *data, size_t len, struct buf *out)
{
	uint8_t hash[SHA256_LEN];

	_Static_assert(SHA256_LEN == STORE_DIGEST_LEN, "a digest of the log is such a hash");
	buf_add(out, data, len);
	buf_add(out, s->digest, sizeof(s->digest));
	sha256(out->data, out->len, hash);
	buf_add(out, hash, sizeof(hash));
}

static const uint8_t *digest_of(const struct buf *sealed)
{
	return (const uint8_t *)sealed->data + sealed->len - STORE_DIGEST_LEN;
}

/* What was sealed. */
struct sealed {
	const uint8_t *data, *before, *digest;
	size_t len;		/* of data */
};

/* WEFT_EINVAL: it is not as it was. */
static int unseal(const struct store *s, const void *data, size_t len, struct sealed *out,
		  struct err *err)
{
	uint8_t hash[SHA256_LEN];

	if (len >= 2 * sizeof(hash)) {
		*out = (struct sealed){ .data = data, .len = len - 2 * sizeof(hash) };
		out->before = out->data + out->len;
		out->digest = out->before + sizeof(hash);
		sha256(data, len - sizeof(hash), hash);
		if (memcmp(out->digest, hash, sizeof(hash)) == 0) {
			return 0;
		}
	}
	return err_set(err, WEFT_EINVAL, "store %s: what came from the others is damaged", s->path);
}

/* ---- giving away --------------------------------------------------------- */

void store_publish(struct store *s, store_publish_fn fn, void *arg)
{
	s->publish = fn;
	s->publish_arg = arg;
}

void store_set_published(struct store *s, int64_t position)
{
	s->published = position;
	store_call(&s->on_safe);
}

int64_t store_published(const struct store *s)
{
	return s->published;
}

static sqlite3_session *session_new(struct store *s)
{
	sqlite3_session *out = NULL;

	sqlite3session_create(s->db, "main", &out);
	for (int i = 0; i < COUNT(replicated); i++) {
		sqlite3session_attach(out, replicated[i]);
	}
	return out;
}

/* The change set that was recorded; *data is sqlite3_free()'s. */
static int session_take(struct store *s, sqlite3_session *session, int *len, void **data,
			struct err *err)
{
	int rc = sqlite3session_changeset(session, len, data);

	return rc ? db_refused(s, err, "record", rc) : 0;
}

/* Records what the transaction changes. */
static int record_begin(struct store *s, struct err *err)
{
	if (s->follows) {
		return 0;
	}
	if (!s->publish) {
		return err_set(err, WEFT_ESTALE, "store %s is a copy: another weftd leads",
			       s->path);
	}
	s->session = session_new(s);
	return 0;
}

/* Keeps its place with what was recorded. */
static int record_keep(struct store *s, struct err *err)
{
	void *data = NULL;
	int len = 0, rc;

	buf_reset(&s->entry);
	if (!s->session) {
		return 0;
	}
	rc = session_take(s, s->session, &len, &data, err);
	if (rc == 0 && len > 0) {
		seal(s, data, (size_t)len, &s->entry);
		rc = keep_position(s, s->position + 1, digest_of(&s->entry), err);
	}
	sqlite3_free(data);
	return rc;
}

/* Gives it away, if it was kept. */
static void record_end(struct store *s, bool kept)
{
	if (!s->session) {
		return;
	}
	sqlite3session_delete(s->session);
	s->session = NULL;
	if (kept && s->entry.len > 0) {
		s->position++;
		memcpy(s->digest, digest_of(&s->entry), sizeof(s->digest));
		s->publish(s->publish_arg, &(struct store_entry){
			.position = s->position, .digest = s->digest,
			.changes = s->entry.data, .len = s->entry.len });
	}
}

const struct store_part store_replica_part = {
	.begin = record_begin, .commit = record_keep, .end = record_end,
};

/* ---- taking over --------------------------------------------------------- */

/* A row that is not as the change set expects it: this is no copy of the other. */
static int on_conflict(void *arg, int kind, sqlite3_changeset_iter *iter)
{
	(void)arg, (void)kind, (void)iter;
	return SQLITE_CHANGESET_ABORT;
}

/* Within a transaction, and without checks of references, which were made when the rows
 * were written. */
static int apply_changes(struct store *s, const void *data, size_t len, struct err *err)
{
	int rc = sqlite3changeset_apply(s->db, (int)len, (void *)(uintptr_t)data, NULL,
					on_conflict, NULL);

	if (rc == SQLITE_ABORT || rc == SQLITE_SCHEMA || rc == SQLITE_CORRUPT) {
		return err_set(err, WEFT_ESTALE,
			       "store %s is no copy of the one that the others have", s->path);
	}
	return rc ? db_fail(s, err, "apply") : 0;
}

static int empty_tables(struct store *s, struct err *err)
{
	char sql[64];
	int rc = 0;

	for (int i = 0; rc == 0 && i < COUNT(replicated); i++) {
		snprintf(sql, sizeof(sql), "DELETE FROM %s", replicated[i]);
		rc = db_run(s, err, sql, "");
	}
	return rc;
}

/* One transaction with what came from others; data NULL: nothing but the position. */
static int apply_transaction(struct store *s, int64_t position, const struct sealed *set,
			     bool whole, struct err *err)
{
	const uint8_t *digest = whole ? set->before : set->digest;
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	rc = whole ? empty_tables(s, err) : 0;
	if (rc == 0 && set->data) {
		rc = apply_changes(s, set->data, set->len, err);
	}
	if (rc == 0) {
		rc = keep_position(s, position, digest, err);
	}
	rc = db_end(s, rc, err);
	if (rc == 0) {
		s->position = s->published = position;
		memcpy(s->digest, digest, sizeof(s->digest));
		rc = store_refresh(s, err);
	}
	return rc;
}

static int apply_as(struct store *s, int64_t position, const struct sealed *set, bool whole,
		    struct err *err)
{
	int rc = db_run(s, err, "PRAGMA foreign_keys = OFF", "");

	if (rc) {
		return rc;
	}
	s->follows = true;
	rc = apply_transaction(s, position, set, whole, err);
	s->follows = false;
	if (rc) {
		db_run(s, NULL, "PRAGMA foreign_keys = ON", "");
		return rc;
	}
	return db_run(s, err, "PRAGMA foreign_keys = ON", "");
}

int store_follow(struct store *s, int64_t position, const void *data, size_t len, struct err *err)
{
	struct sealed set;
	int rc;

	if (position != s->position + 1) {
		return err_set(err, WEFT_EINVAL, "store %s: after %lld comes %lld", s->path,
			       (long long)s->position, (long long)position);
	}
	rc = unseal(s, data, len, &set, err);
	if (rc == 0 && memcmp(set.before, s->digest, sizeof(s->digest)) != 0) {
		rc = err_set(err, WEFT_ESTALE,
			     "store %s has other transactions than the others up to %lld", s->path,
			     (long long)s->position);
	}
	return rc ? rc : apply_as(s, position, &set, false, err);
}

int store_join(struct store *s, const char *log, struct err *err)
{
	static const uint8_t none[STORE_DIGEST_LEN];
	const struct sealed nothing = { .digest = none };

	snprintf(s->log, sizeof(s->log), "%s", log);
	return apply_as(s, 0, &nothing, false, err);
}

int store_restore(struct store *s, const char *log, int64_t position, const void *data,
		  size_t len, struct err *err)
{
	struct sealed set;
	int rc = unseal(s, data, len, &set, err);

	if (rc) {
		return rc;
	}
	snprintf(s->log, sizeof(s->log), "%s", log);
	return apply_as(s, position, &set, true, err);
}

int store_is_fresh(struct store *s, bool *fresh, struct err *err)
{
	int64_t is_fresh = 0;
	int rc = db_number(s, err, &is_fresh, "SELECT NOT EXISTS (SELECT 1 FROM change) AND "
			   "NOT EXISTS (SELECT 1 FROM job)", "");

	*fresh = is_fresh != 0;
	return rc;
}

/* ---- the whole of it ----------------------------------------------------- */

/* An empty table of the same kind in the attached database. */
static int clone_table(struct store *s, const char *table, struct err *err)
{
	sqlite3_stmt *st;
	const char *body;
	char *sql;
	int rc = db_prepare(s, err, &st, "SELECT sql FROM main.sqlite_schema "
			    "WHERE type = 'table' AND name = ?", "s", table);

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		body = strchr((const char *)sqlite3_column_text(st, 0), '(');
		sql = sqlite3_mprintf("CREATE TABLE empty.%s %s", table, body);
		rc = db_run(s, err, sql, "");
		sqlite3_free(sql);
	} else if (rc == 0) {
		rc = db_damaged(s, err, table);
	}
	db_release(s, st);
	return rc;
}

/* What makes the tables of today from none. */
static int diff_to_empty(struct store *s, struct buf *out, struct err *err)
{
	sqlite3_session *session = session_new(s);
	void *data = NULL;
	int n = 0, rc = 0;

	for (int i = 0; rc == 0 && i < COUNT(replicated); i++) {
		rc = clone_table(s, replicated[i], err);
		if (rc == 0 && sqlite3session_diff(session, "empty", replicated[i], NULL)) {
			rc = db_fail(s, err, "compare");
		}
	}
	if (rc == 0) {
		rc = session_take(s, session, &n, &data, err);
	}
	if (rc == 0) {
		seal(s, n ? data : "", (size_t)n, out);
	}
	sqlite3_free(data);
	sqlite3session_delete(session);
	return rc;
}

int store_whole(struct store *s, struct buf *out, struct err *err)
{
	int rc = db_run(s, err, "ATTACH ':memory:' AS empty", "");

	if (rc) {
		return rc;
	}
	rc = diff_to_empty(s, out, err);
	db_run(s, NULL, "DETACH empty", "");
	return rc;
}
