/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes that are known between two nodes: those of the bound's flow, which use
 * the arcs as evenly as it is possible, and those that A* found since. A known
 * route is compared on all channels at once, which takes a few microseconds
 * where A* takes hundreds: the channels of an arc stand next to each other, so
 * that tolls add up a vector at a time, and a bit for each channel says whether
 * it is free, so that what is free is found a word at a time.
 *
 * Routes are not kept where channels are not all there is to a choice: with
 * guard channels, conversion or protected pairs everything is left to A*.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

#define MAX_HOPS 255		/* of a known route: tolls must not overflow */
#define MAX_ROUTES 24		/* of a pool */
#define WINDOW 512		/* channels looked at when none is free */
#define NEW_ROUTE 32		/* one path in so many is looked for by A* */
#define NEW_ROUTE_FIT 8		/* where not all fit: other routes count there */

/* A vector of tolls; rows begin at any integer. */
typedef int32_t lanes __attribute__((vector_size(SEARCH_LANES * 4), aligned(4), may_alias));

void mesh_routes_fini(struct mesh_routes *r)
{
	vec_fini(&r->v);
	vec_fini(&r->arcs);
}

/* ---- pools ---- */

/* True when known routes are what a choice is about. Fibres for one lightpath are
 * not counted in the flow, so that where not all fit its routes are bad ones. */
static bool is_plain(const struct rwa_mesh *m, bool fit)
{
	bool plain = !m->guard.between;

	for (size_t e = 0; plain && fit && e < m->arcs.n; e++) {
		plain = !m->arcs.v[e].is_single;
	}
	for (size_t v = 0; plain && v < m->nodes.n; v++) {
		plain = !m->nodes.v[v].convert;
	}
	for (size_t d = 0; plain && d < m->demands.n; d++) {
		plain = !m->demands.v[d].protect;
	}
	return plain;
}

/* True when the pool has the route. */
static bool is_known(const struct search_pool *p, const int32_t *arcs, int32_t hops)
{
	for (size_t i = 0; i < p->v.n; i++) {
		if (p->v.v[i].hops == hops &&
		    !memcmp(p->v.v[i].arcs, arcs, (size_t)hops * sizeof(*arcs))) {
			return true;
		}
	}
	return false;
}

/* Adds a route, in place of any other when there are many. */
static void add_route(struct mesh_search *s, struct search_pool *p, const int32_t *arcs,
		      int32_t hops)
{
	struct search_route r = { .hops = hops };
	size_t at = p->v.n;

	if (is_known(p, arcs, hops)) {
		return;
	}
	r.arcs = x_alloc((size_t)hops, sizeof(*arcs));
	if (at < MAX_ROUTES) {
		vec_push(&p->v, r);
	}
	for (int32_t i = 0; i < hops; i++) {
		r.arcs[i] = arcs[i];
		r.cost += s->cost[arcs[i]];
	}
	if (at == MAX_ROUTES) {
		at = rng_below(&s->rng, MAX_ROUTES);
		free(p->v.v[at].arcs);
	}
	p->v.v[at] = r;
}

static uint64_t ends_key(int32_t src, int32_t dst)
{
	return (uint64_t)src << 32 | (uint32_t)dst;
}

/* One pool for all demands of the same ends. */
static void number_pools(struct mesh_search *s, struct u64map *numbers)
{
	const struct rwa_mesh *m = s->m;

	arrays_add(&s->arrays, s->pool, m->demands.n);
	arrays_add(&s->arrays, s->pools, m->demands.n);
	for (size_t d = 0; d < m->demands.n; d++) {
		uint64_t key = ends_key(m->demands.v[d].src, m->demands.v[d].dst), p;

		if (!u64map_get(numbers, key, &p)) {
			p = (uint64_t)s->n_pools++;
			u64map_set(numbers, key, p);
		}
		s->pool[d] = (int32_t)p;
	}
}

void search_make_pools(struct mesh_search *s, const struct mesh_routes *routes)
{
	struct u64map numbers = { 0 };

	if (is_plain(s->m, s->fit)) {
		number_pools(s, &numbers);
	}
	for (size_t i = 0; s->pool && routes && i < routes->v.n; i++) {
		const struct mesh_route *r = &routes->v.v[i];
		uint64_t p;

		if (r->hops && r->hops <= MAX_HOPS &&
		    u64map_get(&numbers, ends_key(r->src, r->dst), &p)) {
			add_route(s, &s->pools[p], routes->arcs.v + r->first, r->hops);
		}
	}
	u64map_fini(&numbers);
}

void search_free_pools(struct mesh_search *s)
{
	for (int32_t i = 0; i < s->n_pools; i++) {
		for (size_t k = 0; k < s->pools[i].v.n; k++) {
			free(s->pools[i].v.v[k].arcs);
		}
		vec_fini(&s->pools[i].v);
	}
}

void search_learn_route(struct mesh_search *s, int32_t unit)
{
	const struct search_unit *u = &s->units[unit];
	int32_t arcs[MAX_HOPS];

	if (!s->pool || u->hops > MAX_HOPS) {
		return;
	}
	for (int32_t i = 0; i < u->hops; i++) {
		arcs[i] = u->hop[i].arc;
	}
	add_route(s, &s->pools[s->pool[u->demand]], arcs, u->hops);
}

/* ---- slots ---- */

/* Notes whether a channel of an arc is free on any fibre; where each fibre
 * carries one lightpath, it is all channels or none. */
static void mark_channel(struct mesh_search *s, int32_t arc, int32_t channel)
{
	uint64_t *words = &s->free[(int64_t)arc * s->words];
	uint64_t bit = (uint64_t)1 << (channel & 63);
	bool any = false;

	for (int32_t f = 0; !any && f < s->m->arcs.v[arc].fibres; f++) {
		any = *slot_at(s, arc, f, channel) == SLOT_FREE;
	}
	if (s->m->arcs.v[arc].is_single) {
		memset(words, any ? 0xff : 0, (size_t)s->words * sizeof(*words));
	} else {
		words += channel / 64;
		*words = any ? *words | bit : *words & ~bit;
	}
}

void search_set_slot(struct mesh_search *s, const struct rwa_hop *h, int32_t owner, int32_t toll)
{
	int32_t *slot = slot_at(s, h->arc, h->fibre, h->channel);

	*slot = owner;
	s->toll[slot - s->owner] = toll;
	mark_channel(s, h->arc, h->channel);
}

void search_clear_slots(struct mesh_search *s)
{
	size_t slots = (size_t)s->slot[s->m->arcs.n], n = s->m->nodes.n;

	memset(s->owner, 0xff, slots * sizeof(*s->owner));
	memset(s->toll, 0, slots * sizeof(*s->toll));
	memset(s->free, 0xff, (size_t)s->words * s->m->arcs.n * sizeof(*s->free));
	memset(s->may, 0, (size_t)s->words * n * sizeof(*s->may));
	for (size_t v = 0; v < n; v++) {
		for (int32_t c = 0; c < s->channels; c++) {
			if (s->active[c] && (!s->tune ||
					     s->tune[v * (size_t)s->width + (size_t)c])) {
				s->may[v * (size_t)s->words + (size_t)c / 64] |=
					(uint64_t)1 << (c & 63);
			}
		}
	}
}

/* ---- a route on all channels ---- */

/* One path search: the ends' channels, and the best place so far. */
struct place {
	const uint64_t *src, *dst;	/* channels that the ends may use */
	int32_t from, to;	/* channels looked at when none is free, both
				 * whole vectors */
	const struct search_route *route;	/* NULL: none yet */
	int32_t channel;
	int64_t cost;
	int32_t ties;		/* places as cheap as this one */
};

/* A free channel of a route, -1: none. The first from channel `start` on, then
 * from 0. O(hops * channels / 64). */
static int32_t find_free(struct mesh_search *s, const struct place *p,
			 const struct search_route *r, int32_t start)
{
	int32_t words = (s->channels + 63) / 64, first = start / 64;

	/* The word of `start` comes first with its upper bits, last with all. */
	for (int32_t k = 0; k <= words; k++) {
		int32_t w = (first + k) % words;
		uint64_t x = p->src[w] & p->dst[w];

		if (k == 0) {
			x &= ~(uint64_t)0 << (start & 63);
		}
		for (int32_t i = 0; x && i < r->hops; i++) {
			x &= s->free[(int64_t)r->arcs[i] * s->words + w];
		}
		if (x) {
			return w * 64 + __builtin_ctzll(x);
		}
	}
	return -1;
}

/* The slot of an arc on a channel, of whichever fibre, that costs least; whoever
 * was ejected on the hop before costs nothing. */
static int32_t *min_slot(const struct mesh_search *s, int32_t arc, int32_t channel,
			 int32_t before, int32_t *fibre, int32_t *toll)
{
	int32_t *best = slot_at(s, arc, 0, channel);

	*fibre = 0;
	*toll = SEARCH_TOLL_SHUT;
	for (int32_t f = 0; *toll && f < s->m->arcs.v[arc].fibres; f++) {
		int32_t *slot = slot_at(s, arc, f, channel);
		int32_t t = *slot >= 0 && *slot == before ? 0 : s->toll[slot - s->owner];

		if (t < *toll) {
			best = slot;
			*toll = t;
			*fibre = f;
		}
	}
	return best;
}

/* Adds the least toll of an arc's fibres, and notes the owners in s->last.
 * before: those of the hop before, NULL: none. */
static void add_min(struct mesh_search *s, const struct place *p, int32_t arc,
		    const int32_t *before)
{
	for (int32_t c = p->from; c < p->to; c++) {
		int32_t fibre, toll;

		s->last[c] = *min_slot(s, arc, c, before ? before[c] : SLOT_FREE, &fibre, &toll);
		s->sum[c] += toll;
	}
}

/* s->sum[from .. to - 1]: what the route costs on each channel. A lightpath
 * that is in the way on links that follow each other counts once. O(hops *
 * channels). */
static void sum_tolls(struct mesh_search *s, const struct place *p, const struct search_route *r)
{
	const int32_t *before = NULL;

	for (int32_t c = p->from; c < p->to; c++) {
		bool may = (p->src[c / 64] & p->dst[c / 64]) >> (c & 63) & 1;

		s->sum[c] = may ? 0 : SEARCH_TOLL_SHUT;
	}
	for (int32_t i = 0; i < r->hops; i++) {
		const int32_t *toll = s->toll + s->slot[r->arcs[i]];
		const int32_t *owner = s->owner + s->slot[r->arcs[i]];

		if (s->m->arcs.v[r->arcs[i]].fibres > 1 || s->m->arcs.v[r->arcs[i]].is_single) {
			add_min(s, p, r->arcs[i], before);
			before = s->last;
			continue;
		}
		for (int32_t c = p->from; c < p->to; c += SEARCH_LANES) {
			lanes more = *(const lanes *)(toll + c);

			if (before) {
				more &= *(const lanes *)(owner + c) !=
					*(const lanes *)(before + c);
			}
			*(lanes *)(s->sum + c) += more;
		}
		before = owner;
	}
}

/* Takes any of the n channels whose sum is `least`. */
static int32_t any_channel(const struct mesh_search *s, const struct place *p, int32_t least,
			   int32_t nth)
{
	for (int32_t c = p->from;; c++) {
		if (s->sum[c] == least && nth-- == 0) {
			return c;
		}
	}
}

/* The cheapest channels of a route where none is free; of all places that are
 * equally cheap each is as likely. */
static void try_tolls(struct mesh_search *s, struct place *p, const struct search_route *r)
{
	int32_t least = SEARCH_TOLL_SHUT, n = 0;
	int64_t cost;

	sum_tolls(s, p, r);
	for (int32_t c = p->from; c < p->to; c++) {
		least = s->sum[c] < least ? s->sum[c] : least;
	}
	cost = r->cost + (int64_t)least * s->scale;
	if (least >= SEARCH_TOLL_SHUT || cost > p->cost) {
		return;
	}
	for (int32_t c = p->from; c < p->to; c++) {
		n += s->sum[c] == least;
	}
	p->ties = cost < p->cost ? n : p->ties + n;
	p->cost = cost;
	if (rng_below(&s->rng, (uint64_t)p->ties) < (uint64_t)n) {
		p->route = r;
		p->channel = any_channel(s, p, least, (int32_t)rng_below(&s->rng, (uint64_t)n));
	}
}

/* A free channel of the route: the lowest while slots are filled for the first
 * time, which leaves whole channels free, else any. */
static bool try_free(struct mesh_search *s, struct place *p, const struct search_route *r)
{
	bool fill = search_is_filling(s);
	int32_t start = fill ? 0 : (int32_t)rng_below(&s->rng, (uint64_t)s->channels);
	int32_t c = find_free(s, p, r, start);

	if (c >= 0 && (r->cost < p->cost || !p->route || (fill && c < p->channel))) {
		p->cost = r->cost;
		p->route = r;
		p->channel = c;
		p->ties = 1;
	}
	return c >= 0;
}

/* Gives a unit its hops, on each link the fibre that costs least. */
static void take_place(struct mesh_search *s, struct search_unit *u, const struct place *p)
{
	int32_t before = SLOT_FREE;

	search_reserve_hops(u, p->route->hops);
	u->hops = p->route->hops;
	for (int32_t i = 0; i < u->hops; i++) {
		int32_t e = p->route->arcs[i], fibre, toll;

		before = *min_slot(s, e, p->channel, before, &fibre, &toll);
		u->hop[i] = (struct rwa_hop){ e, fibre, p->channel };
	}
}

/* Which channels are looked at: all, or a part where there are very many. */
static void choose_window(struct mesh_search *s, struct place *p)
{
	int32_t all = (s->channels + SEARCH_LANES - 1) / SEARCH_LANES, n = WINDOW / SEARCH_LANES;

	p->to = all * SEARCH_LANES;
	if (all > n) {
		p->from = (int32_t)rng_below(&s->rng, (uint64_t)(all - n + 1)) * SEARCH_LANES;
		p->to = p->from + WINDOW;
	}
}

void search_known_path(struct mesh_search *s, int32_t unit, bool *found, bool *look)
{
	struct search_unit *u = &s->units[unit];
	const struct rwa_mesh_demand *d = &s->m->demands.v[u->demand];
	const struct search_pool *pool = s->pool ? &s->pools[s->pool[u->demand]] : NULL;
	struct place p = { .cost = INT64_MAX };
	bool fill = search_is_filling(s);

	*found = false;
	*look = !pool || !pool->v.n || !s->channels ||
		(!fill && rng_below(&s->rng, s->fit ? NEW_ROUTE_FIT : NEW_ROUTE) == 0);
	if (*look) {
		return;
	}
	p.src = s->may + (int64_t)d->src * s->words;
	p.dst = s->may + (int64_t)d->dst * s->words;
	choose_window(s, &p);
	for (size_t i = 0; i < pool->v.n; i++) {
		const struct search_route *r = &pool->v.v[i];

		if (r->cost <= p.cost && !try_free(s, &p, r) && !fill) {
			try_tolls(s, &p, r);
		}
	}
	*found = p.route;
	/* Where not all fit, whoever fits at first is worth a longer way. */
	*look = !*found && s->fit;
	if (*found) {
		take_place(s, u, &p);
	}
}
