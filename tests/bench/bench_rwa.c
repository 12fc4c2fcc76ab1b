/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing and wavelength assignment: the networks and demand sets of the
 * literature, from tests/data/rwa or, where they are too large to be there,
 * from the folder that RWA_DATA names. Bound and channels beside the best
 * figure published; small networks with five seeds, of which the worst is
 * shown. Then how many lightpaths fit in fewer channels.
 *
 * bench_rwa                  a table on stdout
 * bench_rwa --json FILE      the table, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/number/rng.h"
#include "rwa/mesh/mesh.h"
#include "rwa/ring/ring.h"

#define DATA "tests/data/rwa"
#define FIT_WORK 400000		/* lightpaths placed, where not all fit */
#define SEEDS 5
#define SMALL 1500		/* demands solved with all seeds */

struct instance {
	const char *net, *trf;	/* trf NULL: all-to-all */
	int best;		/* channels published, or reached by others */
};

static const struct instance instances[] = {
	{ "nsfnet14_21", NULL, 13 }, { "nsfnet14_22", NULL, 12 },
	{ "cost239_11_26a", NULL, 4 }, { "eon20_39", NULL, 18 },
	{ "usnet24_43", NULL, 32 }, { "german17_26", NULL, 35 },
	{ "arpanet20_30", NULL, 33 }, { "arpanet20_32", NULL, 33 },
	{ "italian21_36", NULL, 28 }, { "geant2", NULL, 62 },
	{ "att71_175", NULL, 210 }, { "att90_137", NULL, 528 },
	{ "usa100", NULL, 513 },
	{ "NSF", "NSF.1", 22 }, { "NSF", "NSF.3", 22 },
	{ "NSF", "NSF.12", 38 }, { "NSF", "NSF.48", 41 },
	{ "NSF2", "NSF2.1", 21 }, { "NSF2", "NSF2.3", 21 },
	{ "NSF2", "NSF2.12", 35 }, { "NSF2", "NSF2.48", 39 },
	{ "EON", "EON", 22 }, { "ATT", "ATT", 20 }, { "ATT2", "ATT2", 113 },
	{ "Y.4_seed=1", "Y.4.20_seed=1", 19 },
	{ "Y.4_seed=5", "Y.4.20_seed=5", 0 },
	{ "Y.5_seed=1", "Y.5.60_seed=1", 35 },
	{ "Y.5_seed=5", "Y.5.60_seed=5", 0 },
	{ "Y.5_seed=1", "Y.5.80_seed=1", 46 },
	{ "Y.5_seed=5", "Y.5.80_seed=5", 0 },
	{ "Y.4_seed=1", "Y.4.100_seed=1", 85 },
	{ "Y.4_seed=5", "Y.4.100_seed=5", 0 },
	{ "Y.3_seed=1", "Y.3.100_seed=1", 141 },
	{ "Y.3_seed=5", "Y.3.100_seed=5", 135 },
};

/* Networks that are made here, all-to-all. */
struct made {
	enum { TORUS, TREE, SPARSE } kind;
	int a, b;		/* sides of a torus; else nodes and seed */
	int best;
};

static const struct made mades[] = {
	{ TORUS, 4, 25, 315 }, { TORUS, 5, 20, 252 }, { TORUS, 6, 17, 217 },
	{ TORUS, 8, 13, 169 }, { TORUS, 10, 10, 134 },
	{ TREE, 100, 1, 0 }, { TREE, 100, 2, 0 }, { TREE, 100, 3, 0 },
	{ SPARSE, 161, 1, 0 }, { SPARSE, 161, 2, 0 }, { SPARSE, 161, 3, 0 },
};

/* How many lightpaths of all-to-all fit when channels are too few. */
struct few {
	const char *net;
	int channels;
};

static const struct few fews[] = {
	{ "nsfnet14_21", 6 }, { "nsfnet14_21", 9 }, { "eon20_39", 6 },
	{ "eon20_39", 12 }, { "geant2", 9 }, { "geant2", 30 },
	{ "att71_175", 100 },
};

/* The file's text, NULL when neither folder has it. */
static char *slurp(const char *name, const char *end)
{
	const char *folders[] = { DATA, getenv("RWA_DATA") };
	char path[512], *text;
	size_t len;

	for (int i = 0; i < 2; i++) {
		if (!folders[i]) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s%s", folders[i], name, end);
		if (file_read(path, RWA_MESH_MAX_FILE, &text, &len, NULL) ==
		    0) {
			return text;
		}
	}
	return NULL;
}

/* *m NULL when a file is not there. */
static int load(const char *net, const char *trf, struct rwa_mesh **m,
		struct err *err)
{
	char *text = slurp(net, ".net"), *demands = NULL;
	struct err_list errs = { 0 };
	int rc = 0;

	*m = NULL;
	if (trf) {
		demands = slurp(trf, ".trf");
	}
	if (text && (demands || !trf)) {
		rc = rwa_mesh_read_net(net, text, m, &errs);
		if (!rc) {
			rc = trf ? rwa_mesh_read_trf(*m, trf, demands, &errs)
				 : rwa_mesh_all_to_all(*m, err);
		}
	}
	if (rc && errs.n) {
		*err = errs.v[0];
	}
	err_list_fini(&errs);
	free(text);
	free(demands);
	return rc;
}

struct row {
	int bound, channels;
	double seconds;
	int seeds;
};

/* CPU time of the process, all threads. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_row(const char *what, bool file, int published, const struct row *r,
		      FILE *json)
{
	char best[16] = "-";

	if (published) {
		snprintf(best, sizeof(best), "%d", published);
	}
	printf("%-16s %-6s %6d %8d %4d %8.2f %5d %6s\n", what,
	       file ? "file" : "all", r->bound, r->channels,
	       r->channels - r->bound, r->seconds, r->seeds, best);
	fflush(stdout);
	if (json) {
		fprintf(json, "{\"bench\":\"rwa\",\"instance\":\"%s\","
			      "\"bound\":%d,\"channels\":%d,\"seconds\":%.3f,"
			      "\"seeds\":%d,\"best\":%d}\n",
			what, r->bound, r->channels, r->seconds, r->seeds, published);
	}
}

static int solve_once(const struct rwa_mesh *m,
		      const struct rwa_mesh_options *opt, struct row *r,
		      struct err *err)
{
	struct rwa_mesh_result res;
	double s = cpu_s();
	int rc = rwa_mesh_solve(m, opt, &res, err);

	s = cpu_s() - s;

	if (rc) {
		return rc;
	}
	r->bound = res.bound > r->bound ? res.bound : r->bound;
	r->channels = res.channels > r->channels ? res.channels : r->channels;
	r->seconds = s > r->seconds ? s : r->seconds;
	r->seeds++;
	rwa_mesh_result_fini(&res);
	return 0;
}

static int run_instance(const struct instance *in, FILE *json)
{
	struct rwa_mesh_options opt = { .threads = 1 };
	struct row r = { 0 };
	struct rwa_mesh *m;
	struct err err = { 0 };
	int rc = load(in->net, in->trf, &m, &err);
	uint64_t seeds = m && m->lightpaths <= SMALL ? SEEDS : 1;

	if (in->net[0] == 'Y') {
		seeds = 1;
	}
	if (!rc && !m) {
		printf("%-16s skipped: set RWA_DATA\n",
		       in->trf ? in->trf : in->net);
		return 0;
	}
	for (opt.seed = 1; !rc && opt.seed <= seeds; opt.seed++) {
		rc = solve_once(m, &opt, &r, &err);
	}
	if (rc) {
		fprintf(stderr, "%s: %s\n", in->net, err.msg);
	} else {
		print_row(in->trf ? in->trf : in->net, in->trf, in->best, &r, json);
	}
	rwa_mesh_free(m);
	return rc;
}

/* Both directions of a link. */
static int link(struct rwa_mesh *m, int a, int b)
{
	struct rwa_mesh_arc to = { .src = a, .dst = b, .fibres = 1 };
	struct rwa_mesh_arc back = { .src = b, .dst = a, .fibres = 1 };
	int rc = rwa_mesh_add_arc(m, &to, NULL);

	return rc ? rc : rwa_mesh_add_arc(m, &back, NULL);
}

/* Each node and the next in both dimensions. */
static int make_torus(struct rwa_mesh *m, int a, int b)
{
	int rc = 0;

	for (int v = 0; !rc && v < a * b; v++) {
		rc = link(m, v, v / b * b + (v + 1) % b);
		if (!rc) {
			rc = link(m, v, (v + b) % (a * b));
		}
	}
	return rc;
}

/* Each node hangs on one of the few before it. */
static int make_tree(struct rwa_mesh *m, int n, struct rng *rng)
{
	int rc = 0;

	for (int v = 1; !rc && v < n; v++) {
		rc = link(m, v, v - 1 - (int)rng_below(rng, (uint64_t)(v < 6 ? v : 6)));
	}
	return rc;
}

/* Points in a square, two of them linked when no third one is nearer to both
 * than they are to each other: connected, planar, of degree 2.4 or so. */
static int make_sparse(struct rwa_mesh *m, int n, struct rng *rng)
{
	double *x = x_new((size_t)n, sizeof(*x)), *y = x_new((size_t)n, sizeof(*y));
	int rc = 0;

	for (int v = 0; v < n; v++) {
		x[v] = (double)rng_below(rng, 1 << 20);
		y[v] = (double)rng_below(rng, 1 << 20);
	}
	for (int a = 0; !rc && a < n; a++) {
		for (int b = 0; !rc && b < a; b++) {
			double d = hypot(x[a] - x[b], y[a] - y[b]);
			bool near = true;

			for (int c = 0; near && c < n; c++) {
				near = c == a || c == b || hypot(x[a] - x[c], y[a] - y[c]) >= d ||
				       hypot(x[b] - x[c], y[b] - y[c]) >= d;
			}
			rc = near ? link(m, a, b) : 0;
		}
	}
	free(x);
	free(y);
	return rc;
}

static int run_made(const struct made *in, FILE *json)
{
	static const char *const formats[] = { "torus %dx%d", "tree %d #%d", "sparse %d #%d" };
	struct rwa_mesh_options opt = { .threads = 1, .seed = 1 };
	struct row r = { 0 };
	struct rwa_mesh *m;
	struct err err = { 0 };
	struct rng rng;
	char name[32];
	int rc = rwa_mesh_new(in->kind == TORUS ? in->a * in->b : in->a, &m, &err);

	rng_seed(&rng, (uint64_t)in->b);
	if (!rc) {
		rc = in->kind == TORUS ? make_torus(m, in->a, in->b)
		     : in->kind == TREE ? make_tree(m, in->a, &rng)
					: make_sparse(m, in->a, &rng);
	}
	if (!rc && !(rc = rwa_mesh_all_to_all(m, &err))) {
		rc = solve_once(m, &opt, &r, &err);
	}
	snprintf(name, sizeof(name), formats[in->kind], in->a, in->b);
	if (rc) {
		fprintf(stderr, "%s: %s\n", name, err.msg);
	} else {
		print_row(name, false, in->best, &r, json);
	}
	rwa_mesh_free(m);
	return rc;
}

static int run_few(const struct few *f, FILE *json)
{
	struct rwa_mesh_options opt = { .threads = 1, .seed = 1, .work = FIT_WORK,
					.channels = f->channels };
	struct rwa_mesh_result res;
	struct rwa_mesh *m;
	struct err err = { 0 };
	double s = cpu_s();
	int rc = load(f->net, NULL, &m, &err);

	rc = rc || !m ? WEFT_EIO : rwa_mesh_solve(m, &opt, &res, &err);
	if (rc) {
		fprintf(stderr, "%s: %s\n", f->net, err.msg);
	} else {
		s = cpu_s() - s;
		printf("%-16s %8d %8lld %6lld %6.1f %8.2f\n", f->net,
		       f->channels, (long long)res.lightpaths_bound,
		       (long long)res.lightpaths,
		       100.0 * (double)(res.lightpaths_bound -
					res.lightpaths) /
			       (double)res.lightpaths_bound, s);
		if (json) {
			fprintf(json, "{\"bench\":\"rwa-fit\",\"instance\":"
				      "\"%s\",\"channels\":%d,\"bound\":%lld,"
				      "\"served\":%lld,\"seconds\":%.3f}\n",
				f->net, f->channels,
				(long long)res.lightpaths_bound,
				(long long)res.lightpaths, s);
		}
		rwa_mesh_result_fini(&res);
	}
	rwa_mesh_free(m);
	return rc;
}

/* All-to-all among the 64 members of each of 16 groups: a whole stage of a
 * tree on 1024 nodes and 64 channels. */
static int run_stage(void)
{
	enum { N = 1024, M = 64, GROUPS = N / M };
	struct rwa_ring ring = { .n = N, .fibres = 1, .channels = 64 };
	struct rwa_arc *arcs = x_new((size_t)N * (M - 1), sizeof(*arcs));
	int32_t members[N];
	struct rwa_result res;
	struct err err = { 0 };
	int64_t start = clk_now_ns();
	int rc;

	for (int g = 0; g < GROUPS; g++) {
		for (int i = 0; i < M; i++) {
			members[g * M + i] = g + i * GROUPS;
		}
	}
	rc = rwa_all_to_all_groups(&ring, members, M, GROUPS, arcs, &res, &err);
	if (rc == 0) {
		printf("ring of 1024, 64 channels, %d lightpaths: %d colours, "
		       "bound %d, %.1f ms\n", N * (M - 1), res.colours,
		       res.bound, (double)(clk_now_ns() - start) / 1e6);
	}
	free(arcs);
	return rc;
}

int main(int argc, char **argv)
{
	FILE *json = argc > 2 && strcmp(argv[1], "--json") == 0
			     ? fopen(argv[2], "a") : NULL;
	int rc = run_stage();

	printf("%-16s %-6s %6s %8s %4s %8s %5s %6s\n", "instance", "demands",
	       "bound", "channels", "gap", "CPU s", "seeds", "best");
	for (size_t i = 0; !rc && i < sizeof(instances) / sizeof(*instances);
	     i++) {
		rc = run_instance(&instances[i], json);
	}
	for (size_t i = 0; !rc && i < sizeof(mades) / sizeof(*mades); i++) {
		rc = run_made(&mades[i], json);
	}
	printf("%-16s %8s %8s %6s %6s %8s\n", "all-to-all in", "channels",
	       "bound", "served", "gap %", "CPU s");
	for (size_t i = 0; !rc && i < sizeof(fews) / sizeof(*fews); i++) {
		rc = run_few(&fews[i], json);
	}
	if (json) {
		fclose(json);
	}
	return rc ? 1 : 0;
}
