/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft testbed run: a job's schedule, or a program, run by Open MPI over the light of a testbed.
 *
 * What was measured is put beside what the plan says: the time of all, of each step, and what
 * each arc had to carry. Frames that a host's own queue dropped would make the light look
 * slower than it is, so they are counted. With --compare MPI's own collective runs
 * over the same light afterwards, by the same routes and queues.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/schedules/run.h"
#include "controller/testbed/testbed.h"
#include "lib/base/alloc.h"

struct cli_testbed_run {
	const struct model_fabric *f;
	const struct plan_job *job;
	struct testbed_run_options options;
	struct testbed_run run;
	/* By the plan, for the size that is run. */
	int64_t planned_ns;
	double *step_ns;
};

/* The job that is asked for, in the plan. */
static int find_job(const struct cli *c, const struct model_fabric *f, const struct plan *p,
		    const struct plan_job **out, struct err *err)
{
	const char *name = cli_opt(c, "job");

	if (!name && p->n_jobs != 1) {
		err_set(err, WEFT_EUSAGE, "there are %d jobs", p->n_jobs);
		err_hint(err, "--job NAME");
		return WEFT_EUSAGE;
	}
	for (int i = 0; i < p->n_jobs; i++) {
		if (!name || strcmp(f->jobs[p->jobs[i].job].name, name) == 0) {
			*out = &p->jobs[i];
			return 0;
		}
	}
	return err_set(err, WEFT_ENOTFOUND, "there is no job '%.80s'", name);
}

static int read_run_options(const struct cli *c, struct cli_testbed_run *r, struct err *err)
{
	const struct model_job *job = &r->f->jobs[r->job->job];
	struct testbed_run_options *o = &r->options;
	int rc;

	*o = (struct testbed_run_options){ .size_bytes = job->size_bytes, .repeat = CLI_RUN_REPEATS,
					   .barriers = cli_has(c, "barriers"),
					   .compare = cli_has(c, "compare"),
					   .limit_ns = CLI_RUN_LIMIT_NS, .stop = &cli_interrupted };
	for (size_t i = 0; job->workload && i < job->workload->ops.n; i++) {
		const int64_t bytes = job->workload->ops.v[i].bytes;

		o->size_bytes = bytes > o->size_bytes ? bytes : o->size_bytes;
	}
	o->program = c->argc > 1 ? (const char *const *)c->argv + 1 : NULL;
	if ((rc = cli_opt_unit(c, "size", UNIT_BYTES, &o->size_bytes, err)) ||
	    (rc = cli_opt_int(c, "repeat", 1, CLI_RUN_MAX_REPEATS, &o->repeat, err))) {
		return rc;
	}
	return cli_opt_unit(c, "time-limit", UNIT_NS, &o->limit_ns, err);
}

/* Times by the cost model, as plans have them. */
static int plan_times(struct cli_testbed_run *r, struct err *err)
{
	const struct coll_sched *s = r->job->sched;
	struct coll_cost cost = plan_job_cost(r->f, r->job);
	int rc;

	cost.size_bytes = r->options.size_bytes;
	r->step_ns = x_new((size_t)coll_steps(s) + 1, sizeof(double));
	if ((rc = coll_time(s, &r->job->report, &cost, &r->planned_ns, NULL, err))) {
		return rc;
	}
	return coll_step_times(s, &cost, r->step_ns, err);
}

/* ---- what is told ---- */

/* What each arc carried a run, and the least and most of all. */
static void out_arcs(struct out *o, const struct cli_testbed_run *r)
{
	uint64_t runs = (uint64_t)r->options.repeat + 1, least = UINT64_MAX, most = 0;

	out_array(o, "arcs");
	out_machine_only(o);
	for (int i = 0; i < r->run.n_arcs; i++) {
		const struct testbed_run_arc *a = &r->run.arcs[i];
		uint64_t bytes = a->bytes / runs;

		out_object(o, NULL);
		out_str(o, "from", r->f->ports[a->tx_port].name);
		out_str(o, "to", r->f->ports[a->rx_port].name);
		out_int(o, "bytes", (int64_t)bytes);
		out_end(o);
		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	out_end(o);
	out_int(o, "min_arc_bytes", r->run.n_arcs ? (int64_t)least : 0);
	out_int(o, "max_arc_bytes", (int64_t)most);
}

static void out_run(const struct cli *c, struct out *o, const struct cli_testbed_run *r)
{
	const struct coll_sched *s = r->job->sched;
	const json_t *result = r->run.result;
	int64_t time = cli_run_number(result, "time_ns", 0);

	out_str(o, "job", r->f->jobs[r->job->job].name);
	out_str(o, "collective", coll_kind_name(coll_kind_of(s)));
	out_str(o, "topology", coll_topo_name(s));
	out_bool(o, "correct", cli_run_number(result, "wrong_elements", 0) == 0);
	out_int(o, "wrong_elements", cli_run_number(result, "wrong_elements", 0));
	out_int(o, "ranks", coll_ranks(s));
	out_int(o, "size_bytes", cli_run_number(result, "size_bytes", 0));
	out_int(o, "repeats", r->options.repeat);
	cli_out_ns(c, o, "planned", r->planned_ns);
	cli_out_ns(c, o, "time", time);
	cli_out_ns(c, o, "min_time", cli_run_number(result, "min_time_ns", 0));
	out_real(o, "time_over_planned", r->planned_ns ? (double)time / (double)r->planned_ns : 0);
	if (r->run.compared) {
		cli_out_ns(c, o, "mpi_time", cli_run_number(r->run.compared, "mpi_time_ns", 0));
	}
	out_int(o, "dropped_frames", (int64_t)r->run.drops);
	out_int(o, "bytes", cli_run_number(result, "bytes", 0));
	out_arcs(o, r);
	cli_out_run_steps(c, o, result, coll_steps(s), r->step_ns, coll_placement(s)->hosts);
}

static int tell_program(const struct cli *c, const struct cli_testbed_run *r, struct err *err)
{
	struct out *o;

	if (c->format == OUT_TABLE) {
		fputs(json_string_value(r->run.result), stdout);
		return 0;
	}
	o = out_new(c->format);
	out_str(o, "job", r->f->jobs[r->job->job].name);
	out_int(o, "dropped_frames", (int64_t)r->run.drops);
	out_str(o, "output", json_string_value(r->run.result));
	return cli_print(o, err);
}

static int tell(const struct cli *c, const struct cli_testbed_run *r, struct err *err)
{
	int64_t wrong = cli_run_number(r->run.result, "wrong_elements", 0) +
			cli_run_number(r->run.compared, "wrong_elements", 0);
	struct out *o = out_new(c->format);
	int rc;

	out_run(c, o, r);
	rc = cli_print(o, err);
	if (rc == 0 && wrong > 0) {
		rc = err_set(err, WEFT_EVERIFY, "%ld elements are wrong", (long)wrong);
	}
	return rc;
}

/* {job, correct, planned_ns, time_ns, mpi_time_ns, dropped_frames, arcs, steps}. */
int cmd_testbed_run(struct cli *c, struct err *err)
{
	struct cli_testbed_run r = { 0 };
	struct model_fabric *f = NULL;
	struct testbed *t = NULL;
	struct plan *p = NULL;
	int rc = cli_open_testbed(c->argv[0], &f, &t, err);

	r.f = f;
	if (rc || (rc = testbed_plan(f, &p, err)) || (rc = find_job(c, f, p, &r.job, err)) ||
	    (rc = read_run_options(c, &r, err))) {
		goto out;
	}
	cli_catch_signals();
	rc = testbed_run(t, p, r.job, &r.options, &r.run, err);
	if (rc == 0 && r.options.program) {
		rc = tell_program(c, &r, err);
	} else if (rc == 0 && (rc = plan_times(&r, err)) == 0) {
		rc = tell(c, &r, err);
	}
out:
	testbed_run_fini(&r.run);
	free(r.step_ns);
	plan_free(p);
	cli_close_testbed(f, t);
	return rc;
}
