/* SPDX-License-Identifier: Apache-2.0 */
/* Cayley graphs: their arcs against products worked out one by one, the group that they
 * bring along against permutations composed, and what is no group refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "topology/topology.h"

static struct topo *parse(const char *expr)
{
	struct err err = { 0 };
	struct topo *t;

	if (topo_parse(expr, &t, NULL, &err)) {
		fail_msg("%s: %s", expr, err.msg);
	}
	return t;
}

static const char *const exprs[] = {
	"Cay(7:3,r=2,{(1,0),(0,1)})",			/* 7 : 3, the least that is not abelian */
	"DiCay(125:8,r=57,{(1,0),(3,1),(9,5),(20,3)})",
	"Cay(5:2,r=4,{(0,1),(1,1),(2,1)})",		/* dihedral, reflections */
	"Cay(6:2,r=5,s=3,{(1,0),(0,1)})",		/* dicyclic of 12 elements */
	"DiCay(3:(2x4),r=2,q=1,{(1,1,0),(0,0,1),(2,1,3)})",
	"Cay(13:(3x4),r=3,q=5,{(1,1,0),(4,2,1)})",
	"DiCay(2^3:7,[0,0,1;1,0,1;0,1,0],{(1,0,0;1),(0,0,0;3)})",	/* AGL(1,8) */
	"Cay(3^2:4,[0,2;1,0],{(1,0;0),(0,0;1),(1,2;3)})",
	"DiCay(4^2:2,[0,1;1,0]+(1,1),{(1,0;0),(2,1;1)})",
	"DiCay(1:6,r=0,{(0,1)})",			/* a cycle */
	"Cay((1,2),(1,2,3,4,5))",			/* all of S5 */
	"DiCay((1,2,3),(1,2,3,4,5))",			/* A5 */
	"Cay((1,2,3,4),(2,5,3,6))",			/* S4 on the faces of a cube */
	"Cay((1,2,3,4)(5,6,7,8),(1,5,3,7)(2,8,4,6))",	/* quaternions */
	"DiCay((1,3)(2,4),(1,2,3,4)(5,6))",		/* fixes more than it needs */
	"Cay((1,2,3,4,5,6,7),(1,7)(2,3)(4,5)(6,8))",
	/* PSL(2,13) */
	"DiCay((1,14)(2,13)(3,7)(4,5)(8,12)(10,11),(1,2,3,4,5,6,7,8,9,10,11,12,13))",
	"Cay((1,9),(10,64),(1,2,3,5,4))",
};

#define EXPRS ((int)(sizeof(exprs) / sizeof(*exprs)))

/* The group moves every node to every other, by permutations that keep the arcs; its
 * products and inverses are those of the permutations. */
static void group_acts(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 17);
	for (int i = 0; i < EXPRS; i++) {
		struct topo *t = parse(exprs[i]);
		struct topo_action *action;
		struct topo_group *g;
		int n = topo_n(t);

		assert_int_equal(topo_vertex_transitive(t), TOPO_YES);
		assert_int_equal(topo_group_find(t, &g, NULL), 0);
		assert_non_null(g);
		assert_int_equal(topo_group_order(g), n);
		assert_int_equal(topo_group_orbits(g), 1);
		assert_int_equal(topo_action_new(t, g, &action, NULL), 0);
		assert_int_equal(topo_action_orbits(action), topo_regular_degree(t));
		for (int k = 0; k < 300; k++) {
			int a = (int)rng_below(&rng, (uint64_t)n);
			int b = (int)rng_below(&rng, (uint64_t)n);
			int u = (int)rng_below(&rng, (uint64_t)n);
			int arc = (int)rng_below(&rng, (uint64_t)topo_m(t));
			const struct topo_arc *to = topo_arc(t, topo_action_move(action, a, arc));

			assert_int_equal(topo_group_move(g, topo_group_product(g, a, b), u),
					 topo_group_move(g, a, topo_group_move(g, b, u)));
			assert_int_equal(topo_group_product(g, a, topo_group_inverse(g, a)), 0);
			assert_int_equal(topo_group_product(g, topo_group_inverse(g, a), a), 0);
			assert_int_equal(topo_group_move(g, topo_group_between(g, u, b), u), b);
			assert_int_equal(topo_group_move(g, a, topo_arc(t, arc)->src), to->src);
			assert_int_equal(topo_group_move(g, a, topo_arc(t, arc)->dst), to->dst);
		}
		topo_action_free(action);
		topo_group_free(g);
		topo_free(t);
	}
}

/* (v; b) as it is written, for 7 : 3 by r = 2: 1 is (1, 0), 7 is (0, 1). */
static void arcs_are_products(void **state)
{
	struct topo *t = parse("DiCay(7:3,r=2,{(3,1),(1,0)})"),
		    *closed = parse("Cay(7:3,r=2,{(3,1),(1,0)})");

	(void)state;
	for (int u = 0; u < 21; u++) {
		int a = u % 7, b = u / 7, first;
		const int power[] = { 1, 2, 4 };

		assert_int_equal(topo_out(t, u, &first), 2);
		assert_int_equal(topo_arc(t, first)->dst, (a + power[b]) % 7 + 7 * b);
		assert_int_equal(topo_arc(t, first + 1)->dst,
				 (a + power[b] * 3) % 7 + (b + 1) % 3 * 7);
	}
	assert_int_equal(topo_regular_degree(closed), 4);
	assert_true(topo_is_symmetric(closed));
	topo_free(t);
	topo_free(closed);
}

/* Well-known graphs under other names. */
static void known_graphs(void **state)
{
	static const struct {
		const char *expr;
		int n, degree, diameter;
	} known[] = {
		{ "DiCay(1:6,r=0,{(0,1)})", 6, 1, 5 },
		{ "Cay(4:2,r=3,{(0,1),(1,1)})", 8, 2, 4 },	/* a ring */
		{ "Cay(7:3,r=2,{(1,0),(0,1)})", 21, 4, 3 },
		{ "DiCay(5:4,r=2,{(0,1),(1,1)})", 20, 2, 6 },
		{ "Cay(5:4,r=2,{(0,1),(1,1)})", 20, 4, 4 },
		{ "Cay(2^3:7,[0,0,1;1,0,1;0,1,0],{(1,0,0;0),(0,0,0;1)})", 56, 3, 6 },
		{ "Cay((1,2),(2,3),(3,4))", 24, 3, 6 },		/* swaps of neighbours */
		{ "Cay((1 2), (1 3), (1 4), (1 5))", 120, 4, 6 },	/* a star graph */
		{ "Cay((1,2)(3,4)(5,6)(7,8))", 2, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct topo *t = parse(known[i].expr);

		assert_int_equal(topo_n(t), known[i].n);
		assert_int_equal(topo_regular_degree(t), known[i].degree);
		print_message("# %s %d\n", known[i].expr, topo_diameter(t));
		assert_int_equal(topo_diameter(t), known[i].diameter);
		topo_free(t);
	}
}

/* As of undirected graphs where every arc has its reverse: there that is no cycle. */
static void girths(void **state)
{
	static const struct {
		const char *expr;
		int girth;
	} known[] = {
		{ "Ring(9)", 9 }, { "K(4)", 3 }, { "UniRing(2,5)", 5 }, { "Hypercube(4)", 4 },
		{ "Odd(3)", 5 }, { "GQ(3)", 8 }, { "GH(2)", 12 }, { "BiRing(4,7)", 2 },
		{ "Kautz(2,2)", 2 }, { "DiC(7,{1,2})", 4 }, { "GenKautz(2,5)", 1 },
		{ "Cay(5^3:8,[0,4,3;3,2,4;3,4,0],{(0,2,3;3),(3,4,0;3)})", 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct topo *t = parse(known[i].expr);

		if (topo_girth(t) != known[i].girth) {
			fail_msg("%s: girth %d", known[i].expr, topo_girth(t));
		}
		topo_free(t);
	}
}

#define POINTS TOPO_CAYLEY_MAX_POINTS

/* Of so many points from `first` on. */
static void random_permutation(struct rng *rng, int first, int points, struct topo_permutation *p)
{
	for (int i = 0; i < POINTS; i++) {
		p->image[i] = (uint8_t)i;
	}
	for (int i = first + points - 1; i > first; i--) {
		int k = first + (int)rng_below(rng, (uint64_t)(i - first) + 1);
		uint8_t image = p->image[i];

		p->image[i] = p->image[k];
		p->image[k] = image;
	}
}

/* a, then b. */
static struct topo_permutation composed(const struct topo_permutation *a,
					const struct topo_permutation *b)
{
	struct topo_permutation c;

	for (int i = 0; i < POINTS; i++) {
		c.image[i] = b->image[a->image[i]];
	}
	return c;
}

/* All products of generators, one after the other; returns how many. */
static int list_elements(const struct topo_permutation *generators, int n,
			 struct topo_permutation *all)
{
	int end = 1;

	for (int i = 0; i < POINTS; i++) {
		all[0].image[i] = (uint8_t)i;
	}
	for (int k = 0; k < end; k++) {
		for (int g = 0; g < n; g++) {
			struct topo_permutation p = composed(&all[k], &generators[g]);
			int at = 0;

			while (at < end && memcmp(&all[at], &p, sizeof(p))) {
				at++;
			}
			all[at] = p;
			end += at == end;
		}
	}
	return end;
}

/* Numbers stand for all permutations that are products of generators, one each; what is done
 * with numbers is done with these. */
static void check_against_list(const struct topo_cayley_group *g,
			       const struct topo_permutation *all, int n, struct rng *rng)
{
	int32_t *next = calloc((size_t)n, sizeof(*next));
	bool *had = calloc((size_t)n, sizeof(*had));
	int64_t by = (int64_t)rng_below(rng, (uint64_t)n);

	topo_cayley_times(g, by, next);
	for (int i = 0; i < n; i++) {
		struct topo_cayley_element e = { .permutation = all[i] }, of, times;
		int64_t u = topo_cayley_number(g, &e), v = (int64_t)rng_below(rng, (uint64_t)n);
		int64_t w = (int64_t)rng_below(rng, (uint64_t)n);

		assert_in_range(u, 0, n - 1);
		assert_false(had[u]);
		had[u] = true;
		of = topo_cayley_element(g, u);
		assert_memory_equal(&of.permutation, &all[i], sizeof(all[i]));
		of = topo_cayley_element(g, v);
		times.permutation = composed(&all[i], &of.permutation);
		assert_int_equal(topo_cayley_number(g, &times), topo_cayley_product(g, u, v));
		assert_int_equal(next[u], topo_cayley_product(g, u, by));
		assert_int_equal(topo_cayley_product(g, u, topo_cayley_inverse(g, u)), 0);
		assert_int_equal(topo_cayley_product(g, topo_cayley_product(g, u, v), w),
				 topo_cayley_product(g, u, topo_cayley_product(g, v, w)));
	}
	free(next);
	free(had);
}

static void permutations_by_brute_force(void **state)
{
	struct topo_cayley_group *g = malloc(sizeof(*g));
	struct topo_permutation *all = malloc(721 * sizeof(*all));
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 40; i++) {
		int points = 1 + (int)rng_below(&rng, 6), n = 1 + (int)rng_below(&rng, 3), order;
		struct topo_permutation generators[3];
		int first = i % 2 ? POINTS - points : 0;

		for (int k = 0; k < n; k++) {
			random_permutation(&rng, first, points, &generators[k]);
		}
		order = list_elements(generators, n, all);
		assert_int_equal(topo_cayley_generate(g, first + points, generators, n), 0);
		assert_null(topo_cayley_fault(g));
		assert_int_equal(topo_cayley_order(g), order);
		check_against_list(g, all, order, &rng);
	}
	free(g);
	free(all);
}

/* Written back as it was read, but for the order of the generators. */
static void names(void **state)
{
	(void)state;
	for (int i = 0; i < EXPRS; i++) {
		struct topo *t, *again;
		char *name, *second;

		assert_int_equal(topo_parse(exprs[i], &t, &name, NULL), 0);
		assert_int_equal(topo_parse(name, &again, &second, NULL), 0);
		assert_string_equal(name, second);
		assert_int_equal(strlen(name), strlen(exprs[i]));
		free(name);
		free(second);
		topo_free(t);
		topo_free(again);
	}
}

static void refused(void **state)
{
	static const char *const wrong[][2] = {
		{ "Cay(7:3,r=3,{(1,0)})", "column 5: r to the power k is not 1 modulo n" },
		{ "Cay(7:(3x2),r=2,q=2,{(1,0,0)})", "column 5: q to the power l is not 1" },
		{ "Cay(8:2,r=3,s=1,{(1,0)})", "column 5: s is not r s modulo n" },
		{ "Cay(2^2:2,[1,1;1,0],{(1,0;1)})", "the matrix to the power k is not 1" },
		{ "Cay(2^2:2,[0,1;1,0]+(1,0),{(1,0;1)})", "the matrix moves the vector" },
		{ "Cay(7:3,r=2,{(0,0)})", "column 14: the identity is no generator" },
		{ "Cay(7:3,r=2,{(1,0),(1,0)})", "a generator stands there twice" },
		{ "Cay(7:3,r=2,{(1,0),(6,0)})", "a generator and its inverse" },
		{ "Cay(7:3,r=2,{(1,0)})", "the generators reach 7 of 21 nodes" },
		{ "Cay(7:3,r=7,{(1,0)})", "7: expected a number below 7" },
		{ "Cay(7:3,{(1,0)})", "expected 'r='" },
		{ "Cay(7:3,r=2,{(1,0,0)})", "expected ')', found ','" },
		{ "Cay(1000:1000,r=1,{(1,0)})", "a group of more than 65536 elements" },
		{ "Cay(2^17:1,[1],{(1;0)})", "a group of more than 65536 elements" },
		{ "Cay(7:3,r=2,{})", "expected '('" },
		{ "Cay(7)", "expected ':', found ')'" },
		{ "Cay(1:1,r=0,{(0,0)})", "identity" },
		{ "Cay((1,2)(2,3))", "column 11: point 2 stands twice in a permutation" },
		{ "Cay((1,97))", "column 8: point 97: expected 1 to 96" },
		{ "Cay((0,1))", "column 6: point 0: expected 1 to 96" },
		{ "Cay((1,2),(3))", "column 11: the identity is no generator" },
		{ "DiCay((1,2),(2,3),(1,2))", "a generator stands there twice" },
		{ "Cay((1,2,3),(1,3,2))", "column 13: a generator and its inverse" },
		{ "Cay((1,2),(1,2,3,4,5,6,7,8,9))", "column 5: a group of more than 65536" },
		{ "Cay((1,2)", "expected ',', '(' or ')', found the end" },
		{ "Cay((1,2),)", "expected '(', found ')'" },
		{ "Cay(())", "expected a point, found ')'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct err err = { 0 };
		struct topo *t;

		assert_int_equal(topo_parse(wrong[i][0], &t, NULL, &err), WEFT_EINVAL);
		if (!strstr(err.msg, wrong[i][1])) {
			fail_msg("%s: %s", wrong[i][0], err.msg);
		}
	}
}

/* Permutations that are no group of the elements they say. */
static void no_groups(void **state)
{
	/* All of S3 on three points: moves none of them freely. */
	static const int32_t s3[] = { 1, 2, 0, 1, 0, 2, 4, 5, 3, 4, 3, 5 };
	/* Two reflections of six points that generate more than they number. */
	static const int32_t other[] = { 1, 0, 3, 2, 5, 4, 1, 2, 3, 4, 5, 0 };
	static const int orders[] = { 3, 2 }, swapped[] = { 2, 3 };
	struct topo_group *g;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topo_group_new(3, 3, 1, orders, s3, &g, &err), 0);
	topo_group_free(g);
	assert_int_equal(topo_group_new(6, 6, 2, orders, s3, &g, &err), WEFT_EINVAL);
	assert_int_equal(topo_group_new(6, 6, 2, swapped, other, &g, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "two elements of the group"));
}

/* What is made of Cayley graphs has their groups: as many elements as it should have, the first
 * nodes the first of their orbits, and all of them automorphisms. */
static void operators_carry(void **state)
{
	static const struct {
		const char *expr;
		int order;
	} made[] = {
		{ "L(DiCay((1,2,3),(1,2,3,4,5)))", 60 }, { "L3(DiCay(7:3,r=2,{(1,0),(0,1)}))", 21 },
		{ "Bi(L(DiCay(7:3,r=2,{(1,0),(0,1)})))", 21 },
		{ "Reverse(DiCay((1,2,3),(2,3,4)))", 12 }, { "Lat(Cay((1,2),(1,2,3)),7)", 6 },
		{ "Cap(Multi(Cay((1,2),(1,2,3)),2),3)", 6 },
		{ "L(Multi(Cay((1,2),(1,2,3)),2))", 6 }, { "Dist(Cay((1,2),(1,2,3,4)),2)", 24 },
		{ "Prod(Cay((1,2),(1,2,3)),K(2))", 12 }, { "Prod(K(2),Cay((1,2),(1,2,3)))", 12 },
		{ "Prod(C(7,{1,2}),Cay((1,2),(1,2,3)),Ring(3))", 126 },
		{ "Pow(Cay((1,2),(1,2,3)),3)", 216 }, { "Deg(Cay((1,2),(1,2,3)),4)", 24 },
		/* Digits below one of several orbits do not move. */
		{ "Prod(Cay((1,2),(1,2,3)),L(DiCay((1,2,3),(2,3,4))))", 72 },
		{ "Prod(L(DiCay((1,2,3),(2,3,4))),Cay((1,2),(1,2,3)))", 12 },
		{ "Prod(DBJMod(2,3),Cay((1,2),(1,2,3)))", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		struct topo *t = parse(made[i].expr);
		struct topo_action *action;
		struct topo_group *g;

		assert_int_equal(topo_group_find(t, &g, NULL), 0);
		if (topo_group_order(g) != made[i].order) {
			fail_msg("%s: %d", made[i].expr, topo_group_order(g));
		}
		assert_int_equal(topo_action_new(t, g, &action, NULL), 0);
		for (int u = 0; g && u < topo_n(t); u++) {
			assert_in_range(topo_group_first(g, u), 0, topo_group_orbits(g) - 1);
		}
		topo_action_free(action);
		topo_group_free(g);
		topo_free(t);
	}
}

/* Arcs are in one orbit just when the nodes of the line graph are, of digraphs without parallel
 * arcs. */
static void arc_transitive(void **state)
{
	static const char *const yes[] = {
		"K(5)", "K(3,3)", "Ring(6)", "UniRing(1,5)", "Hypercube(3)", "Paley(13)",
		"DiC(7,{1,2,4})", "Odd(3)", "Cap(K(4),3)", "UniRing(3,4)",
	};
	static const char *const no[] = {
		"C(8,{1,2})", "K(2,3)", "Kautz(2,2)", "Mesh(3,3)", "Torus(3,4)",
		"Multi(DBJMod(2,3),2)",
		"Prod(Cap(Ring(3),2),Ring(3))", "Cay((1,2,3),(1,2)(3,4))", "DiC(7,{1,2})",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		struct topo *t = parse(yes[i]);

		if (topo_arc_transitive(t) != TOPO_YES) {
			fail_msg("%s is arc-transitive", yes[i]);
		}
		topo_free(t);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
		struct topo *t = parse(no[i]);

		if (topo_arc_transitive(t) != TOPO_NO) {
			fail_msg("%s is not arc-transitive", no[i]);
		}
		topo_free(t);
	}
	for (int i = 0; i < EXPRS; i++) {
		struct topo *t = parse(exprs[i]), *line;
		char text[256];

		snprintf(text, sizeof(text), "L(%s)", exprs[i]);
		line = parse(text);
		if (topo_m(t) < 1000) {
			assert_int_equal(topo_arc_transitive(t), topo_vertex_transitive(line));
		}
		topo_free(t);
		topo_free(line);
	}
}

/* From factors and orbits as from every node of the arcs alone. */
static void distances(void **state)
{
	static const char *const made[] = {
		"Prod(Kautz(2,2),Ring(5))", "Pow(Diamond,2)", "Prod(Mesh(2,3),K(2),UniRing(1,4))",
		"Prod(Pow(Ring(3),2),DBJMod(2,3))", "L(DiCay((1,2,3),(1,2,3,4,5)))",
		"Bi(L(DiCay(7:3,r=2,{(1,0),(0,1)})))", "Deg(Cay((1,2),(1,2,3,4)),2)",
		"Prod(Cay((1,2),(1,2,3)),Mesh(3,2))",
		"Prod(L(DiCay((1,2,3),(2,3,4))),Cay((1,2),(1,2,3)))",
		"Reverse(Prod(Kautz(2,2),Ring(5)))",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		struct topo *t = parse(made[i]), *plain;

		assert_int_equal(topo_from_arcs(topo_n(t), topo_arcs(t), (size_t)topo_m(t), &plain,
						NULL), 0);
		assert_int_equal(topo_diameter(t), topo_diameter(plain));
		assert_int_equal(topo_girth(t), topo_girth(plain));
		topo_free(t);
		topo_free(plain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_acts),
		cmocka_unit_test(arcs_are_products),
		cmocka_unit_test(known_graphs),
		cmocka_unit_test(girths),
		cmocka_unit_test(permutations_by_brute_force),
		cmocka_unit_test(operators_carry),
		cmocka_unit_test(arc_transitive),
		cmocka_unit_test(distances),
		cmocka_unit_test(names),
		cmocka_unit_test(refused),
		cmocka_unit_test(no_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
