/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast on rings and parts of rings: every way that one can go is written
 * out, replayed and run by the simulator. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "optree/broadcast/broadcast.h"
#include "tests/unit/optree/common.h"
#include "tests/unit/optree/ring_sim.h"
#include "tests/unit/world.h"

static int64_t simulated(const struct optree_params *p, const struct optree_plan *plan)
{
	struct ring_sim_params sim = { .ring = *p, .flit_bytes = 1 };
	struct ring_sim_result result;
	struct err err = { 0 };

	sim.retune_ns = p->alpha_ns - (p->overlap ? p->convert_ns : 0);
	if (ring_simulate(plan->sched, &sim, &result, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(result.steps, plan->steps);
	return result.time_ns;
}

static bool may_use(const struct optree_params *p, const struct coll_light *l)
{
	for (int k = 0; k < p->n_light; k++) {
		const struct optree_fibre *f = &p->light[k];

		if (f->dir == l->dir && f->fibre == l->fibre && l->channel >= f->first &&
		    l->channel < f->first + f->channels) {
			return true;
		}
	}
	return p->n_light == 0;
}

/* Light is where the job may have it, and within the budget. */
static void check_light(const struct optree_params *p, const struct optree_plan *plan)
{
	int64_t n, worst = 0;
	const struct coll_light *l = coll_lights(plan->sched, &n);

	assert_int_equal(n, plan->lightpaths);
	for (int64_t k = 0; k < n; k++) {
		const struct topo_arc *a = topo_arc(coll_topo(plan->sched), l[k].arc);

		assert_true(may_use(p, &l[k]));
		assert_true(!p->line || (l[k].dir == RWA_CW) == (a->src < a->dst));
		worst = l[k].loss_mdb > worst ? l[k].loss_mdb : worst;
	}
	assert_true(worst <= plan->worst_loss_mdb);
	assert_true(worst == plan->worst_loss_mdb || p->at);
	assert_true(!p->loss || worst <= p->loss->launch_mdbm);
}

/* With other numbers for the ranks it is a broadcast from the root's new one,
 * and numbered back what it was. */
static void check_renamed(const struct coll_sched *s)
{
	int n = coll_ranks(s), there[40], back[40];
	struct coll_sched *turned, *again;
	struct buf a = { 0 }, b = { 0 };
	struct err err = { 0 };

	for (int v = 0; v < n; v++) {
		there[v] = (v + 3) % n;
		back[(v + 3) % n] = v;
	}
	assert_int_equal(coll_rename(s, there, &turned, &err), 0);
	assert_int_equal(coll_verify(turned, NULL, &err), 0);
	assert_int_equal(coll_root(turned), (coll_root(s) + 3) % n);
	assert_int_equal(coll_rename(turned, back, &again, &err), 0);
	coll_to_proto(s, &a);
	coll_to_proto(again, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	coll_free(turned);
	coll_free(again);
	buf_fini(&a);
	buf_fini(&b);
}

/* By which method it was. */
static enum broadcast_method check(const struct optree_params *p, int root)
{
	struct optree_plan plan;
	struct err err = { 0 };
	enum broadcast_method method;
	int64_t ns;

	if (optree_collective(p, COLL_BROADCAST, root, OPTREE_AUTO, &plan, &err) ||
	    optree_plan_expand(p, &plan, &err)) {
		fail_msg("n=%d w=%d*%d d=%lld root %d: %s", p->n, p->channels, p->fibres,
			 (long long)p->shard_bytes, root, err.msg);
	}
	assert_int_equal(coll_kind_of(plan.sched), COLL_BROADCAST);
	assert_int_equal(coll_root(plan.sched), root);
	assert_true(plan.time_ns >= plan.bound_ns);
	check_light(p, &plan);
	if (p->n % 4 == 1) {
		check_renamed(plan.sched);
	}
	method = plan.broadcast->method;
	ns = simulated(p, &plan);
	/* A byte is sent in less than a ns, and chunks need not be whole ones. */
	assert_true(ns <= plan.time_ns + plan.steps);
	if (!p->overlap && !(p->at && p->span_delay_ns) &&
	    tree_width(p, 0) == tree_width(p, 1)) {
		if (ns < plan.time_ns - 1) {
			fail_msg("n=%d w=%d*%d d=%lld root %d line %d method %d: %lld ns, "
				 "simulated %lld", p->n, p->channels, p->fibres,
				 (long long)p->shard_bytes, root, p->line, method,
				 (long long)plan.time_ns, (long long)ns);
		}
	}
	optree_plan_fini(&plan);
	return method;
}

static void every_size_has_its_method(void **state)
{
	static const int64_t bytes[] = { 1, 40, 4000, 100000, 3000000 };
	int ways[3] = { 0 };

	(void)state;
	for (int n = 2; n <= 40; n++) {
		for (int k = 0; k < 5; k++) {
			struct optree_params p = params(n, 1 + n * (k + 1) % 18, bytes[k]);

			p.fibres = 1 + (n + k) % 2;
			ways[check(&p, n * k % 7 % n)]++;
		}
	}
	assert_true(ways[BROADCAST_GAPS] > 20);
	assert_true(ways[BROADCAST_STREAM] > 20);
	assert_true(ways[BROADCAST_GATHER] > 5);
}

/* ---- random parts ---- */

struct part {
	struct optree_params p;
	struct optree_fibre light[4];
	int32_t at[40];
	struct rwa_loss loss;
	int root;
};

/* Some channels of each direction, or of one. */
static void random_light(struct rng *rng, struct part *x)
{
	bool one_direction = !x->p.line && rng_below(rng, 4) == 0;

	for (int k = 0; k < 2 * x->p.fibres; k++) {
		int first = (int)rng_below(rng, (uint64_t)x->p.channels);
		int dir = k % 2;

		if (k > 1 && rng_below(rng, 2)) {
			continue;
		}
		x->light[x->p.n_light++] = (struct optree_fibre){
			.dir = (uint8_t)(one_direction ? (x->root & 1) : dir),
			.fibre = (uint8_t)(k / 2), .first = first,
			.channels = 1 + (int)rng_below(rng, (uint64_t)(x->p.channels - first)) };
		if (one_direction) {
			k++;
		}
	}
	x->p.light = x->light;
}

/* Every node of the ring is in the job or not. */
static void random_places(struct rng *rng, struct part *x)
{
	int at = 0;

	for (int k = 0; k < x->p.n; k++) {
		at += 1 + (int)rng_below(rng, 3);
		x->at[k] = at - 1;
	}
	x->p.ring_nodes = at + (int)rng_below(rng, 3);
	x->p.at = x->at;
}

static void random_part(struct rng *rng, struct part *x)
{
	int n = 2 + (int)rng_below(rng, 30);

	memset(x, 0, sizeof(*x));
	x->p = params(n, 1 + (int)rng_below(rng, 12),
		      INT64_C(1) << rng_below(rng, 22));
	x->p.fibres = 1 + (int)rng_below(rng, 2);
	x->p.line = rng_below(rng, 3) == 0;
	x->root = (int)rng_below(rng, (uint64_t)n);
	if (rng_below(rng, 2)) {
		random_light(rng, x);
	}
	if (rng_below(rng, 3) == 0) {
		random_places(rng, x);
	}
	if (rng_below(rng, 3) == 0) {
		x->loss = (struct rwa_loss){ .span_mdb = 1000,
			.launch_mdbm = 1000 * (6 + (int)rng_below(rng, 12)) };
		x->p.loss = &x->loss;
	}
	x->p.overlap = rng_below(rng, 3) == 0;
	x->p.convert_ns = x->p.overlap ? (int64_t)rng_below(rng, 25001) : 0;
	x->p.span_delay_ns = rng_below(rng, 3) == 0 ? (int64_t)rng_below(rng, 3000) : 0;
}

static void parts_of_rings(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20);
	for (int k = 0; k < 400; k++) {
		struct part x;

		random_part(&rng, &x);
		check(&x.p, x.root);
	}
}

/* ---- what it was before ---- */

/* Gaps are halved, half of the vector from each end. */
static double halving_ns(const struct optree_params *p)
{
	double w = p->channels * p->fibres, vector = broadcast_vector_ns(p);
	int rounds = 0;

	while (1 << rounds < p->n) {
		rounds++;
	}
	return rounds * ((double)p->alpha_ns + vector / 2 / w);
}

/* The whole vector both ways in as many as n pieces. */
static double both_sides_ns(const struct optree_params *p)
{
	double w = p->channels * p->fibres, vector = broadcast_vector_ns(p), best = 0;

	for (int k = 1; k <= p->n; k++) {
		double ns = (k + p->n / 2 - 1) * ((double)p->alpha_ns + vector / k / w);

		best = k == 1 || ns < best ? ns : best;
	}
	return best;
}

static void never_slower_than_halving_or_a_relay(void **state)
{
	(void)state;
	for (int n = 2; n <= ALL_OR_SOME(600, 200); n += 1 + n / 3) {
		for (int k = 0; k < 24; k += ALL_OR_SOME(1, 4)) {
			struct optree_params p = params(n, 1 + k * 7 % 65,
							INT64_C(6) << k);
			struct optree_plan plan;
			struct err err = { 0 };
			double before = halving_ns(&p), pipe = both_sides_ns(&p);

			assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_AUTO,
							   &plan, &err), 0);
			before = before < pipe ? before : pipe;
			/* They are counted without the rounding to chunks. */
			if ((double)plan.time_ns > before * 1.001 + 1) {
				fail_msg("n=%d w=%d d=%lld: %lld ns, before %.0f", n, p.channels,
					 (long long)p.shard_bytes, (long long)plan.time_ns,
					 before);
			}
			optree_plan_fini(&plan);
		}
	}
}

/* ---- large ones ---- */

static int64_t time_of(int n, int w, int64_t bytes)
{
	struct optree_params p = params(n, w, bytes);
	struct optree_plan plan;
	struct err err = { 0 };
	int64_t ns;

	assert_int_equal(optree_collective(&p, COLL_BROADCAST, n / 2, OPTREE_AUTO, &plan, &err),
			 0);
	ns = plan.time_ns;
	optree_plan_fini(&plan);
	return ns;
}

/* K steps after the scatter bring 2K + 1 pieces: within a part in a hundred of
 * the time that this has without whole chunks, for the best K. */
static void long_vectors_take_what_the_stream_says(void **state)
{
	static const int sizes[][2] = { { 64, 16 }, { 64, 128 }, { 1024, 64 }, { 4096, 128 } };

	(void)state;
	assert_true(time_of(16, 4, 64000000) < 32000000);
	for (int i = 0; i < 4; i++) {
		int n = sizes[i][0], w = sizes[i][1];
		double t0 = n * 64e6 * 8e9 / (2.0 * w * 40e9), best = 1e18;
		int slots = (n / 2 + w - 1) / w;

		for (int k = n / 2; k < 20 * n; k++) {
			double ns = (slots + k) * 25e3 + t0 * (1 + (n - 2) / (2.0 * k + 1));

			best = ns < best ? ns : best;
		}
		assert_true((double)time_of(n, w, 64000000) < 1.01 * best);
	}
}

/* ---- the bound's cuts ---- */

/* The interval of a cut around v after `j` rounds of shrinking. */
static void interval(int n, int v, int j, int *from, int *to)
{
	j = j > 0 ? j : 0;
	*from = 1 + j < v ? 1 + j : v;
	*to = n - 1 - j > v ? n - 1 - j : v;
}

/* For each first and last node of a lightpath clockwise (0: the root), into how
 * many cuts it leads in round k; in round 0 every other node lacks all. */
static int entered(int n, int rounds, int k, int u, int x)
{
	int cuts = 0;

	for (int v = 1; v < n; v++) {
		for (int m = 1 - broadcast_cut_rounds(n, v); m < rounds; m++) {
			int from, to, next, last;

			interval(n, v, k - m, &from, &to);
			interval(n, v, k + 1 - m, &next, &last);
			from = k ? from : 1;
			cuts += u < from && next <= x && x <= last;
		}
	}
	return cuts;
}

/* Prices of links that no lightpath is worth more than, `still` in all: what
 * a lightpath of one link is worth, in round 0 all on the root's. */
static void check_round(int n, int rounds, int k)
{
	int64_t all, still, sum = 0;
	int price[16] = { 0 };

	broadcast_cuts(n, rounds, &all, &still);
	for (int x = 1; x < n; x++) {
		price[x] = k ? entered(n, rounds, k, x - 1, x) : x == 1 ? (int)still : 0;
		sum += price[x];
	}
	assert_int_equal(sum, still);
	for (int u = 0; u < (k ? n : 1); u++) {
		int paid = 0;

		for (int x = u + 1; x < n; x++) {
			paid += price[x];
			assert_true(entered(n, rounds, k, u, x) <= paid);
		}
	}
}

static void no_lightpath_is_worth_more_than_its_links(void **state)
{
	(void)state;
	for (int n = 3; n <= 14; n++) {
		for (int rounds = 1; rounds <= 9; rounds++) {
			for (int k = 0; k < rounds; k++) {
				check_round(n, rounds, k);
			}
		}
	}
}

/* Least data times by linear programs, with free lightpaths and lengths of rounds;
 * what a stream of as many steps takes. */
static void lowest_times_are_between_bound_and_stream(void **state)
{
	static const struct {
		int n, rounds;
		double least;
	} known[] = {
		{ 5, 1, 4 }, { 5, 2, 2 }, { 5, 3, 1.55556 }, { 5, 4, 1.42 }, { 5, 7, 1.22826 },
		{ 6, 2, 2.2 }, { 6, 3, 1.70886 }, { 6, 4, 1.52844 }, { 6, 6, 1.34934 },
		{ 6, 8, 1.2589 }, { 7, 4, 1.62416 }, { 7, 6, 1.42857 }, { 7, 8, 1.31915 },
		{ 7, 12, 1.21127 }, { 8, 2, 2.6 }, { 8, 4, 1.71136 }, { 8, 6, 1.49722 },
		{ 8, 8, 1.37601 }, { 9, 4, 1.79377 }, { 9, 8, 1.43012 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int n = known[i].n, k = known[i].rounds - 1;
		int64_t all, still;

		broadcast_cuts(n, k + 1, &all, &still);
		assert_true((double)all / (double)still <= known[i].least);
		if (2 * k >= n - 2) {
			assert_true(known[i].least <= 1 + (n - 2) / (2.0 * k + 1) + 1e-5);
		}
	}
}

/* With overlap a step costs nothing, and yet not tens of thousands of them are made. */
static void steps_are_worth_their_time(void **state)
{
	struct optree_params p = params(64, 8, 1000000);
	struct optree_plan plan;
	struct err err;

	(void)state;
	p.overlap = true;
	p.convert_ns = 0;
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_AUTO, &plan, &err), 0);
	assert_in_range(plan.steps, 1000, 3000);
	assert_true(plan.gap < 0.02);
	optree_plan_fini(&plan);
	/* More than 10,000 are for who asks for them by name. */
	p = params(1024, 8, 1000000);
	p.overlap = true;
	p.convert_ns = 0;
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_AUTO, &plan, &err), 0);
	assert_in_range(plan.steps, 5000, 10000 + 1024);
	optree_plan_fini(&plan);
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_COMPOSED, &plan, &err), 0);
	assert_in_range(plan.steps, 20000, 100000);
	assert_true(plan.gap < 0.02);
	optree_plan_fini(&plan);
}

/* 64 MB and 1 GB, as far as the bound is known to allow. */
static void gaps_of_long_vectors(void **state)
{
	static const struct {
		int n, w;
		int64_t bytes;
		double gap;
	} cases[] = {
		{ 16, 4, 64000000, 0.02 }, { 64, 16, 64000000, 0.05 },
		{ 1024, 16, 64000000, 0.05 }, { 256, 64, 64000000, 0.18 },
		{ 256, 128, 64000000, 0.31 }, { 256, 64, 1000000000, 0.02 },
		{ 256, 128, 1000000000, 0.03 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct optree_params p = params(cases[i].n, cases[i].w, cases[i].bytes);
		struct optree_plan plan;
		struct err err = { 0 };

		assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_AUTO, &plan, &err),
				 0);
		assert_true(plan.gap >= 0 && plan.gap < cases[i].gap);
		optree_plan_fini(&plan);
	}
}

static void too_large_to_write_out(void **state)
{
	struct optree_params p = params(4096, 64, 64000000);
	struct optree_plan plan;
	struct err err = { 0 };
	int64_t free_ns;

	(void)state;
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_AUTO, &plan, &err), 0);
	free_ns = plan.time_ns;
	assert_int_equal(optree_plan_expand(&p, &plan, &err), WEFT_ELIMIT);
	assert_null(plan.sched);
	optree_plan_fini(&plan);
	p.max_lights = COLL_MAX_LIGHTS;
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 0, OPTREE_AUTO, &plan, &err), 0);
	assert_true(plan.time_ns > free_ns);
	assert_true(plan.lightpaths <= COLL_MAX_LIGHTS);
	optree_plan_fini(&plan);
}

static void no_such_root(void **state)
{
	struct optree_params p = params(8, 4, 100);
	struct optree_plan plan;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, 8, OPTREE_AUTO, &plan, &err),
			 WEFT_EINVAL);
	assert_int_equal(optree_collective(&p, COLL_BROADCAST, -1, OPTREE_AUTO, &plan, &err),
			 WEFT_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_has_its_method),
		cmocka_unit_test(parts_of_rings),
		cmocka_unit_test(never_slower_than_halving_or_a_relay),
		cmocka_unit_test(long_vectors_take_what_the_stream_says),
		cmocka_unit_test(no_lightpath_is_worth_more_than_its_links),
		cmocka_unit_test(lowest_times_are_between_bound_and_stream),
		cmocka_unit_test(steps_are_worth_their_time),
		cmocka_unit_test(gaps_of_long_vectors),
		cmocka_unit_test(too_large_to_write_out),
		cmocka_unit_test(no_such_root),
	};

	return cmocka_run_group_tests_name("optree/broadcast", tests, NULL, NULL);
}
