/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits that a plan takes away, and when their receivers have a signal
 * again: switching time of the devices, then reactivation of the transceiver.
 *
 * Times are those that were learned (plan_base.times) where they are known,
 * else the fabric's; a plan says which of them its expectation rests on. The
 * stages are walked in order with the state of every device before and after,
 * and an outage ends with the first stage that gives its receiver a signal, of
 * whatever sender.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* ---- how long a stage takes ---------------------------------------------- */

const char *plan_times_name(enum plan_times_of of)
{
	static const char *const names[] = { "configured", "learned",
					     "some learned" };

	return names[of];
}

static int64_t port_ns(const struct model_fabric *f, const struct plan_times *known, int port)
{
	return port < known->n_ports && known->port_ns[port]
		       ? known->port_ns[port] : f->hosts[f->ports[port].host].reactivation_ns;
}

static int64_t device_ns(const struct model_fabric *f, const struct plan_times *known, int device)
{
	return device < known->n_devices && known->device_ns[device]
		       ? known->device_ns[device] : f->devices[device].switch_ns;
}

int64_t plan_moves_ns(const struct model_fabric *f, const struct plan_times *known, int device,
		      int n)
{
	return f->devices[device].kind == MODEL_PANEL ? n * device_ns(f, known, device) : 0;
}

int64_t plan_light_change_ns(const struct plan_ctx *ctx, const struct model_job *job)
{
	const struct plan_times *known = &ctx->base->times;
	const struct model_fabric *f = ctx->fabric;
	int64_t moving = 0, back = 0;

	for (int i = 0; i < job->n_ports; i++) {
		int device = f->ports[job->ports[i]].tx_device;
		int64_t ns = device < 0 ? 0 : device_ns(f, known, device);

		moving = ns > moving ? ns : moving;
		ns = device < 0 ? 0 : port_ns(f, known, job->ports[i]);
		back = ns > back ? ns : back;
	}
	/* One batch that deletes, one that adds. */
	return 2 * moving + back;
}

void plan_take_times(struct plan *p, const struct plan_times *known)
{
	const struct model_fabric *f = p->fabric;

	p->port_ns = x_new((size_t)f->n_ports + 1, sizeof(*p->port_ns));
	p->device_ns = x_new((size_t)f->n_devices + 1, sizeof(*p->device_ns));
	for (int i = 0; i < f->n_ports; i++) {
		p->port_ns[i] = port_ns(f, known, i);
	}
	for (int i = 0; i < f->n_devices; i++) {
		p->device_ns[i] = device_ns(f, known, i);
	}
}

int64_t plan_reactivation_ns(const struct plan *p, int port)
{
	return p->port_ns ? p->port_ns[port] :
	       p->fabric->hosts[p->fabric->ports[port].host].reactivation_ns;
}

int64_t plan_switching_ns(const struct plan *p, int device, int n_del, int n_add)
{
	const struct model_device *dev = &p->fabric->devices[device];
	int64_t once = p->device_ns ? p->device_ns[device] : dev->switch_ns;
	/* Switches move all mirrors of a batch at once, a robot has one arm. */
	bool one_by_one = dev->kind == MODEL_PANEL;

	return once * (one_by_one ? (int64_t)n_del + n_add : (n_del > 0) + (n_add > 0));
}

static int count_in(const int *stages, int n, int stage)
{
	int found = 0;

	for (int i = 0; i < n; i++) {
		found += stages[i] == stage;
	}
	return found;
}

/* Its devices work at the same time. */
static int64_t stage_ns(const struct plan *p, int stage)
{
	int64_t most = 0;

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		int64_t ns = plan_switching_ns(
			p, d->device,
			count_in(d->del_stage, d->n_del, stage),
			count_in(d->add_stage, d->n_add, stage));

		most = ns > most ? ns : most;
	}
	return most;
}

/* ---- receivers ----------------------------------------------------------- */

struct outage_watch {
	const struct plan *plan;
	VEC(struct plan_outage) v;
	int *open;		/* [n_ports] of v, by receiver; -1: has light */
	int n_open;		/* of them without light */
	int64_t *lit_ns;	/* [n_ports] when a receiver has its last new light, after an
				 * outage of any; 0: it has none */
	int64_t now_ns;		/* since the first stage began */
};

static void drain(struct outage_watch *w, int stage)
{
	struct plan_arc *arcs;
	int n;

	plan_stage_removes(w->plan, stage, &arcs, &n);
	for (int i = 0; i < n; i++) {
		struct plan_outage o = { .stage = stage, .back_stage = -1,
					 .since_ns = w->now_ns, .down_ns = -1,
					 .tx_port = arcs[i].tx_port,
					 .rx_port = arcs[i].rx_port };

		w->n_open += w->open[o.rx_port] < 0;
		w->open[o.rx_port] = (int)w->v.n;
		vec_push(&w->v, o);
	}
	free(arcs);
}

static void light_up(struct outage_watch *w, int stage)
{
	struct plan_arc *arcs;
	int n;

	if (w->v.n == 0) {
		return;
	}
	plan_stage_adds(w->plan, stage, &arcs, &n);
	for (int i = 0; i < n; i++) {
		int rx = arcs[i].rx_port, at = w->open[rx];

		w->lit_ns[rx] = w->now_ns + plan_reactivation_ns(w->plan, rx);
		if (at >= 0) {
			w->v.v[at].back_stage = stage;
			w->v.v[at].down_ns = w->lit_ns[rx] - w->v.v[at].since_ns;
			w->open[rx] = -1;
			w->n_open--;
		}
	}
	free(arcs);
}

/* ---- hosts and jobs ------------------------------------------------------ */

static void count(struct plan_downtime *t, const struct plan_outage *o)
{
	t->links++;
	t->ends |= o->back_stage < 0;
	t->down_ns = o->down_ns > t->down_ns ? o->down_ns : t->down_ns;
}

static void count_hosts(const struct plan *p, struct plan_outages *out)
{
	const struct model_port *ports = p->fabric->ports;

	for (int i = 0; i < out->n; i++) {
		const struct plan_outage *o = &out->v[i];
		int from = ports[o->tx_port].host, to = ports[o->rx_port].host;

		count(&out->hosts[to], o);
		if (from != to) {
			count(&out->hosts[from], o);
		}
	}
}

/* A program that is the same is not touched. */
static void count_ring(const struct plan *p, int job, struct plan_downtime *t)
{
	const struct model_job *mj = &p->fabric->jobs[p->jobs[job].job];

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		const struct ring_program *old, *now;

		if (d->device != mj->device || !d->load_program) {
			continue;
		}
		old = ring_programs_find(&d->old_programs, mj->name);
		now = ring_programs_find(&d->programs, mj->name);
		if (old && !(now && ring_program_equal(old, now))) {
			t->links = 1;
			t->down_ns = t->stalled_ns = d->down_ns;
		}
	}
}

/* Outages come in the order in which they begin: what of this one is not in
 * those before it. */
static void count_stall(struct plan_downtime *t, int64_t *until_ns, const struct plan_outage *o)
{
	int64_t end = o->since_ns + o->down_ns;
	int64_t from = o->since_ns > *until_ns ? o->since_ns : *until_ns;

	if (o->back_stage >= 0 && end > from) {
		t->stalled_ns += end - from;
		*until_ns = end;
	}
}

/* A job whose old light is broken waits for all of its new one, as for a robot's. */
static void count_wait(const struct plan_job *pj, const int64_t *lit_ns, int64_t until_ns,
		       struct plan_downtime *t)
{
	for (int k = 0; k < pj->n_circuits && until_ns; k++) {
		int64_t lit = lit_ns[pj->circuits[k].rx_port];

		if (lit > until_ns) {
			t->stalled_ns += lit - until_ns;
			until_ns = lit;
		}
	}
}

/* The job to receive at each port once the plan is done, or -1. */
static void count_jobs(const struct plan *p, int *job_of, const int64_t *lit_ns,
		       struct plan_outages *out)
{
	int64_t *until_ns = x_new((size_t)p->n_jobs + 1, sizeof(*until_ns));

	memset(job_of, -1, (size_t)p->fabric->n_ports * sizeof(*job_of));
	for (int i = 0; i < p->n_jobs; i++) {
		const struct plan_job *pj = &p->jobs[i];

		for (int k = 0; k < pj->n_circuits; k++) {
			job_of[pj->circuits[k].rx_port] = i;
		}
		if (pj->is_ring) {
			count_ring(p, i, &out->jobs[i]);
		}
	}
	for (int i = 0; i < out->n; i++) {
		int job = job_of[out->v[i].rx_port];

		if (job >= 0) {
			count(&out->jobs[job], &out->v[i]);
			count_stall(&out->jobs[job], &until_ns[job], &out->v[i]);
		}
	}
	for (int i = 0; i < p->n_jobs; i++) {
		count_wait(&p->jobs[i], lit_ns, until_ns[i], &out->jobs[i]);
	}
	free(until_ns);
}

/* ---- all ----------------------------------------------------------------- */

void plan_outages(const struct plan *p, struct plan_outages *out)
{
	const struct model_fabric *f = p->fabric;
	size_t n_ports = (size_t)f->n_ports + 1;
	struct outage_watch w = { .plan = p,
			   .open = x_alloc(n_ports, sizeof(*w.open)),
			   .lit_ns = x_new(n_ports, sizeof(*w.lit_ns)) };

	*out = (struct plan_outages){
		.hosts = x_new((size_t)f->n_hosts + 1, sizeof(*out->hosts)),
		.jobs = x_new((size_t)p->n_jobs + 1, sizeof(*out->jobs)),
	};
	memset(w.open, -1, n_ports * sizeof(*w.open));
	for (int s = 0; s < p->n_stages; s++) {
		drain(&w, s);
		w.now_ns += stage_ns(p, s);
		light_up(&w, s);
	}
	out->v = w.v.v;
	out->n = (int)w.v.n;
	count_hosts(p, out);
	count_jobs(p, w.open, w.lit_ns, out);
	free(w.open);
	free(w.lit_ns);
}

void plan_outages_fini(struct plan_outages *o)
{
	free(o->v);
	free(o->hosts);
	free(o->jobs);
	memset(o, 0, sizeof(*o));
}
