/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes that hosts of this machine are given over the circuits of a plan. Addresses
 * follow from the host's number in the fabric, so that no host needs a configuration
 * of its own; the next hop's MAC address is set with the route, as an optical
 * circuit is no network in which it could be asked for. Hosts on other machines are
 * left alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/hosts/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

/* On the first ports of a host: MPI libraries pass over addresses of the loopback. All of
 * them at once, as a netdev that loses its last address loses its routes. */
static int own_addresses(const struct host_set *h, const struct model_fabric *f, int host,
			 struct host_address v[PLAN_MAX_ADDRESSES])
{
	int n = 0;

	for (int i = 0; i < PLAN_MAX_ADDRESSES && i < 2 * f->hosts[host].n_ports; i++) {
		const struct host_port *port = &h->ports[f->hosts[host].first_port + i / 2];
		int ifindex = i % 2 ? port->rx.ifindex : port->tx.ifindex;

		if (i == 0 || (ifindex && !(i % 2 && ifindex == port->tx.ifindex))) {
			v[n++] = (struct host_address){ plan_host_address(host, i),
							ifindex ? ifindex : HOST_LOOPBACK };
		}
	}
	return n;
}

/* Replaces all routes that weft has given this host. */
static void set_routes(struct host_set *h, struct local_host *l, const struct model_fabric *f,
		       const struct plan_arc *arcs, int n_arcs)
{
	struct plan_host_path *ways;
	struct host_address own[PLAN_MAX_ADDRESSES];
	struct host_route *v;
	struct err err = { 0 };
	int n = 0, n_own, k = 0, rc;

	plan_host_paths(f, arcs, n_arcs, l->host, &ways, &n);
	v = x_new((size_t)n + 1, sizeof(*v));
	/* A neighbour on another machine has an address on the wire that is not
	 * known here. */
	for (int i = 0; i < n; i++) {
		const struct plan_host_path *w = &ways[i];
		const struct host_port *tx = &h->ports[w->tx_port];
		const struct host_port *rx = &h->ports[w->rx_port];

		if (!tx->tx.ifindex || !rx->rx.ifindex) {
			continue;
		}
		v[k] = (struct host_route){
			.dst = plan_host_address(w->to, w->to_address),
			.via = w->via == w->to ? 0 : plan_host_address(w->via, w->via_address),
			.ifindex = tx->tx.ifindex };
		memcpy(v[k++].mac, rx->rx.mac, sizeof(v->mac));
	}
	n_own = own_addresses(h, f, l->host, own);
	rc = host_routes_set(l->net, own, k ? n_own : 0, v, k, NULL, &err);
	l->n_routes = k;
	l->problem[0] = '\0';
	if (rc) {
		snprintf(l->problem, sizeof(l->problem), "%s", err.msg);
		log_warn("weftd", "%s: %s", f->hosts[l->host].name, err.msg);
	}
	free(v);
	free(ways);
}

/* Called after a probe that is no older than the plan. */
void hosts_install(struct host_set *h, const struct model_fabric *f,
		   const struct plan_arc *arcs, int n)
{
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].frame_fd >= 0) {
			set_routes(h, &h->v[i], f, arcs, n);
		}
	}
}

struct host_routes {
	struct hosts *hosts;	/* while it waits for a probe */
	char hash[65];		/* of the fabric that the plan is of */
	struct plan_arc *arcs;	/* [n] */
	int n;
};

struct host_routes *host_routes_of(const struct plan *p)
{
	struct host_routes *r = x_new(1, sizeof(*r));

	plan_arcs(p, &r->arcs, &r->n);
	memcpy(r->hash, p->fabric->hash, sizeof(r->hash));
	return r;
}

void host_routes_free(struct host_routes *r)
{
	if (r) {
		free(r->arcs);
		free(r);
	}
}

static void on_probed(void *arg)
{
	const struct model_fabric *f = NULL;
	struct host_routes *r = arg;
	const struct hosts *hosts = r->hosts;

	if (hosts->set) {		/* weftd is not ending */
		f = apply_fabric(hosts->env->apply);
	}
	if (f && strcmp(f->hash, r->hash) == 0) {
		hosts_install(hosts->set, f, r->arcs, r->n);
	}
	host_routes_free(r);
}

void hosts_route(struct hosts *hosts, struct host_routes *r)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);

	/* Another fabric is open for a question: the next planning of the
	 * jobs is of the present one. */
	if (!r || !f || strcmp(f->hash, r->hash) != 0 || (!hosts->set && hosts_local(f) == 0)) {
		host_routes_free(r);
	} else {
		r->hosts = hosts;
		hosts_probe(hosts, on_probed, r);
	}
}
