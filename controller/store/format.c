/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a file: a new store, one of an older format brought up to date, one of a newer
 * read as far as it is known.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "controller/store/portable.h"
#include "controller/store/private.h"
#include "lib/base/buf.h"

/* Refuses what is neither a store nor an empty file. */
static int check_identity(struct store *s, int64_t *version, struct err *err)
{
	int64_t app = 0, tables = 0;
	int rc = db_number(s, err, &app, "PRAGMA application_id", "");

	if (rc == 0) {
		rc = db_number(s, err, version, "PRAGMA user_version", "");
	}
	if (rc == 0) {
		rc = db_number(s, err, &tables, "SELECT count(*) FROM sqlite_schema", "");
	}
	if (rc) {
		return rc;
	}
	if (app != STORE_APPLICATION_ID && (app || *version || tables)) {
		return err_set(err, WEFT_EINVAL, "%s is a database, but not a store of weft's",
			       s->path);
	}
	return 0;
}

static bool can_read(struct store *s, const char *sql)
{
	sqlite3_stmt *st = NULL;
	bool can = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK;

	sqlite3_finalize(st);
	return can;
}

/* A newer format may be read where every table and column of today is there: none of them
 * is ever given another meaning under its name (tables.c). WEFT_EUNSUPPORTED: it may not. */
static int open_newer(struct store *s, int64_t version, struct err *err)
{
	bool readable = s->may_be_newer &&
			can_read(s, "SELECT d.steps, d.states, d.notes, i.circuits, o.circuits "
				 "FROM journal_device AS d, intent_device AS i, observed_map AS o");

	for (const struct portable_table *t = portable_tables; t->name && readable; t++) {
		struct buf sql = { 0 };

		for (int i = 0; t->columns[i].name; i++) {
			buf_printf(&sql, "%s \"%s\".%s", i ? "," : "SELECT", t->table,
				   t->columns[i].name);
		}
		buf_printf(&sql, " FROM \"%s\"", t->table);
		readable = can_read(s, buf_cstr(&sql));
		buf_fini(&sql);
	}
	if (!readable) {
		err_set(err, WEFT_EUNSUPPORTED,
			"store %s has format %lld, this weft knows up to %d", s->path,
			(long long)version, STORE_VERSION);
		err_hint(err, "a newer weft wrote it; " STORE_NEWER_HINT);
		return WEFT_EUNSUPPORTED;
	}
	s->newer = (int)version;
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return db_run(s, err, "PRAGMA query_only = ON", "");
}

static int new_uuid(char out[37], struct err *err)
{
	unsigned char r[16];

	if (getrandom(r, sizeof(r), 0) != sizeof(r)) {
		return err_errno(err, WEFT_EIO, errno, "random numbers");
	}
	r[6] = (r[6] & 0x0f) | 0x40;	/* RFC 9562, version 4 */
	r[8] = (r[8] & 0x3f) | 0x80;
	for (int i = 0, at = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10) {
			out[at++] = '-';
		}
		snprintf(out + at, 3, "%02x", r[i]);
		at += 2;
	}
	return 0;
}

/* A new store: generation 0, nothing applied, and an identity of its own. */
static int create_state(struct store *s, struct err *err)
{
	char uuid[37];
	int rc = new_uuid(uuid, err);

	if (rc) {
		return rc;
	}
	return db_run(s, err, "INSERT INTO state VALUES (1, ?, 1, 0, NULL)", "s", uuid);
}

/* From this format on, each step up to that of today. */
static int bring_up(struct store *s, int64_t version, struct err *err)
{
	char sql[64];
	int rc = 0;

	for (int64_t v = version ? version + 1 : STORE_OLDEST; v <= STORE_VERSION && !rc; v++) {
		if (sqlite3_exec(s->db, store_formats[v - STORE_OLDEST], NULL, NULL, NULL)) {
			rc = db_fail(s, err, "bring the format up to date");
		}
	}
	if (rc == 0 && version == 0) {
		rc = create_state(s, err);
	}
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", STORE_VERSION);
	if (rc == 0) {
		rc = db_run(s, err, sql, "");
	}
	return rc ? rc : store_content_count(s, err);
}

static int refuse_old(struct store *s, int64_t version, struct err *err)
{
	err_set(err, WEFT_EUNSUPPORTED, "store %s has format %lld, this weft reads %d and later "
		"ones", s->path, (long long)version, STORE_OLDEST);
	err_hint(err, "\"weft store export\" by the weft that wrote it, then \"import\" here");
	return WEFT_EUNSUPPORTED;
}

int store_bring_up(struct store *s, struct err *err)
{
	int64_t version;
	int rc = check_identity(s, &version, err);

	if (rc || version == STORE_VERSION) {
		return rc;
	}
	if (version > STORE_VERSION) {
		return open_newer(s, version, err);
	}
	if (version && version < STORE_OLDEST) {
		return refuse_old(s, version, err);
	}
	if ((rc = db_run(s, err, "BEGIN IMMEDIATE", ""))) {
		return rc;
	}
	/* Another one may have done it meanwhile. */
	rc = check_identity(s, &version, err);
	if (rc == 0 && version < STORE_VERSION) {
		rc = bring_up(s, version, err);
	}
	return db_end(s, rc, err);
}
