/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped plans: gathered by neighbours, sent far by few, on any ring. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "optree/grouped/grouped.h"
#include "tests/unit/optree/common.h"
#include "tests/unit/optree/ring_sim.h"
#include "tests/unit/world.h"

static void make(const struct optree_params *p, enum coll_kind kind, struct optree_plan *plan)
{
	struct err err = { 0 };

	if (optree_collective(p, kind, 0, OPTREE_GROUPED, plan, &err)) {
		fail_msg("n=%d w=%d: %s", p->n, p->channels, err.msg);
	}
}

static void expand(const struct optree_params *p, struct optree_plan *plan)
{
	struct err err = { 0 };

	if (optree_plan_expand(p, plan, &err)) {
		fail_msg("n=%d w=%d: %s", p->n, p->channels, err.msg);
	}
}

/* The simulator knows nothing of groups: it runs what was written out. */
static void check_simulated(const struct optree_params *p, const struct optree_plan *plan)
{
	struct ring_sim_params sim = { .ring = *p, .retune_ns = p->alpha_ns, .flit_bytes = 1 };
	struct ring_sim_result result;
	struct err err = { 0 };

	assert_int_equal(ring_simulate(plan->sched, &sim, &result, &err), 0);
	assert_int_equal(result.steps, plan->steps);
	/* Shares of channels are whole bytes there, and whole chunks here. */
	assert_true(result.time_ns <= plan->time_ns + plan->steps);
	assert_true(result.time_ns >=
		    plan->time_ns - plan->steps * (2 + p->shard_bytes / plan->chunks / 5));
}

/* Any number of nodes, primes too, and any collective made from it. */
static void any_ring(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_ALLTOALL };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20);
	for (int k = 0; k < 90; k++) {
		int n = k < 20 ? 4 + k : 4 + (int)rng_below(&rng, 150);
		int w = 1 + (int)rng_below(&rng, k % 2 ? 64 : 8);
		struct optree_params p = params(n, w, 1 + (int64_t)rng_below(&rng, 1 << (k % 20)));
		struct optree_plan plan;

		p.span_delay_ns = k % 4 == 3 ? 700 : 0;
		make(&p, kinds[k % 4], &plan);
		assert_int_equal(plan.algorithm, OPTREE_GROUPED);
		expand(&p, &plan);
		if (!p.span_delay_ns) {
			replay(&p, &plan);
		}
		check_simulated(&p, &plan);
		assert_true(plan.time_ns >= plan.bound_ns);
		optree_plan_fini(&plan);
	}
}

/* What `auto` took before there were groups (ns), and what issue 20 asks for. */
static void faster_than_composed(void **state)
{
	static const struct {
		int n, w;
		int64_t bytes, before, most;
	} rows[] = {
		{ 64, 16, 4000, 104400, 104400 }, { 64, 16, 4000000, 2375000, 2375000 },
		{ 256, 16, 4000, 268800, 160000 }, { 256, 64, 4000, 109600, 109600 },
		{ 1024, 16, 4000, 926400, 387000 }, { 1024, 64, 64000, 665429, 655000 },
		{ 4096, 16, 4000, 3550480, 800000 },
	};

	(void)state;
	for (size_t k = 0; k < ALL_OR_SOME(7, 3); k++) {
		struct optree_params p = params(rows[k].n, rows[k].w, rows[k].bytes);
		struct optree_plan plan;
		struct err err;

		assert_int_equal(optree_make(&p, OPTREE_AUTO, &plan, &err), 0);
		assert_true(plan.time_ns <= rows[k].before);
		assert_true(plan.time_ns <= rows[k].most);
		optree_plan_fini(&plan);
	}
}

/* `auto` is as fast as the faster of both. */
static void auto_takes_the_faster(void **state)
{
	int grouped = 0;

	(void)state;
	for (int n = 4; n < 200; n += ALL_OR_SOME(13, 26)) {
		struct optree_params p = params(n, 1 + n % 11, n % 5 * 1000 + 64);
		struct optree_plan both, composed, groups;
		struct err err;

		assert_int_equal(optree_make(&p, OPTREE_AUTO, &both, &err), 0);
		assert_int_equal(optree_make(&p, OPTREE_COMPOSED, &composed, &err), 0);
		assert_int_equal(optree_make(&p, OPTREE_GROUPED, &groups, &err), 0);
		assert_true(both.time_ns <= composed.time_ns);
		assert_true(both.time_ns <= groups.time_ns);
		grouped += both.algorithm == OPTREE_GROUPED;
		optree_plan_fini(&both);
		optree_plan_fini(&composed);
		optree_plan_fini(&groups);
	}
	assert_true(grouped > ALL_OR_SOME(5, 2));
}

/* Ranges of channels of both directions, some of the nodes, and a short reach. */
static void parts_of_rings(void **state)
{
	static const struct optree_fibre light[] = {
		{ RWA_CW, 0, 2, 4 }, { RWA_CW, 1, 0, 4 }, { RWA_CCW, 1, 3, 6 } };
	struct rwa_loss loss = { .launch_mdbm = 10000, .sensitivity_mdbm = -20000,
				 .rings_per_node = 1, .pass_mdb = 1000, .span_mdb = 1000 };
	int32_t at[40];

	(void)state;
	for (int k = 0; k < 40; k++) {
		at[k] = k * 2 + k / 20;
	}
	for (int kind = COLL_ALLGATHER; kind <= COLL_ALLREDUCE; kind++) {
		struct optree_params p = params(40, 9, 500);
		struct optree_plan plan;

		p.fibres = 2;
		p.light = light;
		p.n_light = 3;
		p.at = at;
		p.ring_nodes = 90;
		p.loss = &loss;
		make(&p, (enum coll_kind)kind, &plan);
		expand(&p, &plan);
		replay(&p, &plan);
		assert_true(plan.worst_loss_mdb <= 30000);
		optree_plan_fini(&plan);
	}
}

static void lights_have_a_limit(void **state)
{
	struct optree_params p = params(64, 8, 4000);
	struct optree_plan plan;
	struct err err;

	(void)state;
	make(&p, COLL_ALLGATHER, &plan);
	p.max_lights = plan.lightpaths - 1;
	optree_plan_fini(&plan);
	make(&p, COLL_ALLGATHER, &plan);
	assert_true(plan.lightpaths <= p.max_lights);
	optree_plan_fini(&plan);
	p.max_lights = 3;
	assert_int_equal(optree_make(&p, OPTREE_GROUPED, &plan, &err), WEFT_EUNSUPPORTED);
}

static int refused(const struct optree_params *p)
{
	struct optree_plan plan;
	struct err err = { 0 };
	int rc = optree_make(p, OPTREE_GROUPED, &plan, &err);

	assert_true(!rc || err.msg[0]);
	optree_plan_fini(&plan);
	return rc;
}

/* Resonators are set in the dark and in time, for each collective. */
static void overlap_is_proven(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE };

	(void)state;
	for (int k = 0; k < 9; k++) {
		struct optree_params p = params(40 + 29 * (k / 3), 8, 4000);
		struct optree_plan plan;
		struct err err = { 0 };

		p.overlap = true;
		p.convert_ns = 1000 * k;
		assert_int_equal(optree_collective(&p, kinds[k % 3], 0, OPTREE_GROUPED, &plan,
						   &err), 0);
		assert_int_equal(optree_plan_expand(&p, &plan, &err), 0);
		assert_true(plan.time_ns >= plan.bound_ns);
		optree_plan_fini(&plan);
	}
}

static void unsupported_ones_say_so(void **state)
{
	static const struct optree_fibre light[] = {
		{ RWA_CW, 0, 0, 4 } };
	struct optree_params p = params(3, 8, 4000);

	(void)state;
	assert_int_equal(refused(&p), WEFT_EUNSUPPORTED);
	p = params(16, 8, 4000);
	assert_int_equal(refused(&p), 0);
	p.line = true;
	assert_int_equal(refused(&p), WEFT_EUNSUPPORTED);
	p.line = false;
	p.light = light;
	p.n_light = 1;
	assert_int_equal(refused(&p), WEFT_EUNSUPPORTED);
}

/* One thing changed in a proven plan is found. */
static void faults_are_found(void **state)
{
	struct optree_params p = params(60, 5, 1000);
	struct optree_plan plan;
	struct optree_groups *g;
	struct rng rng;
	struct err err;

	(void)state;
	rng_seed(&rng, 1);
	make(&p, COLL_ALLGATHER, &plan);
	g = plan.groups;
	assert_int_equal(grouped_verify(g, &err), 0);
	for (size_t i = 0; i < g->paths.n; i++) {
		struct grouped_path *x = &g->paths.v[i], keep = *x;

		switch (i % 5) {
		case 0: x->items--; break;
		case 1: x->items++; break;
		case 2: x->len++; break;
		case 3: x->width += 5; break;
		default: x->slot += 9; break;
		}
		assert_int_equal(grouped_verify(g, &err), WEFT_EVERIFY);
		*x = keep;
	}
	g->rounds.n--;
	assert_int_equal(grouped_verify(g, &err), WEFT_EVERIFY);
	g->rounds.n++;
	assert_int_equal(grouped_verify(g, &err), 0);
	optree_plan_fini(&plan);
}

/* Two lightpaths that share a link get one channel. */
static void clashes_are_found(void **state)
{
	struct optree_params p = params(60, 5, 1000);
	struct optree_plan plan;
	struct optree_groups *g;
	struct err err;
	int found = 0;

	(void)state;
	make(&p, COLL_ALLGATHER, &plan);
	g = plan.groups;
	for (size_t i = 1; i < g->paths.n; i++) {
		struct grouped_path *a = &g->paths.v[i - 1], *b = &g->paths.v[i], keep = *b;

		if (a->dir == b->dir && a->kind == b->kind && a->slot == b->slot &&
		    a->first != b->first && a->src < b->src && a->src + a->len > b->src) {
			b->first = a->first;
			b->width = a->width;
			assert_int_equal(grouped_verify(g, &err), WEFT_EVERIFY);
			found++;
		}
		*b = keep;
	}
	assert_true(found > 10);
	optree_plan_fini(&plan);
}

/* All-reduces of small vectors, summed whole or by owners: any ring, never slower than two
 * halves; what is changed in them is found. */
static void sums_and_owners(void **state)
{
	struct rng rng;
	int sums = 0, owners = 0;

	(void)state;
	rng_seed(&rng, 3);
	for (int k = 0; k < ALL_OR_SOME(60, 15); k++) {
		struct optree_params p = params(2 + (k < 12 ? k : (int)rng_below(&rng, 110)),
						1 + (int)rng_below(&rng, k % 2 ? 64 : 6),
						1 + (int64_t)rng_below(&rng, 600));
		struct optree_plan plan, gather;
		struct err err = { 0 };
		struct grouped_path *x;

		p.span_delay_ns = k % 5 == 4 ? 300 : 0;
		assert_int_equal(optree_make(&p, OPTREE_AUTO, &gather, &err), 0);
		assert_int_equal(optree_collective(&p, COLL_ALLREDUCE, 0, OPTREE_AUTO, &plan, &err),
				 0);
		assert_true(plan.time_ns <= 2 * gather.time_ns);
		assert_true(plan.time_ns >= plan.bound_ns);
		optree_plan_fini(&gather);
		expand(&p, &plan);
		check_simulated(&p, &plan);
		if (plan.kind == COLL_ALLREDUCE && plan.groups &&
		    (plan.groups->shape.sums || plan.groups->shape.owners)) {
			sums += plan.groups->shape.sums;
			owners += plan.groups->shape.owners > 0;
			x = &plan.groups->paths.v[rng_below(&rng, plan.groups->paths.n)];
			x->items -= 1 + (int64_t)rng_below(&rng, 9);
			assert_int_equal(grouped_verify(plan.groups, &err), WEFT_EVERIFY);
		}
		optree_plan_fini(&plan);
	}
	assert_true(sums > ALL_OR_SOME(5, 1));
	assert_true(owners > ALL_OR_SOME(15, 3));
}

/* Hubs are rounded to nodes, and no lightpath is longer for that than light goes. */
static void owners_stay_in_reach(void **state)
{
	static const struct {
		int n, w, reach;
	} rows[] = { { 59, 16, 23 }, { 80, 64, 35 }, { 64, 64, 32 }, { 41, 64, 15 } };

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct rwa_loss loss = { .sensitivity_mdbm = -1000 * rows[k].reach,
					 .span_mdb = 1000 };
		struct optree_params p = params(rows[k].n, rows[k].w, 4000);
		struct optree_plan plan;
		struct err err;

		p.loss = &loss;
		assert_int_equal(optree_collective(&p, COLL_ALLREDUCE, 0, OPTREE_AUTO, &plan, &err),
				 0);
		assert_in_range(plan.worst_loss_mdb, 1, 1000 * rows[k].reach);
		optree_plan_fini(&plan);
	}
}

static void names(const struct optree_groups *g, const char *why)
{
	struct err err = { 0 };

	assert_int_equal(grouped_verify(g, &err), WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, why));
}

/* Owners in one, two and three levels; a level left out or made twice, and a step in which what
 * has just come would have to go on. */
static void faults_of_owners_are_found(void **state)
{
	static const struct grouped_shape shapes[] = {
		{ .owners = 1, .owner = { { 6, 1 } } },
		{ .owners = 2, .owner = { { 5, 7 }, { 3, 1 } } },
		{ .owners = 3, .owner = { { 4, 12 }, { 3, 4 }, { 2, 1 } } },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		struct optree_params p = params(51, 128, 4000);
		struct optree_groups g;
		struct grouped_round keep;
		struct err err;

		assert_int_equal(grouped_build(&p, &shapes[k], true, &g, &err), 0);
		assert_int_equal(grouped_verify(&g, &err), 0);
		assert_int_equal(g.steps, 2 * shapes[k].owners);
		keep = g.rounds.v[0];
		g.rounds.v[0] = g.rounds.v[1];
		names(&g, k ? "no lightpath" : "no sum");
		g.rounds.v[0] = keep;
		g.rounds.n--;
		names(&g, "arrive");
		g.rounds.n++;
		keep = g.rounds.v[g.rounds.n - 1];
		g.rounds.v[g.rounds.n - 1] = g.rounds.v[g.rounds.n - 2];
		names(&g, "no lightpath");
		g.rounds.v[g.rounds.n - 1] = keep;
		assert_int_equal(grouped_verify(&g, &err), 0);
		grouped_fini(&g);
	}
}

/* Pieces that are relayed by the middle of their groups, in one, two and three stages: a level
 * left out or made twice, an exchange of less, and a piece that goes the wrong way. */
static void faults_of_relayed_pieces_are_found(void **state)
{
	static const struct grouped_shape shapes[] = {
		{ .sums = true, .pieces = true, .stages = 1, .groups = { 5 } },
		{ .sums = true, .pieces = true, .stages = 2, .groups = { 17, 4 } },
		{ .sums = true, .pieces = true, .stages = 3, .groups = { 25, 9, 3 } },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		struct optree_params p = params(51, 8, 64);
		int stages = shapes[k].stages;
		struct optree_groups g;
		struct grouped_round keep;
		struct err err;

		assert_int_equal(grouped_build(&p, &shapes[k], true, &g, &err), 0);
		assert_int_equal(grouped_verify(&g, &err), 0);
		assert_int_equal(g.rounds.n, 2 * stages + 1);
		keep = g.rounds.v[2 * stages];
		g.rounds.v[2 * stages] = g.rounds.v[2 * stages - 1];
		names(&g, stages == 1 ? "no lightpath" : "from where it is not");
		g.rounds.v[2 * stages] = keep;
		g.rounds.n--;
		names(&g, "its pieces do not arrive");
		g.rounds.n++;
		g.paths.v[g.rounds.v[stages].path].items--;
		names(&g, "no lightpath");
		g.paths.v[g.rounds.v[stages].path].items++;
		keep = g.rounds.v[stages];
		g.rounds.v[stages] = g.rounds.v[0];
		names(&g, "gathered from where it is not");
		g.rounds.v[stages] = keep;
		assert_int_equal(grouped_verify(&g, &err), 0);
		grouped_fini(&g);
	}
}

/* What levels took (ns; of four all-to-alls), or two halves and sums of whole vectors (of
 * all-reduces), and what is taken at most. */
static void small_vectors_are_fast(void **state)
{
	static const struct {
		int n, w;
		int64_t bytes, before, most;
	} rows[] = {
		{ 1024, 64, 64, 430941, 127404 }, { 1024, 64, 4000, 2333760, 2093000 },
		{ 256, 16, 64, 307412, 88082 }, { 64, 4, 64, 251690, 103252 },
		{ 16, 64, 64, 50026, 25200 }, { 41, 64, 64, 100100, 76000 },
		{ 256, 64, 64, 200400, 78000 }, { 1024, 64, 64, 501000, 96000 },
		{ 16, 16, 4000, 79800, 54300 }, { 64, 64, 4000, 87800, 67100 },
		{ 64, 128, 4000, 81100, 57320 }, { 256, 64, 4000, 181100, 137600 },
		{ 256, 128, 4000, 139000, 115800 }, { 1024, 64, 4000, 321100, 295700 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct optree_params p = params(rows[k].n, rows[k].w, rows[k].bytes);
		struct optree_plan plan;
		struct err err;

		if (rows[k].n > ALL_OR_SOME(1024, 64)) {
			continue;
		}
		assert_int_equal(optree_collective(&p, k < 4 ? COLL_ALLTOALL : COLL_ALLREDUCE, 0,
						   OPTREE_AUTO, &plan, &err), 0);
		assert_true(plan.time_ns <= rows[k].before);
		assert_true(plan.time_ns <= rows[k].most);
		optree_plan_fini(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_ring),
		cmocka_unit_test(faster_than_composed),
		cmocka_unit_test(auto_takes_the_faster),
		cmocka_unit_test(parts_of_rings),
		cmocka_unit_test(lights_have_a_limit),
		cmocka_unit_test(overlap_is_proven),
		cmocka_unit_test(unsupported_ones_say_so),
		cmocka_unit_test(faults_are_found),
		cmocka_unit_test(clashes_are_found),
		cmocka_unit_test(sums_and_owners),
		cmocka_unit_test(owners_stay_in_reach),
		cmocka_unit_test(faults_of_owners_are_found),
		cmocka_unit_test(faults_of_relayed_pieces_are_found),
		cmocka_unit_test(small_vectors_are_fast),
	};

	return cmocka_run_group_tests_name("optree/grouped", tests, NULL, NULL);
}
