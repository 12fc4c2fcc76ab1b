/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated ring against the closed forms of time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "lib/base/number/rng.h"
#include "optree/private.h"
#include "tests/unit/optree/ring_sim.h"
#include "tests/unit/world.h"

static struct ring_sim_params params(int n, int channels, int64_t bytes)
{
	return (struct ring_sim_params){
		.ring = { .n = n, .channels = channels, .fibres = 1,
			  .shard_bytes = bytes, .channel_bps = 40000000000,
			  .alpha_ns = 25000 },
		.retune_ns = 25000, .flit_bytes = 32,
	};
}

static int64_t simulated(const struct ring_sim_params *p,
			 enum optree_algorithm how, struct optree_plan *plan)
{
	struct ring_sim_result sim;
	struct err err = { 0 };

	if (optree_make(&p->ring, how, plan, &err) ||
	    optree_plan_expand(&p->ring, plan, &err) ||
	    ring_simulate(plan->sched, p, &sim, &err)) {
		fail_msg("n=%d w=%d: %s", p->ring.n, p->ring.channels,
			 err.msg);
	}
	assert_int_equal(sim.steps, plan->steps);
	return sim.time_ns;
}

/* Items of whole flits and free conversion: the closed form, to the ns. */
static void closed_forms_hold(void **state)
{
	(void)state;
	for (int n = 4; n <= 64; n += 6) {
		for (int how = OPTREE_TREE; how <= OPTREE_BY_ONE_STAGE;
		     how++) {
			struct ring_sim_params p = params(n, 5, 32 * 5000);
			struct optree_plan plan;
			int64_t ns = simulated(&p, (enum optree_algorithm)how,
					       &plan);

			/* Each of 160000 B at 40 Gbit/s: 32 us. */
			assert_int_equal(ns, plan.steps * (25000 + 32000));
			assert_int_equal(ns, plan.time_ns);
			optree_plan_fini(&plan);
		}
	}
}

/* Links take time too: each step waits for the longest of its lightpaths. */
static void delays_hold(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_ALLTOALL };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 31);
	for (int k = 0; k < ALL_OR_SOME(80, 20); k++) {
		int n = 2 + (int)rng_below(&rng, 40);
		struct ring_sim_params p = params(n, 1 + (int)rng_below(&rng, 30), 6400);
		struct optree_plan plan, near;
		struct ring_sim_result sim;
		struct err err = { 0 };
		int how = k % 2 ? OPTREE_AUTO : OPTREE_TREE + k / 2 % 5;

		if (how == OPTREE_BY_NE) {
			p.ring.n += n % 2;
		}
		p.flit_bytes = 1;
		p.ring.overlap = how == OPTREE_AUTO && k % 4 == 1;
		p.ring.convert_ns = p.ring.overlap ? 2000 : 0;
		p.retune_ns -= p.ring.convert_ns;
		assert_int_equal(optree_collective(&p.ring, kinds[k % 2 ? k / 2 % 4 : k % 3], 0,
						   (enum optree_algorithm)how, &near, &err), 0);
		p.ring.span_delay_ns = 1 + (int64_t)rng_below(&rng, 50000);
		if (optree_collective(&p.ring, kinds[k % 2 ? k / 2 % 4 : k % 3], 0,
				      (enum optree_algorithm)how, &plan, &err) ||
		    optree_plan_expand(&p.ring, &plan, &err) ||
		    ring_simulate(plan.sched, &p, &sim, &err)) {
			fail_msg("n=%d %d: %s", n, how, err.msg);
		}
		assert_true(sim.time_ns <= plan.time_ns + plan.steps);
		assert_true(sim.time_ns >= plan.time_ns - 2);
		/* Every step passes a link; and what was found without regard
		 * to the delays is no better. */
		assert_true(plan.time_ns >= near.time_ns + p.ring.span_delay_ns);
		if (near.sym && near.kind != COLL_ALLREDUCE) {
			assert_true(plan.time_ns <= compose_times(&p.ring, near.sym));
		}
		assert_true(plan.time_ns >= plan.bound_ns);
		optree_plan_fini(&plan);
		optree_plan_fini(&near);
	}
}

/* Chunks need not be whole flits: at most one flit a step more. */
static void composed_plans_hold(void **state)
{
	(void)state;
	for (int n = 2; n <= 64; n++) {
		struct ring_sim_params p = params(n, 1 + n % 9, 100000);
		struct optree_plan plan;
		int64_t ns = simulated(&p, OPTREE_COMPOSED, &plan);

		assert_true(ns >= plan.time_ns - 1);
		assert_true(ns <= plan.time_ns + 7 * plan.steps);
		optree_plan_fini(&plan);
	}
}

/* Retuning behind others' data: the simulator finds the same time, for every
 * collective, whatever levels and banks were chosen. */
static void overlap_holds(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
		COLL_ALLTOALL, COLL_BROADCAST };
	static const int64_t bytes[] = { 64, 3200, 64000, 6400000 };
	static const enum optree_algorithm written[] = {
		OPTREE_TREE, OPTREE_BY_WRHT, OPTREE_BY_ONE_STAGE, OPTREE_BY_NE };
	int hidden = 0;

	(void)state;
	for (int k = 2; k <= ALL_OR_SOME(104, 52); k++) {
		int n = k <= ALL_OR_SOME(64, 32) ? k : k - ALL_OR_SOME(62, 30);
		enum optree_algorithm how = n == k ? OPTREE_COMPOSED : written[n % 4];
		struct ring_sim_params p = params(n, 1 + n * 7 % 33,
						    bytes[n % 4]);
		struct optree_plan plan;
		struct ring_sim_result sim;
		struct err err = { 0 };

		p.ring.n += how == OPTREE_BY_NE && n % 2;
		p.ring.overlap = true;
		p.ring.convert_ns = n % 3 * 2000;
		p.retune_ns -= p.ring.convert_ns;
		p.flit_bytes = 1;
		if (optree_collective(&p.ring, kinds[n % (n == k ? 5 : 3)], 0, how, &plan, &err) ||
		    optree_plan_expand(&p.ring, &plan, &err) ||
		    ring_simulate(plan.sched, &p, &sim, &err)) {
			fail_msg("n=%d: %s", n, err.msg);
		}
		/* Chunks need not be whole bytes. */
		assert_true(sim.time_ns <= plan.time_ns + plan.steps);
		if (n != k || (plan.sym && plan.algorithm == OPTREE_COMPOSED)) {
			assert_true(sim.time_ns >= plan.time_ns - 2);
		}
		assert_true(plan.time_ns >= plan.bound_ns);
		hidden += plan.retune_hidden_ns > 0;
		optree_plan_fini(&plan);
	}
	assert_true(hidden > ALL_OR_SOME(65, 25));
}

/* Both halves of an all-reduce have the same light where they meet: what is
 * added last is spread first. */
static void the_turn_needs_no_retuning(void **state)
{
	struct optree_params p = params(41, 64, 4000).ring;
	struct optree_plan plan;
	struct err err = { 0 };

	(void)state;
	p.overlap = true;
	assert_int_equal(optree_collective(&p, COLL_ALLREDUCE, 0, OPTREE_COMPOSED, &plan, &err), 0);
	assert_true(plan.time_ns < 26000);
	assert_int_equal(optree_plan_expand(&p, &plan, &err), 0);
	optree_plan_fini(&plan);
}

/* A cycle a flit adds one cycle a step, unless it is slower than light. */
static void conversion_of_flits(void **state)
{
	struct ring_sim_params p = params(16, 4, 3200);
	struct optree_plan plan;
	int64_t free, cycle, slow;

	(void)state;
	free = simulated(&p, OPTREE_BY_RING, &plan);
	optree_plan_fini(&plan);
	p.flit_cycle_ps = 1000;
	cycle = simulated(&p, OPTREE_BY_RING, &plan);
	optree_plan_fini(&plan);
	assert_int_equal(cycle, free + 15);
	p.flit_cycle_ps = 10000;
	slow = simulated(&p, OPTREE_BY_RING, &plan);
	optree_plan_fini(&plan);
	/* 100 flits of 10 ns instead of 6.4 ns, and the first one's 6.4. */
	assert_int_equal(slow, 15 * 25000 + (15 * 1006400 + 999) / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_forms_hold),
		cmocka_unit_test(delays_hold),
		cmocka_unit_test(composed_plans_hold),
		cmocka_unit_test(overlap_holds),
		cmocka_unit_test(the_turn_needs_no_retuning),
		cmocka_unit_test(conversion_of_flits),
	};

	return cmocka_run_group_tests_name("optree/simulate", tests, NULL,
					   NULL);
}
