/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan held against what it says of itself: nothing here is made as plans are, but for the links
 * that a group has within servers (server_group), which are built again. What is not proven again
 * is the bound of light that changes, which is the least of many: it is only compared with the
 * time of the plan.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"

/* Of a time, for rounding of sums. */
#define SLACK 1e-9

static int check_ports(const struct topo *t, int light, int ports, struct err *err)
{
	for (int r = 0; r < topo_n(t); r++) {
		int64_t out = 0, in = 0;
		int first, n = topo_out(t, r, &first);
		const int32_t *arcs;

		for (int a = first; a < first + n; a++) {
			out += topo_arc(t, a)->cap;
		}
		n = topo_in(t, r, &arcs);
		for (int i = 0; i < n; i++) {
			in += topo_arc(t, arcs[i])->cap;
		}
		if (out > ports || in > ports) {
			return err_set(err, WEFT_EVERIFY, "light %d: rank %d has %lld circuits out "
				       "and %lld in, and %d ports", light, r, (long long)out,
				       (long long)in, ports);
		}
	}
	return 0;
}

/* Whether the group has as many circuits from each to each as the schedule counts on. */
static int check_group(const struct workload_op *op, const struct topo *group, const int *ranks,
		       const struct topo *light, struct err *err)
{
	for (int a = 0; a < topo_m(group); a++) {
		const struct topo_arc *arc = topo_arc(group, a);
		int64_t want = circuits_between(group, arc->src, arc->dst);
		int from = ranks[arc->src], to = ranks[arc->dst];

		if (circuits_between(light, from, to) < want) {
			return err_set(err, WEFT_EVERIFY, "%s: its schedule has %lld circuits from "
				       "rank %d to %d, its light fewer", op->name,
				       (long long)want, from, to);
		}
	}
	return 0;
}

/* All rails of all groups. */
static int check_groups(const struct workload *w, const struct workload_use *use,
			const struct topo *rail, const struct topo *light, struct err *err)
{
	const struct workload_op *op = &w->ops.v[use->op];
	int *ranks = x_new((size_t)workload_servers(w, op->axes), sizeof(*ranks)), rc = 0;

	for (int r = 0; r < workload_ranks(w, WORKLOAD_ALL_AXES) && !rc; r++) {
		if (workload_rail(w, op->axes, r, ranks) == 0) {
			rc = check_group(op, rail, ranks, light, err);
		}
	}
	free(ranks);
	return rc;
}

/* A schedule of ranks in servers is on links of its own part of them and on circuits of its rails,
 * which are the light's. */
static int check_servers(const struct workload *w, const struct workload_plan *plan,
			 const struct workload_use *use, const struct topo *light,
			 int64_t *unit_bps, struct err *err)
{
	const struct workload_light *l = &plan->lights.v[use->light];
	const struct topo *t = coll_physical(use->sched);
	struct server_digraph d;
	struct topo *rail = NULL;
	int rc = server_group(w, &plan->params, l, use->op, &d, err);

	if (!rc && (rc = workload_group_topo(w, l, use->op, &rail, err)) == 0) {
		rc = check_groups(w, use, rail, light, err);
	}
	for (int a = 0; !rc && a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (topo_n(t) != topo_n(d.physical) ||
		    circuits_between(d.physical, arc->src, arc->dst) !=
		    circuits_between(t, arc->src, arc->dst)) {
			rc = err_set(err, WEFT_EVERIFY, "%s: its schedule has other links than its "
				     "group", w->ops.v[use->op].name);
		}
	}
	*unit_bps = d.unit_bps;
	topo_free(rail);
	server_digraph_fini(&d);
	return rc;
}

/* ns of a call: by the replay of its schedule, or of one message over the circuits to its rank. */
static int time_of(const struct workload *w, const struct workload_plan *plan,
		   const struct workload_use *use, const struct topo *light, int64_t unit_bps,
		   double *ns, struct err *err)
{
	const struct workload_params *p = &plan->params;
	const struct workload_op *op = &w->ops.v[use->op];
	struct coll_cost cost = { .alpha_ns = p->alpha_ns, .link_bps = unit_bps,
				  .size_bytes = use->max_bytes };
	struct coll_report report;
	int64_t whole, bound, circuits;
	int rc;

	if (op->shift) {
		rc = fewest_circuits(w, use->op, light, &circuits, err);
		*ns = rc ? 0 : (double)p->alpha_ns + (double)use->max_bytes * byte_ns(p) /
					     (double)circuits;
		return rc;
	}
	coll_report_init(&report);
	rc = coll_verify(use->sched, &report, err);
	if (rc == 0) {
		rc = coll_time(use->sched, &report, &cost, &whole, &bound, err);
	}
	*ns = rc ? 0 : (double)whole;
	coll_report_fini(&report);
	return rc;
}

static int check_use(const struct workload *w, const struct workload_plan *plan,
		     const struct workload_use *use, const struct topo *light, struct err *err)
{
	const struct workload_op *op = &w->ops.v[use->op];
	int64_t unit_bps = plan->params.link_bps;
	int n = workload_ranks(w, op->axes), rc;
	double ns;

	if (n == 1) {
		return 0;
	}
	if (!op->shift && (!use->sched || coll_kind_of(use->sched) != op->kind ||
			   coll_ranks(use->sched) != n)) {
		return err_set(err, WEFT_EVERIFY, "%s: it has no schedule of %s for %d ranks",
			       op->name, coll_kind_name(op->kind), n);
	}
	rc = op->shift ? 0 : ranks_inside(w, op->axes) > 1
		     ? check_servers(w, plan, use, light, &unit_bps, err)
		     : check_groups(w, use, coll_topo(use->sched), light, err);
	if (rc || (rc = time_of(w, plan, use, light, unit_bps, &ns, err))) {
		return rc;
	}
	if (fabs(ns - use->time_ns) > 1 + SLACK * ns) {
		return err_set(err, WEFT_EVERIFY, "%s: a call takes %.0f ns, not %.0f", op->name,
			       ns, use->time_ns);
	}
	if (use->bound_ns > use->time_ns + 1) {
		return err_set(err, WEFT_EVERIFY, "%s: it is faster than its bound", op->name);
	}
	return 0;
}

/* The ranges of a collective under its light are all of its sizes, one behind the other. */
static int check_ranges(const struct workload *w, const struct workload_plan *plan, struct err *err)
{
	for (size_t i = 0; i < plan->uses.n; i++) {
		const struct workload_use *use = &plan->uses.v[i];
		const struct workload_use *next = i + 1 < plan->uses.n ? use + 1 : NULL;
		const struct workload_use *before = i > 0 ? use - 1 : NULL;
		const struct workload_op *op = &w->ops.v[use->op];
		bool first = !before || before->op != use->op || before->light != use->light;
		bool last = !next || next->op != use->op || next->light != use->light;

		if (use->max_bytes < use->min_bytes || (last && use->max_bytes != op->bytes) ||
		    use->min_bytes != (first ? op->min_bytes : before->max_bytes + 1)) {
			return err_set(err, WEFT_EVERIFY, "%s: its ranges of sizes are not those "
				       "from %lld to %lld bytes", op->name,
				       (long long)op->min_bytes, (long long)op->bytes);
		}
	}
	return 0;
}

/* Of the unit, from 0. */
static int light_of_unit(const struct workload_plan *plan, size_t unit)
{
	int l = 0;

	while (!(plan->lights.v[l].units >> unit & 1)) {
		l++;
	}
	return l;
}

/* The step's time and changes from those of its calls. */
static int check_sums(const struct workload *w, const struct workload_plan *plan, struct err *err)
{
	int64_t changes = 0;
	double sum = 0;

	for (size_t u = 0; u < w->units.n; u++) {
		int light = light_of_unit(plan, u);
		uint32_t missing = w->units.v[u].ops;
		double longest = 0;

		for (size_t i = 0; i < plan->uses.n; i++) {
			const struct workload_use *use = &plan->uses.v[i];

			if (use->light == light && (w->units.v[u].ops >> use->op & 1)) {
				longest = fmax(longest, use->time_ns);
				missing &= ~(UINT32_C(1) << use->op);
			}
		}
		if (missing) {
			return err_set(err, WEFT_EVERIFY, "unit %zu: not all of it has a time",
				       u + 1);
		}
		sum += longest * (double)w->units.v[u].calls;
		for (size_t k = 0; k < w->units.n; k++) {
			changes += light_of_unit(plan, k) == light ? 0
								   : w->next[u * w->units.n + k];
		}
	}
	if (changes != plan->changes) {
		return err_set(err, WEFT_EVERIFY, "light changes %lld times in a step, not %lld",
			       (long long)changes, (long long)plan->changes);
	}
	sum += (double)changes * (double)plan->change_ns;
	if (fabs(sum - (double)plan->time_ns) > 2 + SLACK * sum) {
		return err_set(err, WEFT_EVERIFY, "a step takes %.0f ns, not %lld", sum,
			       (long long)plan->time_ns);
	}
	return 0;
}

static int check_bounds(const struct workload *w, const struct workload_plan *plan,
			struct err *err)
{
	const struct workload_planner pl = { .w = w, .p = &plan->params };
	const struct workload_bound *b = &plan->bound;
	double y[WORKLOAD_MAX_OPS], still;

	for (size_t i = 0; i < w->ops.n; i++) {
		y[i] = b->weights.v[i].y;
	}
	still = certified_bound(&pl, y);
	if (still < 0) {
		return err_set(err, WEFT_EVERIFY, "the certificate is above 1 on circuits of one "
			       "kind");
	}
	if ((double)b->still_ns > still + 1 || (double)b->any_ns > any_bound(&pl) + 1) {
		return err_set(err, WEFT_EVERIFY, "a bound is above what is proven: still light "
			       "takes at least %.0f ns, any light %.0f", still, any_bound(&pl));
	}
	if (b->classes_ns > plan->time_ns || b->any_ns > plan->time_ns ||
	    (plan->lights.n == 1 && b->still_ns > plan->time_ns)) {
		return err_set(err, WEFT_EVERIFY, "a bound is above the time of the plan");
	}
	return 0;
}

int workload_check(const struct workload *w, const struct workload_plan *plan,
		   struct topo *const *lights, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < plan->lights.n && !rc; i++) {
		rc = topo_n(lights[i]) == workload_ranks(w, WORKLOAD_ALL_AXES)
			     ? check_ports(lights[i], (int)i + 1, plan->params.ports, err)
			     : err_set(err, WEFT_EVERIFY, "light %zu: %d ranks", i + 1,
				       topo_n(lights[i]));
	}
	for (size_t i = 0; i < plan->uses.n && !rc; i++) {
		rc = check_use(w, plan, &plan->uses.v[i], lights[plan->uses.v[i].light], err);
	}
	if (rc || (rc = check_ranges(w, plan, err)) || (rc = check_sums(w, plan, err))) {
		return rc;
	}
	return check_bounds(w, plan, err);
}
