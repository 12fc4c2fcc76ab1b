/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of light that weft did not make: told by comparing each reading of a
 * device with the one before. What a change of weft's own has sent explains
 * itself; the rest is recorded with when it happened, as far as readings tell,
 * and whom the device names, and stays on record until it is right again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* One comparison of a device's readings. */
struct external_scan {
	struct device *d;
	const struct drv_snapshot *before;	/* NULL: none */
	int64_t before_ns;
	int n_open;
	struct store_external_change *open;
	external_list *out;
};

/* ---- what a change of weft's own explains -------------------------------- */

static bool was_sent(const struct store_step *st, struct optics_xc xc)
{
	return (st->op == STORE_ADD || st->op == STORE_DEL) &&
	       st->state != STORE_PLANNED && optics_xc_cmp(&st->xc, &xc) == 0;
}

/* The open change that has sent a command about this circuit, or 0. */
static int64_t moved_by(const struct device *d, struct optics_xc xc)
{
	struct work_cursor at = { 0 };
	const struct store_work *w;

	while ((w = device_next_work(d, &at))) {
		for (int i = 0; i < w->n_steps; i++) {
			if (was_sent(&w->steps[i], xc)) {
				return at.journal->change.id;
			}
		}
	}
	return 0;
}

static int64_t loaded_by(const struct device *d)
{
	struct work_cursor at = { 0 };
	const struct store_work *w;

	while ((w = device_next_work(d, &at))) {
		if (w->is_ring && work_moves(w) && w->steps[0].state != STORE_PLANNED) {
			return at.journal->change.id;
		}
	}
	return 0;
}

static int64_t explained_by(const struct device *d, const struct store_external_change *f)
{
	switch (f->kind) {
	case STORE_EXTERNAL_PROGRAM:
		return loaded_by(d);
	case STORE_EXTERNAL_DISABLED:
		return 0;
	default:
		return moved_by(d, f->xc);
	}
}

/* ---- by whom ------------------------------------------------------------- */

static bool same_port(const struct device_report *s, struct optics_xc xc)
{
	return s->has_port && s->index == (s->is_out ? xc.out : xc.in);
}

/* The device's newest words since the reading before, about this port, or
 * about none. */
static const struct device_report *find_report(const struct external_scan *l, struct optics_xc xc)
{
	const struct device_report *best = NULL;

	for (int i = 0; i < REPORTS_KEPT; i++) {
		const struct device_report *s = &l->d->reports[i];

		if (!s->text[0] || s->at_ns < l->before_ns || (s->has_port && !same_port(s, xc))) {
			continue;
		}
		if (!best || s->has_port > best->has_port ||
		    (s->has_port == best->has_port && s->at_ns > best->at_ns)) {
			best = s;
		}
	}
	return best;
}

/* Who holds a port of the circuit now, as the device names him; or "". */
static const char *find_owner(const struct device *d, struct optics_xc xc)
{
	const struct drv_xc *x;
	int at = 0;

	while ((x = snap_holder(&d->now.snap, d->any_to_any, xc, &at))) {
		if (x->owner[0]) {
			return x->owner;
		}
	}
	return "";
}

static void name_origin(const struct external_scan *l, struct store_external_change *f)
{
	const struct device *d = l->d;
	const char *owner = f->kind == STORE_EXTERNAL_PROGRAM ||
			    f->kind == STORE_EXTERNAL_DISABLED ? "" :
			    find_owner(d, f->xc);
	const struct device_report *words = find_report(l, f->xc);
	char *text = f->who;

	if (d->now.restarted) {
		snprintf(text, sizeof(f->who), "the device restarted");
	} else if (strcmp(owner, "stale") == 0) {
		snprintf(text, sizeof(f->who), "a stale entry of the device");
	} else if (owner[0]) {
		snprintf(text, sizeof(f->who), "%s", owner);
	} else if (words) {
		snprintf(text, sizeof(f->who), "the device says: %.130s", words->text);
	} else if (f->kind == STORE_EXTERNAL_GONE && !d->now.snap.n_xcs) {
		snprintf(text, sizeof(f->who), "unknown; the map is empty, as "
			 "after a loss of power");
	} else {
		snprintf(text, sizeof(f->who), "unknown");
	}
}

static enum store_external_how how(const struct external_scan *l, struct optics_xc xc)
{
	const struct apply *a = l->d->a;

	/* Also of a device that answers only long after weftd's start. */
	return change_running(a) ? STORE_BY_CHANGE :
	       l->d->from_store ? STORE_BY_START :
	       a->how != STORE_BY_VERIFY && find_report(l, xc) ? STORE_BY_EVENT
							      : a->how;
}

/* ---- noticing ------------------------------------------------------------ */

static bool is_known(const struct external_scan *l, enum store_external_kind kind,
		     struct optics_xc xc)
{
	for (int i = 0; i < l->n_open; i++) {
		if (l->open[i].kind == kind && optics_xc_cmp(&l->open[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

bool apply_is_disturbed(const struct apply_device *d, int64_t now_ns)
{
	return d->disturbed.n > 0 && now_ns - d->disturbed.last_ns < APPLY_DISTURBED_NS;
}

/* While a change of ours runs: it is told, and the device has it on its list of
 * problems for a while. A device that restarts disturbs itself. */
static void note_disturbance(struct external_scan *l, const struct store_external_change *f)
{
	struct apply_device *now = &l->d->now;
	struct apply_disturbance *x = &now->disturbed;

	change_note_external(change_running(l->d->a), l->d, f);
	if (now->restarted) {
		return;
	}
	if (!apply_is_disturbed(now, clk_boot_ns())) {
		*x = (struct apply_disturbance){ .since_ns = now->read_at_ns };
	}
	x->n++;
	x->last_ns = clk_boot_ns();
	snprintf(x->who, sizeof(x->who), "%s", f->who);
}

static void note(struct external_scan *l, enum store_external_kind kind, struct optics_xc xc)
{
	struct store_external_change f = { .kind = kind, .xc = xc,
				   .right_ns = l->before_ns,
				   .noticed_ns = l->d->now.read_at_ns,
				   .how = how(l, xc) };

	if (is_known(l, kind, xc) || explained_by(l->d, &f) || maintenance_explains(l->d, xc)) {
		return;
	}
	snprintf(f.device, sizeof(f.device), "%s", l->d->name);
	name_origin(l, &f);
	if (change_running(l->d->a)) {
		note_disturbance(l, &f);
	}
	vec_push(l->out, f);
}

static bool is_out_of_effect(const struct drv_xc *x)
{
	return x->state == DRV_BLOCKED || x->state == DRV_FAILED;
}

/* What the running change has made and read back, and is gone between its two readings,
 * when it sends nothing. It is no intent yet, so that it is not put on record. */
static void note_own(struct external_scan *l)
{
	struct change *c = change_running(l->d->a);
	struct work_cursor at = { 0 };
	const struct store_work *w;

	while (c && c->phase == PHASE_READ_AGAIN && (w = device_next_work(l->d, &at))) {
		for (int i = 0; i < w->n_steps; i++) {
			const struct store_step *st = &w->steps[i];
			struct store_external_change f = { .kind = STORE_EXTERNAL_GONE,
							   .xc = st->xc };

			if (st->op == STORE_ADD && st->state == STORE_DONE &&
			    snap_find(l->before, st->xc) && !snap_find(&l->d->now.snap, st->xc)) {
				name_origin(l, &f);
				note_disturbance(l, &f);
			}
		}
	}
}

static void note_circuits(struct external_scan *l)
{
	const struct device *d = l->d;
	const struct drv_snapshot *now = &d->now.snap;

	for (int i = 0; i < d->intent.n_xcs; i++) {
		struct optics_xc xc = d->intent.xcs[i];
		const struct drv_xc *had = snap_find(l->before, xc);
		const struct drv_xc *has = snap_find(now, xc);

		if (had && !has) {
			note(l, STORE_EXTERNAL_GONE, xc);
		} else if (had && had->state == DRV_TUNED && is_out_of_effect(has)) {
			note(l, STORE_EXTERNAL_DARK, xc);
		}
	}
	for (int i = 0; i < now->n_xcs; i++) {
		struct optics_xc xc = now->xcs[i].xc;

		if (!device_intends(d, xc) && !snap_find(l->before, xc)) {
			note(l, STORE_EXTERNAL_APPEARED, xc);
		}
	}
}

static const struct drv_port *find_disabled(const struct drv_snapshot *s, bool is_out, int index)
{
	for (int i = 0; i < s->n_ports; i++) {
		const struct drv_port *p = &s->ports[i];

		if (p->is_out == is_out && p->index == index && !p->enabled) {
			return p;
		}
	}
	return NULL;
}

static void note_ports(struct external_scan *l)
{
	const struct drv_snapshot *now = &l->d->now.snap;

	for (int i = 0; i < now->n_ports; i++) {
		const struct drv_port *p = &now->ports[i];

		if (!p->enabled && !find_disabled(l->before, p->is_out, p->index)) {
			note(l, STORE_EXTERNAL_DISABLED, (struct optics_xc){
					p->is_out ? -1 : p->index,
					p->is_out ? p->index : -1 });
		}
	}
}

static const struct ring_programs *wanted_program(const struct device *d)
{
	return d->intent.has_program && d->intent.programs.n
		       ? &d->intent.programs : NULL;
}

static void note_program(struct external_scan *l)
{
	const struct ring_programs *want = wanted_program(l->d);

	if (program_same(snap_program(l->before), want) &&
	    !program_same(snap_program(&l->d->now.snap), want)) {
		note(l, STORE_EXTERNAL_PROGRAM, (struct optics_xc){ -1, -1 });
	}
}

/* ---- right again --------------------------------------------------------- */

static bool is_right(const struct device *d, const struct store_external_change *f)
{
	const struct drv_snapshot *now = &d->now.snap;
	const struct drv_xc *x = snap_find(now, f->xc);

	switch (f->kind) {
	case STORE_EXTERNAL_GONE:
		return x != NULL;
	case STORE_EXTERNAL_DARK:
		return x && x->state == DRV_TUNED;
	case STORE_EXTERNAL_APPEARED:
		return !x;
	case STORE_EXTERNAL_DISABLED:
		return !find_disabled(now, f->xc.in < 0, f->xc.in < 0 ? f->xc.out : f->xc.in);
	default:
		return program_same(snap_program(now), wanted_program(d));
	}
}

/* True when it is as the present intent has it. */
static bool is_accepted(const struct device *d, const struct store_external_change *f)
{
	switch (f->kind) {
	case STORE_EXTERNAL_GONE:
	case STORE_EXTERNAL_DARK:
		return !device_intends(d, f->xc);
	case STORE_EXTERNAL_APPEARED:
		return device_intends(d, f->xc);
	default:
		return false;
	}
}

/* change: the one that has just been committed, or 0. */
static void settle(struct external_scan *l, int64_t change, bool restores)
{
	for (int i = 0; i < l->n_open; i++) {
		struct store_external_change f = l->open[i];
		bool accepted = is_accepted(l->d, &f);

		if (!accepted && !is_right(l->d, &f)) {
			continue;
		}
		f.change = change ? change : explained_by(l->d, &f);
		f.outcome = accepted ? STORE_EXTERNAL_ACCEPTED :
			    !f.change ? STORE_EXTERNAL_BY_ITSELF :
			    restores ? STORE_EXTERNAL_RESTORED :
				       STORE_EXTERNAL_REPAIRED;
		f.resolved_ns = clk_wall_ns();
		vec_push(l->out, f);
	}
}

/* ---- looking ------------------------------------------------------------- */

/* What the disk does not take now is written after the next reading. */
static void save(struct device *d)
{
	struct apply *a = d->a;
	struct err err = { 0 };

	if (!d->external.n) {
		return;
	}
	if (store_external_changes_put(a->store, d->external.v, (int)d->external.n, &err)) {
		log_error("apply", "%s: changes by others are not recorded: "
			  "%s", d->name, err.msg);
		return;
	}
	if (a->on_external && !a->closing) {
		a->on_external(d->external.v, (int)d->external.n, a->external_arg);
	}
	d->external.n = 0;
}

static int begin(struct external_scan *l, struct err *err)
{
	const struct store_external_query q = { .device = l->d->name,
					       .open = true };

	l->out = &l->d->external;
	return store_external_changes(l->d->a->store, &q, &l->open, &l->n_open, err);
}

static void report(const struct device *d, int rc, const struct err *err)
{
	if (rc) {
		log_error("apply", "%s: changes by others are not known: %s", d->name, err->msg);
	}
}

void external_compare(struct device *d, const struct drv_snapshot *before, int64_t before_ns)
{
	struct external_scan l = { .d = d, .before = before, .before_ns = before_ns };
	struct err err = { 0 };
	int r;

	save(d);
	r = begin(&l, &err);
	if (r == 0 && before) {
		note_own(&l);
		note_circuits(&l);
		note_program(&l);
		if (!d->from_store) {
			note_ports(&l);
		}
	}
	/* While a change runs it may yet be taken back. */
	if (r == 0 && !change_running(d->a)) {
		settle(&l, 0, false);
	}
	report(d, r, &err);
	free(l.open);
	save(d);
}

void external_committed(struct device *d, int64_t change, bool restores)
{
	struct external_scan l = { .d = d };
	struct err err = { 0 };
	int r = d->now.reachable ? begin(&l, &err) : 0;

	if (r == 0) {
		settle(&l, change, restores);
	}
	report(d, r, &err);
	free(l.open);
	save(d);
}

void external_retire(struct apply *a, int64_t change)
{
	const struct store_external_query q = { .open = true };
	struct store_external_change *v = NULL;
	struct err err = { 0 };
	int n = 0, kept = 0, r = store_external_changes(a->store, &q, &v, &n, &err);

	for (int i = 0; i < n && r == 0; i++) {
		if (model_find_device(a->set->fabric, v[i].device) >= 0) {
			continue;
		}
		v[kept] = v[i];
		v[kept].outcome = STORE_EXTERNAL_ACCEPTED;
		v[kept].resolved_ns = clk_wall_ns();
		v[kept++].change = change;
	}
	if (r == 0 && kept) {
		r = store_external_changes_put(a->store, v, kept, &err);
	}
	if (r) {
		log_error("apply", "changes by others: %s", err.msg);
	}
	free(v);
}

void external_note_report(struct device *d, const struct drv_event *ev)
{
	struct device_report *s = &d->reports[d->n_reports++ % REPORTS_KEPT];

	*s = (struct device_report){ .at_ns = clk_wall_ns(), .has_port = ev->has_port,
			    .is_out = ev->is_out, .index = ev->index };
	snprintf(s->text, sizeof(s->text), "%s", ev->text ? ev->text : "");
}
