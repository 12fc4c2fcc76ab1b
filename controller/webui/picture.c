/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a fabric as JSON: what is where, who is connected, what is
 * in use.
 *
 * The page draws from this object alone and gets it again only when it has
 * changed, so it has no readings and no times in it. It is written by hand
 * rather than with the writer, as arrays of plain numbers: a fabric of
 * thousands of ports must stay small. Things are named once and referred to
 * by index: ports are [host order], devices, jobs and hosts likewise, and a
 * circuit is [device, in, out, sending port, receiving port, job, channel].
 * docs/api.md has all of it.
 */
#include <stdlib.h>

#include "controller/webui/occupancy.h"
#include "controller/webui/private.h"
#include "controller/webui/webui.h"
#include "lib/output/writer.h"

/* ---- what is there ------------------------------------------------------- */

/* "key":"name", quoted; NULL is "". */
static void put_name(struct buf *b, const char *key, const char *name)
{
	buf_printf(b, "\"%s\":", key);
	out_json_quote(b, name ? name : "");
}

/* ,"key":[...], for a list that follows another field. */
static void put_ints(struct buf *b, const char *key, const int *v, int n)
{
	buf_printf(b, ",\"%s\":[", key);
	for (int i = 0; i < n; i++) {
		buf_printf(b, i ? ",%d" : "%d", v[i]);
	}
	buf_char(b, ']');
}

/* "hosts": [[name, first port, ports]], "ports": [name]. */
static void put_hosts(struct buf *b, const struct model_fabric *f)
{
	buf_str(b, "\"hosts\":[");
	for (int i = 0; i < f->n_hosts; i++) {
		const struct model_host *h = &f->hosts[i];

		buf_str(b, i ? ",[" : "[");
		out_json_quote(b, h->name);
		buf_printf(b, ",%d,%d]", h->first_port, h->n_ports);
	}
	buf_str(b, "],\"ports\":[");
	for (int i = 0; i < f->n_ports; i++) {
		buf_str(b, i ? "," : "");
		out_json_quote(b, f->ports[i].name);
	}
	buf_char(b, ']');
}

/* "trunks": [[from device, output, to device, input, channel]], ports from
 * 1. */
static void put_trunks(struct buf *b, const struct model_fabric *f)
{
	buf_str(b, ",\"trunks\":[");
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		buf_printf(b, "%s[%d,%d,%d,%d,%d]", i ? "," : "",
			   t->from_device, t->from_port + 1, t->to_device,
			   t->to_port + 1, t->channel);
	}
	buf_char(b, ']');
}

/* ---- rings --------------------------------------------------------------- */

const struct plan_device *page_find_device(const struct plan *p, int device)
{
	for (int i = 0; p && i < p->n_devices; i++) {
		if (p->devices[i].device == device) {
			return &p->devices[i];
		}
	}
	return NULL;
}

int page_find_job(const struct plan *p, const char *name)
{
	int job = model_find_job(p->fabric, name);

	for (int i = 0; i < p->n_jobs; i++) {
		if (p->jobs[i].job == job) {
			return i;
		}
	}
	return -1;
}

/* The grid of a ring, for each job by itself; "whole" is false when there
 * were more settings than PAGE_MAX_CELLS, and the shares are of those looked
 * at. */
static int put_occupancy(struct buf *b, const struct plan *p, const struct ring_programs *programs,
			 const struct ring_geometry *ring, struct err *err)
{
	int64_t cells = PAGE_MAX_CELLS;
	struct occupancy o;
	bool comma = false;
	int r = 0;

	occupancy_init(&o, ring);
	buf_printf(b, ",\"row_size\":%d,\"segment_size\":%d,\"rows\":%d,"
		   "\"columns\":%d,\"lit\":[",
		   o.row_size, o.col_size, o.rows, o.cols);
	for (int i = 0; i < programs->n && r == 0; i++) {
		r = occupancy_of(&o, &programs->v[i], &cells, err);
		if (r == 0) {
			occupancy_put_runs(&o, page_find_job(p, programs->v[i].name), b, &comma);
		}
	}
	buf_printf(b, "],\"whole\":%s", cells > 0 ? "true" : "false");
	occupancy_fini(&o);
	return r;
}

/* "programs": the nodes and channels that each job's program may use. */
static void put_programs(struct buf *b, const struct plan *p, const struct ring_programs *programs)
{
	buf_str(b, ",\"programs\":[");
	for (int i = 0; i < programs->n; i++) {
		const struct ring_program *k = &programs->v[i];

		buf_printf(b, "%s{\"job\":%d,\"steps\":%u,\"settings\":%u,"
			   "\"first_node\":%u,\"nodes\":%u,\"first_channel\":"
			   "%u,\"channels\":%u}", i ? "," : "",
			   page_find_job(p, k->name), k->steps, k->settings,
			   k->window.first_node, k->window.nodes,
			   k->window.first_channel, k->window.channels);
	}
	buf_char(b, ']');
}

static int put_ring(struct buf *b, const struct model_device *d, const struct plan *p,
		    const struct plan_device *pd, struct err *err)
{
	const struct ring_geometry ring = {
		.nodes = (uint16_t)d->n_members,
		.channels = (uint16_t)d->ring.channels,
		.fibres = (uint8_t)d->ring.fibres,
	};
	int r = 0;

	put_ints(b, "members", d->members, d->n_members);
	buf_printf(b, ",\"channels\":%d,\"fibres\":%d", ring.channels, ring.fibres);
	if (pd && pd->has_program) {
		put_programs(b, p, &pd->programs);
		r = put_occupancy(b, p, &pd->programs, &ring, err);
	}
	return r;
}

/* Rings with members and programs, switches with the host port behind each
 * input and output, -1 without one. */
static int put_devices(struct buf *b, const struct model_fabric *f,
		       const struct plan *p, struct err *err)
{
	int r = 0;

	buf_str(b, ",\"devices\":[");
	for (int i = 0; i < f->n_devices && r == 0; i++) {
		const struct model_device *d = &f->devices[i];

		buf_str(b, i ? ",{" : "{");
		put_name(b, "name", d->name);
		buf_char(b, ',');
		put_name(b, "kind", model_device_kind_name(d->kind));
		buf_char(b, ',');
		put_name(b, "domain", d->domain);
		if (d->kind == MODEL_RING) {
			r = put_ring(b, d, p, page_find_device(p, i), err);
		} else {
			buf_printf(b, ",\"any_to_any\":%s", d->any_to_any ? "true" : "false");
			put_ints(b, "in", d->in_port, d->n_in);
			put_ints(b, "out", d->out_port, d->n_out);
		}
		buf_char(b, '}');
	}
	buf_char(b, ']');
	return r;
}

/* ---- jobs ---------------------------------------------------------------- */

/* "circuits": see above; job is the index in "jobs". */
static void put_circuits(struct buf *b, const struct plan *p)
{
	const char *comma = "";

	buf_str(b, ",\"circuits\":[");
	for (int i = 0; i < p->n_jobs; i++) {
		const struct plan_job *j = &p->jobs[i];

		for (int k = 0; k < j->n_circuits; k++) {
			const struct plan_circuit *c = &j->circuits[k];

			buf_printf(b, "%s[%d,%d,%d,%d,%d,%d,%d]", comma, c->device, c->xc.in + 1,
				   c->xc.out + 1, c->tx_port, c->rx_port, i, c->channel);
			comma = ",";
		}
	}
	buf_char(b, ']');
}

/* "jobs": name and hosts, in the order of the plan. */
static void put_jobs(struct buf *b, const struct plan *p)
{
	buf_str(b, ",\"jobs\":[");
	for (int i = 0; i < p->n_jobs; i++) {
		const struct model_job *j = &p->fabric->jobs[p->jobs[i].job];

		buf_str(b, i ? ",{" : "{");
		put_name(b, "name", j->name);
		put_ints(b, "hosts", j->hosts, j->n_hosts);
		buf_char(b, '}');
	}
	buf_char(b, ']');
	put_circuits(b, p);
}

int page_picture(const struct model_fabric *f, const struct plan *plan,
		 struct buf *out, struct err *err)
{
	int r = 0;

	buf_char(out, '{');
	put_name(out, "fabric", f->name);
	buf_printf(out, ",\"too_large\":%s,", f->n_ports > PAGE_MAX_PORTS ? "true" : "false");
	if (f->n_ports <= PAGE_MAX_PORTS) {
		put_hosts(out, f);
		put_trunks(out, f);
		r = put_devices(out, f, plan, err);
	} else {
		buf_str(out, "\"hosts\":[],\"ports\":[],\"trunks\":[],"
			     "\"devices\":[]");
	}
	if (r == 0 && plan && f->n_ports <= PAGE_MAX_PORTS) {
		put_jobs(out, plan);
	}
	buf_char(out, '}');
	return r;
}
