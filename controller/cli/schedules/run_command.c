/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule run: a schedule run by MPI on processes of this machine, or of others.
 *
 * weft replays the schedule and hands it to mpirun, which starts weft-mpi-run on every
 * rank; those compare the result with MPI's own collective and measure. What is planned comes
 * from the cost model, where its parameters are given.
 */
#include <stdlib.h>
#include <unistd.h>

#include "controller/cli/schedules/run.h"
#include "lib/base/alloc.h"
#include "runtime/launch/launch.h"

struct cli_run {
	const struct coll_sched *s;
	struct launch_options options;
	/* By the cost model, where its parameters are given. */
	bool planned;
	int64_t planned_ns;
	double *step_ns;
	json_t *result;		/* of the ranks */
	int64_t wrong;		/* elements */
	int64_t bytes, should_bytes;	/* sent; by the schedule, or -1 */
};

/* ---- what is asked for ---- */

static int read_options(const struct cli *c, struct cli_run *r, struct err *err)
{
	struct launch_options *o = &r->options;
	int64_t most = INT32_MAX;
	int rc;

	*o = (struct launch_options){ .ranks = coll_ranks(r->s),
				      .steps = coll_steps(r->s), .repeat = CLI_RUN_REPEATS,
				      .hosts = cli_opt(c, "hosts"),
				      .barriers = cli_has(c, "barriers"), .own = true,
				      .limit_ns = CLI_RUN_LIMIT_NS, .stop = &cli_interrupted };
	o->share_cores = !o->hosts && o->ranks > sysconf(_SC_NPROCESSORS_ONLN);
	if ((rc = cli_need(c, "size", err)) ||
	    (rc = cli_opt_unit(c, "size", UNIT_BYTES, &o->size_bytes, err)) ||
	    (rc = cli_opt_int(c, "ranks", 1, INT32_MAX, &most, err)) ||
	    (rc = cli_opt_int(c, "repeat", 1, CLI_RUN_MAX_REPEATS, &o->repeat, err)) ||
	    (rc = cli_opt_int(c, "seed", 0, INT64_MAX, &o->seed, err)) ||
	    (rc = cli_opt_unit(c, "time-limit", UNIT_NS, &o->limit_ns, err))) {
		return rc;
	}
	if (o->ranks > most) {
		return err_set(err, WEFT_EINVAL, "the schedule has %d ranks, and --ranks allows "
			       "%d", o->ranks, (int)most);
	}
	if (o->hosts && access(o->hosts, R_OK) != 0) {
		return err_set(err, WEFT_ENOTFOUND, "--hosts: %s cannot be read", o->hosts);
	}
	return 0;
}

/* The time by the cost model, if any of its parameters is given. */
static int plan(const struct cli *c, struct cli_run *r, const struct coll_report *rep,
		struct err *err)
{
	static const char *const names[] = { "alpha", "bandwidth", "link-bandwidth", "hop",
					     "forward", "message" };
	struct coll_cost cost;
	int rc;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		r->planned = r->planned || cli_has(c, names[i]);
	}
	if (!r->planned) {
		return 0;
	}
	r->step_ns = x_new((size_t)coll_steps(r->s) + 1, sizeof(double));
	if ((rc = cli_read_cost(c, r->s, 0, &cost, err)) ||
	    (rc = coll_time(r->s, rep, &cost, &r->planned_ns, NULL, err))) {
		return rc;
	}
	return coll_step_times(r->s, &cost, r->step_ns, err);
}

/* ---- the run ---- */

int64_t cli_run_number(const json_t *object, const char *key, int64_t missing)
{
	const json_t *v = json_object_get(object, key);

	return json_is_integer(v) ? json_integer_value(v) : missing;
}

static int launch(struct cli_run *r, struct err *err)
{
	struct buf bytes = { 0 };
	int rc;

	coll_to_proto(r->s, &bytes);
	r->options.schedule = bytes.data;
	r->options.schedule_len = bytes.len;
	progress_clock_stop();
	rc = launch_run(&r->options, &r->result, err);
	buf_fini(&bytes);
	if (rc) {
		return rc;
	}
	r->wrong = cli_run_number(r->result, "wrong_elements", -1);
	r->bytes = cli_run_number(r->result, "bytes", -1);
	r->should_bytes = cli_run_number(r->result, "planned_bytes", -1);
	return 0;
}

/* What is wrong with the result, as an error. */
static int judge(const struct cli_run *r, struct err *err)
{
	if (r->wrong > 0) {
		return err_set(err, WEFT_EVERIFY, "%ld elements differ from what MPI's own "
			       "collective makes", (long)r->wrong);
	}
	if (r->should_bytes >= 0 && r->should_bytes != r->bytes) {
		return err_set(err, WEFT_EVERIFY, "the ranks sent %ld bytes, and the schedule has "
			       "%ld", (long)r->bytes, (long)r->should_bytes);
	}
	return 0;
}

/* ---- what is told ---- */

void cli_out_run_steps(const struct cli *c, struct out *o, const json_t *result, int n,
		       const double *step_ns, char *const *hosts)
{
	const json_t *steps = json_object_get(result, "steps");

	out_array(o, "steps");
	for (int i = 0; i < n; i++) {
		const json_t *step = json_array_get(steps, (size_t)i);
		int64_t last = cli_run_number(step, "worst_rank", 0);

		out_object(o, NULL);
		out_int(o, "step", i + 1);
		if (step_ns) {
			cli_out_ns(c, o, "planned", (int64_t)(step_ns[i] + 0.5));
		}
		cli_out_ns(c, o, "median", cli_run_number(step, "median_ns", 0));
		cli_out_ns(c, o, "worst", cli_run_number(step, "worst_ns", 0));
		if (hosts) {
			out_str(o, "worst_host", hosts[last]);
		} else {
			out_int(o, "worst_rank", last);
		}
		out_end(o);
	}
	out_end(o);
}

/* One line for people. */
static void out_verdict(struct out *o, const struct cli_run *r, bool correct)
{
	char time[64], planned[64];

	unit_human(UNIT_NS, (double)cli_run_number(r->result, "time_ns", 0), time, sizeof(time));
	if (r->planned) {
		unit_human(UNIT_NS, (double)r->planned_ns, planned, sizeof(planned));
	}
	out_note(o, "%s: %d ranks, %ld wrong elements; %s%s%s%s", correct ? "correct" : "WRONG",
		 coll_ranks(r->s), (long)r->wrong, time, r->planned ? ", planned " : "",
		 r->planned ? planned : "", r->options.share_cores
		 ? "; ranks share cores, so the time is that of the machine" : "");
}

static void out_run(const struct cli *c, struct out *o, const struct cli_run *r, bool correct)
{
	const struct coll_sched *s = r->s;

	out_bool(o, "correct", correct);
	out_int(o, "wrong_elements", r->wrong);
	out_str(o, "collective", coll_kind_name(coll_kind_of(s)));
	out_str(o, "topology", coll_topo_name(s));
	out_int(o, "ranks", coll_ranks(s));
	out_int(o, "size_bytes", cli_run_number(r->result, "size_bytes", 0));
	out_int(o, "repeats", cli_run_number(r->result, "repeats", 0));
	out_bool(o, "barriers", r->options.barriers);
	cli_out_ns(c, o, "time", cli_run_number(r->result, "time_ns", 0));
	cli_out_ns(c, o, "min_time", cli_run_number(r->result, "min_time_ns", 0));
	if (r->planned) {
		cli_out_ns(c, o, "planned", r->planned_ns);
	}
	cli_out_ns(c, o, "mpi_time", cli_run_number(r->result, "mpi_time_ns", 0));
	out_int(o, "messages", cli_run_number(r->result, "messages", 0));
	out_int(o, "bytes", r->bytes);
	out_int(o, "rank_bytes", cli_run_number(r->result, "rank_bytes", 0));
	cli_out_run_steps(c, o, r->result, coll_steps(s), r->step_ns, NULL);
	out_verdict(o, r, correct);
}

/* Also of a wrong result everything is printed; then the exit code says so. */
static int tell(const struct cli *c, const struct cli_run *r, struct err *err)
{
	struct err fault = { 0 };
	int wrong = judge(r, &fault), rc;
	struct out *o = out_new(c->format);

	out_run(c, o, r, wrong == 0);
	rc = cli_print(o, err);
	if (!rc && wrong) {
		*err = fault;
		rc = wrong;
	}
	return rc;
}

int cmd_schedule_run(struct cli *c, struct err *err)
{
	struct coll_sched *s = NULL;
	struct cli_run r = { 0 };
	struct coll_report rep;
	int rc = cli_load_schedule(c, &s, err);

	coll_report_init(&rep);
	r.s = s;
	if (rc || (rc = read_options(c, &r, err)) || (rc = coll_verify(s, &rep, err)) ||
	    (rc = coll_refuse_light_changes(s, "a run", err)) ||
	    (rc = coll_refuse_demands(s, "a run", err)) || (rc = plan(c, &r, &rep, err))) {
		goto out;
	}
	cli_catch_signals();
	rc = launch(&r, err);
	if (!rc) {
		rc = tell(c, &r, err);
	}
out:
	json_decref(r.result);
	free(r.step_ns);
	coll_report_fini(&rep);
	coll_free(s);
	return rc;
}
