/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a symmetric schedule when idle channels are retuned while others
 * carry data. All lightpaths of a class and tile are tuned alike, so a
 * colour is in one state: the class and tile that it was active for last. A
 * step whose colours are all in the state it wants begins when the one before
 * has ended; otherwise it waits until retune_ns have passed since the others
 * were active last, and nothing passes their resonators meanwhile. A step ends
 * when the last of its data has arrived, so all tails have passed then.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/private.h"

struct colour {
	uint64_t tile;		/* 0: never active */
	int32_t class;
	__int128 released;
};

/* Times count in 1 / (channel_bps * chunks) ns, so they are whole. */
struct clockwork {
	const struct optree_sym *s;
	struct sym_clock clock;
	__int128 retune, convert, now;
	struct colour *colour[2];
	bool overlap;
	bool reversed;		/* last step first */
	bool mirrored;		/* light goes the other way round */
	double unit;		/* of the times above in a ns */
	double *times;		/* where the next step's go, or NULL */
};

/* The direction that light goes: reversed, it keeps the channels of a move of
 * the other way where both ways have the same. */
static int direction_of(const struct clockwork *c, const struct sym_move *m)
{
	return c->mirrored ? !m->dir : m->dir;
}

/* What is in the tile of a band: alike for the same lengths at the same places. */
static uint64_t tile_of(const struct optree_sym *s, const struct sym_round *r,
			const struct sym_move *move, const struct sym_band *band)
{
	uint64_t tile = 0;

	if (move->len == band->tile) {
		return (uint64_t)move->len;
	}
	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		const struct sym_move *m = &s->moves.v[i];

		for (size_t k = m->band; k < m->band + m->n_bands && m->dir == move->dir; k++) {
			const struct sym_band *b = &s->bands.v[k];

			if (b->base == band->base) {
				tile += ((uint64_t)m->len << 16 | (uint64_t)b->at) *
					UINT64_C(0x9e3779b97f4a7c15);
				tile ^= tile >> 29 ^ (uint64_t)b->at << 40;
			}
		}
	}
	return tile | UINT64_C(1) << 63;
}

/* When these channels of a class can carry this tile. */
static __int128 ready(const struct clockwork *c, const struct colour *x, int32_t width,
		      uint64_t tile, int32_t class)
{
	__int128 at = c->now;

	for (int32_t k = 0; k < width; k++) {
		if ((x[k].tile != tile || x[k].class != class) && x[k].released + c->retune > at) {
			at = x[k].released + c->retune;
		}
	}
	return at;
}

static void release(struct clockwork *c, struct colour *x, int32_t width, uint64_t tile,
		    int32_t class)
{
	for (int32_t k = 0; k < width; k++) {
		x[k] = (struct colour){ tile, class, c->now };
	}
}

int32_t overlap_active(const struct optree_sym *s, const struct sym_round *r,
		       const struct sym_move *m, const struct sym_band *b, int slot,
		       int32_t *class, int32_t *first)
{
	int32_t per = r->per_slot[m->dir], from = slot * per, to = from + per;
	int32_t classes = optree_sym_classes_of(s, b->tile);

	if (r->slots == 1) {
		*class = 0;
		*first = b->base;
		return classes;
	}
	from = from > b->base ? from : b->base;
	to = to < b->base + classes ? to : b->base + classes;
	*class = from - b->base;
	*first = r->from[m->dir] + from % per * b->width;
	return to > from ? to - from : 0;
}

/* The active channels of a move: when they are ready, or that they are released now. */
static __int128 use_channels(struct clockwork *c, const struct sym_round *r, int slot,
			     const struct sym_move *m, bool done)
{
	__int128 begin = c->now;

	for (size_t i = m->band; i < m->band + m->n_bands; i++) {
		const struct sym_band *b = &c->s->bands.v[i];
		int32_t class, first, n = overlap_active(c->s, r, m, b, slot, &class, &first);
		struct colour *x = c->colour[direction_of(c, m)] + first;
		uint64_t tile = b->at ? 0 : tile_of(c->s, r, m, b);

		for (int32_t k = 0; k < n && tile; k++, x += b->width) {
			if (done) {
				release(c, x, b->width, tile, class + k);
			} else {
				__int128 at = ready(c, x, b->width, tile, class + k);

				begin = at > begin ? at : begin;
			}
		}
	}
	return begin;
}

static void run_slot(struct clockwork *c, const struct sym_round *r, int slot, __int128 lasts)
{
	const struct sym_move *m = c->s->moves.v + r->move;
	__int128 begin = c->overlap ? c->now : c->now + c->retune;

	for (size_t i = 0; i < r->n_moves && c->overlap; i++) {
		__int128 at = use_channels(c, r, slot, &m[i], false);

		begin = at > begin ? at : begin;
	}
	c->now = begin + lasts;
	if (c->times) {
		*c->times++ = (double)begin / c->unit;
		*c->times++ = (double)c->now / c->unit;
	}
	c->now += c->convert;
	for (size_t i = 0; i < r->n_moves && c->overlap; i++) {
		use_channels(c, r, slot, &m[i], true);
	}
}

/* How long the data of each step takes. */
static void measure(const struct clockwork *c, __int128 *lasts)
{
	for (size_t i = 0; i < c->s->rounds.n; i++) {
		const struct sym_round *r = &c->s->rounds.v[i];
		size_t at[2] = { 0, 0 };

		for (int slot = 0; slot < r->slots; slot++) {
			*lasts++ = optree_sym_slot_time(c->s, r, slot, at, &c->clock);
		}
	}
}

static void run(struct clockwork *c, const __int128 *lasts)
{
	size_t n = c->s->rounds.n, step = c->reversed ? (size_t)c->s->steps : 0;

	for (size_t i = 0; i < n; i++) {
		const struct sym_round *r = &c->s->rounds.v[c->reversed ? n - 1 - i : i];

		for (int slot = 0; slot < r->slots; slot++) {
			if (c->reversed) {
				run_slot(c, r, r->slots - 1 - slot, lasts[--step]);
			} else {
				run_slot(c, r, slot, lasts[step++]);
			}
		}
	}
}

int64_t overlap_time_ns(const struct optree_params *p, const struct optree_sym *s,
			enum coll_kind kind, double *times)
{
	__int128 unit = (__int128)p->channel_bps * s->chunks;
	__int128 *lasts = x_alloc((size_t)s->steps + 1, sizeof(*lasts));
	int64_t convert = p->overlap ? p->convert_ns : 0;
	struct clockwork c = {
		.s = s, .clock = optree_sym_clock(p, s),
		.retune = (p->alpha_ns - convert) * unit,
		.convert = convert * unit, .overlap = p->overlap,
		.unit = (double)unit, .times = times,
		.colour = { x_new((size_t)s->w[0] + 1, sizeof(**c.colour)),
			    x_new((size_t)s->w[1] + 1, sizeof(**c.colour)) },
	};

	measure(&c, lasts);
	if (kind == COLL_ALLREDUCE) {
		c.reversed = true;
		/* Of unequal light the mirrored schedule is reversed. */
		c.mirrored = s->light.n == 0;
		run(&c, lasts);
		c.reversed = c.mirrored = false;
	}
	run(&c, lasts);
	free(lasts);
	free(c.colour[0]);
	free(c.colour[1]);
	return (int64_t)((c.now + unit - 1) / unit);
}
