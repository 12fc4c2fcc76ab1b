/* Files; see file.h. */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"

int file_open_standard(void)
{
	/* The wrong way round, so that neither end is mistaken for one. */
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest free number is the one that is closed. */
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", modes[fd]) != fd) {
			return WEFT_EIO;
		}
	}
	return 0;
}

static int read_all(int fd, const char *path, size_t max, struct buf *out,
		    struct err *err)
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
			return out->failed ? err_nomem(err) : 0;
		}
		if (out->len + n > max) {
			return err_set(err, WEFT_ELIMIT,
				       "%s: larger than the limit of %zu bytes",
				       path, max);
		}
		buf_add(out, chunk, n);
	}
}

int file_read(const char *path, size_t max, char **data, size_t *len,
	      struct err *err)
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
	return *data ? 0 : err_nomem(err);
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

/* Device files and pipes cannot be replaced by rename: write through. */
static bool writes_through(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int write_plain(const char *path, const void *data, size_t len,
		       struct err *err)
{
	bool is_stdout = strcmp(path, "-") == 0;
	int fd = is_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : write_all(fd, data, len);

	if (rc) {
		rc = err_errno(err, WEFT_EIO, errno, "%s",
			       is_stdout ? "standard output" : path);
	}
	if (fd >= 0 && !is_stdout) {
		close(fd);
	}
	return rc;
}

int file_write_atomic(const char *path, const void *data, size_t len, int mode,
		      struct err *err)
{
	char tmp[PATH_MAX];
	int fd, saved;

	if (!*path) {
		return err_set(err, WEFT_EINVAL, "the name of the file is "
			       "empty");
	}
	if (strcmp(path, "-") == 0 || writes_through(path)) {
		return write_plain(path, data, len, err);
	}
	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path) >=
	    sizeof(tmp)) {
		return err_set(err, WEFT_EINVAL, "%s: path too long", path);
	}
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	if (write_all(fd, data, len) || fchmod(fd, mode) || fsync(fd)) {
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
