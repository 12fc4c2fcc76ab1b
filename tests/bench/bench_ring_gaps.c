/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far plans on rings are from what no plan can beat, from items of 4 kB
 * to 1 GB: the gap in percent, and how many steps the plan and the bound take.
 * Where the plan takes as many steps as the bound, it is the load in them that
 * is more; the bound counts hops, the plan whole channels of every link. Then what light that
 * resonators take from what passes them makes of it, with 20 dB from launch to sensitivity.
 *
 * bench_ring_gaps            a table on stdout
 * bench_ring_gaps --json     JSON lines on stdout
 * bench_ring_gaps --json FILE   the table, and JSON lines appended to FILE
 */
#include <stdint.h>
#include <stdlib.h>

#include "optree/optree.h"
#include "tests/bench/program.h"

static const enum coll_kind kinds[] = {
	COLL_ALLGATHER, COLL_ALLREDUCE, COLL_BROADCAST, COLL_ALLTOALL,
};
static const int sizes[] = { 64, 256, 1024, 4096 };
static const int widths[] = { 16, 64, 128 };
static const int64_t items[] = { 4000, 64000, 1000000, 64000000, 1000000000 };

#define COUNT(list) (int)(sizeof(list) / sizeof((list)[0]))

static const int pass_mdb[] = { 0, 10, 50, 100 };	/* 0: no budget */

static int one(enum coll_kind kind, int n, int w, int64_t bytes, int pass, FILE *table, FILE *json)
{
	struct rwa_loss loss = { .sensitivity_mdbm = -20000, .pass_mdb = pass };
	struct optree_params p = {
		.n = n, .channels = w, .fibres = 1, .shard_bytes = bytes,
		.channel_bps = 40000000000, .alpha_ns = 25000, .loss = pass > 0 ? &loss : NULL,
	};
	struct optree_plan plan;
	struct err err = { 0 };
	double before = cpu_seconds();

	if (optree_collective(&p, kind, 0, OPTREE_AUTO, &plan, &err)) {
		fprintf(stderr, "%s n=%d w=%d %lld B: %s\n", coll_kind_name(kind), n, w,
			(long long)bytes, err.msg);
		if (table) {
			fprintf(table, " %16s", "-");
		}
		return err.code != WEFT_ELIMIT;
	}
	if (table && pass < 0) {
		fprintf(table, " %7.1f %4d/%-4d", 100 * plan.gap, plan.steps, plan.bound_rounds);
	} else if (table) {
		fprintf(table, " %11.1f %4d", (double)plan.time_ns / 1e3, plan.steps);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"ring_gaps\",\"collective\":\"%s\",\"nodes\":%d,"
			"\"channels\":%d,\"pass_mdb\":%d,\"item_bytes\":%lld,"
			"\"algorithm\":\"%s\",\"steps\":%d,"
			"\"time_ns\":%lld,\"bound_ns\":%lld,\"bound_rounds\":%d,\"gap\":%.6f,"
			"\"planning_s\":%.6f}\n", coll_kind_name(kind), n, w, pass > 0 ? pass : 0,
			(long long)bytes, optree_algorithm_name(plan.algorithm), plan.steps,
			(long long)plan.time_ns, (long long)plan.bound_ns, plan.bound_rounds,
			plan.gap, cpu_seconds() - before);
	}
	optree_plan_fini(&plan);
	return 0;
}

static int rows_of(enum coll_kind kind, FILE *table, FILE *json)
{
	int failed = 0;

	for (int i = 0; i < COUNT(sizes); i++) {
		for (int j = 0; j < COUNT(widths); j++) {
			if (table) {
				fprintf(table, "%5d %4d", sizes[i], widths[j]);
			}
			for (int k = 0; k < COUNT(items); k++) {
				failed |= one(kind, sizes[i], widths[j], items[k], -1, table, json);
			}
			if (table) {
				fprintf(table, "\n");
				fflush(table);
			}
		}
	}
	return failed;
}

static int lossy_rows(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "64 channels: us, steps with no loss, and 0.01, 0.05, 0.1 dB a "
			"resonator passed of 20 dB\n");
	}
	for (int row = 0; row < 2 * 3 * COUNT(kinds); row++) {
		int n = row % 2 ? 1024 : 256;
		enum coll_kind kind = kinds[row / 6];

		if (table) {
			fprintf(table, "%-12s %5d %8lld B", coll_kind_name(kind), n,
				(long long)items[row / 2 % 3]);
		}
		for (int k = 0; k < COUNT(pass_mdb); k++) {
			failed |= one(kind, n, 64, items[row / 2 % 3], pass_mdb[k], table, json);
		}
		if (table) {
			fprintf(table, "\n");
		}
	}
	return failed;
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	for (int k = 0; k < COUNT(kinds); k++) {
		if (table) {
			fprintf(table, "%s: gap in percent, steps of the plan / of the bound\n"
				"    n    w %16s %17s %17s %17s %17s\n", coll_kind_name(kinds[k]),
				"4 kB", "64 kB", "1 MB", "64 MB", "1 GB");
		}
		failed |= rows_of(kinds[k], table, json);
	}
	failed |= lossy_rows(table, json);
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_ring_gaps", run);
}
