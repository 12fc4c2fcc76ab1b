/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings, widths and sizes at random: the plan of `auto` is never slower than
 * OpTree's own time, never faster than the bound. A case that is fails the
 * benchmark.
 *
 * bench_ring_random [--json FILE]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "optree/optree.h"

#define CASES 100

struct band {
	const char *name;
	int64_t min, max;	/* bytes of a node's item */
	int n, faults;
	double gain[CASES], gap[CASES];
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int try_case(struct band *b, struct rng *rng, struct err *err)
{
	double e = (double)rng_below(rng, 1000000) / 1e6;
	struct optree_params p = {
		.n = 16 + (int)rng_below(rng, b->n % 2 ? 4081 : 100),
		.channels = 1 + (int)rng_below(rng, 128), .fibres = 1,
		.shard_bytes = (int64_t)((double)b->min *
			pow((double)b->max / (double)b->min, e)),
		.channel_bps = 40000000000, .alpha_ns = 25000,
	};
	struct optree_plan plan;
	int rc = optree_make(&p, OPTREE_AUTO, &plan, err);

	if (rc) {
		return rc;
	}
	if (plan.time_ns > plan.optree_time_ns ||
	    plan.time_ns < plan.bound_ns) {
		fprintf(stderr, "n=%d w=%d item=%" PRId64 ": %" PRId64 " ns, "
			"OpTree %" PRId64 ", bound %" PRId64 "\n", p.n,
			p.channels, p.shard_bytes, plan.time_ns,
			plan.optree_time_ns, plan.bound_ns);
		b->faults++;
	}
	b->gain[b->n] = (double)plan.optree_time_ns / (double)plan.time_ns;
	b->gap[b->n++] = plan.gap;
	optree_plan_fini(&plan);
	return 0;
}

static void report(struct band *b, FILE *json)
{
	size_t n = (size_t)b->n;

	qsort(b->gain, n, sizeof(double), by_value);
	qsort(b->gap, n, sizeof(double), by_value);
	printf("%-16s %5zu %7d %9.2f %9.2f %9.2f %8.1f %%\n", b->name, n,
	       b->faults, b->gain[0], b->gain[n / 2], b->gain[n - 1],
	       100 * b->gap[n / 2]);
	if (json) {
		fprintf(json, "{\"bench\":\"ring_random\",\"items\":\"%s\","
			"\"cases\":%zu,\"slower_or_impossible\":%d,"
			"\"min_gain\":%.4f,\"median_gain\":%.4f,"
			"\"max_gain\":%.4f,\"median_gap\":%.4f}\n", b->name,
			n, b->faults, b->gain[0], b->gain[n / 2],
			b->gain[n - 1], b->gap[n / 2]);
	}
}

int main(int argc, char **argv)
{
	static struct band bands[] = {
		{ .name = "4 kB - 256 kB", .min = 4096, .max = 262144 },
		{ .name = "256 kB - 16 MB", .min = 262144,
		  .max = 16777216 },
		{ .name = "16 MB - 1 GB", .min = 16777216,
		  .max = 1073741824 },
	};
	FILE *json = argc == 3 && strcmp(argv[1], "--json") == 0 ?
		     fopen(argv[2], "a") : NULL;
	struct rng rng;
	int faults = 0;

	rng_seed(&rng, 7);
	printf("all-gathers, 16-4096 nodes, 1-128 channels: gain on OpTree\n"
	       "item             cases  slower     least    median      most"
	       "        gap\n");
	for (size_t k = 0; k < sizeof(bands) / sizeof(bands[0]); k++) {
		struct err err = { 0 };

		while (bands[k].n < CASES) {
			if (try_case(&bands[k], &rng, &err)) {
				fprintf(stderr, "%s\n", err.msg);
				return 1;
			}
		}
		report(&bands[k], json);
		faults += bands[k].faults;
	}
	if (json) {
		fclose(json);
	}
	return faults > 0;
}
