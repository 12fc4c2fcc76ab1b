/* SPDX-License-Identifier: Apache-2.0 */
/* A mesh for a step whose groups are given as ranks. */
#ifndef WEFT_COLLECTIVE_WORKLOAD_GROUPS_H
#define WEFT_COLLECTIVE_WORKLOAD_GROUPS_H

#include "collective/workload/workload.h"

/* The groups of a collective. */
struct workload_groups {
	const char *name;
	int32_t *of;		/* [n] the first of the ranks that this one is in a group with */
	uint32_t axes;		/* of the mesh, once that is known */
};

/*
 * Adds the axes of the mesh of n ranks with the fewest axes in which all of them are groups, and
 * says along which. An axis is called after how far its neighbours are apart: stride-8.
 * WEFT_EINVAL: groups that are along no axes of ranks in their order, or of no mesh together, with
 * two that meet in unlike numbers; WEFT_ELIMIT. O(n x groups).
 */
int workload_add_groups(struct workload *w, int n, struct workload_groups *groups, size_t n_groups,
			struct err *err);

#endif
