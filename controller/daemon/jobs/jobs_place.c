/*
 * Which hosts jobs may have: those that are free, whose ports have not failed, and
 * that are not drained. Which of them a job gets is decided by place_job (plan); here is
 * what the daemon knows: readings, drains, and the hosts that other jobs have.
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

/* A host with a port that has failed on its switch gets no new job, nor one
 * that is drained. */
static bool host_is_good(const struct model_fabric *f, const struct plan_light *observed, int host)
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

void job_view_fini(struct job_view *v)
{
	free(v->usable);
	free(v->busy);
}

void job_view_mark(struct job_view *v, const char *const *except, int n)
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

void job_view_init(struct job_view *v, const struct jobs *jobs)
{
	struct plan_base base;

	*v = (struct job_view){ .f = apply_fabric(jobs->env->apply) };
	v->usable = x_new((size_t)v->f->n_hosts + 1, 1);
	v->busy = x_new((size_t)v->f->n_hosts + 1, 1);
	apply_plan_base(jobs->env->apply, v->f, PLAN_SAFE, &base);
	for (int h = 0; h < v->f->n_hosts; h++) {
		v->usable[h] = host_is_good(v->f, base.observed, h) &&
			       !drain_has_host(jobs->drain, v->f, h);
	}
}

int job_find_place(const struct job_view *v, const struct job *j, int *out, struct err *err)
{
	const Weft__V1__RequestJobRequest *q = j->req;
	struct place_request w = {
		.n = q->n_nodes ? (int)q->n_nodes : q->count,
		.ring = q->ring[0] ? model_find_device(v->f, q->ring) : -1,
		.min_ports = q->min_ports,
	};
	int *hosts = x_new(q->n_nodes + 1, sizeof(*hosts));
	int r = 0;

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
		r = place_job(v->f, &w, v->usable, v->busy, out, err);
	}
	free(hosts);
	return r;
}

char *job_node_names(const struct model_fabric *f, const int *hosts, int n)
{
	struct buf b = { 0 };

	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%s%s", i ? " " : "", f->hosts[hosts[i]].name);
	}
	return buf_steal(&b);
}
