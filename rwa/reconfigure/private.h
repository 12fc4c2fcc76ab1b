/* Private to the planning of changes. */
#ifndef WEFT_RWA_RECONFIGURE_PRIVATE_H
#define WEFT_RWA_RECONFIGURE_PRIVATE_H

#include "rwa/mesh/private.h"
#include "rwa/reconfigure/reconfigure.h"

/* Arcs between the same two nodes, either way, share a fate. */
static inline bool change_same_link(const struct rwa_mesh *m, int32_t a, int32_t b)
{
	const struct rwa_mesh_arc *x = &m->arcs.v[a], *y = &m->arcs.v[b];

	return (x->src == y->src && x->dst == y->dst) || (x->src == y->dst && x->dst == y->src);
}

/* match.c: the lightpaths of a change, of two assignments that passed
 * rwa_mesh_check(). WEFT_ENOMEM. O(lightpaths * those of their demand). */
int change_match(const struct rwa_mesh *m, const struct rwa_assignment *from,
		 const struct rwa_assignment *to, struct rwa_change *out);

#endif
