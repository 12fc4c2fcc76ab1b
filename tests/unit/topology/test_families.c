/* topology: families and their expressions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology.h"

static struct topo *parse(const char *expr)
{
	struct topo *t;
	struct err err = { 0 };

	if (topo_parse(expr, &t, NULL, &err)) {
		fail_msg("%s", err.msg);
	}
	return t;
}

static int self_loops(const struct topo *t)
{
	int loops = 0;

	for (int a = 0; a < topo_m(t); a++) {
		loops += topo_arc(t, a)->src == topo_arc(t, a)->dst;
	}
	return loops;
}

/* The same arcs without the knowledge that they are a family. */
static struct topo *anonymous(const struct topo *t)
{
	struct topo *copy;

	assert_int_equal(topo_new(topo_n(t), &copy, NULL), 0);
	for (int i = 0; i < topo_m(t); i++) {
		const struct topo_arc *a = topo_arc(t, i);

		assert_int_equal(topo_add_arc(copy, a->src, a->dst, a->cap,
					      a->latency_ns, NULL), 0);
	}
	assert_int_equal(topo_freeze(copy, NULL), 0);
	return copy;
}

static const struct {
	const char *expr;
	int n, m, degree;	/* degree 0: not regular */
	int diameter;
	bool symmetric, transitive;
	int loops;
} known[] = {
	{ "K(2)", 2, 2, 1, 1, true, true, 0 },
	{ "K(9)", 9, 72, 8, 1, true, true, 0 },
	{ "K(4,4)", 8, 32, 4, 2, true, true, 0 },
	{ "K(2,3)", 5, 12, 0, 2, true, false, 0 },
	{ "K(1,1)", 2, 2, 1, 1, true, true, 0 },
	{ "Ring(3)", 3, 6, 2, 1, true, true, 0 },
	{ "Ring(9)", 9, 18, 2, 4, true, true, 0 },
	{ "Ring(64)", 64, 128, 2, 32, true, true, 0 },
	{ "UniRing(1,4)", 4, 4, 1, 3, false, true, 0 },
	{ "UniRing(3,8)", 8, 24, 3, 7, false, true, 0 },
	{ "UniRing(2,2)", 2, 4, 2, 1, true, true, 0 },
	{ "Torus(5)", 5, 10, 2, 2, true, true, 0 },
	{ "Torus(2,2)", 4, 8, 2, 2, true, true, 0 },
	{ "Torus(3,2)", 6, 18, 3, 2, true, true, 0 },
	{ "Torus(4,5,6)", 120, 720, 6, 7, true, true, 0 },
	{ "Torus(3,3,3,3)", 81, 648, 8, 4, true, true, 0 },
	{ "Hypercube(1)", 2, 2, 1, 1, true, true, 0 },
	{ "Hypercube(6)", 64, 384, 6, 6, true, true, 0 },
	{ "C(16,{3,4})", 16, 64, 4, 3, true, true, 0 },
	{ "C(12,{5,6})", 12, 36, 3, 3, true, true, 0 },
	{ "C(4,{2})", 4, 4, 1, -1, true, true, 0 },
	{ "DiC(7,{1,3})", 7, 14, 2, 3, false, true, 0 },
	{ "DiC(6,{1,5})", 6, 12, 2, 3, true, true, 0 },
	{ "GenKautz(2,3)", 3, 6, 2, 1, true, true, 0 },
	{ "GenKautz(4,5)", 5, 20, 4, 1, true, true, 0 },
	/* Line graphs of K3 and K5 are transitive; 24 = 2^3 + 2^4 is L^3(K3). */
	{ "GenKautz(2,6)", 6, 12, 2, 2, false, true, 0 },
	{ "GenKautz(4,20)", 20, 80, 4, 2, false, true, 0 },
	{ "GenKautz(2,24)", 24, 48, 2, 4, false, false, 0 },
	{ "GenKautz(4,25)", 25, 100, 4, 3, false, false, 0 },
	{ "GenKautz(4,36)", 36, 144, 4, 3, false, false, 4 },
	{ "GenKautz(4,1024)", 1024, 4096, 4, 5, false, false, 4 },
};

static void known_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = parse(known[i].expr);
		struct topo *copy = anonymous(t);
		int got[] = { topo_n(t), topo_m(t), topo_regular_degree(t),
			      topo_diameter(t), topo_is_symmetric(t),
			      topo_vertex_transitive(t), self_loops(t),
			      topo_vertex_transitive(copy) };
		int want[] = { known[i].n, known[i].m, known[i].degree,
			       known[i].diameter, known[i].symmetric,
			       known[i].transitive, known[i].loops,
			       known[i].transitive };

		for (int k = 0; k < 8; k++) {
			if (got[k] != want[k]) {
				fail_msg("%s: property %d is %d, not %d",
					 known[i].expr, k, got[k], want[k]);
			}
		}
		topo_free(t);
		topo_free(copy);
	}
}

static void hypercubes(void **state)
{
	char expr[64];

	(void)state;
	for (int k = 1; k <= 9; k++) {
		struct topo *t;

		snprintf(expr, sizeof(expr), "Hypercube(%d)", k);
		t = parse(expr);
		assert_int_equal(topo_n(t), 1 << k);
		assert_int_equal(topo_diameter(t), k);
		assert_int_equal(topo_regular_degree(t), k);
		for (int a = 0; a < topo_m(t); a++) {
			int x = topo_arc(t, a)->src ^ topo_arc(t, a)->dst;

			assert_int_equal(x & (x - 1), 0);
		}
		topo_free(t);
	}
}

static void tori(void **state)
{
	char expr[64];

	(void)state;
	for (int a = 2; a <= 6; a++) {
		for (int b = 2; b <= 6; b++) {
			for (int c = 2; c <= 4; c++) {
				struct topo *t, *copy;
				int ports = (a > 2 ? 2 : 1) +
					    (b > 2 ? 2 : 1) +
					    (c > 2 ? 2 : 1);

				snprintf(expr, sizeof(expr), "Torus(%d,%d,%d)",
					 a, b, c);
				t = parse(expr);
				assert_int_equal(topo_diameter(t),
						 a / 2 + b / 2 + c / 2);
				assert_int_equal(topo_regular_degree(t),
						 ports);
				assert_int_equal(topo_m(t), a * b * c * ports);
				assert_true(topo_is_symmetric(t));
				copy = anonymous(t);
				assert_true(topo_vertex_transitive(t));
				assert_true(topo_vertex_transitive(copy));
				topo_free(t);
				topo_free(copy);
			}
		}
	}
}

/* C(n,{m,m+1}) of degree four with n = 2m^2 + 2m + 1 has diameter m. */
static void circulants(void **state)
{
	char expr[64];

	(void)state;
	for (int m = 1; m <= 8; m++) {
		struct topo *t;

		snprintf(expr, sizeof(expr), "C(%d,{%d,%d})",
			 2 * m * m + 2 * m + 1, m, m + 1);
		t = parse(expr);
		assert_int_equal(topo_diameter(t), m);
		assert_int_equal(topo_regular_degree(t), 4);
		topo_free(t);
	}
}

/* Every generalized Kautz graph is regular, has no parallel arcs, has arcs
 * by the definition, loops exactly when d + 1 does not divide n, and by
 * theorem 21 more nodes than the Moore bound of its diameter less two. */
static void kautz_graphs(void **state)
{
	char expr[64];

	(void)state;
	for (int d = 1; d <= 5; d++) {
		for (int n = d + 1; n <= 130; n += 1 + n / 20) {
			struct topo *t;
			int64_t moore = 1, power = 1;
			int diameter;

			snprintf(expr, sizeof(expr), "GenKautz(%d,%d)", d, n);
			t = parse(expr);
			assert_int_equal(topo_regular_degree(t), d);
			for (int i = 0; i < topo_m(t); i++) {
				const struct topo_arc *x = topo_arc(t, i);
				int a = ((-d * x->src - x->dst) % n + n) % n;

				assert_in_range(a == 0 ? n : a, 1, d);
				assert_int_equal(topo_find_arc(t, x->src,
							       x->dst), i);
			}
			assert_int_equal(self_loops(t) == 0,
					 n % (d + 1) == 0);
			diameter = topo_diameter(t);
			for (int k = 1; k <= diameter - 2 && d > 1; k++) {
				power *= d;
				moore += power;
			}
			assert_true(d == 1 || diameter < 2 || n > moore);
			topo_free(t);
		}
	}
}

static void canonical_names(void **state)
{
	static const char *const cases[][2] = {
		{ " C ( 16 , { 4,3 } ) ", "C(16,{3,4})" },
		{ "Torus(04,\t5 ,6)\n", "Torus(4,5,6)" },
		{ "K(3)", "K(3)" },
		{ "UniRing( 2,7)", "UniRing(2,7)" },
		{ "DiC(9,{8,1,2})", "DiC(9,{1,2,8})" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo *t;
		char *name;

		assert_int_equal(topo_parse(cases[i][0], &t, &name, NULL), 0);
		assert_string_equal(name, cases[i][1]);
		topo_free(t);
		free(name);
	}
}

static void refusals(void **state)
{
	static const struct {
		const char *expr;
		int code;
		const char *says;
	} cases[] = {
		{ "", WEFT_EINVAL, "column 1: expected the name of a family" },
		{ "  ", WEFT_EINVAL, "column 3: expected the name" },
		{ "5", WEFT_EINVAL, "column 1: expected the name" },
		{ "Rin(5)", WEFT_EINVAL, "column 1: no family 'Rin': "
		  "expected one of K(n), K(a,b), Ring(n)" },
		{ "ring(5)", WEFT_EINVAL, "no family 'ring'" },
		{ "Ring", WEFT_EINVAL, "column 5: expected '(', found the end" },
		{ "Ring 5", WEFT_EINVAL, "column 6: expected '(', found '5'" },
		{ "Ring()", WEFT_EINVAL,
		  "column 6: expected a number, found ')'" },
		{ "Ring(x)", WEFT_EINVAL,
		  "column 6: expected a number, found 'x'" },
		{ "Ring(-5)", WEFT_EINVAL, "column 6: expected a number" },
		{ "Ring(5", WEFT_EINVAL,
		  "column 7: expected ',' or ')', found the end" },
		{ "Ring(5)x", WEFT_EINVAL,
		  "column 8: expected the end, found 'x'" },
		{ "Ring(5))", WEFT_EINVAL, "column 8: expected the end" },
		{ "Ring(5,6)", WEFT_EINVAL,
		  "column 6: Ring takes other arguments: expected Ring(n)" },
		{ "K(1,2,3)", WEFT_EINVAL, "expected K(n), K(a,b)" },
		{ "Ring(2)", WEFT_EINVAL, "column 6: number of nodes is 2: "
		  "expected 3 or more" },
		{ "Ring(0)", WEFT_EINVAL, "column 6: number of nodes is 0" },
		{ "K(1)", WEFT_EINVAL, "column 3: number of nodes is 1" },
		{ "Ring(99999999999999999999)", WEFT_EINVAL,
		  "column 6: the number is too large" },
		{ "Ring(65537)", WEFT_EINVAL, "at most 65536" },
		{ "K(65536)", WEFT_ELIMIT, "arcs, more than" },
		{ "K(32768,32768)", WEFT_ELIMIT, "arcs, more than" },
		{ "UniRing(99999999,9)", WEFT_EINVAL, "at most" },
		{ "UniRing(16777216,2)", WEFT_ELIMIT, "arcs, more than" },
		{ "Torus(3,1)", WEFT_EINVAL,
		  "column 9: dimension is 1: expected 2 or more" },
		{ "Torus(256,256,2)", WEFT_EINVAL,
		  "column 15: more than 65536 nodes" },
		{ "Torus(2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2)", WEFT_EINVAL,
		  "more than 65536 nodes" },
		{ "Hypercube(17)", WEFT_EINVAL, "at most 16" },
		{ "C(16)", WEFT_EINVAL, "expected C(n,{s,...})" },
		{ "C(16,{})", WEFT_EINVAL,
		  "column 7: expected a number, found '}'" },
		{ "C(16,{3,3})", WEFT_EINVAL,
		  "column 9: offset 3 stands there twice" },
		{ "C(16,{9})", WEFT_EINVAL,
		  "column 7: offset is 9: expected at most 8" },
		{ "C(16,{0})", WEFT_EINVAL, "column 7: offset is 0" },
		{ "C({3},16)", WEFT_EINVAL, "column 3: expected a number" },
		{ "C(16,{3},4)", WEFT_EINVAL, "column 9: expected ')'" },
		{ "C(16,{3)", WEFT_EINVAL,
		  "column 8: expected ',' or '}', found ')'" },
		{ "C(16 {3})", WEFT_EINVAL, "column 6: expected ',' or ')'" },
		{ "DiC(5,{5})", WEFT_EINVAL, "at most 4" },
		{ "GenKautz(4,4)", WEFT_EINVAL,
		  "column 12: number of nodes is 4: expected 5 or more" },
		{ "GenKautz(0,4)", WEFT_EINVAL, "column 10: degree is 0" },
		{ "K(\x80)", WEFT_EINVAL, "found byte 0x80" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		struct topo *t = NULL;
		int rc = topo_parse(cases[i].expr, &t, NULL, &err);

		if (rc != cases[i].code || !strstr(err.msg, cases[i].says)) {
			fail_msg("%s: %d, %s", cases[i].expr, rc, err.msg);
		}
		assert_null(t);
		assert_int_equal(topo_parse(cases[i].expr, &t, NULL, NULL),
				 cases[i].code);
	}
}

static void long_expressions(void **state)
{
	char expr[8192];
	struct topo *t;
	struct err err;
	size_t n = 0;

	(void)state;
	memset(expr, ' ', sizeof(expr));
	memcpy(expr + 5000, "K(3)", 5);
	assert_int_equal(topo_parse(expr, &t, NULL, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "longer than"));
	n += (size_t)sprintf(expr, "DiC(200,{1");
	for (int i = 2; i < 100; i++) {
		n += (size_t)sprintf(expr + n, ",%d", i);
	}
	sprintf(expr + n, "})");
	assert_int_equal(topo_parse(expr, &t, NULL, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "more than 64 numbers"));
}

/* Each family's help starts with a form that its own error quotes. */
static void help_matches_parser(void **state)
{
	const char *const *lines = topo_families();
	struct err err;
	struct topo *t;
	int n = 0;

	(void)state;
	assert_int_equal(topo_parse("x()", &t, NULL, &err), WEFT_EINVAL);
	for (; lines[n]; n++) {
		char form[32];

		snprintf(form, sizeof(form), "%.*s",
			 (int)strcspn(lines[n], " "), lines[n]);
		assert_non_null(strstr(err.msg, form));
	}
	assert_int_equal(n, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(hypercubes),
		cmocka_unit_test(tori),
		cmocka_unit_test(circulants),
		cmocka_unit_test(kautz_graphs),
		cmocka_unit_test(canonical_names),
		cmocka_unit_test(refusals),
		cmocka_unit_test(long_expressions),
		cmocka_unit_test(help_matches_parser),
	};

	return cmocka_run_group_tests_name("topology/families", tests, NULL,
					   NULL);
}
