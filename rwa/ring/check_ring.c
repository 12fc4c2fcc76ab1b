/* SPDX-License-Identifier: Apache-2.0 */
/* The independent check of an assignment: one bit per (slot, direction,
 * fibre, channel, link). */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/ring/private.h"

/* A window of slots is checked at a time, so that many slots take several
 * passes and not much memory. */
#define WINDOW_WORDS ((size_t)8 << 20)
#define SLOT_WORDS_MAX ((size_t)1 << 28)	/* of one slot: 2 GiB */

struct window {
	const struct rwa_ring *ring;
	uint64_t *bits;
	size_t row_words;	/* words for the links of one channel */
	int32_t first, slots;	/* slots first .. first + slots - 1 */
};

/* Bits from .. to-1 of row. Returns the first link that was taken before,
 * or -1. */
static int32_t take(uint64_t *row, int32_t from, int32_t to)
{
	for (int32_t w = from / 64; w * 64 < to; w++) {
		int32_t lo = from > w * 64 ? from - w * 64 : 0;
		int32_t hi = to < w * 64 + 64 ? to - w * 64 : 64;
		uint64_t mask = (hi == 64 ? 0 : (uint64_t)1 << hi) -
				((uint64_t)1 << lo);

		if (row[w] & mask) {
			return w * 64 + __builtin_ctzll(row[w] & mask);
		}
		row[w] |= mask;
	}
	return -1;
}

static int32_t take_arc(struct window *this, const struct rwa_arc *arc)
{
	const struct rwa_ring *ring = this->ring;
	struct ring_span s = rwa_span(ring->n, arc);
	size_t row = ((size_t)(arc->slot - this->first) * 2 + arc->dir) *
			     ring->fibres + arc->fibre;
	uint64_t *bits;
	int32_t clash;

	row = row * ring->channels + arc->channel;
	bits = this->bits + row * this->row_words;
	if (s.lo + s.len <= ring->n) {
		return take(bits, s.lo, s.lo + s.len);
	}
	clash = take(bits, s.lo, ring->n);
	return clash >= 0 ? clash : take(bits, 0, s.lo + s.len - ring->n);
}

/* Who else holds the link in this channel: for the message only. */
static const struct rwa_arc *holder(const struct rwa_ring *ring, const struct rwa_arc *arcs,
				    const struct rwa_arc *arc, int32_t link)
{
	for (const struct rwa_arc *a = arcs; a < arc; a++) {
		struct ring_span s = rwa_span(ring->n, a);

		if (a->slot == arc->slot && a->dir == arc->dir && a->fibre == arc->fibre &&
		    a->channel == arc->channel && (link - s.lo + ring->n) % ring->n < s.len) {
			return a;
		}
	}
	return arc;
}

static int clash_error(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		       const struct rwa_arc *arc, int32_t link, struct err *err)
{
	const struct rwa_arc *other = holder(ring, arcs, arc, link);

	return err_set(err, WEFT_EVERIFY,
		       "lightpaths %d -> %d and %d -> %d both use link %d-%d "
		       "%s on fibre %d channel %d in slot %d",
		       other->src, other->dst, arc->src, arc->dst, link,
		       (link + 1) % ring->n,
		       arc->dir == RWA_CW ? "clockwise" : "counter-clockwise",
		       arc->fibre, arc->channel, arc->slot);
}

static int check_fields(const struct rwa_ring *ring, const struct rwa_arc *arcs,
			int64_t n_arcs, int32_t *max_slot, struct err *err)
{
	int rc = rwa_check_sizes(ring, n_arcs, err);

	*max_slot = -1;
	for (int64_t i = 0; !rc && i < n_arcs; i++) {
		const struct rwa_arc *a = &arcs[i];

		rc = rwa_check_arc(ring, a, i, err);
		if (rc) {
			break;
		}
		if (a->fibre >= ring->fibres || a->channel >= ring->channels || a->slot < 0) {
			rc = err_set(err, WEFT_EVERIFY,
				     "lightpath %d -> %d: slot %d, fibre %d, "
				     "channel %d does not exist",
				     a->src, a->dst, a->slot, a->fibre,
				     a->channel);
		}
		*max_slot = a->slot > *max_slot ? a->slot : *max_slot;
	}
	return rc;
}

/* Checks the slots of one window. *next: the first slot used after it, or
 * -1. */
static int check_window(struct window *this, const struct rwa_arc *arcs,
			int64_t n_arcs, int32_t *next, struct err *err)
{
	*next = -1;
	for (int64_t i = 0; i < n_arcs; i++) {
		int32_t slot = arcs[i].slot, link;

		if (slot < this->first) {
			continue;
		}
		if (slot - this->first >= this->slots) {
			*next = *next < 0 || slot < *next ? slot : *next;
			continue;
		}
		link = take_arc(this, &arcs[i]);
		if (link >= 0) {
			return clash_error(this->ring, arcs, &arcs[i], link, err);
		}
	}
	return 0;
}

int rwa_ring_check(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		   int64_t n_arcs, struct err *err)
{
	struct window win = { .ring = ring };
	size_t slot_words, slots;
	int32_t max_slot, next = 0;
	int rc = check_fields(ring, arcs, n_arcs, &max_slot, err);

	if (rc || max_slot < 0) {
		return rc;
	}
	win.row_words = ((size_t)ring->n + 63) / 64;
	slot_words = 2 * (size_t)ring->fibres * ring->channels * win.row_words;
	if (slot_words > SLOT_WORDS_MAX) {
		return err_set(err, WEFT_ELIMIT, "a ring of %d nodes, %d fibres and %d channels: "
			       "too large to be checked", ring->n, ring->fibres,
			       ring->channels);
	}
	slots = slot_words < WINDOW_WORDS ? WINDOW_WORDS / slot_words : 1;
	win.slots = (size_t)max_slot < slots ? max_slot + 1 : (int32_t)slots;
	win.bits = x_alloc(win.slots * slot_words, sizeof(*win.bits));
	do {
		win.first = next;
		memset(win.bits, 0, win.slots * slot_words * sizeof(*win.bits));
		rc = check_window(&win, arcs, n_arcs, &next, err);
	} while (!rc && next >= 0);
	free(win.bits);
	return rc;
}
