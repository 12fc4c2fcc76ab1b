/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule simulate: how long a schedule takes when what travels at a time
 * shares links and limits, against what the cost model plans for it; and weft schedule draw,
 * the picture of it.
 */
#include <math.h>

#include "controller/cli/core/private.h"

#define BUSIEST 10		/* shown without --full */

/* Whole ns, rounded up but for what adding up doubles leaves. */
static int64_t whole_ns(double ns)
{
	return (int64_t)ceil(ns - 1e-12 * fabs(ns) - 1e-9);
}

/* "step_times": a row a step. */
static void out_step_times(const struct cli *c, struct out *o, const struct coll_sim *sim)
{
	out_array(o, "step_times");
	for (int i = 0; i < sim->n_steps; i++) {
		const struct coll_sim_step *step = &sim->steps[i];

		out_object(o, NULL);
		out_int(o, "step", i + 1);
		cli_out_ns(c, o, "begin", whole_ns(step->begin_ns));
		cli_out_ns(c, o, "end", whole_ns(step->end_ns));
		cli_out_ns(c, o, "time", whole_ns(step->end_ns - step->begin_ns));
		out_int(o, "messages", step->messages);
		out_end(o);
	}
	out_end(o);
}

/* "busiest": arcs and shared limits by the share of their capacity that was used. */
static void out_busiest(const struct cli *c, struct out *o, const struct coll_sched *s,
			const struct coll_sim *sim)
{
	int n = cli_has(c, "full") || sim->n_loads < BUSIEST ? sim->n_loads : BUSIEST;

	out_array(o, "busiest");
	for (int i = 0; i < n; i++) {
		const struct coll_sim_load *l = &sim->loads[i];

		out_object(o, NULL);
		if (l->is_limit) {
			out_int(o, "limit", l->number);
		} else {
			out_int(o, "arc", l->number);
			out_int(o, "from", topo_arc(coll_physical(s), l->number)->src);
			out_int(o, "to", topo_arc(coll_physical(s), l->number)->dst);
		}
		out_int(o, "images", l->images);
		cli_out_gap(c, o, "utilisation", l->share);
		out_end(o);
	}
	out_end(o);
}

static void out_simulation(const struct cli *c, struct out *o, const struct coll_sched *s,
			   const struct coll_sim_options *opt, const struct coll_sim *sim,
			   int64_t planned_ns, int64_t bound_ns)
{
	cli_out_schedule(o, s);
	cli_out_ns(c, o, "alpha", opt->cost.alpha_ns);
	cli_out_ns(c, o, "hop", opt->cost.hop_ns);
	out_bool(o, "forward", opt->cost.forwards || coll_through_ranks(s));
	cli_out_ns(c, o, "message", opt->cost.message_ns);
	if (opt->cost.retune_ns) {
		cli_out_ns(c, o, "retune", opt->cost.retune_ns);
	}
	out_int(o, "link_bps", opt->cost.link_bps);
	out_int(o, "size_bytes", opt->cost.size_bytes);
	out_str(o, "mode", opt->asynchronous ? "asynchronous" : "lockstep");
	cli_out_ns(c, o, "time", whole_ns(sim->time_ns));
	cli_out_ns(c, o, "planned", planned_ns);
	cli_out_ns(c, o, "bound", bound_ns);
	cli_out_gap(c, o, "utilisation", sim->utilisation);
	out_busiest(c, o, s, sim);
	out_step_times(c, o, sim);
}

static int read_options(const struct cli *c, const struct coll_sched *s,
			struct coll_sim_options *opt, struct err *err)
{
	int r = cli_read_cost(c, s, 0, &opt->cost, err);

	opt->asynchronous = opt->cost.steps_overlap = cli_has(c, "asynchronous");
	return r ? r : cli_opt_unit(c, "retune", UNIT_NS, &opt->cost.retune_ns, err);
}

/* The simulation, and its picture where that is asked for. */
static int run(const struct cli *c, const struct coll_sched *s,
	       const struct coll_sim_options *opt, struct coll_sim *sim, struct err *err)
{
	const char *path = cli_opt(c, "svg");
	struct buf svg = { 0 };
	int r = coll_simulate(s, opt, sim, path ? &svg : NULL, err);

	if (r == 0 && path) {
		r = cli_write_svg(path, &svg, err);
	}
	buf_fini(&svg);
	return r;
}

/* The schedule is replayed first: what is wrong is not simulated. */
int cmd_schedule_simulate(struct cli *c, struct err *err)
{
	struct coll_sched *s = NULL;
	struct coll_sim_options opt = { 0 };
	struct coll_sim sim = { 0 };
	struct coll_report rep;
	struct out *o = NULL;
	int64_t planned_ns, bound_ns;
	int r = cli_check_svg(cli_opt(c, "svg"), err);

	coll_report_init(&rep);
	if (r || (r = cli_load_schedule(c, &s, err)) || (r = read_options(c, s, &opt, err)) ||
	    (r = cli_replay(s, &rep, err)) ||
	    (r = coll_time(s, &rep, &opt.cost, &planned_ns, &bound_ns, err)) ||
	    (r = run(c, s, &opt, &sim, err))) {
		goto out;
	}
	o = out_new(c->format);
	out_simulation(c, o, s, &opt, &sim, planned_ns, bound_ns);
	r = cli_print(o, err);
out:
	coll_sim_fini(&sim);
	coll_report_fini(&rep);
	coll_free(s);
	return r;
}

/* Without a cost model steps are as wide as their data takes: a byte takes a nanosecond on every
 * link, and nothing else takes any time. */
#define UNTIMED_BPS INT64_C(8000000000)
#define UNTIMED_BYTES INT64_C(1000000000)

static int read_draw(const struct cli *c, const struct coll_sched *s, struct coll_sim_options *opt,
		     struct err *err)
{
	static const char *const of_cost[] = { "alpha", "bandwidth", "link-bandwidth", "size",
					      "hop",
					       "forward", "message", "retune" };
	bool timed = cli_has(c, "asynchronous");

	for (size_t i = 0; i < sizeof(of_cost) / sizeof(of_cost[0]); i++) {
		timed |= cli_has(c, of_cost[i]);
	}
	if (timed) {
		return read_options(c, s, opt, err);
	}
	opt->cost.link_bps = UNTIMED_BPS;
	opt->cost.size_bytes = UNTIMED_BYTES;
	opt->untimed = true;
	return 0;
}

/* The picture that schedule simulate --svg draws, and nothing else. */
int cmd_schedule_draw(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output");
	struct coll_sched *s = NULL;
	struct coll_sim_options opt = { 0 };
	struct coll_sim sim = { 0 };
	struct coll_report rep;
	struct buf svg = { 0 };
	int r = cli_check_svg(path, err);

	coll_report_init(&rep);
	if (r || (r = cli_load_schedule(c, &s, err)) || (r = read_draw(c, s, &opt, err)) ||
	    (r = coll_verify(s, &rep, err)) || (r = coll_simulate(s, &opt, &sim, &svg, err))) {
		goto out;
	}
	r = cli_write_svg(path, &svg, err);
out:
	buf_fini(&svg);
	coll_sim_fini(&sim);
	coll_report_fini(&rep);
	coll_free(s);
	return r;
}
