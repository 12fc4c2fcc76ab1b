/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compact schedules of many ranks: processor time to make and prove one, to
 * write it, to read and verify it again, and to cut out the part of a rank.
 *
 * bench_compact                     a table on stdout
 * bench_compact --json              JSON lines on stdout
 * bench_compact --json FILE         the table, and JSON lines appended
 */
#include <stdio.h>
#include <stdlib.h>

#include "collective/bfb/bfb.h"
#include "collective/flow/flow.h"
#include "tests/bench/program.h"

static const struct {
	const char *topology;
	enum coll_kind kind;
} rows[] = {
	{ "Torus(64,64)", COLL_ALLREDUCE }, { "Torus(128,128)", COLL_ALLREDUCE },
	{ "Hypercube(14)", COLL_ALLGATHER },
	{ "Cay(128:32,r=5,{(7,11),(84,17)})", COLL_ALLREDUCE },
	{ "Cay(128:128,r=5,{(17,31),(40,9)})", COLL_ALLREDUCE },
	{ "Torus(8,8,8)", COLL_ALLTOALL },
	{ "Torus(16,16,16)", COLL_ALLTOALL }, { "Torus(32,32,32)", COLL_ALLTOALL },
};

struct figures {
	double make, write, verify, part;	/* s */
	size_t bytes;
	int64_t kept;
	struct coll_report report;
};

static int make(const char *expr, enum coll_kind kind, struct coll_sched **out, struct err *err)
{
	struct mcf_sched_options opt = { .flow.gap = MCF_DEFAULT_GAP, .loss = MCF_SCHED_LOSS };
	struct topo *t = NULL;
	int rc = topo_parse(expr, &t, NULL, err);

	if (rc || kind != COLL_ALLTOALL) {
		return rc ? rc : coll_bfb(kind, t, out, err);
	}
	rc = mcf_schedule(t, &opt, out, NULL, err);
	topo_free(t);
	return rc;
}

static double lap(double *since)
{
	double now = cpu_seconds(), took = now - *since;

	*since = now;
	return took;
}

static int measure(const char *expr, enum coll_kind kind, struct figures *f, struct err *err)
{
	struct coll_sched *s = NULL, *again = NULL, *part = NULL;
	struct buf b = { 0 };
	double at = cpu_seconds();
	int rc = make(expr, kind, &s, err);

	f->make = lap(&at);
	if (rc) {
		goto out;
	}
	coll_to_proto(s, &b);
	f->write = lap(&at);
	f->bytes = b.len;
	if ((rc = coll_from_proto(b.data, b.len, &again, err)) ||
	    (rc = coll_verify(again, &f->report, err))) {
		goto out;
	}
	f->verify = lap(&at);
	rc = coll_part_of(again, 1, &part, err);
	f->part = lap(&at);
	coll_xfers(s, &f->kept);
out:
	buf_fini(&b);
	coll_free(part);
	coll_free(again);
	coll_free(s);
	return rc;
}

static void print(FILE *table, FILE *json, const char *expr, enum coll_kind kind,
		  const struct figures *f)
{
	const struct coll_report *r = &f->report;

	if (table) {
		fprintf(table, "%-34s %-10s %12lld %9lld %6d %9.4f %8.3f %8.3f %8.3f %8.3f %9zu\n",
			expr, coll_kind_name(kind), (long long)r->transfers, (long long)f->kept,
			r->steps, mpq_get_d(r->bandwidth_factor), f->make, f->write, f->verify,
			f->part, f->bytes);
	}
	if (json) {
		fprintf(json, "{\"bench\":\"compact\",\"topology\":\"%s\",\"collective\":\"%s\","
			"\"transfers\":%lld,\"kept\":%lld,\"steps\":%d,\"bandwidth_factor\":%.9g,"
			"\"bandwidth_bound\":%.9g,\"make_s\":%.6f,\"write_s\":%.6f,"
			"\"verify_s\":%.6f,\"part_s\":%.6f,\"bytes\":%zu}\n", expr,
			coll_kind_name(kind), (long long)r->transfers, (long long)f->kept,
			r->steps, mpq_get_d(r->bandwidth_factor), mpq_get_d(r->bandwidth_bound),
			f->make, f->write, f->verify, f->part, f->bytes);
	}
}

static int run(FILE *table, FILE *json)
{
	int failed = 0;

	if (table) {
		fprintf(table, "%-34s %-10s %12s %9s %6s %9s %8s %8s %8s %8s %9s\n", "topology",
			"collective", "transfers", "kept", "steps", "T_B M/B", "make s",
			"write s", "verify s", "part s", "bytes");
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct figures f = { 0 };
		struct err err = { 0 };

		coll_report_init(&f.report);
		if (measure(rows[i].topology, rows[i].kind, &f, &err)) {
			fprintf(stderr, "%s: %s\n", rows[i].topology, err.msg);
			failed = 1;
		} else {
			print(table, json, rows[i].topology, rows[i].kind, &f);
		}
		coll_report_fini(&f.report);
	}
	return failed;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, "bench_compact", run);
}
