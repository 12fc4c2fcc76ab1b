/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read back, settle, read again: what a stage has verified by its devices'
 * maps. The first reading shows that the commands arrived; the second, after the
 * longest settling time of the devices in scope, that what they made stays.
 * Circuits that still move are read again a few times, each time after twice the
 * wait, before they are given up.
 */
#include <stdio.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/clock.h"

/* Light that still moves is read again, each time after a longer wait. */
#define SETTLE_ROUNDS 8
#define SETTLE_MOST_US 1000000

static void note_restart(struct apply_run *r, struct err *err)
{
	const char *epoch = r->dev->now.snap.epoch;

	if (!r->epoch[0] || strcmp(r->epoch, epoch) == 0) {
		return;
	}
	change_event(r->c, r->dev, true, "%s restarted during the change", r->dev->name);
	snprintf(r->epoch, sizeof(r->epoch), "%s", epoch);
	r->restarted = true;
	if (err->code) {
		err_wrap(err, "%s restarted during the change", r->dev->name);
	}
}

/* Another user's circuit that went away while weft worked on the same
 * device is not weft's to restore, but it must not go unnoticed. */
static void check_neighbours(struct apply_run *r)
{
	char xc[48];

	for (int i = 0; i < r->n_before; i++) {
		bool ours = false;

		for (int k = 0; k < r->w->n_steps && !ours; k++) {
			ours = optics_xc_cmp(&r->w->steps[k].xc, &r->before[i]) == 0;
		}
		if (!ours && !snap_find(&r->dev->now.snap, r->before[i])) {
			change_event(r->c, r->dev, true, "%s, not part of "
				     "this change, went away during it",
				     xc_text(r->before[i], xc, sizeof(xc)));
		}
	}
}

/* Circuits that are not there are left to be repaired while the gate allows
 * it, unless the device restarted: then more than a circuit went. */
static int compare_run(struct apply_run *r, struct err *err)
{
	bool restarted = strcmp(r->epoch, r->dev->now.snap.epoch) != 0;
	int rc, at;

	do {
		*err = (struct err){ 0 };
		rc = compare_after(r->w, r->stage, r->dev, &r->settling, &at, err);
	} while (rc == WEFT_EVERIFY && at >= 0 && !restarted &&
		 compare_gap(&r->w->steps[at], r->dev) &&
		 tolerance_allows(r, at, APPLY_UNVERIFIED, err));
	return rc;
}

/* From its commands to a map that is as planned: of a switch a batch, of a
 * robot a move. What others took meanwhile is not counted. */
static void learn_switching(struct apply_run *r)
{
	const struct model_fabric *f = r->c->set->fabric;
	int device = model_find_device(f, r->dev->name);
	int n = device >= 0 && f->devices[device].kind == MODEL_PANEL ? r->n_moves : r->n_sends;

	if (n > 0 && !r->w->is_ring && !r->settling) {
		r->took_ns += clk_now_ns() - r->since_ns;
		apply_learn(r->c->a, STORE_SWITCHING, r->dev->name, r->took_ns / n);
		r->n_sends = r->n_moves = 0;
	}
}

static void on_read(struct device *d, int rc, const struct err *err, void *arg)
{
	struct apply_run *r = arg;
	struct err own = { 0 };

	(void)d;
	r->settling = false;
	if (rc == 0) {
		err = &own;
		rc = compare_run(r, &own);
		note_restart(r, &own);
	}
	if (rc) {
		change_op_failed(r, rc, err);
		return;
	}
	learn_switching(r);
	if (r->c->phase == PHASE_READ_AGAIN && !r->settling) {
		check_neighbours(r);
	}
	change_op_done(r->c);
}

void readback_begin(struct apply_run *r)
{
	if (r->c->phase == PHASE_READ_BACK) {
		r->since_ns = clk_now_ns();
	}
	device_read(r->dev, &r->op, on_read, r);
}

static void on_settled(void *arg)
{
	struct change *c = arg;

	c->walk(c, PHASE_READ_AGAIN);
}

enum phase readback_settle(struct change *c)
{
	int64_t wait_us = 0, longest;

	for (int i = c->first; i < c->end; i++) {
		const struct drv_caps *caps = &c->runs[i].dev->now.snap.caps;

		wait_us = caps->settle_us > wait_us ? caps->settle_us : wait_us;
	}
	longest = wait_us > SETTLE_MOST_US ? wait_us : SETTLE_MOST_US;
	if (c->settle_rounds > 0) {
		wait_us = (wait_us > 10000 ? wait_us : 10000)
			  << c->settle_rounds;
	}
	apply_later(c->a, wait_us < longest ? wait_us : longest, on_settled, c);
	return PHASE_WAITS;
}

static bool still_settling(const struct change *c)
{
	for (int i = c->first; i < c->end; i++) {
		if (c->runs[i].settling) {
			return true;
		}
	}
	return false;
}

static bool has_stragglers(const struct apply_run *r)
{
	for (int i = r->begin; i < r->end; i++) {
		if (r->w->steps[i].is_straggler) {
			return true;
		}
	}
	return false;
}

static void report_read_back(struct change *c)
{
	for (int i = c->first; i < c->end; i++) {
		change_event(c, c->runs[i].dev, false,
			     "read back twice: as planned%s",
			     !has_stragglers(&c->runs[i]) ? "" :
			     ", but what is to be repaired");
	}
}

/* Light that never settled: to be repaired, or too much of it. */
static void give_up_settling(struct change *c)
{
	struct err err = { 0 };

	for (int i = c->first; i < c->end && !c->rc; i++) {
		struct apply_run *r = &c->runs[i];
		int at;

		do {
			err = (struct err){ 0 };
			compare_after(r->w, r->stage, r->dev, &r->settling, &at, &err);
			if (r->settling && !tolerance_allows(r, at, APPLY_UNVERIFIED, &err)) {
				change_fail(c, WEFT_EVERIFY, &err);
			}
		} while (r->settling && !c->rc);
	}
}

enum phase readback_next(struct change *c)
{
	if (still_settling(c)) {
		if (++c->settle_rounds < SETTLE_ROUNDS) {
			return PHASE_SETTLE;
		}
		give_up_settling(c);
		if (c->rc) {
			return PHASE_UNDO;
		}
	}
	report_read_back(c);
	return PHASE_VERIFY;
}
