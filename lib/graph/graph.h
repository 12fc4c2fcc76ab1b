/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph algorithms: shortest paths, flows of maximum value and minimum cost,
 * cuts and arborescences. Nodes are numbers from 0.
 */
#ifndef WEFT_LIB_GRAPH_GRAPH_H
#define WEFT_LIB_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/heap.h"

/* ---- shortest paths ----
 *
 * A search takes one node after the other out of a queue, and puts in the heads
 * of its arcs where it finds them nearer, by whatever costs and tolerance the
 * problem has:
 *
 *	graph_queue_put(q, source);
 *	while ((u = graph_queue_take(q)) >= 0) {
 *		for (each arc a from u to v) {
 *			if (dist[u] + cost[a] < dist[v]) {
 *				dist[v] = dist[u] + cost[a];
 *				via[v] = a;
 *				graph_queue_put(q, v);
 *			}
 *		}
 *	}
 *
 * With struct graph_queue, first in, first out, a node is taken again when it
 * has become nearer (Bellman 1958, Ford 1956, Moore 1959). Costs may be
 * negative where no cycle is; O(nodes x arcs), in practice a few times the
 * arcs. With a cost of 1 for every arc it is breadth-first search, O(arcs).
 *
 * With struct graph_heap the nearest is taken first, and each once (Dijkstra
 * 1959). Costs >= 0; O(arcs log nodes). The search may end when the node that
 * is wanted was taken.
 *
 * The order depends on the calls and on nothing else.
 */

/* Nodes that wait, each at most once. */
struct graph_queue {
	int n;
	int32_t *ring;		/* n + 1 */
	bool *waits;		/* n */
	int head, tail;		/* in the ring; equal: none waits */
};

/* An empty queue for n >= 1 nodes, for graph_queue_fini. */
void graph_queue_init(struct graph_queue *q, int n);
void graph_queue_fini(struct graph_queue *q);

/* A node that waits already keeps its turn. O(1). */
static inline void graph_queue_put(struct graph_queue *q, int v)
{
	if (!q->waits[v]) {
		q->waits[v] = true;
		q->ring[q->tail] = v;
		q->tail = q->tail == q->n ? 0 : q->tail + 1;
	}
}

/* The node that has waited longest, -1: none. O(1). */
static inline int graph_queue_take(struct graph_queue *q)
{
	int v;

	if (q->head == q->tail) {
		return -1;
	}
	v = q->ring[q->head];
	q->head = q->head == q->n ? 0 : q->head + 1;
	q->waits[v] = false;
	return v;
}

HEAP(graph_nodes, int32_t);

/* Nodes by distance, each at most once. */
struct graph_heap {
	int n;
	double *dist;		/* n: INFINITY: never put in. Sums of integers
				 * are exact up to 2^53 */
	struct graph_nodes nodes; /* those that wait; room for n */
	int32_t *place;		/* n: in nodes; -1: does not wait */
	bool ties_by_node;	/* to be set before the first search: of nodes
				 * equally near the lowest number comes first;
				 * else which one depends on the calls */
};

/* An empty heap for n >= 1 nodes, for graph_heap_fini. */
void graph_heap_init(struct graph_heap *h, int n);
void graph_heap_fini(struct graph_heap *h);

/* Forgets nodes and distances. O(n). */
void graph_heap_reset(struct graph_heap *h);

/* Puts a node in, or nearer to the top, at a distance below the one that it
 * has. O(log n). */
void graph_heap_put(struct graph_heap *h, int v, double dist);

/* The nearest node, -1: none. O(log n). */
int graph_heap_take(struct graph_heap *h);

/* ---- flows ---- */

/* A network of nodes and edges with integer capacities and costs. */
struct graph_flow;

/* A network of n >= 1 nodes without edges. */
struct graph_flow *graph_flow_new(int n);
void graph_flow_free(struct graph_flow *f);

/* Adds an edge with 0 <= flow <= cap; its number, counted from 0 in the order
 * of the calls, goes to *edge (may be NULL). The edges must form no cycle of
 * negative cost. WEFT_EINVAL for nodes that do not exist and cap < 0. */
int graph_flow_add(struct graph_flow *f, int from, int to, int64_t cap,
		   int64_t cost, int *edge, struct err *err);

/*
 * Sends flow from source to sink along successive shortest paths (Busacker and
 * Gowen 1961) for as long as a path costs less than `limit`: limit 0 gives the
 * flow of minimum cost, INT64_MAX the cheapest maximum flow. *value and *cost
 * (each may be NULL) receive what was reached. Ties are broken by edge order:
 * deterministic. O(value * nodes * edges) at worst, near O(value * edges) in
 * practice.
 */
void graph_flow_run(struct graph_flow *f, int source, int sink, int64_t limit,
		    int64_t *value, int64_t *cost);

/* Flow on an edge after graph_flow_run or graph_flow_max. */
int64_t graph_flow_on(const struct graph_flow *f, int edge);

/*
 * Sends flow from source to sink, whatever it costs, until no more can be sent
 * or `most` (INT64_MAX: the maximum) was; returns how much (Dinic 1970).
 * On top of the flow that is there. O(nodes^2 edges) at worst, in practice a few
 * times the edges.
 */
int64_t graph_flow_max(struct graph_flow *f, int source, int sink, int64_t most);

/* After a maximum flow: the smallest side of the sink, whose edges from outside
 * are a minimum cut. side: n of the network. O(edges). */
void graph_flow_cut(const struct graph_flow *f, int sink, bool *side);

/* ---- cuts and arborescences ---- */

struct graph_arc {
	int32_t from, to;
	int64_t cap;		/* >= 0 */
};

/* A network of n nodes whose edges are the m arcs, of the same numbers and
 * without cost. The errors of graph_flow_add. */
int graph_flow_of(int n, const struct graph_arc *arcs, int m, struct graph_flow **out,
		  struct err *err);

/*
 * *value = the least capacity of a cut between root and another of the nodes
 * 0 .. sinks - 1: the least, over these nodes, of the maximum flow from root;
 * INT64_MAX when there is none. The sum of all capacities must fit 62 bits.
 * One search from every node back to those before it, in practice near
 * O(value * edges). WEFT_EINVAL for nodes that do not exist.
 */
int graph_root_cut(int n, const struct graph_arc *arcs, int m, int root, int sinks,
		   int64_t *value, struct err *err);
/* The same, and the side of that cut without the root; or of the first that is found with less
 * than `enough`. side: n; nothing is in it when there is no such cut. */
int graph_root_cut_side(int n, const struct graph_arc *arcs, int m, int root, int sinks,
			int64_t enough, int64_t *value, bool *side, struct err *err);

/* A fraction in lowest terms: units of flow per unit of capacity. */
struct graph_time {
	int64_t num, den;
};

/*
 * How long it takes at least, and with flows that divide at will exactly, to bring an
 * item from root to each of the other nodes 0 .. ranks - 1: the largest, over sets of nodes
 * without root, of the ranks in it / the capacity into it (Ford and Fulkerson 1956).
 * Capacities add up to at most 2^45. A few maximum flows. WEFT_EINFEASIBLE: a rank
 * cannot be reached.
 */
int graph_scatter_time(int n, const struct graph_arc *arcs, int m, int root, int ranks,
		       struct graph_time *time, struct err *err);

/*
 * The same to bring an item of every rank to all ranks, where nodes copy what passes: the
 * largest, over sets that hold a sink, of the ranks outside / the capacity into it. sinks: all
 * ranks, or one of each class of ranks that are alike by symmetry. That less does not suffice
 * is plain; that it suffices where all nodes copy is Edmonds' theorem on arborescences
 * (1973). At most 2^16 ranks. A few times one search from each sink
 * back to those before it.
 */
int graph_allgather_time(int n, const struct graph_arc *arcs, int m, int ranks, const int *sinks,
			 int n_sinks, struct graph_time *time, struct err *err);

/*
 * How long it takes at least until each of the ranks 0 .. ranks - 1 has an item that is the sum of
 * one from each of them: the largest, over partitions of the ranks into p >= 2 parts, of 2 (p - 1)
 * / the capacity into the parts, for each that of the least cut between it and the
 * other ranks. For p - 1 parts have to pass theirs on, one message each, to where the sum is
 * first complete, and p - 1 have to get it. Nodes that are no ranks only forward or copy. Of
 * a symmetric network of ranks alone it is what spanning trees attain that are used in both
 * directions (Tutte, Nash-Williams 1961). Capacities add up to at most 2^40. Newton's method, at
 * each time one maximum flow a rank. WEFT_EINFEASIBLE: there are no arcs into ranks.
 */
int graph_partition_time(int n, const struct graph_arc *arcs, int m, int ranks,
			 struct graph_time *time, struct err *err);

/* A spanning arborescence: every node but the root has one arc into it. */
struct graph_tree {
	int64_t weight;		/* capacity that it takes of each of its arcs, >= 1 */
	int32_t *via;		/* n: the arc into the node; -1: the root */
	int32_t *depth;		/* n: arcs from the root */
	int deepest;
};

struct graph_trees {
	VEC(struct graph_tree) list;
};

/*
 * Spanning arborescences from root whose weights add up to `weight`, at most
 * what graph_root_cut gives for all nodes (Edmonds 1973), and that together
 * take no more of an arc than its capacity. Grown side by side, level by level,
 * so that they stay shallow: an arc may be taken when, without it, what is left
 * still suffices for the others, which one maximum flow to its head tells
 * (Lovasz 1976; with weights as Schrijver 2003, section 53.3), and then arcs are
 * exchanged between them while that makes them shallower. *out: to be zeroed
 * before, graph_trees_fini also after an error. O(trees * m) flows, mostly short
 * ones. WEFT_EINVAL (nodes that do not exist, weight < 1), WEFT_EINFEASIBLE when
 * weight is above that cut.
 */
int graph_pack_trees(int n, const struct graph_arc *arcs, int m, int root, int64_t weight,
		     struct graph_trees *out, struct err *err);
void graph_trees_fini(struct graph_trees *t);

/* Where arborescences begin, and what those from here weigh together. */
struct graph_root {
	int32_t node;
	int64_t weight;		/* >= 1 */
};

/*
 * The same from many roots, each named once: possible when into every set X of nodes go at least
 * as much capacity as the roots outside X weigh (Edmonds 1973). Trees of one root may be
 * several. Grown side by side, level by level: one maximum flow to a node, in which every tree
 * that has it not sends it the tree's weight, tells of all trees at once which arcs into the
 * node they may take. O(nodes x deepest tree) flows, each O(nodes (nodes + trees / 64))
 * a phase. Errors as above; WEFT_ELIMIT: trees x nodes above 2^27.
 */
int graph_pack_from_roots(int n, const struct graph_arc *arcs, int m,
			  const struct graph_root *roots, int n_roots, struct graph_trees *out,
			  struct err *err);

/*
 * The same where it is easy, with all that the arcs out of root carry: one tree an
 * arc, from whose head an arc leads to every other node, as in complete digraphs.
 * True: there are such trees, and they are in *out. Nodes must exist. O(m +
 * trees * n).
 */
bool graph_two_level_trees(int n, const struct graph_arc *arcs, int m, int root,
			   struct graph_trees *out);

/* ---- arborescences of least cost ---- */

struct graph_cost_arc {
	int32_t from, to;
	int64_t cost;		/* of any sign */
};

/*
 * The spanning arborescence from root of least cost: via[v] = the arc into node v, -1 into root,
 * and *cost the sum of theirs (Chu and Liu 1965, Edmonds 1967, Tarjan 1977). n times the largest
 * cost must fit 62 bits. Arcs into root and self-loops do not count. Which of several is found
 * depends on the arguments and on nothing else. O(m log n). Nodes must exist. WEFT_EINFEASIBLE: a
 * node cannot be reached.
 */
int graph_min_tree(int n, const struct graph_cost_arc *arcs, int m, int root, int32_t *via,
		     int64_t *cost, struct err *err);

#define GRAPH_MAX_SPANNING (1 << 24)	/* nodes times trees */

/*
 * So many spanning trees of an undirected graph, of which at most cap[e] use an edge: edges are
 * arcs without direction, in parallel where one is named twice. *out, free(): n - 1 edges of each
 * tree, which is shallow where edges are not used up, with leaves everywhere. There are so many if
 * and only if every partition of the nodes into p parts has capacity trees (p - 1) between its
 * parts (Tutte, Nash-Williams 1961). O(edges in all trees x trees x n) at worst.
 * WEFT_EINFEASIBLE: there are not; WEFT_ELIMIT: beyond GRAPH_MAX_SPANNING.
 */
int graph_pack_spanning_trees(int n, const struct graph_arc *edges, int m, int trees,
			      int32_t **out, struct err *err);

#endif
