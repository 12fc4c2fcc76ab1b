/* The digraph as flows see it: no loops, parallel arcs as one. */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"

void flow_net_fini(struct flow_net *net)
{
	free(net->src);
	free(net->dst);
	free(net->units);
	free(net->out_first);
	free(net->in_first);
	free(net->in_arcs);
	free(net->terminal);
	free(net->arc_of);
	memset(net, 0, sizeof(*net));
}

static int alloc_net(struct flow_net *net, int n, int m)
{
	size_t room = (size_t)m + 1;

	net->n = n;
	net->topo_arcs = m;
	net->src = malloc(room * sizeof(*net->src));
	net->dst = malloc(room * sizeof(*net->dst));
	net->units = malloc(room * sizeof(*net->units));
	net->out_first = calloc((size_t)n + 1, sizeof(*net->out_first));
	net->in_first = calloc((size_t)n + 1, sizeof(*net->in_first));
	net->in_arcs = malloc(room * sizeof(*net->in_arcs));
	net->terminal = calloc((size_t)n, sizeof(*net->terminal));
	net->arc_of = malloc(room * sizeof(*net->arc_of));
	return net->src && net->dst && net->units && net->out_first &&
	       net->in_first && net->in_arcs && net->terminal && net->arc_of
	       ? 0 : WEFT_ENOMEM;
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

int flow_net_from(const struct topo *t, const bool *dropped,
		  struct flow_net *out, struct err *err)
{
	int n = topo_n(t), rc = alloc_net(out, n, topo_m(t));
	int32_t *at = malloc((size_t)n * sizeof(*at));

	if (rc || !at) {
		free(at);
		flow_net_fini(out);
		return err_nomem(err);
	}
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

int mcf_copy_topo(const struct topo *t, struct topo **out, struct err *err)
{
	int rc = topo_new(topo_n(t), out, err);

	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		rc = topo_add_arc(*out, arc->src, arc->dst, arc->cap,
				  arc->latency_ns, err);
	}
	rc = rc ? rc : topo_freeze(*out, err);
	if (rc) {
		topo_free(*out);
		*out = NULL;
	}
	return rc;
}
