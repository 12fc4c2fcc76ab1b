/* SPDX-License-Identifier: Apache-2.0 */
/* topology: families with switches and memories: their structure, the flows
 * through them, and the groups of their digits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/topology/flows.h"
#include "tests/unit/topology/parse.h"

static void sizes(void **state)
{
	/* terminals, memories, switches, arcs, ports of a terminal, diameter */
	static const struct {
		const char *expr;
		int terminals, memories, switches, arcs, ports, diameter;
	} all[] = {
		{ "Star(7)", 7, 0, 1, 14, 1, 2 },
		{ "HyperX(64,64)", 4096, 0, 128, 32768, 4, 4 },
		{ "HyperX(2,3,4)", 24, 0, 26, 288, 6, 6 },
		{ "HyperX(5)", 5, 0, 1, 20, 2, 2 },
		{ "HammingMesh(2,32,32)", 4096, 0, 128, 24576, 4, 4 },
		{ "HammingMesh(4,16,16)", 4096, 0, 128, 20480, 4, 8 },
		{ "HammingMesh(3,2,1)", 18, 0, 9, 4 * 18 + 4 * 6, 4, 6 },
		{ "FatTree(2)", 2, 0, 5, 12, 1, 6 },
		{ "FatTree(4)", 16, 0, 20, 96, 1, 6 },
		{ "FatTree(32)", 8192, 0, 1280, 49152, 1, 6 },
		{ "Rails(4,8)", 32, 0, 12, 128, 2, 4 },
		{ "Rails(1,8)", 8, 0, 9, 32, 2, 2 },
		{ "DgxA100(1,nvlink)", 8, 0, 9, 32, 2, 2 },
		{ "DgxA100(4,nvlink)", 32, 0, 12, 128, 2, 4 },
		{ "DgxA100(4,pcie)", 32, 4, 24, 160, 1, 6 },
		{ "DgxA100(2,all)", 16, 2, 18, 112, 2, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct topo *t = parse(all[i].expr);
		int first;

		assert_int_equal(topo_ranks(t), all[i].terminals);
		assert_int_equal(topo_holders(t), all[i].terminals + all[i].memories);
		assert_int_equal(topo_n(t), topo_holders(t) + all[i].switches);
		assert_int_equal(topo_m(t), all[i].arcs);
		assert_int_equal(topo_check_order(t, NULL), 0);
		assert_true(topo_is_symmetric(t));
		assert_int_equal(topo_vertex_transitive(t), TOPO_NO);
		for (int u = 0; u < topo_ranks(t); u++) {
			assert_int_equal(topo_out(t, u, &first), all[i].ports);
		}
		for (int u = topo_holders(t); u < topo_n(t); u++) {
			assert_int_equal(topo_node_flags(t, u), 0);
		}
		if (topo_n(t) < 1000) {
			assert_int_equal(topo_diameter(t), all[i].diameter);
		}
		topo_free(t);
	}
}

static void assert_same(const char *a, const char *b)
{
	struct topo *x = parse(a), *y = parse(b);
	struct buf text[2] = { { 0 } };

	topo_to_json(x, "", &text[0]);
	topo_to_json(y, "", &text[1]);
	assert_string_equal(buf_cstr(&text[0]), buf_cstr(&text[1]));
	buf_fini(&text[0]);
	buf_fini(&text[1]);
	topo_free(x);
	topo_free(y);
}

/* Boards of one node are HyperX, as the paper on HammingMesh says. */
static void one_node_boards(void **state)
{
	(void)state;
	assert_same("HammingMesh(1,3,4)", "HyperX(3,4)");
	assert_same("HammingMesh(1,8,2)", "HyperX(8,2)");
}

/* ---- groups ---- */

/* Adding to the digits of terminals' numbers, least significant first, as far as it
 * is an automorphism: how many elements. */
static int order_of_digits(const char *expr, int digits, const int *radix)
{
	struct topo *t = parse(expr);
	int n = topo_ranks(t), unit = 1, order;
	int32_t *images = malloc((size_t)digits * (size_t)n * sizeof(*images));
	struct topo_group *g, *extended;

	assert_non_null(images);
	for (int i = 0; i < digits; i++) {
		for (int u = 0; u < n; u++) {
			int digit = u / unit % radix[i];

			images[i * n + u] = u + ((digit + 1) % radix[i] - digit) * unit;
		}
		unit *= radix[i];
	}
	assert_int_equal(unit, n);
	assert_int_equal(topo_group_new(n, n, digits, radix, images, &g, NULL), 0);
	assert_int_equal(topo_group_extend(g, t, &extended, NULL), 0);
	order = topo_group_order(extended);
	topo_group_free(g);
	topo_group_free(extended);
	free(images);
	topo_free(t);
	return order;
}

/* All shifts of digits keep these, but within boards of three nodes a side and
 * more: those of two are turned over. */
static void digits_are_groups(void **state)
{
	(void)state;
	assert_int_equal(order_of_digits("Star(6)", 1, (int[]){ 6 }), 6);
	assert_int_equal(order_of_digits("HyperX(3,4)", 2, (int[]){ 4, 3 }), 12);
	assert_int_equal(order_of_digits("HyperX(2,3,4)", 3, (int[]){ 4, 3, 2 }), 24);
	assert_int_equal(order_of_digits("HammingMesh(2,3,4)", 4, (int[]){ 2, 4, 2, 3 }), 48);
	assert_int_equal(order_of_digits("HammingMesh(3,2,4)", 4, (int[]){ 3, 4, 3, 2 }), 8);
	assert_int_equal(order_of_digits("FatTree(4)", 3, (int[]){ 2, 2, 4 }), 16);
	assert_int_equal(order_of_digits("Rails(4,8)", 2, (int[]){ 8, 4 }), 32);
	assert_int_equal(order_of_digits("DgxA100(3,nvlink)", 2, (int[]){ 8, 3 }), 24);
	assert_int_equal(order_of_digits("DgxA100(3,pcie)", 3, (int[]){ 2, 4, 3 }), 24);
	assert_int_equal(order_of_digits("DgxA100(3,all)", 3, (int[]){ 2, 4, 3 }), 24);
}

/* ---- flows ---- */

/* Half of a fat tree's hosts send to the other half at full rate. */
static void fat_tree_has_full_bisection(void **state)
{
	struct topo *t = parse("FatTree(4)");
	struct graph_flow *f = network(t, 1, 0);
	int n = topo_n(t);
	int64_t value;

	(void)state;
	for (int u = 0; u < 8; u++) {
		assert_int_equal(graph_flow_add(f, n, u, 9, 0, NULL, NULL), 0);
		/* Host 15 stands for all that receive. */
		if (u < 7) {
			assert_int_equal(graph_flow_add(f, 8 + u, 15, 9, 0, NULL, NULL), 0);
		}
	}
	graph_flow_run(f, n, 15, INT64_MAX, &value, NULL);
	assert_int_equal(value, 8);
	graph_flow_free(f);
	topo_free(t);
}

static void flows_between_terminals(void **state)
{
	static const struct {
		const char *expr;
		int from, to;
		int64_t value;
	} all[] = {
		{ "Star(5)", 0, 4, 1 },
		{ "Cap(Star(5),7)", 0, 4, 7 },
		{ "HyperX(4,4)", 0, 15, 4 },
		{ "HammingMesh(2,2,2)", 0, 15, 4 },
		{ "HammingMesh(4,2,2)", 5, 42, 4 },
		{ "Rails(3,4)", 0, 11, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct topo *t = parse(all[i].expr);

		assert_int_equal(max_flow(t, all[i].from, all[i].to), all[i].value);
		topo_free(t);
	}
}

/* Can every GPU receive all n shards of 1 GB in num / den seconds? */
static bool gathers_in(const struct topo *t, int64_t num, int64_t den)
{
	struct graph_flow *f;
	bool all = true;

	for (int v = 0; v < topo_ranks(t) && all; v++) {
		int64_t value;

		f = network(t, num, den);
		graph_flow_run(f, topo_n(t), v, INT64_MAX, &value, NULL);
		all = value == den * topo_ranks(t);
		graph_flow_free(f);
	}
	return all;
}

/* T = max of (n - 1) / ports and (n - 8) / 200, the cuts around a GPU and around
 * a server; `cards`: only the first. */
static void assert_gather(const char *links, int k, int64_t ports, bool cards)
{
	int64_t n = 8 * k, num = n - 1, den = ports;
	char expr[40];
	struct topo *t;

	if (!cards && (n - 8) * ports > (n - 1) * 200) {
		num = n - 8;
		den = 200;
	}
	snprintf(expr, sizeof(expr), "DgxA100(%d,%s)", k, links);
	t = parse(expr);
	assert_true(gathers_in(t, num, den));
	assert_false(gathers_in(t, 1000 * num - 1, 1000 * den));
	topo_free(t);
}

/* All-gather latencies of chapter 6 for 1 GB a GPU. */
static void dgx_all_gather(void **state)
{
	(void)state;
	/* A rail of one server leads nowhere. */
	assert_gather("nvlink", 1, 300, false);
	for (int k = 1; k <= 4; k++) {
		if (k > 1) {
			assert_gather("nvlink", k, 325, false);
		}
		assert_gather("all", k, 332, false);
		assert_gather("pcie", k, 32, true);
	}
}

/* 1 / broadcast latency: a GPU's links, or the cards of a server. */
static void dgx_broadcast(void **state)
{
	static const struct {
		const char *expr;
		int64_t rate;
	} all[] = {
		{ "DgxA100(1,nvlink)", 300 }, { "DgxA100(2,nvlink)", 200 },
		{ "DgxA100(1,pcie)", 32 }, { "DgxA100(2,pcie)", 32 },
		{ "DgxA100(1,all)", 332 }, { "DgxA100(2,all)", 200 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct topo *t = parse(all[i].expr);

		assert_int_equal(broadcast_rate(t, 0, topo_ranks(t)), all[i].rate);
		topo_free(t);
	}
}

/* ---- expressions ---- */

static void names(void **state)
{
	struct topo *t;
	char *name;

	(void)state;
	assert_int_equal(topo_parse(" Cap( DgxA100( 2 , all ) , 5)", &t, &name, NULL), 0);
	assert_string_equal(name, "Cap(DgxA100(2,all),5)");
	assert_int_equal(topo_holders(t), 18);
	assert_int_equal(topo_arc(t, 0)->cap, 5);
	free(name);
	topo_free(t);
}

/* What stays the same but for its arcs keeps its nodes. */
static void operators_keep_kinds(void **state)
{
	static const char *const good[] = {
		"Cap(Star(3),4)", "Lat(Star(3),4)", "Multi(Star(3),4)", "Reverse(Star(3))",
		"Bi(Star(3))", "Cap(Lat(Bi(Star(3)),7),8)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct topo *t = parse(good[i]);

		assert_int_equal(topo_ranks(t), 3);
		assert_int_equal(topo_n(t), 4);
		topo_free(t);
	}
}

static void wrong_expressions(void **state)
{
	static const struct {
		const char *expr, *says;
	} bad[] = {
		{ "L(Star(4))", "column 3: L takes digraphs of terminals only, Star has" },
		{ "Prod(Ring(4),Star(3))", "column 14: Prod takes digraphs" },
		{ "Pow(Star(2),2)", "column 5: Pow takes" },
		{ "Deg(DgxA100(1,all),2)", "column 5: Deg takes digraphs of terminals only, Dgx" },
		{ "Dist(Cap(Star(3),1),2)", "column 6: Dist takes digraphs of terminals only, "
					    "Cap" },
		{ "DgxA100(2)", "column 9: DgxA100 takes other arguments" },
		{ "DgxA100(2,nv)", "column 11: expected nvlink, pcie or all, found 'nv'" },
		{ "DgxA100(2,)", "column 11: expected a number or a word" },
		{ "DgxA100(2,all,1)", "column 14: expected ')'" },
		{ "DgxA100(all)", "column 9: expected a number, found 'a'" },
		{ "DgxA100(0,all)", "column 9: number of servers is 0" },
		{ "DgxA100(8192,all)", "more than 65536 nodes" },
		{ "DgxA200(1,all)", "no family 'DgxA200'" },
		{ "Star(1)", "column 6: number of nodes is 1" },
		{ "HyperX(4,1)", "column 10: dimension is 1" },
		{ "HyperX(256,256)", "more than 65536 nodes" },
		{ "HyperX(65536,65536)", "more than 65536 nodes" },
		{ "HammingMesh(2,3)", "takes other arguments" },
		{ "HammingMesh(0,3,3)", "side of a board is 0" },
		{ "HammingMesh(65536,65536,65536)", "more than 65536 nodes" },
		{ "FatTree(3)", "column 9: number of ports is 3: expected an even one" },
		{ "FatTree(4096)", "more than 65536 nodes" },
		{ "Rails(65536,65536)", "more than 65536 nodes" },
		{ "C(8,x)", "expected a number or '{', found 'x'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };
		struct topo *t;

		assert_int_equal(topo_parse(bad[i].expr, &t, NULL, &err), WEFT_EINVAL);
		if (!strstr(err.msg, bad[i].says)) {
			fail_msg("%s", err.msg);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(one_node_boards),
		cmocka_unit_test(digits_are_groups),
		cmocka_unit_test(fat_tree_has_full_bisection),
		cmocka_unit_test(flows_between_terminals),
		cmocka_unit_test(dgx_all_gather),
		cmocka_unit_test(dgx_broadcast),
		cmocka_unit_test(names),
		cmocka_unit_test(operators_keep_kinds),
		cmocka_unit_test(wrong_expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
