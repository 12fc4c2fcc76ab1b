/* Private to the room: one node's vector to all. */
#ifndef WEFT_OPTREE_BROADCAST_H
#define WEFT_OPTREE_BROADCAST_H

#include "optree/optree.h"

/*
 * The vector of n shards from `root`: each round every gap between two
 * holders is cut by a new one, which takes half of every shard from each
 * end, all channels for each lightpath, as they do not overlap. Or, for
 * long vectors, pieces of some shards go from neighbour to neighbour both
 * ways round. The faster one; sets the schedule, times and counts of *out.
 */
int broadcast_make(const struct optree_params *p, int root, int reach,
		   struct optree_plan *out, struct err *err);

#endif
