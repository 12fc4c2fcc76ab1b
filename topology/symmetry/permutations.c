/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that permutations generate, for Cayley graphs: see struct topo_cayley_chain.
 *
 * A chain of subgroups, each of what leaves one more point where it is, and of each
 * one element for every image of that point: so an element is a digit a level, products
 * are two look-ups a point, and the group is told apart from a larger one without listing it.
 * The chain is made by Knuth's "Efficient representation of perm groups" (Combinatorica 11,
 * 1991, algorithms A and B) and holds no pointers, so that groups are plain values.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

#define POINTS TOPO_CAYLEY_MAX_POINTS
#define NONE 0xff
/* Images of the base point that are looked at for the generators of a group. */
#define MAX_LOOKS (1 << 20)
#define MAX_SETS 64		/* of points, that a factor is tried by */

/* c = a, then b. */
static void compose(int points, const uint8_t *a, const uint8_t *b, uint8_t *c)
{
	for (int p = 0; p < points; p++) {
		c[p] = b[a[p]];
	}
}

static void invert(int points, const uint8_t *a, uint8_t *inverse)
{
	for (int p = 0; p < points; p++) {
		inverse[a[p]] = (uint8_t)p;
	}
}

static void set_identity(int points, uint8_t *a)
{
	for (int p = 0; p < points; p++) {
		a[p] = (uint8_t)p;
	}
}

/* ---- making the chain ---- */

/* Of level k: elements that leave the points below k where they are. */
struct topo_chain_level {
	bool there[POINTS];
	uint8_t *move, *back;	/* by point, `points` each: takes k to it; the inverse */
	VEC(struct topo_permutation) generators;
	int length;
};

struct topo_chain_work {
	int points;
	int64_t order;			/* product of the lengths so far */
	int rc;
	uint8_t *rows;			/* of all levels */
	struct topo_chain_level level[];	/* one a point */
};

static uint8_t *move_to(const struct topo_chain_work *w, int k, int p)
{
	return w->level[k].move + p * w->points;
}

static uint8_t *back_from(const struct topo_chain_work *w, int k, int p)
{
	return w->level[k].back + p * w->points;
}

static bool is_member(const struct topo_chain_work *w, int k, const uint8_t *g)
{
	uint8_t rest[POINTS], next[POINTS];

	memcpy(rest, g, (size_t)w->points);
	for (; k < w->points; k++) {
		int p = rest[k];

		if (!w->level[k].there[p]) {
			return false;
		}
		/* What takes a point to itself is the identity. */
		if (p == k) {
			continue;
		}
		compose(w->points, rest, back_from(w, k, p), next);
		memcpy(rest, next, (size_t)w->points);
	}
	return true;
}

static void close_level(struct topo_chain_work *w, int k, const uint8_t *g);

/* Algorithm A: level k generates g too. */
static void insert(struct topo_chain_work *w, int k, const uint8_t *g)
{
	struct topo_chain_level *level = &w->level[k];
	struct topo_permutation generator;

	if (w->rc || is_member(w, k, g)) {
		return;
	}
	memset(&generator, 0, sizeof(generator));
	memcpy(generator.image, g, (size_t)w->points);
	vec_push(&level->generators, generator);
	for (int p = k; p < w->points && !w->rc; p++) {
		uint8_t product[POINTS] = { 0 };

		if (level->there[p]) {
			compose(w->points, move_to(w, k, p), g, product);
			close_level(w, k, product);
		}
	}
}

/* Algorithm B: g, of level k, is a product that the chain must have. */
static void close_level(struct topo_chain_work *w, int k, const uint8_t *g)
{
	struct topo_chain_level *level = &w->level[k];
	uint8_t product[POINTS] = { 0 };
	int p = g[k];

	if (level->there[p]) {
		compose(w->points, g, back_from(w, k, p), product);
		if (k + 1 < w->points) {
			insert(w, k + 1, product);
		}
		return;
	}
	w->order = w->order / level->length * (level->length + 1);
	level->length++;
	if (w->order > TOPO_MAX_NODES) {
		w->rc = WEFT_ELIMIT;
		return;
	}
	level->there[p] = true;
	memcpy(move_to(w, k, p), g, (size_t)w->points);
	invert(w->points, g, back_from(w, k, p));
	for (size_t i = 0; i < level->generators.n && !w->rc; i++) {
		compose(w->points, g, level->generators.v[i].image, product);
		close_level(w, k, product);
	}
}

/* Leaves out the levels of one element. */
static void store_chain(const struct topo_chain_work *w, struct topo_cayley_chain *x)
{
	int end = 0;

	*x = (struct topo_cayley_chain){ .points = w->points };
	memset(x->at, NONE, sizeof(x->at));
	x->size[0] = (int32_t)w->order;
	for (int k = 0; k < w->points; k++) {
		const struct topo_chain_level *level = &w->level[k];
		int i = x->levels;

		if (level->length == 1) {
			continue;
		}
		x->base[i] = (uint8_t)k;
		x->first[i] = (uint8_t)end;
		x->size[i + 1] = x->size[i] / level->length;
		for (int p = k; p < w->points; p++) {
			if (level->there[p]) {
				memcpy(x->move[end], move_to(w, k, p), (size_t)w->points);
				memcpy(x->back[end], back_from(w, k, p), (size_t)w->points);
				x->at[i][p] = (uint8_t)end++;
			}
		}
		x->levels++;
		x->first[x->levels] = (uint8_t)end;
	}
}

int topo_cayley_generate(struct topo_cayley_group *x, int points,
			 const struct topo_permutation *generators, int n)
{
	struct topo_chain_work *w = x_new(1, sizeof(*w) + (size_t)points * sizeof(*w->level));
	size_t square = (size_t)points * (size_t)points;
	int rc;

	w->rows = x_new(2 * square, (size_t)points);
	w->points = points;
	w->order = 1;
	for (int k = 0; k < points; k++) {
		w->level[k].there[k] = true;
		w->level[k].length = 1;
		w->level[k].move = w->rows + (size_t)(2 * k) * square;
		w->level[k].back = w->level[k].move + square;
		set_identity(points, move_to(w, k, k));
		set_identity(points, back_from(w, k, k));
	}
	for (int i = 0; i < n; i++) {
		insert(w, 0, generators[i].image);
	}
	rc = w->rc;
	if (!rc) {
		memset(x, 0, sizeof(*x));
		store_chain(w, &x->chain);
	}
	for (int k = 0; k < points; k++) {
		vec_fini(&w->level[k].generators);
	}
	free(w->rows);
	free(w);
	return rc;
}

/* ---- elements ---- */

void topo_chain_element(const struct topo_cayley_chain *x, int64_t number, uint8_t *image)
{
	uint8_t next[POINTS];

	set_identity(POINTS, image);
	for (int i = x->levels; i-- > 0;) {
		int64_t digit = number / x->size[i + 1] % (x->size[i] / x->size[i + 1]);

		compose(x->points, image, x->move[x->first[i] + digit], next);
		memcpy(image, next, (size_t)x->points);
	}
}

int64_t topo_chain_number(const struct topo_cayley_chain *x, const uint8_t *image)
{
	uint8_t rest[POINTS], next[POINTS];
	int64_t number = 0;

	memcpy(rest, image, (size_t)x->points);
	for (int i = 0; i < x->levels; i++) {
		int at = x->at[i][rest[x->base[i]]];

		number += (int64_t)(at - x->first[i]) * x->size[i + 1];
		compose(x->points, rest, x->back[at], next);
		memcpy(rest, next, (size_t)x->points);
	}
	return number;
}

int64_t topo_chain_inverse(const struct topo_cayley_chain *x, int64_t number)
{
	uint8_t image[POINTS], inverse[POINTS];

	topo_chain_element(x, number, image);
	invert(x->points, image, inverse);
	return topo_chain_number(x, inverse);
}

int64_t topo_chain_product(const struct topo_cayley_chain *x, int64_t a, int64_t b)
{
	uint8_t u[POINTS], v[POINTS], product[POINTS];

	topo_chain_element(x, a, u);
	topo_chain_element(x, b, v);
	compose(x->points, u, v, product);
	return topo_chain_number(x, product);
}

/* next[u] = base + u times g, for all elements u of level i, which g is of as well. An element is
 * one of the level below, and then a move: move g = (of the level below) (another move). */
static void times_level(const struct topo_cayley_chain *x, int i, const uint8_t *g, int32_t base,
			int32_t *next)
{
	int from = x->first[i], moves = x->first[i + 1] - from;
	int32_t size = x->size[i + 1];
	uint8_t product[POINTS], rest[POINTS];

	for (int k = 0; k < moves; k++) {
		int at = x->at[i][g[x->move[from + k][x->base[i]]]];
		int32_t to = base + (at - from) * size;

		if (size == 1) {
			next[k] = to;
			continue;
		}
		compose(x->points, x->move[from + k], g, product);
		compose(x->points, product, x->back[at], rest);
		times_level(x, i + 1, rest, to, next + k * size);
	}
}

void topo_chain_times(const struct topo_cayley_chain *x, int64_t number, int32_t *next)
{
	uint8_t image[POINTS];

	next[0] = 0;
	topo_chain_element(x, number, image);
	if (x->levels > 0) {
		times_level(x, 0, image, 0, next);
	}
}

/* ---- generators with orders ---- */

typedef unsigned __int128 point_set;

struct topo_chain_split {
	const struct topo_cayley_chain *x;
	int level;
	int64_t looks;
	struct topo_cayley_factors *out;
};

/* A set of points and what its images under g, g^2, .. add to it; 0 unless these are
 * all apart. */
static point_set spread(const uint8_t *g, point_set set, int order)
{
	point_set all = set;

	for (int e = 1; e < order; e++) {
		point_set moved = 0;

		for (point_set rest = set; rest; rest &= rest - 1) {
			uint64_t low = (uint64_t)rest;
			int p = low ? __builtin_ctzll(low) :
				      64 + __builtin_ctzll((uint64_t)(rest >> 64));

			moved |= (point_set)1 << g[p];
		}
		if (moved & all) {
			return 0;
		}
		all |= moved;
		set = moved;
	}
	return all;
}

static bool is_among(point_set set, const point_set *sets, int n)
{
	for (int i = 0; i < n; i++) {
		if (sets[i] == set) {
			return true;
		}
	}
	return false;
}

static bool split(struct topo_chain_split *s, point_set set, int left);

/* With powers below this order of some element of the level as the next factor. */
static bool split_by(struct topo_chain_split *s, point_set set, int left, int order)
{
	struct topo_cayley_factors *f = s->out;
	point_set tried[MAX_SETS];
	int n = 0;

	for (int32_t u = 1; u < s->x->size[s->level] && s->looks > 0 && n < MAX_SETS; u++) {
		uint8_t g[POINTS];
		point_set all;

		s->looks--;
		topo_chain_element(s->x, u, g);
		all = spread(g, set, order);
		if (!all || is_among(all, tried, n)) {
			continue;
		}
		tried[n++] = all;
		f->number[f->n] = u;
		f->order[f->n++] = order;
		if (split(s, all, left / order)) {
			return true;
		}
		f->n--;
	}
	return false;
}

/* set: images of the base point under the factors so far; so many times as much is its
 * orbit. One factor for all the rest if there is one, else a small one first. */
static bool split(struct topo_chain_split *s, point_set set, int left)
{
	if (left == 1 || split_by(s, set, left, left)) {
		return true;
	}
	for (int order = 2; order < left; order++) {
		if (left % order == 0 && split_by(s, set, left, order)) {
			return true;
		}
	}
	return false;
}

bool topo_chain_factors(const struct topo_cayley_chain *x, struct topo_cayley_factors *out)
{
	out->n = 0;
	for (int i = 0; i < x->levels; i++) {
		struct topo_chain_split s = { .x = x, .level = i, .looks = MAX_LOOKS, .out = out };
		int from = out->n;

		if (!split(&s, (point_set)1 << x->base[i], x->size[i] / x->size[i + 1])) {
			return false;
		}
		/* The one that was found last is the last in a product. */
		for (int a = from, b = out->n - 1; a < b; a++, b--) {
			int64_t number = out->number[a];
			int order = out->order[a];

			out->number[a] = out->number[b];
			out->order[a] = out->order[b];
			out->number[b] = number;
			out->order[b] = order;
		}
	}
	return true;
}
