/* SPDX-License-Identifier: Apache-2.0 */
/* Light that changes between steps: counted, priced, and refused by what cannot
 * wait for it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/schedule/common.h"

static void light(struct coll_sched *s, int step, int arc, int channel)
{
	struct coll_light l = { .step = step, .arc = arc, .channel = (uint16_t)channel };
	struct err err = { 0 };

	must(coll_add_light(s, &l, &err), &err);
}

static int64_t time_of(const struct coll_sched *s, int64_t retune_ns)
{
	struct coll_cost c = { .alpha_ns = 10, .retune_ns = retune_ns, .link_bps = 8000000000,
			       .size_bytes = 4000 };
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns, bound;

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, &c, &ns, &bound, &err), &err);
	coll_report_fini(&r);
	assert_true(bound <= ns);
	return ns;
}

static void assert_changes(const struct coll_sched *s, int steps, int first, int before)
{
	struct coll_light_change got;
	struct err err = { 0 };

	coll_light_changes(s, &got);
	must(0, &err);
	assert_int_equal(got.steps, steps);
	assert_int_equal(got.first, first);
	assert_int_equal(got.before, before);
}

/* Three steps of 10 ns and 1000 bytes, and as many changes as there are. */
static void test_priced(void **state)
{
	static const struct {
		int channel[3], changes, first, before;
	} cases[] = {
		{ { 0, 0, 0 }, 0, 0, 0 },
		{ { 0, 0, 1 }, 1, 2, 1 },
		{ { 0, 1, 1 }, 1, 1, 0 },
		{ { 0, 1, 0 }, 2, 1, 0 },
		{ { 0, 1, 2 }, 2, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct coll_sched *s = round_of_four(cases[i].channel);

		assert_changes(s, cases[i].changes, cases[i].first, cases[i].before);
		assert_int_equal(time_of(s, 0), 3 * 10 + 3 * 1000);
		assert_int_equal(time_of(s, 700), 3 * 10 + 3 * 1000 + 700 * cases[i].changes);
		coll_free(s);
	}
}

/* Without light, with a step that has none, with a light less, on a parallel arc,
 * behind the last transfer. */
static void test_what_changes(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 0, 1 }, { 1, 0 } };
	struct err err = { 0 };
	struct coll_sched *s = bfb(COLL_ALLGATHER, "Ring(5)");

	(void)state;
	assert_changes(s, 0, 0, 0);
	coll_free(s);
	must(coll_new(COLL_ALLGATHER, graph_from(2, 3, arcs), 3, 0, 0, &s, &err), &err);
	send_part(s, 6, 0, 1, 0, 0, 0, COLL_OP_COPY);
	light(s, 0, 0, 4);
	light(s, 0, 1, 2);
	light(s, 3, 0, 2);
	light(s, 3, 1, 4);
	finish(s);
	assert_changes(s, 0, 0, 0);
	light(s, 5, 0, 2);
	finish(s);
	assert_changes(s, 1, 5, 3);
	light(s, 4, 2, 2);
	light(s, 6, 1, 2);
	finish(s);
	assert_changes(s, 2, 4, 3);
	/* What follows the last transfer carries nothing. */
	light(s, 7, 0, 9);
	finish(s);
	assert_changes(s, 2, 4, 3);
	coll_free(s);
}

static void test_refused(void **state)
{
	struct coll_sched *s = round_of_four((int[]){ 3, 3, 5 });
	struct err err = { 0 };

	(void)state;
	assert_int_equal(coll_refuse_light_changes(s, "programs", &err), WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "programs of a schedule whose light changes: not supported: "
			    "step 2 needs other light than step 1, and an engine cannot wait for "
			    "it");
	coll_free(s);
	s = round_of_four((int[]){ 3, 3, 3 });
	must(coll_refuse_light_changes(s, "programs", &err), &err);
	coll_free(s);
}

static void test_retune_refused(void **state)
{
	struct coll_sched *s = round_of_four((int[]){ 0, 1, 2 });
	struct coll_cost c = { .retune_ns = -1, .link_bps = 1 };
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns;

	(void)state;
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_EINVAL);
	c.retune_ns = INT64_MAX / 2 + 1;
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_ELIMIT);
	coll_report_fini(&r);
	coll_free(s);
}

/* A broadcast of 0 to 1 of K(2), embedded in itself with the second arc for both: light for this
 * one in one step, as it says. */
static void test_embedded(void **state)
{
	struct coll_light l = { .step = 0, .arc = 2 };
	const struct {
		int step;	/* that of the light */
		int lights;
		int rc;
	} cases[] = { { 0, 1, 0 }, { 0, 2, 0 }, { 1, 1, WEFT_EVERIFY } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct coll_sched *s = empty(COLL_BROADCAST, "K(2)", 1);
		struct coll_arc_route r = { 0, 1, (int32_t[]){ 1 }, 1 };
		struct coll_report report;
		struct err err = { 0 };

		coll_report_init(&report);
		must(coll_set_physical(s, graph_of("Multi(K(2),2)"), COLL_ROUTING_EXPLICIT, 4,
				       &err), &err);
		must(coll_add_route(s, &r, &err), &err);
		for (int o = 0; o < 2; o++) {
			must(coll_add(s, &(struct coll_xfer){ 0, 0, o, -1, 0, 0, COLL_OP_COPY, 0 },
				      &err), &err);
		}
		l.arc = 4;
		assert_int_equal(coll_add_light(s, &l, &err), WEFT_EINVAL);
		err_clear(&err);
		l = (struct coll_light){ .step = cases[i].step, .arc = 1 };
		for (int k = 0; k < cases[i].lights; k++, l.channel++) {
			must(coll_add_light(s, &l, &err), &err);
		}
		must(coll_finish(s, &err), &err);
		assert_int_equal(coll_verify(s, &report, &err), cases[i].rc);
		assert_true(cases[i].rc ||
			    mpq_get_d(report.shard_times) == 2.0 / cases[i].lights);
		coll_report_fini(&report);
		coll_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_priced),
		cmocka_unit_test(test_what_changes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_retune_refused),
		cmocka_unit_test(test_embedded),
	};

	return cmocka_run_group_tests_name("schedule/light", tests, NULL, NULL);
}
