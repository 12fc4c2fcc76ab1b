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

#endif
