/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the last probe of hosts has shown, as a message: each port with its link, what
 * its module measures, and who sends to it; and, of all ports that are to receive,
 * the weakest proof that there is. A port's problem is a sentence; a host that cannot
 * be asked has one of its own, and its ports none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/hosts/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/alloc.h"

/* The best that is known of a port, and its rank: what the module says is above what
 * the kernel says, and a frame that has arrived from the right port above both. */
static const char *layer_name(const struct host_port *v)
{
	if (v->asked && v->heard == v->from) {
		return "neighbour";
	}
	return host_source_name(v->rx.ifindex ? v->health.source : HOST_BY_NONE);
}

static int layer_rank(const struct host_port *v)
{
	return v->asked && v->heard == v->from ? HOST_BY_MODULE + 1 :
	       v->rx.ifindex ? (int)v->health.source : HOST_BY_NONE;
}

static const char *name_or(const struct host_set *h, int port)
{
	return port < 0 ? "" : h->names[port];
}

/* "" when the port is as intended. */
static void find_problem(const struct host_set *h, const struct host_port *v,
			 char *text, size_t size)
{
	text[0] = '\0';
	if (h->v[v->local].frame_fd < 0) {
		return;		/* the host's problem, reported there */
	}
	if (v->from >= 0 && !v->rx.ifindex) {
		snprintf(text, size, "it has no netdev");
	} else if (v->from >= 0 && hosts_cannot_send(h, v->from)) {
		snprintf(text, size, "%s, whose signal is expected, has no link to send by",
			 h->names[v->from]);
	} else if (v->from >= 0 && !v->health.link) {
		snprintf(text, size, "no link, the signal of %s is expected", h->names[v->from]);
	} else if (v->asked && v->heard < 0) {
		snprintf(text, size, "no frame of %s arrives", h->names[v->from]);
	} else if (v->heard >= 0 && v->heard != v->from) {
		snprintf(text, size, "frames of %s arrive, %s%s",
			 h->names[v->heard], v->from < 0 ?
			 "and none are expected" : "not of ",
			 name_or(h, v->from));
	}
}

static void fill_port(const struct host_set *h, int port, struct host_port_row *row)
{
	const struct host_port *v = &h->ports[port];
	Weft__V1__PortState *m = &row->m;

	weft__v1__port_state__init(m);
	find_problem(h, v, row->problem, sizeof(row->problem));
	m->name = h->names[port];
	m->from = (char *)name_or(h, v->from);
	m->link = v->health.link;
	m->layer = (char *)layer_name(v);
	m->next_layer_error = (char *)v->health.why;
	m->reason = v->health.ext_state ? (char *)v->health.ext_state : "";
	m->rx_mdbm = msg_number(&row->rx, v->health.has_power, v->health.rx_mdbm);
	m->tx_mdbm = msg_number(&row->tx, v->health.has_power, v->health.tx_mdbm);
	m->carrier_changes = v->rx.carrier_changes;
	m->carrier_ups = v->rx.carrier_ups;
	m->carrier_downs = v->rx.carrier_downs;
	m->rx_errors = v->rx.rx_errors;
	m->tx_errors = v->tx.tx_errors;
	m->neighbour = (char *)name_or(h, v->heard);
	m->problem = row->problem;
	m->reactivation = env_timing(h->hosts->env, STORE_REACTIVATION,
					h->names[port], &row->reactivation);
}

static void fill_host(const struct model_fabric *f, const struct local_host *l,
		      Weft__V1__HostState *m)
{
	m->name = f->hosts[l->host].name;
	m->netns = l->netns;
	m->problem = (char *)l->problem;
	m->routes = l->n_routes;
}

static void allocate(const struct host_set *h, struct hosts_view *out)
{
	out->ports = x_new((size_t)h->n_ports + 1, sizeof(*out->ports));
	out->port_list = x_new((size_t)h->n_ports + 1, sizeof(*out->port_list));
	out->host_list = message_list(&weft__v1__host_state__descriptor, (size_t)h->n);
}

/* Whether what every sender puts on a route through the circuit has arrived at its
 * end; at least one must use it. A duplex circuit has two directions. */
static bool all_received(const struct host_set *h, const struct model_fabric *f,
			 const struct plan_light *intent, int device, struct optics_xc xc)
{
	struct plan_hop *hops = NULL;
	int n, rx, n_routes = 0, n_received = 0;

	for (int tx = 0; tx < h->n_ports; tx++) {
		n = 0;
		if (plan_trace_hops(f, intent, tx, &hops, &n, &rx, NULL)) {
			continue;
		}
		for (int i = 0; i < n; i++) {
			if (hops[i].device == device && optics_xc_cmp(&hops[i].xc, &xc) == 0) {
				n_routes++;
				n_received += h->ports[rx].heard == tx;
			}
		}
	}
	free(hops);
	return n_routes > 0 && n_received == n_routes;
}

bool hosts_receive(const struct hosts *hosts, int device, struct optics_xc xc)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);
	const struct host_set *h = hosts->set;
	struct plan_base base;

	if (!h || !f || strcmp(h->hash, f->hash) != 0 || !h->probed_at_ns) {
		return false;
	}
	apply_plan_base(hosts->env->apply, f, PLAN_SAFE, &base);
	return all_received(h, f, base.intent, device, xc);
}

void hosts_view_init(struct hosts_view *out, const struct hosts *hosts)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);
	const struct host_set *h = hosts->set;
	int lowest = HOST_BY_MODULE + 1;
	const char *layer = "none";

	memset(out, 0, sizeof(*out));
	if (!h || !f || strcmp(h->hash, f->hash) != 0 || !h->probed_at_ns) {
		return;
	}
	allocate(h, out);
	weft__v1__hosts_state__init(&out->m);
	for (int i = 0; i < h->n_ports; i++) {
		const struct host_port *v = &h->ports[i];
		struct host_port_row *row = &out->ports[out->m.n_ports];

		if (v->local < 0) {
			continue;
		}
		fill_port(h, i, row);
		out->port_list[out->m.n_ports++] = &row->m;
		out->m.expected += v->from >= 0;
		out->m.good += v->from >= 0 && v->health.link && !row->problem[0];
		out->wrong = out->wrong || row->problem[0];
		if (v->from >= 0 && layer_rank(v) <= lowest) {
			lowest = layer_rank(v);
			layer = layer_name(v);
		}
	}
	for (int i = 0; i < h->n; i++) {
		fill_host(f, &h->v[i], out->host_list[out->m.n_hosts++]);
		out->silent = out->silent || h->v[i].frame_fd < 0;
	}
	out->m.layer = (char *)layer;
	out->m.probed_at_ns = h->probed_at_ns;
	out->m.ports = out->port_list;
	out->m.hosts = out->host_list;
	out->known = true;
}

void hosts_view_fini(struct hosts_view *v)
{
	free(v->ports);
	free(v->port_list);
	free(v->host_list);
	memset(v, 0, sizeof(*v));
}
