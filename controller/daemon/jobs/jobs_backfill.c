/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue as backfilling sees it (plan/backfill.h): a unit is a side of a port, or a host that
 * has a collective; whoever runs holds his until the end of his time, and as long as a change
 * takes. What jobs are told is when they run, and is as durable as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

#define SIDE(port, tx) (2 * (port) + (tx))

static int n_units(const struct model_fabric *f)
{
	return 2 * f->n_ports + f->n_hosts;
}

static int64_t later(int64_t t, int64_t by)
{
	int64_t sum;

	return __builtin_add_overflow(t, by, &sum) ? BACKFILL_NEVER : sum;
}

/* ---- moves of panels ----------------------------------------------------- */

/* Of one job or host, over devices. */
struct move_counts {
	const struct model_fabric *f;
	int *n;
};

/* A circuit is moved where its light enters. */
static int count_side(int port, bool tx, void *arg, struct err *err)
{
	struct move_counts *c = arg;
	const int device = c->f->ports[port].tx_device;

	(void)err;
	if (tx && device >= 0) {
		c->n[device]++;
	}
	return 0;
}

/* The most that a host has on each device. */
static void count_hosts_ports(struct move_counts *c, int *per_host)
{
	for (int h = 0; h < c->f->n_hosts; h++) {
		const struct model_host *host = &c->f->hosts[h];

		memset(c->n, 0, (size_t)c->f->n_devices * sizeof(*c->n));
		for (int p = host->first_port; p < host->first_port + host->n_ports; p++) {
			count_side(p, true, c, NULL);
		}
		for (int d = 0; d < c->f->n_devices; d++) {
			per_host[d] = c->n[d] > per_host[d] ? c->n[d] : per_host[d];
		}
	}
}

/* Of hosts, which may not be known yet, as many as any have. */
static int64_t moves_of(struct move_counts *c, const struct job_view *v, const struct job *j,
			const int *per_host)
{
	const Weft__V1__RequestJobRequest *q = j->req;
	const int wanted = q->n_ports ? (int)q->n_ports : q->port_count;
	const int hosts = q->n_nodes ? (int)q->n_nodes : q->ranks ? q->ranks : q->count;
	int64_t longest = 0;

	memset(c->n, 0, (size_t)c->f->n_devices * sizeof(*c->n));
	if (job_each_side(c->f, q, count_side, c, &(struct err){ 0 })) {
		return 0;
	}
	for (int d = 0; d < c->f->n_devices; d++) {
		const int each = wanted && wanted < per_host[d] ? wanted : per_host[d];
		const int n = q->n_circuits ? c->n[d] : hosts * each;
		const int64_t ns = plan_moves_ns(c->f, &v->times, d, n);

		longest = ns > longest ? ns : longest;
	}
	return longest;
}

/* Into moves_ns of all: a panel moves one circuit after the other, beside other panels. */
static void expect_moves(struct jobs *jobs, const struct job_view *v)
{
	const struct model_fabric *f = v->f;
	struct move_counts c = { f, x_new((size_t)f->n_devices + 1, sizeof(*c.n)) };
	int *per_host = x_new((size_t)f->n_devices + 1, sizeof(*per_host)), panel = 0;

	while (panel < f->n_devices && f->devices[panel].kind != MODEL_PANEL) {
		panel++;
	}
	if (panel < f->n_devices) {
		count_hosts_ports(&c, per_host);
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		struct job *j = jobs->v.v[i];

		j->moves_ns = panel < f->n_devices && job_lives(j) ?
			      moves_of(&c, v, j, per_host) : 0;
	}
	free(per_host);
	free(c.n);
}

/* ---- what is held -------------------------------------------------------- */

/* By one that has circuits, or whose change has failed: until its end, and as long as a change
 * takes; if that is over, as long again. */
static int64_t held_until(const struct job *j, int64_t now)
{
	const int64_t change = job_change_ns(j);
	int64_t end = job_ends_ns(j) ? job_ends_ns(j) : BACKFILL_NEVER;

	if (j->s.state == STORE_JOB_STARTING && j->s.duration_ns) {
		end = later(later(now, j->s.duration_ns), change);
	} else if (j->s.state == STORE_JOB_ENDING && end > now) {
		end = now;
	}
	return later(later(end, change) > now ? end : now, change);
}

/* Of the fabric's jobs: those of its file never end. The caller's. */
static int64_t *ends_of_jobs(const struct job_queue *q)
{
	const struct model_fabric *f = q->v->f;
	int64_t *ends = x_new((size_t)f->n_jobs + 1, sizeof(*ends));

	for (int i = 0; i < f->n_jobs; i++) {
		ends[i] = BACKFILL_NEVER;
	}
	for (size_t i = 0; i < q->jobs->v.n; i++) {
		const struct job *j = q->jobs->v.v[i];
		const int at = job_lives(j) && j->s.state != STORE_JOB_QUEUED ?
			       model_find_job(f, j->s.name) : -1;

		if (at >= 0) {
			ends[at] = held_until(j, q->b.now_ns);
		}
	}
	return ends;
}

static bool is_of(const char *holder, const struct job *j)
{
	return holder && strcmp(holder, j->s.name) == 0;
}

/* That it has; the caller's. */
static bool *units_of(struct job_queue *q, const struct job *j)
{
	const struct model_fabric *f = q->v->f;
	bool *units = x_new((size_t)n_units(f) + 1, sizeof(*units));

	for (int p = 0; p < f->n_ports; p++) {
		units[SIDE(p, 1)] = is_of(q->v->tx[p], j);
		units[SIDE(p, 0)] = is_of(q->v->rx[p], j);
	}
	memset(q->then.busy, 0, (size_t)f->n_hosts * sizeof(*q->then.busy));
	job_view_mark_job(&q->then, j, j->s.nodes);
	memcpy(units + 2 * (size_t)f->n_ports, q->then.busy,
	       (size_t)f->n_hosts * sizeof(*units));
	return units;
}

static void hold(struct job_queue *q, int unit, int64_t until)
{
	q->held[unit] = until > q->held[unit] ? until : q->held[unit];
}

static void hold_of_fabric(struct job_queue *q)
{
	const struct model_fabric *f = q->v->f;
	int64_t *ends = ends_of_jobs(q);

	for (int p = 0; p < f->n_ports; p++) {
		if (q->v->tx[p] && f->ports[p].tx_job >= 0) {
			hold(q, SIDE(p, 1), ends[f->ports[p].tx_job]);
		}
		if (q->v->rx[p] && f->ports[p].rx_job >= 0) {
			hold(q, SIDE(p, 0), ends[f->ports[p].rx_job]);
		}
	}
	for (int i = 0; i < f->n_jobs; i++) {
		for (int k = 0; k < f->jobs[i].n_hosts && f->jobs[i].device < 0; k++) {
			hold(q, 2 * f->n_ports + f->jobs[i].hosts[k], ends[i]);
		}
	}
	free(ends);
}

/* By jobs of which the fabric says nothing yet, or no more. */
static void hold_of_others(struct job_queue *q)
{
	for (size_t i = 0; i < q->jobs->v.n; i++) {
		const struct job *j = q->jobs->v.v[i];

		if (!job_lives(j) || j->s.state == STORE_JOB_QUEUED ||
		    model_find_job(q->v->f, j->s.name) >= 0) {
			continue;
		}
		bool *units = units_of(q, j);

		for (int u = 0; u < n_units(q->v->f); u++) {
			if (units[u]) {
				hold(q, u, held_until(j, q->b.now_ns));
			}
		}
		free(units);
	}
}

static void find_held(struct job_queue *q)
{
	const struct model_fabric *f = q->v->f;

	q->held = x_new((size_t)n_units(f) + 1, sizeof(*q->held));
	hold_of_fabric(q);
	hold_of_others(q);
	for (int u = 0; u < n_units(f); u++) {
		const int p = u / 2, h = u - 2 * f->n_ports;
		const bool held = h >= 0 ? q->v->busy[h] : (u % 2 ? q->v->tx : q->v->rx)[p] != NULL;

		if (held && !q->held[u]) {
			q->held[u] = BACKFILL_NEVER;
		}
	}
}

/* ---- what fits ----------------------------------------------------------- */

static const char *holder_then(bool is_free, const char *now)
{
	return is_free ? NULL : now ? now : "";
}

/* The view at a time when these units are free. */
static void set_free(struct job_queue *q, const bool *is_free)
{
	const struct model_fabric *f = q->v->f;

	for (int p = 0; p < f->n_ports; p++) {
		q->then.tx[p] = holder_then(is_free[SIDE(p, 1)], q->v->tx[p]);
		q->then.rx[p] = holder_then(is_free[SIDE(p, 0)], q->v->rx[p]);
	}
	for (int h = 0; h < f->n_hosts; h++) {
		q->then.busy[h] = !is_free[2 * f->n_ports + h];
	}
}

/* What is found by planning alone has no reservation. */
static bool is_planned(const struct job *j)
{
	return j->req->ring[0] || j->req->mode == WEFT__V1__MODE__MODE_UPDATE;
}

static bool fits(void *arg, int i, const bool *is_free, bool *takes)
{
	struct job_queue *q = arg;
	const struct model_fabric *f = q->v->f;
	const struct job *j = q->list.v[i];
	struct err err = { 0 };
	char *nodes;

	set_free(q, is_free);
	nodes = is_planned(j) ? NULL : job_find_place(&q->then, j, &err);
	if (!nodes) {
		return false;
	}
	memset(q->then.busy, 0, (size_t)f->n_hosts * sizeof(*q->then.busy));
	job_view_mark_job(&q->then, j, nodes);
	for (int p = 0; p < f->n_ports; p++) {
		takes[SIDE(p, 1)] = q->then.tx[p] == j->s.name;
		takes[SIDE(p, 0)] = q->then.rx[p] == j->s.name;
	}
	memcpy(takes + 2 * (size_t)f->n_ports, q->then.busy,
	       (size_t)f->n_hosts * sizeof(*takes));
	free(nodes);
	return true;
}

/* ---- the queue ----------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;

	if (x->s.priority != y->s.priority) {
		return x->s.priority > y->s.priority ? -1 : 1;
	}
	return (x->s.id > y->s.id) - (x->s.id < y->s.id);
}

/* As it was told the last time. */
static struct backfill_job backfill_job_of(const struct job *j, int units)
{
	const int64_t change = job_change_ns(j);
	struct backfill_job b = {
		.priority = j->s.priority,
		.lease_ns = j->s.duration_ns ? later(j->s.duration_ns, 2 * change) : BACKFILL_NEVER,
	};

	if (j->s.told_ns) {
		b.kind = BACKFILL_EXACT;
		b.start_ns = j->s.told_ns - change;
	}
	if (j->s.told_ns && j->reserved && j->n_reserved == units) {
		b.units = x_new((size_t)units + 1, sizeof(*b.units));
		memcpy(b.units, j->reserved, (size_t)units * sizeof(*b.units));
	}
	return b;
}

void job_queue_init(struct job_queue *q, struct jobs *jobs, struct job_view *v)
{
	const size_t ports = (size_t)v->f->n_ports + 1;

	*q = (struct job_queue){ .jobs = jobs, .v = v, .then = *v };
	expect_moves(jobs, v);
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->s.state == STORE_JOB_QUEUED) {
			vec_push(&q->list, jobs->v.v[i]);
		}
	}
	if (q->list.n > 1) {
		qsort(q->list.v, q->list.n, sizeof(*q->list.v), by_rank);
	}
	q->then.tx = x_new(ports, sizeof(*q->then.tx));
	q->then.rx = x_new(ports, sizeof(*q->then.rx));
	q->then.busy = x_new((size_t)v->f->n_hosts + 1, sizeof(*q->then.busy));
	q->b = (struct backfill){
		.now_ns = clk_wall_ns(), .n = (int)q->list.n, .n_units = n_units(v->f),
		.jobs = x_new(q->list.n + 1, sizeof(*q->b.jobs)), .fits = fits, .arg = q,
	};
	find_held(q);
	q->b.held_until = q->held;
	for (int i = 0; i < q->b.n; i++) {
		q->b.jobs[i] = backfill_job_of(q->list.v[i], q->b.n_units);
	}
	backfill_init(&q->b);
}

void job_queue_fini(struct job_queue *q)
{
	for (int i = 0; i < q->b.n; i++) {
		backfill_drop(&q->b, i);
	}
	backfill_fini(&q->b);
	free(q->b.jobs);
	free(q->held);
	free(q->then.tx);
	free(q->then.rx);
	free(q->then.busy);
	vec_fini(&q->list);
}

/* WEFT_EHELD: it would fit, but for what others were told. */
static int refuse_reserved(const struct job_queue *q, int i, struct err *err)
{
	char when[32];

	for (int k = 0; k < q->b.n; k++) {
		if (k != i && q->b.jobs[k].units && !q->b.jobs[k].starts) {
			return err_set(err, WEFT_EHELD, "job %s is to run by %s, and would have to "
				       "wait for this one", q->list.v[k]->s.name,
				       clk_iso(later(q->b.jobs[k].start_ns,
						     job_change_ns(q->list.v[k])),
					       when, sizeof(when)));
		}
	}
	return err_set(err, WEFT_EHELD, "others are to start before it");
}

char *job_queue_place(struct job_queue *q, int i, struct err *err)
{
	const struct job *j = q->list.v[i];
	char *nodes;

	if (!is_planned(j) && backfill_place(&q->b, i)) {
		set_free(q, q->b.jobs[i].units);
		return job_find_place(&q->then, j, err);
	}
	nodes = job_find_place(q->v, j, err);
	if (nodes && !is_planned(j)) {
		free(nodes);
		nodes = NULL;
		refuse_reserved(q, i, err);
	}
	return nodes;
}

void job_queue_drop(struct job_queue *q, int i)
{
	backfill_drop(&q->b, i);
	q->b.jobs[i].kind = BACKFILL_UNKNOWN;
}

/* ---- renewal ------------------------------------------------------------- */

int job_check_longer(const struct job *j, int64_t end_ns, struct err *err)
{
	struct jobs *jobs = j->jobs;
	int64_t until;
	struct job_queue q;
	struct job_view v;
	char text[32];
	bool *units;
	int r = 0;

	job_view_init(&v, jobs);
	job_view_mark(&v, jobs, NULL, 0);
	job_queue_init(&q, jobs, &v);
	units = units_of(&q, j);
	until = later(end_ns, job_change_ns(j));
	if (!backfill_may_hold(&q.b, units, &until)) {
		until -= until ? job_change_ns(j) : 0;
		until = until > job_ends_ns(j) ? until : job_ends_ns(j);
		r = err_set(err, WEFT_EINFEASIBLE, "others were told that they run then: job %s "
			    "may be kept until %s", j->s.name, clk_iso(until, text, sizeof(text)));
	}
	free(units);
	job_queue_fini(&q);
	job_view_fini(&v);
	return r;
}

/* ---- what is told -------------------------------------------------------- */

/* A host of its reservation that it cannot have any more, or NULL. */
static const char *lost_host(const struct job_queue *q, const struct job *j)
{
	const struct model_fabric *f = q->v->f;

	for (int p = 0; p < f->n_ports && j->reserved && j->n_reserved == q->b.n_units; p++) {
		if ((j->reserved[SIDE(p, 0)] || j->reserved[SIDE(p, 1)]) &&
		    (!q->v->good[p] || drain_has_host(q->v->drain, f, f->ports[p].host))) {
			return f->hosts[f->ports[p].host].name;
		}
	}
	return NULL;
}

/* Why it starts later than it was told. */
static void set_reason(const struct job_queue *q, int i, struct job *j)
{
	const char *host = lost_host(q, j), *first = NULL;
	char text[2 * CONF_MAX_NAME];

	for (int k = 0; k < i && !first; k++) {
		first = q->b.jobs[k].priority > j->s.priority && q->b.jobs[k].units ?
			q->list.v[k]->s.name : NULL;
	}
	if (host) {
		snprintf(text, sizeof(text), "host %s has failed or is drained", host);
	} else if (first) {
		snprintf(text, sizeof(text), "job %s has a higher priority", first);
	} else {
		snprintf(text, sizeof(text), "what it waits for takes longer than foreseen");
	}
	free(j->why_later);
	j->why_later = x_dup(text);
}

static void tell_start(const struct job_queue *q, int i)
{
	const struct backfill_job *b = &q->b.jobs[i];
	struct job *j = q->list.v[i];
	const int64_t start = b->start_ns ? later(b->start_ns, job_change_ns(j)) : 0;
	const int64_t told = b->kind == BACKFILL_EXACT ? start : 0;

	if (j->s.state != STORE_JOB_QUEUED) {
		return;
	}
	if (told != j->s.told_ns) {
		free(j->why_later);
		j->why_later = NULL;
		if (j->s.told_ns && (!told || told > j->s.told_ns)) {
			set_reason(q, i, j);
		}
		j->told_before_ns = j->retold ? j->told_before_ns : j->s.told_ns;
		j->s.told_ns = told;
		j->retold = true;
	}
	free(j->reserved);
	j->reserved = b->units;
	j->n_reserved = q->b.n_units;
	q->b.jobs[i].units = NULL;
}

void job_queue_tell(struct job_queue *q)
{
	for (int i = 0; i < q->b.n; i++) {
		tell_start(q, i);
	}
}

void jobs_foresee(struct jobs *jobs)
{
	struct job_queue q;
	struct job_view v;

	if (!apply_fabric(jobs->env->apply)) {
		return;
	}
	job_view_init(&v, jobs);
	job_view_mark(&v, jobs, NULL, 0);
	job_queue_init(&q, jobs, &v);
	backfill_foresee(&q.b);
	for (int i = 0; i < q.b.n; i++) {
		const struct backfill_job *b = &q.b.jobs[i];

		q.list.v[i]->foreseen_ns = b->kind == BACKFILL_PROFILE ?
					   later(b->start_ns, job_change_ns(q.list.v[i])) : 0;
	}
	job_queue_fini(&q);
	job_view_fini(&v);
}
