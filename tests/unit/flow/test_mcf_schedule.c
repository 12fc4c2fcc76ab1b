/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all schedules out of flows: verified, and near the flow's rate. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collective/flow/private.h"
#include "tests/unit/schedule/common.h"

static struct coll_sched *make(const struct topo *t, double loss,
			       struct mcf_sched_info *info)
{
	struct mcf_sched_options opt = { .flow.gap = 1e-5, .loss = loss };
	struct err err = { 0 };
	struct coll_sched *s;

	must(mcf_schedule(t, &opt, &s, info, &err), &err);
	return s;
}

/* Replays, and compares T_B with the sum of the steps told and with the
 * flow's congestion. */
static void assert_near_flow(const char *expr, double loss)
{
	struct topo *t = graph_of(expr);
	struct mcf_sched_info info;
	struct coll_sched *s = make(t, loss, &info);
	struct coll_report r;
	struct err err = { 0 };

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(r.steps, info.steps);
	assert_int_equal(coll_chunks(s), info.chunks);
	assert_true(fabs(mpq_get_d(r.shard_times) - info.stepped) < 1e-9);
	assert_true(info.stepped >= info.chunked - 1e-9);
	assert_true(info.chunked >= info.flow.bound * (1 - 1e-9));
	if (info.stepped > info.flow.congestion * (1 + 2.1 * loss)) {
		fail_msg("%s: %g, the flow has %g", expr, info.stepped,
			 info.flow.congestion);
	}
	coll_report_fini(&r);
	coll_free(s);
	topo_free(t);
}

static void test_near_flow(void **state)
{
	static const char *const all[] = {
		"K(2)", "K(4,4)", "Hypercube(3)", "Hypercube(4)",
		"Torus(3,3)", "Torus(4,4)", "Torus(3,3,3)", "GenKautz(4,16)",
		"GenKautz(4,25)", "GenKautz(4,36)", "GenKautz(4,64)",
		"UniRing(3,4)", "Ring(5)",
		/* Groups that do not commute, where hops keep their order. */
		"Cay(7:3,r=2,{(1,0),(0,1)})", "DiCay(7:3,r=2,{(1,0),(0,1)})",
		"Cay(16:4,r=5,s=4,{(6,1),(13,3)})",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_near_flow(all[i], 0.02);
	}
}

static void test_unequal_arcs(void **state)
{
	struct err err = { 0 };
	struct mcf_sched_info info;
	struct coll_sched *s;
	struct topo *t;

	(void)state;
	must(topo_new(6, &t, &err), &err);
	for (int u = 0; u < 6; u++) {
		must(topo_add_arc(t, u, (u + 1) % 6, 1 + u % 3, 0, &err),
		     &err);
		must(topo_add_arc(t, u, (u + 5) % 6, 2, 0, &err), &err);
		must(topo_add_arc(t, u, (u + 5) % 6, 1, 0, &err), &err);
	}
	topo_freeze(t);
	s = make(t, 0.05, &info);
	must(coll_verify(s, NULL, &err), &err);
	coll_free(s);
	topo_free(t);
}

/* Paths of a pair lead from source to sink and carry its whole unit; all
 * together load the arcs as the flow does. */
static void test_extraction_loses_nothing(void **state)
{
	struct topo *t = graph_of("GenKautz(4,40)");
	struct mcf_options opt = { .gap = 1e-4 };
	struct flow_paths paths = { 0 };
	struct mcf_result res;
	struct err err = { 0 };
	double *load, most = 0, sum = 0;
	struct mcf *p;

	(void)state;
	must(mcf_new(t, false, &p, &err), &err);
	must(mcf_run(p, &opt, &res, &err), &err);
	flow_paths_cut(p, NULL, &paths);
	load = calloc((size_t)p->net.m, sizeof(*load));
	for (size_t i = 0; i < paths.v.n; i++) {
		const struct flow_path *q = &paths.v.v[i];
		int at = q->pair / 40;

		for (int k = 0; k < q->n_arcs; k++) {
			int a = paths.arcs.v[q->first + k];

			assert_int_equal(p->net.src[a], at);
			at = p->net.dst[a];
			load[a] += q->weight;
		}
		assert_int_equal(at, q->pair % 40);
		sum += q->weight;
	}
	assert_true(fabs(sum - 40 * 39) < 1e-6);
	for (int a = 0; a < p->net.m; a++) {
		most = fmax(most, load[a]);
	}
	/* At least 99.9 % of the rate. */
	assert_true(res.congestion / most > 0.999);
	free(load);
	flow_paths_fini(&paths);
	mcf_free(p);
	topo_free(t);
}

static void test_refused(void **state)
{
	static const int arcs[][2] = { { 0, 1 } };
	struct mcf_sched_options opt = { .flow.gap = 1e-3, .loss = 0.01 };
	struct topo *t = graph_from(2, 1, arcs);
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	assert_int_equal(mcf_schedule(t, &opt, &s, NULL, &err),
			 WEFT_EINFEASIBLE);
	assert_null(s);
	topo_free(t);
	t = graph_of("Torus(4,4)");
	opt.max_steps = 1;
	assert_int_equal(mcf_schedule(t, &opt, &s, NULL, &err), WEFT_ELIMIT);
	assert_null(s);
	topo_free(t);
}

/* When there is no time, or no caller waits, there still is a schedule, and it
 * says how good its flow is. */
static void test_out_of_time(void **state)
{
	static const volatile bool canceled = true;
	struct mcf_sched_options limits[] = {
		{ .flow.deadline = deadline_in(1, NULL), .loss = 0.01 },
		{ .flow.cancel = &canceled, .loss = 0.01 },
	};
	struct topo *t = graph_of("GenKautz(4,128)");
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct mcf_sched_info info;
		struct coll_sched *s;

		must(mcf_schedule(t, &limits[i], &s, &info, &err), &err);
		must(coll_verify(s, NULL, &err), &err);
		assert_int_equal(info.flow.stop, i ? MCF_CANCELED : MCF_TIME);
		assert_true(info.flow.gap > 0.001);
		assert_true(info.flow.bound > 0);
		/* One attempt with whole shards, and its steps lose little. */
		assert_int_equal(info.chunks, 1);
		assert_true(info.stepped < info.chunked * 1.2);
		coll_free(s);
	}
	topo_free(t);
}

/* A deadline of the test's own: it passes when it was asked so often. */
static bool passes_after(void *arg)
{
	int *left = arg;

	return (*left)-- <= 0;
}

/* Wherever it passes: in the flow, the paths, the chunks or the steps, there
 * is a proven schedule and a bound that holds, and it is told. */
static void deadline_anywhere(const char *expr, double congestion,
			      enum mcf_paths paths)
{
	struct topo *t = graph_of(expr);
	bool in_flow = false, later = false, never = false;

	for (int asked = 0; !never; asked += 1 + asked / 4) {
		int left = asked;
		struct mcf_sched_options opt = {
			.flow = { .gap = 1e-3, .is_over = passes_after,
				  .arg = &left },
			.loss = 0.002, .paths = paths,
		};
		struct mcf_sched_info info;
		struct coll_sched *s;
		struct err err = { 0 };

		must(mcf_schedule(t, &opt, &s, &info, &err), &err);
		must(coll_verify(s, NULL, &err), &err);
		assert_true(info.flow.bound <= congestion * (1 + 1e-9));
		assert_true(info.flow.congestion >= congestion * (1 - 1e-9));
		assert_true(info.stepped >= congestion * (1 - 1e-9));
		in_flow |= info.flow.stop == MCF_TIME;
		later |= info.flow.stop == MCF_REACHED &&
			 info.stop == MCF_TIME;
		never = info.stop == MCF_REACHED;
		assert_true(never == (left >= 0));
		coll_free(s);
		assert_true(asked < 1 << 24);
	}
	assert_true(in_flow && later);
	topo_free(t);
}

static void test_deadline_anywhere(void **state)
{
	(void)state;
	deadline_anywhere("GenKautz(4,64)", 691 / 15.0, MCF_PATHS_FLOW);
	deadline_anywhere("GenKautz(4,36)", 187 / 8.0, MCF_PATHS_SINGLE);
}

static void test_too_large(void **state)
{
	struct mcf_sched_options opt = { .flow.gap = 1e-3, .loss = 0.01 };
	struct topo *t = graph_of("Xpander(7,512,1)");
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	assert_int_equal(mcf_schedule(t, &opt, &s, NULL, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "4096 nodes"));
	assert_null(s);
	topo_free(t);
}

/* Where an abelian group moves any terminal to any other, paths of the flow take
 * as many steps as the farthest is away and nothing is lost to them. */
static void test_hops_in_any_order(void **state)
{
	static const struct {
		const char *expr;
		int steps;
	} rows[] = {
		{ "Torus(8,8)", 8 }, { "Torus(4,4,4)", 6 }, { "Hypercube(6)", 6 },
		{ "Ring(24)", 12 }, { "Ring(25)", 12 }, { "C(32,{1,5,9})", 4 },
		{ "Torus(8,8,8)", 12 }, { "K(16)", 1 }, { "Torus(16,16,16)", 24 },
	};
	struct mcf_sched_options opt = { .flow.gap = 1e-3, .loss = 0.002 };
	struct mcf_sched_info info;
	struct coll_report rep;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = graph_of(rows[i].expr);
		struct coll_sched *s;

		coll_report_init(&rep);
		must(mcf_schedule(t, &opt, &s, &info, &err), &err);
		must(coll_verify(s, &rep, &err), &err);
		assert_int_equal(rep.steps, rows[i].steps);
		assert_int_equal(info.steps, rows[i].steps);
		assert_true(mpq_get_d(rep.bandwidth_factor) <
			    mpq_get_d(rep.bandwidth_bound) * 1.004);
		if (rep.transfers < 1 << 19) {
			struct coll_sched *flat = unfolded(s);
			struct coll_report all;

			coll_report_init(&all);
			must(coll_verify(flat, &all, &err), &err);
			assert_true(mpq_equal(all.bandwidth_factor, rep.bandwidth_factor));
			coll_report_fini(&all);
			coll_free(flat);
		}
		coll_report_fini(&rep);
		coll_free(s);
		topo_free(t);
	}
}

/* Parallel arcs, capacities and random offsets: what the steps carry is what the
 * flow says, and the replay of all transfers agrees. */
static void test_random_circulants(void **state)
{
	struct mcf_sched_options opt = { .flow.gap = 1e-3, .loss = 0.02 };
	struct mcf_sched_info info;
	struct rng rng;
	struct err err = { 0 };

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 60; i++) {
		int n = 6 + (int)rng_below(&rng, 30), k = 2 + (int)rng_below(&rng, 2);
		struct coll_sched *s, *flat;
		struct topo *t;
		char expr[96];

		snprintf(expr, sizeof(expr), i % 3 ? "Multi(C(%d,{1,%d}),%d)"
						   : "Prod(Cap(Ring(%d),3),UniRing(%d,%d))",
			 i % 3 ? n : n / 3 + 2, k, i % 3 ? 1 + i % 2 : 3);
		t = graph_of(expr);
		must(mcf_schedule(t, &opt, &s, &info, &err), &err);
		flat = unfolded(s);
		must(coll_verify(flat, NULL, &err), &err);
		assert_true(info.stepped >= info.chunked * (1 - 1e-9));
		assert_true(info.steps >= info.longest);
		coll_free(flat);
		coll_free(s);
		topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near_flow),
		cmocka_unit_test(test_unequal_arcs),
		cmocka_unit_test(test_extraction_loses_nothing),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_out_of_time),
		cmocka_unit_test(test_deadline_anywhere),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_hops_in_any_order),
		cmocka_unit_test(test_random_circulants),
	};

	return cmocka_run_group_tests_name("flow/mcf_schedule", tests, NULL,
					   NULL);
}
