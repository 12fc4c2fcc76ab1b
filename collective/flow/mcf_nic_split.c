/* Hosts and their interfaces as a digraph; see mcf_nic_split.h. */
#include "collective/flow/mcf_nic_split.h"

/* Where arcs out of u begin (side 1) or arcs into u end (side 2). */
static int port_of(const struct topo *t, int u, int side)
{
	return topo_node_kind(t, u) == TOPO_TERMINAL ? u + side * topo_n(t)
						     : u;
}

/* The arcs between host and interface, and through the interface. */
static int add_host(const struct topo *t, int u, int64_t host_cap,
		    int64_t scale, bool nic_forwards, struct topo *to,
		    struct err *err)
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
	rc = rc ? rc : topo_add_arc(to, in, u, host_cap, 0, err);
	/* More than its links take: it limits nothing. */
	return rc || !nic_forwards
		       ? rc : topo_add_arc(to, in, out, through, 0, err);
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
	rc = topo_new(3 * n, out, err);
	for (int u = 0; u < n && rc == 0; u++) {
		if (topo_node_kind(t, u) == TOPO_TERMINAL) {
			rc = add_host(t, u, host_cap, scale, nic_forwards,
				      *out, err);
			continue;
		}
		/* Without an interface: its places stay empty. */
		topo_set_node(*out, u, topo_node_kind(t, u),
			      topo_node_flags(t, u));
		topo_set_node(*out, n + u, TOPO_SWITCH, 0);
		topo_set_node(*out, 2 * n + u, TOPO_SWITCH, 0);
	}
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		rc = topo_add_arc(*out, port_of(t, arc->src, 1),
				  port_of(t, arc->dst, 2), arc->cap * scale,
				  arc->latency_ns, err);
	}
	rc = rc ? rc : topo_freeze(*out, err);
	if (rc) {
		topo_free(*out);
		*out = NULL;
	}
	return rc;
}
