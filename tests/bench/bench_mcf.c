/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-to-all flows: how long to a certified gap, with all sources and with
 * one an orbit, and again after a link has failed. all-to-all-mcf reports 40
 * minutes at N = 1000 for its master program and parallel children.
 *
 * bench_mcf                  a table on stdout
 * bench_mcf --json           JSON lines on stdout
 * bench_mcf --json FILE      the table, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collective/flow/flow.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/number/rng.h"
#include "tests/bench/program.h"

#define FAILURES 25
#define SEED 12345

static const struct {
	const char *expr;
	double gap;
	bool symmetry;
	int failures;	/* random arcs that fail then, one at a time */
} cases[] = {
	{ "Torus(16,16,16)", 0, true, 0 },
	{ "GenKautz(4,256)", 1e-5, false, 0 },
	{ "GenKautz(4,1000)", 1e-3, false, 0 },
	{ "GenKautz(4,1000)", 1e-4, false, 0 },
	{ "GenKautz(4,1000)", 1e-4, true, 0 },
	{ "GenKautz(4,1000)", 1e-3, false, FAILURES },
	{ "GenKautz(4,4096)", 1e-2, false, 0 },
	{ "GenKautz(4,4096)", 1e-2, true, 0 },
};

struct figures {
	struct mcf_result res;
	int sources;
	double cold_s;
	/* Of CPU time, a row each, by ratio. */
	struct failure {
		int arc;
		double cold_s, warm_s, gap;
	} failures[FAILURES];
};

static double seconds_since(int64_t start_ns)
{
	return (double)(clk_now_ns() - start_ns) / 1e9;
}

static double cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* The same again without an arc, warm and from nothing. */
static int measure_failure(const struct mcf *p, const struct mcf *fresh,
			   const struct topo *t, const struct mcf_options *opt,
			   struct failure *f, struct err *err)
{
	bool *dropped = x_new((size_t)topo_m(t), sizeof(*dropped));
	struct mcf *cold = NULL, *warm = NULL;
	struct mcf_result res = { 0 };
	double start = cpu_s();
	int rc;

	dropped[f->arc] = true;
	if ((rc = mcf_without(fresh, t, dropped, &cold, err)) ||
	    (rc = mcf_run(cold, opt, &res, err))) {
		goto out;
	}
	f->cold_s = cpu_s() - start;
	start = cpu_s();
	if ((rc = mcf_without(p, t, dropped, &warm, err)) ||
	    (rc = mcf_run(warm, opt, &res, err))) {
		goto out;
	}
	f->warm_s = cpu_s() - start;
	f->gap = res.gap;
out:
	mcf_free(cold);
	mcf_free(warm);
	free(dropped);
	return rc;
}

static int by_ratio(const void *a, const void *b)
{
	const struct failure *f = a, *g = b;
	double x = f->warm_s / f->cold_s, y = g->warm_s / g->cold_s;

	return (x > y) - (x < y);
}

static int measure_failures(const struct mcf *p, const struct topo *t,
			    const struct mcf_options *opt, struct figures *f,
			    struct err *err)
{
	struct mcf *fresh = NULL;
	int rc = mcf_new(t, false, &fresh, err);
	struct rng rng;

	rng_seed(&rng, SEED);
	for (int i = 0; i < FAILURES && rc == 0; i++) {
		f->failures[i].arc = (int)rng_below(&rng,
						    (uint64_t)topo_m(t));
		rc = measure_failure(p, fresh, t, opt, &f->failures[i], err);
	}
	mcf_free(fresh);
	qsort(f->failures, FAILURES, sizeof(f->failures[0]), by_ratio);
	return rc;
}

static int measure(size_t i, struct figures *f, struct err *err)
{
	struct mcf_options opt = { .gap = cases[i].gap,
				   .deadline = deadline_in(INT64_C(300000000000), NULL) };
	struct topo *t = NULL;
	struct mcf *p = NULL;
	int64_t start = clk_now_ns();
	int rc;

	if ((rc = topo_parse(cases[i].expr, &t, NULL, err)) ||
	    (rc = mcf_new(t, cases[i].symmetry, &p, err)) ||
	    (rc = mcf_run(p, &opt, &f->res, err))) {
		goto out;
	}
	f->cold_s = seconds_since(start);
	f->sources = mcf_sources(p);
	if (cases[i].failures) {
		rc = measure_failures(p, t, &opt, f, err);
	}
out:
	mcf_free(p);
	topo_free(t);
	return rc;
}

static void print_row(FILE *out, size_t i, const struct figures *f)
{
	fprintf(out, "%-18s %8.1e %7d %6d %14.9g %14.9g %9.2e %8.3f ",
		cases[i].expr, cases[i].gap, f->sources, f->res.passes,
		1 / f->res.congestion, 1 / f->res.bound, f->res.gap,
		f->cold_s);
	fprintf(out, "\n");
	for (int k = 0; k < cases[i].failures; k++) {
		const struct failure *g = &f->failures[k];

		fprintf(out, "  without arc %4d: cold %6.3f s, warm %6.3f s of "
			"CPU, ratio %.2f, gap %.2e\n", g->arc, g->cold_s,
			g->warm_s, g->warm_s / g->cold_s, g->gap);
	}
}

static void print_json(FILE *out, size_t i, const struct figures *f)
{
	fprintf(out, "{\"bench\":\"mcf\",\"topology\":\"%s\","
		"\"target_gap\":%g,\"sources\":%d,\"passes\":%d,"
		"\"rate\":%.12g,\"rate_bound\":%.12g,\"gap\":%g,"
		"\"cold_s\":%.6f", cases[i].expr, cases[i].gap, f->sources,
		f->res.passes, 1 / f->res.congestion, 1 / f->res.bound,
		f->res.gap, f->cold_s);
	fprintf(out, "}\n");
	for (int k = 0; k < cases[i].failures; k++) {
		const struct failure *g = &f->failures[k];

		fprintf(out, "{\"bench\":\"mcf_failure\",\"topology\":\"%s\","
			"\"target_gap\":%g,\"arc\":%d,\"cold_cpu_s\":%.6f,"
			"\"warm_cpu_s\":%.6f,\"ratio\":%.4f}\n",
			cases[i].expr, cases[i].gap, g->arc, g->cold_s,
			g->warm_s, g->warm_s / g->cold_s);
	}
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "%-18s %8s %7s %6s %14s %14s %9s %8s\n",
			"topology", "asked", "sources", "passes", "rate",
			"rate bound", "gap", "s");
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct figures f = { 0 };
		struct err err = { 0 };

		if (measure(i, &f, &err)) {
			fprintf(stderr, "%s: %s\n", cases[i].expr, err.msg);
			failed = 1;
			continue;
		}
		if (table) {
			print_row(table, i, &f);
		}
		if (json) {
			print_json(json, i, &f);
		}
		fflush(NULL);
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_mcf", run);
}
