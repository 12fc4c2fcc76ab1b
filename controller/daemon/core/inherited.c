/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that a service manager holds for weftd, by its protocol of file
 * descriptors (sd_listen_fds(3)): from 3 on, LISTEN_FDS of them, for the
 * process LISTEN_PID. The manager keeps it while weftd restarts, and who
 * connects meanwhile waits instead of being refused. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/daemon/core/core.h"

#define FIRST_FD 3

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

/* Its path, for messages and for other controllers. */
static void name_of(int fd, char *path, size_t size)
{
	struct sockaddr_un addr = { 0 };
	socklen_t len = sizeof(addr) - 1;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && addr.sun_path[0]) {
		snprintf(path, size, "%s", addr.sun_path);
	} else {
		snprintf(path, size, "an inherited socket without a path");
	}
}

/* How many descriptors the service manager has given to this process. */
static long n_given(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	bool ours = pid && count && strtol(pid, NULL, 10) == (long)getpid();

	return ours ? strtol(count, NULL, 10) : 0;
}

void inherited_close_others(void)
{
	long n = n_given();

	if (n >= 0 && n <= INT_MAX - FIRST_FD) {
		close_range((unsigned int)(FIRST_FD + n), ~0U, 0);
	}
}

int inherited_socket(int *out, char *path, size_t size, struct err *err)
{
	long n = n_given();

	*out = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (n == 0) {
		return 0;
	}
	if (n != 1) {
		return err_set(err, WEFT_EUSAGE, "LISTEN_FDS is %ld: weftd takes one socket", n);
	}
	if (option_of(FIRST_FD, SO_DOMAIN) != AF_UNIX ||
	    option_of(FIRST_FD, SO_TYPE) != SOCK_STREAM ||
	    option_of(FIRST_FD, SO_ACCEPTCONN) != 1) {
		return err_set(err, WEFT_EUSAGE, "LISTEN_FDS: file descriptor %d is no unix "
			       "stream socket that listens", FIRST_FD);
	}
	if (fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) != 0) {
		return err_errno(err, WEFT_EIO, errno, "file descriptor %d", FIRST_FD);
	}
	name_of(FIRST_FD, path, size);
	*out = FIRST_FD;
	return 0;
}
