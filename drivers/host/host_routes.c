/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes of a host: its address, fixed neighbours and routes; see host.h. The
 * messages are made here, since libnl's objects have no protocol for
 * neighbours and addresses.
 */
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/route/addr.h>
#include <netlink/route/route.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/host/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

#define WHOLE 32	/* bits of an address */

/* A neighbour, a route or an address; what does not apply is 0. */
struct entry {
	uint32_t dst, via;
	uint32_t src;		/* of a route: the address that packets get */
	int ifindex;
	uint8_t mac[6];
	bool own;		/* weft made it */
	bool fixed;		/* it was configured, not learned */
};

struct table {
	VEC(struct entry) v;
};

struct setting {
	struct host_net *net;
	int changed;
	struct err *err;
};

/* ---- what is there ---- */

static void take(struct table *t, const struct entry *e)
{
	vec_push(&t->v, *e);
}

static uint32_t address_of(struct nlattr *a)
{
	uint32_t v = 0;

	if (a && nla_len(a) == sizeof(v)) {
		memcpy(&v, nla_data(a), sizeof(v));
	}
	return v;
}

static int on_neighbour(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct nlattr *a[NDA_MAX + 1];
	struct entry e = { 0 };
	struct ndmsg *nd;

	if (head->nlmsg_type != RTM_NEWNEIGH ||
	    nlmsg_parse(head, sizeof(*nd), a, NDA_MAX, NULL) < 0) {
		return NL_OK;
	}
	nd = nlmsg_data(head);
	if (nd->ndm_family != AF_INET) {
		return NL_OK;
	}
	e.dst = address_of(a[NDA_DST]);
	e.ifindex = nd->ndm_ifindex;
	e.fixed = nd->ndm_state & NUD_PERMANENT;
	e.own = a[NDA_PROTOCOL] && nla_get_u8(a[NDA_PROTOCOL]) == HOST_PROTOCOL;
	if (a[NDA_LLADDR] && nla_len(a[NDA_LLADDR]) == sizeof(e.mac)) {
		memcpy(e.mac, nla_data(a[NDA_LLADDR]), sizeof(e.mac));
	}
	take(arg, &e);
	return NL_OK;
}

static int on_route(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct nlattr *a[RTA_MAX + 1];
	struct entry e = { .fixed = true };
	struct rtmsg *rt;

	if (head->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(head, sizeof(*rt), a, RTA_MAX, NULL) < 0) {
		return NL_OK;
	}
	rt = nlmsg_data(head);
	if (rt->rtm_family != AF_INET || rt->rtm_table != RT_TABLE_MAIN ||
	    rt->rtm_dst_len != WHOLE) {
		return NL_OK;
	}
	e.dst = address_of(a[RTA_DST]);
	e.via = address_of(a[RTA_GATEWAY]);
	e.src = address_of(a[RTA_PREFSRC]);
	e.ifindex = a[RTA_OIF] ? (int)nla_get_u32(a[RTA_OIF]) : 0;
	e.own = rt->rtm_protocol == HOST_PROTOCOL;
	take(arg, &e);
	return NL_OK;
}

static int on_address(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct nlattr *a[IFA_MAX + 1];
	struct entry e = { .fixed = true };
	struct ifaddrmsg *ifa;

	if (head->nlmsg_type != RTM_NEWADDR ||
	    nlmsg_parse(head, sizeof(*ifa), a, IFA_MAX, NULL) < 0) {
		return NL_OK;
	}
	ifa = nlmsg_data(head);
	if (ifa->ifa_family != AF_INET) {
		return NL_OK;
	}
	e.dst = address_of(a[IFA_LOCAL]);
	e.ifindex = (int)ifa->ifa_index;
	e.own = a[IFA_PROTO] && nla_get_u8(a[IFA_PROTO]) == HOST_PROTOCOL;
	take(arg, &e);
	return NL_OK;
}

/* The same destination over another link is another neighbour, but the same
 * route: routes are compared with ifindex 0. */
ORDER_BY(by_key, struct entry, ifindex, dst)

static int read_table(struct host_net *net, int type, const void *head, size_t size,
		      nl_recvmsg_msg_cb_t fn, struct table *t, struct err *err)
{
	int rc = nl_send_simple(net->sock, type, NLM_F_DUMP, (void *)head, size);

	if (rc >= 0) {
		rc = host_nl_receive(net->sock, fn, t);
	}
	return rc < 0 ? host_nl_err(err, rc, net, "routes") : 0;
}

/* ---- changing ---- */

static int send_request(struct setting *s, struct nl_msg *msg, const char *what)
{
	int rc = nl_send_auto(s->net->sock, msg);

	nlmsg_free(msg);
	if (rc >= 0) {
		rc = nl_wait_for_ack(s->net->sock);
	}
	/* It went with its link meanwhile. */
	if (rc == -NLE_OBJ_NOTFOUND) {
		return 0;
	}
	s->changed += rc == 0;
	return rc < 0 ? host_nl_err(s->err, rc, s->net, what) : 0;
}

/* The head and the few attributes always fit into a message. */
static struct nl_msg *start(int type, bool add, const void *head, size_t size)
{
	int flags = add ? NLM_F_CREATE | NLM_F_REPLACE : 0;
	struct nl_msg *msg = x_have(nlmsg_alloc_simple(type, flags));

	nlmsg_append(msg, (void *)head, size, NLMSG_ALIGNTO);
	return msg;
}

static void put_address(struct nl_msg *msg, int key, uint32_t addr)
{
	nla_put(msg, key, sizeof(addr), &addr);
}

static int set_neighbour(struct setting *s, const struct entry *e, bool add)
{
	const struct ndmsg nd = { .ndm_family = AF_INET,
				  .ndm_ifindex = e->ifindex,
				  .ndm_state = NUD_PERMANENT };
	struct nl_msg *msg = start(add ? RTM_NEWNEIGH : RTM_DELNEIGH, add, &nd, sizeof(nd));

	put_address(msg, NDA_DST, e->dst);
	if (add) {
		nla_put(msg, NDA_LLADDR, sizeof(e->mac), e->mac);
		nla_put_u8(msg, NDA_PROTOCOL, HOST_PROTOCOL);
	}
	return send_request(s, msg, "neighbour");
}

static int set_route(struct setting *s, const struct entry *e, bool add)
{
	const struct rtmsg rt = {
		.rtm_family = AF_INET, .rtm_dst_len = WHOLE,
		.rtm_table = RT_TABLE_MAIN, .rtm_protocol = HOST_PROTOCOL,
		.rtm_type = add ? RTN_UNICAST : RTN_UNSPEC,
		.rtm_scope = !add ? RT_SCOPE_NOWHERE : e->via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.rtm_flags = e->via ? RTNH_F_ONLINK : 0,
	};
	struct nl_msg *msg = start(add ? RTM_NEWROUTE : RTM_DELROUTE, add, &rt, sizeof(rt));

	put_address(msg, RTA_DST, e->dst);
	nla_put_u32(msg, RTA_OIF, (uint32_t)e->ifindex);
	if (e->via) {
		put_address(msg, RTA_GATEWAY, e->via);
	}
	if (e->src && add) {
		put_address(msg, RTA_PREFSRC, e->src);
	}
	return send_request(s, msg, "route");
}

static int set_address(struct setting *s, const struct entry *e, bool add)
{
	const struct ifaddrmsg ifa = { .ifa_family = AF_INET,
				       .ifa_prefixlen = WHOLE,
				       .ifa_index = (uint32_t)e->ifindex };
	struct nl_msg *msg = start(add ? RTM_NEWADDR : RTM_DELADDR, add, &ifa, sizeof(ifa));

	put_address(msg, IFA_LOCAL, e->dst);
	if (add) {
		nla_put_u8(msg, IFA_PROTO, HOST_PROTOCOL);
	}
	return send_request(s, msg, "address");
}

/* ---- from what is there to what is wanted ---- */

typedef int (*set_fn)(struct setting *s, const struct entry *e, bool add);

struct route_kind {
	const char *name;
	set_fn set;
	bool by_link;	/* one a link, not one in all */
};

static struct entry key_of(const struct route_kind *k, const struct entry *e)
{
	return (struct entry){ .dst = e->dst,
			       .ifindex = k->by_link ? e->ifindex : 0 };
}

ORDER_BY(by_dst, struct entry, dst)

static struct entry *find(const struct route_kind *k, struct table *want, const struct entry *e)
{
	struct entry key = key_of(k, e);

	return want->v.n == 0 ? NULL :
	       bsearch(&key, want->v.v, want->v.n, sizeof(key),
		       k->by_link ? by_key : by_dst);
}

static bool equal(const struct entry *a, const struct entry *b)
{
	return a->dst == b->dst && a->via == b->via && a->src == b->src &&
	       a->ifindex == b->ifindex &&
	       memcmp(a->mac, b->mac, sizeof(a->mac)) == 0;
}

static int is_external(struct setting *s, const struct route_kind *k, uint32_t dst)
{
	const uint8_t *b = (const uint8_t *)&dst;

	return err_set(s->err, WEFT_ESTALE, "%s: another user has a %s for "
		       "%d.%d.%d.%d", s->net->name, k->name, b[0], b[1], b[2],
		       b[3]);
}

/* The first error is the one that is returned; the rest is done all the same. */
static int note(struct setting *s, int rc, int next)
{
	if (rc == 0 && next) {
		s->err = NULL;
	}
	return rc ? rc : next;
}

/* What is there already, or another user's, is marked `own` in want: not to
 * be added. What differs is replaced, which the kernel does at once. */
static int mark_present(struct setting *s, const struct route_kind *k,
			struct table *have, struct table *want)
{
	int rc = 0;

	for (size_t i = 0; i < have->v.n; i++) {
		const struct entry *e = &have->v.v[i];
		struct entry *w = find(k, want, e);
		int r = 0;

		if (w && e->fixed && equal(e, w)) {
			w->own = true;
		} else if (w && e->fixed && !e->own) {
			w->own = true;
			r = is_external(s, k, e->dst);
		}
		rc = note(s, rc, r);
	}
	return rc;
}

/* What weft made and is not wanted any more; what has been replaced is gone by
 * itself. */
static int remove_stale(struct setting *s, const struct route_kind *k,
			struct table *have, struct table *want)
{
	int rc = 0;

	for (size_t i = 0; i < have->v.n; i++) {
		if (have->v.v[i].own && !find(k, want, &have->v.v[i])) {
			rc = note(s, rc, k->set(s, &have->v.v[i], false));
		}
	}
	return rc;
}

static int add_missing(struct setting *s, const struct route_kind *k, const struct table *want)
{
	int rc = 0;

	for (size_t i = 0; i < want->v.n; i++) {
		if (!want->v.v[i].own) {
			rc = note(s, rc, k->set(s, &want->v.v[i], true));
		}
	}
	return rc;
}

static const struct route_kind address = { "address", set_address, true };
static const struct route_kind neighbour = { "neighbour", set_neighbour, true };
static const struct route_kind route = { "route", set_route, false };

/* The tables that are there ([0]) and wanted ([1]). */
struct tables {
	struct table addresses[2], neighbours[2], routes[2];
};

static void sort(struct table *t, int (*order)(const void *, const void *))
{
	if (t->v.n) {
		qsort(t->v.v, t->v.n, sizeof(struct entry), order);
	}
}

static void want_routes(struct tables *t, const struct host_address *own, int n_own,
			const struct host_route *routes, int n)
{
	for (int i = 0; i < n_own; i++) {
		take(&t->addresses[1], &(struct entry){ .dst = own[i].addr,
							.ifindex = own[i].ifindex });
	}
	for (int i = 0; i < n; i++) {
		struct entry e = { .dst = routes[i].dst, .via = routes[i].via,
				   .src = n_own ? own[0].addr : 0,
				   .ifindex = routes[i].ifindex };

		take(&t->routes[1], &e);
		if (!e.via) {
			e.src = 0;
			memcpy(e.mac, routes[i].mac, sizeof(e.mac));
			take(&t->neighbours[1], &e);
		}
	}
	sort(&t->addresses[1], by_key);
	sort(&t->routes[1], by_dst);
	sort(&t->neighbours[1], by_key);
}

static int read_tables(struct host_net *net, struct tables *t, struct err *err)
{
	const struct ifaddrmsg ifa = { .ifa_family = AF_INET };
	const struct ndmsg nd = { .ndm_family = AF_INET };
	const struct rtmsg rt = { .rtm_family = AF_INET };
	int rc = read_table(net, RTM_GETADDR, &ifa, sizeof(ifa), on_address, &t->addresses[0], err);

	if (rc == 0) {
		rc = read_table(net, RTM_GETNEIGH, &nd, sizeof(nd),
				on_neighbour, &t->neighbours[0], err);
	}
	if (rc) {
		return rc;
	}
	return read_table(net, RTM_GETROUTE, &rt, sizeof(rt), on_route, &t->routes[0], err);
}

/* Traffic goes one way or the other at every moment: what a route needs comes
 * before it, and goes after it. */
static int change_all(struct setting *s, struct tables *t)
{
	struct {
		const struct route_kind *kind;
		struct table *tables;
	} all[] = { { &address, t->addresses },
		    { &neighbour, t->neighbours }, { &route, t->routes } };
	int rc = 0;

	for (int i = 0; i < 3; i++) {
		struct table *v = all[i].tables;

		rc = note(s, rc, mark_present(s, all[i].kind, &v[0], &v[1]));
		rc = note(s, rc, add_missing(s, all[i].kind, &v[1]));
	}
	for (int i = 2; i >= 0; i--) {
		struct table *v = all[i].tables;

		rc = note(s, rc, remove_stale(s, all[i].kind, &v[0], &v[1]));
	}
	return rc;
}

int host_routes_set(struct host_net *net, const struct host_address *own, int n_own,
		    const struct host_route *routes, int n, int *changed, struct err *err)
{
	struct setting s = { .net = net, .err = err };
	struct tables t = { 0 };
	int rc = read_tables(net, &t, err);

	want_routes(&t, own, n_own, routes, n);
	if (rc == 0) {
		rc = change_all(&s, &t);
	}
	for (int i = 0; i < 2; i++) {
		vec_fini(&t.addresses[i].v);
		vec_fini(&t.neighbours[i].v);
		vec_fini(&t.routes[i].v);
	}
	if (changed) {
		*changed = s.changed;
	}
	return rc;
}

static struct nl_addr *ipv4(uint32_t addr, int prefix)
{
	struct nl_addr *a = x_have(nl_addr_build(AF_INET, &addr, sizeof(addr)));

	nl_addr_set_prefixlen(a, prefix);
	return a;
}

int host_addr_add(struct host_net *net, int ifindex, uint32_t addr, int prefix, struct err *err)
{
	struct rtnl_addr *a = x_have(rtnl_addr_alloc());
	struct nl_addr *local = ipv4(addr, prefix);
	int rc;

	rtnl_addr_set_ifindex(a, ifindex);
	rc = rtnl_addr_set_local(a, local);
	if (rc == 0) {
		rc = rtnl_addr_add(net->sock, a, NLM_F_CREATE | NLM_F_REPLACE);
	}
	nl_addr_put(local);
	rtnl_addr_put(a);
	return rc ? host_nl_err(err, rc, net, "address") : 0;
}

int host_link_route(struct host_net *net, int ifindex, uint32_t dst, int prefix, bool add,
		    struct err *err)
{
	struct rtnl_route *r = x_have(rtnl_route_alloc());
	struct rtnl_nexthop *nh = x_have(rtnl_route_nh_alloc());
	struct nl_addr *to = ipv4(dst, prefix);
	int rc;

	rtnl_route_nh_set_ifindex(nh, ifindex);
	rtnl_route_add_nexthop(r, nh);
	rtnl_route_set_scope(r, RT_SCOPE_LINK);
	rc = rtnl_route_set_dst(r, to);
	if (rc == 0) {
		rc = add ? rtnl_route_add(net->sock, r, NLM_F_CREATE | NLM_F_REPLACE)
			 : rtnl_route_delete(net->sock, r, 0);
	}
	nl_addr_put(to);
	rtnl_route_put(r);
	return rc && !(rc == -NLE_OBJ_NOTFOUND && !add) ? host_nl_err(err, rc, net, "route") : 0;
}
