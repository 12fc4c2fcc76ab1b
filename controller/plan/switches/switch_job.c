/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job on optical switches: which digraph, which schedule, which circuits.
 *
 * A topology that is given is built and scheduled by the algorithm that is
 * asked for. With "auto" it is the first of the finder's choices, the fastest
 * first, that the switches can wire: the best digraph is of no use when its circuits
 * cannot be made. When none of the first few can be, the error is that of the
 * fastest. What was considered is kept with the plan, for people who ask why.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

/* How many digraphs that the switches cannot wire are given up before the job
 * is. */
#define AUTO_REFUSED 16

/* Of the ports that have a fibre. A step takes as long as its slowest link. */
static int64_t slowest_port_bps(const struct model_fabric *f, const struct model_job *job)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < job->n_ports; i++) {
		const struct model_port *port = &f->ports[job->ports[i]];

		if (port->tx_device >= 0 && port->rate_bps < least) {
			least = port->rate_bps;
		}
	}
	return least;
}

/* Whether any host of the job, or (all) each of them, says so of itself. */
static bool hosts_say(const struct model_fabric *f, const struct model_job *job,
		      enum model_forwards what, bool all)
{
	for (int r = 0; r < job->n_hosts; r++) {
		if ((f->hosts[job->hosts[r]].forwards == what) != all) {
			return !all;
		}
	}
	return all;
}

struct coll_cost plan_job_cost(const struct model_fabric *f, const struct plan_job *pj)
{
	const struct model_job *job = &f->jobs[pj->job];

	return coll_cost_of((struct coll_cost){
		.alpha_ns = job->alpha_ns > 0 ? job->alpha_ns : 0,
		.forwards = hosts_say(f, job, MODEL_FORWARDS_YES, true),
		.link_bps = pj->unit_bps > 0 ? pj->unit_bps : slowest_port_bps(f, job),
		.size_bytes = job->size_bytes,
	});
}

static struct coll_cost cost_of(const struct plan_ctx *ctx, const struct plan_job *pj)
{
	struct coll_cost cost = plan_job_cost(ctx->fabric, pj);

	cost.retune_ns = plan_light_change_ns(ctx, &ctx->fabric->jobs[pj->job]);
	return cost;
}

int plan_time(const struct plan_ctx *ctx, const struct plan_job *pj,
	      const struct coll_sched *sched, struct coll_report *report,
	      int64_t *time_ns, int64_t *bound_ns, struct err *err)
{
	struct coll_cost cost = cost_of(ctx, pj);
	int rc = coll_verify(sched, report, err);

	if (rc) {
		return rc;
	}
	return coll_time(sched, report, &cost, time_ns, bound_ns, err);
}

int plan_time_job(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	int rc = plan_time(ctx, pj, pj->sched, &pj->report, &pj->time_ns, &pj->bound_ns, err);

	if (rc) {
		return rc;
	}
	pj->gap = pj->bound_ns > 0
			  ? (double)pj->time_ns / (double)pj->bound_ns - 1
			  : 0;
	return 0;
}

/* The schedule, and the flow where it is wanted, out of what was made; the rest is freed. */
static void take_made(struct coll_made *made, struct coll_sched **sched, struct mcf **flow)
{
	*sched = made->sched;
	made->sched = NULL;
	if (flow) {
		*flow = made->flow;
		made->flow = NULL;
	}
	coll_made_fini(made);
}

int plan_make_inside(const struct model_fabric *f, const struct plan_job *pj,
		     const struct topo *seen, const int32_t *groups,
		     const struct coll_fabric *inside, struct coll_sched **out,
		     const char **algorithm, struct err *err)
{
	const struct model_job *job = &f->jobs[pj->job];
	struct coll_cost cost = plan_job_cost(f, pj);
	struct coll_make_query q = coll_make_job(job->collective, job->made_by, seen, &cost);
	struct coll_made made;
	int rc;

	q.fabric = inside;
	q.physical = inside->topo;
	q.groups = groups;
	q.links_only = hosts_say(f, job, MODEL_FORWARDS_NO, false);
	rc = coll_make(&q, &made, err);
	*algorithm = rc ? NULL : made.algorithm->name;
	take_made(&made, out, NULL);
	return rc;
}

int plan_reschedule(const struct plan_ctx *ctx, const struct plan_job *pj, const bool *dropped,
		    struct coll_sched **out, struct err *err)
{
	enum coll_kind kind = ctx->fabric->jobs[pj->job].collective;
	struct coll_cost cost = cost_of(ctx, pj);
	struct coll_make_query q = coll_make_job(kind, NULL, NULL, &cost);
	struct coll_made made;
	const char *algorithm;
	struct topo *t;
	int rc;

	if (pj->unit_bps > 0) {
		return plan_embed(ctx->fabric, pj, coll_physical(pj->sched), dropped, out,
				  &algorithm, err);
	}
	rc = plan_copy_alive(coll_physical(pj->sched), dropped, &t, err);
	if (rc) {
		return rc;
	}
	q.links_only = hosts_say(ctx->fabric, &ctx->fabric->jobs[pj->job], MODEL_FORWARDS_NO,
				 false);
	if (kind == COLL_ALLTOALL) {
		q.algorithm = coll_algorithm_find(pj->algorithm, kind);
		q.pairs.before = (struct coll_flow_before){ pj->flow, coll_topo(pj->sched),
							    dropped };
	}
	q.topo = t;
	rc = coll_make(&q, &made, err);
	topo_free(t);
	take_made(&made, out, NULL);
	return rc;
}

/* The job's schedule becomes m, which is empty then, on the digraph of that name, which is copied.
 * */
static void take_schedule(struct plan_job *pj, const char *name, struct coll_made *m)
{
	free(pj->topology);
	pj->topology = x_dup(name);
	coll_free(pj->sched);
	mcf_free(pj->flow);
	coll_report_fini(&pj->report);
	pj->sched = m->sched;
	pj->flow = m->flow;
	pj->algorithm = m->algorithm->name;
	pj->torus = m->torus;
	pj->report = m->report;
	pj->time_ns = m->time_ns;
	pj->bound_ns = m->bound_ns;
	pj->gap = pj->bound_ns > 0 ? (double)pj->time_ns / (double)pj->bound_ns - 1 : 0;
	coll_set_topo_name(pj->sched, name);
	*m = (struct coll_made){ 0 };
}

/* Schedules the job on the topology that is given. */
static int schedule_given(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct coll_cost cost = cost_of(ctx, pj);
	struct coll_make_query q = coll_make_job(job->collective, job->made_by, job->topo, &cost);
	struct coll_made m = { 0 };
	int rc;

	q.expr = model_is_arcs(job->topology) ? NULL : job->topology;
	q.links_only = hosts_say(ctx->fabric, job, MODEL_FORWARDS_NO, false);
	rc = coll_make(&q, &m, err);
	if (rc) {
		err_wrap(err, "topology %s", job->topology);
	} else {
		take_schedule(pj, job->topology, &m);
	}
	coll_made_fini(&m);
	return rc;
}

/* Ports of the job's poorest rank, and whether any circuit is duplex. */
static void port_budget(const struct plan_ctx *ctx, const struct model_job *job, int *degree,
			bool *duplex)
{
	const struct model_fabric *f = ctx->fabric;

	*degree = INT32_MAX;
	*duplex = false;
	for (int r = 0; r < job->n_hosts; r++) {
		int tx, rx;

		plan_usable_ports(ctx, job, r, &tx, &rx);
		tx = rx < tx ? rx : tx;
		*degree = tx < *degree ? tx : *degree;
	}
	for (int i = 0; i < job->n_ports; i++) {
		int dev = f->ports[job->ports[i]].tx_device;

		*duplex |= dev >= 0 && f->devices[dev].any_to_any;
	}
}

/* The most ports of a host from which light was made for the job; 0: none was. */
static int made_ports(const struct plan_ctx *ctx, int job)
{
	const struct model_fabric *f = ctx->fabric;
	int *of = x_new((size_t)f->n_hosts + 1, sizeof(*of)), most = 0;

	for (int d = 0; ctx->base->intent && d < f->n_devices; d++) {
		const struct plan_light *intent = plan_intent(ctx, d);
		const struct model_device *dev = &f->devices[d];

		for (int i = 0; i < intent->n_xcs; i++) {
			int ends[2] = { intent->xcs[i].in, intent->xcs[i].out };

			for (int k = 0; k < (dev->any_to_any ? 2 : 1); k++) {
				int tx = ends[k] < dev->n_in ? dev->in_port[ends[k]] : -1;

				if (tx >= 0 && f->ports[tx].tx_job == job) {
					int n = ++of[f->ports[tx].host];

					most = n > most ? n : most;
				}
			}
		}
	}
	free(of);
	return most;
}

/* True when fibres between switches reach a switch of the job's hosts. */
static bool has_trunks(const struct plan_ctx *ctx, const struct model_job *job)
{
	const struct model_fabric *f = ctx->fabric;

	for (int i = 0; i < job->n_ports; i++) {
		int d = f->ports[job->ports[i]].tx_device;

		for (int t = 0; d >= 0 && t < f->n_trunks; t++) {
			if (f->trunks[t].from_device == d) {
				return true;
			}
		}
	}
	return false;
}

int plan_find_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];

	if (!has_trunks(ctx, job)) {
		return plan_circuits(ctx, pj, err);
	}
	vec_push(&ctx->trunk_jobs, pj);
	return 0;
}

/* Whether the switches can wire the job's digraph, over trunks beside all jobs that
 * wait for light. One that they cannot does not wait. */
static int try_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	size_t waiting = ctx->trunk_jobs.n;
	int rc = plan_find_circuits(ctx, pj, err);

	if (rc == 0 && ctx->trunk_jobs.n > waiting) {
		rc = plan_trunk_light(ctx, err);
		ctx->trunk_jobs.n -= rc ? 1 : 0;
	}
	return rc;
}

/* ---- topology: auto ---- */

/* refused: why the switches cannot be wired so, NULL: nothing is known against it. */
static void note(struct plan_choice *c, const struct coll_choice *one, const struct err *refused)
{
	struct plan_topology t = { .expr = x_dup(one->expr), .steps = one->steps, .num = one->num,
				   .den = one->den, .ports = one->ports,
				   .time_ns = one->time_ns };

	if (refused) {
		t.refused = *refused;
	}
	vec_push(&c->considered, t);
}

/* The fastest that the switches can wire, or this one of the first few; *k: how many were looked
 * at. When they can wire none of them, the error is that of the fastest. */
static int wire_first(struct plan_ctx *ctx, struct plan_job *pj, const char *only,
		      struct plan_choices *all, size_t *k, struct err *err)
{
	struct coll_choice one;
	struct coll_made m = { 0 };
	struct err first = { 0 }, why;
	int rc = WEFT_EINFEASIBLE;

	for (*k = 0; *k < AUTO_REFUSED && rc == WEFT_EINFEASIBLE; ++*k) {
		err_clear(&why);
		if (plan_choices_get(all, *k, &one, &why) == WEFT_ENOTFOUND) {
			break;
		}
		if (!why.code && only && strcmp(one.expr, only) != 0) {
			continue;
		}
		rc = why.code ? why.code : plan_choices_make(all, *k, &m, &why);
		if (!rc) {
			take_schedule(pj, one.expr, &m);
			rc = try_circuits(ctx, pj, &why);
		}
		coll_made_fini(&m);
		if (rc == WEFT_EINFEASIBLE || rc == 0) {
			note(pj->choice, &one, rc ? &why : NULL);
		}
		first = *k == 0 ? why : first;
	}
	if (rc == WEFT_EINFEASIBLE && pj->choice->considered.n == 0) {
		return err_set(err, rc, "no topology for %d hosts with %d usable ports each",
			       ctx->fabric->jobs[pj->job].n_hosts, pj->choice->ports);
	}
	if (rc && err) {
		*err = rc == WEFT_EINFEASIBLE ? first : why;
	}
	return rc;
}

static bool was_refused(const struct plan_choice *c, const char *expr)
{
	for (size_t i = 0; i < c->considered.n; i++) {
		if (c->considered.v[i].refused.code && strcmp(c->considered.v[i].expr, expr) == 0) {
			return true;
		}
	}
	return false;
}

/* From which size on which point is the fastest, as far as is known of the switches. Only where
 * one of these was taken as it is: batches are others for every size. */
static void note_ranges(struct plan_choice *c, const struct plan_job *pj,
			const struct coll_frontier *f, const struct coll_cost *cost)
{
	struct coll_range *ranges = x_new(f->points.n + 1, sizeof(*ranges));
	bool *skip = x_new(f->points.n + 1, sizeof(*skip)), taken = false;
	size_t n = 0;

	for (size_t i = 0; i < f->points.n; i++) {
		const struct coll_point *p = &f->points.v[i];

		skip[i] = was_refused(c, p->expr);
		taken |= strcmp(p->expr, pj->topology) == 0 && p->steps == pj->report.steps &&
			 !pj->torus.is_made;
	}
	if (taken) {
		n = coll_ranges(f, skip, cost, c->ports, ranges);
	}
	for (size_t i = 0; i < n; i++) {
		struct plan_range r = { x_dup(f->points.v[ranges[i].point].expr),
					ranges[i].from_bytes };

		vec_push(&c->ranges, r);
	}
	free(ranges);
	free(skip);
}

/* What the choice was made from: the next best, the k-th, bounds, and sizes for which it would be
 * another. */
static int explain_choice(const struct plan_ctx *ctx, struct plan_job *pj,
			  struct plan_choices *all, size_t k, struct err *err)
{
	const struct coll_frontier *f = coll_choices_frontier(plan_choices_all(all));
	struct coll_cost cost = cost_of(ctx, pj);
	struct coll_choice next;
	struct err why = { 0 };
	int rc = 0;

	/* A schedule of an all-to-all takes too long to be made for its time alone. */
	if (ctx->fabric->jobs[pj->job].collective == COLL_ALLTOALL) {
		rc = coll_choices_timed(plan_choices_all(all), &next) ? 0 : WEFT_ENOTFOUND;
	} else {
		rc = plan_choices_get(all, k, &next, &why);
	}
	if (rc && rc != WEFT_ENOTFOUND) {
		*err = why;
		return rc;
	}
	if (rc == 0) {
		note(pj->choice, &next, NULL);
	}
	if (f) {
		pj->choice->steps_bound = f->steps_bound;
		note_ranges(pj->choice, pj, f, &cost);
	}
	return 0;
}

/* With at most so many ports of each host; only: that topology, NULL: the fastest. */
static int plan_any_topology(struct plan_ctx *ctx, struct plan_job *pj, int most, const char *only,
			     struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct plan_choice *c = x_new(1, sizeof(*c));
	struct coll_want w = { .algorithm = job->made_by, .cost = cost_of(ctx, pj) };
	struct plan_choices *all;
	size_t k;
	int rc;

	pj->choice = c;
	port_budget(ctx, job, &c->ports, &c->bidirectional);
	c->ports = c->ports < most ? c->ports : most;
	if (c->ports < 1) {
		return err_set(err, WEFT_EINFEASIBLE, "no topology for %d hosts with %d usable "
			       "ports each", job->n_hosts, c->ports);
	}
	w.q = (struct coll_query){ .n = job->n_hosts, .degree = c->ports,
				   .bidirectional = c->bidirectional, .kind = job->collective };
	rc = plan_choices_of(ctx, &w, &all, err);
	if (!rc && (rc = wire_first(ctx, pj, only, all, &k, err)) == 0) {
		rc = explain_choice(ctx, pj, all, k, err);
	}
	return rc;
}

static void start_again(struct plan_job *pj)
{
	struct plan_job empty = { .job = pj->job, .moves_bound = -1, .kept = pj->kept };

	plan_job_fini(pj);
	*pj = empty;
	coll_report_init(&pj->report);
}

/* The job, if it was the last to, waits for light over trunks no more. */
static void wait_no_more(struct plan_ctx *ctx, const struct plan_job *pj)
{
	size_t n = ctx->trunk_jobs.n;

	ctx->trunk_jobs.n -= n > 0 && ctx->trunk_jobs.v[n - 1] == pj;
}

/* Plans the job while all that was made is there, with at most so many ports: with that topology,
 * or, where NULL, the one that is chosen then, if its light is what was made. */
static bool is_made(struct plan_ctx *ctx, struct plan_job *pj, int most, const char *only)
{
	const struct plan_base *now = ctx->base;
	size_t waiting = ctx->trunk_jobs.n;
	struct err why = { 0 };
	bool same;

	ctx->base = only ? ctx->made : ctx->usable;
	same = plan_any_topology(ctx, pj, most, only, &why) == 0;
	ctx->base = now;
	for (int i = 0; i < pj->n_circuits && same && !only; i++) {
		same = plan_light_has(plan_intent(ctx, pj->circuits[i].device),
				      pj->circuits[i].xc);
	}
	if (!same) {
		ctx->trunk_jobs.n = waiting;
		start_again(pj);
	}
	return same;
}

/* Whether the job was applied, and the topology is found that was chosen then: that one stays,
 * whatever works now. Where it was not written down (older stores), the light tells it: ports may
 * have been out of use at the time, which all hosts did without. */
static bool is_chosen(struct plan_ctx *ctx, struct plan_job *pj)
{
	bool committed = ctx->base->from_committed || pj->kept;
	int lit = ctx->base->observed ? made_ports(ctx, pj->job) : 0;

	int ports;
	char *kept = lit > 0 ? plan_kept_topology(ctx, pj->job, &ports) : NULL;
	bool found = kept && is_made(ctx, pj, ports, kept);

	free(kept);
	/* Of another configuration, which is not known here, few ports may be what was meant. */
	return found || (lit > 0 && (is_made(ctx, pj, INT_MAX, NULL) ||
				     (committed && is_made(ctx, pj, lit, NULL))));
}

/* Circuits for the topology that the job has, on what works now. */
static int wire_again(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	size_t n = ctx->trunk_jobs.n;

	if (n > 0 && ctx->trunk_jobs.v[n - 1] == pj) {
		return plan_trunk_light(ctx, err);
	}
	free(pj->circuits);
	pj->circuits = NULL;
	pj->n_circuits = 0;
	return plan_circuits(ctx, pj, err);
}

/* Whether the job has light that is to go: circuits at ports that are evacuated. These, and those
 * that have died, are dark. */
static bool is_evacuated(const struct plan_ctx *ctx, const struct plan_job *pj)
{
	bool some = false;

	for (int i = 0; i < pj->n_circuits; i++) {
		struct plan_circuit *c = &pj->circuits[i];
		const struct plan_light *seen = plan_observed(ctx, c->device);
		bool died = plan_has_died(seen, c->xc);
		bool goes = seen->n_evacuated_in + seen->n_evacuated_out > 0 && !died &&
			    (!plan_tx_usable(ctx, c->tx_port) || !plan_rx_usable(ctx, c->rx_port));

		c->dark = died || goes;
		some |= goes;
	}
	return some;
}

/* Where light that is to go has no other port: another topology, where that is faster than what is
 * left of the present one. Else the job stays as it is: first is the error. */
static int leave_topology(struct plan_ctx *ctx, struct plan_job *pj, const struct err *first,
			  struct err *err)
{
	int64_t left_ns = INT64_MAX;
	int rc;

	start_again(pj);
	if (is_chosen(ctx, pj) && is_evacuated(ctx, pj)) {
		plan_assess(ctx, pj);
		left_ns = pj->loss->sched ? pj->loss->time_ns : INT64_MAX;
	}
	wait_no_more(ctx, pj);
	start_again(pj);
	rc = plan_any_topology(ctx, pj, INT_MAX, NULL, err);
	if (rc == 0 && pj->time_ns < left_ns) {
		return 0;
	}
	*err = *first;
	if (rc == 0) {
		err_set(err, first->code, "%s, and no other topology is faster than it is without "
			"that light", first->msg);
	}
	return err->code;
}

/* The topology that was chosen before, where the job was applied. Another one is taken where that
 * is asked for, or for light that is to go and has no other port. */
int plan_choose_topology(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct plan_base *base = ctx->base;
	bool again = base->aim == PLAN_OPTIMISE && !(base->settled && base->settled[pj->job]);
	struct err first;
	bool moves;
	int rc;

	if (again || !is_chosen(ctx, pj)) {
		return plan_any_topology(ctx, pj, INT_MAX, NULL, err);
	}
	moves = is_evacuated(ctx, pj);
	rc = wire_again(ctx, pj, err);
	if (rc == WEFT_EINFEASIBLE && moves) {
		first = *err;
		err_clear(err);
		wait_no_more(ctx, pj);
		rc = leave_topology(ctx, pj, &first, err);
	}
	return rc;
}

int plan_switched_job(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	int rc;

	if (job->kind == MODEL_CIRCUITS) {
		return plan_pinned_circuits(ctx, pj, err);
	}
	if (job->kind == MODEL_STEP) {
		return plan_step_circuits(ctx, pj, err);
	}
	if (plan_host_with_ranks(ctx->fabric, job)) {
		return plan_server_circuits(ctx, pj, err);
	}
	if (!job->topo) {
		return plan_choose_topology(ctx, pj, err);
	}
	rc = schedule_given(ctx, pj, err);
	if (rc) {
		return rc;
	}
	return job->shape[0] ? plan_slice_circuits(ctx, pj, err)
			     : plan_find_circuits(ctx, pj, err);
}
