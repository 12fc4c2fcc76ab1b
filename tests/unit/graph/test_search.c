/* SPDX-License-Identifier: Apache-2.0 */
/* Searches against Floyd and Warshall's distances, and the order of ties. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"

#define N 12

/* cost[u][v]: INFINITY without arc. */
struct dense {
	double cost[N][N], dist[N][N];
};

/* Costs least .. least + 8 with a potential, so that no cycle is negative. */
static void make_dense(struct rng *r, bool negative, struct dense *g)
{
	int potential[N];

	for (int u = 0; u < N; u++) {
		potential[u] = negative ? (int)rng_below(r, 20) : 0;
	}
	for (int u = 0; u < N; u++) {
		for (int v = 0; v < N; v++) {
			g->cost[u][v] = rng_below(r, 3) || u == v
				? INFINITY
				: (double)rng_below(r, 9) + potential[v] -
					  potential[u];
			g->dist[u][v] = u == v ? 0 : g->cost[u][v];
		}
	}
	for (int k = 0; k < N; k++) {
		for (int u = 0; u < N; u++) {
			for (int v = 0; v < N; v++) {
				g->dist[u][v] = fmin(g->dist[u][v],
						     g->dist[u][k] +
						     g->dist[k][v]);
			}
		}
	}
}

static void queue_finds_all(void **state)
{
	struct graph_queue q;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	graph_queue_init(&q, N);
	for (int i = 0; i < 400; i++) {
		struct dense g;
		double dist[N];
		int s = i % N, u;

		make_dense(&r, i % 2, &g);
		for (int v = 0; v < N; v++) {
			dist[v] = v == s ? 0 : INFINITY;
		}
		graph_queue_put(&q, s);
		while ((u = graph_queue_take(&q)) >= 0) {
			for (int v = 0; v < N; v++) {
				if (dist[u] + g.cost[u][v] < dist[v]) {
					dist[v] = dist[u] + g.cost[u][v];
					graph_queue_put(&q, v);
				}
			}
		}
		for (int v = 0; v < N; v++) {
			assert_true(dist[v] == g.dist[s][v]);
		}
	}
	graph_queue_fini(&q);
}

static void heap_finds_all(void **state)
{
	struct graph_heap h;
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	graph_heap_init(&h, N);
	for (int i = 0; i < 400; i++) {
		struct dense g;
		double last = 0;
		int s = i % N, u, taken = 0;

		make_dense(&r, false, &g);
		graph_heap_reset(&h);
		graph_heap_put(&h, s, 0);
		while ((u = graph_heap_take(&h)) >= 0) {
			taken++;
			assert_true(h.dist[u] >= last);
			last = h.dist[u];
			for (int v = 0; v < N; v++) {
				if (h.dist[u] + g.cost[u][v] < h.dist[v]) {
					graph_heap_put(&h, v, h.dist[u] +
						       g.cost[u][v]);
				}
			}
		}
		for (int v = 0; v < N; v++) {
			assert_true(h.dist[v] == g.dist[s][v]);
			taken -= h.dist[v] < INFINITY;
		}
		assert_int_equal(taken, 0);
	}
	graph_heap_fini(&h);
}

/* Who waits already keeps the turn; the ring goes round. */
static void queue_order(void **state)
{
	static const int in[] = { 2, 0, 2, 1 }, out[] = { 2, 0, 1 };
	struct graph_queue q;

	(void)state;
	graph_queue_init(&q, 3);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 4; i++) {
			graph_queue_put(&q, in[i]);
		}
		for (int i = 0; i < 3; i++) {
			assert_int_equal(graph_queue_take(&q), out[i]);
		}
		assert_int_equal(graph_queue_take(&q), -1);
	}
	graph_queue_fini(&q);
}

static void heap_ties(void **state)
{
	struct graph_heap h;

	(void)state;
	graph_heap_init(&h, 9);
	h.ties_by_node = true;
	for (int v = 8; v >= 0; v--) {
		graph_heap_put(&h, v, v % 2 ? 5 : 7);
	}
	graph_heap_put(&h, 8, 5);
	for (int i = 0; i < 9; i++) {
		static const int order[] = { 1, 3, 5, 7, 8, 0, 2, 4, 6 };

		assert_int_equal(graph_heap_take(&h), order[i]);
	}
	graph_heap_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_finds_all),
		cmocka_unit_test(heap_finds_all),
		cmocka_unit_test(queue_order),
		cmocka_unit_test(heap_ties),
	};

	return cmocka_run_group_tests_name("graph/search", tests, NULL, NULL);
}
