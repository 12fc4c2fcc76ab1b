/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, checking and closing the store.
 *
 * Nothing is repaired here. The file is created for its owner only, locked
 * before SQLite sees it, brought to the format of today, and its pages are
 * checked; each start of a writer increments the fence, by which devices and
 * later writers know an older one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"

static int set_modes(struct store *s, struct err *err)
{
	/* The size limit gives the disk back after a large ring program. */
	const char *const modes[] = {
		s->kind == STORE_SHARED ? "PRAGMA journal_mode = DELETE"
					: "PRAGMA journal_mode = WAL",
		/* A journal that is deleted has to be gone for good: EXTRA. */
		"PRAGMA synchronous = EXTRA",
		"PRAGMA foreign_keys = ON",
		"PRAGMA recursive_triggers = ON",	/* also when rows are replaced */
		"PRAGMA journal_size_limit = 4194304",
		"PRAGMA trusted_schema = OFF",
	};
	int rc = 0;

	if (s->newer) {
		return 0;
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && !rc; i++) {
		rc = db_run(s, err, modes[i], "");
	}
	return rc;
}

/* So integrity_check tells a disk that fails, which is no damage: another reading may do. */
#define PAGE_FAILS "unable to get the page. error code="

int store_check_pages(struct store *s, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "PRAGMA integrity_check(1)", "");

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		char text[STORE_NOTE_MAX];
		const char *at;

		db_text_into(st, 0, text, sizeof(text));
		at = strstr(text, PAGE_FAILS);
		if (at && (atoi(at + strlen(PAGE_FAILS)) & 0xff) == SQLITE_IOERR) {
			rc = db_refused(s, err, "read", SQLITE_IOERR_READ);
		} else {
			rc = strcmp(text, "ok") == 0 ? 0 : db_damaged(s, err, text);
		}
	}
	db_release(s, st);
	return rc;
}

/* SQLite would create the file readable by everybody; it holds the names
 * and addresses of devices. */
static int create_file(struct store *s, struct err *err)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		enum weft_err code = errno == EACCES || errno == EROFS ||
				     errno == EPERM ? WEFT_EDENIED : WEFT_EIO;

		return err_errno(err, code, errno, "store %s", s->path);
	}
	close(fd);
	return 0;
}

static int take_lock(struct store *s, struct err *err)
{
	struct buf name = { 0 };
	int rc;

	buf_printf(&name, "%s.lock", s->path);
	rc = s->kind == STORE_SHARED ? file_lock_shared(buf_cstr(&name), &s->lock_fd, err)
				     : file_lock(buf_cstr(&name), &s->lock_fd, err);
	buf_fini(&name);
	return rc;
}

static int open_db(struct store *s, struct err *err)
{
	int rc = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE |
				 SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 NULL);

	if (rc) {
		return db_fail(s, err, "open");
	}
	sqlite3_extended_result_codes(s->db, 1);
	if (s->kind == STORE_SHARED) {
		sqlite3_busy_handler(s->db, store_wait_for_others, s);
	}
	if (sqlite3_db_readonly(s->db, "main") == 1) {
		err_set(err, WEFT_EDENIED, "store %s is read-only", s->path);
		err_hint(err, "the file and its folder must be writable");
		return WEFT_EDENIED;
	}
	return 0;
}

static int open_as(const char *path, enum store_kind kind, struct store **out, struct err *err)
{
	static const struct {
		const struct store_part *part;
		int (*last_stage)(struct store *s, struct err *err);
	} kinds[] = {
		[STORE_ALONE] = { NULL, store_new_term },
		[STORE_SHARED] = { &store_lease_part, store_refresh },
		[STORE_REPLICA] = { &store_replica_part, store_replica_begin },
	};
	int (*const stages[])(struct store *, struct err *) = {
		create_file, take_lock, open_db, store_bring_up, set_modes,
		store_check_pages, store_content_check, store_content_watch,
		kinds[kind].last_stage,
	};
	struct store *s = x_new(1, sizeof(*s));
	int rc = 0;

	s->path = x_dup(path);
	s->lock_fd = -1;
	s->audit_bytes = -1;
	s->kind = kind;
	s->parts[0] = &store_audit_part;
	s->parts[1] = kinds[kind].part;
	s->may_be_newer = kind == STORE_ALONE;
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && !rc; i++) {
		rc = stages[i](s, err);
	}
	if (rc) {
		store_free(s);
		return rc;
	}
	s->serves = true;
	*out = s;
	return 0;
}

int store_open(const char *path, struct store **out, struct err *err)
{
	return open_as(path, STORE_ALONE, out, err);
}

int store_open_shared(const char *path, struct store **out, struct err *err)
{
	return open_as(path, STORE_SHARED, out, err);
}

int store_open_replica(const char *path, struct store **out, struct err *err)
{
	return open_as(path, STORE_REPLICA, out, err);
}

void store_free(struct store *s)
{
	if (!s) {
		return;
	}
	s->follows = true;	/* what waits is of this weftd alone, also of a copy */
	if (s->n_waiting && db_begin(s, NULL) == 0) {
		db_end(s, 0, NULL);
	}
	store_audit_drop(s);
	free(s->waiting);
	store_sync_fini(s);
	buf_fini(&s->entry);
	db_close(s);
	store_hold_fini(&s->hold);
	if (s->lock_fd >= 0) {
		close(s->lock_fd);
	}
	free(s->path);
	free(s);
}

const char *store_uuid(const struct store *s)
{
	return s->uuid;
}

struct store_use store_use(const struct store *s)
{
	return s->use;
}

int64_t store_generation(const struct store *s)
{
	return s->generation;
}

uint64_t store_written(const struct store *s)
{
	return (uint64_t)sqlite3_total_changes64(s->db);
}

int store_newer(const struct store *s)
{
	return s->newer;
}

uint64_t store_fence(const struct store *s)
{
	return s->fence;
}

const char *store_trouble(const struct store *s)
{
	return s->trouble;
}
