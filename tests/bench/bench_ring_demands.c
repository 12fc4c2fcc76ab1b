/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random demands on rings of 16 to 1024 nodes, the way round chosen freely:
 * how many sets come within one channel of the proven bound. What is drawn
 * stands in tests/unit/rwa/ring_demands.h.
 *
 * bench_ring_demands [--sets N] [--first K] [--json FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/unit/mesh/ring_demands.h"

static const char *const kinds[] = { "uniform", "hot spots", "permutations",
				     "local" };

struct tally {
	int sets, met, near;
	double worst, seconds, slowest;
};

static int run_set(int k, struct rwa_arc *arcs, struct tally *t, bool verbose)
{
	struct rwa_ring ring = { .fibres = 1, .channels = 64 };
	int64_t count = draw_demands(k, DEMANDS_MOST_NODES, arcs,
					 &ring.n);
	int64_t start = clk_now_ns();
	struct rwa_result res;
	struct err err = { 0 };
	double s, ratio;
	int rc = rwa_ring_route(&ring, arcs, count, &res, &err);

	s = (double)(clk_now_ns() - start) / 1e9;
	if (rc || (rc = rwa_ring_check(&ring, arcs, count, &err))) {
		fprintf(stderr, "set %d: %s\n", k, err.msg);
		return rc;
	}
	ratio = res.bound ? (double)res.colours / res.bound : 1;
	t->sets++;
	t->met += res.colours == res.bound;
	t->near += res.colours <= res.bound + 1;
	t->worst = ratio > t->worst ? ratio : t->worst;
	t->seconds += s;
	t->slowest = s > t->slowest ? s : t->slowest;
	if (verbose) {
		printf("%d %s n %d count %lld bound %d colours %d %s %.3f\n",
		       k, kinds[k % 4], ring.n, (long long)count, res.bound,
		       res.colours, res.method, s);
	}
	return 0;
}

static void print_row(const char *name, const struct tally *t, FILE *json)
{
	double met = 100.0 * t->met / t->sets, near = 100.0 * t->near / t->sets;

	printf("%-14s %5d %8.1f %8.1f %8.3f %8.2f %8.3f\n", name, t->sets, met,
	       near, t->worst, t->seconds, t->slowest);
	if (json) {
		fprintf(json, "{\"bench\":\"ring_demands\",\"demands\":\"%s\","
			      "\"sets\":%d,\"met_percent\":%.1f,"
			      "\"within_one_percent\":%.1f,"
			      "\"worst_ratio\":%.4f,\"seconds\":%.3f,"
			      "\"slowest_s\":%.3f}\n",
			name, t->sets, met, near, t->worst, t->seconds,
			t->slowest);
	}
}

static void add(struct tally *all, const struct tally *t)
{
	all->sets += t->sets;
	all->met += t->met;
	all->near += t->near;
	all->worst = t->worst > all->worst ? t->worst : all->worst;
	all->seconds += t->seconds;
	all->slowest = t->slowest > all->slowest ? t->slowest : all->slowest;
}

int main(int argc, char **argv)
{
	struct rwa_arc *arcs = calloc(DEMANDS_MOST_ARCS, sizeof(*arcs));
	struct tally kind[4] = { { 0 } }, all = { 0 };
	int sets = 1000, first = 0, rc = arcs ? 0 : 1;
	bool verbose = false;
	FILE *json = NULL;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0) {
			verbose = true;
		} else if (i + 1 < argc && strcmp(argv[i], "--sets") == 0) {
			sets = atoi(argv[++i]);
		} else if (i + 1 < argc && strcmp(argv[i], "--first") == 0) {
			first = atoi(argv[++i]);
		} else if (i + 1 < argc && strcmp(argv[i], "--json") == 0) {
			json = fopen(argv[++i], "a");
		}
	}
	for (int k = first; !rc && k < first + sets; k++) {
		rc = run_set(k, arcs, &kind[k % 4], verbose);
	}
	printf("%-14s %5s %8s %8s %8s %8s %8s\n", "demands", "sets", "met %",
	       "<= +1 %", "worst", "seconds", "slowest");
	for (int k = 0; k < 4 && !rc; k++) {
		if (kind[k].sets) {
			print_row(kinds[k], &kind[k], json);
			add(&all, &kind[k]);
		}
	}
	if (!rc && all.sets) {
		print_row("all", &all, json);
	}
	if (json) {
		fclose(json);
	}
	free(arcs);
	return rc ? 1 : 0;
}
