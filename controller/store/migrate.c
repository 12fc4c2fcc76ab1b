/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bringing a store of an older format up to date.
 *
 * What SQL can do stands in tables.c. Beside it there are texts to read. Up to
 * format 12 the jobs that orchestrators had requested were YAML behind the operator's
 * text, after a line that marked them. They become rows of change_job, and the text is
 * what the operator wrote. Up to format 18 passwords might stand in it: secrets.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "controller/store/portable.h"
#include "controller/store/private.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "lib/conf/conf.h"

#define WITHOUT_PASSWORDS 19	/* in its texts: this format and later ones */

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

/* ---- format 12: jobs as text ---------------------------------------------- */

#define MARK "# Jobs requested of weftd, which writes this part.\n"

enum {
	OLD_NAME,
	OLD_NODES,
	OLD_COLLECTIVE,
	OLD_TOPOLOGY,
	OLD_ALGORITHM,
	OLD_RING,
	OLD_SIZE,
	OLD_CHANNELS,
	OLD_KEYS
};

/* As such a weft wrote them. */
static const struct conf_key old_keys[] = {
	[OLD_NAME] = { "name", CONF_TEXT, .required = true },
	[OLD_NODES] = { .name = "nodes", .type = CONF_NAMES },
	[OLD_COLLECTIVE] = { "collective", CONF_TEXT, .required = true },
	[OLD_TOPOLOGY] = { .name = "topology", .type = CONF_TEXT },
	[OLD_ALGORITHM] = { .name = "algorithm", .type = CONF_TEXT },
	[OLD_RING] = { .name = "ring", .type = CONF_TEXT },
	[OLD_SIZE] = { "size", CONF_QUANTITY, .required = true, .unit = UNIT_BYTES, .min = 1,
		       .max = INT64_MAX },
	[OLD_CHANNELS] = { "channels", CONF_INT, .max = INT32_MAX },
};
static const struct conf_section old_job = { "job", old_keys, OLD_KEYS };
static const struct conf_key old_root_keys[] = {
	{ "requests", CONF_ENTRIES, .section = &old_job },
};
static const struct conf_section old_root = { "requests", old_root_keys, 1 };

/* A job as such a weft wrote it; the texts live until the reader ends and are
 * copied. */
static int read_job(struct conf_reader *r, const struct conf_node *entry, struct model_config *out)
{
	struct conf_value v[OLD_KEYS];
	struct model_request q = { 0 };
	struct buf nodes = { 0 };

	if (!conf_read_section(r, &old_job, "job", entry, v)) {
		return WEFT_EINVAL;
	}
	for (const struct conf_node *n = v[OLD_NODES].ok ? v[OLD_NODES].node->first : NULL; n;
	     n = n->next) {
		buf_printf(&nodes, "%s%s", nodes.len ? " " : "", n->text);
	}
	q.name = (char *)v[OLD_NAME].text;
	q.nodes = (char *)buf_cstr(&nodes);
	q.collective = (char *)v[OLD_COLLECTIVE].text;
	q.topology = (char *)v[OLD_TOPOLOGY].text;
	q.algorithm = (char *)v[OLD_ALGORITHM].text;
	q.ring = (char *)v[OLD_RING].text;
	q.size_bytes = v[OLD_SIZE].num;
	q.channels = (int)v[OLD_CHANNELS].num;
	model_config_add(out, &q);
	buf_fini(&nodes);
	return 0;
}

/* The jobs in the text behind the mark, appended to *out. */
static int read_jobs(const char *text, size_t len, struct model_config *out, struct err *err)
{
	struct err_list errs = { .max = 1 };
	struct conf_arena keep = { 0 };
	struct conf_value list;
	struct conf_reader r;
	const struct conf_node *root;
	int rc = 0;

	conf_reader_init(&r, "store", "job", &keep, &errs);
	root = conf_read_yaml(&r, text, len);
	if (root && conf_read_section(&r, &old_root, "requests", root, &list) && list.node) {
		for (const struct conf_node *e = list.node->first; e && rc == 0; e = e->next) {
			rc = read_job(&r, e, out);
		}
	}
	if (r.n_errors > 0) {
		rc = err_set(err, errs.v[0].code, "%s", errs.v[0].msg);
	}
	conf_reader_fini(&r);
	err_list_fini(&errs);
	return rc;
}

/* Bytes of a text before its jobs. */
static size_t operator_len(const char *text, size_t len)
{
	const char *at = len ? memmem(text, len, MARK, strlen(MARK)) : NULL;

	while (at && at > text && at[-1] != '\n') {
		at = memmem(at + 1, len - (size_t)(at + 1 - text), MARK, strlen(MARK));
	}
	return at ? (size_t)(at - text) : len;
}

/* Puts the jobs of a configuration where its changes have them. */
static int put_jobs(struct store *s, const char *hash, const struct model_config *jobs,
		    struct err *err)
{
	VEC(int64_t) changes = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(
		s, err, &st,
		"SELECT id FROM change WHERE config = ? AND (id IN (SELECT applied FROM state) OR "
		"(verdict IN ('running', 'interrupted', 'stuck') AND superseded_by IS NULL))",
		"s", hash);

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		vec_push(&changes, sqlite3_column_int64(st, 0));
	}
	db_release(s, st);
	for (size_t i = 0; i < changes.n && rc == 0; i++) {
		rc = store_requests_put(s, changes.v[i], jobs, err);
	}
	vec_fini(&changes);
	return rc;
}

int store_replace_config(struct store *s, const char *hash, const char *text, size_t len,
			 struct err *err)
{
	const struct model_config config = { .text = (char *)text, .len = len };
	char new_hash[65];
	int rc;

	model_config_hash(&config, new_hash);
	if ((rc = db_run(s, err, "INSERT OR IGNORE INTO config VALUES (?, ?)", "sb", new_hash,
			 text, (int)len)) ||
	    (rc = db_run(s, err, "UPDATE change SET config = ? WHERE config = ?", "ss", new_hash,
			 hash))) {
		return rc;
	}
	return db_run(s, err, "DELETE FROM config WHERE hash = ?", "s", hash);
}

/* Splits a text with jobs at its mark. */
static int split_config(struct store *s, const char *hash, const struct model_config *whole,
			struct err *err)
{
	size_t own = operator_len(whole->text, whole->len);
	struct model_config config;
	int rc;

	if (own == whole->len) {
		return 0;
	}
	model_config_init(&config, "", whole->text, own);
	if ((rc = read_jobs(whole->text + own, whole->len - own, &config, err)) ||
	    (rc = put_jobs(s, hash, &config, err)) ||
	    (rc = store_replace_config(s, hash, config.text, own, err))) {
		err_wrap(err, "store %s: the jobs of a configuration", s->path);
	}
	model_config_fini(&config);
	return rc;
}

static int with_config(struct store *s, const char *hash, store_config_fn fn, struct err *err)
{
	struct model_config config = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT text FROM config WHERE hash = ?", "s", hash);

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		model_config_init(&config, "", sqlite3_column_blob(st, 0),
				  (size_t)sqlite3_column_bytes(st, 0));
		rc = 0;
	}
	db_release(s, st);
	if (rc == 0) {
		rc = fn(s, hash, &config, err);
	}
	model_config_fini(&config);
	return rc;
}

/* The list is read first, because fn changes it. */
int store_each_config(struct store *s, store_config_fn fn, struct err *err)
{
	VEC(char *) hashes = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT hash FROM config ORDER BY hash", "");

	if (rc) {
		return rc;
	}
	while ((rc = db_step(s, err, st)) == 1) {
		vec_push(&hashes, db_text(st, 0));
	}
	db_release(s, st);
	for (size_t i = 0; i < hashes.n && rc == 0; i++) {
		rc = with_config(s, hashes.v[i], fn, err);
	}
	for (size_t i = 0; i < hashes.n; i++) {
		free(hashes.v[i]);
	}
	vec_fini(&hashes);
	return rc;
}

/* ---- the file ------------------------------------------------------------- */

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

/* From this version on, all tables and what SQL cannot do. */
static int migrate_from(struct store *s, int64_t version, struct err *err)
{
	char sql[64];
	int rc = 0;

	for (int64_t v = version; v < STORE_VERSION && rc == 0; v++) {
		if (sqlite3_exec(s->db, store_migrations[v], NULL, NULL, NULL)) {
			rc = db_fail(s, err, "bring the format up to date");
		}
	}
	if (rc == 0 && version > 0 && version < 13) {
		rc = store_each_config(s, split_config, err);
	}
	if (rc == 0 && version > 0 && version < WITHOUT_PASSWORDS) {
		rc = store_move_passwords(s, err);
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

int store_migrate(struct store *s, struct err *err)
{
	int64_t version;
	bool tells;
	int rc = check_identity(s, &version, err);

	if (rc || version == STORE_VERSION) {
		return rc;
	}
	if (version > STORE_VERSION) {
		return open_newer(s, version, err);
	}
	tells = version > 0 && version < WITHOUT_PASSWORDS;
	if ((tells && (rc = store_forget_freed(s, err))) ||
	    (rc = db_run(s, err, "BEGIN IMMEDIATE", ""))) {
		return rc;
	}
	/* Another one may have done it meanwhile. */
	rc = check_identity(s, &version, err);
	if (rc == 0 && version < STORE_VERSION) {
		rc = migrate_from(s, version, err);
	}
	rc = db_end(s, rc, err);
	return rc || !tells ? rc : db_run(s, err, "PRAGMA wal_checkpoint(TRUNCATE)", "");
}
