/* Schedules of expanded digraphs, made from those of what was expanded. */
#ifndef WEFT_COLLECTIVE_BFB_EXPAND_H
#define WEFT_COLLECTIVE_BFB_EXPAND_H

#include "collective/schedule/schedule.h"

/*
 * The schedule of an expression by the constructions of
 * direct-connect-topologies: line graph (definition 2), degree expansion
 * (definition 4), Cartesian power (definition 14), both directions (appendix
 * F: half of every shard by X, half by its transpose, for any X). Operators
 * are taken off from the outside in; what is left has its BFB schedule. With
 * the steps and T_B = factor * M/B of the all-gather on X, of N nodes:
 *
 *   L(X)       steps + 1    at most factor + 1/N               theorem 1
 *   Deg(X,k)   steps + 1    factor + (k-1)/(k N)               theorem 11
 *   Pow(X,k)   k * steps    factor N/(N-1) (N^k-1)/N^k         theorem 12
 *   Bi(X)      the larger   factor, where X's transpose has it in each step
 *
 * Reduce-scatter is made on the transposes and turned round in time;
 * all-reduce is their sequence. A digraph that is no such expansion, a
 * product among them, has no construction: WEFT_EUNSUPPORTED. Other errors
 * are those of coll_bfb and topo_parse; WEFT_ELIMIT beyond COLL_MAX_CHUNKS
 * chunks. The schedule is verified. O(transfers) beside the BFB of the
 * innermost digraph.
 */
int coll_expand(enum coll_kind kind, const char *expr, struct coll_sched **out,
		struct err *err);

#endif
