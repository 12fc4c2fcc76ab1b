/* SPDX-License-Identifier: Apache-2.0 */
/* Work in parts: each is done once, and the cuts cover everything. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/parallel.h"

static void square(void *arg, int i)
{
	int *out = arg;

	out[i] += i * i + 1;
}

static void test_every_part_once(void **state)
{
	(void)state;
	for (int n = 0; n <= PARALLEL_MAX; n++) {
		int out[PARALLEL_MAX + 1] = { 0 };

		parallel_run(n, square, out);
		for (int i = 0; i <= PARALLEL_MAX; i++) {
			assert_int_equal(out[i], i < n ? i * i + 1 : 0);
		}
	}
}

static void test_cuts_adjoin(void **state)
{
	(void)state;
	for (int items = 0; items < 40; items++) {
		for (int n = 1; n <= PARALLEL_MAX; n++) {
			int end = 0, from, to;

			for (int i = 0; i < n; i++) {
				parallel_cut(items, n, i, &from, &to);
				assert_int_equal(from, end);
				assert_in_range(to - from, items / n,
						(items + n - 1) / n);
				end = to;
			}
			assert_int_equal(end, items);
		}
	}
}

static void test_width_is_sane(void **state)
{
	(void)state;
	assert_in_range(parallel_width(), 1, PARALLEL_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_part_once),
		cmocka_unit_test(test_cuts_adjoin),
		cmocka_unit_test(test_width_is_sane),
	};

	return cmocka_run_group_tests_name("base/parallel", tests, NULL, NULL);
}
