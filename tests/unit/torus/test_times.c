/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times by formula: those of schedules that are made, those that others computed, and what is
 * chosen is the fastest.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/torus/world.h"
#include "tests/unit/world.h"

static struct coll_cost cost_of(int64_t alpha_ns, int64_t message_ns, int64_t size_bytes)
{
	return (struct coll_cost){ .alpha_ns = alpha_ns, .message_ns = message_ns, .hop_ns = 400,
				   .link_bps = INT64_C(400000000000), .size_bytes = size_bytes };
}

static double formula(struct world *w, const struct torus_spec *spec, const struct coll_cost *c)
{
	struct err err = { 0 };
	double ns = 0;

	must(torus_time(w->shape, spec, COLL_ALLREDUCE, c, &ns, &err), &err);
	return ns;
}

/* coll_time of the schedule is the formula, but for rounding up; or below it, where routes in a
 * step are unlike. */
static void assert_made(struct world *w, const struct torus_spec *spec, enum coll_kind kind,
			const struct coll_cost *c, bool exact)
{
	struct coll_report report;
	struct err err = { 0 };
	struct coll_sched *s = make(w, spec, kind, &report);
	int64_t ns;
	double expected = 0;

	must(torus_time(w->shape, spec, kind, c, &expected, &err), &err);
	must(coll_time(s, &report, c, &ns, NULL, &err), &err);
	if ((double)ns > expected + 1.001 ||
	    (double)ns < (exact ? expected * (1 - 1e-9) - 1e-3 : expected / 2)) {
		struct buf levels = { 0 };

		torus_print_radices(w->shape, spec, &levels);
		fail_msg("%d ranks, %s %s, rounds %d, %s: %.3f ns by formula, %lld as made",
			 topo_n(w->t), torus_name(spec), buf_cstr(&levels), spec->rounds,
			 coll_kind_name(kind), expected, (long long)ns);
	}
	coll_report_fini(&report);
	coll_free(s);
}

/* Random levels that multiply to the size. */
static struct torus_radices random_radices(struct rng *r, int size)
{
	struct torus_radices list = { 0 };

	if (size > 6 && rng_below(r, 3) == 0) {
		return (struct torus_radices){ 2, { { 3, rng_below(r, 2), 0 },
						    { size / 6 + (size - 1) / 6 + 1,
						      rng_below(r, 2), 0 } } };
	}
	if (size > 6 && rng_below(r, 2) == 0) {
		return (struct torus_radices){ 2, { { 3, false, 0 },
						    { size / 3, false, size % 3 } } };
	}
	while (size > 1) {
		int m = 2 + (int)rng_below(r, (uint64_t)size - 1);

		if (size % m == 0) {
			list.level[list.n++] = (struct torus_level){ m, rng_below(r, 2), 0 };
			size /= m;
		}
	}
	return list;
}

static void test_made(void **state)
{
	static const struct {
		const char *expr;
		int dims, size[4];
	} shapes[] = {
		{ "Torus(12)", 1, { 12 } }, { "Torus(4,4)", 2, { 4, 4 } },
		{ "Torus(6,4)", 2, { 6, 4 } }, { "Torus(3,5)", 2, { 3, 5 } },
		{ "Torus(2,3,4)", 3, { 2, 3, 4 } }, { "HyperX(4,6)", 2, { 4, 6 } },
		{ "K(9)", 1, { 9 } }, { "Torus(13,7)", 2, { 13, 7 } },
		{ "Prod(Ring(6),K(4))", 2, { 6, 4 } },
		{ "HammingMesh(2,3,2)", 2, { 6, 4 } }, { "Mesh(4,6)", 2, { 4, 6 } },
	};
	struct rng r;

	(void)state;
	rng_seed(&r, 19);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct world w = world_of(shapes[i].expr);

		for (int k = 0; k < 12; k++) {
			struct torus_spec spec = { .lines = (enum torus_lines)(k % 4),
						   .rounds = (int)rng_below(&r, 6) - 1,
						   .one_port = rng_below(&r, 4) == 0,
						   .in_step = rng_below(&r, 2) };
			struct coll_cost c = cost_of(500, (int64_t)rng_below(&r, 2) * 300,
						     1 << rng_below(&r, 24));
			struct err err = { 0 };
			double ns;

			spec.rounds = spec.lines == TORUS_BUCKET ? -1 : spec.rounds;
			for (int e = 0; e < shapes[i].dims; e++) {
				spec.radices[e] = random_radices(&r, shapes[i].size[e]);
			}
			if (torus_time(w.shape, &spec, COLL_ALLREDUCE, &c, &ns, &err)) {
				assert_int_equal(err.code, WEFT_EUNSUPPORTED);
				continue;
			}
			assert_made(&w, &spec, COLL_ALLREDUCE, &c, i < 8);
			if (spec.rounds < 0) {
				assert_made(&w, &spec, COLL_REDUCE_SCATTER, &c, i < 8);
				assert_made(&w, &spec, COLL_ALLGATHER, &c, i < 8);
			}
		}
		world_end(&w);
	}
}

/* Over one path, and over parallel ones: rings have no more, switches may have several links. */
static void test_fewer_paths(void **state)
{
	static const struct {
		const char *expr;
		int dims, size[3];
	} shapes[] = {
		{ "HyperX(4,6)", 2, { 4, 6 } }, { "HyperX(8,3)", 2, { 8, 3 } },
		{ "HyperX(2,3,4)", 3, { 2, 3, 4 } }, { "Torus(12)", 1, { 12 } },
	};
	struct rng r;

	(void)state;
	rng_seed(&r, 23);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct world w = world_of(shapes[i].expr);

		for (int k = 0; k < 8; k++) {
			struct torus_spec spec = { .lines = TORUS_LEVELS, .rounds = k % 4 - 1,
						   .one_port = k % 3 == 0,
						   .paths = k % 2 ? TORUS_SINGLE
								  : TORUS_PARALLEL };
			struct coll_cost c = cost_of(500, 300, 1 << rng_below(&r, 24));
			struct err err = { 0 };
			double ns;

			for (int e = 0; e < shapes[i].dims; e++) {
				spec.radices[e] = random_radices(&r, shapes[i].size[e]);
			}
			if (torus_time(w.shape, &spec, COLL_ALLREDUCE, &c, &ns, &err) == 0) {
				assert_made(&w, &spec, COLL_ALLREDUCE, &c, true);
			}
		}
		world_end(&w);
	}
}

/* Seven partners share two links: by hand 2 steps of 1.5 us, 2 hops and 4 messages each. */
static void test_single(void **state)
{
	struct world w = world_of("HyperX(8,8)");
	struct coll_cost c = cost_of(1500, 500, 0);
	struct torus_spec spec;
	struct err err = { 0 };

	(void)state;
	must(torus_choose(w.shape, COLL_ALLREDUCE, &c, NULL, &spec, &err), &err);
	assert_int_equal(spec.paths, TORUS_SINGLE);
	assert_true(fabs(formula(&w, &spec, &c) - 2 * (1500 + 2 * 400 + 4 * 500)) < 1e-6);
	world_end(&w);
}

/* Where all shortest paths are too many, what is chosen goes over fewer, and takes as long as was
 * said; others of the kind can be made. */
static void test_many_paths(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_ALLGATHER };
	struct world w = world_of("C(256,{1,16})");
	struct torus_spec spec = { .lines = TORUS_SWING };
	struct err err = { 0 };
	double ns;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct coll_cost c = cost_of(1500, 0, i < 2 ? 32 : 1 << 20);

		must(torus_choose(w.shape, kinds[i % 2], &c, NULL, &spec, &err), &err);
		assert_made(&w, &spec, kinds[i % 2], &c, true);
	}
	spec = (struct torus_spec){ .lines = TORUS_LEVELS, .rounds = 0,
				    .radices = { { 1, { { 256, false, 0 } } } } };
	assert_int_equal(torus_time(w.shape, &spec, COLL_ALLREDUCE, &(struct coll_cost){
			 .link_bps = 1 }, &ns, &err), WEFT_ELIMIT);
	world_end(&w);
}

static double made_ns(struct world *w, const struct torus_spec *spec, const struct coll_cost *c)
{
	struct coll_report report;
	struct coll_sched *s = make(w, spec, COLL_ALLREDUCE, &report);
	struct err err = { 0 };
	int64_t ns;

	must(coll_time(s, &report, c, &ns, NULL, &err), &err);
	coll_report_fini(&report);
	coll_free(s);
	return (double)ns;
}

/* Without a link lines are unlike: wherever it was, what is chosen takes what was said, and none of
 * these is faster. */
static void test_without_a_link(void **state)
{
	static const char *const shapes[] = { "Torus(8,8) less 0-1", "Torus(8,8) less 9-10",
					      "Torus(8,8) less 17-25" };
	static const int64_t sizes[] = { 256, 4096, 65536 };

	(void)state;
	for (int i = 0; i < 9; i++) {
		struct world w = world_of(shapes[i / 3]);
		struct coll_cost c = cost_of(500, 0, sizes[i % 3]);
		struct torus_spec best;
		struct err err = { 0 };
		double ns;

		must(torus_choose(w.shape, COLL_ALLREDUCE, &c, NULL, &best, &err), &err);
		ns = made_ns(&w, &best, &c);
		assert_true(fabs(ns - formula(&w, &best, &c)) <= 1);
		for (int k = 0; k < 12; k++) {
			struct torus_spec spec = { .lines = k < 8 ? TORUS_LEVELS : TORUS_SWING,
						   .rounds = k % 4 - 1, .one_port = k < 4 };

			for (int e = 0; e < 2; e++) {
				spec.radices[e] = (struct torus_radices){ 1, { { 8, false, 0 } } };
			}
			assert_true(ns <= made_ns(&w, &spec, &c));
		}
		world_end(&w);
	}
}

/*
 * Of research on what beats Swing: ns by another program for Swing, the best of one-port recursive
 * doubling and buckets, breadth-first broadcast, and the best composed algorithm. What is chosen
 * here is at most that.
 */
static const struct known {
	const char *expr;
	int64_t alpha_ns, message_ns, size_bytes;
	double swing, baseline, bfb, best;
} known[] = {
	{ "Torus(8,8)", 0, 0, 32, 4001.6, 5606.4, 6400.315, 3202.24 },
	{ "Torus(8,8)", 0, 0, 128, 4006.4, 5625.6, 6401.26, 3208.96 },
	{ "Torus(8,8)", 0, 0, 512, 4025.6, 5702.4, 6405.04, 3235.84 },
	{ "Torus(8,8)", 0, 0, 2048, 4102.4, 6009.6, 6420.16, 3343.36 },
	{ "Torus(8,8)", 0, 0, 8192, 4409.6, 7238.4, 6480.64, 3773.44 },
	{ "Torus(8,8)", 0, 0, 32768, 5638.4, 11522.56, 6722.56, 5230.08 },
	{ "Torus(8,8)", 0, 0, 131072, 9413.12, 12490.24, 7690.24, 6520.32 },
	{ "Torus(8,8)", 0, 0, 524288, 13652.48, 16360.96, 11560.96, 11498.24 },
	{ "Torus(8,8)", 0, 0, 2097152, 30609.92, 31843.84, 27043.84, 27043.84 },
	{ "Torus(8,8)", 0, 0, 8388608, 98439.68, 93775.36, 88975.36, 88975.36 },
	{ "Torus(8,8)", 0, 0, 33554432, 369758.72, 341501.44, 336701.44, 336701.44 },
	{ "Torus(8,8)", 0, 0, 134217728, 1455034.88, 1332405.76, 1327605.76, 1327605.76 },
	{ "Torus(8,8)", 0, 0, 536870912, 5796139.52, 5296023.04, 5291223.04, 5291223.04 },
	{ "Torus(8,8)", 0, 0, 2147483648, 23160558.08, 21150492.16, 21145692.16, 21145692.16 },
	{ "Torus(64,64)", 0, 0, 32, 33613.44, 50460.16, 51200.32, 25620.16 },
	{ "Torus(64,64)", 0, 0, 128, 33653.76, 50640.64, 51201.28, 25680.64 },
	{ "Torus(64,64)", 0, 0, 512, 33815.04, 51362.56, 51205.119, 25922.56 },
	{ "Torus(64,64)", 0, 0, 2048, 34460.16, 54250.24, 51220.475, 26890.24 },
	{ "Torus(64,64)", 0, 0, 8192, 37040.64, 65800.96, 51281.9, 28531.2 },
	{ "Torus(64,64)", 0, 0, 32768, 47362.56, 101127.6, 51527.6, 30336.0 },
	{ "Torus(64,64)", 0, 0, 131072, 68752.32, 102110.4, 52510.4, 34437.12 },
	{ "Torus(64,64)", 0, 0, 524288, 73409.28, 106041.6, 56441.6, 41748.48 },
	{ "Torus(64,64)", 0, 0, 2097152, 92037.12, 121766.4, 72166.4, 63221.76 },
	{ "Torus(64,64)", 0, 0, 8388608, 166548.48, 184665.6, 135065.6, 135065.6 },
	{ "Torus(64,64)", 0, 0, 33554432, 464593.92, 436262.4, 386662.4, 386662.4 },
	{ "Torus(64,64)", 0, 0, 134217728, 1656775.68, 1442649.6, 1393049.6, 1393049.6 },
	{ "Torus(64,64)", 0, 0, 536870912, 6425502.72, 5468198.4, 5418598.4, 5418598.4 },
	{ "Torus(64,64)", 0, 0, 2147483648, 25500410.88, 21570393.6, 21520793.6, 21520793.6 },
	{ "Torus(8,8)", 500, 0, 32, 7001.6, 8606.4, 14400.315, 4205.12 },
	{ "Torus(8,8)", 500, 0, 128, 7006.4, 8625.6, 14401.26, 4220.48 },
	{ "Torus(8,8)", 500, 0, 512, 7025.6, 8702.4, 14405.04, 4281.92 },
	{ "Torus(8,8)", 500, 0, 2048, 7102.4, 9009.6, 14420.16, 4527.68 },
	{ "Torus(8,8)", 500, 0, 8192, 7409.6, 10238.4, 14480.64, 5510.72 },
	{ "Torus(8,8)", 500, 0, 32768, 8638.4, 15153.6, 14722.56, 7283.04 },
	{ "Torus(8,8)", 500, 0, 131072, 13553.6, 23589.76, 15690.24, 10232.16 },
	{ "Torus(8,8)", 500, 0, 524288, 19652.48, 30360.96, 19560.96, 16498.24 },
	{ "Torus(8,8)", 500, 0, 2097152, 36609.92, 45843.84, 35043.84, 34192.96 },
	{ "Torus(8,8)", 500, 0, 8388608, 104439.68, 107775.36, 96975.36, 96975.36 },
	{ "Torus(8,8)", 500, 0, 33554432, 375758.72, 355501.44, 344701.44, 344701.44 },
	{ "Torus(8,8)", 500, 0, 134217728, 1461034.88, 1346405.76, 1335605.76, 1335605.76 },
	{ "Torus(8,8)", 500, 0, 536870912, 5802139.52, 5310023.04, 5299223.04, 5299223.04 },
	{ "Torus(8,8)", 500, 0, 2147483648, 23166558.08, 21164492.16, 21153692.16, 21153692.16 },
	{ "Torus(64,64)", 500, 0, 32, 39613.44, 56460.16, 115200.32, 26927.68 },
	{ "Torus(64,64)", 500, 0, 128, 39653.76, 56640.64, 115201.28, 27910.72 },
	{ "Torus(64,64)", 500, 0, 512, 39815.04, 57362.56, 115205.119, 30531.2 },
	{ "Torus(64,64)", 500, 0, 2048, 40460.16, 60250.24, 115220.475, 31841.44 },
	{ "Torus(64,64)", 500, 0, 8192, 43040.64, 71800.96, 115281.9, 33213.12 },
	{ "Torus(64,64)", 500, 0, 32768, 53362.56, 114720.0, 115527.6, 36392.64 },
	{ "Torus(64,64)", 500, 0, 131072, 80752.32, 120480.0, 116510.4, 40570.56 },
	{ "Torus(64,64)", 500, 0, 524288, 85409.28, 143520.0, 120441.6, 53396.48 },
	{ "Torus(64,64)", 500, 0, 2097152, 104037.12, 235680.0, 136166.4, 78060.16 },
	{ "Torus(64,64)", 500, 0, 8388608, 178548.48, 310665.6, 199065.6, 155137.92 },
	{ "Torus(64,64)", 500, 0, 33554432, 476593.92, 562262.4, 450662.4, 428026.56 },
	{ "Torus(64,64)", 500, 0, 134217728, 1668775.68, 1568649.6, 1457049.6, 1457049.6 },
	{ "Torus(64,64)", 500, 0, 536870912, 6437502.72, 5594198.4, 5482598.4, 5482598.4 },
	{ "Torus(64,64)", 500, 0, 2147483648, 25512410.88, 21696393.6, 21584793.6, 21584793.6 },
	{ "Torus(8,8)", 1500, 500, 32, 16001.6, 17606.4, 38400.315, 10205.12 },
	{ "Torus(8,8)", 1500, 500, 128, 16006.4, 17625.6, 38401.26, 10220.48 },
	{ "Torus(8,8)", 1500, 500, 512, 16025.6, 17702.4, 38405.04, 10281.92 },
	{ "Torus(8,8)", 1500, 500, 2048, 16102.4, 18009.6, 38420.16, 10527.68 },
	{ "Torus(8,8)", 1500, 500, 8192, 16409.6, 19238.4, 38480.64, 11510.72 },
	{ "Torus(8,8)", 1500, 500, 32768, 17638.4, 24153.6, 38722.56, 15442.88 },
	{ "Torus(8,8)", 1500, 500, 131072, 22553.6, 41589.76, 39690.24, 19232.16 },
	{ "Torus(8,8)", 1500, 500, 524288, 37652.48, 60759.04, 43560.96, 28264.32 },
	{ "Torus(8,8)", 1500, 500, 2097152, 54609.92, 87843.84, 59043.84, 49192.96 },
	{ "Torus(8,8)", 1500, 500, 8388608, 122439.68, 149775.36, 120975.36, 119239.68 },
	{ "Torus(8,8)", 1500, 500, 33554432, 393758.72, 397501.44, 368701.44, 368701.44 },
	{ "Torus(8,8)", 1500, 500, 134217728, 1479034.88, 1388405.76, 1359605.76, 1359605.76 },
	{ "Torus(8,8)", 1500, 500, 536870912, 5820139.52, 5352023.04, 5323223.04, 5323223.04 },
	{ "Torus(8,8)", 1500, 500, 2147483648, 23184558.08, 21206492.16, 21177692.16, 21177692.16 },
	{ "Torus(64,64)", 1500, 500, 32, 57613.44, 74460.16, 307200.32, 42846.08 },
	{ "Torus(64,64)", 1500, 500, 128, 57653.76, 74640.64, 307201.28, 42984.32 },
	{ "Torus(64,64)", 1500, 500, 512, 57815.04, 75362.56, 307205.119, 43537.28 },
	{ "Torus(64,64)", 1500, 500, 2048, 58460.16, 78250.24, 307220.475, 45749.12 },
	{ "Torus(64,64)", 1500, 500, 8192, 61040.64, 89800.96, 307281.9, 49456.48 },
	{ "Torus(64,64)", 1500, 500, 32768, 71362.56, 136003.84, 307527.6, 54125.92 },
	{ "Torus(64,64)", 1500, 500, 131072, 112650.24, 156480.0, 308510.4, 58570.56 },
	{ "Torus(64,64)", 1500, 500, 524288, 121409.28, 179520.0, 312441.6, 74662.56 },
	{ "Torus(64,64)", 1500, 500, 2097152, 140037.12, 271680.0, 328166.4, 104057.28 },
	{ "Torus(64,64)", 1500, 500, 8388608, 214548.48, 640320.0, 391065.6, 187440.64 },
	{ "Torus(64,64)", 1500, 500, 33554432, 512593.92, 940262.4, 642662.4, 485026.56 },
	{ "Torus(64,64)", 1500, 500, 134217728, 1704775.68, 1946649.6, 1649049.6, 1558506.24 },
	{ "Torus(64,64)", 1500, 500, 536870912, 6473502.72, 5972198.4, 5674598.4, 5674598.4 },
	{ "Torus(64,64)", 1500, 500, 2147483648, 25548410.88, 22074393.6, 21776793.6, 21776793.6 },
};

static double fastest(struct world *w, const struct torus_spec *specs, int n,
		      const struct coll_cost *c)
{
	double best = HUGE_VAL;

	for (int i = 0; i < n; i++) {
		best = fmin(best, formula(w, &specs[i], c));
	}
	return best;
}

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-9 * b + 1e-2);
}

static void test_known(void **state)
{
	static const struct torus_spec swing[] = { { .rounds = -1 }, { .rounds = 0 } };
	static const struct torus_spec baselines[] = {
		{ .lines = TORUS_DOUBLING, .one_port = true },
		{ .lines = TORUS_DOUBLING, .rounds = -1, .one_port = true },
		{ .lines = TORUS_BUCKET, .rounds = -1, .in_step = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i += ALL_OR_SOME(1, 4)) {
		const struct known *k = &known[i];
		struct coll_cost c = cost_of(k->alpha_ns, k->message_ns, k->size_bytes);
		struct world w = world_of(k->expr);
		struct torus_spec spec;
		struct err err = { 0 };

		assert_near(fastest(&w, swing, 2, &c), k->swing);
		assert_near(fastest(&w, baselines, 3, &c), k->baseline);
		if (i % 5 == 0) {
			must(torus_choose(w.shape, COLL_ALLREDUCE, &c, NULL, &spec, &err), &err);
			assert_true(formula(&w, &spec, &c) <=
				    fmin(k->best, k->bfb) * (1 + 1e-9) + 1e-2);
		}
		world_end(&w);
	}
}

static double chosen(const char *expr, const struct coll_cost *c)
{
	struct world w = world_of(expr);
	struct torus_spec spec;
	struct err err = { 0 };
	double ns;

	must(torus_choose(w.shape, COLL_ALLREDUCE, c, NULL, &spec, &err), &err);
	ns = formula(&w, &spec, c);
	world_end(&w);
	return ns;
}

/* Sizes with a large prime factor take no more than a tenth above the worse of their neighbours:
 * by a chain before few nodes, or by levels that pass on sums after others. */
static void test_neighbours(void **state)
{
	static const struct {
		const char *below, *expr, *above;
		int64_t alpha_ns, message_ns, size_bytes;
	} rows[] = {
		{ "Torus(100)", "Torus(101)", "Torus(102)", 0, 0, 1 << 17 },
		{ "Torus(60)", "Torus(61)", "Torus(62)", 0, 0, 1 << 17 },
		{ "Torus(16,16)", "Torus(17,17)", "Torus(18,18)", 1500, 500, 1 << 15 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_cost c = cost_of(rows[i].alpha_ns, rows[i].message_ns,
					     rows[i].size_bytes);
		double worse = fmax(chosen(rows[i].below, &c), chosen(rows[i].above, &c));

		assert_true(chosen(rows[i].expr, &c) < 1.1 * worse);
	}
}

/* Levels that do not multiply to the size are tried where others do, too: against the best of each
 * list that does, with the number of rounds that is best for it. */
static void test_uneven(void **state)
{
	static const char *const even[] = { "8", "2x4", "4x2", "2x2x2", "8c", "2x4c", "4cx2" };
	struct coll_cost c = cost_of(500, 0, 1 << 19);
	struct world w = world_of("Torus(8,8,8)");
	double best = HUGE_VAL;

	(void)state;
	for (size_t i = 0; i < sizeof(even) / sizeof(even[0]); i++) {
		struct torus_spec fixed = { .lines = TORUS_LEVELS, .rounds = TORUS_ANY_ROUNDS };
		struct torus_spec spec;
		struct err err = { 0 };

		must(torus_parse_radices(w.shape, even[i], &fixed, &err), &err);
		must(torus_choose(w.shape, COLL_ALLREDUCE, &c, &fixed, &spec, &err), &err);
		best = fmin(best, formula(&w, &spec, &c));
	}
	assert_true(chosen("Torus(8,8,8)", &c) < 0.85 * best);
	world_end(&w);
}

/* Too large for tables: refused before they are made. */
static void test_large(void **state)
{
	struct world w = world_of("Torus(60000)");
	struct coll_cost c = cost_of(500, 0, 1024);
	struct torus_spec spec;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(torus_choose(w.shape, COLL_ALLREDUCE, &c, NULL, &spec, &err),
			 WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "a dimension of 60000: not supported beyond 2048");
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_fewer_paths),
		cmocka_unit_test(test_single),
		cmocka_unit_test(test_many_paths),
		cmocka_unit_test(test_without_a_link),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
