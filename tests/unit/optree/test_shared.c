/* Jobs on parts of a ring, alone and side by side. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "optree/optree.h"

static struct optree_params params(int n, int channels, int64_t bytes)
{
	return (struct optree_params){
		.n = n, .channels = channels, .fibres = 1,
		.shard_bytes = bytes, .channel_bps = 40000000000,
		.alpha_ns = 25000,
	};
}

static void make(const struct optree_params *p, struct optree_plan *out)
{
	struct err err = { 0 };

	if (optree_make(p, OPTREE_AUTO, out, &err) ||
	    optree_plan_expand(p, out, &err)) {
		fail_msg("n=%d w=%d: %s", p->n, p->channels, err.msg);
	}
}

static void clashes_are_found(void **state)
{
	static const int32_t every_other[] = { 0, 2, 4, 6, 8, 10, 12, 14 };
	struct rwa_ring ring = { 16, 1, 4 };
	struct optree_params p = params(16, 4, 4096), q = params(8, 4, 4096);
	struct optree_plan a, b;
	struct optree_shared jobs[2];
	struct err err = { 0 };

	(void)state;
	make(&p, &a);
	make(&q, &b);
	jobs[0] = (struct optree_shared){ "left", a.sched, NULL, false };
	jobs[1] = (struct optree_shared){ "right", b.sched, every_other,
					  false };
	assert_int_equal(optree_check_shared(&ring, jobs, 1, &err), 0);
	assert_int_equal(optree_check_shared(&ring, jobs + 1, 1, &err), 0);
	assert_int_equal(optree_check_shared(&ring, jobs, 2, &err),
			 WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "jobs left and right both use "
					"channel"));
	jobs[0].line = true;
	assert_int_equal(optree_check_shared(&ring, jobs, 1, &err),
			 WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "leaves its segment"));
	ring.channels = 3;
	jobs[0].line = false;
	assert_int_equal(optree_check_shared(&ring, jobs, 1, &err),
			 WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "is not on the ring"));
	optree_plan_fini(&a);
	optree_plan_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clashes_are_found),
	};

	return cmocka_run_group_tests_name("optree/shared", tests, NULL, NULL);
}
