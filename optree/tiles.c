/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels shared by lightpaths of unlike lengths. On a ring of 8 nodes lightpaths of 3 links take
 * four classes where three would carry their load; with one of 4 and one of 1 link behind each
 * they are as one of 8 links, and 8 classes are full. Such tiles are filled largest first, by the
 * sums of lengths that leave the least part free.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "optree/private.h"

#define TRIES 12	/* times of a round that are tried */
#define CLOSE 1.001	/* to what all links are full for */
#define WORK ((int64_t)1 << 20)

struct placed {
	size_t move;
	struct sym_band band;
};

ORDER_BY(by_move, struct placed, move, band.base, band.at)

/* The moves of a direction and round, longest first. */
struct tiling {
	const struct optree_sym *s;
	struct sym_move *m;
	int32_t *order, n;
	int32_t *left, *taken;	/* channels of each move: to be placed, in one tile */
	int32_t *from, *used;	/* by sum of lengths: the move that made it last */
	int32_t cap, end;
	VEC(struct placed) out;
};

static int32_t length(const struct tiling *t, int32_t k)
{
	return t->m[t->order[k]].len;
}

/* All sums of lengths left, with the k-th at least once, to cap. */
static void sum_lengths(struct tiling *t, int32_t k)
{
	for (int32_t sum = 0; sum <= t->cap; sum++) {
		t->from[sum] = -1;
	}
	t->from[length(t, k)] = k;
	for (int32_t j = k; j < t->n; j++) {
		int32_t len = length(t, j), most = t->left[j] - (j == k);

		for (int32_t sum = length(t, k); sum <= t->cap && most > 0; sum++) {
			bool known = t->from[sum] >= 0;

			t->used[sum] = 0;
			if (!known && sum - len >= length(t, k) && t->from[sum - len] >= 0 &&
			    t->used[sum - len] < most) {
				t->from[sum] = j;
				t->used[sum] = t->used[sum - len] + 1;
			}
		}
	}
}

/* The tile around the k-th that leaves the least part of its classes free, of these
 * the shortest. */
static int32_t best_tile(struct tiling *t, int32_t k)
{
	int64_t best = 0, classes = 1;

	sum_lengths(t, k);
	for (int32_t sum = length(t, k); sum <= t->cap; sum++) {
		int64_t c = optree_sym_classes(t->s->ring.n, sum);

		if (t->from[sum] >= 0 && sum * classes > best * c) {
			best = sum;
			classes = c;
		}
	}
	memset(t->taken, 0, (size_t)t->n * sizeof(*t->taken));
	for (int32_t sum = (int32_t)best; sum > 0; sum -= length(t, t->from[sum])) {
		t->taken[t->from[sum]]++;
	}
	return (int32_t)best;
}

/* The same tile as often as channels and what is left allow, at most `room` colours. */
static int32_t place_tile(struct tiling *t, int32_t tile, int64_t room)
{
	int64_t classes = optree_sym_classes(t->s->ring.n, tile), times = room / classes;
	struct sym_band b = { .tile = tile, .base = t->end };

	for (int32_t j = 0; j < t->n; j++) {
		if (t->taken[j] && t->left[j] / t->taken[j] < times) {
			times = t->left[j] / t->taken[j];
		}
	}
	b.width = (int32_t)times;
	for (int32_t j = 0; j < t->n && times > 0; j++) {
		t->left[j] -= t->taken[j] * b.width;
		for (; t->taken[j] > 0; t->taken[j]--) {
			vec_push(&t->out, ((struct placed){ (size_t)t->order[j], b }));
			b.at += length(t, j);
		}
	}
	t->end += (int32_t)(classes * times);
	return b.width;
}

/* Channels for all that is left, from a colour on. */
static bool pack(struct tiling *t, int32_t first, int64_t room)
{
	t->end = first;
	t->out.n = 0;
	for (int32_t k = 0; k < t->n; k++) {
		while (t->left[k] > 0) {
			int32_t tile = best_tile(t, k);

			if (place_tile(t, tile, room - (t->end - first)) == 0) {
				return false;
			}
		}
	}
	return true;
}

/* What the direction has in this round; false when there is nothing to share, or too much work. */
static bool tiling_init(struct tiling *t, const struct optree_sym *s, const struct sym_round *r,
			int dir, int64_t room)
{
	size_t cap = (size_t)(room < s->ring.n ? room : s->ring.n);

	*t = (struct tiling){ .s = s, .m = s->moves.v + r->move, .cap = (int32_t)cap };
	t->order = x_new(3 * (size_t)r->n_moves + 2 * (cap + 1), sizeof(*t->order));
	for (size_t i = 0; i < r->n_moves; i++) {
		int32_t k = t->n;

		if (t->m[i].dir != dir) {
			continue;
		}
		for (; k > 0 && length(t, k - 1) < t->m[i].len; k--) {
			t->order[k] = t->order[k - 1];
		}
		t->order[k] = (int32_t)i;
		t->n++;
	}
	t->left = t->order + r->n_moves;
	t->taken = t->left + r->n_moves;
	t->from = t->taken + r->n_moves;
	t->used = t->from + cap + 1;
	return t->n * (int64_t)t->n * (int64_t)cap <= WORK;
}

static void tiling_fini(struct tiling *t)
{
	free(t->order);
	vec_fini(&t->out);
}

/* The moves get what was placed. */
static void take_bands(struct tiling *t, struct optree_sym *s)
{
	for (int32_t k = 0; k < t->n; k++) {
		t->m[t->order[k]].width = 0;
		t->m[t->order[k]].n_bands = 0;
	}
	qsort(t->out.v, t->out.n, sizeof(*t->out.v), by_move);
	for (size_t i = 0; i < t->out.n; i++) {
		struct sym_move *m = &t->m[t->out.v[i].move];

		if (!m->n_bands++) {
			m->band = s->bands.n;
		}
		m->width += t->out.v[i].band.width;
		vec_push(&s->bands, t->out.v[i].band);
	}
}

/* ---- rounds of one step ---- */

/* How long the slowest takes, in units on a channel. */
static double slowest(const struct tiling *t)
{
	double worst = 0;

	for (int32_t k = 0; k < t->n; k++) {
		const struct sym_move *m = &t->m[t->order[k]];

		worst = fmax(worst, (double)m->chunks / m->width);
	}
	return worst;
}

/* Channels that let all end in this time, if they fit. */
static bool pack_within(struct tiling *t, double time, int32_t first, int64_t room)
{
	int64_t load = 0;

	for (int32_t k = 0; k < t->n; k++) {
		double want = ceil((double)t->m[t->order[k]].chunks / time - 1e-9);

		if (want > (double)room) {
			return false;
		}
		t->left[k] = (int32_t)want;
		load += (int64_t)t->left[k] * length(t, k);
	}
	return load <= room && pack(t, first, room);
}

/* Rounds of several steps become one, where that takes less than `time` units: the moves of
 * both directions fit at once as tiles. */
static bool join_steps(struct optree_sym *s, const struct sym_round *r, double time)
{
	struct tiling t[2];
	bool fit = true;

	for (int dir = 0; dir < 2; dir++) {
		fit = tiling_init(&t[dir], s, r, dir, r->room[dir]) && fit &&
		      pack_within(&t[dir], time, r->from[dir], r->room[dir]);
	}
	for (int dir = 0; dir < 2; dir++) {
		if (fit && t[dir].n > 0) {
			take_bands(&t[dir], s);
		}
		tiling_fini(&t[dir]);
	}
	return fit;
}

static bool share_step(struct optree_sym *s, const struct sym_round *r, int dir)
{
	struct tiling t;
	int64_t room = r->room[dir];
	double low = 0, high;
	bool better = false, may = tiling_init(&t, s, r, dir, room) && t.n > 1;

	for (int32_t k = 0; k < t.n; k++) {
		const struct sym_move *m = &t.m[t.order[k]];

		low += (double)m->chunks * m->len / (double)room;
	}
	high = slowest(&t);
	for (int i = 0; may && i < TRIES && high > low * CLOSE; i++) {
		double time = i == 0 ? low : (low + high) / 2;

		if (pack_within(&t, time, r->from[dir], room)) {
			take_bands(&t, s);
			high = slowest(&t);
			better = true;
		} else {
			low = time;
		}
	}
	tiling_fini(&t);
	return better;
}

/* Only those that moves have. */
static void drop_bands(struct optree_sym *s)
{
	struct sym_band *all = s->bands.v;

	s->bands.v = NULL;
	s->bands.n = s->bands.cap = 0;
	for (size_t i = 0; i < s->moves.n; i++) {
		struct sym_move *m = &s->moves.v[i];
		size_t first = m->band;

		m->band = s->bands.n;
		for (size_t k = 0; k < m->n_bands; k++) {
			vec_push(&s->bands, all[first + k]);
		}
	}
	free(all);
}

bool optree_sym_share(struct optree_sym *s, const struct optree_sym *plain)
{
	bool better = false;

	for (size_t i = 0; i < s->rounds.n; i++) {
		struct sym_round *r = &s->rounds.v[i];
		double items = (double)plain->rounds.v[i].chunk_times / plain->chunks +
			       (r->slots - 1) * s->step;

		if (r->slots > 1 && join_steps(s, r, items * s->units)) {
			s->steps -= r->slots - 1;
			r->slots = 1;
			better = true;
		}

		for (int dir = 0; dir < 2 && r->slots == 1; dir++) {
			better = share_step(s, r, dir) || better;
		}
	}
	drop_bands(s);
	return better;
}
