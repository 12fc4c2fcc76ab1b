/* Placing, starting and ending jobs; see jobs.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs.h"
#include "controller/plan/place.h"
#include "lib/base/clk.h"
#include "lib/base/log.h"

#define RETRY_NS ((int64_t)10 * 1000000000)
#define NS_PER_MS 1000000

/* ---- the clock ----------------------------------------------------------- */

/* Lives until the loop has closed its timer. */
struct job_clock {
	uv_timer_t timer;
	struct jobs *jobs;
};

static void on_time(uv_timer_t *timer)
{
	struct job_clock *clock = timer->data;

	jobs_tick(clock->jobs);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void jobs_clock_fini(struct jobs *jobs)
{
	if (jobs->clock) {
		uv_close((uv_handle_t *)&jobs->clock->timer, on_closed);
		jobs->clock = NULL;
	}
}

static struct job_clock *need_clock(struct jobs *jobs)
{
	struct job_clock *clock = jobs->clock;

	if (!clock && (clock = calloc(1, sizeof(*clock)))) {
		clock->jobs = jobs;
		uv_timer_init(jobs->d->loop, &clock->timer);
		clock->timer.data = clock;
		jobs->clock = clock;
	}
	return clock;
}

static int64_t ends_ns(const struct job *j)
{
	return j->s.duration_ns ? j->s.started_ns + j->s.duration_ns : 0;
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
	}
	return wait;
}

static void set_clock(struct jobs *jobs)
{
	int64_t wait = next_due(jobs);
	struct job_clock *clock = wait ? need_clock(jobs) : jobs->clock;

	if (wait && clock) {
		uv_update_time(jobs->d->loop);
		uv_timer_start(&clock->timer, on_time,
			       (uint64_t)((wait + NS_PER_MS - 1) / NS_PER_MS),
			       0);
	} else if (clock) {
		uv_timer_stop(&clock->timer);
	}
}

/* ---- placing ------------------------------------------------------------- */

static bool is_bad(const int *v, int n, int port)
{
	for (int i = 0; i < n; i++) {
		if (v[i] == port) {
			return true;
		}
	}
	return false;
}

static bool port_is_bad(const struct plan_light *l, int device, int port,
			bool in)
{
	if (device < 0 || !l) {
		return false;
	}
	l += device;
	return in ? is_bad(l->bad_in, l->n_bad_in, port)
		  : is_bad(l->bad_out, l->n_bad_out, port);
}

/* A host with a port that has failed on its switch gets no new job, nor one
 * that is drained. */
static bool host_is_good(const struct model_fabric *f,
			 const struct plan_light *observed, int host)
{
	const struct model_host *h = &f->hosts[host];

	for (int i = h->first_port; i < h->first_port + h->n_ports; i++) {
		const struct model_port *p = &f->ports[i];

		if (port_is_bad(observed, p->tx_device, p->tx_port, true) ||
		    port_is_bad(observed, p->rx_device, p->rx_port, false)) {
			return false;
		}
	}
	return true;
}

/* Everything that placing looks at; arrays over hosts. */
struct view {
	const struct model_fabric *f;
	bool *usable, *busy;
};

static void view_fini(struct view *v)
{
	free(v->usable);
	free(v->busy);
}

/* Hosts of jobs on switches that have light now, but for `except`. */
static void mark_busy(struct view *v, const char *const *except, int n)
{
	for (int i = 0; i < v->f->n_jobs; i++) {
		const struct model_job *m = &v->f->jobs[i];
		bool spared = m->device >= 0;

		for (int k = 0; k < n; k++) {
			spared |= strcmp(except[k], m->name) == 0;
		}
		for (int k = 0; k < m->n_hosts && !spared; k++) {
			v->busy[m->hosts[k]] = true;
		}
	}
}

static int view_init(struct view *v, struct daemon *d, struct err *err)
{
	struct plan_base base;
	int r;

	*v = (struct view){ .f = apply_fabric(d->apply) };
	v->usable = calloc((size_t)v->f->n_hosts + 1, 1);
	v->busy = calloc((size_t)v->f->n_hosts + 1, 1);
	if (!v->usable || !v->busy) {
		return err_nomem(err);
	}
	r = apply_plan_base(d->apply, v->f, PLAN_SAFE, &base, err);
	for (int h = 0; h < v->f->n_hosts && r == 0; h++) {
		v->usable[h] = host_is_good(v->f, base.observed, h) &&
			       !daemon_host_is_held(d, v->f, h);
	}
	return r;
}

/* Hosts for the job into out, as place_job finds them. */
static int find_place(const struct view *v, const struct job *j, int *out,
		      struct err *err)
{
	const Weft__V1__RequestJobRequest *q = j->req;
	struct place_wish w = {
		.n = q->n_nodes ? (int)q->n_nodes : q->count,
		.ring = q->ring[0] ? model_find_device(v->f, q->ring) : -1,
		.min_ports = q->min_ports,
	};
	int *hosts = calloc(q->n_nodes + 1, sizeof(*hosts));
	int r = hosts ? 0 : err_nomem(err);

	for (size_t i = 0; i < q->n_nodes && r == 0; i++) {
		hosts[i] = model_find_host(v->f, q->nodes[i]);
		if (hosts[i] < 0) {
			r = err_set(err, WEFT_EINVAL, "there is no host %s any "
				    "more", q->nodes[i]);
		}
	}
	if (r == 0 && q->ring[0] && w.ring < 0) {
		r = err_set(err, WEFT_EINVAL, "there is no ring %s any more",
			    q->ring);
	}
	w.hosts = q->n_nodes ? hosts : NULL;
	r = r ? r : place_job(v->f, &w, v->usable, v->busy, out, err);
	free(hosts);
	return r;
}

static int set_nodes(struct job *j, const struct model_fabric *f,
		     const int *hosts, int n, struct err *err)
{
	struct buf b = { 0 };

	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%s%s", i ? " " : "", f->hosts[hosts[i]].name);
	}
	if (b.failed) {
		buf_fini(&b);
		return err_nomem(err);
	}
	free(j->s.nodes);
	j->s.nodes = buf_steal(&b);
	return 0;
}

/* Gives a queued job its hosts. */
static int place(struct jobs *jobs, struct job *j, struct err *err)
{
	int n = j->req->n_nodes ? (int)j->req->n_nodes : j->req->count;
	int *hosts = calloc((size_t)n + 1, sizeof(*hosts));
	struct view v;
	int r = view_init(&v, jobs->d, err);

	if (r == 0 && !hosts) {
		r = err_nomem(err);
	}
	if (r == 0) {
		mark_busy(&v, NULL, 0);
		r = find_place(&v, j, hosts, err);
	}
	r = r ? r : set_nodes(j, v.f, hosts, n, err);
	view_fini(&v);
	free(hosts);
	return r;
}

/* ---- making room --------------------------------------------------------- */

/* Whom j may push out: the least important, the youngest first. */
static int collect_victims(struct jobs *jobs, const struct job *j,
			   struct job **out)
{
	int n = 0;

	for (size_t i = jobs->v.n; i-- > 0;) {
		struct job *o = jobs->v.v[i];
		int at = n;

		if (o->s.state != STORE_JOB_RUNNING || !o->s.preemptible ||
		    o->s.priority >= j->s.priority || o->req->ring[0]) {
			continue;
		}
		while (at > 0 &&
		       out[at - 1]->s.priority > o->s.priority) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = o;
		n++;
	}
	return n;
}

static bool has_host(const struct job *j, const char *host)
{
	size_t len = strlen(host);
	const char *p = j->s.nodes;

	while ((p = strstr(p, host)) != NULL) {
		if ((p == j->s.nodes || p[-1] == ' ') &&
		    (p[len] == ' ' || p[len] == '\0')) {
			return true;
		}
		p += len;
	}
	return false;
}

/* Ends those of the victims whose hosts j is going to have. */
static void end_victims(const struct model_fabric *f, struct job **victims,
			int n, const int *hosts, int n_hosts,
			const struct job *j)
{
	char why[MODEL_MAX_NAME + 40];

	snprintf(why, sizeof(why), "makes room for job %s", j->s.name);
	for (int i = 0; i < n; i++) {
		bool needed = false;

		for (int k = 0; k < n_hosts; k++) {
			needed |= has_host(victims[i], f->hosts[hosts[k]].name);
		}
		if (needed) {
			job_move(victims[i], STORE_JOB_ENDING, why);
		}
	}
}

/* Tries to fit j in with more and more of the others gone, who have agreed to
 * that. True when some are to go. */
static bool make_room(struct jobs *jobs, struct job *j)
{
	struct job **victims = calloc(jobs->v.n + 1, sizeof(struct job *));
	const char **names = calloc(jobs->v.n + 1, sizeof(*names));
	int n = j->req->n_nodes ? (int)j->req->n_nodes : j->req->count;
	int *hosts = calloc((size_t)n + 1, sizeof(*hosts));
	int n_victims = victims && names && hosts && !j->req->ring[0] ?
				collect_victims(jobs, j, victims) : 0;
	bool found = false;

	for (int k = 1; k <= n_victims && !found; k++) {
		struct err err = { 0 };
		struct view v;

		names[k - 1] = victims[k - 1]->s.name;
		if (view_init(&v, jobs->d, &err) == 0) {
			mark_busy(&v, names, k);
			found = find_place(&v, j, hosts, &err) == 0;
		}
		if (found) {
			end_victims(v.f, victims, k, hosts, n, j);
		}
		view_fini(&v);
	}
	free(victims);
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

		if (o != j && job_has_light(o) &&
		    strcmp(o->req->ring, j->req->ring) == 0) {
			return true;
		}
	}
	return false;
}

static void failed_to_start(struct job *j, int rc, const struct err *err)
{
	struct jobs *jobs = j->jobs;

	if (may_pass(rc)) {
		jobs->retry_ns = clk_now_ns() + RETRY_NS;
	}
	if (may_pass(rc) || may_fit_later(j, rc)) {
		free(j->s.nodes);
		j->s.nodes = strdup("");
		job_move(j, STORE_JOB_QUEUED, err->msg);
	} else {
		job_move(j, STORE_JOB_FAILED, err->msg);
	}
}

static void on_ended(struct daemon *d, const struct apply_result *res, int rc,
		     const struct err *err)
{
	struct jobs *jobs = d->orders;
	struct job *j = jobs->busy;

	(void)res;
	jobs->busy = NULL;
	if (j->s.state == STORE_JOB_STARTING) {
		failed_to_start(j, rc, err);
	} else if (j->s.state == STORE_JOB_ENDING) {
		job_move(j, STORE_JOB_ENDING, err->msg);
		jobs->retry_ns = clk_now_ns() + RETRY_NS;
	}
}

static bool begin(struct jobs *jobs, struct job *j, const char *verb)
{
	char comment[MODEL_MAX_NAME + 16];
	struct own_change own = { .who = j->s.who, .comment = comment,
				  .job = j->s.name, .ended = on_ended };
	struct err err = { 0 };
	int r;

	snprintf(comment, sizeof(comment), "job %s %s", j->s.name, verb);
	jobs->busy = j;
	r = daemon_change_jobs(jobs->d, &own, &err);
	if (r) {
		on_ended(jobs->d, NULL, r, &err);
	}
	return r == 0;
}

/* Ends what is to end. True when a change has begun. */
static bool end_one(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->s.state == STORE_JOB_ENDING) {
			return begin(jobs, jobs->v.v[i], "ends");
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
			if (begin(jobs, j, "starts") || jobs->retry_ns) {
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

static void end_those_in_time(struct jobs *jobs)
{
	int64_t now = clk_wall_ns();

	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		if (j->s.state == STORE_JOB_RUNNING && ends_ns(j) &&
		    ends_ns(j) <= now) {
			job_move(j, STORE_JOB_ENDING, "its time is over");
		}
	}
}

void jobs_tick(struct jobs *jobs)
{
	struct daemon *d = jobs->d;

	if (d->draining) {
		return;
	}
	end_those_in_time(jobs);
	if (!jobs->busy && !d->change && !d->reading && d->applied &&
	    !d->confirm.change &&
	    (!jobs->retry_ns || jobs->retry_ns <= clk_now_ns())) {
		jobs->retry_ns = 0;
		if (!end_one(jobs)) {
			start_one(jobs);
		}
	}
	set_clock(jobs);
}

void jobs_settle(struct jobs *jobs)
{
	const struct model_fabric *f = apply_fabric(jobs->d->apply);

	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];
		int at = f && job_lives(j) ? model_find_job(f, j->s.name) : -1;
		bool lit = at >= 0 && f->jobs[at].requested;

		if (!job_lives(j) || j->s.state == STORE_JOB_QUEUED) {
			continue;
		}
		if (lit && j->s.state == STORE_JOB_STARTING) {
			job_move(j, STORE_JOB_RUNNING, "");
		} else if (!lit && j->s.state == STORE_JOB_STARTING &&
			   j != jobs->busy) {
			job_move(j, STORE_JOB_QUEUED, "");
		} else if (!lit && j->s.state != STORE_JOB_STARTING) {
			job_move(j, STORE_JOB_ENDED, j->s.problem);
		}
	}
}
