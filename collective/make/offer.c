/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What algorithms predict and offer: embedded, replayed, timed, kept where it is the best so far.
 *
 * Where messages cost something and no other rule for routes is given, a schedule on a fabric is
 * embedded over all shortest paths and over fewer; the fastest is what is offered.
 */
#include <math.h>

#include "collective/make/private.h"
#include "lib/base/number/rat.h"

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

int make_ports(const struct topo *t)
{
	int64_t ports;

	return coll_count_ports(t, &ports, NULL) == 0 && ports <= COLL_MAX_PORTS
		       ? (int)ports : COLL_MAX_PORTS;
}

void make_time_prediction(const struct coll_cost *cost, struct coll_prediction *out)
{
	if (cost) {
		out->time_ns = (double)out->steps *
				       (double)(cost->alpha_ns + cost->hop_ns + cost->message_ns) +
			       (double)out->num / (double)out->den * (double)cost->size_bytes *
				       8e9 / (double)cost->link_bps / out->ports;
	}
}

/* What is left of a flow's bound, which is a sum of floating point: whole millionths of M/B. */
#define FLOW_PARTS 1000000

/* Of any paths, in any number of steps. Demands may have been rounded to chunks, so it is at most
 * T_B. */
void make_raise_bound(const struct coll_sched *s, double shards, struct coll_report *r)
{
	double bound = shards * coll_ports(s) / coll_ranks(s) * FLOW_PARTS;
	mpq_t least;

	if (bound < 1 || bound > 1e15) {
		return;
	}
	mpq_init(least);
	rat_set(least, (int64_t)(bound * (1 - 1e-9)), FLOW_PARTS);
	if (mpq_cmp(least, r->bandwidth_bound) > 0) {
		mpq_set(r->bandwidth_bound, mpq_cmp(least, r->bandwidth_factor) < 0
						    ? least : r->bandwidth_factor);
		r->bandwidth_optimal = mpq_equal(r->bandwidth_bound, r->bandwidth_factor);
	}
	mpq_clear(least);
}

int make_embed(const struct coll_make_query *q, struct coll_made *one, struct err *err)
{
	if (!q->fabric || one->is_physical || one->logical) {
		return 0;
	}
	one->logical = one->sched;
	one->sched = NULL;
	return coll_embed_in(q->fabric, one->logical, &one->sched, err);
}

/* Embeds, replays and times the schedule. */
static int measure(const struct coll_make_query *q, struct coll_made *one, struct err *err)
{
	int rc = make_embed(q, one, err);

	if (rc) {
		return rc;
	}
	if (q->links_only && coll_through_ranks(one->sched)) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "algorithm %s: ranks would have to forward, as "
			       "partners are not joined by links that are alike",
			       one->algorithm->name);
	}
	rc = coll_verify(one->sched, &one->report, err);
	if (rc == 0 && q->kind == COLL_ALLTOALL) {
		make_raise_bound(one->sched, one->pairs.info.flow.bound, &one->report);
	}
	if (rc || !q->cost) {
		return rc;
	}
	return coll_time(one->sched, &one->report, q->cost, &one->time_ns, &one->bound_ns, err);
}

/* The same over fewer paths, where that is faster. */
static void embed_anew(const struct coll_make_query *q, struct coll_made *one,
		       enum coll_routing routing)
{
	struct coll_made other = { .pairs = one->pairs };
	struct coll_fabric how = *q->fabric;

	how.routing = routing;
	coll_report_init(&other.report);
	mpq_set(other.report.bandwidth_bound, one->report.bandwidth_bound);
	other.report.has_bound = true;
	if (coll_embed_in(&how, one->logical, &other.sched, NULL) == 0 &&
	    !(q->links_only && coll_through_ranks(other.sched)) &&
	    coll_verify(other.sched, &other.report, NULL) == 0 &&
	    coll_time(other.sched, &other.report, q->cost, &other.time_ns, &other.bound_ns,
		      NULL) == 0 && other.time_ns < one->time_ns) {
		struct coll_made worse = *one;

		one->sched = other.sched;
		one->report = other.report;
		one->time_ns = other.time_ns;
		other.sched = worse.sched;
		other.report = worse.report;
	}
	coll_free(other.sched);
	coll_report_fini(&other.report);
}

/* Each path that begins is a message, which may cost something. */
static void use_fewer_paths(const struct coll_make_query *q, struct coll_made *one)
{
	if (q->cost && q->cost->message_ns > 0 && one->logical && q->fabric &&
	    q->fabric->routing == COLL_ROUTING_MINIMAL_SPLIT) {
		embed_anew(q, one, COLL_ROUTING_MINIMAL_PARALLEL);
		embed_anew(q, one, COLL_ROUTING_MINIMAL_SINGLE);
	}
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
	if (a->algorithm->chooses_steps || b->algorithm->chooses_steps) {
		return weigh(a) < weigh(b);
	}
	cmp = mpq_cmp(a->report.bandwidth_factor, b->report.bandwidth_factor);
	return cmp ? cmp < 0 : a->report.steps < b->report.steps;
}

/* The bound of the best so far is that of another on the same digraph. */
static void take_bound(const struct coll_make_query *q, const struct coll_made *best,
		       struct coll_made *one)
{
	if (best->sched && q->kind != COLL_ALLTOALL &&
	    (q->fabric || coll_ports(best->sched) == coll_ports(one->sched))) {
		mpq_set(one->report.bandwidth_bound, best->report.bandwidth_bound);
		one->report.has_bound = true;
	}
}

int make_offer(const struct coll_make_query *q, struct coll_made *one, struct coll_made *best,
	       struct err *err)
{
	double factor, least = best->sched ? best->pairs.min_factor : HUGE_VAL;
	int rc;

	coll_report_init(&one->report);
	take_bound(q, best, one);
	one->batches = one->batches > 0 ? one->batches : 1;
	rc = measure(q, one, err);
	if (rc == 0) {
		use_fewer_paths(q, one);
	}
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
