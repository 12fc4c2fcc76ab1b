/* SPDX-License-Identifier: Apache-2.0 */
/* Root becomes another user before anything is read or listened to. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller/daemon/core/core.h"

/* Capabilities of network namespaces: entering them, and what is in them. */
#define NETLINK_CAPS ((1U << CAP_NET_ADMIN) | (1U << CAP_SYS_ADMIN))

/* A folder that is missing is made and belongs to the user; one that is there
 * must do as it is. */
static int make_folder(const char *path, mode_t mode, const struct passwd *pw, struct err *err)
{
	if (mkdir(path, mode) != 0) {
		return errno == EEXIST ? 0
				       : err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	if (chown(path, pw->pw_uid, pw->pw_gid) != 0) {
		return err_errno(err, WEFT_EIO, errno, "%s", path);
	}
	return 0;
}

static int make_folders(const char *state_dir, const char *socket,
			const struct passwd *pw, struct err *err)
{
	const char *slash = strrchr(socket, '/');
	char folder[512];
	int r = make_folder(state_dir, 0700, pw, err);

	if (r || !slash || slash == socket) {
		return r;
	}
	if (snprintf(folder, sizeof(folder), "%.*s", (int)(slash - socket),
		     socket) >= (int)sizeof(folder)) {
		return err_set(err, WEFT_EINVAL, "--socket: too long");
	}
	return make_folder(folder, 0755, pw, err);
}

/* The capabilities of this thread, which is the only one yet. */
static int set_caps(uint32_t caps)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {
		{ .effective = caps, .permitted = caps },
	};

	return (int)syscall(SYS_capset, &head, data);
}

void privileges_give_up(void)
{
	(void)set_caps(0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* In this order: groups and user while root may still, capabilities after, and
 * last that no program may give any back. */
static int switch_user(const struct passwd *pw, bool netlink)
{
	return (netlink && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)) ||
	       initgroups(pw->pw_name, pw->pw_gid) || setgid(pw->pw_gid) ||
	       setuid(pw->pw_uid) || set_caps(netlink ? NETLINK_CAPS : 0) ||
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : 0;
}

int privileges_drop(const char *user, bool netlink, const char *state_dir,
		    const char *socket, struct err *err)
{
	struct passwd *pw;
	int r;

	errno = 0;
	pw = getpwnam(user);
	if (!pw) {
		return err_set(err, WEFT_EUSAGE, "--user: there is no user "
			       "\"%s\"", user);
	}
	if (geteuid() != 0) {
		return err_set(err, WEFT_EDENIED, "--user: only root can "
			       "become another user");
	}
	r = make_folders(state_dir, socket, pw, err);
	if (r == 0 && switch_user(pw, netlink)) {
		r = err_errno(err, WEFT_EDENIED, errno, "--user %s", user);
	}
	if (r == 0 && pw->pw_uid != 0 && setuid(0) == 0) {
		r = err_set(err, WEFT_EDENIED, "--user %s: root is still "
			    "within reach", user);
	}
	return r;
}
