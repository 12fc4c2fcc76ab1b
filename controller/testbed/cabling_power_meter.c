/* Bring-up with power: circuits of devices that measure nothing; see
 * cabling_power_only.h. */
#include <string.h>
#include <unistd.h>

#include "controller/testbed/cabling_power_only.h"
#include "controller/testbed/cabling_power_private.h"

/* ---- what is seen ---- */

/* What is lit without the circuit that is to be tried, where it is there
 * already: what was without any, and the switches that are fed. */
static void base_as_known(struct walk *w)
{
	const struct power *p = w->p;

	for (int d = 0; d < p->fabric->n_devices; d++) {
		const struct model_device *m = &p->fabric->devices[d];
		const struct power_device *dev = &p->devices[d];

		memcpy(w->base[d].in, dev->in, (size_t)m->n_in *
		       sizeof(*dev->in));
		memcpy(w->base[d].out, dev->out, (size_t)m->n_out *
		       sizeof(*dev->out));
		if (dev->feed_device >= 0 && power_is_lit(p, dev->feed_device,
				(struct optics_xc){ dev->feed_in,
						   dev->feed_out })) {
			w->base[d].in[dev->source] = 0;
		}
	}
}

/* Looks until something came on beside the output that sends (device -1: a
 * laser does), or often enough. */
static int see(struct walk *w, struct power_try *t, int device, int out,
	       int times, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < times && t->way == POWER_NOTHING; k++) {
		struct power_far far = { .way = POWER_NOTHING };

		if (k) {
			usleep(POWER_PATIENCE_US);
		}
		rc = power_look(w, w->now, err);
		if (rc == 0) {
			power_find_far(w, device, out, &far);
			t->way = far.way;
			t->to_device = far.device;
			t->to_port = far.port;
		}
	}
	return rc;
}

static int32_t written_loss(const struct power *p, int trunk)
{
	return trunk < 0 ? 0 : p->fabric->trunks[trunk].loss_mdb;
}

/* From the laser, if the file says what that sends, or from the output of a
 * switch. What the fibre out of the device may lose is that of where light
 * arrived. */
static void weigh(const struct walk *w, struct power_try *t)
{
	const struct power *p = w->p;
	const struct model_fabric *f = p->fabric;
	const struct model_device *m = &f->devices[t->device];
	int host = m->in_port[t->xc.in];
	int32_t limit = m->loss_mdb + POWER_SLACK_MDB +
		written_loss(p, p->devices[t->device].out_trunk[t->xc.out]);
	int32_t sent;

	if (t->from_device >= 0) {
		sent = w->now[t->from_device].out[t->from_out];
		limit += written_loss(p, p->devices[t->from_device].
				      out_trunk[t->from_out]);
	} else if (host >= 0 && f->hosts[f->ports[host].host].has_launch) {
		sent = f->hosts[f->ports[host].host].launch_mdbm;
		limit += f->ports[host].tx_loss_mdb;
	} else {
		return;
	}
	t->loss_mdb = sent - (t->way == POWER_INPUT ?
			      w->now[t->to_device].in :
			      w->now[t->to_device].out)[t->to_port];
	t->limit_mdb = limit;
}

/* ---- whose light it is ---- */

static int see_from(struct walk *w, struct power_try *t, int device, int out,
		    int times, struct err *err)
{
	struct power *p = w->p;
	int before = p->n_lit;
	int rc = power_light(w, device, (struct optics_xc){
			     p->devices[device].source, out }, err);

	if (rc == 0) {
		rc = see(w, t, device, out, times, err);
	}
	if (rc == 0 && t->way != POWER_NOTHING) {
		t->from_device = device;
		t->from_out = out;
		weigh(w, t);
	}
	return rc ? rc : power_unlight(w, before, err);
}

/* Outputs whose light went nowhere that was seen, and what was seen to feed
 * this very input. */
static bool may_feed(const struct power *p, const struct power_try *t,
		     int device, int out)
{
	const struct power_far *far = &p->devices[device].far[out];
	bool known = far->way == POWER_INPUT && far->device == t->device &&
		     far->port == t->xc.in;

	return known || (far->way == POWER_NOTHING && far->in >= 0 &&
			 far->path_mdb != POWER_NO_LIGHT);
}

/* The source is lit with no more moves of robots. */
static bool has_light(const struct power *p, int device)
{
	const struct power_device *dev = &p->devices[device];

	return !dev->blind && dev->source >= 0 &&
	       (dev->feed_device < 0 || !p->devices[dev->feed_device].blind ||
		power_is_lit(p, dev->feed_device, (struct optics_xc){
			     dev->feed_in, dev->feed_out }));
}

/* Light of one switch's outputs, or of one of them (-1: all). */
static int see_switch(struct walk *w, struct power_try *t, int device,
		      int only, struct err *err)
{
	struct power *p = w->p;
	int before = p->n_lit, rc = power_light_source(w, device, err);

	if (rc == 0) {
		rc = power_look(w, w->base, err);
	}
	for (int i = 0; rc == 0 && t->way == POWER_NOTHING &&
	     i < p->fabric->devices[device].n_out; i++) {
		if ((only < 0 || i == only) && may_feed(p, t, device, i)) {
			rc = see_from(w, t, device, i,
				      only < 0 ? 1 : POWER_TRIES, err);
		}
	}
	return rc ? rc : power_unlight(w, before, err);
}

/* The output that fed it before, or that the file says; -1: a laser. */
static void likely_feeder(const struct power *p, const struct power_try *t,
			  int *device, int *out)
{
	int trunk = p->devices[t->device].in_trunk[t->xc.in];

	*device = trunk < 0 ? -1 : p->fabric->trunks[trunk].from_device;
	*out = trunk < 0 ? -1 : p->fabric->trunks[trunk].from_port;
	for (size_t k = 0; k < p->tries.n; k++) {
		const struct power_try *e = &p->tries.v[k];

		if (e->device == t->device && e->xc.in == t->xc.in &&
		    e->way != POWER_NOTHING) {
			*device = e->from_device;
			*out = e->from_out;
		}
	}
}

/* The likely one, then every other. */
static int sweep(struct walk *w, struct power_try *t, struct err *err)
{
	const struct power *p = w->p;
	int device, out, rc = 0;

	likely_feeder(p, t, &device, &out);
	if (device >= 0 && has_light(p, device)) {
		rc = see_switch(w, t, device, out, err);
	}
	for (int d = 0; rc == 0 && t->way == POWER_NOTHING &&
	     d < p->fabric->n_devices; d++) {
		if (has_light(p, d)) {
			rc = see_switch(w, t, d, -1, err);
		}
	}
	return rc;
}

/* ---- one pair ---- */

/* Circuits of ours in its way are for switches that are fed. */
static int clear_way(struct walk *w, int device, struct optics_xc xc,
		     struct err *err)
{
	const struct power *p = w->p;

	for (int i = 0; i < p->n_lit; i++) {
		const struct power_circuit *c = &p->lit[i];

		if (c->device == device && (c->xc.in == xc.in) !=
		    (c->xc.out == xc.out)) {
			return power_unlight(w, i, err);
		}
	}
	return 0;
}

/* The switch that likely feeds the input is to have light. */
static int light_feeder(struct walk *w, const struct power_try *t,
			struct err *err)
{
	int device, out, rc;

	likely_feeder(w->p, t, &device, &out);
	rc = device < 0 ? 0 : power_light_source(w, device, err);
	return rc ? rc : power_unlight(w, power_n_kept(w->p), err);
}

static int look_at_pair(struct walk *w, struct power_try *t, struct err *err)
{
	bool there = power_is_lit(w->p, t->device, t->xc);
	int rc = 0;

	if (there) {
		base_as_known(w);
	} else {
		rc = power_look(w, w->base, err);
	}
	if (rc == 0) {
		rc = power_light(w, t->device, t->xc, err);
	}
	if (rc == 0) {
		rc = see(w, t, -1, -1, POWER_TRIES, err);
	}
	if (rc == 0 && t->way == POWER_NOTHING) {
		rc = sweep(w, t, err);
	} else if (rc == 0) {
		weigh(w, t);
	}
	return rc;
}

/* A switch that it gives light to keeps it. */
static bool is_wanted(const struct power *p, const struct power_try *t)
{
	return t->way == POWER_INPUT &&
	       p->devices[t->to_device].source < 0;
}

/* Light that stays when the circuit is out came from elsewhere. */
static int take_out(struct walk *w, const struct power_try *t, bool *stays,
		    struct err *err)
{
	int rc = power_unlight(w, power_n_kept(w->p), err);

	*stays = false;
	if (rc || t->way == POWER_NOTHING) {
		return rc;
	}
	rc = power_look_at(w, t->to_device, &w->now[t->to_device], err);
	if (rc == 0) {
		*stays = (t->way == POWER_INPUT ? w->now[t->to_device].in :
			  w->now[t->to_device].out)[t->to_port] >
			 POWER_DARK_MDBM;
	}
	return rc;
}

static int note(struct walk *w, const struct power_try *t, struct err *err)
{
	if (vec_push(&w->p->tries, *t)) {
		return err_nomem(err);
	}
	blind_settle(w->p);
	return 0;
}

int power_try_pair(struct walk *w, int device, struct optics_xc xc,
		   struct err *err)
{
	const struct model_device *m = &w->p->fabric->devices[device];
	struct power_try t = { .device = device, .xc = xc,
			       .from_device = -1, .from_out = -1,
			       .way = POWER_NOTHING, .to_device = -1,
			       .to_port = -1, .loss_mdb = POWER_NO_LOSS,
			       .limit_mdb = POWER_NO_LOSS };
	bool stays, keep;
	int rc = clear_way(w, device, xc, err);

	if (rc == 0 && !power_is_lit(w->p, device, xc)) {
		rc = light_feeder(w, &t, err);
	}
	if (rc == 0) {
		rc = look_at_pair(w, &t, err);
	}
	keep = rc == 0 && is_wanted(w->p, &t);
	if (rc == 0) {
		rc = note(w, &t, err);
	}
	if (rc || keep) {
		return rc;
	}
	rc = take_out(w, &t, &stays, err);
	if (rc == 0 && stays) {
		w->p->tries.n--;
		if (t.from_device >= 0) {
			w->p->devices[t.from_device].far[t.from_out].way =
				POWER_NOTHING;
		}
		rc = err_set(err, WEFT_ESTALE, "%s.%s%d has light of its own "
			     "now, while %s.in%d -> out%d was tried",
			     w->p->fabric->devices[t.to_device].name,
			     t.way == POWER_INPUT ? "in" : "out",
			     t.to_port + 1, m->name, xc.in + 1, xc.out + 1);
	}
	return rc;
}
