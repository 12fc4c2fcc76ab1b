/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus metrics: GET /metrics over HTTP/1 on a loopback address. Labels
 * are devices, methods, outcomes and the first some jobs, never circuits or hosts,
 * so that their number stays small, and nothing secret is shown. Counters begin with the
 * process; everything else is read from the parts when it is asked for.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/buf.h"
#include "lib/base/version.h"
#include "lib/http/http.h"

#define MAX_CLIENTS 16
#define MAX_METHODS 40
#define N_BUCKETS 7
#define NS_PER_S 1e9
#define NO_SIGNAL_MDBM (-50000)	/* nothing but noise below */

/* All counts are of this process, and grow only. */
struct metrics {
	const struct views *views;
	const struct rpc_method *methods;	/* the server's; its end has no path */
	struct http_server *http;		/* NULL: not served */
	int64_t changes[APPLY_STUCK + 1];	/* by verdict */
	int64_t buckets[N_BUCKETS];		/* that took no longer than bounds[i] */
	double change_seconds;			/* of all together */
	int64_t calls[MAX_METHODS];		/* like methods */
	int64_t handled[MAX_METHODS][RPC_UNAUTHENTICATED + 1];	/* by status */
	int64_t plans, plans_failed;	/* made or not */
	int64_t plan_ns;		/* on workers, all together */
	int64_t repairs, repair_ns;	/* of jobs */
	int64_t started_ns;		/* wall clock */
};

/* ---- counting ------------------------------------------------------------ */

/* Seconds. A switch needs a tenth of one, a robot a minute. */
static const double bounds[N_BUCKETS] = { 0.1, 0.5, 1, 5, 10, 30, 60 };

void metrics_count_change(struct metrics *m, const struct apply_result *res)
{
	double seconds = (double)res->took_ns / NS_PER_S;

	m->changes[res->verdict]++;
	m->change_seconds += seconds;
	for (int i = 0; i < N_BUCKETS; i++) {
		m->buckets[i] += seconds <= bounds[i];
	}
}

/* -1: no method of ours. */
static int find_method(const struct metrics *m, const char *path)
{
	for (int i = 0; i < MAX_METHODS && m->methods[i].path; i++) {
		if (strcmp(m->methods[i].path, path) == 0) {
			return i;
		}
	}
	return -1;
}

void metrics_count_call(struct metrics *m, const char *path)
{
	int i = find_method(m, path);

	if (i >= 0) {
		m->calls[i]++;
	}
}

void metrics_count_answer(struct metrics *m, const char *path, enum rpc_status status)
{
	int i = path ? find_method(m, path) : -1;

	if (i >= 0) {
		m->handled[i][status]++;
	}
}

void metrics_count_plan(struct metrics *m, int rc, int64_t took_ns)
{
	m->plans++;
	m->plans_failed += rc != 0;
	m->plan_ns += took_ns;
}

void metrics_count_repair(struct metrics *m, int64_t took_ns)
{
	m->repairs++;
	m->repair_ns += took_ns;
}

/* ---- writing --------------------------------------------------------------- */

/* What stands before the samples of a metric, in Prometheus' text format. */
static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A metric with one sample and without labels. */
static void write_value(struct buf *b, const char *name, const char *type, const char *help,
			int64_t v)
{
	head(b, name, type, help);
	buf_printf(b, "%s %" PRId64 "\n", name, v);
}

/* Count and sum of durations; labels: "{...}" or "". */
static void summary(struct buf *b, const char *name, const char *labels, int64_t n, int64_t ns)
{
	buf_printf(b, "%s_sum%s %.9g\n%s_count%s %" PRId64 "\n", name, labels,
		   (double)ns / NS_PER_S, name, labels, n);
}

static const char *const work_names[] = {
	[DRV_WORK_SNAPSHOT] = "read", [DRV_WORK_SUBMIT] = "change",
};

/* From the drivers' counters, which begin when a device is opened: one that goes down
 * is a restart for Prometheus, as its rules have it. */
static void write_operations(const struct apply_device *a, int n, struct buf *b)
{
	static const char took[] = "weft_device_operation_duration_seconds";
	char labels[256];

	head(b, took, "summary", "Operations of devices, and their time.");
	for (int i = 0; i < n * DRV_N_WORKS; i++) {
		const struct apply_device *d = &a[i / DRV_N_WORKS];
		const struct drv_use *use = &d->use[i % DRV_N_WORKS];

		snprintf(labels, sizeof(labels), "{device=\"%s\",op=\"%s\"}",
			 d->name, work_names[i % DRV_N_WORKS]);
		summary(b, took, labels, use->n, use->ns);
	}
	head(b, "weft_device_operation_failures_total", "counter",
	     "Operations that failed or were not done as a whole.");
	for (int i = 0; i < n * DRV_N_WORKS; i++) {
		const struct apply_device *d = &a[i / DRV_N_WORKS];

		buf_printf(b, "weft_device_operation_failures_total{device="
			   "\"%s\",op=\"%s\"} %" PRId64 "\n", d->name,
			   work_names[i % DRV_N_WORKS],
			   d->use[i % DRV_N_WORKS].failed);
	}
}

/* The weakest signal of each side: what a single port has is for `status`. A device
 * without power meters, or without a signal, has no sample. */
static void write_power(const struct apply_device *a, int n, struct buf *b)
{
	head(b, "weft_optical_power_dbm", "gauge",
	     "Least power that a device measures at a port with a signal.");
	for (int i = 0; i < n; i++) {
		const struct drv_snapshot *s = &a[i].snap;
		int32_t min_mdbm[2] = { INT32_MAX, INT32_MAX };

		for (int k = 0; k < s->n_ports; k++) {
			const struct drv_port *p = &s->ports[k];

			if (p->has_power && p->power_mdbm > NO_SIGNAL_MDBM &&
			    p->power_mdbm < min_mdbm[p->is_out]) {
				min_mdbm[p->is_out] = p->power_mdbm;
			}
		}
		for (int k = 0; k < 2; k++) {
			if (min_mdbm[k] != INT32_MAX) {
				buf_printf(b, "weft_optical_power_dbm{device="
					   "\"%s\",direction=\"%s\"} %.2f\n",
					   a[i].name, k ? "out" : "in",
					   min_mdbm[k] / 1000.0);
			}
		}
	}
}

/* As the robot itself counts them: each move is one of an in-port's fibre. */
static void write_moves(const struct apply_device *a, int n, struct buf *b)
{
	head(b, "weft_robot_moves_total", "counter", "Moves of a robot, as it counts them.");
	for (int i = 0; i < n; i++) {
		const struct drv_snapshot *s = &a[i].snap;
		int64_t moves = 0;
		bool counts = false;

		for (int k = 0; k < s->n_ports; k++) {
			counts = counts || s->ports[k].has_moves;
			moves += s->ports[k].is_out ? 0 : s->ports[k].moves;
		}
		if (counts) {
			buf_printf(b, "weft_robot_moves_total{device=\"%s\"} %" PRId64 "\n",
				   a[i].name, moves);
		}
	}
}

#define AT(field) offsetof(struct apply_device, field)

/* Two counts of circuits that each device has, told apart by a label. */
static const struct circuit_gauge {
	const char *name, *help, *label, *values[2];
	size_t at[2];		/* of the ints in struct apply_device */
} circuit_gauges[] = {
	{ "weft_circuits", "Circuits that a device holds, and those of an open change.",
	  "state", { "present", "pending" }, { AT(snap.n_xcs), AT(n_pending) } },
	{ "weft_drift_circuits", "Circuits that are not as intended.",
	  "kind", { "missing", "unexpected" }, { AT(n_missing), AT(n_unexpected) } },
};

#undef AT

static void write_circuits(const struct circuit_gauge *g, const struct apply_device *a, int n,
			   struct buf *b)
{
	head(b, g->name, "gauge", g->help);
	for (int i = 0; i < 2 * n; i++) {
		const struct apply_device *d = &a[i / 2];

		buf_printf(b, "%s{device=\"%s\",%s=\"%s\"} %d\n", g->name, d->name, g->label,
			   g->values[i % 2], *(const int *)((const char *)d + g->at[i % 2]));
	}
}

/* ---- what is wrong ------------------------------------------------------- */

#define AT(field) offsetof(struct problem_device, field)

/* One count of each device. */
static const struct problem_gauge {
	const char *name, *help;
	bool of_rings;
	size_t at;		/* of the int in struct problem_device */
} problem_gauges[] = {
	{ "weft_device_failed_ports", "Ports that failed and that the configuration does not "
	  "mark as dead.", false, AT(n_failed) },
	{ "weft_device_disabled_ports", "Ports that are disabled.", false, AT(n_disabled) },
	{ "weft_dark_circuits", "Intended circuits without light: missing, failed, at ports "
	  "out of use, or nothing arrives.", false, AT(n_dark) },
	{ "weft_lossy_circuits", "Intended circuits that lose more than the fabric says, or than "
	  "they did.", false, AT(n_lossy) },
	{ "weft_ring_failed_parts", "Parts that failed and that the configuration does not mark "
	  "as dead.", true, AT(n_dead) },
	{ "weft_ring_unlocked_settings", "Settings of programs whose resonators are not "
	  "locked.", true, AT(n_unlocked) },
};

#undef AT

static void write_problem_gauge(const struct problem_gauge *g, const struct model_fabric *f,
				const struct problems *p, struct buf *b)
{
	head(b, g->name, "gauge", g->help);
	for (int i = 0; i < p->n_devices; i++) {
		const struct problem_device *d = &p->devices[i];

		if ((f->devices[i].kind == MODEL_RING) == g->of_rings) {
			buf_printf(b, "%s{device=\"%s\"} %d\n", g->name, d->name,
				   *(const int *)((const char *)d + g->at));
		}
	}
}

/* The entries of the list that status shows, by kind, those without any as well. */
static void write_problems(const struct views *views, struct buf *b)
{
	const ProtobufCEnumDescriptor *kinds = &weft__v1__problem_kind__descriptor;
	struct problems p;
	char name[64];

	problems_init(&p, views);
	head(b, "weft_problems", "gauge", "What is wrong with the fabric, as status lists it.");
	for (unsigned k = 1; k < kinds->n_values; k++) {
		int n = 0;

		for (size_t i = 0; i < p.n; i++) {
			n += (int)p.list[i]->kind == kinds->values[k].value;
		}
		msg_enum(kinds, kinds->values[k].value, name, sizeof(name));
		buf_printf(b, "weft_problems{kind=\"%s\"} %d\n", name, n);
	}
	for (size_t i = 0; i < sizeof(problem_gauges) / sizeof(*problem_gauges); i++) {
		write_problem_gauge(&problem_gauges[i], apply_fabric(views->env->apply), &p, b);
	}
	problems_fini(&p);
}

/* ---- jobs ---------------------------------------------------------------- */

#define MAX_JOBS 300		/* with series of their own */

/* Those that lack something come first, as no more than MAX_JOBS are told. */
static size_t choose_jobs(const struct job_rows *rows, const Weft__V1__PlanJob **v)
{
	size_t n = 0;

	for (int whole = 0; whole < 2; whole++) {
		for (size_t i = 0; i < rows->n && n < MAX_JOBS; i++) {
			if ((rows->v[i]->reason[0] == '\0') == whole) {
				v[n++] = rows->v[i];
			}
		}
	}
	return n;
}

static void write_seconds(struct buf *b, const char *name, const char *job, int64_t ns)
{
	buf_printf(b, "%s{job_name=\"%s\"} %.9g\n", name, job, (double)ns / NS_PER_S);
}

/* Rate and times of each job; one that is down has no time that could be expected.
 * Prometheus itself gives every sample a label "job". */
static void write_job_rates(const struct views *views, struct buf *b)
{
	static const char rate[] = "weft_job_rate_ratio", degraded[] = "weft_job_degraded",
		dead[] = "weft_job_dead_circuits", expected[] = "weft_job_expected_seconds",
			whole[] = "weft_job_fault_free_seconds", lit[] = "weft_job_light";
	const Weft__V1__PlanJob *v[MAX_JOBS];
	const struct job_rows *rows = shown_jobs(views);
	size_t n = rows ? choose_jobs(rows, v) : 0;

	head(b, rate, "gauge", "What is left of a job's rate: 1 is all of it.");
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "%s{job_name=\"%s\"} %.9g\n", rate, v[i]->name, v[i]->rate);
	}
	head(b, degraded, "gauge", "1 of a job that lacks more than the configuration marks as "
	     "dead.");
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "%s{job_name=\"%s\"} %d\n", degraded, v[i]->name,
			   v[i]->reason[0] && !v[i]->as_configured);
	}
	head(b, expected, "gauge", "Time that a job's collective is expected to take now.");
	for (size_t i = 0; i < n; i++) {
		if (v[i]->expected_time_ns > 0) {
			write_seconds(b, expected, v[i]->name, v[i]->expected_time_ns);
		}
	}
	head(b, whole, "gauge", "Time that it would take with nothing failed.");
	for (size_t i = 0; i < n; i++) {
		if (v[i]->whole_time_ns > 0) {
			write_seconds(b, whole, v[i]->name, v[i]->whole_time_ns);
		}
	}
	head(b, dead, "gauge", "Circuits of a job, or parts of its ring, that failed.");
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "%s{job_name=\"%s\"} %d\n", dead, v[i]->name,
			   v[i]->degradation ? v[i]->degradation->failed : 0);
	}
	head(b, lit, "gauge", "Which of its lights a job has that changes them in a step, from 1.");
	for (size_t i = 0; i < n; i++) {
		if (v[i]->step && v[i]->step->n_lights > 1) {
			buf_printf(b, "%s{job_name=\"%s\"} %d\n", lit, v[i]->name, v[i]->step->lit);
		}
	}
	write_value(b, "weft_jobs_without_series", "gauge", "Jobs beyond the 300 that have "
		    "series of their own.", rows ? (int64_t)(rows->n - n) : 0);
}

/* How long jobs wait, and how much of the fabric they have. */
static void write_queue(const struct views *views, const struct jobs_figures *j, struct buf *b)
{
	const struct model_fabric *f = apply_fabric(views->env->apply);
	int sides = 0, used = 0;

	for (int p = 0; f && p < f->n_ports; p++) {
		const struct model_port *port = &f->ports[p];

		sides += (port->tx_device >= 0) + (port->rx_device >= 0);
		used += (port->tx_job >= 0) + (port->rx_job >= 0);
	}
	head(b, "weft_job_wait_seconds", "summary", "From request to start of the jobs of "
	     "orchestrators that this weftd has started.");
	buf_printf(b, "weft_job_wait_seconds_sum %.3f\nweft_job_wait_seconds_count %" PRId64 "\n",
		   (double)j->waited_ns / NS_PER_S, j->started);
	head(b, "weft_job_longest_wait_seconds", "gauge", "That a job waits in the queue already.");
	buf_printf(b, "weft_job_longest_wait_seconds %.3f\n", (double)j->longest_ns / NS_PER_S);
	head(b, "weft_port_utilisation_ratio", "gauge", "Part of all sides of hosts' ports with "
	     "fibres that jobs have.");
	buf_printf(b, "weft_port_utilisation_ratio %.6g\n", sides ? (double)used / sides : 0);
}

/* By state, and the worst gap of a schedule that is in use. */
static void write_jobs(const struct views *views, struct buf *b)
{
	struct jobs_figures figures;
	const struct job_rows *rows = job_status_rows(views->job_status);
	double gap = 0;

	jobs_count(views->jobs, &figures);
	head(b, "weft_jobs", "gauge", "Jobs of orchestrators, by state; of "
	     "those that are over the ones that are remembered.");
	for (int i = 0; i <= STORE_JOB_FAILED; i++) {
		buf_printf(b, "weft_jobs{state=\"%s\"} %d\n",
			   store_job_state_name((enum store_job_state)i), figures.n[i]);
	}
	write_queue(views, &figures, b);
	for (size_t i = 0; i < rows->n; i++) {
		gap = rows->v[i]->gap > gap ? rows->v[i]->gap : gap;
	}
	head(b, "weft_solver_gap_ratio", "gauge",
	     "Largest gap between a job's schedule and its bound.");
	buf_printf(b, "weft_solver_gap_ratio %.6g\n", gap);
}

/* Of planning, and of the store's transactions: a slow disk shows here. */
static void write_durations(const struct metrics *m, struct buf *b)
{
	const struct store_use use = store_use(m->views->env->store);

	head(b, "weft_plan_duration_seconds", "summary", "Plans that were made, "
	     "and their time.");
	summary(b, "weft_plan_duration_seconds", "", m->plans, m->plan_ns);
	head(b, "weft_job_repair_duration_seconds", "summary", "Jobs that have all of their rate "
	     "again, and for how long they had not.");
	summary(b, "weft_job_repair_duration_seconds", "", m->repairs, m->repair_ns);
	write_value(b, "weft_plan_failures_total", "counter", "Plans that could not be made.",
		    m->plans_failed);
	head(b, "weft_store_commit_duration_seconds", "summary",
	     "What the store made durable, and the time that took.");
	summary(b, "weft_store_commit_duration_seconds", "", use.commits, use.ns);
	write_value(b, "weft_store_failures_total", "counter",
		    "What the store could not make durable.", use.failed);
}

/* By device and outcome, from the records that are kept. */
static void write_external(const struct daemon_env *env, const struct apply_device *a,
			 int n, struct buf *b)
{
	head(b, "weft_external_changes", "gauge", "Changes of circuits "
	     "that weft did not make, by what became of them; of those that are "
	     "over the ones that are remembered.");
	for (int i = 0; i < n; i++) {
		const struct store_external_query q = { .device = a[i].name };
		int count[STORE_EXTERNAL_BY_ITSELF + 1] = { 0 };
		struct store_external_change *v = NULL;
		int n_v = 0;

		if (store_external_changes(env->store, &q, &v, &n_v, NULL)) {
			continue;
		}
		for (int k = 0; k < n_v; k++) {
			count[v[k].outcome]++;
		}
		free(v);
		for (int k = 0; k <= STORE_EXTERNAL_BY_ITSELF; k++) {
			buf_printf(b, "weft_external_changes{device=\"%s\","
				   "state=\"%s\"} %d\n", a[i].name,
				   store_external_outcome_name(
					(enum store_external_outcome)k),
				   count[k]);
		}
	}
}

/* What the last readings say. A device that is not read is never up or down. */
static void write_devices(const struct daemon_env *env, struct buf *b)
{
	const struct apply_device *a;
	int n;

	a = apply_devices(env->apply, &n);
	write_operations(a, n, b);
	write_power(a, n, b);
	write_moves(a, n, b);
	write_circuits(&circuit_gauges[0], a, n, b);
	write_external(env, a, n, b);
	head(b, "weft_device_up", "gauge", "Whether the device answered when it was last asked.");
	for (int i = 0; i < n; i++) {
		if (apply_is_read(&a[i])) {
			buf_printf(b, "weft_device_up{device=\"%s\","
				   "driver=\"%s\"} %d\n", a[i].name,
				   a[i].driver, a[i].reachable);
		}
	}
	head(b, "weft_device_last_read_seconds", "gauge",
	     "Unix time of the device's last reading.");
	for (int i = 0; i < n; i++) {
		if (a[i].ever_read) {
			buf_printf(b, "weft_device_last_read_seconds{device="
				   "\"%s\"} %.3f\n", a[i].name,
				   (double)a[i].read_at_ns / NS_PER_S);
		}
	}
	write_circuits(&circuit_gauges[1], a, n, b);
}

/* A histogram's buckets are cumulative, as metrics_count_change counts them. */
static void write_changes(const struct metrics *c, struct buf *b)
{
	int64_t n = 0;

	head(b, "weft_apply_total", "counter", "Changes that have ended, by outcome.");
	for (int v = 0; v <= APPLY_STUCK; v++) {
		buf_printf(b, "weft_apply_total{outcome=\"%s\"} %" PRId64 "\n",
			   apply_verdict_name((enum apply_verdict)v),
			   c->changes[v]);
		n += c->changes[v];
	}
	head(b, "weft_apply_duration_seconds", "histogram",
	     "How long changes took, from the journal to the proof.");
	for (int i = 0; i < N_BUCKETS; i++) {
		buf_printf(b, "weft_apply_duration_seconds_bucket{le=\"%g\"} "
			   "%" PRId64 "\n", bounds[i], c->buckets[i]);
	}
	buf_printf(b, "weft_apply_duration_seconds_bucket{le=\"+Inf\"} %" PRId64
		   "\nweft_apply_duration_seconds_sum %.9g\n"
		   "weft_apply_duration_seconds_count %" PRId64 "\n",
		   n, c->change_seconds, n);
}

/* The labels of a path "/SERVICE/METHOD", as other gRPC servers name them. */
static void write_method(struct buf *b, const char *name, const char *path)
{
	const char *slash = strchr(path + 1, '/');

	buf_printf(b, "%s{grpc_service=\"%.*s\",grpc_method=\"%s\"", name,
		   (int)(slash - path - 1), path + 1, slash + 1);
}

static void write_calls(const struct metrics *m, struct buf *b)
{
	static const char name[] = "grpc_server_started_total";

	head(b, name, "counter", "Calls that were begun, refused ones as well.");
	for (int i = 0; i < MAX_METHODS && m->methods[i].path; i++) {
		write_method(b, name, m->methods[i].path);
		buf_printf(b, "} %" PRId64 "\n", m->calls[i]);
	}
}

/* Only pairs of method and status that occurred. */
static void write_answers(const struct metrics *m, struct buf *b)
{
	static const char name[] = "grpc_server_handled_total";

	head(b, name, "counter", "Calls that were answered, by status.");
	for (int i = 0; i < MAX_METHODS && m->methods[i].path; i++) {
		for (int k = 0; k <= RPC_UNAUTHENTICATED; k++) {
			if (m->handled[i][k]) {
				write_method(b, name, m->methods[i].path);
				buf_printf(b, ",grpc_code=\"%s\"} %" PRId64 "\n",
					   rpc_status_name((enum rpc_status)k),
					   m->handled[i][k]);
			}
		}
	}
}

/* By the names that Prometheus has for every process. */
static void write_process(const struct metrics *m, struct buf *b)
{
	uv_rusage_t use = { 0 };
	size_t bytes = 0;

	uv_getrusage(&use);
	uv_resident_set_memory(&bytes);
	head(b, "process_cpu_seconds_total", "counter", "Processor time of weftd, in user and in "
	     "system.");
	buf_printf(b, "process_cpu_seconds_total %.6f\n",
		   (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			   1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
	write_value(b, "process_resident_memory_bytes", "gauge", "Memory of weftd.",
		    (int64_t)bytes);
	write_value(b, "process_start_time_seconds", "gauge", "When weftd started, since 1970.",
		    m->started_ns / (int64_t)NS_PER_S);
}

/* Everything, in the order in which people look for it. O(devices x ports). */
static void write_all(const struct metrics *m, struct buf *b)
{
	const struct views *v = m->views;
	const struct daemon_env *env = v->env;
	struct err err;
	bool frozen = drain_check_frozen(v->drain, &err) != 0;
	const struct {
		const char *name, *help;
		int64_t value;
	} gauges[] = {
		{ "weft_generation", "Generation of the fabric.", store_generation(env->store) },
		{ "weft_reading", "1 while devices are not known.", env->reading },
		{ "weft_changing", "1 while a change runs.", env->changing },
		{ "weft_confirm_waiting", "1 while a change waits for its confirmation.",
		  changes_confirm(v->changes)->change != 0 },
		{ "weft_frozen", "1 while every change is refused.", frozen },
		{ "weft_store_failing", "1 while the disk takes no transaction of the store.",
		  store_trouble(env->store)[0] != '\0' },
		{ "weft_etcd_failing", "1 while etcd does not answer, or takes no transaction.",
		  v->election && v->election->status.problem[0] },
		{ "weft_holds", "Drained parts of the fabric.", drain_count(v->drain) - frozen },
	};

	head(b, "weft_build_info", "gauge", "The version that runs.");
	buf_printf(b, "weft_build_info{version=\"%s\"} 1\n", build_version);
	for (size_t i = 0; i < sizeof(gauges) / sizeof(*gauges); i++) {
		write_value(b, gauges[i].name, "gauge", gauges[i].help, gauges[i].value);
	}
	write_process(m, b);
	write_problems(v, b);
	write_devices(env, b);
	write_changes(m, b);
	write_jobs(v, b);
	write_job_rates(v, b);
	write_durations(m, b);
	write_calls(m, b);
	write_answers(m, b);
}

/* ---- HTTP ---------------------------------------------------------------- */

/* Called by the HTTP server for each request; there is one page. */
static void answer(struct http_request *q, void *arg)
{
	static const struct http_header headers[] = {
		{ "Content-Type", "text/plain; version=0.0.4; charset=utf-8" },
		{ NULL, NULL },
	};
	const struct metrics *m = arg;
	struct buf b = { 0 };
	int status = 200;

	/* On a standby another process writes the store. */
	if (m->views->standby) {
		drain_load(m->views->drain, NULL);
	}
	if (strcmp(http_path(q), "/metrics") == 0) {
		write_all(m, &b);
	} else {
		status = 404;
		buf_str(&b, "Not Found\n");
	}
	http_answer(q, status, headers, buf_cstr(&b), b.len);
	buf_fini(&b);
}

int metrics_start(struct metrics *m, const char *host, int port, struct err *err)
{
	const struct http_config cfg = {
		.option = "--metrics", .host = host, .port = port,
		.max_conns = MAX_CLIENTS, .handler = answer, .arg = m,
	};

	return http_server_new(m->views->env->loop, &cfg, &m->http, err);
}

void metrics_stop(struct metrics *m)
{
	http_server_free(m->http);
	m->http = NULL;
}

int metrics_port(const struct metrics *m)
{
	return m->http ? http_server_port(m->http) : 0;
}

struct metrics *metrics_new(const struct views *views, const struct rpc_method *methods)
{
	struct metrics *m = x_new(1, sizeof(*m));

	*m = (struct metrics){ .views = views, .methods = methods,
			       .started_ns = clk_wall_ns() };
	return m;
}

void metrics_free(struct metrics *m)
{
	free(m);
}
