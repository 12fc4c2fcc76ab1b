/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of cheapest paths, kept from pass to pass. */
#include <math.h>
#include <string.h>

#include "collective/flow/private.h"

int flow_tree_init(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	int32_t *parent = mcf_parent_of(p, s), *order = mcf_order_of(p, s);
	int head = 0, tail = 0, reached;

	for (int v = 0; v < net->n; v++) {
		parent[v] = -2;
	}
	parent[p->source[s]] = -1;
	order[tail++] = p->source[s];
	while (head < tail) {
		int u = order[head++];

		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			int v = net->dst[a];

			if (parent[v] == -2) {
				parent[v] = a;
				order[tail++] = v;
			}
		}
	}
	reached = tail;
	for (int v = 0; v < net->n; v++) {
		if (parent[v] == -2) {
			order[tail++] = v;
		}
	}
	return reached;
}

/* Puts every node behind its parent again. */
static void reorder(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	const int32_t *parent = mcf_parent_of(p, s);
	int32_t *order = mcf_order_of(p, s), *stack = p->walk;
	uint32_t stamp = ++p->stamp;
	int tail = 0;

	for (int v = 0; v < net->n; v++) {
		int depth = 0, u = v;

		while (p->on_walk[u] != stamp) {
			stack[depth++] = u;
			if (parent[u] < 0) {
				break;
			}
			u = net->src[parent[u]];
		}
		while (depth > 0) {
			u = stack[--depth];
			p->on_walk[u] = stamp;
			order[tail++] = u;
		}
	}
}

/* Looks at the arcs out of u; true when one of them improved its head by more
 * than `before` and `after` together, which are added in this order. Heads
 * wait in q, the caller's copy of p->queue: this is the solver's innermost
 * loop, and what has no address outside stays in registers. */
static inline bool relax_arcs(struct mcf *p, int32_t *parent, struct graph_queue *q, int u,
			      double before, double after)
{
	const struct flow_net *net = &p->net;
	double *dist = p->dist;
	const double at_u = dist[u], from = at_u + before;	/* the net has no loops */
	bool improved = false;

	for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
		int v = net->dst[a];

		if (from + p->arc_price[a] + after < dist[v]) {
			dist[v] = at_u + p->arc_price[a];
			parent[v] = a;
			graph_queue_put(q, v);
			improved = true;
		}
	}
	return improved;
}

void flow_tree_update(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	int32_t *parent = mcf_parent_of(p, s);
	const int32_t *order = mcf_order_of(p, s);
	double largest = 0, slack;
	struct graph_queue queue = p->queue;
	bool improved = false;
	int u;

	p->dist[order[0]] = 0;
	for (int i = 1; i < net->n; i++) {
		int v = order[i], a = parent[v];

		/* Only nodes that need not be reached have no parent. */
		p->dist[v] = a < 0 ? HUGE_VAL
				   : p->dist[net->src[a]] + p->arc_price[a];
		largest = p->dist[v] > largest && a >= 0 ? p->dist[v]
							 : largest;
	}
	/* What rounding alone explains is no improvement; without this,
	 * arcs of price zero could close a cycle of parents. */
	slack = largest * 1e-14;
	for (u = 0; u < net->n; u++) {
		improved |= relax_arcs(p, parent, &queue, u, slack, 0);
	}
	while ((u = graph_queue_take(&queue)) >= 0) {
		relax_arcs(p, parent, &queue, u, 0, slack);
	}
	p->queue = queue;
	if (improved) {
		reorder(p, s);
	}
}

void flow_tree_route(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	const int32_t *parent = mcf_parent_of(p, s);
	const int32_t *order = mcf_order_of(p, s);
	double *flow = mcf_flow_of(p, s), *below = p->dist;

	memset(flow, 0, (size_t)net->m * sizeof(*flow));
	memcpy(below, mcf_demand_of(p, s), (size_t)net->n * sizeof(*below));
	for (int i = net->n - 1; i > 0; i--) {
		int v = order[i], a = parent[v];

		if (a >= 0) {
			flow[a] = below[v];
			below[net->src[a]] += below[v];
		}
	}
}
