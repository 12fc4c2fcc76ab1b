/*
 * Routing and wavelength assignment: the networks and demand sets of the
 * literature, from ../shared/rwa-data when that folder is there, and random
 * demands on rings. Bound and channels beside the best figure published.
 *
 * bench_rwa                  a table on stdout
 * bench_rwa --json FILE      the table, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clk.h"
#include "lib/base/file.h"
#include "lib/base/rng.h"
#include "rwa/mesh.h"
#include "rwa/rwa.h"

#define DATA "../shared/rwa-data/"
#define TIME_LIMIT_S 30

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

static char *slurp(const char *name, const char *end)
{
	char path[256], *text;
	struct err err = { 0 };
	size_t len;

	snprintf(path, sizeof(path), "%s%s%s", DATA, name, end);
	if (file_read(path, RWA_MESH_MAX_FILE, &text, &len, &err)) {
		fprintf(stderr, "%s: %s\n", path, err.msg);
		return NULL;
	}
	return text;
}

static int load(const struct instance *in, struct rwa_mesh **m,
		struct err *err)
{
	char *text = slurp(in->net, ".net");
	int rc = text ? rwa_mesh_read_net(in->net, text, m, err) : WEFT_EIO;

	free(text);
	if (rc || !in->trf) {
		return rc ? rc : rwa_mesh_all_to_all(*m, err);
	}
	text = slurp(in->trf, ".trf");
	rc = text ? rwa_mesh_read_trf(*m, in->trf, text, err) : WEFT_EIO;
	free(text);
	return rc;
}

static void print_instance(const struct instance *in,
			   const struct rwa_mesh_result *res, double s,
			   FILE *json)
{
	const char *what = in->trf ? in->trf : in->net;
	char best[16] = "-";

	if (in->best) {
		snprintf(best, sizeof(best), "%d", in->best);
	}
	printf("%-16s %-6s %6d %8d %4d %8.2f %6s\n", what,
	       in->trf ? "file" : "all", res->bound, res->channels,
	       res->channels - res->bound, s, best);
	fflush(stdout);
	if (json) {
		fprintf(json, "{\"bench\":\"rwa\",\"instance\":\"%s\","
			      "\"bound\":%d,\"channels\":%d,\"seconds\":%.3f,"
			      "\"best\":%d}\n",
			what, res->bound, res->channels, s, in->best);
	}
}

static int run_instance(const struct instance *in, FILE *json)
{
	struct rwa_mesh_options opt = { .time_limit_s = TIME_LIMIT_S,
					.seed = 1 };
	struct rwa_mesh_result res;
	struct rwa_mesh *m = NULL;
	struct err err = { 0 };
	int64_t start;
	int rc = load(in, &m, &err);

	start = clk_now_ns();
	rc = rc ? rc : rwa_mesh_solve(m, &opt, &res, &err);
	if (rc) {
		fprintf(stderr, "%s: %s\n", in->net, err.msg);
	} else {
		print_instance(in, &res, (double)(clk_now_ns() - start) / 1e9,
			       json);
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

	if (access(DATA, R_OK) != 0) {
		printf("skipped: no instances in %s\n", DATA);
	} else {
		printf("%-16s %-6s %6s %8s %4s %8s %6s\n", "instance",
		       "demands", "bound", "channels", "gap", "seconds",
		       "best");
	}
	for (size_t i = 0; access(DATA, R_OK) == 0 && !rc &&
			   i < sizeof(instances) / sizeof(*instances); i++) {
		rc = run_instance(&instances[i], json);
	}
	if (json) {
		fclose(json);
	}
	return rc ? 1 : 0;
}
