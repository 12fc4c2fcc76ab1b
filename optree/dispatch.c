/*
 * optree_make(): one entry for all algorithms, and the choice between them.
 * Composed plans and the ring come as the symmetric form and are proven as
 * such; it is written out, and proven again, only when it is asked for.
 * OpTree is built beside a composed plan only where a lower bound on its steps
 * says that it may be faster.
 */
#include <stdlib.h>
#include <string.h>

#include "optree/grouped/grouped.h"
#include "optree/private.h"

static const char *const names[] = {
	[OPTREE_AUTO] = "auto", [OPTREE_COMPOSED] = "composed",
	[OPTREE_GROUPED] = "grouped", [OPTREE_TREE] = "optree", [OPTREE_BY_RING] = "ring",
	[OPTREE_BY_NE] = "ne", [OPTREE_BY_WRHT] = "wrht",
	[OPTREE_BY_ONE_STAGE] = "one-stage",
};

const char *optree_algorithm_name(enum optree_algorithm a)
{
	return names[a];
}

int optree_algorithm_parse(const char *name, enum optree_algorithm *a, struct err *err)
{
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (strcmp(name, names[k]) == 0) {
			*a = (enum optree_algorithm)k;
			return 0;
		}
	}
	err_set(err, WEFT_EINVAL, "%s is no algorithm for rings", name);
	err_hint(err, "auto, composed, grouped, optree, ring, ne, wrht, one-stage");
	return WEFT_EINVAL;
}

/* ---- from the symmetric form ---- */

void make_levels_of(const struct optree_params *p,
		    const struct compose_shape *shape, struct optree_plan *out)
{
	const struct optree_sym *s = out->sym;

	out->n_levels = shape->levels;
	for (int j = 0; j < shape->levels; j++) {
		const struct compose_level *l = &shape->level[j];

		out->level[j] = (struct optree_level){
			.members = (l->gap + l->stride - 1) / l->stride,
			.items = (p->n + l->gap - 1) / l->gap,
			.stride = l->stride, .jump = l->jump, .uneven = shape->uneven,
		};
		out->level[j].subsets = (p->n + out->level[j].members - 1) /
					out->level[j].members;
	}
	for (size_t i = 0; i < s->rounds.n; i++) {
		out->level[s->rounds.v[i].level].rounds++;
		out->level[s->rounds.v[i].level].steps += s->rounds.v[i].slots;
	}
}

/* Classes beyond those that lightpaths of these lengths load a link with:
 * what rings cost whose size is no multiple of a stride. */
static int over_bound(const struct optree_sym *s)
{
	int sum = 0;

	for (size_t i = 0; i < s->moves.n; i++) {
		int min = s->line && s->ring.n - s->moves.v[i].len <
						   s->moves.v[i].len
				    ? s->ring.n - s->moves.v[i].len
				    : s->moves.v[i].len;

		sum += s->moves.v[i].classes - min;
	}
	return sum;
}

void make_published(const struct optree_params *p, int depth, struct optree_plan *out)
{
	struct optree_params q = *p;

	if (p->line || tree_width(p, RWA_CW) != tree_width(p, RWA_CCW)) {
		return;
	}
	q.channels = (int)tree_width(p, RWA_CW);
	q.fibres = 1;
	out->optree_time_ns = tree_published_ns(&q);
	out->depth = depth;
	out->closed_form_steps = optree_closed_form(p->n, q.channels, depth);
}

static int set_times(const struct optree_params *p, const struct optree_sym *s,
		     struct optree_plan *out, struct err *err)
{
	int64_t plain = compose_time_ns(p, s);
	int rc = compose_times(p, s, &out->time_ns, err);

	if (rc) {
		return rc;
	}
	if (out->time_ns < 0) {
		return err_set(err, WEFT_ELIMIT, "%d steps last longer than 292 years", out->steps);
	}
	out->retune_hidden_ns = plain - out->time_ns;
	return 0;
}

int make_from_sym(const struct optree_params *p, enum optree_algorithm how, struct optree_sym *s,
		  struct optree_plan *out, struct err *err)
{
	int rc = optree_sym_verify(s, err);

	out->sym = malloc(sizeof(*out->sym));
	if (!rc && !out->sym) {
		rc = err_nomem(err);
	}
	if (rc) {
		optree_sym_fini(s);
		return rc;
	}
	*out->sym = *s;
	out->algorithm = how;
	out->steps = (int)s->steps;
	out->rounds = (int)s->rounds.n;
	out->chunks = s->chunks;
	out->lightpaths = s->lightpaths;
	out->colours_over_bound = over_bound(s);
	out->worst_loss_mdb = p->loss ? rwa_path_loss_mdb(&s->ring, p->loss,
					tree_span(p, s->max_len)) : 0;
	rc = set_times(p, out->sym, out, err);
	if (!rc) {
		make_published(p, optree_best_depth(p->n), out);
	}
	return rc;
}

/* Names the longest of the paths between neighbours. */
static int out_of_reach(const struct optree_params *p, struct err *err)
{
	int span = tree_span(p, 1), v = 0;

	while (optree_links(p, v, (v + 1) % p->n, RWA_CW) < span) {
		v++;
	}
	return tree_out_of_reach(p, v, (v + 1) % p->n, span, err);
}

int make_reach(const struct optree_params *p, int *reach, struct err *err)
{
	struct rwa_ring ring = { p->at && p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };
	int links, max = p->n - 1, min = 0;

	*reach = max;
	if (!p->loss) {
		return 0;
	}
	links = rwa_reach_hops(&ring, p->loss);
	while (min < max) {
		int mid = min + (max - min + 1) / 2;

		if (tree_span(p, mid) <= links) {
			min = mid;
		} else {
			max = mid - 1;
		}
	}
	*reach = min;
	return *reach < 1 ? out_of_reach(p, err) : 0;
}

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
static int tree_may_win(const struct optree_params *p, int depth,
			int64_t than, bool *may, struct err *err)
{
	struct optree_params q = *p;
	int64_t steps = 0, sending;
	int rc;

	q.depth = depth;
	rc = tree_min_steps(&q, &steps, err);
	sending = tree_ceil_muldiv(p->shard_bytes, steps * 8000000000, p->channel_bps);
	*may = steps > 0 && sending >= 0 &&
	       sending < than - steps * (p->alpha_ns + p->span_delay_ns);
	return rc;
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
		rc = tree_may_win(p, depth, out->time_ns, &may, err);
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

	if (plan->groups && plan->groups->shape.sums) {
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
	int rc = retune_timeline(p, plan->sched, &t, err);

	if (rc) {
		return rc;
	}
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

void optree_plan_fini(struct optree_plan *plan)
{
	coll_free(plan->sched);
	plan->sched = NULL;
	broadcast_free(plan->broadcast);
	plan->broadcast = NULL;
	if (plan->sym) {
		optree_sym_fini(plan->sym);
		free(plan->sym);
		plan->sym = NULL;
	}
	if (plan->groups) {
		grouped_fini(plan->groups);
		free(plan->groups);
		plan->groups = NULL;
	}
}
