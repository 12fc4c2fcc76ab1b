/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of twelve families of digraphs of 8 to 64 ranks and five collectives,
 * in place and out of place, run on bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/mscclpp/mscclpp.h"
#include "tests/unit/msccl/lowered.h"
#include "tests/unit/mscclpp/mscclpp_sim.h"
#include "tests/unit/world.h"

/* True when the plan fits the runtime and ran. */
static bool plan_of(enum coll_kind kind, const char *expr, bool inplace)
{
	struct coll_sched *s = of_family(kind, expr);
	struct err err = { 0 };
	struct buf b = { 0 };
	int rc = mscclpp_export(s, inplace, &b, &err);

	if (rc != WEFT_ELIMIT) {
		must(rc, &err);
		if (!psim_text(buf_cstr(&b), 2, 7)) {
			fail_msg("%s of %s fails in the simulator", coll_kind_name(kind), expr);
		}
	}
	buf_fini(&b);
	coll_free(s);
	return rc == 0;
}

static void plans_of(enum coll_kind kind)
{
	int ran = 0, all = 0;

	for (int f = 0; f < 12; f++) {
		for (int n = 0; n < ALL_OR_SOME(4, 1); n++) {
			for (int in = 0; in <= (kind != COLL_ALLTOALL); in++) {
				ran += plan_of(kind, families[f][n], in);
				all++;
			}
		}
	}
	print_message("# %s: %d of %d plans fit the runtime's limits, and ran\n",
		      coll_kind_name(kind), ran, all);
	assert_true(2 * ran > all);
}

static void test_allgather(void **state)
{
	(void)state;
	plans_of(COLL_ALLGATHER);
}

static void test_reduce_scatter(void **state)
{
	(void)state;
	plans_of(COLL_REDUCE_SCATTER);
}

static void test_allreduce(void **state)
{
	(void)state;
	plans_of(COLL_ALLREDUCE);
}

static void test_alltoall(void **state)
{
	(void)state;
	plans_of(COLL_ALLTOALL);
}

static void test_broadcast(void **state)
{
	(void)state;
	plans_of(COLL_BROADCAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allgather),
		cmocka_unit_test(test_reduce_scatter),
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_alltoall),
		cmocka_unit_test(test_broadcast),
	};

	return cmocka_run_group_tests_name("mscclpp/every_plan", tests, NULL, NULL);
}
