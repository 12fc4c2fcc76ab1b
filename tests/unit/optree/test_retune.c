/* SPDX-License-Identifier: Apache-2.0 */
/* Retuning in the dark: the timeline of every kind of plan is proven, keeps
 * the time that was said, and any change to it is found. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "optree/private.h"
#include "tests/unit/world.h"

static struct optree_params params(int n, int channels, int64_t bytes)
{
	return (struct optree_params){
		.n = n, .channels = channels, .fibres = 1,
		.shard_bytes = bytes, .channel_bps = 40000000000,
		.alpha_ns = 25000, .overlap = true,
	};
}

static int64_t end_ns(const struct optree_params *p,
		      const struct optree_plan *plan,
		      const struct retune_timeline *t)
{
	__int128 unit = (__int128)p->channel_bps * plan->chunks;

	return (int64_t)((t->end[t->steps - 1] + unit - 1) / unit);
}

/* Expanding proves it already. */
static void check(const struct optree_params *p, enum coll_kind kind)
{
	struct optree_plan plan;
	struct retune_timeline t;
	struct err err = { 0 };

	if (optree_collective(p, kind, 0, OPTREE_AUTO, &plan, &err) ||
	    optree_plan_expand(p, &plan, &err)) {
		fail_msg("n=%d w=%d d=%lld kind %d: %s", p->n, p->channels,
			 (long long)p->shard_bytes, (int)kind, err.msg);
	}
	retune_timeline(p, plan.sched, &t);
	assert_int_equal(retune_check(p, plan.sched, &t, &err), 0);
	assert_true(end_ns(p, &plan, &t) <= plan.time_ns);
	retune_fini(&t);
	optree_plan_fini(&plan);
}

/* On some of the nodes of a larger ring. */
static void spread(struct rng *rng, struct optree_params *p, int32_t *at)
{
	p->ring_nodes = 0;
	for (int v = 0; v < p->n; v++) {
		at[v] = p->ring_nodes;
		p->ring_nodes += 1 + (int)rng_below(rng, 3);
	}
	p->at = at;
}

static void every_kind_of_plan_is_proven(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
		COLL_ALLTOALL, COLL_BROADCAST };
	struct optree_fibre light[] = { { RWA_CW, 0, 0, 0 }, { RWA_CCW, 0, 0, 0 } };
	int32_t at[64];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21);
	for (int k = 0; k < ALL_OR_SOME(100, 20); k++) {
		struct optree_params p = params(
			2 + (int)rng_below(&rng, 40),
			1 + (int)rng_below(&rng, 20),
			1 + (int64_t)rng_below(&rng, k % 2 ? 5000 : 900000));

		p.fibres = 1 + k % 2;
		p.convert_ns = k % 3 ? (int64_t)rng_below(&rng, 25001) : 0;
		p.line = k % 4 == 3;
		if (k % 4 == 1) {
			light[0].channels = 1 + (int)rng_below(&rng, (uint64_t)p.channels);
			light[1].channels = 1 + (int)rng_below(&rng, (uint64_t)p.channels);
			p.light = light;
			p.n_light = 2;
			p.line = k % 8 == 1;
		}
		if (k % 3 == 1) {
			spread(&rng, &p, at);
		}
		p.span_delay_ns = k % 5 == 4 || k % 2 ? 0 : (int64_t)rng_below(&rng, 3000);
		check(&p, kinds[k % 5]);
	}
}

static void faulty(const struct optree_params *p, const struct coll_sched *s,
		   const struct retune_timeline *t)
{
	struct err err = { 0 };

	assert_int_equal(retune_check(p, s, t, &err), WEFT_EVERIFY);
	assert_true(err.msg[0] != '\0');
}

/* A resonator set a step too early, or not, or the other path; a step that
 * begins too early or is too short. */
static void doctored_timelines_are_refused(void **state)
{
	struct optree_params p = params(20, 6, 40000);
	struct optree_plan plan;
	struct retune_timeline t;
	struct err err;
	int later = 0;

	(void)state;
	p.convert_ns = 20000;
	assert_int_equal(optree_collective(&p, COLL_ALLTOALL, 0,
					   OPTREE_AUTO, &plan, &err), 0);
	assert_int_equal(optree_plan_expand(&p, &plan, &err), 0);
	assert_true(coll_steps(plan.sched) > 2);
	retune_timeline(&p, plan.sched, &t);
	for (size_t k = 0; k < t.changes.n; k++) {
		struct retune_change *c = &t.changes.v[k], keep = *c;

		later += c->after >= 0;
		c->after--;
		faulty(&p, plan.sched, &t);
		*c = keep;
		c->after = c->step;
		faulty(&p, plan.sched, &t);
		*c = keep;
		c->on = !c->on;
		faulty(&p, plan.sched, &t);
		*c = keep;
		c->resonator = (c->resonator + 2) % 480;
		faulty(&p, plan.sched, &t);
		*c = keep;
	}
	assert_true(later > 0);
	for (int k = 0; k < t.steps; k++) {
		t.begin[k]--;
		faulty(&p, plan.sched, &t);
		t.begin[k]++;
		t.end[k]--;
		faulty(&p, plan.sched, &t);
		t.end[k]++;
	}
	assert_int_equal(retune_check(&p, plan.sched, &t, &err), 0);
	t.changes.n--;
	faulty(&p, plan.sched, &t);
	t.steps--;
	faulty(&p, plan.sched, &t);
	retune_fini(&t);
	optree_plan_fini(&plan);
}

/* The plan says what the ring can: less is refused. */
static void a_time_that_cannot_be_kept_is_refused(void **state)
{
	struct optree_params p = params(30, 4, 4000);
	struct optree_plan plan;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(optree_make(&p, OPTREE_COMPOSED, &plan, &err), 0);
	plan.time_ns--;
	assert_int_equal(optree_plan_expand(&p, &plan, &err), WEFT_EVERIFY);
	assert_null(plan.sched);
	optree_plan_fini(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_plan_is_proven),
		cmocka_unit_test(doctored_timelines_are_refused),
		cmocka_unit_test(a_time_that_cannot_be_kept_is_refused),
	};

	return cmocka_run_group_tests_name("optree/retune", tests, NULL, NULL);
}
