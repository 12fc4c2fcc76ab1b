/* Swing and its relatives: check values, and replay on many shapes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/torus/world.h"

/* Reduce-scatter: T_B over its bound. */
static void assert_excess(const char *expr, const struct torus_spec *spec, const char *excess)
{
	struct world w = world_of(expr);
	struct coll_report report;
	struct coll_sched *s = make(&w, spec, COLL_REDUCE_SCATTER, &report);
	mpq_t q;

	mpq_init(q);
	mpq_div(q, report.bandwidth_factor, report.bandwidth_bound);
	assert_string_equal(mpq_get_str((char[64]){ 0 }, 10, q), excess);
	mpq_clear(q);
	coll_report_fini(&report);
	coll_free(s);
	world_end(&w);
}

static const struct torus_spec swing = { .lines = TORUS_SWING, .rounds = -1 };
static const struct torus_spec swing_latency = { .lines = TORUS_SWING };
static const struct torus_spec doubling = { .lines = TORUS_DOUBLING, .one_port = true };
static const struct torus_spec rabenseifner = { .lines = TORUS_DOUBLING, .rounds = -1,
						.one_port = true };
static const struct torus_spec bucket = { .lines = TORUS_BUCKET, .rounds = -1 };
static const struct torus_spec ring = { .lines = TORUS_RING, .rounds = -1 };

static void test_excess(void **state)
{
	(void)state;
	assert_excess("Torus(8)", &swing, "9/7");
	assert_excess("Torus(16)", &swing, "23/15");
	assert_excess("Torus(64)", &swing, "15/7");
	assert_excess("Torus(8,8)", &swing, "23/21");
	assert_excess("Torus(16,16)", &swing, "97/85");
	assert_excess("Torus(64,64)", &swing, "77/65");
	assert_excess("Torus(16,4)", &swing, "82/63");
	assert_excess("Torus(6,6)", &swing, "41/35");
	assert_excess("Torus(8,8,8)", &swing, "75/73");
}

static void replay_all(const char *expr)
{
	static const enum coll_kind kinds[] = { COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_ALLREDUCE };
	static const struct torus_spec *specs[] = {
		&swing, &swing_latency, &doubling, &rabenseifner, &bucket, &ring,
	};
	struct world w = world_of(expr);

	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < 3; k++) {
			struct coll_report report;
			struct coll_sched *s;
			struct err err = { 0 };
			int rc = torus_make(w.shape, specs[i], kinds[k], 0, &s, &err);

			if (rc == WEFT_EUNSUPPORTED && (kinds[k] != COLL_ALLREDUCE || i == 5)) {
				continue;
			}
			must(rc, &err);
			coll_report_init(&report);
			if (coll_prove(s, &report, &err)) {
				fail_msg("%s, algorithm %d, %s: %s", expr, i, coll_kind_name(kinds[k]),
					 err.msg);
			}
			coll_report_fini(&report);
			coll_free(s);
		}
	}
	world_end(&w);
}

static void test_replay(void **state)
{
	(void)state;
	for (int p = 2; p <= 40; p++) {
		char expr[32];

		snprintf(expr, sizeof(expr), "Torus(%d)", p);
		replay_all(expr);
	}
	replay_all("Torus(4,4)");
	replay_all("Torus(3,5)");
	replay_all("Torus(6,4)");
	replay_all("Torus(2,3,4)");
	replay_all("Torus(8,4)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_excess),
		cmocka_unit_test(test_replay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
