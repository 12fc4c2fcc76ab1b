/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the room share. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_TREE_COMMON_H
#define WEFT_TESTS_UNIT_TREE_COMMON_H

#include <stdlib.h>
#include <string.h>

#include "collective/schedule/cut_bound.h"
#include "collective/tree/tree.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"

static inline void must(int rc, const struct err *err)
{
	char text[ERR_MSG_MAX];

	if (rc) {
		fail_msg("%s: %s", err_name(rc), err_str(err, text, sizeof(text)));
	}
}

static inline bool is_towards(enum coll_kind kind)
{
	return kind == COLL_REDUCE || kind == COLL_GATHER;
}

static inline bool is_whole(enum coll_kind kind)
{
	return kind == COLL_BROADCAST || kind == COLL_REDUCE;
}

/* A strongly connected digraph: a cycle through all nodes and `more` arcs at
 * random, self-loops and parallel ones among them; capacities of 1 .. max_cap
 * times `unit`. The last `switches` nodes are switches. */
static inline struct topo *random_digraph(struct rng *r, int n, int more, int max_cap, int unit,
					  int switches)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int a = 0; a < n + more; a++) {
		int from = a < n ? a : (int)rng_below(r, (uint64_t)n);
		int to = a < n ? (a + 1) % n : (int)rng_below(r, (uint64_t)n);
		int cap = unit * (1 + (int)rng_below(r, (uint64_t)max_cap));

		must(topo_add_arc(t, from, to, cap, 0, &err), &err);
	}
	for (int v = n - switches; v < n; v++) {
		topo_set_node(t, v, TOPO_SWITCH, 0);
	}
	topo_freeze(t);
	return t;
}

#endif
