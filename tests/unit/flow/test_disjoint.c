/* SPDX-License-Identifier: Apache-2.0 */
/* Maximal sets of disjoint paths, counted by max-flow, and their shares,
 * against the linear program over the same paths. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/schedule/common.h"

/* A way from u to t over arcs that are free, or back over those used; it is
 * turned round. */
static bool augment(const struct flow_net *net, int u, int t, bool *used,
		    bool *seen)
{
	if (u == t) {
		return true;
	}
	seen[u] = true;
	for (int a = 0; a < net->m; a++) {
		int v = used[a] ? net->src[a] : net->dst[a];

		if ((used[a] ? net->dst[a] : net->src[a]) == u && !seen[v] &&
		    augment(net, v, t, used, seen)) {
			used[a] = !used[a];
			return true;
		}
	}
	return false;
}

/* Most paths without a common arc from s to t, by Ford and Fulkerson. */
static int count_disjoint(const struct flow_net *net, int s, int t)
{
	bool *used = calloc((size_t)net->m, sizeof(*used));
	bool *seen = calloc((size_t)net->n, sizeof(*seen));
	int n = 0;

	while (augment(net, s, t, used, seen)) {
		memset(seen, 0, (size_t)net->n * sizeof(*seen));
		n++;
	}
	free(used);
	free(seen);
	return n;
}

/* Paths from i on of one pair lead there, share no arc and are as many as
 * there can be; returns the end. */
static size_t check_pair(const struct flow_net *net,
			 const struct flow_paths *paths, size_t i)
{
	int pair = paths->v.v[i].pair, s = pair / net->n, t = pair % net->n;
	bool *used = calloc((size_t)net->m, sizeof(*used));
	size_t end = i;

	for (; end < paths->v.n && paths->v.v[end].pair == pair; end++) {
		const struct flow_path *q = &paths->v.v[end];
		int at = s;

		for (int k = 0; k < q->n_arcs; k++) {
			int a = paths->arcs.v[q->first + k];

			assert_int_equal(net->src[a], at);
			assert_false(used[a]);
			used[a] = true;
			at = net->dst[a];
		}
		assert_int_equal(at, t);
		assert_true(end == i ||
			    q->n_arcs >= paths->v.v[end - 1].n_arcs);
	}
	assert_int_equal(end - i, count_disjoint(net, s, t));
	free(used);
	return end;
}

/* The least congestion of any shares, by lp_solve. */
static double by_program(const struct flow_net *net,
			 const struct flow_paths *paths)
{
	struct lp_options opt = { 0 };
	struct lp_result res;
	struct err err = { 0 };
	struct lp *lp;
	int *rows = malloc(((size_t)net->m + 1) * sizeof(*rows));
	double *values = malloc(((size_t)net->m + 1) * sizeof(*values));
	int pair = -1;

	lp = lp_new();
	must(0, &err);
	for (int a = 0; a < net->m; a++) {
		rows[a] = a;
		values[a] = -(double)net->units[a];
		must(lp_add_row(lp, LP_LE, 0, NULL, &err), &err);
	}
	must(lp_add_col(lp, 1, 0, LP_INF, false, net->m, rows, values, NULL,
			&err), &err);
	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		if (q->pair != pair) {
			pair = q->pair;
			must(lp_add_row(lp, LP_EQ, 1, NULL, &err), &err);
		}
		for (int k = 0; k < q->n_arcs; k++) {
			rows[k] = paths->arcs.v[q->first + k];
			values[k] = 1;
		}
		rows[q->n_arcs] = lp_rows(lp) - 1;
		values[q->n_arcs] = 1;
		must(lp_add_col(lp, 0, 0, LP_INF, false, q->n_arcs + 1, rows,
				values, NULL, &err), &err);
	}
	must(lp_run(lp, &opt, &res, &err), &err);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(lp);
	free(rows);
	free(values);
	return res.objective;
}

/* Loads of the shares, which add up to one for each pair. */
static double replay(const struct flow_net *net,
		     const struct flow_paths *paths)
{
	double *load = calloc((size_t)net->m, sizeof(*load)), most = 0;
	double sum = 1;
	int pair = -1;

	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		if (q->pair != pair) {
			assert_true(fabs(sum - 1) < 1e-9);
			pair = q->pair;
			sum = 0;
		}
		assert_true(q->weight > 0);
		sum += q->weight;
		for (int k = 0; k < q->n_arcs; k++) {
			load[paths->arcs.v[q->first + k]] += q->weight;
		}
	}
	assert_true(fabs(sum - 1) < 1e-9);
	for (int a = 0; a < net->m; a++) {
		most = fmax(most, load[a] / (double)net->units[a]);
	}
	free(load);
	return most;
}

static void check(const struct topo *t, bool program)
{
	struct flow_net net = { 0 };
	struct flow_paths paths = { 0 };
	struct balance_result res;
	struct err err = { 0 };
	double best = 0;

	must(flow_net_from(t, NULL, &net, &err), &err);
	must(disjoint_paths(&net, &paths, &err), &err);
	for (size_t i = 0; i < paths.v.n;) {
		i = check_pair(&net, &paths, i);
	}
	if (program) {
		best = by_program(&net, &paths);
	}
	balance_paths(&net, 1e-4, NULL, &paths, &res);
	assert_true(fabs(replay(&net, &paths) - res.congestion) < 1e-9);
	assert_true(res.bound <= res.congestion * (1 + 1e-12));
	if (program) {
		assert_true(res.bound <= best * (1 + 1e-7));
		assert_true(res.congestion >= best * (1 - 1e-7));
		assert_true(res.congestion <= best * 1.005);
		assert_true(res.bound >= best * 0.995);
	}
	flow_paths_fini(&paths);
	flow_net_fini(&net);
}

static void test_families(void **state)
{
	static const char *const all[] = {
		"Hypercube(3)", "K(4,4)", "Torus(3,3)", "GenKautz(4,16)",
		"UniRing(1,5)", "K(2)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct topo *t = graph_of(all[i]);

		check(t, true);
		topo_free(t);
	}
}

/* Rings with chords at random, unequal capacities and a switch. */
static void test_random(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	for (int i = 0; i < 40; i++) {
		int n = 3 + (int)rng_below(&rng, 5);
		struct err err = { 0 };
		struct topo *t;

		must(topo_new(n + 1, &t, &err), &err);
		topo_set_node(t, n, TOPO_SWITCH, 0);
		for (int u = 0; u <= n; u++) {
			must(topo_add_arc(t, u, (u + 1) % (n + 1), 1, 0, &err),
			     &err);
		}
		for (int k = 0; k < 2 * n; k++) {
			int u = (int)rng_below(&rng, (uint64_t)n + 1);
			int v = (int)rng_below(&rng, (uint64_t)n + 1);

			if (u != v) {
				must(topo_add_arc(t, u, v, 1 +
					(int)rng_below(&rng, 3), 0, &err),
				     &err);
			}
		}
		topo_freeze(t);
		check(t, true);
		topo_free(t);
	}
}

static void test_refused(void **state)
{
	static const int cut[][2] = { { 0, 1 }, { 1, 2 }, { 2, 1 } };
	struct topo *t = graph_from(3, 3, cut);
	struct flow_paths paths = { 0 };
	struct flow_net net = { 0 };
	struct err err = { 0 };

	(void)state;
	must(flow_net_from(t, NULL, &net, &err), &err);
	assert_int_equal(disjoint_paths(&net, &paths, &err),
			 WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "node 1 to node 0"));
	flow_paths_fini(&paths);
	flow_net_fini(&net);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("flow/disjoint", tests, NULL,
					   NULL);
}
