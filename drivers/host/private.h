/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the host side. */
#ifndef WEFT_DRIVERS_HOST_PRIVATE_H
#define WEFT_DRIVERS_HOST_PRIVATE_H

#include <netlink/netlink.h>

#include "drivers/host/host.h"

struct host_net {
	char name[HOST_NETNS_MAX];	/* "" the caller's own */
	int ns;				/* the namespace */
	struct nl_sock *sock;		/* requests */
	struct nl_sock *events;		/* link events, NULL: not watched */
	struct nl_sock *changes;	/* rules and links, the same */
	struct nl_sock *genl;		/* ethtool, NULL: not asked yet */
	int ethtool;			/* its family, negative: none */
};

/* Receives once on a socket with `valid` seeing what comes. What libnl
 * answers. */
int host_nl_receive(struct nl_sock *sock, nl_recvmsg_msg_cb_t valid, void *arg);

/* A socket in the session's namespace that receives the notifications of these
 * two groups (0: none), without waiting. */
int host_events_open(struct host_net *net, int group, int other,
		     struct nl_sock **out, struct err *err);
/* Reads what waits; WEFT_ELIMIT when some of it was lost. */
int host_events_read(struct host_net *net, struct nl_sock *sock,
		     nl_recvmsg_msg_cb_t valid, void *arg, struct err *err);

/* Error of a libnl call: rc is what it returned. */
int host_nl_err(struct err *err, int rc, const struct host_net *net, const char *what);

#endif
