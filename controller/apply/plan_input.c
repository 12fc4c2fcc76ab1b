/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan starts from: intent and last readings in plan.h's terms, and what
 * carrying a plan out would send.
 *
 * A plan may be made for another fabric than the present one, so devices are
 * matched by their session, not by name alone: the reading of a device that
 * merely has the same name says nothing of the new one. What open changes made
 * counts as intent, for it is weft's own and to be replaced or kept like it. A
 * device that another weftd leads is taken to hold what is intended.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

/* Memory behind one plan base. Programs are borrowed from devices and open
 * changes. */
struct plan_input {
	int n;				/* devices of the fabric planned for */
	struct plan_light *intent, *observed;	/* [n]; not known where no
						 * session matches */
	int64_t *port_ns, *device_ns;	/* by index of the fabric; 0: nothing
					 * was learned */
};

static void light_fini(struct plan_light *l)
{
	free((void *)l->xcs);
	free((void *)l->dark);
	free((void *)l->no_light);
	free((void *)l->fixed);
	free((void *)l->pending);
	free((void *)l->bad_in);
	free((void *)l->bad_out);
	free((void *)l->dead);
	free((void *)l->lost);
	free((void *)l->losses);
	free((void *)l->powers);
}

void plan_input_free(struct plan_input *b)
{
	if (!b) {
		return;
	}
	for (int i = 0; i < b->n; i++) {
		if (b->intent) {
			light_fini(&b->intent[i]);
		}
		if (b->observed) {
			light_fini(&b->observed[i]);
		}
	}
	free(b->intent);
	free(b->observed);
	free(b->port_ns);
	free(b->device_ns);
	free(b);
}

/* ---- observed ------------------------------------------------------------ */

static void copy_map(const struct device *d, struct plan_light *out)
{
	const struct drv_snapshot *s = &d->now.snap;
	struct optics_xc *xcs = x_new(s->n_xcs + 1, sizeof(*xcs));
	struct optics_xc *dark = x_new(s->n_xcs + 1, sizeof(*dark));
	struct optics_xc *no_light = x_new(s->n_xcs + 1, sizeof(*no_light));

	out->xcs = xcs;
	out->dark = dark;
	out->no_light = no_light;
	for (int i = 0; i < s->n_xcs; i++) {
		xcs[i] = s->xcs[i].xc;
		/* Listed without light: an apply makes it again. */
		if (s->xcs[i].state == DRV_BLOCKED || s->xcs[i].state == DRV_FAILED) {
			dark[out->n_dark++] = xcs[i];
		}
		if (device_is_dark(d, &s->xcs[i])) {
			no_light[out->n_no_light++] = xcs[i];
		}
	}
	out->n_xcs = s->n_xcs;
}

/* Circuits that a device moves no more, as a port of theirs is worn. */
static void copy_fixed(const struct drv_snapshot *s, struct plan_light *out)
{
	struct optics_xc *fixed = x_new(s->n_xcs + 1, sizeof(*fixed));

	out->fixed = fixed;
	for (int i = 0; i < s->n_xcs; i++) {
		const struct optics_xc xc = s->xcs[i].xc;
		bool worn = false;

		for (int k = 0; k < s->n_ports && !worn; k++) {
			const struct drv_port *p = &s->ports[k];

			worn = p->worn && p->index == (p->is_out ? xc.out : xc.in);
		}
		if (worn) {
			fixed[out->n_fixed++] = xc;
		}
	}
}

/* A worn port keeps what it has. */
static bool has_circuit(const struct drv_snapshot *s, const struct drv_port *p)
{
	for (int i = 0; i < s->n_xcs; i++) {
		if ((p->is_out ? s->xcs[i].xc.out : s->xcs[i].xc.in) == p->index) {
			return true;
		}
	}
	return false;
}

static void copy_bad_ports(const struct drv_snapshot *s, struct plan_light *out)
{
	int *in = x_new(s->n_ports + 1, sizeof(*in));
	int *egress = x_new(s->n_ports + 1, sizeof(*egress));

	out->bad_in = in;
	out->bad_out = egress;
	for (int i = 0; i < s->n_ports; i++) {
		const struct drv_port *p = &s->ports[i];

		if (p->enabled && !p->failed && (!p->worn || has_circuit(s, p))) {
			continue;
		}
		if (p->is_out) {
			egress[out->n_bad_out++] = p->index;
		} else {
			in[out->n_bad_in++] = p->index;
		}
	}
}

/* What failed, and resonators whose lock got lost: until they are locked again
 * there is no light by them either. That one finds no wave is no failure of its
 * own. */
static void copy_dead(const struct drv_snapshot *s, struct plan_light *out)
{
	struct ring_fault *dead = x_new((size_t)s->n_dead + s->n_lost + 1, sizeof(*dead));
	int n = s->n_dead;

	if (n) {
		memcpy(dead, s->dead, (size_t)n * sizeof(*dead));
	}
	for (int i = 0; i < s->n_lost; i++) {
		const struct ring_fault *d = &s->lost[i];

		if (d->why == RESONATOR_LOCK_LOST &&
		    !(s->n_dead && bsearch(d, s->dead, (size_t)s->n_dead,
					   sizeof(*d), ring_fault_cmp))) {
			dead[n++] = *d;
		}
	}
	qsort(dead, (size_t)n, sizeof(*dead), ring_fault_cmp);
	out->dead = dead;
	out->n_dead = n;
}

static void copy_lost(const struct drv_snapshot *s, struct plan_light *out)
{
	struct ring_fault *lost = x_new((size_t)s->n_lost + 1, sizeof(*lost));

	if (s->n_lost) {
		memcpy(lost, s->lost, (size_t)s->n_lost * sizeof(*lost));
	}
	out->lost = lost;
	out->n_lost = s->n_lost;
}

static int by_xc(const void *a, const void *b)
{
	const struct plan_known_loss *x = a, *y = b;
	int c = optics_xc_cmp(&x->xc, &y->xc);

	return c ? c : (x->source > y->source) - (x->source < y->source);
}

/* What was learned goes before what the maker says. */
static void copy_losses(const struct device *d, struct plan_light *out)
{
	const struct drv_snapshot *s = &d->now.snap;
	struct plan_known_loss *v = x_new((size_t)d->n_losses + s->n_xcs + 1, sizeof(*v));
	int n = 0, kept = 0;

	for (int i = 0; i < d->n_losses; i++) {
		v[n++] = (struct plan_known_loss){
			d->losses[i].xc, d->losses[i].mdb, PLAN_LEARNED };
	}
	for (int i = 0; i < s->n_xcs; i++) {
		if (s->xcs[i].has_factory_loss) {
			v[n++] = (struct plan_known_loss){
				s->xcs[i].xc, s->xcs[i].factory_loss_mdb,
				PLAN_FACTORY };
		}
	}
	qsort(v, (size_t)n, sizeof(*v), by_xc);
	for (int i = 0; i < n; i++) {
		if (kept == 0 || optics_xc_cmp(&v[kept - 1].xc, &v[i].xc)) {
			v[kept++] = v[i];
		}
	}
	out->losses = v;
	out->n_losses = kept;
}

ORDER_BY(by_input, struct plan_known_power, in)

/* Only while the reading is young: lasers are switched off and on, fibres are
 * pulled. */
static void copy_powers(const struct device *d, struct plan_light *out)
{
	const struct drv_snapshot *s = &d->now.snap;
	int64_t age_ns = clk_wall_ns() - d->now.read_at_ns;
	bool young = age_ns >= 0 && age_ns <= APPLY_POWER_AGE_NS;
	struct plan_known_power *v = x_new((size_t)s->n_ports + 1, sizeof(*v));

	out->powers = v;
	for (int i = 0; i < s->n_ports && young; i++) {
		const struct drv_port *p = &s->ports[i];

		if (p->has_power && !p->is_out) {
			v[out->n_powers++] = (struct plan_known_power){
				p->index, p->power_mdbm };
		}
	}
	qsort(v, (size_t)out->n_powers, sizeof(*v), by_input);
}

static void fill_observed(const struct device *d, struct plan_light *out)
{
	const struct drv_snapshot *s = &d->now.snap;

	if (!d->now.ever_read) {
		return;
	}
	out->known = true;
	out->programs = snap_program(s);
	out->memory = s->caps.memory;
	out->max_programs = s->caps.max_programs;
	out->overlap = s->caps.overlap;
	out->reload = s->caps.reloads && s->n_unlocked > 0;
	copy_map(d, out);
	copy_fixed(s, out);
	copy_dead(s, out);
	copy_lost(s, out);
	copy_losses(d, out);
	copy_powers(d, out);
	copy_bad_ports(s, out);
}

/* ---- intent -------------------------------------------------------------- */

typedef VEC(struct optics_xc) xc_list;

static const struct store_work *find_work(const struct store_journal *j, const char *device)
{
	for (int i = 0; i < j->n_works; i++) {
		if (strcmp(j->works[i].device, device) == 0) {
			return &j->works[i];
		}
	}
	return NULL;
}

/* What open changes make; what they make elsewhere is not known. */
static void fill_pending(const struct apply *a, const struct device *d, struct plan_light *out)
{
	xc_list list = { 0 };

	for (int k = 0; k < a->n_open && !d->now.elsewhere; k++) {
		const struct store_work *w = find_work(&a->open[k], d->name);

		for (int i = 0; w && i < w->n_steps; i++) {
			if (w->steps[i].op == STORE_ADD) {
				vec_push(&list, w->steps[i].xc);
			}
		}
		if (w && w->is_ring && work_moves(w) && work_new(w) &&
		    program_same(work_new(w), snap_program(&d->now.snap))) {
			out->programs = work_new(w);
		}
	}
	if (list.n) {
		qsort(list.v, list.n, sizeof(*list.v), optics_xc_cmp);
	}
	out->pending = list.v;
	out->n_pending = (int)list.n;
}

static void fill_intent(const struct apply *a, const struct device *d, struct plan_light *out)
{
	struct optics_xc *xcs = x_new((size_t)d->intent.n_xcs + 1, sizeof(*xcs));

	out->known = true;
	if (d->intent.has_program) {
		out->programs = &d->intent.programs;
	}
	for (; out->n_xcs < d->intent.n_xcs; out->n_xcs++) {
		xcs[out->n_xcs] = d->intent.xcs[out->n_xcs];
	}
	out->xcs = xcs;
	fill_pending(a, d, out);
}

const struct device *plan_input_device(const struct apply *a, const struct model_device *m)
{
	const struct device *d = device_set_find(a->set, m->name);

	return d && device_is_same(d, m) ? d : NULL;
}

static int64_t learned_ns(const struct apply *a, enum store_timing_kind kind, const char *name)
{
	struct apply_timing t;

	return apply_learned(a, kind, name, &t) ? t.median_ns : 0;
}

static void fill_times(const struct apply *a, const struct model_fabric *f,
		       struct plan_input *b, struct plan_times *out)
{
	b->port_ns = x_new((size_t)f->n_ports + 1, sizeof(*b->port_ns));
	b->device_ns = x_new((size_t)f->n_devices + 1, sizeof(*b->device_ns));
	for (int i = 0; i < f->n_ports; i++) {
		b->port_ns[i] = learned_ns(a, STORE_REACTIVATION, f->ports[i].name);
	}
	for (int i = 0; i < f->n_devices; i++) {
		b->device_ns[i] = learned_ns(a, STORE_SWITCHING, f->devices[i].name);
	}
	*out = (struct plan_times){ f->n_ports, f->n_devices, b->port_ns,
				    b->device_ns };
}

void apply_plan_base(struct apply *a, const struct model_fabric *fabric, enum plan_mode mode,
		     struct plan_base *out)
{
	struct plan_input *b = x_new(1, sizeof(*b));

	plan_input_free(a->plan_input);
	a->plan_input = b;
	b->n = fabric->n_devices;
	b->intent = x_new(b->n + 1, sizeof(*b->intent));
	b->observed = x_new(b->n + 1, sizeof(*b->observed));
	for (int i = 0; i < b->n; i++) {
		const struct device *d = plan_input_device(a, &fabric->devices[i]);

		if (d) {
			fill_intent(a, d, &b->intent[i]);
			if (d->now.elsewhere) {
				fill_intent(a, d, &b->observed[i]);
			} else {
				fill_observed(d, &b->observed[i]);
			}
			/* What is intended was planned for what it can. */
			b->intent[i].overlap = b->observed[i].overlap;
		}
	}
	*out = (struct plan_base){ .generation = store_generation(a->store),
				   .mode = mode, .intent = b->intent,
				   .observed = b->observed };
	memcpy(out->state_uuid, store_uuid(a->store), sizeof(out->state_uuid));
	fill_times(a, fabric, b, &out->times);
}

/* ---- what a plan would send ---------------------------------------------- */

/* The limits of a device are known once this process has read it. */
static bool was_read(const struct device *d)
{
	return d->now.ever_read && d->now.snap.caps.n_in > 0;
}

/* Drivers by device: of the session, or, of a device that has none, opened for
 * the time into *opened. */
static int find_drivers(struct apply *a, const struct model_fabric *f, struct dry_run_device *v,
			struct drv **opened, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < f->n_devices && rc == 0; i++) {
		const struct device *d = plan_input_device(a, &f->devices[i]);

		if (d) {
			v[i].drv = d->drv;
			v[i].snap = was_read(d) ? &d->now.snap : NULL;
			continue;
		}
		rc = dry_run_open(a->loop, f, i, store_fence(a->store), &opened[i], err);
		v[i].drv = opened[i];
	}
	return rc;
}

int apply_explain(struct apply *a, const struct plan *p, dry_run_fn fn, void *arg, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	size_t n = (size_t)f->n_devices + 1;
	struct dry_run_device *v = x_new(n, sizeof(*v));
	struct drv **opened = x_new(n, sizeof(struct drv *));
	int rc = find_drivers(a, f, v, opened, err);

	if (rc == 0) {
		rc = dry_run_explain(p, v, fn, arg, err);
	}
	for (int i = 0; i < f->n_devices; i++) {
		if (opened[i]) {
			drv_close(opened[i], NULL, NULL);
		}
	}
	free(v);
	free(opened);
	return rc;
}
