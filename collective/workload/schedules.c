/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules of a plan's collectives, each on the digraph of one group: what was foreseen becomes
 * what is made, replayed and timed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/make/make.h"
#include "collective/workload/private.h"
#include "lib/base/alloc.h"

/* Of its rate that an all-to-all may lose by whole chunks, and again by whole steps: groups are
 * small. */
#define LOSS 0.0005

int workload_group_topo(const struct workload *w, const struct workload_light *l, int op,
			struct topo **out, struct err *err)
{
	const struct workload_op *o = &w->ops.v[op];
	struct workload_axis axes[WORKLOAD_MAX_AXES];
	struct workload group = { .axes = { axes, w->axes.n, w->axes.n } };
	struct workload_light own = { 0 };
	int rc;

	/* The mesh of one rail: the same axes, those of others with one rank. */
	for (size_t i = 0; i < w->axes.n; i++) {
		int n = w->axes.v[i].size / w->axes.v[i].inside;

		axes[i] = (struct workload_axis){ NULL, o->axes >> i & 1 ? n : 1, 1 };
	}
	for (size_t i = 0; i < l->shares.n; i++) {
		if (share_serves(&l->shares.v[i], o)) {
			vec_push(&own.shares, l->shares.v[i]);
		}
	}
	group_gaps(w, l, o->axes, &own);
	rc = workload_light_topo(&group, &own, out, err);
	vec_fini(&own.shares);
	vec_fini(&own.gaps);
	return rc;
}

/* That of a single share that is whole, by which constructions of expansions are found. */
static const char *expression(const struct workload_light *l, const struct workload_op *op)
{
	const char *expr = NULL;
	int n = 0;

	for (size_t i = 0; i < l->shares.n; i++) {
		if (share_serves(&l->shares.v[i], op)) {
			expr = l->shares.v[i].expr;
			n++;
		}
	}
	return n == 1 && l->gaps.n == 0 ? expr : NULL;
}

/* Without the rounding to whole ns, which a step adds up over all calls. */
static double exact_ns(const struct coll_made *m, const struct coll_cost *cost)
{
	double ns = (double)cost->alpha_ns * m->report.steps +
		    mpq_get_d(m->report.bandwidth_factor) * (double)cost->size_bytes * 8e9 /
		    ((double)cost->link_bps * coll_ports(m->sched));

	return fabs(ns - (double)m->time_ns) <= 1 ? ns : (double)m->time_ns;
}

int use_schedule(const struct workload *w, const struct workload_params *p,
		 const struct workload_light *l, struct workload_use *use, struct coll_cost *cost,
		 struct err *err)
{
	const struct workload_op *op = &w->ops.v[use->op];
	struct server_digraph d = { 0 };
	struct coll_fabric fabric = { .name = op->name, .routing = COLL_ROUTING_MINIMAL_SPLIT };
	struct coll_make_query q;
	struct coll_made m = { 0 };
	bool inside = ranks_inside(w, op->axes) > 1;
	int rc = inside ? server_group(w, p, l, use->op, &d, err)
			: workload_group_topo(w, l, use->op, &d.seen, err);

	if (rc) {
		goto out;
	}
	*cost = (struct coll_cost){ .alpha_ns = p->alpha_ns,
				    .link_bps = inside ? d.unit_bps : p->link_bps,
				    .size_bytes = use->max_bytes };
	q = coll_make_job(op->kind, NULL, d.seen, cost);
	q.expr = inside ? NULL : expression(l, op);
	q.links_only = true;
	q.pairs.loss = LOSS;
	if (inside) {
		fabric.topo = d.physical;
		q.fabric = &fabric;
		q.physical = d.physical;
		q.groups = d.groups;
	}
	rc = coll_make(&q, &m, err);
	if (rc) {
		err_wrap(err, "%s", op->name);
	} else {
		use->time_ns = inside ? (double)m.time_ns : exact_ns(&m, cost);
		use->sched = m.sched;
		m.sched = NULL;
	}
out:
	coll_made_fini(&m);
	server_digraph_fini(&d);
	return rc;
}

int make_use(const struct workload *w, struct workload_plan *plan, size_t *at, struct err *err)
{
	struct workload_use *use = &plan->uses.v[*at];
	const struct workload_op *op = &w->ops.v[use->op];
	struct coll_cost cost;

	if (op->shift) {
		return send_ns(w, &plan->params, &plan->lights.v[use->light], use, err);
	}
	if (workload_ranks(w, op->axes) < 2) {
		return 0;
	}
	return op->min_bytes < op->bytes
		       ? make_ranges(w, plan, at, err)
		       : use_schedule(w, &plan->params, &plan->lights.v[use->light], use, &cost,
				      err);
}

int64_t step_ns(const struct workload *w, const struct workload_plan *plan)
{
	double sum = (double)plan->changes * (double)plan->change_ns;

	for (size_t u = 0; u < w->units.n; u++) {
		double longest = 0;

		for (size_t i = 0; i < plan->uses.n; i++) {
			const struct workload_use *use = &plan->uses.v[i];

			if ((w->units.v[u].ops >> use->op & 1) &&
			    (plan->lights.v[use->light].units >> u & 1)) {
				longest = fmax(longest, use->time_ns);
			}
		}
		sum += longest * (double)w->units.v[u].calls;
	}
	return (int64_t)ceil(sum - 1e-6);
}

int workload_make_schedules(const struct workload *w, struct workload_plan *plan, struct err *err)
{
	for (size_t i = 0; i < plan->uses.n; i++) {
		int rc = make_use(w, plan, &i, err);

		if (rc) {
			return rc;
		}
	}
	plan->time_ns = step_ns(w, plan);
	plan->still_ns = plan->lights.n == 1 ? plan->time_ns : plan->still_ns;
	return 0;
}
