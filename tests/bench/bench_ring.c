/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpTree plans on WDM rings: steps against the closed form, time against the
 * bound, and what planning costs. Each ring is planned in a process of its
 * own, so that the peak memory is its own.
 *
 * bench_ring                 a table on stdout
 * bench_ring --json          JSON lines on stdout
 * bench_ring --json FILE     the table, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "optree/baselines/baselines.h"
#include "tests/bench/program.h"

#define SHARD_BYTES 4000000
#define CHANNEL_BPS 40000000000
#define ALPHA_NS 25000

static const int sizes[] = { 64, 256, 512, 1024, 2048 };
static const int widths[] = { 16, 64, 96, 128 };

struct figures {
	int depth, steps;
	int64_t closed_form, paper, time_ns, bound_ns, planning_ns;
	double gap;
};

static int plan_ring(int n, int w, struct figures *f)
{
	struct optree_params p = {
		.n = n, .channels = w, .fibres = 1,
		.shard_bytes = SHARD_BYTES, .channel_bps = CHANNEL_BPS,
		.alpha_ns = ALPHA_NS,
	};
	struct optree_plan plan;
	struct err err = { 0 };
	int64_t start = clk_now_ns();
	int rc = optree_plan(&p, &plan, &err);

	if (rc) {
		fprintf(stderr, "n=%d w=%d: %s\n", n, w, err.msg);
		return rc;
	}
	*f = (struct figures){
		.depth = plan.depth, .steps = plan.steps,
		.closed_form = plan.closed_form_steps,
		.paper = optree_closed_form(n, w, optree_best_depth(n)),
		.time_ns = plan.time_ns, .bound_ns = plan.bound_ns,
		.planning_ns = clk_now_ns() - start, .gap = plan.gap,
	};
	optree_plan_fini(&plan);
	return 0;
}

/* Plans in a child process. *peak_kib: its largest resident size. */
static int plan_apart(int n, int w, struct figures *f, long *peak_kib)
{
	struct rusage usage;
	int fd[2], status, rc = -1;
	pid_t pid;

	if (pipe(fd) < 0) {
		return -1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		_exit(plan_ring(n, w, f) ||
		      write(fd[1], f, sizeof(*f)) != sizeof(*f));
	}
	close(fd[1]);
	if (pid > 0 && wait4(pid, &status, 0, &usage) == pid && status == 0 &&
	    read(fd[0], f, sizeof(*f)) == sizeof(*f)) {
		*peak_kib = usage.ru_maxrss;
		rc = 0;
	}
	close(fd[0]);
	return rc;
}

static void print_row(FILE *out, int n, int w, const struct figures *f,
		      long peak_kib)
{
	fprintf(out, "%5d %4d %5d %7lld %7lld %6d %10.3f %10.3f %6.2f %7.3f "
		"%6ld\n", n, w, f->depth, (long long)f->paper,
		(long long)f->closed_form, f->steps, (double)f->time_ns / 1e6,
		(double)f->bound_ns / 1e6, f->gap,
		(double)f->planning_ns / 1e9, peak_kib / 1024);
}

static void print_json(FILE *out, int n, int w, const struct figures *f,
		       long peak_kib)
{
	fprintf(out, "{\"bench\":\"ring\",\"nodes\":%d,\"channels\":%d,"
		"\"depth\":%d,\"paper_steps\":%lld,"
		"\"closed_form_steps\":%lld,\"steps\":%d,\"time_ns\":%lld,"
		"\"bound_ns\":%lld,\"gap\":%.6f,\"planning_s\":%.6f,"
		"\"peak_mib\":%ld}\n", n, w, f->depth, (long long)f->paper,
		(long long)f->closed_form, f->steps, (long long)f->time_ns,
		(long long)f->bound_ns, f->gap,
		(double)f->planning_ns / 1e9, peak_kib / 1024);
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "all-gather of %d bytes a node at %lld bit/s a "
			"channel, %d ns a step\n    n    w depth   paper  "
			"closed  built    time_ms   bound_ms    gap  plan_s "
			"   MiB\n", SHARD_BYTES, (long long)CHANNEL_BPS,
			ALPHA_NS);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t j = 0; j < sizeof(widths) / sizeof(widths[0]);
		     j++) {
			struct figures f;
			long peak;

			if (plan_apart(sizes[i], widths[j], &f, &peak)) {
				failed = 1;
				continue;
			}
			if (table) {
				print_row(table, sizes[i], widths[j], &f, peak);
			}
			if (json) {
				print_json(json, sizes[i], widths[j], &f, peak);
			}
		}
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_ring", run);
}
