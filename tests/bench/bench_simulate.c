/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated all-reduces by breadth-first broadcast: processor time of a
 * simulation, in both modes, compact and written out.
 *
 * bench_simulate                     a table on stdout
 * bench_simulate --json              JSON lines on stdout
 * bench_simulate --json FILE         the table, and JSON lines appended
 */
#include <stdio.h>
#include <stdlib.h>

#include "collective/bfb/bfb.h"
#include "tests/bench/program.h"

static const char *const topologies[] = {
	"Torus(16,16)", "Torus(64,64)", "Torus(128,128)", "GenKautz(4,256)",
};

/* Beyond it a schedule is not written out. */
#define MAX_FLAT (1 << 21)

static int measure(FILE *table, FILE *json, const char *expr, const char *form,
		   const struct coll_sched *s, bool asynchronous, struct err *err)
{
	const char *mode = asynchronous ? "asynchronous" : "lockstep";
	struct coll_sim_options o = {
		.cost = { .alpha_ns = 1000, .link_bps = 100000000000, .size_bytes = 1 << 20 },
		.asynchronous = asynchronous,
	};
	struct coll_sim sim = { 0 };
	double start = cpu_seconds(), seconds;
	int64_t transfers;
	int rc = coll_simulate(s, &o, &sim, NULL, err);

	seconds = cpu_seconds() - start;
	coll_xfers(s, &transfers);
	if (!rc && table) {
		fprintf(table, "%-16s %-8s %-12s %10lld %10.2f %10.4f\n", expr, form, mode,
			(long long)transfers, sim.time_ns / 1e3, seconds);
	}
	if (!rc && json) {
		fprintf(json, "{\"bench\":\"simulate\",\"topology\":\"%s\",\"form\":\"%s\","
			"\"mode\":\"%s\",\"transfers\":%lld,\"time_ns\":%.3f,"
			"\"seconds\":%.6f}\n", expr, form, mode, (long long)transfers,
			sim.time_ns, seconds);
	}
	coll_sim_fini(&sim);
	return rc;
}

/* Compact where it is symmetric, and written out where that is not too long. */
static int measure_all(FILE *table, FILE *json, const char *expr, struct err *err)
{
	struct coll_sched *s = NULL, *flat = NULL;
	struct topo *t = NULL;
	int64_t transfers;
	int rc;

	if ((rc = topo_parse(expr, &t, NULL, err)) ||
	    (rc = coll_bfb(COLL_ALLREDUCE, t, &s, err)) ||
	    (rc = measure(table, json, expr, "as made", s, false, err)) ||
	    (rc = measure(table, json, expr, "as made", s, true, err))) {
		goto out;
	}
	coll_xfers(s, &transfers);
	if (coll_group(s) && transfers * topo_group_order(coll_group(s)) <= MAX_FLAT &&
	    (rc = coll_unfold(s, &flat, err)) == 0 &&
	    (rc = measure(table, json, expr, "flat", flat, false, err)) == 0) {
		rc = measure(table, json, expr, "flat", flat, true, err);
	}
out:
	coll_free(flat);
	coll_free(s);
	return rc;
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "%-16s %-8s %-12s %10s %10s %10s\n", "topology", "form", "mode",
			"transfers", "time us", "cpu s");
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
	return bench_main(argc, argv, "bench_simulate", run);
}
