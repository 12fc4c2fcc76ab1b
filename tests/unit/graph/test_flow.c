/* SPDX-License-Identifier: Apache-2.0 */
/* Minimum-cost flow against exhaustive search. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"

#define MAX_SIDE 5

/* A random assignment problem: left and right nodes, unit edges with costs,
 * node capacities one or two. */
struct instance {
	int side;
	int cap_left[MAX_SIDE], cap_right[MAX_SIDE];
	int cost[MAX_SIDE][MAX_SIDE];	/* 100: no edge */
};

static void make_instance(struct rng *r, struct instance *in)
{
	in->side = 2 + (int)rng_below(r, MAX_SIDE - 1);
	for (int i = 0; i < in->side; i++) {
		in->cap_left[i] = 1 + (int)rng_below(r, 2);
		in->cap_right[i] = 1 + (int)rng_below(r, 2);
		for (int j = 0; j < in->side; j++) {
			in->cost[i][j] = rng_below(r, 3) == 0
						 ? 100
						 : (int)rng_below(r, 13) - 8;
		}
	}
}

/* Least cost over all subsets of edges that respect the capacities. */
static int exhaustive(const struct instance *in, int cell, int *left,
		      int *right)
{
	int i = cell / in->side, j = cell % in->side, best, with;

	if (cell == in->side * in->side) {
		return 0;
	}
	best = exhaustive(in, cell + 1, left, right);
	if (in->cost[i][j] < 0 && left[i] > 0 && right[j] > 0) {
		left[i]--;
		right[j]--;
		with = in->cost[i][j] + exhaustive(in, cell + 1, left, right);
		left[i]++;
		right[j]++;
		best = with < best ? with : best;
	}
	return best;
}

static void check_instance(const struct instance *in)
{
	int left[MAX_SIDE], right[MAX_SIDE], edge[MAX_SIDE][MAX_SIDE];
	int source = 2 * in->side, sink = source + 1;
	int64_t cost, on_edges = 0;
	struct graph_flow *f;

	f = graph_flow_new(sink + 1);
	for (int i = 0; i < in->side; i++) {
		left[i] = in->cap_left[i];
		right[i] = in->cap_right[i];
		graph_flow_add(f, source, i, left[i], 0, NULL, NULL);
		graph_flow_add(f, in->side + i, sink, right[i], 0, NULL, NULL);
		for (int j = 0; j < in->side; j++) {
			edge[i][j] = -1;
			if (in->cost[i][j] < 100) {
				graph_flow_add(f, i, in->side + j, 1, in->cost[i][j],
					 &edge[i][j], NULL);
			}
		}
	}
	graph_flow_run(f, source, sink, 0, NULL, &cost);
	assert_int_equal(cost, exhaustive(in, 0, left, right));
	for (int i = 0; i < in->side; i++) {
		int used = 0;

		for (int j = 0; j < in->side; j++) {
			if (edge[i][j] >= 0) {
				int64_t x = graph_flow_on(f, edge[i][j]);

				assert_in_range(x, 0, 1);
				used += (int)x;
				on_edges += x * in->cost[i][j];
			}
		}
		assert_in_range(used, 0, in->cap_left[i]);
	}
	assert_int_equal(on_edges, cost);
	graph_flow_free(f);
}

static void min_cost_equals_exhaustive(void **state)
{
	struct instance in;
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	for (int k = 0; k < 300; k++) {
		make_instance(&r, &in);
		check_instance(&in);
	}
}

static void no_limit_gives_the_maximum_flow(void **state)
{
	struct graph_flow *f;
	int64_t value, cost;

	(void)state;
	/* The cheap path 0-1-2-3 must be undone in part for value 2. */
	f = graph_flow_new(4);
	graph_flow_add(f, 0, 1, 1, 1, NULL, NULL);
	graph_flow_add(f, 0, 2, 1, 5, NULL, NULL);
	graph_flow_add(f, 1, 2, 1, 0, NULL, NULL);
	graph_flow_add(f, 1, 3, 1, 5, NULL, NULL);
	graph_flow_add(f, 2, 3, 1, 1, NULL, NULL);
	graph_flow_run(f, 0, 3, INT64_MAX, &value, &cost);
	assert_int_equal(value, 2);
	assert_int_equal(cost, 12);
	graph_flow_free(f);
}

static void edges_out_of_range_are_refused(void **state)
{
	struct graph_flow *f;
	struct err err;

	(void)state;
	f = graph_flow_new(2);
	assert_int_equal(graph_flow_add(f, 0, 2, 1, 0, NULL, &err), WEFT_EINVAL);
	assert_int_equal(graph_flow_add(f, -1, 1, 1, 0, NULL, &err), WEFT_EINVAL);
	assert_int_equal(graph_flow_add(f, 0, 1, -1, 0, NULL, &err), WEFT_EINVAL);
	graph_flow_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(min_cost_equals_exhaustive),
		cmocka_unit_test(no_limit_gives_the_maximum_flow),
		cmocka_unit_test(edges_out_of_range_are_refused),
	};

	return cmocka_run_group_tests_name("graph/flow", tests, NULL, NULL);
}
