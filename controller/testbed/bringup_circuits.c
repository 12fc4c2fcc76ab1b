/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: circuits set up and taken out, with the record that outlives a
 * killed run. A circuit is on the record, and the caller's file, before it can
 * carry light, and until the switch has confirmed that it is out: whatever
 * happens, the next run knows every circuit that may be ours. Robots take
 * seconds for a move and wear out, so their moves are counted, limited, and
 * reported while they last.
 */
#include <stdio.h>
#include <unistd.h>

#include "controller/testbed/bringup_private.h"
#include "controller/testbed/testbed.h"
#include "drivers/core/driver.h"
#include "lib/base/clock.h"
#include "lib/base/number/units.h"

bool bringup_is_lit(const struct bringup *b, int device, struct optics_xc xc)
{
	for (int i = 0; i < b->n_lit; i++) {
		if (b->lit[i].device == device && b->lit[i].xc.in == xc.in &&
		    b->lit[i].xc.out == xc.out) {
			return true;
		}
	}
	return false;
}

/* ---- progress ---- */

static void count(const struct bringup *b, int *done, int *total)
{
	*done = *total = 0;
	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct bringup_device *dev = &b->devices[d];

		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			if (!bringup_is_kept(b, d, true, i) &&
			    (b->method == BY_FRAMES ? dev->out[i].trunk >= 0
						    : !dev->unmonitored)) {
				*done += dev->far[i].reach != REACH_UNKNOWN;
				++*total;
			}
		}
	}
	bringup_count_pairs(b, done, total);
}

/* What a move takes: as those that were made, or as they usually do. */
static int64_t move_ns(const struct bringup *b)
{
	int64_t most = 0;

	if (b->moves > 0) {
		return b->moves_ns / b->moves;
	}
	for (int d = 0; d < b->fabric->n_devices; d++) {
		if (b->devices[d].robot && b->devices[d].move_ns > most) {
			most = b->devices[d].move_ns;
		}
	}
	return most;
}

static int report(struct bringup_run *r, const struct bringup_circuit *c, bool add, struct err *err)
{
	struct bringup *b = r->b;
	int rc;

	r->reported = (struct bringup_progress){
		.text = r->text, .moves = b->moves,
		.moves_left = bringup_moves_left(b) };
	r->reported.left_ns = r->reported.moves_left * move_ns(b);
	count(b, &r->reported.done, &r->reported.total);
	snprintf(r->text, sizeof(r->text), "%s.in%d -> out%d%s",
		 b->fabric->devices[c->device].name, c->xc.in + 1,
		 c->xc.out + 1, add ? "" : " out");
	rc = r->fn ? r->fn(&r->reported, r->arg, err) : 0;
	return rc > 0 ? err_set(err, WEFT_ECANCELED, "stopped at %s", r->text) : rc;
}

/* The same again, each second of a robot's move. */
static void report_waiting(void *arg)
{
	struct bringup_run *r = arg;

	r->reported.waiting_ns = clk_now_ns() - r->move_began_ns;
	if (r->fn) {
		r->fn(&r->reported, r->arg, NULL);
	}
}

/* ---- circuits ---- */

static int change(struct bringup_run *r, struct bringup_circuit *c, bool add, struct err *err)
{
	struct bringup *b = r->b;
	bool robot = b->devices[c->device].robot;
	int rc;

	r->move_began_ns = clk_now_ns();
	testbed_device_tick(r->devices[c->device], robot ? report_waiting : NULL, r);
	rc = testbed_device_change(r->devices[c->device], add, c->xc, err);
	testbed_device_tick(r->devices[c->device], NULL, NULL);
	if (rc == 0 && robot) {
		b->moves++;
		b->moves_ns += clk_now_ns() - r->move_began_ns;
	}
	return rc;
}

/* Whether the switch has a circuit that it may have, or not. */
static int is_held(struct bringup_run *r, const struct bringup_circuit *c, bool *held,
		   struct err *err)
{
	struct drv_snapshot snap;
	int rc;

	*held = c->made;
	if (c->made) {
		return 0;
	}
	rc = testbed_device_snapshot(r->devices[c->device], &snap, err);
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

/* Of a robot's circuit it is recorded first that it is to go: the move is
 * completed whether we are there or not. */
static int remove_last(struct bringup_run *r, struct err *err)
{
	struct bringup_circuit *c = &r->b->lit[r->b->n_lit - 1];
	bool robot = r->b->devices[c->device].robot, held;
	int rc = is_held(r, c, &held, err);

	if (rc == 0 && held && robot) {
		c->removing = true;
		rc = report(r, c, false, err);
	}
	if (rc == 0 && held) {
		rc = change(r, c, false, err);
		c->made = false;
	}
	if (rc == 0) {
		r->b->n_lit--;
	}
	return rc;
}

int bringup_unlight(struct bringup_run *r, int down_to, struct err *err)
{
	int rc = 0;

	while (rc == 0 && r->b->n_lit > down_to) {
		rc = remove_last(r, err);
	}
	return rc;
}

/* A robot's move must be within the limit together with those that take all
 * back. The circuit is on the record already. */
static int check_moves(const struct bringup_run *r, const struct bringup_circuit *c,
		       struct err *err)
{
	const struct bringup *b = r->b;
	int64_t all = b->moves + bringup_moves_left(b), need = b->moves + 1;
	char took[32];

	for (int i = 0; i < b->n_lit; i++) {
		need += b->devices[b->lit[i].device].robot;
	}
	if (!b->devices[c->device].robot || r->options.max_moves >= (b->moves ? need : all)) {
		return 0;
	}
	unit_human(UNIT_NS, (double)(all - b->moves) * (double)move_ns(b), took, sizeof(took));
	err_set(err, WEFT_ELIMIT, "%s: robots have to make %lld moves, which "
		"takes about %s, and two more for each fibre that is dark or "
		"lossy; allowed are %lld",
		b->fabric->devices[c->device].name,
		(long long)all, took, (long long)r->options.max_moves);
	err_hint(err, "--moves %lld", (long long)(all + all / 10 + 2));
	return WEFT_ELIMIT;
}

int bringup_light(struct bringup_run *r, int device, struct optics_xc xc, struct err *err)
{
	struct bringup *b = r->b;
	struct bringup_circuit *c = &b->lit[b->n_lit];
	int rc;

	if (bringup_is_lit(b, device, xc)) {
		return 0;
	}
	*c = (struct bringup_circuit){ .device = device, .xc = xc };
	b->n_lit++;
	if ((rc = check_moves(r, c, err)) || (rc = report(r, c, true, err))) {
		b->n_lit--;	/* not made */
		return rc;
	}
	rc = change(r, c, true, err);
	c->made = rc == 0;
	usleep((useconds_t)(r->base[device].settle_us % 10000000));
	return rc;
}
