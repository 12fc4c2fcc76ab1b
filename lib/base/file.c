/*
 * Files. Writing goes to a new file beside the old one, which is renamed over
 * it: a reader sees all of the old bytes or all of the new ones, and a crash
 * or a full disk leaves the old file. The new file has its final mode before
 * it has any bytes.
 */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
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

static int sync_dir_of(const char *path)
{
	char copy[PATH_MAX];
	int fd, rc;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	rc = fsync(fd);
	close(fd);
	return rc;
}

/* Device files, pipes and standard output cannot be replaced by a rename. */
static int write_through(const char *path, const void *data, size_t len, struct err *err)
{
	bool is_stdout = strcmp(path, "-") == 0;
	int fd = is_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : write_all(fd, data, len);

	if (rc) {
		rc = err_errno(err, WEFT_EIO, errno, "%s", is_stdout ? "standard output" : path);
	}
	if (fd >= 0 && !is_stdout) {
		close(fd);
	}
	return rc;
}

/* Where path leads in the end, so that the file behind a symbolic link is
 * replaced and the link stays. The kernel has followed the links before (and
 * refused those that fs.protected_symlinks forbids); what they end in need
 * not exist. */
static int follow_links(char path[PATH_MAX])
{
	char link[PATH_MAX], joined[2 * PATH_MAX];
	ssize_t n;

	while ((n = readlink(path, link, sizeof(link) - 1)) >= 0) {
		char *slash = strrchr(path, '/');

		link[n] = '\0';
		if (slash && link[0] != '/') {
			slash[1] = '\0';
			snprintf(joined, sizeof(joined), "%s%s", path, link);
		} else {
			snprintf(joined, sizeof(joined), "%s", link);
		}
		if (strlen(joined) >= PATH_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		strcpy(path, joined);
	}
	return 0;
}

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

/* Creates a file beside path, for its owner only where one stands there, and
 * otherwise as umask and ceiling say. tmp receives its name. */
static int create_beside(const char *path, mode_t mode, char tmp[PATH_MAX])
{
	uint32_t random;
	int fd = -1, n;

	for (int tries = 0; tries < 100 && fd < 0; tries++) {
		if (getrandom(&random, sizeof(random), 0) < 0) {
			return -1;
		}
		n = snprintf(tmp, PATH_MAX, "%s.%08x", path, random);
		if (n >= PATH_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
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

static int replace(const char *path, const struct stat *old, const void *data,
		   size_t len, mode_t ceiling, struct err *err)
{
	char tmp[PATH_MAX];
	int fd = create_beside(path, old ? 0600 : 0666 & ceiling, tmp);
	int saved;

	if (fd < 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	if (set_mode(fd, old, ceiling) || write_all(fd, data, len) || fsync(fd)) {
		saved = errno;
		close(fd);
		goto fail;
	}
	if (close(fd) || rename(tmp, path)) {
		saved = errno;
		goto fail;
	}
	if (sync_dir_of(path)) {
		return err_errno(err, WEFT_EIO, errno, "%s: directory", path);
	}
	return 0;
fail:
	unlink(tmp);
	return err_errno(err, WEFT_EIO, saved, "%s", path);
}

int file_write_atomic(const char *path, const void *data, size_t len, int ceiling, struct err *err)
{
	char target[PATH_MAX];
	struct stat st;
	bool exists;

	if (!*path) {
		return err_set(err, WEFT_EINVAL, "the name of the file is "
			       "empty");
	}
	/* Nine more for the temporary file beside it. */
	if (strlen(path) + 9 >= sizeof(target)) {
		return err_set(err, WEFT_EINVAL, "%s: path too long", path);
	}
	exists = stat(path, &st) == 0;
	if (strcmp(path, "-") == 0 || (exists && !S_ISREG(st.st_mode))) {
		return write_through(path, data, len, err);
	}
	strcpy(target, path);
	if ((!exists && errno != ENOENT) || follow_links(target)) {
		return err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	return replace(target, exists ? &st : NULL, data, len, (mode_t)ceiling & 0777, err);
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
