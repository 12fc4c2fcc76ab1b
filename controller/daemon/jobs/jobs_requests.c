/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, releases, renewals. A request is checked against the present fabric before it enters
 * the list, and is made durable before it is answered. The same request id again is the same job,
 * and so are just the circuits that a job of the same user has: what was asked for is there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/number/units.h"

#define MAX_LIVING 4096		/* jobs that are not over */

/* A job is its owner's; operators may end or change any. */
static int check_owner(const struct job *j, struct rpc_call *call, struct err *err)
{
	char who[32];

	if (strcmp(j->s.who, call_user(call, who, sizeof(who))) == 0) {
		return 0;
	}
	return access_need(j->jobs->env->access, rpc_call_peer(call), ACCESS_OPERATOR,
			   "a job of another user", err);
}

/* ---- RequestJob ---------------------------------------------------------- */

/* New in the fabric's own jobs and among those that live, unless it is to replace one of these;
 * short, and of letters that a configuration takes without quotes. */
static int check_name(const struct jobs *jobs, const char *name, bool replace, struct err *err)
{
	const struct model_fabric *f = apply_fabric(jobs->env->apply);
	const struct job *j = jobs_find(jobs, name);

	if (strlen(name) > CONF_MAX_NAME ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")]) {
		return err_set(err, WEFT_EINVAL, "name: \"%.70s\" is not up "
			       "to %d letters, digits, - and _", name,
			       CONF_MAX_NAME);
	}
	if (j && replace && j->req->n_circuits > 0) {
		return 0;
	}
	if (j || (f && model_find_job(f, name) >= 0)) {
		return err_set(err, WEFT_EINVAL, "name: there is a job \"%s\" already", name);
	}
	return 0;
}

/* Before anything is looked for, or made for them. */
static int check_counts(const Weft__V1__RequestJobRequest *q, struct err *err)
{
	if (q->n_nodes > MODEL_MAX_HOSTS) {
		return err_set(err, WEFT_ELIMIT, "nodes: %zu are more than %d", q->n_nodes,
			       MODEL_MAX_HOSTS);
	}
	if (q->n_ports > MODEL_MAX_PORTS / (q->n_nodes > 0 ? q->n_nodes : 1)) {
		return err_set(err, WEFT_ELIMIT, "ports: %zu of each of %zu nodes are more than %d",
			       q->n_ports, q->n_nodes, MODEL_MAX_PORTS);
	}
	return q->n_circuits > MODEL_MAX_SIDE ?
	       err_set(err, WEFT_ELIMIT, "circuits: %zu are more than %d", q->n_circuits,
		       MODEL_MAX_SIDE) : 0;
}

/* Circuits are all that a job of circuits has. */
static int check_kind(const Weft__V1__RequestJobRequest *q, struct err *err)
{
	const bool hosts = q->n_nodes > 0 || q->count || q->ranks || q->collective[0] ||
			   q->step[0] ||
			   q->size_bytes || q->topology[0] || q->algorithm[0] || q->min_ports ||
			   q->ring[0] || q->channels || q->n_ports > 0 || q->port_count ||
			   q->n_shape > 0 || q->twist || q->spares ||
			   q->repair || q->protect[0];

	if (q->n_circuits > 0 && hosts) {
		return err_set(err, WEFT_EINVAL, "circuits: a job of circuits has no hosts, "
			       "collective, ports, repair or protect beside them");
	}
	if (q->n_circuits == 0 && (q->replace || q->n_replaces || q->partial || q->mode)) {
		return err_set(err, WEFT_EINVAL, "replace, replaces, partial and mode are for "
			       "circuits, and there are none");
	}
	if (q->replace && !q->name[0]) {
		return err_set(err, WEFT_EINVAL, "replace: name is empty");
	}
	if (q->grace_ns < 0 || (q->grace_ns && !q->preemptible)) {
		return err_set(err, WEFT_EINVAL, "grace_ns: it is negative, or the job is not "
			       "preemptible");
	}
	return q->duration_ns < 0 ? err_set(err, WEFT_EINVAL, "duration_ns: it is negative") : 0;
}

/* Of all hosts that are named. */
static int check_ports(const struct model_fabric *f, const Weft__V1__RequestJobRequest *q,
		       struct err *err)
{
	char name[3 * CONF_MAX_NAME];
	int port, lanes, r = 0;

	if (q->port_count < 0 || (q->n_ports && q->port_count)) {
		return err_set(err, WEFT_EINVAL, "port_count is negative, or ports are named "
			       "beside it");
	}
	if (q->ring[0] && (q->n_ports > 0 || q->port_count)) {
		return err_set(err, WEFT_EINVAL, "ports: hosts on a ring have none");
	}
	for (size_t i = 0; i < q->n_ports; i++) {
		if (!q->ports[i][0] || strlen(q->ports[i]) > CONF_MAX_NAME ||
		    strpbrk(q->ports[i], " \n")) {
			return err_set(err, WEFT_EINVAL, "ports: \"%.70s\" is no name of a port",
				       q->ports[i]);
		}
		for (size_t h = 0; h < q->n_nodes && r == 0; h++) {
			snprintf(name, sizeof(name), "%.70s.%s", q->nodes[h], q->ports[i]);
			r = model_find_port(f, name, &port, &lanes, err);
		}
		if (r) {
			err_wrap(err, "ports");
			return err->code = WEFT_EINVAL;
		}
	}
	return 0;
}

/* A slice is all that a job says of its hosts, their ports and topology. */
static int check_shape(const Weft__V1__RequestJobRequest *q, struct err *err)
{
	if (q->n_shape == 0) {
		return q->twist || q->spares ? err_set(err, WEFT_EINVAL, "twist and spares are of "
						       "a shape, and there is none") : 0;
	}
	for (size_t i = 0; i < 3; i++) {
		if (q->n_shape != 3 || q->shape[i] < 1 || q->shape[i] > MODEL_MAX_HOSTS) {
			return err_set(err, WEFT_EINVAL, "shape: not the chips along x, y and z");
		}
	}
	if (q->count || q->ranks || q->topology[0] || q->min_ports || q->ring[0] ||
	    q->n_ports > 0 || q->port_count || q->step[0]) {
		return err_set(err, WEFT_EINVAL, "shape: count, ranks, topology, ports, ring and "
			       "step are not beside a shape");
	}
	return q->spares < 0 || q->spares > MODEL_MAX_HOSTS ?
	       err_set(err, WEFT_EINVAL, "spares: %d is not 0 to %d", q->spares, MODEL_MAX_HOSTS)
	       : 0;
}

static int check_protect(const Weft__V1__RequestJobRequest *q, struct err *err)
{
	const bool none = !q->protect[0] || strcmp(q->protect, "none") == 0;

	if (!none && strcmp(q->protect, "1+1") != 0 && strcmp(q->protect, "shared") != 0) {
		return err_set(err, WEFT_EINVAL, "protect: \"%.40s\" is not none, 1+1 or shared",
			       q->protect);
	}
	return none || !q->ring[0] ? 0 : err_set(err, WEFT_EINVAL, "protect: only for jobs on "
						 "switches, not on a ring");
}

/* What can be checked of a collective without a fabric. */
static int check_numbers(const Weft__V1__RequestJobRequest *q, struct err *err)
{
	if (q->ranks < 0 || q->ranks > MODEL_MAX_HOSTS || (q->ranks && (q->count || q->ring[0]))) {
		return err_set(err, WEFT_EINVAL, "ranks: %d is not 2 to %d, or is beside count or "
			       "ring", q->ranks, MODEL_MAX_HOSTS);
	}
	if (q->n_nodes == 0 && !q->ranks && q->n_shape == 0 &&
	    (q->count < 2 || q->count > MODEL_MAX_HOSTS)) {
		return err_set(err, WEFT_EINVAL, "count: %d is not 2 to %d",
			       q->count, MODEL_MAX_HOSTS);
	}
	if (q->n_nodes > 0 && q->count && (size_t)q->count != q->n_nodes) {
		return err_set(err, WEFT_EINVAL, "count: %d, but %zu nodes", q->count, q->n_nodes);
	}
	if (q->size_bytes <= 0 && !q->step[0]) {
		return err_set(err, WEFT_EINVAL, "size_bytes: %" PRId64 " is not 1 or more",
			       q->size_bytes);
	}
	if (q->min_ports < 0 || q->channels < 0) {
		return err_set(err, WEFT_EINVAL, "%s: it is negative",
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
	return check_ports(f, q, err);
}

/* A training step has all that its collectives need, and hosts of as many ranks as its mesh. */
static int check_step(const struct model_fabric *f, const Weft__V1__RequestJobRequest *q,
		      struct err *err)
{
	int asked = q->n_nodes > 0 ? 0 : q->ranks ? q->ranks : q->count, ranks;

	for (size_t i = 0; i < q->n_nodes; i++) {
		asked += f->hosts[model_find_host(f, q->nodes[i])].ranks;
	}
	ranks = asked;

	if (q->collective[0] || q->size_bytes || q->topology[0] || q->algorithm[0] ||
	    q->ring[0] || q->channels) {
		return err_set(err, WEFT_EINVAL, "step: collective, size_bytes, topology, "
			       "algorithm, ring and channels are of one collective, not beside "
			       "a step");
	}
	if (model_check_step(q->step, &ranks, err)) {
		return err->code;
	}
	return ranks == asked ? 0 : err_set(err, WEFT_EINVAL, "step: mesh: of %d ranks, the job "
					    "has %d", ranks, asked);
}

/* A collective: whether it could be, some time. */
static int check_collective(const struct jobs *jobs, const Weft__V1__RequestJobRequest *q,
			    struct err *err)
{
	struct job j = { .jobs = (struct jobs *)jobs, .req = (Weft__V1__RequestJobRequest *)q,
			 .s.name = q->name };
	enum coll_kind kind;
	int r;

	if ((r = check_shape(q, err)) || (r = check_protect(q, err)) ||
	    (r = check_numbers(q, err)) ||
	    (r = check_text("topology", q->topology, err)) ||
	    (r = check_text("algorithm", q->algorithm, err)) ||
	    (r = check_places(jobs, q, err))) {
		return r;
	}
	if (q->step[0]) {
		r = check_step(apply_fabric(jobs->env->apply), q, err);
	} else if ((r = coll_kind_parse(q->collective, &kind, err))) {
		err_wrap(err, "collective");
	}
	return r ? r : job_check_ever(&j, err);
}

/* Who does not wait for others is told at once that he would have to. Ports of jobs that wait are
 * taken as well. */
static int check_now(struct jobs *jobs, const Weft__V1__RequestJobRequest *q, struct err *err)
{
	const bool takes = q->mode == WEFT__V1__MODE__MODE_UPDATE;
	struct job_view v;
	int r;

	job_view_init(&v, jobs);
	job_view_mark(&v, jobs, NULL, 0);
	job_view_mark_queued(&v, jobs);
	r = circuits_check(&v, jobs, q->name, q, err);
	job_view_fini(&v);
	return r == WEFT_EINVAL || (q->no_queue && !(takes && r == WEFT_EHELD)) ? r : 0;
}

/* They are circuits of his. */
static int check_replaced(const struct jobs *jobs, struct rpc_call *call,
			  const Weft__V1__RequestJobRequest *q, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < jobs->v.n && r == 0; i++) {
		const struct job *j = jobs->v.v[i];

		if (!job_lives(j) || !replaces_job(q, q->name, j->s.name)) {
			continue;
		}
		r = j->req->n_circuits > 0 ? check_owner(j, call, err) :
		    err_set(err, WEFT_EINVAL, "replaces: job %s is not of circuits", j->s.name);
	}
	return r;
}

/* Everything that would never do is refused here, and what may do later is queued. */
static int check_request(struct jobs *jobs, struct rpc_call *call,
			 const Weft__V1__RequestJobRequest *q, struct err *err)
{
	size_t living = 0;
	int r;

	for (size_t i = 0; i < jobs->v.n; i++) {
		living += job_lives(jobs->v.v[i]);
	}
	if (living >= MAX_LIVING) {
		return err_set(err, WEFT_ELIMIT, "there are %d jobs already", MAX_LIVING);
	}
	if ((r = check_kind(q, err)) ||
	    (q->name[0] && (r = check_name(jobs, q->name, q->replace, err))) ||
	    (r = check_replaced(jobs, call, q, err)) ||
	    (q->mode == WEFT__V1__MODE__MODE_UPDATE &&
	     (r = access_need(jobs->env->access, rpc_call_peer(call), ACCESS_OPERATOR,
			      "mode update", err)))) {
		return r;
	}
	return q->n_circuits > 0 ? check_now(jobs, q, err) : check_collective(jobs, q, err);
}

/* Whether there can be jobs on request at all. */
static int check_fabric(const struct jobs *jobs, struct err *err)
{
	if (jobs->env->divided) {
		return err_set(err, WEFT_EUNSUPPORTED, "several weftd lead this fabric: jobs on "
			       "request are not supported, only those of the fabric file");
	}
	if (!jobs->env->applied || !apply_fabric(jobs->env->apply)) {
		return err_set(err, WEFT_ENOTFOUND, "no configuration was ever applied");
	}
	return 0;
}

/* "job-N", the first that is free after the last id. */
static char *default_name(const struct jobs *jobs)
{
	int64_t id = jobs->v.n ? jobs->v.v[jobs->v.n - 1]->s.id : 0;
	char text[32];
	struct err err;

	do {
		snprintf(text, sizeof(text), "job-%" PRId64, ++id);
	} while (check_name(jobs, text, false, &err));
	return x_dup(text);
}

/* The fabric's longest for one that is asked for without an end. WEFT_EINVAL: it is longer. */
static int check_lease(const struct jobs *jobs, int64_t duration_ns, int64_t *out, struct err *err)
{
	const int64_t most = apply_fabric(jobs->env->apply)->changes.max_lease_ns;
	char text[32];

	*out = duration_ns ? duration_ns : most;
	return !most || duration_ns <= most ? 0 :
	       err_set(err, WEFT_EINVAL, "duration_ns: it is longer than %s, the fabric's "
		       "max-lease", unit_human(UNIT_NS, (double)most, text, sizeof(text)));
}

/* Makes a job of a request that was checked; durable before it is in the answer, and
 * not in the list when it could not be. */
static int new_job(struct jobs *jobs, struct rpc_call *call, const Weft__V1__RequestJobRequest *q,
		   int64_t lease_ns, struct job **out, struct err *err)
{
	char who[32];
	struct store_job s = {
		.name = q->name[0] ? x_dup(q->name) : default_name(jobs),
		.who = x_dup(call_user(call, who, sizeof(who))),
		.request_id = x_dup(q->request_id),
		.nodes = x_dup(""), .problem = x_dup(""), .spec = job_pack(q),
		.priority = q->priority, .preemptible = q->preemptible,
		.duration_ns = lease_ns, .asked_ns = clk_wall_ns(),
	};
	int r = jobs_add(jobs, &s, out, err);

	if (r) {
		return r;
	}
	r = store_jobs_put(jobs->env->store, &(struct store_job *){ &(*out)->s }, 1, err);
	if (r) {
		jobs_drop_last(jobs);
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

/* The job of the same user that has just the circuits that are asked for, and keeps them; NULL:
 * there is none. One that is to replace another has its name. */
static struct job *find_there(const struct jobs *jobs, struct rpc_call *call,
			      const Weft__V1__RequestJobRequest *q)
{
	char who[32];

	call_user(call, who, sizeof(who));
	for (size_t i = jobs->v.n; q->n_circuits > 0 && i-- > 0;) {
		struct job *j = jobs->v.v[i];
		const bool named = !q->name[0] || strcmp(q->name, j->s.name) == 0;

		if (!named || !job_lives(j) || j->s.state == STORE_JOB_ENDING ||
		    job_was_released(j)) {
			continue;
		}
		if (same_circuits(q, j->req) && strcmp(j->s.who, who) == 0) {
			return j;
		}
		if (q->replace) {
			break;		/* the newest of the name counts */
		}
	}
	return NULL;
}

/* Those in whose place it is that have not begun are not what is wanted any more. */
static void end_replaced(const struct jobs *jobs, const struct job *by)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (j != by && j->s.state == STORE_JOB_QUEUED &&
		    replaces_job(by->req, by->s.name, j->s.name)) {
			job_move(j, STORE_JOB_ENDED, "replaced before it began");
		}
	}
}

/* From now on, or from its start: no shorter than it was. WEFT_EINFEASIBLE: others were told that
 * they run then. */
static int extend(struct job *j, int64_t duration_ns, struct err *err)
{
	const bool runs = j->s.state == STORE_JOB_RUNNING;
	const int64_t now = clk_wall_ns(), begin = runs ? j->s.started_ns : now;
	int64_t whole, end;
	int r = 0;

	if (__builtin_add_overflow(now > begin ? now - begin : 0, duration_ns, &whole)) {
		whole = INT64_MAX;
	}
	if (!j->s.duration_ns || duration_ns <= 0 || whole <= j->s.duration_ns) {
		return 0;
	}
	if (j->s.state == STORE_JOB_QUEUED && j->s.told_ns) {
		return err_set(err, WEFT_EINFEASIBLE, "job %s waits, and was told its start for "
			       "the duration that it asked for", j->s.name);
	}
	if (j->s.state != STORE_JOB_QUEUED) {
		end = __builtin_add_overflow(begin, whole, &end) ? INT64_MAX : end;
		r = job_check_longer(j, end, err);
	}
	if (r == 0) {
		j->s.duration_ns = whole;
		j->moved = true;
		j->end_told = false;
	}
	return r;
}

/* The job that a request is for: one that is there, or a new one. */
static int find_or_make(struct jobs *jobs, struct rpc_call *call,
			const Weft__V1__RequestJobRequest *q, struct job **out, struct err *err)
{
	struct job *j = made_before(jobs, q->request_id);
	int64_t lease_ns;
	char who[64];
	int r;

	if (j) {
		*out = j;
		return check_repeated(j, call, q, err);
	}
	r = check_lease(jobs, q->duration_ns, &lease_ns, err);
	if (r) {
		return r;
	}
	*out = find_there(jobs, call, q);
	if (*out) {
		return extend(*out, lease_ns, err);
	}
	if ((r = check_request(jobs, call, q, err)) ||
	    (r = new_job(jobs, call, q, lease_ns, out, err))) {
		return r;
	}
	end_replaced(jobs, *out);
	log_info("jobs", "job %s: asked for by %s", (*out)->s.name,
		 user_name((*out)->s.who, who, sizeof(who)));
	return 0;
}

void handle_request_job(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	struct jobs *jobs = arg;
	struct named_request named = { 0 };
	struct job *j = NULL;
	struct err err = { 0 };

	if (!env_may_change(jobs->env, call)) {
		return;
	}
	if (check_counts((const void *)msg, &err) || check_fabric(jobs, &err) ||
	    named_request_init(&named, apply_fabric(jobs->env->apply), (const void *)msg, &err) ||
	    find_or_make(jobs, call, &named.q, &j, &err)) {
		rpc_finish_err(call, &err);
		named_request_fini(&named);
		return;
	}
	named_request_fini(&named);
	jobs_flush(jobs);
	job_attach(j, call, false);
	jobs_advance(jobs);
}

/* ---- ReleaseJob, RenewJob ------------------------------------------------ */

/* Recorded before anything is said of it: one that is not would be forgotten. */
static int release(struct job *j, struct err *err)
{
	const enum store_job_state was = j->s.state;
	struct store_job s = j->s;
	int r;

	if (was == STORE_JOB_QUEUED) {
		s.state = STORE_JOB_ENDED;
		s.ended_ns = clk_wall_ns();
	} else if (was == STORE_JOB_RUNNING) {
		s.state = STORE_JOB_ENDING;
	} else if (was == STORE_JOB_STARTING) {
		s.duration_ns = JOB_RELEASED;
	}
	s.problem = s.state == was ? s.problem : (char *)"";
	r = store_jobs_put(j->jobs->env->store, &(struct store_job *){ &s }, 1, err);
	if (r) {
		return r;
	}
	j->s.duration_ns = s.duration_ns;
	if (s.state != was) {
		job_move(j, s.state, "");
		job_tell(j);
	}
	return 0;
}

void handle_release_job(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const char *name = ((const Weft__V1__ReleaseJobRequest *)msg)->name;
	struct jobs *jobs = arg;
	struct job *j = jobs_find(jobs, name), *next;
	struct err err = { 0 };

	if (!env_may_change(jobs->env, call)) {
		return;
	}
	if (!j) {
		err_set(&err, WEFT_ENOTFOUND, "there is no job \"%.70s\"", name);
	} else if (check_owner(j, call, &err) == 0) {
		/* First what would come in its place. */
		next = job_replacement(j);
		if (!next || release(next, &err) == 0) {
			release(j, &err);
		}
	}
	if (err.code) {
		rpc_finish_err(call, &err);
		return;
	}
	job_attach(j, call, true);
	jobs_flush(jobs);
	jobs_advance(jobs);
}

/* The errors of extend; WEFT_ENOTFOUND, WEFT_EINVAL; WEFT_EINFEASIBLE: it ends already. */
static int renew(struct jobs *jobs, struct rpc_call *call, const Weft__V1__RenewJobRequest *q,
		 struct job **out, struct err *err)
{
	struct job *j = jobs_find(jobs, q->name);
	int64_t lease_ns;
	int r;

	if (!j) {
		return err_set(err, WEFT_ENOTFOUND, "there is no job \"%.70s\"", q->name);
	}
	if (q->duration_ns <= 0) {
		return err_set(err, WEFT_EINVAL, "duration_ns: a lease lasts longer than that");
	}
	if ((r = check_owner(j, call, err)) ||
	    (r = check_lease(jobs, q->duration_ns, &lease_ns, err))) {
		return r;
	}
	if (j->s.state == STORE_JOB_ENDING || job_was_released(j)) {
		return err_set(err, WEFT_EINFEASIBLE, "job %s ends already", j->s.name);
	}
	*out = j;
	return extend(j, lease_ns, err);
}

void handle_renew_job(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	Weft__V1__RenewJobResponse m = WEFT__V1__RENEW_JOB_RESPONSE__INIT;
	struct job_row *row = NULL;
	struct jobs *jobs = arg;
	struct job *j = NULL;
	struct err err = { 0 };
	int r;

	if (!env_may_change(jobs->env, call)) {
		return;
	}
	r = renew(jobs, call, (const void *)msg, &j, &err);
	if (r == 0) {
		jobs_flush(jobs);
		row = job_row_new(j, &m.job);
	}
	call_answer(call, r, &m.base, &err);
	if (row) {
		job_row_free(row);
	}
	jobs_advance(jobs);
}

/* ---- SetLight ------------------------------------------------------------ */

void handle_set_light(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__SetLightRequest *req = (const void *)msg;
	struct jobs *jobs = arg;
	const struct job *j = jobs_find(jobs, req->job);
	struct err err = { 0 };

	if (j && check_owner(j, call, &err)) {
		rpc_finish_err(call, &err);
		return;
	}
	changes_set_light(jobs->changes, call, req);
}
