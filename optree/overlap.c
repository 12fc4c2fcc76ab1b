/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a symmetric schedule when idle channels are retuned while others
 * carry data. All lightpaths of a class and length are tuned alike, so a
 * colour is in one state: the class and length that it was active for last. A
 * step whose colours are all in the state it wants begins when the one before
 * has ended; otherwise it waits until retune_ns have passed since the others
 * were active last, and nothing passes their resonators meanwhile. A step ends
 * when the last of its data has arrived, so all tails have passed then.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/private.h"

struct colour {
	int32_t len, class;	/* 0: never active */
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

/* When colours first..first+width-1 can carry this class. */
static __int128 ready(const struct clockwork *c, const struct sym_move *m,
		      int32_t class, int32_t first)
{
	__int128 at = c->now;

	for (int32_t k = first; k < first + m->width; k++) {
		const struct colour *x = &c->colour[direction_of(c, m)][k];

		if ((x->len != m->len || x->class != class) && x->released + c->retune > at) {
			at = x->released + c->retune;
		}
	}
	return at;
}

static void release(struct clockwork *c, const struct sym_move *m, int32_t class, int32_t first)
{
	for (int32_t k = first; k < first + m->width; k++) {
		c->colour[direction_of(c, m)][k] = (struct colour){ m->len, class,
							c->now };
	}
}

int32_t overlap_active(const struct sym_round *r, const struct sym_move *m,
		    int slot, int32_t *class, int32_t *first)
{
	int32_t per = r->per_slot[m->dir], from = slot * per, to = from + per;

	if (r->slots == 1) {
		*class = 0;
		*first = m->base;
		return m->classes;
	}
	from = from > m->base ? from : m->base;
	to = to < m->base + m->classes ? to : m->base + m->classes;
	*class = from - m->base;
	*first = r->from[m->dir] + from % per * m->width;
	return to > from ? to - from : 0;
}

static void run_slot(struct clockwork *c, const struct sym_round *r, int slot, __int128 lasts)
{
	const struct sym_move *m = c->s->moves.v + r->move;
	__int128 begin = c->overlap ? c->now : c->now + c->retune;
	int32_t class, first;

	for (size_t i = 0; i < r->n_moves && c->overlap; i++) {
		int32_t n = overlap_active(r, &m[i], slot, &class, &first);

		for (int32_t k = 0; k < n; k++) {
			__int128 at = ready(c, &m[i], class + k, first + k * m[i].width);

			begin = at > begin ? at : begin;
		}
	}
	c->now = begin + lasts;
	if (c->times) {
		*c->times++ = (double)begin / c->unit;
		*c->times++ = (double)c->now / c->unit;
	}
	c->now += c->convert;
	for (size_t i = 0; i < r->n_moves; i++) {
		int32_t n = overlap_active(r, &m[i], slot, &class, &first);

		for (int32_t k = 0; k < n; k++) {
			release(c, &m[i], class + k, first + k * m[i].width);
		}
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
