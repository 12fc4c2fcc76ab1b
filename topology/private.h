/* What the files of topology/ share. */
#ifndef WEFT_TOPOLOGY_PRIVATE_H
#define WEFT_TOPOLOGY_PRIVATE_H

#include "lib/base/vec.h"
#include "topology/topology.h"

struct topo_node {
	uint8_t kind, flags;
};

struct topo {
	int n;
	bool frozen;
	bool cayley;			/* transitive by construction */
	VEC(struct topo_arc) arcs;
	struct topo_node *nodes;	/* n */
	int32_t *out_first;		/* n + 1, once frozen */
	int32_t *in_first;		/* n + 1, once frozen */
	int32_t *in_arcs;		/* by target, ascending */
};

/* What the parser found between the parentheses of a family. */
#define TOPO_MAX_ARGS 64
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
	struct topo_call *part[TOPO_MAX_PARTS];
	int parts;
	struct topo_size size;	/* filled by measure */
};

struct topo_family {
	const char *name;
	const char *shape;	/* of the arguments: "x" for an expression,
				 * "n" for a number each, "s" for a set at the
				 * end, "+" after an n or x: more of them, "k"
				 * at the end: the last number may stand behind
				 * the name instead, L3(X) */
	const char *usage;	/* "Ring(n)", for errors */
	const char *help;	/* one line */
	/* Checks the arguments (errors at a column) and tells the size; the
	 * parts' sizes are known. */
	int (*measure)(const struct topo_call *call, struct topo_size *size,
		       struct err *err);
	/* Adds the arcs; parts are built and frozen. t has size.n nodes. */
	int (*build)(const struct topo_call *call,
		     const struct topo *const *parts, struct topo *t,
		     struct err *err);
};

/* The families of one file; a NULL name ends the list. */
extern const struct topo_family topo_basic[], topo_words[], topo_regular[],
	topo_random[], topo_formation[], topo_operators[];
extern const struct topo_family *const topo_family_lists[];

/* WEFT_EINVAL "column C: fact". */
int topo_err_at(struct err *err, int col, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* least <= arg <= most, or WEFT_EINVAL at its column; `what` names it. */
int topo_check_arg(const struct topo_arg *arg, const char *what,
		   int64_t least, int64_t most, struct err *err);
/* The same for a number of nodes, with TOPO_MAX_NODES as the most. */
int topo_check_nodes(const struct topo_arg *arg, int64_t least,
		     struct err *err);
/* base^exponent, or limit + 1 when that is more. */
int64_t topo_power(int64_t base, int64_t exponent, int64_t limit);
/* Adds an arc of capacity one, or one each way. */
int topo_link(struct topo *t, int64_t u, int64_t v, struct err *err);
int topo_edge(struct topo *t, int64_t u, int64_t v, struct err *err);

#endif
