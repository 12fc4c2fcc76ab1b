/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces by name, as ip-netns(8) keeps them: a file in /run/netns
 * that the namespace is mounted on. And sessions inside them.
 *
 * A thread enters a namespace to open sockets there and comes back before the
 * call returns; a socket stays in the namespace it was opened in. If it could
 * not come back the process ends, since all that follows would happen in the
 * wrong place.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <netlink/errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/host/private.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"

#define SELF "/proc/thread-self/ns/net"
#define PATH_SIZE (sizeof(HOST_NETNS_DIR) + HOST_NETNS_MAX + 2)

static int code_of(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
		return WEFT_EDENIED;
	case EINVAL:
	case ENOSYS:
		return WEFT_EUNSUPPORTED;
	case ENOENT:
	case ENODEV:
		return WEFT_EUNAVAIL;
	default:
		return WEFT_EIO;
	}
}

static int path_of(const char *name, char path[PATH_SIZE], struct err *err)
{
	if (!name[0] || strlen(name) >= HOST_NETNS_MAX || strchr(name, '/')) {
		return err_set(err, WEFT_EINVAL, "'%.80s' is no name of a network namespace", name);
	}
	snprintf(path, PATH_SIZE, HOST_NETNS_DIR "/%s", name);
	return 0;
}

/* Back to where host_enter came from. A thread that stayed behind in another
 * namespace would do its next work there, so this must not fail quietly. */
void host_leave(int back)
{
	if (setns(back, CLONE_NEWNET) != 0) {
		abort();
	}
	close(back);
}

/* Binds a namespace that this thread makes for the purpose to path. */
static int bind_new(const char *path, struct err *err)
{
	int back = open(SELF, O_RDONLY | O_CLOEXEC), rc = 0;

	if (back < 0) {
		return err_errno(err, WEFT_EIO, errno, SELF);
	}
	if (unshare(CLONE_NEWNET) != 0) {
		rc = err_errno(err, code_of(errno), errno, "network namespace");
		close(back);
		return rc;
	}
	if (mount(SELF, path, "none", MS_BIND, NULL) != 0) {
		rc = err_errno(err, code_of(errno), errno, "%s", path);
	}
	host_leave(back);
	return rc;
}

/*
 * The folder as iproute2 has it: a mount of its own, and shared. It would make it so at
 * its first namespace, mounting the folder over all mounts in it, and those of
 * before could not be removed any more.
 */
static int share_folder(struct err *err)
{
	int lock, rc = 0;

	if (mkdir(HOST_NETNS_DIR, 0755) != 0 && errno != EEXIST) {
		return err_errno(err, code_of(errno), errno, HOST_NETNS_DIR);
	}
	lock = open(HOST_NETNS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0) {
		return err_errno(err, code_of(errno), errno, HOST_NETNS_DIR);
	}
	/* ip-netns(8) takes it too, so that only one of us mounts. */
	flock(lock, LOCK_EX);
	/* EINVAL: it is no mount yet. */
	if (mount("", HOST_NETNS_DIR, "none", MS_SHARED | MS_REC, NULL) != 0 &&
	    (errno != EINVAL ||
	     mount(HOST_NETNS_DIR, HOST_NETNS_DIR, "none", MS_BIND | MS_REC, NULL) != 0 ||
	     mount("", HOST_NETNS_DIR, "none", MS_SHARED | MS_REC, NULL) != 0)) {
		rc = err_errno(err, code_of(errno), errno, HOST_NETNS_DIR);
	}
	close(lock);
	return rc;
}

int host_netns_add(const char *name, struct err *err)
{
	char path[PATH_SIZE];
	int rc = path_of(name, path, err), fd;

	if (rc == 0) {
		rc = share_folder(err);
	}
	if (rc) {
		return rc;
	}
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0) {
		return err_errno(err, errno == EEXIST ? WEFT_ESTALE :
				 code_of(errno), errno, "%s", path);
	}
	close(fd);
	rc = bind_new(path, err);
	if (rc) {
		unlink(path);
	}
	return rc;
}

int host_netns_del(const char *name, struct err *err)
{
	char path[PATH_SIZE];
	int rc = path_of(name, path, err);

	if (rc) {
		return rc;
	}
	/* Whoever was killed while making it left a plain file. */
	if (umount2(path, MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT) {
		return err_errno(err, code_of(errno), errno, "%s", path);
	}
	if (unlink(path) != 0 && errno != ENOENT) {
		return err_errno(err, code_of(errno), errno, "%s", path);
	}
	return 0;
}

void host_netns_list_free(char **names, int n)
{
	for (int i = 0; i < n; i++) {
		free(names[i]);
	}
	free(names);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_name(char ***names, int *n, const char *name)
{
	char **more = x_grow(*names, (size_t)*n + 1, sizeof(**names));

	*names = more;
	more[(*n)++] = x_dup(name);
}

int host_netns_list(const char *prefix, char ***names, int *n, struct err *err)
{
	DIR *dir = opendir(HOST_NETNS_DIR);
	struct dirent *e;

	*names = NULL;
	*n = 0;
	if (!dir) {
		return errno == ENOENT ? 0 : err_errno(err, code_of(errno), errno, HOST_NETNS_DIR);
	}
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
		    strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0) {
			add_name(names, n, e->d_name);
		}
	}
	closedir(dir);
	if (*n) {
		qsort(*names, *n, sizeof(**names), by_text);
	}
	return 0;
}

int host_netns_epoch(const char *name, char *buf, size_t size, struct err *err)
{
	char path[PATH_SIZE], *boot = NULL;
	struct stat st;
	size_t len;
	int rc = path_of(name, path, err);

	if (rc) {
		return rc;
	}
	if (stat(path, &st) != 0) {
		return err_errno(err, code_of(errno), errno, "%s", path);
	}
	rc = file_read("/proc/sys/kernel/random/boot_id", 64, &boot, &len, err);
	if (rc == 0) {
		/* The inode alone may come again; the file under the mount
		 * is made with it and its time does not. */
		snprintf(buf, size, "%.8s-%llu-%lld.%09ld", boot, (unsigned long long)st.st_ino,
			 (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	}
	free(boot);
	return rc;
}

/* ---- sessions ---- */

/* The code for what a libnl call returned. */
static int code_of_nl(int rc)
{
	switch (-rc) {
	case NLE_PERM:
	case NLE_NOACCESS:
		return WEFT_EDENIED;
	case NLE_EXIST:
		return WEFT_ESTALE;
	case NLE_OBJ_NOTFOUND:
	case NLE_NODEV:
		return WEFT_ENOTFOUND;
	case NLE_OPNOTSUPP:
		return WEFT_EUNSUPPORTED;
	case NLE_NOMEM:	/* the kernel's, or a socket's */
		return WEFT_ELIMIT;
	default:
		return WEFT_EDEVICE;
	}
}

int host_nl_err(struct err *err, int rc, const struct host_net *net, const char *what)
{
	return err_set(err, code_of_nl(rc), "%s%s%s: %s", net->name,
		       net->name[0] ? ": " : "", what, nl_geterror(rc));
}

int host_nl_receive(struct nl_sock *sock, nl_recvmsg_msg_cb_t valid, void *arg)
{
	struct nl_cb *own = nl_socket_get_cb(sock);	/* a reference */
	struct nl_cb *cb = x_have(nl_cb_clone(own));
	int rc;

	nl_cb_put(own);
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, valid, arg);
	rc = nl_recvmsgs(sock, cb);
	nl_cb_put(cb);
	return rc;
}

int host_enter(const struct host_net *net, int *back, struct err *err)
{
	*back = open(SELF, O_RDONLY | O_CLOEXEC);
	if (*back < 0) {
		return err_errno(err, WEFT_EIO, errno, SELF);
	}
	if (setns(net->ns, CLONE_NEWNET) != 0) {
		int rc = err_errno(err, code_of(errno), errno, "namespace %s", net->name);

		close(*back);
		return rc;
	}
	return 0;
}

static int connect_in(struct host_net *net, struct err *err)
{
	int back, rc = host_enter(net, &back, err);

	if (rc) {
		return rc;
	}
	net->sock = x_have(nl_socket_alloc());
	rc = nl_connect(net->sock, NETLINK_ROUTE);
	host_leave(back);
	return rc ? host_nl_err(err, rc, net, "netlink") : 0;
}

int host_open(const char *name, struct host_net **out, struct err *err)
{
	struct host_net *net = x_new(1, sizeof(*net));
	char path[PATH_SIZE] = SELF;
	int rc = 0;

	*out = NULL;
	net->ns = -1;
	if (name) {
		rc = path_of(name, path, err);
	}
	if (rc == 0) {
		snprintf(net->name, sizeof(net->name), "%s", name ? name : "");
		net->ns = open(path, O_RDONLY | O_CLOEXEC);
		rc = net->ns >= 0 ? connect_in(net, err) :
		     err_errno(err, code_of(errno), errno, "namespace %s",
			       net->name);
	}
	if (rc) {
		host_close(net);
		return rc;
	}
	*out = net;
	return 0;
}

void host_close(struct host_net *net)
{
	if (!net) {
		return;
	}
	nl_socket_free(net->sock);
	nl_socket_free(net->events);
	nl_socket_free(net->changes);
	nl_socket_free(net->genl);
	if (net->ns >= 0) {
		close(net->ns);
	}
	free(net);
}

int host_socket(struct host_net *net, int domain, int type, int protocol, int *fd, struct err *err)
{
	int back, rc = host_enter(net, &back, err), errnum;

	if (rc) {
		return rc;
	}
	*fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	errnum = errno;
	host_leave(back);
	return *fd >= 0 ? 0 : err_errno(err, code_of(errnum), errnum, "socket in %s", net->name);
}

int host_sysctl(struct host_net *net, const char *name, const char *value, struct err *err)
{
	char path[256];
	int back, fd, errnum, rc = host_enter(net, &back, err);
	ssize_t n = -1;

	if (rc) {
		return rc;
	}
	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = write(fd, value, strlen(value));
	}
	errnum = errno;
	if (fd >= 0) {
		close(fd);
	}
	host_leave(back);
	return n == (ssize_t)strlen(value) ? 0 :
	       err_errno(err, code_of(errnum), errnum, "%s", path);
}
