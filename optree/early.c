/*
 * Which lightpaths of a level go ahead of the rest, into channels that the
 * level before left in its last step. To lower the largest load of a level by
 * f, those that go ahead must cover every link by what its load exceeds the
 * largest less f. The links are visited in order, and a link that lacks cover
 * takes the arc that reaches furthest, as in covering by intervals; an arc
 * that began earlier is taken only if its first links have room.
 */
#include <stdlib.h>

#include "optree/tree.h"

struct reach {
	int32_t end;
	int64_t arc;
};

struct early {
	int n, boundary, room;
	int32_t *load;		/* n + 1: of the level, per link */
	int32_t *cover;		/* n: by the chosen arcs */
	int64_t *first;		/* n + 1: arcs by first link, in order[] */
	int64_t *order;
	struct reach *heap;	/* candidates, furthest end on top */
	int64_t n_heap;
};

static void early_fini(struct early *e)
{
	free(e->load);
	free(e->cover);
	free(e->first);
	free(e->order);
	free(e->heap);
}

static int32_t lo_of(const struct rwa_arc *a)
{
	return a->src < a->dst ? a->src : a->dst;
}

static int32_t end_of(const struct rwa_arc *a)
{
	return a->src < a->dst ? a->dst : a->src;
}

static int early_init(struct early *e, const struct rwa_arc *arcs,
		      int64_t n_arcs, int dir, struct err *err)
{
	size_t n = (size_t)e->n + 2;

	e->load = calloc(n, sizeof(*e->load));
	e->cover = calloc(n, sizeof(*e->cover));
	e->first = calloc(n, sizeof(*e->first));
	e->order = malloc(((size_t)n_arcs + 1) * sizeof(*e->order));
	e->heap = malloc(((size_t)n_arcs + 1) * sizeof(*e->heap));
	if (!e->load || !e->cover || !e->first || !e->order || !e->heap) {
		return err_nomem(err);
	}
	for (int64_t k = 0; k < n_arcs; k++) {
		if (arcs[k].dir == dir) {
			e->load[lo_of(&arcs[k])]++;
			e->load[end_of(&arcs[k])]--;
			e->first[lo_of(&arcs[k]) + 1] +=
				arcs[k].slot <= e->boundary;
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
	return 0;
}

/* Further ends above, then lower numbers. */
static int above(struct reach a, struct reach b)
{
	return a.end != b.end ? a.end > b.end : a.arc < b.arc;
}

static void heap_push(struct early *e, struct reach r)
{
	int64_t k = e->n_heap++;

	for (; k > 0 && above(r, e->heap[(k - 1) / 2]); k = (k - 1) / 2) {
		e->heap[k] = e->heap[(k - 1) / 2];
	}
	e->heap[k] = r;
}

static struct reach heap_pop(struct early *e)
{
	struct reach top = e->heap[0], last = e->heap[--e->n_heap];
	int64_t k = 0;

	for (;;) {
		int64_t c = 2 * k + 1;

		if (c >= e->n_heap) {
			break;
		}
		c += c + 1 < e->n_heap && above(e->heap[c + 1], e->heap[c]);
		if (!above(e->heap[c], last)) {
			break;
		}
		e->heap[k] = e->heap[c];
		k = c;
	}
	e->heap[k] = last;
	return top;
}

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
	int32_t most = 0;

	for (int v = 0; v < e->n; v++) {
		most = e->load[v] > most ? e->load[v] : most;
	}
	for (int32_t v = 0; v < e->n; v++) {
		int32_t lacks = e->load[v] - most + e->room;

		for (int64_t k = e->first[v]; k < e->first[v + 1]; k++) {
			heap_push(e, (struct reach){
				end_of(&arcs[e->order[k]]), e->order[k] });
		}
		while (e->cover[v] < lacks && e->n_heap &&
		       e->heap[0].end > v) {
			struct reach r = heap_pop(e);

			take[r.arc] |= (uint8_t)cover(e, &arcs[r.arc]);
		}
	}
}

int tree_choose_early(int n, const struct rwa_arc *arcs, int64_t n_arcs,
		      int dir, int boundary, int room, uint8_t *take,
		      struct err *err)
{
	struct early e = { .n = n, .boundary = boundary, .room = room };
	int rc = 0;

	if (room > 0 && n_arcs > 0) {
		rc = early_init(&e, arcs, n_arcs, dir, err);
		if (!rc) {
			choose(&e, arcs, take);
		}
	}
	early_fini(&e);
	return rc;
}
