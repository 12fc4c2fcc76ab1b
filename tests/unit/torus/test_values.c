/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check values of Swing and recursive doubling: hops and loads of every step as the verifier counts
 * them, exactly; and times of all algorithms by formula, as others computed them, and as made.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/torus/world.h"

/* Loads in parts of the vector on the fullest link; "" is not known, or too large to make. */
static const struct value {
	const char *expr, *reduce_scatter, *excess, *hops, *loads;
	const char *swing_latency, *rabenseifner, *doubling, *mirrored_rabenseifner,
		*mirrored_doubling;
} values[] = {
	{ "Torus(8)", "9/16", "9/7",
	  "1 1 3",
	  "1/4 1/8 3/16", "5/2", "5/4",
	  "5", "7/8", "4" },
	{ "Torus(16)", "23/32", "23/15",
	  "1 1 3 5",
	  "1/4 1/8 3/16 5/32", "5", "7/4",
	  "11", "21/16", "19/2" },
	{ "Torus(64)", "135/128", "15/7",
	  "1 1 3 5 11 21",
	  "1/4 1/8 3/16 5/32 11/64 21/128", "21", "11/4",
	  "47", "145/64", "89/2" },
	{ "Torus(8,8)", "69/256", "23/21",
	  "1 1 1 1 3 3",
	  "1/8 1/16 1/32 1/64 3/128 3/256", "5/2", "39/32",
	  "10", "3/8", "4" },
	{ "Torus(16,16)", "291/1024", "97/85",
	  "1 1 1 1 3 3 5 5",
	  "1/8 1/16 1/32 1/64 3/128 3/256 5/512 5/1024", "5", "87/64",
	  "22", "111/256", "19/2" },
	{ "Torus(64,64)", "4851/16384", "77/65",
	  "1 1 1 1 3 3 5 5 11 11 21 21",
	  "1/8 1/16 1/32 1/64 3/128 3/256 5/512 5/1024 11/2048 11/4096 21/8192 21/16384", "21",
	  "375/256",
	  "94", "1977/4096", "89/2" },
	{ "Torus(16,4)", "41/128", "82/63",
	  "1 1 1 1 3 5",
	  "1/8 1/16 1/32 1/64 3/64 5/128", "5", "5/4",
	  "13", "1/2", "19/2" },
	{ "Torus(8,8,8)", "175/1024", "75/73",
	  "1 1 1 1 1 1 3 3 3",
	  "1/12 1/24 1/48 1/96 1/192 1/384 1/256 1/512 1/1024", "5/2", "287/256",
	  "15", "161/768", "4" },
	{ "Torus(6,6)", "41/144", "41/35",
	  "1 1 1 1 3 3",
	  "1/12 1/18 1/18 1/36 1/24 1/48", "", "",
	  "", "", "" },
};

#define N_VALUES (sizeof(values) / sizeof(values[0]))

/* A load in ns at one ns a part of 2^20 of the vector: all that are here are whole then. */
#define VECTOR_NS (3 << 20)

static void assert_list(const char *expected, const double *given, int n, double unit)
{
	char *text = strdup(expected), *save = NULL, *word = strtok_r(text, " ", &save);

	for (int i = 0; i < n; i++, word = strtok_r(NULL, " ", &save)) {
		long num = 0, den = 1;

		assert_non_null(word);
		assert_true(sscanf(word, "%ld/%ld", &num, &den) >= 1);
		assert_true(given[i] * (double)den == unit * (double)num);
	}
	assert_null(word);
	free(text);
}

/* What steps take when only hops, or only links, take time. */
static void assert_steps(const struct coll_sched *s, const struct value *v)
{
	struct coll_cost hops = { .hop_ns = 1, .link_bps = 1 };
	struct coll_cost loads = { .link_bps = INT64_C(8000000000), .size_bytes = VECTOR_NS };
	double *ns = calloc((size_t)coll_steps(s), sizeof(*ns));
	struct err err = { 0 };

	must(coll_step_times(s, &hops, ns, &err), &err);
	assert_list(v->hops, ns, coll_steps(s), 1);
	must(coll_step_times(s, &loads, ns, &err), &err);
	assert_list(v->loads, ns, coll_steps(s), VECTOR_NS);
	free(ns);
}

/* The sum over steps of the fullest link's load, of the vector. */
static void assert_load(struct world *w, const struct torus_spec *spec, enum coll_kind kind,
			const char *expected)
{
	struct coll_report report;
	struct coll_sched *s;
	mpq_t load;

	if (!expected[0]) {
		return;
	}
	s = make(w, spec, kind, &report);
	mpq_init(load);
	mpq_set_si(load, report.nodes, 1);
	mpq_div(load, report.shard_times, load);
	assert_string_equal(mpq_get_str((char[64]){ 0 }, 10, load), expected);
	mpq_clear(load);
	coll_report_fini(&report);
	coll_free(s);
}

static void assert_value(const struct value *v)
{
	static const struct torus_spec latency = { .lines = TORUS_SWING },
		doubling = { .lines = TORUS_DOUBLING, .one_port = true },
		mirrored = { .lines = TORUS_DOUBLING },
		rabenseifner = { .lines = TORUS_DOUBLING, .rounds = -1, .one_port = true },
		both = { .lines = TORUS_DOUBLING, .rounds = -1 }, swing = { .rounds = -1 };
	struct world w = world_of(v->expr);
	bool small = topo_n(w.t) <= 256;
	struct coll_report report;
	struct coll_sched *s = make(&w, &swing, COLL_REDUCE_SCATTER, &report);

	assert_steps(s, v);
	coll_report_fini(&report);
	coll_free(s);
	assert_load(&w, &swing, COLL_REDUCE_SCATTER, v->reduce_scatter);
	assert_load(&w, &latency, COLL_ALLREDUCE, v->swing_latency);
	assert_load(&w, &doubling, COLL_ALLREDUCE, v->doubling);
	assert_load(&w, &rabenseifner, COLL_REDUCE_SCATTER, v->rabenseifner);
	assert_load(&w, &mirrored, COLL_ALLREDUCE, small ? v->mirrored_doubling : "");
	assert_load(&w, &both, COLL_REDUCE_SCATTER, small ? v->mirrored_rabenseifner : "");
	world_end(&w);
}

static void test_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_VALUES; i++) {
		assert_value(&values[i]);
	}
}

/* Blocks that a node sends in a step, at most, on one dimension; one collective. */
static void test_blocks(void **state)
{
	static const struct {
		const char *expr, *blocks;
	} rows[] = {
		{ "Torus(6)", "2 2 1" }, { "Torus(7)", "3 3 2" }, { "Torus(10)", "2 4 2 1" },
		{ "Torus(12)", "6 2 2 1" }, { "Torus(14)", "6 4 2 1" },
	};
	static const struct torus_spec swing = { .rounds = -1, .one_port = true };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w = world_of(rows[i].expr);
		struct coll_report report;
		struct err err = { 0 };
		struct coll_sched *s = make(&w, &swing, COLL_REDUCE_SCATTER, &report), *flat;
		double most[16] = { 0 };
		int64_t n;
		const struct coll_xfer *x;

		must(coll_unfold(s, &flat, &err), &err);
		x = coll_xfers(flat, &n);
		for (int64_t a = 0, b; a < n; a = b) {
			double sent = 0;
			int from = topo_arc(coll_topo(flat), x[a].arc)->src;

			for (b = a; b < n && x[b].step == x[a].step &&
				    topo_arc(coll_topo(flat), x[b].arc)->src == from; b++) {
				sent++;
			}
			most[x[a].step] = sent > most[x[a].step] ? sent : most[x[a].step];
		}
		assert_list(rows[i].blocks, most, coll_steps(s), 1);
		coll_report_fini(&report);
		coll_free(s);
		coll_free(flat);
		world_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
