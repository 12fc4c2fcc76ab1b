/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs whose circuits have failed. What is left of them is found by planning
 * (job_status.c notices failed circuits and plans again); here it is reported
 * to those who wait and watch, and, where a job was requested with repair by
 * spares, its circuits are made again on hosts that are free. That is a change of this one job
 * like its start and its end. It waits a moment, as a link that flaps is often
 * back at once, reads the devices before it believes that it is not, and waits
 * twice as long after each try, which the store remembers. A job that has a good spare of its
 * own waits neither for that moment nor for the plan of what is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/plan/plan.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define NS_PER_S ((int64_t)1000000000)
#define HOLD_NS NS_PER_S		/* that circuits must have failed for */
#define BACK_OFF_NS (10 * NS_PER_S)	/* after the first try */
#define BACK_OFF_MAX_NS (600 * NS_PER_S)
#define FORGET_NS (3600 * NS_PER_S)	/* tries that are older */

/* A ring has no spare hosts to move to. */
static bool wants_spare(const struct job *j)
{
	return (j->req->repair == WEFT__V1__JOB_REPAIR__JOB_REPAIR_SPARE && !j->req->ring[0]) ||
	       j->req->spares > 0;
}

bool jobs_needs_all(const struct jobs *jobs, const char *name)
{
	const struct job *j = jobs_find(jobs, name);

	return j && j->req->repair == WEFT__V1__JOB_REPAIR__JOB_REPAIR_NONE;
}

/* ---- what is left -------------------------------------------------------- */

/* After the tries so far: 10 s, 20 s, 40 s, ... up to ten minutes. */
static int64_t back_off_ns(const struct job *j)
{
	int64_t wait = BACK_OFF_NS;

	for (int i = 1; i < j->s.repairs && wait < BACK_OFF_MAX_NS; i++) {
		wait *= 2;
	}
	return wait < BACK_OFF_MAX_NS ? wait : BACK_OFF_MAX_NS;
}

int64_t job_repair_wait_ns(const struct job *j)
{
	int64_t hold, wait = 0;

	if (j->s.state != STORE_JOB_RUNNING || !j->failed_ns || !wants_spare(j)) {
		return -1;
	}
	/* Spares of its own are for that. */
	hold = j->failed_ns + (j->req->spares ? 0 : HOLD_NS) - clk_now_ns();
	if (j->s.repairs > 0) {
		/* A clock that was set back makes no job wait longer. */
		wait = j->s.repair_ns + back_off_ns(j) - clk_wall_ns();
		wait = wait < back_off_ns(j) ? wait : back_off_ns(j);
	}
	wait = wait > hold ? wait : hold;
	return wait > 0 ? wait : 0;
}

/* What is left of a job, as its problem; the job goes on running. */
static void report_loss(struct job *j, const Weft__V1__PlanJob *row)
{
	const char *text = strstr(row->reason, ": ");

	if (!j->failed_ns) {
		j->failed_ns = clk_now_ns();
		if (clk_wall_ns() - j->s.repair_ns > FORGET_NS) {
			j->s.repairs = 0;
		}
	}
	j->rate = row->rate;
	job_move(j, STORE_JOB_RUNNING, text ? text + 2 : row->reason);
}

/* All its circuits are there (again); on a ring it may do without parts that failed. */
static void report_all_back(struct job *j, const Weft__V1__PlanJob *row)
{
	j->rate = row->rate;
	if (j->failed_ns) {
		j->failed_ns = 0;
		job_move(j, STORE_JOB_RUNNING, "");
	}
}

static const Weft__V1__PlanJob *find_row(const struct job_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (strcmp(rows->v[i]->name, name) == 0) {
			return rows->v[i];
		}
	}
	return NULL;
}

/* By the rows of the present configuration; back: also of jobs that have lost nothing. */
static void update_loss(struct jobs *jobs, bool back)
{
	const struct job_rows *rows = job_status_rows(jobs->status);
	const struct model_fabric *f = apply_fabric(jobs->env->apply);

	if (!f || !rows->known || strcmp(rows->hash, f->hash) != 0) {
		return;
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];
		const Weft__V1__PlanJob *row = find_row(rows, j->s.name);

		if (j->s.state != STORE_JOB_RUNNING || !row) {
			continue;
		}
		if (row->degradation) {
			report_loss(j, row);
		} else if (back) {
			report_all_back(j, row);
		}
	}
}

void jobs_update_loss(struct jobs *jobs)
{
	update_loss(jobs, true);
	jobs_flush(jobs);
}

void jobs_keep_loss(struct jobs *jobs)
{
	update_loss(jobs, false);
}

/* ---- where to ------------------------------------------------------------ */

/* The hosts that a job has by the present configuration, in rank order; *out is
 * owned by the caller. WEFT_ENOTFOUND. */
static int hosts_of(const struct model_fabric *f, const struct job *j, int **out,
		    int *n, struct err *err)
{
	int at = model_find_job(f, j->s.name);

	if (at < 0) {
		return err_set(err, WEFT_ENOTFOUND, "it has no circuits");
	}
	*n = f->jobs[at].n_hosts;
	*out = x_new((size_t)*n + 1, sizeof(**out));
	memcpy(*out, f->jobs[at].hosts, (size_t)*n * sizeof(**out));
	return 0;
}

static int count_unusable(const bool *usable, const int *hosts, int n)
{
	int count = 0;

	for (int i = 0; i < n; i++) {
		count += !usable[hosts[i]];
	}
	return count;
}

/*
 * The hosts that the job is to have, in rank order: those it has where they
 * are good. A job whose hosts were named keeps them, and is made again only
 * where that cannot leave it with less than it has: on the topology that it
 * asked for.
 */
static int choose(const struct job_view *v, const struct job *j, int *hosts, int n, struct err *err)
{
	struct place_request w = { .n = n, .ring = -1,
				.min_ports = j->req->min_ports };
	bool *usable = job_usable_hosts(v, j);
	int *spare = x_new((size_t)n + 1, sizeof(*spare)), r = 0;

	/* Which of its own spares stands in is planned. */
	if (count_unusable(usable, hosts, n) <= j->req->spares) {
		goto out;
	}
	if (j->req->n_nodes) {
		r = j->req->topology[0] ? 0 :
		    err_set(err, WEFT_EINFEASIBLE, "its hosts were named");
		goto out;
	}
	r = place_spare(v->f, &w, hosts, usable, v->busy, spare, err);
	if (r == 0) {
		memcpy(hosts, spare, (size_t)n * sizeof(*hosts));
	} else if (r == WEFT_EINFEASIBLE && j->req->topology[0]) {
		err_clear(err);		/* perhaps other ports will do */
		r = 0;
	}
out:
	free(spare);
	free(usable);
	return r;
}

/* Whether circuits of it have died, and its own spares can take the place of what is bad. */
static bool can_stand_in(const struct job_view *v, const struct job *j, const struct job_rows *rows,
			 const struct plan_base *base)
{
	const struct row_circuits *c = NULL;
	struct err err = { 0 };
	bool died = false, *usable;
	int *hosts, n;

	for (size_t i = 0; i < rows->n; i++) {
		c = strcmp(rows->v[i]->name, j->s.name) == 0 ? &rows->circuits[i] : c;
	}
	for (int i = 0; c && i < c->n && !died; i++) {
		const struct plan_light *seen = &base->observed[c->v[i].device];

		died = seen->known && plan_has_died(seen, c->v[i].xc);
	}
	if (!died || hosts_of(v->f, j, &hosts, &n, &err)) {
		return false;
	}
	usable = job_usable_hosts(v, j);
	died = count_unusable(usable, hosts, n) <= j->req->spares;
	free(usable);
	free(hosts);
	return died;
}

void jobs_stand_in(struct jobs *jobs)
{
	const struct job_rows *rows = job_status_rows(jobs->status);
	const struct model_fabric *f = apply_fabric(jobs->env->apply);
	struct plan_base base;
	struct job_view v;
	bool any = false;

	if (!rows->known || strcmp(rows->hash, f->hash) != 0) {
		return;
	}
	job_view_init(&v, jobs);
	job_view_mark(&v, jobs, NULL, 0);
	apply_plan_base(jobs->env->apply, f, PLAN_SAFE, &base);
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		j->stands_in = j->s.state == STORE_JOB_RUNNING && j->req->spares > 0 &&
			       !j->failed_ns && can_stand_in(&v, j, rows, &base);
		j->failed_ns = j->stands_in ? clk_now_ns() : j->failed_ns;
		any = any || j->stands_in;
	}
	job_view_fini(&v);
	if (any) {
		jobs_advance(jobs);
	}
}

/* Where the job is to move, as names; WEFT_EINFEASIBLE: nowhere. */
static int find_spares(struct job *j, char **nodes, struct err *err)
{
	struct job_view v;
	int *hosts = NULL, n = 0;
	int r;

	job_view_init(&v, j->jobs);
	r = hosts_of(v.f, j, &hosts, &n, err);
	if (r == 0) {
		job_view_mark(&v, j->jobs, NULL, 0);
		r = choose(&v, j, hosts, n, err);
	}
	if (r == 0) {
		*nodes = job_node_names(v.f, hosts, n);
	}
	job_view_fini(&v);
	free(hosts);
	return r;
}

/* ---- doing it ------------------------------------------------------------ */

/* The tries are counted before the change, so that a restart remembers them. */
static void begin_repair(struct job *j)
{
	char text[STORE_NOTE_MAX];
	struct err err = { 0 };

	free(j->moving);
	j->stands_in = false;
	if (find_spares(j, &j->moving, &err)) {
		log_info("jobs", "job %s: %s", j->s.name, err.msg);
		return;
	}
	if (strcmp(j->moving, j->s.nodes) == 0) {
		snprintf(text, sizeof(text), "its circuits are made again");
	} else {
		snprintf(text, sizeof(text), "moves to %.120s", j->moving);
	}
	j->s.repairs++;
	j->s.repair_ns = clk_wall_ns();
	job_move(j, STORE_JOB_RUNNING, text);
	job_begin_repair(j);
}

void job_end_repair(struct job *j, int rc, const struct err *err)
{
	char text[STORE_NOTE_MAX];

	free(j->moving);
	j->moving = NULL;
	if (rc && j->s.state == STORE_JOB_RUNNING) {
		snprintf(text, sizeof(text), "not repaired: %.130s", err->msg);
		job_move(j, STORE_JOB_RUNNING, text);
	}
}

/* The devices were read: if the same circuits still fail, the repair begins. */
static void after_reading(int rc, const struct err *err, void *arg)
{
	struct plan_request *slot = arg;
	struct jobs *jobs = slot->arg;
	struct job *j = jobs->suspect;
	uint64_t failed = job_status_failed(jobs->status);

	if (rc) {
		log_info("jobs", "%s", err->msg);
	}
	jobs->suspect = NULL;
	plan_request_free(slot);
	/* When other circuits have failed now, what is left is being planned
	 * again, and this is decided after that. */
	if (failed == job_status_failed(jobs->status) && !jobs->env->draining &&
	    jobs_may_begin(jobs) && job_repair_wait_ns(j) == 0) {
		begin_repair(j);
	}
	if (jobs->n_busy == 0) {
		jobs_advance(jobs);
	}
}

static void read_now(struct plan_request *slot)
{
	const struct jobs *jobs = slot->arg;

	apply_reading_for(jobs->env->apply, STORE_BY_PLAN);
	apply_read(jobs->env->apply, after_reading, slot);
}

/* Its time has come, and what is left of it is known, or does not matter. */
static bool is_due(const struct job *j)
{
	return job_repair_wait_ns(j) == 0 &&
	       (j->stands_in || !job_status_refreshing(j->jobs->status));
}

bool jobs_repair_due(const struct jobs *jobs)
{
	bool due = false;

	for (size_t i = 0; i < jobs->v.n && !due; i++) {
		due = !jobs->v.v[i]->no_spare && is_due(jobs->v.v[i]);
	}
	return due;
}

bool jobs_repair_one(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];
		struct err err = { 0 };
		char *nodes = NULL;

		if (!is_due(j)) {
			continue;
		}
		j->no_spare = find_spares(j, &nodes, &err) != 0;
		free(nodes);
		if (j->no_spare) {
			log_debug("jobs", "job %s: %s", j->s.name, err.msg);
			continue;
		}
		jobs->suspect = j;
		plan_queue_slot(jobs->queue, read_now, jobs);
		return true;
	}
	return false;
}
