/* SPDX-License-Identifier: Apache-2.0 */
/* Colouring arcs of a ring, all-to-all, the check and the loss budget. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "rwa/ring/ring.h"
#include "tests/unit/mesh/ring_demands.h"
#include "tests/unit/world.h"

static int optimum(int m)
{
	return (m * m / 4 + 1) / 2;
}

/* Members 0..m-1 spread over a ring of n positions. */
static int32_t *spread(int m, int n)
{
	int32_t *members = malloc((size_t)m * sizeof(*members));

	for (int i = 0; i < m; i++) {
		members[i] = (int32_t)((int64_t)i * n / m);
	}
	return members;
}

/* Every ordered pair once, by a shortest path counted in members. */
static void check_pairs(const struct rwa_arc *arcs, int m)
{
	for (int i = 0, k = 0; i < m; i++) {
		for (int j = 0; j < m; j++) {
			int cw = (j - i + m) % m, hops;

			if (i == j) {
				continue;
			}
			assert_int_equal(arcs[k].src, i);
			assert_int_equal(arcs[k].dst, j);
			hops = arcs[k].dir == RWA_CW ? cw : m - cw;
			assert_true(2 * hops <= m);
			k++;
		}
	}
}

static void all_to_all(int m)
{
	struct rwa_ring ring = { .n = m, .fibres = 1, .channels = 7 };
	struct rwa_arc *arcs = malloc((size_t)m * m * sizeof(*arcs));
	int32_t *members = spread(m, m);
	struct rwa_result res;
	struct err err;
	int64_t n = (int64_t)m * (m - 1);

	assert_int_equal(rwa_all_to_all(&ring, members, m, false, arcs, &res,
					&err), 0);
	assert_int_equal(res.colours, optimum(m));
	assert_int_equal(res.bound, optimum(m));
	assert_int_equal(res.slots, (optimum(m) + 6) / 7);
	assert_int_equal(rwa_ring_check(&ring, arcs, n, &err), 0);
	check_pairs(arcs, m);
	free(arcs);
	free(members);
}

static void all_to_all_meets_the_formula(void **state)
{
	struct rng rng;

	(void)state;
	for (int m = 2; m <= ALL_OR_SOME(200, 60); m++) {
		all_to_all(m);
	}
	rng_seed(&rng, 7);
	for (int k = 0; k < 4; k++) {
		all_to_all(201 + (int)rng_below(&rng, 600));
	}
	all_to_all(1024);
}

/* The opposite pairs of an even ring use both directions equally. */
static void opposite_pairs_are_split_evenly(void **state)
{
	(void)state;
	for (int m = 2; m <= 40; m += 2) {
		struct rwa_ring ring = { .n = m, .fibres = 1, .channels = 64 };
		struct rwa_arc *arcs = malloc((size_t)m * m * sizeof(*arcs));
		int32_t *members = spread(m, m);
		struct rwa_result res;
		int cw = 0;

		assert_int_equal(rwa_all_to_all(&ring, members, m, false, arcs,
						&res, NULL), 0);
		for (int k = 0; k < m * (m - 1); k++) {
			if (abs(arcs[k].src - arcs[k].dst) == m / 2) {
				cw += arcs[k].dir == RWA_CW;
			}
		}
		assert_int_equal(cw, m / 4 * 2 + (m % 4 != 0));
		free(arcs);
		free(members);
	}
}

static void small_rings_are_solved_by_lp_solve(void **state)
{
	struct rwa_result res;
	int32_t members[12];
	struct rwa_arc arcs[132];

	(void)state;
	for (int m = 3; m <= 12; m++) {
		struct rwa_ring ring = { .n = m, .fibres = 1, .channels = 64 };

		for (int i = 0; i < m; i++) {
			members[i] = i;
		}
		assert_int_equal(rwa_all_to_all(&ring, members, m, false, arcs,
						&res, NULL), 0);
		assert_string_equal(res.method, "lp_solve");
		assert_int_equal(res.colours, optimum(m));
		assert_int_equal(res.colours, res.bound);
	}
}

static void members_may_be_spread_over_a_larger_ring(void **state)
{
	(void)state;
	for (int m = 1; m <= 24; m++) {
		struct rwa_ring ring = { .n = 101, .fibres = 2, .channels = 3 };
		struct rwa_arc arcs[24 * 24];
		int32_t *members = spread(m, 101);
		struct rwa_result res;
		struct err err;

		assert_int_equal(rwa_all_to_all(&ring, members, m, false, arcs,
						&res, &err), 0);
		assert_int_equal(res.colours, optimum(m));
		assert_int_equal(rwa_ring_check(&ring, arcs, m * (m - 1),
						&err), 0);
		assert_int_equal(rwa_all_to_all(&ring, members, m, true, arcs,
						&res, &err), 0);
		assert_int_equal(res.colours, m * m / 4);
		assert_int_equal(res.bound, m * m / 4);
		assert_int_equal(rwa_ring_check(&ring, arcs, m * (m - 1),
						&err), 0);
		free(members);
	}
}

static void groups_share_the_ring_without_loss(void **state)
{
	(void)state;
	for (int m = 2; m <= 13; m++) {
		for (int g = 1; g <= 9; g++) {
			struct rwa_ring ring = { m * g, 1, 5 };
			int32_t members[13 * 9];
			struct rwa_arc arcs[13 * 12 * 9];
			struct rwa_result res;
			struct err err;

			for (int k = 0; k < m * g; k++) {
				members[k] = k % m * g + k / m;
			}
			assert_int_equal(rwa_all_to_all_groups(&ring, members,
				m, g, arcs, &res, &err), 0);
			assert_int_equal(res.colours,
					 (g * (m * m / 4) + 1) / 2);
			assert_int_equal(res.bound, res.colours);
			assert_int_equal(rwa_ring_check(&ring, arcs,
				(int64_t)g * m * (m - 1), &err), 0);
		}
	}
}

/* Least number of colours by trying everything: up to 10 arcs. */
static bool colourable(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		       int n, int k, int32_t *masks, uint64_t *used)
{
	if (k == n) {
		return true;
	}
	for (int c = 0; c < ring->channels; c++) {
		if (used[c] & (uint64_t)masks[k]) {
			continue;
		}
		used[c] |= (uint64_t)masks[k];
		if (colourable(ring, arcs, n, k + 1, masks, used)) {
			return true;
		}
		used[c] &= ~(uint64_t)masks[k];
		if (!used[c]) {
			break;	/* the other empty colours are the same */
		}
	}
	return false;
}

static int exhaustive(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		      int n)
{
	struct rwa_ring trial = *ring;
	int32_t masks[16];

	for (int k = 0; k < n; k++) {
		masks[k] = 0;
		for (int v = arcs[k].src; v != arcs[k].dst;
		     v = (v + 1) % ring->n) {
			masks[k] |= 1 << v;
		}
	}
	for (trial.channels = 1;; trial.channels++) {
		uint64_t used[16] = { 0 };

		if (colourable(&trial, arcs, n, 0, masks, used)) {
			return trial.channels;
		}
	}
}

static void small_rings_get_the_minimum(void **state)
{
	struct rng rng;
	int beyond_load = 0;

	(void)state;
	rng_seed(&rng, 11);
	for (int t = 0; t < ALL_OR_SOME(150, 60); t++) {
		struct rwa_ring ring = { 4 + (int)rng_below(&rng, 8), 1, 64 };
		struct rwa_arc arcs[12] = { 0 };
		int n = 3 + (int)rng_below(&rng, 9), load;
		struct rwa_result res;

		for (int k = 0; k < n; k++) {
			arcs[k].src = (int32_t)rng_below(&rng, ring.n);
			arcs[k].dst = (int32_t)((arcs[k].src + 1 +
				rng_below(&rng, ring.n - 1)) % ring.n);
		}
		assert_int_equal(rwa_ring_colour(&ring, arcs, n, &res, NULL),
				 0);
		assert_int_equal(rwa_ring_check(&ring, arcs, n, NULL), 0);
		assert_int_equal(res.colours, exhaustive(&ring, arcs, n));
		assert_true(res.bound <= res.colours);
		load = 0;
		for (int e = 0; e < ring.n; e++) {
			int over = 0;

			for (int k = 0; k < n; k++) {
				over += (e - arcs[k].src + ring.n) % ring.n <
					(arcs[k].dst - arcs[k].src + ring.n) %
						ring.n;
			}
			load = over > load ? over : load;
		}
		assert_true(load <= res.bound);
		beyond_load += res.colours > load;
	}
	/* Some of the instances must need more than the load, or the test
	 * says nothing about the program. */
	assert_true(beyond_load > 5);
}

/* `copies` of every arc of s links of a ring of n, both ways: exactly as many
 * colours as their number over how many fit on one. */
static void uniform_offset(int n, int s, int copies)
{
	struct rwa_ring ring = { .n = n, .fibres = 1, .channels = 4 };
	struct rwa_arc *arcs = calloc((size_t)(2 * n * copies), sizeof(*arcs));
	int fit = n / s, exact = (n * copies + fit - 1) / fit, k = 0;
	struct rwa_result res;
	struct err err;

	for (; k < n * copies; k++) {
		arcs[2 * k] = (struct rwa_arc){ .src = k % n,
						.dst = (k + s) % n };
		arcs[2 * k + 1] = (struct rwa_arc){ .src = (k + s) % n,
						    .dst = k % n, .dir = 1 };
	}
	assert_int_equal(rwa_ring_colour(&ring, arcs, 2 * k, &res, &err), 0);
	if (res.colours != exact || res.bound != exact) {
		fail_msg("n %d offset %d: %d colours, bound %d, exact %d", n, s,
			 res.colours, res.bound, exact);
	}
	assert_int_equal(rwa_ring_check(&ring, arcs, 2 * k, &err), 0);
	free(arcs);
}

static void uniform_offsets_are_exact(void **state)
{
	(void)state;
	for (int n = 3; n <= ALL_OR_SOME(64, 30); n++) {
		for (int s = 1; s < n; s += n <= 24 ? 1 : 6) {
			uniform_offset(n, s, 1);
		}
	}
	for (int n = 100; n < 1100; n += 183) {
		uniform_offset(n, n / 3 - 1, 1);
		uniform_offset(n, n / 7, 2);
		uniform_offset(n, 2 * n / 3, 3);
	}
}

static void random_demands_are_valid_and_near_the_bound(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int t = 0; t < 20; t++) {
		struct rwa_ring ring = { 8 + (int)rng_below(&rng, 120), 2, 16 };
		int64_t n = 200 + (int64_t)rng_below(&rng, 1500);
		struct rwa_arc *arcs = calloc((size_t)n, sizeof(*arcs));
		struct rwa_result res;
		struct err err;

		for (int64_t k = 0; k < n; k++) {
			int cw = 1 + (int)rng_below(&rng, ring.n - 1);

			arcs[k].src = (int32_t)rng_below(&rng, ring.n);
			arcs[k].dst = (arcs[k].src + cw) % ring.n;
			arcs[k].dir = 2 * cw > ring.n;
		}
		assert_int_equal(rwa_ring_colour(&ring, arcs, n, &res, &err),
				 0);
		assert_int_equal(rwa_ring_check(&ring, arcs, n, &err), 0);
		assert_true(res.colours >= res.bound);
		assert_true(2 * res.colours <= 3 * res.bound);
		free(arcs);
	}
}

static void check_finds_every_fault(void **state)
{
	struct rwa_ring ring = { .n = 130, .fibres = 2, .channels = 8 };
	struct rwa_arc arcs[3] = {
		{ .src = 120, .dst = 70 }, { .src = 70, .dst = 120 },
		{ .src = 5, .dst = 3, .dir = RWA_CCW },
	};
	struct err err;

	(void)state;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), 0);
	arcs[1].dst = 121;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), WEFT_EVERIFY);
	assert_string_equal(err.msg, "lightpaths 120 -> 70 and 70 -> 121 both "
		"use link 120-121 clockwise on fibre 0 channel 0 in slot 0");
	arcs[1].channel = 7;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), 0);
	arcs[1].channel = 0;
	arcs[1].fibre = 1;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), 0);
	arcs[1].fibre = 0;
	arcs[1].slot = 1 << 30;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), 0);
	arcs[1].slot = -1;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), WEFT_EVERIFY);
	arcs[1].slot = 0;
	arcs[1].channel = 8;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), WEFT_EVERIFY);
	arcs[1].channel = 1;
	arcs[1].dst = 130;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), WEFT_EINVAL);
	arcs[1].dst = 70;
	assert_int_equal(rwa_ring_check(&ring, arcs, 3, &err), WEFT_EINVAL);
}

static void nonsense_is_refused(void **state)
{
	struct rwa_ring ring = { .n = 8, .fibres = 1, .channels = 4 };
	struct rwa_arc arc = { .src = 1, .dst = 1 };
	int32_t members[3] = { 0, 5, 4 };
	struct rwa_arc arcs[6];
	struct rwa_result res;
	struct err err;

	(void)state;
	assert_int_equal(rwa_ring_colour(&ring, &arc, 1, &res, &err),
			 WEFT_EINVAL);
	assert_int_equal(rwa_all_to_all(&ring, members, 3, false, arcs, &res,
					&err), WEFT_EINVAL);
	ring.channels = 0;
	assert_int_equal(rwa_ring_colour(&ring, arcs, 0, &res, &err),
			 WEFT_EINVAL);
	/* More than there is memory for. */
	ring = (struct rwa_ring){ 1 << 20, 256, 65536 };
	arc.dst = 2;
	assert_int_equal(rwa_ring_check(&ring, &arc, 1, &err), WEFT_ELIMIT);
}

static void loss_and_reach(void **state)
{
	struct rwa_ring ring = { .n = 64, .fibres = 1, .channels = 64 };
	struct rwa_loss loss = {
		.launch_mdbm = 10000, .sensitivity_mdbm = -20000,
		.margin_mdb = 2000, .add_mdb = 500, .drop_mdb = 500,
		.pass_mdb = 20, .span_mdb = 250,
	};

	(void)state;
	assert_int_equal(rwa_path_loss_mdb(&ring, &loss, 1), 1250);
	assert_int_equal(rwa_path_loss_mdb(&ring, &loss, 3), 1750 + 2 * 1280);
	/* 28 dB: 1 + 0.25 h + 1.28 (h - 1) <= 28. */
	assert_int_equal(rwa_reach_hops(&ring, &loss), 18);
	loss.rings_per_node = 2;
	assert_int_equal(rwa_reach_hops(&ring, &loss), 63);
	loss.launch_mdbm = -17000;
	assert_int_equal(rwa_reach_hops(&ring, &loss), 0);
}

static void random_arcs(struct rng *rng, int n, int count,
			struct rwa_arc *arcs)
{
	for (int i = 0; i < count; i++) {
		int src = (int)rng_below(rng, (uint64_t)n);
		int hop = 1 + (int)rng_below(rng, (uint64_t)n - 1);

		arcs[i] = (struct rwa_arc){ .src = src,
					    .dst = (src + hop) % n };
	}
}

/* Least largest load of a link over all choices of the way round. */
static int min_load(int n, struct rwa_arc *arcs, int count)
{
	int least = count;

	for (int dirs = 0; dirs < 1 << count; dirs++) {
		int load[2][8] = { { 0 } }, top = 0;

		for (int i = 0; i < count; i++) {
			int dir = dirs >> i & 1;
			int from = dir ? arcs[i].dst : arcs[i].src;
			int to = dir ? arcs[i].src : arcs[i].dst;

			for (int v = from; v != to; v = (v + 1) % n) {
				int now = ++load[dir][v];

				top = now > top ? now : top;
			}
		}
		least = top < least ? top : least;
	}
	return least;
}

static void the_way_round_is_chosen(void **state)
{
	struct rwa_arc arcs[10];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4);
	for (int k = 0; k < 200; k++) {
		int n = 3 + (int)rng_below(&rng, 6);
		int count = (int)rng_below(&rng, 11), least;
		struct rwa_ring ring = { n, 1, 4 };
		struct rwa_result res;
		struct err err;

		random_arcs(&rng, n, count, arcs);
		assert_int_equal(rwa_ring_route(&ring, arcs, count, &res, &err),
				 0);
		assert_int_equal(rwa_ring_check(&ring, arcs, count, &err), 0);
		least = min_load(n, arcs, count);
		assert_true(res.bound <= least);
		assert_true(least <= res.bound + 1);
		assert_true(res.colours <= least + 1);
	}
}

static void large_rings_are_routed_near_the_bound(void **state)
{
	struct rwa_arc *arcs = calloc(3000, sizeof(*arcs));
	struct rng rng;

	(void)state;
	rng_seed(&rng, 6);
	for (int k = 0; k < 8; k++) {
		int n = 16 + (int)rng_below(&rng, 300);
		struct rwa_ring ring = { n, 1, 64 };
		struct rwa_result res;
		struct err err;

		random_arcs(&rng, n, 4 * n, arcs);
		assert_int_equal(rwa_ring_route(&ring, arcs, 4 * n, &res, &err),
				 0);
		assert_int_equal(rwa_ring_check(&ring, arcs, 4 * n, &err), 0);
		assert_true(res.colours >= res.bound);
		assert_true(res.colours * 10 <= res.bound * 11);
	}
	arcs[0] = (struct rwa_arc){ .src = 2, .dst = 2 };
	assert_int_equal(rwa_ring_route(&(struct rwa_ring){ 4, 1, 1 }, arcs, 1,
					&(struct rwa_result){ 0 }, NULL),
			 WEFT_EINVAL);
	free(arcs);
}

/* Of 1,000 sets on rings of 16 to 64 nodes; bench_ring_demands does the same
 * up to 1024 nodes. */
static void random_demands_come_within_one_of_the_bound(void **state)
{
	const int sets = ALL_OR_SOME(1000, 60);
	struct rwa_arc *arcs = calloc(8 * 64, sizeof(*arcs));
	int near = 0;

	(void)state;
	for (int k = 0; k < sets; k++) {
		struct rwa_ring ring = { 0, 2, 16 };
		int64_t n = draw_demands(k, 64, arcs, &ring.n);
		struct rwa_result res;
		struct err err;

		assert_int_equal(rwa_ring_route(&ring, arcs, n, &res, &err),
				 0);
		assert_int_equal(rwa_ring_check(&ring, arcs, n, &err), 0);
		assert_true(res.colours >= res.bound);
		assert_true(2 * res.colours <= 3 * res.bound);
		near += res.colours <= res.bound + 1;
	}
	print_message("# %d of %d within one channel\n", near, sets);
	assert_true(100 * near >= 95 * sets);
	free(arcs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_to_all_meets_the_formula),
		cmocka_unit_test(opposite_pairs_are_split_evenly),
		cmocka_unit_test(small_rings_are_solved_by_lp_solve),
		cmocka_unit_test(members_may_be_spread_over_a_larger_ring),
		cmocka_unit_test(groups_share_the_ring_without_loss),
		cmocka_unit_test(small_rings_get_the_minimum),
		cmocka_unit_test(uniform_offsets_are_exact),
		cmocka_unit_test(random_demands_are_valid_and_near_the_bound),
		cmocka_unit_test(check_finds_every_fault),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(the_way_round_is_chosen),
		cmocka_unit_test(large_rings_are_routed_near_the_bound),
		cmocka_unit_test(random_demands_come_within_one_of_the_bound),
		cmocka_unit_test(loss_and_reach),
	};

	return cmocka_run_group_tests_name("ring/ring", tests, NULL, NULL);
}
