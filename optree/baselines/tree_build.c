/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the tree to lightpaths.
 *
 * Before each level every item is held by exactly one node of each segment:
 * trivially so for the ring, whose nodes hold their own. The level divides
 * the segments into children and sends each item from the child that holds
 * it to one node of every sibling, so afterwards it is held exactly once in
 * each child. When the segments are single nodes, every node has every item,
 * whatever the sizes of the children and whoever took the items: that is all
 * of the correctness. Who takes them decides the load. With equal children it
 * is the node at the same position, as in the paper; otherwise the items that
 * come in are spread so that the children of the next levels hold equal
 * shares, in the order of the senders, so that paths stay short.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/baselines/baselines.h"

struct tree_segment {
	int32_t lo, size;
};

struct tree_builder {
	const struct tree_shape *shape;
	struct tree_light *out;
	int n;
	struct arrays arrays;	/* owns all that follow */
	int32_t *items;		/* n * n: held by each node */
	int32_t *ready;		/* n * n: first step that may send it */
	int32_t *held;		/* n */
	int32_t *want;		/* n: items to hold after this level */
	int64_t *quota;		/* n + 1 */
	struct tree_segment *segs, *next;	/* n each */
	int n_segs, n_next;
	uint8_t *take;		/* per arc of the level: goes early */
	int used[2];		/* channels taken in the last step */
};

static void builder_fini(struct tree_builder *b)
{
	arrays_fini(&b->arrays);
}

static void builder_init(struct tree_builder *b, const struct tree_shape *shape,
			 struct tree_light *out)
{
	size_t n = (size_t)out->ring.n, arcs = n * (n - 1);

	*b = (struct tree_builder){ .shape = shape, .out = out, .n = out->ring.n };
	arrays_add(&b->arrays, b->items, n * n);
	arrays_add(&b->arrays, b->ready, n * n);
	arrays_add(&b->arrays, b->held, n);
	arrays_add(&b->arrays, b->want, n);
	arrays_add(&b->arrays, b->quota, n + 1);
	arrays_add(&b->arrays, b->segs, n);
	arrays_add(&b->arrays, b->next, n);
	arrays_add(&b->arrays, b->take, arcs);
	out->arcs = x_alloc(arcs, sizeof(*out->arcs));
	out->item = x_alloc(arcs, sizeof(*out->item));
	for (size_t v = 0; v < n; v++) {
		b->items[v * n] = (int32_t)v;
		b->ready[v * n] = 0;
		b->held[v] = 1;
	}
	b->segs[0] = (struct tree_segment){ 0, out->ring.n };
	b->n_segs = 1;
}

static int32_t colour_of(const struct rwa_ring *ring, const struct rwa_arc *a)
{
	return a->fibre * ring->channels + a->channel;
}

/* Moves an arc that was coloured from zero to colours from `base` on. */
static void shift_colour(const struct rwa_ring *ring, struct rwa_arc *a, int base)
{
	int width = ring->fibres * ring->channels;
	int64_t c = (int64_t)a->slot * width + colour_of(ring, a) + base;

	a->slot = (int32_t)(c / width);
	a->fibre = (uint8_t)(c % width / ring->channels);
	a->channel = (uint16_t)(c % ring->channels);
}

/* ---- level one: sets that share the ring ---- */

static int first_of(const struct tree_builder *b, int child)
{
	return tree_child(0, b->n, b->shape->radix[0], child);
}

static int size_of(const struct tree_builder *b, int child)
{
	return first_of(b, child + 1) - first_of(b, child);
}

/* Arcs first.. are coloured from zero: puts them above what is there. */
static void stack_colours(struct tree_light *t, int64_t first)
{
	int width = t->ring.fibres * t->ring.channels;
	int base[2] = { 0, 0 };

	for (int64_t k = 0; k < first; k++) {
		const struct rwa_arc *a = &t->arcs[k];
		int c = a->slot * width + colour_of(&t->ring, a) + 1;

		base[a->dir] = c > base[a->dir] ? c : base[a->dir];
	}
	for (int64_t k = first; k < t->n_arcs; k++) {
		shift_colour(&t->ring, &t->arcs[k], base[t->arcs[k].dir]);
	}
}

/* The last position exists in the longer children only: their nodes send,
 * and in the shorter ones the last node receives, as it is the nearest and
 * the lightpaths grow no longer. */
static int partial_set(struct tree_builder *b, const int32_t *members, int size,
		       struct rwa_result *res, struct err *err)
{
	struct tree_light *t = b->out;
	int r = b->shape->radix[0];
	struct rwa_arc *all = x_alloc((size_t)r * r, sizeof(*all));
	int64_t first = t->n_arcs, n;
	int rc = rwa_all_to_all(&t->ring, members, r, false, all, res, err);

	for (int64_t k = 0; !rc && k < (int64_t)r * (r - 1); k++) {
		if (size_of(b, (int)(k / (r - 1))) > size) {
			t->arcs[t->n_arcs++] = all[k];
		}
	}
	n = t->n_arcs - first;
	if (!rc) {
		rc = rwa_ring_colour(&t->ring, t->arcs + first, n, res, err);
	}
	if (!rc) {
		stack_colours(t, first);
	}
	free(all);
	return rc;
}

static int ring_level(struct tree_builder *b, struct rwa_result *res, struct err *err)
{
	struct tree_light *t = b->out;
	int r = b->shape->radix[0], size = b->n / r, longest = size;
	int32_t *members = x_alloc(((size_t)size + 1) * r, sizeof(*members));
	struct rwa_result rest = { 0 };
	int rc = 0;

	longest += b->n % r != 0;
	for (int k = 0; k < longest * r; k++) {
		int i = k % r, at = k / r, last = size_of(b, i) - 1;

		members[k] = first_of(b, i) + (at < last ? at : last);
	}
	rc = rwa_all_to_all_groups(&t->ring, members, r, size, t->arcs, res, err);
	t->n_arcs = (int64_t)size * r * (r - 1);
	if (!rc && longest > size) {
		rc = partial_set(b, members + (size_t)size * r, size, &rest, err);
		res->colours += rest.colours;
		res->bound += rest.bound;
	}
	for (int64_t k = 0; !rc && k < t->n_arcs; k++) {
		t->item[k] = t->arcs[k].src;
	}
	t->level[0] = (struct optree_level){
		.subsets = longest, .members = r, .items = 1 };
	free(members);
	return rc;
}

/* ---- deeper levels: children inside line segments ---- */

/* Children that a segment has at a level. */
static int children_of(const struct tree_builder *b, struct tree_segment s, int level)
{
	int r = b->shape->radix[level];

	return r < s.size ? r : s.size;
}

/* Shares items from .. to-1 among the nodes of a segment as the levels from
 * `level` on divide it. */
static void share(struct tree_builder *b, struct tree_segment s, int level, int from, int to)
{
	int r;

	if (s.size == 1) {
		b->want[s.lo] = to - from;
		return;
	}
	r = children_of(b, s, level);
	for (int i = 0; i < r; i++) {
		int lo = tree_child(s.lo, s.size, r, i);
		int end = tree_child(s.lo, s.size, r, i + 1);

		share(b, (struct tree_segment){ lo, end - lo }, level + 1,
		      from + (int)((int64_t)(to - from) * i / r),
		      from + (int)((int64_t)(to - from) * (i + 1) / r));
	}
}

static int64_t held_by(const struct tree_builder *b, struct tree_segment s)
{
	int64_t sum = 0;

	for (int32_t v = s.lo; v < s.lo + s.size; v++) {
		sum += b->held[v];
	}
	return sum;
}

/* quota[k+1]: of the `incoming` items, how many the first k+1 nodes of the
 * child take. */
static void make_quota(struct tree_builder *b, struct tree_segment child, int64_t incoming)
{
	int64_t sum = 0;

	b->quota[0] = 0;
	for (int32_t k = 0; k < child.size; k++) {
		int32_t more = b->want[child.lo + k] - b->held[child.lo + k];

		sum += more > 0 ? more : 0;
		b->quota[k + 1] = sum;
	}
	for (int32_t k = 1; k <= child.size; k++) {
		b->quota[k] = b->quota[k] * incoming / sum;
	}
}

/* Every item held in `from` goes to one node of `to`. `rank` of `ranks`
 * senders: their items are dealt alternately. */
static void send(struct tree_builder *b, struct tree_segment from, struct tree_segment to,
		 int rank, int ranks, int64_t incoming)
{
	struct tree_light *t = b->out;
	int64_t total = held_by(b, from), nth = 0;
	int32_t k = 0;

	for (int32_t v = from.lo; v < from.lo + from.size; v++) {
		for (int32_t h = 0; h < b->held[v]; h++, nth++) {
			int64_t at = (2 * ranks * nth + 2 * rank + 1) *
				     incoming / (2 * ranks * total);

			while (b->quota[k + 1] <= at) {
				k++;
			}
			/* Until it is coloured, slot is the first step that
			 * may carry the item. */
			t->arcs[t->n_arcs] = (struct rwa_arc){
				.src = v, .dst = to.lo + k,
				.dir = from.lo < to.lo ? RWA_CW : RWA_CCW,
				.slot = b->ready[(int64_t)v * b->n + h],
			};
			t->item[t->n_arcs++] = b->items[(int64_t)v * b->n + h];
		}
	}
}

static void note_level(struct tree_builder *b, int level, struct tree_segment s, int r)
{
	struct optree_level *l = &b->out->level[level];

	l->subsets += (s.size + r - 1) / r;
	l->members = r > l->members ? r : l->members;
	for (int32_t v = s.lo; v < s.lo + s.size; v++) {
		l->items = b->held[v] > l->items ? b->held[v] : l->items;
	}
}

static void make_children(struct tree_builder *b, int level)
{
	b->n_next = 0;
	for (int k = 0; k < b->n_segs; k++) {
		struct tree_segment s = b->segs[k];
		int r = children_of(b, s, level);

		for (int i = 0; i < r; i++) {
			int lo = tree_child(s.lo, s.size, r, i);
			int end = tree_child(s.lo, s.size, r, i + 1);

			b->next[b->n_next++] = (struct tree_segment){ lo, end - lo };
		}
	}
}

/* Each of the r children sends what it holds to each of the others. */
static void exchange(struct tree_builder *b, const struct tree_segment *child, int r, int level)
{
	for (int l = 0; l < r; l++) {
		int64_t incoming = b->n - held_by(b, child[l]);

		share(b, child[l], level + 1, 0, b->n);
		make_quota(b, child[l], incoming);
		for (int i = 0; i < r; i++) {
			if (i != l) {
				send(b, child[i], child[l], i < l ? i : i - 1, r - 1, incoming);
			}
		}
	}
}

static void line_level(struct tree_builder *b, int level)
{
	const struct tree_segment *child = b->next;

	for (int k = 0; k < b->n_segs; k++) {
		int r = children_of(b, b->segs[k], level);

		if (r > 1) {
			note_level(b, level, b->segs[k], r);
			exchange(b, child, r, level);
		}
		child += r;
	}
}

/* ---- steps ---- */

/* What of the level may go in the last step of the level before, on the
 * channels it left: moved to the front, coloured. Returns how many through
 * *n_early. */
static int go_early(struct tree_builder *b, int64_t first, int64_t *n_early, struct err *err)
{
	struct tree_light *t = b->out;
	struct rwa_arc *arcs = t->arcs + first;
	int32_t *item = t->item + first;
	int64_t n_arcs = t->n_arcs - first, n = 0;
	int width = t->ring.fibres * t->ring.channels, rc;
	struct rwa_result res;

	memset(b->take, 0, (size_t)n_arcs);
	for (int dir = RWA_CW; dir <= RWA_CCW; dir++) {
		tree_choose_early(b->n, arcs, n_arcs, dir, t->steps - 1, width - b->used[dir],
				  b->take);
	}
	for (int64_t k = 0; k < n_arcs; k++) {
		if (b->take[k]) {
			struct rwa_arc a = arcs[k];
			int32_t x = item[k];

			arcs[k] = arcs[n];
			item[k] = item[n];
			arcs[n] = a;
			item[n++] = x;
		}
	}
	*n_early = n;
	if (!n) {
		return 0;
	}
	rc = rwa_ring_colour(&t->ring, arcs, n, &res, err);
	for (int64_t k = 0; !rc && k < n; k++) {
		shift_colour(&t->ring, &arcs[k], b->used[arcs[k].dir]);
		arcs[k].slot += t->steps - 1;
	}
	return rc;
}

/* Channels that each direction uses in the last step so far. */
static void find_used(struct tree_builder *b, int64_t first)
{
	struct tree_light *t = b->out;

	for (int64_t k = first; k < t->n_arcs; k++) {
		const struct rwa_arc *a = &t->arcs[k];
		int c = colour_of(&t->ring, a) + 1;

		if (a->slot == t->steps - 1 && c > b->used[a->dir]) {
			b->used[a->dir] = c;
		}
	}
}

/* The items have arrived: their receivers hold them. */
static void deliver(struct tree_builder *b, int64_t first)
{
	const struct tree_light *t = b->out;

	for (int64_t k = first; k < t->n_arcs; k++) {
		int32_t v = t->arcs[k].dst;
		int64_t at = (int64_t)v * b->n + b->held[v]++;

		b->items[at] = t->item[k];
		b->ready[at] = t->arcs[k].slot + 1;
	}
}

/* Counts the steps of a coloured level whose arcs from `first` on carry
 * slots from 0 on. */
static void append_steps(struct tree_builder *b, int level, int64_t first, int slots)
{
	struct tree_light *t = b->out;

	for (int64_t k = first; k < t->n_arcs; k++) {
		t->arcs[k].slot += t->steps;
	}
	t->level[level].steps = slots;
	t->steps += slots;
	if (slots) {
		b->used[0] = b->used[1] = 0;
	}
}

static int build_level(struct tree_builder *b, int level, struct err *err)
{
	struct tree_light *t = b->out;
	struct rwa_result res = { 0 };
	int64_t first = t->n_arcs, early = 0;
	int width = t->ring.fibres * t->ring.channels, rc;

	make_children(b, level);
	if (level == 0 && !b->shape->line) {
		rc = ring_level(b, &res, err);
	} else {
		line_level(b, level);
		rc = level ? go_early(b, first, &early, err) : 0;
		if (!rc) {
			rc = rwa_ring_colour(&t->ring, t->arcs + first + early,
					     t->n_arcs - first - early, &res, err);
		}
	}
	if (rc) {
		return rc;
	}
	t->colours_over_bound += res.colours - res.bound;
	append_steps(b, level, first + early, (res.colours + width - 1) / width);
	find_used(b, first);
	deliver(b, first);
	return 0;
}

static void descend(struct tree_builder *b)
{
	struct tree_segment *t = b->segs;

	b->segs = b->next;
	b->n_segs = b->n_next;
	b->next = t;
}

int tree_build(const struct rwa_ring *ring, const struct tree_shape *shape,
	       struct tree_light *out, struct err *err)
{
	struct tree_builder b;
	int rc = 0;

	*out = (struct tree_light){ .ring = *ring };
	builder_init(&b, shape, out);
	for (int level = 0; !rc && level < shape->levels; level++) {
		rc = build_level(&b, level, err);
		descend(&b);
	}
	out->n_levels = shape->levels;
	builder_fini(&b);
	return rc;
}

void tree_light_fini(struct tree_light *t)
{
	free(t->arcs);
	free(t->item);
	t->arcs = NULL;
	t->item = NULL;
}
