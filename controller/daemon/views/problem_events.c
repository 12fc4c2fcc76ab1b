/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong, as events for those who watch: each time devices were read, jobs
 * planned, or etcd has another problem, it is compared with what was told before, so that
 * a device, a port, a part or a job that fails or works again is told once, and so is all
 * else that status lists. The facts are those of problems.c, which status and metrics tell
 * as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

#define PORTS_TOLD 16	/* of a device at a time, one by one */

/* What was last told of a device. */
struct told_device {
	char name[CONF_MAX_NAME + 1];
	bool reachable, drift;
	char epoch[sizeof(((struct drv_snapshot *)0)->epoch)];
	uint64_t parts;			/* as in struct problem_device */
	struct drv_port_id *failed;	/* ports; owned */
	size_t n_failed;
};

/* And of a job that lacked something. */
struct told_job {
	char name[CONF_MAX_NAME + 1];
	double rate;
	int64_t since_ns;	/* clk_now_ns() */
};

/* Any other that was told. */
struct told_problem {
	Weft__V1__ProblemKind kind;
	char device[CONF_MAX_NAME + 1];
	char text[PROBLEM_TEXT];
};

struct problem_events {
	const struct views *views;
	struct metrics *metrics;
	struct told_device *devices;
	int n_devices;
	struct told_job *jobs;
	size_t n_jobs;
	VEC(struct told_problem) others;
};

/* ---- devices ------------------------------------------------------------- */

static void emit_device(const struct problem_events *e, Weft__V1__EventKind kind,
			const char *device, const char *text)
{
	const struct daemon_event ev = { .kind = kind, .device = device };

	event_emit(e->views->env->events, &ev, "%s: %s", device, text);
}

/* Mostly in the place where it was; NULL: it is new. */
static const struct told_device *find_told(const struct problem_events *e, int place,
					   const char *name)
{
	for (int i = 0; i < e->n_devices; i++) {
		const struct told_device *t = &e->devices[(place + i) % e->n_devices];

		if (strcmp(t->name, name) == 0) {
			return t;
		}
	}
	return NULL;
}

/* The sentence of a device's failed parts, or why they hold no wave. */
static const char *parts_text(const struct problems *p, const char *device)
{
	for (size_t i = 0; i < p->n; i++) {
		Weft__V1__ProblemKind kind = p->list[i]->kind;

		if (strcmp(p->list[i]->device, device) == 0 &&
		    (kind == WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_PARTS_FAILED ||
		     kind == WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_SETTINGS_UNLOCKED)) {
			return p->list[i]->text;
		}
	}
	return "";
}

static void tell_parts(const struct problem_events *e, const struct problems *p,
		       const struct told_device *before, const struct told_device *now)
{
	const struct daemon_event ev = { .kind = EVENT_KIND(PART_FAILED), .device = now->name };
	const char *text = parts_text(p, now->name);

	if (before->parts == now->parts) {
		return;
	}
	if (now->parts && text[0]) {
		event_emit(e->views->env->events, &ev, "%s", text);
	} else if (now->parts) {
		emit_device(e, ev.kind, now->name, "resonators lost their wave");
	} else {
		emit_device(e, EVENT_KIND(PART_RECOVERED), now->name, "all parts work again");
	}
}

static bool has_port(const struct told_device *t, struct drv_port_id port)
{
	for (size_t i = 0; i < t->n_failed; i++) {
		if (t->failed[i].is_out == port.is_out && t->failed[i].index == port.index) {
			return true;
		}
	}
	return false;
}

/* Ports that `has` has and `had` has not: the first some one by one. */
static void tell_ports(const struct problem_events *e, const struct model_device *md,
		       const struct told_device *had, const struct told_device *has, bool failed)
{
	size_t told = 0, more = 0;
	char port[24], text[64];

	for (size_t i = 0; i < has->n_failed; i++) {
		const struct daemon_event ev = {
			.kind = failed ? EVENT_KIND(PORT_FAILED) : EVENT_KIND(PORT_RECOVERED),
			.device = has->name, .port = port,
		};

		if (has_port(had, has->failed[i])) {
			continue;
		}
		if (told++ >= PORTS_TOLD) {
			more++;
			continue;
		}
		problem_port_text(md, has->failed[i], port, sizeof(port));
		event_emit(e->views->env->events, &ev, "%s: %s %s", has->name, port,
			   failed ? "failed" : "works again");
	}
	if (more) {
		snprintf(text, sizeof(text), "%zu more ports %s", more,
			 failed ? "failed" : "work again");
		emit_device(e, failed ? EVENT_KIND(PORT_FAILED) : EVENT_KIND(PORT_RECOVERED),
			    has->name, text);
	}
}

static void tell_drift(const struct problem_events *e, const struct told_device *now,
		       const struct apply_device *a)
{
	char text[96] = "as intended again";

	if (now->drift) {
		snprintf(text, sizeof(text), "not as intended: %d missing, %d unexpected",
			 a->n_missing, a->n_unexpected);
	}
	emit_device(e, now->drift ? EVENT_KIND(DRIFT_FOUND) : EVENT_KIND(DRIFT_RESOLVED), now->name,
		    text);
}

static void tell_device(const struct problem_events *e, const struct problems *p,
			const struct told_device *before, const struct told_device *now,
			const struct model_device *md, const struct apply_device *a)
{
	if (before->reachable != now->reachable) {
		emit_device(e, now->reachable ? EVENT_KIND(DEVICE_REACHABLE)
					      : EVENT_KIND(DEVICE_UNREACHABLE),
			    now->name, now->reachable ? "answers" : a->problem);
	}
	if (before->epoch[0] && now->epoch[0] && strcmp(before->epoch, now->epoch) != 0) {
		emit_device(e, EVENT_KIND(DEVICE_RESTARTED), now->name, "restarted");
	}
	tell_parts(e, p, before, now);
	tell_ports(e, md, before, now, true);
	tell_ports(e, md, now, before, false);
	if (before->drift != now->drift) {
		tell_drift(e, now, a);
	}
}

/* A device that does not answer keeps what was told of it before. */
static void take_reading(struct told_device *t, const struct told_device *before,
			 const struct problem_device *d, const struct apply_device *a)
{
	const struct drv_port_id *ports = a->reachable ? d->failed.v : before->failed;
	size_t n = a->reachable ? d->failed.n : before->n_failed;

	*t = *before;
	snprintf(t->name, sizeof(t->name), "%s", a->name);
	t->reachable = a->reachable;
	t->failed = x_alloc(n, sizeof(*ports));
	t->n_failed = n;
	if (n) {
		memcpy(t->failed, ports, n * sizeof(*ports));
	}
	if (a->reachable) {
		t->drift = a->n_missing > 0 || a->n_unexpected > 0;
		t->parts = d->parts;
		snprintf(t->epoch, sizeof(t->epoch), "%s", a->snap.epoch);
	}
}

static void free_told(struct told_device *v, int n)
{
	for (int i = 0; v && i < n; i++) {
		free(v[i].failed);
	}
	free(v);
}

/* A device of which nothing was told is one that answers and has nothing wrong. While a change
 * moves light, what is missing or does not hold a wave is of no account. */
static void tell_devices(struct problem_events *e, const struct problems *p, bool moving)
{
	static const struct told_device usual = { .reachable = true };
	const struct model_fabric *f = apply_fabric(e->views->env->apply);
	const struct apply_device *a;
	struct told_device *now;
	int n, k = 0;

	a = apply_devices(e->views->env->apply, &n);
	now = x_new((size_t)n + 1, sizeof(*now));
	for (int i = 0; i < n; i++) {
		const struct told_device *before = find_told(e, k, a[i].name);
		struct told_device first = usual;

		if (!apply_is_read(&a[i])) {
			continue;
		}
		if (!before) {
			snprintf(first.name, sizeof(first.name), "%s", a[i].name);
			before = &first;
		}
		take_reading(&now[k], before, &p->devices[i], &a[i]);
		if (moving) {
			now[k].drift = before->drift;
			now[k].parts = before->parts;
		}
		tell_device(e, p, before, &now[k++], &f->devices[i], &a[i]);
	}
	free_told(e->devices, e->n_devices);
	e->devices = now;
	e->n_devices = k;
}

/* ---- jobs ---------------------------------------------------------------- */

static const struct told_job *find_job(const struct told_job *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].name, name) == 0) {
			return &v[i];
		}
	}
	return NULL;
}

static bool has_row(const struct job_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (strcmp(rows->v[i]->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void tell_degraded(const struct problem_events *e, struct told_job *now,
			  const char *reason)
{
	const struct daemon_event ev = { .kind = EVENT_KIND(JOB_DEGRADED), .job = now->name };
	const struct told_job *before = find_job(e->jobs, e->n_jobs, now->name);

	now->since_ns = before ? before->since_ns : clk_now_ns();
	if (!before || before->rate != now->rate) {
		event_emit(e->views->env->events, &ev, "%s", reason);
	}
}

/* Those that lacked something and do not any more; of a job that has ended nothing
 * is told. */
static void tell_restored(const struct problem_events *e, const struct job_rows *rows,
			  const struct told_job *now, size_t n)
{
	for (size_t i = 0; i < e->n_jobs; i++) {
		const char *name = e->jobs[i].name;
		const struct daemon_event ev = { .kind = EVENT_KIND(JOB_RESTORED), .job = name };

		if (!find_job(now, n, name) && has_row(rows, name)) {
			event_emit(e->views->env->events, &ev,
				   "job %s: it has all of its rate again", name);
			metrics_count_repair(e->metrics, clk_now_ns() - e->jobs[i].since_ns);
		}
	}
}

/* Only jobs that lack something are remembered. While it is not known what jobs have,
 * nothing is told of them. */
static void tell_jobs(struct problem_events *e, const struct problems *p)
{
	const struct job_rows *rows = shown_jobs(e->views);
	struct told_job *now;
	size_t n = 0;

	if (!rows) {
		return;
	}
	now = x_new(rows->n + 1, sizeof(*now));
	for (size_t i = 0; i < p->n; i++) {
		const Weft__V1__Problem *m = p->list[i];

		if (m->job[0]) {
			snprintf(now[n].name, sizeof(now[n].name), "%s", m->job);
			now[n].rate = m->rate;
			tell_degraded(e, &now[n++], m->text);
		}
	}
	tell_restored(e, rows, now, n);
	free(e->jobs);
	e->jobs = now;
	e->n_jobs = n;
}

/* ---- all others ---------------------------------------------------------- */

#define KIND(k) WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_##k

/* Whether events of other kinds tell of it: where it is found, or those above. */
static bool has_own_events(Weft__V1__ProblemKind kind)
{
	switch (kind) {
	case KIND(DEVICE_ALARM):
	case KIND(CIRCUITS_LOSSY):
	case KIND(LINKS_WRONG):
	case KIND(HOSTS_SILENT):
	case KIND(JOBS_NOT_PLANNED):
	case KIND(CHANGED_BY_OTHERS):
	case KIND(ETCD):
		return false;
	default:
		return true;
	}
}

static bool is_listed(const struct problems *p, const struct told_problem *t)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->list[i]->kind == t->kind && strcmp(p->list[i]->device, t->device) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_told(const struct problem_events *e, const Weft__V1__Problem *m)
{
	for (size_t i = 0; i < e->others.n; i++) {
		if (e->others.v[i].kind == m->kind &&
		    strcmp(e->others.v[i].device, m->device) == 0) {
			return true;
		}
	}
	return false;
}

static void tell_new(struct problem_events *e, const Weft__V1__Problem *m)
{
	const struct daemon_event ev = { .kind = EVENT_KIND(PROBLEM), .device = m->device };
	struct told_problem t = { .kind = m->kind };

	snprintf(t.device, sizeof(t.device), "%s", m->device);
	snprintf(t.text, sizeof(t.text), "%s", m->text);
	vec_push(&e->others, t);
	event_emit(e->views->env->events, &ev, "%s", m->text);
}

static void tell_others(struct problem_events *e, const struct problems *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->others.n; i++) {
		const struct told_problem *t = &e->others.v[i];
		const struct daemon_event ev = { .kind = EVENT_KIND(PROBLEM_ENDED),
						 .device = t->device };

		if (is_listed(p, t)) {
			e->others.v[kept++] = *t;
		} else {
			event_emit(e->views->env->events, &ev, "over: %s", t->text);
		}
	}
	e->others.n = kept;
	for (size_t i = 0; i < p->n; i++) {
		if (!has_own_events(p->list[i]->kind) && !is_told(e, p->list[i])) {
			tell_new(e, p->list[i]);
		}
	}
}

/* ---- all ----------------------------------------------------------------- */

void problem_events_tell(struct problem_events *e)
{
	struct problems p;

	if (e->views->env->draining) {
		return;
	}
	problems_init(&p, e->views);
	tell_devices(e, &p, false);
	tell_jobs(e, &p);
	tell_others(e, &p);
	env_changed(e->views->env);
	problems_fini(&p);
}

void problem_events_meanwhile(struct problem_events *e)
{
	struct problems p;

	problems_init(&p, e->views);
	tell_devices(e, &p, true);
	problems_fini(&p);
}

struct problem_events *problem_events_new(const struct views *views, struct metrics *metrics)
{
	struct problem_events *e = x_new(1, sizeof(*e));

	e->views = views;
	e->metrics = metrics;
	return e;
}

void problem_events_free(struct problem_events *e)
{
	if (e) {
		free_told(e->devices, e->n_devices);
		free(e->jobs);
		vec_fini(&e->others);
		free(e);
	}
}
