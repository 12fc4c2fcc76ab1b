/* Bring-up with power: outputs of switches, one by one; see cabling_power.h. */
#include <unistd.h>

#include "controller/testbed/cabling_power_private.h"

static bool came_on(int32_t before, int32_t now)
{
	return before <= POWER_DARK_MDBM && now > POWER_DARK_MDBM;
}

void power_find_far(const struct walk *w, int device, int out,
		    struct power_far *far)
{
	const struct model_fabric *f = w->p->fabric;
	int32_t from = device < 0 ? 0 : w->now[device].out[out];

	for (int d = 0; d < f->n_devices; d++) {
		if (w->p->devices[d].blind) {
			continue;
		}
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

/* Where the file says that light of an output can be seen. */
static bool is_seen(const struct power *p, int device, int out)
{
	int t = p->devices[device].out_trunk[out];

	return t >= 0 && !p->devices[p->fabric->trunks[t].to_device].blind;
}

static int measure(struct walk *w, int device, struct optics_xc xc,
		   struct power_far *far, struct err *err)
{
	int rc = 0;

	for (int tries = 0; rc == 0 && tries < POWER_TRIES; tries++) {
		if (tries) {
			usleep(POWER_PATIENCE_US);
		}
		*far = (struct power_far){ .way = POWER_NOTHING, .device = -1,
					   .port = -1, .in = xc.in,
					   .path_mdb = POWER_NO_LIGHT };
		rc = power_look(w, w->now, err);
		if (rc == 0 && w->now[device].out[xc.out] > POWER_DARK_MDBM) {
			far->path_mdb = w->now[device].in[xc.in] -
					w->now[device].out[xc.out];
		}
		if (rc == 0) {
			power_find_far(w, device, xc.out, far);
		}
		if (far->path_mdb != POWER_NO_LIGHT &&
		    (far->way != POWER_NOTHING ||
		     !is_seen(w->p, device, xc.out))) {
			break;
		}
	}
	return rc;
}

/* Light that stays when the circuit is out is of somebody who switched on
 * meanwhile; then the output is tried again. */
static int try_output(struct walk *w, int device, int out, struct err *err)
{
	struct optics_xc xc = { w->p->devices[device].source, out };
	int before = w->p->n_lit, rc = 0;
	struct power_far far = { 0 };
	bool again = true;

	for (int tries = 0; rc == 0 && again && tries < POWER_TRIES; tries++) {
		rc = power_light(w, device, xc, err);
		if (rc == 0) {
			rc = measure(w, device, xc, &far, err);
		}
		if (rc == 0) {
			rc = power_unlight(w, before, err);
		}
		if (rc == 0 && far.way != POWER_NOTHING) {
			rc = power_look_at(w, far.device, &w->base[far.device],
					   err);
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

int power_walk_device(struct walk *w, int device, struct err *err)
{
	const struct model_device *m = &w->p->fabric->devices[device];
	struct power_device *dev = &w->p->devices[device];
	int rc = power_light_source(w, device, err);

	if (rc == 0) {
		rc = power_look(w, w->base, err);
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
	return rc ? rc : power_unlight(w, power_n_kept(w->p), err);
}
