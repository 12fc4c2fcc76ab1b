/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lights that have lost circuits: what random steps then say of themselves holds against the light
 * without these, also when it is written and read again; nothing is faster than it was, what no gap
 * serves stays as it is, and what has no way left is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/workload/private.h"
#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

static int below(struct rng *rng, int n)
{
	return (int)rng_below(rng, (uint64_t)n);
}

static void add(struct workload *w, const char *name, enum coll_kind kind, uint32_t axes,
		int shift, int64_t least)
{
	const struct workload_op op = { .name = (char *)name, .kind = kind, .axes = axes,
					.shift = shift, .bytes = 1 << 22, .min_bytes = least };
	struct err err = { 0 };

	must(workload_add_op(w, &op, &err), &err);
}

/* On 2 x 3 x 4 ranks, in servers of the last axis or not. */
static struct workload *random_step(struct rng *rng, struct workload_params *p)
{
	static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCE_SCATTER,
						COLL_ALLREDUCE, COLL_ALLTOALL };
	const bool servers = below(rng, 3) == 0;
	struct workload_step step = { .times = 1 };
	struct err err = { 0 };
	struct workload *w;

	workload_new(&w);
	for (int i = 0; i < 3; i++) {
		must(workload_add_axis(w, (const char *[]){ "a", "b", "c" }[i], i + 2, &err), &err);
	}
	if (servers) {
		must(workload_set_server(w, "Cap(Star(4),100)", (int[]){ 0, 1, 2, 3 }, &err), &err);
	}
	add(w, "x", kinds[below(rng, 4)], 1 + (uint32_t)below(rng, 7), 0, 0);
	add(w, "y", kinds[below(rng, 4)], 1 + (uint32_t)below(rng, 3), 0,
	    below(rng, 2) ? 1 << 10 : 0);
	add(w, "z", kinds[below(rng, 4)], 2, below(rng, 2) ? 1 : 0, 0);
	for (int i = 0; i < 3; i++) {
		vec_push(&step.list, (struct workload_step){ .ops = UINT32_C(1) << i });
	}
	must(workload_count(w, &step, &err), &err);
	workload_step_fini(&step);
	*p = (struct workload_params){ .ports = 5 + below(rng, 2), .link_bps = 100000000000,
				       .alpha_ns = 1000, .change_ns = below(rng, 2) ? 1000 : -1,
				       .max_changes = -1 };
	return w;
}

/* Of all that the plan says, also of what is read of it. */
static void holds(const struct workload *w, struct workload_plan *plan)
{
	struct topo *lights[WORKLOAD_MAX_OPS];
	struct buf text = { 0 }, again = { 0 };
	struct err_list errs = { 0 };
	struct workload_plan *copy;
	struct err err = { 0 };
	struct workload *v;

	for (size_t i = 0; i < plan->lights.n; i++) {
		must(workload_light_topo(w, &plan->lights.v[i], &lights[i], &err), &err);
	}
	must(workload_check(w, plan, lights, &err), &err);
	workload_to_json(w, plan, &text);
	assert_int_equal(workload_from_json("t", text.data, text.len, &v, &copy, &errs), 0);
	workload_to_json(v, copy, &again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
	for (size_t i = 0; i < plan->lights.n; i++) {
		topo_free(lights[i]);
	}
	workload_plan_free(copy);
	workload_free(v);
	buf_fini(&text);
	buf_fini(&again);
}

/* So many circuits of a light, at random. */
static size_t lose(struct rng *rng, const struct workload *w, const struct workload_light *l,
		   struct workload_gap *gaps)
{
	struct topo *t;
	struct err err;
	size_t n = 0;

	must(workload_light_topo(w, l, &t, &err), &err);
	for (int k = 1 + below(rng, 3); k > 0; k--) {
		const struct topo_arc *arc = topo_arc(t, below(rng, topo_m(t)));

		gaps[n++] = (struct workload_gap){ arc->src, arc->dst };
	}
	topo_free(t);
	return n;
}

static void random_gaps(void **state)
{
	const int many = getenv("GAPS") ? atoi(getenv("GAPS")) : ALL_OR_SOME(12, 4);
	int made = 0;

	(void)state;
	for (int seed = 0; seed < many; seed++) {
		struct workload_gap gaps[4];
		struct workload_params p;
		struct workload_plan *plan;
		struct err err = { 0 };
		struct workload *w;
		struct rng rng;
		int64_t before;
		int light;

		rng_seed(&rng, (uint64_t)seed);
		w = random_step(&rng, &p);
		must(workload_make_plan(w, &p, &plan, &err), &err);
		must(workload_make_schedules(w, plan, &err), &err);
		before = plan->time_ns;
		light = below(&rng, (int)plan->lights.n);
		if (workload_lose(w, plan, light, gaps,
				  lose(&rng, w, &plan->lights.v[light], gaps), &err) == 0) {
			assert_true(plan->time_ns >= before);
			holds(w, plan);
			made++;
		} else {
			assert_int_equal(plan->time_ns, 0);
			assert_non_null(err.msg);
		}
		/* All are back. */
		must(workload_lose(w, plan, light, NULL, 0, &err), &err);
		assert_int_equal(plan->time_ns, before);
		holds(w, plan);
		workload_plan_free(plan);
		workload_free(w);
	}
	assert_true(made > many / 3);
}

/* How many gaps of the rail that begins with `first` are from this position to that. */
static int gaps_of_rail(const struct workload *w, const struct workload_light *l, uint32_t axes,
			int first, int from, int to)
{
	int rail[24], n = 0;

	for (size_t i = 0; i < l->gaps.n; i++) {
		n += workload_rail(w, axes, l->gaps.v[i].from, rail) == from && rail[0] == first &&
		     workload_rail(w, axes, l->gaps.v[i].to, rail) == to && rail[0] == first;
	}
	return n;
}

/* A group lacks a circuit as often as the rail that lacks it most often, no more and no less. */
static void gaps_of_groups(void **state)
{
	(void)state;
	for (int seed = 0; seed < 60; seed++) {
		struct workload_light l = { 0 }, own = { 0 };
		struct workload_params p;
		struct workload *w;
		struct rng rng;
		uint32_t axes;
		int n;

		rng_seed(&rng, (uint64_t)seed);
		w = random_step(&rng, &p);
		axes = 1 + (uint32_t)below(&rng, 7);
		n = workload_servers(w, axes);
		for (int i = 0; i < 20; i++) {
			vec_push(&l.gaps, (struct workload_gap){ below(&rng, 6), below(&rng, 6) });
		}
		group_gaps(w, &l, axes, &own);
		for (int k = 0; k < n * n; k++) {
			int most = 0;

			for (int r = 0; r < 24; r++) {
				int one = gaps_of_rail(w, &l, axes, r, k / n, k % n);

				most = one > most ? one : most;
			}
			for (size_t i = 0; i < own.gaps.n; i++) {
				most -= own.gaps.v[i].from == k / n && own.gaps.v[i].to == k % n;
			}
			assert_int_equal(most, 0);
		}
		vec_fini(&l.gaps);
		vec_fini(&own.gaps);
		workload_free(w);
	}
}

/* A ring of four ranks one way and back, and sends over one circuit each. */
static void cut_off(void **state)
{
	const struct workload_params p = { .ports = 3, .link_bps = 100000000000, .alpha_ns = 1000,
					   .change_ns = -1, .max_changes = -1 };
	struct workload_step step = { .times = 1 };
	struct workload_plan *plan;
	struct err err = { 0 };
	struct workload *w;
	const struct coll_sched *sum;

	(void)state;
	workload_new(&w);
	must(workload_add_axis(w, "a", 3, &err), &err);
	must(workload_add_axis(w, "b", 4, &err), &err);
	add(w, "x", COLL_ALLREDUCE, 2, 0, 0);
	add(w, "y", COLL_ALLREDUCE, 1, 1, 0);
	for (int i = 0; i < 2; i++) {
		vec_push(&step.list, (struct workload_step){ .ops = UINT32_C(1) << i });
	}
	must(workload_count(w, &step, &err), &err);
	workload_step_fini(&step);
	must(workload_make_plan(w, &p, &plan, &err), &err);
	must(workload_make_schedules(w, plan, &err), &err);
	sum = plan->uses.v[0].sched;
	assert_int_equal(workload_lose(w, plan, 0, &(struct workload_gap){ 5, 9 }, 1, &err),
			 WEFT_EVERIFY);
	assert_string_equal(err.msg, "y: no circuit from rank 5 to 9");
	assert_ptr_equal(plan->uses.v[0].sched, sum);
	assert_false(plan->uses.v[0].degraded);
	workload_plan_free(plan);
	workload_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_gaps),
		cmocka_unit_test(gaps_of_groups),
		cmocka_unit_test(cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
