/* SPDX-License-Identifier: Apache-2.0 */
/* Cayley graphs that are searched: their figures against those of the digraphs built from
 * their expressions, and lists of groups against their orders. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/private.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "tests/unit/schedule/common.h"

static struct topo *build(const struct topo_cayley_group *g, bool both, const int64_t *letters,
			  int n, bool line)
{
	struct buf text = { 0 };
	struct topo *t;

	buf_str(&text, line ? "L(" : "");
	topo_cayley_write(g, both, letters, n, &text);
	buf_str(&text, line ? ")" : "");
	t = graph_of(buf_cstr(&text));
	buf_fini(&text);
	return t;
}

/* Whether both phases meet the bound, by schedules on the digraph. */
static bool meets(const struct topo *t, int n, int *steps)
{
	struct err err = { 0 };
	mpq_t factor, bound;
	bool equal;

	mpq_inits(factor, bound, NULL);
	must(coll_bfb_factor(COLL_ALLREDUCE, t, steps, factor, &err), &err);
	rat_set(bound, 2 * (n - 1), n);
	equal = mpq_equal(factor, bound);
	mpq_clears(factor, bound, NULL);
	return equal;
}

/* What is of fewer steps though not balanced has these steps, and no more T_B than is said. */
static void check_near(const struct finder_cayley *near, int n, int d)
{
	struct topo *t = build(&near->g, true, near->letter, near->n_letters, false);
	struct err err = { 0 };
	mpq_t factor, most;
	int steps;

	mpq_inits(factor, most, NULL);
	must(coll_bfb_factor(COLL_ALLGATHER, t, &steps, factor, &err), &err);
	rat_set(most, n - 1 + near->excess, n);
	assert_true(near->both);
	assert_int_equal(steps, near->steps);
	assert_int_equal(topo_regular_degree(t), d);
	assert_true(mpq_cmp(factor, most) <= 0);
	rat_set(most, n - 1, n);
	assert_true(mpq_cmp(factor, most) > 0);
	mpq_clears(factor, most, NULL);
	topo_free(t);
}

static struct finder_cayley look(int n, int d, enum finder_cayley_aim aim, uint64_t seed,
				 int64_t visits, int beat)
{
	struct finder_cayley out, near = { .steps = beat };
	struct err err = { 0 };
	int bound = 0;

	memset(&out, 0, sizeof(out));
	out.steps = beat;
	for (int64_t within = 1, level = 1; within < n; within += level) {
		level *= d;
		bound++;
	}
	finder_cayley_search(n, d, aim, bound, seed, visits, &out, &near);
	must(0, &err);
	if (near.steps < out.steps) {
		check_near(&near, n, d);
	}
	return out;
}

/* Everything that is found is exactly at the bound; line graphs too where they are aimed at. */
static void test_found(void **state)
{
	static const int sizes[] = { 12, 21, 32, 55 };
	int found = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (int k = 0; k < 9; k++) {
			int n = sizes[i], d = 2 + k / 3, steps;
			enum finder_cayley_aim aim = k % 3;
			bool both = aim == FINDER_CAYLEY_BOTH;
			struct finder_cayley c = look(n, d, aim, 0, 20000 * n, INT_MAX);
			struct topo *t;

			if (c.steps == INT_MAX) {
				continue;
			}
			found++;
			t = build(&c.g, both, c.letter, c.n_letters, false);
			assert_true(meets(t, n, &steps));
			assert_int_equal(steps, 2 * c.steps);
			assert_int_equal(topo_regular_degree(t), d);
			topo_free(t);
			if (aim == FINDER_CAYLEY_LINES) {
				t = build(&c.g, false, c.letter, c.n_letters, true);
				assert_true(meets(t, n * d, &steps));
				assert_int_equal(steps, 2 * c.steps + 2);
				topo_free(t);
			}
		}
	}
	assert_in_range(found, 20, 36);
}

/* Columns of a set of generators, in room of their own. */
struct columns {
	uint16_t *next[4], *back[4];
	int32_t *wide;
	struct arrays arrays;
};

static void fill(struct columns *c, const struct topo_cayley_group *g, int64_t letter,
		 uint16_t *column)
{
	topo_cayley_times(g, letter, c->wide);
	for (int64_t u = 0; u < topo_cayley_order(g); u++) {
		column[u] = (uint16_t)c->wide[u];
	}
}

/* Levels of all nodes, by d generators. False: they do not reach all. */
static bool level(const struct topo_cayley_group *g, const int64_t *letters, int d, bool both,
		  struct finder_levels *l, struct columns *c)
{
	int n = (int)topo_cayley_order(g);

	memset(c, 0, sizeof(*c));
	memset(l, 0, sizeof(*l));
	arrays_add(&c->arrays, c->wide, n);
	for (int i = 0; i < d; i++) {
		arrays_add(&c->arrays, c->next[i], n);
		arrays_add(&c->arrays, c->back[i], n);
		fill(c, g, letters[i], c->next[i]);
		fill(c, g, topo_cayley_inverse(g, letters[i]), c->back[i]);
		l->next[i] = c->next[i];
		l->back[i] = c->back[i];
	}
	finder_levels_room(l, n, d, both, &c->arrays);
	return finder_levels_reach(l, false, n, 0) == n;
}

/* A set at random, good or not: its figures are those of the digraph and its line graph. */
static bool check_set(const struct topo_cayley_group *g, int d, struct rng *rng)
{
	int64_t letters[4];
	int n = (int)topo_cayley_order(g), want;
	struct finder_levels l;
	struct columns c;
	bool balanced = false;

	for (int i = 0; i < d; i++) {
		letters[i] = 1 + (int64_t)rng_below(rng, (uint64_t)n - 1);
		for (int k = 0; k < i; k++) {
			i -= letters[k] == letters[i];
		}
	}
	if (level(g, letters, d, false, &l, &c)) {
		struct topo *t = build(g, false, letters, d, false);

		balanced = finder_levels_imbalance(&l, false) == 0;
		assert_int_equal(meets(t, n, &want), balanced);
		assert_int_equal(want, 2 * l.deepest);
		topo_free(t);
		finder_levels_reach(&l, false, n, 0);
		if (finder_levels_imbalance(&l, true) == 0) {
			assert_true(balanced);
			t = build(g, false, letters, d, true);
			assert_true(meets(t, n * d, &want));
			topo_free(t);
		}
	}
	arrays_fini(&c.arrays);
	return balanced;
}

static void test_balance(void **state)
{
	int balanced = 0, sets = 0;

	(void)state;
	for (int n = 10; n <= 46; n += 6) {
		struct finder_groups groups = { 0 };
		struct rng rng = { (uint64_t)n };

		finder_list_groups(n, &rng, &groups);
		for (size_t i = 0; i < groups.n && i < 8; i++, sets++) {
			balanced += check_set(&groups.v[i].g, 3, &rng);
		}
		finder_groups_fini(&groups);
	}
	assert_in_range(balanced, sets / 20, sets - sets / 20);
}

/* An early end only where so many nodes cannot be reached. */
static void test_early_end(void **state)
{
	struct topo_cayley_group g = { .n = 125, .k = 8, .l = 1, .vectors = 125, .j = 1,
				       .a = { 57 }, .q = { 1 } };
	int64_t letters[4] = { 126, 251, 377, 500 };
	struct finder_levels l;
	struct columns c;

	(void)state;
	assert_true(level(&g, letters, 4, false, &l, &c));
	for (int depth = 1; depth < 10; depth++) {
		int all = finder_levels_reach(&l, false, depth, 0);

		for (int least = 0; least <= 1000; least += 50) {
			int reached = finder_levels_reach(&l, false, depth, least);

			assert_true(reached == all || (reached < all && all < least));
		}
	}
	arrays_fini(&c.arrays);
}

static bool equal(const struct finder_cayley *a, const struct finder_cayley *b)
{
	return a->steps == b->steps && a->n_letters == b->n_letters &&
	       memcmp(a->letter, b->letter, sizeof(a->letter)) == 0 &&
	       memcmp(&a->g, &b->g, sizeof(a->g)) == 0;
}

/* The same seed gives the same, others something else; only what is better than what is there
 * replaces it; without visits nothing is found. */
/* Sums of distances are those of the digraphs, no more than what such a search is known to find,
 * and found again. */
static void test_near(void **state)
{
	static const struct {
		int n, d;
		bool both;
		int most;
	} rows[] = {
		{ 50, 7, true, 102 }, { 72, 8, true, 150 }, { 96, 12, true, 182 },
		{ 64, 4, false, 172 }, { 13, 3, false, 24 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct finder_cayley out[2][FINDER_NEAR_KEPT];
		int32_t dist[96];
		struct topo *t;
		int64_t sum = 0;
		int n = rows[i].n, bound = coll_moore_steps(n, rows[i].d, rows[i].both);

		for (int k = 0; k < 2; k++) {
			memset(&out[k], 0, sizeof(out[k]));
			for (int m = 0; m < FINDER_NEAR_KEPT; m++) {
				out[k][m].distances = INT64_MAX;
			}
			finder_cayley_near(n, rows[i].d, rows[i].both, bound, 3000000, out[k]);
		}
		for (int m = 1; m < FINDER_NEAR_KEPT; m++) {
			assert_true(out[0][m].distances >= out[0][m - 1].distances);
		}
		t = build(&out[0]->g, rows[i].both, out[0]->letter, out[0]->n_letters, false);
		topo_bfs(t, n / 2, dist);
		for (int v = 0; v < n; v++) {
			sum += dist[v];
		}
		assert_int_equal(topo_n(t), n);
		assert_int_equal(topo_max_degree(t), rows[i].d);
		assert_int_equal(topo_is_symmetric(t), rows[i].both);
		assert_int_equal(sum, out[0]->distances);
		assert_in_range(sum, 1, rows[i].most);
		assert_memory_equal(out[0], out[1], sizeof(out[0]));
		topo_free(t);
	}
}

static void test_runs(void **state)
{
	struct finder_cayley first = look(96, 4, FINDER_CAYLEY_BOTH, 0, 6000000, INT_MAX), next;
	int other = 0;

	(void)state;
	assert_true(first.steps < 8);
	next = look(96, 4, FINDER_CAYLEY_BOTH, 0, 6000000, INT_MAX);
	assert_true(equal(&first, &next));
	for (uint64_t seed = 1; seed < 5; seed++) {
		next = look(96, 4, FINDER_CAYLEY_BOTH, seed, 6000000, INT_MAX);
		other += !equal(&first, &next);
	}
	assert_true(other > 2);
	next = look(96, 4, FINDER_CAYLEY_BOTH, 0, 6000000, 7);
	assert_true(next.steps < 7 && next.n_letters > 0);
	next = look(96, 4, FINDER_CAYLEY_BOTH, 7, 6000000, 3);
	assert_int_equal(next.steps, 3);
	assert_int_equal(next.n_letters, 0);
	next = look(96, 4, FINDER_CAYLEY_BOTH, 0, 0, INT_MAX);
	assert_int_equal(next.steps, INT_MAX);
}

static void test_groups_of(void **state)
{
	static const int cyclic[] = { 1, 2, 3, 15, 255, 511, 997, 1001 };
	static const int abelian[] = { 4, 9, 45, 99, 961 };
	static const int all[] = { 6, 8, 12, 21, 27, 75, 998, 999, 1000, 1024, 65536 };

	(void)state;
	for (size_t i = 0; i < sizeof(cyclic) / sizeof(*cyclic); i++) {
		assert_int_equal(finder_groups_of(cyclic[i]), COLL_GROUPS_CYCLIC);
	}
	for (size_t i = 0; i < sizeof(abelian) / sizeof(*abelian); i++) {
		assert_int_equal(finder_groups_of(abelian[i]), COLL_GROUPS_ABELIAN);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_int_equal(finder_groups_of(all[i]), COLL_GROUPS_ALL);
	}
}

/* Some two elements of the list's groups do not commute just where a group can be like that. */
static void test_lists(void **state)
{
	(void)state;
	for (int n = 6; n <= 120; n += 5) {
		struct finder_groups groups = { 0 };
		struct rng rng = { (uint64_t)n };
		bool some = false;

		finder_list_groups(n, &rng, &groups);
		for (size_t i = 0; i < groups.n; i++) {
			const struct topo_cayley_group *g = &groups.v[i].g;

			assert_int_equal(topo_cayley_order(g), n);
			assert_null(topo_cayley_fault(g));
			for (int64_t a = 1; a < n && !some; a++) {
				for (int64_t b = 1; b < a && !some; b++) {
					some = topo_cayley_product(g, a, b) !=
					       topo_cayley_product(g, b, a);
				}
			}
		}
		assert_int_equal(some, finder_groups_of(n) == COLL_GROUPS_ALL);
		finder_groups_fini(&groups);
	}
}

/* Groups that no product of cyclic ones is, and the same in every list. */
static void test_permutations(void **state)
{
	static const int sizes[] = { 60, 64, 168, 640, 720, 4096 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct finder_groups groups = { 0 }, again = { 0 };
		struct rng rng = { 1 }, same = { 1 };

		finder_add_permutations(sizes[i], &rng, &groups);
		finder_add_permutations(sizes[i], &same, &again);
		assert_true(groups.n > 0);
		assert_int_equal(groups.n, again.n);
		for (size_t k = 0; k < groups.n; k++) {
			assert_int_equal(topo_cayley_order(&groups.v[k].g), sizes[i]);
			assert_true(groups.v[k].g.chain.points > 0);
			assert_memory_equal(&groups.v[k].g, &again.v[k].g, sizeof(groups.v[k].g));
		}
		vec_fini(&groups);
		vec_fini(&again);
	}
}

/* By multiplying images from the identity on, not by the chain: n elements, not all commute. */
static void assert_rebuilt(const struct topo_cayley_group *g, int n)
{
	uint8_t (*image)[TOPO_CAYLEY_MAX_POINTS] = x_new((size_t)n + 1, sizeof(*image));
	int found = 1, points = g->chain.points;
	bool commute = true;

	for (int k = 0; k < points; k++) {
		image[0][k] = (uint8_t)k;
	}
	for (int at = 0; at < found; at++) {
		for (int m = 0; m < TOPO_CAYLEY_MAX_MOVES; m++) {
			const uint8_t *by = g->chain.move[m];
			int there = 0;

			if (by[0] == by[1]) {
				continue;	/* no move */
			}
			for (int k = 0; k < points; k++) {
				image[found][k] = by[image[at][k]];
			}
			for (int k = 0; k < points && at > 0; k++) {
				commute &= image[found][k] == image[at][by[k]];
			}
			while (memcmp(image[there], image[found], (size_t)points) != 0) {
				there++;
			}
			found += there == found;
			assert_true(found <= n);
		}
	}
	assert_int_equal(found, n);
	assert_false(commute);
	free(image);
}

/* The table of small groups: as many as there are, less those that commute; every word one of its
 * order; those of up to 100 elements rebuilt from their generators, not all of which commute. */
static void test_small_groups(void **state)
{
	static const struct { int n, groups; } rows[] = {
		{ 6, 1 }, { 8, 2 }, { 12, 3 }, { 16, 9 }, { 24, 12 }, { 32, 44 }, { 36, 10 },
		{ 48, 47 }, { 60, 11 }, { 72, 44 }, { 100, 12 }, { 120, 44 },
	};
	struct finder_groups all = { 0 };
	char *text = NULL;
	int words = 0, samples = 0;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct finder_groups groups = { 0 };

		assert_true(finder_add_small(rows[i].n, &groups));
		assert_int_equal(groups.n, rows[i].groups);
		vec_fini(&groups);
	}
	assert_int_equal(file_read("collective/finder/small_groups.txt", 400000, &text, &len, NULL),
			 0);
	for (size_t i = 0; i < len; i++) {
		words += text[i] == ' ';
	}
	free(text);
	for (int n = 2; n < 1024; n++) {
		bool some;

		all.n = 0;
		some = finder_add_small(n, &all);
		assert_true(all.n > 0 || !some);
		samples += all.n > 0 && !some;
		words -= (int)all.n;
		for (size_t i = 0; i < all.n && n <= 100; i++) {
			assert_rebuilt(&all.v[i].g, n);
		}
	}
	assert_int_equal(words, 0);
	assert_true(samples > 0);
	assert_false(finder_add_small(65520, &all));
	vec_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_early_end),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_groups_of),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_permutations),
		cmocka_unit_test(test_small_groups),
	};

	return cmocka_run_group_tests_name("finder/cayley", tests, NULL, NULL);
}
