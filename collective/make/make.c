/*
 * The list of what is tried for a schedule, and the best of what comes of it.
 *
 * A row of the table is a name, the collectives that it is for, and the function that
 * makes and offers its schedules; "auto" goes through the table from above. What costs more stands
 * further below and looks at the best so far: where that cannot be beaten, or the work
 * would be out of proportion, nothing is made.
 */
#include <math.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/make/private.h"

/* Transfers that are kept by a schedule in batches, and beyond which a construction is not
 * tried beside a compact schedule. */
#define MAX_KEPT (4 << 20)

/* Extra steps for late takers that are tried when the cost is given. */
#define TIMED_EXTRA_STEPS 2

/* How near the flow of a job's all-to-all comes to its bound, or when it stops. */
#define JOB_GAP 1e-3
#define JOB_PASSES 500

void coll_made_fini(struct coll_made *m)
{
	coll_free(m->sched);
	coll_free(m->logical);
	mcf_free(m->flow);
	if (m->algorithm) {
		coll_report_fini(&m->report);
	}
	*m = (struct coll_made){ 0 };
}

static bool is_auto(const struct coll_make_query *q)
{
	return strcmp(q->algorithm, "auto") == 0;
}

/* ---- offers ---- */

/* Embeds, replays and times the schedule. */
static int measure(const struct coll_make_query *q, struct coll_made *one, struct err *err)
{
	int rc;

	if (q->fabric && !one->is_physical) {
		one->logical = one->sched;
		one->sched = NULL;
		rc = coll_embed_in(q->fabric, one->logical, &one->sched, err);
		if (rc) {
			return rc;
		}
	}
	rc = coll_verify(one->sched, &one->report, err);
	if (rc || !q->cost) {
		return rc;
	}
	return coll_time(one->sched, &one->report, q->cost, &one->time_ns, &one->bound_ns, err);
}

/* Whether its number of steps was chosen by what a step is worth. */
static bool has_chosen_steps(const struct coll_made *m)
{
	return m->tree.trees > 0 || strcmp(m->algorithm, "flood") == 0;
}

/* T_B and steps in one number, for those beside others. */
static double weigh(const struct coll_made *m)
{
	return mpq_get_d(m->report.bandwidth_factor) +
	       mpq_get_d(m->report.bandwidth_bound) * m->report.steps / COLL_STEPS_WORTH;
}

/* Chunks and steps may each lose a share of the rate: T_B within both of the least is equal. */
static bool has_fewer_steps(const struct coll_make_query *q, const struct coll_made *a,
			    const struct coll_made *b)
{
	double mine = mpq_get_d(a->report.bandwidth_factor);
	double other = mpq_get_d(b->report.bandwidth_factor);
	double enough = b->pairs.min_factor * (1 + 2 * q->pairs.loss);

	enough = mine < b->pairs.min_factor ? mine * (1 + 2 * q->pairs.loss) : enough;
	if ((mine <= enough) != (other <= enough)) {
		return mine <= enough;
	}
	return a->report.steps != b->report.steps ? a->report.steps < b->report.steps
						  : mine < other;
}

static bool is_better(const struct coll_make_query *q, const struct coll_made *a,
		      const struct coll_made *b)
{
	int cmp;

	if (!b->sched) {
		return true;
	}
	if (q->cost) {
		return a->time_ns < b->time_ns;
	}
	if (q->kind == COLL_ALLTOALL) {
		return has_fewer_steps(q, a, b);
	}
	if (has_chosen_steps(a) || has_chosen_steps(b)) {
		return weigh(a) < weigh(b);
	}
	cmp = mpq_cmp(a->report.bandwidth_factor, b->report.bandwidth_factor);
	return cmp ? cmp < 0 : a->report.steps < b->report.steps;
}

/* Takes over what one owns, whose report is not initialised yet; it becomes *best when it is
 * the better one. */
static int offer(const struct coll_make_query *q, struct coll_made *one, struct coll_made *best,
		 struct err *err)
{
	double factor, least = best->sched ? best->pairs.min_factor : HUGE_VAL;
	int rc;

	coll_report_init(&one->report);
	one->batches = one->batches > 0 ? one->batches : 1;
	rc = measure(q, one, err);
	factor = mpq_get_d(one->report.bandwidth_factor);
	if (rc == 0 && is_better(q, one, best)) {
		struct coll_made worse = *best;

		*best = *one;
		best->bfb_bound_ns = worse.bfb_bound_ns;
		*one = worse;
	}
	best->pairs.min_factor = rc == 0 && factor < least ? factor : least;
	coll_made_fini(one);
	return rc;
}

/* ---- all-gather, reduce-scatter, all-reduce ---- */

/* Batches that s may be made in. */
static int max_batches(const struct coll_make_query *q, const struct coll_sched *s)
{
	int64_t kept, all, most = COLL_MAX_BATCHES;

	coll_xfers(s, &kept);
	all = kept * topo_group_order(coll_group(s));
	if (kept > 0) {
		most = MAX_KEPT / kept < most ? MAX_KEPT / kept : most;
		most = q->max_transfers > 0 && q->max_transfers / all < most
			       ? q->max_transfers / all : most;
	}
	return (int)most;
}

/* Those asked for, or the fewest that gain as much where arcs are links; or those that take
 * the least time. */
static int count_batches(const struct coll_make_query *q, const struct coll_sched *whole,
			 int *batches, struct err *err)
{
	*batches = q->batches > 1 ? q->batches : 1;
	if (q->batches > 1) {
		return q->fabric ? 0 : coll_pipeline_fewest(whole, q->batches, batches, err);
	}
	if (q->batches == 1 || !q->cost) {
		return 0;
	}
	return coll_pipeline_best(whole, q->cost, max_batches(q, whole), batches, err);
}

/* In batches; chosen ones move to idle links what can move there. *out is NULL where one batch
 * is best. */
static int make_batches(const struct coll_make_query *q, const struct coll_sched *whole,
			int *batches, struct coll_sched **out, struct err *err)
{
	struct coll_sched *s = NULL;
	int rc = count_batches(q, whole, batches, err);

	*out = NULL;
	if (rc || *batches == 1 || (rc = coll_pipeline(whole, *batches, &s, err)) ||
	    q->batches > 1) {
		*out = s;
		return rc;
	}
	rc = coll_tighten_steps(s, out, err);
	coll_free(s);
	return rc;
}

/* Offers a schedule whole and in batches: in batches only where they were asked for; else what
 * cannot be in batches stays whole. */
static int offer_batches(const struct coll_make_query *q, struct coll_made *one,
			 struct coll_made *best, struct err *err)
{
	struct coll_made parts = { .algorithm = one->algorithm };
	int rc = make_batches(q, one->sched, &parts.batches, &parts.sched, err);

	if (rc && (q->batches > 1 || rc == WEFT_ENOMEM)) {
		coll_free(one->sched);
		return rc;
	}
	if (rc) {
		err_clear(err);
	}
	if (parts.sched && q->batches > 1) {
		coll_free(one->sched);
	} else if ((rc = offer(q, one, best, err))) {
		coll_free(parts.sched);
		return rc;
	}
	return parts.sched ? offer(q, &parts, best, err) : 0;
}

/* O(arcs). */
static bool latencies_differ(const struct topo *t)
{
	const struct topo_arc *arcs = topo_arcs(t);

	for (int a = 1; a < topo_m(t); a++) {
		if (arcs[a].latency_ns != arcs[0].latency_ns) {
			return true;
		}
	}
	return false;
}

/* Breadth-first broadcast with shares by latency and capacity. */
static int try_timed(const struct coll_make_query *q, const char *name, struct coll_made *best,
		     struct err *err)
{
	struct coll_made one = { .algorithm = name };
	struct topo *copy = NULL;
	int64_t bound;
	int rc = topo_copy(q->topo, &copy, err);

	if (rc || (rc = coll_bfb_timed(q->kind, copy, q->chunks, q->cost, &one.sched, &bound,
				       err)) || (rc = offer_batches(q, &one, best, err))) {
		return rc;
	}
	best->bfb_bound_ns = bound;
	return 0;
}

static int try_bfb(const struct coll_make_query *q, const char *name, struct coll_made *best,
		   struct err *err)
{
	struct coll_made one = { .algorithm = name };
	struct topo *copy = NULL;
	int rc = topo_copy(q->topo, &copy, err);

	if (rc || (rc = coll_bfb_cut(q->kind, copy, q->chunks, &one.sched, err)) ||
	    (rc = offer_batches(q, &one, best, err))) {
		return rc;
	}
	return q->cost && q->cost->size_bytes > 0 && !q->fabric && latencies_differ(q->topo)
		       ? try_timed(q, name, best, err) : 0;
}

/* A job is not kept waiting for a better schedule of so many transfers. */
static bool is_too_large(const struct coll_make_query *q, const struct coll_made *best)
{
	return q->max_transfers > 0 && best->report.transfers * 2 > q->max_transfers;
}

/* No construction is of use beside breadth-first broadcast, whose steps are the fewest: it meets
 * the bandwidth bound, or is compact where the transfers of another would be millions. */
static bool is_good_enough(const struct coll_made *m)
{
	return m->sched && ((m->report.bandwidth_optimal && !m->logical) ||
			    (coll_group(m->sched) && m->report.transfers > MAX_KEPT));
}

/* The construction of an expansion; "auto" passes over digraphs that are none. */
static int try_expand(const struct coll_make_query *q, const char *name, struct coll_made *best,
		      struct err *err)
{
	struct coll_made one = { .algorithm = name };
	int rc;

	if (is_auto(q) && (!q->expr || is_good_enough(best))) {
		return 0;
	}
	rc = coll_expand(q->kind, q->expr ? q->expr : "", &one.sched, err);
	if (rc && rc != WEFT_ENOMEM && is_auto(q)) {
		err_clear(err);
		return 0;
	}
	return rc ? rc : offer_batches(q, &one, best, err);
}

/* Whether the best so far is above its bound, and others are no larger. */
static bool is_above(const struct coll_make_query *q, const struct coll_made *best)
{
	if (is_too_large(q, best) || (best->report.bandwidth_optimal && !has_chosen_steps(best))) {
		return false;
	}
	return !q->cost || best->time_ns > best->bound_ns;
}

/* Nodes times arcs up to which "auto" packs trees: for a job, and where a user waits. */
#define JOB_TREES (INT64_C(1) << 14)
#define MAX_TREES (INT64_C(1) << 18)

/* Nodes up to which they are packed where there is nothing else. */
#define MAX_ALONE 4096

/* Trees that come as near to the bound are not packed in another way. */
#define NEAR 1.02

/* Whether trees may gain anything on the best so far, for work that is worth it. */
static bool may_gain(const struct coll_make_query *q, const struct coll_made *best)
{
	const struct topo *t = q->physical ? q->physical : q->topo;
	int64_t work = (int64_t)topo_n(t) * topo_m(t);

	return work <= (q->max_transfers > 0 ? JOB_TREES : MAX_TREES) &&
	       (!best->sched || is_above(q, best));
}

static int offer_forest(const struct coll_make_query *q, const char *name, bool joint,
			struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = name };
	int rc = make_forest(q, joint, &one, err);

	if (rc && rc != WEFT_ENOMEM && best->sched) {
		err_clear(err);
		return 0;
	}
	return rc ? rc : offer(q, &one, best, err);
}

/* What trees for both ways could come to is no better than the trees that are the best so far. */
static bool is_near(const struct coll_made *best)
{
	return best->sched && best->tree.trees > 0 &&
	       best->tree_limit <= mpq_get_d(best->report.bandwidth_bound) * NEAR;
}

/* Along trees of all ranks; what a digraph has none of is passed over where there is something
 * else. */
static int try_forest(const struct coll_make_query *q, const char *name, struct coll_made *best,
		      struct err *err)
{
	int rc;

	if (is_auto(q) && !may_gain(q, best) && (best->sched || topo_n(q->topo) > MAX_ALONE)) {
		return 0;
	}
	rc = offer_forest(q, name, false, best, err);
	if (rc || q->kind != COLL_ALLREDUCE || q->min_cost || is_near(best)) {
		return rc;
	}
	return offer_forest(q, name, true, best, err);
}

/* Nodes up to which "auto" floods for a job; beyond 2900 none does. */
#define JOB_FLOOD 128

/* Flooding, where the best so far is above the bound. */
static int try_flood(const struct coll_make_query *q, const char *name, struct coll_made *best,
		     struct err *err)
{
	struct coll_made one = { .algorithm = name, .batches = 1 };
	int rc;

	if (is_auto(q) && best->sched &&
	    (!is_above(q, best) || (q->max_transfers > 0 && topo_n(q->topo) > JOB_FLOOD))) {
		return 0;
	}
	rc = coll_flood(q->kind, q->topo, q->cost, &one.sched, err);
	if (rc && rc != WEFT_ENOMEM && is_auto(q) && best->sched) {
		err_clear(err);
		return 0;
	}
	return rc ? rc : offer(q, &one, best, err);
}

/* One with late takers; "auto" passes over too large a digraph. */
static int offer_late(const struct coll_make_query *q, const char *name, int extra,
		      struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = name };
	struct topo *copy = NULL;
	int rc = topo_copy(q->topo, &copy, err);

	if (rc) {
		return rc;
	}
	rc = coll_late(q->kind, copy, extra, &one.sched, err);
	if (rc == WEFT_ELIMIT && is_auto(q)) {
		err_clear(err);
		return 0;
	}
	return rc ? rc : offer_batches(q, &one, best, err);
}

/* Nodes times arcs up to which "auto" takes the linear programs of "late", with flooding and trees
 * at hand. */
#define MAX_LATE (1 << 13)

static bool is_worth_late(const struct coll_make_query *q, const struct coll_made *best)
{
	return (int64_t)topo_n(q->topo) * topo_m(q->topo) <= MAX_LATE && is_above(q, best);
}

/* Late takers, with more and more extra steps while links into nodes are not full. */
static int try_late(const struct coll_make_query *q, const char *name, struct coll_made *best,
		    struct err *err)
{
	int most = q->extra_steps >= 0 ? q->extra_steps : q->cost ? TIMED_EXTRA_STEPS : 0;
	mpq_t bound;
	int rc = 0;

	if (is_auto(q) && (q->fabric || !is_worth_late(q, best))) {
		return 0;
	}
	mpq_init(bound);
	coll_late_bound(q->kind, q->topo, bound);
	for (int extra = 0; extra <= most && rc == 0; extra++) {
		if (extra > 0 && best->sched && !q->fabric &&
		    mpq_cmp(best->report.bandwidth_factor, bound) <= 0) {
			break;
		}
		rc = offer_late(q, name, extra, best, err);
	}
	mpq_clear(bound);
	return rc;
}

/* One on coordinates: of "auto" the fastest, where it gains on the best so far. */
static int try_torus(const struct coll_make_query *q, const char *name, struct coll_made *best,
		     struct err *err)
{
	struct coll_made one = { .batches = 1 };
	int rc;

	if (!is_auto(q)) {
		rc = make_torus(q, name, &one, err);
		return rc ? rc : offer(q, &one, best, err);
	}
	if (!q->cost || q->batches > 1) {
		return 0;
	}
	rc = make_fastest_torus(q, best->sched ? best->time_ns : INT64_MAX, &one, err);
	if (rc && rc != WEFT_ENOMEM) {
		err_clear(err);
		return 0;
	}
	return rc || !one.sched ? rc : offer(q, &one, best, err);
}

/* ---- broadcast, reduce, gather, scatter ---- */

static int offer_rooted(const struct coll_make_query *q, const char *name,
			const struct coll_cost *cost, struct coll_made *best, struct err *err)
{
	struct coll_tree_options opt = { q->kind, q->root, cost, q->batches };
	struct coll_made one = { .algorithm = name };
	int rc = coll_tree_make(q->topo, &opt, &one.sched, &one.tree, err);

	one.batches = one.tree.batches;
	return rc ? rc : offer(q, &one, best, err);
}

/* The cost with the rate that links of the logical digraph came to when they were embedded. */
static int embedded_cost(const struct coll_make_query *q, const struct coll_made *best,
			 struct coll_cost *cost, struct err *err)
{
	struct coll_report r;
	mpq_t rate;
	int rc;

	*cost = *q->cost;
	coll_report_init(&r);
	mpq_init(rate);
	rc = coll_verify(best->logical, &r, err);
	if (rc == 0 && mpq_sgn(best->report.shard_times) > 0) {
		mpq_div(rate, r.shard_times, best->report.shard_times);
		cost->link_bps = (int64_t)(mpq_get_d(rate) * (double)cost->link_bps);
		cost->link_bps = cost->link_bps > 0 ? cost->link_bps : 1;
	}
	mpq_clear(rate);
	coll_report_fini(&r);
	return rc;
}

/* The synthesiser chooses by the cost for itself; where links have other rates once they are
 * embedded, it chooses once more. */
static int try_rooted(const struct coll_make_query *q, const char *name, struct coll_made *best,
		      struct err *err)
{
	struct coll_cost cost;
	int rc = q->min_cost ? offer_forest(q, name, false, best, err)
			     : offer_rooted(q, name, q->cost, best, err);

	if (rc || q->min_cost || !q->cost || !q->fabric || (rc = embedded_cost(q, best, &cost, err))) {
		return rc;
	}
	return offer_rooted(q, name, &cost, best, err);
}

/* ---- all-to-all ---- */

/* Ranks up to which "auto" tries paths beside the flow's, and columns of a flow over steps: with
 * more, making them takes longer than what they may gain is worth. */
#define MAX_SEARCHED 64
#define MAX_SHORTEST 256
#define MAX_STEP_COLUMNS 4096

/* What a step takes, in the time in which a shard crosses a link. */
static double step_cost(const struct coll_make_query *q)
{
	const struct coll_cost *c = q->cost;
	double fixed, shard;

	if (!c) {
		return 0;
	}
	fixed = (double)c->alpha_ns + (double)c->hop_ns + (double)c->message_ns;
	shard = (double)c->size_bytes * 8e9 / (double)c->link_bps / topo_ranks(q->topo);
	return fixed / fmax(shard, fixed * 1e-9 + 1e-9);
}

/* Nothing can be better than the best: with a cost it takes its bound, else it has the
 * bound's T_B in as many steps as a path has hops, which is then a shortest one. */
static bool is_best(const struct coll_make_query *q, const struct coll_made *m)
{
	return q->cost ? m->time_ns <= m->bound_ns
		       : m->report.bandwidth_optimal && !m->pairs.stepped &&
				 m->report.steps == m->pairs.info.longest;
}

/* Whether "auto" tries more than the flow's schedule: not after a failure, where the flow goes on,
 * and where it is stopped, or is stopped by time, which would not be the same anywhere. */
static bool tries_more(const struct coll_make_query *q, const struct coll_made *best, int max_ranks)
{
	const struct mcf_options *flow = &q->pairs.flow;

	return !q->pairs.before.flow && !q->pairs.demands && flow->time_limit_s == 0 &&
	       !(flow->cancel && *flow->cancel) && topo_ranks(q->topo) <= max_ranks &&
	       best->sched && !is_best(q, best);
}

/* Drops an offer that could not be made. */
static int pass_over(int rc, struct err *err)
{
	if (rc == 0 || rc == WEFT_ENOMEM) {
		return rc;
	}
	err_clear(err);
	return 0;
}

static int offer_steps(const struct coll_make_query *q, const char *name, int steps,
		       struct coll_made *best, struct err *err)
{
	struct mcf_steps_options opt = { .steps = steps, .flow = q->pairs.flow,
					 .loss = q->pairs.loss };
	struct coll_made one = { .algorithm = name, .pairs.stepped = true };
	int rc = mcf_steps(q->topo, &opt, &one.sched, &one.pairs.steps, err);

	one.pairs.info.flow = one.pairs.steps.flow;
	return rc ? rc : offer(q, &one, best, err);
}

/* From a flow over steps; "auto" takes as many as the diameter, and one more. */
static int try_steps(const struct coll_make_query *q, const char *name, struct coll_made *best,
		     struct err *err)
{
	int least, orbits, rc = 0;
	double columns;

	if (q->pairs.demands && !is_auto(q)) {
		return err_set(err, WEFT_EUNSUPPORTED, "unlike demands by steps: not supported");
	}
	if (!is_auto(q)) {
		return offer_steps(q, name, q->pairs.steps, best, err);
	}
	if (!tries_more(q, best, MAX_SEARCHED)) {
		return 0;
	}
	least = topo_diameter(q->topo);
	orbits = topo_ranks(q->topo) / topo_group_order(coll_group(best->sched));
	columns = (double)orbits * (topo_n(q->topo) + topo_m(q->topo));
	for (int k = least; k <= least + 1 && rc == 0 && columns * k <= MAX_STEP_COLUMNS; k++) {
		rc = pass_over(offer_steps(q, name, k, best, err), err);
	}
	return rc;
}

/* From a flow, or from paths; the names are those of mcf_form_parse and mcf_paths_parse. */
static int try_flow(const struct coll_make_query *q, const char *name, struct coll_made *best,
		    struct err *err)
{
	const struct coll_flow_before *before = &q->pairs.before;
	struct coll_made one = { .algorithm = name };
	struct mcf_sched_options opt = {
		.flow = q->pairs.flow, .demands = q->pairs.demands, .loss = q->pairs.loss,
		.before = before->flow,
		.before_topo = before->topo, .dropped = before->dropped, .kept = &one.flow,
	};
	int rc;

	mcf_form_parse(name, &opt.form);
	mcf_paths_parse(name, &opt.paths);
	opt.step_cost = step_cost(q);
	/* A single path a pair needs one chunk for all. */
	opt.max_chunks = opt.paths == MCF_PATHS_SINGLE || opt.paths == MCF_PATHS_SHORTEST;
	rc = mcf_schedule(q->topo, &opt, &one.sched, &one.pairs.info, err);
	if (rc) {
		mcf_free(one.flow);
		return rc;
	}
	return offer(q, &one, best, err);
}

/* Paths that are searched for pair by pair; "auto" for few ranks only. */
static int try_searched(const struct coll_make_query *q, const char *name, struct coll_made *best,
			struct err *err)
{
	if (!is_auto(q)) {
		return try_flow(q, name, best, err);
	}
	return tries_more(q, best, MAX_SEARCHED) ? pass_over(try_flow(q, name, best, err), err)
						 : 0;
}

static int try_shortest(const struct coll_make_query *q, const char *name, struct coll_made *best,
			struct err *err)
{
	if (!is_auto(q)) {
		return try_flow(q, name, best, err);
	}
	return tries_more(q, best, MAX_SHORTEST) ? pass_over(try_flow(q, name, best, err), err)
						 : 0;
}

/* ---- the list ---- */

#define KIND(kind) (1u << (kind))
#define GATHERS (KIND(COLL_ALLGATHER) | KIND(COLL_REDUCE_SCATTER) | KIND(COLL_ALLREDUCE))
#define TREES (KIND(COLL_BROADCAST) | KIND(COLL_REDUCE))
#define PATHS (KIND(COLL_GATHER) | KIND(COLL_SCATTER))
#define PAIRS KIND(COLL_ALLTOALL)

/* Makes schedules by its name and offers them, or nothing where "auto" had better not. */
typedef int make_try_fn(const struct coll_make_query *q, const char *name, struct coll_made *best,
			struct err *err);

static const struct make_row {
	const char *name;
	unsigned kinds;
	make_try_fn *run;
	bool by_name_only;	/* not for "auto" */
} rows[] = {
	{ "bfb", GATHERS, try_bfb, false },
	{ "expand", GATHERS, try_expand, false },
	{ "flood", GATHERS, try_flood, false },
	{ "trees", GATHERS, try_forest, false },
	{ "late", GATHERS, try_late, false },
	{ "trees", TREES, try_rooted, false },
	{ "paths", PATHS, try_rooted, false },
	{ "mixed-radix", GATHERS, try_torus, false },
	{ "swing", GATHERS | TREES, try_torus, true },
	{ "swing-latency", KIND(COLL_ALLREDUCE), try_torus, true },
	{ "hybrid", KIND(COLL_ALLREDUCE), try_torus, true },
	{ "recursive-doubling", KIND(COLL_ALLREDUCE), try_torus, true },
	{ "rabenseifner", GATHERS, try_torus, true },
	{ "bucket", GATHERS, try_torus, true },
	{ "ring", GATHERS, try_torus, true },
	{ "mcf", PAIRS, try_flow, false },
	{ "link-mcf", PAIRS, try_flow, true },
	{ "grouped", PAIRS, try_flow, true },
	{ "pmcf", PAIRS, try_flow, true },
	{ "tsmcf", PAIRS, try_steps, false },
	{ "single-path", PAIRS, try_searched, false },
	{ "shortest-path", PAIRS, try_shortest, false },
	{ "disjoint", PAIRS, try_searched, false },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

const char *coll_make_algorithm(enum coll_kind kind, int i)
{
	for (size_t r = 0; r < N_ROWS; r++) {
		if ((rows[r].kinds & KIND(kind)) && i-- == 0) {
			return rows[r].name;
		}
	}
	return NULL;
}

bool coll_make_is_torus(const char *algorithm)
{
	for (size_t r = 0; r < N_ROWS; r++) {
		if (rows[r].run == try_torus && strcmp(rows[r].name, algorithm) == 0) {
			return true;
		}
	}
	return false;
}

/* A row for "auto": what is too large for one may do for another; *first keeps the first such error. */
static int try_row(const struct coll_make_query *q, const struct make_row *row,
		   struct coll_made *best, struct err *first, struct err *err)
{
	int rc = row->run(q, row->name, best, err);

	if (rc != WEFT_ELIMIT || !is_auto(q) || q->kind == COLL_ALLTOALL) {
		return rc;
	}
	if (first->code == 0) {
		err_set(first, rc, "%s", err ? err->msg : "");
	}
	err_clear(err);
	return 0;
}

/* All rows that are asked for. */
static int try_rows(const struct coll_make_query *q, struct coll_made *best, struct err *err)
{
	struct err first = { 0 };
	bool any = is_auto(q);
	int rc;

	for (size_t r = 0; r < N_ROWS; r++) {
		if ((rows[r].kinds & KIND(q->kind)) == 0 ||
		    (any ? rows[r].by_name_only : strcmp(rows[r].name, q->algorithm) != 0)) {
			continue;
		}
		rc = try_row(q, &rows[r], best, &first, err);
		if (rc) {
			return rc;
		}
	}
	if (!best->sched && first.code) {
		return err_set(err, first.code, "%s", first.msg);
	}
	return best->sched ? 0 : err_set(err, WEFT_EUNSUPPORTED, "algorithm %s: not supported for "
					 "%s", q->algorithm, coll_kind_name(q->kind));
}

int coll_make(const struct coll_make_query *q, struct coll_made *out, struct err *err)
{
	int rc;

	*out = (struct coll_made){ 0 };
	rc = try_rows(q, out, err);
	if (rc) {
		coll_made_fini(out);
	}
	return rc;
}

int coll_make_torus(const struct coll_make_query *q, struct coll_made *out, struct err *err)
{
	struct coll_made one = { .batches = 1 };
	int rc = make_fastest_torus(q, INT64_MAX, &one, err);

	*out = (struct coll_made){ 0 };
	if (rc == 0 && (rc = offer(q, &one, out, err))) {
		coll_made_fini(out);
	}
	return rc;
}

struct coll_make_query coll_make_job(enum coll_kind kind, const char *algorithm,
				     const struct topo *topo, const struct coll_cost *cost)
{
	bool whole = strcmp(algorithm, "auto") != 0 || (cost && cost->alpha_ns == 0);

	return (struct coll_make_query){
		.kind = kind, .algorithm = algorithm, .topo = topo, .cost = cost,
		.links_only = !cost || cost->hop_ns == 0,
		.batches = whole && !coll_has_root(kind) && strcmp(algorithm, "trees") != 0,
		.max_transfers = COLL_MAKE_TRANSFERS,
		.pairs = { .flow = { .gap = JOB_GAP, .max_passes = JOB_PASSES },
			   .loss = MCF_SCHED_LOSS },
	};
}
