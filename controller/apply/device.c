/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device: its session, its queue of operations, what is known of it.
 *
 * Operations run one after the other, as no driver takes two at a time; each
 * holds a reference, so a device outlives the fabric that it was opened for
 * until it has answered. Sessions that two fabrics describe in the same way are
 * shared between their sets. Every reading is compared at once with what
 * circuits lost so far, with the reading before it and with intent. It never
 * changes intent: that is a committed change's alone.
 */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"

/* ---- open and close ------------------------------------------------------ */

/* Text that is the same for the same session. */
static char *signature(const struct model_device *m)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s|%s|%d|%d|%d|%d|%d|%lld", m->driver, m->address, m->kind, m->n_in,
		   m->n_out, m->any_to_any, m->ring.fibres, (long long)m->timeout_ms);
	buf_printf(&b, "|%d|%d", m->n_members, m->ring.channels);
	for (int i = 0; i < m->n_options; i++) {
		buf_printf(&b, "|%s=%s", m->options[i].key, m->options[i].value);
	}
	return buf_steal(&b);
}

static bool is_elsewhere(const struct apply *a, const struct model_device *m)
{
	for (char **domain = a->domains; domain && *domain; domain++) {
		if (strcmp(*domain, m->domain) == 0) {
			return false;
		}
	}
	return a->domains != NULL;
}

bool device_is_same(const struct device *d, const struct model_device *m)
{
	char *text = signature(m);
	bool same = strcmp(text, d->signature) == 0 && d->now.elsewhere == is_elsewhere(d->a, m);

	free(text);
	return same;
}

/*
 * What the lines of the present operation are to the audit trail: of one that
 * may move light on a switch each is kept; of readings in a change and of
 * loading programs (thousands of register writes) the first ones; what is read
 * beside changes is not kept.
 */
static int lines_kept(const struct device *d)
{
	const struct drv_batch *batch = d->head ? d->head->batch : NULL;

	if ((batch && !batch->programs) || (d->head && d->head->maintenance)) {
		return INT_MAX;
	}
	return batch || apply_running(d->a) ? AUDIT_LINES_PER_OP : 0;
}

static void on_trace(const char *name, const char *line, bool is_reply, void *arg)
{
	struct device *d = arg;
	int keep = lines_kept(d);

	(void)name;
	if (!is_reply && d->a->before_command) {
		d->a->before_command(d->a->before_arg);
	}
	if (d->lines >= keep) {
		d->lines_dropped += keep > 0;
		return;
	}
	d->lines++;
	store_audit(d->a->store, apply_running(d->a), d->name,
		    is_reply ? STORE_REPLY : STORE_COMMAND, line);
}

/* A part of a ring by the names that the file in force has. */
static void part_text(const struct device *d, const struct ring_fault *part,
		      char text[RING_FAULT_TEXT])
{
	const struct model_device *file = d->file;
	bool known = file && part->node < file->n_members;

	ring_fault_text(part, known ? file->n_members : d->now.snap.caps.n_in,
			known ? file->nodes : NULL, text);
}

static void on_event(struct drv *drv, const struct drv_event *ev, void *arg)
{
	struct device *d = arg;
	struct apply *a = d->a;
	struct drv_event named = *ev;
	char part[RING_FAULT_TEXT];

	(void)drv;
	if (ev->part) {
		part_text(d, ev->part, part);
		named.text = part;
		ev = &named;
	}
	if (ev->kind == DRV_EVENT_PROGRESS) {
		if (change_running(a)) {
			change_progress(a->change, d, ev);
		}
		return;
	}
	external_note_report(d, ev);
	if (a->on_device_event && !a->closing) {
		a->on_device_event(d->name, ev, a->device_event_arg);
	}
}

static int open_driver(struct device *d, const struct model_fabric *f, int index, struct err *err)
{
	int rc = dry_run_open(d->a->loop, f, index, store_fence(d->a->store), &d->drv, err);

	if (rc == 0) {
		drv_set_trace(d->drv, on_trace, d);
		drv_set_events(d->drv, on_event, d);
	}
	return rc;
}

/* The last reading of an earlier process: shown until the first of this
 * one, and what a restart of the device is told from. */
static int load_reading(struct device *d, struct err *err)
{
	struct store_observed o;
	struct drv_snapshot *s = &d->now.snap;
	int rc = store_observed_get(d->a->store, d->name, &o, err);

	if (rc) {
		return rc == WEFT_ENOTFOUND ? 0 : rc;
	}
	d->now.ever_read = d->from_store = true;
	d->now.read_at_ns = o.read_at_ns;
	snprintf(s->identity, sizeof(s->identity), "%s", o.identity);
	snprintf(s->epoch, sizeof(s->epoch), "%s", o.epoch);
	s->xcs = x_new(o.n_xcs + 1, sizeof(*s->xcs));
	for (int i = 0; i < o.n_xcs; i++) {
		/* Nothing was said against it when it was read. */
		s->xcs[s->n_xcs++] = (struct drv_xc){ .xc = o.xcs[i],
						      .state = DRV_TUNED };
	}
	if (o.has_program) {
		rc = store_program(d->a->store, o.program_digest, &s->programs, err);
		if (rc == WEFT_ENOTFOUND) {
			rc = 0;
		}
	}
	store_observed_fini(&o);
	return rc;
}

/* What the store has of it. Of a device elsewhere only the intent: what was read of it may be from
 * before another weftd led it. */
static int load_known(struct device *d, struct err *err)
{
	int rc;

	if (!d->now.elsewhere && ((rc = load_reading(d, err)) || (rc = loss_load(d, err)))) {
		return rc;
	}
	if ((rc = device_load_intent(d, err)) || d->now.elsewhere) {
		return rc;
	}
	return device_load_ages(d, err);
}

static void destroy(struct device *d)
{
	drv_snapshot_fini(&d->now.snap);
	store_light_fini(&d->intent);
	free(d->program_proofs);
	vec_fini(&d->external);
	free(d->silent);
	free(d->circuits);
	free(d->losses);
	free(d->name);
	free(d->driver);
	free(d->signature);
	free(d);
}

static void unlink_device(struct device *d)
{
	struct device **at = &d->a->devices;

	while (*at != d) {
		at = &(*at)->next;
	}
	*at = d->next;
}

static void on_closed(void *arg)
{
	struct device *d = arg;
	struct apply *a = d->a;

	d->closed = true;
	unlink_device(d);
	if (d->refs == 0) {
		destroy(d);
	}
	a->n_devices--;
	a->ended(a);
}

void device_close(struct device *d)
{
	if (d->closing) {
		return;
	}
	d->closing = true;
	if (d->drv) {
		drv_close(d->drv, on_closed, d);
	} else {
		on_closed(d);		/* it never came to a handle */
	}
}

int device_open(struct apply *a, const struct model_fabric *f, int index,
		struct device **out, struct err *err)
{
	const struct model_device *m = &f->devices[index];
	struct device *d = x_new(1, sizeof(*d));
	int rc;

	d->a = a;
	d->refs = 1;
	d->any_to_any = m->any_to_any;
	d->next = a->devices;
	a->devices = d;
	a->n_devices++;
	d->name = x_dup(m->name);
	d->driver = x_dup(m->driver);
	d->signature = signature(m);
	d->now.elsewhere = is_elsewhere(a, m);
	if ((rc = open_driver(d, f, index, err)) || (rc = load_known(d, err))) {
		device_unref(d);
		return rc;
	}
	d->now.name = d->name;
	d->now.driver = d->driver;
	if (d->now.elsewhere) {
		snprintf(d->now.problem, sizeof(d->now.problem),
			 "another weftd leads it (domain %.100s)", m->domain);
	} else {
		snprintf(d->now.problem, sizeof(d->now.problem), "not read yet");
	}
	*out = d;
	return 0;
}

struct device *device_ref(struct device *d)
{
	d->refs++;
	return d;
}

void device_unref(struct device *d)
{
	if (!d || --d->refs > 0) {
		return;
	}
	if (d->closed) {
		destroy(d);
	} else {
		device_close(d);
	}
}

/* ---- operations ---------------------------------------------------------- */

static void run_head(struct device *d);
static void answer_all(struct device *d);

static void answer(struct device *d, struct device_op *op, int rc, int n,
		   const struct drv_outcome *outcomes, const struct err *err)
{
	if (op->batch || op->maintenance) {
		op->submit_cb(d, rc, n, outcomes, err, op->arg);
	} else {
		op->read_cb(d, rc, err, op->arg);
	}
}

/* The answer may ask for the next operation, so the queue moves first. */
static void finish_head(struct device *d, int rc, int n, const struct drv_outcome *outcomes,
			const struct err *err)
{
	struct device_op *op = d->head;

	if (d->lines_dropped) {
		char text[64];

		snprintf(text, sizeof(text), "%d more lines not kept", d->lines_dropped);
		store_audit(d->a->store, apply_running(d->a), d->name, STORE_EVENT, text);
	}
	d->head = op->next;
	if (!d->head) {
		d->tail = NULL;
	} else if (!d->closing) {
		run_head(d);
	}
	answer(d, op, rc, n, outcomes, err);
	if (d->closing) {
		answer_all(d);
	}
	device_unref(d);
}

static void answer_all(struct device *d)
{
	struct err err = { 0 };

	err_set(&err, WEFT_ECANCELED, "%s: the device was closed", d->name);
	while (d->head) {
		finish_head(d, WEFT_ECANCELED, 0, NULL, &err);
	}
}

static void warn_dead(struct device *d, const struct drv_snapshot *s)
{
	char part[RING_FAULT_TEXT], more[32] = "";

	part_text(d, &s->dead[0], part);
	if (s->n_dead > 1) {
		snprintf(more, sizeof(more), " and %d more", s->n_dead - 1);
	}
	snprintf(d->now.problem, sizeof(d->now.problem), "failed: %s%s", part, more);
}

/* Names the first of weft's circuits that are listed without light. */
static void warn_blocked(struct device *d, const struct drv_snapshot *s)
{
	char what[48] = "", more[32] = "";
	int n = 0;

	for (int i = 0; i < s->n_xcs; i++) {
		const struct drv_xc *x = &s->xcs[i];

		if (x->state == DRV_BLOCKED && device_intends(d, x->xc) && !n++) {
			xc_text(x->xc, what, sizeof(what));
		}
	}
	if (n > 1) {
		snprintf(more, sizeof(more), ", and %d more", n - 1);
	}
	if (n) {
		snprintf(d->now.problem, sizeof(d->now.problem), "%s is listed"
			 ", but blocked: it has no light%s", what, more);
	}
}

/* What a reading says beside the map that an operator should know. */
static void warn(struct device *d, struct drv_snapshot *s)
{
	char part[RING_FAULT_TEXT];
	char *text = d->now.problem;
	int size = sizeof(d->now.problem);

	text[0] = '\0';
	if (s->n_lost) {
		part_text(d, &s->lost[0], part);
		snprintf(s->lock_detail, sizeof(s->lock_detail), "%.127s", part);
	}
	if (s->alarm[0]) {
		snprintf(text, size, "%s", s->alarm);
	} else if (s->n_dead) {
		warn_dead(d, s);
	} else if (s->n_unlocked) {
		snprintf(text, size, "%d settings not locked: %.80s",
			 s->n_unlocked, s->lock_detail);
	} else if (d->now.restarted) {
		snprintf(text, size, "restarted since the last reading");
	} else {
		warn_blocked(d, s);
	}
}

static void on_snapshot(struct drv *drv, int rc, struct drv_snapshot *snap,
			const struct err *err, void *arg)
{
	struct device *d = arg;
	struct apply_device *now = &d->now;
	struct drv_snapshot before = now->snap;
	int64_t before_ns = now->read_at_ns;
	bool had = now->ever_read;

	(void)drv;
	now->reachable = rc == 0;
	if (rc) {
		snprintf(now->problem, sizeof(now->problem), "%.*s",
			 (int)sizeof(now->problem) - 1, err->msg);
	} else {
		now->restarted = now->ever_read && now->snap.epoch[0] &&
				 strcmp(now->snap.epoch, snap->epoch) != 0;
		now->snap = *snap;
		memset(snap, 0, sizeof(*snap));
		now->ever_read = true;
		now->read_at_ns = clk_wall_ns();
		d->unsaved = true;
		warn(d, &now->snap);
		loss_learn(d);
		external_compare(d, had ? &before : NULL, before_ns);
		d->from_store = false;
		drv_snapshot_fini(&before);
	}
	device_assess(d);
	finish_head(d, rc, 0, NULL, err);
}

static void on_submit(struct drv *drv, int rc, int n, const struct drv_outcome *outcomes,
		      const struct err *err, void *arg)
{
	(void)drv;
	finish_head(arg, rc, n, outcomes, err);
}

static void run_maintenance(struct device *d)
{
	const struct apply_maintenance *what = d->head->maintenance;
	struct err err = { 0 };
	int rc;

	if (what->recovery) {
		rc = drv_recover(d->drv, what->recovery, on_submit, d, &err);
	} else {
		rc = drv_port_set(d->drv, what->port, what->enable, on_submit, d, &err);
	}
	if (rc) {
		finish_head(d, rc, 0, NULL, &err);
	}
}

static void run_head(struct device *d)
{
	d->lines = 0;
	d->lines_dropped = 0;
	if (d->head->maintenance) {
		run_maintenance(d);
	} else if (d->head->batch) {
		drv_submit(d->drv, d->head->batch, on_submit, d);
	} else {
		drv_snapshot(d->drv, on_snapshot, d);
	}
}

static void enqueue(struct device *d, struct device_op *op)
{
	assert(!d->closing && !d->now.elsewhere);
	op->next = NULL;
	device_ref(d);
	if (d->tail) {
		d->tail->next = op;
		d->tail = op;
		return;
	}
	d->head = d->tail = op;
	run_head(d);
}

void device_read(struct device *d, struct device_op *op, device_read_cb cb, void *arg)
{
	*op = (struct device_op){ .read_cb = cb, .arg = arg };
	enqueue(d, op);
}

void device_submit(struct device *d, struct device_op *op, const struct drv_batch *batch,
		   device_submit_cb cb, void *arg)
{
	*op = (struct device_op){ .batch = batch, .submit_cb = cb,
				  .arg = arg };
	enqueue(d, op);
}

void device_maintain(struct device *d, struct device_op *op,
		 const struct apply_maintenance *what, device_submit_cb cb, void *arg)
{
	*op = (struct device_op){ .maintenance = what, .submit_cb = cb, .arg = arg };
	enqueue(d, op);
}

void device_cancel(struct device *d)
{
	if (d->head && d->head->batch && !d->closing) {
		drv_cancel(d->drv);
	}
}

/* ---- state --------------------------------------------------------------- */

int device_load_intent(struct device *d, struct err *err)
{
	struct store_light l;
	int rc = store_intent(d->a->store, d->name, &l, err);

	if (rc == 0) {
		device_take_intent(d, &l);
	}
	return rc;
}
