/* SPDX-License-Identifier: Apache-2.0 */
/* Two searches beside each other: the same answer on one thread and two. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/base/number/rng.h"
#include "rwa/mesh/mesh.h"

/* A ring with chords, demands at random; some with pairs and ranges. */
static struct rwa_mesh *draw(struct rng *rng, int k)
{
	int n = 6 + (int)rng_below(rng, 5);
	struct rwa_mesh *m;

	assert_int_equal(rwa_mesh_new_ring(n, 1, &m, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct rwa_mesh_arc a = { i, i + 3, 1, 0, false };

		assert_int_equal(rwa_mesh_add_arc(m, &a, NULL), 0);
	}
	for (int i = 0; i < 3 * n; i++) {
		int32_t s = (int32_t)rng_below(rng, (uint64_t)n);
		int32_t hop = 1 + (int32_t)rng_below(rng, (uint64_t)n - 1);
		struct rwa_mesh_demand d = { s, (s + hop) % n, 1,
					     k % 4 == 3 && i % 5 == 0 };

		assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
	}
	return m;
}

static void solve(const struct rwa_mesh *m, int channels, int threads,
		  struct rwa_mesh_result *res)
{
	struct rwa_mesh_options opt = { .channels = channels, .seed = 9,
					.threads = threads };
	struct err err = { 0 };

	if (rwa_mesh_solve(m, &opt, res, &err)) {
		fail_msg("%s", err.msg);
	}
}

static void threads_change_nothing(void **state)
{
	struct rng rng;
	int differ = 0;

	(void)state;
	rng_seed(&rng, 14);
	for (int k = 0; k < 8; k++) {
		struct rwa_mesh *m = draw(&rng, k);
		struct rwa_mesh_result one, two, single;
		int channels = k % 2 ? 3 : 0;
		const struct rwa_assignment *a = &one.assignment;
		const struct rwa_assignment *b = &two.assignment;

		solve(m, channels, 1, &one);
		solve(m, channels, 2, &two);
		solve(m, channels, 0, &single);
		assert_int_equal(one.channels, two.channels);
		assert_int_equal(one.bound, two.bound);
		assert_string_equal(one.method, two.method);
		assert_string_equal(one.proof, two.proof);
		assert_int_equal(a->paths.n, b->paths.n);
		assert_int_equal(a->hops.n, b->hops.n);
		assert_memory_equal(a->paths.v, b->paths.v,
				    a->paths.n * sizeof(*a->paths.v));
		assert_memory_equal(a->hops.v, b->hops.v,
				    a->hops.n * sizeof(*a->hops.v));
		/* The first of the two is the single one; the other may win. */
		assert_true(one.lightpaths >= single.lightpaths);
		differ += one.assignment.hops.n != single.assignment.hops.n ||
			  memcmp(a->hops.v, single.assignment.hops.v,
				 a->hops.n * sizeof(*a->hops.v)) != 0;
		rwa_mesh_result_fini(&one);
		rwa_mesh_result_fini(&two);
		rwa_mesh_result_fini(&single);
		rwa_mesh_free(m);
	}
	print_message("# of 8: the other search won %d\n", differ);
}

static void only_so_many_threads(void **state)
{
	struct rwa_mesh_options opt = { .threads = 3 };
	struct rwa_mesh_result res;
	struct rwa_mesh *m;

	(void)state;
	assert_int_equal(rwa_mesh_new_ring(4, 1, &m, NULL), 0);
	assert_int_equal(rwa_mesh_all_to_all(m, NULL), 0);
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, NULL), WEFT_EINVAL);
	rwa_mesh_free(m);
}

static void budgets(void **state)
{
	struct rwa_mesh_options opt = { .work = 300, .seed = 4 };
	struct rwa_mesh_result one, two, hurried;
	atomic_bool met = false, late = false;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21);
	for (int k = 0; k < 4; k++) {
		struct rwa_mesh *m = draw(&rng, k);

		/* The same budget places the same, however long it takes. */
		opt.deadline = deadline_in(0, NULL);
		assert_int_equal(rwa_mesh_solve(m, &opt, &one, NULL), 0);
		opt.deadline = deadline_in(3600 * INT64_C(1000000000), &met);
		assert_int_equal(rwa_mesh_solve(m, &opt, &two, NULL), 0);
		assert_int_equal(one.assignment.hops.n, two.assignment.hops.n);
		assert_memory_equal(one.assignment.hops.v, two.assignment.hops.v,
				    one.assignment.hops.n * sizeof(*one.assignment.hops.v));
		/* Time that is over before it begins still has an answer. */
		assert_false(met);
		opt.deadline = deadline_in(1, &late);
		assert_int_equal(rwa_mesh_solve(m, &opt, &hurried, NULL), 0);
		assert_int_equal(hurried.lightpaths, m->lightpaths);
		rwa_mesh_result_fini(&one);
		rwa_mesh_result_fini(&two);
		rwa_mesh_result_fini(&hurried);
		rwa_mesh_free(m);
	}
	assert_true(late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_change_nothing),
		cmocka_unit_test(only_so_many_threads),
		cmocka_unit_test(budgets),
	};

	return cmocka_run_group_tests_name("mesh/portfolio", tests, NULL, NULL);
}
