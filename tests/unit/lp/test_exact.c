/* SPDX-License-Identifier: Apache-2.0 */
/* lib/lp/exact: independent rows, and fractions that solve their systems. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"
#include "lib/lp/exact.h"

static struct exact_matrix matrix(int rows, int cols, const int *values)
{
	struct exact_matrix m = { .cols = cols };

	for (int i = 0; i < rows; i++) {
		exact_row(&m);
		for (int j = 0; j < cols; j++) {
			if (values[i * cols + j]) {
				exact_put(&m, j, values[i * cols + j]);
			}
		}
	}
	return m;
}

static void independent_rows(void **state)
{
	static const int values[] = {
		0, 0, 0,
		1, 2, 3,
		2, 4, 6,
		1, 1, 1,
		0, 1, 2,
		5, 0, 0,
	};
	struct exact_matrix m = matrix(6, 3, values);
	int32_t row[3], col[3];
	int rank;

	(void)state;
	rank = exact_basis(&m, 3, row, col);
	assert_int_equal(rank, 3);
	assert_int_equal(row[0], 1);
	assert_int_equal(row[1], 3);
	assert_int_equal(row[2], 5);
	rank = exact_basis(&m, 2, row, col);
	assert_int_equal(rank, 2);
	exact_fini(&m);
}

/* Both equations with 1 on the right; num[2] and den. */
static int solve_two(const int *values, mpz_t *num, mpz_t den)
{
	struct exact_matrix m = matrix(2, 2, values);
	const int32_t all[] = { 0, 1 };
	mpz_t *rhs = numbers_new(2);
	int rc;

	assert_non_null(rhs);
	mpz_set_ui(rhs[0], 1);
	mpz_set_ui(rhs[1], 1);
	rc = exact_solve(&m, 2, all, all, false, rhs, num, den, NULL);
	numbers_free(rhs, 2);
	exact_fini(&m);
	return rc;
}

/* 2x + y = 1, x + 3y = 1: x = 2/5, y = 1/5. */
static void two_by_two(void **state)
{
	mpz_t *num = numbers_new(2), den;

	(void)state;
	assert_non_null(num);
	mpz_init(den);
	assert_int_equal(solve_two((int[]){ 2, 1, 1, 3 }, num, den), 0);
	assert_int_equal(mpz_get_ui(den), 5);
	assert_int_equal(mpz_get_ui(num[0]), 2);
	assert_int_equal(mpz_get_ui(num[1]), 1);
	assert_int_equal(solve_two((int[]){ 2, 1, 4, 2 }, num, den),
			 WEFT_EINVAL);
	numbers_free(num, 2);
	mpz_clear(den);
}

/* A x = den * rhs, by plain arithmetic on the values the test holds. */
static void assert_solves(const int *values, int cols, int n,
			  const int32_t *row, const int32_t *col,
			  bool transposed, mpz_t *rhs, mpz_t *num,
			  const mpz_t den)
{
	mpz_t sum, t;

	mpz_inits(sum, t, NULL);
	assert_true(mpz_sgn(den) > 0);
	for (int i = 0; i < n; i++) {
		mpz_mul(sum, den, rhs[i]);
		for (int j = 0; j < n; j++) {
			int r = transposed ? row[j] : row[i];
			int c = transposed ? col[i] : col[j];

			mpz_mul_si(t, num[j], values[r * cols + c]);
			mpz_sub(sum, sum, t);
		}
		assert_int_equal(mpz_sgn(sum), 0);
	}
	mpz_clears(sum, t, NULL);
}

/* Random matrices of any rank, sparse and dense, small and huge sides. */
static void random_systems(void **state)
{
	enum { ROWS = 40, COLS = 25 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 6);
	for (int trial = 0; trial < 40; trial++) {
		static int values[ROWS * COLS];
		int sparse = 1 + trial % 5, n;
		int32_t row[COLS], col[COLS];
		mpz_t *rhs = numbers_new(COLS), *num = numbers_new(COLS), den;
		struct exact_matrix m;

		for (int i = 0; i < ROWS * COLS; i++) {
			values[i] = rng_below(&rng, (uint64_t)sparse) ? 0
				  : (int)rng_below(&rng, 19) - 9;
		}
		m = matrix(ROWS, COLS, values);
		n = exact_basis(&m, COLS, row, col);
		assert_in_range(n, COLS / 2, COLS);
		assert_true(num);
		mpz_init(den);
		for (int i = 0; i < n; i++) {
			mpz_set_si(rhs[i], (long)rng_below(&rng, 2001) - 1000);
			mpz_mul_2exp(rhs[i], rhs[i], trial % 3 ? 0 : 90);
		}
		for (int transposed = 0; transposed < 2; transposed++) {
			assert_int_equal(exact_solve(&m, n, row, col,
						     transposed, rhs, num, den,
						     NULL), 0);
			assert_solves(values, COLS, n, row, col, transposed,
				      rhs, num, den);
		}
		numbers_free(rhs, COLS);
		numbers_free(num, COLS);
		mpz_clear(den);
		exact_fini(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(independent_rows),
		cmocka_unit_test(two_by_two),
		cmocka_unit_test(random_systems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
