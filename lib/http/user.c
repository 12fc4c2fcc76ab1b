/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a connection is. TCP does not tell the user, but the kernel has it of the other socket. */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/http/private.h"

#define FROM_ADDRESS (UINT64_C(1) << 32)	/* above every user */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 about;
};

/* Address and port as the kernel has them. O(1). */
static void put_end(const struct sockaddr_storage *a, __be16 *port, __be32 addr[4])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->ss_family == AF_INET) {
		*port = v4->sin_port;
		memcpy(addr, &v4->sin_addr, sizeof(v4->sin_addr));
	} else {
		*port = v6->sin6_port;
		memcpy(addr, &v6->sin6_addr, sizeof(v6->sin6_addr));
	}
}

/* The answer about a socket that a process has open. */
static bool take_user(const char *answer, size_t len, uint64_t *user)
{
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	const struct inet_diag_msg *m;

	if (len < NLMSG_LENGTH(sizeof(*m)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY) {
		return false;
	}
	m = NLMSG_DATA(head);
	*user = m->idiag_uid;
	/* One that is being closed says root's. */
	return m->idiag_state == TCP_ESTABLISHED && m->idiag_inode != 0;
}

static bool ask_kernel(const struct sockaddr_storage *self, const struct sockaddr_storage *peer,
		       uint64_t *user)
{
	struct question q = {
		.head = { .nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.about = { .sdiag_family = (uint8_t)peer->ss_family,
			   .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
			   .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	_Alignas(struct nlmsghdr) char answer[1024];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	ssize_t n = -1;

	if (fd < 0) {
		return false;
	}
	put_end(peer, &q.about.id.idiag_sport, q.about.id.idiag_src);
	put_end(self, &q.about.id.idiag_dport, q.about.id.idiag_dst);
	/* The kernel answers within the call. */
	if (send(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		n = recv(fd, answer, sizeof(answer), 0);
	}
	close(fd);
	return n > 0 && take_user(answer, (size_t)n, user);
}

uint64_t http_owner(int fd)
{
	struct sockaddr_storage self = { 0 }, peer = { 0 };
	socklen_t len = sizeof(self), peer_len = sizeof(peer);
	__be32 addr[4] = { 0 };
	__be16 port;
	uint64_t user;

	if (getsockname(fd, (struct sockaddr *)&self, &len) ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len)) {
		return FROM_ADDRESS;
	}
	if (ask_kernel(&self, &peer, &user)) {
		return user;
	}
	put_end(&peer, &port, addr);
	return FROM_ADDRESS + (addr[0] ^ addr[1] ^ addr[2] ^ addr[3]);
}
