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

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/rng.h"
#include "rwa/mesh/mesh.h"
#include "rwa/ring/ring.h"

#define DATA "tests/data/rwa"
#define TIME_LIMIT_S 30
#define HARD_LIMIT_S 60		/* Noronha's random sets */
#define FIT_LIMIT_S 10
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
	int rc = 0;

	*m = NULL;
	if (trf) {
		demands = slurp(trf, ".trf");
	}
	if (text && (demands || !trf)) {
		rc = rwa_mesh_read_net(net, text, m, err);
		if (!rc) {
			rc = trf ? rwa_mesh_read_trf(*m, trf, demands, err)
				 : rwa_mesh_all_to_all(*m, err);
		}
	}
	free(text);
	free(demands);
	return rc;
}

struct row {
	int bound, channels;
	double seconds;
	int seeds;
};

static void print_instance(const struct instance *in, const struct row *r,
			   FILE *json)
{
	const char *what = in->trf ? in->trf : in->net;
	char best[16] = "-";

	if (in->best) {
		snprintf(best, sizeof(best), "%d", in->best);
	}
	printf("%-16s %-6s %6d %8d %4d %8.2f %5d %6s\n", what,
	       in->trf ? "file" : "all", r->bound, r->channels,
	       r->channels - r->bound, r->seconds, r->seeds, best);
	fflush(stdout);
	if (json) {
		fprintf(json, "{\"bench\":\"rwa\",\"instance\":\"%s\","
			      "\"bound\":%d,\"channels\":%d,\"seconds\":%.3f,"
			      "\"seeds\":%d,\"best\":%d}\n",
			what, r->bound, r->channels, r->seconds, r->seeds,
			in->best);
	}
}

static int solve_once(const struct rwa_mesh *m,
		      const struct rwa_mesh_options *opt, struct row *r,
		      struct err *err)
{
	struct rwa_mesh_result res;
	int64_t start = clk_now_ns();
	int rc = rwa_mesh_solve(m, opt, &res, err);
	double s = (double)(clk_now_ns() - start) / 1e9;

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
	struct rwa_mesh_options opt = { .time_limit_s = TIME_LIMIT_S };
	struct row r = { 0 };
	struct rwa_mesh *m;
	struct err err = { 0 };
	int rc = load(in->net, in->trf, &m, &err);
	uint64_t seeds = m && m->lightpaths <= SMALL ? SEEDS : 1;

	if (in->net[0] == 'Y') {
		opt.time_limit_s = HARD_LIMIT_S;
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
		print_instance(in, &r, json);
	}
	rwa_mesh_free(m);
	return rc;
}

static int run_few(const struct few *f, FILE *json)
{
	struct rwa_mesh_options opt = { .time_limit_s = FIT_LIMIT_S,
					.seed = 1, .channels = f->channels };
	struct rwa_mesh_result res;
	struct rwa_mesh *m;
	struct err err = { 0 };
	int64_t start;
	int rc = load(f->net, NULL, &m, &err);

	start = clk_now_ns();
	rc = rc || !m ? WEFT_EIO : rwa_mesh_solve(m, &opt, &res, &err);
	if (rc) {
		fprintf(stderr, "%s: %s\n", f->net, err.msg);
	} else {
		double s = (double)(clk_now_ns() - start) / 1e9;

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
	struct rwa_arc *arcs = calloc((size_t)N * (M - 1), sizeof(*arcs));
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
	rc = arcs ? rwa_all_to_all_groups(&ring, members, M, GROUPS, arcs, &res,
					  &err)
		  : WEFT_ENOMEM;
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
	       "bound", "channels", "gap", "seconds", "seeds", "best");
	for (size_t i = 0; !rc && i < sizeof(instances) / sizeof(*instances);
	     i++) {
		rc = run_instance(&instances[i], json);
	}
	printf("%-16s %8s %8s %6s %6s %8s\n", "all-to-all in", "channels",
	       "bound", "served", "gap %", "seconds");
	for (size_t i = 0; !rc && i < sizeof(fews) / sizeof(*fews); i++) {
		rc = run_few(&fews[i], json);
	}
	if (json) {
		fclose(json);
	}
	return rc ? 1 : 0;
}
