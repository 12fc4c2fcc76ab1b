/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light over trunks for all jobs of a fabric, in random fabrics of 6 to 40 sites
 * whose fibres have just the wavelengths that rwa needs for the union of their
 * lightpaths: how many of them `weft plan` finds light for, in each of several
 * orders of the jobs, and how long the largest of 40 sites and 400 lightpaths
 * takes.
 *
 * bench_plan                        a table on stdout
 * bench_plan --json                 JSON lines on stdout
 * bench_plan --json FILE            the table, and JSON lines appended
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"
#include "tests/bench/program.h"
#include "tests/unit/plan/trunk_fabrics.h"

#define ROWS 5
#define FABRICS 10		/* a row */
#define ORDERS 3

/* Fabrics of a row, and how they went. */
struct tight_row {
	int fabrics, planned;
	int sites[2], channels[2];	/* fewest, most */
	int64_t lightpaths;	/* most */
	double plan_s;		/* the longest plan */
	double solve_s;		/* rwa alone, the longest */
};

/* Whether the fabric is planned with its jobs in this order; keeps the longest
 * time. */
static bool is_planned(const struct tight_fabric *t, const int *order, double *longest)
{
	char *text = tight_text(t, order, t->channels), line[1024];
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;
	struct plan *p = NULL;
	struct err err = { 0 };
	double start = cpu_seconds();
	int rc = model_parse("t.yaml", text, strlen(text), &f, &errs);

	if (rc == 0) {
		rc = plan_make(f, NULL, &p, &err);
	}
	start = cpu_seconds() - start;
	*longest = start > *longest ? start : *longest;
	if (rc) {
		fprintf(stderr, "%s\n", err_str(errs.n ? &errs.v[0] : &err, line, sizeof(line)));
	}
	plan_free(p);
	model_free(f);
	err_list_fini(&errs);
	free(text);
	return rc == 0;
}

static void shuffle(struct rng *rng, int *order, int n)
{
	for (int i = 0; i < n; i++) {
		int k = (int)rng_below(rng, (uint64_t)i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

static void widen(int range[2], int x)
{
	range[0] = range[0] == 0 || x < range[0] ? x : range[0];
	range[1] = x > range[1] ? x : range[1];
}

/* One fabric in every order. */
static void add_fabric(struct tight_row *row, uint64_t seed, int sites, int hosts, int ports)
{
	double start = cpu_seconds();
	int order[TIGHT_JOBS];
	struct tight_fabric t;
	struct rng rng;
	bool all = true;

	tight_make(&t, seed, sites, hosts, ports);
	start = cpu_seconds() - start;
	row->solve_s = start > row->solve_s ? start : row->solve_s;
	widen(row->sites, sites);
	widen(row->channels, t.channels);
	row->lightpaths = t.lightpaths > row->lightpaths ? t.lightpaths : row->lightpaths;
	rng_seed(&rng, seed);
	for (int k = 0; k < ORDERS; k++) {
		shuffle(&rng, order, t.n_jobs);
		all &= is_planned(&t, order, &row->plan_s);
	}
	row->fabrics++;
	row->planned += all;
	tight_free(&t);
}

static void print_row(FILE *table, FILE *json, const struct tight_row *r)
{
	if (table) {
		fprintf(table, "%3d-%-3d %8d %8d %5d-%-4d %11lld %9.3f %9.3f\n", r->sites[0],
			r->sites[1], r->fabrics, r->planned, r->channels[0], r->channels[1],
			(long long)r->lightpaths, r->plan_s, r->solve_s);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"plan_trunks\",\"sites\":%d,\"fabrics\":%d,"
			"\"planned\":%d,\"lightpaths\":%lld,\"plan_cpu_s\":%.6f,"
			"\"rwa_cpu_s\":%.6f}\n", r->sites[1], r->fabrics, r->planned,
			(long long)r->lightpaths, r->plan_s, r->solve_s);
	}
	fflush(NULL);
}

static int run(FILE *table, FILE *json)
{
	int missing = 0;

	if (table) {
		fprintf(table, "%-7s %8s %8s %10s %11s %9s %9s\n", "sites", "fabrics", "planned",
			"channels", "lightpaths", "plan s", "rwa s");
	}
	for (int k = 0; k <= ROWS; k++) {
		struct tight_row row = { 0 };

		for (int i = 0; i < FABRICS && k < ROWS; i++) {
			int seed = 1 + k * FABRICS + i;

			add_fabric(&row, (uint64_t)seed, 6 + (seed - 1) * 34 / (ROWS * FABRICS - 1),
				   1 + seed % 4, 2 + seed % 3);
		}
		if (k == ROWS) {
			add_fabric(&row, 1, 40, 6, 3);
		}
		missing += row.fabrics - row.planned;
		print_row(table, json, &row);
	}
	return missing > 0;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_plan", run);
}
