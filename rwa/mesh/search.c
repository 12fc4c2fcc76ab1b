/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guided ejection search at a fixed number of channels.
 *
 * A partial assignment without clashes is kept at all times. A lightpath that
 * has no place is routed on the cheapest path of any channel, where a taken
 * slot costs the penalty of the lightpath that holds it; whoever is in the
 * way is ejected and waits in turn. The penalty of a lightpath grows whenever
 * it finds no free path, so that what is hard to place stays once placed.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/order.h"
#include "rwa/mesh/private.h"

#define CALM_LEAST 5000		/* without progress, before a new scale */
#define PENALTY_MAX (1 << 12)
#define TABU_LEAST 10
#define TABU_MORE 40
#define TWO_FOR_ONE 500

/* Writes an owner to all slots of a unit. */
void search_put_unit(struct mesh_search *s, int32_t unit, int32_t owner)
{
	const struct search_unit *u = &s->units[unit];
	int32_t toll = owner == SLOT_FREE ? 0 : unit_toll(s, u);

	for (int32_t i = 0; i < u->hops; i++) {
		search_set_slot(s, &u->hop[i], owner, toll);
	}
}

/* Gives back a placed unit's slots; it waits from now on. */
static void eject(struct mesh_search *s, int32_t unit)
{
	search_put_unit(s, unit, SLOT_FREE);
	s->whole -= pair_share(s, unit);
	s->units[unit].hops = 0;
	s->wait[s->waiting++] = unit;
}

/* The first slots of a hop's guard channels and after them. */
static int32_t *guarded(const struct mesh_search *s, const struct rwa_hop *h, int32_t **end)
{
	int32_t *slot = slot_at(s, h->arc, h->fibre, 0);
	int32_t reach = s->m->guard.between;

	if (s->m->arcs.v[h->arc].is_single) {
		*end = slot + 1;
		return slot;
	}
	*end = slot + (h->channel + reach < s->channels ? h->channel + reach
							: s->channels - 1) + 1;
	return slot + (h->channel > reach ? h->channel - reach : 0);
}

/* Ejects the partner when both are on one link, and remembers the link. */
static bool eject_partner(struct mesh_search *s, int32_t unit, int32_t hops)
{
	const struct search_unit *u = &s->units[unit];
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
static void occupy(struct mesh_search *s, int32_t unit)
{
	struct search_unit *u = &s->units[unit];
	int32_t hops = u->hops, *end;
	bool ejected;

	/* Not placed yet: an ejected partner must not count it. */
	u->hops = 0;
	ejected = eject_partner(s, unit, hops);
	for (int32_t i = 0; i < hops; i++) {
		for (int32_t *at = guarded(s, &u->hop[i], &end); at < end; at++) {
			if (*at >= 0) {
				s->units[*at].tabu = s->round + TABU_LEAST +
					(int64_t)rng_below(&s->rng, TABU_MORE);
				eject(s, *at);
				ejected = true;
			}
		}
	}
	u->hops = hops;
	if (ejected && u->penalty < PENALTY_MAX) {
		u->penalty++;
	}
	search_put_unit(s, unit, unit);
	s->whole += pair_share(s, unit);
}

/* True when a lightpath that changes its channel comes too near to itself. */
static bool meets_itself(const struct mesh_search *s, const struct search_unit *u)
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

/* Base cost of a unit's path, penalties left out. */
static int32_t path_cost(const struct mesh_search *s, const struct search_unit *u)
{
	int32_t cost = 0;

	for (int32_t i = 0; i < u->hops; i++) {
		cost += s->cost[u->hop[i].arc];
	}
	return cost;
}

/* True once everything was tried, when not all fit. */
static bool is_full(const struct mesh_search *s)
{
	return s->fit && s->filled > s->n_units;
}

/* When not all fit, one may be ejected for one, not for a while after it was
 * ejected itself, and now and then two. */
static bool is_worth(struct mesh_search *s, int32_t unit)
{
	const struct search_unit *u = &s->units[unit];
	int32_t n = 0, last = SLOT_FREE, *end;

	if (!s->fit && !search_is_filling(s)) {
		return true;
	}
	for (int32_t i = 0; i < u->hops; i++) {
		for (int32_t *at = guarded(s, &u->hop[i], &end); at < end; at++) {
			n += *at >= 0 && *at != last;
			last = *at >= 0 ? *at : last;
		}
	}
	if (n == 0 || !is_full(s) || u->tabu > s->round) {
		return n == 0;
	}
	if (n == 1) {
		return path_cost(s, u) <= path_cost(s, &s->units[last]) +
			(int32_t)rng_below(&s->rng, (uint64_t)s->slack);
	}
	return n == 2 && rng_below(&s->rng, TWO_FOR_ONE) == 0;
}

enum outcome { PLACED, NOT_WORTH_IT, NOWHERE };

/* Finds the cheapest path of a unit and takes it, ejecting whoever is in
 * the way. When no path leads there or it is not worth it, nothing changes. */
static enum outcome place(struct mesh_search *s, int32_t unit)
{
	if (!search_find_path(s, unit)) {
		return NOWHERE;
	}
	if (!meets_itself(s, &s->units[unit]) && is_worth(s, unit)) {
		occupy(s, unit);
		return PLACED;
	}
	s->units[unit].hops = 0;
	return NOT_WORTH_IT;
}

/* Copies what is placed to s->best, of pairs only whole ones. */
static void remember(struct mesh_search *s)
{
	s->max = s->whole;
	s->best.paths.n = 0;
	s->best.hops.n = 0;
	for (int32_t i = 0; i < s->n_units; i++) {
		const struct search_unit *u = &s->units[i];
		struct rwa_path p = { u->demand, u->hops,
				      (int64_t)s->best.hops.n };

		if (!u->hops || (u->partner >= 0 && !is_placed(s, u->partner))) {
			continue;
		}
		vec_push(&s->best.paths, p);
		vec_reserve(&s->best.hops, (size_t)u->hops);
		memcpy(s->best.hops.v + s->best.hops.n, u->hop, (size_t)u->hops * sizeof(*u->hop));
		s->best.hops.n += (size_t)u->hops;
	}
}

/*
 * What a taken slot costs beside the path itself. At first much, so that what
 * is free is filled; then little, so that paths stay short. Which little is
 * best differs, so that they take turns when nothing gets better.
 */
static void choose_scale(struct mesh_search *s)
{
	static const int32_t scales[] = { 4, 25, 2, 8 };
	static const int32_t slacks[] = { 4, 8, 2, 16 };

	if (++s->calm > CALM_LEAST + s->n_units) {
		s->calm = 0;
		s->scale_index = (s->scale_index + 1) % 4;
	}
	s->slack = slacks[s->scale_index] * COST_BASE;
	s->scale = s->fit || search_is_filling(s) ? SCALE_FILL : scales[s->scale_index];
}

/* Which of those that wait is next: the last while everything is tried for
 * the first time, else any that has not been found to be stuck. */
static int32_t pick(struct mesh_search *s)
{
	return search_is_filling(s) ? s->waiting - 1
			     : s->stuck + (int32_t)rng_below(&s->rng,
					(uint64_t)(s->waiting - s->stuck));
}

bool search_is_idle(const struct mesh_search *s)
{
	return s->waiting <= s->stuck;
}

int32_t search_waiting(const struct mesh_search *s)
{
	int32_t unit = s->waiting ? s->wait[0] : 0;

	for (int32_t i = 1; i < s->waiting; i++) {
		unit = s->units[s->wait[i]].penalty > s->units[unit].penalty ? s->wait[i] : unit;
	}
	return s->units[unit].demand;
}

static bool is_canceled(const struct mesh_stop *stop)
{
	return stop->cancel && *stop->cancel;
}

int64_t search_run(struct mesh_search *s, int64_t target, int64_t effort,
		   const struct mesh_stop *stop)
{
	for (int64_t k = 0; !search_is_idle(s) && s->max < target && k < effort; k++) {
		int32_t unit, at = pick(s);
		enum outcome outcome;

		/* Each is tried once, however little time there is. */
		if (k % 16 == 0 && stop_now(stop) && (!search_is_filling(s) || is_canceled(stop))) {
			break;
		}
		choose_scale(s);
		unit = s->wait[at];
		s->wait[at] = s->wait[--s->waiting];
		s->round++;
		outcome = search_go_home(s, unit) ? PLACED : place(s, unit);
		if (outcome != PLACED) {
			s->wait[s->waiting++] = s->wait[s->stuck];
			s->wait[s->stuck] = unit;
			s->stuck += outcome == NOWHERE || search_is_filling(s);
		}
		s->filled += search_is_filling(s);
		if (s->filled == s->n_units) {
			/* What found no free place gets another chance. */
			s->filled++;
			s->stuck = 0;
		}
		if (s->whole > s->max && (s->waiting == 0 || k % 64 == 0 || is_full(s))) {
			remember(s);
			s->calm = 0;
		}
	}
	if (s->whole > s->max) {
		remember(s);
	}
	return s->max;
}

/* By demand, halves of a pair next to each other as they were stored. */
ORDER_BY(by_demand, struct rwa_path, demand, first)

void search_best(const struct mesh_search *s, struct rwa_assignment *out)
{
	*out = (struct rwa_assignment){ 0 };
	vec_reserve(&out->paths, s->best.paths.n + 1);
	vec_reserve(&out->hops, s->best.hops.n + 1);
	out->paths.n = s->best.paths.n;
	out->hops.n = s->best.hops.n;
	if (out->paths.n) {
		memcpy(out->paths.v, s->best.paths.v, out->paths.n * sizeof(*out->paths.v));
		memcpy(out->hops.v, s->best.hops.v, out->hops.n * sizeof(*out->hops.v));
		qsort(out->paths.v, out->paths.n, sizeof(*out->paths.v), by_demand);
	}
}
