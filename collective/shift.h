/*
 * Translations of a digraph: node numbers read as digits of mixed radices,
 * where adding a number digit by digit (each modulo its radix) is an
 * automorphism. Circulants, rings, tori, hypercubes, complete and balanced
 * complete bipartite graphs have them; they move any node to any other.
 */
#ifndef WEFT_COLLECTIVE_SHIFT_H
#define WEFT_COLLECTIVE_SHIFT_H

#include <stdbool.h>

#include "topology/topology.h"

#define SHIFT_MAX_DIGITS 16	/* TOPO_MAX_NODES = 2^16 */

struct shift {
	int n_digits;
	int radix[SHIFT_MAX_DIGITS];	/* least significant first */
};

/* Node u moved by the translation that takes node 0 to `by`. */
int shift_node(const struct shift *s, int u, int by);

/* Looks for translations among the ways to write n as a product, fewest
 * factors first, at most a few thousand of them. *found may be false for a
 * graph that has some. Deterministic. O(m log d) a success, mostly O(d) a
 * failure. */
int shift_find(const struct topo *t, struct shift *out, bool *found,
	       struct err *err);

/* Arcs into `by`, in the order in which the translation to `by` brings the
 * n arcs of `links` (all into node 0). WEFT_EINTERNAL when it is none. */
int shift_links(const struct topo *t, const struct shift *s, int by,
		const int32_t *links, int n, int32_t *moved, struct err *err);

#endif
