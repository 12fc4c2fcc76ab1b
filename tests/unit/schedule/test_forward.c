/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that are forwarded: chains of exchanges on rings and tori, verified and run with
 * numbers; mutations of them against a second reading of the rules; every fault and what is
 * said about it; and what is made of such schedules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/schedule/chains.h"

#define FEW 16	/* ranks */

/* ---- a second reading of the rules, with numbers ---- */

struct number {
	uint64_t of;		/* bit: whose contributions */
	int64_t value;
	int version;		/* of what a rank sends; 0: nothing */
};

struct machine {
	struct number sum[FEW], sent[FEW];
	struct number kept[FEW][FEW];	/* node, whose sum */
};

/* What a transfer carries; strict: it may. */
static struct number carried(const struct machine *was, const struct coll_xfer *x, int src, int n,
			     bool *strict)
{
	if (x->op == COLL_OP_FORWARD) {
		const struct number *k = &was->kept[src][x->dest];

		*strict &= k->version > 0 && k->version == was->sent[x->dest].version &&
			   x->dest != src;
		return *k;
	}
	*strict &= x->op == COLL_OP_REDUCE || was->sum[src].of == (UINT64_C(1) << n) - 1;
	return was->sum[src];
}

static void apply(const struct machine *was, struct machine *is, const struct coll_sched *s,
		  const struct coll_xfer *x, bool *strict)
{
	const struct topo_arc *a = topo_arc(coll_topo(s), x->arc);
	struct number *to = &is->sum[a->dst];
	struct number v = carried(was, x, a->src, coll_ranks(s), strict);

	if (x->op == COLL_OP_COPY) {
		*strict &= to->of != (UINT64_C(1) << coll_ranks(s)) - 1;
		*to = v;
		return;
	}
	*strict &= (to->of & v.of) == 0;
	to->of |= v.of;
	to->value += v.value;
	if (x->op == COLL_OP_REDUCE) {
		is->sent[a->src] = v;
		is->sent[a->src].version = was->sent[a->src].version +
					   (was->sent[a->src].version == 0 ||
					    was->sent[a->src].of != v.of);
		v.version = is->sent[a->src].version;
	}
	is->kept[a->dst][x->op == COLL_OP_REDUCE ? a->src : x->dest] = v;
}

/* Whether all ranks end with the sum; strict: and no rule was broken on the way. */
static bool run(const struct coll_sched *s, int origin, int chunk, struct rng *rng, bool *strict)
{
	struct machine is = { 0 };
	int n = coll_ranks(s);
	int64_t total, all = 0;
	const struct coll_xfer *x = coll_xfers(s, &total);
	bool right = true;

	*strict = true;
	for (int v = 0; v < n; v++) {
		is.sum[v] =
			(struct number){ UINT64_C(1) << v, (int64_t)rng_below(rng, 1 << 30), 0 };
		all += is.sum[v].value;
	}
	for (int step = 0; step < coll_steps(s); step++) {
		struct machine was = is;

		for (int pass = 0; pass < 2; pass++) {
			for (int64_t i = 0; i < total; i++) {
				if (x[i].step == step && x[i].origin == origin &&
				    x[i].first <= chunk && chunk <= x[i].last &&
				    (x[i].op == COLL_OP_COPY) == (pass == 0)) {
					apply(&was, &is, s, &x[i], strict);
				}
			}
		}
	}
	for (int v = 0; v < n; v++) {
		*strict &= is.sum[v].of == (UINT64_C(1) << n) - 1;
		right &= is.sum[v].value == all;
	}
	return right;
}

/* All shards of a schedule without a group. */
static bool runs_right(const struct coll_sched *s, struct rng *rng, bool *strict)
{
	bool right = true, one;

	*strict = true;
	for (int origin = 0; origin < coll_ranks(s); origin++) {
		for (int chunk = 0; chunk < coll_chunks(s); chunk++) {
			right &= run(s, origin, chunk, rng, &one);
			*strict &= one;
		}
	}
	return right;
}

/* ---- chains ---- */

/* Frees it. */
static void check_chains(struct coll_sched *compact, struct rng *rng)
{
	struct coll_sched *all = unfolded(compact);
	bool strict;

	assert_int_equal(coll_forwards(compact), coll_forwards(all));
	assert_same_reports(compact, all);
	assert_true(runs_right(all, rng, &strict));
	assert_true(strict);
	coll_free(compact);
	coll_free(all);
}

static void test_rings(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int n = 3; n <= 12; n++) {
		struct chain_plan plan = { .n_levels = 1, .levels = { { 1, n } } };

		snprintf(plan.graph, sizeof(plan.graph), "Ring(%d)", n);
		check_chains(chains(&plan), &rng);
	}
}

/* A chain after the other, what each node sends in the second is the sum of the first. */
static void test_levels(void **state)
{
	static const struct chain_plan plans[] = {
		{ "C(12,{1,3})", 2, { { 1, 3 }, { 3, 4 } } },
		{ "C(15,{1,5})", 2, { { 1, 5 }, { 5, 3 } } },
		{ "C(12,{1,2,6})", 3, { { 1, 2 }, { 2, 3 }, { 6, 2 } } },
		{ "C(16,{1,4})", 2, { { 1, 4 }, { 4, 4 } } },
	};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 6);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		check_chains(chains(&plans[i]), &rng);
	}
}

/* Of unlike sides, some ranges of chunks are in their second dimension before others. */
static void test_tori(void **state)
{
	static const int sides[][2] = { { 3, 3 }, { 2, 3 }, { 4, 4 }, { 3, 5 }, { 2, 7 } };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 9);
	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		check_chains(torus_chains(sides[i][0], sides[i][1]), &rng);
	}
}

/* Whatever keeps to the rules is verified, in no order at all. */
static void test_random(void **state)
{
	static const char *const graphs[] = { "K(4)", "Ring(5)", "C(6,{1,2})", "Hypercube(3)" };
	struct rng rng;
	int forwards = 0;

	(void)state;
	rng_seed(&rng, 12);
	for (int i = 0; i < 60; i++) {
		struct coll_sched *s = random_forwards(graphs[i % 4], 2, i % 3 * 10, &rng);
		struct err err = { 0 };
		bool strict;

		assert_true(runs_right(s, &rng, &strict) && strict);
		must(coll_verify(s, NULL, &err), &err);
		forwards += coll_forwards(s);
		coll_free(s);
	}
	assert_true(forwards > 40);
}

/* ---- mutations ---- */

/* Verified exactly when no rule is broken, and right whenever it is verified. */
static void test_mutations(void **state)
{
	static const struct chain_plan plans[] = {
		{ "Ring(3)", 1, { { 1, 3 } } }, { "Ring(4)", 1, { { 1, 4 } } },
		{ "Ring(5)", 1, { { 1, 5 } } }, { "Ring(6)", 1, { { 1, 6 } } },
		{ "C(6,{1,2})", 2, { { 1, 2 }, { 2, 3 } } },
		{ "C(9,{1,3})", 2, { { 1, 3 }, { 3, 3 } } },
		{ "C(8,{1,2})", 2, { { 1, 2 }, { 2, 4 } } },
	};
	int right = 0, wrong = 0, lucky = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 2100; i++) {
		struct coll_sched *compact = chains(&plans[i % 7]), *all = unfolded(compact);
		struct coll_sched *t = chain_mutated(all, &rng);
		bool strict, good = runs_right(t, &rng, &strict);

		assert_int_equal(coll_verify(t, NULL, NULL) == 0, strict);
		assert_true(good || !strict);
		right += strict;
		wrong += !strict;
		lucky += good && !strict;
		coll_free(compact);
		coll_free(all);
		coll_free(t);
	}
	assert_true(right > 100);
	assert_true(wrong > 100);
	assert_true(lucky > 0);
}

/* The same of what a compact schedule keeps: it is as right as what it stands for. */
static void test_mutated_compact(void **state)
{
	int right = 0, wrong = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	for (int i = 0; i < 1000; i++) {
		struct coll_sched *s = torus_chains(2 + i % 2, 3 + i / 2 % 2), *t, *all;
		struct chain_torus size = { { 2 + i % 2, 3 + i / 2 % 2 } };
		struct err err = { 0 };
		int64_t n, at;
		const struct coll_xfer *x = coll_xfers(s, &n);
		char graph[32];
		bool strict;

		snprintf(graph, sizeof(graph), "Torus(%d,%d)", size.size[0], size.size[1]);
		at = (int64_t)rng_below(&rng, (uint64_t)n);
		t = chain_begin(graph, size, coll_chunks(s));
		for (int64_t k = 0; k < n; k++) {
			struct coll_xfer y = x[k];

			if (k == at) {
				chain_mutate(&y, s, &rng);
			}
			must(coll_add(t, &y, &err), &err);
		}
		finish(t);
		all = unfolded(t);
		assert_true(runs_right(all, &rng, &strict) || !strict);
		assert_int_equal(coll_verify(t, NULL, NULL) == 0, strict);
		assert_int_equal(coll_verify(all, NULL, NULL) == 0, strict);
		right += strict;
		wrong += !strict;
		coll_free(s);
		coll_free(t);
		coll_free(all);
	}
	assert_true(right > 50);
	assert_true(wrong > 50);
}

/* ---- single faults and what is said about them ---- */

static void forward(struct coll_sched *s, int step, int u, int v, int whose)
{
	struct err err = { 0 };
	struct coll_xfer x = { step, topo_find_arc(coll_topo(s), u, v), 0, whose, 0, 0,
			       COLL_OP_FORWARD, 0 };

	must(coll_add(s, &x, &err), &err);
}

static void reduce(struct coll_sched *s, int step, int u, int v)
{
	send_part(s, step, u, v, 0, 0, 0, COLL_OP_REDUCE);
}

static void refused(struct coll_sched *s, const char *what)
{
	assert_refused(s, what);
	coll_free(s);
}

static void test_faults(void **state)
{
	struct coll_sched *s;

	(void)state;
	s = empty(COLL_ALLREDUCE, "K(4)", 1);
	reduce(s, 0, 0, 3);
	forward(s, 1, 1, 2, 0);
	refused(s, "step 1: arc 3 (1 -> 2): shard 0 chunk 0: the sum of rank 0 is forwarded before "
		   "it has come");

	s = empty(COLL_ALLREDUCE, "K(4)", 1);	/* what comes in a step is there in the next */
	reduce(s, 0, 0, 1);
	reduce(s, 1, 3, 1);
	forward(s, 1, 1, 2, 3);
	refused(s, "(1 -> 2): shard 0 chunk 0: the sum of rank 3 is forwarded, which has not sent");

	s = empty(COLL_ALLREDUCE, "K(4)", 1);
	reduce(s, 0, 0, 1);
	reduce(s, 0, 2, 0);
	reduce(s, 1, 0, 3);
	forward(s, 2, 1, 3, 0);
	refused(s, "(1 -> 3): shard 0 chunk 0: the sum of rank 0 has changed since it came");

	s = empty(COLL_ALLREDUCE, "K(4)", 1);
	reduce(s, 0, 0, 1);
	reduce(s, 0, 0, 2);
	forward(s, 1, 1, 2, 0);
	refused(s, "(1 -> 2): shard 0 chunk 0: a contribution is summed twice");

	s = empty(COLL_ALLREDUCE, "K(4)", 1);	/* back to whose it is */
	reduce(s, 0, 0, 1);
	forward(s, 1, 1, 0, 0);
	refused(s, "(1 -> 0): shard 0 chunk 0: a contribution is summed twice");

	s = empty(COLL_ALLREDUCE, "K(4)", 1);
	reduce(s, 0, 0, 1);
	forward(s, 1, 0, 2, 0);
	refused(s, "(0 -> 2): shard 0 chunk 0: a rank forwards the sums of others, not its own");
}

/* A rank that sends the same sum again has not changed it. */
static void test_sent_again(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "K(4)", 1);
	struct err err = { 0 };

	(void)state;
	reduce(s, 0, 0, 1);
	reduce(s, 1, 0, 2);
	forward(s, 2, 1, 3, 0);
	finish(s);
	assert_int_equal(coll_verify(s, NULL, &err), WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "does not arrive"));
	coll_free(s);
}

static void test_add_refuses(void **state)
{
	struct coll_xfer x = { 0, 0, 0, 2, 0, 0, COLL_OP_FORWARD, 0 };
	struct coll_sched *s = empty(COLL_REDUCE_SCATTER, "K(4)", 1);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(coll_add(s, &x, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "sums are forwarded in allreduce only"));
	coll_free(s);
	s = empty(COLL_ALLREDUCE, "K(4)", 1);
	for (x.dest = -1; x.dest <= 4; x.dest += 5) {
		assert_int_equal(coll_add(s, &x, &err), WEFT_EINVAL);
		assert_non_null(strstr(err.msg, "the sum that is forwarded is of no rank"));
	}
	finish(s);
	assert_false(coll_forwards(s));
	coll_free(s);
}

/* ---- schedules from such ---- */

static void test_transforms(void **state)
{
	static const int to[] = { 3, 5, 0, 1, 4, 2 };
	struct chain_plan plan = { "Ring(6)", 1, { { 1, 6 } } };
	struct coll_sched *s = chains(&plan), *out, *all = unfolded(s);
	struct err err = { 0 };
	struct rng rng;
	bool strict;

	(void)state;
	rng_seed(&rng, 8);
	must(coll_rename(s, to, &out, &err), &err);
	assert_same_reports(out, s);
	coll_free(out);
	must(coll_rename(all, to, &out, &err), &err);
	assert_true(coll_verify(out, NULL, NULL) == 0 && runs_right(out, &rng, &strict));
	coll_free(out);
	must(coll_pipeline(all, 3, &out, &err), &err);
	assert_true(runs_right(out, &rng, &strict) && strict);
	coll_free(out);
	for (int rank = 0; rank < 6; rank++) {
		struct coll_sched *of_compact, *of_all;

		must(coll_part_of(s, rank, &of_compact, &err), &err);
		must(coll_part_of(all, rank, &of_all, &err), &err);
		assert_true(coll_forwards(of_all));
		assert_same_flat(of_compact, of_all);
		coll_free(of_compact);
		coll_free(of_all);
	}
	coll_free(s);
	coll_free(all);
}

/* ---- files ---- */

#define HEAD "{\"format\":\"weft-schedule\",\"version\":%d,\"collective\":\"%s\",\"nodes\":3," \
	"\"chunks\":1,\"arcs\":[[0,1],[1,2],[2,0]],\"transfers_columns\":[\"step\",\"arc\"," \
	"\"origin\",\"first\",\"last\",\"op\",\"%s\"]," \
	"\"transfers\":[[0,0,0,0,0,1,%d],[1,1,0,0,0,2,%d]]}"

/* A file with a reduce and a forward is refused with this. */
static void refused_file(int version, const char *kind, const char *column, int in_reduce,
			 int in_forward, const char *what)
{
	struct coll_sched *s;
	struct err err = { 0 };
	char text[512];

	snprintf(text, sizeof(text), HEAD, version, kind, column, in_reduce, in_forward);
	assert_int_equal(coll_from_json(text, strlen(text), &s, &err), WEFT_EINVAL);
	if (!strstr(err.msg, what)) {
		fail_msg("\"%s\" is not in: %s", what, err.msg);
	}
}

static void test_files(void **state)
{
	struct chain_plan plan = { "Ring(5)", 1, { { 1, 5 } } };
	struct coll_sched *s = chains(&plan), *out;
	struct err err = { 0 };

	(void)state;
	for (int json = 0; json < 2; json++) {
		struct buf b = { 0 };

		(json ? coll_to_json : coll_to_proto)(s, &b);
		if (json) {
			assert_non_null(strstr(buf_cstr(&b), "\"version\": 5,"));
		} else {
			assert_memory_equal(b.data, "\x08\x05", 2);
		}
		must(coll_from_bytes(b.data, b.len, &out, &err), &err);
		assert_same_flat(s, out);
		assert_same_reports(s, out);
		coll_free(out);
		buf_fini(&b);
	}
	coll_free(s);
	refused_file(4, "allreduce", "sum_of", 0, 1,
		     "transfers[1]: forwarded sums are not in version 4");
	refused_file(4, "allreduce", "sum_of", 1, 1,
		     "transfers[0]: forwarded sums are not in version 4");
	refused_file(5, "reduce-scatter", "sum_of", 0, 1,
		     "transfers[1]: step 1: arc 1: shard 0 chunks "
		     "0 to 0: sums are forwarded in allreduce only");
	refused_file(5, "allreduce", "sum_of", 0, 3,
		     "transfers[1]: step 1: arc 1: shard 0 chunks 0 to "
		     "0: the sum that is forwarded is of no rank");
	refused_file(5, "allreduce", "sum_of", 1, 1, "transfers[0]: sum_of is not for operation 1");
	refused_file(5, "allreduce", "dest", -1, 1, "transfers[1]: dest is not for operation 2");
}

/* ---- simulation ---- */

static double time_of(const struct coll_sched *s, bool asynchronous)
{
	struct coll_sim_options o = { .asynchronous = asynchronous,
		.cost = { .alpha_ns = 1000, .hop_ns = 30, .message_ns = 500,
			  .link_bps = 1000000000, .size_bytes = 90000 } };
	struct coll_sim sim = { 0 };
	struct err err = { 0 };
	double time;

	must(coll_simulate(s, &o, &sim, NULL, &err), &err);
	time = sim.time_ns;
	coll_sim_fini(&sim);
	return time;
}

/* Frees it. */
static void check_times(struct coll_sched *s)
{
	struct coll_sched *all = unfolded(s);

	for (int k = 0; k < 2; k++) {
		double a = time_of(s, k), b = time_of(all, k);

		assert_true(a > 0 && a - b < 1e-3 && b - a < 1e-3);
	}
	coll_free(s);
	coll_free(all);
}

static void test_simulated_alike(void **state)
{
	static const struct chain_plan plans[] = {
		{ "Ring(7)", 1, { { 1, 7 } } }, { "Ring(8)", 1, { { 1, 8 } } },
		{ "C(12,{1,3})", 2, { { 1, 3 }, { 3, 4 } } },
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		check_times(chains(&plans[i]));
	}
	check_times(torus_chains(3, 4));
	check_times(torus_chains(5, 2));
}

/* A forward waits for what brought that sum, not for other sums that its sender gets. */
static void test_forward_waits(void **state)
{
	double time[3];

	(void)state;
	for (int whose = 0; whose < 3; whose++) {
		struct err err = { 0 };
		struct topo *t;
		struct coll_sched *s;

		must(topo_new(4, &t, &err), &err);
		must(topo_add_arc(t, 0, 1, 1, 0, &err), &err);
		must(topo_add_arc(t, 2, 1, 1, 900000000, &err), &err);
		must(topo_add_arc(t, 1, 3, 1, 0, &err), &err);
		topo_freeze(t);
		must(coll_new(COLL_ALLREDUCE, t, 1, 0, 0, &s, &err), &err);
		reduce(s, 0, 0, 1);
		reduce(s, 0, 2, 1);
		if (whose == 1) {
			reduce(s, 1, 1, 3);
		} else {
			forward(s, 1, 1, 3, whose);
		}
		finish(s);
		time[whose] = time_of(s, true);
		coll_free(s);
	}
	assert_true(time[0] < time[1]);
	assert_true(time[1] == time[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_tori),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_mutated_compact),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_sent_again),
		cmocka_unit_test(test_add_refuses),
		cmocka_unit_test(test_transforms),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_simulated_alike),
		cmocka_unit_test(test_forward_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
