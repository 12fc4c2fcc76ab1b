/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact all-to-all optima: how long until the rate is a fraction with a
 * checked proof. The paper (all-to-all-mcf, section 5) has floating point
 * rates only.
 *
 * bench_mcf_exact                  a table on stdout
 * bench_mcf_exact --json           JSON lines on stdout
 * bench_mcf_exact --json FILE      the table, and JSON lines appended to FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/flow.h"
#include "lib/base/clock.h"
#include "tests/bench/program.h"

static const char *const exprs[] = {
	"K(4,4)", "Hypercube(3)", "Hypercube(4)", "Hypercube(5)",
	"Torus(3,3)", "Torus(4,4)", "Torus(5,5)", "Torus(6,6)", "Torus(8,8)",
	"Torus(3,3,3)", "Torus(16,16,16)", "GenKautz(4,16)",
	"GenKautz(4,25)", "GenKautz(4,36)", "GenKautz(4,64)",
	"GenKautz(4,81)", "GenKautz(4,100)", "GenKautz(4,128)",
	"GenKautz(4,256)",
};

/* The rate to *rate, owned, NULL without a proof. */
static int measure(const char *expr, char **rate, struct mcf_result *res,
		   double *seconds, struct err *err)
{
	struct mcf_options opt = { .deadline = deadline_in(INT64_C(60000000000), NULL) };
	struct mcf_proof *proof = NULL;
	int64_t start = clk_now_ns();
	struct topo *t = NULL;
	struct mcf *p = NULL;
	mpq_t f;
	int rc;

	if ((rc = topo_parse(expr, &t, NULL, err)) ||
	    (rc = mcf_new(t, true, &p, err))) {
		goto out;
	}
	rc = mcf_exact(p, t, &opt, res, &proof, err);
	*seconds = (double)(clk_now_ns() - start) / 1e9;
	if (proof) {
		mpq_init(f);
		mpq_inv(f, proof->congestion);
		*rate = mpq_get_str(NULL, 10, f);
		mpq_clear(f);
	}
out:
	mcf_proof_free(proof);
	mcf_free(p);
	topo_free(t);
	return rc;
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "%-18s %20s %15s %7s %8s\n", "topology", "rate",
			"rate", "passes", "s");
	}
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct mcf_result res;
		struct err err = { 0 };
		char *rate = NULL;
		double s;

		if (measure(exprs[i], &rate, &res, &s, &err)) {
			fprintf(stderr, "%s: %s\n", exprs[i], err.msg);
			failed = 1;
			continue;
		}
		if (table) {
			fprintf(table, "%-18s %20s %15.12f %7d %8.3f\n",
				exprs[i], rate ? rate : "not found",
				1 / res.congestion, res.passes, s);
		}
		if (json) {
			fprintf(json, "{\"bench\":\"mcf_exact\","
				"\"topology\":\"%s\",\"rate\":\"%s\","
				"\"gap\":%g,\"s\":%.6f}\n", exprs[i],
				rate ? rate : "", res.gap, s);
		}
		free(rate);
		fflush(NULL);
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_mcf_exact", run);
}
