/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders of change against all orders: on rings of three or four nodes every
 * sequence of moves, those of lightpaths that stay and of detours over several routes
 * included, is tried, so that the fewest temporary routes without an interruption are known.
 * How often the planner needs more is counted, and limited.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "rwa/reconfigure/reconfigure.h"
#include "tests/unit/world.h"

#define LIGHTPATHS 6	/* each in three bits of a state */
#define PLACES 8
#define OLD 0
#define NEW 1		/* and from 2 on spare routes */
#define NO_ORDER 100
#define CHANGES ALL_OR_SOME(500, 60)

/* Slots of each place of each lightpath, as bits arc * channels + channel. */
struct world {
	int n, channels, lightpaths, places;
	uint32_t start;		/* the state: those that are kept have arrived */
	uint32_t mask[LIGHTPATHS][PLACES];
	bool both[LIGHTPATHS];	/* in both assignments */
	uint8_t fewest[1 << (3 * LIGHTPATHS)];	/* temporary routes to a state, + 1 */
};

/* The route round the ring: arc i is i -> i + 1, arc n + i is i + 1 -> i. */
static int32_t route(int n, int32_t src, int32_t dst, bool ccw, int32_t channel,
		     struct rwa_hop *hop)
{
	int32_t k = 0;

	for (int32_t v = src; v != dst; k++) {
		int32_t next = (v + (ccw ? n - 1 : 1)) % n;

		hop[k] = (struct rwa_hop){ ccw ? n + next : v, 0, channel };
		v = next;
	}
	return k;
}

static uint32_t mask_of(const struct world *w, const struct rwa_hop *hop, int32_t hops)
{
	uint32_t mask = 0;

	for (int32_t k = 0; k < hops; k++) {
		mask |= 1U << (hop[k].arc * w->channels + hop[k].channel);
	}
	return mask;
}

static uint32_t mask_at(const struct world *w, uint32_t state, int i)
{
	return w->mask[i][state >> (3 * i) & 7];
}

/* Goes to a state with so many temporary routes; true when that is news. */
static bool reach(struct world *w, uint32_t state, uint8_t fewest)
{
	if (w->fewest[state] && w->fewest[state] <= fewest) {
		return false;
	}
	w->fewest[state] = fewest;
	return true;
}

/* All single moves from a state: to the new route, or to a spare one. */
static bool expand(struct world *w, uint32_t state)
{
	uint32_t taken = 0;
	bool news = false;

	for (int i = 0; i < w->lightpaths; i++) {
		taken |= mask_at(w, state, i);
	}
	for (int i = 0; i < w->lightpaths; i++) {
		uint32_t at = state >> (3 * i) & 7, rest = state & ~(7U << (3 * i));

		for (uint32_t to = NEW; to < (uint32_t)w->places; to++) {
			bool spare = to != NEW;

			if (to != at && !(w->mask[i][to] & taken) &&
			    (w->both[i] || (at == OLD && !spare))) {
				news |= reach(w, rest | to << (3 * i),
					      (uint8_t)(w->fewest[state] + spare));
			}
		}
	}
	return news;
}

/* Fewest temporary routes of an order without interruption, or NO_ORDER. */
static int try_all_orders(struct world *w)
{
	uint32_t states = 1U << (3 * w->lightpaths), end = 0;

	memset(w->fewest, 0, states);
	for (int i = 0; i < w->lightpaths; i++) {
		end |= (uint32_t)NEW << (3 * i);
	}
	w->fewest[w->start] = 1;
	for (bool news = true; news;) {
		news = false;
		for (uint32_t s = 0; s < states; s++) {
			news |= w->fewest[s] && expand(w, s);
		}
	}
	return w->fewest[end] ? w->fewest[end] - 1 : NO_ORDER;
}

/* Each demand somewhere, if that is free. */
static void draw(const struct rwa_mesh *m, const struct world *w, struct rng *rng,
		 struct rwa_assignment *a)
{
	*a = (struct rwa_assignment){ 0 };
	for (int32_t d = 0; d < (int32_t)m->demands.n; d++) {
		for (int tries = 0; tries < 6; tries++) {
			struct rwa_hop hop[4];
			int32_t hops = route(w->n, m->demands.v[d].src, m->demands.v[d].dst,
					     rng_below(rng, 2) != 0,
					     (int32_t)rng_below(rng, (uint64_t)w->channels), hop);
			struct rwa_path p = { d, hops, (int64_t)a->hops.n };

			vec_push(&a->paths, p);
			for (int32_t k = 0; k < hops; k++) {
				vec_push(&a->hops, hop[k]);
			}
			if (!rwa_mesh_check(m, a, w->channels, false, NULL)) {
				break;
			}
			a->paths.n--;
			a->hops.n -= (size_t)hops;
		}
	}
}

/* The places of lightpath i, of each demand one. */
static void place(struct world *w, const struct rwa_mesh *m, const struct rwa_change *c,
		  const struct rwa_assignment *from, const struct rwa_assignment *to, int i)
{
	const struct rwa_changed *l = &c->lightpaths.v[i];
	const struct rwa_path *old = l->old_path < 0 ? NULL : &from->paths.v[l->old_path];
	const struct rwa_path *new = l->new_path < 0 ? NULL : &to->paths.v[l->new_path];
	const struct rwa_mesh_demand *d = &m->demands.v[old ? old->demand : new->demand];

	w->both[i] = old && new;
	w->mask[i][OLD] = old ? mask_of(w, from->hops.v + old->first, old->hops) : 0;
	w->mask[i][NEW] = new ? mask_of(w, to->hops.v + new->first, new->hops) : 0;
	for (int k = 0; k < 2 * w->channels; k++) {
		struct rwa_hop hop[4];
		int32_t hops = route(w->n, d->src, d->dst, k % 2, k / 2, hop);

		w->mask[i][2 + k] = mask_of(w, hop, hops);
	}
}

/* One random change as planned, and its world. */
static void compare(struct rng *rng, struct world *w, struct rwa_change *c)
{
	struct rwa_assignment from, to;
	struct rwa_change_options opt;
	struct rwa_mesh *m;

	w->n = 3 + (int)rng_below(rng, 2);
	w->channels = 2 + (int)rng_below(rng, 2);
	w->places = 2 + 2 * w->channels;
	opt = (struct rwa_change_options){ .channels = w->channels };
	assert_int_equal(rwa_mesh_new_ring(w->n, 1, &m, NULL), 0);
	for (int k = 0; k < LIGHTPATHS; k++) {
		struct rwa_mesh_demand d = { .src = (int32_t)rng_below(rng, (uint64_t)w->n),
					     .count = 1 };

		d.dst = (d.src + 1 + (int32_t)rng_below(rng, (uint64_t)w->n - 1)) % w->n;
		assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
	}
	draw(m, w, rng, &from);
	draw(m, w, rng, &to);
	assert_int_equal(rwa_change_plan(m, &from, &to, &opt, c, NULL), 0);
	w->lightpaths = (int)c->lightpaths.n;
	w->start = 0;
	for (int i = 0; i < w->lightpaths; i++) {
		place(w, m, c, &from, &to, i);
		w->start |= c->lightpaths.v[i].kept ? (uint32_t)NEW << (3 * i) : 0;
	}
	rwa_assignment_fini(&from);
	rwa_assignment_fini(&to);
	rwa_mesh_free(m);
}

static void cuts_and_temporary_routes_against_all_orders(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int hard = 0, cut = 0, needless = 0, more = 0;
	struct rng rng;

	(void)state;
	assert_non_null(w);
	rng_seed(&rng, 11);
	for (int k = 0; k < CHANGES; k++) {
		struct rwa_change c;
		int fewest;

		compare(&rng, w, &c);
		fewest = try_all_orders(w);
		hard += fewest > 0;
		cut += c.cuts.n > 0;
		needless += c.cuts.n > 0 && fewest < NO_ORDER;
		more += c.cuts.n == 0 && c.rerouted > fewest;
		/* No order is better than the best. */
		assert_true(c.cuts.n > 0 || c.rerouted >= fewest);
		rwa_change_fini(&c);
	}
	free(w);
	print_message("# of %d: %d do not go by moves alone; interrupted %d, needlessly %d; more "
		      "temporary routes than needed %d\n", CHANGES, hard, cut, needless, more);
	assert_true(hard > CHANGES / 10);
	assert_true(needless * 100 <= hard);
	assert_true(more * ALL_OR_SOME(7, 3) <= hard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_and_temporary_routes_against_all_orders),
	};

	return cmocka_run_group_tests_name("reconfigure/orders", tests, NULL, NULL);
}
