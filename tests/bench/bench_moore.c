/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How near the finder comes to Moore's bound, with Cayley graphs and without:
 * all-reduce on sizes from 32 to 1024 at 4 and 8 ports, one-way and duplex, and
 * beside it the direct-connect topologies paper's table 4 and figure 12.
 *
 * bench_moore              tables on stdout
 * bench_moore --json FILE  the same, and JSON lines appended to FILE, and
 *                          topology_moore.svg and topology_figure12_now.svg
 *                          beside it
 *
 * "without" is the finder with no table, no Cayley graphs looked at: families,
 * circulants and expansions, which is what it had before them.
 */
#include <limits.h>
#include <math.h>
#include <time.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"
#include "lib/base/parallel.h"
#include "tests/bench/draw.h"
#include "tests/bench/program.h"

#define FIRST 32
#define LAST 1024
#define SIZES (LAST - FIRST + 1)
#define PANELS 4
#define KNOWN 2
#define BUCKET 16		/* sizes to a point of a chart */
#define BUCKETS (SIZES / BUCKET)

/* The paper's cost model: 10 us a step, 1 MB = 2^20 bytes, 100 Gbit/s. */
#define ALPHA_US 10.0
#define US_PER_FACTOR (8.0 * 1048576 / 1e5)

static const struct {
	int degree;
	bool both;
	const char *name;
} panels[PANELS] = {
	{ 4, false, "4 one-way ports" }, { 4, true, "4 duplex ports" },
	{ 8, false, "8 one-way ports" }, { 8, true, "8 duplex ports" },
};

static const char *const known_names[KNOWN] = { "no Cayley graphs", "now" };
enum { WITHOUT, NOW };

static struct coll_frontier found[KNOWN][PANELS][SIZES];

struct part {
	int n, rc;		/* how many parts there are */
	double cpu[KNOWN];	/* seconds */
};

static int nodes_of(int size)
{
	return FIRST + size;
}

static double factor_of(const struct coll_point *p)
{
	return (double)p->num / (double)p->den;
}

/* ---- asking ---- */

static double thread_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int ask_all(struct coll_finder *finder[KNOWN], int size, double cpu[KNOWN])
{
	struct err err = { 0 };

	for (int p = 0; p < PANELS; p++) {
		struct coll_query q = { .n = nodes_of(size), .degree = panels[p].degree,
					.bidirectional = panels[p].both,
					.kind = COLL_ALLREDUCE };

		for (int k = 0; k < KNOWN; k++) {
			double at = thread_seconds();

			if (coll_finder_run(finder[k], &q, true, &found[k][p][size], &err)) {
				fprintf(stderr, "%d nodes, %s: %s\n", q.n, panels[p].name, err.msg);
				return 1;
			}
			cpu[k] += thread_seconds() - at;
		}
	}
	return 0;
}

static void ask_part(void *arg, int i)
{
	struct part *part = (struct part *)arg + i;
	struct coll_finder *finder[KNOWN];

	for (int k = 0; k < KNOWN; k++) {
		coll_finder_new(&finder[k]);
	}
	coll_finder_set_table(finder[WITHOUT], "", 0);
	coll_finder_set_default(finder[WITHOUT], -1);
	for (int size = i; size < SIZES && !part->rc; size += part->n) {
		part->rc = ask_all(finder, size, part->cpu);
	}
	for (int k = 0; k < KNOWN; k++) {
		coll_finder_free(finder[k]);
	}
}

static int ask(double cpu[KNOWN])
{
	struct part parts[PARALLEL_MAX] = { 0 };
	int n = parallel_width(), bad = 0;

	for (int i = 0; i < n; i++) {
		parts[i].n = n;
	}
	parallel_run(n, ask_part, parts);
	for (int i = 0; i < n; i++) {
		bad |= parts[i].rc;
		for (int k = 0; k < KNOWN; k++) {
			cpu[k] += parts[i].cpu[k];
		}
	}
	return bad;
}

/* ---- steps at the bandwidth bound over Moore's bound ---- */

/* The fewest steps at a T_B of at most this; INT_MAX: there are none. */
static int steps_within(const struct coll_frontier *f, double factor)
{
	int steps = INT_MAX;

	for (size_t i = 0; i < f->points.n; i++) {
		const struct coll_point *p = &f->points.v[i];

		if (factor_of(p) <= factor * (1 + 1e-12) && p->steps < steps) {
			steps = p->steps;
		}
	}
	return steps;
}

/* Circulants are at the bound for every size, so there are such steps. */
static double moore_ratio(const struct coll_frontier *f)
{
	double bound = (double)f->bound_num / (double)f->bound_den;

	return (double)steps_within(f, bound) / (2 * f->steps_bound);
}

static void show_panel(FILE *table, FILE *json, int panel, int k, double value[BUCKETS])
{
	double sum = 0, most = 0;
	int met = 0;

	memset(value, 0, BUCKETS * sizeof(*value));
	for (int i = 0; i < SIZES; i++) {
		double ratio = moore_ratio(&found[k][panel][i]);

		sum += ratio;
		most = fmax(most, ratio);
		met += ratio == 1;
		value[i / BUCKET < BUCKETS ? i / BUCKET : BUCKETS - 1] +=
			ratio /
			(i / BUCKET < BUCKETS - 1 ? BUCKET : SIZES - (BUCKETS - 1) * BUCKET);
	}
	if (table) {
		fprintf(table, "%-17s %-18s %8.3f %8.3f %6d of %d\n", panels[panel].name,
			known_names[k], sum / SIZES, most, met, SIZES);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"moore\",\"table\":\"sweep\",\"degree\":%d,"
			"\"bidirectional\":%s,\"known\":\"%s\",\"mean\":%.6f,\"largest\":%.6f,"
			"\"met\":%d,\"sizes\":%d}\n", panels[panel].degree,
			panels[panel].both ? "true" : "false", known_names[k], sum / SIZES, most,
			met, SIZES);
	}
}

/* Names of the points of charts: every fourth. */
static const char *const *bucket_names(void)
{
	static char text[BUCKETS][8];
	static const char *names[BUCKETS];

	for (int b = 0; b < BUCKETS; b++) {
		if (b % 4 == 3) {
			snprintf(text[b], sizeof(text[b]), "%d", nodes_of((b + 1) * BUCKET - 1));
		}
		names[b] = text[b];
	}
	return names;
}

static void record_sizes(FILE *json, int panel)
{
	for (int i = 0; i < SIZES; i++) {
		const struct coll_frontier *without = &found[WITHOUT][panel][i];
		const struct coll_frontier *now = &found[NOW][panel][i];
		double bound = (double)now->bound_num / (double)now->bound_den;

		fprintf(json, "{\"bench\":\"moore\",\"table\":\"steps\",\"nodes\":%d,\"degree\":%d,"
			"\"bidirectional\":%s,\"steps_bound\":%d,\"without\":%d,\"now\":%d}\n",
			nodes_of(i), panels[panel].degree, panels[panel].both ? "true" : "false",
			now->steps_bound, steps_within(without, bound), steps_within(now, bound));
	}
}

static int show_sweep(FILE *table, FILE *json, const char *path)
{
	static double value[PANELS][KNOWN][BUCKETS];
	struct svg_series series[PANELS][KNOWN];
	struct svg_chart charts[PANELS];

	if (table) {
		fprintf(table, "All-reduce, steps at the bandwidth bound over Moore's bound, sizes "
			"from %d to %d\n%-17s %-18s %8s %8s %12s\n", FIRST, LAST,
			"", "", "mean", "largest", "bound met");
	}
	for (int p = 0; p < PANELS; p++) {
		for (int k = 0; k < KNOWN; k++) {
			show_panel(table, json, p, k, value[p][k]);
			series[p][k] = (struct svg_series){ known_names[k], value[p][k] };
		}
		if (json) {
			record_sizes(json, p);
		}
		charts[p] = (struct svg_chart){
			.title = panels[p].name, .note = "the mean of sixteen sizes",
			.x_label = "nodes up to", .y_label = "steps at the bound / Moore's bound",
			.group = bucket_names(), .n_groups = BUCKETS,
			.series = series[p], .n_series = KNOWN, .lines = true,
		};
	}
	return draw_charts(path, "topology_moore", charts, PANELS);
}

/* ---- the paper's table 4 ---- */

static const struct {
	const char *expr;
	int steps;
	double factor;		/* in M/B, to three digits */
} table_4[] = {
	{ "GenKautz(4,1024)", 10, 2.664 },
	{ "L3(C(16,{3,4}))", 12, 2.039 },
	{ "L2(Pow(Diamond,2))", 16, 2.008 },
	{ "Pow(Prod(UniRing(1,4),UniRing(1,8)),2)", 40, 1.998 },
};

static double us_of(int steps, double factor)
{
	return steps * ALPHA_US + factor * US_PER_FACTOR;
}

static double fastest_us(const struct coll_frontier *f)
{
	double least = INFINITY;

	for (size_t i = 0; i < f->points.n; i++) {
		least = fmin(least, us_of(f->points.v[i].steps, factor_of(&f->points.v[i])));
	}
	return least;
}

/* Each row's T_B, and who needs how many steps for it. */
static void show_table_4(FILE *table, FILE *json)
{
	const struct coll_frontier *without = &found[WITHOUT][0][SIZES - 1];
	const struct coll_frontier *now = &found[NOW][0][SIZES - 1];
	double paper = INFINITY;

	if (table) {
		fprintf(table,
			"\nTable 4, all-reduce, 1024 nodes, 4 one-way ports: steps that reach "
			"a T_B\n%-40s %6s %7s %17s %5s\n",
			"the paper's topology", "T_B", "paper", known_names[WITHOUT],
			known_names[NOW]);
	}
	for (size_t i = 0; i < sizeof(table_4) / sizeof(*table_4); i++) {
		/* The paper rounds. */
		int a = steps_within(without, table_4[i].factor + 0.0005);
		int b = steps_within(now, table_4[i].factor + 0.0005);

		paper = fmin(paper, us_of(table_4[i].steps, table_4[i].factor));
		if (table) {
			fprintf(table, "%-40s %6.3f %7d %17d %5d\n", table_4[i].expr,
				table_4[i].factor, table_4[i].steps, a, b);
		}
		if (json) {
			fprintf(json,
				"{\"bench\":\"moore\",\"table\":\"4\",\"bandwidth_factor\":%.3f,"
				"\"paper\":%d,\"without\":%d,\"now\":%d}\n",
				table_4[i].factor, table_4[i].steps, a, b);
		}
	}
	if (table) {
		fprintf(table, "%-47s %7.1f %17.1f %5.1f\n",
			"the least time, 1 MiB at 10 us and 100 Gbit/s, us",
			paper, fastest_us(without), fastest_us(now));
	}
}

/* ---- the paper's figure 12 ---- */

/* What is drawn for each size: T_B over its bound, of digraphs that need at most a step more than
 * Moore's bound in either phase. */
enum { PAPER, FIGURES = KNOWN + 1 };

static double factor_near_moore(const struct coll_frontier *f)
{
	double least = INFINITY, bound = (double)f->bound_num / (double)f->bound_den;

	for (size_t i = 0; i < f->points.n; i++) {
		if (f->points.v[i].steps <= 2 * f->steps_bound + 2) {
			least = fmin(least, factor_of(&f->points.v[i]) / bound);
		}
	}
	return least;
}

static int kautz_factor(int n, int d, double *ratio)
{
	struct topo *t = NULL;
	struct err err = { 0 };
	char expr[48];
	int steps, rc;
	mpq_t factor;

	mpq_init(factor);
	snprintf(expr, sizeof(expr), "GenKautz(%d,%d)", d, n);
	rc = topo_parse(expr, &t, NULL, &err);
	if (!rc) {
		rc = coll_bfb_factor(COLL_ALLREDUCE, t, &steps, factor, &err);
	}
	*ratio = mpq_get_d(factor) * n / (2 * (n - 1));
	if (rc) {
		fprintf(stderr, "%s: %s\n", expr, err.msg);
	}
	topo_free(t);
	mpq_clear(factor);
	return rc != 0;
}

static int show_degree(FILE *table, FILE *json, int panel, double value[FIGURES][BUCKETS])
{
	static const char *const names[FIGURES] = { "paper", "without", "now" };
	double sum[FIGURES] = { 0 }, most[FIGURES] = { 0 };
	int bad = 0;

	memset(value, 0, FIGURES * sizeof(*value));
	for (int i = 0; i < SIZES; i++) {
		int b = i / BUCKET < BUCKETS ? i / BUCKET : BUCKETS - 1;
		double ratio[FIGURES];

		bad |= kautz_factor(nodes_of(i), panels[panel].degree, &ratio[PAPER]);
		for (int k = 0; k < KNOWN; k++) {
			ratio[k + 1] = factor_near_moore(&found[k][panel][i]);
		}
		for (int k = 0; k < FIGURES; k++) {
			sum[k] += ratio[k];
			most[k] = fmax(most[k], ratio[k]);
			value[k][b] = fmax(value[k][b], ratio[k]);
		}
	}
	for (int k = 0; k < FIGURES; k++) {
		if (table) {
			fprintf(table, "%-17s %-18s %8.4f %8.4f\n", panels[panel].name,
				k == PAPER ? "generalized Kautz" : known_names[k - 1],
				sum[k] / SIZES, most[k]);
		}
		if (json) {
			fprintf(json, "{\"bench\":\"moore\",\"table\":\"figure 12\",\"degree\":%d,"
				"\"known\":\"%s\",\"mean\":%.6f,\"largest\":%.6f}\n",
				panels[panel].degree, names[k], sum[k] / SIZES, most[k]);
		}
	}
	return bad;
}

static int show_figure_12(FILE *table, FILE *json, const char *path)
{
	static const int simplex[] = { 0, 2 };
	static double value[2][FIGURES][BUCKETS];
	struct svg_series series[2][FIGURES];
	struct svg_chart charts[2];
	int bad = 0;

	if (table) {
		fprintf(table,
			"\nFigure 12, T_B over its bound, at most a step above Moore's bound in "
			"either phase (the paper: at most 2)\n%-17s %-18s %8s %8s\n",
			"", "", "mean", "largest");
	}
	for (int i = 0; i < 2; i++) {
		bad |= show_degree(table, json, simplex[i], value[i]);
		for (int k = 0; k < FIGURES; k++) {
			series[i][k] = (struct svg_series){
				k == PAPER ? "generalized Kautz" : known_names[k - 1],
				value[i][k],
			};
		}
		charts[i] = (struct svg_chart){
			.title = panels[simplex[i]].name, .note = "the largest of sixteen sizes",
			.x_label = "nodes up to", .y_label = "T_B / bound",
			.group = bucket_names(), .n_groups = BUCKETS, .series = series[i],
			.n_series = FIGURES, .lines = true,
		};
	}
	return bad | draw_charts(path, "topology_figure12_now", charts, 2);
}

static const char *json_path;

static int run(FILE *table, FILE *json)
{
	double cpu[KNOWN] = { 0 };
	int bad = ask(cpu);

	if (!bad) {
		bad = show_sweep(table, json, json_path);
		show_table_4(table, json);
		bad |= show_figure_12(table, json, json_path);
		if (table) {
			fprintf(table, "%d queries each: CPU %.1f s (%s), %.1f s (%s)\n",
				SIZES * PANELS, cpu[WITHOUT], known_names[WITHOUT], cpu[NOW],
				known_names[NOW]);
		}
	}
	for (int i = 0; i < KNOWN * PANELS * SIZES; i++) {
		coll_frontier_fini(&found[i / (PANELS * SIZES)][i / SIZES % PANELS][i % SIZES]);
	}
	return bad;
}

int main(int argc, char **argv)
{
	json_path = argc > 2 ? argv[2] : NULL;
	return bench_main(argc, argv, "bench_moore", run);
}
