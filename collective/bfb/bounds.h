/*
 * The loads that decide T_B of breadth-first broadcast: for every distance
 * the largest over all nodes of the least load of a node's fullest link
 * (direct-connect-topologies eq. (3)). All nodes at once: who reaches a node
 * within t hops is a row of bits, and most nodes are settled by counting bits.
 */
#ifndef WEFT_COLLECTIVE_BFB_BOUNDS_H
#define WEFT_COLLECTIVE_BFB_BOUNDS_H

#include "collective/bfb/balance.h"
#include "lib/base/vec.h"
#include "topology/topology.h"

/* v[t - 1] = the top of distance t; as many as the diameter. */
struct tops {
	struct ratio *v;
	size_t n, cap;
};

#define TOPS_MAX_NODES 16384	/* two matrices of bits, 64 MiB */

/* Whether tops_solve takes this digraph: not too large, and no node with
 * more than SPREAD_MAX_LINKS arcs into it. */
bool tops_can(const struct topo *t);

/*
 * Appends the tops. The first `sources` nodes stand for all of them: every
 * node is the image of one of these under an automorphism. Zero `out` first;
 * free its v also after an error. WEFT_EINFEASIBLE names two nodes when t is
 * not strongly connected. O(D N m / 64) words and, for the nodes that counts
 * do not settle, a program of balance.h each.
 */
int tops_solve(const struct topo *t, int sources, struct tops *out,
	       struct err *err);

#endif
