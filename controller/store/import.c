/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store from text.
 *
 * The text may come from anywhere. It becomes rows of a new file beside the store, where
 * the tables' own rules hold, and the new store is read as a whole before it takes its
 * place by one rename. A text of a newer weft may have tables and columns that are not
 * known here: they are left out and named; of one that is not newer they are mistakes.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/store/portable.h"
#include "controller/store/private.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/conf/conf.h"

#define KEPT_MAX 1000	/* stores that were replaced, beside one */
#define COUNT_MAX (INT64_C(1) << 62)

struct store_text {
	struct store *s;	/* the new one */
	const char *name;	/* of the text */
	json_t *root;
	bool newer;		/* the text is: what is not known is left out */
	struct store_import *out;
};

static int refuse(const struct store_text *r, struct err *err, const char *where, const char *what)
{
	return err_set(err, WEFT_EINVAL, "%s: %s: %s", r->name, where, what);
}

/* A name that is not known: left out, or a mistake. */
static int unknown(struct store_text *r, const char *where, const char *name, struct err *err)
{
	char full[192];
	char *list = r->out->left_out;
	size_t len = strlen(list);

	snprintf(full, sizeof(full), "%.60s%s%.100s", where, where[0] ? "." : "", name);
	if (!r->newer) {
		return err_set(err, WEFT_EINVAL, "%s: unknown field %s", r->name, full);
	}
	if (!strstr(list, full)) {
		snprintf(list + len, sizeof(r->out->left_out) - len, "%s%s", len ? ", " : "", full);
	}
	return 0;
}

/* ---- values -------------------------------------------------------------- */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The bytes of {"hex": ".."}. */
static bool read_hex(const json_t *v, struct buf *out)
{
	const char *text = json_string_value(json_object_get(v, "hex"));
	size_t len = text ? strlen(text) : 0;

	if (!text || json_object_size(v) != 1 || len % 2) {
		return false;
	}
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0) {
			return false;
		}
		buf_char(out, (char)(high << 4 | low));
	}
	return true;
}

/* NULL when the value was bound, else what is wrong with it. */
static const char *bind_value(sqlite3_stmt *st, int at, enum portable_type type, const json_t *v)
{
	bool is_text = type == PORTABLE_TEXT || type == PORTABLE_BYTES;
	struct buf bytes = { 0 };
	const char *wrong = NULL;
	int64_t n = json_integer_value(v);
	int rc = SQLITE_OK;

	if (json_is_null(v)) {
		rc = sqlite3_bind_null(st, at);
	} else if (!is_text && !json_is_integer(v)) {
		wrong = "is not a whole number";
	} else if (!is_text && (type == PORTABLE_COUNT ? n < 0 || n > COUNT_MAX
						       : n < INT32_MIN || n > INT32_MAX)) {
		wrong = "is out of range";
	} else if (!is_text) {
		rc = sqlite3_bind_int64(st, at, n);
	} else if (json_is_string(v)) {
		buf_add(&bytes, json_string_value(v), json_string_length(v));
	} else if (!read_hex(v, &bytes)) {
		wrong = "is neither a string nor {\"hex\": \"..\"}";
	}
	if (!wrong && is_text && !json_is_null(v)) {
		rc = type == PORTABLE_TEXT
			     ? sqlite3_bind_text(st, at, buf_cstr(&bytes), (int)bytes.len,
						 SQLITE_TRANSIENT)
			     : sqlite3_bind_blob(st, at, buf_cstr(&bytes), (int)bytes.len,
						 SQLITE_TRANSIENT);
	}
	wrong = wrong ? wrong : rc ? "is too large" : NULL;
	buf_fini(&bytes);
	return wrong;
}

/* ---- rows ---------------------------------------------------------------- */

static int check_fields(struct store_text *r, const struct portable_table *t, json_t *row,
			struct err *err)
{
	const char *key;
	json_t *v;
	int rc = 0;

	json_object_foreach(row, key, v) {
		int i = 0;

		while (t->columns[i].name && strcmp(t->columns[i].name, key) != 0) {
			i++;
		}
		if (!t->columns[i].name && (rc = unknown(r, t->name, key, err))) {
			break;
		}
	}
	return rc;
}

/* A column that the text does not have takes the default of its table. */
static int put_row(struct store_text *r, const struct portable_table *t, size_t index, json_t *row,
		   struct err *err)
{
	char where[128];
	struct buf sql = { 0 }, marks = { 0 };
	sqlite3_stmt *st = NULL;
	const char *wrong = json_is_object(row) ? NULL : "is not an object";
	int n = 0, rc = wrong ? 0 : check_fields(r, t, row, err);

	snprintf(where, sizeof(where), "%s[%zu]", t->name, index);
	buf_printf(&sql, "INSERT INTO \"%s\" (", t->table);
	for (int i = 0; t->columns[i].name && !wrong; i++) {
		if (json_object_get(row, t->columns[i].name)) {
			buf_printf(&sql, "%s%s", n ? "," : "", t->columns[i].name);
			buf_str(&marks, n++ ? ",?" : "?");
		}
	}
	buf_printf(&sql, ") VALUES (%s)", buf_cstr(&marks));
	wrong = wrong ? wrong : n ? NULL : "has no fields";
	if (rc == 0 && !wrong) {
		rc = db_prepare(r->s, err, &st, buf_cstr(&sql), "");
	}
	for (int i = 0, at = 1; t->columns[i].name && rc == 0 && !wrong; i++) {
		const json_t *v = json_object_get(row, t->columns[i].name);

		if (v && (wrong = bind_value(st, at++, t->columns[i].type, v))) {
			snprintf(where, sizeof(where), "%s[%zu].%s", t->name, index,
				 t->columns[i].name);
		}
	}
	if (rc == 0 && !wrong && sqlite3_step(st) != SQLITE_DONE) {
		wrong = sqlite3_errmsg(r->s->db);
	}
	if (rc == 0 && wrong) {
		rc = refuse(r, err, where, wrong);
	}
	db_release(r->s, st);
	buf_fini(&sql);
	buf_fini(&marks);
	return rc;
}

static int put_table(struct store_text *r, const struct portable_table *t, struct err *err)
{
	json_t *rows = json_object_get(r->root, t->name), *row;
	char sql[96];
	size_t i;
	int rc;

	if (!rows) {
		return 0;
	}
	if (!json_is_array(rows)) {
		return refuse(r, err, t->name, "is not an array");
	}
	/* A new store has a state of its own, and ids. */
	snprintf(sql, sizeof(sql), "DELETE FROM \"%s\"", t->table);
	rc = db_run(r->s, err, sql, "");
	json_array_foreach(rows, i, row) {
		if (rc == 0) {
			rc = put_row(r, t, i, row, err);
		}
	}
	return rc;
}

/* ---- the text ------------------------------------------------------------ */

static bool is_header(const char *key)
{
	return strcmp(key, PORTABLE_KEY_FORM) == 0 || strcmp(key, PORTABLE_KEY_READS_FROM) == 0 ||
	       strcmp(key, PORTABLE_KEY_FORMAT) == 0;
}

static int check_form(struct store_text *r, struct err *err)
{
	const json_t *form = json_object_get(r->root, PORTABLE_KEY_FORM);
	const json_t *from = json_object_get(r->root, PORTABLE_KEY_READS_FROM);

	if (!json_is_integer(form) || json_integer_value(form) < 1 || !json_is_integer(from) ||
	    json_integer_value(from) < 1) {
		return refuse(r, err, PORTABLE_KEY_FORM, "this is no store that weft exported");
	}
	r->newer = json_integer_value(form) > PORTABLE_FORM;
	if (json_integer_value(from) > PORTABLE_FORM) {
		err_set(err, WEFT_EUNSUPPORTED,
			"%s: it can be read from form %lld on, this weft knows up to %d", r->name,
			(long long)json_integer_value(from), PORTABLE_FORM);
		err_hint(err, "import it by a newer weft");
		return WEFT_EUNSUPPORTED;
	}
	return 0;
}

static int check_tables(struct store_text *r, struct err *err)
{
	const char *key;
	json_t *v;
	int rc = 0;

	json_object_foreach(r->root, key, v) {
		const struct portable_table *t = portable_tables;

		while (t->name && strcmp(t->name, key) != 0) {
			t++;
		}
		if (!t->name && !is_header(key) && (rc = unknown(r, "", key, err))) {
			break;
		}
	}
	if (rc == 0 && json_array_size(json_object_get(r->root, "state")) != 1) {
		rc = refuse(r, err, "state", "is not one row");
	}
	return rc;
}

static int parse(struct store_text *r, const char *text, size_t len, struct err *err)
{
	json_error_t e;
	int rc;

	if (len > STORE_TEXT_MAX) {
		return err_set(err, WEFT_ELIMIT, "%s: more than %d MiB", r->name,
			       STORE_TEXT_MAX >> 20);
	}
	r->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!r->root) {
		err_set(err, WEFT_EINVAL, "%s", e.text);
		err_at(err, r->name, e.line, e.column);
		return WEFT_EINVAL;
	}
	rc = check_form(r, err);
	return rc ? rc : check_tables(r, err);
}

/* ---- what the rows mean --------------------------------------------------- */

/* No statement may give a row: WEFT_EINVAL naming what it found. */
static int check_none(struct store_text *r, const char *sql, const char *what, struct err *err)
{
	sqlite3_stmt *st;
	char found[64];
	int rc = db_prepare(r->s, err, &st, sql, "");

	if (rc == 0 && (rc = db_step(r->s, err, st)) == 1) {
		db_text_into(st, 0, found, sizeof(found));
		rc = refuse(r, err, found, what);
	}
	db_release(r->s, st);
	return rc;
}

/* A conf_value_fn: there is none. */
static int has_password(const char *value, struct buf *out, void *arg, struct err *err)
{
	(void)value;
	(void)out;
	(void)arg;
	err_set(err, WEFT_EINVAL, "a password stands in a fabric");
	err_hint(err, "apply the fabric with password_file to the weft that exported it, first");
	return WEFT_EINVAL;
}

static int check_secrets(struct store_text *r, const struct model_config *config, struct err *err)
{
	struct buf text = { 0 };
	int n = 0;

	if (memmem(config->text, config->len, "password", strlen("password"))) {
		n = conf_rename(config->text, config->len, "password", "password", has_password,
				NULL, &text, err);
	}
	buf_fini(&text);
	return n < 0 ? err_wrap(err, "%s: configurations", r->name) : 0;
}

/* Every text of a fabric is what its hash says, and has no password. */
static int check_configs(struct store_text *r, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(r->s, err, &st, "SELECT hash, text FROM config", "");

	while (rc == 0 && (rc = db_step(r->s, err, st)) == 1) {
		struct model_config config;
		char hash[65];

		model_config_init(&config, "", sqlite3_column_text(st, 1),
				  (size_t)sqlite3_column_bytes(st, 1));
		model_config_hash(&config, hash);
		rc = check_secrets(r, &config, err);
		model_config_fini(&config);
		if (rc == 0 && strcmp(hash, (const char *)sqlite3_column_text(st, 0)) != 0) {
			rc = refuse(r, err, "configurations", "a text is not what its hash says");
		}
	}
	db_release(r->s, st);
	return rc;
}

/* And every program of a ring. */
static int check_programs(struct store_text *r, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(r->s, err, &st, "SELECT digest FROM program", "");

	while (rc == 0 && (rc = db_step(r->s, err, st)) == 1) {
		struct ring_programs p = { 0 };
		uint8_t digest[RING_DIGEST_LEN];

		memcpy(digest, sqlite3_column_blob(st, 0), sizeof(digest));
		rc = store_program(r->s, digest, &p, err);
		ring_programs_fini(&p);
	}
	db_release(r->s, st);
	return rc;
}

static int check_intent(struct store_text *r, struct err *err)
{
	char **names = NULL;
	int n = 0, rc = store_intent_devices(r->s, &names, &n, err);

	for (int i = 0; i < n && rc == 0; i++) {
		struct store_light l = { 0 };

		rc = store_intent(r->s, names[i], &l, err);
		store_light_fini(&l);
	}
	if (names) {
		model_names_free(names);
	}
	return rc;
}

/* Reads the lists as weftd does; whatever it would stumble over is found here. */
static int check_lists(struct store_text *r, struct err *err)
{
	const struct store_external_query all = { .limit = 0 };
	struct store_external_change *external = NULL;
	struct store_journal *open = NULL;
	struct store_change *changes = NULL;
	struct store_repair *repairs = NULL;
	struct store_job *jobs = NULL;
	struct store_gain *gains = NULL;
	struct store_config config = { .change = 0 };
	int n = 0, rc;

	if ((rc = store_open_changes(r->s, &open, &n, err)) == 0) {
		store_journals_free(open, n);
		rc = store_history(r->s, 0, INT32_MAX, &changes, &n, err);
	}
	if (rc == 0) {
		store_history_free(changes, n);
		rc = store_repairs(r->s, &repairs, &n, err);
	}
	if (rc == 0) {
		store_repairs_free(repairs, n);
		rc = store_jobs(r->s, &jobs, &n, err);
	}
	if (rc == 0) {
		store_jobs_free(jobs, n);
		rc = store_gains(r->s, 0, INT64_MAX, &gains, &n, err);
	}
	if (rc == 0) {
		store_gains_free(gains, n);
		rc = store_external_changes(r->s, &all, &external, &n, err);
		free(external);
	}
	if (rc == 0) {
		rc = store_config(r->s, &config, err);
		store_config_fini(&config);
		rc = rc == WEFT_ENOTFOUND ? 0 : rc;
	}
	return rc;
}

static int check_all(struct store_text *r, struct err *err)
{
	int rc;

	if ((rc = check_none(r, "SELECT \"table\" FROM pragma_foreign_key_check",
			     "a row refers to one that is not there", err)) ||
	    (rc = check_none(r, "SELECT 'state' WHERE (SELECT count(*) FROM state) <> 1",
			     "is not one row", err)) ||
	    (rc = check_none(r, "SELECT 'state.uuid' FROM state WHERE length(uuid) <> 36",
			     "is no uuid", err)) ||
	    (rc = check_none(r, "SELECT 'configurations' FROM config WHERE hash IS NULL",
			     "a row has no hash", err)) ||
	    (rc = check_none(r, "SELECT 'programs' FROM program WHERE digest IS NULL",
			     "a row has no digest", err)) ||
	    (rc = check_configs(r, err)) || (rc = check_programs(r, err)) ||
	    (rc = check_intent(r, err)) || (rc = check_lists(r, err))) {
		return rc;
	}
	return 0;
}

static int run_all(struct store_text *r, const char *sql, struct err *err)
{
	return sqlite3_exec(r->s->db, sql, NULL, NULL, NULL) ? db_fail(r->s, err, "import") : 0;
}

/* The text has a row for each circuit and step, which a store keeps by device. */
static int pack_rows(struct store_text *r, struct err *err)
{
	int rc;

	if ((rc = check_none(r, "SELECT 'journal_steps' FROM journal_step AS t LEFT JOIN "
			     "journal_device AS d ON d.change = t.change AND d.seq = t.device_seq "
			     "WHERE d.seq IS NULL",
			     "a row refers to one that is not there", err)) ||
	    (rc = check_none(r, "SELECT 'intent_circuits' FROM intent_circuit WHERE device NOT IN "
			     "(SELECT device FROM intent_device)",
			     "a row refers to one that is not there", err)) ||
	    (rc = check_none(r, "SELECT 'observed_circuits' FROM observed_circuit WHERE device "
			     "NOT IN (SELECT device FROM observed_device)",
			     "a row refers to one that is not there", err))) {
		return rc;
	}
	return run_all(r, store_pack_rows, err);
}

/* Everything in one transaction of the new store, whose fence is at least this. */
static int fill(struct store_text *r, int64_t fence, struct err *err)
{
	int rc = db_begin(r->s, err);

	if (rc) {
		return rc;
	}
	rc = db_run(r->s, err, "PRAGMA defer_foreign_keys = ON", "");
	if (rc == 0) {
		rc = run_all(r, store_row_tables, err);
	}
	for (const struct portable_table *t = portable_tables; t->name && rc == 0; t++) {
		rc = put_table(r, t, err);
	}
	if (rc == 0) {
		rc = pack_rows(r, err);
	}
	if (rc == 0) {
		rc = check_all(r, err);
	}
	if (rc == 0) {
		rc = db_run(r->s, err, "UPDATE state SET fence = max(fence, ?)", "i", fence);
	}
	return db_end(r->s, rc, err);
}

/* ---- files --------------------------------------------------------------- */

static void remove_new(const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-journal", ".lock" };

	for (int i = 0; i < COUNT(ends); i++) {
		struct buf name = { 0 };

		buf_printf(&name, "%s%s", path, ends[i]);
		unlink(buf_cstr(&name));
		buf_fini(&name);
	}
}

/* Merges the log of the store that is there into its file, and reads its fence: devices
 * must not be told an older one. A file that SQLite cannot read has neither. */
static int settle_old(const char *path, int64_t *fence, struct err *err)
{
	struct store old = { .path = (char *)path };
	struct buf log = { 0 };
	struct stat st;

	if (sqlite3_open_v2(path, &old.db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
		sqlite3_wal_checkpoint_v2(old.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
		db_number(&old, NULL, fence, "SELECT fence FROM state", "");
	}
	db_close(&old);
	buf_printf(&log, "%s-wal", path);
	if (stat(buf_cstr(&log), &st) == 0 && st.st_size > 0) {
		buf_fini(&log);
		err_set(err, WEFT_EIO, "store %s: its log %s-wal cannot be merged", path, path);
		err_hint(err, "move both away together");
		return WEFT_EIO;
	}
	buf_fini(&log);
	return 0;
}

/* At every moment path is a whole store. */
int store_keep_old(const char *path, char kept[ERR_FILE_MAX], struct err *err)
{
	for (int i = 1; i <= KEPT_MAX; i++) {
		if (snprintf(kept, ERR_FILE_MAX, "%s.replaced-%d", path, i) >= ERR_FILE_MAX) {
			break;
		}
		if (link(path, kept) == 0) {
			return 0;
		}
		if (errno != EEXIST) {
			break;
		}
	}
	err_errno(err, WEFT_EIO, errno, "store %s: keep it as %s", path, kept);
	kept[0] = '\0';
	return WEFT_EIO;
}

/* What root makes in a folder of weftd's user is that user's. */
static int give_to_owner(const char *path, int lock_fd, const char *dir, struct err *err)
{
	struct stat st;

	if (geteuid() != 0 || stat(dir, &st) != 0) {
		return 0;
	}
	if (chown(path, st.st_uid, st.st_gid) != 0 ||
	    fchown(lock_fd, st.st_uid, st.st_gid) != 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	return 0;
}

static int sync_folder(const char *dir, struct err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) ? err_errno(err, WEFT_EIO, errno, "%s", dir) : 0;

	if (fd >= 0) {
		close(fd);
	}
	return rc;
}

/* The new store at `fresh`, filled and closed. */
static int make_new(struct store_text *r, const char *fresh, int64_t fence, struct err *err)
{
	int rc = store_open(fresh, &r->s, err);

	if (rc) {
		return rc;
	}
	rc = fill(r, fence, err);
	if (rc == 0) {
		rc = db_run(r->s, err, "PRAGMA journal_mode = DELETE", "");
	}
	store_free(r->s);
	return rc;
}

/* With the lock of path taken. */
static int put_in_place(struct store_text *r, const char *path, int lock_fd, bool replace,
			struct err *err)
{
	struct buf fresh = { 0 }, dir = { 0 };
	const char *slash = strrchr(path, '/');
	bool exists = access(path, F_OK) == 0;
	int64_t fence = 0;
	int rc;

	buf_printf(&fresh, "%s.import", path);
	buf_printf(&dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	if (exists && !replace) {
		rc = err_set(err, WEFT_EUSAGE, "there is a store already: %s", path);
		err_hint(err, "--replace keeps it beside the new one");
		goto out;
	}
	remove_new(buf_cstr(&fresh));
	if ((exists && (rc = settle_old(path, &fence, err))) ||
	    (rc = make_new(r, buf_cstr(&fresh), fence, err)) ||
	    (rc = give_to_owner(buf_cstr(&fresh), lock_fd, buf_cstr(&dir), err)) ||
	    (exists && (rc = store_keep_old(path, r->out->kept, err))) ||
	    (rc = store_copy_replaced(path, err))) {
		goto out;
	}
	rc = rename(buf_cstr(&fresh), path)
		     ? err_errno(err, WEFT_EIO, errno, "%s", path)
		     : sync_folder(buf_cstr(&dir), err);
out:
	remove_new(buf_cstr(&fresh));
	buf_fini(&fresh);
	buf_fini(&dir);
	return rc;
}

int store_import(const char *path, const char *name, const char *text, size_t len, bool replace,
		 struct store_import *out, struct err *err)
{
	struct store_text r = { .name = name, .out = out };
	struct buf lock = { 0 };
	int fd = -1, rc;

	memset(out, 0, sizeof(*out));
	buf_printf(&lock, "%s.lock", path);
	rc = parse(&r, text, len, err);
	if (rc == 0) {
		rc = file_lock(buf_cstr(&lock), &fd, err);
	}
	if (rc == 0) {
		rc = put_in_place(&r, path, fd, replace, err);
	}
	if (fd >= 0) {
		close(fd);
	}
	buf_fini(&lock);
	json_decref(r.root);
	return rc;
}
