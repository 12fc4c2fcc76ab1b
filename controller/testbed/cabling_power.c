/* The record of a bring-up with power, and its course; see cabling_power.h. */
#include "controller/testbed/cabling_power.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/cabling_power_only.h"
#include "controller/testbed/cabling_power_private.h"

/* ---- the record ---- */

static int check_fabric(const struct model_fabric *f, struct err *err)
{
	for (int d = 0; d < f->n_devices; d++) {
		const struct model_device *m = &f->devices[d];

		if (m->kind == MODEL_RING || m->any_to_any) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s: bring-up "
				       "with power does not support %s",
				       m->name, m->kind == MODEL_RING ?
				       "rings" : "any-to-any switches");
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
	dev->in_trunk = malloc(((size_t)m->n_in + 1) * sizeof(int));
	dev->out_trunk = malloc(((size_t)m->n_out + 1) * sizeof(int));
	dev->in_bar = calloc((size_t)m->n_in + 1, sizeof(bool));
	dev->out_bar = calloc((size_t)m->n_out + 1, sizeof(bool));
	dev->seen = calloc((size_t)m->n_in + 1, sizeof(*dev->seen));
	dev->source = dev->feed_device = dev->feed_in = dev->feed_out = -1;
	if (!dev->in || !dev->out || !dev->far || !dev->in_trunk ||
	    !dev->out_trunk || !dev->in_bar || !dev->out_bar || !dev->seen) {
		return err_nomem(err);
	}
	memset(dev->in_trunk, 0xff, (size_t)m->n_in * sizeof(int));
	memset(dev->out_trunk, 0xff, (size_t)m->n_out * sizeof(int));
	return 0;
}

/* One a device on the way to a switch, and of each that feeds one. */
int power_max_lit(const struct model_fabric *f)
{
	return 4 * f->n_devices + 4;
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
	p->lit = calloc((size_t)power_max_lit(f), sizeof(*p->lit));
	rc = p->devices && p->lit ? 0 : err_nomem(err);
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		rc = new_device(&p->devices[d], &f->devices[d], err);
	}
	if (rc) {
		power_free(p);
		return rc;
	}
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		p->devices[t->from_device].out_trunk[t->from_port] = i;
		p->devices[t->to_device].in_trunk[t->to_port] = i;
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
		free(p->devices[d].in_trunk);
		free(p->devices[d].out_trunk);
		free(p->devices[d].in_bar);
		free(p->devices[d].out_bar);
		free(p->devices[d].seen);
	}
	vec_fini(&p->tries);
	free(p->devices);
	free(p->lit);
	free(p);
}

/* ---- where light comes from ---- */

/* The strongest input of each switch that has a laser. */
static void find_lasers(struct power *p)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		struct power_device *dev = &p->devices[d];

		dev->source = dev->feed_device = -1;
		dev->feed_in = dev->feed_out = -1;
		for (int i = 0; i < p->fabric->devices[d].n_in; i++) {
			if (dev->in[i] > POWER_DARK_MDBM &&
			    (dev->source < 0 ||
			     dev->in[i] > dev->in[dev->source])) {
				dev->source = i;
			}
		}
	}
}

/* Switches that a fibre from one with light leads to, and those that blind
 * devices light. A feed is given once, to a switch that had none, so that feeds
 * close no ring. */
static void find_feeds(struct power *p)
{
	bool more = true;

	blind_settle(p);
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

				if (to && !to->blind && to->source < 0) {
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

/* ---- the whole ---- */

/* Somebody has to measure. */
static int check_monitors(const struct power *p, struct err *err)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		if (!p->devices[d].blind) {
			return 0;
		}
	}
	err_set(err, WEFT_EUNSUPPORTED, "%s does not measure power at both "
		"sides, nor does any other device",
		p->fabric->n_devices ? p->fabric->devices[0].name : "nothing");
	err_hint(err, "where one does, its driver's option 'power' says so");
	return WEFT_EUNSUPPORTED;
}

static void keep_levels(struct walk *w)
{
	struct power *p = w->p;

	for (int d = 0; d < p->fabric->n_devices; d++) {
		const struct model_device *m = &p->fabric->devices[d];

		memcpy(p->devices[d].in, w->base[d].in,
		       (size_t)m->n_in * sizeof(int32_t));
		memcpy(p->devices[d].out, w->base[d].out,
		       (size_t)m->n_out * sizeof(int32_t));
	}
	p->has_levels = true;
}

/* Robots' circuits of an earlier run are kept, if it is known what was lit
 * without them. */
static int begin(struct walk *w, struct err *err)
{
	struct power *p = w->p;
	bool resumed = p->has_levels;
	int rc;

	p->has_levels = false;	/* blind devices are to be read too */
	rc = power_look(w, w->base, err);
	p->has_levels = resumed;
	if (rc == 0) {
		rc = check_monitors(p, err);
	}
	if (rc == 0 && resumed) {
		find_lasers(p);
		find_feeds(p);
	}
	rc = rc ? rc : power_recover(w, err);
	if (rc == 0 && p->n_lit == 0) {
		rc = power_look(w, w->base, err);
		if (rc == 0) {
			keep_levels(w);
			find_lasers(p);
			find_feeds(p);
		}
	}
	return rc;
}

/* What light of tries was seen at must be dark again without any. */
static int end(struct walk *w, struct err *err)
{
	const struct power *p = w->p;
	int rc = power_unlight(w, 0, err);

	if (rc == 0 && p->tries.n) {
		rc = power_look(w, w->now, err);
	}
	for (size_t k = 0; rc == 0 && k < p->tries.n; k++) {
		const struct power_try *t = &p->tries.v[k];

		if (t->way == POWER_INPUT &&
		    p->devices[t->to_device].in[t->to_port] <=
			    POWER_DARK_MDBM &&
		    w->now[t->to_device].in[t->to_port] > POWER_DARK_MDBM) {
			rc = err_set(err, WEFT_ESTALE, "%s.in%d has light of "
				     "its own now; nothing is known of it",
				     p->fabric->devices[t->to_device].name,
				     t->to_port + 1);
			err_hint(err, "weft bringup --restart begins anew");
		}
	}
	return rc;
}

/* Switches first: what they tell costs no moves. */
static int walk_all(struct walk *w, struct err *err)
{
	struct power *p = w->p;
	bool more = true;
	int rc = begin(w, err);

	while (rc == 0 && more) {
		struct optics_xc xc;
		int d = next_device(p);

		if (d >= 0) {
			rc = power_walk_device(w, d, err);
		} else {
			more = blind_next(p, &d, &xc);
			rc = more ? power_try_pair(w, d, xc, err) : 0;
		}
		find_feeds(p);
	}
	return rc ? rc : end(w, err);
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

/* After an error robots' circuits stay for the next run, which needs no moves
 * then to make them again. */
static int n_to_leave(const struct power *p, int rc)
{
	int n = 0;

	while (rc && n < p->n_lit && p->devices[p->lit[n].device].blind) {
		n++;
	}
	return n;
}

int power_run(struct power *p, const struct power_options *options,
	      power_step_fn fn, void *arg, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	struct walk w = { .p = p, .options = *options, .fn = fn, .arg = arg };
	struct err own = { 0 };
	int rc = 0, kept;

	w.base = new_levels(f, &own);
	w.now = new_levels(f, &own);
	w.devices = calloc((size_t)f->n_devices + 1, sizeof(*w.devices));
	if (own.code || !w.devices) {
		rc = err_nomem(err);
	}
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		rc = testbed_device_new(f, d, &w.devices[d], err);
	}
	if (rc == 0) {
		rc = walk_all(&w, err);
		/* Somebody else's circuit stops the walk, ours are in p->lit
		 * all the same. */
		kept = power_unlight(&w, n_to_leave(p, rc), rc ? &own : err);
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
