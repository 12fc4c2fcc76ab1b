/*
 * Digraphs and their breadth-first-broadcast schedules: the tables of the
 * direct-connect topologies paper with its figures beside, and how long
 * synthesis with verification and the finder take.
 *
 * bench_topology              tables on stdout
 * bench_topology --json FILE  the same, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective/find.h"
#include "lib/base/clk.h"
#include "lib/base/rat.h"

/* The paper's cost model: 10 us a step, 1 MB = 2^20 bytes, 100 Gbit/s. */
#define ALPHA_US 10.0
#define SIZE_BITS (8.0 * 1048576)
#define NODE_BITS_PER_US 1e5

static FILE *json;

struct figures {
	int nodes, steps;
	double factor, seconds, cpu, mib;
	char exact[48];
	bool optimal;
};

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int measure(const char *expr, enum coll_kind kind, struct figures *f)
{
	struct coll_sched *s = NULL;
	struct coll_report r;
	struct topo *t = NULL;
	struct err err = { 0 };
	int64_t start = clk_now_ns();
	double cpu = cpu_seconds();
	int rc = topo_parse(expr, &t, NULL, &err);

	/* coll_bfb verifies what it returns. */
	rc = rc ? rc : coll_bfb(kind, t, &s, &err);
	f->seconds = (double)(clk_now_ns() - start) / 1e9;
	f->cpu = cpu_seconds() - cpu;
	coll_report_init(&r);
	rc = rc ? rc : coll_verify(s, &r, &err);
	if (rc) {
		fprintf(stderr, "%s: %s\n", expr, err.msg);
	} else {
		f->nodes = r.nodes;
		f->steps = r.steps;
		f->factor = mpq_get_d(r.bandwidth_factor);
		f->optimal = r.bandwidth_optimal;
		rat_str(r.bandwidth_factor, f->exact, sizeof(f->exact));
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

static int show_speed(void)
{
	static const struct {
		const char *expr;
		double paper;	/* seconds, 0: not given */
	} rows[] = {
		{ "Hypercube(5)", 0.03 }, { "Hypercube(6)", 0.17 },
		{ "Hypercube(10)", 52.7 }, { "Torus(5,5)", 0.01 },
		{ "Torus(6,6)", 0.03 }, { "Torus(50,50)", 61.1 },
		{ "GenKautz(4,1024)", 0 }, { "GenKautz(4,4096)", 0 },
	};
	int bad = 0;

	printf("\nAll-gather synthesis with verification (the paper's times in "
	       "brackets, table 6)\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct figures f;
		char paper[16] = "none";

		if (measure_apart(rows[i].expr, COLL_ALLGATHER, &f)) {
			bad = 1;
			continue;
		}
		if (rows[i].paper > 0) {
			snprintf(paper, sizeof(paper), "%.2f", rows[i].paper);
		}
		printf("%5d %-20s %3d steps %12s %8.3f s, CPU %.3f (%s) "
		       "%6.0f MiB\n", f.nodes, rows[i].expr, f.steps, f.exact,
		       f.seconds, f.cpu, paper, f.mib);
		record("6", rows[i].expr, &f);
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
					COLL_ALLREDUCE };
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

/* Figure 12: T_B of generalized Kautz graphs, those on the frontier, over the
 * bandwidth bound (the paper: never above 2, less at higher degrees) and
 * theorem 21: at most a step a phase above the Moore bound. */
static int show_figure_12(const struct coll_query *q,
			  const struct coll_frontier *f, size_t n, int degree)
{
	double worst = 0, sum = 0;
	int at = 0, points = 0, late = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < f[i].points.n; k++) {
			const struct coll_point *p = &f[i].points.v[k];
			double ratio = (double)p->num / (double)p->den *
				       (double)f[i].bound_den /
				       (double)f[i].bound_num;

			if (q[i].degree != degree ||
			    strncmp(p->expr, "GenKautz", 8) != 0) {
				continue;
			}
			points++;
			sum += ratio;
			late += p->steps > f[i].steps_bound + 2;
			at = ratio > worst ? q[i].n : at;
			worst = ratio > worst ? ratio : worst;
		}
	}
	printf("Figure 12, d=%2d: T_B / bound of %d graphs: mean %.4f, largest "
	       "%.4f at N=%d (the paper: at most 2)\n", degree, points,
	       points ? sum / points : 0, worst, at);
	if (json) {
		fprintf(json, "{\"bench\":\"topology\",\"table\":\"figure 12\","
			"\"degree\":%d,\"graphs\":%d,\"mean\":%.6f,"
			"\"largest\":%.6f,\"nodes\":%d}\n", degree, points,
			points ? sum / points : 0, worst, at);
	}
	return late > 0 || worst > 2;
}

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
						      COLL_ALLREDUCE };
		}
	}
	rc = coll_sweep(q, n, true, 2, f, &err);
	seconds = (double)(clk_now_ns() - start) / 1e9;
	cpu = cpu_seconds() - cpu;
	for (int d = 2; d <= 16 && !rc && !both; d *= 2) {
		rc = show_figure_12(q, f, n, d);
	}
	for (size_t i = 0; i < n; i++) {
		points += f[i].points.n;
		coll_frontier_fini(&f[i]);
	}
	printf("Finder, all N <= %d at d = 2, 4, 8, 16%s, two threads: %zu "
	       "points, %.1f s, CPU %.1f\n", SWEEP_NODES,
	       both ? ", both ways" : "", points, seconds, cpu);
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
		json = fopen(argv[2], "a");
		if (!json) {
			perror(argv[2]);
			return 1;
		}
	}
	bad = show_table_4();
	bad |= show_table_5();
	bad |= show_speed();
	bad |= show_finder();
	bad |= show_sweep(false);
	bad |= show_sweep(true);
	if (json) {
		fclose(json);
	}
	return bad;
}
