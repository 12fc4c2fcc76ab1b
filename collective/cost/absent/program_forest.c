/* SPDX-License-Identifier: Apache-2.0 */
/* Without linear programs: trees are packed by cuts alone. */
#include "collective/cost/cost.h"

int coll_rate_forest(const struct topo *t, const struct coll_rate_demand *demand,
		     const struct coll_rate_options *opt, struct coll_rate *r,
		     struct coll_forest *f, struct err *err)
{
	return build_lacks("trees by linear programs", err);
}

/* Nothing comes to be in it. */
void coll_rate_init(struct coll_rate *r)
{
}

void coll_rate_fini(struct coll_rate *r)
{
}
