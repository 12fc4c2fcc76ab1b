/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cheapest paths of the search: over the states (channel, node), A* with the
 * plain distances of the arcs' base costs, which penalties only add to, so
 * that the estimate never is too high and the first state at the destination
 * is the cheapest.
 *
 * A state is channel * nodes + node. All channels are searched at once from
 * as many start states, which compares them at the price of one search. With
 * many channels that is slow, and most of them are alike: then a sample is
 * searched, and all only when that finds nothing good. A label is valid when
 * its stamp is that of the present search, so that nothing is cleared between
 * searches.
 *
 * A loss budget is kept by leaving out states from which even the least loss
 * to the end is too much. As only the cheapest label of a state is kept, a
 * path within the budget can be missed; then the loss itself is minimised.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

#define COST_MAX ((uint32_t)1 << 28)
/* When there are very many channels, a few are looked at. */
#define MANY 120
#define SAMPLE 24
#define PRICE_MAX (1 << 18)
#define TROUBLE_COST (COST_BASE / 2)
#define TROUBLE_MAX (1 << 20)
#define NO_PAIR (-1)

/* ---- what a slot costs ---- */

/* Lightpaths are compared with the one seen last only: one whose slots lie
 * apart may count twice, which makes it a little more expensive. */
int32_t search_eject_price(const struct mesh_search *s, int32_t arc, int32_t fibre,
			   int32_t channel, int32_t before)
{
	const int32_t *slot = slot_at(s, arc, fibre, channel);
	int32_t reach = s->m->arcs.v[arc].is_single ? 0 : s->m->guard.between;
	int32_t sum = 0, last = SLOT_FREE;
	int32_t from = channel > reach ? channel - reach : 0;
	int32_t to = channel + reach < s->channels ? channel + reach
						   : s->channels - 1;

	if (*slot == SLOT_SHUT) {
		return -1;
	}
	if (!reach) {
		last = *slot;
		return last == SLOT_FREE || last == before ? 0
						      : unit_toll(s, &s->units[last]);
	}
	for (int32_t c = from - channel; c <= to - channel; c++) {
		if (slot[c] >= 0 && slot[c] != before && slot[c] != last) {
			last = slot[c];
			sum += unit_toll(s, &s->units[last]);
		}
	}
	return sum;
}

/* Cost of the cheapest fibre of an arc on a channel; -1: none. */
static int32_t slot_cost(const struct mesh_search *s, int32_t arc, int32_t channel,
			 int32_t before, int32_t *fibre)
{
	int32_t best = -1, fibres = s->m->arcs.v[arc].fibres;

	for (int32_t f = 0; f < fibres && best != 0; f++) {
		int32_t price = search_eject_price(s, arc, f, channel, before);

		if (price >= 0 && (best < 0 || price < best)) {
			best = price;
			*fibre = f;
		}
	}
	best = best < PRICE_MAX ? best : PRICE_MAX;
	return best < 0 ? -1 : s->cost[arc] + best * s->scale;
}

/* What a link costs a lightpath beside its slots: ejecting the partner, and
 * the memory of having met it there. */
static int32_t risk_cost(const struct mesh_search *s, int32_t partner, int32_t demand, int32_t arc)
{
	int32_t link = s->link[arc], cost = 0;

	if (s->trouble[demand]) {
		cost = s->trouble[demand][link] * TROUBLE_COST;
		cost = cost < TROUBLE_MAX ? cost : TROUBLE_MAX;
	}
	if (s->risk[link] == s->risk_stamp) {
		cost += unit_toll(s, &s->units[partner]) * s->scale;
	}
	return cost;
}

/* ---- cheapest path ---- */

struct want {			/* what a path search is about */
	int32_t src, dst;
	const int32_t *dist;
	const int64_t *min;
	int64_t budget;		/* of arcs and nodes passed */
	int32_t demand;
	int32_t partner;	/* placed, links marked; -1: none */
	bool by_loss;		/* the loss is the cost: finds a path within
				 * the budget where the cheapest has none */
};

/* The A* estimate: nothing when the loss is the cost, as it is in other
 * units. */
static uint32_t still_to_go(const struct want *w, int32_t v)
{
	return w->by_loss ? 0 : (uint32_t)w->dist[v];
}

/* Whether node v's transceivers reach the state's channel. */
static bool tunes(const struct mesh_search *s, int32_t v, int32_t state)
{
	return s->tune[(int64_t)v * s->width + state / (int32_t)s->m->nodes.n];
}

static inline bool is_less(uint64_t a, uint64_t b)
{
	return a < b;
}

HEAP_FUNCTIONS(key_heap, uint64_t, is_less)

/* The heap orders plain integers, from the top: 28 bits of cost with the
 * estimate, 6 of the distance to the end, 4 of chance, 26 of the state (see
 * MAX_STATES). So of equal costs the state nearer to the end comes first,
 * then chance. */
static void push_state(struct mesh_search *s, uint32_t cost, uint32_t to_go, int32_t state)
{
	uint64_t near = to_go / COST_BASE < 63 ? to_go / COST_BASE : 63;
	uint64_t key = (uint64_t)(cost + to_go) << 36 | near << 30 |
		       (rng_u64(&s->rng) & 0xf) << 26 | (uint32_t)state;

	key_heap_push(&s->heap, key);
}

/* Gives a state a label and queues it, unless it has one as cheap, cannot
 * lead to the destination, cannot do so within the budget, or ends on a
 * channel that the destination does not tune to. */
static void reach(struct mesh_search *s, const struct want *w, int32_t state,
		  const struct search_label *l)
{
	struct search_label *old = &s->labels[state];
	int32_t v = state % (int32_t)s->m->nodes.n;
	uint32_t cost = l->cost < COST_MAX / 2 ? l->cost : COST_MAX / 2;

	if (w->dist[v] == INT_MAX || l->loss + w->min[v] > w->budget ||
	    (s->tune && v == w->dst && !tunes(s, v, state)) ||
	    (old->stamp == s->stamp && old->cost <= cost)) {
		return;
	}
	*old = *l;
	old->cost = cost;
	old->stamp = s->stamp;
	push_state(s, cost, still_to_go(w, v), state);
}

/* Goes on from a state along every arc, on its channel. */
static void expand_arcs(struct mesh_search *s, const struct want *w, int32_t state)
{
	int32_t n = (int32_t)s->m->nodes.n, v = state % n, c = state / n;
	const struct search_label *at = &s->labels[state];
	int64_t pass = v == w->src ? 0 : s->m->nodes.v[v].pass_mdb;
	int32_t before = at->arc < 0 ? SLOT_FREE
				     : *slot_at(s, at->arc, at->fibre, c);

	for (int32_t k = s->out.first[v]; k < s->out.first[v + 1]; k++) {
		struct search_label l = { .from = state, .arc = s->out.arc[k] };
		int32_t cost = slot_cost(s, l.arc, c, before, &l.fibre);

		if (cost >= 0 && w->partner != NO_PAIR) {
			cost += risk_cost(s, w->partner, w->demand, l.arc);
		}
		if (cost >= 0) {
			l.loss = at->loss + pass +
				 s->m->arcs.v[l.arc].loss_mdb;
			l.cost = w->by_loss ? (uint32_t)l.loss
					    : at->cost + (uint32_t)cost;
			reach(s, w, c * n + s->m->arcs.v[l.arc].dst, &l);
		}
	}
}

/* A node that converts passes its cost on to all its channels. Once is
 * enough: states come by cost, and the estimate is the same for all
 * channels of a node, so that the first is the cheapest. */
static void expand_channels(struct mesh_search *s, const struct want *w, int32_t state)
{
	int32_t n = (int32_t)s->m->nodes.n, v = state % n;
	struct search_label l = s->labels[state];

	if (!s->m->nodes.v[v].convert || v == w->src || s->changed[v]) {
		return;
	}
	s->changed[v] = true;
	l.from = state;
	l.arc = -1;
	for (int32_t c = 0; c < s->channels; c++) {
		if (s->active[c]) {
			reach(s, w, c * n + v, &l);
		}
	}
}

/* The next state, or -1. Entries that a cheaper label has overtaken are
 * still in the heap and are skipped. */
static int32_t take_top(struct mesh_search *s, const struct want *w)
{
	while (s->heap.n) {
		uint64_t key = key_heap_pop(&s->heap);
		int32_t state = (int32_t)(key & 0x3ffffff);
		int32_t v = state % (int32_t)s->m->nodes.n;

		if ((uint32_t)(key >> 36) == s->labels[state].cost + still_to_go(w, v)) {
			return state;
		}
	}
	return -1;
}

/* The state at dst of the cheapest path, -1 when there is none. few: of some
 * channels taken at random. */
static int32_t cheapest(struct mesh_search *s, const struct want *w, bool few)
{
	int32_t n = (int32_t)s->m->nodes.n, top;
	struct search_label start = { .from = -1, .arc = -1 };

	s->heap.n = 0;
	s->stamp++;
	memset(s->changed, 0, (size_t)n);
	for (int32_t k = 0; k < (few ? SAMPLE : s->channels); k++) {
		int32_t c = few ? (int32_t)rng_below(&s->rng, (uint64_t)s->channels)
				: k;

		if (s->active[c] && (!s->tune || tunes(s, w->src, c * n + w->src))) {
			reach(s, w, c * n + w->src, &start);
		}
	}
	for (;;) {
		top = take_top(s, w);
		if (top < 0 || top % n == w->dst) {
			return top;
		}
		expand_arcs(s, w, top);
		expand_channels(s, w, top);
	}
}

void search_reserve_hops(struct search_unit *u, int32_t hops)
{
	if (hops > u->cap) {
		u->hop = x_grow(u->hop, (size_t)hops, sizeof(*u->hop));
		u->cap = hops;
	}
}

/* Reads the labels back from goal into the unit's hops. Changes of channel
 * are no hops. */
static void store_path(struct mesh_search *s, int32_t unit, int32_t goal)
{
	struct search_unit *u = &s->units[unit];
	int32_t n = (int32_t)s->m->nodes.n, hops = 0, i;

	for (int32_t st = goal; st >= 0; st = s->labels[st].from) {
		hops += s->labels[st].arc >= 0;
	}
	search_reserve_hops(u, hops);
	i = hops;
	for (int32_t st = goal; st >= 0; st = s->labels[st].from) {
		const struct search_label *l = &s->labels[st];

		if (l->arc >= 0) {
			u->hop[--i] = (struct rwa_hop){ l->arc, l->fibre,
							st / n };
		}
	}
	u->hops = hops;
}

/* ---- the path of a unit ---- */

/* Marks the links of the partner, and makes room to remember them. */
static void mark_partner(struct mesh_search *s, struct want *w, int32_t unit)
{
	const struct search_unit *u = &s->units[unit];

	if (u->partner < 0) {
		w->partner = NO_PAIR;
		return;
	}
	if (!s->trouble[u->demand]) {
		arrays_add(&s->arrays, s->trouble[u->demand], s->m->arcs.n + 1);
	}
	w->partner = u->partner;
	w->demand = u->demand;
	s->risk_stamp++;
	for (int32_t i = 0; i < s->units[u->partner].hops; i++) {
		s->risk[s->link[s->units[u->partner].hop[i].arc]] = s->risk_stamp;
	}
}

/* The state at which the cheapest path of a unit ends, or -1: by a sample
 * of many channels first, by all of them when that finds nothing or, while
 * free slots are filled, nothing free, and by loss last. */
static int32_t find_place(struct mesh_search *s, int32_t unit)
{
	const struct rwa_mesh_demand *d = &s->m->demands.v[s->units[unit].demand];
	struct want w = { .src = d->src, .dst = d->dst,
			  .dist = s->dist[d->dst], .min = s->min[d->dst],
			  .budget = INT64_MAX };
	bool few = s->channels > MANY;
	int32_t goal;

	mark_partner(s, &w, unit);
	if (s->m->budget_mdb != RWA_MESH_NO_LIMIT) {
		w.budget = s->m->budget_mdb - s->m->add_mdb - s->m->drop_mdb;
	}
	goal = cheapest(s, &w, few);
	if (few && (goal < 0 || (s->scale == SCALE_FILL && s->labels[goal].cost >= SCALE_FILL))) {
		goal = cheapest(s, &w, false);
	}
	if (goal < 0 && w.budget < INT64_MAX) {
		w.by_loss = true;
		goal = cheapest(s, &w, false);
	}
	return goal;
}

/* A path by A*; its route is one that is known from now on. */
static bool find_new(struct mesh_search *s, int32_t unit)
{
	int32_t goal = find_place(s, unit);

	if (goal < 0) {
		return false;
	}
	store_path(s, unit, goal);
	search_learn_route(s, unit);
	return true;
}

bool search_find_path(struct mesh_search *s, int32_t unit)
{
	bool found, look;

	search_known_path(s, unit, &found, &look);
	return look ? find_new(s, unit) : found;
}
