/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unix socket that a server listens on, and the file that names it. A file whose
 * server has died is replaced; one that a server answers on is left as it is.
 * Between asking and replacing no other server may come up: a lock file beside
 * the socket is held from before the question until the socket is removed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/rpc/private.h"

#define LOCK_NAME_MAX 128

static void lock_name(const char *path, char *out, size_t size)
{
	snprintf(out, size, "%s.lock", path);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Held by *fd. A lock on a file that its holder has removed since keeps out none. */
static int take_lock(const char *path, int *fd, struct err *err)
{
	char name[LOCK_NAME_MAX];
	struct stat held, named;
	int r;

	lock_name(path, name, sizeof(name));
	while ((r = file_lock(name, fd, err)) == 0) {
		if (fstat(*fd, &held) == 0 && stat(name, &named) == 0 &&
		    is_same_file(&held, &named)) {
			return 0;
		}
		close(*fd);
	}
	return r;
}

/* 0: no server answers there, and the file may go. */
static int find_server(const struct sockaddr_un *addr, struct err *err)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e = 0;

	if (fd < 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", addr->sun_path);
	}
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0) {
		e = errno;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	close(fd);
	switch (e) {
	case ENOENT:
	case ECONNREFUSED:
		return 0;
	case 0:
		return err_set(err, WEFT_ESTALE, "%s: process %d listens there already",
			       addr->sun_path, (int)peer.pid);
	case EAGAIN:
		return err_set(err, WEFT_ESTALE, "%s: another process listens there already",
			       addr->sun_path);
	default:
		return err_errno(err, WEFT_EIO, e, "%s", addr->sun_path);
	}
}

/* Removes what a server that died left behind, and nothing else. */
static int remove_stale(const struct sockaddr_un *addr, struct err *err)
{
	const char *path = addr->sun_path;
	struct stat st;
	int r;

	if (lstat(path, &st) != 0) {
		return errno == ENOENT ? 0 : err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	if (!S_ISSOCK(st.st_mode)) {
		return err_set(err, WEFT_EINVAL, "%s: exists and is not a socket", path);
	}
	r = find_server(addr, err);
	if (r == 0 && unlink(path) != 0 && errno != ENOENT) {
		r = err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	return r;
}

/* The socket. As it does not listen yet, no client gets in before the file has its mode. */
static int bind_socket(struct rpc_unix_socket *s, int mode, const struct sockaddr_un *addr,
		       int *out, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", s->path);
	}
	if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0 ||
	    lstat(s->path, &st) != 0) {
		err_errno(err, WEFT_EIO, errno, "%s", s->path);
		close(fd);
		return WEFT_EIO;
	}
	s->file = st;
	if (chmod(s->path, (mode_t)mode) != 0) {
		err_errno(err, WEFT_EIO, errno, "%s", s->path);
		close(fd);
		return WEFT_EIO;
	}
	*out = fd;
	return 0;
}

int rpc_unix_bind(struct rpc_unix_socket *s, const char *path, int mode, int *fd,
		  struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int r;

	s->lock_fd = -1;
	if (strlen(path) >= sizeof(addr.sun_path)) {
		return err_set(err, WEFT_EINVAL, "%s: socket path longer than %zu bytes", path,
			       sizeof(addr.sun_path) - 1);
	}
	strcpy(addr.sun_path, path);
	strcpy(s->path, path);
	r = take_lock(path, &s->lock_fd, err);
	if (r) {
		return r;
	}
	if ((r = remove_stale(&addr, err)) || (r = bind_socket(s, mode, &addr, fd, err))) {
		rpc_unix_remove(s);
	}
	return r;
}

void rpc_unix_remove(struct rpc_unix_socket *s)
{
	char name[LOCK_NAME_MAX];
	struct stat now;

	if (s->lock_fd < 0) {
		return;
	}
	if (s->file.st_ino && lstat(s->path, &now) == 0 && is_same_file(&now, &s->file)) {
		unlink(s->path);
	}
	lock_name(s->path, name, sizeof(name));
	unlink(name);
	close(s->lock_fd);
	s->lock_fd = -1;
}
