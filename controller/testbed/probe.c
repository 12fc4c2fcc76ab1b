/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe frames and echo requests from all hosts of a testbed at once.
 *
 * Every host has one packet socket for all its netdevs; a frame carries the end
 * that sent it and the number of the run, and the kernel tells the netdev it
 * came in by. So one pass shows for every pair of ends how many frames arrived,
 * and frames of an earlier run that come late are not counted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/testbed/testbed.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/order.h"

#define NS_PER_MS 1000000
#define PING_ROUNDS 3

/* A host's netdevs by ifindex: 2 * end, one more for tx; -1: of no end. */
struct netdev_table {
	int n, *slot;
};

struct testbed_prober {
	struct testbed *t;
	struct pollfd *polls;	/* [n_hosts] */
	struct netdev_table *tables;	/* [n_hosts] */
	uint32_t run;			/* number of the present probe, in each
					 * frame of it */
	struct testbed_probe *out;	/* of the caller, while it runs */
	int cap_heard;			/* room in out->heard */
};

/* ---- sockets ---- */

/* Sockets that are not open yet: poll passes over a negative descriptor. */
static struct pollfd *polls_new(int n)
{
	struct pollfd *v = x_new((size_t)n + 1, sizeof(*v));

	for (int i = 0; i < n; i++) {
		v[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	}
	return v;
}

static void polls_free(struct pollfd *v, int n)
{
	for (int i = 0; v && i < n; i++) {
		if (v[i].fd >= 0) {
			close(v[i].fd);
		}
	}
	free(v);
}

/* The table grows with the interface numbers of the namespace, which start low. */
static void put_slot(struct netdev_table *t, int ifindex, int slot)
{
	if (ifindex >= t->n) {
		t->slot = x_grow(t->slot, (size_t)ifindex + 64, sizeof(*t->slot));
		while (t->n < ifindex + 64) {
			t->slot[t->n++] = -1;
		}
	}
	t->slot[ifindex] = slot;
}

/* A slot for each netdev of an end; ends without one get no frames. */
static void fill_tables(struct testbed_prober *p)
{
	for (int i = 0; i < p->t->n_ends; i++) {
		struct netdev_table *t = &p->tables[testbed_end(p->t->fabric, i).host];

		if (p->t->tx[i].ifindex) {
			put_slot(t, p->t->tx[i].ifindex, 2 * i + 1);
		}
		if (p->t->rx[i].ifindex) {
			put_slot(t, p->t->rx[i].ifindex, 2 * i);
		}
	}
}

/* One socket for all netdevs of a host; frames say where they came in. */
static int open_host(struct testbed_prober *p, int host, struct err *err)
{
	int fd, rc = host_frame_socket(p->t->hosts[host], &fd, err);

	p->polls[host].fd = rc ? -1 : fd;
	return rc;
}

static int open_hosts(struct testbed_prober *p, struct err *err)
{
	int n = p->t->fabric->n_hosts, rc = 0;

	p->polls = polls_new(n);
	p->tables = x_new((size_t)n + 1, sizeof(*p->tables));
	fill_tables(p);
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = open_host(p, i, err);
	}
	return rc;
}

int testbed_prober_new(struct testbed *t, struct testbed_prober **out, struct err *err)
{
	struct testbed_prober *p = x_new(1, sizeof(*p));
	int rc;

	*out = NULL;
	p->t = t;
	rc = open_hosts(p, err);
	if (rc) {
		testbed_prober_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

void testbed_prober_free(struct testbed_prober *p)
{
	if (!p) {
		return;
	}
	for (int i = 0; p->tables && i < p->t->fabric->n_hosts; i++) {
		free(p->tables[i].slot);
	}
	polls_free(p->polls, p->t->fabric->n_hosts);
	free(p->tables);
	free(p);
}

/* ---- frames ---- */

/* One frame from an end, on its transmit netdev. */
static void send_from(struct testbed_prober *p, int end)
{
	const struct host_frame frame = { p->run, (uint32_t)end };
	int host = testbed_end(p->t->fabric, end).host;

	/* A link that takes no frame now has not sent one. */
	p->out->sent[end] += host_frame_send(p->polls[host].fd, &p->t->tx[end], &frame);
}

/* Counts a frame for its pair of ends. O(pairs that were seen): few, as an end
 * is heard by one other unless fibres are wrong. */
static void note(struct testbed_prober *p, int from, int to, bool at_tx)
{
	struct testbed_probe *out = p->out;

	for (int i = 0; i < out->n_heard; i++) {
		struct testbed_heard *h = &out->heard[i];

		if (h->from == from && h->to == to && h->at_tx == at_tx) {
			h->received++;
			return;
		}
	}
	if (out->n_heard == p->cap_heard) {
		p->cap_heard = p->cap_heard ? 2 * p->cap_heard : 64;
		out->heard = x_grow(out->heard, (size_t)p->cap_heard, sizeof(*out->heard));
	}
	out->heard[out->n_heard++] = (struct testbed_heard){ from, to, at_tx, 1 };
}

/* All frames that wait at one host; *any is set when one was ours. */
static void receive(struct testbed_prober *p, int host, bool *any)
{
	const struct netdev_table *t = &p->tables[host];
	struct host_frame frame;
	int ifindex;

	while (host_frame_receive(p->polls[host].fd, &ifindex, &frame)) {
		int slot = ifindex < t->n ? t->slot[ifindex] : -1;

		if (slot >= 0 && frame.run == p->run && frame.from < (uint32_t)p->t->n_ends) {
			*any = true;
			note(p, (int)frame.from, slot / 2, slot & 1);
		}
	}
}

/* Takes what arrives within the time; returns after the first arrivals. */
static void listen_for(struct testbed_prober *p, int patience_ms, bool *any)
{
	int n = p->t->fabric->n_hosts;

	*any = false;
	if (poll(p->polls, (nfds_t)n, patience_ms) <= 0) {
		return;
	}
	for (int i = 0; i < n; i++) {
		if (p->polls[i].revents) {
			receive(p, i, any);
		}
	}
}

static void send_and_listen(struct testbed_prober *p, int64_t duration_ms, int64_t interval_ms,
			    const volatile bool *stop)
{
	int64_t next = clk_now_ns(), end = next + duration_ms * NS_PER_MS;
	bool any;

	do {
		int64_t wait;

		for (int i = 0; i < p->t->n_ends; i++) {
			if (p->t->tx[i].ifindex) {
				send_from(p, i);
			}
		}
		next += interval_ms * NS_PER_MS;
		while ((wait = next - clk_now_ns()) > 0 && next < end) {
			listen_for(p, (int)(wait / NS_PER_MS + 1), &any);
		}
		listen_for(p, 0, &any);
	} while (next < end && !(stop && *stop));
}

ORDER_BY(by_ends, struct testbed_heard, from, to, at_tx)

void testbed_probe(struct testbed_prober *p, int64_t duration_ms, int64_t interval_ms,
		   int patience_ms, const volatile bool *stop, struct testbed_probe *out)
{
	bool any = true;

	memset(out, 0, sizeof(*out));
	p->out = out;
	p->cap_heard = 0;
	/* What was sent before and comes late is not counted. */
	p->run = (uint32_t)clk_now_ns() ^ (uint32_t)getpid() << 16;
	out->sent = x_new((size_t)p->t->n_ends + 1, sizeof(*out->sent));
	send_and_listen(p, duration_ms, interval_ms, stop);
	while (any) {
		listen_for(p, patience_ms, &any);
	}
	if (out->n_heard) {
		qsort(out->heard, (size_t)out->n_heard, sizeof(*out->heard), by_ends);
	}
}

void testbed_probe_fini(struct testbed_probe *p)
{
	free(p->sent);
	free(p->heard);
	memset(p, 0, sizeof(*p));
}

/* ---- echo requests ---- */

struct pinger {
	struct testbed *t;
	struct pollfd *polls;	/* [n_hosts] */
	uint16_t id;			/* of our echo requests */
	bool *answered;			/* of the caller */
};

static uint16_t checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		sum += (uint32_t)data[i] << 8 | data[i + 1];
	}
	while (sum >> 16) {
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return htons((uint16_t)~sum);
}

static int pinger_init(struct pinger *p, struct err *err)
{
	int n = p->t->fabric->n_hosts, rc = 0, one_hop = 1;

	p->id = (uint16_t)(clk_now_ns() ^ getpid());
	p->polls = polls_new(n);
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = host_socket(p->t->hosts[i], AF_INET, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_ICMP,
				 &p->polls[i].fd, err);
		if (rc == 0 && setsockopt(p->polls[i].fd, IPPROTO_IP, IP_TTL,
					  &one_hop, sizeof(one_hop)) != 0) {
			rc = err_errno(err, WEFT_EIO, errno, "one hop");
		}
	}
	return rc;
}

static void ask(struct pinger *p, int from, int to)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr = { plan_host_address(to, 0) } };
	struct icmphdr h = { .type = ICMP_ECHO };

	h.un.echo.id = htons(p->id);
	h.un.echo.sequence = htons((uint16_t)to);
	h.checksum = checksum((const uint8_t *)&h, sizeof(h));
	/* Without a route there is no answer, which is what is asked. */
	(void)!sendto(p->polls[from].fd, &h, sizeof(h), 0, (struct sockaddr *)&at, sizeof(at));
}

static void take_answers(struct pinger *p, int host)
{
	uint8_t packet[512];
	struct icmphdr h;
	ssize_t len;

	while ((len = recv(p->polls[host].fd, packet, sizeof(packet), 0)) >= 0) {
		size_t head = (size_t)(packet[0] & 15) * 4;

		if (len < (ssize_t)(head + sizeof(h))) {
			continue;
		}
		memcpy(&h, packet + head, sizeof(h));
		if (h.type == ICMP_ECHOREPLY && h.un.echo.id == htons(p->id) &&
		    ntohs(h.un.echo.sequence) < p->t->fabric->n_hosts) {
			p->answered[host * p->t->fabric->n_hosts +
				    ntohs(h.un.echo.sequence)] = true;
		}
	}
}

int testbed_ping(struct testbed *t, int patience_ms, bool *answered, struct err *err)
{
	struct pinger p = { .t = t, .answered = answered };
	int n = t->fabric->n_hosts, rc = pinger_init(&p, err);

	memset(answered, 0, (size_t)n * (size_t)n);
	for (int round = 0; rc == 0 && round < PING_ROUNDS; round++) {
		for (int i = 0; i < n * n; i++) {
			if (i / n != i % n && !answered[i]) {
				ask(&p, i / n, i % n);
			}
		}
		while (poll(p.polls, (nfds_t)n, patience_ms) > 0) {
			for (int i = 0; i < n; i++) {
				take_answers(&p, i);
			}
		}
	}
	polls_free(p.polls, n);
	return rc;
}
