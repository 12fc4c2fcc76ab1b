/* SPDX-License-Identifier: Apache-2.0 */
/* topology: shared limits and the order of node kinds, through freezing, copies,
 * transposing, and what looks for symmetry. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "tests/unit/topology/parse.h"

enum { MOST_ARCS = 60, MOST_LIMITS = 8 };

static struct topo *empty(int n)
{
	struct topo *t;

	assert_int_equal(topo_new(n, &t, NULL), 0);
	return t;
}

static void arc(struct topo *t, int u, int v, int64_t cap)
{
	assert_int_equal(topo_add_arc(t, u, v, cap, 0, NULL), 0);
}

static void limit(struct topo *t, int64_t cap, int n, const int32_t *arcs)
{
	assert_int_equal(topo_add_limit(t, arcs, n, cap, NULL), 0);
}

static struct topo *frozen(struct topo *t)
{
	topo_freeze(t);
	return t;
}

/* Each of the arcs with probability a half, at least one; returns how many. */
static int draw_arcs(struct rng *rng, int m, int32_t *arcs)
{
	int n = 0;

	for (int a = m - 1; a >= 0; a--) {
		if (rng_below(rng, 2) == 0 || (a == 0 && n == 0)) {
			arcs[n++] = a;
		}
	}
	return n;
}

/* Arc i has capacity i + 1, so that it is known again. Row k of `named` is
 * what limit k holds. */
static struct topo *random_limits(struct rng *rng, bool named[MOST_LIMITS][MOST_ARCS],
				  int *limits)
{
	int n = 1 + (int)rng_below(rng, 12), m = 1 + (int)rng_below(rng, MOST_ARCS);
	struct topo *t = empty(n);

	for (int i = 0; i < m; i++) {
		arc(t, (int)rng_below(rng, (uint64_t)n), (int)rng_below(rng, (uint64_t)n), i + 1);
	}
	*limits = (int)rng_below(rng, MOST_LIMITS + 1);
	memset(named, 0, sizeof(bool[MOST_LIMITS][MOST_ARCS]));
	for (int k = 0; k < *limits; k++) {
		int32_t arcs[MOST_ARCS];
		int count = draw_arcs(rng, m, arcs);

		for (int i = 0; i < count; i++) {
			named[k][arcs[i]] = true;
		}
		limit(t, k + 1, count, arcs);
	}
	return frozen(t);
}

/* The limits of t are those that `named` says; arcs are known by capacity. */
static void assert_limits(const struct topo *t, const bool named[MOST_LIMITS][MOST_ARCS],
			  int limits)
{
	int entries = 0;

	assert_int_equal(topo_n_limits(t), limits);
	for (int k = 0; k < limits; k++) {
		const struct topo_limit *l = topo_limit(t, k);
		int count = 0;

		assert_int_equal(l->cap, k + 1);
		for (int i = 0; i < MOST_ARCS; i++) {
			count += named[k][i];
		}
		assert_int_equal(l->n, count);
		for (int i = 0; i < l->n; i++) {
			assert_true(named[k][topo_arc(t, l->arcs[i])->cap - 1]);
			assert_true(i == 0 || l->arcs[i - 1] < l->arcs[i]);
		}
		entries += count;
	}
	for (int a = 0; a < topo_m(t); a++) {
		const int32_t *of;
		int n = topo_arc_limits(t, a, &of);

		for (int i = 0; i < n; i++) {
			assert_true(named[of[i]][topo_arc(t, a)->cap - 1]);
			assert_true(i == 0 || of[i - 1] < of[i]);
		}
		entries -= n;
	}
	assert_int_equal(entries, 0);
}

static void limits_follow_their_arcs(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21);
	for (int round = 0; round < 300; round++) {
		bool named[MOST_LIMITS][MOST_ARCS];
		struct topo *copy, *reversed;
		int limits;
		struct topo *t = random_limits(&rng, named, &limits);

		assert_limits(t, named, limits);
		assert_int_equal(topo_copy(t, &copy, NULL), 0);
		assert_limits(copy, named, limits);
		assert_int_equal(topo_transpose(t, &reversed, NULL, NULL), 0);
		assert_limits(reversed, named, limits);
		assert_int_equal(topo_is_plain(t), limits == 0);
		topo_free(copy);
		topo_free(reversed);
		topo_free(t);
	}
}

/* Dropping the even arcs: their limits keep the others, if there are any. */
static void limits_of_a_part(void **state)
{
	const int32_t even[] = { 0, 2 }, mixed[] = { 3, 2, 1 }, place[] = { -1, 0, -1, 1 };
	struct topo *t = empty(2), *part = empty(2);

	(void)state;
	for (int i = 0; i < 4; i++) {
		arc(t, i % 2, 1 - i % 2, i + 1);
	}
	limit(t, 5, 2, even);
	limit(t, 6, 3, mixed);
	frozen(t);
	/* CSR: arcs 0 and 2 leave node 0, then 1 and 3 leave node 1. */
	assert_int_equal(topo_limit(t, 0)->arcs[1], 1);
	arc(part, 0, 1, 3);
	arc(part, 1, 0, 4);
	assert_int_equal(topo_copy_limits(t, place, part, NULL), 0);
	frozen(part);
	assert_int_equal(topo_n_limits(part), 2);
	assert_int_equal(topo_limit(part, 0)->n, 1);
	assert_int_equal(topo_limit(part, 0)->arcs[0], 0);
	assert_int_equal(topo_limit(part, 1)->n, 2);
	topo_free(t);
	topo_free(part);
}

static void wrong_limits(void **state)
{
	const int32_t twice[] = { 1, 0, 1 }, beyond[] = { 0, 2 }, negative[] = { -1 };
	struct topo *t = empty(2);
	struct err err;

	(void)state;
	arc(t, 0, 1, 1);
	arc(t, 1, 0, 1);
	assert_int_equal(topo_add_limit(t, twice, 3, 1, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "arc 1 twice"));
	assert_int_equal(topo_add_limit(t, beyond, 2, 1, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "arc 2"));
	assert_int_equal(topo_add_limit(t, negative, 1, 1, &err), WEFT_EINVAL);
	assert_int_equal(topo_add_limit(t, twice, 0, 1, &err), WEFT_EINVAL);
	assert_int_equal(topo_add_limit(t, twice, 2, 0, &err), WEFT_EINVAL);
	assert_int_equal(topo_n_limits(t), 0);
	limit(t, 1, 2, twice);
	frozen(t);
	assert_int_equal(topo_n_limits(t), 1);
	topo_free(t);
}

/* An undirected ring; limit k holds what each node sends, and with `both` also a
 * limit on what it receives. */
static struct topo *ring_with_limits(int n, bool both, int64_t in_cap)
{
	struct topo *t = empty(n);

	for (int u = 0; u < n; u++) {
		arc(t, u, (u + 1) % n, 1);
		arc(t, u, (u + n - 1) % n, 1);
	}
	for (int u = 0; u < n; u++) {
		int before = (u + n - 1) % n, after = (u + 1) % n;

		limit(t, 1, 2, (const int32_t[]){ 2 * u, 2 * u + 1 });
		if (both) {
			limit(t, in_cap, 2, (const int32_t[]){ 2 * before, 2 * after + 1 });
		}
	}
	return frozen(t);
}

static void symmetry_sees_limits(void **state)
{
	struct topo *plain = parse("Ring(5)"), *out = ring_with_limits(5, false, 0);
	struct topo *both = ring_with_limits(5, true, 1), *other = ring_with_limits(5, true, 2);
	struct topo_group *g;

	(void)state;
	assert_true(topo_is_symmetric(plain));
	assert_false(topo_is_symmetric(out));
	assert_true(topo_is_symmetric(both));
	assert_false(topo_is_symmetric(other));
	assert_int_equal(topo_vertex_transitive(plain), TOPO_YES);
	assert_int_equal(topo_vertex_transitive(both), TOPO_NO);
	assert_int_equal(topo_group_find(both, &g, NULL), 0);
	assert_null(g);
	assert_true(topo_has_mirror(plain));
	assert_false(topo_has_mirror(both));
	topo_free(plain);
	topo_free(out);
	topo_free(both);
	topo_free(other);
}

static int check_kinds(const char *kinds, struct err *err)
{
	struct topo *t = empty((int)strlen(kinds));
	int rc;

	for (int u = 0; kinds[u]; u++) {
		topo_set_node(t, u, kinds[u] == 't' ? TOPO_TERMINAL
			      : kinds[u] == 'm' ? TOPO_MEMORY : TOPO_SWITCH, 0);
	}
	frozen(t);
	rc = topo_check_order(t, err);
	assert_false(topo_is_plain(t));
	if (rc == 0) {
		assert_int_equal(topo_ranks(t), (int)strcspn(kinds, "ms"));
		assert_int_equal(topo_holders(t), (int)strcspn(kinds, "s"));
	}
	topo_free(t);
	return rc;
}

static void order_of_kinds(void **state)
{
	static const char *const good[] = { "t", "tm", "ts", "ttmmss", "tt" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(check_kinds(good[i], &err), 0);
	}
	assert_int_equal(check_kinds("tsm", &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "node 1 is a switch where a memory is expected"));
	assert_int_equal(check_kinds("ms", &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "no node is a terminal"));
	assert_int_equal(check_kinds("mt", &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "node 0 is a memory where a terminal"));
	assert_int_equal(check_kinds("ttst", &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "node 2 is a switch where a terminal"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_follow_their_arcs),
		cmocka_unit_test(limits_of_a_part),
		cmocka_unit_test(wrong_limits),
		cmocka_unit_test(symmetry_sees_limits),
		cmocka_unit_test(order_of_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
