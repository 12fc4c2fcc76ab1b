/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a bring-up, and its course: what is known decides what is tried
 * next, until nothing is left that can be. The methods differ in what they
 * observe (struct bringup_observer). By power, fibres between switches come
 * first, for they cost no moves of robots and tell where light for the pairs
 * can be had; by frames they come last, for they need a known host at either
 * end.
 */
#include "controller/testbed/bringup.h"

#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "controller/testbed/testbed.h"
#include "lib/base/alloc.h"

/* ---- the record ---- */

/* What bring-up by power cannot tell apart: any-to-any switches and filtered
 * fibres. */
static int check_power_fabric(const struct model_fabric *f, struct err *err)
{
	for (int d = 0; d < f->n_devices; d++) {
		const struct model_device *m = &f->devices[d];

		if (m->any_to_any) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s: bring-up with power does "
				       "not support any-to-any switches", m->name);
		}
	}
	for (int i = 0; i < f->n_trunks; i++) {
		if (f->trunks[i].channel >= 0) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s: bring-up "
				       "with power does not know the channels "
				       "of fibres", f->trunks[i].from_name);
		}
	}
	return 0;
}

/* Devices that are network namespaces have no monitors, but hosts whose frames
 * can be seen. */
static enum bringup_method choose_method(const struct model_fabric *f)
{
	for (int d = 0; d < f->n_devices; d++) {
		if (strncmp(f->devices[d].driver, "linux-", 6) == 0) {
			return BY_FRAMES;
		}
	}
	return BY_POWER;
}

/* Nothing is known of the device yet. */
static void device_init(struct bringup_device *dev, const struct model_device *m)
{
	dev->in = x_new((size_t)m->n_in + 1, sizeof(*dev->in));
	dev->out = x_new((size_t)m->n_out + 1, sizeof(*dev->out));
	dev->far = x_new((size_t)m->n_out + 1, sizeof(*dev->far));
	dev->source = dev->feed_device = dev->feed_in = dev->feed_out = -1;
	for (int i = 0; i < m->n_in; i++) {
		dev->in[i].trunk = -1;
	}
	for (int i = 0; i < m->n_out; i++) {
		dev->out[i].trunk = -1;
		dev->far[i] = (struct bringup_far){
			.device = -1, .port = -1, .in = -1,
			.fibre_mdb = UNKNOWN_LOSS_MDB };
	}
}

/* One a device on the path to a switch, and of each that feeds one. */
int bringup_max_lit(const struct model_fabric *f)
{
	return 4 * f->n_devices + 4;
}

/* The empty record: devices, and which port has which written trunk. */
static void record_init(struct bringup *b)
{
	const struct model_fabric *f = b->fabric;

	b->devices = x_new((size_t)f->n_devices + 1, sizeof(*b->devices));
	b->lit = x_new((size_t)bringup_max_lit(f), sizeof(*b->lit));
	for (int d = 0; d < f->n_devices; d++) {
		device_init(&b->devices[d], &f->devices[d]);
		b->devices[d].unmonitored = b->method == BY_FRAMES ||
					    f->devices[d].kind == MODEL_RING;
	}
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		b->devices[t->from_device].out[t->from_port].trunk = i;
		b->devices[t->to_device].in[t->to_port].trunk = i;
	}
}

int bringup_new(const struct model_fabric *f, struct bringup **out, struct err *err)
{
	enum bringup_method method = choose_method(f);
	struct bringup *b;
	int rc = method == BY_POWER ? check_power_fabric(f, err) : testbed_check(f, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	b = x_new(1, sizeof(*b));
	b->fabric = f;
	b->method = method;
	record_init(b);
	bringup_settle(b);
	*out = b;
	return 0;
}

void bringup_free(struct bringup *b)
{
	if (!b) {
		return;
	}
	for (int d = 0; b->devices && d < b->fabric->n_devices; d++) {
		free(b->devices[d].in);
		free(b->devices[d].out);
		free(b->devices[d].far);
	}
	vec_fini(&b->tries);
	free(b->devices);
	free(b->lit);
	free(b);
}

int64_t bringup_moves(const struct bringup *b)
{
	return b->moves;
}

struct bringup_port *bringup_port(const struct bringup *b, int device, bool out, int port)
{
	struct bringup_device *dev = &b->devices[device];

	return &(out ? dev->out : dev->in)[port];
}

const struct model_trunk *bringup_trunk_at(const struct bringup *b, int device, bool out, int port)
{
	int t = bringup_port(b, device, out, port)->trunk;

	return t < 0 ? NULL : &b->fabric->trunks[t];
}

bool bringup_is_kept(const struct bringup *b, int device, bool out, int port)
{
	const struct model_trunk *t = device < 0 ? NULL : bringup_trunk_at(b, device, out, port);

	return device >= 0 && (bringup_port(b, device, out, port)->kept ||
			       (t && (b->devices[t->from_device].out[t->from_port].kept ||
				      b->devices[t->to_device].in[t->to_port].kept)));
}

/* ---- the course ---- */

/* The next pair of an unmonitored device, if there is one. What it tells is
 * settled at once: the circuit may be what another switch is fed by. */
static int try_next_pair(struct bringup_run *r, bool *tried, struct err *err)
{
	struct bringup_try t = {
		.from_device = -1, .from_out = -1, .reach = REACH_NOTHING,
		.to_device = -1, .to_port = -1,
		.loss_mdb = UNKNOWN_LOSS_MDB, .limit_mdb = UNKNOWN_LOSS_MDB };

	*tried = bringup_next_pair(r->b, &t.device, &t.xc);
	return *tried ? r->observer->try_pair(r, &t, err) : 0;
}

/* Observes until nothing is left that could tell more. A pair may give a switch
 * its light, so that trunks are tried again after each; a fibre between switches
 * that is not there leaves its ports to pairs. */
static int try_all(struct bringup_run *r, struct err *err)
{
	const struct bringup_observer *o = r->observer;
	bool more = true;
	int rc = o->begin(r, err);

	while (rc == 0 && more) {
		more = false;
		if (o->before_pairs) {
			rc = o->try_trunks(r, &more, err);
		}
		if (rc == 0 && !more) {
			rc = try_next_pair(r, &more, err);
		}
		if (rc == 0 && !more && !o->before_pairs) {
			rc = o->try_trunks(r, &more, err);
		}
	}
	return rc || !o->end ? rc : o->end(r, err);
}

static void levels_free(struct bringup_levels *v, int n)
{
	for (int d = 0; v && d < n; d++) {
		free(v[d].in);
	}
	free(v);
}

/* All of a fabric. */
static struct bringup_levels *levels_new(const struct model_fabric *f)
{
	struct bringup_levels *v = x_new((size_t)f->n_devices + 1, sizeof(*v));

	for (int d = 0; d < f->n_devices; d++) {
		size_t n_in = (size_t)f->devices[d].n_in;

		v[d].in = x_new(n_in + (size_t)f->devices[d].n_out + 1, sizeof(*v[d].in));
		v[d].out = v[d].in + n_in;
	}
	return v;
}

/* Rings have no circuits to try. */
static int run_open(struct bringup_run *r, struct err *err)
{
	const struct model_fabric *f = r->b->fabric;
	int rc = 0;

	r->base = levels_new(f);
	r->now = levels_new(f);
	r->devices = x_new((size_t)f->n_devices + 1, sizeof(*r->devices));
	if (r->b->method == BY_FRAMES && ((rc = testbed_open(f, &r->testbed, err)) ||
					  (rc = testbed_prober_new(r->testbed, &r->prober, err)))) {
		return rc;
	}
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		if (f->devices[d].kind != MODEL_RING) {
			rc = testbed_device_new(f, d, &r->devices[d], err);
		}
	}
	return rc;
}

static void run_close(struct bringup_run *r)
{
	int n = r->b->fabric->n_devices;

	for (int d = 0; r->devices && d < n; d++) {
		testbed_device_free(r->devices[d]);
	}
	free(r->devices);
	testbed_prober_free(r->prober);
	free(r->dark);
	testbed_close(r->testbed);
	levels_free(r->base, n);
	levels_free(r->now, n);
}

/* After an error robots' circuits stay for the next run. */
static int count_to_leave(const struct bringup *b, int rc)
{
	int n = 0;

	while (rc && b->method == BY_POWER && n < b->n_lit &&
	       b->devices[b->lit[n].device].unmonitored) {
		n++;
	}
	return n;
}

int bringup_run(struct bringup *b, const struct bringup_options *options,
		bringup_step_fn fn, void *arg, struct err *err)
{
	struct bringup_run r = {
		.b = b, .options = *options, .fn = fn, .arg = arg,
		.observer = b->method == BY_FRAMES ? &bringup_frames :
						     &bringup_power };
	struct err own = { 0 };
	int out, rc = run_open(&r, err);

	if (rc == 0) {
		rc = try_all(&r, err);
		/* Another user's circuit stops the run; ours go all the same,
		 * and the first error is the one that is reported. */
		out = bringup_unlight(&r, count_to_leave(b, rc), rc ? &own : err);
		if (rc == 0) {
			rc = out;
		}
	}
	run_close(&r);
	return rc;
}
