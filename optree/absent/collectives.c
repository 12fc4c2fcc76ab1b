/* SPDX-License-Identifier: Apache-2.0 */
/* Without rings: no light for jobs on them. */
#include <string.h>

#include "optree/optree.h"

int optree_algorithm_parse(const char *name, enum optree_algorithm *a, struct err *err)
{
	return build_lacks("jobs on rings", err);
}

/* The others are of plans that were made. */
int optree_collective(const struct optree_params *p, enum coll_kind kind, int root,
		      enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	return build_lacks("jobs on rings", err);
}

int optree_plan_expand(const struct optree_params *p, struct optree_plan *plan, struct err *err)
{
	return build_lacks("jobs on rings", err);
}

const char *optree_algorithm_name(enum optree_algorithm a)
{
	return "";
}

void optree_plan_fini(struct optree_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
}
