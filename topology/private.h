/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of topology/ share: the digraph itself, the tree that an expression
 * is read into, what a family has to say to be measured and built, and translations.
 */
#ifndef WEFT_TOPOLOGY_PRIVATE_H
#define WEFT_TOPOLOGY_PRIVATE_H

#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

/* enum topo_kind, and a set of enum topo_flag. */
struct topo_node {
	uint8_t kind, flags;
};

struct topo {
	int n;
	bool frozen;
	bool cayley;			/* transitive by construction */
	struct topo_group *group;	/* of automorphisms, known from construction; or NULL */
	VEC(struct topo *) factors;	/* of a Cartesian product, owned; none: no product */
	int factor_times;		/* as often stands each of them there */
	VEC(struct topo_arc) arcs;	/* frozen: by source, then as added */
	struct topo_node *nodes;	/* n */
	int32_t *out_first;		/* n + 1, once frozen */
	int32_t *in_first;		/* n + 1, once frozen */
	int32_t *in_arcs;		/* by target, ascending */
	int ranks, holders;		/* terminals, those and memories; frozen */
	bool plain;			/* see topo_is_plain(); frozen */
	VEC(struct topo_limit) limits;	/* their arcs: frozen, in limit_arcs */
	VEC(int32_t) limit_arcs;	/* limit after limit */
	int32_t *arc_first_limit;	/* m + 1, frozen; NULL without limits */
	int32_t *arc_limits;		/* limits by arc, ascending */
};

/* The kind of that name, or -1; the flag of an ability's name, or 0. */
int topo_find_kind(const char *name);
unsigned topo_find_ability(const char *name);
/* topo_freeze()'s part for kinds. */
void topo_count_kinds(struct topo *t);
/* topo_freeze()'s part for limits, before the arcs are sorted. */
void topo_freeze_limits(struct topo *t);
/* Whether arcs a -> image[a], a permutation, bring limits to limits of the same
 * capacity. O(arcs of limits, log). */
bool topo_maps_limits(const struct topo *t, const int32_t *image);

/* What the parser found between the parentheses of a family. */
#define TOPO_MAX_ARGS 64
#define TOPO_MAX_DIGITS 16	/* TOPO_MAX_NODES = 2^16 */
#define TOPO_MAX_PARTS 16

struct topo_arg {
	int64_t value;
	int col;		/* where it stands, 1-based */
};

#define TOPO_ARCS_UNKNOWN (-1)

/* What is known of a graph before it is built. */
struct topo_size {
	int64_t n, m;		/* m counts self-loops and parallel arcs, or
				 * is TOPO_ARCS_UNKNOWN: then the parser builds
				 * the graph to learn arcs and degree */
	int64_t degree;		/* in and out of every node; 0: they differ,
				 * or unknown */
	bool transitive;	/* by construction */
	bool loopless;		/* for certain */
};

/* A family with its arguments; operators have sub-expressions. */
struct topo_call {
	const struct topo_family *family;
	int col;
	struct topo_arg number[TOPO_MAX_ARGS], set[TOPO_MAX_ARGS];
	int numbers, members;	/* of the set, ascending */
	bool has_set;
	char word[16];		/* "": none */
	int word_col;
	struct topo_call *part[TOPO_MAX_PARTS];
	int parts;
	struct topo_cayley *cayley;	/* of Cayley graphs, owned */
	struct topo_size size;	/* filled by measure */
};

/* A call being measured or built. The first error stays in rc and err; what
 * comes after it does nothing, so that measures and builders need not look. */
struct topo_make {
	const struct topo_call *call;
	struct topo_size size;
	const struct topo *const *parts;	/* build: the built ones */
	struct topo *t;				/* build */
	bool keeps_kinds;			/* build: t has the nodes of the first part,
						 * and their kinds */
	int factor_times;			/* build: t is the Cartesian product of the
						 * parts, so many times; 0: it is not */
	int rc;
	struct err *err;
};

struct topo_family {
	const char *name;
	const char *shape;	/* of the arguments: "x" for an expression,
				 * "n" for a number each, "s" for a set at the
				 * end, "w" for a word there,
				 * "+" after an n or x: more of them, "k"
				 * at the end: the last number may stand behind
				 * the name instead, L3(X); "c" for what
				 * topo_read_cayley reads */
	const char *usage;	/* "Ring(n)", for errors */
	const char *help;	/* one line */
	/* Checks the arguments and sets the size; the parts' sizes are
	 * known. */
	void (*measure)(struct topo_make *mk);
	/* Adds the arcs; parts are built and frozen, and t has size.n nodes. */
	void (*build)(struct topo_make *mk);
};

/* An expression being read, for those who read arguments of their own. */
struct topo_parser {
	const char *text, *at;
	struct err *err;
};

/* Where the parser is, 1-based. */
int topo_column(const struct topo_parser *p);
/* Takes c, with the blanks around it, if it comes next. */
bool topo_accept(struct topo_parser *p, char c);
/* WEFT_EINVAL "column 7: expected X, found 'y'". */
int topo_expected(struct topo_parser *p, const char *what);
/* A number of digits, as `what` in errors. */
int topo_read_number(struct topo_parser *p, const char *what, struct topo_arg *arg);

/* The arguments of a Cayley graph, after its '(' and with its ')', into call->cayley, which
 * free() frees; and the whole expression. cayley.c. */
int topo_read_cayley(struct topo_parser *p, struct topo_call *call);
void topo_write_cayley(const struct topo_call *call, struct buf *b);

/* Elements such that every element is the product of a power of the last one, .., of the
 * second, and of the first, each below its order, in one way: what topo_group_new takes. */
struct topo_cayley_factors {
	int n;
	int64_t number[TOPO_MAX_DIGITS + 2];
	int order[TOPO_MAX_DIGITS + 2];
};

/* Of a group of permutations; permutations.c. False: none found within a second. */
bool topo_chain_factors(const struct topo_cayley_chain *x, struct topo_cayley_factors *out);
/* What topology.h says of topo_cayley_element() and so on, of permutations. */
void topo_chain_element(const struct topo_cayley_chain *x, int64_t number, uint8_t *image);
int64_t topo_chain_number(const struct topo_cayley_chain *x, const uint8_t *image);
int64_t topo_chain_inverse(const struct topo_cayley_chain *x, int64_t number);
int64_t topo_chain_product(const struct topo_cayley_chain *x, int64_t a, int64_t b);
void topo_chain_times(const struct topo_cayley_chain *x, int64_t number, int32_t *next);

/* The families of one file; a NULL name ends the list. */
extern const struct topo_family topo_basic[], topo_words[], topo_regular[], topo_cayley[],
	topo_random[], topo_formation[], topo_switched[], topo_operators[];
extern const struct topo_family *const topo_family_lists[];

/* WEFT_EINVAL "column C: fact". */
int topo_err_at(struct err *err, int col, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same as the error of mk. */
void topo_refuse(struct topo_make *mk, int col, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The value of argument i. */
static inline int64_t topo_number(const struct topo_make *mk, int i)
{
	return mk->call->number[i].value;
}

/* min <= arg <= max, or WEFT_EINVAL at its column; `what` names it. */
void topo_check_arg(struct topo_make *mk, const struct topo_arg *arg,
		    const char *what, int64_t min, int64_t max);
/* The same of argument i; of a number of nodes, at most TOPO_MAX_NODES. */
void topo_check_number(struct topo_make *mk, int i, const char *what, int64_t min, int64_t max);
void topo_check_nodes(struct topo_make *mk, int i, int64_t min);
/* base^exponent, or limit + 1 when that is more. */
int64_t topo_power(int64_t base, int64_t exponent, int64_t limit);
/* Adds an arc of capacity one, one each way, or u -> v with the capacity,
 * latency and cost of a. */
void topo_link(struct topo_make *mk, int64_t u, int64_t v);
void topo_edge(struct topo_make *mk, int64_t u, int64_t v);
void topo_copy_arc(struct topo_make *mk, const struct topo_arc *a, int64_t u, int64_t v);

/* Number of nodes that node 0 reaches, itself included, breadth first; node u's d
 * neighbours are next[u * d] and so on. queue and seen have room for n. random.c,
 * O(n d). */
int topo_count_reached(const int32_t *next, int n, int d, int32_t *queue, bool *seen);

/* The size of n nodes with `degree` arcs out and in, no self-loops, all alike
 * because adding a constant (in the group that numbers them) keeps the
 * arcs. */
struct topo_size topo_group_size(int64_t n, int64_t degree);

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
 * graph that has some, and is for one that is not plain. Deterministic. O(m log d) a success,
 * mostly O(d) a failure. */
void topo_find_translations(const struct topo *t, struct topo_translation *out, bool *found);

#endif
