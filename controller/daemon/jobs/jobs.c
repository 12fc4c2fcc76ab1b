/*
 * The list of jobs, and the calls about them. A request is checked against the
 * present fabric before it enters the list, is made durable, and answered with
 * each state that the job comes to, until it runs (or has ended, for a release);
 * a client that goes away leaves its job as it is. The same request id again is
 * the same job.
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

#define MAX_LIVING 4096		/* jobs that are not over */
#define MAX_CALLS 64		/* that wait for one job */

_Static_assert((int)msg_job_state(STORE_JOB_FAILED) ==
	       (int)WEFT__V1__JOB_STATE__JOB_STATE_FAILED,
	       "the API's states are those of the store");

/* ---- life ---------------------------------------------------------------- */

static void job_free(struct job *j)
{
	store_job_fini(&j->s);
	rpc_free_message(j->req ? &j->req->base : NULL);
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

/* Adds a job at the end of the list, as one that has all its circuits until planning
 * says otherwise. Takes s over, also on error. */
static int add_job(struct jobs *jobs, struct store_job *s, struct job **out, struct err *err)
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
	vec_push(&jobs->v, j);
	*out = j;
	return 0;
}

static int load(struct jobs *jobs, struct err *err)
{
	struct store_job *v = NULL;
	struct job *j;
	int n = 0, r = store_jobs(jobs->env->store, &v, &n, err);

	for (int i = 0; i < n && r == 0; i++) {
		r = add_job(jobs, &v[i], &j, err);
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

/* A job as a message, and what it borrows beside the job's own strings. */
struct job_row {
	Weft__V1__Job m;
	char *nodes;		/* the names, cut into words */
	char **list;		/* each of them */
	struct buf spec;	/* what was asked for, as JSON */
	char who[64];		/* the name of who asked */
};

static void row_fini(struct job_row *row)
{
	free(row->nodes);
	free(row->list);
	buf_fini(&row->spec);
}

static void split_nodes(struct job_row *row, const char *nodes)
{
	size_t n = 0;
	char *rest, *name;

	row->nodes = x_dup(nodes);
	row->list = x_new(strlen(nodes) / 2 + 2, sizeof(*row->list));
	rest = row->nodes;
	while ((name = strsep(&rest, " ")) != NULL) {
		if (*name) {
			row->list[n++] = name;
		}
	}
	row->m.nodes = row->list;
	row->m.n_nodes = n;
}

static void row_init(struct job_row *row, const struct job *j)
{
	const struct model_request value = job_value(j);

	memset(row, 0, sizeof(*row));
	weft__v1__job__init(&row->m);
	split_nodes(row, j->s.nodes);
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
		err_set(&err, WEFT_EINFEASIBLE, "%s", j->s.problem);
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

/* Sends the call where the job is; keeps it while there is more to come. */
static void attach(struct job *j, struct rpc_call *call, bool release)
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

/* ---- RequestJob ---------------------------------------------------------- */

/* New in the fabric's own jobs and among those that live; short, and of letters that
 * a configuration takes without quotes. */
static int check_name(const struct jobs *jobs, const char *name, struct err *err)
{
	const struct model_fabric *f = apply_fabric(jobs->env->apply);

	if (strlen(name) > CONF_MAX_NAME ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")]) {
		return err_set(err, WEFT_EINVAL, "name: \"%.70s\" is not up "
			       "to %d letters, digits, - and _", name,
			       CONF_MAX_NAME);
	}
	if (jobs_find(jobs, name) || (f && model_find_job(f, name) >= 0)) {
		return err_set(err, WEFT_EINVAL, "name: there is a job \"%s\" already", name);
	}
	return 0;
}

/* What can be checked without a fabric. */
static int check_numbers(const Weft__V1__RequestJobRequest *q, struct err *err)
{
	if (q->n_nodes == 0 && (q->count < 2 || q->count > MODEL_MAX_HOSTS)) {
		return err_set(err, WEFT_EINVAL, "count: %d is not 2 to %d",
			       q->count, MODEL_MAX_HOSTS);
	}
	if (q->n_nodes > MODEL_MAX_HOSTS) {
		return err_set(err, WEFT_ELIMIT, "nodes: %zu are more than %d", q->n_nodes,
			       MODEL_MAX_HOSTS);
	}
	if (q->n_nodes > 0 && q->count && (size_t)q->count != q->n_nodes) {
		return err_set(err, WEFT_EINVAL, "count: %d, but %zu nodes", q->count, q->n_nodes);
	}
	if (q->size_bytes <= 0) {
		return err_set(err, WEFT_EINVAL, "size_bytes: %" PRId64 " is not 1 or more",
			       q->size_bytes);
	}
	if (q->duration_ns < 0 || q->min_ports < 0 || q->channels < 0) {
		return err_set(err, WEFT_EINVAL, "%s: it is negative",
			       q->duration_ns < 0 ? "duration_ns" :
			       q->min_ports < 0 ? "min_ports" : "channels");
	}
	if (q->repair == WEFT__V1__JOB_REPAIR__JOB_REPAIR_SPARE && q->ring[0]) {
		return err_set(err, WEFT_EUNSUPPORTED, "repair: spares are for "
			       "jobs on switches, not on a ring");
	}
	return 0;
}

/* Only what can be printed: it ends up in messages. */
static int check_text(const char *key, const char *text, struct err *err)
{
	for (const char *p = text; *p; p++) {
		if (*p < 0x20 || *p > 0x7e) {
			return err_set(err, WEFT_EINVAL,
				       "%s: \"%.40s\" holds a character that is not allowed", key,
				       text);
		}
	}
	return 0;
}

/* Hosts and ring are there in the present fabric; whether they are free is asked
 * later, as often as the job is tried. */
static int check_places(const struct jobs *jobs,
			const Weft__V1__RequestJobRequest *q, struct err *err)
{
	const struct model_fabric *f = apply_fabric(jobs->env->apply);
	int ring;

	if (!jobs->env->applied || !f) {
		return err_set(err, WEFT_ENOTFOUND, "no configuration was ever applied");
	}
	for (size_t i = 0; i < q->n_nodes; i++) {
		if (model_find_host(f, q->nodes[i]) < 0) {
			return err_set(err, WEFT_EINVAL, "nodes: there is no "
				       "host \"%.70s\"", q->nodes[i]);
		}
	}
	ring = q->ring[0] ? model_find_device(f, q->ring) : -1;
	if (q->ring[0] && (ring < 0 || f->devices[ring].kind != MODEL_RING)) {
		return err_set(err, WEFT_EINVAL, "ring: there is no ring "
			       "\"%.70s\"", q->ring);
	}
	return 0;
}

/* Everything that would never do is refused here, and what may do later is queued. */
static int check_request(const struct jobs *jobs,
			 const Weft__V1__RequestJobRequest *q, struct err *err)
{
	enum coll_kind kind;
	size_t living = 0;
	int r;

	if (jobs->env->divided) {
		return err_set(err, WEFT_EUNSUPPORTED, "several weftd lead this fabric: jobs on "
			       "request are not supported, only those of the fabric file");
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		living += job_lives(jobs->v.v[i]);
	}
	if (living >= MAX_LIVING) {
		return err_set(err, WEFT_ELIMIT, "there are %d jobs already", MAX_LIVING);
	}
	if ((q->name[0] && (r = check_name(jobs, q->name, err))) ||
	    (r = check_numbers(q, err)) || (r = check_text("topology", q->topology, err)) ||
	    (r = check_text("algorithm", q->algorithm, err)) ||
	    (r = check_places(jobs, q, err))) {
		return r;
	}
	return coll_kind_parse(q->collective, &kind, err) ? err_wrap(err, "collective") : 0;
}

/* "job-N", the first that is free after the last id. */
static char *default_name(const struct jobs *jobs)
{
	int64_t id = jobs->v.n ? jobs->v.v[jobs->v.n - 1]->s.id : 0;
	char text[32];
	struct err err;

	do {
		snprintf(text, sizeof(text), "job-%" PRId64, ++id);
	} while (check_name(jobs, text, &err));
	return x_dup(text);
}

/* Makes a job of a request that was checked; durable before it is in the answer, and
 * not in the list when it could not be. */
static int new_job(struct jobs *jobs, struct rpc_call *call, const Weft__V1__RequestJobRequest *q,
		   struct job **out, struct err *err)
{
	char who[32];
	struct store_job s = {
		.name = q->name[0] ? x_dup(q->name) : default_name(jobs),
		.who = x_dup(call_user(call, who, sizeof(who))),
		.request_id = x_dup(q->request_id),
		.nodes = x_dup(""), .problem = x_dup(""), .spec = job_pack(q),
		.priority = q->priority, .preemptible = q->preemptible,
		.duration_ns = q->duration_ns, .asked_ns = clk_wall_ns(),
	};
	int r = add_job(jobs, &s, out, err);

	if (r) {
		return r;
	}
	r = store_jobs_put(jobs->env->store, &(struct store_job *){ &(*out)->s }, 1, err);
	if (r) {
		jobs->v.n--;
		job_free(*out);
	}
	return r;
}

/* Whether a job that a request has made before is what this one asks for, of the same user. How
 * long it waits may be another. WEFT_EINVAL. */
static int check_repeated(const struct job *j, struct rpc_call *call,
			  const Weft__V1__RequestJobRequest *q, struct err *err)
{
	Weft__V1__RequestJobRequest same = *q;
	char who[32], *spec;
	bool equal;

	same.no_wait = j->req->no_wait;
	spec = job_pack(&same);
	equal = strcmp(spec, j->s.spec) == 0 &&
		strcmp(j->s.who, call_user(call, who, sizeof(who))) == 0;
	free(spec);
	return equal ? 0 : arguments_refused(q->request_id, err);
}

/* The job that this request has made before, or NULL. */
static struct job *made_before(const struct jobs *jobs, const char *id)
{
	for (size_t i = jobs->v.n; id[0] && i-- > 0;) {
		if (strcmp(jobs->v.v[i]->s.request_id, id) == 0) {
			return jobs->v.v[i];
		}
	}
	return NULL;
}

void handle_request_job(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__RequestJobRequest *q = (const void *)msg;
	struct jobs *jobs = arg;
	struct job *j = made_before(jobs, q->request_id);
	struct err err = { 0 };
	char who[64];

	if (!env_may_change(jobs->env, call)) {
		return;
	}
	if (j ? check_repeated(j, call, q, &err)
	      : check_request(jobs, q, &err) || new_job(jobs, call, q, &j, &err)) {
		rpc_finish_err(call, &err);
		return;
	}
	log_info("jobs", "job %s: asked for by %s", j->s.name,
		 user_name(j->s.who, who, sizeof(who)));
	attach(j, call, false);
	jobs_advance(jobs);
}

/* ---- ReleaseJob, ListJobs ------------------------------------------------ */

/* A job is its owner's; operators may end any. */
static int check_owner(const struct job *j, struct rpc_call *call, struct err *err)
{
	const struct rpc_peer *peer = rpc_call_peer(call);
	char who[32];

	if (strcmp(j->s.who, call_user(call, who, sizeof(who))) == 0) {
		return 0;
	}
	return access_need(j->jobs->env->access, peer, ACCESS_OPERATOR,
			   "a job of another user", err);
}

/* Before anything is said of it: a release that is not recorded would be forgotten. */
static int record_release(const struct job *j, struct err *err)
{
	struct store_job s = j->s;

	if (s.state == STORE_JOB_QUEUED) {
		s.state = STORE_JOB_ENDED;
		s.ended_ns = clk_wall_ns();
	} else if (s.state == STORE_JOB_RUNNING) {
		s.state = STORE_JOB_ENDING;
	} else if (s.state == STORE_JOB_STARTING) {
		s.duration_ns = JOB_RELEASED;
	}
	return store_jobs_put(j->jobs->env->store, &(struct store_job *){ &s }, 1, err);
}

void handle_release_job(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const char *name = ((const Weft__V1__ReleaseJobRequest *)msg)->name;
	struct jobs *jobs = arg;
	struct job *j = jobs_find(jobs, name);
	struct err err = { 0 };

	if (!env_may_change(jobs->env, call)) {
		return;
	}
	if (!j) {
		err_set(&err, WEFT_ENOTFOUND, "there is no job \"%.70s\"", name);
	} else if (check_owner(j, call, &err) == 0) {
		record_release(j, &err);
	}
	if (err.code) {
		rpc_finish_err(call, &err);
		return;
	}
	attach(j, call, true);
	if (j->s.state == STORE_JOB_QUEUED) {
		job_move(j, STORE_JOB_ENDED, "");
	} else if (j->s.state == STORE_JOB_RUNNING) {
		job_move(j, STORE_JOB_ENDING, "");
	} else if (j->s.state == STORE_JOB_STARTING) {
		j->s.duration_ns = JOB_RELEASED;
	}
	jobs_flush(jobs);
	jobs_advance(jobs);
}

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
