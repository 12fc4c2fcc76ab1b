/* SPDX-License-Identifier: Apache-2.0 */
/* topology: costs of arcs, and orbits of nodes, arcs and limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/topology/parse.h"

#define MAX 2000

struct orbits {
	int32_t node[MAX], arc[MAX], limit[MAX];
};

static int count(const int32_t *first, int n)
{
	int orbits = 0;

	for (int i = 0; i < n; i++) {
		assert_true(first[i] <= i);
		assert_int_equal(first[first[i]], first[i]);
		orbits += first[i] == i;
	}
	return orbits;
}

static void check(const struct topo *t, const int32_t *colour, int nodes, int arcs, int limits)
{
	static struct orbits o;

	topo_orbits(t, colour, o.node, o.arc, o.limit);
	assert_int_equal(count(o.node, topo_n(t)), nodes);
	assert_int_equal(count(o.arc, topo_m(t)), arcs);
	assert_int_equal(count(o.limit, topo_n_limits(t)), limits);
}

static void known_orbits(void **state)
{
	static const struct {
		const char *expr;
		int nodes, arcs;
	} known[] = {
		{ "Ring(6)", 1, 1 }, { "UniRing(2,5)", 1, 1 }, { "Torus(4,4)", 1, 1 },
		{ "Torus(3,4)", 1, 2 }, { "Mesh(2,3)", 2, 4 }, { "Star(5)", 2, 2 },
		{ "DgxA100(3,nvlink)", 3, 4 }, { "DgxA100(2,all)", 5, 8 },
		{ "Prod(Cap(Ring(4),2),Ring(3))", 1, 2 },
	};
	int32_t colour[6] = { 1 };
	struct topo *t;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		t = parse(known[i].expr);
		check(t, NULL, known[i].nodes, known[i].arcs, 0);
		topo_free(t);
	}
	/* A ring seen from one of its nodes. */
	t = parse("Ring(6)");
	check(t, colour, 4, 6, 0);
	topo_free(t);
}

/* Costs and limits tell arcs apart; limits that are alike change places. */
static void from_text(void **state)
{
	static const struct {
		const char *text;
		int nodes, arcs, limits;
	} known[] = {
		{ "undirected\n0 1\n1 2\n2 0\n", 1, 1, 0 },
		{ "undirected\n0 1 1 0 2\n1 2\n2 0\n", 2, 3, 0 },
		{ "limit a 3\nlimit b 3\nundirected\n0 1 a\n2 3 b\n1 2\n", 2, 3, 1 },
		{ "limit a 3\nlimit b 4\nundirected\n0 1 a\n2 3 b\n1 2\n", 4, 6, 2 },
		{ "0 1\n0 1\n1 0 2\n", 2, 2, 0 },
		{ "limit a 1\n0 1 a\n0 1\n1 0\n", 2, 3, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t;

		assert_int_equal(topo_from_edges(known[i].text, strlen(known[i].text), &t, NULL),
				 0);
		check(t, NULL, known[i].nodes, known[i].arcs, known[i].limits);
		topo_free(t);
	}
}

/* Costs go through files, copies and transposes. */
static void costs(void **state)
{
	static const char text[] = "0 1 4 500 0\n1 0 4 500 7\n1 2\n2 0\n";
	struct topo *t, *again[3];
	struct buf b = { 0 };
	struct err err = { 0 };
	char *name;

	(void)state;
	assert_int_equal(topo_from_edges(text, sizeof(text) - 1, &t, &err), 0);
	assert_int_equal(topo_arc(t, 0)->cost, 0);
	assert_int_equal(topo_arc(t, 1)->cost, 7);
	assert_int_equal(topo_arc(t, 2)->cost, 1);
	topo_to_json(t, "x", &b);
	assert_int_equal(topo_from_json(b.data, b.len, &again[0], &name, &err), 0);
	free(name);
	assert_int_equal(topo_copy(t, &again[1], &err), 0);
	assert_int_equal(topo_transpose(again[0], &again[2], NULL, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_memory_equal(topo_arcs(t), topo_arcs(again[i]), 4 * sizeof(struct topo_arc));
	}
	assert_int_equal(topo_arc(again[2], topo_find_arc(again[2], 0, 1))->cost, 7);
	for (int i = 0; i < 3; i++) {
		topo_free(again[i]);
	}
	topo_free(t);
	buf_fini(&b);
	assert_int_equal(topo_from_edges("0 1 1 0 1000001\n", 16, &t, &err), WEFT_EINVAL);
	assert_int_equal(topo_from_json("{\"nodes\": 2, \"arcs\": [[0, 1, 1, 0, -1]]}", 40, &t,
					&name, &err), WEFT_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_orbits),
		cmocka_unit_test(from_text),
		cmocka_unit_test(costs),
	};

	return cmocka_run_group_tests_name("topology/orbits", tests, NULL, NULL);
}
