/* SPDX-License-Identifier: Apache-2.0 */
/* topology: building, indexes, distances, transposing, symmetry. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "tests/unit/topology/parse.h"

static struct topo *empty(int n)
{
	struct topo *t;

	assert_int_equal(topo_new(n, &t, NULL), 0);
	return t;
}

static void arc(struct topo *t, int u, int v, int64_t cap, int64_t latency)
{
	assert_int_equal(topo_add_arc(t, u, v, cap, latency, NULL), 0);
}

static struct topo *frozen(struct topo *t)
{
	topo_freeze(t);
	return t;
}

static struct topo *random_graph(struct rng *rng, int n, int m)
{
	struct topo *t = empty(n);

	for (int i = 0; i < m; i++) {
		arc(t, (int)rng_below(rng, (uint64_t)n),
		    (int)rng_below(rng, (uint64_t)n),
		    1 + (int64_t)rng_below(rng, 3),
		    (int64_t)rng_below(rng, 2));
	}
	return frozen(t);
}

static void limits(void **state)
{
	struct topo *t;

	(void)state;
	assert_int_equal(topo_new(0, &t, NULL), WEFT_ELIMIT);
	assert_int_equal(topo_new(TOPO_MAX_NODES + 1, &t, NULL), WEFT_ELIMIT);
	t = empty(3);
	assert_int_equal(topo_add_arc(t, 0, 3, 1, 0, NULL), WEFT_EINVAL);
	assert_int_equal(topo_add_arc(t, -1, 0, 1, 0, NULL), WEFT_EINVAL);
	assert_int_equal(topo_add_arc(t, 0, 1, 0, 0, NULL), WEFT_EINVAL);
	assert_int_equal(topo_add_arc(t, 0, 1, 1, -1, NULL), WEFT_EINVAL);
	topo_free(frozen(t));
	topo_free(NULL);
}

/* Arcs are sorted by source, then in the order they were added. */
static void csr_order(void **state)
{
	struct topo *t = empty(3);
	const int32_t *in;
	int first;

	(void)state;
	arc(t, 2, 0, 5, 7);
	arc(t, 0, 2, 1, 0);
	arc(t, 0, 1, 2, 0);
	arc(t, 0, 2, 3, 0);
	arc(t, 1, 1, 4, 0);
	topo_set_node(t, 1, TOPO_SWITCH, TOPO_CAN_COPY);
	frozen(t);
	assert_int_equal(topo_n(t), 3);
	assert_int_equal(topo_m(t), 5);
	assert_int_equal(topo_out(t, 0, &first), 3);
	assert_int_equal(first, 0);
	for (int a = 0; a < 5; a++) {
		const int64_t caps[] = { 1, 2, 3, 4, 5 };

		assert_int_equal(topo_arc(t, a)->cap, caps[a]);
	}
	assert_int_equal(topo_arcs(t)[4].latency_ns, 7);
	assert_int_equal(topo_in(t, 2, &in), 2);
	assert_int_equal(in[0], 0);
	assert_int_equal(in[1], 2);
	assert_int_equal(topo_in(t, 0, &in), 1);
	assert_int_equal(in[0], 4);
	assert_int_equal(topo_find_arc(t, 0, 2), 0);
	assert_int_equal(topo_find_arc(t, 1, 1), 3);
	assert_int_equal(topo_find_arc(t, 2, 1), -1);
	assert_int_equal(topo_max_degree(t), 3);
	assert_int_equal(topo_regular_degree(t), 0);
	assert_int_equal(topo_node_kind(t, 1), TOPO_SWITCH);
	assert_int_equal(topo_node_flags(t, 1), TOPO_CAN_COPY);
	assert_int_equal(topo_node_kind(t, 2), TOPO_TERMINAL);
	assert_int_equal(topo_node_flags(t, 2), TOPO_CAN_COPY |
			 TOPO_CAN_REDUCE | TOPO_CAN_STORE);
	topo_free(t);
}

/* In- and out-indexes list every arc exactly once. */
static void indexes_are_complete(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	for (int round = 0; round < 100; round++) {
		int n = 1 + (int)rng_below(&rng, 30);
		int m = (int)rng_below(&rng, 120), outs = 0, ins = 0;
		struct topo *t = random_graph(&rng, n, m);

		for (int u = 0; u < n; u++) {
			const int32_t *in;
			int first, k = topo_out(t, u, &first);

			assert_int_equal(first, outs);
			for (int a = first; a < first + k; a++) {
				assert_int_equal(topo_arc(t, a)->src, u);
			}
			outs += k;
			k = topo_in(t, u, &in);
			for (int i = 0; i < k; i++) {
				assert_int_equal(topo_arc(t, in[i])->dst, u);
				assert_true(i == 0 || in[i - 1] < in[i]);
			}
			ins += k;
		}
		assert_int_equal(outs, m);
		assert_int_equal(ins, m);
		topo_free(t);
	}
}

static void bfs_equals_floyd_warshall(void **state)
{
	enum { N = 25, FAR = 1000 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int round = 0; round < 200; round++) {
		int n = 1 + (int)rng_below(&rng, N), d[N][N], diameter = 0;
		struct topo *t = random_graph(&rng, n,
					      (int)rng_below(&rng, 4 * N));
		int32_t dist[N];

		for (int i = 0; i < n; i++) {
			for (int j = 0; j < n; j++) {
				d[i][j] = i == j ? 0 : FAR;
			}
		}
		for (int a = 0; a < topo_m(t); a++) {
			int *x = &d[topo_arc(t, a)->src][topo_arc(t, a)->dst];

			*x = *x < 1 ? *x : 1;
		}
		for (int k = 0; k < n; k++) {
			for (int i = 0; i < n; i++) {
				for (int j = 0; j < n; j++) {
					if (d[i][k] + d[k][j] < d[i][j]) {
						d[i][j] = d[i][k] + d[k][j];
					}
				}
			}
		}
		for (int i = 0; i < n; i++) {
			topo_bfs(t, i, dist);
			for (int j = 0; j < n; j++) {
				assert_int_equal(dist[j], d[i][j] >= FAR
						 ? -1 : d[i][j]);
				diameter = d[i][j] > diameter ? d[i][j]
							      : diameter;
			}
		}
		assert_int_equal(topo_diameter(t), diameter >= FAR ? -1
								   : diameter);
		topo_free(t);
	}
}

static int compare_arcs(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct topo_arc));
}

static struct topo_arc *sorted_arcs(const struct topo *t)
{
	size_t m = (size_t)topo_m(t);
	struct topo_arc *v = malloc((m + 1) * sizeof(*v));

	assert_non_null(v);
	memcpy(v, topo_arcs(t), m * sizeof(*v));
	qsort(v, m, sizeof(*v), compare_arcs);
	return v;
}

static void transpose_twice_is_same(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int round = 0; round < 100; round++) {
		int n = 1 + (int)rng_below(&rng, 20);
		struct topo *t = random_graph(&rng, n,
					      (int)rng_below(&rng, 80));
		struct topo *r, *back;
		int32_t map[80];
		struct topo_arc *a, *b;

		assert_int_equal(topo_transpose(t, &r, map, NULL), 0);
		for (int i = 0; i < topo_m(r); i++) {
			const struct topo_arc *x = topo_arc(r, i);
			const struct topo_arc *y = topo_arc(t, map[i]);

			assert_int_equal(x->src, y->dst);
			assert_int_equal(x->dst, y->src);
			assert_int_equal(x->cap, y->cap);
			assert_int_equal(x->latency_ns, y->latency_ns);
		}
		assert_int_equal(topo_diameter(r), topo_diameter(t));
		assert_int_equal(topo_transpose(r, &back, NULL, NULL), 0);
		a = sorted_arcs(t);
		b = sorted_arcs(back);
		assert_int_equal(topo_m(back), topo_m(t));
		assert_memory_equal(a, b, (size_t)topo_m(t) * sizeof(*a));
		free(a);
		free(b);
		topo_free(t);
		topo_free(r);
		topo_free(back);
	}
}

static void transpose_keeps_nodes(void **state)
{
	struct topo *t = empty(2), *r;

	(void)state;
	topo_set_node(t, 1, TOPO_MEMORY, TOPO_CAN_STORE);
	arc(t, 0, 1, 1, 0);
	frozen(t);
	assert_int_equal(topo_transpose(t, &r, NULL, NULL), 0);
	assert_int_equal(topo_node_kind(r, 1), TOPO_MEMORY);
	assert_int_equal(topo_node_flags(r, 1), TOPO_CAN_STORE);
	topo_free(t);
	topo_free(r);
}

static void symmetry_counts_arcs(void **state)
{
	struct topo *t = empty(3);

	(void)state;
	arc(t, 0, 1, 2, 0);
	arc(t, 0, 1, 1, 0);
	arc(t, 1, 0, 1, 9);
	arc(t, 1, 0, 2, 0);
	arc(t, 2, 2, 1, 0);
	assert_true(topo_is_symmetric(frozen(t)));
	topo_free(t);
	t = empty(2);
	arc(t, 0, 1, 2, 0);
	arc(t, 1, 0, 1, 0);
	assert_false(topo_is_symmetric(frozen(t)));
	topo_free(t);
	t = empty(2);
	arc(t, 0, 1, 1, 0);
	arc(t, 0, 1, 1, 0);
	arc(t, 1, 0, 1, 0);
	assert_false(topo_is_symmetric(frozen(t)));
	topo_free(t);
}

/* A ring of n with an arc of its own for each node, by (cap, latency, how
 * many parallel). */
static bool ring_is_transitive(int n, const int (*arcs)[3])
{
	struct topo *t = empty(n);
	bool transitive;

	for (int u = 0; u < n; u++) {
		for (int i = 0; i < arcs[u][2]; i++) {
			arc(t, u, (u + 1) % n, arcs[u][0], arcs[u][1]);
		}
	}
	transitive = topo_vertex_transitive(frozen(t)) == TOPO_YES;
	topo_free(t);
	return transitive;
}

/* What the arcs carry is part of the structure. */
static void transitivity_sees_arcs(void **state)
{
	const int same[4][3] = { { 3, 1, 2 }, { 3, 1, 2 }, { 3, 1, 2 },
				 { 3, 1, 2 } };
	const int cap[4][3] = { { 3, 1, 1 }, { 2, 1, 1 }, { 3, 1, 1 },
				{ 3, 1, 1 } };
	const int latency[4][3] = { { 3, 1, 1 }, { 3, 1, 1 }, { 3, 2, 1 },
				    { 3, 1, 1 } };
	const int turn[4][3] = { { 3, 1, 1 }, { 2, 1, 1 }, { 3, 1, 1 },
				 { 2, 1, 1 } };

	(void)state;
	assert_true(ring_is_transitive(4, same));
	assert_false(ring_is_transitive(4, cap));
	assert_false(ring_is_transitive(4, latency));
	assert_false(ring_is_transitive(4, turn));
}

/* Degree-2 multigraphs in which only the bundles tell nodes apart. */
static void transitivity_sees_parallel_arcs(void **state)
{
	struct topo *t = empty(4);

	(void)state;
	/* 0 <=> 1 doubled, 2 <=> 3 doubled: transitive. */
	for (int i = 0; i < 2; i++) {
		arc(t, 0, 1, 1, 0);
		arc(t, 1, 0, 1, 0);
		arc(t, 2, 3, 1, 0);
		arc(t, 3, 2, 1, 0);
	}
	assert_int_equal(topo_vertex_transitive(frozen(t)), TOPO_YES);
	topo_free(t);
	/* 0 => 1 doubled but 1 -> 0 and 1 -> 2: all nodes of degree two. */
	t = empty(3);
	arc(t, 0, 1, 1, 0);
	arc(t, 0, 1, 1, 0);
	arc(t, 1, 0, 1, 0);
	arc(t, 1, 2, 1, 0);
	arc(t, 2, 0, 1, 0);
	arc(t, 2, 2, 1, 0);
	assert_int_equal(topo_vertex_transitive(frozen(t)), TOPO_NO);
	topo_free(t);
	/* A ring whose arcs alternate with a doubled reverse: each node has
	 * the same bundle sizes, and turning by one maps them on. */
	t = empty(5);
	for (int u = 0; u < 5; u++) {
		arc(t, u, (u + 1) % 5, 1, 0);
		arc(t, u, (u + 4) % 5, 1, 0);
		arc(t, u, (u + 4) % 5, 1, 0);
	}
	assert_int_equal(topo_vertex_transitive(frozen(t)), TOPO_YES);
	topo_free(t);
}

static void transitivity_sees_nodes(void **state)
{
	struct topo *t = empty(3);

	(void)state;
	assert_int_equal(topo_vertex_transitive(frozen(t)), TOPO_YES);
	topo_free(t);
	t = empty(2);
	arc(t, 0, 1, 1, 0);
	arc(t, 1, 0, 1, 0);
	topo_set_node(t, 1, TOPO_SWITCH, 0);
	assert_int_equal(topo_vertex_transitive(frozen(t)), TOPO_NO);
	topo_free(t);
}

/* Does some permutation that keeps the arcs (as a multiset with capacities)
 * map node 0 to v? By trying all. */
static bool maps_zero_to(int n, const int a[6][6][3], int v, int *perm,
			 int depth)
{
	if (depth == n) {
		return true;
	}
	for (int p = 0; p < n; p++) {
		bool good = depth > 0 || p == v;

		for (int i = 0; i < depth && good; i++) {
			good = perm[i] != p;
		}
		perm[depth] = p;
		for (int i = 0; i <= depth && good; i++) {
			good = !memcmp(a[i][depth], a[perm[i]][p],
				       sizeof(a[0][0])) &&
			       !memcmp(a[depth][i], a[p][perm[i]],
				       sizeof(a[0][0]));
		}
		if (good && maps_zero_to(n, a, v, perm, depth + 1)) {
			return true;
		}
	}
	return false;
}

/* Small circulants with random bundles, some of them disturbed, against the
 * definition. */
static void transitivity_equals_brute_force(void **state)
{
	struct rng rng;
	int yes = 0, no = 0;

	(void)state;
	rng_seed(&rng, 8);
	for (int round = 0; round < 400; round++) {
		int n = 2 + (int)rng_below(&rng, 5), a[6][6][3] = { 0 };
		int perm[6];
		struct topo *t = empty(n);
		bool want = true;

		for (int k = (int)rng_below(&rng, 4); k > 0; k--) {
			int s = (int)rng_below(&rng, (uint64_t)n);
			int c = (int)rng_below(&rng, 2);

			for (int u = 0; u < n; u++) {
				a[u][(u + s) % n][c]++;
			}
		}
		if (rng_below(&rng, 2)) {
			int u = (int)rng_below(&rng, (uint64_t)n);
			int v = (int)rng_below(&rng, (uint64_t)n);

			/* Turn a permutation: degrees stay equal. */
			memcpy(perm, a[u], sizeof(perm));
			for (int i = 0; i < n; i++) {
				for (int c = 0; c < 3; c++) {
					int x = a[u][i][c];

					a[u][i][c] = a[v][i][c];
					a[v][i][c] = x;
				}
			}
		}
		for (int u = 0; u < n; u++) {
			for (int v = 0; v < n; v++) {
				for (int c = 0; c < 3; c++) {
					for (int i = 0; i < a[u][v][c]; i++) {
						arc(t, u, v, c + 1, 0);
					}
				}
			}
		}
		for (int v = 1; v < n && want; v++) {
			want = maps_zero_to(n, a, v, perm, 0);
		}
		assert_int_equal(topo_vertex_transitive(frozen(t)), want);
		yes += want;
		no += !want;
		topo_free(t);
	}
	assert_true(yes > 50 && no > 50);
}

static void *transitive_in_thread(void *arg)
{
	bool *good = arg;
	struct topo *t = parse("GenKautz(4,96)");

	for (int i = 0; i < 20; i++) {
		*good = *good && topo_vertex_transitive(t) == TOPO_NO;
	}
	topo_free(t);
	return NULL;
}

static void transitivity_in_threads(void **state)
{
	bool good[2] = { true, true };
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL,
						transitive_in_thread,
						&good[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_true(good[i]);
	}
}

/* Cells of a Latin square, joined in rows, in columns and by their symbols: all cells look alike
 * from afar. Of the numbers below `order` added bit by bit, in which squares of two symbols are
 * turned, so that no two cells are alike. */
static struct topo *latin_square_graph(int order, int turns)
{
	struct topo *t = empty(order * order);
	int *symbol = calloc((size_t)order * (size_t)order, sizeof(*symbol));
	struct rng rng;

	rng_seed(&rng, 1);
	for (int i = 0; i < order * order; i++) {
		symbol[i] = (i / order) ^ (i % order);
	}
	for (int k = 0; k < turns; k++) {
		int r = (int)rng_below(&rng, (uint64_t)order),
		    c = (int)rng_below(&rng, (uint64_t)order);
		int by = 1 + (int)rng_below(&rng, (uint64_t)order - 1), r2 = r ^ by, c2 = c ^ by;
		int *a = &symbol[r * order + c], *b = &symbol[r * order + c2];
		int *d = &symbol[r2 * order + c], *e = &symbol[r2 * order + c2], was = *a;

		if (*a == *e && *b == *d && *a != *b) {
			*a = *e = *b;
			*b = *d = was;
		}
	}
	for (int u = 0; u < order * order; u++) {
		for (int v = 0; v < order * order; v++) {
			if (u != v && (u / order == v / order || u % order == v % order ||
				       symbol[u] == symbol[v])) {
				arc(t, u, v, 1, 0);
			}
		}
	}
	free(symbol);
	return frozen(t);
}

/* Large graphs without symmetry are seen to be so from what is around their nodes; where that
 * does not tell, the search ends after so much work, and says so. */
static void transitivity_is_limited(void **state)
{
	struct topo *t = parse("Jellyfish(4000,4,1)");

	(void)state;
	assert_int_equal(topo_vertex_transitive(t), TOPO_NO);
	topo_free(t);
	t = latin_square_graph(8, 40);
	assert_int_equal(topo_vertex_transitive(t), TOPO_NO);
	topo_free(t);
	t = latin_square_graph(32, 400);
	assert_int_equal(topo_vertex_transitive(t), TOPO_NOT_KNOWN);
	topo_free(t);
	t = latin_square_graph(32, 0);
	assert_int_equal(topo_vertex_transitive(t), TOPO_YES);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits),
		cmocka_unit_test(csr_order),
		cmocka_unit_test(indexes_are_complete),
		cmocka_unit_test(bfs_equals_floyd_warshall),
		cmocka_unit_test(transpose_twice_is_same),
		cmocka_unit_test(transpose_keeps_nodes),
		cmocka_unit_test(symmetry_counts_arcs),
		cmocka_unit_test(transitivity_sees_arcs),
		cmocka_unit_test(transitivity_sees_parallel_arcs),
		cmocka_unit_test(transitivity_sees_nodes),
		cmocka_unit_test(transitivity_equals_brute_force),
		cmocka_unit_test(transitivity_in_threads),
		cmocka_unit_test(transitivity_is_limited),
	};

	return cmocka_run_group_tests_name("topology/graph", tests, NULL,
					   NULL);
}
