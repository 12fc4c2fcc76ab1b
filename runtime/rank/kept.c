/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank keeps the sums that it forwards. */
#include <stdlib.h>

#include "runtime/rank/private.h"

#define NOT_KEPT (-1)

static uint64_t key_of(const struct rank_kept *k, int64_t chunk, int of)
{
	return (uint64_t)chunk * (uint64_t)k->ranks + (uint64_t)of;
}

/* Transfers are sorted by steps, so the last step stays. */
void rank_kept_make(struct rank_kept *k, const struct coll_sched *part, int rank, int unit)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(part, &n);
	int chunks = coll_chunks(part) / unit;

	*k = (struct rank_kept){ .ranks = coll_ranks(part) };
	k->vector = (int64_t)k->ranks * chunks;
	for (int64_t i = 0; i < n; i++) {
		int64_t at = (int64_t)x[i].origin * chunks;

		if (x[i].op != COLL_OP_FORWARD ||
		    topo_arc(coll_topo(part), x[i].arc)->src != rank) {
			continue;
		}
		for (int64_t c = at + x[i].first / unit; c <= at + x[i].last / unit; c++) {
			u64map_set(&k->until, key_of(k, c, x[i].dest), (uint64_t)x[i].step);
		}
	}
}

void rank_kept_fini(struct rank_kept *k)
{
	u64map_fini(&k->until);
	vec_fini(&k->cells);
}

int64_t rank_kept_find(const struct rank_kept *k, int64_t chunk, int of)
{
	for (int64_t at = chunk; at < (int64_t)k->cells.n; at += k->vector) {
		if (k->cells.v[at].of == of) {
			return at;
		}
	}
	return NOT_KEPT;
}

int64_t rank_kept_take(struct rank_kept *k, int64_t chunk, int of, int step)
{
	uint64_t until;
	int64_t at = chunk;

	if (!u64map_get(&k->until, key_of(k, chunk, of), &until) || until <= (uint64_t)step) {
		return NOT_KEPT;
	}
	while (at < (int64_t)k->cells.n && k->cells.v[at].until >= step) {
		at += k->vector;
	}
	while ((int64_t)k->cells.n < (at / k->vector + 1) * k->vector) {
		vec_push(&k->cells, (struct rank_kept_cell){ -1, NOT_KEPT });
	}
	k->cells.v[at] = (struct rank_kept_cell){ (int32_t)until, of };
	return at;
}
