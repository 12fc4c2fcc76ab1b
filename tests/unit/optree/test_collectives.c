/* SPDX-License-Identifier: Apache-2.0 */
/* All collectives on rings: replayed in full, on channels counted again, in
 * the time that the plan says, and no faster than their bounds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "optree/private.h"
#include "tests/unit/optree/common.h"

static void check_light(const struct optree_params *p,
			const struct coll_sched *s, int reach)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	const struct coll_light *l;
	struct rwa_arc *arcs;
	struct err err = { 0 };
	int64_t n;

	l = coll_lights(s, &n);
	arcs = calloc((size_t)n, sizeof(*arcs));
	for (int64_t k = 0; k < n; k++) {
		const struct topo_arc *a = topo_arc(coll_topo(s), l[k].arc);
		int hops = (l[k].dir == RWA_CW ? a->dst - a->src
					       : a->src - a->dst) + p->n;

		assert_true(hops % p->n <= reach);
		arcs[k] = (struct rwa_arc){
			.src = a->src, .dst = a->dst, .dir = l[k].dir,
			.fibre = l[k].fibre, .channel = l[k].channel,
			.slot = l[k].step };
	}
	assert_int_equal(rwa_ring_check(&ring, arcs, n, &err), 0);
	free(arcs);
}

static int64_t worst_of(const struct coll_sched *s)
{
	int64_t n, worst = 0;
	const struct coll_light *l = coll_lights(s, &n);

	for (int64_t k = 0; k < n; k++) {
		worst = l[k].loss_mdb > worst ? l[k].loss_mdb : worst;
	}
	return worst;
}

static void check(const struct optree_params *p, enum coll_kind kind,
		  int root, int reach)
{
	struct optree_plan plan;
	struct err err = { 0 };

	if (optree_collective(p, kind, root, OPTREE_AUTO, &plan, &err) ||
	    optree_plan_expand(p, &plan, &err)) {
		fail_msg("n=%d w=%d %s: %s", p->n, p->channels,
			 coll_kind_name(kind), err.msg);
	}
	assert_int_equal(plan.kind, kind);
	assert_int_equal(coll_kind_of(plan.sched), kind);
	replay(p, &plan);
	assert_true(plan.time_ns >= plan.bound_ns);
	check_light(p, plan.sched, reach);
	assert_int_equal(plan.worst_loss_mdb, worst_of(plan.sched));
	optree_plan_fini(&plan);
}

static void every_collective_on_small_rings(void **state)
{
	static const int64_t bytes[] = { 1, 4000, 3000000 };
	static const int widths[] = { 1, 3, 16 };

	(void)state;
	for (int n = 2; n <= 26; n++) {
		for (int k = 0; k < 3; k++) {
			struct optree_params p =
				params(n, widths[(n + k) % 3], bytes[k]);

			p.fibres = 1 + n % 2;
			for (int kind = 0; kind <= COLL_BROADCAST; kind++) {
				check(&p, (enum coll_kind)kind,
				      kind == COLL_BROADCAST ? n / 3 : 0, n);
			}
		}
	}
}

/* No light goes further than the budget allows, in any collective. */
static void within_reach(void **state)
{
	(void)state;
	for (int reach = 1; reach < 12; reach += 2) {
		struct rwa_loss loss = { .launch_mdbm = 1000 * reach,
					 .span_mdb = 1000 };
		struct optree_params p = params(21, 6, 5000);

		p.loss = &loss;
		for (int kind = 0; kind <= COLL_BROADCAST; kind++) {
			check(&p, (enum coll_kind)kind, 0, reach);
		}
	}
}

static void unsupported_ones_say_so(void **state)
{
	struct optree_params p = params(8, 4, 100);
	struct optree_plan plan;
	struct err err;

	(void)state;
	assert_int_equal(optree_collective(&p, COLL_ALLTOALL, 0, OPTREE_TREE,
					   &plan, &err), WEFT_EUNSUPPORTED);
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0,
					   OPTREE_BY_RING, &plan, &err),
			 WEFT_EUNSUPPORTED);
}

/* Reduce-scatter and all-reduce from OpTree's and the baselines' own. */
static void reductions_of_every_algorithm(void **state)
{
	struct optree_params p = params(18, 4, 4000);

	(void)state;
	for (int how = OPTREE_AUTO; how <= OPTREE_BY_ONE_STAGE; how++) {
		struct optree_plan gather, plan;
		struct err err = { 0 };

		assert_int_equal(optree_make(&p, (enum optree_algorithm)how,
					     &gather, &err), 0);
		assert_int_equal(optree_collective(&p, COLL_ALLREDUCE, 0,
						   (enum optree_algorithm)how,
						   &plan, &err), 0);
		assert_int_equal(optree_plan_expand(&p, &plan, &err), 0);
		assert_int_equal(coll_verify(plan.sched, NULL, &err), 0);
		assert_true(plan.time_ns <= 2 * gather.time_ns);
		if (how != OPTREE_AUTO && how != OPTREE_GROUPED) {
			assert_int_equal(plan.steps, 2 * gather.steps);
			assert_int_equal(plan.time_ns, 2 * gather.time_ns);
		}
		optree_plan_fini(&gather);
		optree_plan_fini(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_on_small_rings),
		cmocka_unit_test(within_reach),
		cmocka_unit_test(unsupported_ones_say_so),
		cmocka_unit_test(reductions_of_every_algorithm),
	};

	return cmocka_run_group_tests_name("optree/collectives", tests, NULL,
					   NULL);
}
