/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans as messages of weft.v1, part by part.
 *
 * A plan is told in parts, because that of a large fabric does not fit one
 * message: a summary, then devices and jobs, one each, then the plan file in
 * pieces. The messages are made here without copying what the plan has
 * already: strings and numbers are borrowed from the plan and its fabric, and
 * only the arrays of pointers that protobuf-c wants are allocated for the
 * time of a call. Whoever takes a part (msg_part_fn) packs or copies it
 * before it returns. Ports and stages count from 1 in messages and from 0 in
 * plans; this is where that changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/proto_convert/proto_convert.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

Weft__V1__Number *msg_number(Weft__V1__Number *at, bool is_known, int64_t value)
{
	weft__v1__number__init(at);
	at->value = value;
	return is_known ? at : NULL;
}

/* The host port at `port` of one side of a device, NULL when none is
 * there. */
static char *port_name(const struct model_fabric *f, const int *map, int n, int port)
{
	if (!map || port < 0 || port >= n || map[port] < 0) {
		return NULL;
	}
	return f->ports[map[port]].name;
}

/* The far end of the fibre between switches at an input (or output), as the
 * fabric file names it. O(trunks). */
static char *trunk_name(const struct model_fabric *f,
			const struct model_device *d, int port, bool in)
{
	int device = (int)(d - f->devices);

	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (in ? t->to_device == device && t->to_port == port
		       : t->from_device == device && t->from_port == port) {
			return in ? t->from_name : t->to_name;
		}
	}
	return NULL;
}

/* The host ports at both ends. A port of an any-to-any switch may be known
 * by either of its two fibres. */
static void name_ends(const struct model_fabric *f, const struct model_device *d,
		      struct optics_xc xc, Weft__V1__Circuit *c)
{
	char *from = port_name(f, d->in_port, d->n_in, xc.in);
	char *to = port_name(f, d->out_port, d->n_out, xc.out);

	if (!from && d->any_to_any) {
		from = port_name(f, d->out_port, d->n_out, xc.in);
	}
	if (!to && d->any_to_any) {
		to = port_name(f, d->in_port, d->n_in, xc.out);
	}
	from = from ? from : trunk_name(f, d, xc.in, true);
	to = to ? to : trunk_name(f, d, xc.out, false);
	if (from) {
		c->from = from;
	}
	if (to) {
		c->to = to;
	}
}

void msg_circuits_init(struct msg_circuits *c, const struct model_fabric *fabric, int device,
		       const struct optics_xc *xcs, int n)
{
	Weft__V1__Circuit *items;

	memset(c, 0, sizeof(*c));
	if (n == 0) {
		return;
	}
	/* One block: the pointers, then what they point to. */
	c->v = x_alloc((size_t)n, sizeof(*c->v) + sizeof(*items));
	items = (Weft__V1__Circuit *)(c->v + n);
	for (int i = 0; i < n; i++) {
		weft__v1__circuit__init(&items[i]);
		items[i].in = xcs[i].in + 1;
		items[i].out = xcs[i].out + 1;
		name_ends(fabric, &fabric->devices[device], xcs[i], &items[i]);
		c->v[i] = &items[i];
	}
	c->n = (size_t)n;
}

void msg_circuits_fini(struct msg_circuits *c)
{
	free(c->v);
	memset(c, 0, sizeof(*c));
}

/* Devices that were never read are planned for as if they were empty. */
static bool was_read(const struct plan_base *base, int device)
{
	return base && base->observed && base->observed[device].known;
}

/* The messages of all stages, and the pointers to them. */
struct stages {
	Weft__V1__PlanStage *items, **v;
};

/* The caller frees both arrays. host is the one that loses most during the
 * stage, -1 without any. */
static void list_stages(const struct plan *p, struct stages *to)
{
	size_t n = (size_t)p->n_stages + 1;

	*to = (struct stages){ .items = x_new(n, sizeof(*to->items)),
			       .v = x_new(n, sizeof(*to->v)) };
	for (int i = 0; i < p->n_stages; i++) {
		const struct plan_stage *st = &p->stages[i];
		Weft__V1__PlanStage *m = to->v[i] = &to->items[i];

		weft__v1__plan_stage__init(m);
		m->domain = (char *)st->domain;
		m->delete_ = st->n_del;
		m->add = st->n_add;
		m->loads = st->n_loads;
		if (st->host >= 0) {
			m->host = p->fabric->hosts[st->host].name;
			m->receiving = st->is_rx;
			m->remaining_bps = st->bps;
			m->total_bps = st->of_bps;
		}
	}
}

/* The jobs that a plan ends, and the pointers to them. */
struct ended_jobs {
	struct msg_gain *items;
	Weft__V1__JobGain **v;
	size_t n;
};

/* Jobs of the plan stand before those that end. */
static void list_ends(const struct plan *p, struct ended_jobs *to)
{
	size_t n = p->n_gains > p->n_jobs ? (size_t)(p->n_gains - p->n_jobs) : 0;

	*to = (struct ended_jobs){ .items = x_new(n + 1, sizeof(*to->items)),
			     .v = x_new(n + 1, sizeof(*to->v)) };
	for (; to->n < n; to->n++) {
		msg_gain_init(&to->items[to->n], &p->gains[p->n_jobs + (int)to->n]);
		to->v[to->n] = &to->items[to->n].m;
	}
}

static int send_summary(const struct plan *p, const struct plan_base *base,
			msg_part_fn fn, void *arg, struct err *err)
{
	Weft__V1__PlanSummary s = WEFT__V1__PLAN_SUMMARY__INIT;
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	struct stages stages;
	struct ended_jobs ends;
	int r;

	list_stages(p, &stages);
	list_ends(p, &ends);
	s.fabric = p->fabric->name;
	s.state_uuid = (char *)p->state_uuid;
	s.generation = p->generation;
	s.digest = (char *)p->digest;
	s.mode = p->mode == PLAN_UPDATE ? WEFT__V1__MODE__MODE_UPDATE
					: WEFT__V1__MODE__MODE_SAFE;
	s.add = p->n_add;
	s.delete_ = p->n_del;
	s.keep = p->n_keep;
	s.loads = p->n_loads;
	s.down_ns = p->down_ns;
	s.downtime_source = (char *)plan_times_name(p->downtime_source);
	s.nothing_to_do = plan_is_empty(p);
	s.left = plan_count_left(p, base);
	for (int i = 0; i < p->n_devices; i++) {
		s.unread += !was_read(base, p->devices[i].device);
	}
	s.n_stages = (size_t)p->n_stages;
	s.stages = stages.v;
	s.n_warnings = (size_t)p->n_warnings;
	s.warnings = p->warnings;
	s.n_ends = ends.n;
	s.ends = ends.v;
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_SUMMARY;
	part.summary = &s;
	r = fn(&part, arg, err);
	free(ends.items);
	free(ends.v);
	free(stages.items);
	free(stages.v);
	return r;
}

/* Programs of all jobs on a ring together, before and after. */
static void fill_program(const struct plan_device *d, Weft__V1__PlanDevice *m)
{
	m->load_program = d->load_program;
	if (d->has_program) {
		m->program_steps = ring_programs_steps(&d->programs);
		m->program_settings = ring_programs_settings(&d->programs);
	}
	m->had_program = d->had_program;
	if (d->had_program) {
		m->old_program_steps = ring_programs_steps(&d->old_programs);
	}
}

/* The messages of a ring's programs, and the pointers to them. */
struct programs {
	Weft__V1__PlanProgram *items, **v;
	size_t n;
};

static void put_program(struct programs *to, const struct ring_program *p, const char *change)
{
	Weft__V1__PlanProgram *m = &to->items[to->n];

	weft__v1__plan_program__init(m);
	m->job = (char *)p->name;
	m->change = (char *)change;
	m->steps = p->steps;
	m->settings = p->settings;
	m->bytes = p->len;
	m->first_node = p->window.first_node;
	m->nodes = p->window.nodes;
	m->first_channel = p->window.first_channel;
	m->channels = p->window.channels;
	to->v[to->n++] = m;
}

/* What becomes of each program of a ring: "load", "keep", "replace" or "end".
 * Both arrays are freed by the caller. O(programs^2), of which a ring has few. */
static void list_programs(const struct plan_device *d, struct programs *to)
{
	const struct ring_programs *old = &d->old_programs, *now = &d->programs;
	size_t n = (size_t)old->n + (size_t)now->n + 1;

	*to = (struct programs){ .items = x_new(n, sizeof(*to->items)),
				 .v = x_new(n, sizeof(*to->v)) };
	for (int i = 0; i < now->n; i++) {
		const struct ring_program *had = ring_programs_find(old, now->v[i].name);

		put_program(to, &now->v[i], !had ? "load" :
			    ring_program_equal(had, &now->v[i]) ? "keep" :
							       "replace");
	}
	for (int i = 0; i < old->n && d->load_program; i++) {
		if (!ring_programs_find(now, old->v[i].name)) {
			put_program(to, &old->v[i], "end");
		}
	}
}

/* Its four lists of circuits, its programs, and how long it switches and its
 * ports are down, in ns. */
static int send_device(const struct plan *p, const struct plan_base *base,
		       const struct plan_device *d, msg_part_fn fn, void *arg, struct err *err)
{
	const struct model_device *md = &p->fabric->devices[d->device];
	Weft__V1__PlanDevice m = WEFT__V1__PLAN_DEVICE__INIT;
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	const struct optics_xc *from[] = { d->del, d->add, d->displaced,
					  d->external };
	const int count[] = { d->n_del, d->n_add, d->n_displaced, d->n_external };
	struct msg_circuits list[4];
	struct programs programs;
	int r;

	list_programs(d, &programs);
	for (int i = 0; i < 4; i++) {
		msg_circuits_init(&list[i], p->fabric, d->device, from[i], count[i]);
	}
	m.name = md->name;
	m.kind = msg_device_kind(md->kind);
	m.read = was_read(base, d->device);
	m.n_delete_ = list[0].n;
	m.delete_ = list[0].v;
	m.n_add = list[1].n;
	m.add = list[1].v;
	m.n_displaced = list[2].n;
	m.displaced = list[2].v;
	m.n_external = list[3].n;
	m.external = list[3].v;
	m.keep = d->n_keep;
	fill_program(d, &m);
	m.programs = programs.v;
	m.n_programs = programs.n;
	m.switch_ns = d->switch_ns;
	m.down_ns = d->down_ns;
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_DEVICE;
	part.device = &m;
	r = fn(&part, arg, err);
	for (int i = 0; i < 4; i++) {
		msg_circuits_fini(&list[i]);
	}
	free(programs.items);
	free(programs.v);
	return r;
}

/* The devices that carry a job's light, each once. Circuits are sorted by
 * device. */
static void list_devices(struct msg_job *j, const struct plan *p, const struct plan_job *pj)
{
	const struct model_device *devices = p->fabric->devices;
	size_t n = 0, max = 1 + (pj->is_ring ? 0 : (size_t)pj->n_circuits);

	j->devices = x_new(max, sizeof(*j->devices));
	if (pj->is_ring) {
		j->devices[n++] = devices[p->fabric->jobs[pj->job].device].name;
	}
	for (int i = 0; !pj->is_ring && i < pj->n_circuits; i++) {
		int d = pj->circuits[i].device;

		if (i == 0 || d != pj->circuits[i - 1].device) {
			j->devices[n++] = devices[d].name;
		}
	}
	j->row.n_devices = n;
	j->row.devices = j->devices;
}

static void fill_ring(const struct plan_job *pj, Weft__V1__PlanJob *out)
{
	out->depth = pj->ring.depth;
	out->closed_form_steps = pj->ring.closed_form_steps;
	out->lightpaths = pj->ring.lightpaths;
	out->retune_hidden_ns = pj->ring.retune_hidden_ns;
	out->worst_loss_mdb = pj->ring.worst_loss_mdb;
}

void msg_parts_init(struct msg_parts *w, const struct model_device *ring,
		    const struct ring_fault *dead, int n, size_t *n_out, char ***out)
{
	w->text = x_new((size_t)n + 1, sizeof(*w->text));
	w->list = x_new((size_t)n + 1, sizeof(*w->list));
	for (int i = 0; i < n; i++) {
		ring_fault_text(&dead[i], ring->n_members, ring->nodes, w->text[i]);
		w->list[i] = w->text[i];
	}
	*n_out = (size_t)n;
	*out = w->list;
}

/* Appends one side's ports, or the whole ones of a device without sides, up
 * to MSG_PARTS_SHOWN in all. */
static void put_ports(struct msg_parts *w, const char *side, const int *ports, int n_ports, int *n)
{
	for (int i = 0; i < n_ports && *n < MSG_PARTS_SHOWN; i++) {
		snprintf(w->text[*n], sizeof(w->text[0]), "%s %d", side, ports[i] + 1);
		w->list[*n] = w->text[*n];
		++*n;
	}
}

void msg_parts_admin_down(struct msg_parts *w, const struct model_device *dev,
			  size_t *n_out, char ***out, int *count)
{
	bool sides = !dev->any_to_any;
	int n = 0, outs = sides ? dev->n_dead_out : 0;
	int parts = dev->n_dead < MSG_PARTS_SHOWN ? dev->n_dead : MSG_PARTS_SHOWN;

	*count = dev->n_dead + dev->n_dead_in + outs;
	if (dev->kind == MODEL_RING) {
		msg_parts_init(w, dev, dev->dead, parts, n_out, out);
		return;
	}
	w->text = x_new(MSG_PARTS_SHOWN, sizeof(*w->text));
	w->list = x_new(MSG_PARTS_SHOWN, sizeof(*w->list));
	put_ports(w, sides ? "in" : "port", dev->dead_in, dev->n_dead_in, &n);
	put_ports(w, "out", dev->dead_out, outs, &n);
	*n_out = (size_t)n;
	*out = w->list;
}

void msg_parts_fini(struct msg_parts *w)
{
	free(w->text);
	free(w->list);
	memset(w, 0, sizeof(*w));
}

/* The failed parts that a ring's job does without, and the time that it would
 * take with them. */
static void list_without(struct msg_job *j, const struct plan *p, const struct plan_job *pj)
{
	const struct model_job *mj = &p->fabric->jobs[pj->job];

	j->row.fault_free_time_ns = pj->fault_free_ns;
	if (pj->n_without == 0) {
		return;
	}
	msg_parts_init(&j->without, &p->fabric->devices[mj->device], pj->without, pj->n_without,
		       &j->row.n_failed_parts, &j->row.failed_parts);
}

/* Channels of transmitters that can be tuned, by the circuits of their first
 * switches. A transmitter without one is left out. */
static void list_tuning(struct msg_job *j, const struct plan *p, const struct plan_job *pj)
{
	size_t n = 0;

	j->tunings = x_new((size_t)pj->n_circuits + 1, sizeof(*j->tunings));
	j->tuning = x_new((size_t)pj->n_circuits + 1, sizeof(*j->tuning));
	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];
		const struct model_port *port = &p->fabric->ports[c->tx_port];

		if (c->channel >= 0 && c->device == port->tx_device && c->xc.in == port->tx_port) {
			weft__v1__plan_tuning__init(&j->tunings[n]);
			j->tunings[n].port = port->name;
			j->tunings[n].channel = c->channel;
			j->tuning[n] = &j->tunings[n];
			n++;
		}
	}
	j->row.n_tuning = n;
	j->row.tuning = j->tuning;
}

static void list_backups(struct msg_job *j, const struct plan *p, const struct plan_job *pj)
{
	j->backups = x_new((size_t)pj->n_backups + 1, sizeof(*j->backups));
	j->backup = x_new((size_t)pj->n_backups + 1, sizeof(*j->backup));
	for (int i = 0; i < pj->n_backups; i++) {
		const struct plan_circuit *c = &pj->backups[i];

		weft__v1__plan_backup__init(&j->backups[i]);
		j->backups[i].from = p->fabric->ports[c->tx_port].name;
		j->backups[i].to = p->fabric->ports[c->rx_port].name;
		j->backups[i].device = p->fabric->devices[c->device].name;
		j->backups[i].in = c->xc.in + 1;
		j->backups[i].out = c->xc.out + 1;
		j->backup[i] = &j->backups[i];
	}
	j->row.n_backups = (size_t)pj->n_backups;
	j->row.backups = j->backup;
	j->row.protected_lightpaths = pj->n_protected;
	j->row.unprotected_lightpaths = pj->n_unprotected;
}

/* The lightpaths that dark circuits are of, each once, in the order of their first one. */
static void list_lost(struct msg_job *j, const struct plan *p, const struct plan_job *pj)
{
	bool *seen = x_new((size_t)p->fabric->n_ports + 1, sizeof(*seen));
	size_t n = 0;

	j->losses = x_new((size_t)pj->n_circuits + 1, sizeof(*j->losses));
	j->lost = x_new((size_t)pj->n_circuits + 1, sizeof(*j->lost));
	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];

		if (c->dark && !seen[c->tx_port]) {
			seen[c->tx_port] = true;
			weft__v1__lost_lightpath__init(&j->losses[n]);
			j->losses[n].from = p->fabric->ports[c->tx_port].name;
			j->losses[n].to = p->fabric->ports[c->rx_port].name;
			j->lost[n] = &j->losses[n];
			n++;
		}
	}
	j->loss.n_lost = n;
	j->loss.lost = j->lost;
	free(seen);
}

static void list_ranks(struct msg_job *j, const struct plan_job *pj)
{
	const struct coll_placement *p = coll_placement(pj->sched);
	int n = coll_ranks(pj->sched);

	j->ranks = x_new((size_t)n, sizeof(*j->ranks));
	j->rank = x_new((size_t)n, sizeof(*j->rank));
	j->ring_nodes = x_new((size_t)n, sizeof(*j->ring_nodes));
	for (int r = 0; r < n; r++) {
		weft__v1__plan_rank__init(&j->ranks[r]);
		j->ranks[r].host = p->hosts[r];
		j->ranks[r].netns = p->netns ? p->netns[r] : (char *)"";
		j->ranks[r].ring_node = msg_number(&j->ring_nodes[r], p->ring_nodes != NULL,
						   p->ring_nodes ? p->ring_nodes[r] : 0);
		j->rank[r] = &j->ranks[r];
	}
	j->row.n_ranks = (size_t)n;
	j->row.ranks = j->rank;
}

/* Arcs with ports: those within a host, and those of rings, have none. */
static void list_arcs(struct msg_job *j, const struct plan_job *pj)
{
	const struct coll_placement *p = coll_placement(pj->sched);
	const struct topo *t = coll_physical(pj->sched);
	size_t n = 0;

	j->arcs = x_new((size_t)topo_m(t) + 1, sizeof(*j->arcs));
	j->arc = x_new((size_t)topo_m(t) + 1, sizeof(*j->arc));
	for (int a = 0; a < topo_m(t) && p->tx_ports; a++) {
		if (p->tx_ports[a][0]) {
			weft__v1__plan_arc__init(&j->arcs[n]);
			j->arcs[n].arc = a;
			j->arcs[n].from = topo_arc(t, a)->src;
			j->arcs[n].to = topo_arc(t, a)->dst;
			j->arcs[n].tx_port = p->tx_ports[a];
			j->arcs[n].rx_port = p->rx_ports[a];
			j->arc[n] = &j->arcs[n];
			n++;
		}
	}
	j->row.n_arcs = n;
	j->row.arcs = j->arc;
}

static char *ratio_text(int64_t num, int64_t den, char *text, int size)
{
	mpq_t q;

	mpq_init(q);
	rat_set(q, num, den);
	rat_str(q, text, size);
	mpq_clear(q);
	return text;
}

/* What `topology: auto` considered. */
static void list_choice(struct msg_job *j, const struct plan_job *pj)
{
	const struct plan_choice *c = pj->choice;
	size_t n = c->considered.n, m = c->ranges.n;

	j->considered = x_new(n + 1, sizeof(*j->considered));
	j->ranges = x_new(m + 1, sizeof(*j->ranges));
	j->topologies = x_new(n + 1, sizeof(*j->topologies));
	j->fastest = x_new(m + 1, sizeof(*j->fastest));
	for (size_t i = 0; i < n; i++) {
		const struct plan_topology *t = &c->considered.v[i];
		struct msg_topology *to = &j->topologies[i];

		weft__v1__plan_topology__init(&to->m);
		to->m.topology = t->expr;
		to->m.steps = t->steps;
		to->m.bandwidth_factor = ratio_text(t->num, t->den, to->factor,
						    sizeof(to->factor));
		to->m.time_ns = t->time_ns;
		to->m.ports = t->ports;
		to->m.refused = t->refused.code ? (char *)t->refused.msg : to->m.refused;
		j->considered[i] = &to->m;
	}
	for (size_t i = 0; i < m; i++) {
		weft__v1__plan_range__init(&j->ranges[i]);
		j->ranges[i].from_bytes = c->ranges.v[i].from_bytes;
		j->ranges[i].topology = c->ranges.v[i].expr;
		j->fastest[i] = &j->ranges[i];
	}
	j->row.ports = c->ports;
	j->row.bidirectional = c->bidirectional;
	j->row.steps_bound = c->steps_bound;
	if (pj->unit_bps == 0) {	/* else it is of ranks, and the choice of hosts */
		j->row.bandwidth_bound = j->bound;
		rat_str(pj->report.bandwidth_bound, j->bound, sizeof(j->bound));
	}
	j->row.n_considered = n;
	j->row.considered = j->considered;
	j->row.n_fastest = m;
	j->row.fastest = j->fastest;
}

/* What failed circuits or parts cost the job now: rate as a share, and the
 * replay of the schedule on what remains, or why there is none. */
static void fill_loss(struct msg_job *j, const struct plan *p, const struct plan_job_loss *loss)
{
	Weft__V1__JobDegradation *out = &j->loss;

	weft__v1__job_degradation__init(out);
	out->failed = loss->dead;
	out->device = p->fabric->devices[loss->device].name;
	out->part = (char *)loss->part;
	if (loss->arcs > 0) {
		out->in = loss->xc.in + 1;
		out->out = loss->xc.out + 1;
	}
	out->failed_arcs = loss->dead_arcs;
	out->arcs = loss->arcs;
	out->rate = loss->rate;
	out->bandwidth_factor = j->loss_factor;
	if (loss->sched) {
		out->steps = loss->report.steps;
		out->time_ns = loss->time_ns;
		out->bound_ns = loss->bound_ns;
		out->uneven_loss = coll_uneven_loss(loss->sched, &loss->report);
		rat_str(loss->report.bandwidth_factor, j->loss_factor, sizeof(j->loss_factor));
	} else {
		out->problem = (char *)loss->why.msg;
	}
	j->row.degradation = out;
}

/* True when the configuration marks all as dead that a ring's job does without. */
static bool is_as_configured(const struct plan *p, const struct plan_job *pj)
{
	const struct model_device *ring = &p->fabric->devices[p->fabric->jobs[pj->job].device];

	for (int i = 0; i < pj->n_without; i++) {
		if (!ring->n_dead || !bsearch(&pj->without[i], ring->dead, (size_t)ring->n_dead,
					      sizeof(*ring->dead), ring_fault_cmp)) {
			return false;
		}
	}
	return pj->n_without > 0;
}

/* What is left of the job's rate, by what its plan does without and by what has
 * failed since. */
static void fill_rate(struct msg_job *j, const struct plan *p, const struct plan_job *pj)
{
	Weft__V1__PlanJob *row = &j->row;

	row->rate = 1;
	row->expected_time_ns = row->whole_time_ns = pj->time_ns;
	row->reason = j->reason;
	if (pj->fault_free_ns > 0) {
		row->whole_time_ns = pj->fault_free_ns;
		row->as_configured = !pj->loss && is_as_configured(p, pj);
	}
	if (pj->fault_free_ns > 0 && pj->time_ns > pj->fault_free_ns) {
		row->rate = (double)pj->fault_free_ns / (double)pj->time_ns;
	}
	if (pj->loss) {
		row->rate *= pj->loss->rate;
		row->expected_time_ns = pj->loss->sched ? pj->loss->time_ns : 0;
		list_lost(j, p, pj);
		msg_degradation_text(row, j->reason, sizeof(j->reason));
	} else if (row->rate < 1) {
		msg_without_text(row, j->reason, sizeof(j->reason));
	}
}

void msg_job_init(struct msg_job *j, const struct plan *p, int job)
{
	const struct plan_job *pj = &p->jobs[job];
	const struct model_job *mj = &p->fabric->jobs[pj->job];
	Weft__V1__PlanJob *out = &j->row;

	memset(j, 0, sizeof(*j));
	weft__v1__plan_job__init(out);
	out->name = mj->name;
	out->collective = (char *)plan_collective_name(mj);
	out->algorithm = (char *)pj->algorithm;
	if (pj->topology) {
		out->topology = pj->topology;
	}
	if (pj->is_ring) {
		fill_ring(pj, out);
	}
	if (pj->loss) {
		fill_loss(j, p, pj->loss);
	}
	out->nodes = mj->n_hosts;
	out->steps = pj->report.steps;
	out->transfers = pj->report.transfers;
	out->chunks = coll_chunks(pj->sched);
	out->bandwidth_factor = j->factor;
	rat_str(pj->report.bandwidth_factor, j->factor, sizeof(j->factor));
	out->bandwidth_optimal = pj->report.bandwidth_optimal;
	out->time_ns = pj->time_ns;
	out->bound_ns = pj->bound_ns;
	out->gap = pj->gap;
	out->circuits = pj->n_circuits;
	out->moves = pj->n_moves;
	out->moves_bound = msg_number(&j->moves_bound, pj->moves_bound >= 0, pj->moves_bound);
	out->moves_gap = msg_number(&j->moves_gap, pj->moves_bound >= 0,
				    pj->n_moves - pj->moves_bound);
	out->size_bytes = mj->size_bytes;
	out->levels = (char *)pj->torus.levels;
	out->rounds = msg_number(&j->rounds, pj->torus.is_made && pj->torus.rounds >= 0,
				 pj->torus.rounds);
	if (p->n_gains > 0) {
		msg_gain_init(&j->gain, &p->gains[job]);
		out->gain = &j->gain.m;
	}
	list_devices(j, p, pj);
	list_tuning(j, p, pj);
	list_backups(j, p, pj);
	list_without(j, p, pj);
	list_ranks(j, pj);
	list_arcs(j, pj);
	if (pj->choice) {
		list_choice(j, pj);
	}
	if (pj->step) {
		msg_step_init(&j->step, mj->workload, pj->step);
		j->step.m.lit = pj->light + 1;
		out->step = &j->step.m;
	}
	fill_rate(j, p, pj);
}

void msg_job_fini(struct msg_job *j)
{
	free(j->devices);
	free(j->tunings);
	free(j->tuning);
	free(j->ranks);
	free(j->rank);
	free(j->ring_nodes);
	free(j->arcs);
	free(j->arc);
	free(j->considered);
	free(j->ranges);
	free(j->topologies);
	free(j->fastest);
	free(j->backups);
	free(j->backup);
	free(j->losses);
	free(j->lost);
	msg_parts_fini(&j->without);
	msg_step_fini(&j->step);
	j->devices = NULL;
	j->tunings = NULL;
	j->tuning = NULL;
}

static int send_job(const struct plan *p, int job, msg_part_fn fn, void *arg, struct err *err)
{
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	struct msg_job j;
	int r;

	msg_job_init(&j, p, job);
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_JOB;
	part.job = &j.row;
	r = fn(&part, arg, err);
	msg_job_fini(&j);
	return r;
}

/* The plan file in pieces of MSG_PIECE bytes. */
static int send_file(const struct plan *p, msg_part_fn fn, void *arg, struct err *err)
{
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	struct buf b = { 0 };
	int r = 0;

	plan_file_write(p, &b);
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_FILE;
	for (size_t at = 0; r == 0 && at < b.len; at += part.file.len) {
		part.file.data = (uint8_t *)b.data + at;
		part.file.len = b.len - at < MSG_PIECE ? b.len - at
							: MSG_PIECE;
		r = fn(&part, arg, err);
	}
	buf_fini(&b);
	return r;
}

int msg_send_plan(const struct plan *p, const struct plan_base *base,
	      bool want_file, msg_part_fn fn, void *arg, struct err *err)
{
	int r = send_summary(p, base, fn, arg, err);

	for (int i = 0; r == 0 && i < p->n_devices; i++) {
		r = send_device(p, base, &p->devices[i], fn, arg, err);
	}
	for (int i = 0; r == 0 && i < p->n_jobs; i++) {
		r = send_job(p, i, fn, arg, err);
	}
	return r || !want_file ? r : send_file(p, fn, arg, err);
}

int msg_send_batch(const struct model_fabric *fabric, const struct dry_run_batch *o, msg_part_fn fn,
		   void *arg, struct err *err)
{
	Weft__V1__PlanBatch m = WEFT__V1__PLAN_BATCH__INIT;
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;

	m.stage = o->stage + 1;
	m.phase = (char *)batch_phase_name(o->phase);
	m.device = fabric->devices[o->device].name;
	m.items = o->n_items;
	m.n_lines = (size_t)o->n_lines;
	m.lines = (char **)o->lines;
	m.limits_unknown = o->guessed;
	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_BATCH;
	part.batch = &m;
	return fn(&part, arg, err);
}
