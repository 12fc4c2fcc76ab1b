/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the messages of an asynchronous simulation wait for.
 *
 * A transfer sends what came to its sender before its step: all that brought
 * chunks of the same shard (and destination) there must have ended, copies and
 * contributions to sums alike; a forwarded sum waits only for what brought that sum. An
 * index of all transfers by shard, node, destination (or whose sum) and chunk finds them. In
 * a compact schedule the transfers that are kept bring the shards of a few ranks everywhere,
 * so all that one of them needs is among them, and what holds between two of them holds
 * between their images. Where arcs have messages of their own, so does what holds between the
 * first message of an orbit and others.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/simulation/simulate.h"
#include "lib/base/alloc.h"

/* A transfer where it is searched for. */
struct needs_entry {
	int32_t transfer, step, first, last;
};

struct needs_index {
	struct sim_run *r;
	int32_t *by_place;	/* transfers by (origin, node they come to, part, first) */
	struct needs_entry *entry;	/* of these, one after the other */
	int32_t *group, n_groups;	/* where those of an origin and a node begin */
	int32_t *came;		/* of a transfer: the group that came to its sender, of the same
				 * origin; -1: none. Before: room to sort */
	int32_t *by_message;	/* transfers by message */
	int32_t *first;		/* in by_message, of a message */
	int32_t *seen;		/* of a message: the one that was found to need it, + 1 */
	int32_t *last;		/* of a sender: message + 1, 0: none */
	struct arrays arrays;
};

/* ---- parts of a shard at a node ---- */

#define ALL_PARTS (-1)

/* What y brings: the part for a rank, + 1; where sums are forwarded that of a rank, + 1, or 0
 * for copies; else there is one part only. */
static int32_t part_brought(const struct coll_sched *s, const struct coll_xfer *y)
{
	if (y->kept) {
		return coll_is_whole(s->ranks, y->kept)
			       ? 0 : coll_kept_number(s->ranks, y->kept) + 1;
	}
	return s->forwards && y->op == COLL_OP_REDUCE ? topo_arc(s->topo, y->arc)->src + 1
						      : y->dest + 1;
}

/* What x needs. */
static int32_t part_sent(const struct coll_sched *s, const struct coll_xfer *x)
{
	return s->forwards && x->op != COLL_OP_FORWARD ? ALL_PARTS : x->dest + 1;
}

/* ---- the index: places, and messages, by counting sort ---- */

typedef int32_t (*needs_key_fn)(const struct needs_index *ix, int32_t transfer);

static int32_t key_first(const struct needs_index *ix, int32_t transfer)
{
	return ix->r->s->xfers.v[transfer].first;
}

static int32_t key_part(const struct needs_index *ix, int32_t transfer)
{
	return part_brought(ix->r->s, &ix->r->s->xfers.v[transfer]);
}

static int32_t key_node(const struct needs_index *ix, int32_t transfer)
{
	return topo_arc(ix->r->s->topo, ix->r->s->xfers.v[transfer].arc)->dst;
}

static int32_t key_origin(const struct needs_index *ix, int32_t transfer)
{
	return ix->r->s->xfers.v[transfer].origin;
}

static int32_t key_message(const struct needs_index *ix, int32_t transfer)
{
	return ix->r->message_of[transfer];
}

/* Stable, from `from` to `to`; first, of keys + 1 zeros, becomes where each key
 * begins. */
static void sort_by(const struct needs_index *ix, needs_key_fn key, int32_t keys,
		    const int32_t *from, int32_t *to, int32_t *first)
{
	int32_t n = (int32_t)ix->r->s->xfers.n;

	for (int32_t i = 0; i < n; i++) {
		first[key(ix, from[i])]++;
	}
	for (int32_t k = 0; k < keys; k++) {
		first[k + 1] += first[k];
	}
	for (int32_t i = n - 1; i >= 0; i--) {
		to[--first[key(ix, from[i])]] = from[i];
	}
}

/* By the last key first. */
static void sort_places(struct needs_index *ix)
{
	const struct coll_sched *s = ix->r->s;
	struct arrays a = { 0 };
	int32_t *chunks, *parts, *nodes, *origins;

	arrays_add(&a, chunks, s->chunks + 1);
	arrays_add(&a, parts, s->ranks + 2);
	arrays_add(&a, nodes, topo_n(s->topo) + 1);
	arrays_add(&a, origins, s->ranks + 1);
	for (int32_t i = 0; i < (int32_t)s->xfers.n; i++) {
		ix->by_place[i] = i;
	}
	sort_by(ix, key_first, s->chunks, ix->by_place, ix->came, chunks);
	sort_by(ix, key_part, s->ranks + 1, ix->came, ix->by_place, parts);
	sort_by(ix, key_node, topo_n(s->topo), ix->by_place, ix->came, nodes);
	sort_by(ix, key_origin, s->ranks, ix->came, ix->by_place, origins);
	arrays_fini(&a);
}

/* Lists what comes to each node of each origin. */
static void list_groups(struct needs_index *ix)
{
	const struct coll_xfer *x = ix->r->s->xfers.v;
	int32_t n = (int32_t)ix->r->s->xfers.n, groups = 0;

	for (int32_t i = 0; i < n; i++) {
		int32_t at = ix->by_place[i], before = i ? ix->by_place[i - 1] : 0;

		if (i == 0 || key_node(ix, at) != key_node(ix, before) ||
		    x[at].origin != x[before].origin) {
			ix->group[groups++] = i;
		}
		ix->entry[i] = (struct needs_entry){ at, x[at].step, x[at].first, x[at].last };
	}
	ix->group[groups] = n;
	ix->n_groups = groups;
}

/* Where the senders' groups are: origin by origin, so that its nodes are found in a table. */
static void find_senders(struct needs_index *ix)
{
	const struct coll_sched *s = ix->r->s;
	int32_t *at = x_alloc((size_t)topo_n(s->topo) + 1, sizeof(*at)), end;

	for (int32_t from = 0; from < ix->n_groups; from = end) {
		int32_t origin = key_origin(ix, ix->by_place[ix->group[from]]), last;

		memset(at, -1, (size_t)topo_n(s->topo) * sizeof(*at));
		for (end = from; end < ix->n_groups; end++) {
			int32_t i = ix->by_place[ix->group[end]];

			if (key_origin(ix, i) != origin) {
				break;
			}
			at[key_node(ix, i)] = end;
		}
		last = ix->group[end];
		for (int32_t i = ix->group[from]; i < last; i++) {
			int32_t arc = s->xfers.v[ix->by_place[i]].arc;

			ix->came[ix->by_place[i]] = at[topo_arc(s->topo, arc)->src];
		}
	}
	free(at);
}

static void make_index(struct needs_index *ix)
{
	const struct coll_sched *s = ix->r->s;
	size_t n = s->xfers.n, messages = ix->r->net.messages.n;

	arrays_add(&ix->arrays, ix->by_place, n);
	arrays_add(&ix->arrays, ix->came, n);
	arrays_add(&ix->arrays, ix->by_message, n);
	arrays_add(&ix->arrays, ix->entry, n);
	arrays_add(&ix->arrays, ix->group, n + 1);
	arrays_add(&ix->arrays, ix->first, messages + 1);
	arrays_add(&ix->arrays, ix->seen, messages);
	arrays_add(&ix->arrays, ix->last, topo_m(s->topo));
	sort_places(ix);
	list_groups(ix);
	for (int32_t i = 0; i < (int32_t)n; i++) {
		ix->came[i] = i;
	}
	sort_by(ix, key_message, (int32_t)messages, ix->came, ix->by_message, ix->first);
	find_senders(ix);
}

/* ---- needs ---- */

/* Which part of a shard it is says something. */
static bool has_parts(const struct coll_sched *s, const struct coll_xfer *x)
{
	return (s->forwards || s->kind == COLL_ALLTOALL) && part_sent(s, x) != ALL_PARTS;
}

/* The first entry lo..hi - 1 of a group that brings the part that x sends, or behind. */
static int32_t find_part(const struct needs_index *ix, const struct coll_xfer *x, int32_t lo,
			 int32_t hi)
{
	const struct coll_sched *s = ix->r->s;

	while (lo < hi) {
		int32_t mid = lo + (hi - lo) / 2;

		if (part_brought(s, &s->xfers.v[ix->entry[mid].transfer]) < part_sent(s, x)) {
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
	vec_push(&ix->r->net.needs, need);
	return 0;
}

/* Where arcs have messages of their own: that of an arc's image, of the message of the first
 * arc of its orbit. */
static int32_t message_of_image(const struct needs_index *ix, int32_t first, int by, int arc)
{
	return first + ix->r->loads.place[topo_action_move(ix->r->s->action, by, arc)];
}

/* All that brought chunks of x to its sender, as element `by` moves it. */
static int add_moved_needs(struct needs_index *ix, int32_t message, const struct coll_xfer *x,
			   int by, struct err *err)
{
	const struct coll_sched *s = ix->r->s;
	bool sorted = part_sent(s, x) != ALL_PARTS;	/* by their first chunks */
	bool parts = has_parts(s, x);
	int32_t group = ix->came[x - s->xfers.v], i = group < 0 ? 0 : ix->group[group];
	int32_t end = group < 0 ? 0 : ix->group[group + 1];
	int rc = 0;

	for (i = parts ? find_part(ix, x, i, end) : i; i < end && !rc; i++) {
		const struct needs_entry *y = &ix->entry[i];

		if ((sorted && y->first > x->last) ||
		    (parts && part_brought(s, &s->xfers.v[y->transfer]) != part_sent(s, x))) {
			break;
		}
		if (y->step < x->step && y->last >= x->first && y->first <= x->last) {
			int32_t need = ix->r->message_of[y->transfer];

			need = ix->r->loads.place
				       ? message_of_image(ix, need, by, s->xfers.v[y->transfer].arc)
				       : need;
			rc = add_need(ix, message, need, err);
		}
	}
	return rc;
}

/* The message is that of the first arc of its orbit, x one of the transfers that are kept. */
static int add_needs_of(struct needs_index *ix, int32_t message, const struct coll_xfer *x,
			struct err *err)
{
	const struct topo_action *action = ix->r->s->action;
	int first, by, order = topo_group_order(ix->r->s->group), rc = 0;

	if (!ix->r->loads.place) {
		return add_moved_needs(ix, message, x, 0, err);
	}
	first = ix->r->messages.v[message].sender;
	by = coll_element_to(ix->r->s, x->arc, first);
	if (topo_action_size(action, topo_action_orbit(action, first)) == order) {
		return add_moved_needs(ix, message, x, by, err);
	}
	for (; by < order && !rc; by++) {	/* between memories, which may stay */
		if (topo_action_move(action, by, x->arc) == first) {
			rc = add_moved_needs(ix, message, x, by, err);
		}
	}
	return rc;
}

/* Of a message of another arc of the orbit: images of what the first needs. */
static int add_images(struct needs_index *ix, int32_t message, struct err *err)
{
	const struct coll_loads *w = &ix->r->loads;
	int32_t arc = ix->r->messages.v[message].sender, first = message - w->place[arc];
	int by = coll_element_to(ix->r->s, ix->r->messages.v[first].sender, arc), rc = 0;
	int32_t end = ix->r->net.messages.v[first + 1].first_need;

	for (int32_t i = ix->r->net.messages.v[first].first_need; i < end && !rc; i++) {
		int32_t need = ix->r->net.needs.v[i], from = ix->r->messages.v[need].sender;

		rc = add_need(ix, message, message_of_image(ix, need - w->place[from], by, from),
			      err);
	}
	return rc;
}

static int find_needs(struct needs_index *ix, struct err *err)
{
	struct sim_run *r = ix->r;
	int rc = 0;

	for (int32_t m = 0; m < (int32_t)r->net.messages.n && !rc; m++) {
		int32_t *last = &ix->last[r->messages.v[m].sender];

		r->net.messages.v[m].first_need = (int32_t)r->net.needs.n;
		if (r->loads.place && r->loads.place[r->messages.v[m].sender] > 0) {
			rc = add_images(ix, m, err);
			continue;
		}
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
	int rc;

	make_index(&ix);
	rc = find_needs(&ix, err);
	arrays_fini(&ix.arrays);
	return rc;
}
