/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages of a rank what it gets goes into. */
#include <stdlib.h>

#include "lib/base/order.h"
#include "runtime/rank/private.h"

ORDER_BY(by_number, struct rank_merge_row, number, message, origin, first)

static uint64_t key_of(const struct coll_xfer *x)
{
	return ((uint64_t)x->step << 24 | (uint64_t)x->arc) << 16 | x->kept;
}

/* The number of a message, a new one for a new message. */
static int message_of(struct rank_merged *g, const struct coll_xfer *x)
{
	uint64_t number;

	if (!u64map_get(&g->messages, key_of(x), &number)) {
		number = (uint64_t)g->n_messages++;
		u64map_set(&g->messages, key_of(x), number);
	}
	return (int)number;
}

/* Whether some chunks of both, of which the first was sorted before, are of one message. */
static bool is_beside(const struct coll_xfer *own, const struct coll_xfer *x)
{
	return own && own->kept && own->kept == x->kept && own->step == x->step &&
	       own->arc == x->arc && own->origin == x->origin && own->first <= x->last &&
	       x->first <= own->last;
}

int rank_merged_make(struct rank_merged *g, const struct coll_sched *part, int rank, int unit,
		     struct err *err)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(part, &n), *own = NULL;

	*g = (struct rank_merged){ .chunks = coll_chunks(part) / unit };
	g->vector = (int64_t)coll_ranks(part) * g->chunks;
	for (int64_t i = 0; i < n && coll_merges(part); i++) {
		own = x[i].op == COLL_OP_REDUCE ? &x[i] : own;
		if (topo_arc(coll_topo(part), x[i].arc)->src != rank ||
		    x[i].op != COLL_OP_FORWARD) {
			continue;
		}
		if (is_beside(own, &x[i]) &&
		    (own->first != x[i].first || own->last != x[i].last)) {
			return err_set(err, WEFT_EUNSUPPORTED, "step %d: rank %d merges its own "
				       "sum with others in part: not supported", x[i].step, rank);
		}
		vec_push(&g->rows, (struct rank_merge_row){
			x[i].dest, message_of(g, &x[i]), coll_is_alike(part) ? -1 : x[i].origin,
			x[i].first / unit, x[i].last / unit, is_beside(own, &x[i]) });
	}
	if (g->rows.n > 0) {
		qsort(g->rows.v, g->rows.n, sizeof(*g->rows.v), by_number);
	}
	return 0;
}

void rank_merged_fini(struct rank_merged *g)
{
	vec_fini(&g->rows);
	u64map_fini(&g->messages);
}

int64_t rank_merged_copy(const struct rank_merged *g, const struct coll_xfer *x)
{
	uint64_t number;

	return u64map_get(&g->messages, key_of(x), &number) ? (int64_t)number : -1;
}

size_t rank_merged_find(const struct rank_merged *g, int number, size_t *end)
{
	size_t lo = 0, hi = g->rows.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (g->rows.v[mid].number < number) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (*end = lo; *end < g->rows.n && g->rows.v[*end].number == number;) {
		(*end)++;
	}
	return lo;
}

bool rank_merged_covers(const struct rank_merged *g, const struct rank_merge_row *row,
			int64_t chunk)
{
	int64_t origin = chunk / g->chunks, at = chunk % g->chunks;

	return (row->origin < 0 || row->origin == origin) && row->first <= at && at <= row->last;
}
