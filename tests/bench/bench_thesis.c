/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables 6.1 to 6.20 of the thesis "Optimal collectives": latency, objective and seconds of its
 * programs, of ForestColl and of TE-CCL as it prints them, beside what weft finds.
 *
 * bench_thesis              tables on stdout bench_thesis --json FILE  the same, and JSON lines
 * appended to FILE
 *
 * Seconds are processor time of one run, the best of a few; weft's results are exact and proven,
 * else the row says so. Where the thesis prints something else than its model gives, the row says
 * why, as far as it can be known. ForestColl and TE-CCL take memories for switches: their rows
 * stand beside reduce-scatters, in which memories are that, on these symmetric digraphs the same
 * as all-gathers.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/cost/cost.h"
#include "lib/base/number/rat.h"
#include "tests/bench/program.h"

#define RUNS 5
#define SERVERS 7
/* Runs longer than this are not repeated. */
#define LONG_S 0.2

static const int servers[SERVERS] = { 1, 2, 4, 8, 16, 32, 128 };

/* What the thesis prints, by row; 0: nothing. */
struct thesis_cell {
	double seconds, latency, objective;
	const char *slip;
};

struct thesis_table {
	const char *name, *of, *links;
	enum coll_kind kind;
	bool others;	/* of another program, whose time and cost need not be the optimum */
	struct thesis_cell cell[SERVERS];
};

#define BELOW "below the least that is possible"

static const struct thesis_table tables[] = {
	{ "6.3", "thesis", "nvlink", COLL_ALLGATHER, false, {
		{ 0.247, 0.0233, 112, NULL }, { 19.3, 0.0462, 516.9, NULL },
		{ 42.8, 0.12, 2176, NULL }, { 254, 0.28, 8960, NULL }, { 865, 0.60, 36350, NULL },
		{ 5360, 1.24, 146400, NULL } } },
	{ "6.4", "thesis", "pcie", COLL_ALLGATHER, false, {
		{ 0.257, 0.0219, 92, "0.219" }, { 3.9, 0.469, 424, NULL },
		{ 22, 0.969, 1808, NULL }, { 360, 1.97, 7456, NULL },
		{ 4200, 3.97, 30270, NULL } } },
	{ "6.5", "thesis", "all", COLL_ALLGATHER, false, {
		{ 2.95, 0.0211, 109.7, NULL }, { 27.7, 0.0452, 504.9, NULL },
		{ 82.1, 0.12, 2092, BELOW }, { 634, 0.28, 8600, BELOW },
		{ 9870, 0.60, 33640, BELOW } } },
	{ "6.6", "thesis", "nvlink", COLL_ALLTOALL, false, {
		{ 0.854, 0.0233, 112, NULL }, { 1.04, 0.32, 960, NULL },
		{ 4.36, 0.96, 4864, NULL }, { 21.6, 2.24, 21500, NULL },
		{ 106, 4.80, 90110, NULL }, { 633, 9.92, 368600, NULL } } },
	{ "6.7", "thesis", "pcie", COLL_ALLTOALL, false, {
		{ 0.198, 0.375, 112, NULL }, { 0.902, 0.75, 736, NULL },
		{ 4.58, 1.5, 3520, NULL }, { 15.4, 3.0, 15230, NULL },
		{ 97.1, 6.0, 63230, NULL }, { 467, 12.0, 257500, NULL } } },
	{ "6.8", "thesis", "all", COLL_ALLTOALL, false, {
		{ 1.02, 0.021, 112, NULL }, { 2.84, 0.32, 764.2, NULL },
		{ 15.1, 0.96, 3689, NULL }, { 75.1, 2.24, 16020, NULL },
		{ 330, 4.8, 66610, NULL }, { 1550, 9.92, 271500, NULL } } },
	{ "6.9", "ForestColl", "nvlink", COLL_REDUCE_SCATTER, true, {
		{ 0.294, 0.0233, 112, NULL },
		{ 0.965, 0.0462, 512, "512 takes 0.0467: at 0.0462 cards must help" },
		{ 2.10, 0.12, 2176, NULL }, { 7.90, 0.28, 8960, NULL }, { 39.2, 0.60, 36350, NULL },
		{ 315, 1.24, 146400, NULL } } },
	{ "6.10", "ForestColl", "pcie", COLL_REDUCE_SCATTER, true, {
		{ 0.189, 0.0219, 112, "0.219" }, { 0.670, 0.469, 512, NULL },
		{ 1.69, 0.969, 2177, NULL }, { 4.17, 1.97, 8960, NULL },
		{ 19.4, 3.97, 36350, NULL }, { 135, 7.87, 146400, "7.97" } } },
	{ "6.11", "ForestColl", "all", COLL_REDUCE_SCATTER, true, {
		{ 0.308, 0.0211, 112, NULL }, { 1.31, 0.0452, 512, NULL },
		{ 2.20, 0.12, 2176, NULL }, { 10.2, 0.28, 8960, NULL }, { 55.2, 0.60, 36350, NULL },
		{ 419, 1.24, 146400, NULL } } },
	{ "6.12", "TE-CCL, 1 chunk", "nvlink", COLL_REDUCE_SCATTER, true, {
		{ 3.15, 0.0313, 112, NULL }, { 22.74, 0.24, 530, NULL } } },
	{ "6.13", "TE-CCL, 1 chunk", "pcie", COLL_REDUCE_SCATTER, true, {
		{ 17.9, 0.313, 112, NULL } } },
	{ "6.14", "TE-CCL, 1 chunk", "all", COLL_REDUCE_SCATTER, true, {
		{ 4.89, 0.0313, 112, NULL }, { 32.76, 0.24, 534, NULL } } },
	{ "6.15", "TE-CCL, 2 chunks", "nvlink", COLL_REDUCE_SCATTER, true, {
		{ 6.23, 0.0313, 112, NULL }, { 91.1, 0.16, 522, NULL } } },
	{ "6.16", "TE-CCL, 2 chunks", "pcie", COLL_REDUCE_SCATTER, true, {
		{ 83.9, 0.313, 112, NULL } } },
	{ "6.17", "TE-CCL, 2 chunks", "all", COLL_REDUCE_SCATTER, true, {
		{ 9.16, 0.0313, 112, NULL }, { 107.7, 0.16, 522, NULL } } },
	{ "6.18", "TE-CCL", "nvlink", COLL_ALLTOALL, true, {
		{ 20.0, 0.0625, 112, NULL }, { 302, 0.44, 912.6, NULL },
		{ 3170, 1.08, 4463, NULL } } },
	{ "6.19", "TE-CCL", "pcie", COLL_ALLTOALL, true, {
		{ 30.1, 0.469, 112, NULL }, { 470, 0.880, 696.3, NULL } } },
	{ "6.20", "TE-CCL", "all", COLL_ALLTOALL, true, {
		{ 55.9, 0.0625, 112, NULL }, { 810, 0.52, 800.9, NULL },
		{ 8760, 1.16, 4313, NULL } } },
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

struct thesis_result {
	double seconds;
	bool proven;
	double latency, cost;
	char time[40], objective[60];
};

/* ---- solving ---- */

static int solve_once(const struct topo *t, enum coll_kind kind, bool alone,
		      struct thesis_result *res, struct err *err)
{
	struct coll_rate_demand demand = { kind, 0, 1 };
	struct coll_rate_options opt = { .min_cost = true, .alone = alone };
	double began = cpu_seconds();
	struct coll_rate r;
	int rc;

	coll_rate_init(&r);
	rc = coll_rate_find(t, &demand, 1, &opt, &r, err);
	began = cpu_seconds() - began;
	res->seconds = fmin(res->seconds, began);
	res->proven = mpq_equal(r.time, r.time_bound) && mpq_equal(r.cost, r.cost_bound);
	res->latency = mpq_get_d(r.time);
	res->cost = mpq_get_d(r.cost);
	rat_str(r.time, res->time, sizeof(res->time));
	rat_str(r.cost, res->objective, sizeof(res->objective));
	coll_rate_fini(&r);
	return rc;
}

static int solve(int k, const char *links, enum coll_kind kind, bool alone,
		 struct thesis_result *res)
{
	struct err err = { 0 };
	struct topo *t = NULL;
	char expr[40];
	int rc;

	*res = (struct thesis_result){ .seconds = HUGE_VAL };
	snprintf(expr, sizeof(expr), "DgxA100(%d,%s)", k, links);
	rc = topo_parse(expr, &t, NULL, &err);
	for (int i = 0; i < RUNS && rc == 0 && (i == 0 || res->seconds < LONG_S); i++) {
		rc = solve_once(t, kind, alone, res, &err);
	}
	topo_free(t);
	if (rc) {
		fprintf(stderr, "%s: %s\n", expr, err.msg);
	}
	return rc;
}

/* ---- printing ---- */

/* Whether a figure is one rounded, or cut, to three or four digits. */
static bool is_rounded(double exact, double printed)
{
	double digits = floor(log10(exact)) - (printed >= 100 ? 3 : 2);

	return fabs(exact - printed) < 1.001 * pow(10, digits);
}

static const char *verdict(const struct thesis_table *t, const struct thesis_cell *c,
			   const struct thesis_result *r)
{
	if (c->slip) {
		return c->slip;
	}
	if (c->latency <= 0) {
		return "not in the thesis";
	}
	if (is_rounded(r->latency, c->latency) && is_rounded(r->cost, c->objective)) {
		return "agrees";
	}
	return t->others && r->latency <= c->latency * 1.01 ? "no better" : "differs";
}

static void print_cell(FILE *table, FILE *json, const struct thesis_table *t, int row,
		       const struct thesis_result *r)
{
	const struct thesis_cell *c = &t->cell[row];
	char paper[3][20] = { "-", "-", "-" };

	if (c->latency > 0) {
		snprintf(paper[0], sizeof(paper[0]), "%g", c->seconds);
		snprintf(paper[1], sizeof(paper[1]), "%g", c->latency);
		snprintf(paper[2], sizeof(paper[2]), "%g", c->objective);
	}
	if (table) {
		fprintf(table, "%6d %9s %10.5f %8s %9s %8s %18s %11.10g  %s%s\n", 8 * servers[row],
			paper[0], r->seconds, paper[1], r->time, paper[2], r->objective, r->cost,
			verdict(t, c, r), r->proven ? "" : ", not proven");
	}
	if (json) {
		fprintf(json, "{\"bench\": \"thesis\", \"table\": \"%s\", \"of\": \"%s\", "
			"\"links\": \"%s\", \"collective\": \"%s\", \"gpus\": %d, "
			"\"seconds\": %.6f, \"latency\": \"%s\", \"cost\": \"%s\", "
			"\"proven\": %s, \"paper_seconds\": %s, \"paper_latency\": %s, "
			"\"paper_cost\": %s, \"verdict\": \"%s\"}\n", t->name, t->of, t->links,
			coll_kind_name(t->kind), 8 * servers[row], r->seconds, r->time,
			r->objective, r->proven ? "true" : "false",
			c->latency > 0 ? paper[0] : "null", c->latency > 0 ? paper[1] : "null",
			c->latency > 0 ? paper[2] : "null", verdict(t, c, r));
	}
}

static int print_table(FILE *table, FILE *json, const struct thesis_table *t)
{
	bool all = !t->others;

	if (table) {
		fprintf(table, "\ntable %s: %s, %s%s, %s\n%6s %9s %10s %8s %9s %8s %18s %11s\n",
			t->name, t->of, t->kind == COLL_ALLTOALL ? "all-to-all" : "all-gather",
			t->others && t->kind != COLL_ALLTOALL ? ", memories as switches" : "",
			t->links, "GPUs", "their s", "weft s", "latency", "exact", "cost", "exact",
			"");
	}
	for (int row = 0; row < SERVERS; row++) {
		struct thesis_result r;

		if (!all && t->cell[row].latency <= 0) {
			continue;
		}
		if (solve(servers[row], t->links, t->kind, false, &r)) {
			return 1;
		}
		print_cell(table, json, t, row, &r);
	}
	return 0;
}

/* Tables 6.1 and 6.2 are the seconds of 6.5 beside those of others. */
static int print_decompositions(FILE *table, FILE *json)
{
	static const double paper[2][2] = { { 60.5, 2.95 }, { 2610, 27.6 } };

	if (table) {
		fprintf(table, "\ntable 6.1: the thesis' columns are those of 6.5, TE-CCL's of "
			"6.12 and 6.15\n\ntable 6.2: a block a GPU, and one for all; all links, "
			"all-gather\n%6s %12s %10s %12s %10s\n", "GPUs", "their plain s", "weft s",
			"mirrored s", "weft s");
	}
	for (int row = 0; row < 2; row++) {
		struct thesis_result r[2];

		if (solve(servers[row], "all", COLL_ALLGATHER, true, &r[0]) ||
		    solve(servers[row], "all", COLL_ALLGATHER, false, &r[1])) {
			return 1;
		}
		if (table) {
			fprintf(table, "%6d %12g %10.5f %12g %10.5f  %s\n", 8 * servers[row],
				paper[row][0], r[0].seconds, paper[row][1], r[1].seconds,
				strcmp(r[0].objective, r[1].objective) ? "differ"
									: "the same cost");
		}
		if (json) {
			fprintf(json, "{\"bench\": \"thesis\", \"table\": \"6.2\", \"gpus\": %d, "
				"\"plain_seconds\": %.6f, \"seconds\": %.6f, "
				"\"paper_plain_seconds\": %g, \"paper_seconds\": %g}\n",
				8 * servers[row], r[0].seconds, r[1].seconds, paper[row][0],
				paper[row][1]);
		}
	}
	return 0;
}

static int run(FILE *table, FILE *json)
{
	if (print_decompositions(table, json)) {
		return 1;
	}
	for (size_t i = 0; i < TABLES; i++) {
		if (print_table(table, json, &tables[i])) {
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, argv[0], run);
}
