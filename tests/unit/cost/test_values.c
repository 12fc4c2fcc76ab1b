/* SPDX-License-Identifier: Apache-2.0 */
/* cost: the values of the thesis "Optimal collectives", tables 6.3 to 6.11, and closed forms. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/cost/cost.h"
#include "lib/base/number/rat.h"

/* Solves one collective; time and cost must be attained and proven. t is taken over. */
static void check_on(struct topo *t, const char *expr, enum coll_kind kind, const char *time,
		     const char *cost)
{
	struct coll_rate_demand demand = { kind, 0, 1 };
	struct coll_rate_options opt = { .min_cost = cost != NULL };
	struct err err = { 0 };
	struct coll_rate r;
	char text[2][100];

	coll_rate_init(&r);
	if (coll_rate_find(t, &demand, 1, &opt, &r, &err)) {
		fail_msg("%s: %s", expr, err.msg);
	}
	rat_str(r.time, text[0], sizeof(text[0]));
	rat_str(r.cost, text[1], sizeof(text[1]));
	if (strcmp(text[0], time) != 0 || (cost && strcmp(text[1], cost) != 0)) {
		fail_msg("%s %s: time %s and cost %s, expected %s and %s", coll_kind_name(kind),
			 expr, text[0], text[1], time, cost ? cost : "any");
	}
	if (!mpq_equal(r.time, r.time_bound) || !mpq_equal(r.cost, r.cost_bound)) {
		gmp_printf("# bounds %Qd and %Qd\n", r.time_bound, r.cost_bound);
		fail_msg("%s %s: bounds are apart", coll_kind_name(kind), expr);
	}
	coll_rate_fini(&r);
	topo_free(t);
}

static void check(const char *expr, enum coll_kind kind, const char *time, const char *cost)
{
	struct topo *t;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	check_on(t, expr, kind, time, cost);
}

/* A star whose switch can do something. */
static void check_star(const char *can, enum coll_kind kind, const char *time, const char *cost)
{
	char text[100];
	struct topo *t;

	snprintf(text, sizeof(text), "undirected\nswitch 4 %s\n0 4\n1 4\n2 4\n3 4\n", can);
	assert_int_equal(topo_from_edges(text, strlen(text), &t, NULL), 0);
	check_on(t, can, kind, time, cost);
}

/* Switches that copy or sum spare links. */
static void in_network(void **state)
{
	(void)state;
	check_star("none", COLL_BROADCAST, "1", "6");
	check_star("copy", COLL_BROADCAST, "1", "4");
	check_star("copy", COLL_ALLGATHER, "3", "16");
	check_star("copy", COLL_REDUCE_SCATTER, "3", "24");
	check_star("reduce", COLL_REDUCE_SCATTER, "3", "16");
	check_star("copy reduce", COLL_REDUCE, "1", "4");
	/* Up 3 + 1, down 3 + 3, over four links. */
	check_star("copy", COLL_ALLREDUCE, "3/2", "10");
}

static void all_gathers(void **state)
{
	(void)state;
	check("DgxA100(1,nvlink)", COLL_ALLGATHER, "7/300", "112");
	check("DgxA100(2,nvlink)", COLL_ALLGATHER, "3/65", "6720/13");
	check("DgxA100(4,nvlink)", COLL_ALLGATHER, "3/25", "2176");
	check("DgxA100(8,nvlink)", COLL_ALLGATHER, "7/25", "8960");
	check("DgxA100(16,nvlink)", COLL_ALLGATHER, "3/5", "36352");
	check("DgxA100(1,pcie)", COLL_ALLGATHER, "7/32", "92");
	check("DgxA100(2,pcie)", COLL_ALLGATHER, "15/32", "424");
	check("DgxA100(4,pcie)", COLL_ALLGATHER, "31/32", "1808");
	/* 109.68674699 and 504.86746988. */
	check("DgxA100(1,all)", COLL_ALLGATHER, "7/332", "9104/83");
	check("DgxA100(2,all)", COLL_ALLGATHER, "15/332", "41904/83");
}

/* As forests with memories as switches. */
static void reduce_scatters(void **state)
{
	static const char *const kinds[] = { "nvlink", "pcie", "all" };
	static const struct {
		int servers;
		const char *time[3], *cost;
	} known[] = {
		{ 1, { "7/300", "7/32", "7/332" }, "112" },
		{ 4, { "3/25", "31/32", "3/25" }, "2176" },
		{ 8, { "7/25", "63/32", "7/25" }, "8960" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		for (int k = 0; k < 3; k++) {
			char expr[40];

			snprintf(expr, sizeof(expr), "DgxA100(%d,%s)", known[i].servers, kinds[k]);
			check(expr, COLL_REDUCE_SCATTER, known[i].time[k], known[i].cost);
		}
	}
}

/* 1 unit a pair: nvlink 112 k + 4 n (k - 1) + 42 n (k - 1), pcie 112 k + 4 n (n - 8), all: that and
 * 2 max(0, 6 n (k - 1) - 128 k T). */
static void all_to_alls(void **state)
{
	(void)state;
	check("DgxA100(1,nvlink)", COLL_ALLTOALL, "7/300", "112");
	check("DgxA100(4,nvlink)", COLL_ALLTOALL, "24/25", "4864");
	check("DgxA100(128,nvlink)", COLL_ALLTOALL, "1016/25", "5996544");
	check("DgxA100(2,pcie)", COLL_ALLTOALL, "3/4", "736");
	check("DgxA100(32,pcie)", COLL_ALLTOALL, "12", "257536");
	check("DgxA100(2,all)", COLL_ALLTOALL, "8/25", "19104/25");
	check("DgxA100(32,all)", COLL_ALLTOALL, "248/25", "6787584/25");
}

/* Rooted ones, and all-reduce: 2 T / n of an all-gather there. */
static void others(void **state)
{
	(void)state;
	check("DgxA100(2,nvlink)", COLL_BROADCAST, "1/200", NULL);
	check("DgxA100(1,nvlink)", COLL_BROADCAST, "1/300", NULL);
	check("DgxA100(1,all)", COLL_REDUCE, "1/332", NULL);
	check("DgxA100(2,pcie)", COLL_REDUCE, "1/32", NULL);
	check("DgxA100(1,nvlink)", COLL_GATHER, "7/300", "14");
	check("Ring(8)", COLL_SCATTER, "7/2", "16");
	check("DgxA100(4,nvlink)", COLL_ALLREDUCE, "3/400", NULL);
	check("DgxA100(1,all)", COLL_ALLREDUCE, "7/1328", NULL);
	check("Torus(4,4)", COLL_ALLREDUCE, "15/32", "30");
	check("Star(200)", COLL_ALLGATHER, "199", "79600");
	check("FatTree(4)", COLL_ALLGATHER, "15", NULL);
	check("UniRing(1,5)", COLL_BROADCAST, "1", "4");
}

/* Graphs on which breadth-first broadcast is far from it. */
static void irregular(void **state)
{
	(void)state;
	check("Jellyfish(14,3,2)", COLL_ALLGATHER, "13/3", "182");
	check("Prod(Cap(Ring(4),2),Ring(3))", COLL_ALLGATHER, "11/6", "132");
	check("Mesh(4,4)", COLL_ALLGATHER, "15/2", "240");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_network),
		cmocka_unit_test(all_gathers),
		cmocka_unit_test(reduce_scatters),
		cmocka_unit_test(all_to_alls),
		cmocka_unit_test(others),
		cmocka_unit_test(irregular),
	};

	return cmocka_run_group_tests_name("cost/values", tests, NULL, NULL);
}
