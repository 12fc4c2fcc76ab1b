/* SPDX-License-Identifier: Apache-2.0 */
/* topology: families and their expressions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/topology/parse.h"

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
	topo_freeze(copy);
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
	{ "BiRing(4,7)", 7, 28, 4, 3, true, true, 0 },
	{ "Mesh(3,4)", 12, 34, 0, 5, true, false, 0 },
	{ "Hamming(2,3)", 9, 36, 4, 2, true, true, 0 },
	{ "Hamming(3,2)", 8, 24, 3, 3, true, true, 0 },
	{ "TwistedTorus(4,8,0)", 32, 128, 4, 6, true, true, 0 },
	{ "TwistedTorus(4,8,4)", 32, 128, 4, 4, true, true, 0 },
	{ "TwistedTorus(4,4,8,0,4,4)", 128, 768, 6, 6, true, true, 0 },
	{ "TwistedHypercube(3)", 8, 24, 3, 2, true, true, 0 },
	{ "TwistedHypercube(5)", 32, 160, 5, 4, true, false, 0 },
	{ "Kautz(2,3)", 24, 48, 2, 4, false, false, 0 },
	{ "Kautz(3,1)", 12, 36, 3, 2, false, true, 0 },
	{ "DeBruijn(2,4)", 16, 32, 2, 4, false, false, 2 },
	{ "DBJMod(2,3)", 8, 16, 2, 3, false, false, 0 },
	{ "DBJMod(3,2)", 9, 27, 3, 2, false, false, 0 },
	{ "DBJMod(2,5)", 32, 64, 2, 5, false, false, 0 },
	{ "Diamond", 8, 16, 2, 3, false, true, 0 },
	/* Table 7 of the direct-connect topologies paper. */
	{ "Johnson(4,2)", 6, 24, 4, 2, true, true, 0 },
	{ "Paley(9)", 9, 36, 4, 2, true, true, 0 },
	{ "SlimFly(4)", 32, 192, 6, 2, true, true, 0 },
	{ "SlimFly(5)", 50, 350, 7, 2, true, true, 0 },
	{ "SlimFly(7)", 98, 1078, 11, 2, true, false, 0 },
	{ "Polarity(2)", 7, 18, 0, 2, true, false, 0 },
	{ "Polarity(4)", 21, 100, 0, 2, true, false, 0 },
	{ "Polarity(7)", 57, 448, 0, 2, true, false, 0 },
	{ "Crown(5)", 10, 40, 4, 3, true, true, 0 },
	{ "Dist(PG(2),3)", 14, 56, 4, 3, true, true, 0 },
	{ "L2(Dist(PG(2),3))", 224, 896, 4, 5, false, false, 0 },
	{ "UL(Dist(PG(2),3))", 28, 168, 6, 3, true, true, 0 },
	{ "UL(Odd(3))", 15, 60, 4, 3, true, true, 0 },
	{ "UL(PG(2))", 21, 84, 4, 3, true, true, 0 },
	{ "PG(3)", 26, 104, 4, 3, true, true, 0 },
	{ "AG(4)", 32, 128, 4, 4, true, true, 0 },
	{ "Odd(4)", 35, 140, 4, 3, true, true, 0 },
	{ "UL(GQ(2))", 45, 180, 4, 4, true, true, 0 },
	{ "DoubledOdd(4)", 70, 280, 4, 7, true, true, 0 },
	{ "GQ(3)", 80, 320, 4, 4, true, false, 0 },
	{ "UL(GH(2))", 189, 756, 4, 6, true, true, 0 },
	{ "GH(3)", 728, 2912, 4, 6, true, true, 0 },
	{ "GH(2)", 126, 378, 3, 6, true, false, 0 },
	{ "GQ(4)", 170, 850, 5, 4, true, true, 0 },
	{ "Xpander(4,10,7)", 50, 200, 4, -2, true, false, 0 },
	{ "Jellyfish(30,5,1)", 30, 150, 5, -2, true, false, 0 },
	{ "PathExpander(64,4,3)", 64, 256, 4, -2, false, false, 0 },
	{ "PathExpander(30,3,1)", 30, 90, 3, -2, false, false, 0 },
	{ "PathExpander(5,4,1)", 5, 20, 4, 1, true, true, 0 },
	/* Operators. */
	{ "L(K(2,2))", 8, 16, 2, 3, false, true, 0 },
	{ "L3(C(16,{3,4}))", 1024, 4096, 4, 6, false, false, 0 },
	{ "L(K(2,3))", 12, 30, 0, 3, false, false, 0 },
	{ "Pow(UniRing(1,4),2)", 16, 32, 2, 6, false, true, 0 },
	{ "Prod(UniRing(1,4),UniRing(1,8))", 32, 64, 2, 10, false, true, 0 },
	{ "Prod(K(2,3),K(2))", 10, 34, 0, 3, true, false, 0 },
	{ "Deg(K(3),2)", 6, 24, 4, 2, true, true, 0 },
	{ "Bi(GenKautz(2,24))", 24, 96, 4, 4, true, false, 0 },
	{ "Multi(Ring(5),3)", 5, 30, 6, 2, true, true, 0 },
	{ "Reverse(GenKautz(2,6))", 6, 12, 2, 2, false, true, 0 },
	{ "Cap(Ring(5),4)", 5, 10, 2, 2, true, true, 0 },
};

static void known_values(void **state)
{
	int wrong = 0;

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

		/* Of random graphs only: connected. */
		if (want[3] == -2 && got[3] > 0) {
			want[3] = got[3];
		}
		for (int k = 0; k < 8; k++) {
			if (got[k] != want[k]) {
				print_error("%s: property %d is %d, not %d\n",
					    known[i].expr, k, got[k], want[k]);
				wrong++;
			}
		}
		topo_free(t);
		topo_free(copy);
	}
	assert_int_equal(wrong, 0);
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
				assert_int_equal(topo_vertex_transitive(t), TOPO_YES);
				assert_int_equal(topo_vertex_transitive(copy), TOPO_YES);
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
		{ " Diamond ", "Diamond" },
		{ "L3( C(16,{4,3}) )", "L3(C(16,{3,4}))" },
		{ "L1(K(3))", "L(K(3))" },
		{ "Pow( Diamond , 2 )", "Pow(Diamond,2)" },
		{ "Prod(K(3),Torus(2, 3), Ring(4))",
		  "Prod(K(3),Torus(2,3),Ring(4))" },
		{ "Bi(L(K(2,2)))", "Bi(L(K(2,2)))" },
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
		{ "Rin(5)", WEFT_EINVAL, "column 1: no family 'Rin'" },
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
		{ "L3(Rin(5))", WEFT_EINVAL, "column 4: no family 'Rin'" },
		{ "L(5)", WEFT_EINVAL,
		  "column 3: expected the name of a family, found '5'" },
		{ "L(Ring(5),2)", WEFT_EINVAL, "expected L(X)" },
		{ "L0(Ring(5))", WEFT_EINVAL, "repetition is 0" },
		{ "L9(K(5))", WEFT_EINVAL, "column 1: L has" },
		{ "L2(K(2,3))", WEFT_EINVAL, "degrees differ" },
		{ "L(K(4000))", WEFT_EINVAL, "has more than 65536 nodes" },
		{ "Ring(5)(6)", WEFT_EINVAL, "column 8: expected the end" },
		{ "Ring(K(5))", WEFT_EINVAL,
		  "column 6: expected a number, found 'K'" },
		{ "Pow(K(5))", WEFT_EINVAL, "expected Pow(X,k)" },
		{ "Pow(K(5),16)", WEFT_EINVAL, "has more than 65536 nodes" },
		{ "Prod(K(5))", WEFT_EINVAL, "expected Prod(X,Y,...)" },
		{ "Prod(K(5),", WEFT_EINVAL, "column 11: expected the name" },
		{ "Prod(Ring(1000),Ring(1000))", WEFT_EINVAL, "has more than 65536 nodes" },
		{ "Deg(K(3),1000000)", WEFT_EINVAL, "at most" },
		{ "Deg(K(3),65536)", WEFT_EINVAL, "has more than 65536 nodes" },
		{ "Deg(K(300),200)", WEFT_ELIMIT, "arcs, more than" },
		{ "Deg(DeBruijn(2,3),2)", WEFT_EINVAL, "self-loops" },
		{ "Multi(K(300),16777216)", WEFT_ELIMIT, "arcs, more than" },
		{ "UL(GenKautz(2,6))", WEFT_EINVAL, "opposite pairs" },
		{ "UL(K(2))", WEFT_EINVAL, "degree 1" },
		{ "Paley(7)", WEFT_EINVAL, "multiple of 4" },
		{ "Paley(21)", WEFT_EINVAL, "power of a prime" },
		{ "SlimFly(6)", WEFT_EINVAL, "power of a prime" },
		{ "Polarity(6)", WEFT_EINVAL, "power of a prime" },
		{ "SlimFly(3)", WEFT_EINVAL, "expected 4 or more" },
		{ "GH(7)", WEFT_EINVAL, "at most 5" },
		{ "BiRing(3,5)", WEFT_EINVAL, "even" },
		{ "TwistedTorus(4,8,8)", WEFT_EINVAL, "twist is 8" },
		{ "Jellyfish(5,3,1)", WEFT_EINVAL, "must be even" },
		{ "PathExpander(5000,4,1)", WEFT_EINVAL, "at most 4096" },
		{ "PathExpander(1000,17,1)", WEFT_EINVAL, "at most 16384" },
		{ "PathExpander(5,5,1)", WEFT_EINVAL, "at most 4" },
		{ "Kautz(60000,16)", WEFT_EINVAL, "has more than 65536 nodes" },
		{ "Diamond(5)", WEFT_EINVAL, "column 8: expected the end" },
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
	/* Ten thousand deep is one error, not a stack that ends. */
	{
		char *deep = malloc(20001 + 5);

		assert_non_null(deep);
		for (int i = 0; i < 10000; i++) {
			memcpy(deep + 2 * i, "L(", 3);
		}
		assert_int_equal(topo_parse(deep, &t, NULL, &err),
				 WEFT_ELIMIT);
		assert_non_null(strstr(err.msg, "column 66: nested deeper "
				       "than 32"));
		free(deep);
	}
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

/* Each family's name with no argument names the form that help shows. */
static void help_matches_parser(void **state)
{
	const char *form, *help;
	int n = 0;

	(void)state;
	for (; (form = topo_family_help(n, &help)); n++) {
		char expr[64];
		struct err err = { 0 };
		struct topo *t;
		int name = (int)strcspn(form, "(");

		assert_true(*help);
		if (form[name] == '\0') {
			continue;
		}
		snprintf(expr, sizeof(expr), "%.*s(%s)", name, form,
			 form[name + 1] == 'X' ? "K(3),1,1,1" : "1,1,1,1,1");
		assert_int_equal(topo_parse(expr, &t, NULL, &err),
				 WEFT_EINVAL);
		if (!strstr(form, "...") && !strstr(err.msg, form)) {
			fail_msg("%s: %s", expr, err.msg);
		}
	}
	assert_int_equal(n, 58);
}

/* Renaming symbols moves any word to any other; k steps make any of another. */
static void cycle_prefixes(void **state)
{
	struct topo *t, *words;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topo_parse("CyclePrefix(5,3)", &t, NULL, &err), 0);
	assert_int_equal(topo_regular_degree(t), 5);
	assert_int_equal(topo_vertex_transitive(t), TOPO_YES);
	/* The same by a search, without what its family says. */
	assert_int_equal(topo_from_arcs(topo_n(t), topo_arcs(t), (size_t)topo_m(t), &words, &err),
			 0);
	assert_int_equal(topo_vertex_transitive(words), TOPO_YES);
	assert_int_equal(topo_diameter(words), 3);
	topo_free(t);
	topo_free(words);
	/* Of words of one symbol the complete graph. */
	assert_int_equal(topo_parse("CyclePrefix(6,1)", &t, NULL, &err), 0);
	assert_int_equal(topo_n(t), 7);
	assert_int_equal(topo_diameter(t), 1);
	topo_free(t);
	assert_int_equal(topo_parse("CyclePrefix(3,4)", &t, NULL, &err), WEFT_EINVAL);
	assert_int_equal(topo_parse("CyclePrefix(99,9)", &t, NULL, &err), WEFT_EINVAL);
}

/* A seed gives one graph, another seed another. */
static void seeds(void **state)
{
	static const char *const forms[] = { "Jellyfish(40,4,%d)",
					     "Xpander(5,12,%d)",
					     "PathExpander(50,4,%d)" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct topo *t[3];
		size_t bytes;

		for (int k = 0; k < 3; k++) {
			char expr[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(expr, sizeof(expr), forms[i], k / 2);
#pragma GCC diagnostic pop
			t[k] = parse(expr);
		}
		bytes = (size_t)topo_m(t[0]) * sizeof(struct topo_arc);
		assert_memory_equal(topo_arcs(t[0]), topo_arcs(t[1]), bytes);
		assert_memory_not_equal(topo_arcs(t[0]), topo_arcs(t[2]),
					bytes);
		for (int k = 0; k < 3; k++) {
			topo_free(t[k]);
		}
	}
}

static void edge_lists(void **state)
{
	static const char good[] = "# a comment\n nodes 4\n\n0 1\r\n"
				   "1 2 4 500 # fast\n2 3\n3 0";
	static const struct {
		const char *text;
		int code, line;
		const char *says;
	} bad[] = {
		{ "", WEFT_EINVAL, 0, "without arcs" },
		{ "nodes 4\n0 1\n1 4\n", WEFT_EINVAL, 3,
		  "target 4 is out of range" },
		{ "0 1\n\n1 65536\n", WEFT_EINVAL, 3, "out of range" },
		{ "0 x\n", WEFT_EINVAL, 1, "found 'x'" },
		{ "0 -1\n", WEFT_EINVAL, 1, "found '-1'" },
		{ "0\n", WEFT_EINVAL, 1, "expected SOURCE TARGET" },
		{ "0 1 2 3 4 5\n", WEFT_EINVAL, 1, "expected SOURCE TARGET" },
		{ "0 1 0\n", WEFT_EINVAL, 1, "capacity 0 is out of range" },
		{ "0 1\nnodes 4\n", WEFT_EINVAL, 2, "found 'nodes'" },
		{ "nodes 0\n0 0\n", WEFT_EINVAL, 1, "out of range" },
		{ "1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8\n", WEFT_EINVAL, 1, "short words" },
		{ "0 99999999999999999999\n", WEFT_EINVAL, 1,
		  "out of range" },
	};
	struct err err = { 0 };
	struct topo *t;

	(void)state;
	assert_int_equal(topo_from_edges(good, sizeof(good) - 1, &t, &err),
			 0);
	assert_int_equal(topo_n(t), 4);
	assert_int_equal(topo_m(t), 4);
	assert_int_equal(topo_arc(t, 1)->cap, 4);
	assert_int_equal(topo_arc(t, 1)->latency_ns, 500);
	assert_int_equal(topo_diameter(t), 3);
	topo_free(t);
	assert_int_equal(topo_from_edges("undirected\n0 1\n1 2", 18, &t,
					 &err), 0);
	assert_int_equal(topo_m(t), 4);
	assert_true(topo_is_symmetric(t));
	topo_free(t);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err_clear(&err);
		assert_int_equal(topo_from_edges(bad[i].text,
						 strlen(bad[i].text), &t,
						 &err), bad[i].code);
		if (err.line != bad[i].line ||
		    !strstr(err.msg, bad[i].says)) {
			fail_msg("%s: line %d: %s", bad[i].text, err.line,
				 err.msg);
		}
	}
	assert_int_equal(topo_from_edges("0 1\n\0", 5, &t, &err),
			 WEFT_EINVAL);
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
		cmocka_unit_test(cycle_prefixes),
		cmocka_unit_test(seeds),
		cmocka_unit_test(edge_lists),
	};

	return cmocka_run_group_tests_name("topology/families", tests, NULL,
					   NULL);
}
