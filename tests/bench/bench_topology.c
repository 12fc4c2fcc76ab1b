/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs and their breadth-first-broadcast schedules: the tables of the
 * direct-connect topologies paper with its figures beside, and how long
 * synthesis with verification and the finder take.
 *
 * bench_topology              tables on stdout
 * bench_topology --json FILE  the same, and JSON lines appended to FILE, and
 *                             topology_figure12.svg beside it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"
#include "lib/base/clock.h"
#include "lib/base/number/rat.h"
#include "lib/base/parallel.h"
#include "tests/bench/draw.h"
#include "tests/bench/program.h"

/* The paper's cost model: 10 us a step, 1 MB = 2^20 bytes, 100 Gbit/s. */
#define ALPHA_US 10.0
#define SIZE_BITS (8.0 * 1048576)
#define NODE_BITS_PER_US 1e5

static FILE *json;
static const char *json_path;

struct figures {
	int nodes, steps;
	double factor, seconds, cpu, mib;
	char exact[48];
	bool optimal;
};

static int measure(const char *expr, enum coll_kind kind, struct figures *f)
{
	struct coll_sched *s = NULL;
	struct coll_report r;
	struct topo *t = NULL;
	struct err err = { 0 };
	int64_t start = clk_now_ns();
	double cpu = cpu_seconds();
	int rc;

	coll_report_init(&r);
	/* coll_bfb verifies what it returns. */
	if ((rc = topo_parse(expr, &t, NULL, &err)) ||
	    (rc = coll_bfb(kind, t, &s, &err))) {
		goto out;
	}
	f->seconds = (double)(clk_now_ns() - start) / 1e9;
	f->cpu = cpu_seconds() - cpu;
	if ((rc = coll_verify(s, &r, &err))) {
		goto out;
	}
	f->nodes = r.nodes;
	f->steps = r.steps;
	f->factor = mpq_get_d(r.bandwidth_factor);
	f->optimal = r.bandwidth_optimal;
	rat_str(r.bandwidth_factor, f->exact, sizeof(f->exact));
out:
	if (rc) {
		fprintf(stderr, "%s: %s\n", expr, err.msg);
	}
	coll_report_fini(&r);
	coll_free(s);
	return rc;
}

/* In a process of its own, whose peak memory is its own. */
static int measure_apart(const char *expr, enum coll_kind kind,
			 struct figures *f)
{
	struct rusage usage;
	int fd[2], status, rc = -1;
	pid_t pid;

	memset(f, 0, sizeof(*f));
	if (pipe(fd) < 0) {
		return -1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		_exit(measure(expr, kind, f) ||
		      write(fd[1], f, sizeof(*f)) != sizeof(*f));
	}
	close(fd[1]);
	if (pid > 0 && wait4(pid, &status, 0, &usage) == pid && status == 0 &&
	    read(fd[0], f, sizeof(*f)) == sizeof(*f)) {
		f->mib = (double)usage.ru_maxrss / 1024;
		rc = 0;
	}
	close(fd[0]);
	return rc;
}

static void record(const char *table, const char *expr,
		   const struct figures *f)
{
	if (json) {
		fprintf(json, "{\"bench\":\"topology\",\"table\":\"%s\","
			"\"topology\":\"%s\",\"nodes\":%d,\"steps\":%d,"
			"\"bandwidth_factor\":\"%s\",\"seconds\":%.4f,"
			"\"cpu_seconds\":%.4f,\"peak_mib\":%.1f}\n", table,
			expr, f->nodes, f->steps, f->exact, f->seconds, f->cpu,
			f->mib);
	}
}

static const struct {
	const char *expr;
	int steps;
	double factor, us;	/* the paper's */
} table_4[] = {
	{ "GenKautz(4,1024)", 10, 2.664, 323.5 },
	{ "L3(C(16,{3,4}))", 12, 2.039, 291.0 },
	{ "L2(Pow(Diamond,2))", 16, 2.008, 328.4 },
	{ "Pow(Prod(UniRing(1,4),UniRing(1,8)),2)", 40, 1.998, 567.6 },
};

static int show_table_4(void)
{
	int bad = 0;

	printf("Table 4: all-reduce, N=1024, d=4, alpha 10 us, 1 MiB at 100 "
	       "Gbit/s (the paper's in brackets)\n");
	printf("%-42s %14s %24s %18s\n", "topology", "steps", "T_B in M/B",
	       "us");
	for (size_t i = 0; i < sizeof(table_4) / sizeof(table_4[0]); i++) {
		struct figures f;

		if (measure_apart(table_4[i].expr, COLL_ALLREDUCE, &f)) {
			bad = 1;
			continue;
		}
		printf("%-42s %8d (%3d) %16s (%.3f) %9.1f (%.1f)\n",
		       table_4[i].expr, f.steps, table_4[i].steps, f.exact,
		       table_4[i].factor, f.steps * ALPHA_US +
		       f.factor * SIZE_BITS / NODE_BITS_PER_US,
		       table_4[i].us);
		record("4", table_4[i].expr, &f);
	}
	return bad;
}

static int show_table_5(void)
{
	static const char *const rows[] = {
		"K(5)", "Deg(K(3),2)", "C(7,{2,3})", "K(4,4)", "Hamming(2,3)",
		"Deg(Ring(5),2)", "C(11,{2,3})", "C(12,{2,3})",
	};
	int bad = 0;

	printf("\nTable 5: all-reduce, d=4 (the paper: 2 steps for N=5, else "
	       "4, all bandwidth-optimal)\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct figures f;

		if (measure_apart(rows[i], COLL_ALLREDUCE, &f)) {
			bad = 1;
			continue;
		}
		printf("%5d %-20s %3d steps %10s %s\n", f.nodes, rows[i],
		       f.steps, f.exact, f.optimal ? "optimal"
						  : "NOT optimal");
		record("5", rows[i], &f);
	}
	return bad;
}

/* Table 6: the paper's seconds for breadth-first broadcast and for SCCL with
 * one chunk; 0: not given, below 0: less or more than that. */
static const struct {
	const char *expr;
	double bfb, sccl;
} table_6[] = {
	{ "Hypercube(2)", -0.01, 0.59 }, { "Hypercube(3)", -0.01, 0.86 },
	{ "Hypercube(4)", -0.01, 21.4 }, { "Hypercube(5)", 0.03, -1e4 },
	{ "Hypercube(6)", 0.17, -1e4 }, { "Hypercube(10)", 52.7, -1e4 },
	{ "Torus(2,2)", -0.01, 0.61 }, { "Torus(3,3)", -0.01, 1.00 },
	{ "Torus(4,4)", -0.01, 17.5 }, { "Torus(5,5)", 0.01, 3286 },
	{ "Torus(6,6)", 0.03, -1e4 }, { "Torus(50,50)", 61.1, -1e4 },
	{ "GenKautz(4,1024)", 0, 0 }, { "GenKautz(4,4096)", 0, 0 },
};

static const char *seconds_text(double s, char sign, char *buf, size_t size)
{
	if (s == 0) {
		snprintf(buf, size, "none");
	} else if (s < 0) {
		snprintf(buf, size, "%c %g", sign, -s);
	} else {
		snprintf(buf, size, "%g", s);
	}
	return buf;
}

static int show_table_6(void)
{
	int bad = 0;

	printf("\nTable 6: all-gather synthesis with verification (seconds in "
	       "the paper: its own, and SCCL with one chunk)\n");
	for (size_t i = 0; i < sizeof(table_6) / sizeof(table_6[0]); i++) {
		struct figures f;
		char bfb[16], sccl[16];

		if (measure_apart(table_6[i].expr, COLL_ALLGATHER, &f)) {
			bad = 1;
			continue;
		}
		printf("%5d %-17s %3d steps %10s %8.3f s, CPU %.3f (%s; %s) "
		       "%6.0f MiB\n", f.nodes, table_6[i].expr, f.steps,
		       f.exact, f.seconds, f.cpu,
		       seconds_text(table_6[i].bfb, '<', bfb, sizeof(bfb)),
		       seconds_text(table_6[i].sccl, '>', sccl, sizeof(sccl)),
		       f.mib);
		record("6", table_6[i].expr, &f);
		/* All are bandwidth-optimal but generalized Kautz graphs. */
		bad |= table_6[i].bfb != 0 && !f.optimal;
	}
	return bad;
}

static int show_finder(void)
{
	static const int queries[][2] = { { 1024, 4 }, { 1000, 8 },
					  { 2000, 2 }, { 2000, 16 } };
	int bad = 0;

	printf("\nFinder, one query, every point computed on its digraph\n");
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		struct coll_query q = { queries[i][0], queries[i][1], false,
					COLL_ALLREDUCE, 0, 0 };
		struct coll_frontier f;
		struct err err = { 0 };
		int64_t start = clk_now_ns();
		int rc = coll_find(&q, true, &f, &err);
		double seconds = (double)(clk_now_ns() - start) / 1e9;

		bad |= rc != 0;
		printf("N=%d d=%d: %zu points, %.3f s\n", q.n, q.degree,
		       f.points.n, seconds);
		if (json) {
			fprintf(json, "{\"bench\":\"topology\",\"table\":"
				"\"find\",\"nodes\":%d,\"degree\":%d,"
				"\"points\":%zu,\"seconds\":%.4f}\n", q.n,
				q.degree, f.points.n, seconds);
		}
		coll_frontier_fini(&f);
	}
	return bad;
}

#define SWEEP_NODES 2000

/* ---- figure 12 ---- */

#define DEGREES 4		/* 2, 4, 8, 16 */
#define BUCKET 50		/* nodes to a point of the chart */
#define BUCKETS (SWEEP_NODES / BUCKET)

struct kautz {
	double ratio[DEGREES][SWEEP_NODES + 1];	/* T_B / bound; 0: none */
	int n_parts;
	int rc[PARALLEL_MAX];
};

/* The steps that theorem 21 allows: one more than the Moore bound. */
static int max_steps(int n, int d)
{
	int64_t reached = 1, level = d;
	int steps = 0;

	for (; reached < n; level *= d) {
		reached += level;
		steps++;
	}
	return steps + 1;
}

static int measure_kautz(int n, int d, double *ratio)
{
	struct topo *t = NULL;
	struct err err = { 0 };
	char expr[48];
	int steps = 0, rc;
	mpq_t factor;

	mpq_init(factor);
	snprintf(expr, sizeof(expr), "GenKautz(%d,%d)", d, n);
	if ((rc = topo_parse(expr, &t, NULL, &err)) == 0) {
		rc = coll_bfb_factor(COLL_ALLGATHER, t, &steps, factor, &err);
	}
	*ratio = mpq_get_d(factor) * n / (n - 1);
	if (rc || steps > max_steps(n, d) || *ratio > 2) {
		fprintf(stderr, "%s: %d steps, ratio %.4f %s\n", expr, steps,
			*ratio, err.msg);
		rc = -1;
	}
	topo_free(t);
	mpq_clear(factor);
	return rc;
}

static void kautz_part(void *arg, int i)
{
	struct kautz *k = arg;

	for (int n = 3 + i; n <= SWEEP_NODES; n += k->n_parts) {
		for (int e = 0; e < DEGREES; e++) {
			int d = 2 << e;

			if (n > d && measure_kautz(n, d, &k->ratio[e][n])) {
				k->rc[i] = 1;
			}
		}
	}
}

/* The largest ratio of each BUCKET sizes. */
static int draw_figure_12(const struct kautz *k)
{
	static char name[DEGREES][8], group[BUCKETS][8];
	static double value[DEGREES][BUCKETS];
	const char *groups[BUCKETS];
	struct svg_series series[DEGREES];
	struct svg_chart chart = {
		.title = "T_B of generalized Kautz graphs over the bandwidth "
			 "bound (figure 12)",
		.note = "the largest of 50 sizes; the paper: at most 2",
		.x_label = "nodes up to", .y_label = "T_B / bound",
		.group = groups, .n_groups = BUCKETS, .series = series,
		.n_series = DEGREES, .lines = true,
	};

	for (int e = 0; e < DEGREES; e++) {
		snprintf(name[e], sizeof(name[e]), "d=%d", 2 << e);
		series[e] = (struct svg_series){ name[e], value[e] };
		for (int b = 0; b < BUCKETS; b++) {
			value[e][b] = -1;
			for (int n = b * BUCKET + 1; n <= (b + 1) * BUCKET;
			     n++) {
				double r = k->ratio[e][n];

				value[e][b] = r > 0 && r > value[e][b]
						      ? r : value[e][b];
			}
		}
	}
	for (int b = 0; b < BUCKETS; b++) {
		/* Every tenth is named. */
		if (b % 10 == 9) {
			snprintf(group[b], sizeof(group[b]), "%d",
				 (b + 1) * BUCKET);
		}
		groups[b] = group[b];
	}
	return draw_charts(json_path, "topology_figure12", &chart, 1);
}

/* All generalized Kautz graphs: never above 2, less at higher degrees, and at
 * most a step above the Moore bound (theorem 21). */
static int show_figure_12(void)
{
	static struct kautz k;
	int bad = 0;

	k.n_parts = parallel_width();
	parallel_run(k.n_parts, kautz_part, &k);
	for (int i = 0; i < k.n_parts; i++) {
		bad |= k.rc[i];
	}
	printf("\n");
	for (int e = 0; e < DEGREES; e++) {
		double sum = 0;
		int at = 0, graphs = 0, d = 2 << e;

		for (int n = d + 1; n <= SWEEP_NODES; n++) {
			sum += k.ratio[e][n];
			graphs++;
			at = k.ratio[e][n] > k.ratio[e][at] ? n : at;
		}
		printf("Figure 12, d=%2d: T_B / bound of %d graphs: mean "
		       "%.4f, largest %.4f at N=%d (the paper: at most 2)\n",
		       d, graphs, sum / graphs, k.ratio[e][at], at);
		if (json) {
			fprintf(json, "{\"bench\":\"topology\",\"table\":"
				"\"figure 12\",\"degree\":%d,\"graphs\":"
				"%d,\"mean\":%.6f,\"largest\":%.6f,"
				"\"nodes\":%d}\n", d, graphs, sum / graphs,
				k.ratio[e][at], at);
		}
	}
	return bad | draw_figure_12(&k);
}

/* ---- the sweep ---- */

/* All sizes to 2000 at degree 2, 4, 8, 16 (the paper: about a minute for each
 * of its families of candidates). */
static int show_sweep(bool both)
{
	static struct coll_query q[4 * SWEEP_NODES];
	static struct coll_frontier f[4 * SWEEP_NODES];
	struct err err = { 0 };
	size_t n = 0, points = 0;
	int64_t start = clk_now_ns();
	double cpu = cpu_seconds(), seconds;
	int rc;

	for (int nodes = 2; nodes <= SWEEP_NODES; nodes++) {
		for (int d = 2; d <= 16; d *= 2) {
			q[n++] = (struct coll_query){ nodes, d, both,
						      COLL_ALLREDUCE, 0, 0 };
		}
	}
	rc = coll_sweep(q, n, true, 2, f, &err);
	seconds = (double)(clk_now_ns() - start) / 1e9;
	cpu = cpu_seconds() - cpu;
	for (size_t i = 0; i < n; i++) {
		points += f[i].points.n;
		coll_frontier_fini(&f[i]);
	}
	printf("Finder, all N <= %d at d = 2, 4, 8, 16%s, two threads: %zu "
	       "points, %.1f s, CPU %.1f\n", SWEEP_NODES,
	       both ? ", bidirectional" : "", points, seconds, cpu);
	if (json) {
		fprintf(json, "{\"bench\":\"topology\",\"table\":\"sweep\","
			"\"bidirectional\":%s,\"points\":%zu,\"seconds\":"
			"%.2f,\"cpu_seconds\":%.2f}\n",
			both ? "true" : "false", points, seconds, cpu);
	}
	return rc != 0;
}

int main(int argc, char **argv)
{
	int bad;

	if (argc == 3 && strcmp(argv[1], "--json") == 0) {
		json_path = argv[2];
		json = fopen(json_path, "a");
		if (!json) {
			perror(argv[2]);
			return 1;
		}
	}
	bad = show_table_4();
	bad |= show_table_5();
	bad |= show_table_6();
	bad |= show_finder();
	bad |= show_figure_12();
	bad |= show_sweep(false);
	bad |= show_sweep(true);
	if (json) {
		fclose(json);
	}
	return bad;
}
