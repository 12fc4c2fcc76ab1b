/* SPDX-License-Identifier: Apache-2.0 */
/* A coloured digraph for nauty, and running it: for rooms that look for
 * automorphisms of graphs of their own. */
#ifndef WEFT_TOPOLOGY_SYMMETRY_NAUTY_GRAPH_H
#define WEFT_TOPOLOGY_SYMMETRY_NAUTY_GRAPH_H

#include <nauty/nausparse.h>
#include <stdbool.h>

#include "lib/base/err.h"

struct nauty_graph {
	sparsegraph sg;		/* of nv vertices, filled by the caller: */
	int *lab, *ptn;		/* vertices cell by cell, and 0 at a cell's
				 * end, else 1 */
	int *orbits;		/* of a run: the least vertex of each orbit */
};

/* As nauty calls it for each generator, with permutations of all vertices. */
typedef void nauty_on_generator(int count, int *perm, int *orbits,
				int numorbits, int stabvertex, int nv);

/* Room for nv vertices and so many arcs, zeroed. */
void nauty_graph_init(struct nauty_graph *g, int nv, size_t arcs);
void nauty_graph_fini(struct nauty_graph *g);

/* What a run may cost, in arcs looked at by the search: some seconds at worst. */
#define NAUTY_GRAPH_WORK (INT64_C(1) << 26)

/* Finds the automorphisms that keep the cells. `undirected` only when every
 * arc has its reverse: it is far cheaper, as nauty recognises cells that are
 * alike without looking at each permutation. on_generator may be NULL. False: the work was
 * used up, and what was found is some of the automorphisms. The same result on any machine. One
 * thread runs at a time. Exponential at worst, in practice about O(nv + arcs) for each of a few
 * generators, beside a search from every vertex that reaches about 4 sqrt(nv) others. */
bool nauty_graph_run(struct nauty_graph *g, bool undirected, nauty_on_generator *on_generator);

#endif
