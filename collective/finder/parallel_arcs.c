/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of as many ports as others, or more: parallel arcs.
 *
 * Breadth-first broadcast takes one step where every node has an arc to every other, and then
 * the fewest parallel arcs between two nodes are what counts. So a frontier here is that of
 * digraphs of fewer ports, each arc as often as there is room for it; T_B is of all ports, used or
 * not.
 */
#include <stdlib.h>

#include "collective/finder/private.h"

#define MAX_NODES 64	/* nodes, for other digraphs than K(n) */

/* Those of k ports, every arc d / k times. */
static void add_times(struct coll_finder *f, struct finder_candidates *set, int n, int k, int d,
			 bool both)
{
	struct finder_candidates known = { 0 };
	int times = d / k;
	size_t from;

	if (!finder_table_read(f, n, k, both, &known)) {
		finder_optimal_set(f, n, k, both, &from);
		for (size_t i = 0; i < f->optimal.v[from].list.n; i++) {
			finder_keep(f, &known, &f->optimal.v[from].list.v[i]);
		}
		finder_add_circulants(f, &known, n, k, both);
	}
	for (size_t i = 0; i < known.list.n; i++) {
		struct finder_candidate c = known.list.v[i];

		if (finder_name(&c, times > 1 ? "Multi(%s,%d)" : "%s", known.list.v[i].expr,
				times)) {
			finder_use_ports(&c, k * times, d);
			finder_keep(f, set, &c);
		}
	}
	vec_fini(&known.list);
}

void finder_add_parallel(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			 bool both)
{
	for (int k = n - 1; k > 0 && (k == n - 1 || n <= MAX_NODES); k--) {
		add_times(f, set, n, k, d, both);
	}
}
