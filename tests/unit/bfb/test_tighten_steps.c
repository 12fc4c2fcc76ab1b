/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers in other steps: right, never slower, and faster where known. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/schedule/schedule.h"
#include "tests/unit/schedule/common.h"

static struct coll_sched *overlapped(const struct coll_sched *s)
{
	struct err err = { 0 };
	struct coll_sched *o;

	must(coll_tighten_steps(s, &o, &err), &err);
	return o;
}

/* A copy that was not proven: the verifier replays it. */
static struct coll_sched *again(const struct coll_sched *s)
{
	struct coll_sched *copy = blank_copy(s), *flat = unfolded(s);
	struct err err = { 0 };
	int64_t n;
	const struct coll_xfer *x = coll_xfers(flat, &n);

	for (int64_t i = 0; i < n; i++) {
		must(coll_add(copy, &x[i], &err), &err);
	}
	finish(copy);
	coll_free(flat);
	return copy;
}

/* Takes s over. Returns whether T_B fell. */
static bool check(struct coll_sched *s)
{
	struct coll_sched *o = overlapped(s), *copy = again(o);
	struct coll_report before, after;
	struct err err = { 0 };
	bool fell;

	coll_report_init(&before);
	coll_report_init(&after);
	must(coll_verify(s, &before, &err), &err);
	must(coll_verify(copy, &after, &err), &err);
	fell = mpq_cmp(after.bandwidth_factor, before.bandwidth_factor) < 0;
	assert_true(fell || mpq_equal(after.bandwidth_factor,
				      before.bandwidth_factor));
	assert_true(after.steps <= before.steps);
	assert_int_equal(before.chunk_hops, after.chunk_hops);
	coll_report_fini(&before);
	coll_report_fini(&after);
	coll_free(copy);
	coll_free(o);
	coll_free(s);
	return fell;
}

static struct coll_sched *batches(enum coll_kind kind, const char *expr, int k)
{
	struct coll_sched *s = bfb(kind, expr), *p;
	struct err err = { 0 };

	must(coll_pipeline(s, k, &p, &err), &err);
	coll_free(s);
	return p;
}

static void test_never_slower(void **state)
{
	static const char *const exprs[] = {
		"GenKautz(2,16)", "GenKautz(3,20)", "DBJMod(2,4)", "K(2,3)",
		"Mesh(3,4)", "Xpander(3,5,1)", "Jellyfish(14,3,2)",
		"Prod(Cap(Ring(4),2),Ring(5))", "L(K(2,3))", "Torus(3,4)",
		"Cap(UniRing(1,5),3)", "K(2)",
	};
	static const enum coll_kind kinds[] = { COLL_ALLGATHER,
						COLL_REDUCE_SCATTER,
						COLL_ALLREDUCE };

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(*exprs); i++) {
		for (int k = 0; k < 3; k++) {
			check(bfb(kinds[k], exprs[i]));
			check(batches(kinds[k], exprs[i], 5));
		}
	}
}

/* The same T_B as batches alone have with eight more. */
static void test_gains(void **state)
{
	struct coll_sched *s = batches(COLL_ALLREDUCE, "GenKautz(2,16)", 8);
	struct coll_sched *o = overlapped(s);

	(void)state;
	assert_factor(s, "117/32", "2");
	assert_factor(o, "229/64", "2");
	assert_int_equal(coll_steps(o), 15);
	coll_free(o);
	coll_free(s);
	assert_true(check(batches(COLL_ALLREDUCE, "Kautz(2,3)", 8)));
}

/* A transfer that waits for nothing moves to an idle link, and what is empty
 * then is left out. */
static void test_idle_steps(void **state)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(3)", 1), *o;

	(void)state;
	for (int u = 0; u < 3; u++) {
		send_part(s, 4 * u, u, (u + 1) % 3, u, 0, 0, COLL_OP_COPY);
		send_part(s, 4 * u + 1, u, (u + 2) % 3, u, 0, 0, COLL_OP_COPY);
	}
	finish(s);
	o = overlapped(s);
	assert_int_equal(coll_steps(o), 1);
	assert_factor(o, "2/3", "2/3");
	coll_free(o);
	coll_free(s);
}

static void test_refusals(void **state)
{
	struct coll_sched *s = paths(COLL_ALLTOALL, "Ring(4)", 1, 0), *o;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(coll_tighten_steps(s, &o, &err), WEFT_EUNSUPPORTED);
	assert_null(o);
	coll_free(s);
	s = paths(COLL_BROADCAST, "Ring(4)", 1, 0);
	assert_int_equal(coll_tighten_steps(s, &o, &err), WEFT_EUNSUPPORTED);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_slower),
		cmocka_unit_test(test_gains),
		cmocka_unit_test(test_idle_steps),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("bfb/tighten_steps", tests, NULL,
					   NULL);
}
