/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of terminals, extended to switches and memories, whatever their numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/topology/parse.h"
#include "topology/topology.h"

/* The same with other numbers for memories and for switches. */
static struct topo *shuffled(const struct topo *t, uint64_t seed)
{
	int n = topo_n(t), *to = malloc((size_t)n * sizeof(*to));
	struct topo *out;
	struct rng rng;

	rng_seed(&rng, seed);
	for (int u = 0; u < n; u++) {
		to[u] = u;
	}
	for (int u = n - 1; u > topo_ranks(t); u--) {
		int first = u >= topo_holders(t) ? topo_holders(t) : topo_ranks(t);
		int v = first + (int)rng_below(&rng, (uint64_t)(u - first + 1)), w = to[u];

		to[u] = to[v];
		to[v] = w;
	}
	assert_int_equal(topo_new(n, &out, NULL), 0);
	for (int u = 0; u < n; u++) {
		topo_set_node(out, to[u], topo_node_kind(t, u), topo_node_flags(t, u));
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		assert_int_equal(topo_add_arc(out, to[arc->src], to[arc->dst], arc->cap,
					      arc->latency_ns, NULL), 0);
	}
	topo_freeze(out);
	free(to);
	return out;
}

/* Elements of the group of a digraph that another has too. What stays is
 * a group of automorphisms with the same images of terminals. */
static int common(const char *logical, const struct topo *physical)
{
	struct topo *t = parse(logical);
	struct topo_group *g = NULL, *extended = NULL;
	struct topo_action *x = NULL;
	int order;

	assert_int_equal(topo_group_find(t, &g, NULL), 0);
	assert_non_null(g);
	assert_int_equal(topo_group_extend(g, physical, &extended, NULL), 0);
	order = topo_group_order(extended);
	if (extended) {
		assert_int_equal(topo_group_nodes(extended), topo_n(physical));
		assert_int_equal(topo_action_new(physical, extended, &x, NULL), 0);
	}
	for (int by = 0; by < order; by++) {
		int element = topo_group_between(g, 0, topo_group_move(extended, by, 0));

		assert_true(element >= 0);
		for (int u = 0; u < topo_ranks(t); u++) {
			assert_int_equal(topo_group_move(extended, by, u),
					 topo_group_move(g, element, u));
		}
	}
	topo_action_free(x);
	topo_group_free(extended);
	topo_group_free(g);
	topo_free(t);
	return order;
}

static void switches_follow(void **state)
{
	static const struct {
		const char *logical, *physical;
		int order;
	} cases[] = {
		{ "K(8)", "Star(8)", 8 }, { "Torus(4,4)", "HyperX(4,4)", 16 },
		{ "K(16)", "HyperX(4,4)", 4 }, { "Torus(4,4)", "HammingMesh(2,2,2)", 4 },
		{ "Torus(6,4)", "HammingMesh(2,3,2)", 6 }, { "Ring(16)", "FatTree(4)", 4 },
		{ "Hypercube(4)", "DgxA100(2,all)", 16 }, { "Hypercube(5)", "DgxA100(4,pcie)", 32 },
		{ "Torus(4,3,5)", "Rails(4,15)", 60 }, { "Ring(16)", "Torus(4,4)", 4 },
		{ "Ring(12)", "Mesh(12)", 1 },
		/* Beside switches only those of a group that commute. */
		{ "Cay(4:2,r=3,{(1,0),(0,1)})", "Star(8)", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo *t = parse(cases[i].physical);

		for (uint64_t seed = 0; seed < 10; seed++) {
			struct topo *other = shuffled(t, seed);

			assert_int_equal(common(cases[i].logical, other), cases[i].order);
			topo_free(other);
		}
		topo_free(t);
	}
}

/* Where switches are alike the order of their numbers matches them: that works with
 * the numbers of the family, and any others give a smaller group at worst. */
static void interchangeable_switches(void **state)
{
	struct topo *t = parse("FatTree(4)");

	(void)state;
	assert_int_equal(common("Hypercube(4)", t), 16);
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct topo *other = shuffled(t, seed);
		int order = common("Hypercube(4)", other);

		assert_true(order >= 4 && 16 % order == 0);
		topo_free(other);
	}
	topo_free(t);
}

/* A ring of six through a switch each, some of whose arcs share a capacity. */
static void limits_count(void **state)
{
	static const int32_t limited[] = { 0, 4, 8 };
	struct topo *t;

	(void)state;
	for (int limits = 0; limits <= 3; limits++) {
		assert_int_equal(topo_new(12, &t, NULL), 0);
		for (int u = 0; u < 6; u++) {
			topo_set_node(t, 6 + u, TOPO_SWITCH, 0);
			assert_int_equal(topo_add_arc(t, u, 6 + u, 1, 0, NULL), 0);
			assert_int_equal(topo_add_arc(t, 6 + u, (u + 1) % 6, 1, 0, NULL), 0);
		}
		for (int i = 0; i < limits; i++) {
			assert_int_equal(topo_add_limit(t, &limited[i], 1, 1, NULL), 0);
		}
		topo_freeze(t);
		/* Limits on every second node leave every second rotation. */
		assert_int_equal(common("UniRing(1,6)", t), limits == 0 ? 6 : limits == 3 ? 3 : 1);
		topo_free(t);
	}
}

static void other_terminals_are_refused(void **state)
{
	struct topo *t = parse("Ring(8)"), *other = parse("Star(9)");
	struct topo_group *g, *extended;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topo_group_find(t, &g, NULL), 0);
	assert_int_equal(topo_group_extend(g, other, &extended, &err), WEFT_EINVAL);
	assert_null(extended);
	assert_int_equal(topo_group_extend(NULL, other, &extended, &err), 0);
	assert_null(extended);
	topo_group_free(g);
	topo_free(t);
	topo_free(other);
}

static int order_by_digits(const struct topo *t)
{
	struct topo_group *g = NULL;
	struct topo_action *x = NULL;
	int order;

	g = topo_group_digits(t);
	order = topo_group_order(g);
	if (g) {
		assert_int_equal(topo_action_new(t, g, &x, NULL), 0);
	}
	topo_action_free(x);
	topo_group_free(g);
	return order;
}

static void digits_are_found(void **state)
{
	static const struct {
		const char *expr;
		int order;
	} cases[] = {
		{ "Star(8)", 8 }, { "Torus(4,6)", 24 }, { "Hypercube(4)", 16 }, { "K(12)", 12 },
		{ "HyperX(3,4)", 12 }, { "HammingMesh(2,2,2)", 16 }, { "HammingMesh(3,2,2)", 4 },
		{ "FatTree(4)", 16 }, { "FatTree(6)", 54 }, { "Rails(3,4)", 12 },
		{ "DgxA100(2,nvlink)", 16 }, { "DgxA100(2,pcie)", 16 }, { "DgxA100(4,all)", 32 },
		{ "Mesh(3,4)", 1 }, { "GenKautz(2,11)", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo *t = parse(cases[i].expr);

		if (order_by_digits(t) != cases[i].order) {
			fail_msg("%s: %d elements", cases[i].expr, order_by_digits(t));
		}
		topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_follow),
		cmocka_unit_test(interchangeable_switches),
		cmocka_unit_test(limits_count),
		cmocka_unit_test(digits_are_found),
		cmocka_unit_test(other_terminals_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
