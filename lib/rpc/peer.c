/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a unix socket, in words. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/rpc/rpc.h"

/* Names are asked for again after so long; some hosts ask a directory service,
 * which no flood of calls must wait for. */
#define NAMES_KEPT 16
#define NAMES_KEPT_S 300

struct kept_name {
	bool used;
	uid_t uid;
	time_t at;		/* monotonic, s */
	char name[64];		/* "": it has none */
};

/* *out: the user's name, or "". */
static void look_up(uid_t uid, char *out, size_t size)
{
	char buf[4096];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) == 0 && found) {
		snprintf(out, size, "%s", found->pw_name);
	} else {
		out[0] = '\0';
	}
}

const char *rpc_user_name(uid_t uid, char *buf, size_t size)
{
	static _Thread_local struct kept_name kept[NAMES_KEPT];
	struct kept_name *k = &kept[uid % NAMES_KEPT];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!k->used || k->uid != uid || now.tv_sec - k->at >= NAMES_KEPT_S) {
		*k = (struct kept_name){ .used = true, .uid = uid, .at = now.tv_sec };
		look_up(uid, k->name, sizeof(k->name));
	}
	if (k->name[0]) {
		snprintf(buf, size, "%s", k->name);
	} else {
		snprintf(buf, size, "uid %u", (unsigned)uid);
	}
	return buf;
}

/* What the process calls itself, as the kernel has it; "" when it is gone or
 * may not be seen. It chooses that, so only plain characters stay. */
static void read_command(pid_t pid, char *out, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._+-";
	char path[64];
	ssize_t n;
	int fd;

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return;
	}
	n = read(fd, out, size - 1);
	close(fd);
	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	for (char *p = out + strspn(out, plain); *p; p += strspn(p, plain)) {
		*p = '_';
	}
}

const char *rpc_peer_text(const struct rpc_peer *peer, char *buf, size_t size)
{
	char user[64], command[32];

	if (peer->remote) {
		snprintf(buf, size, "%s", peer->name);
		return buf;
	}
	rpc_user_name(peer->uid, user, sizeof(user));
	read_command(peer->pid, command, sizeof(command));
	snprintf(buf, size, "%s (%s%sprocess %d)", user, command, command[0] ? ", " : "",
		 (int)peer->pid);
	return buf;
}
