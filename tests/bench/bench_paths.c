/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What paths deliver of the rate of the flow: those cut out of it, widest
 * first (MCF-extP), maximal sets of link-disjoint paths, and one load-aware
 * shortest path a pair. In percent of the proven best rate F, so that the
 * solver's own gap counts as well. all-to-all-mcf: extraction loses nothing,
 * shortest paths are more than twice slower than the optimum (appendix D).
 *
 * bench_paths                        a table on stdout
 * bench_paths --json                 JSON lines on stdout
 * bench_paths --json FILE            the table, and JSON lines appended
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/clock.h"
#include "tests/bench/program.h"

#define GAP 1e-4

static const char *const topologies[] = {
	"K(4,4)", "Hypercube(3)", "Hypercube(4)", "Hypercube(5)",
	"Torus(3,3)", "Torus(4,4)", "Torus(5,5)", "Torus(6,6)", "Torus(8,8)",
	"Torus(3,3,3)", "Torus(5,5,5)", "GenKautz(4,16)", "GenKautz(4,25)",
	"GenKautz(4,36)", "GenKautz(4,64)", "GenKautz(4,81)",
	"GenKautz(4,100)", "GenKautz(4,125)", "GenKautz(4,128)",
};

struct figures {
	double bound;		/* 1 / F, at least */
	double extracted, disjoint, shortest;	/* congestions */
	size_t paths;		/* extracted */
	double seconds;		/* flow and extraction */
};

static double congestion_of(const struct flow_net *net,
			    const struct flow_paths *paths)
{
	double *load = calloc((size_t)net->m + 1, sizeof(*load)), most = 0;

	for (size_t i = 0; load && i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		for (int k = 0; k < q->n_arcs; k++) {
			load[paths->arcs.v[q->first + k]] += q->weight;
		}
	}
	for (int a = 0; load && a < net->m; a++) {
		most = fmax(most, load[a] / (double)net->units[a]);
	}
	free(load);
	return most;
}

static int extract(const struct topo *t, struct figures *f, struct err *err)
{
	struct mcf_options opt = { .gap = GAP };
	struct flow_paths paths = { 0 };
	struct mcf_result res;
	struct mcf *p = NULL;
	int64_t start = clk_now_ns();
	int rc;

	if ((rc = mcf_new(t, false, &p, err)) ||
	    (rc = mcf_run(p, &opt, &res, err))) {
		goto out;
	}
	flow_paths_cut(p, NULL, &paths);
	f->seconds = (double)(clk_now_ns() - start) / 1e9;
	f->bound = res.bound;
	f->extracted = congestion_of(&p->net, &paths);
	f->paths = paths.v.n;
out:
	flow_paths_fini(&paths);
	mcf_free(p);
	return rc;
}

static int route(const struct topo *t, struct figures *f, struct err *err)
{
	struct single_options opt = { .effort = SINGLE_SHORTEST, .seed = 1,
				      .flow_gap = 1 };
	struct flow_paths sets = { 0 }, single = { 0 };
	struct flow_net net = { 0 };
	struct balance_result shares;
	struct single_result res;
	int rc;

	if ((rc = flow_net_from(t, NULL, &net, err)) ||
	    (rc = disjoint_paths(&net, &sets, err)) ||
	    (rc = single_path(t, &opt, &single, &res, err))) {
		goto out;
	}
	balance_paths(&net, GAP, NULL, &sets, &shares);
	f->disjoint = shares.congestion;
	f->shortest = res.congestion;
out:
	flow_paths_fini(&sets);
	flow_paths_fini(&single);
	flow_net_fini(&net);
	return rc;
}

static void print_row(FILE *table, FILE *json, const char *expr,
		      const struct figures *f)
{
	double extracted = 100 * f->bound / f->extracted;
	double disjoint = 100 * f->bound / f->disjoint;
	double shortest = 100 * f->bound / f->shortest;

	if (table) {
		fprintf(table, "%-16s %10.5f %8zu %10.4f %9.3f %9.2f %8.2f\n",
			expr, f->bound, f->paths, extracted, disjoint,
			shortest, f->seconds);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"paths\",\"topology\":\"%s\","
			"\"bound\":%.9g,\"paths\":%zu,\"extracted_pct\":%.6f,"
			"\"disjoint_pct\":%.4f,\"shortest_pct\":%.4f,"
			"\"seconds\":%.6f,\"paper_extracted_pct\":100}\n",
			expr, f->bound, f->paths, extracted, disjoint,
			shortest, f->seconds);
	}
	fflush(NULL);
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "%-16s %10s %8s %10s %9s %9s %8s\n", "topology",
			"1/F", "paths", "extracted", "disjoint", "shortest",
			"s");
	}
	for (size_t i = 0; i < sizeof(topologies) / sizeof(*topologies); i++) {
		struct topo *t = NULL;
		struct figures f;
		struct err err = { 0 };
		bool bad = topo_parse(topologies[i], &t, NULL, &err) ||
			   extract(t, &f, &err) || route(t, &f, &err);

		topo_free(t);
		if (bad) {
			fprintf(stderr, "%s: %s\n", topologies[i], err.msg);
			failed = 1;
			continue;
		}
		print_row(table, json, topologies[i], &f);
		if (f.bound / f.extracted < 0.999) {
			fprintf(stderr, "%s: less than 99.9 %% of F\n",
				topologies[i]);
			failed = 1;
		}
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_paths", run);
}
