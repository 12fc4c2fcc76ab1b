/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits: light from port to port, which is wanted as such.
 *
 * A group of circuits is a job of its own kind: it has the ports of its circuits
 * and no collective. A port has a side that sends and one that receives, and each
 * carries light of one job, so circuits of one direction may share a port.
 * Circuits claim their ports as they are read, before any other job of the text
 * (job_ports.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"

/* An entry of `circuits` while it is read. */
struct circuit_entry {
	struct model_build *b;
	char object[CONF_MAX_OBJECT];
	const struct conf_node *node;
	struct conf_value v[CONF_MAX_KEYS];
	bool is_simplex;
};

/* ---- groups ---- */

/* The job that the text or the request at hand has for the group; -1: none, and
 * *taken when the name is another's. */
static int find_group(const struct circuit_entry *e, const char *name, bool *taken)
{
	struct model_build *b = e->b;
	int job = build_find(&b->f->jobs, name);

	*taken = job >= 0 && (b->requested ? job != b->request_job
					   : b->jobs.v[job].kind != MODEL_CIRCUITS);
	return job;
}

/* The job of a group, made when it is the group's first circuit; -1, and reported,
 * when the name is taken. at: where it is written. */
static int open_group(struct circuit_entry *e, const char *name, struct conf_place at)
{
	struct model_build *b = e->b;
	bool taken;
	int job = find_group(e, name, &taken);
	char line[LINE_TEXT_MAX];

	if (taken) {
		conf_error(b->r, at, WEFT_EINVAL, "%s: name '%s' is already a job%s", e->object,
			   name, build_line("on", b->jobs.v[job].place, line));
		return -1;
	}
	if (job >= 0 || !build_has_room(b, e->node, e->object)) {
		return job;
	}
	job = b->request_job = (int)b->jobs.n;
	build_map(&b->f->jobs, name, job);
	vec_push(&b->jobs, (struct model_job){
		.name = conf_arena_strndup(b->r->keep, name, strlen(name)),
		.requested = b->requested, .kind = MODEL_CIRCUITS, .device = -1,
		.algorithm = (char *)"", .topology = (char *)"", .place = e->node->at,
	});
	return job;
}

/* A circuit's name is no other's, and no job's but its group's. */
static bool take_name(struct circuit_entry *e, const struct name *name, const char *group)
{
	struct model_build *b = e->b;
	int line = build_find(&b->circuits, name->text);
	int job = build_find(&b->f->jobs, name->text);

	if (line < 0 && (job < 0 || strcmp(name->text, group) == 0)) {
		build_map(&b->circuits, name->text, name->at.line);
		return true;
	}
	conf_error(b->r, name->at, WEFT_EINVAL, "%s: name '%s' is already a %s on line %d",
		   e->object, name->text, line < 0 ? "job" : "circuit",
		   line < 0 ? b->jobs.v[job].place.line : line);
	return false;
}

/* ---- what can be, in the file and on request ---- */

/* Whether light of one side of a port reaches a device that is not known to be dead
 * there. WEFT_ENOTFOUND: none; WEFT_EINVAL. */
static int check_side(const struct model_fabric *f, int port, bool tx, bool simplex,
		      struct err *err)
{
	const struct model_port *p = &f->ports[port];
	const int device = tx ? p->tx_device : p->rx_device;
	const struct model_device *d = device >= 0 ? &f->devices[device] : NULL;

	if (!d) {
		return err_set(err, WEFT_ENOTFOUND, "%s has no fibre %s a device", p->name,
			       tx ? "to" : "from");
	}
	if (model_port_is_dead(d, !tx, tx ? p->tx_port : p->rx_port)) {
		return err_set(err, WEFT_EINVAL, "%s is marked as dead", p->name);
	}
	if (d->any_to_any && simplex && tx) {
		err_set(err, WEFT_EINVAL, "direction: one-way at %s, which is any-to-any", d->name);
		err_hint(err, "its circuits carry light both ways");
		return err->code;
	}
	return 0;
}

/* Whether there may be a route from one device to the other. WEFT_EINVAL. */
static int check_route(const struct model_fabric *f, int tx_port, int rx_port, struct err *err)
{
	const struct model_port *tx = &f->ports[tx_port], *rx = &f->ports[rx_port];
	const struct model_device *from = &f->devices[tx->tx_device];
	const struct model_device *to = &f->devices[rx->rx_device];

	if (from == to || (f->n_trunks > 0 && !from->any_to_any && !to->any_to_any)) {
		return 0;
	}
	return err_set(err, WEFT_EINVAL, "%s is on %s and %s on %s, and no fibre joins these",
		       tx->name, from->name, rx->name, to->name);
}

/* What two ports are, without their fibres. WEFT_EINVAL. */
static int check_ends(const struct model_end *a, const struct model_end *z, bool simplex,
		      struct err *err)
{
	if (a->lanes != z->lanes) {
		return err_set(err, WEFT_EINVAL, "lanes differ: %s has %d, %s has %d", a->name,
			       a->lanes, z->name, z->lanes);
	}
	if (a->port == z->port && !simplex) {
		err_set(err, WEFT_EINVAL, "%s cannot be joined to itself both ways", a->name);
		err_hint(err, "light from a port to itself is one-way");
		return err->code;
	}
	return 0;
}

static int check_link(const struct model_fabric *f, int tx, int rx, bool simplex, struct err *err)
{
	int r;

	if ((r = check_side(f, tx, true, simplex, err)) ||
	    (r = check_side(f, rx, false, simplex, err))) {
		return r;
	}
	return check_route(f, tx, rx, err);
}

int model_check_circuit(const struct model_fabric *f, const struct model_end *a,
			const struct model_end *z, bool simplex, struct err *err)
{
	int r = check_ends(a, z, simplex, err);

	for (int i = 0; i < a->lanes && r == 0; i++) {
		r = check_link(f, a->port + i, z->port + i, simplex, err);
		if (r == 0 && !simplex) {
			r = check_link(f, z->port + i, a->port + i, simplex, err);
		}
	}
	return r;
}

/* ---- ends ---- */

/* As much of the fabric as these look at. */
static struct model_fabric parts(const struct model_build *b)
{
	return (struct model_fabric){ .ports = b->ports.v, .devices = b->devices.v,
				      .n_trunks = (int)b->trunks.n };
}

bool build_is_dead(const struct model_build *b, int port, bool tx)
{
	const struct model_port *p = &b->ports.v[port];

	return model_port_is_dead(&b->devices.v[tx ? p->tx_device : p->rx_device], !tx,
				  tx ? p->tx_port : p->rx_port);
}

/* Reports it at its place, but for fibres that could not be read. True when r is 0. */
static bool report(struct circuit_entry *e, int r, const struct err *err, struct conf_place at)
{
	struct err *kept;

	if (r && (r != WEFT_ENOTFOUND || !e->b->fibres_unsure)) {
		kept = conf_error(e->b->r, at, WEFT_EINVAL, "%s: %s", e->object, err->msg);
		if (err->hint[0]) {
			err_hint(kept, "%s", err->hint);
		}
	}
	return r == 0;
}

/* One side of a port becomes the job's, unless it is another circuit's. */
static bool claim(struct circuit_entry *e, int port, bool tx, int job, struct conf_place at)
{
	struct model_build *b = e->b;
	struct model_port *p = &b->ports.v[port];
	int *owner = tx ? &p->tx_job : &p->rx_job;
	char line[LINE_TEXT_MAX];

	if (*owner >= 0) {
		const struct model_job *other = &b->jobs.v[*owner];

		conf_error(b->r, at, WEFT_EINVAL, "%s: %s already %s light of %s%s", e->object,
			   p->name, tx ? "sends" : "receives", other->name,
			   build_line("from", other->place, line));
		return false;
	}
	*owner = job;
	return true;
}

/* ---- circuits ---- */

/* One direction, if all is well with it. */
static bool add_link(struct circuit_entry *e, int job, const struct model_link *l,
		     const struct name *from, const struct name *to)
{
	const struct model_fabric f = parts(e->b);
	struct err err = { 0 };
	/* Both ends are looked at, even if the first is wrong. */
	bool ok = report(e, check_side(&f, l->tx_port, true, e->is_simplex, &err), &err, from->at);

	ok &= report(e, check_side(&f, l->rx_port, false, e->is_simplex, &err), &err, to->at);
	if (!ok ||
	    !report(e, check_route(&f, l->tx_port, l->rx_port, &err), &err, from->at) ||
	    !claim(e, l->tx_port, true, job, from->at) ||
	    !claim(e, l->rx_port, false, job, to->at)) {
		return false;
	}
	vec_push(&e->b->links, (struct build_link){ job, *l });
	return true;
}

/* A host's port, whole: the direction says which side of it. */
static bool find_end(struct circuit_entry *e, const struct name *name, struct port_end *end)
{
	if (!build_find_port(e->b, e->object, name, end)) {
		return false;
	}
	if (end->port < 0 || !end->tx || !end->rx) {
		err_hint(conf_error(e->b->r, name->at, WEFT_EINVAL, "%s: '%.64s' is not a whole "
				    "port of a host", e->object, name->text),
			 "write HOST.PORT");
		return false;
	}
	return true;
}

/* The circuit from one port to another, over all of their lanes. name: "" for none. */
static void add_circuit(struct circuit_entry *e, int job, const char *name,
			const struct name *from, const struct name *to)
{
	struct port_end a, z;
	bool ok = find_end(e, from, &a);
	struct err err = { 0 };

	if (!find_end(e, to, &z) || !ok ||
	    !report(e, check_ends(&(struct model_end){ from->text, a.port, a.lanes },
				  &(struct model_end){ to->text, z.port, z.lanes },
				  e->is_simplex, &err), &err, to->at)) {
		return;
	}
	for (int i = 0; i < a.lanes; i++) {
		struct model_link l = { a.port + i, z.port + i, (char *)name, false };
		const struct model_link back = { z.port + i, a.port + i, (char *)name, true };

		if (!add_link(e, job, &l, from, to) ||
		    (!e->is_simplex && !add_link(e, job, &back, to, from))) {
			return;
		}
	}
}

/* As many names as there are circuits, or a group that needs none. */
static bool check_counts(struct circuit_entry *e, const struct names *names,
			 const struct names *from, const struct names *to)
{
	if (from->n != to->n) {
		conf_error(e->b->r, e->v[CIRCUIT_TO].node->at, WEFT_EINVAL,
			   "%s: %d port%s on one end, %d on the other", e->object, from->n,
			   from->n == 1 ? "" : "s", to->n);
		return false;
	}
	if (names && names->n != from->n) {
		err_hint(conf_error(e->b->r, e->v[CIRCUIT_NAME].node->at, WEFT_EINVAL,
				    "%s: %d name%s for %d circuit%s", e->object, names->n,
				    names->n == 1 ? "" : "s", from->n, from->n == 1 ? "" : "s"),
			 "circuits of a group, named by the key 'group', need no names");
		return false;
	}
	return true;
}

/* Each circuit into its group, which has its name where there is no other. */
static void add_all(struct circuit_entry *e, const struct names *names, const struct names *from,
		    const struct names *to)
{
	const struct conf_value *group = &e->v[CIRCUIT_GROUP];
	struct model_build *b = e->b;

	for (int i = 0; i < from->n && !b->r->stop; i++) {
		const struct name *name = names ? &names->v[i] : NULL;
		const char *job_name = group->node ? group->text : name->text;
		char *kept = (char *)"";
		int job;

		if (name && !take_name(e, name, job_name)) {
			continue;
		}
		if (name) {
			kept = conf_arena_strndup(b->r->keep, name->text, strlen(name->text));
		}
		job = open_group(e, job_name, group->node ? group->node->at : name->at);
		if (job >= 0) {
			add_circuit(e, job, kept, &from->v[i], &to->v[i]);
		}
	}
}

void build_circuit(struct model_build *b, const struct conf_node *node, int nth)
{
	struct circuit_entry e = { .b = b, .node = node };
	const struct names *names = NULL, *from, *to;

	conf_object_name(&section_circuit, node, nth, e.object);
	if (!conf_read_section(b->r, &section_circuit, e.object, node, e.v)) {
		return;
	}
	e.is_simplex = e.v[CIRCUIT_DIRECTION].num;
	if (!e.v[CIRCUIT_NAME].node && !e.v[CIRCUIT_GROUP].node) {
		conf_error(b->r, node->at, WEFT_EINVAL, "%s: key 'name' or 'group' is missing",
			   e.object);
		return;
	}
	if (!e.v[CIRCUIT_NAME].node) {
		snprintf(e.object, sizeof(e.object), "group %s", e.v[CIRCUIT_GROUP].text);
	}
	if (e.v[CIRCUIT_NAME].node &&
	    !(names = build_plain_names(b, e.object, "name", e.v[CIRCUIT_NAME].node, &b->r->work,
					MODEL_MAX_PORTS))) {
		return;
	}
	from = build_names(b, e.object, "from", e.v[CIRCUIT_FROM].node, &b->r->work,
			   MODEL_MAX_PORTS);
	to = build_names(b, e.object, "to", e.v[CIRCUIT_TO].node, &b->r->work, MODEL_MAX_PORTS);
	if (from && to && check_counts(&e, names, from, to)) {
		add_all(&e, names, from, to);
	}
}

void build_circuits(struct model_build *b, const struct conf_value *root)
{
	build_each(b, &root[FABRIC_CIRCUITS], build_circuit);
}
