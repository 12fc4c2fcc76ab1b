/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers (virtual channels) of single paths on the fabrics of
 * all-to-all-mcf, appendix D.1, and what a limit of layers costs when routes
 * and layers are chosen together. The paper has no figures: it names the
 * choice as future research.
 *
 * bench_layers                       a table on stdout
 * bench_layers --json                JSON lines on stdout
 * bench_layers --json FILE           the table, and JSON lines appended
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/routing/routes.h"
#include "lib/base/clock.h"
#include "tests/bench/program.h"

#define MOST_LAYERS 4
/* For the integer program, which may not end. */
#define LIMIT_NS INT64_C(20000000000)

static const char *const topologies[] = { "Torus(3,3,3)", "GenKautz(4,64)" };

static const struct {
	enum single_effort effort;
	const char *name;
} ways[] = {
	{ SINGLE_SHORTEST, "shortest" },
	{ SINGLE_SEARCH, "search" },
	{ SINGLE_INTEGER, "integer" },
};

static void print_row(FILE *table, FILE *json, const char *expr,
		      const char *way, int allowed,
		      const struct coll_routes *r,
		      const struct single_result *res, double seconds)
{
	if (table) {
		fprintf(table, "%-15s %-9s %7d %6d %6g %6g %6.1f %% %8.2f\n",
			expr, way, allowed, r->n_layers, res->congestion,
			res->bound, 100 * (res->congestion / res->bound - 1),
			seconds);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"layers\",\"topology\":\"%s\","
			"\"paths\":\"%s\",\"allowed\":%d,\"layers\":%d,"
			"\"load\":%g,\"bound\":%g,\"seconds\":%.6f}\n", expr,
			way, allowed, r->n_layers, res->congestion, res->bound,
			seconds);
	}
	fflush(NULL);
}

/* allowed 0: as many as it takes. Proven by what made none of it. */
static int measure(FILE *table, FILE *json, const struct topo *t,
		   const char *expr, size_t way, int allowed, struct err *err)
{
	struct single_options opt = {
		.effort = ways[way].effort, .tolerance = 0.01,
		.layers = allowed,
		.deadline = deadline_in(ways[way].effort == SINGLE_INTEGER ? LIMIT_NS : 0, NULL),
	};
	struct coll_routes r;
	struct single_result res;
	int64_t start = clk_now_ns();
	int rc = coll_routes_choose(t, &opt, &r, &res, err);
	double seconds = (double)(clk_now_ns() - start) / 1e9;

	if (rc == 0 && (rc = coll_routes_verify(&r, t, err)) == 0) {
		print_row(table, json, expr, ways[way].name, allowed, &r, &res,
			  seconds);
	}
	coll_routes_fini(&r);
	return rc;
}

static int measure_all(FILE *table, FILE *json, const char *expr,
		       struct err *err)
{
	struct topo *t = NULL;
	int rc = topo_parse(expr, &t, NULL, err);

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		for (int k = 0; k <= MOST_LAYERS && rc == 0; k++) {
			rc = measure(table, json, t, expr, way, k, err);
		}
	}
	topo_free(t);
	return rc;
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "%-15s %-9s %7s %6s %6s %6s %8s %8s\n",
			"topology", "paths", "allowed", "layers", "load",
			"bound", "gap", "s");
	}
	for (size_t i = 0; i < sizeof(topologies) / sizeof(*topologies); i++) {
		struct err err = { 0 };

		if (measure_all(table, json, topologies[i], &err)) {
			fprintf(stderr, "%s: %s\n", topologies[i], err.msg);
			failed = 1;
		}
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_layers", run);
}
