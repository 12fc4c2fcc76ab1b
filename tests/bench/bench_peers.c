/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-gathers of weft beside those of TACOS and ForestColl, in one model: a step takes 0.5 us and
 * the time of its fullest arc, a unit of capacity 400 Gbit/s. weft's are those of
 * `weft schedule make` with that cost, made and verified here. The peers' were measured once with
 * their public versions (22 November 2026, one core, the same model): TACOS in C++ -O3, the best
 * over 1 to 8 chunks and 3 seeds, as times; ForestColl in Python, its trees pipelined, as a
 * quotient of two digits over the time of breadth-first broadcast, which is measured here again.
 * Their seconds were taken on that machine, and not of all.
 *
 * bench_peers              a table on stdout
 * bench_peers --json FILE  the same, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>

#include "collective/make/make.h"
#include "tests/bench/program.h"

#define ALPHA_NS 500
#define LINK_BPS INT64_C(400000000000)

enum peer { TACOS, FORESTCOLL };

/* cpu_s: 0 where it was not noted. */
static const struct row {
	const char *expr;	/* NULL: DGX-1 */
	enum peer peer;
	double at[2];	/* 1 MiB and 1 GiB: of TACOS us, of ForestColl as said above */
	double cpu_s;
} rows[] = {
	{ "Hypercube(6)", TACOS, { 9.10, 3544 }, 0 },
	{ "Hypercube(8)", TACOS, { 18.6, 2700 }, 0.76 },
	{ "Torus(4,4,4)", TACOS, { 9.10, 3608 }, 0 },
	{ "Torus(8,8,8)", TACOS, { 46.5, 3650 }, 8.6 },
	{ "GenKautz(4,64)", TACOS, { 17.4, 7057 }, 0 },
	{ "Mesh(5,5)", TACOS, { 16.1, 10314 }, 0 },
	{ "Mesh(10,10)", TACOS, { 35.5, 10680 }, 0 },
	{ "Mesh(20,20)", TACOS, { 110, 10837 }, 7.2 },
	{ "Jellyfish(64,4,1)", TACOS, { 14.1, 5348 }, 0 },
	{ NULL, FORESTCOLL, { 1.79, 0.81 }, 0.13 },
	{ "Hypercube(4)", FORESTCOLL, { 2.04, 1.03 }, 0 },
	{ "Torus(4,4)", FORESTCOLL, { 1.80, 1.03 }, 0 },
	{ "Mesh(5,5)", FORESTCOLL, { 1.37, 0.98 }, 1.8 },
	{ "Jellyfish(32,4,1)", FORESTCOLL, { 1.84, 0.80 }, 7.3 },
	{ "Xpander(4,8,1)", FORESTCOLL, { 1.97, 0.60 }, 16.6 },
	{ "Jellyfish(64,4,1)", FORESTCOLL, { 2.13, 0.66 }, 90 },
};

static const char *const peers[] = { "TACOS", "ForestColl" };
static const char *const sizes[] = { "1 MiB", "1 GiB" };

/* NVLinks between the GPUs of a DGX-1. */
static int dgx1(struct topo **out, struct err *err)
{
	static const int links[8][8] = {
		{ 0, 1, 1, 2, 2, 0, 0, 0 }, { 1, 0, 2, 1, 0, 2, 0, 0 },
		{ 1, 2, 0, 2, 0, 0, 1, 0 }, { 2, 1, 2, 0, 0, 0, 0, 1 },
		{ 2, 0, 0, 0, 0, 1, 1, 2 }, { 0, 2, 0, 0, 1, 0, 2, 1 },
		{ 0, 0, 1, 0, 1, 2, 0, 2 }, { 0, 0, 0, 1, 2, 1, 2, 0 },
	};
	int rc = topo_new(8, out, err);

	for (int u = 0; u < 8; u++) {
		for (int v = 0; v < 8 && rc == 0; v++) {
			rc = links[u][v] ? topo_add_arc(*out, u, v, links[u][v], 0, err) : 0;
		}
	}
	if (rc == 0) {
		topo_freeze(*out);
	}
	return rc;
}

/* What one algorithm makes, "bfb" in one batch: its name, steps and time, and the CPU seconds that
 * it took. */
struct made {
	char algorithm[32];
	int steps;
	double us, cpu_s;
};

static int make(const struct row *row, const struct topo *t, const char *algorithm, int size,
		struct made *out, struct err *err)
{
	struct coll_cost cost = { .alpha_ns = ALPHA_NS, .link_bps = LINK_BPS,
				  .size_bytes = INT64_C(1) << (size ? 30 : 20) };
	struct coll_make_query q = { .kind = COLL_ALLGATHER, .topo = t,
				     .algorithm = coll_algorithm_find(algorithm, COLL_ALLGATHER),
				     .expr = row->expr, .cost = &cost, .extra_steps = -1,
				     .batches = strcmp(algorithm, "bfb") == 0 };
	struct coll_made m;
	double start = cpu_seconds();
	int rc = coll_make(&q, &m, err);

	if (rc) {
		return rc;
	}
	*out = (struct made){ .steps = m.report.steps, .us = (double)m.time_ns / 1000,
			      .cpu_s = cpu_seconds() - start };
	snprintf(out->algorithm, sizeof(out->algorithm), "%s", m.algorithm->name);
	coll_made_fini(&m);
	return 0;
}

/* The peer's time: of ForestColl times that of breadth-first broadcast in one batch. */
static int peer_us(const struct row *row, const struct topo *t, int size, double *us,
		   struct err *err)
{
	struct made bfb;
	int rc;

	*us = row->at[size];
	if (row->peer == TACOS) {
		return 0;
	}
	rc = make(row, t, "bfb", size, &bfb, err);
	*us *= rc ? 0 : bfb.us;
	return rc;
}

static void show(FILE *table, FILE *json, const struct row *row, int size, const struct made *m,
		 double peer)
{
	const char *name = row->expr ? row->expr : "DGX-1";

	if (table) {
		fprintf(table, "%-18s %-6s %-7s %5d %10.1f %8.3f   %-11s %10.1f ", name,
			sizes[size], m->algorithm, m->steps, m->us, m->cpu_s, peers[row->peer],
			peer);
		fprintf(table, row->cpu_s > 0 ? "%8.2f" : "       -", row->cpu_s);
		fprintf(table, "   %6.3f\n", m->us / peer);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"peers\",\"topology\":\"%s\",\"size\":\"%s\","
			"\"algorithm\":\"%s\",\"steps\":%d,\"us\":%.3f,\"cpu_seconds\":%.4f,"
			"\"peer\":\"%s\",\"peer_us\":%.2f", name, sizes[size], m->algorithm,
			m->steps, m->us, m->cpu_s, peers[row->peer], peer);
		if (row->cpu_s > 0) {
			fprintf(json, ",\"peer_cpu_seconds\":%.2f", row->cpu_s);
		}
		fprintf(json, ",\"weft_over_peer\":%.4f}\n", m->us / peer);
	}
}

static int measure(FILE *table, FILE *json, const struct row *row)
{
	struct topo *t = NULL;
	struct err err = { 0 };
	int rc = row->expr ? topo_parse(row->expr, &t, NULL, &err) : dgx1(&t, &err);

	for (int size = 0; size < 2 && rc == 0; size++) {
		struct made m;
		double peer;

		if ((rc = make(row, t, "auto", size, &m, &err)) == 0 &&
		    (rc = peer_us(row, t, size, &peer, &err)) == 0) {
			show(table, json, row, size, &m, peer);
		}
	}
	if (rc) {
		fprintf(stderr, "%s: %s\n", row->expr ? row->expr : "DGX-1", err.msg);
	}
	topo_free(t);
	return rc;
}

static int run(FILE *table, FILE *json)
{
	if (table) {
		fprintf(table, "all-gather, 0.5 us a step, 400 Gbit/s a link; weft: measured, with "
			"verification\nTACOS: its times on 22 November 2026, same model, best of 1 "
			"to 8 chunks and 3 seeds\nForestColl: its quotient (two digits) over "
			"breadth-first broadcast on that day, times that of today\n"
			"-: not noted; weft / peer: below 1 weft is faster\n\n"
			"%-18s %-6s %-7s %5s %10s %8s   %-11s %10s %8s   %s\n", "topology", "size",
			"weft", "steps", "us", "CPU s", "peer", "us", "CPU s", "weft / peer");
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (measure(table, json, &rows[i])) {
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_peers", run);
}
