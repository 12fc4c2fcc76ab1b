/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lightpaths of a level go ahead of the rest, into channels that the
 * level before left in its last step. To lower the largest load of a level by
 * f, those that go ahead must cover every link by what its load exceeds the
 * largest less f. The links are visited in order, and a link that lacks cover
 * takes the arc that reaches furthest, as in covering by intervals; an arc
 * that began earlier is taken only if its first links have room.
 */
#include <stdlib.h>

#include "lib/base/heap.h"
#include "optree/baselines/baselines.h"

struct reach_end {
	int32_t end;
	int64_t arc;
};

HEAP(reach_heap, struct reach_end);

struct early {
	int n, boundary, room;
	struct arrays arrays;	/* owns load to order */
	int32_t *load;		/* n + 1: of the level, per link */
	int32_t *cover;		/* n: by the chosen arcs */
	int64_t *first;		/* n + 1: arcs by first link, in order[] */
	int64_t *order;
	struct reach_heap heap;	/* candidates, furthest end on top; room for
				 * all arcs */
};

static void early_fini(struct early *e)
{
	arrays_fini(&e->arrays);
	vec_fini(&e->heap);
}

static int32_t lo_of(const struct rwa_arc *a)
{
	return a->src < a->dst ? a->src : a->dst;
}

static int32_t end_of(const struct rwa_arc *a)
{
	return a->src < a->dst ? a->dst : a->src;
}

static void early_init(struct early *e, const struct rwa_arc *arcs, int64_t n_arcs, int dir)
{
	size_t n = (size_t)e->n + 2;

	arrays_add(&e->arrays, e->load, n);
	arrays_add(&e->arrays, e->cover, n);
	arrays_add(&e->arrays, e->first, n);
	arrays_add(&e->arrays, e->order, n_arcs + 1);
	vec_reserve(&e->heap, (size_t)n_arcs);
	for (int64_t k = 0; k < n_arcs; k++) {
		if (arcs[k].dir == dir) {
			e->load[lo_of(&arcs[k])]++;
			e->load[end_of(&arcs[k])]--;
			e->first[lo_of(&arcs[k]) + 1] += arcs[k].slot <= e->boundary;
		}
	}
	for (int v = 0; v < e->n; v++) {
		e->load[v + 1] += e->load[v];
		e->first[v + 1] += e->first[v];
	}
	for (int64_t k = 0; k < n_arcs; k++) {
		if (arcs[k].dir == dir && arcs[k].slot <= e->boundary) {
			e->order[e->first[lo_of(&arcs[k])]++] = k;
		}
	}
	for (int v = e->n; v > 0; v--) {
		e->first[v] = e->first[v - 1];
	}
	e->first[0] = 0;
}

/* Further ends above, then lower numbers. */
static inline bool above(struct reach_end a, struct reach_end b)
{
	return a.end != b.end ? a.end > b.end : a.arc < b.arc;
}

HEAP_FUNCTIONS(reach_heap, struct reach_end, above)

/* Covers the links of the arc unless one of them has no room. */
static int cover(struct early *e, const struct rwa_arc *a)
{
	for (int32_t v = lo_of(a); v < end_of(a); v++) {
		if (e->cover[v] >= e->room) {
			return 0;
		}
	}
	for (int32_t v = lo_of(a); v < end_of(a); v++) {
		e->cover[v]++;
	}
	return 1;
}

static void choose(struct early *e, const struct rwa_arc *arcs, uint8_t *take)
{
	int32_t max = 0;

	for (int v = 0; v < e->n; v++) {
		max = e->load[v] > max ? e->load[v] : max;
	}
	for (int32_t v = 0; v < e->n; v++) {
		int32_t lacks = e->load[v] - max + e->room;

		for (int64_t k = e->first[v]; k < e->first[v + 1]; k++) {
			reach_heap_add(&e->heap, (struct reach_end){
				end_of(&arcs[e->order[k]]), e->order[k] });
		}
		while (e->cover[v] < lacks && e->heap.n && e->heap.v[0].end > v) {
			struct reach_end r = reach_heap_pop(&e->heap);

			take[r.arc] |= (uint8_t)cover(e, &arcs[r.arc]);
		}
	}
}

void tree_choose_early(int n, const struct rwa_arc *arcs, int64_t n_arcs, int dir, int boundary,
		       int room, uint8_t *take)
{
	struct early e = { .n = n, .boundary = boundary, .room = room };

	if (room > 0 && n_arcs > 0) {
		early_init(&e, arcs, n_arcs, dir);
		choose(&e, arcs, take);
	}
	early_fini(&e);
}
