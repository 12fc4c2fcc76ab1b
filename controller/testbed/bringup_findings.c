/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: the fabric as found against the fabric as written.
 *
 * Fibres between switches are compared in one way for both methods. Fibres to
 * hosts are not: frames tell which host is at a port, power no more than
 * whether there is light. Losses are compared by power alone; by frames a fibre
 * is lossy if frames were lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "lib/base/alloc.h"

const char *bringup_kind_name(enum bringup_kind kind)
{
	static const char *const names[] = { "swapped", "moved", "missing",
					     "reversed", "lossy",
					     "unwritten", "untested",
					     "looped", "split" };

	return names[kind];
}

/* ---- names ---- */

void bringup_put_place(const struct bringup *b, struct bringup_place at,
		       bool out, char text[BRINGUP_NAME_MAX])
{
	text[0] = '\0';
	if (at.device >= 0) {
		snprintf(text, BRINGUP_NAME_MAX, "%.200s.%s%d",
			 b->fabric->devices[at.device].name,
			 out ? "out" : "in", at.port + 1);
	}
}

static void put_in(const struct bringup *b, int device, int port, char text[BRINGUP_NAME_MAX])
{
	bringup_put_place(b, (struct bringup_place){ device, port }, false,
			  text);
}

static void put_out(const struct bringup *b, int device, int port, char text[BRINGUP_NAME_MAX])
{
	bringup_put_place(b, (struct bringup_place){ device, port }, true,
			  text);
}

void bringup_put_host(const struct model_port *h, bool rx, char text[BRINGUP_NAME_MAX])
{
	snprintf(text, BRINGUP_NAME_MAX, "%.250s.%s", h->name, rx ? "rx" : "tx");
}

static void put_path(const struct bringup *b, int device, struct optics_xc xc,
		     char text[BRINGUP_NAME_MAX])
{
	snprintf(text, BRINGUP_NAME_MAX, "%.200s.in%d -> out%d",
		 b->fabric->devices[device].name, xc.in + 1, xc.out + 1);
}

/* ---- what is known ---- */

static bool has_light(int32_t mdbm)
{
	return mdbm > DARK_MDBM;
}

const struct bringup_far *bringup_far_of(const struct bringup *b, const struct model_trunk *t)
{
	return &b->devices[t->from_device].far[t->from_port];
}

bool bringup_leads_to(const struct bringup_far *far, const struct model_trunk *t)
{
	return far->reach == REACH_INPUT && far->device == t->to_device && far->port == t->to_port;
}

bool bringup_is_looped(const struct bringup_far *far, int device)
{
	return far->reach == REACH_INPUT && far->device == device;
}

bool bringup_is_found(const struct bringup *b, int device, int in)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			const struct bringup_far *far = &b->devices[d].far[i];

			if (far->reach == REACH_INPUT && far->device == device && far->port == in) {
				return true;
			}
		}
	}
	return false;
}

int bringup_owner_of(const struct bringup *b, const struct bringup_far *far)
{
	for (int i = 0; i < b->fabric->n_trunks; i++) {
		if (bringup_leads_to(far, &b->fabric->trunks[i])) {
			return i;
		}
	}
	return -1;
}

int32_t bringup_limit_of(const struct model_trunk *t)
{
	return t->loss_mdb + SLACK_MDB;
}

struct bringup_place bringup_written(const struct model_port *h, bool rx)
{
	return rx ? (struct bringup_place){ h->rx_device, h->rx_port } :
		    (struct bringup_place){ h->tx_device, h->tx_port };
}

struct bringup_place bringup_find_host(const struct bringup *b, int port,
				       bool rx, const struct bringup_end **end)
{
	struct bringup_place at = { -1, -1 }, written = bringup_written(&b->fabric->ports[port],
									rx);

	*end = NULL;
	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct model_device *m = &b->fabric->devices[d];
		const struct bringup_port *v = rx ? b->devices[d].out : b->devices[d].in;

		for (int i = 0; i < (rx ? m->n_out : m->n_in); i++) {
			bool is_written = d == written.device && i == written.port;

			if (v[i].end.port == port && !v[i].end.reversed && (!*end || is_written)) {
				at = (struct bringup_place){ d, i };
				*end = &v[i].end;
			}
		}
	}
	return at;
}

bool bringup_host_is_untested(const struct bringup *b, int port, bool rx)
{
	struct bringup_place at = bringup_written(&b->fabric->ports[port], rx);
	const struct bringup_end *end;

	if (at.device < 0 || bringup_find_host(b, port, rx, &end).device >= 0) {
		return false;
	}
	if (bringup_is_kept(b, at.device, rx, at.port)) {
		return true;
	}
	for (int i = 0; i < (rx ? b->fabric->devices[at.device].n_in :
				  b->fabric->devices[at.device].n_out); i++) {
		end = &bringup_port(b, at.device, !rx, i)->end;
		if (end->port >= 0 && !end->reversed) {
			return false;
		}
	}
	return true;
}

/* By frames: they arrive at the port's transmit fibre. */
static bool receives_at_tx(const struct bringup *b, int port)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			const struct bringup_end *e = &b->devices[d].out[i].end;

			if (e->port == port && e->reversed) {
				return true;
			}
		}
	}
	return false;
}

/* By power: its laser sends into an output. */
bool bringup_is_reversed(const struct bringup *b, const struct model_port *h)
{
	return h->rx_device >= 0 && !bringup_is_kept(b, h->rx_device, true, h->rx_port) &&
	       has_light(b->devices[h->rx_device].out[h->rx_port].mdbm);
}

bool bringup_rx_is_gone(const struct bringup *b, const struct model_port *h)
{
	return h->rx_device >= 0 && b->devices[h->rx_device].
		far[h->rx_port].reach == REACH_INPUT;
}

bool bringup_tx_is_dark(const struct bringup *b, const struct model_port *h)
{
	const struct bringup_device *dev = h->tx_device < 0 ? NULL : &b->devices[h->tx_device];

	if (!dev || bringup_is_kept(b, h->tx_device, false, h->tx_port)) {
		return false;
	}
	return dev->unmonitored ? dev->in[h->tx_port].seen == INPUT_DARK :
				  !has_light(dev->in[h->tx_port].mdbm);
}

/* Light could be seen behind an unmonitored device, and none was that told of
 * the input or output. */
static bool could_tell(const struct bringup *b, int device, bool out, int port)
{
	const struct model_device *m = &b->fabric->devices[device];
	int n = out ? m->n_in : m->n_out;

	for (int i = 0; i < n && bringup_is_observable(b, device, out, port); i++) {
		if (bringup_is_observable(b, device, !out, i)) {
			return true;
		}
	}
	return false;
}

static bool is_unseen(const struct bringup *b, int device, int in)
{
	return b->method == BY_POWER && b->devices[device].unmonitored &&
	       b->devices[device].in[in].seen == INPUT_UNSEEN;
}

bool bringup_is_untested(const struct bringup *b, const struct model_trunk *t)
{
	return bringup_far_of(b, t)->reach == REACH_NOTHING &&
	       is_unseen(b, t->to_device, t->to_port);
}

/* Nothing that measures can tell of it, but what was seen all the same. */
static bool trunk_is_unseen(const struct bringup *b, const struct model_trunk *t)
{
	const struct bringup_far *far = bringup_far_of(b, t);

	if (b->method == BY_FRAMES) {
		return false;
	}
	if (b->devices[t->from_device].unmonitored && far->reach == REACH_UNKNOWN) {
		return !could_tell(b, t->from_device, true, t->from_port);
	}
	return far->reach <= REACH_NOTHING &&
	       is_unseen(b, t->to_device, t->to_port) &&
	       !could_tell(b, t->to_device, false, t->to_port);
}

/* ---- what differs ---- */

struct finding_list {
	const struct bringup *b;
	struct bringup_finding *v;	/* room for max_findings() */
	int n;
};

static struct bringup_finding *add(struct finding_list *l, enum bringup_kind kind)
{
	struct bringup_finding *d = &l->v[l->n++];

	*d = (struct bringup_finding){ .kind = kind };
	return d;
}

/* One fibre of a host's port, by frames. other: another port, -1: none. */
static void add_host(struct finding_list *l, enum bringup_kind kind, int port, bool rx, int other)
{
	const struct model_port *h = &l->b->fabric->ports[port];
	struct bringup_finding *d = add(l, kind);
	const struct bringup_end *end;

	if (kind == BRINGUP_REVERSED) {
		snprintf(d->fibre, sizeof(d->fibre), "%.250s", h->name);
	} else {
		bringup_put_host(h, rx, d->fibre);
	}
	if (other >= 0) {
		bringup_put_host(&l->b->fabric->ports[other], rx, d->with);
	}
	bringup_put_place(l->b, bringup_written(h, rx), rx, d->written);
	bringup_put_place(l->b, bringup_find_host(l->b, port, rx, &end), rx, d->found);
	d->sent = end ? end->sent : 0;
	d->received = end ? end->received : 0;
}

static bool is_same(struct bringup_place a, struct bringup_place b)
{
	return a.device == b.device && (a.device < 0 || a.port == b.port);
}

/* The port that is written at a place, or -1. */
static int find_written(const struct bringup *b, struct bringup_place at, bool rx)
{
	for (int i = 0; i < b->fabric->n_ports; i++) {
		if (is_same(bringup_written(&b->fabric->ports[i], rx), at)) {
			return i;
		}
	}
	return -1;
}

/* The fibre between switches that the file has at a place; "" if none. */
static void put_trunk_at(const struct bringup *b, struct bringup_place at, bool rx,
			 char text[BRINGUP_NAME_MAX])
{
	const struct model_trunk *t = bringup_trunk_at(b, at.device, rx, at.port);

	text[0] = '\0';
	if (t) {
		put_out(b, t->from_device, t->from_port, text);
	}
}

/* A splitter in a host's fibre, by frames: they go in at a second input too, or
 * a second host receives them. */
static void compare_host_split(struct finding_list *l, int port, bool rx,
			       struct bringup_place found, const struct bringup_end *end)
{
	const struct model_fabric *f = l->b->fabric;
	struct bringup_finding *d;

	if (rx && end->is_split) {
		d = add(l, BRINGUP_SPLIT);
		put_out(l->b, found.device, found.port, d->fibre);
		bringup_put_host(&f->ports[port], true, d->with);
		bringup_put_host(&f->ports[end->split_port], true, d->found);
	}
	for (int i = 0; !rx && i < f->n_devices; i++) {
		for (int in = 0; in < f->devices[i].n_in; in++) {
			if (l->b->devices[i].in[in].end.port != port ||
			    (i == found.device && in == found.port)) {
				continue;
			}
			d = add(l, BRINGUP_SPLIT);
			bringup_put_host(&f->ports[port], false, d->fibre);
			put_in(l->b, found.device, found.port, d->with);
			put_in(l->b, i, in, d->found);
		}
	}
}

static void compare_end(struct finding_list *l, int port, bool rx, bool reversed)
{
	const struct model_port *h = &l->b->fabric->ports[port];
	const struct bringup_end *end, *ignored;
	struct bringup_place written = bringup_written(h, rx);
	struct bringup_place found = bringup_find_host(l->b, port, rx, &end);
	int other;

	if (end && end->received < end->sent) {
		add_host(l, BRINGUP_LOSSY, port, rx, -1);
	}
	if (end) {
		compare_host_split(l, port, rx, found, end);
	}
	if (is_same(written, found) ||
	    (found.device < 0 && bringup_is_kept(l->b, written.device, rx, written.port))) {
		return;
	}
	if (found.device < 0) {
		/* A reversed pair is reported once, for its transmit fibre. */
		if (!reversed) {
			add_host(l, bringup_host_is_untested(l->b, port, rx) ?
				    BRINGUP_UNTESTED : BRINGUP_MISSING, port, rx, -1);
		}
		return;
	}
	other = find_written(l->b, found, rx);
	if (written.device < 0) {
		add_host(l, BRINGUP_UNWRITTEN, port, rx, -1);
	} else if (other < 0 ||
		   !is_same(bringup_find_host(l->b, other, rx, &ignored),
			    written)) {
		add_host(l, BRINGUP_MOVED, port, rx, other);
		if (other < 0) {
			put_trunk_at(l->b, found, rx, l->v[l->n - 1].with);
		}
	} else if (port < other) {
		add_host(l, BRINGUP_SWAPPED, port, rx, other);
	}
}

static void compare_host_frames(struct finding_list *l, int port)
{
	bool reversed = receives_at_tx(l->b, port);

	if (reversed) {
		add_host(l, BRINGUP_REVERSED, port, false, -1);
	}
	compare_end(l, port, false, reversed);
	compare_end(l, port, true, reversed);
}

static void compare_host_power(struct finding_list *l, const struct model_port *h)
{
	const struct bringup *b = l->b;
	bool dark = bringup_tx_is_dark(b, h);
	struct bringup_finding *d;

	if (bringup_is_reversed(b, h)) {
		d = add(l, BRINGUP_REVERSED);
		snprintf(d->fibre, sizeof(d->fibre), "%.250s", h->name);
		put_out(b, h->rx_device, h->rx_port, d->found);
	} else if (dark) {
		d = add(l, BRINGUP_MISSING);
		bringup_put_host(h, false, d->fibre);
	}
	if (dark) {
		put_in(b, h->tx_device, h->tx_port, d->written);
	}
	if (h->tx_device >= 0 && is_unseen(b, h->tx_device, h->tx_port) &&
	    could_tell(b, h->tx_device, false, h->tx_port)) {
		d = add(l, BRINGUP_UNTESTED);
		bringup_put_host(h, false, d->fibre);
		put_in(b, h->tx_device, h->tx_port, d->written);
	}
	if (bringup_rx_is_gone(b, h)) {
		d = add(l, BRINGUP_MISSING);
		bringup_put_host(h, true, d->fibre);
		put_out(b, h->rx_device, h->rx_port, d->written);
	}
}

static enum bringup_kind kind_of(const struct bringup *b, const struct bringup_far *far,
				 const struct model_trunk *t, int owner)
{
	switch (far->reach) {
	case REACH_UNKNOWN: return BRINGUP_UNTESTED;
	case REACH_NOTHING: return BRINGUP_MISSING;
	case REACH_OUTPUT: return BRINGUP_REVERSED;
	case REACH_INPUT: break;
	}
	if (owner >= 0 && bringup_leads_to(bringup_far_of(b, &b->fabric->trunks[owner]), t)) {
		return BRINGUP_SWAPPED;
	}
	return bringup_is_looped(far, t->from_device) ? BRINGUP_LOOPED : BRINGUP_MOVED;
}

static struct bringup_finding *add_trunk(struct finding_list *l, enum bringup_kind kind,
					 const struct model_trunk *t)
{
	const struct bringup_far *far = bringup_far_of(l->b, t);
	struct bringup_finding *d = add(l, kind);

	put_out(l->b, t->from_device, t->from_port, d->fibre);
	put_in(l->b, t->to_device, t->to_port, d->written);
	if (far->reach >= REACH_INPUT) {
		bringup_put_place(l->b, (struct bringup_place){
				  far->device, far->port },
				  far->reach == REACH_OUTPUT, d->found);
	}
	d->sent = far->sent;
	d->received = far->received;
	return d;
}

/* Light of an output arrives at a second input as well. */
static void compare_split(struct finding_list *l, int device, int port)
{
	const struct bringup_far *far = &l->b->devices[device].far[port];
	const struct model_trunk *t = bringup_trunk_at(l->b, device, true, port);
	struct bringup_finding *d;

	if (far->reach != REACH_INPUT || !far->is_split) {
		return;
	}
	d = add(l, BRINGUP_SPLIT);
	put_out(l->b, device, port, d->fibre);
	if (t) {
		put_in(l->b, t->to_device, t->to_port, d->written);
	}
	put_in(l->b, far->device, far->port, d->with);
	put_in(l->b, far->split_device, far->split_port, d->found);
}

static void compare_trunk(struct finding_list *l, int index)
{
	const struct model_fabric *f = l->b->fabric;
	const struct model_trunk *t = &f->trunks[index];
	const struct bringup_far *far = bringup_far_of(l->b, t);
	int owner = bringup_owner_of(l->b, far);
	enum bringup_kind kind = kind_of(l->b, far, t, owner);
	struct bringup_finding *d;

	if (trunk_is_unseen(l->b, t) ||
	    (far->reach == REACH_UNKNOWN && bringup_is_kept(l->b, t->from_device, true,
							    t->from_port))) {
		return;
	}
	if (bringup_is_untested(l->b, t)) {
		add_trunk(l, BRINGUP_UNTESTED, t);
		return;
	}
	if (far->reach == REACH_INPUT && (far->fibre_mdb > bringup_limit_of(t) ||
					  far->received < far->sent)) {
		d = add_trunk(l, BRINGUP_LOSSY, t);
		d->loss_mdb = far->fibre_mdb;
		d->limit_mdb = bringup_limit_of(t);
	}
	/* An exchange is reported once. */
	if (bringup_leads_to(far, t) || (kind == BRINGUP_SWAPPED && owner < index)) {
		return;
	}
	d = add_trunk(l, kind, t);
	if (owner >= 0) {
		put_out(l->b, f->trunks[owner].from_device, f->trunks[owner].from_port, d->with);
	} else if (far->reach == REACH_INPUT && f->devices[far->device].in_port[far->port] >= 0) {
		bringup_put_host(&f->ports[f->devices[far->device].in_port[far->port]], false,
				 d->with);
	}
}

/* Where an output leads that the file has no fibre to another device at. */
static void compare_far(struct finding_list *l, int device, int port)
{
	const struct bringup_far *far = &l->b->devices[device].far[port];
	struct bringup_finding *d;

	if (far->reach == REACH_INPUT &&
	    l->b->fabric->devices[device].out_port[port] != MODEL_AT_TRUNK) {
		d = add(l, bringup_is_looped(far, device) ? BRINGUP_LOOPED : BRINGUP_UNWRITTEN);
		put_out(l->b, device, port, d->fibre);
		put_in(l->b, far->device, far->port, d->found);
	}
	compare_split(l, device, port);
}

/* By power: light that comes in at an output, and the path to it. */
static void compare_output(struct finding_list *l, int device, int port)
{
	const struct bringup_device *dev = &l->b->devices[device];
	const struct model_device *m = &l->b->fabric->devices[device];
	const struct bringup_far *far = &dev->far[port];
	bool dark = far->path_mdb == NO_LIGHT_MDB;
	struct bringup_finding *d;

	if (has_light(dev->out[port].mdbm) && m->out_port[port] < 0 &&
	    !bringup_is_kept(l->b, device, true, port)) {
		d = add(l, BRINGUP_UNWRITTEN);
		put_out(l->b, device, port, d->found);
	}
	if (dev->unmonitored || far->reach == REACH_UNKNOWN || far->in < 0 ||
	    (!dark && (!m->loss_mdb ||
		       far->path_mdb <= m->loss_mdb + SLACK_MDB))) {
		return;
	}
	d = add(l, dark ? BRINGUP_MISSING : BRINGUP_LOSSY);
	put_path(l->b, device, (struct optics_xc){ far->in, port }, d->fibre);
	d->loss_mdb = far->path_mdb;
	d->limit_mdb = m->loss_mdb + SLACK_MDB;
}

static void compare_device(struct finding_list *l, int device)
{
	const struct model_device *m = &l->b->fabric->devices[device];
	const struct bringup_device *dev = &l->b->devices[device];

	bool power = l->b->method == BY_POWER;

	for (int i = 0; power && i < m->n_in; i++) {
		if (m->in_port[i] < 0 && !dev->unmonitored &&
		    !bringup_is_kept(l->b, device, false, i) && has_light(dev->in[i].mdbm)) {
			put_in(l->b, device, i, add(l, BRINGUP_UNWRITTEN)->found);
		}
	}
	for (int i = 0; i < m->n_out; i++) {
		compare_far(l, device, i);
		if (power) {
			compare_output(l, device, i);
		}
	}
}

/* The fibre into an unmonitored device's input, as the file has it. */
static void put_feeder(const struct bringup *b, const struct bringup_try *t,
		       char text[BRINGUP_NAME_MAX])
{
	int host = b->fabric->devices[t->device].in_port[t->xc.in];

	if (t->from_device >= 0) {
		put_out(b, t->from_device, t->from_out, text);
	} else if (host >= 0) {
		bringup_put_host(&b->fabric->ports[host], false, text);
	} else {
		put_in(b, t->device, t->xc.in, text);
	}
}

/* An earlier try was reported for the same fibre. */
static bool is_reported(const struct bringup *b, size_t k, enum bringup_fault fault)
{
	const struct bringup_try *t = &b->tries.v[k];

	for (size_t i = 0; i < k; i++) {
		const struct bringup_try *e = &b->tries.v[i];

		if (e->device == t->device && fault != FAULT_PATH &&
		    (fault == FAULT_INPUT ? e->xc.in == t->xc.in :
					    e->xc.out == t->xc.out) &&
		    bringup_judge(b, e) == fault) {
			return true;
		}
	}
	return false;
}

/* What loses too much on a path through an unmonitored device. */
static void compare_try(struct finding_list *l, size_t k)
{
	const struct bringup_try *t = &l->b->tries.v[k];
	enum bringup_fault fault = bringup_judge(l->b, t);
	struct bringup_finding *d;

	if (fault == FAULT_NONE || is_reported(l->b, k, fault)) {
		return;
	}
	d = add(l, BRINGUP_LOSSY);
	d->loss_mdb = t->loss_mdb;
	d->limit_mdb = t->limit_mdb;
	if (fault == FAULT_INPUT) {
		put_feeder(l->b, t, d->fibre);
		put_in(l->b, t->device, t->xc.in, d->found);
	} else if (fault == FAULT_OUTPUT) {
		put_out(l->b, t->device, t->xc.out, d->fibre);
		put_in(l->b, t->to_device, t->to_port, d->found);
	} else {
		put_path(l->b, t->device, t->xc, d->fibre);
	}
}

static size_t max_findings(const struct bringup *b)
{
	const struct model_fabric *f = b->fabric;
	size_t n = 5 * (size_t)f->n_ports + 2 * (size_t)f->n_trunks +
		   b->tries.n + 1;

	for (int d = 0; d < f->n_devices; d++) {
		n += 2 * (size_t)f->devices[d].n_in +
		     4 * (size_t)f->devices[d].n_out;
	}
	return n;
}

void bringup_findings(const struct bringup *b, struct bringup_finding **v, int *n)
{
	const struct model_fabric *f = b->fabric;
	struct finding_list l = { .b = b, .v = x_new(max_findings(b), sizeof(*l.v)) };
	bool power = b->method == BY_POWER;

	for (int i = 0; i < f->n_ports; i++) {
		if (power) {
			compare_host_power(&l, &f->ports[i]);
		} else {
			compare_host_frames(&l, i);
		}
	}
	for (int i = 0; i < f->n_trunks; i++) {
		compare_trunk(&l, i);
	}
	for (int d = 0; d < f->n_devices; d++) {
		compare_device(&l, d);
	}
	for (size_t k = 0; power && k < b->tries.n; k++) {
		compare_try(&l, k);
	}
	bringup_order(l.v, l.n);
	*v = l.v;
	*n = l.n;
}

/* ---- what nothing observes ---- */

static void add_unseen_host(const struct bringup *b, const struct model_port *h,
			    char (*v)[BRINGUP_NAME_MAX], int *n)
{
	if (h->tx_device >= 0 && is_unseen(b, h->tx_device, h->tx_port) &&
	    !could_tell(b, h->tx_device, false, h->tx_port)) {
		bringup_put_host(h, false, v[(*n)++]);
	}
	if (h->rx_device >= 0 && b->devices[h->rx_device].unmonitored) {
		bringup_put_host(h, true, v[(*n)++]);
	}
}

void bringup_unseen(const struct bringup *b, char (**v)[BRINGUP_NAME_MAX], int *n)
{
	const struct model_fabric *f = b->fabric;

	*n = 0;
	*v = x_new(2 * (size_t)f->n_ports + (size_t)f->n_trunks + (size_t)f->n_devices + 1,
		   sizeof(**v));
	for (int i = 0; b->method == BY_POWER && i < f->n_ports; i++) {
		add_unseen_host(b, &f->ports[i], *v, n);
	}
	for (int i = 0; i < f->n_trunks; i++) {
		if (trunk_is_unseen(b, &f->trunks[i])) {
			put_out(b, f->trunks[i].from_device, f->trunks[i].from_port, (*v)[(*n)++]);
		}
	}
	for (int d = 0; d < f->n_devices; d++) {
		if (f->devices[d].kind == MODEL_RING) {
			snprintf((*v)[(*n)++], sizeof(**v), "%.250s", f->devices[d].name);
		}
	}
}
