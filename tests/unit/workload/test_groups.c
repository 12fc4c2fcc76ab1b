/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meshes from groups, against all meshes of up to 48 ranks: groups along axes of one are found to
 * be so, whatever their axes, two that are of no mesh together are refused, and ranks that are
 * named share what is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/workload/groups.h"
#include "tests/unit/schedule/common.h"

#define MOST 48
#define MAX_PARTS 512

static int32_t parts[MAX_PARTS][MOST];
static int n_parts;

static void add_part(const struct workload *w, uint32_t axes, int n)
{
	int group[MOST];

	for (int r = 0; r < n; r++) {
		workload_group(w, axes, r, group);
		parts[n_parts][r] = group[0];
	}
	for (int i = 0; i < n_parts; i++) {
		if (memcmp(parts[i], parts[n_parts], (size_t)n * sizeof(**parts)) == 0) {
			return;
		}
	}
	assert_true(++n_parts < MAX_PARTS);
}

/* All groups along axes of all meshes of n ranks whose first axes are these. */
static void list_parts(int *size, int n_axes, int left, int n)
{
	char name[2] = "a";
	struct err err = { 0 };
	struct workload *w;

	for (int s = 2; s <= left; s++) {
		if (left % s == 0) {
			size[n_axes] = s;
			list_parts(size, n_axes + 1, left / s, n);
		}
	}
	if (left > 1) {
		return;
	}
	workload_new(&w);
	for (int i = 0; i < n_axes; i++) {
		name[0] = (char)('a' + i);
		must(workload_add_axis(w, name, size[i], &err), &err);
	}
	for (uint32_t axes = 1; axes < UINT32_C(1) << n_axes; axes++) {
		add_part(w, axes, n);
	}
	workload_free(w);
}

static int shared(const int32_t *a, int r, const int32_t *b, int s, int n)
{
	int both = 0;

	for (int i = 0; i < n; i++) {
		both += a[i] == a[r] && b[i] == b[s];
	}
	return both;
}

static void check_axes(const struct workload *w, const struct workload_groups *g, int n)
{
	int group[MOST];

	assert_int_equal(workload_ranks(w, WORKLOAD_ALL_AXES), n);
	for (int r = 0; r < n; r++) {
		workload_group(w, g->axes, r, group);
		assert_int_equal(group[0], g->of[r]);
		assert_int_equal(shared(g->of, r, g->of, r, n), workload_ranks(w, g->axes));
	}
}

/* Returns 1 where the two have a mesh together. */
static int check_pair(int32_t *a, int32_t *b, int n)
{
	struct workload_groups g[2] = { { "x", a, 0 }, { "y", b, 0 } };
	struct err err = { 0 };
	struct workload *w;
	int rc, first, r, s, both;

	workload_new(&w);
	rc = workload_add_groups(w, n, g, 2, &err);
	if (rc == 0) {
		check_axes(w, &g[0], n);
		check_axes(w, &g[1], n);
	} else {
		assert_int_equal(rc, WEFT_EINVAL);
		if (sscanf(err.msg, "no mesh has the groups of x and of y: those of rank 0 share "
			   "%d, those of ranks %d and %d share %d", &first, &r, &s, &both) == 4) {
			assert_int_equal(shared(a, 0, b, 0, n), first);
			assert_int_equal(shared(a, r, b, s, n), both);
			assert_int_not_equal(first, both);
		}
	}
	workload_free(w);
	return rc == 0;
}

/* By brute force: both are along axes of one mesh. */
static bool has_mesh(int *size, int n_axes, int left, int n, const int32_t *a, const int32_t *b)
{
	const int32_t *of[2] = { a, b };

	for (int s = 2; s <= left; s++) {
		size[n_axes] = s;
		if (left % s == 0 && has_mesh(size, n_axes + 1, left / s, n, a, b)) {
			return true;
		}
	}
	for (int k = 0; k < 2 && left == 1; k++) {
		for (int r = 0; r < n; r++) {
			int first = r;

			for (int i = n_axes, stride = 1; i-- > 0; stride *= size[i]) {
				first -= of[k][stride] == 0 ? r / stride % size[i] * stride : 0;
			}
			if (first != of[k][r]) {
				return false;
			}
		}
	}
	return left == 1;
}

static void all_meshes(void **state)
{
	static const int ranks[] = { 2, 6, 8, 12, 16, 24, 30 };
	int size[8], found = 0, refused = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(ranks) / sizeof(*ranks); k++) {
		n_parts = 0;
		list_parts(size, 0, ranks[k], ranks[k]);
		for (int i = 0; i < n_parts; i++) {
			for (int j = 0; j < n_parts; j++) {
				bool is = check_pair(parts[i], parts[j], ranks[k]);

				assert_int_equal(is, has_mesh(size, 0, ranks[k], ranks[k], parts[i],
							      parts[j]));
				*(is ? &found : &refused) += 1;
			}
		}
	}
	assert_true(found > 1000 && refused > 100);
}

/* Three of a usual job, and what has no mesh. */
static void examples(void **state)
{
	int32_t of[3][32], bad[8] = { 0, 0, 2, 2, 4, 5, 4, 5 };
	struct workload_groups g[3] = { { "tp", of[0], 0 }, { "dp", of[1], 0 },
					{ "ep", of[2], 0 } };
	struct workload_groups own = { "odd", bad, 0 };
	struct err err = { 0 };
	struct workload *w;

	(void)state;
	for (int r = 0; r < 32; r++) {
		of[0][r] = r / 8 * 8;
		of[1][r] = r % 8;
		of[2][r] = r / 16 * 16 + r % 4;
	}
	workload_new(&w);
	must(workload_add_groups(w, 32, g, 3, &err), &err);
	assert_int_equal(w->axes.n, 4);
	assert_string_equal(w->axes.v[0].name, "stride-16");
	assert_int_equal(w->axes.v[3].size, 4);
	assert_int_equal(g[0].axes, 12);
	assert_int_equal(g[1].axes, 3);
	assert_int_equal(g[2].axes, 6);
	workload_free(w);
	workload_new(&w);
	assert_int_equal(workload_add_groups(w, 8, &own, 1, &err), WEFT_EINVAL);
	assert_string_equal(err.msg, "odd: the group of rank 5 is along no axes of a mesh of 8 "
			    "ranks in their order");
	workload_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_meshes), cmocka_unit_test(examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
