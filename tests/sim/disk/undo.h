/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a file would be lost with the power: for each sector that was written since it was
 * last synced, what was there before. A sync takes time, and what is written meanwhile is not
 * part of it: so what is written between the beginnings of two syncs is a layer.
 */
#ifndef WEFT_TESTS_SIM_UNDO_H
#define WEFT_TESTS_SIM_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECTOR_BYTES 512	/* of these a disk keeps all or nothing, but for one that tears */

struct undo_sector;

struct undo {
	struct undo_sector *sectors;	/* as they were, in the order they were written */
	int n, cap;
	unsigned char *seen;		/* a bit a sector: is in this layer */
	size_t seen_bytes;
	int layer, synced;		/* that is written now; of the last sync that ended */
	int64_t size;			/* of the file, as far as it is durable */
};

/* Forgets all: a file of so many bytes is durable as it is. */
void undo_reset(struct undo *u, int64_t size);
void undo_fini(struct undo *u);
/* Whether the sector was kept in this layer already. */
bool undo_has(const struct undo *u, int64_t sector);
/* It is written next, for the first time in this layer; old: SECTOR_BYTES, NULL: nothing was. */
void undo_keep(struct undo *u, int64_t sector, const void *old);
/* A sync begins: its number, for the end. */
int undo_sync(struct undo *u);
/* That sync has ended; size: the file's when it began. */
void undo_synced(struct undo *u, int sync, int64_t size);
/* A sync has failed for good: what is not durable now is not made so by the next one either,
 * unless it is written again. */
void undo_failed(struct undo *u);
/* The power was lost: writes into the file (open as fd, of `size` bytes) what is found there
 * afterwards. How many sectors went. */
int undo_lose(struct undo *u, int fd, int64_t size, uint64_t *chance);

#endif
