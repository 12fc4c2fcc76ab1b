/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of frontiers: what they have is found, what is not true in them is passed over. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "collective/finder/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "tests/unit/world.h"
#include "tests/unit/schedule/common.h"

/* The frontier of a query by a text in place of weft's table. */
static struct coll_frontier find_in(const char *text, const struct coll_query *q)
{
	struct coll_finder *f;
	struct coll_frontier out;
	struct err err = { 0 };

	coll_finder_new(&f);
	must(0, &err);
	coll_finder_set_table(f, text, strlen(text));
	coll_finder_set_default(f, 50);
	must(coll_finder_run(f, q, true, &out, &err), &err);
	coll_finder_free(f);
	return out;
}

static bool has(const struct coll_frontier *f, const char *expr)
{
	for (size_t i = 0; i < f->points.n; i++) {
		if (strcmp(f->points.v[i].expr, expr) == 0) {
			return true;
		}
	}
	return false;
}

/* Worse than what a search finds, so that it tells where an answer is from. */
#define RING "12 2 both 6 . = Ring(12)\n"
#define TABLE \
	"9 2 one 3 8/9 = DiC(9,{1,4}) 4 . = Pow(UniRing(1,3),2)\n" \
	"12 2 one 11 . = DiC(12,{1,5})\n" RING "16 4 both 4 . = Torus(4,4)\n"

static void test_lines(void **state)
{
	static const struct coll_query there = { 16, 4, true, COLL_ALLREDUCE, 0, 0 };
	static const struct coll_query first = { 9, 2, false, COLL_ALLGATHER, 0, 0 };
	static const struct coll_query absent = { 16, 4, false, COLL_ALLREDUCE, 0, 0 };
	struct coll_frontier f = find_in(TABLE, &there);

	(void)state;
	assert_int_equal(f.points.n, 1);
	assert_string_equal(f.points.v[0].expr, "Torus(4,4)");
	assert_int_equal(f.points.v[0].steps, 8);
	coll_frontier_fini(&f);
	f = find_in(TABLE, &absent);
	assert_false(has(&f, "Torus(4,4)"));
	coll_frontier_fini(&f);
	f = find_in(TABLE, &first);
	assert_true(f.points.n >= 1);
	coll_frontier_fini(&f);
}

/* A line that promises too much, or is damaged, is not there; nor are its neighbours lost. */
static void test_damage(void **state)
{
	static const char *const lines[] = {
		"12 2 both 5 . = Ring(12)\n", "12 2 both 6 1/2 = Ring(12)\n",
		"12 2 both 6 . 1/2 Ring(12)\n", "12 2 both 6 . = Ring(13)\n",
		"12 2 both 6 . = DiC(12,{1,5})\n", "12 2 both 6 . = Ring(\n",
		"12 2 both 6 . =\n", "12 2 both 6\n", "12 2 both\n", "12 2 both x . = Ring(12)\n",
		"12 2 both 6 . = Ring(12) 3\n", "12 2 both 6 1/0 = Ring(12)\n",
		"12 2 both 6 1/2x = Ring(12)\n", "12 2 both 6 = = Ring(12)\n", "12 2 bot", "",
	};
	static const struct coll_query q = { 12, 2, true, COLL_ALLREDUCE, 0, 0 };
	static const struct coll_query next = { 16, 4, true, COLL_ALLREDUCE, 0, 0 };
	static const char rest[] = "16 4 both 4 . = Torus(4,4)\n";

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[200];
		struct coll_frontier f;

		snprintf(text, sizeof(text), "%s%s", lines[i], rest);
		f = find_in(text, &q);
		assert_int_equal(f.points.n, 1);
		assert_string_equal(f.points.v[0].expr, "Ring(12)");
		assert_int_equal(f.points.v[0].steps, 12);
		assert_true(f.points.v[0].num == 11 && f.points.v[0].den == 6);
		coll_frontier_fini(&f);
		f = find_in(text, &next);
		assert_true(i == 14 || has(&f, "Torus(4,4)"));
		coll_frontier_fini(&f);
	}
}

/* Each point by the first text is met or beaten by one by the second. */
static void assert_no_worse(const char *text, const char *other, const struct coll_query *q)
{
	struct coll_frontier f = find_in(text, q), g = find_in(other, q);

	for (size_t i = 0; i < f.points.n; i++) {
		const struct coll_point *x = &f.points.v[i];
		bool met = false;

		for (size_t k = 0; k < g.points.n; k++) {
			const struct coll_point *y = &g.points.v[k];

			met |= y->steps <= x->steps && y->num * x->den <= x->num * y->den;
		}
		assert_true(met);
	}
	coll_frontier_fini(&f);
	coll_frontier_fini(&g);
}

/* What is written of a search is what is read, for each collective, and nothing is lost by looking
 * on. */
static void test_improve(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_ALLGATHER,
						COLL_REDUCE_SCATTER };

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct coll_query q = { 18 + 2 * i, 2 + i % 3, i % 2, COLL_ALLREDUCE, 100, 1 };
		struct buf line = { 0 }, again = { 0 };
		struct err err = { 0 };
		struct coll_finder *f;

		coll_finder_new(&f);
		must(0, &err);
		coll_finder_set_table(f, "", 0);
		must(coll_finder_improve(f, &q, &line, &err), &err);
		for (int k = 0; k < 3; k++) {
			struct coll_query one = q, looked_up;
			struct coll_frontier found, read;

			one.kind = kinds[k];
			looked_up = one;
			looked_up.sets = 0;
			must(coll_finder_run(f, &one, true, &found, &err), &err);
			read = find_in(buf_cstr(&line), &looked_up);
			assert_int_equal(read.points.n, found.points.n);
			for (size_t p = 0; p < read.points.n; p++) {
				assert_int_equal(read.points.v[p].steps, found.points.v[p].steps);
				assert_true(read.points.v[p].num == found.points.v[p].num);
			}
			coll_frontier_fini(&found);
			coll_frontier_fini(&read);
		}
		/* A shorter search than that of the text loses nothing. */
		q.sets = 1;
		coll_finder_set_table(f, buf_cstr(&line), line.len);
		must(coll_finder_improve(f, &q, &again, &err), &err);
		q.sets = 0;
		for (int k = 0; k < 3; k++) {
			q.kind = kinds[k];
			assert_no_worse(buf_cstr(&line), buf_cstr(&again), &q);
		}
		coll_finder_free(f);
		buf_fini(&line);
		buf_fini(&again);
	}
}

/* Every line of weft's own: in order, so that it is found, and true also where reading
 * it leaves the proof out. */
static void test_shipped(void **state)
{
	size_t len, checked = 0;
	const char *text = finder_table_shipped(&len), *line = text;
	struct coll_finder *f;
	struct err err = { 0 };
	int64_t before = 0;

	(void)state;
	coll_finder_new(&f);
	must(0, &err);
	for (int i = 0; line < text + len; i++) {
		struct finder_candidates set = { 0 };
		struct coll_query q = { .kind = COLL_ALLREDUCE };
		char way[5], key[40] = { 0 };
		int64_t at;

		memcpy(key, line, sizeof(key) - 1 < (size_t)(text + len - line)
					  ? sizeof(key) - 1 : (size_t)(text + len - line));
		assert_int_equal(sscanf(key, "%d %d %4s", &q.n, &q.degree, way), 3);
		q.bidirectional = strcmp(way, "both") == 0;
		assert_true(q.bidirectional || strcmp(way, "one") == 0);
		at = (int64_t)q.n << 20 | q.degree << 1 | q.bidirectional;
		assert_true(at > before);
		before = at;
		if (i % ALL_OR_SOME(23, 401) == 0) {
			f->all_kinds = true;
			f->q = &q;
			assert_true(coll_table_has(&q));
			assert_true(finder_table_read(f, q.n, q.degree, q.bidirectional, &set));
			for (size_t k = 0; k < set.list.n && q.n <= ALL_OR_SOME(1024, 300); k++) {
				struct finder_candidate c = set.list.v[k];

				must(finder_compute(f, &c), &err);
				assert_int_equal(c.steps, set.list.v[k].steps);
				assert_int_equal(bfb_ratio_cmp(c.gather, set.list.v[k].gather), 0);
				assert_int_equal(bfb_ratio_cmp(c.scatter, set.list.v[k].scatter),
						 0);
				checked++;
			}
			f->computed.n = 0;
			vec_fini(&set.list);
		}
		line = memchr(line, '\n', (size_t)(text + len - line));
		assert_non_null(line);
		line++;
	}
	assert_true(checked >= ALL_OR_SOME(200, 5));
	coll_finder_free(f);
}

/* ---- the table and searches ---- */

/* Nothing that a search of the usual length finds, which takes nothing from the table, beats what
 * the table has, in rows of sizes up to 208 that have many groups: FINDER_ROWS in the environment
 * says of how many. */
static void test_not_worse(void **state)
{
	const int many = getenv("FINDER_ROWS") ? atoi(getenv("FINDER_ROWS")) : ALL_OR_SOME(6, 1);
	static const int degrees[] = { 3, 4, 6, 8 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, (uint64_t)many);
	for (int i = 0; i < many; i++) {
		struct coll_query q = { .n = 32 + 16 * (int)rng_below(&rng, 12),
					.degree = degrees[rng_below(&rng, 4)],
					.bidirectional = rng_below(&rng, 2),
					.kind = COLL_ALLREDUCE };
		struct coll_frontier table, search;

		assert_int_equal(coll_find(&q, false, &table, NULL), 0);
		q.sets = COLL_FINDER_SETS;
		assert_int_equal(coll_find(&q, false, &search, NULL), 0);
		for (size_t k = 0; k < search.points.n; k++) {
			const struct coll_point *p = &search.points.v[k];
			bool known = false;

			for (size_t t = 0; t < table.points.n; t++) {
				const struct coll_point *o = &table.points.v[t];

				known |= o->steps <= p->steps &&
					 (__int128)o->num * p->den <= (__int128)p->num * o->den;
			}
			if (!known) {
				fail_msg("%d nodes of %d ports: the table has no %d steps of "
					 "%s", q.n, q.degree, p->steps, p->expr);
			}
		}
		coll_frontier_fini(&table);
		coll_frontier_fini(&search);
	}
}

/* Sizes of the largest Cayley graphs known of a diameter, at the bound of bandwidth as well. */
static void test_records(void **state)
{
	static const int rows[][3] = { { 84, 4, 4 }, { 253, 8, 3 }, { 375, 6, 4 }, { 1100, 8, 4 },
				       { 1250, 3, 11 }, { 1550, 9, 4 }, { 2286, 10, 4 },
				       { 2756, 7, 5 }, { 3775, 12, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_query q = { rows[i][0], rows[i][1], true, COLL_ALLREDUCE, 0, 0 };
		struct coll_frontier f;

		assert_int_equal(coll_find(&q, false, &f, NULL), 0);
		assert_int_equal(f.points.v[0].steps, 2 * rows[i][2]);
		assert_int_equal(f.points.v[0].num * q.n,
				 2 * (int64_t)(q.n - 1) * f.points.v[0].den);
		coll_frontier_fini(&f);
	}
}

/* ---- the fewest hops ---- */

/* Whether some choice of two arcs out of each node from `node` on, of those of adjacent[], has all
 * of n nodes within two hops of each. */
static bool exists(int n, unsigned *adjacent, int node)
{
	bool found = false;

	if (node == n) {
		for (int u = 0; u < n; u++) {
			unsigned near = 1u << u | adjacent[u];

			for (int v = 0; v < n; v++) {
				near |= adjacent[u] >> v & 1 ? adjacent[v] : 0;
			}
			if (near != (1u << n) - 1) {
				return false;
			}
		}
		return true;
	}
	for (int a = 0; a < n && !found; a++) {
		for (int b = a + 1; b < n && !found; b++) {
			adjacent[node] = 1u << a | 1u << b;
			found = a != node && b != node && exists(n, adjacent, node + 1);
		}
	}
	return found;
}

/* Values of the literature; the smallest case gone through, node 0 being joined to 1 and 2; and all
 * that weft knows is above them. */
static void test_min_hops(void **state)
{
	static const struct {
		int n, d;
		bool both;
		int moore, hops;
	} known[] = {
		{ 7, 2, false, 2, 3 }, { 6, 2, false, 2, 2 }, { 13, 2, false, 3, 4 },
		{ 12, 2, false, 3, 3 }, { 13, 3, false, 2, 3 }, { 12, 3, false, 2, 2 },
		{ 39, 3, false, 3, 4 }, { 38, 3, false, 3, 3 }, { 10, 3, true, 2, 2 },
		{ 50, 7, true, 2, 2 }, { 49, 7, true, 2, 2 }, { 17, 4, true, 2, 3 },
		{ 16, 4, true, 2, 3 }, { 15, 4, true, 2, 2 }, { 21, 3, true, 3, 4 },
		{ 20, 3, true, 3, 3 }, { 64, 8, true, 2, 3 }, { 63, 8, true, 2, 2 },
		{ 3250, 57, true, 2, 2 }, { 9, 2, true, 4, 4 }, { 5, 4, true, 1, 1 },
	};
	unsigned adjacent[8] = { 1u << 1 | 1u << 2 };
	size_t len;
	const char *text = finder_table_shipped(&len);
	char *copy = x_ndup(text, len), *save = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(coll_moore_steps(known[i].n, known[i].d, known[i].both),
				 known[i].moore);
		assert_int_equal(coll_min_hops(known[i].n, known[i].d, known[i].both),
				 known[i].hops);
	}
	assert_true(exists(6, adjacent, 1));
	assert_true(ALL_OR_SOME(false, true) || !exists(7, adjacent, 1));
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int n, d, hops;
		char way[5];

		assert_int_equal(sscanf(line, "%d %d %4s %d", &n, &d, way, &hops), 4);
		assert_true(hops >= coll_min_hops(n, d, strcmp(way, "both") == 0));
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_worse), cmocka_unit_test(test_min_hops),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_improve),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
