/* SPDX-License-Identifier: Apache-2.0 */
/* Execution plans, run on bytes from their text, and plans that are wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/flow/flow.h"
#include "runtime/mscclpp/mscclpp.h"
#include "tests/unit/mscclpp/mscclpp_read.h"
#include "tests/unit/msccl/lowered.h"
#include "tests/unit/mscclpp/mscclpp_sim.h"

/* The text says what was proven: read again, it is proven again, and it is
 * written as the same bytes. */
static void comes_back(const struct buf *text)
{
	struct err err = { 0 };
	struct buf again = { 0 };
	struct mscclpp p;

	must(mscclpp_read(text->data, text->len, &p, &err), &err);
	must(mscclpp_check(&p, &err), &err);
	mscclpp_write(&p, &again);
	assert_int_equal(again.len, text->len);
	assert_memory_equal(again.data, text->data, text->len);
	mscclpp_fini(&p);
	buf_fini(&again);
}

/* Exports, runs the text in some orders; frees s. */
static void runs(struct coll_sched *s, bool inplace, int times)
{
	struct err err = { 0 };
	struct buf b = { 0 };

	must(mscclpp_export(s, inplace, &b, &err), &err);
	comes_back(&b);
	for (int i = 0; i < times; i++) {
		if (!psim_text(buf_cstr(&b), 3, 55u + (unsigned)i)) {
			fail_msg("%s fails in the simulator",
				 coll_kind_name(coll_kind_of(s)));
		}
	}
	buf_fini(&b);
	coll_free(s);
}

static void sweep(enum coll_kind kind)
{
	for (const char *const *e = graphs; *e; e++) {
		runs(bfb(kind, *e), true, 2);
		runs(bfb(kind, *e), false, 2);
	}
}

static void test_allgather(void **state)
{
	(void)state;
	sweep(COLL_ALLGATHER);
}

static void test_reduce_scatter(void **state)
{
	(void)state;
	sweep(COLL_REDUCE_SCATTER);
}

static void test_allreduce(void **state)
{
	(void)state;
	sweep(COLL_ALLREDUCE);
}

static void test_alltoall_broadcast(void **state)
{
	(void)state;
	for (const char *const *e = graphs; *e; e++) {
		runs(paths(COLL_ALLTOALL, *e, 2, 0), false, 2);
		runs(paths(COLL_BROADCAST, *e, 3, 1), true, 2);
		runs(paths(COLL_BROADCAST, *e, 3, 0), false, 2);
	}
}

static void runs_in_place(struct coll_sched *s)
{
	runs(s, true, 2);
}

static void test_made_otherwise(void **state)
{
	(void)state;
	for_each_construction(runs_in_place);
}

static void runs_everywhere(struct coll_sched *s)
{
	struct coll_sched *again;
	struct err err = { 0 };

	must(coll_unfold(s, &again, &err), &err);
	runs(s, true, 1);
	runs(again, false, 1);
}

/* Sums that come into scratch, are added from there, and sent on from there. */
static void test_forwarded_sums(void **state)
{
	(void)state;
	for_each_chain(runs_everywhere);
	for_each_merged(runs_everywhere);
	for_each_on_coordinates(runs_everywhere);
}

/* Chains with changes that leave them right. What a rank adds to while it sends it in several
 * pieces is refused. */
static void test_changed_chains(void **state)
{
	static const struct chain_plan plans[] = {
		{ "Ring(4)", 1, { { 1, 4 } } }, { "Ring(5)", 1, { { 1, 5 } } },
		{ "C(9,{1,3})", 2, { { 1, 3 }, { 3, 3 } } },
	};
	int made = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 32);
	for (int i = 0; i < 300; i++) {
		struct coll_sched *s = chains(&plans[i % 3]), *flat = unfolded(s), *t;

		t = chain_mutated(flat, &rng);
		coll_free(s);
		coll_free(flat);
		if (coll_verify(t, NULL, NULL)) {
			coll_free(t);
			continue;
		}
		runs(t, i % 2, 1);
		made++;
	}
	assert_true(made > 20);
}

/* Several threadblocks a rank: many operations, or many peers. */
static void test_large(void **state)
{
	static const char *const large[] = {
		"Torus(4,4,4)", "GenKautz(4,64)", "K(32)", NULL,
	};

	(void)state;
	for (const char *const *e = large; *e; e++) {
		runs(bfb(COLL_ALLREDUCE, *e), true, 1);
	}
	runs(paths(COLL_ALLTOALL, "Hypercube(5)", 1, 0), false, 1);
}

/* All-to-all by time-stepped flows: shards pass through other ranks. */
static void test_time_stepped(void **state)
{
	static const char *const exprs[] = {
		"Hypercube(3)", "TwistedHypercube(3)", "K(4,4)",
		"Torus(3,3,3)", NULL,
	};
	const struct mcf_steps_options opt = { .flow = { .gap = 1e-3 },
					       .loss = 0.01 };

	(void)state;
	for (const char *const *e = exprs; *e; e++) {
		struct topo *t = graph_of(*e);
		struct mcf_steps_info info;
		struct coll_sched *s;
		struct err err = { 0 };

		must(mcf_steps(t, &opt, &s, &info, &err), &err);
		topo_free(t);
		runs(s, false, 2);
	}
}

/* ---- what a plan looks like ---- */

static struct mscclpp lowered(enum coll_kind kind, const char *expr,
			      bool inplace)
{
	struct coll_sched *s = bfb(kind, expr);
	struct err err = { 0 };
	struct mscclpp p;

	must(mscclpp_lower(s, inplace, &p, &err), &err);
	coll_free(s);
	return p;
}

static void test_shape(void **state)
{
	static const uint8_t expected[] = {
		MSCCLPP_SIGNAL, MSCCLPP_WAIT, MSCCLPP_NOP, MSCCLPP_PWS,
		MSCCLPP_COPY, MSCCLPP_WAIT, MSCCLPP_NOP, MSCCLPP_FLUSH,
	};
	struct mscclpp p = lowered(COLL_ALLGATHER, "K(4)", false);

	(void)state;
	assert_int_equal(p.gpus[2].tbs.n, 1);
	assert_int_equal(p.gpus[2].tbs.v[0].ops.n, sizeof(expected));
	for (size_t k = 0; k < sizeof(expected); k++) {
		assert_int_equal(p.gpus[2].tbs.v[0].ops.v[k].name,
				 expected[k]);
	}
	assert_int_equal(p.gpus[2].tbs.v[0].ops.v[3].n_ids, 3);
	assert_int_equal(p.gpus[2].chunks[LOWER_SCRATCH], 0);
	/* 4 chunks of output below 4 GiB. */
	assert_int_equal(p.max_bytes, ((UINT64_C(1) << 32) - 1) / 4 * 4);
	mscclpp_fini(&p);

	/* Arrivals for one chunk are added at once. */
	p = lowered(COLL_REDUCE_SCATTER, "K(4)", true);
	assert_int_equal(p.gpus[0].tbs.v[0].ops.v[6].name, MSCCLPP_REDUCE);
	assert_int_equal(p.gpus[0].tbs.v[0].ops.v[6].n_src, 4);
	mscclpp_fini(&p);
}

static void test_limits_hold(void **state)
{
	struct mscclpp p = lowered(COLL_ALLREDUCE, "K(40)", true);

	(void)state;
	assert_true(p.gpus[0].tbs.n > 2);
	assert_int_equal(p.gpus[0].sems.n, p.gpus[0].tbs.n - 1);
	for (size_t t = 0; t < p.gpus[0].tbs.n; t++) {
		const struct mscclpp_tb *tb = &p.gpus[0].tbs.v[t];

		assert_in_range(tb->ops.n, 1, MSCCLPP_MAX_OPS);
		assert_in_range(tb->n_chans, 0, MSCCLPP_MAX_CHANNELS);
		assert_in_range(tb->n_remotes, 0, MSCCLPP_MAX_CHANNELS);
	}
	mscclpp_fini(&p);
}

/* ---- plans that are wrong ---- */

static char *text_of(const struct mscclpp *p)
{
	struct buf b = { 0 };

	mscclpp_write(p, &b);
	return buf_steal(&b);
}

static void drop(struct mscclpp *p, int rank, size_t tb, size_t k)
{
	struct mscclpp_tb *t = &p->gpus[rank].tbs.v[tb];

	memmove(&t->ops.v[k], &t->ops.v[k + 1],
		(t->ops.n - k - 1) * sizeof(*t->ops.v));
	t->ops.n--;
}

/* Without one of its operations a plan is refused, or is right all the
 * same in every order. Most are refused. */
static void drop_each(enum coll_kind kind, const char *expr, bool inplace)
{
	struct mscclpp p = lowered(kind, expr, inplace);
	size_t refused = 0, all = 0;

	for (size_t t = 0; t < p.gpus[0].tbs.n; t++) {
		all += p.gpus[0].tbs.v[t].ops.n;
	}
	mscclpp_fini(&p);
	for (size_t i = 0; i < all; i++) {
		struct err err = { 0 };
		size_t t = 0, k = i;
		char *text;

		p = lowered(kind, expr, inplace);
		for (; k >= p.gpus[0].tbs.v[t].ops.n; t++) {
			k -= p.gpus[0].tbs.v[t].ops.n;
		}
		drop(&p, 0, t, k);
		if (mscclpp_check(&p, &err)) {
			refused++;
		} else {
			text = text_of(&p);
			for (unsigned o = 0; o < 10; o++) {
				assert_true(psim_text(text, 2, o));
			}
			free(text);
		}
		mscclpp_fini(&p);
	}
	assert_true(refused * 10 >= all * 8);
}

static void test_dropped(void **state)
{
	(void)state;
	drop_each(COLL_ALLREDUCE, "UniRing(1,4)", true);
	drop_each(COLL_ALLGATHER, "Ring(5)", false);
	drop_each(COLL_REDUCE_SCATTER, "Hypercube(2)", true);
	drop_each(COLL_ALLREDUCE, "Torus(3,3)", true);
}

static void refused_with(struct mscclpp *p, const char *part)
{
	struct err err = { 0 };
	int rc = mscclpp_check(p, &err);

	assert_true(rc == WEFT_EVERIFY || rc == WEFT_ELIMIT);
	if (!strstr(err.msg, part)) {
		fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
	}
	mscclpp_fini(p);
}

static void test_refused(void **state)
{
	struct mscclpp p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	struct mscclpp_op *v = p.gpus[1].tbs.v[0].ops.v;

	(void)state;
	v[3].dst[0].index = 1000;
	refused_with(&p, "outside the remote buffer");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	p.gpus[1].tbs.v[0].ops.v[3].ids[0] = 9;
	refused_with(&p, "a channel that the threadblock has not");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	p.gpus[1].tbs.v[0].ops.v[0].ids[1] = 0;
	refused_with(&p, "a channel twice");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	vec_push(&p.gpus[2].chans, 0);
	refused_with(&p, "has no other end");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	p.gpus[3].chunks[LOWER_OUT]++;
	refused_with(&p, "do not fit a vector");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	p.max_bytes = UINT64_C(1) << 40;
	refused_with(&p, "exceeds 4 GiB");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	drop(&p, 0, 0, p.gpus[0].tbs.v[0].ops.n - 1);
	refused_with(&p, "not flushed");
	p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	drop(&p, 0, 0, 1);
	refused_with(&p, "rank 0 threadblock 0 op");
	p = lowered(COLL_ALLGATHER, "Ring(4)", true);
	drop(&p, 0, 0, 3);
	refused_with(&p, "deadlock");
	p = lowered(COLL_ALLREDUCE, "K(40)", true);
	p.gpus[5].sems.v[0] = 1;
	refused_with(&p, "threadblock");
}

/* ---- text ---- */

static void replaced(const char *from, const char *to, const char *part)
{
	struct mscclpp p = lowered(COLL_ALLREDUCE, "Ring(4)", true);
	char *text = text_of(&p), *at = strstr(text, from);
	struct err err = { 0 };
	struct buf b = { 0 };

	mscclpp_fini(&p);
	assert_non_null(at);
	buf_add(&b, text, (size_t)(at - text));
	buf_str(&b, to);
	buf_str(&b, at + strlen(from));
	assert_int_equal(mscclpp_read(b.data, b.len, &p, &err), WEFT_EINVAL);
	if (!strstr(err.msg, part)) {
		fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
	}
	buf_fini(&b);
	free(text);
}

static void test_text(void **state)
{
	(void)state;
	replaced("\"Simple\"", "\"LL\"", "protocol");
	replaced("\"port\"", "\"memory\"", "weft reads \"port\" only");
	replaced("\"pws\"", "\"rres\"", "gpus[0].threadblocks[0].ops[");
	replaced("\"inplace\": true", "\"inplace\": 1", "inplace");
	replaced("\"input_chunks\": 8", "\"input_chunks\": 0",
		 "input_chunks");
	replaced("\"reduce_op\": \"sum\"", "\"reduce_op\": \"max\"",
		 "reduce_op");
	replaced("\"id\": 0", "\"id\": 1", "gpus[0].id");
	replaced("\"id\": 0", "\"tbg\": 1, \"id\": 0", "gpus[0].tbg");
	replaced("\"reuse_resources\": false", "\"reuse_resources\": true",
		 "reuse_resources");
	replaced("{", "[", "not valid JSON");
}

/* Same schedule, same bytes; and what is read is written alike. */
static void test_round_trip(void **state)
{
	struct mscclpp p = lowered(COLL_ALLREDUCE, "GenKautz(2,11)", false);
	char *text = text_of(&p), *again;
	struct err err = { 0 };

	(void)state;
	mscclpp_fini(&p);
	must(mscclpp_read(text, strlen(text), &p, &err), &err);
	again = text_of(&p);
	assert_string_equal(text, again);
	mscclpp_fini(&p);
	free(again);
	p = lowered(COLL_ALLREDUCE, "GenKautz(2,11)", false);
	again = text_of(&p);
	assert_string_equal(text, again);
	mscclpp_fini(&p);
	free(again);
	free(text);
}

static void test_unsupported(void **state)
{
	struct coll_sched *s = paths(COLL_ALLTOALL, "Ring(4)", 1, 0);
	struct err err = { 0 };
	struct mscclpp p;

	(void)state;
	assert_int_equal(mscclpp_lower(s, true, &p, &err), WEFT_EUNSUPPORTED);
	coll_free(s);
}

/* Nothing in a plan waits for light. */
static void test_light(void **state)
{
	struct coll_sched *s = round_of_four((int[]){ 0, 1, 2 });
	struct err err = { 0 };
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(mscclpp_export(s, true, &b, &err), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "step 1 needs other light than step 0"));
	coll_free(s);
	s = round_of_four((int[]){ 7, 7, 7 });
	must(mscclpp_export(s, true, &b, &err), &err);
	buf_fini(&b);
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
		cmocka_unit_test(test_changed_chains),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_time_stepped),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_limits_hold),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_light),
	};

	return cmocka_run_group_tests_name("mscclpp/mscclpp", tests, NULL,
					   NULL);
}
