/*
 * The list of jobs, as messages for those who look, and sent to those who wait: with each state
 * that the job comes to, until it runs (or has ended, for a release). A client that goes away
 * leaves its job as it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define MAX_CALLS 64		/* that wait for one job */

_Static_assert((int)msg_job_state(STORE_JOB_FAILED) ==
	       (int)WEFT__V1__JOB_STATE__JOB_STATE_FAILED,
	       "the API's states are those of the store");

/* ---- life ---------------------------------------------------------------- */

static void job_free(struct job *j)
{
	store_job_fini(&j->s);
	rpc_free_message(j->req ? &j->req->base : NULL);
	free(j->circuits);
	free(j->ports);
	vec_fini(&j->calls);
	free(j->moving);
	free(j);
}

static void forget_all(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		job_free(jobs->v.v[i]);
	}
	vec_fini(&jobs->v);
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs) {
		return;
	}
	forget_all(jobs);
	part_timer_free(jobs->clock);
	free(jobs);
}

int jobs_add(struct jobs *jobs, struct store_job *s, struct job **out, struct err *err)
{
	struct job *j = x_new(1, sizeof(*j));
	int r;

	j->jobs = jobs;
	j->rate = 1;
	j->s = *s;
	memset(s, 0, sizeof(*s));
	r = job_unpack(j->s.spec, &j->req, err);
	if (r) {
		job_free(j);
		return r;
	}
	j->circuits = job_circuits_text(j->req);
	j->ports = job_ports_text(j->req);
	vec_push(&jobs->v, j);
	*out = j;
	return 0;
}

void jobs_drop_last(struct jobs *jobs)
{
	job_free(jobs->v.v[--jobs->v.n]);
}

static int load(struct jobs *jobs, struct err *err)
{
	struct store_job *v = NULL;
	struct job *j;
	int n = 0, r = store_jobs(jobs->env->store, &v, &n, err);

	for (int i = 0; i < n && r == 0; i++) {
		r = jobs_add(jobs, &v[i], &j, err);
	}
	store_jobs_free(v, n);
	return r;
}

static void on_time(void *arg)
{
	jobs_advance(arg);
}

int jobs_new(struct daemon_env *env, struct plan_queue *queue, struct job_status *status,
	     struct drain *drain, struct changes *changes, struct jobs **out, struct err *err)
{
	struct jobs *jobs = x_new(1, sizeof(*jobs));
	int r;

	*jobs = (struct jobs){ .env = env, .queue = queue, .status = status, .drain = drain,
			       .changes = changes };
	jobs->clock = part_timer_new(env, on_time, jobs);
	r = load(jobs, err);
	if (r) {
		jobs_free(jobs);
		return r;
	}
	*out = jobs;
	return 0;
}

void jobs_reload(struct jobs *jobs)
{
	struct jobs fresh = *jobs;
	struct err ignored = { 0 };

	memset(&fresh.v, 0, sizeof(fresh.v));
	if (load(&fresh, &ignored)) {
		forget_all(&fresh);
		return;
	}
	forget_all(jobs);
	jobs->v = fresh.v;
	for (size_t i = 0; i < jobs->v.n; i++) {
		jobs->v.v[i]->jobs = jobs;
	}
}

struct job *jobs_find(const struct jobs *jobs, const char *name)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (job_lives(j) && strcmp(j->s.name, name) == 0) {
			return j;
		}
	}
	return NULL;
}

struct job *job_replacement(const struct job *j)
{
	for (size_t i = j->jobs->v.n; i-- > 0;) {
		struct job *o = j->jobs->v.v[i];

		if (o->s.id <= j->s.id) {
			break;
		}
		if (o->req->replace && job_lives(o) && strcmp(o->s.name, j->s.name) == 0) {
			return o;
		}
	}
	return NULL;
}

/* ---- as messages --------------------------------------------------------- */

int job_position(const struct job *j)
{
	int ahead = 0;

	if (j->s.state != STORE_JOB_QUEUED) {
		return 0;
	}
	for (size_t i = 0; i < j->jobs->v.n; i++) {
		const struct job *o = j->jobs->v.v[i];

		ahead += o->s.state == STORE_JOB_QUEUED && (o->s.priority > j->s.priority ||
							    (o->s.priority == j->s.priority &&
							     o->s.id < j->s.id));
	}
	return ahead + 1;
}

/* A text cut into words. */
struct words {
	char *text, **list;
	size_t n;
};

struct job_row {
	Weft__V1__Job m;
	struct words nodes, ports;
	struct circuit_row *circuits;	/* [m.n_circuits] */
	struct buf spec;	/* what was asked for, as JSON */
	struct buf missing;	/* circuits that are not there */
	char who[64];		/* the name of who asked */
};

static void row_fini(struct job_row *row)
{
	free(row->nodes.text);
	free(row->nodes.list);
	free(row->ports.text);
	free(row->ports.list);
	free(row->circuits);
	free(row->m.circuits);
	buf_fini(&row->spec);
	buf_fini(&row->missing);
}

static void cut_words(struct words *w, const char *text)
{
	char *rest, *name;

	w->text = x_dup(text);
	w->list = x_new(strlen(text) / 2 + 2, sizeof(*w->list));
	rest = w->text;
	while ((name = strsep(&rest, " ")) != NULL) {
		if (*name) {
			w->list[w->n++] = name;
		}
	}
}

/* Each circuit, and how many of them are there. */
static void add_circuits(struct job_row *row, const struct job *j)
{
	const size_t n = j->req->n_circuits;
	size_t good = 0;

	row->circuits = x_new(n + 1, sizeof(*row->circuits));
	row->m.circuits = x_new(n + 1, sizeof(*row->m.circuits));
	row->m.n_circuits = n;
	for (size_t i = 0; i < n; i++) {
		const struct circuit_row *c = &row->circuits[i];
		const bool is_good = circuit_row_init(&row->circuits[i], j, i);

		row->m.circuits[i] = &row->circuits[i].m;
		good += is_good;
		if (!is_good && row->missing.len < STORE_NOTE_MAX) {
			buf_printf(&row->missing, "%s%s - %s %s", row->missing.len ? "; " : "",
				   c->m.from, c->m.to, c->m.problem);
		}
	}
	if (j->s.state == STORE_JOB_RUNNING && good < n) {
		row->m.rate = (double)good / (double)n;
		row->m.problem = j->s.problem[0] ? j->s.problem : (char *)buf_cstr(&row->missing);
	}
}

static void row_init(struct job_row *row, const struct job *j)
{
	const struct model_request value = job_value(j);

	memset(row, 0, sizeof(*row));
	weft__v1__job__init(&row->m);
	cut_words(&row->nodes, j->s.nodes);
	cut_words(&row->ports, j->ports);
	row->m.nodes = row->nodes.list;
	row->m.n_nodes = row->nodes.n;
	row->m.ports = row->ports.list;
	row->m.n_ports = row->ports.n;
	plan_request_json(&value, &row->spec);
	row->m.id = j->s.id;
	row->m.name = j->s.name;
	row->m.who = (char *)user_name(j->s.who, row->who, sizeof(row->who));
	row->m.state = msg_job_state(j->s.state);
	row->m.problem = j->s.problem;
	row->m.position = job_position(j);
	row->m.spec = (char *)buf_cstr(&row->spec);
	row->m.priority = j->s.priority;
	row->m.preemptible = j->s.preemptible;
	row->m.duration_ns = j->s.duration_ns;
	row->m.requested_at_ns = j->s.asked_ns;
	row->m.started_at_ns = j->s.started_ns;
	row->m.ended_at_ns = j->s.ended_ns;
	row->m.repair = j->req->repair ? j->req->repair
				       : WEFT__V1__JOB_REPAIR__JOB_REPAIR_DEGRADED;
	row->m.rate = j->s.state == STORE_JOB_RUNNING ? j->rate : 0;
	row->m.repairs = j->s.repairs;
	if (j->req->n_circuits > 0) {
		add_circuits(row, j);
	}
}

struct job_row *job_row_new(const struct job *j, Weft__V1__Job **m)
{
	struct job_row *row = x_new(1, sizeof(*row));

	row_init(row, j);
	*m = &row->m;
	return row;
}

void job_row_free(struct job_row *row)
{
	row_fini(row);
	free(row);
}

/* ---- those who wait ------------------------------------------------------ */

/* Whether a call has what it waits for, or never will. */
static bool is_over_for(const struct job *j, const struct job_call *c)
{
	return !job_lives(j) ||
	       (!c->release && (j->s.state == STORE_JOB_RUNNING ||
				j->req->no_wait));
}

/* For a request, a job that failed or was released meanwhile is an error. */
static void finish_call(const struct job *j, const struct job_call *c)
{
	struct err err = { 0 };

	if (!c->release && j->s.state == STORE_JOB_FAILED) {
		err_set(&err, j->code ? j->code : WEFT_EINFEASIBLE, "%s", j->s.problem);
		rpc_finish_err(c->call, &err);
	} else if (!c->release && j->s.state == STORE_JOB_ENDED) {
		err_set(&err, WEFT_ECANCELED, "the job was released");
		rpc_finish_err(c->call, &err);
	} else {
		rpc_finish(c->call, RPC_OK, NULL);
	}
}

/* Sends the job to a call that waits; false when it waits no more. */
static bool send_job(const struct job *j, const struct job_call *c)
{
	struct err err = { 0 };
	struct job_row row;
	int r;

	row_init(&row, j);
	r = rpc_send(c->call, &row.m.base, &err);
	row_fini(&row);
	if (r) {
		rpc_finish_err(c->call, &err);
		return false;
	}
	if (is_over_for(j, c)) {
		finish_call(j, c);
		return false;
	}
	return true;
}

static void send_to_all(struct job *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->calls.n; i++) {
		struct job_call c = j->calls.v[i];

		if (send_job(j, &c)) {
			j->calls.v[kept++] = c;
		}
	}
	j->calls.n = kept;
}

static void on_gone(struct rpc_call *call, void *arg)
{
	struct job *j = arg;

	for (size_t i = 0; i < j->calls.n; i++) {
		if (j->calls.v[i].call == call) {
			j->calls.v[i] = j->calls.v[--j->calls.n];
			return;
		}
	}
}

void job_attach(struct job *j, struct rpc_call *call, bool release)
{
	struct job_call c = { call, release };
	struct err err = { 0 };

	if (j->calls.n >= MAX_CALLS) {
		err_set(&err, WEFT_ELIMIT, "more than %d calls wait for job "
			"%s", MAX_CALLS, j->s.name);
		rpc_finish_err(call, &err);
		return;
	}
	if (!j->moved && !send_job(j, &c)) {
		return;
	}
	vec_push(&j->calls, c);
	rpc_call_on_cancel(call, on_gone, j);
}

static void tell(struct job *j)
{
	const struct daemon_event ev = {
		.kind = EVENT_KIND(JOB),
	};

	j->moved = false;
	event_emit(j->jobs->env->events, &ev, "job %s is %s%s%s", j->s.name,
		     store_job_state_name(j->s.state), j->s.problem[0] ? ": " : "",
		     j->s.problem);
	send_to_all(j);
}

bool jobs_flush(struct jobs *jobs)
{
	VEC(struct store_job *) rows = { 0 };
	struct err err = { 0 };
	job_list moved = { 0 };
	int rc = 0;

	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->moved) {
			vec_push(&moved, jobs->v.v[i]);
			vec_push(&rows, &jobs->v.v[i]->s);
		}
	}
	if (rows.n > 0) {
		rc = store_jobs_put(jobs->env->store, rows.v, (int)rows.n, &err);
	}
	if (rc && !jobs->refused) {
		log_error("jobs", "%zu jobs, as %s: %s", rows.n, rows.v[0]->name, err.msg);
	}
	jobs->refused = rc != 0;
	for (size_t i = 0; i < moved.n && rc == 0; i++) {
		tell(moved.v[i]);
	}
	vec_fini(&rows);
	vec_fini(&moved);
	return rc == 0;
}

void job_move(struct job *j, enum store_job_state state, const char *problem)
{
	char *text = x_dup(problem);	/* which may be the job's own */

	if (j->s.state == state && strcmp(j->s.problem, problem) == 0) {
		free(text);
		return;
	}
	free(j->s.problem);
	j->s.problem = text;
	if (state == STORE_JOB_RUNNING && j->s.state != state) {
		j->s.started_ns = clk_wall_ns();
	}
	j->part = 0;
	j->s.state = state;
	if (!job_lives(j)) {
		j->s.ended_ns = clk_wall_ns();
	}
	log_info("jobs", "job %s: %s%s%s", j->s.name,
		 store_job_state_name(state), j->s.problem[0] ? ": " : "",
		 j->s.problem);
	j->moved = true;
}

/* ---- who looks ----------------------------------------------------------- */

void jobs_out(const struct jobs *jobs, struct out *o)
{
	out_array(o, "requests");
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job_row row;

		if (job_lives(jobs->v.v[i])) {
			row_init(&row, jobs->v.v[i]);
			out_object(o, NULL);
			msg_out_fields(o, &row.m, NULL);
			out_end(o);
			row_fini(&row);
		}
	}
	out_end(o);
}

void jobs_count(const struct jobs *jobs, int n[STORE_JOB_FAILED + 1])
{
	memset(n, 0, (STORE_JOB_FAILED + 1) * sizeof(*n));
	for (size_t i = 0; i < jobs->v.n; i++) {
		n[jobs->v.v[i]->s.state]++;
	}
}

void handle_list_jobs(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ListJobsRequest *q = (const void *)msg;
	Weft__V1__ListJobsResponse m = WEFT__V1__LIST_JOBS_RESPONSE__INIT;
	const struct jobs *jobs = arg;
	struct job_row *rows = x_new(jobs->v.n + 1, sizeof(*rows));
	Weft__V1__Job **list = x_new(jobs->v.n + 1, sizeof(*list));
	struct err err = { 0 };

	m.jobs = list;
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];

		if ((job_lives(j) || q->include_ended) &&
		    (!q->name[0] || strcmp(q->name, j->s.name) == 0)) {
			struct job_row *row = &rows[m.n_jobs];

			list[m.n_jobs++] = &row->m;
			row_init(row, j);
		}
	}
	call_answer(call, 0, &m.base, &err);
	for (size_t i = 0; i < m.n_jobs; i++) {
		row_fini(&rows[i]);
	}
	free(rows);
	free(list);
}
