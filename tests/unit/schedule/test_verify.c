/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: right schedules pass, and every way to break one is named. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

/* ---- right schedules, made by hand ---- */

/* Shards go round one way: N-1 steps. */
static struct coll_sched *ring_allgather(const char *expr, int chunks)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, expr, chunks);
	int n = coll_ranks(s);

	for (int step = 0; step < n - 1; step++) {
		for (int u = 0; u < n; u++) {
			send_part(s, step, u, (u + 1) % n, (u + n - step) % n,
				  0, chunks - 1, COLL_OP_COPY);
		}
	}
	return s;
}

/* Rank r's shard starts behind r and gathers all the way round. */
static struct coll_sched *ring_reduce_scatter(const char *expr)
{
	struct coll_sched *s = empty(COLL_REDUCE_SCATTER, expr, 1);
	int n = coll_ranks(s);

	for (int step = 0; step < n - 1; step++) {
		for (int r = 0; r < n; r++) {
			int u = (r + 1 + step) % n;

			send_part(s, step, u, (u + 1) % n, r, 0, 0,
				  COLL_OP_REDUCE);
		}
	}
	return s;
}

/* Everybody exchanges all shards with its partner in each dimension. */
static struct coll_sched *doubling(int k)
{
	char expr[32];
	struct coll_sched *s;
	int n = 1 << k;

	snprintf(expr, sizeof(expr), "Hypercube(%d)", k);
	s = empty(COLL_ALLREDUCE, expr, 1);
	for (int step = 0; step < k; step++) {
		for (int u = 0; u < n; u++) {
			for (int shard = 0; shard < n; shard++) {
				send_part(s, step, u, u ^ 1 << step, shard, 0,
					  0, COLL_OP_REDUCE);
			}
		}
	}
	return s;
}

/* Every shard goes the long way round: rank u to u + k in k steps. */
static struct coll_sched *ring_alltoall(int n)
{
	struct coll_sched *s;
	char expr[32];

	snprintf(expr, sizeof(expr), "UniRing(1,%d)", n);
	s = empty(COLL_ALLTOALL, expr, 1);
	for (int o = 0; o < n; o++) {
		for (int k = 1; k < n; k++) {
			for (int hop = 0; hop < k; hop++) {
				send_to(s, hop, (o + hop) % n,
					(o + hop + 1) % n, o, (o + k) % n);
			}
		}
	}
	return s;
}

/* From the root both ways round a ring of four. */
static struct coll_sched *ring_broadcast(void)
{
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_new(COLL_BROADCAST, graph_of("Ring(4)"), 2, 0, 1, &s, &err),
	     &err);
	for (int shard = 0; shard < 4; shard++) {
		send_part(s, 0, 1, 2, shard, 0, 1, COLL_OP_COPY);
		send_part(s, 0, 1, 0, shard, 0, 1, COLL_OP_COPY);
		send_part(s, 1, 2, 3, shard, 0, 0, COLL_OP_COPY);
		send_part(s, 1, 0, 3, shard, 1, 1, COLL_OP_COPY);
	}
	return s;
}

static void accept(struct coll_sched *s, const char *tb, const char *bound)
{
	finish(s);
	assert_factor(s, tb, bound);
	coll_free(s);
}

static void test_accepts(void **state)
{
	(void)state;
	accept(ring_allgather("UniRing(1,5)", 3), "4/5", "4/5");
	accept(ring_allgather("Ring(5)", 1), "8/5", "4/5");
	accept(ring_reduce_scatter("UniRing(1,7)"), "6/7", "6/7");
	accept(doubling(1), "1", "1");
	accept(doubling(2), "4", "3/2");
	accept(doubling(3), "9", "7/4");
	accept(ring_alltoall(4), "3/2", "3/2");
	accept(ring_broadcast(), "3", "1");
}

static void test_single_rank_needs_nothing(void **state)
{
	(void)state;
	for (int k = COLL_ALLGATHER; k <= COLL_BROADCAST; k++) {
		struct err err = { 0 };
		struct coll_sched *s;
		struct topo *t;

		must(topo_new(1, &t, &err), &err);
		topo_freeze(t);
		must(coll_new(k, t, 1, 0, 0, &s, &err), &err);
		accept(s, "0", "0");
	}
}

/* More classes than a word has bits. */
static void test_many_chunks(void **state)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(2)", 1000);

	(void)state;
	for (int c = 0; c < 1000; c++) {
		send_part(s, c / 100, 0, 1, 0, c, c, COLL_OP_COPY);
		send_part(s, c % 7, 1, 0, 1, 999 - c, 999 - c, COLL_OP_COPY);
	}
	finish(s);
	must(coll_verify(s, NULL, NULL), NULL);
	send_part(s, 12, 0, 1, 0, 777, 777, COLL_OP_COPY);
	assert_refused(s, "step 12: arc 0 (0 -> 1): shard 0 chunk 777: "
		       "delivered twice");
	coll_free(s);
}

/* ---- every single change of a right schedule is found ---- */

enum change { DROP, TWICE, NOW, N_CHANGES };

/* s with one transfer changed; NOW sends it in step 0. */
static struct coll_sched *changed(const struct coll_sched *s, int64_t at,
				  enum change change)
{
	struct coll_sched *out = blank_copy(s);
	struct err err = { 0 };
	const struct coll_xfer *x;
	int64_t n;

	x = coll_xfers(s, &n);
	for (int64_t i = 0; i < n; i++) {
		struct coll_xfer y = x[i];

		if (i == at && change == NOW) {
			y.step = 0;
		}
		if (i != at || change != DROP) {
			must(coll_add(out, &y, &err), &err);
		}
		if (i == at && change == TWICE) {
			must(coll_add(out, &y, &err), &err);
		}
	}
	finish(out);
	return out;
}

/* Takes s. In these schedules everything sent after the first step came
 * or was summed in a step before. */
static void break_everywhere(struct coll_sched *s)
{
	const struct coll_xfer *x;
	struct err err;
	int64_t n;

	finish(s);
	must(coll_verify(s, NULL, NULL), NULL);
	x = coll_xfers(s, &n);
	for (int64_t i = 0; i < n; i++) {
		for (int c = 0; c < N_CHANGES; c++) {
			struct coll_sched *bad;

			if (c == NOW && x[i].step == 0) {
				continue;
			}
			bad = changed(s, i, c);
			assert_int_equal(coll_verify(bad, NULL, &err),
					 WEFT_EVERIFY);
			assert_non_null(strstr(err.msg, "shard"));
			assert_non_null(strstr(err.msg, "chunk"));
			coll_free(bad);
		}
	}
	coll_free(s);
}

static void test_breaks_by_hand(void **state)
{
	(void)state;
	break_everywhere(ring_allgather("Ring(5)", 3));
	break_everywhere(ring_reduce_scatter("UniRing(1,6)"));
	break_everywhere(doubling(3));
	break_everywhere(ring_alltoall(5));
	break_everywhere(ring_broadcast());
}

static void test_breaks_synthesised(void **state)
{
	(void)state;
	break_everywhere(bfb(COLL_ALLGATHER, "GenKautz(2,9)"));
	break_everywhere(bfb(COLL_ALLGATHER, "Torus(3,4)"));
}

/* ---- sums against counting how often each contribution is in a sum ---- */

#define FEW 8	/* ranks */

struct counts {
	int of[FEW][FEW];	/* node, contribution */
};

static bool is_whole(const struct counts *c, int node, int n)
{
	for (int v = 0; v < n; v++) {
		if (c->of[node][v] != 1) {
			return false;
		}
	}
	return true;
}

/* One transfer of a chunk, from what was before the step. */
static bool apply(const struct counts *was, struct counts *is, int n,
		  const struct topo_arc *a, enum coll_op op)
{
	if (is_whole(is, a->dst, n) ||
	    (op == COLL_OP_COPY && !is_whole(was, a->src, n))) {
		return false;
	}
	for (int v = 0; v < n; v++) {
		is->of[a->dst][v] = op == COLL_OP_COPY
			? 1 : is->of[a->dst][v] + was->of[a->src][v];
		if (is->of[a->dst][v] > 1) {
			return false;
		}
	}
	return true;
}

static bool counts_right(const struct coll_sched *s, int origin, int chunk)
{
	struct counts is = { 0 };
	int n = coll_ranks(s);
	const struct coll_xfer *x;
	int64_t total;

	x = coll_xfers(s, &total);
	for (int v = 0; v < n; v++) {
		is.of[v][v] = 1;
	}
	for (int step = 0; step < coll_steps(s); step++) {
		struct counts was = is;

		for (int op = COLL_OP_COPY; op <= COLL_OP_REDUCE; op++) {
			for (int64_t i = 0; i < total; i++) {
				if (x[i].step == step && x[i].op == op &&
				    x[i].origin == origin &&
				    x[i].first <= chunk && chunk <= x[i].last &&
				    !apply(&was, &is, n,
					   topo_arc(coll_topo(s), x[i].arc),
					   x[i].op)) {
					return false;
				}
			}
		}
	}
	for (int v = 0; v < n; v++) {
		if ((coll_kind_of(s) == COLL_ALLREDUCE || v == origin) &&
		    !is_whole(&is, v, n)) {
			return false;
		}
	}
	return true;
}

static bool sums_right(const struct coll_sched *s)
{
	for (int origin = 0; origin < coll_ranks(s); origin++) {
		for (int c = 0; c < coll_chunks(s); c++) {
			if (!counts_right(s, origin, c)) {
				return false;
			}
		}
	}
	return true;
}

/* s with up to two transfers at another step or arc, or gone. */
static struct coll_sched *shaken(const struct coll_sched *s, struct rng *rng)
{
	struct coll_sched *out = blank_copy(s);
	struct err err = { 0 };
	const struct coll_xfer *x;
	int64_t n, at[2];

	x = coll_xfers(s, &n);
	at[0] = (int64_t)rng_below(rng, (uint64_t)n);
	at[1] = (int64_t)rng_below(rng, (uint64_t)n);
	for (int64_t i = 0; i < n; i++) {
		struct coll_xfer y = x[i];

		if (i == at[0] || i == at[1]) {
			switch (rng_below(rng, 8)) {
			case 0:
				continue;
			case 1:
				y.arc = (int)rng_below(rng, (uint64_t)topo_m(
							coll_topo(s)));
				break;
			default:
				y.step = (int)rng_below(rng, (uint64_t)
							coll_steps(s) + 2);
			}
		}
		must(coll_add(out, &y, &err), &err);
	}
	finish(out);
	return out;
}

static void test_sums_against_counting(void **state)
{
	static const char *const exprs[] = {
		"UniRing(1,4)", "Ring(5)", "Hypercube(3)", "GenKautz(2,7)",
		"Mesh(2,3)", "K(4)",
	};
	struct rng rng;
	int right = 0, wrong = 0;

	(void)state;
	rng_seed(&rng, 12);
	for (int i = 0; i < 1200; i++) {
		struct coll_sched *compact = bfb(i % 2 ? COLL_ALLREDUCE : COLL_REDUCE_SCATTER,
						 exprs[i % 6]);
		struct coll_sched *s = unfolded(compact), *t = shaken(s, &rng);
		bool good = sums_right(t);

		assert_true(sums_right(s));
		assert_int_equal(coll_verify(t, NULL, NULL) == 0, good);
		right += good;
		wrong += !good;
		coll_free(compact);
		coll_free(s);
		coll_free(t);
	}
	assert_true(right > 50);
	assert_true(wrong > 50);
}

/* ---- single faults and what is said about them ---- */

static void test_self_loop(void **state)
{
	static const int arcs[][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 } };
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_new(COLL_ALLGATHER, graph_from(2, 3, arcs), 1, 0, 0, &s,
		      &err), &err);
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 1, 0, 1, 0, 0, COLL_OP_COPY);
	finish(s);
	assert_factor(s, "1", "1");	/* the loop costs a port */
	send_part(s, 1, 0, 0, 1, 0, 0, COLL_OP_COPY);
	assert_refused(s, "step 1: arc 0 (0 -> 0): shard 1 chunk 0: a "
		       "self-loop carries nothing");
	coll_free(s);
}

/* Two relays in one step: the second does not hold it yet. */
static void test_relay_within_a_step(void **state)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "UniRing(1,3)", 1);

	(void)state;
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 1, 2, 0, 0, 0, COLL_OP_COPY);
	assert_refused(s, "step 0: arc 1 (1 -> 2): shard 0 chunk 0: sent "
		       "before it is held");
	coll_free(s);
}

/* In a sum a relay within a step passes on what it had before. */
static void test_sum_uses_the_step_before(void **state)
{
	struct coll_sched *s = empty(COLL_REDUCE_SCATTER, "UniRing(1,3)", 1);

	(void)state;
	for (int r = 0; r < 3; r++) {
		send_part(s, 0, (r + 1) % 3, (r + 2) % 3, r, 0, 0,
			  COLL_OP_REDUCE);
		send_part(s, r == 2 ? 0 : 1, (r + 2) % 3, r, r, 0, 0,
			  COLL_OP_REDUCE);
	}
	assert_refused(s, "shard 2 chunk 0: the sum at rank 2 has 2 of 3 "
		       "contributions: that of rank 0 does not arrive");
	coll_free(s);
}

static void test_double_sum(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "K(3)", 1);

	(void)state;
	send_part(s, 0, 1, 0, 0, 0, 0, COLL_OP_REDUCE);
	send_part(s, 0, 1, 2, 0, 0, 0, COLL_OP_REDUCE);
	send_part(s, 1, 2, 0, 0, 0, 0, COLL_OP_REDUCE);
	assert_refused(s, "step 1: arc 4 (2 -> 0): shard 0 chunk 0: a "
		       "contribution is summed twice");
	coll_free(s);
}

static void test_copy_of_incomplete_sum(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "K(3)", 2);

	(void)state;
	send_part(s, 0, 1, 0, 0, 0, 1, COLL_OP_REDUCE);
	send_part(s, 0, 2, 0, 0, 0, 0, COLL_OP_REDUCE);
	send_part(s, 1, 0, 1, 0, 0, 1, COLL_OP_COPY);
	send_part(s, 1, 0, 2, 0, 0, 0, COLL_OP_COPY);
	assert_refused(s, "step 1: arc 0 (0 -> 1): shard 0 chunk 1: copy of "
		       "an incomplete sum");
	coll_free(s);
}

/* A copy and a sum for the same node in the same step race. */
static void test_copy_and_sum_race(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "K(3)", 1);

	(void)state;
	send_part(s, 0, 1, 0, 0, 0, 0, COLL_OP_REDUCE);
	send_part(s, 0, 2, 0, 0, 0, 0, COLL_OP_REDUCE);
	send_part(s, 1, 1, 2, 0, 0, 0, COLL_OP_REDUCE);
	send_part(s, 1, 0, 2, 0, 0, 0, COLL_OP_COPY);
	assert_refused(s, "(1 -> 2): shard 0 chunk 0: a contribution "
		       "is summed twice");
	coll_free(s);
}

static void test_operations_of_the_wrong_kind(void **state)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(2)", 1);

	(void)state;
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_REDUCE);
	assert_refused(s, "does not reduce");
	coll_free(s);
	s = empty(COLL_ALLTOALL, "K(2)", 1);
	send_to(s, 0, 0, 1, 1, 1);
	assert_refused(s, "at its destination already");
	coll_free(s);
}

/* A chunk that moved on is gone. */
static void test_alltoall_moves(void **state)
{
	struct coll_sched *s = empty(COLL_ALLTOALL, "K(3)", 1);

	(void)state;
	for (int o = 0; o < 3; o++) {
		for (int d = 0; d < 3; d++) {
			if (o != d) {
				send_to(s, 0, o, d, o, d);
			}
		}
	}
	send_to(s, 1, 0, 2, 0, 1);
	assert_refused(s, "step 1: arc 1 (0 -> 2): shard 0 for rank 1 chunk "
		       "0: sent before it is held");
	coll_free(s);
}

static void test_ports(void **state)
{
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_new(COLL_ALLGATHER, graph_of("K(3)"), 1, 1, 0, &s, &err),
	     &err);
	for (int u = 0; u < 3; u++) {
		send_part(s, 0, u, (u + 1) % 3, u, 0, 0, COLL_OP_COPY);
		send_part(s, 0, u, (u + 2) % 3, u, 0, 0, COLL_OP_COPY);
	}
	assert_refused(s, "node 0 drives 2 units of capacity, more than its "
		       "1 ports");
	coll_free(s);
}

/* ---- light ---- */

static void light(struct coll_sched *s, int step, int arc, int channel)
{
	struct coll_light l = { step, arc, (uint16_t)channel, 0, 0, 0 };
	struct err err = { 0 };

	must(coll_add_light(s, &l, &err), &err);
}

static struct coll_sched *lit_pair(void)
{
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(2)", 1);

	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 1, 0, 1, 0, 0, COLL_OP_COPY);
	light(s, 0, 0, 4);
	return s;
}

static void test_light(void **state)
{
	struct coll_sched *s = lit_pair();

	(void)state;
	assert_refused(s, "step 1: arc 1 (1 -> 0): the arc "
		       "has no light");
	light(s, 1, 1, 4);
	finish(s);
	must(coll_verify(s, NULL, NULL), NULL);
	light(s, 1, 1, 4);
	assert_refused(s, "step 1: arc 1: light on channel 4 of fibre 0, "
		       "direction 0, is counted twice");
	coll_free(s);
}

/* Two lights carry twice as much and take two ports. */
static void test_lights_add_up(void **state)
{
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_new(COLL_ALLGATHER, graph_of("K(2)"), 1, 2, 0, &s, &err),
	     &err);
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 1, 0, 1, 0, 0, COLL_OP_COPY);
	for (int a = 0; a < 2; a++) {
		light(s, 0, a, 0);
		light(s, 0, a, 1);
	}
	finish(s);
	assert_factor(s, "1/2", "1/2");
	light(s, 0, 1, 2);
	assert_refused(s, "node 1 drives 3 units");
	coll_free(s);
}

/* Everybody to everybody in one step; the shards of a and b, when there is
 * such a rank, do not reach the rank behind it. */
static struct coll_sched *all_at_once(int n, int a, int b)
{
	struct coll_sched *s;
	char expr[32];

	snprintf(expr, sizeof(expr), "K(%d)", n);
	s = empty(COLL_ALLGATHER, expr, 1);
	for (int u = 0; u < n; u++) {
		for (int v = 0; v < n; v++) {
			bool lost = (u == a || u == b) && v == (u + 1) % n;

			if (v != u && !lost) {
				send_part(s, 0, u, v, u, 0, 0, COLL_OP_COPY);
			}
		}
	}
	finish(s);
	return s;
}

/* Large enough for several threads: the first fault is named all the same. */
static void test_many_shards(void **state)
{
	struct coll_sched *s = all_at_once(270, -1, -1);

	(void)state;
	assert_factor(s, "269/270", "269/270");
	coll_free(s);
	s = all_at_once(270, 17, 200);
	assert_refused(s, "shard 17 chunk 0 does not arrive at rank 18");
	coll_free(s);
	s = all_at_once(270, 269, 268);
	assert_refused(s, "shard 268 chunk 0 does not arrive at rank 269");
	coll_free(s);
}

/* What was proven is replayed again once it changes. */
static void test_change_after_proof(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "K(4)");

	(void)state;
	assert_factor(s, "3/2", "3/2");
	send_part(s, 2, 0, 1, 0, 0, 0, COLL_OP_COPY);
	assert_refused(s, "delivered twice");
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts),
		cmocka_unit_test(test_single_rank_needs_nothing),
		cmocka_unit_test(test_many_chunks),
		cmocka_unit_test(test_breaks_by_hand),
		cmocka_unit_test(test_breaks_synthesised),
		cmocka_unit_test(test_sums_against_counting),
		cmocka_unit_test(test_self_loop),
		cmocka_unit_test(test_relay_within_a_step),
		cmocka_unit_test(test_sum_uses_the_step_before),
		cmocka_unit_test(test_double_sum),
		cmocka_unit_test(test_copy_of_incomplete_sum),
		cmocka_unit_test(test_copy_and_sum_race),
		cmocka_unit_test(test_operations_of_the_wrong_kind),
		cmocka_unit_test(test_alltoall_moves),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_light),
		cmocka_unit_test(test_lights_add_up),
		cmocka_unit_test(test_many_shards),
		cmocka_unit_test(test_change_after_proof),
	};

	return cmocka_run_group_tests_name("schedule/verify", tests, NULL,
					   NULL);
}
