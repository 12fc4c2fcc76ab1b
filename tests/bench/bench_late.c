/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late takers and staggered pieces (`-a late`) where breadth-first broadcast is not balanced:
 * random directed Cayley graphs, and others of the docs. How far T_B of an all-gather is above what
 * the links into a node allow, in as many steps, and with one and two more.
 *
 * bench_late                 a table on stdout
 * bench_late --json [FILE]   JSON lines, appended to FILE beside the table
 */
#include <stdlib.h>

#include "collective/bfb/bfb.h"
#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "tests/bench/program.h"

#define EXTRA 3			/* 0, 1, 2 more steps */
#define CASES_A_SIZE 5

struct row {
	char expr[128];
	int steps;		/* of breadth-first broadcast */
	double bfb, late[EXTRA];	/* T_B over the bound, less one */
	int chunks[EXTRA];
	double cpu[EXTRA];
};

/* T_B over the bound, less one. */
static int excess_of(struct coll_sched *s, double *excess, int *steps)
{
	struct coll_report r;
	struct err err = { 0 };
	mpq_t bound;
	int rc;

	coll_report_init(&r);
	mpq_init(bound);
	coll_late_bound(COLL_ALLGATHER, coll_topo(s), bound);
	rc = coll_verify(s, &r, &err);
	if (rc == 0) {
		mpq_div(bound, r.bandwidth_factor, bound);
		*excess = mpq_get_d(bound) - 1;
		*steps = r.steps;
	}
	mpq_clear(bound);
	coll_report_fini(&r);
	return rc;
}

static int measure(struct row *r)
{
	struct err err = { 0 };

	for (int extra = -1; extra < EXTRA; extra++) {
		struct coll_sched *s = NULL;
		struct topo *t = NULL;
		double cpu = cpu_seconds(), excess = 0;
		int steps = 0, rc = topo_parse(r->expr, &t, NULL, &err);

		if (rc == 0) {
			rc = extra < 0 ? coll_bfb(COLL_ALLGATHER, t, &s, &err)
				       : coll_late(COLL_ALLGATHER, t, extra, NULL, &s, &err);
		}
		if (rc || (rc = excess_of(s, &excess, &steps))) {
			fprintf(stderr, "%s: %s\n", r->expr, err.msg);
			coll_free(s);
			return rc;
		}
		if (extra < 0) {
			r->steps = steps;
			r->bfb = excess;
		} else {
			r->late[extra] = excess;
			r->chunks[extra] = coll_chunks(s);
			r->cpu[extra] = cpu_seconds() - cpu;
		}
		coll_free(s);
	}
	return 0;
}

static void show(FILE *table, FILE *json, const struct row *r)
{
	if (table) {
		fprintf(table, "%-50s %3d  %7.2f", r->expr, r->steps, 100 * r->bfb);
		for (int e = 0; e < EXTRA; e++) {
			fprintf(table, "  %7.2f %5d %6.2f", 100 * r->late[e], r->chunks[e],
				r->cpu[e]);
		}
		fprintf(table, "\n");
		fflush(table);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"late\",\"topology\":\"%s\",\"steps\":%d,\"bfb\":%.6f,"
			"\"late\":[%.6f,%.6f,%.6f],\"cpu_seconds\":[%.3f,%.3f,%.3f]}\n", r->expr,
			r->steps, r->bfb, r->late[0], r->late[1], r->late[2], r->cpu[0], r->cpu[1],
			r->cpu[2]);
	}
}

/* A directed Cayley graph of Z_n : Z_k, n k nodes, with random generators. */
static void random_expression(struct rng *rng, int nodes, int degree, char *expr, size_t size)
{
	struct buf b = { 0 };
	int n, k, r;

	do {
		int power = 1;

		n = 2 + (int)rng_below(rng, (uint64_t)nodes - 1);
		k = nodes / n;
		r = 1 + (int)rng_below(rng, (uint64_t)n - 1);
		for (int i = 0; i < k; i++) {
			power = power * r % n;
		}
		if (n * k == nodes && k > 1 && r > 1 && power == 1) {
			break;
		}
	} while (true);
	buf_printf(&b, "DiCay(%d:%d,r=%d,{", n, k, r);
	for (int i = 0; i < degree; i++) {
		buf_printf(&b, "%s(%d,%d)", i ? "," : "", (int)rng_below(rng, (uint64_t)n),
			   (int)rng_below(rng, (uint64_t)k));
	}
	buf_printf(&b, "})");
	snprintf(expr, size, "%.*s", (int)b.len, b.data);
	buf_fini(&b);
}

/* Whether it is a graph whose breadth-first broadcast misses the bound. */
static bool is_unbalanced(const char *expr)
{
	struct err err = { 0 };
	struct topo *t = NULL;
	mpq_t bound, factor;
	bool yes = false;
	int steps;

	mpq_inits(bound, factor, NULL);
	if (topo_parse(expr, &t, NULL, &err) == 0 &&
	    coll_bfb_factor(COLL_ALLGATHER, t, &steps, factor, &err) == 0) {
		coll_late_bound(COLL_ALLGATHER, t, bound);
		yes = mpq_cmp(factor, bound) > 0;
	}
	mpq_clears(bound, factor, NULL);
	topo_free(t);
	return yes;
}

static int show_random(FILE *table, FILE *json)
{
	static const int sizes[][2] = { { 64, 3 }, { 100, 4 }, { 128, 4 }, { 256, 4 } };
	int met[EXTRA] = { 0 }, near[EXTRA] = { 0 }, rows = 0;
	struct rng rng;

	rng_seed(&rng, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int k = 0; k < CASES_A_SIZE; k++, rows++) {
			struct row r = { .steps = 0 };

			do {
				random_expression(&rng, sizes[i][0], sizes[i][1], r.expr,
						  sizeof(r.expr));
			} while (!is_unbalanced(r.expr));
			if (measure(&r)) {
				return 1;
			}
			show(table, json, &r);
			for (int e = 0; e < EXTRA; e++) {
				met[e] += r.late[e] < 1e-12;
				near[e] += r.late[e] < 1e-3;
			}
		}
	}
	for (int e = 0; e < EXTRA && table; e++) {
		fprintf(table, "%d extra steps: %d of %d at the bound, %d within 0.1 %%\n", e,
			met[e], rows, near[e]);
	}
	return 0;
}

static int run(FILE *table, FILE *json)
{
	static const char *const named[] = {
		"C(100,{1,3,7})", "GenKautz(2,24)", "GenKautz(4,100)",
		"GenKautz(4,256)", "GenKautz(4,1000)", "DeBruijn(2,6)", "Jellyfish(32,4,1)",
		"Jellyfish(64,4,1)", "Xpander(4,8,1)", "Mesh(4,4)", "Mesh(3,5)",
	};
	int bad = 0;

	if (table) {
		fprintf(table,
			"T_B of an all-gather above the bound of the links in %%, chunks and "
			"CPU seconds: breadth-first, late with 0, 1 and 2 extra steps\n");
	}
	bad = show_random(table, json);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		struct row r = { .steps = 0 };

		snprintf(r.expr, sizeof(r.expr), "%s", named[i]);
		if (measure(&r)) {
			bad = 1;
		} else {
			show(table, json, &r);
		}
	}
	return bad;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_late", run);
}
