/*
 * Guided ejection search at a fixed number of channels.
 *
 * A partial assignment without clashes is kept at all times. A lightpath that
 * has no place is routed on the cheapest way of any channel, where a taken
 * slot costs the penalty of the lightpath that holds it; whoever is in the
 * way is ejected and waits in turn. The penalty of a lightpath grows whenever
 * it finds no free way, so that what is hard to place stays once placed.
 *
 * States of the path search are (channel, node); it is A* with the plain
 * distances of the arcs' base costs, which penalties only add to.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rwa/mesh_private.h"

#define MAX_STATES ((int64_t)1 << 26)
#define MAX_SLOTS ((int64_t)1 << 28)
#define COST_MAX ((uint32_t)1 << 28)
#define BASE 16			/* base cost of an arc without price */
#define SCALE_FILL 3000
#define CALM_LEAST 5000		/* without progress, before a new scale */
#define PENALTY_MAX (1 << 18)
/* When there are very many channels, a few are looked at. */
#define MANY 120
#define SAMPLE 24
#define PRICE_MAX (1 << 18)
#define TROUBLE_COST (BASE / 2)
#define TROUBLE_MAX (1 << 20)
#define NO_PAIR (-1)
#define TABU_LEAST 10
#define TABU_MORE 40
#define TWO_FOR_ONE 500
#define FREE (-1)
#define SHUT (-2)

struct unit {			/* one lightpath */
	int32_t demand;
	int32_t hops;		/* 0: waits */
	int32_t cap;
	struct rwa_hop *hop;
	int32_t penalty;
	int32_t partner;	/* the other one of a pair, -1: none */
	int64_t tabu;		/* fitting: may not eject before this round */
};

struct label {
	uint32_t cost, stamp;
	int64_t loss;
	int32_t from;		/* state before, -1 at the start */
	int32_t arc, fibre;	/* entered by; arc -1: channel changed */
};

HEAP(key_heap, uint64_t);

struct search {
	const struct rwa_mesh *m;
	struct adjacency out, in;
	struct rng rng;
	int channels, width;	/* width: channels there is memory for */
	int32_t *cost;		/* base cost of an arc */
	int64_t *slot;		/* first slot of an arc: (fibre, channel) */
	int32_t *owner;		/* of a slot */
	struct unit *units;
	int32_t n_units;
	int32_t *wait;		/* units without a place */
	int32_t waiting;
	int32_t **dist;		/* by destination: base cost from each node */
	int64_t **least;	/* by destination: least loss from each node */
	bool *lit;		/* channel: may be used at all */
	bool *tune;		/* (node, channel); NULL: all */
	int32_t *link;		/* of an arc */
	int32_t *risk;		/* of a link: stamp when the partner is on it */
	int32_t risk_stamp;
	int32_t **trouble;	/* of a pair's demand: how often each link had
				 * both; NULL: not yet */
	bool fit;		/* not all can be served */
	int32_t slack;		/* how much dearer the way of one that is
				 * taken in for another may be */
	struct label *labels;
	uint32_t stamp;
	struct key_heap heap;
	bool *changed;		/* node's channels were all reached */
	int32_t filled;		/* lightpaths placed at first */
	int32_t scale;		/* cost of a taken slot at penalty 1 */
	int64_t whole;		/* served: placed, partner as well */
	int64_t round;
	int32_t stuck;		/* wait[0 .. stuck - 1] have no place at all */
	int64_t calm;		/* rounds without progress */
	int32_t turn;		/* of the scales */
	int64_t most;		/* served at once */
	struct rwa_assignment best;
};

/* ---- plain distances ---- */

static int by_units(const void *a, const void *b, void *arg)
{
	const struct search *s = arg;
	const struct unit *x = a, *y = b;
	const struct rwa_mesh_demand *p = &s->m->demands.v[x->demand];
	const struct rwa_mesh_demand *q = &s->m->demands.v[y->demand];
	int32_t d = s->dist[p->dst][p->src], e = s->dist[q->dst][q->src];

	if (d != e) {
		return d < e ? -1 : 1;
	}
	return x->demand < y->demand ? -1 : x->demand > y->demand;
}

static void relax_in(const struct search *s, int32_t v, const bool *open,
		     int32_t *dist, int64_t *least, int32_t dst, bool *again)
{
	for (int32_t k = s->in.first[v]; k < s->in.first[v + 1]; k++) {
		int32_t e = s->in.arc[k], u = s->m->arcs.v[e].src;
		int64_t pass = v == dst ? 0 : s->m->nodes.v[v].pass_mdb;

		if (!open[e]) {
			continue;
		}
		if (dist[v] < INT_MAX && dist[v] + s->cost[e] < dist[u]) {
			dist[u] = dist[v] + s->cost[e];
			again[u] = true;
		}
		if (least[v] < INT64_MAX &&
		    least[v] + pass + s->m->arcs.v[e].loss_mdb < least[u]) {
			least[u] = least[v] + pass + s->m->arcs.v[e].loss_mdb;
			again[u] = true;
		}
	}
}

/* Both distances to dst, by rounds of relaxation. */
static int distances_to(struct search *s, int32_t dst, const bool *open,
			bool *again)
{
	int32_t n = (int32_t)s->m->nodes.n;
	bool any = true;

	s->dist[dst] = malloc((size_t)n * sizeof(**s->dist));
	s->least[dst] = malloc((size_t)n * sizeof(**s->least));
	if (!s->dist[dst] || !s->least[dst]) {
		return WEFT_ENOMEM;
	}
	for (int32_t v = 0; v < n; v++) {
		s->dist[dst][v] = INT_MAX;
		s->least[dst][v] = INT64_MAX;
		again[v] = false;
	}
	s->dist[dst][dst] = 0;
	s->least[dst][dst] = 0;
	again[dst] = true;
	while (any) {
		any = false;
		for (int32_t v = 0; v < n; v++) {
			if (again[v]) {
				again[v] = false;
				any = true;
				relax_in(s, v, open, s->dist[dst],
					 s->least[dst], dst, again);
			}
		}
	}
	return 0;
}

/* ---- slots ---- */

static int32_t *slot_at(const struct search *s, int32_t arc, int32_t fibre,
			int32_t channel)
{
	return &s->owner[s->slot[arc] + (int64_t)fibre * s->width + channel];
}

static void put_unit(struct search *s, int32_t unit, int32_t who)
{
	struct unit *u = &s->units[unit];

	for (int32_t i = 0; i < u->hops; i++) {
		*slot_at(s, u->hop[i].arc, u->hop[i].fibre,
			 u->hop[i].channel) = who;
	}
}

static bool is_placed(const struct search *s, int32_t unit)
{
	return unit >= 0 && s->units[unit].hops > 0;
}

/* Counts what a unit that comes or goes makes whole. */
static int32_t share(const struct search *s, int32_t unit)
{
	int32_t partner = s->units[unit].partner;

	return partner < 0 ? 1 : is_placed(s, partner) ? 2 : 0;
}

static void eject(struct search *s, int32_t unit)
{
	put_unit(s, unit, FREE);
	s->whole -= share(s, unit);
	s->units[unit].hops = 0;
	s->wait[s->waiting++] = unit;
}

/* ---- cheapest way ---- */

static inline bool is_less(uint64_t a, uint64_t b)
{
	return a < b;
}

HEAP_FUNCTIONS(key_heap, uint64_t, is_less)

/* Of equal costs the state nearer to the end comes first, then chance. */
static int push_state(struct search *s, uint32_t cost, uint32_t to_go,
		     int32_t state)
{
	uint64_t near = to_go / BASE < 63 ? to_go / BASE : 63;
	uint64_t key = (uint64_t)(cost + to_go) << 36 | near << 30 |
		       (rng_u64(&s->rng) & 0xf) << 26 | (uint32_t)state;

	return key_heap_push(&s->heap, key);
}

/* Price of ejecting whoever is within the guard channels of a slot, -1 when
 * it is shut. A lightpath that was ejected one hop before is free. */
static int32_t eject_price(const struct search *s, int32_t arc, int32_t fibre,
			   int32_t channel, int32_t before)
{
	const int32_t *slot = slot_at(s, arc, fibre, 0);
	int32_t reach = s->m->guard.between, sum = 0, last = FREE;
	int32_t from = channel > reach ? channel - reach : 0;
	int32_t to = channel + reach < s->channels ? channel + reach
						   : s->channels - 1;

	if (slot[channel] == SHUT) {
		return -1;
	}
	if (!reach) {
		last = slot[channel];
		return last == FREE || last == before ? 0
		       : s->fit			      ? 1
						      : s->units[last].penalty;
	}
	for (int32_t c = from; c <= to; c++) {
		if (slot[c] >= 0 && slot[c] != before && slot[c] != last) {
			last = slot[c];
			sum += s->fit ? 1 : s->units[last].penalty;
		}
	}
	return sum;
}

/* Cost of the cheapest fibre of an arc on a channel; -1: none. */
static int32_t slot_cost(const struct search *s, int32_t arc, int32_t channel,
			 int32_t before, int32_t *fibre)
{
	int32_t best = -1, fibres = s->m->arcs.v[arc].fibres;

	for (int32_t f = 0; f < fibres && best != 0; f++) {
		int32_t price = eject_price(s, arc, f, channel, before);

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
static int32_t risk_cost(const struct search *s, int32_t partner, int32_t demand,
			 int32_t arc)
{
	int32_t link = s->link[arc], cost = 0;

	if (s->trouble[demand]) {
		cost = s->trouble[demand][link] * TROUBLE_COST;
		cost = cost < TROUBLE_MAX ? cost : TROUBLE_MAX;
	}
	if (s->risk[link] == s->risk_stamp) {
		cost += s->units[partner].penalty * s->scale;
	}
	return cost;
}

struct want {			/* what a path search is about */
	int32_t src, dst;
	const int32_t *dist;
	const int64_t *least;
	int64_t budget;		/* of arcs and nodes passed */
	int32_t demand;
	int32_t partner;	/* placed, links marked; -1: none */
	bool by_loss;		/* the loss is the cost: finds a way within
				 * the budget where the cheapest has none */
};

static uint32_t still_to_go(const struct want *w, int32_t v)
{
	return w->by_loss ? 0 : (uint32_t)w->dist[v];
}

static bool tunes(const struct search *s, int32_t v, int32_t state)
{
	return s->tune[(int64_t)v * s->width +
		       state / (int32_t)s->m->nodes.n];
}

static int reach(struct search *s, const struct want *w, int32_t state,
		 const struct label *l)
{
	struct label *old = &s->labels[state];
	int32_t v = state % (int32_t)s->m->nodes.n;
	uint32_t cost = l->cost < COST_MAX / 2 ? l->cost : COST_MAX / 2;

	if (w->dist[v] == INT_MAX || l->loss + w->least[v] > w->budget ||
	    (s->tune && v == w->dst && !tunes(s, v, state)) ||
	    (old->stamp == s->stamp && old->cost <= cost)) {
		return 0;
	}
	*old = *l;
	old->cost = cost;
	old->stamp = s->stamp;
	return push_state(s, cost, still_to_go(w, v), state);
}

static int expand_arcs(struct search *s, const struct want *w, int32_t state)
{
	int32_t n = (int32_t)s->m->nodes.n, v = state % n, c = state / n;
	const struct label *at = &s->labels[state];
	int64_t pass = v == w->src ? 0 : s->m->nodes.v[v].pass_mdb;
	int32_t before = at->arc < 0 ? FREE
				     : *slot_at(s, at->arc, at->fibre, c);
	int rc = 0;

	for (int32_t k = s->out.first[v]; !rc && k < s->out.first[v + 1]; k++) {
		struct label l = { .from = state, .arc = s->out.arc[k] };
		int32_t cost = slot_cost(s, l.arc, c, before,
					 &l.fibre);

		if (cost >= 0 && w->partner != NO_PAIR) {
			cost += risk_cost(s, w->partner, w->demand, l.arc);
		}
		if (cost >= 0) {
			l.loss = at->loss + pass +
				 s->m->arcs.v[l.arc].loss_mdb;
			l.cost = w->by_loss ? (uint32_t)l.loss
					    : at->cost + (uint32_t)cost;
			rc = reach(s, w, c * n + s->m->arcs.v[l.arc].dst, &l);
		}
	}
	return rc;
}

/* A node that converts passes its cost on to all its channels, once. */
static int expand_channels(struct search *s, const struct want *w,
			   int32_t state)
{
	int32_t n = (int32_t)s->m->nodes.n, v = state % n;
	struct label l = s->labels[state];
	int rc = 0;

	if (!s->m->nodes.v[v].convert || v == w->src || s->changed[v]) {
		return 0;
	}
	s->changed[v] = true;
	l.from = state;
	l.arc = -1;
	for (int32_t c = 0; !rc && c < s->channels; c++) {
		rc = s->lit[c] ? reach(s, w, c * n + v, &l) : 0;
	}
	return rc;
}

static int32_t take_top(struct search *s, const struct want *w)
{
	while (s->heap.n) {
		uint64_t key = key_heap_pop(&s->heap);
		int32_t state = (int32_t)(key & 0x3ffffff);
		int32_t v = state % (int32_t)s->m->nodes.n;

		if ((uint32_t)(key >> 36) ==
		    s->labels[state].cost + still_to_go(w, v)) {
			return state;
		}
	}
	return -1;
}

/* The state at dst of the cheapest way, -1 when there is none, or an error.
 * few: of some channels taken at random. */
static int cheapest(struct search *s, const struct want *w, bool few,
		    int32_t *goal)
{
	int32_t n = (int32_t)s->m->nodes.n;
	struct label start = { .from = -1, .arc = -1 };
	int rc = 0;

	s->heap.n = 0;
	s->stamp++;
	memset(s->changed, 0, (size_t)n);
	for (int32_t k = 0; !rc && k < (few ? SAMPLE : s->channels); k++) {
		int32_t c = few ? (int32_t)rng_below(&s->rng,
						     (uint64_t)s->channels)
				: k;

		if (s->lit[c] &&
		    (!s->tune || tunes(s, w->src, c * n + w->src))) {
			rc = reach(s, w, c * n + w->src, &start);
		}
	}
	while (!rc) {
		*goal = take_top(s, w);
		if (*goal < 0 || *goal % n == w->dst) {
			break;
		}
		rc = expand_arcs(s, w, *goal);
		rc = rc ? rc : expand_channels(s, w, *goal);
	}
	return rc;
}

static int store_way(struct search *s, int32_t unit, int32_t goal)
{
	struct unit *u = &s->units[unit];
	int32_t n = (int32_t)s->m->nodes.n, hops = 0, i;

	for (int32_t st = goal; st >= 0; st = s->labels[st].from) {
		hops += s->labels[st].arc >= 0;
	}
	if (hops > u->cap) {
		struct rwa_hop *hop = realloc(u->hop,
					      (size_t)hops * sizeof(*hop));

		if (!hop) {
			return WEFT_ENOMEM;
		}
		u->hop = hop;
		u->cap = hops;
	}
	i = hops;
	for (int32_t st = goal; st >= 0; st = s->labels[st].from) {
		const struct label *l = &s->labels[st];

		if (l->arc >= 0) {
			u->hop[--i] = (struct rwa_hop){ l->arc, l->fibre,
							st / n };
		}
	}
	u->hops = hops;
	return 0;
}

/* ---- the search ---- */

/* The first slots of a hop's guard channels and after them. */
static int32_t *guarded(const struct search *s, const struct rwa_hop *h,
			int32_t **end)
{
	int32_t *slot = slot_at(s, h->arc, h->fibre, 0);
	int32_t reach = s->m->guard.between;

	*end = slot + (h->channel + reach < s->channels ? h->channel + reach
							: s->channels - 1) + 1;
	return slot + (h->channel > reach ? h->channel - reach : 0);
}

/* Ejects the partner when both are on one link, and remembers the link. */
static bool eject_partner(struct search *s, int32_t unit, int32_t hops)
{
	const struct unit *u = &s->units[unit];
	bool shared = false;

	if (!is_placed(s, u->partner)) {
		return false;
	}
	for (int32_t i = 0; i < hops; i++) {
		int32_t link = s->link[u->hop[i].arc];

		if (s->risk[link] == s->risk_stamp) {
			s->trouble[u->demand][link]++;
			shared = true;
		}
	}
	if (shared) {
		eject(s, u->partner);
	}
	return shared;
}

/* Ejects whoever holds the unit's slots, or is too near, and takes them. */
static void occupy(struct search *s, int32_t unit)
{
	struct unit *u = &s->units[unit];
	int32_t hops = u->hops, *end;
	bool ejected;

	/* Not placed yet: an ejected partner must not count it. */
	u->hops = 0;
	ejected = eject_partner(s, unit, hops);
	for (int32_t i = 0; i < hops; i++) {
		for (int32_t *at = guarded(s, &u->hop[i], &end); at < end;
		     at++) {
			if (*at >= 0) {
				s->units[*at].tabu = s->round + TABU_LEAST +
					(int64_t)rng_below(&s->rng, TABU_MORE);
				eject(s, *at);
				ejected = true;
			}
		}
	}
	u->hops = hops;
	put_unit(s, unit, unit);
	s->whole += share(s, unit);
	if (ejected && u->penalty < PENALTY_MAX) {
		u->penalty++;
	}
}

/* Marks the links of the partner, and makes room to remember them. */
static int mark_partner(struct search *s, struct want *w, int32_t unit)
{
	const struct unit *u = &s->units[unit];

	if (u->partner < 0) {
		w->partner = NO_PAIR;
		return 0;
	}
	if (!s->trouble[u->demand]) {
		s->trouble[u->demand] = calloc(s->m->arcs.n + 1,
					       sizeof(**s->trouble));
		if (!s->trouble[u->demand]) {
			return WEFT_ENOMEM;
		}
	}
	w->partner = u->partner;
	w->demand = u->demand;
	s->risk_stamp++;
	for (int32_t i = 0; i < s->units[u->partner].hops; i++) {
		s->risk[s->link[s->units[u->partner].hop[i].arc]] =
			s->risk_stamp;
	}
	return 0;
}

/* True when a lightpath that changes its channel comes too near to itself. */
static bool meets_itself(const struct search *s, const struct unit *u)
{
	int32_t reach = s->m->guard.between;

	for (int32_t i = 0; reach && i < u->hops; i++) {
		for (int32_t k = 0; k < i; k++) {
			const struct rwa_hop *a = &u->hop[i], *b = &u->hop[k];

			if (a->arc == b->arc && a->fibre == b->fibre &&
			    abs(a->channel - b->channel) <= reach) {
				return true;
			}
		}
	}
	return false;
}

static int find_place(struct search *s, int32_t unit, int32_t *goal)
{
	const struct rwa_mesh_demand *d =
		&s->m->demands.v[s->units[unit].demand];
	struct want w = { .src = d->src, .dst = d->dst,
			  .dist = s->dist[d->dst], .least = s->least[d->dst],
			  .budget = INT64_MAX };
	bool few = s->channels > MANY;
	int rc = mark_partner(s, &w, unit);

	*goal = -1;
	if (s->m->budget_mdb != RWA_MESH_NO_LIMIT) {
		w.budget = s->m->budget_mdb - s->m->add_mdb - s->m->drop_mdb;
	}
	rc = rc ? rc : cheapest(s, &w, few, goal);
	if (!rc && few && (*goal < 0 || (s->scale == SCALE_FILL &&
					 s->labels[*goal].cost >= SCALE_FILL))) {
		rc = cheapest(s, &w, false, goal);
	}
	if (!rc && *goal < 0 && w.budget < INT64_MAX) {
		w.by_loss = true;
		rc = cheapest(s, &w, false, goal);
	}
	return rc;
}

static int32_t way_cost(const struct search *s, const struct unit *u)
{
	int32_t cost = 0;

	for (int32_t i = 0; i < u->hops; i++) {
		cost += s->cost[u->hop[i].arc];
	}
	return cost;
}

/* When not all fit, one may be ejected for one, not for a while after it was
 * ejected itself, and now and then two. */
static bool is_worth(struct search *s, int32_t unit)
{
	const struct unit *u = &s->units[unit];
	int32_t n = 0, last = FREE, *end;

	if (!s->fit) {
		return true;
	}
	for (int32_t i = 0; i < u->hops; i++) {
		for (int32_t *at = guarded(s, &u->hop[i], &end); at < end;
		     at++) {
			n += *at >= 0 && *at != last;
			last = *at >= 0 ? *at : last;
		}
	}
	if (n == 0 || s->filled <= s->n_units || u->tabu > s->round) {
		return n == 0;
	}
	if (n == 1) {
		return way_cost(s, u) <= way_cost(s, &s->units[last]) +
			(int32_t)rng_below(&s->rng, (uint64_t)s->slack);
	}
	return n == 2 && rng_below(&s->rng, TWO_FOR_ONE) == 0;
}

enum outcome { PLACED, NOT_WORTH_IT, NOWHERE };

static int place(struct search *s, int32_t unit, enum outcome *out)
{
	int32_t goal;
	int rc = find_place(s, unit, &goal);

	*out = NOWHERE;
	if (rc || goal < 0) {
		return rc;
	}
	rc = store_way(s, unit, goal);
	*out = NOT_WORTH_IT;
	if (!rc && !meets_itself(s, &s->units[unit]) && is_worth(s, unit)) {
		occupy(s, unit);
		*out = PLACED;
	} else {
		s->units[unit].hops = 0;
	}
	return rc;
}

static int remember(struct search *s)
{
	s->most = s->whole;
	s->best.paths.n = 0;
	s->best.hops.n = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		const struct unit *u = &s->units[i];
		struct rwa_path p = { u->demand, u->hops,
				      (int64_t)s->best.hops.n };

		if (!u->hops || (u->partner >= 0 && !is_placed(s, u->partner))) {
			continue;
		}
		if (vec_push(&s->best.paths, p) ||
		    vec_reserve(&s->best.hops, (size_t)u->hops)) {
			return WEFT_ENOMEM;
		}
		memcpy(s->best.hops.v + s->best.hops.n, u->hop,
		       (size_t)u->hops * sizeof(*u->hop));
		s->best.hops.n += (size_t)u->hops;
	}
	return 0;
}

/*
 * What a taken slot costs beside the way itself. At first much, so that what
 * is free is filled; then little, so that ways stay short. Which little is
 * best differs, so that they take turns when nothing gets better.
 */
static void choose_scale(struct search *s)
{
	static const int32_t scales[] = { 16, 100, 6, 32 };
	static const int32_t slacks[] = { 4, 8, 2, 16 };

	if (++s->calm > CALM_LEAST + s->n_units) {
		s->calm = 0;
		s->turn = (s->turn + 1) % 4;
	}
	s->slack = slacks[s->turn] * BASE;
	if (s->fit || s->filled < s->n_units) {
		s->filled += s->filled < s->n_units;
		s->scale = SCALE_FILL;
		return;
	}
	s->scale = scales[s->turn];
}

/* When not all fit: every lightpath is tried once, the cheapest first. */
static bool is_filling(const struct search *s)
{
	return s->fit && s->filled < s->n_units;
}

/* True once everything was tried, when not all fit. */
static bool is_full(const struct search *s)
{
	return s->fit && s->filled > s->n_units;
}

static int32_t pick(struct search *s)
{
	return is_filling(s) ? s->waiting - 1
			     : s->stuck + (int32_t)rng_below(&s->rng,
					(uint64_t)(s->waiting - s->stuck));
}

bool search_is_idle(const struct search *s)
{
	return s->waiting <= s->stuck;
}

int search_run(struct search *s, int64_t target, int64_t effort,
	       const struct stop *stop, int64_t *served, struct err *err)
{
	int rc = 0;

	for (int64_t k = 0; !rc && !search_is_idle(s) && s->most < target &&
			    k < effort; k++) {
		int32_t unit, at = pick(s);
		enum outcome outcome = PLACED;

		if (k % 16 == 0 && stop_now(stop)) {
			break;
		}
		choose_scale(s);
		unit = s->wait[at];
		s->wait[at] = s->wait[--s->waiting];
		s->round++;
		rc = place(s, unit, &outcome);
		if (!rc && outcome != PLACED) {
			s->wait[s->waiting++] = s->wait[s->stuck];
			s->wait[s->stuck] = unit;
			s->stuck += outcome == NOWHERE || is_filling(s);
		}
		if (s->fit && s->filled == s->n_units) {
			/* What found no free place gets another chance. */
			s->filled++;
			s->stuck = 0;
		}
		if (!rc && s->whole > s->most &&
		    (s->waiting == 0 || k % 64 == 0 || is_full(s))) {
			rc = remember(s);
			s->calm = 0;
		}
	}
	if (!rc && s->whole > s->most) {
		rc = remember(s);
	}
	*served = s->most;
	return rc ? err_nomem(err) : 0;
}

static int by_demand(const void *a, const void *b)
{
	const struct rwa_path *x = a, *y = b;

	if (x->demand != y->demand) {
		return x->demand < y->demand ? -1 : 1;
	}
	return x->first < y->first ? -1 : x->first > y->first;
}

int search_best(const struct search *s, struct rwa_assignment *out,
		struct err *err)
{
	*out = (struct rwa_assignment){ 0 };
	if (vec_reserve(&out->paths, s->best.paths.n + 1) ||
	    vec_reserve(&out->hops, s->best.hops.n + 1)) {
		rwa_assignment_fini(out);
		return err_nomem(err);
	}
	out->paths.n = s->best.paths.n;
	out->hops.n = s->best.hops.n;
	if (out->paths.n) {
		memcpy(out->paths.v, s->best.paths.v,
		       out->paths.n * sizeof(*out->paths.v));
		memcpy(out->hops.v, s->best.hops.v,
		       out->hops.n * sizeof(*out->hops.v));
		qsort(out->paths.v, out->paths.n, sizeof(*out->paths.v),
		      by_demand);
	}
	return 0;
}

/* ---- number of channels ---- */

/* Marks what must not be used, in channels 0..width-1. */
static void shut_slots(struct search *s)
{
	for (size_t i = 0; i < s->m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &s->m->blocks.v[i];
		int32_t reach = b->filter ? 0 : s->m->guard.between;
		bool fibres = b->fibre == RWA_MESH_ALL;
		bool channels = b->channel == RWA_MESH_ALL;
		int32_t f_end = fibres ? s->m->arcs.v[b->arc].fibres
				       : b->fibre + 1;
		int32_t c_end = channels ? s->width : b->channel + reach + 1;
		int32_t from = channels || b->channel < reach
				       ? 0 : b->channel - reach;

		c_end = c_end < s->width ? c_end : s->width;
		for (int32_t f = fibres ? 0 : b->fibre; f < f_end; f++) {
			for (int32_t c = from; c < c_end; c++) {
				*slot_at(s, b->arc, f, c) = SHUT;
			}
		}
	}
}

/* True when channels can be exchanged for one another. */
static bool are_alike(const struct rwa_mesh *m)
{
	return m->blocks.n == 0 && m->tunings.n == 0;
}

/* Which channels may be lit at all. Where channels are alike, every one that
 * the guards leave between lit ones can be moved to the next that is not, so
 * that nothing is lost by leaving them dark. */
static void set_band(struct search *s)
{
	const struct rwa_mesh_guard *g = &s->m->guard;
	int32_t step = are_alike(s->m) ? g->between + 1 : 1;

	for (int32_t c = g->below; c < s->width; c += step) {
		s->lit[c] = true;
	}
	for (int32_t v = 0; s->tune && v < (int32_t)s->m->nodes.n; v++) {
		for (int32_t c = 0; c < s->width; c++) {
			s->tune[(int64_t)v * s->width + c] =
				mesh_tunes(s->m, v, c);
		}
	}
}

static int make_room(struct search *s, int width, struct err *err)
{
	int64_t slots = 0;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->slot[e] = slots;
		slots += (int64_t)s->m->arcs.v[e].fibres * width;
	}
	s->slot[s->m->arcs.n] = slots;
	if (slots > MAX_SLOTS || (int64_t)width * s->m->nodes.n > MAX_STATES) {
		return err_set(err, WEFT_ELIMIT,
			       "%d channels on %zu arcs: too large to search",
			       width, s->m->arcs.n);
	}
	free(s->owner);
	free(s->labels);
	free(s->lit);
	free(s->tune);
	s->width = width;
	s->tune = NULL;
	s->lit = calloc((size_t)width + 1, sizeof(*s->lit));
	s->owner = malloc(((size_t)slots + 1) * sizeof(*s->owner));
	s->labels = calloc((size_t)width * s->m->nodes.n + 1,
			   sizeof(*s->labels));
	if (s->m->tunings.n) {
		s->tune = calloc((size_t)width * s->m->nodes.n + 1,
				 sizeof(*s->tune));
	}
	if (!s->owner || !s->labels || !s->lit ||
	    (s->m->tunings.n && !s->tune)) {
		return err_nomem(err);
	}
	set_band(s);
	return 0;
}

static int by_use(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* New number of every channel, -1 when it is given up: the emptiest first,
 * unless what is blocked or tuned makes channels differ. */
static int renumber(const struct search *s, int channels, int32_t *number)
{
	int64_t *use = calloc((size_t)s->channels + 1, sizeof(*use));
	int32_t lit = 0, next = 0;

	if (!use) {
		return WEFT_ENOMEM;
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		for (int32_t h = 0; h < s->units[i].hops; h++) {
			use[s->units[i].hop[h].channel]++;
		}
	}
	for (int32_t c = 0; c < s->channels; c++) {
		number[c] = c < channels ? c : -1;
		if (s->lit[c]) {
			use[lit++] = use[c] << 24 | c;
		}
	}
	if (are_alike(s->m) && channels < s->channels) {
		qsort(use, (size_t)lit, sizeof(*use), by_use);
		for (int32_t c = 0; c < s->channels; c++) {
			if (s->lit[c]) {
				number[use[next++] & 0xffffff] =
					c < channels ? c : -1;
			}
		}
	}
	free(use);
	return 0;
}

static void move_units(struct search *s, const int32_t *number)
{
	s->waiting = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		struct unit *u = &s->units[i];

		u->penalty = 1;
		u->tabu = 0;
		for (int32_t h = 0; h < u->hops; h++) {
			int32_t c = number[u->hop[h].channel];

			if (c < 0) {
				u->hops = 0;
				break;
			}
			u->hop[h].channel = c;
		}
		if (!u->hops) {
			s->wait[s->waiting++] = i;
		}
	}
	/* Taken from the end, the cheapest first. */
	for (int32_t i = 0; s->fit && i < s->waiting / 2; i++) {
		int32_t unit = s->wait[i];

		s->wait[i] = s->wait[s->waiting - 1 - i];
		s->wait[s->waiting - 1 - i] = unit;
	}
}

int search_set_channels(struct search *s, int channels, struct err *err)
{
	int32_t *number = calloc((size_t)s->channels + 1, sizeof(*number));
	int rc = 0;

	channels -= s->m->guard.above;
	channels = channels > 0 ? channels : 0;
	if (!number || renumber(s, channels, number)) {
		free(number);
		return err_nomem(err);
	}
	move_units(s, number);
	free(number);
	if (channels > s->width || !s->owner) {
		rc = make_room(s, channels, err);
	}
	if (rc) {
		return rc;
	}
	s->channels = channels;
	s->whole = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		/* Each half of a pair counts both once. */
		s->whole += is_placed(s, i) ? share(s, i) > 0 : 0;
	}
	s->most = -1;
	s->stuck = s->turn = 0;
	s->calm = 0;
	s->filled = s->fit ? 0 : s->n_units - s->waiting;
	memset(s->owner, 0xff, ((size_t)s->slot[s->m->arcs.n]) *
				       sizeof(*s->owner));
	shut_slots(s);
	for (int32_t i = 0; i < s->n_units; i++) {
		put_unit(s, i, i);
	}
	return 0;
}

/* ---- beginning with lightpaths in place ---- */

static bool is_clear(const struct search *s, const struct rwa_hop *h)
{
	return h->channel < s->channels &&
	       eject_price(s, h->arc, h->fibre, h->channel, FREE) == 0;
}

static int copy_way(struct unit *u, const struct rwa_hop *hop, int32_t hops)
{
	if (hops > u->cap) {
		struct rwa_hop *room = realloc(u->hop,
					       (size_t)hops * sizeof(*room));

		if (!room) {
			return WEFT_ENOMEM;
		}
		u->hop = room;
		u->cap = hops;
	}
	memcpy(u->hop, hop, (size_t)hops * sizeof(*hop));
	u->hops = hops;
	return 0;
}

/* Units as lists by demand: first[], then next[]. */
static void list_units(const struct search *s, int32_t *first, int32_t *next)
{
	for (size_t d = 0; d < s->m->demands.n; d++) {
		first[d] = -1;
	}
	for (int32_t i = s->n_units - 1; i >= 0; i--) {
		next[i] = first[s->units[i].demand];
		first[s->units[i].demand] = i;
	}
}

/* The next unit of a list; of pairs the one whose partner has its place. */
static int32_t next_unit(const struct search *s, int32_t *first,
			 const int32_t *next)
{
	int32_t u = *first;

	if (u < 0 || s->units[u].partner < 0) {
		*first = u < 0 ? u : next[u];
		return u;
	}
	for (int32_t k = u; k >= 0; k = next[k]) {
		if (!is_placed(s, k) && is_placed(s, s->units[k].partner)) {
			return k;
		}
	}
	while (u >= 0 && is_placed(s, u)) {
		u = next[u];
	}
	*first = u;
	return u;
}

/* Gives paths their units; unit[]: of each path, or -1. */
static int seat(struct search *s, const struct rwa_assignment *begin,
		int32_t *first, const int32_t *next, int32_t *unit)
{
	for (size_t i = 0; i < begin->paths.n; i++) {
		const struct rwa_path *p = &begin->paths.v[i];
		const struct rwa_hop *hop = begin->hops.v + p->first;
		int32_t u, h = 0;

		unit[i] = -1;
		while (h < p->hops && is_clear(s, &hop[h])) {
			h++;
		}
		u = h < p->hops ? -1 : next_unit(s, &first[p->demand], next);
		if (u < 0) {
			continue;
		}
		if (copy_way(&s->units[u], hop, p->hops)) {
			return WEFT_ENOMEM;
		}
		put_unit(s, u, u);
		unit[i] = u;
	}
	return 0;
}

int search_begin(struct search *s, int channels,
		 const struct rwa_assignment *begin, const int32_t *penalties,
		 struct err *err)
{
	size_t n = (size_t)s->n_units + 1;
	int32_t *first = calloc(s->m->demands.n + 1, sizeof(*first));
	int32_t *next = calloc(n, sizeof(*next));
	int32_t *unit = calloc(begin->paths.n + 1, sizeof(*unit));
	int rc = first && next && unit ? 0 : err_nomem(err);

	for (int32_t i = 0; i < s->n_units; i++) {
		s->units[i].hops = 0;
	}
	rc = rc ? rc : search_set_channels(s, channels, err);
	if (!rc) {
		list_units(s, first, next);
		rc = seat(s, begin, first, next, unit) ? err_nomem(err) : 0;
	}
	/* Counts again, now with what is in place. */
	rc = rc ? rc : search_set_channels(s, channels, err);
	for (size_t i = 0; !rc && i < begin->paths.n; i++) {
		if (unit[i] >= 0) {
			s->units[unit[i]].penalty = penalties[i];
		}
	}
	free(first);
	free(next);
	free(unit);
	return rc;
}

/* ---- beginning and end ---- */

/* Arcs that the bound prices high are dear, as everybody needs them. */
static void set_costs(struct search *s, const int64_t *prices)
{
	double sum = 0, mean;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		sum += (double)prices[e];
	}
	mean = sum > 0 ? sum / (double)s->m->arcs.n : 1;
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		double dear = (double)prices[e] / mean;

		s->cost[e] = (int32_t)(BASE * (1 + (dear < 8 ? dear : 8)));
	}
}

static int all_distances(struct search *s, struct err *err)
{
	size_t n = s->m->nodes.n;
	bool *again = calloc(n + 1, sizeof(*again));
	int32_t *fibres = calloc(s->m->arcs.n + 1, sizeof(*fibres));
	bool *open = calloc(s->m->arcs.n + 1, sizeof(*open));
	int rc = again && fibres && open ? 0 : err_nomem(err);

	rc = rc ? rc : mesh_open_fibres(s->m, fibres, err);
	for (size_t e = 0; !rc && e < s->m->arcs.n; e++) {
		open[e] = fibres[e] > 0;
	}
	for (size_t i = 0; !rc && i < s->m->demands.n; i++) {
		int32_t dst = s->m->demands.v[i].dst;

		if (!s->dist[dst] && distances_to(s, dst, open, again)) {
			rc = err_nomem(err);
		}
	}
	free(again);
	free(fibres);
	free(open);
	return rc;
}

/* Every demand must have a way, within the loss budget. */
static int check_ways(const struct search *s, struct err *err)
{
	const struct rwa_mesh *m = s->m;
	int64_t budget = m->budget_mdb == RWA_MESH_NO_LIMIT
				 ? INT64_MAX
				 : m->budget_mdb - m->add_mdb - m->drop_mdb;

	for (size_t i = 0; i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];
		bool way = s->dist[d->dst][d->src] < INT_MAX;
		char from[16], to[16];

		if (!way || s->least[d->dst][d->src] > budget) {
			return err_set(err, WEFT_EINFEASIBLE,
				"demand %zu: no way leads from %s to %s%s", i,
				rwa_mesh_node_name(m, d->src, from,
						   sizeof(from)),
				rwa_mesh_node_name(m, d->dst, to, sizeof(to)),
				way ? " within the loss budget" : "");
		}
	}
	return 0;
}

/* How many lightpaths of a demand its ends can still hold. */
static int32_t room_at_ends(const struct search *s, int64_t *adds,
			    int64_t *drops, const struct rwa_mesh_demand *d)
{
	const struct rwa_mesh_node *src = &s->m->nodes.v[d->src];
	const struct rwa_mesh_node *dst = &s->m->nodes.v[d->dst];
	int64_t n = d->count, each = d->protect ? 2 : 1;

	if (src->add_limit >= 0 &&
	    (src->add_limit - adds[d->src]) / each < n) {
		n = (src->add_limit - adds[d->src]) / each;
	}
	if (dst->drop_limit >= 0 &&
	    (dst->drop_limit - drops[d->dst]) / each < n) {
		n = (dst->drop_limit - drops[d->dst]) / each;
	}
	adds[d->src] += n * each;
	drops[d->dst] += n * each;
	return (int32_t)(n * each);
}

/* One unit for each lightpath, the longest last, where waiting begins. */
static int make_units(struct search *s)
{
	size_t n = (size_t)s->m->lightpaths + 1, nodes = s->m->nodes.n;
	int64_t *ends = calloc(2 * nodes, sizeof(*ends));

	s->units = calloc(n, sizeof(*s->units));
	s->wait = calloc(n, sizeof(*s->wait));
	if (!ends || !s->units || !s->wait) {
		free(ends);
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < s->m->demands.n; i++) {
		int32_t count = room_at_ends(s, ends, ends + nodes,
					     &s->m->demands.v[i]);

		for (int32_t k = 0; k < count; k++) {
			s->units[s->n_units++] = (struct unit){
				.demand = (int32_t)i,
			};
		}
	}
	qsort_r(s->units, (size_t)s->n_units, sizeof(*s->units), by_units, s);
	for (int32_t i = 0; i < s->n_units; i++) {
		struct unit *u = &s->units[i];

		u->partner = -1;
		if (i && s->m->demands.v[u->demand].protect &&
		    u[-1].demand == u->demand && u[-1].partner < 0) {
			u->partner = i - 1;
			u[-1].partner = i;
		}
	}
	free(ends);
	return 0;
}

int search_new(const struct rwa_mesh *m, const int64_t *prices, uint64_t seed,
	       bool fit, struct search **out, struct err *err)
{
	struct search *s = calloc(1, sizeof(*s));
	size_t n = m->nodes.n, e = m->arcs.n + 1;
	int rc = WEFT_ENOMEM;

	*out = NULL;
	if (!s) {
		return err_nomem(err);
	}
	s->m = m;
	s->fit = fit;
	rng_seed(&s->rng, seed);
	s->cost = calloc(e, sizeof(*s->cost));
	s->slot = calloc(e, sizeof(*s->slot));
	s->dist = calloc(n, sizeof(*s->dist));
	s->least = calloc(n, sizeof(*s->least));
	s->changed = calloc(n, sizeof(*s->changed));
	s->link = calloc(e, sizeof(*s->link));
	s->risk = calloc(e, sizeof(*s->risk));
	s->trouble = calloc(m->demands.n + 1, sizeof(*s->trouble));
	s->lit = calloc(1, sizeof(*s->lit));
	if (!s->cost || !s->link || !s->risk || !s->trouble || !s->lit ||
	    mesh_links(m, s->link) || !s->slot || !s->dist || !s->least || !s->changed ||
	    adjacency_init(&s->out, m, false) ||
	    adjacency_init(&s->in, m, true)) {
		err_nomem(err);
		goto out;
	}
	set_costs(s, prices);
	rc = all_distances(s, err);
	rc = rc ? rc : check_ways(s, err);
	if (!rc && make_units(s)) {
		rc = err_nomem(err);
	}
out:
	if (rc) {
		search_free(s);
		s = NULL;
	}
	*out = s;
	return rc;
}

int64_t search_units(const struct search *s)
{
	return s->n_units;
}

void search_free(struct search *s)
{
	if (!s) {
		return;
	}
	for (size_t v = 0; v < s->m->nodes.n; v++) {
		free(s->dist ? s->dist[v] : NULL);
		free(s->least ? s->least[v] : NULL);
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		free(s->units[i].hop);
	}
	rwa_assignment_fini(&s->best);
	adjacency_fini(&s->out);
	adjacency_fini(&s->in);
	free(s->cost);
	free(s->slot);
	free(s->owner);
	free(s->units);
	free(s->wait);
	free(s->dist);
	free(s->least);
	free(s->labels);
	vec_fini(&s->heap);
	free(s->changed);
	free(s->lit);
	free(s->tune);
	free(s->link);
	free(s->risk);
	for (size_t d = 0; s->trouble && d < s->m->demands.n; d++) {
		free(s->trouble[d]);
	}
	free(s->trouble);
	free(s);
}
