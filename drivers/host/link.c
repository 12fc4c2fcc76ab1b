/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of a namespace: listing, making pairs of veths, setting up and down,
 * limiting what leaves, and events when one changes.
 *
 * Listing and events go through the same reader of RTM_NEWLINK messages, so
 * that an event shows what a list would. Requests are made by libnl's route
 * objects where they have what is needed.
 */
#include <errno.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <netlink/addr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/route/link.h>
#include <netlink/route/link/bridge.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/qdisc/tbf.h>
#include <netlink/route/rtnl.h>
#include <netlink/route/tc.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/host/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

/* What one reply or event adds to. */
struct reading {
	VEC(struct host_link) links;
	host_link_fn fn;
	void *arg;
};

static const char *operstate_name(uint8_t state)
{
	static const char *const names[] = {
		"unknown", "notpresent", "down", "lowerlayerdown", "testing",
		"dormant", "up",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

static uint32_t number(struct nlattr *a)
{
	return a ? nla_get_u32(a) : 0;
}

/* The kernel's attribute need not be aligned, nor as long as ours. */
static void read_errors(struct nlattr *a, struct host_link *l)
{
	struct rtnl_link_stats64 stats = { 0 };

	if (a) {
		memcpy(&stats, nla_data(a),
		       (size_t)nla_len(a) < sizeof(stats) ?
		       (size_t)nla_len(a) : sizeof(stats));
		l->rx_errors = stats.rx_errors;
		l->tx_errors = stats.tx_errors;
		l->tx_frames = stats.tx_packets;
		l->tx_bytes = stats.tx_bytes;
	}
}

static int on_link(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct reading *r = arg;
	struct nlattr *a[IFLA_MAX + 1];
	struct host_link l = { 0 };
	struct ifinfomsg *ifi;

	if ((head->nlmsg_type != RTM_NEWLINK && head->nlmsg_type != RTM_DELLINK) ||
	    nlmsg_parse(head, sizeof(*ifi), a, IFLA_MAX, NULL) < 0) {
		return NL_OK;
	}
	ifi = nlmsg_data(head);
	/* Bridges send events of their own about their ports. */
	if ((ifi->ifi_flags & IFF_LOOPBACK) || ifi->ifi_family != AF_UNSPEC || !a[IFLA_IFNAME]) {
		return NL_OK;
	}
	l.ifindex = ifi->ifi_index;
	nla_strlcpy(l.name, a[IFLA_IFNAME], sizeof(l.name));
	l.up = ifi->ifi_flags & IFF_UP;
	l.carrier = a[IFLA_CARRIER] && nla_get_u8(a[IFLA_CARRIER]);
	l.operstate = operstate_name(a[IFLA_OPERSTATE] ? nla_get_u8(a[IFLA_OPERSTATE]) : 0);
	l.carrier_changes = number(a[IFLA_CARRIER_CHANGES]);
	l.carrier_ups = number(a[IFLA_CARRIER_UP_COUNT]);
	l.carrier_downs = number(a[IFLA_CARRIER_DOWN_COUNT]);
	read_errors(a[IFLA_STATS64], &l);
	if (a[IFLA_ADDRESS] && nla_len(a[IFLA_ADDRESS]) == sizeof(l.mac)) {
		memcpy(l.mac, nla_data(a[IFLA_ADDRESS]), sizeof(l.mac));
	}
	l.gone = head->nlmsg_type == RTM_DELLINK;
	if (r->fn) {
		r->fn(&l, r->arg);
	} else {
		vec_push(&r->links, l);
	}
	return NL_OK;
}

ORDER_BY(by_ifindex, struct host_link, ifindex)

int host_links(struct host_net *net, struct host_link **links, int *n, struct err *err)
{
	struct reading r = { 0 };
	int rc = nl_rtgen_request(net->sock, RTM_GETLINK, AF_UNSPEC, NLM_F_DUMP);

	*links = NULL;
	*n = 0;
	if (rc >= 0) {
		rc = host_nl_receive(net->sock, on_link, &r);
	}
	if (rc < 0) {
		vec_fini(&r.links);
		return host_nl_err(err, rc, net, "links");
	}
	if (r.links.n) {
		qsort(r.links.v, r.links.n, sizeof(*r.links.v), by_ifindex);
	}
	*links = r.links.v;
	*n = (int)r.links.n;
	return 0;
}

/* ---- making ---- */

static void set_end(struct rtnl_link *l, const struct host_net *net,
		    const char *name, const uint8_t mac[6])
{
	struct nl_addr *addr;

	rtnl_link_set_name(l, name);
	rtnl_link_set_mtu(l, HOST_MTU);
	rtnl_link_set_ns_fd(l, net->ns);
	if (mac) {
		addr = x_have(nl_addr_build(AF_LLC, mac, 6));
		rtnl_link_set_addr(l, addr);
		nl_addr_put(addr);
	}
}

int host_veth_add(struct host_net *a, const char *name_a, const uint8_t mac_a[6],
		  struct host_net *b, const char *name_b, const uint8_t mac_b[6], struct err *err)
{
	struct rtnl_link *link = x_have(rtnl_link_veth_alloc());
	struct rtnl_link *peer = rtnl_link_veth_get_peer(link);
	int rc;

	set_end(link, a, name_a, mac_a);
	set_end(peer, b, name_b, mac_b);
	rtnl_link_put(peer);
	rc = rtnl_link_add(a->sock, link, NLM_F_CREATE | NLM_F_EXCL);
	rtnl_link_veth_release(link);
	return rc ? host_nl_err(err, rc, a, name_a) : 0;
}

int host_bridge_add(struct host_net *net, const char *name, struct err *err)
{
	struct rtnl_link *link = x_have(rtnl_link_bridge_alloc());
	int rc;

	rtnl_link_set_name(link, name);
	rc = rtnl_link_add(net->sock, link, NLM_F_CREATE | NLM_F_EXCL);
	rtnl_link_put(link);
	return rc ? host_nl_err(err, rc, net, name) : 0;
}

int host_bridge_join(struct host_net *net, int bridge, int ifindex, struct err *err)
{
	int rc = rtnl_link_enslave_ifindex(net->sock, bridge, ifindex);

	return rc ? host_nl_err(err, rc, net, "bridge") : 0;
}

int host_link_set(struct host_net *net, int ifindex, bool up, struct err *err)
{
	struct rtnl_link *old = x_have(rtnl_link_alloc()), *new = x_have(rtnl_link_alloc());
	int rc;

	rtnl_link_set_ifindex(old, ifindex);
	if (up) {
		rtnl_link_set_flags(new, IFF_UP);
	} else {
		rtnl_link_unset_flags(new, IFF_UP);
	}
	rc = rtnl_link_change(net->sock, old, new, 0);
	rtnl_link_put(old);
	rtnl_link_put(new);
	return rc ? host_nl_err(err, rc, net, up ? "link up" : "link down") : 0;
}

/* Of a full frame: Ethernet's header counts for tbf, and those of IP and TCP, with its time
 * stamps, carry nothing. */
#define FRAME (HOST_MTU + ETH_HLEN)
#define FRAME_AND_SOME (FRAME + FRAME / 16)
#define PAYLOAD (HOST_MTU - 20 - 32)

int host_rate_set(struct host_net *net, int ifindex, int64_t bps, struct err *err)
{
	struct rtnl_qdisc *q;
	int64_t bytes, burst;
	int rc;

	if (bps <= 0 || bps > HOST_MAX_RATE_BPS) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "%lld bit/s: links are limited to rates from 1 "
			       "to %lld bit/s", (long long)bps,
			       (long long)HOST_MAX_RATE_BPS);
	}
	q = x_have(rtnl_qdisc_alloc());
	bytes = bps / 8 * FRAME / PAYLOAD;
	/* The kernel keeps it as a time, rounded: a full frame has to fit in any case. */
	burst = bytes / 10000 > FRAME_AND_SOME ? bytes / 10000 : FRAME_AND_SOME;
	rtnl_tc_set_ifindex(TC_CAST(q), ifindex);
	rtnl_tc_set_parent(TC_CAST(q), TC_H_ROOT);
	rtnl_tc_set_handle(TC_CAST(q), TC_HANDLE(1, 0));
	rc = rtnl_tc_set_kind(TC_CAST(q), "tbf");
	if (rc == 0) {
		rtnl_qdisc_tbf_set_rate(q, (int)(bytes ? bytes : 1), (int)burst, 0);
		rtnl_qdisc_tbf_set_limit(q, HOST_QUEUE);
		rc = rtnl_qdisc_add(net->sock, q, NLM_F_CREATE | NLM_F_REPLACE);
	}
	rtnl_qdisc_put(q);
	return rc ? host_nl_err(err, rc, net, "rate") : 0;
}

static int on_queue(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct nlattr *a[TCA_MAX + 1];
	struct tc_stats stats = { 0 };
	uint64_t *drops = arg;

	if (head->nlmsg_type == RTM_NEWQDISC &&
	    nlmsg_parse(head, sizeof(struct tcmsg), a, TCA_MAX, NULL) >= 0 && a[TCA_STATS]) {
		memcpy(&stats, nla_data(a[TCA_STATS]),
		       (size_t)nla_len(a[TCA_STATS]) < sizeof(stats) ?
		       (size_t)nla_len(a[TCA_STATS]) : sizeof(stats));
		*drops += stats.drops;
	}
	return NL_OK;
}

int host_queue_drops(struct host_net *net, uint64_t *drops, struct err *err)
{
	struct tcmsg tc = { .tcm_family = AF_UNSPEC };
	int rc = nl_send_simple(net->sock, RTM_GETQDISC, NLM_F_DUMP, &tc, sizeof(tc));

	*drops = 0;
	if (rc >= 0) {
		rc = host_nl_receive(net->sock, on_queue, drops);
	}
	return rc < 0 ? host_nl_err(err, rc, net, "queues") : 0;
}

/* ---- events ---- */

int host_events_open(struct host_net *net, int group, int other,
		     struct nl_sock **out, struct err *err)
{
	struct nl_sock *sock = x_have(nl_socket_alloc());
	int back, rc;

	nl_socket_disable_seq_check(sock);
	rc = host_enter(net, &back, err);
	if (rc) {
		nl_socket_free(sock);
		return rc;
	}
	rc = nl_connect(sock, NETLINK_ROUTE);
	host_leave(back);
	if (rc == 0) {
		rc = nl_socket_add_memberships(sock, group, other, 0);
	}
	if (rc == 0) {
		rc = nl_socket_set_nonblocking(sock);
	}
	if (rc) {
		nl_socket_free(sock);
		return host_nl_err(err, rc, net, "events");
	}
	*out = sock;
	return 0;
}

int host_events_read(struct host_net *net, struct nl_sock *sock,
		     nl_recvmsg_msg_cb_t valid, void *arg, struct err *err)
{
	int rc;

	do {
		rc = host_nl_receive(sock, valid, arg);
	} while (rc >= 0);
	if (rc == -NLE_AGAIN) {
		return 0;
	}
	if (rc == -NLE_NOMEM) {
		return err_set(err, WEFT_ELIMIT, "%s: events were lost", net->name);
	}
	return host_nl_err(err, rc, net, "events");
}

int host_watch(struct host_net *net, int *fd, struct err *err)
{
	struct nl_sock *sock;
	int rc = host_events_open(net, RTNLGRP_LINK, 0, &sock, err);

	if (rc) {
		return rc;
	}
	nl_socket_free(net->events);
	net->events = sock;
	*fd = nl_socket_get_fd(sock);
	return 0;
}

int host_watch_read(struct host_net *net, host_link_fn fn, void *arg, struct err *err)
{
	struct reading r = { .fn = fn, .arg = arg };

	return host_events_read(net, net->events, on_link, &r, err);
}
