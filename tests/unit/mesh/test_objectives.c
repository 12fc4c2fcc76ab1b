/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives beside the channels: fewest moved lightpaths, least loss. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "rwa/mesh/mesh.h"

/* Duplex ring: arc i is i -> i+1, arc n+i is i+1 -> i. */
static struct rwa_mesh *ring(int n, struct rng *rng)
{
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new(n, &m, NULL), 0);
	for (int i = 0; i < 2 * n; i++) {
		struct rwa_mesh_arc a = { i % n, (i + 1) % n, 1,
					  rng ? (int)rng_below(rng, 100) : 0, false };

		if (i >= n) {
			a.src = (i + 1) % n;
			a.dst = i % n;
		}
		assert_int_equal(rwa_mesh_add_arc(m, &a, NULL), 0);
	}
	return m;
}

static void random_demands(struct rwa_mesh *m, int n, int count,
			   struct rng *rng)
{
	for (int k = 0; k < count; k++) {
		struct rwa_mesh_demand d = { .count = 1 };

		d.src = (int32_t)rng_below(rng, (uint64_t)n);
		d.dst = (d.src + 1 + (int32_t)rng_below(rng, (uint64_t)n - 1)) %
			n;
		assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
	}
}

/* The path of a demand round a ring of n, clockwise or not. Its hops. */
static int32_t route_round(const struct rwa_mesh *m, int n, int32_t demand,
			 bool ccw, int32_t channel, struct rwa_hop *hop)
{
	const struct rwa_mesh_demand *d = &m->demands.v[demand];
	int32_t k = 0;

	for (int32_t v = d->src; v != d->dst; k++) {
		int32_t next = (v + (ccw ? n - 1 : 1)) % n;

		hop[k] = (struct rwa_hop){ ccw ? n + next : v, 0, channel };
		v = next;
	}
	return k;
}

static void push_route(struct rwa_assignment *a, int32_t demand,
		     const struct rwa_hop *hop, int32_t hops)
{
	struct rwa_path p = { demand, hops, (int64_t)a->hops.n };

	vec_push(&a->paths, p);
	for (int32_t k = 0; k < hops; k++) {
		vec_push(&a->hops, hop[k]);
	}
}

/* Some of the demands, wherever they fit in `channels`. */
static void random_before(const struct rwa_mesh *m, int n, int channels,
			  struct rng *rng, struct rwa_assignment *a)
{
	*a = (struct rwa_assignment){ 0 };
	for (int32_t d = 0; d < (int32_t)m->demands.n; d++) {
		struct rwa_hop hop[16];
		int32_t hops = route_round(m, n, d, rng_below(rng, 2) != 0,
					 (int32_t)rng_below(rng,
							(uint64_t)channels),
					 hop);

		push_route(a, d, hop, hops);
		if (rwa_mesh_check(m, a, channels, false, NULL)) {
			a->paths.n--;
			a->hops.n -= (size_t)hops;
		}
	}
}

static void solve(const struct rwa_mesh *m, enum rwa_objective objective,
		  const struct rwa_assignment *before, int channels,
		  struct rwa_mesh_result *res)
{
	struct rwa_mesh_options opt = { .objective = objective,
					.before = before, .seed = 1,
					.channels = channels };
	struct err err = { 0 };

	if (rwa_mesh_solve(m, &opt, res, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(rwa_mesh_check(m, &res->assignment, res->channels,
					!channels, NULL), 0);
}

/* Everything tried: each demand both paths on each channel. */
struct trial {
	const struct rwa_mesh *m;
	int n, channels;
	const struct rwa_assignment *before;
	bool taken[64];		/* arc * channels + channel */
	int moved, min;	/* moved so far, fewest of all */
	int64_t longest, shortest;
};

static const struct rwa_path *old_path(const struct trial *t, int32_t d)
{
	for (size_t i = 0; i < t->before->paths.n; i++) {
		if (t->before->paths.v[i].demand == d) {
			return &t->before->paths.v[i];
		}
	}
	return NULL;
}

static void try_all(struct trial *t, int32_t d)
{
	const struct rwa_path *old;
	int was_moved = t->moved;
	int64_t was_longest = t->longest;

	if (d == (int32_t)t->m->demands.n) {
		t->min = t->moved < t->min ? t->moved : t->min;
		t->shortest = t->longest < t->shortest ? t->longest
						       : t->shortest;
		return;
	}
	old = old_path(t, d);
	for (int k = 0; k < 2 * t->channels; k++) {
		struct rwa_hop hop[16];
		int32_t hops = route_round(t->m, t->n, d, k % 2, k / 2, hop), h;
		int64_t loss = rwa_mesh_loss_mdb(t->m, hop, hops);
		bool same = old && old->hops == hops &&
			    memcmp(t->before->hops.v + old->first, hop,
				   (size_t)hops * sizeof(*hop)) == 0;

		for (h = 0; h < hops; h++) {
			bool *slot = &t->taken[hop[h].arc * t->channels +
					       hop[h].channel];

			if (*slot) {
				break;
			}
			*slot = true;
		}
		if (h == hops) {
			t->moved = was_moved + (old && !same);
			t->longest = loss > was_longest ? loss : was_longest;
			try_all(t, d + 1);
		}
		while (h--) {
			t->taken[hop[h].arc * t->channels + hop[h].channel] =
				false;
		}
	}
	t->moved = was_moved;
	t->longest = was_longest;
}

static void fewest_moved_against_everything_tried(void **state)
{
	struct rng rng;
	int fewest = 0, tight = 0, moved = 0;

	(void)state;
	rng_seed(&rng, 8);
	for (int k = 0; k < 150; k++) {
		int n = 3 + (int)rng_below(&rng, 3);
		struct rwa_mesh *m = ring(n, NULL);
		struct rwa_assignment before;
		struct rwa_mesh_result res;
		struct trial t = { .m = m, .n = n, .min = 1000,
				   .before = &before };

		random_demands(m, n, 3 + (int)rng_below(&rng, 4), &rng);
		random_before(m, n, 3, &rng, &before);
		solve(m, RWA_MIN_MOVED, &before, 0, &res);
		t.channels = res.channels;
		try_all(&t, 0);
		assert_true(res.moved_bound <= t.min);
		assert_true(t.min <= res.moved);
		fewest += res.moved == t.min;
		tight += res.moved_bound == t.min;
		moved += t.min > 0;
		rwa_mesh_result_fini(&res);
		rwa_assignment_fini(&before);
		rwa_mesh_free(m);
	}
	print_message("# of 150: fewest moved in %d, bound met in %d, "
		      "something had to move in %d\n", fewest, tight, moved);
	assert_true(fewest >= 140);
	assert_true(tight >= 75);
	assert_true(moved >= 50);
}

static void min_loss_against_everything_tried(void **state)
{
	struct rng rng;
	int min = 0;

	(void)state;
	rng_seed(&rng, 9);
	for (int k = 0; k < 60; k++) {
		int n = 3 + (int)rng_below(&rng, 3);
		struct rwa_mesh *m = ring(n, &rng);
		struct rwa_assignment none = { 0 };
		struct rwa_mesh_result res;
		struct trial t = { .m = m, .n = n, .min = 1000,
				   .shortest = INT64_MAX, .before = &none };

		random_demands(m, n, 3 + (int)rng_below(&rng, 4), &rng);
		solve(m, RWA_MIN_MAX_LOSS, NULL, 0, &res);
		t.channels = res.channels;
		try_all(&t, 0);
		assert_true(res.loss_bound_mdb <= t.shortest);
		assert_true(t.shortest <= res.loss_mdb);
		min += res.loss_mdb == t.shortest;
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
	}
	print_message("# of 60: least loss in %d\n", min);
	assert_true(min >= 57);
}

/* Leaves out the last one when its partner is missing. */
static void cut_pairs(const struct rwa_mesh *m, struct rwa_assignment *a)
{
	size_t first = a->paths.n;
	int32_t d = a->paths.v[first - 1].demand;

	while (first && a->paths.v[first - 1].demand == d) {
		first--;
	}
	a->paths.n -= m->demands.v[d].protect && (a->paths.n - first) % 2;
}

/* What the answer says is what whoever plans the change will count, pairs as
 * pairs. */
static void moved_as_matched(const struct rwa_mesh *m, const struct rwa_assignment *before,
			     const struct rwa_mesh_result *res)
{
	struct rwa_matching match;
	int64_t moved = 0;

	rwa_mesh_match(m, before, &res->assignment, &match);
	for (size_t i = 0; i < match.n; i++) {
		const struct rwa_changed *c = &match.v[i];

		moved += c->old_path >= 0 && c->new_path >= 0 && !c->kept;
	}
	assert_int_equal(moved, res->moved);
	vec_fini(&match);
}

/* Where everything may stay, everything does, and what is new goes around. */
static void nothing_moves_without_need(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 13);
	for (int k = 0; k < 20; k++) {
		int n = 6 + (int)rng_below(&rng, 5);
		struct rwa_mesh *m = ring(n, NULL);
		struct rwa_mesh_result first, again;

		/* Later ones with pairs, then with guard channels. */
		random_demands(m, n, 4 * n, &rng);
		for (size_t d = 0; k >= 10 && d < m->demands.n; d += 3) {
			m->demands.v[d].protect = true;
			m->lightpaths++;
		}
		m->guard.between = k >= 15;
		solve(m, RWA_ANY, NULL, 0, &first);
		solve(m, RWA_MIN_MOVED, &first.assignment, first.channels,
		      &again);
		assert_int_equal(again.lightpaths, m->lightpaths);
		assert_int_equal(again.moved, 0);
		assert_int_equal(again.moved_bound, 0);
		rwa_mesh_result_fini(&again);
		/* A bound that is met is the answer, and no channels are given. */
		solve(m, RWA_MIN_MOVED, &first.assignment, 0, &again);
		assert_true(again.channels <= first.channels);
		assert_true(again.moved == 0 || again.channels < first.channels);
		moved_as_matched(m, &first.assignment, &again);
		rwa_mesh_result_fini(&again);
		/* Half of them, pairs whole. */
		first.assignment.paths.n /= 2;
		if (first.assignment.paths.n && k >= 10) {
			cut_pairs(m, &first.assignment);
		}
		solve(m, RWA_MIN_MOVED, &first.assignment, 0, &again);
		moved_as_matched(m, &first.assignment, &again);
		assert_true(again.moved_bound <= again.moved);
		assert_true(again.moved <= (int64_t)first.assignment.paths.n);
		rwa_mesh_result_fini(&again);
		rwa_mesh_result_fini(&first);
		rwa_mesh_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewest_moved_against_everything_tried),
		cmocka_unit_test(min_loss_against_everything_tried),
		cmocka_unit_test(nothing_moves_without_need),
	};

	return cmocka_run_group_tests_name("mesh/objectives", tests, NULL, NULL);
}
