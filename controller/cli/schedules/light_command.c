/* SPDX-License-Identifier: Apache-2.0 */
/* weft schedule light: schedules whose light changes between their steps, for ranks between any two
 * of which there may be a circuit. */
#include <stdlib.h>

#include "collective/workload/call_lights.h"
#include "collective/workload/workload.h"
#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"

static int read_query(const struct cli *c, struct call_query *q, struct err *err)
{
	int64_t ranks = 0, ports = 1, seed = 0;
	int r;

	q->kind = COLL_ALLTOALL;
	(void)((r = cli_need(c, "ranks", err)) || (r = cli_need(c, "size", err)) ||
	       (r = cli_need(c, "alpha", err)) || (r = cli_need(c, "link-bandwidth", err)) ||
	       (r = cli_need(c, "retune", err)) || (r = cli_opt_kind(c, &q->kind, err)) ||
	       (r = cli_opt_int(c, "ranks", 2, CALL_MAX_RANKS, &ranks, err)) ||
	       (r = cli_opt_int(c, "ports", 1, CALL_MAX_PORTS, &ports, err)) ||
	       (r = cli_opt_int(c, "seed", 0, INT64_MAX, &seed, err)) ||
	       (r = cli_opt_unit(c, "size", UNIT_BYTES, &q->cost.size_bytes, err)) ||
	       (r = cli_opt_unit(c, "alpha", UNIT_NS, &q->cost.alpha_ns, err)) ||
	       (r = cli_opt_unit(c, "retune", UNIT_NS, &q->cost.retune_ns, err)) ||
	       (r = cli_opt_unit(c, "link-bandwidth", UNIT_BPS, &q->cost.link_bps, err)));
	q->ranks = (int)ranks;
	q->ports = (int)ports;
	q->seed = (uint64_t)seed;
	return r;
}

/* The best light that stays, as for a step of this collective alone: its time, its digraph, for
 * free(), and its schedule in place of the one that was made where it is the faster. */
static int find_still(const struct call_query *q, struct call_made *made, int64_t *ns,
		      char **topology, struct err *err)
{
	const struct workload_params p = { .ports = q->ports, .link_bps = q->cost.link_bps,
					   .alpha_ns = q->cost.alpha_ns, .change_ns = -1,
					   .max_changes = -1 };
	const struct workload_op op = { .name = "call", .kind = q->kind, .axes = 1,
					.bytes = q->cost.size_bytes };
	const struct workload_step step = { .ops = 1, .times = 1 };
	struct workload_plan *plan = NULL;
	struct workload *w;
	int r;

	workload_new(&w);
	(void)((r = workload_add_axis(w, "ranks", q->ranks, err)) ||
	       (r = workload_add_op(w, &op, err)) || (r = workload_count(w, &step, err)) ||
	       (r = workload_make_plan(w, &p, &plan, err)) ||
	       (r = workload_make_schedules(w, plan, err)));
	if (r == 0) {
		*ns = plan->time_ns;
		*topology = x_dup(plan->lights.v[0].shares.v[0].expr);
	}
	if (r == 0 && *ns < made->time_ns) {
		coll_free(made->sched);
		made->sched = plan->uses.v[0].sched;
		plan->uses.v[0].sched = NULL;
		made->time_ns = *ns;
		made->steps = coll_steps(made->sched);
		made->changes = 0;
	}
	workload_plan_free(plan);
	workload_free(w);
	return r;
}

/* {collective, ranks, ports, steps, light_changes, time, bound, gap,
 * still_light, still_topology}: the last two of light that stays; where it is the faster, so is the
 * schedule. */
int cmd_schedule_light(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct call_query q = { 0 };
	struct call_made made;
	char *topology = NULL;
	int64_t still_ns = 0;
	struct out *o;
	int r = read_query(c, &q, err);

	if (r || (r = call_lights_make(&q, &made, err))) {
		return r;
	}
	r = find_still(&q, &made, &still_ns, &topology, err);
	if (r) {
		coll_free(made.sched);
		return r;
	}
	if (path) {
		r = cli_write_schedule(made.sched, path, err);
	}
	o = out_new(c->format);
	out_str(o, "collective", coll_kind_name(q.kind));
	out_int(o, "ranks", q.ranks);
	out_int(o, "ports", q.ports);
	out_int(o, "steps", made.steps);
	out_int(o, "light_changes", made.changes);
	cli_out_ns(c, o, "time", made.time_ns);
	cli_out_ns(c, o, "bound", made.bound_ns);
	out_real(o, "gap", (double)made.time_ns / (double)(made.bound_ns ? made.bound_ns : 1) - 1);
	cli_out_ns(c, o, "still_light", still_ns);
	out_str(o, "still_topology", topology);
	if (made.changes == 0) {
		out_note(o, "light that stays is the fastest: %s", topology);
	}
	free(topology);
	coll_free(made.sched);
	return cli_print_unless(r, o, err);
}
