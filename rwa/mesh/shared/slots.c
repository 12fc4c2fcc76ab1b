/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of the search for shared backups: who holds them, and what it costs to take one. */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/shared/shared.h"

#define MAX_SLOTS ((int64_t)1 << 23)
#define NEW_SLOT 16

/* ---- slots ---- */

struct shared_slot *shared_slot_of(const struct shared_search *s, int32_t arc, int32_t fibre,
				   int32_t channel)
{
	int32_t c = s->m->arcs.v[arc].is_single ? 0 : channel;

	return &s->slots[(s->at[arc] + fibre) * s->width + c];
}

enum rwa_protect shared_kind(const struct shared_search *s, int32_t unit)
{
	return s->m->demands.v[s->units[unit].demand].protect;
}

static bool is_held(const struct shared_slot *x)
{
	return x->owner >= 0 || x->n;
}

/* The unit takes a slot of its own or (shares) beside other backups; or gives it back. */
static void put_slot(struct shared_search *s, const struct rwa_hop *h, int32_t unit, bool shares,
		     bool take)
{
	struct shared_slot *x = shared_slot_of(s, h->arc, h->fibre, h->channel);
	int32_t k = 0;

	s->held -= is_held(x);
	if (!shares) {
		x->owner = take ? unit : SLOT_FREE;
	} else if (take) {
		if (x->n == x->cap) {
			x->cap = 2 * x->cap + 2;
			x->backup = x_grow(x->backup, (size_t)x->cap, sizeof(*x->backup));
		}
		x->backup[x->n++] = unit;
	} else {
		while (x->backup[k] != unit) {
			k++;
		}
		x->backup[k] = x->backup[--x->n];
	}
	s->held += is_held(x);
}

void shared_put(struct shared_search *s, int32_t unit, int first, bool take)
{
	struct shared_unit *u = &s->units[unit];
	bool shares = shared_kind(s, unit) == RWA_SHARED;

	for (int32_t i = first ? u->n[0] : 0; i < u->n[0] + u->n[1]; i++) {
		put_slot(s, &u->hop[i], unit, shares && i >= u->n[0], take);
	}
}

void shared_eject(struct shared_search *s, int32_t unit)
{
	struct shared_unit *u = &s->units[unit];

	shared_put(s, unit, u->pinned, false);
	u->n[1] = 0;
	u->n[0] = u->pinned ? u->n[0] : 0;
	s->wait[s->waiting++] = unit;
}

bool shared_meets(const struct shared_search *s, int32_t unit)
{
	const struct shared_unit *u = &s->units[unit];

	for (int32_t i = 0; i < u->n[0]; i++) {
		if (s->links[s->paths.link[u->hop[i].arc]] == s->stamp) {
			return true;
		}
	}
	return false;
}

void shared_mark(struct shared_search *s, const int32_t *arcs, int32_t n)
{
	s->stamp++;
	for (int32_t i = 0; i < n; i++) {
		s->links[s->paths.link[arcs[i]]] = s->stamp;
	}
}

/* ---- what a place costs ---- */

/* What it costs to eject who is on an arc. */
static int64_t toll(const struct shared_search *s, int32_t unit, int32_t arc)
{
	const struct shared_unit *u = &s->units[unit];
	bool stays = s->scale == 0;

	for (int32_t i = 0; i < u->n[0] && u->pinned; i++) {
		stays |= u->hop[i].arc == arc;
	}
	return stays ? SHARED_NEVER : (int64_t)s->scale * u->penalty * (u->n[0] + u->n[1]);
}

static int64_t slot_cost(const struct shared_search *s, const struct shared_slot *x, int32_t arc,
			 bool shares)
{
	int64_t cost = x->n && shares ? 0 : NEW_SLOT;

	if (x->owner != SLOT_FREE) {
		return x->owner == SLOT_SHUT ? SHARED_NEVER : cost + toll(s, x->owner, arc);
	}
	for (int32_t k = 0; k < x->n; k++) {
		cost += !shares || shared_meets(s, x->backup[k]) ? toll(s, x->backup[k], arc) : 0;
	}
	return cost < SHARED_NEVER ? cost : SHARED_NEVER;
}

/* The cheapest fibre of a hop. */
int64_t shared_hop_cost(const struct shared_search *s, int32_t arc, int32_t channel, bool shares,
			int32_t *fibre)
{
	int64_t best = SHARED_NEVER;

	for (int32_t f = 0; f < s->m->arcs.v[arc].fibres; f++) {
		int64_t cost = slot_cost(s, shared_slot_of(s, arc, f, channel), arc, shares);

		if (cost < best) {
			best = cost;
			*fibre = f;
		}
	}
	return best;
}

/* The cheapest channel of a route where it costs less than `most`: of equal ones a random one, or
 * beside what stays the first from *channel on, so that room is left for others, until someone is
 * in the way. */
int64_t shared_route_cost(struct shared_search *s, const struct shared_unit *u,
			  const int32_t *arcs, int32_t n, bool shares, int64_t most,
			  int32_t *channel)
{
	const struct rwa_mesh_demand *d = &s->m->demands.v[u->demand];
	bool first = s->pinned && (s->scale == 0 || s->round < s->n_units);
	int32_t start = first ? *channel : (int32_t)rng_below(&s->rng, (uint64_t)s->channels);
	int32_t fibre;

	for (int32_t k = 0; k < s->channels; k++) {
		int32_t c = (start + k) % s->channels;
		int64_t cost = 0;

		for (int32_t i = 0; i < n && cost < most; i++) {
			cost += shared_hop_cost(s, arcs[i], c, shares, &fibre);
		}
		if (cost < most &&
		    (!s->m->tunings.n ||
		     (mesh_tunes(s->m, d->src, c) && mesh_tunes(s->m, d->dst, c)))) {
			most = cost;
			*channel = c;
		}
	}
	return most;
}

/* ---- their number ---- */

int shared_set_width(struct shared_search *s, int32_t width, struct err *err)
{
	if (s->fibres * width > MAX_SLOTS) {
		return err_set(err, WEFT_ELIMIT, "%lld fibres with %d channels: too large to "
			       "search for backups", (long long)s->fibres, width);
	}
	for (int64_t i = 0; i < s->fibres * s->width; i++) {
		free(s->slots[i].backup);
	}
	free(s->slots);
	s->width = width;
	s->held = 0;
	s->slots = x_new((size_t)(s->fibres * width) + 1, sizeof(*s->slots));
	for (int32_t e = 0; e < (int32_t)s->m->arcs.n; e++) {
		for (int64_t k = 0; k < (int64_t)s->m->arcs.v[e].fibres * width; k++) {
			struct rwa_hop h = { e, (int32_t)(k / width), (int32_t)(k % width) };

			s->slots[s->at[e] * width + k].owner =
				mesh_is_shut(&s->shut, &h) ? SLOT_SHUT : SLOT_FREE;
		}
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		shared_put(s, i, 0, true);
	}
	return 0;
}
