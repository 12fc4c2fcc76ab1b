/* SPDX-License-Identifier: Apache-2.0 */
/* Without flows: no all-to-all is made. */
#include "collective/flow/flow.h"

static const char what[] = "schedules of all-to-all";

int mcf_schedule(const struct topo *t, const struct mcf_sched_options *opt, struct coll_sched **out,
		 struct mcf_sched_info *info, struct err *err)
{
	return build_lacks(what, err);
}

int mcf_steps(const struct topo *t, const struct mcf_steps_options *opt, struct coll_sched **out,
	      struct mcf_steps_info *info, struct err *err)
{
	return build_lacks(what, err);
}

/* Not known. */
double mcf_bound(const struct topo *t)
{
	return 0;
}

/* There is none. */
void mcf_free(struct mcf *p)
{
}
