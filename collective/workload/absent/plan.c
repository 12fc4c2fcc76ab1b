/* SPDX-License-Identifier: Apache-2.0 */
/* Without the finder: how the ports of a step are best split is not known. */
#include "collective/workload/workload.h"

int workload_make_plan(const struct workload *w, const struct workload_params *p,
		       struct workload_plan **out, struct err *err)
{
	*out = NULL;
	return build_lacks("collectives", err);
}

/* The others are of plans that were made. */
int workload_make_schedules(const struct workload *w, struct workload_plan *plan, struct err *err)
{
	return build_lacks("collectives", err);
}

int workload_group_topo(const struct workload *w, const struct workload_light *l, int op,
			struct topo **out, struct err *err)
{
	return build_lacks("collectives", err);
}

int workload_light_topo(const struct workload *w, const struct workload_light *l,
			struct topo **out, struct err *err)
{
	return build_lacks("collectives", err);
}

void workload_to_json(const struct workload *w, const struct workload_plan *plan, struct buf *out)
{
}

int workload_from_json(const char *name, const char *text, size_t len, struct workload **w,
		       struct workload_plan **plan, struct err_list *errs)
{
	struct err err = { 0 };
	int rc = build_lacks("collectives", &err);

	*w = NULL;
	*plan = NULL;
	err_list_add(errs, &err);
	return rc;
}

int workload_lose(const struct workload *w, struct workload_plan *plan, int light,
		  const struct workload_gap *gaps, size_t n, struct err *err)
{
	return build_lacks("collectives", err);
}

void workload_plan_free(struct workload_plan *plan)
{
}
