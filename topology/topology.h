/*
 * Directed graphs of fabrics and collectives.
 *
 * Nodes are 0..n-1. Arcs are numbered in CSR order: sorted by source, then
 * in the order they were added, so the arcs out of u are consecutive.
 * Parallel arcs and self-loops are allowed; a self-loop costs a port and
 * carries nothing. A frozen graph never changes.
 */
#ifndef WEFT_TOPOLOGY_TOPOLOGY_H
#define WEFT_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct topo;

enum topo_kind { TOPO_TERMINAL, TOPO_SWITCH, TOPO_MEMORY };

enum topo_flag {
	TOPO_CAN_COPY = 1, TOPO_CAN_REDUCE = 2, TOPO_CAN_STORE = 4,
};

struct topo_arc {
	int32_t src, dst;
	int64_t cap;		/* relative bandwidth, 1 by default, > 0 */
	int64_t latency_ns;	/* added to alpha, 0 by default */
};

#define TOPO_MAX_NODES 65536
#define TOPO_MAX_ARCS (1 << 24)

/* A graph with n terminals (all flags set) and no arcs. WEFT_ELIMIT when n
 * is not in 1..TOPO_MAX_NODES. */
int topo_new(int n, struct topo **out, struct err *err);
void topo_free(struct topo *t);

/* Before freezing: adds an arc. WEFT_EINVAL (nodes out of range, cap < 1,
 * latency < 0), WEFT_ELIMIT, WEFT_ENOMEM. */
int topo_add_arc(struct topo *t, int src, int dst, int64_t cap,
		 int64_t latency_ns, struct err *err);
void topo_set_node(struct topo *t, int node, enum topo_kind kind, unsigned flags);

/* Sorts arcs and builds the indexes. O(n + m). Once; required before any of
 * the queries below. */
int topo_freeze(struct topo *t, struct err *err);

/* Nodes, arcs, and the arc of a number below topo_m(): by source, then as
 * they were added. O(1). */
int topo_n(const struct topo *t);
int topo_m(const struct topo *t);
const struct topo_arc *topo_arc(const struct topo *t, int arc);
/* All arcs, topo_m() of them. */
const struct topo_arc *topo_arcs(const struct topo *t);
/* Arcs out of u: *first .. *first + returned - 1. */
int topo_out(const struct topo *t, int u, int *first);
/* Arcs into v: their numbers at *arcs, ascending; returns how many. */
int topo_in(const struct topo *t, int v, const int32_t **arcs);
enum topo_kind topo_node_kind(const struct topo *t, int u);
/* Set of enum topo_flag. */
unsigned topo_node_flags(const struct topo *t, int u);
/* First arc u->v, or -1. O(out-degree). */
int topo_find_arc(const struct topo *t, int u, int v);

/* Largest out-degree and in-degree, self-loops and parallel arcs counted:
 * the ports a node needs. */
int topo_max_degree(const struct topo *t);
/* Every node has this many arcs out and in; 0 when not regular. */
int topo_regular_degree(const struct topo *t);
/* Every arc has its reverse (as a multiset, equal capacities). False also
 * when out of memory. O(m log degree). */
bool topo_is_symmetric(const struct topo *t);

/* Hop distances from src by breadth-first search, -1 unreachable, into
 * dist[topo_n]. O(n + m). */
void topo_bfs(const struct topo *t, int src, int32_t *dist);
/* Largest distance between any two nodes, -1 when not strongly connected.
 * O(n (n + m)). */
int topo_diameter(const struct topo *t);

/* New frozen graph with every arc reversed; back[new arc] = arc of t, when
 * back is not NULL (room for topo_m). */
int topo_transpose(const struct topo *t, struct topo **out, int32_t *back, struct err *err);

/* A new frozen graph of n terminals with these m arcs, sorted; a copy of t, its
 * arcs numbered alike. Errors of topo_new and topo_add_arc. */
int topo_from_arcs(int n, const struct topo_arc *arcs, size_t m,
		   struct topo **out, struct err *err);
int topo_copy(const struct topo *t, struct topo **out, struct err *err);

/* True when a group of automorphisms acts transitively on nodes (nauty):
 * then one source's schedule serves all. Automorphisms keep capacities,
 * latencies and the number of parallel arcs; nodes of different kinds or
 * flags are never alike. Known at once for the families whose nodes are a
 * group. False also when out of memory. Any thread may call it. */
bool topo_vertex_transitive(const struct topo *t);

/*
 * Graphs from expressions (case-sensitive, blanks ignored): a family with its
 * numbers, "C(16,{3,4})", or an operator with expressions inside,
 * "L3(C(16,{3,4}))", "Prod(UniRing(1,4),Ring(5))", "Deg(K(3),2)". The
 * families and operators are those of topo_family_help(); docs/topologies.md
 * has more. The last factor of a product varies fastest; copy i of node v
 * in Deg(X,k) is node i n + v; node a of L(X) is arc a of X.
 *
 * Sizes are checked against the limits above before arcs are made, and
 * expressions nest at most 32 deep. *name, when not NULL, receives the
 * canonical text (free()). WEFT_EINVAL and WEFT_ELIMIT name the column and
 * what was expected.
 */
int topo_parse(const char *expr, struct topo **out, char **name, struct err *err);

/* Help for people about family i = 0, 1, ...: its form, "C(n,{s,...})", and
 * one line in *help; NULL after the last. */
const char *topo_family_help(int i, const char **help);

/*
 * Graphs from an edge list. One arc a line, nodes counted from 0:
 *
 *   nodes 8              optional, before the arcs; else the largest number
 *                        gives it
 *   undirected           optional, before the arcs: each line is both directions
 *   0 1                  an arc 0 -> 1 of capacity 1 and latency 0
 *   0 1 4 500            parallel to it: capacity 4, latency 500 ns
 *
 * '#' starts a comment. WEFT_EINVAL has the line. O(len).
 */
int topo_from_edges(const char *text, size_t len, struct topo **out, struct err *err);

/* ---- translations ---- */

/*
 * Translations of a digraph: node numbers read as digits of mixed radices,
 * where adding a number digit by digit (each modulo its radix) is an
 * automorphism. Circulants, rings, tori, hypercubes, complete and balanced
 * complete bipartite graphs have them; they move any node to any other.
 *
 * The line graph of such a digraph keeps its translations: they move the
 * digits above a lowest one that stays, which is the arc of a node it is.
 * Generalized Kautz and de Bruijn graphs of degree d and n nodes have those by
 * multiples of n / gcd(n, d + 1) or n / gcd(n, d - 1).
 */
#define TOPO_MAX_DIGITS 16	/* TOPO_MAX_NODES = 2^16 */

struct topo_translation {
	int fixed;			/* size of the lowest digit, which
					 * stays; 1: none */
	int moves;			/* translations: nodes / fixed */
	int n_digits;
	int radix[TOPO_MAX_DIGITS];	/* least significant first */
};

/* Node u moved by translation `by` (< moves), which takes node f to
 * by * fixed + f for every f < fixed. */
int topo_translate_node(const struct topo_translation *s, int u, int by);

/* Looks for translations among the factorisations of n as a product, fewest
 * factors first, at most a few thousand of them; then with powers of the
 * degree, and what belongs to degree +- 1, as the digit that stays. *found may be false for a
 * graph that has some. Deterministic. O(m log d) a success, mostly O(d) a
 * failure. */
int topo_find_translations(const struct topo *t, struct topo_translation *out, bool *found,
	       struct err *err);

/* Whether u -> n - 1 - u is an automorphism, as of generalized Kautz and de
 * Bruijn graphs: then the first half of the nodes stands for all. False also
 * when out of memory. O(m log d), mostly O(d) when it is none. */
bool topo_has_mirror(const struct topo *t);

/* Where translation `by` brings the n arcs of `links`, all into `node` and no
 * self-loops. WEFT_EINTERNAL when it is none. */
int topo_translate_arcs(const struct topo *t, const struct topo_translation *s, int node, int by,
		const int32_t *links, int n, int32_t *moved, struct err *err);

#endif
