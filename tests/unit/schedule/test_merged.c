/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that are merged on their way, and shards that move alike. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/schedule/simulation/simulate.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/schedule/merged.h"

static void expect_factor(const struct coll_sched *s, int64_t num, int64_t transfers)
{
	struct coll_report r;
	struct err err = { 0 };

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(mpq_cmp_si(r.bandwidth_factor, num, 1), 0);
	assert_int_equal(r.steps, 2);
	assert_int_equal(r.transfers, transfers);
	coll_report_fini(&r);
}

/* A message of several transfers loads its arc once: a vector a step over one of d links. */
static void test_loads(void **state)
{
	(void)state;
	for (int alike = 0; alike < 2; alike++) {
		struct coll_sched *s = merged_moore("Odd(3)", 1, alike);

		assert_true(coll_merges(s) && coll_forwards(s));
		expect_factor(s, 6, 30 * (1 + 2) * 10);
		coll_free(s);
	}
}

static double time_of(const struct coll_sched *s, bool asynchronous)
{
	struct coll_sim_options o = { .asynchronous = asynchronous,
		.cost = { .alpha_ns = 1000, .message_ns = 500, .link_bps = 1000000000,
			  .size_bytes = 10000 } };
	struct coll_sim sim = { 0 };
	struct err err = { 0 };
	double time;

	must(coll_simulate(s, &o, &sim, NULL, &err), &err);
	time = sim.time_ns;
	coll_sim_fini(&sim);
	return time;
}

/* Two steps of 1 us, 0.5 us a message and 80 us for the vector over a link. */
static void test_written_out(void **state)
{
	struct coll_sched *s = merged_moore("Odd(3)", 2, true), *all;
	struct err err = { 0 };

	(void)state;
	must(coll_unfold(s, &all, &err), &err);
	assert_false(coll_is_alike(all));
	expect_factor(all, 6, 30 * (1 + 2) * 10);
	for (int k = 0; k < 2; k++) {
		assert_true(time_of(s, k) > 162999 && time_of(s, k) < 163001);
		assert_true(time_of(all, k) > 162999 && time_of(all, k) < 163001);
	}
	coll_free(all);
	coll_free(s);
}

/* Sums that pass by, over loops too, and take the place of what a rank had. */
static void test_walks(void **state)
{
	(void)state;
	for (int alike = 0; alike < 2; alike++) {
		struct coll_sched *s = merged_walks("GenKautz(2,4)", 3, alike), *out;
		struct err err = { 0 };

		expect_factor(s, 4, 8 * 2 * 4);
		must(coll_unfold(s, &out, &err), &err);
		expect_factor(out, 4, 8 * 2 * 4);
		coll_free(out);
		must(coll_rename(s, (int[]){ 2, 0, 3, 1 }, &out, &err), &err);
		expect_factor(out, 4, 8 * 2 * 4);
		coll_free(out);
		assert_true(time_of(s, false) == time_of(s, true));
		coll_free(s);
		s = merged_chain("UniRing(1,4)", 2, alike);
		must(coll_verify(s, NULL, &err), &err);
		assert_int_equal(coll_steps(s), 6);
		coll_free(s);
	}
}

/* A schedule of the other tests with transfer i changed, or left out. */
static void refuse_in(struct coll_sched *from, int i, struct coll_xfer x, bool gone,
		      const char *what)
{
	struct topo *t = NULL;
	struct coll_sched *s;
	const struct coll_xfer *v;
	struct err err = { 0 };
	int64_t n;

	must(topo_copy(coll_topo(from), &t, &err), &err);
	must(coll_new(COLL_ALLREDUCE, t, 1, 0, 0, &s, &err), &err);
	must(coll_set_alike(s, &err), &err);
	v = coll_xfers(from, &n);
	for (int64_t k = 0; k < n; k++) {
		if (k != i || !gone) {
			must(coll_add(s, k == i ? &x : &v[k], &err), &err);
		}
	}
	must(coll_finish(s, &err), &err);
	assert_int_equal(coll_verify(s, NULL, &err), WEFT_EVERIFY);
	if (!strstr(err.msg, what)) {
		fail_msg("\"%s\" is not in: %s", what, err.msg);
	}
	coll_free(from);
	coll_free(s);
}

static void refuse(int i, struct coll_xfer x, bool gone, const char *what)
{
	refuse_in(merged_moore("Odd(3)", 1, true), i, x, gone, what);
}

static void refuse_walks(int i, struct coll_xfer x, bool gone, const char *what)
{
	refuse_in(merged_walks("GenKautz(2,4)", 1, true), i, x, gone, what);
}

static void test_walks_refused(void **state)
{
	struct coll_sched *s = merged_walks("GenKautz(2,4)", 1, true);
	const struct coll_xfer *v;
	int64_t n;

	(void)state;
	v = coll_xfers(s, &n);
	for (int64_t i = 0; i < n; i++) {
		struct coll_xfer x = v[i];
		const struct topo_arc *a = topo_arc(coll_topo(s), x.arc);

		refuse_walks((int)i, x, true, "");
		x.kept = x.op == COLL_OP_REDUCE ? 1 : 3;	/* added, that is */
		refuse_walks((int)i, x, false, a->src == a->dst ? "a self-loop carries nothing"
				       : x.op == COLL_OP_REDUCE
		       ? "are added to a rank's own, and take its place" : "");
		x.kept = 4 + 4;		/* under another number, which is not sent */
		refuse_walks((int)i, x, false, "");
	}
	coll_free(s);
}

static void test_refused(void **state)
{
	struct coll_sched *s = merged_moore("Odd(3)", 1, true);
	const struct coll_xfer *v;
	int64_t n;

	(void)state;
	v = coll_xfers(s, &n);
	for (int64_t i = 0; i < n; i++) {
		struct coll_xfer x = v[i];

		refuse((int)i, x, true, "");
		if (x.op == COLL_OP_REDUCE) {
			x.kept = (uint16_t)(1 + x.kept % 3);
			refuse((int)i, x, false, "");
			continue;
		}
		x.dest = 9;	/* nothing is kept there */
		refuse((int)i, x, false, "kept under number 9 is forwarded before it has come");
		x = v[i];
		x.op = COLL_OP_REDUCE;	/* own and all that came */
		x.dest = COLL_NO_DEST;
		refuse((int)i, x, false, "a contribution is summed twice");
		x.op = COLL_OP_COPY;
		x.kept = 0;
		refuse((int)i, x, false, "copy of an incomplete sum");
	}
	refuse((int)n - 1, v[0], true, "contributions: that of rank");
	coll_free(s);
}

/* What no schedule is made of. */
static void test_not_added(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "Odd(3)", 1);
	struct coll_xfer x = { .dest = COLL_NO_DEST, .op = COLL_OP_REDUCE, .kept = 22 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(coll_add(s, &x, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "is above twice the ranks plus 1"));
	x.kept = 1;
	x.op = COLL_OP_COPY;
	assert_int_equal(coll_add(s, &x, &err), WEFT_EINVAL);
	must(coll_set_alike(s, &err), &err);
	x = (struct coll_xfer){ .origin = 1, .dest = COLL_NO_DEST, .op = COLL_OP_REDUCE };
	assert_int_equal(coll_add(s, &x, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "as shard 0 does"));
	coll_free(s);
	s = empty(COLL_ALLGATHER, "Odd(3)", 1);
	assert_int_equal(coll_set_alike(s, &err), WEFT_EINVAL);
	coll_free(s);
	s = empty(COLL_ALLREDUCE, "Ring(4097)", 1);
	x = (struct coll_xfer){ .dest = COLL_NO_DEST, .op = COLL_OP_REDUCE, .kept = 1 };
	assert_int_equal(coll_add(s, &x, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "at most 4096 ranks"));
	coll_free(s);
}

/* Random files that are changed somewhere are refused, or as right as they were. */
static void test_files(void **state)
{
	struct coll_sched *s = merged_moore("Odd(3)", 2, true), *out;
	struct err err = { 0 };

	(void)state;
	for (int json = 0; json < 2; json++) {
		struct buf b = { 0 }, again = { 0 };

		(json ? coll_to_json : coll_to_proto)(s, &b);
		must(coll_from_bytes(b.data, b.len, &out, &err), &err);
		assert_true(coll_is_alike(out) && coll_merges(out));
		expect_factor(out, 6, 30 * (1 + 2) * 10);
		(json ? coll_to_json : coll_to_proto)(out, &again);
		assert_int_equal(b.len, again.len);
		assert_memory_equal(b.data, again.data, b.len);
		coll_free(out);
		buf_fini(&again);
		if (json) {	/* not in an older version */
			char *at = strstr(buf_cstr(&b), "\"version\": 6");

			assert_non_null(at);
			at[11] = '5';
			assert_int_equal(coll_from_bytes(b.data, b.len, &out, &err), WEFT_EINVAL);
			assert_non_null(strstr(err.msg, "alike: not in version 5"));
		}
		buf_fini(&b);
	}
	coll_free(s);
}

/* Ranks' parts, other numbers and batches of it are as right. */
static void test_transformed(void **state)
{
	static const int to[] = { 3, 1, 4, 0, 5, 9, 2, 6, 8, 7 };
	struct coll_sched *s = merged_moore("Odd(3)", 1, true), *out;
	struct err err = { 0 };
	int64_t n, all = 0;

	(void)state;
	must(coll_rename(s, to, &out, &err), &err);
	expect_factor(out, 6, 30 * (1 + 2) * 10);
	coll_free(out);
	must(coll_pipeline(s, 2, &out, &err), &err);
	must(coll_verify(out, NULL, &err), &err);
	assert_int_equal(coll_steps(out), 3);
	coll_free(out);
	for (int rank = 0; rank < 10; rank++) {
		must(coll_part_of(s, rank, &out, &err), &err);
		coll_xfers(out, &n);
		all += n;
		assert_true(coll_is_alike(out));
		coll_free(out);
	}
	assert_int_equal(all, 2 * 30 * (1 + 2));
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads), cmocka_unit_test(test_written_out),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_not_added),
		cmocka_unit_test(test_walks), cmocka_unit_test(test_walks_refused),
		cmocka_unit_test(test_files), cmocka_unit_test(test_transformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
