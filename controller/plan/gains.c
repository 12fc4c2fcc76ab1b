/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan means for each job: time of a collective before and after, the
 * outage that it costs, and after how many collectives that is paid back.
 *
 * What was before comes from whoever has it (status' rows, or the jobs as they
 * are planned on what remains): a plan only knows what will be.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/units.h"
#include "lib/base/vec.h"

int64_t plan_payback(const struct plan_gain *g)
{
	int64_t saved = g->before_ns - g->after_ns;

	if (g->effect == PLAN_BEGINS || g->effect == PLAN_ENDS) {
		return -1;
	}
	if (g->down_ns == 0 || g->before_ns == 0) {
		return 0;
	}
	return saved > 0 ? (g->down_ns - 1) / saved + 1 : -1;
}

struct plan_before plan_before_of(const struct plan *now, int job)
{
	const struct plan_job *pj = &now->jobs[job];
	const struct model_job *mj = &now->fabric->jobs[pj->job];

	return (struct plan_before){
		.name = mj->name, .collective = plan_collective_name(mj),
		.nodes = mj->n_hosts, .size_bytes = mj->size_bytes,
		.time_ns = pj->loss ? pj->loss->time_ns : pj->time_ns,
		.whole_ns = pj->fault_free_ns ? pj->fault_free_ns : pj->time_ns,
	};
}

/* ---- one job ------------------------------------------------------------- */

static bool is_same_work(const struct plan_before *b, const struct model_job *job)
{
	return strcmp(b->name, job->name) == 0 && b->size_bytes == job->size_bytes &&
	       b->nodes == job->n_hosts &&
	       strcmp(b->collective, plan_collective_name(job)) == 0;
}

static const struct plan_before *find_before(const struct plan_before *v, int n,
					     const struct model_job *job)
{
	for (int i = 0; i < n; i++) {
		if (is_same_work(&v[i], job)) {
			return &v[i];
		}
	}
	return NULL;
}

/* Whether the plan loads another program for the job. */
static bool is_loaded(const struct plan *p, const struct model_job *job)
{
	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		const struct ring_program *old, *now;

		if (d->device != job->device || !d->load_program) {
			continue;
		}
		old = ring_programs_find(&d->old_programs, job->name);
		now = ring_programs_find(&d->programs, job->name);
		return !old || !now || !ring_program_equal(old, now);
	}
	return false;
}

static void put_job(struct plan *p, int i, const struct plan_before *b, int64_t down_ns)
{
	const struct plan_job *pj = &p->jobs[i];
	const struct model_job *job = &p->fabric->jobs[pj->job];
	struct plan_gain *g = &p->gains[p->n_gains];

	*g = (struct plan_gain){
		.name = x_dup(job->name), .job = i, .effect = b ? PLAN_STAYS : PLAN_BEGINS,
		.size_bytes = job->size_bytes,
		.after_ns = pj->loss ? pj->loss->time_ns : pj->time_ns,
		.after_whole_ns = pj->fault_free_ns ? pj->fault_free_ns : pj->time_ns,
	};
	p->n_gains++;
	if (!b) {
		return;
	}
	g->before_ns = b->time_ns;
	g->before_whole_ns = b->whole_ns;
	if (pj->kept) {
		g->after_ns = g->before_ns;	/* what is lost stays lost */
		return;
	}
	g->down_ns = down_ns;
	if (down_ns || pj->n_moves || g->before_ns != g->after_ns ||
	    g->before_whole_ns != g->after_whole_ns || (pj->is_ring && is_loaded(p, job))) {
		g->effect = PLAN_CHANGES;
	}
}

static void put_ended(struct plan *p, const struct plan_before *b)
{
	struct plan_gain *g = &p->gains[p->n_gains];

	*g = (struct plan_gain){
		.name = x_dup(b->name), .job = -1, .effect = PLAN_ENDS,
		.size_bytes = b->size_bytes, .before_ns = b->time_ns,
		.before_whole_ns = b->whole_ns,
	};
	p->n_gains++;
}

/* ---- all ----------------------------------------------------------------- */

/* A job that begins or ends, or that takes less time: what the others pay for. */
static bool has_reason(const struct plan *p)
{
	for (int i = 0; i < p->n_gains; i++) {
		const struct plan_gain *g = &p->gains[i];

		if (g->effect == PLAN_BEGINS || g->effect == PLAN_ENDS ||
		    (g->effect == PLAN_CHANGES &&
		     (g->before_ns == 0 || g->after_ns < g->before_ns))) {
			return true;
		}
	}
	return false;
}

static void warn_worthless(struct plan *p)
{
	char down[32], before[32], after[32];

	if (has_reason(p)) {
		return;
	}
	for (int i = 0; i < p->n_gains; i++) {
		const struct plan_gain *g = &p->gains[i];

		/* A step's light is another because the job asked for it. */
		bool of_step = i < p->n_jobs && p->jobs[i].step && p->jobs[i].step->lights.n > 1;

		if (g->down_ns > 0 && plan_payback(g) < 0 && !of_step) {
			unit_human(UNIT_NS, (double)g->down_ns, down, sizeof(down));
			unit_human(UNIT_NS, (double)g->before_ns, before, sizeof(before));
			unit_human(UNIT_NS, (double)g->after_ns, after, sizeof(after));
			plan_warn(p, "job %s: an outage of %s is never paid back: a collective "
				  "takes %s now and %s afterwards", g->name, down, before, after);
		}
	}
}

static bool goes_on(const struct plan *p, const struct plan_before *b)
{
	for (int i = 0; i < p->n_jobs; i++) {
		if (is_same_work(b, &p->fabric->jobs[p->jobs[i].job])) {
			return true;
		}
	}
	return false;
}

/* Those of the jobs that do not earn their outage in time keep their topologies; false: all do. */
static bool settle(const struct plan *p, bool *settled)
{
	bool any = false;

	for (int i = 0; i < p->n_gains; i++) {
		const struct plan_gain *g = &p->gains[i];
		int64_t n = plan_payback(g);

		if (g->effect == PLAN_CHANGES && !settled[g->job] && g->before_ns > 0 &&
		    (g->after_ns >= g->before_ns || n < 0 ||
		     n > p->fabric->changes.pays_back_ns / g->before_ns)) {
			settled[g->job] = any = true;
		}
	}
	return any;
}

int plan_optimise(const struct model_fabric *fabric, const struct plan_base *base,
		  const struct plan *now, struct plan **out, struct err *err)
{
	bool *settled = x_new((size_t)fabric->n_jobs + 1, sizeof(*settled));
	struct plan_base with = *base;
	VEC(struct plan_before) before = { 0 };
	int rc;

	for (int i = 0; now && i < now->n_jobs; i++) {
		vec_push(&before, plan_before_of(now, i));
	}
	with.settled = settled;
	while ((rc = plan_make(fabric, &with, out, err)) == 0) {
		plan_gains(*out, before.v, (int)before.n);
		if (!settle(*out, settled)) {
			break;
		}
		plan_free(*out);
	}
	vec_fini(&before);
	free(settled);
	return rc;
}

void plan_gains(struct plan *p, const struct plan_before *before, int n)
{
	struct plan_outages out;

	if (p->n_jobs == 0 && p->fabric->n_jobs > 0) {
		return;
	}
	p->gains = x_new((size_t)(p->n_jobs + n) + 1, sizeof(*p->gains));
	plan_outages(p, &out);
	for (int i = 0; i < p->n_jobs; i++) {
		const struct model_job *job = &p->fabric->jobs[p->jobs[i].job];

		put_job(p, i, find_before(before, n, job), out.jobs[i].stalled_ns);
	}
	for (int i = 0; i < n; i++) {
		if (!goes_on(p, &before[i])) {
			put_ended(p, &before[i]);
		}
	}
	plan_outages_fini(&out);
	p->gains_known = true;
	warn_worthless(p);
}
