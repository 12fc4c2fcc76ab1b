/* SPDX-License-Identifier: Apache-2.0 */
/* weft schedule light: schedules whose light changes between their steps, for ranks between any two
 * of which there may be a circuit. */
#include "collective/workload/call_lights.h"
#include "controller/cli/core/private.h"

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

/* {collective, ranks, ports, steps, light_changes, time, bound, gap}. */
int cmd_schedule_light(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct call_query q = { 0 };
	struct call_made made;
	struct out *o;
	int r = read_query(c, &q, err);

	if (r || (r = call_lights_make(&q, &made, err))) {
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
	coll_free(made.sched);
	return cli_print_unless(r, o, err);
}
