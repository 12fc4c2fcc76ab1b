/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bits against one number at a time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/bits.h"
#include "lib/base/number/rng.h"

#define MOST 11		/* words */

/* About a quarter of all. */
static void draw(struct rng *rng, uint64_t *row, int words)
{
	for (int i = 0; i < words; i++) {
		row[i] = rng_u64(rng) & rng_u64(rng);
	}
}

static void test_counts(void **state)
{
	uint64_t a[MOST], b[MOST];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int words = 0; words <= MOST; words++) {
		int64_t in_a = 0, in_both = 0;

		draw(&rng, a, words);
		draw(&rng, b, words);
		for (int v = 0; v < 64 * words; v++) {
			in_a += bits_has(a, v);
			in_both += bits_has(a, v) && bits_has(b, v);
		}
		assert_int_equal(bits_count(a, words), in_a);
		assert_int_equal(bits_count_and(a, b, words), in_both);
	}
}

static void check_take(struct rng *rng, int words, int64_t most, bool with_out)
{
	uint64_t from[MOST], in[MOST], out[MOST], was[MOST];
	int64_t taken = 0, said;

	draw(rng, from, words);
	draw(rng, in, words);
	draw(rng, out, words);
	memcpy(was, from, sizeof(was));
	said = bits_take(from, in, with_out ? out : NULL, most, words);
	for (int v = 0; v < 64 * words; v++) {
		bool may = bits_has(was, v) && bits_has(in, v) &&
			   !(with_out && bits_has(out, v));
		bool take = may && taken < most;

		assert_int_equal(bits_has(from, v), bits_has(was, v) && !take);
		taken += take;
	}
	assert_int_equal(said, taken);
}

static void test_take(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	for (int words = 0; words <= MOST; words++) {
		for (int64_t most = 0; most < 70; most += 3) {
			check_take(&rng, words, most, false);
			check_take(&rng, words, most, true);
		}
		check_take(&rng, words, INT64_MAX, true);
	}
}

static void test_unions(void **state)
{
	uint64_t a[MOST], once[MOST], twice[MOST], one[MOST], two[MOST];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	draw(&rng, a, MOST);
	draw(&rng, once, MOST);
	draw(&rng, twice, MOST);
	bits_twice(one, two, once, twice, a, MOST);
	for (int v = 0; v < 64 * MOST; v++) {
		bool in = bits_has(a, v), had = bits_has(once, v);

		assert_int_equal(bits_has(one, v), had || in);
		assert_int_equal(bits_has(two, v),
				 bits_has(twice, v) || (had && in));
	}
	bits_or(once, a, MOST);
	assert_memory_equal(once, one, sizeof(one));
}

static void test_turn(void **state)
{
	uint64_t rows[64], columns[64];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4);
	draw(&rng, rows, 64);
	for (int n = 0; n <= 64; n++) {
		bits_turn(rows, n, columns);
		for (int v = 0; v < 64; v++) {
			for (int k = 0; k < 64; k++) {
				assert_int_equal(bits_has(&columns[v], k),
						 k < n &&
						 bits_has(&rows[k], v));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_unions),
		cmocka_unit_test(test_turn),
	};

	return cmocka_run_group_tests_name("base/bits", tests, NULL, NULL);
}
