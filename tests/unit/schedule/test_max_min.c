/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that share capacities, against values by hand and a plain reference. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "collective/schedule/simulation/max_min.h"
#include "lib/base/number/rng.h"

static void add_resource(struct maxmin_net *net, double capacity)
{
	vec_push(&net->capacity, capacity);
}

static void add_message(struct maxmin_net *net, double delay)
{
	struct maxmin_message m = {
		.first_path = (int32_t)net->paths.n, .first_need = (int32_t)net->needs.n,
		.delay_ns = delay,
	};

	vec_push(&net->messages, m);
}

static void add_path(struct maxmin_net *net, double work, double latency)
{
	struct maxmin_path p = { (int32_t)net->messages.n - 1, (int32_t)net->uses.n, work,
				 latency };

	vec_push(&net->paths, p);
}

static void add_use(struct maxmin_net *net, int resource, double weight)
{
	struct maxmin_use u = { (int32_t)net->paths.n - 1, resource, weight };

	vec_push(&net->uses, u);
}

static void add_need(struct maxmin_net *net, int32_t message)
{
	vec_push(&net->needs, message);
}

static double run(struct maxmin_net *net, double from)
{
	return maxmin_run(net, from, NULL, NULL);
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * (fabs(a) + fabs(b))) {
		fail_msg("%.15g is not %.15g", a, b);
	}
}

/* The textbook's example: one flow over both links, one on the first, two on
 * the second of capacity 2: 1/2, 1/2, 3/4, 3/4. */
static void test_textbook(void **state)
{
	struct maxmin_net net = { 0 };

	(void)state;
	add_resource(&net, 1);
	add_resource(&net, 2);
	for (int i = 0; i < 4; i++) {
		add_message(&net, 0);
		add_path(&net, i < 2 ? 1 : 1.5, 0);
		if (i < 2) {
			add_use(&net, 0, 1);
		}
		if (i != 1) {
			add_use(&net, 1, 1);
		}
	}
	assert_near(run(&net, 0), 2);	/* all end together */
	for (int i = 0; i < 4; i++) {
		assert_near(net.messages.v[i].end_ns, 2);
	}
	/* A fifth on the first link for a while: thirds. Then the first two go on
	 * at 1/2, and the others at 5/6, 3/4 and, alone, 1. */
	add_message(&net, 0);
	add_path(&net, 0.5, 0);
	add_use(&net, 0, 1);
	run(&net, 10);
	assert_near(net.messages.v[4].end_ns, 10 + 1.5);
	assert_near(net.messages.v[1].end_ns, 10 + 1.5 + 1);
	assert_near(net.messages.v[2].end_ns, 10 + 1.5 + 0.25 / 0.75);
	maxmin_net_fini(&net);
}

/* Two messages on one link, the second delayed; one that waits for both; one
 * without work. */
static void test_order(void **state)
{
	struct maxmin_net net = { 0 };

	(void)state;
	add_resource(&net, 1);
	add_message(&net, 0);
	add_path(&net, 10, 5);		/* 5..15 and half of the time till 19 */
	add_use(&net, 0, 1);
	add_message(&net, 9);
	add_path(&net, 2, 2);		/* 11..15 at half the rate */
	add_use(&net, 0, 1);
	add_message(&net, 1);
	add_path(&net, 3, 0);
	add_use(&net, 0, 1);
	add_need(&net, 0);
	add_need(&net, 1);
	add_message(&net, 7);
	add_path(&net, 0, 3);
	add_use(&net, 0, 1);
	add_need(&net, 2);
	assert_near(run(&net, 0), 17 + 1 + 3 + 10);
	assert_near(net.messages.v[0].end_ns, 17);
	assert_near(net.messages.v[1].end_ns, 15);
	assert_near(net.messages.v[2].begin_ns, 17);
	assert_near(net.messages.v[2].end_ns, 21);
	assert_near(net.messages.v[3].begin_ns, 21);
	maxmin_net_fini(&net);
}

/* A message of two paths ends with the later one. */
static void test_two_paths(void **state)
{
	struct maxmin_net net = { 0 };

	(void)state;
	add_resource(&net, 1);
	add_resource(&net, 4);
	add_message(&net, 1);
	add_path(&net, 2, 0);
	add_use(&net, 0, 1);
	add_path(&net, 2, 0);
	add_use(&net, 1, 2);	/* twice over it */
	assert_near(run(&net, 0), 3);
	maxmin_net_fini(&net);
}

/* ---- random nets against plain progressive filling ---- */

#define FLOWS 40
#define RESOURCES 7

struct plain {
	double left[FLOWS], begin[FLOWS], end[FLOWS];
	double weight[FLOWS][RESOURCES], capacity[RESOURCES];
	int n;
};

/* Rates by the definition, over all flows that run. */
static void plain_rates(const struct plain *p, double now, double *rate)
{
	bool done[FLOWS] = { false };

	for (int f = 0; f < p->n; f++) {
		rate[f] = 0;
		done[f] = p->left[f] <= 0 || p->begin[f] > now;
	}
	for (;;) {
		double best = INFINITY;
		int full = -1;

		for (int r = 0; r < RESOURCES; r++) {
			double room = p->capacity[r], sum = 0;

			for (int f = 0; f < p->n; f++) {
				room -= rate[f] * p->weight[f][r];
				sum += done[f] ? 0 : p->weight[f][r];
			}
			if (sum > 0 && room / sum < best) {
				best = room / sum;
				full = r;
			}
		}
		if (full < 0) {
			return;
		}
		for (int f = 0; f < p->n; f++) {
			if (!done[f] && p->weight[f][full] > 0) {
				done[f] = true;
				rate[f] = best;
			}
		}
	}
}

static void plain_run(struct plain *p)
{
	double now = 0, rate[FLOWS];
	int open = p->n;

	while (open > 0) {
		double next = INFINITY;

		plain_rates(p, now, rate);
		for (int f = 0; f < p->n; f++) {
			if (p->left[f] > 0 && p->begin[f] > now) {
				next = fmin(next, p->begin[f]);
			} else if (p->left[f] > 0) {
				next = fmin(next, now + p->left[f] / rate[f]);
			}
		}
		for (int f = 0; f < p->n; f++) {
			if (p->left[f] <= 0 || p->begin[f] > now) {
				continue;
			}
			p->left[f] -= rate[f] * (next - now);
			if (p->left[f] < 1e-9) {
				p->left[f] = 0;
				p->end[f] = next;
				open--;
			}
		}
		now = next;
	}
}

static void random_flow(struct rng *rng, struct maxmin_net *net, struct plain *p, int f)
{
	double work = 1 + (double)rng_below(rng, 20), delay = (double)rng_below(rng, 8);
	double latency = (double)rng_below(rng, 8);
	int must_use = (int)rng_below(rng, RESOURCES);

	p->left[f] = work;
	p->begin[f] = delay + latency;
	add_message(net, delay);
	add_path(net, work, latency);
	for (int r = 0; r < RESOURCES; r++) {
		p->weight[f][r] = r == must_use || rng_below(rng, 4) == 0
					  ? 1 + (double)rng_below(rng, 3)
					  : 0;
		if (p->weight[f][r] > 0) {
			add_use(net, r, p->weight[f][r]);
		}
	}
}

static void test_against_definition(void **state)
{
	struct rng rng;

	(void)state;
	for (int seed = 0; seed < 500; seed++) {
		struct maxmin_net net = { 0 };
		struct plain p = { .n = 1 + seed % FLOWS };

		rng_seed(&rng, (uint64_t)seed);
		for (int r = 0; r < RESOURCES; r++) {
			p.capacity[r] = 1 + (double)rng_below(&rng, 5);
			add_resource(&net, p.capacity[r]);
		}
		for (int f = 0; f < p.n; f++) {
			random_flow(&rng, &net, &p, f);
		}
		plain_run(&p);
		run(&net, 0);
		for (int f = 0; f < p.n; f++) {
			assert_near(net.messages.v[f].end_ns, p.end[f]);
		}
		maxmin_net_fini(&net);
	}
}

/* ---- one flow for an orbit ---- */

#define RING 9

/* Flows of some lengths round a ring, from every node, against one of each length. */
static void test_orbits(void **state)
{
	struct rng rng;

	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		struct maxmin_net all = { 0 }, one = { 0 };
		int classes = 1 + seed % 5;

		rng_seed(&rng, (uint64_t)seed);
		add_resource(&one, 3);
		for (int i = 0; i < RING; i++) {
			add_resource(&all, 3);
		}
		for (int c = 0; c < classes; c++) {
			int length = 1 + (int)rng_below(&rng, RING);
			double work = 1 + (double)rng_below(&rng, 9);
			double delay = (double)rng_below(&rng, 5);

			add_message(&one, delay);
			add_path(&one, work, 0);
			add_use(&one, 0, length);
			for (int from = 0; from < RING; from++) {
				add_message(&all, delay);
				add_path(&all, work, 0);
				for (int k = 0; k < length; k++) {
					add_use(&all, (from + k) % RING, 1);
				}
			}
		}
		assert_near(run(&all, 0), run(&one, 0));
		for (int m = 0; m < classes * RING; m++) {
			assert_near(all.messages.v[m].end_ns, one.messages.v[m / RING].end_ns);
		}
		maxmin_net_fini(&all);
		maxmin_net_fini(&one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_textbook),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_two_paths),
		cmocka_unit_test(test_against_definition),
		cmocka_unit_test(test_orbits),
	};

	return cmocka_run_group_tests_name("schedule/max_min", tests, NULL, NULL);
}
