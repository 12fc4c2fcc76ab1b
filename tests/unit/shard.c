/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a test program's cases, so that a long one runs as several at a
 * time: with WEFT_SHARD=K/N in the environment every N-th case runs, from the
 * K-th (0..N-1) on. The linker puts this in front of cmocka's own runner
 * (--wrap); without the variable all cases run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

int __real__cmocka_run_group_tests(const char *name,
				   const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name,
				   const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown);

int __wrap__cmocka_run_group_tests(const char *name,
				   const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown)
{
	static size_t seen;
	const char *shard = getenv("WEFT_SHARD");
	struct CMUnitTest *mine;
	unsigned k, of;
	size_t m = 0;
	int failed = 0;

	if (!shard || sscanf(shard, "%u/%u", &k, &of) != 2 || of == 0) {
		return __real__cmocka_run_group_tests(name, tests, n, setup,
						      teardown);
	}
	mine = calloc(n + 1, sizeof(*mine));
	if (!mine) {
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		if (seen++ % of == k) {
			mine[m++] = tests[i];
		}
	}
	if (m > 0) {
		failed = __real__cmocka_run_group_tests(name, mine, m, setup,
							teardown);
	}
	free(mine);
	return failed;
}
