/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step on optical switches: how the ports of its hosts are split, and circuits for the
 * light that comes first.
 *
 * The split is of all ports that have fibres, whatever works now, so that a port that fails leaves
 * a circuit dark and not another split.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

/* Ports of a rank with fibres both ways, and whether any circuit is duplex. WEFT_EUNSUPPORTED where
 * ranks have unlike ports or rates. */
static int count_ports(const struct model_fabric *f, const struct model_job *job,
		       struct workload_params *p, struct err *err)
{
	const int each = plan_ranks_each(job);
	int *n = x_new((size_t)each, sizeof(*n)), rc = 0;

	for (int h = 0; h < job->n_hosts && !rc; h++) {
		const struct model_host *host = &f->hosts[job->hosts[h]];

		memset(n, 0, (size_t)each * sizeof(*n));
		for (int i = host->first_port; i < host->first_port + host->n_ports && !rc; i++) {
			const struct model_port *port = &f->ports[i];

			if (!plan_has_port(f, job, i) || port->tx_device < 0 ||
			    port->rx_device < 0) {
				continue;
			}
			n[plan_port_rank(f, job, i)]++;
			p->both |= f->devices[port->tx_device].any_to_any;
			p->link_bps = p->link_bps ? p->link_bps : port->rate_bps;
			if (port->rate_bps != p->link_bps) {
				rc = err_set(err, WEFT_EUNSUPPORTED, "a step, where port %s has "
					     "another rate than others", port->name);
			}
		}
		p->ports = h > 0 ? p->ports : n[0];
		for (int r = 0; r < each && !rc; r++) {
			if (n[r] != p->ports) {
				rc = err_set(err, WEFT_EUNSUPPORTED, "a step, where %s has %d "
					     "ports%s and %s %d", host->name, n[r],
					     each > 1 ? " at a rank" : "",
					     f->hosts[job->hosts[0]].name, p->ports);
			}
		}
	}
	free(n);
	return rc;
}

/* "tp: C(8,{1,2}), pp+1: 1 port", as people read the light. */
static char *light_text(const struct workload *w, const struct workload_light *l)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < l->shares.n; i++) {
		const struct workload_share *s = &l->shares.v[i];

		buf_str(&b, i ? ", " : "");
		workload_share_name(w, s, &b);
		if (s->expr) {
			buf_printf(&b, ": %s", s->expr);
		} else {
			buf_printf(&b, ": %d port%s", s->ports, s->ports == 1 ? "" : "s");
		}
	}
	return buf_steal(&b);
}

/* Light changes as often as the job asks, and is each time one of those that were foreseen: they
 * stay those of the time that a change took when it was applied first. The collective whose light
 * the job has is the caller's; NULL: none was recorded. */
static char *recorded_light(const struct plan_ctx *ctx, const struct plan_job *pj,
			    struct workload_params *p)
{
	int n;
	char *op = plan_kept_topology(ctx, pj->job, &n), *time = op ? strchr(op, ' ') : NULL;

	if (time) {
		*time++ = '\0';
		p->change_ns = ctx->base->aim == PLAN_OPTIMISE ? p->change_ns
							       : strtoll(time, NULL, 10);
	}
	return op;
}

/* The light that serves a collective; 0 for none such. */
static int light_of(const struct workload *w, const struct workload_plan *plan, const char *name)
{
	int op = name ? workload_find_op(w, name) : -1;

	for (size_t i = 0; i < plan->uses.n; i++) {
		if (plan->uses.v[i].op == op) {
			return plan->uses.v[i].light;
		}
	}
	return 0;
}

/* What was said of the step when it was planned before, if it is the same and rests on the same:
 * without schedules, but with their times. NULL: it is another, or nothing is known. */
static struct workload_plan *known_plan(const struct plan_ctx *ctx, const struct model_job *job,
					const struct workload_params *p)
{
	const char *const *only = ctx->base->only, *text = ctx->base->step;
	struct err_list errs = { .max = 1 };
	struct workload_plan *plan = NULL;
	struct workload *w = NULL;
	struct buf again = { 0 };

	if (!text || !only || !*only || strcmp(*only, job->name) != 0 ||
	    workload_from_json("step", text, strlen(text), &w, &plan, &errs)) {
		err_list_fini(&errs);
		return NULL;
	}
	workload_to_json(job->workload, plan, &again);
	plan->params.max_changes = p->max_changes;
	if (strcmp(buf_cstr(&again), text) != 0 || plan->params.ports != p->ports ||
	    plan->params.link_bps != p->link_bps || plan->params.alpha_ns != p->alpha_ns ||
	    plan->params.change_ns != p->change_ns || plan->params.both != p->both) {
		workload_plan_free(plan);
		plan = NULL;
	}
	workload_free(w);
	buf_fini(&again);
	err_list_fini(&errs);
	return plan;
}

/* The plan of the step, with the times of its schedules. */
static int plan_step(const struct plan_ctx *ctx, const struct model_job *job,
		     const struct workload_params *p, struct workload_plan **out, struct err *err)
{
	int rc;

	*out = known_plan(ctx, job, p);
	if (*out || (rc = workload_make_plan(job->workload, p, out, err))) {
		return *out ? 0 : rc;
	}
	return workload_make_schedules(job->workload, *out, err);
}

int plan_step_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_job *job = &f->jobs[pj->job];
	struct workload_params p = { .alpha_ns = job->alpha_ns, .change_ns = -1,
				     .max_changes = job->max_changes };
	const struct workload_bound *bound;
	struct workload_light *lit;
	struct topo *light;
	char *recorded = NULL;
	int rc;

	if (job->light == MODEL_LIGHT_BY_COLLECTIVE) {
		p.change_ns = plan_light_change_ns(ctx, job);
		recorded = recorded_light(ctx, pj, &p);
	}
	rc = count_ports(f, job, &p, err);
	if (rc == 0 && (rc = plan_step(ctx, job, &p, &pj->step, err)) == 0) {
		pj->light = light_of(job->workload, pj->step, recorded);
	}
	free(recorded);
	if (rc) {
		return rc;
	}
	lit = &pj->step->lights.v[pj->light];
	if ((rc = workload_light_topo(job->workload, lit, &light, err)) ||
	    (rc = coll_new(COLL_ALLGATHER, light, 1, 0, 0, &pj->sched, err)) ||
	    (rc = coll_finish(pj->sched, err))) {
		return rc;
	}
	bound = &pj->step->bound;
	pj->algorithm = "";
	pj->topology = light_text(job->workload, lit);
	pj->time_ns = pj->step->time_ns;
	pj->bound_ns = p.change_ns < 0 ? bound->still_ns : bound->classes_ns;
	pj->bound_ns = pj->bound_ns > bound->any_ns ? pj->bound_ns : bound->any_ns;
	pj->gap = (double)pj->time_ns / (double)pj->bound_ns - 1;
	return plan_find_circuits(ctx, pj, err);
}
