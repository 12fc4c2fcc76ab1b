/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The light that a plan makes and takes away, as messages: each new lightpath
 * with its elements, losses and powers, then the links that the plan
 * interrupts and what that costs hosts and jobs. Powers are in milli-dBm,
 * losses in milli-dB, times in ns. All of it is borrowed from the plan, but
 * for arrays that live during a call.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/proto_convert/proto_convert.h"
#include "lib/base/alloc.h"

/* ---- lightpaths ---------------------------------------------------------- */

/* Fibres have no device; ports count from 1 in messages. */
static void fill_element(const struct model_fabric *f,
			 const struct plan_element *e, Weft__V1__PlanElement *m)
{
	weft__v1__plan_element__init(m);
	if (e->device >= 0) {
		m->device = f->devices[e->device].name;
		m->in = e->xc.in + 1;
		m->out = e->xc.out + 1;
	}
	m->loss_mdb = e->loss_mdb;
	m->source = (char *)plan_source_name(e->source);
}

/* The numbers that a lightpath's message points to. */
struct path_numbers {
	Weft__V1__Number launched, measured, min, max, receiver_min, receiver_max, margin;
};

/* What may be lost, or gained, in milli-dB, before the receiver's nearer
 * limit is met; negative when a limit is exceeded. NULL without a power or a
 * limit. */
static Weft__V1__Number *margin_of(const struct plan_path *p, const struct model_host *to,
				   Weft__V1__Number *at)
{
	int64_t down = p->min_mdbm - to->receive_min_mdbm;
	int64_t up = to->receive_max_mdbm - p->max_mdbm;
	bool is_up = !to->has_receive_min || (to->has_receive_max && up < down);

	return msg_number(at, p->has_power && (to->has_receive_min || to->has_receive_max),
			  is_up ? up : down);
}

/* Powers in milli-dBm, absent where they are not known. */
static void fill_power(const struct model_fabric *f, const struct plan_path *p,
		       struct path_numbers *n, Weft__V1__PlanLightpath *m)
{
	const struct model_host *to = &f->hosts[f->ports[p->rx_port].host];

	m->loss_mdb = p->loss_mdb;
	m->launched_mdbm = msg_number(&n->launched, p->has_launch, p->launched_mdbm);
	m->measured_mdbm = msg_number(&n->measured, p->has_measured, p->measured_mdbm);
	m->no_signal = p->is_dark;
	m->expected_min_mdbm = msg_number(&n->min, p->has_power, p->min_mdbm);
	m->expected_max_mdbm = msg_number(&n->max, p->has_power, p->max_mdbm);
	m->receiver_min_mdbm = msg_number(&n->receiver_min, to->has_receive_min,
					  to->receive_min_mdbm);
	m->receiver_max_mdbm = msg_number(&n->receiver_max, to->has_receive_max,
					  to->receive_max_mdbm);
	m->margin_mdb = margin_of(p, to, &n->margin);
}

/* One lightpath with its elements as a part. */
static int send_path(const struct plan *p, const struct plan_job *pj, const struct plan_path *path,
		     msg_part_fn fn, void *arg, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	Weft__V1__PlanLightpath m = WEFT__V1__PLAN_LIGHTPATH__INIT;
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	struct path_numbers numbers;
	size_t n = (size_t)path->n_elements;
	Weft__V1__PlanElement *items = x_new(n + 1, sizeof(*items));
	Weft__V1__PlanElement **v = x_new(n + 1, sizeof(*v));
	int r;

	for (size_t i = 0; i < n; i++) {
		fill_element(f, &path->elements[i], &items[i]);
		v[i] = &items[i];
	}
	m.job = f->jobs[pj->job].name;
	m.from = f->ports[path->tx_port].name;
	m.to = f->ports[path->rx_port].name;
	m.n_elements = n;
	m.elements = v;
	fill_power(f, path, &numbers, &m);
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_LIGHTPATH;
	part.lightpath = &m;
	r = fn(&part, arg, err);
	free(items);
	free(v);
	return r;
}

/* ---- what goes dark ------------------------------------------------------ */

/* The arrays that one PlanOutages points into: items and the pointers to them
 * that protobuf-c wants. */
struct dark {
	struct plan_outages all;
	Weft__V1__PlanOutage *outages, **outage;
	Weft__V1__PlanDowntime *downs, **down;	/* hosts, then jobs */
	size_t n_downs;
};

/* Room for an outage each and for every host and job; dark_fini() it. */
static void dark_init(struct dark *d, const struct plan *p)
{
	size_t n, n_downs = (size_t)p->fabric->n_hosts + (size_t)p->n_jobs + 1;

	plan_outages(p, &d->all);
	n = (size_t)d->all.n + 1;
	d->outages = x_new(n, sizeof(*d->outages));
	d->outage = x_new(n, sizeof(*d->outage));
	d->downs = x_new(n_downs, sizeof(*d->downs));
	d->down = x_new(n_downs, sizeof(*d->down));
	d->n_downs = 0;
}

static void dark_fini(struct dark *d)
{
	plan_outages_fini(&d->all);
	free(d->outages);
	free(d->outage);
	free(d->downs);
	free(d->down);
}

/* Stages count from 1; restored_in_stage 0: the plan does not bring the link
 * back. */
static void fill_outages(struct dark *d, const struct model_fabric *f, Weft__V1__PlanOutages *m)
{
	for (int i = 0; i < d->all.n; i++) {
		const struct plan_outage *o = &d->all.v[i];
		Weft__V1__PlanOutage *to = d->outage[i] = &d->outages[i];

		weft__v1__plan_outage__init(to);
		to->stage = o->stage + 1;
		to->from = f->ports[o->tx_port].name;
		to->to = f->ports[o->rx_port].name;
		to->restored_in_stage = o->back_stage + 1;
		to->down_ns = o->down_ns;
	}
	m->n_links = (size_t)d->all.n;
	m->links = d->outage;
}

/* Hosts and jobs without an interrupted link are left out. */
static void put_down(struct dark *d, const char *name, const struct plan_downtime *t)
{
	Weft__V1__PlanDowntime *m = &d->downs[d->n_downs];

	if (t->links == 0) {
		return;
	}
	weft__v1__plan_downtime__init(m);
	m->name = (char *)name;
	m->links = t->links;
	m->down_ns = t->down_ns;
	m->permanent = t->ends;
	d->down[d->n_downs++] = m;
}

/* Always sent, also when nothing is interrupted. */
static int send_dark(const struct plan *p, msg_part_fn fn, void *arg, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	Weft__V1__PlanOutages m = WEFT__V1__PLAN_OUTAGES__INIT;
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	struct dark d;
	int r;

	dark_init(&d, p);
	fill_outages(&d, f, &m);
	for (int i = 0; i < f->n_hosts; i++) {
		put_down(&d, f->hosts[i].name, &d.all.hosts[i]);
	}
	m.n_hosts = d.n_downs;
	m.hosts = d.down;
	for (int i = 0; i < p->n_jobs; i++) {
		put_down(&d, f->jobs[p->jobs[i].job].name, &d.all.jobs[i]);
	}
	m.n_jobs = d.n_downs - m.n_hosts;
	m.jobs = d.down + m.n_hosts;
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_OUTAGES;
	part.outages = &m;
	r = fn(&part, arg, err);
	dark_fini(&d);
	return r;
}

int msg_send_lightpaths(const struct plan *p, msg_part_fn fn, void *arg, struct err *err)
{
	int r = 0;

	for (int i = 0; i < p->n_jobs; i++) {
		const struct plan_job *pj = &p->jobs[i];

		for (int k = 0; k < pj->n_paths && r == 0; k++) {
			r = send_path(p, pj, &pj->paths[k], fn, arg, err);
		}
	}
	if (r) {
		return r;
	}
	return send_dark(p, fn, arg, err);
}
