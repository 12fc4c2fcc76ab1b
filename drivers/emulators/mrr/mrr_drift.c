/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of the emulated ring that get lost as it warms, resonator by
 * resonator, the search that finds them again, and the events to the sessions
 * that subscribed to them.
 *
 * A lock is lost at regular times while the fault `drift` holds, at a
 * resonator that is drawn from the seed among those in use. It stays lost
 * until a relock or a new program for its place.
 */
#include <stdlib.h>

#include "drivers/emulators/mrr/mrr_device.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* ---- events and the table of locks ----------------------------------------- */

int64_t mrr_event_mark(const struct mrr_device *d)
{
	return (int64_t)d->e->mem.boots + 1;
}

void mrr_send_event(struct mrr_device *d, const struct ring_fault *place)
{
	struct mrr_event event = { .flags = d->flags, .code = d->last_code,
				 .boots = (uint32_t)d->e->mem.boots,
				 .has_place = place != NULL };
	uint8_t data[MRR_EVENT_BYTES + MRR_FAILURE_BYTES];
	struct mrr_frame f = { .op = MRR_EVENT, .offset = MRR_FLAGS,
			       .data = data };
	struct buf b = { 0 };

	if (place) {
		event.place = *place;
	}
	f.len = mrr_put_event(data, &event);
	mrr_encode(&b, &f);
	emu_send_event_marked(d->e, mrr_event_mark(d), b.data, b.len);
	buf_fini(&b);
}

void mrr_put_lost(const struct mrr_device *d, struct buf *out)
{
	uint8_t count[4] = { 0 };
	uint32_t n = 0;

	buf_add(out, count, sizeof(count));
	for (int i = 0; i < d->n_slots; i++) {
		for (size_t k = 0; k < d->slots[i].lost.n; k++) {
			mrr_put_entry(out, &n, &d->slots[i].lost.v[k]);
		}
	}
	mrr_put32((uint8_t *)out->data, n);
}

/* ---- lost ------------------------------------------------------------------ */

/* Whether a fault is of the resonator that a setting names. */
static bool is_at(const struct ring_fault *d, const struct ring_setting *t)
{
	return d->node == t->node && d->dir == t->dir &&
	       d->fibre == t->fibre && d->channel == t->channel;
}

bool mrr_has_drifted(const struct mrr_device *d, const struct ring_setting *t)
{
	for (size_t i = 0; i < d->drifted.n; i++) {
		if (is_at(&d->drifted.v[i], t)) {
			return true;
		}
	}
	return false;
}

/* Any setting whose resonator holds its wave, each as likely: the n-th takes
 * the place of the one chosen before with probability 1/n. */
static void choose_of(struct mrr_device *d, const struct slot *s, uint64_t *n,
		      struct ring_setting *chosen)
{
	struct ring_program_reader r;

	if (!s->p.bytes || ring_program_reader_init(&r, s->p.bytes, s->p.len, NULL)) {
		return;
	}
	while (ring_program_reader_next(&r, NULL) == 0) {
		for (size_t i = 0; i < r.cells.n; i++) {
			struct ring_setting t = ring_cell_setting(&r, &r.cells.v[i]);

			if (mrr_lock_of(d, &r, &t) == RESONATOR_LOCKED &&
			    rng_below(&d->e->faults.rng, ++*n) == 0) {
				*chosen = t;
			}
		}
	}
	ring_program_reader_fini(&r);
}

static void on_drift(uv_timer_t *timer)
{
	struct mrr_device *d = timer->data;
	struct ring_setting t = { 0 };
	struct ring_fault place;
	uint64_t n = 0;

	for (int i = 0; i < d->n_slots; i++) {
		choose_of(d, &d->slots[i], &n, &t);
	}
	place = (struct ring_fault){
		.part = RING_RESONATOR, .dir = t.dir, .fibre = t.fibre,
		.why = RESONATOR_LOCK_LOST, .node = t.node, .channel = t.channel };
	if (n > 0) {
		vec_push(&d->drifted, place);
		d->flags |= MRR_FLAG_LOL;
		mrr_search_locks(d);
		mrr_send_event(d, &place);
	}
	mrr_drift(d);
}

void mrr_drift(struct mrr_device *d)
{
	int64_t ms;

	if (!faults_hold(&d->e->faults, FAULT_DRIFT, &ms)) {
		uv_timer_stop(&d->drift);
	} else if (!uv_is_active((uv_handle_t *)&d->drift)) {
		uv_timer_start(&d->drift, on_drift, (uint64_t)ms, 0);
	}
}

void mrr_drift_init(struct mrr_device *d)
{
	uv_timer_init(&d->e->loop, &d->drift);
	d->drift.data = d;
}

void mrr_drift_fini(struct mrr_device *d)
{
	vec_fini(&d->drifted);
}

/* ---- found again ----------------------------------------------------------- */

void mrr_settle(struct mrr_device *d, const struct slot *s)
{
	const struct ring_window *w = &s->p.window;
	int nodes = d->e->mem.n_in;
	int64_t ms;
	size_t n = 0;

	for (size_t i = 0; i < d->drifted.n; i++) {
		const struct ring_fault *x = &d->drifted.v[i];

		if ((x->node - w->first_node + nodes) % nodes >= w->nodes ||
		    x->channel < w->first_channel || x->channel >= w->first_channel + w->channels) {
			d->drifted.v[n++] = *x;
		}
	}
	d->drifted.n = n;
	if (s->p.bytes && faults_hold(&d->e->faults, FAULT_LOCK_TIME, &ms)) {
		d->locked_ns = clk_now_ns() + ms * 1000000;
	}
}

enum mrr_code mrr_relock(struct mrr_device *d)
{
	if (faults_hold(&d->e->faults, FAULT_INTERLOCK, NULL)) {
		return MRR_INTERLOCK;
	}
	if (d->fence < d->writer) {
		return MRR_STALE_WRITER;
	}
	for (int i = 0; i < d->n_slots; i++) {
		struct slot *s = &d->slots[i];

		if (d->mask >> i & 1) {
			s->searched += s->lost.n;
			mrr_settle(d, s);
		}
	}
	mrr_search_locks(d);
	return MRR_OK;
}
