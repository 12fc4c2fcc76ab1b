/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the light of each intended circuit is: one value, made here from all that is known of it,
 * whenever its device was read, hosts heard something else, or another change was committed.
 * What its device lists and measures, its ports, those that the file marks and what hosts hear
 * make it dark; a loss beyond what is good makes it lossy. The counts of a device, the proof of
 * its circuits, and what plans start from follow from that.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* ---- what open changes explain --------------------------------------------- */

/* A circuit that was only to be kept may be lost during a change as well,
 * when the device restarted. */
static bool step_explains(const struct store_step *st, enum store_op op, struct optics_xc xc)
{
	bool lost = op == STORE_DEL && st->op == STORE_KEEP && st->state != STORE_PLANNED;

	return (st->op == op || lost) && optics_xc_cmp(&st->xc, &xc) == 0;
}

/* True when an open change may have made (ADD) or deleted (DEL) xc. */
static bool pending(const struct device *d, enum store_op op, struct optics_xc xc)
{
	struct work_cursor at = { 0 };
	const struct store_work *w;

	while ((w = device_next_work(d, &at))) {
		for (int i = 0; i < w->n_steps; i++) {
			if (step_explains(&w->steps[i], op, xc)) {
				return true;
			}
		}
	}
	return false;
}

static bool program_pending(const struct device *d, const struct ring_programs *has)
{
	struct work_cursor at = { 0 };
	const struct store_work *w;

	while ((w = device_next_work(d, &at))) {
		if (work_moves(w) && program_same(work_new(w), has)) {
			return true;
		}
	}
	return false;
}

static void assess_program(struct device *d)
{
	const struct ring_programs *has = snap_program(&d->now.snap);
	const struct ring_programs *want = d->intent.has_program &&
		d->intent.programs.n ? &d->intent.programs : NULL;

	if (program_same(has, want)) {
		return;
	}
	if (program_pending(d, has)) {
		d->now.n_pending++;
		return;
	}
	d->now.n_missing += want != NULL;
	d->now.n_unexpected += has != NULL;
}

/* ---- programs of rings ------------------------------------------------------ */

/* Programs that stay the same stay proven. */
static void keep_program_proofs(struct device *d, const struct ring_programs *now)
{
	const struct ring_programs *old = &d->intent.programs;
	unsigned char *proofs = x_new((size_t)now->n + 1, sizeof(*proofs));

	for (int i = 0; i < now->n; i++) {
		const struct ring_program *was = ring_programs_find(old, now->v[i].name);

		if (was && ring_program_equal(was, &now->v[i])) {
			proofs[i] = d->program_proofs[was - old->v];
		}
	}
	free(d->program_proofs);
	d->program_proofs = proofs;
}

/* Where a ring does not say which of its resonators hold no wave, any program may have them. */
static void prove_programs(struct device *d)
{
	const struct drv_snapshot *s = &d->now.snap;
	bool known = d->now.reachable && (s->n_unlocked == 0 || s->n_lost > 0);

	for (int i = 0; i < d->intent.programs.n; i++) {
		unsigned char *proof = &d->program_proofs[i];

		if (!known || !ring_program_plays(&d->intent.programs.v[i], snap_program(s),
						  s->lost, s->n_lost)) {
			*proof = APPLY_UNVERIFIED;
		} else if (*proof < APPLY_READ_BACK) {
			*proof = APPLY_READ_BACK;
		}
	}
}

enum apply_level apply_program_level(const struct apply *a, int device, const char *job)
{
	const struct device *d = a->set->v[device];
	const struct ring_programs *has = &d->intent.programs;
	const struct ring_program *p = ring_programs_find(has, job);

	return p ? (enum apply_level)d->program_proofs[p - has->v] : APPLY_UNVERIFIED;
}

/* ---- circuits ---------------------------------------------------------------- */

/* Its place in a sorted list, or NULL. */
static const struct optics_xc *find_xc(const struct optics_xc *xcs, int n, struct optics_xc xc)
{
	return n ? bsearch(&xc, xcs, (size_t)n, sizeof(xc), optics_xc_cmp) : NULL;
}

/* Whether the file says that a port of it does not work. */
static bool is_marked(const struct device *d, struct optics_xc xc)
{
	return d->file && (model_port_is_dead(d->file, false, xc.in) ||
			   model_port_is_dead(d->file, true, xc.out));
}

static bool has_no_light(const struct device *d, const struct drv_xc *x)
{
	return x->state == DRV_BLOCKED || x->state == DRV_FAILED || x->no_signal ||
	       find_xc(d->silent, d->n_silent, x->xc) || is_marked(d, x->xc) ||
	       (d->now.n_bad_ports > 0 && find_bad_port(&d->now.snap, d->any_to_any, x->xc));
}

bool device_is_dark(const struct device *d, const struct drv_xc *x)
{
	const struct optics_xc *at = find_xc(d->intent.xcs, d->intent.n_xcs, x->xc);

	return at ? d->circuits[at - d->intent.xcs].health < APPLY_LOSSY : has_no_light(d, x);
}

int device_load_ages(struct device *d, struct err *err)
{
	struct store_age *v;
	int n, rc = store_ages(d->a->store, d->name, &v, &n, err);

	if (rc) {
		return rc;
	}
	for (int i = 0; i < n; i++) {
		const struct optics_xc *at = find_xc(d->intent.xcs, d->intent.n_xcs, v[i].xc);

		if (at && v[i].health > APPLY_UNKNOWN && v[i].health <= APPLY_LIT) {
			d->circuits[at - d->intent.xcs] = (struct apply_circuit){
				.health = (enum apply_health)v[i].health,
				.since_ns = v[i].since_ns };
		}
	}
	free(v);
	device_assess(d);
	return 0;
}

/* Circuits that stay intended stay as they are, and since when. */
static void keep_health(struct device *d, const struct store_light *now)
{
	struct apply_circuit *v = x_new((size_t)now->n_xcs + 1, sizeof(*v));

	for (int i = 0; i < now->n_xcs; i++) {
		const struct optics_xc *at = find_xc(d->intent.xcs, d->intent.n_xcs, now->xcs[i]);

		if (at) {
			v[i] = d->circuits[at - d->intent.xcs];
		}
	}
	free(d->circuits);
	d->circuits = v;
}

void device_take_intent(struct device *d, struct store_light *l)
{
	keep_program_proofs(d, &l->programs);
	keep_health(d, l);
	store_light_fini(&d->intent);
	d->intent = *l;
	device_assess(d);
}

static enum apply_health health_of(const struct device *d, const struct drv_xc *x,
				     struct optics_xc xc)
{
	struct apply_loss loss;

	if (!x || x->state == DRV_BLOCKED) {
		return pending(d, STORE_DEL, xc) ? APPLY_PENDING : APPLY_MISSING;
	}
	if (has_no_light(d, x)) {
		return APPLY_DARK;
	}
	loss_judge(d, x, &loss);
	return loss.over || loss.worse ? APPLY_LOSSY : APPLY_LIT;
}

struct apply_circuit apply_circuit(const struct apply *a, int device, struct optics_xc xc)
{
	const struct device *d = a->set->v[device];
	const struct optics_xc *at = find_xc(d->intent.xcs, d->intent.n_xcs, xc);
	struct apply_circuit c = { .health = APPLY_MISSING };

	if (at) {
		return d->circuits[at - d->intent.xcs];
	}
	if (snap_find(&d->now.snap, xc)) {
		c.health = pending(d, STORE_ADD, xc) ? APPLY_PENDING : APPLY_UNEXPECTED;
	}
	return c;
}

static void note_lossy(struct device *d, const struct drv_xc *x)
{
	struct apply_loss loss;

	if (d->now.n_lossy++ == 0) {
		loss_judge(d, x, &loss);
		loss_text(x, &loss, d->now.lossy, sizeof(d->now.lossy));
	}
}

/* The health of one intended circuit, and how far it is proven: that is lost with the light. */
static void assess_circuit(struct device *d, int i, int64_t at_ns)
{
	const struct drv_xc *x = snap_find(&d->now.snap, d->intent.xcs[i]);
	enum apply_health health = health_of(d, x, d->intent.xcs[i]);
	struct apply_circuit *c = &d->circuits[i];
	int *proof = &d->intent.proofs[i];

	/* The map of an earlier process does not say what was dark. */
	if (d->from_store && health == APPLY_LIT && c->health >= APPLY_DARK) {
		health = c->health;
	}
	c->since_ns = c->health == health ? c->since_ns : at_ns;
	c->health = health;
	if (!d->now.reachable || health < APPLY_LOSSY || x->state != DRV_TUNED) {
		*proof = APPLY_UNVERIFIED;
	} else if (*proof < APPLY_READ_BACK) {
		*proof = APPLY_READ_BACK;
	}
	c->level = (enum apply_level)*proof;
	if (health == APPLY_LOSSY && !d->from_store) {
		note_lossy(d, x);
	}
}

/* Also tells, by *lit, whether all intended circuits carry light. */
static void assess_circuits(struct device *d, bool *lit)
{
	struct apply_device *now = &d->now;
	int64_t at_ns = d->from_store ? now->read_at_ns : clk_wall_ns();

	for (int i = 0; i < d->intent.n_xcs; i++) {
		const struct apply_circuit *c = &d->circuits[i];

		assess_circuit(d, i, at_ns);
		now->n_missing += c->health == APPLY_MISSING;
		now->n_pending += c->health == APPLY_PENDING;
		now->n_dark += c->health == APPLY_DARK;
		*lit = *lit && (c->level || c->health == APPLY_MISSING);
	}
	for (int i = 0; i < now->snap.n_xcs; i++) {
		struct optics_xc xc = now->snap.xcs[i].xc;

		if (!device_intends(d, xc)) {
			*(pending(d, STORE_ADD, xc) ? &now->n_pending : &now->n_unexpected) += 1;
		}
	}
}

bool apply_set_silent(struct apply *a, int device, const struct optics_xc *xcs, int n)
{
	struct device *d = a->set->v[device];

	if (n == d->n_silent &&
	    (n == 0 || memcmp(xcs, d->silent, (size_t)n * sizeof(*xcs)) == 0)) {
		return false;
	}
	free(d->silent);
	d->silent = x_new((size_t)n + 1, sizeof(*xcs));
	d->n_silent = n;
	if (n) {
		memcpy(d->silent, xcs, (size_t)n * sizeof(*xcs));
	}
	device_assess(d);
	return true;
}

static void count_bad_ports(struct apply_device *now)
{
	now->n_bad_ports = 0;
	for (int i = 0; i < now->snap.n_ports; i++) {
		const struct drv_port *p = &now->snap.ports[i];

		now->n_bad_ports += p->failed || !p->enabled;
	}
}

void device_assess(struct device *d)
{
	struct apply_device *now = &d->now;
	bool lit = now->reachable && now->snap.n_unlocked == 0;

	now->n_missing = now->n_unexpected = now->n_pending = now->n_dark = now->n_lossy = 0;
	now->lossy[0] = '\0';
	if (now->ever_read) {
		count_bad_ports(now);
		assess_program(d);
		prove_programs(d);
		assess_circuits(d, &lit);
	}
	/* Proof is lost with the light or the session, and comes back only
	 * as far as a single reading goes. */
	if (!lit || now->n_missing) {
		d->proof = APPLY_UNVERIFIED;
	} else if (d->proof < APPLY_READ_BACK) {
		d->proof = APPLY_READ_BACK;
	}
	now->level = d->proof;
	now->intent = &d->intent;
	now->circuits = d->circuits;
	now->version = ++d->a->version;
}
