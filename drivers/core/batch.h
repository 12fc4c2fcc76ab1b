/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thinking a batch through against the map that was read, for drivers whose
 * devices take a list of items in one command: which items may share it,
 * which are in effect already, which are refused here because the device
 * cannot be trusted to. Private to drivers.
 */
#ifndef WEFT_DRIVERS_CORE_BATCH_H
#define WEFT_DRIVERS_CORE_BATCH_H

#include "drivers/core/driver_base.h"
#include "drivers/core/xc_map.h"

struct batch {
	struct driver_base *h;
	struct xc_map *map;	/* as last read, with our changes since */
	int64_t chunk;		/* most items in a command */
	int first, end;		/* items of the command that is out */
	int64_t until_ns;	/* of the wait for what was confirmed */
};

/* Whether item `end` may join the command that began at `first`: the same
 * operation, no port in common. O(end - first). */
bool batch_may_join(const struct batch *b, const struct drv_batch *items, int first, int end);

/* A later item of the batch moves one of item i's ports, so the map need not
 * show item i in the end. O(items). */
bool batch_overtaken(const struct drv_batch *items, int i, bool any_to_any);

/* After the batch: whether the map is to be read, as something was confirmed and not
 * read back; for complete_ms from now on. O(items). */
bool batch_ended(struct batch *b, int64_t complete_ms);

/* After that: what is confirmed and shows in the map as read just now is read back. True
 * when something confirmed does not show yet, and should, and there is time. O(items^2). */
bool batch_waits(const struct batch *b);

/* What stands in the way of an item, as text. */
void batch_busy_text(const struct drv_item *item, struct optics_xc displaced,
		     char *text, size_t size);

/* Finds the longest run of items from b->end that can share a command: then
 * true, and they are marked unknown. False when the batch is over: all is
 * done, or an item was refused. */
bool batch_next(struct batch *b);

/* REPLACE is one command, so a list that is wrong in itself is refused as a
 * whole before anything is sent (false). Else the map is what was asked for,
 * and the command is for all items. */
bool batch_replace(struct batch *b);

/* The command was confirmed. */
void batch_done(struct batch *b);

/* The command was not, or not plainly; the map was read again, and shows what
 * became of each item. False when one of them is not in effect: those are
 * refused, with this code and text, and the batch is over. */
bool batch_read_back(struct batch *b, enum drv_class_of_error c,
		     const char *code, const char *text);

#endif
