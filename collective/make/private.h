/* What the files of this room share. */
#ifndef WEFT_COLLECTIVE_MAKE_PRIVATE_H
#define WEFT_COLLECTIVE_MAKE_PRIVATE_H

#include "collective/make/make.h"

/* The schedule along trees of all ranks for the query: made->sched, on the physical digraph where
 * that is known, and what it is made of. Of an all-reduce along trees that are packed each way by
 * itself, or (joint) along pairs of trees for both. Errors of coll_forest_pack, or of
 * coll_forest_allreduce and coll_rate_forest, and of coll_forest_schedule. */
int make_forest(const struct coll_make_query *q, bool joint, struct coll_made *made,
		struct err *err);

/* The algorithm of this name on coordinates: made->sched, embedded where partners are no neighbours. What
 * is not fixed is chosen by the cost. Errors of torus_make, torus_choose and torus_parse_radices;
 * WEFT_EUNSUPPORTED in batches, WEFT_EINVAL where something is to be chosen and there is no cost. */
int make_torus(const struct coll_make_query *q, const char *name, struct coll_made *made,
	       struct err *err);
/* The fastest of all of them, nothing where it takes as long as below_ns. q has a cost. */
int make_fastest_torus(const struct coll_make_query *q, int64_t below_ns, struct coll_made *made,
		       struct err *err);

#endif
