/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules to look at: what each step of a job's schedule uses of the fabric.
 *
 * The schedule is the one in force, on what works of the fabric. A frame is a
 * step, or several where there are too many. On switches it tells
 * what each circuit carries against the fullest one of the frame; on rings
 * where there is light. Both go by the numbers of the picture (picture.c),
 * so that the page draws a frame as it draws the fabric. Frames are made with
 * ever more steps each until all of them fit the job's share of
 * PAGE_STEPS_BYTES.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/webui/occupancy.h"
#include "controller/webui/private.h"
#include "controller/webui/webui.h"
#include "lib/base/alloc.h"
#include "lib/output/writer.h"

/* The frames of one job while they are written. */
struct frames {
	const struct plan *plan;
	int job;		/* of the plan */
	const struct coll_sched *sched;	/* on switches: that in force */
	int *arc;		/* of it, by circuit of the job; -1: none */
	int first_circuit;	/* of the job, in the picture */
	int per;		/* steps a frame */
	int first, n;		/* steps of the frame at hand; n 0: none */
	double *sum;		/* [arcs] shards that it carries */
	struct buf *out;
	bool comma;
};

/* {"first":0,"steps":1,"most":0.25,"lit":[ */
static void open_frame(struct frames *f, double most)
{
	buf_printf(f->out, "%s{\"first\":%d,\"steps\":%d,\"most\":%.6g,\"lit\":[",
		   f->comma ? "," : "", f->first, f->n, most);
	f->comma = true;
}

/* In thousandths of the fullest arc; what carries at all has at least 1. */
static int share_of(const struct frames *f, int circuit, double most)
{
	double shards = f->arc[circuit] < 0 ? 0 : f->sum[f->arc[circuit]];
	int share = most > 0 ? (int)(1000 * shards / most) : 0;

	return share > 0 || shards <= 0 ? share : 1;
}

/* Neighbours that carry the same as one: [first circuit, circuits, share]. */
static void put_circuit_frame(struct frames *f, int n_arcs)
{
	const struct plan_job *j = &f->plan->jobs[f->job];
	const char *comma = "";
	double most = 0;

	for (int a = 0; a < n_arcs; a++) {
		most = f->sum[a] > most ? f->sum[a] : most;
	}
	open_frame(f, most);
	for (int i = 0, end; i < j->n_circuits; i = end) {
		int share = share_of(f, i, most);

		for (end = i + 1; end < j->n_circuits && share_of(f, end, most) == share; end++) {
		}
		if (share > 0) {
			buf_printf(f->out, "%s[%d,%d,%d]", comma, f->first_circuit + i, end - i,
				   share);
			comma = ",";
		}
	}
	buf_str(f->out, "]}");
	memset(f->sum, 0, (size_t)n_arcs * sizeof(*f->sum));
	f->n = 0;
}

static int n_arcs_of(const struct frames *f)
{
	return topo_m(coll_physical(f->sched));
}

/* Steps come in their order; a frame ends before the first that is not its own. */
static void take_step(int step, const double *shards, void *arg)
{
	struct frames *f = arg;
	int n = n_arcs_of(f);

	if (f->n > 0 && step >= f->first + f->per) {
		put_circuit_frame(f, n);
	}
	if (f->n == 0) {
		f->first = step / f->per * f->per;
	}
	f->n = step - f->first + 1;
	for (int a = 0; a < n; a++) {
		f->sum[a] += shards[a];
	}
}

/* An arc and the port that sends into it. */
struct port_arc {
	const char *port;
	int arc;
};

static int compare_ports(const void *a, const void *b)
{
	return strcmp(((const struct port_arc *)a)->port, ((const struct port_arc *)b)->port);
}

/* The arcs that circuits carry in a schedule on what works, whose digraph is another than
 * the job's: by the ports that send. O(arcs log arcs). */
static void find_arcs(struct frames *f)
{
	const struct coll_placement *placed = coll_placement(f->sched);
	const struct plan_job *j = &f->plan->jobs[f->job];
	struct port_arc *v = x_new((size_t)n_arcs_of(f) + 1, sizeof(*v)), *found;
	size_t n = 0;

	for (int a = 0; placed && placed->tx_ports && a < n_arcs_of(f); a++) {
		v[n++] = (struct port_arc){ placed->tx_ports[a], a };
	}
	qsort(v, n, sizeof(*v), compare_ports);
	for (int i = 0; i < j->n_circuits; i++) {
		const struct port_arc key = {
			.port = f->plan->fabric->ports[j->circuits[i].tx_port].name,
		};

		found = bsearch(&key, v, n, sizeof(*v), compare_ports);
		f->arc[i] = found ? found->arc : -1;
	}
	free(v);
}

static int put_circuit_frames(struct frames *f, struct err *err)
{
	const struct plan_job *j = &f->plan->jobs[f->job];
	int n = n_arcs_of(f), r;

	f->sum = x_new((size_t)n + 1, sizeof(*f->sum));
	f->arc = x_new((size_t)j->n_circuits + 1, sizeof(*f->arc));
	f->n = 0;
	for (int i = 0; i < j->n_circuits; i++) {
		f->arc[i] = j->circuits[i].arc;
	}
	if (f->sched != j->sched) {
		find_arcs(f);
	}
	r = coll_each_step(f->sched, take_step, f, err);
	if (r == 0 && f->n > 0) {
		put_circuit_frame(f, n);
	}
	free(f->arc);
	free(f->sum);
	return r;
}

/* "lit" as in the picture; there is no fullest arc. *cells: settings that may still be
 * looked at. */
static int put_ring_frames(struct frames *f, const struct ring_program *p,
			   const struct ring_geometry *ring, int64_t *cells, struct err *err)
{
	struct ring_program_reader reader;
	struct occupancy o;
	bool comma = false;
	int r = ring_program_reader_init(&reader, p->bytes, p->len, err);

	if (r) {
		return r;
	}
	occupancy_init(&o, ring);
	for (f->first = 0;; f->first += f->n) {
		r = occupancy_of_steps(&o, &reader, (uint32_t)f->per, cells, err);
		f->n = (int)o.seen;
		if (r || f->n == 0) {
			break;
		}
		open_frame(f, 0);
		comma = false;
		occupancy_put_runs(&o, f->job, f->out, &comma);
		buf_str(f->out, "]}");
	}
	occupancy_fini(&o);
	ring_program_reader_fini(&reader);
	return r;
}

/* A job's program on a ring, NULL: it has none. */
static const struct ring_program *find_program(const struct plan *p, int job, int device)
{
	const struct plan_device *d = page_find_device(p, device);

	for (int i = 0; d && d->has_program && i < d->programs.n; i++) {
		if (page_find_job(p, d->programs.v[i].name) == job) {
			return &d->programs.v[i];
		}
	}
	return NULL;
}

/* The frames of a job on a ring with so many steps each. */
static int put_ring_job(struct frames *f, int device, int64_t *cells, struct err *err)
{
	const struct model_device *d = &f->plan->fabric->devices[device];
	const struct ring_program *p = find_program(f->plan, f->job, device);
	const struct ring_geometry ring = {
		.nodes = (uint16_t)d->n_members,
		.channels = (uint16_t)d->ring.channels,
		.fibres = (uint8_t)d->ring.fibres,
	};

	return p ? put_ring_frames(f, p, &ring, cells, err) : 0;
}

/* On what works, where circuits have failed; NULL: there is none. Rings play what is
 * loaded, whatever failed. */
static const struct coll_sched *in_force(const struct plan_job *j)
{
	return j->loss ? j->loss->sched : j->sched;
}

static int n_steps_of(const struct plan *p, int job)
{
	const struct plan_job *j = &p->jobs[job];
	int device = p->fabric->jobs[j->job].device;
	const struct ring_program *program = j->is_ring ? find_program(p, job, device) : NULL;

	return j->is_ring ? program ? (int)program->steps : 0
			  : in_force(j) ? coll_steps(in_force(j)) : 0;
}

/* With ever more steps a frame until it is short enough, or there is one frame. */
static int put_job(const struct plan *p, int job, int first_circuit, size_t most,
		   struct buf *out, struct err *err)
{
	const struct plan_job *j = &p->jobs[job];
	const struct model_job *mj = &p->fabric->jobs[j->job];
	int steps = n_steps_of(p, job), r = 0;
	int64_t cells = PAGE_MAX_CELLS;
	size_t begin;

	buf_str(out, "{\"name\":");
	out_json_quote(out, mj->name);
	buf_printf(out, ",\"device\":%d,\"steps\":%d,\"frames\":[", j->is_ring ? mj->device : -1,
		   steps);
	begin = out->len;
	for (int per = (steps + PAGE_MAX_FRAMES - 1) / PAGE_MAX_FRAMES; steps > 0; per *= 2) {
		struct frames f = { .plan = p, .job = job, .first_circuit = first_circuit,
				    .per = per, .out = out, .sched = in_force(j) };

		out->len = begin;
		cells = PAGE_MAX_CELLS;
		r = j->is_ring ? put_ring_job(&f, mj->device, &cells, err)
			       : put_circuit_frames(&f, err);
		if (r || out->len - begin <= most || per >= steps) {
			break;
		}
	}
	buf_printf(out, "],\"whole\":%s}", cells > 0 ? "true" : "false");
	return r;
}

int page_steps(const struct plan *plan, struct buf *out, struct err *err)
{
	int first = 0, r = 0;
	size_t most = PAGE_STEPS_BYTES / (size_t)(plan->n_jobs > 0 ? plan->n_jobs : 1);

	buf_str(out, "{\"jobs\":[");
	for (int i = 0; i < plan->n_jobs && r == 0; i++) {
		buf_str(out, i ? "," : "");
		r = put_job(plan, i, first, most, out, err);
		first += plan->jobs[i].n_circuits;
	}
	buf_str(out, "]}");
	return r;
}
