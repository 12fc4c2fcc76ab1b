/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of pairs, and their search for slots. A pair that waits gets the cheapest of the ways
 * known for it; who is in the way is ejected and waits in its turn, at a penalty that grows. In the
 * end a few pairs at a time are lifted and placed again, where that takes fewer slots.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/shared/shared.h"

#define MOST_ROUTES 40
#define MORE_ROUTES 4		/* one more in so many that eject someone */
#define FAR 1e6			/* price of a link that a backup is to avoid */
#define PENALTY_MAX (1 << 12)
#define WORSE 3			/* slots that it may take more, at first */
#define GROUP 6			/* pairs that are placed again together */

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
	shared_mark(s, arcs, n[0]);
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		s->price[e] += s->links[w->link[e]] == s->stamp ? FAR : 0;
	}
	if (mesh_path_within(w, s->price, d->src, d->dst, &cost) || cost >= FAR) {
		return false;
	}
	n[1] = take_route(w, d->src, d->dst, arcs + n[0]);
	return true;
}

void shared_find_routes(struct shared_search *s, struct shared_unit *u, bool pair)
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
	struct shared_slot *x = shared_slot_of(s, h->arc, h->fibre, h->channel);

	if (x->owner >= 0) {
		shared_eject(s, x->owner);
	}
	for (int32_t k = x->n; k-- > 0;) {
		if (!shares || shared_meets(s, x->backup[k])) {
			shared_eject(s, x->backup[k]);
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
		shared_hop_cost(s, h->arc, channel, shares, &h->fibre);
	}
	for (int32_t i = 0; i < n; i++) {
		clear_hop(s, &u->hop[from + i], shares);
	}
	u->n[backup] = n;
}

/* The cheapest of the known ways of a unit, and its channels; SHARED_NEVER: none. */
static int64_t choose(struct shared_search *s, struct shared_unit *u, size_t *which,
		      int32_t channel[2])
{
	bool shares = s->m->demands.v[u->demand].protect == RWA_SHARED;
	int64_t best = SHARED_NEVER;

	for (size_t k = 0; k < u->routes.n; k++) {
		const struct shared_routes *r = &u->routes.v[k];
		const int32_t *arcs = s->arcs.v + r->first;
		int32_t c[2] = { u->pinned && u->n[0] ? u->hop[0].channel % s->channels : 0, 0 };
		int64_t cost = 0;

		shared_mark(s, arcs, r->n[0]);
		if (!u->pinned) {
			cost = shared_route_cost(s, u, arcs, r->n[0], false, best, &c[0]);
		}
		/* A pair on one channel leaves others whole. */
		c[1] = c[0];
		if (cost < best && r->n[1]) {
			cost += shared_route_cost(s, u, arcs + r->n[0], r->n[1], shares,
						  best - cost, &c[1]);
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

	for (int k = 0; choose(s, u, &which, channel) >= SHARED_NEVER; k++) {
		if (k == MOST_ROUTES || u->routes.n >= MOST_ROUTES) {
			return false;
		}
		shared_find_routes(s, u, k % 2);
	}
	r = &u->routes.v[which];
	shared_mark(s, s->arcs.v + r->first, r->n[0]);
	if (!u->pinned) {
		take_hops(s, u, s->arcs.v + r->first, r->n[0], channel[0], false);
	}
	take_hops(s, u, s->arcs.v + r->first + r->n[0], r->n[1], channel[1], true);
	shared_put(s, unit, u->pinned, true);
	if (s->waiting > before) {
		u->penalty += u->penalty < PENALTY_MAX;
		if (u->routes.n < MOST_ROUTES && rng_below(&s->rng, MORE_ROUTES) == 0) {
			shared_find_routes(s, u, rng_below(&s->rng, 2));
		}
	}
	return true;
}

void shared_run(struct shared_search *s, int64_t effort, const struct mesh_stop *stop,
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
	shared_eject(s, unit);
	s->waiting--;
}

/* Puts them back to where they were. */
static void lower(struct shared_search *s, struct shared_group *g)
{
	for (int32_t k = 0; k < g->n; k++) {
		struct shared_unit *u = &s->units[g->unit[k]];

		if (u->n[u->pinned]) {
			shared_eject(s, g->unit[k]);
			s->waiting--;
		}
	}
	for (int32_t k = 0; k < g->n; k++) {
		struct shared_unit *u = &s->units[g->unit[k]];

		memcpy(u->n, g->hops[k], sizeof(u->n));
		u->hop = x_grow(u->hop, (size_t)(u->n[0] + u->n[1]) + 1, sizeof(*u->hop));
		memcpy(u->hop, g->hop[k], (size_t)(u->n[0] + u->n[1]) * sizeof(*u->hop));
		shared_put(s, g->unit[k], u->pinned, true);
	}
}

/* Who holds some channel of a link of the first of the group; if none does, anyone. */
static int32_t neighbour(struct shared_search *s, const struct shared_group *g)
{
	if (g->n) {
		int32_t hops = g->hops[0][0] + g->hops[0][1];
		const struct rwa_hop *h = &g->hop[0][rng_below(&s->rng, (uint64_t)hops)];
		int32_t channel = (int32_t)rng_below(&s->rng, (uint64_t)s->channels);
		const struct shared_slot *x = shared_slot_of(s, h->arc, h->fibre, channel);

		if (x->owner >= 0 || x->n) {
			return x->owner >= 0 ? x->owner
					     : x->backup[rng_below(&s->rng, (uint64_t)x->n)];
		}
	}
	return (int32_t)rng_below(&s->rng, (uint64_t)s->n_units);
}

void shared_save_slots(struct shared_search *s, int64_t effort, const struct mesh_stop *stop)
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
				shared_find_routes(s, u, rng_below(&s->rng, 2));
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
