/* SPDX-License-Identifier: Apache-2.0 */
/* Time-stepped all-to-all: the sums meet the optimum of the flow, schedules
 * verify and run when lowered, limits and errors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/lowered.h"
#include "tests/unit/msccl/kernel_sim.h"

static struct coll_sched *make(const struct topo *t, int steps,
			       struct mcf_steps_info *info)
{
	struct mcf_steps_options opt = {
		.steps = steps, .flow = { .gap = 1e-6 },
	};
	struct coll_sched *s;
	struct err err = { 0 };

	must(mcf_steps(t, &opt, &s, info, &err), &err);
	must(coll_verify(s, NULL, &err), &err);
	assert_int_equal(coll_kind_of(s), COLL_ALLTOALL);
	assert_true(coll_steps(s) <= info->steps);
	assert_true(info->stepped >= info->total * (1 - 1e-6));
	assert_true(info->total >= info->flow.bound * (1 - 1e-6));
	return s;
}

/* The program as text, run as the kernels do. */
static void run_lowered(const struct coll_sched *s)
{
	struct buf b = { 0 };
	struct err err = { 0 };

	must(msccl_export(s, MSCCL_AZURE, &b, &err), &err);
	if (!kern_text(buf_cstr(&b), false)) {
		fail_msg("the lowered schedule fails in the simulator");
	}
	buf_fini(&b);
}

/* Sum of the U_k = U of the flow, and the schedule has nothing above. */
static void test_optimal(void **state)
{
	static const struct {
		const char *expr;
		double u;
		int steps;
	} known[] = {
		{ "Hypercube(3)", 4, 3 }, { "TwistedHypercube(3)", 4, 2 },
		{ "K(4,4)", 5 / 2., 2 }, { "Torus(3,3)", 3, 2 },
		{ "Torus(3,3,3)", 9, 3 }, { "K(2)", 1, 1 },
		{ "Ring(5)", 3, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i].expr);
		struct mcf_steps_info info;
		struct coll_sched *s = make(t, 0, &info);

		if (fabs(info.stepped / known[i].u - 1) > 1e-6 ||
		    info.steps != known[i].steps) {
			fail_msg("%s: %d steps, %.9g", known[i].expr,
				 info.steps, info.stepped);
		}
		run_lowered(s);
		coll_free(s);
		topo_free(t);
	}
}

/* More steps never cost more; from some number on the flow's optimum. */
static void test_more_steps(void **state)
{
	struct topo *t = graph_of("GenKautz(2,7)");
	double last = HUGE_VAL;

	(void)state;
	for (int k = topo_diameter(t); k < 7; k++) {
		struct mcf_steps_info info;
		struct coll_sched *s = make(t, k, &info);

		assert_int_equal(info.steps, k);
		assert_true(info.total <= last * (1 + 1e-6));
		assert_true(info.bound <= info.total);
		last = info.total;
		coll_free(s);
	}
	topo_free(t);
}

/* Parallel arcs, loops and unequal capacities, without translations. */
static void test_random_digraphs(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct mcf_steps_info info;
		struct err err = { 0 };
		struct coll_sched *s;
		struct topo *t;
		struct rng rng;
		int n = 3 + (int)seed % 4;

		rng_seed(&rng, seed);
		must(topo_new(n, &t, &err), &err);
		for (int i = 0; i < 3 * n; i++) {
			int v = (int)rng_below(&rng, (uint64_t)n);

			must(topo_add_arc(t, i % n, i < n ? (i + 1) % n : v,
					  1 + (int64_t)rng_below(&rng, 3), 0,
					  &err), &err);
		}
		topo_freeze(t);
		s = make(t, 0, &info);
		run_lowered(s);
		coll_free(s);
		topo_free(t);
	}
}

/* Fewer chunks for a loss that is allowed. */
static void test_loss(void **state)
{
	struct mcf_steps_options opt = { .flow = { .gap = 1e-6 },
					 .loss = 0.25 };
	struct topo *t = graph_of("Torus(3,3,3)");
	struct mcf_steps_info exact, rough;
	struct coll_sched *s = make(t, 0, &exact);
	struct err err = { 0 };

	(void)state;
	coll_free(s);
	must(mcf_steps(t, &opt, &s, &rough, &err), &err);
	assert_true(rough.chunks < exact.chunks);
	assert_true(rough.stepped <= rough.total * 1.25 * (1 + 1e-6));
	coll_free(s);
	topo_free(t);
}

static void test_refused(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 2 }, { 2, 1 } };
	volatile bool cancel = true;
	struct mcf_steps_options opt = { .steps = 2 };
	struct topo *t = graph_of("Hypercube(3)");
	struct coll_sched *s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(mcf_steps(t, &opt, &s, NULL, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "diameter, 3"));
	opt = (struct mcf_steps_options){ .flow.cancel = &cancel };
	assert_int_equal(mcf_steps(t, &opt, &s, NULL, &err), WEFT_ECANCELED);
	assert_null(s);
	topo_free(t);
	opt = (struct mcf_steps_options){ .flow.gap = 1 };
	t = graph_from(3, 3, arcs);
	assert_int_equal(mcf_steps(t, &opt, &s, NULL, &err),
			 WEFT_EINFEASIBLE);
	topo_free(t);
	t = graph_of("GenKautz(4,200)");
	assert_int_equal(mcf_steps(t, &opt, &s, NULL, &err), WEFT_ELIMIT);
	topo_free(t);
	must(topo_new(3, &t, &err), &err);
	topo_set_node(t, 1, TOPO_SWITCH, 0);
	for (int u = 0; u < 3; u++) {
		must(topo_add_arc(t, u, (u + 1) % 3, 1, 0, &err), &err);
	}
	topo_freeze(t);
	assert_int_equal(mcf_steps(t, &opt, &s, NULL, &err),
			 WEFT_EUNSUPPORTED);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_optimal),
		cmocka_unit_test(test_more_steps),
		cmocka_unit_test(test_random_digraphs),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
