/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second copy of a store, PATH.copy: what a start takes when the store itself is gone,
 * damaged or without its log.
 *
 * It is a store like any other, in one file, with the rows that matter for going on: all but the
 * audit trail and older changes. It is made row by row, not page by page, out of one state of the
 * store whose digest is compared on the way, so that damage is never copied; and it is put in its
 * place only when all that it holds is durable in the store: a copy that has more transactions
 * than the store says that the store has lost some.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/store/private.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"

#define COPY_END ".copy"
#define COPY_MAX ((size_t)1 << 30)	/* bytes */
#define CHANGES_KEPT 100		/* closed ones that no other row needs */
#define MERGE_TRIES 50			/* 10 ms each, while another thread merges the log */

static struct store in_memory(const char *path)
{
	return (struct store){ .path = (char *)path, .lock_fd = -1, .audit_bytes = -1 };
}

/* ---- making it ----------------------------------------------------------- */

/* The source's tables, without rows. */
static int make_tables(struct store *c, struct err *err)
{
	struct buf all = { 0 };
	sqlite3_stmt *st;
	int rc = db_prepare(c, err, &st, "SELECT sql || ';' FROM source.sqlite_schema WHERE sql "
			    "IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid", "");

	if (rc) {
		return rc;
	}
	while ((rc = db_step(c, err, st)) == 1) {
		buf_str(&all, (const char *)sqlite3_column_text(st, 0));
	}
	db_release(c, st);
	buf_printf(&all, "PRAGMA main.application_id = %d; PRAGMA main.user_version = %d",
		   STORE_APPLICATION_ID, STORE_VERSION);
	if (rc == 0 && sqlite3_exec(c->db, buf_cstr(&all), NULL, NULL, NULL)) {
		rc = db_fail(c, err, "copy");
	}
	buf_fini(&all);
	return rc;
}

/* WEFT_EINVAL: the rows of the source are not those that were written. */
static int check_source(struct store *c, struct err *err)
{
	int64_t same = 0;
	int rc;

	c->content = 0;
	if ((rc = store_for_tables(c, "SELECT content_row(1, '{t}', {all}) FROM source.\"{t}\";",
				   err)) ||
	    (rc = db_number(c, err, &same, "SELECT rows = ? FROM source.content", "i",
			    (int64_t)c->content))) {
		return rc;
	}
	return same ? 0 : db_damaged(c, err, "it does not hold what was written");
}

/* All rows but the audit trail's, with the last ids that were given. */
static int take_rows(struct store *c, struct err *err)
{
	int rc = store_for_tables(c, "INSERT INTO main.\"{t}\" ({all}) SELECT {all} FROM "
				  "source.\"{t}\" WHERE '{t}' <> 'audit';", err);

	if (rc || (rc = db_run(c, err, "DELETE FROM main.sqlite_sequence", "")) ||
	    (rc = db_run(c, err, "INSERT INTO main.sqlite_sequence SELECT * FROM "
			 "source.sqlite_sequence", "")) ||
	    (rc = db_run(c, err, "INSERT INTO main.content SELECT * FROM source.content", "")) ||
	    (rc = store_history_prune(c, CHANGES_KEPT, err))) {
		return rc;
	}
	return store_sweep(c, err);
}

/* With as many transactions as the source has: the commit counts one. */
static int seal(struct store *c, struct err *err)
{
	int64_t written = 0;
	int rc = db_number(c, err, &written, "SELECT written FROM source.content", "");

	if (rc || (rc = store_content_count(c, err))) {
		return rc;
	}
	c->written = written - 1;
	return store_content_commit(c, err);
}

/* In one transaction, so of one state of the source; which it only reads. */
static int fill(struct store *c, struct err *err)
{
	int rc;

	if ((rc = db_run(c, err, "PRAGMA foreign_keys = ON", "")) ||
	    (rc = db_run(c, err, "BEGIN", "")) ||
	    (rc = db_run(c, err, "PRAGMA defer_foreign_keys = ON", "")) ||
	    (rc = make_tables(c, err)) || (rc = store_content_count(c, err)) ||
	    (rc = check_source(c, err)) || (rc = take_rows(c, err)) || (rc = seal(c, err))) {
		return rc;
	}
	return db_run(c, err, "COMMIT", "");
}

/* Of the rows that were taken and left out again. */
static int drop_free_pages(struct store *c, struct err *err)
{
	int64_t many = 0;
	int rc = db_number(c, err, &many, "SELECT freelist_count > page_count / 4 FROM "
			   "pragma_freelist_count, pragma_page_count", "");

	return rc || !many ? rc : db_run(c, err, "VACUUM main", "");
}

/* All that was read is durable. */
static int settle_source(struct store *s, struct store *c, struct err *err)
{
	int rc = SQLITE_BUSY;

	for (int i = 0; i < MERGE_TRIES && rc == SQLITE_BUSY; i++) {
		if (i > 0) {
			sqlite3_sleep(10);
		}
		rc = store_merge(s, c->db, "source");
	}
	return rc ? db_refused(s, err, "copy", rc) : 0;
}

static int write_file(struct store *c, struct err *err)
{
	struct buf name = { 0 };
	sqlite3_int64 len = 0;
	unsigned char *bytes = sqlite3_serialize(c->db, "main", &len, 0);
	int rc;

	if (!bytes) {
		return err_set(err, WEFT_ELIMIT, "store %s: its copy is too large", c->path);
	}
	buf_printf(&name, "%s" COPY_END, c->path);
	rc = file_write_atomic(buf_cstr(&name), bytes, (size_t)len, FILE_PRIVATE, err);
	buf_fini(&name);
	sqlite3_free(bytes);
	return rc;
}

int store_copy(struct store *s, struct err *err)
{
	struct store c = in_memory(s->path);
	int rc;

	if (s->kind == STORE_SHARED || s->newer) {
		return 0;
	}
	if (sqlite3_open(":memory:", &c.db)) {
		rc = db_fail(&c, err, "copy");
	} else if ((rc = db_run(&c, err, "ATTACH ? AS source", "s", s->path)) == 0 &&
		   (rc = fill(&c, err)) == 0 && (rc = drop_free_pages(&c, err)) == 0 &&
		   (rc = settle_source(s, &c, err)) == 0) {
		rc = write_file(&c, err);
	}
	db_close(&c);
	return rc;
}

/* ---- taking it ----------------------------------------------------------- */

/* A store's place in its own life. */
struct store_place {
	char uuid[37];
	int64_t written;
};

/* false: it is none, or cannot say. */
static bool read_place(const char *path, struct store_place *out)
{
	struct store s = in_memory(path);
	sqlite3_stmt *st = NULL;
	bool found = false;

	if (sqlite3_open_v2(path, &s.db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    db_prepare(&s, NULL, &st, "SELECT uuid, written FROM state, content", "") == 0 &&
	    db_step(&s, NULL, st) == 1) {
		db_text_into(st, 0, out->uuid, sizeof(out->uuid));
		out->written = sqlite3_column_int64(st, 1);
		found = true;
	}
	db_release(&s, st);
	db_close(&s);
	return found;
}

/* What opening would not see. WEFT_ENOTFOUND: it is empty or gone, WEFT_EINVAL: its last
 * transactions are; as long as it is the store that was copied. */
static int find_loss(const char *path, const char *copy, struct err *err)
{
	struct store_place now = { .uuid = "" }, then = { .uuid = "" };
	struct stat st;

	if (access(copy, F_OK)) {
		return 0;
	}
	if (stat(path, &st) || st.st_size == 0) {
		return err_set(err, WEFT_ENOTFOUND, "store %s is %s", path,
			       access(path, F_OK) ? "gone" : "empty");
	}
	if (!read_place(copy, &then) || !read_place(path, &now) ||
	    strcmp(now.uuid, then.uuid) != 0 || now.written >= then.written) {
		return 0;
	}
	return err_set(err, WEFT_EINVAL, "store %s has %lld transactions and its copy %lld: its "
		       "log was lost", path, (long long)now.written, (long long)then.written);
}

/* The log goes first, also one that is left of a store that is gone: over another file it would be
 * read as that one's. */
static int set_aside(const char *path, struct store_taken *out, struct err *err)
{
	struct buf log = { 0 }, kept = { 0 };
	int rc = access(path, F_OK) ? 0 : store_keep_old(path, out->kept, err);

	buf_printf(&log, "%s-wal", path);
	buf_printf(&kept, out->kept[0] ? "%s-wal" : "%s.replaced-wal",
		   out->kept[0] ? out->kept : path);
	if (rc == 0 && rename(buf_cstr(&log), buf_cstr(&kept)) &&
	    errno != ENOENT) {
		rc = err_errno(err, WEFT_EIO, errno, "%s", buf_cstr(&log));
	}
	buf_fini(&log);
	buf_fini(&kept);
	return rc;
}

/* With the lock. */
static int put_copy(const char *path, const char *copy, struct store_taken *out, struct err *err)
{
	struct store_check found = { 0 };
	char *bytes = NULL;
	size_t len;
	int rc = store_check(copy, &found, err);

	if (rc || (rc = file_read(copy, COPY_MAX, &bytes, &len, err))) {
		return rc;
	}
	rc = set_aside(path, out, err);
	if (rc == 0) {
		rc = file_write_atomic(path, bytes, len, FILE_PRIVATE, err);
	}
	free(bytes);
	return rc;
}

static int take(const char *path, const char *copy, struct store_taken *out, struct err *err)
{
	struct buf lock = { 0 };
	int fd = -1, rc;

	buf_printf(&lock, "%s.lock", path);
	rc = file_lock(buf_cstr(&lock), &fd, err);
	buf_fini(&lock);
	if (rc == 0) {
		rc = put_copy(path, copy, out, err);
		close(fd);
	}
	return rc;
}

/* Why it was taken, or could not be, into *out. A store that only lacks its end is used then. */
static int open_or_take(const char *path, const char *copy, store_open_fn open,
			struct store **s, struct store_taken *out, struct err *err)
{
	struct err lost = { 0 }, refused = { 0 };
	const int loss = find_loss(path, copy, &lost);
	int rc = loss ? WEFT_EINVAL : open(path, s, &lost);

	if (rc != WEFT_EINVAL || access(copy, F_OK)) {
		*err = lost;
		return rc;
	}
	rc = take(path, copy, out, &refused);
	snprintf(out->why, sizeof(out->why), "%s", lost.msg);
	if (rc == 0) {
		return open(path, s, err);
	}
	snprintf(out->refused, sizeof(out->refused), "%s", refused.msg);
	if (loss == WEFT_EINVAL && rc != WEFT_ESTALE) {
		return open(path, s, err);
	}
	return err_set(err, rc, "%s; its copy: %s", lost.msg, refused.msg);
}

int store_open_or_copy(const char *path, store_open_fn open, struct store **out,
		       struct store_taken *taken, struct err *err)
{
	struct buf copy = { 0 };
	struct err local = { 0 };
	int rc;

	memset(taken, 0, sizeof(*taken));
	buf_printf(&copy, "%s" COPY_END, path);
	rc = open_or_take(path, buf_cstr(&copy), open, out, taken, err ? err : &local);
	buf_fini(&copy);
	return rc;
}

int store_copy_replaced(const char *path, struct err *err)
{
	struct buf copy = { 0 }, name = { 0 };
	int rc = 0;

	buf_printf(&copy, "%s" COPY_END, path);
	buf_printf(&name, "%s" COPY_END ".replaced", path);
	if (rename(buf_cstr(&copy), buf_cstr(&name)) && errno != ENOENT) {
		rc = err_errno(err, WEFT_EIO, errno, "%s", buf_cstr(&copy));
	}
	buf_fini(&copy);
	buf_fini(&name);
	return rc;
}
