/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tests/sim/faults/chance.h"
#include "tests/sim/disk/undo.h"

#define PAGE_SECTORS 8

struct undo_sector {
	int64_t number;
	int layer;
	bool stuck;		/* a sync of it failed: the next ones leave it out */
	unsigned char old[SECTOR_BYTES];
};

void undo_reset(struct undo *u, int64_t size)
{
	u->n = 0;
	u->size = size;
	if (u->seen) {
		memset(u->seen, 0, u->seen_bytes);
	}
}

void undo_fini(struct undo *u)
{
	free(u->sectors);
	free(u->seen);
	*u = (struct undo){ 0 };
}

bool undo_has(const struct undo *u, int64_t sector)
{
	const size_t at = (size_t)sector / 8;

	return at < u->seen_bytes && (u->seen[at] >> (sector % 8) & 1);
}

static void see(struct undo *u, int64_t sector)
{
	const size_t at = (size_t)sector / 8;

	if (at >= u->seen_bytes) {
		const size_t bytes = at * 2 + 64;

		u->seen = x_grow(u->seen, bytes, 1);
		memset(u->seen + u->seen_bytes, 0, bytes - u->seen_bytes);
		u->seen_bytes = bytes;
	}
	u->seen[at] |= (unsigned char)(1 << (sector % 8));
}

void undo_keep(struct undo *u, int64_t sector, const void *old)
{
	struct undo_sector *s;

	if (u->n == u->cap) {
		u->cap = u->cap ? 2 * u->cap : 64;
		u->sectors = x_grow(u->sectors, (size_t)u->cap, sizeof(*u->sectors));
	}
	s = &u->sectors[u->n++];
	s->number = sector;
	s->layer = u->layer;
	s->stuck = false;
	if (old) {
		memcpy(s->old, old, SECTOR_BYTES);
	} else {
		memset(s->old, 0, SECTOR_BYTES);
	}
	see(u, sector);
}

int undo_sync(struct undo *u)
{
	if (u->seen) {
		memset(u->seen, 0, u->seen_bytes);
	}
	return u->layer++;
}

void undo_failed(struct undo *u)
{
	for (int i = 0; i < u->n; i++) {
		u->sectors[i].stuck = true;
	}
	undo_sync(u);		/* so that it is seen what is written again */
}

/* Systems take what a failed sync has left for written, until it is written again: with its
 * page. */
static bool is_left_out(const struct undo *u, int i, int sync)
{
	const int64_t page = u->sectors[i].number / PAGE_SECTORS;

	if (!u->sectors[i].stuck) {
		return false;
	}
	for (i++; i < u->n && u->sectors[i].layer <= sync; i++) {
		if (u->sectors[i].number / PAGE_SECTORS == page && !u->sectors[i].stuck) {
			return false;
		}
	}
	return true;
}

void undo_synced(struct undo *u, int sync, int64_t size)
{
	int kept = 0;

	if (sync < u->synced) {
		return;		/* a later one was faster */
	}
	for (int i = 0; i < u->n; i++) {
		if (u->sectors[i].layer > sync || is_left_out(u, i, sync)) {
			u->sectors[kept++] = u->sectors[i];
		}
	}
	u->n = kept;
	u->synced = sync;
	u->size = size;
}

/* Writes back what was there from byte `from` of the sector on. */
static void restore(const struct undo_sector *s, int fd, size_t from)
{
	const off_t at = (off_t)s->number * SECTOR_BYTES + (off_t)from;

	if (pwrite(fd, s->old + from, SECTOR_BYTES - from, at) < 0) {
		abort();	/* the machine's own disk */
	}
}

/* From the newest back: one that has reached the disk hides all that was there before. */
int undo_lose(struct undo *u, int fd, int64_t size, uint64_t *chance)
{
	static const int shares[] = { 0, 100, 500, 900, 1000 };	/* permille that are kept */
	const int share = shares[chance_between(chance, 0, 5)];
	const bool tears = chance_between(chance, 0, 2) == 0, resized = chance_next(chance) % 2;
	int64_t end = 0;
	int lost = 0;

	undo_sync(u);	/* from here on what is seen is what has reached the disk */
	for (int i = u->n - 1; i >= 0; i--) {
		const struct undo_sector *s = &u->sectors[i];

		if (undo_has(u, s->number)) {
			continue;
		}
		/* What was cut off comes back whole, if the file does. */
		if (s->number * SECTOR_BYTES >= size || chance_between(chance, 0, 1000) >= share) {
			restore(s, fd, 0);
			lost++;
			continue;
		}
		see(u, s->number);
		if (i == u->n - 1 && tears) {
			restore(s, fd, (size_t)chance_between(chance, 1, SECTOR_BYTES));
		}
		end = end > (s->number + 1) * SECTOR_BYTES ? end : (s->number + 1) * SECTOR_BYTES;
	}
	end = end < size ? end : size;
	if (!resized && size != u->size) {
		size = end > u->size ? end : u->size;
	}
	if (ftruncate(fd, size)) {
		abort();
	}
	undo_reset(u, size);
	return lost;
}
