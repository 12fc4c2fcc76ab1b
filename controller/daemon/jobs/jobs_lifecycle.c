/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When jobs go on: a clock sees to the end of a job's time and to what is tried again,
 * and what the configuration says after each change is where they are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define SAVE_AGAIN_NS ((int64_t)1000000000)	/* what the store has refused */
#define OTHER_FILE_NS ((int64_t)1000000000)	/* until it is looked whether that is over */
#define NS_PER_MS 1000000
#define NOTICE_NS ((int64_t)300 * 1000000000)	/* of an end, or a tenth of the duration */

/* ---- the clock ----------------------------------------------------------- */

/* The sooner of two, of which `wait` is 0 when there is none yet. */
static int64_t sooner(int64_t wait, int64_t left)
{
	left = left > 0 ? left : 1;
	return !wait || left < wait ? left : wait;
}

/* When it is told that it ends soon, wall clock: at once if it makes room. */
static int64_t notice_at(const struct job *j)
{
	const int64_t tenth = j->s.duration_ns / 10;

	return j->s.preempt_ns ? 1 : job_ends_ns(j) - (tenth < NOTICE_NS ? tenth : NOTICE_NS);
}

/* Nanoseconds until something is due by itself, 0: nothing is. */
static int64_t next_due(const struct jobs *jobs)
{
	int64_t now = clk_wall_ns(), wait = 0;

	if (jobs->retry_ns) {
		wait = sooner(wait, jobs->retry_ns - clk_now_ns());
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];

		if (j->s.state == STORE_JOB_RUNNING && job_ends_ns(j)) {
			wait = sooner(wait, (j->end_told ? job_ends_ns(j) : notice_at(j)) - now);
		}
		if (job_repair_wait_ns(j) > 0) {
			wait = sooner(wait, job_repair_wait_ns(j));
		}
		if (job_lives(j) && j->retry_ns) {
			wait = sooner(wait, j->retry_ns - clk_now_ns());
		}
		if (j->moved || j->retold) {
			wait = sooner(wait, SAVE_AGAIN_NS);
		}
	}
	return wait;
}

/* For the next that is due: a job's end, a repair, another try. */
static void set_clock(struct jobs *jobs)
{
	int64_t wait = next_due(jobs);

	if (wait) {
		part_timer_start(jobs->clock, (wait + NS_PER_MS - 1) / NS_PER_MS);
	} else {
		part_timer_stop(jobs->clock);
	}
}

/* ---- what is due ---------------------------------------------------------- */

static void clear_if_over(int64_t *retry_ns, int64_t now)
{
	*retry_ns = *retry_ns > now ? *retry_ns : 0;
}

/* One that runs, whose end may have come, or come near. */
static void take_end(struct job *j, int64_t wall)
{
	const struct daemon_event ev = { .kind = EVENT_KIND(JOB_ENDING_SOON), .job = j->s.name };
	const bool makes_room = j->s.preempt_ns && j->s.problem[0];
	char when[32];

	if (job_ends_ns(j) <= wall) {
		job_move(j, STORE_JOB_ENDING, makes_room ? j->s.problem : "its time is over");
	} else if (!j->end_told && notice_at(j) <= wall) {
		j->end_told = true;
		event_emit(j->jobs->env->events, &ev, "job %s ends at %s%s%s", j->s.name,
			   clk_iso(job_ends_ns(j), when, sizeof(when)), makes_room ? ": " : "",
			   makes_room ? j->s.problem : "");
	}
}

/* Jobs with a duration that is over end, and what was to be tried later may be tried. */
static void take_due(struct jobs *jobs)
{
	int64_t wall = clk_wall_ns(), now = clk_now_ns();

	clear_if_over(&jobs->retry_ns, now);
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		clear_if_over(&j->retry_ns, now);
		if (j->s.state == STORE_JOB_RUNNING && job_ends_ns(j)) {
			take_end(j, wall);
		}
	}
}

/* The engine has the devices of another file than the one in force: a plan is made for it, or a
 * change to it was left half done, and then hosts and light are neither as before nor as planned
 * for the jobs of either, until an operator finishes it. What was left of a job's own change is in
 * no client's way, and the next try finishes it. */
static bool has_other_file(const struct daemon_env *env)
{
	const struct model_fabric *f = apply_fabric(env->apply);
	struct store_config cfg;
	bool other;

	if (!f || store_config(env->store, &cfg, NULL)) {
		return !f;
	}
	other = f->config.len != cfg.config.len ||
		memcmp(f->config.text, cfg.config.text, f->config.len) != 0;
	store_config_fini(&cfg);
	return other;
}

bool jobs_may_begin(const struct jobs *jobs)
{
	const struct daemon_env *env = jobs->env;

	return jobs->n_busy == 0 && !jobs->suspect && !env->changing &&
	       !env->reading && env->applied &&
	       !changes_confirm(jobs->changes)->change;
}

/* What is due, and a change for all that may go on. */
static void advance(struct jobs *jobs)
{
	if (jobs->env->draining || jobs->env->read_only) {
		return;
	}
	jobs_forget_over(jobs);
	take_due(jobs);
	/* No host is given to one while the store has it with another. */
	if (jobs_flush(jobs) && jobs_may_begin(jobs) && !jobs->retry_ns) {
		if (jobs->v.n > 0 && has_other_file(jobs->env)) {
			jobs->retry_ns = clk_now_ns() + OTHER_FILE_NS;
		} else {
			jobs_begin_next(jobs);
			jobs_flush(jobs);
		}
	}
	set_clock(jobs);
}

void jobs_advance(struct jobs *jobs)
{
	part_timer_start(jobs->clock, 0);
}

/* Its hosts are those of the configuration, in which it may have moved. */
static void take_nodes(struct job *j, const struct model_fabric *f, int at)
{
	const struct model_job *m = &f->jobs[at];
	char *names = job_node_names(f, m->hosts, m->n_hosts);

	if (strcmp(names, j->s.nodes) == 0) {
		free(names);
		return;
	}
	free(j->s.nodes);
	j->s.nodes = names;
	j->moved = true;
}

/* What the fabric's configuration has of this name, or NULL. */
static const struct model_request *find_request(const struct model_fabric *f, const char *name)
{
	const struct model_config *c = &f->config;

	for (int i = 0; i < c->n_requests; i++) {
		if (strcmp(c->requests[i].name, name) == 0) {
			return &c->requests[i];
		}
	}
	return NULL;
}

/* What the configuration has of this name is this job, not one that replaces it or that it is to
 * replace. */
static bool is_job(const struct job *j, const struct model_request *q)
{
	return q && (j->req->n_circuits == 0 || strcmp(q->circuits, j->circuits) == 0);
}

/* Where the configuration shows a job that is not in the queue. A change that is open may yet be
 * taken back, and does not say that a job has begun. */
static void settle_job(struct job *j, const struct model_fabric *f)
{
	bool open = apply_journal(j->jobs->env->apply, 0) != NULL;
	const struct model_request *q = f ? find_request(f, j->s.name) : NULL;
	bool active = is_job(j, q);

	if (active) {
		take_nodes(j, f, model_find_job(f, j->s.name));
		free(j->ports);
		j->ports = x_dup(q->ports);
	}
	if (active && open && j->s.state == STORE_JOB_STARTING) {
		return;
	}
	if (active && (j->s.state == STORE_JOB_STARTING || j->moving)) {
		job_move(j, j->moving ? j->s.state : STORE_JOB_RUNNING, "");
	} else if (!active && j->s.state != STORE_JOB_STARTING) {
		job_move(j, STORE_JOB_ENDED, j->s.problem);
	} else if (!active && !j->busy && (!j->part || j->jobs->n_busy == 0)) {
		job_move(j, job_was_released(j) ? STORE_JOB_ENDED : STORE_JOB_QUEUED, "");
	}
}

/* The configuration is the truth about which jobs have circuits: each job that is
 * not in the queue takes the state that the configuration shows, whatever weftd knew
 * of it when it ended. Those that wait for their part of a change that failed keep what they were
 * given, unless the change was another's. */
void jobs_settle(struct jobs *jobs)
{
	const struct model_fabric *f = apply_fabric(jobs->env->apply);

	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (j->s.state == STORE_JOB_QUEUED && j->req->ring[0]) {
			j->retry_ns = 0;	/* there may be channels now */
		} else if (job_lives(j) && j->s.state != STORE_JOB_QUEUED) {
			settle_job(j, f);
		}
	}
	jobs_keep_loss(jobs);
	jobs_flush(jobs);
}

void jobs_devices_read(struct jobs *jobs)
{
	int n;
	const struct apply_device *v = apply_devices(jobs->env->apply, &n);
	bool all = true;

	for (int i = 0; i < n; i++) {
		all = all && (v[i].reachable || !apply_is_read(&v[i]));
	}
	for (size_t i = 0; i < jobs->v.n && all; i++) {
		jobs->v.v[i]->retry_ns = 0;
	}
	if (all) {
		jobs->retry_ns = 0;
	}
	jobs_advance(jobs);
}

void jobs_first_read(struct jobs *jobs)
{
	jobs_settle(jobs);
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->s.state == STORE_JOB_RUNNING && !jobs->v.v[i]->moved) {
			job_send_to_all(jobs->v.v[i]);
		}
	}
	jobs_advance(jobs);
}

/* ---- life ---------------------------------------------------------------- */

static void on_time(void *arg)
{
	advance(arg);
}

int jobs_new(struct daemon_env *env, struct plan_queue *queue, struct job_status *status,
	     struct drain *drain, struct changes *changes, struct jobs **out, struct err *err)
{
	struct jobs *jobs = x_new(1, sizeof(*jobs));
	int r;

	*jobs = (struct jobs){ .env = env, .queue = queue, .status = status, .drain = drain,
			       .changes = changes, .change_ns = JOB_CHANGE_NS };
	jobs->clock = part_timer_new(env, on_time, jobs);
	r = jobs_load(jobs, err);
	if (r) {
		jobs_free(jobs);
		return r;
	}
	*out = jobs;
	return 0;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs) {
		return;
	}
	jobs_forget_all(jobs);
	part_timer_free(jobs->clock);
	free(jobs);
}

void jobs_reload(struct jobs *jobs)
{
	struct jobs fresh = *jobs;
	struct err ignored = { 0 };

	memset(&fresh.v, 0, sizeof(fresh.v));
	if (jobs_load(&fresh, &ignored)) {
		jobs_forget_all(&fresh);
		return;
	}
	jobs_forget_all(jobs);
	jobs->v = fresh.v;
	for (size_t i = 0; i < jobs->v.n; i++) {
		jobs->v.v[i]->jobs = jobs;
	}
}
