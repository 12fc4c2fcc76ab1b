/* Bring-up with power: looking, and making circuits; see cabling_power_private.h. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "controller/testbed/cabling_power_only.h"
#include "controller/testbed/cabling_power_private.h"
#include "drivers/core/driver.h"
#include "lib/base/clock.h"
#include "lib/base/units.h"

#define ROBOT_NS 1000000000	/* what moves this long is no switch */

/* ---- reading ---- */

static void take_levels(const struct drv_snapshot *snap,
			const struct model_device *m, struct level *l)
{
	bool blind = snap->caps.power != DRV_POWER_BOTH;

	for (int i = 0; i < m->n_in; i++) {
		l->in[i] = POWER_DARK_MDBM;
	}
	for (int i = 0; i < m->n_out; i++) {
		l->out[i] = POWER_DARK_MDBM;
	}
	for (int i = 0; !blind && i < snap->n_ports; i++) {
		const struct drv_port *port = &snap->ports[i];

		if (port->has_power && port->index >= 0 &&
		    port->index < (port->is_out ? m->n_out : m->n_in)) {
			(port->is_out ? l->out : l->in)[port->index] =
				port->power_mdbm;
		}
	}
	l->settle_us = snap->caps.settle_us;
}

/* Of a robot it tells ports that are locked, out of order or worn. */
static void take_bars(const struct drv_snapshot *snap,
		      const struct model_device *m, struct power_device *dev)
{
	for (int i = 0; i < snap->n_ports; i++) {
		const struct drv_port *port = &snap->ports[i];
		bool bar = !port->enabled || port->failed || port->has_moves;

		if (bar && port->index >= 0 &&
		    port->index < (port->is_out ? m->n_out : m->n_in)) {
			(port->is_out ? dev->out_bar : dev->in_bar)
				[port->index] = true;
		}
	}
}

static void take_caps(const struct drv_snapshot *snap,
		      struct power_device *dev)
{
	dev->blind = snap->caps.power != DRV_POWER_BOTH;
	dev->move_ns = snap->caps.typ_switch_us * 1000;
	dev->robot = dev->blind && dev->move_ns >= ROBOT_NS;
}

bool power_is_lit(const struct power *p, int device, struct optics_xc xc)
{
	for (int i = 0; i < p->n_lit; i++) {
		if (p->lit[i].device == device && p->lit[i].xc.in == xc.in &&
		    p->lit[i].xc.out == xc.out) {
			return true;
		}
	}
	return false;
}

/* Somebody else's circuit ends the walk, or bars its ports. */
static int check_circuits(struct walk *w, int device,
			  const struct drv_snapshot *snap, struct err *err)
{
	struct power_device *dev = &w->p->devices[device];

	for (int i = 0; i < snap->n_xcs; i++) {
		struct optics_xc xc = snap->xcs[i].xc;

		if (power_is_lit(w->p, device, xc)) {
			continue;
		}
		if (dev->blind && w->options.keep) {
			dev->in_bar[xc.in] = dev->out_bar[xc.out] = true;
			continue;
		}
		err_set(err, WEFT_ESTALE, "%s holds in%d -> out%d, which is "
			"not of this bring-up",
			w->p->fabric->devices[device].name, xc.in + 1,
			xc.out + 1);
		if (dev->blind) {
			err_hint(err, "--keep-circuits leaves it, and its "
				 "ports, as they are");
		}
		return WEFT_ESTALE;
	}
	return 0;
}

int power_look_at(struct walk *w, int device, struct level *l,
		  struct err *err)
{
	const struct model_device *m = &w->p->fabric->devices[device];
	struct drv_snapshot snap;
	int rc = testbed_device_snapshot(w->devices[device], &snap, err);

	if (rc) {
		return rc;
	}
	take_caps(&snap, &w->p->devices[device]);
	rc = check_circuits(w, device, &snap, err);
	if (rc == 0) {
		take_levels(&snap, m, l);
	}
	if (rc == 0 && w->p->devices[device].blind) {
		take_bars(&snap, m, &w->p->devices[device]);
	}
	drv_snapshot_fini(&snap);
	return rc;
}

/* Blind devices have nothing to tell but once. */
int power_look(struct walk *w, struct level *levels, struct err *err)
{
	int rc = 0;

	for (int d = 0; rc == 0 && d < w->p->fabric->n_devices; d++) {
		if (!w->p->devices[d].blind || !w->p->has_levels) {
			rc = power_look_at(w, d, &levels[d], err);
		}
	}
	return rc;
}

/* ---- progress ---- */

static void count(const struct power *p, int *done, int *total)
{
	*done = *total = 0;
	for (int d = 0; d < p->fabric->n_devices; d++) {
		for (int i = 0; !p->devices[d].blind &&
		     i < p->fabric->devices[d].n_out; i++) {
			*done += p->devices[d].far[i].way != POWER_UNKNOWN;
			++*total;
		}
	}
	blind_count(p, done, total);
}

/* What a move takes: as those that were made, or as they usually do. */
static int64_t move_ns(const struct power *p)
{
	int64_t most = 0;

	if (p->moves > 0) {
		return p->moves_ns / p->moves;
	}
	for (int d = 0; d < p->fabric->n_devices; d++) {
		if (p->devices[d].robot && p->devices[d].move_ns > most) {
			most = p->devices[d].move_ns;
		}
	}
	return most;
}

static int tell(struct walk *w, const struct power_circuit *c, bool make,
		struct err *err)
{
	struct power *p = w->p;
	int rc;

	w->said = (struct power_progress){ .text = w->text, .moves = p->moves,
					   .moves_left = blind_moves_left(p) };
	w->said.left_ns = w->said.moves_left * move_ns(p);
	count(p, &w->said.done, &w->said.total);
	snprintf(w->text, sizeof(w->text), "%s.in%d -> out%d%s",
		 p->fabric->devices[c->device].name, c->xc.in + 1,
		 c->xc.out + 1, make ? "" : " out");
	rc = w->fn ? w->fn(p, &w->said, w->arg, err) : 0;
	return rc > 0 ? err_set(err, WEFT_ECANCELED, "stopped at %s", w->text) :
	       rc;
}

/* The same again, a second later: what is left has become less. */
static void tell_again(void *arg)
{
	struct walk *w = arg;
	int64_t took = clk_now_ns() - w->move_began_ns;

	w->said.waiting_ns = took;
	if (w->fn) {
		w->fn(w->p, &w->said, w->arg, NULL);
	}
}

/* ---- circuits ---- */

static int change(struct walk *w, struct power_circuit *c, bool add,
		  struct err *err)
{
	struct power *p = w->p;
	bool robot = p->devices[c->device].robot;
	int rc;

	w->move_began_ns = clk_now_ns();
	testbed_device_tick(w->devices[c->device], robot ? tell_again : NULL,
			    w);
	rc = testbed_device_change(w->devices[c->device], add, c->xc, err);
	testbed_device_tick(w->devices[c->device], NULL, NULL);
	if (rc == 0 && robot) {
		p->moves++;
		p->moves_ns += clk_now_ns() - w->move_began_ns;
	}
	return rc;
}

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

/* A circuit stays on the record until the switch has taken it away. Of a
 * robot's it is noted first that it is to go: the move goes on without us. */
static int unlight_last(struct walk *w, struct err *err)
{
	struct power_circuit *c = &w->p->lit[w->p->n_lit - 1];
	bool robot = w->p->devices[c->device].robot, held;
	int rc = is_held(w, c, &held, err);

	if (rc == 0 && held && robot) {
		c->going = true;
		rc = tell(w, c, false, err);
	}
	if (rc == 0 && held) {
		rc = change(w, c, false, err);
		c->made = false;
	}
	if (rc == 0) {
		w->p->n_lit--;
	}
	return rc;
}

int power_unlight(struct walk *w, int down_to, struct err *err)
{
	int rc = 0;

	while (rc == 0 && w->p->n_lit > down_to) {
		rc = unlight_last(w, err);
	}
	return rc;
}

int power_n_kept(const struct power *p)
{
	int n = 0;

	while (n < p->n_lit && p->devices[p->lit[n].device].blind &&
	       blind_is_feed(p, &p->lit[n])) {
		n++;
	}
	return n;
}

/* A robot's move must be within the limit together with those that take all
 * back. The circuit is on the record already. */
static int check_moves(const struct walk *w, const struct power_circuit *c,
		       struct err *err)
{
	const struct power *p = w->p;
	int64_t all = p->moves + blind_moves_left(p), need = p->moves + 1;
	char took[32];

	for (int i = 0; i < p->n_lit; i++) {
		need += p->devices[p->lit[i].device].robot;
	}
	if (!p->devices[c->device].robot || w->options.max_moves >=
	    (p->moves ? need : all)) {
		return 0;
	}
	unit_human(UNIT_NS, (double)(all - p->moves) * (double)move_ns(p),
		   took, sizeof(took));
	err_set(err, WEFT_ELIMIT, "%s: robots have to make %lld moves, which "
		"takes about %s, and two more for each fibre that is dark or "
		"lossy; allowed are %lld",
		p->fabric->devices[c->device].name,
		(long long)all, took, (long long)w->options.max_moves);
	err_hint(err, "--moves %lld", (long long)(all + all / 10 + 2));
	return WEFT_ELIMIT;
}

/* On the record before there is light to explain. */
int power_light(struct walk *w, int device, struct optics_xc xc,
		struct err *err)
{
	struct power *p = w->p;
	struct power_circuit *c = &p->lit[p->n_lit];
	int rc;

	if (power_is_lit(p, device, xc)) {
		return 0;
	}
	*c = (struct power_circuit){ .device = device, .xc = xc };
	p->n_lit++;
	rc = check_moves(w, c, err);
	if (rc == 0) {
		rc = tell(w, c, true, err);
	}
	if (rc) {
		p->n_lit--;	/* not made */
		return rc;
	}
	rc = change(w, c, true, err);
	c->made = rc == 0;
	usleep((useconds_t)(w->base[device].settle_us % 10000000));
	return rc;
}

/* Who lights the input that a blind feed begins at, -1: a laser. */
static const struct power_try *feeding_try(const struct power *p, int device)
{
	const struct power_device *dev = &p->devices[device];

	for (size_t k = p->tries.n; k > 0; k--) {
		const struct power_try *t = &p->tries.v[k - 1];

		if (t->way == POWER_INPUT && t->device == dev->feed_device &&
		    t->xc.in == dev->feed_in && t->xc.out == dev->feed_out) {
			return t;
		}
	}
	return NULL;
}

/* The circuit of the blind device comes first: it stays longest. */
static int light_over_blind(struct walk *w, int device, struct err *err)
{
	struct power *p = w->p;
	const struct power_device *dev = &p->devices[device];
	const struct power_try *t = feeding_try(p, device);
	int from = t ? t->from_device : -1, out = t ? t->from_out : -1;
	int rc = power_light(w, dev->feed_device,
			     (struct optics_xc){ dev->feed_in, dev->feed_out },
			     err);

	if (rc == 0 && from >= 0) {
		rc = power_light_source(w, from, err);
	}
	return rc || from < 0 ? rc : power_light(w, from, (struct optics_xc){
				p->devices[from].source, out }, err);
}

int power_light_source(struct walk *w, int device, struct err *err)
{
	const struct power_device *dev = &w->p->devices[device];
	int rc;

	if (dev->feed_device < 0) {
		return 0;
	}
	if (w->p->devices[dev->feed_device].blind) {
		return light_over_blind(w, device, err);
	}
	rc = power_light_source(w, dev->feed_device, err);
	return rc ? rc : power_light(w, dev->feed_device, (struct optics_xc){
				w->p->devices[dev->feed_device].source,
				dev->feed_out }, err);
}

/* ---- what an earlier run left ---- */

/* A robot goes on with its move. Told the same again, its driver waits for it,
 * and sends nothing if the move is over. */
static int finish_move(struct walk *w, struct power_circuit *c,
		       struct err *err)
{
	int rc = testbed_device_change(w->devices[c->device], !c->going,
				       c->xc, err);

	c->made = rc == 0 && !c->going;
	return rc;
}

static bool was_tried(const struct power *p, const struct power_circuit *c)
{
	for (size_t k = 0; k < p->tries.n; k++) {
		if (p->tries.v[k].device == c->device &&
		    p->tries.v[k].xc.in == c->xc.in &&
		    p->tries.v[k].xc.out == c->xc.out) {
			return true;
		}
	}
	return false;
}

int power_recover(struct walk *w, struct err *err)
{
	struct power *p = w->p;
	int rc = 0, n = 0;

	while (rc == 0 && p->n_lit &&
	       !p->devices[p->lit[p->n_lit - 1].device].blind) {
		rc = unlight_last(w, err);
	}
	for (int i = 0; rc == 0 && i < p->n_lit; i++) {
		rc = finish_move(w, &p->lit[i], err);
	}
	for (int i = 0; rc == 0 && i < p->n_lit; i++) {
		if (p->lit[i].made) {
			p->lit[n++] = p->lit[i];
		}
	}
	p->n_lit = rc ? p->n_lit : n;
	/* Without levels it was never begun in earnest. */
	while (rc == 0 && p->n_lit &&
	       (!p->has_levels ||
		(!blind_is_feed(p, &p->lit[p->n_lit - 1]) &&
		 was_tried(p, &p->lit[p->n_lit - 1])))) {
		rc = unlight_last(w, err);
	}
	return rc;
}
