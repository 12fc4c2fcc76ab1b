/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of jobs and the state of each: what all the other files look at and move on, and what
 * needs none of them.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* ---- the list ------------------------------------------------------------ */

static void job_free(struct job *j)
{
	store_job_fini(&j->s);
	rpc_free_message(j->req ? &j->req->base : NULL);
	free(j->circuits);
	free(j->topology);
	free(j->ports);
	vec_fini(&j->calls);
	free(j->moving);
	free(j->reserved);
	free(j->why_later);
	free(j);
}

void jobs_forget_all(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		job_free(jobs->v.v[i]);
	}
	vec_fini(&jobs->v);
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
	j->topology = job_topology_text(j->req);
	j->ports = job_ports_text(j->req);
	vec_push(&jobs->v, j);
	*out = j;
	return 0;
}

void jobs_drop_last(struct jobs *jobs)
{
	job_free(jobs->v.v[--jobs->v.n]);
}

int jobs_load(struct jobs *jobs, struct err *err)
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

/* The list is by id, and so are those that the store keeps. */
void jobs_forget_over(struct jobs *jobs)
{
	size_t over = 0, kept = 0;

	for (size_t i = 0; i < jobs->v.n; i++) {
		over += !job_lives(jobs->v.v[i]);
	}
	if (over <= STORE_JOBS_MAX) {
		return;
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (over > STORE_JOBS_MAX && !job_lives(j) && !j->moved && j != jobs->suspect) {
			job_free(j);
			over--;
		} else {
			jobs->v.v[kept++] = j;
		}
	}
	jobs->v.n = kept;
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

bool replaces_job(const Weft__V1__RequestJobRequest *q, const char *name, const char *other)
{
	bool found = q->replace && strcmp(name, other) == 0;

	for (size_t i = 0; i < q->n_replaces && !found; i++) {
		found = strcmp(q->replaces[i], other) == 0;
	}
	return found;
}

struct job *job_replacement(const struct job *j)
{
	for (size_t i = j->jobs->v.n; i-- > 0;) {
		struct job *o = j->jobs->v.v[i];

		if (o->s.id <= j->s.id) {
			break;
		}
		if (job_lives(o) && replaces_job(o->req, o->s.name, j->s.name)) {
			return o;
		}
	}
	return NULL;
}

void jobs_count(const struct jobs *jobs, struct jobs_figures *out)
{
	const int64_t now = clk_wall_ns();

	*out = (struct jobs_figures){ .started = jobs->n_started, .waited_ns = jobs->waited_ns };
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct store_job *s = &jobs->v.v[i]->s;

		out->n[s->state]++;
		if (s->state == STORE_JOB_QUEUED && now - s->asked_ns > out->longest_ns) {
			out->longest_ns = now - s->asked_ns;
		}
	}
}

void jobs_add_requests(const struct jobs *jobs, struct model_config *config)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];
		const struct model_request q = job_value(j);
		const struct job *next = job_replacement(j);

		if (job_has_circuits(j) && !(next && job_has_circuits(next))) {
			model_config_add(config, &q);
		}
	}
}

/* ---- one of them --------------------------------------------------------- */

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

int64_t job_ends_ns(const struct job *j)
{
	int64_t end;

	if (!j->s.duration_ns) {
		return j->s.preempt_ns;
	}
	end = __builtin_add_overflow(j->s.started_ns, j->s.duration_ns, &end) ? INT64_MAX : end;
	return j->s.preempt_ns && j->s.preempt_ns < end ? j->s.preempt_ns : end;
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
		if (j->jobs) {
			j->jobs->n_started++;
			j->jobs->waited_ns += j->s.started_ns - j->s.asked_ns;
		}
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
