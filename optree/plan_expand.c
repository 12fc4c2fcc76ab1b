/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan written out as a schedule with its light. An all-gather is written by its form, and
 * converted where the plan is of a reduction; with overlap of retuning every resonator is
 * proven to be set in the dark and in time.
 */
#include "optree/grouped/grouped.h"

/* The all-gather; mirrored: the other way round, on the other direction's light. */
static int write_gather(const struct optree_params *p, struct optree_plan *plan, bool mirrored,
			struct coll_sched **out, struct err *err)
{
	int rc;

	if (plan->groups) {
		return grouped_expand(plan->groups, p, mirrored, out, err);
	}
	if (mirrored) {
		optree_sym_mirror(plan->sym);
	}
	rc = optree_sym_expand(plan->sym, p, out, err);
	if (mirrored) {
		optree_sym_mirror(plan->sym);
	}
	return rc;
}

static int convert(const struct optree_params *p, struct optree_plan *plan, struct err *err)
{
	struct coll_sched *mirror = NULL;
	int rc = p->n_light ? write_gather(p, plan, true, &mirror, err) : 0;

	if (!rc) {
		rc = collectives_convert(p, plan->kind, mirror, &plan->sched, err);
	}
	coll_free(mirror);
	return rc;
}

static int expand(const struct optree_params *p, struct optree_plan *plan, struct err *err)
{
	int rc;

	if (plan->broadcast) {
		return broadcast_expand(p, plan, err);
	}
	rc = write_gather(p, plan, false, &plan->sched, err);

	if (plan->groups && (plan->groups->shape.sums || plan->groups->shape.owners)) {
		return rc;
	}
	if (!rc && (plan->kind == COLL_REDUCE_SCATTER || plan->kind == COLL_ALLREDUCE)) {
		rc = convert(p, plan, err);
	}
	return rc;
}

/* Every resonator can be set in the dark and in time for what was said. */
static int prove_overlap(const struct optree_params *p,
			 const struct optree_plan *plan, struct err *err)
{
	__int128 unit = (__int128)p->channel_bps * coll_chunks(plan->sched);
	struct retune_timeline t;
	int rc;

	retune_timeline(p, plan->sched, &t);
	rc = retune_check(p, plan->sched, &t, err);
	if (!rc && t.steps && t.end[t.steps - 1] > plan->time_ns * unit) {
		rc = err_set(err, WEFT_EVERIFY, "resonators cannot be set "
			     "within the %lld ns of the plan",
			     (long long)plan->time_ns);
	}
	retune_fini(&t);
	return rc;
}

int optree_plan_expand(const struct optree_params *p, struct optree_plan *plan, struct err *err)
{
	int rc = plan->sched ? 0 : expand(p, plan, err);

	if (!rc && p->overlap) {
		rc = prove_overlap(p, plan, err);
	}
	if (rc) {
		coll_free(plan->sched);
		plan->sched = NULL;
	}
	return rc;
}
