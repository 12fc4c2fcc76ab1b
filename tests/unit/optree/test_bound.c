/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of rings against what tries to beat them: on rings of three and
 * four nodes the fastest plan of all there are, found by going through what
 * nodes can hold (Dijkstra over sets), with every way to lay lightpaths round
 * the ring in a step and to choose what each carries; on larger ones the
 * spread of an item by all ways to reach nodes, and all that weft can plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "optree/private.h"
#include "tests/unit/optree/common.h"

/* ---- every plan of a tiny ring ---- */

/* Node v holds item i when bit v * n + i is set. */
#define STATES (1 << 16)

struct tiny {
	int n, lanes;		/* channels of both directions */
	int64_t alpha, item;	/* ns */
	int64_t dist[STATES];
	bool done[STATES];
	int32_t adds[2][STATES];	/* what a lane each way can add */
	int n_adds[2];
	bool seen[STATES];
};

static unsigned held(const struct tiny *t, unsigned state, int v)
{
	return state >> (v * t->n) & ((1u << t->n) - 1);
}

/* All that the arcs from the cut node k of `cut` on can add, `most` items each. */
static void lay(struct tiny *t, unsigned state, const int *cut, int cuts, int k, int most,
		unsigned added, int dir)
{
	int from = cut[k % cuts], to = cut[(k + 1) % cuts];
	unsigned news;

	if (k == cuts) {
		if (!t->seen[added]) {
			t->seen[added] = true;
			t->adds[dir][t->n_adds[dir]++] = (int32_t)added;
		}
		return;
	}
	if (dir) {
		int swap = from;

		from = to;
		to = swap;
	}
	news = held(t, state, from) & ~held(t, state, to);
	for (unsigned some = news;; some = (some - 1) & news) {
		int count = __builtin_popcount(some);

		if (count == most || (count < most && some == news)) {
			lay(t, state, cut, cuts, k + 1, most, added | some << (to * t->n), dir);
		}
		if (!some) {
			break;
		}
	}
}

static void lanes_of(struct tiny *t, unsigned state, int most, int dir)
{
	memset(t->seen, 0, sizeof(t->seen));
	t->n_adds[dir] = 0;
	for (unsigned set = 0; set < 1u << t->n; set++) {
		int cut[8], cuts = 0;

		for (int v = 0; v < t->n; v++) {
			if (set >> v & 1) {
				cut[cuts++] = v;
			}
		}
		if (cuts > 1) {
			lay(t, state, cut, cuts, 0, most, 0, dir);
		}
	}
}

static void relax(struct tiny *t, unsigned state, int lane, unsigned added, int64_t at)
{
	if (lane == t->lanes) {
		unsigned next = state | added;

		t->dist[next] = at < t->dist[next] ? at : t->dist[next];
		return;
	}
	for (int i = 0; i < t->n_adds[lane % 2]; i++) {
		relax(t, state, lane + 1, added | (unsigned)t->adds[lane % 2][i], at);
	}
}

/* The least time from what nodes hold at first to all of it everywhere. */
static int64_t fastest(struct tiny *t, unsigned first)
{
	int states = 1 << (t->n * t->n);

	memset(t->done, 0, sizeof(t->done));
	for (int s = 0; s < states; s++) {
		t->dist[s] = INT64_MAX;
	}
	t->dist[first] = 0;
	for (;;) {
		int best = -1;

		for (int s = 0; s < states; s++) {
			if (!t->done[s] && t->dist[s] < INT64_MAX &&
			    (best < 0 || t->dist[s] < t->dist[best])) {
				best = s;
			}
		}
		assert_true(best >= 0);
		if (best == states - 1) {
			return t->dist[best];
		}
		t->done[best] = true;
		for (int most = 1; most < t->n; most++) {
			lanes_of(t, (unsigned)best, most, 0);
			lanes_of(t, (unsigned)best, most, 1);
			relax(t, (unsigned)best, 0, 0,
			      t->dist[best] + t->alpha + most * t->item);
		}
	}
}

static int64_t bound_of(const struct optree_params *p, enum coll_kind kind)
{
	struct ring_bound b;
	struct err err = { 0 };

	assert_int_equal(ring_bound(p, kind, 0, &b, &err), 0);
	return b.ns;
}

static void no_plan_of_a_tiny_ring_is_faster(void **state)
{
	static const int cases[][3] = { { 3, 1, 3 }, { 3, 2, 3 }, { 4, 1, 2 } };
	static const int64_t alphas[] = { 500, 4000, 100 };
	struct tiny *t = calloc(1, sizeof(*t));

	(void)state;
	assert_non_null(t);
	for (int c = 0; c < 3; c++) {
		int n = cases[c][0], met = 0;

		for (int a = 0; a < cases[c][2]; a++) {
			struct optree_params p = params(n, cases[c][1], 0);
			unsigned each = 0;
			int64_t best;

			p.alpha_ns = alphas[a];
			p.shard_bytes = 5000;	/* 1 us */
			t->n = n;
			t->lanes = 2 * cases[c][1];
			t->alpha = p.alpha_ns;
			t->item = 1000;
			for (int v = 0; v < n; v++) {
				each |= 1u << (v * n + v);
			}
			best = fastest(t, each);
			assert_true(bound_of(&p, COLL_ALLGATHER) <= best);
			met += bound_of(&p, COLL_ALLGATHER) == best;
			best = fastest(t, (1u << n) - 1);
			assert_true(bound_of(&p, COLL_BROADCAST) <= best);
		}
		/* Items are not cut here, so only where that is no help. */
		assert_true(met > 0 || c > 0);
	}
	free(t);
}

/* Links from v to the nearest member of the set, around a ring of n. */
static int nearest(int n, unsigned set, int v)
{
	int hops = 0;

	while (!(set >> ((v + hops) % n) & 1) &&
	       !(set >> ((v - hops + n) % n) & 1)) {
		hops++;
	}
	return hops;
}

/* Least links to bring an item from `set` to all n nodes in some rounds. */
static int min_links(int n, unsigned set, int rounds)
{
	unsigned all = (1u << n) - 1, rest = all & ~set;
	int best = 1 << 20;

	if (!rest || !rounds) {
		return rest ? best : 0;
	}
	for (unsigned add = rest; add; add = (add - 1) & rest) {
		int links = 0, after;

		for (int v = 0; v < n; v++) {
			links += add >> v & 1 ? nearest(n, set, v) : 0;
		}
		after = min_links(n, set | add, rounds - 1);
		best = links + after < best ? links + after : best;
	}
	return best;
}

/* With so many channels that one round can do all of it. */
static void spreads_are_the_cheapest(void **state)
{
	static const int64_t alphas[] = { 0, 200, 900, 2500, 10000 };

	(void)state;
	for (int n = 2; n <= 8; n++) {
		int links[9];

		for (int r = 1; r <= n; r++) {
			links[r] = r <= 4 ? min_links(n, 1, r) : n - 1;
		}
		for (int i = 0; i < 5; i++) {
			struct optree_params p = params(n, 64, 0);
			int64_t best = INT64_MAX;

			p.alpha_ns = alphas[i];
			p.shard_bytes = 5000 * 64;	/* 64 us */
			for (int r = 1; r <= n; r++) {
				int64_t t = r * alphas[i] + links[r] * 500;

				best = t < best ? t : best;
			}
			assert_int_equal(bound_of(&p, COLL_ALLGATHER), best);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_plan_of_a_tiny_ring_is_faster),
		cmocka_unit_test(spreads_are_the_cheapest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
