/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files. Writing goes to a new file beside the old one, which is renamed over
 * it: a reader sees all of the old bytes or all of the new ones, and a crash
 * or a full disk leaves the old file. The new file has its final mode before
 * it has any bytes.
 */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/buf.h"

int file_open_standard(void)
{
	/* The wrong way round, so that neither end is mistaken for one. */
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest free number is the one that is closed. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd) {
			return WEFT_EIO;
		}
	}
	return 0;
}

static int read_all(int fd, const char *path, size_t max, struct buf *out, struct err *err)
{
	char chunk[65536];
	ssize_t n;

	for (;;) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return err_errno(err, WEFT_EIO, errno, "%s", path);
		}
		if (n == 0) {
			return 0;
		}
		if (out->len + n > max) {
			return err_set(err, WEFT_ELIMIT,
				       "%s: larger than the limit of %zu bytes",
				       path, max);
		}
		buf_add(out, chunk, n);
	}
}

int file_read(const char *path, size_t max, char **data, size_t *len, struct err *err)
{
	struct buf b = { 0 };
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (!*path) {
		return err_set(err, WEFT_ENOTFOUND, "the name of the file is "
			       "empty");
	}
	if (fd < 0) {
		return err_errno(err, errno == ENOENT ? WEFT_ENOTFOUND
						      : WEFT_EIO,
				 errno, "%s", path);
	}
	rc = read_all(fd, path, max, &b, err);
	if (!is_stdin) {
		close(fd);
	}
	if (rc) {
		buf_fini(&b);
		return rc;
	}
	*len = b.len;
	*data = buf_steal(&b);
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -1;
		}
		data += n;
		len -= n;
	}
	return 0;
}

static int write_stdout(const void *data, size_t len, struct err *err)
{
	return write_all(STDOUT_FILENO, data, len) == 0 ? 0 :
	       err_errno(err, WEFT_EIO, errno, "standard output");
}

/* ---- where a path leads ----------------------------------------------------- */

#define MAX_LINKS 40	/* as the kernel follows */

/* A name in a folder that is held open, so that it stays what was looked at. */
struct file_target {
	int dir;		/* -1: none */
	char name[PATH_MAX];
	bool by_kernel;		/* a link of /proc, which leads where no name does */
	bool of_another;		/* a link on the way is another user's, and not followed */
};

/* Goes to the folder of path, which is relative to the one before. */
static int enter(struct file_target *t, const char *path)
{
	char folder[PATH_MAX], *slash;
	int before = t->dir, flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	snprintf(t->name, sizeof(t->name), "%s", path + (slash ? slash + 1 - folder : 0));
	if (slash) {
		slash[slash == folder] = '\0';	/* that of the root stays */
	}
	t->dir = openat(before < 0 ? AT_FDCWD : before, slash ? folder : ".", flags);
	if (before >= 0) {
		close(before);
	}
	return t->dir < 0 ? -1 : 0;
}

/* Whether a link may be followed: the rule of fs.protected_symlinks, whether or not the kernel
 * has it in force. In a folder that everybody may write to and only owners may remove from, a
 * link is followed that is the caller's own, or of the folder's owner. */
static bool may_follow(int dir, const struct stat *link)
{
	struct stat folder;

	return fstat(dir, &folder) == 0 &&
	       ((folder.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
		link->st_uid == geteuid() || link->st_uid == folder.st_uid);
}

static bool is_proc(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* The text of the link that t names into text: 1; 0 when it is none, or not there. What is
 * looked at is what is read, as both are of one descriptor. */
static int read_link(struct file_target *t, char text[PATH_MAX])
{
	int fd = openat(t->dir, t->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd < 0) {
		return errno == ENOENT ? 0 : -1;
	}
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
		t->of_another = !may_follow(t->dir, &st);
		n = t->of_another ? -1 : readlinkat(fd, "", text, PATH_MAX - 1);
		text[n < 0 ? 0 : n] = '\0';
	}
	close(fd);
	return n < 0 ? -1 : n > 0;
}

/* Where path leads in the end, so that the file behind a link is replaced and the link stays;
 * that need not exist. 0, or -1 with errno or t->of_another. t->dir is the caller's to close. */
static int find_target(const char *path, struct file_target *t)
{
	char link[PATH_MAX];
	int is_link = 1;

	snprintf(link, sizeof(link), "%s", path);
	for (int i = 0; is_link == 1; i++) {
		if (i > MAX_LINKS) {
			errno = ELOOP;
			return -1;
		}
		if (enter(t, link)) {
			return -1;
		}
		t->by_kernel = is_proc(t->dir);
		is_link = t->by_kernel ? 0 : read_link(t, link);
	}
	return is_link;
}

/* Device files and pipes cannot be replaced by a rename; what is open already is written to at
 * its end. */
static int write_through(const struct file_target *t, const void *data, size_t len)
{
	int flags = O_WRONLY | O_APPEND | O_CLOEXEC | (t->by_kernel ? 0 : O_NOFOLLOW);
	int fd = openat(t->dir, t->name, flags), saved;

	if (fd < 0) {
		return -1;
	}
	saved = write_all(fd, data, len) ? errno : 0;
	close(fd);
	errno = saved;
	return saved ? -1 : 0;
}

/* ---- replacing --------------------------------------------------------------- */

/* The group's bits become those of all others: for a file whose group is not
 * the one that the mode spoke of. */
static mode_t without_group(mode_t mode)
{
	return (mode & ~(mode_t)070) | (mode & 07) << 3;
}

int file_ceiling(const char *source)
{
	struct stat st;

	if (stat(source, &st) || !S_ISREG(st.st_mode)) {
		return FILE_PRIVATE;
	}
	return (int)(st.st_gid == getegid() ? st.st_mode & 0777 : without_group(st.st_mode & 0777));
}

/* Creates a file beside the target, for its owner only where one stands there, and
 * otherwise as umask and ceiling say. tmp receives its name. */
static int create_beside(const struct file_target *t, mode_t mode, char tmp[PATH_MAX])
{
	uint32_t random;
	int fd = -1, n;

	for (int tries = 0; tries < 100 && fd < 0; tries++) {
		if (getrandom(&random, sizeof(random), 0) < 0) {
			return -1;
		}
		n = snprintf(tmp, PATH_MAX, "%s.%08x", t->name, random);
		if (n >= PATH_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = openat(t->dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST) {
			return -1;
		}
	}
	return fd;
}

/* Group and mode of the file that is replaced, under the ceiling. */
static int set_mode(int fd, const struct stat *old, mode_t ceiling)
{
	mode_t mode;
	struct stat st;

	if (old && fchown(fd, (uid_t)-1, old->st_gid)) {
		errno = 0;	/* not ours to give: then nothing for a group */
	}
	if (fstat(fd, &st)) {
		return -1;
	}
	mode = old ? old->st_mode & 0777 : st.st_mode & 0777;
	if (old && st.st_gid != old->st_gid) {
		mode &= without_group(mode);
	}
	if (st.st_gid != getegid()) {
		ceiling &= without_group(ceiling);
	}
	return fchmod(fd, mode & ceiling);
}

/* The folder is opened again, as one that is only held cannot be synced. */
static int sync_folder(const struct file_target *t)
{
	int fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0) {
		close(fd);
	}
	return rc;
}

/* old NULL: there is none. -1, with errno: the old one is as it was. */
static int replace(const struct file_target *t, const struct stat *old, const void *data,
		   size_t len, mode_t ceiling)
{
	char tmp[PATH_MAX];
	int fd = create_beside(t, old ? 0600 : 0666 & ceiling, tmp);
	int saved = 0;

	if (fd < 0) {
		return -1;
	}
	if (set_mode(fd, old, ceiling) || write_all(fd, data, len) || fsync(fd)) {
		saved = errno;
	}
	if (close(fd) && !saved) {
		saved = errno;
	}
	if (!saved && renameat(t->dir, tmp, t->dir, t->name)) {
		saved = errno;
	}
	if (saved) {
		unlinkat(t->dir, tmp, 0);
	}
	errno = saved;
	return saved ? -1 : 0;
}

static int write_to(const struct file_target *t, const char *path, const void *data, size_t len,
		    mode_t ceiling, struct err *err)
{
	struct stat st;
	bool exists = fstatat(t->dir, t->name, &st, t->by_kernel ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
	int rc;

	if (exists && (t->by_kernel || !S_ISREG(st.st_mode))) {
		rc = write_through(t, data, len);
	} else {
		rc = replace(t, exists ? &st : NULL, data, len, ceiling);
		if (rc == 0 && sync_folder(t)) {
			return err_errno(err, WEFT_EIO, errno, "%s: directory", path);
		}
	}
	return rc ? err_errno(err, WEFT_EIO, errno, "%s", path) : 0;
}

int file_write_atomic(const char *path, const void *data, size_t len, int ceiling, struct err *err)
{
	struct file_target t = { .dir = -1 };
	int rc;

	if (!*path) {
		return err_set(err, WEFT_EINVAL, "the name of the file is "
			       "empty");
	}
	/* Nine more for the temporary file beside it. */
	if (strlen(path) + 9 >= sizeof(t.name)) {
		return err_set(err, WEFT_EINVAL, "%s: path too long", path);
	}
	if (strcmp(path, "-") == 0) {
		return write_stdout(data, len, err);
	}
	if (find_target(path, &t) == 0) {
		rc = write_to(&t, path, data, len, (mode_t)ceiling & 0777, err);
	} else if (t.of_another) {
		rc = err_set(err, WEFT_EDENIED, "%s: it leads over a link that another user has "
			     "made where everybody may", path);
	} else {
		rc = err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	if (t.dir >= 0) {
		close(t.dir);
	}
	return rc;
}

static int lock(const char *path, int how, int *fd, struct err *err)
{
	char pid[32] = { 0 };
	int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (f < 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	if (flock(f, how | LOCK_NB)) {
		if (read(f, pid, sizeof(pid) - 1) < 0) {
			pid[0] = '\0';
		}
		pid[strcspn(pid, "\n")] = '\0';
		close(f);
		return err_set(err, WEFT_ESTALE, "%s: held by process %s",
			       path, pid[0] ? pid : "(unknown)");
	}
	*fd = f;
	return 0;
}

int file_lock_shared(const char *path, int *fd, struct err *err)
{
	return lock(path, LOCK_SH, fd, err);
}

int file_lock(const char *path, int *fd, struct err *err)
{
	char pid[32];
	int f, rc = lock(path, LOCK_EX, &f, err);

	if (rc) {
		return rc;
	}
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(f, 0) || write_all(f, pid, strlen(pid))) {
		int saved = errno;

		close(f);
		return err_errno(err, WEFT_EIO, saved, "%s", path);
	}
	*fd = f;
	return 0;
}
