/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef WEFT_LIB_GRAPH_PRIVATE_H
#define WEFT_LIB_GRAPH_PRIVATE_H

#include "lib/base/number/rat.h"
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

/* For the nodes that f has; no sources yet. f stays the caller's. */
void flow_phases_init(struct flow_phases *s, struct graph_flow *f);
void flow_phases_fini(struct flow_phases *s);

/* Sends at most `most` from the sources, that are no sink, to the sink; returns how much that
 * was, the maximum unless it is `most`. */
int64_t flow_phases_run(struct flow_phases *s, int sink, int64_t most);

/* An edge without limit out of a hub. */
void flow_add_from_hub(struct graph_flow *f, int hub, int to);

/* Takes back what was sent since the last time. */
void flow_phases_undo(struct flow_phases *s);

/* Exchanges arcs between the trees, and with those that have capacity left,
 * while that makes them shallower. O(trees^2 m) a pass, and the nodes below and
 * above those that change. */
void flatten_trees(int n, const struct graph_arc *arcs, int m, struct graph_trees *trees);

/* ---- arborescences that grow from many roots ---- */

/* A tree that grows. */
struct branching {
	int64_t weight;
	int32_t *via, *depth;	/* n; depth -1: not in the tree */
	int32_t missing;	/* nodes that are not in it */
};

/* What a tree sends from one of its nodes. */
struct branching_feed {
	int32_t node, next;	/* next: of the same tree, -1 */
	int64_t amount;
};

/* An edge of a path, walked backwards from the sink; two of the kinds take flow back. */
enum branching_step_kind { STEP_ARC, STEP_ARC_BACK, STEP_FEED, STEP_FEED_BACK };

struct branching_step {
	enum branching_step_kind kind;
	int32_t edge;		/* arc or feed; of STEP_FEED none */
	int32_t from;		/* vertex, farther from the sink: a node, or n + a tree */
};

/*
 * All trees, and the flow by which one node, the sink, gets into those that have it not: each
 * such tree sends its weight from any of its nodes over what is left of the arcs.
 */
struct branchings {
	int n, m;
	const struct graph_arc *arcs;
	int *first_in, *in;	/* arcs into v: in[first_in[v] .. first_in[v + 1] - 1] */
	int *first_out, *out;	/* arcs out of v likewise */
	int64_t *left;		/* m: of an arc's capacity */
	VEC(struct branching) trees;
	int max_trees;		/* for which arrays have room: 64 words */
	int words;
	uint64_t *has;		/* n rows of words, a bit a tree: it has the node */
	uint64_t *had;		/* the same when the level began */

	/* The flow; arrays are zero, and feeds_of -1, before and after it. */
	int sink;
	int64_t *flow;		/* m */
	VEC(int32_t) carry;	/* arcs that have flow, or had */
	uint64_t *lacks;	/* words: trees that have not the sink */
	int64_t *supply;	/* by tree: weight that it has not sent */
	int64_t unsent;		/* of all trees */
	int32_t *feeds_of;	/* by tree: its first feed, -1 */
	VEC(struct branching_feed) feeds;

	/* A search, backwards from the sink. */
	int32_t *level;		/* n + trees: edges to the sink, -1: not seen or a dead end */
	int32_t *queue;		/* n + trees: those with a level */
	int queued;
	int32_t *at;		/* n + trees: to be tried next: of a node a word of trees, then an
				 * arc into it, then one out of it; of a tree a feed */
	const uint64_t *feeds_from;	/* has or had */
	uint64_t *fresh;	/* words: trees that are not seen yet */
	VEC(uint64_t) at_level;	/* rows of words: trees of a level that are no dead ends */
	VEC(struct branching_step) path;
	struct arrays arrays;	/* those whose size does not grow with the trees */
};

/* Begins a flow to the sink, of no flow yet. O(words). */
void branching_flow_begin(struct branchings *b, int sink);
/* As much as can be sent on top of it, first from nodes that trees had when the level began:
 * unsent 0 says that the trees can still grow to the sink. Searches in phases (Dinic 1970). */
void branching_flow_run(struct branchings *b);
/* Forgets the flow. */
void branching_flow_end(struct branchings *b);

#endif
