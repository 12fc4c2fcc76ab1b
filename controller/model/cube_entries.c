/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cubes, and the slices of them that jobs have.
 *
 * A cube is a host: a mesh of chips inside, and a port for each chip at each of its six faces. The
 * entry becomes one of `hosts`, so that all else goes by what hosts have; what cubes add is the
 * numbering of ports, and the order in which switches have them. Axis and position are cabling:
 * a switch that joins equal positions of one axis, of whichever cubes, is all that a slice asks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"
#include "lib/base/buf.h"
#include "topology/topology.h"

#define MIN_SIDE 2
#define MAX_SIDE 9	/* a digit in the names of ports */

/* ---- ports --------------------------------------------------------------- */

int model_face_ports(const int side[3], int axis)
{
	return side[(axis + 1) % 3] * side[(axis + 2) % 3];
}

int model_face_port(const int side[3], int axis, bool minus, int position)
{
	int first = 0;

	for (int a = 0; a < axis; a++) {
		first += 2 * model_face_ports(side, a);
	}
	return first + (minus ? model_face_ports(side, axis) : 0) + position;
}

void model_face_chip(const int side[3], int axis, bool minus, int position, int at[3])
{
	const int first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;

	at[axis] = minus ? 0 : side[axis] - 1;
	at[first] = position / side[second];
	at[second] = position % side[second];
}

/* "xp00": axis, side, and where on the face. */
static void port_name(const int side[3], int axis, bool minus, int position, char name[8])
{
	int at[3];

	model_face_chip(side, axis, minus, position, at);
	snprintf(name, 8, "%c%c%d%d", "xyz"[axis], minus ? 'm' : 'p', at[axis == 0 ? 1 : 0],
		 at[axis == 2 ? 1 : 2]);
}

/* ---- the entries --------------------------------------------------------- */

/* Three numbers with an x between them; false: it is none, or out of limits. */
static bool parse_sides(const char *text, int min, int max, int side[3])
{
	int len = 0;

	return sscanf(text, "%5dx%5dx%5d%n", &side[0], &side[1], &side[2], &len) == 3 &&
	       !text[len] && side[0] >= min && side[1] >= min && side[2] >= min &&
	       side[0] <= max && side[1] <= max && side[2] <= max;
}

/* A list of what fn writes for each port, in their order. */
static struct conf_node *port_list(struct model_build *b, struct conf_place at, const int side[3],
				   bool chips)
{
	struct conf_node *list = build_node(b, CONF_NODE_LIST, "", at);
	struct conf_node **last = &list->first;

	for (int axis = 0; axis < 3; axis++) {
		for (int i = 0; i < 2 * model_face_ports(side, axis); i++) {
			int n = model_face_ports(side, axis), chip[3];
			struct conf_node *port;
			char text[16];

			if (chips) {
				model_face_chip(side, axis, i >= n, i % n, chip);
				snprintf(text, sizeof(text), "%d",
					 (chip[0] * side[1] + chip[1]) * side[2] + chip[2]);
			} else {
				port_name(side, axis, i >= n, i % n, text);
			}
			port = build_node(b, CONF_NODE_TEXT,
					  conf_arena_strndup(&b->r->tree, text, strlen(text)), at);
			port->quoted = !chips;
			build_append(list, &last, port);
		}
	}
	return list;
}

/* The entry as one of hosts: what it says as it stands, and what makes it a cube. */
static struct conf_node *host_node(struct model_build *b, const struct conf_node *entry,
				   const struct conf_value *v, const int side[3])
{
	static const int same[] = { CUBE_NAME, CUBE_RATE, CUBE_REACTIVATION };
	struct conf_node *map = build_node(b, CONF_NODE_MAP, "", entry->at);
	struct conf_node **last = &map->first;
	char inside[32];

	snprintf(inside, sizeof(inside), "Mesh(%d,%d,%d)", side[0], side[1], side[2]);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		if (v[same[i]].node) {
			struct conf_node *value = conf_arena_alloc(&b->r->tree, 1, sizeof(*value));

			*value = *v[same[i]].node;
			value->next = NULL;
			build_append(map, &last, build_node(b, CONF_NODE_TEXT,
							    section_cube.keys[same[i]].name,
							    entry->at));
			build_append(map, &last, value);
		}
	}
	build_append(map, &last, build_node(b, CONF_NODE_TEXT, "ports", entry->at));
	build_append(map, &last, port_list(b, entry->at, side, false));
	build_append(map, &last, build_node(b, CONF_NODE_TEXT, "inside", entry->at));
	build_append(map, &last, build_node(b, CONF_NODE_TEXT,
					    conf_arena_strndup(&b->r->tree, inside, strlen(inside)),
					    entry->at));
	build_append(map, &last, build_node(b, CONF_NODE_TEXT, "port-at", entry->at));
	build_append(map, &last, port_list(b, entry->at, side, true));
	return map;
}

static void add_cubes(struct model_build *b, const struct conf_node *entry, int nth)
{
	struct conf_value v[CONF_MAX_KEYS];
	struct cube_entry c = { .first = (int)b->hosts.n };
	char object[CONF_MAX_OBJECT];
	int side[3];

	conf_object_name(&section_cube, entry, nth, object);
	if (!conf_read_section(b->r, &section_cube, object, entry, v)) {
		b->hosts_unsure = true;
		return;
	}
	if (!parse_sides(v[CUBE_SIZE].text, MIN_SIDE, MAX_SIDE, side)) {
		err_hint(conf_error(b->r, v[CUBE_SIZE].node->at, WEFT_EINVAL, "%s: size: expected "
				    "three numbers of %d to %d, found '%.40s'", object, MIN_SIDE,
				    MAX_SIDE, v[CUBE_SIZE].text), "such as 4x4x4");
		b->hosts_unsure = true;
		return;
	}
	build_host(b, host_node(b, entry, v, side), nth);
	c.n = (int)b->hosts.n - c.first;
	for (int i = 0; i < c.n; i++) {
		memcpy(b->hosts.v[c.first + i].side, side, sizeof(side));
	}
	c.switches = v[CUBE_SWITCHES].node;
	if (c.switches && c.n > 0) {
		vec_push(&b->cubes, c);
	}
}

void build_cubes(struct model_build *b, const struct conf_value *root)
{
	const struct conf_value *list = &root[FABRIC_CUBES];

	if (list->node && !list->ok) {
		b->hosts_unsure = true;
	}
	build_each(b, list, add_cubes);
}

/* ---- their fibres -------------------------------------------------------- */

static struct name text_of(struct model_build *b, struct conf_place at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static struct name text_of(struct model_build *b, struct conf_place at, const char *fmt, ...)
{
	char text[2 * NAMES_MAX_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return (struct name){ conf_arena_strndup(&b->r->work, text, strlen(text)), at };
}

/* Position after position of x, y and z has a switch: the k-th cube's plus port is at its port k,
 * from 1, and the minus ports are behind those of all cubes. */
static void cable(struct model_build *b, const struct cube_entry *c)
{
	const struct model_host *first = &b->hosts.v[c->first];
	const struct names *sw;
	struct names from = { 0 }, to = { 0 };
	char object[CONF_MAX_OBJECT], port[8];
	int total = 0, at = 0;

	snprintf(object, sizeof(object), "cubes %.63s", first->name);
	sw = build_names(b, object, "switches", c->switches, &b->r->work, MODEL_MAX_DEVICES);
	for (int a = 0; a < 3; a++) {
		total += model_face_ports(first->side, a);
	}
	if (!sw || sw->n != total) {
		b->fibres_unsure = true;
		if (sw) {
			conf_error(b->r, c->switches->at, WEFT_EINVAL, "%s: switches: %d for %d "
				   "positions on the faces of x, y and z", object, sw->n, total);
		}
		return;
	}
	from.v = conf_arena_alloc(&b->r->work, (size_t)(2 * total * c->n), sizeof(*from.v));
	to.v = conf_arena_alloc(&b->r->work, (size_t)(2 * total * c->n), sizeof(*to.v));
	for (int axis = 0; axis < 3; at += model_face_ports(first->side, axis++)) {
		for (int i = 0; i < 2 * model_face_ports(first->side, axis) * c->n; i++) {
			int face = i / c->n, n = model_face_ports(first->side, axis);
			const struct name *dev = &sw->v[at + face % n];

			port_name(first->side, axis, face >= n, face % n, port);
			from.v[from.n++] = text_of(b, c->switches->at, "%s.%s",
						   b->hosts.v[c->first + i % c->n].name, port);
			to.v[to.n++] = text_of(b, dev->at, "%s.%d", dev->text,
					       i % c->n + 1 + (face >= n ? c->n : 0));
		}
	}
	build_join(b, object, &from, &to);
}

void build_cube_fibres(struct model_build *b)
{
	for (size_t i = 0; i < b->cubes.n && !b->r->stop; i++) {
		cable(b, &b->cubes.v[i]);
		conf_arena_fini(&b->r->work);
	}
}

/* ---- slices -------------------------------------------------------------- */

static struct err *refuse(struct model_build *b, struct job_entry *e, const struct conf_node *at,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static struct err *refuse(struct model_build *b, struct job_entry *e, const struct conf_node *at,
			  const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	e->ok = false;
	return conf_error(b->r, at ? at->at : e->node->at, WEFT_EINVAL, "%s: %s", e->object, text);
}

/* [8, 8, 16] or 8x8x16. */
static bool read_shape(struct model_build *b, struct job_entry *e, int shape[3])
{
	const struct conf_node *node = e->v[JOB_SHAPE].node;
	struct buf text = { 0 };
	bool ok;

	for (const struct conf_node *n = node->first; n && node->kind == CONF_NODE_LIST;
	     n = n->next) {
		buf_printf(&text, "%s%.10s", text.len ? "x" : "", n->text);
	}
	buf_str(&text, node->text);
	ok = parse_sides(buf_cstr(&text), 1, MODEL_MAX_HOSTS, shape);
	if (!ok) {
		err_hint(refuse(b, e, node, "shape: expected the chips along x, y and z, found "
				"'%.40s'", buf_cstr(&text)), "such as 8x8x16");
	}
	buf_fini(&text);
	return ok;
}

/* All are cubes, and alike. */
static bool check_cubes(struct model_build *b, struct job_entry *e)
{
	const struct model_host *first = &b->hosts.v[e->job.hosts[0]];

	for (int i = 0; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];

		if (!h->side[0]) {
			refuse(b, e, e->v[JOB_NODES].node, "nodes: host %s is no cube, and a "
			       "shape is one of cubes", h->name);
			return false;
		}
		if (memcmp(h->side, first->side, sizeof(h->side)) != 0) {
			refuse(b, e, e->v[JOB_NODES].node, "nodes: %s and %s are cubes of unlike "
			       "sizes", first->name, h->name);
			return false;
		}
	}
	return true;
}

/* As many cubes as the shape has, and the spares. */
static bool check_count(struct model_build *b, struct job_entry *e)
{
	const int *shape = e->job.shape, *side = b->hosts.v[e->job.hosts[0]].side;
	int64_t cubes = 1;

	for (int a = 0; a < 3; a++) {
		if (shape[a] % side[a]) {
			refuse(b, e, e->v[JOB_SHAPE].node, "shape: %d along %c is not a multiple "
			       "of %d, the side of a cube", shape[a], "xyz"[a], side[a]);
			return false;
		}
		if (shape[a] < 3) {
			refuse(b, e, e->v[JOB_SHAPE].node, "shape: %d along %c is no ring",
			       shape[a], "xyz"[a]);
			return false;
		}
		cubes *= shape[a] / side[a];
	}
	if (cubes + e->job.spares > MODEL_MAX_CUBES) {
		refuse(b, e, e->v[JOB_SHAPE].node, "shape: more than %d cubes with its spares",
		       MODEL_MAX_CUBES);
		return false;
	}
	if (cubes + e->job.spares != e->job.n_hosts) {
		struct err *err = refuse(b, e, e->v[JOB_SHAPE].node, "shape: %dx%dx%d is %lld "
					 "cube%s%s, the job has %d", shape[0], shape[1], shape[2],
					 (long long)cubes, cubes == 1 ? "" : "s",
					 e->job.spares ? " beside its spares" : "",
					 e->job.n_hosts);

		err_hint(err, "nodes: names the cubes; spares: N of them stand by");
		return false;
	}
	return true;
}

int model_twist(const int shape[3], const int side[3], int twist[3], struct err *err)
{
	const int k = shape[0];
	bool long_z = shape[1] == k && shape[2] == 2 * k;
	bool long_y = shape[1] == 2 * k && shape[2] == 2 * k;

	twist[0] = long_y ? k : 0;
	twist[1] = k;
	twist[2] = long_z ? k : 0;
	if (!long_z && !long_y) {
		return err_set(err, WEFT_EINVAL, "twist: %dx%dx%d is not k x k x 2k or k x 2k x "
			       "2k", shape[0], shape[1], shape[2]);
	}
	if (k % side[1] || k % side[2]) {
		return err_set(err, WEFT_EINVAL, "twist: by %d chips, which are no whole cubes", k);
	}
	return 0;
}

/* The torus of its chips, in the order of coordinates. */
static void make_torus(struct model_build *b, struct job_entry *e)
{
	const int *s = e->job.shape, *t = e->job.twist;
	struct err err = { 0 };
	char expr[96], *name = NULL;

	if (e->v[JOB_TWIST].num) {
		snprintf(expr, sizeof(expr), "TwistedTorus(%d,%d,%d,%d,%d,%d)", s[0], s[1], s[2],
			 t[0], t[1], t[2]);
	} else {
		snprintf(expr, sizeof(expr), "Torus(%d,%d,%d)", s[0], s[1], s[2]);
	}
	if (topo_parse(expr, &e->job.topo, &name, &err)) {
		refuse(b, e, e->v[JOB_SHAPE].node, "shape: %s", err.msg);
		return;
	}
	e->job.topology = conf_arena_strndup(b->r->keep, name, strlen(name));
	free(name);
}

/* Keys of slices beside those of others, and the other way round. */
static bool check_keys(struct model_build *b, struct job_entry *e)
{
	static const int others[] = { JOB_TOPOLOGY, JOB_PORTS, JOB_RING, JOB_COLLECTIVES };
	static const int own[] = { JOB_TWIST, JOB_SPARES };
	bool ok = true;

	for (size_t i = 0; i < 4 && e->v[JOB_SHAPE].node; i++) {
		if (e->v[others[i]].node) {
			refuse(b, e, e->v[others[i]].node, "%s: not beside a shape",
			       section_job.keys[others[i]].name);
			ok = false;
		}
	}
	for (size_t i = 0; i < 2 && !e->v[JOB_SHAPE].node; i++) {
		if (e->v[own[i]].node) {
			refuse(b, e, e->v[own[i]].node, "%s: only beside a shape",
			       section_job.keys[own[i]].name);
		}
	}
	for (int i = 0; i < e->job.n_hosts && !e->v[JOB_SHAPE].node && !e->ring && e->ok; i++) {
		if (b->hosts.v[e->job.hosts[i]].side[0]) {
			err_hint(refuse(b, e, e->v[JOB_NODES].node, "nodes: %s is a cube, and the "
					"job has no shape", b->hosts.v[e->job.hosts[i]].name),
				 "such as shape: 4x4x8");
		}
	}
	return ok && e->v[JOB_SHAPE].node;
}

void build_slice(struct model_build *b, struct job_entry *e)
{
	struct err err = { 0 };

	if (!check_keys(b, e) || !e->v[JOB_SHAPE].ok || !e->v[JOB_SPARES].ok || !e->ok) {
		return;
	}
	e->job.spares = (int)e->v[JOB_SPARES].num;
	if (!read_shape(b, e, e->job.shape) || !check_cubes(b, e) || !check_count(b, e)) {
		return;
	}
	if (e->v[JOB_TWIST].num && model_twist(e->job.shape, b->hosts.v[e->job.hosts[0]].side,
					       e->job.twist, &err)) {
		refuse(b, e, e->v[JOB_TWIST].node, "%s", err.msg);
		return;
	}
	make_torus(b, e);
}

/* The device that both fibres of a port are at, -1: there is none such. */
static int device_of(const struct model_port *p)
{
	return p->tx_device == p->rx_device ? p->tx_device : -1;
}

/* Equal positions of an axis, of all cubes and both faces, are on one switch. */
void build_slice_fibres(struct model_build *b, struct job_entry *e)
{
	const struct model_host *first = &b->hosts.v[e->job.hosts[0]];

	for (int i = 0; i < e->job.n_hosts * first->n_ports && !b->fibres_unsure && e->ok; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i / first->n_ports]];
		const struct model_port *p = &b->ports.v[h->first_port + i % first->n_ports], *q;
		int k = i % first->n_ports, axis = 2;

		while (k < model_face_port(first->side, axis, false, 0)) {
			axis--;
		}
		k = (k - model_face_port(first->side, axis, false, 0)) %
		    model_face_ports(first->side, axis);
		q = &b->ports.v[first->first_port + model_face_port(first->side, axis, false, k)];
		if (device_of(p) < 0) {
			refuse(b, e, e->v[JOB_NODES].node, "nodes: port %s has no fibres to and "
			       "from one switch", p->name);
		} else if (device_of(p) != device_of(q)) {
			refuse(b, e, e->v[JOB_NODES].node, "nodes: %s is on %s and %s on %s, and "
			       "equal positions are to be joined", p->name,
			       b->devices.v[device_of(p)].name, q->name,
			       b->devices.v[device_of(q)].name);
		}
	}
}
