/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up by optical power: one circuit of a device that measures nothing.
 *
 * The circuit joins two fibres. Where a laser, or an output of a switch before
 * the device, sends into the first, something that was dark comes on at a
 * monitor behind the second. Which output it was is found by lighting the
 * likely one, then all others, one by one: that costs no moves of robots.
 */
#include <unistd.h>

#include "controller/testbed/bringup_private.h"

/* ---- what is seen ---- */

/* A switch is fed over its source, and where a splitter is in the way over
 * another input too, or it lights one of another switch. */
static void set_fed(struct bringup_run *r, int device)
{
	const struct bringup_device *dev = &r->b->devices[device];
	const struct bringup_far *far = &r->b->devices[dev->feed_device].far[dev->feed_out];

	r->base[device].in[dev->source] = 0;
	if (far->is_split) {
		r->base[far->device].in[far->port] = 0;
		r->base[far->split_device].in[far->split_port] = 0;
	}
}

/* What is lit without the circuit that is to be tried, where it is there
 * already: what was without any, and the switches that are fed. */
static void set_known_base(struct bringup_run *r)
{
	const struct bringup *b = r->b;

	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct model_device *m = &b->fabric->devices[d];
		const struct bringup_device *dev = &b->devices[d];

		for (int i = 0; i < m->n_in; i++) {
			r->base[d].in[i] = dev->in[i].mdbm;
		}
		for (int i = 0; i < m->n_out; i++) {
			r->base[d].out[i] = dev->out[i].mdbm;
		}
		if (dev->feed_device >= 0 && bringup_is_lit(b, dev->feed_device,
				(struct optics_xc){ dev->feed_in,
						   dev->feed_out })) {
			set_fed(r, d);
		}
	}
}

/* Looks until something came on beside the output that sends (device -1: a
 * laser does), or often enough. */
static int observe(struct bringup_run *r, struct bringup_try *t, int device,
		   int out, int max_tries, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < max_tries && t->reach == REACH_NOTHING; k++) {
		struct bringup_far far = { .reach = REACH_NOTHING };

		if (k) {
			usleep(POWER_PATIENCE_US);
		}
		rc = bringup_read_all(r, r->now, err);
		if (rc == 0) {
			bringup_find_far(r, device, out,
					 bringup_trunk_at(r->b, t->device, true, t->xc.out), &far);
			t->reach = far.reach;
			t->to_device = far.device;
			t->to_port = far.port;
			t->is_split = far.is_split;
			t->split_device = far.split_device;
			t->split_port = far.split_port;
		}
	}
	return rc;
}

/* Of the fibre that the file has behind an output. */
static int32_t written_loss(const struct bringup *b, int device, int out)
{
	const struct model_trunk *t = bringup_trunk_at(b, device, true, out);

	return t ? t->loss_mdb : 0;
}

/* From the laser, if the file says what that sends, or from the output of a
 * switch. What the fibre out of the device may lose is that of where light
 * arrived. */
static void set_loss(const struct bringup_run *r, struct bringup_try *t)
{
	const struct bringup *b = r->b;
	const struct model_fabric *f = b->fabric;
	const struct model_device *m = &f->devices[t->device];
	int host = m->in_port[t->xc.in];
	int32_t limit = m->loss_mdb + SLACK_MDB +
			written_loss(b, t->device, t->xc.out);
	int32_t sent;

	if (t->from_device >= 0) {
		sent = r->now[t->from_device].out[t->from_out];
		limit += written_loss(b, t->from_device, t->from_out);
	} else if (host >= 0 && f->hosts[f->ports[host].host].has_launch) {
		sent = f->hosts[f->ports[host].host].launch_mdbm;
		limit += f->ports[host].tx_loss_mdb;
	} else {
		return;
	}
	t->loss_mdb = sent - bringup_level(r->now, t->reach, t->to_device, t->to_port);
	t->limit_mdb = limit;
}

/* ---- whose light it is ---- */

static int observe_from(struct bringup_run *r, struct bringup_try *t,
			int device, int out, int max_tries, struct err *err)
{
	int before = r->b->n_lit, rc;

	if ((rc = bringup_light(r, device, (struct optics_xc){
				r->b->devices[device].source, out }, err)) ||
	    (rc = observe(r, t, device, out, max_tries, err))) {
		return rc;
	}
	if (t->reach != REACH_NOTHING) {
		t->from_device = device;
		t->from_out = out;
		set_loss(r, t);
	}
	return bringup_unlight(r, before, err);
}

/* Outputs whose light went nowhere that was seen, and what was seen to feed
 * this very input. */
static bool may_feed(const struct bringup *b, const struct bringup_try *t, int device, int out)
{
	const struct bringup_far *far = &b->devices[device].far[out];
	bool known = far->reach == REACH_INPUT && far->device == t->device && far->port == t->xc.in;

	return known || (far->reach == REACH_NOTHING && far->in >= 0 &&
			 far->path_mdb != NO_LIGHT_MDB);
}

/* The source is lit with no more moves of robots. */
static bool can_light(const struct bringup *b, int device)
{
	const struct bringup_device *dev = &b->devices[device];

	return !dev->unmonitored && dev->source >= 0 &&
	       (dev->feed_device < 0 || !b->devices[dev->feed_device].unmonitored ||
		bringup_is_lit(b, dev->feed_device, (struct optics_xc){
			     dev->feed_in, dev->feed_out }));
}

/* Light of one switch's outputs that may feed the input, or of one of them, which
 * may do so behind a splitter too (-1: all). */
static int observe_switch(struct bringup_run *r, struct bringup_try *t,
			  int device, int output, struct err *err)
{
	int n = r->b->fabric->devices[device].n_out, before = r->b->n_lit, rc;

	if ((rc = bringup_light_source(r, device, err)) ||
	    (rc = bringup_read_all(r, r->base, err))) {
		return rc;
	}
	for (int i = 0; rc == 0 && t->reach == REACH_NOTHING && i < n; i++) {
		if (output < 0 ? may_feed(r->b, t, device, i) : i == output) {
			rc = observe_from(r, t, device, i, output < 0 ? 1 : MAX_TRIES, err);
		}
	}
	if (rc) {
		return rc;
	}
	return bringup_unlight(r, before, err);
}

/* The output that fed it before, or that the file says; -1: a laser. */
static void find_likely_feeder(const struct bringup *b, const struct bringup_try *t, int *device,
			       int *out)
{
	const struct model_trunk *trunk = bringup_trunk_at(b, t->device, false, t->xc.in);

	*device = trunk ? trunk->from_device : -1;
	*out = trunk ? trunk->from_port : -1;
	for (size_t k = 0; k < b->tries.n; k++) {
		const struct bringup_try *e = &b->tries.v[k];

		if (e->device == t->device && e->xc.in == t->xc.in && e->reach != REACH_NOTHING) {
			*device = e->from_device;
			*out = e->from_out;
		}
	}
}

/* The likely one, then every other. */
static int observe_switches(struct bringup_run *r, struct bringup_try *t, struct err *err)
{
	const struct bringup *b = r->b;
	int device, out, rc = 0;

	find_likely_feeder(b, t, &device, &out);
	if (device >= 0 && can_light(b, device)) {
		rc = observe_switch(r, t, device, out, err);
	}
	for (int d = 0; rc == 0 && t->reach == REACH_NOTHING && d < b->fabric->n_devices; d++) {
		if (can_light(b, d)) {
			rc = observe_switch(r, t, d, -1, err);
		}
	}
	return rc;
}

/* ---- one pair ---- */

/* Circuits of ours that hold one of its ports feed switches. */
static int clear_ports(struct bringup_run *r, int device, struct optics_xc xc, struct err *err)
{
	const struct bringup *b = r->b;

	for (int i = 0; i < b->n_lit; i++) {
		const struct bringup_circuit *c = &b->lit[i];

		if (c->device == device && (c->xc.in == xc.in) != (c->xc.out == xc.out)) {
			return bringup_unlight(r, i, err);
		}
	}
	return 0;
}

/* The switch that likely feeds the input is to have light. */
static int light_feeder(struct bringup_run *r, const struct bringup_try *t, struct err *err)
{
	int device, out, rc;

	find_likely_feeder(r->b, t, &device, &out);
	rc = device < 0 ? 0 : bringup_light_source(r, device, err);
	if (rc) {
		return rc;
	}
	return bringup_unlight(r, bringup_count_feeds(r->b), err);
}

static int observe_pair(struct bringup_run *r, struct bringup_try *t, struct err *err)
{
	int rc = 0;

	if (bringup_is_lit(r->b, t->device, t->xc)) {
		set_known_base(r);
	} else {
		rc = bringup_read_all(r, r->base, err);
	}
	if (rc || (rc = bringup_light(r, t->device, t->xc, err)) ||
	    (rc = observe(r, t, -1, -1, MAX_TRIES, err))) {
		return rc;
	}
	if (t->reach == REACH_NOTHING) {
		return observe_switches(r, t, err);
	}
	set_loss(r, t);
	return 0;
}

/* Light that stays when the circuit is out came from elsewhere: then the try
 * tells nothing. */
static int take_out(struct bringup_run *r, const struct bringup_try *t, struct err *err)
{
	struct bringup *b = r->b;
	int rc = bringup_unlight(r, bringup_count_feeds(b), err);

	if (rc || t->reach == REACH_NOTHING) {
		return rc;
	}
	rc = bringup_read_levels(r, t->to_device, &r->now[t->to_device], err);
	if (rc || bringup_level(r->now, t->reach, t->to_device, t->to_port) <= DARK_MDBM) {
		return rc;
	}
	b->tries.n--;
	if (t->from_device >= 0) {
		b->devices[t->from_device].far[t->from_out].reach = REACH_NOTHING;
	}
	return err_set(err, WEFT_ESTALE, "%s.%s%d has light of its own now, "
		       "while %s.in%d -> out%d was tried",
		       b->fabric->devices[t->to_device].name,
		       t->reach == REACH_INPUT ? "in" : "out", t->to_port + 1,
		       b->fabric->devices[t->device].name, t->xc.in + 1,
		       t->xc.out + 1);
}

int bringup_power_try_pair(struct bringup_run *r, struct bringup_try *t, struct err *err)
{
	bool stays;
	int rc = clear_ports(r, t->device, t->xc, err);

	if (rc == 0 && !bringup_is_lit(r->b, t->device, t->xc)) {
		rc = light_feeder(r, t, err);
	}
	if (rc || (rc = observe_pair(r, t, err))) {
		return rc;
	}
	/* A switch that it gives light to keeps it. */
	stays = t->reach == REACH_INPUT && r->b->devices[t->to_device].source < 0;
	vec_push(&r->b->tries, *t);
	bringup_settle(r->b);
	return stays ? 0 : take_out(r, t, err);
}
