/*
 * What the messages of an asynchronous simulation wait for.
 *
 * A transfer sends what came to its sender before its step: all that brought
 * chunks of the same shard (and destination) there must have ended, copies and
 * contributions to sums alike. An index of all transfers by shard, node, destination and
 * chunk finds them. In a compact schedule the transfers that are kept bring the
 * shards of a few ranks everywhere, so all that one of them needs is among them,
 * and what holds between two of them holds between their images.
 */
#include <stdlib.h>

#include "collective/schedule/simulate.h"

struct needs_index {
	struct sim_run *r;
	int32_t *by_place;	/* transfers by (origin, node they come to, dest, first) */
	int32_t *by_message;	/* transfers by message */
	int32_t *first;		/* in by_message, of a message */
	int32_t *seen;		/* of a message: the one that was found to need it, + 1 */
	int32_t *last;		/* on a logical orbit: message + 1, 0: none */
	struct arrays arrays;
};

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Place of a transfer: where which chunk comes to. */
static int compare_places(const void *pa, const void *pb, void *arg)
{
	const struct coll_sched *s = arg;
	const struct coll_xfer *a = &s->xfers.v[*(const int32_t *)pa];
	const struct coll_xfer *b = &s->xfers.v[*(const int32_t *)pb];
	int c = compare(a->origin, b->origin);

	if (!c) {
		c = compare(topo_arc(s->topo, a->arc)->dst, topo_arc(s->topo, b->arc)->dst);
	}
	if (!c) {
		c = compare(a->dest, b->dest);
	}
	if (!c) {
		c = compare(a->first, b->first);
	}
	return c ? c : compare(a->step, b->step);
}

/* Transfer y comes to another place than the sender of x, or with another
 * shard: before (-1), there (0) or behind (1) in the index. */
static int beside(const struct coll_sched *s, const struct coll_xfer *y, const struct coll_xfer *x)
{
	int c = compare(y->origin, x->origin);

	if (!c) {
		c = compare(topo_arc(s->topo, y->arc)->dst, topo_arc(s->topo, x->arc)->src);
	}
	return c ? c : compare(y->dest, x->dest);
}

/* The first in the index that comes to the sender of x, or behind. */
static int64_t find_place(const struct needs_index *ix, const struct coll_xfer *x)
{
	const struct coll_sched *s = ix->r->s;
	int64_t lo = 0, hi = (int64_t)s->xfers.n;

	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;

		if (beside(s, &s->xfers.v[ix->by_place[mid]], x) < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static int add_need(struct needs_index *ix, int32_t message, int32_t need, struct err *err)
{
	if (ix->seen[need] == message + 1) {
		return 0;
	}
	ix->seen[need] = message + 1;
	if (ix->r->net.needs.n == INT32_MAX) {
		return err_set(err, WEFT_ELIMIT, "too many messages for a simulation");
	}
	return vec_push(&ix->r->net.needs, need) ? err_nomem(err) : 0;
}

/* All that brought chunks of x to its sender. */
static int add_needs_of(struct needs_index *ix, int32_t message, const struct coll_xfer *x,
			struct err *err)
{
	const struct coll_sched *s = ix->r->s;
	int rc = 0;

	for (int64_t i = find_place(ix, x); i < (int64_t)s->xfers.n && !rc; i++) {
		const struct coll_xfer *y = &s->xfers.v[ix->by_place[i]];

		if (beside(s, y, x) || y->first > x->last) {
			break;
		}
		if (y->step < x->step && y->last >= x->first) {
			rc = add_need(ix, message, ix->r->message_of[ix->by_place[i]], err);
		}
	}
	return rc;
}

/* Counting sort by message. */
static void sort_by_message(struct needs_index *ix)
{
	int32_t n = (int32_t)ix->r->s->xfers.n, messages = (int32_t)ix->r->net.messages.n;

	for (int32_t i = 0; i < n; i++) {
		ix->first[ix->r->message_of[i]]++;
	}
	for (int32_t m = 0; m < messages; m++) {
		ix->first[m + 1] += ix->first[m];
	}
	for (int32_t i = n - 1; i >= 0; i--) {
		ix->by_message[--ix->first[ix->r->message_of[i]]] = i;
	}
}

static int make_index(struct needs_index *ix, struct err *err)
{
	size_t n = ix->r->s->xfers.n, messages = ix->r->net.messages.n;

	arrays_add(&ix->arrays, ix->by_place, n);
	arrays_add(&ix->arrays, ix->by_message, n);
	arrays_add(&ix->arrays, ix->first, messages + 1);
	arrays_add(&ix->arrays, ix->seen, messages);
	arrays_add(&ix->arrays, ix->last, coll_orbits(ix->r->s));
	if (ix->arrays.failed) {
		return err_nomem(err);
	}
	for (size_t i = 0; i < n; i++) {
		ix->by_place[i] = (int32_t)i;
	}
	qsort_r(ix->by_place, n, sizeof(*ix->by_place), compare_places, (void *)ix->r->s);
	sort_by_message(ix);
	return 0;
}

static int find_needs(struct needs_index *ix, struct err *err)
{
	struct sim_run *r = ix->r;
	int rc = 0;

	for (int32_t m = 0; m < (int32_t)r->net.messages.n && !rc; m++) {
		int32_t *last = &ix->last[r->messages.v[m].orbit];

		r->net.messages.v[m].first_need = (int32_t)r->net.needs.n;
		rc = *last == 0 ? 0 : add_need(ix, m, *last - 1, err);
		*last = m + 1;
		for (int32_t i = ix->first[m]; i < ix->first[m + 1] && !rc; i++) {
			rc = add_needs_of(ix, m, &r->s->xfers.v[ix->by_message[i]], err);
		}
	}
	return rc;
}

int sim_find_needs(struct sim_run *r, struct err *err)
{
	struct needs_index ix = { .r = r };
	int rc = make_index(&ix, err);

	if (!rc) {
		rc = find_needs(&ix, err);
	}
	arrays_fini(&ix.arrays);
	return rc;
}
