/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fabric gives as it was applied when some of its circuits have failed.
 *
 * The plan of the fabric is made from the committed intent, and every job on
 * switches that has lost circuits gets a schedule on the arcs that are left:
 * the digraph without them, all-to-all by the flow that goes on from that of
 * the whole (mcf_without), other collectives by what is the fastest there. Jobs on rings are
 * planned without the parts that failed. Nothing here changes a device.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

static bool is_dead(const struct plan_ctx *ctx, const struct plan_circuit *c)
{
	const struct plan_light *seen = plan_observed(ctx, c->device);

	return seen->known &&
	       plan_light_has(plan_intent(ctx, c->device), c->xc) &&
	       plan_has_died(seen, c->xc);
}

/* FNV-1a of one number. */
static uint64_t mix(uint64_t hash, int value)
{
	return (hash ^ (uint32_t)value) * UINT64_C(0x100000001b3);
}

static uint64_t mix_part(uint64_t hash, const struct ring_fault *d)
{
	hash = mix(hash, d->part);
	hash = mix(hash, d->node);
	hash = mix(hash, d->channel);
	return mix(hash, d->dir << 8 | d->fibre);
}

/* True when a program may need the part, and was not made without it. */
static bool may_need(const struct model_device *ring, const struct ring_program *p,
		     const struct ring_fault *d)
{
	int channel = d->part == RING_RESONATOR ? d->channel : p->window.first_channel;

	return ring_window_contains(&p->window, ring->ring.n, d->node, channel) &&
	       (!p->n_without || !bsearch(d, p->without, (size_t)p->n_without, sizeof(*d),
					  ring_fault_cmp));
}

static bool is_new_fault(const struct model_device *ring,
		    const struct plan_light *intent, const struct ring_fault *d)
{
	for (int i = 0; intent->programs && i < intent->programs->n; i++) {
		if (may_need(ring, &intent->programs->v[i], d)) {
			return true;
		}
	}
	return false;
}

double plan_program_share(const struct model_device *ring, const struct plan_light *intent,
			  const struct plan_light *seen, const char *job)
{
	const struct ring_program *p = intent->programs ? ring_programs_find(intent->programs, job)
							: NULL;
	int n = 0;

	if (!seen->known || !p) {
		return 1;
	}
	for (int i = 0; i < seen->n_dead; i++) {
		n += may_need(ring, p, &seen->dead[i]);
	}
	for (int i = 0; i < seen->n_lost; i++) {
		n += ring_window_contains(&p->window, ring->ring.n, seen->lost[i].node,
					  seen->lost[i].channel);
	}
	return ring_program_plays(p, seen->programs, NULL, 0)
		       ? 1 - (double)n / (n + p->window.nodes * p->window.channels) : 0;
}

/* A program of the intent that is not loaded, or has resonators that hold no wave. */
static uint64_t mix_programs(uint64_t hash, int device, const struct plan_light *intent,
			     const struct plan_light *seen)
{
	for (int i = 0; seen->known && intent->programs && i < intent->programs->n; i++) {
		if (!ring_program_plays(&intent->programs->v[i], seen->programs, seen->lost,
					seen->n_lost)) {
			hash = mix(mix(hash + 1, device), i);
		}
	}
	return hash;
}

uint64_t plan_failed_circuits(const struct model_fabric *fabric, const struct plan_base *base)
{
	/* Those that the file marks are looked into by plan_degraded. */
	uint64_t hash = plan_has_admin_down(fabric);

	for (int d = 0; d < fabric->n_devices; d++) {
		const struct plan_light *seen = &base->observed[d];
		const struct plan_light *intent = &base->intent[d];

		for (int i = 0; seen->known && i < seen->n_dead; i++) {
			if (is_new_fault(&fabric->devices[d], intent, &seen->dead[i])) {
				hash = mix_part(mix(hash + 1, d), &seen->dead[i]);
			}
		}
		hash = mix_programs(hash, d, intent, seen);
		for (int i = 0; seen->known && i < intent->n_xcs; i++) {
			if (plan_has_died(seen, intent->xcs[i])) {
				hash = mix(hash + 1, d);
				hash = mix(hash, intent->xcs[i].in);
				hash = mix(hash, intent->xcs[i].out);
			}
		}
	}
	return hash;
}

uint64_t plan_failed_ports(const struct model_fabric *fabric, const struct plan_base *base)
{
	uint64_t hash = 0;

	for (int d = 0; d < fabric->n_devices; d++) {
		const struct plan_light *seen = &base->observed[d];

		for (int i = 0; seen->known && i < seen->n_bad_in; i++) {
			hash = mix(mix(hash + 1, d), seen->bad_in[i]);
		}
		for (int i = 0; seen->known && i < seen->n_bad_out; i++) {
			hash = mix(mix(hash + 2, d), seen->bad_out[i]);
		}
	}
	return hash;
}

/* Marks the arcs of dark circuits; what is lost goes to loss. */
static void mark_dead(const struct plan_job *pj, bool *dead, struct plan_job_loss *loss)
{
	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];

		if (!c->dark) {
			continue;
		}
		if (loss->dead++ == 0) {
			loss->device = c->device;
			loss->xc = c->xc;
		}
		loss->dead_arcs += !dead[c->arc];
		dead[c->arc] = true;
	}
}

/* At most 1: a schedule that saves steps may have had more load than what is made now. */
static double load_ratio(const struct coll_report *before, const struct coll_report *now)
{
	double was = mpq_get_d(before->shard_times), after = mpq_get_d(now->shard_times);

	return after > was ? was / after : after > 0;
}

/* A fabric that is cut in two is no reason not to tell of it. */
static void schedule_rest(const struct plan_ctx *ctx, const struct plan_job *pj, const bool *dead,
			  struct plan_job_loss *loss)
{
	int rc = plan_reschedule(ctx, pj, dead, &loss->sched, &loss->why);

	if (rc == 0 && !coll_is_embedded(loss->sched)) {
		coll_set_topo_name(loss->sched, pj->topology);
	}
	if (rc == 0) {
		rc = plan_time(ctx, pj, loss->sched, &loss->report,
			       &loss->time_ns, &loss->bound_ns, &loss->why);
	}
	if (rc == 0) {
		rc = plan_place_job(ctx->fabric, pj, dead, loss->sched, &loss->why);
	}
	if (rc == 0) {
		loss->rate = load_ratio(&pj->report, &loss->report);
		return;
	}
	coll_free(loss->sched);
	loss->sched = NULL;
}

/* Arcs of the job's topology; only those with light where hosts have ranks inside. */
static int count_arcs(const struct plan_job *pj, bool *seen)
{
	int n = 0, m = topo_m(coll_physical(pj->sched));

	if (!coll_is_embedded(pj->sched)) {
		return m;
	}
	for (int i = 0; i < pj->n_circuits; i++) {
		n += !seen[pj->circuits[i].arc];
		seen[pj->circuits[i].arc] = true;
	}
	memset(seen, 0, (size_t)m * sizeof(*seen));
	return n;
}

/* A step goes on with what is left of the light that is lit. */
static void reschedule_step(const struct workload *w, struct plan_job *pj, const bool *dead,
			    struct plan_job_loss *loss)
{
	const struct topo *t = coll_physical(pj->sched);
	struct workload_gap *gaps = x_new((size_t)topo_m(t) + 1, sizeof(*gaps));
	size_t n = 0;

	for (int a = 0; a < topo_m(t); a++) {
		if (dead[a]) {
			gaps[n++] = (struct workload_gap){ topo_arc(t, a)->src,
							   topo_arc(t, a)->dst };
		}
	}
	workload_lose(w, pj->step, pj->light, gaps, n, &loss->why);
	loss->time_ns = pj->step->time_ns;
	loss->bound_ns = loss->time_ns ? pj->bound_ns : 0;
	loss->rate = loss->time_ns ? (double)pj->time_ns / (double)loss->time_ns : 0;
	free(gaps);
}

void plan_assess(const struct plan_ctx *ctx, struct plan_job *pj)
{
	int m = topo_m(coll_physical(pj->sched));
	struct plan_job_loss *loss = x_new(1, sizeof(*loss));
	bool *dead = x_new((size_t)m + 1, sizeof(*dead));

	coll_report_init(&loss->report);
	loss->arcs = count_arcs(pj, dead);
	mark_dead(pj, dead, loss);
	if (loss->dead == 0) {
		plan_job_loss_free(loss);
		free(dead);
		return;
	}
	pj->loss = loss;
	if (pj->step) {
		reschedule_step(ctx->fabric->jobs[pj->job].workload, pj, dead, loss);
	} else if (ctx->fabric->jobs[pj->job].kind != MODEL_COLLECTIVE) {
		loss->rate = (double)(loss->arcs - loss->dead_arcs) / loss->arcs;
	} else {
		schedule_rest(ctx, pj, dead, loss);
	}
	free(dead);
}

/* The plan without what has failed, of a job that needs some of it. */
static void plan_again(const struct plan_ctx *ctx, const struct plan_job *pj,
		       const struct plan_light *seen, struct plan_job_loss *loss)
{
	struct plan_job again = { .job = pj->job, .is_ring = true,
				  .share = pj->share };
	int rc;

	coll_report_init(&again.report);
	rc = plan_ring_without(ctx, &again, seen->dead, seen->n_dead, &loss->why);
	if (rc == 0) {
		loss->sched = again.ring.sched;
		again.ring.sched = NULL;
		loss->time_ns = again.time_ns;
		loss->bound_ns = again.bound_ns;
		loss->rate = again.time_ns > pj->time_ns
				     ? (double)pj->time_ns /
					       (double)again.time_ns
				     : 1;
		rc = coll_verify(loss->sched, &loss->report, &loss->why);
	}
	if (rc == 0) {
		plan_place_job(ctx->fabric, pj, NULL, loss->sched, &loss->why);
	}
	optree_plan_fini(&again.ring);
	coll_report_fini(&again.report);
	free(again.without);
	free(again.topology);
}

/* Why the job's program does not play, though nothing that it needs has failed. */
static void silent_program(const struct plan_light *seen, const struct ring_program *p,
			   struct err *why)
{
	if (ring_program_plays(p, seen->programs, NULL, 0)) {
		err_set(why, WEFT_EUNAVAIL, "resonators of its program hold no wave");
	} else {
		err_set(why, WEFT_EUNAVAIL, "its program is not loaded");
		err_hint(why, "\"weft apply\" loads it");
	}
}

static void assess_ring_job(const struct plan_ctx *ctx, struct plan_job *pj)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	int device = job->device, which = 0, n;
	const struct model_device *ring = &ctx->fabric->devices[device];
	const struct plan_light *seen = plan_observed(ctx, device);
	const struct ring_programs *intent = plan_intent(ctx, device)->programs;
	const struct ring_program *p = intent ? ring_programs_find(intent, job->name) : NULL;
	struct plan_job_loss *loss;

	if (!seen->known || !p) {
		return;
	}
	n = seen->n_dead ? plan_ring_needs(ctx, pj, seen->dead, seen->n_dead, &which) : 0;
	if (n == 0 && ring_program_plays(p, seen->programs, seen->lost, seen->n_lost)) {
		return;
	}
	loss = x_new(1, sizeof(*loss));
	coll_report_init(&loss->report);
	pj->loss = loss;
	loss->dead = n;
	loss->device = device;
	if (n == 0) {
		silent_program(seen, p, &loss->why);
		return;
	}
	ring_fault_text(&seen->dead[which], ring->ring.n, ring->nodes, loss->part);
	plan_again(ctx, pj, seen, loss);
}

/* Backups over what does not work are none. */
static void count_backups(const struct plan_ctx *ctx, struct plan_job *pj)
{
	const struct plan_circuit *v = pj->backups;

	for (int i = 0, end; i < pj->n_backups; i = end) {
		bool works = true;

		for (end = i; end < pj->n_backups && v[end].arc == v[i].arc; end++) {
			const struct plan_circuit *c = &v[end];
			const struct plan_light *seen = plan_observed(ctx, c->device);

			works &= plan_works(seen, true, c->xc.in) &&
				 plan_works(seen, false, c->xc.out);
		}
		pj->n_protected -= !works;
		pj->n_unprotected += !works;
	}
}

int plan_degraded(const struct model_fabric *fabric, const struct plan_base *base,
		  struct plan **out, struct err *err)
{
	struct plan_base applied = *base;
	struct plan_admin_down marks;
	struct plan_ctx ctx = { .fabric = fabric, .base = &marks.base };
	int rc;

	plan_admin_down_init(&marks, fabric, base);
	/* As though every circuit were as it was made: each arc then has the
	 * circuits that it got when it was applied. */
	applied.observed = base->intent;
	applied.only = NULL;
	applied.aim = PLAN_REPAIR;
	applied.from_committed = true;
	rc = plan_make(fabric, &applied, out, err);
	for (int i = 0; rc == 0 && i < (*out)->n_jobs; i++) {
		struct plan_job *pj = &(*out)->jobs[i];

		if (pj->is_ring) {
			assess_ring_job(&ctx, pj);
		} else {
			for (int k = 0; k < pj->n_circuits; k++) {
				pj->circuits[k].dark = is_dead(&ctx, &pj->circuits[k]);
			}
			count_backups(&ctx, pj);
			plan_assess(&ctx, pj);
		}
	}
	plan_admin_down_fini(&marks);
	return rc;
}
