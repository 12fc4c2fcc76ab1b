/* SPDX-License-Identifier: Apache-2.0 */
/* Circulants: figures against distances and schedules made another way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/private.h"
#include "collective/finder/finder.h"
#include "tests/unit/schedule/common.h"

static struct topo *build(const struct finder_circulant *c)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(c->n, &t, &err), &err);
	for (int u = 0; u < c->n; u++) {
		for (int i = 0; i < c->n_offsets; i++) {
			int s = c->offset[i];

			must(topo_add_arc(t, u, (u + s) % c->n, 1, 0, &err),
			     &err);
			if (c->both && 2 * s != c->n) {
				must(topo_add_arc(t, u, (u + c->n - s) % c->n,
						  1, 0, &err), &err);
			}
		}
	}
	topo_freeze(t);
	return t;
}

/* The offsets ascend, the ports are all used, and steps, distances and T_B
 * are those that the digraph itself has. */
static void check(struct finder_circulant *c, int ports)
{
	struct topo *t = build(c);
	struct err err = { 0 };
	struct bfb_ratio got;
	int32_t dist[512];
	int64_t sum = 0;
	mpq_t want, have;
	int steps;

	mpq_inits(want, have, NULL);
	for (int i = 1; i < c->n_offsets; i++) {
		assert_true(c->offset[i - 1] < c->offset[i]);
	}
	assert_int_equal(topo_regular_degree(t), ports);
	topo_bfs(t, 0, dist);
	for (int v = 0; v < c->n; v++) {
		sum += dist[v];
	}
	assert_int_equal(sum, c->distances);
	must(coll_bfb_factor(COLL_ALLGATHER, t, &steps, want, &err), &err);
	assert_int_equal(steps, c->steps);
	got = finder_circulant_factor(c);
	assert_int_equal(steps, c->steps);
	mpq_set_si(have, got.num, (unsigned long)got.den);
	assert_true(mpq_equal(want, have));
	must(coll_bfb_factor(COLL_REDUCE_SCATTER, t, &steps, want, &err),
	     &err);
	assert_true(mpq_equal(want, have));
	mpq_clears(want, have, NULL);
	topo_free(t);
}

static void test_figures(void **state)
{
	static const int sizes[] = { 4, 5, 16, 29, 63, 64, 65, 127, 128, 200 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (int ports = 1; ports <= 9; ports++) {
			for (int both = 0; both < 2; both++) {
				struct finder_circulant c[FINDER_CIRCULANT_KEPT];
				int n = finder_circulant_search(sizes[i], ports, both, c);

				assert_in_range(n, 0, FINDER_CIRCULANT_KEPT);
				for (int k = 0; k < n; k++) {
					check(&c[k], ports);
				}
			}
		}
	}
}

/* The least diameter of two offsets both ways is that of theorem 22, known;
 * the search comes there by itself. */
static void test_theorem_22(void **state)
{
	int found = 0, all = 0;

	(void)state;
	for (int n = 7; n < 160; n += 3, all++) {
		struct finder_circulant c[FINDER_CIRCULANT_KEPT];
		int m = 1;

		while (2 * m * m + 2 * m + 1 < n) {
			m++;
		}
		assert_true(finder_circulant_search(n, 4, true, c) > 0);
		assert_true(c[0].steps >= m);
		found += c[0].steps == m;
	}
	assert_true(found * 10 >= all * 9);
}

static void test_same_again(void **state)
{
	struct finder_circulant a[FINDER_CIRCULANT_KEPT], b[FINDER_CIRCULANT_KEPT];
	int n = finder_circulant_search(101, 5, false, a);

	(void)state;
	assert_int_equal(finder_circulant_search(101, 5, false, b), n);
	for (int i = 0; i < n; i++) {
		assert_memory_equal(a[i].offset, b[i].offset,
				    5 * sizeof(*a[i].offset));
	}
}

static void test_none(void **state)
{
	struct finder_circulant c[FINDER_CIRCULANT_KEPT];

	(void)state;
	/* An odd number of ports both ways needs n / 2. */
	assert_int_equal(finder_circulant_search(9, 3, true, c), 0);
	assert_int_equal(finder_circulant_search(6, 6, true, c), 0);
	assert_int_equal(finder_circulant_search(4, 4, false, c), 0);
	assert_int_equal(finder_circulant_search(900, FINDER_CIRCULANT_MAX_PORTS + 1, false, c),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_theorem_22),
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("finder/circulant", tests, NULL,
					   NULL);
}
