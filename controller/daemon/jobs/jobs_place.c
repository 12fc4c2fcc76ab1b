/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts jobs may have: those that are free, and whose ports that they would have
 * have not failed and are not drained. Which of them a job gets is decided by place_job
 * (plan); here is what the daemon knows: readings, drains, and the hosts that other jobs have.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/plan/plan.h"
#include "lib/base/alloc.h"

static bool is_bad(const int *v, int n, int port)
{
	for (int i = 0; i < n; i++) {
		if (v[i] == port) {
			return true;
		}
	}
	return false;
}

/* One side of a switch's port, by the last reading; device -1: no switch. */
static bool port_is_bad(const struct plan_light *l, int device, int port, bool in)
{
	if (device < 0 || !l) {
		return false;
	}
	l += device;
	return in ? is_bad(l->bad_in, l->n_bad_in, port)
		  : is_bad(l->bad_out, l->n_bad_out, port);
}

/* A port that has failed on its switch gets no new job, nor one that is drained. */
static bool port_is_good(const struct jobs *jobs, const struct model_fabric *f,
			 const struct plan_light *observed, int port)
{
	const struct model_port *p = &f->ports[port];

	return !port_is_bad(observed, p->tx_device, p->tx_port, true) &&
	       !port_is_bad(observed, p->rx_device, p->rx_port, false) &&
	       !drain_has_port(jobs->drain, f, port);
}

/* Whether this port of a host is one of those that the request names. */
static bool wants_port(const struct model_fabric *f, const Weft__V1__RequestJobRequest *q,
		       int port)
{
	const struct model_port *p = &f->ports[port];
	const char *name = p->name + strlen(f->hosts[p->host].name) + 1;
	bool wanted = false;

	for (size_t i = 0; i < q->n_ports && !wanted; i++) {
		const size_t len = strlen(q->ports[i]);

		wanted = strncmp(name, q->ports[i], len) == 0 &&
			 (!name[len] || (p->lanes > 1 && name[len] == '-'));
	}
	return wanted;
}

void job_view_fini(struct job_view *v)
{
	free(v->good);
	free(v->busy);
	free(v->silent);
	free(v->tx);
	free(v->rx);
}

/* The next of the hosts that are named, -1: there is none of this name any more; moves *names on
 * behind it. False: that was the last. */
static bool next_host(const struct model_fabric *f, const char **names, int *host)
{
	const size_t len = strcspn(*names, " ");
	char name[CONF_MAX_NAME + 1];

	if (!len || len >= sizeof(name)) {
		return false;
	}
	memcpy(name, *names, len);
	name[len] = '\0';
	*host = model_find_host(f, name);
	*names += len + ((*names)[len] == ' ');
	return true;
}

void job_view_mark_side(struct job_view *v, int port, bool tx, const char *name)
{
	const char **holder = tx ? &v->tx[port] : &v->rx[port];

	*holder = *holder ? *holder : name;
}

/* A host's ports that the job may have; which ones of a number is not known before. */
static void mark_ports(struct job_view *v, const struct job *j, int host)
{
	const struct model_host *h = &v->f->hosts[host];

	v->busy[host] = true;
	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		if (j->req->n_ports == 0 || wants_port(v->f, j->req, p)) {
			job_view_mark_side(v, p, true, j->s.name);
			job_view_mark_side(v, p, false, j->s.name);
		}
	}
}

void job_view_mark_job(struct job_view *v, const struct job *j, const char *nodes)
{
	int host;

	if (j->req->n_circuits > 0) {
		job_mark_circuits(v, j);
		return;
	}
	while (!j->req->ring[0] && next_host(v->f, &nodes, &host)) {
		if (host >= 0) {
			mark_ports(v, j, host);
		}
	}
}

static void mark_job(struct job_view *v, int job)
{
	const struct model_job *m = &v->f->jobs[job];

	for (int k = 0; k < m->n_hosts; k++) {
		v->busy[m->hosts[k]] = true;
	}
	for (int k = 0; k < m->n_ports; k++) {
		const struct model_port *p = &v->f->ports[m->ports[k]];

		if (p->tx_job == job) {
			v->tx[m->ports[k]] = m->name;
		}
		if (p->rx_job == job) {
			v->rx[m->ports[k]] = m->name;
		}
	}
}

static bool is_among(const char *const *names, int n, const char *name)
{
	bool found = false;

	for (int k = 0; k < n; k++) {
		found |= strcmp(names[k], name) == 0;
	}
	return found;
}

/* A job that has hosts of which the fabric says nothing: it begins, or the fabric is another than
 * the one in force, as after a rollback that was refused. */
static bool is_not_in_fabric(const struct job_view *v, const struct job *j)
{
	return j->s.state == STORE_JOB_STARTING ||
	       ((j->s.state == STORE_JOB_RUNNING || j->s.state == STORE_JOB_ENDING) &&
		model_find_job(v->f, j->s.name) < 0);
}

void job_view_mark(struct job_view *v, const struct jobs *jobs, const char *const *except, int n)
{
	for (int i = 0; i < v->f->n_jobs; i++) {
		if (v->f->jobs[i].device < 0 && !is_among(except, n, v->f->jobs[i].name)) {
			mark_job(v, i);
		}
	}
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];

		if (is_not_in_fabric(v, j) &&
		    (j->s.state == STORE_JOB_STARTING || !is_among(except, n, j->s.name))) {
			job_view_mark_job(v, j, j->s.nodes);
		}
	}
}

void job_view_mark_queued(struct job_view *v, const struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		if (jobs->v.v[i]->s.state == STORE_JOB_QUEUED && jobs->v.v[i]->req->n_circuits) {
			job_view_mark_job(v, jobs->v.v[i], "");
		}
	}
}

bool job_is_silent(const struct job_view *v, const char *nodes)
{
	bool silent = false;
	int host;

	while (!silent && next_host(v->f, &nodes, &host)) {
		silent = host >= 0 && v->silent[host];
	}
	return silent;
}

static bool device_is_silent(const struct apply_device *devices, int device)
{
	return device >= 0 && !devices[device].reachable && apply_is_read(&devices[device]);
}

static bool host_is_silent(const struct model_fabric *f, const struct apply_device *devices,
			   int host)
{
	const struct model_host *h = &f->hosts[host];
	bool silent = false;

	for (int i = h->first_port; i < h->first_port + h->n_ports && !silent; i++) {
		silent = device_is_silent(devices, f->ports[i].tx_device) ||
			 device_is_silent(devices, f->ports[i].rx_device);
	}
	return silent;
}

void job_view_init(struct job_view *v, const struct jobs *jobs)
{
	struct apply *apply = jobs->env->apply;
	const struct apply_device *devices;
	struct plan_base base;
	int n;

	*v = (struct job_view){ .f = apply_fabric(apply) };
	v->drain = jobs->drain;
	v->good = x_new((size_t)v->f->n_ports + 1, 1);
	v->busy = x_new((size_t)v->f->n_hosts + 1, 1);
	v->silent = x_new((size_t)v->f->n_hosts + 1, 1);
	v->tx = x_new((size_t)v->f->n_ports + 1, sizeof(*v->tx));
	v->rx = x_new((size_t)v->f->n_ports + 1, sizeof(*v->rx));
	devices = apply_devices(apply, &n);
	apply_plan_base(apply, v->f, PLAN_SAFE, &base);
	v->times = base.times;
	for (int h = 0; h < v->f->n_hosts; h++) {
		v->silent[h] = host_is_silent(v->f, devices, h);
	}
	for (int p = 0; p < v->f->n_ports; p++) {
		v->good[p] = port_is_good(jobs, v->f, base.observed, p);
	}
}

/* A host is judged by the ports of it that the job has; where it has none by those that it names,
 * else by all that no other has, as which of them it will have is not known before. */
static bool host_is_usable(const struct job_view *v, const struct job *j, int host)
{
	const struct model_host *h = &v->f->hosts[host];
	bool has_some = false, own = true, others = true;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const char *holder = v->tx[p] ? v->tx[p] : v->rx[p];

		if (holder && strcmp(holder, j->s.name) == 0) {
			has_some = true;
			own = own && v->good[p];
		} else if (j->req->n_ports ? wants_port(v->f, j->req, p) : !holder) {
			others = others && v->good[p];
		}
	}
	return (has_some ? own : others) && !(v->drain && drain_has_host(v->drain, v->f, host));
}

bool *job_usable_hosts(const struct job_view *v, const struct job *j)
{
	bool *usable = x_new((size_t)v->f->n_hosts + 1, 1);

	for (int h = 0; h < v->f->n_hosts; h++) {
		usable[h] = host_is_usable(v, j, h);
	}
	return usable;
}

/* Whether no job has the port, and it has fibres both ways that the file does not call dead. */
static bool is_left(const struct job_view *v, int port)
{
	const struct model_port *p = &v->f->ports[port];
	const struct model_device *in, *out;

	if (v->tx[port] || v->rx[port] || p->tx_device < 0 || p->rx_device < 0) {
		return false;
	}
	in = &v->f->devices[p->tx_device];
	out = &v->f->devices[p->rx_device];
	return !model_port_is_dead(in, false, p->tx_port) &&
	       !model_port_is_dead(out, true, p->rx_port);
}

/* Whether a host has what is left for a request: the ports that it names, as many as it wants, or
 * any of a host that was named and all of others. */
static bool has_ports_left(const struct job_view *v, const Weft__V1__RequestJobRequest *q,
			   int host)
{
	const struct model_host *h = &v->f->hosts[host];
	int left = 0, named = 0;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const bool is_free = is_left(v, p);

		left += is_free;
		named += is_free && wants_port(v->f, q, p) && v->f->ports[p].lane == 0;
	}
	if (q->n_shape > 0) {
		return left == h->n_ports;
	}
	if (q->n_ports > 0) {
		return (size_t)named == q->n_ports;
	}
	return q->port_count > 0 ? left >= q->port_count
				 : !v->busy[host] || (q->n_nodes > 0 && left > 0);
}

/* As place_job wants them: hosts that this request cannot have. */
static bool *find_busy(const struct job_view *v, const struct job *j)
{
	bool *busy = x_new((size_t)v->f->n_hosts + 1, 1);

	for (int h = 0; h < v->f->n_hosts; h++) {
		busy[h] = j->req->ring[0] ? v->busy[h] : !has_ports_left(v, j->req, h);
	}
	return busy;
}

/* The errors of place_job; hosts: free(). */
static int find_hosts(const struct job_view *v, const struct job *j, int **out, int *n,
		      struct err *err)
{
	const Weft__V1__RequestJobRequest *q = j->req;
	struct plan_base base;
	struct place_request w = {
		.n = q->n_nodes ? (int)q->n_nodes : q->count,
		.ring = q->ring[0] ? model_find_device(v->f, q->ring) : -1,
		.ranks = q->ranks,
		.min_ports = q->min_ports > q->port_count ? q->min_ports : q->port_count,
		.topology = q->topology,
		.base = &base,
		.is_twisted = q->twist,
		.spares = q->spares,
	};
	bool *busy = find_busy(v, j), *usable = job_usable_hosts(v, j);
	int *hosts = x_new(q->n_nodes + 1, sizeof(*hosts));
	int r = 0;

	*out = NULL;
	apply_plan_base(j->jobs->env->apply, v->f, PLAN_SAFE, &base);
	for (size_t i = 0; i < q->n_shape && i < 3; i++) {
		w.shape[i] = q->shape[i];
	}
	for (size_t i = 0; i < q->n_nodes && r == 0; i++) {
		hosts[i] = model_find_host(v->f, q->nodes[i]);
		if (hosts[i] < 0) {
			r = err_set(err, WEFT_EINVAL, "there is no host %s any "
				    "more", q->nodes[i]);
		}
	}
	if (r == 0 && q->ring[0] && w.ring < 0) {
		r = err_set(err, WEFT_EINVAL, "there is no ring %s any more", q->ring);
	}
	w.hosts = q->n_nodes ? hosts : NULL;
	if (r == 0) {
		r = place_job(v->f, &w, usable, busy, out, n, err);
	}
	free(busy);
	free(usable);
	free(hosts);
	return r;
}

char *job_find_place(struct job_view *v, const struct job *j, struct err *err)
{
	int *hosts, n;
	char *names;

	if (j->req->n_circuits > 0) {
		return circuits_check(v, j->jobs, j->s.name, j->req, err) ? NULL
									   : circuits_hosts(v, j);
	}
	names = find_hosts(v, j, &hosts, &n, err) ? NULL : job_node_names(v->f, hosts, n);
	free(hosts);
	return names;
}

int job_check_ever(const struct job *j, struct err *err)
{
	struct job_view v;
	char *nodes;

	job_view_init(&v, j->jobs);
	memset(v.good, 1, (size_t)v.f->n_ports);
	v.drain = NULL;
	nodes = job_find_place(&v, j, err);
	job_view_fini(&v);
	if (nodes) {
		free(nodes);
		return 0;
	}
	return err->code = WEFT_EINVAL;
}
