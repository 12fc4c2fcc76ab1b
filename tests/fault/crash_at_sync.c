/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into weftd by the crash tests: kills the process at its N-th
 * fsync or fdatasync, so that every durable step of a change is tried as the
 * last thing that happened. WEFT_CRASH_AT=2k-1 dies before the k-th sync,
 * 2k right after it. Counting starts when WEFT_CRASH_ARM names a file that
 * exists, so that start-up is not counted. With WEFT_CRASH_STOPS in its
 * environment it is stopped there instead, and can be continued. With WEFT_CRASH_SENDS
 * messages over TCP (to etcd) count as well. WEFT_CRASH_COUNT names a file that has the number of
 * moments so far.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int fsync(int fd);
int fdatasync(int fd);

static int count;

static void maybe_die(int moment)
{
	const char *at = getenv("WEFT_CRASH_AT"), *arm = getenv("WEFT_CRASH_ARM");

	if (at && atoi(at) == moment && (!arm || access(arm, F_OK) == 0)) {
		kill(getpid(), getenv("WEFT_CRASH_STOPS") ? SIGSTOP : SIGKILL);
	}
}

static int is_armed(void)
{
	const char *arm = getenv("WEFT_CRASH_ARM");

	return !arm || access(arm, F_OK) == 0;
}

/* A file that can be read at any time. */
static void tell_count(void)
{
	const char *name = getenv("WEFT_CRASH_COUNT");
	FILE *f = name ? fopen(name, "w") : NULL;

	if (f) {
		fprintf(f, "%d\n", 2 * count);
		fclose(f);
	}
}

static int sync_through(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	int rc;

	if (!is_armed()) {
		return real(fd);
	}
	count++;
	tell_count();
	maybe_die(2 * count - 1);
	rc = real(fd);
	maybe_die(2 * count);
	return rc;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int) =
		(ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
	struct sockaddr_storage to;
	socklen_t size = sizeof(to);
	ssize_t rc;

	if (!getenv("WEFT_CRASH_SENDS") || !is_armed() ||
	    getpeername(fd, (struct sockaddr *)&to, &size) || to.ss_family == AF_UNIX) {
		return real(fd, bytes, len, flags);
	}
	count++;
	tell_count();
	maybe_die(2 * count - 1);
	rc = real(fd, bytes, len, flags);
	maybe_die(2 * count);
	return rc;
}

int fsync(int fd)
{
	return sync_through("fsync", fd);
}

int fdatasync(int fd)
{
	return sync_through("fdatasync", fd);
}
