/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-gather, reduce-scatter and all-reduce but on coordinates (torus.c): what is offered.
 *
 * A function for each algorithm: by its name it makes what it can, or says why not. "auto" asks all
 * of them in the order of the table, and each looks at the best so far: it makes nothing where
 * that cannot be beaten, or the work would be out of proportion. Batches that overlap gain in
 * fabrics and where they are balanced for that; others only if asked for, as trees gain more.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/bfb/bfb.h"
#include "collective/make/private.h"
#include "collective/tree/spanning.h"
#include "lib/base/alloc.h"

/* Transfers beyond which a construction is not tried beside a compact schedule. */
#define MAX_KEPT (4 << 20)

/* Extra steps for late takers that are tried when the cost is given. */
#define TIMED_EXTRA_STEPS 2

/* Batches for a schedule, embedded where it will be: those asked for, or the fewest that gain as
 * much; or those of at most so many that take the least time, *ns: one where that is not known.
 * Errors of coll_pipeline_fewest. */
static int count_batches(const struct coll_make_query *q, const struct coll_sched *whole, int most,
			 int *batches, double *ns, struct err *err)
{
	*batches = 1;
	*ns = 0;
	if (q->batches > 1) {
		return coll_pipeline_fewest(whole, q->batches, batches, err);
	}
	if (q->batches == 0 && q->cost) {
		(void)coll_pipeline_best(whole, q->cost, most, batches, ns, NULL);
	}
	return 0;
}

/* What was whole, in batches. */
static int make_batches(const struct coll_made *one, struct coll_made *parts, struct err *err)
{
	return parts->batches == 1 ? 0 : coll_pipeline(one->logical ? one->logical : one->sched,
						       parts->batches, &parts->sched, err);
}

static void drop(struct coll_made *one)
{
	coll_free(one->sched);
	coll_free(one->logical);
	mcf_free(one->flow);
}

int make_offer_overlapped(const struct coll_make_query *q, struct coll_made *one, int64_t most,
			  struct coll_made *best, struct err *err)
{
	struct coll_made parts = { .algorithm = one->algorithm, .pairs = one->pairs };
	int64_t n;
	double ns;
	int rc;

	coll_xfers(one->sched, &n);
	most = n > 0 ? most / n : 1;
	most = most > COLL_MAX_CHUNKS / coll_chunks(one->sched)
		       ? COLL_MAX_CHUNKS / coll_chunks(one->sched) : most;
	(void)((rc = make_embed(q, one, err)) ||
	       (rc = count_batches(q, one->sched, (int)most, &parts.batches, &ns, err)));
	if (rc || (!q->algorithm && best->sched && ns >= (double)best->time_ns)) {
		drop(one);
		return rc;
	}
	if (parts.batches == 1) {
		return make_offer(q, one, best, err);
	}
	rc = make_batches(one, &parts, err);
	if (rc == 0 && q->batches == 0 && !one->flow) {
		/* The prediction leaves latencies out. */
		rc = make_offer(q, one, best, err);
	} else {
		parts.flow = one->flow;
		one->flow = NULL;
		drop(one);
	}
	if (rc) {
		drop(&parts);
		return rc;
	}
	return make_offer(q, &parts, best, err);
}

/* Whole, or in the batches that were asked for; in a fabric in those that take the least time, as
 * switches that copy are idle in one half of an all-reduce. Elsewhere trees are faster. */
static int offer_batches(const struct coll_make_query *q, struct coll_made *one,
			 struct coll_made *best, struct err *err)
{
	int64_t most = MAX_KEPT;

	if (q->batches == 1 || (q->batches == 0 && !q->fabric)) {
		return make_offer(q, one, best, err);
	}
	if (q->max_transfers > 0) {
		most = q->max_transfers / topo_group_order(coll_group(one->sched));
	}
	return make_offer_overlapped(q, one, most, best, err);
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
static int try_timed(const struct coll_make_query *q, const struct coll_algorithm *self,
		     struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
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

int make_by_bfb(const struct coll_make_query *q, const struct coll_algorithm *self,
		struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
	struct topo *copy = NULL;
	int rc = topo_copy(q->topo, &copy, err);

	if (rc || (rc = coll_bfb_cut(q->kind, copy, q->chunks, &one.sched, err)) ||
	    (rc = offer_batches(q, &one, best, err))) {
		return rc;
	}
	return q->cost && q->cost->size_bytes > 0 && !q->fabric && latencies_differ(q->topo)
		       ? try_timed(q, self, best, err) : 0;
}

/* A job is not kept waiting for a better schedule of so many transfers, as each batch has. */
static bool is_too_large(const struct coll_make_query *q, const struct coll_made *best)
{
	return q->max_transfers > 0 &&
	       best->report.transfers / best->batches * 2 > q->max_transfers;
}

/* No construction is of use beside breadth-first broadcast, whose steps are the fewest: it meets
 * the bandwidth bound, or is compact where the transfers of another would be millions. */
static bool is_good_enough(const struct coll_made *m)
{
	return m->sched && ((m->report.bandwidth_optimal && !m->logical) ||
			    (coll_group(m->sched) && m->report.transfers > MAX_KEPT));
}

/* The construction of an expansion; "auto" passes over digraphs that are none. */
int make_by_expand(const struct coll_make_query *q, const struct coll_algorithm *self,
		   struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
	int rc;

	if (!q->algorithm && is_good_enough(best)) {
		return 0;
	}
	rc = coll_expand(q->kind, q->expr ? q->expr : "", &one.sched, err);
	if (rc && !q->algorithm) {
		err_clear(err);
		return 0;
	}
	return rc ? rc : offer_batches(q, &one, best, err);
}

/* Breadth first in one batch: the fewest steps that copies of shards need, with the least T_B. */
static bool is_breadth_first(const struct coll_made *m)
{
	return m->report.bandwidth_optimal && m->batches == 1 && !m->logical &&
	       !m->algorithm->chooses_steps && !m->torus.is_made;
}

bool make_is_above(const struct coll_make_query *q, const struct coll_made *best)
{
	if (is_too_large(q, best)) {
		return false;
	}
	if (q->cost) {
		return !is_breadth_first(best) &&
		       (double)best->time_ns > (double)best->bound_ns * MET(q);
	}
	return !best->report.bandwidth_optimal || best->algorithm->chooses_steps;
}

/* Nodes times arcs. */
static int64_t size_of(const struct topo *t)
{
	return (int64_t)topo_n(t) * topo_m(t);
}

/* Trees that come as near to the bound are not packed in another way; and so are links alike that
 * much. */
#define NEAR 1.02

/* What goes into the rank with the thinnest links; *all: into all of them. */
static int64_t thinnest(const struct topo *t, int64_t *all)
{
	int64_t *in = x_new((size_t)topo_n(t), sizeof(*in)), least = INT64_MAX;

	*all = 0;
	for (int a = 0; a < topo_m(t); a++) {
		in[topo_arc(t, a)->dst] += topo_arc(t, a)->cap;
		*all += topo_arc(t, a)->cap;
	}
	for (int v = 0; v < topo_n(t); v++) {
		least = in[v] < least ? in[v] : least;
	}
	free(in);
	return least;
}

/* What goes into the ranks with the thinnest links, times ranks, is much less than what goes into
 * all. */
static bool is_lopsided(const struct topo *t)
{
	int64_t all, least = thinnest(t, &all);

	return (double)least * topo_n(t) * NEAR < (double)all;
}

/* Nodes times arcs up to which "auto" balances all links at once, and transfers in batches; of jobs
 * so many times as otherwise. */
#define MAX_STEADY (INT64_C(1) << 19)
#define MAX_UNEQUAL (INT64_C(1) << 18)
#define UNLIKE_UNEQUAL (INT64_C(1) << 15)
#define SMALL_UNEQUAL (INT64_C(1) << 14)
#define STEADY_KEPT (1 << 24)
#define STEADY_JOB 4

/* Up to which unequal batches are tried: they gain most where links into ranks are unlike. Whether
 * links inside servers are a little or much wider than those between is all the same, so that
 * wider ones are never worse. */
static int64_t limit_unequal(const struct topo *t)
{
	for (int a = 1; a < topo_m(t); a++) {
		if (topo_arc(t, a)->cap != topo_arc(t, 0)->cap) {
			return UNLIKE_UNEQUAL;
		}
	}
	return is_lopsided(t) ? MAX_UNEQUAL : SMALL_UNEQUAL;
}

/* An all-reduce in unequal batches for the cost. */
static int offer_unequal(const struct coll_make_query *q, const struct coll_algorithm *self,
			 int64_t most, struct coll_made *best, struct err *err)
{
	double below_ns = best->sched ? (double)best->time_ns / MET(q) : HUGE_VAL;
	struct coll_made one = { .algorithm = self };
	struct topo *copy = NULL;
	int rc = 0;

	if (!q->algorithm && best->sched && size_of(q->topo) > limit_unequal(q->topo)) {
		return 0;
	}
	if ((rc = topo_copy(q->topo, &copy, err)) ||
	    (rc = coll_steady_timed(copy, q->cost, below_ns, most, &one.sched, err))) {
		return rc;
	}
	return one.sched ? make_offer(q, &one, best, err) : 0;
}

/* Balanced for batches that overlap, where the best so far is above the bound. These are not moved
 * to idle links, as none are idle for long. */
int make_by_steady(const struct coll_make_query *q, const struct coll_algorithm *self,
		   struct coll_made *best, struct err *err)
{
	int64_t most = q->max_transfers > 0 ? q->max_transfers * STEADY_JOB : STEADY_KEPT;
	struct coll_made one = { .algorithm = self };
	struct topo *copy = NULL;
	int rc;

	if (!q->algorithm && best->sched &&
	    (!make_is_above(q, best) || size_of(q->topo) > MAX_STEADY)) {
		return 0;
	}
	rc = topo_copy(q->topo, &copy, err);
	if (rc || (rc = coll_steady(q->kind, copy, &one.sched, err)) ||
	    (rc = make_offer_overlapped(q, &one, most, best, err))) {
		return rc;
	}
	return q->kind == COLL_ALLREDUCE && q->cost && q->batches == 0
		       ? offer_unequal(q, self, most, best, err) : 0;
}

/* Nodes times arcs up to which "auto" packs trees: for a job, and where a user waits or a job's
 * servers are counted with all that is inside them. */
#define JOB_TREES (INT64_C(1) << 16)
#define MAX_TREES (INT64_C(1) << 18)

/* The same for an all-reduce where nearly all arcs have a reverse: spanning trees are quick. */
#define MAX_SPANNING (INT64_C(1) << 21)

/* Nodes up to which they are packed where there is nothing else. */
#define MAX_ALONE 4096

/* Whether trees may gain anything on the best so far, for work that is worth it. */
static bool may_gain(const struct coll_make_query *q, bool spanning, const struct coll_made *best)
{
	const struct topo *t = q->physical ? q->physical : q->topo;
	int64_t work = size_of(t), most = spanning ? MAX_SPANNING : MAX_TREES;

	return work <= (q->max_transfers > 0 && !q->physical ? JOB_TREES : most) &&
	       (!best->sched || make_is_above(q, best));
}

/* An all-reduce has spanning trees used both ways, at the bound, which those of all ranks alike are
 * far from: only the first are packed, unless steps count more. */
static bool has_spanning(const struct coll_make_query *q)
{
	const struct topo *t = q->physical ? q->physical : q->topo;

	return q->kind == COLL_ALLREDUCE && !q->min_cost && coll_forest_has_spanning(t) &&
	       is_lopsided(t);
}

/* Sums for all ranks alike and then copies may be faster than the best so far, though the thinnest
 * links bound both: that takes as many steps as the digraph is wide, twice, and all there. */
static bool may_be_apart(const struct coll_make_query *q, const struct coll_made *best)
{
	const struct topo *t = q->physical ? q->physical : q->topo;
	double bits, steps, n = topo_n(t);
	int64_t all;

	if (!q->cost || !best->sched || !may_gain(q, false, best)) {
		return false;
	}
	bits = (n - 1) / n * (double)q->cost->size_bytes * 8;
	steps = topo_diameter(t) * (double)(q->cost->alpha_ns + q->cost->hop_ns);
	return 2 * (steps + bits * 1e9 / ((double)thinnest(t, &all) * (double)q->cost->link_bps)) <
	       (double)best->time_ns;
}

static int offer_forest(const struct coll_make_query *q, const struct coll_algorithm *self,
			bool joint, struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
	double below_ns = q->cost && best->sched ? (double)best->time_ns / MET(q) : 0;
	int rc = make_forest(q, joint, below_ns, &one, err);

	if (rc && best->sched) {
		err_clear(err);
		return 0;
	}
	return rc || !one.sched ? rc : make_offer(q, &one, best, err);
}

/* What trees for both ways could come to is no better than the trees that are the best so far. */
static bool is_near(const struct coll_made *best)
{
	return best->sched && best->tree.trees > 0 &&
	       best->tree_limit <= mpq_get_d(best->report.bandwidth_bound) * NEAR;
}

/* The trees of least cost, where the program for them is small: beside others, which may be
 * shallower or deeper. */
static int offer_least_cost(const struct coll_make_query *q, const struct coll_algorithm *self,
			    struct coll_made *best, struct err *err)
{
	struct coll_make_query how = *q;

	how.min_cost = true;
	return best->sched ? offer_forest(&how, self, false, best, err) : 0;
}

/* Nodes times arcs up to which trees of few roots are looked for on a larger digraph, where what
 * the best so far has above the bound of T_B is at least so much of its time. */
#define MAX_FEW_ROOTS (INT64_C(1) << 23)
#define FAR 0.15

static bool may_have_few_roots(const struct coll_make_query *q, const struct coll_made *best)
{
	double above;

	if (q->kind != COLL_ALLREDUCE || !q->cost || q->max_transfers > 0 || q->physical ||
	    !best->sched || size_of(q->topo) > MAX_FEW_ROOTS) {
		return false;
	}
	above = mpq_get_d(best->report.bandwidth_factor) -
		mpq_get_d(best->report.bandwidth_bound);
	return above / coll_ports(best->sched) * (double)q->cost->size_bytes * 8e9 /
			       (double)q->cost->link_bps > FAR * (double)best->time_ns &&
	       !topo_is_symmetric(q->topo);
}

/* Along trees of all ranks; what a digraph has none of is passed over where there is something
 * else. */
int make_by_forest(const struct coll_make_query *q, const struct coll_algorithm *self,
		   struct coll_made *best, struct err *err)
{
	bool spanning = has_spanning(q);
	int rc;

	if (!q->algorithm && (!best->sched || make_is_above(q, best)) &&
	    (rc = offer_least_cost(q, self, best, err))) {
		return rc;
	}
	if (!q->algorithm && !may_gain(q, spanning, best) &&
	    (best->sched || topo_n(q->topo) > MAX_ALONE)) {
		return may_have_few_roots(q, best) ? offer_forest(q, self, true, best, err) : 0;
	}
	rc = spanning ? 0 : offer_forest(q, self, false, best, err);
	if (rc || q->kind != COLL_ALLREDUCE || q->min_cost ||
	    (!spanning && is_near(best))) {
		return rc;
	}
	rc = offer_forest(q, self, true, best, err);
	return rc == 0 && spanning && may_be_apart(q, best)
		       ? offer_forest(q, self, false, best, err) : rc;
}

/* Nodes up to which "auto" floods for a job, and nodes times arcs for anybody; beyond 2900 nodes
 * none does. */
#define JOB_FLOOD 128
#define MAX_FLOOD (INT64_C(1) << 25)

/* Flooding, where the best so far is above the bound. */
int make_by_flood(const struct coll_make_query *q, const struct coll_algorithm *self,
		  struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self, .batches = 1 };
	int rc;

	if (!q->algorithm && best->sched &&
	    (!make_is_above(q, best) || (q->max_transfers > 0 && topo_n(q->topo) > JOB_FLOOD) ||
	     size_of(q->topo) > MAX_FLOOD)) {
		return 0;
	}
	rc = coll_flood(q->kind, q->topo, q->cost, &one.sched, err);
	if (rc && !q->algorithm && best->sched) {
		err_clear(err);
		return 0;
	}
	return rc ? rc : make_offer(q, &one, best, err);
}

/* Nodes times arcs up to which the linear programs of "late" are solved exactly in next to no
 * time; and up to which "auto" takes it: where that is done for want of a cost; on a fabric, orbits
 * of nodes times arcs; with a cost, for jobs; for others. On digraphs beyond SMALL_LATE, where all
 * else takes seconds, it tries a single number of extra steps and spends more on that. */
#define EXACT_LATE (1 << 10)
#define MAX_LATE (1 << 13)
#define MAX_FABRIC_LATE (1 << 12)
#define SMALL_LATE (1 << 17)
#define MAX_TIMED_LATE (1 << 22)

/* Work for a number of extra steps. */
#define LATE_WORK (INT64_C(1) << 22)
#define LARGE_LATE_WORK (INT64_C(1) << 24)

/* Of what breadth-first broadcast has above the bound, about so much is left with an extra step;
 * and of that, with each further one. */
#define LEFT_BY_ONE 0.35
#define LEFT_BY_MORE 0.65

/* One with late takers; "auto" passes over too large a digraph, and what cannot be faster. */
static int offer_late(const struct coll_make_query *q, const struct coll_algorithm *self,
		      int extra, struct coll_made *best, struct err *err)
{
	struct coll_late_aim aim = { .cost = q->cost, .work = COLL_LATE_MAX_WORK };
	bool timed = q->cost && !q->steps_first && !q->fabric &&
		     size_of(q->topo) > (q->fewest_chunks ? MAX_LATE : EXACT_LATE);
	struct coll_made one = { .algorithm = self };
	struct topo *copy = NULL;
	int rc = topo_copy(q->topo, &copy, err);

	if (rc) {
		return rc;
	}
	aim.below_ns = best->sched ? (double)best->time_ns : 0;
	if (!q->algorithm) {
		aim.work = size_of(q->topo) > SMALL_LATE ? LARGE_LATE_WORK : LATE_WORK;
	}
	rc = coll_late(q->kind, copy, extra, timed ? &aim : NULL, &one.sched, err);
	if (rc == WEFT_ELIMIT && !q->algorithm) {
		err_clear(err);
		return 0;
	}
	return rc || !one.sched ? rc : offer_batches(q, &one, best, err);
}

/* Arcs times the nodes that late takers are solved for, one an orbit. O(arcs), mostly. */
static int64_t late_size(const struct topo *t)
{
	struct topo_group *g = NULL;
	int64_t orbits = topo_group_find(t, &g, NULL) == 0 && g ? topo_group_orbits(g) : topo_n(t);

	topo_group_free(g);
	return orbits * topo_m(t);
}

static bool is_worth_late(const struct coll_make_query *q, const struct coll_made *best)
{
	int64_t most = !q->cost || q->steps_first ? MAX_LATE
		       : q->max_transfers > 0	   ? SMALL_LATE : MAX_TIMED_LATE;

	if (!make_is_above(q, best)) {
		return false;
	}
	return q->fabric ? late_size(q->topo) <= MAX_FABRIC_LATE : size_of(q->topo) <= most;
}

/* Whether late takers in so many extra steps may be better than the best so far: with a cost by
 * the time of their steps and of what links into nodes have to carry (the bound), else by T_B. */
static bool may_be_late(const struct coll_make_query *q, const struct coll_made *best, int extra,
			const mpq_t bound)
{
	struct coll_prediction p = { .ports = make_ports(q->topo) };

	if (extra == 0 || !best->sched || q->fabric) {
		return true;
	}
	if (!q->cost || q->steps_first) {
		return mpq_cmp(best->report.bandwidth_factor, bound) > 0;
	}
	p.steps = (topo_diameter(q->topo) + extra) * (q->kind == COLL_ALLREDUCE ? 2 : 1);
	p.num = mpz_get_si(mpq_numref(bound));
	p.den = mpz_get_si(mpq_denref(bound));
	make_time_prediction(q->cost, &p);
	return p.time_ns * MET(q) < (double)best->time_ns;
}

/* An extra step, of each phase; and M/B. */
static double extra_ns(const struct coll_make_query *q)
{
	return (double)(q->cost->alpha_ns + q->cost->hop_ns + q->cost->message_ns) *
	       (q->kind == COLL_ALLREDUCE ? 2 : 1);
}

static double vector_ns(const struct coll_make_query *q)
{
	return (double)q->cost->size_bytes * 8e9 / (double)q->cost->link_bps / make_ports(q->topo);
}

/* The number of extra steps, at most so many, that is likely to be the best. */
static int guess_extra(const struct coll_make_query *q, int most, const mpq_t bound)
{
	double left_ns, least = HUGE_VAL;
	int best = 0, steps;
	mpq_t factor;

	mpq_init(factor);
	if (coll_bfb_factor(q->kind, q->topo, &steps, factor, NULL) == 0) {
		left_ns = (mpq_get_d(factor) - mpq_get_d(bound)) * vector_ns(q);
		for (int extra = 0; extra <= most; extra++) {
			if (extra * extra_ns(q) + left_ns < least) {
				least = extra * extra_ns(q) + left_ns;
				best = extra;
			}
			left_ns *= extra ? LEFT_BY_MORE : LEFT_BY_ONE;
		}
	}
	mpq_clear(factor);
	return best;
}

/* Whether so many extra steps more than the best so far has, one with late takers, are likely to be
 * better, by what it leaves above the bound. */
static bool is_likely(const struct coll_make_query *q, const struct coll_made *best, int more,
		      const mpq_t bound)
{
	double left_ns = (mpq_get_d(best->report.bandwidth_factor) - mpq_get_d(bound)) *
			 vector_ns(q);

	return more <= 0 || more * extra_ns(q) < left_ns * (1 - pow(LEFT_BY_MORE, more));
}

/* Late takers, with more and more extra steps while that may gain something; with a cost the best
 * guess first, which rules out most others. By "auto" on large digraphs it is the only one, and on
 * all but the smallest at most one step, which costs a quarter of two and says better what two
 * would leave. */
int make_by_late(const struct coll_make_query *q, const struct coll_algorithm *self,
		 struct coll_made *best, struct err *err)
{
	int most = q->extra_steps >= 0 ? q->extra_steps : q->cost ? TIMED_EXTRA_STEPS : 0;
	bool one = !q->algorithm && !q->fabric && size_of(q->topo) > SMALL_LATE;
	bool likely_only = !q->algorithm && size_of(q->topo) > EXACT_LATE;
	int guess = -1, rc = 0;
	mpq_t bound;

	if (!q->algorithm && !is_worth_late(q, best)) {
		return 0;
	}
	mpq_init(bound);
	coll_late_bound(q->kind, q->topo, bound);
	if (q->cost && !q->steps_first && !q->fabric) {
		guess = guess_extra(q, likely_only && !one && most > 1 ? 1 : most, bound);
		rc = offer_late(q, self, guess, best, err);
	}
	for (int extra = 0; extra <= most && rc == 0 && !one; extra++) {
		bool likely = !likely_only || guess < 0 || best->algorithm != self ||
			      is_likely(q, best, extra - guess, bound);

		if (extra != guess && likely && may_be_late(q, best, extra, bound)) {
			rc = offer_late(q, self, extra, best, err);
		}
	}
	mpq_clear(bound);
	return rc;
}

int make_predict_bfb(const struct coll_make_query *q, struct coll_prediction *out, struct err *err)
{
	mpq_t factor;
	int rc;

	mpq_init(factor);
	rc = coll_bfb_factor(q->kind, q->topo, &out->steps, factor, err);
	if (!rc) {
		out->num = mpz_get_si(mpq_numref(factor));
		out->den = mpz_get_si(mpq_denref(factor));
		out->ports = make_ports(q->topo);
		make_time_prediction(q->cost, out);
	}
	mpq_clear(factor);
	return rc;
}
