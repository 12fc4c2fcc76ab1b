/* A coloured digraph for nauty, and running it: for rooms that look for
 * automorphisms of graphs of their own. */
#ifndef WEFT_TOPOLOGY_NAUTY_GRAPH_H
#define WEFT_TOPOLOGY_NAUTY_GRAPH_H

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

/* Room for nv vertices and so many arcs, zeroed. 0 or WEFT_ENOMEM; fini also
 * then. */
int nauty_graph_init(struct nauty_graph *g, int nv, size_t arcs);
void nauty_graph_fini(struct nauty_graph *g);

/* Finds the automorphisms that keep the cells. `undirected` only when every
 * arc has its reverse: it is far cheaper, as nauty recognises cells that are
 * alike without looking at each permutation, and needs no vertex invariant.
 * on_generator may be NULL. Exponential at worst, in practice about
 * O(nv + arcs) for each of a few generators. */
void nauty_graph_run(struct nauty_graph *g, bool undirected, nauty_on_generator *on_generator);

#endif
