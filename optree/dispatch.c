/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The all-gather: one entry for all algorithms, and the choice between them.
 * Composed plans and the ring come as the symmetric form and are proven as
 * such; it is written out, and proven again, only when it is asked for.
 * OpTree is built beside a composed plan only where a lower bound on its steps
 * says that it may be faster.
 */
#include <string.h>

#include "optree/baselines/baselines.h"
#include "optree/grouped/grouped.h"

static int make_composed(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct compose_shape shape;
	struct optree_sym s;
	int reach, rc = make_reach(p, &reach, err);

	if (!rc && !(rc = compose_best(p, reach, &shape, &s, err)) &&
	    !(rc = make_from_sym(p, OPTREE_COMPOSED, &s, out, err))) {
		make_levels_of(p, &shape, out);
	}
	return rc;
}

static int make_ring(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct optree_sym s;
	int reach, rc = make_reach(p, &reach, err);

	if (!rc && !(rc = baseline_ring(p, &s, err)) &&
	    !(rc = make_from_sym(p, OPTREE_BY_RING, &s, out, err))) {
		out->closed_form_steps = optree_baseline_steps(OPTREE_RING, p->n, 1);
	}
	return rc;
}

/* ---- the choice ---- */

/* True when a tree of `depth` (0: any) may be faster than `than`. */
static void tree_may_win(const struct optree_params *p, int depth, int64_t than, bool *may)
{
	struct optree_params q = *p;
	int64_t steps = 0, sending;

	q.depth = depth;
	tree_min_steps(&q, &steps);
	sending = tree_ceil_muldiv(p->shard_bytes, steps * 8000000000, p->channel_bps);
	*may = steps > 0 && sending >= 0 &&
	       sending < than - steps * (p->alpha_ns + p->span_delay_ns);
}

/* The composed plan, or OpTree at this depth (0: any) where that is faster:
 * on small rings lightpaths of unequal lengths fill the channels better
 * than classes of equal ones. */
static int make_faster(const struct optree_params *p, int depth,
		       struct optree_plan *out, struct err *err)
{
	struct optree_params q = *p;
	struct optree_plan tree;
	struct err ignored;
	bool may = false;
	int rc = make_composed(p, out, err);

	if (!rc && !part_supports(p, OPTREE_TREE, &ignored)) {
		tree_may_win(p, depth, out->time_ns, &may);
	}
	if (rc || !may) {
		return rc;
	}
	q.depth = depth;
	rc = tree_plan(&q, &tree, &ignored);
	if (rc == 0 && tree.time_ns < out->time_ns) {
		optree_plan_fini(out);
		*out = tree;
	} else {
		optree_plan_fini(&tree);
	}
	return 0;
}

/* The grouped plan where that is faster still. */
static int make_fastest(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct optree_plan groups = { 0 };
	int rc = make_faster(p, 0, out, err);

	if (rc || grouped_make(p, out->time_ns, &groups, &(struct err){ 0 })) {
		optree_plan_fini(&groups);
		return rc;
	}
	optree_plan_fini(out);
	*out = groups;
	return 0;
}

/* A tree of one stage is a direct level of all nodes. */
static int make_levels(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	int rc = make_faster(p, 1, out, err);

	out->algorithm = OPTREE_COMPOSED;
	return rc;
}

static int make_one_stage(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	struct optree_params one = *p;
	int rc;

	one.depth = 1;
	rc = tree_plan(&one, out, err);
	out->algorithm = OPTREE_BY_ONE_STAGE;
	return rc;
}

int make_gather(const struct optree_params *p, enum optree_algorithm how,
		struct optree_plan *out, struct err *err)
{
	int rc = tree_check_params(p, err);

	memset(out, 0, sizeof(*out));
	if (rc || (rc = part_supports(p, p->depth ? OPTREE_TREE : how, err))) {
		return rc;
	}
	switch (how) {
	case OPTREE_AUTO:
		rc = p->depth ? tree_plan(p, out, err)
			      : make_fastest(p, out, err);
		break;
	case OPTREE_COMPOSED:
		rc = make_levels(p, out, err);
		break;
	case OPTREE_GROUPED:
		rc = grouped_make(p, INT64_MAX, out, err);
		break;
	case OPTREE_TREE:
		rc = tree_plan(p, out, err);
		break;
	case OPTREE_BY_RING:
		rc = make_ring(p, out, err);
		break;
	case OPTREE_BY_ONE_STAGE:
		rc = make_one_stage(p, out, err);
		break;
	case OPTREE_BY_NE:
		rc = baseline_ne(p, out, err);
		break;
	case OPTREE_BY_WRHT:
		rc = baseline_wrht(p, out, err);
		break;
	}
	if (rc) {
		optree_plan_fini(out);
	}
	return rc;
}
