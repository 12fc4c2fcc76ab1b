/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe frames: a raw Ethernet frame with a mark, the round that it belongs
 * to, and who sent it. They show which netdev is cabled to which, without
 * addresses on either. Contracts are in host.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/host/private.h"

#define TYPE 0x88b5	/* local experiments, IEEE 802 */
#define MAGIC 0x77656674u
#define FRAME_LEN 60
#define HEAD_LEN 14
#define SOCKET_BYTES (4 << 20)	/* of frames that wait */

/* In network byte order. */
struct payload {
	uint32_t magic, run, from;
};

int host_frame_socket(struct host_net *net, int *fd, struct err *err)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(TYPE) };
	int bytes = SOCKET_BYTES;
	int rc = host_socket(net, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0, fd, err);

	if (rc) {
		return rc;
	}
	/* Without the right to it the usual size must do. */
	(void)setsockopt(*fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	if (bind(*fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		rc = err_errno(err, WEFT_EIO, errno, "frames of %s", net->name);
		close(*fd);
	}
	return rc;
}

bool host_frame_send(int fd, const struct host_link *by, const struct host_frame *f)
{
	uint8_t frame[FRAME_LEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct payload p = { htonl(MAGIC), htonl(f->run), htonl(f->from) };
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(TYPE),
				  .sll_ifindex = by->ifindex };

	memcpy(frame + 6, by->mac, 6);
	frame[12] = TYPE >> 8;
	frame[13] = TYPE & 0xff;
	memcpy(frame + HEAD_LEN, &p, sizeof(p));
	return sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&at,
		      sizeof(at)) == (ssize_t)sizeof(frame);
}

bool host_frame_receive(int fd, int *ifindex, struct host_frame *f)
{
	struct sockaddr_ll by;
	uint8_t frame[256];
	struct payload p;
	ssize_t len;

	do {
		socklen_t size = sizeof(by);

		len = recvfrom(fd, frame, sizeof(frame), 0, (struct sockaddr *)&by, &size);
		if (len < 0) {
			return false;
		}
		memset(&p, 0, sizeof(p));
		if (len >= (ssize_t)(HEAD_LEN + sizeof(p))) {
			memcpy(&p, frame + HEAD_LEN, sizeof(p));
		}
	} while (ntohl(p.magic) != MAGIC);
	*ifindex = by.sll_ifindex;
	f->run = ntohl(p.run);
	f->from = ntohl(p.from);
	return true;
}
