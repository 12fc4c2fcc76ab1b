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

#include "collective/schedule/simulate.h"

struct needs_index {
	struct sim_run *r;
	int32_t *by_place;	/* transfers by (origin, node they come to, part, first) */
	uint64_t *place;	/* of the i-th of these */
	int32_t *room;		/* as many */
	int32_t *of_origin;	/* where those of an origin begin in by_place; of the end too */
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
	return s->forwards && y->op == COLL_OP_REDUCE ? topo_arc(s->topo, y->arc)->src + 1
						      : y->dest + 1;
}

/* What x needs. */
static int32_t part_sent(const struct coll_sched *s, const struct coll_xfer *x)
{
	return s->forwards && x->op != COLL_OP_FORWARD ? ALL_PARTS : x->dest + 1;
}

/* Places of an origin's shard are in the order of the index. */
static uint64_t place_of(int node, int32_t part)
{
	return (uint64_t)node << 32 | (uint32_t)part;
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
static int sort_places(struct needs_index *ix, struct err *err)
{
	const struct coll_sched *s = ix->r->s;
	struct arrays a = { 0 };
	int32_t *chunks, *parts, *nodes;
	int rc = 0;

	arrays_add(&a, chunks, s->chunks + 1);
	arrays_add(&a, parts, s->ranks + 2);
	arrays_add(&a, nodes, topo_n(s->topo) + 1);
	if (a.failed) {
		rc = err_nomem(err);
	} else {
		for (int32_t i = 0; i < (int32_t)s->xfers.n; i++) {
			ix->by_place[i] = i;
		}
		sort_by(ix, key_first, s->chunks, ix->by_place, ix->room, chunks);
		sort_by(ix, key_part, s->ranks + 1, ix->room, ix->by_place, parts);
		sort_by(ix, key_node, topo_n(s->topo), ix->by_place, ix->room, nodes);
		sort_by(ix, key_origin, s->ranks, ix->room, ix->by_place, ix->of_origin);
	}
	arrays_fini(&a);
	return rc;
}

static int make_index(struct needs_index *ix, struct err *err)
{
	const struct coll_sched *s = ix->r->s;
	size_t n = s->xfers.n, messages = ix->r->net.messages.n;
	int rc;

	arrays_add(&ix->arrays, ix->by_place, n);
	arrays_add(&ix->arrays, ix->place, n);
	arrays_add(&ix->arrays, ix->room, n);
	arrays_add(&ix->arrays, ix->by_message, n);
	arrays_add(&ix->arrays, ix->of_origin, s->ranks + 1);
	arrays_add(&ix->arrays, ix->first, messages + 1);
	arrays_add(&ix->arrays, ix->seen, messages);
	arrays_add(&ix->arrays, ix->last, topo_m(s->topo));
	if (ix->arrays.failed) {
		return err_nomem(err);
	}
	rc = sort_places(ix, err);
	for (int32_t i = 0; i < (int32_t)n; i++) {
		const struct coll_xfer *x = &s->xfers.v[ix->by_place[i]];

		ix->place[i] = place_of(topo_arc(s->topo, x->arc)->dst, part_brought(s, x));
		ix->room[i] = i;
	}
	sort_by(ix, key_message, (int32_t)messages, ix->room, ix->by_message, ix->first);
	return rc;
}

/* ---- needs ---- */

/* The first in the index that comes to this place, or behind it. */
static int32_t find_place(const struct needs_index *ix, int origin, uint64_t place)
{
	int32_t lo = ix->of_origin[origin], hi = ix->of_origin[origin + 1];

	while (lo < hi) {
		int32_t mid = lo + (hi - lo) / 2;

		if (ix->place[mid] < place) {
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
	int32_t end = ix->of_origin[x->origin + 1], part = part_sent(s, x);
	int node = topo_arc(s->topo, x->arc)->src, rc = 0;
	uint64_t first = place_of(node, part == ALL_PARTS ? 0 : part);
	uint64_t last = place_of(node, part);	/* of all parts: the last that there can be */

	for (int32_t i = find_place(ix, x->origin, first);
	     i < end && ix->place[i] <= last && !rc; i++) {
		const struct coll_xfer *y = &s->xfers.v[ix->by_place[i]];

		if (part != ALL_PARTS && y->first > x->last) {
			break;
		}
		if (y->step < x->step && y->last >= x->first && y->first <= x->last) {
			int32_t need = ix->r->message_of[ix->by_place[i]];

			need = ix->r->loads.place ? message_of_image(ix, need, by, y->arc) : need;
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
	int rc = make_index(&ix, err);

	if (!rc) {
		rc = find_needs(&ix, err);
	}
	arrays_fini(&ix.arrays);
	return rc;
}
