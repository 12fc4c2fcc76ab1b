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

struct topo_arg {
	int64_t value;
	int col;		/* where it stands, 1-based */
};

struct topo_args {
	struct topo_arg number[TOPO_MAX_ARGS], set[TOPO_MAX_ARGS];
	int numbers, members;	/* of the set, ascending */
	bool has_set;
};

struct topo_family {
	const char *name;
	const char *shape;	/* of the arguments: "n" for a number each, "s"
				 * for a set at the end, "+" after an n: more */
	const char *usage;	/* "Ring(n)", for errors */
	/* Checks the arguments (errors at a column) and adds the arcs to a
	 * graph that it makes. */
	int (*build)(const struct topo_args *args, struct topo **out,
		     struct err *err);
};

extern const struct topo_family topo_family_list[];
extern const int topo_n_families;

/* WEFT_EINVAL "column C: fact". */
int topo_err_at(struct err *err, int col, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
