/* SPDX-License-Identifier: Apache-2.0 */
/* What scatter.c and steps.c share: paths, and the steps that they are put
 * into. */
#ifndef WEFT_COLLECTIVE_TREE_SCATTER_H
#define WEFT_COLLECTIVE_TREE_SCATTER_H

#include "collective/tree/private.h"

/* Chunks first .. first + n - 1 of one rank's shard. */
struct tree_path {
	int dest, first, n;
	int arcs, len;		/* from the root: tree_paths.arcs.v[arcs ..] */
};

struct tree_paths {
	VEC(struct tree_path) list;
	VEC(int) arcs;
	int chunks;		/* of a shard */
	int longest;
	bool direct;		/* they are shortest paths */
	int64_t room;		/* chunks that a unit of capacity passes at most */
	int64_t hops;		/* chunks times arcs */
};

void tree_paths_fini(struct tree_paths *p);

/* Who passes first where several wait for an arc. */
enum tree_order {
	TREE_FARTHEST,		/* with more hops to go */
	TREE_IN_TURN,		/* the paths in turn, each as often as it has chunks:
				 * no arc is idle at first that is full later */
};

/*
 * Adds transfers that take all chunks along their paths.
 *
 * quota > 0: in each step a unit of capacity passes at most so many chunks.
 * quota 0 (only with TREE_FARTHEST): as many steps as the longest path has; a
 * chunk with h hops to go has to leave when h steps are left. A step passes what
 * has to leave in it, and beyond that as much that all steps up to it have passed
 * what has to leave up to then: so the loads of all steps together are those of
 * the fullest arc, unless a chunk that should fill a step has not come yet.
 *
 * Errors of coll_add. O(hops log).
 */
int tree_add_steps(const struct tree_net *net, const struct tree_paths *p,
		   enum tree_order order, int64_t quota, struct coll_sched *s, struct err *err);

#endif
