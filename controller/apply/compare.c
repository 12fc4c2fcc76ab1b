/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings against what was planned. Pure: nothing is sent or written, so the
 * same functions decide before a stage, after it, while it is taken back, and
 * after a crash.
 *
 * A circuit that a device lists as blocked carries no light: a change may still
 * make it, and one that was to be made is not settled while it stays so.
 * Programs of rings are compared as a whole; none, and one without steps, are
 * the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"

const char *xc_text(struct optics_xc xc, char *buf, int size)
{
	snprintf(buf, size, "in %d -> out %d", xc.in + 1, xc.out + 1);
	return buf;
}

const char *step_text(const struct store_step *st, char *buf, int size)
{
	if (st->op == STORE_LOAD) {
		snprintf(buf, size, "the program");
		return buf;
	}
	return xc_text(st->xc, buf, size);
}

const struct drv_xc *snap_find(const struct drv_snapshot *s, struct optics_xc xc)
{
	/* drv_xc begins with its optics_xc, which is all the order needs. */
	return s->n_xcs ? bsearch(&xc, s->xcs, s->n_xcs, sizeof(*s->xcs), optics_xc_cmp) : NULL;
}

static bool share_port(bool any_to_any, struct optics_xc a, struct optics_xc b)
{
	return a.in == b.in || a.out == b.out || (any_to_any && (a.in == b.out || a.out == b.in));
}

const struct drv_xc *snap_holder(const struct drv_snapshot *s,
				 bool any_to_any, struct optics_xc xc, int *at)
{
	while (*at < s->n_xcs) {
		const struct drv_xc *x = &s->xcs[(*at)++];

		if (share_port(any_to_any, x->xc, xc)) {
			return x;
		}
	}
	return NULL;
}

const struct ring_programs *snap_program(const struct drv_snapshot *s)
{
	return s->programs.n ? &s->programs : NULL;
}

bool program_same(const struct ring_programs *a, const struct ring_programs *b)
{
	if (!a || !b) {
		return a == b;
	}
	return ring_programs_equal(a, b);
}

const struct ring_programs *work_old(const struct store_work *w)
{
	return w->has_old && w->old_programs.n ? &w->old_programs : NULL;
}

const struct ring_programs *work_new(const struct store_work *w)
{
	return w->has_new && w->new_programs.n ? &w->new_programs : NULL;
}

/* ---- before -------------------------------------------------------------- */

static int changed_elsewhere(struct err *err, const struct device *d, const char *what)
{
	err_set(err, WEFT_ESTALE, "%s: %s: changed by another user since the "
		"plan was made", d->name, what);
	err_hint(err, "look at the device and plan again");
	return WEFT_ESTALE;
}

static int bad_port(const struct device *d, const struct store_step *st,
		    const struct drv_port *p, struct err *err)
{
	char xc[48];

	return err_set(err, WEFT_EDEVICE, "%s: %s cannot be made: port %s %d "
		       "is %s", d->name, xc_text(st->xc, xc, sizeof(xc)),
		       p->is_out ? "out" : "in", p->index + 1,
		       p->failed ? "failed" : "disabled");
}

const struct drv_port *find_bad_port(const struct drv_snapshot *s, bool any_to_any,
				     struct optics_xc xc)
{
	for (int i = 0; i < s->n_ports; i++) {
		const struct drv_port *p = &s->ports[i];
		bool ours = p->index == (p->is_out ? xc.out : xc.in) ||
			    (any_to_any && (p->index == xc.in || p->index == xc.out));

		if (ours && (p->failed || !p->enabled)) {
			return p;
		}
	}
	return NULL;
}

static int check_ports(const struct store_step *st, const struct device *d, struct err *err)
{
	const struct drv_port *p = find_bad_port(&d->now.snap, d->any_to_any, st->xc);

	return p ? bad_port(d, st, p, err) : 0;
}

static bool deletes(const struct store_work *w, struct optics_xc xc)
{
	for (int i = 0; i < w->n_steps; i++) {
		if (w->steps[i].op == STORE_DEL && optics_xc_cmp(&w->steps[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

/* Listed without light: to make it is to bring it to light, or to make it again. */
static bool is_half_made(const struct drv_xc *x, struct optics_xc xc)
{
	return (x->state == DRV_BLOCKED || x->state == DRV_FAILED) &&
	       optics_xc_cmp(&x->xc, &xc) == 0;
}

/* The ports of xc may be held only by circuits that the change deletes, and
 * by xc itself as long as it has no light. */
static const struct drv_xc *find_obstacle(const struct store_work *w, const struct device *d,
					  struct optics_xc xc)
{
	const struct drv_xc *x;
	int at = 0;

	do {
		x = snap_holder(&d->now.snap, d->any_to_any, xc, &at);
	} while (x && (deletes(w, x->xc) || is_half_made(x, xc)));
	return x;
}

static int check_add(const struct store_work *w, const struct store_step *st,
		     const struct device *d, struct err *err)
{
	const struct drv_xc *other = find_obstacle(w, d, st->xc);
	char want[48], has[48], text[128];

	if (!other) {
		return check_ports(st, d, err);
	}
	xc_text(st->xc, want, sizeof(want));
	if (optics_xc_cmp(&other->xc, &st->xc) == 0) {
		snprintf(text, sizeof(text), "%s, to be made, is there already", want);
	} else {
		snprintf(text, sizeof(text), "%s is there, in the way of %s",
			 xc_text(other->xc, has, sizeof(has)), want);
	}
	return changed_elsewhere(err, d, text);
}

static int check_there(const struct store_step *st, int op, const struct device *d, struct err *err)
{
	char xc[48], text[96];

	if (snap_find(&d->now.snap, st->xc)) {
		return 0;
	}
	snprintf(text, sizeof(text), "%s, to be %s, is gone",
		 xc_text(st->xc, xc, sizeof(xc)),
		 op == STORE_DEL ? "deleted" : "kept");
	return changed_elsewhere(err, d, text);
}

static int check_load(const struct store_work *w, const struct device *d, struct err *err)
{
	const struct drv_snapshot *s = &d->now.snap;
	const struct ring_programs *p = work_new(w);

	if (!program_same(snap_program(s), work_old(w))) {
		return changed_elsewhere(err, d, snap_program(s) ?
					 "another program is loaded" :
					 "the program is gone");
	}
	if (p && ((s->caps.max_steps && ring_programs_steps(p) > s->caps.max_steps) ||
		  (s->caps.memory && ring_programs_bytes(p) > s->caps.memory) ||
		  (s->caps.max_programs && p->n > s->caps.max_programs))) {
		return err_set(err, WEFT_ELIMIT, "%s: %d programs of at most "
			       "%u steps and %zu bytes together do not fit; "
			       "the device holds %d, %u and %llu", d->name,
			       p->n, ring_programs_steps(p), ring_programs_bytes(p),
			       s->caps.max_programs, s->caps.max_steps,
			       (unsigned long long)s->caps.memory);
	}
	return 0;
}

int compare_before(const struct store_work *w, int stage, const struct device *d, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < w->n_steps && rc == 0; i++) {
		const struct store_step *st = &w->steps[i];
		int op = step_op(st, stage);

		if (op == STORE_LOAD) {
			rc = check_load(w, d, err);
		} else if (op == STORE_ADD) {
			rc = check_add(w, st, d, err);
		} else if (op != STEP_NONE) {
			rc = check_there(st, op, d, err);
		}
	}
	return rc;
}

/* ---- after --------------------------------------------------------------- */

static int not_as_planned(const struct store_step *st, int op,
			  const struct device *d, struct err *err)
{
	int at = 0;
	const struct drv_xc *other = snap_holder(&d->now.snap, d->any_to_any, st->xc, &at);
	char want[48], has[48];

	xc_text(st->xc, want, sizeof(want));
	if (op == STORE_DEL) {
		return err_set(err, WEFT_EVERIFY, "%s: %s was to be deleted, "
			       "but the device still has it", d->name, want);
	}
	return err_set(err, WEFT_EVERIFY, "%s: %s was to be %s, but the device "
		       "%s%s", d->name, want,
		       op == STORE_ADD ? "made" : "kept",
		       other ? "has " : "does not have it",
		       other ? xc_text(other->xc, has, sizeof(has)) : "");
}

static int check_light(const struct store_step *st, int op,
		       const struct device *d, bool *settling, struct err *err)
{
	const struct drv_xc *x = snap_find(&d->now.snap, st->xc);
	char xc[48];

	if ((x == NULL) != (op == STORE_DEL)) {
		return not_as_planned(st, op, d, err);
	}
	if (x && x->state == DRV_FAILED) {
		return err_set(err, WEFT_EVERIFY, "%s: the device says that "
			       "%s failed", d->name,
			       xc_text(st->xc, xc, sizeof(xc)));
	}
	if (x && x->state != DRV_TUNED) {
		*settling = true;
		err_set(err, WEFT_EVERIFY, "%s: %s is still %s", d->name,
			xc_text(st->xc, xc, sizeof(xc)),
			drv_state_name(x->state));
	}
	return 0;
}

static int check_loaded(const struct store_work *w, const struct device *d,
			bool *settling, struct err *err)
{
	const struct drv_snapshot *s = &d->now.snap;
	const struct ring_programs *has = snap_program(s);

	if (!program_same(has, work_new(w))) {
		return err_set(err, WEFT_EVERIFY, "%s: the program was to be "
			       "%s, but the device has %s", d->name,
			       work_new(w) ? "loaded" : "emptied",
			       !has ? "none" :
			       program_same(has, work_old(w)) ? "the old one" :
			       "another one");
	}
	if (has && s->n_unlocked) {
		*settling = true;
		err_set(err, WEFT_EVERIFY, "%s: %d settings are not locked: "
			"%s", d->name, s->n_unlocked, s->lock_detail);
	}
	return 0;
}

int compare_after(const struct store_work *w, int stage, const struct device *d, bool *settling,
		  int *at, struct err *err)
{
	int rc = 0;

	*settling = false;
	*at = -1;
	for (int i = 0; i < w->n_steps && rc == 0; i++) {
		int op = step_op(&w->steps[i], stage);
		bool moves = false;

		if (op == STORE_LOAD) {
			rc = check_loaded(w, d, &moves, err);
		} else if (op != STEP_NONE) {
			rc = check_light(&w->steps[i], op, d, &moves, err);
		}
		*settling |= moves;
		*at = rc || moves ? i : *at;
	}
	return rc;
}

bool compare_gap(const struct store_step *st, const struct device *d)
{
	const struct drv_xc *x = snap_find(&d->now.snap, st->xc);
	int at = 0;

	if (x) {
		return x->state != DRV_TUNED;
	}
	return !snap_holder(&d->now.snap, d->any_to_any, st->xc, &at);
}

bool step_is_unknown(const struct store_step *st)
{
	return st->op != STORE_KEEP && (st->state == STORE_SENT || st->state == STORE_UNKNOWN);
}

enum store_step_state compare_step(const struct store_work *w, const struct store_step *step,
				   const struct drv_snapshot *snap)
{
	const struct drv_xc *x;
	bool there;

	if (step->op == STORE_LOAD) {
		const struct ring_programs *has = snap_program(snap);

		return program_same(has, work_old(w)) ? STORE_AS_BEFORE :
		       program_same(has, work_new(w)) ? STORE_AS_PLANNED :
							STORE_UNKNOWN;
	}
	if (step->op == STORE_LEAVE) {
		return step->state;
	}
	x = snap_find(snap, step->xc);
	there = x != NULL;
	/* Half deleted or half made: a device of two phases lists it, without
	 * light; or made, and failed. What was never sent was so before. */
	if (x && (x->state == DRV_BLOCKED ||
		  (x->state == DRV_FAILED && step->op == STORE_ADD))) {
		return step->op != STORE_KEEP &&
		       (step->state == STORE_PLANNED ||
			step->state == STORE_AS_BEFORE) ? STORE_AS_BEFORE :
							  STORE_UNKNOWN;
	}
	if (step->op == STORE_KEEP) {
		return there ? STORE_AS_PLANNED : STORE_UNKNOWN;
	}
	return there == (step->op == STORE_ADD) ? STORE_AS_PLANNED : STORE_AS_BEFORE;
}
