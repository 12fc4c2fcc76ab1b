/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directed graphs of fabrics and collectives.
 *
 * Nodes are 0..n-1. Arcs are numbered in CSR order: sorted by source, then
 * in the order they were added, so the arcs out of u are consecutive.
 * Parallel arcs and self-loops are allowed; a self-loop costs a port and
 * carries nothing. A frozen graph never changes.
 *
 * Nodes have a kind. Terminals are the ranks of a collective. Memories store
 * data and copy it; switches only forward. What a node can do is said by its
 * flags. Shared limits are sets of arcs that have a capacity together, such as a
 * memory whose reads and writes share its bandwidth.
 */
#ifndef WEFT_TOPOLOGY_TOPOLOGY_H
#define WEFT_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct topo;

enum topo_kind { TOPO_TERMINAL, TOPO_SWITCH, TOPO_MEMORY };
#define TOPO_KINDS 3

enum topo_flag {
	TOPO_CAN_COPY = 1, TOPO_CAN_REDUCE = 2, TOPO_CAN_STORE = 4,
};
#define TOPO_ABILITIES 3

struct topo_arc {
	int32_t src, dst;
	int64_t cap;		/* relative bandwidth, 1 by default, > 0 */
	int64_t latency_ns;	/* added to alpha, 0 by default */
	int64_t cost;		/* of a unit of data that crosses it, 1 by default, >= 0 */
};

/* What these arcs carry together, in the unit of their capacities. */
struct topo_limit {
	const int32_t *arcs;	/* ascending */
	int n;
	int64_t cap;		/* > 0 */
};

#define TOPO_MAX_NODES 65536
#define TOPO_MAX_ARCS (1 << 24)
#define TOPO_MAX_COST 1000000
#define TOPO_MAX_FIELD 127	/* elements of a finite field */

/* A graph with n terminals (all flags set) and no arcs. WEFT_ELIMIT when n
 * is not in 1..TOPO_MAX_NODES. */
int topo_new(int n, struct topo **out, struct err *err);
void topo_free(struct topo *t);

/* Before freezing: adds an arc. WEFT_EINVAL (nodes out of range, cap < 1,
 * latency < 0), WEFT_ELIMIT. */
int topo_add_arc(struct topo *t, int src, int dst, int64_t cap,
		 int64_t latency_ns, struct err *err);
/* The same with capacity, latency and cost of an arc. WEFT_EINVAL also for a cost that is not in
 * 0 .. TOPO_MAX_COST. */
int topo_add_arc_like(struct topo *t, int src, int dst, const struct topo_arc *like,
		      struct err *err);
void topo_set_node(struct topo *t, int node, enum topo_kind kind, unsigned flags);
/* What nodes of a kind can do unless something else is said of them: terminals
 * all, memories copy and store, switches nothing but forward. */
unsigned topo_usual_flags(enum topo_kind kind);
/* "terminal", "switch", "memory"; of the flag 1 << i: "copy", "reduce", "store".
 * As files and outputs have them. */
const char *topo_kind_name(enum topo_kind kind);
const char *topo_ability_name(int i);
/* Before freezing: n arcs share a capacity. Arcs are numbered here in the order
 * they were added; freezing renames them. Copies `arcs`. WEFT_EINVAL (no
 * arc, one that is not there or stands there twice, cap < 1), WEFT_ELIMIT (the
 * limits name more than TOPO_MAX_ARCS arcs). O(n log n). */
int topo_add_limit(struct topo *t, const int32_t *arcs, int n, int64_t cap, struct err *err);
/* Before freezing `to`: adds the limits of a frozen digraph, whose arc a is arc
 * place[a] of `to`, counted as above, or none when that is negative; NULL: arc
 * a. A limit that has no arc left is left out. Errors of topo_add_limit. */
int topo_copy_limits(const struct topo *from, const int32_t *place, struct topo *to,
		     struct err *err);

/* Sorts arcs and builds the indexes. O(n + m). Once; required before any of
 * the queries below. */
void topo_freeze(struct topo *t);

/* Nodes, arcs, and the arc of a number below topo_m(): by source, then as
 * they were added. O(1). */
int topo_n(const struct topo *t);
int topo_m(const struct topo *t);
const struct topo_arc *topo_arc(const struct topo *t, int arc);
/* By source, target, capacity, latency and cost: below 0, 0 when alike, or above. O(1). */
int topo_arc_compare(const struct topo_arc *a, const struct topo_arc *b);
/* All arcs, topo_m() of them. */
const struct topo_arc *topo_arcs(const struct topo *t);
/* Arcs out of u: *first .. *first + returned - 1. */
int topo_out(const struct topo *t, int u, int *first);
/* Arcs into v: their numbers at *arcs, ascending; returns how many. */
int topo_in(const struct topo *t, int v, const int32_t **arcs);
enum topo_kind topo_node_kind(const struct topo *t, int u);
/* Set of enum topo_flag. */
unsigned topo_node_flags(const struct topo *t, int u);
/* Terminals; terminals and memories. O(1). */
int topo_ranks(const struct topo *t);
int topo_holders(const struct topo *t);
/* All nodes are terminals that copy, reduce and store, and there are no shared
 * limits: the arcs say it all. O(1). */
bool topo_is_plain(const struct topo *t);
/* For what knows nothing else: WEFT_EUNSUPPORTED says what is not plain, with
 * `what` before it. topo_check_unlimited: only limits are refused. O(n). */
int topo_check_plain(const struct topo *t, const char *what, struct err *err);
int topo_check_unlimited(const struct topo *t, const char *what, struct err *err);
/* There are terminals; they come first, then memories, then switches: what reads
 * digraphs for schedules expects it. WEFT_EINVAL names the node that is out of
 * order. O(n). */
int topo_check_order(const struct topo *t, struct err *err);
/* Shared limits, in the order they were added. O(1). */
int topo_n_limits(const struct topo *t);
const struct topo_limit *topo_limit(const struct topo *t, int i);
/* Limits that hold for an arc: their numbers at *limits, ascending; returns how
 * many. O(1). */
int topo_arc_limits(const struct topo *t, int arc, const int32_t **limits);
/* First arc u->v, or -1. O(out-degree). */
int topo_find_arc(const struct topo *t, int u, int v);

/* Largest out-degree and in-degree, self-loops and parallel arcs counted:
 * the ports a node needs. */
int topo_max_degree(const struct topo *t);
/* Every node has this many arcs out and in; 0 when not regular. */
int topo_regular_degree(const struct topo *t);
/* Every arc has its reverse (as a multiset, equal capacities), and every
 * limit the reverse of its arcs; parallel arcs of equal capacity are paired
 * in their order. O(m log degree). */
bool topo_is_symmetric(const struct topo *t);

/* Hop distances from src by breadth-first search, -1 unreachable, into
 * dist[topo_n]. O(n + m). */
void topo_bfs(const struct topo *t, int src, int32_t *dist);
/* Largest distance from a terminal to another, -1 when some cannot be reached.
 * O(orbits (n + m)), one orbit of families whose nodes are a group, n without a group by
 * construction; of products the sum of their factors' diameters. topo_diameter_told calls
 * on_source after each search, of each factor on its own. */
typedef void topo_on_source(void *arg, int done, int sources);
int topo_diameter(const struct topo *t);
int topo_diameter_told(const struct topo *t, topo_on_source *on_source, void *arg);

/* Arcs of the shortest cycle, 0 when there is none; of a symmetric digraph as of
 * an undirected graph: an arc and its reverse are none, parallel arcs are one. O(orbits (n + m)),
 * as of the diameter. */
int topo_girth(const struct topo *t);

/* New frozen graph with every arc reversed; back[new arc] = arc of t, when
 * back is not NULL (room for topo_m). Nodes and limits stay. */
int topo_transpose(const struct topo *t, struct topo **out, int32_t *back, struct err *err);

/* A new frozen graph of n terminals with these m arcs, sorted; a copy of t, its
 * arcs and limits numbered alike. Errors of topo_new and topo_add_arc. */
int topo_from_arcs(int n, const struct topo_arc *arcs, size_t m,
		   struct topo **out, struct err *err);
int topo_copy(const struct topo *t, struct topo **out, struct err *err);
/* The same whose nodes of this kind only forward: they are usual switches. */
int topo_copy_forwarding(const struct topo *t, enum topo_kind kind, struct topo **out,
			 struct err *err);

enum topo_answer { TOPO_NO, TOPO_YES, TOPO_NOT_KNOWN };

/* Whether a group of automorphisms acts transitively on nodes (nauty):
 * then one source's schedule serves all. Automorphisms keep capacities,
 * latencies and the number of parallel arcs; nodes of different kinds or
 * flags are never alike. Known at once for the families whose nodes are a
 * group. No also with shared limits, where none is looked for; not known where the search would be
 * too long. Any thread may call it. */
enum topo_answer topo_vertex_transitive(const struct topo *t);
/* The same of arcs: an automorphism takes any to any other. Nothing is known at once; nauty looks
 * at n + m vertices. No without arcs. */
enum topo_answer topo_arc_transitive(const struct topo *t);
/* Orbits under all automorphisms (nauty), as those above but shared limits go to limits of the same
 * capacity: of each node, arc and limit the least number in its orbit; room for topo_n, topo_m
 * and topo_n_limits. Nodes of different `colour` are never alike (NULL: it does not matter). Where
 * parallel arcs are under limits, all stay where they are. Where the search would be too long,
 * orbits under some of the automorphisms. As slow as nauty on n + m + limits vertices; any thread
 * may call it. */
void topo_orbits(const struct topo *t, const int32_t *colour, int32_t *node, int32_t *arc,
		 int32_t *limit);

/*
 * Graphs from expressions (case-sensitive, blanks ignored): a family with its
 * numbers, "C(16,{3,4})", and perhaps a word, "DgxA100(4,all)", or an operator with expressions
 * inside, "L3(C(16,{3,4}))", "Prod(UniRing(1,4),Ring(5))", "Deg(K(3),2)". The
 * families and operators are those of topo_family_help(); docs/topologies.md
 * has more. The last factor of a product varies fastest; copy i of node v
 * in Deg(X,k) is node i n + v; node a of L(X) is arc a of X. Operators that make
 * other nodes refuse digraphs that are not plain.
 *
 * Sizes are checked against the limits above before arcs are made, and
 * expressions nest at most 32 deep. *name, when not NULL, receives the
 * canonical text (free()). WEFT_EINVAL and WEFT_ELIMIT name the column and
 * what was expected.
 */
int topo_parse(const char *expr, struct topo **out, char **name, struct err *err);

/* Nodes and arcs of what topo_parse() would give, mostly without building it
 * (Dist, PathExpander and what is made of them are built and dropped). Errors of
 * topo_parse. */
int topo_parse_size(const char *expr, int64_t *nodes, int64_t *arcs, struct err *err);

/* Help for people about family i = 0, 1, ...: its form, "C(n,{s,...})", and
 * one line in *help; NULL after the last. */
const char *topo_family_help(int i, const char **help);

/*
 * Graphs from an edge list. One arc a line, nodes counted from 0:
 *
 *   nodes 8              optional, first; else the largest number gives it
 *   undirected           optional, before the arcs: each line is both directions
 *   memory 4             a node that is no terminal
 *   switch 5-7 copy      nodes 5, 6, 7, and what they can do when that is not
 *                        as topo_usual_flags(): copy, reduce, store, or none
 *   limit dram 50        a capacity that arcs share
 *   0 1                  an arc 0 -> 1 of capacity 1 and latency 0
 *   0 1 4 500            parallel to it: capacity 4, latency 500 ns
 *   0 2 4 500 2          and another: a unit of data costs 2
 *   0 4 32 dram          an arc under that limit, or several
 *
 * '#' starts a comment. WEFT_EINVAL has the line, or, when terminals do not come
 * first, then memories, then switches, names a node. O(len).
 */
int topo_from_edges(const char *text, size_t len, struct topo **out, struct err *err);

/*
 * Graphs from and to JSON, each kept as it is:
 *
 *   {"topology": "...", "nodes": 8,
 *    "kinds": [{"kind": "switch", "nodes": [6, 7], "can": ["copy"]}],
 *    "arcs": [[0, 1], [0, 1, 4, 500]],
 *    "limits": [{"capacity": 50, "arcs": [0, 1]}]}
 *
 * Arcs are [source, target, capacity, latency in ns, cost], the last three optional; costs are
 * written where one is not 1.
 * "kinds" has nodes that are not usual terminals, with "can" where it is not
 * topo_usual_flags(). Limits name arcs by their place in the list. "topology"
 * is any text, mostly the expression the graph was built from: *name, free(), ""
 * without one. Written are only "kinds" and "limits" that there are, and arcs in
 * the order of their numbers. WEFT_EINVAL for every other key, and for what
 * topo_from_edges() refuses; with a line where the text is no JSON. O(len).
 */
int topo_from_json(const char *text, size_t len, struct topo **out, char **name, struct err *err);
void topo_to_json(const struct topo *t, const char *name, struct buf *b);
struct json_t;
/* Refuses a value of jansson's that is no object, and keys of it that are not in the list, which
 * ends with NULL: WEFT_EINVAL, with the nearest one as a hint. O(keys x list). */
int topo_json_keys(struct json_t *object, const char *const *known, struct err *err);

/* Appends a picture as SVG (lib/output/canvas.h): nodes and arcs, of large graphs the
 * adjacency matrix, and how many nodes are how far from node 0. O(n + m) beside at most 160
 * nodes that distances place. */
void topo_draw(const struct topo *t, const char *name, struct buf *svg);

/* ---- symmetry ---- */

/*
 * A group of permutations of a digraph's nodes that moves its terminals freely: only
 * the identity leaves any of them where it is. It is given by generators g0, g1, ..
 * and their orders r0, r1, ..; each element is in one way g0^e0, then g1^e1, ..,
 * each exponent below its order, and its number below the group's order has these
 * exponents as digits, that of g0 the least significant. So an orbit of terminals has as
 * many as the group has elements, and a terminal is its orbit's first one moved by
 * one element. Where the generators do not commute the order of one may be that
 * modulo those before it (a polycyclic group). NULL stands for the group of the
 * identity alone.
 *
 * Circulants, rings, tori, hypercubes, complete and Cayley graphs have such groups with
 * one orbit. Line graphs keep their base's. Generalized Kautz and de Bruijn graphs
 * of degree d and n nodes have those of gcd(n, d + 1) or gcd(n, d - 1) elements.
 */
struct topo_group;

/* The group of n_generators permutations of n nodes, of which the first n_free
 * are the terminals: images has n numbers for each, where it takes the nodes.
 * All is copied. WEFT_EINVAL names the generator: no permutation, an order
 * that it has not, a group of more elements, or a terminal that an element
 * leaves where it is; WEFT_EUNSUPPORTED: generators that do not commute, beside other nodes
 * than terminals. O(n generators^2), where they do not commute times log n. */
int topo_group_new(int n, int n_free, int n_generators, const int *orders, const int32_t *images,
		   struct topo_group **out, struct err *err);
int topo_group_copy(const struct topo_group *g, struct topo_group **out, struct err *err);
void topo_group_free(struct topo_group *g);
/* The same generators. Either may be NULL. */
bool topo_group_equal(const struct topo_group *a, const struct topo_group *b);

/*
 * A group of automorphisms: that by which a Cayley graph was made, also on what operators
 * made of it: arcs of line graphs, products, copies, transposes. Else one that is looked for: node
 * numbers read as digits of mixed radices, where adding digit by digit is one; fewest digits
 * first, then with a lowest digit that stays. The first terminals of the orbits are the first
 * nodes. *out NULL: none found, as for every digraph with switches, memories or
 * shared limits. Deterministic. O(m log d) a success, mostly O(d) for each of
 * the factorisations that fail.
 */
int topo_group_find(const struct topo *t, struct topo_group **out, struct err *err);

/*
 * A group of the first nodes of t, its terminals among them, as one of all its nodes:
 * the elements that are automorphisms of t with suitable images for the other nodes, as far as
 * they are products of powers of generators of g. Smaller than g where not all are;
 * *out NULL when none is, as of NULL. WEFT_EINVAL: the terminals are not as many.
 * O(divisors of the orders (m log d + classes of other nodes x their arcs)).
 */
int topo_group_extend(const struct topo_group *g, const struct topo *t, struct topo_group **out,
		      struct err *err);

/*
 * A group of any digraph in which terminals come first: their numbers read as digits,
 * the lowest first and each of the largest radix where adding one to it is an automorphism
 * with suitable images of memories and switches. Between digits parts of the numbers may
 * stay. NULL: none found; at most 100 shifts are tried, each O(m log d + classes of
 * other nodes x their arcs).
 */
struct topo_group *topo_group_digits(const struct topo *t);

/* Nodes (0 of NULL), elements (1 of NULL), orbits of terminals, generators; images and
 * order of generator i. O(1). */
int topo_group_nodes(const struct topo_group *g);
int topo_group_order(const struct topo_group *g);
int topo_group_orbits(const struct topo_group *g);
int topo_group_generators(const struct topo_group *g);
const int32_t *topo_group_generator(const struct topo_group *g, int i, int *order);
/* The first terminal of a terminal's orbit, and the element that takes it
 * there; of NULL the terminal itself and 0. O(1). */
int topo_group_first(const struct topo_group *g, int terminal);
int topo_group_element(const struct topo_group *g, int terminal);
/* Element b and then element a, and the one that undoes a. O(generators), where they do not
 * commute O(log order). */
int topo_group_product(const struct topo_group *g, int a, int b);
int topo_group_inverse(const struct topo_group *g, int a);
/* The element that takes terminal `from` to terminal `to`, -1: none does. Also
 * of nodes that are no terminals, which only the identity reaches here. O(generators). */
int topo_group_between(const struct topo_group *g, int from, int to);
/* Where element `by` takes a node. O(generators) for terminals, else O(sum of
 * orders). */
int topo_group_move(const struct topo_group *g, int by, int node);

/* What a group does to the arcs of a digraph. Of arcs that are alike, parallel
 * with the same capacity, latency and cost, the k-th goes to the k-th. */
struct topo_action;

/* t and g must outlive it; g may be NULL. WEFT_EINVAL when a generator is no
 * automorphism of t: it must keep kinds, flags, arcs with their capacities,
 * latencies and costs, and shared limits. O(m generators log degree). */
int topo_action_new(const struct topo *t, const struct topo_group *g, struct topo_action **out,
		    struct err *err);
void topo_action_free(struct topo_action *x);
/* Where an element takes an arc. O(log degree + topo_group_move). */
int topo_action_move(const struct topo_action *x, int by, int arc);
/* Orbits of arcs: their number, that of an arc, and the first arc and number of
 * arcs of one. Arcs of terminals move freely, as many as the group has
 * elements. O(1). */
int topo_action_orbits(const struct topo_action *x);
int topo_action_orbit(const struct topo_action *x, int arc);
int topo_action_first(const struct topo_action *x, int orbit);
int topo_action_size(const struct topo_action *x, int orbit);
/* One shared limit of every orbit of them. O(1). */
const int32_t *topo_action_limits(const struct topo_action *x, int *n);

/* ---- groups of Cayley graphs ---- */

#define TOPO_CAYLEY_MAX_J 16		/* 2^16 = TOPO_MAX_NODES */
#define TOPO_CAYLEY_MAX_POINTS 96
#define TOPO_CAYLEY_MAX_LEVELS 16	/* each at least doubles the group */
#define TOPO_CAYLEY_MAX_MOVES 199	/* 96 + 96 + 7: levels' lengths with product up to 65,536 */

/* Where it takes the points 0, 1, ..; those beyond the last one stay. */
struct topo_permutation {
	uint8_t image[TOPO_CAYLEY_MAX_POINTS];
};

/*
 * A group of permutations. Level i has the elements that leave the base points of the
 * levels before it where they are, size[i] of them, and a move for every image of its own
 * base point under these; the last has one. An element is one of level i + 1 and then a move of
 * level i, in one way: so its number below size[0] has digits, that of level 0 the highest.
 */
struct topo_cayley_chain {
	int points;			/* 0: no group of permutations */
	int levels;
	int32_t size[TOPO_CAYLEY_MAX_LEVELS + 1];
	uint8_t base[TOPO_CAYLEY_MAX_LEVELS];
	uint8_t first[TOPO_CAYLEY_MAX_LEVELS + 1];	/* move of a level: the identity */
	/* By level and image of the base point: the move; 0xff: none. */
	uint8_t at[TOPO_CAYLEY_MAX_LEVELS][TOPO_CAYLEY_MAX_POINTS];
	uint8_t move[TOPO_CAYLEY_MAX_MOVES][TOPO_CAYLEY_MAX_POINTS];
	uint8_t back[TOPO_CAYLEY_MAX_MOVES][TOPO_CAYLEY_MAX_POINTS];	/* its inverse */
};

/*
 * A group: of permutations where chain.points > 0, else Z_n^j : (Z_k x Z_l). There an
 * element is (v; b, c): v in Z_n^j, b below k, c below
 * l. The lower part moves the upper one by matrices A and Q over Z_n, by rows, and b
 * carries a fixed vector w into v when it passes k:
 *
 *	(v; b, c) (v'; b', c') = (v + A^b Q^c v' + [b + b' >= k] w; b + b', c + c')
 *
 * With j = 1 the matrices are numbers. Elements are numbered by the digits of v, the first
 * the lowest, then b, then c; 0 is the identity. w is only for l = 1.
 *
 * The product of two permutations is the first and then the second; topo_cayley_generate
 * makes their groups. All are values, to be copied as they like.
 */
struct topo_cayley_group {
	int64_t n, k, l, vectors;	/* vectors: n^j */
	int j;
	int64_t a[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J], q[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J];
	int64_t w[TOPO_CAYLEY_MAX_J];
	struct topo_cayley_chain chain;
};

struct topo_cayley_element {
	int64_t v[TOPO_CAYLEY_MAX_J], b, c;
	struct topo_permutation permutation;	/* of a group of permutations, instead */
};

/* x becomes the group that n permutations of so many points, 1 to TOPO_CAYLEY_MAX_POINTS,
 * generate. WEFT_ELIMIT: it has more than TOPO_MAX_NODES elements. O(sum of
 * orbits' lengths x n x points x levels) of the chain above, for few points some us. */
int topo_cayley_generate(struct topo_cayley_group *x, int points,
			 const struct topo_permutation *generators, int n);
/* NULL where it is a group: A^k = Q^l = 1 and A w = w modulo n; else what is not so. Matrices
 * with j > 1 have l = 1. Permutations always are one. O(j^3 log k). */
const char *topo_cayley_fault(const struct topo_cayley_group *x);
/* Its elements. O(1). */
int64_t topo_cayley_order(const struct topo_cayley_group *x);
/* The element of a number, and back; the number of the inverse. O(j), O(j^3 log k); of
 * permutations O(levels points). */
struct topo_cayley_element topo_cayley_element(const struct topo_cayley_group *x, int64_t number);
int64_t topo_cayley_number(const struct topo_cayley_group *x, const struct topo_cayley_element *e);
int64_t topo_cayley_inverse(const struct topo_cayley_group *x, int64_t number);
/* The product of two elements. O(j^2 (k + l)), O(levels points). */
int64_t topo_cayley_product(const struct topo_cayley_group *x, int64_t a, int64_t b);
/* next[u] for every element u: u times this one. O(elements + k l j^2); of permutations
 * O(elements (1 + points / length of the last level's orbit)). */
void topo_cayley_times(const struct topo_cayley_group *x, int64_t number, int32_t *next);
/* m becomes by m; out = m^times. O(j^3), O(j^3 log times). */
void topo_cayley_multiply(const struct topo_cayley_group *x, const int64_t *by, int64_t *m);
void topo_cayley_power(const struct topo_cayley_group *x, const int64_t *m, int64_t times,
		       int64_t *out);
/* The expression of the Cayley graph of these generators, at most 64: with inverses (Cay) or
 * without. Appended. O(n_letters j); permutations are sorted. */
void topo_cayley_write(const struct topo_cayley_group *x, bool inverses, const int64_t *letters,
		       int n_letters, struct buf *b);

/* Whether u -> n - 1 - u is an automorphism, as of generalized Kautz and de
 * Bruijn graphs: then the first half of the nodes stands for all. False also
 * for one that is not plain. O(m log d), mostly O(d) when it is none. */
bool topo_has_mirror(const struct topo *t);

#endif
