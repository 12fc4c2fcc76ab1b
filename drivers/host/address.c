/* Addresses, neighbours and routes; see host.h. */
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/route/addr.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

#include "drivers/host/private.h"

/* Marks the routes that weft made, so that only those are taken away. */
#define PROTOCOL 119

static struct nl_addr *ipv4(uint32_t addr, int prefix)
{
	struct nl_addr *a = nl_addr_build(AF_INET, &addr, sizeof(addr));

	if (a) {
		nl_addr_set_prefixlen(a, prefix);
	}
	return a;
}

int host_addr_add(struct host_net *net, int ifindex, uint32_t addr,
		  int prefix, struct err *err)
{
	struct rtnl_addr *a = rtnl_addr_alloc();
	struct nl_addr *local = ipv4(addr, prefix);
	int rc = a && local ? 0 : -NLE_NOMEM;

	if (rc == 0) {
		rtnl_addr_set_ifindex(a, ifindex);
		rc = rtnl_addr_set_local(a, local);
	}
	if (rc == 0) {
		rc = rtnl_addr_add(net->sock, a, NLM_F_CREATE | NLM_F_REPLACE);
	}
	nl_addr_put(local);
	rtnl_addr_put(a);
	return rc ? host_nl_err(err, rc, net, "address") : 0;
}

int host_neigh_set(struct host_net *net, int ifindex, uint32_t addr,
		   const uint8_t mac[6], struct err *err)
{
	struct rtnl_neigh *neigh = rtnl_neigh_alloc();
	struct nl_addr *dst = ipv4(addr, 32);
	struct nl_addr *ll = nl_addr_build(AF_LLC, mac, 6);
	int rc = neigh && dst && ll ? 0 : -NLE_NOMEM;

	if (rc == 0) {
		rtnl_neigh_set_ifindex(neigh, ifindex);
		rtnl_neigh_set_state(neigh, NUD_PERMANENT);
		rtnl_neigh_set_lladdr(neigh, ll);
		rc = rtnl_neigh_set_dst(neigh, dst);
	}
	if (rc == 0) {
		rc = rtnl_neigh_add(net->sock, neigh,
				    NLM_F_CREATE | NLM_F_REPLACE);
	}
	nl_addr_put(dst);
	nl_addr_put(ll);
	rtnl_neigh_put(neigh);
	return rc ? host_nl_err(err, rc, net, "neighbour") : 0;
}

static int add_hop(struct rtnl_route *route, int ifindex, uint32_t via)
{
	struct rtnl_nexthop *hop = rtnl_route_nh_alloc();
	struct nl_addr *gateway;

	if (!hop) {
		return -NLE_NOMEM;
	}
	rtnl_route_nh_set_ifindex(hop, ifindex);
	if (via) {
		gateway = ipv4(via, 32);
		if (!gateway) {
			rtnl_route_nh_free(hop);
			return -NLE_NOMEM;
		}
		rtnl_route_nh_set_gateway(hop, gateway);
		rtnl_route_nh_set_flags(hop, RTNH_F_ONLINK);
		nl_addr_put(gateway);
	}
	rtnl_route_add_nexthop(route, hop);
	return 0;
}

int host_route_set(struct host_net *net, uint32_t dst, int ifindex,
		   uint32_t via, struct err *err)
{
	struct rtnl_route *route = rtnl_route_alloc();
	struct nl_addr *to = ipv4(dst, 32);
	int rc = route && to ? 0 : -NLE_NOMEM;

	if (rc == 0) {
		rtnl_route_set_family(route, AF_INET);
		rtnl_route_set_table(route, RT_TABLE_MAIN);
		rtnl_route_set_protocol(route, PROTOCOL);
		rtnl_route_set_scope(route, via ? RT_SCOPE_UNIVERSE :
				     RT_SCOPE_LINK);
		rc = rtnl_route_set_dst(route, to);
	}
	if (rc == 0) {
		rc = add_hop(route, ifindex, via);
	}
	if (rc == 0) {
		rc = rtnl_route_add(net->sock, route,
				    NLM_F_CREATE | NLM_F_REPLACE);
	}
	nl_addr_put(to);
	rtnl_route_put(route);
	return rc ? host_nl_err(err, rc, net, "route") : 0;
}

static int flush_routes(struct host_net *net)
{
	struct nl_cache *cache;
	int rc = rtnl_route_alloc_cache(net->sock, AF_INET, 0, &cache);

	if (rc < 0) {
		return rc;
	}
	for (struct nl_object *o = nl_cache_get_first(cache); o && rc == 0;
	     o = nl_cache_get_next(o)) {
		struct rtnl_route *route = (struct rtnl_route *)o;

		if (rtnl_route_get_protocol(route) == PROTOCOL) {
			rc = rtnl_route_delete(net->sock, route, 0);
			/* It went with its link meanwhile. */
			rc = rc == -NLE_OBJ_NOTFOUND ? 0 : rc;
		}
	}
	nl_cache_free(cache);
	return rc;
}

static int flush_neighbours(struct host_net *net)
{
	struct nl_cache *cache;
	int rc = rtnl_neigh_alloc_cache(net->sock, &cache);

	if (rc < 0) {
		return rc;
	}
	for (struct nl_object *o = nl_cache_get_first(cache); o && rc == 0;
	     o = nl_cache_get_next(o)) {
		struct rtnl_neigh *neigh = (struct rtnl_neigh *)o;

		if (rtnl_neigh_get_family(neigh) == AF_INET &&
		    rtnl_neigh_get_state(neigh) == NUD_PERMANENT) {
			rc = rtnl_neigh_delete(net->sock, neigh, 0);
			rc = rc == -NLE_OBJ_NOTFOUND ? 0 : rc;
		}
	}
	nl_cache_free(cache);
	return rc;
}

int host_routes_flush(struct host_net *net, struct err *err)
{
	int rc = flush_routes(net);

	if (rc == 0) {
		rc = flush_neighbours(net);
	}
	return rc ? host_nl_err(err, rc, net, "routes") : 0;
}
