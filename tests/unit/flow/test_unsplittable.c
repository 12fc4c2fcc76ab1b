/* SPDX-License-Identifier: Apache-2.0 */
/* One path a pair: paths are paths, loads are what is said, heuristics
 * against the bound, the integer program where it is small. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/flow/private.h"
#include "tests/unit/schedule/common.h"

/* Replays the paths on the topology; returns the congestion. */
static double replay(const struct topo *t, const struct flow_paths *paths)
{
	struct flow_net net = { 0 };
	struct err err = { 0 };
	double most = 0, *load;
	int n = topo_n(t);
	int32_t last = -1;
	size_t pairs = 0;

	must(flow_net_from(t, NULL, &net, &err), &err);
	load = calloc((size_t)net.m, sizeof(*load));
	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];
		int at = q->pair / n;

		assert_true(q->pair > last);
		last = q->pair;
		assert_true(q->chunks == 1 && q->weight == 1);
		for (int k = 0; k < q->n_arcs; k++) {
			int a = paths->arcs.v[q->first + k];

			assert_int_equal(net.src[a], at);
			at = net.dst[a];
			load[a] += 1 / (double)net.units[a];
		}
		assert_int_equal(at, q->pair % n);
		pairs++;
	}
	assert_int_equal(pairs, net.terminals * (net.terminals - 1));
	for (int a = 0; a < net.m; a++) {
		most = fmax(most, load[a]);
	}
	free(load);
	flow_net_fini(&net);
	return most;
}

static struct single_result route(const struct topo *t,
				  enum single_effort effort, uint64_t seed)
{
	struct single_options opt = { .effort = effort, .seed = seed,
				      .deadline = deadline_in(60 * INT64_C(1000000000), NULL) };
	struct single_result res;
	struct flow_paths paths;
	struct err err = { 0 };

	must(single_path(t, &opt, &paths, &res, &err), &err);
	assert_true(fabs(replay(t, &paths) - res.congestion) < 1e-9);
	assert_true(res.congestion <= res.shortest);
	assert_true(res.bound >= res.flow.bound * (1 - 1e-12));
	assert_true(res.congestion >= res.bound * (1 - 1e-9));
	flow_paths_fini(&paths);
	return res;
}

/* On expanders the search meets the bound: the optimum, proven. */
static void test_expanders(void **state)
{
	static const struct {
		const char *expr;
		double optimum;
	} known[] = {
		{ "K(4,4)", 3 }, { "GenKautz(4,16)", 8 },
		{ "GenKautz(4,25)", 14 }, { "GenKautz(4,36)", 24 },
		{ "K(2)", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i].expr);
		struct single_result r = route(t, SINGLE_SEARCH, 1);

		if (r.congestion != known[i].optimum ||
		    r.bound != known[i].optimum) {
			fail_msg("%s: %g, bound %g", known[i].expr,
				 r.congestion, r.bound);
		}
		topo_free(t);
	}
}

/* On tori every arc must be exactly full: the integer program finds it. */
static void test_integer(void **state)
{
	static const struct {
		const char *expr;
		double optimum;
	} known[] = {
		{ "Hypercube(3)", 4 }, { "Torus(3,3)", 3 }, { "Ring(5)", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = graph_of(known[i].expr);
		struct single_result r = route(t, SINGLE_INTEGER, 1);

		assert_true(r.congestion == known[i].optimum);
		topo_free(t);
	}
}

/* The search only improves on load-aware shortest paths, for any seed, and
 * the same seed gives the same. */
static void test_efforts(void **state)
{
	struct topo *t = graph_of("Torus(3,3,3)");

	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct single_result a = route(t, SINGLE_SHORTEST, seed);
		struct single_result b = route(t, SINGLE_SEARCH, seed);
		struct single_result c = route(t, SINGLE_SEARCH, seed);

		assert_true(a.congestion == a.shortest);
		assert_true(a.shortest == b.shortest);
		assert_true(b.congestion <= a.congestion);
		assert_true(b.congestion == c.congestion);
		assert_int_equal(b.moves, c.moves);
		assert_true(b.bound == 9);
	}
	topo_free(t);
}

/* Unequal capacities and a switch. */
static void test_capacities(void **state)
{
	struct err err = { 0 };
	struct single_result r;
	struct topo *t;

	(void)state;
	must(topo_new(6, &t, &err), &err);
	topo_set_node(t, 5, TOPO_SWITCH, 0);
	for (int u = 0; u < 5; u++) {
		must(topo_add_arc(t, u, 5, 2 + u % 2, 0, &err), &err);
		must(topo_add_arc(t, 5, u, 3, 0, &err), &err);
		must(topo_add_arc(t, u, (u + 1) % 5, 1, 0, &err), &err);
	}
	topo_freeze(t);
	r = route(t, SINGLE_INTEGER, 3);
	assert_true(r.congestion < 2 * r.flow.bound);
	topo_free(t);
}

static void test_stopped(void **state)
{
	volatile bool cancel = true;
	struct single_options opt = { .effort = SINGLE_INTEGER,
				      .cancel = &cancel };
	struct topo *t = graph_of("GenKautz(4,36)");
	struct single_result res;
	struct flow_paths paths;
	struct err err = { 0 };

	(void)state;
	must(single_path(t, &opt, &paths, &res, &err), &err);
	assert_true(replay(t, &paths) == res.congestion);
	assert_int_equal(res.moves, 0);
	flow_paths_fini(&paths);
	opt.tolerance = -1;
	assert_int_equal(single_path(t, &opt, &paths, &res, &err),
			 WEFT_EINVAL);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expanders),
		cmocka_unit_test(test_integer),
		cmocka_unit_test(test_efforts),
		cmocka_unit_test(test_capacities),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
