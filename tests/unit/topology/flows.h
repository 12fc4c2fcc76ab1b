/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum flows of digraphs, as tests ask for them. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_TOPOLOGY_FLOWS_H
#define WEFT_TESTS_UNIT_TOPOLOGY_FLOWS_H

#include "lib/graph/graph.h"
#include "topology/topology.h"

/* The network of t with all capacities times `scale`, and a node more, topo_n(t),
 * from which `supply` comes to every terminal. */
static inline struct graph_flow *network(const struct topo *t, int64_t scale, int64_t supply)
{
	struct graph_flow *f = graph_flow_new(topo_n(t) + 1);

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		assert_int_equal(graph_flow_add(f, arc->src, arc->dst, arc->cap * scale, 0, NULL,
						NULL), 0);
	}
	for (int u = 0; u < topo_ranks(t); u++) {
		assert_int_equal(graph_flow_add(f, topo_n(t), u, supply, 0, NULL, NULL), 0);
	}
	return f;
}

static inline int64_t max_flow(const struct topo *t, int from, int to)
{
	struct graph_flow *f = network(t, 1, 0);
	int64_t value;

	graph_flow_run(f, from, to, INT64_MAX, &value, NULL);
	graph_flow_free(f);
	return value;
}

/* What a broadcast from a terminal can reach (Edmonds): the least maximum flow to
 * one of the nodes before `end`. */
static inline int64_t broadcast_rate(const struct topo *t, int root, int end)
{
	int64_t least = INT64_MAX;

	for (int v = 0; v < end; v++) {
		int64_t flow = v == root ? INT64_MAX : max_flow(t, root, v);

		least = flow < least ? flow : least;
	}
	return least;
}

#endif
