/* SPDX-License-Identifier: Apache-2.0 */
/* Lowered schedules, run as the kernels do. */
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/msccl_read.h"
#include "tests/unit/msccl/lowered.h"
#include "tests/unit/msccl/kernel_sim.h"
#include "tests/unit/world.h"

static const enum msccl_dialect dialects[] = {
	MSCCL_AZURE, MSCCL_RCCL,
};

/* The text says what was proven: read again, it is proven again, and it is
 * written as the same bytes. */
static void comes_back(const struct buf *text, enum msccl_dialect dialect)
{
	struct err err = { 0 };
	struct buf again = { 0 };
	struct msccl p;

	must(msccl_read(text->data, text->len, dialect, &p, &err), &err);
	must(msccl_check(&p, dialect, &err), &err);
	msccl_write(&p, &again);
	assert_int_equal(again.len, text->len);
	assert_memory_equal(again.data, text->data, text->len);
	msccl_fini(&p);
	buf_fini(&again);
}

/* Exports, runs the file as the kernels do; frees s. */
static void runs(struct coll_sched *s, enum msccl_dialect dialect)
{
	struct err err = { 0 };
	struct buf b = { 0 };

	must(msccl_export(s, dialect, &b, &err), &err);
	comes_back(&b, dialect);
	if (!kern_text(buf_cstr(&b), dialect == MSCCL_RCCL)) {
		fail_msg("%s fails in the simulator",
			 coll_kind_name(coll_kind_of(s)));
	}
	buf_fini(&b);
	coll_free(s);
}

static void sweep(const char *const *exprs, enum coll_kind kind)
{
	for (; *exprs; exprs++) {
		for (int d = 0; d < 2; d++) {
			runs(bfb(kind, *exprs), dialects[d]);
		}
	}
}

static void test_allgather(void **state)
{
	(void)state;
	sweep(graphs, COLL_ALLGATHER);
}

static void test_reduce_scatter(void **state)
{
	(void)state;
	sweep(graphs, COLL_REDUCE_SCATTER);
}

static void test_allreduce(void **state)
{
	(void)state;
	sweep(graphs, COLL_ALLREDUCE);
}

static void test_alltoall_broadcast(void **state)
{
	(void)state;
	for (const char *const *e = graphs; *e; e++) {
		for (int d = 0; d < 2; d++) {
			runs(paths(COLL_ALLTOALL, *e, 2, 0), dialects[d]);
			runs(paths(COLL_BROADCAST, *e, 30, 0), dialects[d]);
			runs(paths(COLL_BROADCAST, *e, 3, 1), dialects[d]);
		}
	}
}

static void runs_on_rccl(struct coll_sched *s)
{
	runs(s, MSCCL_RCCL);
}

static void test_made_otherwise(void **state)
{
	(void)state;
	for_each_construction(runs_on_rccl);
}

static void runs_on_azure(struct coll_sched *s)
{
	runs(s, MSCCL_AZURE);
}

/* Sums that come into scratch, are added from there, and sent on from there. */
static void test_forwarded_sums(void **state)
{
	(void)state;
	for_each_chain(runs_on_rccl);
	for_each_chain(runs_on_azure);
}

/* Sums that are added up in scratch, and sent on from there. */
static void test_merged_sums(void **state)
{
	(void)state;
	for_each_merged(runs_on_rccl);
	for_each_merged(runs_on_azure);
}

static void test_on_coordinates(void **state)
{
	(void)state;
	for_each_on_coordinates(runs_on_rccl);
	for_each_on_coordinates(runs_on_azure);
}

/* In no order at all. What a rank adds to while it sends it in several pieces is saved before. */
static void test_random_forwards(void **state)
{
	static const char *const all[] = { "K(4)", "Ring(5)", "C(6,{1,2})", "Hypercube(3)" };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 31);
	for (int i = 0; i < ALL_OR_SOME(60, 20); i++) {
		runs(random_forwards(all[i % 4], 1 + i % 3, i / 20 * CHAIN_STEPS / 2, &rng),
		     dialects[i % 2]);
	}
}

/* Of a schedule that was never verified. */
static void test_forward_without_sum(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "Ring(4)", 1);
	struct coll_xfer x = { .step = 1, .arc = topo_find_arc(coll_topo(s), 1, 2),
			       .op = COLL_OP_FORWARD };
	struct err err = { 0 };
	struct msccl p;

	(void)state;
	must(coll_add(s, &x, &err), &err);
	finish(s);
	assert_int_equal(msccl_lower(s, MSCCL_RCCL, &p, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "step 1: a sum is forwarded before it has come"));
	msccl_fini(&p);
	coll_free(s);
}

/* By every protocol and in copies; what comes is proven. Flags of LL that do not wait for
 * the threads that still read cannot order sums that cross. */
static void chosen(struct coll_sched *s)
{
	for (int i = 0; i < 2 * MSCCL_PROTOS; i++) {
		struct msccl_options o = { .dialect = dialects[i % 2], .proto = i / 2,
					   .instances = 1 + i % 3 };
		struct err err = { 0 };
		struct msccl p;
		int rc;

		rc = msccl_lower_as(s, &o, &p, &err);
		if ((rc != WEFT_EVERIFY || !msccl_early_flags(o.dialect, o.proto)) &&
		    (rc != WEFT_ELIMIT || o.instances == 1)) {
			must(rc, &err);
		}
		msccl_fini(&p);
	}
	coll_free(s);
}

static void test_forwards_by_protocol(void **state)
{
	(void)state;
	for_each_chain(chosen);
	for_each_merged(chosen);
}

/* About 64 ranks, in the dialect of the tightest limits; many more are in
 * test_every_size.c. */
static void test_large(void **state)
{
	static const char *const large[] = { "GenKautz(3,50)", "Torus(4,4,4)", "K(32,32)" };
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
	};

	(void)state;
	for (int e = 0; e < ALL_OR_SOME(3, 1); e++) {
		for (int k = 0; k < ALL_OR_SOME(3, 1); k++) {
			runs(bfb(kinds[k], large[e]), MSCCL_RCCL);
		}
	}
	runs(paths(COLL_ALLTOALL, "Hypercube(5)", 1, 0), MSCCL_AZURE);
	runs(paths(COLL_BROADCAST, "Torus(8,8)", 2, 0), MSCCL_AZURE);
}

/* The limits of steps and of threadblocks that can be waited for hold in
 * programs that need several channels. */
static void test_several_channels(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Torus(8,8)");
	struct err err = { 0 };
	struct msccl p;

	(void)state;
	must(msccl_lower(s, MSCCL_AZURE, &p, &err), &err);
	assert_true(p.channels > 1);
	for (int r = 0; r < p.ranks; r++) {
		for (size_t t = 0; t < p.gpus[r].tbs.n; t++) {
			assert_in_range(p.gpus[r].tbs.v[t].steps.n, 1, 64);
		}
	}
	msccl_fini(&p);
	coll_free(s);
	s = bfb(COLL_ALLREDUCE, "Torus(3,3)");
	must(msccl_lower(s, MSCCL_AZURE, &p, &err), &err);
	assert_int_equal(p.channels, 1);
	msccl_fini(&p);
	coll_free(s);
}

/* A channel takes 32 peers in a direction, so ranks with more peers have
 * several, also where these are cut in time. */
static void test_many_peers(void **state)
{
	static const char *const wide[] = {
		"K(34)", "K(33,33)", "C(40,{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17})",
	};

	(void)state;
	for (int e = 0; e < ALL_OR_SOME(3, 1); e++) {
		runs(bfb(COLL_ALLGATHER, wide[e]), MSCCL_AZURE);
		runs(bfb(COLL_REDUCE_SCATTER, wide[e]), MSCCL_AZURE);
	}
	runs(bfb(COLL_ALLREDUCE, ALL_OR_SOME("K(42)", "K(34)")), MSCCL_RCCL);
}

/* Light that changes between steps would need the ranks to wait; light that stays
 * does not. */
static void test_light(void **state)
{
	struct coll_sched *s = round_of_four((int[]){ 0, 0, 1 });
	struct err err = { 0 };
	struct buf b = { 0 };

	(void)state;
	for (int d = 0; d < 2; d++) {
		assert_int_equal(msccl_export(s, dialects[d], &b, &err), WEFT_EUNSUPPORTED);
		assert_non_null(strstr(err.msg, "step 2 needs other light than step 1"));
		assert_int_equal(b.len, 0);
		runs(round_of_four((int[]){ 7, 7, 7 }), dialects[d]);
	}
	buf_fini(&b);
	coll_free(s);
}

/* A ring passes everything on: all but the first and last steps fuse. */
static void test_fusing(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "UniRing(1,8)");
	int count[MSCCL_TYPES] = { 0 };
	struct err err = { 0 };
	struct msccl p;

	(void)state;
	must(msccl_lower(s, MSCCL_AZURE, &p, &err), &err);
	for (size_t k = 0; k < p.gpus[0].tbs.v[0].steps.n; k++) {
		count[p.gpus[0].tbs.v[0].steps.v[k].type]++;
	}
	assert_int_equal(p.gpus[0].tbs.n, 1);
	assert_int_equal(count[MSCCL_SEND], 1);
	assert_int_equal(count[MSCCL_RRS], 6);
	assert_int_equal(count[MSCCL_RRCS], 1);
	assert_int_equal(count[MSCCL_RCS], 6);
	assert_int_equal(count[MSCCL_RECV], 1);
	msccl_fini(&p);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allgather),
		cmocka_unit_test(test_reduce_scatter),
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_alltoall_broadcast),
		cmocka_unit_test(test_made_otherwise),
		cmocka_unit_test(test_forwarded_sums),
		cmocka_unit_test(test_merged_sums),
		cmocka_unit_test(test_on_coordinates),
		cmocka_unit_test(test_random_forwards),
		cmocka_unit_test(test_forward_without_sum),
		cmocka_unit_test(test_forwards_by_protocol),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_many_peers),
		cmocka_unit_test(test_several_channels),
		cmocka_unit_test(test_light),
		cmocka_unit_test(test_fusing),
	};

	/* Programs and clocks are made again for every schedule; the pages stay. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	return cmocka_run_group_tests_name("msccl/lower", tests, NULL, NULL);
}
