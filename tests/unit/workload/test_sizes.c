/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives whose calls have a range of sizes: at each size what the table has comes within 1 %
 * of the schedule that is made for that size alone on the same light, two ranges take as long
 * where they meet, and files of ranges are what they say.
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
#include "tests/unit/schedule/common.h"

#define SMALLEST INT64_C(1000)
#define LARGEST INT64_C(1000000000)

static struct workload *step(int ranks, enum coll_kind kind)
{
	struct workload_op op = { .name = "x", .kind = kind, .axes = 1, .bytes = LARGEST,
				  .min_bytes = SMALLEST };
	struct workload_step s = { .times = 1 };
	struct err err = { 0 };
	struct workload *w;

	workload_new(&w);
	must(workload_add_axis(w, "a", ranks, &err), &err);
	must(workload_add_axis(w, "b", 2, &err), &err);
	must(workload_add_op(w, &op, &err), &err);
	vec_push(&s.list, (struct workload_step){ .ops = 1 });
	must(workload_count(w, &s, &err), &err);
	workload_step_fini(&s);
	return w;
}

static double time_at(const struct workload_params *p, const struct workload_use *use,
		      int64_t bytes)
{
	struct coll_cost cost = { .alpha_ns = p->alpha_ns, .link_bps = p->link_bps,
				  .size_bytes = bytes };
	struct err err = { 0 };
	int64_t ns;

	must(coll_time(use->sched, NULL, &cost, &ns, NULL, &err), &err);
	return (double)ns;
}

/* What is made for one size on the light of the plan. */
static double best_at(struct workload *w, const struct workload_params *p, int64_t bytes)
{
	struct workload_plan *plan;
	struct err err = { 0 };
	double ns;

	must(workload_make_plan(w, p, &plan, &err), &err);
	w->ops.v[0].min_bytes = w->ops.v[0].bytes = bytes;
	plan->uses.v[0].min_bytes = plan->uses.v[0].max_bytes = bytes;
	must(workload_make_schedules(w, plan, &err), &err);
	ns = plan->uses.v[0].time_ns;
	w->ops.v[0].min_bytes = SMALLEST;
	w->ops.v[0].bytes = LARGEST;
	workload_plan_free(plan);
	return ns;
}

static void check_sizes(struct workload *w, const struct workload_params *p,
			const struct workload_plan *plan)
{
	size_t at = 0;

	for (double size = SMALLEST; size <= LARGEST; size *= 1.7) {
		int64_t bytes = (int64_t)size;

		while (plan->uses.v[at].max_bytes < bytes) {
			at++;
		}
		assert_true(time_at(p, &plan->uses.v[at], bytes) <=
			    1.0101 * best_at(w, p, bytes) + 2);
	}
}

static void check_file(const struct workload *w, struct workload_plan *plan)
{
	struct buf text = { 0 }, again = { 0 };
	struct err_list errs = { 0 };
	struct err err = { 0 };
	struct workload_plan *copy;
	struct workload *v;
	struct topo *light;

	must(workload_light_topo(w, &plan->lights.v[0], &light, &err), &err);
	must(workload_check(w, plan, &light, &err), &err);
	workload_to_json(w, plan, &text);
	assert_int_equal(workload_from_json("t", text.data, text.len, &v, &copy, &errs), 0);
	workload_to_json(v, copy, &again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
	for (size_t i = 0; i + 1 < plan->uses.n; i++) {
		plan->uses.v[i].max_bytes++;
		assert_int_equal(workload_check(w, plan, &light, &err), WEFT_EVERIFY);
		plan->uses.v[i].max_bytes--;
		assert_int_equal(workload_use_number(plan, i), (int)i + 1);
	}
	topo_free(light);
	workload_plan_free(copy);
	workload_free(v);
	buf_fini(&text);
	buf_fini(&again);
}

static size_t check(int ranks, int ports, enum coll_kind kind)
{
	struct workload_params p = { .ports = ports, .link_bps = INT64_C(100000000000),
				     .alpha_ns = 10000, .change_ns = -1, .max_changes = -1 };
	struct workload *w = step(ranks, kind);
	struct workload_plan *plan;
	struct err err = { 0 };
	size_t n;

	must(workload_make_plan(w, &p, &plan, &err), &err);
	must(workload_make_schedules(w, plan, &err), &err);
	for (size_t i = 0; i + 1 < plan->uses.n; i++) {
		const struct workload_use *use = &plan->uses.v[i];
		double here = time_at(&p, use, use->max_bytes);

		assert_int_equal(use[1].min_bytes, use->max_bytes + 1);
		assert_true(fabs(here - time_at(&p, use + 1, use->max_bytes)) <= 3);
		assert_true(fabs(here - use->time_ns) <= 2);
	}
	check_sizes(w, &p, plan);
	check_file(w, plan);
	n = plan->uses.n;
	if (getenv("WORKLOAD_TABLE")) {
		print_message("%s of %d ranks, %d ports: %zu ranges\n", coll_kind_name(kind),
			      ranks, ports, n);
	}
	workload_plan_free(plan);
	workload_free(w);
	return n;
}

static void ranges(void **state)
{
	static const int cases[][2] = { { 6, 1 }, { 8, 2 }, { 12, 3 }, { 16, 2 }, { 20, 4 } };
	size_t most = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (int k = 0; k < 3; k++) {
			static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_ALLREDUCE,
								COLL_ALLTOALL };
			size_t n = check(cases[i][0], cases[i][1], kinds[k]);

			most = n > most ? n : most;
		}
	}
	assert_true(most > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ranges) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
