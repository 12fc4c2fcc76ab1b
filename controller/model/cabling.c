/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibres: ranges of host ports to ranges of device ports, pair by pair.
 *
 * A range may go wrong in hundreds of pairs for one reason. So each entry
 * reports the first fault of a kind and counts the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"

/* What can be wrong with a pair of ends; an entry reports each kind once. */
enum fault_kind { FAULT_FROM, FAULT_TO, FAULT_FORM, FAULT_USED, FAULT_KINDS };

/* The first fault of a kind in an entry, and how many pairs had one. */
struct cabling_fault {
	int n;
	struct conf_place at;
	char text[ERR_MSG_MAX - CONF_MAX_OBJECT - MORE_MAX];
	char hint[120];
};

/* An entry of `fibres` while it is read; loss and channels hold for all of its
 * pairs. */
struct fibre_entry {
	struct model_build *b;
	char object[CONF_MAX_OBJECT];
	int32_t loss_mdb;
	bool amplified;
	enum model_protect protect;
	int n_channels;		/* 0: not filtered */
	int *channels;		/* of each pair of ends */
	int channel;		/* of the pair at hand, -1: not filtered */
	bool takes_lanes;	/* ports may be named whole */
	struct cabling_fault faults[FAULT_KINDS];
};

/* What a name leaves out: a whole port, one fibre of a host port, or one side
 * of a device. */
enum side { SIDE_BOTH, SIDE_TX, SIDE_RX, SIDE_IN, SIDE_OUT };

/* One end of a fibre (or of a pair of them). */
struct fibre_end {
	const struct name *name;
	bool is_host;
	int device, index;	/* device end: 0-based port */
	int port, lanes;	/* host end: of the fabric */
	enum side side;
};

static void fault(struct fibre_entry *e, enum fault_kind kind, struct conf_place at,
		  const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Notes a fault of a pair: the text of the first of its kind is kept, others
 * are only counted. */
static void fault(struct fibre_entry *e, enum fault_kind kind, struct conf_place at,
		  const char *hint, const char *fmt, ...)
{
	struct cabling_fault *f = &e->faults[kind];
	va_list ap;

	if (f->n++ > 0) {
		return;
	}
	f->at = at;
	snprintf(f->hint, sizeof(f->hint), "%s", hint ? hint : "");
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

/* After all pairs of the entry were tried: one error a kind. */
static void report_faults(struct fibre_entry *e)
{
	for (int k = 0; k < FAULT_KINDS; k++) {
		const struct cabling_fault *f = &e->faults[k];
		char more[MORE_MAX];
		struct err *err;

		if (f->n == 0) {
			continue;
		}
		err = conf_error(e->b->r, f->at, WEFT_EINVAL, "%s: %s%s", e->object, f->text,
				 tally_more(f->n, more));
		if (f->hint[0]) {
			err_hint(err, "%s", f->hint);
		}
	}
}

/* ---- ends ---- */

/* Resolves "PORT", "PORT.tx" or "PORT.rx" of a host. Only a last part that is a
 * side is cut off. */
static bool host_end(struct fibre_entry *e, enum fault_kind kind, struct fibre_end *end,
		     int host, const char *rest)
{
	struct model_build *b = e->b;
	const struct model_host *h = &b->hosts.v[host];
	const struct host_class *class = &b->classes.v[b->class_of.v[host]];
	char port[NAMES_MAX_LEN + 1];
	const char *dot = strrchr(rest, '.');
	int number;

	end->is_host = true;
	end->side = SIDE_BOTH;
	snprintf(port, sizeof(port), "%s", rest);
	if (dot && (strcmp(dot, ".tx") == 0 || strcmp(dot, ".rx") == 0)) {
		end->side = dot[1] == 't' ? SIDE_TX : SIDE_RX;
		port[dot - rest] = '\0';
	}
	number = build_find(&class->ports, port);
	end->lanes = 1;
	if (number < 0 && e->takes_lanes) {
		number = build_find(&class->laned, port);
		end->lanes = class->lanes;
	}
	if (number >= 0) {
		end->port = h->first_port + number;
		return true;
	}
	if (class->unsure) {
		return false;
	}
	if (build_find(&class->laned, port) >= 0) {
		fault(e, kind, end->name->at, NULL, "%s.%s has %d lanes, each with fibres of its "
		      "own: %s-1 to %s-%d", h->name, port, class->lanes, port, port, class->lanes);
	} else if (h->n_ports == 0) {
		fault(e, kind, end->name->at, NULL, "host %s has no ports", h->name);
	} else {
		fault(e, kind, end->name->at, NULL,
		      "host %s has no port '%.64s', only %s%s%s", h->name,
		      port, class->names->v[0].text,
		      h->n_ports > 1 ? " to " : "",
		      h->n_ports > 1 ? class->names->v[h->n_ports - 1].text
				     : "");
	}
	return false;
}

/* "7", "in7" or "out7", counted from 1. */
static bool parse_device_port(const char *text, struct fibre_end *end)
{
	const char *p = text;
	long n;

	end->side = SIDE_BOTH;
	if (strncmp(p, "in", 2) == 0) {
		end->side = SIDE_IN;
		p += 2;
	} else if (strncmp(p, "out", 3) == 0) {
		end->side = SIDE_OUT;
		p += 3;
	}
	if (!*p || p[strspn(p, "0123456789")] || strlen(p) > 9) {
		return false;
	}
	n = strtol(p, NULL, 10);
	end->index = (int)n - 1;
	return true;
}

/* The port exists on the sides that the end asks for. */
static bool check_device_port(struct fibre_entry *e, enum fault_kind kind,
			      const struct fibre_end *end, const struct model_device *dev)
{
	bool in = end->side != SIDE_OUT, out = end->side != SIDE_IN;

	if (dev->any_to_any && end->side != SIDE_BOTH) {
		fault(e, kind, end->name->at, "name the whole port, on both ends",
		      "%s is any-to-any: its ports have no in and out", dev->name);
		return false;
	}
	if (end->index >= 0 && (!in || end->index < dev->n_in) &&
	    (!out || end->index < dev->n_out)) {
		return true;
	}
	if (dev->any_to_any) {
		fault(e, kind, end->name->at, NULL, "port %d: %s has ports 1 to %d", end->index + 1,
		      dev->name, dev->n_in);
	} else {
		fault(e, kind, end->name->at, NULL,
		      "port %d: %s has inputs 1 to %d and outputs 1 to %d",
		      end->index + 1, dev->name, dev->n_in, dev->n_out);
	}
	return false;
}

/* Resolves "7", "in7" or "out7" of a switch or panel. A device whose size could
 * not be read has no port, and that was reported. */
static bool device_end(struct fibre_entry *e, enum fault_kind kind, struct fibre_end *end,
		       int device, const char *rest)
{
	const struct model_device *dev = &e->b->devices.v[device];

	end->device = device;
	if (dev->kind == MODEL_RING) {
		fault(e, kind, end->name->at, "a ring's nodes are listed under its key 'nodes'",
		      "%s is a ring: no fibres are joined to it", dev->name);
		return false;
	}
	if (!parse_device_port(rest, end)) {
		fault(e, kind, end->name->at, "write a number from 1, in[n] or out[n]",
		      "'%.64s' is no port of %s", rest, dev->name);
		return false;
	}
	return !e->b->device_unsure.v[device] && check_device_port(e, kind, end, dev);
}

/* An end whose owner is neither host nor device, with the nearest name as a
 * hint. Silent while hosts or devices could not be read in full. */
static void unknown_owner(struct fibre_entry *e, enum fault_kind kind,
			  const struct name *name, const char *owner)
{
	struct model_build *b = e->b;
	char hint[96] = "";
	struct nearest near;

	if (b->hosts_unsure || b->devices_unsure) {
		return;
	}
	nearest_init(&near, owner);
	if (e->faults[kind].n == 0 && b->r->errs->dropped == 0) {
		for (size_t i = 0; i < b->devices.n; i++) {
			nearest_try(&near, b->devices.v[i].name);
		}
		for (size_t i = 0; i < b->hosts.n && i < 4096; i++) {
			nearest_try(&near, b->hosts.v[i].name);
		}
	}
	if (near.best) {
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near.best);
	}
	fault(e, kind, name->at, hint, "there is no host or device '%.64s'", owner);
}

/* Resolves one name. The owner stands before the first dot: names of hosts and
 * devices have none. */
static bool find_end(struct fibre_entry *e, enum fault_kind kind,
		     const struct name *name, struct fibre_end *end)
{
	const char *dot = strchr(name->text, '.');
	size_t len = dot ? (size_t)(dot - name->text) : 0;
	char owner[NAMES_MAX_LEN + 1];
	int index;

	*end = (struct fibre_end){ .name = name };
	if (!dot || len == 0 || !dot[1]) {
		fault(e, kind, name->at, "write HOST.PORT or DEVICE.NUMBER",
		      "'%.64s' is not a port", name->text);
		return false;
	}
	memcpy(owner, name->text, len);
	owner[len] = '\0';
	index = build_find(&e->b->f->hosts, owner);
	if (index >= 0) {
		return host_end(e, kind, end, index, dot + 1);
	}
	index = build_find(&e->b->f->devices, owner);
	if (index >= 0) {
		return device_end(e, kind, end, index, dot + 1);
	}
	unknown_owner(e, kind, name, owner);
	return false;
}

bool build_find_port(struct model_build *b, const char *object,
		     const struct name *name, struct port_end *out)
{
	struct fibre_entry e = { .b = b, .takes_lanes = true };
	struct fibre_end end;
	bool ok;

	snprintf(e.object, sizeof(e.object), "%s", object);
	ok = find_end(&e, FAULT_FROM, name, &end);
	report_faults(&e);
	*out = (struct port_end){
		.port = end.is_host ? end.port : -1, .lanes = end.lanes,
		.device = end.device, .index = end.index,
		.tx = end.side != SIDE_RX && end.side != SIDE_OUT,
		.rx = end.side != SIDE_TX && end.side != SIDE_IN,
	};
	return ok;
}

/* ---- joining ---- */

/* The host's transmitter or receiver, and the device port, must be dark. */
static bool is_dark(struct fibre_entry *e, const struct fibre_end *host,
		    const struct fibre_end *dev, bool tx)
{
	struct model_build *b = e->b;
	const struct model_port *p = &b->ports.v[host->port];
	const struct model_device *d = &b->devices.v[dev->device];
	int other = tx ? d->in_port[dev->index] : d->out_port[dev->index];
	const struct conf_place *first;

	if ((tx ? p->tx_device : p->rx_device) >= 0) {
		first = tx ? &b->tx_at[host->port] : &b->rx_at[host->port];
		fault(e, FAULT_USED, host->name->at, NULL,
		      "%s.%s already has a fibre, from line %d", p->name,
		      tx ? "tx" : "rx", first->line);
		return false;
	}
	if (other == MODEL_AT_TRUNK) {
		fault(e, FAULT_USED, dev->name->at, NULL,
		      "%s %d of %s already has a fibre, to another switch",
		      tx ? "input" : "output", dev->index + 1, d->name);
		return false;
	}
	if (other >= 0) {
		first = tx ? &b->tx_at[other] : &b->rx_at[other];
		fault(e, FAULT_USED, dev->name->at, NULL,
		      "%s %d of %s already has a fibre, to %s from line %d",
		      d->any_to_any ? "port"
		      : tx	    ? "input"
				    : "output",
		      dev->index + 1, d->name, b->ports.v[other].name,
		      first->line);
		return false;
	}
	return true;
}

/* Writes the fibre down at both of its ends, which is_dark has found free. */
static void join(struct fibre_entry *e, const struct fibre_end *host,
		 const struct fibre_end *dev, bool tx)
{
	struct model_build *b = e->b;
	struct model_port *p = &b->ports.v[host->port];
	struct model_device *d = &b->devices.v[dev->device];

	if (tx) {
		p->tx_device = dev->device;
		p->tx_port = dev->index;
		p->tx_loss_mdb = e->loss_mdb;
		p->tx_amplified = e->amplified;
		d->in_port[dev->index] = host->port;
		b->tx_at[host->port] = host->name->at;
	} else {
		p->rx_device = dev->device;
		p->rx_port = dev->index;
		p->rx_loss_mdb = e->loss_mdb;
		p->rx_amplified = e->amplified;
		d->out_port[dev->index] = host->port;
		b->rx_at[host->port] = host->name->at;
	}
}

/* The output and the input must be dark, and of switches that are one-way. */
static bool may_join(struct fibre_entry *e, const struct fibre_end *from,
		     const struct fibre_end *to)
{
	const struct fibre_end *ends[2] = { from, to };

	for (int k = 0; k < 2; k++) {
		const struct model_device *d = &e->b->devices.v[ends[k]->device];
		const int *map = k ? d->in_port : d->out_port;

		if (map[ends[k]->index] != -1) {
			fault(e, FAULT_USED, ends[k]->name->at, NULL,
			      "%s %d of %s already has a fibre",
			      k ? "input" : "output", ends[k]->index + 1,
			      d->name);
			return false;
		}
	}
	return true;
}

/* "SWITCH.PORT", counted from 1 as in the file. */
static char *end_name(struct fibre_entry *e, const struct fibre_end *end)
{
	char name[NAMES_MAX_LEN + 16];
	int n = snprintf(name, sizeof(name), "%s.%d",
			 e->b->devices.v[end->device].name, end->index + 1);

	return conf_arena_strndup(e->b->r->keep, name, (size_t)n);
}

/* One fibre from an output to an input of another device. Both ports are closed
 * to hosts from then on. */
static void join_trunk(struct fibre_entry *e, const struct fibre_end *from,
		       const struct fibre_end *to)
{
	struct model_build *b = e->b;
	struct model_trunk t = { from->device, from->index, to->device,
				 to->index, .loss_mdb = e->loss_mdb,
				 .amplified = e->amplified,
				 .channel = e->channel, .protect = e->protect };

	t.from_name = end_name(e, from);
	t.to_name = end_name(e, to);
	b->devices.v[from->device].out_port[from->index] = MODEL_AT_TRUNK;
	b->devices.v[to->device].in_port[to->index] = MODEL_AT_TRUNK;
	vec_push(&b->trunks, t);
}

/* From switch or panel to another: one fibre, or of whole ports one each way. */
static void join_switches(struct fibre_entry *e, const struct fibre_end *from,
			  const struct fibre_end *to)
{
	bool both = from->side == SIDE_BOTH && to->side == SIDE_BOTH;

	if (!both && (from->side != SIDE_OUT || to->side != SIDE_IN)) {
		fault(e, FAULT_FORM, from->name->at,
		      "write SWITCH.n to SWITCH.n, or SWITCH.out[n] to "
		      "SWITCH.in[n]", "%s to %s: the two ends do not fit",
		      from->name->text, to->name->text);
		return;
	}
	if (!may_join(e, from, to) || (both && !may_join(e, to, from))) {
		return;
	}
	join_trunk(e, from, to);
	if (both) {
		join_trunk(e, to, from);
	}
}

/* Two devices that a fibre may join directly: not one and the same, no rings,
 * and both with separate inputs and outputs. */
static bool are_switches(const struct model_build *b, const struct fibre_end *x,
			 const struct fibre_end *y)
{
	const struct model_device *d = &b->devices.v[x->device];
	const struct model_device *f = &b->devices.v[y->device];

	return x->device != y->device && d->kind != MODEL_RING &&
	       f->kind != MODEL_RING && !d->any_to_any && !f->any_to_any;
}

/* Light must have a way: out of a host into a device, or the other way. */
static void join_pair(struct fibre_entry *e, const struct fibre_end *from,
		      const struct fibre_end *to)
{
	bool is_trunk = !from->is_host && !to->is_host && are_switches(e->b, from, to);
	bool outward = from->is_host && !to->is_host;
	bool inward = !from->is_host && to->is_host;
	bool duplex = outward && from->side == SIDE_BOTH && to->side == SIDE_BOTH;
	bool simplex = (outward && from->side == SIDE_TX &&
			to->side == SIDE_IN) ||
		       (inward && from->side == SIDE_OUT &&
			to->side == SIDE_RX);

	if (e->n_channels && !is_trunk) {
		fault(e, FAULT_FORM, from->name->at,
		      "a host's own key 'channels' says what it can send",
		      "%s to %s: only fibres between switches have channels",
		      from->name->text, to->name->text);
	} else if (e->protect != MODEL_UNPROTECTED && !is_trunk) {
		fault(e, FAULT_FORM, from->name->at, NULL,
		      "%s to %s: only fibres between switches have 'protect'",
		      from->name->text, to->name->text);
	} else if (duplex) {
		if (is_dark(e, from, to, true) && is_dark(e, from, to, false)) {
			join(e, from, to, true);
			join(e, from, to, false);
		}
	} else if (simplex) {
		const struct fibre_end *host = outward ? from : to;
		const struct fibre_end *dev = outward ? to : from;

		if (is_dark(e, host, dev, outward)) {
			join(e, host, dev, outward);
		}
	} else if (is_trunk) {
		join_switches(e, from, to);
	} else if (from->is_host == to->is_host) {
		fault(e, FAULT_FORM, from->name->at, NULL,
		      "%s to %s: a fibre between two %s is not supported",
		      from->name->text, to->name->text,
		      from->is_host ? "hosts" : "such devices");
	} else {
		fault(e, FAULT_FORM, from->name->at,
		      "write HOST.PORT to DEVICE.n, HOST.PORT.tx to "
		      "DEVICE.in[n], or DEVICE.out[n] to HOST.PORT.rx",
		      "%s to %s: the two ends do not fit", from->name->text,
		      to->name->text);
	}
}

/* Joins the i-th name of one side to the i-th of the other; there are as many.
 * */
static void join_all(struct fibre_entry *e, const struct names *from, const struct names *to)
{
	for (int i = 0; i < from->n; i++) {
		struct fibre_end a, z;
		bool ok = find_end(e, FAULT_FROM, &from->v[i], &a);

		/* Both ends are looked at, even if the first is wrong. */
		ok &= find_end(e, FAULT_TO, &to->v[i], &z);
		e->channel = e->n_channels ? e->channels[i] : -1;
		if (ok) {
			join_pair(e, &a, &z);
		} else {
			e->b->fibres_unsure = true;
		}
	}
}

void build_join(struct model_build *b, const char *object, const struct names *from,
		const struct names *to)
{
	struct fibre_entry e = { .b = b };

	snprintf(e.object, sizeof(e.object), "%s", object);
	join_all(&e, from, to);
	report_faults(&e);
}

/* One channel for each pair of ends. */
static bool read_filters(struct fibre_entry *e, const struct conf_value *v, int pairs)
{
	if (!v->node) {
		return true;
	}
	if (!v->ok || !build_channels(e->b, e->object, v, &e->channels, &e->n_channels)) {
		e->b->fibres_unsure = true;
		return false;
	}
	if (e->n_channels != pairs) {
		conf_error(e->b->r, v->node->at, WEFT_EINVAL, "%s: %d channel%s for %d port%s",
			   e->object, e->n_channels, e->n_channels == 1 ? "" : "s", pairs,
			   pairs == 1 ? "" : "s");
		e->b->fibres_unsure = true;
		return false;
	}
	return true;
}

/* An entry of `fibres`. What cannot be read sets fibres_unsure, so that no job
 * is refused for fibres that may be there. */
static void add_fibre(struct model_build *b, const struct conf_node *node, int nth)
{
	struct conf_value v[CONF_MAX_KEYS];
	struct fibre_entry e = { .b = b };
	struct names *from, *to;

	conf_object_name(&section_fibre, node, nth, e.object);
	conf_read_section(b->r, &section_fibre, e.object, node, v);
	if (!v[FIBRE_FROM].ok || !v[FIBRE_TO].ok) {
		b->fibres_unsure = true;
		return;
	}
	e.loss_mdb = (int32_t)(v[FIBRE_LOSS].num - v[FIBRE_GAIN].num);
	e.amplified = v[FIBRE_GAIN].num > 0;
	e.protect = (enum model_protect)v[FIBRE_PROTECT].num;
	from = build_names(b, e.object, "from", v[FIBRE_FROM].node, &b->r->work, MODEL_MAX_PORTS);
	to = build_names(b, e.object, "to", v[FIBRE_TO].node, &b->r->work, MODEL_MAX_PORTS);
	if (!from || !to) {
		b->fibres_unsure = true;
		return;
	}
	if (from->n != to->n) {
		conf_error(b->r, v[FIBRE_TO].node->at, WEFT_EINVAL,
			   "%s: %d port%s on one end, %d on the other", e.object, from->n,
			   from->n == 1 ? "" : "s", to->n);
		b->fibres_unsure = true;
		return;
	}
	if (read_filters(&e, &v[FIBRE_CHANNELS], from->n)) {
		join_all(&e, from, to);
		report_faults(&e);
	}
}

void build_fibres(struct model_build *b, const struct conf_value *root)
{
	const struct conf_value *list = &root[FABRIC_FIBRES];

	if (list->node && !list->ok) {
		b->fibres_unsure = true;
	}
	build_each(b, list, add_fibre);
}
