/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what "auto" tries: never slower than a name on it, and what each option means. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

static const struct coll_cost cost = {
	.alpha_ns = 2000, .hop_ns = 500, .forwards = true, .link_bps = INT64_C(25000000000),
	.size_bytes = 1 << 18,
};

/* Of what was made: it is what was asked for, and its figures are those of a replay. */
static void check(const struct coll_make_query *q, const struct coll_made *m)
{
	int64_t ns;

	assert_int_equal(coll_kind_of(m->sched), q->kind);
	assert_int_equal(coll_verify(m->sched, NULL, NULL), 0);
	if (q->cost) {
		assert_int_equal(coll_time(m->sched, &m->report, q->cost, &ns, NULL, NULL), 0);
		assert_int_equal(ns, m->time_ns);
	}
}

/* True when a is the better one, as the query counts. All-to-alls whose T_B differ by what
 * rounding may lose count as equal. */
static bool is_better(const struct coll_make_query *q, const struct coll_made *a,
		      const struct coll_made *b)
{
	int cmp = mpq_cmp(a->report.bandwidth_factor, b->report.bandwidth_factor);
	double ratio = mpq_get_d(a->report.bandwidth_factor) /
		       mpq_get_d(b->report.bandwidth_factor);

	if (q->kind == COLL_ALLTOALL && !q->cost) {
		return ratio * (1 + 2 * q->pairs.loss) < 1 ||
		       (cmp <= 0 && a->report.steps < b->report.steps);
	}
	return q->cost ? a->time_ns < b->time_ns
		       : cmp < 0 || (cmp == 0 && a->report.steps < b->report.steps);
}

static void compare(const char *expr, enum coll_kind kind, const struct coll_cost *c)
{
	struct topo *t = NULL;
	struct coll_make_query q;
	struct coll_made best, one;
	int made = 0;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	q = coll_make_job(kind, NULL, t, c);
	q.expr = expr;
	q.links_only = !c;
	assert_int_equal(coll_make(&q, &best, NULL), 0);
	check(&q, &best);
	for (int i = 0; (q.algorithm = coll_algorithm(i)); i++) {
		if (!(q.algorithm->kinds & COLL_KIND_BIT(kind))) {
			continue;
		}
		if (coll_make(&q, &one, NULL)) {
			assert_null(one.sched);
			continue;
		}
		made++;
		check(&q, &one);
		assert_ptr_equal(one.algorithm, q.algorithm);
		if (is_better(&q, &one, &best)) {
			fail_msg("%s on %s: %s is better than auto", coll_kind_name(kind), expr,
				 q.algorithm->name);
		}
		coll_made_fini(&one);
	}
	assert_true(made > 0);
	coll_made_fini(&best);
	topo_free(t);
}

static void auto_is_best(void **state)
{
	static const char *const exprs[] = {
		"Ring(5)", "Mesh(3,3)", "Jellyfish(12,3,1)", "GenKautz(2,9)", "L(K(3,3))",
		"Pow(Ring(3),2)", "Hypercube(3)", "Torus(3,5)", "Prod(Ring(4),K(3))",
	};

	(void)state;
	for (int i = 0; i < ALL_OR_SOME(9, 1); i++) {
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			if (!in_turn(i + kind, ALL_OR_SOME(3, 4))) {
				continue;
			}
			compare(exprs[i], (enum coll_kind)kind, &cost);
			compare(exprs[i], (enum coll_kind)kind, NULL);
		}
	}
}

static struct coll_made make(const char *expr, const char *algorithm, int batches, int chunks,
			     const struct coll_cost *c)
{
	struct coll_make_query q = { .kind = COLL_ALLREDUCE, .cost = c,
				     .algorithm = coll_algorithm_find(algorithm, COLL_ALLREDUCE),
				     .batches = batches, .chunks = chunks, .extra_steps = -1 };
	struct coll_made m;
	struct topo *t = NULL;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	q.topo = t;
	assert_int_equal(coll_make(&q, &m, NULL), 0);
	check(&q, &m);
	topo_free(t);
	return m;
}

/* Rings of 4 and pairs of rings of 2 are the same, whatever the expression calls them. */
static void two_names(void **state)
{
	static const char *const exprs[][2] = {
		{ "Hypercube(4)", "Torus(4,4)" }, { "Torus(2,2,3)", "Torus(4,3)" },
		{ "Prod(Mesh(2,2),K(5))", "Prod(Ring(4),K(5))" },
	};

	(void)state;
	for (int i = 0; i < 3 * 4; i++) {
		struct coll_cost c = cost;
		struct coll_made m[2];

		c.size_bytes = INT64_C(64) << i / 3 * 6;
		for (int k = 0; k < 2; k++) {
			m[k] = make(exprs[i % 3][k], "auto", 0, 0, &c);
		}
		assert_int_equal(m[0].time_ns, m[1].time_ns);
		coll_made_fini(&m[0]);
		coll_made_fini(&m[1]);
	}
}

/* From and to any root a part of what has no root, in no more time; and "auto" takes no more than
 * the fastest of these. */
static void trimmed(void **state)
{
	static const char *const exprs[] = { "Torus(4,4)", "Torus(3,5)", "GenKautz(3,14)",
					     "Mesh(3,4)", "K(5)", "Jellyfish(12,3,1)" };

	(void)state;
	for (int i = 0; i < 6 * 4; i += ALL_OR_SOME(1, 11)) {
		static const int64_t sizes[] = { 64, 1 << 18, 1 << 26 };
		static const enum coll_kind kinds[] = { COLL_BROADCAST, COLL_REDUCE, COLL_GATHER,
							COLL_SCATTER };
		struct coll_cost forwards = cost;
		struct topo *t = NULL;
		struct coll_make_query q;
		struct coll_made whole, one, best;

		forwards.forwards = true;
		forwards.size_bytes = sizes[i % 3];
		assert_int_equal(topo_parse(exprs[i % 6], &t, NULL, NULL), 0);
		q = coll_make_job(coll_trimmed_from(kinds[i / 6]), NULL, t, &forwards);
		assert_int_equal(coll_make(&q, &whole, NULL), 0);
		q.kind = kinds[i / 6];
		q.root = i % topo_ranks(t);
		assert_int_equal(coll_make(&q, &best, NULL), 0);
		q.algorithm = coll_algorithm_find("trimmed", q.kind);
		assert_int_equal(coll_make(&q, &one, NULL), 0);
		check(&q, &one);
		assert_true(one.report.steps <= whole.report.steps);
		assert_true(one.time_ns <= whole.time_ns);
		assert_true(best.time_ns <= whole.time_ns);
		coll_made_fini(&whole);
		coll_made_fini(&best);
		coll_made_fini(&one);
		topo_free(t);
	}
}

/* Batches that are asked for are made, also where they are worse, but for those that gain
 * nothing; without a cost none is chosen; chunks are as asked for. */
static void options(void **state)
{
	struct coll_made m = make("Mesh(4,4)", "bfb", 0, 0, NULL);

	(void)state;
	assert_int_equal(m.batches, 1);
	coll_made_fini(&m);
	m = make("GenKautz(2,24)", "bfb", 16, 0, &cost);
	assert_int_equal(m.batches, 16);
	coll_made_fini(&m);
	m = make("Torus(3,3)", "bfb", 6, 0, NULL);
	assert_int_equal(m.batches, 1);
	coll_made_fini(&m);
	m = make("Mesh(4,4)", "bfb", 1, 12, NULL);
	assert_int_equal(coll_chunks(m.sched), 12);
	coll_made_fini(&m);
}

/* In a fabric with switches, what is compared is there. */
static void embedded(void **state)
{
	struct coll_fabric f = { .name = "fabric" };
	struct coll_make_query q = { .cost = &cost, .fabric = &f,
				     .extra_steps = -1 };
	struct coll_made m;
	struct topo *t = NULL;

	(void)state;
	assert_int_equal(topo_parse("DgxA100(2,nvlink)", &f.topo, NULL, NULL), 0);
	assert_int_equal(coll_terminals_see(f.topo, &t, NULL), 0);
	q.topo = t;
	for (int kind = 0; kind < COLL_KINDS; kind++) {
		q.kind = (enum coll_kind)kind;
		if (kind == COLL_ALLTOALL || !in_turn(kind, ALL_OR_SOME(1, 3))) {
			continue;
		}
		assert_int_equal(coll_make(&q, &m, NULL), 0);
		check(&q, &m);
		assert_true(coll_is_embedded(m.sched));
		assert_true(!m.logical == m.is_physical);
		assert_true(!m.logical || !coll_is_embedded(m.logical));
		coll_made_fini(&m);
	}
	topo_free(t);
	topo_free(f.topo);
}

static void refused(void **state)
{
	struct coll_make_query q;
	struct coll_made m;
	struct topo *t = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topo_parse("Ring(4)", &t, NULL, NULL), 0);
	q = coll_make_job(COLL_BROADCAST, coll_algorithm_find("bfb", COLL_ALLGATHER), t, NULL);
	assert_int_equal(coll_make(&q, &m, &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "algorithm bfb: not supported for broadcast");
	assert_null(m.sched);
	q = coll_make_job(COLL_ALLGATHER, coll_algorithm_find("expand", COLL_ALLGATHER), t, NULL);
	assert_int_equal(coll_make(&q, &m, NULL), WEFT_EINVAL);
	q.expr = "Ring(4)";
	assert_int_equal(coll_make(&q, &m, NULL), WEFT_EUNSUPPORTED);
	topo_free(t);
}

/* What an algorithm says before it is made is what it takes then. */
static void predicted(void **state)
{
	static const char *const exprs[] = { "Ring(5)", "Torus(4,4)", "Hypercube(3)", "K(6)" };
	int seen = 0;

	(void)state;
	for (int i = 0; i < 4 * COLL_KINDS; i++) {
		enum coll_kind kind = (enum coll_kind)(i % COLL_KINDS);
		struct coll_make_query q = coll_make_job(kind, NULL, NULL, &cost);
		struct topo *t = NULL;

		assert_int_equal(topo_parse(exprs[i / COLL_KINDS], &t, NULL, NULL), 0);
		q.topo = t;
		for (int a = 0; (q.algorithm = coll_algorithm(a)); a++) {
			struct coll_prediction p = { 0 };
			struct coll_made m;
			struct err err = { 0 };

			if (!(q.algorithm->kinds & COLL_KIND_BIT(kind)) || !q.algorithm->predict ||
			    q.algorithm->predict(&q, &p, &err)) {
				continue;
			}
			q.batches = !coll_has_root(kind);
			assert_int_equal(coll_make(&q, &m, NULL), 0);
			if (fabs(p.time_ns - (double)m.time_ns) > 2) {
				fail_msg("%s of %s on %s: %.1f ns predicted, %lld made",
					 q.algorithm->name, coll_kind_name(kind),
					 exprs[i / COLL_KINDS], p.time_ns, (long long)m.time_ns);
			}
			coll_made_fini(&m);
			seen++;
		}
		topo_free(t);
	}
	assert_true(seen > 40);
}

static int64_t time_of(const char *edges, enum coll_kind kind, const struct coll_cost *c)
{
	struct coll_make_query q;
	struct coll_made m;
	struct topo *t;
	int64_t ns;

	assert_int_equal(topo_from_edges(edges, strlen(edges), &t, NULL), 0);
	q = (struct coll_make_query){ .kind = kind, .topo = t, .cost = c, .extra_steps = -1 };
	assert_int_equal(coll_make(&q, &m, NULL), 0);
	check(&q, &m);
	ns = m.time_ns;
	coll_made_fini(&m);
	topo_free(t);
	return ns;
}

/* An all-reduce is no slower than what it may be made of: Petersen's graph with links of three
 * capacities, where spanning trees move less but take more steps. */
static void both_halves(void **state)
{
	static const char graph[] = "undirected\n0 1 2\n1 2 2\n2 3 2\n3 4 2\n4 0 2\n0 5 3\n1 6 3\n"
				    "2 7 3\n3 8 3\n4 9 3\n5 7 1\n6 8 1\n7 9 1\n8 5 1\n9 6 1\n";
	const struct coll_cost c = { .alpha_ns = 10000, .link_bps = INT64_C(400000000000),
				     .size_bytes = 1 << 26 };

	(void)state;
	for (int i = 0; i < ALL_OR_SOME(1, 0); i++) {
		int64_t sums = time_of(graph, COLL_REDUCE_SCATTER, &c);
		int64_t copies = time_of(graph, COLL_ALLGATHER, &c);

		assert_in_range(time_of(graph, COLL_ALLREDUCE, &c), 1, sums + copies);
	}
}

/* Four rings of five, where two nodes of each are joined to the other rings: coordinates, of which
 * some neighbours have no link. Where ranks pass on nothing, no message goes through one. */
static void nobody_forwards(void **state)
{
	static const char graph[] = "undirected\n0 1 2\n1 2 2\n2 3 2\n3 4 2\n4 0 2\n5 6 2\n6 7 2\n"
				    "7 8 2\n8 9 2\n9 5 2\n10 11 2\n11 12 2\n12 13 2\n13 14 2\n"
				    "14 10 2\n15 16 2\n16 17 2\n17 18 2\n18 19 2\n19 15 2\n0 5\n"
				    "5 10\n10 15\n15 0\n2 7\n7 12\n12 17\n17 2\n";
	const struct coll_cost c = { .alpha_ns = 10000, .link_bps = INT64_C(400000000000),
				     .size_bytes = 1 << 20 };
	struct topo *t;

	(void)state;
	assert_int_equal(topo_from_edges(graph, strlen(graph), &t, NULL), 0);
	for (int kind = COLL_ALLGATHER; kind <= COLL_ALLREDUCE; kind += ALL_OR_SOME(1, 3)) {
		struct coll_make_query q = coll_make_job((enum coll_kind)kind, NULL, t, &c);
		struct coll_made m;

		assert_int_equal(coll_make(&q, &m, NULL), 0);
		assert_false(coll_through_ranks(m.sched));
		coll_made_fini(&m);
	}
	topo_free(t);
}

/* Every option has an algorithm that takes it, and every algorithm only options that are for one
 * of its collectives. */
static void table(void **state)
{
	const struct coll_algorithm *a;
	unsigned taken = 0;

	(void)state;
	for (int i = 0; (a = coll_algorithm(i)); i++) {
		taken |= a->options;
		assert_true(coll_algorithm_exists(a->name));
		for (int o = 0; o < COLL_OPTIONS; o++) {
			assert_true(!(a->options & COLL_OPTION_BIT(o)) ||
				    (a->kinds & coll_options[o].kinds));
		}
	}
	assert_int_equal(taken, COLL_OPTION_BIT(COLL_OPTIONS) - 1);
	assert_null(coll_algorithm_find("auto", COLL_ALLREDUCE));
	assert_string_equal(coll_option_owner("chunks", COLL_ALLGATHER)->name, "bfb");
	assert_null(coll_option_owner("chunks", COLL_BROADCAST));
	assert_null(coll_option_owner("batches", COLL_ALLGATHER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_is_best), cmocka_unit_test(options),
		cmocka_unit_test(two_names), cmocka_unit_test(embedded), cmocka_unit_test(refused),
		cmocka_unit_test(both_halves), cmocka_unit_test(nobody_forwards),
		cmocka_unit_test(trimmed), cmocka_unit_test(predicted), cmocka_unit_test(table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
