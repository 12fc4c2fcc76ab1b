/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduces of 16,384 ranks on a torus, by every algorithm: processor time to make one, to prove
 * it, to write it and to simulate it in lockstep and asynchronously, and the peak memory of all
 * that. Each runs in a process of its own, as memory is counted by process.
 *
 * bench_large_torus                     a table on stdout
 * bench_large_torus --json              JSON lines on stdout
 * bench_large_torus --json FILE         the table, and JSON lines appended
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective/bfb/bfb.h"
#include "collective/torus/torus.h"
#include "tests/bench/program.h"

#define TORUS "Torus(128,128)"

/* 400 ns a hop and 500 ns a step at 400 Gbit/s, 2 MiB. */
static const struct coll_cost cost = {
	.alpha_ns = 500, .hop_ns = 400, .link_bps = 400000000000, .size_bytes = 2 << 20,
};

static const struct {
	const char *name;
	bool is_torus;		/* else breadth-first broadcast */
	struct torus_spec spec;
} rows[] = {
	{ "bfb", false, { 0 } },
	{ "swing", true, { .lines = TORUS_SWING, .rounds = -1 } },
	{ "swing-latency", true, { .lines = TORUS_SWING, .rounds = 0 } },
	{ "hybrid, 4 rounds", true, { .lines = TORUS_SWING, .rounds = 4 } },
	{ "mixed-radix", true, { .lines = TORUS_LEVELS, .rounds = TORUS_ANY_ROUNDS } },
	{ "recursive-doubling", true, { .lines = TORUS_DOUBLING, .rounds = 0, .one_port = true } },
	{ "rabenseifner", true, { .lines = TORUS_DOUBLING, .rounds = -1, .one_port = true } },
	{ "bucket", true, { .lines = TORUS_BUCKET, .rounds = -1 } },
	{ "ring", true, { .lines = TORUS_RING, .rounds = -1 } },
};

struct figures {
	double make, verify, write, lockstep, asynchronous;	/* s */
	double time_ns, factor;
	int64_t kept, routes;
	size_t bytes;
	int steps;
};

static double lap(double *since)
{
	double now = cpu_seconds(), took = now - *since;

	*since = now;
	return took;
}

static int make(size_t row, struct coll_sched **out, struct err *err)
{
	struct torus_spec spec = rows[row].spec;
	struct torus_shape *shape = NULL;
	struct topo *t = NULL;
	int rc = topo_parse(TORUS, &t, NULL, err);

	if (rc || !rows[row].is_torus) {
		return rc ? rc : coll_bfb(COLL_ALLREDUCE, t, out, err);
	}
	rc = torus_shape_new(t, NULL, TORUS_PLAIN, true, &shape, err);
	if (!rc && spec.rounds == TORUS_ANY_ROUNDS) {
		rc = torus_choose(shape, COLL_ALLREDUCE, &cost, &rows[row].spec, &spec, err);
	}
	if (!rc) {
		rc = torus_make(shape, &spec, COLL_ALLREDUCE, 0, out, err);
	}
	torus_shape_free(shape);
	topo_free(t);
	return rc;
}

static int simulate(const struct coll_sched *s, bool asynchronous, double *ns, struct err *err)
{
	struct coll_sim_options o = { .cost = cost, .asynchronous = asynchronous };
	struct coll_sim sim = { 0 };
	int rc = coll_simulate(s, &o, &sim, NULL, err);

	*ns = sim.time_ns;
	coll_sim_fini(&sim);
	return rc;
}

static int measure(size_t row, struct figures *f, struct err *err)
{
	struct coll_sched *s = NULL;
	struct coll_report r;
	struct buf b = { 0 };
	double at = cpu_seconds();
	int rc = make(row, &s, err);

	coll_report_init(&r);
	f->make = lap(&at);
	if (rc || (rc = coll_verify(s, &r, err))) {
		goto out;
	}
	f->verify = lap(&at);
	coll_to_proto(s, &b);
	f->write = lap(&at);
	f->bytes = b.len;
	buf_fini(&b);
	if ((rc = simulate(s, false, &f->time_ns, err))) {
		goto out;
	}
	f->lockstep = lap(&at);
	rc = simulate(s, true, &f->time_ns, err);
	f->asynchronous = lap(&at);
	f->factor = mpq_get_d(r.bandwidth_factor);
	f->steps = r.steps;
	f->routes = coll_n_arc_routes(s);
	coll_xfers(s, &f->kept);
out:
	coll_report_fini(&r);
	coll_free(s);
	return rc;
}

/* In another process; *peak_mb: its largest memory. Nonzero: it failed, and said why. */
static int measure_apart(size_t row, struct figures *f, long *peak_mb)
{
	struct rusage used;
	struct err err = { 0 };
	int ends[2], status;
	pid_t child;

	fflush(NULL);
	if (pipe(ends) || (child = fork()) < 0) {
		perror("bench_large_torus");
		return 1;
	}
	if (child == 0) {
		int rc = measure(row, f, &err);

		if (rc) {
			fprintf(stderr, "%s: %s\n", rows[row].name, err.msg);
		}
		_exit(rc || write(ends[1], f, sizeof(*f)) != sizeof(*f));
	}
	close(ends[1]);
	status = read(ends[0], f, sizeof(*f)) != sizeof(*f);
	close(ends[0]);
	while (wait4(child, NULL, 0, &used) < 0) {
	}
	*peak_mb = used.ru_maxrss / 1024;
	return status;
}

static void print(FILE *table, FILE *json, const char *name, const struct figures *f, long peak_mb)
{
	if (table) {
		fprintf(table, "%-20s %6d %9lld %8lld %9.4f %7.2f %8.2f %7.2f %9.1f %10.2f %10.2f "
			"%8ld %10.1f\n", name, f->steps, (long long)f->kept, (long long)f->routes,
			f->factor, f->make, f->verify, f->write, (double)f->bytes / 1e6,
			f->lockstep, f->asynchronous, peak_mb, f->time_ns / 1000);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"large_torus\",\"topology\":\"%s\",\"algorithm\":\"%s\","
			"\"steps\":%d,\"kept\":%lld,\"routes\":%lld,\"bandwidth_factor\":%.9g,"
			"\"make_s\":%.6f,\"verify_s\":%.6f,\"write_s\":%.6f,\"bytes\":%zu,"
			"\"lockstep_s\":%.6f,\"asynchronous_s\":%.6f,\"peak_mb\":%ld,"
			"\"time_ns\":%.0f}\n", TORUS, name, f->steps, (long long)f->kept,
			(long long)f->routes, f->factor, f->make, f->verify, f->write, f->bytes,
			f->lockstep, f->asynchronous, peak_mb, f->time_ns);
	}
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "all-reduces on " TORUS ", processor seconds\n%-20s %6s %9s %8s %9s "
			"%7s %8s %7s %9s %10s %10s %8s %10s\n", "algorithm", "steps", "kept",
			"routes", "T_B M/B", "make", "verify", "write", "MB", "lockstep",
			"asynchron.", "peak MB", "2 MiB us");
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct figures f = { 0 };
		long peak_mb;

		if (measure_apart(i, &f, &peak_mb)) {
			failed = 1;
		} else {
			print(table, json, rows[i].name, &f, peak_mb);
		}
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_large_torus", run);
}
