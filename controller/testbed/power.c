/* Lighting one output after the other; see power.h. */
#include "controller/testbed/power.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/driver.h"

#define PATIENCE_US 200000	/* before a fibre is called dark */
#define TRIES 3

/* What one switch measures. */
struct level {
	int32_t *in, *out;
	int64_t settle_us;
};

struct walk {
	struct power *p;
	struct testbed_device **devices;
	struct level *base;	/* with the circuits that feed the switch at
				 * hand */
	struct level *now;
	power_step_fn fn;
	void *arg;
};

/* ---- the record ---- */

static int check_fabric(const struct model_fabric *f, struct err *err)
{
	for (int d = 0; d < f->n_devices; d++) {
		const struct model_device *m = &f->devices[d];

		if (m->kind == MODEL_RING || m->any_to_any) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s: bring-up "
				       "with power is of switches with two "
				       "sides", m->name);
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

static int new_device(struct power_device *dev, const struct model_device *m,
		      struct err *err)
{
	dev->in = calloc((size_t)m->n_in + 1, sizeof(*dev->in));
	dev->out = calloc((size_t)m->n_out + 1, sizeof(*dev->out));
	dev->far = calloc((size_t)m->n_out + 1, sizeof(*dev->far));
	dev->source = dev->feed_device = dev->feed_out = -1;
	return dev->in && dev->out && dev->far ? 0 : err_nomem(err);
}

int power_new(const struct model_fabric *f, struct power **out,
	      struct err *err)
{
	struct power *p = NULL;
	int rc = check_fabric(f, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		return err_nomem(err);
	}
	p->fabric = f;
	p->devices = calloc((size_t)f->n_devices + 1, sizeof(*p->devices));
	p->lit = calloc((size_t)f->n_devices + 1, sizeof(*p->lit));
	rc = p->devices && p->lit ? 0 : err_nomem(err);
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		rc = new_device(&p->devices[d], &f->devices[d], err);
	}
	if (rc) {
		power_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

void power_free(struct power *p)
{
	if (!p) {
		return;
	}
	for (int d = 0; p->devices && d < p->fabric->n_devices; d++) {
		free(p->devices[d].in);
		free(p->devices[d].out);
		free(p->devices[d].far);
	}
	free(p->devices);
	free(p->lit);
	free(p);
}

/* ---- reading ---- */

static void take_levels(const struct drv_snapshot *snap,
			const struct model_device *m, struct level *l)
{
	for (int i = 0; i < m->n_in; i++) {
		l->in[i] = POWER_DARK_MDBM;
	}
	for (int i = 0; i < m->n_out; i++) {
		l->out[i] = POWER_DARK_MDBM;
	}
	for (int i = 0; i < snap->n_ports; i++) {
		const struct drv_port *port = &snap->ports[i];

		if (port->has_power && port->index >= 0 &&
		    port->index < (port->is_out ? m->n_out : m->n_in)) {
			(port->is_out ? l->out : l->in)[port->index] =
				port->power_mdbm;
		}
	}
	l->settle_us = snap->caps.settle_us;
}

static bool is_ours(const struct power *p, int device, struct light_xc xc)
{
	for (int i = 0; i < p->n_lit; i++) {
		if (p->lit[i].device == device && p->lit[i].xc.in == xc.in &&
		    p->lit[i].xc.out == xc.out) {
			return true;
		}
	}
	return false;
}

static int check_snapshot(const struct power *p, int device,
			  const struct drv_snapshot *snap, struct err *err)
{
	const char *name = p->fabric->devices[device].name;

	for (int i = 0; i < snap->n_xcs; i++) {
		struct light_xc xc = snap->xcs[i].xc;

		if (!is_ours(p, device, xc)) {
			return err_set(err, WEFT_ESTALE, "%s holds in%d -> "
				       "out%d, which is not of this bring-up",
				       name, xc.in + 1, xc.out + 1);
		}
	}
	if (snap->caps.power != DRV_POWER_BOTH) {
		err_set(err, WEFT_EUNSUPPORTED, "%s does not measure power at "
			"both sides", name);
		err_hint(err, "where it does, its driver's option 'power' says "
			 "so");
		return WEFT_EUNSUPPORTED;
	}
	return 0;
}

static int look_at(struct walk *w, int device, struct level *l,
		   struct err *err)
{
	struct drv_snapshot snap;
	int rc = testbed_device_snapshot(w->devices[device], &snap, err);

	if (rc) {
		return rc;
	}
	rc = check_snapshot(w->p, device, &snap, err);
	if (rc == 0) {
		take_levels(&snap, &w->p->fabric->devices[device], l);
	}
	drv_snapshot_fini(&snap);
	return rc;
}

static int look(struct walk *w, struct level *levels, struct err *err)
{
	int rc = 0;

	for (int d = 0; rc == 0 && d < w->p->fabric->n_devices; d++) {
		rc = look_at(w, d, &levels[d], err);
	}
	return rc;
}

/* ---- circuits ---- */

/* Whether the switch has a circuit that it may have, or not. */
static int is_held(struct walk *w, const struct power_circuit *c, bool *held,
		   struct err *err)
{
	struct drv_snapshot snap;
	int rc;

	*held = c->made;
	if (c->made) {
		return 0;
	}
	rc = testbed_device_snapshot(w->devices[c->device], &snap, err);
	if (rc) {
		return rc;
	}
	for (int i = 0; i < snap.n_xcs; i++) {
		*held |= snap.xcs[i].xc.in == c->xc.in &&
			 snap.xcs[i].xc.out == c->xc.out;
	}
	drv_snapshot_fini(&snap);
	return 0;
}

/* A circuit stays on the record until the switch has taken it away. */
static int unlight_last(struct walk *w, struct err *err)
{
	struct power_circuit *c = &w->p->lit[w->p->n_lit - 1];
	bool held;
	int rc = is_held(w, c, &held, err);

	if (rc == 0 && held) {
		rc = testbed_device_change(w->devices[c->device], false, c->xc,
					   err);
		c->made = false;
	}
	if (rc == 0) {
		w->p->n_lit--;
	}
	return rc;
}

static int unlight(struct walk *w, int down_to, struct err *err)
{
	int rc = 0;

	while (rc == 0 && w->p->n_lit > down_to) {
		rc = unlight_last(w, err);
	}
	return rc;
}

static void count(const struct power *p, int *done, int *total)
{
	*done = *total = 0;
	for (int d = 0; d < p->fabric->n_devices; d++) {
		for (int i = 0; i < p->fabric->devices[d].n_out; i++) {
			*done += p->devices[d].far[i].way != POWER_UNKNOWN;
			++*total;
		}
	}
}

/* On the record before there is light to explain. */
static int light(struct walk *w, int device, struct light_xc xc,
		 struct err *err)
{
	struct power *p = w->p;
	int done, total, rc;
	char text[160];

	p->lit[p->n_lit++] = (struct power_circuit){ device, xc, false };
	count(p, &done, &total);
	snprintf(text, sizeof(text), "%s.in%d -> out%d",
		 p->fabric->devices[device].name, xc.in + 1, xc.out + 1);
	rc = w->fn ? w->fn(p, done, total, text, w->arg, err) : 0;
	if (rc > 0) {
		rc = err_set(err, WEFT_ECANCELED, "stopped at %s", text);
	}
	if (rc) {
		p->n_lit--;	/* not made */
		return rc;
	}
	rc = testbed_device_change(w->devices[device], true, xc, err);
	p->lit[p->n_lit - 1].made = rc == 0;
	usleep((useconds_t)(w->base[device].settle_us % 10000000));
	return rc;
}

/* Lights a switch's source over the switches before it. */
static int light_source(struct walk *w, int device, struct err *err)
{
	const struct power_device *dev = &w->p->devices[device];
	int rc;

	if (dev->feed_device < 0) {
		return 0;
	}
	rc = light_source(w, dev->feed_device, err);
	return rc ? rc : light(w, dev->feed_device, (struct light_xc){
			       w->p->devices[dev->feed_device].source,
			       dev->feed_out }, err);
}

/* ---- one output ---- */

static bool came_on(int32_t before, int32_t now)
{
	return before <= POWER_DARK_MDBM && now > POWER_DARK_MDBM;
}

/* What is lit now and was dark: it is where the fibre leads. */
static void find_far(const struct walk *w, int device, int out,
		     struct power_far *far)
{
	const struct model_fabric *f = w->p->fabric;
	int32_t from = w->now[device].out[out];

	for (int d = 0; d < f->n_devices; d++) {
		for (int i = 0; i < f->devices[d].n_in; i++) {
			if (came_on(w->base[d].in[i], w->now[d].in[i])) {
				far->way = POWER_INPUT;
				far->device = d;
				far->port = i;
				far->fibre_mdb = from - w->now[d].in[i];
			}
		}
		for (int i = 0; i < f->devices[d].n_out; i++) {
			if (far->way == POWER_NOTHING &&
			    !(d == device && i == out) &&
			    came_on(w->base[d].out[i], w->now[d].out[i])) {
				far->way = POWER_OUTPUT;
				far->device = d;
				far->port = i;
			}
		}
	}
}

static int measure(struct walk *w, int device, struct light_xc xc,
		   struct power_far *far, struct err *err)
{
	bool trunk = w->p->fabric->devices[device].out_port[xc.out] ==
		     MODEL_AT_TRUNK;
	int rc = 0;

	for (int tries = 0; rc == 0 && tries < TRIES; tries++) {
		if (tries) {
			usleep(PATIENCE_US);
		}
		*far = (struct power_far){ .way = POWER_NOTHING, .device = -1,
					   .port = -1, .in = xc.in,
					   .path_mdb = POWER_NO_LIGHT };
		rc = look(w, w->now, err);
		if (rc == 0 && w->now[device].out[xc.out] > POWER_DARK_MDBM) {
			far->path_mdb = w->now[device].in[xc.in] -
					w->now[device].out[xc.out];
		}
		if (rc == 0) {
			find_far(w, device, xc.out, far);
		}
		if (far->path_mdb != POWER_NO_LIGHT &&
		    (far->way != POWER_NOTHING || !trunk)) {
			break;
		}
	}
	return rc;
}

/* Light that stays when the circuit is out is of somebody who switched on
 * meanwhile; then the output is tried again. */
static int try_output(struct walk *w, int device, int out, struct err *err)
{
	struct light_xc xc = { w->p->devices[device].source, out };
	int before = w->p->n_lit, rc = 0;
	struct power_far far = { 0 };
	bool again = true;

	for (int tries = 0; rc == 0 && again && tries < TRIES; tries++) {
		rc = light(w, device, xc, err);
		if (rc == 0) {
			rc = measure(w, device, xc, &far, err);
		}
		if (rc == 0) {
			rc = unlight(w, before, err);
		}
		if (rc == 0 && far.way != POWER_NOTHING) {
			rc = look_at(w, far.device, &w->base[far.device], err);
		}
		again = rc == 0 && far.way != POWER_NOTHING &&
			(far.way == POWER_INPUT ? w->base[far.device].in :
			 w->base[far.device].out)[far.port] > POWER_DARK_MDBM;
	}
	if (rc == 0 && again) {
		rc = err_set(err, WEFT_ESTALE, "light comes and goes while "
			     "%s.out%d is tried",
			     w->p->fabric->devices[device].name, out + 1);
	}
	if (rc == 0) {
		w->p->devices[device].far[out] = far;
	}
	return rc;
}

/* ---- the whole ---- */

static int walk_device(struct walk *w, int device, struct err *err)
{
	const struct model_device *m = &w->p->fabric->devices[device];
	struct power_device *dev = &w->p->devices[device];
	int rc = light_source(w, device, err);

	if (rc == 0) {
		rc = look(w, w->base, err);
	}
	for (int i = 0; rc == 0 && i < m->n_out; i++) {
		if (dev->far[i].way != POWER_UNKNOWN) {
			continue;
		}
		if (dev->out[i] > POWER_DARK_MDBM) {
			/* A laser sends into it: it is not to be lit. */
			dev->far[i] = (struct power_far){
				.way = POWER_NOTHING, .in = -1,
				.device = -1, .port = -1 };
			continue;
		}
		rc = try_output(w, device, i, err);
	}
	return rc ? rc : unlight(w, 0, err);
}

/* The strongest input of each switch that has a laser. */
static void find_lasers(struct power *p)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		struct power_device *dev = &p->devices[d];

		dev->source = dev->feed_device = -1;
		for (int i = 0; i < p->fabric->devices[d].n_in; i++) {
			if (dev->in[i] > POWER_DARK_MDBM &&
			    (dev->source < 0 ||
			     dev->in[i] > dev->in[dev->source])) {
				dev->source = i;
			}
		}
	}
}

/* Switches that a fibre from one with light leads to. A feed is given once,
 * to a switch that had none, so that feeds close no ring. */
static void find_feeds(struct power *p)
{
	bool more = true;

	while (more) {
		more = false;
		for (int d = 0; d < p->fabric->n_devices; d++) {
			const struct power_device *dev = &p->devices[d];

			for (int i = 0; dev->source >= 0 &&
			     i < p->fabric->devices[d].n_out; i++) {
				const struct power_far *far = &dev->far[i];
				struct power_device *to =
					far->way != POWER_INPUT ? NULL :
					&p->devices[far->device];

				if (to && to->source < 0) {
					to->source = far->port;
					to->feed_device = d;
					to->feed_out = i;
					more = true;
				}
			}
		}
	}
}

static int next_device(const struct power *p)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		for (int i = 0; p->devices[d].source >= 0 &&
		     i < p->fabric->devices[d].n_out; i++) {
			if (p->devices[d].far[i].way == POWER_UNKNOWN) {
				return d;
			}
		}
	}
	return -1;
}

static int walk_all(struct walk *w, struct err *err)
{
	struct power *p = w->p;
	int d, rc = look(w, w->base, err);

	/* Only now is it known that all that is lit is ours. */
	if (rc == 0) {
		rc = unlight(w, 0, err);
	}
	if (rc == 0) {
		rc = look(w, w->base, err);
	}
	for (d = 0; rc == 0 && d < p->fabric->n_devices; d++) {
		const struct model_device *m = &p->fabric->devices[d];

		memcpy(p->devices[d].in, w->base[d].in,
		       (size_t)m->n_in * sizeof(int32_t));
		memcpy(p->devices[d].out, w->base[d].out,
		       (size_t)m->n_out * sizeof(int32_t));
	}
	if (rc == 0) {
		find_lasers(p);
		find_feeds(p);
	}
	while (rc == 0 && (d = next_device(p)) >= 0) {
		rc = walk_device(w, d, err);
		find_feeds(p);
	}
	return rc;
}

static struct level *new_levels(const struct model_fabric *f, struct err *err)
{
	struct level *v = calloc((size_t)f->n_devices + 1, sizeof(*v));
	bool ok = v;

	for (int d = 0; ok && d < f->n_devices; d++) {
		v[d].in = calloc((size_t)f->devices[d].n_in + 1,
				 sizeof(*v[d].in));
		v[d].out = calloc((size_t)f->devices[d].n_out + 1,
				  sizeof(*v[d].out));
		ok = v[d].in && v[d].out;
	}
	if (!ok) {
		err_nomem(err);
	}
	return v;
}

static void free_levels(struct level *v, int n)
{
	for (int d = 0; v && d < n; d++) {
		free(v[d].in);
		free(v[d].out);
	}
	free(v);
}

int power_run(struct power *p, power_step_fn fn, void *arg, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	struct walk w = { .p = p, .fn = fn, .arg = arg };
	struct err own = { 0 };
	int rc = 0, kept;

	w.base = new_levels(f, &own);
	w.now = new_levels(f, &own);
	w.devices = calloc((size_t)f->n_devices + 1, sizeof(*w.devices));
	if (own.code || !w.devices) {
		rc = err_nomem(err);
	}
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		rc = testbed_device_new(&f->devices[d], &w.devices[d], err);
	}
	if (rc == 0) {
		rc = walk_all(&w, err);
		/* Somebody else's circuit stops the walk, ours are in p->lit
		 * all the same. */
		kept = unlight(&w, 0, rc ? &own : err);
		rc = rc ? rc : kept;
	}
	for (int d = 0; w.devices && d < f->n_devices; d++) {
		testbed_device_free(w.devices[d]);
	}
	free(w.devices);
	free_levels(w.base, f->n_devices);
	free_levels(w.now, f->n_devices);
	return rc;
}
