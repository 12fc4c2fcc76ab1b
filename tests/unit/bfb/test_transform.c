/* SPDX-License-Identifier: Apache-2.0 */
/* Reversal in time and sequences. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "tests/unit/schedule/common.h"

static const char *const exprs[] = {
	"GenKautz(4,25)", "GenKautz(2,7)", "Torus(3,4)", "K(3,4)",
	"UniRing(2,5)", "Hypercube(3)",
};

#define N_EXPRS (sizeof(exprs) / sizeof(exprs[0]))

static struct coll_sched *reverse(const struct coll_sched *s)
{
	struct err err = { 0 };
	struct coll_sched *out;

	must(coll_reverse(s, &out, &err), &err);
	return out;
}

/* T_B and T_L stay, the kind turns; twice is where it began. */
static void test_reverse(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_EXPRS; i++) {
		struct coll_sched *s = bfb(COLL_ALLGATHER, exprs[i]);
		struct coll_sched *r = reverse(s), *back = reverse(r);
		struct coll_report a, b, c;

		coll_report_init(&a);
		coll_report_init(&b);
		coll_report_init(&c);
		must(coll_verify(s, &a, NULL), NULL);
		must(coll_verify(r, &b, NULL), NULL);
		must(coll_verify(back, &c, NULL), NULL);
		assert_int_equal(coll_kind_of(r), COLL_REDUCE_SCATTER);
		assert_int_equal(coll_kind_of(back), COLL_ALLGATHER);
		assert_true(mpq_equal(a.shard_times, b.shard_times));
		assert_true(mpq_equal(a.shard_times, c.shard_times));
		assert_int_equal(a.steps, b.steps);
		assert_int_equal(a.chunk_hops, b.chunk_hops);
		coll_report_fini(&a);
		coll_report_fini(&b);
		coll_report_fini(&c);
		coll_free(s);
		coll_free(r);
		coll_free(back);
	}
}

/* Shards return to where they came from, over arcs turned round. */
static void test_reverse_alltoall(void **state)
{
	struct coll_sched *s = empty(COLL_ALLTOALL, "UniRing(1,3)", 1), *r;

	(void)state;
	for (int o = 0; o < 3; o++) {
		send_to(s, 0, o, (o + 1) % 3, o, (o + 1) % 3);
		send_to(s, 0, o, (o + 1) % 3, o, (o + 2) % 3);
		send_to(s, 1, (o + 1) % 3, (o + 2) % 3, o, (o + 2) % 3);
	}
	finish(s);
	r = reverse(s);
	assert_factor(r, "1", "1");
	assert_int_equal(topo_find_arc(coll_topo(r), 0, 1), -1);
	coll_free(s);
	coll_free(r);
}

static void test_reverse_light(void **state)
{
	struct coll_light l = { 1, 0, 7, 0, 1, 250 };
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(2)", 1), *r;
	const struct coll_light *got;
	struct err err = { 0 };
	int64_t n;

	(void)state;
	send_part(s, 1, 0, 1, 0, 0, 0, COLL_OP_COPY);
	must(coll_add_light(s, &l, &err), &err);
	l.step = 2;		/* after the last transfer: of no use */
	must(coll_add_light(s, &l, &err), &err);
	finish(s);
	r = reverse(s);
	got = coll_lights(r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(got[0].step, 0);
	assert_int_equal(topo_arc(coll_topo(r), got[0].arc)->src, 1);
	assert_int_equal(got[0].dir, 1);
	assert_int_equal(got[0].channel, 7);
	coll_free(s);
	coll_free(r);
}

static void test_reverse_refuses(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "K(3)"), *r;
	struct err err;

	(void)state;
	assert_int_equal(coll_reverse(s, &r, &err), WEFT_EUNSUPPORTED);
	assert_null(r);
	coll_free(s);
}

/* Other numbers: as good as before, every arc with its light and its shards;
 * numbered back it is what it was. */
static void test_rename(void **state)
{
	static const int to[] = { 3, 0, 4, 1, 2 }, fro[] = { 1, 3, 4, 0, 2 };
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct coll_sched *s = bfb(kinds[i], "UniRing(2,5)"), *r, *back;
		struct buf a = { 0 }, b = { 0 }, c = { 0 };
		struct coll_report rep, now;
		struct err err = { 0 };

		must(coll_rename(s, to, &r, &err), &err);
		must(coll_rename(r, fro, &back, &err), &err);
		coll_report_init(&rep);
		coll_report_init(&now);
		must(coll_verify(s, &rep, &err), &err);
		must(coll_verify(r, &now, &err), &err);
		assert_int_equal(rep.steps, now.steps);
		assert_true(mpq_equal(rep.bandwidth_factor,
				      now.bandwidth_factor));
		coll_to_proto(s, &a);
		coll_to_proto(r, &b);
		coll_to_proto(back, &c);
		assert_false(a.len == b.len &&
			     memcmp(a.data, b.data, a.len) == 0);
		assert_int_equal(a.len, c.len);
		assert_memory_equal(a.data, c.data, a.len);
		buf_fini(&a);
		buf_fini(&b);
		buf_fini(&c);
		coll_report_fini(&rep);
		coll_report_fini(&now);
		coll_free(s);
		coll_free(r);
		coll_free(back);
	}
}

/* The reduce-scatter is made on the transpose and turned round, so its
 * digraph may number parallel and sister arcs differently. */
static void test_sequence(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_EXPRS; i++) {
		struct err err = { 0 };
		struct topo *t = graph_of(exprs[i]), *back;
		struct coll_sched *ag, *turned, *rs, *both;

		must(topo_transpose(t, &back, NULL, &err), &err);
		must(coll_bfb(COLL_ALLGATHER, back, &turned, &err), &err);
		must(coll_bfb(COLL_ALLGATHER, t, &ag, &err), &err);
		rs = reverse(turned);
		must(coll_sequence(rs, ag, &both, &err), &err);
		assert_int_equal(coll_kind_of(both), COLL_ALLREDUCE);
		assert_int_equal(coll_steps(both),
				 coll_steps(rs) + coll_steps(ag));
		must(coll_verify(both, NULL, &err), &err);
		coll_free(turned);
		coll_free(ag);
		coll_free(rs);
		coll_free(both);
	}
}

static void test_sequence_common_chunks(void **state)
{
	struct coll_sched *rs = empty(COLL_REDUCE_SCATTER, "K(2)", 4), *ag;
	struct coll_sched *both;
	struct err err = { 0 };

	(void)state;
	send_part(rs, 0, 0, 1, 1, 0, 3, COLL_OP_REDUCE);
	send_part(rs, 0, 1, 0, 0, 0, 1, COLL_OP_REDUCE);
	send_part(rs, 1, 1, 0, 0, 2, 3, COLL_OP_REDUCE);
	finish(rs);
	ag = empty(COLL_ALLGATHER, "K(2)", 6);
	send_part(ag, 0, 0, 1, 0, 0, 5, COLL_OP_COPY);
	send_part(ag, 0, 1, 0, 1, 0, 5, COLL_OP_COPY);
	finish(ag);
	must(coll_sequence(rs, ag, &both, &err), &err);
	assert_int_equal(coll_chunks(both), 12);
	assert_factor(both, "5/4", "1");
	coll_free(both);
	coll_free(rs);
	coll_free(ag);
}

static void test_sequence_refuses(void **state)
{
	struct coll_sched *rs = bfb(COLL_REDUCE_SCATTER, "Ring(4)");
	struct coll_sched *ag = bfb(COLL_ALLGATHER, "Ring(4)");
	struct coll_sched *other = bfb(COLL_ALLGATHER, "UniRing(2,4)");
	struct coll_sched *out;
	struct err err;

	(void)state;
	assert_int_equal(coll_sequence(ag, rs, &out, &err),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(coll_sequence(rs, other, &out, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "different digraphs"));
	assert_null(out);
	coll_free(rs);
	coll_free(ag);
	coll_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reverse),
		cmocka_unit_test(test_reverse_alltoall),
		cmocka_unit_test(test_reverse_light),
		cmocka_unit_test(test_reverse_refuses),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_sequence_common_chunks),
		cmocka_unit_test(test_sequence_refuses),
	};

	return cmocka_run_group_tests_name("bfb/transform", tests,
					   NULL, NULL);
}
