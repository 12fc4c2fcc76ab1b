/* What the files of this room share. */
#ifndef WEFT_LIB_GRAPH_PRIVATE_H
#define WEFT_LIB_GRAPH_PRIVATE_H

#include "lib/base/rat.h"
#include "lib/graph/graph.h"

#define FLOW_UNLISTED (-2)

struct flow_edge {
	int to, next;		/* next: edge out of the same node, -1;
				 * FLOW_UNLISTED: it is in no list */
	int64_t left, cost;	/* left: residual capacity */
};

/* Edge 2e is edge e of the caller, 2e + 1 its residual twin. */
struct graph_flow {
	int n;
	int *head;		/* n: first edge out of a node, -1 */
	VEC(struct flow_edge) edges;
};

/* Of numbers >= 0, not both 0. */
static inline struct graph_time graph_time_of(int64_t num, int64_t den)
{
	int64_t gcd = rat_gcd(num, den);

	return (struct graph_time){ num / gcd, den / gcd };
}

/* Flow sent over an edge, to be taken back. */
struct graph_sent {
	int edge;
	int64_t amount;
};

/* Searches for a maximum flow, from the sink backwards. Nodes from `hubs` on have
 * one edge into them and many out of them, of which only those are listed that
 * carry flow, since only over these a search may go back. */
struct flow_phases {
	struct graph_flow *f;
	int hubs;		/* f->n: none */
	bool *source;		/* n: flow may begin there */
	int *level;		/* n: edges to the sink, -1: not seen or a dead end */
	int *at;		/* n: the edge to be tried next, -1: none */
	int *queue;		/* n: the nodes with a level */
	int queued;
	VEC(int) path;		/* edges from the node at hand to the sink, last first */
	VEC(struct graph_sent) sent;
	struct arrays arrays;
};

/* For the nodes that f has; no sources yet. 0 or WEFT_ENOMEM; flow_phases_fini
 * in either case. f stays the caller's. */
int flow_phases_init(struct flow_phases *s, struct graph_flow *f);
void flow_phases_fini(struct flow_phases *s);

/* Sends at most `most` from the sources, that are no sink, to the sink; *value: how much that
 * was, the maximum unless it is `most`. WEFT_ENOMEM. */
int flow_phases_run(struct flow_phases *s, int sink, int64_t most, int64_t *value);

/* An edge without limit out of a hub. WEFT_ENOMEM. */
int flow_add_from_hub(struct graph_flow *f, int hub, int to);

/* Takes back what was sent since the last time. */
void flow_phases_undo(struct flow_phases *s);

/* Exchanges arcs between the trees, and with those that have capacity left,
 * while that makes them shallower. O(trees^2 m) a pass, and the nodes below and
 * above those that change. WEFT_ENOMEM. */
int flatten_trees(int n, const struct graph_arc *arcs, int m, int root, struct graph_trees *trees);

#endif
