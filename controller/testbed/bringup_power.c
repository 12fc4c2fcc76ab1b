/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up by optical power: what the switches measure, which of their inputs
 * have light, and where light of their outputs arrives.
 *
 * What arrives with no circuit anywhere tells which inputs have a laser. Each
 * output is lit, alone, from one of those: its monitor tells the loss of the
 * path through the switch, and the input that was dark and is lit now is where
 * its fibre leads. A switch without a laser is fed over fibres that were found,
 * through switches before it, or through an unmonitored device whose circuit
 * then stays.
 */
#include <unistd.h>

#include "controller/testbed/bringup_private.h"
#include "controller/testbed/testbed.h"
#include "drivers/core/driver.h"

#define ROBOT_NS 1000000000	/* what moves this long is no switch */

static const char *device_name(const struct bringup *b, int device)
{
	return b->fabric->devices[device].name;
}

/* ---- reading ---- */

/* The place of a port's value among those of its side, NULL: it has none. */
static int32_t *level_of(const struct bringup_levels *l, const struct model_device *m,
			 const struct drv_port *port)
{
	int n = port->is_out ? m->n_out : m->n_in;

	if (port->index < 0 || port->index >= n) {
		return NULL;
	}
	return &(port->is_out ? l->out : l->in)[port->index];
}

static void take_levels(const struct drv_snapshot *snap,
			const struct model_device *m, struct bringup_levels *l)
{
	for (int i = 0; i < m->n_in; i++) {
		l->in[i] = DARK_MDBM;
	}
	for (int i = 0; i < m->n_out; i++) {
		l->out[i] = DARK_MDBM;
	}
	for (int i = 0; snap->caps.power == DRV_POWER_BOTH && i < snap->n_ports; i++) {
		int32_t *level = level_of(l, m, &snap->ports[i]);

		if (level && snap->ports[i].has_power) {
			*level = snap->ports[i].power_mdbm;
		}
	}
	l->settle_us = snap->caps.settle_us;
}

/* Ports that are not to be used: failed, disabled, or worn out. */
static void take_blocked(const struct drv_snapshot *snap, struct bringup *b, int device)
{
	const struct model_device *m = &b->fabric->devices[device];

	for (int i = 0; i < snap->n_ports; i++) {
		const struct drv_port *p = &snap->ports[i];

		if ((!p->enabled || p->failed || p->worn) &&
		    p->index >= 0 &&
		    p->index < (p->is_out ? m->n_out : m->n_in)) {
			bringup_port(b, device, p->is_out, p->index)->blocked = true;
		}
	}
}

static void take_caps(const struct drv_snapshot *snap, struct bringup_device *dev)
{
	dev->unmonitored = snap->caps.power != DRV_POWER_BOTH;
	dev->move_ns = snap->caps.typ_switch_us * 1000;
	dev->robot = dev->unmonitored && dev->move_ns >= ROBOT_NS;
}

/* A circuit that is not ours ends the run, or stays, and so do its ports. */
static int check_circuits(struct bringup_run *r, int device,
			  const struct drv_snapshot *snap, struct err *err)
{
	struct bringup_device *dev = &r->b->devices[device];

	for (int i = 0; i < snap->n_xcs; i++) {
		struct optics_xc xc = snap->xcs[i].xc;

		if (bringup_is_lit(r->b, device, xc)) {
			continue;
		}
		if (r->options.around) {
			dev->in[xc.in].kept = dev->out[xc.out].kept = true;
			continue;
		}
		err_set(err, WEFT_ESTALE, "%s holds in%d -> out%d, which is "
			"not of this bring-up",
			device_name(r->b, device), xc.in + 1, xc.out + 1);
		err_hint(err, "--around leaves it, and its ports, as they are");
		return WEFT_ESTALE;
	}
	return 0;
}

int bringup_read_levels(struct bringup_run *r, int device,
			struct bringup_levels *l, struct err *err)
{
	const struct model_device *m = &r->b->fabric->devices[device];
	struct drv_snapshot snap;
	int rc;

	if (m->kind == MODEL_RING) {
		return 0;	/* not tried: it has no ports */
	}
	rc = testbed_device_snapshot(r->devices[device], &snap, err);
	if (rc) {
		return rc;
	}
	take_caps(&snap, &r->b->devices[device]);
	rc = check_circuits(r, device, &snap, err);
	if (rc == 0) {
		take_levels(&snap, m, l);
	}
	if (rc == 0 && r->b->devices[device].unmonitored) {
		take_blocked(&snap, r->b, device);
	}
	drv_snapshot_fini(&snap);
	return rc;
}

int bringup_read_all(struct bringup_run *r, struct bringup_levels *levels, struct err *err)
{
	int rc = 0;

	for (int d = 0; rc == 0 && d < r->b->fabric->n_devices; d++) {
		if (!r->b->devices[d].unmonitored || !r->b->has_levels) {
			rc = bringup_read_levels(r, d, &levels[d], err);
		}
	}
	return rc;
}

/* ---- where light comes from ---- */

/* The strongest input of each switch that has a laser. */
static void find_lasers(struct bringup *b)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		struct bringup_device *dev = &b->devices[d];

		dev->source = dev->feed_device = -1;
		dev->feed_in = dev->feed_out = -1;
		for (int i = 0; i < b->fabric->devices[d].n_in; i++) {
			if (dev->in[i].mdbm > DARK_MDBM && !bringup_is_kept(b, d, false, i) &&
			    (dev->source < 0 || dev->in[i].mdbm >
					dev->in[dev->source].mdbm)) {
				dev->source = i;
			}
		}
	}
}

/* The switches without a source that a switch's fibres lead to. */
static bool feed_from(struct bringup *b, int device)
{
	const struct bringup_device *dev = &b->devices[device];
	bool any = false;

	for (int i = 0; dev->source >= 0 && i < b->fabric->devices[device].n_out; i++) {
		const struct bringup_far *far = &dev->far[i];
		struct bringup_device *to = far->reach != REACH_INPUT ||
					    bringup_is_kept(b, device, true, i) ? NULL :
					    &b->devices[far->device];

		if (to && !to->unmonitored && to->source < 0) {
			to->source = far->port;
			to->feed_device = device;
			to->feed_out = i;
			any = true;
		}
	}
	return any;
}

/* Sources of switches over fibres that are known, and over unmonitored devices.
 * Each is given once, to a switch that had none, so feeds close no ring. */
static void find_feeds(struct bringup *b)
{
	bool more = true;

	bringup_settle(b);
	while (more) {
		more = false;
		for (int d = 0; d < b->fabric->n_devices; d++) {
			more = feed_from(b, d) || more;
		}
	}
}

static int find_open_switch(const struct bringup *b)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; b->devices[d].source >= 0 && i < b->fabric->devices[d].n_out; i++) {
			if (b->devices[d].far[i].reach == REACH_UNKNOWN &&
			    !bringup_is_kept(b, d, true, i)) {
				return d;
			}
		}
	}
	return -1;
}

int bringup_count_feeds(const struct bringup *b)
{
	int n = 0;

	while (n < b->n_lit && b->devices[b->lit[n].device].unmonitored &&
	       bringup_is_feed(b, &b->lit[n])) {
		n++;
	}
	return n;
}

/* The try that showed an unmonitored feed: it knows whose light it was. */
static const struct bringup_try *find_feeding_try(const struct bringup *b, int device)
{
	const struct bringup_device *dev = &b->devices[device];

	for (size_t k = b->tries.n; k > 0; k--) {
		const struct bringup_try *t = &b->tries.v[k - 1];

		if (t->reach == REACH_INPUT && t->device == dev->feed_device &&
		    t->xc.in == dev->feed_in && t->xc.out == dev->feed_out) {
			return t;
		}
	}
	return NULL;
}

static int light_output(struct bringup_run *r, int device, int out, struct err *err)
{
	return bringup_light(r, device, (struct optics_xc){
			     r->b->devices[device].source, out }, err);
}

int bringup_light_source(struct bringup_run *r, int device, struct err *err)
{
	const struct bringup_device *dev = &r->b->devices[device];
	int from = dev->feed_device, out = dev->feed_out, rc;

	if (from >= 0 && r->b->devices[from].unmonitored) {
		const struct bringup_try *t = find_feeding_try(r->b, device);

		/* It comes first on the record, for it stays longest. */
		rc = bringup_light(r, from, (struct optics_xc){
				   dev->feed_in, out }, err);
		if (rc) {
			return rc;
		}
		from = t ? t->from_device : -1;
		out = t ? t->from_out : -1;
	}
	if (from < 0) {
		return 0;
	}
	rc = bringup_light_source(r, from, err);
	if (rc) {
		return rc;
	}
	return light_output(r, from, out, err);
}

/* ---- what an earlier run left ---- */

/* A robot completes a move on its own. Asked for the same again, its driver waits for it,
 * and sends nothing if the move is over. */
static int finish_move(struct bringup_run *r, struct bringup_circuit *c, struct err *err)
{
	int rc = testbed_device_change(r->devices[c->device], !c->removing, c->xc, err);

	c->made = rc == 0 && !c->removing;
	return rc;
}

static const struct bringup_circuit *last_lit(const struct bringup *b)
{
	return b->n_lit ? &b->lit[b->n_lit - 1] : NULL;
}

/* Nothing needs a robot's circuit that feeds no switch and was tried; without
 * levels none was ever looked at. */
static bool is_superfluous(const struct bringup *b, const struct bringup_circuit *c)
{
	return !b->has_levels || (!bringup_is_feed(b, c) && bringup_was_tried(b, c->device, c->xc));
}

/* After a start: of ours that an earlier run left, those of switches go, those
 * of unmonitored devices are there when this returns, or gone. */
static int recover(struct bringup_run *r, struct err *err)
{
	struct bringup *b = r->b;
	int rc = 0, n = 0;

	while (rc == 0 && b->n_lit && !b->devices[last_lit(b)->device].unmonitored) {
		rc = bringup_unlight(r, b->n_lit - 1, err);
	}
	for (int i = 0; rc == 0 && i < b->n_lit; i++) {
		rc = finish_move(r, &b->lit[i], err);
	}
	if (rc) {
		return rc;
	}
	for (int i = 0; i < b->n_lit; i++) {
		if (b->lit[i].made) {
			b->lit[n++] = b->lit[i];
		}
	}
	b->n_lit = n;
	while (rc == 0 && b->n_lit && is_superfluous(b, last_lit(b))) {
		rc = bringup_unlight(r, b->n_lit - 1, err);
	}
	return rc;
}

/* ---- begin and end ---- */

static int check_monitors(const struct bringup *b, struct err *err)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		if (!b->devices[d].unmonitored) {
			return 0;
		}
	}
	err_set(err, WEFT_EUNSUPPORTED, "%s does not measure power at both "
		"sides, nor does any other device",
		b->fabric->n_devices ? b->fabric->devices[0].name : "nothing");
	err_hint(err, "where one does, its driver's option 'power' says so");
	return WEFT_EUNSUPPORTED;
}

/* Levels without any circuit, and what follows from them. */
static int read_dark_levels(struct bringup_run *r, struct err *err)
{
	struct bringup *b = r->b;
	int rc = bringup_read_all(r, r->base, err);

	if (rc) {
		return rc;
	}
	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct model_device *m = &b->fabric->devices[d];

		for (int i = 0; i < m->n_in; i++) {
			b->devices[d].in[i].mdbm = r->base[d].in[i];
		}
		for (int i = 0; i < m->n_out; i++) {
			b->devices[d].out[i].mdbm = r->base[d].out[i];
		}
	}
	b->has_levels = true;
	find_lasers(b);
	find_feeds(b);
	return 0;
}

/* Robots' circuits of an earlier run are kept, if it is known what was lit
 * without them. */
static int begin(struct bringup_run *r, struct err *err)
{
	struct bringup *b = r->b;
	bool resumed = b->has_levels;
	int rc;

	b->has_levels = false;	/* unmonitored devices are read this once */
	rc = bringup_read_all(r, r->base, err);
	b->has_levels = resumed;
	if (rc || (rc = check_monitors(b, err))) {
		return rc;
	}
	if (resumed) {
		find_lasers(b);
		find_feeds(b);
	}
	rc = recover(r, err);
	return rc || b->n_lit ? rc : read_dark_levels(r, err);
}

/* Where light of tries arrived must be dark again without any. */
static int end(struct bringup_run *r, struct err *err)
{
	const struct bringup *b = r->b;
	int rc = bringup_unlight(r, 0, err);

	if (rc == 0 && b->tries.n) {
		rc = bringup_read_all(r, r->now, err);
	}
	for (size_t k = 0; rc == 0 && k < b->tries.n; k++) {
		const struct bringup_try *t = &b->tries.v[k];

		if (t->reach == REACH_INPUT &&
		    b->devices[t->to_device].in[t->to_port].mdbm <= DARK_MDBM &&
		    r->now[t->to_device].in[t->to_port] > DARK_MDBM) {
			rc = err_set(err, WEFT_ESTALE, "%s.in%d has light of "
				     "its own now; nothing is known of it",
				     device_name(b, t->to_device),
				     t->to_port + 1);
			err_hint(err, "weft bringup --restart starts over");
		}
	}
	return rc;
}

/* ---- outputs of switches ---- */

static bool came_on(int32_t before, int32_t now)
{
	return before <= DARK_MDBM && now > DARK_MDBM;
}

/* An input that came on. Where there are two, the one that the file has is where the fibre
 * leads, and the other one has a part of its light. */
static void add_input(const struct model_trunk *t, int device, int port, int32_t loss_mdb,
		      struct bringup_far *far)
{
	bool is_first = far->reach != REACH_INPUT;

	far->is_split = !is_first;
	if (!is_first && !(t && t->to_device == device && t->to_port == port)) {
		far->split_device = device;
		far->split_port = port;
		return;
	}
	if (!is_first) {
		far->split_device = far->device;
		far->split_port = far->port;
	}
	far->reach = REACH_INPUT;
	far->device = device;
	far->port = port;
	far->fibre_mdb = loss_mdb;
}

/* Where light of an output is known to arrive: a device without monitors may have
 * a part of it all the same. */
static bool is_known_end(const struct bringup *b, int device, int out, int to, int port)
{
	const struct bringup_far *far = device < 0 ? NULL : &b->devices[device].far[out];

	return far && far->reach == REACH_INPUT &&
	       ((far->device == to && far->port == port) ||
		(far->is_split && far->split_device == to && far->split_port == port));
}

void bringup_find_far(const struct bringup_run *r, int device, int out,
		      const struct model_trunk *written, struct bringup_far *far)
{
	const struct model_fabric *f = r->b->fabric;
	int32_t from = device < 0 ? 0 : r->now[device].out[out];

	for (int d = 0; d < f->n_devices; d++) {
		if (r->b->devices[d].unmonitored) {
			continue;
		}
		for (int i = 0; i < f->devices[d].n_in; i++) {
			if (came_on(r->base[d].in[i], r->now[d].in[i]) &&
			    !is_known_end(r->b, device, out, d, i)) {
				add_input(written, d, i, from - r->now[d].in[i], far);
			}
		}
		for (int i = 0; i < f->devices[d].n_out; i++) {
			if (far->reach == REACH_NOTHING && !(d == device && i == out) &&
			    came_on(r->base[d].out[i], r->now[d].out[i])) {
				far->reach = REACH_OUTPUT;
				far->device = d;
				far->port = i;
			}
		}
	}
}

int32_t bringup_level(const struct bringup_levels *v, enum bringup_reach reach,
		      int device, int port)
{
	return (reach == REACH_INPUT ? v[device].in : v[device].out)[port];
}

/* Where the file says that light of an output can be seen. */
static bool is_observed(const struct bringup *b, int device, int out)
{
	const struct model_trunk *t = bringup_trunk_at(b, device, true, out);

	return t && !b->devices[t->to_device].unmonitored;
}

static int observe(struct bringup_run *r, int device, struct optics_xc xc,
		   struct bringup_far *far, struct err *err)
{
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		int rc;

		if (tries) {
			usleep(POWER_PATIENCE_US);
		}
		*far = (struct bringup_far){
			.reach = REACH_NOTHING, .device = -1, .port = -1,
			.in = xc.in, .path_mdb = NO_LIGHT_MDB };
		rc = bringup_read_all(r, r->now, err);
		if (rc) {
			return rc;
		}
		if (r->now[device].out[xc.out] > DARK_MDBM) {
			far->path_mdb = r->now[device].in[xc.in] -
					r->now[device].out[xc.out];
		}
		bringup_find_far(r, device, xc.out,
				 bringup_trunk_at(r->b, device, true, xc.out), far);
		if (far->path_mdb != NO_LIGHT_MDB && (far->reach != REACH_NOTHING ||
						      !is_observed(r->b, device, xc.out))) {
			break;
		}
	}
	return 0;
}

/* Light that stays when the circuit is out is of another laser that was
 * switched on meanwhile; then the output is tried again. */
static int try_output(struct bringup_run *r, int device, int out, struct err *err)
{
	struct optics_xc xc = { r->b->devices[device].source, out };
	int before = r->b->n_lit, rc;
	struct bringup_far far;

	for (int tries = 0; tries < MAX_TRIES; tries++) {
		if ((rc = bringup_light(r, device, xc, err)) ||
		    (rc = observe(r, device, xc, &far, err)) ||
		    (rc = bringup_unlight(r, before, err))) {
			return rc;
		}
		if (far.reach != REACH_NOTHING &&
		    (rc = bringup_read_levels(r, far.device,
					      &r->base[far.device], err))) {
			return rc;
		}
		if (far.reach == REACH_NOTHING || bringup_level(r->base, far.reach, far.device,
								far.port) <= DARK_MDBM) {
			r->b->devices[device].far[out] = far;
			return 0;
		}
	}
	return err_set(err, WEFT_ESTALE, "light comes and goes while "
		       "%s.out%d is tried", device_name(r->b, device),
		       out + 1);
}

static int try_outputs(struct bringup_run *r, int device, struct err *err)
{
	struct bringup_device *dev = &r->b->devices[device];
	int rc;

	if ((rc = bringup_light_source(r, device, err)) ||
	    (rc = bringup_read_all(r, r->base, err))) {
		return rc;
	}
	for (int i = 0; i < r->b->fabric->devices[device].n_out; i++) {
		if (dev->far[i].reach != REACH_UNKNOWN ||
		    bringup_is_kept(r->b, device, true, i)) {
			continue;
		}
		if (dev->out[i].mdbm > DARK_MDBM) {
			/* A laser sends into it: it is not to be lit. */
			dev->far[i] = (struct bringup_far){
				.reach = REACH_NOTHING, .in = -1,
				.device = -1, .port = -1 };
		} else if ((rc = try_output(r, device, i, err))) {
			return rc;
		}
	}
	return bringup_unlight(r, bringup_count_feeds(r->b), err);
}

/* What the last try told may give light to a switch that had none. */
static int try_trunks(struct bringup_run *r, bool *tried, struct err *err)
{
	int d;

	find_feeds(r->b);
	d = find_open_switch(r->b);
	*tried = d >= 0;
	return *tried ? try_outputs(r, d, err) : 0;
}

const struct bringup_observer bringup_power = {
	.begin = begin, .try_trunks = try_trunks, .before_pairs = true,
	.try_pair = bringup_power_try_pair, .end = end,
};
