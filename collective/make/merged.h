/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of all-reduces that merge sums on their way: who sums which piece, and who copies it. */
#ifndef WEFT_COLLECTIVE_MAKE_MERGED_H
#define WEFT_COLLECTIVE_MAKE_MERGED_H

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

/* Between nodes of a digraph. */
struct merged_graph {
	const struct topo *t;
	int n, width;
	int32_t *dist;		/* from * n + to */
	int32_t *twin, *cap;	/* by arc: the first of those parallel to it; of the first: their
				 * capacity */
	/* Where a walk of so many arcs ends, a bit a node: walks[length * n + from], `words` each;
	 * NULL: they are not looked at. Loops are arcs. */
	uint64_t *walks;
	size_t words;
	int64_t work;		/* so far, in looks at a node */
	struct arrays arrays;
};

/* One more transfer of a whole sum. */
struct merged_copy {
	int32_t step, arc, piece;	/* step: of copies, from 0 */
};

/* Each vector is cut into pieces, one a colour. The sum of a piece is made at the nodes of its
 * colour, from where the others get copies. */
struct merged_owners {
	int colours;		/* 1: every node sums all */
	int32_t *colour;	/* by node */
	int radius;		/* steps of copies */
	double vectors;		/* over the fullest link in these, added up */
	VEC(struct merged_copy) copies;
};

/* Colours nodes so that each colour is within `radius` steps of every node, in as many colours as
 * a search of little work finds; false: not even two. */
bool merged_colour(struct merged_graph *g, int radius, struct merged_owners *out);
/* Colours by where walks of so many arcs end, where that is one of some sets that share no node;
 * false: it is not. */
bool merged_colour_walks(struct merged_graph *g, int length, struct merged_owners *out);
/* Steps, copies and their load, of a sum that these have: have[piece * n + v]. */
void merged_copy_sums(struct merged_graph *g, struct merged_owners *o, const bool *have);
void merged_owners_fini(struct merged_owners *o);

#endif
