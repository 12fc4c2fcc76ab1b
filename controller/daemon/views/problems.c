/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with the fabric: one list, which status, diff, verify, the page,
 * metrics and events all tell, so that none of them can say less than another.
 *
 * It is made again from the last readings, the last probe of hosts and the last plan
 * of jobs each time it is asked for: there is no copy that could be old. An entry is
 * one kind of thing that is wrong with one device or job, with a count and a sentence
 * that names the first few. What the configuration marks as dead is known already and
 * is no problem, nor is a disabled port unless light is meant to pass it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

#define NAMED 3		/* ports and parts in a sentence */
#define KIND(k) WEFT__V1__PROBLEM_KIND__PROBLEM_KIND_##k

/* ---- the list ------------------------------------------------------------ */

/* What an entry is about. */
struct problem_subject {
	Weft__V1__ProblemKind kind;
	const char *device, *job;	/* NULL: none */
	int count;
	double rate;			/* of a job */
};

/* Silence is none, nor is another controller, and what jobs lack follows from what their devices
 * do. */
static bool is_difference(Weft__V1__ProblemKind kind)
{
	return kind != KIND(DEVICE_UNREACHABLE) && kind != KIND(HOSTS_SILENT) &&
	       kind != KIND(CHANGED_BY_OTHERS) && kind != KIND(CHANGE_WAITS) &&
	       kind != KIND(STORE) && kind != KIND(ETCD) &&
	       kind != KIND(JOB_DEGRADED) && kind != KIND(JOB_DOWN) &&
	       kind != KIND(JOBS_NOT_PLANNED);
}

/* Nothing for a count of 0. */
__attribute__((format(printf, 3, 4)))
static void add(struct problems *p, const struct problem_subject *of, const char *fmt, ...)
{
	struct problem_entry x = { 0 };
	va_list ap;

	if (of->count == 0) {
		return;
	}
	weft__v1__problem__init(&x.m);
	x.m.kind = of->kind;
	x.m.device = (char *)(of->device ? of->device : "");
	x.m.job = (char *)(of->job ? of->job : "");
	x.m.count = of->count;
	x.m.rate = of->rate;
	va_start(ap, fmt);
	vsnprintf(x.text, sizeof(x.text), fmt, ap);
	va_end(ap);
	p->differs = p->differs || is_difference(of->kind);
	vec_push(&p->v, x);
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

/* " and 4 more", or nothing. */
static const char *more_text(int n, int named, char *text, size_t size)
{
	text[0] = '\0';
	if (n > named) {
		snprintf(text, size, " and %d more", n - named);
	}
	return text;
}

/* ---- ports --------------------------------------------------------------- */

const char *problem_port_text(const struct model_device *md, struct drv_port_id port,
			      char *text, size_t size)
{
	snprintf(text, size, "%s %d", md->any_to_any ? "port" : port.is_out ? "out" : "in",
		 port.index + 1);
	return text;
}

static void find_ports(struct problem_device *d, const struct model_device *md,
		       const struct apply_device *a)
{
	for (int i = 0; i < a->snap.n_ports; i++) {
		const struct drv_port *p = &a->snap.ports[i];
		const struct drv_port_id id = { .is_out = p->is_out, .index = p->index };

		if ((p->enabled && !p->failed) || model_port_is_dead(md, p->is_out, p->index)) {
			continue;
		}
		if (p->failed) {
			vec_push(&d->failed, id);
		}
		d->n_disabled += !p->failed;
	}
	d->n_failed = (int)d->failed.n;
}

static void add_ports(struct problems *p, const struct problem_device *d,
		      const struct model_device *md)
{
	char names[NAMED * 24] = "", name[24], more[32];
	size_t named = 0, len = 0;

	for (; named < d->failed.n && named < NAMED; named++) {
		problem_port_text(md, d->failed.v[named], name, sizeof(name));
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					named ? ", " : "", name);
	}
	add(p, &(struct problem_subject){ .kind = KIND(PORTS_FAILED), .device = d->name,
					  .count = d->n_failed },
	    "%s: %d port%s failed: %s%s", d->name, d->n_failed, plural(d->n_failed), names,
	    more_text(d->n_failed, (int)named, more, sizeof(more)));
}

/* ---- rings --------------------------------------------------------------- */

/* FNV-1a over a part; only equality counts. */
static uint64_t mix_part(uint64_t hash, const struct ring_fault *f)
{
	const uint8_t *at = (const uint8_t *)f;

	for (size_t i = 0; i < sizeof(*f); i++) {
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	}
	return hash + 1;
}

static bool is_marked_part(const struct model_device *md, const struct ring_fault *f)
{
	return md->n_dead > 0 && bsearch(f, md->dead, (size_t)md->n_dead, sizeof(*f),
					 ring_fault_cmp);
}

/* Parts that failed and are not marked; the names of the first go to the list. */
static void add_parts(struct problems *p, struct problem_device *d, const struct model_device *md,
		      const struct drv_snapshot *s)
{
	char names[NAMED * (RING_FAULT_TEXT + 2)] = "", name[RING_FAULT_TEXT], more[32];
	size_t len = 0;

	for (int i = 0; i < s->n_dead; i++) {
		if (is_marked_part(md, &s->dead[i])) {
			continue;
		}
		if (d->n_dead < NAMED) {
			ring_fault_text(&s->dead[i], md->ring.n, md->nodes, name);
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						d->n_dead ? ", " : "", name);
		}
		d->parts = mix_part(d->parts, &s->dead[i]);
		d->n_dead++;
	}
	add(p, &(struct problem_subject){ .kind = KIND(PARTS_FAILED), .device = d->name,
					  .count = d->n_dead },
	    "%s: %d part%s failed: %s%s", d->name, d->n_dead, plural(d->n_dead), names,
	    more_text(d->n_dead, NAMED, more, sizeof(more)));
}

static void add_ring(struct problems *p, struct problem_device *d, const struct model_device *md,
		     const struct apply_device *a)
{
	const struct drv_snapshot *s = &a->snap;
	int wrong = a->n_missing > 0 || a->n_unexpected > 0;

	add_parts(p, d, md, s);
	for (int i = 0; i < s->n_lost; i++) {
		if (s->lost[i].why != RESONATOR_NOT_STARTED) {
			d->parts = mix_part(d->parts, &s->lost[i]);
		}
	}
	d->n_unlocked = s->n_unlocked;
	add(p, &(struct problem_subject){ .kind = KIND(SETTINGS_UNLOCKED), .device = d->name,
					  .count = d->n_unlocked },
	    "%s: %d setting%s not locked: %s", d->name, d->n_unlocked, plural(d->n_unlocked),
	    s->lock_detail);
	add(p, &(struct problem_subject){ .kind = KIND(PROGRAM_WRONG), .device = d->name,
					  .count = wrong },
	    "%s: %s", d->name, !a->n_missing ? "a program is loaded that is not intended" :
	    a->n_unexpected ? "another program is loaded" : "its program is missing");
}

/* ---- switches ------------------------------------------------------------ */

static void add_switch(struct problems *p, struct problem_device *d, const struct model_device *md,
		       const struct apply_device *a)
{
	char missing[32] = "", more[32];

	find_ports(d, md, a);
	d->n_dark = a->n_missing + a->n_dark;
	if (a->n_missing > 0) {
		snprintf(missing, sizeof(missing), "%d missing%s", a->n_missing,
			 a->n_dark > 0 ? ", the others " : "");
	}
	add_ports(p, d, md);
	add(p, &(struct problem_subject){ .kind = KIND(CIRCUITS_DARK), .device = d->name,
					  .count = d->n_dark },
	    "%s: %d intended circuit%s without light: %s%s", d->name, d->n_dark, plural(d->n_dark),
	    missing, a->n_dark == 0 ? "" : "failed, at ports out of use, or nothing arrives");
	d->n_lossy = a->n_lossy;
	add(p, &(struct problem_subject){ .kind = KIND(CIRCUITS_LOSSY), .device = d->name,
					  .count = d->n_lossy },
	    "%s: %s%s", d->name, a->lossy, more_text(d->n_lossy, 1, more, sizeof(more)));
	add(p, &(struct problem_subject){ .kind = KIND(CIRCUITS_UNEXPECTED), .device = d->name,
					  .count = a->n_unexpected },
	    "%s: %d circuit%s there that %s not intended", d->name, a->n_unexpected,
	    plural(a->n_unexpected), a->n_unexpected == 1 ? "is" : "are");
}

/* ---- devices, hosts, jobs ------------------------------------------------ */

/* Another controller of the device, as long as it was seen at it lately. */
static void add_others(struct problems *p, const struct apply_device *a)
{
	const struct apply_disturbance *x = &a->disturbed;
	char since[32];

	add(p, &(struct problem_subject){ .kind = KIND(CHANGED_BY_OTHERS), .device = a->name,
					  .count = apply_is_disturbed(a, clk_boot_ns())
							   ? x->n : 0 },
	    "%s: others changed %d circuit%s while weft changed it, since %s (%s): "
	    "let one controller change it", a->name, x->n, plural(x->n),
	    clk_iso(x->since_ns, since, sizeof(since)), x->who);
}

static void add_device(struct problems *p, struct problem_device *d, const struct daemon_env *env,
		       const struct model_device *md, const struct apply_device *a)
{
	int pending = env->changing ? 0 : a->n_pending;

	if (!apply_is_read(a)) {
		return;
	}
	add(p, &(struct problem_subject){ .kind = KIND(DEVICE_UNREACHABLE), .device = d->name,
					  .count = env->was_read && !env->reading &&
						   !a->reachable },
	    "%s does not answer: %s", d->name, a->problem);
	if (!a->ever_read) {
		return;
	}
	add(p, &(struct problem_subject){ .kind = KIND(DEVICE_ALARM), .device = d->name,
					  .count = a->snap.alarm[0] != '\0' },
	    "%s: %s", d->name, a->snap.alarm);
	add_others(p, a);
	if (md->kind == MODEL_RING) {
		add_ring(p, d, md, a);
	} else {
		add_switch(p, d, md, a);
	}
	add(p, &(struct problem_subject){ .kind = KIND(CIRCUITS_PENDING), .device = d->name,
					  .count = pending },
	    "%s: %d circuit%s or programs of a change that did not end well", d->name, pending,
	    plural(pending));
}

static void add_devices(struct problems *p, const struct daemon_env *env)
{
	const struct model_fabric *f = apply_fabric(env->apply);
	const struct apply_device *a;
	int n;

	a = apply_devices(env->apply, &n);
	p->devices = x_new((size_t)n + 1, sizeof(*p->devices));
	p->n_devices = n;
	for (int i = 0; i < n; i++) {
		p->devices[i].name = a[i].name;
		add_device(p, &p->devices[i], env, &f->devices[i], &a[i]);
	}
}

static void add_wait(struct problems *p, const struct changes *changes)
{
	const struct change_wait *w = changes_wait(changes);
	char text[320];

	add(p, &(struct problem_subject){ .kind = KIND(CHANGE_WAITS), .device = w->device,
					  .count = w->change != 0 },
	    "%s", change_wait_text(w, text, sizeof(text)));
}

static void add_etcd(struct problems *p, const struct election *e)
{
	const char *text = e ? e->status.problem : "";

	add(p, &(struct problem_subject){ .kind = KIND(ETCD), .count = text[0] != '\0' },
	    "%s", text);
}

static void add_store(struct problems *p, const struct store_copier *copier)
{
	const char *text = store_copier_problem(copier);

	add(p, &(struct problem_subject){ .kind = KIND(STORE), .count = text[0] != '\0' },
	    "%s", text);
}

/* What hosts of this machine receive. */
static void add_hosts(struct problems *p, const struct hosts *hosts)
{
	const char *port = "", *why = "", *host = "";
	const struct hosts_view *v = &p->hosts;
	int wrong = 0, silent = 0;

	hosts_view_init(&p->hosts, hosts);
	for (size_t i = v->known ? v->m.n_ports : 0; i-- > 0;) {
		if (v->m.ports[i]->problem[0]) {
			port = v->m.ports[i]->name;
			why = v->m.ports[i]->problem;
			wrong++;
		}
	}
	for (size_t i = v->known && v->silent ? v->m.n_hosts : 0; i-- > 0;) {
		if (v->m.hosts[i]->problem[0]) {
			host = v->m.hosts[i]->name;
			silent++;
		}
	}
	add(p, &(struct problem_subject){ .kind = KIND(LINKS_WRONG), .count = wrong },
	    "%d port%s of hosts without the light that is meant for them: %s: %s", wrong,
	    plural(wrong), port, why);
	add(p, &(struct problem_subject){ .kind = KIND(HOSTS_SILENT), .count = silent },
	    "%d host%s cannot be asked: %s", silent, plural(silent), host);
}

const struct job_rows *shown_jobs(const struct views *views)
{
	const struct job_rows *rows = job_status_rows(views->job_status);

	return views->env->applied && rows->known ? rows : NULL;
}

static void add_jobs(struct problems *p, const struct views *views)
{
	const struct job_rows *rows = shown_jobs(views);
	const struct job_rows *all = job_status_rows(views->job_status);

	for (size_t i = 0; rows && i < rows->n; i++) {
		const Weft__V1__PlanJob *j = rows->v[i];

		add(p, &(struct problem_subject){
				.kind = j->rate > 0 ? KIND(JOB_DEGRADED) : KIND(JOB_DOWN),
				.job = j->name, .rate = j->rate,
				.count = j->reason[0] != '\0' && !j->as_configured },
		    "%s", j->reason);
	}
	if (!views->env->applied || all->known) {
		return;
	}
	add(p, &(struct problem_subject){ .kind = KIND(JOBS_NOT_PLANNED),
					  .count = all->err.code != 0 },
	    "the jobs cannot be planned: %s", all->err.msg);
}

/* ---- all ----------------------------------------------------------------- */

/* Once the list grows no more, its messages may be pointed to. */
static void make_list(struct problems *p)
{
	p->n = p->v.n;
	p->list = x_new(p->n + 1, sizeof(*p->list));
	for (size_t i = 0; i < p->n; i++) {
		p->v.v[i].m.text = p->v.v[i].text;
		p->list[i] = &p->v.v[i].m;
	}
}

void problems_init(struct problems *p, const struct views *views)
{
	memset(p, 0, sizeof(*p));
	add_devices(p, views->env);
	add_wait(p, views->changes);
	add_etcd(p, views->election);
	add_store(p, views->copier);
	add_hosts(p, views->hosts);
	add_jobs(p, views);
	make_list(p);
}

void problems_fini(struct problems *p)
{
	for (int i = 0; i < p->n_devices; i++) {
		vec_fini(&p->devices[i].failed);
	}
	free(p->devices);
	hosts_view_fini(&p->hosts);
	free(p->list);
	vec_fini(&p->v);
	memset(p, 0, sizeof(*p));
}
