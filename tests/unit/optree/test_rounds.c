/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which round each node is reached: on small rings all ways are gone through by a program that
 * shares no code with the search, and none of them is faster than what is planned.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "optree/private.h"
#include "tests/unit/optree/common.h"
#include "tests/unit/world.h"

#define MOST 12
#define ROUNDS 4

/* Loads of lightpaths of a length, clockwise, in halves of items. */
static int loads_of(int n, const int *round, int r, int *load)
{
	int sum = 0;

	memset(load, 0, MOST * sizeof(*load));
	for (int v = 1; v < n; v++) {
		int a = 1, b = 1;

		while (a < v && round[v - a] >= r) {
			a++;
		}
		while (v + b < n && round[v + b] >= r) {
			b++;
		}
		if (round[v] == r && a <= b) {
			load[a] += a < b ? 2 : 1;
		}
	}
	for (int len = 1; len < MOST; len++) {
		sum += load[len] * len;
	}
	return sum;
}

/* Channels that lightpaths of this length from every node take: as many of them lie behind each
 * other round the ring as can. */
static int channels(int n, int len)
{
	int behind = n / len;

	return n / behind + (n % behind > 0);
}

/* How long a step takes in which every length has whole channels; they are dealt out one by
 * one to whom lacks them most. Infinite where they do not fit. */
static double step_ns(const struct optree_params *p, const int *load)
{
	int width[MOST] = { 0 }, left = p->channels;
	double most;

	for (int worst = 1; worst;) {
		most = 0;
		worst = 0;
		for (int len = 1; len < MOST; len++) {
			double t = load[len] ? (double)load[len] / width[len] : 0;

			if (t > most) {
				most = t;
				worst = len;
			}
		}
		left -= worst ? channels(p->n, worst) : 0;
		width[worst] += left >= 0;
		worst = left >= 0 ? worst : 0;
	}
	return (double)p->alpha_ns + most * (double)p->shard_bytes * 4e9 / (double)p->channel_bps;
}

/* The fastest of all ways; *tried: that fit. */
static double fastest(const struct optree_params *p, int *tried)
{
	int n = p->n, round[MOST], load[MOST], ways = 1;
	double best = INFINITY;

	for (int v = 1; v <= n / 2; v++) {
		ways *= ROUNDS;
	}
	for (int k = 0; k < ways; k++) {
		double ns = 0;

		for (int v = 1, way = k; v <= n / 2; v++, way /= ROUNDS) {
			round[v] = round[n - v] = way % ROUNDS;
		}
		for (int r = 0; r < ROUNDS; r++) {
			ns += loads_of(n, round, r, load) ? step_ns(p, load) : 0;
		}
		*tried += !isinf(ns);
		best = fmin(best, ns);
	}
	return best;
}

static void no_other_rounds_are_faster(void **state)
{
	int ways = 0, met = 0;

	(void)state;
	for (int k = 0; k < 3 * 3 * (MOST - 5); k++) {
		static const int64_t bytes[] = { 4000, 64000, 300000 };
		struct optree_params p = params(5 + k / 9, 2 << k / 3 % 3, bytes[k % 3]);
		struct optree_plan plan;
		struct err err = { 0 };
		double ns = fastest(&p, &ways);

		assert_int_equal(optree_make(&p, OPTREE_COMPOSED, &plan, &err), 0);
		if ((double)plan.time_ns > ns + 1) {
			fail_msg("%d nodes, %d channels, %lld B: %lld ns, %.0f are possible", p.n,
				 p.channels, (long long)p.shard_bytes, (long long)plan.time_ns, ns);
		}
		met += (double)plan.time_ns > ns - 1;
		optree_plan_fini(&plan);
	}
	print_message("# %d ways; %d of 63 plans take as long as the best\n", ways, met);
	assert_true(met > 20);
}

/* Few channels: by levels of one stride, in us, 88.4, 181.1, 84.1, 63.2 and 214.6. */
static void far_nodes_first(void **state)
{
	static const int rings[][4] = {
		{ 16, 8, 64000, 75600 }, { 64, 16, 64000, 162200 }, { 41, 32, 64000, 75600 },
		{ 32, 16, 4000, 52800 }, { 48, 8, 64000, 198600 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rings) / sizeof(*rings); k++) {
		struct optree_params p = params(rings[k][0], rings[k][1], rings[k][2]);
		struct optree_plan plan;
		struct err err = { 0 };
		int64_t lights;

		assert_int_equal(optree_make(&p, OPTREE_COMPOSED, &plan, &err), 0);
		assert_in_range(plan.time_ns, plan.bound_ns, rings[k][3]);
		assert_int_equal(optree_plan_expand(&p, &plan, &err), 0);
		assert_in_range(replay(&p, &plan), plan.bound_ns, plan.time_ns);
		coll_lights(plan.sched, &lights);
		assert_int_equal(lights, plan.lightpaths);
		optree_plan_fini(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_other_rounds_are_faster),
		cmocka_unit_test(far_nodes_first),
	};

	return cmocka_run_group_tests_name("optree/rounds", tests, NULL, NULL);
}
