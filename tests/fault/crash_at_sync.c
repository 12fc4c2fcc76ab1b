/*
 * Preloaded into weftd by the crash tests: kills the process at its N-th
 * fsync or fdatasync, so that every durable step of a change is tried as the
 * last thing that happened. WEFT_CRASH_AT=2k-1 dies before the k-th sync,
 * 2k right after it. Counting starts when WEFT_CRASH_ARM names a file that
 * exists, so that start-up is not counted. With WEFT_CRASH_STOPS in its
 * environment it is stopped there instead, and can be continued.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
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

static int sync_through(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	const char *arm = getenv("WEFT_CRASH_ARM");
	int rc;

	if (arm && access(arm, F_OK) != 0) {
		return real(fd);
	}
	count++;
	maybe_die(2 * count - 1);
	rc = real(fd);
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
