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

/* The origins of one piece while they are sorted out by their keys: the last step, then the first
 * step of each link. */
struct bfb_keys {
	int size;		/* of a key */
	int32_t *at;		/* by origin and byte of the key: of which due of a piece it is */
	uint8_t *key;		/* of a group, as they came */
	int32_t *slot;		/* hash table: number of a group and 1 */
	uint32_t mask;
	int n;			/* groups */
	int32_t *group;		/* of an origin */
	int32_t *count, *place;	/* of a group: origins, and where the next one goes */
	int32_t *order;		/* groups by their keys */
	VEC(uint8_t) keys;	/* of the groups of all pieces */
	struct arrays arrays;
};

/* Where the dues of a piece have that of `node` for an origin that `by` takes to the first of its
 * orbit. */
static int32_t place_of(const struct bfb_pieces *p, const struct topo_group *g, int source, int by,
			int node)
{
	return source * p->n + (g ? topo_group_move(g, by, node) : node);
}

static void keys_init(struct bfb_keys *s, const struct bfb_taker *k, const struct topo *t,
		      const struct topo_group *g, const struct bfb_pieces *p)
{
	size_t n = (size_t)p->n, slots = 16;

	while (slots < 2 * n) {
		slots *= 2;
	}
	s->size = k->n_links + 1;
	s->mask = (uint32_t)slots - 1;
	arrays_add(&s->arrays, s->at, n * (size_t)s->size);
	arrays_add(&s->arrays, s->key, (n + 1) * (size_t)s->size);
	arrays_add(&s->arrays, s->slot, slots);
	arrays_add(&s->arrays, s->group, n);
	arrays_add(&s->arrays, s->count, n);
	arrays_add(&s->arrays, s->place, n);
	arrays_add(&s->arrays, s->order, n);
	for (int origin = 0; origin < p->n; origin++) {
		int source = g ? topo_group_first(g, origin) : origin;
		int by = g ? topo_group_inverse(g, topo_group_element(g, origin)) : 0;
		int32_t *at = s->at + origin * s->size;

		at[0] = place_of(p, g, source, by, k->node);
		for (int w = 0; w < k->n_links; w++) {
			at[1 + w] = place_of(p, g, source, by, topo_arc(t, k->links[w])->src);
		}
	}
}

static void keys_fini(struct bfb_keys *s)
{
	vec_fini(&s->keys);
	arrays_fini(&s->arrays);
}

/* The group of an origin, which may be a new one. */
static int find_group(struct bfb_keys *s, const uint8_t *due, int origin)
{
	uint8_t *key = s->key + s->n * s->size;
	const int32_t *at = s->at + origin * s->size;
	uint64_t hash = key[0] = due[at[0]];
	uint32_t i;

	for (int b = 1; b < s->size; b++) {
		key[b] = due[at[b]] < key[0] ? (uint8_t)(due[at[b]] + 1) : UINT8_MAX;
		hash = (hash ^ key[b]) * UINT64_C(0x9e3779b97f4a7c15);
	}
	for (i = (uint32_t)(hash >> 32) & s->mask; s->slot[i]; i = (i + 1) & s->mask) {
		if (memcmp(s->key + (s->slot[i] - 1) * s->size, key, (size_t)s->size) == 0) {
			return s->slot[i] - 1;
		}
	}
	s->count[s->n] = 0;
	s->order[s->n] = s->n;
	s->slot[i] = ++s->n;
	return s->n - 1;
}

static int by_key(const void *a, const void *b, void *arg)
{
	const struct bfb_keys *s = arg;

	return memcmp(s->key + *(const int32_t *)a * s->size,
		      s->key + *(const int32_t *)b * s->size, (size_t)s->size);
}

/* The groups of one piece, and their origins one after the other. */
static void sort_piece(struct bfb_taker *k, struct bfb_keys *s, int n, const uint8_t *due,
		       int32_t *origins)
{
	int32_t at = 0;

	memset(s->slot, 0, ((size_t)s->mask + 1) * sizeof(*s->slot));
	s->n = 0;
	for (int u = 0; u < n; u++) {
		s->group[u] = u == k->node ? -1 : find_group(s, due, u);
		if (u != k->node) {
			s->count[s->group[u]]++;
		}
	}
	qsort_r(s->order, (size_t)s->n, sizeof(*s->order), by_key, s);
	for (int i = 0; i < s->n; i++) {
		s->place[s->order[i]] = at;
		at += s->count[s->order[i]];
	}
	for (int u = 0; u < n; u++) {
		if (u != k->node) {
			origins[s->place[s->group[u]]++] = u;
		}
	}
}

/* Takes over the groups of a piece. */
static void add_groups(struct bfb_taker *k, struct bfb_keys *s, int piece)
{
	for (int i = 0; i < s->n; i++) {
		const uint8_t *key = s->key + s->order[i] * s->size;

		for (int b = 0; b < s->size; b++) {
			vec_push(&s->keys, key[b]);
		}
		vec_push(&k->groups, ((struct bfb_taker_group){ piece, s->count[s->order[i]] }));
	}
}

/* The slots of a group of this key. */
static void add_slots(struct bfb_taker *k, int group, const uint8_t *key, size_t *cap)
{
	struct bfb_program *b = &k->b;
	struct bfb_group *g = &b->groups[group];

	*g = (struct bfb_group){ .first = b->n_use };
	vec_grow((void **)&b->use, cap, (size_t)b->n_use + (size_t)b->n_links, sizeof(*b->use));
	for (int w = 0; w < k->n_links; w++) {
		for (int step = key[1 + w]; step <= key[0]; step++) {
			int slot = (step - 1) * k->n_links + w;

			b->use[b->n_use++] = slot;
			if (k->sets) {
				k->sets[group] |= UINT64_C(1) << slot;
			}
		}
	}
	g->n = b->n_use - g->first;
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
	struct bfb_keys s = { 0 };
	size_t dues = (size_t)p->sources * (size_t)p->n, use = 0;
	int rc;

	*k = (struct bfb_taker){ .node = node, .level = level };
	if ((rc = load_links(k, t, p->steps, err))) {
		return rc;
	}
	keys_init(&s, k, t, g, p);
	arrays_add(&k->arrays, k->origins, (size_t)(p->n - 1) * (size_t)p->count);
	for (int piece = 0; piece < p->count; piece++) {
		sort_piece(k, &s, p->n, p->due + (size_t)piece * dues,
			   k->origins + piece * (p->n - 1));
		add_groups(k, &s, piece);
	}
	k->b.n_groups = (int)k->groups.n;
	k->b.groups = x_alloc(k->groups.n + 1, sizeof(*k->b.groups));
	if (k->b.n_links <= BFB_LEVEL_MAX_LINKS) {
		arrays_add(&k->arrays, k->sets, k->groups.n);
	}
	for (int i = 0; i < k->b.n_groups; i++) {
		add_slots(k, i, s.keys.v + i * s.size, &use);
	}
	keys_fini(&s);
	return 0;
}

void bfb_taker_fini(struct bfb_taker *k)
{
	vec_fini(&k->groups);
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
		row[steps + k->groups.v[g].piece] += inside ? k->groups.v[g].count : 0;
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
		b->groups[g].items = k->groups.v[g].count * sizes[k->groups.v[g].piece];
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
