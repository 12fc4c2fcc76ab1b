/*
 * Translations of a digraph: node numbers read as digits of mixed radices,
 * where adding a number digit by digit (each modulo its radix) is an
 * automorphism. Circulants, rings, tori, hypercubes, complete and balanced
 * complete bipartite graphs have them; they move any node to any other.
 *
 * The line graph of such a digraph keeps its translations: they move the
 * digits above a lowest one that stays, which says which arc of a node it is.
 * Generalized Kautz and de Bruijn graphs of degree d and n nodes have those by
 * multiples of n / gcd(n, d + 1) or n / gcd(n, d - 1).
 */
#ifndef WEFT_COLLECTIVE_SCHEDULE_TRANSLATION_H
#define WEFT_COLLECTIVE_SCHEDULE_TRANSLATION_H

#include <stdbool.h>

#include "topology/topology.h"

#define SHIFT_MAX_DIGITS 16	/* TOPO_MAX_NODES = 2^16 */

struct shift {
	int fixed;			/* size of the lowest digit, which
					 * stays; 1: none */
	int moves;			/* translations: nodes / fixed */
	int n_digits;
	int radix[SHIFT_MAX_DIGITS];	/* least significant first */
};

/* Node u moved by translation `by` (< moves), which takes node f to
 * by * fixed + f for every f < fixed. */
int shift_node(const struct shift *s, int u, int by);

/* Looks for translations among the ways to write n as a product, fewest
 * factors first, at most a few thousand of them; then with powers of the
 * degree, and what belongs to degree +- 1, as the digit that stays. *found may be false for a
 * graph that has some. Deterministic. O(m log d) a success, mostly O(d) a
 * failure. */
int shift_find(const struct topo *t, struct shift *out, bool *found,
	       struct err *err);

/* Whether u -> n - 1 - u is an automorphism, as of generalized Kautz and de
 * Bruijn graphs: then the first half of the nodes stands for all. False also
 * when out of memory. O(m log d), mostly O(d) when it is none. */
bool shift_mirrors(const struct topo *t);

/* Where translation `by` brings the n arcs of `links`, all into `node` and no
 * self-loops. WEFT_EINTERNAL when it is none. */
int shift_links(const struct topo *t, const struct shift *s, int node, int by,
		const int32_t *links, int n, int32_t *moved, struct err *err);

#endif
