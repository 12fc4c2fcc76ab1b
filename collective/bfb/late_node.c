/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one node takes, and whether its links have room for it.
 *
 * An origin's piece may come over a link in every step after its other end has it, up to the
 * step in which it is due. So a key of one number a link, and the last step, says which slots
 * it may use; equal keys are one group of a balancing program whose links are slots. That
 * program's flow either fits or has a set of slots that is too small for those who can use no
 * other, which is a row of the program that all nodes share.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/late.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* An origin and piece while they are sorted: key_size bytes, then the origin. */
struct bfb_taker_item {
	int32_t origin, piece;
	uint8_t key[];		/* last step, then the first step of each link */
};

struct bfb_taker_items {
	size_t size;		/* of an item */
	int key, n;
	char *v;
};

static struct bfb_taker_item *item_at(const struct bfb_taker_items *s, int i)
{
	return (struct bfb_taker_item *)(s->v + (size_t)i * s->size);
}

static int compare(const void *pa, const void *pb, void *arg)
{
	const struct bfb_taker_items *s = arg;
	const struct bfb_taker_item *a = pa, *b = pb;
	int c = a->piece - b->piece;

	c = c ? c : memcmp(a->key, b->key, (size_t)s->key);
	return c ? c : a->origin - b->origin;
}

/* When `node` has the piece of an origin that `by` takes to the first of its orbit. */
static int due_at(const struct bfb_pieces *p, const struct topo_group *g, int piece, int source,
		  int by, int node)
{
	int image = g ? topo_group_move(g, by, node) : node;

	return p->due[((size_t)piece * (size_t)p->sources + (size_t)source) * (size_t)p->n +
		      (size_t)image];
}

/* The items of one origin. */
static void load_items(const struct bfb_taker *k, const struct topo *t, const struct topo_group *g,
		       const struct bfb_pieces *p, int origin, struct bfb_taker_items *s)
{
	int source = g ? topo_group_first(g, origin) : origin;
	int by = g ? topo_group_inverse(g, topo_group_element(g, origin)) : 0;

	for (int piece = 0; piece < p->count; piece++) {
		struct bfb_taker_item *x = item_at(s, s->n++);
		int last = due_at(p, g, piece, source, by, k->node);

		x->origin = origin;
		x->piece = piece;
		x->key[0] = (uint8_t)last;
		for (int w = 0; w < k->n_links; w++) {
			int from = topo_arc(t, k->links[w])->src;
			int first = 1 + due_at(p, g, piece, source, by, from);

			x->key[1 + w] = first <= last ? (uint8_t)first : UINT8_MAX;
		}
	}
}

static void add_group(struct bfb_taker *k, const struct bfb_taker_item *x, size_t *cap)
{
	struct bfb_program *b = &k->b;
	struct bfb_group *g = &b->groups[b->n_groups];

	*g = (struct bfb_group){ .first = b->n_use };
	k->piece[b->n_groups] = x->piece;
	k->count[b->n_groups++] = 0;
	vec_grow((void **)&b->use, cap, (size_t)b->n_use + (size_t)b->n_links, sizeof(*b->use));
	for (int w = 0; w < k->n_links; w++) {
		for (int step = x->key[1 + w]; step <= x->key[0]; step++) {
			int slot = (step - 1) * k->n_links + w;

			b->use[b->n_use++] = slot;
			if (k->sets) {
				k->sets[b->n_groups - 1] |= UINT64_C(1) << slot;
			}
		}
	}
	g->n = b->n_use - g->first;
}

static void group_items(struct bfb_taker *k, const struct bfb_taker_items *s)
{
	const struct bfb_taker_item *before = NULL;
	size_t cap = 0;

	for (int i = 0; i < s->n; i++) {
		const struct bfb_taker_item *x = item_at(s, i);

		if (!before || before->piece != x->piece ||
		    memcmp(before->key, x->key, (size_t)s->key) != 0) {
			add_group(k, x, &cap);
		}
		k->count[k->b.n_groups - 1]++;
		k->origins[i] = x->origin;
		before = x;
	}
}

int64_t bfb_late_unit(const struct topo *t)
{
	int64_t unit = 0;

	for (int a = 0; a < topo_m(t); a++) {
		unit = rat_gcd(topo_arc(t, a)->cap, unit);
	}
	return unit;
}

/* Links and slots. */
static int load_links(struct bfb_taker *k, const struct topo *t, int steps, struct err *err)
{
	const int32_t *arcs;
	int32_t *links;
	int64_t unit = bfb_late_unit(t);
	int n = topo_in(t, k->node, &arcs);

	arrays_add(&k->arrays, links, n);
	arrays_add(&k->arrays, k->b.cap, (size_t)n * (size_t)steps);
	for (int i = 0; i < n; i++) {
		if (topo_arc(t, arcs[i])->src != k->node) {
			links[k->n_links++] = arcs[i];
		}
	}
	k->links = links;
	k->b.n_links = k->n_links * steps;
	for (int slot = 0; slot < k->b.n_links; slot++) {
		k->b.cap[slot] = topo_arc(t, links[slot % k->n_links])->cap / unit;
		if (k->b.cap[slot] > BFB_LATE_MAX_CAP) {
			return err_set(err, WEFT_ELIMIT,
				       "late pieces: a capacity is %lld times the "
				       "common divisor of all, at most %d times is supported",
				       (long long)k->b.cap[slot], BFB_LATE_MAX_CAP);
		}
	}
	return 0;
}

int bfb_taker_init(struct bfb_taker *k, const struct topo *t, const struct topo_group *g,
		   const struct bfb_pieces *p, int node, struct bfb_level *level, struct err *err)
{
	struct bfb_taker_items s = { 0 };
	size_t items = (size_t)(p->n - 1) * (size_t)p->count;
	int rc;

	*k = (struct bfb_taker){ .node = node, .level = level };
	if ((rc = load_links(k, t, p->steps, err))) {
		return rc;
	}
	s.key = k->n_links + 1;
	s.size = (sizeof(struct bfb_taker_item) + (size_t)s.key + 3) / 4 * 4;
	s.v = x_alloc(items * s.size + 1, 1);
	k->b.groups = x_alloc(items + 1, sizeof(*k->b.groups));
	arrays_add(&k->arrays, k->piece, items);
	arrays_add(&k->arrays, k->count, items);
	arrays_add(&k->arrays, k->origins, items);
	if (k->b.n_links <= BFB_LEVEL_MAX_LINKS) {
		arrays_add(&k->arrays, k->sets, items);
	}
	for (int origin = 0; origin < p->n; origin++) {
		if (origin != node) {
			load_items(k, t, g, p, origin, &s);
		}
	}
	qsort_r(s.v, (size_t)s.n, s.size, compare, &s);
	group_items(k, &s);
	free(s.v);
	return 0;
}

void bfb_taker_fini(struct bfb_taker *k)
{
	free(k->b.groups);
	free(k->b.use);
	arrays_fini(&k->arrays);
}

/* What the items that can use only the marked slots need of loads and sizes. */
static void fill_row(const struct bfb_taker *k, int steps, int pieces, const bool *cut,
		     int64_t *row)
{
	const struct bfb_program *b = &k->b;
	uint64_t set = 0;

	memset(row, 0, (size_t)(steps + pieces) * sizeof(*row));
	for (int slot = 0; slot < b->n_links; slot++) {
		row[slot / k->n_links] += cut[slot] ? b->cap[slot] : 0;
	}
	for (int slot = 0; slot < b->n_links && k->sets; slot++) {
		set |= (uint64_t)cut[slot] << slot;
	}
	for (int g = 0; g < b->n_groups; g++) {
		bool inside = k->sets ? (k->sets[g] & ~set) == 0 : true;

		for (int i = 0; i < b->groups[g].n && inside && !k->sets; i++) {
			inside = cut[b->use[b->groups[g].first + i]];
		}
		row[steps + k->piece[g]] += inside ? k->count[g] : 0;
	}
}

/* By sets of slots: what may use the same ones is one group whatever its piece. */
static bool fit_sets(const struct bfb_taker *k, const int64_t *room, bool *cut)
{
	const struct bfb_program *b = &k->b;
	uint64_t set;
	bool fits;

	bfb_level_begin(k->level, b->n_links, b->cap, b->n_groups);
	for (int g = 0; g < b->n_groups; g++) {
		if (b->groups[g].items > 0) {
			bfb_level_add_items(k->level, k->sets[g], b->groups[g].items);
		}
	}
	fits = bfb_level_carries(k->level, room, &set);
	for (int slot = 0; slot < b->n_links && !fits; slot++) {
		cut[slot] = set >> slot & 1;
	}
	return fits;
}

int bfb_taker_fit(struct bfb_taker *k, int steps, int pieces, const int64_t *sizes,
		  const int64_t *load, int64_t *share, int64_t *row, bool *fits, struct err *err)
{
	struct bfb_program *b = &k->b;
	int64_t *room = x_alloc((size_t)b->n_links + 1, sizeof(*room));
	bool *cut = x_alloc((size_t)b->n_links + 1, 1);
	int64_t all = 0;
	int rc = 0;

	*fits = false;
	k->asked = 0;
	for (int g = 0; g < b->n_groups; g++) {
		b->groups[g].items = k->count[g] * sizes[k->piece[g]];
		k->asked += b->groups[g].items > 0 ? (k->sets ? 1 : b->groups[g].n) : 0;
		all += b->groups[g].items;
	}
	for (int slot = 0; slot < b->n_links; slot++) {
		int64_t l = load[slot / k->n_links];

		room[slot] = l <= all / b->cap[slot] ? l * b->cap[slot] : all;
	}
	if (k->sets && !share) {
		*fits = fit_sets(k, room, cut);
	} else {
		rc = bfb_program_fit(b, 1, room, share, cut, fits, err);
	}
	if (!rc && !*fits) {
		fill_row(k, steps, pieces, cut, row);
	}
	free(room);
	free(cut);
	return rc;
}
