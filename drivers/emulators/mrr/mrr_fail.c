/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the emulated ring has failed: which settings lock, and the table of
 * failures that it keeps.
 *
 * A resonator that drops locks on the wave that comes along its fibre. So a
 * cut shows at every drop whose light would have come over it, and nowhere
 * else: the light is followed back to the node that adds it. The table lists
 * the failed parts themselves, whether programs use them or not, as a
 * controller knows them that tests its parts at rest.
 */
#include "drivers/emulators/mrr/mrr_device.h"

static const struct {
	enum fault_kind fault;
	enum resonator_lock lock;
} locks[] = {
	{ FAULT_NO_WAVE, RESONATOR_NO_WAVE },
	{ FAULT_NOT_IN_RANGE, RESONATOR_NOT_IN_RANGE },
	{ FAULT_DUPLICATE_LOCK, RESONATOR_DUPLICATE },
	{ FAULT_ZERO_LOCK, RESONATOR_ZERO },
	{ FAULT_LOL, RESONATOR_LOCK_LOST },
	{ FAULT_LANE_ORDER, RESONATOR_WRONG_LANE },
	{ FAULT_DAC_CLAMP, RESONATOR_AT_LIMIT },
};

#define N_LOCKS ((int)(sizeof(locks) / sizeof(locks[0])))

/* Whether a fault is a cut of the fibre between a node and the next one
 * clockwise. */
static bool cuts(const struct fault *f, int node, int dir, int fibre)
{
	return f->value == node &&
	       (f->kind == FAULT_CUT ||
		(f->kind == (dir ? FAULT_CUT_CCW : FAULT_CUT_CW) &&
		 f->channel == fibre));
}

static bool is_cut(const struct faults *f, int node, int dir, int fibre)
{
	for (size_t i = 0; i < f->n; i++) {
		if (cuts(&f->v[i], node, dir, fibre)) {
			return true;
		}
	}
	return false;
}

static bool has_cuts(const struct faults *f)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].kind >= FAULT_CUT && f->v[i].kind <= FAULT_CUT_CCW) {
			return true;
		}
	}
	return false;
}

/* The modes of the step at a place; 0: it passes. O(log cells). */
static int mode_at(const struct ring_program_reader *r, uint32_t at)
{
	size_t low = 0, high = r->cells.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->cells.v[mid].at < at) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return low < r->cells.n && r->cells.v[low].at == at ? r->cells.v[low].mode : 0;
}

/* Back along the fibre to the node that adds what is dropped here. A
 * counter-clockwise fibre between a node and the next one clockwise is entered
 * at the latter. O(nodes (log cells + faults)). */
static bool comes_over_a_cut(const struct faults *f, const struct ring_program_reader *r,
			     const struct ring_setting *t)
{
	int n = r->ring.nodes, node = t->node;
	uint32_t row = ((uint32_t)(t->dir * r->ring.fibres + t->fibre) *
				r->ring.channels + t->channel) * (uint32_t)n;

	for (int i = 0; i < n; i++) {
		int before = t->dir ? (node + 1) % n : (node + n - 1) % n;

		if (is_cut(f, t->dir ? node : before, t->dir, t->fibre)) {
			return true;
		}
		node = before;
		if (mode_at(r, row + (uint32_t)node) & RESONATOR_ADD) {
			return false;
		}
	}
	return false;
}

/* What is latched until it is cleared. */
static void note(struct mrr_device *d, enum resonator_lock lock)
{
	if (lock == RESONATOR_LOCK_LOST) {
		d->flags |= MRR_FLAG_LOL;
	} else if (lock == RESONATOR_AT_LIMIT) {
		d->flags |= MRR_FLAG_LIMIT;
		d->last_code = MRR_CODE_OUT_OF_RANGE;
	}
}

enum resonator_lock mrr_lock_of(struct mrr_device *d, const struct ring_program_reader *r,
				const struct ring_setting *t)
{
	struct faults *f = &d->e->faults;

	if (faults_hold(f, FAULT_INTERLOCK, NULL)) {
		return RESONATOR_NOT_STARTED;
	}
	for (int i = 0; f->n && i < N_LOCKS; i++) {
		if (faults_hold_place(f, locks[i].fault, t->node, t->channel)) {
			note(d, locks[i].lock);
			return locks[i].lock;
		}
	}
	if (faults_hold_place(f, FAULT_NODE_DEAD, t->node, 0) ||
	    ((t->mode & RESONATOR_DROP) && has_cuts(f) &&
	     comes_over_a_cut(f, r, t))) {
		return RESONATOR_NO_WAVE;
	}
	return mrr_has_drifted(d, t) ? RESONATOR_LOCK_LOST : RESONATOR_LOCKED;
}

/* ---- the table ------------------------------------------------------------- */

void mrr_put_entry(struct buf *table, uint32_t *n, const struct ring_fault *d)
{
	uint8_t entry[MRR_FAILURE_BYTES];

	if (++*n <= MRR_MAX_FAILURES) {
		mrr_put_dead(entry, d);
		buf_add(table, entry, sizeof(entry));
	}
}

/* One entry for each direction and fibre that the fault is of; a resonator's
 * fault is of all. */
static void put_each(struct buf *b, uint32_t *n, const struct fault *f,
		     int fibres, struct ring_fault d)
{
	for (int i = 0; i < 2 * fibres; i++) {
		d.dir = (uint8_t)(i / fibres);
		d.fibre = (uint8_t)(i % fibres);
		if (d.part == RING_RESONATOR || cuts(f, d.node, d.dir, d.fibre)) {
			mrr_put_entry(b, n, &d);
		}
	}
}

static void put_fault(struct buf *b, uint32_t *n, const struct fault *f, int fibres)
{
	struct ring_fault d = { .node = (uint16_t)f->value };

	if (f->permille >= 0) {
		return;		/* it comes and goes */
	}
	if (f->kind == FAULT_NODE_DEAD) {
		d.part = RING_NODE;
		d.why = RESONATOR_NO_WAVE;
		mrr_put_entry(b, n, &d);
	} else if (f->kind >= FAULT_CUT && f->kind <= FAULT_CUT_CCW) {
		d.part = RING_SPAN;
		d.why = RESONATOR_NO_WAVE;
		put_each(b, n, f, fibres, d);
	}
	for (int i = 0; i < N_LOCKS; i++) {
		if (f->kind == locks[i].fault) {
			d.part = RING_RESONATOR;
			d.why = (uint8_t)locks[i].lock;
			d.channel = (uint16_t)f->channel;
			put_each(b, n, f, fibres, d);
		}
	}
}

void mrr_put_failures(const struct mrr_device *d, struct buf *out)
{
	const struct faults *f = &d->e->faults;
	uint8_t count[4] = { 0 };
	uint32_t n = 0;

	buf_add(out, count, sizeof(count));
	for (size_t i = 0; i < f->n; i++) {
		put_fault(out, &n, &f->v[i], d->e->conf.fibres);
	}
	mrr_put32((uint8_t *)out->data, n);
}
