/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Working lightpaths with backups that may share channels.
 *
 * Two backups may have the same slot when no cut of one link needs both, which is
 * so when their working lightpaths have no link in common. A pair is placed as one:
 * of the routes known for it, the two and their channels that cost the least, where a
 * slot in which someone is in the way costs what that one's penalty says, a new slot
 * something, and a slot that other backups hold already nothing. Who is in the way is ejected and
 * waits, as in search.c. In the end a few pairs at a time are placed again where
 * that takes fewer slots.
 *
 * Bound: when a link is cut, all that is protected has a route without it, in the
 * same channels; so what the prices prove of each network without one of its links holds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

#define MAX_SLOTS ((int64_t)1 << 23)
#define MAX_BOUND_WORK (1 << 16)	/* links times lightpaths, to look at each cut */
#define FIRST_ROUTES 6
#define MOST_ROUTES 40
#define MORE_ROUTES 4		/* one more in so many that eject someone */
#define FAR 1e6			/* price of a link that a backup is to avoid */
#define NEVER (INT64_C(1) << 50)
#define NEW_SLOT 16
#define PENALTY_MAX (1 << 12)
#define STEPS 24		/* numbers of channels that the work is meant for */
#define WORSE 3			/* slots that it may take more, at first */
#define TRIES 4			/* of small instances, with seeds of their own, */
#define TRIED 256		/* of up to so many lightpaths together */
#define PINNED_SAVE 16		/* less work to save slots where a plan waits for it */
#define GROUP 6			/* pairs that are placed again together */

/* Arcs of a working lightpath, and of its backup, if it has one, from `first` on. */
struct shared_routes {
	int32_t n[2];
	int64_t first;
};

struct shared_unit {
	int32_t demand;
	int32_t n[2];		/* hops held, working and backup */
	struct rwa_hop *hop;	/* working, then backup */
	int32_t penalty;
	bool pinned;		/* the working lightpath stays */
	VEC(struct shared_routes) routes;
};

/* Backups that hold a slot, or one that has it for itself. */
struct shared_slot {
	int32_t owner;		/* SLOT_FREE, SLOT_SHUT */
	int32_t n, cap;
	int32_t *backup;
};

struct shared_search {
	const struct rwa_mesh *m;
	struct mesh_paths paths;
	struct u64map shut;
	struct rng rng;
	struct arrays arrays;	/* owns what follows but the slots and the units' */
	double *base, *price;	/* of an arc */
	int64_t *at;		/* fibres before an arc */
	int32_t *links;		/* of the working lightpath that is placed: stamps by link */
	int32_t stamp;
	int32_t *wait;
	struct shared_unit *units;
	struct shared_slot *slots;	/* (fibre, channel) */
	VEC(int32_t) arcs;		/* of all routes */
	int32_t n_units, waiting, channels, width;
	int32_t scale;		/* of penalties */
	bool pinned;		/* a plan waits for it, beside what stays */
	int64_t fibres, round, held;	/* held: slots that are not free */
};

/* ---- slots ---- */

static struct shared_slot *slot_of(const struct shared_search *s, int32_t arc, int32_t fibre,
				   int32_t channel)
{
	int32_t c = s->m->arcs.v[arc].is_single ? 0 : channel;

	return &s->slots[(s->at[arc] + fibre) * s->width + c];
}

static enum rwa_protect kind_of(const struct shared_search *s, int32_t unit)
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
	struct shared_slot *x = slot_of(s, h->arc, h->fibre, h->channel);
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

/* Takes or gives back what the unit holds, from lightpath `first` of the two on. */
static void put_unit(struct shared_search *s, int32_t unit, int first, bool take)
{
	struct shared_unit *u = &s->units[unit];
	bool shares = kind_of(s, unit) == RWA_SHARED;

	for (int32_t i = first ? u->n[0] : 0; i < u->n[0] + u->n[1]; i++) {
		put_slot(s, &u->hop[i], unit, shares && i >= u->n[0], take);
	}
}

static void eject(struct shared_search *s, int32_t unit)
{
	struct shared_unit *u = &s->units[unit];

	put_unit(s, unit, u->pinned, false);
	u->n[1] = 0;
	u->n[0] = u->pinned ? u->n[0] : 0;
	s->wait[s->waiting++] = unit;
}

/* True when a link of the working lightpath that is placed is one of the unit's. */
static bool meets(const struct shared_search *s, int32_t unit)
{
	const struct shared_unit *u = &s->units[unit];

	for (int32_t i = 0; i < u->n[0]; i++) {
		if (s->links[s->paths.link[u->hop[i].arc]] == s->stamp) {
			return true;
		}
	}
	return false;
}

/* Arcs whose links are those of the working lightpath that is placed. */
static void mark_links(struct shared_search *s, const int32_t *arcs, int32_t n)
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
	return stays ? NEVER : (int64_t)s->scale * u->penalty * (u->n[0] + u->n[1]);
}

static int64_t slot_cost(const struct shared_search *s, const struct shared_slot *x, int32_t arc,
			 bool shares)
{
	int64_t cost = x->n && shares ? 0 : NEW_SLOT;

	if (x->owner != SLOT_FREE) {
		return x->owner == SLOT_SHUT ? NEVER : cost + toll(s, x->owner, arc);
	}
	for (int32_t k = 0; k < x->n; k++) {
		cost += !shares || meets(s, x->backup[k]) ? toll(s, x->backup[k], arc) : 0;
	}
	return cost < NEVER ? cost : NEVER;
}

/* The cheapest fibre of a hop. */
static int64_t hop_cost(const struct shared_search *s, int32_t arc, int32_t channel, bool shares,
			int32_t *fibre)
{
	int64_t best = NEVER;

	for (int32_t f = 0; f < s->m->arcs.v[arc].fibres; f++) {
		int64_t cost = slot_cost(s, slot_of(s, arc, f, channel), arc, shares);

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
static int64_t route_cost(struct shared_search *s, const struct shared_unit *u,
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
			cost += hop_cost(s, arcs[i], c, shares, &fibre);
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

/* ---- routes ---- */

/* Orders the arcs that lead from src to dst, of those in w->arcs, into out. */
static int32_t take_route(struct mesh_paths *w, int32_t src, int32_t dst, int32_t *out)
{
	int32_t n = 0;

	for (int32_t at = src; at != dst; at = w->m->arcs.v[out[n - 1]].dst) {
		for (int32_t k = 0; k < w->n_arcs; k++) {
			if (w->m->arcs.v[w->arcs[k]].src == at) {
				out[n++] = w->arcs[k];
				w->arcs[k] = w->arcs[--w->n_arcs];
				break;
			}
		}
	}
	return n;
}

/* Keeps two routes for a unit, if they are within the budget and not known. */
static void keep_routes(struct shared_search *s, struct shared_unit *u, const int32_t *arcs,
			int32_t n0, int32_t n1)
{
	struct shared_routes r = { { n0, n1 }, (int64_t)s->arcs.n };
	size_t bytes = (size_t)(n0 + n1) * sizeof(*arcs);
	int32_t src = s->m->demands.v[u->demand].src;

	for (size_t k = 0; k < u->routes.n; k++) {
		const struct shared_routes *x = &u->routes.v[k];

		if (x->n[0] == n0 && x->n[1] == n1 &&
		    memcmp(s->arcs.v + x->first, arcs, bytes) == 0) {
			return;
		}
	}
	if (mesh_path_loss(&s->paths, src, arcs, n0) > s->paths.budget ||
	    mesh_path_loss(&s->paths, src, arcs + n0, n1) > s->paths.budget) {
		return;
	}
	vec_reserve(&s->arcs, (size_t)(n0 + n1));
	memcpy(s->arcs.v + s->arcs.n, arcs, bytes);
	s->arcs.n += (size_t)(n0 + n1);
	vec_push(&u->routes, r);
}

/* A route, and one without its links at prices as given; false where there is none so. */
static bool route_and_backup(struct shared_search *s, const struct shared_unit *u, int32_t *arcs,
			     int32_t n[2])
{
	const struct rwa_mesh_demand *d = &s->m->demands.v[u->demand];
	struct mesh_paths *w = &s->paths;
	double cost = 0;

	if (u->pinned) {
		n[0] = u->n[0];
		for (int32_t i = 0; i < n[0]; i++) {
			arcs[i] = u->hop[i].arc;
		}
	} else if (mesh_path_within(w, s->price, d->src, d->dst, &cost) || isinf(cost)) {
		return false;
	} else {
		n[0] = take_route(w, d->src, d->dst, arcs);
	}
	n[1] = 0;
	if (d->protect == RWA_UNPROTECTED) {
		return true;
	}
	mark_links(s, arcs, n[0]);
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->price[e] += s->links[w->link[e]] == s->stamp ? FAR : 0;
	}
	if (mesh_path_within(w, s->price, d->src, d->dst, &cost) || cost >= FAR) {
		return false;
	}
	n[1] = take_route(w, d->src, d->dst, arcs + n[0]);
	return true;
}

/* One more way for a unit: by random prices a route and its backup, or the cheapest pair, either
 * of which may be the working lightpath. */
static void find_routes(struct shared_search *s, struct shared_unit *u, bool pair)
{
	const struct rwa_mesh_demand *d = &s->m->demands.v[u->demand];
	int32_t *arcs = x_new(4 * s->m->nodes.n + 4, sizeof(*arcs)), n[2];
	bool random = u->routes.n > 0;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		double r = random ? (double)rng_below(&s->rng, 1000) / 1000 : 0;

		s->price[e] = s->base[e] * (1 + 8 * r * r);
	}
	if (pair && !u->pinned && d->protect != RWA_UNPROTECTED) {
		if (!isinf(mesh_path_pair(&s->paths, s->price, d->src, d->dst))) {
			n[0] = take_route(&s->paths, d->src, d->dst, arcs);
			n[1] = take_route(&s->paths, d->src, d->dst, arcs + n[0]);
			keep_routes(s, u, arcs, n[0], n[1]);
			memcpy(arcs + n[0] + n[1], arcs, (size_t)n[0] * sizeof(*arcs));
			keep_routes(s, u, arcs + n[0], n[1], n[0]);
		}
	} else if (route_and_backup(s, u, arcs, n)) {
		keep_routes(s, u, arcs, n[0], n[1]);
	}
	free(arcs);
}

/* ---- the search ---- */

/* Who is in the way of a hop leaves. */
static void clear_hop(struct shared_search *s, const struct rwa_hop *h, bool shares)
{
	struct shared_slot *x = slot_of(s, h->arc, h->fibre, h->channel);

	if (x->owner >= 0) {
		eject(s, x->owner);
	}
	for (int32_t k = x->n; k-- > 0;) {
		if (!shares || meets(s, x->backup[k])) {
			eject(s, x->backup[k]);
		}
	}
}

/* Puts a lightpath of n arcs on a channel, behind what the unit holds. */
static void take_hops(struct shared_search *s, struct shared_unit *u, const int32_t *arcs,
		      int32_t n, int32_t channel, bool backup)
{
	bool shares = backup && s->m->demands.v[u->demand].protect == RWA_SHARED;
	int32_t from = backup ? u->n[0] : 0;

	u->hop = x_grow(u->hop, (size_t)(from + n) + 1, sizeof(*u->hop));
	for (int32_t i = 0; i < n; i++) {
		struct rwa_hop *h = &u->hop[from + i];

		*h = (struct rwa_hop){ arcs[i], 0, channel };
		hop_cost(s, h->arc, channel, shares, &h->fibre);
	}
	for (int32_t i = 0; i < n; i++) {
		clear_hop(s, &u->hop[from + i], shares);
	}
	u->n[backup] = n;
}

/* The cheapest of the known ways of a unit, and its channels; NEVER: none. */
static int64_t choose(struct shared_search *s, struct shared_unit *u, size_t *which,
		      int32_t channel[2])
{
	bool shares = s->m->demands.v[u->demand].protect == RWA_SHARED;
	int64_t best = NEVER;

	for (size_t k = 0; k < u->routes.n; k++) {
		const struct shared_routes *r = &u->routes.v[k];
		const int32_t *arcs = s->arcs.v + r->first;
		int32_t c[2] = { u->pinned && u->n[0] ? u->hop[0].channel % s->channels : 0, 0 };
		int64_t cost = 0;

		mark_links(s, arcs, r->n[0]);
		if (!u->pinned) {
			cost = route_cost(s, u, arcs, r->n[0], false, best, &c[0]);
		}
		/* A pair on one channel leaves others whole. */
		c[1] = c[0];
		if (cost < best && r->n[1]) {
			cost += route_cost(s, u, arcs + r->n[0], r->n[1], shares, best - cost,
					   &c[1]);
		}
		if (cost < best) {
			best = cost;
			*which = k;
			channel[0] = c[0];
			channel[1] = c[1];
		}
	}
	return best;
}

/* Places a unit that holds nothing, or (pinned) no backup. False: no way leads there. */
static bool place(struct shared_search *s, int32_t unit)
{
	struct shared_unit *u = &s->units[unit];
	const struct shared_routes *r;
	int32_t channel[2], before = s->waiting;
	size_t which = 0;

	for (int k = 0; choose(s, u, &which, channel) >= NEVER; k++) {
		if (k == MOST_ROUTES || u->routes.n >= MOST_ROUTES) {
			return false;
		}
		find_routes(s, u, k % 2);
	}
	r = &u->routes.v[which];
	mark_links(s, s->arcs.v + r->first, r->n[0]);
	if (!u->pinned) {
		take_hops(s, u, s->arcs.v + r->first, r->n[0], channel[0], false);
	}
	take_hops(s, u, s->arcs.v + r->first + r->n[0], r->n[1], channel[1], true);
	put_unit(s, unit, u->pinned, true);
	if (s->waiting > before) {
		u->penalty += u->penalty < PENALTY_MAX;
		if (u->routes.n < MOST_ROUTES && rng_below(&s->rng, MORE_ROUTES) == 0) {
			find_routes(s, u, rng_below(&s->rng, 2));
		}
	}
	return true;
}

/* Until all are placed, or so many were. What no way leads to waits at the front, `*stuck` of
 * them. */
static void run(struct shared_search *s, int64_t effort, const struct mesh_stop *stop,
		int32_t *stuck)
{
	static const int32_t scales[] = { 4, 25, 2, 8 };

	*stuck = 0;
	for (int64_t k = 0; s->waiting > *stuck && k < effort; k++) {
		int32_t at = *stuck + (int32_t)rng_below(&s->rng, (uint64_t)(s->waiting - *stuck));
		int32_t unit = s->wait[at];

		if (k % 16 == 0 && stop_now(stop)) {
			return;
		}
		s->scale = s->round < s->n_units ? 1000 : scales[k / (4 * s->n_units + 1000) % 4];
		s->round++;
		s->wait[at] = s->wait[--s->waiting];
		if (!place(s, unit)) {
			s->wait[s->waiting++] = s->wait[*stuck];
			s->wait[(*stuck)++] = unit;
		}
	}
}

/* What a few units held. */
struct shared_group {
	int32_t n;
	int32_t unit[GROUP], hops[GROUP][2];
	struct rwa_hop *hop[GROUP];
};

/* Takes one unit off its slots, and keeps what it held. */
static void lift(struct shared_search *s, struct shared_group *g, int32_t unit)
{
	struct shared_unit *u = &s->units[unit];
	size_t hops = (size_t)(u->n[0] + u->n[1]);

	for (int32_t k = 0; k < g->n; k++) {
		if (g->unit[k] == unit) {
			return;
		}
	}
	if (u->n[0] == 0 || (u->pinned && u->n[1] == 0)) {
		return;
	}
	g->unit[g->n] = unit;
	memcpy(g->hops[g->n], u->n, sizeof(u->n));
	g->hop[g->n] = x_alloc(hops + 1, sizeof(*u->hop));
	memcpy(g->hop[g->n++], u->hop, hops * sizeof(*u->hop));
	eject(s, unit);
	s->waiting--;
}

/* Puts them back to where they were. */
static void lower(struct shared_search *s, struct shared_group *g)
{
	for (int32_t k = 0; k < g->n; k++) {
		struct shared_unit *u = &s->units[g->unit[k]];

		if (u->n[u->pinned]) {
			eject(s, g->unit[k]);
			s->waiting--;
		}
	}
	for (int32_t k = 0; k < g->n; k++) {
		struct shared_unit *u = &s->units[g->unit[k]];

		memcpy(u->n, g->hops[k], sizeof(u->n));
		u->hop = x_grow(u->hop, (size_t)(u->n[0] + u->n[1]) + 1, sizeof(*u->hop));
		memcpy(u->hop, g->hop[k], (size_t)(u->n[0] + u->n[1]) * sizeof(*u->hop));
		put_unit(s, g->unit[k], u->pinned, true);
	}
}

/* Who holds some channel of a link of the first of the group; if none does, anyone. */
static int32_t neighbour(struct shared_search *s, const struct shared_group *g)
{
	if (g->n) {
		int32_t hops = g->hops[0][0] + g->hops[0][1];
		const struct rwa_hop *h = &g->hop[0][rng_below(&s->rng, (uint64_t)hops)];
		const struct shared_slot *x = slot_of(s, h->arc, h->fibre, (int32_t)rng_below(
			&s->rng, (uint64_t)s->channels));

		if (x->owner >= 0 || x->n) {
			return x->owner >= 0 ? x->owner
					     : x->backup[rng_below(&s->rng, (uint64_t)x->n)];
		}
	}
	return (int32_t)rng_below(&s->rng, (uint64_t)s->n_units);
}

/* A few pairs at a time are placed again where that takes no more slots than
 * before, and at first a few more. */
static void save_slots(struct shared_search *s, int64_t effort, const struct mesh_stop *stop)
{
	s->scale = 0;
	for (int64_t k = 0; k < effort && !(k % 16 == 0 && stop_now(stop));) {
		int32_t size = 1 + (int32_t)rng_below(&s->rng, GROUP);
		struct shared_group g = { 0 };
		int64_t most = s->held + WORSE * (effort - k) / effort;
		bool fits = true;

		for (int32_t i = 0; i < size; i++) {
			lift(s, &g, i ? neighbour(s, &g) :
					(int32_t)rng_below(&s->rng, (uint64_t)s->n_units));
		}
		for (int32_t i = 0; i < g.n && fits; i++) {
			struct shared_unit *u = &s->units[g.unit[i]];

			if (u->routes.n < MOST_ROUTES && rng_below(&s->rng, MORE_ROUTES) == 0) {
				find_routes(s, u, rng_below(&s->rng, 2));
			}
			fits = place(s, g.unit[i]) && s->held <= most;
		}
		if (!fits) {
			lower(s, &g);
		}
		for (int32_t i = 0; i < g.n; i++) {
			free(g.hop[i]);
		}
		k += size;
	}
}

/* ---- from mesh to search and back ---- */

/* Slots for so many channels; what is placed goes on. */
static int set_width(struct shared_search *s, int32_t width, struct err *err)
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
		put_unit(s, i, 0, true);
	}
	return 0;
}

/* Arcs cost more where the prices say so. */
static void set_base(struct shared_search *s, const int64_t *prices)
{
	double sum = 0;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		sum += (double)prices[e];
	}
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->base[e] = 1 + (sum > 0 ? (double)prices[e] * (double)s->m->arcs.n / sum : 0);
	}
}

/* Units of all demands; the first of each that `before` has stay where they are. */
static void make_units(struct shared_search *s, const struct rwa_assignment *before)
{
	size_t k = 0;
	int32_t n = 0;

	for (int32_t d = 0; d < (int32_t)s->m->demands.n; d++) {
		for (int32_t i = 0; i < s->m->demands.v[d].count; i++) {
			struct shared_unit *u = &s->units[n++];

			u->demand = d;
			u->penalty = 1;
			if (before && k < before->paths.n && before->paths.v[k].demand == d) {
				const struct rwa_path *p = &before->paths.v[k++];
				size_t bytes = (size_t)p->hops * sizeof(*u->hop);

				u->pinned = true;
				u->n[0] = p->hops;
				u->hop = x_alloc((size_t)p->hops + 1, sizeof(*u->hop));
				memcpy(u->hop, before->hops.v + p->first, bytes);
			}
			if (!u->pinned || s->m->demands.v[d].protect != RWA_UNPROTECTED) {
				s->wait[s->waiting++] = n - 1;
			}
		}
	}
}

static void search_init(struct shared_search *s, const struct rwa_assignment *before,
			const int64_t *prices, uint64_t seed)
{
	const struct rwa_mesh *m = s->m;
	int32_t links = 0;

	for (size_t d = 0; d < m->demands.n; d++) {
		s->n_units += m->demands.v[d].count;
	}
	mesh_paths_init(&s->paths, m);
	mesh_shut_init(m, &s->shut);
	rng_seed(&s->rng, seed);
	arrays_add(&s->arrays, s->base, m->arcs.n + 1);
	arrays_add(&s->arrays, s->price, m->arcs.n + 1);
	arrays_add(&s->arrays, s->at, m->arcs.n + 1);
	arrays_add(&s->arrays, s->links, m->arcs.n + 1);
	arrays_add(&s->arrays, s->units, s->n_units + 1);
	arrays_add(&s->arrays, s->wait, s->n_units + 1);
	for (size_t e = 0; e < m->arcs.n; e++) {
		s->at[e] = s->fibres;
		s->fibres += m->arcs.v[e].fibres;
		links = s->paths.link[e] >= links ? s->paths.link[e] + 1 : links;
	}
	set_base(s, prices);
	make_units(s, before);
	for (int32_t i = 0; i < s->n_units; i++) {
		for (int k = 0; k < FIRST_ROUTES; k++) {
			find_routes(s, &s->units[i], k % 2);
		}
	}
}

static void search_fini(struct shared_search *s)
{
	for (int64_t i = 0; i < s->fibres * s->width; i++) {
		free(s->slots[i].backup);
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		free(s->units[i].hop);
		vec_fini(&s->units[i].routes);
	}
	free(s->slots);
	vec_fini(&s->arcs);
	u64map_fini(&s->shut);
	mesh_paths_fini(&s->paths);
	arrays_fini(&s->arrays);
}

/* What is placed whole: of pairs the working lightpath, then the backup. */
static void take_answer(struct shared_search *s, struct rwa_mesh_result *res)
{
	struct rwa_assignment *a = &res->assignment;

	for (int32_t i = 0; i < s->n_units; i++) {
		const struct shared_unit *u = &s->units[i];
		int both = kind_of(s, i) != RWA_UNPROTECTED;

		for (int k = 0; k <= both && u->n[0] && (!both || u->n[1]); k++) {
			struct rwa_path p = { u->demand, u->n[k], (int64_t)a->hops.n };

			vec_push(&a->paths, p);
			for (int32_t h = 0; h < u->n[k]; h++) {
				struct rwa_hop hop = u->hop[(k ? u->n[0] : 0) + h];

				vec_push(&a->hops, hop);
				res->channels = hop.channel >= res->channels ? hop.channel + 1
									     : res->channels;
				res->working_slots += !k;
			}
		}
	}
	res->slots = s->held;
}

/* ---- bound ---- */

/* The mesh with its protected demands as single lightpaths, and (link >= 0) without that link and
 * without what is not protected. Borrows all but demands and blocks. */
static struct rwa_mesh scenario(const struct rwa_mesh *m, const int32_t *link_of, int32_t link)
{
	struct rwa_mesh out = *m;
	const struct rwa_mesh_demand *v = m->demands.v;

	memset(&out.demands, 0, sizeof(out.demands));
	memset(&out.blocks, 0, sizeof(out.blocks));
	for (size_t d = 0; d < m->demands.n; d++) {
		struct rwa_mesh_demand x = v[d];

		x.protect = x.protect == RWA_DEDICATED && link < 0 ? x.protect : RWA_UNPROTECTED;
		if (link < 0 || v[d].protect != RWA_UNPROTECTED) {
			vec_push(&out.demands, x);
		}
	}
	for (size_t b = 0; b < m->blocks.n; b++) {
		vec_push(&out.blocks, m->blocks.v[b]);
	}
	for (int32_t e = 0; e < (int32_t)m->arcs.n; e++) {
		struct rwa_mesh_block b = { e, RWA_MESH_ALL, RWA_MESH_ALL, false };

		if (link_of[e] == link) {
			vec_push(&out.blocks, b);
		}
	}
	return out;
}

/* What the prices of one scenario prove, with their check. */
static int bound_of(const struct rwa_mesh *m, int32_t link, const int32_t *link_of,
		    const struct mesh_stop *stop, struct rwa_certificate *c, struct err *err)
{
	struct rwa_mesh one = scenario(m, link_of, link);
	struct mesh_routes routes = { 0 };
	int rc = one.demands.n ? mesh_bound(&one, stop, c, &routes, err) : 0;

	if (rc == 0 && one.demands.n) {
		int32_t node;

		mesh_ends_bound(&one, &c->ends, &node);
		rc = rwa_certificate_check(&one, c, err);
		c->bound = c->ends > c->bound ? c->ends : c->bound;
	}
	mesh_routes_fini(&routes);
	vec_fini(&one.demands);
	vec_fini(&one.blocks);
	return rc;
}

/* The most of the whole and of each network without a link; WEFT_EINFEASIBLE names a demand that
 * has no route without one. */
static int find_bound(const struct rwa_mesh *m, const int32_t *link_of, int32_t links,
		      const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	int rc = bound_of(m, -1, link_of, stop, &res->certificate, err);

	res->bound = res->certificate.bound;
	res->proof = "flow prices";
	for (int32_t l = 0; l < links && rc == 0 &&
	     (int64_t)links * m->lightpaths <= MAX_BOUND_WORK; l++) {
		struct rwa_certificate c = { 0 };

		if ((rc = bound_of(m, l, link_of, stop, &c, err))) {
			err_wrap(err, "protected, with a link cut");
		} else if (c.bound > res->bound) {
			res->bound = c.bound;
			res->proof = "flow prices with a link cut";
		}
		rwa_certificate_fini(&c);
	}
	return rc;
}

/* ---- all of it ---- */

static int check_supported(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
			   struct err *err)
{
	const char *what = m->guard.between || m->guard.below || m->guard.above ? "guard channels" :
			   opt->pinned || opt->objective == RWA_ANY ? NULL :
			   opt->objective == RWA_MIN_MOVED ? "previous lightpaths" : "an objective";

	for (size_t v = 0; v < m->nodes.n && !what; v++) {
		const struct rwa_mesh_node *x = &m->nodes.v[v];

		what = x->convert ? "nodes that convert" :
		       x->add_limit != RWA_MESH_NO_LIMIT || x->drop_limit != RWA_MESH_NO_LIMIT ?
		       "limits to add and drop" : NULL;
	}
	return what ? err_set(err, WEFT_EUNSUPPORTED, "shared backups with %s: not supported", what)
		    : 0;
}

/* At more and more channels until all are placed, or in those given; then the fewest slots. */
static int search(struct shared_search *s, const struct rwa_mesh_options *opt,
		  const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	int64_t work = opt->work ? opt->work : 50 * s->m->lightpaths + 50000;
	int32_t stuck, width = opt->channels ? opt->channels : res->bound + res->bound / 2 + 2;
	int rc = set_width(s, width, err);

	for (s->channels = opt->channels ? opt->channels : res->bound; rc == 0; s->channels++) {
		if (s->channels > s->width && (rc = set_width(s, 2 * s->width, err))) {
			break;
		}
		run(s, opt->channels ? work : work / STEPS, stop, &stuck);
		if (s->waiting == 0 || opt->channels || stuck == s->waiting) {
			break;
		}
	}
	if (rc == 0) {
		save_slots(s, !s->n_units ? 0 : opt->pinned ? work / PINNED_SAVE : work, stop);
		take_answer(s, res);
	}
	return rc;
}

/* One search from the start; *res keeps the better of what it has and what is found. */
static int search_once(const struct rwa_mesh *m, const struct rwa_mesh_options *opt, int try,
		       const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	struct shared_search s = { .m = m, .pinned = opt->pinned };
	int64_t *none = x_new(m->arcs.n + 1, sizeof(*none));
	struct rwa_mesh_result one = { .bound = res->bound };
	int rc;

	search_init(&s, opt->pinned ? opt->before : NULL,
		    opt->pinned ? none : res->certificate.prices, opt->seed + 100 * (uint64_t)try);
	free(none);
	rc = search(&s, opt, stop, &one, err);
	search_fini(&s);
	if (rc == 0 && (try == 0 || one.assignment.paths.n > res->assignment.paths.n ||
			(one.assignment.paths.n == res->assignment.paths.n &&
			 (one.channels < res->channels ||
			  (one.channels == res->channels && one.slots < res->slots))))) {
		rwa_assignment_fini(&res->assignment);
		res->assignment = one.assignment;
		res->channels = one.channels;
		res->working_slots = one.working_slots;
		res->slots = one.slots;
		return 0;
	}
	rwa_assignment_fini(&one.assignment);
	return rc;
}

int mesh_solve_shared(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		      struct rwa_mesh_result *res, struct err *err)
{
	struct mesh_stop stop = { .deadline = opt->deadline, .cancel = opt->cancel };
	int32_t links = 0, *link_of = x_new(m->arcs.n + 1, sizeof(*link_of));
	int64_t most = opt->pinned || opt->work ? 1 : TRIED / (m->lightpaths + 1);
	int tries = most < TRIES ? (int)most : TRIES, rc = check_supported(m, opt, err);

	mesh_links(m, link_of);
	for (size_t e = 0; e < m->arcs.n; e++) {
		links = link_of[e] >= links ? link_of[e] + 1 : links;
	}
	res->method = "pairs that share backups";
	if (rc == 0 && !opt->pinned) {
		rc = find_bound(m, link_of, links, &stop, res, err);
	}
	for (int k = 0; rc == 0 && (k == 0 || (k < tries && !stop_now(&stop))); k++) {
		rc = search_once(m, opt, k, &stop, res, err);
	}
	res->lightpaths_bound = m->lightpaths;
	res->lightpaths = (int64_t)res->assignment.paths.n;
	if (rc == 0) {
		rc = rwa_mesh_check(m, &res->assignment, res->channels, !opt->channels, err);
	}
	free(link_of);
	return rc;
}
