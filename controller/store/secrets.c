/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passwords that stood in the texts of fabrics, up to format 18.
 *
 * Each goes to a file of its own beside the store, which its owner only may read, and the text
 * names that file. Files are numbered in the order of the texts' hashes: copies of one store
 * (--etcd) whose folders have one name come to the same texts, each with files of its own.
 * A file that has the password already is taken, so that doing it again makes none.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/store/private.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/conf/conf.h"

#define PASSWORD_MAX (16 << 10)

static bool has_line(const char *path, const char *line)
{
	char *text = NULL;
	size_t len = 0;
	bool has = file_read(path, PASSWORD_MAX, &text, &len, NULL) == 0 &&
		   len == strlen(line) + 1 && strncmp(text, line, len - 1) == 0;

	free(text);
	return has;
}

/* What root makes in a folder of weftd's user is that user's. */
static int write_line(const char *folder, const char *path, const char *line, struct err *err)
{
	struct buf text = { 0 };
	struct stat st;
	int rc;

	buf_printf(&text, "%s\n", line);
	rc = file_write_atomic(path, text.data, text.len, FILE_PRIVATE, err);
	buf_fini(&text);
	if (rc == 0 && geteuid() == 0 &&
	    (stat(folder, &st) || chown(path, st.st_uid, st.st_gid))) {
		rc = err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	return rc;
}

/* The folder of the store. A copy in memory, for reading, has none to write to. */
static int folder_of(const struct store *s, char folder[PATH_MAX], struct err *err)
{
	const char *slash = strrchr(s->path, '/');
	struct buf name = { 0 };
	int rc = 0;

	if (s->lock_fd < 0) {
		err_set(err, WEFT_EINVAL, "store %s: a password stands in a fabric", s->path);
		err_hint(err, "start this weftd over it once: it moves passwords to files");
		return WEFT_EINVAL;
	}
	buf_printf(&name, "%.*s", slash ? (int)(slash - s->path + 1) : 1, slash ? s->path : ".");
	if (!realpath(buf_cstr(&name), folder)) {
		rc = err_errno(err, WEFT_EIO, errno, "%s", buf_cstr(&name));
	}
	buf_fini(&name);
	return rc;
}

/* A conf_value_fn: the file of a password, beside the store arg. */
static int keep(const char *password, struct buf *out, void *arg, struct err *err)
{
	char folder[PATH_MAX];
	const char *path;
	int n = 0, rc = folder_of(arg, folder, err);

	if (rc) {
		return rc;
	}
	do {
		buf_reset(out);
		buf_printf(out, "%s/password-%d", folder, ++n);
		path = buf_cstr(out);
	} while (access(path, F_OK) == 0 && !has_line(path, password));
	if (access(path, F_OK) == 0) {
		return 0;
	}
	log_warn("weftd", "a password that stood in a fabric is in the file %s now", path);
	return write_line(folder, path, password, err);
}

/* All that stand in one text. */
static int move_from(struct store *s, const char *hash, const struct model_config *config,
		     struct err *err)
{
	struct buf text = { 0 };
	int n;

	if (!memmem(config->text, config->len, "password", strlen("password"))) {
		return 0;
	}
	n = conf_rename(config->text, config->len, "password", "password_file", keep, s, &text,
			err);
	if (n > 0) {
		n = store_replace_config(s, hash, text.data, text.len, err);
	}
	buf_fini(&text);
	return n;
}

int store_forget_freed(struct store *s, struct err *err)
{
	int64_t n = 0;
	int rc = db_number(s, err, &n, "SELECT count(*) FROM config WHERE "
			   "instr(text, CAST('password' AS BLOB))", "");

	return rc || n == 0 ? rc : db_run(s, err, "VACUUM", "");
}

int store_move_passwords(struct store *s, struct err *err)
{
	/* Freed pages hold nothing of what was in them. */
	int rc = db_run(s, err, "PRAGMA secure_delete = ON", "");

	return rc ? rc : store_each_config(s, move_from, err);
}
