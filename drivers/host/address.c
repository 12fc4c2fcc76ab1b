/* Addresses; see host.h. */
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/errno.h>
#include <netlink/route/addr.h>

#include "drivers/host/private.h"

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

