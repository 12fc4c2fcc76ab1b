/* SPDX-License-Identifier: Apache-2.0 */
/* The container: order, merging, refusals, size. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/schedule/common.h"

static void test_kind_names(void **state)
{
	enum coll_kind kind;
	struct err err;

	(void)state;
	for (int k = 0; k < COLL_KINDS; k++) {
		assert_int_equal(coll_kind_parse(coll_kind_name(k), &kind,
						 &err), 0);
		assert_int_equal(kind, k);
	}
	assert_int_equal(coll_kind_parse("gossip", &kind, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "reduce-scatter"));
}

static void test_finish_sorts_and_merges(void **state)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(3)", 8);
	const struct coll_xfer *x;
	int64_t n;

	(void)state;
	send_part(s, 1, 0, 1, 2, 0, 1, COLL_OP_COPY);
	send_part(s, 0, 2, 1, 2, 4, 7, COLL_OP_COPY);
	send_part(s, 0, 0, 1, 0, 3, 3, COLL_OP_COPY);
	send_part(s, 0, 2, 1, 2, 0, 3, COLL_OP_COPY);
	send_part(s, 0, 0, 1, 0, 5, 5, COLL_OP_COPY);
	finish(s);
	x = coll_xfers(s, &n);
	assert_int_equal(n, 4);
	assert_int_equal(x[0].first, 3);
	assert_int_equal(x[1].first, 5);
	assert_int_equal(x[2].origin, 2);
	assert_int_equal(x[2].first, 0);
	assert_int_equal(x[2].last, 7);
	assert_int_equal(x[3].step, 1);
	assert_int_equal(coll_steps(s), 2);
	coll_free(s);
}

static void test_finish_keeps_copy_and_reduce_apart(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "K(2)", 2);
	int64_t n;

	(void)state;
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 0, 1, 0, 1, 1, COLL_OP_REDUCE);
	finish(s);
	coll_xfers(s, &n);
	assert_int_equal(n, 2);
	coll_free(s);
}

static void test_new_refuses(void **state)
{
	struct coll_sched *s;
	struct err err = { 0 };
	struct topo *t;

	(void)state;
	assert_int_equal(coll_new(COLL_ALLGATHER, graph_of("K(2)"), 0, 0, 0,
				  &s, &err), WEFT_EINVAL);
	assert_int_equal(coll_new(COLL_ALLGATHER, graph_of("K(2)"),
				  COLL_MAX_CHUNKS + 1, 0, 0, &s, &err),
			 WEFT_ELIMIT);
	assert_int_equal(coll_new(COLL_ALLGATHER, graph_of("K(2)"), 1, -1, 0,
				  &s, &err), WEFT_EINVAL);
	assert_int_equal(coll_new(COLL_BROADCAST, graph_of("K(2)"), 1, 0, 2,
				  &s, &err), WEFT_EINVAL);
	assert_null(s);
	must(topo_new(2, &t, &err), &err);
	topo_set_node(t, 1, TOPO_SWITCH, TOPO_CAN_COPY);
	topo_freeze(t);
	assert_int_equal(coll_new(COLL_ALLGATHER, t, 1, 0, 0, &s, &err),
			 WEFT_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "node 1"));
}

/* A ring of three of which node 1 can do less than terminals usually can. */
static int new_without(enum coll_kind kind, unsigned flag, struct err *err)
{
	struct coll_sched *s;
	struct topo *t;
	int rc;

	must(topo_new(3, &t, err), err);
	for (int u = 0; u < 3; u++) {
		must(topo_add_arc(t, u, (u + 1) % 3, 1, 0, err), err);
	}
	topo_set_node(t, 1, TOPO_TERMINAL, topo_usual_flags(TOPO_TERMINAL) & ~flag);
	topo_freeze(t);
	rc = coll_new(kind, t, 1, 0, 0, &s, err);
	coll_free(s);
	return rc;
}

static void test_abilities_are_needed(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(new_without(COLL_ALLREDUCE, TOPO_CAN_REDUCE, &err), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "node 1 cannot reduce"));
	assert_int_equal(new_without(COLL_ALLGATHER, TOPO_CAN_COPY, &err), WEFT_EUNSUPPORTED);
	assert_int_equal(new_without(COLL_ALLTOALL, TOPO_CAN_STORE, &err), WEFT_EUNSUPPORTED);
	assert_int_equal(new_without(COLL_ALLGATHER, TOPO_CAN_REDUCE, &err), 0);
	assert_int_equal(new_without(COLL_ALLTOALL, TOPO_CAN_COPY, &err), 0);
	assert_int_equal(new_without(COLL_REDUCE_SCATTER, TOPO_CAN_COPY, &err), 0);
}

static void test_ports_default_to_capacity(void **state)
{
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	(void)state;
	must(topo_new(2, &t, &err), &err);
	must(topo_add_arc(t, 0, 1, 3, 0, &err), &err);
	must(topo_add_arc(t, 0, 0, 1, 0, &err), &err);
	must(topo_add_arc(t, 1, 0, 3, 0, &err), &err);
	topo_freeze(t);
	must(coll_new(COLL_ALLGATHER, t, 1, 0, 0, &s, &err), &err);
	assert_int_equal(coll_ports(s), 4);
	coll_free(s);
}

static void test_add_refuses(void **state)
{
	static const struct {
		struct coll_xfer x;
		int rc;
		const char *what;
	} bad[] = {
		{ { -1, 0, 0, -1, 0, 0, 0, 0 }, WEFT_EINVAL, "negative" },
		{ { COLL_MAX_STEPS, 0, 0, -1, 0, 0, 0, 0 }, WEFT_ELIMIT, "step" },
		{ { 4, 6, 0, -1, 0, 0, 0, 0 }, WEFT_EINVAL,
		  "step 4: arc 6 is missing" },
		{ { 0, -1, 0, -1, 0, 0, 0, 0 }, WEFT_EINVAL, "arc -1" },
		{ { 0, 0, 3, -1, 0, 0, 0, 0 }, WEFT_EINVAL, "origin" },
		{ { 0, 0, -1, -1, 0, 0, 0, 0 }, WEFT_EINVAL, "origin" },
		{ { 0, 0, 0, 1, 0, 0, 0, 0 }, WEFT_EINVAL, "all-to-all only" },
		{ { 0, 0, 0, -1, -1, 0, 0, 0 }, WEFT_EINVAL, "range" },
		{ { 0, 0, 0, -1, 1, 0, 0, 0 }, WEFT_EINVAL, "range" },
		{ { 0, 0, 0, -1, 0, 2, 0, 0 }, WEFT_EINVAL, "range" },
		{ { 0, 0, 0, -1, 0, 0, 3, 0 }, WEFT_EINVAL, "operation" },
		{ { 0, 0, 0, 1, 0, 0, 2, 0 }, WEFT_EINVAL, "allreduce only" },
	};
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(3)", 2);
	struct err err;
	int64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(coll_add(s, &bad[i].x, &err), bad[i].rc);
		assert_non_null(strstr(err.msg, bad[i].what));
	}
	finish(s);
	coll_xfers(s, &n);
	assert_int_equal(n, 0);
	assert_int_equal(coll_steps(s), 0);
	coll_free(s);
}

static void test_light_order(void **state)
{
	static const struct coll_light in[] = {
		{ 1, 0, 5, 0, 0, 10 }, { 0, 3, 9, 1, 0, 20 },
		{ 0, 3, 2, 1, 0, 30 }, { 0, 3, 7, 0, 1, 40 },
		{ 0, 3, 8, 0, 0, 50 },
	};
	static const int want[] = { 50, 40, 30, 20, 10 };
	struct coll_light bad = { 0, 0, 0, 2, 0, 0 };
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(3)", 1);
	struct err err = { 0 };
	const struct coll_light *l;
	int64_t n;

	(void)state;
	for (int i = 0; i < 5; i++) {
		must(coll_add_light(s, &in[i], &err), &err);
	}
	assert_int_equal(coll_add_light(s, &bad, &err), WEFT_EINVAL);
	finish(s);
	l = coll_lights(s, &n);
	assert_int_equal(n, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(l[i].loss_mdb, want[i]);
	}
	coll_free(s);
}

/* 1024 nodes that all send to all at once, added from last to first. */
static void test_million_transfers(void **state)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(1024)", 1);
	struct err err = { 0 };
	struct coll_report r;

	(void)state;
	for (int u = 1023; u >= 0; u--) {
		int first, n = topo_out(coll_topo(s), u, &first);

		for (int a = first + n - 1; a >= first; a--) {
			struct coll_xfer x = { 0, a, u, COLL_NO_DEST, 0, 0,
					       COLL_OP_COPY, 0 };

			must(coll_add(s, &x, &err), &err);
		}
	}
	finish(s);
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(r.transfers, 1024 * 1023);
	assert_int_equal(r.chunk_hops, 1024 * 1023);
	assert_true(r.bandwidth_optimal);
	coll_report_fini(&r);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kind_names),
		cmocka_unit_test(test_finish_sorts_and_merges),
		cmocka_unit_test(test_finish_keeps_copy_and_reduce_apart),
		cmocka_unit_test(test_new_refuses),
		cmocka_unit_test(test_abilities_are_needed),
		cmocka_unit_test(test_ports_default_to_capacity),
		cmocka_unit_test(test_add_refuses),
		cmocka_unit_test(test_light_order),
		cmocka_unit_test(test_million_transfers),
	};

	return cmocka_run_group_tests_name("schedule/schedule", tests, NULL,
					   NULL);
}
