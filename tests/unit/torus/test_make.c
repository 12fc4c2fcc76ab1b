/* SPDX-License-Identifier: Apache-2.0 */
/* Swing and its relatives: check values, and replay on many shapes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/torus/world.h"
#include "tests/unit/world.h"

/* Reduce-scatter: T_B over its bound. */
static void assert_excess(const char *expr, const struct torus_spec *spec, const char *excess)
{
	struct world w = world_of(expr);
	struct coll_report report;
	struct coll_sched *s = make(&w, spec, COLL_REDUCE_SCATTER, &report);
	mpq_t q;

	mpq_init(q);
	mpq_div(q, report.bandwidth_factor, report.bandwidth_bound);
	assert_string_equal(mpq_get_str((char[64]){ 0 }, 10, q), excess);
	mpq_clear(q);
	coll_report_fini(&report);
	coll_free(s);
	world_end(&w);
}

static const struct torus_spec swing = { .lines = TORUS_SWING, .rounds = -1 };
static const struct torus_spec swing_latency = { .lines = TORUS_SWING };
static const struct torus_spec doubling = { .lines = TORUS_DOUBLING, .one_port = true };
static const struct torus_spec rabenseifner = { .lines = TORUS_DOUBLING, .rounds = -1,
						.one_port = true };
static const struct torus_spec bucket = { .lines = TORUS_BUCKET, .rounds = -1, .in_step = true };
static const struct torus_spec bucket_apart = { .lines = TORUS_BUCKET, .rounds = -1 };
static const struct torus_spec one_bucket = { .lines = TORUS_BUCKET, .rounds = -1,
					      .one_port = true };
static const struct torus_spec ring = { .lines = TORUS_RING, .rounds = -1 };
static const struct torus_spec one_ring = { .lines = TORUS_RING, .rounds = -1,
					    .one_port = true };
static const struct torus_spec one_swing = { .rounds = -1, .one_port = true };

static void test_excess(void **state)
{
	(void)state;
	assert_excess("Torus(8)", &swing, "9/7");
	assert_excess("Torus(16)", &swing, "23/15");
	assert_excess("Torus(64)", &swing, "15/7");
	assert_excess("Torus(8,8)", &swing, "23/21");
	assert_excess("Torus(16,16)", &swing, "97/85");
	assert_excess("Torus(64,64)", &swing, "77/65");
	assert_excess("Torus(16,4)", &swing, "82/63");
	assert_excess("Torus(6,6)", &swing, "41/35");
	assert_excess("Torus(8,8,8)", &swing, "75/73");
}

static const enum coll_kind kinds[] = {
	COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_BROADCAST, COLL_REDUCE,
};

/* What is there is replayed: all-reduces always are, but by Hamiltonian rings. */
static void replay(const struct world *w, const char *expr, const struct torus_spec *spec,
		   int n_kinds, int root)
{
	for (int k = 0; k < n_kinds; k++) {
		struct coll_sched *s;
		struct err err = { 0 };
		int rc = torus_make(w->shape, spec, kinds[k], root, &s, &err);

		if (rc == WEFT_EUNSUPPORTED && (k > 0 || spec->lines == TORUS_RING)) {
			continue;
		}
		if (rc || coll_prove(s, NULL, &err)) {
			fail_msg("%s, %s, %s: %s", expr, torus_name(spec), coll_kind_name(kinds[k]),
				 err.msg);
		}
		coll_free(s);
	}
}

/* One level a dimension, or as many as can be; as chains or not; exchanges from a round on. */
static struct torus_spec radices(const struct world *w, bool many, bool chain, int rounds)
{
	struct torus_spec spec = { .lines = TORUS_LEVELS, .rounds = rounds };
	int digits[COLL_MAX_DIGITS], n;
	struct err err = { 0 };

	coll_digits(w->t, digits, &n);
	must(0, &err);
	for (int e = 0; e < n; e++) {
		struct torus_radices *r = &spec.radices[n - 1 - e];

		for (int m = many ? 2 : digits[e]; digits[e] > 1; m++) {
			for (; digits[e] % m == 0; digits[e] /= m) {
				r->level[r->n++] = (struct torus_level){ m, chain, 0 };
			}
		}
	}
	return spec;
}

/* Levels that do not multiply to the sizes: m nodes, then as many as are left. */
static struct torus_spec uneven(const struct world *w, int m, bool chain)
{
	struct torus_spec spec = { .lines = TORUS_LEVELS, .rounds = -1 };
	int digits[COLL_MAX_DIGITS], n;
	struct err err = { 0 };

	coll_digits(w->t, digits, &n);
	must(0, &err);
	for (int e = 0; e < n; e++) {
		int d = digits[n - 1 - e], rest = d / 2 / m + (d - 1) / 2 / m + 1;

		spec.radices[e] = rest > 1 && m < d
			? (struct torus_radices){ 2, { { m, chain, 0 }, { rest, chain, 0 } } }
			: (struct torus_radices){ 1, { { d, chain, 0 } } };
	}
	return spec;
}

/* Levels that pass on sums: m nodes, then as many of those as there are and what is left; or, in
 * three, m and a few, then as many of those. */
static struct torus_radices passing(int d, int m, int few)
{
	int n = few > 0 ? 2 * m + few : m, rest = d % n;

	if (d < 2 * n || rest % (few > 0 ? m : 1)) {
		return (struct torus_radices){ 1, { { d, false, 0 } } };
	}
	return few > 0 ? (struct torus_radices){ 3, { { m, false, 0 }, { 2, false, few },
						      { d / n, false, rest / m } } }
		       : (struct torus_radices){ 2, { { m, false, 0 }, { d / n, false, rest } } };
}

/* Unless the shape has none such. */
static void replay_exchanges(const struct world *w, const char *expr, const struct torus_spec *spec)
{
	struct coll_cost any = { .link_bps = 1 };
	double ns;

	if (torus_time(w->shape, spec, COLL_ALLREDUCE, &any, &ns, &(struct err){ 0 }) !=
	    WEFT_EUNSUPPORTED) {
		replay(w, expr, spec, 1, 0);
	}
}

/* All of them, with an even dimension scattered before. */
static void replay_passing(const struct world *w, const char *expr)
{
	int digits[COLL_MAX_DIGITS], n;

	coll_digits(w->t, digits, &n);
	for (int i = 0; i < 24; i++) {
		struct torus_spec spec = { .lines = TORUS_LEVELS, .rounds = i / 2 % 2,
					   .one_port = i % 2 };

		for (int e = 0; e < n; e++) {
			spec.radices[e] = passing(digits[n - 1 - e], 2 + i / 4, i % 4);
		}
		replay_exchanges(w, expr, &spec);
	}
}

/* every: of mixed radices each so many-th choice. */
static void replay_shape(const char *expr, int n_kinds, int every)
{
	struct world w = world_of(expr);

	replay(&w, expr, &swing, n_kinds, topo_n(w.t) / 2);
	replay(&w, expr, &swing_latency, 1, 0);
	replay(&w, expr, &doubling, 1, 0);
	for (int i = 0; i < 8; i += every) {
		struct torus_spec spec = radices(&w, i % 2, i / 2 % 2, i / 4 - 1);

		replay(&w, expr, &spec, i < 2 ? n_kinds : 1, 0);
	}
	for (int m = 2; m <= 7; m += every) {
		struct torus_spec spec = uneven(&w, m, m % 2);

		replay(&w, expr, &spec, m == 3 ? n_kinds : 1, 0);
		for (spec.rounds = 1; spec.rounds <= 3; spec.rounds++) {
			replay_exchanges(&w, expr, &spec);
		}
	}
	replay_passing(&w, expr);
	world_end(&w);
}

static void test_sizes(void **state)
{
	(void)state;
	for (int p = 2; p <= ALL_OR_SOME(130, 40); p += ALL_OR_SOME(1, 3)) {
		char expr[32];

		if (p > 48 && !in_turn((size_t)p, 2)) {
			continue;
		}
		snprintf(expr, sizeof(expr), "Torus(%d)", p);
		replay_shape(expr, p <= 32 ? 5 : p <= 64 ? 3 : 1, p <= 48 ? 1 : 3);
	}
}

static void test_shapes(void **state)
{
	static const char *const exprs[] = {
		"Torus(2,2)", "Torus(3,3)", "Torus(4,4)", "Torus(5,5)", "Torus(6,6)", "Torus(7,7)",
		"Torus(8,8)", "Torus(10,10)", "Torus(12,12)", "Torus(2,3)", "Torus(3,5)",
		"Torus(4,6)", "Torus(16,4)", "Torus(7,4)", "Torus(9,2)", "Torus(5,12)",
		"Torus(13,3)", "Torus(20,6)", "Torus(2,2,2)", "Torus(3,3,3)", "Torus(4,4,4)",
		"Torus(5,4,3)", "Torus(2,3,4)", "Torus(8,4,2)", "Torus(6,3,5)", "Torus(7,2,3)",
		"Torus(2,2,2,2)", "Torus(3,3,3,3)", "Torus(4,4,4,4)", "Torus(2,3,4,5)",
		"Torus(5,2,2,3)", "Torus(2,2,2,2,2)", "Torus(2,3,2,3,2)", "Torus(3,2,4,2,2)",
		"Torus(2,2,2,2,2,2)", "Torus(3,2,2,2,3,2)", "Mesh(4,6)", "Prod(Ring(5),K(4))",
		"HyperX(4,6)", "HammingMesh(2,3,2)", "Hypercube(5)", "K(12)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i += ALL_OR_SOME(1, 4)) {
		replay_shape(exprs[i], 3, 1);
	}
}

/* Algorithms that are what they are at any size: a few. */
static void test_baselines(void **state)
{
	static const char *const exprs[] = {
		"Torus(2)", "Torus(7)", "Torus(12)", "Torus(4,4)", "Torus(8,4)", "Torus(9,3)",
		"Torus(3,5)", "Torus(6,4)", "Torus(2,3,4)",
	};
	static const struct torus_spec *specs[] = {
		&rabenseifner, &bucket, &bucket_apart, &one_bucket, &ring, &one_ring, &one_swing,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct world w = world_of(exprs[i]);

		for (size_t k = 0; k < sizeof(specs) / sizeof(specs[0]); k++) {
			replay(&w, exprs[i], specs[k], 3, 0);
		}
		world_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_excess),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_baselines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
