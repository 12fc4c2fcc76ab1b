/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which items of a batch go out in one command, and what becomes of each of
 * them.
 *
 * The map is the driver's copy of what was read at the beginning. Every command
 * that is confirmed changes it as it changed the device, so the next items are
 * judged by what is there now, without another read. An item that cannot be (no
 * such port, a port in use in SAFE mode) is refused here, with the circuit that
 * it would have displaced, before anything of it is sent: some devices would
 * take the port over without a word.
 *
 * A command is for a run of items with the same operation and no port in
 * common, so that the order within the command does not matter and the read-
 * back after it shows each item alone.
 */
#include "drivers/core/batch.h"

#include <stdio.h>

#include "lib/base/clock.h"

#define NS_PER_MS 1000000

static bool shares_port(struct optics_xc a, struct optics_xc b, bool any)
{
	return a.in == b.in || a.out == b.out || (any && (a.in == b.out || a.out == b.in));
}

bool batch_overtaken(const struct drv_batch *items, int i, bool any_to_any)
{
	for (int k = i + 1; k < items->n_items; k++) {
		if (shares_port(items->items[i].xc, items->items[k].xc, any_to_any)) {
			return true;
		}
	}
	return false;
}

bool batch_ended(struct batch *b, int64_t complete_ms)
{
	b->until_ns = clk_now_ns() + complete_ms * NS_PER_MS;
	for (int i = 0; i < b->h->n_outcomes; i++) {
		if (b->h->outcomes[i].result == DRV_DONE &&
		    b->h->outcomes[i].evidence == DRV_ACKED) {
			return true;
		}
	}
	return false;
}

bool batch_waits(const struct batch *b)
{
	const struct drv_batch *items = b->h->batch;
	bool all = true;

	for (int i = 0; i < items->n_items; i++) {
		const struct drv_item *item = &items->items[i];
		struct drv_outcome *o = &b->h->outcomes[i];

		if (o->result != DRV_DONE) {
			continue;
		}
		if (xc_map_has(b->map, item->xc) == (item->op == DRV_ADD)) {
			o->evidence = DRV_READ_BACK;
		} else if (!batch_overtaken(items, i, b->map->any_to_any)) {
			o->evidence = DRV_ACKED;
			all = false;
		}
	}
	return !all && clk_now_ns() < b->until_ns;
}

bool batch_may_join(const struct batch *b, const struct drv_batch *items, int first, int end)
{
	if (end - first >= b->chunk || items->items[end].op != items->items[first].op) {
		return false;
	}
	for (int i = first; i < end; i++) {
		if (shares_port(items->items[i].xc, items->items[end].xc, b->map->any_to_any)) {
			return false;
		}
	}
	return true;
}

static void refuse(struct batch *b, int i, enum drv_class_of_error c, const char *text)
{
	base_mark(b->h, i, i + 1, DRV_REFUSED, DRV_READ_BACK, c, NULL, text);
}

void batch_busy_text(const struct drv_item *item, struct optics_xc displaced,
		     char *text, size_t size)
{
	bool add = item->op == DRV_ADD;

	snprintf(text, size, "%s %d-%d: %s %d-%d",
		 add ? "cannot connect" : "cannot remove", item->xc.in,
		 item->xc.out, add ? "it would cut" : "connected is",
		 displaced.in, displaced.out);
}

static void refuse_busy(struct batch *b, int i, struct optics_xc displaced)
{
	char text[DRV_TEXT_MAX];

	batch_busy_text(&b->h->batch->items[i], displaced, text, sizeof(text));
	refuse(b, i, DRV_ERR_STATE, text);
}

enum admission { SEND, ALREADY, STOP };

/* Looks at item i against the map. */
static enum admission admit(struct batch *b, int i)
{
	const struct drv_item *item = &b->h->batch->items[i];
	struct optics_xc displaced;
	struct err err = { 0 };

	if (xc_map_check(b->map, item->xc, &err)) {
		refuse(b, i, DRV_ERR_CONFIGURATION, err.msg);
		return STOP;
	}
	if (item->op == DRV_ADD && xc_map_has(b->map, item->xc)) {
		return ALREADY;
	}
	if (!xc_map_conflict(b->map, item->xc, &displaced)) {
		return item->op == DRV_ADD || xc_map_has(b->map, item->xc) ? SEND : ALREADY;
	}
	if (item->op == DRV_ADD && b->h->batch->mode == DRV_UPDATE) {
		return SEND;
	}
	refuse_busy(b, i, displaced);
	return STOP;
}

static void mark_sent(struct batch *b)
{
	base_mark(b->h, b->first, b->end, DRV_UNKNOWN, DRV_SENT,
		  DRV_ERR_TRANSPORT, NULL, "not answered");
}

bool batch_next(struct batch *b)
{
	const struct drv_batch *items = b->h->batch;
	enum admission a = SEND;

	b->first = b->end;
	for (; b->end < items->n_items; b->end++) {
		if (b->end > b->first && !batch_may_join(b, items, b->first, b->end)) {
			break;
		}
		a = admit(b, b->end);
		if (a == ALREADY && b->end == b->first) {
			base_mark(b->h, b->end, b->end + 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE,
				  NULL, "as asked already");
			b->first++;
		} else if (a != SEND) {
			break;
		}
	}
	if (b->end == b->first) {
		return false;
	}
	if (a == STOP) {
		/* It is looked at again once those before it are done. */
		base_mark(b->h, b->end, b->end + 1, DRV_SKIPPED, DRV_SENT,
			  DRV_ERR_NONE, NULL, "not sent");
	}
	mark_sent(b);
	return true;
}

bool batch_replace(struct batch *b)
{
	const struct drv_batch *items = b->h->batch;
	struct optics_xc other;
	struct err err = { 0 };

	xc_map_clear(b->map);
	for (int i = 0; i < items->n_items; i++) {
		const struct optics_xc xc = items->items[i].xc;

		if (xc_map_check(b->map, xc, &err) || xc_map_conflict(b->map, xc, &other)) {
			refuse(b, i, DRV_ERR_CONFIGURATION, err.code ? err.msg :
			       "a port of it is in the list twice");
			return false;
		}
		xc_map_connect(b->map, xc);
	}
	b->first = 0;
	b->end = items->n_items;
	mark_sent(b);
	return true;
}

void batch_done(struct batch *b)
{
	base_mark(b->h, b->first, b->end, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
	for (int i = b->first; i < b->end; i++) {
		const struct drv_item *item = &b->h->batch->items[i];

		if (item->op == DRV_ADD) {
			xc_map_connect(b->map, item->xc);
		} else {
			xc_map_release(b->map, xc_map_flat_in(b->map, item->xc.in));
		}
	}
}

bool batch_read_back(struct batch *b, enum drv_class_of_error c, const char *code, const char *text)
{
	bool all = true;

	for (int i = b->first; i < b->end; i++) {
		const struct drv_item *item = &b->h->batch->items[i];

		if (xc_map_has(b->map, item->xc) == (item->op == DRV_ADD)) {
			base_mark(b->h, i, i + 1, DRV_DONE, DRV_READ_BACK,
				  DRV_ERR_NONE, NULL, NULL);
		} else {
			base_mark(b->h, i, i + 1, DRV_REFUSED, DRV_READ_BACK, c, code, text);
			all = false;
		}
	}
	return all;
}
