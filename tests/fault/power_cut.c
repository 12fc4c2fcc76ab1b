/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into weftd: at its N-th write to a file in a folder the power fails. What was written
 * since the last sync of a file is there or not, by sector as chance has it, but of a sector never
 * something newer without what was before it; the write under way and the file's new size
 * likewise. Then the process is gone. WEFT_CUT_DIR: the folder, whose files only count.
 * WEFT_CUT_AT: N. WEFT_CUT_SEED: chance.
 *
 * That a file was made, renamed or deleted is durable at once here; the simulation's disk
 * (tests/sim/disk) has that too, and this one the kernel's calls as they are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECTOR 512

/* A write that is not durable yet. */
struct undo {
	struct undo *before;
	dev_t dev;
	ino_t ino;
	int fd;			/* another one of the file, which stays open */
	off_t at, size;		/* and the file's size before it */
	size_t len;
	char old[];		/* [len]; zero behind the end */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct undo *newest;
static long n_writes;

static long setting(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}

static uint64_t chance(uint64_t a, uint64_t b)
{
	uint64_t h = (uint64_t)setting("WEFT_CUT_SEED") ^ a * UINT64_C(0x9e3779b97f4a7c15) ^
		     b * UINT64_C(0xc2b2ae3d27d4eb4f);

	h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 29;
}

/* Whether the descriptor is of a file whose writes count. */
static int counts(int fd, struct stat *st)
{
	const char *dir = getenv("WEFT_CUT_DIR");
	char name[64], path[512];
	ssize_t n;

	if (!dir || syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH) || !S_ISREG(st->st_mode)) {
		return 0;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return strncmp(path, dir, strlen(dir)) == 0 && !strstr(path, "-shm") &&
	       !strstr(path, ".lock");
}

static void remember(int fd, const struct stat *st, off_t at, size_t len)
{
	struct undo *u = calloc(1, sizeof(*u) + len);
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	*u = (struct undo){ .before = newest, .dev = st->st_dev, .ino = st->st_ino, .at = at,
			    .size = st->st_size, .len = len };
	u->fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
	if (syscall(SYS_pread64, u->fd, u->old, len, at) < 0) {
		_exit(99);
	}
	newest = u;
}

static void forget(const struct stat *st)
{
	for (struct undo **p = &newest; *p;) {
		struct undo *u = *p;

		if (u->dev == st->st_dev && u->ino == st->st_ino) {
			*p = u->before;
			close(u->fd);
			free(u);
		} else {
			p = &u->before;
		}
	}
}

/* What of one write is lost, with all later ones to the same sector. `order`: 0 for the newest. */
static void take_back(const struct undo *u, long order, long all)
{
	for (size_t i = 0; i < u->len;) {
		const uint64_t sector = (uint64_t)(u->at + (off_t)i) / SECTOR;
		const size_t rest = SECTOR - (size_t)(u->at + (off_t)i) % SECTOR;
		const size_t n = rest < u->len - i ? rest : u->len - i;

		if (order < (long)(chance(u->ino, sector) % (uint64_t)(all + 1))) {
			syscall(SYS_pwrite64, u->fd, u->old + i, n, u->at + (off_t)i);
		}
		i += n;
	}
	if (order < (long)(chance(u->ino, UINT64_MAX) % (uint64_t)(all + 1))) {
		syscall(SYS_ftruncate, u->fd, u->size);
	}
}

static void cut(void)
{
	long all = 0, order = 0;

	for (const struct undo *u = newest; u; u = u->before) {
		all++;
	}
	for (const struct undo *u = newest; u; u = u->before) {
		take_back(u, order++, all);
	}
	syscall(SYS_kill, getpid(), SIGKILL);
}

/* Around a write: with the lock until `after`. The last one is made before the power goes. */
static int before(int fd, off_t at, size_t len)
{
	struct stat st;
	int saved = errno;

	if (!counts(fd, &st)) {
		errno = saved;
		return 0;
	}
	pthread_mutex_lock(&lock);
	remember(fd, &st, at, len);
	errno = saved;
	return 1;
}

static void after(int counted)
{
	if (counted) {
		if (++n_writes == setting("WEFT_CUT_AT")) {
			cut();
		}
		pthread_mutex_unlock(&lock);
	}
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
	int counted = before(fd, at, len);
	ssize_t rc = syscall(SYS_pwrite64, fd, bytes, len, at);

	after(counted);
	return rc;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	return pwrite64(fd, bytes, len, at);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	int counted = before(fd, syscall(SYS_lseek, fd, 0, SEEK_CUR), len);
	ssize_t rc = syscall(SYS_write, fd, bytes, len);

	after(counted);
	return rc;
}

int ftruncate64(int fd, off_t size)
{
	struct stat st;
	int counted = counts(fd, &st) && st.st_size > size &&
		      before(fd, size, (size_t)(st.st_size - size));
	int rc = (int)syscall(SYS_ftruncate, fd, size);

	after(counted);
	return rc;
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

static int sync_now(long call, int fd)
{
	struct stat st;
	int counted = counts(fd, &st), rc;

	if (!counted) {
		return (int)syscall(call, fd);
	}
	pthread_mutex_lock(&lock);
	rc = (int)syscall(call, fd);
	forget(&st);
	pthread_mutex_unlock(&lock);
	return rc;
}

int fsync(int fd)
{
	return sync_now(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return sync_now(SYS_fdatasync, fd);
}
