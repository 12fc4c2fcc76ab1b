/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digraph as flows see it: no loops, parallel arcs as one of their summed
 * capacity, arcs by tail and by head. The arcs of the topology behind one of
 * these (its lanes) are listed, as schedules and routes are over them.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"

void flow_net_fini(struct flow_net *net)
{
	arrays_fini(&net->arrays);
	memset(net, 0, sizeof(*net));
}

static void alloc_net(struct flow_net *net, int n, int m)
{
	size_t room = (size_t)m + 1;

	*net = (struct flow_net){ .n = n, .topo_arcs = m };
	arrays_add(&net->arrays, net->src, room);
	arrays_add(&net->arrays, net->dst, room);
	arrays_add(&net->arrays, net->units, room);
	arrays_add(&net->arrays, net->out_first, n + 1);
	arrays_add(&net->arrays, net->in_first, n + 1);
	arrays_add(&net->arrays, net->in_arcs, room);
	arrays_add(&net->arrays, net->terminal, n);
	arrays_add(&net->arrays, net->arc_of, room);
	arrays_add(&net->arrays, net->first_lane, room + 1);
	arrays_add(&net->arrays, net->lanes, room);
}

/* at[v]: the arc from the present node to v, or less than `first`. */
static void add_node(struct flow_net *net, const struct topo *t, int u,
		     const bool *dropped, int32_t *at)
{
	int first, n = topo_out(t, u, &first), mine = net->m;

	for (int a = first; a < first + n; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		net->arc_of[a] = -1;
		if (arc->dst == u || (dropped && dropped[a])) {
			continue;
		}
		if (at[arc->dst] < mine) {
			at[arc->dst] = net->m;
			net->src[net->m] = u;
			net->dst[net->m] = arc->dst;
			net->units[net->m++] = 0;
		}
		net->arc_of[a] = at[arc->dst];
		net->units[at[arc->dst]] += arc->cap;
	}
	net->out_first[u + 1] = net->m;
}

static void index_targets(struct flow_net *net)
{
	int32_t *first = net->in_first;

	for (int a = 0; a < net->m; a++) {
		first[net->dst[a] + 1]++;
	}
	for (int v = 0; v < net->n; v++) {
		first[v + 1] += first[v];
	}
	/* Filling moves every first[v] to first[v + 1]; then shift back. */
	for (int a = 0; a < net->m; a++) {
		net->in_arcs[first[net->dst[a]]++] = a;
	}
	memmove(first + 1, first, (size_t)net->n * sizeof(*first));
	first[0] = 0;
}

/* The arcs of the topology behind each arc, in their order. */
static void index_lanes(struct flow_net *net)
{
	/* Filling moves every first_lane[a + 1] on to where the next begins. */
	int32_t *at = net->first_lane + 1;

	for (int a = 0; a < net->topo_arcs; a++) {
		if (net->arc_of[a] >= 0) {
			at[net->arc_of[a] + 1]++;
		}
	}
	for (int a = 1; a < net->m; a++) {
		at[a] += at[a - 1];
	}
	for (int a = 0; a < net->topo_arcs; a++) {
		if (net->arc_of[a] >= 0) {
			net->lanes[at[net->arc_of[a]]++] = a;
		}
	}
}

int flow_net_from(const struct topo *t, const bool *dropped, struct flow_net *out, struct err *err)
{
	int n = topo_n(t), rc = topo_check_unlimited(t, "all-to-all flows", err);
	int32_t *at;

	if (rc) {
		return rc;
	}
	alloc_net(out, n, topo_m(t));
	at = x_alloc((size_t)n, sizeof(*at));
	for (int v = 0; v < n; v++) {
		at[v] = -1;
		out->terminal[v] = topo_node_kind(t, v) == TOPO_TERMINAL;
		out->terminals += out->terminal[v];
	}
	for (int u = 0; u < n; u++) {
		add_node(out, t, u, dropped, at);
	}
	free(at);
	index_targets(out);
	index_lanes(out);
	if (out->terminals < 2) {
		flow_net_fini(out);
		return err_set(err, WEFT_EINVAL, "all-to-all needs at least "
			       "two terminals");
	}
	return 0;
}

int flow_net_arc(const struct flow_net *net, int u, int v)
{
	for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
		if (net->dst[a] == v) {
			return a;
		}
	}
	return -1;
}

/* ---- hosts behind interfaces ---- */

/* Where arcs out of u begin (side 1) or arcs into u end (side 2). */
static int port_of(const struct topo *t, int u, int side)
{
	return topo_node_kind(t, u) == TOPO_TERMINAL ? u + side * topo_n(t)
						     : u;
}

/* The arcs between host and interface, and through the interface. */
static int add_host(const struct topo *t, int u, int64_t host_cap, int64_t scale, bool nic_forwards,
		    struct topo *to, struct err *err)
{
	int out = port_of(t, u, 1), in = port_of(t, u, 2), first;
	int n = topo_out(t, u, &first), rc;
	int64_t through = 1;

	for (int a = first; a < first + n; a++) {
		through += topo_arc(t, a)->cap * scale;
	}
	topo_set_node(to, out, TOPO_SWITCH, 0);
	topo_set_node(to, in, TOPO_SWITCH, 0);
	rc = topo_add_arc(to, u, out, host_cap, 0, err);
	if (rc == 0) {
		rc = topo_add_arc(to, in, u, host_cap, 0, err);
	}
	if (rc || !nic_forwards) {
		return rc;
	}
	/* More than its links take: it limits nothing. */
	return topo_add_arc(to, in, out, through, 0, err);
}

int mcf_split_hosts(const struct topo *t, int64_t host_cap, int64_t scale,
		    bool nic_forwards, struct topo **out, struct err *err)
{
	int n = topo_n(t), rc;

	*out = NULL;
	if (host_cap < 1 || scale < 1) {
		return err_set(err, WEFT_EINVAL, "hosts of capacity %lld "
			       "beside links times %lld",
			       (long long)host_cap, (long long)scale);
	}
	if ((rc = topo_check_unlimited(t, "hosts behind interfaces", err)) ||
	    (rc = topo_new(3 * n, out, err))) {
		return rc;
	}
	for (int u = 0; u < n && rc == 0; u++) {
		if (topo_node_kind(t, u) == TOPO_TERMINAL) {
			rc = add_host(t, u, host_cap, scale, nic_forwards, *out, err);
			continue;
		}
		/* Without an interface: its places stay empty. */
		topo_set_node(*out, u, topo_node_kind(t, u), topo_node_flags(t, u));
		topo_set_node(*out, n + u, TOPO_SWITCH, 0);
		topo_set_node(*out, 2 * n + u, TOPO_SWITCH, 0);
	}
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		rc = topo_add_arc(*out, port_of(t, arc->src, 1), port_of(t, arc->dst, 2),
				  arc->cap * scale, arc->latency_ns, err);
	}
	if (rc == 0) {
		topo_freeze(*out);
	}
	if (rc) {
		topo_free(*out);
		*out = NULL;
	}
	return rc;
}
