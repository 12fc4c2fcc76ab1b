/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects: u32 filters that match everything, with a mirred action, on the
 * ingress of a link; see host.h. The filter's handle is always ours to
 * choose: with a handle of the kernel's choice a second rule is no error and
 * stays behind unseen.
 */
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_mirred.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/route/act/mirred.h>
#include <netlink/route/action.h>
#include <netlink/route/classifier.h>
#include <netlink/route/cls/u32.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/tc.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/host/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

#define INGRESS 0xffff0000u	/* handle ffff:0 */
#define TABLE 0x800	/* u32's first hash table */
#define NODE 0x800	/* our rule in it */
#define PRIO 1

int host_ingress_add(struct host_net *net, int ifindex, struct err *err)
{
	struct rtnl_qdisc *q = x_have(rtnl_qdisc_alloc());
	int rc;

	rtnl_tc_set_ifindex(TC_CAST(q), ifindex);
	rtnl_tc_set_parent(TC_CAST(q), TC_H_INGRESS);
	rtnl_tc_set_handle(TC_CAST(q), INGRESS);
	rc = rtnl_tc_set_kind(TC_CAST(q), "ingress");
	if (rc == 0) {
		rc = rtnl_qdisc_add(net->sock, q, NLM_F_CREATE | NLM_F_EXCL);
	}
	rtnl_qdisc_put(q);
	return rc && rc != -NLE_EXIST ? host_nl_err(err, rc, net, "ingress") : 0;
}

static struct rtnl_cls *new_rule(int from, uint16_t prio)
{
	struct rtnl_cls *cls = x_have(rtnl_cls_alloc());

	rtnl_tc_set_ifindex(TC_CAST(cls), from);
	rtnl_tc_set_parent(TC_CAST(cls), INGRESS);
	rtnl_cls_set_prio(cls, prio);
	rtnl_cls_set_protocol(cls, ETH_P_ALL);
	rtnl_tc_set_kind(TC_CAST(cls), "u32");
	return cls;
}

static int add_mirred(struct rtnl_cls *cls, int to)
{
	struct rtnl_act *act = x_have(rtnl_act_alloc());
	int rc = rtnl_tc_set_kind(TC_CAST(act), "mirred");

	if (rc == 0) {
		/* Answers a positive number when it does not like it. */
		rc = -abs(rtnl_mirred_set_action(act, TCA_EGRESS_REDIR));
	}
	if (rc == 0) {
		rc = rtnl_mirred_set_policy(act, TC_ACT_STOLEN);
	}
	if (rc == 0) {
		rc = rtnl_mirred_set_ifindex(act, (uint32_t)to);
	}
	if (rc == 0) {
		rc = rtnl_u32_add_action(cls, act);
	}
	rtnl_act_put(act);
	return rc;
}

int host_redirect_set(struct host_net *net, int from, int to, bool replace, struct err *err)
{
	struct rtnl_cls *cls = new_rule(from, PRIO);
	int rc;

	rtnl_u32_set_handle(cls, TABLE, 0, NODE);
	rc = rtnl_u32_add_key(cls, 0, 0, 0, 0);
	if (rc == 0) {
		rc = rtnl_u32_set_cls_terminal(cls);
	}
	if (rc == 0) {
		rc = add_mirred(cls, to);
	}
	if (rc == 0) {
		rc = rtnl_cls_add(net->sock, cls, NLM_F_CREATE | (replace ? 0 : NLM_F_EXCL));
	}
	rtnl_cls_put(cls);
	return rc ? host_nl_err(err, rc, net, "redirect") : 0;
}

/* Where a rule sends everything, 0 when it does not. */
static int target(struct rtnl_cls *cls)
{
	struct rtnl_act *act;
	uint32_t value, mask;
	int at, off;

	if (strcmp(rtnl_tc_get_kind(TC_CAST(cls)), "u32") != 0 ||
	    rtnl_cls_get_protocol(cls) != ETH_P_ALL ||
	    rtnl_u32_get_key(cls, 0, &value, &mask, &at, &off) != 0 || mask) {
		return 0;
	}
	act = rtnl_u32_get_action(cls);
	if (!act || strcmp(rtnl_tc_get_kind(TC_CAST(act)), "mirred") != 0 ||
	    rtnl_mirred_get_action(act) != TCA_EGRESS_REDIR) {
		return 0;
	}
	return (int)rtnl_mirred_get_ifindex(act);
}

ORDER_BY(by_order, struct host_redirect, prio, handle)

int host_redirects(struct host_net *net, int from, struct host_redirect **v,
		   int *n, struct err *err)
{
	VEC(struct host_redirect) found = { 0 };
	struct nl_cache *cache = NULL;
	int rc = rtnl_cls_alloc_cache(net->sock, from, INGRESS, &cache);

	*v = NULL;
	*n = 0;
	if (rc < 0) {
		return host_nl_err(err, rc, net, "redirects");
	}
	for (struct nl_object *o = nl_cache_get_first(cache); o; o = nl_cache_get_next(o)) {
		struct rtnl_cls *cls = (struct rtnl_cls *)o;
		struct host_redirect r = {
			.handle = rtnl_tc_get_handle(TC_CAST(cls)),
			.prio = rtnl_cls_get_prio(cls),
		};

		/* Handles without a node are u32's tables, or the priority
		 * itself. */
		if ((r.handle & 0xfff) == 0) {
			continue;
		}
		r.to = target(cls);
		vec_push(&found, r);
	}
	nl_cache_free(cache);
	if (found.n) {
		qsort(found.v, found.n, sizeof(*found.v), by_order);
	}
	*v = found.v;
	*n = (int)found.n;
	return 0;
}

int host_redirect_del(struct host_net *net, int from,
		      const struct host_redirect *r, struct err *err)
{
	struct rtnl_cls *cls = new_rule(from, r->prio);
	int rc;

	rtnl_tc_set_handle(TC_CAST(cls), r->handle);
	rc = rtnl_cls_delete(net->sock, cls, 0);
	rtnl_cls_put(cls);
	return rc ? host_nl_err(err, rc, net, "redirect") : 0;
}

/* ---- changes by whoever -------------------------------------------------- */

struct watching {
	host_change_fn fn;
	void *arg;
};

static int on_change(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct watching *w = arg;
	struct host_change c = { 0 };

	switch (head->nlmsg_type) {
	case RTM_NEWTFILTER:
	case RTM_DELTFILTER:
		if (nlmsg_datalen(head) < (int)sizeof(struct tcmsg)) {
			return NL_OK;
		}
		c.ifindex = ((struct tcmsg *)nlmsg_data(head))->tcm_ifindex;
		c.rule = true;
		c.gone = head->nlmsg_type == RTM_DELTFILTER;
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK: {
		struct ifinfomsg *ifi = nlmsg_data(head);

		if (nlmsg_datalen(head) < (int)sizeof(*ifi) || ifi->ifi_family != AF_UNSPEC) {
			return NL_OK;
		}
		c.ifindex = ifi->ifi_index;
		c.up = ifi->ifi_flags & IFF_UP;
		c.gone = head->nlmsg_type == RTM_DELLINK;
		break;
	}
	default:
		return NL_OK;
	}
	w->fn(&c, w->arg);
	return NL_OK;
}

int host_changes(struct host_net *net, int *fd, struct err *err)
{
	struct nl_sock *sock;
	int rc = host_events_open(net, RTNLGRP_TC, RTNLGRP_LINK, &sock, err);

	if (rc) {
		return rc;
	}
	nl_socket_free(net->changes);
	net->changes = sock;
	*fd = nl_socket_get_fd(sock);
	return 0;
}

int host_changes_read(struct host_net *net, host_change_fn fn, void *arg, struct err *err)
{
	struct watching w = { fn, arg };

	return host_events_read(net, net->changes, on_change, &w, err);
}
