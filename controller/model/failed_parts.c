/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that their owner knows to be out of order: ports of hosts, switches and
 * panels, and nodes, spans, channels or fibres of rings.
 *
 * Ports are named as in fibres, parts of rings by numbers. They end up in the
 * device as sorted lists without doubles, in the form in which a device reports
 * a failure itself, so that planning treats both alike.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"

/* Adds a mark. False when there are too many already. */
static bool push(struct model_build *b, struct mark m)
{
	/* One more than may be, so that it is seen. */
	if (b->marks.n > MODEL_MAX_DEAD) {
		return false;
	}
	vec_push(&b->marks, m);
	return true;
}

/* ---- ports ---- */

/* Device -1: the fibre of the host's port is not in the file, and there is
 * nothing to mark. */
static void mark_port(struct model_build *b, int device, int index, bool is_out)
{
	if (device >= 0) {
		push(b, (struct mark){ .device = device, .index = index,
				       .is_out = is_out });
	}
}

/* A host's port is dead at the other ends of its fibres. */
static void mark_end(struct model_build *b, const struct port_end *end, int lane)
{
	const struct model_port *p = end->port >= 0 ? &b->ports.v[end->port + lane] : NULL;

	if (end->tx) {
		mark_port(b, p ? p->tx_device : end->device, p ? p->tx_port : end->index, false);
	}
	if (end->rx) {
		mark_port(b, p ? p->rx_device : end->device, p ? p->rx_port : end->index, true);
	}
}

/* The key `port`: ports of hosts or devices, named as in fibres. */
static void add_ports(struct model_build *b, const char *object, const struct conf_value *v)
{
	struct names *names = build_names(b, object, "port", v->node, &b->r->work, MODEL_MAX_DEAD);

	for (int i = 0; names && i < names->n; i++) {
		struct port_end end;

		if (build_find_port(b, object, &names->v[i], &end)) {
			for (int l = 0; l == 0 || l < end.lanes; l++) {
				mark_end(b, &end, l);
			}
		}
	}
}

/* ---- rings ---- */

/* What an entry leaves open stands for all. */
struct failed_span {
	int first, end;
};

/* The one index that a key gives, or all n when it is not given. */
static struct failed_span span_of(const struct conf_value *v, int n)
{
	return v->node ? (struct failed_span){ (int)v->num, (int)v->num + 1 } :
			 (struct failed_span){ 0, n };
}

/* Reports an index that is not below n, the ring's number of such parts. */
static bool check_index(struct model_build *b, const char *object, const struct conf_value *v,
			const char *what, const struct model_device *ring, int n)
{
	if (!v->node || v->num < n) {
		return true;
	}
	conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: %s %lld: ring %s has 0 to %d", object, what,
		   (long long)v->num, ring->name, n - 1);
	return false;
}

/* Marks the product of what the keys give or leave open: every span, or every
 * resonator, with such a node, direction, fibre and channel. */
static void mark_parts(struct model_build *b, int device, const struct conf_value *v)
{
	const struct model_device *ring = &b->devices.v[device];
	bool is_span = v[DEAD_SPAN].node;
	struct failed_span node = span_of(&v[is_span ? DEAD_SPAN : DEAD_NODE], ring->n_members);
	struct failed_span channel = is_span ? (struct failed_span){ 0, 1 } :
		span_of(&v[DEAD_CHANNEL], ring->ring.channels);
	struct failed_span dir = span_of(&v[DEAD_DIRECTION], 2);
	struct failed_span fibre = span_of(&v[DEAD_FIBRE], ring->ring.fibres);
	struct mark m = { .device = device };

	m.part.part = is_span ? RING_SPAN : RING_RESONATOR;
	for (int n = node.first; n < node.end; n++) {
		for (int d = dir.first; d < dir.end; d++) {
			for (int f = fibre.first; f < fibre.end; f++) {
				for (int c = channel.first; c < channel.end; c++) {
					m.part.node = (uint16_t)n;
					m.part.dir = (uint8_t)d;
					m.part.fibre = (uint8_t)f;
					m.part.channel = (uint16_t)c;
					if (!push(b, m)) {
						return;
					}
				}
			}
		}
	}
}

/* Which keys go together: a port has no parts, a ring needs at least one, and a
 * span has neither node nor channel. */
static bool check_form(struct model_build *b, const char *object, const struct conf_node *node,
		       const struct conf_value *v)
{
	bool ring = v[DEAD_RING].node, span = v[DEAD_SPAN].node;
	bool part = v[DEAD_NODE].node || span || v[DEAD_CHANNEL].node ||
		    v[DEAD_DIRECTION].node || v[DEAD_FIBRE].node;
	const char *wrong = NULL;

	if (!ring == !v[DEAD_PORT].node) {
		wrong = "either 'port' or 'ring' says where it is";
	} else if (!ring && part) {
		wrong = "a port has no parts";
	} else if (ring && !part) {
		wrong = "'node', 'span', 'channel', 'direction' or 'fibre' "
			"says which part of the ring it is";
	} else if (span && (v[DEAD_NODE].node || v[DEAD_CHANNEL].node)) {
		wrong = "a span has neither 'node' nor 'channel'";
	}
	if (wrong) {
		conf_error(b->r, node->at, WEFT_EINVAL, "%s: %s", object, wrong);
	}
	return !wrong;
}

/* A node alone is one fault (RING_NODE); all else becomes a list of resonators
 * or spans. */
static void add_ring_part(struct model_build *b, const char *object, const struct conf_value *v)
{
	int device = build_find(&b->f->devices, v[DEAD_RING].text);
	const struct model_device *ring;
	bool ok;

	if (device < 0 || b->devices.v[device].kind != MODEL_RING) {
		if (!b->devices_unsure) {
			conf_error(b->r, v[DEAD_RING].node->at, WEFT_EINVAL,
				   "%s: there is no ring '%.64s'", object, v[DEAD_RING].text);
		}
		return;
	}
	ring = &b->devices.v[device];
	ok = check_index(b, object, &v[DEAD_NODE], "node", ring, ring->n_members);
	ok &= check_index(b, object, &v[DEAD_SPAN], "span", ring, ring->n_members);
	ok &= check_index(b, object, &v[DEAD_CHANNEL], "channel", ring, ring->ring.channels);
	ok &= check_index(b, object, &v[DEAD_FIBRE], "fibre", ring, ring->ring.fibres);
	if (!ok) {
		return;
	}
	if (v[DEAD_NODE].node && !v[DEAD_CHANNEL].node &&
	    !v[DEAD_DIRECTION].node && !v[DEAD_FIBRE].node) {
		push(b, (struct mark){
			.device = device,
			.part = { .part = RING_NODE,
				  .node = (uint16_t)v[DEAD_NODE].num } });
	} else {
		mark_parts(b, device, v);
	}
}

static void add_dead(struct model_build *b, const struct conf_node *node, int nth)
{
	struct conf_value v[CONF_MAX_KEYS];
	char object[CONF_MAX_OBJECT];

	if (b->marks.n > MODEL_MAX_DEAD) {
		return;		/* reported */
	}
	conf_object_name(&section_dead, node, nth, object);
	conf_read_section(b->r, &section_dead, object, node, v);
	for (int i = 0; i < DEAD_KEYS; i++) {
		if (v[i].node && !v[i].ok) {
			return;
		}
	}
	if (!check_form(b, object, node, v)) {
		return;
	}
	if (v[DEAD_PORT].node) {
		add_ports(b, object, &v[DEAD_PORT]);
	} else {
		add_ring_part(b, object, v);
	}
	if (b->marks.n > MODEL_MAX_DEAD) {
		conf_error(b->r, node->at, WEFT_ELIMIT, "%s: more than %d dead parts in all",
			   object, MODEL_MAX_DEAD);
	}
}

/* ---- to the devices ---- */

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static bool has_mark(const int *dead, int n, int port)
{
	return n > 0 && bsearch(&port, dead, (size_t)n, sizeof(*dead), by_number);
}

bool model_port_is_dead(const struct model_device *d, bool out, int port)
{
	return ((!out || d->any_to_any) && has_mark(d->dead_in, d->n_dead_in, port)) ||
	       ((out || d->any_to_any) && has_mark(d->dead_out, d->n_dead_out, port));
}

/* The order that give() relies on: by device, inputs before outputs, then by
 * port or part. */
static int by_device(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->device != y->device) {
		return x->device - y->device;
	}
	if (x->is_out != y->is_out) {
		return x->is_out - y->is_out;
	}
	return x->index != y->index ? x->index - y->index : ring_fault_cmp(&x->part, &y->part);
}

/* The marks of one device, sorted, none twice. */
static void give(struct model_build *b, struct model_device *dev, const struct mark *v, int n)
{
	struct conf_arena *keep = b->r->keep;

	dev->dead_in = conf_arena_alloc(keep, (size_t)n, sizeof(int));
	dev->dead_out = conf_arena_alloc(keep, (size_t)n, sizeof(int));
	dev->dead = conf_arena_alloc(keep, (size_t)n, sizeof(*dev->dead));
	for (int i = 0; i < n; i++) {
		if (i > 0 && by_device(&v[i - 1], &v[i]) == 0) {
			continue;
		}
		if (dev->kind == MODEL_RING) {
			dev->dead[dev->n_dead++] = v[i].part;
		} else if (v[i].is_out) {
			dev->dead_out[dev->n_dead_out++] = v[i].index;
		} else {
			dev->dead_in[dev->n_dead_in++] = v[i].index;
		}
	}
}

void build_dead(struct model_build *b, const struct conf_value *root)
{
	int n, end;

	build_each(b, &root[FABRIC_DEAD], add_dead);
	n = (int)b->marks.n;
	if (n > 0) {
		qsort(b->marks.v, b->marks.n, sizeof(*b->marks.v), by_device);
	}
	for (int i = 0; i < n; i = end) {
		const struct mark *v = b->marks.v;

		for (end = i + 1; end < n && v[end].device == v[i].device; end++) {
		}
		give(b, &b->devices.v[v[i].device], v + i, end - i);
	}
}
