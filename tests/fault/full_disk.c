/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into weftd by tests/fault/full_disk.sh: while the file that
 * WEFT_FULL names exists, the disk takes as many more writes as the number
 * in it says, and then has no space. Only what the store uses is seen:
 * writing at an offset and growing by truncation.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at);
int ftruncate64(int fd, off64_t len);

static bool is_full(void)
{
	static int taken;
	const char *path = getenv("WEFT_FULL");
	FILE *f = path ? fopen(path, "re") : NULL;
	int most = 0;

	if (!f) {
		taken = 0;
		return false;
	}
	if (fscanf(f, "%d", &most) != 1) {
		most = 0;
	}
	fclose(f);
	return taken++ >= most;
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) =
		(ssize_t (*)(int, const void *, size_t, off64_t))
		dlsym(RTLD_NEXT, "pwrite64");

	if (is_full()) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, data, n, at);
}

int ftruncate64(int fd, off64_t len)
{
	int (*real)(int, off64_t) = (int (*)(int, off64_t))
		dlsym(RTLD_NEXT, "ftruncate64");

	if (len > lseek(fd, 0, SEEK_END) && is_full()) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, len);
}
