/*
 * Placing, starting and ending jobs. One change at a time: jobs that end go
 * first, then one that is to be repaired, then the first in the queue that
 * fits; one that does not fit may push out jobs of lower priority that have
 * agreed to that. What failed for a reason that passes is tried again after a
 * while, which a clock sees to, as it does for the end of a job's time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define RETRY_NS ((int64_t)10 * 1000000000)	/* after what may pass by itself */
#define OTHER_FILE_NS ((int64_t)1000000000)	/* until it is looked whether that is over */
#define NS_PER_MS 1000000

/* ---- the clock ----------------------------------------------------------- */

/* 0: when it is ended. A duration may be any number. */
static int64_t ends_ns(const struct job *j)
{
	int64_t end;

	if (!j->s.duration_ns) {
		return 0;
	}
	return __builtin_add_overflow(j->s.started_ns, j->s.duration_ns, &end)
		? INT64_MAX : end;
}

/* Nanoseconds until something is due by itself, 0: nothing is. */
static int64_t next_due(const struct jobs *jobs)
{
	int64_t now = clk_wall_ns(), wait = 0;

	if (jobs->retry_ns) {
		wait = jobs->retry_ns - clk_now_ns();
		wait = wait > 0 ? wait : 1;
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];

		if (j->s.state == STORE_JOB_RUNNING && ends_ns(j)) {
			int64_t left = ends_ns(j) - now;

			left = left > 0 ? left : 1;
			wait = !wait || left < wait ? left : wait;
		}
		if (job_repair_wait_ns(j) > 0) {
			int64_t left = job_repair_wait_ns(j);

			wait = !wait || left < wait ? left : wait;
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

/* ---- placing ------------------------------------------------------------- */

/* Gives a queued job its hosts, which it keeps while it starts. The errors of
 * job_find_place. */
static int place(struct jobs *jobs, struct job *j, struct err *err)
{
	int n = j->req->n_nodes ? (int)j->req->n_nodes : j->req->count;
	int *hosts = x_new((size_t)n + 1, sizeof(*hosts));
	struct job_view v;
	int r;

	job_view_init(&v, jobs);
	job_view_mark(&v, NULL, 0);
	r = job_find_place(&v, j, hosts, err);
	if (r == 0) {
		free(j->s.nodes);
		j->s.nodes = job_node_names(v.f, hosts, n);
	}
	job_view_fini(&v);
	free(hosts);
	return r;
}

/* ---- making room --------------------------------------------------------- */

/* Whom j may push out: the least important, the youngest first. */
static int collect_preemptible(struct jobs *jobs, const struct job *j, struct job **out)
{
	int n = 0;

	for (size_t i = jobs->v.n; i-- > 0;) {
		struct job *o = jobs->v.v[i];
		int at = n;

		if (o->s.state != STORE_JOB_RUNNING || !o->s.preemptible ||
		    o->s.priority >= j->s.priority || o->req->ring[0]) {
			continue;
		}
		while (at > 0 && out[at - 1]->s.priority > o->s.priority) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = o;
		n++;
	}
	return n;
}

/* Whether a job has this host: a word of its nodes. */
static bool has_host(const struct job *j, const char *host)
{
	size_t len = strlen(host);
	const char *p = j->s.nodes;

	while ((p = strstr(p, host)) != NULL) {
		if ((p == j->s.nodes || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0')) {
			return true;
		}
		p += len;
	}
	return false;
}

/* Ends those of the others whose hosts j is going to have. */
static void end_preempted(const struct model_fabric *f, struct job **others, int n,
			  const int *hosts, int n_hosts, const struct job *j)
{
	char why[CONF_MAX_NAME + 40];

	snprintf(why, sizeof(why), "makes room for job %s", j->s.name);
	for (int i = 0; i < n; i++) {
		bool needed = false;

		for (int k = 0; k < n_hosts; k++) {
			needed |= has_host(others[i], f->hosts[hosts[k]].name);
		}
		if (needed) {
			job_move(others[i], STORE_JOB_ENDING, why);
		}
	}
}

/* Tries to fit j in with more and more of the others gone, who have agreed to
 * that: the least important first, so that as little as possible is lost. True when
 * some are to go; j starts when they have ended. O(others x placing). */
static bool make_room(struct jobs *jobs, struct job *j)
{
	struct job **others = x_new(jobs->v.n + 1, sizeof(struct job *));
	const char **names = x_new(jobs->v.n + 1, sizeof(*names));
	int n = j->req->n_nodes ? (int)j->req->n_nodes : j->req->count;
	int *hosts = x_new((size_t)n + 1, sizeof(*hosts));
	int n_others = j->req->ring[0] ? 0 : collect_preemptible(jobs, j, others);
	bool found = false;

	for (int k = 1; k <= n_others && !found; k++) {
		struct err err = { 0 };
		struct job_view v;

		names[k - 1] = others[k - 1]->s.name;
		job_view_init(&v, jobs);
		job_view_mark(&v, names, k);
		found = job_find_place(&v, j, hosts, &err) == 0;
		if (found) {
			end_preempted(v.f, others, k, hosts, n, j);
		}
		job_view_fini(&v);
	}
	free(others);
	free(names);
	free(hosts);
	return found;
}

/* ---- starting and ending ------------------------------------------------- */

/* Not the job's fault: it stays where it was, and is tried again. */
static bool may_pass(int rc)
{
	return rc == WEFT_ESTALE || rc == WEFT_ECANCELED ||
	       rc == WEFT_EUNAVAIL || rc == WEFT_ETIMEOUT || rc == WEFT_EIO;
}

/* On a ring it may be that other jobs have the channels. */
static bool may_fit_later(const struct job *j, int rc)
{
	if (rc != WEFT_EINFEASIBLE || !j->req->ring[0]) {
		return false;
	}
	for (size_t i = 0; i < j->jobs->v.n; i++) {
		const struct job *o = j->jobs->v.v[i];

		if (o != j && job_has_circuits(o) && strcmp(o->req->ring, j->req->ring) == 0) {
			return true;
		}
	}
	return false;
}

/* Given back while it was starting. */
static bool was_released(const struct job *j)
{
	return j->s.duration_ns == JOB_RELEASED;
}

/* Back into the queue for what passes by itself, else it has failed. */
static void handle_failed_start(struct job *j, int rc, const struct err *err)
{
	struct jobs *jobs = j->jobs;

	if (may_pass(rc) && !was_released(j)) {
		jobs->retry_ns = clk_now_ns() + RETRY_NS;
	}
	if (was_released(j)) {
		job_move(j, STORE_JOB_ENDED, "");
	} else if (may_pass(rc) || may_fit_later(j, rc)) {
		free(j->s.nodes);
		j->s.nodes = x_dup("");
		job_move(j, STORE_JOB_QUEUED, err->msg);
	} else {
		job_move(j, STORE_JOB_FAILED, err->msg);
	}
}

/* The change for the job under way has ended; what the commit itself means is
 * found by jobs_settle. */
static void on_ended(int rc, const struct err *err, void *arg)
{
	struct jobs *jobs = arg;
	struct job *j = jobs->busy;

	jobs->busy = NULL;
	if (j->moving) {
		job_end_repair(j, rc, err);
		return;
	}
	if (j->s.state == STORE_JOB_STARTING) {
		handle_failed_start(j, rc, err);
	} else if (j->s.state == STORE_JOB_ENDING) {
		job_move(j, STORE_JOB_ENDING, err->msg);
		jobs->retry_ns = clk_now_ns() + RETRY_NS;
	}
}

bool job_begin(struct job *j, const char *verb)
{
	struct jobs *jobs = j->jobs;
	char comment[CONF_MAX_NAME + 16];
	struct own_change own = { .who = j->s.who, .comment = comment,
				  .job = j->s.name, .ended = on_ended,
				  .arg = jobs };
	struct err err = { 0 };
	int r;

	snprintf(comment, sizeof(comment), "job %s %s", j->s.name, verb);
	jobs->busy = j;
	r = changes_begin_jobs(jobs->changes, &own, &err);
	if (r) {
		on_ended(r, &err, jobs);
	}
	return r == 0;
}

/* Ends what is to end. True when a change has begun. */
static bool end_one(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->s.state == STORE_JOB_ENDING) {
			return job_begin(jobs->v.v[i], "ends");
		}
	}
	return false;
}

/* The queued job at this position. */
static struct job *queued(const struct jobs *jobs, int position)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (job_position(jobs->v.v[i]) == position) {
			return jobs->v.v[i];
		}
	}
	return NULL;
}

/* Starts the first in the queue that fits; one that does not fit does not
 * hold up those behind it, unless others make room for it. */
static void start_one(struct jobs *jobs)
{
	struct job *j;
	int at = 1;

	while ((j = queued(jobs, at)) != NULL) {
		struct err err = { 0 };
		int r = place(jobs, j, &err);

		if (r == 0) {
			job_move(j, STORE_JOB_STARTING, "");
			if (job_begin(j, "starts") || jobs->retry_ns) {
				return;
			}
			at += j->s.state == STORE_JOB_QUEUED;
			continue;
		}
		if (r != WEFT_EINFEASIBLE) {
			job_move(j, STORE_JOB_FAILED, err.msg);
			continue;
		}
		job_move(j, STORE_JOB_QUEUED, err.msg);
		if (make_room(jobs, j)) {
			end_one(jobs);
			return;
		}
		at++;
	}
}

/* Jobs with a duration that is over. */
static void end_expired(struct jobs *jobs)
{
	int64_t now = clk_wall_ns();

	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (j->s.state == STORE_JOB_RUNNING && ends_ns(j) && ends_ns(j) <= now) {
			job_move(j, STORE_JOB_ENDING, "its time is over");
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

	return !jobs->busy && !jobs->suspect && !env->changing &&
	       !env->reading && env->applied &&
	       !changes_confirm(jobs->changes)->change;
}

void jobs_advance(struct jobs *jobs)
{
	if (jobs->env->draining || jobs->env->read_only) {
		return;
	}
	end_expired(jobs);
	if (jobs_may_begin(jobs) && (!jobs->retry_ns || jobs->retry_ns <= clk_now_ns())) {
		jobs->retry_ns = 0;
		if (jobs->v.n > 0 && has_other_file(jobs->env)) {
			jobs->retry_ns = clk_now_ns() + OTHER_FILE_NS;
		} else if (!end_one(jobs) && !jobs_repair_one(jobs)) {
			start_one(jobs);
		}
	}
	set_clock(jobs);
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
	job_save(j);
}

/* The configuration is the truth about which jobs have circuits: each job that is
 * not in the queue takes the state that the configuration shows, whatever weftd knew
 * of it when it ended. */
void jobs_settle(struct jobs *jobs)
{
	const struct model_fabric *f = apply_fabric(jobs->env->apply);

	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];
		int at = f && job_lives(j) ? model_find_job(f, j->s.name) : -1;
		bool active = at >= 0 && f->jobs[at].requested;

		if (!job_lives(j) || j->s.state == STORE_JOB_QUEUED) {
			continue;
		}
		if (active) {
			take_nodes(j, f, at);
		}
		if (active && (j->s.state == STORE_JOB_STARTING || j->moving)) {
			job_move(j, j->moving ? j->s.state : STORE_JOB_RUNNING, "");
		} else if (!active && j->s.state == STORE_JOB_STARTING &&
			   j != jobs->busy) {
			job_move(j, was_released(j) ? STORE_JOB_ENDED : STORE_JOB_QUEUED, "");
		} else if (!active && j->s.state != STORE_JOB_STARTING) {
			job_move(j, STORE_JOB_ENDED, j->s.problem);
		}
	}
}

void jobs_devices_read(struct jobs *jobs)
{
	int n;
	const struct apply_device *v = apply_devices(jobs->env->apply, &n);
	bool all = true;

	for (int i = 0; i < n; i++) {
		all = all && (v[i].reachable || !apply_is_read(&v[i]));
	}
	if (all) {
		jobs->retry_ns = 0;
	}
	jobs_advance(jobs);
}
