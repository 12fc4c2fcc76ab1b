/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps on servers of several ranks: what runs within them takes their links' time and no port;
 * what has one rank a server is planned as though servers were not there; random steps are what
 * they say of themselves, also when they are written and read again, and no faster than their
 * bounds; wider links inside do not make them slower.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/workload/workload.h"
#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

static const struct workload_params usual = { .ports = 2, .link_bps = 200000000000,
					      .alpha_ns = 10000, .change_ns = -1,
					      .max_changes = -1 };

/* Servers of n ranks on one switch, each rank with its ports; axes of these sizes. */
static struct workload *servers(int n, int64_t gbytes, const int *sizes, int n_axes)
{
	char expr[64], name[8];
	struct workload *w;
	struct err err = { 0 };
	int at[64];

	workload_new(&w);
	for (int i = 0; i < n_axes; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		must(workload_add_axis(w, name, sizes[i], &err), &err);
	}
	for (int i = 0; i < n; i++) {
		at[i] = i;
	}
	snprintf(expr, sizeof(expr), "Cap(Star(%d),%lld)", n, (long long)gbytes);
	if (n > 1) {
		must(workload_set_server(w, expr, at, &err), &err);
	}
	return w;
}

static void add(struct workload *w, enum coll_kind kind, uint32_t axes, int64_t bytes)
{
	struct workload_op op = { .kind = kind, .axes = axes, .bytes = bytes };
	struct workload_step step = { .times = 1 };
	struct err err = { 0 };
	char name[8];

	snprintf(name, sizeof(name), "c%zu", w->ops.n);
	op.name = name;
	must(workload_add_op(w, &op, &err), &err);
	for (size_t i = 0; i < w->ops.n; i++) {
		vec_push(&step.list, (struct workload_step){ .ops = UINT32_C(1) << i });
	}
	must(workload_count(w, &step, &err), &err);
	workload_step_fini(&step);
}

/* Made and held against itself, and again once it was written and read. */
static struct workload_plan *planned(const struct workload *w, const struct workload_params *p)
{
	struct workload_plan *plan, *copy;
	struct buf text = { 0 }, again = { 0 };
	struct err_list errs = { 0 };
	struct workload *v;
	struct topo *light;
	struct err err = { 0 };

	must(workload_make_plan(w, p, &plan, &err), &err);
	must(workload_make_schedules(w, plan, &err), &err);
	must(workload_light_topo(w, &plan->lights.v[0], &light, &err), &err);
	must(workload_check(w, plan, &light, &err), &err);
	workload_to_json(w, plan, &text);
	assert_int_equal(workload_from_json("t", text.data, text.len, &v, &copy, &errs), 0);
	workload_to_json(v, copy, &again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
	for (size_t i = 0; i < copy->uses.n; i++) {
		copy->uses.v[i].sched = plan->uses.v[i].sched;
	}
	must(workload_check(v, copy, &light, &err), &err);
	for (size_t i = 0; i < copy->uses.n; i++) {
		copy->uses.v[i].sched = NULL;
		assert_true(plan->uses.v[i].time_ns >= plan->uses.v[i].bound_ns - 1);
	}
	assert_true(plan->bound.still_ns <= plan->time_ns);
	assert_true(plan->bound.any_ns <= plan->time_ns);
	topo_free(light);
	workload_plan_free(copy);
	workload_free(v);
	buf_fini(&text);
	buf_fini(&again);
	return plan;
}

/* 128 MiB within servers of 8: seven eighths over links of 300 GB/s. With two groups a server each
 * has its ranks' own links. */
static void inside(void **state)
{
	struct workload *w = servers(8, 300, (int[]){ 4, 2, 4 }, 3);
	struct workload_plan *plan;

	(void)state;
	add(w, COLL_ALLGATHER, 6, 128 << 20);
	add(w, COLL_REDUCE_SCATTER, 4, 128 << 20);
	add(w, COLL_ALLGATHER, 1, 64 << 20);
	plan = planned(w, &usual);
	assert_float_equal(plan->uses.v[0].time_ns, 10000 + (128 << 20) * 7.0 / 8 / 300, 1);
	assert_float_equal(plan->uses.v[1].time_ns, 10000 + (128 << 20) * 3.0 / 4 / 300, 1);
	assert_float_equal(plan->uses.v[0].bound_ns, plan->uses.v[0].time_ns, 1);
	assert_int_equal(plan->lights.v[0].shares.n, 1);
	assert_int_equal(plan->lights.v[0].shares.v[0].axes, 1);
	assert_int_equal(plan->lights.v[0].shares.v[0].ports, 2);
	workload_plan_free(plan);
	workload_free(w);
}

/* Axes with one rank a server: as on hosts of one rank. */
static void rails(void **state)
{
	struct workload *w = servers(8, 300, (int[]){ 4, 6, 8 }, 3);
	struct workload *alone = servers(1, 0, (int[]){ 4, 6 }, 2);
	struct workload_plan *a, *b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		add(i ? alone : w, COLL_ALLREDUCE, 1, 64 << 20);
		add(i ? alone : w, COLL_ALLTOALL, 2, 16 << 20);
		add(i ? alone : w, COLL_ALLGATHER, 3, 32 << 20);
	}
	a = planned(w, &usual);
	b = planned(alone, &usual);
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->bound.still_ns, b->bound.still_ns);
	workload_plan_free(a);
	workload_plan_free(b);
	workload_free(w);
	workload_free(alone);
}

/* Each of 32 ranks takes in 31 shards of 32, over two ports and its link inside, 25 + 25 + 300
 * GB/s. Of an all-reduce that is so twice, as the sum of all that comes in. A bound whose
 * certificate says that the ports decide is below, and as true. */
static void rank_bounds(void **state)
{
	const double shards = (double)(1 << 30) * 31 / 32 / 350;

	(void)state;
	for (int phases = 1; phases <= 2; phases++) {
		struct workload *w = servers(8, 300, (int[]){ 4, 8 }, 2);
		struct workload_plan *plan;
		struct topo *light;
		struct err err;

		add(w, phases == 1 ? COLL_ALLGATHER : COLL_ALLREDUCE, 3, 1 << 30);
		plan = planned(w, &usual);
		assert_float_equal(plan->bound.still_ns, 10000 + phases * shards, 1);
		assert_float_equal(plan->bound.any_ns, 10000 + phases * shards, 1);
		assert_true(plan->time_ns < 1.02 * (double)plan->bound.still_ns);
		must(workload_light_topo(w, &plan->lights.v[0], &light, &err), &err);
		plan->bound.weights.v[0].y = 1;
		assert_int_equal(workload_check(w, plan, &light, &err), WEFT_EVERIFY);
		plan->bound.still_ns = 9999 + phases * ((int64_t)(1 << 30) * 3 / 4 / 400);
		must(workload_check(w, plan, &light, &err), &err);
		topo_free(light);
		workload_plan_free(plan);
		workload_free(w);
	}
}

static int below(struct rng *rng, int n)
{
	return (int)rng_below(rng, (uint64_t)n);
}

static void steps(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCE_SCATTER,
						COLL_ALLREDUCE, COLL_ALLTOALL };
	const int many = getenv("SERVER_STEPS") ? atoi(getenv("SERVER_STEPS")) : 12;

	(void)state;
	for (int k = 0; k < many; k++) {
		struct rng r;
		int g, outer, within;
		struct workload_params p = usual;
		int64_t before = INT64_MAX;

		if (!in_turn((size_t)k, 2)) {
			continue;
		}
		rng_seed(&r, (uint64_t)k);
		g = 2 << below(&r, 2);
		outer = 2 + below(&r, 3);
		within = g / (below(&r, 2) ? 2 : 1);
		p.ports = 2 + below(&r, 3);
		for (int64_t cap = 100; cap <= 10000; cap *= 10) {
			/* The middle axis is partly in servers. */
			const int sizes[] = { 2, outer * (g / within), within };
			struct workload *w = servers(g, cap, sizes, 3);
			struct rng again = r;
			struct workload_plan *plan;

			for (int i = 0; i < 3; i++) {
				enum coll_kind kind = kinds[below(&again, 4)];
				uint32_t axes = 1 + (uint32_t)below(&again, 7);

				add(w, kind, axes, 1 << (12 + below(&again, 14)));
			}
			plan = planned(w, &p);
			assert_true(plan->time_ns <= before);
			before = plan->time_ns;
			workload_plan_free(plan);
			workload_free(w);
		}
	}
}

static void refusals(void **state)
{
	struct workload *w = servers(1, 0, (int[]){ 4, 6 }, 2);
	int at[8] = { 0 };
	struct workload_plan *plan;
	struct workload_op op = { .name = (char *)"s", .shift = 1, .axes = 2, .bytes = 1 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(workload_set_server(w, "Star(4)", at, &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "axis a1: 6 ranks, where 4 are in one server");
	assert_int_equal(workload_set_server(w, "Star(7)", at, &err), WEFT_EINVAL);
	assert_int_equal(workload_set_server(w, "Star(48)", at, &err), WEFT_EINVAL);
	assert_int_equal(workload_set_server(w, "Star(", at, &err), WEFT_EINVAL);
	must(workload_set_server(w, "Star(2)", at, &err), &err);
	assert_int_equal(workload_servers(w, 3), 12);
	assert_int_equal(workload_add_op(w, &op, &err), WEFT_EUNSUPPORTED);
	workload_free(w);
	/* Of its ranks 0 and 1 one has an arc to the other, of 2 and 3 the other to the one. */
	w = servers(1, 0, (int[]){ 2, 2, 2 }, 3);
	for (int i = 0; i < 4; i++) {
		at[i] = i;
	}
	must(workload_set_server(w, "GenKautz(2,4)", at, &err), &err);
	add(w, COLL_ALLGATHER, 4, 1 << 20);
	add(w, COLL_ALLGATHER, 1, 1 << 20);
	must(workload_make_plan(w, &usual, &plan, &err), &err);
	assert_int_equal(workload_make_schedules(w, plan, &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "c0: its groups are not alike within a server");
	workload_plan_free(plan);
	workload_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inside),
		cmocka_unit_test(rails),
		cmocka_unit_test(rank_bounds),
		cmocka_unit_test(steps),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
